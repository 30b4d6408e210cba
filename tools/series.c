#include "series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/histogram.h>

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

static series *find_series(series **all, size_t *num_all, const char *name, int64_t run_id)
{
    for (size_t i = 0; i < *num_all; i++)
        if ((*all)[i].run_id == run_id && strcmp((*all)[i].name, name) == 0)
            return &(*all)[i];
    series *grown = grow(*all, *num_all, sizeof *grown);
    if (!grown)
        return NULL;
    *all = grown;
    grown[*num_all] = (series){ .name = strdup(name), .run_id = run_id };
    return grown[*num_all].name ? &grown[(*num_all)++] : NULL;
}

static series_point *add_point(series **all, size_t *num_all, const char *name, int64_t run_id)
{
    series *line = find_series(all, num_all, name, run_id);
    series_point *points = line ? grow(line->points, line->num_points, sizeof *points) : NULL;
    if (!points)
        return NULL;
    line->points = points;
    return &points[line->num_points++];
}

static double per(double amount, double span)
{
    return span > 0 ? amount / span : NAN;
}

static double known(double figure, int64_t count)
{
    return count > 0 ? figure : NAN;
}

static int add_task(series_set *set, const weir_task_record *lap, weir_error *error)
{
    series_point *point = add_point(&set->tasks, &set->num_tasks, lap->name, lap->run_id);
    if (!point)
        return no_memory(error);
    int64_t successes = lap->num_tasks - lap->num_failures;
    double slots = lap->busy_time + lap->wait_in_time + lap->wait_thread_time + lap->wait_out_time;
    point->start = lap->timestamp - lap->elapsed;
    point->end = lap->timestamp;
    point->task.successes = per((double)successes, lap->elapsed);
    point->task.failures = per((double)lap->num_failures, lap->elapsed);
    point->task.ave = known(lap->ave_time, successes);
    point->task.p50 = known(lap->p50_time, successes);
    point->task.p90 = known(lap->p90_time, successes);
    point->task.p99 = known(lap->p99_time, successes);
    point->task.busy = per(lap->busy_time, slots);
    point->task.wait_in = per(lap->wait_in_time, slots);
    point->task.wait_thread = per(lap->wait_thread_time, slots);
    point->task.wait_out = per(lap->wait_out_time, slots);
    return WEIR_OK;
}

static int add_queue(series_set *set, const weir_queue_record *lap, weir_error *error)
{
    series_point *point = add_point(&set->queues, &set->num_queues, lap->name, lap->run_id);
    if (!point)
        return no_memory(error);
    point->start = lap->timestamp - lap->elapsed;
    point->end = lap->timestamp;
    point->queue.items = per((double)lap->num_items, lap->elapsed);
    point->queue.occupancy = lap->occupancy_rate;
    point->queue.put = known(lap->ave_put_time, lap->num_put);
    point->queue.get = known(lap->ave_get_time, lap->num_items);
    point->queue.depth = lap->ave_depth;
    return WEIR_OK;
}

static int add_mark(series_mark **marks, size_t *num_marks, double start, double end, const char *text,
                    weir_error *error)
{
    series_mark *grown = grow(*marks, *num_marks, sizeof *grown);
    if (!grown)
        return no_memory(error);
    *marks = grown;
    grown[*num_marks] = (series_mark){ .start = start, .end = end, .text = strdup(text) };
    return grown[(*num_marks)++].text ? WEIR_OK : no_memory(error);
}

static int add_record(series_set *set, const weir_record *record, weir_error *error)
{
    switch (record->kind) {
    case WEIR_RECORD_TASK: return add_task(set, &record->task, error);
    case WEIR_RECORD_QUEUE: return add_queue(set, &record->queue, error);
    case WEIR_RECORD_EVENT:
        if (strcmp(record->event.name, "phase") == 0)
            return WEIR_OK; /* shown as a span */
        return add_mark(&set->events, &set->num_events, record->event.timestamp, record->event.timestamp,
                        record->event.name, error);
    case WEIR_RECORD_PHASE:
        if (!record->phase.place.phase[0])
            return WEIR_OK;
        return add_mark(&set->phases, &set->num_phases, record->phase.start_time, record->phase.end_time,
                        record->phase.place.phase, error);
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
    for (size_t i = 0; i < set->num_events; i++)
        set->events[i].start = set->events[i].end = set->events[i].start - set->origin;
    for (size_t i = 0; i < set->num_phases; i++) {
        set->phases[i].start -= set->origin;
        set->phases[i].end -= set->origin;
    }
}

int series_read(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error)
{
    static const weir_record_kind kinds[] = { WEIR_RECORD_TASK, WEIR_RECORD_QUEUE, WEIR_RECORD_EVENT,
                                              WEIR_RECORD_PHASE };
    *set = (series_set){ 0 };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        weir_filter own = *filter;
        if (kinds[i] == WEIR_RECORD_EVENT || kinds[i] == WEIR_RECORD_PHASE)
            own.name = NULL; /* names of stages and queues, not of what happened meanwhile */
        int status = read_kind(reader, kinds[i], &own, set, error);
        if (status != WEIR_OK)
            return status;
    }
    if (set->num_tasks || set->num_queues)
        move_to_origin(set);
    return WEIR_OK;
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
