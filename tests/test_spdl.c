/* Behaviours of SPDL's pipeline tests that no other test shows. docs/spdl-behaviours.md lists all of them, each with its
   test; the last test here sees to it that those tests are there. */
#include "tests/named_tests.h"
#include "tests/support.h"

#include <regex.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

static test_ledger ledger;

/* ---- operations --------------------------------------------------------------------------------------------- */

/* value * factor + add, in place. */
typedef struct affine_config {
    uint64_t factor, add;
} affine_config;

static int run_affine(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const affine_config *affine = weir_task_config(task);
    test_payload *payload = in->data;
    (void)worker;
    payload->value = payload->value * affine->factor + affine->add;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op affine_op = { .name = "affine", .config_size = sizeof(affine_config), .run = run_affine };

enum { MOST_VALUES = 1000 };

/* Which status a value has; WEIR_OK hands it on. */
typedef struct decide_config {
    int (*decide)(uint64_t value);
} decide_config;

static int run_decide(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const decide_config *config = weir_task_config(task);
    (void)worker;
    int status = config->decide(item_value(in));
    if (status == WEIR_OK)
        weir_item_move(out, in);
    return status;
}

static const weir_op decide_op = { .name = "decide", .config_size = sizeof(decide_config), .run = run_decide };

/* Three chunks of each input: its value, one more, two more. */
static int run_triple(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint32_t chunk = weir_task_num_chunks(task);
    test_gate *gate = *(test_gate *const *)weir_task_config(task);
    (void)worker;
    if (gate)
        gate_pass(gate);
    ledger_fill(&ledger, out, item_value(in) + chunk, 0);
    return chunk < 2 ? WEIR_MORE : WEIR_OK;
}

static const weir_op triple_op = { .name = "triple", .config_size = sizeof(test_gate *), .run = run_triple };

/* The sum of a batch's values. */
static int run_sum(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const weir_batch *batch = in->data;
    uint64_t sum = 0;
    (void)worker;
    (void)task;
    for (size_t i = 0; i < batch->num_items; i++)
        sum += item_value(&batch->items[i]);
    ledger_fill(&ledger, out, sum, 0);
    return WEIR_OK;
}

static const weir_op sum_op = { .name = "sum", .takes = WEIR_TYPE_BATCH, .run = run_sum };

/* A source of `count` numbers from `first` on. */
typedef struct line_config {
    uint64_t first, count;
} line_config;

static int run_line(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const line_config *line = weir_task_config(task);
    uint64_t *made = worker;
    (void)in;
    if (*made == line->count)
        return WEIR_EOF;
    ledger_fill(&ledger, out, line->first + (*made)++, 0);
    return WEIR_OK;
}

static const weir_op line_op = {
    .name = "line",
    .config_size = sizeof(line_config),
    .worker_size = sizeof(uint64_t),
    .run = run_line,
};

static void add_affine(weir_builder *builder, uint64_t factor, uint64_t add)
{
    weir_builder_pipe(builder, &affine_op, &(affine_config){ factor, add }, sizeof(affine_config), NULL);
}

static void add_decide(weir_builder *builder, int (*decide)(uint64_t), const weir_stage_options *options)
{
    weir_builder_pipe(builder, &decide_op, &(decide_config){ .decide = decide }, sizeof(decide_config), options);
}

static weir_builder *line_of(uint64_t count)
{
    weir_builder *builder = weir_builder_new();
    ledger_init(&ledger);
    weir_builder_source(builder, &line_op, &(line_config){ 0, count }, sizeof(line_config), NULL);
    return builder;
}

static weir_pipeline *end_with_sink(weir_builder *builder, uint32_t threads)
{
    weir_builder_sink(builder, NULL);
    return build(builder, &(weir_pipeline_options){ .threads = threads });
}

/* ---- decisions ---------------------------------------------------------------------------------------------- */

static int skip_all(uint64_t value)
{
    (void)value;
    return WEIR_SKIP;
}

static int fail_never(uint64_t value)
{
    (void)value;
    return WEIR_OK;
}

static int fail_always(uint64_t value)
{
    (void)value;
    return WEIR_EDATA;
}

static int fail_odd(uint64_t value)
{
    return value % 2 ? WEIR_EDATA : WEIR_OK;
}

static int fail_sixths(uint64_t value)
{
    return value % 6 ? WEIR_OK : WEIR_EDATA;
}

static int fail_twelfths(uint64_t value)
{
    return value % 12 ? WEIR_OK : WEIR_EDATA;
}

static int fail_the_second(uint64_t value)
{
    return value == 2 ? WEIR_EDATA : WEIR_OK;
}

/* ---- what is delivered -------------------------------------------------------------------------------------- */

/* Takes items until something else comes, which must be `end`. */
static size_t collect(weir_pipeline *pipeline, uint64_t values[MOST_VALUES], int end)
{
    weir_item item;
    size_t num_values = 0;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        assert_true(num_values < MOST_VALUES);
        values[num_values++] = item_value(&item);
        weir_item_release(&item);
    }
    assert_int_equal(status, end);
    return num_values;
}

