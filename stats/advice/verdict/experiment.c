/*
 * weir_explain_live(): the rules name a candidate from a sample of the run, trials measure what more of it brings, and the
 * verdict says what was measured.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/struct_copy.h>

#include "stats/advice/verdict/live.h"

#define SAMPLE_TIME_NS WEIR_SECOND

/*
 * A trial decides if its interval says that the change brings something, or nothing that is worth it. The verdict then has
 * the confidence of the interval. If it does not decide, the verdict is as certain as the sample made it.
 */
#define MEASURED 0.95

bool weir__live_brings_more(const live_trial *t)
{
    return t->low > 1 && t->gain >= WEIR_WORTH_GAIN;
}

bool weir__live_brings_nothing(const live_trial *t)
{
    return t->high < WEIR_WORTH_GAIN && !weir__live_brings_more(t);
}

double weir__live_seconds_to_decide(const live_trial *t)
{
    double half = log(t->high / t->gain);
    double to_more = t->gain >= WEIR_WORTH_GAIN ? log(t->gain) : 0, to_nothing = log(WEIR_WORTH_GAIN / t->gain);
    return t->elapsed_s * pow(half / fmax(fmax(to_more, to_nothing), 0.01), 2);
}

bool weir__live_brings_as_much(const live_trial *part, const live_trial *whole)
{
    return weir__live_brings_more(part) && part->high >= whole->low;
}

static bool decides(const live_trial *t)
{
    return weir__live_brings_more(t) || weir__live_brings_nothing(t);
}

#define FASTER 0.2 /* of virtual speedups */

enum { MOST_SPEEDUPS = 8 };

typedef struct experiment {
    weir_pipeline *pipeline;
    weir_live_options options;
    verdict_view view;
    full_verdict *verdict;
    int64_t start_ns;
    double other_s; /* time with other settings */
} experiment;

static void report_progress(const experiment *e, const char *format, ...) WEIR_PRINTF(2, 3);

