/*
 * What limits a pipeline: a table of rules, each with what it measures, from how much on it applies, and what it says.
 * The first rule that applies is the limit. docs/verdict.md explains each of them. Offline, the rules name a resource that
 * is full; whether more of it helps is measured, by weir_explain_live() or by another run.
 */
#include "stats/advice/verdict/verdict_view.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/format.h"
#include "stats/advice/model/model.h"

#define SURE \
    0.9 /* at most: of 51 verdicts on recordings of known pipelines none was wrong, so 94 % or more are right */

static bool is_worker(const node_view *n)
{
    return !n->is_merge && !n->is_sink && !isnan(n->held);
}

/* -- what the rules measure: 0 = the rule does not apply; otherwise a share of the time */

typedef struct finding {
    const node_view *node; /* NULL = none */
    const queue_view *queue;
    double share; /* of the time; of a cause of timing: of the time that is lost */
    double loss;  /* of a cause of timing: share of the time */
} finding;

/* The nodes in the order of their use; the second one does not run on the same busy threads as the first. */
typedef struct judgement {
    const verdict_view *view;
    full_verdict *verdict;
    const node_view *first, *second;
} judgement;

/* More of the slots of its pool wait for a thread than there are idle threads: by Little's law at least one more would be
   in use. Without figures of the pool: at least half as many wait as run. */
static bool is_starved(const judgement *j, const node_view *n)
{
    double waiting = 0, idle = n->pool ? n->threads * (1 - n->pool_busy) : MOST * n->slots * n->busy;
    for (size_t i = 0; i < j->view->num_nodes; i++) {
        const node_view *other = &j->view->nodes[i];
        waiting += is_worker(other) && (other == n || (n->pool && other->pool == n->pool))
                       ? other->slots * other->thread
                       : 0;
    }
    return n->thread > 0 && waiting >= HALF && waiting > idle;
}

static double computing(const node_view *n)
{
    return weir__or_zero(n->cpu) + n->delay;
}

weir_verdict_kind weir__verdict_kind_of(const node_view *n)
{
    return n->is_source ? WEIR_VERDICT_SOURCE : computing(n) >= MOST ? WEIR_VERDICT_SLOTS : WEIR_VERDICT_OUTSIDE;
}

/* The tasks that wait for a CPU, on average. */
static double waiting_for_cpus(const judgement *j)
{
    double waiting = 0;
    for (size_t i = 0; i < j->view->num_nodes; i++)
        waiting += is_worker(&j->view->nodes[i])
                       ? j->view->nodes[i].slots * j->view->nodes[i].busy * j->view->nodes[i].delay
                       : 0;
    return waiting;
}

/* The CPUs that one more task would find. */
static double cpus_left(const judgement *j)
{
    const system_view *s = &j->view->system;
    return fmin(s->budget - s->process, s->idle + weir__or_zero(s->disk_idle)); /* fmin() ignores what is not known */
}

/* This process uses all that it may: not one more task would find a CPU. Or fewer CPUs are left than tasks wait for one, and at
   least one does: a scheduler leaves some idle. That other programs leave none idle says nothing by itself: a scheduler shares
   the CPUs, and what this process lacks is the time in which its own threads wait for one. */
static bool cpus_are_full(const judgement *j)
{
    const system_view *s = &j->view->system;
    double waiting = waiting_for_cpus(j);
    return s->budget - s->process < HALF || (cpus_left(j) < waiting && waiting >= HALF);
}

/* The CPUs that threads and processes other than the pools' use, beyond what the consumer may use. */
static double own_threads_cpus(const judgement *j)
{
    return j->view->system.outside - (1 - j->view->sink_waits);
}

/* Whether a run without this share of its time would be faster by WEIR_WORTH_GAIN, which is worth a change. */
static bool is_worth(double share)
{
    return share > 0 && 1 / (1 - fmin(share, 0.99)) >= WEIR_WORTH_GAIN;
}

/* The share of the time in which more of a node could bring more. That is the time in which it is held. Time in which
   items wait behind a merge that its own go through, or in the store that a source has made, does not count. Both a
   slow input of a merge by arrival and such a source are held all the time. So is a node whose thread has another
   one's tasks meanwhile; where those that take its items hardly wait for any, a thread for it brings nothing. -1 = it
   does not work. */
