/*
 * FFmpeg's log has one callback for the whole process. The calling thread shows which file a line is about: `current`
 * is that thread's capture, and only that thread uses it.
 */
#include "stages/ffmpeg/ffmpeg_log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <libavcodec/avcodec.h>
#include <libavutil/avutil.h>
#include <libavutil/error.h>
#include <libavutil/log.h>

#include <weir/log.h>

#include "common/redact.h"

/* A file with a thousand broken packets must not flood the log. */
enum { MAX_LINES_PER_FILE = 10 };

static _Thread_local weir_ffmpeg_log *current;

/* FFmpeg reports sizes over the limit only in its log. */
static void note_size(weir_ffmpeg_log *log)
{
    const char *size = strstr(log->line, "icture size ");
    size = size ? size : strstr(log->line, "rame size ");
    size = size ? strstr(size, "size ") : NULL;
    bool is_limit = strstr(log->line, "max pixel count") || strstr(log->line, "exceeds limit");
    if (size && is_limit && sscanf(size, "size %dx%d", &log->too_wide, &log->too_high) != 2)
        log->too_wide = log->too_high = 0;
}

static void emit_line(weir_ffmpeg_log *log)
{
    weir__text_redact_about(log->line, &log->address, 1);
    log->num_errors += log->line_is_error;
    log->num_trouble += log->line_is_error;
    if (log->line_is_error)
        note_size(log);
    log->is_cut |= log->line_is_error && strstr(log->line, "File ended prematurely");
    if (log->line_is_error && !log->first_error[0])
        snprintf(log->first_error, sizeof log->first_error, "%.*s", (int)sizeof log->first_error - 1, log->line);
    if (!log->is_quiet && log->num_lines < MAX_LINES_PER_FILE)
        weir_log(WEIR_LOG_DEBUG, "%s: %s", log->label, log->line);
    else if (!log->is_quiet && log->num_lines == MAX_LINES_PER_FILE)
        weir_log(WEIR_LOG_DEBUG, "%s: further FFmpeg messages about this file are not shown", log->label);
    log->num_lines++;
    log->line_bytes = 0;
    log->line_is_error = false;
}

/* Prefixes a line of the object `source` with "h264: ". */
static void begin_line(weir_ffmpeg_log *log, void *source)
{
    const AVClass *class = source ? *(const AVClass **)source : NULL;
    const char *name = class && class->item_name ? class->item_name(source) : NULL;
    log->line[0] = '\0';
    if (!name || strcmp(name, "NULL") == 0) /* FFmpeg's name for an object that is not open yet */
        return;
    int written = snprintf(log->line, sizeof log->line, "%s: ", name);
    log->line_bytes = written < 0 ? 0 : (size_t)written;
}

static bool line_is_wanted(const weir_ffmpeg_log *log, int level)
{
    bool is_shown = !log->is_quiet && log->num_lines <= MAX_LINES_PER_FILE && weir_log_get_level() >= WEIR_LOG_DEBUG;
    return level <= AV_LOG_ERROR || (level <= AV_LOG_WARNING && is_shown);
}

static void catch_line(weir_ffmpeg_log *log, void *source, int level, const char *format, va_list arguments)
{
    if (!line_is_wanted(log, level))
        return;
    if (log->line_bytes == 0)
        begin_line(log, source);
    log->line_is_error |= level <= AV_LOG_ERROR;

    size_t room = log->line_bytes < sizeof log->line ? sizeof log->line - log->line_bytes : 0;
    int written = vsnprintf(room ? log->line + log->line_bytes : NULL, room, format, arguments);
    log->line_bytes += written < 0 ? 0 : (size_t)written;

    /* A line may arrive in several calls, and its newline may be missing. A full buffer ends the line. */
    size_t end = strnlen(log->line, sizeof log->line);
    bool is_full = log->line_bytes >= sizeof log->line;
    bool has_newline = end > 0 && log->line[end - 1] == '\n';
    while (end > 0 && (log->line[end - 1] == '\n' || log->line[end - 1] == '\r'))
        log->line[--end] = '\0';
    if (has_newline || is_full)
        emit_line(log);
}

/* Keeps "NAME: VALUE" if the line of a head has this name and a value in plain ASCII. */
static bool keep_validator(weir_ffmpeg_log *log, const char *line, const char *name)
{
    size_t length = strlen(name);
    if (strncasecmp(line, name, length) != 0)
        return false;
    const char *value = line + length + strspn(line + length, " \t");
    for (const char *at = value; *at; at++)
        if (*at < ' ' || *at > '~')
            return false;
    int written = snprintf(log->validator, sizeof log->validator, "%s %s", name, value);
    if (*value && written > 0 && (size_t)written < sizeof log->validator)
        return true;
    log->validator[0] = '\0';
    return false;
}

/* FFmpeg's line about each line of the head of an answer. An ETag says more than a date. */
static void note_head(weir_ffmpeg_log *log, const char *line)
{
    if (strncmp(line, "HTTP/", strlen("HTTP/")) == 0)
        log->validator[0] = '\0';
    bool has_tag = strncmp(log->validator, "ETag:", strlen("ETag:")) == 0;
    if (!keep_validator(log, line, "ETag:") && !has_tag)
        keep_validator(log, line, "Last-Modified:");
}

static void catch_head(weir_ffmpeg_log *log, const char *format, va_list arguments)
{
    va_list copy;
    if (strcmp(format, "header='%s'\n") != 0)
        return;
    va_copy(copy, arguments);
    note_head(log, va_arg(copy, const char *));
    va_end(copy);
}

/* ---- threads of codecs --- ---------------------------------------------------------------------------------------- */

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER; /* held during fork() */
static weir_ffmpeg_watch *watches;                             /* guarded by watch_lock */

