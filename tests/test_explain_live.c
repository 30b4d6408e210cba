/* The experiment on a running pipeline: tasks that wait by themselves, tasks that wait for one server. */
#include "tests/live_pipeline.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weir/verdict.h>

static void assert_settings(const live_pipeline *own, uint32_t slots, uint32_t threads)
{
    weir_snapshot *snapshot;
    assert_int_equal(weir_pipeline_snapshot(own->pipeline, &snapshot), WEIR_OK);
    assert_int_equal(snapshot->threads, threads);
    assert_int_equal(snapshot->stages[1].concurrency, slots);
    weir_snapshot_free(snapshot);
}

static void count_line(void *count, const char *line)
{
    ++*(int *)count;
    assert_non_null(strstr(line, "read"));
}

/* On a machine that others use, a trial may have too few items: it is measured again, TEST_TRIES times in all. */
static weir_verdict *explain_until(const live_pipeline *own, weir_live_options options,
                                   bool (*is_enough)(const weir_verdict *))
{
    for (int number = 1;; number++) {
        weir_verdict *v = NULL;
        weir_error error = { 0 };
        options.slice_ns = WEIR_SECOND / 20;
        options.setting_ns = 2 * WEIR_SECOND;
        if (weir_explain_live(own->pipeline, &options, &v, &error) != WEIR_OK)
            fail_msg("%s", error.message);
        if (test_try_was_right(number, is_enough(v), v->sentence))
            return v;
        weir_verdict_free(v);
    }
}

static bool is_measured(const weir_verdict *v)
{
    return v->kind == WEIR_VERDICT_OUTSIDE && v->num_advice >= 1 && v->advice[0].slots == 4;
}

static bool shows_a_gain(const weir_verdict *v)
{
    return is_measured(v) && v->advice[0].gain > 1.3;
}

static bool shows_no_gain(const weir_verdict *v)
{
    return is_measured(v) && v->advice[0].low < 1.3;
}

static weir_verdict *explain(const live_pipeline *own, bool (*is_enough)(const weir_verdict *), int *num_lines)
{
    weir_live_options options = { .no_speedups = true, .progress = count_line, .progress_self = num_lines };
    weir_verdict *v = explain_until(own, options, is_enough);
    assert_string_equal(v->name, "0:1:read[2]");
    assert_true(v->advice[0].is_measured);
    assert_true(v->advice[0].low <= v->advice[0].gain && v->advice[0].gain <= v->advice[0].high);
    return v;
}

static bool read_speedups(const weir_verdict *v, double *source, double *stage, double *consumer)
{
    for (size_t i = 0; i < v->num_evidence; i++)
        if (sscanf(v->evidence[i],
                   "if it were 20 %% faster: src %lf %% (%*[^)]), read %lf %% (%*[^)]), your consumer %lf %%", source,
                   stage, consumer) == 3)
            return true;
    return false;
}

/* The stage is all that takes time: 20 % less of it are 25 % more items; a faster source brings nothing. */
static bool shows_the_stage(const weir_verdict *v)
{
    double source, stage, consumer;
    return read_speedups(v, &source, &stage, &consumer) && stage > 10 && stage > source + 5 && stage > consumer + 5;
}

TEST_CASE(twice_the_slots_bring_more_of_what_each_task_waits_for_alone)
{
    int num_lines = 0;
    live_pipeline own = { .pipeline = NULL };
    live_pipeline_start(&own, wait_alone, 2, 4);
    weir_verdict *v = explain(&own, shows_a_gain, &num_lines);
    assert_null(strstr(v->sentence, "whatever you set"));
    assert_settings(&own, 2, 4);
    assert_true(num_lines >= 2);
    weir_verdict_free(v);
    live_pipeline_stop(&own);
}

/* As a decoder of video: few items, and many frames in each. */
static int wait_in_parts(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const struct timespec part = { .tv_nsec = 10 * WEIR_MILLISECOND };
    (void)worker;
    for (int i = 0; i < 20; i++) {
        nanosleep(&part, NULL);
        weir_task_advance(task, "frames", 1);
    }
    weir_item_move(out, in);
    return WEIR_OK;
}