static void report_progress(const experiment *e, const char *format, ...)
{
    char line[VERDICT_TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (e->options.progress)
        e->options.progress(e->options.progress_self, line);
}

/* "+98 % (+95 to +101 %)" */
static void format_gain(char *text, size_t size, const live_trial *t)
{
    snprintf(text, size, "%+.0f %% (%+.0f to %+.0f %%)", 100 * (t->gain - 1), 100 * (t->low - 1),
             100 * (t->high - 1));
}

void weir__live_keep_trial(full_verdict *v, const live_set *set, const live_trial *t)
{
    weir_verdict_advice *advice = set->num == 1 ? weir__verdict_find_setting(v, set->now, set->other) : NULL;
    advice = advice ? advice : weir__verdict_new_setting(v, set);
    advice->is_measured = true;
    advice->error = NAN;
    weir__verdict_text(advice->assumes, "%s", "");
    advice->gain = t->gain;
    advice->low = t->low;
    advice->high = t->high;
    advice->items_per_s = t->other_rate;
}

static const live_trial not_tried = { .gain = NAN, .low = NAN, .high = NAN };

/* Measures another setting; NAN gains if the run ended, or the engine refused. */
static live_trial run_trial(experiment *e, const int *nodes, uint32_t num_nodes, const live_set *set)
{
    live_trial t;
    char gain[80], change[VERDICT_TEXT_BYTES];
    int64_t settle_ns = weir__live_settle_ns(&e->view, nodes, num_nodes, e->options.setting_ns / 3);
    live_unit unit = weir__live_unit(&e->view, e->options.slice_ns);
    weir__verdict_describe_set(change, sizeof change, set);
    weir__live_forecast(gain, sizeof gain, settle_ns, unit, &e->options);
    report_progress(e, "%s: %s", change, gain);
    int status = weir__live_try(e->pipeline, set, settle_ns, unit, &e->options, NULL, &t);
    e->other_s += t.elapsed_s / 2;
    if (status != WEIR_OK || isnan(t.gain)) {
        const char *why = t.needs_memory      ? "it needs too much memory"
                          : status != WEIR_OK ? weir_status_text(status)
                                              : "too few items, or the end of the run";
        report_progress(e, "%s: not measured: %s", change, why);
        weir__verdict_add_evidence(e->verdict, "%s was not measured: %s", change, why);
        return not_tried;
    }
    format_gain(gain, sizeof gain, &t);
    report_progress(e, "%s: %s", change, gain);
    if (!decides(&t))
        weir__verdict_add_evidence(e->verdict, "%s: %.0f s did not decide; about %.0f s would", change, t.elapsed_s,
                                   fmax(t.elapsed_s, weir__live_seconds_to_decide(&t)));
    weir__live_keep_trial(e->verdict, set, &t);
    return t;
}

/* Twice the slots of each. *set: what was tried. */
static live_trial try_set(experiment *e, const int *nodes, uint32_t num, live_set *set)
{
    if (!weir__live_double(e->pipeline, nodes, num, WEIR_MAX_SLOTS, WEIR_MAX_SLOTS, set))
        return not_tried;
    return run_trial(e, nodes, num, set);
}

static live_trial try_slots(experiment *e, int node)
{
    live_set set;
    return node < 0 || e->view.nodes[node].is_source ? not_tried : try_set(e, &node, 1, &set);
}

/* The pool that a node runs on. */
static live_trial try_threads(experiment *e, int node, uint32_t (*change)(uint32_t threads))
{
    live_set set = { .num = 1 };
    live_setting *now = &set.now[0], *other = &set.other[0];
    bool goes_on = weir__live_setting(e->pipeline, node, now);
    if (!now->has_own)
        now->stage = NULL;
    now->slots = 0;
    *other = *now;
    other->threads = change(now->threads);
    if (!goes_on || other->threads == now->threads)
        return not_tried;
    return run_trial(e, &node, 1, &set);
}

static uint32_t twice(uint32_t threads)
{
    return 2 * threads;
}

static uint32_t one_less(uint32_t threads)
{
    return threads > 1 ? threads - 1 : threads;
}

/* -- what the trials say */

void weir__live_conclude(full_verdict *v, const live_trial *t, bool has_second_limit)
{
    char gain[80];
    size_t used = strlen(v->sentence);
    format_gain(gain, sizeof gain, t);
    used += (size_t)snprintf(v->sentence + used, sizeof v->sentence - used, " Doubled: %s.", gain);
    bool is_alone = weir__live_brings_nothing(t) && !has_second_limit;
    if (is_alone && used < sizeof v->sentence)
        snprintf(v->sentence + used, sizeof v->sentence - used, " It serves %.3g items per second whatever you set.",
                 t->rate);
    v->shown.confidence = weir__live_brings_more(t) || is_alone ? MEASURED : v->shown.confidence;
}

void weir__live_conclude_set(full_verdict *v, const live_set *set, const live_trial *t, const live_trial *alone)
{
    char names[VERDICT_TEXT_BYTES] = "", gain[80];
    bool has_alone = false;
    for (uint32_t i = 0; i < set->num; i++) {
        char name[VERDICT_TEXT_BYTES];
        has_alone |= strcmp(set->now[i].stage, v->name) == 0;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s",
                 i == 0             ? ""
                 : i + 1 < set->num ? ", "
                                    : " and ",
                 weir__verdict_short_name(set->now[i].stage, name, sizeof name));
    }
    format_gain(gain, sizeof gain, t);
    snprintf(v->together, sizeof v->together, "%s", names);
    weir__verdict_text(v->sentence, "The slots of %s, together: doubled, they bring %s", names, gain);
    size_t used = strlen(v->sentence);
    if (has_alone)
        snprintf(v->sentence + used, sizeof v->sentence - used, "; those of one of them alone, %+.0f %%.",
                 100 * (alone->gain - 1));
    else
        snprintf(v->name, sizeof v->name, "%s", set->now[0].stage);
    v->shown.confidence = MEASURED;
    v->shown.other_kind = WEIR_VERDICT_UNKNOWN;
    *v->other_name = *v->other_sentence = '\0';
}

