/* The view of recorded totals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/format.h"
#include "stats/advice/model/model.h"
#include "stats/advice/verdict/verdict_view.h"

static double value_of(const weir_total *total, const char *measure)
{
    return total ? weir_measure_of(total->subject, measure, &total->metrics, total->elapsed_ns) : NAN;
}

/* At most 1; NAN stays NAN. */
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

/* The private pool of a node, or the pipeline's: the one whose name has a single number. */
static const weir_total *pool_named(const weir_totals *totals, const char *name)
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
    long a = position_of(((const node_view *)left)->name), b = position_of(((const node_view *)right)->name);
    return (a > b) - (a < b);
}

/*
 * The use of a pool's threads, their delay as a share of that, and a task's delay. A thread that has work and waits
 * for a CPU between two tasks is in use as well. Its record is idle until it gets a CPU.
 */
static void view_pool(node_view *n, const weir_totals *totals, const weir_total *pool)
{
    double cpu_s = 0, busy_s = weir__seconds(pool->metrics.pool.busy_ns);
    for (int subject = WEIR_SUBJECT_STAGE; subject <= WEIR_SUBJECT_FLOW; subject++)
        for (size_t i = 0; i < totals->of[subject].count; i++) {
            const weir_total *other = &totals->of[subject].all[i];
            if (pool_named(totals, other->key.name) == pool && weir__or_zero((double)other->metrics.task.cpu_ns) > 0)
                cpu_s += weir__seconds(other->metrics.task.cpu_ns);
        }
    double delay_s = weir__model_delay(busy_s, cpu_s, pool->metrics.pool.run_delay_ns);
    n->pool = pool->key.name;
    n->threads = (double)pool->capacity;
    double idle_s = weir__seconds(pool->metrics.pool.idle_ns), pool_cpu_s = weir__seconds(pool->metrics.pool.cpu_ns),
           runnable_s = pool_cpu_s + weir__seconds(pool->metrics.pool.run_delay_ns),
           between_s = fmin(fmax(runnable_s - busy_s, 0), idle_s), used_s = busy_s + between_s;
    n->pool_busy = used_s / (busy_s + idle_s);
    n->pool_cpu = used_s > 0 ? weir__or_zero(pool_cpu_s) / used_s : 0;
    n->pool_delay = used_s > 0 ? (delay_s + between_s) / used_s : 0;
    n->delay = cpu_s > 0 ? fmin(weir__or_zero(n->cpu) * delay_s / cpu_s, 1 - weir__or_zero(n->cpu)) : 0;
}

/* Recordings of other programs do not have it. */
static double failed_share(const weir_task_metrics *m)
{
    return m->busy_ns > 0 && m->failed_ns > 0 ? fmin(1, (double)m->failed_ns / (double)m->busy_ns) : 0;
}

void weir__verdict_view_waits(node_view *n, const uint64_t num_waits[WEIR_NUM_WAITS])
{
    n->num_asleep = 0;
    for (int i = 0; i < WEIR_NUM_WAITS; i++)
        n->num_asleep += (double)num_waits[i];
    for (int i = 0; i < WEIR_NUM_WAITS; i++)
        n->waits[i] = n->num_asleep > 0 ? (double)num_waits[i] / n->num_asleep : 0;
}

static void view_waits(node_view *n, const weir_task_metrics *m)
{
    const uint64_t num_waits[WEIR_NUM_WAITS] = {
        [WEIR_WAIT_FILE] = m->num_file_waits,       [WEIR_WAIT_NETWORK] = m->num_network_waits,
        [WEIR_WAIT_PROCESS] = m->num_process_waits, [WEIR_WAIT_LOCK] = m->num_lock_waits,
        [WEIR_WAIT_SLEEP] = m->num_sleep_waits,     [WEIR_WAIT_OTHER] = m->num_other_waits,
    };
    weir__verdict_view_waits(n, num_waits);
}

/* Older recordings do not have it. */
static double part_of_wait(const node_view *n, const weir_task_metrics *m, int64_t part_ns)
{
    return m->wait_in_ns > 0 && part_ns > 0 ? weir__or_zero(n->in) * fmin(1, (double)part_ns / (double)m->wait_in_ns)
                                            : 0;
}

