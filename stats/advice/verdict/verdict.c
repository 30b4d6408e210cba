/*
 * What limits a pipeline: a table of rules, each with what it measures, from how much on it applies, and what it says.
 * The first rule that applies is the limit. docs/verdict.md explains each of them. Offline, the rules name a resource that
 * is full; whether more of it helps is measured, by weir_explain_live() or by another run.
 */
#include "verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "model.h"

#define SATURATED  0.80 /* of the time: a resource in use this much is the limit, if no other one explains the rest */
#define PARTLY     0.60
#define CLOSE      0.10 /* two limits this close to each other cannot be distinguished */
#define COMPUTING  0.60 /* on a CPU or waiting for one / busy, of tasks that compute */
#define FEW_ITEMS  20   /* fewer give no clear verdict */
#define HAND_OFF_S 1e-4 /* a wake-up; items that are closer together than this say nothing about waiting */

static double or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

static bool is_worker(const node_view *n)
{
    return !n->is_merge && !n->is_sink && !isnan(n->held);
}

/* -- what the rules measure: 0 = the rule does not apply; otherwise a share of the time */

typedef struct finding {
    const node_view *node; /* NULL = none */
    const queue_view *queue;
    double share;
} finding;

/* The nodes in the order of their use; the second one does not run on the same busy threads as the first. */
typedef struct judgement {
    const verdict_view *view;
    full_verdict *verdict;
    const node_view *first, *second;
} judgement;

/* Its slots wait for threads for a good part of the time in which they have work. */
static bool is_starved(const node_view *n)
{
    return n->thread >= 0.2 * n->held && n->thread > 0;
}

static double computing(const node_view *n)
{
    return or_zero(n->cpu) + n->delay;
}

static bool cpus_are_full(const system_view *s)
{
    bool by_budget = s->process >= 0.85 * s->budget, by_quota = s->throttled >= 0.05;
    bool by_machine = s->idle + or_zero(s->disk_idle) <= 0.1 * s->all;
    return by_budget || by_quota || by_machine; /* comparisons with NAN are false */
}

/* The CPUs that threads and processes other than the pools' use, beyond what the consumer may use. */
static double own_threads_cpus(const judgement *j)
{
    return j->view->system.outside - (1 - j->view->sink_waits);
}

static finding measure_consumer(const judgement *j)
{
    double occupied = j->view->sink ? j->view->sink->occupied : 0, held = j->first ? j->first->held : 0;
    return (finding){ .share = occupied >= fmax(0.7, held - CLOSE) ? occupied : 0 };
}

static finding measure_order(const judgement *j)
{
    finding most = { 0 };
    for (size_t i = 0; i < j->view->num_nodes; i++) {
        const node_view *n = &j->view->nodes[i];
        if (is_worker(n) && n->turn > most.share && n->held + n->turn >= PARTLY)
            most = (finding){ n, NULL, n->turn };
    }
    return most;
}

static finding of_first(const judgement *j, bool applies)
{
    return (finding){ j->first, NULL, applies && j->first ? j->first->held : 0 };
}

static finding measure_quota(const judgement *j)
{
    return of_first(j, j->view->system.throttled >= 0.3);
}

/* Threads that wait for a CPU: most of the time of busy threads that compute. */
static bool wait_for_cpus(const judgement *j, const node_view *n)
{
    const system_view *s = &j->view->system;
    if (is_starved(n))
        return (n->pool_cpu + n->pool_delay >= COMPUTING &&
                (n->pool_delay >= 0.15 || s->process >= 0.85 * s->budget) && cpus_are_full(s)) ||
               n->pool_delay >= 0.5;
    return computing(n) >= COMPUTING &&
           ((n->delay >= 0.15 && cpus_are_full(s)) || s->process >= 0.85 * s->budget || n->delay >= 0.35);
}

/* All CPUs are in use, most of them by child processes or by threads of a codec, while slots wait for them. */
static bool wait_for_helpers(const judgement *j, const node_view *n)
{
    const system_view *s = &j->view->system;
    double own = fmax(own_threads_cpus(j), n->slots * n->busy * or_zero(n->cpu));
    return cpus_are_full(s) && own >= 0.5 * s->process && own >= 0.3;
}

