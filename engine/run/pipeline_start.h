/* Starts a pipeline from its nodes. */
#ifndef ENGINE_RUN_PIPELINE_START_H
#define ENGINE_RUN_PIPELINE_START_H

#include "engine/state/run_state.h"

/* Takes ownership of the array of nodes, also on failure; then *made is NULL. */
int weir__pipeline_start(weir_node **nodes, uint32_t num_nodes, const weir_pipeline_options *options,
                         weir_pipeline **made, weir_error *error);

/* Finds a node by its name in the statistics or in its options. NULL = not found. */
weir_node *weir__pipeline_find(const weir_pipeline *pipeline, const char *stage);

#endif
