/*
 * weir-bench recording: how long answers about a long recording take. It records a day of laps of one second, through the
 * observer of the recorder, with made-up metrics: a source, stages of which one is the limit, and a sink. Then it asks what
 * the commands ask, each time in a process of its own.
 */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/sqlite.h>
#include <weir/summary.h>
#include <weir/verdict.h>

#include "bench/cli/bench.h"
#include "bench/cli/bench_options.h"
#include "bench/harness/background_load.h"
#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "common/random.h"

typedef struct recording_settings {
    const char *path, *json_path;
    double run_s, lap_s, keep_s;
    uint32_t stages, items, runs;
} recording_settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(recording_settings, what)

static const option_row rows[] = {
    { ROW("db", path, option_text), .argument = "PATH",
      .help = "the database; if it exists, nothing is recorded (default: a temporary file)" },
    { ROW("time", run_s, option_span), .argument = "S", .help = "length of the run (default 24h)" },
    { ROW("lap", lap_s, option_span), .argument = "S", .help = "length of a lap (default 1)" },
    { ROW("keep", keep_s, option_span), .argument = "S",
      .help = "how long single laps are kept (default: for ever)" },
    { ROW("stages", stages, option_count32), .argument = "N",
      .help = "stages beside the source and the sink (default 8)" },
    { ROW("items", items, option_count32), .argument = "N", .help = "items in a lap (default 100)" },
    { ROW("runs", runs, option_count32), .argument = "N", .help = "answers to each question (default 5)" },
    { 0 },
};

/* ---- a run ------------------------------------------------------------------------------------------------------- */

enum { MAX_NODES = 64, NAME_BYTES = 32, THREADS = 8 };

typedef struct made_run {
    const recording_settings *settings;
    weir_observer observer;
    uint64_t draw;
    uint32_t num_nodes;
    char names[MAX_NODES][NAME_BYTES], queues[MAX_NODES][NAME_BYTES + 8];
    weir_histogram times[WEIR_MAX_HISTOGRAMS]; /* of the subject that is being made */
    weir_lap lap;
} made_run;

static bool is_limit(const made_run *run, uint32_t node)
{
    return node == run->num_nodes / 2;
}

/* Times around a mean: a heavy upper end, as times of tasks have. */
static void draw_times(made_run *run, weir_histogram *times, double mean_ns, int64_t *sum_ns, int64_t *min_ns,
                       int64_t *max_ns)
{
    weir_histogram_clear(times);
    for (uint32_t i = 0; i < run->settings->items; i++) {
        double u = (double)(weir__random_next(&run->draw) >> 11) / 9007199254740992.0;
        int64_t time_ns = (int64_t)(mean_ns * (0.4 - 0.6 * log(1 - u))) + 1;
        weir_histogram_record(times, time_ns);
        *sum_ns += time_ns;
        *min_ns = time_ns < *min_ns ? time_ns : *min_ns;
        *max_ns = time_ns > *max_ns ? time_ns : *max_ns;
    }
}

static void put_lap(made_run *run, weir_subject subject, const char *name, const char *kind, uint64_t capacity,
                    const weir_metrics *metrics)
{
    weir_subject_lap lap = {
        .lap = &run->lap, .subject = subject, .name = name, .kind = kind, .capacity = capacity, .metrics = *metrics
    };
    run->observer.lap(run->observer.self, &lap);
}

static void put_node(made_run *run, uint32_t node)
{
    const int64_t lap_ns = run->lap.elapsed_ns;
    const bool is_sink = node + 1 == run->num_nodes;
    const weir_subject subject = node == 0 || is_sink ? WEIR_SUBJECT_FLOW : WEIR_SUBJECT_STAGE;
    weir_metrics m;
    weir_metrics_clear(weir_subject_metrics(subject), &m);
    weir_histogram_clear(&run->times[0]);
    m.task.run_times = &run->times[0];
    if (!is_sink) {
        double share = is_limit(run, node) ? 0.95 : 0.2;
        m.task.num_tasks = run->settings->items;
        draw_times(run, &run->times[0], share * (double)lap_ns / run->settings->items, &m.task.success_ns,
                   &m.task.min_ns, &m.task.max_ns);
        m.task.busy_ns = m.task.success_ns < lap_ns ? m.task.success_ns : lap_ns;
        m.task.cpu_ns = m.task.busy_ns * 9 / 10;
    }
    int64_t *wait_ns = node <= run->num_nodes / 2 ? &m.task.wait_out_ns : &m.task.wait_in_ns;
    *wait_ns = lap_ns - m.task.busy_ns;
    put_lap(run, subject, run->names[node], node == 0 ? "source" : is_sink ? "sink" : "stage", 0, &m);
}

