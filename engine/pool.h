/* The pools of threads that run tasks. */
#ifndef WEIR_POOL_H
#define WEIR_POOL_H

#include "state.h"

/* owner: the stage with private threads; NULL = the pipeline's pool. *pool must be freed also after a failure. */
int weir_pool_new(weir_pipeline *pipeline, weir_node *owner, uint32_t num_workers, weir_pool **pool,
                  weir_error *error);
int weir_pool_start(weir_pool *pool, weir_error *error);
void weir_pool_join(weir_pool *pool);
void weir_pool_free(weir_pool *pool);

#endif
