#include "plot_series.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/verdict.h>

#include "memory.h"

enum {
    MAX_POINTS = 300,   /* of a curve: more would be narrower than a pixel or two */
    MIN_POINTS = 20,    /* of a curve, for any number of curves */
    MAX_BINS = 1 << 13, /* of all curves together; each takes 10 to 30 kB while they are read */
    MAX_LIMITS = 16,    /* parts of a run that are judged apart */
    MIN_LIMIT_LAPS = 3  /* of such a part */
};

/* ---- curves ------------------------------------------------------------------------------------------------- */

static series *find_or_add(series_set *set, const weir_total *total)
{
    series_list *list = &set->lists[total->subject];
    const weir_group_key *key = &total->key;
    for (size_t i = 0; i < list->count; i++)
        if (list->all[i].run_id == key->run_id && strcmp(list->all[i].plain_name, key->name) == 0)
            return &list->all[i];
    char *name =
        set->num_runs > 1 ? memory_format("run %" PRId64 " %s", key->run_id, key->name) : memory_copy(key->name);
    list->all = memory_grow(list->all, list->count, sizeof *list->all);
    list->all[list->count] = (series){ .name = name,
                                       .plain_name = name + strlen(name) - strlen(key->name),
                                       .kind = memory_copy(total->kind),
                                       .run_id = key->run_id };
    return &list->all[list->count++];
}

static double since_origin(const series_set *set, int64_t unix_ns)
{
    return (double)(unix_ns - set->origin_unix_ns) / 1e9;
}

/* Without tasks there is no longest time; a marker takes none. */
static void fill_point(const series_set *set, series_point *point, const weir_total *total)
{
    size_t count;
    const weir_measure *measures = weir_subject_measures(total->subject, &count);
    *point = (series_point){ .start = since_origin(set, total->key.start_unix_ns),
                             .end = since_origin(set, total->key.end_unix_ns) };
    bool is_marker = strcmp(total->kind, "marker") == 0;
    for (size_t i = 0; i < count && i < SERIES_MAX_MEASURES; i++) {
        bool is_time = strcmp(measures[i].unit, "s") == 0 || strcmp(measures[i].unit, "share") == 0;
        double value = weir_total_value(total, &measures[i]);
        bool is_none = is_time && value == 0 && measures[i].metric && measures[i].metric->kind == WEIR_METRIC_MAX;
        point->values[i] = is_none || (is_marker && is_time) ? NAN : value;
    }
}

static void add_total(series_set *set, const weir_total *total)
{
    series *line = find_or_add(set, total);
    line->points = memory_grow(line->points, line->num_points, sizeof *line->points);
    line->capacity = total->capacity > line->capacity ? total->capacity : line->capacity;
    fill_point(set, &line->points[line->num_points++], total);
}

double series_value(weir_subject subject, const series_point *point, const char *measure)
{
    size_t count;
    const weir_measure *first = weir_subject_measures(subject, &count), *found = weir_measure_find(subject, measure);
    return point && found ? point->values[found - first] : NAN;
}

const series *series_find(const series_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->all[i].name, name) == 0)
            return &list->all[i];
    return NULL;
}

const series *series_throughput(const series_set *set, weir_subject *subject)
{
    const series_list *queues = &set->lists[WEIR_SUBJECT_QUEUE], *stages = &set->lists[WEIR_SUBJECT_STAGE];
    *subject = WEIR_SUBJECT_QUEUE;
    for (size_t i = 0; i < queues->count; i++)
        if (strstr(queues->all[i].plain_name, ":sink"))
            return &queues->all[i];
    *subject = WEIR_SUBJECT_STAGE;
    return stages->count ? &stages->all[stages->count - 1] : NULL;
}

/* ---- events and phases -------------------------------------------------------------------------------------- */

static void add_mark(series_marks *marks, const series_mark *mark)
{
    marks->all = memory_grow(marks->all, marks->count, sizeof *marks->all);
    marks->all[marks->count] = *mark;
    marks->all[marks->count++].text = memory_copy(mark->text);
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
    for (size_t i = set->events.count; stem && i-- > 0;) { /* the latest first, which is usually the match */
        series_mark *mark = &set->events.all[i];
        if (mark->run_id == event->run_id && mark->start == mark->end && stem_of(mark->text, "_start") == stem &&
            strncmp(mark->text, event->name, stem) == 0) {
            mark->text[stem] = '\0';
            mark->end = since_origin(set, event->unix_ns);
            return true;
        }
    }
    return false;
}

static void add_event(series_set *set, const weir_event_record *event)
{
    double at = since_origin(set, event->unix_ns);
    if (strcmp(event->name, "phase") != 0 && strcmp(event->name, "expected_items") != 0 &&
        strcmp(event->name, "trace_file") != 0 && !end_span(set, event))
        add_mark(&set->events, &(series_mark){ at, at, event->run_id, (char *)(uintptr_t)event->name, 0 });
}

