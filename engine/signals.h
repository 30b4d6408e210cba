/* Signals that stop pipelines. */
#ifndef WEIR_SIGNALS_H
#define WEIR_SIGNALS_H

#include "state.h"

/* No handler touches the pipeline any more. */
void weir_signals_forget(weir_pipeline *pipeline);

#endif
