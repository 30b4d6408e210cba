/* Options and configs from programs that were compiled with older or newer headers. */
#include "tests/support.h"

/* The stage options of a program with an older or newer header, followed by other memory. */
typedef struct other_options {
    weir_stage_options known;
    uint64_t unknown;
} other_options;

static weir_pipeline *build_with(const weir_stage_options *options, size_t size, weir_error *error,
                                 test_ledger *ledger)
{
    static test_numbers numbers;
    numbers = (test_numbers){ .ledger = ledger, .count = 3 };
    weir_pipeline *pipeline;
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe_sized(builder, &pass_op, NULL, 0, options, size);
    weir_builder_sink(builder, NULL);
    weir_builder_build(builder, NULL, &pipeline, error);
    return pipeline;
}

TEST_CASE(what_an_older_program_does_not_know_is_the_default)
{
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    other_options options;
    memset(&options, 0xa5, sizeof options); /* fields after the known ones have any value */
    memset(&options, 0, offsetof(weir_stage_options, queue_items));
    options.known.name = "old";
    options.known.concurrency = 3;
    weir_pipeline *pipeline = build_with(&options.known, offsetof(weir_stage_options, queue_items), &error, &ledger);
    assert_non_null(pipeline);
    weir_snapshot *snapshot;
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    assert_string_equal(snapshot->stages[1].name, "0:1:old[3]");
    weir_snapshot_free(snapshot);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(what_a_newer_program_leaves_zero_is_no_matter)
{
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    other_options options = { .known = { .name = "new" } };
    weir_pipeline *pipeline = build_with(&options.known, sizeof options, &error, &ledger);
    assert_non_null(pipeline);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(what_a_newer_program_sets_is_refused)
{
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    other_options options = { .known = { .name = "new" }, .unknown = 1 };
    assert_null(build_with(&options.known, sizeof options, &error, &ledger));
    assert_int_equal(error.status, WEIR_EUNSUPPORTED);
    assert_non_null(strstr(error.message, weir_version()));
    assert_non_null(strstr(error.message, "weir_stage_options"));
    ledger_close(&ledger);
}

TEST_CASE(no_options_are_the_defaults_whatever_their_size)
{
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    weir_pipeline *pipeline = build_with(NULL, 1000, &error, &ledger);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- configs of stages ------------------------------------------------------------------------------------------ */

static int make_nothing(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker, (void)in, (void)out, (void)task;
    return WEIR_SKIP;
}

typedef struct new_config {
    uint64_t first, second, third;
} new_config;

static new_config seen_config;

static int see_config(void *config, weir_error *error)
{
    (void)error;
    seen_config = *(new_config *)config;
    return WEIR_OK;
}

static const weir_op configured_op = {
    .name = "configured",
    .config_size = sizeof(new_config),
    .config_init = see_config,
    .run = make_nothing,
};

static int add_configured(const weir_op *op, const void *config, size_t config_size, weir_error *error)
{
    static const test_numbers numbers = { .count = 0 }; /* it may run before it is freed */
    weir_pipeline *pipeline;
    weir_builder *builder = builder_with(&numbers);
    *error = (weir_error){ 0 };
    weir_builder_pipe(builder, op, config, config_size, &(weir_stage_options){ .name = "third" });
    weir_builder_sink(builder, NULL);
    int status = weir_builder_build(builder, NULL, &pipeline, error);
    weir_pipeline_free(pipeline);
    return status;
}

/* On the heap, so that a sanitizer sees each byte that is read beyond its end. */
TEST_CASE(an_older_programs_config_is_not_read_beyond_its_end)
{
    weir_error error;
    uint64_t *config = malloc(sizeof *config);
    *config = 7;
    seen_config = (new_config){ 1, 2, 3 };
    assert_int_equal(add_configured(&configured_op, config, sizeof *config, &error), WEIR_OK);
    assert_true(seen_config.first == 7 && seen_config.second == 0 && seen_config.third == 0);
    free(config);
}

TEST_CASE(a_newer_programs_config_is_refused_if_it_sets_more)
{
    weir_error error;
    struct {
        new_config known;
        uint64_t unknown;
    } config = { .known = { .first = 7 } };
    assert_int_equal(add_configured(&configured_op, &config, sizeof config, &error), WEIR_OK);
    assert_int_equal(seen_config.first, 7);
    config.unknown = 1;
    assert_int_equal(add_configured(&configured_op, &config, sizeof config, &error), WEIR_EUNSUPPORTED);
    assert_string_equal(error.stage, "third");
    assert_non_null(strstr(error.message, "32 bytes in the program, 24 in the library"));
}

TEST_CASE(a_config_without_its_size_is_refused)
{
    weir_error error;
    assert_int_equal(add_configured(&configured_op, &seen_config, 0, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "config_size is 0"));
    assert_int_equal(add_configured(&configured_op, NULL, 0, &error), WEIR_OK);
    assert_int_equal(seen_config.first, 0);
    assert_int_equal(add_configured(&pass_op, &seen_config, sizeof seen_config, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "pass 0"));
}

/* Elements of arrays, extern tables and structs that are passed by value or inside others have no size of their own. These
   are the sizes since version 0.2.0, on machines with 64 bits. */
TEST_CASE(structs_without_a_size_of_their_own_keep_their_size)
{
    if (sizeof(void *) != 8)
        skip();
    assert_int_equal(sizeof(weir_item), 96);
    assert_int_equal(sizeof(weir_op), 144);
    assert_int_equal(sizeof(weir_task_hook), 64);
    assert_int_equal(sizeof(weir_stage_hook), 56);
    assert_int_equal(sizeof(weir_observer), 112);
    assert_int_equal(sizeof(weir_max_failures), 24);
    assert_int_equal(sizeof(weir_batch), 24);
    assert_int_equal(sizeof(weir_error), 1672);
    assert_int_equal(sizeof(weir_stage_info), 80);
    assert_int_equal(sizeof(weir_queue_info), 16);
}

static void test_newer_function(void)
{
}

/* A program with a newer header has a name for a member that is reserved here. */
TEST_CASE(what_a_newer_program_sets_in_a_table_or_hook_is_refused)
{
    static const char set = 1;
    weir_op op = pass_op;
    weir_task_hook task_hook = { .reserved[3] = &set };
    weir_stage_hook stage_hook = { .reserved[0] = &set };
    weir_observer observer = { .reserved[2] = test_newer_function };
    const weir_stage_options options[] = { { .name = "op" },
                                           { .name = "task", .task_hooks = &task_hook, .num_task_hooks = 1 },
                                           { .name = "stage", .stage_hooks = &stage_hook, .num_stage_hooks = 1 },
                                           { .name = "observer" } };
    static const char *const names[] = { "weir_op", "weir_task_hook", "weir_stage_hook", "weir_observer" };
    for (int i = 0; i < 4; i++) {
        static const test_numbers numbers = { .count = 0 }; /* it may run before it is freed */
        weir_pipeline *pipeline;
        weir_error error = { 0 };
        weir_builder *builder = builder_with(&numbers);
        op.reserved[0] = i == 0 ? &set : NULL;
        weir_builder_pipe(builder, &op, NULL, 0, &options[i]);
        weir_builder_sink(builder, NULL);
        weir_pipeline_options all = { .observers = &observer, .num_observers = i == 3 };
        assert_int_equal(weir_builder_build(builder, &all, &pipeline, &error), WEIR_EUNSUPPORTED);
        assert_non_null(strstr(error.message, names[i]));
    }
}

/* What the library fills in a struct of an older program ends where that one ends; a newer one gets zeros. */
TEST_CASE(an_account_of_another_size_is_filled_as_far_as_it_goes)
{
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    struct {
        weir_account known;
        uint64_t unknown;
    } account;
    memset(&account, 0xa5, sizeof account);
    weir_pipeline *pipeline = build_with(NULL, 0, &error, &ledger);
    assert_int_equal(drain_all(pipeline), 3);
    assert_int_equal(weir_pipeline_account_sized(pipeline, NULL, &account.known, 8), WEIR_OK);
    assert_int_equal(account.known.taken, 3);
    assert_int_equal(account.known.created, UINT64_C(0xa5a5a5a5a5a5a5a5));
    assert_int_equal(weir_pipeline_account_sized(pipeline, NULL, &account.known, sizeof account), WEIR_OK);
    assert_int_equal(account.known.passed_on, 3);
    assert_int_equal(account.unknown, 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
