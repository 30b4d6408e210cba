/* The thread that calls the observers. */
#ifndef WEIR_OBSERVING_H
#define WEIR_OBSERVING_H

#include "state.h"

/* Copies the observers and attaches them. They are detached by weir_observing_destroy(), also after a failure. */
int weir_observing_init(weir_pipeline *pipeline, const weir_pipeline_options *options, weir_error *error);
void weir_observing_destroy(weir_pipeline *pipeline);

/* Starts the thread. It tells nothing before the outbox has a message. */
int weir_observing_start(weir_pipeline *pipeline, weir_error *error);

/* Returns when the outbox, which is closed, has been told to the end. */
void weir_observing_join(weir_pipeline *pipeline);

#endif
