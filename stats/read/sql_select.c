/*
 * Which index is used: one run in the order of its ids uses the index by run; a range of time, or several runs in the
 * order of time, uses the index by time; everything unordered reads the table. A unary + keeps SQLite from choosing
 * another index.
 *
 * Conditions of phase and step on rows that are points in time, and from_phase and until_phase, are first converted
 * to spans of time. The statement calls weir_within() with them: a run may have more than an SQL text could list.
 */
#include "sql_select.h"

#include <stdlib.h>
#include <string.h>

#include <weir/pipeline.h>

#include "array.h"
#include "lap_tables.h"
#include "phase_spans.h"
#include "struct_copy.h"

/*
 * Timestamps are stored as seconds in a double, exact to a quarter of a microsecond: a shorter overlap does not
 * count.
 */
#define TOUCHING_S 1e-6

/* A span of time of one run. */
typedef struct span {
    int64_t run_id;
    double start, end; /* Unix seconds, as they are stored */
} span;

/* While they are collected: by run and time. In a statement: sorted, with `end` the latest of the run's ends so far. */
typedef struct spans {
    size_t count;
    span *all;
} spans;

/* The state of building one statement. */
typedef struct selecting {
    weir_reader *reader;
    const weir_sql_selection *selection;
    const weir_filter *filter;
    sqlite3_str *sql;
    spans *phases;  /* the spans that match a point's phase and step; NULL = any */
    spans *windows; /* between two phases; NULL = any */
    weir_error *error;
} selecting;

/* Whether rows are found with the index by time. */
static bool by_time(const selecting *s)
{
    return s->selection->kind <= WEIR_ROWS_POINTS && s->filter->start_unix_ns != 0;
}

/* -- conditions; each begins with AND, behind WHERE 1 */

static void put_run_condition(selecting *s)
{
    const weir_filter *filter = s->filter;
    bool is_run_table = s->selection->kind == WEIR_ROWS_RUNS || s->selection->kind == WEIR_ROWS_NODES;
    bool other_way = by_time(s) || filter->after_id > 0;
    if (filter->run_id != WEIR_ALL_RUNS)
        sqlite3_str_appendall(s->sql, other_way ? " AND +t.run_id = :run" : " AND t.run_id = :run");
    if (filter->node_id || filter->by_rank) {
        if (!is_run_table)
            sqlite3_str_appendall(s->sql, " AND +t.run_id IN (SELECT t.run_id FROM run t WHERE 1");
        if (filter->node_id)
            sqlite3_str_appendall(s->sql, " AND weir_glob(:node, t.node_id)");
        if (filter->by_rank)
            sqlite3_str_appendall(s->sql, " AND t.rank = :rank");
        if (!is_run_table)
            sqlite3_str_appendall(s->sql, ")");
    }
}

static void put_time_condition(selecting *s)
{
    const weir_filter *filter = s->filter;
    bool is_point = s->selection->kind == WEIR_ROWS_POINTS;
    if (s->selection->kind == WEIR_ROWS_STAGES)
        return;
    if (s->selection->kind > WEIR_ROWS_POINTS) {
        if (filter->start_unix_ns != 0)
            sqlite3_str_appendall(s->sql, " AND (t.ended IS NULL OR t.ended > :start)");
        if (filter->end_unix_ns != 0)
            sqlite3_str_appendall(s->sql, " AND t.started < :end");
        return;
    }
    if (filter->start_unix_ns != 0)
        sqlite3_str_appendall(s->sql, is_point ? " AND t.timestamp >= :start" : " AND t.timestamp > :start");
    if (filter->end_unix_ns != 0)
        sqlite3_str_appendall(s->sql, is_point ? " AND t.timestamp < :end" : " AND t.timestamp - t.elapsed < :end");
}

