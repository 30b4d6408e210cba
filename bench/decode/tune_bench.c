/*
 * weir-bench tune: the best number of threads and slots for a folder on this machine. Each measurement also makes a
 * model, which predicts all other points of the grid; the most promising one is measured next, until no point promises
 * more than the noise of the measurements.
 */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <weir/engine.h>
#include <weir/stages.h>
#include <weir/whatif.h>

#include "background_load.h"
#include "bench.h"
#include "bench_options.h"
#include "files.h"
#include "report.h"

enum { MAX_POINTS = 512, MAX_THREADS = 16, MAX_SLOTS = 16, PARTS = 8, ROUNDS = 5 };

#define DEFAULT_GLOB "*.mp4"

#define LEAST_NOISE 0.01
#define MOST_NOISE  0.03 /* settings that differ by more are not equally good */

typedef struct tune_settings {
    const char *dataset_dir, *glob;
    double cpu_share; /* 0 = no bound */
    uint64_t memory_bytes;
    double seconds;
    bool grid;
    const char *json_path;
} tune_settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(tune_settings, what)

static const option_row rows[] = {
    { ROW("dataset-dir", dataset_dir, option_folder), .argument = "DIR", .help = "the folder of videos (required)" },
    { ROW("glob", glob, option_text), .argument = "PATTERN", .help = "names of the files to decode (default *.mp4)" },
    { ROW("cpu", cpu_share, option_share), .argument = "P%", .help = "use at most this share of the CPUs" },
    { ROW("memory", memory_bytes, option_bytes), .argument = "SIZE", .help = "use at most this much memory" },
    { ROW("seconds", seconds, option_span), .argument = "S", .help = "length of a measurement (default 4)" },
    { ROW("grid", grid, option_flag), .help = "then measure every point, and compare with the best one" },
    { 0 },
};

typedef struct tune_point {
    uint32_t threads, slots;
} tune_point;

/* Of one run; plain, as it comes from another process. */
typedef struct tune_result {
    double throughput, noise; /* clips per second; its relative standard error */
    double cpus, peak_bytes, start_bytes;
    double predicted[MAX_POINTS], predicted_cpus[MAX_POINTS]; /* for all points, from this run's model */
    bool is_measured;
} tune_result;

typedef struct tuning {
    tune_settings settings;
    bench_files files;
    tune_point points[MAX_POINTS];
    size_t num_points;
    uint64_t num_clips; /* in each run: chosen by the first one */
    double num_cpus;
    tune_result *results; /* of each point */
    size_t num_measured, last;
    bench_report *report;
} tuning;

/* ---- one run ------------------------------------------------------------------------------------------------ */

static weir_pipeline *build(const tuning *t, tune_point point, weir_observer observer)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_video_config video = { .width = 128, .height = 128 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &bench_files_op, &t->files, &(weir_stage_options){ .threads = 1 });
    weir_builder_pipe(builder, &weir_video_decode, &video,
                      &(weir_stage_options){ .name = "decode", .concurrency = point.slots });
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = {
        .threads = point.threads, .stats_interval_ns = WEIR_SECOND / 5, .observers = &observer, .num_observers = 1
    };
    if (weir_builder_build(builder, &options, &pipeline, &error) != WEIR_OK)
        fprintf(stderr, "weir-bench: %s\n", error.message);
    return pipeline;
}

static double cpu_seconds(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

/* The relative standard error of the speed, from equal parts of the results. */
static double noise_of(const double *times_s, uint64_t first, uint64_t last)
{
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < PARTS; i++) {
        uint64_t from = first + (last - first) * i / PARTS, to = first + (last - first) * (i + 1) / PARTS;
        double rate = (double)(to - from) / (times_s[to] - times_s[from]);
        sum += rate / PARTS;
        squares += rate * rate / PARTS;
    }
    return sqrt(fmax(squares - sum * sum, 0) / (PARTS - 1)) / sum;
}

