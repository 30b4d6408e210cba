#include "stats/advice/verdict/live.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>

#include "common/student_t.h"
#include "engine/base/kernel_files.h"
#include "engine/base/readings.h"

#define SAMPLE_NS (5 * WEIR_MILLISECOND)
#define WIDEST    0.7 /* half of an interval, in logarithms: from half to twice. A wider one says nothing */

#define LOOK_PRECISION \
    0.1 /* of the items per second, half a 95 % interval; a look may take four times as long for it */

enum { LOOK_SLICES = 10 };

/* A slice with fewer items says little. As many may be in the queues between a change and the consumer. */
enum { FEW_ITEMS = 12, QUEUED_ITEMS = 3 };

/* -- how it is used */

/* CPU time in seconds; NAN = not known. pools, delay: of the threads of pools, and their waiting for a CPU. Other threads (the
   consumer's, or that of this experiment) wake up often and compute little: their delays say nothing about tasks. */
typedef struct cpu_times {
    double process, pools, delay, busy, idle;
} cpu_times;

static double seconds_of(int64_t ns)
{
    return ns < 0 ? NAN : 1e-9 * (double)ns;
}

static cpu_times read_cpu_times(void)
{
    weir__process_usage used;
    weir__schedule pools;
    weir__machine_cpus cpus;
    if (!weir__readings_get()->usage(&used))
        used.cpu_ns = -1;
    if (!weir__schedule_read_pools(&pools))
        pools = (weir__schedule){ -1, -1 };
    weir__machine_cpus_read(&cpus);
    return (cpu_times){ .process = seconds_of(used.cpu_ns),
                        .pools = seconds_of(pools.cpu_ns),
                        .delay = seconds_of(pools.delay_ns),
                        .busy = seconds_of(cpus.busy_ns),
                        .idle = seconds_of(cpus.idle_ns) + seconds_of(cpus.disk_idle_ns) };
}

static void add_sample(verdict_view *view, const weir_snapshot *s)
{
    for (size_t i = 0; i < view->num_nodes; i++) {
        const weir_stage_snapshot *stage = &s->stages[i];
        node_view *n = &view->nodes[i];
        n->slots += stage->slots;
        n->busy += stage->running + stage->pending;
        n->pending += stage->pending;
        n->in += stage->waiting_in;
        n->thread += stage->waiting_thread;
        n->turn += stage->waiting_turn;
        n->out += stage->waiting_out;
        n->epoch_tail += stage->waiting_epoch_tail;
        n->epoch_gap += stage->waiting_epoch_gap;
        n->pool_busy += stage->running; /* of this node only */
        n->threads += stage->threads ? stage->threads : s->threads;
    }
    for (size_t i = 0; i < view->num_queues; i++) {
        queue_view *q = &view->queues[i];
        q->occupied += s->queues[i].depth > 0;
        q->ave_depth += s->queues[i].depth;
        q->max_depth = fmax(q->max_depth, s->queues[i].depth);
        q->max_bytes = fmax(q->max_bytes, (double)s->queues[i].bytes);
    }
}

/* Turns the sums over the samples into means. */
static void divide_samples(verdict_view *view, double count)
{
    for (size_t i = 0; i < view->num_nodes; i++) {
        node_view *n = &view->nodes[i];
        double slots = fmax(n->slots, 1);
        n->pending /= fmax(n->busy, 1);
        n->busy /= slots;
        n->in /= slots;
        n->thread /= slots;
        n->turn /= slots;
        n->out /= slots;
        n->epoch_tail /= slots;
        n->epoch_gap /= slots;
        n->slots /= count;
        n->threads /= count;
        n->pool_busy /= count;
        n->held = n->busy + n->thread;
    }
    for (size_t i = 0; i < view->num_queues; i++) {
        view->queues[i].occupied /= count;
        view->queues[i].ave_depth /= count;
    }
}

static const char shared_pool[] = "the pool";

/* From the tasks that run of each node to the use of its pool. */
static void view_pools(verdict_view *view, double delay_ratio)
{
    double running = 0, cpus = 0;
    for (size_t i = 0; i < view->num_nodes; i++)
        if (view->nodes[i].pool == shared_pool) {
            running += view->nodes[i].pool_busy;
            cpus += view->nodes[i].slots * view->nodes[i].busy * view->nodes[i].cpu;
        }
    for (size_t i = 0; i < view->num_nodes; i++) {
        node_view *n = &view->nodes[i];
        bool is_shared = n->pool == shared_pool;
        double in_use = is_shared ? running : n->pool_busy, cpu = is_shared ? cpus : n->slots * n->busy * n->cpu;
        n->pool_cpu = in_use > 0 ? fmin(1, cpu / in_use) : 0;
        n->pool_busy = in_use / fmax(n->threads, 1);
        n->pool_delay = fmin(n->pool_cpu * delay_ratio, 1 - n->pool_cpu);
        n->delay = fmin(n->cpu * delay_ratio, 1 - n->cpu);
    }
}

static double share_in_use(int64_t part_ns, double in_use_s)
{
    return in_use_s > 0 ? fmin(1, 1e-9 * (double)part_ns / in_use_s) : 0;
}

/* The CPU time of steps is known when they end. What the threads of pools have used beyond it belongs to tasks that
   still run. It is divided among them in proportion to how long they have run in the look. */
