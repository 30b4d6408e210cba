/*
 * Reuses large blocks of memory: the page faults of new memory cost more than writing to it. A pool exists until it
 * and all of its blocks have been freed. Internal. Any thread; no call waits.
 */
#ifndef STAGES_MEMORY_BLOCK_POOL_H
#define STAGES_MEMORY_BLOCK_POOL_H

#include <stddef.h>

#include <weir/collate.h>

typedef struct weir_block_pool weir_block_pool;

typedef struct weir_block {
    void *data;
    size_t num_bytes; /* at least as requested */
    weir_block_pool *pool;
} weir_block;

/* memory: as in weir_collate_config, copied. NULL = out of memory. */
weir_block_pool *weir__block_pool_new(const weir_collate_config *memory);

/* Blocks in use stay valid. NULL is fine. */
void weir__block_pool_free(weir_block_pool *pool);

/* NULL = out of memory. The contents are undefined. */
weir_block *weir__block_get(weir_block_pool *pool, size_t num_bytes);

/* NULL is fine. */
void weir__block_put(weir_block *block);

#endif
