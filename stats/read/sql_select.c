/*
 * Which index is used. One run in the order of its ids uses the index by run. A range of time, or several runs in the
 * order of time, uses the index by time. Everything unordered reads the table. A unary + keeps SQLite from choosing
 * another index.
 */
#include "stats/read/sql_select.h"

#include <string.h>

#include <weir/pipeline.h>
#include <weir/struct_copy.h>

#include "stats/read/phase_spans.h"

/*
 * Timestamps are stored as seconds in a double, exact to a quarter of a microsecond: a shorter overlap does not
 * count.
 */
#define AFTER_START ":start + 1e-6"
#define BEFORE_END  ":end - 1e-6"

/* The state of building one statement. */
typedef struct selecting {
    weir_recording *recording;
    const weir_sql_selection *selection;
    const weir_filter *filter;
    sqlite3_str *sql;
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
            sqlite3_str_appendall(s->sql, " AND (t.ended IS NULL OR t.ended > " AFTER_START ")");
        if (filter->end_unix_ns != 0)
            sqlite3_str_appendall(s->sql, " AND t.started < " BEFORE_END);
        return;
    }
    if (filter->start_unix_ns != 0)
        sqlite3_str_appendall(s->sql, is_point ? " AND t.timestamp >= :start" : " AND t.timestamp > " AFTER_START);
    if (filter->end_unix_ns != 0)
        sqlite3_str_appendall(s->sql,
                              is_point ? " AND t.timestamp < :end" : " AND t.timestamp - t.elapsed < " BEFORE_END);
}

static bool has_intervals(const selecting *s)
{
    const weir_selection *selected = &s->recording->selected;
    return s->selection->kind <= WEIR_ROWS_POINTS &&
           (s->filter->from_phase || s->filter->until_phase || selected->from_mode || selected->until_mode ||
            selected->by_step || selected->section);
}

/*
 * The laps in the intervals of their runs, a table in_interval(id). An interval is open from the first span that opens it up
 * to the next span that ends it. Spans have the mode and the phase only if the interval asks for them. `step` is the last
 * step that was marked when the span ended.
 */
#define WITH_STEPS \
    ", stepped AS (SELECT *, last_step >= first_step AND last_step IS NOT lag(last_step) OVER (PARTITION BY run_id " \
    "ORDER" \
    " BY number) AS begins_step FROM span)," \
    " counted AS (SELECT *, sum(begins_step) OVER (PARTITION BY run_id ORDER BY number) AS marks FROM stepped)," \
    " marked AS (SELECT *, CASE WHEN marks THEN first_value(last_step) OVER (PARTITION BY run_id, marks ORDER BY " \
    "number)" \
    " END AS step FROM counted), "
#define HAS_END "(:until_phase IS NOT NULL OR :until_mode IS NOT NULL)"
#define ENDS \
    "coalesce(CASE WHEN " HAS_END " THEN (:until_phase IS NULL OR weir_glob(:until_phase, phase)) AND" \
    " (:until_mode IS NULL OR weir_glob(:until_mode, mode)) AND (NOT :by_step OR step >= :until_step)" \
    " ELSE :by_step AND iif(last_step >= first_step, first_step, step) > :until_step END, 0)"
#define OPENS \
    "coalesce((:from_phase IS NULL OR weir_glob(:from_phase, phase)) AND (:from_mode IS NULL OR" \
    " weir_glob(:from_mode, mode)) AND (NOT :by_step OR step >= :from_step), 0)" \
    " AND (" HAS_END " OR NOT " ENDS ")"
#define COUNT_ENDS "sum(" ENDS ") OVER (PARTITION BY run_id ORDER BY number) AS num_ends"
#define FROM_MARKS \
    WITH_STEPS \
    "part AS (SELECT *, " COUNT_ENDS ", " OPENS " AS opens FROM marked)," \
    " open AS (SELECT *, max(opens) OVER (PARTITION BY run_id, num_ends ORDER BY number) AS is_open," \
    " min(iif(opens, num_ends, NULL)) OVER (PARTITION BY run_id) AS first_part FROM part)," \
    " chosen AS (SELECT run_id, number FROM open WHERE is_open AND (:every OR num_ends = first_part))"

