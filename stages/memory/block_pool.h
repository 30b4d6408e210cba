/*
 * The blocks of an allocator (weir/allocator.h), which are reused: the page faults of new memory cost more than writing to
 * it, and pinning costs even more. Internal. Any thread; no call waits.
 */
#ifndef STAGES_MEMORY_BLOCK_POOL_H
#define STAGES_MEMORY_BLOCK_POOL_H

#include <stddef.h>

#include <weir/allocator.h>

typedef struct weir_block {
    void *data;
    size_t num_bytes;          /* at least as requested */
    unsigned num_misses;       /* requests in turn that it did not suit, while it was free */
    weir_allocator *allocator; /* NULL = the data is the program's, and is not freed */
} weir_block;

/* One of the C library's memory, aligned to 64 bytes. NULL = out of memory. */
weir_allocator *weir__allocator_default(void);

/* Adds a stage as an owner, which calls weir_allocator_free(). WEIR_OK, also if it is NULL; or WEIR_EUNSUPPORTED with *error
   filled: the CPU, on which `who` runs, cannot touch its memory. */
int weir__allocator_use(weir_allocator *allocator, const char *who, weir_error *error);

/* The bytes of its blocks that are free, to be reused; of NULL, 0. */
size_t weir__allocator_free_bytes(const weir_allocator *allocator);

/* NULL = out of memory. The contents are undefined. */
weir_block *weir__block_get(weir_allocator *allocator, size_t num_bytes);

/* Stands for memory that the program keeps; num_bytes is 0. NULL = out of memory. */
weir_block *weir__block_lend(void *data);

/* NULL is fine. */
void weir__block_put(weir_block *block);

#endif
