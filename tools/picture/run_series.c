/*
 * Laps of stages, nodes, queues, pools, processes and machines are read once, in the order of time, and added up as
 * they come. A series has one open bin, and one open window for the limit. A bin that is closed is a point. Spans and
 * counters have rows only of the laps in which they occurred, but rates over all laps: weir_totals_read() adds these
 * up.
 */
#include "tools/picture/run_series.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/export.h>
#include <weir/verdict.h>

#include "tools/cli/memory.h"

enum {
    SERIES_MAX_COLUMNS = 64,
    MAX_LISTED = 14,    /* spans, and counters: more could not be distinguished */
    MAX_WINDOWS = 40,   /* parts of a run that are judged apart: each is wide enough to be seen */
    MIN_WINDOW_LAPS = 3 /* of such a part */
};

/* What is open of a series. */
struct series_open {
    int64_t bin;
    weir_total total;                           /* of the laps of the bin; its texts are not used */
    weir_histogram *times[WEIR_MAX_HISTOGRAMS]; /* of the bin; NULL = not needed yet */
    double *lows, *highs;                       /* of each column, in whole laps */
    int64_t longest_ns;                         /* lap so far */
    weir_total windows[MAX_WINDOWS];            /* without histograms; num_laps 0 = no lap */
};

typedef struct reading {
    weir_recording *recording;
    weir_filter filter; /* without its name */
    bool details, has_phases;
    series_set *set;
    int64_t bin_ns, window_ns;
    size_t next[WEIR_NUM_SUBJECTS]; /* where the next lap's series is: laps take turns */
    bool are_curves[WEIR_NUM_SUBJECTS][SERIES_MAX_COLUMNS];
} reading;

/* ---- columns ------------------------------------------------------------------------------------------------ */

/* What the first picture shows; two of them as curves. */
static const struct {
    const char *measure;
    bool is_curve;
} overview[] = {
    { "items_per_s", true },      { "tasks_per_s", true },     { "busy_share", false },
    { "cpu_slot_share", false },  { "wait_in_share", false },  { "wait_thread_share", false },
    { "wait_turn_share", false }, { "wait_out_share", false }, { "cpus", false },
    { "ave_depth", false },       { "occupancy_rate", false }, { "other_cpus", false },
    { "idle_cpus", false },       { "stolen_cpus", false },    { "throttled_share", false },
};
enum { NUM_OVERVIEW = sizeof overview / sizeof overview[0] };

static bool is_in_overview(const weir_measure *measure, bool *is_curve)
{
    for (size_t i = 0; i < NUM_OVERVIEW; i++)
        if (strcmp(overview[i].measure, measure->name) == 0) {
            *is_curve = overview[i].is_curve;
            return true;
        }
    return false;
}

/* Sums depend on the length of a lap, rates do not. Bad rates have no title in tables, but are worth a curve. What the
   slots do is in the first picture; between the average and p99 there is little to see. */
bool series_has_panel(weir_subject subject, const weir_measure *measure)
{
    static const char *const others[] = { "min_", "p50_", "p90_", "busy_share", "wait_" };
    bool is_sum = measure->metric && measure->metric->kind <= WEIR_METRIC_SUM;
    bool is_bad_rate = strcmp(measure->unit, "1/s") == 0 && measure->better < 0;
    for (size_t i = 0; i < (subject <= WEIR_SUBJECT_FLOW ? 5 : 3); i++)
        if (strncmp(measure->name, others[i], strlen(others[i])) == 0)
            return false;
    bool is_level_or_rate = strcmp(measure->name, "ave_value") == 0 || strcmp(measure->name, "increase_per_s") == 0;
    return subject == WEIR_SUBJECT_COUNTER ? is_level_or_rate : (measure->title || is_bad_rate) && !is_sum;
}

static void choose_columns(reading *r)
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        series_list *list = &r->set->lists[subject];
        size_t count;
        const weir_measure *measures = weir_subject_measures(subject, &count);
        list->columns = memory_get(count, sizeof *list->columns);
        for (size_t i = 0; i < count && list->num_columns < SERIES_MAX_COLUMNS; i++) {
            bool is_curve = false, has_panel = r->details && series_has_panel(subject, &measures[i]);
            if (!is_in_overview(&measures[i], &is_curve) && !has_panel)
                continue;
            r->are_curves[subject][list->num_columns] = is_curve || has_panel;
            list->columns[list->num_columns++] = &measures[i];
        }
    }
}