static void add_phase(series_set *set, const weir_phase_record *phase)
{
    series_mark mark = { since_origin(set, phase->start_unix_ns), since_origin(set, phase->end_unix_ns),
                         phase->run_id, (char *)(uintptr_t)phase->position.phase, 0 };
    if (phase->position.phase[0])
        add_mark(&set->phases, &mark);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

static int add_record(void *self, const weir_record *record, weir_error *error)
{
    (void)error;
    if (record->kind == WEIR_RECORD_EVENT)
        add_event(self, &record->event);
    else if (record->kind == WEIR_RECORD_PHASE)
        add_phase(self, &record->phase);
    else {
        weir_total total = weir_total_of_lap(&record->lap);
        add_total(self, &total);
    }
    return WEIR_OK;
}

static int read_series_totals(weir_reader *reader, const weir_filter *filter, int64_t bin_ns, weir_totals *totals,
                              weir_error *error)
{
    weir_grouping grouping = { .by = WEIR_BY_NAME | WEIR_BY_RUN | (bin_ns ? WEIR_BY_TIME : 0), .bin_ns = bin_ns };
    return weir_totals_read(reader, filter, &grouping, totals, error);
}

static void add_all_totals(series_set *set, const weir_totals *totals,
                           void (*add)(series_set *set, const weir_total *total))
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        for (size_t i = 0; i < totals->of[subject].count; i++)
            add(set, &totals->of[subject].all[i]);
}

/* What will be drawn, before it is read. */
typedef struct extent {
    int64_t start_unix_ns, end_unix_ns;
    int64_t max_laps; /* of a curve */
    size_t num_lines;
    int64_t last_run, num_runs;
} extent;

static void extend(extent *all, const weir_group_key *key)
{
    if (all->num_lines == 0 || key->start_unix_ns < all->start_unix_ns)
        all->start_unix_ns = key->start_unix_ns;
    if (all->num_lines == 0 || key->end_unix_ns > all->end_unix_ns)
        all->end_unix_ns = key->end_unix_ns;
    all->max_laps = key->num_laps > all->max_laps ? key->num_laps : all->max_laps;
    all->num_lines++;
    all->num_runs += key->run_id > all->last_run;
    all->last_run = key->run_id > all->last_run ? key->run_id : all->last_run;
}

static int read_laps(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error)
{
    extent all = { 0 };
    weir_totals totals;
    int status = read_series_totals(reader, filter, 0, &totals, error);
    if (status != WEIR_OK)
        return status;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        for (size_t i = 0; i < totals.of[subject].count; i++)
            extend(&all, &totals.of[subject].all[i].key);
    weir_totals_free(&totals);
    set->num_runs = all.num_runs;
    set->origin_unix_ns = all.start_unix_ns;
    set->end = since_origin(set, all.end_unix_ns);
    set->binned = all.max_laps > 2 * MAX_POINTS;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && status == WEIR_OK && !set->binned; subject++)
        status = weir_reader_each(reader, weir_record_kind_of(subject), filter, add_record, set, error);
    if (!set->binned)
        return status;
    size_t most = MAX_BINS / (2 * all.num_lines);
    most = most > MAX_POINTS ? MAX_POINTS : most < MIN_POINTS ? MIN_POINTS : most;
    status =
        read_series_totals(reader, filter, (all.end_unix_ns - all.start_unix_ns) / (int64_t)most, &totals, error);
    if (status == WEIR_OK) {
        add_all_totals(set, &totals, add_total);
        weir_totals_free(&totals);
    }
    return status;
}

/* The last lap of a run is shorter than the others, and its rates are mostly noise: it is joined with the previous
   lap. */
static void replace_last_two(series_set *set, const weir_total *total)
{
    series *line = find_or_add(set, total);
    if (total->key.num_laps == 2 && line->num_points >= 2)
        fill_point(set, &line->points[--line->num_points - 1], total);
}

static int join_short_last_lap(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error)
{
    const series *line = NULL;
    for (weir_subject subject = WEIR_NUM_SUBJECTS; subject-- > 0;)
        line = set->lists[subject].count ? set->lists[subject].all : line;
    if (set->num_runs != 1 || set->binned || !line || line->num_points < 3)
        return WEIR_OK;
    const series_point *last = &line->points[line->num_points - 1], *before = last - 1;
    double length = before->end - before->start;
    if (last->end - last->start >= 0.5 * length)
        return WEIR_OK;
    weir_totals totals;
    weir_filter latest = *filter;
    latest.start_unix_ns = set->origin_unix_ns + (int64_t)((before->start + 0.5 * length) * 1e9);
    int status = read_series_totals(reader, &latest, 0, &totals, error);
    if (status == WEIR_OK) {
        add_all_totals(set, &totals, replace_last_two);
        weir_totals_free(&totals);
    }
    return status;
}

