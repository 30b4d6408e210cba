/*
 * weir-bench verdict: how often the verdict is right about pipelines whose limit is known by construction. The
 * verdict is made from a recording (offline) and from a run in progress (live). Also measures how often the range of
 * a prediction contains what another run with that setting delivers. The pipelines are in scenes.c, or made by chance.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cli/bench.h"
#include "bench/cli/bench_options.h"
#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "bench/verdict/clip_bench.h"
#include "bench/verdict/random_bench.h"
#include "bench/verdict/scene_trial.h"

typedef struct verdict_settings {
    const char *only, *dataset_dir, *json_path;
    double run_s;
    bool offline, live, verbose, list;
    uint32_t num_random;
    int64_t seed;
} verdict_settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(verdict_settings, what)

static const option_row rows[] = {
    { ROW("only", only, option_text), .argument = "TEXT", .help = "only pipelines whose name contains this" },
#ifdef WEIR_BENCH_STAGES
    { ROW("dataset-dir", dataset_dir, option_folder), .argument = "DIR",
      .help = "decode these videos, instead of clips that the bench makes with ffmpeg" },
#endif
    { ROW("random", num_random, option_count32), .argument = "N", .max = 1000000, .excludes = "dataset-dir live",
      .help = "instead of these, N pipelines made by chance, from runs in progress or --offline" },
    { ROW("seed", seed, option_number), .argument = "S", .needs = "random", .help = "the seed of these (default 1)" },
    { ROW("list", list, option_flag), .needs = "random", .help = "only print these and their truth" },
    { ROW("time", run_s, option_span), .argument = "S", .help = "length of a recorded run (default 2)" },
    { ROW("offline", offline, option_flag), .excludes = "live", .help = "only from recordings" },
    { ROW("live", live, option_flag), .help = "only from runs in progress" },
    { ROW("verbose", verbose, option_flag), .help = "print each verdict with its evidence" },
    { 0 },
};

/* Of the replays that assume nothing: how much the measured gains differ from the predicted ones. */
typedef struct replay_errors {
    double all[1000];
    size_t num;
} replay_errors;

typedef struct score {
    int answers[NUM_ANSWERS], num_predictions, num_contained, num_near;
    replay_errors errors;
} score;

static void report_one(bench_report *report, const scene *of, bool is_live, const scene_result *result)
{
    bench_report_row(report, "verdict");
    bench_report_text(report, "pipeline", of->name);
    bench_report_text(report, "from", is_live ? "live" : "offline");
    bench_report_text(report, "answer", answer_words[result->answer]);
    bench_report_text(report, "verdict", result->verdict);
    bench_report_number(report, "predictions", result->num_predictions);
    bench_report_number(report, "predictions_in_range", result->num_contained);
    bench_report_number(report, "others_cpus", result->others_cpus);
}

static void report_replays(bench_report *report, const scene *of, const scene_result *result)
{
    for (int i = 0; i < result->num_predictions; i++) {
        const replay *one = &result->replays[i];
        bench_report_row(report, "replay");
        bench_report_text(report, "pipeline", of->name);
        bench_report_text(report, "change", one->change);
        bench_report_number(report, "predicted", one->gain);
        bench_report_number(report, "low", one->low);
        bench_report_number(report, "high", one->high);
        bench_report_number(report, "measured", one->measured);
        bench_report_number(report, "assumes", one->assumes);
        bench_report_number(report, "others_cpus", result->others_cpus);
    }
}

static void add_errors(replay_errors *errors, const scene_result *result)
{
    if (result->answer == ANSWER_LOADED) /* other programs used the CPUs */
        return;
    for (int i = 0; i < result->num_predictions; i++) {
        const replay *one = &result->replays[i];
        bool has_room = errors->num < sizeof errors->all / sizeof errors->all[0];
        if (!one->assumes && has_room && one->measured > 0)
            errors->all[errors->num++] = fabs(one->measured / one->gain - 1);
    }
}

