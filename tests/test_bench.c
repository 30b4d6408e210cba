/* weir-bench from outside: that each bench runs, and what it writes for programs to read. No time is asserted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "program.h"

enum { MAX_ARGUMENTS = 24 };

static char *work; /* this program's folder */

/* Runs weir-bench with the words of this line. */
static void run(struct program *program, const char *line)
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

/* The same with --json, for benches that are to succeed: what they wrote, to be freed. */
static char *run_for_json(struct program *program, const char *line)
{
    char *path = path_in(work, "rows.json"), with_json[1024];
    remove(path);
    snprintf(with_json, sizeof with_json, "%s --json %s", line, path);
    run(program, with_json);
    if (program->status != 0)
        fail_msg("weir-bench %s ended with %d:\n%s", line, program->status, program->err);
    assert_string_equal(program->err, "");
    char *json = read_file(path);
    free(path);
    return json;
}

/* The number that a query answers; ?1 in it is the JSON text. */
static double ask(const char *json, const char *sql)
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

/* How many rows there are of which this condition holds; `row` is the row's JSON. */
static int count_rows(const char *json, const char *condition)
{
    char sql[1024];
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM (SELECT value AS row FROM json_each(?1, '$.rows')) WHERE %s",
             condition);
    return (int)ask(json, sql);
}

static void assert_is_report(const char *json, const char *bench)
{
    char condition[256];
    assert_int_equal((int)ask(json, "SELECT json_valid(?1)"), 1);
    assert_true(ask(json, "SELECT json_extract(?1, '$.machine.cpus')") >= 1);
    assert_int_equal((int)ask(json, "SELECT json_type(?1, '$.machine.cpu') = 'text'"), 1);
    snprintf(condition, sizeof condition, "json_extract(row, '$.bench') IS NOT '%s'", bench);
    assert_int_equal(count_rows(json, condition), 0);
}

static void engine_runs_every_part_and_writes_a_row_for_each_configuration(void **state)
{
    (void)state;
    struct program program;
    char *json = run_for_json(&program, "engine --quick --items 40 --runs 2");
    assert_is_report(json, "engine");
    assert_int_equal(count_rows(json, "json_extract(row, '$.ns_per_item') > 0 IS NOT 1"), 0);
    assert_int_equal(count_rows(json, "json_extract(row, '$.ns_per_item_min') <= json_extract(row, '$.ns_per_item') "
                                      "AND json_extract(row, '$.ns_per_item_max') >= "
                                      "json_extract(row, '$.ns_per_item')"),
                     count_rows(json, "1"));

    /* 2 sizes of the pool × 2 of the queues × 2 operations × statistics on and off */
    assert_int_equal(count_rows(json,
                                "json_extract(row, '$.part') = 'hops' AND json_extract(row, '$.ns_per_hop') > 0 "
                                "AND json_type(row, '$.ns_per_stage') IN ('real', 'integer')"),
                     16);
    assert_int_equal(count_rows(json, "json_type(row, '$.stats_on_to_off') IN ('real', 'integer') AND "
                                      "json_extract(row, '$.part') = 'hops'"),
                     8);
    assert_int_equal(count_rows(json, "json_extract(row, '$.what') = 'mutex_queue' AND "
                                      "json_extract(row, '$.item_to_base') > 0"),
                     4);
    assert_int_equal(count_rows(json, "json_extract(row, '$.shape') = 'route'"), 4);
    assert_int_equal(count_rows(json, "json_extract(row, '$.shape') = 'pending'"), 4);
    assert_int_equal(count_rows(json, "json_extract(row, '$.output_order') = 'input'"), 4);
    assert_int_equal(count_rows(json, "json_extract(row, '$.part') = 'scaling'"), 8);
    free(json);
    program_free(&program);
}

/* Each peer is either measured or said to be left out, with the package that brings it. */
static void engine_names_the_peers_that_are_not_built(void **state)
{
    (void)state;
    static const char *const names[] = { "glib_pool", "tbb_flow_limiter", "tbb_pipeline", "tbb_flow" };
    struct program program;
    char *json = run_for_json(&program, "engine --peers --items 20 --runs 1 --threads 1 --queue 2");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char condition[128], sentence[128];
        snprintf(condition, sizeof condition, "json_extract(row, '$.what') = '%s'", names[i]);
        snprintf(sentence, sizeof sentence, "  %-18snot built: ", names[i]);
        const char *told = strstr(program.out, sentence);
        assert_int_equal(count_rows(json, condition), told ? 0 : 1);
        assert_true(!told || strstr(told, "-dev"));
    }
    free(json);
    program_free(&program);
}

