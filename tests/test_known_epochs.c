/*
 * The time that goes into the ends of epochs, in virtual time, whatever the laps are. The figures are known only
 * roughly, since a slot that is ready may wait for its thread. test_core.c has them to the nanosecond. Held constant:
 * one stage of two slots; one source on a thread of its own.
 */
#include "tests/support.h"

#include <string.h>

#include "tests/virtual_time.h"

#define MS WEIR_MILLISECOND

/* The last of the four items of an epoch takes longer; before the first one, the source has to start. */
enum { NUM_ITEMS = 4, NUM_EPOCHS = 5, START_MS = 500, TASK_MS = 100, LAST_MS = 300, ALL_MS = 5000 };

/* More than slots, and more than tasks with that of the source: else virtual time goes on although a slot waits for its thread. */
enum { NUM_THREADS = 4 };

typedef struct known_epochs {
    weir_task_metrics work; /* of all laps */
    int64_t elapsed_ns;
} known_epochs;

static void on_lap(void *self, const weir_subject_lap *lap)
{
    known_epochs *all = self;
    if (lap->subject == WEIR_SUBJECT_STAGE)
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_STAGE), &all->work, &lap->metrics.task);
}

static void on_lap_end(void *self, const weir_lap *lap)
{
    ((known_epochs *)self)->elapsed_ns += lap->elapsed_ns;
}

static int num_epochs;

static int make_epochs(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    if (num_epochs == NUM_EPOCHS)
        return WEIR_EOF;
    if (weir_task_seq(task) == 0)
        virtual_time_sleep(START_MS * MS);
    if (weir_task_seq(task) == NUM_ITEMS) {
        num_epochs++;
        return WEIR_EPOCH;
    }
    out->data = &num_epochs;
    return WEIR_OK;
}

static int work_on(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    virtual_time_sleep((weir_task_seq(task) + 1 == NUM_ITEMS ? LAST_MS : TASK_MS) * MS);
    weir_item_move(out, in);
    return WEIR_OK;
}

static void *consume(void *argument)
{
    weir_item item;
    int status;
    virtual_time_consumes();
    while ((status = weir_pipeline_next(argument, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH)
        if (status == WEIR_OK)
            weir_item_release(&item);
    return NULL;
}

static void run(known_epochs *all, int64_t interval_ns)
{
    static const weir_op source = { .name = "src", .run = make_epochs };
    static const weir_op work = { .name = "work", .run = work_on };
    weir_observer observer = { .self = all, .lap = on_lap, .lap_end = on_lap_end };
    memset(all, 0, sizeof *all);
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_STAGE), &all->work);
    num_epochs = 0;
    virtual_time_begin();
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source, NULL, 0,
                        &(weir_stage_options){ .threads = 1, .queue_items = 2 * NUM_ITEMS });
    weir_builder_pipe(builder, &work, NULL, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = NUM_THREADS,
                                                                       .observers = &observer,
                                                                       .num_observers = 1,
                                                                       .stats_interval_ns = interval_ns });
    pthread_t consumer = thread_start(consume, pipeline);
    virtual_time_drive(pipeline);
    virtual_time_sleep(ALL_MS * MS);
    thread_join(consumer);
    virtual_time_let_go();
    weir_pipeline_free(pipeline);
    virtual_time_end();
}

/*
 * Of each epoch, one slot has two tasks and then none left while the other one has its last one, for 200 ms. The source begins to
 * start when the end of the epoch is in its queue, which is at once. So it makes the next item after 500 ms, 100 ms after the last
 * task has ended, and both slots wait for that.
 */
TEST_CASE(the_time_at_the_ends_of_epochs_is_known)
{
    static known_epochs all;
    static const int64_t intervals_ns[] = { 70 * MS, 100 * MS, 350 * MS, WEIR_FOREVER };
    const int64_t tail_ns = NUM_EPOCHS * (LAST_MS - TASK_MS) * MS,
                  gap_ns = (NUM_EPOCHS - 1) * 2 * (START_MS - TASK_MS - LAST_MS) * MS;
    for (size_t i = 0; i < sizeof intervals_ns / sizeof intervals_ns[0]; i++) {
        run(&all, intervals_ns[i]);
        const weir_task_metrics *work = &all.work;
        assert_int_equal(work->num_tasks, NUM_EPOCHS * NUM_ITEMS);
        assert_in_range(work->epoch_tail_ns, tail_ns / 2, 2 * tail_ns);
        assert_in_range(work->epoch_gap_ns, gap_ns / 2, 2 * gap_ns);
        assert_in_range(work->wait_in_ns - work->epoch_tail_ns - work->epoch_gap_ns, 2 * START_MS * MS,
                        2 * (START_MS + NUM_EPOCHS * TASK_MS) * MS);
        assert_int_equal(work->busy_ns + work->wait_in_ns + work->wait_thread_ns + work->wait_out_ns + work->ended_ns,
                         2 * all.elapsed_ns);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