static void expect(weir_pipeline *pipeline, int end, const uint64_t *expected, size_t num_expected)
{
    uint64_t values[MOST_VALUES];
    size_t num_values = collect(pipeline, values, end);
    assert_int_equal(num_values, num_expected);
    for (size_t i = 0; i < num_values; i++)
        assert_int_equal(values[i], expected[i]);
}

#define EXPECT(pipeline, end, ...) \
    expect((pipeline), (end), (uint64_t[]){ __VA_ARGS__ }, LENGTH(((uint64_t[]){ __VA_ARGS__ })))

static void expect_nothing(weir_pipeline *pipeline, int end)
{
    expect(pipeline, end, NULL, 0);
}

/* An exact account, and every item released. */
static void finish(weir_pipeline *pipeline)
{
    weir_account account = account_of(pipeline, NULL);
    assert_account_is_exact(&account);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- sources ------------------------------------------------------------------------------------------------ */

static int skip_every_second(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t *calls = worker;
    (void)in;
    (void)task;
    if (*calls == 20)
        return WEIR_EOF;
    if ((*calls)++ % 2)
        return WEIR_SKIP;
    ledger_fill(&ledger, out, (*calls - 1) / 2, 0);
    return WEIR_OK;
}

TEST_CASE(what_a_source_skips_has_no_number)
{
    static const weir_op op = { .name = "skipping", .worker_size = sizeof(uint64_t), .run = skip_every_second };
    ledger_init(&ledger);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &op, NULL, 0, NULL);
    weir_pipeline *pipeline = end_with_sink(builder, 1);
    for (uint64_t i = 0; i < 10; i++) {
        weir_item item;
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        assert_int_equal(item_value(&item), i);
        assert_int_equal(item.seq, i);
        weir_item_release(&item);
    }
    expect_nothing(pipeline, WEIR_EOF);
    finish(pipeline);
}

/* ---- stages ------------------------------------------------------------------------------------------------- */

TEST_CASE(in_input_order_all_items_may_be_skipped)
{
    for (uint32_t slots = 1; slots <= 5; slots++) {
        weir_builder *builder = line_of(5);
        add_decide(builder, skip_all,
                   &(weir_stage_options){ .concurrency = slots, .output_order = WEIR_ORDER_INPUT });
        weir_pipeline *pipeline = end_with_sink(builder, 3);
        expect_nothing(pipeline, WEIR_EOF);
        finish(pipeline);
    }
}

TEST_CASE(a_generator_makes_several_of_each_input)
{
    static const weir_max_failures budgets[] = { { 0 }, { .kind = WEIR_FAILURES_COUNT, .count = 1 } };
    for (size_t i = 0; i < LENGTH(budgets); i++)
        for (uint32_t slots = 1; slots <= 3; slots += 2) {
            test_gate *no_gate = NULL;
            weir_builder *builder = line_of(3);
            weir_builder_pipe(builder, &triple_op, &no_gate, sizeof(test_gate *),
                              &(weir_stage_options){ .concurrency = slots,
                                                     .output_order = WEIR_ORDER_INPUT,
                                                     .max_failures = budgets[i] });
            weir_pipeline *pipeline = end_with_sink(builder, 3);
            EXPECT(pipeline, WEIR_EOF, 0, 1, 2, 1, 2, 3, 2, 3, 4);
            finish(pipeline);
        }
}

TEST_CASE(a_chunk_is_delivered_before_the_next_one_is_made)
{
    test_gate gate = GATE, *config = &gate;
    weir_item item;
    weir_builder *builder = line_of(2);
    weir_builder_pipe(builder, &triple_op, &config, sizeof(test_gate *), NULL);
    weir_pipeline *pipeline = end_with_sink(builder, 2);
    for (uint64_t i = 0; i < 6; i++) {
        gate_await_waiting(&gate, 1);
        assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_ETIMEDOUT);
        gate_let(&gate, 1);
        assert_int_equal(next_value(pipeline), i / 3 + i % 3);
    }
    expect_nothing(pipeline, WEIR_EOF);
    finish(pipeline);
}

