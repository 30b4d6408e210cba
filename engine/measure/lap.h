/*
 * A lap: what was measured in one interval while the consumer was in one mode and phase.
 *
 * An interval is the time between two ends of laps. Four things end it:
 *   - stats_interval_ns have passed (lap_taker.c), or a number of steps (steps_per_lap)
 *   - a mode or phase ends that has lasted for a second
 *   - MANY_OPEN laps wait to be taken
 *   - a pause (weir_set_paused()) begins or ends
 * In an interval, the consumer may change its mode and phase often and for a short time. Each mode and phase has one lap, which
 * collects all of its time. So the number of laps depends on the number of modes and phases, not on that of the marks.
 *
 * The life of a lap. Each state has one owner; lap.c makes all changes of state:
 *
 *     state     where it is              who may touch it            its figures
 *     SPARE     laps->spares             pipeline->lock              none
 *     CURRENT   laps->current, which is  pipeline->lock              sums: in the nodes, queues and pools (live_sums.h);
 *               the last of laps->open                               histograms: in the lap
 *     LEFT      laps->open               pipeline->lock              in the lap
 *     TAKEN     a list of lap_taker.c    service thread              the same; shares of what the kernel counts are added,
 *                                                                    spans and counters; histograms are encoded
 *     WAITING   lap_taker->waiting       service thread              the same, until its interval ends
 *     QUEUED    a message (outbox.h)     outbox->lock the list, the  the same; later laps are joined to it if observers are
 *                                        lap who removed it: the     slow
 *                                        service thread to join,
 *                                        the observer thread
 *
 *     weir__lap_new() ─▶ SPARE ─▶ CURRENT ◀─▶ LEFT        weir__laps_switch_locked(): by the thread that marks
 *                                    └────┬─────┘
 *                                       TAKEN             weir__laps_take_locked(): CURRENT is left first
 *                                         │
 *                                      WAITING            weir__lap_add_waiting()
 *                                         │
 *                                      QUEUED             weir__lap_queue(), by weir__outbox_add_lap()
 *                                         │
 *                                  weir__lap_free()       after the observers have got it
 *
 * A lap also ends when it is joined to another one (weir__lap_join()), and from TAKEN or WAITING, if it is not for observers.
 *
 * A mark needs a lap and must not allocate under the lock: it uses a spare one, which weir__position_lock() has made before.
 * The service thread takes laps when their interval has ended, and at least once a minute. So 32 bits are enough for
 * a bucket of a live histogram. What is measured later in the same interval, mode and phase is another lap, and is
 * joined to the one that waits.
 *
 * Invariants, whenever the lock is free:
 *   1. The sums of the current lap are in the nodes, queues and pools; they record into its histograms. Those of laps that
 *      were left are in these. A switch closes open spans at its time and moves the sums. So it costs some ns for
 *      each slot and queue. Each task, item and nanosecond is in exactly one lap.
 *   2. laps->open are in the order in which they were last left; the current one is the last. A lap that ends an interval
 *      is never entered again, nor are those before it.
 *   3. In an interval, no two open laps have the same mode and phase; no two that wait have.
 *
 * What the kernel counts (CPU time, faults, the machine) is read when laps are taken, and divided among them by their time;
 * the CPU time of a stage by its busy time.
 */
#ifndef ENGINE_MEASURE_LAP_H
#define ENGINE_MEASURE_LAP_H

#include "engine/measure/lap_figures.h"
#include "engine/measure/position.h"

typedef enum weir__lap_state { LAP_SPARE, LAP_CURRENT, LAP_LEFT, LAP_TAKEN, LAP_WAITING, LAP_QUEUED } weir__lap_state;

typedef struct weir__lap {
    /* immutable after init */
    const weir_pipeline *pipeline;
    uint64_t id; /* among those of all pipelines */

    /* as its state says */
    weir__lap_state state;
    struct weir__lap *next; /* in the list where it is */
    char mode[MAX_MARK], phase[MAX_MARK];
    uint64_t *ids;      /* its own, then of those joined to it; NULL = its own alone */
    weir_lap info;      /* for observers. Until it is taken: its time until it was last left, and the steps */
    bool ends_interval; /* it is the last one of its interval */
    bool paused;        /* what was measured in a pause: not for observers */
    weir__lap_figures figures;
} weir__lap;

/* The laps of a pipeline that are not taken yet. */
typedef struct weir__laps {
    weir__subjects subjects; /* immutable after init */

    /* guarded by pipeline->lock */
    weir__lap *open, *current; /* all of them; NULL = nothing is measured */
    weir__lap *spares;
    uint32_t num_spares;
    int64_t since_ns;    /* the sums of the current one begin */
    bool interval_ended; /* laps of intervals that have ended wait for the service thread */
    bool tail_marked;    /* the last lap has the tail; see lap_taker.h */
} weir__laps;

/* A spare lap: cleared metrics, and an empty range of steps. NULL = out of memory. */
weir__lap *weir__lap_new(const weir_pipeline *pipeline);
void weir__lap_free(weir__lap *lap); /* and those after it */

bool weir__lap_is_at(const weir__lap *lap, const char *mode, const char *phase);

/* ---- with the lock ---- */

void weir__laps_add_spare_locked(weir__laps *laps, weir__lap *spare);

/* pipeline->position->mode, phase or step has changed: time and figures go to their lap from now on. It is a spare one if the
   interval has none yet; without a spare one, they still go to the current lap. ends_interval: the interval ends, too. */
void weir__laps_switch_locked(weir_pipeline *pipeline, bool ends_interval);

/* Adds a step that has ended to the current lap. */
void weir__laps_add_step_locked(weir_pipeline *pipeline, int64_t step_ns);

/* The laps of the intervals that have ended; with `fresh`, which becomes the current lap, all of them (at first none). Divides
   the CPU time of each stage, and what it has used in other processes, which *outside_cpu_ns gets. */
weir__lap *weir__laps_take_locked(weir_pipeline *pipeline, weir__lap *fresh, int64_t *outside_cpu_ns);

/* Whether a lap of this id has not been taken. Takes the lock. */
bool weir__lap_is_open(weir_pipeline *pipeline, uint64_t id);

/* ---- by the thread that owns it ---- */

/* A lap that was taken, and whose histograms are encoded, waits for the end of its interval as the last one of the
   list. If the list has one of its mode and phase, the two are joined. */
void weir__lap_add_waiting(weir__lap **waiting, weir__lap *lap);

/* A lap that has waited is in a message. */
void weir__lap_queue(weir__lap *lap);

/* Extends `first` to the end of `second`, and frees `second`. If out of memory, the percentiles are those of
   `first` alone; all sums are exact. */
void weir__lap_join(weir__lap *first, weir__lap *second);

/* What observers get of a lap: extends it to the end of the next one. */
void weir__lap_info_extend(weir_lap *first, const weir_lap *next);

#endif
