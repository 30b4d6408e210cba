/*
 * Sums over groups of laps. SQLite groups, adds up and orders; lap_tables.c says how each metric is added.
 */
#include <weir/query.h>
#include <weir/span.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "stats/read/lap_rows.h"
#include "stats/read/open_recording.h"
#include "stats/read/phase_spans.h"
#include "stats/read/rolled_laps.h"
#include "stats/schema/measures.h"
#include "stats/schema/record_tables.h"

enum { MAX_GROUPS = 100000 };

#define DEFAULT_BIN_NS INT64_C(60000000000)

/* -- the statement */

/* By the ends of the laps that begin and end the loop of the run. */
#define JOB_PHASE_OF_LAP \
    "coalesce((SELECT CASE WHEN j.first IS NULL OR t.timestamp < j.first - 1e-6 THEN 'startup'" \
    " WHEN t.timestamp > j.last + 1e-6 THEN 'finish' ELSE 'loop' END FROM job_loop j WHERE j.run_id = t.run_id), " \
    "'')"
/* The first one that ends with the lap or later, or the last one: laps of SPDL's stages do not end with those of queues. */
#define TRANSITION_OF_LAP(of) \
    "coalesce((SELECT x.text FROM " of "_transition x WHERE x.run_id = t.run_id AND x.end >= t.timestamp - 1e-6" \
    " ORDER BY x.end LIMIT 1), (SELECT x.text FROM " of "_transition x WHERE x.run_id = t.run_id" \
    " ORDER BY x.end DESC LIMIT 1), '')"

#define SELECTED_RUNS "(SELECT r.run_id FROM run r WHERE :run = 0 OR r.run_id = :run)"

/* A phase or mode that goes on after a gap keeps its transition. */
#define WITH_TRANSITIONS(of, columns) \
    of "_transition AS MATERIALIZED (WITH lap AS (SELECT " columns " FROM queue_stats t WHERE t.run_id IN" \
       " " SELECTED_RUNS " AND " WEIR_LAPS_OF_ONE_QUEUE "), " WEIR_SPANS( \
           WEIR_WITH_A_PLACE) " SELECT run_id, end, coalesce(nullif(lag(" of \
                              ") OVER before, ''), 'start') || ' > ' || " of \
                              " AS text FROM span WINDOW before AS (PARTITION BY run_id ORDER BY number)), "
static const char with_phase_transitions[] = WITH_TRANSITIONS("phase", WEIR_LAP_COLUMNS("''", WEIR_PHASE_OF_LAP));
static const char with_mode_transitions[] = WITH_TRANSITIONS("mode", WEIR_LAP_COLUMNS("t.mode", "''"));

/* The first and the last lap of a run that have a step, or without steps, in which a sink got an item. */
#define SINK_QUEUES "(SELECT s.run_id, s.name || '_queue' FROM stage s WHERE s.kind = 'sink')"
static const char with_job_loops[] =
    "job_loop AS MATERIALIZED (SELECT run_id, iif(max(has_step), min(iif(has_step, timestamp, NULL)), "
    "min(iif(has_item,"
    " timestamp, NULL))) AS first, iif(max(has_step), max(iif(has_step, timestamp, NULL)), max(iif(has_item, "
    "timestamp,"
    " NULL))) AS last FROM (SELECT t.run_id, t.timestamp, coalesce(t.last_step >= t.first_step, 0) AS has_step,"
    " t.num_items > 0 AND (t.run_id, t.name) IN " SINK_QUEUES " AS has_item FROM queue_stats t WHERE t.run_id IN"
    " " SELECTED_RUNS
    ") GROUP BY run_id HAVING max(has_step) OR run_id IN (SELECT s.run_id FROM stage s WHERE s.kind ="
    " 'sink')), ";

#define WITH_STEPS " AND t.last_step >= t.first_step "
#define ONE_QUEUE  " AND " WEIR_LAPS_OF_ONE_QUEUE " "

/* A lap that ends with its bin belongs to it, even if its timestamp is larger in the last digit: 1 us does not count. */
#define END_NS "(CAST(round(t.timestamp * 1e9) AS INTEGER) - 1000)"