const series_value *series_values(const series_list *list, const series *line, const char *measure)
{
    for (size_t i = 0; i < list->num_columns && line && line->num_points; i++)
        if (strcmp(list->columns[i]->name, measure) == 0)
            return line->values + i;
    return NULL;
}

/* Without tasks there is no longest time; a marker takes none. */
static double value_of(const weir_total *total, const weir_measure *measure)
{
    bool is_time = strcmp(measure->unit, "s") == 0 || strcmp(measure->unit, "share") == 0;
    double value = weir_total_value(total, measure);
    bool is_none = is_time && value == 0 && measure->metric && measure->metric->kind == WEIR_METRIC_MAX;
    return is_none || (is_time && strcmp(total->kind, "marker") == 0) ? NAN : value;
}

/* ---- series ------------------------------------------------------------------------------------------------- */

static double since_origin(const series_set *set, int64_t unix_ns)
{
    return (double)(unix_ns - set->origin_unix_ns) / 1e9;
}

static series *series_add(series_list *list, int64_t run_id, const char *name, const char *kind)
{
    list->all = memory_grow(list->all, list->count, sizeof *list->all);
    series *line = &list->all[list->count++];
    *line = (series){
        .name = memory_copy(name), .kind = memory_copy(kind), .run_id = run_id, .num_columns = list->num_columns
    };
    line->plain_name = line->name;
    return line;
}

/* A point of these laps; its values are to be filled in. */
static series_value *point_add(const series_set *set, series *line, const weir_total *total)
{
    line->times = memory_grow(line->times, line->num_points, sizeof *line->times);
    line->values = memory_grow(line->values, line->num_points, line->num_columns * sizeof *line->values);
    line->times[line->num_points] =
        (series_time){ since_origin(set, total->key.start_unix_ns), since_origin(set, total->key.end_unix_ns) };
    line->capacity = total->capacity > line->capacity ? total->capacity : line->capacity;
    return line->values + line->num_points++ * line->num_columns;
}

/* ---- adding up laps ----------------------------------------------------------------------------------------- */

static void add_to_total(weir_total *to, const weir_total *lap)
{
    if (to->key.num_laps == 0) {
        *to = *lap;
        return;
    }
    weir_metrics_add(weir_subject_metrics(lap->subject), &to->metrics, &lap->metrics);
    to->elapsed_ns += lap->elapsed_ns;
    to->suspended_ns = to->suspended_ns < 0 || lap->suspended_ns < 0 ? -1 : to->suspended_ns + lap->suspended_ns;
    to->capacity = lap->capacity;
    to->key.num_laps += lap->key.num_laps;
    to->key.end_unix_ns = lap->key.end_unix_ns > to->key.end_unix_ns ? lap->key.end_unix_ns : to->key.end_unix_ns;
    bool has_steps = lap->key.last_step >= lap->key.first_step;
    if (has_steps && to->key.last_step < to->key.first_step)
        to->key.first_step = lap->key.first_step;
    to->key.last_step = has_steps ? lap->key.last_step : to->key.last_step;
    memset(to->percentiles, 0, sizeof to->percentiles); /* those of several laps cannot be added up */
}

/* Where the metrics of a subject keep their histograms. Returns how many there are. */
static size_t find_histograms(weir_subject subject, weir_metrics *metrics,
                              const weir_histogram **at[WEIR_MAX_HISTOGRAMS])
{
    const weir_metric_table *table = weir_subject_metrics(subject);
    size_t count = 0;
    for (size_t i = 0; i < table->num_metrics && count < WEIR_MAX_HISTOGRAMS; i++)
        if (table->metrics[i].kind == WEIR_METRIC_HISTOGRAM)
            at[count++] = (const weir_histogram **)(void *)((char *)metrics + table->metrics[i].offset);
    return count;
}