static void engine_runs_only_what_it_is_asked_for(void **state)
{
    (void)state;
    struct program program;
    char *json = run_for_json(
        &program, "engine --hops --threads 1 --queue 4 --op-us 0 --stats on --stages 2 --items 50 --runs 3");
    assert_is_report(json, "engine");
    assert_int_equal(count_rows(json, "1"), 1);
    assert_int_equal(count_rows(json, "json_extract(row, '$.threads') = 1 AND json_extract(row, '$.queue_items') = 4 "
                                      "AND json_extract(row, '$.stats') = 1 AND json_extract(row, '$.op_us') = 0 AND "
                                      "json_extract(row, '$.stages') = 2 AND json_extract(row, '$.items') = 50 AND "
                                      "json_extract(row, '$.runs') = 3"),
                     1);
    /* two stages and the source */
    assert_int_equal(count_rows(json, "abs(json_extract(row, '$.ns_per_hop') * 3 / "
                                      "json_extract(row, '$.ns_per_item') - 1) < 1e-6"),
                     1);
    free(json);
    program_free(&program);
}

static void stop_measures_every_state(void **state)
{
    (void)state;
    struct program program;
    char *json = run_for_json(&program, "stop --slots 8 --runs 2");
    assert_is_report(json, "stop");
    assert_int_equal((int)ask(json, "SELECT group_concat(json_extract(value, '$.state')) = "
                                    "'computing,sleeping,put,get,pending' FROM json_each(?1, '$.rows')"),
                     1);
    assert_int_equal(count_rows(json, "json_extract(row, '$.slots') = 8 AND json_extract(row, '$.ms_min') > 0 AND "
                                      "json_extract(row, '$.ms_min') <= json_extract(row, '$.ms') AND "
                                      "json_extract(row, '$.ms') <= json_extract(row, '$.ms_max')"),
                     5);
    free(json);
    program_free(&program);
}

static void decode_finds_the_same_pictures_as_the_bare_loop(void **state)
{
    (void)state;
    struct program program;
    run(&program, "--help");
    bool has_decode = strstr(program.out, "\n  decode ");
    program_free(&program);
    if (!has_decode)
        skip(); /* built without stages */

    char command[1024];
    snprintf(command, sizeof command,
             "ffmpeg -nostdin -loglevel error -y -f lavfi -i testsrc2=s=64x48:r=25 -frames:v 7 -pix_fmt yuv420p "
             "'%s/clip.mp4'",
             work);
    assert_int_equal(system(command), 0); /* NOLINT: the test's own path */
    snprintf(command, sizeof command, "decode --dataset-dir %s --concurrency 2 --runs 1 --verify", work);
    char *json = run_for_json(&program, command);
    assert_is_report(json, "decode");
    assert_int_equal(count_rows(json, "json_extract(row, '$.files') = 1 AND "
                                      "json_extract(row, '$.clips_per_cpu_s') > 0"),
                     2);
    free(json);
    program_free(&program);
}

static void wrong_options_are_told_with_what_they_want(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        { "engine --queue 0", "--queue wants LIST, not 0" },
        { "engine --op-us 1,", "--op-us wants LIST, not 1," },
        { "engine --op-us -1", "--op-us wants LIST, not -1" },
        { "engine --stats maybe", "--stats wants on,off, not maybe" },
        { "engine --runs", "--runs wants N, not nothing" },
        { "stop --speed", "unknown option: --speed" },
        { "start", "unknown command: start" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct program program;
        run(&program, wrong[i][0]);
        assert_int_equal(program.status, 2);
        if (!strstr(program.err, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], program.err);
        program_free(&program);
    }
}

static int make_work(void **state)
{
    (void)state;
    work = make_folder();
    return 0;
}

static int remove_work(void **state)
{
    (void)state;
    remove_folder(work);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engine_runs_every_part_and_writes_a_row_for_each_configuration),
        cmocka_unit_test(engine_names_the_peers_that_are_not_built),
        cmocka_unit_test(engine_runs_only_what_it_is_asked_for),
        cmocka_unit_test(stop_measures_every_state),
        cmocka_unit_test(decode_finds_the_same_pictures_as_the_bare_loop),
        cmocka_unit_test(wrong_options_are_told_with_what_they_want),
    };
    return cmocka_run_group_tests(tests, make_work, remove_work);
}
