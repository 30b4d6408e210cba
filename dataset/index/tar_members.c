#include "dataset/index/tar_members.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include <weir/clock.h>

enum { BLOCK_BYTES = 4096 }; /* the data between headers is skipped */

static int fail_members(const weir_tar_members *tar, weir_error *error)
{
    int code = archive_errno(tar->archive);
    const char *text = archive_error_string(tar->archive);
    if (code == EIO || code == ENOMEM)
        return weir_error_set(error, code == EIO ? WEIR_EIO : WEIR_ENOMEM, -code, "cannot read: %s", strerror(code));
    if (!tar->has_header)
        return weir_error_set(error, WEIR_EDATA, 0, "not a plain tar archive; unpack a compressed one first");
    return weir_error_set(error, WEIR_EDATA, -code, "damaged: %s", text ? text : "no reason is known");
}

int weir__tar_members_open(weir_tar_members *tar, const char *path, weir_error *error)
{
    struct stat file;
    *tar = (weir_tar_members){ .fd = open(path, O_RDONLY | O_CLOEXEC), .archive = archive_read_new() };
    if (!tar->archive)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (tar->fd < 0 || fstat(tar->fd, &file) != 0) {
        int status = errno == ENOENT || errno == ENOTDIR ? WEIR_ENOTFOUND : errno == EACCES ? WEIR_EACCESS : WEIR_EIO;
        return weir_error_set(error, status, -errno, "cannot open: %s", strerror(errno));
    }
    tar->size_bytes = file.st_size;
    tar->mtime_ns = file.st_mtim.tv_sec * WEIR_SECOND + file.st_mtim.tv_nsec;
    archive_read_support_format_tar(tar->archive);
    return archive_read_open_fd(tar->archive, tar->fd, BLOCK_BYTES) == ARCHIVE_OK ? WEIR_OK
                                                                                  : fail_members(tar, error);
}

void weir__tar_members_close(weir_tar_members *tar)
{
    if (!tar->archive)
        return;
    archive_read_free(tar->archive);
    if (tar->fd >= 0)
        close(tar->fd);
    *tar = (weir_tar_members){ 0 };
}

int weir__tar_members_next(weir_tar_members *tar, weir_error *error)
{
    for (;;) {
        struct archive_entry *entry;
        int rc = archive_read_next_header(tar->archive, &entry);
        if (rc == ARCHIVE_EOF)
            return WEIR_EOF;
        if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
            return fail_members(tar, error);
        tar->has_header = true;
        tar->size = archive_entry_size(entry);
        tar->offset = archive_filter_bytes(tar->archive, 0);
        tar->name = archive_entry_pathname_utf8(entry);
        tar->name = tar->name ? tar->name : archive_entry_pathname(entry);
        bool is_sparse = archive_entry_sparse_count(entry) > 0;
        if (!is_sparse && (tar->size < 0 || tar->size > tar->size_bytes - tar->offset))
            return weir_error_set(error, WEIR_EDATA, 0, "the archive is truncated within its last file");
        if (tar->name && archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry) && !is_sparse)
            return WEIR_OK;
    }
}
