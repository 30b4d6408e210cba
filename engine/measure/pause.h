/* Pauses: see weir_set_paused(). */
#ifndef ENGINE_MEASURE_PAUSE_H
#define ENGINE_MEASURE_PAUSE_H

#include "run_state.h"

/* The pipeline takes part in pauses from here to there: before its tasks start, before the run is closed. */
void weir__pause_add(weir_pipeline *pipeline);
void weir__pause_remove(weir_pipeline *pipeline);

#endif
