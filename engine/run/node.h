/* Creates and frees nodes. */
#ifndef ENGINE_RUN_NODE_H
#define ENGINE_RUN_NODE_H

#include "engine/state/run_state.h"

typedef enum node_kind { NODE_SOURCE, NODE_STAGE, NODE_ROUTE, NODE_MERGE, NODE_JOIN, NODE_SINK } node_kind;

/* Describes a node, in addition to its options. */
typedef struct weir_node_spec {
    node_kind kind;
    const weir_op *op; /* NULL = passes items on without an operation */
    const void *config;
    size_t config_size; /* in the program; of the operation, it is op->config_size */
    weir__queue **ins;
    uint32_t num_ins;
    uint32_t num_outs;
    uint32_t look_ahead; /* of a route, see weir__core_node */
} weir_node_spec;

/* The name from the options, or else of the operation, or else of the kind. */
const char *weir__node_name(const weir_node_spec *spec, const weir_stage_options *options);

/* Copies the options and the config, and checks them. *made must be freed also after a failure. */
int weir__node_new(const weir_node_spec *spec, const weir_stage_options *options, weir_node **made,
                   weir_error *error);

node_kind weir__node_kind(const weir_node *node);

/* What weir__node_new() would need to make such a node, which is in no pipeline yet. ins and all pointers are the node's. */
weir_node_spec weir__node_spec(const weir_node *node);
weir_stage_options weir__node_options(const weir_node *node);

int weir__node_check_max_failures(const weir_max_failures *max, weir_error *error);
int weir__node_check_task_hooks(const weir_task_hook *hooks, size_t num_hooks, weir_error *error);
int weir__node_check_thread_hooks(const weir_thread_hook *hooks, size_t num_hooks, weir_error *error);

/* Sets the index of the node, its name in the statistics, and what it inherits from the pipeline options. */
int weir__node_place(weir_node *node, weir_pipeline *pipeline, uint32_t index, const weir_pipeline_options *options,
                     weir_error *error);

/* Creates the slots. */
int weir__node_make_slots(weir_node *node, weir_error *error);

/* number: among the slots of the node. NULL = out of memory. */
weir_task *weir__slot_new(weir_node *node, uint32_t number);
void weir__slot_free(weir_task *slot);

/* Also frees the workers. No thread may be running. NULL is accepted. */
void weir__node_free(weir_node *node);

#endif
