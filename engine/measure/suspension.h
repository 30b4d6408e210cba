/* For how long the process did not run: it was stopped, or the machine slept. Service thread only. */
#ifndef ENGINE_MEASURE_SUSPENSION_H
#define ENGINE_MEASURE_SUSPENSION_H

#include <weir/clock.h>

#include "engine/state/kernel_stats.h"

/* The longest time between two checks for a suspension of the process. */
#define WEIR_HEARTBEAT_NS (250 * WEIR_MILLISECOND)

typedef struct weir__suspension {
    int64_t suspended_ns;             /* for the laps: since some were taken */
    int64_t not_taken_ns;             /* see weir__suspension_take() */
    int64_t asleep_ns;                /* weir__machine_asleep_ns() */
    int64_t noted_ns;                 /* suspensions until then are counted */
    int64_t service_read_ns;          /* when `service` was read */
    weir_thread_kernel_stats service; /* of the service thread */
} weir__suspension;

/* How long the machine has slept: CLOCK_BOOTTIME minus CLOCK_MONOTONIC. 0 where it is not known. Any thread. */
int64_t weir__machine_asleep_ns(void);

/* Suspensions are looked for from now on. */
void weir__suspension_note_start(weir__suspension *own);

/* Called each time after the service thread has waited until due_ns, or with due_ns = 0 after it has worked. */
void weir__suspension_note(weir__suspension *own, int64_t due_ns);

/* The same without a sleep of the machine; now_ns is the time of the call. */
void weir__suspension_note_at(weir__suspension *own, int64_t due_ns, int64_t now_ns);

/* The longest that the process may have been suspended since the call before: 0, or the time between two notes. A
   later call reports suspensions after *until_ns. */
int64_t weir__suspension_take(weir__suspension *own, int64_t *until_ns);

#endif
