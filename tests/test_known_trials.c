/*
 * Trials of pipelines whose figures are known, in virtual time: two-sided. Held constant: tasks that wait and do not compute;
 * one pool; a consumer that only takes items.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/verdict.h>

#include "stats/advice/verdict/live.h"
#include "tests/virtual_time.h"

/* ---- the pipeline ------------------------------------------------------------------------------------------------ */

/* A stage: how long its tasks take. Slots that are served in turn wait for each other. */
typedef struct known_stage {
    int64_t task_ns;
    int64_t cpu_ns; /* that the process uses for a task */
    uint32_t slots;
    bool in_turn;
    int64_t giant_ns; /* each hundredth task takes so long (0 = none) */
    int num_parts;    /* of the work that a task reports as it goes on (0 = nothing) */
    int64_t first_ns; /* until then, no task ends (0 = each takes its time) */
    atomic_uint num_tasks;
    atomic_llong free_ns; /* when the server has done what it was asked for */
} known_stage;

static int64_t started_ns;

static void serve_task(known_stage *stage, weir_task *task)
{
    bool is_of_tail = stage->giant_ns && atomic_fetch_add(&stage->num_tasks, 1) % 100 == 99;
    int64_t task_ns = is_of_tail ? stage->giant_ns : stage->task_ns;
    int64_t since_ns = virtual_time_ns() - started_ns;
    if (since_ns < stage->first_ns)
        virtual_time_sleep(stage->first_ns - since_ns);
    long long now_ns = virtual_time_ns(), free_ns = atomic_load(&stage->free_ns), begin_ns;
    do
        begin_ns = free_ns > now_ns && stage->in_turn ? free_ns : now_ns;
    while (!atomic_compare_exchange_weak(&stage->free_ns, &free_ns, begin_ns + task_ns));
    int64_t left_ns = begin_ns + task_ns - now_ns;
    for (int left = stage->num_parts; left > 0; left--) {
        virtual_time_sleep(left_ns / left);
        left_ns -= left_ns / left;
        weir_task_advance(task, "frames", 1);
    }
    virtual_time_sleep(left_ns);
    virtual_time_compute(stage->cpu_ns);
}

static known_stage *const *stages_of_test;
static int64_t source_ns; /* what an item of the source takes */

#define WORK(number) \
    static int work_##number(void *worker, weir_item *in, weir_item *out, weir_task *task) \
    { \
        (void)worker; \
        serve_task(stages_of_test[number], task); \
        weir_item_move(out, in); \
        return WEIR_OK; \
    }

WORK(0)
WORK(1)

static int make_item(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)task;
    if (source_ns)
        virtual_time_sleep(source_ns);
    out->data = &stages_of_test;
    return WEIR_OK;
}

static void *consume(void *argument)
{
    weir_item item;
    virtual_time_consumes();
    while (weir_pipeline_next(argument, &item, WEIR_FOREVER) == WEIR_OK)
        weir_item_release(&item);
    return NULL;
}

typedef struct known_run {
    weir_pipeline *pipeline;
    pthread_t consumer;
} known_run;

static known_run run_begin(known_stage *const *stages, int num_stages, uint32_t threads)
{
    static const weir_op source = { .name = "src", .run = make_item };
    static const weir_op ops[] = { { .name = "first", .run = work_0 }, { .name = "second", .run = work_1 } };
    known_run run;
    stages_of_test = stages;
    for (int i = 0; i < num_stages; i++)
        atomic_store(&stages[i]->free_ns, 0);
    virtual_time_begin();
    started_ns = virtual_time_ns();
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source, NULL, 0, NULL);
    for (int i = 0; i < num_stages; i++)
        weir_builder_pipe(builder, &ops[i], NULL, 0, &(weir_stage_options){ .concurrency = stages[i]->slots });
    weir_builder_sink(builder, NULL);
    run.pipeline = build(builder, &(weir_pipeline_options){ .threads = threads });
    run.consumer = thread_start(consume, run.pipeline);
    virtual_time_drive(run.pipeline);
    return run;
}

static void run_end(known_run *run)
{
    virtual_time_let_go();
    weir_pipeline_stop(run->pipeline);
    thread_join(run->consumer);
    weir_pipeline_free(run->pipeline);
    virtual_time_end();
}

