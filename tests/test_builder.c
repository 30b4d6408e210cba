/* The builder: every error is reported with its stage, the defaults match the headers, and options are copied. */
#include "tests/support.h"

static test_ledger ledger;
static test_numbers no_numbers = { .ledger = &ledger };

/* ---- mistakes ----------------------------------------------------------------------------------------------- */

static const weir_op no_run_op = { .name = "idle" };
static const weir_op no_name_op = { .run = NULL };
static const weir_op bad_name_op = { .name = "two words" };

static void good_source(weir_builder *builder)
{
    weir_builder_source(builder, &numbers_op, &no_numbers, 0, NULL);
}

static void with_source(weir_builder *builder, const weir_stage_options *options)
{
    weir_builder_source(builder, &numbers_op, &no_numbers, 0, options);
    weir_builder_sink(builder, NULL);
}

static void with_stage(weir_builder *builder, const weir_op *op, const weir_stage_options *options)
{
    good_source(builder);
    weir_builder_pipe(builder, op, NULL, 0, options);
    weir_builder_sink(builder, NULL);
}

static void nothing(weir_builder *builder)
{
    (void)builder;
}

static void only_a_source(weir_builder *builder)
{
    good_source(builder);
}

static void stage_first(weir_builder *builder)
{
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    good_source(builder);
    weir_builder_sink(builder, NULL);
}

static void sink_first(weir_builder *builder)
{
    weir_builder_sink(builder, NULL);
    good_source(builder);
}

static void two_sources_without_a_merge(weir_builder *builder)
{
    good_source(builder);
    good_source(builder);
    weir_builder_sink(builder, NULL);
}

static void stage_behind_sink(weir_builder *builder)
{
    good_source(builder);
    weir_builder_sink(builder, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
}

static void two_sinks(weir_builder *builder)
{
    good_source(builder);
    weir_builder_sink(builder, NULL);
    weir_builder_sink(builder, NULL);
}

static void null_source(weir_builder *builder)
{
    weir_builder_source(builder, NULL, NULL, 0, NULL);
}

static void null_stage(weir_builder *builder)
{
    with_stage(builder, NULL, NULL);
}

static void named_null_stage(weir_builder *builder)
{
    with_stage(builder, NULL, &(weir_stage_options){ .name = "later" });
}

static void no_run(weir_builder *builder)
{
    with_stage(builder, &no_run_op, NULL);
}

static void no_name(weir_builder *builder)
{
    with_stage(builder, &no_name_op, NULL);
}

static void bad_name_of_the_operation(weir_builder *builder)
{
    with_stage(builder, &bad_name_op, NULL);
}

static void empty_name(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .name = "" });
}

static void foreign_name(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .name = "d\xc3\xa9" });
}

static void long_name(weir_builder *builder)
{
    char name[66];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    with_stage(builder, &pass_op, &(weir_stage_options){ .name = name });
}

static void concurrent_source(weir_builder *builder)
{
    with_source(builder, &(weir_stage_options){ .concurrency = 2 });
}

static void much_concurrency(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .concurrency = UINT32_MAX });
}

static void long_queue(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .queue_items = UINT32_MAX });
}

static void long_sink_queue(weir_builder *builder)
{
    good_source(builder);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = UINT32_MAX });
}

static void many_threads(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .threads = UINT32_MAX });
}

static void no_order(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .output_order = (weir_order)7 });
}

static void rate_of_nothing(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .max_failures = { .kind = WEIR_FAILURES_RATE, .num = 1 } });
}

static void no_kind_of_failures(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .max_failures = { .kind = (weir_failures_kind)9 } });
}

static void negative_failures(weir_builder *builder)
{
    with_stage(builder, &pass_op,
               &(weir_stage_options){ .max_failures = { .kind = WEIR_FAILURES_COUNT, .count = -2 } });
}

static void missing_task_hooks(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .num_task_hooks = 1 });
}

static void missing_stage_hooks(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .num_stage_hooks = 1 });
}

static void task_hooks_of_a_source(weir_builder *builder)
{
    with_source(builder, &(weir_stage_options){ .task_hooks = &(weir_task_hook){ 0 }, .num_task_hooks = 1 });
}

static int refuse(void *config, weir_error *error)
{
    (void)config;
    return weir_error_set(error, WEIR_ENOTFOUND, -42, "no folder \"%s\": name one that is there", "/x");
}