/* Adds the lap's histograms to those of the bin, and points the total to these. */
static void add_histograms(struct series_open *open, weir_subject subject, weir_metrics *lap)
{
    const weir_histogram **of_lap[WEIR_MAX_HISTOGRAMS], **of_bin[WEIR_MAX_HISTOGRAMS];
    size_t count = find_histograms(subject, lap, of_lap);
    find_histograms(subject, &open->total.metrics, of_bin);
    for (size_t i = 0; i < count; i++) {
        if (*of_lap[i] && !open->times[i])
            open->times[i] = memory_get(1, sizeof *open->times[i]);
        if (*of_lap[i])
            weir_histogram_add(open->times[i], *of_lap[i]);
        *of_bin[i] = *of_lap[i] ? open->times[i] : *of_bin[i];
    }
}

static void forget_histograms(weir_total *total)
{
    const weir_histogram **at[WEIR_MAX_HISTOGRAMS];
    size_t count = find_histograms(total->subject, &total->metrics, at);
    for (size_t i = 0; i < count; i++)
        *at[i] = NULL;
}

static void close_bin(const series_set *set, const series_list *list, series *line)
{
    struct series_open *open = line->open;
    if (open->total.key.num_laps == 0)
        return;
    series_value *values = point_add(set, line, &open->total);
    for (size_t i = 0; i < list->num_columns; i++) {
        double mean = value_of(&open->total, list->columns[i]);
        bool has_extremes = open->lows[i] <= open->highs[i];
        values[i] = (series_value){ mean, has_extremes ? open->lows[i] : mean, has_extremes ? open->highs[i] : mean };
        open->lows[i] = INFINITY;
        open->highs[i] = -INFINITY;
    }
    for (size_t i = 0; i < WEIR_MAX_HISTOGRAMS; i++)
        weir_histogram_clear(open->times[i]);
    open->total.key.num_laps = 0;
}

/* Notes the extremes of what is drawn as a curve. lap_ns: the length of the lap, or of each of those that were joined
   to it. A lap that a phase or the end of the run has cut short does not count as an extreme: the less time it has,
   the more its rates vary. */
static void note_extremes(const reading *r, struct series_open *open, const series_list *list, const weir_total *lap,
                          int64_t lap_ns)
{
    open->longest_ns = lap_ns > open->longest_ns ? lap_ns : open->longest_ns;
    if (lap_ns < open->longest_ns / 2)
        return;
    for (size_t i = 0; i < list->num_columns; i++) {
        if (!r->are_curves[lap->subject][i])
            continue;
        double value = value_of(lap, list->columns[i]);
        if (isfinite(value)) {
            open->lows[i] = fmin(open->lows[i], value);
            open->highs[i] = fmax(open->highs[i], value);
        }
    }
}

/* The series of a lap, which is begun with its first one. */
static series *find_series(reading *r, const weir_lap_record *lap)
{
    series_list *list = &r->set->lists[lap->subject];
    size_t from = r->next[lap->subject];
    for (size_t i = 0; i < list->count; i++) {
        size_t at = (from + i) % list->count;
        if (list->all[at].run_id == lap->run_id && strcmp(list->all[at].name, lap->name) == 0) {
            r->next[lap->subject] = at + 1;
            return &list->all[at];
        }
    }
    series *line = series_add(list, lap->run_id, lap->name, lap->kind);
    struct series_open *open = line->open = memory_get(1, sizeof *open);
    open->lows = memory_get(list->num_columns + 1, sizeof *open->lows);
    open->highs = memory_get(list->num_columns + 1, sizeof *open->highs);
    for (size_t i = 0; i < list->num_columns; i++) {
        open->lows[i] = INFINITY;
        open->highs[i] = -INFINITY;
    }
    return line;
}

/* The bin or window of a lap, by its end: one that ends with it belongs to it, and 1 us does not count. */
static int64_t part_of(const reading *r, int64_t end_unix_ns, int64_t length_ns)
{
    int64_t since_ns = end_unix_ns - r->set->origin_unix_ns - 1000;
    return since_ns > 0 ? since_ns / length_ns : 0;
}

