/*
 * What limits a pipeline, from operational figures of its steady part. docs/verdict.md explains each rule and its
 * sources; the numbers below are the ones it names.
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

#define SATURATED       0.80 /* a resource in use this much of the time is the limit */
#define PARTLY          0.60 /* so is this, if nothing explains the rest better */
#define CLOSE           0.10 /* two limits this close to each other cannot be distinguished */
#define STARVED_RATIO   0.20 /* waiting for a thread / (busy + waiting for a thread) of a stage that lacks threads */
#define COMPUTING       0.60 /* on a CPU or waiting for one / busy, of tasks that compute */
#define NO_CPU_RATIO    0.15 /* waiting for a CPU / busy, of threads that lack CPUs */
#define PROCESS_FULL    0.85 /* CPU time of the process / its budget */
#define IDLE_CPUS       0.10 /* of all CPUs: if fewer are idle, the machine is full */
#define TURN_SHARE      0.20 /* of slot time in turns, of a stage held up by its output order */
#define BURST_SHARE     0.15 /* time upstream waits for room, and downstream for input, of a queue that is too small */
#define STOPPED         0.30 /* of the time, by the CPU quota: nothing else matters then */
#define PRESSURE        0.10 /* of the time, tasks wait for memory */
#define DISK_PRESSURE   0.20 /* of the time, tasks wait for a disk */
#define ITEM_READ_BYTES 1024 /* read from storage or network for each task, of tasks that may wait for it */
#define GIANT_TIMES     8.0  /* the median, of giant items */
#define GIANT_SHARE     0.5  /* of a stage's time, for giant items */
#define GIANT_COUNT     0.05 /* of a stage's items: more are not special */
#define FEW_TASKS       20   /* fewer give no clear verdict */

/* -- the nodes and pools with the figures that the rules use. NAN = not known */

typedef struct node_view {
    const weir_total *total;
    const verdict_wiring *wiring; /* NULL = not known */
    const weir_total *pool;       /* NULL = runs nothing, or not known */
    bool is_source, is_merge, is_route, is_sink;
    double slots, busy, in, thread, turn, out; /* shares of slot time */
    double cpu, delay;                         /* shares of busy time: on a CPU, waiting for one */
    double pool_delay;                         /* share of its pool's busy time: waiting for a CPU */
    double held;                               /* busy + thread: has an item and would work on it */
} node_view;

typedef struct system_view {
    double process, budget, outside, other, idle, stolen, all; /* CPUs */
    double throttled, io_pressure, memory_pressure;            /* shares of the time */
    double disk_idle;                                          /* CPUs */
    double stored, received;                                   /* bytes per second */
    double major_faults;                                       /* per second */
} system_view;

typedef struct judgement {
    const verdict_facts *facts;
    node_view *nodes; /* upstream first */
    size_t num_nodes;
    system_view system;
    const weir_total *sink;
    double sink_occupied;
    full_verdict *verdict;
} judgement;

static double value_of(const weir_total *total, const char *measure)
{
    return total ? weir_measure_of(total->subject, measure, &total->metrics, total->elapsed_ns) : NAN;
}

static double or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

/* A share; NAN stays NAN. */
static double share_of(const weir_total *total, const char *measure)
{
    double value = value_of(total, measure);
    return value > 1 ? 1 : value;
}

static const weir_total *find_total(const weir_total_list *list, const char *name, const char *suffix)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < list->count; i++)
        if (strncmp(list->all[i].key.name, name, length) == 0 && strcmp(list->all[i].key.name + length, suffix) == 0)
            return &list->all[i];
    return NULL;
}

const weir_total *weir_totals_sink_queue(const weir_totals *totals)
{
    if (!totals)
        return NULL;
    const weir_total_list *flow = &totals->of[WEIR_SUBJECT_FLOW], *queues = &totals->of[WEIR_SUBJECT_QUEUE];
    for (size_t i = 0; i < flow->count; i++) {
        const weir_total *queue =
            strcmp(flow->all[i].kind, "sink") == 0 ? find_total(queues, flow->all[i].key.name, "_queue") : NULL;
        if (queue)
            return queue;
    }
    return queues->count ? &queues->all[queues->count - 1] : NULL; /* older databases have no sinks: the last queue */
}

/* The private pool of a node, or the pipeline's: the one whose name has a single number. */
static const weir_total *pool_of(const weir_totals *totals, const char *name)
{
    const weir_total_list *pools = &totals->of[WEIR_SUBJECT_POOL];
    const weir_total *own = find_total(pools, name, "_pool");
    for (size_t i = 0; i < pools->count && !own; i++) {
        const char *colon = strchr(pools->all[i].key.name, ':');
        if (colon && strcmp(colon, ":pool") == 0)
            own = &pools->all[i];
    }
    return own;
}

static long position_of(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon ? strtol(colon + 1, NULL, 10) : 0;
}

static int by_position(const void *left, const void *right)
{
    long a = position_of(((const node_view *)left)->total->key.name);
    long b = position_of(((const node_view *)right)->total->key.name);
    return (a > b) - (a < b);
}

static void view_node(judgement *j, const weir_total *total)
{
    const weir_totals *totals = j->facts->steady;
    node_view *n = &j->nodes[j->num_nodes++];
    *n = (node_view){
        .total = total,
        .is_source = strcmp(total->kind, "source") == 0,
        .is_merge = strcmp(total->kind, "merge") == 0,
        .is_route = strcmp(total->kind, "route") == 0,
        .is_sink = strcmp(total->kind, "sink") == 0,
        .slots =
            total->elapsed_ns > 0 ? (double)weir_slots_ns(&total->metrics.task) / (double)total->elapsed_ns : NAN,
        .busy = value_of(total, "busy_share"),
        .in = value_of(total, "wait_in_share"),
        .thread = value_of(total, "wait_thread_share"),
        .turn = value_of(total, "wait_turn_share"),
        .out = value_of(total, "wait_out_share"),
        .cpu = share_of(total, "cpu_share"),
    };
    n->held = n->busy + n->thread;
    for (size_t i = 0; i < j->facts->num_wirings; i++)
        if (strcmp(j->facts->wirings[i].name, total->key.name) == 0)
            n->wiring = &j->facts->wirings[i];
    if (n->is_merge || n->is_sink)
        return;
    n->pool = pool_of(totals, total->key.name);
}