static void put_position(selecting *s)
{
    const weir_filter *filter = s->filter;
    if (filter->by_step)
        sqlite3_str_appendall(s->sql, " AND t.last_step >= :first_step AND t.first_step <= :last_step");
    if (filter->phase && strcmp(filter->phase, "startup") == 0)
        sqlite3_str_appendall(s->sql, " AND :phase = " WEIR_PHASE_OF_LAP);
    else if (filter->phase)
        sqlite3_str_appendall(s->sql, " AND t.phase = :phase");
    if (filter->no_replay)
        sqlite3_str_appendall(s->sql, " AND t.phase <> '" WEIR_PHASE_REPLAY "'");
}

/* Rows that overlap one of the spans. */
static void put_spans(selecting *s, const char *parameter)
{
    sqlite3_str_appendf(s->sql, " AND weir_within(%s, t.run_id, t.timestamp%s)", parameter,
                        s->selection->kind == WEIR_ROWS_POINTS ? "" : ", t.elapsed");
}

static bool has_position_conditions(const weir_filter *filter)
{
    return filter->phase || filter->by_step;
}

static bool has_windows(const selecting *s)
{
    const weir_window *window = &s->reader->window;
    return s->filter->from_phase || s->filter->until_phase || window->by_step || window->part;
}

static void put_conditions(selecting *s)
{
    const weir_filter *filter = s->filter;
    bool is_point = s->selection->kind == WEIR_ROWS_POINTS, is_lap = s->selection->kind == WEIR_ROWS_LAPS;
    sqlite3_str_appendall(s->sql, " WHERE 1");
    put_run_condition(s);
    if (filter->name && s->selection->name_column)
        sqlite3_str_appendf(s->sql, " AND weir_name(:name, %s)", s->selection->name_column);
    put_time_condition(s);
    if (is_lap)
        put_position(s);
    if (s->phases)
        put_spans(s, ":phases");
    if (s->windows)
        put_spans(s, ":windows");
    if ((is_point || is_lap) && filter->after_id > 0)
        sqlite3_str_appendall(s->sql, " AND t.id > :after");
    sqlite3_str_appendf(s->sql, " %s", s->selection->condition ? s->selection->condition : "");
}

static void put_order(selecting *s)
{
    const weir_filter *filter = s->filter;
    const char *direction = filter->descending ? " DESC" : "";
    if (s->selection->kind == WEIR_ROWS_RUNS)
        sqlite3_str_appendf(s->sql, " ORDER BY t.run_id%s", direction);
    else if (s->selection->kind == WEIR_ROWS_NODES)
        sqlite3_str_appendf(s->sql, " GROUP BY t.node_id ORDER BY t.node_id%s", direction);
    else if (s->selection->kind == WEIR_ROWS_STAGES)
        sqlite3_str_appendf(s->sql, " ORDER BY t.run_id%s, t.rowid%s", direction, direction);
    else if (filter->longest_first && s->selection->length)
        sqlite3_str_appendf(s->sql, " ORDER BY %s DESC, t.id", s->selection->length);
    else if (filter->after_id > 0 || (filter->run_id != WEIR_ALL_RUNS && !by_time(s)))
        sqlite3_str_appendf(s->sql, " ORDER BY t.id%s", direction);
    else
        sqlite3_str_appendf(s->sql, " ORDER BY t.timestamp%s, t.id%s", direction, direction);
    if (filter->limit > 0)
        sqlite3_str_appendall(s->sql, " LIMIT :limit");
}

static void put_statement(selecting *s)
{
    const weir_sql_selection *selection = s->selection;
    sqlite3_str_appendf(s->sql, "%sSELECT %s FROM %s t", selection->begin ? selection->begin : "", selection->columns,
                        selection->table);
    put_conditions(s);
    if (selection->end)
        sqlite3_str_appendall(s->sql, selection->end);
    else
        put_order(s);
}

/* -- values */

static int compare_spans(const void *a, const void *b)
{
    const span *one = a, *other = b;
    return one->run_id != other->run_id ? (one->run_id > other->run_id) - (one->run_id < other->run_id)
                                        : (one->start > other->start) - (one->start < other->start);
}

