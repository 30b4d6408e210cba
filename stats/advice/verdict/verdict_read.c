/* The verdict on a database: which laps count, how the nodes are connected. */
#include "stats/advice/verdict/verdict_view.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "stats/advice/model/model.h"
#include "stats/advice/verdict/variation.h"
#include "stats/read/long_runs.h"

/* What a verdict is about: not spans and counters of user code. */
static const weir_grouping judged = { .by = WEIR_BY_NAME, .subjects = (1u << WEIR_SUBJECT_SPAN) - 1 };

/* Of the whole run only the shortest task of each node is asked. */
static const weir_grouping of_nodes = { .by = WEIR_BY_NAME,
                                        .subjects = 1u << WEIR_SUBJECT_STAGE | 1u << WEIR_SUBJECT_FLOW };

static int out_of_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

typedef struct reading {
    weir_recording *recording;
    weir_filter filter;
    weir_records stages; /* of all runs */
    bool marks_steps;
    int64_t start_unix_ns, end_unix_ns;
    int64_t num_laps, num_cut;
    int64_t *ends_unix_ns; /* of the laps that count, of the last run */
    double *rates;         /* items per second in each of them */
    int64_t num_ends, last_run_id;
    int32_t rank; /* of the last run */
    uint32_t world;
} reading;

/* -- the steady part */

/* Of a source. Older recordings have it as the time in which it waited for input. */
#define ENDED "coalesce(ended_time, wait_in_time)"

/*
 * The laps that count: after the lap with the first delivery, before the lap in which the last source ended, and
 * without suspended laps at either end. If none is left, those that delivered something; else all.
 * A source has ended if it would have made more items in the time after its end than a count of its items is off.
 */
static const char find_laps[] =
    ", part AS (SELECT run_id, timestamp, elapsed, suspended_time, first_step, last_step, 0 AS num_delivered,"
    " 1 AS is_source, (num_tasks + 1) * " ENDED " * " ENDED " >= (elapsed - " ENDED ") * (elapsed - " ENDED ")"
    " AS has_ended FROM flow WHERE kind = 'source' UNION ALL"
    " SELECT q.run_id, timestamp, elapsed, suspended_time, first_step, last_step, num_items, 0, 0"
    " FROM queues q JOIN stages s ON s.run_id = q.run_id AND s.queue_name = q.name AND s.kind = 'sink'),"
    " lap AS (SELECT run_id, timestamp, max(elapsed) AS elapsed, max(num_delivered) > 0 AS delivers,"
    " total(num_delivered) AS num_delivered,"
    " sum(is_source) > 0 AND sum(has_ended) = sum(is_source) AS is_tail,"
    " max(coalesce(suspended_time, 0)) > 0 AS is_suspended, max(last_step >= first_step) AS has_steps"
    " FROM part GROUP BY run_id, timestamp),"
    " edge AS (SELECT run_id, coalesce(min(iif(delivers, timestamp, NULL)), min(timestamp)) AS first,"
    " max(iif(is_tail, NULL, timestamp)) AS last FROM lap GROUP BY run_id),"
    " steady AS (SELECT run_id, min(timestamp) AS first, max(timestamp) AS last FROM lap JOIN edge USING (run_id)"
    " WHERE timestamp > edge.first AND timestamp <= edge.last AND NOT is_suspended GROUP BY run_id)"
    " SELECT run_id, timestamp, elapsed, coalesce(has_steps, 0),"
    " coalesce(timestamp BETWEEN steady.first AND steady.last, timestamp >= edge.first), num_delivered"
    " FROM lap JOIN edge USING (run_id) LEFT JOIN steady USING (run_id) ORDER BY run_id, timestamp";

static int64_t row_ns(const weir_row *row, int column)
{
    double ns = 1e9 * weir_row_real(row, column);
    return fabs(ns) < 4e18 ? llround(ns) : 0; /* a hostile file may hold any number */
}

