/* The shuffle buffer. */
#include "tests/support.h"

#include <weir/sampler.h>

enum { COUNT = 1000 };

static weir_pipeline *build_shuffle(const test_numbers *numbers, const weir_shuffle_config *config, uint32_t epochs)
{
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, numbers, 0, &(weir_stage_options){ .epochs = epochs });
    weir_pipe_shuffle(builder, config, NULL);
    weir_builder_sink(builder, NULL);
    return build(builder, NULL);
}

/* Takes the values up to the end of the epoch, with their labels checked; returns how many. */
static size_t take_epoch(weir_pipeline *pipeline, uint64_t values[COUNT + 1])
{
    weir_item item;
    size_t count = 0;
    int status;
    while (count <= COUNT && (status = weir_pipeline_next(pipeline, &item, 20 * WEIR_SECOND)) == WEIR_OK) {
        char label[32];
        values[count++] = item_value(&item);
        snprintf(label, sizeof label, "item-%llu", (unsigned long long)item_value(&item));
        assert_string_equal(item.label, label);
        assert_int_equal(item.seq, item_value(&item)); /* its own number, not that of the task */
        weir_item_release(&item);
    }
    return count;
}

TEST_CASE(each_item_comes_once_and_out_of_order_in_each_epoch)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = COUNT, .labelled = true };
    weir_pipeline *pipeline = build_shuffle(&numbers, &(weir_shuffle_config){ .num_items = 100, .seed = 3 }, 2);
    uint64_t epochs[2][COUNT + 1];
    for (int epoch = 0; epoch < 2; epoch++) {
        const uint64_t *values = epochs[epoch];
        bool seen[COUNT] = { false };
        size_t num_rising = 0;
        assert_int_equal(take_epoch(pipeline, epochs[epoch]), COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            assert_false(seen[values[i]]);
            seen[values[i]] = true;
            assert_true(values[i] <= i + 100); /* nothing is ahead by more than the buffer */
            num_rising += i > 0 && values[i] > values[i - 1];
        }
        assert_in_range(num_rising, 400, 600);
    }
    assert_memory_not_equal(epochs[0], epochs[1], COUNT * sizeof(uint64_t));
    weir_account account = account_of(pipeline, NULL);
    assert_account_is_exact(&account);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(the_seed_decides)
{
    uint64_t values[3][COUNT + 1];
    const uint64_t seeds[] = { 7, 7, 8 };
    for (int i = 0; i < 3; i++) {
        test_ledger ledger = LEDGER;
        test_numbers numbers = { .ledger = &ledger, .count = COUNT, .labelled = true };
        weir_pipeline *pipeline =
            build_shuffle(&numbers, &(weir_shuffle_config){ .num_items = 50, .seed = seeds[i] }, 0);
        assert_int_equal(take_epoch(pipeline, values[i]), COUNT);
        weir_pipeline_free(pipeline);
        ledger_close(&ledger);
    }
    assert_memory_equal(values[0], values[1], COUNT * sizeof(uint64_t));
    assert_memory_not_equal(values[0], values[2], COUNT * sizeof(uint64_t));
}

TEST_CASE(a_stop_releases_what_is_held)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    weir_pipeline *pipeline = build_shuffle(&numbers, &(weir_shuffle_config){ .num_items = 100 }, 0);
    next_value(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(a_buffer_for_nothing_is_refused)
{
    weir_pipeline *pipeline;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &(test_numbers){ .count = 1 }, 0, NULL);
    weir_pipe_shuffle(builder, &(weir_shuffle_config){ 0 }, NULL);
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_EINVAL);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