/* The delay of a pool's tasks belongs to its nodes in proportion to their CPU time. */
static void view_delay(judgement *j, node_view *n)
{
    double busy_s = 1e-9 * (double)n->pool->metrics.pool.busy_ns, cpu_s = 0;
    for (size_t i = 0; i < j->num_nodes; i++)
        if (j->nodes[i].pool == n->pool)
            cpu_s += 1e-9 * (double)j->nodes[i].total->metrics.task.cpu_ns;
    double delay_s = weir_model_delay(busy_s, cpu_s, n->pool->metrics.pool.run_delay_ns);
    n->pool_delay = busy_s > 0 ? delay_s / busy_s : 0;
    if (cpu_s > 0)
        n->delay = fmin(or_zero(n->cpu) * delay_s / cpu_s, 1 - or_zero(n->cpu));
}

static void view_system(judgement *j)
{
    const weir_total_list *processes = &j->facts->steady->of[WEIR_SUBJECT_PROCESS];
    const weir_total_list *machines = &j->facts->steady->of[WEIR_SUBJECT_MACHINE];
    const weir_total *process = processes->count ? &processes->all[0] : NULL;
    const weir_total *machine = machines->count ? &machines->all[0] : NULL;
    system_view *s = &j->system;
    *s = (system_view){
        .process = value_of(process, "cpus"),
        .outside = value_of(process, "cpus") - value_of(process, "pool_cpus"),
        .other = value_of(machine, "other_cpus"),
        .idle = value_of(machine, "idle_cpus"),
        .stolen = value_of(machine, "stolen_cpus"),
        .throttled = share_of(machine, "throttled_share"), /* some kernels add up all CPUs */
        .io_pressure = value_of(machine, "io_pressure"),
        .memory_pressure = value_of(machine, "memory_pressure"),
        .stored = value_of(process, "read_rate") + or_zero(value_of(process, "write_rate")),
        .received = value_of(machine, "receive_rate"),
    };
    s->budget = s->process / value_of(process, "cpu_share");
    if (process && process->elapsed_ns > 0) {
        double elapsed_s = (double)process->elapsed_ns / 1e9;
        s->major_faults = value_of(process, "num_major_faults") / elapsed_s;
        s->disk_idle = machine ? value_of(machine, "disk_idle_time") / elapsed_s : NAN;
    }
    s->all = s->process + s->other + s->idle + or_zero(s->disk_idle) + or_zero(s->stolen);
}

static bool view(judgement *j)
{
    const weir_total_list *stages = &j->facts->steady->of[WEIR_SUBJECT_STAGE];
    const weir_total_list *flow = &j->facts->steady->of[WEIR_SUBJECT_FLOW];
    j->nodes = calloc(stages->count + flow->count + 1, sizeof *j->nodes);
    if (!j->nodes)
        return false;
    for (size_t i = 0; i < flow->count; i++)
        view_node(j, &flow->all[i]);
    for (size_t i = 0; i < stages->count; i++)
        view_node(j, &stages->all[i]);
    qsort(j->nodes, j->num_nodes, sizeof *j->nodes, by_position);
    for (size_t i = 0; i < j->num_nodes; i++)
        if (j->nodes[i].pool)
            view_delay(j, &j->nodes[i]);
    view_system(j);
    j->sink = weir_totals_sink_queue(j->facts->steady);
    j->sink_occupied = or_zero(value_of(j->sink, "occupancy_rate"));
    return true;
}

/* -- texts */

__attribute__((format(printf, 2, 3))) static void add_evidence(judgement *j, const char *format, ...)
{
    full_verdict *v = j->verdict;
    va_list values;
    if (v->shown.num_evidence == VERDICT_MAX_EVIDENCE)
        return;
    char *line = v->lines[v->shown.num_evidence];
    va_start(values, format);
    vsnprintf(line, VERDICT_TEXT_BYTES, format, values);
    va_end(values);
    v->evidence[v->shown.num_evidence++] = line;
}

__attribute__((format(printf, 2, 3))) static void say_missing(judgement *j, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(j->verdict->missing, sizeof j->verdict->missing, format, values);
    va_end(values);
}

/* Adds ", waiting for room 12 %" if it is at least half a percent. */
static void append_share(char *text, const char *what, double share)
{
    size_t length = strlen(text);
    if (share >= 0.005)
        snprintf(text + length, VERDICT_TEXT_BYTES - length, ", %s %.0f %%", what, 100 * share);
}

static void tell_slots(judgement *j, const node_view *n)
{
    char waits[VERDICT_TEXT_BYTES] = "", on_cpu[VERDICT_TEXT_BYTES] = "";
    append_share(waits, "waiting for input", n->in);
    append_share(waits, "waiting for a thread", n->thread);
    append_share(waits, "waiting for an earlier result", n->turn);
    append_share(waits, "waiting for room in its queue", n->out);
    add_evidence(j, "%s (%.3g slot%s): busy for %.0f %% of the time%s", n->total->key.name, n->slots,
                 n->slots > 1.05 ? "s" : "", 100 * n->busy, waits);
    if (isnan(n->cpu) || n->busy <= 0.05)
        return;
    append_share(on_cpu, "waiting for a CPU", n->delay);
    append_share(on_cpu, "waiting for something else", fmax(0, 1 - n->cpu - n->delay));
    add_evidence(j, "while it is busy: on a CPU for %.0f %% of the time%s", 100 * n->cpu, on_cpu);
}

static void tell_cpus(judgement *j)
{
    const system_view *s = &j->system;
    char other[80] = "", idle[40] = "", quota[60] = "";
    if (isnan(s->process) || isnan(s->budget))
        return;
    if (!isnan(s->other))
        snprintf(other, sizeof other, ", other programs %.2f", s->other + or_zero(s->stolen));
    if (!isnan(s->idle))
        snprintf(idle, sizeof idle, ", %.2f are idle", s->idle + or_zero(s->disk_idle));
    if (s->throttled > 0.005)
        snprintf(quota, sizeof quota, "; the quota stopped it for %.0f %% of the time", 100 * s->throttled);
    add_evidence(j, "CPUs: this process uses %.2f of %.0f%s%s%s", s->process, s->budget, other, idle, quota);
}

/* -- the CPUs */

/* No thread can get more CPU time: all CPUs that this process may use are in use. */
static bool cpus_are_full(const system_view *s)
{
    bool by_budget = s->process >= PROCESS_FULL * s->budget, by_quota = s->throttled >= 0.05;
    bool by_machine = s->idle + or_zero(s->disk_idle) <= IDLE_CPUS * s->all;
    return by_budget || by_quota || by_machine; /* comparisons with NAN are false */
}

