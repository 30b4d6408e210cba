/* Watching the tasks that run. */
#ifndef WEIR_WATCH_H
#define WEIR_WATCH_H

#include "state.h"

/* The service thread: looks at the tasks that run. Returns when to look again. */
int64_t weir_watch_tasks(weir_pipeline *pipeline);

#endif
