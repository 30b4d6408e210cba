/* Signals that stop pipelines. */
#ifndef ENGINE_RUN_SIGNALS_H
#define ENGINE_RUN_SIGNALS_H

#include "engine/state/run_state.h"

/* After this no handler uses the pipeline. */
void weir__signals_forget(weir_pipeline *pipeline);

#endif