static void free_spans(void *pointer)
{
    spans *of = pointer;
    if (of)
        free(of->all);
    free(of);
}

/* weir_within(spans, run, time) or weir_within(spans, run, end, length): whether it lies in, or overlaps, one of them. */
static void within_function(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    const spans *in = sqlite3_value_pointer(values[0], "weir_spans");
    int64_t run_id = sqlite3_value_int64(values[1]);
    double end = sqlite3_value_double(values[2]), start = end;
    size_t low = 0, high = in ? in->count : 0;
    if (num_values > 3)
        start -= sqlite3_value_double(values[3]);
    while (low < high) { /* to the first one that begins later */
        const span *one = &in->all[(low + high) / 2];
        bool is_later = one->run_id > run_id ||
                        (one->run_id == run_id && (num_values > 3 ? one->start >= end : one->start > end));
        *(is_later ? &high : &low) = (low + high) / 2 + !is_later;
    }
    sqlite3_result_int(context, low > 0 && in->all[low - 1].run_id == run_id && in->all[low - 1].end > start);
}

int weir__select_register(sqlite3 *db)
{
    return sqlite3_create_function_v2(db, "weir_within", -1, SQLITE_UTF8, NULL, within_function, NULL, NULL, NULL);
}

/* The statement owns them from now on, even on failure. */
static int bind_spans(sqlite3_stmt *statement, const char *name, spans **of)
{
    spans *own = *of;
    *of = NULL;
    if (!own)
        return SQLITE_OK;
    if (own->count)
        qsort(own->all, own->count, sizeof *own->all, compare_spans);
    for (size_t i = 1; i < own->count; i++)
        if (own->all[i].run_id == own->all[i - 1].run_id && own->all[i].end < own->all[i - 1].end)
            own->all[i].end = own->all[i - 1].end;
    return sqlite3_bind_pointer(statement, sqlite3_bind_parameter_index(statement, name), own, "weir_spans",
                                free_spans);
}

/* Values that the statement does not use are ignored. */
static int bind_values(sqlite3_stmt *statement, const weir_sql_selection *selection, const weir_filter *filter)
{
    const double touching = selection->kind == WEIR_ROWS_POINTS ? 0 : TOUCHING_S;
    const struct {
        const char *name;
        int64_t number;
    } numbers[] = {
        { ":run", filter->run_id },          { ":rank", filter->rank },      { ":first_step", filter->first_step },
        { ":last_step", filter->last_step }, { ":after", filter->after_id }, { ":limit", filter->limit }
    };
    const struct {
        const char *name, *text;
    } texts[] = { { ":node", filter->node_id }, { ":name", filter->name }, { ":phase", filter->phase } };
    const struct {
        const char *name;
        double time;
    } times[] = { { ":start", (double)filter->start_unix_ns / 1e9 + touching },
                  { ":end", (double)filter->end_unix_ns / 1e9 - touching } };
    int at, code = SQLITE_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && code == SQLITE_OK; i++)
        if ((at = sqlite3_bind_parameter_index(statement, numbers[i].name)))
            code = sqlite3_bind_int64(statement, at, numbers[i].number);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && code == SQLITE_OK; i++)
        if ((at = sqlite3_bind_parameter_index(statement, texts[i].name)))
            code = sqlite3_bind_text(statement, at, texts[i].text, -1, SQLITE_TRANSIENT);
    for (size_t i = 0; i < sizeof times / sizeof times[0] && code == SQLITE_OK; i++)
        if ((at = sqlite3_bind_parameter_index(statement, times[i].name)))
            code = sqlite3_bind_double(statement, at, times[i].time);
    return code;
}

/* -- spans */

static double seconds(int64_t unix_ns)
{
    return (double)unix_ns / 1e9;
}

static int add_span(selecting *s, spans *to, const span *one)
{
    span *grown = weir__array_grow(to->all, to->count, sizeof *grown);
    if (!grown)
        return weir__reader_out_of_memory(s->error);
    to->all = grown;
    to->all[to->count++] = *one;
    return WEIR_OK;
}

