/* The descriptor for event loops: readable exactly while weir_pipeline_next() would not wait. */
#include "tests/support.h"

#include <poll.h>
#include <unistd.h>

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd one = { .fd = fd, .events = POLLIN };
    return poll(&one, 1, timeout_ms) == 1;
}

static int fd_of(weir_pipeline *pipeline)
{
    int fd = -1, again = -1;
    assert_int_equal(weir_pipeline_poll_fd(pipeline, &fd), WEIR_OK);
    assert_int_equal(weir_pipeline_poll_fd(pipeline, &again), WEIR_OK);
    assert_true(fd >= 0 && fd == again);
    return fd;
}

static weir_pipeline *gated_pipeline(test_ledger *ledger, test_numbers *numbers, test_gate *gate, uint64_t count)
{
    gate_init(gate);
    *numbers = (test_numbers){ .ledger = ledger, .count = count, .gate = gate };
    weir_builder *builder = builder_with(numbers);
    weir_builder_sink(builder, NULL);
    return build(builder, NULL);
}

TEST_CASE(it_is_readable_while_next_would_not_wait)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers;
    test_gate gate;
    weir_item item;
    weir_pipeline *pipeline = gated_pipeline(&ledger, &numbers, &gate, 2);
    int fd = fd_of(pipeline);
    assert_false(is_readable(fd, 0));
    assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_ETIMEDOUT);

    gate_let(&gate, 1);
    assert_true(is_readable(fd, -1));
    assert_true(is_readable(fd, 0)); /* until the item is taken */
    assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_OK);
    weir_item_release(&item);
    assert_false(is_readable(fd, 0));

    gate_open(&gate);
    assert_true(is_readable(fd, -1));
    assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_OK);
    weir_item_release(&item);
    assert_true(is_readable(fd, -1)); /* the end */
    assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_EOF);
    assert_true(is_readable(fd, 0)); /* again and again */
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(it_is_readable_at_once_if_something_is_there)
{
    test_ledger ledger = LEDGER;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 0 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
    assert_true(is_readable(fd_of(pipeline), 0));
    weir_pipeline_free(pipeline);
}

TEST_CASE(stop_makes_it_readable)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers;
    test_gate gate;
    weir_item item;
    weir_pipeline *pipeline = gated_pipeline(&ledger, &numbers, &gate, 2);
    int fd = fd_of(pipeline);
    assert_false(is_readable(fd, 0));
    weir_pipeline_stop(pipeline);
    assert_true(is_readable(fd, 0));
    assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_ESTOPPED);
    gate_open(&gate);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* A consumer that only ever waits for the descriptor gets everything: no rise of it is lost. */
TEST_CASE(a_loop_of_poll_and_next_gets_everything)
{
    enum { COUNT = 20000 };
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = COUNT };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 4 });
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 4 });
    int fd = fd_of(pipeline), status = WEIR_ETIMEDOUT;
    uint64_t delivered = 0;
    while (status != WEIR_EOF) {
        weir_item item;
        assert_true(is_readable(fd, -1));
        while ((status = weir_pipeline_next(pipeline, &item, 0)) == WEIR_OK) {
            weir_item_release(&item);
            delivered++;
        }
        assert_true(status == WEIR_ETIMEDOUT || status == WEIR_EOF);
    }
    assert_int_equal(delivered, COUNT);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* weir_task_complete() comes from a thread that the pipeline does not wait for. */
TEST_CASE(a_completion_from_elsewhere_makes_it_readable)
{
    test_ledger ledger = LEDGER;
    test_pending pending = PENDING;
    weir_item *in, item;
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 1 });
    weir_builder_pipe(builder, &pending_op, &pending, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    int fd = fd_of(pipeline);
    weir_task *task = pending_take(&pending, &in);
    assert_false(is_readable(fd, 0));
    weir_item out = { 0 };
    weir_item_move(&out, in);
    weir_task_complete(task, WEIR_OK, &out);
    assert_true(is_readable(fd, -1));
    assert_int_equal(weir_pipeline_next(pipeline, &item, 0), WEIR_OK);
    weir_item_release(&item);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
