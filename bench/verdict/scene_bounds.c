#include "bench/verdict/scene_bounds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a gain may differ by from what the bounds say where all lengths are constant: two runs of one pipeline differ by
   5 % (see WEIR_WORTH_GAIN). Stages that are equal also gain a little if one of them waits less for the other. */
#define RUNS_DIFFER   0.08
#define EQUALS_DIFFER 0.15

/* From this share of the time on, "failures" is a right word; up to 1 minus it, another one. */
#define HALF_FAILS 0.4

/* A scene as it is at one time, and the more optimistic or the more pessimistic view of what is not known. */
typedef struct view {
    const scene *of;
    const bound_setting *setting;
    uint32_t slots[SCENE_STAGES], threads;
    double visits[SCENE_STAGES]; /* tasks for each item that is delivered */
    double slowdown, delay_ms;   /* of computing, in time; of each wait */
    bool is_pessimistic;
} view;

/* Of one task, on average. */
typedef struct mean_length {
    double cpu_ms, wait_ms, service_ms;
} mean_length;

static double sum_of(mean_length m)
{
    return m.cpu_ms + m.wait_ms + m.service_ms;
}

static bool has_work(const scene_work *work)
{
    return work->cpu_ms > 0 || work->wait_ms > 0 || work->uses > 0;
}

/* How much longer work that grows is after ten seconds: trials are over by then. */
#define GROWN_S 10

/* The share of a stage's time that goes into tasks that fail. */
static double failing_time(const scene_work *w)
{
    double failing = w->fail_share * w->fail_length;
    return failing > 0 ? failing / (1 - w->fail_share + failing) : 0;
}

static mean_length mean_of(const view *v, const scene_work *w)
{
    double tail = w->every ? 1.0 / w->every : 0, per = w->burst > 1 ? w->burst : 1;
    double factor = 1 + w->fail_share * (w->fail_length - 1);
    if (w->growth > 0 && v->setting->is_late)
        factor *= 1 + w->growth * GROWN_S;
    mean_length m = {
        .cpu_ms = ((1 - tail) * factor * w->cpu_ms + tail * w->giant_cpu_ms) * v->slowdown / per,
        .wait_ms = ((1 - tail) * factor * w->wait_ms + tail * w->tail_ms) / per,
        .service_ms = w->uses ? v->of->resources[w->uses - 1].service_ms / per : 0,
    };
    if (m.wait_ms > 0 || m.service_ms > 0)
        m.wait_ms += v->delay_ms / per;
    return m;
}

static const scene_work *stage_work(const view *v, uint32_t i)
{
    const scene_stage *stage = &v->of->stages[i];
    return v->setting->is_late && has_work(&stage->later) ? &stage->later : &stage->work;
}

static bool is_merged(const scene *of)
{
    return of->shape == SCENE_MERGE;
}

/* The source's mean time for an item; of two, that of a source as fast as both. */
static mean_length source_length(const view *v)
{
    mean_length first = mean_of(v, &v->of->source), none = { 0 };
    if (v->of->backlog_items > 0 && !v->setting->is_late)
        return none;
    if (!is_merged(v->of))
        return first;
    mean_length second = mean_of(v, &v->of->stages[2].work);
    double a = sum_of(first), b = sum_of(second);
    if (a <= 0 || b <= 0)
        return none;
    double of_first = b / (a + b); /* its share of the items */
    return (mean_length){ .cpu_ms = of_first * first.cpu_ms + (1 - of_first) * second.cpu_ms,
                          .wait_ms = (a * b / (a + b)) - of_first * first.cpu_ms - (1 - of_first) * second.cpu_ms };
}

static bool computes(const view *v, const scene_work *w)
{
    return w->cpu_ms > 0 || w->giant_cpu_ms > 0 || (w->uses && v->of->resources[w->uses - 1].computes);
}

/* Threads of this process that may compute at the same time. */
static uint32_t count_computing(const view *v)
{
    uint32_t of_pool = computes(v, &v->of->source);
    for (uint32_t i = 0; i < SCENE_STAGES; i++) {
        const scene_work *w = stage_work(v, i);
        if (v->of->stages[i].name && computes(v, w))
            of_pool += w->cpu_ms > 0 || w->giant_cpu_ms > 0 ? v->slots[i] : 1;
    }
    return (of_pool < v->threads ? of_pool : v->threads) + computes(v, &v->of->consumer);
}