static void put_queue(made_run *run, uint32_t node)
{
    weir_metrics m;
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_QUEUE), &m);
    const bool is_full = node < run->num_nodes / 2, is_sink = node + 1 == run->num_nodes;
    const double mean_ns = 0.1 * (double)run->lap.elapsed_ns / run->settings->items;
    m.queue.num_put = m.queue.num_items = run->settings->items;
    draw_times(run, &run->times[0], is_full ? mean_ns : 100, &m.queue.put_ns, &m.queue.min_put_ns,
               &m.queue.max_put_ns);
    draw_times(run, &run->times[1], is_full ? 100 : mean_ns, &m.queue.get_ns, &m.queue.min_get_ns,
               &m.queue.max_get_ns);
    m.queue.put_times = &run->times[0];
    m.queue.get_times = &run->times[1];
    m.queue.latency_ns = -1;
    if (is_sink)
        m.queue.latency_ns = 0;
    if (is_sink)
        draw_times(run, &run->times[2], 5 * mean_ns, &m.queue.latency_ns, &m.queue.min_latency_ns,
                   &m.queue.max_latency_ns);
    m.queue.latencies = is_sink ? &run->times[2] : NULL;
    m.queue.occupied_ns = is_full ? run->lap.elapsed_ns : run->lap.elapsed_ns / 10;
    m.queue.depth_ns = 2.0 * (double)m.queue.occupied_ns;
    m.queue.bytes_ns = 100000.0 * (double)m.queue.occupied_ns;
    m.queue.max_depth = 2;
    m.queue.max_bytes = 100000;
    put_lap(run, WEIR_SUBJECT_QUEUE, run->queues[node], "queue", 2, &m);
}

static void put_rest(made_run *run)
{
    const int64_t lap_ns = run->lap.elapsed_ns;
    weir_metrics m;
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_POOL), &m);
    m.pool.busy_ns = 2 * lap_ns;
    m.pool.idle_ns = (THREADS - 2) * lap_ns;
    m.pool.cpu_ns = 19 * lap_ns / 10;
    m.pool.num_voluntary = 1000;
    put_lap(run, WEIR_SUBJECT_POOL, "0:pool", "pool", THREADS, &m);
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_PROCESS), &m);
    m.process.cpu_ns = 2 * lap_ns;
    m.process.pool_cpu_ns = 19 * lap_ns / 10;
    m.process.budget_ns = THREADS * lap_ns;
    m.process.resident_bytes = m.process.peak_bytes = 100000000;
    put_lap(run, WEIR_SUBJECT_PROCESS, "0:process", "process", THREADS, &m);
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_MACHINE), &m);
    m.machine.idle_ns = (THREADS - 2) * lap_ns;
    put_lap(run, WEIR_SUBJECT_MACHINE, "0:machine", "machine", 0, &m);
}

static void begin_run(made_run *run, int64_t start_unix_ns)
{
    weir_stage_info stages[MAX_NODES] = { { 0 } };
    run->num_nodes = run->settings->stages + 2;
    for (uint32_t i = 0; i < run->num_nodes; i++) {
        const char *kind = i == 0 ? "source" : i + 1 == run->num_nodes ? "sink" : "stage";
        const char *name = i == 0 ? "src" : kind;
        snprintf(run->names[i], sizeof run->names[i], "0:%" PRIu32 ":%s", i, name);
        snprintf(run->queues[i], sizeof run->queues[i], "0:%" PRIu32 ":%s_queue", i, name);
        stages[i] = (weir_stage_info){ .name = run->names[i],
                                       .queue_name = run->queues[i],
                                       .kind = kind,
                                       .concurrency = 1,
                                       .queue_items = 2,
                                       .output_order = "completion",
                                       .inputs = i ? run->queues[i - 1] : "",
                                       .merge_order = "" };
    }
    run->observer.run_start(run->observer.self, &(weir_run_info){ .start_unix_ns = start_unix_ns,
                                                                  .threads = THREADS,
                                                                  .stages = stages,
                                                                  .num_stages = run->num_nodes });
}

