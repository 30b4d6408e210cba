/*
 * The saved CPU time and the loss of each lossy or fast option of the decode stage. Each row is one change to the
 * same job: all frames to rgb24 with the exact scaler, stretched. CPU time: interleaved runs in alternating order,
 * each in a separate process, divided by the unchanged job in the same round. Accuracy: see fidelity.h.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/stages.h>

#include "contest.h"
#include "decode_bench.h"
#include "fidelity.h"
#include "stage_job.h"

enum { MAX_COSTS = 32, DEFAULT_SCALER = 1 /* its row */ };

typedef struct option_cost {
    const char *group;
    const char *name;
    const weir_op *op;
    weir_video_config video;
    weir_audio_config audio;    /* if op is the audio operation */
    bool is_isolated;           /* in child processes */
    char filter[96];            /* storage for video.filter */
    bool is_decoders;           /* a decoder's option: its pictures are compared after the default scaler, because the
                                   exact one's rounding would hide the loss */
    weir_video_config compared; /* with this */
    size_t fidelity; /* its index in the fidelity_result; MAX_FIDELITIES = it produces other frames, or none */
} option_cost;

typedef struct cost_table {
    const decode_settings *settings;
    uint32_t concurrency;
    option_cost costs[MAX_COSTS]; /* the first is the unchanged job */
    size_t num_costs;
    contest runs;
    fidelity_result fidelity;
} cost_table;

/* ---- the costs --------------------------------------------------------------------------------------------- */

/* Adds a row, as a copy of the unchanged job; the caller changes it. */
static option_cost *add(cost_table *table, const char *group, const char *name)
{
    option_cost *own = &table->costs[table->num_costs++];
    *own = (option_cost){
        .group = group,
        .name = name,
        .op = &weir_video_decode,
        .video = { .width = table->settings->width,
                   .height = table->settings->height,
                   .resize = WEIR_RESIZE_STRETCH,
                   .scaler = WEIR_SCALER_EXACT,
                   .no_autorotate = true },
    };
    return own;
}

static void add_scalers(cost_table *table)
{
    static const char *const flags[] = { "bilinear", "area", "fast_bilinear" };
    static const char *const names[] = { "swscale bilinear", "swscale area", "swscale fast_bilinear" };
    add(table, "scaler", "exact (unchanged)");
    add(table, "scaler", "default")->video.scaler = WEIR_SCALER_DEFAULT;
    add(table, "scaler", "zimg")->video.scaler = WEIR_SCALER_ZIMG;
    add(table, "scaler", "fast")->video.scaler = WEIR_SCALER_FAST;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        option_cost *own = add(table, "filter", names[i]);
        snprintf(own->filter, sizeof own->filter, "scale=%" PRIu32 ":%" PRIu32 ":flags=%s,format=rgb24",
                 own->video.width, own->video.height, flags[i]);
        own->video.filter = own->filter;
    }
    add(table, "pixels", "gray8")->video.pixel = WEIR_PIXEL_GRAY8;
    add(table, "pixels", "yuv420p")->video.pixel = WEIR_PIXEL_YUV420P;
}

static void add_cheap_decoding(cost_table *table)
{
    size_t first = table->num_costs;
    add(table, "decoder", "loop filter references")->video.loop_filter = WEIR_LOOP_FILTER_REFERENCES;
    add(table, "decoder", "loop filter keyframes")->video.loop_filter = WEIR_LOOP_FILTER_KEYFRAMES;
    add(table, "decoder", "loop filter none")->video.loop_filter = WEIR_LOOP_FILTER_NONE;
    add(table, "decoder", "fast decode")->video.fast_decode = true;
    add(table, "decoder", "lowres 1")->video.lowres = 1;
    add(table, "decoder", "lowres 2")->video.lowres = 2;
    for (size_t i = first; i < table->num_costs; i++)
        table->costs[i].is_decoders = true;
}

static void add_frames(cost_table *table)
{
    static const struct {
        const char *name;
        weir_sampling sampling;
    } kinds[] = {
        { "every 2nd", { .what = WEIR_SAMPLE_EVERY, .every = 2 } },
        { "every 4th", { .what = WEIR_SAMPLE_EVERY, .every = 4 } },
        { "1 a second", { .what = WEIR_SAMPLE_RATE, .rate_num = 1 } },
        { "keyframes", { .what = WEIR_SAMPLE_KEYFRAMES } },
        { "first 16", { .count = 16 } },
        { "16, uniform", { .what = WEIR_SAMPLE_UNIFORM, .count = 16 } },
        { "16 consecutive, random", { .what = WEIR_SAMPLE_RANDOM, .count = 16, .stretch_frames = 16 } },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        option_cost *own = add(table, "frames", kinds[i].name);
        own->video.sampling = kinds[i].sampling;
        own->fidelity = MAX_FIDELITIES;
    }
}

