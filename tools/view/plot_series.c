#include "plot_series.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metric_table.h"

enum {
    MAX_POINTS = 300,  /* of a curve: more would be narrower than a pixel or two */
    MIN_POINTS = 20,   /* of a curve, however many there are */
    MAX_BINS = 1 << 13 /* of all curves together; each takes 10 to 30 kB while they are read */
};

static int no_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the figures to draw");
}

/* Room for one more of an array. NULL = out of memory. */
static void *grow(void *array, size_t count, size_t size)
{
    if (count & (count - 1)) /* grown whenever count is a power of two */
        return array;
    return realloc(array, (count ? 2 * count : 1) * size);
}

/* ---- curves ------------------------------------------------------------------------------------------------- */

static char *name_of(const series_set *set, const weir_group_key *key)
{
    size_t size = strlen(key->name) + 32;
    char *name = malloc(size);
    if (name && set->num_runs > 1)
        snprintf(name, size, "run %" PRId64 " %s", key->run_id, key->name);
    else if (name)
        snprintf(name, size, "%s", key->name);
    return name;
}

static series *find_series(const series_set *set, series **all, size_t *num_all, const weir_group_key *key)
{
    char *name = name_of(set, key);
    for (size_t i = 0; name && i < *num_all; i++)
        if ((*all)[i].run_id == key->run_id && strcmp((*all)[i].name, name) == 0) {
            free(name);
            return &(*all)[i];
        }
    series *grown = name ? grow(*all, *num_all, sizeof *grown) : NULL;
    if (!grown) {
        free(name);
        return NULL;
    }
    *all = grown;
    grown[*num_all] = (series){ .name = name, .run_id = key->run_id };
    return &grown[(*num_all)++];
}

static series_point *add_point(const series_set *set, series **all, size_t *num_all, const weir_group_key *key)
{
    series *line = find_series(set, all, num_all, key);
    series_point *points = line ? grow(line->points, line->num_points, sizeof *points) : NULL;
    if (!points)
        return NULL;
    line->points = points;
    series_point *point = &points[line->num_points++];
    *point = (series_point){ .start = key->start_time, .end = key->end_time };
    return point;
}

static double per(double amount, double span)
{
    return span > 0 ? amount / span : NAN;
}

static double known(double figure, int64_t count)
{
    return count > 0 ? figure : NAN;
}

static int add_task(series_set *set, const weir_task_totals *task, weir_error *error)
{
    series_point *point = add_point(set, &set->tasks, &set->num_tasks, &task->key);
    if (!point)
        return no_memory(error);
    int64_t successes = task->num_tasks - task->num_failures;
    double slots = task->busy_time + task->wait_in_time + task->wait_thread_time + task->wait_out_time;
    double *figures = point->figures;
    figures[TASK_RATE] = per((double)task->num_tasks, task->elapsed);
    figures[TASK_SUCCESSES] = per((double)successes, task->elapsed);
    figures[TASK_FAILURES] = per((double)task->num_failures, task->elapsed);
    figures[TASK_AVE] = known(task->ave_time, successes);
    figures[TASK_P50] = known(task->p50_time, successes);
    figures[TASK_P90] = known(task->p90_time, successes);
    figures[TASK_P99] = known(task->p99_time, successes);
    figures[TASK_BUSY] = per(task->busy_time, slots);
    figures[TASK_CPU] = per(task->cpu_time, slots);
    figures[TASK_WAIT_IN] = per(task->wait_in_time, slots);
    figures[TASK_WAIT_THREAD] = per(task->wait_thread_time, slots);
    figures[TASK_WAIT_OUT] = per(task->wait_out_time, slots);
    return WEIR_OK;
}

static int add_queue(series_set *set, const weir_queue_totals *queue, weir_error *error)
{
    series_point *point = add_point(set, &set->queues, &set->num_queues, &queue->key);
    if (!point)
        return no_memory(error);
    double *figures = point->figures;
    figures[QUEUE_RATE] = per((double)queue->num_items, queue->elapsed);
    figures[QUEUE_OCCUPIED] = queue->occupancy_rate;
    figures[QUEUE_PUT] = known(queue->ave_put_time, queue->num_put);
    figures[QUEUE_GET] = known(queue->ave_get_time, queue->num_items);
    figures[QUEUE_DEPTH] = queue->ave_depth;
    return WEIR_OK;
}

