/*
 * weir-bench size: the cost of a pipeline without items: heap bytes of each slot, stage and pipeline, descriptors,
 * and the time to build and free it; and what recording a span or a counter costs. The values of slots and stages are differences between pipelines with one and
 * with many, so common parts are not included. Worker state, which operations ask for, is not counted: pass_op has
 * none.
 */
#include <dirent.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <weir/engine.h>

#include "bench.h"
#include "bench_options.h"
#include "measure.h"
#include "report.h"

enum { MANY_SLOTS = 1001, MANY_STAGES = 101 };

static int end_at_stop(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    while (!weir_task_should_stop(task))
        nanosleep(&(struct timespec){ .tv_nsec = WEIR_MILLISECOND }, NULL);
    return WEIR_EOF;
}

static int pass_on(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op source_op = { .name = "wait", .run = end_at_stop };
static const weir_op pass_op = { .name = "pass", .run = pass_on };

static double heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return (double)(info.uordblks + info.hblkhd);
}

static double num_descriptors(void)
{
    double count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static weir_pipeline *build(uint32_t num_stages, uint32_t num_slots)
{
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source_op, NULL, 0, NULL);
    for (uint32_t i = 0; i < num_stages; i++)
        weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = num_slots });
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, &(weir_pipeline_options){ .threads = 1 }, &pipeline, &error) != WEIR_OK)
        fprintf(stderr, "weir-bench: %s\n", error.message);
    return pipeline;
}

/* The least of ten rounds, in nanoseconds. */
static double cost_of(void (*record)(void *self), void *self)
{
    enum { ROUNDS = 10, TIMES = 200000 };
    double least = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_ns = weir_clock_ns();
        for (int i = 0; i < TIMES; i++)
            record(self);
        double one = (double)(weir_clock_ns() - start_ns) / TIMES;
        least = one < least ? one : least;
    }
    return least;
}

static void record_span(void *name)
{
    weir_span_begin(name);
    weir_span_end();
}

static void record_count(void *counter)
{
    weir_counter_add(counter, 0, 1);
}

typedef struct pipeline_size {
    double bytes, descriptors, us;
} pipeline_size;

static int measure(uint32_t num_stages, uint32_t num_slots, pipeline_size *size)
{
    double bytes = heap_bytes(), descriptors = num_descriptors();
    int64_t start_ns = weir_clock_ns();
    weir_pipeline *pipeline = build(num_stages, num_slots);
    int64_t built_ns = weir_clock_ns();
    if (!pipeline)
        return -1;
    size->bytes = heap_bytes() - bytes;
    size->descriptors = num_descriptors() - descriptors;
    int64_t free_ns = weir_clock_ns();
    weir_pipeline_free(pipeline);
    size->us = (double)(built_ns - start_ns + weir_clock_ns() - free_ns) / (double)WEIR_MICROSECOND;
    return 0;
}

static void row(bench_report *report, const char *what, const char *unit, double value)
{
    printf("%-34s%12.0f %s\n", what, value, unit);
    bench_report_row(report, "size");
    bench_report_text(report, "of", what);
    bench_report_text(report, "unit", unit);
    bench_report_number(report, "value", value);
}

int bench_size(int argc, char **argv)
{
    const char *json_path = NULL;
    bench_parsed parsed = bench_parse(argc, argv, NULL, 0, &json_path, "size [options]");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;

    pipeline_size first, none, one, slots, stages;
    if (measure(1, 1, &first) || measure(0, 1, &none) || measure(1, 1, &one) || measure(1, MANY_SLOTS, &slots) ||
        measure(MANY_STAGES, 1, &stages))
        return 1;
    bench_report *report = bench_report_new();
    row(report, "pipeline of a source and a sink", "bytes", none.bytes);
    row(report, "stage of one slot", "bytes", (stages.bytes - one.bytes) / (MANY_STAGES - 1));
    row(report, "slot", "bytes", (slots.bytes - one.bytes) / (MANY_SLOTS - 1));
    row(report, "pipeline", "descriptors", one.descriptors);
    row(report, "pipeline, built and freed", "us", one.us);
    row(report, "span, begin and end", "ns", cost_of(record_span, weir_span_name_get("bench", "span")));
    row(report, "counter, add", "ns", cost_of(record_count, weir_counter_get("bench", "count", NULL, 0)));
    return bench_report_end(report, json_path) == 0 ? 0 : 1;
}