static int take_lap(void *self, const weir_row *row, weir_error *error)
{
    reading *r = self;
    int64_t run_id = weir_row_int(row, 0), end_unix_ns = row_ns(row, 1), start_unix_ns = end_unix_ns - row_ns(row, 2);
    bool counts = weir_row_int(row, 4);
    r->marks_steps |= weir_row_int(row, 3);
    r->num_ends = run_id == r->last_run_id ? r->num_ends : 0;
    r->last_run_id = run_id;
    r->num_laps += counts;
    r->num_cut += !counts;
    if (!counts)
        return WEIR_OK;
    int64_t *grown = weir__array_grow(r->ends_unix_ns, (size_t)r->num_ends, sizeof *grown);
    if (!grown)
        return out_of_memory(error);
    r->ends_unix_ns = grown;
    double *rates = weir__array_grow(r->rates, (size_t)r->num_ends, sizeof *rates);
    if (!rates)
        return out_of_memory(error);
    r->rates = rates;
    rates[r->num_ends] = weir_row_real(row, 2) > 0 ? fmax(0, weir_row_real(row, 5)) / weir_row_real(row, 2) : 0;
    grown[r->num_ends++] = end_unix_ns;
    if (r->start_unix_ns == 0 || start_unix_ns < r->start_unix_ns)
        r->start_unix_ns = start_unix_ns;
    if (end_unix_ns > r->end_unix_ns)
        r->end_unix_ns = end_unix_ns;
    return WEIR_OK;
}

static int take_run(void *self, const weir_record *record, weir_error *error)
{
    reading *r = self;
    (void)error;
    r->rank = record->run.rank;
    r->world = record->run.world;
    return WEIR_OK;
}

static int read_runs(reading *r, weir_error *error)
{
    int status = weir_recording_each(r->recording, WEIR_RECORD_RUN, &r->filter, take_run, r, error);
    if (status == WEIR_OK)
        status = weir_records_read(r->recording, WEIR_RECORD_STAGE, &r->filter, &r->stages, error);
    return status == WEIR_OK ? weir_recording_query(r->recording, &r->filter, find_laps, NULL, take_lap, r, error)
                             : status;
}

/* -- all of it */

/* A quarter of a lap: laps that only touch a range must not match it. */
static int64_t quarter_lap_ns(int64_t start_unix_ns, int64_t end_unix_ns, int64_t num_laps)
{
    return (end_unix_ns - start_unix_ns) / (4 * num_laps + 4);
}

/* What the runs of a job have used together. */
typedef struct job_use {
    int64_t num_ranks;      /* that are looked at */
    int64_t num_others;     /* other ranks of the job on the same node that are in the database */
    int64_t cpu_ns, all_ns; /* CPU time of all of them on this node; the length of the range */
} job_use;

static int take_job_use(void *self, const weir_row *row, weir_error *error)
{
    job_use *use = self;
    (void)error;
    use->num_ranks = weir_row_int(row, 0);
    use->num_others = weir_row_int(row, 1) - use->num_ranks;
    use->cpu_ns = weir_row_int(row, 2);
    return WEIR_OK;
}

/* Other ranks of the job are not other programs, and the job makes what all ranks make. */
static int view_ranks(reading *r, int64_t start_unix_ns, int64_t end_unix_ns, verdict_view *view, job_use *use,
                      weir_error *error)
{
    char sql[1000];
    double start = 1e-9 * (double)start_unix_ns, end = 1e-9 * (double)end_unix_ns;
    *use = (job_use){ .num_ranks = 1 };
    view->world = r->world;
    if (r->world <= 1 || !(end > start))
        return WEIR_OK;
    snprintf(
        sql, sizeof sql,
        "SELECT count(DISTINCT t.rank), (SELECT count(DISTINCT s.rank) FROM run s WHERE s.node_id = t.node_id AND "
        "s.world = "
        "t.world AND s.job = t.job), CAST(1e9 * (SELECT sum(p.cpu_time * (min(p.timestamp, %.9f) - "
        "max(p.timestamp - p.elapsed, %.9f)) / p.elapsed) FROM process_stats p JOIN run s ON s.run_id = p.run_id "
        "WHERE s.node_id = t.node_id AND s.world = t.world AND s.job = t.job AND p.elapsed > 0 AND p.timestamp > "
        "%.9f AND p.timestamp - p.elapsed < %.9f) AS INTEGER) FROM runs t",
        end, start, start, end);
    int status = weir_recording_query(r->recording, &r->filter, sql, NULL, take_job_use, use, error);
    system_view *s = &view->system;
    if (use->num_others > 0 || use->num_ranks > 1) {
        s->ranks = fmin(fmax(0, 1e-9 * (double)use->cpu_ns / (end - start) - s->process), s->other);
        s->other -= s->ranks;
    }
    if (use->num_ranks > 1)
        view->items_per_s = view->num_items / (end - start);
    return status;
}