static bool lacks_cpus(const judgement *j)
{
    return j->first && (wait_for_cpus(j, j->first) || wait_for_helpers(j, j->first));
}

static finding measure_stolen(const judgement *j)
{
    const system_view *s = &j->view->system;
    return of_first(j, lacks_cpus(j) && s->stolen >= 0.1 * s->all && s->stolen >= s->other);
}

static finding measure_throttled(const judgement *j)
{
    return of_first(j, lacks_cpus(j) && j->view->system.throttled >= 0.05);
}

static finding measure_others(const judgement *j)
{
    const system_view *s = &j->view->system;
    double most = s->all > 0 ? fmin(s->budget, s->all) : s->budget;
    return of_first(j, lacks_cpus(j) && s->process < 0.7 * most && s->other >= 0.25 * s->all);
}

static finding measure_cpus(const judgement *j)
{
    return of_first(j, lacks_cpus(j));
}

static finding measure_threads(const judgement *j)
{
    const node_view *n = j->first;
    return of_first(j, n && is_starved(n) && (!n->pool || n->pool_busy >= PARTLY || n->slots > 1.5 * n->threads));
}

static finding measure_source(const judgement *j)
{
    return of_first(j, j->first && j->first->is_source);
}

static finding measure_own_threads(const judgement *j)
{
    double own = own_threads_cpus(j);
    return of_first(j, computing(j->first) < COMPUTING && own >= 0.3 && own >= 0.5 * j->view->system.process);
}

static finding measure_slots(const judgement *j)
{
    return of_first(j, computing(j->first) >= COMPUTING);
}

static finding measure_outside(const judgement *j)
{
    return of_first(j, true);
}

/* Slots wait for input while items are in their queue: those are of the next epoch. */
static finding measure_epochs(const judgement *j)
{
    finding most = { 0 };
    for (size_t i = 0; i < j->view->num_queues; i++) {
        const queue_view *q = &j->view->queues[i];
        int taker = q->putter + 1;
        if (q == j->view->sink || q->putter < 0 || (size_t)taker >= j->view->num_nodes)
            continue;
        const node_view *n = &j->view->nodes[taker];
        double share = n->in + q->occupied - 1;
        if (is_worker(n) && share > most.share)
            most = (finding){ n, q, share };
    }
    return most;
}

/* A queue that is often full, so that upstream waits, and often empty, so that downstream waits. Where items are closer
   together than a thread takes to wake, both are the time of the wake-ups. */
static finding measure_queue(const judgement *j)
{
    finding most = { 0 };
    for (size_t i = 0; i < j->view->num_queues && !(j->view->items_per_s * HAND_OFF_S > 0.5); i++) {
        const queue_view *q = &j->view->queues[i];
        double full = q->putter >= 0 ? or_zero(j->view->nodes[q->putter].out) : 0;
        double share = fmin(full, fmin(q->empty, 1 - q->occupied));
        if (share > most.share)
            most = (finding){ NULL, q, share };
    }
    return most;
}

static bool is_bound_by_bytes(const queue_view *q)
{
    return q->bound_bytes > 0 && q->max_depth < 0.9 * q->capacity && q->max_bytes >= 0.5 * q->bound_bytes;
}

static finding measure_bytes(const judgement *j)
{
    finding found = measure_queue(j);
    return found.queue && is_bound_by_bytes(found.queue) ? found : (finding){ 0 };
}

/* -- the rules. A sentence's %s is the name of the node or queue */

typedef struct rule {
    weir_verdict_kind kind;
    finding (*measure)(const judgement *j);
    double least;      /* share of the time */
    double confidence; /* that this is the limit, if it applies */
    const char *sentence;
} rule;