/* Of a row r of the table `roll`: all laps of it match the range of the filter; they end in one bin. */
#define ALL_MATCH         "(:start = 0 OR r.first_time > :start + 1e-6) AND (:end = 0 OR r.last_start_time < :end - 1e-6)"
#define IN_ONE_BIN        " AND " BIN_OF(ROLL_END_NS("first_time")) " = " BIN_OF(ROLL_END_NS("timestamp"))
#define ROLL_END_NS(time) "(CAST(round(r." time " * 1e9) AS INTEGER) - 1000)"

/* The start of the bin of width %lld that a whole number belongs to. */
#define BIN_OF(number) number " - (" number " %% %lld + %lld) %% %lld"

/* Behind the columns of a lap, in this order. */
#define MORE_COLUMNS \
    "min(%s) AS start, %s AS key_node, %s AS key_step, %s AS key_time, weir_concurrency(t.run_id, %s, t.timestamp) " \
    "AS" \
    " concurrency"
enum { MORE_START, MORE_NODE, MORE_STEP, MORE_TIME, MORE_CONCURRENCY, MORE_SHARE };
#define SHARE "elapsed / sum(elapsed) OVER (PARTITION BY key_run, key_node, key_name) AS share"

/* Laps of one roll are alike in these, or bins of time say where they are not. */
static const unsigned BY_WHOLE_ROLLS =
    WEIR_BY_NAME | WEIR_BY_RUN | WEIR_BY_NODE | WEIR_BY_PHASE | WEIR_BY_MODE | WEIR_BY_TIME;

/* The state of reading the sums of one subject. */
typedef struct summing {
    weir_recording *recording;
    const weir_filter *filter; /* resolved */
    weir_grouping grouping;    /* without zeros */
    weir_subject subject;
    bool is_rolled;                            /* rows may be rolls */
    bool is_clock;                             /* laps of one queue of each run: the time that the run took */
    weir_histogram times[WEIR_MAX_HISTOGRAMS]; /* of the total that is being read */
    weir_error *error;
} summing;

static bool is_by(const summing *s, unsigned what)
{
    return s->grouping.by & what;
}

/*
 * The keys in the order of the result. Phases are in the order in which they began; names in that of the pipeline
 * ("0:10:decode" behind "0:2:…"), or, without numbers, as they come.
 */
static char *end_of_sums(const summing *s)
{
    const bool by_lap = is_by(s, WEIR_BY_LAP), has_kind = weir_subject_has_kinds(s->subject);
    const bool by_phase = is_by(s, WEIR_BY_PHASE | WEIR_BY_JOB_PHASE | WEIR_BY_TRANSITION);
    const bool by_mode = is_by(s, WEIR_BY_MODE | WEIR_BY_MODE_TRANSITION);
    const struct {
        bool is_key;
        const char *key, *order;
    } keys[] = {
        { by_lap, "t.id", "id" },
        { !by_lap && is_by(s, WEIR_BY_RUN), "key_run", "key_run" },
        { !by_lap && is_by(s, WEIR_BY_NODE), "key_node", "key_node" },
        { !by_lap && is_by(s, WEIR_BY_TIME), "key_time", "key_time" },
        { !by_lap && is_by(s, WEIR_BY_STEP), "key_step", "key_step" },
        { !by_lap && by_mode, "key_mode", "min(id) OVER (PARTITION BY key_mode)" },
        { !by_lap && by_phase, "key_phase", "min(id) OVER (PARTITION BY key_phase)" },
        { !by_lap && is_by(s, WEIR_BY_NAME), "key_name",
          "CAST(key_name AS INTEGER)%s, CAST(substr(key_name, instr(key_name, ':') + 1) AS INTEGER)%s, "
          "min(id) OVER (PARTITION BY key_name)" },
        { !by_lap && has_kind, "t.kind", "kind" },
    };
    const char *order_by = s->grouping.order_by, *keys_down = s->grouping.reverse && !order_by ? " DESC" : "";
    sqlite3_str *sql = sqlite3_str_new(s->recording->db);
    const char *between = " GROUP BY ";
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i].is_key) {
            sqlite3_str_appendf(sql, "%s%s", between, keys[i].key);
            between = ", ";
        }
    if (*between != ',')
        sqlite3_str_appendall(sql, " GROUP BY NULL"); /* one group, or none without laps */
    sqlite3_str_appendf(sql, ") SELECT *, " SHARE " FROM sums ORDER BY %s%s", order_by ? order_by : "NULL",
                        order_by && !s->grouping.reverse ? " DESC" : "");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i].is_key) {
            sqlite3_str_appendall(sql, ", ");
            sqlite3_str_appendf(sql, keys[i].order, keys_down, keys_down);
            sqlite3_str_appendall(sql, keys_down);
        }
    if (s->grouping.limit > 0)
        sqlite3_str_appendf(sql, " LIMIT %lld", (long long)s->grouping.limit);
    return sqlite3_str_finish(sql);
}

