/*
 * Where the consumer is: its mode, its phase and its step, three independent axes of its time. A mark moves it along one of
 * them, at the time of the mark: the thread that marks moves the figures to another part of the lap (part.h).
 */
#ifndef ENGINE_MEASURE_CONSUMER_POSITION_H
#define ENGINE_MEASURE_CONSUMER_POSITION_H

#include "run_state.h"

/* The sources have ended. */
void weir__position_sources_ended_locked(weir_pipeline *pipeline);

/* The consumer's last step ends: weir_pipeline_free() has begun. */
void weir__position_end_step(weir_pipeline *pipeline);

#endif
