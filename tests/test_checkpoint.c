/* Checkpoints: what counts as done, their text, and what a resumed pipeline delivers. Random pipelines are resumed in
   test_random.c, killed ones in test_resume.c. */
#include "tests/support.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static weir_pipeline_options with(weir_checkpoints checkpoints)
{
    return (weir_pipeline_options){ .threads = 1, .checkpoints = checkpoints, .stall_warning_ns = WEIR_FOREVER };
}

/* The text with its last line, in a new memory. */
static char *sealed(const char *lines)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a, as in the table of its authors */
    char *text = NULL;
    for (const char *byte = lines; *byte; byte++)
        hash = (hash ^ (uint8_t)*byte) * UINT64_C(0x100000001b3);
    assert_true(asprintf(&text, "%send %016" PRIx64 "\n", lines, hash) > 0);
    return text;
}

static void assert_text(const char *text, const char *lines)
{
    char *expected = sealed(lines);
    assert_string_equal(text, expected);
    free(expected);
}

/* The text without its first and last lines, which are the same in all tests. */
static void assert_checkpoint(weir_pipeline *pipeline, const char *expected)
{
    char *text, whole[512];
    assert_int_equal(weir_pipeline_checkpoint(pipeline, &text), WEIR_OK);
    snprintf(whole, sizeof whole, "weir checkpoint 2\n%s", expected);
    assert_text(text, whole);
    free(text);
}

static char *stop_with_checkpoint(weir_pipeline *pipeline)
{
    char *text;
    assert_int_equal(weir_pipeline_checkpoint(pipeline, &text), WEIR_OK);
    weir_pipeline_free(pipeline);
    return text;
}

static weir_item next_item(weir_pipeline *pipeline)
{
    weir_item item = { 0 };
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    return item;
}

static weir_pipeline *build_resumed(weir_builder *builder, weir_checkpoints checkpoints, const char *text)
{
    weir_pipeline_options options = with(checkpoints);
    options.resume = &text;
    options.num_resume = 1;
    return build(builder, &options);
}

/* ---- what is done ----------------------------------------------------------------------------------------------- */

static weir_builder *plain(test_numbers *numbers)
{
    weir_builder *builder = builder_with(numbers);
    weir_builder_sink(builder, NULL);
    return builder;
}

TEST_CASE(without_the_option_there_are_no_checkpoints)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 2 };
    weir_pipeline *pipeline = build(plain(&numbers), NULL);
    char *text;
    weir_item item = next_item(pipeline);
    assert_int_equal(weir_pipeline_checkpoint(pipeline, &text), WEIR_EUNSUPPORTED);
    assert_null(text);
    assert_int_equal(weir_item_done(pipeline, &item), WEIR_EUNSUPPORTED);
    weir_item_release(&item);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(a_delivered_item_is_done)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 5 };
    weir_pipeline_options options = with(WEIR_CHECKPOINTS_DELIVERED);
    weir_pipeline *pipeline = build(plain(&numbers), &options);
    next_value(pipeline);
    next_value(pipeline);
    char *text = stop_with_checkpoint(pipeline);
    pipeline = build_resumed(plain(&numbers), WEIR_CHECKPOINTS_DELIVERED, text);
    assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 2\n");
    assert_int_equal(next_value(pipeline), 2);
    assert_int_equal(drain_all(pipeline), 2);
    assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 5\n");
    weir_pipeline_free(pipeline);
    free(text);
    ledger_close(&ledger);
}

TEST_CASE(acknowledged_items_are_done_in_any_order)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 6 };
    weir_pipeline_options options = with(WEIR_CHECKPOINTS_DONE);
    weir_pipeline *pipeline = build(plain(&numbers), &options);
    weir_item items[6];
    for (int i = 0; i < 6; i++)
        items[i] = next_item(pipeline);
    static const int done[] = { 5, 2, 0, 3, 3 };
    for (size_t i = 0; i < LENGTH(done); i++)
        assert_int_equal(weir_item_done(pipeline, &items[done[i]]), WEIR_OK);
    for (int i = 0; i < 6; i++)
        weir_item_release(&items[i]);
    assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 1 2-3 5\n");
    char *text = stop_with_checkpoint(pipeline);
    pipeline = build_resumed(plain(&numbers), WEIR_CHECKPOINTS_DELIVERED, text);
    assert_int_equal(next_value(pipeline), 1);
    assert_int_equal(next_value(pipeline), 4);
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    free(text);
    ledger_close(&ledger);
}

