/* The program's functions may return anything: what they claim is checked before FFmpeg sees it. */
#include "stages/ffmpeg/user_file.h"

#include <inttypes.h>
#include <stdbool.h>

#include <libavformat/avio.h>
#include <libavutil/error.h>

#include "stages/memory/growing_bytes.h"

/* Keeps the first failure for the message. FFmpeg gets a code that ends its work at once. */
static int fail_user_file(weir_user_file *file, int64_t status)
{
    bool is_status = status < 0 && status >= INT32_MIN;
    if (file->failure == WEIR_OK)
        file->failure = is_status ? (int)status : WEIR_EINVAL;
    return file->failure == WEIR_ESTOPPED ? AVERROR_EXIT : AVERROR(EIO);
}

int weir__user_file_failure(const weir_user_file *file, weir_error *error)
{
    if (file->failure == WEIR_OK)
        return WEIR_OK;
    if (file->failure == WEIR_EINVAL)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "the program's function to read the file returned more bytes than requested, or an "
                              "invalid status");
    return weir_error_set(error, file->failure, 0, "the program's function to read the file failed: %s",
                          weir_status_text(file->failure));
}

static void note_place(const weir_user_file *file, int64_t place)
{
    if (file->place)
        *file->place = place;
}

/* Has nobody else moved the program's file? */
static bool is_in_place(const weir_user_file *file)
{
    return !file->place || *file->place == file->position;
}

static int64_t move_user_file(weir_user_file *file, int64_t position)
{
    int rc = file->functions.seek(file->functions.self, position);
    note_place(file, rc == WEIR_OK ? position : -1);
    if (rc != WEIR_OK)
        return fail_user_file(file, rc);
    file->position = position;
    return position;
}

int weir__user_file_rewind(weir_user_file *file, weir_error *error)
{
    bool is_there = file->position == 0 && is_in_place(file) &&
                    file->failure == WEIR_OK; /* after a failure nobody knows where it is */
    file->failure = WEIR_OK;
    if (is_there || move_user_file(file, 0) == 0)
        return WEIR_OK;
    return weir__user_file_failure(file, error);
}

int weir__user_file_read(void *self, uint8_t *to, int max_bytes)
{
    weir_user_file *file = self;
    int64_t moved = is_in_place(file) ? 0 : move_user_file(file, file->position);
    if (moved < 0)
        return (int)moved;
    int64_t num_bytes = file->functions.read(file->functions.self, to, (size_t)max_bytes);
    note_place(file, -1);
    if (num_bytes < 0 || num_bytes > max_bytes)
        return fail_user_file(file, num_bytes);
    file->position += num_bytes;
    note_place(file, file->position);
    return num_bytes == 0 ? AVERROR_EOF : (int)num_bytes;
}

int64_t weir__user_file_seek(void *self, int64_t offset, int whence)
{
    weir_user_file *file = self;
    int64_t size_bytes = file->functions.size_bytes;
    int64_t from;
    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE: return size_bytes > 0 ? size_bytes : AVERROR(ENOSYS);
    case SEEK_SET: from = 0; break;
    case SEEK_CUR: from = file->position; break;
    case SEEK_END: from = size_bytes; break;
    default: return AVERROR(EINVAL);
    }
    bool is_unknown = size_bytes <= 0;
    if (from + offset < 0 || (is_unknown && (whence & ~AVSEEK_FORCE) == SEEK_END) ||
        (!is_unknown && from + offset > size_bytes))
        return AVERROR(EINVAL);
    return from + offset == file->position ? file->position : move_user_file(file, from + offset);
}

int weir__user_file_load(weir_user_file *file, uint64_t max_bytes, weir_bytes **bytes, weir_error *error)
{
    enum { FIRST_BYTES = 1 << 20 };
    weir_growing_bytes growing = { 0 };
    int64_t size_bytes = file->functions.size_bytes;
    size_t first_bytes = size_bytes > 0 ? (size_t)size_bytes + 1 : FIRST_BYTES; /* one more detects the end */
    size_t most_bytes = (size_t)(max_bytes < SIZE_MAX ? max_bytes : SIZE_MAX - 1) + 1;
    int got = 1;
    *bytes = NULL;
    while (got > 0 && growing.used_bytes <= max_bytes) {
        if (growing.used_bytes == growing.room_bytes &&
            weir__growing_bytes_grow(&growing, first_bytes, most_bytes) != WEIR_OK)
            break;
        size_t left_bytes = growing.room_bytes - growing.used_bytes;
        got = weir__user_file_read(file, growing.data + growing.used_bytes,
                                   left_bytes < INT32_MAX ? (int)left_bytes : INT32_MAX);
        growing.used_bytes += got > 0 ? (size_t)got : 0;
    }
    int rc = WEIR_OK;
    if (got < 0 && got != AVERROR_EOF)
        rc = weir__user_file_failure(file, error);
    else if (growing.used_bytes > max_bytes)
        rc = weir_error_set(error, WEIR_ELIMIT, 0, "the file is over the limit of %" PRIu64 " bytes", max_bytes);
    else if (got > 0 || !(*bytes = weir__growing_bytes_end(&growing)))
        rc = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    weir__growing_bytes_free(&growing);
    return rc;
}