/* Ten items per second, and slices of half a second at most: the work within the items is counted. */
TEST_CASE(slow_items_are_measured_by_the_work_within_them)
{
    live_pipeline own = { .pipeline = NULL };
    weir_live_options options = { .no_speedups = true };
    live_pipeline_start(&own, wait_in_parts, 2, 4);
    for (int number = 1;; number++) {
        weir_verdict *v = NULL;
        options.slice_ns = WEIR_SECOND / 20;
        options.setting_ns = WEIR_SECOND;
        assert_int_equal(weir_explain_live(own.pipeline, &options, &v, NULL), WEIR_OK);
        bool is_right = test_try_was_right(number, shows_a_gain(v), v->sentence);
        double rate = v->num_advice ? v->advice[0].items_per_s : 0;
        weir_verdict_free(v);
        if (!is_right)
            continue;
        assert_true(rate > 8 && rate < 40); /* in items, not in frames */
        break;
    }
    live_pipeline_stop(&own);
}

TEST_CASE(twice_the_slots_bring_nothing_of_what_serves_one_at_a_time)
{
    int num_lines = 0;
    live_pipeline own = { .pipeline = NULL };
    live_pipeline_start(&own, wait_in_turn, 2, 4);
    weir_verdict *v = explain(&own, shows_no_gain, &num_lines);
    assert_settings(&own, 2, 4);
    weir_verdict_free(v);
    live_pipeline_stop(&own);
}

static const weir_verdict_advice *find_change(const weir_verdict *v, const char *change)
{
    for (size_t i = 0; i < v->num_advice; i++)
        if (strstr(v->advice[i].change, change))
            return &v->advice[i];
    return NULL;
}

static bool shows_both(const weir_verdict *v)
{
    const weir_verdict_advice *a = find_change(
        v, "read with 4 slots instead of 2, parse with 4 slots instead of 2, and 12 threads instead of 8");
    return strcmp(v->together, "read and parse") == 0 && a && a->is_measured && a->gain > 1.3;
}

/* Each of them serves as many as the other: more of one alone brings nothing. */
TEST_CASE(two_equal_stages_are_a_limit_together)
{
    live_pipeline own = { .num_stages = 2 };
    live_pipeline_start(&own, wait_alone, 2, 8);
    weir_verdict *v = explain_until(&own, (weir_live_options){ .no_speedups = true }, shows_both);
    assert_non_null(strstr(v->sentence, "read and parse, together"));
    assert_null(strstr(v->sentence, "whatever you set"));
    assert_int_equal(v->other_kind, WEIR_VERDICT_UNKNOWN);
    assert_settings(&own, 2, 8);
    weir_verdict_free(v);
    live_pipeline_stop(&own);
}

static bool shows_both_kinds_of_threads(const weir_verdict *v)
{
    const weir_verdict_advice *a = find_change(v, "read with 4 slots instead of 2, parse");
    if (strcmp(v->together, "read and parse") != 0 || !a || a->gain <= 1.3)
        return false;
    assert_string_equal(a->change, "read with 4 slots instead of 2, parse with 4 slots instead of 2, and 4 threads "
                                   "instead of 2, and 10 threads instead of 8");
    assert_string_equal(a->code, ".concurrency = 4 in the options of read, .concurrency = 4 in the options of parse, "
                                 ".threads = 4 in those of the same, .threads = 10 in those of the pipeline");
    return true;
}

/* One on the pool, the other on threads of its own: each gets more of its own. */
TEST_CASE(stages_on_different_threads_are_a_limit_together)
{
    live_pipeline own = { .num_stages = 2, .has_own_threads = true };
    live_pipeline_start(&own, wait_alone, 2, 8);
    weir_verdict_free(explain_until(&own, (weir_live_options){ .no_speedups = true }, shows_both_kinds_of_threads));
    live_pipeline_stop(&own);
}

static bool shows_that_neither_helps(const weir_verdict *v)
{
    return *v->together == '\0' && strstr(v->sentence, "whatever you set") != NULL;
}

/* Both wait for the same server. */
TEST_CASE(two_stages_that_use_one_server_are_no_limit_together)
{
    live_pipeline own = { .num_stages = 2 };
    live_pipeline_start(&own, wait_in_turn, 2, 8);
    weir_verdict_free(explain_until(&own, (weir_live_options){ .no_speedups = true }, shows_that_neither_helps));
    live_pipeline_stop(&own);
}

static atomic_int num_tried;
static atomic_llong failed_ns, tasks_ns; /* by the tasks' own clock */