/* Items of even values are dropped, those divisible by 3 fail. */
static int choose(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    uint64_t value = item_value(in);
    if (value % 2 == 0)
        return WEIR_SKIP;
    if (value % 3 == 0)
        return weir_task_fail(task, WEIR_EDATA, 0, "one that fails");
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op choose_op = { .name = "choose", .run = choose };

TEST_CASE(skipped_and_failed_items_are_done)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 8 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &choose_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = with(WEIR_CHECKPOINTS_DONE);
    weir_pipeline *pipeline = build(builder, &options);
    assert_int_equal(drain_all(pipeline), 3); /* 1, 5 and 7 are delivered, but not acknowledged */
    assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 1 2-4 6\n");
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(failed_items_can_be_left_for_the_next_run)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    weir_pipeline_options options = with(WEIR_CHECKPOINTS_DELIVERED);
    char *text = NULL;
    options.retry_failed = true;
    for (int round = 0; round < 2; round++) {
        weir_builder *builder = builder_with(&numbers);
        weir_builder_pipe(builder, &choose_op, NULL, 0, NULL);
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline = build(builder, &options);
        assert_int_equal(drain_all(pipeline), round ? 0 : 3); /* 1, 5 and 7; 3 and 9 fail again */
        assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 3 4-8\n");
        assert_int_equal(account_of(pipeline, "choose").failed, 2);
        free(text);
        text = stop_with_checkpoint(pipeline);
        options.resume = (const char *const *)&text;
        options.num_resume = 1;
    }
    weir_pipeline *pipeline = build_resumed(plain(&numbers), WEIR_CHECKPOINTS_DELIVERED, text);
    assert_int_equal(next_value(pipeline), 3);
    assert_int_equal(next_value(pipeline), 9);
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_free(pipeline);
    free(text);
    ledger_close(&ledger);
}

TEST_CASE(what_a_stop_drops_is_not_done)
{
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 9 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &gated_op, &gate, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = with(WEIR_CHECKPOINTS_DELIVERED);
    options.threads = 2;
    weir_pipeline *pipeline = build(builder, &options);
    gate_let(&gate, 1);
    assert_int_equal(next_value(pipeline), 0);
    gate_await_waiting(&gate, 1);
    weir_pipeline_stop(pipeline);
    gate_open(&gate);
    assert_int_equal(drain(pipeline, &(int){ 0 }), 0);
    assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 1\n");
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* Runs until it is asked to stop, and fails then. */
static int run_until_stopped(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    counter_add((test_counter *)(uintptr_t)weir_task_config(task), 1);
    while (!weir_task_should_stop(task))
        sched_yield();
    return weir_task_fail(task, WEIR_ESTOPPED, 0, "it was asked to stop");
}

static int stage_ended(void *self, const char *stage, weir_error *error)
{
    (void)stage;
    (void)error;
    counter_add(self, 1);
    return WEIR_OK;
}

TEST_CASE(a_task_that_obeys_a_stop_has_not_done_its_item)
{
    test_ledger ledger = LEDGER;
    test_counter started = COUNTER, ended = COUNTER;
    test_numbers numbers = { .ledger = &ledger, .count = 9 };
    weir_op op = { .name = "obedient", .run = run_until_stopped };
    weir_stage_hook hook = { .self = &ended, .end = stage_ended };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &started, 0, &(weir_stage_options){ .stage_hooks = &hook, .num_stage_hooks = 1 });
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = with(WEIR_CHECKPOINTS_DELIVERED);
    weir_pipeline *pipeline = build(builder, &options);
    counter_await(&started, 1);
    weir_pipeline_stop(pipeline);
    counter_await(&ended, 1);
    assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 0\n");
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- pieces and batches ----------------------------------------------------------------------------------------- */

/* Makes value × 10 + 0, 1, 2. */
static int split(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    test_ledger *ledger = (test_ledger *)(uintptr_t)weir_task_config(task);
    uint32_t chunk = weir_task_num_chunks(task);
    ledger_fill(ledger, out, item_value(in) * 10 + chunk, 0);
    return chunk < 2 ? WEIR_MORE : WEIR_OK;
}

static const weir_op split_op = { .name = "split", .makes = WEIR_TYPE_ANY, .run = split };

static weir_builder *splitting(test_numbers *numbers, int times)
{
    weir_builder *builder = builder_with(numbers);
    for (int i = 0; i < times; i++)
        weir_builder_pipe(builder, &split_op, numbers->ledger, 0,
                          &(weir_stage_options){ .name = i ? "again" : "split", .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);
    return builder;
}

TEST_CASE(chunks_that_are_done_are_left_out)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 2 };
    uint64_t expected = 0;
    char *text = NULL;
    for (int stop_after = 1; expected < 18; stop_after = stop_after % 4 + 1) { /* two items, nine chunks of each */
        weir_pipeline_options options = with(WEIR_CHECKPOINTS_DELIVERED);
        options.resume = (const char *const *)&text;
        options.num_resume = text != NULL;
        weir_pipeline *pipeline = build(splitting(&numbers, 2), &options);
        for (int i = 0; i < stop_after && expected < 18; i++, expected++)
            assert_int_equal(next_value(pipeline), expected / 9 * 100 + expected / 3 % 3 * 10 + expected % 3);
        free(text);
        text = stop_with_checkpoint(pipeline);
    }
    assert_text(text, "weir checkpoint 2\nepoch 0\nsource 0 src\ndone 0 2\n");
    free(text);
    ledger_close(&ledger);
}