static int refuse_silently(void *config, weir_error *error)
{
    (void)config;
    (void)error;
    return WEIR_ENOMEM;
}

static void never(void *config)
{
    (void)config;
    require_failed("config_free after config_init failed", __FILE__, __LINE__);
}

static int never_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    (void)task;
    require_failed("the operation of a pipeline that was not built ran", __FILE__, __LINE__);
    return WEIR_EFAILED;
}

static const weir_op refusing_op = {
    .name = "reader",
    .config_size = 8,
    .config_init = refuse,
    .config_free = never,
    .run = never_run,
};
static const weir_op silent_op = {
    .name = "silent",
    .config_size = 8,
    .config_init = refuse_silently,
    .config_free = never,
    .run = never_run,
};

static void bad_config(weir_builder *builder)
{
    with_stage(builder, &refusing_op, NULL);
}

static void bad_config_of_a_source(weir_builder *builder)
{
    weir_builder_source(builder, &refusing_op, NULL, 0, &(weir_stage_options){ .name = "files" });
    weir_builder_sink(builder, NULL);
}

static void bad_config_without_a_word(weir_builder *builder)
{
    with_stage(builder, &silent_op, NULL);
}

static void several_mistakes(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .name = "first", .concurrency = UINT32_MAX });
    weir_builder_pipe(builder, &pass_op, NULL, 0,
                      &(weir_stage_options){ .name = "second", .queue_items = UINT32_MAX });
}

static void negative_deadline(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .task_deadline_ns = -1 });
}

static void epochs_of_a_stage(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .epochs = 2 });
}

static void failures_of_a_source(weir_builder *builder)
{
    with_source(builder, &(weir_stage_options){ .max_failures = { .kind = WEIR_FAILURES_COUNT } });
}

/* ---- mistakes with routes and merges ------------------------------------------------------------------------ */

static int pick_first(void *self, const weir_item *item)
{
    (void)self;
    (void)item;
    return 0;
}

static const weir_route_config two_branches = { .pick = pick_first, .num_branches = 2 };

static void route_of(weir_builder *builder, uint32_t num_described)
{
    good_source(builder);
    weir_builder_route(builder, &two_branches, NULL);
    for (uint32_t i = 0; i < num_described; i++)
        weir_builder_branch(builder);
}

static void route_without_options(weir_builder *builder)
{
    good_source(builder);
    weir_builder_route(builder, NULL, NULL);
}

static void route_without_pick(weir_builder *builder)
{
    good_source(builder);
    weir_builder_route(builder, &(weir_route_config){ .num_branches = 2 }, NULL);
}

static void route_without_branches(weir_builder *builder)
{
    good_source(builder);
    weir_builder_route(builder, &(weir_route_config){ .pick = pick_first }, NULL);
}

static void route_of_too_many_branches(weir_builder *builder)
{
    good_source(builder);
    weir_builder_route(builder, &(weir_route_config){ .pick = pick_first, .num_branches = UINT32_MAX }, NULL);
}

static void route_that_looks_too_far(weir_builder *builder)
{
    good_source(builder);
    weir_builder_route(
        builder,
        &(weir_route_config){ .pick = pick_first, .num_branches = 2, .look_ahead_items = WEIR_MAX_QUEUE_ITEMS + 1 },
        NULL);
}

static void route_first(weir_builder *builder)
{
    weir_builder_route(builder, &two_branches, &(weir_stage_options){ .name = "by-size" });
}

static void stage_before_the_branch(weir_builder *builder)
{
    route_of(builder, 0);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
}

static void branch_without_a_route(weir_builder *builder)
{
    good_source(builder);
    weir_builder_branch(builder);
}

static void join_without_a_route(weir_builder *builder)
{
    good_source(builder);
    weir_builder_join(builder, NULL);
}

static void one_branch_too_many(weir_builder *builder)
{
    route_of(builder, 3);
}

static void one_branch_too_few(weir_builder *builder)
{
    route_of(builder, 1);
    weir_builder_join(builder, NULL);
}

static void sink_in_a_route(weir_builder *builder)
{
    route_of(builder, 2);
    weir_builder_sink(builder, NULL);
}

static void source_in_a_route(weir_builder *builder)
{
    route_of(builder, 1);
    good_source(builder);
}

static void merge_in_a_route(weir_builder *builder)
{
    route_of(builder, 2);
    weir_builder_merge(builder, NULL, NULL);
}