static char *more_columns(const summing *s)
{
    const long long steps = s->grouping.bin_steps, time = s->grouping.bin_ns;
    char *step_bin = sqlite3_mprintf(BIN_OF("t.first_step"), steps, steps, steps);
    char *time_bin = sqlite3_mprintf(BIN_OF(END_NS), time, time, time);
    const char *start = s->is_rolled ? "t.start_time" : "t.timestamp - t.elapsed";
    char *more =
        step_bin && time_bin
            ? sqlite3_mprintf(MORE_COLUMNS, start, is_by(s, WEIR_BY_NODE) ? WEIR_NODE_OF_LAP : "''",
                              is_by(s, WEIR_BY_STEP) ? step_bin : "0", is_by(s, WEIR_BY_TIME) ? time_bin : "0", start)
            : NULL;
    sqlite3_free(step_bin);
    sqlite3_free(time_bin);
    return more;
}

/* Which rolls are read instead of their laps. */
static char *condition_of_rolls(const summing *s)
{
    const long long bin = s->grouping.bin_ns;
    return is_by(s, WEIR_BY_TIME) ? sqlite3_mprintf(ALL_MATCH IN_ONE_BIN, bin, bin, bin, bin, bin, bin)
                                  : sqlite3_mprintf("%s", ALL_MATCH);
}

static int select_sums(const summing *s, sqlite3_stmt **rows)
{
    char *more = more_columns(s), *end = end_of_sums(s), *is_whole = condition_of_rolls(s);
    char *begin = sqlite3_mprintf("%s%s%ssums AS (", is_by(s, WEIR_BY_TRANSITION) ? with_phase_transitions : "",
                                  is_by(s, WEIR_BY_MODE_TRANSITION) ? with_mode_transitions : "",
                                  is_by(s, WEIR_BY_JOB_PHASE) ? with_job_loops : "");
    const weir_lap_group group = {
        .keys = { .run = is_by(s, WEIR_BY_RUN | WEIR_BY_LAP) ? "t.run_id" : "0",
                  .name = is_by(s, WEIR_BY_NAME | WEIR_BY_LAP) ? "t.name" : "''",
                  .phase = is_by(s, WEIR_BY_TRANSITION)            ? TRANSITION_OF_LAP("phase")
                           : is_by(s, WEIR_BY_JOB_PHASE)           ? JOB_PHASE_OF_LAP
                           : is_by(s, WEIR_BY_PHASE | WEIR_BY_LAP) ? WEIR_PHASE_OF_LAP
                                                                   : "''",
                  .mode = is_by(s, WEIR_BY_MODE_TRANSITION)      ? TRANSITION_OF_LAP("mode")
                          : is_by(s, WEIR_BY_MODE | WEIR_BY_LAP) ? "t.mode"
                                                                 : "''",
                  .count = s->is_rolled ? "sum(t.num_laps)" : "count(*)" },
        .is_whole = s->is_rolled ? is_whole : NULL,
        .columns = more,
        .begin = begin,
        .condition = is_by(s, WEIR_BY_STEP) ? s->is_clock ? WITH_STEPS ONE_QUEUE : WITH_STEPS
                     : s->is_clock          ? ONE_QUEUE
                                            : "",
        .end = end,
    };
    int status = WEIR_OK;
    *rows = NULL;
    if (more && end && begin && is_whole)
        status = weir__lap_select(s->recording, s->subject, s->filter, &group, rows, s->error);
    else
        status = weir__recording_out_of_memory(s->error);
    sqlite3_free(more);
    sqlite3_free(end);
    sqlite3_free(begin);
    sqlite3_free(is_whole);
    return status;
}

/* -- totals that own what they point to */

