/*
 * Samples the cost of single items. A task hook collects them on the tasks' threads. The slowest and a sample are
 * passed to the writer at the end of each lap of their stage. So a few rows show which files are slow.
 *
 * A sampler has one lock; nothing but malloc and free is called under it. Entries are passed to the buffer with no
 * lock held.
 */
#ifndef STATS_RECORD_ITEM_SAMPLER_H
#define STATS_RECORD_ITEM_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include <weir/sqlite.h>

#include "stats/record/record.h"

typedef struct weir_item_sampler {
    /* immutable after init */
    weir_sqlite_writer *writer;
    weir_sqlite_items options;
    struct weir_item_sampler *next; /* the writer's other samplers */
    uv_mutex_t lock;

    /* guarded by lock: of the current lap */
    weir_record_entry **slowest; /* options.num_slowest places, in no order; only those of the lap are set */
    uint32_t num_slowest;
    weir_record_entry **sample; /* options.num_sampled places */
    uint32_t num_sampled;
    uint64_t num_seen; /* items considered for the sample */
    uint64_t random;
} weir_item_sampler;

/* NULL = out of memory, or a lock cannot be created. */
weir_item_sampler *weir__item_sampler_new(weir_sqlite_writer *writer, const weir_sqlite_items *options);
void weir__item_sampler_free(weir_item_sampler *items);

/* The end of a task hook; self is the weir_item_sampler. */
int weir__item_sampler_end(void *self, void *state, weir_task *task, const weir_task_end *end);

/* Passes the selected items of that stage (NULL = all stages) to the writer's buffer. */
void weir__item_sampler_flush(weir_item_sampler *items, const char *stage);

#endif
