/*
 * The cost of what a training loop needs besides decoding: drawing from 10^9 items, and converting bytes to floats
 * compared with memcpy. With an index also: opening clips for a few frames with and without its tables, and batches
 * end to end.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/collate.h>
#include <weir/dataset.h>
#include <weir/engine.h>
#include <weir/sampler.h>
#include <weir/video.h>

#include "bench.h"
#include "bench_options.h"
#include "measure.h"
#include "memory.h"
#include "stages/batch/convert.h"

enum { ROUNDS = 5, BATCH = 32, NUM_FRAMES = 16, SIZE = 112 };

static double elapsed_since(double start)
{
    return bench_seconds(CLOCK_MONOTONIC) - start;
}

static bool refuse(const char *why)
{
    bench_refuse("training: ", why);
    return false;
}

static void print_spread(const char *what, double *values, const char *unit)
{
    bench_spread spread = bench_spread_of(values, ROUNDS);
    printf("  %-44s %10.2f %-6s (%.2f to %.2f)\n", what, spread.median, unit, spread.min, spread.max);
}

/* ---- the sampler ----------------------------------------------------------------------------- */

static bool measure_sampler(const char *what, weir_sampler_config config)
{
    enum { NUM_DRAWS = 2000000 };
    double ns[ROUNDS];
    weir_error error = { 0 };
    weir_sampler *sampler;
    config.world = (weir_world){ .rank = 3, .size = 8 };
    if (weir_sampler_new(&config, &sampler, &error) != WEIR_OK)
        return refuse(error.message);
    volatile uint64_t sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        (void)weir_sampler_begin(sampler, (uint64_t)round);
        double start = bench_seconds(CLOCK_MONOTONIC);
        for (uint64_t i = 0; i < NUM_DRAWS; i++)
            sum += weir_sampler_at(sampler, i);
        ns[round] = elapsed_since(start) / NUM_DRAWS * 1e9;
    }
    (void)sum; /* so that the compiler keeps the loop */
    weir_sampler_free(sampler);
    print_spread(what, ns, "ns");
    return true;
}

static bool measure_samplers(void)
{
    const uint64_t count = 1000000000;
    printf("Drawing one of 10^9 items, rank 3 of 8:\n");
    return measure_sampler("as listed", (weir_sampler_config){ .num_items = count }) &&
           measure_sampler("shuffled", (weir_sampler_config){ .num_items = count, .order = WEIR_SAMPLER_SHUFFLED }) &&
           measure_sampler(
               "in windows of 1000",
               (weir_sampler_config){ .num_items = count, .order = WEIR_SAMPLER_WINDOWS, .window_items = 1000 }) &&
           measure_sampler("with replacement", (weir_sampler_config){ .num_items = count, .replacement = true });
}

/* ---- converting ----------------------------------------------------------------------------- */

static bool measure_conversions(void)
{
    const size_t num_values = (size_t)BATCH * NUM_FRAMES * SIZE * SIZE * 3;
    const double mean[] = { 0.485, 0.456, 0.406 }, std[] = { 0.229, 0.224, 0.225 };
    static const char *const names[] = { NULL, "to float16", "to bfloat16", "to float32" };
    double speeds[ROUNDS];
    uint8_t *from = memory_get(num_values, 4), *to = memory_get(num_values, 4);
    memset(from, 99, num_values * 4);
    memset(to, 0, num_values * 4);
    printf("Converting a batch of %d x %d x %d x %d x 3 bytes, written bytes:\n", BATCH, NUM_FRAMES, SIZE, SIZE);
    for (int dtype = WEIR_DTYPE_FLOAT16; dtype <= WEIR_DTYPE_FLOAT32; dtype++) {
        weir_conversion conversion = weir__conversion_make((weir_dtype)dtype, mean, std, -1);
        for (int round = 0; round < ROUNDS; round++) {
            double start = bench_seconds(CLOCK_MONOTONIC);
            weir__convert(&conversion, to, from, num_values);
            speeds[round] = (double)(num_values * weir_dtype_bytes((weir_dtype)dtype)) / elapsed_since(start) / 1e9;
        }
        print_spread(names[dtype], speeds, "GB/s");
    }
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_seconds(CLOCK_MONOTONIC);
        memcpy(to, from, num_values * 4);
        speeds[round] = (double)num_values * 4 / elapsed_since(start) / 1e9;
    }
    print_spread("memcpy", speeds, "GB/s");
    free(from);
    free(to);
    return true;
}