static double use_of(const judgement *j, const node_view *n)
{
    double use = is_worker(n) ? n->held : -1;
    for (size_t i = 0; i < j->view->num_queues; i++) {
        const queue_view *q = &j->view->queues[i];
        const node_view *putter = q->putter >= 0 ? &j->view->nodes[q->putter] : NULL;
        bool has_store = putter == n && n->is_source && q->occupied >= FULL;
        bool is_early = putter == n && n->is_source && q != j->view->sink && !is_worth(q->empty);
        if (is_early)
            use = fmin(use, n->busy);
        if (putter && ((putter->is_merge && putter > n) || has_store))
            use = fmin(use, 1 - q->occupied);
    }
    return use;
}

double weir__verdict_use(const verdict_view *view, size_t node)
{
    judgement j = { .view = view };
    return use_of(&j, &view->nodes[node]);
}

static finding measure_consumer(const judgement *j)
{
    double occupied = j->view->sink ? j->view->sink->occupied : 0, held = j->first ? use_of(j, j->first) : 0;
    return (finding){ .share = occupied * WEIR_WORTH_GAIN >= held ? occupied : 0 };
}

static finding measure_order(const judgement *j)
{
    finding most = { 0 };
    for (size_t i = 0; i < j->view->num_nodes; i++) {
        const node_view *n = &j->view->nodes[i];
        if (is_worker(n) && n->turn > most.share && is_worth(n->turn) && n->slots * n->turn >= HALF)
            most = (finding){ .node = n, .share = n->turn };
    }
    if (most.node)
        most.share = most.node->held + most.node->turn;
    return most;
}

static finding of_first(const judgement *j, bool applies)
{
    const node_view *n = j->first;
    double pool = n && is_starved(j, n) ? n->pool_busy : 0; /* its threads are full although its slots are not */
    return (finding){ .node = n, .share = applies && n ? fmax(use_of(j, n), pool) : 0 };
}

/* Most of the time in which its tasks are not on a CPU, the quota stops them. */
static finding measure_quota(const judgement *j)
{
    double throttled = weir__or_zero(j->view->system.throttled);
    return of_first(j, j->first && throttled > 0 && throttled >= MOST * (1 - weir__or_zero(j->first->cpu)));
}

/* Most of the time in which its slots have an item they hold a thread or wait for one: the tasks are not pending. */
static bool needs_threads(const node_view *n)
{
    return n->thread + n->busy * (1 - n->pending) >= MOST * n->held;
}

/* The tasks of the node, or the threads that they wait for, need CPUs most of the time, and get none. Short tasks on
   threads that wait for a CPU most of the time do so as well: their own delay is not measured. */
static bool wait_for_cpus(const judgement *j, const node_view *n)
{
    bool starves = is_starved(j, n);
    double cpu = starves ? n->pool_cpu : weir__or_zero(n->cpu), delay = starves ? n->pool_delay : n->delay;
    bool is_full = cpus_are_full(j);
    return (cpu + delay >= MOST && is_full) || delay >= MOST ||
           (n->pool_delay >= MOST && is_full && needs_threads(n));
}

/* All CPUs are in use, most of them by threads of a codec, or processes that report to no task, while slots wait for them. */
static bool wait_for_helpers(const judgement *j)
{
    double own = own_threads_cpus(j);
    return cpus_are_full(j) && own >= MOST * j->view->system.process && own >= HALF;
}

/* The CPUs that the tasks use, and child processes for them. */
static double tasks_cpus(const judgement *j)
{
    double used = 0;
    for (size_t i = 0; i < j->view->num_nodes; i++) {
        const node_view *n = &j->view->nodes[i];
        used += is_worker(n) ? n->slots * n->busy * weir__or_zero(n->cpu) : 0;
    }
    return used;
}

/* The tasks use the CPUs so far that all of them would not bring a worthwhile gain: this is the utilisation law, whatever else the
   tasks wait for. */
static bool cpus_are_used_up(const judgement *j)
{
    const system_view *s = &j->view->system;
    return s->budget < WEIR_WORTH_GAIN * s->process && tasks_cpus(j) >= MOST * s->process;
}

