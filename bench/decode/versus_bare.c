/*
 * Runs are interleaved, so that background load affects both alike. The main result is clips per CPU-second; clips/s
 * also shows how busy the threads are, but depends on other programs.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/engine.h>
#include <weir/stages.h>

#include "bench/decode/bare_loop.h"
#include "bench/decode/decode_bench.h"
#include "bench/decode/stage_job.h"
#include "bench/harness/contest.h"

enum { BARE, WEIR, NUM_ENTRIES };

/* The input of one run. */
typedef struct decode_job {
    const decode_settings *settings;
    uint32_t concurrency;
} decode_job;

/* The result of one run. */
typedef struct decode_result {
    contest_result sums;
    bool hashes;
    uint64_t hash; /* sum of the hashes of the clips, if requested */
} decode_result;

/* The results of all runs at one concurrency. */
typedef struct decode_outcome {
    decode_result last[NUM_ENTRIES];
    bool is_same;
} decode_outcome;

static int run_bare(const void *argument, void *result)
{
    const decode_job *job = argument;
    const decode_settings *settings = job->settings;
    decode_result *brought = result;
    bare_result sums;
    int rc = bare_loop(&(bare_job){ .paths = settings->files.paths,
                                    .num_paths = settings->files.num_paths,
                                    .num_threads = job->concurrency,
                                    .width = (int)settings->width,
                                    .height = (int)settings->height,
                                    .hash = settings->verify },
                       &sums);
    *brought = (decode_result){ .hash = sums.hash };
    brought->sums.clips = (double)sums.num_clips;
    brought->sums.frames = (double)sums.num_frames;
    brought->sums.failures = (double)sums.num_failures;
    return rc;
}

/* Called for each result of weir; self is the decode_result. */
static void see_item(void *self, const weir_item *item)
{
    decode_result *result = self;
    const weir_frames *frames = item->data;
    result->sums.frames += frames->num_frames;
    if (result->hashes)
        result->hash += bare_hash(frames->data, frames->num_frames * frames->frame_bytes);
}

static int run_weir(const void *argument, void *result)
{
    const decode_job *job = argument;
    const decode_settings *settings = job->settings;
    decode_result *brought = result;
    weir_video_config video = { WEIR_WITH_PICTURE(.width = settings->width, .height = settings->height,
                                                  .scaler = (weir_scaler_kind)settings->scaler,
                                                  .no_autorotate = true) }; /* like the bare loop */
    *brought = (decode_result){ .hashes = settings->verify };
    return stage_job_run(&(stage_job){ .root = settings->dataset_dir,
                                       .glob = settings->glob,
                                       .op = &weir_video_decode,
                                       .config = &video,
                                       .config_size = sizeof video,
                                       .concurrency = job->concurrency,
                                       .threads = settings->threads,
                                       .see = see_item,
                                       .self = brought },
                         &brought->sums);
}

/* Checks that both did the same work; self is the decode_outcome. */
static void see_run(void *self, size_t entry, const void *run)
{
    decode_outcome *outcome = self;
    outcome->last[entry] = *(const decode_result *)run;
    const contest_result *bare = &outcome->last[BARE].sums, *weir = &outcome->last[WEIR].sums;
    if (bare->clips + bare->failures == 0 || weir->clips + weir->failures == 0)
        return; /* the other one has not run yet */
    if (bare->clips == weir->clips && bare->failures == weir->failures && bare->frames == weir->frames &&
        outcome->last[BARE].hash == outcome->last[WEIR].hash)
        return;
    if (outcome->is_same)
        fprintf(stderr,
                "weir-bench: not the same work: bare %.0f clips, %.0f failures, %.0f frames, hash %016" PRIx64
                "; weir %.0f, %.0f, %.0f, %016" PRIx64 "\n",
                bare->clips, bare->failures, bare->frames, outcome->last[BARE].hash, weir->clips, weir->failures,
                weir->frames, outcome->last[WEIR].hash);
    outcome->is_same = false;
}

/* Prints a line of the table and adds a row to the report. */
static void tell(bench_report *report, const decode_job *job, const contest *all, size_t entry)
{
    const decode_settings *settings = job->settings;
    uint32_t pool_threads = settings->threads ? settings->threads : weir_cpu_budget();
    bench_spread speed = contest_spread(all, entry, contest_clips_per_s, CONTEST_NONE);
    bench_spread thrift = contest_spread(all, entry, contest_clips_per_cpu_s, CONTEST_NONE);
    bench_spread peak = contest_spread(all, entry, contest_peak_bytes, CONTEST_NONE);
    printf("%11" PRIu32 "  %s  %8.2f  %11.2f  %8.1f", job->concurrency, all->entries[entry].name, speed.median,
           thrift.median, peak.median / 1e6);
    bench_report_row(report, "decode");
    bench_report_text(report, "group", "versus_bare");
    bench_report_text(report, "what", all->entries[entry].name);
    bench_report_number(report, "concurrency", job->concurrency);
    bench_report_number(report, "threads", entry == BARE ? job->concurrency : pool_threads);
    bench_report_number(report, "runs", settings->runs);
    bench_report_number(report, "files", (double)settings->files.num_paths);
    bench_report_number(report, "width", settings->width);
    bench_report_number(report, "height", settings->height);
    bench_report_spread(report, "clips_per_s", speed);
    bench_report_spread(report, "clips_per_cpu_s", thrift);
    bench_report_spread(report, "peak_bytes", peak);
    if (entry == WEIR) {
        bench_spread ratio = contest_spread(all, WEIR, contest_clips_per_cpu_s, BARE);
        bench_spread wall = contest_spread(all, WEIR, contest_clips_per_s, BARE);
        printf("  %.3f (%.3f..%.3f)  %.3f (%.3f..%.3f)", ratio.median, ratio.min, ratio.max, wall.median, wall.min,
               wall.max);
        bench_report_spread(report, "clips_per_cpu_s_ratio", ratio);
        bench_report_spread(report, "clips_per_s_ratio", wall);
    }
    putchar('\n');
}

static int run_concurrency(bench_report *report, const decode_settings *settings, uint32_t concurrency)
{
    decode_job job = { .settings = settings, .concurrency = concurrency };
    const contest_entry entries[] = { { "bare", run_bare, &job }, { "weir", run_weir, &job } };
    decode_outcome outcome = { .is_same = true };
    contest all = { .name = "bare loop",
                    .entries = entries,
                    .num_entries = NUM_ENTRIES,
                    .num_rounds = settings->runs,
                    .result_bytes = sizeof(decode_result),
                    .see = see_run,
                    .self = &outcome };
    int rc = contest_run(&all);
    if (rc == 0 && !outcome.is_same)
        rc = -1;
    for (size_t i = 0; i < NUM_ENTRIES && rc == 0; i++)
        tell(report, &job, &all, i);
    free(all.results);
    return rc;
}

int decode_versus_bare(bench_report *report, const decode_settings *settings)
{
    const bench_list *concurrency = &settings->concurrency;
    printf("concurrency  what   clips/s  clips/CPU-s   peak MB  weir/bare per CPU-s   weir/bare per s\n");
    int rc = 0;
    for (size_t i = 0; i < concurrency->num_values && rc == 0; i++)
        rc = run_concurrency(report, settings, concurrency->values[i]);
    return rc;
}
