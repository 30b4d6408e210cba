/*
 * Large blocks of memory that are used again: fresh pages cost more than what is written to them. A pool lives as long as it
 * or one of its blocks is held. Internal. Any thread; nothing waits.
 */
#ifndef WEIR_STAGES_BLOCK_POOL_H
#define WEIR_STAGES_BLOCK_POOL_H

#include <stddef.h>

#include <weir/collate.h>

typedef struct weir_block_pool weir_block_pool;

typedef struct weir_block {
    void *data;
    size_t num_bytes; /* at least what was asked for */
    weir_block_pool *pool;
} weir_block;

/* memory: as in weir_collate_config, copied. NULL = out of memory. */
weir_block_pool *weir_block_pool_new(const weir_collate_config *memory);

/* Blocks that are out stay valid. NULL is fine. */
void weir_block_pool_free(weir_block_pool *pool);

/* NULL = out of memory. The contents are anything. */
weir_block *weir_block_get(weir_block_pool *pool, size_t num_bytes);

/* NULL is fine. */
void weir_block_put(weir_block *block);

#endif