TEST_CASE(pools_and_threads_of_stages_work_together)
{
    for (uint32_t own = 0; own < 8; own++) { /* bit by bit: which stage has threads of its own */
        weir_builder *builder = line_of(20);
        for (uint32_t i = 0; i < 3; i++)
            weir_builder_pipe(builder, &affine_op, &(affine_config){ 2, 1 }, sizeof(affine_config),
                              &(weir_stage_options){ .concurrency = 2,
                                                     .threads = own >> i & 1 ? 2 : 0,
                                                     .output_order = WEIR_ORDER_INPUT });
        weir_pipeline *pipeline = end_with_sink(builder, 1);
        uint64_t expected[20];
        for (uint64_t i = 0; i < 20; i++)
            expected[i] = 8 * i + 7;
        expect(pipeline, WEIR_EOF, expected, 20);
        finish(pipeline);
    }
}

/* ---- batches ------------------------------------------------------------------------------------------------ */

/* Collects values until their sum is ten or more; its flush outputs the rest. A value of 7 fails. */
typedef struct threshold_worker {
    uint64_t sum;
} threshold_worker;

static int run_threshold(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    threshold_worker *collected = worker;
    if (item_value(in) == 7)
        return weir_task_fail(task, WEIR_EDATA, 0, "no sevens");
    collected->sum += item_value(in);
    if (collected->sum < 10)
        return WEIR_KEPT;
    ledger_fill(&ledger, out, collected->sum, 0);
    collected->sum = 0;
    return WEIR_OK;
}

static int flush_threshold(void *worker, weir_item *out, weir_task *task)
{
    threshold_worker *collected = worker;
    (void)task;
    if (collected->sum == 0)
        return WEIR_SKIP;
    ledger_fill(&ledger, out, collected->sum, 0);
    collected->sum = 0;
    return WEIR_OK;
}

static const weir_op threshold_op = {
    .name = "threshold",
    .worker_size = sizeof(threshold_worker),
    .run = run_threshold,
    .flush = flush_threshold,
};

TEST_CASE(an_input_that_cannot_be_collected_is_lost_alone)
{
    weir_builder *builder = line_of(10);
    weir_builder_pipe(builder, &threshold_op, NULL, 0, NULL);
    weir_pipeline *pipeline = end_with_sink(builder, 1);
    EXPECT(pipeline, WEIR_EOF, 0 + 1 + 2 + 3 + 4, 5 + 6, 8 + 9);
    assert_int_equal(account_of(pipeline, "threshold").failed, 1);
    finish(pipeline);
    builder = line_of(10);
    weir_builder_pipe(builder, &threshold_op, NULL, 0,
                      &(weir_stage_options){ .max_failures = { .kind = WEIR_FAILURES_COUNT } });
    pipeline = end_with_sink(builder, 1);
    EXPECT(pipeline, WEIR_EFAILED, 0 + 1 + 2 + 3 + 4, 5 + 6);
    finish(pipeline);
}

/* An empty batch, and one of three. */
static int make_batches(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t *calls = worker;
    (void)in;
    (void)task;
    if (*calls == 3)
        return WEIR_EOF;
    weir_batch *batch = calloc(1, sizeof *batch);
    batch->num_items = (*calls)++ == 1 ? 3 : 0;
    batch->items = calloc(3, sizeof *batch->items);
    for (uint64_t i = 0; i < batch->num_items; i++)
        ledger_fill(&ledger, &batch->items[i], i, 0);
    out->data = batch;
    out->release = weir_batch_release;
    return WEIR_OK;
}

TEST_CASE(a_batch_of_ones_own_is_taken_apart_and_an_empty_one_disappears)
{
    static const weir_op op = {
        .name = "batches",
        .makes = WEIR_TYPE_BATCH,
        .worker_size = sizeof(uint64_t),
        .run = make_batches,
    };
    ledger_init(&ledger);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &op, NULL, 0, NULL);
    weir_pipe_disaggregate(builder, NULL);
    weir_pipeline *pipeline = end_with_sink(builder, 1);
    EXPECT(pipeline, WEIR_EOF, 0, 1, 2);
    finish(pipeline);
}

/* ---- failures ----------------------------------------------------------------------------------------------- */

#define COUNT_OF(n) \
    { \
        .kind = WEIR_FAILURES_COUNT, .count = (n) \
    }
#define RATE_OF(n, of) \
    { \
        .kind = WEIR_FAILURES_RATE, .num = (n), .den = (of) \
    }
#define ANY_NUMBER \
    { \
        .kind = WEIR_FAILURES_ANY \
    }

