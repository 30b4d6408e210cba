/*
 * weir-bench verdict: how often the verdict is right about pipelines whose limit is known by construction. The
 * verdict is made from a recording (offline) and from a run in progress (live). Also measures how often the range of
 * a prediction contains what another run with that setting delivers. The pipelines are in scenes.c.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/sqlite.h>
#include <weir/verdict.h>

#include "bench/cli/bench.h"
#include "bench/cli/bench_options.h"
#include "bench/harness/background_load.h"
#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "bench/verdict/clip_bench.h"
#include "bench/verdict/scene.h"

typedef struct verdict_settings {
    const char *only, *dataset_dir, *json_path;
    double run_s;
    bool offline, live, verbose;
} verdict_settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(verdict_settings, what)

static const option_row rows[] = {
    { ROW("only", only, option_text), .argument = "TEXT", .help = "only pipelines whose name contains this" },
#ifdef WEIR_BENCH_STAGES
    { ROW("dataset-dir", dataset_dir, option_folder), .argument = "DIR",
      .help = "decode these videos, instead of clips that the bench makes with ffmpeg" },
#endif
    { ROW("time", run_s, option_span), .argument = "S", .help = "length of a recorded run (default 2)" },
    { ROW("offline", offline, option_flag), .excludes = "live", .help = "only from recordings" },
    { ROW("live", live, option_flag), .help = "only from runs in progress" },
    { ROW("verbose", verbose, option_flag), .help = "print each verdict with its evidence" },
    { 0 },
};

typedef enum answer {
    ANSWER_RIGHT,
    ANSWER_UNSURE,
    ANSWER_WRONG,
    ANSWER_SURELY_WRONG,
    ANSWER_LOADED, /* it says CPUs, and other programs used them: the scene was not what it was built to be */
    NUM_ANSWERS
} answer;

static const char *const answer_words[NUM_ANSWERS] = { "right", "unsure", "WRONG", "SURELY WRONG", "loaded" };

enum { MOST_PREDICTIONS = 2 };

/* A prediction that was replayed: the gain that was said and its range, and what a run with that setting brought. */
typedef struct replay {
    char change[80];
    double gain, low, high, measured;
    bool assumes; /* something that no recording tells */
} replay;

/* The result of one scene; without pointers, because it comes from another process. */
typedef struct scene_result {
    bool is_known; /* there is a verdict */
    answer answer;
    char verdict[400];
    int num_predictions, num_contained, num_near; /* checked; the range contains it; within 15 % */
    replay replays[MOST_PREDICTIONS];
    char prediction[160];
    double others_cpus;
} scene_result;

typedef struct scene_job {
    const scene *of;
    const verdict_settings *settings;
    bool is_live;
} scene_job;

/* "kind:decode" of a kind and "0:1:decode[10]_queue", as in scene.truth. */
static void name_limit(weir_verdict_kind kind, const char *name, char *text, size_t size)
{
    const char *colon = strrchr(name, ':');
    const char *own = colon ? colon + 1 : name;
    const char *bracket = strchr(own, '['), *rest = bracket ? strchr(bracket, ']') : NULL;
    int length = bracket ? (int)(bracket - own) : (int)strlen(own);
    bool has_name = kind != WEIR_VERDICT_CPUS && *own;
    snprintf(text, size, "%s%s%.*s%s", weir_verdict_word(kind), has_name ? ":" : "", has_name ? length : 0, own,
             has_name && rest ? rest + 1 : "");
}

static bool is_true(const scene *of, weir_verdict_kind kind, const char *name)
{
    char text[128], list[256], *rest = list;
    name_limit(kind, name, text, sizeof text);
    snprintf(list, sizeof list, "%s", of->truth);
    for (const char *word; (word = strtok_r(rest, " ", &rest));)
        if (strcmp(word, text) == 0)
            return true;
    return false;
}

/* What was measured, or predicted, of twice the slots of the stage that limits. NULL = nothing. */
static const weir_verdict_advice *find_doubling(const weir_verdict *v)
{
    for (size_t i = 0; i < v->num_advice; i++)
        if (v->advice[i].slots > 0 && strcmp(v->advice[i].stage, v->name) == 0)
            return &v->advice[i];
    return NULL;
}

