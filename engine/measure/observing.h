/* The observer thread. */
#ifndef ENGINE_MEASURE_OBSERVING_H
#define ENGINE_MEASURE_OBSERVING_H

#include <stdio.h>

#include "engine/measure/reporting.h"

/* Makes pipeline->reporting, with its outbox. 0 or a UV_ error. */
int weir__reporting_new(weir_pipeline *pipeline);
void weir__reporting_free(weir_pipeline *pipeline);

/* The run is over: after this only events of observers are added to the outbox. */
void weir__reporting_end(weir_pipeline *pipeline, int status, int64_t end_unix_ns);

/* Copies the observers and attaches them. They are detached by weir__observing_destroy(), also after a failure. */
int weir__observing_init(weir_pipeline *pipeline, const weir_pipeline_options *options, weir_error *error);
void weir__observing_destroy(weir_pipeline *pipeline);

/* Calls the observers' function `mark`, on this thread. */
void weir__observing_mark(weir_pipeline *pipeline, weir_mark_kind kind, bool begins, int64_t number,
                          const char *name);

/* Writes the order of a merge with its weights: "weighted 3 1"; nothing if the node has one input. */
void weir__merge_order_write(const weir_node *node, FILE *out);

/* Starts the thread. It calls no observer before the outbox has a message. */
int weir__observing_start(weir_pipeline *pipeline, weir_error *error);

/* Returns when all messages of the outbox, which must be closed, were delivered. */
void weir__observing_join(weir_pipeline *pipeline);

#endif