static weir_verdict_kind who_has_the_cpus(const system_view *s)
{
    if (s->throttled >= 0.05)
        return WEIR_VERDICT_THROTTLED;
    if (s->stolen >= 0.10 * s->all && s->stolen >= s->other)
        return WEIR_VERDICT_STOLEN;
    if (s->process >= 0.70 * fmin(s->budget, or_zero(s->all) > 0 ? s->all : s->budget))
        return WEIR_VERDICT_CPUS;
    return s->other >= 0.25 * s->all ? WEIR_VERDICT_OTHERS : WEIR_VERDICT_CPUS;
}

/* -- one stage or source that is in use all the time: why */

typedef struct cause {
    weir_verdict_kind kind;
    double confidence;            /* that this is the cause, if this node is the limit */
    weir_verdict_kind other_kind; /* cannot be distinguished from this one; UNKNOWN = none */
    bool is_shared;               /* with all other stages whose tasks wait in the same way */
} cause;

static cause only(weir_verdict_kind kind, double confidence)
{
    return (cause){ kind, confidence, WEIR_VERDICT_UNKNOWN, false };
}

/* The share of the stage's time in items of GIANT_TIMES the median and more, and their share of all items. */
static void weigh_giants(const weir_histogram *times, double *of_time, double *of_items)
{
    double all = 0, above = 0, count = 0;
    *of_time = *of_items = 0;
    if (!times || times->count < FEW_TASKS)
        return;
    double giant_s = 1e-9 * GIANT_TIMES * (double)weir_histogram_quantile_ns(times, 0.5);
    for (uint32_t i = times->first; i <= times->last; i++) {
        double length_s = weir_model_bucket_s(i), number = (double)times->buckets[i];
        all += length_s * number;
        above += length_s >= giant_s ? length_s * number : 0;
        count += length_s >= giant_s ? number : 0;
    }
    *of_time = all > 0 ? above / all : 0;
    *of_items = count / (double)times->count;
}

/* Adds the evidence unless j is NULL. */
static bool has_giants(judgement *j, const node_view *n)
{
    double of_time, of_items;
    weigh_giants(n->total->metrics.task.run_times, &of_time, &of_items);
    if (of_time < GIANT_SHARE || of_items > GIANT_COUNT)
        return false;
    if (j)
        add_evidence(j, "%.1f %% of the items of %s take %.0f %% of its time (at least %.0f times the median each)",
                     100 * of_items, n->total->key.name, 100 * of_time, GIANT_TIMES);
    return true;
}

/* Nothing else explains why it takes so long. */
static cause its_own_work(judgement *j, const node_view *n)
{
    return only(n->is_source       ? WEIR_VERDICT_SOURCE
                : has_giants(j, n) ? WEIR_VERDICT_GIANTS
                                   : WEIR_VERDICT_SLOTS,
                0.95);
}

static double shortest_of(const judgement *j, const node_view *n)
{
    const weir_total *whole = find_total(&j->facts->whole->of[n->is_source ? WEIR_SUBJECT_FLOW : WEIR_SUBJECT_STAGE],
                                         n->total->key.name, "");
    return value_of(whole ? whole : n->total, "min_time");
}

static bool has_gap_in_times(const node_view *n, double shortest)
{
    const weir_histogram *times = n->total->metrics.task.run_times;
    return times && weir_model_has_gap(times, value_of(n->total, "ave_time"), shortest) && !has_giants(NULL, n);
}

/* The stages that may share a lock with a stage, because their tasks wait as well. */
typedef struct sharers {
    const node_view *first; /* NULL = none */
    double load, cpus, at_once;
} sharers;

static sharers find_sharers(const judgement *j, const node_view *n)
{
    sharers found = { NULL, 0, 0, 0 };
    for (size_t i = 0; i < j->num_nodes; i++) {
        const node_view *other = &j->nodes[i];
        double shortest = shortest_of(j, other);
        if (other == n || other->total->subject != WEIR_SUBJECT_STAGE || !(other->busy >= 0.3) ||
            or_zero(other->cpu) + other->delay >= COMPUTING || !has_gap_in_times(other, shortest))
            continue;
        found.first = found.first ? found.first : other;
        found.load += value_of(other->total, "tasks_per_s") * shortest;
        found.cpus += value_of(other->total, "cpus");
        found.at_once += other->slots * other->busy;
    }
    return found;
}

/*
 * A lock or another part that serves only a few tasks at a time: a task can run without waiting (the shortest one did),
 * but most tasks wait. One of three signs: the shortest task was only CPU time; so many tasks are served at a time that
 * throughput × shortest time is 1 (or 2, 3, 4, of twice as many slots), and few are a little longer than the shortest;
 * or nearly all tasks are much longer than a few others, or than those of the start-up, when few ran at once.
 */