static void view_open_tasks(verdict_view *view, const weir_snapshot *s, double pools_s, double elapsed_s)
{
    double open_s = 0, counted_s = 0;
    for (size_t i = 0; i < s->num_tasks; i++)
        open_s += s->tasks[i].pending ? 0 : fmin(1e-9 * (double)s->tasks[i].age_ns, elapsed_s);
    for (size_t i = 0; i < view->num_nodes; i++)
        counted_s += view->nodes[i].slots * view->nodes[i].busy * view->nodes[i].cpu * elapsed_s;
    double left_s = pools_s - counted_s;
    if (!(left_s > 0) || open_s <= 0)
        return;
    for (size_t i = 0; i < s->num_tasks; i++) {
        int node = s->tasks[i].pending ? -1 : weir__live_find(view, s->tasks[i].stage);
        node_view *n = node >= 0 ? &view->nodes[node] : NULL;
        double in_use = n ? n->slots * n->busy * elapsed_s : 0;
        if (n && in_use > 0)
            n->cpu = fmin(1, n->cpu + fmin(1, left_s / open_s) * fmin(1e-9 * (double)s->tasks[i].age_ns, elapsed_s) /
                                          in_use);
    }
}

static void view_progress(verdict_view *view, const weir_snapshot *from, const weir_snapshot *to, double elapsed_s)
{
    for (size_t i = 0; i < view->num_nodes; i++) {
        node_view *n = &view->nodes[i];
        double in_use = n->slots * n->busy * elapsed_s;
        n->tasks_per_s = (double)(to->stages[i].num_tasks - from->stages[i].num_tasks) / elapsed_s;
        n->time_s = n->tasks_per_s > 0 ? n->slots * n->busy / n->tasks_per_s : NAN;
        n->shortest_s = NAN;
        n->cpu = share_in_use(to->stages[i].cpu_ns - from->stages[i].cpu_ns, in_use);
        n->failed = share_in_use(to->stages[i].failed_ns - from->stages[i].failed_ns, in_use);
        n->num_failures = (double)(to->stages[i].num_failures - from->stages[i].num_failures);
        uint64_t num_waits[WEIR_NUM_WAITS];
        for (int j = 0; j < WEIR_NUM_WAITS; j++)
            num_waits[j] = to->stages[i].num_waits[j] - from->stages[i].num_waits[j];
        weir__verdict_view_waits(n, num_waits);
    }
    const weir_queue_snapshot *before = &from->queues[view->num_queues - 1],
                              *after = &to->queues[view->num_queues - 1];
    view->work_node = -1;
    view->work_per_s = 0;
    for (size_t i = 0; i < view->num_nodes; i++) {
        double work_per_s = (double)(to->stages[i].num_work - from->stages[i].num_work) / elapsed_s;
        if (work_per_s <= view->work_per_s)
            continue;
        view->work_node = (int)i;
        view->work_per_s = work_per_s;
    }
    view->trains = to->marks_steps;
    view->num_items = (double)(after->num_items - before->num_items);
    view->items_per_s = view->num_items / elapsed_s;
}

/* child_delay_s: what child processes that work for tasks waited for a CPU. */
static void view_cpus(verdict_view *view, const cpu_times *from, const cpu_times *to, double child_delay_s,
                      double elapsed_s)
{
    system_view *s = &view->system;
    double used = (to->process - from->process) / elapsed_s, busy = (to->busy - from->busy) / elapsed_s;
    double pools = 0;
    for (size_t i = 0; i < view->num_nodes; i++)
        pools += view->nodes[i].slots * view->nodes[i].busy * view->nodes[i].cpu;
    *s = (system_view){ .process = fmax(used, pools), /* children's included */
                        .budget = weir_cpu_budget(),
                        .outside = used - pools,
                        .idle = (to->idle - from->idle) / elapsed_s,
                        .ranks = NAN,
                        .stolen = NAN,
                        .throttled = NAN,
                        .io_pressure = NAN,
                        .memory_pressure = NAN,
                        .disk_idle = NAN,
                        .stored = NAN };
    s->other = fmax(0, busy - s->process);
    s->all = s->process + s->other + s->idle;
    double children_s = fmax(0, pools * elapsed_s - (to->pools - from->pools));
    double delay_ratio = (to->delay - from->delay + child_delay_s) / fmax(to->pools - from->pools + children_s, 1e-6);
    view_pools(view, isnan(delay_ratio) ? 0 : fmax(0, delay_ratio));
}

static void name_parts(verdict_view *view, const weir_snapshot *s)
{
    for (size_t i = 0; i < view->num_nodes; i++) {
        node_view *n = &view->nodes[i];
        *n = (node_view){ .name = s->stages[i].name,
                          .inputs = "",
                          .is_source = strcmp(s->stages[i].kind, "source") == 0,
                          .is_merge = strcmp(s->stages[i].kind, "merge") == 0,
                          .is_sink = strcmp(s->stages[i].kind, "sink") == 0 };
        if (!n->is_merge && !n->is_sink)
            n->pool = s->stages[i].threads ? n->name : shared_pool;
    }
    for (size_t i = 0; i < view->num_queues; i++) {
        const char *name = s->queues[i].name;
        view->queues[i] = (queue_view){ .name = name,
                                        .putter = weir__verdict_find_putter(view, name),
                                        .capacity = s->queues[i].capacity,
                                        .bound_bytes = (double)s->queues[i].capacity_bytes };
    }
    view->sink = &view->queues[view->num_queues - 1];
}