/* What the experiment says of the pipeline. The caller frees it. setting_ns: see weir_live_options. */
static weir_verdict *explain_for(known_stage *const *stages, int num_stages, uint32_t threads, int64_t setting_ns)
{
    const weir_live_options options = { .slice_ns = setting_ns / 5, .setting_ns = setting_ns };
    weir_verdict *v = NULL;
    weir_error error = { 0 };
    known_run run = run_begin(stages, num_stages, threads);
    if (source_ns)
        virtual_time_sleep(5 * source_ns); /* the start-up */
    int status = weir_explain_live(run.pipeline, &options, &v, &error);
    run_end(&run);
    if (status != WEIR_OK)
        fail_msg("%s", error.message);
    return v;
}

static weir_verdict *explain(known_stage *const *stages, int num_stages, uint32_t threads)
{
    return explain_for(stages, num_stages, threads, WEIR_SECOND);
}

/* ---- what it says -------------------------------------------------------------------------------------------------- */

/* What the run would gain in percent if that part were 20 % faster. */
static double speedup_of(const weir_verdict *v, const char *name)
{
    for (size_t i = 0; i < v->num_evidence; i++) {
        const char *found = strstr(v->evidence[i], name);
        double percent;
        if (strncmp(v->evidence[i], "if it were 20 % faster:", 23) == 0 && found &&
            sscanf(found + strlen(name), " %lf %%", &percent) == 1)
            return percent;
    }
    fail_msg("no speedup of %s", name);
    return NAN;
}

static void assert_near(double value, double known, double tolerance)
{
    if (!(fabs(value - known) <= tolerance))
        fail_msg("%g instead of %g ± %g", value, known, tolerance);
}

/* The time of a task falls by a fifth, so a fourth more items come. */
TEST_CASE(the_only_stage_20_percent_faster_brings_25_percent)
{
    for (uint32_t slots = 1; slots <= 4; slots *= 2) {
        known_stage stage = { .task_ns = 3 * WEIR_MILLISECOND, .slots = slots };
        weir_verdict *v = explain((known_stage *[]){ &stage }, 1, slots + 2);
        assert_near(speedup_of(v, "first"), 25, 5);
        assert_near(speedup_of(v, "src"), 0, 5);
        assert_near(speedup_of(v, "your consumer"), 0, 5);
        weir_verdict_free(v);
    }
}

/* The first stage makes 500 items per second, the second one could make 556: with a fifth less time the first one makes 625, of
   which 556 pass. */
TEST_CASE(a_speedup_brings_what_the_next_stage_takes)
{
    for (uint32_t slots = 1; slots <= 2; slots++) {
        known_stage first = { .task_ns = 2 * slots * WEIR_MILLISECOND, .slots = slots };
        known_stage second = { .task_ns = 1800 * WEIR_MICROSECOND, .slots = 1 };
        weir_verdict *v = explain((known_stage *[]){ &first, &second }, 2, slots + 3);
        assert_near(speedup_of(v, "first"), 11, 5);
        assert_near(speedup_of(v, "second"), 0, 5);
        assert_near(speedup_of(v, "src"), 0, 5);
        weir_verdict_free(v);
    }
}

TEST_CASE(a_stage_that_waits_brings_nothing_however_fast_it_is)
{
    known_stage first = { .task_ns = 4 * WEIR_MILLISECOND, .slots = 2 };
    known_stage second = { .task_ns = WEIR_MILLISECOND, .slots = 1 };
    weir_verdict *v = explain((known_stage *[]){ &first, &second }, 2, 5);
    assert_near(speedup_of(v, "first"), 25, 5);
    assert_near(speedup_of(v, "second"), 0, 5);
    assert_near(speedup_of(v, "src"), 0, 5);
    weir_verdict_free(v);
}

TEST_CASE(twice_the_slots_bring_twice_the_items_or_none)
{
    known_stage stage = { .task_ns = 3 * WEIR_MILLISECOND, .slots = 2 };
    weir_verdict *v = explain((known_stage *[]){ &stage }, 1, 4);
    assert_true(v->num_advice >= 1 && v->advice[0].is_measured && v->advice[0].slots == 4);
    assert_near(v->advice[0].gain, 2, 0.05);
    assert_near(v->advice[0].low, 2, 0.2);
    assert_near(v->advice[0].high, 2, 0.2);
    weir_verdict_free(v);
    stage.in_turn = true;
    v = explain((known_stage *[]){ &stage }, 1, 4);
    assert_true(v->num_advice >= 1 && v->advice[0].is_measured && v->advice[0].slots == 4);
    assert_near(v->advice[0].gain, 1, 0.05);
    assert_near(v->advice[0].low, 1, 0.1);
    assert_near(v->advice[0].high, 1, 0.1);
    assert_non_null(strstr(v->sentence, "whatever you set"));
    weir_verdict_free(v);
}

