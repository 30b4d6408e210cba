/* One step of a task, without the lock. */
#ifndef WEIR_TASK_RUN_H
#define WEIR_TASK_RUN_H

#include "state.h"

/* Runs one step of what was picked (a task, a flush, the stage hooks), or gives it up; sets slot->status and its times. begin_ns is set. */
void weir_run_step(weir_worker *worker, weir_slot *slot);

#endif
