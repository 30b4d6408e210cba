/*
 * weir-bench costs measures what single things cost. For a slot, a stage and a pipeline these are heap bytes,
 * descriptors, and the time to build and free one. It also times recording a span or a counter, and drawing one of 10^9
 * items. It compares converting a batch of bytes to floats with memcpy, in bytes written. Sizes of slots and stages are
 * differences between pipelines with one and with many, so common parts are not included. Worker state, which
 * operations ask for, is not counted: pass_op has none.
 */
#include <dirent.h>
#include <malloc.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/engine.h>

#include "bench/cli/bench.h"
#include "bench/cli/bench_options.h"
#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "tools/cli/memory.h"

enum { ROUNDS = 5 };

/* A row of the table. measure() returns NAN after an error message. */
typedef struct cost {
    const char *what, *unit;
    double (*measure)(const void *argument);
    const void *argument;
} cost;

static double since(int64_t start_ns)
{
    return (double)(weir_clock_ns() - start_ns);
}

/* ---- pipelines ---------------------------------------------------------------------------------------------- */

static int end_at_stop(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    while (!weir_task_should_stop(task))
        usleep(1000);
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

typedef struct shape {
    uint32_t num_stages, num_slots;
} shape;

static const shape empty = { 0, 1 }, one = { 1, 1 }, slots = { 1, 1001 }, stages = { 101, 1 };

static weir_pipeline *build(const shape *wanted)
{
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source_op, NULL, 0, NULL);
    for (uint32_t i = 0; i < wanted->num_stages; i++)
        weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = wanted->num_slots });
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, &(weir_pipeline_options){ .threads = 1 }, &pipeline, &error) != WEIR_OK)
        fprintf(stderr, "weir-bench: %s\n", error.message);
    return pipeline;
}

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

/* By how much a pipeline without items raises the count; NAN = it could not be built. */
static double difference(const shape *wanted, double (*count)(void))
{
    double before = count();
    weir_pipeline *pipeline = build(wanted);
    double more = pipeline ? count() - before : NAN;
    weir_pipeline_free(pipeline);
    return more;
}

static double pipeline_bytes(const void *wanted)
{
    return difference(wanted, heap_bytes);
}

/* The bytes of one slot or stage, out of many. */
static double part_bytes(const void *many)
{
    const shape *wanted = many;
    return (pipeline_bytes(wanted) - pipeline_bytes(&one)) / (wanted->num_stages * wanted->num_slots - 1);
}

static double pipeline_descriptors(const void *wanted)
{
    return difference(wanted, num_descriptors);
}

static double pipeline_us(const void *wanted)
{
    int64_t start_ns = weir_clock_ns();
    weir_pipeline *pipeline = build(wanted);
    weir_pipeline_free(pipeline);
    return pipeline ? since(start_ns) / WEIR_MICROSECOND : NAN;
}

/* ---- recording ---------------------------------------------------------------------------------------------- */

enum { NUM_RECORDED = 200000 };

static double span_ns(const void *unused)
{
    (void)unused;
    weir_span_name *name = weir_span_name_get("bench", "span");
    int64_t start_ns = weir_clock_ns();
    for (int i = 0; i < NUM_RECORDED; i++) {
        weir_span_begin(name);
        weir_span_end();
    }
    return since(start_ns) / NUM_RECORDED;
}

static double counter_ns(const void *unused)
{
    (void)unused;
    weir_counter *counter = weir_counter_get("bench", "count", NULL, 0);
    int64_t start_ns = weir_clock_ns();
    for (int i = 0; i < NUM_RECORDED; i++)
        weir_counter_add(counter, 0, 1);
    return since(start_ns) / NUM_RECORDED;
}

/* ---- samplers and batches ----------------------------------------------------------------------------------- */

#ifdef WEIR_BENCH_DATASET
#include <weir/sampler.h>

#include "stages/batch/convert.h"

/* Rank 3 of 8. */
static double draw_ns(const void *config)
{
    enum { NUM_DRAWS = 2000000 };
    weir_sampler_config own = *(const weir_sampler_config *)config;
    weir_error error = { 0 };
    weir_sampler *sampler;
    own.num_items = 1000000000;
    own.world = (weir_world){ .rank = 3, .size = 8 };
    if (weir_sampler_new(&own, &sampler, &error) != WEIR_OK) {
        fprintf(stderr, "weir-bench: %s\n", error.message);
        return NAN;
    }
    (void)weir_sampler_begin(sampler, 1);
    volatile uint64_t sum = 0; /* so that the compiler keeps the loop */
    int64_t start_ns = weir_clock_ns();
    for (uint64_t i = 0; i < NUM_DRAWS; i++)
        sum += weir_sampler_at(sampler, i);
    double ns = since(start_ns) / NUM_DRAWS;
    (void)sum;
    weir_sampler_free(sampler);
    return ns;
}

