/*
 * Real decoding, from one slot and one thread. The truth is what fixed settings deliver, in turn, before and after
 * the verdict. So the load of the machine is the same for all of them. Work is counted in frames. `explain` is right
 * under three conditions. It names the decode stage, or the CPUs where more slots bring nothing. Its interval and
 * that of the truth overlap. It was ready in time. `tune` is right if its settings deliver 95 % of the best fixed
 * ones.
 */
#include "bench/verdict/clip_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/observer.h>
#include <weir/tuner.h>
#include <weir/verdict.h>

#include "bench/harness/background_load.h"
#include "bench/verdict/clip_scene.h"
#include "common/student_t.h"

enum { NUM_SETTINGS = 4, NUM_ROUNDS = 2, MOST_ROUNDS = 2 * NUM_ROUNDS, DECODE_STAGE = 1, FEW_TASKS = 2 };

/* In time means: within num_items items or within `seconds`, whichever takes longer. */
typedef struct time_limit {
    double num_items, seconds;
} time_limit;

static const time_limit of_answer = { 200, 30 }, of_tuning = { 400, 120 };

#define SLICE_S 1.0
#define ENOUGH  0.95 /* of the best fixed setting */

static void wait_s(double seconds)
{
    if (seconds > 0)
        usleep((useconds_t)(1e6 * seconds));
}

static double now_s(void)
{
    return 1e-9 * (double)weir_clock_ns();
}

/* -- what fixed settings deliver */

typedef struct fixed_settings {
    uint32_t slots[NUM_SETTINGS], threads[NUM_SETTINGS], num;
} fixed_settings;

typedef struct fixed_rates {
    double rates[MOST_ROUNDS][NUM_SETTINGS]; /* frames per second */
    int num_rounds;
    double frames_per_s[NUM_SETTINGS]; /* mean of the rounds; as what follows by compare_rounds() */
    double gains[NUM_SETTINGS];        /* over the first setting */
    double low[NUM_SETTINGS], high[NUM_SETTINGS];
    double items_per_s; /* with the first setting */
} fixed_rates;

/* Frames that are decoded so far. */
static double count_frames(clip_run *run)
{
    weir_snapshot *s;
    if (weir_pipeline_snapshot(clip_run_pipeline(run), &s) != WEIR_OK)
        return 0;
    double frames = (double)s->stages[DECODE_STAGE].num_work;
    weir_snapshot_free(s);
    return frames;
}

/* Until as many slots work as were set, and the tasks before have ended. */
static void settle(clip_run *run, uint32_t slots, double task_s)
{
    bool holds = false;
    while (!holds) {
        weir_snapshot *s;
        wait_s(0.02);
        if (weir_pipeline_snapshot(clip_run_pipeline(run), &s) != WEIR_OK)
            return;
        holds = s->stages[DECODE_STAGE].slots == slots;
        weir_snapshot_free(s);
    }
    wait_s(task_s);
}

static double measure_setting(clip_run *run, uint32_t slots, uint32_t threads, double task_s)
{
    weir_pipeline *pipeline = clip_run_pipeline(run);
    weir_pipeline_set_threads(pipeline, NULL, threads);
    weir_pipeline_set_concurrency(pipeline, "decode", slots);
    settle(run, slots, task_s);
    double start_s = now_s(), before = count_frames(run);
    wait_s(fmax(SLICE_S, FEW_TASKS * task_s));
    return (count_frames(run) - before) / (now_s() - start_s);
}

/* The mean gain of a setting over the first one, and its 95 % interval, of logarithms. */
static void compare_rounds(uint32_t setting, fixed_rates *found)
{
    double sum = 0, squares = 0, mean, num = found->num_rounds;
    found->frames_per_s[setting] = 0;
    for (int i = 0; i < found->num_rounds; i++) {
        sum += log(found->rates[i][setting] / found->rates[i][0]);
        found->frames_per_s[setting] += found->rates[i][setting] / num;
    }
    mean = sum / num;
    for (int i = 0; i < found->num_rounds; i++)
        squares += pow(log(found->rates[i][setting] / found->rates[i][0]) - mean, 2);
    double half = weir__student_t(num - 1) * sqrt(squares / (num - 1) / num);
    found->gains[setting] = exp(mean);
    found->low[setting] = exp(mean - half);
    found->high[setting] = exp(mean + half);
}

