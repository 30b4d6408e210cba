/*
 * weir-bench draws: what one random frame of a file costs, of each file of a folder, which differ in length. Held constant: one
 * thread, one frame for each draw, its own size. Each way draws the same frames.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/engine.h>
#include <weir/files.h>
#include <weir/probe.h>
#include <weir/video_reader.h>

#include "bench/cli/bench.h"
#include "bench/cli/bench_options.h"
#include "bench/harness/background_load.h"
#include "bench/harness/clip_files.h"
#include "bench/harness/contest.h"
#include "common/random.h"

typedef struct draws_settings {
    const char *dataset_dir;
    const char *glob;
    uint32_t runs;
    uint32_t draws;
    const char *json_path;
} draws_settings;

typedef enum draws_way { OPENED, COLD, INDEXED, WARM, NUM_WAYS } draws_way;

static const char *const ways[NUM_WAYS] = {
    [OPENED] = "opened only",
    [COLD] = "opened for each draw",
    [INDEXED] = "the same, with its packet table",
    [WARM] = "kept open",
};

/* One file, and how it is drawn from. */
typedef struct draws_job {
    const draws_settings *settings;
    const char *path;
    const weir_probe_result *probe;
    draws_way way;
} draws_job;

static int fail(const char *path, const weir_error *error)
{
    fprintf(stderr, "weir-bench: %s: %s\n", path, error->message);
    return -1;
}

/* ---- one run ---------------------------------------------------------------------------------------------------- */

static int open_file(const draws_job *job, weir_video_reader **reader)
{
    bool has_table = job->way == INDEXED || job->way == WARM;
    weir_video_source source = {
        .path = job->path,
        .packets = has_table ? job->probe->packets : NULL,
        .packets_bytes = has_table ? job->probe->packets_bytes : 0,
    };
    weir_error error = { 0 };
    int rc = weir_video_reader_open(reader, &source, sizeof source, NULL, 0, &error);
    return rc == WEIR_OK ? 0 : fail(job->path, &error);
}

static int draw_frame(const draws_job *job, weir_video_reader *reader, int64_t number)
{
    const weir_sampling one = { .what = WEIR_SAMPLE_INDICES, .indices = &number, .num_indices = 1 };
    weir_frames *frames;
    weir_error error = { 0 };
    int rc = weir_video_reader_frames(reader, &one, sizeof one, NULL, 0, &frames, &error);
    if (rc != WEIR_OK)
        return fail(job->path, &error);
    weir_frames_free(frames);
    return 0;
}

static int draw_all(const draws_job *job, contest_result *result)
{
    weir_video_reader *reader = NULL;
    uint64_t state = 1;
    double start_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID), start_wall_s = bench_seconds(CLOCK_MONOTONIC);
    int rc = 0;
    for (uint32_t i = 0; i < job->settings->draws && rc == 0; i++) {
        int64_t number = (int64_t)weir__random_below(&state, job->probe->num_frames);
        if (!reader)
            rc = open_file(job, &reader);
        if (job->way == WARM && i == 0 && rc == 0) { /* the first one is not counted: it opens the file */
            rc = draw_frame(job, reader, 0);
            start_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
            start_wall_s = bench_seconds(CLOCK_MONOTONIC);
        }
        if (job->way != OPENED && rc == 0)
            rc = draw_frame(job, reader, number);
        if (job->way != WARM) {
            weir_video_reader_free(reader);
            reader = NULL;
        }
    }
    result->clips = job->settings->draws;
    result->cpu_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start_s;
    result->wall_s = bench_seconds(CLOCK_MONOTONIC) - start_wall_s;
    weir_video_reader_free(reader);
    return rc;
}

/* bench_work */
static int run_job(const void *argument, void *result)
{
    contest_result *sums = result;
    *sums = (contest_result){ 0 };
    return draw_all(argument, sums);
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

/* Makes the file's packet table. */
static int probe_file(const char *path, weir_item *item)
{
    const char *paths[] = { path };
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = 1 }, NULL);
    weir_pipe_probe(builder, NULL, NULL);
    weir_builder_sink(builder, NULL);
    int rc = weir_builder_build(builder, NULL, &pipeline, &error);
    if (rc == WEIR_OK)
        rc = weir_pipeline_next(pipeline, item, WEIR_FOREVER);
    weir_pipeline_free(pipeline);
    if (rc != WEIR_OK)
        return fail(path, &error);
    const weir_probe_result *probe = item->data;
    if (probe->error.status == WEIR_OK && probe->num_frames > 0)
        return 0;
    rc = probe->error.status ? fail(path, &probe->error) : fail(path, &(weir_error){ .message = "it has no frames" });
    weir_item_release(item);
    return rc;
}

