/*
 * spans: what your own code does, next to the stages: spans in an operation and in the consumer, a level, a total, a marker,
 * and the duration of the training steps. It prints them at the end; with a database, also
 *
 *     spans spans.db
 *     weir query spans.db --by span --sort total
 *     weir query spans.db --by counter
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

enum { SAMPLES = 400, SAMPLES_PER_STEP = 20 };

static weir_span_name *read_span, *parse_span, *forward_span; /* created once */

static int make_sample(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    uint64_t number = weir_task_seq(task);
    if (number == SAMPLES)
        return WEIR_EOF;
    *out = (weir_item){ .data = malloc(sizeof number), .size_bytes = sizeof number, .release = weir_release_free };
    if (!out->data)
        return WEIR_ENOMEM;
    *(uint64_t *)out->data = number;
    return WEIR_OK;
}

static uint64_t work(uint64_t number, int rounds)
{
    for (int i = 0; i < rounds; i++)
        number = number * 6364136223846793005u + 1442695040888963407u;
    return number;
}

static int load(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    uint64_t *sample = in->data;
    weir_span_begin(read_span);
    *sample = work(*sample, 20000);
    weir_span_end();
    weir_span_begin(parse_span);
    *sample = work(*sample, 5000);
    weir_span_end();
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op source = { .name = "samples", .run = make_sample };
static const weir_op stage = { .name = "load", .run = load };

static void train(weir_pipeline *pipeline)
{
    static const char *const values[] = { "train", "smooth" };
    weir_counter *loss = weir_counter_get("train", "loss", values, 2);
    weir_counter *samples = weir_counter_get_total("train", "samples", NULL, 0); /* shown as samples per second */
    weir_span_name *checkpoint = weir_span_name_get("train", "checkpoint");
    weir_item item;
    double smooth = 1;
    for (int i = 0; weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK; i++) {
        if (i % SAMPLES_PER_STEP == 0)
            weir_pipeline_mark_step(pipeline, i / SAMPLES_PER_STEP); /* also the frames "weir/step" */
        WEIR_SPAN(forward_span);                                     /* to the end of the block */
        double value = (double)(work(*(uint64_t *)item.data, 10000) >> 11) / 9007199254740992.0 / (1 + i);
        smooth = 0.9 * smooth + 0.1 * value;
        weir_counter_set(loss, 0, value);
        weir_counter_set(loss, 1, smooth);
        weir_counter_add(samples, 0, 1);
        if (i % 100 == 99)
            weir_marker(checkpoint, WEIR_MARKER_PROCESS);
        weir_item_release(&item);
    }
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    weir_sqlite_writer *writer = NULL;
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    read_span = weir_span_name_get("load", "read");
    parse_span = weir_span_name_get("load", "parse");
    forward_span = weir_span_name_get("train", "forward");
    if (argc > 1 && weir_sqlite_open(argv[1], NULL, &writer, &error) != WEIR_OK) {
        fprintf(stderr, "spans: %s\n", error.message);
        return 2;
    }
    weir_observer observer = weir_sqlite_observer(writer);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source, NULL, 0, NULL);
    weir_builder_pipe(builder, &stage, NULL, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = { .observers = &observer, .num_observers = writer ? 1 : 0 };
    if (weir_builder_build(builder, &options, &pipeline, &error) != WEIR_OK) {
        fprintf(stderr, "spans: %s\n", error.message);
        return 2;
    }
    train(pipeline);
    weir_pipeline_free(pipeline);
    weir_span_dump(stdout, &(weir_span_dump_options){ .sort = WEIR_SPAN_BY_TOTAL });
    return weir_sqlite_close(writer, &error) == WEIR_OK ? 0 : 1;
}
