#include "plot_series.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "each_record.h"

enum {
    MAX_POINTS = 300,  /* of a curve: more would be narrower than a pixel or two */
    MIN_POINTS = 20,   /* of a curve, for any number of curves */
    MAX_BINS = 1 << 13 /* of all curves together; each takes 10 to 30 kB while they are read */
};

static int no_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory for the plot");
}

/* The measures that are drawn, as rates and as counts. */
static const char *const task_measures[2][SERIES_MAX_VALUES] = {
    { "tasks_per_s", "successes_per_s", "failures_per_s", "ave_time", "p50_time", "p90_time", "p99_time", "max_time",
      "busy_share", "cpu_slot_share", "wait_in_share", "wait_thread_share", "wait_turn_share", "wait_out_share" },
    { "num_tasks", "num_successes", "num_failures", "ave_time", "p50_time", "p90_time", "p99_time", "max_time",
      "busy_share", "cpu_slot_share", "wait_in_share", "wait_thread_share", "wait_turn_share", "wait_out_share" },
};
static const char *const queue_measures[2][NUM_QUEUE_FIGURES] = {
    { "items_per_s", "occupancy_rate", "ave_put_time", "ave_get_time", "ave_depth" },
    { "num_items", "occupancy_rate", "ave_put_time", "ave_get_time", "ave_depth" },
};

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
    series *grown = name ? weir_array_grow(*all, *num_all, sizeof *grown) : NULL;
    if (!grown) {
        free(name);
        return NULL;
    }
    *all = grown;
    grown[*num_all] = (series){ .name = name, .run_id = key->run_id };
    return &grown[(*num_all)++];
}

static double since_origin(const series_set *set, int64_t unix_ns)
{
    return (double)(unix_ns - set->origin_unix_ns) / 1e9;
}

static void fill_point(const series_set *set, series_point *point, const weir_total *total)
{
    bool is_queue = total->subject == WEIR_SUBJECT_QUEUE;
    const char *const *names = is_queue ? queue_measures[set->counts] : task_measures[set->counts];
    size_t count = is_queue ? NUM_QUEUE_FIGURES : SERIES_MAX_VALUES;
    *point = (series_point){ .start = since_origin(set, total->key.start_unix_ns),
                             .end = since_origin(set, total->key.end_unix_ns) };
    for (size_t i = 0; i < count; i++)
        point->values[i] = weir_measure_of(total->subject, names[i], &total->metrics, total->elapsed_ns);
    if (!is_queue && isnan(point->values[TASK_AVE]))
        point->values[TASK_MAX] = NAN;
}

static series *line_of(series_set *set, const weir_total *total)
{
    bool is_queue = total->subject == WEIR_SUBJECT_QUEUE;
    return is_queue ? find_series(set, &set->queues, &set->num_queues, &total->key)
                    : find_series(set, &set->tasks, &set->num_tasks, &total->key);
}

static int add_total(series_set *set, const weir_total *total, weir_error *error)
{
    series *line = line_of(set, total);
    series_point *points = line ? weir_array_grow(line->points, line->num_points, sizeof *points) : NULL;
    if (!points)
        return no_memory(error);
    line->points = points;
    line->capacity = total->capacity > line->capacity ? total->capacity : line->capacity;
    fill_point(set, &points[line->num_points++], total);
    return WEIR_OK;
}

/* ---- events and phases -------------------------------------------------------------------------------------- */

static int add_mark(series_mark **marks, size_t *num_marks, const series_mark *mark, weir_error *error)
{
    series_mark *grown = weir_array_grow(*marks, *num_marks, sizeof *grown);
    if (!grown)
        return no_memory(error);
    *marks = grown;
    grown[*num_marks] = *mark;
    grown[*num_marks].text = strdup(mark->text);
    return grown[(*num_marks)++].text ? WEIR_OK : no_memory(error);
}

