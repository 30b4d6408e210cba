#include "tar_members.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/clock.h>

enum { BLOCK = 512, MAX_EXTENDED = 1 << 20 };

/* Of a header. */
enum {
    AT_NAME = 0,
    NAME = 100,
    AT_SIZE = 124,
    AT_SUM = 148,
    AT_TYPE = 156,
    AT_MAGIC = 257,
    AT_PREFIX = 345,
    PREFIX = 155
};

int weir__tar_members_open(weir_tar_members *tar, const char *path, weir_error *error)
{
    struct stat file;
    *tar = (weir_tar_members){ .file = fopen(path, "rbe") };
    if (tar->file && fstat(fileno(tar->file), &file) == 0) {
        tar->size_bytes = file.st_size;
        tar->mtime_ns = file.st_mtim.tv_sec * WEIR_SECOND + file.st_mtim.tv_nsec;
        return WEIR_OK;
    }
    int status = errno == ENOENT || errno == ENOTDIR ? WEIR_ENOTFOUND : errno == EACCES ? WEIR_EACCESS : WEIR_EIO;
    return weir_error_set(error, status, -errno, "cannot open: %s", strerror(errno));
}

void weir__tar_members_close(weir_tar_members *tar)
{
    if (tar->file)
        fclose(tar->file);
    free(tar->name);
    *tar = (weir_tar_members){ 0 };
}

/* Octal digits; or, for large numbers, base 256 with the highest bit set. -1 = not a number. */
static int64_t number_at(const unsigned char *text, size_t length)
{
    int64_t number = 0;
    size_t i = 0;
    if (text[0] & 0x80) {
        for (number = text[0] & 0x3f, i = 1; i < length; i++) {
            if (number >> 54)
                return -1;
            number = number << 8 | text[i];
        }
        return number;
    }
    while (i < length && text[i] == ' ')
        i++;
    for (; i < length && text[i] >= '0' && text[i] <= '7'; i++)
        number = number << 3 | (text[i] - '0');
    return i == length || text[i] == ' ' || text[i] == '\0' ? number : -1;
}

static bool is_header(const unsigned char *header)
{
    int64_t sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= AT_SUM && i < AT_SUM + 8 ? ' ' : header[i];
    return number_at(header + AT_SUM, 8) == sum;
}

static int read_at(weir_tar_members *tar, int64_t position, void *to, size_t num_bytes, weir_error *error)
{
    if (fseeko(tar->file, position, SEEK_SET) == 0 && fread(to, 1, num_bytes, tar->file) == num_bytes)
        return WEIR_OK;
    return ferror(tar->file) ? weir_error_set(error, WEIR_EIO, -errno, "cannot read: %s", strerror(errno))
                             : weir_error_set(error, WEIR_EDATA, 0, "the archive is truncated");
}

/* The data of an extended header, terminated; NULL = a failure. */
static char *read_text(weir_tar_members *tar, int64_t position, int64_t size, weir_error *error)
{
    char *text = size <= MAX_EXTENDED ? malloc((size_t)size + 1) : NULL;
    if (!text) {
        bool is_large = size > MAX_EXTENDED;
        weir_error_set(error, is_large ? WEIR_EDATA : WEIR_ENOMEM, 0, "%s",
                       is_large ? "damaged: a header is too large" : "out of memory");
        return NULL;
    }
    text[size] = '\0';
    if (read_at(tar, position, text, (size_t)size, error) == WEIR_OK)
        return text;
    free(text);
    return NULL;
}

/* From extended headers; for the next member. */
typedef struct extension {
    char *name;   /* NULL = as in the header */
    int64_t size; /* -1 = as in the header */
    bool is_sparse;
} extension;

/* Records of a POSIX extended header: "LENGTH KEY=VALUE\n". False = out of memory. */
static bool read_records(const char *text, int64_t size, extension *to)
{
    for (const char *end = text + size; text < end;) {
        char *key;
        long length = strtol(text, &key, 10);
        if (length <= 0 || length > end - text || *key != ' ' || text[length - 1] != '\n' || key >= text + length)
            return true;
        size_t left = (size_t)(text + length - 2 - key++);
        if (left > 5 && strncmp(key, "path=", 5) == 0) {
            free(to->name);
            if (!(to->name = strndup(key + 5, left - 5)))
                return false;
        } else if (left > 5 && strncmp(key, "size=", 5) == 0) {
            to->size = strtoll(key + 5, NULL, 10);
        }
        to->is_sparse |= strncmp(key, "GNU.sparse.", 11) == 0;
        text += length;
    }
    return true;
}

