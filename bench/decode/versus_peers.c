/*
 * The same decoding job done by weir and by the Python libraries that bench/peers/setup has installed, run by run in turn.
 * Each run is a process of its own. All tell their own time: without start-up, imports and the first clip, which each
 * has decoded once before.
 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <weir/engine.h>
#include <weir/stages.h>

#include "bench.h"
#include "decode_bench.h"
#include "measure.h"
#include "stage_job.h"

enum { NUM_JOBS = 3, NUM_CONTENDERS = 7 };

typedef struct peer_job {
    const char *name;
    const char *what;
    weir_sampling sampling;
} peer_job;

static const peer_job jobs[NUM_JOBS] = {
    { .name = "all", .what = "all frames" },
    { .name = "first16", .what = "the first 16 frames", .sampling = { .count = 16 } },
    { .name = "uniform16",
      .what = "16 frames spread over the file",
      .sampling = { .what = WEIR_SAMPLE_UNIFORM, .count = 16 } },
};

typedef struct peer_contender {
    const char *name;
    const char *module; /* that must be there; NULL = weir itself */
    weir_scaler_kind scaler;
} peer_contender;

static const peer_contender contenders[NUM_CONTENDERS] = {
    { .name = "weir" },
    { .name = "weir exact", .scaler = WEIR_SCALER_EXACT },
    { .name = "spdl", .module = "spdl.io" },
    { .name = "pyav", .module = "av" },
    { .name = "decord", .module = "decord" },
    { .name = "opencv", .module = "cv2" },
    { .name = "torchcodec", .module = "torchcodec.decoders" },
};

/* What one run came to. */
typedef struct peer_result {
    double clips, frames, failures;
    double wall_s, cpu_s, peak_bytes;
} peer_result;

/* One run. */
typedef struct peer_run {
    const decode_settings *settings;
    const decode_scope *scope;
    const peer_job *job;
    const peer_contender *contender;
    uint32_t concurrency;
    const char *list_path; /* a path a line */
} peer_run;

/* ---- runs --------------------------------------------------------------------------------------------------- */

static int run_weir(const void *argument, void *result)
{
    const peer_run *run = argument;
    const decode_settings *settings = run->settings;
    const bench_files first = { .paths = run->scope->files->paths, .num_paths = 1 };
    peer_result *told = result;
    stage_result sums;
    struct rusage used;
    weir_video_config video = { .width = settings->width,
                                .height = settings->height,
                                .resize = WEIR_RESIZE_STRETCH,
                                .scaler = run->contender->scaler,
                                .sampling = run->job->sampling };
    stage_job job = { .files = &first,
                      .op = &weir_video_decode,
                      .config = &video,
                      .concurrency = run->concurrency,
                      .threads = run->concurrency };
    *told = (peer_result){ 0 };
    int rc = stage_job_run(&job, &sums);
    job.root = run->scope->name ? NULL : settings->dataset_dir;
    job.glob = settings->glob;
    job.files = run->scope->files;
    job.see = stage_job_count_frames;
    job.self = &told->frames;
    double wall_s = bench_seconds(CLOCK_MONOTONIC), cpu_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (rc == 0)
        rc = stage_job_run(&job, &sums);
    told->wall_s = bench_seconds(CLOCK_MONOTONIC) - wall_s;
    told->cpu_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_s;
    getrusage(RUSAGE_SELF, &used);
    told->peak_bytes = (double)used.ru_maxrss * 1024;
    told->clips = (double)sums.num_clips;
    told->failures = (double)sums.num_failures;
    return rc;
}

/* The peer's name for the script is its first word. */
static int run_peer(const void *argument, void *result)
{
    const peer_run *run = argument;
    peer_result *told = result;
    char command[4096];
    snprintf(command, sizeof command, "'%s' '%s' %s %s %u %u %u '%s' 2>/dev/null", run->settings->python,
             run->settings->script, run->contender->name, run->job->name, run->concurrency, run->settings->width,
             run->settings->height, run->list_path);
    FILE *output = popen(command, "r"); /* NOLINT: the user's own paths */
    if (!output)
        return -1;
    int fields = fscanf(output, "%lf %lf %lf %lf %lf %lf", &told->clips, &told->frames, &told->failures,
                        &told->wall_s, &told->cpu_s, &told->peak_bytes);
    return pclose(output) == 0 && fields == 6 ? 0 : -1;
}