/* One in four; it takes six times as long as the others, so two thirds of the time, or less on a busy machine. */
static int fail_slowly(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    int64_t start_ns = weir_clock_ns();
    bool fails = atomic_fetch_add(&num_tried, 1) % 4 == 0;
    int status = WEIR_EDATA;
    if (fails)
        nanosleep(&(struct timespec){ .tv_nsec = 18 * WEIR_MILLISECOND }, NULL);
    else
        status = wait_alone(worker, in, out, task);
    int64_t took_ns = weir_clock_ns() - start_ns;
    atomic_fetch_add(&tasks_ns, took_ns);
    atomic_fetch_add(&failed_ns, fails ? took_ns : 0);
    return fails ? weir_task_fail(task, WEIR_EDATA, 0, "it is broken") : status;
}

/* The look is a part of the run: its share may differ by some percent. */
static bool shows_failures(const weir_verdict *v)
{
    int share = 0;
    double own_share = 100.0 * (double)atomic_load(&failed_ns) / (double)atomic_load(&tasks_ns);
    return v->kind == WEIR_VERDICT_FAILURES &&
           sscanf(v->sentence, "Items that fail: %d %% of the time", &share) == 1 && fabs(share - own_share) <= 6;
}

TEST_CASE(items_that_fail_are_what_their_time_goes_into)
{
    live_pipeline own = { .pipeline = NULL };
    live_pipeline_start(&own, fail_slowly, 2, 4);
    weir_verdict_free(explain_until(&own, (weir_live_options){ .no_speedups = true }, shows_failures));
    live_pipeline_stop(&own);
}

static atomic_int num_made;

enum { STORED_ITEMS = 5000 };

/* Before the stage lies a full store; what is added to it is a fifth more than what one slot takes, so that the source is not as
   busy as the stage. */
static int make_slowly(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)task;
    if (atomic_fetch_add(&num_made, 1) >= STORED_ITEMS)
        nanosleep(&(struct timespec){ .tv_nsec = 25 * WEIR_MILLISECOND / 10 }, NULL);
    out->data = &num_made;
    return WEIR_OK;
}

static bool shows_no_flow(const weir_verdict *v)
{
    const weir_verdict_advice *a = find_change(v, "read with 2 slots instead of 1");
    return a && a->is_measured && a->low < 1.3;
}

TEST_CASE(what_a_queue_had_in_store_is_no_gain)
{
    bool is_right = false;
    for (int number = 1; !is_right; number++) { /* each with a store that is full at first */
        live_pipeline own = { .queue_items = STORED_ITEMS, .make = make_slowly };
        weir_live_options options = { .no_speedups = true,
                                      .slice_ns = WEIR_SECOND / 20,
                                      .setting_ns = 2 * WEIR_SECOND };
        weir_verdict *v = NULL;
        atomic_store(&num_made, 0);
        live_pipeline_start(&own, wait_alone, 1, 4);
        assert_int_equal(weir_explain_live(own.pipeline, &options, &v, NULL), WEIR_OK);
        is_right = test_try_was_right(number, shows_no_flow(v), v->sentence);
        weir_verdict_free(v);
        live_pipeline_stop(&own);
    }
}

TEST_CASE(virtual_speedups_show_where_to_optimise)
{
    live_pipeline own = { .pipeline = NULL };
    live_pipeline_start(&own, wait_in_turn, 2, 4);
    weir_verdict_free(explain_until(&own, (weir_live_options){ .no_speedups = false }, shows_the_stage));
    live_pipeline_stop(&own);
}

TEST_CASE(a_virtual_speedup_is_of_a_part_that_exists)
{
    live_pipeline own = { .pipeline = NULL };
    live_pipeline_start(&own, wait_alone, 2, 4);
    assert_int_equal(weir_pipeline_set_speedup(own.pipeline, "scale", 0.2), WEIR_ENOTFOUND);
    assert_int_equal(weir_pipeline_set_speedup(own.pipeline, "read", 1), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_set_speedup(own.pipeline, "read", 0.5), WEIR_OK);
    assert_int_equal(weir_pipeline_set_speedup(own.pipeline, NULL, 0), WEIR_OK);
    live_pipeline_stop(&own);
}

static bool is_anything(const weir_verdict *v)
{
    return v->kind != WEIR_VERDICT_UNKNOWN;
}