static weir_builder *batching(test_numbers *numbers, size_t num_items, bool drop_last)
{
    weir_builder *builder = builder_with(numbers);
    weir_aggregate_config config = { .num_items = num_items, .drop_last = drop_last };
    weir_pipe_aggregate(builder, &config, NULL);
    weir_builder_sink(builder, NULL);
    return builder;
}

TEST_CASE(a_batch_is_done_as_a_whole_or_by_item)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 7 };
    weir_pipeline_options options = with(WEIR_CHECKPOINTS_DONE);
    weir_pipeline *pipeline = build(batching(&numbers, 3, true), &options);
    weir_item first = next_item(pipeline), second = next_item(pipeline);
    assert_int_equal(drain_all(pipeline), 0); /* the seventh item has been dropped by drop_last: it is done */
    assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 0 6\n");
    weir_batch *batch = second.data;
    assert_int_equal(weir_item_done(pipeline, &batch->items[1]), WEIR_OK);
    assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 0 4 6\n");
    assert_int_equal(weir_item_done(pipeline, &first), WEIR_OK);
    assert_int_equal(weir_item_done(pipeline, &second), WEIR_OK);
    assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 7\n");
    weir_item_release(&first);
    weir_item_release(&second);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* Adds three values; takes the data out of its input, without weir_item_keep(). */
typedef struct sum_worker {
    uint64_t sum, count;
} sum_worker;

static int add(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    sum_worker *sum = worker;
    sum->sum += item_value(in);
    if (++sum->count < 3)
        return WEIR_KEPT;
    ledger_fill((test_ledger *)(uintptr_t)weir_task_config(task), out, sum->sum, 0);
    *sum = (sum_worker){ 0 };
    return WEIR_OK;
}

static int flush_sum(void *worker, weir_item *out, weir_task *task)
{
    sum_worker *sum = worker;
    if (sum->count == 0)
        return WEIR_SKIP;
    ledger_fill((test_ledger *)(uintptr_t)weir_task_config(task), out, sum->sum, 0);
    *sum = (sum_worker){ 0 };
    return WEIR_OK;
}

static const weir_op sum_op = { .name = "sum", .worker_size = sizeof(sum_worker), .run = add, .flush = flush_sum };

TEST_CASE(inputs_belong_to_the_result_that_they_were_kept_for)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 8 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &sum_op, &ledger, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = with(WEIR_CHECKPOINTS_DELIVERED);
    weir_pipeline *pipeline = build(builder, &options);
    assert_int_equal(next_value(pipeline), 0 + 1 + 2);
    assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 3\n");
    assert_int_equal(next_value(pipeline), 3 + 4 + 5);
    assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 6\n");
    assert_int_equal(next_value(pipeline), 6 + 7);
    assert_checkpoint(pipeline, "epoch 0\nsource 0 src\ndone 0 8\n");
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- epochs ----------------------------------------------------------------------------------------------------- */

