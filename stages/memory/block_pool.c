/*
 * Owners are the program, the stages and the blocks in use; who leaves last frees all. A place of a free block has one
 * owner at a time: it is emptied and filled by atomic exchange.
 */
#include "stages/memory/block_pool.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <weir/struct_copy.h>

/* MAX_FREE: consumers hold few batches at a time. MAX_MISSES: if that many requests in turn had no use for a free
   block, nobody asks for its size any more. If a few stages share an allocator, each asks more often than that. */
enum { MAX_FREE = 8, MAX_MISSES = 32, ALIGNMENT = 64 };

struct weir_allocator {
    weir_allocator_config config; /* immutable after init */
    atomic_size_t owners;
    _Atomic(weir_block *) free[MAX_FREE];
    atomic_size_t free_bytes; /* at least those of these: added before, and subtracted after */
};

static void *allocate_aligned(void *self, size_t num_bytes)
{
    (void)self;
    return aligned_alloc(ALIGNMENT, (num_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

static void free_aligned(void *self, void *data, size_t num_bytes)
{
    (void)self;
    (void)num_bytes;
    free(data);
}

static weir_allocator *allocator_new(const weir_allocator_config *config)
{
    weir_allocator *allocator = calloc(1, sizeof *allocator);
    if (!allocator)
        return NULL;
    allocator->config = *config;
    atomic_init(&allocator->owners, 1);
    return allocator;
}

weir_allocator *weir__allocator_default(void)
{
    return allocator_new(&(weir_allocator_config){ .allocate = allocate_aligned, .free = free_aligned });
}

static int check_allocator(const weir_allocator_config *config, weir_error *error)
{
    if (!config->allocate || !config->free)
        return weir_error_set(error, WEIR_EINVAL, 0, "an allocator needs both allocate and free");
    if (weir_memory_kind_name(config->memory.kind) == weir_memory_kind_name((weir_memory_kind)-1))
        return weir_error_set(error, WEIR_EINVAL, 0, "memory.kind %d is none of WEIR_MEMORY_…",
                              (int)config->memory.kind);
    if (config->memory.device < 0 || (config->memory.device && weir_memory_is_accessible(config->memory)))
        return weir_error_set(error, WEIR_EINVAL, 0, "memory.device %d of %s memory: it must be 0%s",
                              (int)config->memory.device, weir_memory_kind_name(config->memory.kind),
                              weir_memory_is_accessible(config->memory) ? "" : " or more");
    return WEIR_OK;
}

int weir_allocator_new_sized(const weir_allocator_config *given, size_t given_size, weir_allocator **to,
                             weir_error *error)
{
    weir_allocator_config config;
    if (to)
        *to = NULL;
    if (!given || !to)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int rc = weir_struct_copy(&config, sizeof config, given, given_size, "weir_allocator_config", error);
    if (rc == WEIR_OK)
        rc = check_allocator(&config, error);
    if (rc != WEIR_OK)
        return rc;
    *to = allocator_new(&config);
    return *to ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

static void allocator_hold(weir_allocator *allocator)
{
    atomic_fetch_add_explicit(&allocator->owners, 1, memory_order_relaxed);
}

int weir__allocator_use(weir_allocator *allocator, const char *who, weir_error *error)
{
    weir_memory memory = weir_allocator_memory(allocator);
    if (!weir_memory_is_accessible(memory))
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "%s runs on the CPU, which cannot write to %s memory (device %d): give it an allocator "
                              "of host, pinned or managed memory",
                              who, weir_memory_kind_name(memory.kind), (int)memory.device);
    if (allocator)
        allocator_hold(allocator);
    return WEIR_OK;
}

weir_memory weir_allocator_memory(const weir_allocator *allocator)
{
    return allocator ? allocator->config.memory : (weir_memory){ WEIR_MEMORY_HOST, 0 };
}

/* ---- blocks ------------------------------------------------------------------------------------------------------- */

static void block_free(weir_block *block)
{
    if (!block)
        return;
    const weir_allocator_config *config = &block->allocator->config;
    config->free(config->self, block->data, block->num_bytes);
    free(block);
}

void weir_allocator_free(weir_allocator *allocator)
{
    if (!allocator || atomic_fetch_sub_explicit(&allocator->owners, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; i < MAX_FREE; i++)
        block_free(atomic_load(&allocator->free[i]));
    if (allocator->config.close)
        allocator->config.close(allocator->config.self);
    free(allocator);
}

static weir_block *block_new(weir_allocator *allocator, size_t num_bytes)
{
    weir_block *block = malloc(sizeof *block);
    if (!block)
        return NULL;
    *block = (weir_block){ .data = allocator->config.allocate(allocator->config.self, num_bytes),
                           .num_bytes = num_bytes,
                           .allocator = allocator };
    if (block->data)
        return block;
    free(block);
    return NULL;
}

/* In a free place; if there is none, it is freed. */
static void keep_block(weir_allocator *allocator, weir_block *block)
{
    size_t num_bytes = block->num_bytes; /* another thread may free it as soon as it has a place */
    atomic_fetch_add_explicit(&allocator->free_bytes, num_bytes, memory_order_relaxed);
    for (int i = 0; i < MAX_FREE; i++) {
        weir_block *none = NULL;
        if (atomic_compare_exchange_strong(&allocator->free[i], &none, block))
            return;
    }
    atomic_fetch_sub_explicit(&allocator->free_bytes, num_bytes, memory_order_relaxed);
    block_free(block);
}

/* The block, if it suits; otherwise it is kept for others. */
static weir_block *choose_block(weir_allocator *allocator, weir_block *block, size_t num_bytes)
{
    if (block->num_bytes >= num_bytes && block->num_bytes / 2 <= num_bytes) {
        block->num_misses = 0;
        return block;
    }
    if (++block->num_misses < MAX_MISSES)
        keep_block(allocator, block);
    else
        block_free(block);
    return NULL;
}

size_t weir__allocator_free_bytes(const weir_allocator *allocator)
{
    return allocator ? atomic_load_explicit(&allocator->free_bytes, memory_order_relaxed) : 0;
}

weir_block *weir__block_get(weir_allocator *allocator, size_t num_bytes)
{
    weir_block *block = NULL;
    for (int i = 0; i < MAX_FREE && !block; i++) {
        block = atomic_exchange(&allocator->free[i], NULL);
        if (!block)
            continue;
        atomic_fetch_sub_explicit(&allocator->free_bytes, block->num_bytes, memory_order_relaxed);
        block = choose_block(allocator, block, num_bytes);
    }
    if (!block)
        block = block_new(allocator, num_bytes);
    if (block)
        allocator_hold(allocator);
    return block;
}

weir_block *weir__block_lend(void *data)
{
    weir_block *block = calloc(1, sizeof *block);
    if (block)
        block->data = data;
    return block;
}

void weir__block_put(weir_block *block)
{
    if (!block || !block->allocator) {
        free(block);
        return;
    }
    weir_allocator *allocator = block->allocator;
    keep_block(allocator, block);
    weir_allocator_free(allocator); /* a block in use is an owner */
}