static const rule rules[] = {
    { WEIR_VERDICT_CONSUMER, measure_consumer, 0.7, 0.9,
      "The consumer: the pipeline makes items faster than they are taken." },
    { WEIR_VERDICT_ORDER, measure_order, 0.2, 0.85,
      "The order of the output of %s: finished items wait for a slow one before them." },
    { WEIR_VERDICT_CPUS, measure_quota, PARTLY, 0.85,
      "The CPU quota of the container: it stops the process, so %s waits." },
    { WEIR_VERDICT_CPUS, measure_throttled, PARTLY, 0.85,
      "The CPU quota of the container: it stops the process, so %s waits." },
    { WEIR_VERDICT_CPUS, measure_stolen, PARTLY, 0.85,
      "The CPUs: other virtual machines take them while %s waits for one." },
    { WEIR_VERDICT_CPUS, measure_others, PARTLY, 0.85, "The CPUs: other programs take them while %s waits for one." },
    { WEIR_VERDICT_CPUS, measure_cpus, PARTLY, 0.9,
      "The CPUs: this process uses all that it may use, most of it for %s." },
    { WEIR_VERDICT_THREADS, measure_threads, PARTLY, 0.9,
      "The threads: %s keeps them busy, and slots with work wait for one." },
    { WEIR_VERDICT_SOURCE, measure_source, SATURATED, 0.9,
      "The source %s: it makes items more slowly than the stages could take them." },
    { WEIR_VERDICT_SLOTS, measure_own_threads, SATURATED, 0.8,
      "The slots of %s: all of them wait for threads that a codec or library started, which compute." },
    { WEIR_VERDICT_SLOTS, measure_slots, SATURATED, 0.9,
      "The slots of %s: all of them compute nearly all the time." },
    { WEIR_VERDICT_OUTSIDE, measure_outside, SATURATED, 0.85,
      "The slots of %s: all of them are busy, mostly with waiting for something outside weir." },
    { WEIR_VERDICT_ORDER, measure_epochs, 0.15, 0.75,
      "The ends of epochs: slots of %s wait for the last items of an epoch before they may begin the next one." },
    { WEIR_VERDICT_QUEUE, measure_bytes, 0.15, 0.75, "The byte bound of %s: it leaves room for too few items." },
    { WEIR_VERDICT_QUEUE, measure_queue, 0.15, 0.75,
      "The queue %s: items come and go in bursts that it is too small for." },
    { WEIR_VERDICT_SOURCE, measure_source, PARTLY, 0.6,
      "The source %s: it makes items more slowly than the stages could take them." },
    { WEIR_VERDICT_SLOTS, measure_slots, PARTLY, 0.6, "The slots of %s: they compute most of the time." },
    { WEIR_VERDICT_OUTSIDE, measure_outside, PARTLY, 0.6,
      "The slots of %s: they are busy most of the time, mostly with waiting for something outside weir." },
};

static const char *const words[WEIR_NUM_VERDICTS] = {
    [WEIR_VERDICT_UNKNOWN] = "unknown", [WEIR_VERDICT_NONE] = "none",   [WEIR_VERDICT_CONSUMER] = "consumer",
    [WEIR_VERDICT_SOURCE] = "source",   [WEIR_VERDICT_SLOTS] = "slots", [WEIR_VERDICT_OUTSIDE] = "outside",
    [WEIR_VERDICT_THREADS] = "threads", [WEIR_VERDICT_CPUS] = "cpus",   [WEIR_VERDICT_ORDER] = "order",
    [WEIR_VERDICT_QUEUE] = "queue",
};

const char *weir_verdict_word(weir_verdict_kind kind)
{
    return (size_t)kind < WEIR_NUM_VERDICTS ? words[kind] : "";
}

/* -- texts */

void weir__verdict_add_evidence(full_verdict *v, const char *format, ...)
{
    va_list values;
    if (v->shown.num_evidence == VERDICT_MAX_EVIDENCE)
        return;
    char *line = v->lines[v->shown.num_evidence];
    va_start(values, format);
    vsnprintf(line, VERDICT_TEXT_BYTES, format, values);
    va_end(values);
    v->evidence[v->shown.num_evidence++] = line;
}

static void put_sentence(char *text, const char *sentence, const char *name)
{
    const char *at = strstr(sentence, "%s");
    size_t before = at ? (size_t)(at - sentence) : strlen(sentence);
    before = before < VERDICT_TEXT_BYTES ? before : VERDICT_TEXT_BYTES - 1;
    memcpy(text, sentence, before);
    snprintf(text + before, VERDICT_TEXT_BYTES - before, "%s%s", at ? name : "", at ? at + 2 : "");
}