static void lock_watches(void)
{
    pthread_mutex_lock(&watch_lock);
}

static void unlock_watches(void)
{
    pthread_mutex_unlock(&watch_lock);
}

static void watch_forks(void)
{
    pthread_atfork(lock_watches, unlock_watches, unlock_watches);
}

void weir__ffmpeg_watch_begin(weir_ffmpeg_watch *watch, const void *opaque)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    watch->opaque = opaque;
    atomic_store(&watch->num_trouble, 0);
    lock_watches();
    watch->next = watches;
    watches = watch;
    unlock_watches();
}

void weir__ffmpeg_watch_end(weir_ffmpeg_watch *watch)
{
    lock_watches();
    weir_ffmpeg_watch **at = &watches;
    while (*at && *at != watch)
        at = &(*at)->next;
    if (*at)
        *at = watch->next;
    unlock_watches();
    watch->opaque = NULL;
}

static bool is_concealing(int level, const char *format)
{
    return level == AV_LOG_INFO && strncmp(format, "concealing ", strlen("concealing ")) == 0;
}

/* Is the line from a thread of a codec that is watched? */
static bool note_watched(void *source, int level, const char *format)
{
    bool is_codec = source && *(const AVClass **)source == avcodec_get_class();
    bool is_watched = false;
    if (!is_codec)
        return false;
    lock_watches();
    for (weir_ffmpeg_watch *watch = watches; watch && !is_watched; watch = watch->next) {
        is_watched = watch->opaque == ((AVCodecContext *)source)->opaque;
        if (is_watched && (level <= AV_LOG_ERROR || is_concealing(level, format)))
            atomic_fetch_add(&watch->num_trouble, 1);
    }
    unlock_watches();
    return is_watched;
}

static void log_callback(void *source, int level, const char *format, va_list arguments)
{
    if (current && is_concealing(level & 0xff, format))
        current->num_trouble++;
    if (current && (level & 0xff) == AV_LOG_TRACE)
        catch_head(current, format, arguments);
    if (current)
        catch_line(current, source, level & 0xff, format, arguments);
    else if (!note_watched(source, level & 0xff, format))
        av_log_default_callback(source, level, format, arguments);
}

void weir__ffmpeg_log_install(void)
{
    static atomic_flag installed = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&installed))
        av_log_set_callback(log_callback);
}

void weir__ffmpeg_log_begin(weir_ffmpeg_log *log, const char *label, const char *address)
{
    log->label = label;
    log->address = address;
    log->num_lines = 0;
    log->num_errors = 0;
    log->too_wide = log->too_high = 0;
    log->is_cut = log->is_quiet = false;
    log->first_error[0] = '\0';
    log->validator[0] = '\0';
    log->line_bytes = 0;
    log->line_is_error = false;
    current = log;
}

void weir__ffmpeg_log_end(void)
{
    if (current && current->line_bytes > 0)
        emit_line(current);
    current = NULL;
}

void weir__ffmpeg_log_step(void)
{
    if (current)
        current->first_error[0] = '\0';
}

const char *weir__ffmpeg_log_reason(void)
{
    return current ? current->first_error : "";
}

const char *weir__ffmpeg_log_validator(void)
{
    return current ? current->validator : "";
}

weir_ffmpeg_log *weir__ffmpeg_log_current(void)
{
    return current;
}

static int status_of_errno(int code)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR: return WEIR_ENOTFOUND;
    case EACCES:
    case EPERM: return WEIR_EACCESS;
    case ENOMEM: return WEIR_ENOMEM;
    case ETIMEDOUT: return WEIR_ETIMEDOUT;
    case EMFILE:
    case ENFILE:
    case EAGAIN: return WEIR_ESYSTEM;
    case ENOSYS:
    case EISDIR: return WEIR_EUNSUPPORTED;
    /* FFmpeg's demuxers and decoders return this for bad values in the file. */
    case EINVAL:
    case ERANGE:
    case EDOM: return WEIR_EDATA;
    default: return WEIR_EIO;
    }
}

int weir__ffmpeg_status(int averror)
{
    switch (averror) {
    case AVERROR_EXIT: return WEIR_ESTOPPED;
    case AVERROR_DECODER_NOT_FOUND:
    case AVERROR_DEMUXER_NOT_FOUND:
    case AVERROR_PROTOCOL_NOT_FOUND:
    case AVERROR_STREAM_NOT_FOUND:
    case AVERROR_PATCHWELCOME: return WEIR_EUNSUPPORTED;
    case AVERROR_HTTP_NOT_FOUND: return WEIR_ENOTFOUND;
    case AVERROR_HTTP_UNAUTHORIZED:
    case AVERROR_HTTP_FORBIDDEN: return WEIR_EACCESS;
    case AVERROR_HTTP_BAD_REQUEST:
    case AVERROR_HTTP_OTHER_4XX:
    case AVERROR_HTTP_SERVER_ERROR: return WEIR_EIO;
    default: break;
    }
    /* FFmpeg's own codes are four characters, far above every errno. */
    return averror > -4096 ? status_of_errno(AVUNERROR(averror)) : WEIR_EDATA;
}

int weir__ffmpeg_error_because(weir_error *error, int averror, const char *what, const char *reason)
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    av_strerror(averror, text, sizeof text);
    return weir_error_set(error, weir__ffmpeg_status(averror), averror, "%s: %s%s%s%s", what, text,
                          reason[0] ? " (" : "", reason, reason[0] ? ")" : "");
}

int weir__ffmpeg_error(weir_error *error, int averror, const char *what)
{
    return weir__ffmpeg_error_because(error, averror, what, weir__ffmpeg_log_reason());
}
