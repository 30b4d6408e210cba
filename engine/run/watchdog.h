/* The watchdog: deadlines and stalls of running tasks. */
#ifndef ENGINE_RUN_WATCHDOG_H
#define ENGINE_RUN_WATCHDOG_H

#include "run_state.h"

/* Service thread only. Checks the running tasks; of their time, suspended_ns count for no limit. Returns when to check
   again. */
int64_t weir__watchdog_check(weir_pipeline *pipeline, int64_t suspended_ns);

#endif