static void route_that_stays_open(weir_builder *builder)
{
    route_of(builder, 2);
}

static void merge_of_nothing(weir_builder *builder)
{
    weir_builder_merge(builder, NULL, NULL);
}

static void concurrent_merge(weir_builder *builder)
{
    good_source(builder);
    weir_builder_merge(builder, NULL, &(weir_stage_options){ .concurrency = 2 });
}

static void merge_of_two(weir_builder *builder, const weir_merge_config *config)
{
    good_source(builder);
    good_source(builder);
    weir_builder_merge(builder, config, NULL);
}

static void merge_in_no_order(weir_builder *builder)
{
    merge_of_two(builder, &(weir_merge_config){ .order = (weir_merge_order)5 });
}

static void merge_without_weights(weir_builder *builder)
{
    merge_of_two(builder, &(weir_merge_config){ .order = WEIR_MERGE_WEIGHTED, .num_weights = 2 });
}

static void merge_with_a_weight_too_few(weir_builder *builder)
{
    merge_of_two(builder, &(weir_merge_config){
                              .order = WEIR_MERGE_WEIGHTED, .weights = (const uint32_t[]){ 1 }, .num_weights = 1 });
}

static void merge_with_a_weight_of_zero(weir_builder *builder)
{
    merge_of_two(builder, &(weir_merge_config){ .order = WEIR_MERGE_WEIGHTED,
                                                .weights = (const uint32_t[]){ 1, 0 },
                                                .num_weights = 2 });
}

/* ---- options without effect ------------------------------------------------------------------------------------ */

static void order_of_a_merge(weir_builder *builder)
{
    good_source(builder);
    weir_builder_merge(builder, NULL, &(weir_stage_options){ .output_order = WEIR_ORDER_INPUT });
}

static int pick_none(void *self, const weir_item *item)
{
    (void)self;
    (void)item;
    return 0;
}

static void order_of_a_route(weir_builder *builder)
{
    good_source(builder);
    weir_builder_route(builder, &(weir_route_config){ .pick = pick_none, .num_branches = 1 },
                       &(weir_stage_options){ .output_order = WEIR_ORDER_INPUT });
}

static void order_of_a_source(weir_builder *builder)
{
    with_source(builder, &(weir_stage_options){ .output_order = WEIR_ORDER_INPUT });
}

static void order_of_a_sink(weir_builder *builder)
{
    good_source(builder);
    weir_builder_sink(builder, &(weir_stage_options){ .output_order = WEIR_ORDER_INPUT });
}

static void concurrent_sink(weir_builder *builder)
{
    good_source(builder);
    weir_builder_sink(builder, &(weir_stage_options){ .concurrency = 2 });
}

static void more_threads_than_slots(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .concurrency = 3, .threads = 4 });
}

static void more_threads_than_a_source_has_slots(weir_builder *builder)
{
    with_source(builder, &(weir_stage_options){ .threads = 2 });
}

static void count_without_a_kind(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .max_failures = { .count = 3 } });
}

static void rate_without_a_kind(weir_builder *builder)
{
    with_stage(builder, &pass_op, &(weir_stage_options){ .max_failures = { .num = 1, .den = 2 } });
}

static void rate_above_one(weir_builder *builder)
{
    with_stage(builder, &pass_op,
               &(weir_stage_options){ .max_failures = { .kind = WEIR_FAILURES_RATE, .num = 3, .den = 2 } });
}

static void rate_with_a_count(weir_builder *builder)
{
    with_stage(
        builder, &pass_op,
        &(weir_stage_options){ .max_failures = { .kind = WEIR_FAILURES_RATE, .count = 1, .num = 1, .den = 2 } });
}

static void count_with_a_rate(weir_builder *builder)
{
    with_stage(builder, &pass_op,
               &(weir_stage_options){ .max_failures = { .kind = WEIR_FAILURES_COUNT, .count = 1, .den = 2 } });
}

static void weights_that_nobody_asks_for(weir_builder *builder)
{
    merge_of_two(builder, &(weir_merge_config){ .weights = (const uint32_t[]){ 1, 2 }, .num_weights = 2 });
}

/* ---- the table ---------------------------------------------------------------------------------------------- */

static void no_mistake(weir_builder *builder)
{
    good_source(builder);
    weir_builder_sink(builder, NULL);
}