static bool lacks_cpus(const judgement *j)
{
    return j->first && (wait_for_cpus(j, j->first) || wait_for_helpers(j) || cpus_are_used_up(j));
}

/* CPUs that the process could use, but does not. */
static double missing_cpus(const judgement *j)
{
    return fmin(j->view->system.budget, j->view->system.all) - j->view->system.process;
}

/* At least one CPU that the process could use is not its own, and most of that is taken by `taken`. */
static finding taken_by(const judgement *j, double taken)
{
    double missing = missing_cpus(j);
    return of_first(j, lacks_cpus(j) && missing >= HALF && taken >= MOST * missing);
}

static finding measure_stolen(const judgement *j)
{
    return taken_by(j, j->view->system.stolen);
}

static finding measure_ranks(const judgement *j)
{
    return taken_by(j, j->view->system.ranks);
}

static finding measure_others(const judgement *j)
{
    return taken_by(j, weir__or_zero(j->view->system.other) + weir__or_zero(j->view->system.ranks));
}

static finding measure_cpus(const judgement *j)
{
    return of_first(j, lacks_cpus(j));
}

/* Most of what its slots, threads or CPUs do is lost: without the items that fail, the others would get more than twice of it. */
static finding measure_failures(const judgement *j)
{
    const node_view *n = j->first;
    bool is_limit = n && (use_of(j, n) >= FULL || is_starved(j, n) || lacks_cpus(j));
    return of_first(j, is_limit && n->failed >= MOST);
}

static finding measure_threads(const judgement *j)
{
    return of_first(j, j->first && is_starved(j, j->first));
}

static finding measure_source(const judgement *j)
{
    return of_first(j, j->first->is_source);
}

static finding measure_own_threads(const judgement *j)
{
    double own = own_threads_cpus(j);
    return of_first(j, computing(j->first) < MOST && own >= HALF && own >= MOST * j->view->system.process);
}

static finding measure_slots(const judgement *j)
{
    return of_first(j, computing(j->first) >= MOST);
}

static finding measure_outside(const judgement *j)
{
    return of_first(j, true);
}

/* A cause of timing: how much it explains of the time in which the fullest resource is not in use. */
static finding explain_loss(const judgement *j, finding found)
{
    double lost = 1 - use_of(j, j->first);
    found.loss = found.share;
    found.share = is_worth(found.loss) && is_worth(lost) ? fmin(1, found.loss / lost) : 0;
    return found;
}

/* The share of its slots' time that goes into the ends of epochs. */
static double at_epoch_ends(const node_view *n)
{
    return n->epoch_tail + n->epoch_gap;
}

/* Of the stage that works most: those that work less wait anyway. */
static finding find_epoch_ends(const judgement *j)
{
    const node_view *most = NULL;
    for (size_t i = 0; i < j->view->num_nodes; i++) {
        const node_view *n = &j->view->nodes[i];
        if (is_worker(n) && !n->is_source && (!most || n->held > most->held))
            most = n;
    }
    double share = most ? at_epoch_ends(most) : 0;
    return (finding){ .node = most, .share = share, .loss = share };
}

/* Slots wait for input while items are in their queue: those are of the next epoch. All that older recordings show. */
static finding measure_next_epoch(const judgement *j)
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
            most = (finding){ .node = n, .queue = q, .share = share };
    }
    return most;
}

static finding measure_epochs(const judgement *j)
{
    finding ends = find_epoch_ends(j);
    return explain_loss(j, ends.share > 0 ? ends : measure_next_epoch(j));
}

/* A queue that is often full, so that upstream waits, and often empty, so that downstream waits. */
static finding measure_queue(const judgement *j)
{
    finding most = { 0 };
    for (size_t i = 0; i < j->view->num_queues; i++) {
        const queue_view *q = &j->view->queues[i];
        double full = q->putter >= 0 ? weir__or_zero(j->view->nodes[q->putter].out) : 0;
        double share = fmin(full, fmin(q->empty, 1 - q->occupied));
        if (share > most.share)
            most = (finding){ .queue = q, .share = share };
    }
    return explain_loss(j, most);
}

