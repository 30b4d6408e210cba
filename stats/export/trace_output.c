#include "trace_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef WEIR_HAVE_ZLIB
#include <zlib.h>
#endif

#include "replacement.h"

struct weir_trace_output {
    char *path, *old_path;
    char *new_path; /* of a file that does not have its name yet; NULL = none */
    bool is_live, has_events;
    const weir_trace_text *head;
    uint64_t max_bytes;
    bool compressed;
    int file;               /* -1 = none */
    int64_t size;           /* of the file without its end */
    int64_t begin;          /* where the events begin */
    int64_t old_size;       /* of the older file, in the same way; 0 = there is none */
    weir_trace_text packed; /* of one write */
    int failure;
};

/* The last event: without a comma, and true of every file. */
static const char end_text[] = "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"ts\":0,\"name\":\"weir_end\",\"args\":{}}\n]\n";

static const weir_trace_text nothing = { .data = "" };

/* ---- compression --------------------------------------------------------------------------------------------- */

#ifdef WEIR_HAVE_ZLIB
/* Appends a gzip member with these texts. */
static int pack(weir_trace_output *output, const weir_trace_text *first, const weir_trace_text *second)
{
    z_stream stream = { 0 };
    weir_trace_text *packed = &output->packed;
    unsigned char block[16384];
    int code = deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
    for (int i = 0; i < 2 && code == Z_OK; i++) {
        const weir_trace_text *text = i ? second : first;
        stream.next_in = (unsigned char *)text->data;
        stream.avail_in = (uInt)text->length;
        do {
            stream.next_out = block;
            stream.avail_out = sizeof block;
            code = deflate(&stream, i ? Z_FINISH : Z_NO_FLUSH);
            weir_trace_put(packed, (const char *)block, sizeof block - stream.avail_out);
        } while (code == Z_OK && stream.avail_out == 0);
    }
    deflateEnd(&stream);
    return code == Z_STREAM_END ? 0 : ENOMEM;
}
#else
static int pack(weir_trace_output *output, const weir_trace_text *first, const weir_trace_text *second)
{
    (void)output, (void)first, (void)second;
    return ENOTSUP;
}
#endif

