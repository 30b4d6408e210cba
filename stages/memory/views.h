/*
 * Who else owns a result: the tensors that share its memory. A result has a count of them, which is 0 in a zeroed struct,
 * so that it has one owner. Public structs have it as a plain number, because C++ does not know _Atomic. Internal. Any thread.
 */
#ifndef STAGES_MEMORY_VIEWS_H
#define STAGES_MEMORY_VIEWS_H

#include <stdbool.h>
#include <stdint.h>

/* Adds an owner; the caller is one. */
static inline void weir__views_add(uint32_t *num_views)
{
    __atomic_fetch_add(num_views, 1, __ATOMIC_RELAXED);
}

/* An owner leaves. True: it was the last one, who frees the result. */
static inline bool weir__views_drop(uint32_t *num_views)
{
    return __atomic_fetch_sub(num_views, 1, __ATOMIC_ACQ_REL) == 0;
}

#endif