static bool is_serial(judgement *j, const node_view *n, cause *found)
{
    const weir_histogram *times = n->total->metrics.task.run_times;
    double shortest = shortest_of(j, n), average = value_of(n->total, "ave_time");
    double cpu_s = value_of(n->total, "cpu_time_per_task"), rate = value_of(n->total, "tasks_per_s");
    double cpus = value_of(n->total, "cpus"), at_once = n->slots * n->busy, load = rate * shortest;
    double waiting = 1 - or_zero(n->cpu) - n->delay;
    sharers shared = { NULL, 0, 0, 0 };
    if (!(shortest > 0 && average >= 1.4 * shortest) || !times)
        return false;
    bool has_gap = has_gap_in_times(n, shortest);
    if (load < 0.7 && has_gap)
        shared = find_sharers(j, n);
    load += shared.load;
    cpus += shared.cpus;
    at_once += shared.at_once;
    if (!(at_once >= 1.5))
        return false;
    bool uses_one_cpu = cpus >= 0.7 && cpus <= 1.2;
    bool runs_alone = waiting >= 0.25 && shortest <= (uses_one_cpu && has_gap ? 2.2 : 1.6) * cpu_s;
    bool is_typical = value_of(n->total, "p50_time") < 1.4 * shortest; /* of the owner that takes a lock again */
    double served = fmax(1, round(load));
    double least = served > 1 ? 0.93 : is_typical ? 0.9 : shared.first ? 0.85 : 0.7;
    double most = served > 1 ? 1.02 : is_typical || shared.first ? 1.03 : 1.15;
    bool is_limited = load >= least * served && load <= most * served && has_gap &&
                      (served <= 1 || (!shared.first && served <= 4 && 2 * served <= round(at_once)));
    double p10 = 1e-9 * (double)weir_histogram_quantile_ns(times, 0.1);
    double width = value_of(n->total, "p90_time") / p10;
    bool was_short = width <= 2 && load >= 0.7 &&
                     (p10 >= 3 * shortest || (width <= 1.3 && p10 >= 2 * shortest) ||
                      (double)n->total->metrics.task.min_ns >= 1.4e9 * shortest);
    if (!runs_alone && !is_limited && !was_short)
        return false;
    bool computes_alone = uses_one_cpu && (runs_alone || was_short);
    *found = computes_alone ? only(WEIR_VERDICT_LOCK, 0.85)
             : runs_alone   ? only(WEIR_VERDICT_LOCK, 0.7)
                            : (cause){ WEIR_VERDICT_LOCK, 0.5, WEIR_VERDICT_SLOTS, false };
    found->is_shared = shared.first;
    char each[WEIR_FORMAT_BYTES], minimum[WEIR_FORMAT_BYTES], on_cpu[WEIR_FORMAT_BYTES];
    weir_text_format_time(each, average);
    weir_text_format_time(minimum, shortest);
    weir_text_format_time(on_cpu, cpu_s);
    add_evidence(j,
                 "on average %.1f tasks run at once, and each takes %s; the shortest took %s; CPU time of a task: %s",
                 n->slots * n->busy, each, minimum, on_cpu);
    if (runs_alone || computes_alone) {
        add_evidence(j, "so a task can be fast, but several at once wait for each other%s%s%s",
                     shared.first ? ", as do those of " : "", shared.first ? shared.first->total->key.name : "",
                     computes_alone ? "; together they use one CPU" : "");
        return true;
    }
    if (is_limited && shared.first)
        add_evidence(
            j,
            "tasks per second x the shortest time, of %s and %s together: %.2f; 1 means that one of them runs "
            "at a time, as with one lock in both",
            n->total->key.name, shared.first->total->key.name, load);
    else if (is_limited)
        add_evidence(j, "%.1f tasks per second x %s (the shortest) = %.2f; %.0f means %s", rate, minimum, load,
                     served, served > 1 ? "that so many are served at a time" : "one after the other");
    else
        add_evidence(j, "only a few tasks were that short, as if most of them waited for the others");
    char slots[60] = "one slot for this stage";
    bool is_with_more = shared.first || 2 * served > round(n->slots); /* the numbers of slots must clearly differ */
    if (is_with_more)
        snprintf(slots, sizeof slots, "twice as many slots for %s", shared.first ? "both stages" : "this stage");
    else if (served > 1)
        snprintf(slots, sizeof slots, "%.0f slots for this stage", served);
    say_missing(
        j,
        "record the same work with %s, and compare the two with weir compare, which says what the difference "
        "shows. If as many items per second are delivered, the tasks wait for each other; if %s, each waits for "
        "something outside",
        slots, is_with_more ? "more" : "fewer");
    return true;
}

/* An upper bound of the CPU time of the consumer's thread: it computes only when it does not wait for an item. */
static double consumer_cpus(const judgement *j)
{
    if (!j->sink || j->sink->elapsed_ns <= 0)
        return 0;
    return 1 - fmin(1, (double)j->sink->metrics.queue.get_ns / (double)j->sink->elapsed_ns);
}

static cause why_blocked(judgement *j, const node_view *n)
{
    const system_view *s = &j->system;
    double blocked = n->slots * n->busy * fmax(0, 1 - or_zero(n->cpu) - n->delay); /* tasks, on average */
    double rate = value_of(n->total, "tasks_per_s");
    char bytes[WEIR_FORMAT_BYTES], each[WEIR_FORMAT_BYTES];
    cause found;
    if (s->throttled >= STOPPED) { /* the kernel does not count all of this time as waiting for a CPU */
        tell_cpus(j);
        return only(WEIR_VERDICT_THROTTLED, 0.8);
    }
    if (s->memory_pressure >= PRESSURE && s->major_faults > 1) {
        add_evidence(j,
                     "for %.0f %% of the time some task waited for memory; %.0f page faults per second had to read",
                     100 * s->memory_pressure, s->major_faults);
        return only(WEIR_VERDICT_MEMORY, 0.85);
    }
    double own = s->outside - consumer_cpus(j);
    if (!n->is_source && own >= 0.3 && own >= 0.5 * s->process) {
        add_evidence(j, "%.2f CPUs are used by threads that are not the pipeline's, while %.1f of its tasks wait",
                     own, blocked);
        return only(WEIR_VERDICT_OWN_THREADS, 0.8);
    }
    bool waits_for_disk = s->io_pressure >= DISK_PRESSURE || s->disk_idle >= 0.2;
    if (waits_for_disk && s->stored >= ITEM_READ_BYTES * or_zero(rate)) {
        weir_text_format_bytes(bytes, s->stored);
        add_evidence(j,
                     "for %.0f %% of the time some task of the machine waited for a disk; this process reads and "
                     "writes %s per second",
                     100 * or_zero(s->io_pressure), bytes);
        return only(n->is_source ? WEIR_VERDICT_SOURCE : WEIR_VERDICT_STORAGE, 0.8);
    }
    if (s->received >= ITEM_READ_BYTES * or_zero(rate) && s->received >= 50e3) {
        weir_text_format_bytes(bytes, s->received);
        weir_text_format_bytes(each, s->received / rate);
        add_evidence(j, "the machine receives %s per second from the network, %s for each task", bytes, each);
        bool may_be_lock = !n->is_source && is_serial(j, n, &found); /* another program may receive it */
        return (cause){ n->is_source ? WEIR_VERDICT_SOURCE : WEIR_VERDICT_NETWORK, 0.7,
                        may_be_lock ? WEIR_VERDICT_LOCK : WEIR_VERDICT_UNKNOWN, false };
    }
    if (!n->is_source && is_serial(j, n, &found))
        return found;
    return its_own_work(j, n);
}

/* Its slots wait for threads more than for anything else that keeps them. */
static bool is_starved(const node_view *n)
{
    return n->thread >= STARVED_RATIO * n->held;
}

