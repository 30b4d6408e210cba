/* Runs weir-bench: each bench runs, and its JSON output is complete. No time is asserted. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench_run.h"
#include "tests/test_case.h"

TEST_CASE(engine_runs_every_part_and_writes_a_row_for_each_configuration)
{
    struct program program;
    char *json = bench_run_for_json(&program, "engine --quick --items 40 --runs 2");
    bench_assert_report(json, "engine");
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.ns_per_item') > 0 IS NOT 1"), 0);
    assert_int_equal(bench_count_rows(json,
                                      "json_extract(row, '$.ns_per_item_min') <= json_extract(row, '$.ns_per_item') "
                                      "AND json_extract(row, '$.ns_per_item_max') >= "
                                      "json_extract(row, '$.ns_per_item')"),
                     bench_count_rows(json, "1"));

    /* 2 sizes of the pool × 2 of the queues × 2 operations × statistics on and off */
    assert_int_equal(
        bench_count_rows(json, "json_extract(row, '$.group') = 'hops' AND json_extract(row, '$.ns_per_hop') > 0"),
        16);
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.base') = 'weir, statistics off' AND "
                                            "json_extract(row, '$.item_to_base') > 0 AND "
                                            "json_extract(row, '$.group') = 'hops'"),
                     8);
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.what') = 'mutex_queue' AND "
                                            "json_extract(row, '$.item_to_base') > 0"),
                     4);
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.shape') = 'route'"), 4);
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.shape') = 'pending'"), 4);
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.output_order') = 'input'"), 4);
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.group') = 'scaling'"), 8);
    /* the same without statistics off, but with the record off and on */
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.group') = 'trace' AND "
                                            "json_extract(row, '$.item_to_base') > 0"),
                     8 * 2);
    free(json);
    program_free(&program);
}

/* Each peer is either measured or reported as missing, with the required package. */
TEST_CASE(engine_names_the_peers_that_are_not_built)
{
    static const char *const names[] = { "tbb_flow", "tbb_pipeline" };
    struct program program;
    char *json = bench_run_for_json(&program, "engine --peers --items 20 --runs 1 --threads 1 --queue 2");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char condition[128], sentence[128];
        snprintf(condition, sizeof condition, "json_extract(row, '$.what') = '%s'", names[i]);
        snprintf(sentence, sizeof sentence, "  %-18snot built: ", names[i]);
        const char *reported = strstr(program.out, sentence);
        assert_int_equal(bench_count_rows(json, condition), reported ? 0 : 1);
        assert_true(!reported || strstr(reported, "-dev"));
    }
    free(json);
    program_free(&program);
}

TEST_CASE(engine_runs_only_what_it_is_asked_for)
{
    struct program program;
    char *json = bench_run_for_json(
        &program, "engine --hops --threads 1 --queue 4 --op-us 0 --stats on --stages 2 --items 50 --runs 3");
    bench_assert_report(json, "engine");
    assert_int_equal(bench_count_rows(json, "1"), 1);
    assert_int_equal(bench_count_rows(json,
                                      "json_extract(row, '$.threads') = 1 AND json_extract(row, '$.queue_items') = 4 "
                                      "AND json_extract(row, '$.stats') = 1 AND json_extract(row, '$.op_us') = 0 AND "
                                      "json_extract(row, '$.stages') = 2 AND json_extract(row, '$.items') = 50 AND "
                                      "json_extract(row, '$.runs') = 3"),
                     1);
    /* two stages and the source */
    assert_int_equal(bench_count_rows(json, "abs(json_extract(row, '$.ns_per_hop') * 3 / "
                                            "json_extract(row, '$.ns_per_item') - 1) < 1e-6"),
                     1);
    free(json);
    program_free(&program);
}

TEST_CASE(costs_are_told_of_each_part)
{
    struct program program;
    char *json = bench_run_for_json(&program, "costs");
    bench_assert_report(json, "costs");
    assert_true(bench_count_rows(json, "json_extract(row, '$.value') >= 0") >= 7); /* and those of weir::dataset */
    program_free(&program);
    free(json);
}

TEST_CASE(stop_measures_every_state)
{
    struct program program;
    char *json = bench_run_for_json(&program, "stop --slots 8 --runs 2");
    bench_assert_report(json, "stop");
    assert_int_equal((int)bench_ask(json, "SELECT group_concat(json_extract(value, '$.state')) = "
                                          "'computing,sleeping,put,get,pending' FROM json_each(?1, '$.rows')"),
                     1);
    assert_int_equal(bench_count_rows(json,
                                      "json_extract(row, '$.slots') = 8 AND json_extract(row, '$.ms_min') > 0 AND "
                                      "json_extract(row, '$.ms_min') <= json_extract(row, '$.ms') AND "
                                      "json_extract(row, '$.ms') <= json_extract(row, '$.ms_max')"),
                     5);
    free(json);
    program_free(&program);
}

TEST_CASE(wrong_options_are_told_with_what_they_want)
{
    static const char *const wrong[][2] = {
        { "engine --queue 0", "--queue: \"0\" is not a list of numbers from 1, such as 1,2,4" },
        { "engine --op-us 1,", "--op-us: \"1,\" is not a list of numbers" },
        { "engine --op-us -1", "--op-us: \"-1\" is not a list of numbers" },
        { "engine --stats maybe", "--stats: \"maybe\" is not on, off or on,off" },
        { "engine --runs", "--runs: a value is missing" },
        { "stop --speed", "--speed: no such option" },
        { "stop --slot=", "--slots: \"\" is not a whole number" },
        { "stop --rums 3", "--rums: no such option; did you mean --runs?" },
        { "start", "start: no such subcommand" },
        { "engin", "engin: no such subcommand; did you mean engine?" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct program program;
        bench_run(&program, wrong[i][0]);
        assert_int_equal(program.status, 2);
        if (!strstr(program.err, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], program.err);
        program_free(&program);
    }
}

TEST_MAIN(NULL, NULL, bench_set_up, bench_tear_down)