static bool is_running(const weir_snapshot *s)
{
    bool has_source = false;
    for (size_t i = 0; i < s->num_stages; i++)
        has_source |= strcmp(s->stages[i].kind, "source") == 0 && !s->stages[i].ended;
    return has_source && strcmp(s->state, "running") == 0;
}

static bool must_stop(const atomic_bool *stops)
{
    return stops && atomic_load(stops);
}

/* How far a look has come. Its shares are known when the flow of items is: bursts need a longer look. */
typedef struct look {
    int64_t start_ns, time_ns, count;              /* samples */
    double *ages_s, *num_aged;                     /* of each node: of tasks that run, in all samples; their number */
    double items[LOOK_SLICES * LIVE_LONGEST_LOOK]; /* taken in each slice */
    uint32_t num_slices;
    uint64_t num_items; /* until the end of the last slice */
    double half;        /* of the 95 % interval of the items of a slice */
} look;

/*
 * The inspection paradox: let E[x] be the mean length of a task. Then a task that is found at work has run for E[x²]
 * / 2 E[x] on average. So rare long tasks are seen before many have ended.
 */
static void add_ages(const verdict_view *view, const weir_snapshot *s, look *l)
{
    for (size_t i = 0; i < s->num_tasks; i++) {
        int node = weir__live_find(view, s->tasks[i].stage);
        if (node < 0)
            continue;
        l->ages_s[node] += 1e-9 * (double)s->tasks[i].age_ns;
        l->num_aged[node]++;
    }
}

static void view_unevenness(verdict_view *view, const look *l)
{
    for (size_t i = 0; i < view->num_nodes; i++) {
        node_view *n = &view->nodes[i];
        if (l->num_aged[i] > 0 && n->time_s > 0)
            n->unevenness = fmax(0, 2 * l->ages_s[i] / l->num_aged[i] / n->time_s - 1);
    }
}

static bool is_enough(look *l, const weir_snapshot *now)
{
    int64_t elapsed_ns = weir_clock_ns() - l->start_ns;
    if (elapsed_ns < (l->num_slices + 1) * l->time_ns / LOOK_SLICES)
        return false;
    uint64_t num_items = now->queues[now->num_queues - 1].num_items;
    l->items[l->num_slices++] = (double)(num_items - l->num_items);
    l->num_items = num_items;
    if (l->num_slices < LOOK_SLICES)
        return false;
    double mean = weir__mean_interval(l->items, l->num_slices, &l->half);
    return l->half <= LOOK_PRECISION * mean || l->num_slices == LOOK_SLICES * LIVE_LONGEST_LOOK;
}

/* Adds samples until it is enough. *now: the last snapshot, for the caller to free. */
static int sample(weir_pipeline *pipeline, look *l, const atomic_bool *stops, verdict_view *view, weir_snapshot **now)
{
    int status;
    do {
        weir_snapshot_free(*now);
        *now = NULL;
        weir__readings_get()->sleep(SAMPLE_NS);
        status = weir_pipeline_snapshot(pipeline, now);
        if (status == WEIR_OK && (!is_running(*now) || must_stop(stops)))
            status = WEIR_EOF;
        if (status == WEIR_OK)
            add_sample(view, *now);
        if (status == WEIR_OK)
            add_ages(view, *now, l);
        l->count++;
    } while (status == WEIR_OK && !is_enough(l, *now));
    return status;
}

int weir__live_view(weir_pipeline *pipeline, int64_t time_ns, const atomic_bool *stops, verdict_view *view)
{
    weir_snapshot *from, *now = NULL;
    cpu_times before = read_cpu_times();
    look l = { .start_ns = weir_clock_ns(), .time_ns = time_ns };
    *view = (verdict_view){ .num_nodes = 0 };
    int status = weir_pipeline_snapshot(pipeline, &from);
    if (status != WEIR_OK)
        return status;
    l.num_items = from->queues[from->num_queues - 1].num_items;
    view->nodes = calloc(from->num_stages, sizeof *view->nodes);
    view->queues = calloc(from->num_queues, sizeof *view->queues);
    l.ages_s = calloc(2 * from->num_stages, sizeof *l.ages_s);
    l.num_aged = l.ages_s + from->num_stages;
    status = view->nodes && view->queues && l.ages_s ? WEIR_OK : WEIR_ENOMEM;
    view->num_nodes = from->num_stages;
    view->num_queues = from->num_queues;
    if (status == WEIR_OK) {
        name_parts(view, from);
        status = sample(pipeline, &l, stops, view, &now);
    }
    if (status == WEIR_OK) {
        double elapsed_s = 1e-9 * (double)(weir_clock_ns() - l.start_ns), child_delay_s = 0;
        cpu_times after = read_cpu_times();
        divide_samples(view, (double)l.count);
        view_progress(view, from, now, elapsed_s);
        view_unevenness(view, &l);
        view_open_tasks(view, now, after.pools - before.pools, elapsed_s);
        view->rate_half = l.half * LOOK_SLICES / (1e-9 * (double)time_ns);
        for (size_t i = 0; i < view->num_nodes; i++)
            child_delay_s += 1e-9 * (double)(now->stages[i].child_delay_ns - from->stages[i].child_delay_ns);
        view_cpus(view, &before, &after, child_delay_s, elapsed_s);
        for (size_t i = 0; i + 1 < view->num_queues; i++)
            weir__verdict_view_takers(view, &view->queues[i]);
        view->queues[view->num_queues - 1].empty = view->sink_waits = 1 - view->sink->occupied;
    } else
        weir__verdict_view_free(view);
    free(l.ages_s);
    weir_snapshot_free(now);
    weir_snapshot_free(from);
    return status;
}

