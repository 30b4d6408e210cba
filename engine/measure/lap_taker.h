/*
 * Takes laps (lap.h) and passes them on. Service thread only.
 *
 * The end of a run. The work has ended when no task is left and all results are delivered or the pipeline was stopped
 * (core.over). The tail is the time from then until weir_pipeline_free() begins: the consumer may still report steps,
 * phases, spans and counters. The laps of the interval in which the work ends wait until the tail is over, and are then
 * the last ones:
 *   nothing was reported in the tail   they end with the work, so a pipeline that is kept for long has the same figures
 *                                      (nor traced: a trace shows leftover items that are dropped, for example)
 *   a phase begins in the tail         it has a lap, as always, and the last lap is of the last phase
 *   something else was reported        the last lap contains the tail
 *   the interval ends in the tail      they are passed on, so that live observers have them. If something is reported
 *                                      afterwards, the tail from the end of the work on is a lap of its own
 * A step that is open at the end of the work was reported in the tail: it ends there.
 */
#ifndef ENGINE_MEASURE_LAP_TAKER_H
#define ENGINE_MEASURE_LAP_TAKER_H

#include "engine/measure/kernel_readings.h"
#include "engine/measure/lap.h"
#include "engine/measure/suspension.h"
#include "engine/measure/wait_looks.h"
#include "engine/measure/wall_clock.h"

/* Owned by the service thread. */
typedef struct weir__lap_taker {
    weir__lap *waiting;  /* those of the interval that goes on, in the order in which they were last left */
    uint64_t number;     /* of the next lap that is passed on */
    int64_t start_ns;    /* what was measured up to this time has been taken */
    int64_t reported_ns; /* laps up to this time have been passed on */
    int64_t due_ns;      /* end of the interval; INT64_MAX = the end of the run */
    int64_t next_ns;     /* the first multiple of stats_interval_ns not yet reached */
    uint64_t num_asked;  /* the last request that was served; see lap_request.c */
    bool in_tail;        /* what was measured up to the end of the work has been taken */
    uint64_t num_traced; /* records of the engine when laps were last taken */
    weir__wall_clock wall_clock;
    weir__suspension suspension;
    weir__kernel_readings kernel;
    weir__wait_looks looks;
} weir__lap_taker;

/* Creates pipeline->laps and pipeline->lap_taker; the first lap begins at start_ns. WEIR_OK or WEIR_ENOMEM. */
int weir__laps_init(weir_pipeline *pipeline, int64_t start_ns);
void weir__laps_destroy(weir_pipeline *pipeline);

/* When to call weir__laps_take(). INT64_MAX = at the end of the run. */
int64_t weir__laps_due_ns(const weir_pipeline *pipeline);

/* Passes the laps of the interval to the outbox if its end is due, or was asked for; and those of intervals that marks have ended,
   if interval_ended. */
void weir__laps_take(weir_pipeline *pipeline, bool interval_ended);

/* The wall-clock time at the monotonic time at_ns. Also before the service thread starts. */
int64_t weir__laps_unix_at_ns(weir_pipeline *pipeline, int64_t at_ns);

/* The work has ended: the tail begins. */
void weir__laps_begin_tail(weir_pipeline *pipeline);

/* Takes the last laps: the tail is over. Returns when the run ended, by weir_clock_ns(). */
int64_t weir__laps_take_last(weir_pipeline *pipeline);

#endif
