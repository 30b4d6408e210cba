/* Logs failures of tasks, limited for each reason so that many failures do not flood the log. Any thread. */
#ifndef ENGINE_STATE_FAILURE_LOG_H
#define ENGINE_STATE_FAILURE_LOG_H

#include <stdint.h>

#include <weir/status.h>

typedef struct weir_failure_log weir_failure_log;

/* To be freed by free(). NULL = out of memory. */
weir_failure_log *weir__failure_log_new(void);

/* Logs the failure, or counts it. `stage`: the index of its stage. */
void weir__failure_log_add(weir_failure_log *log, uint32_t stage, const weir_error *error);

/* At the end of the run: logs the number of failures that were only counted. */
void weir__failure_log_finish(weir_failure_log *log);

#endif
