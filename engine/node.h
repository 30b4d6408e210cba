/* Making and freeing nodes. */
#ifndef WEIR_NODE_H
#define WEIR_NODE_H

#include "internal.h"

typedef enum node_kind { NODE_SOURCE, NODE_STAGE, NODE_SINK } node_kind;

/* Copies the options and the config, and checks them; op is NULL for a sink. *made must be freed also after a
   failure. */
int node_new(node_kind kind, const weir_op *op, const void *config, const weir_stage_options *options,
             weir_node **made, weir_error *error);

/* Gives the node its place, its name in the statistics, and what it inherits from the pipeline's options. */
int node_place(weir_node *node, weir_pipeline *pipeline, uint32_t index, const weir_pipeline_options *options,
               weir_error *error);

/* Makes the slots. */
int node_make_slots(weir_node *node, weir_error *error);

/* Frees the workers, too. No thread may run any more. NULL is fine. */
void node_free(weir_node *node);

#endif