TEST_CASE(each_stage_has_a_count_of_its_own)
{
    for (weir_order order = WEIR_ORDER_COMPLETION; order <= WEIR_ORDER_INPUT; order++) {
        weir_builder *builder = line_of(20);
        add_decide(builder, fail_odd,
                   &(weir_stage_options){ .name = "odd", .output_order = order, .max_failures = COUNT_OF(-1) });
        add_decide(builder, fail_sixths,
                   &(weir_stage_options){ .name = "sixths", .output_order = order, .max_failures = COUNT_OF(3) });
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline =
            build(builder, &(weir_pipeline_options){ .threads = 1, .max_failures = COUNT_OF(2) });
        EXPECT(pipeline, WEIR_EFAILED, 2, 4, 8, 10, 14, 16); /* 0, 6 and 12 are tolerated, 18 is not */
        assert_int_equal(account_of(pipeline, "sixths").failed, 4);
        finish(pipeline);
    }
}

/* Each of two stages fails twice. A budget for both together would end it with the fourth failure. */
TEST_CASE(a_budget_of_the_pipeline_is_for_each_stage_by_itself)
{
    weir_builder *builder = line_of(10);
    add_decide(builder, fail_sixths, NULL);
    add_affine(builder, 1, 1); /* 2 to 6, 8 to 10 */
    add_decide(builder, fail_the_second, NULL);
    add_affine(builder, 1, 3); /* 6 to 9, 11 to 13 */
    add_decide(builder, fail_sixths, &(weir_stage_options){ .name = "last" });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 1, .max_failures = COUNT_OF(2) });
    EXPECT(pipeline, WEIR_EOF, 7, 8, 9, 11, 13);
    finish(pipeline);
}

TEST_CASE(pipelines_have_budgets_of_their_own)
{
    weir_pipeline *pipelines[2];
    ledger_init(&ledger);
    for (int i = 0; i < 2; i++) {
        weir_builder *builder = weir_builder_new();
        weir_builder_source(builder, &line_op, &(line_config){ 0, 10 }, sizeof(line_config), NULL);
        add_decide(builder, fail_odd, NULL);
        weir_builder_sink(builder, NULL);
        pipelines[i] = build(builder, &(weir_pipeline_options){ .threads = 1, .max_failures = COUNT_OF(i + 1) });
    }
    EXPECT(pipelines[1], WEIR_EFAILED, 0, 2, 4);
    EXPECT(pipelines[0], WEIR_EFAILED, 0, 2);
    weir_pipeline_free(pipelines[0]);
    weir_pipeline_free(pipelines[1]);
    ledger_close(&ledger);
}

TEST_CASE(each_stage_has_a_rate_of_its_own)
{
    for (weir_order order = WEIR_ORDER_COMPLETION; order <= WEIR_ORDER_INPUT; order++) {
        weir_builder *builder = line_of(100);
        add_decide(builder, fail_odd, &(weir_stage_options){ .output_order = order, .max_failures = COUNT_OF(-1) });
        add_decide(
            builder, fail_twelfths,
            &(weir_stage_options){ .name = "twelfths", .output_order = order, .max_failures = RATE_OF(11, 50) });
        weir_pipeline *pipeline = end_with_sink(builder, 1);
        assert_int_equal(drain_all(pipeline), 50 - 9);
        finish(pipeline);
    }
}

/* ---- routes ------------------------------------------------------------------------------------------------- */

typedef struct pick_config {
    int (*pick)(uint64_t value);
} pick_config;

static int pick_by_value(void *self, const weir_item *item)
{
    return ((const pick_config *)self)->pick(item_value(item));
}

static int parity(uint64_t value)
{
    return (int)(value % 2);
}

static int above_24(uint64_t value)
{
    return value > 24;
}

static int first_branch(uint64_t value)
{
    (void)value;
    return 0;
}

static int second_branch(uint64_t value)
{
    (void)value;
    return 1;
}

static int no_fourth(uint64_t value)
{
    return value % 4 ? 1 : 0;
}

static int minus_one(uint64_t value)
{
    (void)value;
    return -1;
}

static int seventh(uint64_t value)
{
    (void)value;
    return 7;
}

static int only_the_third_is_wrong(uint64_t value)
{
    return value == 3 ? 2 : 0;
}

static void add_route(weir_builder *builder, int (*pick)(uint64_t), uint32_t num_branches,
                      const weir_stage_options *options)
{
    static pick_config configs[16]; /* live as long as the pipelines do */
    static size_t num_configs;
    pick_config *config = &configs[num_configs++ % LENGTH(configs)];
    config->pick = pick;
    weir_builder_route(builder,
                       &(weir_route_config){ .pick = pick_by_value, .self = config, .num_branches = num_branches },
                       options);
}

