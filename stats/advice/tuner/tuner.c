/*
 * The tuner: a thread that looks, tries one setting, keeps it or not, and looks again. What was tried without success is
 * remembered for each stage and for the pool ("knobs"), until the load changes.
 */
#include <weir/tuner.h>

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/struct_copy.h>
#include <weir/verdict.h>

#include "stats/advice/verdict/live.h"

#define LOOK_NS   (WEIR_SECOND / 2)
#define TOLERANCE 1.01 /* of a budget, for the error of clocks */

enum { MAX_UNCLEAR = 3, MOST_TIMES_LONGER = 4 };

/* The slots of a stage, or the threads of the pool. */
typedef struct knob {
    const char *stage;    /* of the pipeline; NULL = the pool */
    uint32_t no_more;     /* the number that brought nothing; 0 = not tried */
    uint32_t no_less;     /* so few cost something; 0 = not tried */
    bool is_fixed;        /* the engine refuses to change it */
    uint32_t num_unclear; /* trials in a row that did not decide */
    double needed_s;      /* how long the next one should be to decide; 0 = as usual */
    uint32_t num_blank;   /* trials in a row that measured nothing */
} knob;

struct weir_tuner {
    weir_tuner_options options;
    weir_pipeline *pipeline;
    pthread_t thread;
    atomic_bool stops;

    /* owned by the thread */
    weir_live_options live;
    knob *knobs; /* of each node of the view; the last one is the pool's */
    size_t num_knobs;
    knob together;            /* all stages that are used nearly as much; no_more: 1 = they brought nothing */
    double rest_rate;         /* items per second when it came to rest; 0 = it is not at rest */
    double rest_half;         /* half the width of its 95 % interval */
    int64_t strange_since_ns; /* the load is another one; 0 = it is not */
};

static double least_gain(const weir_tuner *tuner)
{
    return tuner->options.min_gain;
}

static void tell_decision(weir_tuner *tuner, weir_tuner_decision *decision, const char *format, ...)
    WEIR_PRINTF(3, 4);

static void tell_decision(weir_tuner *tuner, weir_tuner_decision *decision, const char *format, ...)
{
    char text[400];
    va_list values;
    int length = decision->before
                     ? snprintf(text, sizeof text, "%s %u -> %u: ", decision->stage ? decision->stage : "threads",
                                decision->before, decision->after)
                     : 0;
    va_start(values, format);
    if ((size_t)length < sizeof text)
        vsnprintf(text + length, sizeof text - (size_t)length, format, values);
    va_end(values);
    weir_pipeline_event(tuner->pipeline, "tuner", "pipeline", text);
    decision->text = text;
    if (tuner->options.decided)
        tuner->options.decided(tuner->options.decided_self, decision);
    decision->text = NULL; /* valid during the call */
}

/* -- one step */

/* The knob that a change turns: the slots if they change, otherwise the threads. */
static knob *knob_of(weir_tuner *tuner, int node, bool is_pool)
{
    return &tuner->knobs[is_pool ? tuner->num_knobs - 1 : (size_t)node];
}

/* A trial that measured nothing is repeated a few times. Each is reported, because it changes nothing that could be
   seen. */
static void note_blank(weir_tuner *tuner, knob *own, const live_set *set, bool raises, uint32_t after,
                       const live_trial *t)
{
    char change[VERDICT_TEXT_BYTES], text[VERDICT_TEXT_BYTES + 100];
    own->num_blank++;
    weir__verdict_describe_set(change, sizeof change, set);
    snprintf(text, sizeof text, "%s: not measured in %.0f s: too few items, or the end of the run%s", change,
             t->elapsed_s, own->num_blank < MAX_UNCLEAR ? "; it is tried again" : "");
    weir_pipeline_event(tuner->pipeline, "tuner", "pipeline", text);
    if (own->num_blank >= MAX_UNCLEAR)
        *(raises ? &own->no_more : &own->no_less) = after;
}

