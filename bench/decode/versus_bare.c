/*
 * Run by run in turn, so that what else the machine does meets both alike. The figure that counts is clips per CPU-second;
 * clips/s also tells how well the threads are kept busy, but depends on who else is there.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/engine.h>
#include <weir/stages.h>

#include "bare_loop.h"
#include "class_costs.h"
#include "decode_bench.h"
#include "measure.h"
#include "stage_job.h"

enum { BARE, WEIR, NUM_KINDS };

/* What one run is given. */
typedef struct decode_job {
    const decode_settings *settings;
    const decode_scope *scope;
    uint32_t concurrency;
    bare_job bare;
} decode_job;

/* What one run brings back. */
typedef struct decode_result {
    bare_result sums;
    class_costs costs; /* weir's */
    bool hash;
} decode_result;

/* One run of one kind. */
typedef struct decode_sample {
    double clips_per_s;
    double clips_per_cpu_s;
    double peak_bytes;
} decode_sample;

static int run_bare(const void *argument, void *result)
{
    const decode_job *job = argument;
    decode_result *sums = result;
    return bare_loop(&job->bare, &sums->sums);
}

static void see(void *self, const weir_item *item)
{
    decode_result *result = self;
    const weir_frames *frames = item->data;
    weir_item_cost cost;
    result->sums.num_frames += frames->num_frames;
    if (result->hash)
        result->sums.hash += bare_hash(frames->data, frames->num_frames * frames->frame_bytes);
    if (weir_frames_cost(item, &cost))
        class_costs_add(&result->costs, &cost);
}

static int run_weir(const void *argument, void *result)
{
    const decode_job *job = argument;
    const decode_settings *settings = job->settings;
    decode_result *brought = result;
    stage_result sums;
    weir_video_config video = {
        .width = settings->width, .height = settings->height, .scaler = settings->scaler, .no_autorotate = true
    }; /* as the bare loop */
    *brought = (decode_result){ .hash = settings->verify };
    int rc = stage_job_run(&(stage_job){ .root = job->scope->name ? NULL : settings->dataset_dir,
                                         .glob = settings->glob,
                                         .files = job->scope->files,
                                         .op = &weir_video_decode,
                                         .config = &video,
                                         .concurrency = job->concurrency,
                                         .threads = settings->threads,
                                         .see = see,
                                         .self = brought },
                           &sums);
    brought->sums.num_clips = sums.num_clips;
    brought->sums.num_failures = sums.num_failures;
    return rc;
}

/* Did both do the same job? */
static bool is_same(const bare_result *bare, const bare_result *weir)
{
    if (bare->num_clips == weir->num_clips && bare->num_failures == weir->num_failures &&
        bare->num_frames == weir->num_frames && bare->hash == weir->hash)
        return true;
    fprintf(stderr,
            "weir-bench: not the same work: bare %" PRIu64 " clips, %" PRIu64 " failures, %" PRIu64
            " frames, hash %016" PRIx64 "; weir %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %016" PRIx64 "\n",
            bare->num_clips, bare->num_failures, bare->num_frames, bare->hash, weir->num_clips, weir->num_failures,
            weir->num_frames, weir->hash);
    return false;
}

static decode_sample sample_of(const bare_result *result, const bench_usage *usage)
{
    double clips = (double)result->num_clips;
    return (decode_sample){
        .clips_per_s = clips / usage->wall_s,
        .clips_per_cpu_s = clips / usage->cpu_s,
        .peak_bytes = (double)usage->peak_bytes,
    };
}

/* One run of each kind, the one that goes first in turn: samples[BARE] and samples[WEIR] are filled. */
static int run_pair(const decode_job *job, bool weir_first, decode_sample *samples, class_costs *costs)
{
    static bench_work *const works[NUM_KINDS] = { run_bare, run_weir };
    static decode_result results[NUM_KINDS];
    for (int i = 0; i < NUM_KINDS; i++) {
        int kind = weir_first ? NUM_KINDS - 1 - i : i;
        bench_usage usage;
        if (bench_measure(works[kind], job, &results[kind], sizeof results[kind], &usage) != 0)
            return -1;
        samples[kind] = sample_of(&results[kind].sums, &usage);
    }
    class_costs_add_all(costs, &results[WEIR].costs);
    return is_same(&results[BARE].sums, &results[WEIR].sums) ? 0 : -1;
}