static void add_audio(cost_table *table)
{
    option_cost *own = add(table, "audio", "16 kHz mono, alone");
    own->op = &weir_audio_decode;
    own->audio = (weir_audio_config){ .sample_rate = 16000, .channels = 1 };
    own->fidelity = MAX_FIDELITIES;
}

static void add_isolated(cost_table *table)
{
    option_cost *own = add(table, "process", "isolated");
    own->is_isolated = true;
    own->fidelity = MAX_FIDELITIES; /* the same frames */
}

static const void *config_of(const option_cost *own)
{
    return own->op == &weir_video_decode ? (const void *)&own->video : (const void *)&own->audio;
}

/* Whether it is available in this build; prints a line if not. */
static bool is_built(const option_cost *own)
{
    weir_error error = { 0 };
    weir_video_config copy = own->video;
    if (own->op != &weir_video_decode)
        return true;
    int rc = weir_video_decode.config_init(&copy, &error);
    if (rc == WEIR_OK)
        weir_video_decode.config_free(&copy);
    else
        printf("%s is left out: %s\n", own->name, error.message);
    return rc == WEIR_OK;
}

static void drop_missing(cost_table *table)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->num_costs; i++) {
        if (!is_built(&table->costs[i]))
            continue;
        table->costs[kept] = table->costs[i];
        if (table->costs[kept].video.filter)
            table->costs[kept].video.filter = table->costs[kept].filter;
        kept++;
    }
    table->num_costs = kept;
}

/* ---- the runs ----------------------------------------------------------------------------------------------- */

/* The input of one run. */
typedef struct cost_run {
    const cost_table *table;
    const option_cost *option_cost;
} cost_run;

static int run_cost(const void *argument, void *result)
{
    const cost_run *run = argument;
    const option_cost *own = run->option_cost;
    weir_isolated_config isolated = { .op = own->op, .config = config_of(own) };
    contest_result *sums = result;
    *sums = (contest_result){ 0 };
    return stage_job_run(&(stage_job){ .files = &run->table->settings->files,
                                       .op = own->is_isolated ? &weir_isolated : own->op,
                                       .config = own->is_isolated ? &isolated : config_of(own),
                                       .concurrency = run->table->concurrency,
                                       .threads = run->table->settings->threads,
                                       .see = own->op == &weir_video_decode ? stage_job_count_frames : NULL,
                                       .self = &sums->frames },
                         sums);
}

static int run_rounds(cost_table *table)
{
    cost_run runs[MAX_COSTS];
    contest_entry entries[MAX_COSTS];
    for (size_t i = 0; i < table->num_costs; i++) {
        runs[i] = (cost_run){ .table = table, .option_cost = &table->costs[i] };
        entries[i] = (contest_entry){ table->costs[i].name, run_cost, &runs[i] };
    }
    table->runs = (contest){ .name = "option costs",
                             .entries = entries,
                             .num_entries = table->num_costs,
                             .num_rounds = table->settings->runs };
    return contest_run(&table->runs);
}

static int run_fidelity(cost_table *table)
{
    fidelity_job job = {
        .files = &table->settings->files,
        .width = (int)table->settings->width,
        .height = (int)table->settings->height,
        .concurrency = table->concurrency,
    };
    for (size_t i = 0; i < table->num_costs; i++) {
        option_cost *own = &table->costs[i];
        if (own->fidelity == MAX_FIDELITIES)
            continue;
        own->fidelity = job.num_videos;
        own->compared = own->video;
        if (own->is_decoders)
            own->compared.scaler = WEIR_SCALER_DEFAULT;
        job.videos[job.num_videos++] = &own->compared;
    }
    bench_usage unused;
    return bench_measure(fidelity_measure, &job, &table->fidelity, sizeof table->fidelity, &unused);
}

/* ---- the table ---------------------------------------------------------------------------------------------- */

/* The results of all rounds. */
typedef struct cost_results {
    bench_spread cpu_ms; /* for each file */
    bench_spread ratio;  /* relative to the unchanged job */
    double clips;
    double frames;
    double share; /* of the unchanged job's frames */
    bool has_fidelity;
    fidelity pictures;
    double lost_db;
} cost_results;

static cost_results figures_of(const cost_table *table, size_t index)
{
    const contest_result *last = contest_last(&table->runs, index);
    double ms_per_file = 1e3 / (double)table->settings->files.num_paths;
    cost_results results = { .cpu_ms = contest_spread(&table->runs, index, contest_cpu_s, CONTEST_NONE),
                             .ratio = contest_spread(&table->runs, index, contest_cpu_s, 0) };
    results.cpu_ms.median *= ms_per_file;
    results.cpu_ms.min *= ms_per_file;
    results.cpu_ms.max *= ms_per_file;
    results.clips = last->clips;
    results.frames = last->frames;
    results.share = last->frames / contest_last(&table->runs, 0)->frames;
    size_t place = table->costs[index].fidelity;
    if (place < MAX_FIDELITIES && table->fidelity.num_pictures > 0) {
        results.has_fidelity = true;
        results.pictures = table->fidelity.of[place];
        size_t whole = table->costs[index].is_decoders ? table->costs[DEFAULT_SCALER].fidelity : 0;
        results.lost_db = table->fidelity.of[whole].psnr_db - results.pictures.psnr_db;
    }
    return results;
}

