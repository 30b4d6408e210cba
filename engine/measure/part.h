/*
 * What is measured of a lap while the consumer is in one mode and phase.
 *
 * A lap (weir/observer.h) has one mode and phase. Between two ends of laps the consumer may change both, often and for a
 * short time; each mode and phase then has one part, which collects all of its stretches, and becomes a lap. So the number of
 * laps depends on the number of modes and phases, not on that of the marks.
 *
 * What the kernel counts (CPU time, faults, the machine) is read when parts are taken, and divided among them by their time;
 * the CPU time of a stage by its busy time.
 */
#ifndef ENGINE_MEASURE_PART_H
#define ENGINE_MEASURE_PART_H

#include "spans.h"

/* An encoded histogram; NULL = empty. */
typedef struct weir_stored_histogram {
    uint8_t *bytes;
    size_t size_bytes;
} weir_stored_histogram;

/* A span or counter of user code. */
typedef struct weir_part_mark {
    const weir_span_name *name;
    union {
        weir_span_metrics span;
        weir_counter_metrics counter; /* name->counter is not NULL */
    };
    weir_stored_histogram times; /* of a span */
} weir_part_mark;

typedef struct weir_part {
    /* immutable after init */
    const weir_pipeline *pipeline;
    uint64_t id; /* among those of all pipelines */
    char mode[MAX_MARK];

    /* guarded by pipeline->lock until it is taken; then one thread at a time */
    struct weir_part *next;
    char phase[MAX_MARK];
    weir_lap lap;               /* until it is taken: the time of its stretches that have ended, and the steps */
    bool ends_lap;              /* it is the last one of its lap */
    weir_task_metrics *nodes;   /* one for each node */
    weir_queue_metrics *queues; /* one for each queue, in the order of nodes */
    weir_pool_metrics *pools;   /* one for each pool */
    weir_span_metrics steps;    /* that ended */
    weir_live_histogram *times; /* run times of each node, put and get times of each queue, latencies, steps */

    /* since it was taken */
    weir_process_metrics process;
    weir_machine_metrics machine;
    weir_stored_histogram *stored; /* instead of `times`, which is NULL */
    weir_part_mark *marks;
    size_t num_marks;
} weir_part;

static inline size_t part_num_stored(const weir_pipeline *pipeline)
{
    return pipeline->core.num_nodes + 2 * (size_t)pipeline->num_queues + 2;
}

static inline size_t part_latencies(const weir_pipeline *pipeline)
{
    return part_num_stored(pipeline) - 2;
}

static inline size_t part_steps(const weir_pipeline *pipeline)
{
    return part_num_stored(pipeline) - 1;
}

/* Cleared metrics, and an empty range of steps. NULL = out of memory. */
weir_part *weir__part_new(const weir_pipeline *pipeline);
void weir__part_free(weir_part *part); /* and those after it */

bool weir__part_is_at(const weir_part *part, const char *mode, const char *phase);

/* The link to the part of this mode and phase in a list; the last link if there is none. */
weir_part **weir__part_find(weir_part **parts, const char *mode, const char *phase);

/* Extends the range of its steps. */
void weir__part_add_steps(weir_part *part, int64_t first_step, int64_t last_step);

/* A sum with a part that is not known (negative) is not known. */
void weir__add_known(int64_t *sum_ns, int64_t part_ns);

/* The share of a sum between two points of `whole`; shares add up to it. Not known (negative) remains so. */
int64_t weir__share_of(int64_t value, int64_t begin, int64_t end, int64_t whole);

/* Adds to the sums of `to` the share of `from` between two points of `whole`; other kinds are combined. */
void weir__metrics_add_share(const weir_metric_table *table, void *to, const void *from, int64_t begin, int64_t end,
                             int64_t whole);

/* Extends `first` to the end of `second`, and frees `second`. If out of memory, the percentiles are those of
   `first` alone; all sums are exact. */
void weir__part_join(weir_part *first, weir_part *second);

/* Encodes the histograms, and frees `times`. The steps become a mark. */
void weir__part_store(weir_part *part);

/* Encodes the histogram, and frees what was stored before. False = out of memory: it is unchanged. */
bool weir__stored_histogram_set(weir_stored_histogram *stored, const weir_histogram *histogram);

/* Adds a mark to that of the same name, or moves it. False = out of memory: it is unchanged. */
bool weir__part_add_mark(weir_part *part, weir_part_mark *mark);

/* Adds an encoded histogram to `to`. */
void weir__part_load(const weir_part *part, size_t index, weir_histogram *to);

#endif
