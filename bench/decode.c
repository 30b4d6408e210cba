/*
 * weir-bench decode: a folder of videos through directory source → decode → sink, beside the bare loop, run by run in
 * turn, so that what else the machine does meets both alike. The figure that counts is clips per CPU-second; clips/s
 * also tells how well the threads are kept busy, but depends on who else is there.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libavutil/avutil.h>

#include <weir/engine.h>
#include <weir/stages.h>

#include "bare_loop.h"
#include "bench.h"
#include "measure.h"
#include "options.h"
#include "report.h"

enum { MAX_RUNS = 1000 };

typedef struct decode_settings {
    const char *dataset_dir;
    const char *glob;
    bench_list concurrency;
    uint32_t threads;
    uint32_t runs;
    uint32_t width;
    uint32_t height;
    weir_scaler_kind scaler;
    bool verify;
    const char *json_path;
} decode_settings;

/* What one run is given. */
typedef struct decode_job {
    const decode_settings *settings;
    uint32_t concurrency;
    bare_job bare;
} decode_job;

typedef struct path_list {
    char **paths;
    size_t num_paths;
    size_t max_paths;
} path_list;

enum { BARE, WEIR, NUM_KINDS };

/* One run of one kind. */
typedef struct decode_sample {
    double clips_per_s;
    double clips_per_cpu_s;
    double peak_bytes;
} decode_sample;

static weir_pipeline *build(const decode_settings *settings, uint32_t concurrency, const weir_op *op)
{
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source(builder, &weir_directory_source,
                &(weir_directory_config){ .root = settings->dataset_dir, .glob = settings->glob }, NULL);
    if (op)
        weir_pipe(builder, op,
                  &(weir_video_config){ .width = settings->width,
                                        .height = settings->height,
                                        .scaler = settings->scaler,
                                        .no_autorotate = true }, /* as the bare loop */
                  &(weir_stage_options){ .concurrency = concurrency });
    weir_sink(builder, 0);
    weir_build(builder, &(weir_pipeline_options){ .threads = settings->threads }, &pipeline, &error);
    if (!pipeline)
        fprintf(stderr, "weir-bench: %s\n", error.message);
    return pipeline;
}

static bool append_path(path_list *list, const char *path)
{
    if (list->num_paths == list->max_paths) {
        size_t max_paths = list->max_paths ? list->max_paths * 2 : 256;
        char **grown = realloc(list->paths, max_paths * sizeof *grown);
        if (!grown)
            return false;
        list->paths = grown;
        list->max_paths = max_paths;
    }
    char *copy = strdup(path);
    if (copy)
        list->paths[list->num_paths++] = copy;
    return copy;
}

static void free_paths(path_list *list)
{
    for (size_t i = 0; i < list->num_paths; i++)
        free(list->paths[i]);
    free(list->paths);
}

/* The list for the bare loop. The pipeline's threads are gone before the first run forks. */
static int list_paths(const decode_settings *settings, path_list *list)
{
    weir_pipeline *pipeline = build(settings, 1, NULL);
    weir_item item;
    int rc = pipeline ? WEIR_OK : WEIR_EFAILED;
    while (rc == WEIR_OK) {
        rc = weir_next(pipeline, &item, WEIR_FOREVER);
        if (rc != WEIR_OK)
            break;
        rc = append_path(list, item.data) ? WEIR_OK : WEIR_ENOMEM;
        weir_item_release(&item);
    }
    weir_free(pipeline);
    return rc == WEIR_EOF ? 0 : -1;
}

static int run_bare(const void *argument, void *result)
{
    const decode_job *job = argument;
    return bare_loop(&job->bare, result);
}

static void count_frames(const decode_settings *settings, const weir_frames *frames, bare_result *result)
{
    size_t bytes = (size_t)frames->num_frames * frames->height * frames->width * frames->channels;
    result->num_clips++;
    result->num_frames += frames->num_frames;
    if (settings->verify)
        result->hash += bare_hash(frames->data, bytes);
}

static void drop_log(void *self, weir_log_level level, const char *line)
{
    (void)self;
    (void)level;
    (void)line;
}

