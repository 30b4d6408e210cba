/*
 * The answer and the gain are judged apart. The answer is right if it names a limit of the truth. It is decided if its
 * confidence is at least WEIR_VERDICT_LIKELY. The gain is right if the interval that the verdict has measured and the
 * range of the truth overlap. Where all lengths are constant and no other program computes, that range is computed. Else
 * it is measured in a run of its own, after the verdict.
 *
 * Where other programs compute, those of the scene or others, the truth is found again with the delays of the run. A
 * pipeline of which more than three answers are then right is not judged, whatever the verdict says.
 */
#include "bench/verdict/random_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>
#include <weir/pipeline.h>

#include "bench/harness/measure.h"
#include "bench/verdict/gain_measure.h"
#include "bench/verdict/random_scene.h"
#include "bench/verdict/scene_trial.h"
#include "tools/cli/memory.h"

typedef struct random_job {
    const random_scene *of;
    const random_settings *settings;
    uint32_t cpus;
} random_job;

/* CPUs that other programs may use without being noticed: so much a machine that does nothing else uses at times. */
#define LITTLE_LOAD 0.25

/* A gain that was said, beside the true one. */
typedef struct gain_check {
    bool is_asked, is_measured, is_contained;
    gain_range truth;
    said_gain said;
} gain_check;

/* Without pointers, because it comes from another process. */
typedef struct random_result {
    scene_result trial;
    gain_check doubling, together;
    char answers[sizeof((scene_truth *)0)->answers]; /* the truth, with the programs that really computed meanwhile */
    bool is_loaded;                                  /* there are some */
} random_result;

/* -- one pipeline, in a process of its own */

/* The mean time of an item in the slots of all stages. */
static double task_s(const random_scene *of)
{
    double seconds = 0;
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (isfinite(of->truth.bounds.high[i]))
            seconds += of->scene.stages[i].slots / of->truth.bounds.high[i];
    return seconds;
}

/* False = the measured interval is wider than what twice the slots can bring, and so tells nothing. */
static bool find_gain(const random_scene *of, uint32_t stages, const gain_range *computed, gain_check *check)
{
    measured_gain found;
    check->truth = *computed;
    if (!of->truth.is_uncertain || of->truth.changes)
        return true;
    check->is_measured = true;
    if (!gain_measure(&of->scene, stages, of->truth.items_per_s, task_s(of), &found) || found.high > 2 * found.low)
        return false;
    double noise = 0.05; /* of two runs, on a machine that others use */
    check->truth = (gain_range){ found.low * (1 - noise), found.high * (1 + noise) };
    return true;
}

static void check_gain(const random_scene *of, uint32_t stages, const gain_range *computed, const said_gain *said,
                       gain_check *check)
{
    check->said = *said;
    if (said->high <= 0 || computed->most <= 0 || of->truth.queues_limit)
        return;
    check->is_asked = find_gain(of, stages, computed, check);
    check->is_contained = check->is_asked && said->high >= check->truth.least && said->low <= check->truth.most;
}

static void check_gains(const random_scene *of, random_result *result)
{
    uint32_t together = of->truth.limits & ((1U << SCENE_STAGES) - 1);
    for (uint32_t i = 0; i < SCENE_STAGES; i++) {
        const char *name = of->scene.stages[i].name;
        const gain_range *computed = &of->truth.of_stage[i];
        if (name && strcmp(name, result->trial.stage) == 0)
            check_gain(of, 1U << i, computed, &result->trial.doubling, &result->doubling);
    }
    check_gain(of, together, &of->truth.together, &result->trial.together, &result->together);
}

static bool others_compute(const random_job *job, const scene_result *result)
{
    return job->of->scene.load > 0 || result->others_cpus > LITTLE_LOAD;
}

/* With the delays that the run had by programs that compute. */
static void find_truth_again(const random_job *job, const scene_result *result, random_scene *again)
{
    *again = *job->of;
    if (result->delay.slowdown <= 0 || !others_compute(job, result))
        return;
    again->scene.load += 1; /* there is one at least */
    scene_truth_find(&again->scene, job->cpus, &result->delay, &again->truth);
    again->scene.load = job->of->scene.load;
}

static void ignore_line(void *self, weir_log_level level, const char *line)
{
    (void)self;
    (void)level;
    (void)line;
}

/* Tasks fail, and are stopped, on purpose: the log says nothing of it. */
static int run_random(const void *argument, void *result)
{
    const random_job *job = argument;
    random_result *of = result;
    random_scene again;
    weir_log_set_function(ignore_line, NULL);
    scene_trial trial = { .of = &job->of->scene,
                          .run_s = job->settings->run_s,
                          .is_live = !job->settings->is_offline,
                          .verbose = job->settings->verbose,
                          .live_s = 600,
                          .start_up_s = task_s(job->of) + 2 / job->of->truth.items_per_s };
    if (scene_trial_run(&trial, &of->trial) != 0)
        return -1;
    find_truth_again(job, &of->trial, &again);
    snprintf(of->answers, sizeof of->answers, "%s", again.truth.answers);
    of->is_loaded = others_compute(job, &of->trial);
    of->trial.answer = of->trial.is_known ? scene_trial_judge(of->answers, &of->trial, true) : ANSWER_UNSURE;
    if (!trial.is_live)
        scene_trial_excuse_load(&job->of->scene, &of->trial);
    if (random_scene_count_answers(of->answers) > RANDOM_MOST_ANSWERS)
        of->trial.answer = ANSWER_LOADED;
    else if (trial.is_live && of->trial.answer == ANSWER_RIGHT)
        check_gains(&again, of);
    return 0;
}