/* The spread of one figure over all runs, found at `offset` in each sample; kind NUM_KINDS = weir's over bare's. */
static bench_spread spread_of(const decode_sample *samples, uint32_t runs, int kind, size_t offset)
{
    double values[MAX_RUNS];
    for (uint32_t run = 0; run < runs; run++) {
        double figures[NUM_KINDS];
        for (int i = 0; i < NUM_KINDS; i++)
            memcpy(&figures[i], (const char *)&samples[run * NUM_KINDS + (uint32_t)i] + offset, sizeof figures[i]);
        values[run] = kind == NUM_KINDS ? figures[WEIR] / figures[BARE] : figures[kind];
    }
    return bench_spread_of(values, runs);
}

/* A line of the table and a row of the report. */
static void tell(bench_report *report, const decode_job *job, const decode_sample *samples, int kind)
{
    static const char *const names[] = { "bare", "weir" };
    const decode_settings *settings = job->settings;
    bench_spread speed = spread_of(samples, settings->runs, kind, offsetof(decode_sample, clips_per_s));
    bench_spread thrift = spread_of(samples, settings->runs, kind, offsetof(decode_sample, clips_per_cpu_s));
    bench_spread peak = spread_of(samples, settings->runs, kind, offsetof(decode_sample, peak_bytes));
    printf("%11" PRIu32 "  %s  %8.2f  %11.2f  %8.1f", job->concurrency, names[kind], speed.median, thrift.median,
           peak.median / 1e6);
    bench_report_row(report, "decode");
    bench_report_text(report, "part", "beside_bare");
    decode_report_scope(report, job->scope);
    bench_report_text(report, "what", names[kind]);
    bench_report_number(report, "concurrency", job->concurrency);
    uint32_t pool_threads = settings->threads ? settings->threads : weir_cpu_budget();
    bench_report_number(report, "threads", kind == BARE ? job->bare.num_threads : pool_threads);
    bench_report_number(report, "runs", settings->runs);
    bench_report_number(report, "files", (double)job->bare.num_paths);
    bench_report_number(report, "width", settings->width);
    bench_report_number(report, "height", settings->height);
    bench_report_spread(report, "clips_per_s", speed);
    bench_report_spread(report, "clips_per_cpu_s", thrift);
    bench_report_spread(report, "peak_bytes", peak);
    if (kind == WEIR) {
        bench_spread ratio = spread_of(samples, settings->runs, NUM_KINDS, offsetof(decode_sample, clips_per_cpu_s));
        bench_spread wall = spread_of(samples, settings->runs, NUM_KINDS, offsetof(decode_sample, clips_per_s));
        printf("  %.3f (%.3f..%.3f)  %.3f (%.3f..%.3f)", ratio.median, ratio.min, ratio.max, wall.median, wall.min,
               wall.max);
        bench_report_spread(report, "clips_per_cpu_s_ratio", ratio);
        bench_report_spread(report, "clips_per_s_ratio", wall);
    }
    putchar('\n');
}

/* The costs of weir's runs are added to *costs. */
static int run_concurrency(bench_report *report, const decode_settings *settings, const decode_scope *scope,
                           uint32_t concurrency, class_costs *costs)
{
    decode_job job = {
        .settings = settings,
        .scope = scope,
        .concurrency = concurrency,
        .bare = { .paths = scope->files->paths,
                  .num_paths = scope->files->num_paths,
                  .num_threads = concurrency,
                  .width = (int)settings->width,
                  .height = (int)settings->height,
                  .hash = settings->verify },
    };
    decode_sample *samples = calloc((size_t)settings->runs * NUM_KINDS, sizeof *samples);
    int rc = samples ? 0 : -1;
    for (uint32_t run = 0; run < settings->runs && rc == 0; run++) {
        decode_show_progress("beside bare loop", run, settings->runs, 0, 1);
        rc = run_pair(&job, run % 2, &samples[run * NUM_KINDS], costs);
    }
    decode_show_progress(NULL, 0, 0, 1, 1);
    if (rc == 0) {
        tell(report, &job, samples, BARE);
        tell(report, &job, samples, WEIR);
    }
    free(samples);
    return rc;
}

int decode_beside_bare(bench_report *report, const decode_settings *settings, const decode_scope *scope,
                       const bench_list *concurrency)
{
    class_costs first = { 0 };
    class_costs rest = { 0 };
    printf("concurrency  what   clips/s  clips/CPU-s   peak MB  weir/bare per CPU-s   weir/bare per s\n");
    int rc = 0;
    for (size_t i = 0; i < concurrency->num_values && rc == 0; i++)
        rc = run_concurrency(report, settings, scope, concurrency->values[i], i == 0 ? &first : &rest);
    if (rc == 0 && !scope->name) {
        printf("\nwhere weir's time goes, at concurrency %" PRIu32
               ": µs to open a clip; µs a frame; wall time of the thread that does it\n",
               concurrency->values[0]);
        class_costs_tell(report, &first, settings->runs);
    }
    return rc;
}
