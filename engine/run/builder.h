/* A description of a pipeline, as the files see it that make one description of another. */
#ifndef ENGINE_RUN_BUILDER_H
#define ENGINE_RUN_BUILDER_H

#include "engine/run/node.h"

/* A route without its join. */
typedef struct open_route {
    weir_node *node;
    uint32_t branches_begun;
    uint32_t ends_before; /* open ends outside of it */
} open_route;

struct weir_builder {
    weir_node **nodes; /* upstream first */
    uint32_t num_nodes;
    weir__queue **ends; /* open ends; includes those of finished branches of a route */
    uint32_t num_ends, room_for_ends;
    open_route *routes; /* innermost last */
    uint32_t num_routes;
    bool has_sink;
    weir_error error; /* the first error */
};

/* Both return WEIR_OK or WEIR_ENOMEM. The builder owns the node afterwards. */
int weir__builder_append(weir_builder *builder, weir_node *node);
int weir__builder_open_end(weir_builder *builder, weir__queue *end);

/* Sets the status and the stage of builder->error. */
void weir__builder_remember_error(weir_builder *builder, int status, const char *stage);

/* Appends a source or stage with the operation and the config of `node`, one of another description, but with these options. */
void weir__builder_add_copy(weir_builder *builder, const weir_node *node, const weir_stage_options *options);

/*
 * Copies the nodes upstream of one, whose results they then make; only the sink is missing. Their stages keep the
 * order of their inputs. So each pipeline that is built of such a copy makes the same results in the same order. An
 * exception is a merge or an operation that decides by time. The node is no source. WEIR_OK; WEIR_EUNSUPPORTED: it is
 * in a branch of a route, which decides what it gets; or WEIR_ENOMEM. *error is filled. What is wrong in the copy
 * itself, weir_builder_build() reports.
 */
int weir__builder_copy_upstream(const weir_builder *builder, uint32_t index, weir_builder **made, weir_error *error);

#endif
