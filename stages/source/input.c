/* Opening paths, URLs and memory. FFmpeg knows the first two; memory is an AVIOContext of ours over the bytes. */
#include "input.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ffmpeg_log.h"

enum { AVIO_BUFFER_BYTES = 32 << 10 };

static weir_bytes *bytes_of(const weir_item *item)
{
    return strcmp(item->type, WEIR_TYPE_BYTES) == 0 ? item->data : NULL;
}

const char *weir_input_choose(weir_input *input, const weir_item *item)
{
    input->bytes = bytes_of(item);
    if (!input->bytes)
        return item->data;
    return input->bytes->name ? input->bytes->name : "(memory)";
}

void weir_input_take_sidecars(const weir_item *item, weir_bytes **sidecars, size_t *memory_bytes)
{
    weir_bytes *bytes = bytes_of(item);
    *sidecars = bytes ? bytes->next : NULL;
    *memory_bytes += weir_bytes_memory(*sidecars);
    if (bytes)
        bytes->next = NULL;
}

static int fail_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

/* ---- paths and URLs ----------------------------------------------------------------------------------------- */

/*
 * What FFmpeg is to open, in input->url. A path gets "file:" in front, as it may have a colon in it, which would make it
 * a URL of an unknown protocol. Only a regular file (or a disk) is opened: opening a pipe blocks until somebody writes to
 * it, and nothing could interrupt that.
 */
static int set_url(weir_input *input, const char *path, bool *is_local, weir_error *error)
{
    struct stat file;
    *is_local = stat(path, &file) == 0;
    if (*is_local && S_ISDIR(file.st_mode))
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "this is a folder, not a file");
    if (*is_local && !S_ISREG(file.st_mode) && !S_ISBLK(file.st_mode))
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "this is no regular file");

    size_t needed = strlen("file:") + strlen(path) + 1;
    if (needed > input->max_url_bytes) {
        char *grown = realloc(input->url, needed * 2);
        if (!grown)
            return fail_memory(error);
        input->url = grown;
        input->max_url_bytes = needed * 2;
    }
    snprintf(input->url, input->max_url_bytes, "%s%s", *is_local ? "file:" : "", path);
    return WEIR_OK;
}

/* FFmpeg's own word for the longest wait of one read or write, which its protocols pass down to each other. */
static int set_timeout(const weir_input *input, AVDictionary **options, weir_error *error)
{
    enum { NS_PER_US = 1000 };
    if (input->timeout_ns <= 0)
        return WEIR_OK;
    int rc = av_dict_set_int(options, "rw_timeout", FFMAX(input->timeout_ns / NS_PER_US, 1), 0);
    return rc < 0 ? fail_memory(error) : WEIR_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------- */

static int memory_read(void *self, uint8_t *to, int max_bytes)
{
    weir_input *input = self;
    size_t left_bytes = input->bytes->size_bytes - input->position;
    size_t num_bytes = left_bytes < (size_t)max_bytes ? left_bytes : (size_t)max_bytes;
    if (num_bytes == 0)
        return AVERROR_EOF;
    memcpy(to, input->bytes->data + input->position, num_bytes);
    input->position += num_bytes;
    return (int)num_bytes;
}

static int64_t memory_seek(void *self, int64_t offset, int whence)
{
    weir_input *input = self;
    int64_t size_bytes = (int64_t)input->bytes->size_bytes;
    int64_t from;
    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE: return size_bytes;
    case SEEK_SET: from = 0; break;
    case SEEK_CUR: from = (int64_t)input->position; break;
    case SEEK_END: from = size_bytes; break;
    default: return AVERROR(EINVAL);
    }
    if (offset < -from || offset > size_bytes - from)
        return AVERROR(EINVAL);
    input->position = (size_t)(from + offset);
    return (int64_t)input->position;
}

/* Containers that name other files (playlists, references) get none: the bytes are all there is. */
static int refuse_other_file(AVFormatContext *format, AVIOContext **avio, const char *url, int flags,
                             AVDictionary **options)
{
    (void)flags;
    (void)options;
    av_log(format, AV_LOG_ERROR, "a file in memory refers to another one, which is not opened: %s\n", url);
    *avio = NULL;
    return AVERROR(EPERM);
}

static int open_memory(weir_input *input, AVFormatContext *format, weir_error *error)
{
    if (input->bytes->size_bytes == 0)
        return weir_error_set(error, WEIR_EDATA, AVERROR_EOF, "cannot open: the file is empty");
    uint8_t *buffer = av_malloc(AVIO_BUFFER_BYTES);
    input->position = 0;
    if (buffer)
        input->memory = avio_alloc_context(buffer, AVIO_BUFFER_BYTES, 0, input, memory_read, NULL, memory_seek);
    if (!input->memory) {
        av_free(buffer);
        return fail_memory(error);
    }
    format->pb = input->memory;
    format->io_open = refuse_other_file;
    return WEIR_OK;
}

void weir_input_close(weir_input *input)
{
    if (input->memory)
        av_freep(&input->memory->buffer);
    avio_context_free(&input->memory);
}

void weir_input_free(weir_input *input)
{
    weir_input_close(input);
    free(input->url);
    input->url = NULL;
    input->max_url_bytes = 0;
}

