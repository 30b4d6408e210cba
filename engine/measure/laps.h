/* Takes laps. Service thread only. */
#ifndef WEIR_LAPS_H
#define WEIR_LAPS_H

#include "run_state.h"

struct weir_taken_lap;

/* Creates pipeline->laps; the first lap begins at start_ns. WEIR_OK or WEIR_ENOMEM. */
int weir_laps_init(weir_pipeline *pipeline, int64_t start_ns);
void weir_laps_destroy(weir_pipeline *pipeline);

/* When to take the next lap, or the next part of a long lap. INT64_MAX = at the end of the run. */
int64_t weir_laps_due_ns(const weir_pipeline *pipeline);

/* Takes a lap if it is due, or if `now`, and passes it to the outbox. */
void weir_laps_take(weir_pipeline *pipeline, bool now);

/* Takes the last lap, at the end of the run. */
void weir_laps_take_last(weir_pipeline *pipeline);

/* The longest time between two checks for a suspension of the process. */
#define WEIR_HEARTBEAT_NS (250 * WEIR_MILLISECOND)

/* Suspensions are looked for from now on. */
void weir_laps_note_start(weir_pipeline *pipeline);

/* Called each time after the service thread has waited until due_ns, and after it has worked (due_ns = 0). */
void weir_laps_note_progress(weir_pipeline *pipeline, int64_t due_ns);

/* The wall-clock time at the monotonic time at_ns. */
int64_t weir_laps_unix_at_ns(weir_pipeline *pipeline, int64_t at_ns);

#endif
