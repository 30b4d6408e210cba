/* The parts of single items: the task hook of the SQLite writer, in a pipeline of made-up items. */
#include "tests/stats_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/engine.h>

enum { NUM_ITEMS = 500 };

/* A source of numbers, labelled "item 7". */
typedef struct number_worker {
    uint64_t next;
    char label[32];
} number_worker;

static int number_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    (void)task;
    number_worker *worker = self;
    if (worker->next == NUM_ITEMS)
        return WEIR_EOF;
    uint64_t *number = malloc(sizeof *number);
    assert_non_null(number);
    *number = worker->next++;
    snprintf(worker->label, sizeof worker->label, "item %d", (int)*number);
    *out = (weir_item){ .data = number, .release = weir_release_free, .label = worker->label };
    return WEIR_OK;
}

static const weir_op numbers = { .name = "numbers", .worker_size = sizeof(number_worker), .run = number_run };

/* Passes on; every tenth one takes longer, the fifth of ten fails, the sixth is skipped. */
static int work_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    uint64_t number = *(uint64_t *)in->data;
    int64_t end_ns = weir_clock_ns() + (number % 100 == 0 ? 6 * WEIR_MILLISECOND : 0);
    while (weir_clock_ns() < end_ns)
        ;
    if (number % 10 == 5)
        return weir_task_fail(task, WEIR_EDATA, 0, "bad");
    if (number % 10 == 6)
        return WEIR_SKIP;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op work = { .name = "work", .run = work_run };

/* The same, and tells what decode stages tell. */
static int reported_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    static const weir_part_info codec = { "codec", WEIR_PART_TEXT, "", "" };
    static const struct {
        weir_part_info info;
        int64_t number;
    } parts[] = {
        { { "width", WEIR_PART_COUNT, "pixels", "" }, 320 },
        { { "height", WEIR_PART_COUNT, "pixels", "" }, 240 },
        { { "size_bytes", WEIR_PART_BYTES, "bytes", "" }, 1000 },
        { { "open", WEIR_PART_TIME, "s", "" }, WEIR_SECOND },
        { { "demux", WEIR_PART_TIME, "s", "" }, 2 * WEIR_SECOND },
        { { "decode", WEIR_PART_TIME, "s", "" }, 3 * WEIR_SECOND },
        { { "scale", WEIR_PART_TIME, "s", "" }, 4 * WEIR_SECOND },
    };
    static const weir_part_info num_frames = { "num_frames", WEIR_PART_COUNT, "frames", "" },
                                num_missing = { "num_missing", WEIR_PART_COUNT, "frames", "" },
                                num_errors = { "num_errors", WEIR_PART_COUNT, "errors", "" };
    uint64_t number = *(uint64_t *)in->data;
    assert_int_equal(weir_task_set_text(task, &codec, "h264"), WEIR_OK);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        assert_int_equal(weir_task_set_part(task, &parts[i].info, parts[i].number), WEIR_OK);
    assert_int_equal(weir_task_set_part(task, &num_frames, (int64_t)number), WEIR_OK);
    if (number == 3)
        assert_int_equal(weir_task_set_part(task, &num_missing, 2), WEIR_OK);
    if (number == 4)
        assert_int_equal(weir_task_set_part(task, &num_errors, 5), WEIR_OK);
    return work_run(worker, in, out, task);
}

static const weir_op reported = { .name = "work", .run = reported_run };

/* Tells what weir knows nothing of. */
static int own_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    static const weir_part_info upload = { "upload", WEIR_PART_TIME, "s", "" },
                                num_tokens = { "num_tokens", WEIR_PART_COUNT, "tokens", "" },
                                packed_bytes = { "packed_bytes", WEIR_PART_BYTES, "bytes", "" },
                                odd = { "an \"odd\" one", WEIR_PART_TEXT, "", "" },
                                from = { "from", WEIR_PART_TEXT, "", "" },
                                decode = { "decode", WEIR_PART_COUNT, "", "" }; /* of another kind than the column */
    assert_int_equal(weir_task_set_part(task, &upload, 2 * WEIR_SECOND + 5), WEIR_OK);
    assert_int_equal(weir_task_set_part(task, &num_tokens, INT64_MAX), WEIR_OK);
    assert_int_equal(weir_task_set_part(task, &packed_bytes, 0), WEIR_OK);
    assert_int_equal(weir_task_set_text(task, &odd, "a\\b\"\n\xff\xc3\xa9"), WEIR_OK);
    assert_int_equal(weir_task_set_text(task, &from, "http://h/?token=secret"), WEIR_OK);
    assert_int_equal(weir_task_set_part(task, &decode, 3), WEIR_OK);
    return work_run(worker, in, out, task);
}

static const weir_op own = { .name = "work", .run = own_run };

/* As much as fits, of the bytes that are longest in JSON. */
static struct {
    char names[WEIR_MAX_ITEM_PARTS][WEIR_PART_NAME_BYTES], text[WEIR_PART_TEXT_BYTES];
    weir_part_info parts[WEIR_MAX_ITEM_PARTS];
} longest;

static void make_longest(void)
{
    memset(longest.text, 1, sizeof longest.text - 1);
    for (int i = 0; i < WEIR_MAX_ITEM_PARTS; i++) {
        memset(longest.names[i], 2, WEIR_PART_NAME_BYTES - 1);
        longest.names[i][0] = (char)('a' + i);
        longest.parts[i] = (weir_part_info){ longest.names[i], WEIR_PART_TEXT, "", "" };
    }
}