void weir__verdict_settle(full_verdict *v, weir_verdict_kind kind, const char *name, const char *sentence,
                          double confidence)
{
    v->shown.kind = kind;
    v->shown.confidence = fmax(0.05, fmin(0.99, confidence));
    snprintf(v->name, sizeof v->name, "%s", name);
    put_sentence(v->sentence, sentence, name);
}

static void settle_other(full_verdict *v, weir_verdict_kind kind, const char *name, const char *sentence)
{
    v->shown.other_kind = kind;
    v->shown.confidence = fmin(v->shown.confidence, 0.5);
    snprintf(v->other_name, sizeof v->other_name, "%s", name);
    put_sentence(v->other_sentence, sentence, name);
}

/* ", waiting for room 12 %", if it is at least half a percent */
static void append_share(char *text, const char *what, double share)
{
    size_t length = strlen(text);
    if (share >= 0.005)
        snprintf(text + length, VERDICT_TEXT_BYTES - length, ", %s %.0f %%", what, 100 * share);
}

static void tell_slots(full_verdict *v, const node_view *n)
{
    char waits[VERDICT_TEXT_BYTES] = "", on_cpu[VERDICT_TEXT_BYTES] = "";
    append_share(waits, "waiting for input", n->in);
    append_share(waits, "waiting for a thread", n->thread);
    append_share(waits, "waiting for an earlier result", n->turn);
    append_share(waits, "waiting for room in its queue", n->out);
    weir__verdict_add_evidence(v, "%s (%.3g slot%s): busy for %.0f %% of the time%s", n->name, n->slots,
                               n->slots > 1.05 ? "s" : "", 100 * n->busy, waits);
    if (isnan(n->cpu) || n->busy <= 0.05)
        return;
    append_share(on_cpu, "waiting for a CPU", n->delay);
    append_share(on_cpu, "waiting for something else", fmax(0, 1 - n->cpu - n->delay));
    weir__verdict_add_evidence(v, "while it is busy: on a CPU for %.0f %% of the time%s", 100 * n->cpu, on_cpu);
}

static void tell_threads(full_verdict *v, const node_view *n)
{
    if (n->pool)
        weir__verdict_add_evidence(
            v, "%s (%.0f thread%s): busy for %.0f %% of the time, on a CPU for %.0f %% of that", n->pool, n->threads,
            n->threads > 1 ? "s" : "", 100 * n->pool_busy, 100 * fmin(1, n->pool_cpu));
}

static void tell_cpus(full_verdict *v, const judgement *j)
{
    const system_view *s = &j->view->system;
    char other[80] = "", idle[40] = "", quota[60] = "";
    if (isnan(s->process) || isnan(s->budget))
        return;
    if (!isnan(s->other))
        snprintf(other, sizeof other, ", other programs %.2f", s->other + or_zero(s->stolen));
    if (!isnan(s->idle))
        snprintf(idle, sizeof idle, ", %.2f are idle", s->idle + or_zero(s->disk_idle));
    if (s->throttled > 0.005)
        snprintf(quota, sizeof quota, "; the quota stopped it for %.0f %% of the time", 100 * s->throttled);
    weir__verdict_add_evidence(v, "CPUs: this process uses %.2f of %.0f%s%s%s", s->process, s->budget, other, idle,
                               quota);
    if (own_threads_cpus(j) >= 0.3)
        weir__verdict_add_evidence(v, "%.2f CPUs are used by threads that are not the pipeline's",
                                   own_threads_cpus(j));
}

/* -- evidence on what tasks wait for */

/* Items of eight times the median and more. */
static void tell_giants(full_verdict *v, const node_view *n)
{
    double all = 0, above = 0, count = 0;
    if (!n->times || n->times->count < FEW_ITEMS)
        return;
    double giant_s = 8e-9 * (double)weir_histogram_quantile_ns(n->times, 0.5);
    for (uint32_t i = n->times->first; i <= n->times->last; i++) {
        double length_s = weir__model_bucket_s(i), number = (double)n->times->buckets[i];
        all += length_s * number;
        above += length_s >= giant_s ? length_s * number : 0;
        count += length_s >= giant_s ? number : 0;
    }
    if (above >= 0.3 * all && count <= 0.05 * (double)n->times->count)
        weir__verdict_add_evidence(v, "%.1f %% of the items of %s take %.0f %% of its time: weir slowest shows them",
                                   100 * count / (double)n->times->count, n->name, 100 * above / all);
}

