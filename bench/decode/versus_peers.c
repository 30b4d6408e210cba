/*
 * Runs the same decoding job with weir and with the Python libraries installed by bench/peers/setup. The runs are
 * interleaved, each in a separate process. Each process reports its own time without start-up, imports and the first
 * clip, which it has decoded once before. The bare loop
 * shows what FFmpeg itself needs.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <weir/engine.h>
#include <weir/stages.h>

#include "bench/cli/bench.h"
#include "bench/decode/bare_loop.h"
#include "bench/decode/decode_bench.h"
#include "bench/decode/stage_job.h"
#include "bench/harness/contest.h"

enum { NUM_JOBS = 4, NUM_CONTENDERS = 8 };

typedef struct peer_job {
    const char *name;
    const char *what;
    weir_sampling sampling;
    size_t (*choose)(size_t num_frames, size_t *numbers); /* the same for the bare loop */
} peer_job;

static size_t choose_first(size_t num_frames, size_t *numbers)
{
    size_t count = num_frames < 16 ? num_frames : 16;
    for (size_t i = 0; i < count; i++)
        numbers[i] = i;
    return count;
}

static size_t choose_uniform(size_t num_frames, size_t *numbers)
{
    size_t count = num_frames < 16 ? num_frames : 16;
    for (size_t i = 0; i < count; i++)
        numbers[i] = (2 * i + 1) * num_frames / (2 * count);
    return count;
}

static size_t choose_stride(size_t num_frames, size_t *numbers)
{
    size_t first = num_frames > 61 ? (num_frames - 61) / 2 : 0, count = 0;
    for (size_t i = first; i < num_frames && count < 16; i += 4)
        numbers[count++] = i;
    return count;
}

static const peer_job jobs[NUM_JOBS] = {
    { .name = "all", .what = "all frames" },
    { .name = "first16", .what = "the first 16 frames", .sampling = { .count = 16 }, .choose = choose_first },
    { .name = "uniform16",
      .what = "16 frames spread over the file",
      .sampling = { .what = WEIR_SAMPLE_UNIFORM, .count = 16 },
      .choose = choose_uniform },
    { .name = "stride4",
      .what = "16 frames at stride 4 from the middle",
      .sampling = { .what = WEIR_SAMPLE_CLIPS, .count = 16, .stride_frames = 4, .clip_start = WEIR_CLIP_CENTER },
      .choose = choose_stride },
};

typedef struct peer_contender {
    const char *name;
    const char *module; /* required module; NULL = in this program */
    weir_scaler_kind scaler;
    bool is_bare;
} peer_contender;

static const peer_contender contenders[NUM_CONTENDERS] = {
    { .name = "weir" },
    { .name = "weir exact", .scaler = WEIR_SCALER_EXACT },
    { .name = "bare loop", .is_bare = true },
    { .name = "spdl", .module = "spdl.io" },
    { .name = "pyav", .module = "av" },
    { .name = "decord", .module = "decord" },
    { .name = "opencv", .module = "cv2" },
    { .name = "torchcodec", .module = "torchcodec.decoders" },
};

/* One run. */
typedef struct peer_run {
    const decode_settings *settings;
    const peer_job *job;
    const peer_contender *contender;
    uint32_t concurrency;
    const char *list_path; /* one path per line */
} peer_run;

/* ---- runs --------------------------------------------------------------------------------------------------- */

static int run_weir(const void *argument, void *result)
{
    const peer_run *run = argument;
    const decode_settings *settings = run->settings;
    const bench_files first = { .paths = settings->files.paths, .num_paths = 1 };
    contest_result *out = result, unused = { 0 };
    struct rusage used;
    weir_video_config video = { WEIR_WITH_PICTURE(.width = settings->width, .height = settings->height,
                                                  .resize = WEIR_RESIZE_STRETCH, .scaler = run->contender->scaler),
                                .sampling = run->job->sampling };
    stage_job job = { .files = &first,
                      .op = &weir_video_decode,
                      .config = &video,
                      .config_size = sizeof video,
                      .concurrency = run->concurrency,
                      .threads = run->concurrency };
    *out = (contest_result){ 0 };
    int rc = stage_job_run(&job, &unused);
    job.root = settings->dataset_dir;
    job.glob = settings->glob;
    job.see = stage_job_count_frames;
    job.self = &out->frames;
    double wall_s = bench_seconds(CLOCK_MONOTONIC), cpu_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (rc == 0)
        rc = stage_job_run(&job, out);
    out->wall_s = bench_seconds(CLOCK_MONOTONIC) - wall_s;
    out->cpu_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_s;
    getrusage(RUSAGE_SELF, &used);
    out->peak_bytes = (double)used.ru_maxrss * 1024;
    return rc;
}