/* Tasks that each need a CPU, on a machine of which they use all: here time goes on as if there were more. */
TEST_CASE(no_gain_is_above_what_the_cpus_have)
{
    known_stage stage = { .task_ns = 3 * WEIR_MILLISECOND, .slots = 2 };
    for (int busy = 1; busy <= 2; busy++) { /* all CPUs, then half of them */
        stage.cpu_ns = stage.task_ns * (int64_t)weir_cpu_budget() / (2 * busy);
        weir_verdict *v = explain((known_stage *[]){ &stage }, 1, 4);
        assert_true(v->num_advice >= 1 && v->advice[0].is_measured && v->advice[0].slots == 4);
        assert_near(v->advice[0].gain, busy, 0.06);
        assert_near(v->advice[0].high, busy, 0.2);
        weir_verdict_free(v);
    }
}

/* One item in five seconds: its frames are counted. They never end where a slice does. The source is fast; its thread
   may be that of the tasks. What the queue loses of so few items is chance. */
TEST_CASE(slow_items_are_measured_by_their_frames)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        known_stage stage = { .task_ns = 5 * WEIR_SECOND, .slots = 1, .num_parts = 499 };
        weir_verdict *v = explain_for((known_stage *[]){ &stage }, 1, threads, 3 * WEIR_SECOND);
        assert_true(v->num_advice >= 1 && v->advice[0].is_measured && v->advice[0].slots == 2);
        assert_near(v->advice[0].gain, 2, 0.05);
        weir_verdict_free(v);
    }
}

/* The source makes five items while one slot takes four: with two slots, what was in the queue comes on top for a
   while. A look sees the source busy for three to four of four seconds. So the gain is known to be 1 to 1.33, or more
   by what was measured. */
TEST_CASE(a_store_of_few_items_is_no_gain)
{
    known_stage stage = { .task_ns = 5 * WEIR_SECOND, .slots = 1, .num_parts = 499 };
    source_ns = 4 * WEIR_SECOND;
    weir_verdict *v = explain_for((known_stage *[]){ &stage }, 1, 2, 3 * WEIR_SECOND);
    source_ns = 0;
    assert_true(v->num_advice >= 1 && v->advice[0].is_measured && v->advice[0].slots == 2);
    assert_near(v->advice[0].gain, 1.17, 0.2);
    assert_true(v->advice[0].low <= 1.25 * 1.07 && v->advice[0].high >= 1.25);
    weir_verdict_free(v);
}

TEST_CASE(a_look_that_sees_no_item_is_repeated)
{
    known_stage stage = { .task_ns = 3 * WEIR_MILLISECOND, .slots = 2, .first_ns = 3 * WEIR_SECOND / 2 };
    weir_verdict *v = explain((known_stage *[]){ &stage }, 1, 4);
    assert_true(v->num_advice >= 1 && v->advice[0].is_measured);
    assert_near(v->advice[0].gain, 2, 0.05);
    weir_verdict_free(v);
}

/* An item in two seconds: four seconds have two of them, which say nothing for sure. More slots of a stage are not worth a try. */
TEST_CASE(a_slow_source_is_looked_at_for_as_long_as_a_trial_takes)
{
    known_stage stage = { .task_ns = 3 * WEIR_MILLISECOND, .slots = 2 };
    source_ns = 2 * WEIR_SECOND;
    weir_verdict *v = explain_for((known_stage *[]){ &stage }, 1, 4, 3 * WEIR_SECOND);
    source_ns = 0;
    assert_int_equal(v->kind, WEIR_VERDICT_SOURCE);
    if (!(v->confidence >= WEIR_VERDICT_LIKELY))
        fail_msg("only %g sure", v->confidence);
    weir_verdict_free(v);
}

/* 99 tasks of 1 ms, and one of 100 ms: E[x] = 1.99, E[x²] = 100.99, so variance / mean² = 24.5. */
TEST_CASE(rare_long_tasks_are_seen_while_they_run)
{
    for (int has_giants = 0; has_giants <= 1; has_giants++) {
        known_stage stage = { .task_ns = (has_giants ? 1 : 7) * WEIR_MILLISECOND, .slots = 2 };
        stage.giant_ns = has_giants ? 100 * WEIR_MILLISECOND : 0;
        verdict_view view;
        known_run run = run_begin((known_stage *[]){ &stage }, 1, 4);
        int status = weir__live_view(run.pipeline, 4 * WEIR_SECOND, NULL, &view);
        assert_int_equal(status, WEIR_OK);
        assert_near(view.nodes[1].unevenness, has_giants ? 24.5 : 0, has_giants ? 12 : 0.5);
        weir__verdict_view_free(&view);
        run_end(&run);
    }
}

