/* FFmpeg's errors and FFmpeg's log, in our words. Internal. */
#ifndef WEIR_STAGES_FFMPEG_H
#define WEIR_STAGES_FFMPEG_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/status.h>

/*
 * Catches what FFmpeg logs on one thread about one file. Lines go to weir_log(), a limited number of them, at level
 * debug. Of each step the first line that FFmpeg itself calls an error is kept, because it often says more than the code that
 * follows ("moov atom not found"). This struct belongs to the thread between begin and end.
 */
typedef struct weir_ffmpeg_log {
    const char *label;
    unsigned num_lines;
    unsigned num_errors;   /* lines that FFmpeg calls errors */
    char first_error[160]; /* since the last weir_ffmpeg_log_step(); "" = none */
    int too_wide;          /* the last picture of the file that was over max_pixels; 0 = none was */
    int too_high;
    char line[512]; /* begun, its newline has not come yet */
    size_t line_bytes;
    bool line_is_error;
} weir_ffmpeg_log;

/* Takes FFmpeg's log over for the process, once. Threads that catch nothing keep FFmpeg's own behaviour. */
void weir_ffmpeg_log_install(void);

/* From here to the end, what FFmpeg logs on this thread is about `label`. Not nested. */
void weir_ffmpeg_log_begin(weir_ffmpeg_log *log, const char *label);
void weir_ffmpeg_log_end(void);

/* Here a step begins whose failure would be told. Nothing if this thread catches nothing, as the following. */
void weir_ffmpeg_log_step(void);

/* The step's first error; "" = none. */
const char *weir_ffmpeg_log_reason(void);

/* What this thread catches; NULL = nothing. */
const weir_ffmpeg_log *weir_ffmpeg_log_current(void);

/* Our status for FFmpeg's code, which is negative. */
int weir_ffmpeg_status(int averror);

/* Fills *error with "what: FFmpeg's text (the reason)", where the reason may be ""; the second one takes the step's. Both
   return our status. */
int weir_ffmpeg_error_because(weir_error *error, int averror, const char *what, const char *reason);
int weir_ffmpeg_error(weir_error *error, int averror, const char *what);

#endif