/* The queue was full of bytes, and never of items. */
static bool is_bound_by_bytes(const queue_view *q)
{
    return q->bound_bytes > 0 && q->max_depth < q->capacity && q->max_bytes >= q->bound_bytes;
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
    double least; /* it applies from this share on */
    const char *sentence;
} rule;

static const char epoch_ends[] =
    "The ends of epochs: slots of %s wait for the last items of an epoch before they may begin the next one.";

static const rule rules[] = {
    { WEIR_VERDICT_CONSUMER, measure_consumer, FULL,
      "The consumer: the pipeline makes items faster than they are taken." },
    { WEIR_VERDICT_ORDER, measure_order, FULL,
      "The order of the output of %s: finished items wait for a slow one before them." },
    { WEIR_VERDICT_FAILURES, measure_failures, MOST,
      "Items that fail: most of the time of the tasks of %s goes into them." }, /* apply_rule() says how much */
    { WEIR_VERDICT_ORDER, find_epoch_ends, MOST, epoch_ends },
    { WEIR_VERDICT_CPUS, measure_quota, MOST, "The CPU quota of the container: it stops the process, so %s waits." },
    { WEIR_VERDICT_CPUS, measure_stolen, MOST, "The CPUs: other virtual machines take them while %s waits for one." },
    { WEIR_VERDICT_CPUS, measure_ranks, MOST,
      "The CPUs: the other ranks of the job take them while %s waits for one." },
    { WEIR_VERDICT_CPUS, measure_others, MOST, "The CPUs: other programs take them while %s waits for one." },
    { WEIR_VERDICT_CPUS, measure_cpus, MOST, "The CPUs: this process uses all that it may use, most of it for %s." },
    { WEIR_VERDICT_THREADS, measure_threads, MOST,
      "The threads: %s keeps them busy, and slots with work wait for one." },
    { WEIR_VERDICT_SOURCE, measure_source, FULL,
      "The source %s: it makes items more slowly than the stages could take them." },
    { WEIR_VERDICT_SLOTS, measure_own_threads, FULL,
      "The slots of %s: all of them wait for threads that a codec or library started, which compute." },
    { WEIR_VERDICT_SLOTS, measure_slots, FULL, "The slots of %s: all of them compute nearly all the time." },
    { WEIR_VERDICT_OUTSIDE, measure_outside, FULL,
      "The slots of %s: all of them are busy, mostly with waiting for something outside weir." },
    { WEIR_VERDICT_ORDER, measure_epochs, MOST, epoch_ends },
    { WEIR_VERDICT_QUEUE, measure_bytes, MOST, "The byte bound of %s: it leaves room for too few items." },
    { WEIR_VERDICT_QUEUE, measure_queue, MOST,
      "The queue %s: items come and go in bursts that it is too small for." },
};

static const char *const words[WEIR_NUM_VERDICTS] = {
    [WEIR_VERDICT_UNKNOWN] = "unknown", [WEIR_VERDICT_NONE] = "none",         [WEIR_VERDICT_CONSUMER] = "consumer",
    [WEIR_VERDICT_SOURCE] = "source",   [WEIR_VERDICT_SLOTS] = "slots",       [WEIR_VERDICT_OUTSIDE] = "outside",
    [WEIR_VERDICT_THREADS] = "threads", [WEIR_VERDICT_CPUS] = "cpus",         [WEIR_VERDICT_ORDER] = "order",
    [WEIR_VERDICT_QUEUE] = "queue",     [WEIR_VERDICT_FAILURES] = "failures",
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

void weir__verdict_settle_other(full_verdict *v, weir_verdict_kind kind, const char *name, const char *sentence)
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
    if (is_worth(n->failed))
        weir__verdict_add_evidence(
            v, "%.0f %% of the time of its tasks goes into %.0f that fail: weir failures lists them", 100 * n->failed,
            n->num_failures);
    if (isnan(n->cpu) || n->busy < 0.005)
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
    if (s->ranks > 0)
        snprintf(other, sizeof other, ", other ranks of the job %.2f", s->ranks);
    if (!isnan(s->other))
        snprintf(other + strlen(other), sizeof other - strlen(other), ", other programs %.2f",
                 s->other + weir__or_zero(s->stolen));
    if (!isnan(s->idle))
        snprintf(idle, sizeof idle, ", %.2f are idle", s->idle + weir__or_zero(s->disk_idle));
    if (s->throttled > 0.005)
        snprintf(quota, sizeof quota, "; the quota stopped it for %.0f %% of the time", 100 * s->throttled);
    weir__verdict_add_evidence(v, "CPUs: this process uses %.2f of %.0f%s%s%s", s->process, s->budget, other, idle,
                               quota);
    if (j->view->world > 1 && isnan(s->ranks))
        weir__verdict_add_evidence(v, "other programs may be other ranks of this job, which are not in this database "
                                      "(weir merge joins their databases)");
    if (own_threads_cpus(j) >= HALF)
        weir__verdict_add_evidence(v, "%.2f CPUs are used by threads that are not the pipeline's",
                                   own_threads_cpus(j));
}

