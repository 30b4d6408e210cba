/*
 * A reason is a stage, a status and a native code. The first MAX_WHOLE failures of each reason are logged at once;
 * after that at most one per second, with the number of failures left out since the last line.
 */
#include "failure_log.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <uv.h>

#include <weir/clock.h>
#include <weir/log.h>

enum { MAX_WHOLE = 10, MAX_REASONS = 64 /* further reasons share the last entry */ };

typedef struct reason {
    uint32_t stage;
    int status, library_code;
    char stage_name[sizeof(((weir_error *)0)->stage)];
    uint64_t num_logged, num_left_out; /* num_left_out: since the last line */
    int64_t logged_ns;
} reason;

struct weir_failure_log {
    uv_mutex_t lock;

    /* guarded by lock */
    reason reasons[MAX_REASONS];
    uint32_t num_reasons;
};

weir_failure_log *weir_failure_log_new(void)
{
    weir_failure_log *log = calloc(1, sizeof *log);
    if (log && uv_mutex_init(&log->lock) == 0)
        return log;
    free(log);
    return NULL;
}

void weir_failure_log_free(weir_failure_log *log)
{
    if (!log)
        return;
    uv_mutex_destroy(&log->lock);
    free(log);
}

static reason *find_locked(weir_failure_log *log, uint32_t stage, const weir_error *error)
{
    for (uint32_t i = 0; i < log->num_reasons; i++) {
        reason *known = &log->reasons[i];
        if (known->stage == stage && known->status == error->status && known->library_code == error->library_code)
            return known;
    }
    if (log->num_reasons == MAX_REASONS)
        return &log->reasons[MAX_REASONS - 1];
    reason *added = &log->reasons[log->num_reasons++];
    *added = (reason){ .stage = stage, .status = error->status, .library_code = error->library_code };
    snprintf(added->stage_name, sizeof added->stage_name, "%s", error->stage);
    return added;
}

/* Whether to log this failure. *left_out: number of failures not logged since the last line. */
static bool take_line_locked(reason *why, uint64_t *left_out)
{
    int64_t now_ns = weir_clock_ns();
    if (why->num_logged >= MAX_WHOLE && now_ns - why->logged_ns < WEIR_SECOND) {
        why->num_left_out++;
        return false;
    }
    *left_out = why->num_left_out;
    why->num_left_out = 0;
    why->num_logged++;
    why->logged_ns = now_ns;
    return true;
}

void weir_failure_log_add(weir_failure_log *log, uint32_t stage, const weir_error *error)
{
    uint64_t left_out = 0;
    uv_mutex_lock(&log->lock);
    bool logged = take_line_locked(find_locked(log, stage, error), &left_out);
    uv_mutex_unlock(&log->lock);
    if (!logged)
        return;

    char line[WEIR_ERROR_LINE];
    weir_error_format(error, line, sizeof line);
    if (left_out > 0)
        weir_log(WEIR_LOG_WARNING, "%s; %" PRIu64 " more failures of this kind since the last line", line, left_out);
    else
        weir_log(WEIR_LOG_WARNING, "%s", line);
}

void weir_failure_log_finish(weir_failure_log *log)
{
    uv_mutex_lock(&log->lock);
    uint32_t num_reasons = log->num_reasons;
    uv_mutex_unlock(&log->lock);
    for (uint32_t i = 0; i < num_reasons; i++) { /* no lock needed: no task runs any more */
        const reason *why = &log->reasons[i];
        if (why->num_left_out > 0)
            weir_log(WEIR_LOG_WARNING, "%s: %" PRIu64 " more failures (%s) were not logged individually",
                     why->stage_name, why->num_left_out, weir_status_name(why->status));
    }
}
