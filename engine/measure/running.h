/* The running pipelines of the process: pauses (weir_set_paused()), and the sums of stages for weir_span_dump(). */
#ifndef ENGINE_MEASURE_RUNNING_H
#define ENGINE_MEASURE_RUNNING_H

#include "engine/state/run_state.h"

/* The pipeline is one of them from here to there: before its tasks start; when its last lap has been taken. */
void weir__running_add(weir_pipeline *pipeline);
void weir__running_remove(weir_pipeline *pipeline);

/* Calls `each` for the stages and sources that have run a task since the process began, or since the last reset. */
void weir__stage_sums_visit(void (*each)(void *self, const char *name, const weir__stage_sum *sum), void *self,
                            bool reset);

#endif