/* -- evidence on what tasks wait for */

/* What the slowest of 100 items take together, if an end to that is worth a change. */
static void report_tail(full_verdict *v, const node_view *n)
{
    double all = 0, slowest = 0, left = n->times ? floor(0.01 * (double)n->times->count) : 0;
    if (!n->times || left < 1)
        return;
    for (uint32_t i = n->times->last + 1; i-- > n->times->first;) {
        double length_s = weir__model_bucket_s(i), number = (double)n->times->buckets[i], tail = fmin(number, left);
        all += length_s * number;
        slowest += length_s * tail;
        left -= tail;
    }
    if (is_worth(slowest / all))
        weir__verdict_add_evidence(
            v, "the slowest 1 %% of the items of %s take %.0f %% of its time: weir slowest shows them", n->name,
            100 * slowest / all);
}

static const char *const waits[WEIR_NUM_WAITS] = {
    [WEIR_WAIT_FILE] = "files",
    [WEIR_WAIT_NETWORK] = "the network",
    [WEIR_WAIT_PROCESS] = "other processes",
    [WEIR_WAIT_LOCK] = "locks or other threads",
    [WEIR_WAIT_SLEEP] = "timers",
    [WEIR_WAIT_OTHER] = "other system calls",
};

/* Half of the 95 % interval of a share of n looks is at most 1 / sqrt(n). */
const char *weir__verdict_waits_for(const node_view *n)
{
    for (int i = 0; i < WEIR_WAIT_OTHER; i++)
        if (n->num_asleep > 0 && n->waits[i] - 1 / sqrt(n->num_asleep) >= MOST)
            return waits[i];
    return NULL;
}

/* "files 80 %, locks or other threads 20 %": what is worth a change. */
static void tell_sleeps(full_verdict *v, const node_view *n)
{
    char text[VERDICT_TEXT_BYTES] = "";
    for (int i = 0; i < WEIR_NUM_WAITS && n->num_asleep > 0; i++) {
        size_t used = strlen(text);
        if (is_worth(n->waits[i]))
            snprintf(text + used, sizeof text - used, "%s%s %.0f %%", used ? ", " : "", waits[i], 100 * n->waits[i]);
    }
    if (*text)
        weir__verdict_add_evidence(v, "what its tasks wait for, in %.0f looks at them: %s", n->num_asleep, text);
}

/* Numbers that are the same for a lock and for a slow server: which one it is, an experiment tells. Of a pressure, as much
   as is worth a change, and of a disk only if this process uses one. */
