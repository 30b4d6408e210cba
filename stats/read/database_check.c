/*
 * Checks that a database is consistent. Each check is a SELECT of the faults: of the file, then of each run. One of them
 * finds a lap that was recorded twice, lost, or written by another program.
 */
#include <weir/query.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "stats/read/open_recording.h"
#include "stats/read/rolled_laps.h"
#include "stats/schema/database_path.h"
#include "stats/schema/tables.h"

enum { MAX_REPORTED = 5 /* faults of one check that are reported one by one */ };

typedef struct checking {
    weir_recording *recording;
    weir_finding_function *report;
    void *self;
    weir_error *error;
    int64_t num_runs;
} checking;

/* ?1 is the run. Columns: text */
typedef struct fault_query {
    const char *check, *sql;
    const char *holds; /* what is said if there are no faults; NULL = the next row belongs to the same check */
} fault_query;

static const fault_query whole_file[] = {
    { "integrity",
      "SELECT integrity_check FROM pragma_integrity_check WHERE NOT ?1 AND integrity_check <> 'ok' LIMIT 20", NULL },
    { "integrity", "SELECT quick_check FROM pragma_quick_check WHERE ?1 AND quick_check <> 'ok' LIMIT 20",
      "the file is intact" },
};
static const fault_query references = {
    "references",
    "SELECT printf('row %d of %s belongs to a run that does not exist', rowid, \"table\") FROM "
    "pragma_foreign_key_check",
    "every row belongs to a run",
};

/* ---- the checks of a run --------------------------------------------------------------------------------------- */

/* One that is not known, like its sum, was added since the database was made. main: a view of what is complete hides what is
   missing (tables.h). */
#define HISTOGRAM(check, table, column, counted, sum) \
    { \
        check, \
            "SELECT printf('row %d of " table "%s', id, fault) FROM (SELECT id, weir_histogram_fault('" column \
            "', " column ", " counted ", " sum ") AS fault FROM main." table " WHERE run_id = ?1 AND (" column \
            " IS NOT NULL OR " sum " IS NOT NULL)) WHERE fault IS NOT NULL", \
            NULL \
    }

/*
 * A lap starts where the one before it ended, and ends later. The tolerance is for a wall clock that NTP adjusts by a
 * little, and for recorders other than the engine. A lap that is missing or recorded twice differs by its whole length.
 */
#define LAPS(table) \
    "SELECT printf('row %d of " table ": %.3f s are %s between it and the lap of %s before it', id, abs(apart)," \
    " CASE WHEN apart > 0 THEN 'missing' ELSE 'recorded twice' END, name)" \
    " FROM (SELECT id, name, elapsed, timestamp, lag(timestamp) OVER laps AS before," \
    " timestamp - elapsed - lag(timestamp) OVER laps AS apart FROM " table \
    " WHERE run_id = ?1 WINDOW laps AS (PARTITION BY name ORDER BY id))" \
    " WHERE NOT EXISTS (SELECT * FROM event_stats WHERE run_id = ?1 AND event_name = 'clock_set')" \
    " AND (abs(apart) > 0.25 + 0.01 * elapsed OR NOT (timestamp > before OR elapsed = 0))"

/* Slot times are added up in nanoseconds and stored as doubles; concurrency may have changed while the run went on. */
#define SLOTS(table) \
    "SELECT printf('row %d of " table \
    ": busy, waiting and ended times add up to %.3f s, and %d slots of %s have %.3f s'," \
    " id, recorded, concurrency, name, concurrency * elapsed)" \
    " FROM (SELECT id, run_id, name, elapsed, busy_time + wait_in_time + wait_thread_time + wait_turn_time +" \
    " wait_out_time + coalesce(ended_time, 0) AS recorded FROM " table \
    " WHERE run_id = ?1) JOIN stage USING (run_id, name)" \
    " WHERE concurrency <> 0 AND abs(recorded - concurrency * elapsed) > (0.01 * elapsed + 0.002) * concurrency" \
    " AND NOT EXISTS (SELECT * FROM event_stats WHERE run_id = ?1 AND event_name = 'concurrency')"