TEST_CASE(an_end_of_an_epoch_is_told_once)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 2 };
    char *text = NULL;
    for (int step = 0, expected = 0; step < 9;
         step++) { /* 3 epochs: two items and an end each; one step in each run */
        weir_builder *builder = weir_builder_new();
        weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .epochs = 3 });
        weir_builder_sink(builder, NULL);
        weir_pipeline_options options = with(WEIR_CHECKPOINTS_DELIVERED);
        options.resume = (const char *const *)&text;
        options.num_resume = text != NULL;
        weir_pipeline *pipeline = build(builder, &options);
        weir_item item = { 0 };
        int status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
        assert_int_equal(status, step % 3 == 2 ? WEIR_EPOCH : WEIR_OK);
        if (status == WEIR_OK)
            assert_int_equal(item.epoch * 2 + item_value(&item), expected++);
        weir_item_release(&item);
        if (step == 8)
            assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
        free(text);
        text = stop_with_checkpoint(pipeline);
    }
    assert_text(text, "weir checkpoint 2\nepoch 3\nsource 0 src\n");
    weir_checkpoint *checkpoint;
    assert_int_equal(weir_checkpoint_read(text, &checkpoint, NULL), WEIR_OK);
    assert_int_equal(checkpoint->epoch, 3);
    assert_true(weir_checkpoint_is_done(checkpoint, 0, 2, 1000));
    assert_false(weir_checkpoint_is_done(checkpoint, 0, 3, 0));
    weir_checkpoint_free(checkpoint);
    free(text);
    ledger_close(&ledger);
}

/* ---- the text --------------------------------------------------------------------------------------------------- */

TEST_CASE(a_text_can_be_read)
{
    weir_checkpoint *checkpoint;
    weir_error error = { 0 };
    char *text = sealed("weir checkpoint 2\nepoch 2\nsource 0 a b\n  first\n  second\n"
                        "done 2 10 12-14 20\ndone 3 0\nchunks 2 30 0123456789abcdef 1\nsource 1 c\n");
    assert_int_equal(weir_checkpoint_read(text, &checkpoint, &error), WEIR_OK);
    free(text);
    assert_int_equal(checkpoint->epoch, 2);
    assert_int_equal(checkpoint->num_sources, 2);
    assert_string_equal(weir_checkpoint_source_at(checkpoint, 0)->name, "a b");
    assert_string_equal(weir_checkpoint_source_at(checkpoint, 0)->text, "first\nsecond\n");
    assert_string_equal(weir_checkpoint_source_at(checkpoint, 1)->text, "");
    assert_null(weir_checkpoint_source_at(checkpoint, 2));
    static const uint64_t done[] = { 0, 9, 12, 13, 14, 20 }, not_done[] = { 10, 11, 15, 19, 21, 30 };
    for (size_t i = 0; i < LENGTH(done); i++)
        assert_true(weir_checkpoint_is_done(checkpoint, 0, 2, done[i]));
    for (size_t i = 0; i < LENGTH(not_done); i++)
        assert_false(weir_checkpoint_is_done(checkpoint, 0, 2, not_done[i]));
    assert_true(weir_checkpoint_is_done(checkpoint, 0, 1, 99));
    uint64_t low, end;
    weir_checkpoint_range(checkpoint, 0, 2, &low, &end);
    assert_int_equal(low, 10);
    assert_int_equal(end, 31);
    weir_checkpoint_range(checkpoint, 0, 1, &low, &end);
    assert_true(low == UINT64_MAX && end == UINT64_MAX);
    assert_int_equal(weir_checkpoint_source_at(checkpoint, 0)->last_epoch, 3);
    weir_checkpoint_free(checkpoint);
}