static void tell_waits(full_verdict *v, const judgement *j, const node_view *n)
{
    const system_view *s = &j->view->system;
    char bytes[WEIR_FORMAT_BYTES], each[WEIR_FORMAT_BYTES], shortest[WEIR_FORMAT_BYTES];
    weir__text_format_time(each, n->time_s);
    weir__text_format_time(shortest, n->shortest_s);
    weir__text_format_bytes(bytes, weir__or_zero(s->stored));
    if (n->time_s > 0 && n->shortest_s > 0)
        weir__verdict_add_evidence(v, "on average %.1f tasks run at once, and each takes %s; the shortest took %s",
                                   n->slots * n->busy, each, shortest);
    if (is_worth(s->memory_pressure))
        weir__verdict_add_evidence(v, "for %.0f %% of the time some task of the machine waited for memory",
                                   100 * s->memory_pressure);
    if (s->stored > 0 && is_worth(s->io_pressure))
        weir__verdict_add_evidence(v,
                                   "for %.0f %% of the time some task of the machine waited for a disk; this process "
                                   "reads and writes %s per second",
                                   100 * s->io_pressure, bytes);
    tell_sleeps(v, n);
    report_tail(v, n);
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

/* The node from which the first item of an epoch comes late: the one before the first node that waits for it for most of that
   time. NULL = not known. */
static const node_view *find_late_starter(const judgement *j, const node_view *n)
{
    for (size_t i = 1; i < j->view->num_nodes && &j->view->nodes[i] <= n; i++)
        if (is_worker(&j->view->nodes[i]) && j->view->nodes[i].epoch_gap >= MOST * n->epoch_gap)
            return &j->view->nodes[i - 1];
    return NULL;
}

/* How much of the time goes into the ends of epochs, if an end to that is worth a change, and what for. */
static void tell_epoch_ends(full_verdict *v, const judgement *j, const node_view *n)
{
    const node_view *late = find_late_starter(j, n);
    if (!is_worth(at_epoch_ends(n)))
        return;
    if (is_worth(n->epoch_tail))
        weir__verdict_add_evidence(
            v, "%.0f %% of the time of the slots of %s: no item of the epoch is left, and its last ones are not done",
            100 * n->epoch_tail, n->name);
    if (is_worth(n->epoch_gap))
        weir__verdict_add_evidence(v,
                                   "%.0f %% of the time of the slots of %s: an epoch has ended, and the first item "
                                   "of the next one is not there%s%s",
                                   100 * n->epoch_gap, n->name, late ? "; it comes from " : "",
                                   late ? late->name : "");
}

/* "The ends of epochs: 40 % of the time of the slots of decode goes into them: 30 % …" */
static void say_epoch_ends(full_verdict *v, const node_view *n)
{
    weir__verdict_text(
        v->sentence,
        "The ends of epochs: %.0f %% of the time of the slots of %s goes into them, mostly waiting for %s.",
        100 * at_epoch_ends(n), n->name,
        n->epoch_tail > n->epoch_gap ? "the last items of an epoch" : "the first item of the next one");
}

static void tell_consumer(full_verdict *v, const judgement *j, double share)
{
    weir__verdict_add_evidence(v, "%s: not empty for %.0f %% of the time when the consumer asks", j->view->sink->name,
                               100 * share);
    if (j->first)
        weir__verdict_add_evidence(v, "no stage or source is in use for more than %.0f %% of the time",
                                   100 * fmin(1, j->first->held));
    if (v->polls)
        weir__verdict_add_evidence(v, "the consumer does not wait in weir_pipeline_next(), but asks again and "
                                      "again, and items wait until it comes back");
}

/* Whether the nodes take it from each other. */
static bool is_shared(weir_verdict_kind kind)
{
    return kind == WEIR_VERDICT_THREADS || kind == WEIR_VERDICT_CPUS;
}

static void add_finding(full_verdict *v, const judgement *j, weir_verdict_kind kind, const finding *found)
{
    if (kind == WEIR_VERDICT_CONSUMER) {
        tell_consumer(v, j, found->share);
        return;
    }
    assert(kind == WEIR_VERDICT_QUEUE ? found->queue != NULL : found->node != NULL);
    if (found->node)
        tell_slots(v, found->node);
    if (kind == WEIR_VERDICT_THREADS || (kind == WEIR_VERDICT_CPUS && is_starved(j, found->node)))
        tell_threads(v, found->node);
    if (is_shared(kind) || kind == WEIR_VERDICT_SLOTS)
        tell_cpus(v, j);
    if (kind == WEIR_VERDICT_OUTSIDE || kind == WEIR_VERDICT_SOURCE)
        tell_waits(v, j, found->node);
    if (kind == WEIR_VERDICT_SLOTS)
        report_tail(v, found->node);
    if (found->queue && !found->node)
        tell_queue(v, found->queue, found->loss);
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
        if (is_worker(n) && (!j->first || use_of(j, n) > use_of(j, j->first)))
            j->first = n;
    }
    for (size_t i = 0; j->first && i < j->view->num_nodes; i++) {
        const node_view *n = &j->view->nodes[i];
        bool waits_as_well = is_worker(n) && is_starved(j, n) && n->pool == j->first->pool;
        bool is_other = is_worker(n) && n != j->first && !waits_as_well;
        if (is_other && (!j->second || use_of(j, n) > use_of(j, j->second)))
            j->second = n;
    }
    /* With more slots than threads, no slot is in use all the time, but the threads are. */
    for (size_t i = 0; j->first && use_of(j, j->first) < FULL && i < j->view->num_nodes; i++) {
        const node_view *n = &j->view->nodes[i];
        if (is_worker(n) && is_starved(j, n) && !is_starved(j, j->first))
            j->first = n;
    }
}

