/* The costs of single items: the task hook of the SQLite writer, in a pipeline of made-up items. */
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

static bool cost_of_number(const weir_item *out, weir_item_cost *cost)
{
    uint64_t number = *(uint64_t *)out->data;
    *cost = (weir_item_cost){ .codec = "h264",
                              .width = 320,
                              .height = 240,
                              .num_frames = number,
                              .size_bytes = 1000,
                              .open_ns = WEIR_SECOND,
                              .demux_ns = 2 * WEIR_SECOND,
                              .decode_ns = 3 * WEIR_SECOND,
                              .scale_ns = 4 * WEIR_SECOND };
    return number != 7; /* nothing is known of this one */
}

/* One run over all numbers, in one lap. */
static void run(const char *path, const weir_sqlite_items *items)
{
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_task_hook hook;
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_item item;
    assert_int_equal(weir_sqlite_item_hook(writer, items, &hook, &error), WEIR_OK);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers, NULL, 0, NULL);
    weir_builder_pipe(builder, &work, NULL, 0,
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
    run(path, &(weir_sqlite_items){ .cost_of = cost_of_number, .all = true });
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats"), NUM_ITEMS * 8 / 10 - 1);
    assert_int_equal(query_int(path, "SELECT count(DISTINCT seq) FROM item_stats WHERE name = '0:1:work[4]'"),
                     NUM_ITEMS * 8 / 10 - 1);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE label <> 'item ' || num_frames OR "
                                     "chosen <> 'all' OR elapsed <= 0 OR timestamp < 1e9"),
                     0);
    assert_int_equal(query_int(path,
                               "SELECT count(*) FROM item_stats WHERE codec = 'h264' AND width = 320 AND height = "
                               "240 AND size_bytes = 1000 AND open_time = 1 AND demux_time = 2 AND decode_time = 3 "
                               "AND scale_time = 4"),
                     NUM_ITEMS * 8 / 10 - 1);
}

TEST_CASE(the_slowest_and_a_sample_are_recorded_always)
{
    const char *path = in_folder("some.db");
    run(path, &(weir_sqlite_items){ .cost_of = cost_of_number, .num_slowest = 5, .num_sampled = 20 });
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE chosen = 'slowest'"), 5);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE chosen = 'slowest' AND elapsed >= 0.005"),
                     5);
    int64_t sampled = query_int(path, "SELECT count(*) FROM item_stats WHERE chosen = 'sample'");
    assert_in_range(sampled, 15, 20); /* what is among the slowest is not recorded twice */
    assert_int_equal(query_int(path, "SELECT count(DISTINCT seq) FROM item_stats"), 5 + sampled);
    assert_true(query_int(path, "SELECT max(seq) FROM item_stats WHERE chosen = 'sample'") > NUM_ITEMS / 4);
}

TEST_CASE(without_a_cost_items_have_their_time)
{
    const char *path = in_folder("plain.db");
    run(path, NULL);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE chosen = 'slowest'"), 10);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE codec = '' AND elapsed > 0"),
                     query_int(path, "SELECT count(*) FROM item_stats"));
}

/* Columns of records are added without a new version of the schema. */
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