static int add_lap(void *self, const weir_record *record, weir_error *error)
{
    reading *r = self;
    const weir_lap_record *lap = &record->lap;
    const series_list *list = &r->set->lists[lap->subject];
    series *line = find_series(r, lap);
    struct series_open *open = line->open;
    weir_total total = weir_total_of_lap(lap);
    int64_t bin = part_of(r, lap->end_unix_ns, r->bin_ns), window = part_of(r, lap->end_unix_ns, r->window_ns);
    (void)error;
    r->has_phases |= lap->position.phase[0] != '\0';
    total.key.name = line->name; /* the record's texts end with it */
    total.key.phase = total.key.mode = "";
    total.kind = line->kind;
    if (bin != open->bin)
        close_bin(r->set, list, line);
    open->bin = bin;
    note_extremes(r, open, list, &total, lap->elapsed_ns / (lap->num_joined > 0 ? lap->num_joined : 1));
    weir_metrics with_histograms = total.metrics;
    forget_histograms(&total); /* they end with the record, too */
    add_to_total(&open->total, &total);
    if (r->details)
        add_histograms(open, lap->subject, &with_histograms);
    add_to_total(&open->windows[window < MAX_WINDOWS ? window : MAX_WINDOWS - 1], &total);
    r->set->end = fmax(r->set->end, since_origin(r->set, lap->end_unix_ns));
    return WEIR_OK;
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

/* ---- limits ------------------------------------------------------------------------------------------------- */

/* "decode" of "0:1:decode[10]" */
static char *short_name(const char *name)
{
    const char *colon = strrchr(name, ':'), *start = colon ? colon + 1 : name;
    return memory_format("%.*s", (int)strcspn(start, "["), start);
}

static char *limit_text(const weir_named_limit *limit)
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
    _Static_assert(WEIR_NUM_VERDICTS == 11, "a text for each kind");
    char *name = short_name(limit->stage), *text = NULL;
    const char *form = forms[limit->number], *place = strstr(form, "%s");
    text = place ? memory_format("%.*s%s%s", (int)(place - form), form, name, place + 2) : memory_copy(form);
    free(name);
    return text;
}

static void add_limit_mark(series_set *set, double start, double end, const weir_named_limit *limit)
{
    series_mark *last = set->limits.count ? &set->limits.all[set->limits.count - 1] : NULL;
    char *text = limit_text(limit);
    if (last && strcmp(last->text, text) == 0)
        last->end = end;
    else
        add_mark(&set->limits, &(series_mark){ start, end, text, limit->number, 0 });
    free(text);
}

/* Adds the sums of a window to the totals, which borrow everything. Returns the start and the end of what was added. */
static series_time add_window(const series_set *set, size_t window, weir_totals *totals)
{
    series_time time = { INFINITY, -INFINITY };
    for (weir_subject subject = 0; subject < WEIR_SUBJECT_SPAN; subject++) {
        weir_total_list *list = &totals->of[subject];
        for (size_t i = 0; i < set->lists[subject].count; i++) {
            const weir_total *total = &set->lists[subject].all[i].open->windows[window];
            if (total->key.num_laps == 0)
                continue;
            list->all = memory_grow(list->all, list->count, sizeof *list->all);
            list->all[list->count++] = *total;
            time.start = fmin(time.start, since_origin(set, total->key.start_unix_ns));
            time.end = fmax(time.end, since_origin(set, total->key.end_unix_ns));
        }
    }
    return time;
}

static int judge_window(series_set *set, size_t window, const weir_records *stages, weir_error *error)
{
    weir_totals totals = { 0 };
    weir_named_limit limit;
    series_time time = add_window(set, window, &totals);
    int status = totals.of[WEIR_SUBJECT_QUEUE].count || totals.of[WEIR_SUBJECT_STAGE].count
                     ? weir_verdict_limit_rules()->judge(&totals, stages, &limit, error)
                     : WEIR_EOF;
    if (status == WEIR_OK)
        add_limit_mark(set, time.start, time.end, &limit);
    for (weir_subject subject = 0; subject < WEIR_SUBJECT_SPAN; subject++)
        free(totals.of[subject].all); /* what they point to is borrowed */
    return status == WEIR_EOF ? WEIR_OK : status;
}