static void print_cost(const option_cost *own, const cost_results *results)
{
    const bench_spread *ratio = &results->ratio;
    printf("%-8s %-22s %8.2f  %.3f (%.3f..%.3f) %6.1f %%", own->group, own->name, results->cpu_ms.median,
           ratio->median, ratio->min, ratio->max, (1 - ratio->median) * 100);
    if (results->has_fidelity)
        printf("  %6.1f  %6.1f  %6.1f", results->pictures.psnr_db, results->lost_db, results->pictures.worst_clip_db);
    else
        printf("  %6s  %6s  %6s", "-", "-", "-");
    if (results->has_fidelity && own->is_decoders)
        printf("  %6.1f", results->pictures.drift_db);
    else
        printf("  %6s", "-");
    if (own->op == &weir_video_decode)
        printf("  %5.1f %%\n", results->share * 100);
    else
        printf("  of %.0f clips\n", results->clips);
}

static void report_cost(bench_report *report, const cost_table *table, const option_cost *own,
                        const cost_results *results)
{
    bench_report_row(report, "decode");
    bench_report_text(report, "part", "option_costs");
    bench_report_text(report, "group", own->group);
    bench_report_text(report, "option", own->name);
    bench_report_number(report, "concurrency", table->concurrency);
    bench_report_number(report, "runs", table->settings->runs);
    bench_report_number(report, "clips", results->clips);
    bench_report_spread(report, "cpu_ms_per_file", results->cpu_ms);
    bench_report_spread(report, "cpu_to_unchanged", results->ratio);
    if (results->has_fidelity) {
        bench_report_number(report, "psnr_db", results->pictures.psnr_db);
        bench_report_number(report, "psnr_lost_db", results->lost_db);
        bench_report_number(report, "worst_clip_psnr_db", results->pictures.worst_clip_db);
        if (own->is_decoders)
            bench_report_number(report, "drift_db", results->pictures.drift_db);
    }
    if (own->op == &weir_video_decode) {
        bench_report_number(report, "frames", results->frames);
        bench_report_number(report, "frames_share", results->share);
    }
}

static void show_cost(bench_report *report, const cost_table *table, size_t index)
{
    const option_cost *own = &table->costs[index];
    cost_results results = figures_of(table, index);
    if (results.clips == 0) {
        printf("%-8s %-22s not in any clip\n", own->group, own->name);
        return;
    }
    print_cost(own, &results);
    report_cost(report, table, own, &results);
}

static void tell_all(bench_report *report, const cost_table *table)
{
    const fidelity_result *compared = &table->fidelity;
    printf("\noption costs: saved CPU time and loss of each option; unchanged: all frames to %" PRIu32 "×%" PRIu32
           " rgb24, stretched, --scaler exact; concurrency %" PRIu32 "\n",
           table->settings->width, table->settings->height, table->concurrency);
    printf("PSNR relative to bicubic in double precision (FFmpeg's kernel, rounded once): %" PRIu64
           " pictures of %" PRIu64 " clips; gray8 and yuv420p relative to its luma and "
           "its planes; lost < 0: more accurate than unchanged\n"
           "decoder: with the default scaler, and lost relative to it; drift: PSNR in the first half of the groups "
           "of pictures (keyframe to keyframe) minus that in the second\n\n",
           compared->num_pictures, compared->num_clips);
    printf("%-8s %-22s %8s  %-20s %8s  %6s  %6s  %6s  %6s  %7s\n", "", "option", "CPU ms", "CPU of unchanged's",
           "saved", "PSNR", "lost", "worst", "drift", "frames");
    printf("%-8s %-22s %8s  %-20s %8s  %6s  %6s  %6s  %6s  %7s\n", "", "", "a file", "", "", "dB", "dB", "clip", "dB",
           "");
    for (size_t i = 0; i < table->num_costs; i++)
        show_cost(report, table, i);
}

int decode_option_costs(bench_report *report, const decode_settings *settings, uint32_t concurrency)
{
    cost_table *table = calloc(1, sizeof *table);
    if (!table)
        return bench_no_memory();
    table->settings = settings;
    table->concurrency = concurrency;
    add_scalers(table);
    add_cheap_decoding(table);
    add_frames(table);
    add_audio(table);
    add_isolated(table);
    drop_missing(table);
    int rc = run_fidelity(table);
    if (rc == 0)
        rc = run_rounds(table);
    if (rc == 0)
        tell_all(report, table);
    free(table->runs.results);
    free(table);
    return rc;
}