static int read_extension(weir_tar_members *tar, char type, int64_t offset, int64_t size, extension *to,
                          weir_error *error)
{
    char *text = read_text(tar, offset, size, error);
    if (!text)
        return error->status;
    bool is_kept = true;
    if (type == 'x') {
        is_kept = read_records(text, size, to);
    } else {
        free(to->name);
        to->name = strdup(text);
        is_kept = to->name;
    }
    free(text);
    return is_kept ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

static char *name_in(const unsigned char *header)
{
    const char *name = (const char *)header + AT_NAME, *prefix = (const char *)header + AT_PREFIX;
    char *whole = NULL;
    bool has_prefix = memcmp(header + AT_MAGIC, "ustar", 6) == 0 && *prefix;
    int length =
        has_prefix ? asprintf(&whole, "%.*s/%.*s", PREFIX, prefix, NAME, name) : asprintf(&whole, "%.*s", NAME, name);
    return length < 0 ? NULL : whole;
}

/* Reads and checks the next header. WEIR_EOF: the end of the archive. */
static int read_header(weir_tar_members *tar, unsigned char header[BLOCK], weir_error *error)
{
    bool is_first = tar->next_header == 0;
    if (tar->next_header >= tar->size_bytes && !is_first)
        return WEIR_EOF; /* without the usual two empty blocks */
    int rc = read_at(tar, tar->next_header, header, BLOCK, error);
    if (rc != WEIR_OK)
        return rc;
    if (header[0] == '\0' && number_at(header + AT_SUM, 8) == 0)
        return WEIR_EOF;
    if (is_header(header))
        return WEIR_OK;
    return weir_error_set(error, WEIR_EDATA, 0,
                          is_first ? "not a plain tar archive; unpack a compressed one first"
                                   : "damaged: what follows is not a tar header");
}

/* GNU's sparse files: more blocks of their map follow the header, and are not part of the size. */
static int skip_maps(weir_tar_members *tar, const unsigned char header[BLOCK], weir_error *error)
{
    enum { AT_MORE_IN_HEADER = 482, AT_MORE = 504 };
    unsigned char map[BLOCK] = { 0 };
    int rc = WEIR_OK;
    for (bool more = header[AT_MORE_IN_HEADER]; more && rc == WEIR_OK; tar->offset += BLOCK) {
        rc = read_at(tar, tar->offset, map, BLOCK, error);
        more = rc == WEIR_OK && map[AT_MORE];
    }
    return rc;
}

/* Goes to the next member of any type. WEIR_MORE: it was an extended header. */
static int next_of_any_type(weir_tar_members *tar, extension *given, char *type, weir_error *error)
{
    unsigned char header[BLOCK];
    int rc = read_header(tar, header, error);
    if (rc != WEIR_OK)
        return rc;
    *type = (char)header[AT_TYPE];
    bool is_extension = strchr("xLgK", *type) && *type;
    tar->size = given->size >= 0 && !is_extension ? given->size : number_at(header + AT_SIZE, 12);
    tar->offset = tar->next_header + BLOCK;
    if (*type == 'S' && (rc = skip_maps(tar, header, error)) != WEIR_OK)
        return rc;
    if (tar->size < 0 || tar->size > tar->size_bytes - tar->offset)
        return weir_error_set(error, WEIR_EDATA, 0, "the archive is truncated within its last file");
    tar->next_header = tar->offset + (tar->size + BLOCK - 1) / BLOCK * BLOCK;
    if (*type == 'x' || *type == 'L')
        rc = read_extension(tar, *type, tar->offset, tar->size, given, error);
    if (rc != WEIR_OK || is_extension)
        return rc == WEIR_OK ? WEIR_MORE : rc;
    tar->name = given->name ? given->name : name_in(header);
    given->name = NULL;
    return tar->name ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

int weir__tar_members_next(weir_tar_members *tar, weir_error *error)
{
    for (;;) {
        extension given = { .size = -1 };
        char type = '\0';
        int rc;
        free(tar->name);
        tar->name = NULL;
        while ((rc = next_of_any_type(tar, &given, &type, error)) == WEIR_MORE)
            ;
        free(given.name);
        bool is_file = (type == '0' || type == '\0' || type == '7') && !given.is_sparse;
        if (rc != WEIR_OK || is_file)
            return rc;
    }
}