/* What is known of a part of the run. */
typedef struct range_view {
    weir_totals totals;
    verdict_view view;
    job_use use;
} range_view;

static void range_view_free(range_view *range)
{
    weir__verdict_view_free(&range->view);
    weir_totals_free(&range->totals);
}

/* On success free it with range_view_free(). whole: of the whole run (NULL = the part). */
static int view_range(reading *r, int64_t start_unix_ns, int64_t end_unix_ns, const weir_totals *whole,
                      range_view *range, weir_error *error)
{
    weir_filter own = r->filter;
    *range = (range_view){ .use = { 0 } };
    if (r->num_laps) {
        int64_t quarter_ns = quarter_lap_ns(r->start_unix_ns, r->end_unix_ns, r->num_laps);
        own.start_unix_ns = start_unix_ns + quarter_ns;
        own.end_unix_ns = end_unix_ns - quarter_ns;
    }
    int status = weir_totals_read(r->recording, &own, &judged, &range->totals, error);
    if (status != WEIR_OK)
        return status;
    if (!weir__verdict_view_totals(&range->view, &range->totals, whole ? whole : &range->totals, &r->stages)) {
        weir_totals_free(&range->totals);
        return out_of_memory(error);
    }
    range->view.trains = r->marks_steps;
    status = view_ranks(r, start_unix_ns, end_unix_ns, &range->view, &range->use, error);
    if (status != WEIR_OK)
        range_view_free(range);
    return status;
}

static int judge_range(reading *r, int64_t start_unix_ns, int64_t end_unix_ns, const weir_totals *whole,
                       full_verdict **made, weir_error *error)
{
    range_view range;
    *made = NULL;
    int status = view_range(r, start_unix_ns, end_unix_ns, whole, &range, error);
    if (status != WEIR_OK)
        return status;
    *made = weir__verdict_judge(&range.view);
    if (*made) {
        (*made)->shown.rank = r->rank;
        (*made)->shown.world = r->world;
        (*made)->shown.num_ranks = (uint32_t)range.use.num_ranks;
    }
    range_view_free(&range);
    return *made ? WEIR_OK : out_of_memory(error);
}

static bool names_limit(const full_verdict *v, const full_verdict *of)
{
    return (v->shown.kind == of->shown.kind && strcmp(v->name, of->name) == 0) ||
           (v->shown.other_kind == of->shown.kind && strcmp(v->other_name, of->name) == 0);
}

static bool is_same_limit(const full_verdict *a, const full_verdict *b)
{
    weir_verdict_kind k = a->shown.kind;
    if (k == b->shown.kind && (k == WEIR_VERDICT_THREADS || k == WEIR_VERDICT_CPUS))
        return true; /* several nodes use them: which of them uses most may vary */
    bool are_slots = (k == WEIR_VERDICT_SLOTS || k == WEIR_VERDICT_OUTSIDE) &&
                     (b->shown.kind == WEIR_VERDICT_SLOTS || b->shown.kind == WEIR_VERDICT_OUTSIDE);
    return (are_slots && strcmp(a->name, b->name) == 0) || names_limit(a, b) || names_limit(b, a);
}

enum { MAX_SEGMENTS = 8, LEAST_LAPS = 4, LEAST_LAPS_OF_PART = 2 };

/*
 * The first segments have one limit and the last ones another, each of them a quarter of all or more; the change may be
 * within a segment. Returns the number of segments before; 0 = no change. *after: the first one after it.
 */