/* Appends the two texts to what will be written. */
static int add(weir_trace_output *output, const weir_trace_text *first, const weir_trace_text *second)
{
    if (output->compressed && first->length + second->length > 0)
        return pack(output, first, second);
    weir_trace_put(&output->packed, first->data, first->length);
    weir_trace_put(&output->packed, second->data, second->length);
    return 0;
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

static int write_all(int file, const char *data, size_t length, int64_t at)
{
    while (length > 0) {
        ssize_t written = pwrite(file, data, length, at);
        if (written < 0 && errno != EINTR)
            return errno;
        if (written <= 0)
            continue;
        data += written;
        length -= (size_t)written;
        at += written;
    }
    return 0;
}

/* Writes at the end of the events; the first `kept` bytes stay there. A file never has anything behind its bracket. */
static int put_packed(weir_trace_output *output, size_t kept)
{
    weir_trace_text *packed = &output->packed;
    int failure = packed->no_memory ? ENOMEM : 0;
    if (failure == 0 && ftruncate(output->file, output->size) != 0)
        failure = errno;
    if (failure == 0)
        failure = write_all(output->file, packed->data, packed->length, output->size);
    if (failure == 0)
        output->size += (int64_t)kept;
    packed->length = 0;
    packed->no_memory = false;
    return failure;
}

/* Creates a file beside the path. */
static int begin_file(weir_trace_output *output)
{
    static const weir_trace_text bracket = { .data = "[\n", .length = 2 };
    /* The Perfetto UI recognises a compressed file by the first bytes of its first member: "[{". */
    const char *line_end = output->head->length ? memchr(output->head->data, '\n', output->head->length) : NULL;
    weir_trace_text first = { .data = output->head->data };
    weir_trace_text others = { .data = output->head->data, .length = output->head->length };
    if (line_end) {
        first.length = (size_t)(line_end - first.data) + 1;
        others.data += first.length;
        others.length -= first.length;
    }
    output->file = weir__create_beside(output->path, &output->new_path);
    output->size = 0;
    if (output->file < 0)
        return errno;
    int failure = add(output, &bracket, &first);
    output->begin = (int64_t)output->packed.length;
    if (failure == 0)
        failure = add(output, &others, &nothing);
    return failure ? failure : put_packed(output, output->packed.length);
}

static int write_end(weir_trace_output *output, const weir_trace_text *events, const weir_trace_text *open)
{
    weir_trace_text end = { .data = (char *)(uintptr_t)end_text, .length = sizeof end_text - 1 };
    int failure = add(output, events, &nothing);
    size_t kept = output->packed.length;
    if (failure == 0)
        failure = add(output, open, &end);
    if (failure == 0)
        return put_packed(output, kept);
    output->packed.length = 0;
    return failure;
}

/* The new file gets its name. */
static int place_file(weir_trace_output *output)
{
    if (rename(output->new_path, output->path) != 0)
        return errno;
    free(output->new_path);
    output->new_path = NULL;
    return 0;
}

static void remove_new_file(weir_trace_output *output)
{
    if (output->new_path)
        unlink(output->new_path);
    free(output->new_path);
    output->new_path = NULL;
}

/* The file becomes the older one. At each moment there is a file at the path, if the file system has hard links. */
static int turn_over(weir_trace_output *output)
{
    close(output->file);
    output->old_size = output->size;
    int failure = begin_file(output);
    if (failure) {
        remove_new_file(output);
        return failure;
    }
    unlink(output->old_path);
    if (link(output->path, output->old_path) != 0 && rename(output->path, output->old_path) != 0)
        return errno;
    return place_file(output);
}

int weir_trace_output_write(weir_trace_output *output, const weir_trace_text *events, const weir_trace_text *open)
{
    if (output->failure == 0 && output->max_bytes && output->size > output->begin &&
        (uint64_t)output->size + events->length / (output->compressed ? 8 : 1) > output->max_bytes / 2)
        output->failure = turn_over(output);
    if (output->failure == 0 && (output->failure = write_end(output, events, open)) != 0)
        write_end(output, &nothing, &nothing); /* in the room of what was not written; if this fails, it is cut off */
    output->has_events = true;
    if (output->new_path && output->is_live) {
        int failure = place_file(output);
        output->failure = output->failure ? output->failure : failure;
    }
    return output->failure;
}

/* Appends the newer file to the older one, which then takes its place. */
static int join(weir_trace_output *output)
{
    enum { BLOCK = 1 << 16 };
    char *block = malloc(BLOCK);
    int older = open(output->old_path, O_RDWR | O_CLOEXEC);
    int failure = !block ? ENOMEM : older < 0 || ftruncate(older, output->old_size) != 0 ? errno : 0;
    int64_t from = output->begin, to = output->old_size;
    ssize_t length;
    while (failure == 0 && (length = pread(output->file, block, BLOCK, from)) != 0) {
        failure = length < 0 ? errno : write_all(older, block, (size_t)length, to);
        from += length;
        to += length;
    }
    if (failure == 0 && rename(output->old_path, output->path) != 0)
        failure = errno;
    if (older >= 0)
        close(older);
    free(block);
    return failure;
}

/* ---- opening and closing ------------------------------------------------------------------------------------- */

int weir_trace_output_open(const char *path, const weir_trace_text *head, uint64_t max_bytes, bool is_live,
                           weir_trace_output **opened)
{
    struct stat info;
    *opened = NULL;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    weir_trace_output *output = *opened = calloc(1, sizeof *output);
    if (!output)
        return ENOMEM;
    size_t length = strlen(path);
    output->file = -1;
    output->head = head;
    output->max_bytes = max_bytes;
    output->is_live = is_live;
    output->compressed = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    output->path = strdup(path);
    if (asprintf(&output->old_path, "%s.old", path) < 0)
        output->old_path = NULL;
    output->failure = output->path && output->old_path ? begin_file(output) : ENOMEM;
    int failure = output->failure ? output->failure : write_end(output, &nothing, &nothing);
    if (failure == 0)
        return 0;
    weir_trace_output_close(output);
    *opened = NULL;
    return failure;
}

const char *weir_trace_output_path(const weir_trace_output *output)
{
    return output->path;
}

void weir_trace_output_abandon(weir_trace_output *output)
{
    if (output)
        output->has_events = false;
}

int weir_trace_output_close(weir_trace_output *output)
{
    if (!output)
        return 0;
    if (output->failure == 0 && output->old_size)
        output->failure = join(output);
    if (output->new_path && output->has_events && output->failure == 0)
        output->failure = place_file(output);
    remove_new_file(output);
    int failure = output->failure;
    if (output->file >= 0)
        close(output->file);
    weir_trace_text_free(&output->packed);
    free(output->path);
    free(output->old_path);
    free(output);
    return failure;
}