static void view_node(verdict_view *view, const weir_total *total, const weir_totals *steady,
                      const weir_totals *whole)
{
    node_view *n = &view->nodes[view->num_nodes++];
    const weir_total *of_all = find_total(&whole->of[total->subject], total->key.name, "");
    *n = (node_view){
        .name = total->key.name,
        .inputs = "",
        .is_source = strcmp(total->kind, "source") == 0,
        .is_merge = strcmp(total->kind, "merge") == 0,
        .is_sink = strcmp(total->kind, "sink") == 0,
        .slots = total->elapsed_ns > 0 ? weir_num_slots(&total->metrics.task, total->elapsed_ns) : NAN,
        .busy = value_of(total, "busy_share"),
        .pending = total->metrics.task.busy_ns > 0
                       ? fmax((double)total->metrics.task.pending_ns, 0) / (double)total->metrics.task.busy_ns
                       : 0,
        .in = value_of(total, "wait_in_share"),
        .thread = value_of(total, "wait_thread_share"),
        .turn = value_of(total, "wait_turn_share"),
        .out = value_of(total, "wait_out_share"),
        .cpu = share_of(total, "cpu_share"),
        .failed = failed_share(&total->metrics.task),
        .num_failures = (double)total->metrics.task.num_failures,
        .tasks_per_s = value_of(total, "tasks_per_s"),
        .time_s = value_of(total, "ave_time"),
        .shortest_s = value_of(of_all ? of_all : total, "min_time"),
        .times = total->metrics.task.run_times,
    };
    n->held = n->busy + n->thread;
    n->epoch_tail = part_of_wait(n, &total->metrics.task, total->metrics.task.epoch_tail_ns);
    n->epoch_gap = part_of_wait(n, &total->metrics.task, total->metrics.task.epoch_gap_ns);
    view_waits(n, &total->metrics.task);
    const weir_total *pool = n->is_merge || n->is_sink ? NULL : pool_named(steady, total->key.name);
    if (pool)
        view_pool(n, steady, pool);
}

static void view_system(system_view *s, const weir_totals *steady)
{
    const weir_total_list *processes = &steady->of[WEIR_SUBJECT_PROCESS],
                          *machines = &steady->of[WEIR_SUBJECT_MACHINE];
    const weir_total *process = processes->count ? &processes->all[0] : NULL;
    const weir_total *machine = machines->count ? &machines->all[0] : NULL;
    *s = (system_view){
        .process = value_of(process, "cpus"), /* of runs at the same time: of one of them, on the average */
        .outside = value_of(process, "cpus") - value_of(process, "pool_cpus"),
        .ranks = NAN,
        .other = value_of(machine, "other_cpus"),
        .idle = value_of(machine, "idle_cpus"),
        .stolen = value_of(machine, "stolen_cpus"),
        .throttled = share_of(machine, "throttled_share"), /* some kernels add up all CPUs */
        .io_pressure = value_of(machine, "io_pressure"),
        .memory_pressure = value_of(machine, "memory_pressure"),
        .stored = value_of(process, "read_rate") + weir__or_zero(value_of(process, "write_rate")),
        .disk_idle = machine ? value_of(machine, "disk_idle_time") / weir__seconds(machine->elapsed_ns) : NAN,
    };
    s->budget = s->process / value_of(process, "cpu_share");
    s->all = s->process + s->other + s->idle + weir__or_zero(s->disk_idle) + weir__or_zero(s->stolen);
}

