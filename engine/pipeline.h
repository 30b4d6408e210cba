/* From nodes to a running pipeline. */
#ifndef WEIR_PIPELINE_INTERNAL_H
#define WEIR_PIPELINE_INTERNAL_H

#include "internal.h"

/* Takes the array of nodes over, also when it fails; then *made is NULL. */
int weir_pipeline_start(weir_node **nodes, uint32_t num_nodes, const weir_pipeline_options *options,
                        weir_pipeline **made, weir_error *error);

#endif
