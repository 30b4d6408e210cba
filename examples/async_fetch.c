/*
 * Asynchronous work: 256 transfers in flight, and one thread in the pool.
 *
 * The stage "fetch" starts a transfer and returns WEIR_PENDING; no thread waits for it. An event loop, on a separate
 * thread, delivers the results with weir_task_complete(). Here the transfers are libuv timers of 1 to 100 ms; with a
 * network library the structure is the same.
 *
 *     async_fetch [NUM_URLS]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include <weir/engine.h>

/* One transfer, until its result has been delivered. */
typedef struct url_transfer {
    uv_timer_t timer;
    weir_task *task;
    struct url_transfer *next; /* in one of the fetcher's lists */
    bool cancelled;
} url_transfer;

/* The event loop and the requests of other threads. */
typedef struct url_fetcher {
    uv_thread_t thread;
    uv_loop_t loop;
    uv_async_t wake;

    uv_mutex_t lock;
    /* guarded by lock */
    url_transfer *started; /* not in the loop yet */
    bool cancel_all;
    bool quit;

    /* the loop's thread only */
    url_transfer *running;
} url_fetcher;

/* ---- the event loop ----------------------------------------------------------------------------------------- */

static void forget(url_fetcher *fetcher, url_transfer *transfer)
{
    url_transfer **link = &fetcher->running;
    while (*link != transfer)
        link = &(*link)->next;
    *link = transfer->next;
}

static void on_closed(uv_handle_t *timer)
{
    free(timer->data);
}

static void end_transfer(url_fetcher *fetcher, url_transfer *transfer)
{
    weir_item result = { 0 };
    int status = WEIR_ESTOPPED;
    if (!transfer->cancelled) {
        result.data = strdup("the body of the answer");
        result.size_bytes = result.data ? strlen(result.data) : 0;
        result.release = weir_release_free;
        status = result.data ? WEIR_OK : WEIR_ENOMEM;
    }
    weir_task_complete(transfer->task, status, &result);
    forget(fetcher, transfer);
    uv_close((uv_handle_t *)&transfer->timer, on_closed);
}

static void on_timer(uv_timer_t *timer)
{
    end_transfer(timer->loop->data, timer->data);
}

static void begin_transfer(url_fetcher *fetcher, url_transfer *transfer)
{
    uint64_t duration_ms = 1 + weir_task_seq(transfer->task) * 37 % 100;
    uv_timer_init(&fetcher->loop, &transfer->timer);
    transfer->timer.data = transfer;
    transfer->next = fetcher->running;
    fetcher->running = transfer;
    uv_timer_start(&transfer->timer, on_timer, duration_ms, 0);
}

static void on_wake(uv_async_t *wake)
{
    url_fetcher *fetcher = wake->data;
    uv_mutex_lock(&fetcher->lock);
    url_transfer *started = fetcher->started;
    bool cancel_all = fetcher->cancel_all;
    bool quit = fetcher->quit;
    fetcher->started = NULL;
    uv_mutex_unlock(&fetcher->lock);

    while (started) {
        url_transfer *next = started->next;
        begin_transfer(fetcher, started);
        started = next;
    }
    while (cancel_all && fetcher->running) {
        fetcher->running->cancelled = true;
        end_transfer(fetcher, fetcher->running);
    }
    if (quit)
        uv_close((uv_handle_t *)wake, NULL); /* the loop ends when the last timer is closed */
}

static void run_loop(void *argument)
{
    url_fetcher *fetcher = argument;
    uv_run(&fetcher->loop, UV_RUN_DEFAULT);
}

static int start_fetcher(url_fetcher *fetcher)
{
    *fetcher = (url_fetcher){ 0 };
    if (uv_mutex_init(&fetcher->lock) != 0 || uv_loop_init(&fetcher->loop) != 0)
        return -1;
    fetcher->loop.data = fetcher;
    fetcher->wake.data = fetcher;
    if (uv_async_init(&fetcher->loop, &fetcher->wake, on_wake) != 0)
        return -1;
    return uv_thread_create(&fetcher->thread, run_loop, fetcher);
}

