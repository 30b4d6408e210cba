/* From nodes to a running pipeline. */
#ifndef WEIR_PIPELINE_START_H
#define WEIR_PIPELINE_START_H

#include "state.h"

/* Takes the array of nodes over, also when it fails; then *made is NULL. */
int weir_pipeline_start(weir_node **nodes, uint32_t num_nodes, const weir_pipeline_options *options,
                        weir_pipeline **made, weir_error *error);

/* By its name in the statistics or in its options. NULL = there is none. */
weir_node *weir_pipeline_find(const weir_pipeline *pipeline, const char *stage);

#endif