/* With no other program, or with a thread that the scheduler always prefers, computing takes its own time. At worst it is
   delayed as the run was; or where that is not known, all that want a CPU get the same share. */
static view view_of(const scene *of, const bound_setting *setting, bool is_pessimistic)
{
    view v = {
        .of = of, .setting = setting, .threads = of->threads, .slowdown = 1, .is_pessimistic = is_pessimistic
    };
    double visits = 1;
    for (uint32_t i = SCENE_STAGES; i-- > 0;) {
        const scene_stage *stage = &of->stages[i];
        bool is_doubled = setting->doubled >> i & 1;
        v.slots[i] = stage->slots * (is_doubled ? 2 : 1);
        v.threads += is_doubled ? stage->slots : 0;
        visits /= stage->name ? 1 - stage->work.fail_share : 1;
        v.visits[i] = visits;
    }
    if (is_pessimistic && of->load > 0) {
        double share = (double)(count_computing(&v) + of->load) / setting->cpus;
        v.slowdown = fmax(1, setting->delay.slowdown > 0 ? setting->delay.slowdown : share);
        v.delay_ms = setting->delay.delay_ms;
    }
    return v;
}

double repair_rate(uint32_t slots, double other_ms, double service_ms, uint32_t servers)
{
    double weight = 1, sum = 0, busy = 0;
    if (other_ms <= 0)
        return (slots < servers ? slots : servers) / service_ms;
    for (uint32_t n = 0; n <= slots; n++) { /* n of them are served, or wait for it */
        double served = n < servers ? n : servers;
        sum += weight;
        busy += weight * served;
        double next = n + 1 < servers ? n + 1 : servers;
        weight *= (slots - n) / other_ms / (next / service_ms);
    }
    return busy / sum / service_ms;
}

/* Slots also wait for each other where the times of their resource, or their own, are random. */
static double slots_bound(const view *v, uint32_t i)
{
    const scene_work *w = stage_work(v, i);
    mean_length m = mean_of(v, w);
    double rate = v->slots[i] / sum_of(m);
    const scene_resource *r = w->uses ? &v->of->resources[w->uses - 1] : NULL;
    if (r && v->is_pessimistic && (r->exponential || r->jitter > 0 || w->exponential || w->every))
        rate = repair_rate(v->slots[i], m.cpu_ms + m.wait_ms, m.service_ms, r->servers);
    return 1000 * rate / v->visits[i];
}

static double resource_bound(const view *v, uint32_t r)
{
    const scene_resource *resource = &v->of->resources[r];
    double service_ms = 0;
    uint32_t users = 0;
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (v->of->stages[i].name && stage_work(v, i)->uses == r + 1) {
            service_ms += v->visits[i] * resource->service_ms * (resource->computes ? v->slowdown : 1);
            users += v->slots[i];
        }
    return users > resource->servers ? 1000 * resource->servers / service_ms : INFINITY; /* else nobody ever waits */
}

/* The pool limits only if it has fewer threads than there are slots that may want one. */
static double threads_bound(const view *v)
{
    uint32_t wanted = is_merged(v->of) ? 2 : 1;
    double ms = v->visits[0] * sum_of(source_length(v));
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (v->of->stages[i].name) {
            wanted += v->slots[i];
            ms += v->visits[i] * sum_of(mean_of(v, stage_work(v, i)));
        }
    return v->threads < wanted && ms > 0 ? 1000 * v->threads / ms : INFINITY;
}

static double cpus_bound(const view *v)
{
    double ms = v->visits[0] * source_length(v).cpu_ms + mean_of(v, &v->of->consumer).cpu_ms;
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (v->of->stages[i].name) {
            const scene_work *w = stage_work(v, i);
            const scene_resource *r = w->uses ? &v->of->resources[w->uses - 1] : NULL;
            ms += v->visits[i] * (mean_of(v, w).cpu_ms + (r && r->computes ? v->slowdown * r->service_ms : 0));
        }
    /* at worst, those that compute get no more than their own threads can ask for */
    double cpus = v->is_pessimistic && v->of->load > 0 ? fmin(count_computing(v), v->setting->cpus * v->slowdown)
                                                       : v->setting->cpus;
    return ms > 0 ? 1000 * cpus / ms : INFINITY;
}

