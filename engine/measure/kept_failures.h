/*
 * The failures that wait for weir_pipeline_next_failure(), and the causes of tasks. A cause has one owner:
 *
 *     from                           to                               owner
 *     weir_task_set_cause()          the end of the task              the slot
 *     the failure is kept            it is pulled, or is the oldest   weir__kept_failures
 *                                    of too many
 *     the failure is pulled          weir_kept_failure_free()         the program
 *
 * It is released without any lock. The list has a lock of its own, under which no other one is taken.
 */
#ifndef ENGINE_MEASURE_KEPT_FAILURES_H
#define ENGINE_MEASURE_KEPT_FAILURES_H

#include "engine/state/run_state.h"

typedef struct weir__kept_failures weir__kept_failures;

/* most: how many may wait, above 0. NULL = out of memory. */
weir__kept_failures *weir__kept_failures_new(uint32_t most);

/* Releases the causes of those that nobody has pulled. NULL is accepted. */
void weir__kept_failures_free(weir__kept_failures *kept);

/* The failure of the slot's task, whose cause now belongs to it. Without memory it is counted as lost, and its cause
   released. kept: NULL = nothing is kept. On the thread that runs the task. */
void weir__kept_failures_add(weir__kept_failures *kept, weir_task *slot);

/* The oldest one, with the number of those lost before it. NULL = none waits. Any thread. */
weir_kept_failure *weir__kept_failures_take(weir__kept_failures *kept);

/* The task has ended, or has another cause. On the thread that runs it. */
void weir__cause_release(weir_task *slot);

#endif
