/* The service thread: laps, deadlines, stalls, and the actions after a stop or a failure. */
#ifndef ENGINE_RUN_SERVICE_H
#define ENGINE_RUN_SERVICE_H

#include "engine/state/run_state.h"

int weir__service_init(weir_pipeline *pipeline, weir_error *error);
void weir__service_destroy(weir_pipeline *pipeline);

int weir__service_start(weir_pipeline *pipeline, weir_error *error);

/* Returns when the run is over and its last lap is in the outbox. */
void weir__service_join(weir_pipeline *pipeline);

#endif
