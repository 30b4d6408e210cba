/*
 * The samples of a result: on the heap or, in a child process of weir_isolated, in memory that can be passed to the
 * parent without a copy. Internal.
 */
#ifndef WEIR_STAGES_SHARED_DATA_H
#define WEIR_STAGES_SHARED_DATA_H

#include <stddef.h>

/* Memory that several processes can map. One owner at a time. */
typedef struct weir_shared_data {
    void *data;
    size_t size_bytes;
    int fd; /* -1 = not needed any more */
} weir_shared_data;

/* From now on all results of this process are in shared memory. Call it before any pipeline runs. */
void weir_shared_data_enable(void);

/* Like realloc(), for `data` that is described by *shared (NULL = heap). NULL = out of memory; nothing has changed. */
void *weir_shared_data_resize(void *data, weir_shared_data **shared, size_t size_bytes);

/* Frees both. */
void weir_shared_data_free(void *data, weir_shared_data *shared);

/* Shared memory of that size, filled with zeros. NULL = out of memory, with errno set. */
weir_shared_data *weir_shared_data_new(size_t size_bytes);

/* Maps what another process has sent and prevents changes of its size. Takes over the descriptor in any case. NULL =
   failed, or it has fewer than size_bytes. */
weir_shared_data *weir_shared_data_receive(int fd, size_t size_bytes);

/* The same for weir_bytes.release. NULL is fine. */
void weir_shared_data_release(void *shared);

#endif