int weir__live_look(weir_pipeline *pipeline, int64_t time_ns, int64_t longest_ns, const atomic_bool *stops,
                    verdict_view *view)
{
    int status = weir__live_view(pipeline, time_ns, stops, view);
    while (status == WEIR_OK && view->num_items <= 0 &&
           2 * time_ns <= (view->work_node >= 0 ? LIVE_LONGEST_LOOK : 1) * longest_ns) {
        weir__verdict_view_free(view);
        time_ns *= 2;
        status = weir__live_view(pipeline, time_ns, stops, view);
    }
    return status;
}

/* -- settings */

bool weir__live_setting(weir_pipeline *pipeline, int node, live_setting *setting)
{
    weir_snapshot *s;
    if (weir_pipeline_snapshot(pipeline, &s) != WEIR_OK)
        return false;
    bool has_own = node >= 0 && s->stages[node].threads > 0;
    *setting = (live_setting){ .stage = node >= 0 ? s->stages[node].name : NULL,
                               .has_own = has_own,
                               .slots = node >= 0 ? s->stages[node].concurrency : 0,
                               .threads = has_own ? s->stages[node].threads : s->threads };
    bool goes_on = is_running(s);
    weir_snapshot_free(s);
    return goes_on;
}

int weir__live_apply(weir_pipeline *pipeline, const live_setting *setting)
{
    if (setting->is_speedup)
        return weir_pipeline_set_speedup(pipeline, setting->stage, setting->speedup);
    int status = WEIR_OK;
    if (setting->threads)
        status = weir_pipeline_set_threads(pipeline, setting->has_own ? setting->stage : NULL, setting->threads);
    if (status == WEIR_OK && setting->stage && setting->slots)
        status = weir_pipeline_set_concurrency(pipeline, setting->stage, setting->slots);
    return status;
}

int weir__live_apply_all(weir_pipeline *pipeline, const live_setting *settings, uint32_t num)
{
    int status = WEIR_OK;
    for (uint32_t i = 0; i < num && status == WEIR_OK; i++)
        status = weir__live_apply(pipeline, &settings[i]);
    return status;
}

uint32_t weir__live_candidates(const verdict_view *view, int nodes[LIVE_MOST_PARTS])
{
    double most = 0;
    uint32_t num = 0;
    for (size_t i = 0; i < view->num_nodes; i++)
        if (!view->nodes[i].is_source)
            most = fmax(most, weir__verdict_use(view, i));
    for (size_t i = 0; i < view->num_nodes && most > 0 && num < LIVE_MOST_PARTS; i++)
        if (!view->nodes[i].is_source && weir__verdict_use(view, i) * WEIR_WORTH_GAIN >= most)
            nodes[num++] = (int)i;
    return num;
}

uint32_t weir__live_twice(uint32_t count, uint32_t most)
{
    return count >= most ? count : count > most / 2 ? most : 2 * count;
}

bool weir__live_double(weir_pipeline *pipeline, const int *nodes, uint32_t num, uint32_t most_slots,
                       uint32_t most_threads, live_set *set)
{
    uint32_t more = 0; /* slots on the pool */
    *set = (live_set){ .num = 0 };
    for (uint32_t i = 0; i < num; i++) {
        live_setting *now = &set->now[set->num], *other = &set->other[set->num];
        if (!weir__live_setting(pipeline, nodes[i], now))
            return false;
        *other = *now;
        other->slots = weir__live_twice(now->slots, most_slots);
        if (other->slots == now->slots)
            continue;
        set->num++;
        if (now->has_own)
            other->threads += other->slots - now->slots;
        else
            more += other->slots - now->slots;
    }
    for (uint32_t i = 0; i < set->num; i++) {
        uint32_t threads = set->now[i].threads, *others = &set->other[i].threads;
        if (!set->now[i].has_own)
            *others = threads + more <= most_threads ? threads + more
                      : threads > most_threads       ? threads
                                                     : most_threads;
    }
    return set->num > 0;
}

/* -- trials */