static int find_change(full_verdict *const *segments, int count, int least, int *after)
{
    int before = 1;
    *after = count - 1;
    while (before < count && is_same_limit(segments[0], segments[before]))
        before++;
    while (*after > before && is_same_limit(segments[count - 1], segments[*after - 1]))
        (*after)--;
    bool is_clear =
        before < count && *after - before <= 1 && before >= least && count - *after >= least && 4 * before >= count &&
        4 * (count - *after) >= count && segments[0]->shown.kind != WEIR_VERDICT_UNKNOWN &&
        segments[count - 1]->shown.kind != WEIR_VERDICT_UNKNOWN && !is_same_limit(segments[0], segments[count - 1]);
    return is_clear ? before : 0;
}

static int64_t segment_start_unix_ns(const reading *r, int segment, int count)
{
    int64_t lap = r->num_ends * segment / count;
    return lap ? r->ends_unix_ns[lap - 1] : r->start_unix_ns;
}

/* One verdict on both parts of a run would be wrong for each of them. */
static int tell_change(reading *r, int before, int after, int count, const weir_totals *whole, full_verdict *made,
                       weir_error *error)
{
    full_verdict *parts[2] = { NULL, NULL };
    int64_t end_unix_ns = segment_start_unix_ns(r, before, count),
            start_unix_ns = segment_start_unix_ns(r, after, count);
    int status = judge_range(r, r->start_unix_ns, end_unix_ns, whole, &parts[0], error);
    if (status == WEIR_OK)
        status = judge_range(r, start_unix_ns, r->end_unix_ns, whole, &parts[1], error);
    double sure = r->num_laps < 2 * LEAST_LAPS ? WEIR_VERDICT_CLEAR : WEIR_VERDICT_LIKELY; /* few may be unusual */
    if (status == WEIR_OK && !is_same_limit(parts[0], parts[1]) && parts[0]->shown.confidence >= sure &&
        parts[1]->shown.confidence >= sure) {
        made->shown.changed_unix_ns = end_unix_ns + (start_unix_ns - end_unix_ns) / 2;
        weir__verdict_settle_change(made, parts[0], parts[1], r->start_unix_ns, r->end_unix_ns);
    }
    free(parts[0]);
    free(parts[1]);
    return status;
}

static int look_for_change(reading *r, const weir_totals *whole, full_verdict *made, weir_error *error)
{
    full_verdict *segments[MAX_SEGMENTS] = { NULL };
    int status = WEIR_OK, after;
    int laps_each = r->num_laps < 2 * LEAST_LAPS ? 1 : 2;
    int count = r->num_laps / laps_each < MAX_SEGMENTS ? (int)r->num_laps / laps_each : MAX_SEGMENTS;
    if (r->num_laps < LEAST_LAPS || r->num_ends != r->num_laps) /* too short, or several runs */
        return WEIR_OK;
    for (int i = 0; i < count && status == WEIR_OK; i++)
        status = judge_range(r, segment_start_unix_ns(r, i, count), segment_start_unix_ns(r, i + 1, count), whole,
                             &segments[i], error);
    int before = status == WEIR_OK ? find_change(segments, count, LEAST_LAPS_OF_PART / laps_each, &after) : 0;
    if (before)
        status = tell_change(r, before, after, count, whole, made, error);
    for (int i = 0; i < count; i++)
        free(segments[i]);
    return status;
}

/* -- how the rate varies */

static int64_t end_of_lap_ns(const reading *r, size_t num_laps)
{
    return num_laps ? r->ends_unix_ns[num_laps - 1] : r->start_unix_ns;
}

/* Tells what differs between two parts of the run, of num_laps each, from these laps on. */
static int tell_difference(reading *r, const size_t from[2], const size_t num_laps[2], const char *const names[2],
                           const weir_totals *whole, full_verdict *made, weir_error *error)
{
    range_view parts[2];
    int status =
        view_range(r, end_of_lap_ns(r, from[0]), end_of_lap_ns(r, from[0] + num_laps[0]), whole, &parts[0], error);
    if (status != WEIR_OK)
        return status;
    status =
        view_range(r, end_of_lap_ns(r, from[1]), end_of_lap_ns(r, from[1] + num_laps[1]), whole, &parts[1], error);
    if (status == WEIR_OK) {
        weir__verdict_tell_difference(made, &parts[0].view, &parts[1].view, names);
        range_view_free(&parts[1]);
    }
    range_view_free(&parts[0]);
    return status;
}

