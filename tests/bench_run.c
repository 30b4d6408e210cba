#include "tests/bench_run.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"
#include <sqlite3.h>

enum { MAX_ARGUMENTS = 24 };

static char *work;

void bench_run(struct program *program, const char *line)
{
    char words[1024];
    char *argv[MAX_ARGUMENTS + 1] = { (char *)(uintptr_t)program_path("WEIR_BENCH") };
    int num_words = 1;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        assert_in_range(num_words, 1, MAX_ARGUMENTS - 1);
        argv[num_words++] = word;
    }
    program_run(program, work, argv);
}

char *bench_run_for_json(struct program *program, const char *line)
{
    char *path = path_in(work, "rows.json"), with_json[1024];
    remove(path);
    snprintf(with_json, sizeof with_json, "%s --json %s", line, path);
    bench_run(program, with_json);
    if (program->status != 0)
        fail_msg("weir-bench %s ended with %d:\n%s", line, program->status, program->err);
    assert_string_equal(program->err, "");
    char *json = read_file(path);
    free(path);
    return json;
}

double bench_ask(const char *json, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_bind_text(statement, 1, json, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) != SQLITE_ROW)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    double answer = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return answer;
}

int bench_count_rows(const char *json, const char *condition)
{
    char sql[1024];
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM (SELECT value AS row FROM json_each(?1, '$.rows')) WHERE %s",
             condition);
    return (int)bench_ask(json, sql);
}

void bench_assert_report(const char *json, const char *bench)
{
    char condition[256];
    assert_int_equal((int)bench_ask(json, "SELECT json_valid(?1)"), 1);
    assert_true(bench_ask(json, "SELECT json_extract(?1, '$.machine.cpus')") >= 1);
    assert_int_equal((int)bench_ask(json, "SELECT json_type(?1, '$.machine.cpu') = 'text'"), 1);
    snprintf(condition, sizeof condition, "json_extract(row, '$.bench') IS NOT '%s'", bench);
    assert_int_equal(bench_count_rows(json, condition), 0);
}

int bench_set_up(void **state)
{
    (void)state;
    work = make_folder();
    return 0;
}

int bench_tear_down(void **state)
{
    (void)state;
    remove_folder(work);
    return 0;
}

const char *bench_folder(void)
{
    return work;
}
