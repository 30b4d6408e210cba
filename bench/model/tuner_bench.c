/*
 * weir-bench tuner: how near weir_tuner comes to the best fixed settings. Each pattern of examples/simulate, or the main
 * job, begins with one slot and one thread; the last quarter of the laps is compared with the best of a grid of fixed
 * settings, each measured for as long as that quarter.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/tuner.h>

#include "background_load.h"
#include "bench.h"
#include "bench_options.h"
#include "report.h"
#include "whatif_plan.h"

#ifdef WEIR_BENCH_STAGES
#include "files.h"
#endif

enum { MOST_LAPS = 1000, LATER_PERCENT = 400 };

typedef struct tuner_settings {
    const char *only, *dataset_dir, *json_path;
    uint32_t laps;
    double lap_s, cpu_share;
    bool changes_load;
} tuner_settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(tuner_settings, what)

static const option_row rows[] = {
    { ROW("only", only, option_text), .argument = "PATTERN", .help = "only this pattern of examples/simulate" },
    { ROW("laps", laps, option_count32), .argument = "N", .max = MOST_LAPS,
      .help = "length of the run with the tuner, in laps (default 40)" },
    { ROW("lap", lap_s, option_span), .argument = "S", .help = "length of a lap (default 0.1)" },
    { ROW("cpu", cpu_share, option_share), .argument = "P%", .help = "use at most this share of the CPUs" },
    { ROW("change", changes_load, option_flag),
      .help = "from half of the run on, each task of a stage takes four times as long" },
#ifdef WEIR_BENCH_STAGES
    { ROW("dataset-dir", dataset_dir, option_folder), .argument = "DIR", .excludes = "only change",
      .help = "decode the *.mp4 files of this folder instead" },
#endif
    { 0 },
};

/* What the laps of a tuned run show. */
typedef struct tuned_run {
    double rates[MOST_LAPS], cpus[MOST_LAPS];
    double num_items, cpu_s;
    uint32_t num_laps, num_changes;
    char sink_queue[64];
} tuned_run;

static void on_run_start(void *self, const weir_run_info *info)
{
    tuned_run *run = self;
    snprintf(run->sink_queue, sizeof run->sink_queue, "%s", info->stages[info->num_stages - 1].queue_name);
}

static void on_queue_lap(void *self, const weir_queue_lap *lap)
{
    tuned_run *run = self;
    run->num_items += strcmp(lap->name, run->sink_queue) == 0 ? (double)lap->metrics.num_items : 0;
}

static void on_process_lap(void *self, const weir_process_lap *lap)
{
    ((tuned_run *)self)->cpu_s = (double)lap->metrics.pool_cpu_ns / 1e9;
}

static void on_lap_end(void *self, const weir_lap *lap)
{
    tuned_run *run = self;
    double lap_s = (double)lap->elapsed_ns / 1e9;
    if (run->num_laps < MOST_LAPS && lap_s > 0) {
        run->rates[run->num_laps] = run->num_items / lap_s;
        run->cpus[run->num_laps++] = run->cpu_s / lap_s;
    }
    run->num_items = run->cpu_s = 0;
}

static void on_decision(void *self, const weir_tuner_decision *decision)
{
    ((tuned_run *)self)->num_changes += decision->after > 0;
}

static weir_observer observer_of(tuned_run *run)
{
    return (weir_observer){ .self = run,
                            .run_start = on_run_start,
                            .queue_lap = on_queue_lap,
                            .process_lap = on_process_lap,
                            .lap_end = on_lap_end };
}

static double mean_of(const double *values, uint32_t from, uint32_t to)
{
    double sum = 0;
    for (uint32_t i = from; i < to; i++)
        sum += values[i];
    return to > from ? sum / (to - from) : 0;
}

static void set_all(whatif_plan *plan, uint32_t threads, uint32_t slots)
{
    plan->threads = threads;
    for (size_t i = 0; i < plan->num_parts; i++)
        if (plan->parts[i].kind == PLAN_STAGE)
            plan->parts[i].options.concurrency = slots;
}

static int run_tuned(whatif_plan plan, const tuner_settings *settings, double budget_cpus, tuned_run *run)
{
    weir_tuner *tuner;
    weir_error error = { 0 };
    double throughput;
    weir_tuner_options options = { .cpus = budget_cpus, .decided = on_decision, .decided_self = run };
    if (weir_tuner_new(&options, &tuner, &error) != WEIR_OK) {
        fprintf(stderr, "weir-bench: %s\n", error.message);
        return -1;
    }
    weir_observer observers[] = { weir_tuner_observer(tuner), observer_of(run) };
    set_all(&plan, 1, 1);
    plan.later_percent = settings->changes_load ? LATER_PERCENT : 0;
    plan_watch watch = {
        .observers = observers, .num_observers = 2, .lap_ns = (int64_t)(settings->lap_s * 1e9), .tuner = tuner
    };
    int rc = plan_run(&plan, settings->laps * settings->lap_s, &watch, &throughput);
    weir_tuner_free(tuner);
    return rc;
}

typedef struct fixed_best {
    uint32_t threads, slots;
    double rate;
} fixed_best;

