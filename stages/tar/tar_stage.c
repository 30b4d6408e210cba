/*
 * The tar stage. The archive is read ahead by one header, to know which file is the last one. A worker begins without
 * an archive. Then it has read a header, the end, or a failure. A failure is reported after the files before it. After
 * the last file or the failure, the worker has no archive again.
 */
#include <weir/tar.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>
#include <libavutil/error.h>

#include "common/name_count.h"
#include "stages/ffmpeg/local_file.h"
#include "stages/source/directory_contents.h"

enum { BLOCK_BYTES = 256 << 10, STEP_BYTES = 1 << 20 };

typedef struct tar_worker {
    weir_task *task; /* the running one */

    /* of the open archive */
    weir_item input;         /* its path; kept until the archive's last item */
    struct archive *archive; /* NULL = none */
    weir_local_host host;
    weir_local_file file;
    int64_t file_bytes;
    uint8_t *block;              /* libarchive's read buffer; kept from archive to archive */
    struct archive_entry *entry; /* the current header; owned by the archive */
    const char *name;            /* its name; owned by the entry */
    int64_t entry_end;           /* lower bound of the end of its data; 0 = unknown */
    uint64_t num_items;          /* so far */
    weir_contents contents;      /* its files before the first item */
    uint64_t num_too_large;      /* files left out */
    int status;                  /* WEIR_OK: there is a header. WEIR_EOF: no more. Or the failure */
    weir_error error;
    weir_error limit; /* about the skipped files */

    weir_name_counts names; /* an archive may hold several files of one name */
    char *label;
    size_t max_label_bytes;
} tar_worker;

