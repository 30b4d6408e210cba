/* The failure of a slot's task as a weir_failure, whose texts lie in memory of the caller. On the thread that runs the task. */
#ifndef ENGINE_MEASURE_FAILURE_TEXT_H
#define ENGINE_MEASURE_FAILURE_TEXT_H

#include "engine/state/run_state.h"

/* The size of its texts, in bytes. */
size_t weir__failure_text_bytes(const weir_task *slot);

/* Fills *failure. Its texts are written to `texts`, which has as many bytes, and must live as long as it. */
void weir__failure_fill(weir_failure *failure, char *texts, const weir_task *slot);

#endif