/* Marked steps are those of a training loop, for which items should wait. */
TEST_CASE(a_training_loop_is_no_limit)
{
    live_pipeline own = { .step_ns = 20 * WEIR_MILLISECOND };
    live_pipeline_start(&own, wait_alone, 2, 4);
    weir_verdict *v = explain_until(&own, (weir_live_options){ .no_speedups = true }, is_anything);
    assert_string_equal(weir_verdict_word(v->kind), "none");
    weir_verdict_free(v);
    live_pipeline_stop(&own);
}

static void stop_at_speedups(void *pipeline, const char *line)
{
    if (strstr(line, "faster: "))
        weir_pipeline_stop(pipeline);
}

static bool says(const weir_verdict *v, const char *text)
{
    for (size_t i = 0; i < v->num_evidence; i++)
        if (strstr(v->evidence[i], text))
            return true;
    return false;
}

static bool has_speedups(const weir_verdict *v)
{
    return says(v, "faster: ");
}

/* A list of some of the parts must not look like the whole list. */
TEST_CASE(a_run_that_ends_during_the_experiment_says_what_was_not_measured)
{
    live_pipeline own = { .pipeline = NULL };
    live_pipeline_start(&own, wait_alone, 2, 4);
    weir_live_options options = { .progress = stop_at_speedups, .progress_self = own.pipeline };
    weir_verdict *v = explain_until(&own, options, has_speedups);
    assert_true(says(v, "; the run ended before the others were measured"));
    weir_verdict_free(v);
    live_pipeline_stop(&own);
}

static atomic_bool is_frozen;

static int wait_unless_frozen(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    while (atomic_load(&is_frozen) && !weir_task_should_stop(task))
        nanosleep(&(struct timespec){ .tv_nsec = WEIR_MILLISECOND }, NULL);
    return wait_alone(worker, in, out, task);
}

static void freeze(void *self, const char *line)
{
    (void)self;
    if (strstr(line, "candidate: "))
        atomic_store(&is_frozen, true);
}

/* No item in any slice: all rates are equal, but they say nothing. */
TEST_CASE(a_trial_without_items_measures_nothing)
{
    live_pipeline own = { .pipeline = NULL };
    weir_verdict *v = NULL;
    weir_live_options options = {
        .slice_ns = WEIR_SECOND / 20, .setting_ns = WEIR_SECOND, .no_speedups = true, .progress = freeze
    };
    atomic_store(&is_frozen, false);
    live_pipeline_start(&own, wait_unless_frozen, 2, 4);
    assert_int_equal(weir_explain_live(own.pipeline, &options, &v, NULL), WEIR_OK);
    for (size_t i = 0; i < v->num_advice; i++)
        assert_false(v->advice[i].is_measured);
    assert_true(v->confidence < 0.95);
    assert_true(v->kind != WEIR_VERDICT_OUTSIDE || says(v, "not measured: too few items"));
    weir_verdict_free(v);
    live_pipeline_stop(&own);
}

/* Within twice the time of a setting, which is how long a trial lasts. */
TEST_CASE(a_run_that_delivers_nothing_has_too_little_to_measure)
{
    live_pipeline own = { .pipeline = NULL };
    weir_verdict *v = NULL;
    weir_error error = { 0 };
    atomic_store(&is_frozen, true);
    live_pipeline_start(&own, wait_unless_frozen, 2, 4);
    weir_live_options options = { .setting_ns = WEIR_SECOND / 2 };
    assert_int_equal(weir_explain_live(own.pipeline, &options, &v, &error), WEIR_EUNSUPPORTED);
    assert_null(v);
    assert_non_null(strstr(error.message, "too little to measure: the consumer took no item"));
    live_pipeline_stop(&own);
}

TEST_CASE(a_run_that_has_ended_is_not_explained)
{
    weir_verdict *v = NULL;
    weir_error error = { 0 };
    live_pipeline own = { .pipeline = NULL };
    live_pipeline_start(&own, wait_alone, 2, 4);
    weir_pipeline_stop(own.pipeline);
    assert_int_equal(weir_explain_live(own.pipeline, NULL, &v, &error), WEIR_EOF);
    assert_null(v);
    assert_non_null(strstr(error.message, "came to its end"));
    weir_live_options negative = { .slice_ns = -1 };
    assert_int_equal(weir_explain_live(own.pipeline, &negative, &v, &error), WEIR_EINVAL);
    live_pipeline_stop(&own);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
