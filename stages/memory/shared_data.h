/*
 * The samples of a result: on the heap or, in a child process of weir_isolated, in memory that is passed to the parent
 * without a copy. New shared memory is expensive: it is zeroed, and mapped page by page in both processes. So a child
 * reuses the blocks that the parent has released. Internal.
 */
#ifndef STAGES_MEMORY_SHARED_DATA_H
#define STAGES_MEMORY_SHARED_DATA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/sibling.h"

/* How many blocks a child keeps for reuse. */
enum { WEIR_SHARED_BLOCKS = 8 };

/* One process's view of memory that several processes map. */
typedef struct weir_shared_data {
    void *data;
    size_t size_bytes;    /* as requested */
    size_t room_bytes;    /* as mapped */
    int fd;               /* -1 = not needed any more */
    int32_t number;       /* of a block that is reused, from 0; -1 = it is not */
    bool is_kept;         /* this process keeps it for reuse */
    bool is_sent;         /* another process will release it */
    bool is_known;        /* the parent has already mapped it, in this size */
    atomic_bool is_taken; /* another process has sent it, and its owner here has not released it yet */
    atomic_uint references;
} weir_shared_data;

/* From now on all results of this process are in shared memory, and made by one thread at a time. Call it before any
   pipeline runs. */
WEIR_SIBLING_API void weir__shared_data_enable(void);

/* Like realloc(), for `data` that is described by *shared (NULL = heap). NULL = out of memory; nothing has changed. */
void *weir__shared_data_resize(void *data, weir_shared_data **shared, size_t size_bytes);

/* Frees both. */
void weir__shared_data_free(void *data, weir_shared_data *shared);

/* Shared memory of that size, reused if weir__shared_data_enable() was called; the contents are undefined. NULL = out of
   memory, with errno set. */
WEIR_SIBLING_API weir_shared_data *weir__shared_data_new(size_t size_bytes);

/* Maps what another process has sent and prevents that it becomes smaller. Takes over the descriptor in any case. NULL =
   failed, or it has fewer than room_bytes. */
WEIR_SIBLING_API weir_shared_data *weir__shared_data_receive(int fd, size_t room_bytes);

/* An owner gets what another process has sent. False = it has an owner: the other process sends what it may not reuse yet. */
WEIR_SIBLING_API bool weir__shared_data_take(weir_shared_data *shared);

/* The owner does not need it any more: the process that made it may reuse it. Any thread. NULL is fine. */
WEIR_SIBLING_API void weir__shared_data_release(void *shared);

/* Owners in the same process. The memory is unmapped with the last of them; other processes are not told. */
WEIR_SIBLING_API weir_shared_data *weir__shared_data_hold(weir_shared_data *shared);
WEIR_SIBLING_API void weir__shared_data_drop(weir_shared_data *shared);

#endif
