/*
 * Sums over groups of laps, in one pass over each table. The table of metrics says how each metric is added. Groups
 * are found by a hash of small numbers: names, nodes and phases are numbered texts.
 */
#include <weir/query.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "array.h"
#include "database_path.h"
#include "database_reader.h"
#include "lap_rows.h"
#include "owned_total.h"
#include "phase_spans.h"
#include "string_table.h"

enum { MAX_GROUPS = 100000 };

#define DEFAULT_BIN_NS INT64_C(60000000000)
/* A lap that ends with its bin belongs to it, even if its timestamp is larger in the last digit. */
#define TOUCHING_NS 1000

/* The identity of a group; zeroed before it is filled, so that it can be compared as bytes. */
typedef struct group_id {
    int64_t run_id, bin_step, bin;
    int32_t name, node, phase; /* numbers of texts */
    int32_t kind;              /* of the subject: sources and sinks are not added together */
} group_id;

typedef struct group {
    UT_hash_handle hh;
    group_id id;
    weir_total total;
} group;

/* The state of a pass over a table. */
typedef struct pass {
    weir_reader *reader;
    const weir_filter *filter; /* resolved */
    weir_grouping grouping;    /* without zeros */
    weir_subject subject;
    group *groups; /* of the subject */
    weir_string_table *texts;
    weir_marks marks;
    struct transition {
        int64_t run_id, end_unix_ns;
        int32_t text;
    } * transitions;                    /* by run and time; NULL = not needed yet */
    size_t num_transitions, transition; /* the last one that was found */
    sqlite3_stmt *node_of_run;          /* NULL = not needed yet */
    int64_t node_run_id;                /* the run whose node is known; 0 = none */
    int32_t node;
    weir_error *error;
} pass;

static bool is_by(const pass *p, weir_group_by what)
{
    return p->grouping.by & what;
}

/* -- the group of a lap */

static int number_of(pass *p, const char *text, int32_t *number)
{
    *number = weir_string_table_number(p->texts, text);
    return *number >= 0 ? WEIR_OK : weir_reader_out_of_memory(p->error);
}

static int find_node(pass *p, int64_t run_id, int32_t *node)
{
    int code = SQLITE_OK, status = WEIR_OK;
    if (p->node_run_id != run_id) {
        if (!p->node_of_run)
            code = sqlite3_prepare_v2(p->reader->db, "SELECT node_id FROM run WHERE run_id = ?", -1, &p->node_of_run,
                                      NULL);
        if (code == SQLITE_OK)
            code = sqlite3_bind_int64(p->node_of_run, 1, run_id);
        if (code == SQLITE_OK)
            code = sqlite3_step(p->node_of_run);
        if (code != SQLITE_ROW && code != SQLITE_DONE)
            return weir_reader_error(p->reader, code, p->error);
        status = number_of(p, code == SQLITE_ROW ? weir_column_text(p->node_of_run, 0) : "", &p->node);
        sqlite3_reset(p->node_of_run);
        p->node_run_id = run_id;
    }
    *node = p->node;
    return status;
}

static const char *job_phase_of(const char *phase)
{
    return !*phase || strcmp(phase, "startup") == 0 || strcmp(phase, "finish") == 0 ? phase : "loop";
}

static int find_phase(pass *p, weir_lap_record *lap, int32_t *number)
{
    int status = weir_lap_find_phase(&p->marks, lap, p->error);
    if (status != WEIR_OK)
        return status;
    return number_of(p, is_by(p, WEIR_BY_PHASE) ? lap->position.phase : job_phase_of(lap->position.phase), number);
}

/* "eval > train"; a phase that goes on after a gap keeps its own. */
static int add_transition(pass *p, char *before, size_t size, const weir_phase_record *one)
{
    struct transition *grown = weir_array_grow(p->transitions, p->num_transitions, sizeof *grown), *last;
    char text[160];
    if (!grown)
        return weir_reader_out_of_memory(p->error);
    p->transitions = grown;
    last = p->num_transitions ? &grown[p->num_transitions - 1] : NULL;
    if (!last || last->run_id != one->run_id)
        snprintf(before, size, "start");
    struct transition next = { .run_id = one->run_id, .end_unix_ns = one->end_unix_ns };
    int status = WEIR_OK;
    if (last && last->run_id == one->run_id && strcmp(before, one->position.phase) == 0) {
        next.text = last->text;
    } else {
        snprintf(text, sizeof text, "%s > %s", before, one->position.phase);
        status = number_of(p, text, &next.text);
    }
    snprintf(before, size, "%s", one->position.phase);
    grown[p->num_transitions++] = next;
    return status;
}