static void tell(bench_report *report, const draws_job *job, const contest *all, size_t entry)
{
    bench_spread cpu = contest_spread(all, entry, contest_cpu_s_per_clip, CONTEST_NONE);
    bench_spread peak = contest_spread(all, entry, contest_peak_bytes, CONTEST_NONE);
    printf("  %-32s %9.3f ms (%.3f..%.3f) %9.1f MB\n", all->entries[entry].name, cpu.median * 1e3, cpu.min * 1e3,
           cpu.max * 1e3, peak.median / 1e6);
    bench_report_row(report, "draws");
    bench_report_text(report, "what", all->entries[entry].name);
    bench_report_text(report, "path", job->path);
    bench_report_number(report, "frames", (double)job->probe->num_frames);
    bench_report_number(report, "duration_s", (double)job->probe->duration_ns * 1e-9);
    bench_report_number(report, "draws", job->settings->draws);
    bench_report_spread(report, "cpu_s_per_draw", cpu);
    bench_report_spread(report, "peak_bytes", peak);
}

static int draw_from(bench_report *report, const draws_settings *settings, const char *path,
                     const weir_probe_result *probe)
{
    draws_job jobs[NUM_WAYS];
    contest_entry entries[NUM_WAYS];
    for (draws_way way = 0; way < NUM_WAYS; way++) {
        jobs[way] = (draws_job){ .settings = settings, .path = path, .probe = probe, .way = way };
        entries[way] = (contest_entry){ .name = ways[way], .work = run_job, .argument = &jobs[way] };
    }
    contest all = { .name = "draws", .entries = entries, .num_entries = NUM_WAYS, .num_rounds = settings->runs };
    printf("%s: %.0f s, %" PRIu64 " frames, a table of %zu bytes\n", path, (double)probe->duration_ns * 1e-9,
           probe->num_frames, probe->packets_bytes);
    int rc = contest_run(&all);
    for (size_t i = 0; i < NUM_WAYS && rc == 0; i++)
        tell(report, &jobs[i], &all, i);
    free(all.results);
    return rc;
}

static int run_draws(draws_settings *settings)
{
    bench_files files = { 0 };
    if (!settings->dataset_dir)
        return bench_refuse("--dataset-dir DIR is missing", " (see --help)");
    if (bench_files_find(&files, settings->dataset_dir, settings->glob) != 0)
        return 2;
    bench_report *report = bench_report_new();
    bench_background_load start = bench_background_load_now();
    printf("%" PRIu32
           " random frames of each file; CPU time of a draw and largest memory: medians (smallest..largest) "
           "of %" PRIu32 " interleaved runs\n\n",
           settings->draws, settings->runs);
    size_t num_usable = 0;
    int rc = 0;
    for (size_t i = 0; i < files.num_paths && rc == 0; i++) {
        weir_item item;
        if (probe_file(files.paths[i], &item) != 0)
            continue; /* it is left out, as has been said */
        num_usable++;
        rc = draw_from(report, settings, files.paths[i], item.data);
        weir_item_release(&item);
    }
    if (num_usable == 0)
        rc = -1;
    if (rc == 0)
        bench_report_background_load(NULL, &start);
    if (bench_report_end(report, settings->json_path) != 0)
        rc = -1;
    bench_files_free(&files);
    return rc == 0 ? 0 : 1;
}

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(draws_settings, what)

static const option_row rows[] = {
    { ROW("dataset-dir", dataset_dir, option_folder), .argument = "DIR",
      .help = "the folder of videos (required): scripts/make-dataset DIR --seconds 60,3600,36000 makes three" },
    { ROW("glob", glob, option_text), .argument = "PATTERN", .help = "names of the files (default *.mp4)" },
    { ROW("runs", runs, option_count32), .argument = "N", .max = MAX_RUNS,
      .help = "runs of each way, interleaved (default 5)" },
    { ROW("draws", draws, option_count32), .argument = "N", .help = "frames that a run draws (default 50)" },
    { 0 },
};

int bench_draws(int argc, char **argv)
{
    draws_settings settings = { .glob = "*.mp4", .runs = 5, .draws = 50 };
    const option_set set = { rows, &settings };
    bench_parsed parsed = bench_parse(argc, argv, &set, 1, &settings.json_path, "draws --dataset-dir DIR [options]");
    return parsed == BENCH_RUN ? run_draws(&settings) : parsed == BENCH_HELP_SHOWN ? 0 : 2;
}