static int run_one(const scene *of, const verdict_settings *settings, bool is_live, bench_report *report, score *sum)
{
    scene_trial trial = { .of = of, .run_s = settings->run_s, .is_live = is_live, .verbose = settings->verbose };
    scene_result result = { .is_known = false };
    bench_usage usage;
    if (bench_measure(scene_trial_run, &trial, &result, sizeof result, &usage) != 0)
        return -1;
    if (!result.is_known) {
        fprintf(stderr, "weir-bench: %s: %s\n", of->name, result.verdict);
        return -1;
    }
    scene_trial_excuse_load(of, &result);
    sum->answers[result.answer]++;
    sum->num_predictions += result.num_predictions;
    sum->num_contained += result.num_contained;
    sum->num_near += result.num_near;
    printf("%-34s %-8s %-12s %s%s%s (others: %.1f CPUs)\n", of->name, is_live ? "live" : "offline",
           answer_words[result.answer], result.verdict, *result.prediction ? " | " : "", result.prediction,
           result.others_cpus);
    fflush(stdout);
    report_one(report, of, is_live, &result);
    report_replays(report, of, &result);
    add_errors(&sum->errors, &result);
    return 0;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The error that `share` of the replays do not exceed. */
static double error_of(const replay_errors *errors, double share)
{
    return errors->all[(size_t)(share * (double)(errors->num - 1) + 0.5)];
}

static void put_score(const char *what, score *sum)
{
    printf("%s: %d right, %d honestly unsure, %d wrong, %d of them confidently\n", what, sum->answers[ANSWER_RIGHT],
           sum->answers[ANSWER_UNSURE], sum->answers[ANSWER_WRONG] + sum->answers[ANSWER_SURELY_WRONG],
           sum->answers[ANSWER_SURELY_WRONG]);
    if (sum->answers[ANSWER_LOADED])
        printf("%s: %d not judged: other programs used the CPUs\n", what, sum->answers[ANSWER_LOADED]);
    if (sum->num_predictions)
        printf("%s: of %d predictions that were run, %d were in their range, %d in it or within 15 %%\n", what,
               sum->num_predictions, sum->num_contained, sum->num_near);
    qsort(sum->errors.all, sum->errors.num, sizeof sum->errors.all[0], by_size);
    if (sum->errors.num)
        printf("%s: of the %zu that assume nothing, 80 %% differ by at most %.1f %% from what was predicted, 95 %% "
               "by %.1f %%\n",
               what, sum->errors.num, 100 * error_of(&sum->errors, 0.8), 100 * error_of(&sum->errors, 0.95));
}

/* Real decoding comes first. Nothing is done where it was built without stages. */
static int run_clip_scenes(const verdict_settings *settings, bench_report *report)
{
    int status = 0;
#ifdef WEIR_BENCH_STAGES
    clip_score sum = { 0 };
    const clip_settings of_clips = { settings->only, settings->dataset_dir, settings->verbose };
    if (settings->offline)
        return 0;
    status = clip_bench_run(&of_clips, report, &sum);
    if (sum.num_explained)
        printf("real decoding: explain right in %d of %d, tune in %d of %d\n", sum.num_explained_right,
               sum.num_explained, sum.num_tuned_right, sum.num_tuned);
#else
    (void)settings;
    (void)report;
#endif
    return status;
}

static int run_random_scenes(const verdict_settings *settings, bench_report *report)
{
    random_settings of = { .num = settings->num_random,
                           .seed = settings->seed,
                           .only = settings->only,
                           .run_s = settings->run_s,
                           .is_offline = settings->offline,
                           .verbose = settings->verbose,
                           .lists = settings->list };
    int status = random_bench_run(&of, report);
    return bench_report_end(report, settings->json_path) != 0 || status != 0;
}

int bench_verdict(int argc, char **argv)
{
    verdict_settings settings = { .run_s = 2, .seed = 1 };
    static score offline, live;
    bool has_failed = false;
    bench_parsed parsed = bench_parse(argc, argv, &(option_set){ rows, &settings }, 1, &settings.json_path,
                                      "verdict [options]\n\nHow often the verdict is right about pipelines whose "
                                      "limit is known by construction.");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;
    bench_report *report = bench_report_new();
    if (settings.num_random)
        return run_random_scenes(&settings, report);
    has_failed |= run_clip_scenes(&settings, report) != 0;
    for (size_t i = 0; i < num_scenes; i++) {
        if (settings.only && !strstr(scenes[i].name, settings.only))
            continue;
        if (!settings.live)
            has_failed |= run_one(&scenes[i], &settings, false, report, &offline) != 0;
        if (!settings.offline)
            has_failed |= run_one(&scenes[i], &settings, true, report, &live) != 0;
    }
    if (!settings.live)
        put_score("offline", &offline);
    if (!settings.offline)
        put_score("live", &live);
    return bench_report_end(report, settings.json_path) != 0 || has_failed;
}