TEST_CASE(a_pick_that_is_no_branch_fails_its_item)
{
    static int (*const picks[])(uint64_t) = { minus_one, seventh, only_the_third_is_wrong };
    for (size_t i = 0; i < LENGTH(picks); i++)
        for (int tolerated = 0; tolerated <= 1; tolerated++) {
            weir_max_failures none = COUNT_OF(0), any = ANY_NUMBER;
            weir_error error = { 0 };
            weir_builder *builder = line_of(5);
            add_route(builder, picks[i], 2, &(weir_stage_options){ .max_failures = tolerated ? any : none });
            weir_builder_branch(builder);
            add_affine(builder, 10, 0);
            weir_builder_branch(builder);
            weir_builder_join(builder, NULL);
            weir_pipeline *pipeline = end_with_sink(builder, 2);
            int end = tolerated ? WEIR_EOF : WEIR_EFAILED;
            if (picks[i] != only_the_third_is_wrong)
                expect_nothing(pipeline, end);
            else if (tolerated)
                EXPECT(pipeline, end, 0, 10, 20, 40);
            else
                EXPECT(pipeline, end, 0, 10, 20);
            assert_int_equal(weir_pipeline_error(pipeline, "route", &error), WEIR_EINVAL);
            assert_int_equal(weir_pipeline_error(pipeline, NULL, &error), tolerated ? WEIR_OK : WEIR_EINVAL);
            finish(pipeline);
        }
}

/* In one branch, in both, or in the only one that is used. The route does not wait for the ended branch. */
TEST_CASE(beyond_its_budget_a_branch_ends_the_pipeline)
{
    static const struct {
        int (*pick)(uint64_t);
        int (*decide)(uint64_t); /* in the first branch; in the second all fail */
    } cases[] = { { parity, fail_never }, { parity, fail_always }, { second_branch, fail_never } };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        int status;
        weir_error error = { 0 };
        weir_stage_options options = { .max_failures = COUNT_OF(0) };
        weir_builder *builder = line_of(UINT64_MAX);
        add_route(builder, cases[i].pick, 2, NULL);
        weir_builder_branch(builder);
        add_decide(builder, cases[i].decide, &options);
        weir_builder_branch(builder);
        add_decide(builder, fail_always, &options);
        weir_builder_join(builder, NULL);
        weir_pipeline *pipeline = end_with_sink(builder, 2);
        drain(pipeline, &status);
        assert_int_equal(status, WEIR_EFAILED);
        assert_int_equal(weir_pipeline_error(pipeline, NULL, &error), WEIR_EDATA);
        finish(pipeline);
    }
}

TEST_CASE(a_snapshot_shows_the_branches)
{
    static const char *const expected[][2] = {
        { "0:1:route", "route" }, { "0:2:double", "stage" }, { "0:3:one_more", "stage" }, { "0:4:join", "merge" }
    };
    weir_snapshot *snapshot;
    weir_builder *builder = line_of(0);
    add_route(builder, parity, 2, NULL);
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &affine_op, &(affine_config){ 2, 0 }, sizeof(affine_config),
                      &(weir_stage_options){ .name = "double" });
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &affine_op, &(affine_config){ 1, 1 }, sizeof(affine_config),
                      &(weir_stage_options){ .name = "one_more" });
    weir_builder_join(builder, NULL);
    weir_pipeline *pipeline = end_with_sink(builder, 1);
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    for (size_t i = 0; i < LENGTH(expected); i++) {
        assert_string_equal(snapshot->stages[1 + i].name, expected[i][0]);
        assert_string_equal(snapshot->stages[1 + i].kind, expected[i][1]);
    }
    weir_snapshot_free(snapshot);
    expect_nothing(pipeline, WEIR_EOF);
    finish(pipeline);
}

/* ---- what graphs deliver ------------------------------------------------------------------------------------ */