static cause why_held(judgement *j, const node_view *n)
{
    const system_view *s = &j->system;
    double computing = or_zero(n->cpu) + n->delay, delay = n->delay;
    tell_slots(j, n);
    if (is_starved(n)) {
        double pool_busy = value_of(n->pool, "busy_share"), cpu = value_of(n->pool, "cpu_share") / pool_busy;
        if (n->pool)
            add_evidence(j, "%s (%.0f thread%s): busy for %.0f %% of the time, on a CPU for %.0f %% of that",
                         n->pool->key.name, (double)n->pool->capacity, n->pool->capacity == 1 ? "" : "s",
                         100 * pool_busy, 100 * or_zero(cpu));
        tell_cpus(j);
        bool computes = or_zero(cpu) + n->pool_delay >= COMPUTING;
        bool is_short =
            n->pool_delay >= NO_CPU_RATIO || s->process >= PROCESS_FULL * s->budget || s->throttled >= 0.05;
        if (computes && is_short && cpus_are_full(s))
            return only(who_has_the_cpus(s), n->pool_delay >= NO_CPU_RATIO ? 0.9 : 0.75);
        if (n->pool_delay >= 0.5)
            return (cause){ who_has_the_cpus(s), 0.6, WEIR_VERDICT_THREADS, false };
        return (cause){ WEIR_VERDICT_THREADS, isnan(pool_busy) || pool_busy >= SATURATED ? 0.95 : 0.6,
                        WEIR_VERDICT_UNKNOWN, false };
    }
    if (isnan(n->cpu) || computing < COMPUTING)
        return why_blocked(j, n);
    tell_cpus(j);
    if ((delay >= NO_CPU_RATIO && cpus_are_full(s)) || s->process >= PROCESS_FULL * s->budget || s->throttled >= 0.1)
        return only(who_has_the_cpus(s), 0.9);
    if (delay >= 0.35)
        return (cause){ who_has_the_cpus(s), 0.6, WEIR_VERDICT_SLOTS, false };
    return its_own_work(j, n);
}

/* -- how nodes are connected */

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

/* Whether `down` takes from the queue. Without wiring: from that of the node before it. */
static bool takes_from(const judgement *j, const node_view *down, const node_view *up, const char *queue)
{
    if (down->wiring && *down->wiring->inputs)
        return has_word(down->wiring->inputs, queue);
    return down == up + 1 && down < j->nodes + j->num_nodes && !down->is_source;
}

static bool is_queue_of(const char *queue, const char *node)
{
    size_t length = strlen(node);
    return strncmp(queue, node, length) == 0 && (queue[length] == '_' || queue[length] == '.');
}

/* The node that puts into a queue; NULL = not known. */
static const node_view *putter_of(const judgement *j, const char *queue)
{
    const node_view *found = NULL;
    for (size_t i = 0; i < j->num_nodes; i++)
        if (is_queue_of(queue, j->nodes[i].total->key.name) &&
            (!found || strlen(j->nodes[i].total->key.name) > strlen(found->total->key.name)))
            found = &j->nodes[i];
    return found;
}

/* Whether `node` is `from` or upstream of it. */
static bool is_upstream(const judgement *j, const node_view *node, const node_view *from, int depth)
{
    if (node == from)
        return true;
    if (!from->wiring || depth > 64)
        return false;
    for (size_t i = 0; i < j->facts->steady->of[WEIR_SUBJECT_QUEUE].count; i++) {
        const char *queue = j->facts->steady->of[WEIR_SUBJECT_QUEUE].all[i].key.name;
        const node_view *up = has_word(from->wiring->inputs, queue) ? putter_of(j, queue) : NULL;
        if (up && is_upstream(j, node, up, depth + 1))
            return true;
    }
    return false;
}

typedef struct parallel_paths {
    const node_view *merge;  /* where they meet */
    const weir_total *empty; /* the queue that it waits for */
    const weir_total *full;  /* the fullest queue of the others */
    bool is_route;           /* the paths begin at a route */
} parallel_paths;

/* A merge that waits for one input while others are full, or has a path through the node that limits. */
static bool find_paths(const judgement *j, const node_view *limit, parallel_paths *found)
{
    const weir_total_list *queues = &j->facts->steady->of[WEIR_SUBJECT_QUEUE];
    for (size_t m = 0; m < j->num_nodes; m++) {
        const node_view *merge = &j->nodes[m];
        double least = 2, most = -1;
        *found = (parallel_paths){ .merge = merge };
        if (!merge->is_merge || !merge->wiring)
            continue;
        for (size_t i = 0; i < queues->count; i++) {
            const weir_total *queue = &queues->all[i];
            if (!has_word(merge->wiring->inputs, queue->key.name))
                continue;
            double occupied = or_zero(value_of(queue, "occupancy_rate"));
            const node_view *putter = putter_of(j, queue->key.name);
            bool through_limit = limit && putter && is_upstream(j, limit, putter, 0);
            if (through_limit ? least > -1 : occupied < least) {
                least = through_limit ? -1 : occupied;
                found->empty = queue;
            }
        }
        for (size_t i = 0; i < queues->count; i++) {
            const weir_total *queue = &queues->all[i];
            double occupied = or_zero(value_of(queue, "occupancy_rate"));
            if (has_word(merge->wiring->inputs, queue->key.name) && queue != found->empty && occupied > most) {
                most = occupied;
                found->full = queue;
            }
        }
        for (size_t i = 0; i < j->num_nodes && found->empty; i++)
            found->is_route |= j->nodes[i].is_route && is_upstream(j, &j->nodes[i], merge, 0);
        if (found->empty && found->full && or_zero(value_of(found->empty, "occupancy_rate")) < 0.5)
            return true;
    }
    return false;
}

/* -- sentences */

static const struct {
    const char *word, *sentence; /* %s is the name */
} words[WEIR_NUM_VERDICTS] = {
    [WEIR_VERDICT_UNKNOWN] = { "unknown", "The data cannot tell what limits the run." },
    [WEIR_VERDICT_NONE] = { "none", "Nothing limits it: finished items wait for your program, as they should." },
    [WEIR_VERDICT_CONSUMER] = { "consumer", "The consumer: the pipeline makes items faster than they are taken." },
    [WEIR_VERDICT_SOURCE] = { "source",
                              "The source %s: it makes items more slowly than the stages could take them." },
    [WEIR_VERDICT_SLOTS] = { "slots", "The slots of %s: all of them are busy nearly all the time." },
    [WEIR_VERDICT_THREADS] = { "threads", "The threads: %s keeps them busy, and slots with work wait for one." },
    [WEIR_VERDICT_CPUS] = { "cpus", "The CPUs: this process uses all that it may use, most of it for %s." },
    [WEIR_VERDICT_OTHERS] = { "others", "The CPUs: other programs take them while %s waits for one." },
    [WEIR_VERDICT_THROTTLED] = { "throttled", "The CPU quota of the container: it stops the process, so %s waits." },
    [WEIR_VERDICT_STOLEN] = { "stolen", "The CPUs: other virtual machines take them while %s waits for one." },
    [WEIR_VERDICT_STORAGE] = { "storage", "The disk: the tasks of %s wait for it." },
    [WEIR_VERDICT_NETWORK] = { "network", "The network: the tasks of %s wait for it." },
    [WEIR_VERDICT_LOCK] = { "lock", "A lock or another serial part in %s: its tasks wait for each other." },
    [WEIR_VERDICT_OWN_THREADS] = { "own-threads", "The threads that a codec or library starts in %s: they do its "
                                                  "work, and its slots wait." },
    [WEIR_VERDICT_MEMORY] = { "memory", "Memory: the machine has too little, and %s waits for pages to be read." },
    [WEIR_VERDICT_BYTES] = { "bytes", "The byte bound of %s: it leaves room for too few items." },
    [WEIR_VERDICT_ORDER] = { "order",
                             "The order of the output of %s: finished items wait for a slow one before them." },
    [WEIR_VERDICT_BRANCH] = { "branch", "One branch of a route: %s is slower than the other branches." },
    [WEIR_VERDICT_INPUT] = { "input", "One input of a merge: it waits for %s while other inputs are ready." },
    [WEIR_VERDICT_BURSTS] = { "bursts", "Bursts: items come and go in bursts that %s is too small for." },
    [WEIR_VERDICT_EPOCHS] = { "epochs", "The ends of epochs: slots of %s wait for the last items of an epoch before "
                                        "they may begin the next one." },
    [WEIR_VERDICT_GIANTS] = { "giants", "A few giant items: they take most of the time of %s." },
};

