#include "concat_list.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libavutil/avstring.h>
#include <libavutil/error.h>
#include <libavutil/mem.h>

#include "ffmpeg_log.h"

static const char spaces[] = " \n\t\r";

/* From the front; at most max_bytes, or AVERROR. */
static int read_head(weir_local_file *file, char *to, int max_bytes)
{
    int num_bytes = 0;
    int got = 1;
    while (num_bytes < max_bytes && got > 0) {
        got = weir__local_file_read(file, (uint8_t *)to + num_bytes, max_bytes - num_bytes);
        num_bytes += got > 0 ? got : 0;
    }
    weir__local_file_seek(file, 0, SEEK_SET);
    return got > 0 || got == AVERROR_EOF ? num_bytes : got;
}

/* Some versions of FFmpeg skip an ID3v2 tag before any list. */
static int64_t get_tag_bytes(weir_local_file *file)
{
    enum { HEAD_BYTES = 10, FLAGS = 5, SIZE = 6, HAS_FOOTER = 0x10 };
    char head[HEAD_BYTES];
    int64_t size_bytes = 0;
    if (read_head(file, head, HEAD_BYTES) != HEAD_BYTES || memcmp(head, "ID3", 3) != 0)
        return 0;
    for (int i = SIZE; i < HEAD_BYTES; i++)
        size_bytes = size_bytes << 7 | (head[i] & 0x7f);
    return size_bytes + (head[FLAGS] & HAS_FOOTER ? 2 * HEAD_BYTES : HEAD_BYTES);
}

static bool begins_with(weir_local_file *file, const char *text)
{
    char head[32];
    int length = (int)strlen(text);
    return read_head(file, head, length) == length && memcmp(head, text, (size_t)length) == 0;
}

bool weir__concat_is_list(weir_local_file *file)
{
    return begins_with(file, "ffconcat version 1.0");
}

static int check_named(const weir_local_file *list, const char *path, const char *name, weir_error *error)
{
    weir_local_file file;
    weir_error failure = { 0 };
    const char *slash = strrchr(path, '/');
    char *named = av_asprintf("%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
    if (!named)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int rc = weir__local_file_open(&file, list->host, named, -1, false, list->interrupt, &failure);
    av_free(named);
    if (rc == WEIR_OK)
        file.offset = get_tag_bytes(&file);
    if (rc == WEIR_OK && (weir__concat_is_list(&file) || begins_with(&file, "#EXTM3U")))
        rc = weir_error_set(&failure, WEIR_EUNSUPPORTED, 0, "a list of files cannot name another one");
    weir__local_file_close(&file);
    if (rc == WEIR_ENOTFOUND || rc == WEIR_EACCESS || rc == WEIR_EIO) /* left to FFmpeg */
        return WEIR_OK;
    if (rc == WEIR_OK)
        return rc;
    return weir_error_set(error, rc, failure.library_code, "it names %s: %s", name, failure.message);
}

/* The caller frees the name; NULL = the line names no file. */
static char *take_name(const char *line)
{
    const char *word = line + strspn(line, spaces);
    size_t length = strcspn(word, spaces);
    const char *rest = word + length + strspn(word + length, spaces);
    bool is_file = length == strlen("file") && memcmp(word, "file", length) == 0;
    return is_file ? av_get_token(&rest, spaces) : NULL;
}

/* FFmpeg ends a line at any of "\n", "\r" and "\0". */
static void split_lines(char *text, int num_bytes)
{
    for (char *end = text; end < text + num_bytes; end++)
        if (*end == '\n' || *end == '\r')
            *end = '\0';
    text[num_bytes] = '\0';
}

int weir__concat_check(weir_local_file *list, const char *path, unsigned max_files, weir_error *error)
{
    enum { MAX_BYTES = 16 << 20 };
    unsigned num_files = 0;
    int rc = WEIR_OK;
    int64_t size_bytes = weir__local_file_seek(list, 0, AVSEEK_SIZE);
    if (size_bytes < 0 || size_bytes > MAX_BYTES)
        return weir_error_set(error, WEIR_ELIMIT, 0, "the list of files has more than %d bytes", MAX_BYTES);
    char *text = malloc((size_t)size_bytes + 1);
    if (!text)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int num_bytes = read_head(list, text, (int)size_bytes);
    if (num_bytes < 0)
        rc = weir__ffmpeg_error(error, num_bytes, "cannot read");
    else
        split_lines(text, num_bytes);
    for (char *line = text; rc == WEIR_OK && line < text + num_bytes; line += strlen(line) + 1) {
        char *name = take_name(line);
        if (!name)
            continue;
        rc = ++num_files > max_files
                 ? weir_error_set(error, WEIR_ELIMIT, 0, "the list has more than %u other files", max_files)
                 : check_named(list, path, name, error);
        av_free(name);
    }
    free(text);
    return rc;
}