/* Epochs bring the same values each. */
static const struct {
    const char *what;
    uint32_t epochs;
    const char *graph;
    bool in_any_order; /* the values are sorted */
    const char *values;
} graphs[] = {
    { "an incomplete batch is the last", 0, "s13 a4 u", false, "6 22 38 12" },
    { "... of one item", 0, "s10 a3 u", false, "3 12 21 9" },
    { "... of two", 0, "s8 a3 u", false, "3 12 13" },
    { "no incomplete batch", 0, "s13 A4 u", false, "6 22 38" },
    { "... nor of two", 0, "s8 A3 u", false, "3 12" },
    { "no empty batch follows", 0, "s6 a3 u", false, "3 12" },
    { "... nor does anything, without incomplete ones", 0, "s6 A3 u", false, "3 12" },
    { "fewer items than a batch", 0, "s5 a10 u", false, "10" },
    { "... which is left out", 0, "s5 A10 u", false, "" },
    { "one item, no batch", 0, "s1 a5 u", false, "0" },
    { "batches of one", 0, "s3 a1 u", false, "0 1 2" },
    { "... which are complete", 0, "s3 A1 u", false, "0 1 2" },
    { "nothing to batch", 0, "s0 a3 u", false, "" },
    { "... and no incomplete batch", 0, "s0 A3 u", false, "" },
    { "stages before and behind a route", 0, "s5 *10 t | +1 | +2 ) *3", true, "3 33 63 96 126" },
    { "batches made and taken apart in a branch", 0, "s6 o | a2 d )", false, "0 1 2 3 4 5" },
    { "a route behind a merge", 0, "s3 s2@3 m p | *100 | +1000 )", true, "0 200 400 1001 1003" },
    { "lines of one stage, of three, an empty one", 0, "s3 *2 s2@4 +10 *3 +5 s0 m +100", true,
      "100 102 104 147 150" },
    { "a merge of one line", 0, "s3 m", false, "0 1 2" },
    { "lines with slots and batches", 0, "s6 +100x3 a2 d s5@50 +100x3 a2 d m", true,
      "100 101 102 103 104 105 150 151 152 153 154" },
    { "epochs of one item", 3, "s1", false, "0" },
    { "epochs of full batches", 3, "s6 a3 u", false, "3 12" },
    { "epochs without incomplete batches", 3, "s5 A3 u", false, "3" },
    { "epochs of batches behind four slots", 3, "s10 *2x4 a3 u", false, "6 24 42 18" },
    { "empty epochs pass a route", 3, "s0 p | *2 | )", false, "" },
    { "epochs pass a route within a branch", 3, "s8 p | q | | *10 ) | +100 )", true, "0 4 20 60 101 103 105 107" },
    { "epochs of batches within a branch", 3, "s6 p | a2 u | +100 )", true, "2 4 101 103 105" },
};

/* s6@3: a source of six values from 3 on; *2x4: times two, in four slots; +2: plus two; a3 and A3: batches of three, A
   without an incomplete one; u: their sums; d: taken apart; p, q, t, o: a route; |: its next branch; ): its join; m: a
   merge. */
static void add_part(weir_builder *builder, const char *part, uint32_t epochs)
{
    char *rest;
    uint64_t number = strtoull(part + 1, &rest, 10), second = *rest ? strtoull(rest + 1, NULL, 10) : 0;
    weir_stage_options of_source = { .epochs = epochs };
    weir_stage_options of_stage = { .concurrency = (uint32_t)second, .output_order = WEIR_ORDER_INPUT };
    weir_aggregate_config batches = { .num_items = number, .drop_last = *part == 'A' };
    affine_config affine = { *part == '*' ? number : 1, *part == '+' ? number : 0 };
    switch (*part) {
    case 's':
        weir_builder_source(builder, &line_op, &(line_config){ second, number }, sizeof(line_config), &of_source);
        break;
    case '*':
    case '+': weir_builder_pipe(builder, &affine_op, &affine, sizeof affine, &of_stage); break;
    case 'a':
    case 'A': weir_pipe_aggregate(builder, &batches, NULL); break;
    case 'u': weir_builder_pipe(builder, &sum_op, NULL, 0, NULL); break;
    case 'd': weir_pipe_disaggregate(builder, NULL); break;
    case 'p': add_route(builder, parity, 2, NULL); break;
    case 'q': add_route(builder, no_fourth, 2, NULL); break;
    case 't': add_route(builder, above_24, 2, NULL); break;
    case 'o': add_route(builder, first_branch, 1, NULL); break;
    case '|': weir_builder_branch(builder); break;
    case ')': weir_builder_join(builder, NULL); break;
    case 'm': weir_builder_merge(builder, NULL, NULL); break;
    default: fail_msg("no part of a graph: %s", part);
    }
}

