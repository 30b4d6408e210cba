#include "engine/measure/lap_figures.h"

#include <stdlib.h>
#include <string.h>

/* ---- making and freeing --------------------------------------------------------------------------------------- */

static void clear_metrics(weir__lap_figures *figures)
{
    const weir__subjects *subjects = figures->subjects;
    for (uint32_t i = 0; i < subjects->count; i++) {
        const weir__subject *subject = &subjects->all[i];
        weir_queue_metrics *queue = &figures->metrics[i].queue;
        weir_metrics_clear(weir_subject_metrics(subject->subject), queue);
        if (subject->subject == WEIR_SUBJECT_QUEUE && subject->num_times < 3)
            queue->latency_ns = queue->min_latency_ns = queue->max_latency_ns = -1;
    }
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_SPAN), &figures->steps);
}

int weir__lap_figures_init(weir__lap_figures *figures, const weir__subjects *subjects)
{
    figures->subjects = subjects;
    figures->metrics = calloc(subjects->count, sizeof *figures->metrics);
    figures->times = calloc(subjects->num_times, sizeof *figures->times);
    figures->stored = calloc(subjects->num_times, sizeof *figures->stored);
    if (!figures->metrics || !figures->times || !figures->stored)
        return WEIR_ENOMEM;
    clear_metrics(figures);
    return WEIR_OK;
}

void weir__lap_figures_destroy(weir__lap_figures *figures)
{
    for (size_t i = 0; figures->stored && i < figures->subjects->num_times; i++)
        free(figures->stored[i].bytes);
    for (size_t i = 0; i < figures->num_marks; i++)
        free(figures->marks[i].times.bytes);
    free(figures->marks);
    free(figures->stored);
    free(figures->times);
    free(figures->metrics);
}

/* ---- sums ---------------------------------------------------------------------------------------------------- */

void weir__add_known(int64_t *sum_ns, int64_t part_ns)
{
    if (*sum_ns < 0 || part_ns < 0)
        *sum_ns = -1;
    else
        *sum_ns = part_ns > INT64_MAX - *sum_ns ? INT64_MAX : *sum_ns + part_ns;
}

/* Shares of one value add up to it. Not known (negative) remains so. */
static int64_t share_up_to(int64_t value, int64_t at, int64_t whole)
{
    return at >= whole || value < 0 ? value : (int64_t)((double)value * (double)at / (double)whole);
}

int64_t weir__share_of(int64_t value, int64_t begin, int64_t end, int64_t whole)
{
    int64_t up_to_end = share_up_to(value, end, whole);
    return value < 0 || begin <= 0 ? up_to_end : up_to_end - share_up_to(value, begin, whole);
}

void weir__metrics_add_share(const weir_metric_table *table, void *to, const void *from, int64_t begin, int64_t end,
                             int64_t whole)
{
    weir_metrics share;
    memcpy(&share, from, table->struct_size);
    for (size_t i = 0; i < table->num_metrics; i++) {
        void *value = (char *)&share + table->metrics[i].offset;
        if (table->metrics[i].kind == WEIR_METRIC_COUNT || table->metrics[i].kind == WEIR_METRIC_SUM)
            *(int64_t *)value = weir__share_of(*(int64_t *)value, begin, end, whole);
        else if (table->metrics[i].kind == WEIR_METRIC_LEVEL && whole > 0)
            *(double *)value *= (double)(end - begin) / (double)whole;
    }
    weir_metrics_add(table, to, &share);
}

weir__stage_sum weir__stage_sum_of(const weir_task_metrics *task)
{
    return (weir__stage_sum){ task->num_tasks, task->num_failures, task->success_ns, task->min_ns, task->max_ns };
}

void weir__stage_sum_add(weir__stage_sum *to, const weir__stage_sum *from)
{
    if (!from->num_tasks)
        return;
    if (!to->num_tasks || from->min_ns < to->min_ns)
        to->min_ns = from->min_ns;
    to->num_tasks += from->num_tasks;
    to->num_failures += from->num_failures;
    to->success_ns += from->success_ns;
    to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
}

/* ---- histograms and marks ------------------------------------------------------------------------------------ */

bool weir__stored_histogram_set(weir_stored_histogram *stored, const weir_histogram *histogram)
{
    size_t size_bytes = weir_histogram_encode(histogram, NULL, 0);
    uint8_t *bytes = malloc(size_bytes);
    if (!bytes)
        return false;
    weir_histogram_encode(histogram, bytes, size_bytes);
    free(stored->bytes);
    *stored = (weir_stored_histogram){ bytes, size_bytes };
    return true;
}