/* ---- clips of an index ----------------------------------------------------------------------------- */

typedef struct clip_job {
    weir_dataset *dataset;
    bool without_table;
    uint64_t num_clips;
    const weir_collate_config *collate; /* NULL = single clips */
} clip_job;

static int fill_without_table(void *self, weir_entry *entry, weir_error *error)
{
    weir_sampler_items items = weir_dataset_items(self);
    int status = items.fill(items.self, entry, error);
    free(entry->packets);
    entry->packets = NULL;
    entry->packets_bytes = 0;
    return status;
}

static bool read_clips(const clip_job *job, uint64_t *num_clips)
{
    weir_error error = { 0 };
    weir_pipeline *pipeline;
    weir_item item;
    weir_sampler_source_config source = { .sampler = { .num_items = weir_dataset_count(job->dataset),
                                                       .order = WEIR_SAMPLER_SHUFFLED,
                                                       .num_samples = job->num_clips,
                                                       .world = { .size = 1 } },
                                          .items = weir_dataset_items(job->dataset) };
    if (job->without_table)
        source.items = (weir_sampler_items){ job->dataset, fill_without_table };
    weir_video_config video = { .width = SIZE,
                                .height = SIZE,
                                .resize = WEIR_RESIZE_CROP,
                                .layout = WEIR_LAYOUT_NCHW,
                                .sampling = {
                                    .what = WEIR_SAMPLE_RANDOM, .count = NUM_FRAMES, .stretch_frames = NUM_FRAMES } };
    weir_builder *builder = weir_builder_new();
    weir_source_sampler(builder, &source, NULL);
    weir_pipe_video(builder, &video, &(weir_stage_options){ .concurrency = 2 });
    if (job->collate)
        weir_pipe_collate(builder, job->collate, NULL);
    weir_builder_sink(builder, NULL);
    int status = weir_builder_build(builder, NULL, &pipeline, &error);
    if (status != WEIR_OK)
        return refuse(error.message);
    *num_clips = 0;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        *num_clips += job->collate ? ((const weir_collated *)item.data)->num_items : 1;
        weir_item_release(&item);
    }
    weir_pipeline_free(pipeline);
    if (status != WEIR_EOF)
        return refuse(weir_status_name(status));
    return *num_clips > 0 || refuse("no clip of the index could be decoded");
}

/* In this process, round by round; CPU time is that of the process. */
static bool measure_clips(const char *what, const clip_job *job)
{
    double rates[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t num_clips;
        double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        if (!read_clips(job, &num_clips))
            return false;
        rates[round] = (double)num_clips / (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
    }
    print_spread(what, rates, "clips");
    return true;
}

static int measure_index(const char *path)
{
    weir_error error = { 0 };
    weir_dataset *dataset;
    if (weir_dataset_open(path, NULL, &dataset, &error) != WEIR_OK) {
        refuse(error.message);
        return 2;
    }
    const uint64_t num_clips = 320;
    const weir_collate_config bytes = { .num_items = BATCH, .layout = WEIR_COLLATE_TIME_SECOND };
    const weir_collate_config floats = { .num_items = BATCH,
                                         .layout = WEIR_COLLATE_TIME_SECOND,
                                         .dtype = WEIR_DTYPE_FLOAT32 };
    printf("%d consecutive frames, from a random position, at %d x %d; clips per CPU-second:\n", NUM_FRAMES, SIZE,
           SIZE);
    bool done =
        measure_clips("clip is read first", &(clip_job){ dataset, true, num_clips, NULL }) &&
        measure_clips("with the index's table", &(clip_job){ dataset, false, num_clips, NULL }) &&
        measure_clips("the same, in batches of 32, uint8", &(clip_job){ dataset, false, num_clips, &bytes }) &&
        measure_clips("the same, in batches of 32, float32", &(clip_job){ dataset, false, num_clips, &floats });
    weir_dataset_close(dataset);
    return done ? 0 : 1;
}

int bench_training(int argc, char **argv)
{
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        bool is_help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
        fprintf(is_help ? stdout : stderr,
                "usage: weir-bench training [INDEX]\n\n"
                "The sampler and conversions; with an index (made by weir index) also opening clips, and batches.\n");
        return is_help ? 0 : 2;
    }
    if (!measure_samplers() || !measure_conversions())
        return 1;
    return argc == 2 ? measure_index(argv[1]) : 0;
}