/* The threads of its pool that a node keeps busy, on average; pending tasks keep none. */
static double threads_of(const node_view *n)
{
    return n->slots * n->busy * (1 - n->pending);
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
            kind == WEIR_VERDICT_THREADS ? threads_of(other) : other->slots * other->busy * computing(other);
        if (uses > most) {
            most = uses;
            user = other;
        }
    }
    return user;
}

static const char sources[] = "The source %s: it is in use nearly as much.",
                  stages[] = "The slots of %s: they are in use nearly as much.",
                  training[] = "Nothing limits it: finished items wait for your program, as they should.";

static const char waiting[] = "The slots of %s: all of them are busy, mostly with waiting for %s.";
static const char failing[] = "Items that fail: %.0f %% of the time of the tasks of %s goes into them.";

/* Another resource is in use nearly as much: without the first limit, that one would be reached soon. Or the resource is
   not quite full, and bursts explain most of the rest. Or there are bursts, and others take all CPUs: they delay threads at
   random. */
static void add_second_limit(judgement *j, const rule *r, const finding *found)
{
    static const char queues[] = "The queue %s: items come and go in bursts that it is too small for.",
                      others[] = "The CPUs: other programs take them, so that threads work in bursts.";
    full_verdict *v = j->verdict;
    bool is_consumer = r->kind == WEIR_VERDICT_CONSUMER;
    bool causes_bursts = is_shared(r->kind) || r->sentence == epoch_ends;
    bool by_use = !is_consumer && !causes_bursts && found->node && found->node == j->first;
    const node_view *second = is_consumer ? j->first : by_use ? j->second : NULL;
    finding queue = { 0 };
    if (by_use)
        queue = measure_queue(j);
    double use = second ? use_of(j, second) : 0;
    if (second && use >= FULL && (is_consumer || use_of(j, found->node) < WEIR_WORTH_GAIN * use)) {
        weir__verdict_add_evidence(v, "%s is in use nearly as much: for %.0f %% of the time", second->name,
                                   100 * fmin(1, use));
        weir__verdict_settle_other(v, weir__verdict_kind_of(second), second->name,
                                   second->is_source ? sources : stages);
    } else if (r->kind == WEIR_VERDICT_QUEUE && cpus_left(j) < HALF && missing_cpus(j) >= HALF) {
        tell_cpus(v, j);
        weir__verdict_settle_other(v, WEIR_VERDICT_CPUS, "", others);
    } else if (queue.queue && queue.share >= MOST) {
        tell_queue(v, queue.queue, queue.loss);
        weir__verdict_settle_other(v, WEIR_VERDICT_QUEUE, queue.queue->name, queues);
    }
}

