/*
 * Pipelines made by chance, of `weir-bench verdict --random`: which are drawn, and what is true of them. The truth is
 * compared with what was computed by hand. Held constant: two CPUs. No pipeline is run.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/verdict/random_scene.h"
#include "tests/bench_run.h"
#include "tests/test_case.h"

enum { CPUS = 2, NUM_DRAWS = 1000, SEED = 1 };

static void draw(uint64_t seed, uint64_t number, random_scene *into)
{
    random_scene_draw(seed, number, CPUS, into);
}

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.9g instead of %.9g", value, expected);
}

static void assert_within(gain_range range, double gain, double by)
{
    if (!(range.least > gain - by && range.least <= gain && range.most >= gain && range.most < gain + by))
        fail_msg("%.3f to %.3f does not lie around %.3f", range.least, range.most, gain);
}

/* -- draws */

TEST_CASE(the_same_seed_gives_the_same_pipelines)
{
    for (uint64_t i = 0; i < 100; i++) {
        random_scene first, second, third;
        draw(7, i, &first);
        draw(7, i, &second);
        draw(8, i, &third);
        assert_string_equal(first.line, second.line);
        assert_string_equal(first.truth.answers, second.truth.answers);
        assert_string_not_equal(first.line, third.line);
    }
}

/* What a draw can be, each with how to see it. */
typedef struct drawn {
    const char *what;
    bool (*is_so)(const random_scene *of);
    int num;
} drawn;

static bool has_answer(const random_scene *of, const char *kind)
{
    return strncmp(of->truth.answers, kind, strlen(kind)) == 0;
}