static double time_in(const series *span)
{
    double all = 0;
    for (size_t i = 0; i < span->num_points; i++)
        all += fmax(0, series_value(WEIR_SUBJECT_SPAN, &span->points[i], "total_time"));
    return all;
}

static int longer_span(const void *one, const void *other)
{
    double a = time_in(one), b = time_in(other);
    return a > b ? -1 : a < b;
}

int series_read(weir_reader *reader, const weir_filter *filter, bool join_short, series_set *set, weir_error *error)
{
    *set = (series_set){ 0 };
    weir_filter own = *filter;
    own.name = NULL; /* names of stages and queues must not filter events and phases */
    int status = read_laps(reader, filter, set, error);
    if (status == WEIR_OK && join_short)
        status = join_short_last_lap(reader, filter, set, error);
    if (set->lists[WEIR_SUBJECT_SPAN].count)
        qsort(set->lists[WEIR_SUBJECT_SPAN].all, set->lists[WEIR_SUBJECT_SPAN].count, sizeof(series), longer_span);
    if (status == WEIR_OK)
        status = weir_reader_each(reader, WEIR_RECORD_EVENT, &own, add_record, set, error);
    if (status == WEIR_OK)
        status = weir_reader_each(reader, WEIR_RECORD_PHASE, &own, add_record, set, error);
    return status;
}

/* ---- limits ------------------------------------------------------------------------------------------------- */

/* "decode" of "0:1:decode[10]" */
static char *short_name(const char *name)
{
    const char *colon = strrchr(name, ':'), *start = colon ? colon + 1 : name;
    return memory_format("%.*s", (int)strcspn(start, "["), start);
}

static char *limit_text(const weir_verdict *verdict)
{
    static const char *const forms[WEIR_NUM_VERDICTS] = {
        [WEIR_VERDICT_UNKNOWN] = "not clear", [WEIR_VERDICT_NONE] = "the training loop, as it should",
        [WEIR_VERDICT_CONSUMER] = "consumer", [WEIR_VERDICT_SOURCE] = "source %s",
        [WEIR_VERDICT_SLOTS] = "slots of %s", [WEIR_VERDICT_OUTSIDE] = "%s waits outside",
        [WEIR_VERDICT_THREADS] = "threads",   [WEIR_VERDICT_CPUS] = "CPUs",
        [WEIR_VERDICT_ORDER] = "order of %s", [WEIR_VERDICT_QUEUE] = "queue %s",
    };
    char *name = short_name(verdict->name), *text = NULL;
    const char *form = forms[verdict->kind], *place = strstr(form, "%s");
    text = place ? memory_format("%.*s%s%s", (int)(place - form), form, name, place + 2) : memory_copy(form);
    free(name);
    return text;
}

static void add_limit_mark(series_set *set, double start, double end, const weir_verdict *verdict)
{
    series_mark *last = set->limits.count ? &set->limits.all[set->limits.count - 1] : NULL;
    char *text = limit_text(verdict);
    if (last && strcmp(last->text, text) == 0)
        last->end = end;
    else
        add_mark(&set->limits, &(series_mark){ start, end, 0, text, (int)verdict->kind });
    free(text);
}

int series_read_limits(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error)
{
    weir_subject subject;
    const series *line = series_throughput(set, &subject);
    size_t parts = line && set->num_runs == 1 ? line->num_points / MIN_LIMIT_LAPS : 0;
    parts = parts > MAX_LIMITS ? MAX_LIMITS : line && set->num_runs == 1 && parts == 0 ? 1 : parts;
    for (size_t i = 0; i < parts; i++) {
        weir_verdict *verdict;
        weir_filter part = *filter;
        const series_point *first = &line->points[i * line->num_points / parts];
        const series_point *last = &line->points[(i + 1) * line->num_points / parts - 1];
        /* inside of these laps: the filter takes laps that overlap */
        double start = 0.5 * (first->start + first->end), end = fmax(0.5 * (last->start + last->end), start + 1e-6);
        part.start_unix_ns = set->origin_unix_ns + (int64_t)(start * 1e9);
        part.end_unix_ns = set->origin_unix_ns + (int64_t)(end * 1e9);
        int status = weir_verdict_read(reader, &part, &verdict, error);
        if (status != WEIR_OK)
            return status;
        add_limit_mark(set, first->start, last->end, verdict);
        weir_verdict_free(verdict);
    }
    return WEIR_OK;
}

/* ---- */

static void free_marks(series_marks *marks)
{
    for (size_t i = 0; i < marks->count; i++)
        free(marks->all[i].text);
    free(marks->all);
}

void series_free(series_set *set)
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        series_list *list = &set->lists[subject];
        for (size_t i = 0; i < list->count; i++) {
            free(list->all[i].name);
            free(list->all[i].kind);
            free(list->all[i].points);
        }
        free(list->all);
    }
    free_marks(&set->events);
    free_marks(&set->phases);
    free_marks(&set->limits);
    *set = (series_set){ 0 };
}