static const fault_query of_run[] = {
    HISTOGRAM("histograms", "task_stats", "histogram", "num_tasks - num_failures", "success_time"),
    HISTOGRAM("histograms", "flow_stats", "histogram", "num_tasks - num_failures", "success_time"),
    HISTOGRAM("histograms", "queue_stats", "put_histogram", "num_put", "put_time"),
    HISTOGRAM("histograms", "queue_stats", "get_histogram", "num_items", "get_time"),
    HISTOGRAM("histograms", "queue_stats", "latency_histogram", "iif(latency_time IS NULL, 0, num_items)",
              "latency_time"),
    HISTOGRAM("histograms", "span_stats", "span_histogram", "num_spans", "total_time"),
    { "histograms", "SELECT '' WHERE 0", "hold as many times as tasks and items were counted" },
    { "laps",
      LAPS("task_stats") " UNION ALL " LAPS("flow_stats") " UNION ALL " LAPS("queue_stats") " UNION ALL " LAPS(
          "pool_stats") " UNION ALL " LAPS("process_stats") " UNION ALL " LAPS("machine_stats"),
      "each begins where the one before it ended" },
    { "slots", SLOTS("task_stats") " UNION ALL " SLOTS("flow_stats"),
      "busy, waiting and ended times add up to slots × time" },
    { "failures",
      "SELECT printf('%s: %d tasks failed, and %d failures are recorded', name, failed, recorded)"
      " FROM (SELECT name, sum(1.0 * num_failures) AS failed, (SELECT count(*) FROM task_failures f WHERE f.run_id = "
      "?1"
      " AND f.name = l.name) AS recorded FROM (SELECT name, num_failures FROM task_stats WHERE run_id = ?1 UNION ALL"
      " SELECT name, num_failures FROM flow_stats WHERE run_id = ?1) l GROUP BY name)"
      " WHERE failed <> recorded AND EXISTS"
      " (SELECT * FROM run WHERE run_id = ?1 AND entries_lost = 0 AND ended IS NOT NULL)",
      "each failed task is recorded" },
    { "queues",
      "SELECT printf('row %d of queue_stats: an occupancy of %g', id, occupied_time / elapsed) FROM queue_stats"
      " WHERE run_id = ?1 AND elapsed > 0 AND NOT occupied_time / elapsed BETWEEN 0 AND 1.01",
      NULL },
    { "queues",
      "SELECT iif(taken > put, printf('%s: %d items were taken out, and %d put in', name, taken, put),"
      " printf('%s: of %d items put in %d were taken out, though the run ended well', name, put, taken))"
      " FROM (SELECT name, sum(1.0 * num_put) AS put, sum(1.0 * num_items) AS taken FROM queue_stats WHERE run_id = "
      "?1"
      " GROUP BY name), run WHERE run_id = ?1 AND entries_lost = 0"
      " AND (taken > put OR (taken < put AND ended IS NOT NULL AND status = 0))",
      "what was put in was taken out" },
    { "stacks",
      "SELECT printf('row %d of stack_stats: stack %d is not there', id, t.stack) FROM stack_stats t LEFT JOIN stack "
      "s"
      " USING (run_id, stack) WHERE run_id = ?1 AND t.stack <> 0 AND s.function IS NULL",
      NULL },
    { "stacks",
      "SELECT printf('stack %d: its caller %d is not there', s.stack, s.caller) FROM stack s LEFT JOIN stack c ON"
      " c.run_id = s.run_id AND c.stack = s.caller AND c.stack < s.stack WHERE s.run_id = ?1 AND s.caller <> 0"
      " AND c.stack IS NULL",
      "the functions of all samples are there" },
};

/* ---- rolls ------------------------------------------------------------------------------------------------------ */

static const fault_query histograms_of_rolls[] = {
    HISTOGRAM("rolls", "task_rolls", "histogram", "num_tasks - num_failures", "success_time"),
    HISTOGRAM("rolls", "flow_rolls", "histogram", "num_tasks - num_failures", "success_time"),
    HISTOGRAM("rolls", "queue_rolls", "put_histogram", "num_put", "put_time"),
    HISTOGRAM("rolls", "queue_rolls", "get_histogram", "num_items", "get_time"),
    HISTOGRAM("rolls", "queue_rolls", "latency_histogram", "iif(latency_time IS NULL, 0, num_items)", "latency_time"),
    HISTOGRAM("rolls", "span_rolls", "span_histogram", "num_spans", "total_time"),
};
enum { NUM_HISTOGRAMS_OF_ROLLS = sizeof histograms_of_rolls / sizeof histograms_of_rolls[0] };

/* What is compared of a metric: a part of a CASE that names it if it differs, and its sum. */
static void put_metric_of_rolls(sqlite3_str *cases, sqlite3_str *sums, const char *metric)
{
    sqlite3_str_appendf(cases,
                        " WHEN coalesce(abs(x.%s - s.%s) > 1e-6 + 1e-9 * abs(s.%s), x.%s IS NOT s.%s) THEN '%s'",
                        metric, metric, metric, metric, metric, metric);
    sqlite3_str_appendf(sums, ", iif(count(%s) = count(*), total(%s), NULL) AS %s", metric, metric, metric);
}

