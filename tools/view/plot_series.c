#include "tools/view/plot_series.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/export.h>
#include <weir/verdict.h>

#include "tools/cli/memory.h"

enum {
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

/* Events that say something of the run, not of a time in it. */
static bool is_about_run(const char *event)
{
    static const char *const names[] = { "phase", "expected_items", "working_directory" };
    const weir_export_format *format;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(event, names[i]) == 0)
            return true;
    for (size_t i = 0; (format = weir_export_at(i)); i++)
        if (format->place_event && strcmp(event, format->place_event) == 0)
            return true;
    return false;
}

static void add_event(series_set *set, const weir_event_record *event)
{
    double at = since_origin(set, event->unix_ns);
    if (!is_about_run(event->name))
        add_mark(&set->events, &(series_mark){ at, at, (char *)(uintptr_t)event->name, 0, event->run_id });
}

/* What "gc_start" or "gc stop" begins or ends: the bytes of "gc"; 0 = it does not. */
static size_t pause_bytes(const char *event, bool ends)
{
    static const char *const words[2][2] = { { "start", "begin" }, { "stop", "end" } };
    size_t length = strlen(event);
    for (int i = 0; i < 2; i++) {
        const char *word = words[ends][i];
        size_t tail = strlen(word) + 1;
        if (length > tail && strchr("_- .:/", event[length - tail]) && strcmp(event + length - tail + 1, word) == 0)
            return length - tail;
    }
    return 0;
}

/* The event that ends the pause that this one begins; NULL = none does, or it begins anew before. */
static series_mark *find_pause_end(const series_marks *events, const series_mark *start, size_t bytes)
{
    for (series_mark *other = (series_mark *)(uintptr_t)start + 1; other < events->all + events->count; other++) {
        if (other->run_id != start->run_id || !other->text || strncmp(other->text, start->text, bytes) != 0)
            continue;
        if (pause_bytes(other->text, true) == bytes)
            return other;
        if (pause_bytes(other->text, false) == bytes)
            return NULL;
    }
    return NULL;
}

/* Takes the events that begin and end pauses from the others. */
static void find_pauses(series_set *set)
{
    series_marks *events = &set->events;
    for (size_t i = 0; i < events->count; i++) {
        series_mark *start = &events->all[i];
        size_t bytes = start->text ? pause_bytes(start->text, false) : 0;
        series_mark *end = bytes ? find_pause_end(events, start, bytes) : NULL;
        if (!end)
            continue;
        start->text[bytes] = '\0';
        add_mark(&set->pauses, &(series_mark){ start->start, end->start, start->text, 0, start->run_id });
        free(start->text);
        free(end->text);
        start->text = end->text = NULL;
    }
    size_t kept = 0;
    for (size_t i = 0; i < events->count; i++)
        if (events->all[i].text)
            events->all[kept++] = events->all[i];
    events->count = kept;
}

static void add_phase(series_set *set, const weir_phase_record *phase)
{
    series_mark mark = { since_origin(set, phase->start_unix_ns), since_origin(set, phase->end_unix_ns),
                         (char *)(uintptr_t)phase->position.phase, 0, phase->run_id };
    if (phase->position.phase[0])
        add_mark(&set->phases, &mark);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

static int note_record(void *self, const weir_record *record, weir_error *error)
{
    (void)error;
    if (record->kind == WEIR_RECORD_EVENT)
        add_event(self, &record->event);
    else
        add_phase(self, &record->phase);
    return WEIR_OK;
}

/* Where the laps are, how many curves they are, and of how many runs. */
static size_t find_extent(series_set *set, const weir_totals *totals)
{
    int64_t start = INT64_MAX, end = 0, last_run = 0;
    size_t num_lines = 0;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        for (size_t i = 0; i < totals->of[subject].count; i++) {
            const weir_group_key *key = &totals->of[subject].all[i].key;
            start = key->start_unix_ns < start ? key->start_unix_ns : start;
            end = key->end_unix_ns > end ? key->end_unix_ns : end;
            num_lines++;
            set->num_runs += key->run_id > last_run;
            last_run = key->run_id > last_run ? key->run_id : last_run;
        }
    set->origin_unix_ns = num_lines ? start : 0;
    set->end = num_lines ? since_origin(set, end) : 0;
    return num_lines;
}

/* Laps that end in the same three-hundredth of the time are one point; most often these are single laps. */
static int read_laps(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error)
{
    weir_grouping grouping = { .by = WEIR_BY_NAME | WEIR_BY_RUN };
    weir_totals totals;
    int status = weir_totals_read(reader, filter, &grouping, &totals, error);
    if (status != WEIR_OK)
        return status;
    size_t num_lines = find_extent(set, &totals), most = num_lines ? MAX_BINS / num_lines : 1;
    weir_totals_free(&totals);
    most = most > SERIES_MAX_POINTS ? SERIES_MAX_POINTS : most < MIN_POINTS ? MIN_POINTS : most;
    grouping.by |= WEIR_BY_TIME;
    grouping.bin_ns = (int64_t)(set->end * 1e9) / (int64_t)most + 1;
    status = num_lines ? weir_totals_read(reader, filter, &grouping, &totals, error) : WEIR_EOF;
    if (status != WEIR_OK)
        return status == WEIR_EOF ? WEIR_OK : status;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        for (size_t i = 0; i < totals.of[subject].count; i++)
            add_total(set, &totals.of[subject].all[i]);
    weir_totals_free(&totals);
    return WEIR_OK;
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
        [WEIR_VERDICT_UNKNOWN] = "not clear",
        [WEIR_VERDICT_NONE] = "the training loop, as it should",
        [WEIR_VERDICT_CONSUMER] = "consumer",
        [WEIR_VERDICT_SOURCE] = "source %s",
        [WEIR_VERDICT_SLOTS] = "slots of %s",
        [WEIR_VERDICT_OUTSIDE] = "%s waits outside",
        [WEIR_VERDICT_THREADS] = "threads",
        [WEIR_VERDICT_CPUS] = "CPUs",
        [WEIR_VERDICT_ORDER] = "order of %s",
        [WEIR_VERDICT_QUEUE] = "queue %s",
        [WEIR_VERDICT_FAILURES] = "items that fail in %s",
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
        add_mark(&set->limits, &(series_mark){ start, end, text, (int)verdict->kind, 0 });
    free(text);
}

/* What limits each part of a single run. */
static int read_limits(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error)
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

/* ---- all of it ----------------------------------------------------------------------------------------------- */

int series_read(weir_reader *reader, const weir_filter *filter, series_set *set, weir_error *error)
{
    *set = (series_set){ 0 };
    weir_filter own = *filter;
    own.name = NULL; /* names of stages and queues must not filter events and phases */
    int status = read_laps(reader, filter, set, error);
    if (set->lists[WEIR_SUBJECT_SPAN].count)
        qsort(set->lists[WEIR_SUBJECT_SPAN].all, set->lists[WEIR_SUBJECT_SPAN].count, sizeof(series), longer_span);
    if (status == WEIR_OK)
        status = weir_reader_each(reader, WEIR_RECORD_EVENT, &own, note_record, set, error);
    find_pauses(set);
    if (status == WEIR_OK)
        status = weir_reader_each(reader, WEIR_RECORD_PHASE, &own, note_record, set, error);
    if (status == WEIR_OK)
        status = read_limits(reader, filter, set, error);
    return status;
}

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
    free_marks(&set->pauses);
    free_marks(&set->phases);
    free_marks(&set->limits);
    *set = (series_set){ 0 };
}