static bool is_there(const decode_settings *settings, const peer_contender *contender)
{
    if (!contender->module)
        return true;
    char command[4096];
    snprintf(command, sizeof command, "'%s' -c 'import %s' >/dev/null 2>&1", settings->python, contender->module);
    return system(command) == 0; /* NOLINT: the user's own paths */
}

/* ---- tables ------------------------------------------------------------------------------------------------- */

typedef struct peer_figures {
    double clips_per_s[MAX_RUNS], clips_per_cpu_s[MAX_RUNS], peak_bytes[MAX_RUNS], clips, frames;
    uint32_t num_runs;
} peer_figures;

static void add_run(peer_figures *figures, const peer_result *result)
{
    uint32_t i = figures->num_runs++;
    figures->clips_per_s[i] = result->clips / result->wall_s;
    figures->clips_per_cpu_s[i] = result->clips / result->cpu_s;
    figures->peak_bytes[i] = result->peak_bytes;
    figures->clips = result->clips;
    figures->frames = result->frames;
}

/* Weir's clips per CPU-second over this one's. */
static bench_spread tell(bench_report *report, const peer_run *run, const peer_figures *all, size_t index)
{
    const peer_figures *own = &all[index];
    double ratios[MAX_RUNS];
    for (uint32_t i = 0; i < own->num_runs; i++) /* of runs of the same round; before the figures are sorted */
        ratios[i] = all[0].clips_per_cpu_s[i] / own->clips_per_cpu_s[i];
    peer_figures sorted = *own;
    bench_spread ratio = bench_spread_of(ratios, own->num_runs);
    bench_spread speed = bench_spread_of(sorted.clips_per_s, own->num_runs);
    bench_spread thrift = bench_spread_of(sorted.clips_per_cpu_s, own->num_runs);
    bench_spread peak = bench_spread_of(sorted.peak_bytes, own->num_runs);
    double share = all[0].frames > 0 ? own->frames / all[0].frames : 1;
    printf("%-10s %3u  %-11s %9.0f %8.1f %% %9.2f %12.2f %9.1f %7.2f (%.2f..%.2f)\n", run->job->name,
           run->concurrency, contenders[index].name, own->frames, share * 100, speed.median, thrift.median,
           peak.median / 1e6, ratio.median, ratio.min, ratio.max);
    bench_report_row(report, "peers");
    decode_report_scope(report, run->scope);
    bench_report_text(report, "job", run->job->name);
    bench_report_text(report, "what", contenders[index].name);
    bench_report_number(report, "concurrency", run->concurrency);
    bench_report_number(report, "frames", own->frames);
    bench_report_number(report, "frames_share", share);
    bench_report_number(report, "clips", own->clips);
    bench_report_spread(report, "clips_per_s", speed);
    bench_report_spread(report, "clips_per_cpu_s", thrift);
    bench_report_spread(report, "peak_bytes", peak);
    bench_report_spread(report, "weir_over_this_per_cpu_s", ratio);
    return ratio;
}

/* A ratio of speeds says little where the work was not the same: another stream of the file, or frames left out. */
static void tell_difference(const peer_contender *contender, const peer_figures *own, const peer_figures *weir)
{
    if (own->clips != weir->clips)
        printf("  not the same work: %s decoded %.0f clips, weir %.0f\n", contender->name, own->clips, weir->clips);
    if (own->frames != weir->frames)
        printf("  not the same work: %s decoded %.0f frames, weir %.0f\n", contender->name, own->frames,
               weir->frames);
}

