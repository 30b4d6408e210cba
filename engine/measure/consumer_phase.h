/* The position of the consumer: steps and phases. A change of phase ends the lap, on the service thread. */
#ifndef ENGINE_MEASURE_CONSUMER_PHASE_H
#define ENGINE_MEASURE_CONSUMER_PHASE_H

#include "run_state.h"

void weir__phase_init(weir_consumer_phase *phase);

/* The sources have ended. */
void weir__phase_sources_ended_locked(weir_pipeline *pipeline);

/* The consumer's last step ends: weir_pipeline_free() has begun. */
void weir__phase_end_run(weir_pipeline *pipeline);

/* Called when the lap ends: *ended becomes the phase it belongs to. */
void weir__phase_lap_ended_locked(weir_pipeline *pipeline, weir_consumer_phase *ended);

#endif