/* The first clips fill the pipeline: they do not count. */
static int consume(const tuning *t, weir_pipeline *pipeline, uint32_t num_first, tune_result *result)
{
    enum { MOST_CLIPS = 1 << 20 };
    double *times_s = calloc(MOST_CLIPS, sizeof *times_s), limit_s = t->settings.seconds;
    uint64_t last = t->num_clips ? num_first + t->num_clips : MOST_CLIPS - 1, count = 0;
    struct rusage from = { 0 }, to;
    weir_item item;
    int status = WEIR_OK;
    while (times_s && count < last && (status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        weir_item_release(&item);
        times_s[count++] = (double)weir_clock_ns() / 1e9;
        if (count == num_first)
            getrusage(RUSAGE_SELF, &from);
        bool is_long = count > num_first + PARTS && times_s[count - 1] - times_s[num_first - 1] >= limit_s;
        if (t->num_clips == 0 && is_long)
            break;
    }
    getrusage(RUSAGE_SELF, &to);
    if (times_s && status == WEIR_OK && count > num_first) {
        double wall_s = times_s[count - 1] - times_s[num_first - 1];
        result->throughput = (double)(count - num_first) / wall_s;
        result->noise = noise_of(times_s, num_first - 1, count - 1);
        result->cpus = (cpu_seconds(&to) - cpu_seconds(&from)) / wall_s;
        result->peak_bytes = 1024.0 * (double)to.ru_maxrss;
    } else {
        fprintf(stderr, "weir-bench: the run ended too early: %s\n", weir_status_name(status));
        status = status == WEIR_OK ? WEIR_ENOMEM : status;
    }
    free(times_s);
    return status == WEIR_OK ? 0 : -1;
}

static int predict_all(const tuning *t, weir_model *model, tune_result *result)
{
    weir_error error = { 0 };
    for (size_t i = 0; i < t->num_points; i++) {
        char threads[16], slots[16];
        weir_prediction *prediction;
        snprintf(threads, sizeof threads, "%" PRIu32, t->points[i].threads);
        snprintf(slots, sizeof slots, "%" PRIu32, t->points[i].slots);
        if (weir_model_set(model, "threads", threads, &error) != WEIR_OK ||
            weir_model_set(model, "decode.concurrency", slots, &error) != WEIR_OK ||
            weir_model_predict(model, &(weir_predict_options){ .no_range = true, .num_items = 3000 }, &prediction,
                               &error) != WEIR_OK) {
            fprintf(stderr, "weir-bench: %s\n", error.message);
            return -1;
        }
        result->predicted[i] = prediction->throughput;
        result->predicted_cpus[i] = prediction->cpus;
        weir_prediction_free(prediction);
    }
    return 0;
}

static void drop_log(void *self, weir_log_level level, const char *line)
{
    (void)self;
    (void)level;
    (void)line;
}

/* In a process of its own. */
static int run_point(const void *argument, void *out)
{
    const tuning *t = argument;
    tune_point point = t->points[t->last];
    tune_result *result = out;
    weir_model *model;
    struct rusage start;
    *result = (tune_result){ .is_measured = true };
    getrusage(RUSAGE_SELF, &start);
    if (weir_model_new(&model, NULL) != WEIR_OK)
        return bench_no_memory();
    weir_log_set_function(drop_log, NULL);
    weir_pipeline *pipeline = build(t, point, weir_model_observer(model));
    int rc = pipeline ? consume(t, pipeline, point.slots + 4, result) : -1;
    weir_pipeline_free(pipeline);
    result->start_bytes = 1024.0 * (double)start.ru_maxrss;
    if (rc == 0)
        rc = predict_all(t, model, result);
    weir_model_free(model);
    return rc;
}

static int measure(tuning *t, size_t point)
{
    bench_usage usage;
    t->last = point;
    tune_result *result = &t->results[point];
    int rc = bench_measure(run_point, t, result, sizeof *result, &usage);
    if (rc != 0)
        return rc;
    if (t->num_clips == 0)
        t->num_clips = (uint64_t)fmax(result->throughput * t->settings.seconds, PARTS);
    t->num_measured++;
    return 0;
}

/* ---- the search --------------------------------------------------------------------------------------------- */

static bool is_allowed(const tuning *t, double cpus, double bytes)
{
    const tune_settings *s = &t->settings;
    return (s->cpu_share <= 0 || cpus <= s->cpu_share * t->num_cpus * 1.02) &&
           (s->memory_bytes == 0 || bytes <= (double)s->memory_bytes);
}

/* What a point is expected to need, from the run that was measured last. */
static double expected_bytes(const tuning *t, size_t point)
{
    const tune_result *from = &t->results[t->last];
    double slot_bytes = (from->peak_bytes - from->start_bytes) / t->points[t->last].slots;
    return from->start_bytes + slot_bytes * t->points[point].slots;
}

static double expected_throughput(const tuning *t, size_t point)
{
    const tune_result *result = &t->results[point], *from = &t->results[t->last];
    if (result->is_measured)
        return is_allowed(t, result->cpus, result->peak_bytes) ? result->throughput : 0;
    if (!is_allowed(t, from->predicted_cpus[point], expected_bytes(t, point)))
        return 0;
    return from->predicted[point] * from->throughput / from->predicted[t->last];
}

/* Of points that differ by less than the noise, the first one: it has the fewest slots and threads. */
static size_t find_best(const tuning *t, bool measured_only, double noise)
{
    double most = 0;
    for (size_t i = 0; i < t->num_points; i++)
        if (!measured_only || t->results[i].is_measured)
            most = fmax(most, expected_throughput(t, i));
    for (size_t i = 0; i < t->num_points && most > 0; i++)
        if ((!measured_only || t->results[i].is_measured) && expected_throughput(t, i) >= most * (1 - noise))
            return i;
    return t->num_points;
}

/* The smallest point: where to look if nothing is allowed, or nothing is known. */
static size_t start_point(const tuning *t)
{
    uint32_t threads = weir_cpu_budget() < MAX_THREADS ? weir_cpu_budget() : MAX_THREADS;
    size_t best = 0;
    for (size_t i = 0; i < t->num_points; i++)
        if (t->points[i].threads == threads && t->points[i].slots == threads)
            best = i;
    return t->settings.cpu_share > 0 || t->settings.memory_bytes ? 0 : best;
}

static void tell(const tuning *t, size_t point, double predicted)
{
    const tune_result *result = &t->results[point];
    char text[32] = "";
    if (isfinite(predicted))
        snprintf(text, sizeof text, "%.2f (%+.1f %%)", predicted, 100 * (predicted / result->throughput - 1));
    printf("%7" PRIu32 " %6" PRIu32 "  %8.2f ±%4.1f %%  %-20s %6.2f %9.0f\n", t->points[point].threads,
           t->points[point].slots, result->throughput, 200 * result->noise, text, result->cpus,
           result->peak_bytes / 1e6);
    fflush(stdout);
    bench_report_row(t->report, "tune");
    bench_report_number(t->report, "threads", t->points[point].threads);
    bench_report_number(t->report, "concurrency", t->points[point].slots);
    bench_report_number(t->report, "clips_per_s", result->throughput);
    bench_report_number(t->report, "noise", result->noise);
    bench_report_number(t->report, "predicted", predicted);
    bench_report_number(t->report, "cpus", result->cpus);
    bench_report_number(t->report, "peak_bytes", result->peak_bytes);
}

/* Measures the most promising points. Returns the index of the best; num_points after an error. */
static size_t search(tuning *t)
{
    size_t point = start_point(t), most_runs = t->num_points / 10 > 2 ? t->num_points / 10 : 2, best;
    double noise, predicted = NAN;
    printf("threads  slots   clips/s   noise  predicted before       CPUs   peak MB\n");
    do {
        if (measure(t, point) != 0)
            return t->num_points;
        tell(t, point, predicted);
        noise = fmax(fmin(2 * t->results[point].noise, MOST_NOISE), LEAST_NOISE);
        best = find_best(t, true, noise);
        point = find_best(t, false, t->num_measured == 1 ? 0 : noise); /* at least two, to check the prediction */
        if (point < t->num_points)
            predicted = expected_throughput(t, point);
    } while (point < t->num_points && !t->results[point].is_measured && t->num_measured < most_runs);
    if (best < t->num_points)
        return best;
    printf("\nNo setting that was measured stays within the limits; the one that needs the least is shown.\n");
    for (best = 0; !t->results[best].is_measured; best++)
        ;
    return best;
}

static void say_best(const tuning *t, size_t best, double seconds)
{
    tune_point point = t->points[best];
    const tune_result *result = &t->results[best];
    printf("\nBest: %" PRIu32 " threads, %" PRIu32
           " slots: %.2f clips/s with %.2f of %.0f CPUs and %.0f MB; found by %zu "
           "of %zu possible measurements, in %.0f s.\n\n",
           point.threads, point.slots, result->throughput, result->cpus, t->num_cpus, result->peak_bytes / 1e6,
           t->num_measured, t->num_points, seconds);
    printf("  weir record ");
    option_print_word(stdout, t->settings.dataset_dir);
    if (strcmp(t->settings.glob, DEFAULT_GLOB) != 0) {
        printf(" --glob ");
        option_print_word(stdout, t->settings.glob);
    }
    printf(" --threads %" PRIu32 " --concurrency %" PRIu32 "\n\n", point.threads, point.slots);
    printf("  &(weir_stage_options){ .concurrency = %" PRIu32 " }       // of the decode stage\n", point.slots);
    printf("  &(weir_pipeline_options){ .threads = %" PRIu32 " }\n", point.threads);
}

/* ---- the whole grid ----------------------------------------------------------------------------------------- */

/* The two points alternately: the speed of the machine changes, and the best of many measurements was also lucky. */
static int compare(tuning *t, size_t found, size_t best, bench_spread *ratio)
{
    double ratios[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        if (measure(t, found) != 0 || measure(t, best) != 0)
            return -1;
        ratios[i] = t->results[found].throughput / t->results[best].throughput;
    }
    *ratio = bench_spread_of(ratios, ROUNDS);
    return 0;
}

static int run_grid(tuning *t, size_t found, double found_s)
{
    tune_result first = t->results[found];
    bench_spread ratio = { 1, 1, 1 };
    double start_s = (double)weir_clock_ns() / 1e9;
    size_t num_within = 0, num_compared = 0, best = 0;
    printf("\nThe whole grid; predicted by the model of %" PRIu32 " threads, %" PRIu32 " slots:\n",
           t->points[found].threads, t->points[found].slots);
    int rc = 0;
    for (size_t i = 0; i < t->num_points && rc == 0; i++) {
        rc = measure(t, i);
        if (rc != 0)
            break;
        tell(t, i, first.predicted[i]);
        num_compared++;
        num_within += fabs(first.predicted[i] / t->results[i].throughput - 1) <= 0.1;
        if (expected_throughput(t, i) > expected_throughput(t, best))
            best = i;
    }
    if (rc != 0)
        return rc;
    double grid_s = (double)weir_clock_ns() / 1e9 - start_s;
    printf("\nThe best point of the grid has %" PRIu32 " threads and %" PRIu32
           " slots: %.2f clips/s. The grid took %.0f s, the search %.0f s (%.0f %%).\n"
           "%zu of %zu predictions are within 10 %% of what was measured.\n",
           t->points[best].threads, t->points[best].slots, t->results[best].throughput, grid_s, found_s,
           100 * found_s / grid_s, num_within, num_compared);
    if (best == found)
        puts("It is the point that was found.");
    else if (compare(t, found, best, &ratio) != 0)
        return -1;
    else
        printf(
            "Measured alternately, %d times each, the point that was found reaches %.3f (%.3f to %.3f) of the best "
            "one.\n",
            ROUNDS, ratio.median, ratio.min, ratio.max);
    bench_report_row(t->report, "tune_grid");
    bench_report_number(t->report, "best_threads", t->points[best].threads);
    bench_report_number(t->report, "best_concurrency", t->points[best].slots);
    bench_report_spread(t->report, "found_to_best", ratio);
    bench_report_number(t->report, "grid_s", grid_s);
    bench_report_number(t->report, "search_s", found_s);
    return 0;
}

/* More threads than slots would never all run. */
static void make_grid(tuning *t)
{
    uint32_t most = weir_cpu_budget() < MAX_THREADS ? weir_cpu_budget() : MAX_THREADS;
    for (uint32_t slots = 1; slots <= MAX_SLOTS || slots <= 2 * most; slots++)
        for (uint32_t threads = 1; threads <= most && threads <= slots && t->num_points < MAX_POINTS; threads++)
            t->points[t->num_points++] = (tune_point){ threads, slots };
}

static int tune(tuning *t)
{
    double start_s = (double)weir_clock_ns() / 1e9;
    size_t best = search(t);
    double seconds = (double)weir_clock_ns() / 1e9 - start_s;
    if (best == t->num_points)
        return -1;
    say_best(t, best, seconds);
    return t->settings.grid ? run_grid(t, best, seconds) : 0;
}

int bench_tune(int argc, char **argv)
{
    tuning t = { .settings = { .glob = DEFAULT_GLOB, .seconds = 4 }, .num_cpus = weir_cpu_budget() };
    const option_set set = { rows, &t.settings };
    bench_parsed parsed = bench_parse(argc, argv, &set, 1, &t.settings.json_path, "tune --dataset-dir DIR [options]");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;
    if (!t.settings.dataset_dir)
        return bench_refuse("--dataset-dir DIR is missing", " (see --help)");
    if (bench_files_find(&t.files, t.settings.dataset_dir, t.settings.glob) != 0)
        return 2;
    make_grid(&t);
    t.results = calloc(t.num_points, sizeof *t.results);
    t.report = bench_report_new();
    bench_background_load start = bench_background_load_now();
    printf("%zu files below %s; all frames to 128×128\n\n", t.files.num_paths, t.settings.dataset_dir);
    int rc = t.results ? tune(&t) : -1;
    bench_report_background_load(t.report, &start);
    if (bench_report_end(t.report, t.settings.json_path) != 0)
        rc = -1;
    bench_files_free(&t.files);
    free(t.results);
    return rc == 0 ? 0 : 1;
}