/* "gc" of "gc_start"; 0 = it has no such suffix. */
static size_t stem_of(const char *name, const char *suffix)
{
    size_t length = strlen(name), tail = strlen(suffix);
    return length > tail && strcmp(name + length - tail, suffix) == 0 ? length - tail : 0;
}

/* Ends the span that began with NAME_start. */
static bool end_span(series_set *set, const weir_event_record *event)
{
    size_t stem = stem_of(event->name, "_stop");
    for (size_t i = set->num_events; stem && i-- > 0;) { /* the latest first, which is usually the match */
        series_mark *mark = &set->events[i];
        if (mark->run_id == event->run_id && mark->start == mark->end && stem_of(mark->text, "_start") == stem &&
            strncmp(mark->text, event->name, stem) == 0) {
            mark->text[stem] = '\0';
            mark->end = since_origin(set, event->unix_ns);
            return true;
        }
    }
    return false;
}

static int add_event(series_set *set, const weir_event_record *event, weir_error *error)
{
    if (strcmp(event->name, "phase") == 0 || strcmp(event->name, "expected_items") == 0)
        return WEIR_OK; /* the pair becomes a span, so the stop event is not added */
    if (end_span(set, event))
        return WEIR_OK;
    double at = since_origin(set, event->unix_ns);
    series_mark mark = { at, at, event->run_id, (char *)(uintptr_t)event->name };
    return add_mark(&set->events, &set->num_events, &mark, error);
}

static int add_phase(series_set *set, const weir_phase_record *phase, weir_error *error)
{
    if (!phase->position.phase[0])
        return WEIR_OK;
    series_mark mark = { since_origin(set, phase->start_unix_ns), since_origin(set, phase->end_unix_ns),
                         phase->run_id, (char *)(uintptr_t)phase->position.phase };
    return add_mark(&set->phases, &set->num_phases, &mark, error);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

static int add_record(void *self, const weir_record *record, weir_error *error)
{
    series_set *set = self;
    weir_total total;
    switch (record->kind) {
    case WEIR_RECORD_TASK:
    case WEIR_RECORD_QUEUE: total = weir_total_of_lap(&record->lap); return add_total(set, &total, error);
    case WEIR_RECORD_EVENT: return add_event(set, &record->event, error);
    case WEIR_RECORD_PHASE: return add_phase(set, &record->phase, error);
    default: return WEIR_OK;
    }
}

/* Counts what will be drawn, before reading it. */
typedef struct extent {
    int64_t start_unix_ns, end_unix_ns;
    int64_t max_laps; /* of a curve */
    size_t num_lines;
} extent;

static void extend(extent *all, series_set *set, const weir_total_list *list)
{
    int64_t last_run = 0;
    set->num_runs = 0;
    for (size_t i = 0; i < list->count; i++) {
        const weir_group_key *key = &list->all[i].key;
        if (all->num_lines == 0 || key->start_unix_ns < all->start_unix_ns)
            all->start_unix_ns = key->start_unix_ns;
        if (all->num_lines == 0 || key->end_unix_ns > all->end_unix_ns)
            all->end_unix_ns = key->end_unix_ns;
        all->max_laps = key->num_laps > all->max_laps ? key->num_laps : all->max_laps;
        all->num_lines++;
        set->num_runs += key->run_id != last_run;
        last_run = key->run_id;
    }
}

static int find_extent(weir_reader *reader, const weir_filter *filter, series_set *set, extent *all,
                       weir_error *error)
{
    weir_totals totals;
    *all = (extent){ .num_lines = 0 };
    int status =
        weir_totals_read(reader, filter, &(weir_grouping){ .by = WEIR_BY_NAME | WEIR_BY_RUN }, &totals, error);
    if (status != WEIR_OK)
        return status;
    extend(all, set, &totals.of[WEIR_SUBJECT_QUEUE]);
    if (totals.of[WEIR_SUBJECT_QUEUE].count == 0)
        extend(all, set, &totals.of[WEIR_SUBJECT_STAGE]);
    set->origin_unix_ns = all->start_unix_ns;
    set->end = since_origin(set, all->end_unix_ns);
    weir_totals_free(&totals);
    return WEIR_OK;
}

static int add_totals(series_set *set, const weir_totals *totals,
                      int (*add)(series_set *set, const weir_total *total, weir_error *error), weir_error *error)
{
    static const weir_subject subjects[] = { WEIR_SUBJECT_STAGE, WEIR_SUBJECT_QUEUE };
    int status = WEIR_OK;
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < totals->of[subjects[s]].count && status == WEIR_OK; i++)
            status = add(set, &totals->of[subjects[s]].all[i], error);
    return status;
}