static void short_interval(weir_builder *builder)
{
    good_source(builder);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .stats_interval_ns = WEIR_SECOND / 2 });
    weir_builder_sink(builder, NULL);
}

static const struct {
    void (*describe)(weir_builder *builder);
    weir_pipeline_options options;
    int status;
    const char *stage;
    const char *message; /* part of it */
} mistakes[] = {
    { nothing, { 0 }, WEIR_EINVAL, "", "source" },
    { only_a_source, { 0 }, WEIR_EINVAL, "", "sink" },
    { stage_first, { 0 }, WEIR_EINVAL, "pass", "no source yet" },
    { sink_first, { 0 }, WEIR_EINVAL, "sink", "no source yet" },
    { two_sources_without_a_merge, { 0 }, WEIR_EINVAL, "sink", "weir_builder_merge()" },
    { stage_behind_sink, { 0 }, WEIR_EINVAL, "pass", "follow the sink" },
    { two_sinks, { 0 }, WEIR_EINVAL, "sink", "follow the sink" },
    { null_source, { 0 }, WEIR_EINVAL, "src", "NULL" },
    { null_stage, { 0 }, WEIR_EINVAL, "stage", "NULL" },
    { named_null_stage, { 0 }, WEIR_EINVAL, "later", "NULL" },
    { no_run, { 0 }, WEIR_EINVAL, "idle", "run" },
    { no_name, { 0 }, WEIR_EINVAL, "", "name" },
    { bad_name_of_the_operation, { 0 }, WEIR_EINVAL, "two words", "name" },
    { empty_name, { 0 }, WEIR_EINVAL, "", "name" },
    { foreign_name, { 0 }, WEIR_EINVAL, "d\xc3\xa9", "name" },
    { long_name, { 0 }, WEIR_EINVAL, "xxx", "name" },
    { concurrent_source, { 0 }, WEIR_EINVAL, "src", "concurrency is 2" },
    { much_concurrency, { 0 }, WEIR_EINVAL, "pass", "concurrency" },
    { long_queue, { 0 }, WEIR_EINVAL, "pass", "queue_items" },
    { long_sink_queue, { 0 }, WEIR_EINVAL, "sink", "queue_items" },
    { many_threads, { 0 }, WEIR_EINVAL, "pass", "threads" },
    { no_order, { 0 }, WEIR_EINVAL, "pass", "output_order is 7" },
    { rate_of_nothing, { 0 }, WEIR_EINVAL, "pass", "max_failures" },
    { no_kind_of_failures, { 0 }, WEIR_EINVAL, "pass", "max_failures" },
    { negative_failures, { 0 }, WEIR_EINVAL, "pass", "max_failures" },
    { missing_task_hooks, { 0 }, WEIR_EINVAL, "pass", "task_hooks" },
    { missing_stage_hooks, { 0 }, WEIR_EINVAL, "pass", "stage_hooks" },
    { task_hooks_of_a_source, { 0 }, WEIR_EINVAL, "src", "task_hooks" },
    { negative_deadline, { 0 }, WEIR_EINVAL, "pass", "task_deadline_ns" },
    { epochs_of_a_stage, { 0 }, WEIR_EINVAL, "pass", "epochs" },
    { failures_of_a_source, { 0 }, WEIR_EINVAL, "src", "max_failures" },
    { route_without_options, { 0 }, WEIR_EINVAL, "route", "pick" },
    { route_without_pick, { 0 }, WEIR_EINVAL, "route", "pick" },
    { route_without_branches, { 0 }, WEIR_EINVAL, "route", "num_branches" },
    { route_of_too_many_branches, { 0 }, WEIR_EINVAL, "route", "num_branches" },
    { route_that_looks_too_far, { 0 }, WEIR_EINVAL, "route", "look_ahead_items is 16777217, above 16777216" },
    { route_first, { 0 }, WEIR_EINVAL, "by-size", "no source yet" },
    { stage_before_the_branch, { 0 }, WEIR_EINVAL, "pass", "weir_builder_branch()" },
    { branch_without_a_route, { 0 }, WEIR_EINVAL, "", "weir_builder_route()" },
    { join_without_a_route, { 0 }, WEIR_EINVAL, "", "weir_builder_route()" },
    { one_branch_too_many, { 0 }, WEIR_EINVAL, "route", "2 branches" },
    { one_branch_too_few, { 0 }, WEIR_EINVAL, "route", "only 1" },
    { sink_in_a_route, { 0 }, WEIR_EINVAL, "sink", "weir_builder_join()" },
    { source_in_a_route, { 0 }, WEIR_EINVAL, "src", "weir_builder_join()" },
    { merge_in_a_route, { 0 }, WEIR_EINVAL, "merge", "weir_builder_join()" },
    { route_that_stays_open, { 0 }, WEIR_EINVAL, "", "weir_builder_join()" },
    { merge_of_nothing, { 0 }, WEIR_EINVAL, "merge", "no source yet" },
    { concurrent_merge, { 0 }, WEIR_EINVAL, "merge", "concurrency is 2" },
    { order_of_a_merge, { 0 }, WEIR_EINVAL, "merge", "output_order" },
    { order_of_a_route, { 0 }, WEIR_EINVAL, "route", "output_order" },
    { order_of_a_source, { 0 }, WEIR_EINVAL, "src", "output_order" },
    { order_of_a_sink, { 0 }, WEIR_EINVAL, "sink", "output_order" },
    { concurrent_sink, { 0 }, WEIR_EINVAL, "sink", "concurrency is 2" },
    { more_threads_than_slots, { 0 }, WEIR_EINVAL, "pass", "threads is 4, but concurrency is 3" },
    { more_threads_than_a_source_has_slots, { 0 }, WEIR_EINVAL, "src", "threads is 2" },
    { count_without_a_kind, { 0 }, WEIR_EINVAL, "pass", "no kind" },
    { rate_without_a_kind, { 0 }, WEIR_EINVAL, "pass", "no kind" },
    { rate_above_one, { 0 }, WEIR_EINVAL, "pass", "above 1" },
    { rate_with_a_count, { 0 }, WEIR_EINVAL, "pass", "count is set" },
    { count_with_a_rate, { 0 }, WEIR_EINVAL, "pass", "num or den" },
    { weights_that_nobody_asks_for, { 0 }, WEIR_EINVAL, "merge", "weights" },
    { no_mistake, { .num_observers = 1 }, WEIR_EINVAL, "", "observers is NULL" },
    { merge_in_no_order, { 0 }, WEIR_EINVAL, "merge", "order is 5" },
    { merge_without_weights, { 0 }, WEIR_EINVAL, "merge", "weights" },
    { merge_with_a_weight_too_few, { 0 }, WEIR_EINVAL, "merge", "1 weights" },
    { merge_with_a_weight_of_zero, { 0 }, WEIR_EINVAL, "merge", "weight 1 is 0" },
    { bad_config, { 0 }, WEIR_ENOTFOUND, "reader", "no folder \"/x\": name one that is there" },
    { bad_config_of_a_source, { 0 }, WEIR_ENOTFOUND, "files", "no folder" },
    { bad_config_without_a_word, { 0 }, WEIR_ENOMEM, "silent", "options" },
    { several_mistakes, { 0 }, WEIR_EINVAL, "first", "concurrency" },
    { no_mistake, { .stats_interval_ns = -2 }, WEIR_EINVAL, "", "stats_interval_ns" },
    { short_interval,
      { .stats_interval_ns = WEIR_SECOND },
      WEIR_EINVAL,
      "",
      "0:1:pass: stats_interval_ns is shorter" },
    { no_mistake, { .stall_warning_ns = -2 }, WEIR_EINVAL, "", "stall_warning_ns" },
    { no_mistake, { .max_failures = { .kind = WEIR_FAILURES_COUNT, .count = -2 } }, WEIR_EINVAL, "", "max_failures" },
    { no_mistake, { .threads = UINT32_MAX }, WEIR_EINVAL, "", "threads" },
    { no_mistake, { .num_task_hooks = 1 }, WEIR_EINVAL, "", "task_hooks" },
    { no_mistake, { .max_failures = { .kind = WEIR_FAILURES_RATE } }, WEIR_EINVAL, "", "max_failures" },
    { no_mistake,
      { .max_failures = { .kind = WEIR_FAILURES_RATE, .num = 3, .den = 2 } },
      WEIR_EINVAL,
      "",
      "above 1" },
    { no_mistake, { .max_failures = { .kind = (weir_failures_kind)9 } }, WEIR_EINVAL, "", "max_failures" },
};

