/*
 * weir-bench whatif: how well weir whatif predicts. Pipelines of known costs, or the main job, run alternately as built
 * and with changes, because the speed of a machine changes within seconds; the model of the first run predicts the
 * gain. Measured is the gain over the runs as built right before and after, times the throughput of the first run.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/whatif.h>

#include "background_load.h"
#include "bench.h"
#include "bench_options.h"
#include "report.h"
#include "whatif_plan.h"

enum { MAX_ROUNDS = 100 };

typedef struct whatif_settings {
    uint32_t pipelines, rounds;
    double seconds;
    int64_t seed;
    bool wait_only;
    bench_list slots;
    const char *only, *dataset_dir, *json_path;
} whatif_settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(whatif_settings, what)

static const option_row rows[] = {
    { ROW("pipelines", pipelines, option_count32), .argument = "N", .max = 10000,
      .help = "number of random pipelines (default 30)" },
    { ROW("seconds", seconds, option_span), .argument = "S",
      .help = "length of each run (default 1); patterns with bursts or slow files run for 20 of these" },
    { ROW("rounds", rounds, option_count32), .argument = "N", .max = MAX_ROUNDS,
      .help = "how often each change is measured (default 3)" },
    { ROW("seed", seed, option_number), .argument = "N", .help = "number of the first pipeline (default 1)" },
    { ROW("only", only, option_text), .argument = "KIND",
      .help = "only this pattern of examples/simulate, or all \"patterns\", or \"random\" pipelines" },
    { ROW("wait-only", wait_only, option_flag),
      .help = "random pipelines whose tasks do not compute: for machines that are not quiet" },
#ifdef WEIR_BENCH_STAGES
    { ROW("slots", slots, bench_counts), .argument = "LIST", .needs = "dataset-dir",
      .help = "of the main job (default 1,2,4,8,16)" },
    { ROW("dataset-dir", dataset_dir, option_folder), .argument = "DIR", .excludes = "only pipelines wait-only",
      .help = "decode the *.mp4 files of this folder instead, with 1 or 2 threads and several numbers of slots" },
#endif
    { 0 },
};

typedef struct outcome {
    double before, model, predicted, low, high;
    bench_spread measured;
    uint32_t rounds;
    double seconds; /* that the prediction took */
} outcome;

static int predict(weir_model *model, const whatif_plan *plan, outcome *o)
{
    weir_error error = { 0 };
    weir_prediction *prediction = NULL;
    int64_t start_ns = weir_clock_ns();
    int status = WEIR_OK;
    for (size_t i = 0; i < plan->num_changes && status == WEIR_OK; i++)
        status = weir_model_set(model, plan->changes[i].setting, plan->changes[i].value, &error);
    if (status == WEIR_OK)
        status = weir_model_predict(model, NULL, &prediction, &error);
    if (status != WEIR_OK) { /* a run that was too short to learn from */
        printf("%-22s not predicted: %s\n", plan->name, error.message);
        return 0;
    }
    o->before = prediction->measured; /* in the laps that made the model: files differ */
    o->model = prediction->baseline;
    o->predicted = prediction->throughput;
    o->low = prediction->low;
    o->high = prediction->high;
    o->seconds = (double)(weir_clock_ns() - start_ns) / 1e9;
    weir_prediction_free(prediction);
    return 0;
}

static int measure(whatif_plan *plan, const whatif_settings *settings, outcome *o)
{
    weir_model *model;
    weir_error error = { 0 };
    if (weir_model_new(&model, &error) != WEIR_OK)
        return bench_no_memory();
    weir_observer observer = weir_model_observer(model);
    double last = 0;
    int rc = plan_run(plan, settings->seconds, &(plan_watch){ &observer, 1, 0, NULL }, &last);
    o->before = last;
    if (rc == 0)
        rc = predict(model, plan, o);
    weir_model_free(model);
    whatif_plan changed = *plan;
    plan_apply(&changed);
    double measured[MAX_ROUNDS];
    for (uint32_t i = 0; i < settings->rounds && rc == 0; i++) {
        double with_changes = 0, again = 0;
        rc = plan_run(&changed, settings->seconds, NULL, &with_changes);
        if (rc == 0)
            rc = plan_run(plan, settings->seconds, NULL, &again);
        measured[i] = o->before * with_changes / ((last + again) / 2);
        last = again;
    }
    if (rc == 0)
        o->measured = bench_spread_of(measured, o->rounds = settings->rounds);
    return rc;
}

static double error_of(const outcome *o)
{
    return o->predicted / o->measured.median - 1;
}

/* The standard error of the median, estimated from the range of a few rounds, is above 10 %: nothing can be said. */
static bool is_disturbed(const outcome *o)
{
    return !(1.25 * (o->measured.max - o->measured.min) / o->rounds <= 0.1 * o->measured.median);
}

static void show(bench_report *report, const whatif_plan *plan, const outcome *o)
{
    printf("%-22s %8.1f %8.1f %8.1f %8.1f..%-8.1f %8.1f %8.1f..%-8.1f %+7.1f %%  ", plan->name, o->before, o->model,
           o->predicted, o->low, o->high, o->measured.median, o->measured.min, o->measured.max, 100 * error_of(o));
    for (size_t i = 0; i < plan->num_changes; i++)
        printf("%s%s=%s", i ? ", " : "", plan->changes[i].setting, plan->changes[i].value);
    puts(is_disturbed(o) ? "  (does not count)" : "");
    fflush(stdout);
    bench_report_row(report, "whatif");
    bench_report_text(report, "pipeline", plan->name);
    bench_report_number(report, "before", o->before);
    bench_report_number(report, "model_before", o->model);
    bench_report_number(report, "predicted", o->predicted);
    bench_report_number(report, "low", o->low);
    bench_report_number(report, "high", o->high);
    bench_report_spread(report, "measured", o->measured);
    bench_report_number(report, "relative_error", error_of(o));
    bench_report_number(report, "prediction_s", o->seconds);
}