static int read_transitions(pass *p)
{
    char before[80] = "";
    weir_filter runs = { .run_id = p->filter->run_id };
    weir_window window = p->reader->window;
    weir_phase_spans spans;
    weir_phase_record one;
    p->reader->window = (weir_window){ .every = false };
    int status = weir_phase_spans_begin(&spans, p->reader, &runs, p->error);
    while (status == WEIR_OK && (status = weir_phase_spans_next(&spans, &one, p->error)) == WEIR_OK)
        status = add_transition(p, before, sizeof before, &one);
    weir_phase_spans_end(&spans);
    p->reader->window = window;
    return status == WEIR_EOF ? WEIR_OK : status;
}

/* Laps come nearly in the order of time, so the search goes on where the last one ended. */
static int find_transition(pass *p, const weir_lap_record *lap, int32_t *number)
{
    int status = p->transitions ? WEIR_OK : read_transitions(p);
    for (size_t i = 0; status == WEIR_OK && i < p->num_transitions; i++) {
        size_t at = (p->transition + i) % p->num_transitions;
        const struct transition *one = &p->transitions[at], *before = at ? one - 1 : NULL;
        bool is_first = !before || before->run_id != one->run_id;
        if (one->run_id != lap->run_id || lap->end_unix_ns > one->end_unix_ns + TOUCHING_NS ||
            (!is_first && lap->end_unix_ns <= before->end_unix_ns + TOUCHING_NS))
            continue;
        p->transition = at;
        *number = one->text;
        return WEIR_OK;
    }
    return status == WEIR_OK ? number_of(p, "", number) : status;
}

static int64_t floor_to(int64_t value, int64_t bin)
{
    int64_t rest = value % bin;
    return value - (rest < 0 ? rest + bin : rest);
}

static int identify(pass *p, weir_lap_record *lap, group_id *id)
{
    int status = number_of(p, lap->kind, &id->kind);
    if (is_by(p, WEIR_BY_RUN))
        id->run_id = lap->run_id;
    if (is_by(p, WEIR_BY_STEP))
        id->bin_step = floor_to(lap->position.first_step, p->grouping.bin_steps);
    if (is_by(p, WEIR_BY_TIME))
        id->bin = floor_to(lap->end_unix_ns - TOUCHING_NS, p->grouping.bin_ns);
    if (status == WEIR_OK && is_by(p, WEIR_BY_NAME))
        status = number_of(p, lap->name, &id->name);
    if (status == WEIR_OK && is_by(p, WEIR_BY_NODE))
        status = find_node(p, lap->run_id, &id->node);
    if (status == WEIR_OK && (is_by(p, WEIR_BY_PHASE) || is_by(p, WEIR_BY_JOB_PHASE)))
        status = find_phase(p, lap, &id->phase);
    if (status == WEIR_OK && is_by(p, WEIR_BY_TRANSITION))
        status = find_transition(p, lap, &id->phase);
    return status;
}

/* Sets the keys of a new group; its range grows with each lap. */
static group *new_group(const pass *p, const group_id *id)
{
    group *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->id = *id;
    g->total.subject = p->subject;
    g->total.kind = weir_string_table_at(p->texts, id->kind);
    g->total.key = (weir_group_key){
        .name = is_by(p, WEIR_BY_NAME) ? weir_string_table_at(p->texts, id->name) : "",
        .node_id = is_by(p, WEIR_BY_NODE) ? weir_string_table_at(p->texts, id->node) : "",
        .phase = p->grouping.by & (WEIR_BY_PHASE | WEIR_BY_JOB_PHASE | WEIR_BY_TRANSITION)
                     ? weir_string_table_at(p->texts, id->phase)
                     : "",
        .run_id = id->run_id,
        .bin_step = id->bin_step,
        .bin_unix_ns = id->bin,
        .last_step = -1,
    };
    weir_metrics_clear(weir_subject_metrics(p->subject), &g->total.metrics);
    return g;
}

/* Finds or adds the group with this id. */
static int find_group(pass *p, const group_id *id, group **found)
{
    HASH_FIND(hh, p->groups, id, sizeof *id, *found);
    if (*found)
        return WEIR_OK;
    if (HASH_COUNT(p->groups) >= MAX_GROUPS)
        return weir_error_set(p->error, WEIR_ELIMIT, 0,
                              "more than %d groups; use fewer keys, wider bins, or a filter", MAX_GROUPS);
    *found = new_group(p, id);
    if (*found) {
        HASH_ADD(hh, p->groups, id, sizeof *id, *found);
        if ((*found)->hh.tbl)
            return WEIR_OK;
        free(*found);
    }
    return weir_reader_out_of_memory(p->error);
}

/* -- laps */

