/* Where the consumer is in its job: steps and phases. A change of phase ends the lap, on the service thread. */
#ifndef WEIR_CONSUMER_PHASE_H
#define WEIR_CONSUMER_PHASE_H

#include "state.h"

void weir_phase_init(weir_consumer_phase *phase);

/* The sources have ended. */
void weir_phase_sources_ended_locked(weir_pipeline *pipeline);

/* The lap ends: *ended is the phase it was in. */
void weir_phase_lap_ended_locked(weir_pipeline *pipeline, weir_consumer_phase *ended);

#endif