static void apply_rule(judgement *j, const rule *r, const finding *found)
{
    full_verdict *v = j->verdict;
    const node_view *named = is_shared(r->kind) ? find_user(j, r->kind, found->node) : found->node;
    const char *name = named ? named->name : found->queue ? found->queue->name : "";
    add_finding(v, j, r->kind, found);
    if (named && named != found->node)
        weir__verdict_add_evidence(v, "%s uses most of them: %.2f on average", name,
                                   r->kind == WEIR_VERDICT_THREADS ? threads_of(named)
                                                                   : named->slots * named->busy * computing(named));
    weir__verdict_settle(v, r->kind, name, r->sentence, fmin(SURE, found->share));
    if (r->kind == WEIR_VERDICT_OUTSIDE && named && weir__verdict_waits_for(named))
        weir__verdict_text(v->sentence, waiting, name, weir__verdict_waits_for(named));
    if (named && r->sentence == epoch_ends && at_epoch_ends(named) > 0)
        say_epoch_ends(v, named);
    if (r->kind == WEIR_VERDICT_FAILURES && named)
        weir__verdict_text(v->sentence, failing, 100 * named->failed, name);
    if (r->kind == WEIR_VERDICT_CONSUMER && j->view->trains)
        weir__verdict_settle(v, WEIR_VERDICT_NONE, "", training, v->shown.confidence);
    add_second_limit(j, r, found);
}

/* Without the use of slots: the place before which items wait, and behind which none do. */
static void find_limit_by_queues(judgement *j)
{
    static const char stage[] = "The stage %s: items wait in the queue before it, and few in the one behind it.",
                      source[] = "The source %s: the queue behind it is empty.";
    size_t count = j->view->num_queues, at = 0;
    double before = 1, most = 0; /* a source can always go on; behind the last queue, nothing waits */
    char name[VERDICT_TEXT_BYTES];
    for (size_t i = 0; i <= count && count; i++) {
        double occupied = i < count ? j->view->queues[i].occupied : 0;
        if (i < count)
            weir__verdict_add_evidence(j->verdict, "%s: not empty for %.0f %% of the time", j->view->queues[i].name,
                                       100 * occupied);
        if (before - occupied > most) {
            most = before - occupied;
            at = i;
        }
        before = occupied;
    }
    if (most < MOST)
        return;
    const char *queue = at < count ? j->view->queues[at].name : "", *end = strstr(queue, "_queue");
    snprintf(name, sizeof name, "%.*s", end ? (int)(end - queue) : (int)strlen(queue), queue);
    weir__verdict_settle(j->verdict,
                         at == count ? WEIR_VERDICT_CONSUMER
                         : at == 0   ? WEIR_VERDICT_SOURCE
                                     : WEIR_VERDICT_SLOTS,
                         name,
                         at == count ? rules[0].sentence
                         : at == 0   ? source
                                     : stage,
                         fmin(SURE, most));
}

static void find_full_limit(judgement *j)
{
    static const char unknown[] = "The data cannot tell what limits the run.";
    weir__verdict_settle(j->verdict, WEIR_VERDICT_UNKNOWN, "", unknown, 0);
    if (!j->first) { /* databases of SPDL and of the first versions: only queues */
        find_limit_by_queues(j);
        return;
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        finding found = rules[i].measure(j);
        if (found.share > 0 && found.share >= rules[i].least) {
            apply_rule(j, &rules[i], &found);
            break;
        }
    }
    if (j->verdict->shown.kind == WEIR_VERDICT_UNKNOWN)
        tell_slots(j->verdict, j->first);
    finding ends = find_epoch_ends(j);
    if (ends.node)
        tell_epoch_ends(j->verdict, j, ends.node);
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
    double num_failures = shown->kind == WEIR_VERDICT_FAILURES && j->first ? j->first->num_failures : 0;
    double error = 1 / sqrt(fmax(j->view->num_items + num_failures, 1)); /* of a count */
    shown->confidence *= 1 - error;
    j->verdict->is_short = 1 - error < WEIR_VERDICT_CLEAR; /* were it certain otherwise */
    if (j->verdict->is_short)
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
                               .together = v->together,
                               .evidence = v->evidence,
                               .advice = v->advice,
                               .items_per_s = view->items_per_s };
    rank_nodes(&j);
    find_full_limit(&j);
    weigh_sample(&j);
    return v;
}

void weir_verdict_free(weir_verdict *verdict)
{
    free(verdict); /* the first member of what was allocated */
}

const char *weir_verdict_certainty(const weir_verdict *verdict)
{
    double confidence = verdict ? verdict->confidence : 0;
    return confidence >= WEIR_VERDICT_CLEAR ? "clear" : confidence >= WEIR_VERDICT_LIKELY ? "likely" : "unsure";
}