/* What all stages that limit brought together; NULL = it was not measured. */
static const weir_verdict_advice *find_together(const weir_verdict *v)
{
    for (size_t i = 0; i < v->num_advice; i++)
        if (v->advice[i].is_measured && !*v->advice[i].stage && strstr(v->advice[i].change, " slot"))
            return &v->advice[i];
    return NULL;
}

static answer judge(const scene *of, const weir_verdict *v, bool is_live)
{
    const weir_verdict_advice *doubling = find_doubling(v);
    bool is_sure = v->confidence >= WEIR_VERDICT_CLEAR,
         is_unsure = v->kind == WEIR_VERDICT_UNKNOWN || v->confidence < WEIR_VERDICT_LIKELY;
    bool is_right = is_true(of, v->kind, v->name);
    if (is_right && is_live && of->most > 0 && doubling)
        is_right = doubling->high >= of->least && doubling->low <= of->most;
    const weir_verdict_advice *together = find_together(v);
    if (is_right && is_live && of->together_most > 0)
        is_right = together && together->high >= of->together_least && together->low <= of->together_most &&
                   (of->together_least > 1) == (*v->together != '\0');
    if (is_right)
        return ANSWER_RIGHT;
    if (is_unsure || (v->other_kind != WEIR_VERDICT_UNKNOWN && is_true(of, v->other_kind, v->other_name)))
        return ANSWER_UNSURE;
    return is_sure ? ANSWER_SURELY_WRONG : ANSWER_WRONG;
}

static void describe(const weir_verdict *v, scene_result *result)
{
    char text[128], other[128] = "", gain[80] = "";
    const weir_verdict_advice *doubling = find_doubling(v);
    name_limit(v->kind, v->name, text, sizeof text);
    if (v->other_kind != WEIR_VERDICT_UNKNOWN)
        name_limit(v->other_kind, v->other_name, other, sizeof other);
    if (doubling)
        snprintf(gain, sizeof gain, "; twice the slots: %.2f (%.2f to %.2f)", doubling->gain, doubling->low,
                 doubling->high);
    if (*v->together)
        snprintf(gain, sizeof gain, "; %.50s together", v->together);
    snprintf(result->verdict, sizeof result->verdict, "%s %.0f %%%s%s%s", text, 100 * v->confidence,
             *other ? " or " : "", other, gain);
}

static void take_verdict(const scene_job *job, const weir_verdict *v, scene_result *result)
{
    result->is_known = true;
    result->answer = judge(job->of, v, job->is_live);
    describe(v, result);
    if (job->settings->verbose)
        weir_verdict_write(v, WEIR_VERDICT_ALL | WEIR_VERDICT_CODE, 0, stderr);
}

/* Items per second that last: without what the source has in store. */
static double rate_of(const scene *of, const scene_change *change, double seconds)
{
    scene lasting = *of;
    lasting.backlog_items = 0;
    scene_run *run = scene_start(&lasting, change, (int64_t)(1e9 * seconds), NULL, 0);
    if (!run)
        return NAN;
    usleep((useconds_t)(0.25e6 * seconds));
    uint64_t before = scene_num_taken(run);
    int64_t start_ns = weir_clock_ns();
    usleep((useconds_t)(0.7e6 * seconds));
    double rate = (double)(scene_num_taken(run) - before) / (1e-9 * (double)(weir_clock_ns() - start_ns));
    scene_end(run);
    return rate;
}

/* Runs the scene with each predicted setting. */
static void check_predictions(const scene_job *job, const weir_verdict *v, scene_result *result)
{
    double seconds = job->settings->run_s;
    for (size_t i = 0; i < v->num_advice && result->num_predictions < MOST_PREDICTIONS; i++) {
        const weir_verdict_advice *a = &v->advice[i];
        scene_change change = { .slots = a->slots, .threads = a->threads };
        const char *colon = strrchr(a->stage, ':');
        if ((!a->slots && !a->threads) || isnan(a->low) || isnan(a->high))
            continue;
        snprintf(change.stage, sizeof change.stage, "%.*s", (int)strcspn(colon ? colon + 1 : a->stage, "["),
                 colon ? colon + 1 : a->stage);
        double before = rate_of(job->of, NULL, seconds), after = rate_of(job->of, &change, seconds);
        double gain = after / before, noise = 0.05; /* of the two runs, on a machine that others use */
        bool is_contained = gain >= a->low * (1 - noise) && gain <= a->high * (1 + noise);
        replay *of = &result->replays[result->num_predictions++];
        *of = (replay){ .gain = a->gain, .low = a->low, .high = a->high, .measured = gain, .assumes = *a->assumes };
        snprintf(of->change, sizeof of->change, "%.79s", a->change);
        result->num_contained += is_contained;
        result->num_near += is_contained || fabs(log(gain / a->gain)) < log(1.15);
        if (!is_contained)
            snprintf(result->prediction, sizeof result->prediction, "%.60s: %.2f to %.2f, got %.2f", a->change,
                     a->low, a->high, gain);
    }
}

