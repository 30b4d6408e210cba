/*
 * What single items cost: collected by a task hook on the tasks' threads, chosen, and handed to the writer at the end of
 * each lap of their stage, so that few rows say which files are slow.
 *
 * A collector has one lock; nothing but malloc and free is called under it. Entries are handed to the buffer with no lock
 * held.
 */
#ifndef WEIR_ITEM_SAMPLER_H
#define WEIR_ITEM_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include <weir/sqlite.h>

#include "record.h"

typedef struct weir_item_sampler {
    /* immutable after init */
    weir_sqlite_writer *writer;
    weir_sqlite_items options;
    struct weir_item_sampler *next; /* the writer's other ones */
    uv_mutex_t lock;

    /* guarded by lock: of the lap that runs */
    weir_entry **slowest; /* options.num_slowest places, in no order; only those of the lap are set */
    uint32_t num_slowest;
    weir_entry **sample; /* options.num_sampled places */
    uint32_t num_sampled;
    uint64_t num_seen; /* items that could have come into the sample */
    uint64_t random;
} weir_item_sampler;

/* NULL = out of memory, or no lock is to be had. */
weir_item_sampler *weir_item_sampler_new(weir_sqlite_writer *writer, const weir_sqlite_items *options);
void weir_item_sampler_free(weir_item_sampler *items);

/* The end of a task hook; self is the weir_item_sampler. */
int weir_item_sampler_end(void *self, void *state, weir_task *task, const weir_task_end *end);

/* Hands what was chosen of that stage (NULL = of all) to the writer's buffer. */
void weir_item_sampler_flush(weir_item_sampler *items, const char *stage);

#endif
