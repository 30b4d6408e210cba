/*
 * Computes figures from laps. docs/whatif.md has the formulas:
 *
 *     time of a task     = (busy time - its part of the run-queue delay + hand-off) / tasks
 *     CPU time           = CPU time of the tasks / tasks
 *     pending            = busy time of slots - busy time of threads. It is divided in proportion to time off the CPU,
 *                          among the nodes that keep more slots busy than there are busy threads, if there are any
 *     hand-off           = wait for a thread x share of the CPUs that nobody wanted, if the pool has a thread for each slot
 *     consumer           = (elapsed - time it waited for items) / items
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/advice/model/model.h"

/* ---- laps --------------------------------------------------------------------------------------------------- */

model_lap *weir__model_lap_new(const weir_model *model)
{
    size_t tasks = model->num_nodes * sizeof(weir_task_metrics), times = model->num_nodes * sizeof(weir_histogram);
    size_t queues = model->num_queues * sizeof(weir_queue_metrics);
    size_t pools = model->num_pools * sizeof(weir_pool_metrics);
    char *room = calloc(1, sizeof(model_lap) + tasks + times + queues + pools);
    if (!room)
        return NULL;
    model_lap *lap = (model_lap *)(void *)room;
    room += sizeof *lap;
    lap->tasks = (weir_task_metrics *)(void *)room;
    lap->times = (weir_histogram *)(void *)(room += tasks);
    lap->queues = (weir_queue_metrics *)(void *)(room += times);
    lap->pools = (weir_pool_metrics *)(void *)(room + queues);
    weir__model_lap_clear(model, lap);
    return lap;
}

void weir__model_lap_clear(const weir_model *model, model_lap *lap)
{
    lap->elapsed_ns = 0;
    lap->num_laps = 0;
    for (size_t i = 0; i < model->num_nodes; i++) {
        weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_STAGE), &lap->tasks[i]);
        weir_histogram_clear(&lap->times[i]);
    }
    for (size_t i = 0; i < model->num_queues; i++)
        weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_QUEUE), &lap->queues[i]);
    for (size_t i = 0; i < model->num_pools; i++)
        weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_POOL), &lap->pools[i]);
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_PROCESS), &lap->process);
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_MACHINE), &lap->machine);
}

void weir__model_lap_add(const weir_model *model, model_lap *to, const model_lap *from)
{
    if (!from)
        return;
    to->elapsed_ns += from->elapsed_ns;
    to->num_laps += from->num_laps;
    for (size_t i = 0; i < model->num_nodes; i++) {
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_STAGE), &to->tasks[i], &from->tasks[i]);
        weir_histogram_add(&to->times[i], &from->times[i]);
    }
    for (size_t i = 0; i < model->num_queues; i++)
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_QUEUE), &to->queues[i], &from->queues[i]);
    for (size_t i = 0; i < model->num_pools; i++)
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_POOL), &to->pools[i], &from->pools[i]);
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_PROCESS), &to->process, &from->process);
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_MACHINE), &to->machine, &from->machine);
}

model_lap *weir__model_sum(const weir_model *model, bool with_others)
{
    model_lap *sum = weir__model_lap_new(model);
    for (size_t i = 0; sum && i < model->num_laps; i++)
        weir__model_lap_add(model, sum, model->laps[i]);
    if (sum && (with_others || model->num_laps == 0))
        weir__model_lap_add(model, sum, model->others);
    return sum;
}

/* ---- figures ------------------------------------------------------------------------------------------------ */

static double positive_seconds(int64_t ns)
{
    return ns > 0 ? (double)ns / 1e9 : 0;
}

static bool has_tasks(const weir_model_node *node)
{
    return strcmp(node->kind, "merge") != 0 && strcmp(node->kind, "sink") != 0;
}

/* The sums of the nodes that share a pool. */
typedef struct pool_work {
    double busy_s, cpu_s;
    double delay_s;   /* of the pool's threads: ready to run, but without a CPU, in the CPU parts of tasks */
    double pending_s; /* of the slots, without a thread */
    double num_slots;
} pool_work;

static size_t pool_of_node(const weir_model *model, size_t node)
{
    for (size_t i = 0; i < model->num_pools; i++)
        if (model->pools[i].node == node)
            return i;
    return 0;
}