/* Into this type; NULL = memcpy of as many bytes as floats have. */
static double convert_gb_per_s(const void *dtype)
{
    const size_t num_values = (size_t)32 * 16 * 112 * 112 * 3;
    const double mean[] = { 0.485, 0.456, 0.406 }, std[] = { 0.229, 0.224, 0.225 };
    weir_dtype to_type = dtype ? *(const weir_dtype *)dtype : WEIR_DTYPE_FLOAT32;
    weir_conversion conversion = weir__conversion_make(to_type, WEIR_PIXEL_RGB24, mean, std, -1);
    size_t num_bytes = num_values * weir_dtype_bytes(to_type);
    uint8_t *from = memory_get(num_values, 4), *to = memory_get(num_values, 4);
    memset(from, 99, num_values * 4);
    memset(to, 0, num_values * 4);
    int64_t start_ns = weir_clock_ns();
    if (dtype)
        weir__convert(&conversion, to, from, num_values);
    else
        memcpy(to, from, num_bytes);
    double ns = since(start_ns);
    free(from);
    free(to);
    return (double)num_bytes / ns;
}

static const weir_dtype float16 = WEIR_DTYPE_FLOAT16, bfloat16 = WEIR_DTYPE_BFLOAT16, float32 = WEIR_DTYPE_FLOAT32;
static const weir_sampler_config listed = { 0 }, shuffled = { .order = WEIR_SAMPLER_SHUFFLED },
                                 in_blocks = { .order = WEIR_SAMPLER_BLOCKS, .block_items = 1000 },
                                 replaced = { .replacement = true };
#endif

/* ---- the table ---------------------------------------------------------------------------------------------- */

static const cost costs[] = {
    { "pipeline of a source and a sink", "bytes", pipeline_bytes, &empty },
    { "stage of one slot", "bytes", part_bytes, &stages },
    { "slot", "bytes", part_bytes, &slots },
    { "pipeline", "descriptors", pipeline_descriptors, &one },
    { "pipeline, built and freed", "us", pipeline_us, &one },
    { "span, begin and end", "ns", span_ns, NULL },
    { "counter, add", "ns", counter_ns, NULL },
#ifdef WEIR_BENCH_DATASET
    { "drawing one of 10^9 items, as listed", "ns", draw_ns, &listed },
    { "  shuffled", "ns", draw_ns, &shuffled },
    { "  in blocks of 1000", "ns", draw_ns, &in_blocks },
    { "  with replacement", "ns", draw_ns, &replaced },
    { "converting bytes to float16", "GB/s", convert_gb_per_s, &float16 },
    { "  to bfloat16", "GB/s", convert_gb_per_s, &bfloat16 },
    { "  to float32", "GB/s", convert_gb_per_s, &float32 },
    { "memcpy", "GB/s", convert_gb_per_s, NULL },
#endif
};

/* The first round is not counted: it loads what all others use. */
static bool measure(bench_report *report, const cost *row)
{
    double values[ROUNDS + 1];
    for (int round = 0; round <= ROUNDS; round++) {
        values[round] = row->measure(row->argument);
        if (isnan(values[round]))
            return false;
    }
    bench_spread spread = bench_spread_of(values + 1, ROUNDS);
    printf("%-38s%12.1f %-12s(%.1f to %.1f)\n", row->what, spread.median, row->unit, spread.min, spread.max);
    bench_report_row(report, "costs");
    bench_report_text(report, "of", row->what);
    bench_report_text(report, "unit", row->unit);
    bench_report_spread(report, "value", spread);
    return true;
}

int bench_costs(int argc, char **argv)
{
    const char *json_path = NULL;
    bench_parsed parsed = bench_parse(argc, argv, NULL, 0, &json_path, "costs [options]");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;
    bench_report *report = bench_report_new();
    bool done = true;
    for (size_t i = 0; i < sizeof costs / sizeof *costs && done; i++)
        done = measure(report, &costs[i]);
    return bench_report_end(report, done ? json_path : NULL) == 0 && done ? 0 : 1;
}