/* Numbers that are the same for a lock and for a slow server: which one it is, an experiment tells. */
static void tell_waits(full_verdict *v, const judgement *j, const node_view *n)
{
    const system_view *s = &j->view->system;
    char bytes[WEIR_FORMAT_BYTES], each[WEIR_FORMAT_BYTES], shortest[WEIR_FORMAT_BYTES];
    weir__text_format_time(each, n->time_s);
    weir__text_format_time(shortest, n->shortest_s);
    if (n->time_s > 0 && n->shortest_s > 0)
        weir__verdict_add_evidence(v, "on average %.1f tasks run at once, and each takes %s; the shortest took %s",
                                   n->slots * n->busy, each, shortest);
    if (s->memory_pressure >= 0.1 && s->major_faults > 1)
        weir__verdict_add_evidence(v,
                                   "for %.0f %% of the time some task waited for memory; %.0f page faults per second "
                                   "had to read",
                                   100 * s->memory_pressure, s->major_faults);
    if (s->io_pressure >= 0.2 || s->disk_idle >= 0.2) {
        weir__text_format_bytes(bytes, or_zero(s->stored));
        weir__verdict_add_evidence(v,
                                   "for %.0f %% of the time some task of the machine waited for a disk; this process "
                                   "reads and writes %s per second",
                                   100 * or_zero(s->io_pressure), bytes);
    }
    if (s->received >= 50e3) {
        weir__text_format_bytes(bytes, s->received);
        weir__verdict_add_evidence(v, "all programs of the machine together receive %s per second from the network",
                                   bytes);
    }
    tell_giants(v, n);
}

static void tell_queue(full_verdict *v, const queue_view *q, double share)
{
    weir__verdict_add_evidence(v,
                               "%s: often full, so that the stage before it waits, and often empty, so that the next "
                               "one waits (each for at least %.0f %% of the time)",
                               q->name, 100 * share);
    weir__verdict_add_evidence(v, "it holds %.1f items on average; the highest level was %.0f of %.0f", q->ave_depth,
                               q->max_depth, q->capacity);
}

static void add_finding(full_verdict *v, const judgement *j, weir_verdict_kind kind, const finding *found)
{
    if (kind == WEIR_VERDICT_CONSUMER) {
        weir__verdict_add_evidence(v, "%s: not empty for %.0f %% of the time when the consumer asks",
                                   j->view->sink->name, 100 * found->share);
        if (j->first)
            weir__verdict_add_evidence(v, "no stage or source is in use for more than %.0f %% of the time",
                                       100 * fmin(1, j->first->held));
        if (v->polls)
            weir__verdict_add_evidence(v, "the consumer does not wait in weir_pipeline_next(), but asks again and "
                                          "again, and items wait until it comes back");
        return;
    }
    if (found->node)
        tell_slots(v, found->node);
    if (kind == WEIR_VERDICT_THREADS || (kind == WEIR_VERDICT_CPUS && is_starved(found->node)))
        tell_threads(v, found->node);
    if (kind == WEIR_VERDICT_THREADS || kind == WEIR_VERDICT_CPUS || kind == WEIR_VERDICT_SLOTS)
        tell_cpus(v, j);
    if (kind == WEIR_VERDICT_OUTSIDE || kind == WEIR_VERDICT_SOURCE)
        tell_waits(v, j, found->node);
    if (kind == WEIR_VERDICT_SLOTS)
        tell_giants(v, found->node);
    if (found->queue && !found->node)
        tell_queue(v, found->queue, found->share);
    else if (found->queue)
        weir__verdict_add_evidence(v,
                                   "while its slots wait for input, %s is not empty (for %.0f %% of the time): these "
                                   "items are of the next epoch",
                                   found->queue->name, 100 * found->queue->occupied);
}

/* -- the verdict */

