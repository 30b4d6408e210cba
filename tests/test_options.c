/* Structs of options from programs that were compiled with older or newer headers. */
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
    weir_builder_pipe_sized(builder, &pass_op, NULL, options, size);
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
    ledger_close(&ledger);
}

static void no_options_are_the_defaults_whatever_their_size(void **state)
{
    (void)state;
    char own[8] = "garbage";
    assert_int_equal(weir_options_copy(own, sizeof own, NULL, 1000, NULL), WEIR_OK);
    assert_memory_equal(own, "\0\0\0\0\0\0\0", sizeof own);
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
        TEST(structs_that_travel_by_value_keep_their_size),
    };
    return RUN_TESTS(tests);
}