/* Free with sqlite3_free(); NULL = out of memory. */
static char *query_of_rolls(weir_subject subject)
{
    const weir_lap_table *table = &weir__lap_tables[subject];
    const weir_metric_table *metrics = weir_subject_metrics(subject);
    const bool has_kinds = weir_subject_has_kinds(subject); /* the kind of a name may change within a run */
    sqlite3_str *cases = sqlite3_str_new(NULL), *sums = sqlite3_str_new(NULL);
    put_metric_of_rolls(cases, sums, "num_joined");
    for (size_t i = 0; i < metrics->num_metrics; i++) {
        const weir_metric_kind kind = metrics->metrics[i].kind;
        if (kind == WEIR_METRIC_COUNT || kind == WEIR_METRIC_SUM)
            put_metric_of_rolls(cases, sums, metrics->metrics[i].name);
    }
    char *which = sqlite3_str_finish(cases), *all = sqlite3_str_finish(sums);
    char *sql =
        which && all
            ? sqlite3_mprintf(
                  "SELECT printf('roll %%d in %s: %%s of %%s is not the sum of its laps', roll, fault,"
                  " name) FROM (SELECT x.roll, x.name, CASE%s END AS fault FROM main.%s x LEFT JOIN"
                  " (SELECT roll, name%s%s FROM main.%s WHERE run_id = ?1 GROUP BY roll, name%s) s ON s.roll ="
                  " x.roll AND s.name = x.name%s WHERE x.run_id = ?1) WHERE fault IS NOT NULL",
                  table->rolls, which, table->rolls, has_kinds ? ", kind" : "", all, table->name,
                  has_kinds ? ", kind" : "", has_kinds ? " AND s.kind = x.kind" : "")
            : NULL;
    sqlite3_free(which);
    sqlite3_free(all);
    return sql;
}

/* ---- running them ---------------------------------------------------------------------------------------------- */

static void report_finding(const checking *c, weir_finding_level level, const char *check, int64_t run_id,
                           const char *format, ...) WEIR_PRINTF(5, 6);

static void report_finding(const checking *c, weir_finding_level level, const char *check, int64_t run_id,
                           const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    c->report(c->self, &(weir_finding){ level, check, run_id, text });
}

/* Reports the first faults of a kind, and adds their number to *num_faults. */
static int report_faults(checking *c, const fault_query *faults, int64_t parameter, int64_t run_id,
                         int64_t *num_faults)
{
    sqlite3_stmt *row = NULL;
    int code = sqlite3_prepare_v2(c->recording->db, faults->sql, -1, &row, NULL);
    if (code == SQLITE_OK && sqlite3_bind_parameter_count(row))
        code = sqlite3_bind_int64(row, 1, parameter);
    while (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
        if (++*num_faults <= MAX_REPORTED)
            report_finding(c, WEIR_FINDING_FAULT, faults->check, run_id, "%s", weir__column_text(row, 0));
        code = SQLITE_OK;
    }
    if (code == SQLITE_ERROR && !row) { /* a metric that was added since: its column is missing */
        report_finding(c, WEIR_FINDING_NOTE, faults->check, run_id, "not checked: %s",
                       sqlite3_errmsg(c->recording->db));
        return WEIR_OK;
    }
    sqlite3_finalize(row);
    return code == SQLITE_DONE ? WEIR_OK : weir__recording_error(c->recording, code, c->error);
}

static int run_checks(checking *c, const fault_query *all, size_t count, int64_t parameter, int64_t run_id)
{
    int64_t num_faults = 0;
    int status = WEIR_OK;
    for (size_t i = 0; i < count && status == WEIR_OK; i++) {
        status = report_faults(c, &all[i], parameter, run_id, &num_faults);
        if (status != WEIR_OK || !all[i].holds)
            continue;
        if (num_faults > MAX_REPORTED)
            report_finding(c, WEIR_FINDING_FAULT, all[i].check, run_id, "and %" PRId64 " more of this kind",
                           num_faults - MAX_REPORTED);
        else if (num_faults == 0)
            report_finding(c, WEIR_FINDING_OK, all[i].check, run_id, "%s", all[i].holds);
        num_faults = 0;
    }
    return status;
}

/* ---- the schema ------------------------------------------------------------------------------------------------ */