static void conclude_slots(experiment *e, const node_view *n, const live_trial *t, bool has_second_limit)
{
    full_verdict *v = e->verdict;
    bool waits = v->shown.kind == WEIR_VERDICT_OUTSIDE;
    double slots = round(n->slots), for_cpu = n->cpu + n->delay;
    const char *waits_for = weir__verdict_waits_for(n);
    const char *verb = waits ? (slots > 1 ? "wait" : "waits") : slots > 1 ? "compute" : "computes";
    weir__verdict_text(v->sentence, "The slots of %s: its %.0f slot%s %s %.0f %% of the time%s%s.", n->name, slots,
                       slots > 1 ? "s" : "", verb, 100 * n->busy * (waits ? 1 - for_cpu : for_cpu),
                       waits ? " for " : "",
                       !waits      ? ""
                       : waits_for ? waits_for
                                   : "something outside weir");
    weir__live_conclude(v, t, has_second_limit);
}

/* The nodes of the set without those from `at` on; returns their number. */
static uint32_t leave_out(const int *nodes, uint32_t num, uint32_t at, uint32_t count, int *rest)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < num; i++)
        if (i < at || i >= at + count)
            rest[left++] = nodes[i];
    return left;
}

/* Halves of the set, then quarters and so on, are left out as long as the others bring as much. One stage alone is not tried:
   those that were brought nothing, and the others are used less. */
static void leave_out_idle(experiment *e, int *nodes, uint32_t *num, live_set *set, live_trial *together)
{
    for (uint32_t count = *num / 2; count > 0; count /= 2)
        for (uint32_t at = 0; at<*num && * num> 2;) {
            int rest[LIVE_MOST_PARTS];
            live_set other;
            uint32_t left = leave_out(nodes, *num, at, count, rest);
            live_trial t = left > 1 ? try_set(e, rest, left, &other) : not_tried;
            if (!weir__live_brings_as_much(&t, together)) {
                at += count;
                continue;
            }
            memcpy(nodes, rest, sizeof rest);
            *num = left;
            *set = other;
            *together = t;
        }
}

typedef enum set_answer { SET_NOT_MEASURED, SET_BRINGS_NOTHING, SET_LIMITS } set_answer;

/* No stage alone brings more: all that are used nearly as much as `node` are tried together. If they bring more, those of them
   that are needed are the limit. */
static set_answer examine_set(experiment *e, const live_trial *alone)
{
    int nodes[LIVE_MOST_PARTS];
    live_set set;
    uint32_t num = weir__live_candidates(&e->view, nodes);
    if (num < 2)
        return SET_BRINGS_NOTHING;
    live_trial t = try_set(e, nodes, num, &set);
    if (!weir__live_brings_more(&t))
        return weir__live_brings_nothing(&t) ? SET_BRINGS_NOTHING : SET_NOT_MEASURED;
    leave_out_idle(e, nodes, &num, &set, &t);
    weir__live_conclude_set(e->verdict, &set, &t, alone);
    e->verdict->shown.kind = weir__verdict_kind_of(&e->view.nodes[weir__live_find(&e->view, e->verdict->name)]);
    return SET_LIMITS;
}