static int64_t laps_in(const series_set *set, size_t window)
{
    int64_t most = 0;
    for (weir_subject subject = 0; subject < WEIR_SUBJECT_SPAN; subject++)
        for (size_t i = 0; i < set->lists[subject].count; i++) {
            int64_t laps = set->lists[subject].all[i].open->windows[window].key.num_laps;
            most = laps > most ? laps : most;
        }
    return most;
}

/* The end of a part that begins with a window and has enough laps; fewer at the end of the run belong to the last part. */
static size_t part_end(const series_set *set, size_t from)
{
    int64_t laps = 0, rest = 0;
    size_t end = from;
    while (end < MAX_WINDOWS && laps < MIN_WINDOW_LAPS)
        laps += laps_in(set, end++);
    for (size_t i = end; i < MAX_WINDOWS; i++)
        rest += laps_in(set, i);
    return rest < MIN_WINDOW_LAPS ? MAX_WINDOWS : end;
}

static void join_windows(series_set *set, size_t from, size_t end)
{
    for (weir_subject subject = 0; subject < WEIR_SUBJECT_SPAN; subject++)
        for (size_t i = 0; i < set->lists[subject].count; i++) {
            weir_total *windows = set->lists[subject].all[i].open->windows;
            for (size_t w = from + 1; w < end; w++)
                if (windows[w].key.num_laps)
                    add_to_total(&windows[from], &windows[w]);
        }
}