static void rank_nodes(judgement *j)
{
    for (size_t i = 0; i < j->view->num_nodes; i++) {
        const node_view *n = &j->view->nodes[i];
        if (is_worker(n) && (!j->first || n->held > j->first->held))
            j->first = n;
    }
    for (size_t i = 0; j->first && i < j->view->num_nodes; i++) {
        const node_view *n = &j->view->nodes[i];
        bool waits_as_well = is_worker(n) && is_starved(n) && n->pool == j->first->pool;
        if (is_worker(n) && n != j->first && !waits_as_well && (!j->second || n->held > j->second->held))
            j->second = n;
    }
    /* With more slots than threads, no slot is in use all the time, but the threads are. */
    for (size_t i = 0; j->first && j->first->held < PARTLY && i < j->view->num_nodes; i++) {
        const node_view *n = &j->view->nodes[i];
        if (is_worker(n) && is_starved(n) && n->pool_busy >= SATURATED)
            j->first = n;
    }
}

/* The threads of its pool that a node keeps busy, on average; pending tasks keep none. */
static double threads_of(const judgement *j, const node_view *n)
{
    double busy = n->slots * n->busy, left = n->pool_busy * n->threads;
    if (!(busy > n->threads))
        return busy;
    for (size_t i = 0; i < j->view->num_nodes; i++) {
        const node_view *other = &j->view->nodes[i];
        left -= other != n && other->pool == n->pool && is_worker(other) ? other->slots * other->busy : 0;
    }
    return fmax(busy * or_zero(n->cpu), fmin(busy, left));
}

/* Which node takes most of the threads, or CPUs, that `n` waits for. */
static const node_view *find_user(const judgement *j, weir_verdict_kind kind, const node_view *n)
{
    const node_view *user = n;
    double most = -1;
    for (size_t i = 0; i < j->view->num_nodes; i++) {
        const node_view *other = &j->view->nodes[i];
        if (!is_worker(other) || !other->pool || (kind == WEIR_VERDICT_THREADS && other->pool != n->pool))
            continue;
        double uses =
            kind == WEIR_VERDICT_THREADS ? threads_of(j, other) : other->slots * other->busy * computing(other);
        if (uses > most) {
            most = uses;
            user = other;
        }
    }
    return user;
}

/* A rule applies to a node whose pool is full although its slots are not. */
static bool rule_applies(const judgement *j, const rule *r, const finding *found)
{
    bool by_pool = found->node && found->node == j->first &&
                   (r->kind == WEIR_VERDICT_THREADS || r->kind == WEIR_VERDICT_CPUS) && is_starved(found->node) &&
                   found->node->pool_busy >= SATURATED;
    return found->share > 0 && (found->share >= r->least || by_pool);
}

static const char sources[] = "The source %s: it is in use nearly as much.",
                  stages[] = "The slots of %s: they are in use nearly as much.",
                  training[] = "Nothing limits it: finished items wait for your program, as they should.";

static void apply_rule(judgement *j, const rule *r, const finding *found)
{
    full_verdict *v = j->verdict;
    bool shares = r->kind == WEIR_VERDICT_THREADS || r->kind == WEIR_VERDICT_CPUS;
    bool by_use = found->node && found->node == j->first;
    const node_view *named = shares ? find_user(j, r->kind, found->node) : found->node;
    const char *name = named ? named->name : found->queue ? found->queue->name : "";
    add_finding(v, j, r->kind, found);
    if (shares && named != found->node)
        weir__verdict_add_evidence(v, "%s uses most of them: %.2f on average", name,
                                   r->kind == WEIR_VERDICT_THREADS ? threads_of(j, named)
                                                                   : named->slots * named->busy * computing(named));
    weir__verdict_settle(v, r->kind, name, r->sentence, r->confidence);
    if (r->kind == WEIR_VERDICT_CONSUMER && j->view->trains)
        weir__verdict_settle(v, WEIR_VERDICT_NONE, "", training, r->confidence);
    const node_view *rival = r->kind == WEIR_VERDICT_CONSUMER ? j->first : by_use && !shares ? j->second : NULL;
    if (!rival || rival->held < SATURATED ||
        (by_use && (found->share < SATURATED || found->share - rival->held >= CLOSE)))
        return;
    weir__verdict_add_evidence(v, "%s is in use nearly as much: for %.0f %% of the time", rival->name,
                               100 * fmin(1, rival->held));
    settle_other(v,
                 rival->is_source                ? WEIR_VERDICT_SOURCE
                 : computing(rival) >= COMPUTING ? WEIR_VERDICT_SLOTS
                                                 : WEIR_VERDICT_OUTSIDE,
                 rival->name, rival->is_source ? sources : stages);
}

