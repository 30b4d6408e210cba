/* Watches the running tasks. */
#ifndef WEIR_WATCH_H
#define WEIR_WATCH_H

#include "state.h"

/* Service thread only. Checks the running tasks. Returns when to check again. */
int64_t weir_watch_tasks(weir_pipeline *pipeline);

#endif