static bool is_reported(size_t i)
{
    weir_builder *builder = weir_builder_new();
    weir_pipeline *pipeline = (weir_pipeline *)builder;
    weir_error error = { 0 };
    mistakes[i].describe(builder);
    int status = weir_builder_build(builder, &mistakes[i].options, &pipeline, &error);
    assert_ptr_not_equal(pipeline, builder);
    weir_pipeline_free(pipeline);
    if (!pipeline && status == mistakes[i].status && error.status == status &&
        strncmp(error.stage, mistakes[i].stage, strlen(mistakes[i].stage)) == 0 &&
        strstr(error.message, mistakes[i].message) && !strchr(error.message, '\n'))
        return true;
    print_error("mistake %zu (%s, %s): status %d, stage \"%s\", message \"%s\"\n", i, mistakes[i].stage,
                mistakes[i].message, status, error.stage, error.message);
    return false;
}

TEST_CASE(every_mistake_is_told_with_its_stage)
{
    bool all_reported = true;
    for (size_t i = 0; i < LENGTH(mistakes); i++)
        all_reported = is_reported(i) && all_reported;
    assert_true(all_reported);
}

TEST_CASE(the_librarys_own_code_is_kept)
{
    weir_builder *builder = weir_builder_new();
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    bad_config(builder);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_ENOTFOUND);
    assert_int_equal(error.library_code, -42);
}