static const char from_start[] = WEIR_SPANS(WEIR_WITH_A_PLACE_OR_GAP) WITH_STEPS
    "part AS (SELECT *, " COUNT_ENDS " FROM marked), chosen AS (SELECT run_id, number FROM part WHERE num_ends = 0)";
static const char from_place[] = WEIR_SPANS(WEIR_WITH_A_PLACE_OR_GAP) FROM_MARKS;
static const char from_step[] = WEIR_SPANS(WEIR_WITH_EACH_LAP) FROM_MARKS;
static const char before_steps[] =
    WEIR_SPANS(WEIR_WITH_EACH_LAP) WITH_STEPS "chosen AS (SELECT run_id, number FROM marked WHERE marks = 0)";
static const char after_steps[] = WEIR_SPANS(
    WEIR_WITH_EACH_LAP) ", part AS (SELECT *, max(iif(last_step >= first_step, number, NULL)) OVER (PARTITION BY "
                        "run_id) AS last_with_step"
                        " FROM span), chosen AS (SELECT run_id, number FROM part WHERE number > last_with_step)";

static void put_intervals(selecting *s)
{
    const weir_selection *selected = &s->recording->selected;
    const bool by_phase = s->filter->from_phase || s->filter->until_phase;
    const bool by_mode = selected->from_mode || selected->until_mode;
    sqlite3_str_appendf(s->sql,
                        "in_interval AS MATERIALIZED (WITH lap AS (SELECT " WEIR_LAP_COLUMNS(
                            "%s", "%s") " FROM queue_stats t WHERE " WEIR_LAPS_OF_ONE_QUEUE,
                        by_mode ? "t.mode" : "''", by_phase ? WEIR_PHASE_OF_LAP : "''");
    put_run_condition(s);
    sqlite3_str_appendf(s->sql,
                        "), %s SELECT n.id FROM numbered n JOIN chosen c ON c.run_id = n.run_id AND"
                        " c.number = n.number)",
                        selected->section == WEIR_SECTION_BEFORE_STEPS  ? before_steps
                        : selected->section == WEIR_SECTION_AFTER_STEPS ? after_steps
                        : selected->by_step                             ? from_step
                        : s->filter->from_phase || selected->from_mode  ? from_place
                                                                        : from_start);
}

/* The lap of the same run in which a row lies, or ends; through the index by name and time. */
#define LAP_AT(when)     "FROM queue_stats l WHERE +l.run_id = t.run_id AND l.name = " WEIR_QUEUE_OF("t") when " LIMIT 1)"
#define LAP_OF_POINT     LAP_AT(" AND l.timestamp > t.timestamp ORDER BY l.timestamp")
#define LAP_OF_LAP       LAP_AT(" AND l.timestamp >= t.timestamp - 1e-6 ORDER BY l.timestamp")
#define LAST_LAP         LAP_AT(" ORDER BY l.timestamp DESC")
#define IN_INTERVAL(lap) " AND coalesce((SELECT l.id " lap ", (SELECT l.id " LAST_LAP ") IN in_interval"

/* Conditions on a lap of this name. */
#define STEPS(lap) " AND " lap ".last_step >= :first_step AND " lap ".first_step <= :last_step"
#define PHASE(lap) " AND weir_glob(:phase, " WEIR_PHASE_OF(lap) ")"
#define MODE(lap)  " AND weir_glob(:mode, " lap ".mode)"