static int read_bins(weir_reader *reader, const weir_filter *filter, series_set *set, const extent *all,
                     weir_error *error)
{
    size_t most = MAX_BINS / (2 * all->num_lines);
    most = most > MAX_POINTS ? MAX_POINTS : most < MIN_POINTS ? MIN_POINTS : most;
    weir_grouping grouping = { .by = WEIR_BY_NAME | WEIR_BY_RUN | WEIR_BY_TIME,
                               .bin_ns = (all->end_unix_ns - all->start_unix_ns) / (int64_t)most };
    weir_totals totals;
    int status = weir_totals_read(reader, filter, &grouping, &totals, error);
    if (status != WEIR_OK)
        return status;
    set->binned = true;
    status = add_totals(set, &totals, add_total, error);
    weir_totals_free(&totals);
    return status;
}

/* The last lap of a run is shorter than the others, and its rates are mostly noise: it is joined with the previous
   lap. */
static int replace_last_two(series_set *set, const weir_total *total, weir_error *error)
{
    series *line = line_of(set, total);
    if (!line)
        return no_memory(error);
    if (total->key.num_laps == 2 && line->num_points >= 2)
        fill_point(set, &line->points[--line->num_points - 1], total);
    return WEIR_OK;
}

static int join_short_last_lap(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error)
{
    const series *line = set->num_queues ? set->queues : set->num_tasks ? set->tasks : NULL;
    if (set->num_runs != 1 || !line || line->num_points < 3)
        return WEIR_OK;
    const series_point *last = &line->points[line->num_points - 1], *before = last - 1;
    double length = before->end - before->start;
    if (last->end - last->start >= 0.5 * length)
        return WEIR_OK;
    weir_totals totals;
    weir_filter latest = *filter;
    latest.start_unix_ns = set->origin_unix_ns + (int64_t)((before->start + 0.5 * length) * 1e9);
    int status =
        weir_totals_read(reader, &latest, &(weir_grouping){ .by = WEIR_BY_NAME | WEIR_BY_RUN }, &totals, error);
    if (status != WEIR_OK)
        return status;
    status = add_totals(set, &totals, replace_last_two, error);
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
        status = weir_each_record(reader, WEIR_RECORD_TASK, filter, add_record, set, error);
    if (status == WEIR_OK)
        status = weir_each_record(reader, WEIR_RECORD_QUEUE, filter, add_record, set, error);
    return status;
}

int series_read(weir_reader *reader, const weir_filter *filter, unsigned how, series_set *set, weir_error *error)
{
    *set = (series_set){ .counts = how & SERIES_COUNTS };
    weir_filter own = *filter;
    own.name = NULL; /* names of stages and queues must not filter events and phases */
    int status = read_laps(reader, filter, set, error);
    if (status == WEIR_OK && how & SERIES_JOIN_SHORT && !set->binned)
        status = join_short_last_lap(reader, filter, set, error);
    if (status == WEIR_OK)
        status = weir_each_record(reader, WEIR_RECORD_EVENT, &own, add_record, set, error);
    if (status == WEIR_OK)
        status = weir_each_record(reader, WEIR_RECORD_PHASE, &own, add_record, set, error);
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