TEST_CASE(nobody_has_to_take_the_error)
{
    weir_pipeline *pipeline;
    assert_int_equal(weir_builder_build(weir_builder_new(), NULL, &pipeline, NULL), WEIR_EINVAL);
    assert_null(pipeline);
}

TEST_CASE(a_null_builder_is_out_of_memory)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    good_source(NULL);
    weir_builder_pipe(NULL, &pass_op, NULL, 0, NULL);
    weir_builder_route(NULL, &two_branches, NULL);
    weir_builder_branch(NULL);
    weir_builder_join(NULL, NULL);
    weir_builder_merge(NULL, NULL, NULL);
    weir_builder_sink(NULL, NULL);
    weir_builder_free(NULL);
    weir_pipeline_free(NULL);
    assert_int_equal(weir_builder_build(NULL, NULL, &pipeline, &error), WEIR_ENOMEM);
    assert_int_equal(error.status, WEIR_ENOMEM);
    assert_null(pipeline);
}

TEST_CASE(a_builder_may_be_given_up)
{
    weir_builder_free(weir_builder_new());
    for (size_t i = 0; i < LENGTH(mistakes); i++) {
        weir_builder *builder = weir_builder_new();
        mistakes[i].describe(builder);
        weir_builder_free(builder);
    }
}

/* ---- defaults and names ------------------------------------------------------------------------------------- */

static void check_info(const weir_stage_info *info, const weir_stage_info *expected)
{
    assert_string_equal(info->name, expected->name);
    assert_string_equal(info->queue_name, expected->queue_name);
    assert_string_equal(info->kind, expected->kind);
    assert_int_equal(info->concurrency, expected->concurrency);
    assert_int_equal(info->queue_items, expected->queue_items);
    assert_int_equal(info->queue_bytes, expected->queue_bytes);
    assert_string_equal(info->output_order, expected->output_order);
    assert_int_equal(info->look_ahead_items, expected->look_ahead_items);
}

static void run_and_record(weir_builder *builder, weir_pipeline_options options, test_recorder *recorder)
{
    recorder_init(recorder);
    options.observers = &recorder->observer;
    options.num_observers = 1;
    weir_pipeline *pipeline = build(builder, &options);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    assert_true(recorder->ended);
}

TEST_CASE(all_zero_options_mean_the_documented_defaults)
{
    static const weir_stage_info expected[] = {
        { "0:0:src", "0:0:src_queue", "source", 1, 2, 0, "completion", "", "", 0, 0 },
        { "0:1:pass", "0:1:pass_queue", "stage", 1, 2, 0, "completion", "0:0:src_queue", "", 0, 0 },
        { "0:2:sink", "0:2:sink_queue", "sink", 1, 3, 0, "completion", "0:1:pass_queue", "", 0, 0 },
    };
    test_recorder recorder;
    weir_builder *builder = weir_builder_new();
    good_source(builder);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    run_and_record(builder, (weir_pipeline_options){ 0 }, &recorder);
    assert_int_equal(recorder.num_stages, LENGTH(expected));
    for (size_t i = 0; i < LENGTH(expected); i++)
        check_info(&recorder.infos[i], &expected[i]);
    assert_int_equal(recorder.run.threads, weir_cpu_budget());
    assert_int_equal(recorder.run.pipeline_id, 0);
    recorder_free(&recorder);
}