static int tar_config_init(void *config, weir_error *error)
{
    weir_tar_config *tar = config;
    if (tar->max_bytes == 0)
        tar->max_bytes = UINT64_C(1) << 30;
    if (!tar->glob)
        return WEIR_OK;
    tar->glob = strdup(tar->glob);
    return tar->glob ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

static void tar_config_free(void *config)
{
    weir_tar_config *tar = config;
    free((void *)tar->glob);
}

static void close_archive(tar_worker *worker)
{
    if (worker->archive)
        archive_read_free(worker->archive);
    weir__local_file_close(&worker->file);
    weir_item_release(&worker->input);
    weir__name_counts_free(&worker->names);
    worker->archive = NULL;
    worker->entry = NULL;
    worker->entry_end = 0;
    worker->num_items = 0;
    worker->contents = (weir_contents){ 0 };
    worker->num_too_large = 0;
    worker->status = WEIR_OK;
    worker->error = (weir_error){ 0 };
    worker->limit = (weir_error){ 0 };
}

static void tar_worker_free(void *self)
{
    tar_worker *worker = self;
    close_archive(worker);
    weir__local_host_free(&worker->host);
    free(worker->block);
    free(worker->label);
}

/* ---- the archive -------------------------------------------------------------------------------------------- */

static int fail_archive(tar_worker *worker, const char *what)
{
    int code = archive_errno(worker->archive);
    const char *text = archive_error_string(worker->archive);
    int status = code == ENOENT || code == ENOTDIR ? WEIR_ENOTFOUND
                 : code == EACCES || code == EPERM ? WEIR_EACCESS
                 : code == ENOMEM                  ? WEIR_ENOMEM
                 : code == EIO                     ? WEIR_EIO
                 : code == ECANCELED               ? WEIR_ESTOPPED
                                                   : WEIR_EDATA;
    char after[48] = "";
    if (worker->entry)
        snprintf(after, sizeof after, ", after %" PRIu64 " item(s)", worker->num_items);
    return weir_error_set(&worker->error, status, -code, "%s%s: %s", what, after,
                          text ? text : "the archive is damaged");
}

static int fail_tar_memory(tar_worker *worker)
{
    return weir_error_set(&worker->error, WEIR_ENOMEM, 0, "out of memory");
}

static int is_tar_interrupted(void *self)
{
    const tar_worker *worker = self;
    return weir_task_should_stop(worker->task);
}

/* libarchive's read and skip. Skipping in a compressed archive unpacks all the data, which may take long: so a stop is
   checked here. */
static la_ssize_t read_block(struct archive *archive, void *self, const void **block)
{
    tar_worker *worker = self;
    int got = weir__local_file_read(&worker->file, worker->block, BLOCK_BYTES);
    *block = worker->block;
    if (got == AVERROR_EOF)
        return 0;
    if (got >= 0)
        return got;
    archive_set_error(archive, got == AVERROR_EXIT ? ECANCELED : AVUNERROR(got), "%s",
                      got == AVERROR_EXIT ? "stopped" : strerror(AVUNERROR(got)));
    return -1;
}

static la_int64_t skip_bytes(struct archive *archive, void *self, la_int64_t num_bytes)
{
    (void)archive;
    tar_worker *worker = self;
    int64_t left_bytes = worker->file_bytes - worker->file.position;
    int64_t skipped = num_bytes < left_bytes ? num_bytes : left_bytes;
    return skipped > 0 && weir__local_file_seek(&worker->file, skipped, SEEK_CUR) >= 0 ? skipped : 0;
}

/* Only built-in filters: for the others libarchive would run an external program. */
static int open_archive(tar_worker *worker, const char *path)
{
    AVIOInterruptCB interrupt = { .callback = is_tar_interrupted, .opaque = worker };
    worker->archive = archive_read_new();
    worker->block = worker->block ? worker->block : malloc(BLOCK_BYTES);
    if (!worker->archive || !worker->block)
        return fail_tar_memory(worker);
    int rc = weir__local_file_open(&worker->file, &worker->host, path, -1, false, interrupt, &worker->error);
    if (rc != WEIR_OK)
        return rc;
    worker->file_bytes = weir__local_file_seek(&worker->file, 0, AVSEEK_SIZE);

    int (*const filters[])(struct archive *) = {
        archive_read_support_filter_gzip, archive_read_support_filter_bzip2, archive_read_support_filter_xz,
        archive_read_support_filter_zstd, archive_read_support_filter_lz4,
    };
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
        (void)filters[i](worker->archive);
    archive_read_support_format_tar(worker->archive);
    archive_read_set_callback_data(worker->archive, worker);
    archive_read_set_read_callback(worker->archive, read_block);
    archive_read_set_skip_callback(worker->archive, skip_bytes);
    return archive_read_open1(worker->archive) == ARCHIVE_OK ? WEIR_OK : fail_archive(worker, "cannot open");
}

/* A skip may seek beyond the end of a truncated archive, which libarchive reports as a normal end. */
static int check_end(tar_worker *worker)
{
    bool is_plain = archive_filter_code(worker->archive, 0) == ARCHIVE_FILTER_NONE;
    if (!is_plain || worker->entry_end <= worker->file_bytes)
        return WEIR_EOF;
    return weir_error_set(&worker->error, WEIR_EDATA, 0,
                          "damaged, after %" PRIu64 " item(s): the archive is truncated within its last file",
                          worker->num_items);
}

static const char *name_of(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname_utf8(entry);
    name = name ? name : archive_entry_pathname(entry); /* NULL if the locale lacks the characters */
    return name ? name : "(a name that cannot be read)";
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Length of the sample's name; 0 = the file belongs to no sample. */
static size_t key_bytes(const char *name)
{
    const char *last = last_part(name);
    size_t last_bytes = strcspn(last, ".");
    return last_bytes ? (size_t)(last - name) + last_bytes : 0;
}

static bool is_wanted(const weir_tar_config *tar, struct archive_entry *entry, const char *name)
{
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
        return false;
    return tar->samples ? key_bytes(name) > 0 : weir_file_name_matches(name, tar->glob);
}

/* Advances to the next header of a file to be read. Sets and returns worker->status. */
static int next_header(tar_worker *worker, const weir_tar_config *tar)
{
    for (;;) {
        if (weir_task_should_stop(worker->task))
            return worker->status = weir_error_set(&worker->error, WEIR_ESTOPPED, 0, "stopped");
        struct archive_entry *entry;
        int rc = archive_read_next_header(worker->archive, &entry);
        if (rc == ARCHIVE_EOF)
            return worker->status = check_end(worker);
        if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
            return worker->status = fail_archive(worker, worker->entry ? "damaged" : "cannot read");
        worker->entry = entry;
        worker->name = name_of(entry);
        if (archive_entry_filetype(entry) == AE_IFREG && worker->num_items == 0)
            weir__contents_add(&worker->contents, worker->name);
        bool has_holes = archive_entry_sparse_count(entry) > 0; /* then its data is smaller than its size */
        worker->entry_end = has_holes ? 0 : archive_read_header_position(worker->archive) + archive_entry_size(entry);
        if (is_wanted(tar, entry, worker->name))
            return worker->status = WEIR_OK;
    }
}

/* ---- files in it -------------------------------------------------------------------------------------------- */

static int read_data(tar_worker *worker, weir_bytes *file)
{
    size_t position = 0;
    while (position < file->size_bytes) {
        if (weir_task_should_stop(worker->task))
            return weir_error_set(&worker->error, WEIR_ESTOPPED, 0, "stopped");
        size_t left_bytes = file->size_bytes - position;
        size_t step_bytes = left_bytes < STEP_BYTES ? left_bytes : STEP_BYTES;
        la_ssize_t got = archive_read_data(worker->archive, file->data + position, step_bytes);
        if (got <= 0) {
            char what[256];
            snprintf(what, sizeof what, "damaged within %.200s", file->name);
            return fail_archive(worker, what);
        }
        position += (size_t)got;
    }
    return WEIR_OK;
}

/*
 * Reads the file of the current header, if it fits into an item that already has held_bytes. WEIR_OK; WEIR_SKIP: it
 * is too large, which is recorded; or the failure.
 */
static int read_file(tar_worker *worker, const weir_tar_config *tar, uint64_t held_bytes, weir_bytes **file)
{
    int64_t size_bytes = archive_entry_size(worker->entry);
    if (size_bytes < 0 || held_bytes > tar->max_bytes || (uint64_t)size_bytes > tar->max_bytes - held_bytes) {
        if (worker->num_too_large++ == 0)
            weir_error_set(&worker->limit, WEIR_ELIMIT, 0,
                           "%.200s was skipped, and maybe others: with its %" PRId64
                           " bytes the item is over the limit of %" PRIu64 "; raise max_bytes",
                           worker->name, size_bytes, tar->max_bytes);
        return WEIR_SKIP;
    }
    *file = weir_bytes_new((size_t)size_bytes, worker->name);
    if (!*file)
        return fail_tar_memory(worker);
    int rc = read_data(worker, *file);
    if (rc != WEIR_OK) {
        weir_bytes_free(*file);
        *file = NULL;
    }
    return rc;
}

/* Adds a file to its sample, at *end: a match goes first, if the first file does not match. */
static void add_to_sample(const weir_tar_config *tar, weir_bytes **sample, weir_bytes ***end, bool *has_match,
                          weir_bytes *file)
{
    bool is_first = !*has_match && weir_file_name_matches(file->name, tar->glob);
    weir_bytes **place = is_first ? sample : *end;
    *has_match |= is_first;
    file->next = *place;
    *place = file;
    if (!file->next)
        *end = &file->next;
}

/* All files of the current header's sample; *sample is NULL if none of them matches. */
static int read_sample(tar_worker *worker, const weir_tar_config *tar, weir_bytes **sample)
{
    size_t num_bytes = key_bytes(worker->name);
    char *key = strndup(worker->name, num_bytes);
    uint64_t held_bytes = 0; /* with names: empty files take memory, too */
    weir_bytes **end = sample;
    bool has_match = false;
    int rc = key ? WEIR_OK : fail_tar_memory(worker);
    while (rc >= 0 && worker->status == WEIR_OK && key_bytes(worker->name) == num_bytes &&
           memcmp(worker->name, key, num_bytes) == 0) {
        weir_bytes *file = NULL;
        rc = read_file(worker, tar, held_bytes, &file);
        if (rc == WEIR_OK) {
            held_bytes += weir_bytes_memory(file);
            add_to_sample(tar, sample, &end, &has_match, file);
        }
        if (rc >= 0)
            next_header(worker, tar);
    }
    free(key);
    if (rc < 0 || worker->status < 0 || !has_match) { /* a sample that may be incomplete is not delivered */
        weir_bytes_free(*sample);
        *sample = NULL;
    }
    worker->num_items += *sample != NULL;
    return rc < 0 ? rc : WEIR_OK;
}

static int read_single(tar_worker *worker, const weir_tar_config *tar, weir_bytes **file)
{
    int rc = read_file(worker, tar, 0, file);
    worker->num_items += rc == WEIR_OK;
    if (rc >= 0)
        next_header(worker, tar);
    return rc < 0 ? rc : WEIR_OK;
}

/* The next item, or NULL at the end; then worker->status is the result of the archive. */
static weir_bytes *next_item(tar_worker *worker, const weir_tar_config *tar)
{
    weir_bytes *bytes = NULL;
    while (worker->status == WEIR_OK && !bytes) {
        int rc = tar->samples ? read_sample(worker, tar, &bytes) : read_single(worker, tar, &bytes);
        if (rc != WEIR_OK)
            worker->status = rc;
    }
    return bytes;
}

/* ---- the stage ---------------------------------------------------------------------------------------------- */

static int set_item(tar_worker *worker, weir_bytes *bytes, const char *path, weir_item *out)
{
    size_t needed = strlen(path) + strlen(bytes->name) + 2;
    if (needed > worker->max_label_bytes) {
        char *grown = realloc(worker->label, needed * 2);
        if (!grown) {
            weir_bytes_free(bytes);
            return fail_tar_memory(worker);
        }
        worker->label = grown;
        worker->max_label_bytes = needed * 2;
    }
    snprintf(worker->label, worker->max_label_bytes, "%s!%s", path, bytes->name);
    *out = (weir_item){ .data = bytes, .release = weir_bytes_release, .size_bytes = weir_bytes_memory(bytes) };
    uint64_t occurrence = weir__name_count(&worker->names, bytes->name);
    uint64_t of_archive = weir_task_identity(worker->task).occurrence; /* it may be in the list twice, too */
    if (occurrence == UINT64_MAX ||
        weir_item_set_address(out, worker->label, (of_archive << 32) + occurrence) != WEIR_OK) {
        weir_item_release(out);
        return fail_tar_memory(worker);
    }
    weir_task_set_number(worker->task, worker->num_items - 1);
    return WEIR_OK;
}

/* The result of the archive's task, after its last item. */
static int end_status(tar_worker *worker, bool has_item, const weir_tar_config *tar)
{
    if (worker->status < 0)
        return worker->status;
    if (worker->num_too_large > 0) {
        worker->error = worker->limit;
        return WEIR_ELIMIT;
    }
    if (worker->num_items == 0)
        return weir__contents_refuse(&worker->contents, tar->glob, "it", &worker->error);
    return has_item ? WEIR_OK : WEIR_SKIP;
}

/* A new archive: its path moves to the worker, so the input is empty in later calls of the same task. */
static void begin_archive(tar_worker *worker, const weir_tar_config *tar, weir_item *in)
{
    close_archive(worker);
    weir_item_move(&worker->input, in);
    worker->status = open_archive(worker, worker->input.data);
    if (worker->status == WEIR_OK)
        next_header(worker, tar);
}

static int tar_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    tar_worker *worker = self;
    const weir_tar_config *tar = weir_task_config(task);
    worker->task = task;
    if (in->data)
        begin_archive(worker, tar, in);
    if (!worker->input.data)
        return weir_task_fail(task, WEIR_EINVAL, 0, "the item has no data: it should be the path of an archive");
    weir_bytes *bytes = next_item(worker, tar);
    int rc = bytes ? set_item(worker, bytes, worker->input.data, out) : WEIR_OK;
    bool has_more = worker->status != WEIR_EOF || worker->num_too_large > 0;
    if (rc == WEIR_OK && bytes && has_more)
        return WEIR_MORE; /* also before a failure, which is reported after this item */
    if (rc == WEIR_OK)
        rc = end_status(worker, bytes, tar);
    if (rc < 0)
        weir_task_fail(task, rc, worker->error.library_code, "%s", worker->error.message);
    close_archive(worker);
    return rc;
}

const weir_op weir_tar_read = {
    .name = "tar",
    .takes = WEIR_TYPE_TEXT,
    .makes = WEIR_TYPE_BYTES,
    .config_size = sizeof(weir_tar_config),
    .config_init = tar_config_init,
    .config_free = tar_config_free,
    .worker_size = sizeof(tar_worker),
    .run = tar_run,
    .worker_free = tar_worker_free,
};