/* Every setting in each round, in alternating order. */
static void compare_settings(clip_run *run, const fixed_settings *settings, double task_s, int num_rounds,
                             fixed_rates *found)
{
    *found = (fixed_rates){ .num_rounds = num_rounds, .items_per_s = 1 / task_s };
    for (int round = 0; round < num_rounds; round++)
        for (uint32_t i = 0; i < settings->num; i++) {
            uint32_t which = round % 2 ? settings->num - 1 - i : i;
            found->rates[round][which] =
                fmax(1, measure_setting(run, settings->slots[which], settings->threads[which], task_s));
        }
    for (uint32_t i = 0; i < settings->num; i++)
        compare_rounds(i, found);
}

static void add_rounds(fixed_rates *to, const fixed_rates *from, const fixed_settings *settings)
{
    memcpy(to->rates[to->num_rounds], from->rates, (size_t)from->num_rounds * sizeof from->rates[0]);
    to->num_rounds += from->num_rounds;
    for (uint32_t i = 0; i < settings->num; i++)
        compare_rounds(i, to);
}

/* The time of a task in one slot. */
static double time_task(clip_run *run)
{
    double start_s = now_s();
    uint64_t before = clip_run_num_taken(run);
    while (clip_run_num_taken(run) < before + 3 || now_s() < start_s + 1)
        wait_s(0.01);
    return (now_s() - start_s) / (double)(clip_run_num_taken(run) - before);
}

typedef struct clip_job {
    const bench_files *files;
    const clip_settings *settings;
    fixed_settings fixed;
    fixed_rates truth;
    double task_s;
} clip_job;

static int measure_truth(const void *argument, void *result)
{
    const clip_job *job = argument;
    clip_run *run = clip_run_start(job->files, job->fixed.slots[0], job->fixed.threads[0], NULL);
    if (!run)
        return -1;
    time_task(run); /* the start-up */
    compare_settings(run, &job->fixed, time_task(run), NUM_ROUNDS, result);
    clip_run_end(run);
    return 0;
}

static uint32_t best_of(const clip_job *job)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < job->fixed.num; i++)
        if (job->truth.frames_per_s[i] > job->truth.frames_per_s[best])
            best = i;
    return best;
}

/* -- explain */

typedef struct clip_answer {
    bool is_known, is_right, is_in_time;
    bool names_decode, names_cpus, has_twice;
    double low, high; /* of what twice the slots bring */
    double elapsed_s, num_items, others_cpus;
    double share; /* tune: of the best fixed setting */
    char text[400];
} clip_answer;

static bool is_within(const clip_answer *answer, time_limit limit)
{
    return answer->num_items <= limit.num_items || answer->elapsed_s <= limit.seconds;
}

/* What twice the slots bring, as measured; NULL = it was not. */
static const weir_verdict_advice *find_twice(const weir_verdict *v)
{
    for (size_t i = 0; i < v->num_advice; i++)
        if (v->advice[i].is_measured && v->advice[i].slots == 2)
            return &v->advice[i];
    return NULL;
}

/* Settings 1 of the truth are twice the slots of settings 0. Where other programs take CPUs, these are a limit, too. */
static bool is_truth(const clip_answer *answer, const fixed_rates *truth)
{
    return (answer->names_decode || answer->names_cpus) && answer->has_twice && answer->high >= truth->low[1] &&
           answer->low <= truth->high[1];
}

static void take_verdict(const clip_job *job, const weir_verdict *v, clip_answer *answer)
{
    const weir_verdict_advice *twice = find_twice(v);
    char gain[80] = "not measured";
    if (twice)
        snprintf(gain, sizeof gain, "%.2f (%.2f to %.2f)", twice->gain, twice->low, twice->high);
    answer->is_known = true;
    answer->names_decode =
        (v->kind == WEIR_VERDICT_SLOTS || v->kind == WEIR_VERDICT_THREADS) && strstr(v->name, "decode");
    answer->names_cpus = v->kind == WEIR_VERDICT_CPUS;
    answer->has_twice = twice != NULL;
    answer->low = twice ? twice->low : 0;
    answer->high = twice ? twice->high : 0;
    snprintf(answer->text, sizeof answer->text, "%s:%s %.0f %%; twice the slots: %s", weir_verdict_word(v->kind),
             v->name, 100 * v->confidence, gain);
    if (job->settings->verbose)
        weir_verdict_write(v, WEIR_VERDICT_ALL, 0, stderr);
}

static void show_line(void *self, const char *line)
{
    (void)self;
    fprintf(stderr, "%s\n", line);
}

