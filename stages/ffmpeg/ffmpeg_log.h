/* Converts FFmpeg's errors and log messages to ours. Internal. */
#ifndef STAGES_FFMPEG_FFMPEG_LOG_H
#define STAGES_FFMPEG_FFMPEG_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/status.h>

/* A longer one is not kept. */
enum { WEIR_VALIDATOR_BYTES = 200 };

/*
 * Captures what FFmpeg logs on one thread about one file. Lines go to weir_log() at level debug, up to a limit. For
 * each step the first line of FFmpeg's level error is kept. It is often more specific than the error code ("moov atom
 * not found"). This struct belongs to the thread between begin and end.
 */
typedef struct weir_ffmpeg_log {
    const char *label, *address;
    bool is_quiet; /* set after weir__ffmpeg_log_begin(): lines are counted, and not passed on */
    unsigned num_lines;
    unsigned num_errors; /* lines of FFmpeg's level error */
    uint64_t
        num_trouble; /* error lines, and pictures in which a decoder has concealed errors (it may output these later).
                             Counts all messages so far: weir__ffmpeg_log_begin() does not reset it */
    char first_error[160]; /* since the last weir__ffmpeg_log_step(); "" = none */
    int too_wide;          /* the last picture of the file over max_pixels; 0 = none */
    int too_high;
    bool is_cut; /* the container is longer than the file: Matroska's demuxer then reports the usual end */
    char validator[WEIR_VALIDATOR_BYTES]; /* of the last answer of an HTTP server; "" = none */
    char line[512];                       /* an incomplete line */
    size_t line_bytes;
    bool line_is_error;
} weir_ffmpeg_log;

/* Installs the log callback for the process, once. Threads without a capture keep FFmpeg's default behaviour. */
void weir__ffmpeg_log_install(void);

/* Between begin and end, FFmpeg's messages on this thread are about `label`. Not nested. address: what FFmpeg opens and
   quotes, with its secrets, which lines are then without. Both are used until the end. */
void weir__ffmpeg_log_begin(weir_ffmpeg_log *log, const char *label, const char *address);
void weir__ffmpeg_log_end(void);

/*
 * Counts the signs of damage (num_trouble) that a codec's own threads log: they have no capture, and their lines are not shown.
 * The codec is known by its `opaque`, which FFmpeg copies to the context of each thread. While it is watched, it stays where it
 * is.
 */
typedef struct weir_ffmpeg_watch {
    const void *opaque;
    atomic_uint_fast64_t num_trouble;
    struct weir_ffmpeg_watch *next;
} weir_ffmpeg_watch;

/* Any thread; begin only for one that is not watched, end also for one that is not. */
void weir__ffmpeg_watch_begin(weir_ffmpeg_watch *watch, const void *opaque);
void weir__ffmpeg_watch_end(weir_ffmpeg_watch *watch);

/* Starts a step: its first error line is kept. This and the following do nothing on a thread without a capture. */
void weir__ffmpeg_log_step(void);

/* The step's first error; "" = none. */
const char *weir__ffmpeg_log_reason(void);

/*
 * What the last answer of an HTTP server says of the file's version, to compare it with that of another time: "ETag: …", else
 * "Last-Modified: …"; "" = nothing. Also after redirections: then it is what the last server says. FFmpeg has these only in
 * its log, at level trace (5.1 to 9); if it did not log them any more, nothing would be known of any URL.
 */
const char *weir__ffmpeg_log_validator(void);

/* The capture of the calling thread; NULL = none. */
weir_ffmpeg_log *weir__ffmpeg_log_current(void);

/* Our status for FFmpeg's (negative) code. */
int weir__ffmpeg_status(int averror);

/* Fills *error with "what: FFmpeg's text (the reason)", where the reason may be ""; the second one takes the step's.
   Both return our status. */
int weir__ffmpeg_error_because(weir_error *error, int averror, const char *what, const char *reason);
int weir__ffmpeg_error(weir_error *error, int averror, const char *what);

#endif
