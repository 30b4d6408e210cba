#include "engine/measure/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- subjects ------------------------------------------------------------------------------------------------ */

/* The sink's queue has latencies, too. */
static void add_node_subjects(weir_pipeline *pipeline, weir_node *node)
{
    bool is_stage = strcmp(node->kind, "stage") == 0;
    weir_part_subject *next = &pipeline->open_lap->subjects[node->subject = pipeline->open_lap->num_subjects];
    *next++ = (weir_part_subject){ .subject = is_stage ? WEIR_SUBJECT_STAGE : WEIR_SUBJECT_FLOW,
                                   .name = node->name,
                                   .kind = node->kind,
                                   .num_times = 1 };
    for (uint32_t i = 0; i < node->core.num_outs; i++) {
        const weir__queue *queue = &node->core.outs[i];
        *next++ = (weir_part_subject){ .subject = WEIR_SUBJECT_QUEUE,
                                       .name = queue->name,
                                       .kind = "queue",
                                       .capacity = queue->capacity,
                                       .num_times = queue == pipeline->core.sink ? 3 : 2 };
    }
    pipeline->open_lap->num_subjects += 1 + node->core.num_outs;
}

int weir__part_subjects_new(weir_pipeline *pipeline)
{
    size_t most = pipeline->core.num_nodes + (size_t)pipeline->num_queues + pipeline->num_pools + 2;
    weir_part_subject *subjects = pipeline->open_lap->subjects = calloc(most, sizeof *subjects);
    if (!subjects)
        return WEIR_ENOMEM;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++)
        add_node_subjects(pipeline, pipeline->nodes[i]);
    for (uint32_t i = 0; i < pipeline->num_pools; i++) {
        weir_pool *pool = pipeline->pools[i];
        pool->subject = pipeline->open_lap->num_subjects;
        subjects[pipeline->open_lap->num_subjects++] = (weir_part_subject){
            .subject = WEIR_SUBJECT_POOL, .name = pool->name, .kind = "pool", .threads = &pool->num_workers
        };
    }
    snprintf(pipeline->open_lap->process_name, sizeof pipeline->open_lap->process_name, "%u:process", pipeline->id);
    snprintf(pipeline->open_lap->machine_name, sizeof pipeline->open_lap->machine_name, "%u:machine", pipeline->id);
    subjects[pipeline->open_lap->num_subjects++] = (weir_part_subject){ .subject = WEIR_SUBJECT_PROCESS,
                                                                        .name = pipeline->open_lap->process_name,
                                                                        .kind = "process",
                                                                        .capacity = pipeline->num_cpus };
    subjects[pipeline->open_lap->num_subjects++] = (weir_part_subject){ .subject = WEIR_SUBJECT_MACHINE,
                                                                        .name = pipeline->open_lap->machine_name,
                                                                        .kind = "machine" };
    for (uint32_t i = 1; i < pipeline->open_lap->num_subjects; i++)
        subjects[i].first_time = subjects[i - 1].first_time + subjects[i - 1].num_times;
    return WEIR_OK;
}

/* ---- one part ------------------------------------------------------------------------------------------------ */

/* The last one is that of steps. */
static size_t num_histograms(const weir_pipeline *pipeline)
{
    const weir_part_subject *last = &pipeline->open_lap->subjects[pipeline->open_lap->num_subjects - 1];
    return last->first_time + last->num_times + 1;
}

static void clear_metrics(weir_part *part)
{
    for (uint32_t i = 0; i < part->pipeline->open_lap->num_subjects; i++) {
        const weir_part_subject *subject = &part->pipeline->open_lap->subjects[i];
        weir_queue_metrics *queue = &part->metrics[i].queue;
        weir_metrics_clear(weir_subject_metrics(subject->subject), queue);
        if (subject->subject == WEIR_SUBJECT_QUEUE && subject->num_times < 3)
            queue->latency_ns = queue->min_latency_ns = queue->max_latency_ns = -1;
    }
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_SPAN), &part->steps);
}

weir_part *weir__part_new(const weir_pipeline *pipeline)
{
    static _Atomic uint64_t num_parts;
    weir_part *part = calloc(1, sizeof *part);
    if (!part)
        return NULL;
    part->pipeline = pipeline;
    part->id = 1 + atomic_fetch_add(&num_parts, 1);
    part->lap.position = (weir_lap_position){ .mode = part->mode, .phase = part->phase, .last_step = -1 };
    part->metrics = calloc(pipeline->open_lap->num_subjects, sizeof *part->metrics);
    part->times = calloc(num_histograms(pipeline), sizeof *part->times);
    part->stored = calloc(num_histograms(pipeline), sizeof *part->stored);
    if (!part->metrics || !part->times || !part->stored) {
        weir__part_free(part);
        return NULL;
    }
    clear_metrics(part);
    return part;
}