static int run_bare(const void *argument, void *result)
{
    const peer_run *run = argument;
    const decode_settings *settings = run->settings;
    contest_result *out = result;
    struct rusage used;
    bare_result sums;
    bare_job job = { .paths = settings->files.paths,
                     .num_paths = 1,
                     .num_threads = run->concurrency,
                     .width = (int)settings->width,
                     .height = (int)settings->height,
                     .stretch = true,
                     .choose = run->job->choose };
    *out = (contest_result){ 0 };
    int rc = bare_loop(&job, &sums);
    job.num_paths = settings->files.num_paths;
    double wall_s = bench_seconds(CLOCK_MONOTONIC), cpu_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (rc == 0)
        rc = bare_loop(&job, &sums);
    out->wall_s = bench_seconds(CLOCK_MONOTONIC) - wall_s;
    out->cpu_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_s;
    out->clips = (double)sums.num_clips;
    out->frames = (double)sums.num_frames;
    out->failures = (double)sums.num_failures;
    getrusage(RUSAGE_SELF, &used);
    out->peak_bytes = (double)used.ru_maxrss * 1024;
    return rc;
}

static void copy_messages(FILE *messages)
{
    char line[512];
    rewind(messages);
    while (fgets(line, sizeof line, messages))
        fputs(line, stderr);
}

/* The peer's name for the script is its first word. Its messages are shown only if it fails: the libraries also log
   damaged files. */