/* Two stages are in use nearly as much: the one whose slots bring more is the limit. */
static void compare_candidates(experiment *e, int node, live_trial *first)
{
    full_verdict *v = e->verdict;
    int other = v->shown.other_kind == WEIR_VERDICT_SLOTS || v->shown.other_kind == WEIR_VERDICT_OUTSIDE
                    ? weir__live_find(&e->view, v->other_name)
                    : -1;
    live_trial second = other >= 0 && !weir__live_brings_more(first) ? try_slots(e, other) : not_tried;
    if (weir__live_brings_more(&second)) {
        weir_verdict_kind kind = v->shown.other_kind;
        weir__verdict_settle(v, kind, e->view.nodes[other].name, "%s", v->shown.confidence);
        *first = second;
        node = other;
    }
    set_answer set = weir__live_brings_more(first) ? SET_BRINGS_NOTHING : examine_set(e, first);
    if (set == SET_LIMITS)
        return;
    conclude_slots(e, &e->view.nodes[node], first, set == SET_NOT_MEASURED);
    if (v->shown.other_kind == WEIR_VERDICT_QUEUE) { /* a longer queue is not tried */
        v->shown.confidence = fmin(v->shown.confidence, 0.5);
        if (!weir__live_brings_nothing(first))
            return;
        weir__verdict_settle(v, WEIR_VERDICT_QUEUE, v->other_name, v->other_sentence, 0.5);
    } else if (!decides(first))
        return;
    v->shown.other_kind = WEIR_VERDICT_UNKNOWN;
    *v->other_name = *v->other_sentence = '\0';
}

static void examine_slots(experiment *e)
{
    int node = weir__live_find(&e->view, e->verdict->name);
    live_trial t = try_slots(e, node);
    if (isnan(t.gain))
        return;
    compare_candidates(e, node, &t);
    try_threads(e, node, one_less);
}

static void examine_threads(experiment *e)
{
    full_verdict *v = e->verdict;
    int node = weir__live_find(&e->view, v->name);
    live_trial t = try_threads(e, node, twice);
    if (isnan(t.gain))
        return;
    if (!weir__live_brings_nothing(&t)) {
        v->shown.confidence = decides(&t) ? MEASURED : v->shown.confidence;
        return;
    }
    /* What the tasks on the threads wait for, or the CPUs, are the limit. */
    const node_view *n = node >= 0 ? &e->view.nodes[node] : NULL;
    bool computes = n && weir__verdict_kind_of(n) == WEIR_VERDICT_SLOTS;
    if (n && !computes) {
        weir__verdict_settle(v, n->is_source ? WEIR_VERDICT_SOURCE : WEIR_VERDICT_OUTSIDE, n->name,
                             "What the tasks of %s wait for: more threads do not get more of it.",
                             v->shown.confidence);
        t = try_slots(e, node);
        if (!isnan(t.gain))
            conclude_slots(e, n, &t, true);
    }
    if (n && computes && e->view.system.idle >= HALF)
        weir__verdict_settle(v, WEIR_VERDICT_OUTSIDE, n->name,
                             "What the tasks of %s have one at a time, such as a lock: more threads do not help, "
                             "although CPUs are idle.",
                             v->shown.confidence);
    else if (n && computes)
        weir__verdict_settle(v, WEIR_VERDICT_CPUS, n->name,
                             "The CPUs: more threads do not help, most of the CPU time is for %s.",
                             v->shown.confidence);
}

/* Other programs may leave more of the CPUs to twice the slots or threads: the CPUs are the limit then as well. */
static void examine_cpus(experiment *e)
{
    full_verdict *v = e->verdict;
    int node = weir__live_find(&e->view, v->name);
    if (node < 0)
        return;
    const node_view *n = &e->view.nodes[node];
    bool is_starved = n->slots * n->thread >= HALF,
         are_taken = e->view.system.budget - e->view.system.process >= HALF;
    live_trial t = is_starved ? try_threads(e, node, twice) : try_slots(e, node);
    if (isnan(t.gain) || !decides(&t))
        return;
    if (weir__live_brings_nothing(&t)) { /* where others have CPUs, more threads would get more of them */
        v->shown.confidence = are_taken ? fmin(v->shown.confidence, 0.5) : MEASURED;
    } else if (are_taken) {
        char gain[80];
        size_t used = strlen(v->sentence);
        format_gain(gain, sizeof gain, &t);
        snprintf(v->sentence + used, sizeof v->sentence - used, " Twice the %s get more of them: %s.",
                 is_starved ? "threads" : "slots", gain);
    } else if (is_starved) {
        weir__verdict_settle(v, WEIR_VERDICT_THREADS, n->name,
                             "The threads: %s keeps them busy, and more of them get more CPU time.", MEASURED);
    } else {
        v->shown.kind = WEIR_VERDICT_SLOTS;
        conclude_slots(e, n, &t, false);
    }
}