static void make_run(made_run *run)
{
    const int64_t lap_ns = (int64_t)(run->settings->lap_s * 1e9);
    const uint64_t num_laps = (uint64_t)(run->settings->run_s / run->settings->lap_s);
    const int64_t start_unix_ns = (int64_t)time(NULL) * WEIR_SECOND - (int64_t)num_laps * lap_ns; /* it ends now */
    begin_run(run, start_unix_ns);
    for (uint64_t i = 0; i < num_laps; i++) {
        run->lap = (weir_lap){ .number = i,
                               .end_unix_ns = start_unix_ns + (int64_t)(i + 1) * lap_ns,
                               .elapsed_ns = lap_ns,
                               .num_joined = 1,
                               .position = { .mode = "", .phase = "", .last_step = -1 } };
        for (uint32_t node = 0; node < run->num_nodes; node++) {
            put_node(run, node);
            put_queue(run, node);
        }
        put_rest(run);
    }
    run->observer.run_end(run->observer.self,
                          &(weir_run_end){ .end_unix_ns = run->lap.end_unix_ns, .status = WEIR_OK });
}

static int record_run(const void *argument, void *result)
{
    const recording_settings *settings = argument;
    weir_sqlite_writer *writer;
    weir_error error = { 0 };
    (void)result;
    made_run *run = calloc(1, sizeof *run);
    if (!run || weir_sqlite_open(settings->path,
                                 &(weir_sqlite_options){ .retry_limit_ns = 60 * WEIR_SECOND,
                                                         .keep_ns = (int64_t)(settings->keep_s * 1e9) },
                                 &writer, &error) != WEIR_OK) {
        fprintf(stderr, "weir-bench recording: %s\n", run ? error.message : "out of memory");
        free(run);
        return -1;
    }
    run->settings = settings;
    run->observer = weir_sqlite_observer(writer);
    run->draw = 1;
    make_run(run);
    free(run);
    if (weir_sqlite_close(writer, &error) == WEIR_OK)
        return 0;
    fprintf(stderr, "weir-bench recording: %s\n", error.message);
    return -1;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

typedef int ask(weir_recording *recording, const weir_filter *filter, FILE *out, weir_error *error);

static int ask_summary(weir_recording *recording, const weir_filter *filter, FILE *out, weir_error *error)
{
    return weir_summary_write(out, recording, filter, NULL, weir_verdict_write_limit, error);
}

static int ask_explain(weir_recording *recording, const weir_filter *filter, FILE *out, weir_error *error)
{
    weir_verdict *verdict = NULL;
    int status = weir_verdict_explain(recording, filter, &verdict, error);
    if (status == WEIR_OK)
        weir_verdict_write(verdict, WEIR_VERDICT_ALL, 0, out);
    weir_verdict_free(verdict);
    return status;
}

static int ask_stages(weir_recording *recording, const weir_filter *filter, FILE *out, weir_error *error)
{
    weir_totals totals;
    (void)out;
    int status = weir_totals_read(recording, filter,
                                  &(weir_grouping){ .by = WEIR_BY_NAME, .subjects = 1u << WEIR_SUBJECT_STAGE },
                                  &totals, error);
    if (status == WEIR_OK)
        weir_totals_free(&totals);
    return status;
}

static int pass_record(void *self, const weir_record *record, weir_error *error)
{
    (void)self;
    (void)record;
    (void)error;
    return WEIR_OK;
}

static int ask_longest(weir_recording *recording, const weir_filter *filter, FILE *out, weir_error *error)
{
    weir_filter own = *filter;
    (void)out;
    own.longest_first = true;
    own.limit = 10;
    return weir_recording_each(recording, WEIR_RECORD_TASK, &own, pass_record, NULL, error);
}

static const struct {
    const char *name, *what;
    ask *function;
} questions[] = {
    { "summary", "weir summary --full", ask_summary },
    { "explain", "weir explain --verbose", ask_explain },
    { "stages", "weir query --by stage", ask_stages },
    { "longest", "the ten laps with the longest task", ask_longest },
};
enum { NUM_QUESTIONS = sizeof questions / sizeof questions[0] };

typedef struct asking {
    const char *path;
    size_t question;
} asking;

static int answer(const void *argument, void *result)
{
    const asking *a = argument;
    weir_recording *recording = NULL;
    weir_error error = { 0 };
    (void)result;
    FILE *out = fopen("/dev/null", "w");
    int status = out ? weir_recording_open(a->path, &recording, &error) : WEIR_EIO;
    if (status == WEIR_OK)
        status = questions[a->question].function(recording, &(weir_filter){ .run_id = WEIR_LAST_RUN }, out, &error);
    weir_recording_close(recording);
    if (out)
        fclose(out);
    if (status != WEIR_OK)
        fprintf(stderr, "weir-bench recording: %s\n", error.message);
    return status == WEIR_OK ? 0 : -1;
}

static int ask_question(const recording_settings *settings, size_t question, bench_report *report)
{
    double *cpu_s = calloc(settings->runs, sizeof *cpu_s), *wall_s = calloc(settings->runs, sizeof *wall_s);
    uint64_t peak_bytes = 0;
    int status = cpu_s && wall_s ? 0 : -1;
    for (uint32_t i = 0; i < settings->runs && status == 0; i++) {
        bench_usage usage = { 0 };
        char none;
        status = bench_measure(answer, &(asking){ settings->path, question }, &none, sizeof none, &usage);
        cpu_s[i] = usage.cpu_s;
        wall_s[i] = usage.wall_s;
        peak_bytes = usage.peak_bytes > peak_bytes ? usage.peak_bytes : peak_bytes;
    }
    if (status == 0) {
        bench_spread cpu = bench_spread_of(cpu_s, settings->runs), wall = bench_spread_of(wall_s, settings->runs);
        printf("%-36s %6.2f [%.2f, %.2f] %6.2f [%.2f, %.2f] %6.0f MB\n", questions[question].what, cpu.median,
               cpu.min, cpu.max, wall.median, wall.min, wall.max, (double)peak_bytes / 1e6);
        bench_report_row(report, "recording");
        bench_report_text(report, "question", questions[question].name);
        bench_report_spread(report, "cpu_s", cpu);
        bench_report_spread(report, "wall_s", wall);
        bench_report_number(report, "peak_bytes", (double)peak_bytes);
    }
    free(cpu_s);
    free(wall_s);
    return status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static int make_file(const recording_settings *settings)
{
    struct stat file;
    bench_usage usage = { 0 };
    char none;
    if (stat(settings->path, &file) == 0)
        return 0;
    if (bench_measure(record_run, settings, &none, sizeof none, &usage) != 0 || stat(settings->path, &file) != 0)
        return -1;
    printf("%.3g h, laps of %.3g s, %" PRIu32 " stages, a source and a sink: %.1f MB, %.2f MB per hour and stage;"
           " recorded in %.1f s of CPU time\n",
           settings->run_s / 3600, settings->lap_s, settings->stages, (double)file.st_size / 1e6,
           (double)file.st_size / 1e6 / (settings->run_s / 3600) / (settings->stages + 2), usage.cpu_s);
    return 0;
}

static int run_questions(const recording_settings *settings)
{
    bench_report *report = bench_report_new();
    bench_background_load before = bench_background_load_now();
    int status = report ? make_file(settings) : -1;
    if (status == 0)
        printf("%-36s %20s %20s %9s\n", "", "CPU s [from, to]", "wall s [from, to]", "memory");
    for (size_t i = 0; i < NUM_QUESTIONS && status == 0; i++)
        status = ask_question(settings, i, report);
    printf("Other programs used %.1f CPUs.\n", bench_others_cpus(&before));
    return bench_report_end(report, settings->json_path) == 0 && status == 0 ? 0 : 1;
}

int bench_recording(int argc, char **argv)
{
    static const char *const ends[] = { "", "-wal", "-shm" };
    char folder[] = "/tmp/weir-recording-XXXXXX", path[sizeof folder + 16], name[sizeof path + 8];
    recording_settings settings = { .run_s = 86400, .lap_s = 1, .stages = 8, .items = 100, .runs = 5 };
    const option_set set = { rows, &settings };
    bench_parsed parsed = bench_parse(argc, argv, &set, 1, &settings.json_path, "recording [options]");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;
    if (settings.stages > MAX_NODES - 2)
        return bench_refuse("--stages", "at most 62");
    if (settings.path)
        return run_questions(&settings);
    if (!mkdtemp(folder)) {
        perror("weir-bench recording: a temporary folder");
        return 1;
    }
    snprintf(path, sizeof path, "%s/run.db", folder);
    settings.path = path;
    int status = run_questions(&settings);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
    rmdir(folder);
    return status;
}