/* Columns and tables that were added since the database was made are not faults. */
static int check_schema(checking *c, int64_t *num_lacking)
{
    weir_table table;
    int code = SQLITE_OK;
    for (size_t index = 0; code == SQLITE_OK && weir__table_at(index, &table); index++) {
        char *there = weir__table_columns(c->recording->db, "main", table.name, &code);
        for (size_t i = 0; i < table.num_columns && code == SQLITE_OK; i++)
            if (!table.columns[i].is_optional && !weir__has_word(there, table.columns[i].name)) {
                ++*num_lacking;
                report_finding(c, WEIR_FINDING_FAULT, "schema", 0, "table %s has no column %s", table.name,
                               table.columns[i].name);
            }
        sqlite3_free(there);
    }
    if (code == SQLITE_OK && *num_lacking == 0)
        report_finding(c, WEIR_FINDING_OK, "schema", 0, "schema %d, all tables and columns", c->recording->schema);
    return code == SQLITE_OK ? WEIR_OK : weir__recording_error(c->recording, code, c->error);
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static int check_rolls(checking *c, int64_t run_id)
{
    fault_query all[NUM_HISTOGRAMS_OF_ROLLS + WEIR_NUM_SUBJECTS], *const sums = all + NUM_HISTOGRAMS_OF_ROLLS;
    bool are_there = false;
    int status = weir__rolls_serve(c->recording, &(weir_filter){ .run_id = run_id }, &are_there, c->error);
    if (!are_there)
        return status;
    memcpy(all, histograms_of_rolls, sizeof histograms_of_rolls);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        sums[subject] = (fault_query){ "rolls", query_of_rolls(subject),
                                       subject + 1 == WEIR_NUM_SUBJECTS ? "have the sums of their laps" : NULL };
        if (!sums[subject].sql)
            status = weir__recording_out_of_memory(c->error);
    }
    if (status == WEIR_OK)
        status = run_checks(c, all, sizeof all / sizeof all[0], run_id, run_id);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        sqlite3_free((void *)(uintptr_t)sums[subject].sql);
    return status;
}

static int check_run(void *self, const weir_record *record, weir_error *error)
{
    checking *c = self;
    const weir_run_record *run = &record->run;
    int64_t run_id = run->run_id;
    bool has_started = run->threads;
    (void)error; /* that of the checking */
    c->num_runs++;
    if (strcmp(run->version, "SPDL") == 0) {
        report_finding(c, WEIR_FINDING_NOTE, "run", run_id, "recorded by SPDL, which stores too little to check");
        return WEIR_OK;
    }
    if (!has_started)
        report_finding(c, WEIR_FINDING_NOTE, "run", run_id, "never started");
    else if (!run->has_ended)
        report_finding(c, WEIR_FINDING_NOTE, "run", run_id,
                       "has not ended: it is running, was killed, or had no room to record its end; failures and "
                       "items are not compared");
    else
        report_finding(c, WEIR_FINDING_OK, "run", run_id, "ended with %s", weir_status_name(run->status));
    if (run->entries_lost)
        report_finding(c, WEIR_FINDING_FAULT, "run", run_id,
                       "%" PRId64 " entries could not be written: its metrics lack them", run->entries_lost);
    int status = has_started ? run_checks(c, of_run, sizeof of_run / sizeof of_run[0], run_id, run_id) : WEIR_OK;
    return has_started && status == WEIR_OK ? check_rolls(c, run_id) : status;
}

int weir_database_check(weir_recording *recording, bool quick, weir_finding_function *finding, void *self,
                        weir_error *error)
{
    if (!recording || !finding)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    checking c = { .recording = recording, .report = finding, .self = self, .error = error };
    int64_t num_lacking = 0;
    if (recording->is_spdl)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "database %s was recorded by SPDL, which stores too little to check",
                              weir__path_for_message(recording->path).text);
    int status = weir_recording_hold(recording, error);
    if (status != WEIR_OK)
        return status;
    status = check_schema(&c, &num_lacking);
    if (status == WEIR_OK)
        status = run_checks(&c, whole_file, sizeof whole_file / sizeof whole_file[0], quick, 0);
    if (status == WEIR_OK && num_lacking == 0)
        status = run_checks(&c, &references, 1, 0, 0);
    if (status == WEIR_OK && num_lacking == 0)
        status = weir_recording_each(recording, WEIR_RECORD_RUN, NULL, check_run, &c, error);
    if (status == WEIR_OK && num_lacking == 0 && c.num_runs == 0)
        report_finding(&c, WEIR_FINDING_NOTE, "run", 0, "no runs");
    weir_recording_release(recording);
    return status;
}
