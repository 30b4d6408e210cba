/* Descriptions of pipelines: they are printed as they are, and copies of them build the same pipeline. */
#include "tests/support.h"

static test_ledger ledger;
static test_numbers few_numbers = { .ledger = &ledger, .count = 6 };

/* ---- shapes --------------------------------------------------------------------------------------------------------- */

static int pick_odd(void *self, const weir_item *item)
{
    (void)self;
    return (int)(item_value(item) % 2);
}

static const weir_route_config by_parity = { .pick = pick_odd, .num_branches = 2 };

static void describe_line(weir_builder *builder)
{
    weir_builder_source(builder, &numbers_op, &few_numbers, 0, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
}

static int begin_nothing(void *self, void *state, weir_task *task, const weir_item *in)
{
    (void)self;
    (void)state;
    (void)task;
    (void)in;
    return WEIR_OK;
}

static int start_nothing(void *self, const char *stage, weir_error *error)
{
    (void)self;
    (void)stage;
    (void)error;
    return WEIR_OK;
}

static void describe_options(weir_builder *builder)
{
    static const weir_task_hook task_hooks[2] = { { .begin = begin_nothing }, { .begin = begin_nothing } };
    static const weir_stage_hook stage_hook = { .start = start_nothing };
    weir_builder_source(builder, &numbers_op, &few_numbers, 0,
                        &(weir_stage_options){ .name = "count", .threads = 1, .epochs = 3, .queue_items = 1 });
    weir_builder_pipe(builder, &pass_op, NULL, 0,
                      &(weir_stage_options){ .concurrency = 4,
                                             .queue_items = 8,
                                             .queue_bytes = 4096,
                                             .threads = 2,
                                             .output_order = WEIR_ORDER_INPUT,
                                             .max_failures = { .kind = WEIR_FAILURES_COUNT, .count = 7 },
                                             .stage_hooks = &stage_hook,
                                             .num_stage_hooks = 1,
                                             .task_hooks = task_hooks,
                                             .num_task_hooks = 2,
                                             .task_deadline_ns = 1500 * WEIR_MILLISECOND,
                                             .stats_interval_ns = WEIR_FOREVER });
    weir_builder_pipe(builder, &pass_op, NULL, 0,
                      &(weir_stage_options){ .name = "again",
                                             .max_failures = { .kind = WEIR_FAILURES_RATE, .num = 1, .den = 20 },
                                             .stats_interval_ns = 120 * WEIR_SECOND });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 5 });
}

static void describe_routes(weir_builder *builder)
{
    weir_builder_source(builder, &numbers_op, &few_numbers, 0, NULL);
    weir_builder_route(builder, &by_parity, &(weir_stage_options){ .name = "parity", .concurrency = 2 });
    weir_builder_branch(builder);
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "odd" });
    weir_builder_route(
        builder, &(weir_route_config){ .pick = pick_odd, .num_branches = 2, .look_ahead_items = WEIR_NO_LOOK_AHEAD },
        &(weir_stage_options){ .name = "inner" });
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "never" });
    weir_builder_branch(builder);
    weir_builder_join(builder, &(weir_stage_options){ .name = "inner-end" });
    weir_builder_join(builder, &(weir_stage_options){ .output_order = WEIR_ORDER_INPUT });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
}

static void describe_merge(weir_builder *builder)
{
    static const uint32_t weights[] = { 3, 1 };
    weir_builder_source(builder, &numbers_op, &few_numbers, 0, &(weir_stage_options){ .name = "a" });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_source(builder, &numbers_op, &few_numbers, 0, &(weir_stage_options){ .name = "b" });
    weir_builder_merge(builder,
                       &(weir_merge_config){ .order = WEIR_MERGE_RANDOM,
                                             .weights = weights,
                                             .num_weights = 2,
                                             .seed = 9,
                                             .end = WEIR_MERGE_END_FIRST },
                       NULL);
    weir_builder_sink(builder, NULL);
}

typedef struct shape {
    void (*describe)(weir_builder *builder);
    const char *text;
} shape;