void weir__part_free(weir_part *part)
{
    for (weir_part *next; part; part = next) {
        next = part->next;
        for (size_t i = 0; part->stored && i < num_histograms(part->pipeline); i++)
            free(part->stored[i].bytes);
        for (size_t i = 0; i < part->num_marks; i++)
            free(part->marks[i].times.bytes);
        free(part->marks);
        free(part->stored);
        free(part->times);
        free(part->metrics);
        free(part);
    }
}

/* ---- places and sums ----------------------------------------------------------------------------------------- */

static void extend_steps(weir_lap_position *position, int64_t first_step, int64_t last_step)
{
    if (last_step < first_step)
        return;
    if (position->last_step < position->first_step)
        position->first_step = first_step;
    position->last_step = last_step;
}

void weir__part_add_steps(weir_part *part, int64_t first_step, int64_t last_step)
{
    extend_steps(&part->lap.position, first_step, last_step);
}

void weir__lap_extend(weir_lap *first, const weir_lap *next)
{
    first->end_unix_ns = next->end_unix_ns;
    first->elapsed_ns += next->elapsed_ns;
    first->suspended_ns += next->suspended_ns;
    first->num_joined += next->num_joined;
    extend_steps(&first->position, next->position.first_step, next->position.last_step);
}

bool weir__part_is_at(const weir_part *part, const char *mode, const char *phase)
{
    return strcmp(part->mode, mode) == 0 && strcmp(part->phase, phase) == 0;
}

weir_part **weir__part_find(weir_part **parts, const char *mode, const char *phase)
{
    while (*parts && !weir__part_is_at(*parts, mode, phase))
        parts = &(*parts)->next;
    return parts;
}

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

/* That of this name, or else a new one without a name. NULL = out of memory. */
static weir_part_mark *find_mark(weir_part *part, const weir_span_name *name)
{
    size_t count = part->num_marks;
    for (size_t i = 0; i < count; i++)
        if (part->marks[i].name == name)
            return &part->marks[i];
    if ((count & (count - 1)) == 0) { /* a power of two is full */
        weir_part_mark *grown = realloc(part->marks, (count ? 2 * count : 1) * sizeof *grown);
        if (!grown)
            return NULL;
        part->marks = grown;
    }
    part->marks[count] = (weir_part_mark){ .name = NULL };
    return &part->marks[part->num_marks++];
}

bool weir__part_add_mark(weir_part *part, weir_part_mark *mark)
{
    weir_part_mark *to = find_mark(part, mark->name);
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

/* Without memory, they are lost. */
static void add_steps_mark(weir_part *part)
{
    weir_stored_histogram *times = &part->stored[num_histograms(part->pipeline) - 1];
    weir_part_mark mark = { .name = weir__span_name_of_steps(), .span = part->steps, .times = *times };
    *times = (weir_stored_histogram){ NULL, 0 };
    if (mark.name)
        weir__part_add_mark(part, &mark);
    free(mark.times.bytes);
}

/* A lap without its percentiles would not agree with its counts, so that one allocation that fails is not the end. */
void weir__part_store(weir_part *part)
{
    enum { ATTEMPTS = 10 };
    weir_histogram *histogram = NULL;
    size_t count = num_histograms(part->pipeline), num_stored = 0;
    for (int i = 0; i < ATTEMPTS && !histogram; i++)
        histogram = calloc(1, sizeof *histogram);
    for (int i = 0; i < ATTEMPTS && histogram && num_stored < count; i++)
        for (bool stored = true; stored && num_stored < count; num_stored += stored) {
            weir_histogram_clear(histogram);
            weir__live_histogram_add_to(histogram, &part->times[num_stored]);
            stored = histogram->count == 0 || weir__stored_histogram_set(&part->stored[num_stored], histogram);
        }
    if (num_stored < count)
        weir_log(WEIR_LOG_ERROR, "out of memory: the percentiles of a lap are lost");
    free(histogram);
    free(part->times);
    part->times = NULL;
    if (part->steps.num_spans)
        add_steps_mark(part);
}

void weir__part_join(weir_part *first, weir_part *second)
{
    const weir_pipeline *pipeline = first->pipeline;
    for (uint32_t i = 0; i < pipeline->open_lap->num_subjects; i++)
        weir_metrics_add(weir_subject_metrics(pipeline->open_lap->subjects[i].subject), &first->metrics[i],
                         &second->metrics[i]);
    for (size_t i = 0; i < num_histograms(pipeline); i++)
        join_histogram(&first->stored[i], &second->stored[i]);
    for (size_t i = 0; i < second->num_marks; i++)
        weir__part_add_mark(first, &second->marks[i]);
    weir__lap_extend(&first->lap, &second->lap);
    second->next = NULL;
    weir__part_free(second);
}