/* ---- events and phases -------------------------------------------------------------------------------------- */

static int add_mark(series_mark **marks, size_t *num_marks, const series_mark *mark, weir_error *error)
{
    series_mark *grown = grow(*marks, *num_marks, sizeof *grown);
    if (!grown)
        return no_memory(error);
    *marks = grown;
    grown[*num_marks] = *mark;
    grown[*num_marks].text = strdup(mark->text);
    return grown[(*num_marks)++].text ? WEIR_OK : no_memory(error);
}

/* "gc" of "gc_start"; 0 = it has no such ending. */
static size_t stem_of(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0 ? length - tail : 0;
}

/* Ends the span that has begun with NAME_start. */
static bool end_span(series_set *set, const weir_event_record *event)
{
    size_t stem = stem_of(event->name, "_stop");
    for (size_t i = set->num_events; stem && i-- > 0;) { /* the latest first: it is not far back */
        series_mark *mark = &set->events[i];
        if (mark->run_id == event->run_id && mark->start == mark->end && stem_of(mark->text, "_start") == stem &&
            strncmp(mark->text, event->name, stem) == 0) {
            mark->text[stem] = '\0';
            mark->end = event->timestamp;
            return true;
        }
    }
    return false;
}

static int add_event(series_set *set, const weir_event_record *event, weir_error *error)
{
    if (strcmp(event->name, "phase") == 0 || strcmp(event->name, "expected_items") == 0)
        return WEIR_OK; /* the one is shown as a span, the other is not what happened then */
    if (end_span(set, event))
        return WEIR_OK;
    series_mark mark = { event->timestamp, event->timestamp, event->run_id, (char *)(uintptr_t)event->name };
    return add_mark(&set->events, &set->num_events, &mark, error);
}