weir_total weir_total_of_lap(const weir_lap_record *lap)
{
    if (!lap)
        return (weir_total){ .kind = "" };
    return (weir_total){
        .key = { .name = lap->name,
                 .node_id = "",
                 .phase = lap->position.phase,
                 .run_id = lap->run_id,
                 .first_step = lap->position.first_step,
                 .last_step = lap->position.last_step,
                 .start_unix_ns = lap->end_unix_ns - lap->elapsed_ns,
                 .end_unix_ns = lap->end_unix_ns,
                 .num_laps = 1 },
        .subject = lap->subject,
        .kind = lap->kind,
        .elapsed_ns = lap->elapsed_ns,
        .suspended_ns = lap->suspended_ns,
        .capacity = lap->capacity,
        .metrics = lap->metrics,
    };
}

/* Extends the range that a group covers. */
static void cover(weir_group_key *key, const weir_group_key *more)
{
    if (key->num_laps == 0 || more->start_unix_ns < key->start_unix_ns)
        key->start_unix_ns = more->start_unix_ns;
    if (key->num_laps == 0 || more->end_unix_ns > key->end_unix_ns)
        key->end_unix_ns = more->end_unix_ns;
    key->num_laps += more->num_laps;
    if (more->last_step < more->first_step)
        return;
    bool has_none = key->last_step < key->first_step;
    if (has_none || more->first_step < key->first_step)
        key->first_step = more->first_step;
    if (has_none || more->last_step > key->last_step)
        key->last_step = more->last_step;
}

static int64_t sum_ns(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Of a counter, the value at the end is that of the later one. */
static void keep_last(const weir_metric_table *table, weir_metrics *to, const weir_metrics *later)
{
    for (size_t i = 0; i < table->num_metrics; i++) {
        const double *last = (const double *)(const void *)((const char *)later + table->metrics[i].offset);
        if (table->metrics[i].kind == WEIR_METRIC_LAST && !isnan(*last))
            memcpy((char *)to + table->metrics[i].offset, last, sizeof *last);
    }
}

/* Adds everything except histograms. Laps of several runs need not come in the order of time. */
static void add_sums(weir_total *to, const weir_total *from)
{
    const weir_metric_table *table = weir_subject_metrics(to->subject);
    const weir_metrics before = to->metrics;
    bool is_later = to->key.num_laps == 0 || from->key.end_unix_ns >= to->key.end_unix_ns;
    weir_metrics_add(table, &to->metrics, &from->metrics);
    if (is_later)
        to->capacity = from->capacity;
    else
        keep_last(table, &to->metrics, &before);
    cover(&to->key, &from->key);
    to->elapsed_ns = sum_ns(to->elapsed_ns, from->elapsed_ns);
    to->suspended_ns =
        to->suspended_ns < 0 || from->suspended_ns < 0 ? -1 : sum_ns(to->suspended_ns, from->suspended_ns);
}

void weir_total_add(weir_total *to, const weir_total *from)
{
    if (!to || !from)
        return;
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    weir_metrics metrics = from->metrics;
    size_t count = weir_subject_histograms(to->subject, histograms);
    add_sums(to, from);
    for (size_t i = 0; i < count; i++) {
        const weir_histogram *times = *weir_metric_histogram_at(histograms[i].metric, &metrics);
        const weir_histogram **sum = weir_metric_histogram_at(histograms[i].metric, &to->metrics);
        if (*sum && times)
            weir_histogram_add((weir_histogram *)(uintptr_t)*sum, times); /* owned by the total */
    }
}

static int make_histograms(pass *p, weir_total *total, weir_histogram *times[WEIR_MAX_HISTOGRAMS])
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir_subject_histograms(total->subject, histograms);
    for (size_t i = 0; i < count; i++) {
        const weir_histogram **at = weir_metric_histogram_at(histograms[i].metric, &total->metrics);
        if (!*at)
            *at = calloc(1, sizeof **at);
        if (!*at)
            return weir_reader_out_of_memory(p->error);
        times[i] = (weir_histogram *)(uintptr_t)*at; /* owned by the total */
    }
    return WEIR_OK;
}

static int add_lap(pass *p, sqlite3_stmt *row, const weir_lap_record *lap, weir_total *total)
{
    weir_histogram *times[WEIR_MAX_HISTOGRAMS];
    bool has[WEIR_MAX_HISTOGRAMS];
    weir_total one = weir_total_of_lap(lap);
    add_sums(total, &one);
    int status = make_histograms(p, total, times);
    if (status != WEIR_OK)
        return status;
    const char *damaged = weir_lap_add_histograms(p->subject, row, times, has);
    if (!damaged)
        return WEIR_OK;
    return weir_error_set(p->error, WEIR_EDATA, 0, "database %s is damaged: row %lld of %s has no valid %s",
                          weir_path_for_message(p->reader->path).text, (long long)lap->id,
                          weir_lap_tables[p->subject].name, damaged);
}

/* -- the pass */

