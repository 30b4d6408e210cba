/*
 * Where the consumer is: its mode, its phase and its step, three independent axes of its time. A mark moves it along one of
 * them, at the time of the mark: the thread that marks moves the figures to another lap (lap.h).
 */
#ifndef ENGINE_MEASURE_CONSUMER_POSITION_H
#define ENGINE_MEASURE_CONSUMER_POSITION_H

#include "engine/state/run_state.h"

/* Makes pipeline->position. WEIR_OK or WEIR_ENOMEM. */
int weir__position_new(weir_pipeline *pipeline);

/* Locks the pipeline for a mark. A mark needs a spare lap, and so does the end of the sources, which cannot make one. False =
   out of memory, not locked. */
bool weir__position_lock(weir_pipeline *pipeline);

/* The sources have ended. */
void weir__position_sources_ended_locked(weir_pipeline *pipeline);

/* weir_pipeline_next() returns this status, and an item of this epoch: tells the observers of an epoch that begins or ends. */
void weir__position_change_epoch(weir_pipeline *pipeline, int status, uint64_t epoch);

/* What is open ends: weir_pipeline_free() has begun. */
void weir__position_end(weir_pipeline *pipeline);

#endif
