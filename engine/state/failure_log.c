/*
 * A reason is a stage, a status and a native code. The lines of each reason are limited (line_limit.h); a line has
 * the number of failures that were left out since the line before.
 */
#include "engine/state/failure_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/message_text.h"
#include "engine/state/line_limit.h"
#include "engine/state/run_state.h"

enum { MAX_REASONS = 64 /* further reasons share the last entry */ };

typedef struct reason {
    uint32_t stage;
    int status, library_code;
    char stage_name[sizeof(((weir_error *)0)->stage)];
    weir__line_limit limit;
} reason;

struct weir_failure_log {
    uv_mutex_t lock;

    /* guarded by lock */
    reason reasons[MAX_REASONS];
    uint32_t num_reasons;
};

weir_failure_log *weir__failure_log_new(void)
{
    weir_failure_log *log = calloc(1, sizeof *log);
    if (log)
        log->lock = WEIR_MUTEX;
    return log;
}

static reason *find_reason_locked(weir_failure_log *log, uint32_t stage, const weir_error *error)
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

void weir__failure_log_add(weir_failure_log *log, uint32_t stage, const weir_error *error)
{
    uint64_t left_out = 0;
    uv_mutex_lock(&log->lock);
    bool logged = weir__line_take(&find_reason_locked(log, stage, error)->limit, weir_clock_ns(), &left_out);
    uv_mutex_unlock(&log->lock);
    if (!logged)
        return;

    char line[WEIR_ERROR_LINE];
    weir_error_format(error, line, sizeof line);
    if (left_out > 0)
        weir__log_shown(WEIR_LOG_WARNING, "%s; %" PRIu64 " more failures of this kind since the last line", line,
                        left_out);
    else
        weir__log_shown(WEIR_LOG_WARNING, "%s", line);
}

void weir__failure_log_finish(weir_failure_log *log)
{
    for (uint32_t i = 0; i < log->num_reasons; i++) { /* no lock needed: no task runs any more */
        const reason *why = &log->reasons[i];
        if (why->limit.num_left_out > 0)
            weir__log_shown(WEIR_LOG_WARNING, "%s: %" PRIu64 " more failures (%s) were not logged individually",
                            why->stage_name, why->limit.num_left_out, weir_status_name(why->status));
    }
}