/* The filter's runs, without any other condition. */
static weir_filter runs_of(const weir_filter *filter)
{
    return (weir_filter){
        .run_id = filter->run_id, .node_id = filter->node_id, .by_rank = filter->by_rank, .rank = filter->rank
    };
}

/* Each span of laps that matches the phase and step. */
static int find_phases(selecting *s)
{
    weir_filter filter = runs_of(s->filter);
    filter.phase = s->filter->phase;
    filter.by_step = s->filter->by_step;
    filter.first_step = s->filter->first_step;
    filter.last_step = s->filter->last_step;
    sqlite3_stmt *found = NULL;
    weir_phase_record one;
    if (!(s->phases = calloc(1, sizeof *s->phases)))
        return weir__reader_out_of_memory(s->error);
    int status = weir__phases_select(s->reader, &filter, false, &found, s->error);
    while (status == WEIR_OK && (status = weir__phases_next(s->reader, found, &one, s->error)) == WEIR_OK)
        status = add_span(s, s->phases, &(span){ one.run_id, seconds(one.start_unix_ns), seconds(one.end_unix_ns) });
    sqlite3_finalize(found);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static const double open_end = 1e300;

/* The last window of the run; NULL = none. */
static span *last_window(selecting *s, int64_t run_id)
{
    span *last = s->windows->count ? &s->windows->all[s->windows->count - 1] : NULL;
    return last && last->run_id == run_id ? last : NULL;
}

/* Before the first lap with a step, or after the last one. */
static int add_to_part(selecting *s, const weir_window *want, const weir_phase_record *one)
{
    bool has_steps = one->position.last_step >= one->position.first_step;
    span *window = last_window(s, one->run_id);
    if (want->part == WEIR_PART_AFTER_STEPS && has_steps && window)
        window->start = seconds(one->end_unix_ns);
    else if (want->part == WEIR_PART_AFTER_STEPS && has_steps)
        return add_span(s, s->windows, &(span){ one->run_id, seconds(one->end_unix_ns), open_end });
    else if (want->part == WEIR_PART_BEFORE_STEPS && !window)
        return add_span(s, s->windows,
                        &(span){ one->run_id, -open_end, has_steps ? seconds(one->start_unix_ns) : open_end });
    else if (want->part == WEIR_PART_BEFORE_STEPS && has_steps && window->end == open_end)
        window->end = seconds(one->start_unix_ns);
    return WEIR_OK;
}

static bool is_phase(const char *wanted, const weir_phase_record *one)
{
    return !wanted || strcmp(one->position.phase, wanted) == 0;
}

/*
 * Adds a span to the window of its run, which is open until until_phase starts. `step` is the last step that was marked
 * when the span ended.
 */
static int add_to_windows(selecting *s, const weir_window *want, const weir_phase_record *one, int64_t step)
{
    int64_t first_step = one->position.last_step >= one->position.first_step ? one->position.first_step : step;
    const weir_filter *filter = s->filter;
    span *window = last_window(s, one->run_id);
    bool ends = filter->until_phase
                    ? is_phase(filter->until_phase, one) && (!want->by_step || step >= want->until_step)
                    : want->by_step && first_step > want->until_step;
    bool is_first = !window;
    if (is_first && !filter->from_phase && !want->by_step) {
        int status = add_span(s, s->windows, &(span){ one->run_id, -open_end, open_end });
        if (status != WEIR_OK)
            return status;
        window = last_window(s, one->run_id);
    }
    if (window && window->end == open_end && ends && (filter->until_phase || want->by_step))
        window->end = seconds(one->start_unix_ns);
    bool is_open = window && window->end == open_end;
    bool begins = is_phase(filter->from_phase, one) && (!want->by_step || step >= want->from_step) &&
                  (filter->from_phase || want->by_step);
    if (is_open || !begins || !(is_first || want->every) || (ends && !filter->until_phase))
        return WEIR_OK;
    return add_span(s, s->windows, &(span){ one->run_id, seconds(one->start_unix_ns), open_end });
}

static int find_windows(selecting *s)
{
    const weir_window want = s->reader->window;
    weir_filter filter = runs_of(s->filter);
    sqlite3_stmt *found = NULL;
    weir_phase_record one;
    int64_t run_id = 0, step = INT64_MIN;
    if (!(s->windows = calloc(1, sizeof *s->windows)))
        return weir__reader_out_of_memory(s->error);
    s->reader->window = (weir_window){ .every = false }; /* this pass sees everything */
    int status = weir__phases_select(s->reader, &filter, want.by_step || want.part, &found, s->error);
    while (status == WEIR_OK && (status = weir__phases_next(s->reader, found, &one, s->error)) == WEIR_OK) {
        if (one.run_id != run_id)
            step = INT64_MIN;
        if (one.position.last_step >= one.position.first_step)
            step = one.position.last_step;
        run_id = one.run_id;
        status = want.part ? add_to_part(s, &want, &one) : add_to_windows(s, &want, &one, step);
    }
    sqlite3_finalize(found);
    s->reader->window = want;
    /* The time of a row at the start or end of a lap may differ from it in the last digit. */
    for (size_t i = 0; i < s->windows->count && s->selection->kind == WEIR_ROWS_LAPS; i++) {
        s->windows->all[i].start += TOUCHING_S;
        s->windows->all[i].end -= TOUCHING_S;
    }
    return status == WEIR_EOF ? WEIR_OK : status;
}

int weir_reader_set_window_sized(weir_reader *reader, const weir_window *window, size_t window_size,
                                 weir_error *error)
{
    weir_window copy;
    int status = weir__struct_copy(&copy, sizeof copy, window, window_size, "weir_window", error);
    if (status == WEIR_OK && !reader)
        status = weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    if (status == WEIR_OK && (copy.part > WEIR_PART_AFTER_STEPS || (copy.part && (copy.every || copy.by_step)) ||
                              (copy.by_step && copy.from_step > copy.until_step)))
        status = weir_error_set(error, WEIR_EINVAL, 0, "a window needs a part of a run, or steps in their order");
    if (status == WEIR_OK)
        reader->window = copy;
    return status;
}

/* -- all of it */

static int prepare_select(selecting *s, sqlite3_stmt **statement)
{
    s->sql = sqlite3_str_new(s->reader->db);
    put_statement(s);
    int code = sqlite3_str_errcode(s->sql);
    char *text = sqlite3_str_finish(s->sql);
    if (code == SQLITE_OK)
        code = text ? sqlite3_prepare_v2(s->reader->db, text, -1, statement, NULL) : SQLITE_NOMEM;
    if (code == SQLITE_OK)
        code = bind_values(*statement, s->selection, s->filter);
    weir__reader_note_sql(s->reader, s->phases || s->windows ? NULL : *statement); /* pointers have no text */
    if (code == SQLITE_OK)
        code = bind_spans(*statement, ":phases", &s->phases);
    if (code == SQLITE_OK)
        code = bind_spans(*statement, ":windows", &s->windows);
    sqlite3_free(text);
    if (code == SQLITE_OK)
        return WEIR_OK;
    sqlite3_finalize(*statement);
    *statement = NULL;
    return weir__reader_error(s->reader, code, s->error);
}

int weir__select(weir_reader *reader, const weir_sql_selection *selection, const weir_filter *filter,
                 sqlite3_stmt **statement, weir_error *error)
{
    selecting s = { .reader = reader, .selection = selection, .filter = filter, .error = error };
    int status = WEIR_OK;
    *statement = NULL;
    if (selection->kind == WEIR_ROWS_POINTS && has_position_conditions(filter))
        status = find_phases(&s);
    if (status == WEIR_OK && selection->kind <= WEIR_ROWS_POINTS && has_windows(&s))
        status = find_windows(&s);
    if (status == WEIR_OK)
        status = prepare_select(&s, statement);
    free_spans(s.phases);
    free_spans(s.windows);
    return status;
}