/* ---- both --------------------------------------------------------------------------------------------------- */

/* FFmpeg goes by the name where there is nothing in it, and misses what that kind of file begins with. */
static bool is_empty(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0;
}

static int fail_open(const weir_input *input, const char *path, bool is_local, int averror, weir_error *error)
{
    if (is_local && !input->bytes && is_empty(path))
        return weir_error_set(error, WEIR_EDATA, averror, "cannot open: the file is empty");
    if (averror == AVERROR_EOF)
        return weir_error_set(error, WEIR_EDATA, averror, "cannot open: the file is empty or ends within its header");
    if (averror == AVERROR(ETIMEDOUT) && !is_local)
        return weir_error_set(error, WEIR_ETIMEDOUT, averror,
                              "cannot open: no data for %.3g s; if it needs longer, raise io_timeout_ns",
                              (double)input->timeout_ns / 1e9);
    return weir_ffmpeg_error(error, averror, "cannot open");
}

int weir_input_open(weir_input *input, const char *path, AVIOInterruptCB interrupt, AVFormatContext **format,
                    weir_error *error)
{
    AVDictionary *options = NULL;
    bool is_local = true;
    int rc = WEIR_OK;
    *format = avformat_alloc_context();
    if (!*format)
        return fail_memory(error);
    (*format)->interrupt_callback = interrupt;

    if (input->bytes)
        rc = open_memory(input, *format, error);
    else
        rc = set_url(input, path, &is_local, error);
    if (rc == WEIR_OK && !is_local)
        rc = set_timeout(input, &options, error);
    if (rc == WEIR_OK) {
        int averror =
            avformat_open_input(format, input->bytes ? path : input->url, NULL, &options); /* frees it, too */
        rc = averror < 0 ? fail_open(input, path, is_local, averror, error) : WEIR_OK;
    }
    av_dict_free(&options);
    if (rc != WEIR_OK)
        avformat_close_input(format);
    return rc;
}

/* ---- a whole file ------------------------------------------------------------------------------------------- */

static int fail_too_large(uint64_t max_bytes, weir_error *error)
{
    return weir_error_set(error, WEIR_ELIMIT, 0, "the file is over the limit of %" PRIu64 " bytes", max_bytes);
}

/* Room for the bytes that are there already, and more. */
static int grow(weir_bytes **bytes, size_t used_bytes, size_t size_bytes, weir_error *error)
{
    weir_bytes *grown = weir_bytes_new(size_bytes, NULL);
    if (!grown)
        return fail_memory(error);
    if (*bytes)
        memcpy(grown->data, (*bytes)->data, used_bytes);
    weir_bytes_free(*bytes);
    *bytes = grown;
    return WEIR_OK;
}

/* What a server says of the size may be wrong, or nothing; one byte more than that shows the end. */
static int read_all(AVIOContext *avio, uint64_t max_bytes, weir_bytes **bytes, weir_error *error)
{
    enum { UNKNOWN_BYTES = 1 << 20 };
    int64_t told_bytes = avio_size(avio);
    size_t used_bytes = 0;
    size_t room_bytes = told_bytes > 0 && (uint64_t)told_bytes <= max_bytes ? (size_t)told_bytes + 1 : UNKNOWN_BYTES;
    if (told_bytes > 0 && (uint64_t)told_bytes > max_bytes)
        return fail_too_large(max_bytes, error);
    for (;;) {
        int rc = *bytes && used_bytes < room_bytes ? WEIR_OK : grow(bytes, used_bytes, room_bytes, error);
        if (rc != WEIR_OK)
            return rc;
        int got = avio_read(avio, (*bytes)->data + used_bytes, (int)FFMIN(room_bytes - used_bytes, INT32_MAX));
        if (got == 0 || got == AVERROR_EOF)
            break;
        if (got < 0)
            return weir_ffmpeg_error(error, got, "cannot read");
        used_bytes += (size_t)got;
        if (used_bytes > max_bytes)
            return fail_too_large(max_bytes, error);
        room_bytes = used_bytes == room_bytes ? room_bytes * 2 : room_bytes;
    }
    (*bytes)->size_bytes = used_bytes;
    return avio->error < 0 && avio->error != AVERROR_EOF ? weir_ffmpeg_error(error, avio->error, "cannot read")
                                                         : WEIR_OK;
}

int weir_input_load(weir_input *input, const char *path, uint64_t max_bytes, AVIOInterruptCB interrupt,
                    weir_bytes **bytes, weir_error *error)
{
    AVDictionary *options = NULL;
    AVIOContext *avio = NULL;
    bool is_local;
    *bytes = NULL;
    int rc = set_url(input, path, &is_local, error);
    if (rc == WEIR_OK && !is_local)
        rc = set_timeout(input, &options, error);
    if (rc == WEIR_OK) {
        int averror = avio_open2(&avio, input->url, AVIO_FLAG_READ, &interrupt, &options);
        rc = averror < 0 ? fail_open(input, path, is_local, averror, error) : read_all(avio, max_bytes, bytes, error);
    }
    av_dict_free(&options);
    avio_closep(&avio);
    if (rc != WEIR_OK) {
        weir_bytes_free(*bytes);
        *bytes = NULL;
    }
    return rc;
}