/* The first and the last eighth of the run show a slow change. */
static int tell_rate_change(reading *r, const rate_change *change, const weir_totals *whole, full_verdict *made,
                            weir_error *error)
{
    static const char *const sides[2][2] = { { "before", "after it" }, { "in the first eighth", "in the last one" } };
    size_t count = (size_t)r->num_ends, eighth = count / 8 > 0 ? count / 8 : 1;
    size_t from[2] = { 0, change->is_gradual ? count - eighth : change->at };
    size_t num_laps[2] = { change->is_gradual ? eighth : change->at, count - from[1] };
    double rates[2] = { change->before, change->after };
    for (int i = 0; i < 2 && change->is_gradual; i++)
        rates[i] = weir__variation_mean(r->rates, from[i], from[i] + num_laps[i]);
    weir__verdict_say_rate_change(made, rates, change->is_gradual ? 0 : end_of_lap_ns(r, change->at),
                                  r->start_unix_ns);
    return tell_difference(r, from, num_laps, sides[change->is_gradual], whole, made, error);
}

/* Each level is judged by its longest interval. */
static int tell_levels(reading *r, const rate_levels *levels, const weir_totals *whole, full_verdict *made,
                       weir_error *error)
{
    static const char *const sides[2] = { "while it is high", "while it is low" };
    const rate_level *both[2] = { &levels->high, &levels->low };
    size_t from[2] = { both[0]->from, both[1]->from },
           num_laps[2] = { both[0]->until - both[0]->from, both[1]->until - both[1]->from };
    full_verdict *parts[2] = { NULL, NULL };
    int status = WEIR_OK;
    if (num_laps[0] < LEAST_LAPS_OF_PART || num_laps[1] < LEAST_LAPS_OF_PART)
        return WEIR_OK;
    for (int i = 0; i < 2 && status == WEIR_OK; i++)
        status = judge_range(r, end_of_lap_ns(r, from[i]), end_of_lap_ns(r, from[i] + num_laps[i]), whole, &parts[i],
                             error);
    if (status == WEIR_OK) {
        double length_s = 1e-9 * (double)(r->end_unix_ns - r->start_unix_ns) / (double)levels->num_intervals;
        weir__verdict_say_levels(made, levels, length_s);
        if (!is_same_limit(parts[0], parts[1]))
            weir__verdict_settle_levels(made, parts, levels);
        status = tell_difference(r, from, num_laps, sides, whole, made, error);
    }
    free(parts[0]);
    free(parts[1]);
    return status;
}

/* Where one verdict is on all of the run, its rate may still be another one at other times. */
static int look_for_variation(reading *r, const weir_totals *whole, full_verdict *made, weir_error *error)
{
    rate_change change;
    rate_levels levels;
    if (made->shown.changed_unix_ns ||
        r->num_ends != r->num_laps) /* the change is said already, or there are several runs */
        return WEIR_OK;
    if (weir__variation_find_levels(r->rates, (size_t)r->num_ends, &levels))
        return tell_levels(r, &levels, whole, made, error);
    if (weir__variation_find_change(r->rates, (size_t)r->num_ends, &change))
        return tell_rate_change(r, &change, whole, made, error);
    return WEIR_OK;
}

/* "; the first is clip.mp4" */
static int name_failure(void *self, const weir_record *record, weir_error *error)
{
    full_verdict *v = self;
    const char *label = record->failure.label, *slash = strrchr(label, '/');
    size_t used = strlen(v->sentence);
    (void)error;
    if (*label && used > 0)
        snprintf(v->sentence + used - 1, sizeof v->sentence - used + 1, "; the first is %.150s.",
                 slash ? slash + 1 : label);
    return WEIR_OK;
}