static void examine_limits(experiment *e)
{
    report_progress(e, "candidate: %s", e->verdict->sentence);
    switch (e->verdict->shown.kind) {
    case WEIR_VERDICT_SLOTS:
    case WEIR_VERDICT_OUTSIDE: examine_slots(e); break;
    case WEIR_VERDICT_THREADS: examine_threads(e); break;
    case WEIR_VERDICT_CPUS: examine_cpus(e); break;
    case WEIR_VERDICT_QUEUE:
        weir__verdict_add_evidence(e->verdict,
                                   "a queue keeps its size while a pipeline runs: record another run with "
                                   "a longer one to see what it brings");
        break;
    default: break;
    }
}

/* -- where to optimise */

/* More than this a faster node cannot bring: the time in which it works gets shorter, and nothing else. */
static double most_of_speedup(const verdict_view *view, const node_view *n)
{
    double works = n->is_sink ? 1 - view->sink_waits : fmin(1, n->slots * n->busy);
    return 1 / (1 - FASTER * works) - 1;
}

/* False = it could not be measured. */
static bool try_speedup(experiment *e, const node_view *n, live_trial *t)
{
    live_set set = { .num = 1, .now[0] = { .stage = n->name, .is_speedup = true } };
    weir_live_options options = e->options;
    set.other[0] = set.now[0];
    set.other[0].speedup = FASTER;
    options.setting_ns /= 2;
    int node = (int)(n - e->view.nodes);
    int status =
        weir__live_try(e->pipeline, &set, weir__live_settle_ns(&e->view, &node, 1, e->options.setting_ns / 3),
                       weir__live_unit(&e->view, options.slice_ns), &options, NULL, t);
    e->other_s += t->elapsed_s / 2;
    return status == WEIR_OK && !isnan(t->gain);
}

/* Appends ", decode +17 % (+14 to +20 %)". If the gain could be no more than the precision of a trial, appends ", src
   +0 % (at most)". False = it could not be measured. */
static bool append_speedup(experiment *e, const node_view *n, char *text, size_t size)
{
    live_trial t;
    char name[100], gain[80];
    double most = most_of_speedup(&e->view, n);
    if (most < e->options.precision)
        snprintf(gain, sizeof gain, "%+.0f %% (at most)", 100 * most);
    else if (try_speedup(e, n, &t))
        format_gain(gain, sizeof gain, &t);
    else
        return false;
    weir__verdict_short_name(n->name, name, sizeof name);
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s %s", used ? ", " : "", n->is_sink ? "your consumer" : name, gain);
    report_progress(e, "if %s were %.0f %% faster: %s", n->is_sink ? "your consumer" : name, 100 * FASTER, gain);
    return true;
}

static void measure_speedups(experiment *e)
{
    char text[VERDICT_TEXT_BYTES - 120] = "";
    bool are_all = true;
    live_setting pool;
    for (size_t i = 0; i < e->view.num_nodes && i < MOST_SPEEDUPS; i++)
        if (!e->view.nodes[i].is_merge)
            are_all &= append_speedup(e, &e->view.nodes[i], text, sizeof text);
    bool has_ended = !are_all && !weir__live_setting(e->pipeline, -1, &pool);
    if (*text)
        weir__verdict_add_evidence(e->verdict, "if it were %.0f %% faster: %s%s", 100 * FASTER, text,
                                   are_all     ? ""
                                   : has_ended ? "; the run ended before the others were measured"
                                               : "; the others could not be measured");
}

static void tell_cost(experiment *e)
{
    double elapsed_s = 1e-9 * (double)(weir_clock_ns() - e->start_ns);
    if (e->other_s > 0)
        weir__verdict_add_evidence(e->verdict, "measured in %.1f s, of which %.1f s ran with other settings",
                                   elapsed_s, e->other_s);
}