static const shape shapes[] = {
    { describe_line, "src: source numbers, queue of 2 items\n"
                     "pass: pass, 1 slot, queue of 2 items\n"
                     "sink: queue of 3 items\n" },
    { describe_options, "count: source numbers, queue of 1 item, 1 thread of its own, 3 epochs\n"
                        "pass: pass, 4 slots, queue of 8 items or 4096 bytes, 2 threads of its own, in input order, "
                        "at most 7 failures, "
                        "deadline 1.5 s, figures at the end, 1 stage hook, 2 task hooks\n"
                        "again: pass, 1 slot, queue of 2 items, at most 1 failures in 20 tasks, figures each 120 s\n"
                        "sink: queue of 5 items\n" },
    { describe_routes, "src: source numbers, queue of 2 items\n"
                       "parity: route of 2 branches, sets aside up to 16 items, 2 slots, queue of 2 items\n"
                       "  branch 0\n"
                       "  branch 1\n"
                       "    odd: pass, 1 slot, queue of 2 items\n"
                       "    inner: route of 2 branches, sets aside up to 0 items, 1 slot, queue of 2 items\n"
                       "      branch 0\n"
                       "        never: pass, 1 slot, queue of 2 items\n"
                       "      branch 1\n"
                       "    inner-end: end of route inner, queue of 2 items\n"
                       "join: end of route parity, queue of 2 items, in input order\n"
                       "pass: pass, 1 slot, queue of 2 items\n"
                       "sink: queue of 3 items\n" },
    { describe_merge,
      "a: source numbers, queue of 2 items\n"
      "pass: pass, 1 slot, queue of 2 items\n"
      "b: source numbers, queue of 2 items\n"
      "merge: merge of pass, b; order random 3 1, seed 9, ends with the first input; queue of 2 items\n"
      "sink: queue of 3 items\n" },
};

static void assert_prints(const weir_builder *builder, const char *expected)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(weir_builder_print(builder, out), WEIR_OK);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

TEST_CASE(each_shape_is_printed_in_the_order_of_flow)
{
    for (size_t i = 0; i < LENGTH(shapes); i++) {
        weir_builder *builder = weir_builder_new();
        shapes[i].describe(builder);
        assert_prints(builder, shapes[i].text);
        weir_builder_free(builder);
    }
}

TEST_CASE(a_mistake_is_printed_behind_what_was_described_before_it)
{
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &few_numbers, 0, NULL);
    weir_builder_join(builder, NULL);
    assert_prints(builder,
                  "src: source numbers, queue of 2 items\n"
                  "error: no route is open: call weir_builder_route() before weir_builder_join() (WEIR_EINVAL)\n");
    weir_builder *copy = weir_builder_copy(builder);
    weir_builder_free(builder);
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    assert_int_equal(weir_builder_build(copy, NULL, &pipeline, &error), WEIR_EINVAL);
    assert_string_equal(error.message, "no route is open: call weir_builder_route() before weir_builder_join()");
}

static int refuse_text(void *self, const char *text, size_t size_bytes)
{
    (void)self;
    (void)text;
    (void)size_bytes;
    return WEIR_EIO;
}

TEST_CASE(a_stream_that_takes_nothing_is_an_error)
{
    weir_builder *builder = weir_builder_new();
    FILE *out = weir_text_open(refuse_text, NULL);
    describe_line(builder);
    assert_int_equal(weir_builder_print(builder, out), WEIR_EIO);
    fclose(out);
    assert_int_equal(weir_builder_print(builder, NULL), WEIR_EINVAL);
    weir_builder_free(builder);
    assert_int_equal(weir_builder_print(NULL, stderr), WEIR_EINVAL);
    assert_null(weir_builder_copy(NULL));
}

/* ---- copies --------------------------------------------------------------------------------------------------------- */

/* The values in the order of delivery, as a text. */
static void run_to_text(weir_builder *builder, char *text, size_t size)
{
    weir_pipeline *pipeline = build(builder, NULL);
    weir_item item;
    size_t length = 0;
    text[0] = '\0';
    for (int status; (status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) != WEIR_EOF;) {
        if (status == WEIR_EPOCH) {
            length += (size_t)snprintf(text + length, size - length, "| ");
            continue;
        }
        assert_int_equal(status, WEIR_OK);
        length += (size_t)snprintf(text + length, size - length, "%u ", (unsigned)item_value(&item));
        weir_item_release(&item);
    }
    weir_pipeline_free(pipeline);
}

TEST_CASE(a_copy_of_each_shape_is_the_same_description_and_pipeline)
{
    for (size_t i = 0; i < LENGTH(shapes); i++) {
        char original_values[512], copied_values[512];
        ledger_init(&ledger);
        weir_builder *builder = weir_builder_new();
        shapes[i].describe(builder);
        weir_builder *copy = weir_builder_copy(builder), *copy_of_copy = weir_builder_copy(copy);
        run_to_text(builder, original_values, sizeof original_values);
        assert_prints(copy, shapes[i].text);
        assert_prints(copy_of_copy, shapes[i].text);
        run_to_text(copy, copied_values, sizeof copied_values);
        assert_string_equal(copied_values, original_values);
        run_to_text(copy_of_copy, copied_values, sizeof copied_values);
        assert_string_equal(copied_values, original_values);
        ledger_close(&ledger);
    }
}