static int run_weir(const void *argument, void *result)
{
    const decode_job *job = argument;
    bare_result *sums = result;
    *sums = (bare_result){ 0 };
    weir_log_to(drop_log, NULL); /* the bare loop says nothing of broken files, either; both count them */
    weir_pipeline *pipeline = build(job->settings, job->concurrency, &weir_video_decode);
    if (!pipeline)
        return -1;

    weir_item item;
    int rc;
    while ((rc = weir_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        count_frames(job->settings, item.data, sums);
        weir_item_release(&item);
    }
    weir_account account;
    weir_pipeline_account(pipeline, NULL, &account);
    sums->num_failures = account.failed;
    weir_free(pipeline);
    return rc == WEIR_EOF ? 0 : -1;
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
static int run_pair(const decode_job *job, bool weir_first, decode_sample *samples, bare_result *results)
{
    static bench_work *const works[NUM_KINDS] = { run_bare, run_weir };
    for (int i = 0; i < NUM_KINDS; i++) {
        int kind = weir_first ? NUM_KINDS - 1 - i : i;
        bench_usage usage;
        if (bench_measure(works[kind], job, &results[kind], sizeof results[kind], &usage) != 0)
            return -1;
        samples[kind] = sample_of(&results[kind], &usage);
    }
    return is_same(&results[BARE], &results[WEIR]) ? 0 : -1;
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

static int run_concurrency(bench_report *report, const decode_settings *settings, const path_list *list,
                           uint32_t concurrency)
{
    decode_job job = {
        .settings = settings,
        .concurrency = concurrency,
        .bare = { .paths = list->paths,
                  .num_paths = list->num_paths,
                  .num_threads = concurrency,
                  .width = (int)settings->width,
                  .height = (int)settings->height,
                  .hash = settings->verify },
    };
    bare_result results[NUM_KINDS];
    decode_sample *samples = calloc((size_t)settings->runs * NUM_KINDS, sizeof *samples);
    int rc = samples ? 0 : -1;
    for (uint32_t run = 0; run < settings->runs && rc == 0; run++)
        rc = run_pair(&job, run % 2, &samples[run * NUM_KINDS], results);
    if (rc == 0) {
        tell(report, &job, samples, BARE);
        tell(report, &job, samples, WEIR);
    }
    free(samples);
    return rc;
}

static int run_all(const decode_settings *settings, const path_list *list)
{
    bench_report *report = bench_report_new();
    bench_report_machine(report, "ffmpeg", av_version_info());
    printf("decode: %zu files below %s to %" PRIu32 "×%" PRIu32 " rgb24, padded; medians of %" PRIu32
           " runs in turn%s\n\n",
           list->num_paths, settings->dataset_dir, settings->width, settings->height, settings->runs,
           settings->verify ? ", pixels compared" : "");
    printf("concurrency  what   clips/s  clips/CPU-s   peak MB  weir/bare per CPU-s   weir/bare per s\n");
    int rc = 0;
    for (size_t i = 0; i < settings->concurrency.num_values && rc == 0; i++)
        rc = run_concurrency(report, settings, list, settings->concurrency.values[i]);
    if (bench_report_end(report, settings->json_path) != 0)
        rc = -1;
    return rc == 0 ? 0 : 1;
}

static bool read_scaler(const char *text, void *to)
{
    static const char *const names[] = {
        [WEIR_SCALER_DEFAULT] = "default",
        [WEIR_SCALER_EXACT] = "exact",
        [WEIR_SCALER_ZIMG] = "zimg",
        [WEIR_SCALER_FAST] = "fast",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *(weir_scaler_kind *)to = (weir_scaler_kind)i;
            return true;
        }
    }
    return false;
}

/* Says what is wrong with the settings, if anything is. */
static int check(const decode_settings *settings)
{
    weir_error error = { 0 };
    uint64_t num_files = 0;
    weir_directory_config directory = { .root = settings->dataset_dir, .glob = settings->glob };
    int rc = settings->dataset_dir ? weir_directory_count(&directory, 1, &num_files, &error)
                                   : weir_error_set(&error, WEIR_EINVAL, 0, "--dataset-dir is needed");
    if (rc == WEIR_OK && num_files == 0)
        weir_error_set(&error, WEIR_ENOTFOUND, 0, "no file named like %s below %s", settings->glob,
                       settings->dataset_dir);
    if (settings->verify && settings->scaler != WEIR_SCALER_EXACT)
        weir_error_set(&error, WEIR_EINVAL, 0, "--verify compares the pixels of --scaler exact only");
    if (settings->runs > MAX_RUNS)
        weir_error_set(&error, WEIR_EINVAL, 0, "at most %d runs", MAX_RUNS);
    if (!error.status)
        return 0;
    fprintf(stderr, "weir-bench: %s\n", error.message);
    return -1;
}

int bench_decode(int argc, char **argv)
{
    decode_settings settings = {
        .glob = "*.mp4",
        .concurrency = { .values = { 1, 2, 4, 10 }, .num_values = 4 },
        .runs = 5,
        .width = 128,
        .height = 128,
        .scaler = WEIR_SCALER_EXACT,
    };
    const bench_option options[] = {
        { "dataset-dir", "DIR", bench_read_text, &settings.dataset_dir, "the folder of videos (needed)" },
        { "glob", "PATTERN", bench_read_text, (void *)&settings.glob, "which files (default *.mp4)" },
        { "concurrency", "LIST", bench_read_list, &settings.concurrency,
          "slots of weir, threads of the bare loop (default 1,2,4,10)" },
        { "threads", "N", bench_read_count, &settings.threads,
          "threads of weir's pool (default: the CPUs it may use)" },
        { "runs", "N", bench_read_count, &settings.runs, "runs of each, in turn (default 5)" },
        { "width", "N", bench_read_count, &settings.width, "of the pictures (default 128)" },
        { "height", "N", bench_read_count, &settings.height, "of the pictures (default 128)" },
        { "scaler", "NAME", read_scaler, &settings.scaler,
          "weir's: exact, as the bare loop's (default), zimg, fast or default" },
        { "verify", NULL, NULL, &settings.verify, "also compare the pixels; costs both the same CPU" },
        BENCH_JSON_OPTION((void *)&settings.json_path),
        { 0 },
    };
    bench_parsed parsed = bench_parse(argc, argv, options, "decode --dataset-dir DIR [OPTIONS]");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;
    if (check(&settings) != 0)
        return 2;

    path_list list = { 0 };
    int rc = list_paths(&settings, &list) == 0 ? run_all(&settings, &list) : 1;
    free_paths(&list);
    return rc;
}
