/*
 * What each lossy or fast option of the decode stage saves and costs. Every price is one change to the same job: all
 * frames to rgb24 with the exact scaler, stretched. CPU time: in turn, round by round, there and back, each run a process
 * of its own, over that of the unchanged job in the same round. Fidelity: see fidelity.h.
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

enum { MAX_PRICES = 24 };

typedef struct price {
    const char *group;
    const char *name;
    const weir_op *op;
    weir_video_config video;
    weir_audio_config audio; /* where op is that of audio */
    char filter[96];         /* what video.filter is */
    size_t fidelity;         /* its place in the fidelity_result; MAX_FIDELITIES = it gives other frames, or none */
} price;

typedef struct price_table {
    const decode_settings *settings;
    uint32_t concurrency;
    price prices[MAX_PRICES]; /* the first one is the unchanged job */
    size_t num_prices;
    contest runs;
    fidelity_result fidelity;
} price_table;

/* ---- the prices --------------------------------------------------------------------------------------------- */

/* The next price, as the unchanged job: to be changed. */
static price *add(price_table *table, const char *group, const char *name)
{
    price *own = &table->prices[table->num_prices++];
    *own = (price){
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

static void add_scalers(price_table *table)
{
    static const char *const flags[] = { "bilinear", "area", "fast_bilinear" };
    static const char *const names[] = { "swscale bilinear", "swscale area", "swscale fast_bilinear" };
    add(table, "scaler", "exact (unchanged)");
    add(table, "scaler", "default")->video.scaler = WEIR_SCALER_DEFAULT;
    add(table, "scaler", "zimg")->video.scaler = WEIR_SCALER_ZIMG;
    add(table, "scaler", "fast")->video.scaler = WEIR_SCALER_FAST;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        price *own = add(table, "filter", names[i]);
        snprintf(own->filter, sizeof own->filter, "scale=%" PRIu32 ":%" PRIu32 ":flags=%s,format=rgb24",
                 own->video.width, own->video.height, flags[i]);
        own->video.filter = own->filter;
    }
    add(table, "pixels", "gray8")->video.pixel = WEIR_PIXEL_GRAY8;
    add(table, "pixels", "yuv420p")->video.pixel = WEIR_PIXEL_YUV420P;
}

static void add_frames(price_table *table)
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
        { "16 in a row, random", { .what = WEIR_SAMPLE_RANDOM, .count = 16, .stretch_frames = 16 } },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        price *own = add(table, "frames", kinds[i].name);
        own->video.sampling = kinds[i].sampling;
        own->fidelity = MAX_FIDELITIES;
    }
}

static void add_audio(price_table *table)
{
    price *own = add(table, "audio", "16 kHz mono, alone");
    own->op = &weir_audio_decode;
    own->audio = (weir_audio_config){ .sample_rate = 16000, .channels = 1 };
    own->fidelity = MAX_FIDELITIES;
}

static const void *config_of(const price *own)
{
    return own->op == &weir_video_decode ? (const void *)&own->video : (const void *)&own->audio;
}

/* Is it in this build? Says so if not. */
static bool is_built(const price *own)
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

static void drop_missing(price_table *table)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->num_prices; i++) {
        if (!is_built(&table->prices[i]))
            continue;
        table->prices[kept] = table->prices[i];
        if (table->prices[kept].video.filter)
            table->prices[kept].video.filter = table->prices[kept].filter;
        kept++;
    }
    table->num_prices = kept;
}

/* ---- the runs ----------------------------------------------------------------------------------------------- */

/* What one run is given. */
typedef struct price_run {
    const price_table *table;
    const price *price;
} price_run;

static int run_price(const void *argument, void *result)
{
    const price_run *run = argument;
    contest_result *told = result;
    *told = (contest_result){ 0 };
    return stage_job_run(&(stage_job){ .files = &run->table->settings->files,
                                       .op = run->price->op,
                                       .config = config_of(run->price),
                                       .concurrency = run->table->concurrency,
                                       .threads = run->table->settings->threads,
                                       .see = run->price->op == &weir_video_decode ? stage_job_count_frames : NULL,
                                       .self = &told->frames },
                         told);
}

static int run_rounds(price_table *table)
{
    price_run runs[MAX_PRICES];
    contest_entry entries[MAX_PRICES];
    for (size_t i = 0; i < table->num_prices; i++) {
        runs[i] = (price_run){ .table = table, .price = &table->prices[i] };
        entries[i] = (contest_entry){ table->prices[i].name, run_price, &runs[i] };
    }
    table->runs = (contest){ .name = "price list",
                             .entries = entries,
                             .num_entries = table->num_prices,
                             .num_rounds = table->settings->runs };
    return contest_run(&table->runs);
}

static int run_fidelity(price_table *table)
{
    fidelity_job job = {
        .files = &table->settings->files,
        .width = (int)table->settings->width,
        .height = (int)table->settings->height,
        .concurrency = table->concurrency,
    };
    for (size_t i = 0; i < table->num_prices; i++) {
        price *own = &table->prices[i];
        if (own->fidelity == MAX_FIDELITIES)
            continue;
        own->fidelity = job.num_videos;
        job.videos[job.num_videos++] = &own->video;
    }
    bench_usage unused;
    int rc = bench_measure(fidelity_measure, &job, &table->fidelity, sizeof table->fidelity, &unused);
    return rc;
}