TEST_CASE(a_damaged_text_is_refused_with_its_line)
{
    static const struct {
        const char *text;
        int status;
        const char *message;
    } cases[] = {
        { "", WEIR_EDATA, "not a checkpoint" },
        { "hello\n", WEIR_EDATA, "not a checkpoint" },
        { "weir checkpoint 3\n", WEIR_EUNSUPPORTED, "format 3" },
        { "weir checkpoint 2\nepoch x\n", WEIR_EDATA, "line 2" },
        { "weir checkpoint 2\nepoch 0\nsource 0 a\ndone 0 1\n", WEIR_EDATA, "cut off after line 4" },
        { "weir checkpoint 2\nepoch 0\nsource 0 a\ndone 0 1", WEIR_EDATA, "cut off after line 3" },
        { "weir checkpoint 2\nepoch 0\nsource 1 a\nend\n", WEIR_EDATA, "line 3" },
        { "weir checkpoint 2\nepoch 0\ndone 0 1\nend\n", WEIR_EDATA, "line 3" },
        { "weir checkpoint 2\nepoch 0\nsource 0 a\ndone 0 5 5\nend\n", WEIR_EDATA, "line 4" },
        { "weir checkpoint 2\nepoch 0\nsource 0 a\ndone 0 5 9-8\nend\n", WEIR_EDATA, "line 4" },
        { "weir checkpoint 2\nepoch 0\nsource 0 a\ndone 0 99999999999999999999\nend\n", WEIR_EDATA, "line 4" },
        { "weir checkpoint 2\nepoch 0\nsource 0 a\nchunks 0 1 xyz\nend\n", WEIR_EDATA, "line 4" },
        { "weir checkpoint 2\nepoch 0\nsource 0 a\nchunks 0 18446744073709551614 1\nend\n", WEIR_EDATA, "line 4" },
        { "weir checkpoint 2\nepoch 0\nsource 0 a\nchunks 0 18446744073709551615 1\nend\n", WEIR_EDATA, "line 4" },
        { "weir checkpoint 2\nepoch 0\nsource 0 a\nwhat\nend\n", WEIR_EDATA, "line 4" },
        { "weir checkpoint 2\nepoch 0\nend\nmore\n", WEIR_EDATA, "after \"end\"" },
        { "weir checkpoint 2\nepoch 0\nend\n", WEIR_EDATA, "line 3: the text is damaged" },
        { "weir checkpoint 1\nepoch 0\nend\n", WEIR_EUNSUPPORTED, "format 1" },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        weir_checkpoint *checkpoint;
        weir_error error = { 0 };
        assert_int_equal(weir_checkpoint_read(cases[i].text, &checkpoint, &error), cases[i].status);
        assert_null(checkpoint);
        if (!strstr(error.message, cases[i].message) || strchr(error.message, '\n'))
            fail_msg("%zu: %s", i, error.message);
    }
}

/* A pipeline that has delivered half of its items, stored in a file of the test's folder. */
static char *store_checkpoint(const char *state, size_t state_bytes)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    weir_pipeline_options options = with(WEIR_CHECKPOINTS_DELIVERED);
    weir_pipeline *pipeline = build(plain(&numbers), &options);
    weir_error error = { 0 };
    char *path = NULL;
    assert_true(asprintf(&path, "/tmp/weir-checkpoint-%d", (int)getpid()) > 0);
    for (int i = 0; i < 5; i++)
        next_value(pipeline);
    if (weir_checkpoint_store(pipeline, path, state, state_bytes, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    return path;
}

TEST_CASE(a_file_has_checkpoint_and_state)
{
    char *text, *path = store_checkpoint("end \n\0weights", 13);
    void *weights;
    size_t num_bytes;
    weir_error error = { 0 };
    assert_int_equal(weir_checkpoint_load(path, &text, &weights, &num_bytes, &error), WEIR_OK);
    assert_text(text, "weir checkpoint 2\nepoch 0\nsource 0 src\ndone 0 5\n");
    assert_int_equal(num_bytes, 13);
    assert_memory_equal(weights, "end \n\0weights", 14);
    free(weights);
    free(text);
    free(path);
    path = store_checkpoint(NULL, 0); /* replaces the file */
    assert_int_equal(weir_checkpoint_load(path, &text, &weights, &num_bytes, &error), WEIR_OK);
    assert_int_equal(num_bytes, 0);
    free(weights);
    free(text);
    unlink(path);
    assert_int_equal(weir_checkpoint_load(path, &text, &weights, NULL, &error), WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, path));
    assert_null(text);
    assert_null(weights);
    assert_int_equal(weir_checkpoint_load("/tmp", &text, NULL, NULL, &error), WEIR_EACCESS);
    free(path);
}

