/* What the end of a step means. All with the lock held. */
#ifndef WEIR_TASK_END_H
#define WEIR_TASK_END_H

#include "state.h"

/* What was picked has run, and slot->status is the result. */
void weir_step_ended_locked(weir_slot *slot);

/* weir_task_complete() has set pending_status and pending_out. */
void weir_step_completed_locked(weir_slot *slot);

#endif