void weir__total_forget(weir_total *total)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    const char *const texts[] = { total->key.name, total->key.node_id, total->key.phase, total->key.mode,
                                  total->kind };
    size_t count = weir__subject_histograms(total->subject, histograms);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free((void *)(uintptr_t)texts[i]);
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)*weir__metric_histogram_at(histograms[i].metric, &total->metrics));
}

bool weir__total_keep(weir_total *total)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir__subject_histograms(total->subject, histograms);
    const char **const texts[] = { &total->key.name, &total->key.node_id, &total->key.phase, &total->key.mode,
                                   &total->kind };
    bool is_complete = true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        is_complete &= (*texts[i] = strdup(*texts[i])) != NULL;
    for (size_t i = 0; i < count; i++) {
        const weir_histogram **at = weir__metric_histogram_at(histograms[i].metric, &total->metrics);
        weir_histogram *copy = *at ? malloc(sizeof *copy) : NULL;
        is_complete &= copy || !*at;
        if (copy)
            *copy = **at;
        *at = copy;
    }
    return is_complete;
}

/* -- its rows */

/* The total owns what it points to, even on failure. */
static int read_total(summing *s, sqlite3_stmt *row, weir_total *total)
{
    const int more = WEIR_LAP_METRICS + (int)weir_subject_metrics(s->subject)->num_metrics;
    weir_lap_record lap;
    weir__lap_read(s->subject, row, &lap);
    bool is_damaged =
        weir__lap_read_histograms(s->subject, row, s->times, &lap.metrics); /* merged: only without memory */
    *total = weir_total_of_lap(&lap);
    total->key.num_laps = lap.num_joined;
    total->key.start_unix_ns = weir__column_ns(row, more + MORE_START);
    total->key.node_id = weir__column_text(row, more + MORE_NODE);
    total->key.bin_step = sqlite3_column_int64(row, more + MORE_STEP);
    total->key.bin_unix_ns = sqlite3_column_int64(row, more + MORE_TIME);
    total->concurrency = sqlite3_column_double(row, more + MORE_CONCURRENCY);
    total->key.share = sqlite3_column_double(row, more + MORE_SHARE);
    return weir__total_keep(total) && !is_damaged ? WEIR_OK : weir__recording_out_of_memory(s->error);
}

static int add_total(summing *s, sqlite3_stmt *row, weir_total_list *list)
{
    if (list->count >= MAX_GROUPS)
        return weir_error_set(s->error, WEIR_ELIMIT, 0,
                              "more than %d groups; use fewer keys, wider bins, or a filter", MAX_GROUPS);
    weir_total *all = weir__array_grow(list->all, list->count, sizeof *all);
    if (!all)
        return weir__recording_out_of_memory(s->error);
    list->all = all;
    return read_total(s, row, &all[list->count++]);
}

static int ignore_record(void *self, const weir_record *record, weir_error *error)
{
    (void)self;
    (void)record;
    (void)error;
    return WEIR_OK;
}

/* A damaged histogram: reading the laps one by one finds the row. */
static int fail_totals(const summing *s, int code)
{
    int status = WEIR_OK;
    if ((code & 0xff) == SQLITE_CORRUPT)
        status = weir_recording_each(s->recording, weir_record_kind_of(s->subject), s->filter, ignore_record, NULL,
                                     s->error);
    return status == WEIR_OK ? weir__recording_error(s->recording, code, s->error) : status;
}

static int read_totals(summing *s, weir_total_list *list)
{
    sqlite3_stmt *rows;
    int code = SQLITE_DONE, status = select_sums(s, &rows);
    while (rows && status == WEIR_OK && (code = sqlite3_step(rows)) == SQLITE_ROW)
        status = add_total(s, rows, list);
    if (status == WEIR_OK && code != SQLITE_DONE)
        status = fail_totals(s, code);
    weir__statement_idle(s->recording, rows);
    return status;
}

/* A span or counter has rows only of the laps in which it occurred, but its rates are over the time of its run. That
   is the time of the laps of one queue, which are all laps. */