/* Calls that follow go on in each of them for itself: within a branch, and between two sources. */
TEST_CASE(a_description_that_is_not_complete_is_copied_with_what_is_open)
{
    ledger_init(&ledger);
    weir_builder *both[2] = { weir_builder_new() };
    weir_builder_source(both[0], &numbers_op, &few_numbers, 0, NULL);
    weir_builder_source(both[0], &numbers_op, &few_numbers, 0, NULL);
    weir_builder_route(both[0], &by_parity, NULL);
    weir_builder_branch(both[0]);
    weir_builder_branch(both[0]);
    both[1] = weir_builder_copy(both[0]);
    for (int i = 0; i < 2; i++) {
        weir_builder_pipe(both[i], &pass_op, NULL, 0, NULL);
        weir_builder_join(both[i], NULL);
        weir_builder_merge(both[i], NULL, NULL);
        weir_builder_sink(both[i], NULL);
        weir_pipeline *pipeline = build(both[i], NULL);
        assert_int_equal(drain_all(pipeline), 12);
        weir_pipeline_free(pipeline);
    }
    ledger_close(&ledger);
}

/* A config that owns a text, and says when a copy of it is made and freed. */
typedef struct text_config {
    char *text;
    test_counter *inits, *frees;
    int *left_before_failure; /* copies that config_init still makes; NULL = any number */
} text_config;

static int text_init(void *config, weir_error *error)
{
    text_config *text = config;
    if (text->left_before_failure && (*text->left_before_failure)-- == 0)
        return weir_error_set(error, WEIR_EIO, 0, "no more copies");
    text->text = strdup(text->text);
    counter_add(text->inits, 1);
    return text->text ? WEIR_OK : WEIR_ENOMEM;
}

static void text_free(void *config)
{
    text_config *text = config;
    counter_add(text->frees, 1);
    memset(text->text, 'x', strlen(text->text));
    free(text->text);
}

static int text_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const text_config *text = weir_task_config(task);
    REQUIRE(strcmp(text->text, "as it was") == 0);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op text_op = {
    .name = "text",
    .config_size = sizeof(text_config),
    .config_init = text_init,
    .config_free = text_free,
    .run = text_run,
};

static weir_builder *builder_with_text(text_config *config)
{
    char text[] = "as it was", name[] = "stage";
    weir_builder *builder = builder_with(&few_numbers);
    config->text = text;
    weir_builder_pipe(builder, &text_op, config, sizeof *config, &(weir_stage_options){ .name = name });
    weir_builder_sink(builder, NULL);
    memset(text, 'x', sizeof text - 1);
    memset(name, 'x', sizeof name - 1);
    return builder;
}

TEST_CASE(copies_own_their_configs_and_names)
{
    ledger_init(&ledger);
    test_counter inits = COUNTER, frees = COUNTER;
    text_config config = { .inits = &inits, .frees = &frees };
    weir_builder *builder = builder_with_text(&config);
    weir_builder *copies[2] = { weir_builder_copy(builder), weir_builder_copy(builder) };
    weir_builder_free(builder);
    assert_int_equal(counter_value(&frees), 1);
    weir_pipeline *pipelines[2] = { build(copies[0], NULL), build(copies[1], NULL) };
    for (int i = 0; i < 2; i++) {
        assert_string_equal(stage_snapshot(pipelines[i], "0:1:stage").name, "0:1:stage");
        assert_int_equal(drain_all(pipelines[i]), 6);
        weir_pipeline_free(pipelines[i]);
    }
    assert_int_equal(counter_value(&inits), 3);
    assert_int_equal(counter_value(&frees), 3);
    ledger_close(&ledger);
}

TEST_CASE(a_config_that_cannot_be_copied_is_told_when_the_copy_is_built)
{
    test_counter inits = COUNTER, frees = COUNTER;
    int left = 1;
    text_config config = { .inits = &inits, .frees = &frees, .left_before_failure = &left };
    weir_builder *builder = builder_with_text(&config);
    weir_builder *copy = weir_builder_copy(builder);
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    assert_int_equal(weir_builder_build(copy, NULL, &pipeline, &error), WEIR_EIO);
    assert_string_equal(error.stage, "stage");
    assert_string_equal(error.message, "no more copies");
    weir_builder_free(builder);
    assert_int_equal(counter_value(&inits), 1);
    assert_int_equal(counter_value(&frees), 1);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
