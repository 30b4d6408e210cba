/*
 * How queries access the database. They use an index if there is one, in its order where that is the order asked for.
 * They read the whole table only where everything is asked for. On 10 million rows that is seconds or minutes.
 */
#include "tests/recording.h"

#include <stdio.h>
#include <string.h>

#include <weir/log.h>

#include "stats/read/sql_select.h"

static const weir_sql_selection tasks = {
    .kind = WEIR_ROWS_LAPS,
    .table = "task_stats",
    .columns = "t.id, t.num_tasks, t.phase",
    .name_column = "t.name",
    .length = "t.max_time",
};
static const weir_sql_selection sums = {
    .kind = WEIR_ROWS_LAPS,
    .table = "queue_stats",
    .columns = "t.id, t.num_items, t.phase",
    .name_column = "t.name",
    .end = "",
};
static const weir_sql_selection failures = {
    .kind = WEIR_ROWS_POINTS, .table = "task_failures", .columns = "t.id, t.label", .name_column = "t.name"
};

/* The steps of the plan, each in a line. */
static void read_plan(weir_recording *recording, const weir_sql_selection *selection, const weir_filter *filter,
                      char *plan, size_t size)
{
    char sql[4096];
    sqlite3_stmt *statement, *step;
    weir_error error = { 0 };
    if (weir__select(recording, selection, filter, &statement, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", sqlite3_sql(statement));
    assert_int_equal(sqlite3_prepare_v2(recording->db, sql, -1, &step, NULL), SQLITE_OK);
    size_t length = 0;
    plan[0] = '\0';
    while (sqlite3_step(step) == SQLITE_ROW)
        length += (size_t)snprintf(plan + length, size - length, "%s\n", (const char *)sqlite3_column_text(step, 3));
    sqlite3_finalize(step);
    sqlite3_finalize(statement);
}

TEST_CASE(queries_go_by_the_indexes)
{
    static const struct {
        const weir_sql_selection *selection;
        weir_filter filter;
        const char *first; /* line of the plan */
    } cases[] = {
        /* a run, in the order of its laps */
        { &tasks, { .run_id = 1 }, "SEARCH t USING INDEX task_stats_by_run (run_id=?)" },
        { &tasks, { .run_id = 1, .descending = true }, "SEARCH t USING INDEX task_stats_by_run (run_id=?)" },
        { &tasks, { .run_id = 1, .name = "decode" }, "SEARCH t USING INDEX task_stats_by_run (run_id=?)" },
        { &tasks, { .run_id = 1, .end_unix_ns = NS(1020) }, "SEARCH t USING INDEX task_stats_by_run (run_id=?)" },
        { &sums, { .run_id = 1 }, "SEARCH t USING INDEX queue_stats_by_run (run_id=?)" },
        { &failures, { .run_id = 1 }, "SEARCH t USING INDEX task_failures_by_run (run_id=?)" },
        /* from a start time: earlier records are not read */
        { &tasks, { .start_unix_ns = NS(1020) }, "SEARCH t USING INDEX task_stats_by_time (timestamp>?)" },
        { &tasks,
          { .run_id = 1, .start_unix_ns = NS(1020) },
          "SEARCH t USING INDEX task_stats_by_time (timestamp>?)" },
        { &sums,
          { .run_id = 1, .start_unix_ns = NS(1020) },
          "SEARCH t USING INDEX queue_stats_by_time (timestamp>?)" },
        { &tasks, { .descending = true, .limit = 1 }, "SCAN t USING INDEX task_stats_by_time" },
        /* what was written since */
        { &tasks, { .run_id = 1, .after_id = 2 }, "SEARCH t USING INTEGER PRIMARY KEY (rowid>?)" },
        /* everything: one pass, in no order */
        { &sums, { .run_id = 0 }, "SCAN t" },
    };
    char plan[2000];
    weir_recording *recording;
    weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "a", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010 });
    recording_end(writer, 1010);
    assert_int_equal(weir_recording_open(in_folder("a.db"), &recording, NULL), WEIR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_plan(recording, cases[i].selection, &cases[i].filter, plan, sizeof plan);
        print_message("%s", plan);
        size_t length = strlen(cases[i].first);
        if (strncmp(plan, cases[i].first, length) != 0 || plan[length] != '\n' || strstr(plan, "TEMP B-TREE"))
            fail_msg("case %zu, not \"%s\" alone: %s", i, cases[i].first, plan);
    }
    weir_recording_close(recording);
}

int main(void)
{
    weir_log_set_level(WEIR_LOG_ERROR);
    return test_cases_run(make_folder, remove_folder, NULL, NULL);
}