static int read_clock(const summing *spans, weir_total_list *clock)
{
    weir_filter filter = *spans->filter;
    summing *s = malloc(sizeof *s);
    if (!s)
        return weir__recording_out_of_memory(spans->error);
    filter.name = NULL;
    *s = *spans;
    s->filter = &filter;
    s->is_clock = true;
    s->subject = WEIR_SUBJECT_QUEUE;
    s->grouping.by &= ~(unsigned)WEIR_BY_NAME;
    s->grouping.order_by = NULL;
    s->grouping.limit = 0;
    int status = read_totals(s, clock);
    free(s);
    return status;
}

static int compare_numbers(int64_t one, int64_t other)
{
    return one < other ? -1 : one > other;
}

/* By all keys but the name. */
static int compare_keys(const void *a, const void *b)
{
    const weir_group_key *one = &((const weir_total *)a)->key, *other = &((const weir_total *)b)->key;
    const int orders[] = {
        compare_numbers(one->run_id, other->run_id),
        compare_numbers(one->bin_unix_ns, other->bin_unix_ns),
        compare_numbers(one->bin_step, other->bin_step),
        strcmp(one->node_id, other->node_id),
        strcmp(one->phase, other->phase),
        strcmp(one->mode, other->mode),
    };
    int order = 0;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0] && order == 0; i++)
        order = orders[i];
    return order;
}

static int set_time_of_spans(const summing *s, weir_total_list *spans)
{
    weir_totals clock = { 0 };
    weir_total_list *laps = &clock.of[WEIR_SUBJECT_QUEUE];
    int status = read_clock(s, laps);
    if (status == WEIR_OK && laps->count > 0)
        qsort(laps->all, laps->count, sizeof *laps->all, compare_keys);
    for (size_t i = 0; status == WEIR_OK && laps->count > 0 && i < spans->count; i++) {
        weir_total *span = &spans->all[i];
        const weir_total *run = bsearch(span, laps->all, laps->count, sizeof *laps->all, compare_keys);
        if (!run || run->elapsed_ns < span->elapsed_ns) /* a recording of others */
            continue;
        span->elapsed_ns = run->elapsed_ns;
        span->concurrency = run->concurrency;
        span->key.share = run->key.share;
    }
    weir_totals_free(&clock);
    return status;
}

static int read_subject(summing *s, weir_total_list *list)
{
    int status = read_totals(s, list);
    bool is_over_runs =
        (s->subject == WEIR_SUBJECT_SPAN || s->subject == WEIR_SUBJECT_COUNTER) && !is_by(s, WEIR_BY_LAP);
    return status == WEIR_OK && is_over_runs && list->count > 0 ? set_time_of_spans(s, list) : status;
}

int weir_totals_read(weir_recording *recording, const weir_filter *filter, const weir_grouping *grouping,
                     weir_totals *totals, weir_error *error)
{
    if (!recording || !totals)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_filter resolved = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    summing *s = calloc(1, sizeof *s);
    *totals = (weir_totals){ 0 };
    if (!s)
        return weir__recording_out_of_memory(error);
    s->recording = recording;
    s->filter = &resolved;
    s->grouping = grouping ? *grouping : (weir_grouping){ .by = 0 };
    s->grouping.bin_steps = s->grouping.bin_steps > 0 ? s->grouping.bin_steps : 1;
    s->grouping.bin_ns = s->grouping.bin_ns > 0 ? s->grouping.bin_ns : DEFAULT_BIN_NS;
    s->error = error;

    /* So that everything is read from one snapshot, even if a writer is active. */
    int status = weir_recording_hold(recording, error);
    if (status == WEIR_OK) {
        status = weir__recording_resolve_run(recording, &resolved.run_id, error);
        if (status == WEIR_OK && !(s->grouping.by & ~BY_WHOLE_ROLLS))
            status = weir__rolls_serve(recording, &resolved, &s->is_rolled, error);
        for (s->subject = 0; s->subject < WEIR_NUM_SUBJECTS && status == WEIR_OK; s->subject++)
            if (!s->grouping.subjects || s->grouping.subjects & 1u << s->subject)
                status = read_subject(s, &totals->of[s->subject]);
        weir_recording_release(recording);
    }
    free(s);
    if (status != WEIR_OK)
        weir_totals_free(totals);
    return status;
}

void weir_totals_free(weir_totals *totals)
{
    if (!totals)
        return;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        for (size_t i = 0; i < totals->of[subject].count; i++)
            weir__total_forget(&totals->of[subject].all[i]);
        free(totals->of[subject].all);
    }
    *totals = (weir_totals){ 0 };
}

