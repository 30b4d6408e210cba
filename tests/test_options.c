/* Options and configs from programs that were compiled with older or newer headers. */
#include "support.h"

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

static void what_an_older_program_does_not_know_is_the_default(void **state)
{
    (void)state;
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    other_options options;
    memset(&options, 0xa5, sizeof options); /* fields after the known ones have any value */
    memset(&options, 0, offsetof(weir_stage_options, queue_items));
    options.known.name = "old";
    options.known.concurrency = 3;
    weir_pipeline *pipeline = build_with(&options.known, offsetof(weir_stage_options, queue_items), &error, &ledger);
    assert_non_null(pipeline);
    char *text;
    assert_int_equal(weir_pipeline_describe(pipeline, &text), WEIR_OK);
    assert_non_null(strstr(text, "0:1:old[3]"));
    free(text);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static void what_a_newer_program_leaves_zero_is_no_matter(void **state)
{
    (void)state;
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    other_options options = { .known = { .name = "new" } };
    weir_pipeline *pipeline = build_with(&options.known, sizeof options, &error, &ledger);
    assert_non_null(pipeline);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static void what_a_newer_program_sets_is_refused(void **state)
{
    (void)state;
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    other_options options = { .known = { .name = "new" }, .unknown = 1 };
    assert_null(build_with(&options.known, sizeof options, &error, &ledger));
    assert_int_equal(error.status, WEIR_EUNSUPPORTED);
    assert_non_null(strstr(error.message, weir_version()));
    assert_non_null(strstr(error.message, "weir_stage_options"));
    ledger_close(&ledger);
}

static void no_options_are_the_defaults_whatever_their_size(void **state)
{
    (void)state;
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
    static const test_numbers numbers = { .count = 1 };
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
static void an_older_programs_config_is_not_read_beyond_its_end(void **state)
{
    (void)state;
    weir_error error;
    uint64_t *config = malloc(sizeof *config);
    *config = 7;
    seen_config = (new_config){ 1, 2, 3 };
    assert_int_equal(add_configured(&configured_op, config, sizeof *config, &error), WEIR_OK);
    assert_true(seen_config.first == 7 && seen_config.second == 0 && seen_config.third == 0);
    free(config);
}

static void a_newer_programs_config_is_refused_if_it_sets_more(void **state)
{
    (void)state;
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

static void a_config_without_its_size_is_refused(void **state)
{
    (void)state;
    weir_error error;
    assert_int_equal(add_configured(&configured_op, &seen_config, 0, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "config_size is 0"));
    assert_int_equal(add_configured(&configured_op, NULL, 0, &error), WEIR_OK);
    assert_int_equal(seen_config.first, 0);
    assert_int_equal(add_configured(&pass_op, &seen_config, sizeof seen_config, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "pass 0"));
}

/* What the program lays out in arrays, statically or on its stack, cannot grow: their reserved fields shrink instead. These
   are the sizes since version 0.2.0, on machines with 64 bits. */
static void structs_that_travel_by_value_keep_their_size(void **state)
{
    (void)state;
    if (sizeof(void *) != 8)
        skip();
    assert_int_equal(sizeof(weir_item), 88);
    assert_int_equal(sizeof(weir_op), 144);
    assert_int_equal(sizeof(weir_task_hook), 64);
    assert_int_equal(sizeof(weir_stage_hook), 56);
    assert_int_equal(sizeof(weir_max_failures), 32);
    assert_int_equal(sizeof(weir_aggregate_config), 48);
    assert_int_equal(sizeof(weir_batch), 56);
    assert_int_equal(sizeof(weir_account), 128);
    assert_int_equal(sizeof(weir_error), 1728);
    assert_int_equal(sizeof(weir_stage_info), 112);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(what_an_older_program_does_not_know_is_the_default),
        TEST(what_a_newer_program_leaves_zero_is_no_matter),
        TEST(what_a_newer_program_sets_is_refused),
        TEST(no_options_are_the_defaults_whatever_their_size),
        TEST(an_older_programs_config_is_not_read_beyond_its_end),
        TEST(a_newer_programs_config_is_refused_if_it_sets_more),
        TEST(a_config_without_its_size_is_refused),
        TEST(structs_that_travel_by_value_keep_their_size),
    };
    return RUN_TESTS(tests);
}
