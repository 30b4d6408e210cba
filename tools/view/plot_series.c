#include "plot_series.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

enum {
    MAX_POINTS = 300,  /* of a curve: more would be narrower than a pixel or two */
    MIN_POINTS = 20,   /* of a curve, for any number of curves */
    MAX_BINS = 1 << 13 /* of all curves together; each takes 10 to 30 kB while they are read */
};

static int no_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory for the plot");
}

/* The measures that are drawn; the first as a rate and as a count, of stages also the next two. */
static const struct {
    const char *name;
    weir_subject subject;
    const char *measures[SERIES_MAX_VALUES], *counts[3];
} kinds[NUM_SERIES_KINDS] = {
    [SERIES_STAGES] = { "tasks",
                        WEIR_SUBJECT_STAGE,
                        { "tasks_per_s", "successes_per_s", "failures_per_s", "ave_time", "p50_time", "p90_time",
                          "p99_time", "max_time", "busy_share", "cpu_slot_share", "wait_in_share",
                          "wait_thread_share", "wait_turn_share", "wait_out_share" },
                        { "num_tasks", "num_successes", "num_failures" } },
    [SERIES_QUEUES] = { "queues",
                        WEIR_SUBJECT_QUEUE,
                        { "items_per_s", "occupancy_rate", "ave_put_time", "ave_get_time", "ave_depth" },
                        { "num_items" } },
    [SERIES_SPANS] = { "spans",
                       WEIR_SUBJECT_SPAN,
                       { "spans_per_s", "ave_time", "p50_time", "p90_time", "p99_time", "max_time", "total_share" },
                       { "num_spans" } },
    [SERIES_COUNTERS] = { "counters",
                          WEIR_SUBJECT_COUNTER,
                          { "ave_value", "last_value", "min_value", "max_value" },
                          { 0 } },
    [SERIES_PROCESS] = { "process",
                         WEIR_SUBJECT_PROCESS,
                         { "cpus", "pool_cpus", "resident_bytes", "peak_bytes", "read_rate", "write_rate" },
                         { 0 } },
    [SERIES_MACHINE] = { "machine",
                         WEIR_SUBJECT_MACHINE,
                         { "other_cpus", "idle_cpus", "stolen_cpus", "cpu_pressure", "io_pressure", "memory_pressure",
                           "receive_rate", "send_rate" },
                         { 0 } },
};

const char *series_kind_name(series_kind kind)
{
    return kinds[kind].name;
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

static series *find_series(const series_set *set, series_list *list, const weir_group_key *key)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->all[i].run_id == key->run_id && strcmp(list->all[i].plain_name, key->name) == 0)
            return &list->all[i];
    char *name = name_of(set, key);
    series *grown = name ? weir__array_grow(list->all, list->count, sizeof *grown) : NULL;
    if (!grown) {
        free(name);
        return NULL;
    }
    list->all = grown;
    grown[list->count] =
        (series){ .name = name, .plain_name = name + strlen(name) - strlen(key->name), .run_id = key->run_id };
    return &grown[list->count++];
}

static double since_origin(const series_set *set, int64_t unix_ns)
{
    return (double)(unix_ns - set->origin_unix_ns) / 1e9;
}

static void fill_point(const series_set *set, series_kind kind, series_point *point, const weir_total *total)
{
    *point = (series_point){ .start = since_origin(set, total->key.start_unix_ns),
                             .end = since_origin(set, total->key.end_unix_ns) };
    bool only_rate = kind == SERIES_SPANS && strcmp(total->kind, "marker") == 0;
    for (int i = 0; i < SERIES_MAX_VALUES && kinds[kind].measures[i]; i++) {
        const char *counted = set->counts && i < 3 ? kinds[kind].counts[i] : NULL;
        point->values[i] =
            only_rate && i > 0
                ? NAN
                : weir_total_value(total,
                                   weir_measure_find(total->subject, counted ? counted : kinds[kind].measures[i]));
    }
    if (kind == SERIES_STAGES && isnan(point->values[TASK_AVE]))
        point->values[TASK_MAX] = NAN;
}

static int add_total(series_set *set, series_kind kind, const weir_total *total, weir_error *error)
{
    series *line = find_series(set, &set->lists[kind], &total->key);
    series_point *points = line ? weir__array_grow(line->points, line->num_points, sizeof *points) : NULL;
    if (!points)
        return no_memory(error);
    line->points = points;
    line->capacity = total->capacity > line->capacity ? total->capacity : line->capacity;
    fill_point(set, kind, &points[line->num_points++], total);
    return WEIR_OK;
}

/* ---- events and phases -------------------------------------------------------------------------------------- */

static int add_mark(series_mark **marks, size_t *num_marks, const series_mark *mark, weir_error *error)
{
    series_mark *grown = weir__array_grow(*marks, *num_marks, sizeof *grown);
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
    if (strcmp(event->name, "phase") == 0 || strcmp(event->name, "expected_items") == 0 ||
        strcmp(event->name, "trace_file") == 0)
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
    series_kind kind = 0;
    if (record->kind == WEIR_RECORD_EVENT)
        return add_event(set, &record->event, error);
    if (record->kind == WEIR_RECORD_PHASE)
        return add_phase(set, &record->phase, error);
    while (kinds[kind].subject != record->lap.subject)
        kind++;
    total = weir_total_of_lap(&record->lap);
    return add_total(set, kind, &total, error);
}