static int name_first_failure(const reading *r, full_verdict *v, weir_error *error)
{
    weir_filter filter = r->filter;
    if (v->shown.kind != WEIR_VERDICT_FAILURES)
        return WEIR_OK;
    filter.name = v->name;
    filter.limit = 1;
    return weir_recording_each(r->recording, WEIR_RECORD_FAILURE, &filter, name_failure, v, error);
}

static int judge_part(reading *r, full_verdict **made, weir_error *error)
{
    weir_totals whole = { 0 };
    int status = WEIR_OK;
    if (r->num_cut)
        status = weir_totals_read(r->recording, &r->filter, &of_nodes, &whole, error);
    if (status == WEIR_OK)
        status = judge_range(r, r->start_unix_ns, r->end_unix_ns, r->num_cut ? &whole : NULL, made, error);
    if (status == WEIR_OK)
        status = look_for_change(r, r->num_cut ? &whole : NULL, *made, error);
    if (status == WEIR_OK)
        status = look_for_variation(r, r->num_cut ? &whole : NULL, *made, error);
    if (status == WEIR_OK)
        status = name_first_failure(r, *made, error);
    weir_totals_free(&whole);
    if (status != WEIR_OK) {
        free(*made);
        *made = NULL;
        return status;
    }
    (*made)->shown.start_unix_ns = r->start_unix_ns;
    (*made)->shown.end_unix_ns = r->end_unix_ns;
    (*made)->shown.num_laps = r->num_laps;
    (*made)->shown.num_cut_laps = r->num_cut;
    return WEIR_OK;
}

static int read_verdict(weir_recording *recording, const weir_filter *filter, full_verdict **made, weir_error *error)
{
    reading r = { .recording = recording, .filter = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS } };
    r.filter.name = NULL;
    r.filter.no_replay = true;
    r.filter.descending = r.filter.longest_first = false;
    r.filter.limit = r.filter.after_id = 0;
    int status = weir_recording_hold(recording, error);
    if (status != WEIR_OK)
        return status;
    bool was_joined;
    status = weir__recording_join_laps(recording, &r.filter, &was_joined, error);
    if (status == WEIR_OK && r.filter.run_id != WEIR_ALL_RUNS)
        status = weir__model_settle(recording, &r.filter, error);
    if (status == WEIR_OK)
        status = read_runs(&r, error);
    if (status == WEIR_OK)
        status = judge_part(&r, made, error);
    weir__recording_join_laps_end(recording, was_joined);
    weir_recording_release(recording);
    weir_records_free(&r.stages);
    free(r.ends_unix_ns);
    free(r.rates);
    return status;
}

int weir_verdict_read(weir_recording *recording, const weir_filter *filter, weir_verdict **verdict, weir_error *error)
{
    full_verdict *made = NULL;
    if (!recording || !verdict)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = read_verdict(recording, filter, &made, error);
    *verdict = made ? &made->shown : NULL;
    return status;
}

/* To the part of the run that the verdict is about, if its limit changed. */
static void narrow_filter(weir_filter *filter, const weir_verdict *v)
{
    int64_t changed_unix_ns = v->changed_unix_ns,
            quarter_ns = quarter_lap_ns(v->start_unix_ns, v->end_unix_ns, v->num_laps);
    if (changed_unix_ns && changed_unix_ns - v->start_unix_ns >= v->end_unix_ns - changed_unix_ns)
        filter->end_unix_ns = changed_unix_ns - quarter_ns;
    else if (changed_unix_ns)
        filter->start_unix_ns = changed_unix_ns + quarter_ns;
}

int weir_verdict_explain(weir_recording *recording, const weir_filter *filter, weir_verdict **verdict,
                         weir_error *error)
{
    int status = weir_verdict_read(recording, filter, verdict, error);
    if (status != WEIR_OK)
        return status;
    assert(*verdict);
    weir_filter own = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    narrow_filter(&own, *verdict);
    status = weir__verdict_advise((full_verdict *)*verdict, recording, &own, error); /* shown is its first member */
    if (status != WEIR_OK) {
        weir_verdict_free(*verdict);
        *verdict = NULL;
    }
    return status;
}