static void find_view(const view *v, double bounds[NUM_BOUNDS])
{
    for (uint32_t i = 0; i < NUM_BOUNDS; i++)
        bounds[i] = INFINITY;
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (v->of->stages[i].name)
            bounds[BOUND_SLOTS + i] = slots_bound(v, i);
    for (uint32_t r = 0; r < SCENE_RESOURCES; r++)
        if (v->of->resources[r].servers > 0)
            bounds[BOUND_RESOURCE + r] = resource_bound(v, r);
    bounds[BOUND_THREADS] = threads_bound(v);
    bounds[BOUND_CPUS] = cpus_bound(v);
    double source_ms = v->visits[0] * sum_of(source_length(v)), consumer_ms = sum_of(mean_of(v, &v->of->consumer));
    bounds[BOUND_SOURCE] = source_ms > 0 ? 1000 / source_ms : INFINITY;
    bounds[BOUND_CONSUMER] = consumer_ms > 0 ? 1000 / consumer_ms : INFINITY;
}

void scene_bounds_find(const scene *of, const bound_setting *setting, scene_bounds *found)
{
    view worst = view_of(of, setting, true), best = view_of(of, setting, false);
    find_view(&worst, found->low);
    find_view(&best, found->high);
}

double scene_bounds_least(const double *bounds)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < NUM_BOUNDS; i++)
        least = fmin(least, bounds[i]);
    return least;
}

/* -- the truth */

static void add_answer(scene_truth *truth, const char *kind, const char *name, const char *end)
{
    char text[96], list[sizeof truth->answers + 2], word[sizeof text + 2];
    snprintf(text, sizeof text, "%s%s%s%s", kind, *name ? ":" : "", name, end);
    snprintf(list, sizeof list, " %s ", truth->answers);
    snprintf(word, sizeof word, " %s ", text);
    size_t length = strlen(truth->answers);
    if (!strstr(list, word))
        snprintf(truth->answers + length, sizeof truth->answers - length, "%s%s", length ? " " : "", text);
}

/* A stage whose slots are the limit. Where it computes about half of the time, or about half of its time goes into
   tasks that fail, both words are right. */
static void add_slots(const view *v, uint32_t i, scene_truth *truth)
{
    const scene_work *w = stage_work(v, i);
    const char *name = v->of->stages[i].name;
    const scene_resource *r = w->uses ? &v->of->resources[w->uses - 1] : NULL;
    mean_length m = mean_of(v, w);
    double computing = (m.cpu_ms + (r && r->computes ? m.service_ms : 0)) / sum_of(m), failing = failing_time(w);
    if (failing >= HALF_FAILS)
        add_answer(truth, "failures", name, "");
    if (failing <= 1 - HALF_FAILS && computing >= 0.5)
        add_answer(truth, "slots", name, "");
    if (failing <= 1 - HALF_FAILS && computing <= 0.8)
        add_answer(truth, "outside", name, "");
}

static void add_resource(const view *v, uint32_t r, scene_truth *truth)
{
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (v->of->stages[i].name && stage_work(v, i)->uses == r + 1)
            add_answer(truth, "outside", v->of->stages[i].name, "");
}

/* The stage or source that takes most of the threads, and those that take nearly as much. */
static void add_threads(const view *v, scene_truth *truth)
{
    double taken[SCENE_STAGES + 1] = { [SCENE_STAGES] = v->visits[0] * sum_of(source_length(v)) }, most = 0;
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        taken[i] = v->of->stages[i].name ? v->visits[i] * sum_of(mean_of(v, stage_work(v, i))) : 0;
    for (uint32_t i = 0; i <= SCENE_STAGES; i++)
        most = fmax(most, taken[i]);
    for (uint32_t i = 0; i <= SCENE_STAGES; i++)
        if (taken[i] * BOUND_FAR >= most)
            add_answer(truth, "threads", i < SCENE_STAGES ? v->of->stages[i].name : "src", "");
}

/* Threads or CPUs of which a stage takes most, and its tasks that fail have about half of it or more: that time goes
   into failures. */
