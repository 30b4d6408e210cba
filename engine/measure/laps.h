/*
 * Takes laps. Service thread only.
 *
 * The end of a run. The work has ended when no task is left and all results are delivered or the pipeline was stopped
 * (core.over). The tail is the time from then until weir_pipeline_free() begins: the consumer may still report steps,
 * phases, spans and counters. The lap in which the work ends is held back until the tail is over, and is then the last
 * one:
 *   nothing was reported in the tail   it ends with the work, so a pipeline that is kept for long has the same figures
 *                                      (nor traced: a trace shows leftover items that are dropped, for example)
 *   a phase begins in the tail         it has a part of the lap, as always, and the last one is of the last phase
 *   something else was reported        it contains the tail
 *   the interval ends in the tail      it is passed on, so that live observers have it; if something is reported
 *                                      afterwards, the tail from the end of the work on is a lap of its own
 * A step that is open at the end of the work was reported in the tail: it ends there.
 */
#ifndef ENGINE_MEASURE_LAPS_H
#define ENGINE_MEASURE_LAPS_H

#include "engine/state/run_state.h"

/* Creates pipeline->laps; the first lap begins at start_ns. WEIR_OK or WEIR_ENOMEM. */
int weir__laps_init(weir_pipeline *pipeline, int64_t start_ns);
void weir__laps_destroy(weir_pipeline *pipeline);

/* When to call weir__laps_take(). INT64_MAX = at the end of the run. */
int64_t weir__laps_due_ns(const weir_pipeline *pipeline);

/* Passes a lap to the outbox if it is due; and those that marks have ended, if lap_ended. */
void weir__laps_take(weir_pipeline *pipeline, bool lap_ended);

/* The work has ended: the tail begins. */
void weir__laps_begin_tail(weir_pipeline *pipeline);

/* Takes the last lap: the tail is over. Returns when the run ended, by weir_clock_ns(). */
int64_t weir__laps_take_last(weir_pipeline *pipeline);

/* The longest time between two checks for a suspension of the process. */
#define WEIR_HEARTBEAT_NS (250 * WEIR_MILLISECOND)

/* Suspensions are looked for from now on. */
void weir__laps_note_start(weir_pipeline *pipeline);

/* Called each time after the service thread has waited until due_ns, or with due_ns = 0 after it has worked. */
void weir__laps_note_progress(weir_pipeline *pipeline, int64_t due_ns);

/* The longest that the process may have been suspended since the call before: 0, or the time between two notes. Suspensions
   after *until_ns are told by a later call. */
int64_t weir__laps_take_suspension(weir_pipeline *pipeline, int64_t *until_ns);

/* The wall-clock time at the monotonic time at_ns. */
int64_t weir__laps_unix_at_ns(weir_pipeline *pipeline, int64_t at_ns);

#endif
