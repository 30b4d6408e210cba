#include "stages/memory/block_pool.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Consumers hold few batches at a time. */
enum { MAX_FREE = 8, ALIGNMENT = 64 };

struct weir_block_pool {
    weir_collate_config config; /* for its memory; immutable after init */
    atomic_size_t references;   /* the stage's, and one for each block in use */
    _Atomic(weir_block *) free[MAX_FREE];
};

static void *allocate_block(const weir_block_pool *pool, size_t num_bytes)
{
    if (pool->config.memory.allocate)
        return pool->config.memory.allocate(pool->config.memory.self, num_bytes);
    return aligned_alloc(ALIGNMENT, (num_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

static void block_free(weir_block *block)
{
    if (!block)
        return;
    const weir_collate_config *config = &block->pool->config;
    if (config->memory.allocate)
        config->memory.release(config->memory.self, block->data, block->num_bytes);
    else
        free(block->data);
    free(block);
}

weir_block_pool *weir__block_pool_new(const weir_collate_config *config)
{
    weir_block_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->config = *config;
    atomic_init(&pool->references, 1);
    return pool;
}

static void let_go(weir_block_pool *pool)
{
    if (atomic_fetch_sub_explicit(&pool->references, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; i < MAX_FREE; i++)
        block_free(atomic_load(&pool->free[i]));
    free(pool);
}

void weir__block_pool_free(weir_block_pool *pool)
{
    if (pool)
        let_go(pool);
}

static weir_block *block_new(weir_block_pool *pool, size_t num_bytes)
{
    weir_block *block = malloc(sizeof *block);
    if (!block)
        return NULL;
    *block = (weir_block){ .data = allocate_block(pool, num_bytes), .num_bytes = num_bytes, .pool = pool };
    if (block->data)
        return block;
    free(block);
    return NULL;
}

weir_block *weir__block_get(weir_block_pool *pool, size_t num_bytes)
{
    weir_block *block = NULL;
    for (int i = 0; i < MAX_FREE && !block; i++) {
        block = atomic_exchange(&pool->free[i], NULL);
        if (block && (block->num_bytes < num_bytes || block->num_bytes / 2 > num_bytes)) { /* sizes have changed */
            block_free(block);
            block = NULL;
        }
    }
    if (!block)
        block = block_new(pool, num_bytes);
    if (block)
        atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);
    return block;
}

void weir__block_put(weir_block *block)
{
    if (!block)
        return;
    weir_block_pool *pool = block->pool;
    for (int i = 0; i < MAX_FREE && block; i++) {
        weir_block *none = NULL;
        if (atomic_compare_exchange_strong(&pool->free[i], &none, block))
            block = NULL;
    }
    block_free(block);
    let_go(pool);
}
