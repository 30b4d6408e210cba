/*
 * A pipeline in a libuv event loop with other work: here a timer, which shows that the loop is never blocked. Any
 * loop that can wait for a file descriptor can be used: epoll, GLib's g_unix_fd_add(), Qt's QSocketNotifier.
 *
 *     event_loop [ITEMS]
 */
#include <stdio.h>
#include <stdlib.h>

#include <uv.h>

#include <weir/weir.h>

static uint64_t num_items = 20, sum, ticks;
static uv_timer_t timer;
static uv_poll_t results;

static int make_number(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    if (weir_task_seq(task) == num_items)
        return WEIR_EOF;
    uint64_t *number = malloc(sizeof *number);
    if (!number)
        return weir_task_fail(task, WEIR_ENOMEM, 0, "no memory for a number");
    *number = weir_task_seq(task);
    *out = (weir_item){ .data = number, .size_bytes = sizeof *number, .release = weir_release_free };
    return WEIR_OK;
}

/* Work that would block the loop. */
static int work(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    int64_t end_ns = weir_clock_ns() + 10 * WEIR_MILLISECOND;
    while (weir_clock_ns() < end_ns && !weir_task_should_stop(task))
        ;
    *(uint64_t *)in->data *= 2;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op number_source = { .name = "numbers", .makes = "number", .run = make_number };
static const weir_op work_op = { .name = "work", .takes = "number", .makes = "number", .run = work };

static void on_tick(uv_timer_t *handle)
{
    (void)handle;
    ticks++;
}

/* The descriptor stays readable while there are more items, so one item per callback is enough, and other callbacks
   can run. */
static void on_result(uv_poll_t *handle, int status, int events)
{
    (void)events;
    weir_item item;
    int result = status == 0 ? weir_pipeline_next(handle->data, &item, 0) : WEIR_ESYSTEM;
    if (result == WEIR_OK) {
        sum += *(uint64_t *)item.data;
        weir_item_release(&item);
    } else if (result != WEIR_ETIMEDOUT && result != WEIR_EPOCH) {
        uv_close((uv_handle_t *)&timer, NULL); /* the end: the loop has nothing left to wait for */
        uv_close((uv_handle_t *)handle, NULL);
    }
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    if (argc > 1)
        num_items = strtoull(argv[1], NULL, 10);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &number_source, NULL, 0, NULL);
    weir_builder_pipe(builder, &work_op, NULL, 0, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);
    int fd, status = weir_builder_build(builder, NULL, &pipeline, &error);
    if (status == WEIR_OK) {
        weir_pipeline_stop_on_signals(pipeline);
        status = weir_pipeline_poll_fd(pipeline, &fd);
    }
    if (status != WEIR_OK) {
        fprintf(stderr, "event_loop: %s\n", error.message[0] ? error.message : weir_status_text(status));
        weir_pipeline_free(pipeline);
        return 1;
    }

    uv_loop_t *loop = uv_default_loop();
    uv_timer_init(loop, &timer);
    uv_timer_start(&timer, on_tick, 1, 1);
    uv_poll_init(loop, &results, fd);
    results.data = pipeline;
    uv_poll_start(&results, UV_READABLE, on_result);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_loop_close(loop);

    status = weir_pipeline_error(pipeline, NULL, &error);
    weir_pipeline_free(pipeline); /* the descriptor belongs to the pipeline; the loop no longer uses it */
    printf("sum: %llu\n", (unsigned long long)sum);
    fprintf(stderr, "the loop's timer fired %llu times\n", (unsigned long long)ticks);
    return status == WEIR_OK ? 0 : 1;
}
