/*
 * The sums of the current lap: nodes, queues and pools have the metrics, the lap has the histograms that they record into. A
 * change of the current lap moves the sums. All functions need the lock.
 */
#ifndef ENGINE_MEASURE_LIVE_SUMS_H
#define ENGINE_MEASURE_LIVE_SUMS_H

#include "engine/measure/lap_figures.h"

/* Moves the sums up to now into the lap; open spans are closed, and continue with the next load. */
void weir__live_sums_save_locked(weir_pipeline *pipeline, weir__lap_figures *to);

/* Moves the sums out of the lap: what is measured from now on is added to them. */
void weir__live_sums_load_locked(weir_pipeline *pipeline, const weir__lap_figures *from);

/* Adds the time of the pool's threads up to now to its metrics. */
void weir__pool_settle_locked(weir_pool *pool);

#endif