/* ---- intervals ---------------------------------------------------------------------------------------------------- */

/* `count` of `all` differ from this share by no more than chance explains: three standard errors. */
static void assert_share(int count, int all, double share)
{
    double error = 3 * sqrt(share * (1 - share) * all);
    if (!(fabs(count - share * all) <= error))
        fail_msg("%d of %d instead of %g ± %g", count, all, share * all, error);
}

/* The same each time. */
static double draw_uniform(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

static double draw_normal(void)
{
    return sqrt(-2 * log(1 - draw_uniform())) * cos(6.283185307179586 * draw_uniform());
}

TEST_CASE(intervals_of_slices_cover_the_truth_in_95_percent)
{
    enum { MOST_SLICES = 64, NUM_SERIES = 4000 };
    static const uint32_t counts[] = { 2, 3, 4, 5, 8, 10, 20, 40, MOST_SLICES };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int num_covered = 0;
        for (int series = 0; series < NUM_SERIES; series++) {
            double values[MOST_SLICES], half;
            for (uint32_t j = 0; j < counts[i]; j++)
                values[j] = 7 + draw_normal();
            double mean = weir__mean_interval(values, counts[i], &half);
            num_covered += fabs(mean - 7) <= half;
        }
        assert_share(num_covered, NUM_SERIES, 0.95);
    }
}

/* One setting is uneven: half of its slices have twice the rate of the others. Its mean is that of the other setting. The mean of
   logarithms of ratios would find +6 %. */
TEST_CASE(uneven_slices_are_no_slow_ones)
{
    enum { NUM_SLICES = 12, NUM_SERIES = 4000 };
    double sum = 0;
    int num_covered = 0;
    for (int series = 0; series < NUM_SERIES; series++) {
        double before[NUM_SLICES], after[NUM_SLICES], half;
        for (int i = 0; i < NUM_SLICES; i++) {
            before[i] = (draw_uniform() < 0.5 ? 100 : 200) + draw_normal();
            after[i] = 150 + draw_normal();
        }
        double gain = weir__ratio_interval(before, after, NUM_SLICES, &half);
        sum += gain / NUM_SERIES;
        num_covered += fabs(gain) <= half;
    }
    assert_near(sum, 0, 0.01);
    assert_near((double)num_covered / NUM_SERIES, 0.95, 0.02);
}

/* A trial ends as soon as its interval is narrow, which is where its pairs happen to agree. Whatever slices deviate,
   from 0.5 to 10 %; held constant: each slice is independent of the others, and the precision. */
TEST_CASE(intervals_of_trials_that_end_early_cover_the_truth_in_95_percent)
{
    enum { NUM_SERIES = 4000 };
    static const double deviations[] = { 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1 };
    const double precision = 0.04;
    for (size_t i = 0; i < sizeof deviations / sizeof deviations[0]; i++) {
        int num_covered = 0;
        for (int series = 0; series < NUM_SERIES; series++) {
            live_pairs pairs = { .num = 0 };
            double half = INFINITY;
            while (pairs.num < LIVE_MOST_PAIRS && (pairs.num < LIVE_LEAST_PAIRS || half > precision))
                half = weir__live_pairs_add(&pairs, 100 * (1 + deviations[i] * draw_normal()),
                                            200 * (1 + deviations[i] * draw_normal()));
            num_covered += fabs(pairs.mean - log(2)) <= (half <= precision ? half : pairs.half);
        }
        assert_near((double)num_covered / NUM_SERIES, 0.95, 0.02);
    }
}

/* Counts of tasks of random lengths: their interval by the lengths alone covers the truth. */
TEST_CASE(the_interval_of_counts_follows_from_the_lengths_of_tasks)
{
    enum { NUM_SERIES = 2000 };
    const double time = 400; /* mean lengths: exponential ones have the variance 1 */
    int num_covered = 0;
    for (int series = 0; series < NUM_SERIES; series++) {
        double counts[2] = { 0, 0 };
        for (int i = 0; i < 2; i++) {
            double at = -log(1 - draw_uniform());
            while (at < time) {
                counts[i]++;
                at -= log(1 - draw_uniform());
            }
        }
        num_covered += fabs(log(counts[1] / counts[0])) <= weir__renewal_interval(1, counts[0], counts[1]);
    }
    assert_share(num_covered, NUM_SERIES, 0.95);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
