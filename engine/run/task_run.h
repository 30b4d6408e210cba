/* One step of a task, without the lock. */
#ifndef ENGINE_RUN_TASK_RUN_H
#define ENGINE_RUN_TASK_RUN_H

#include "engine/state/run_state.h"

/* Runs one step of the picked slot (a task, a flush, the stage hooks), or gives it up. begin_ns must be set; sets
   slot->status and the other times. */
void weir__run_step(weir_pool_thread *pool_thread, weir_task *slot);

#endif