/* A line for each, and which other library is the best of them. */
static void tell_job(bench_report *report, const peer_run *run, const peer_figures *figures, const bool *there)
{
    const char *best = NULL;
    bench_spread least = { 0 };
    for (size_t i = 0; i < NUM_CONTENDERS; i++) {
        if (!there[i])
            continue;
        bench_spread ratio = tell(report, run, figures, i);
        if (contenders[i].module && (!best || ratio.median < least.median)) {
            best = contenders[i].name;
            least = ratio;
        }
    }
    for (size_t i = 1; i < NUM_CONTENDERS; i++)
        if (there[i])
            tell_difference(&contenders[i], &figures[i], &figures[0]);
    if (best)
        printf("%-10s %3u  weir over the best of the others, %s: %.2f (%.2f..%.2f)\n\n", run->job->name,
               run->concurrency, best, least.median, least.min, least.max);
}

/* All contenders that are there do one job, in turn. */
static int run_job(bench_report *report, const peer_run *like, const bool *there)
{
    static peer_figures figures[NUM_CONTENDERS];
    memset(figures, 0, sizeof figures);
    for (uint32_t round = 0; round < like->settings->runs; round++)
        for (size_t i = 0; i < NUM_CONTENDERS; i++) {
            size_t index = round % 2 ? NUM_CONTENDERS - 1 - i : i;
            peer_run run = *like;
            peer_result result = { 0 };
            bench_usage usage;
            if (!there[index])
                continue;
            run.contender = &contenders[index];
            decode_show_progress(like->job->name, round, like->settings->runs, i, NUM_CONTENDERS);
            if (bench_measure(run.contender->module ? run_peer : run_weir, &run, &result, sizeof result, &usage) !=
                0) {
                fprintf(stderr, "weir-bench: %s could not do %s\n", run.contender->name, run.job->name);
                return -1;
            }
            add_run(&figures[index], &result);
        }
    decode_show_progress(NULL, 0, 0, 1, 1);
    tell_job(report, like, figures, there);
    return 0;
}

/* ---- all of it ---------------------------------------------------------------------------------------------- */

static int write_list(const bench_files *files, char *path)
{
    int fd = mkstemp(path);
    FILE *list = fd >= 0 ? fdopen(fd, "w") : NULL;
    for (size_t i = 0; list && i < files->num_paths; i++)
        fprintf(list, "%s\n", files->paths[i]);
    bool written = list && !ferror(list);
    if (list && fclose(list) != 0)
        written = false;
    if (!written)
        fprintf(stderr, "weir-bench: cannot write %s: %s\n", path, strerror(errno));
    return written ? 0 : -1;
}

static void find_contenders(const decode_settings *settings, bool *there)
{
    for (size_t i = 0; i < NUM_CONTENDERS; i++) {
        there[i] = is_there(settings, &contenders[i]);
        if (!there[i])
            printf("%s is left out: %s cannot import %s (bench/peers/setup installs it)\n", contenders[i].name,
                   settings->python, contenders[i].module);
    }
}

int decode_beside_peers(bench_report *report, const decode_settings *settings, const decode_scope *scope,
                        uint32_t concurrency)
{
    const char *folder = getenv("TMPDIR");
    char list_path[PATH_MAX];
    bool there[NUM_CONTENDERS];
    printf("\npeers: stretched; weir with its default scaler over each, run by run\n");
    find_contenders(settings, there);
    printf("\n%-10s %3s  %-11s %9s %10s %9s %12s %9s %7s\n", "job", "at", "what", "frames", "of weir's", "clips/s",
           "clips/CPU-s", "peak MB", "weir over it, per CPU-s");
    snprintf(list_path, sizeof list_path, "%s/weir-bench-XXXXXX", folder && *folder ? folder : "/tmp");
    int rc = write_list(scope->files, list_path);
    for (size_t job = 0; job < NUM_JOBS && rc == 0; job++)
        rc = run_job(report,
                     &(peer_run){ .settings = settings,
                                  .scope = scope,
                                  .job = &jobs[job],
                                  .concurrency = concurrency,
                                  .list_path = list_path },
                     there);
    unlink(list_path);
    return rc;
}