/* Counts what will be drawn, before reading it. */
typedef struct extent {
    int64_t start_unix_ns, end_unix_ns;
    int64_t max_laps; /* of a curve */
    size_t num_lines;
} extent;

static void extend(extent *all, series_set *set, const weir_total_list *list)
{
    int64_t last_run = 0, num_runs = 0;
    for (size_t i = 0; i < list->count; i++) {
        const weir_group_key *key = &list->all[i].key;
        if (all->num_lines == 0 || key->start_unix_ns < all->start_unix_ns)
            all->start_unix_ns = key->start_unix_ns;
        if (all->num_lines == 0 || key->end_unix_ns > all->end_unix_ns)
            all->end_unix_ns = key->end_unix_ns;
        all->max_laps = key->num_laps > all->max_laps ? key->num_laps : all->max_laps;
        all->num_lines++;
        num_runs += key->run_id != last_run;
        last_run = key->run_id;
    }
    set->num_runs = num_runs > set->num_runs ? num_runs : set->num_runs;
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
    for (series_kind kind = 0; kind < NUM_SERIES_KINDS; kind++)
        extend(all, set, &totals.of[kinds[kind].subject]);
    set->origin_unix_ns = all->start_unix_ns;
    set->end = since_origin(set, all->end_unix_ns);
    weir_totals_free(&totals);
    return WEIR_OK;
}

static int add_totals(series_set *set, const weir_totals *totals,
                      int (*add)(series_set *set, series_kind kind, const weir_total *total, weir_error *error),
                      weir_error *error)
{
    int status = WEIR_OK;
    for (series_kind kind = 0; kind < NUM_SERIES_KINDS; kind++) {
        const weir_total_list *list = &totals->of[kinds[kind].subject];
        for (size_t i = 0; i < list->count && status == WEIR_OK; i++)
            status = add(set, kind, &list->all[i], error);
    }
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
static int replace_last_two(series_set *set, series_kind kind, const weir_total *total, weir_error *error)
{
    series *line = find_series(set, &set->lists[kind], &total->key);
    if (!line)
        return no_memory(error);
    if (total->key.num_laps == 2 && line->num_points >= 2)
        fill_point(set, kind, &line->points[--line->num_points - 1], total);
    return WEIR_OK;
}

static int join_short_last_lap(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error)
{
    const series *line = NULL;
    for (series_kind kind = NUM_SERIES_KINDS; kind-- > 0;)
        line = set->lists[kind].count ? set->lists[kind].all : line;
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
    for (series_kind kind = 0; kind < NUM_SERIES_KINDS && status == WEIR_OK; kind++)
        status = weir_reader_each(reader, weir_record_kind_of(kinds[kind].subject), filter, add_record, set, error);
    return status;
}

static double time_in(const series *span)
{
    double all = 0;
    for (size_t i = 0; i < span->num_points; i++)
        all += fmax(0, span->points[i].values[SPAN_SHARE]) * (span->points[i].end - span->points[i].start);
    return all;
}

static int longer_span(const void *one, const void *other)
{
    double a = time_in(one), b = time_in(other);
    return a > b ? -1 : a < b;
}

int series_read(weir_reader *reader, const weir_filter *filter, unsigned how, series_set *set, weir_error *error)
{
    *set = (series_set){ .counts = how & SERIES_COUNTS };
    weir_filter own = *filter;
    own.name = NULL; /* names of stages and queues must not filter events and phases */
    int status = read_laps(reader, filter, set, error);
    if (status == WEIR_OK && how & SERIES_JOIN_SHORT && !set->binned)
        status = join_short_last_lap(reader, filter, set, error);
    if (set->lists[SERIES_SPANS].count)
        qsort(set->lists[SERIES_SPANS].all, set->lists[SERIES_SPANS].count, sizeof(series), longer_span);
    if (status == WEIR_OK)
        status = weir_reader_each(reader, WEIR_RECORD_EVENT, &own, add_record, set, error);
    if (status == WEIR_OK)
        status = weir_reader_each(reader, WEIR_RECORD_PHASE, &own, add_record, set, error);
    return status;
}

static void free_lines(series_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->all[i].name);
        free(list->all[i].points);
    }
    free(list->all);
}

static void free_marks(series_mark *marks, size_t num_marks)
{
    for (size_t i = 0; i < num_marks; i++)
        free(marks[i].text);
    free(marks);
}

void series_free(series_set *set)
{
    for (series_kind kind = 0; kind < NUM_SERIES_KINDS; kind++)
        free_lines(&set->lists[kind]);
    free_marks(set->events, set->num_events);
    free_marks(set->phases, set->num_phases);
    *set = (series_set){ 0 };
}