static int most_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    for (int i = 0; i < WEIR_MAX_ITEM_PARTS; i++)
        assert_int_equal(weir_task_set_text(task, &longest.parts[i], longest.text), WEIR_OK);
    return work_run(worker, in, out, task);
}

static const weir_op most = { .name = "work", .run = most_run };

/* One run over all numbers, in one lap. */
static void run(const char *path, const weir_op *op, const weir_sqlite_items *items)
{
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_task_hook hook;
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_item item;
    assert_int_equal(weir_sqlite_item_hook(writer, items, &hook, &error), WEIR_OK);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers, NULL, 0, NULL);
    weir_builder_pipe(builder, op, NULL, 0,
                      &(weir_stage_options){ .concurrency = 4, .task_hooks = &hook, .num_task_hooks = 1 });
    weir_builder_sink(builder, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    weir_pipeline_options options = { .observers = &observer, .num_observers = 1, .stats_interval_ns = WEIR_FOREVER };
    if (weir_builder_build(builder, &options, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK)
        weir_item_release(&item);
    weir_pipeline_free(pipeline);
    close_writer(writer);
}

TEST_CASE(every_item_is_recorded_if_asked_for)
{
    const char *path = in_folder("all.db");
    run(path, &reported, &(weir_sqlite_items){ .all = true });
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats"), NUM_ITEMS * 8 / 10);
    assert_int_equal(query_int(path, "SELECT count(DISTINCT seq) FROM item_stats WHERE name = '0:1:work[4]'"),
                     NUM_ITEMS * 8 / 10);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE label <> 'item ' || num_frames OR "
                                     "elapsed <= 0 OR timestamp < 1e9 OR parts <> ''"),
                     0);
    assert_int_equal(query_int(path,
                               "SELECT count(*) FROM item_stats WHERE codec = 'h264' AND width = 320 AND height = "
                               "240 AND size_bytes = 1000 AND open_time = 1 AND demux_time = 2 AND decode_time = 3 "
                               "AND scale_time = 4"),
                     NUM_ITEMS * 8 / 10);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE chosen = 'all'"), NUM_ITEMS * 8 / 10 - 2);
}

TEST_CASE(damaged_items_are_recorded_always)
{
    const char *path = in_folder("damaged.db");
    run(path, &reported, &(weir_sqlite_items){ .num_slowest = 1, .num_sampled = 1 });
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE chosen = 'damaged'"), 2);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE chosen = 'damaged' AND seq = 3 AND "
                                     "num_missing = 2 AND num_errors = 0"),
                     1);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE chosen = 'damaged' AND seq = 4 AND "
                                     "num_missing = 0 AND num_errors = 5"),
                     1);
}

TEST_CASE(parts_of_a_stage_of_the_user_are_recorded_by_their_names)
{
    const char *path = in_folder("own.db");
    run(path, &own, &(weir_sqlite_items){ .all = true });
    const char *all = "SELECT count(*) FROM item_stats WHERE parts = "
                      "'{\"upload_time\": 2.000000005, \"num_tokens\": 9223372036854775807, \"packed_bytes\": 0, "
                      "\"an \\u0022odd\\u0022 one\": \"a\\u005cb\\u0022\\u000a\\ufffd\u00e9\", "
                      "\"from\": \"http://h/?token=***\", \"decode\": 3}'";
    assert_int_equal(query_int(path, all), NUM_ITEMS * 8 / 10);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE json_extract(parts, '$.upload_time') > 2 "
                                     "AND json_extract(parts, '$.decode') = 3 AND decode_time = 0 AND codec = ''"),
                     NUM_ITEMS * 8 / 10);
}

TEST_CASE(as_many_parts_as_an_item_has_are_recorded)
{
    const char *path = in_folder("most.db");
    make_longest();
    run(path, &most, &(weir_sqlite_items){ .all = true });
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE json_valid(parts) AND "
                                     "(SELECT count(*) FROM json_each(parts)) = 24 AND length(parts) > 24 * 6 * 61"),
                     NUM_ITEMS * 8 / 10);
}

TEST_CASE(the_slowest_and_a_sample_are_recorded_always)
{
    const char *path = in_folder("some.db");
    run(path, &work, &(weir_sqlite_items){ .num_slowest = 5, .num_sampled = 20 });
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE chosen = 'slowest'"), 5);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE chosen = 'slowest' AND elapsed >= 0.005"),
                     5);
    int64_t sampled = query_int(path, "SELECT count(*) FROM item_stats WHERE chosen = 'sample'");
    assert_in_range(sampled, 15, 20); /* what is among the slowest is not recorded twice */
    assert_int_equal(query_int(path, "SELECT count(DISTINCT seq) FROM item_stats"), 5 + sampled);
    assert_true(query_int(path, "SELECT max(seq) FROM item_stats WHERE chosen = 'sample'") > NUM_ITEMS / 4);
}

TEST_CASE(without_parts_items_have_their_time)
{
    const char *path = in_folder("plain.db");
    run(path, &work, NULL);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE chosen = 'slowest'"), 10);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE codec = '' AND elapsed > 0"),
                     query_int(path, "SELECT count(*) FROM item_stats"));
}

TEST_CASE(impossible_options_are_refused)
{
    weir_task_hook hook;
    weir_error error = { 0 };
    weir_sqlite_writer *writer = open_writer(in_folder("none.db"), NULL);
    assert_int_equal(weir_sqlite_item_hook(writer, &(weir_sqlite_items){ .num_slowest = 1U << 20 }, &hook, &error),
                     WEIR_EINVAL);
    assert_null(hook.end);
    close_writer(writer);
}

TEST_MAIN(make_folder, remove_folder, NULL, NULL)