static int explain_clips(const void *argument, void *result)
{
    const clip_job *job = argument;
    clip_answer *answer = result;
    weir_verdict *v = NULL;
    weir_error error = { 0 };
    weir_live_options options = { .no_speedups = true, .progress = job->settings->verbose ? show_line : NULL };
    clip_run *run = clip_run_start(job->files, 1, 1, NULL);
    if (!run)
        return -1;
    time_task(run);
    bench_background_load before = bench_background_load_now();
    double start_s = now_s(), num = (double)clip_run_num_taken(run);
    int status = weir_explain_live(clip_run_pipeline(run), &options, &v, &error);
    answer->elapsed_s = now_s() - start_s;
    answer->num_items = (double)clip_run_num_taken(run) - num;
    answer->others_cpus = bench_others_cpus(&before);
    answer->is_in_time = is_within(answer, of_answer);
    if (status == WEIR_OK)
        take_verdict(job, v, answer);
    else
        snprintf(answer->text, sizeof answer->text, "%.300s", error.message);
    weir_verdict_free(v);
    clip_run_end(run);
    return 0;
}

/* -- tune */

/* What the tuner does, and says. */
typedef struct tuner_watch {
    volatile bool rests;
    bool is_verbose;
    char first_forecast[120]; /* of how long a trial takes; "" = none */
} tuner_watch;

static void see_decision(void *self, const weir_tuner_decision *decision)
{
    tuner_watch *watch = self;
    watch->rests |= decision->action == WEIR_TUNER_RESTED;
}

static void see_event(void *self, const weir_event *event)
{
    tuner_watch *watch = self;
    const char *takes = strcmp(event->name, "tuner") == 0 && event->detail ? strstr(event->detail, "takes ") : NULL;
    if (takes && !*watch->first_forecast)
        snprintf(watch->first_forecast, sizeof watch->first_forecast, "%.100s", takes);
    if (watch->is_verbose && strcmp(event->name, "tuner") == 0)
        fprintf(stderr, "tuner: %s\n", event->detail ? event->detail : "");
}

/* The settings at the end of the run against the best fixed ones, both in turn. */
static void judge_tuned(const clip_job *job, clip_run *run, clip_answer *answer)
{
    weir_snapshot *s;
    fixed_rates found;
    uint32_t best = best_of(job);
    if (weir_pipeline_snapshot(clip_run_pipeline(run), &s) != WEIR_OK)
        return;
    fixed_settings both = { .slots = { job->fixed.slots[best], s->stages[DECODE_STAGE].concurrency },
                            .threads = { job->fixed.threads[best], s->threads },
                            .num = 2 };
    weir_snapshot_free(s);
    bool is_best = both.slots[0] == both.slots[1] && both.threads[0] == both.threads[1];
    answer->share = 1;
    double high = 1;
    if (!is_best) {
        compare_settings(run, &both, job->task_s, MOST_ROUNDS, &found);
        answer->share = found.gains[1];
        high = found.high[1];
    }
    answer->is_known = true;
    answer->is_right = (answer->share >= ENOUGH || high >= 1) && answer->is_in_time;
    snprintf(answer->text, sizeof answer->text, "%u slots, %u threads: %.0f %% of %u and %u", both.slots[1],
             both.threads[1], 100 * answer->share, both.slots[0], both.threads[0]);
}

static int tune_clips(const void *argument, void *result)
{
    const clip_job *job = argument;
    clip_answer *answer = result;
    tuner_watch watch = { .is_verbose = job->settings->verbose };
    weir_tuner *tuner;
    weir_error error = { 0 };
    weir_observer observer = { .self = &watch, .event = see_event };
    clip_run *run = clip_run_start(job->files, 1, 1, &observer);
    if (!run)
        return -1;
    time_task(run);
    bench_background_load before = bench_background_load_now();
    double start_s = now_s(), num = (double)clip_run_num_taken(run);
    weir_tuner_options options = { .decided = see_decision, .decided_self = &watch };
    if (weir_tuner_start(clip_run_pipeline(run), &options, &tuner, &error) != WEIR_OK) {
        fprintf(stderr, "weir-bench: %s\n", error.message);
        clip_run_end(run);
        return -1;
    }
    do {
        wait_s(0.1);
        answer->elapsed_s = now_s() - start_s;
        answer->num_items = (double)clip_run_num_taken(run) - num;
    } while (!watch.rests && is_within(answer, of_tuning));
    answer->is_in_time = true; /* its settings are judged as they are then */
    weir_tuner_free(tuner);
    answer->others_cpus = bench_others_cpus(&before);
    judge_tuned(job, run, answer);
    size_t used = strlen(answer->text);
    snprintf(answer->text + used, sizeof answer->text - used, "%s; \"%s\"", watch.rests ? "; it rests" : "",
             *watch.first_forecast ? watch.first_forecast : "does not say how long it takes");
    clip_run_end(run);
    return 0;
}