TEST_CASE(options_show_in_names_and_infos)
{
    static const weir_stage_info expected[] = {
        { "7:0:src", "7:0:src_queue", "source", 1, 5, 1000, "completion", "", "", 0, 0 },
        { "7:1:a.B-c_1[64]", "7:1:a.B-c_1[64]_queue", "stage", 64, 9, 0, "input", "", "", 0, 0 },
        { "7:2:pass[2]", "7:2:pass[2]_queue", "stage", 2, 2, 1, "completion", "", "", 0, 0 },
        { "7:3:sink", "7:3:sink_queue", "sink", 1, 8, 0, "completion", "", "", 0, 0 },
    };
    test_recorder recorder;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &no_numbers, 0,
                        &(weir_stage_options){ .queue_items = 5, .queue_bytes = 1000 });
    weir_builder_pipe(
        builder, &pass_op, NULL, 0,
        &(weir_stage_options){
            .name = "a.B-c_1", .concurrency = 64, .queue_items = 9, .threads = 3, .output_order = WEIR_ORDER_INPUT });
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 2, .queue_bytes = 1 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 8 });
    run_and_record(builder, (weir_pipeline_options){ .threads = 2, .id = 7 }, &recorder);
    assert_int_equal(recorder.num_stages, LENGTH(expected));
    for (size_t i = 0; i < LENGTH(expected); i++)
        check_info(&recorder.infos[i], &expected[i]);
    assert_int_equal(recorder.run.threads, 2 + 3);
    assert_int_equal(recorder.run.pipeline_id, 7);
    recorder_free(&recorder);
}

/* The default, a number, none; and in front of a join that restores the order, or in a branch of it, where it is not
   useful. */
TEST_CASE(a_route_tells_how_far_it_looks_ahead)
{
    enum { IN_ORDER = 3, NESTED };
    static const uint32_t items[] = { 0, 3, WEIR_NO_LOOK_AHEAD, 3, 3 }, expected[] = { 16, 3, 0, 0, 0 };
    for (int i = 0; i <= NESTED; i++) {
        test_recorder recorder;
        weir_builder *builder = weir_builder_new();
        good_source(builder);
        weir_route_config route = two_branches;
        route.look_ahead_items = items[i];
        weir_builder_route(builder, &route, NULL);
        weir_builder_branch(builder);
        if (i == NESTED) {
            weir_builder_route(builder, &route, &(weir_stage_options){ .name = "inner" });
            weir_builder_branch(builder);
            weir_builder_branch(builder);
            weir_builder_join(builder, NULL);
        }
        weir_builder_branch(builder);
        weir_builder_join(builder, &(weir_stage_options){ .output_order = i >= IN_ORDER ? WEIR_ORDER_INPUT
                                                                                        : WEIR_ORDER_COMPLETION });
        weir_builder_sink(builder, NULL);
        run_and_record(builder, (weir_pipeline_options){ 0 }, &recorder);
        for (uint32_t j = 0; j < recorder.num_stages; j++)
            assert_int_equal(recorder.infos[j].look_ahead_items,
                             strcmp(recorder.infos[j].kind, "route") == 0 ? expected[i] : 0);
        recorder_free(&recorder);
    }
}

/* ---- what is copied ----------------------------------------------------------------------------------------- */

typedef struct text_config {
    char *text;
    test_counter *inits, *frees;
} text_config;

static int text_init(void *config, weir_error *error)
{
    (void)error;
    text_config *text = config;
    if (text->text && !(text->text = strdup(text->text)))
        return WEIR_ENOMEM;
    if (text->inits)
        counter_add(text->inits, 1);
    return WEIR_OK;
}

static void text_free(void *config)
{
    text_config *text = config;
    if (text->frees)
        counter_add(text->frees, 1);
    free(text->text);
}

static int text_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const text_config *text = weir_task_config(task);
    REQUIRE(text->text && strcmp(text->text, "as it was") == 0);
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