static void find_full_limit(judgement *j)
{
    static const char unknown[] = "The data cannot tell what limits the run.";
    const queue_view *sink = j->view->sink;
    weir__verdict_settle(j->verdict, WEIR_VERDICT_UNKNOWN, "", unknown, 0);
    if (!j->first) { /* databases of SPDL and of the first versions: only queues */
        if (sink && sink->occupied > 0) {
            weir__verdict_add_evidence(j->verdict, "%s: not empty for %.0f %% of the time", sink->name,
                                       100 * sink->occupied);
            if (sink->occupied > 0.5)
                weir__verdict_settle(j->verdict, WEIR_VERDICT_CONSUMER, "", rules[0].sentence, 0.6);
        }
        return;
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        finding found = rules[i].measure(j);
        if (rule_applies(j, &rules[i], &found)) {
            apply_rule(j, &rules[i], &found);
            return;
        }
    }
    tell_slots(j->verdict, j->first);
}

static bool tell_all_failed(judgement *j)
{
    if (!j->view->sink || j->view->num_items > 0)
        return false;
    weir__verdict_add_evidence(j->verdict, "no item was delivered: see weir failures");
    return true;
}

/* A few items are not a sample. */
static void weigh_sample(judgement *j)
{
    weir_verdict *shown = &j->verdict->shown;
    if (shown->kind == WEIR_VERDICT_UNKNOWN) {
        tell_all_failed(j);
        return;
    }
    if (j->view->num_items >= FEW_ITEMS)
        return;
    shown->confidence *= 0.6;
    j->verdict->is_short = true;
    weir__verdict_add_evidence(j->verdict, "only %.0f items were delivered in the part of the run that counts",
                               j->view->num_items);
}

full_verdict *weir__verdict_judge(const verdict_view *view)
{
    judgement j = { .view = view, .verdict = calloc(1, sizeof *j.verdict) };
    full_verdict *v = j.verdict;
    if (!v)
        return NULL;
    v->polls = view->polls;
    v->shown = (weir_verdict){ .name = v->name,
                               .sentence = v->sentence,
                               .other_name = v->other_name,
                               .other_sentence = v->other_sentence,
                               .missing = v->missing,
                               .evidence = v->evidence,
                               .advice = v->advice,
                               .items_per_s = view->items_per_s };
    rank_nodes(&j);
    find_full_limit(&j);
    weigh_sample(&j);
    return v;
}

void weir__verdict_settle_change(full_verdict *v, const full_verdict *before, const full_verdict *after, double share)
{
    const full_verdict *longer = share >= 0.5 ? before : after, *other = share >= 0.5 ? after : before;
    v->shown.num_evidence = 0;
    weir__verdict_settle(v, longer->shown.kind, longer->name, longer->sentence, longer->shown.confidence);
    settle_other(v, other->shown.kind, other->name, other->sentence);
    weir__verdict_add_evidence(v,
                               "the limit changed after %.0f %% of this time: before, %.2f items per second; after, "
                               "%.2f",
                               100 * share, before->shown.items_per_s, after->shown.items_per_s);
    for (size_t i = 0; i < longer->shown.num_evidence; i++)
        weir__verdict_add_evidence(v, "%s: %s", share >= 0.5 ? "before" : "after", longer->lines[i]);
    for (size_t i = 0; i < other->shown.num_evidence; i++)
        weir__verdict_add_evidence(v, "%s: %s", share >= 0.5 ? "after" : "before", other->lines[i]);
}

weir_verdict *weir_verdict_of_totals(const weir_totals *totals)
{
    verdict_view view;
    if (!totals || !weir__verdict_view_totals(&view, totals, totals, NULL, 0))
        return NULL;
    full_verdict *v = weir__verdict_judge(&view);
    weir__verdict_view_free(&view);
    return v ? &v->shown : NULL;
}

void weir_verdict_free(weir_verdict *verdict)
{
    free(verdict); /* the first member of what was allocated */
}

const char *weir_verdict_certainty(const weir_verdict *verdict)
{
    double confidence = verdict ? verdict->confidence : 0;
    return confidence >= 0.8 ? "clear" : confidence >= 0.55 ? "likely" : "unsure";
}