TEST_CASE(each_change_of_a_byte_of_a_file_is_refused)
{
    char *text, *path = store_checkpoint("weights", 7), bytes[512];
    FILE *file = fopen(path, "r+");
    weir_error error = { 0 };
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_in_range(size, 60, sizeof bytes - 1);
    for (size_t at = 0; at < size; at++) {
        for (int change = 1; change < 256; change++) {
            fseek(file, (long)at, SEEK_SET);
            fputc((uint8_t)bytes[at] ^ change, file);
            assert_int_equal(fflush(file), 0);
            int status = weir_checkpoint_load(path, &text, NULL, NULL, &error);
            if (status != WEIR_EDATA && status != WEIR_EUNSUPPORTED)
                fail_msg("byte %zu, changed by %d: %d", at, change, status);
        }
        fseek(file, (long)at, SEEK_SET);
        fputc(bytes[at], file);
    }
    for (size_t length = 0; length < size; length++) {
        assert_int_equal(fflush(file) | ftruncate(fileno(file), (off_t)(size - 1 - length)), 0);
        assert_int_equal(weir_checkpoint_load(path, &text, NULL, NULL, &error), WEIR_EDATA);
    }
    fclose(file);
    unlink(path);
    free(path);
}

TEST_CASE(each_change_of_a_byte_of_a_text_is_refused)
{
    char *text = sealed("weir checkpoint 2\nepoch 2\nsource 0 src\n  items dataset=00ff\ndone 2 10 12-14 20\n");
    weir_checkpoint *checkpoint;
    for (char *at = text; *at; at++)
        for (int change = 1; change < 256; change++) {
            *at = (char)((uint8_t)*at ^ change);
            int status = weir_checkpoint_read(text, &checkpoint, NULL);
            if (status != WEIR_EDATA && status != WEIR_EUNSUPPORTED)
                fail_msg("byte %td, changed by %d: %d", at - text, change, status);
            *at = (char)((uint8_t)*at ^ change);
        }
    free(text);
}

TEST_CASE(a_file_that_cannot_be_stored_stays_as_it_was)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 2 };
    weir_pipeline_options options = with(WEIR_CHECKPOINTS_DELIVERED);
    weir_pipeline *pipeline = build(plain(&numbers), &options);
    weir_error error = { 0 };
    assert_int_equal(weir_checkpoint_store(pipeline, "/nowhere/here", NULL, 0, &error), WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, "/nowhere/here"));
    assert_int_equal(weir_checkpoint_store(pipeline, "/tmp", NULL, 0, &error), WEIR_EACCESS);
    weir_pipeline_free(pipeline);
    pipeline = build(plain(&numbers), NULL);
    assert_int_equal(weir_checkpoint_store(pipeline, "/tmp/x", NULL, 0, &error), WEIR_EUNSUPPORTED);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static void refuse(const weir_pipeline_options *options, const char *message)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 5 };
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    assert_true(weir_builder_build(plain(&numbers), options, &pipeline, &error) < 0);
    assert_null(pipeline);
    if (!strstr(error.message, message))
        fail_msg("%s", error.message);
    ledger_close(&ledger);
}

TEST_CASE(what_cannot_be_resumed_is_refused)
{
    char *other = sealed("weir checkpoint 2\nepoch 0\nsource 0 other\n");
    char *own = sealed("weir checkpoint 2\nepoch 0\nsource 0 src\n");
    const char *same[] = { own, own };
    static const char *const damaged = "weir";
    weir_pipeline_options options = with(WEIR_CHECKPOINTS_DELIVERED);
    options.num_resume = 1;
    refuse(&options, "resume is NULL");
    options.resume = (const char *const *)&other;
    refuse(&options, "source 0 is \"other\", here it is \"src\"");
    options.resume = &damaged;
    refuse(&options, "not a checkpoint");
    options.resume = same;
    options.num_resume = 2;
    refuse(&options, "only a sampler can divide");
    options.checkpoints = WEIR_CHECKPOINTS_OFF;
    refuse(&options, "WEIR_CHECKPOINTS_OFF");
    free(other);
    free(own);
}

static int renumber_all(void *config, const weir_checkpoint *const *checkpoints, size_t num_checkpoints,
                        size_t source, weir_error *error)
{
    (void)config;
    (void)checkpoints;
    (void)num_checkpoints;
    (void)source;
    (void)error;
    return WEIR_SKIP;
}

TEST_CASE(a_source_that_has_renumbered_its_items_must_say_how)
{
    char *text = sealed("weir checkpoint 2\nepoch 0\nsource 0 src\n");
    static const weir_op op = { .name = "renumbered", .run = run_until_asked, .resume = renumber_all };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = with(WEIR_CHECKPOINTS_DELIVERED);
    options.resume = (const char *const *)&text;
    options.num_resume = 1;
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    assert_int_equal(weir_builder_build(builder, &options, &pipeline, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "has no renumber"));
    free(text);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