/* The one with the longest name that the queue's begins with. */
int weir__verdict_find_putter(const verdict_view *view, const char *queue)
{
    int found = -1;
    size_t longest = 0;
    for (size_t i = 0; i < view->num_nodes; i++) {
        size_t length = strlen(view->nodes[i].name);
        bool is_its =
            strncmp(queue, view->nodes[i].name, length) == 0 && (queue[length] == '_' || queue[length] == '.');
        if (is_its && length > longest) {
            found = (int)i;
            longest = length;
        }
    }
    return found;
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

/* Without wiring a node takes from the node before it. */
static bool takes_from(const verdict_view *view, size_t node, const queue_view *queue)
{
    const node_view *n = &view->nodes[node];
    return *n->inputs ? has_word(n->inputs, queue->name) : queue->putter + 1 == (int)node && !n->is_source;
}

void weir__verdict_view_takers(const verdict_view *view, queue_view *queue)
{
    for (size_t i = 0; i < view->num_nodes; i++)
        if (!view->nodes[i].is_merge && !view->nodes[i].is_sink && takes_from(view, i, queue))
            queue->empty = fmax(queue->empty, weir__or_zero(view->nodes[i].in));
}

static void view_queue(verdict_view *view, const weir_total *total, const weir_total *sink, int64_t bound_bytes)
{
    queue_view *q = &view->queues[view->num_queues++];
    *q = (queue_view){
        .name = total->key.name,
        .putter = weir__verdict_find_putter(view, total->key.name),
        .occupied = weir__or_zero(value_of(total, "occupancy_rate")),
        .ave_depth = weir__or_zero(value_of(total, "ave_depth")),
        .max_depth = weir__or_zero(value_of(total, "max_depth")),
        .capacity = (double)total->capacity,
        .max_bytes = weir__or_zero(value_of(total, "max_bytes")),
        .bound_bytes = (double)bound_bytes,
    };
    weir__verdict_view_takers(view, q);
    if (total != sink)
        return;
    const weir_queue_metrics *m = &total->metrics.queue;
    q->empty = total->elapsed_ns > 0 ? fmin(1, (double)m->get_ns / (double)total->elapsed_ns) : 0;
    view->sink = q;
    view->sink_waits = q->empty;
    view->num_items = (double)m->num_items;
    view->items_per_s = value_of(total, "items_per_s");
    view->polls = weir__model_polls(total->elapsed_ns, m);
}

/* Of the first run that has it; NULL = not known. */
static const weir_stage_record *find_stage(const weir_records *stages, const char *name)
{
    for (size_t i = 0; i < stages->count; i++)
        if (strcmp(stages->all[i]->stage.name, name) == 0)
            return &stages->all[i]->stage;
    return NULL;
}

static void view_queues(verdict_view *view, const weir_totals *steady, const weir_records *stages)
{
    const weir_total *sink = weir_totals_sink_queue(steady);
    const weir_total_list *queues = &steady->of[WEIR_SUBJECT_QUEUE];
    for (size_t i = 0; i < queues->count; i++) {
        int putter = weir__verdict_find_putter(view, queues->all[i].key.name);
        const weir_stage_record *stage = putter >= 0 ? find_stage(stages, view->nodes[putter].name) : NULL;
        view_queue(view, &queues->all[i], sink, stage ? stage->queue_bytes : 0);
    }
}

bool weir__verdict_view_totals(verdict_view *view, const weir_totals *steady, const weir_totals *whole,
                               const weir_records *stages)
{
    const weir_total_list *workers = &steady->of[WEIR_SUBJECT_STAGE], *flow = &steady->of[WEIR_SUBJECT_FLOW];
    *view = (verdict_view){
        .nodes = calloc(workers->count + flow->count + 1, sizeof *view->nodes),
        .queues = calloc(steady->of[WEIR_SUBJECT_QUEUE].count + 1, sizeof *view->queues),
        .items_per_s = NAN,
    };
    if (!view->nodes || !view->queues) {
        weir__verdict_view_free(view);
        return false;
    }
    for (size_t i = 0; i < flow->count; i++)
        view_node(view, &flow->all[i], steady, whole);
    for (size_t i = 0; i < workers->count; i++)
        view_node(view, &workers->all[i], steady, whole);
    qsort(view->nodes, view->num_nodes, sizeof *view->nodes, by_position);
    for (size_t i = 0; i < view->num_nodes; i++) {
        const weir_stage_record *stage = find_stage(stages, view->nodes[i].name);
        view->nodes[i].inputs = stage ? stage->inputs : "";
    }
    view_queues(view, steady, stages);
    view_system(&view->system, steady);
    return true;
}

void weir__verdict_view_free(verdict_view *view)
{
    free(view->nodes);
    free(view->queues);
    view->nodes = NULL;
    view->queues = NULL;
}