/* What limits each part of a single run. */
static int judge_windows(reading *r, weir_error *error)
{
    weir_records stages = { 0 };
    if (r->set->num_runs != 1)
        return WEIR_OK;
    int status = weir_records_read(r->recording, WEIR_RECORD_STAGE, &r->filter, &stages, error);
    for (size_t from = 0; from < MAX_WINDOWS && status == WEIR_OK;) {
        size_t end = part_end(r->set, from);
        join_windows(r->set, from, end);
        status = judge_window(r->set, from, &stages, error);
        from = end;
    }
    weir_records_free(&stages);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

static int note_phase(void *self, const weir_record *record, weir_error *error)
{
    series_set *set = self;
    const weir_phase_record *phase = &record->phase;
    (void)error;
    series_mark mark = { since_origin(set, phase->start_unix_ns), since_origin(set, phase->end_unix_ns),
                         (char *)(uintptr_t)phase->position.phase, 0, phase->run_id };
    if (phase->position.phase[0])
        add_mark(&set->phases, &mark);
    return WEIR_OK;
}

typedef struct extent {
    int64_t start_unix_ns, end_unix_ns;
} extent;

static int widen(void *self, const weir_record *record, weir_error *error)
{
    extent *all = self;
    int64_t end = record->lap.end_unix_ns, start = end - record->lap.elapsed_ns;
    (void)error;
    all->start_unix_ns = start < all->start_unix_ns ? start : all->start_unix_ns;
    all->end_unix_ns = end > all->end_unix_ns ? end : all->end_unix_ns;
    return WEIR_OK;
}

/* Where the laps are, by the first and the last one of each subject. */
static int find_extent(reading *r, weir_error *error)
{
    extent all = { INT64_MAX, 0 };
    int status = WEIR_OK;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        for (int is_last = 0; is_last < 2 && status == WEIR_OK; is_last++) {
            weir_filter one = r->filter;
            one.limit = 1;
            one.descending = is_last;
            status = weir_recording_each(r->recording, weir_record_kind_of(subject), &one, widen, &all, error);
        }
    if (status != WEIR_OK || all.end_unix_ns == 0)
        return status;
    int64_t length_ns = all.end_unix_ns - all.start_unix_ns;
    r->set->origin_unix_ns = all.start_unix_ns;
    r->set->end = since_origin(r->set, all.end_unix_ns);
    r->bin_ns = length_ns / SERIES_MAX_POINTS + 1;
    r->window_ns = length_ns / MAX_WINDOWS + 1;
    return WEIR_OK;
}

static int read_laps(reading *r, weir_error *error)
{
    int status = WEIR_OK;
    for (weir_subject subject = 0; subject < WEIR_SUBJECT_SPAN && status == WEIR_OK; subject++) {
        const series_list *list = &r->set->lists[subject];
        if (list->num_columns == 0)
            continue;
        status = weir_recording_each(r->recording, weir_record_kind_of(subject), &r->filter, add_lap, r, error);
        for (size_t i = 0; i < list->count; i++)
            close_bin(r->set, list, &list->all[i]);
    }
    return status;
}

/* ---- spans and counters ------------------------------------------------------------------------------------- */

static bool is_longer(const weir_total *one, const weir_total *other)
{
    return one->metrics.span.total_ns > other->metrics.span.total_ns;
}

/* The series that are drawn: the longest spans; the first counters. */
static void list_series(reading *r, weir_subject subject, const weir_total_list *found)
{
    series_list *list = &r->set->lists[subject];
    bool *are_taken = memory_get(found->count + 1, sizeof *are_taken);
    for (size_t n = 0; n < found->count && list->count < MAX_LISTED; n++) {
        size_t best = found->count;
        for (size_t i = 0; i < found->count; i++)
            if (!are_taken[i] && (best == found->count ||
                                  (subject == WEIR_SUBJECT_SPAN && is_longer(&found->all[i], &found->all[best]))))
                best = i;
        are_taken[best] = true;
        series_add(list, found->all[best].key.run_id, found->all[best].key.name, found->all[best].kind);
    }
    list->num_left_out = found->count - list->count;
    free(are_taken);
}

static void add_total(reading *r, const weir_total *total)
{
    series_list *list = &r->set->lists[total->subject];
    series *line = NULL;
    for (size_t i = 0; i < list->count && !line; i++)
        if (list->all[i].run_id == total->key.run_id && strcmp(list->all[i].name, total->key.name) == 0 &&
            strcmp(list->all[i].kind, total->kind) == 0)
            line = &list->all[i];
    if (!line)
        return;
    series_value *values = point_add(r->set, line, total);
    for (size_t i = 0; i < list->num_columns; i++) {
        double value = value_of(total, list->columns[i]);
        values[i] = (series_value){ value, value, value };
    }
    r->set->end = fmax(r->set->end, since_origin(r->set, total->key.end_unix_ns));
}

/* Spans and counters, with the user's filter. */
static int read_listed(reading *r, const weir_filter *filter, weir_error *error)
{
    int status = WEIR_OK;
    for (weir_subject subject = WEIR_SUBJECT_SPAN; subject < WEIR_NUM_SUBJECTS && status == WEIR_OK; subject++) {
        weir_grouping grouping = { .by = WEIR_BY_NAME | WEIR_BY_RUN, .subjects = 1u << subject };
        weir_totals totals;
        status = weir_totals_read(r->recording, filter, &grouping, &totals, error);
        if (status != WEIR_OK)
            return status;
        list_series(r, subject, &totals.of[subject]);
        weir_totals_free(&totals);
        grouping.by |= WEIR_BY_TIME;
        grouping.bin_ns = r->bin_ns;
        if (r->set->lists[subject].count)
            status = weir_totals_read(r->recording, filter, &grouping, &totals, error);
        if (status != WEIR_OK || r->set->lists[subject].count == 0)
            continue;
        for (size_t i = 0; i < totals.of[subject].count; i++)
            add_total(r, &totals.of[subject].all[i]);
        weir_totals_free(&totals);
    }
    return status;
}

/* ---- all of it ----------------------------------------------------------------------------------------------- */

static void free_series(series *line)
{
    struct series_open *open = line->open;
    for (size_t i = 0; i < WEIR_MAX_HISTOGRAMS && open; i++)
        free(open->times[i]);
    if (open) {
        free(open->lows);
        free(open->highs);
    }
    free(open);
    free(line->name);
    free(line->kind);
    free(line->times);
    free(line->values);
}

/* "0:10:decode" is behind "0:2:scale". */
static int compare_series(const void *one, const void *other)
{
    const series *a = one, *b = other;
    if (a->run_id != b->run_id)
        return a->run_id < b->run_id ? -1 : 1;
    long numbers[2][2] = { { 0 } };
    const char *names[2] = { a->name, b->name };
    for (int i = 0; i < 2; i++) {
        char *end;
        numbers[i][0] = strtol(names[i], &end, 10);
        numbers[i][1] = *end == ':' ? strtol(end + 1, NULL, 10) : 0;
    }
    for (int i = 0; i < 2; i++)
        if (numbers[0][i] != numbers[1][i])
            return numbers[0][i] < numbers[1][i] ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static void order_and_count(series_set *set)
{
    int64_t *runs = NULL, num_runs = 0;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        series_list *list = &set->lists[subject];
        for (size_t i = 0; i < list->count; i++) {
            int64_t known = 0;
            list->all[i].order = i;
            while (known < num_runs && runs[known] != list->all[i].run_id)
                known++;
            if (known < num_runs)
                continue;
            runs = memory_grow(runs, (size_t)num_runs, sizeof *runs);
            runs[num_runs++] = list->all[i].run_id;
        }
        if (list->count && subject < WEIR_SUBJECT_SPAN)
            qsort(list->all, list->count, sizeof *list->all, compare_series);
    }
    set->num_runs = num_runs;
    free(runs);
}

/* The limit needs all series of a run, but the pictures have only those that the filter selects. */
static void keep_selected(series_set *set, const char *pattern)
{
    bool is_any = set->lists[WEIR_SUBJECT_SPAN].count || set->lists[WEIR_SUBJECT_COUNTER].count;
    for (weir_subject subject = 0; subject < WEIR_SUBJECT_SPAN; subject++) {
        series_list *list = &set->lists[subject];
        size_t kept = 0;
        for (size_t i = 0; i < list->count; i++)
            if (!pattern || weir_name_matches(pattern, list->all[i].name))
                list->all[kept++] = list->all[i];
            else
                free_series(&list->all[i]);
        list->count = kept;
        is_any |= kept > 0;
    }
    set->num_runs = is_any ? set->num_runs : 0;
}

static void prefix_runs(series_set *set)
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && set->num_runs > 1; subject++)
        for (size_t i = 0; i < set->lists[subject].count; i++) {
            series *line = &set->lists[subject].all[i];
            char *name = memory_format("run %" PRId64 " %s", line->run_id, line->name);
            line->plain_name = name + strlen(name) - strlen(line->name);
            free(line->name);
            line->name = name;
        }
}

