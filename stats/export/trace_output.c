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
    int file; /* -1 = none */
    int64_t size;
    int64_t begin;          /* where the events after the head begin */
    int64_t old_size;       /* of the older file; 0 = there is none */
    weir_trace_text packed; /* of one write */
    int failure;
    bool compressed, stream_made;
#ifdef WEIR_HAVE_ZLIB
    z_stream stream;
#endif
};

/* ---- writing ------------------------------------------------------------------------------------------------- */

#ifdef WEIR_HAVE_ZLIB
/* Appends the text to what will be written. ends: of the gzip member; the next text begins another one. */
static int pack_text(weir_trace_output *output, const char *data, size_t length, bool ends)
{
    z_stream *stream = &output->stream;
    unsigned char block[16384];
    int code = Z_OK;
    if (!output->stream_made &&
        deflateInit2(stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return ENOMEM;
    output->stream_made = true;
    stream->next_in = (unsigned char *)(uintptr_t)data;
    stream->avail_in = (uInt)length;
    do {
        stream->next_out = block;
        stream->avail_out = sizeof block;
        code = deflate(stream, ends ? Z_FINISH : Z_SYNC_FLUSH);
        weir__trace_put(&output->packed, (const char *)block, sizeof block - stream->avail_out);
    } while (code == Z_OK && stream->avail_out == 0);
    return ends && deflateReset(stream) != Z_OK ? EIO : 0;
}
#endif

static int add_output(weir_trace_output *output, const char *data, size_t length, bool ends)
{
#ifdef WEIR_HAVE_ZLIB
    if (output->compressed)
        return pack_text(output, data, length, ends);
#endif
    (void)ends;
    weir__trace_put(&output->packed, data, length);
    return output->compressed ? ENOTSUP : 0;
}

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

/* Appends what has been added; after a failure, the file is as before. */
static int write_packed(weir_trace_output *output)
{
    weir_trace_text *packed = &output->packed;
    int failure = packed->no_memory ? ENOMEM : write_all(output->file, packed->data, packed->length, output->size);
    if (failure == 0)
        output->size += (int64_t)packed->length;
    else if (ftruncate(output->file, output->size) != 0)
        failure = errno;
    packed->length = 0;
    packed->no_memory = false;
    return failure;
}

/* The bracket and the head. They are a gzip member of their own: the Perfetto UI recognises a compressed file by the
   first bytes of its first member, "[{", and joining two files leaves it out of the second one. */
static int begin_file(weir_trace_output *output)
{
    output->file = weir__create_beside(output->path, &output->new_path);
    output->size = 0;
    if (output->file < 0)
        return errno;
    int failure = add_output(output, "[\n", 2, false);
    if (failure == 0)
        failure = add_output(output, output->head->data, output->head->length - 2, true);
    if (failure == 0)
        failure = write_packed(output);
    output->begin = output->size;
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

int weir__trace_output_write(weir_trace_output *output, const weir_trace_text *events)
{
    if (output->failure || events->length == 0)
        return output->failure;
    output->failure = add_output(output, ",\n", 2, false);
    if (output->failure == 0)
        output->failure = add_output(output, events->data, events->length - 2, false);
    if (output->failure == 0)
        output->failure = write_packed(output);
    output->has_events = true;
    if (output->new_path && output->is_live) {
        int failure = place_file(output);
        output->failure = output->failure ? output->failure : failure;
    }
    return output->failure;
}

/* ---- the limit ----------------------------------------------------------------------------------------------- */

bool weir__trace_output_is_full(const weir_trace_output *output, size_t length)
{
    return output->max_bytes && output->size > output->begin &&
           (uint64_t)output->size + length / (output->compressed ? 8 : 1) > output->max_bytes / 2;
}

/* At each moment there is a file at the path, if the file system has hard links. */
static int begin_next(weir_trace_output *output)
{
    int failure = add_output(output, "", 0, true);
    if (failure == 0)
        failure = write_packed(output);
    close(output->file);
    output->file = -1;
    output->old_size = output->size;
    if (failure == 0 && (failure = begin_file(output)) != 0)
        remove_new_file(output);
    if (failure)
        return failure;
    unlink(output->old_path);
    if (link(output->path, output->old_path) != 0 && rename(output->path, output->old_path) != 0)
        return errno;
    return place_file(output);
}

int weir__trace_output_turn_over(weir_trace_output *output)
{
    return output->failure = output->failure ? output->failure : begin_next(output);
}

/* Appends the newer file to the older one, which then takes its place. */
static int join_files(weir_trace_output *output)
{
    enum { BLOCK = 1 << 16 };
    char *block = malloc(BLOCK);
    int older = open(output->old_path, O_RDWR | O_CLOEXEC);
    int failure = !block ? ENOMEM : older < 0 ? errno : 0;
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

static void free_output(weir_trace_output *output)
{
    if (output->file >= 0)
        close(output->file);
#ifdef WEIR_HAVE_ZLIB
    if (output->stream_made)
        deflateEnd(&output->stream);
#endif
    weir__trace_text_free(&output->packed);
    free(output->path);
    free(output->old_path);
    remove_new_file(output);
    free(output);
}

int weir__trace_output_open(const char *path, const weir_trace_text *head, uint64_t max_bytes, bool is_live,
                            weir_trace_output **opened)
{
    struct stat info;
    *opened = NULL;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    weir_trace_output *output = calloc(1, sizeof *output);
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
    bool has_names = output->path && output->old_path && !head->no_memory;
    int failure = has_names ? begin_file(output) : ENOMEM;
    if (failure)
        free_output(output);
    else
        *opened = output;
    return failure;
}

const char *weir__trace_output_path(const weir_trace_output *output)
{
    return output->path;
}

void weir__trace_output_abandon(weir_trace_output *output)
{
    if (output)
        output->has_events = false;
}

int weir__trace_output_close(weir_trace_output *output)
{
    if (!output)
        return 0;
    if (output->failure == 0)
        output->failure = add_output(output, "\n]\n", 3, true);
    if (output->failure == 0)
        output->failure = write_packed(output);
    if (output->failure == 0 && output->old_size)
        output->failure = join_files(output);
    if (output->new_path && output->has_events && output->failure == 0)
        output->failure = place_file(output);
    int failure = output->failure;
    free_output(output);
    return failure;
}