/* Other settings are other conditions: what brought nothing may bring something now. */
static void note_kept(weir_tuner *tuner, bool raises)
{
    tuner->together.no_more = 0;
    for (size_t i = 0; i < tuner->num_knobs && raises; i++)
        tuner->knobs[i].no_more = 0;
}

static bool gains(const weir_tuner *tuner, const live_trial *t)
{
    return t->gain >= 1 + least_gain(tuner) && t->low > 1;
}

/* A trial that is repeated because the last one did not decide lasts longer, up to MOST_TIMES_LONGER. */
static int64_t longer_setting_ns(const weir_tuner *tuner, const knob *own)
{
    double usual_ns = (double)tuner->live.setting_ns, needed_ns = 0.5e9 * own->needed_s;
    return (int64_t)fmax(usual_ns, fmin(needed_ns, MOST_TIMES_LONGER * usual_ns));
}

/* A trial of more did not decide: it may bring as much as is worth it. Then it is repeated a few times. */
static bool is_raise_unclear(knob *own, const live_trial *t)
{
    bool is_unclear = t->low <= 1 && t->high >= WEIR_WORTH_GAIN && own->num_unclear + 1 < MAX_UNCLEAR;
    own->num_unclear = is_unclear ? own->num_unclear + 1 : 0;
    own->needed_s = is_unclear ? weir__live_seconds_to_decide(t) : 0;
    return is_unclear;
}

/* What the set brings. WEIR_OK, or why the engine refused it. */
static int measure_set(weir_tuner *tuner, const verdict_view *view, const knob *own, const int *nodes, uint32_t num,
                       const live_set *set, live_trial *t)
{
    char change[VERDICT_TEXT_BYTES], takes[40], text[VERDICT_TEXT_BYTES + 60];
    weir_live_options live = tuner->live;
    live.slice_ns = weir__live_slice_ns(view, live.slice_ns, 3 * WEIR_SECOND / 2);
    live.setting_ns = longer_setting_ns(tuner, own);
    int64_t settle_ns = weir__live_settle_ns(view, nodes, num, WEIR_SECOND);
    live_unit unit = weir__live_unit(view, live.slice_ns);
    weir__verdict_describe_set(change, sizeof change, set);
    weir__live_forecast(takes, sizeof takes, settle_ns, unit, &live);
    snprintf(text, sizeof text, "tries %s: %s", change, takes);
    weir_pipeline_event(tuner->pipeline, "tuner", "pipeline", text);
    return weir__live_try(tuner->pipeline, set, settle_ns, unit, &live, &tuner->stops, t);
}

/* Applies `other` if it gains (raises) or loses nothing (lowers). Returns whether it is kept. */
static bool keep_setting(weir_tuner *tuner, const live_setting *other, bool raises, const live_trial *t)
{
    /* A loss would be seen: the interval reaches at most a tenth below what it was. */
    bool is_free = t->gain >= 1 - least_gain(tuner) && t->low >= 0.9;
    bool is_kept = (raises ? gains(tuner, t) : is_free) && weir__live_apply(tuner->pipeline, other) == WEIR_OK;
    if (is_kept)
        note_kept(tuner, raises);
    return is_kept;
}

/* What a trial says about later ones; one that did not decide is repeated. */
static void note_trial_of_more(knob *own, bool is_kept, uint32_t after, const live_trial *t)
{
    if (!is_kept && !is_raise_unclear(own, t))
        own->no_more = after;
}

static void note_trial_of_less(knob *own, bool is_kept, uint32_t before, uint32_t after, const live_trial *t)
{
    bool is_unclear = !is_kept && t->high >= 1 && own->num_unclear < MAX_UNCLEAR;
    own->num_unclear = is_unclear ? own->num_unclear + 1 : 0;
    if (is_kept)
        own->no_more = before; /* it brought nothing */
    else if (!is_unclear)
        own->no_less = after;
}