static void add_failures(const view *v, uint32_t bound, scene_truth *truth)
{
    double taken[SCENE_STAGES] = { 0 },
           all = v->visits[0] * (bound == BOUND_CPUS ? source_length(v).cpu_ms : sum_of(source_length(v)));
    for (uint32_t i = 0; i < SCENE_STAGES; i++) {
        mean_length m = mean_of(v, stage_work(v, i));
        taken[i] = v->of->stages[i].name ? v->visits[i] * (bound == BOUND_CPUS ? m.cpu_ms : sum_of(m)) : 0;
        all += taken[i];
    }
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (v->of->stages[i].name && taken[i] > all / 2 && failing_time(stage_work(v, i)) >= HALF_FAILS)
            add_answer(truth, "failures", v->of->stages[i].name, "");
}

static void add_limit(const view *v, uint32_t bound, scene_truth *truth)
{
    if (bound == BOUND_THREADS || bound == BOUND_CPUS)
        add_failures(v, bound, truth);
    if (bound < BOUND_RESOURCE)
        add_slots(v, bound, truth);
    else if (bound < BOUND_THREADS)
        add_resource(v, bound - BOUND_RESOURCE, truth);
    else if (bound == BOUND_THREADS)
        add_threads(v, truth);
    else if (bound == BOUND_CPUS)
        add_answer(truth, "cpus", "", "");
    else if (bound == BOUND_SOURCE)
        add_answer(truth, "source", "src", "");
    else
        add_answer(truth, v->of->marks_steps ? "none" : "consumer", "", "");
}

/* Stages whose slots, or whose resources, are limits: bit i for stage i. */
static uint32_t stages_of(const scene *of, uint32_t limits)
{
    uint32_t stages = limits & ((1U << SCENE_STAGES) - 1);
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (of->stages[i].work.uses && limits >> (BOUND_RESOURCE + of->stages[i].work.uses - 1) & 1)
            stages |= 1U << i;
    return stages;
}

static bool is_several(const scene *of, uint32_t limits)
{
    uint32_t stages = stages_of(of, limits), others = limits >> BOUND_THREADS;
    return (stages & (stages - 1)) || (others & (others - 1)) || (stages && others);
}

/* What twice the slots bring at one time, by both views. */
static gain_range find_gain(const scene *of, const bound_setting *before, uint32_t doubled, const scene_bounds *now)
{
    bound_setting after = *before;
    scene_bounds then;
    after.doubled = doubled;
    scene_bounds_find(of, &after, &then);
    double low = scene_bounds_least(then.low) / scene_bounds_least(now->low),
           high = scene_bounds_least(then.high) / scene_bounds_least(now->high);
    return (gain_range){ fmin(low, high), fmax(low, high) };
}

static void widen(gain_range *range, gain_range by, double differ)
{
    bool is_first = range->most <= 0;
    double least = by.least * (1 - RUNS_DIFFER), most = by.most * (1 + differ);
    range->least = is_first ? least : fmin(range->least, least);
    range->most = is_first ? most : fmax(range->most, most);
}

static void add_gains(const scene *of, const bound_setting *setting, const scene_bounds *now, scene_truth *truth)
{
    uint32_t stages = stages_of(of, truth->limits);
    double differ = truth->is_joint ? EQUALS_DIFFER : RUNS_DIFFER;
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (of->stages[i].name)
            widen(&truth->of_stage[i], find_gain(of, setting, 1U << i, now), differ);
    bool are_slots = truth->limits == (truth->limits & ((1U << SCENE_STAGES) - 1));
    if (are_slots && (stages & (stages - 1)))
        widen(&truth->together, find_gain(of, setting, stages, now), differ);
}

/* The answers at one time. Returns the limits. */
static uint32_t add_time(const scene *of, const bound_setting *setting, scene_bounds *found, scene_truth *truth)
{
    view best = view_of(of, setting, false), worst = view_of(of, setting, true);
    scene_bounds_find(of, setting, found);
    double least = scene_bounds_least(found->high);
    uint32_t limits = 0;
    for (uint32_t i = 0; i < NUM_BOUNDS; i++) {
        if (found->low[i] <= least * (1 + BOUND_EQUAL)) {
            limits |= 1U << i;
            add_limit(&best, i, truth);
            add_limit(&worst, i, truth);
        } else {
            truth->is_close |= found->low[i] < least * BOUND_FAR;
            truth->next = fmin(truth->next, found->low[i] / least);
        }
    }
    return limits;
}

