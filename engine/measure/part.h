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

#include "engine/spans/spans.h"

/* Bytes of the name of a mode or phase. */
enum { MAX_MARK = 64 };

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

/* Stages with their queues, the pools, the process, the machine: each part has metrics of them. */
typedef struct weir_part_subject {
    weir_subject subject;
    const char *name, *kind;
    uint64_t capacity;
    const atomic_uint *threads;   /* of a pool; NULL = see capacity */
    size_t num_times, first_time; /* histograms, in the order of its table of metrics */
} weir_part_subject;

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
    bool paused;                /* what was measured in a pause: the lap is not passed on */
    weir_metrics *metrics;      /* one for each subject; those of the process and the machine since it was taken */
    weir_span_metrics steps;    /* that ended */
    weir_live_histogram *times; /* those of each subject, and at the end those of steps */

    /* since it was taken */
    weir_stored_histogram *stored; /* instead of `times`, which is NULL */
    weir_part_mark *marks;
    size_t num_marks;
} weir_part;

/* What is measured and not taken yet; see current_part.h. */
typedef struct weir__open_lap {
    /* immutable after init */
    weir_part_subject *subjects;
    uint32_t num_subjects;
    char process_name[32], machine_name[32]; /* of these two subjects */

    /* guarded by pipeline->lock */
    weir_part *parts, *part; /* all of them, and the current one */
    weir_part *spares;
    uint32_t num_spares;
    int64_t since_ns; /* the sums of the current part begin */
    bool has_ended;   /* parts of a lap that has ended wait for the service thread */
    bool tail_marked; /* the last lap has the tail; see laps.h */
} weir__open_lap;

/* Makes the subjects of pipeline->open_lap. WEIR_OK or WEIR_ENOMEM. */
int weir__part_subjects_new(weir_pipeline *pipeline);

/* The histograms of a subject. */
static inline weir_live_histogram *part_times(const weir_part *part, size_t subject)
{
    return &part->times[part->pipeline->open_lap->subjects[subject].first_time];
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

/* Extends a lap to the end of the next one. */
void weir__lap_extend(weir_lap *first, const weir_lap *next);

/* Extends `first` to the end of `second`, and frees `second`. If out of memory, the percentiles are those of
   `first` alone; all sums are exact. */
void weir__part_join(weir_part *first, weir_part *second);

/* The tasks of weir_span_dump(). */
weir__stage_sum weir__stage_sum_of(const weir_task_metrics *task);
void weir__stage_sum_add(weir__stage_sum *to, const weir__stage_sum *from);

/* Encodes the histograms, and frees `times`. The steps become a mark. */
void weir__part_store(weir_part *part);

/* Encodes the histogram, and frees what was stored before. False = out of memory: it is unchanged. */
bool weir__stored_histogram_set(weir_stored_histogram *stored, const weir_histogram *histogram);

/* Adds a mark to that of the same name, or moves it. False = out of memory: it is unchanged. */
bool weir__part_add_mark(weir_part *part, weir_part_mark *mark);

/* Clears `to`, and adds what is stored. */
void weir__stored_histogram_load(const weir_stored_histogram *stored, weir_histogram *to);

#endif