/* The caller adds the stage, `before` and `after`. */
static weir_tuner_decision trial_decision(const live_setting *now, const live_setting *other, const live_trial *t,
                                          bool is_kept)
{
    const live_setting *chosen = is_kept ? other : now;
    return (weir_tuner_decision){ .action = is_kept ? WEIR_TUNER_KEPT : WEIR_TUNER_REVERTED,
                                  .slots = chosen->slots,
                                  .threads = chosen->threads,
                                  .gain = t->gain,
                                  .low = t->low,
                                  .high = t->high };
}

/* Measures `other`, and keeps it if it gains (raises) or loses nothing (lowers). Returns whether it is kept. */
static bool try_setting(weir_tuner *tuner, const verdict_view *view, int node, const live_setting *now,
                        const live_setting *other)
{
    bool changes_slots = other->slots && other->slots != now->slots;
    uint32_t before = changes_slots ? now->slots : now->threads,
             after = changes_slots ? other->slots : other->threads;
    bool raises = after > before;
    knob *own = knob_of(tuner, node, !changes_slots && !now->has_own);
    live_trial t;
    live_set set = { 1, { *now }, { *other } };
    int status = measure_set(tuner, view, own, &node, 1, &set, &t);
    if (status != WEIR_OK) {
        own->is_fixed = true;
        return false;
    }
    if (isnan(t.gain)) {
        note_blank(tuner, own, &set, raises, after, &t);
        return false;
    }
    own->num_blank = 0;
    bool is_kept = keep_setting(tuner, other, raises, &t);
    if (raises)
        note_trial_of_more(own, is_kept, after, &t);
    else
        note_trial_of_less(own, is_kept, before, after, &t);
    weir_tuner_decision decision = trial_decision(now, other, &t, is_kept);
    decision.stage = changes_slots || now->has_own ? now->stage : NULL;
    decision.before = before;
    decision.after = is_kept ? after : before;
    tell_decision(tuner, &decision, "%s %u: %+.1f %% (%+.1f to %+.1f %%)", is_kept ? "kept" : "undone", after,
                  100 * (t.gain - 1), 100 * (t.low - 1), 100 * (t.high - 1));
    return is_kept;
}

/*
 * Twice the slots of a stage, with as many more threads of its pool as slots, or half of them. Or it is twice or half
 * the threads that the stage runs on (node -1: of the pool). It is left out if it is known to bring nothing, or to
 * cost something. Returns whether it is kept.
 */
static bool turn_knob(weir_tuner *tuner, const verdict_view *view, int node, bool is_slots, bool raises,
                      bool *has_tried)
{
    const weir_tuner_options *o = &tuner->options;
    live_setting now, other;
    if ((is_slots && view->nodes[node].is_source) || !weir__live_setting(tuner->pipeline, node, &now))
        return false;
    knob *own = knob_of(tuner, node, !is_slots && !now.has_own);
    if (!is_slots) {
        now.slots = 0;
        now.stage = now.has_own ? now.stage : NULL;
    }
    other = now;
    uint32_t *value = is_slots ? &other.slots : &other.threads, before = *value;
    if (is_slots && raises) {
        live_set set;
        if (!weir__live_double(tuner->pipeline, &node, 1, o->max_slots, o->max_threads, &set))
            return false;
        other = set.other[0];
    } else {
        *value = raises ? weir__live_twice(before, o->max_threads) : (before + 1) / 2;
    }
    bool is_known = raises ? own->no_more && *value >= own->no_more : *value <= own->no_less;
    if (own->is_fixed || is_known || *value == before)
        return false;
    *has_tried = true;
    return try_setting(tuner, view, node, &now, &other);
}

