#include "stats/export/trace_output.h"

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

#include <weir/output.h>

#include "common/gzip_comment.h"
#include "common/replacement.h"

struct weir_trace_output {
    char *path, *old_path;
    char *new_path; /* hidden, of a file that does not have its name yet; NULL = it has none */
    bool is_placed; /* it has its name */
    bool is_live, force, is_compressed, has_events;
    const weir_trace_text *head;
    uint64_t max_bytes;
    int file; /* -1 = none */
    int64_t size;
    int64_t begin;    /* where the events after the head begin */
    int64_t old_size; /* of the older file; 0 = there is none */
    int failure;
};

/* ---- writing ------------------------------------------------------------------------------------------------- */

/* Replaces the text by a gzip member. The first one says what the file is (see weir/output.h). */
static int pack_text(weir_trace_text *text, bool is_first)
{
#ifdef WEIR_HAVE_ZLIB
    z_stream stream = { 0 };
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return ENOMEM;
    gz_header header = { .comment = (Bytef *)WEIR__TRACE_COMMENT, .os = 255 };
    if (is_first)
        deflateSetHeader(&stream, &header);
    weir_trace_text packed = { .room = deflateBound(&stream, text->length) };
    packed.data = malloc(packed.room);
    stream.next_in = (unsigned char *)text->data;
    stream.avail_in = (uInt)text->length;
    stream.next_out = (unsigned char *)packed.data;
    stream.avail_out = packed.data ? (uInt)packed.room : 0;
    int failure = deflate(&stream, Z_FINISH) == Z_STREAM_END ? 0 : ENOMEM;
    packed.length = stream.total_out;
    deflateEnd(&stream);
    weir__trace_text_free(text);
    *text = packed;
    return failure;
#else
    (void)text, (void)is_first;
    return ENOTSUP;
#endif
}

/* After a failure, the file is as before. */
static int append(weir_trace_output *output, const char *prefix, const char *data, size_t length)
{
    weir_trace_text text = { 0 };
    weir__trace_puts(&text, prefix);
    weir__trace_put(&text, data, length);
    int failure = text.no_memory ? ENOMEM : output->is_compressed ? pack_text(&text, output->size == 0) : 0;
    if (failure == 0)
        failure = weir__trace_text_write(&text, output->file, output->size);
    if (failure == 0)
        output->size += (int64_t)text.length;
    else if (ftruncate(output->file, output->size) != 0)
        failure = errno;
    weir__trace_text_free(&text);
    return failure;
}

/* The bracket and the head. The Perfetto UI recognises a compressed file by the first bytes of its first member, "[{". */
static int begin_file(weir_trace_output *output)
{
    output->file = weir__part_create(output->path, &output->new_path);
    output->is_placed = false;
    output->size = 0;
    int failure = output->file < 0 ? errno : append(output, "[\n", output->head->data, output->head->length - 2);
    output->begin = output->size;
    return failure;
}

/* The new file gets its name. */
static int place_file(weir_trace_output *output)
{
    /* Another output of the program may have got this name since it was opened. */
    const weir_output_rules rules = { .force = output->force };
    if (weir_output_check(output->path, WEIR_OUTPUT_TRACE, &rules, NULL) != WEIR_OK)
        return EEXIST;
    int failure = weir__part_place(output->file, output->new_path, output->path);
    if (failure)
        return failure;
    free(output->new_path);
    output->new_path = NULL;
    output->is_placed = true;
    return 0;
}

int weir__trace_output_write(weir_trace_output *output, const weir_trace_text *events)
{
    if (output->failure || events->length == 0)
        return output->failure;
    output->failure = append(output, ",\n", events->data, events->length - 2);
    output->has_events = true;
    if (!output->is_placed && output->is_live) {
        int failure = place_file(output);
        output->failure = output->failure ? output->failure : failure;
    }
    return output->failure;
}

/* ---- the limit ----------------------------------------------------------------------------------------------- */

bool weir__trace_output_is_full(const weir_trace_output *output, size_t length)
{
    return output->max_bytes && output->size > output->begin &&
           (uint64_t)output->size + length / (output->is_compressed ? 8 : 1) > output->max_bytes / 2;
}

/* At each moment there is a file at the path, if the file system has hard links. */
static int begin_next(weir_trace_output *output)
{
    close(output->file);
    output->old_size = output->size;
    int failure = begin_file(output);
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
        failure = length < 0
                      ? errno
                      : weir__trace_text_write(&(weir_trace_text){ block, (size_t)length, 0, false }, older, to);
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
    if (output->new_path)
        unlink(output->new_path);
    free(output->new_path);
    free(output->path);
    free(output->old_path);
    free(output);
}

int weir__trace_output_open(const char *path, const weir_trace_text *head, uint64_t max_bytes, bool is_live,
                            bool force, weir_trace_output **opened)
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
    output->force = force;
    output->is_compressed = length > 3 && strcmp(path + length - 3, ".gz") == 0;
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

int weir__trace_output_close(weir_trace_output *output, int has_failed)
{
    if (!output)
        return 0;
    int failure = output->failure ? output->failure : has_failed;
    if (failure == 0)
        failure = append(output, "", "\n]\n", 3);
    if (failure == 0 && output->old_size)
        failure = join_files(output);
    if (failure == 0 && !output->is_placed && output->has_events)
        failure = place_file(output);
    free_output(output);
    return failure;
}