/* -- what is printed */

static void put_bounds(const random_scene *of)
{
    const char *separator = "";
    for (uint32_t i = 0; i < NUM_BOUNDS; i++) {
        char name[64];
        double low = of->truth.bounds.low[i], high = of->truth.bounds.high[i];
        if (!isfinite(low))
            continue;
        scene_bound_name(&of->scene, i, name, sizeof name);
        printf("%s%s %.3g", separator, name, low);
        if (high > low * (1 + BOUND_EQUAL))
            printf(" to %.3g", high);
        separator = ", ";
    }
}

static void put_scene(const random_scene *of)
{
    const scene_truth *truth = &of->truth;
    printf("%s: %s\n    truth: %s%s%s (items/s: ", of->name, of->line, truth->answers,
           truth->is_joint ? ", several limits" : "", truth->changes ? ", it changes" : "");
    put_bounds(of);
    printf(")\n");
}

static void put_gain(const char *what, const gain_check *check)
{
    if (check->said.high <= 0)
        return;
    printf("; %s %.2f (%.2f to %.2f)", what, check->said.gain, check->said.low, check->said.high);
    if (check->is_asked)
        printf(", %s %.2f to %.2f: %s", check->is_measured ? "measured" : "computed", check->truth.least,
               check->truth.most, check->is_contained ? "in it" : "OUT");
}

static void put_result(const random_result *result)
{
    bool is_guess = result->trial.answer == ANSWER_RIGHT && !result->trial.is_decided;
    printf("    %s%s: %s", answer_words[result->trial.answer], is_guess ? ", but unsure" : "", result->trial.verdict);
    if (result->trial.items_per_s > 0)
        printf("; %.3g items/s", result->trial.items_per_s);
    put_gain("said", &result->doubling);
    put_gain("together", &result->together);
    if (result->is_loaded && result->trial.delay.slowdown > 0)
        printf("; others compute: computing takes %.2f x as long, waits end %.2f ms late: %s",
               result->trial.delay.slowdown, result->trial.delay.delay_ms, result->answers);
    printf(" (others: %.1f CPUs)\n", result->trial.others_cpus);
    fflush(stdout);
}

/* -- the score */

static const char *const kinds[] = { "outside",  "slots", "cpus",  "threads", "source",
                                     "consumer", "none",  "queue", "failures" };
enum { NUM_KINDS = sizeof kinds / sizeof kinds[0], ALONE = 0, JOINT, CHANGING, NUM_TIES };
static const char *const ties[NUM_TIES] = { "alone", "joint", "changing" };

typedef struct random_score {
    int answers[NUM_KINDS][NUM_TIES][2][NUM_ANSWERS]; /* [..][quiet, loaded][..] */
    int num_guessed;                                  /* of the unsure ones, those whose first word is right */
    int num_asked, num_contained, num_measured, num_measured_contained;
    int num_joint, num_joint_named; /* stages that are the limit together, and the verdict says so */
} random_score;

static uint32_t kind_of(const scene_truth *truth)
{
    uint32_t kind = 0, length = (uint32_t)strcspn(truth->answers, ": ");
    const char *word = truth->queues_limit ? "queue" : truth->answers;
    if (truth->queues_limit)
        length = 5;
    while (kind + 1 < NUM_KINDS && (strlen(kinds[kind]) != length || strncmp(kinds[kind], word, length) != 0))
        kind++;
    return kind;
}

static void add_gain(random_score *score, const gain_check *check)
{
    if (!check->is_asked)
        return;
    score->num_asked++;
    score->num_contained += check->is_contained;
    score->num_measured += check->is_measured;
    score->num_measured_contained += check->is_measured && check->is_contained;
}

static void add_result(random_score *score, const random_scene *of, const random_result *result, bool is_live)
{
    const scene_truth *truth = &of->truth;
    uint32_t tie = truth->changes ? CHANGING : truth->is_joint ? JOINT : ALONE;
    answer said = result->trial.answer;
    score->num_guessed += said == ANSWER_RIGHT && !result->trial.is_decided;
    if (said == ANSWER_RIGHT && !result->trial.is_decided)
        said = ANSWER_UNSURE;
    score->answers[kind_of(truth)][tie][result->is_loaded][said]++;
    add_gain(score, &result->doubling);
    add_gain(score, &result->together);
    if (is_live && truth->together.most > 0 && !truth->changes && !result->is_loaded &&
        result->trial.answer == ANSWER_RIGHT) {
        score->num_joint++;
        score->num_joint_named += result->trial.names_several;
    }
}