/* Where the consumer takes nothing in all looks, there is nothing to compare. */
static int look_at_run(experiment *e)
{
    int status = weir__live_look(e->pipeline, SAMPLE_TIME_NS, 2 * e->options.setting_ns, NULL, &e->view);
    if (status != WEIR_OK)
        return status;
    e->verdict = weir__verdict_judge(&e->view);
    if (!e->verdict)
        return WEIR_ENOMEM;
    return e->view.num_items > 0 ? WEIR_OK : WEIR_EUNSUPPORTED;
}

static bool has_trial(weir_verdict_kind kind)
{
    return kind == WEIR_VERDICT_SLOTS || kind == WEIR_VERDICT_OUTSIDE || kind == WEIR_VERDICT_THREADS ||
           kind == WEIR_VERDICT_CPUS;
}

/* False = nothing of it is changed; or a trial would see too few items to decide, and nothing of the work within them. */
static bool can_be_tried(const experiment *e)
{
    return has_trial(e->verdict->shown.kind) &&
           (!e->verdict->is_short || weir__live_unit(&e->view, e->options.slice_ns).node >= 0);
}

/* Few items leave a verdict unsure that no trial can decide. So another look has the time of a trial. If the run ends
   meanwhile, the first one counts. */
static void look_longer(experiment *e)
{
    const int64_t time_ns = 2 * e->options.setting_ns;
    verdict_view view;
    if (can_be_tried(e) || e->verdict->shown.confidence >= WEIR_VERDICT_LIKELY || !e->verdict->is_short)
        return;
    report_progress(e, "few items: a longer look takes up to %.0f s", 1e-9 * (double)(LIVE_LONGEST_LOOK * time_ns));
    if (weir__live_view(e->pipeline, time_ns, NULL, &view) != WEIR_OK)
        return;
    full_verdict *longer = weir__verdict_judge(&view);
    if (!longer) {
        weir__verdict_view_free(&view);
        return;
    }
    free(e->verdict);
    weir__verdict_view_free(&e->view);
    e->verdict = longer;
    e->view = view;
}

int weir_explain_live_sized(weir_pipeline *pipeline, const weir_live_options *options, size_t options_size,
                            weir_verdict **verdict, weir_error *error)
{
    experiment e = { .pipeline = pipeline, .start_ns = weir_clock_ns() };
    if (!pipeline || !verdict)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *verdict = NULL;
    int status = weir_struct_copy(&e.options, sizeof e.options, options, options_size, "weir_live_options", error);
    if (status != WEIR_OK)
        return status;
    if (e.options.slice_ns < 0 || e.options.setting_ns < 0 || !(e.options.precision >= 0))
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_explain_live(): a time or the precision is negative");
    e.options.slice_ns = e.options.slice_ns ? e.options.slice_ns : 3 * WEIR_SECOND / 10;
    e.options.setting_ns = e.options.setting_ns ? e.options.setting_ns : 3 * WEIR_SECOND;
    e.options.precision = e.options.precision > 0 ? e.options.precision : 0.04;
    status = look_at_run(&e);
    if (status == WEIR_OK) {
        look_longer(&e);
        e.options.slice_ns = weir__live_slice_ns(&e.view, e.options.slice_ns, e.options.setting_ns / 2);
        examine_limits(&e);
        if (!e.options.no_speedups)
            measure_speedups(&e);
        tell_cost(&e);
        weir__verdict_fit_options(e.verdict, e.options.command);
        *verdict = &e.verdict->shown;
        weir__verdict_view_free(&e.view);
        return WEIR_OK;
    }
    free(e.verdict);
    weir__verdict_view_free(&e.view);
    return weir_error_set(error, status, 0, "%s",
                          status == WEIR_EOF ? "the run came to its end before anything was measured"
                          : status == WEIR_EUNSUPPORTED
                              ? "too little to measure: the consumer took no item during the measurement"
                              : weir_status_text(status));
}