static bool has_late_time(const scene *of)
{
    bool has = of->backlog_items > 0;
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        has |= of->stages[i].name && (has_work(&of->stages[i].later) || of->stages[i].work.growth > 0);
    return has;
}

static bool is_random(const scene_work *w)
{
    return w->exponential || w->every > 0 || w->fail_share > 0;
}

static bool has_chance(const scene *of)
{
    bool has = is_random(&of->source) || is_random(&of->consumer);
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        has |= is_random(&of->stages[i].work);
    for (uint32_t i = 0; i < SCENE_RESOURCES; i++)
        has |= of->resources[i].exponential || of->resources[i].jitter > 0;
    return has;
}

/*
 * A burst of B items, then a pause of W, beside parts that let an item through each t. Everything between the burst
 * and these parts holds K items. Then a burst and its pause take the longest of W, B × t and W + (B - K) × t. In the
 * last case the queues are the limit, and with them the part whose time is longest, or nearly so.
 */
static void add_burst(const scene *of, const scene_work *work, bool is_source, scene_truth *truth)
{
    enum { QUEUE_ITEMS = 2, SINK_ITEMS = 3 }; /* the defaults */
    double own_ms = work->wait_ms + work->cpu_ms, least = INFINITY, held = is_source ? 0 : SINK_ITEMS;
    uint32_t at = is_source ? SCENE_STAGES : 0, own = is_source ? BOUND_SOURCE : BOUND_CONSUMER;
    for (uint32_t i = 0; i < NUM_BOUNDS; i++)
        least = i != own ? fmin(least, truth->bounds.high[i]) : least;
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (truth->bounds.high[i] <= least * (1 + BOUND_EQUAL))
            at = i;
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (of->stages[i].name && (is_source ? i <= at : i >= at))
            held += of->stages[i].slots + QUEUE_ITEMS;
    double others_ms = work->burst * 1000 / least, apart_ms = own_ms + others_ms - held * 1000 / least;
    if (apart_ms <= fmax(own_ms, others_ms) * (1 + BOUND_EQUAL))
        return;
    truth->queues_limit = true;
    if (is_source)
        add_answer(truth, "queue", "src", "_queue");
    else
        add_answer(truth, "queue", "sink", "_queue");
    for (uint32_t i = 0; i < SCENE_STAGES; i++)
        if (of->stages[i].name && (is_source ? i < at : i >= at))
            add_answer(truth, "queue", of->stages[i].name, "_queue");
}

void scene_truth_find(const scene *of, uint32_t cpus, const cpu_delay *delay, scene_truth *truth)
{
    bound_setting setting = { .cpus = cpus, .delay = delay ? *delay : (cpu_delay){ 0 } };
    *truth = (scene_truth){ .next = INFINITY };
    truth->limits = add_time(of, &setting, &truth->bounds, truth);
    truth->items_per_s = scene_bounds_least(truth->bounds.high);
    truth->is_joint = is_several(of, truth->limits);
    truth->is_uncertain = of->load > 0 || has_chance(of);
    add_gains(of, &setting, &truth->bounds, truth);
    if (has_late_time(of)) {
        scene_bounds late;
        uint32_t early = truth->limits;
        setting.is_late = truth->changes = true;
        truth->limits |= add_time(of, &setting, &late, truth);
        truth->is_joint |= is_several(of, truth->limits) && truth->limits == early;
        add_gains(of, &setting, &late, truth);
        setting.is_late = false;
        add_gains(of, &setting, &truth->bounds, truth);
    }
    if (of->source.burst > 1)
        add_burst(of, &of->source, true, truth);
    if (of->consumer.burst > 1)
        add_burst(of, &of->consumer, false, truth);
}

void scene_bound_name(const scene *of, uint32_t bound, char *text, size_t size)
{
    static const char *const others[] = { "threads", "CPUs", "source", "consumer" };
    if (bound < BOUND_RESOURCE)
        snprintf(text, size, "%s", of->stages[bound].name);
    else if (bound < BOUND_THREADS)
        snprintf(text, size, "resource %u", bound - BOUND_RESOURCE + 1);
    else
        snprintf(text, size, "%s", others[bound - BOUND_THREADS]);
}
