#include "bench/verdict/scene_trial.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/sqlite.h>
#include <weir/verdict.h>

#include "bench/harness/background_load.h"

const char *const answer_words[NUM_ANSWERS] = { "right", "unsure", "WRONG", "SURELY WRONG", "loaded" };

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

static bool is_true(const char *truth, const char *limit)
{
    char list[256], *rest = list;
    snprintf(list, sizeof list, "%s", truth);
    for (const char *word; (word = strtok_r(rest, " ", &rest));)
        if (strcmp(word, limit) == 0)
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

answer scene_trial_judge(const char *truth, const scene_result *result, bool are_gains_right)
{
    if (is_true(truth, result->limit) && are_gains_right)
        return ANSWER_RIGHT;
    if (!result->is_decided || is_true(truth, result->other))
        return ANSWER_UNSURE;
    return result->is_clear ? ANSWER_SURELY_WRONG : ANSWER_WRONG;
}

static bool are_gains_right(const scene *of, const weir_verdict *v)
{
    const weir_verdict_advice *doubling = find_doubling(v), *together = find_together(v);
    bool are_right = true;
    if (of->most > 0 && doubling)
        are_right = doubling->high >= of->least && doubling->low <= of->most;
    if (of->together_most > 0)
        are_right = are_right && together && together->high >= of->together_least &&
                    together->low <= of->together_most && (of->together_least > 1) == (*v->together != '\0');
    return are_right;
}

static void describe(const weir_verdict *v, scene_result *result)
{
    char gain[80] = "";
    const weir_verdict_advice *doubling = find_doubling(v);
    name_limit(v->kind, v->name, result->limit, sizeof result->limit);
    if (v->other_kind != WEIR_VERDICT_UNKNOWN)
        name_limit(v->other_kind, v->other_name, result->other, sizeof result->other);
    if (doubling)
        snprintf(gain, sizeof gain, "; twice the slots: %.2f (%.2f to %.2f)", doubling->gain, doubling->low,
                 doubling->high);
    if (*v->together)
        snprintf(gain, sizeof gain, "; %.50s together", v->together);
    snprintf(result->verdict, sizeof result->verdict, "%s %.0f %%%s%s%s", result->limit, 100 * v->confidence,
             *result->other ? " or " : "", result->other, gain);
}

static void note_gains(const weir_verdict *v, scene_result *result)
{
    const weir_verdict_advice *doubling = find_doubling(v), *together = find_together(v);
    const char *colon = strrchr(v->name, ':'), *own = colon ? colon + 1 : v->name;
    snprintf(result->stage, sizeof result->stage, "%.*s", (int)strcspn(own, "["), own);
    if (doubling && doubling->is_measured)
        result->doubling = (said_gain){ doubling->gain, doubling->low, doubling->high };
    if (together)
        result->together = (said_gain){ together->gain, together->low, together->high };
    result->is_clear = v->confidence >= WEIR_VERDICT_CLEAR;
    result->is_decided = v->kind != WEIR_VERDICT_UNKNOWN && v->confidence >= WEIR_VERDICT_LIKELY;
    result->items_per_s = isnan(v->items_per_s) ? 0 : v->items_per_s;
    result->names_several = *v->together != '\0';
}

static void take_verdict(const scene_trial *job, const weir_verdict *v, scene_result *result)
{
    result->is_known = true;
    describe(v, result);
    note_gains(v, result);
    result->answer = scene_trial_judge(job->of->truth, result, !job->is_live || are_gains_right(job->of, v));
    if (job->verbose)
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
static void check_predictions(const scene_trial *job, const weir_verdict *v, scene_result *result)
{
    double seconds = job->run_s;
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

static int explain_recording(const scene_trial *job, scene_result *result)
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
    scene_run *run = status == WEIR_OK ? scene_start(job->of, NULL, (int64_t)(1e9 * job->run_s), &observer, 1) : NULL;
    if (run)
        scene_end(run);
    weir_sqlite_close(writer, NULL);
    if (run && weir_recording_open(path, &recording, &error) == WEIR_OK &&
        weir_verdict_explain(recording, &(weir_filter){ .run_id = WEIR_LAST_RUN }, &v, &error) == WEIR_OK) {
        take_verdict(job, v, result);
        check_predictions(job, v, result);
    } else
        snprintf(result->verdict, sizeof result->verdict, "no verdict: %.300s", error.message);
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

/* Of all threads of this process, since each began: the kernel's sums of time on a CPU, time waiting for one, and times
   that it got one. */
static void note_delays(scene_result *result)
{
    DIR *threads = opendir("/proc/self/task");
    double run_ns = 0, delay_ns = 0, num_turns = 0;
    for (const struct dirent *entry; threads && (entry = readdir(threads));) {
        char path[320];
        double run, delay, turns;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
        FILE *file = *entry->d_name != '.' ? fopen(path, "r") : NULL;
        if (file && fscanf(file, "%lf %lf %lf", &run, &delay, &turns) == 3) {
            run_ns += run;
            delay_ns += delay;
            num_turns += turns;
        }
        if (file)
            fclose(file);
    }
    if (threads)
        closedir(threads);
    if (run_ns > 0 && num_turns > 0)
        result->delay = (cpu_delay){ .slowdown = 1 + delay_ns / run_ns, .delay_ms = 1e-6 * delay_ns / num_turns };
}

static int explain_run(const scene_trial *job, scene_result *result)
{
    weir_verdict *v = NULL;
    weir_error error = { 0 };
    scene_run *run =
        scene_start(job->of, NULL, job->live_s > 0 ? (int64_t)(1e9 * job->live_s) : 60 * WEIR_SECOND, NULL, 0);
    if (!run)
        return -1;
    usleep((useconds_t)(1e6 * (0.3 + job->start_up_s)));
    if (weir_explain_live(scene_pipeline(run), &(weir_live_options){ .no_speedups = true }, &v, &error) == WEIR_OK)
        take_verdict(job, v, result);
    else
        snprintf(result->verdict, sizeof result->verdict, "no verdict: %.300s", error.message);
    weir_verdict_free(v);
    note_delays(result);
    weir_pipeline_stop(scene_pipeline(run));
    scene_end(run);
    return 0;
}

int scene_trial_run(const void *trial, void *result)
{
    const scene_trial *job = trial;
    scene_result *of = result;
    bench_background_load before = bench_background_load_now();
    int status = job->is_live ? explain_run(job, of) : explain_recording(job, of);
    of->others_cpus = bench_others_cpus(&before);
    return status;
}

void scene_trial_excuse_load(const scene *of, scene_result *result)
{
    bool computes = strncmp(result->verdict, "cpus", 4) == 0 || strncmp(result->verdict, "slots", 5) == 0 ||
                    strncmp(result->verdict, "threads", 7) == 0;
    for (size_t i = 0; i < sizeof of->stages / sizeof of->stages[0]; i++)
        computes |= of->stages[i].work.cpu_ms > 0;
    if (result->is_known && result->answer >= ANSWER_WRONG && computes && !of->load && result->others_cpus > 0.5)
        result->answer = ANSWER_LOADED;
}