static void put_position(selecting *s)
{
    const weir_filter *filter = s->filter;
    bool is_point = s->selection->kind == WEIR_ROWS_POINTS;
    if (filter->no_replay && !is_point)
        sqlite3_str_appendall(s->sql, " AND t.phase <> '" WEIR_PHASE_REPLAY "'");
    if (!filter->phase && !filter->mode && !filter->by_step)
        return;
    /* A point in time has the phase and the steps of the lap in which it lies. */
    if (is_point)
        sqlite3_str_appendall(s->sql,
                              " AND (SELECT l.timestamp - l.elapsed - " WEIR_GAP_OF("l.elapsed") " <= "
                                                                                                 "t.timestamp");
    if (filter->by_step)
        sqlite3_str_appendall(s->sql, is_point ? STEPS("l") : STEPS("t"));
    if (filter->phase)
        sqlite3_str_appendall(s->sql, is_point ? PHASE("l") : PHASE("t"));
    if (filter->mode)
        sqlite3_str_appendall(s->sql, is_point ? MODE("l") : MODE("t"));
    if (is_point)
        sqlite3_str_appendall(s->sql, " " LAP_OF_POINT);
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
    if (is_lap || is_point)
        put_position(s);
    if (has_intervals(s))
        sqlite3_str_appendall(s->sql, is_point ? IN_INTERVAL(LAP_OF_POINT) : IN_INTERVAL(LAP_OF_LAP));
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

/* The rows that match. */
static void put_rows(selecting *s)
{
    sqlite3_str_appendf(s->sql, " SELECT %s FROM %s t", s->selection->columns, s->selection->table);
    put_conditions(s);
}

/* The longest ones: which they are is found without the other columns, since these take most of the time. */
static void put_longest(selecting *s)
{
    sqlite3_str_appendf(s->sql, " SELECT %s FROM %s t WHERE t.id IN (SELECT t.id FROM %s t", s->selection->columns,
                        s->selection->table, s->selection->table);
    put_conditions(s);
    put_order(s);
    sqlite3_str_appendall(s->sql, ")");
}

static void put_statement(selecting *s)
{
    const weir_sql_selection *selection = s->selection;
    if (has_intervals(s) || selection->begin)
        sqlite3_str_appendall(s->sql, "WITH ");
    if (has_intervals(s))
        put_intervals(s);
    sqlite3_str_appendf(s->sql, "%s%s", has_intervals(s) && selection->begin ? ", " : "",
                        selection->begin ? selection->begin : "");
    if (s->filter->longest_first && s->filter->limit > 0 && selection->length && !selection->end)
        put_longest(s);
    else
        put_rows(s);
    if (selection->end)
        sqlite3_str_appendall(s->sql, selection->end);
    else
        put_order(s);
}

/* -- values */

/* Values that the statement does not use are ignored. */
static int bind_values(sqlite3_stmt *statement, const selecting *s)
{
    const weir_filter *filter = s->filter;
    const weir_selection *selected = &s->recording->selected;
    const struct {
        const char *name;
        int64_t number;
    } numbers[] = { { ":run", filter->run_id },
                    { ":rank", filter->rank },
                    { ":first_step", filter->first_step },
                    { ":last_step", filter->last_step },
                    { ":after", filter->after_id },
                    { ":limit", filter->limit },
                    { ":every", selected->every },
                    { ":by_step", selected->by_step },
                    { ":from_step", selected->from_step },
                    { ":until_step", selected->until_step } };
    const struct {
        const char *name, *text;
    } texts[] = { { ":node", filter->node_id },          { ":name", filter->name },
                  { ":phase", filter->phase },           { ":mode", filter->mode },
                  { ":from_phase", filter->from_phase }, { ":until_phase", filter->until_phase },
                  { ":from_mode", selected->from_mode }, { ":until_mode", selected->until_mode } };
    const struct {
        const char *name;
        double time;
    } times[] = { { ":start", (double)filter->start_unix_ns / 1e9 }, { ":end", (double)filter->end_unix_ns / 1e9 } };
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

int weir_recording_set_selection_sized(weir_recording *recording, const weir_selection *selection,
                                       size_t selection_size, weir_error *error)
{
    weir_selection copy;
    int status = weir_struct_copy(&copy, sizeof copy, selection, selection_size, "weir_selection", error);
    if (status == WEIR_OK && !recording)
        status = weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    if (status == WEIR_OK && (copy.section > WEIR_SECTION_AFTER_STEPS ||
                              (copy.section && (copy.every || copy.by_step || copy.from_mode || copy.until_mode)) ||
                              (copy.by_step && copy.from_step > copy.until_step)))
        status =
            weir_error_set(error, WEIR_EINVAL, 0, "a selection needs a section of a run, or steps in their order");
    if (status == WEIR_OK)
        recording->selected = copy;
    return status;
}

/* -- all of it */

/* Takes an idle statement. NULL = none has this text. */
static sqlite3_stmt *take_idle(weir_recording *recording, const char *text)
{
    for (size_t i = 0; i < WEIR_NUM_SUBJECTS; i++)
        if (recording->idle[i] && strcmp(sqlite3_sql(recording->idle[i]), text) == 0) {
            sqlite3_stmt *statement = recording->idle[i];
            recording->idle[i] = NULL;
            return statement;
        }
    return NULL;
}

/* Whether the text has another statement: anything but blanks and comments. */
static bool has_statement(sqlite3 *db, const char *text)
{
    sqlite3_stmt *another = NULL;
    bool is_blank = sqlite3_prepare_v2(db, text, -1, &another, NULL) == SQLITE_OK && !another;
    sqlite3_finalize(another);
    return !is_blank;
}

/* Prepares what has been built. */
static int prepare_statement(selecting *s, sqlite3_stmt **statement, weir_error *error)
{
    int code = sqlite3_str_errcode(s->sql);
    char *text = sqlite3_str_finish(s->sql);
    const char *rest = "";
    *statement = text ? take_idle(s->recording, text) : NULL;
    if (code == SQLITE_OK && !*statement)
        code = text ? sqlite3_prepare_v2(s->recording->db, text, -1, statement, &rest) : SQLITE_NOMEM;
    bool has_more = code == SQLITE_OK && *rest && has_statement(s->recording->db, rest);
    sqlite3_free(text);
    if (has_more) {
        sqlite3_finalize(*statement);
        *statement = NULL;
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "the SQL has more than one statement, and only one can be asked");
    }
    if (code == SQLITE_OK)
        code = bind_values(*statement, s);
    weir__recording_note_sql(s->recording, *statement);
    if (code == SQLITE_OK)
        return WEIR_OK;
    sqlite3_finalize(*statement);
    *statement = NULL;
    return weir__recording_error(s->recording, code, error);
}

int weir__select(weir_recording *recording, const weir_sql_selection *selection, const weir_filter *filter,
                 sqlite3_stmt **statement, weir_error *error)
{
    selecting s = { recording, selection, filter, sqlite3_str_new(recording->db) };
    put_statement(&s);
    return prepare_statement(&s, statement, error);
}

int weir__select_from(weir_recording *recording, const weir_sql_selection *tables, size_t num_tables,
                      const weir_filter *filter, const char *sql, sqlite3_stmt **statement, weir_error *error)
{
    static const weir_sql_selection laps = { .kind = WEIR_ROWS_LAPS };
    selecting s = { recording, &laps, filter, sqlite3_str_new(recording->db) };
    const char *rest = sql + strspn(sql, " \n\t");
    const bool is_alone = num_tables == 0 && !has_intervals(&s);
    if (!is_alone || *rest == ',')
        sqlite3_str_appendall(s.sql, "WITH RECURSIVE ");
    if (has_intervals(&s)) {
        put_intervals(&s);
        sqlite3_str_appendall(s.sql, num_tables ? ", " : " ");
    }
    for (size_t i = 0; i < num_tables; i++) {
        s.selection = &tables[i];
        sqlite3_str_appendf(s.sql, "%s AS NOT MATERIALIZED (", tables[i].name);
        put_rows(&s);
        sqlite3_str_appendall(s.sql, i + 1 < num_tables ? "), " : ") ");
    }
    sqlite3_str_appendall(s.sql, is_alone && *rest == ',' ? rest + 1 : sql);
    return prepare_statement(&s, statement, error);
}
