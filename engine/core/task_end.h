/* The end of a step. All functions need the lock. */
#ifndef WEIR_TASK_END_H
#define WEIR_TASK_END_H

#include "state.h"

/* The step of the slot has run; slot->status is its result. */
void weir_step_ended_locked(weir_slot *slot);

/* weir_task_complete() has set pending_status and pending_out. */
void weir_step_completed_locked(weir_slot *slot);

#endif