static int add_row(pass *p, sqlite3_stmt *row)
{
    group_id id;
    group *g;
    weir_lap_record lap;
    memset(&id, 0, sizeof id);
    weir_lap_read(p->subject, row, &lap);
    if (is_by(p, WEIR_BY_STEP) && lap.position.last_step < lap.position.first_step)
        return WEIR_OK;
    int status = identify(p, &lap, &id);
    if (status == WEIR_OK)
        status = find_group(p, &id, &g);
    return status == WEIR_OK ? add_lap(p, row, &lap, &g->total) : status;
}

static int add_rows(pass *p)
{
    sqlite3_stmt *rows;
    int code = SQLITE_DONE;
    int status = weir_lap_select(p->reader, p->subject, p->filter, true, &rows, p->error);
    while (rows && status == WEIR_OK && (code = sqlite3_step(rows)) == SQLITE_ROW)
        status = add_row(p, rows);
    if (status == WEIR_OK && code != SQLITE_DONE)
        status = weir_reader_error(p->reader, code, p->error);
    sqlite3_finalize(rows);
    return status;
}

/* -- order */

static int order_of(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* "0:10:decode" sorts after "0:2:…"; names without numbers keep their order. */
static int order_of_names(const group *a, const group *b)
{
    const char *p = a->total.key.name, *q = b->total.key.name;
    for (int i = 0; i < 2; i++) {
        char *p_end, *q_end;
        int64_t m = strtoll(p, &p_end, 10), n = strtoll(q, &q_end, 10);
        if (p_end == p || q_end == q || *p_end != ':' || *q_end != ':')
            break;
        if (m != n)
            return order_of(m, n);
        p = p_end + 1;
        q = q_end + 1;
    }
    return order_of(a->id.name, b->id.name);
}

static int compare_groups(group *a, group *b)
{
    int order = order_of(a->id.run_id, b->id.run_id);
    if (order == 0)
        order = strcmp(a->total.key.node_id, b->total.key.node_id);
    if (order == 0)
        order = order_of(a->id.bin, b->id.bin);
    if (order == 0)
        order = order_of(a->id.bin_step, b->id.bin_step);
    if (order == 0)
        order = order_of(a->id.phase, b->id.phase); /* the order in which they began */
    return order ? order : order_of_names(a, b);
}

/* Moves the groups of the subject to the list. */
static int take_groups(pass *p, weir_total_list *list)
{
    size_t count = HASH_COUNT(p->groups);
    list->all = count ? calloc(count, sizeof *list->all) : NULL;
    if (count && !list->all)
        return weir_reader_out_of_memory(p->error);
    HASH_SORT(p->groups, compare_groups);
    for (group *g = p->groups, *next; g; g = next) {
        next = g->hh.next;
        list->all[list->count++] = g->total;
    }
    return WEIR_OK;
}

/* Also frees the histograms of totals that were not moved to a list. */
static void free_groups(pass *p, bool were_taken)
{
    group *g, *next;
    HASH_ITER(hh, p->groups, g, next)
    {
        HASH_DEL(p->groups, g);
        if (!were_taken)
            weir_total_forget_histograms(&g->total);
        free(g);
    }
}

/* -- all of it */

static int add_subject(pass *p, weir_subject subject, weir_total_list *list)
{
    p->subject = subject;
    int status = add_rows(p);
    if (status == WEIR_OK)
        status = take_groups(p, list);
    free_groups(p, status == WEIR_OK);
    return status;
}

int weir_totals_read(weir_reader *reader, const weir_filter *filter, const weir_grouping *grouping,
                     weir_totals *totals, weir_error *error)
{
    if (!reader || !totals)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_filter resolved = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    pass p = { .reader = reader, .filter = &resolved, .marks = { .reader = reader }, .error = error };
    if (grouping)
        p.grouping = *grouping;
    p.grouping.bin_steps = p.grouping.bin_steps > 0 ? p.grouping.bin_steps : 1;
    p.grouping.bin_ns = p.grouping.bin_ns > 0 ? p.grouping.bin_ns : DEFAULT_BIN_NS;
    *totals = (weir_totals){ .texts = p.texts = weir_string_table_new() };
    if (!p.texts)
        return weir_reader_out_of_memory(error);

    /* So that everything is read from one snapshot, even if a writer is active. */
    int status = weir_reader_hold(reader, error);
    if (status == WEIR_OK) {
        status = weir_reader_resolve_run(reader, &resolved.run_id, error);
        for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && status == WEIR_OK; subject++)
            status = add_subject(&p, subject, &totals->of[subject]);
        sqlite3_finalize(p.node_of_run);
        free(p.transitions);
        weir_marks_free(&p.marks);
        weir_reader_release(reader);
    }
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
            weir_total_forget_histograms(&totals->of[subject].all[i]);
        free(totals->of[subject].all);
    }
    weir_string_table_free(totals->texts);
    *totals = (weir_totals){ .texts = NULL };
}
