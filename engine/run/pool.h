/* The pools of threads that run tasks. */
#ifndef ENGINE_RUN_POOL_H
#define ENGINE_RUN_POOL_H

#include "engine/state/run_state.h"

/* owner: the stage with private threads; NULL = the pipeline's pool. *pool must be freed also after a failure. */
int weir__pool_new(weir_pipeline *pipeline, weir_node *owner, uint32_t num_threads, weir_pool **pool,
                   weir_error *error);
int weir__pool_start(weir_pool *pool, weir_error *error);
/* Starts further threads, or parks those that are surplus as soon as their step has ended. WEIR_OK, WEIR_ESTOPPED,
   WEIR_ENOMEM or WEIR_ESYSTEM: then there are as many as could be started. */
int weir__pool_resize(weir_pool *pool, uint32_t num_threads, uint32_t *before, uint32_t *now);

void weir__pool_join(weir_pool *pool);
void weir__pool_free(weir_pool *pool);

#endif