/* The set as an event, and a decision on each of its stages. */
static void tell_set(weir_tuner *tuner, const live_set *set, const live_trial *t, bool is_kept)
{
    for (uint32_t i = 0; i < set->num; i++) {
        const live_setting *now = &set->now[i], *other = &set->other[i];
        weir_tuner_decision decision = trial_decision(now, other, t, is_kept);
        decision.stage = now->stage;
        decision.before = now->slots;
        decision.after = decision.slots;
        tell_decision(tuner, &decision, "%s %u: %+.1f %% (%+.1f to %+.1f %%), together with %u other stage%s",
                      is_kept ? "kept" : "undone", other->slots, 100 * (t->gain - 1), 100 * (t->low - 1),
                      100 * (t->high - 1), set->num - 1, set->num == 2 ? "" : "s");
    }
}

/* Twice the slots of all stages that are used nearly as much as the first one: where each is as slow as the others, one alone
   brings nothing. Returns whether they are kept; what is not needed of them is lowered later. */
static bool raise_set(weir_tuner *tuner, const verdict_view *view, bool *has_tried)
{
    const weir_tuner_options *o = &tuner->options;
    int nodes[LIVE_MOST_PARTS];
    live_set set;
    live_trial t;
    uint32_t num = weir__live_candidates(view, nodes);
    for (uint32_t i = num; i-- > 0;)
        if (tuner->knobs[nodes[i]].is_fixed)
            nodes[i] = nodes[--num];
    if (num < 2 || tuner->together.no_more || tuner->together.is_fixed ||
        !weir__live_double(tuner->pipeline, nodes, num, o->max_slots, o->max_threads, &set) || set.num < 2)
        return false;
    *has_tried = true;
    knob *own = &tuner->together;
    int status = measure_set(tuner, view, own, nodes, num, &set, &t);
    if (status != WEIR_OK)
        own->is_fixed = true;
    else if (isnan(t.gain))
        note_blank(tuner, own, &set, true, 1, &t);
    if (status != WEIR_OK || isnan(t.gain))
        return false;
    own->num_blank = 0;
    bool is_kept = gains(tuner, &t) && weir__live_apply_all(tuner->pipeline, set.other, set.num) == WEIR_OK;
    own->no_more = is_kept || !is_raise_unclear(own, &t);
    if (is_kept)
        note_kept(tuner, true);
    tell_set(tuner, &set, &t, is_kept);
    return is_kept;
}

/* What the rules name as full. */
static bool raise_limit(weir_tuner *tuner, const verdict_view *view, bool *has_tried)
{
    full_verdict *v = weir__verdict_judge(view);
    int node = v ? weir__live_find(view, v->name) : -1;
    weir_verdict_kind kind = v ? v->shown.kind : WEIR_VERDICT_UNKNOWN;
    int other = v && v->shown.other_kind ? weir__live_find(view, v->other_name) : -1;
    bool is_kept = false, has_room = !(tuner->options.cpus > 0) || view->system.process < 0.95 * tuner->options.cpus;
    free(v);
    if (node < 0 || !has_room)
        return false;
    if (kind == WEIR_VERDICT_THREADS || kind == WEIR_VERDICT_CPUS)
        is_kept = turn_knob(tuner, view, node, false, true, has_tried);
    bool waits_for_tasks = kind == WEIR_VERDICT_SLOTS || kind == WEIR_VERDICT_OUTSIDE;
    if (!is_kept && (waits_for_tasks || kind == WEIR_VERDICT_CPUS))
        is_kept = turn_knob(tuner, view, node, true, true, has_tried);
    if (!is_kept && other >= 0)
        is_kept = turn_knob(tuner, view, other, true, true, has_tried);
    if (!is_kept && !*has_tried && waits_for_tasks)
        is_kept = raise_set(tuner, view, has_tried);
    return is_kept;
}

