/* The figures of a lap: sums and shares of them, histograms, what user code has recorded. Lists and states are of lap.c. */
#ifndef ENGINE_MEASURE_LAP_FIGURES_H
#define ENGINE_MEASURE_LAP_FIGURES_H

#include "engine/measure/subjects.h"
#include "engine/spans/spans.h"

/* An encoded histogram; NULL = empty. */
typedef struct weir_stored_histogram {
    uint8_t *bytes;
    size_t size_bytes;
} weir_stored_histogram;

/* A span or counter of user code. */
typedef struct weir__lap_mark {
    const weir_span_name *name;
    union {
        weir_span_metrics span;
        weir_counter_metrics counter; /* name->counter is not NULL */
    };
    weir_stored_histogram times; /* of a span */
} weir__lap_mark;

/* Owned like their lap, see lap.h. */
typedef struct weir__lap_figures {
    const weir__subjects *subjects; /* immutable after init */
    weir_metrics *metrics;      /* one for each subject; those of the process and the machine since it was taken */
    weir_span_metrics steps;    /* that ended */
    weir_live_histogram *times; /* those of each subject, and at the end those of steps; NULL = they are encoded: */
    weir_stored_histogram *stored;
    weir__lap_mark *marks; /* since it was taken */
    size_t num_marks;
} weir__lap_figures;

/* Cleared. WEIR_OK or WEIR_ENOMEM; to be destroyed in any case. */
int weir__lap_figures_init(weir__lap_figures *figures, const weir__subjects *subjects);
void weir__lap_figures_destroy(weir__lap_figures *figures);

/* The histograms of a subject. */
static inline weir_live_histogram *lap_times(const weir__lap_figures *figures, size_t subject)
{
    return &figures->times[figures->subjects->all[subject].first_time];
}

/* A step has ended. */
void weir__lap_figures_add_step(weir__lap_figures *figures, int64_t step_ns);

/* Adds a mark to that of the same name, or moves it. False = out of memory: it is unchanged. */
bool weir__lap_figures_add_mark(weir__lap_figures *figures, weir__lap_mark *mark);

/* Encodes the histograms, and frees `times`. The steps become a mark. */
void weir__lap_figures_encode(weir__lap_figures *figures);

/* Adds those of `from`, which are encoded, too. If out of memory, the percentiles are those of `to` alone; all sums are exact. */
void weir__lap_figures_add(weir__lap_figures *to, weir__lap_figures *from);

/* A sum with a part that is not known (negative) is not known. */
void weir__add_known(int64_t *sum_ns, int64_t part_ns);

/* The share of a sum between two points of `whole`; shares add up to it. Not known (negative) remains so. */
int64_t weir__share_of(int64_t value, int64_t begin, int64_t end, int64_t whole);

/* Adds to the sums of `to` the share of `from` between two points of `whole`; other kinds are combined. */
void weir__metrics_add_share(const weir_metric_table *table, void *to, const void *from, int64_t begin, int64_t end,
                             int64_t whole);

/* The tasks of weir_span_dump(). */
weir__stage_sum weir__stage_sum_of(const weir_task_metrics *task);
void weir__stage_sum_add(weir__stage_sum *to, const weir__stage_sum *from);

/* Encodes the histogram, and frees what was stored before. False = out of memory: it is unchanged. */
bool weir__stored_histogram_set(weir_stored_histogram *stored, const weir_histogram *histogram);

/* Clears `to`, and adds what is stored. */
void weir__stored_histogram_load(const weir_stored_histogram *stored, weir_histogram *to);

#endif
