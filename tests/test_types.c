/* Types of items: checked when the pipeline is built where that is possible, else with each item. */
#include "tests/support.h"

/* ---- operations with types ------------------------------------------------------------------------------------ */

static int make_words(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t *made = worker;
    (void)in;
    (void)task;
    if (*made == 4)
        return WEIR_EOF;
    *out = (weir_item){ .data = strdup("word"), .release = weir_release_free };
    out->type = ++*made % 2 ? "apple" : "pear"; /* counts only where `makes` does not name one type */
    return WEIR_OK;
}

static int pass_on(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    weir_item_move(out, in);
    return WEIR_OK;
}

static int make_empty(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t *made = worker;
    (void)in;
    (void)out;
    (void)task;
    return (*made)++ == 2 ? WEIR_EOF : WEIR_OK;
}

#define SOURCE(types) \
    { \
        .name = "source", .makes = (types), .worker_size = sizeof(uint64_t), .run = make_words \
    }

static const weir_op untyped = { .name = "untyped", .worker_size = sizeof(uint64_t), .run = make_words };
static const weir_op apples = SOURCE("apple");
static const weir_op pears = SOURCE("pear");
static const weir_op fruit = SOURCE("apple pear");
static const weir_op anything = SOURCE(WEIR_TYPE_ANY);
static const weir_op empty = {
    .name = "empty", .makes = "apple", .worker_size = sizeof(uint64_t), .run = make_empty
};
static const weir_op eat_apples = { .name = "eat", .takes = "apple", .run = pass_on };
static const weir_op eat_fruit = { .name = "eat", .takes = "apple pear", .makes = WEIR_TYPE_ANY, .run = pass_on };
static const weir_op pass_any = { .name = "pass", .makes = WEIR_TYPE_ANY, .run = pass_on };
static const weir_op forget = { .name = "forget", .run = pass_on };

static weir_builder *line(const weir_op *source, const weir_op *stage, const weir_op *other)
{
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, source, NULL, 0, NULL);
    if (stage)
        weir_builder_pipe(builder, stage, NULL, 0, NULL);
    if (other)
        weir_builder_pipe(builder, other, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    return builder;
}

static void expect_refused(weir_builder *builder, const char *part, const char *other_part)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_EINVAL);
    assert_string_equal(error.stage, "eat");
    if (!strstr(error.message, part) || !strstr(error.message, other_part))
        fail_msg("%s", error.message);
}

static void expect(weir_builder *builder, uint64_t delivered, uint64_t failed)
{
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(drain_all(pipeline), delivered);
    assert_int_equal(account_of(pipeline, "eat").failed, failed);
    weir_pipeline_free(pipeline);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

TEST_CASE(another_type_is_refused_when_the_pipeline_is_built)
{
    expect_refused(line(&pears, &eat_apples, NULL), "takes \"apple\"", "upstream stage src makes \"pear\"");
}

TEST_CASE(what_is_not_declared_is_refused)
{
    expect_refused(line(&untyped, &eat_apples, NULL), "upstream stage src does not declare", "`makes`");
    expect_refused(line(&apples, &forget, &eat_apples), "stage forget", "`makes`");
}

TEST_CASE(a_type_that_fits_passes)
{
    expect(line(&apples, &eat_apples, NULL), 4, 0);
    expect(line(&fruit, &eat_fruit, NULL), 4, 0);
}

TEST_CASE(alternatives_are_checked_with_each_item)
{
    expect(line(&fruit, &eat_apples, NULL), 2, 2);
    expect(line(&anything, &eat_apples, NULL), 2, 2);
    expect(line(&fruit, &pass_any, &eat_apples), 2, 2);
}

TEST_CASE(an_item_without_data_is_not_given_to_an_operation_with_types)
{
    expect(line(&empty, &eat_apples, NULL), 0, 2);
}

TEST_CASE(a_failure_names_both_types)
{
    weir_error error = { 0 };
    weir_pipeline *pipeline = build(line(&fruit, &eat_apples, NULL), NULL);
    drain_all(pipeline);
    assert_int_equal(weir_pipeline_error(pipeline, "eat", &error), WEIR_EINVAL);
    assert_string_equal(error.message, "takes \"apple\", but this item is \"pear\"");
    weir_pipeline_free(pipeline);
}

static int pick_first(void *self, const weir_item *item)
{
    (void)self;
    return strcmp(item->type, "apple") == 0 ? 0 : 1;
}

TEST_CASE(routes_and_joins_pass_types_on)
{
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &fruit, NULL, 0, NULL);
    weir_builder_route(builder, &(weir_route_config){ .pick = pick_first, .num_branches = 2 }, NULL);
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &eat_apples, NULL, 0, &(weir_stage_options){ .name = "apples" });
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &eat_fruit, NULL, 0, &(weir_stage_options){ .name = "fruit" });
    weir_builder_join(builder, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(drain_all(pipeline), 4);
    weir_pipeline_free(pipeline);
}

static weir_builder *merge_of(const weir_op *one, const weir_op *other)
{
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, one, NULL, 0, NULL);
    weir_builder_source(builder, other, NULL, 0, &(weir_stage_options){ .name = "other" });
    weir_builder_merge(builder, NULL, NULL);
    weir_builder_pipe(builder, &eat_apples, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    return builder;
}

TEST_CASE(a_merge_makes_what_its_inputs_make)
{
    expect(merge_of(&apples, &apples), 8, 0);
    expect(merge_of(&apples, &pears), 4, 4);
    expect_refused(merge_of(&pears, &pears), "upstream stage merge makes \"pear\"", "apple");
    expect_refused(merge_of(&apples, &untyped), "upstream stage merge does not declare", "`makes`");
}

TEST_CASE(batches_bring_the_types_of_their_items_back)
{
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &fruit, NULL, 0, NULL);
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 3 }, NULL);
    weir_pipe_disaggregate(builder, NULL);
    weir_builder_pipe(builder, &eat_apples, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    expect(builder, 2, 2);
}

TEST_CASE(a_batch_is_taken_apart_only_if_it_is_one)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    assert_int_equal(weir_builder_build(line(&apples, &weir_disaggregate, NULL), NULL, &pipeline, &error),
                     WEIR_EINVAL);
    assert_string_equal(error.stage, "disaggregate");
    pipeline = build(line(&anything, &weir_disaggregate, NULL), NULL); /* known only when the items come */
    assert_int_equal(drain_all(pipeline), 0);
    assert_int_equal(account_of(pipeline, "disaggregate").failed, 4);
    weir_pipeline_free(pipeline);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
