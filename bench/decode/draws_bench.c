/*
 * weir-bench draws: what one random frame of a file costs, of each file of a folder, which differ in length. Held constant: one
 * thread, one frame for each draw, its own size. Each way draws the same frames. All files are drawn from at the same
 * places of their groups of pictures, if they repeat the shortest one, as those of scripts/make-dataset do. The place
 * of a frame in its group decides what it costs. Of 50 random places the costs differ by more than those of files.
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
    uint64_t period; /* frames of the shortest file */
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

/* A place within the period, which is the same for all files, in any of its repetitions. */
static int64_t draw_number(const draws_job *job, uint64_t *places, uint64_t *repetitions)
{
    uint64_t place = weir__random_below(places, job->period);
    uint64_t repetition = weir__random_below(repetitions, job->probe->num_frames / job->period);
    return (int64_t)(repetition * job->period + place);
}

static int draw_all(const draws_job *job, contest_result *result)
{
    weir_video_reader *reader = NULL;
    uint64_t places = 1, repetitions = 2;
    double start_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID), start_wall_s = bench_seconds(CLOCK_MONOTONIC);
    int rc = 0;
    for (uint32_t i = 0; i < job->settings->draws && rc == 0; i++) {
        int64_t number = draw_number(job, &places, &repetitions);
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

/* Measures all ways, and adds to *kept_open what a draw costs of the open file, in seconds. */
static int draw_from(bench_report *report, const draws_job *like, double *kept_open)
{
    draws_job jobs[NUM_WAYS];
    contest_entry entries[NUM_WAYS];
    for (draws_way way = 0; way < NUM_WAYS; way++) {
        jobs[way] = *like;
        jobs[way].way = way;
        entries[way] = (contest_entry){ .name = ways[way], .work = run_job, .argument = &jobs[way] };
    }
    contest all = {
        .name = "draws", .entries = entries, .num_entries = NUM_WAYS, .num_rounds = like->settings->runs
    };
    printf("%s: %.0f s, %" PRIu64 " frames, a table of %zu bytes\n", like->path,
           (double)like->probe->duration_ns * 1e-9, like->probe->num_frames, like->probe->packets_bytes);
    int rc = contest_run(&all);
    for (size_t i = 0; i < NUM_WAYS && rc == 0; i++)
        tell(report, &jobs[i], &all, i);
    if (rc == 0)
        *kept_open = contest_spread(&all, WARM, contest_cpu_s_per_clip, CONTEST_NONE).median;
    free(all.results);
    return rc;
}

static uint64_t shortest_of(const weir_item *probes, size_t num_probes)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < num_probes; i++) {
        const weir_probe_result *probe = probes[i].data;
        if (probe && probe->num_frames < least)
            least = probe->num_frames;
    }
    return least;
}

/* Draws from each file that could be probed. */
static int draw_from_all(bench_report *report, const draws_settings *settings, const bench_files *files,
                         const weir_item *probes)
{
    uint64_t period = shortest_of(probes, files->num_paths);
    double least = 0, most = 0, cost = 0;
    for (size_t i = 0; i < files->num_paths; i++) {
        draws_job job = { .settings = settings, .path = files->paths[i], .probe = probes[i].data, .period = period };
        if (!job.probe)
            continue;
        if (draw_from(report, &job, &cost) != 0)
            return -1;
        least = least == 0 || cost < least ? cost : least;
        most = cost > most ? cost : most;
    }
    if (least == 0)
        return -1; /* no file is usable, as has been said */
    printf("\nkept open, the dearest file takes %.2f times as long as the cheapest\n", most / least);
    return 0;
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
    weir_item *probes = calloc(files.num_paths, sizeof *probes);
    for (size_t i = 0; probes && i < files.num_paths; i++)
        if (probe_file(files.paths[i], &probes[i]) != 0)
            probes[i] = (weir_item){ 0 }; /* it is left out; probe_file() has printed that */
    int rc = probes ? draw_from_all(report, settings, &files, probes) : -1;
    for (size_t i = 0; probes && i < files.num_paths; i++)
        weir_item_release(&probes[i]);
    free(probes);
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