/* Whatever is not needed: it costs memory, and CPU time of others. */
static void lower_what_is_spare(weir_tuner *tuner, const verdict_view *view, bool *has_tried)
{
    for (size_t i = 0; i < view->num_nodes && !*has_tried; i++)
        if (view->nodes[i].pool)
            turn_knob(tuner, view, (int)i, true, false, has_tried);
    if (!*has_tried)
        turn_knob(tuner, view, -1, false, false, has_tried);
}

/* -- the budget */

/* One step down, without a trial; the threads, or for memory the stage with the most slots. */
static bool reduce_setting(weir_tuner *tuner, const verdict_view *view, bool is_memory)
{
    live_setting now;
    int node = -1;
    for (size_t i = 0; i < view->num_nodes && is_memory; i++)
        if (view->nodes[i].pool && !view->nodes[i].is_source && !tuner->knobs[i].is_fixed &&
            (node < 0 || view->nodes[i].slots > view->nodes[node].slots))
            node = (int)i;
    if ((is_memory && node < 0) || !weir__live_setting(tuner->pipeline, node, &now))
        return false;
    live_setting other = now;
    uint32_t *value = is_memory ? &other.slots : &other.threads, before = *value;
    *value = is_memory ? (*value + 1) / 2 : *value - 1;
    if (*value == before || *value == 0 || weir__live_apply(tuner->pipeline, &other) != WEIR_OK)
        return false;
    knob_of(tuner, node, !is_memory)->no_more = before;
    weir_tuner_decision decision = { .action = WEIR_TUNER_REDUCED,
                                     .stage = is_memory ? now.stage : NULL,
                                     .before = before,
                                     .after = *value,
                                     .slots = other.slots,
                                     .threads = other.threads,
                                     .gain = NAN,
                                     .low = NAN,
                                     .high = NAN };
    tell_decision(tuner, &decision, "the %s budget is exceeded", is_memory ? "memory" : "CPU");
    return true;
}

static bool keep_budget(weir_tuner *tuner, const verdict_view *view)
{
    const weir_tuner_options *o = &tuner->options;
    if (o->memory_bytes && weir__live_resident_bytes() > o->memory_bytes)
        return reduce_setting(tuner, view, true);
    return o->cpus > 0 && view->system.process > TOLERANCE * o->cpus && reduce_setting(tuner, view, false);
}

/* -- the thread */

static void forget_trials(weir_tuner *tuner)
{
    tuner->together.no_more = 0;
    for (size_t i = 0; i < tuner->num_knobs; i++)
        tuner->knobs[i].no_more = tuner->knobs[i].no_less = 0;
}

static void rest_tuner(weir_tuner *tuner, double rate, double half)
{
    weir_tuner_decision decision = { .action = WEIR_TUNER_RESTED, .gain = NAN, .low = NAN, .high = NAN };
    tuner->rest_rate = rate;
    tuner->rest_half = half;
    tuner->strange_since_ns = 0;
    tell_decision(tuner, &decision,
                  "rests at %.4g/s: no larger setting brings a gain, and every smaller one costs throughput", rate);
}

/*
 * At rest until the load is another one. Then the intervals of the two rates have nothing in common. They differ by
 * as much as a change must bring to be worth it. It must have been for as long as a trial may take: no trial could
 * measure a shorter one.
 */
static void watch_load(weir_tuner *tuner, double rate, double half)
{
    weir_tuner_decision decision = { .action = WEIR_TUNER_RESTARTED, .gain = NAN, .low = NAN, .high = NAN };
    double more = fmax(rate, tuner->rest_rate), less = fmin(rate, tuner->rest_rate);
    int64_t now_ns = weir_clock_ns();
    if (more - less <= half + tuner->rest_half || more < WEIR_WORTH_GAIN * less)
        tuner->strange_since_ns = 0;
    else if (!tuner->strange_since_ns)
        tuner->strange_since_ns = now_ns;
    if (!tuner->strange_since_ns || now_ns - tuner->strange_since_ns < 2 * tuner->live.setting_ns)
        return;
    tell_decision(tuner, &decision, "the load has changed: %.4g/s instead of %.4g/s", rate, tuner->rest_rate);
    tuner->rest_rate = 0;
    forget_trials(tuner);
}