static int compare_values(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

static void expect_of_graph(weir_pipeline *pipeline, size_t i, int end)
{
    uint64_t values[MOST_VALUES];
    char text[256] = "";
    size_t length = 0, num_values = collect(pipeline, values, end);
    if (graphs[i].in_any_order)
        qsort(values, num_values, sizeof *values, compare_values);
    for (size_t j = 0; j < num_values; j++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%d", j ? " " : "", (int)values[j]);
        assert_true(length < sizeof text);
    }
    if (strcmp(text, graphs[i].values) != 0)
        fail_msg("%s: %s: \"%s\", not \"%s\"", graphs[i].what, graphs[i].graph, text, graphs[i].values);
}

TEST_CASE(graphs_deliver_what_they_describe)
{
    for (size_t i = 0; i < LENGTH(graphs); i++) {
        char parts[64];
        weir_builder *builder = weir_builder_new();
        ledger_init(&ledger);
        assert_true(snprintf(parts, sizeof parts, "%s", graphs[i].graph) < (int)sizeof parts);
        for (char *part = strtok(parts, " "); part; part = strtok(NULL, " "))
            add_part(builder, part, graphs[i].epochs);
        weir_pipeline *pipeline = end_with_sink(builder, 4);
        for (uint32_t epoch = 0; epoch < graphs[i].epochs; epoch++)
            expect_of_graph(pipeline, i, WEIR_EPOCH);
        if (graphs[i].epochs)
            expect_nothing(pipeline, WEIR_EOF);
        else
            expect_of_graph(pipeline, i, WEIR_EOF);
        finish(pipeline);
    }
}

/* ---- merges ------------------------------------------------------------------------------------------------- */

/* Adds a source of `count` values from `first` on. */
static void add_line(weir_builder *builder, uint64_t first, uint64_t count)
{
    weir_builder_source(builder, &line_op, &(line_config){ first, count }, sizeof(line_config), NULL);
}

TEST_CASE(a_failure_behind_a_merge_ends_both_lines)
{
    weir_builder *builder = line_of(UINT64_MAX);
    add_affine(builder, 1, 0);
    add_line(builder, 0, UINT64_MAX);
    weir_builder_merge(builder, &(weir_merge_config){ .order = WEIR_MERGE_ROUND_ROBIN }, NULL);
    add_decide(builder, fail_the_second, &(weir_stage_options){ .max_failures = COUNT_OF(0) });
    weir_pipeline *pipeline = end_with_sink(builder, 2);
    EXPECT(pipeline, WEIR_EFAILED, 0, 0, 1, 1);
    finish(pipeline);
}

/* ---- epochs ------------------------------------------------------------------------------------------------- */

enum { EPOCHS = 3 };

static weir_builder *epochs_of(uint64_t count)
{
    weir_builder *builder = weir_builder_new();
    ledger_init(&ledger);
    weir_builder_source(builder, &line_op, &(line_config){ 0, count }, sizeof(line_config),
                        &(weir_stage_options){ .epochs = EPOCHS });
    return builder;
}

static void expect_of_epoch(weir_pipeline *pipeline, uint64_t epoch, int parity_of_values)
{
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    assert_int_equal(item.epoch, epoch);
    assert_int_equal(item_value(&item) % 2, parity_of_values);
    weir_item_release(&item);
}

/* Odd items are through at once, even ones are pending: the odd ones of the next epoch wait for them. */
TEST_CASE(a_fast_branch_does_not_run_into_the_next_epoch)
{
    static test_pending pending;
    weir_item item;
    pending_init(&pending);
    weir_builder *builder = epochs_of(4);
    add_route(builder, parity, 2, NULL);
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &pending_op, &pending, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_join(builder, NULL);
    weir_pipeline *pipeline = end_with_sink(builder, 2);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        expect_of_epoch(pipeline, epoch, 1);
        expect_of_epoch(pipeline, epoch, 1);
        pending_await(&pending, 2);
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_MILLISECOND), WEIR_ETIMEDOUT);
        for (int i = 0; i < 2; i++) {
            weir_item *in, out = { 0 };
            weir_task *task = pending_take(&pending, &in);
            weir_item_move(&out, in);
            weir_task_complete(task, WEIR_OK, &out);
            expect_of_epoch(pipeline, epoch, 0);
        }
        expect_nothing(pipeline, WEIR_EPOCH);
    }
    expect_nothing(pipeline, WEIR_EOF);
    finish(pipeline);
}

static int init_counted(void *worker, const void *config, weir_task *task)
{
    (void)worker;
    (void)task;
    counter_add(*(test_counter *const *)config, 1);
    return WEIR_OK;
}

TEST_CASE(workers_live_through_all_epochs)
{
    const weir_op op = {
        .name = "counted",
        .config_size = sizeof(test_counter *),
        .worker_size = 1,
        .worker_init = init_counted,
        .run = pass_op.run,
    };
    test_counter inits = COUNTER, *config = &inits;
    weir_builder *builder = epochs_of(5);
    weir_builder_pipe(builder, &op, &config, sizeof(test_counter *), NULL);
    weir_pipeline *pipeline = end_with_sink(builder, 4);
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        EXPECT(pipeline, WEIR_EPOCH, 0, 1, 2, 3, 4);
    expect_nothing(pipeline, WEIR_EOF);
    finish(pipeline);
    assert_int_equal(counter_value(&inits), 1);
}