typedef struct tally {
    uint32_t count, within, in_range, disturbed;
    double longest_s;
} tally;

static int run_plan(bench_report *report, whatif_plan *plan, const whatif_settings *settings, tally *t)
{
    outcome o = { 0 };
    if (measure(plan, settings, &o) != 0)
        return -1;
    show(report, plan, &o);
    t->longest_s = fmax(t->longest_s, o.seconds);
    if (is_disturbed(&o)) {
        t->disturbed++;
        return 0;
    }
    t->count++;
    t->within += fabs(error_of(&o)) <= 0.1;
    t->in_range += o.measured.median >= o.low && o.measured.median <= o.high;
    return 0;
}

static void summarize(const char *what, const tally *t)
{
    if (t->count + t->disturbed == 0)
        return;
    printf("%s: %u of %u predictions are within 10 %% of what was measured, %u in their range; the longest took "
           "%.2f s; %u do not count, because the standard error of the measured gain is above 10 %%\n\n",
           what, t->within, t->count, t->in_range, t->longest_s, t->disturbed);
}

#ifdef WEIR_BENCH_STAGES
/* The main job: from each of two recordings to all other settings. Whole rounds over the files, as these differ. */
static int run_main_job(bench_report *report, const whatif_settings *settings, tally *t)
{
    bench_files files = { 0 };
    whatif_plan plan;
    double throughput = 0;
    if (bench_files_find(&files, settings->dataset_dir, "*.mp4") != 0)
        return -1;
    plan_main_job(&plan, &files, 2, 2);
    plan.num_items = files.num_paths;
    int rc = plan_run(&plan, 0, NULL, &throughput); /* how many rounds take that long */
    uint64_t rounds = (uint64_t)fmax(1, ceil(settings->seconds * throughput / (double)files.num_paths));
    for (size_t i = 0; i < 4 * settings->slots.num_values && rc == 0; i++) {
        size_t which = i / 2 % settings->slots.num_values;
        uint32_t recorded = i < 2 * settings->slots.num_values ? 2 : 1;
        plan_main_job(&plan, &files, recorded, recorded);
        plan_add_change(&plan, plan.parts[1].name, "concurrency", settings->slots.values[which]);
        plan_add_change(&plan, "", "threads", 1 + (uint32_t)(i % 2));
        plan.num_start = settings->slots.values[which] + 4;
        plan.num_items = plan.num_start + rounds * files.num_paths;
        rc = run_plan(report, &plan, settings, t);
    }
    bench_files_free(&files);
    return rc;
}
#endif

static bool is_wanted(const char *only, const char *kind)
{
    return !only || strcmp(only, kind) == 0;
}

int bench_whatif(int argc, char **argv)
{
    whatif_settings settings = {
        .pipelines = 30, .rounds = 3, .seconds = 1, .seed = 1, .slots = { { 1, 2, 4, 8, 16 }, 5 }
    };
    const option_set set = { rows, &settings };
    bench_parsed parsed = bench_parse(argc, argv, &set, 1, &settings.json_path, "whatif [options]");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;
    if (!is_wanted(settings.only, "patterns") && !is_wanted(settings.only, "random") &&
        !plan_is_pattern(settings.only))
        return bench_refuse("--only: no such pattern", " (see examples/simulate --help)");
    printf("items/s as built: measured, and the model's; with the changes: predicted, and measured (each with its "
           "range)\n");
    printf("%-22s %8s %8s %8s %18s %8s %18s %9s\n", "", "before", "model", "predict", "range", "measured", "range",
           "error");
    bench_report *report = bench_report_new();
    bench_background_load start = bench_background_load_now();
    whatif_plan *plan = calloc(1, sizeof *plan);
    tally main_job = { 0 }, patterns = { 0 }, random = { 0 };
    int rc = plan ? 0 : bench_no_memory();
    bool is_made_up = !settings.dataset_dir;
#ifdef WEIR_BENCH_STAGES
    if (settings.dataset_dir && rc == 0)
        rc = run_main_job(report, &settings, &main_job);
#endif
    for (size_t i = 0; rc == 0 && is_made_up && plan_pattern(plan, i); i++)
        if (is_wanted(settings.only, "patterns") || is_wanted(settings.only, plan->name))
            rc = run_plan(report, plan, &settings, &patterns);
    summarize("main job", &main_job);
    summarize("patterns", &patterns);
    for (uint32_t i = 0; rc == 0 && is_made_up && i < settings.pipelines && is_wanted(settings.only, "random"); i++) {
        plan_random(plan, (uint64_t)settings.seed + i);
        for (size_t j = 0; settings.wait_only && j < plan->num_parts; j++)
            plan->parts[j].work.compute_s = 0;
        rc = run_plan(report, plan, &settings, &random);
    }
    summarize("random pipelines", &random);
    free(plan);
    bench_report_background_load(report, &start);
    if (bench_report_end(report, settings.json_path) != 0)
        rc = -1;
    return rc == 0 ? 0 : 1;
}