const char *weir_verdict_word(weir_verdict_kind kind)
{
    return (size_t)kind < WEIR_NUM_VERDICTS ? words[kind].word : "";
}

static void say(char *sentence, weir_verdict_kind kind, const char *name)
{
    const char *text = words[kind].sentence, *at = strstr(text, "%s");
    if (at)
        snprintf(sentence, VERDICT_TEXT_BYTES, "%.*s%s%s", (int)(at - text), text, name, at + 2);
    else
        snprintf(sentence, VERDICT_TEXT_BYTES, "%s", text);
}

static void settle(judgement *j, weir_verdict_kind kind, const char *name, double confidence)
{
    full_verdict *v = j->verdict;
    v->shown.kind = kind;
    v->shown.confidence = fmax(0.05, fmin(0.99, confidence));
    snprintf(v->name, sizeof v->name, "%s", name);
    say(v->sentence, kind, name);
}

static void settle_other(judgement *j, weir_verdict_kind kind, const char *name)
{
    full_verdict *v = j->verdict;
    if (kind == WEIR_VERDICT_UNKNOWN)
        return;
    v->shown.other_kind = kind;
    v->shown.confidence = fmin(v->shown.confidence, 0.5);
    snprintf(v->other_name, sizeof v->other_name, "%s", name);
    say(v->other_sentence, kind, name);
}

/* -- the limit */

/* The node with the highest use, and the next one that does not run on the same threads. */
typedef struct ranking {
    const node_view *first, *second;
} ranking;

static bool is_worker(const node_view *n)
{
    return !n->is_merge && !n->is_sink && !isnan(n->held);
}

static ranking rank_nodes(const judgement *j)
{
    ranking r = { NULL, NULL };
    for (size_t i = 0; i < j->num_nodes; i++)
        if (is_worker(&j->nodes[i]) && (!r.first || j->nodes[i].held > r.first->held))
            r.first = &j->nodes[i];
    for (size_t i = 0; r.first && i < j->num_nodes; i++) {
        const node_view *n = &j->nodes[i];
        if (!is_worker(n) || n == r.first || (is_starved(n) && n->pool == r.first->pool))
            continue;
        if (!r.second || n->held > r.second->held)
            r.second = n;
    }
    return r;
}

/* With more slots than threads, no slot is in use all the time, but the threads are. */
static bool lacks_threads(const node_view *n)
{
    return n->pool && is_starved(n) && value_of(n->pool, "busy_share") >= SATURATED;
}

/* The node with the most slots that run or wait for a thread of a busy pool; NULL = none. */
static const node_view *most_on_busy_threads(const judgement *j)
{
    const node_view *most = NULL;
    for (size_t i = 0; i < j->num_nodes; i++) {
        const node_view *n = &j->nodes[i];
        if (is_worker(n) && lacks_threads(n) && (!most || n->slots * n->held > most->slots * most->held))
            most = n;
    }
    return most;
}

static const node_view *most_in_turns(const judgement *j)
{
    const node_view *most = NULL;
    for (size_t i = 0; i < j->num_nodes; i++)
        if (is_worker(&j->nodes[i]) && (!most || or_zero(j->nodes[i].turn) > or_zero(most->turn)))
            most = &j->nodes[i];
    return most && most->turn >= TURN_SHARE && most->held + most->turn >= PARTLY ? most : NULL;
}

/* A queue where upstream often waits for room and downstream often for input. */
typedef struct burst {
    const weir_total *queue;
    double share;
    bool by_bytes;
} burst;

static burst find_burst(const judgement *j)
{
    burst found = { NULL, 0, false };
    const weir_total_list *queues = &j->facts->steady->of[WEIR_SUBJECT_QUEUE];
    for (size_t i = 0; i < queues->count; i++) {
        const weir_total *queue = &queues->all[i];
        const node_view *up = putter_of(j, queue->key.name);
        double empty = 0;
        if (queue == j->sink)
            empty = fmin(1, (double)queue->metrics.queue.get_ns / (double)queue->elapsed_ns);
        for (size_t k = 0; k < j->num_nodes && up; k++)
            if (takes_from(j, &j->nodes[k], up, queue->key.name))
                empty = fmax(empty, j->nodes[k].is_merge || j->nodes[k].is_sink ? 0 : or_zero(j->nodes[k].in));
        /* Where a queue has items while slots wait, the items are of the next epoch, and room would not help. */
        empty = fmin(empty, 1 - or_zero(value_of(queue, "occupancy_rate")));
        double share = up ? fmin(or_zero(up->out), empty) : 0;
        if (share <= found.share)
            continue;
        double depth = value_of(queue, "max_depth"), bytes = value_of(queue, "max_bytes");
        int64_t bound = up->wiring ? up->wiring->queue_bytes : 0;
        found = (burst){ queue, share,
                         bound > 0 && depth < 0.9 * (double)queue->capacity && bytes >= 0.5 * (double)bound };
    }
    return found;
}

/* Slots wait for input while items wait in their queue: these are of the next epoch. */
typedef struct epoch_end {
    const node_view *node;
    const weir_total *queue;
    double share; /* of the slot time, at least */
} epoch_end;

static epoch_end find_epoch_end(const judgement *j)
{
    epoch_end found = { NULL, NULL, 0 };
    const weir_total_list *queues = &j->facts->steady->of[WEIR_SUBJECT_QUEUE];
    for (size_t i = 0; i < queues->count; i++) {
        const node_view *up = putter_of(j, queues->all[i].key.name);
        double occupied = or_zero(value_of(&queues->all[i], "occupancy_rate"));
        for (size_t k = 0; k < j->num_nodes && up; k++) {
            const node_view *n = &j->nodes[k];
            double share = n->in + occupied - 1;
            if (is_worker(n) && takes_from(j, n, up, queues->all[i].key.name) && share > found.share)
                found = (epoch_end){ n, &queues->all[i], share };
        }
    }
    return found;
}