/* One decision. False = the run has ended, or there is no memory. */
static bool look_and_decide(weir_tuner *tuner)
{
    verdict_view view;
    bool has_tried = false;
    if (weir__live_look(tuner->pipeline, LOOK_NS, 2 * tuner->live.setting_ns, &tuner->stops, &view) != WEIR_OK)
        return false;
    if (!tuner->knobs) {
        tuner->knobs = calloc(view.num_nodes + 1, sizeof *tuner->knobs);
        tuner->num_knobs = view.num_nodes + 1;
    }
    bool goes_on = tuner->knobs != NULL;
    if (goes_on && view.num_items > 0 && !keep_budget(tuner, &view)) {
        if (tuner->rest_rate > 0)
            watch_load(tuner, view.items_per_s, view.rate_half);
        else if (!raise_limit(tuner, &view, &has_tried) && !has_tried) {
            lower_what_is_spare(tuner, &view, &has_tried);
            if (!has_tried)
                rest_tuner(tuner, view.items_per_s, view.rate_half);
        }
    }
    weir__verdict_view_free(&view);
    return goes_on;
}

static void *run_tuner(void *argument)
{
    weir_tuner *tuner = argument;
    while (!atomic_load(&tuner->stops) && look_and_decide(tuner))
        continue;
    return NULL;
}

static int check_tuner_options(weir_tuner_options *o, weir_error *error)
{
    uint32_t threads = 4 * weir_cpu_budget();
    if (!(o->cpus >= 0) || !(o->min_gain >= 0) || o->max_threads > WEIR_MAX_SLOTS || o->max_slots > WEIR_MAX_SLOTS ||
        o->slice_ns < 0 || o->setting_ns < 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "weir_tuner_options: a negative value, or more than %d threads or slots",
                              WEIR_MAX_SLOTS);
    o->max_threads = o->max_threads ? o->max_threads : threads > 64 ? threads : 64;
    o->max_slots = o->max_slots ? o->max_slots : 64;
    o->min_gain = o->min_gain > 0 ? o->min_gain : 0.03;
    o->slice_ns = o->slice_ns ? o->slice_ns : 3 * WEIR_SECOND / 10;
    o->setting_ns = o->setting_ns ? o->setting_ns : 3 * WEIR_SECOND;
    return WEIR_OK;
}

int weir_tuner_start_sized(weir_pipeline *pipeline, const weir_tuner_options *options, size_t options_size,
                           weir_tuner **made, weir_error *error)
{
    if (!pipeline || !made)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *made = NULL;
    weir_tuner *tuner = calloc(1, sizeof *tuner);
    if (!tuner)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    weir_tuner_options *own = &tuner->options;
    int status = weir_struct_copy(own, sizeof *own, options, options_size, "weir_tuner_options", error);
    if (status == WEIR_OK)
        status = check_tuner_options(own, error);
    tuner->pipeline = pipeline;
    tuner->live = (weir_live_options){ .slice_ns = own->slice_ns,
                                       .setting_ns = own->setting_ns,
                                       .precision = own->min_gain,
                                       .memory_bytes = own->memory_bytes };
    if (status == WEIR_OK && pthread_create(&tuner->thread, NULL, run_tuner, tuner) != 0)
        status = weir_error_set(error, WEIR_ESYSTEM, 0, "cannot start the tuner's thread");
    if (status == WEIR_OK)
        *made = tuner;
    else
        free(tuner);
    return status;
}

void weir_tuner_free(weir_tuner *tuner)
{
    if (!tuner)
        return;
    atomic_store(&tuner->stops, true);
    pthread_join(tuner->thread, NULL);
    free(tuner->knobs);
    free(tuner);
}
