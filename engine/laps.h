/* Taking laps: on the service thread. */
#ifndef WEIR_LAPS_H
#define WEIR_LAPS_H

#include "state.h"

struct weir_taken_lap;

/* pipeline->laps; start_ns is where the first lap begins. WEIR_OK or WEIR_ENOMEM. */
int weir_laps_init(weir_pipeline *pipeline, int64_t start_ns);
void weir_laps_destroy(weir_pipeline *pipeline);

/* When the next lap, or the next part of a long one, is to be taken. INT64_MAX = at the end of the run. */
int64_t weir_laps_due_ns(const weir_pipeline *pipeline);

/* Takes a lap if it is time, or if `now`, and hands it to the observers. */
void weir_laps_take(weir_pipeline *pipeline, bool now);

/* At the end of the run. */
void weir_laps_take_last(weir_pipeline *pipeline);

/* The service thread looks at least this often at whether the process was suspended. */
#define WEIR_HEARTBEAT_NS (250 * WEIR_MILLISECOND)

/* To be called each time the service thread has waited, and when it has worked: it was to come here at due_ns. */
void weir_laps_note_progress(weir_pipeline *pipeline, int64_t due_ns);

/* What the clock of the wall shows when the monotonic one shows at_ns. */
int64_t weir_laps_unix_at_ns(weir_pipeline *pipeline, int64_t at_ns);

#endif