/* -- a scene */

static void report_answer(bench_report *report, const char *name, const char *what, const clip_job *job,
                          const clip_answer *answer)
{
    bench_report_row(report, "verdict");
    bench_report_text(report, "pipeline", name);
    bench_report_text(report, "from", what);
    bench_report_text(report, "answer", answer->is_right ? "right" : answer->is_known ? "WRONG" : "unsure");
    bench_report_text(report, "verdict", answer->text);
    bench_report_number(report, "items_per_s", job->truth.items_per_s);
    bench_report_number(report, "true_gain", job->truth.gains[1]);
    bench_report_number(report, "seconds", answer->elapsed_s);
    bench_report_number(report, "items", answer->num_items);
    bench_report_number(report, "share_of_best", answer->share);
    bench_report_number(report, "others_cpus", answer->others_cpus);
}

static void print_answer(const char *name, const char *what, const clip_answer *answer)
{
    printf("%-34s %-8s %-12s %s; %.0f s, %.0f items%s (others: %.1f CPUs)\n", name, what,
           answer->is_right   ? "right"
           : answer->is_known ? "WRONG"
                              : "unsure",
           answer->text, answer->elapsed_s, answer->num_items, answer->is_in_time ? "" : ", too late",
           answer->others_cpus);
    fflush(stdout);
}

static void print_truth(const char *name, const clip_job *job)
{
    uint32_t best = best_of(job);
    printf("%-34s truth    %.2f files per second in one slot; two: %.2f (%.2f to %.2f); best: %u slots, %.2f\n", name,
           job->truth.items_per_s, job->truth.gains[1], job->truth.low[1], job->truth.high[1], job->fixed.slots[best],
           job->truth.gains[best]);
}

static int run_clips(const char *name, const bench_files *files, const clip_settings *settings, bench_report *report,
                     clip_score *score)
{
    clip_job job = { .files = files,
                     .settings = settings,
                     .fixed = { .slots = { 1, 2, 3, 4 }, .threads = { 1, 2, 3, 4 }, .num = NUM_SETTINGS } };
    clip_answer explained = { .is_known = false }, tuned = { .is_known = false };
    fixed_rates after;
    bench_usage usage;
    if (bench_measure(measure_truth, &job, &job.truth, sizeof job.truth, &usage) != 0 ||
        bench_measure(explain_clips, &job, &explained, sizeof explained, &usage) != 0 ||
        bench_measure(measure_truth, &job, &after, sizeof after, &usage) != 0)
        return -1;
    add_rounds(&job.truth, &after, &job.fixed);
    job.task_s = 1 / job.truth.items_per_s;
    explained.is_right = explained.is_known && explained.is_in_time && is_truth(&explained, &job.truth);
    print_truth(name, &job);
    print_answer(name, "live", &explained);
    report_answer(report, name, "live", &job, &explained);
    if (bench_measure(tune_clips, &job, &tuned, sizeof tuned, &usage) != 0)
        return -1;
    print_answer(name, "tune", &tuned);
    report_answer(report, name, "tune", &job, &tuned);
    score->num_explained++;
    score->num_explained_right += explained.is_right;
    score->num_tuned++;
    score->num_tuned_right += tuned.is_right;
    return 0;
}

static int run_folder(const char *name, const char *folder, const clip_settings *settings, bench_report *report,
                      clip_score *score)
{
    bench_files files = { 0 };
    int status = bench_files_find(&files, folder, NULL);
    if (status == 0)
        status = run_clips(name, &files, settings, report, score);
    bench_files_free(&files);
    return status;
}

int clip_bench_run(const clip_settings *settings, bench_report *report, clip_score *score)
{
    char folder[CLIP_MOST_PATH];
    static const char yours[] = "clips of your folder";
    int status = 0;
    if (settings->dataset_dir)
        return !settings->only || strstr(yours, settings->only)
                   ? run_folder(yours, settings->dataset_dir, settings, report, score)
                   : 0;
    for (size_t i = 0; i < num_clip_scenes; i++) {
        const clip_scene *scene = &clip_scenes[i];
        if (settings->only && !strstr(scene->name, settings->only))
            continue;
        if (clip_scene_make(scene, folder) != 0)
            return -1;
        if (run_folder(scene->name, folder, settings, report, score) != 0)
            status = -1;
        clip_scene_remove(folder);
    }
    return status;
}