/* With up to as many threads as the tuner may use (its default), and within the budget (0 = none). */
static int find_best(whatif_plan plan, const tuner_settings *settings, double budget_cpus, tuned_run *run,
                     fixed_best *best)
{
    enum { MOST_SLOTS = 32 };
    double most_threads = fmax(8, ceil(4 * (budget_cpus > 0 ? budget_cpus : weir_cpu_budget())));
    *best = (fixed_best){ 0 };
    for (size_t i = 0; settings->changes_load && i < plan.num_parts; i++)
        if (plan.parts[i].kind == PLAN_STAGE) {
            plan.parts[i].work.wait_s *= LATER_PERCENT / 100.0;
            plan.parts[i].work.compute_s *= LATER_PERCENT / 100.0;
        }
    for (uint32_t threads = 1; threads <= most_threads; threads *= 2)
        for (uint32_t slots = 1; slots <= MOST_SLOTS; slots *= 2) {
            double rate;
            weir_observer observer = observer_of(run);
            plan_watch watch = { &observer, 1, (int64_t)(settings->lap_s * 1e9), NULL };
            *run = (tuned_run){ 0 };
            set_all(&plan, threads, slots);
            if (plan_run(&plan, 0.25 * settings->laps * settings->lap_s, &watch, &rate) != 0)
                return -1;
            bool is_allowed = budget_cpus <= 0 || mean_of(run->cpus, 1, run->num_laps) <= 1.01 * budget_cpus;
            if (is_allowed && rate > best->rate)
                *best = (fixed_best){ threads, slots, rate };
        }
    return 0;
}

/* The longest row of laps with more CPU time than the budget. */
static uint32_t laps_over(const tuned_run *run, double budget_cpus)
{
    uint32_t longest = 0, count = 0;
    for (uint32_t i = 0; i < run->num_laps && budget_cpus > 0; i++) {
        count = run->cpus[i] > 1.01 * budget_cpus ? count + 1 : 0;
        longest = count > longest ? count : longest;
    }
    return longest;
}

static int run_plan(bench_report *report, whatif_plan *plan, const tuner_settings *settings)
{
    double budget_cpus = settings->cpu_share * weir_cpu_budget();
    tuned_run *run = calloc(1, sizeof *run);
    fixed_best best;
    plan->num_items = 0; /* as many as the time allows */
    int rc = run ? run_tuned(*plan, settings, budget_cpus, run) : bench_no_memory();
    if (rc == 0) {
        uint32_t laps = run->num_laps, over = laps_over(run, budget_cpus), changes = run->num_changes;
        double first = mean_of(run->rates, 1, laps < 3 ? laps : 3), last = mean_of(run->rates, laps - laps / 4, laps);
        rc = find_best(*plan, settings, budget_cpus, run, &best);
        printf("%-14s %9.1f %9.1f %9.1f  %3u threads, %2u slots %8.0f %% %8u %10u\n", plan->name, first, last,
               best.rate, best.threads, best.slots, best.rate > 0 ? 100 * last / best.rate : NAN, changes, over);
        fflush(stdout);
        bench_report_row(report, "tuner");
        bench_report_text(report, "pipeline", plan->name);
        bench_report_number(report, "first", first);
        bench_report_number(report, "last", last);
        bench_report_number(report, "best", best.rate);
        bench_report_number(report, "best_threads", best.threads);
        bench_report_number(report, "best_concurrency", best.slots);
        bench_report_number(report, "changes", changes);
        bench_report_number(report, "laps_over_budget", over);
    }
    free(run);
    return rc;
}

#ifdef WEIR_BENCH_STAGES
static int run_main_job(bench_report *report, const tuner_settings *settings)
{
    bench_files files = { 0 };
    whatif_plan plan;
    if (bench_files_find(&files, settings->dataset_dir, "*.mp4") != 0)
        return -1;
    plan_main_job(&plan, &files, 1, 1);
    snprintf(plan.name, sizeof plan.name, "main job");
    int rc = run_plan(report, &plan, settings);
    bench_files_free(&files);
    return rc;
}
#endif

int bench_tuner(int argc, char **argv)
{
    tuner_settings settings = { .laps = 40, .lap_s = 0.1 };
    const option_set set = { rows, &settings };
    bench_parsed parsed = bench_parse(argc, argv, &set, 1, &settings.json_path, "tuner [options]");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;
    if (settings.only && !plan_is_pattern(settings.only))
        return bench_refuse("--only: no such pattern", " (see examples/simulate --help)");
    whatif_plan *plan = calloc(1, sizeof *plan);
    char last[sizeof plan->name] = "";
    int rc = plan ? 0 : bench_no_memory();
    bench_report *report = bench_report_new();
    bench_background_load start = bench_background_load_now();
    printf("items/s with one slot and one thread, at the end, and with the best fixed settings\n"
           "%-14s %9s %9s %9s %23s %10s %8s %10s\n",
           "", "first", "last", "best", "with", "last/best", "changes", "laps over");
#ifdef WEIR_BENCH_STAGES
    if (settings.dataset_dir && rc == 0)
        rc = run_main_job(report, &settings);
#endif
    for (size_t i = 0; rc == 0 && !settings.dataset_dir && plan_pattern(plan, i); i++) {
        bool is_wanted = !settings.only || strcmp(settings.only, plan->name) == 0;
        if (!is_wanted || strcmp(plan->name, last) == 0) /* the same with another change */
            continue;
        memcpy(last, plan->name, sizeof last);
        rc = run_plan(report, plan, &settings);
    }
    free(plan);
    bench_report_background_load(report, &start);
    if (bench_report_end(report, settings.json_path) != 0)
        rc = -1;
    return rc == 0 ? 0 : 1;
}
