/* The verdict on a database: which laps count, how the nodes are connected. */
#include "verdict.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

#define ENDED_SHARE     0.02 /* of a lap: if a source waited longer after its end, it has ended in this lap */
#define SUSPENDED_SHARE 0.10 /* of a lap: if more of it was suspended, the lap does not count */

/* What a verdict is about: not spans and counters of user code. */
static const weir_grouping judged = { .by = WEIR_BY_NAME, .subjects = (1u << WEIR_SUBJECT_SPAN) - 1 };

/* -- the steady part */

typedef struct lap_mark {
    int64_t end_unix_ns, elapsed_ns;
    uint64_t num_delivered;
    uint32_t num_sources, num_ended; /* sources, and those that have ended in this lap or before */
    bool suspended;
} lap_mark;

typedef struct run_part {
    lap_mark *laps;
    size_t num_laps;
    char *sink_queue; /* NULL = not known */
    bool marks_steps;
} run_part;

static int out_of_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

static lap_mark *mark_of(run_part *part, const weir_lap_record *lap)
{
    for (size_t i = part->num_laps; i-- > 0;)
        if (part->laps[i].end_unix_ns == lap->end_unix_ns)
            return &part->laps[i];
    lap_mark *grown = weir__array_grow(part->laps, part->num_laps, sizeof *grown);
    if (!grown)
        return NULL;
    part->laps = grown;
    grown[part->num_laps] = (lap_mark){ .end_unix_ns = lap->end_unix_ns, .elapsed_ns = lap->elapsed_ns };
    return &grown[part->num_laps++];
}

static int note_lap(run_part *part, const weir_lap_record *lap, weir_error *error)
{
    bool is_sink_queue =
        lap->subject == WEIR_SUBJECT_QUEUE && part->sink_queue && strcmp(lap->name, part->sink_queue) == 0;
    bool is_source = lap->subject == WEIR_SUBJECT_FLOW && strcmp(lap->kind, "source") == 0;
    if (!is_sink_queue && !is_source)
        return WEIR_OK;
    lap_mark *mark = mark_of(part, lap);
    if (!mark)
        return out_of_memory(error);
    mark->suspended |= (double)lap->suspended_ns > SUSPENDED_SHARE * (double)lap->elapsed_ns;
    part->marks_steps |= lap->position.last_step >= lap->position.first_step;
    if (is_sink_queue)
        mark->num_delivered += lap->metrics.queue.num_items;
    mark->num_sources += is_source;
    mark->num_ended += is_source && (double)lap->metrics.task.wait_in_ns > ENDED_SHARE * (double)lap->elapsed_ns;
    return WEIR_OK;
}

static int read_marks(weir_reader *reader, weir_record_kind kind, const weir_filter *filter, run_part *part,
                      weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    int status = weir_query_begin(reader, kind, filter, &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK)
        status = note_lap(part, &record->lap, error);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

/*
 * The laps that count: after the lap with the first delivery, before the lap in which the last source ended, and
 * without suspended laps at either end. If none is left, those that delivered something; else all.
 */
static void cut_part(const run_part *part, size_t *first, size_t *end)
{
    size_t start = 0, num_delivering = 0;
    *first = 0;
    *end = part->num_laps;
    for (size_t i = 0; i < part->num_laps; i++)
        num_delivering += part->laps[i].num_delivered > 0;
    while (num_delivering && part->laps[start].num_delivered == 0)
        start++;
    size_t tail = part->num_laps;
    while (tail > start && part->laps[tail - 1].num_sources > 0 &&
           part->laps[tail - 1].num_ended >= part->laps[tail - 1].num_sources)
        tail--;
    size_t from = start + 1; /* the lap of the first delivery is partly the start-up */
    while (from < tail && part->laps[from].suspended)
        from++;
    while (tail > from && part->laps[tail - 1].suspended)
        tail--;
    if (from < tail) {
        *first = from;
        *end = tail;
    } else if (num_delivering)
        *first = start;
}

static void widen_window(int64_t *start_unix_ns, int64_t *end_unix_ns, const run_part *part, size_t first, size_t end)
{
    const lap_mark *from = &part->laps[first], *to = &part->laps[end - 1];
    int64_t start = from->end_unix_ns - from->elapsed_ns;
    if (*start_unix_ns == 0 || start < *start_unix_ns)
        *start_unix_ns = start;
    if (to->end_unix_ns > *end_unix_ns)
        *end_unix_ns = to->end_unix_ns;
}

/* -- wiring */

static void free_wirings(verdict_wiring *wirings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(wirings[i].name);
        free(wirings[i].kind);
        free(wirings[i].inputs);
    }
    free(wirings);
}