static int add_phase(series_set *set, const weir_phase_record *phase, weir_error *error)
{
    if (!phase->place.phase[0])
        return WEIR_OK;
    series_mark mark = { phase->start_time, phase->end_time, phase->run_id, (char *)(uintptr_t)phase->place.phase };
    return add_mark(&set->phases, &set->num_phases, &mark, error);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

static int add_record(series_set *set, const weir_record *record, weir_error *error)
{
    weir_task_totals task;
    weir_queue_totals queue;
    switch (record->kind) {
    case WEIR_RECORD_TASK: task = figures_of_task_lap(&record->task); return add_task(set, &task, error);
    case WEIR_RECORD_QUEUE: queue = figures_of_queue_lap(&record->queue); return add_queue(set, &queue, error);
    case WEIR_RECORD_EVENT: return add_event(set, &record->event, error);
    case WEIR_RECORD_PHASE: return add_phase(set, &record->phase, error);
    default: return WEIR_OK;
    }
}

static int read_kind(weir_reader *reader, weir_record_kind kind, const weir_filter *filter, series_set *set,
                     weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    int status = weir_query_begin(reader, kind, filter, &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK)
        status = add_record(set, record, error);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

/* What there is to draw, before any of it is read. */
typedef struct extent {
    double start, end;
    int64_t max_laps; /* of a curve */
    size_t num_lines;
} extent;

static void extend(extent *all, series_set *set, const weir_group_key *key, int64_t *last_run)
{
    all->start = fmin(all->start, key->start_time);
    all->end = fmax(all->end, key->end_time);
    all->max_laps = key->num_laps > all->max_laps ? key->num_laps : all->max_laps;
    all->num_lines++;
    set->num_runs += key->run_id != *last_run;
    *last_run = key->run_id;
}

static int find_extent(weir_reader *reader, const weir_filter *filter, series_set *set, extent *all,
                       weir_error *error)
{
    weir_totals totals;
    int64_t last_run = 0;
    *all = (extent){ .start = INFINITY, .end = -INFINITY };
    int status =
        weir_totals_read(reader, filter, &(weir_grouping){ .by = WEIR_BY_NAME | WEIR_BY_RUN }, &totals, error);
    if (status != WEIR_OK)
        return status;
    for (size_t i = 0; i < totals.num_queues; i++)
        extend(all, set, &totals.queues[i].key, &last_run);
    if (totals.num_queues == 0)
        for (size_t i = 0; i < totals.num_tasks; i++)
            extend(all, set, &totals.tasks[i].key, &last_run);
    weir_totals_free(&totals);
    return WEIR_OK;
}

static int read_bins(weir_reader *reader, const weir_filter *filter, series_set *set, const extent *all,
                     weir_error *error)
{
    size_t most = MAX_BINS / (2 * all->num_lines);
    most = most > MAX_POINTS ? MAX_POINTS : most < MIN_POINTS ? MIN_POINTS : most;
    weir_grouping grouping = { .by = WEIR_BY_NAME | WEIR_BY_RUN | WEIR_BY_TIME,
                               .bin_time = (all->end - all->start) / (double)most };
    weir_totals totals;
    int status = weir_totals_read(reader, filter, &grouping, &totals, error);
    if (status != WEIR_OK)
        return status;
    set->binned = true;
    for (size_t i = 0; i < totals.num_tasks && status == WEIR_OK; i++)
        status = add_task(set, &totals.tasks[i], error);
    for (size_t i = 0; i < totals.num_queues && status == WEIR_OK; i++)
        status = add_queue(set, &totals.queues[i], error);
    weir_totals_free(&totals);
    return status;
}

static int read_laps(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error)
{
    extent all;
    int status = find_extent(reader, filter, set, &all, error);
    if (status == WEIR_OK && all.max_laps > 2 * MAX_POINTS)
        return read_bins(reader, filter, set, &all, error);
    if (status == WEIR_OK)
        status = read_kind(reader, WEIR_RECORD_TASK, filter, set, error);
    if (status == WEIR_OK)
        status = read_kind(reader, WEIR_RECORD_QUEUE, filter, set, error);
    return status;
}

/* Times since the first lap's beginning. */
static void move_to_origin(series_set *set)
{
    set->origin = INFINITY;
    double end = -INFINITY;
    series *const lines[] = { set->tasks, set->queues };
    const size_t num_lines[] = { set->num_tasks, set->num_queues };
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < num_lines[kind]; i++) {
            const series *line = &lines[kind][i];
            set->origin = fmin(set->origin, line->points[0].start);
            end = fmax(end, line->points[line->num_points - 1].end);
        }
    set->end = end - set->origin;
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < num_lines[kind]; i++)
            for (size_t j = 0; j < lines[kind][i].num_points; j++) {
                lines[kind][i].points[j].start -= set->origin;
                lines[kind][i].points[j].end -= set->origin;
            }
    series_mark *const marks[] = { set->events, set->phases };
    const size_t num_marks[] = { set->num_events, set->num_phases };
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < num_marks[kind]; i++) {
            marks[kind][i].start -= set->origin;
            marks[kind][i].end -= set->origin;
        }
}

int series_read(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error)
{
    *set = (series_set){ 0 };
    weir_filter own = *filter;
    own.name = NULL; /* it is of stages and queues, not of what happened meanwhile */
    int status = read_laps(reader, filter, set, error);
    if (status == WEIR_OK)
        status = read_kind(reader, WEIR_RECORD_EVENT, &own, set, error);
    if (status == WEIR_OK)
        status = read_kind(reader, WEIR_RECORD_PHASE, &own, set, error);
    if (set->num_tasks || set->num_queues)
        move_to_origin(set);
    return status;
}

static void free_lines(series *lines, size_t num_lines)
{
    for (size_t i = 0; i < num_lines; i++) {
        free(lines[i].name);
        free(lines[i].points);
    }
    free(lines);
}

static void free_marks(series_mark *marks, size_t num_marks)
{
    for (size_t i = 0; i < num_marks; i++)
        free(marks[i].text);
    free(marks);
}

void series_free(series_set *set)
{
    free_lines(set->tasks, set->num_tasks);
    free_lines(set->queues, set->num_queues);
    free_marks(set->events, set->num_events);
    free_marks(set->phases, set->num_phases);
    *set = (series_set){ 0 };
}