static int run_peer(const void *argument, void *result)
{
    const peer_run *run = argument;
    contest_result *out = result;
    char command[3 * PATH_MAX];
    FILE *messages = tmpfile(); /* nameless, and inherited */
    if (!messages)
        return -1;
    snprintf(command, sizeof command, "'%s' '%s' %s %s %u %u %u '%s' 2>/dev/fd/%d", run->settings->python,
             run->settings->script, run->contender->name, run->job->name, run->concurrency, run->settings->width,
             run->settings->height, run->list_path, fileno(messages));
    FILE *output = popen(command, "r"); /* NOLINT: the user's own paths */
    if (!output) {
        fclose(messages);
        return -1;
    }
    int fields = fscanf(output, "%lf %lf %lf %lf %lf %lf", &out->clips, &out->frames, &out->failures, &out->wall_s,
                        &out->cpu_s, &out->peak_bytes);
    bool is_done = pclose(output) == 0 && fields == 6;
    if (!is_done)
        copy_messages(messages);
    fclose(messages);
    return is_done ? 0 : -1;
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

/* Returns weir's clips per CPU-second divided by those of this contender. */
static bench_spread tell(bench_report *report, const peer_run *run, const contest *all, size_t entry)
{
    const contest_result *last = contest_last(all, entry), *weir = contest_last(all, 0);
    const char *name = all->entries[entry].name;
    bench_spread inverse = contest_spread(all, entry, contest_cpu_s_per_clip, 0);
    bench_spread speed = contest_spread(all, entry, contest_clips_per_s, CONTEST_NONE);
    bench_spread thrift = contest_spread(all, entry, contest_clips_per_cpu_s, CONTEST_NONE);
    bench_spread peak = contest_spread(all, entry, contest_peak_bytes, CONTEST_NONE);
    double share = weir->frames > 0 ? last->frames / weir->frames : 1;
    printf("%-10s %3u  %-11s %9.0f %8.1f %% %9.2f %12.2f %9.1f %7.2f (%.2f..%.2f)\n", run->job->name,
           run->concurrency, name, last->frames, share * 100, speed.median, thrift.median, peak.median / 1e6,
           inverse.median, inverse.min, inverse.max);
    bench_report_row(report, "peers");
    bench_report_text(report, "job", run->job->name);
    bench_report_text(report, "what", name);
    bench_report_number(report, "concurrency", run->concurrency);
    bench_report_number(report, "frames", last->frames);
    bench_report_number(report, "frames_share", share);
    bench_report_number(report, "clips", last->clips);
    bench_report_spread(report, "clips_per_s", speed);
    bench_report_spread(report, "clips_per_cpu_s", thrift);
    bench_report_spread(report, "peak_bytes", peak);
    bench_report_spread(report, "weir_over_this_per_cpu_s", inverse);
    return inverse;
}

/* Speeds are not comparable if the work was different: another stream of the file, or missing frames. */
static void tell_difference(const char *name, const contest_result *own, const contest_result *weir)
{
    if (own->clips != weir->clips)
        printf("  not the same work: %s decoded %.0f clips, weir %.0f\n", name, own->clips, weir->clips);
    if (own->frames != weir->frames)
        printf("  not the same work: %s decoded %.0f frames, weir %.0f\n", name, own->frames, weir->frames);
}

/* Prints a line for each, and the best of the other libraries. */
static void tell_job(bench_report *report, const peer_run *run, const contest *all)
{
    const char *best = NULL;
    bench_spread least = { 0 };
    for (size_t i = 0; i < NUM_CONTENDERS; i++) {
        if (!all->entries[i].work)
            continue;
        bench_spread ratio = tell(report, run, all, i);
        if (contenders[i].module && (!best || ratio.median < least.median)) {
            best = contenders[i].name;
            least = ratio;
        }
    }
    for (size_t i = 1; i < NUM_CONTENDERS; i++)
        if (all->entries[i].work)
            tell_difference(contenders[i].name, contest_last(all, i), contest_last(all, 0));
    if (best)
        printf("%-10s %3u  weir over the best of the others, %s: %.2f (%.2f..%.2f)\n\n", run->job->name,
               run->concurrency, best, least.median, least.min, least.max);
}

/* Runs one job with all available contenders. */
static int run_job(bench_report *report, const peer_run *like, const bool *there)
{
    peer_run runs[NUM_CONTENDERS];
    contest_entry entries[NUM_CONTENDERS] = { 0 };
    for (size_t i = 0; i < NUM_CONTENDERS; i++) {
        runs[i] = *like;
        runs[i].contender = &contenders[i];
        entries[i] = (contest_entry){ contenders[i].name,
                                      contenders[i].module    ? run_peer
                                      : contenders[i].is_bare ? run_bare
                                                              : run_weir,
                                      &runs[i] };
        if (!there[i])
            entries[i].work = NULL;
    }
    contest all = {
        .name = like->job->name, .entries = entries, .num_entries = NUM_CONTENDERS, .num_rounds = like->settings->runs
    };
    int rc = contest_run(&all);
    if (rc == 0)
        tell_job(report, like, &all);
    free(all.results);
    return rc;
}

/* ---- all of it ---------------------------------------------------------------------------------------------- */

/* Without a name: the peers' processes inherit it. NULL = the failure was printed. */
static FILE *write_list(const bench_files *files)
{
    FILE *list = tmpfile();
    for (size_t i = 0; list && i < files->num_paths; i++)
        fprintf(list, "%s\n", files->paths[i]);
    if (list && fflush(list) == 0 && !ferror(list))
        return list;
    fprintf(stderr, "weir-bench: cannot write a temporary file: %s\n", strerror(errno));
    if (list)
        fclose(list);
    return NULL;
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

int decode_versus_peers(bench_report *report, const decode_settings *settings, uint32_t concurrency)
{
    char list_path[40];
    bool there[NUM_CONTENDERS];
    printf("\npeers: stretched; weir with its default scaler over each, run by run\n");
    find_contenders(settings, there);
    printf("\n%-10s %3s  %-11s %9s %10s %9s %12s %9s %7s\n", "job", "at", "what", "frames", "of weir's", "clips/s",
           "clips/CPU-s", "peak MB", "weir over it, per CPU-s");
    FILE *list = write_list(&settings->files);
    if (!list)
        return -1;
    snprintf(list_path, sizeof list_path, "/dev/fd/%d", fileno(list));
    int rc = 0;
    for (size_t i = 0; i < NUM_JOBS && rc == 0; i++)
        rc = run_job(
            report,
            &(peer_run){ .settings = settings, .job = &jobs[i], .concurrency = concurrency, .list_path = list_path },
            there);
    fclose(list);
    return rc;
}