static int note_event(void *self, const weir_record *record, weir_error *error)
{
    (void)error;
    add_event(self, &record->event);
    return WEIR_OK;
}

static int read_all(reading *r, const weir_filter *filter, weir_error *error)
{
    int status = find_extent(r, error);
    if (status == WEIR_OK && r->bin_ns == 0)
        return WEIR_OK; /* no laps */
    if (status == WEIR_OK)
        status = read_laps(r, error);
    if (status == WEIR_OK && r->details)
        status = read_listed(r, filter, error);
    order_and_count(r->set);
    if (status == WEIR_OK)
        status = judge_windows(r, error);
    keep_selected(r->set, filter->name);
    prefix_runs(r->set);
    if (status == WEIR_OK)
        status = weir_recording_each(r->recording, WEIR_RECORD_EVENT, &r->filter, note_event, r->set, error);
    find_pauses(r->set);
    if (status == WEIR_OK && r->has_phases)
        status = weir_recording_each(r->recording, WEIR_RECORD_PHASE, &r->filter, note_phase, r->set, error);
    return status;
}

int series_read(weir_recording *recording, const weir_filter *filter, bool details, series_set *set,
                weir_error *error)
{
    reading *r = memory_get(1, sizeof *r);
    *set = (series_set){ 0 };
    *r = (reading){ .recording = recording, .filter = *filter, .details = details, .set = set };
    r->filter.name = NULL;
    choose_columns(r);
    int status = weir_recording_hold(recording, error);
    if (status == WEIR_OK) {
        weir_recording_skip_histograms(recording, !details);
        status = read_all(r, filter, error);
        weir_recording_skip_histograms(recording, false);
        weir_recording_release(recording);
    }
    free(r);
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
        for (size_t i = 0; i < set->lists[subject].count; i++)
            free_series(&set->lists[subject].all[i]);
        free(set->lists[subject].all);
        free((void *)(uintptr_t)set->lists[subject].columns);
    }
    free_marks(&set->events);
    free_marks(&set->pauses);
    free_marks(&set->phases);
    free_marks(&set->limits);
    *set = (series_set){ 0 };
}
