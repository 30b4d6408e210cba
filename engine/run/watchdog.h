/* The watchdog: deadlines and stalls of running tasks. */
#ifndef ENGINE_RUN_WATCHDOG_H
#define ENGINE_RUN_WATCHDOG_H

#include "engine/state/run_state.h"

/* Service thread only. Checks the running tasks as they were when a suspension of the process was last looked for: what a
   later one adds counts for no limit. Returns when to check again. */
int64_t weir__watchdog_check(weir_pipeline *pipeline);

#endif