typedef struct reading {
    weir_reader *reader;
    weir_filter filter;
    verdict_wiring *wirings;
    size_t num_wirings;
    bool marks_steps;
    int64_t start_unix_ns, end_unix_ns;
    int64_t num_laps, num_cut;
    int64_t *ends_unix_ns; /* of the laps that count, of the last run */
    int64_t num_ends;
    int32_t rank; /* of the last run */
    uint32_t world;
} reading;

static int add_wiring(reading *r, const weir_stage_record *stage, weir_error *error)
{
    for (size_t i = 0; i < r->num_wirings; i++)
        if (strcmp(r->wirings[i].name, stage->name) == 0)
            return WEIR_OK; /* of another run of the same pipeline */
    verdict_wiring *grown = weir__array_grow(r->wirings, r->num_wirings, sizeof *grown);
    if (!grown)
        return out_of_memory(error);
    r->wirings = grown;
    verdict_wiring *added = &grown[r->num_wirings++];
    *added = (verdict_wiring){
        .name = strdup(stage->name),
        .kind = strdup(stage->kind),
        .inputs = strdup(stage->inputs),
        .queue_bytes = stage->queue_bytes,
    };
    return added->name && added->kind && added->inputs ? WEIR_OK : out_of_memory(error);
}

static int read_wiring(reading *r, int64_t run_id, run_part *part, weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    int status = weir_query_begin(r->reader, WEIR_RECORD_STAGE, &(weir_filter){ .run_id = run_id }, &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK) {
        status = add_wiring(r, &record->stage, error);
        if (status == WEIR_OK && strcmp(record->stage.kind, "sink") == 0 && !part->sink_queue &&
            !(part->sink_queue = strdup(record->stage.queue_name)))
            status = out_of_memory(error);
    }
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static int add_end(reading *r, int64_t end_unix_ns, weir_error *error)
{
    int64_t *grown = weir__array_grow(r->ends_unix_ns, (size_t)r->num_ends, sizeof *grown);
    if (!grown)
        return out_of_memory(error);
    r->ends_unix_ns = grown;
    grown[r->num_ends++] = end_unix_ns;
    return WEIR_OK;
}

static int read_run(reading *r, int64_t run_id, weir_error *error)
{
    run_part part = { .num_laps = 0 };
    weir_filter own = r->filter;
    size_t first = 0, end = 0;
    r->num_ends = 0;
    own.run_id = run_id;
    int status = read_wiring(r, run_id, &part, error);
    if (status == WEIR_OK)
        status = read_marks(r->reader, WEIR_RECORD_FLOW, &own, &part, error);
    if (status == WEIR_OK)
        status = read_marks(r->reader, WEIR_RECORD_QUEUE, &own, &part, error);
    if (status == WEIR_OK && part.num_laps) {
        cut_part(&part, &first, &end);
        widen_window(&r->start_unix_ns, &r->end_unix_ns, &part, first, end);
        r->num_laps += (int64_t)(end - first);
        r->num_cut += (int64_t)(part.num_laps - (end - first));
        r->marks_steps |= part.marks_steps;
    }
    for (size_t i = first; status == WEIR_OK && i < end; i++)
        status = add_end(r, part.laps[i].end_unix_ns, error);
    free(part.laps);
    free(part.sink_queue);
    return status;
}

static int read_runs(reading *r, weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    int status = weir_query_begin(r->reader, WEIR_RECORD_RUN, &r->filter, &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK) {
        r->rank = record->run.rank;
        r->world = record->run.world;
        status = read_run(r, record->run.run_id, error);
    }
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
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

/* Other ranks of the job are no other programs, and the job makes what all ranks make. */
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
    int status = weir_reader_select(r->reader, &r->filter, sql, NULL, take_job_use, use, error);
    system_view *s = &view->system;
    if (use->num_others > 0 || use->num_ranks > 1) {
        s->ranks = fmin(fmax(0, 1e-9 * (double)use->cpu_ns / (end - start) - s->process), s->other);
        s->other -= s->ranks;
    }
    if (use->num_ranks > 1)
        view->items_per_s = view->num_items / (end - start);
    return status;
}

static int judge_range(reading *r, int64_t start_unix_ns, int64_t end_unix_ns, const weir_totals *whole,
                       full_verdict **made, weir_error *error)
{
    weir_totals steady;
    weir_filter own = r->filter;
    *made = NULL;
    if (r->num_laps) {
        int64_t quarter_ns = quarter_lap_ns(r->start_unix_ns, r->end_unix_ns, r->num_laps);
        own.start_unix_ns = start_unix_ns + quarter_ns;
        own.end_unix_ns = end_unix_ns - quarter_ns;
    }
    int status = weir_totals_read(r->reader, &own, &judged, &steady, error);
    if (status != WEIR_OK)
        return status;
    verdict_view view;
    if (weir__verdict_view_totals(&view, &steady, whole ? whole : &steady, r->wirings, r->num_wirings)) {
        job_use use;
        view.trains = r->marks_steps;
        status = view_ranks(r, start_unix_ns, end_unix_ns, &view, &use, error);
        *made = status == WEIR_OK ? weir__verdict_judge(&view) : NULL;
        weir__verdict_view_free(&view);
        if (*made) {
            (*made)->shown.rank = r->rank;
            (*made)->shown.world = r->world;
            (*made)->shown.num_ranks = (uint32_t)use.num_ranks;
        }
    }
    weir_totals_free(&steady);
    return *made || status != WEIR_OK ? status : out_of_memory(error);
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

static int judge_part(reading *r, full_verdict **made, weir_error *error)
{
    weir_totals whole = { 0 };
    int status = WEIR_OK;
    if (r->num_cut)
        status = weir_totals_read(r->reader, &r->filter, &judged, &whole, error);
    if (status == WEIR_OK)
        status = judge_range(r, r->start_unix_ns, r->end_unix_ns, r->num_cut ? &whole : NULL, made, error);
    if (status == WEIR_OK)
        status = look_for_change(r, r->num_cut ? &whole : NULL, *made, error);
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

static int read_verdict(weir_reader *reader, const weir_filter *filter, full_verdict **made, weir_error *error)
{
    reading r = { .reader = reader, .filter = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS } };
    r.filter.name = NULL;
    r.filter.no_replay = true;
    r.filter.descending = r.filter.longest_first = false;
    r.filter.limit = r.filter.after_id = 0;
    int status = weir_reader_hold(reader, error);
    if (status != WEIR_OK)
        return status;
    status = read_runs(&r, error);
    if (status == WEIR_OK)
        status = judge_part(&r, made, error);
    weir_reader_release(reader);
    free_wirings(r.wirings, r.num_wirings);
    free(r.ends_unix_ns);
    return status;
}

int weir_verdict_read(weir_reader *reader, const weir_filter *filter, weir_verdict **verdict, weir_error *error)
{
    full_verdict *made = NULL;
    if (!reader || !verdict)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = read_verdict(reader, filter, &made, error);
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

int weir_verdict_explain(weir_reader *reader, const weir_filter *filter, weir_verdict **verdict, weir_error *error)
{
    int status = weir_verdict_read(reader, filter, verdict, error);
    if (status != WEIR_OK)
        return status;
    assert(*verdict);
    weir_filter own = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    narrow_filter(&own, *verdict);
    status = weir__verdict_advise((full_verdict *)*verdict, reader, &own, error); /* shown is its first member */
    if (status != WEIR_OK) {
        weir_verdict_free(*verdict);
        *verdict = NULL;
    }
    return status;
}
