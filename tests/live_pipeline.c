#include "tests/live_pipeline.h"

#include <time.h>

static pthread_mutex_t server = PTHREAD_MUTEX_INITIALIZER;

static void wait_for(int64_t ns)
{
    nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static int make_item(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)task;
    out->data = &server;
    return WEIR_OK;
}

int wait_alone(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    wait_for(3 * WEIR_MILLISECOND);
    weir_item_move(in, out);
    return WEIR_OK;
}

int wait_in_turn(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    pthread_mutex_lock(&server);
    wait_alone(worker, in, out, task);
    pthread_mutex_unlock(&server);
    return WEIR_OK;
}

static void *consume(void *argument)
{
    live_pipeline *own = argument;
    weir_item item;
    while (weir_pipeline_next(own->pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        weir_item_release(&item);
        if (own->step_ns) {
            weir_pipeline_mark_step(own->pipeline, own->num_steps++);
            wait_for(own->step_ns);
        }
    }
    return NULL;
}

void live_pipeline_start(live_pipeline *own, live_work work, uint32_t slots, uint32_t threads)
{
    static weir_op source = { .name = "src" };
    static weir_op stage = { .name = "read" };
    stage.run = work;
    source.run = own->make ? own->make : make_item;
    weir_builder *builder = weir_builder_new();
    static const char *const names[] = { "read", "parse", "scale" };
    weir_builder_source(builder, &source, NULL, 0, &(weir_stage_options){ .queue_items = own->queue_items });
    uint32_t num_stages = own->num_stages ? own->num_stages : 1;
    for (uint32_t i = 0; i < num_stages; i++) {
        bool has_own = own->has_own_threads && i + 1 == num_stages;
        weir_builder_pipe(
            builder, &stage, NULL, 0,
            &(weir_stage_options){ .name = names[i], .concurrency = slots, .threads = has_own ? slots : 0 });
    }
    weir_builder_sink(builder, NULL);
    own->pipeline = build(builder, &(weir_pipeline_options){ .threads = threads });
    own->consumer = thread_start(consume, own);
}

void live_pipeline_stop(live_pipeline *own)
{
    weir_pipeline_stop(own->pipeline);
    thread_join(own->consumer);
    weir_pipeline_free(own->pipeline);
}