static void stop_fetcher(url_fetcher *fetcher)
{
    uv_mutex_lock(&fetcher->lock);
    fetcher->quit = true;
    uv_mutex_unlock(&fetcher->lock);
    uv_async_send(&fetcher->wake);
    uv_thread_join(&fetcher->thread);
    uv_loop_close(&fetcher->loop);
    uv_mutex_destroy(&fetcher->lock);
}

/* ---- the stages --------------------------------------------------------------------------------------------- */

typedef struct urls_config {
    uint64_t num_urls;
} urls_config;

static int next_url(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    const urls_config *config = weir_task_config(task);
    if (weir_task_seq(task) == config->num_urls)
        return WEIR_EOF;
    char url[64];
    snprintf(url, sizeof url, "https://example.org/%" PRIu64, weir_task_seq(task));
    out->data = strdup(url);
    out->release = weir_release_free;
    out->label = out->data;
    return out->data ? WEIR_OK : WEIR_ENOMEM;
}

/* config: the fetcher, which must outlive the pipeline. */
static int fetch(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    url_fetcher *fetcher = (url_fetcher *)(uintptr_t)weir_task_config(task);
    url_transfer *transfer = calloc(1, sizeof *transfer);
    if (!transfer)
        return WEIR_ENOMEM;
    transfer->task = task;
    uv_mutex_lock(&fetcher->lock);
    transfer->next = fetcher->started;
    fetcher->started = transfer;
    uv_mutex_unlock(&fetcher->lock);
    uv_async_send(&fetcher->wake);
    return WEIR_PENDING;
}

/* Called for each pending task at a stop: here the first call cancels all. */
static void cancel_fetch(void *worker, weir_task *task)
{
    (void)worker;
    url_fetcher *fetcher = (url_fetcher *)(uintptr_t)weir_task_config(task);
    uv_mutex_lock(&fetcher->lock);
    fetcher->cancel_all = true;
    uv_mutex_unlock(&fetcher->lock);
    uv_async_send(&fetcher->wake);
}

static const weir_op url_source = { .name = "urls", .config_size = sizeof(urls_config), .run = next_url };
static const weir_op fetch_op = { .name = "fetch", .run = fetch, .cancel = cancel_fetch };

static int build(url_fetcher *fetcher, uint64_t num_urls, weir_pipeline **pipeline, weir_error *error)
{
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &url_source, &(urls_config){ .num_urls = num_urls }, sizeof(urls_config), NULL);
    weir_builder_pipe(builder, &fetch_op, fetcher, 0, &(weir_stage_options){ .concurrency = 256 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 16 });
    return weir_builder_build(builder, &(weir_pipeline_options){ .threads = 1 }, pipeline, error);
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    uint64_t num_urls = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
    url_fetcher fetcher;
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    if (start_fetcher(&fetcher) != 0) {
        fprintf(stderr, "async_fetch: cannot start the event loop\n");
        return 1;
    }
    if (build(&fetcher, num_urls, &pipeline, &error) != WEIR_OK) {
        fprintf(stderr, "async_fetch: %s: %s\n", error.stage, error.message);
        stop_fetcher(&fetcher);
        return 1;
    }

    int64_t start_ns = weir_clock_ns();
    uint64_t num_bodies = 0;
    weir_item body;
    int status;
    while ((status = weir_pipeline_next(pipeline, &body, WEIR_FOREVER)) == WEIR_OK) {
        num_bodies++;
        weir_item_release(&body);
    }
    double elapsed_s = (double)(weir_clock_ns() - start_ns) / (double)WEIR_SECOND;
    printf("%" PRIu64 " of %" PRIu64 " URLs in %.2f s with one thread; one after the other they take about %.0f s\n",
           num_bodies, num_urls, elapsed_s, (double)num_urls * 0.05);
    weir_pipeline_free(pipeline);
    stop_fetcher(&fetcher);
    return status == WEIR_EOF && num_bodies == num_urls ? 0 : 1;
}