static int explain_recording(const scene_job *job, scene_result *result)
{
    char path[] = "/tmp/weir-verdict-XXXXXX.db";
    weir_sqlite_writer *writer = NULL;
    weir_recording *recording = NULL;
    weir_verdict *v = NULL;
    weir_error error = { 0 };
    int file = mkstemps(path, 3);
    if (file < 0)
        return -1;
    close(file);
    unlink(path);
    int status = weir_sqlite_open(path, NULL, &writer, &error);
    weir_observer observer = weir_sqlite_observer(writer);
    scene_run *run =
        status == WEIR_OK ? scene_start(job->of, NULL, (int64_t)(1e9 * job->settings->run_s), &observer, 1) : NULL;
    if (run)
        scene_end(run);
    weir_sqlite_close(writer, NULL);
    if (run && weir_recording_open(path, &recording, &error) == WEIR_OK &&
        weir_verdict_explain(recording, &(weir_filter){ .run_id = WEIR_LAST_RUN }, &v, &error) == WEIR_OK) {
        take_verdict(job, v, result);
        check_predictions(job, v, result);
    } else
        fprintf(stderr, "weir-bench: %s: %s\n", job->of->name, error.message);
    weir_verdict_free(v);
    weir_recording_close(recording);
    static const char *const ends[] = { "", "-wal", "-shm" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char name[sizeof path + 4];
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
    return 0;
}

static int explain_run(const scene_job *job, scene_result *result)
{
    weir_verdict *v = NULL;
    weir_error error = { 0 };
    scene_run *run = scene_start(job->of, NULL, 60 * WEIR_SECOND, NULL, 0);
    if (!run)
        return -1;
    usleep(300000); /* the start-up */
    if (weir_explain_live(scene_pipeline(run), &(weir_live_options){ .no_speedups = true }, &v, &error) == WEIR_OK)
        take_verdict(job, v, result);
    else
        fprintf(stderr, "weir-bench: %s: %s\n", job->of->name, error.message);
    weir_verdict_free(v);
    weir_pipeline_stop(scene_pipeline(run));
    scene_end(run);
    return 0;
}

static int run_scene(const void *argument, void *result)
{
    const scene_job *job = argument;
    scene_result *of = result;
    bench_background_load before = bench_background_load_now();
    int status = job->is_live ? explain_run(job, of) : explain_recording(job, of);
    of->others_cpus = bench_others_cpus(&before);
    bool computes = strncmp(of->verdict, "cpus", 4) == 0 || strncmp(of->verdict, "slots", 5) == 0 ||
                    strncmp(of->verdict, "threads", 7) == 0;
    for (size_t i = 0; i < sizeof job->of->stages / sizeof job->of->stages[0]; i++)
        computes |= job->of->stages[i].work.cpu_ms > 0;
    if (of->is_known && of->answer >= ANSWER_WRONG && computes && !job->of->load && of->others_cpus > 0.5)
        of->answer = ANSWER_LOADED;
    return status;
}

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
    scene_job job = { of, settings, is_live };
    scene_result result = { .is_known = false };
    bench_usage usage;
    if (bench_measure(run_scene, &job, &result, sizeof result, &usage) != 0 || !result.is_known)
        return -1;
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

int bench_verdict(int argc, char **argv)
{
    verdict_settings settings = { .run_s = 2 };
    static score offline, live;
    bool has_failed = false;
    bench_parsed parsed = bench_parse(argc, argv, &(option_set){ rows, &settings }, 1, &settings.json_path,
                                      "verdict [options]\n\nHow often the verdict is right about pipelines whose "
                                      "limit is known by construction.");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;
    bench_report *report = bench_report_new();
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