int weir__live_find(const verdict_view *view, const char *name)
{
    for (size_t i = 0; i < view->num_nodes; i++)
        if (strcmp(view->nodes[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* Few items in a slice say little, but the work within them does: frames, samples. */
static bool counts_work(const verdict_view *view, int64_t slice_ns)
{
    bool has_few_items = view->items_per_s * 1e-9 * (double)slice_ns < FEW_ITEMS;
    return has_few_items && view->work_node >= 0 && view->items_per_s > 0 && view->work_per_s > view->items_per_s;
}

int64_t weir__live_settle_ns(const verdict_view *view, const int *nodes, uint32_t num, int64_t longest_ns)
{
    double time_s = 0;
    for (uint32_t i = 0; i < num; i++)
        if (nodes[i] >= 0)
            time_s = fmax(time_s, view->nodes[nodes[i]].time_s); /* fmax() ignores what is not known */
    double needed_ns = 1e9 * fmax(0.03, 1.5 * time_s + QUEUED_ITEMS / fmax(view->items_per_s, 0.1));
    /* without it, what counts is not what the setting does, however slow the items are */
    return (int64_t)(counts_work(view, longest_ns) ? needed_ns : fmin((double)longest_ns, needed_ns));
}

int64_t weir__live_slice_ns(const verdict_view *view, int64_t slice_ns, int64_t longest_ns)
{
    double needed_ns = 1e9 * FEW_ITEMS / fmax(view->items_per_s, 0.1);
    if (counts_work(view, longest_ns)) /* all parts of a task, also the opening of a file, in which no work is done */
        needed_ns = 1e9 * fmax(0, view->nodes[view->work_node].time_s);
    return (int64_t)fmax((double)slice_ns, fmin(needed_ns, (double)longest_ns));
}

/* The largest unevenness of the stages that may limit. */
static double unevenness_of(const verdict_view *view)
{
    int nodes[LIVE_MOST_PARTS];
    double most = 0;
    for (uint32_t i = weir__live_candidates(view, nodes); i-- > 0;)
        most = fmax(most, view->nodes[nodes[i]].unevenness);
    return most;
}

live_unit weir__live_unit(const verdict_view *view, int64_t slice_ns)
{
    if (!counts_work(view, slice_ns))
        return (live_unit){ .node = -1, .per_item = 1, .unevenness = unevenness_of(view), .view = view };
    return (live_unit){ .node = view->work_node, .per_item = view->work_per_s / view->items_per_s, .view = view };
}

double weir__mean_interval(const double *values, uint32_t count, double *half_width)
{
    double mean = 0, squares = 0, freedom = count - 1.0;
    for (uint32_t i = 0; i < count; i++)
        mean += values[i] / count;
    for (uint32_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    *half_width = count > 1 ? weir__student_t(freedom) * sqrt(squares / freedom / count) : INFINITY;
    return mean;
}

double weir__ratio_interval(const double *before, const double *after, uint32_t count, double *half_width)
{
    double sums[2] = { 0, 0 }, squares = 0, freedom = count - 1.0;
    for (uint32_t i = 0; i < count; i++) {
        sums[0] += before[i] / count;
        sums[1] += after[i] / count;
    }
    for (uint32_t i = 0; i < count; i++)
        squares += pow(after[i] / sums[1] - before[i] / sums[0], 2);
    *half_width = count > 1 ? weir__student_t(freedom) * sqrt(squares / freedom / count) : INFINITY;
    return log(sums[1] / sums[0]);
}

double weir__live_pairs_add(live_pairs *pairs, double before, double after)
{
    pairs->rates[0][pairs->num] = before;
    pairs->rates[1][pairs->num++] = after;
    pairs->mean = weir__ratio_interval(pairs->rates[0], pairs->rates[1], pairs->num, &pairs->half);
    if (pairs->num < 2)
        return INFINITY;
    double per_deviation = weir__student_t(pairs->num - 1.0) / sqrt(pairs->num);
    pairs->largest_deviation = fmax(pairs->largest_deviation, pairs->half / per_deviation);
    return pairs->largest_deviation * per_deviation;
}

double weir__renewal_interval(double unevenness, double num_before, double num_after)
{
    const double two_sided = 1.959964; /* the normal distribution's */
    return two_sided * sqrt(unevenness * (1 / fmax(num_before, 1) + 1 / fmax(num_after, 1)));
}

uint64_t weir__live_resident_bytes(void)
{
    int64_t bytes = weir__resident_bytes_read("/proc/self");
    return bytes < 0 ? 0 : (uint64_t)bytes;
}

/* A quarter of what programs can still get. */
static uint64_t memory_limit(const weir_live_options *options)
{
    int64_t bytes = options->memory_bytes ? 0 : weir__available_bytes_read();
    return options->memory_bytes ? options->memory_bytes : bytes > 0 ? (uint64_t)bytes / 4 : UINT64_MAX;
}

/* What a queue had in store does not count as flow: a change that empties it faster does not last. */
typedef struct queue_flow {
    double taken, lost; /* items; lost: by which its level has fallen */
} queue_flow;

typedef struct alternation {
    weir_pipeline *pipeline;
    const live_setting *settings[2]; /* now, other */
    uint32_t num_settings;           /* of each */
    int present;                     /* which of them is set */
    int64_t settle_ns, slice_ns;
    /* Only the stage whose work is counted is changed. A setting holds as soon as the stage has as many slots, since
       what is queued elsewhere does not matter for it. settle_ns is then the longest time */
    bool settles_at_once;
    live_unit unit;
    const atomic_bool *stops;
    double rates[2];             /* items per second, of the last pair */
    double cpu_s, cpu_elapsed_s; /* of this process, in the slices with the present settings */
    uint64_t num[2];             /* units that were done in all slices */
    queue_flow *flows[2];        /* of each queue, in the slices of all pairs */
    queue_flow *pair[2];         /* in the present pair, which counts when it is complete */
    size_t num_queues;
} alternation;

/* What is done: items that the consumer has taken, or work in the unit of a stage, and at which time; without the time by which a
   virtual speedup held back. */
typedef struct progress {
    uint64_t num;
    int64_t at_ns;
} progress;

/* Adds what a snapshot shows of the queues to the flows, or takes it away from them (sign -1). */
static void add_flows(queue_flow *flows, const weir_snapshot *s, double sign)
{
    for (size_t i = 0; i < s->num_queues; i++) {
        flows[i].taken += sign * (double)s->queues[i].num_items;
        flows[i].lost -= sign * (double)s->queues[i].depth;
    }
}

/* The share of what was taken with a setting that was no flow, of the queue that lost most of it. Of few items, what
   a queue lost is due to the moments at which the slices began and ended. Then *has_few is set, and it says
   nothing. */
static double lost_share(const alternation *a, int setting, uint32_t num_slices, bool *has_few)
{
    double most = 0;
    for (size_t i = 0; i < a->num_queues; i++) {
        const queue_flow *flow = &a->flows[setting][i];
        bool are_few = flow->taken < FEW_ITEMS * num_slices;
        *has_few |= are_few;
        if (!are_few)
            most = fmax(most, flow->lost / flow->taken);
    }
    return fmin(most, 0.99);
}

/* How much busier a node is with the other settings, at the same rate. */
static double load_of(const alternation *a, const char *node)
{
    for (uint32_t i = 0; i < a->num_settings; i++) {
        const live_setting *now = &a->settings[0][i], *other = &a->settings[1][i];
        if (now->stage && strcmp(now->stage, node) == 0 && other->is_speedup)
            return 1 - other->speedup;
        if (now->stage && strcmp(now->stage, node) == 0 && other->slots)
            return (double)now->slots / other->slots;
    }
    return 1;
}

/*
 * The largest gain that can last, whatever is in the queues. By the utilisation law, a node is busy for gain × its
 * load × its share of the time now. It cannot be busy for more than all of it. Where work is counted, nodes from its
 * stage on have no part in it.
 */
static double lasting_gain(const alternation *a)
{
    const verdict_view *view = a->unit.view;
    size_t end = a->unit.node >= 0 ? (size_t)a->unit.node : view->num_nodes; /* in the order of the pipeline */
    double busiest = 0;
    for (size_t i = 0; i < end; i++)
        busiest = fmax(busiest, view->nodes[i].busy * load_of(a, view->nodes[i].name));
    return busiest > 0 ? 1 / busiest : INFINITY;
}

/* False = the run is at its end. flow_sign: 1 at the end of a slice, -1 at its beginning, 0 between. */
static bool count_progress(const alternation *a, double flow_sign, progress *count)
{
    weir_snapshot *s;
    if (weir_pipeline_snapshot(a->pipeline, &s) != WEIR_OK)
        return false;
    uint64_t num = a->unit.node >= 0 ? s->stages[a->unit.node].num_work : s->queues[s->num_queues - 1].num_items;
    *count = (progress){ num, weir_clock_ns() - s->delayed_ns };
    if (flow_sign != 0)
        add_flows(a->pair[a->present], s, flow_sign);
    bool goes_on = is_running(s);
    weir_snapshot_free(s);
    return goes_on;
}

static bool has_slots(const weir_snapshot *s, const live_setting *setting)
{
    for (size_t i = 0; i < s->num_stages; i++)
        if (setting->stage && strcmp(s->stages[i].name, setting->stage) == 0)
            return setting->slots == 0 || s->stages[i].slots == setting->slots;
    return true;
}

/* Until surplus slots have ended their tasks. False = the run is at its end, or the trial is to stop. */
static bool wait_for_slots(const alternation *a)
{
    const int64_t step_ns = 10 * WEIR_MILLISECOND;
    for (int64_t waited_ns = 0; waited_ns < a->settle_ns; waited_ns += step_ns) {
        weir_snapshot *s;
        if (must_stop(a->stops) || weir_pipeline_snapshot(a->pipeline, &s) != WEIR_OK)
            return false;
        bool goes_on = is_running(s), holds = true;
        for (uint32_t i = 0; i < a->num_settings; i++)
            holds &= has_slots(s, &a->settings[a->present][i]);
        weir_snapshot_free(s);
        if (holds || !goes_on)
            return goes_on;
        weir__readings_get()->sleep(step_ns);
    }
    return true;
}

/* Sleeps, but not much beyond the end of the run; then counts. False = the run is at its end. */
static bool count_after(const alternation *a, int64_t ns, double flow_sign, progress *count)
{
    const int64_t step_ns = 100 * WEIR_MILLISECOND;
    for (; ns > step_ns; ns -= step_ns) {
        weir__readings_get()->sleep(step_ns);
        if (!count_progress(a, 0, count) || must_stop(a->stops))
            return false;
    }
    weir__readings_get()->sleep(ns);
    return count_progress(a, flow_sign, count);
}

/* CPU time of the process in seconds; 0 = not known. */
static double read_process_cpu(void)
{
    weir__process_usage used;
    return weir__readings_get()->usage(&used) ? 1e-9 * (double)used.cpu_ns : 0;
}

/* Items per second in one slice, after the change (if there was one) has settled; adds what was done to *num. NAN = the run is at
   its end. */
static double run_slice(alternation *a, bool has_changed, uint64_t *num)
{
    progress before, after;
    double cpu_s;
    if (has_changed && a->settles_at_once && !wait_for_slots(a))
        return NAN;
    if (!count_after(a, has_changed && !a->settles_at_once ? a->settle_ns : 0, -1, &before))
        return NAN;
    cpu_s = read_process_cpu();
    if (!count_after(a, a->slice_ns, 1, &after))
        return NAN;
    double elapsed_s = 1e-9 * (double)(after.at_ns - before.at_ns);
    if (a->present == 0) {
        a->cpu_s += read_process_cpu() - cpu_s;
        a->cpu_elapsed_s += elapsed_s;
    }
    *num += after.num - before.num;
    return ((double)(after.num - before.num) + 0.5) / a->unit.per_item / fmax(elapsed_s, 1e-6); /* never 0 */
}

/* `first` and then the other one. WEIR_OK; WEIR_EOF at the end of the run; or why the engine refused. */
static int run_pair(alternation *a, int first)
{
    for (int i = 0; i < 2; i++) {
        int which = i ? !first : first;
        bool changes = which != a->present;
        int status = changes ? weir__live_apply_all(a->pipeline, a->settings[which], a->num_settings) : WEIR_OK;
        if (status != WEIR_OK)
            return status;
        a->present = which;
        a->rates[which] = run_slice(a, changes, &a->num[which]);
        if (isnan(a->rates[which]))
            return WEIR_EOF;
    }
    for (size_t i = 0; i < 2 * a->num_queues; i++) { /* of both settings */
        a->flows[0][i].taken += a->pair[0][i].taken;
        a->flows[0][i].lost += a->pair[0][i].lost;
        a->pair[0][i] = (queue_flow){ 0, 0 };
    }
    return WEIR_OK;
}

#define TRIAL_TEXT "slots %u -> %u, threads %u -> %u: %ld per mille (%ld to %ld) of %ld items in 1000 s"

#define PART_TEXT "part %u of %u, "

/* Later explanations of the recording read it, an event for each part. Whole numbers: the program's locale may have a decimal
   comma. */
static void note_trial(weir_pipeline *pipeline, const live_set *set, const live_trial *t)
{
    for (uint32_t i = 0; i < set->num && !isnan(t->gain); i++) {
        const live_setting *now = &set->now[i], *other = &set->other[i];
        char text[200] = "";
        if (other->is_speedup)
            return;
        if (set->num > 1)
            snprintf(text, sizeof text, PART_TEXT, i + 1, set->num);
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, TRIAL_TEXT, now->slots, other->slots, now->threads, other->threads,
                 lround(1000 * t->gain), lround(1000 * t->low), lround(1000 * t->high), lround(1000 * t->rate));
        weir_pipeline_event(pipeline, "trial", other->stage ? other->stage : "pipeline", text);
    }
}

bool weir__live_parse_trial(const char *text, uint32_t *at, uint32_t *num, live_setting *now, live_setting *other,
                            live_trial *t)
{
    long gain, low, high, rate;
    *now = *other = (live_setting){ .stage = NULL };
    if (sscanf(text, PART_TEXT, at, num) != 2)
        *at = *num = 1;
    else
        text = strchr(text, ',') + 2;
    *at -= 1;
    if (sscanf(text, TRIAL_TEXT, &now->slots, &other->slots, &now->threads, &other->threads, &gain, &low, &high,
               &rate) != 8)
        return false;
    *t = (live_trial){ .gain = 1e-3 * (double)gain,
                       .low = 1e-3 * (double)low,
                       .high = 1e-3 * (double)high,
                       .rate = 1e-3 * (double)rate,
                       .other_rate = 1e-6 * (double)rate * (double)gain };
    return low > 0 && *at < *num && *num <= LIVE_MOST_PARTS;
}

/* run_slice() adds half a unit to each slice: with less than one in a slice that would be most of the rate. */
static bool has_enough(const alternation *a, uint32_t num_pairs)
{
    return a->num[0] >= num_pairs && a->num[1] >= num_pairs;
}

/* The pairs that an interval needs. In A B B A … one of two slices follows a change. */
static int64_t shortest_trial_ns(int64_t settle_ns, int64_t slice_ns)
{
    return LIVE_LEAST_PAIRS * 2 * (slice_ns + settle_ns / 2);
}

/* As long as the options allow; but slow items get the pairs that an interval needs, and as many again. */
static int64_t longest_trial_ns(int64_t settle_ns, live_unit unit, const weir_live_options *options)
{
    int64_t least_ns = shortest_trial_ns(settle_ns, options->slice_ns), most_ns = 2 * options->setting_ns;
    return unit.node >= 0 && 2 * least_ns > most_ns ? 2 * least_ns : most_ns;
}

void weir__live_forecast(char *text, size_t size, int64_t settle_ns, live_unit unit, const weir_live_options *options)
{
    double least_s = 1e-9 * (double)shortest_trial_ns(settle_ns, options->slice_ns),
           most_s = 1e-9 * (double)longest_trial_ns(settle_ns, unit, options);
    snprintf(text, size, "takes %.0f to %.0f s", fmin(least_s, most_s), most_s);
}

/* An item needs as much CPU time with other settings: the bottleneck bound of docs/verdict.md. A gain above it is chance. */
static double most_gain(const alternation *a)
{
    double cpus = a->cpu_elapsed_s > 0 ? a->cpu_s / a->cpu_elapsed_s : 0;
    return cpus > 0 && !a->settings[1]->is_speedup ? fmax(1, weir_cpu_budget() / cpus) : INFINITY;
}

/* Few slices may agree although tasks differ: as many items may differ by more than that. */
static bool may_be_chance(const alternation *a, double precision)
{
    return weir__renewal_interval(a->unit.unevenness, (double)a->num[0], (double)a->num[1]) > precision;
}

/* The means of all pairs, without what the queues lost. What nodes can keep up is known from one look: the interval
   reaches from there to what was measured. */
static void conclude_trial(const alternation *a, const live_pairs *pairs, double half, live_trial *t)
{
    bool has_few = false;
    double flow[2], sum = 0;
    for (int i = 0; i < 2; i++)
        flow[i] = 1 - lost_share(a, i, pairs->num, &has_few);
    for (uint32_t i = 0; i < pairs->num; i++)
        sum += pairs->rates[0][i];
    double most = most_gain(a), lasting = has_few ? fmin(most, lasting_gain(a)) : most;
    t->gain = fmin(lasting, exp(pairs->mean) * flow[1] / flow[0]);
    t->low = fmin(lasting, exp(pairs->mean - half) * flow[1] / flow[0]);
    t->high = fmin(most, exp(pairs->mean + half) * flow[1] / flow[0]);
    t->rate = sum / pairs->num * flow[0];
    t->other_rate = t->rate * t->gain;
}

/* False = out of memory, or the run is at its end. */
static bool look_at_pipeline(alternation *a)
{
    weir_snapshot *s;
    if (weir_pipeline_snapshot(a->pipeline, &s) != WEIR_OK)
        return false;
    a->num_queues = s->num_queues;
    a->settles_at_once = a->unit.node >= 0;
    for (uint32_t i = 0; i < a->num_settings && a->settles_at_once; i++) {
        const live_setting *other = &a->settings[1][i]; /* tasks that began before a speedup are not held back */
        a->settles_at_once =
            !other->is_speedup && other->stage && strcmp(other->stage, s->stages[a->unit.node].name) == 0;
    }
    weir_snapshot_free(s);
    a->flows[0] = calloc(4 * a->num_queues, sizeof *a->flows[0]);
    a->flows[1] = a->flows[0] + a->num_queues;
    a->pair[0] = a->flows[1] + a->num_queues;
    a->pair[1] = a->pair[0] + a->num_queues;
    return a->flows[0] != NULL;
}

int weir__live_try(weir_pipeline *pipeline, const live_set *set, int64_t settle_ns, live_unit unit,
                   const weir_live_options *options, const atomic_bool *stops, live_trial *trial)
{
    live_pairs pairs = { .num = 0 };
    int64_t start_ns = weir_clock_ns();
    uint64_t memory = weir__live_resident_bytes(), limit = memory_limit(options);
    alternation a = { .pipeline = pipeline,
                      .settings = { set->now, set->other },
                      .num_settings = set->num,
                      .settle_ns = settle_ns,
                      .slice_ns = options->slice_ns,
                      .unit = unit,
                      .stops = stops };
    int64_t most_ns = longest_trial_ns(settle_ns, unit, options);
    int status = WEIR_OK;
    bool is_narrow = false;
    *trial = (live_trial){ .gain = NAN, .low = NAN, .high = NAN, .rate = NAN, .other_rate = NAN };
    if (!look_at_pipeline(&a))
        return WEIR_OK;
    double half = INFINITY;
    while (status == WEIR_OK && !is_narrow && pairs.num < LIVE_MOST_PAIRS && weir_clock_ns() - start_ns < most_ns) {
        status = run_pair(&a, pairs.num % 2);
        trial->needs_memory = weir__live_resident_bytes() > memory + limit;
        if (status != WEIR_OK || trial->needs_memory)
            break;
        double narrow = weir__live_pairs_add(&pairs, a.rates[0], a.rates[1]);
        is_narrow =
            pairs.num >= LIVE_LEAST_PAIRS && narrow <= options->precision && !may_be_chance(&a, options->precision);
        half = is_narrow ? narrow : pairs.half;
    }
    trial->num_pairs = pairs.num;
    int restored = a.present ? weir__live_apply_all(pipeline, set->now, set->num) : WEIR_OK;
    trial->elapsed_s = 1e-9 * (double)(weir_clock_ns() - start_ns);
    if (pairs.num >= LIVE_LEAST_PAIRS && half < WIDEST && has_enough(&a, pairs.num))
        conclude_trial(&a, &pairs, half, trial);
    free(a.flows[0]);
    note_trial(pipeline, set, trial);
    return status == WEIR_EOF ? WEIR_OK : status != WEIR_OK ? status : restored == WEIR_ESTOPPED ? WEIR_OK : restored;
}
