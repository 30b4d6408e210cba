/* The parts that operations tell of their items. */
#ifndef ENGINE_RUN_TASK_PARTS_H
#define ENGINE_RUN_TASK_PARTS_H

#include "engine/state/run_state.h"

/* The operation is called again for the same task: what it reported so far was for earlier results. On the task's
   thread. */
void weir__parts_continue(weir_task *slot);

#endif