double weir__model_delay(double busy_s, double cpu_s, int64_t run_delay_ns)
{
    double delay_s = fmin(positive_seconds(run_delay_ns), fmax(busy_s - cpu_s, 0));
    double computing = cpu_s / (busy_s - delay_s + 1e-12);
    return cpu_s > 0 ? delay_s * fmin(computing / 0.95, 1) : 0;
}

static pool_work work_of(const weir_model *model, const model_lap *lap, size_t pool)
{
    pool_work work = { 0 };
    for (size_t i = 0; i < model->num_nodes; i++) {
        if (!has_tasks(&model->recorded.nodes[i]) || pool_of_node(model, i) != pool)
            continue;
        work.busy_s += positive_seconds(lap->tasks[i].busy_ns);
        work.cpu_s += positive_seconds(lap->tasks[i].cpu_ns);
        work.pending_s += positive_seconds(lap->tasks[i].pending_ns);
        work.num_slots += model->recorded.nodes[i].concurrency;
    }
    work.delay_s = weir__model_delay(work.busy_s - work.pending_s, work.cpu_s, lap->pools[pool].run_delay_ns);
    return work;
}

double weir__model_slowdown(const weir_model *model, const model_lap *lap)
{
    double cpu_s = 0, delay_s = 0;
    for (size_t i = 0; i < model->num_pools; i++) {
        pool_work work = work_of(model, lap, i);
        if (lap->pools[i].run_delay_ns < 0)
            return NAN;
        cpu_s += work.cpu_s;
        delay_s += work.delay_s;
    }
    return cpu_s > 0 ? 1 + delay_s / cpu_s : NAN;
}

double weir__model_used_cpus(const weir_model *model, const model_lap *lap)
{
    double cpu_s = 0;
    for (size_t i = 0; i < model->num_nodes; i++)
        cpu_s += positive_seconds(lap->tasks[i].cpu_ns);
    return lap->elapsed_ns > 0 ? cpu_s / positive_seconds(lap->elapsed_ns) : 0;
}

double weir__model_other_cpus(const weir_model *model, const model_lap *lap)
{
    double elapsed_s = positive_seconds(lap->elapsed_ns), stolen_s = positive_seconds(lap->machine.stolen_ns);
    if (elapsed_s <= 0 || lap->process.cpu_ns < 0 || lap->machine.other_cpu_ns < 0 || lap->machine.idle_ns < 0)
        return NAN;
    double others_s = positive_seconds(lap->machine.other_cpu_ns) + stolen_s,
           all_s = others_s + positive_seconds(lap->process.cpu_ns) + positive_seconds(lap->machine.idle_ns) +
                   positive_seconds(lap->machine.disk_idle_ns);
    return round(all_s / elapsed_s) == model->recorded.cpus ? others_s / elapsed_s : NAN;
}

/*
 * Where each slot has a thread, no slot waits for a thread that is at work. The wait is the time to pass on an item
 * and to wake the thread, and often the time until that thread runs. Where CPUs are short it is a wait for a CPU.
 */
static double hand_off_s(const weir_model *model, const model_lap *lap, size_t index, const pool_work *work)
{
    const weir_model_node *node = &model->recorded.nodes[index];
    double threads = node->threads ? node->threads : model->recorded.threads;
    double slowdown = weir__model_slowdown(model, lap);
    double wanted = weir__model_used_cpus(model, lap) * (isnan(slowdown) ? 1 : slowdown);
    bool waits_for_none = threads >= work->num_slots && work->pending_s <= 0;
    return waits_for_none
               ? positive_seconds(lap->tasks[index].wait_thread_ns) * fmax(0, 1 - wanted / model->recorded.cpus)
               : 0;
}

static void figure_times(const weir_model *model, const model_lap *lap, size_t index, weir_model_node *node)
{
    const weir_task_metrics *tasks = &lap->tasks[index];
    size_t pool = pool_of_node(model, index);
    pool_work work = work_of(model, lap, pool);
    double busy_s = positive_seconds(tasks->busy_ns), cpu_s = fmin(positive_seconds(tasks->cpu_ns), busy_s);
    double off_s = busy_s - cpu_s, pending_s = fmin(positive_seconds(tasks->pending_ns), off_s);
    double count = (double)tasks->num_tasks;
    if (count < 1)
        return; /* no task ended: keep the figures of other laps */
    double delay_s = work.cpu_s > 0 ? work.delay_s * cpu_s / work.cpu_s : 0;
    node->cpu_s = cpu_s / count;
    node->pending_s = pending_s / count;
    node->time_s = node->cpu_s + node->pending_s +
                   (fmax(off_s - pending_s - delay_s, 0) + hand_off_s(model, lap, index, &work)) / count;
}