TEST_CASE(a_source_that_fails_within_an_epoch_fails_the_pipeline)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .end_status = WEIR_EIO };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .epochs = WEIR_ENDLESS });
    weir_pipeline *pipeline = end_with_sink(builder, 1);
    EXPECT(pipeline, WEIR_EFAILED, 0);
    finish(pipeline);
}

/* ---- the consumer ------------------------------------------------------------------------------------------- */

/* The next status that is not WEIR_ETIMEDOUT, without ever waiting inside. */
static int poll_next(weir_pipeline *pipeline, weir_item *item)
{
    int status;
    while ((status = weir_pipeline_next(pipeline, item, 0)) == WEIR_ETIMEDOUT)
        sched_yield();
    return status;
}

TEST_CASE(who_only_polls_loses_nothing)
{
    enum { COUNT = 200 };
    weir_item item;
    weir_builder *builder = epochs_of(COUNT);
    add_affine(builder, 1, 1);
    weir_pipeline *pipeline = end_with_sink(builder, 2);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (uint64_t i = 0; i < COUNT; i++) {
            assert_int_equal(poll_next(pipeline, &item), WEIR_OK);
            assert_int_equal(item_value(&item), i + 1);
            weir_item_release(&item);
        }
        assert_int_equal(poll_next(pipeline, &item), WEIR_EPOCH);
    }
    assert_int_equal(poll_next(pipeline, &item), WEIR_EOF);
    assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_EOF);
    finish(pipeline);
}

TEST_CASE(a_timeout_loses_no_item)
{
    test_gate gate = GATE;
    weir_item item;
    weir_builder *builder = line_of(20);
    weir_builder_pipe(builder, &gated_op, &gate, 0, NULL);
    weir_pipeline *pipeline = end_with_sink(builder, 2);
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, (int64_t)i * WEIR_MICROSECOND), WEIR_ETIMEDOUT);
        gate_let(&gate, 1);
        while (weir_pipeline_next(pipeline, &item, (int64_t)i * WEIR_MICROSECOND) == WEIR_ETIMEDOUT)
            ;
        assert_int_equal(item_value(&item), i);
        weir_item_release(&item);
    }
    expect_nothing(pipeline, WEIR_EOF);
    finish(pipeline);
}

/* ---- figures ------------------------------------------------------------------------------------------------ */

TEST_CASE(percentiles_of_equal_values_are_that_value)
{
    static weir_histogram times;
    for (int i = 0; i < 20; i++)
        weir_histogram_record(&times, 42 * WEIR_MILLISECOND);
    for (int percent = 0; percent <= 100; percent += 10) {
        int64_t value_ns = weir_histogram_quantile_ns(&times, percent / 100.);
        assert_int_equal((value_ns + WEIR_MILLISECOND / 2) / WEIR_MILLISECOND, 42);
    }
}

/* ---- the process -------------------------------------------------------------------------------------------- */

static weir_pipeline *never_freed;

/* ThreadSanitizer reports threads that are not joined, which is what this test does. */
TEST_CASE(a_process_may_end_without_freeing_its_pipeline)
{
#ifdef SANITIZED_THREADS
    skip();
#endif
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        weir_builder *builder = line_of(UINT64_MAX);
        weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
        never_freed = end_with_sink(builder, 2);
        next_value(never_freed);
        exit(42);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

/* ---- the list ----------------------------------------------------------------------------------------------- */

/* Rows are numbered from 1; a row that passes names an existing test, any other row gives a reason. */
TEST_CASE(the_list_of_behaviours_names_tests_that_are_there)
{
    static const char document[] = "docs/spdl-behaviours.md";
    regex_t row;
    assert_int_equal(regcomp(&row, "^\\| ([0-9]+) \\| [^|]+ \\| (pass|differs) \\| ([^|]+) \\|$", REG_EXTENDED), 0);
    char *list = named_tests_read(document);
    int num_rows = 0;
    for (char *line = strtok(list, "\n"); line; line = strtok(NULL, "\n")) {
        regmatch_t found[4];
        if (line[0] != '|' || line[2] < '0' || line[2] > '9')
            continue;
        if (regexec(&row, line, LENGTH(found), found, 0) != 0)
            fail_msg("%s: no row of four columns: %s", document, line);
        assert_int_equal(atoi(line + found[1].rm_so), ++num_rows);
        bool passes = strncmp(line + found[2].rm_so, "pass", 4) == 0;
        if (named_tests_check(document, line + found[3].rm_so) == 0 && passes)
            fail_msg("%s: no test in: %s", document, line);
    }
    assert_true(num_rows >= 200);
    free(list);
    regfree(&row);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