#define ANSWER(kind) \
    static bool is_##kind(const random_scene *of) \
    { \
        return has_answer(of, #kind); \
    }
ANSWER(outside)
ANSWER(slots)
ANSWER(cpus)
ANSWER(threads)
ANSWER(source)
ANSWER(consumer)
ANSWER(none)
ANSWER(failures)

#define SAYS(name, text) \
    static bool says_##name(const random_scene *of) \
    { \
        return strstr(of->line, text); \
    }
SAYS(disk, " disk")
SAYS(lock, "lock while computing")
SAYS(semaphore, "semaphore")
SAYS(random_length, "of random length")
SAYS(tail, "-th ")
SAYS(load, "other program")
SAYS(fast_failures, "fail in 0.")
SAYS(growth, "longer each second")
SAYS(alternation, "every other")
SAYS(backlog, "items at once")
SAYS(burst, "after each")

static bool is_queue(const random_scene *of)
{
    return of->truth.queues_limit;
}

static bool is_joint_of_stages(const random_scene *of)
{
    return of->truth.together.most > 0 && of->scene.load == 0;
}

static bool is_joint_of_three(const random_scene *of)
{
    return (of->truth.limits & 7) == 7;
}

static bool is_joint_with_consumer(const random_scene *of)
{
    return of->truth.limits >> BOUND_CONSUMER & 1 && of->truth.limits & 7 && of->scene.load == 0;
}

static bool is_joint_with_source(const random_scene *of)
{
    return of->truth.limits >> BOUND_SOURCE & 1 && of->truth.limits & 7 && of->scene.load == 0;
}

static bool has_slow_failures(const random_scene *of)
{
    return of->scene.stages[0].work.fail_length >= 1 || of->scene.stages[1].work.fail_length >= 1;
}

static bool has_two_sources(const random_scene *of)
{
    return of->scene.shape == SCENE_MERGE;
}

static bool has_equal_sources(const random_scene *of)
{
    const scene_work *first = &of->scene.source, *second = &of->scene.stages[2].work;
    return has_two_sources(of) && first->cpu_ms == second->cpu_ms && first->wait_ms == second->wait_ms;
}

static bool has_three_stages(const random_scene *of)
{
    return of->scene.stages[2].name;
}

static bool has_eight_slots(const random_scene *of)
{
    return of->scene.stages[0].slots == 8;
}

static bool is_slow(const random_scene *of)
{
    return of->truth.items_per_s < 2;
}

static bool is_fast(const random_scene *of)
{
    return of->truth.items_per_s > 1000;
}

TEST_CASE(a_thousand_draws_have_every_kind)
{
    static drawn kinds[] = {
        { "outside", is_outside, 0 },
        { "slots", is_slots, 0 },
        { "cpus", is_cpus, 0 },
        { "threads", is_threads, 0 },
        { "source", is_source, 0 },
        { "consumer", is_consumer, 0 },
        { "none", is_none, 0 },
        { "failures", is_failures, 0 },
        { "queue", is_queue, 0 },
        { "disk", says_disk, 0 },
        { "lock", says_lock, 0 },
        { "semaphore", says_semaphore, 0 },
        { "random lengths", says_random_length, 0 },
        { "tail", says_tail, 0 },
        { "other programs", says_load, 0 },
        { "fast failures", says_fast_failures, 0 },
        { "slow failures", has_slow_failures, 0 },
        { "growth", says_growth, 0 },
        { "alternation", says_alternation, 0 },
        { "backlog", says_backlog, 0 },
        { "bursts", says_burst, 0 },
        { "two stages together", is_joint_of_stages, 0 },
        { "three stages together", is_joint_of_three, 0 },
        { "stage and consumer", is_joint_with_consumer, 0 },
        { "source and stage", is_joint_with_source, 0 },
        { "two sources", has_two_sources, 0 },
        { "two equal sources", has_equal_sources, 0 },
        { "three stages", has_three_stages, 0 },
        { "eight slots", has_eight_slots, 0 },
        { "few items per second", is_slow, 0 },
        { "many items per second", is_fast, 0 },
    };
    enum { NUM_KINDS = sizeof kinds / sizeof kinds[0] };
    for (uint64_t i = 0; i < NUM_DRAWS; i++) {
        random_scene of;
        draw(SEED, i, &of);
        for (size_t k = 0; k < NUM_KINDS; k++)
            kinds[k].num += kinds[k].is_so(&of);
    }
    for (size_t k = 0; k < NUM_KINDS; k++)
        if (kinds[k].num == 0)
            fail_msg("%s: never drawn", kinds[k].what);
}

TEST_CASE(no_bound_of_a_draw_is_close_to_the_limit)
{
    for (uint64_t i = 0; i < NUM_DRAWS; i++) {
        random_scene of;
        draw(SEED, i, &of);
        for (uint32_t b = 0; b < NUM_BOUNDS; b++) {
            double ratio = of.truth.bounds.low[b] / of.truth.items_per_s;
            if (ratio > 1 + BOUND_EQUAL && ratio < BOUND_FAR)
                fail_msg("%s (%s): bound %u is %.3f times the limit", of.name, of.line, b, ratio);
        }
        assert_true(of.truth.items_per_s > 0.4 && of.truth.items_per_s < 2100);
        assert_string_not_equal(of.truth.answers, "");
    }
}

/* -- truth, computed by hand */

static scene_truth truth_of(const scene *of)
{
    scene_truth truth;
    scene_truth_find(of, CPUS, NULL, &truth);
    return truth;
}

#define STAGE(name_, slots_, ...) \
    { \
        .name = (name_), .slots = (slots_), .work = { __VA_ARGS__ } \
    }

TEST_CASE(the_slots_of_a_waiting_stage_limit)
{
    scene of = { .threads = 16, .stages = { STAGE("read", 4, .wait_ms = 10), STAGE("parse", 1, .wait_ms = 1) } };
    scene_truth truth = truth_of(&of);
    assert_string_equal(truth.answers, "outside:read");
    assert_near(truth.items_per_s, 400);
    assert_near(truth.bounds.high[BOUND_SLOTS + 1], 1000);
    assert_within(truth.of_stage[0], 2, 0.2);
    assert_false(truth.is_joint || truth.is_uncertain || truth.is_close);
}

TEST_CASE(the_next_bound_cuts_the_gain)
{
    scene of = { .threads = 16, .stages = { STAGE("read", 4, .wait_ms = 10), STAGE("parse", 1, .wait_ms = 1.6) } };
    scene_truth truth = truth_of(&of);
    assert_near(truth.next, 625.0 / 400);
    assert_within(truth.of_stage[0], 625.0 / 400, 0.2);
}

TEST_CASE(equal_stages_limit_together)
{
    scene of = { .threads = 16,
                 .consumer = { .wait_ms = 1 },
                 .stages = { STAGE("read", 2, .wait_ms = 10), STAGE("parse", 4, .wait_ms = 20) } };
    scene_truth truth = truth_of(&of);
    assert_string_equal(truth.answers, "outside:read outside:parse");
    assert_true(truth.is_joint);
    assert_within(truth.of_stage[0], 1, 0.2);
    assert_within(truth.of_stage[1], 1, 0.2);
    assert_within(truth.together, 2, 0.4);
}

TEST_CASE(a_stage_and_the_consumer_limit_together_and_have_no_gain)
{
    scene of = { .threads = 8, .consumer = { .wait_ms = 5 }, .stages = { STAGE("read", 2, .wait_ms = 10) } };
    scene_truth truth = truth_of(&of);
    assert_string_equal(truth.answers, "outside:read consumer");
    assert_true(truth.is_joint);
    assert_within(truth.of_stage[0], 1, 0.2);
    assert_true(truth.together.most <= 0);
    of.marks_steps = true;
    assert_string_equal(truth_of(&of).answers, "outside:read none");
}

TEST_CASE(a_disk_with_one_head_limits_its_stage_and_more_slots_bring_nothing)
{
    scene of = { .threads = 16,
                 .resources = { { .servers = 1, .service_ms = 10 } },
                 .stages = { STAGE("read", 4, .uses = 1) } };
    scene_truth truth = truth_of(&of);
    assert_string_equal(truth.answers, "outside:read");
    assert_near(truth.items_per_s, 100);
    assert_near(truth.bounds.high[0], 400);
    assert_within(truth.of_stage[0], 1, 0.2);
    assert_false(truth.is_joint);
}

/* Three slots, which each wait 30 ms and then 10 ms in the disk: 75 items per second; six of them would be 150, but the
   disk serves 100. */
TEST_CASE(a_disk_cuts_the_gain_of_slots)
{
    scene of = { .threads = 16,
                 .resources = { { .servers = 1, .service_ms = 10 } },
                 .stages = { STAGE("read", 3, .wait_ms = 30, .uses = 1) } };
    scene_truth truth = truth_of(&of);
    assert_near(truth.items_per_s, 75);
    assert_within(truth.of_stage[0], 100.0 / 75, 0.2);
}

/* Two slots, one server, all times 1: states 0, 1, 2 have the weights 1, 2, 2; the server is busy in 4 of 5. */
TEST_CASE(the_machine_repair_model_gives_its_known_rates)
{
    assert_near(repair_rate(2, 1, 1, 1), 0.8);
    assert_near(repair_rate(1, 3, 1, 1), 0.25);
    assert_near(repair_rate(4, 0, 2, 1), 0.5);
    assert_near(repair_rate(4, 6, 2, 4), 0.5);
}

TEST_CASE(few_threads_limit_and_the_stage_that_takes_most_is_named)
{
    scene of = { .threads = 2,
                 .source = { .wait_ms = 1 },
                 .stages = { STAGE("read", 8, .wait_ms = 12), STAGE("parse", 4, .wait_ms = 3) } };
    scene_truth truth = truth_of(&of);
    assert_string_equal(truth.answers, "threads:read");
    assert_near(truth.items_per_s, 2000.0 / 16);
}

/* Twice the slots have as many more threads, too. */
TEST_CASE(as_many_threads_as_slots_limit_with_them)
{
    scene of = { .threads = 4, .stages = { STAGE("read", 4, .wait_ms = 10) } };
    scene_truth truth = truth_of(&of);
    assert_string_equal(truth.answers, "outside:read threads:read");
    assert_within(truth.of_stage[0], 2, 0.4);
}

TEST_CASE(slots_that_compute_on_all_cpus_limit_by_the_cpus)
{
    scene of = { .threads = 16, .stages = { STAGE("read", 8, .cpu_ms = 4) } };
    scene_truth truth = truth_of(&of);
    assert_string_equal(truth.answers, "cpus");
    assert_near(truth.items_per_s, 500);
    assert_within(truth.of_stage[0], 1, 0.2);
}

/* Three programs and a thread share two CPUs: the slot gets between a half of one and one. */
TEST_CASE(beside_other_programs_a_bound_is_a_range)
{
    scene of = { .threads = 4,
                 .load = 3,
                 .stages = { STAGE("read", 1, .cpu_ms = 4), STAGE("parse", 1, .wait_ms = 1) } };
    scene_truth truth = truth_of(&of);
    assert_near(truth.bounds.low[0], 125);
    assert_near(truth.bounds.high[0], 250);
    assert_string_equal(truth.answers, "slots:read cpus");
    assert_true(truth.is_uncertain);
}

/* The threads of the run have waited for a CPU for a fifth of the time that they were on one. Their waits ended 2 ms
   late. */
TEST_CASE(the_delays_of_a_run_narrow_the_range)
{
    scene of = { .threads = 8,
                 .load = 3,
                 .stages = { STAGE("read", 1, .cpu_ms = 4), STAGE("parse", 2, .wait_ms = 14) } };
    scene_truth truth;
    scene_truth_find(&of, CPUS, &(cpu_delay){ .slowdown = 1.2, .delay_ms = 2 }, &truth);
    assert_near(truth.bounds.low[0], 1000 / 4.8);
    assert_near(truth.bounds.low[1], 125);
    assert_near(truth.bounds.high[1], 2000.0 / 14);
    assert_string_equal(truth.answers, "outside:parse");
}

/* Half of the items fail in parse, in three times the time of the others. */
TEST_CASE(most_of_a_stage_that_fails_is_named_by_its_failures)
{
    scene of = { .threads = 8,
                 .stages = { STAGE("read", 1, .wait_ms = 1),
                             STAGE("parse", 2, .wait_ms = 10, .fail_share = 0.5, .fail_length = 3) } };
    scene_truth truth = truth_of(&of);
    assert_string_equal(truth.answers, "failures:parse");
    assert_near(truth.items_per_s, 50);
    assert_near(truth.bounds.high[0], 500); /* read makes two items for each that is delivered */
}

TEST_CASE(failures_that_take_little_time_are_no_limit)
{
    scene of = { .threads = 8, .stages = { STAGE("read", 2, .wait_ms = 10, .fail_share = 0.5, .fail_length = 0.1) } };
    scene_truth truth = truth_of(&of);
    assert_string_equal(truth.answers, "outside:read");
    assert_near(truth.items_per_s, 2000 / 11.0);
}

TEST_CASE(two_sources_add_up)
{
    scene of = { .shape = SCENE_MERGE,
                 .threads = 8,
                 .source = { .wait_ms = 20 },
                 .stages = { STAGE("read", 2, .wait_ms = 2), { 0 }, { .work = { .wait_ms = 5 } } } };
    scene_truth truth = truth_of(&of);
    assert_string_equal(truth.answers, "source:src");
    assert_near(truth.items_per_s, 250);
}

TEST_CASE(work_that_alternates_has_the_answers_of_both_times)
{
    scene of = { .threads = 8,
                 .change_s = 2,
                 .alternates = true,
                 .stages = { STAGE("read", 1, .wait_ms = 10), STAGE("parse", 1, .wait_ms = 5) } };
    of.stages[1].later.wait_ms = 20;
    scene_truth truth = truth_of(&of);
    assert_string_equal(truth.answers, "outside:read outside:parse");
    assert_true(truth.changes);
    assert_true(truth.of_stage[0].least < 1 && truth.of_stage[0].most > 2);
}

TEST_CASE(a_backlog_that_empties_makes_the_source_the_limit)
{
    scene of = {
        .threads = 8, .backlog_items = 500, .source = { .wait_ms = 20 }, .stages = { STAGE("read", 1, .wait_ms = 10) }
    };
    assert_string_equal(truth_of(&of).answers, "outside:read source:src");
}

/* The consumer stops for 200 ms after 20 items. Read makes these in 100 ms, but only six items fit between both, and so it
   stands still meanwhile. */
TEST_CASE(a_burst_that_the_queues_do_not_hold_makes_them_the_limit)
{
    scene of = { .threads = 8,
                 .consumer = { .wait_ms = 200, .burst = 20 },
                 .stages = { STAGE("read", 1, .wait_ms = 5) } };
    scene_truth truth = truth_of(&of);
    assert_string_equal(truth.answers, "consumer queue:sink_queue queue:read_queue");
    assert_true(truth.queues_limit);
    of.consumer = (scene_work){ .wait_ms = 40, .burst = 4 };
    assert_false(truth_of(&of).queues_limit);
}

/* -- the program */

TEST_CASE(a_list_has_each_pipeline_and_is_the_same_for_the_same_seed)
{
    struct program first, second, third;
    char *json = bench_run_for_json(&first, "verdict --random 30 --seed 5 --list");
    bench_run(&second, "verdict --random 30 --seed 5 --list");
    bench_run(&third, "verdict --random 30 --seed 6 --list");
    bench_assert_report(json, "verdict");
    assert_int_equal(bench_count_rows(json, "json_extract(row, '$.truth') <> '' AND json_extract(row, '$.seed') = 5"),
                     30);
    assert_string_equal(first.out, second.out);
    assert_string_not_equal(first.out, third.out);
    program_free(&third);
    program_free(&second);
    program_free(&first);
    free(json);
}

TEST_CASE(a_seed_without_random_pipelines_is_refused)
{
    struct program program;
    bench_run(&program, "verdict --seed 5");
    assert_int_equal(program.status, 2);
    assert_non_null(strstr(program.err, "--random"));
    program_free(&program);
}

TEST_MAIN(NULL, NULL, bench_set_up, bench_tear_down)