/* ---- the table ---------------------------------------------------------------------------------------------- */

/* What the rounds came to. */
typedef struct price_figures {
    bench_spread cpu_ms; /* for each file */
    bench_spread ratio;  /* to the unchanged job's */
    double clips;
    double frames;
    double share; /* of the unchanged job's frames */
    bool has_fidelity;
    fidelity pictures;
    double lost_db;
} price_figures;

static price_figures figures_of(const price_table *table, size_t index)
{
    const contest_result *last = contest_last(&table->runs, index);
    double ms_per_file = 1e3 / (double)table->settings->files.num_paths;
    price_figures figures = { .cpu_ms = contest_spread(&table->runs, index, contest_cpu_s, CONTEST_NONE),
                              .ratio = contest_spread(&table->runs, index, contest_cpu_s, 0) };
    figures.cpu_ms.median *= ms_per_file;
    figures.cpu_ms.min *= ms_per_file;
    figures.cpu_ms.max *= ms_per_file;
    figures.clips = last->clips;
    figures.frames = last->frames;
    figures.share = last->frames / contest_last(&table->runs, 0)->frames;
    size_t place = table->prices[index].fidelity;
    if (place < MAX_FIDELITIES && table->fidelity.num_pictures > 0) {
        figures.has_fidelity = true;
        figures.pictures = table->fidelity.of[place];
        figures.lost_db = table->fidelity.of[0].psnr_db - figures.pictures.psnr_db;
    }
    return figures;
}

static void print_price(const price *own, const price_figures *figures)
{
    const bench_spread *ratio = &figures->ratio;
    printf("%-8s %-22s %8.2f  %.3f (%.3f..%.3f) %6.1f %%", own->group, own->name, figures->cpu_ms.median,
           ratio->median, ratio->min, ratio->max, (1 - ratio->median) * 100);
    if (figures->has_fidelity)
        printf("  %6.1f  %6.1f  %6.1f", figures->pictures.psnr_db, figures->lost_db, figures->pictures.worst_clip_db);
    else
        printf("  %6s  %6s  %6s", "-", "-", "-");
    if (own->op == &weir_video_decode)
        printf("  %5.1f %%\n", figures->share * 100);
    else
        printf("  of %.0f clips\n", figures->clips);
}

static void report_price(bench_report *report, const price_table *table, const price *own,
                         const price_figures *figures)
{
    bench_report_row(report, "decode");
    bench_report_text(report, "part", "price_list");
    bench_report_text(report, "group", own->group);
    bench_report_text(report, "option", own->name);
    bench_report_number(report, "concurrency", table->concurrency);
    bench_report_number(report, "runs", table->settings->runs);
    bench_report_number(report, "clips", figures->clips);
    bench_report_spread(report, "cpu_ms_per_file", figures->cpu_ms);
    bench_report_spread(report, "cpu_to_unchanged", figures->ratio);
    if (figures->has_fidelity) {
        bench_report_number(report, "psnr_db", figures->pictures.psnr_db);
        bench_report_number(report, "psnr_lost_db", figures->lost_db);
        bench_report_number(report, "worst_clip_psnr_db", figures->pictures.worst_clip_db);
    }
    if (own->op == &weir_video_decode) {
        bench_report_number(report, "frames", figures->frames);
        bench_report_number(report, "frames_share", figures->share);
    }
}

static void tell_price(bench_report *report, const price_table *table, size_t index)
{
    const price *own = &table->prices[index];
    price_figures figures = figures_of(table, index);
    if (figures.clips == 0) {
        printf("%-8s %-22s no clip has it\n", own->group, own->name);
        return;
    }
    print_price(own, &figures);
    report_price(report, table, own, &figures);
}

static void tell_all(bench_report *report, const price_table *table)
{
    const fidelity_result *compared = &table->fidelity;
    printf("\nprice list: what one change saves and costs; unchanged: all frames to %" PRIu32 "×%" PRIu32
           " rgb24, stretched, --scaler exact; concurrency %" PRIu32 "\n",
           table->settings->width, table->settings->height, table->concurrency);
    printf("PSNR beside bicubic in double precision (FFmpeg's kernel, rounded once): %" PRIu64 " pictures of %" PRIu64
           " clips; gray8 and yuv420p beside its luma and "
           "its planes; lost < 0: more faithful than unchanged\n\n",
           compared->num_pictures, compared->num_clips);
    printf("%-8s %-22s %8s  %-20s %8s  %6s  %6s  %6s  %7s\n", "", "option", "CPU ms", "CPU of unchanged's", "saved",
           "PSNR", "lost", "worst", "frames");
    printf("%-8s %-22s %8s  %-20s %8s  %6s  %6s  %6s  %7s\n", "", "", "a file", "", "", "dB", "dB", "clip", "");
    for (size_t i = 0; i < table->num_prices; i++)
        tell_price(report, table, i);
}

int decode_price_list(bench_report *report, const decode_settings *settings, uint32_t concurrency)
{
    price_table *table = calloc(1, sizeof *table);
    if (!table)
        return -1;
    table->settings = settings;
    table->concurrency = concurrency;
    add_scalers(table);
    add_frames(table);
    add_audio(table);
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