static void put_answers(const char *what, const int answers[NUM_ANSWERS])
{
    int num = 0;
    for (int i = 0; i < NUM_ANSWERS; i++)
        num += answers[i];
    if (num == 0)
        return;
    int num_wrong = answers[ANSWER_WRONG] + answers[ANSWER_SURELY_WRONG],
        num_decided = answers[ANSWER_RIGHT] + num_wrong;
    printf("%-34s %3d: %d of %d decided right, %d unsure, %d wrong, %d of them surely", what, num,
           answers[ANSWER_RIGHT], num_decided, answers[ANSWER_UNSURE], num_wrong, answers[ANSWER_SURELY_WRONG]);
    if (answers[ANSWER_LOADED])
        printf(", %d not judged: others used the CPUs", answers[ANSWER_LOADED]);
    printf("\n");
}

static void put_score(const random_score *score)
{
    int all[NUM_ANSWERS] = { 0 };
    for (uint32_t i = 0; i < NUM_KINDS; i++)
        for (uint32_t j = 0; j < NUM_TIES; j++)
            for (uint32_t k = 0; k < 2; k++) {
                char what[64];
                snprintf(what, sizeof what, "%s, %s%s", kinds[i], ties[j], k ? ", others compute" : "");
                put_answers(what, score->answers[i][j][k]);
                for (int l = 0; l < NUM_ANSWERS; l++)
                    all[l] += score->answers[i][j][k][l];
            }
    put_answers("all", all);
    if (score->num_guessed)
        printf("of those unsure, %d name a right limit first\n", score->num_guessed);
    if (score->num_asked)
        printf("gains: %d of %d intervals contain the truth (of %d whose truth was measured: %d)\n",
               score->num_contained, score->num_asked, score->num_measured, score->num_measured_contained);
    if (score->num_joint)
        printf("stages that are the limit together: said of %d of %d\n", score->num_joint_named, score->num_joint);
}

static void report_gain(bench_report *report, const char *what, const gain_check *check)
{
    const struct {
        const char *end;
        double value;
    } values[] = { { "", check->said.gain },
                   { "_low", check->said.low },
                   { "_high", check->said.high },
                   { "_true_least", check->truth.least },
                   { "_true_most", check->truth.most },
                   { "_true_is_measured", check->is_measured } };
    if (!check->is_asked)
        return;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", what, values[i].end);
        bench_report_number(report, name, values[i].value);
    }
}

static void report_scene(bench_report *report, const random_settings *settings, const random_scene *of)
{
    bench_report_row(report, "verdict");
    bench_report_text(report, "pipeline", of->name);
    bench_report_number(report, "seed", (double)settings->seed);
    bench_report_text(report, "scene", of->line);
    bench_report_text(report, "truth", of->truth.answers);
    bench_report_number(report, "true_items_per_s", of->truth.items_per_s);
    bench_report_number(report, "is_joint", of->truth.is_joint);
    bench_report_number(report, "changes", of->truth.changes);
    bench_report_number(report, "other_programs", of->scene.load);
}

static void report_result(bench_report *report, const random_settings *settings, const random_result *result)
{
    bench_report_text(report, "from", settings->is_offline ? "offline" : "live");
    bench_report_text(report, "answer", answer_words[result->trial.answer]);
    bench_report_text(report, "verdict", result->trial.verdict);
    bench_report_number(report, "others_cpus", result->trial.others_cpus);
    report_gain(report, "gain", &result->doubling);
    report_gain(report, "gain_together", &result->together);
}

static int run_one(const random_job *job, bench_report *report, random_score *score)
{
    random_result result = { .trial = { .is_known = false } };
    bench_usage usage;
    if (bench_measure(run_random, job, &result, sizeof result, &usage) != 0)
        return -1;
    put_result(&result);
    report_result(report, job->settings, &result);
    add_result(score, job->of, &result, !job->settings->is_offline);
    return 0;
}

int random_bench_run(const random_settings *settings, bench_report *report)
{
    uint32_t cpus = weir_cpu_budget(), num_redrawn = 0;
    int status = 0;
    random_score *score = memory_get(1, sizeof *score);
    random_scene *of = memory_get(1, sizeof *of);
    printf("%u pipelines of seed %lld, for %u CPUs\n", settings->num, (long long)settings->seed, cpus);
    for (uint32_t i = 0; i < settings->num; i++) {
        random_scene_draw((uint64_t)settings->seed, i, cpus, of);
        if (settings->only && !strstr(of->name, settings->only))
            continue;
        num_redrawn += of->num_redrawn;
        put_scene(of);
        report_scene(report, settings, of);
        if (!settings->lists)
            status = run_one(&(random_job){ of, settings, cpus }, report, score) != 0 ? -1 : status;
    }
    printf("%u draws were no pipeline that can be judged, and were drawn again\n", num_redrawn);
    put_score(score);
    free(score);
    free(of);
    return status;
}