/* The threads of its pool that a node keeps busy, on average. Pending tasks keep none: slots that are busy beyond the
   threads of the pool are pending, so these threads are what other nodes leave. */
static double threads_of(const judgement *j, const node_view *n)
{
    double busy = n->slots * n->busy, left = value_of(n->pool, "busy_share") * (double)n->pool->capacity;
    if (!(busy > (double)n->pool->capacity))
        return busy;
    for (size_t i = 0; i < j->num_nodes; i++)
        left -= &j->nodes[i] != n && j->nodes[i].pool == n->pool ? j->nodes[i].slots * j->nodes[i].busy : 0;
    return fmax(busy * or_zero(n->cpu), fmin(busy, left));
}

/* Which node takes most of the threads that `n` waits for; which one computes most, for a lack of CPUs. */
static const node_view *find_user(judgement *j, weir_verdict_kind kind, const node_view *n)
{
    const node_view *user = n;
    double most = -1;
    if (kind != WEIR_VERDICT_THREADS && (kind < WEIR_VERDICT_CPUS || kind > WEIR_VERDICT_STOLEN))
        return n;
    for (size_t i = 0; i < j->num_nodes; i++) {
        const node_view *other = &j->nodes[i];
        if (!is_worker(other) || !other->pool || (kind == WEIR_VERDICT_THREADS && other->pool != n->pool))
            continue;
        double uses = kind == WEIR_VERDICT_THREADS
                          ? threads_of(j, other)
                          : other->slots * other->busy * (or_zero(other->cpu) + or_zero(other->delay));
        if (uses > most) {
            most = uses;
            user = other;
        }
    }
    if (kind == WEIR_VERDICT_THREADS && user != n)
        add_evidence(j, "%s keeps %.2f of these threads busy, and is on a CPU for %.0f %% of that time",
                     user->total->key.name, most, 100 * or_zero(user->cpu));
    return user;
}

static void judge_node(judgement *j, const node_view *n, const node_view *second)
{
    cause why = why_held(j, n);
    double margin = second ? n->held - second->held : n->held;
    double confidence = why.confidence * (n->held >= SATURATED || lacks_threads(n) ? 1 : 0.75);
    parallel_paths paths;
    bool is_capacity = why.kind == WEIR_VERDICT_SLOTS || why.kind == WEIR_VERDICT_SOURCE;
    if (is_capacity && find_paths(j, n, &paths) && is_upstream(j, n, putter_of(j, paths.empty->key.name), 0)) {
        const node_view *other = putter_of(j, paths.full->key.name);
        bool others_wait = or_zero(value_of(paths.full, "occupancy_rate")) >= PARTLY ||
                           (other && other->out >= 0.3) || paths.is_route;
        if (others_wait) {
            add_evidence(j, "%s is not empty for %.0f %% of the time, %s for %.0f %%", paths.empty->key.name,
                         100 * value_of(paths.empty, "occupancy_rate"), paths.full->key.name,
                         100 * value_of(paths.full, "occupancy_rate"));
            why.kind = paths.is_route ? WEIR_VERDICT_BRANCH : WEIR_VERDICT_INPUT;
        }
    }
    settle(j, why.kind, find_user(j, why.kind, n)->total->key.name, confidence);
    settle_other(j, why.other_kind, n->total->key.name);
    if (second && why.is_shared && has_gap_in_times(second, shortest_of(j, second)))
        return;
    if (second && margin < CLOSE && second->held >= SATURATED && n->held >= SATURATED) {
        add_evidence(j, "%s is in use nearly as much: for %.0f %% of the time", second->total->key.name,
                     100 * second->held);
        settle_other(j, second->is_source ? WEIR_VERDICT_SOURCE : WEIR_VERDICT_SLOTS, second->total->key.name);
        say_missing(j,
                    why.kind == WEIR_VERDICT_THREADS
                        ? "record the same work with more threads, and compare the recordings with weir compare: if "
                          "the throughput is the same, the slots limit"
                        : "record the same work with more slots for one of the two, and compare the recordings with "
                          "weir compare: if the throughput is the same, the other one limits");
    }
}

static void judge_burst(judgement *j, const burst *b)
{
    add_evidence(j,
                 "%s: often full, so that the stage before it waits, and often empty, so that the next one waits "
                 "(each for at least %.0f %% of the time)",
                 b->queue->key.name, 100 * b->share);
    add_evidence(j, "it holds %.1f items on average; the highest level was %" PRId64 " of %" PRId64,
                 or_zero(value_of(b->queue, "ave_depth")), b->queue->metrics.queue.max_depth, b->queue->capacity);
    settle(j, b->by_bytes ? WEIR_VERDICT_BYTES : WEIR_VERDICT_BURSTS, b->queue->key.name, fmin(0.9, 0.5 + b->share));
}

static void judge_epochs(judgement *j, const epoch_end *e)
{
    tell_slots(j, e->node);
    add_evidence(
        j,
        "while its slots wait for input, %s is not empty (for %.0f %% of the time): these items are of the next "
        "epoch, and none of them may be started before all items of this one have left the stage",
        e->queue->key.name, 100 * value_of(e->queue, "occupancy_rate"));
    settle(j, WEIR_VERDICT_EPOCHS, e->node->total->key.name, fmin(0.95, 0.6 + e->share));
}

/* No node upstream of the merge is saturated, but the merge waits for one input. */
static bool judge_input(judgement *j)
{
    parallel_paths paths;
    if (!find_paths(j, NULL, &paths) || paths.is_route || !(paths.merge->in >= 0.3) ||
        !paths.merge->wiring->selects_input || !(value_of(paths.full, "occupancy_rate") >= SATURATED))
        return false;
    add_evidence(j, "%s waits for input for %.0f %% of the time; %s is not empty for %.0f %%, %s for %.0f %%",
                 paths.merge->total->key.name, 100 * paths.merge->in, paths.empty->key.name,
                 100 * value_of(paths.empty, "occupancy_rate"), paths.full->key.name,
                 100 * value_of(paths.full, "occupancy_rate"));
    settle(j, WEIR_VERDICT_INPUT, putter_of(j, paths.empty->key.name)->total->key.name, 0.8);
    return true;
}

