/*
 * weir-bench whatif: how well weir whatif predicts. Pipelines of known costs run, as built and with changes; the model
 * of the first run predicts the second one. Tasks wait and compute; nothing is decoded. The pipeline as built runs once
 * more at the end: if it is not as fast as at the start, the machine has changed, and the prediction does not count.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/whatif.h>

#include "background_load.h"
#include "bench.h"
#include "bench_options.h"
#include "report.h"
#include "whatif_plan.h"

typedef struct whatif_settings {
    uint32_t pipelines;
    double seconds;
    int64_t seed;
    bool patterns_only, wait_only;
    const char *json_path;
} whatif_settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(whatif_settings, what)

static const option_row rows[] = {
    { ROW("pipelines", pipelines, option_count32), .argument = "N", .max = 10000,
      .help = "number of random pipelines (default 30)" },
    { ROW("seconds", seconds, option_span), .argument = "S", .help = "length of each run (default 2)" },
    { ROW("seed", seed, option_number), .argument = "N", .help = "number of the first pipeline (default 1)" },
    { ROW("patterns-only", patterns_only, option_flag), .help = "only the patterns of examples/simulate" },
    { ROW("wait-only", wait_only, option_flag),
      .help = "random pipelines whose tasks do not compute: for machines that are not quiet" },
    { 0 },
};

typedef struct outcome {
    double before, model, predicted, low, high, measured, again;
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
    o->model = prediction->baseline;
    o->predicted = prediction->throughput;
    o->low = prediction->low;
    o->high = prediction->high;
    o->seconds = (double)(weir_clock_ns() - start_ns) / 1e9;
    weir_prediction_free(prediction);
    return 0;
}

static int measure(whatif_plan *plan, double seconds, outcome *o)
{
    weir_model *model;
    weir_error error = { 0 };
    if (weir_model_new(&model, &error) != WEIR_OK)
        return -1;
    weir_observer observer = weir_model_observer(model);
    int rc = plan_run(plan, seconds, &observer, &o->before);
    if (rc == 0)
        rc = predict(model, plan, o);
    whatif_plan as_built = *plan;
    plan_apply(plan);
    if (rc == 0)
        rc = plan_run(plan, seconds, NULL, &o->measured);
    if (rc == 0)
        rc = plan_run(&as_built, seconds, NULL, &o->again);
    weir_model_free(model);
    return rc;
}

static double error_of(const outcome *o)
{
    return o->predicted / o->measured - 1;
}

/* The same pipeline was not equally fast before and after. */
static bool is_disturbed(const outcome *o)
{
    return !(fabs(o->again / o->before - 1) <= 0.05);
}

static void show(bench_report *report, const whatif_plan *plan, const outcome *o)
{
    printf("%-22s %9.1f %9.1f %9.1f %9.1f..%-9.1f %9.1f %+7.1f %%  ", plan->name, o->before, o->model, o->predicted,
           o->low, o->high, o->measured, 100 * error_of(o));
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
    bench_report_number(report, "measured", o->measured);
    bench_report_number(report, "relative_error", error_of(o));
    bench_report_number(report, "before_again", o->again);
    bench_report_number(report, "prediction_s", o->seconds);
}

typedef struct tally {
    uint32_t count, within, in_range, disturbed;
    double longest_s;
} tally;

static int run_plan(bench_report *report, whatif_plan *plan, double seconds, tally *t)
{
    outcome o = { 0 };
    if (measure(plan, seconds, &o) != 0)
        return -1;
    show(report, plan, &o);
    t->longest_s = fmax(t->longest_s, o.seconds);
    if (is_disturbed(&o)) {
        t->disturbed++;
        return 0;
    }
    t->count++;
    t->within += fabs(error_of(&o)) <= 0.1;
    t->in_range += o.measured >= o.low && o.measured <= o.high;
    return 0;
}

static void summarize(const char *what, const tally *t)
{
    printf("%s: %u of %u predictions are within 10 %% of what was measured, %u in their range; the longest took "
           "%.2f s; %u do not count, because the same pipeline was more than 5 %% slower or faster at the end\n\n",
           what, t->within, t->count, t->in_range, t->longest_s, t->disturbed);
}

int bench_whatif(int argc, char **argv)
{
    whatif_settings settings = { .pipelines = 30, .seconds = 2, .seed = 1 };
    const option_set set = { rows, &settings };
    bench_parsed parsed = bench_parse(argc, argv, &set, 1, &settings.json_path, "whatif [options]");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;
    printf(
        "items/s: measured as built; the model's; predicted with the changes (range); measured with the changes\n");
    printf("%-22s %9s %9s %9s %20s %9s %9s\n", "", "before", "model", "predicted", "range", "measured", "error");
    bench_report *report = bench_report_new();
    bench_background_load start = bench_background_load_now();
    whatif_plan *plan = calloc(1, sizeof *plan);
    tally patterns = { 0 }, random = { 0 };
    int rc = plan ? 0 : -1;
    for (size_t i = 0; rc == 0 && plan_pattern(plan, i); i++)
        rc = run_plan(report, plan, settings.seconds, &patterns);
    if (rc == 0)
        summarize("patterns", &patterns);
    for (uint32_t i = 0; rc == 0 && i < settings.pipelines && !settings.patterns_only; i++) {
        plan_random(plan, (uint64_t)settings.seed + i);
        for (size_t j = 0; settings.wait_only && j < plan->num_parts; j++)
            plan->parts[j].work.compute_s = 0;
        rc = run_plan(report, plan, settings.seconds, &random);
    }
    if (rc == 0 && random.count + random.disturbed > 0)
        summarize("random pipelines", &random);
    free(plan);
    bench_report_background_load(report, &start);
    if (bench_report_end(report, settings.json_path) != 0)
        rc = -1;
    return rc == 0 ? 0 : 1;
}