double weir__model_bucket_s(uint32_t bucket)
{
    int64_t low_ns, high_ns;
    weir_histogram_bucket_range(bucket, &low_ns, &high_ns);
    return 0.5e-9 * ((double)low_ns + (double)high_ns);
}

/* Ratios of small numbers are rounded to whole ones: some items are still in slots when a lap ends. */
static double whole_ratio(double results, double inputs, double uncertain)
{
    double ratio = results / inputs, tolerance = uncertain / inputs;
    double number = ratio >= 1 ? round(ratio) : 1 / round(1 / ratio);
    return fabs(ratio - number) <= tolerance * fmax(ratio, 1) ? number : ratio;
}

static void figure_items(const weir_model *model, const model_lap *whole, size_t index, weir_model_node *node,
                         double *shares)
{
    const weir_task_metrics *tasks = &whole->tasks[index];
    double num_put = 0, bytes = 0, depth = 0, count = (double)tasks->num_tasks;
    for (size_t i = 0; i < model->num_queues; i++) {
        const weir_queue_metrics *queue = &whole->queues[i];
        if (model->queues[i].node != index)
            continue;
        num_put += (double)queue->num_put;
        bytes += queue->bytes_ns;
        depth += queue->depth_ns;
        if (shares && model->queues[i].branch < node->num_shares)
            shares[model->queues[i].branch] = (double)queue->num_put;
    }
    node->item_bytes = depth > 0 ? bytes / depth : 0;
    if (!has_tasks(node) || count < 1)
        return;
    double useful = count - (double)tasks->num_failures - (double)tasks->num_skipped;
    node->failure_share = (double)tasks->num_failures / count;
    node->skip_share = (double)tasks->num_skipped / count;
    if (useful > 0 && num_put > 0)
        node->results = whole_ratio(num_put, useful, 2.0 * node->concurrency + 2);
}

/* For how long the consumer was away, and had not found before that there is no item. */
static double work_seconds(int64_t elapsed_ns, const weir_queue_metrics *sink)
{
    return fmax(positive_seconds(elapsed_ns) - positive_seconds(sink->get_ns) - positive_seconds(sink->late_ns), 0);
}

bool weir__model_polls(int64_t elapsed_ns, const weir_queue_metrics *sink)
{
    return positive_seconds(sink->late_ns) > work_seconds(elapsed_ns, sink);
}

static void figure_consumer(const weir_model *model, const model_lap *lap, weir_model_node *sink)
{
    const weir_queue_metrics *queue = &lap->queues[model->num_queues - 1];
    sink->time_s = queue->num_items ? work_seconds(lap->elapsed_ns, queue) / (double)queue->num_items : 0;
    sink->cpu_s = sink->pending_s = 0;
}

void weir__model_figure(const weir_model *model, const model_lap *lap, const model_lap *whole, weir_model_node *nodes)
{
    for (size_t i = 0; i < model->num_nodes; i++) {
        weir_model_node *node = &nodes[i];
        figure_items(model, whole, i, node, (double *)(uintptr_t)node->shares);
        if (has_tasks(node))
            figure_times(model, lap, i, node);
        if (lap->times[i].count && node->times)
            *(weir_histogram *)(uintptr_t)node->times = lap->times[i];
    }
    if (model->num_queues && model->num_nodes)
        figure_consumer(model, lap, &nodes[model->num_nodes - 1]);
}

double weir__model_throughput(const weir_model *model, const model_lap *lap)
{
    if (!lap || lap->elapsed_ns <= 0 || model->num_queues == 0)
        return NAN;
    return (double)lap->queues[model->num_queues - 1].num_items / positive_seconds(lap->elapsed_ns);
}

double weir__model_measured(const weir_model *model)
{
    return model ? model->measured : NAN;
}