static void judge_consumer(judgement *j, const node_view *first)
{
    add_evidence(j, "%s: not empty for %.0f %% of the time when the consumer asks", j->sink->key.name,
                 100 * j->sink_occupied);
    if (first)
        add_evidence(j, "no stage or source is in use for more than %.0f %% of the time", 100 * fmin(1, first->held));
    if (j->verdict->polls)
        add_evidence(j,
                     "the consumer does not wait in weir_pipeline_next(), but asks again and again, and items wait "
                     "until it comes back");
    settle(j, j->facts->marks_steps ? WEIR_VERDICT_NONE : WEIR_VERDICT_CONSUMER, "",
           0.5 + 0.5 * fmax(0, j->sink_occupied - (first ? 0.5 * first->held : 0)));
    if (first && first->held >= SATURATED) {
        cause why = why_held(j, first);
        settle_other(j, why.kind, first->total->key.name);
        say_missing(
            j, "record with a consumer that only counts the items, and compare the recordings with weir compare: if "
               "many more items per second are delivered, the consumer limits");
    }
}

/* Without slot times (older databases, SPDL's), only the last queue can be used. */
static void judge_by_queue(judgement *j)
{
    if (!j->sink || isnan(value_of(j->sink, "occupancy_rate")))
        return;
    add_evidence(j, "%s: not empty for %.0f %% of the time", j->sink->key.name, 100 * j->sink_occupied);
    if (j->sink_occupied > 0.5)
        settle(j, WEIR_VERDICT_CONSUMER, "", 0.6);
    say_missing(j, "record the run again with this version, which measures where slots spend their time");
}

static bool tell_all_failed(judgement *j)
{
    uint64_t num_failures = 0;
    for (size_t i = 0; i < j->num_nodes; i++)
        num_failures += is_worker(&j->nodes[i]) ? j->nodes[i].total->metrics.task.num_failures : 0;
    if (num_failures == 0 || !j->sink || j->sink->metrics.queue.num_items > 0)
        return false;
    add_evidence(j, "no item was delivered, and %" PRIu64 " task%s failed: see weir failures", num_failures,
                 num_failures == 1 ? "" : "s");
    return true;
}

static void judge(judgement *j)
{
    ranking r = rank_nodes(j);
    const node_view *turns = most_in_turns(j), *on_threads = most_on_busy_threads(j);
    burst b = find_burst(j);
    epoch_end epochs = find_epoch_end(j);
    double held = r.first ? r.first->held : 0;
    settle(j, WEIR_VERDICT_UNKNOWN, "", 0);
    if (!r.first)
        judge_by_queue(j);
    else if (j->sink && j->sink_occupied >= fmax(0.7, held - CLOSE) && held + j->sink_occupied > 0)
        judge_consumer(j, r.first);
    else if (turns) {
        tell_slots(j, turns);
        add_evidence(j,
                     "its slots wait for %.0f %% of the time, with a finished result, for an earlier one to finish",
                     100 * turns->turn);
        settle(j, WEIR_VERDICT_ORDER, turns->total->key.name, 0.6 + 0.4 * turns->turn);
    } else if (held >= SATURATED)
        judge_node(j, r.first, r.second);
    else if (on_threads)
        judge_node(j, on_threads, NULL);
    else if (epochs.share >= BURST_SHARE && epochs.share >= 0.4 * (1 - held))
        judge_epochs(j, &epochs);
    else if (b.share >= BURST_SHARE && b.share >= 0.4 * (1 - held))
        judge_burst(j, &b);
    else if (!judge_input(j)) {
        if (held >= PARTLY)
            judge_node(j, r.first, r.second);
        else if (b.share >= BURST_SHARE)
            judge_burst(j, &b);
        else if (!tell_all_failed(j)) {
            tell_slots(j, r.first);
            say_missing(j, "no slot and no thread was in use most of the time; record for longer (--epochs) and with "
                           "shorter laps (--log-interval 0.1)");
        }
    }
}

/* A few tasks are not a sample. */
static void weigh_sample(judgement *j)
{
    weir_verdict *shown = &j->verdict->shown;
    double items = j->sink ? (double)j->sink->metrics.queue.num_items : 0;
    if (shown->kind == WEIR_VERDICT_UNKNOWN || items >= FEW_TASKS)
        return;
    shown->confidence *= 0.6;
    j->verdict->is_short = true;
    add_evidence(j, "only %.0f items were delivered in the part of the run that counts", items);
    if (!*j->verdict->missing)
        say_missing(j, "record a longer run");
}

full_verdict *weir_verdict_judge(const verdict_facts *facts)
{
    judgement j = { .facts = facts };
    j.verdict = calloc(1, sizeof *j.verdict);
    if (!j.verdict || !view(&j)) {
        free(j.verdict);
        return NULL;
    }
    full_verdict *v = j.verdict;
    const weir_queue_metrics *sink = j.sink ? &j.sink->metrics.queue : NULL;
    v->polls = sink && weir_model_polls(j.sink->elapsed_ns, sink, weir_model_count_waits(sink));
    judge(&j);
    weigh_sample(&j);
    free(j.nodes);
    v->shown.items_per_s = value_of(j.sink, "items_per_s");
    v->shown.name = v->name;
    v->shown.sentence = v->sentence;
    v->shown.other_name = v->other_name;
    v->shown.other_sentence = v->other_sentence;
    v->shown.missing = v->missing;
    v->shown.evidence = v->evidence;
    v->shown.advice = v->advice;
    return v;
}

void weir_verdict_settle_change(full_verdict *v, const full_verdict *before, const full_verdict *after, double share)
{
    const full_verdict *longer = share >= 0.5 ? before : after, *other = share >= 0.5 ? after : before;
    judgement j = { .verdict = v };
    v->shown.num_evidence = 0;
    settle(&j, longer->shown.kind, longer->name, longer->shown.confidence);
    settle_other(&j, other->shown.kind, other->name);
    say_missing(&j, "explain each part alone: weir explain with --until or --since and the time of the change");
    add_evidence(&j, "the limit changed after %.0f %% of this time: before, %.2f items per second; after, %.2f",
                 100 * share, before->shown.items_per_s, after->shown.items_per_s);
    for (size_t i = 0; i < longer->shown.num_evidence; i++)
        add_evidence(&j, "%s: %s", share >= 0.5 ? "before" : "after", longer->lines[i]);
    for (size_t i = 0; i < other->shown.num_evidence; i++)
        add_evidence(&j, "%s: %s", share >= 0.5 ? "after" : "before", other->lines[i]);
}

weir_verdict *weir_verdict_of_totals(const weir_totals *totals)
{
    full_verdict *v = totals ? weir_verdict_judge(&(verdict_facts){ .steady = totals, .whole = totals }) : NULL;
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