/* -- their values */

/* Runs at the same time add up in it. Of a machine each of them measures the same. */
static bool adds_up(const weir_measure *measure, weir_subject subject)
{
    const char *per_second = strstr(measure->unit, "/s");
    return (per_second && !per_second[2]) || (strcmp(measure->unit, "CPUs") == 0 && subject != WEIR_SUBJECT_MACHINE);
}

double weir_total_value(const weir_total *total, const weir_measure *measure)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    double value = total ? weir_measure_value(measure, &total->metrics, total->elapsed_ns) : NAN;
    if (!total || !measure)
        return value;
    if (!isnan(value))
        return total->concurrency > 1 && adds_up(measure, total->subject) ? value * total->concurrency : value;
    bool is_p90 = strncmp(measure->name, "p90_", 4) == 0, is_p99 = strncmp(measure->name, "p99_", 4) == 0;
    weir_metrics metrics = total->metrics;
    size_t count = is_p90 || is_p99 ? weir__subject_histograms(total->subject, histograms) : 0;
    for (size_t i = 0; i < count; i++) {
        const weir_percentiles *recorded = &total->percentiles[i];
        bool has_times = *weir__metric_histogram_at(histograms[i].metric, &metrics); /* then there were none */
        if (!has_times && recorded->are_known && strcmp(measure->name + 4, histograms[i].name) == 0)
            return is_p90 ? recorded->p90 : recorded->p99;
    }
    return value;
}

/* "0:2:sink" has "0:2:sink_queue". */
static bool is_queue_of(const weir_total *queue, const weir_total *node)
{
    size_t length = strlen(node->key.name);
    return strncmp(queue->key.name, node->key.name, length) == 0 && strcmp(queue->key.name + length, "_queue") == 0;
}

const weir_total *weir_totals_sink_queue(const weir_totals *totals)
{
    if (!totals)
        return NULL;
    const weir_total_list *flow = &totals->of[WEIR_SUBJECT_FLOW], *queues = &totals->of[WEIR_SUBJECT_QUEUE];
    for (size_t i = 0; i < flow->count; i++)
        for (size_t j = 0; j < queues->count && strcmp(flow->all[i].kind, "sink") == 0; j++)
            if (is_queue_of(&queues->all[j], &flow->all[i]))
                return &queues->all[j];
    return queues->count ? &queues->all[queues->count - 1] : NULL; /* older databases have no sinks: the last queue */
}

double weir_totals_items_per_s(const weir_totals *totals)
{
    return weir_total_value(weir_totals_sink_queue(totals), weir_measure_find(WEIR_SUBJECT_QUEUE, "items_per_s"));
}

double weir_totals_frames_per_s(const weir_totals *totals)
{
    const weir_total_list *counters = totals ? &totals->of[WEIR_SUBJECT_COUNTER] : NULL;
    const weir_measure *per_s = weir_measure_find(WEIR_SUBJECT_COUNTER, "increase_per_s");
    for (size_t i = 0; counters && i < counters->count; i++)
        if (strcmp(counters->all[i].key.name, WEIR_FRAMES_CATEGORY "/" WEIR_FRAMES_NAME) == 0)
            return weir_total_value(&counters->all[i], per_s);
    return NAN;
}

weir_total weir_total_of_lap(const weir_lap_record *lap)
{
    if (!lap)
        return (weir_total){ .kind = "", .concurrency = 1 };
    weir_total total = {
        .key = { .name = lap->name,
                 .node_id = "",
                 .phase = lap->position.phase,
                 .mode = lap->position.mode ? lap->position.mode : "",
                 .run_id = lap->run_id,
                 .first_step = lap->position.first_step,
                 .last_step = lap->position.last_step,
                 .start_unix_ns = lap->end_unix_ns - lap->elapsed_ns,
                 .end_unix_ns = lap->end_unix_ns,
                 .num_laps = 1 },
        .subject = lap->subject,
        .kind = lap->kind,
        .elapsed_ns = lap->elapsed_ns,
        .concurrency = 1,
        .suspended_ns = lap->suspended_ns,
        .capacity = lap->capacity,
        .metrics = lap->metrics,
    };
    memcpy(total.percentiles, lap->percentiles, sizeof total.percentiles);
    return total;
}