void weir__stored_histogram_load(const weir_stored_histogram *stored, weir_histogram *to)
{
    weir_histogram_clear(to);
    if (stored->bytes)
        weir_histogram_add_encoded(to, stored->bytes, stored->size_bytes);
}

static void join_histogram(weir_stored_histogram *to, const weir_stored_histogram *from)
{
    weir_histogram *joined = from->bytes ? calloc(1, sizeof *joined) : NULL;
    if (!joined)
        return;
    weir__stored_histogram_load(to, joined);
    weir_histogram_add_encoded(joined, from->bytes, from->size_bytes);
    weir__stored_histogram_set(to, joined);
    free(joined);
}

/* The mark of this name, or else a new mark without a name. NULL = out of memory. */
static weir__lap_mark *find_mark(weir__lap_figures *figures, const weir_span_name *name)
{
    size_t count = figures->num_marks;
    for (size_t i = 0; i < count; i++)
        if (figures->marks[i].name == name)
            return &figures->marks[i];
    if ((count & (count - 1)) == 0) { /* a power of two is full */
        weir__lap_mark *grown = realloc(figures->marks, (count ? 2 * count : 1) * sizeof *grown);
        if (!grown)
            return NULL;
        figures->marks = grown;
    }
    figures->marks[count] = (weir__lap_mark){ .name = NULL };
    return &figures->marks[figures->num_marks++];
}

bool weir__lap_figures_add_mark(weir__lap_figures *figures, weir__lap_mark *mark)
{
    weir__lap_mark *to = find_mark(figures, mark->name);
    if (!to)
        return false;
    if (!to->name) {
        *to = *mark;
        mark->times.bytes = NULL;
        return true;
    }
    weir_metrics_add(weir_subject_metrics(mark->name->counter ? WEIR_SUBJECT_COUNTER : WEIR_SUBJECT_SPAN), &to->span,
                     &mark->span);
    join_histogram(&to->times, &mark->times);
    return true;
}

void weir__lap_figures_add_step(weir__lap_figures *figures, int64_t step_ns)
{
    const weir_span_metrics step = { 1, step_ns, step_ns, step_ns, NULL };
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_SPAN), &figures->steps, &step);
    live_histogram_record(&figures->times[figures->subjects->num_times - 1], step_ns, 1);
}

/* Without memory, they are lost. */
static void add_steps_mark(weir__lap_figures *figures)
{
    weir_stored_histogram *times = &figures->stored[figures->subjects->num_times - 1];
    weir__lap_mark mark = { .name = weir__span_name_of_steps(), .span = figures->steps, .times = *times };
    *times = (weir_stored_histogram){ NULL, 0 };
    if (mark.name)
        weir__lap_figures_add_mark(figures, &mark);
    free(mark.times.bytes);
}

/* A lap without its percentiles would not agree with its counts, so that one allocation that fails is not the end. */
void weir__lap_figures_encode(weir__lap_figures *figures)
{
    enum { ATTEMPTS = 10 };
    weir_histogram *histogram = NULL;
    size_t count = figures->subjects->num_times, num_stored = 0;
    for (int i = 0; i < ATTEMPTS && !histogram; i++)
        histogram = calloc(1, sizeof *histogram);
    for (int i = 0; i < ATTEMPTS && histogram && num_stored < count; i++)
        for (bool stored = true; stored && num_stored < count; num_stored += stored) {
            weir_histogram_clear(histogram);
            weir__live_histogram_add_to(histogram, &figures->times[num_stored]);
            stored = histogram->count == 0 || weir__stored_histogram_set(&figures->stored[num_stored], histogram);
        }
    if (num_stored < count)
        weir_log(WEIR_LOG_ERROR, "out of memory: the percentiles of a lap are lost");
    free(histogram);
    free(figures->times);
    figures->times = NULL;
    if (figures->steps.num_spans)
        add_steps_mark(figures);
}

void weir__lap_figures_add(weir__lap_figures *to, weir__lap_figures *from)
{
    const weir__subjects *subjects = to->subjects;
    for (uint32_t i = 0; i < subjects->count; i++)
        weir_metrics_add(weir_subject_metrics(subjects->all[i].subject), &to->metrics[i], &from->metrics[i]);
    for (size_t i = 0; i < subjects->num_times; i++)
        join_histogram(&to->stored[i], &from->stored[i]);
    for (size_t i = 0; i < from->num_marks; i++)
        weir__lap_figures_add_mark(to, &from->marks[i]);
}