TEST_CASE(the_options_of_the_operation_are_copied)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    test_counter inits = COUNTER, frees = COUNTER;
    char text[] = "as it was";
    text_config config = { .text = text, .inits = &inits, .frees = &frees };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &text_op, &config, sizeof(text_config), NULL);
    memset(text, 'x', sizeof text - 1);
    memset(&config, 0xff, sizeof config);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(drain_all(pipeline), 3);
    assert_int_equal(counter_value(&frees), 0);
    weir_pipeline_free(pipeline);
    assert_int_equal(counter_value(&inits), 1);
    assert_int_equal(counter_value(&frees), 1);
    ledger_close(&ledger);
}

/* However building ends. */
TEST_CASE(each_copy_is_freed_once)
{
    test_counter inits = COUNTER, frees = COUNTER;
    text_config config = { .inits = &inits, .frees = &frees };
    for (int i = 0; i < 4; i++) {
        weir_builder *builder = weir_builder_new();
        weir_pipeline *pipeline = NULL;
        good_source(builder);
        weir_builder_pipe(builder, &text_op, &config, sizeof(text_config), NULL);
        if (i == 1)
            weir_builder_pipe(builder, &no_run_op, NULL, 0, NULL);
        if (i > 1)
            weir_builder_sink(builder, NULL);
        if (i == 0)
            weir_builder_free(builder);
        else
            weir_builder_build(builder, &(weir_pipeline_options){ .stats_interval_ns = i == 2 ? -2 : 0 }, &pipeline,
                               NULL);
        weir_pipeline_free(pipeline);
        assert_int_equal(counter_value(&inits), i + 1);
        assert_int_equal(counter_value(&frees), i + 1);
    }
}

static int expect_zeros(void *config, weir_error *error)
{
    (void)error;
    static const char zeros[64];
    REQUIRE(memcmp(config, zeros, sizeof zeros) == 0);
    return WEIR_OK;
}

TEST_CASE(no_options_of_the_operation_are_zeros)
{
    static const weir_op op = { .name = "zeros", .config_size = 64, .config_init = expect_zeros, .run = never_run };
    weir_builder *builder = weir_builder_new();
    with_stage(builder, &op, NULL);
    weir_pipeline_free(build(builder, NULL));
}

static int expect_itself(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    const void *const *self = weir_task_config(task);
    REQUIRE(*self == self);
    return WEIR_SKIP;
}

TEST_CASE(without_a_size_the_pointer_is_passed_on)
{
    static const weir_op op = { .name = "itself", .run = expect_itself };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 2 };
    const void *config = &config;
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &config, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static int count_begin(void *self, void *hook_state, weir_task *task, const weir_item *in)
{
    (void)hook_state;
    (void)task;
    (void)in;
    counter_add(self, 1);
    return WEIR_OK;
}

static int count_start(void *self, const char *stage, weir_error *error)
{
    (void)stage;
    (void)error;
    counter_add(self, 1);
    return WEIR_OK;
}

/* What the options point to is overwritten as soon as the call has returned. */
TEST_CASE(hooks_and_names_are_copied)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    test_counter tasks = COUNTER, stages = COUNTER;
    weir_task_hook task_hooks[2] = { { .self = &tasks, .begin = count_begin },
                                     { .self = &tasks, .begin = count_begin } };
    weir_stage_hook stage_hooks[1] = { { .self = &stages, .start = count_start } };
    char name[] = "named";
    weir_stage_options options = {
        .name = name, .task_hooks = task_hooks, .num_task_hooks = 2, .stage_hooks = stage_hooks, .num_stage_hooks = 1
    };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &options);
    memset(&options, 0xff, sizeof options);
    memset(stage_hooks, 0xff, sizeof stage_hooks);
    memset(name, '?', sizeof name - 1);
    weir_builder_sink(builder, NULL);

    weir_pipeline_options pipeline_options = { .task_hooks = task_hooks, .num_task_hooks = 1 };
    task_hooks[0] = (weir_task_hook){ .self = &tasks, .begin = count_begin };
    weir_pipeline *pipeline = build(builder, &pipeline_options);
    memset(task_hooks, 0xff, sizeof task_hooks);
    assert_int_equal(drain_all(pipeline), 3);
    assert_int_equal(account_of(pipeline, "0:1:named").taken, 3);
    weir_pipeline_free(pipeline);
    assert_int_equal(counter_value(&tasks), 3 * 3);
    assert_int_equal(counter_value(&stages), 1);
    ledger_close(&ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
