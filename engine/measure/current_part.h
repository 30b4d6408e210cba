/*
 * Where figures go: the parts that collect, and which of them is current.
 *
 *     spare --switch--> current <--switch--> paused        weir__part_switch_locked(), by the thread that marks
 *                          |                   |
 *                          +--- taken ---------+           weir__parts_take_locked(), by the service thread
 *                                 |
 *              joined with parts of the same lap, mode and phase (laps.c), passed on, delivered, freed
 *
 * Invariants, whenever the lock is free:
 *   1. The sums of the current part are in the nodes, queues and pools; they record into its histograms. Those of paused
 *      parts are in the parts. A switch closes open spans at its time and moves the sums, so it costs some ns for each slot
 *      and queue, and no task, item or nanosecond is in two parts or in none.
 *   2. pipeline->open_lap->parts are in the order in which they were last left; the current one is the last. A part that ends a lap
 *      is never entered again, nor are those before it.
 *   3. In a lap, no two parts have the same mode and phase.
 */
#ifndef ENGINE_MEASURE_CURRENT_PART_H
#define ENGINE_MEASURE_CURRENT_PART_H

#include "engine/measure/part.h"

/* pipeline->position->mode, phase or step has changed: time and figures go to their part from now on. It is a spare one if the lap has
   none yet; without a spare one, they still go to the current part. ends_lap: the lap ends, too. */
void weir__part_switch_locked(weir_pipeline *pipeline, bool ends_lap);

/* The parts of the laps that have ended; with `fresh`, which becomes the current part, all of them (at first none). Divides the CPU time of
   each stage, and what it has used in other processes, which *outside_cpu_ns gets. */
weir_part *weir__parts_take_locked(weir_pipeline *pipeline, weir_part *fresh, int64_t *outside_cpu_ns);

/* Adds the time of the pool's threads up to now to its metrics. */
void weir__pool_settle_locked(weir_pool *pool);

/* Adds a step that has ended to the current part. */
void weir__part_add_step_locked(weir_pipeline *pipeline, int64_t step_ns);

/* Whether a part of this id has not been taken. Takes the lock. */
bool weir__part_is_open(weir_pipeline *pipeline, uint64_t id);

#endif
