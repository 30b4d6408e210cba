/* The console observer: writes each lap to the log, one line for each stage and queue. */
#include <string.h>

#include <weir/clock.h>
#include <weir/log.h>
#include <weir/observer.h>

static double percent(int64_t part_ns, int64_t whole_ns)
{
    return whole_ns > 0 ? 100.0 * (double)part_ns / (double)whole_ns : 0.0;
}

static double mean_s(int64_t sum_ns, uint64_t count)
{
    return count ? (double)sum_ns / (double)count / (double)WEIR_SECOND : 0.0;
}

static double quantile_s(const weir_histogram *histogram, double quantile)
{
    return (double)weir_histogram_quantile_ns(histogram, quantile) / (double)WEIR_SECOND;
}

static void log_stage(const weir_subject_lap *lap)
{
    const weir_task_metrics *task = &lap->metrics.task;
    if (task->num_tasks == 0 && strcmp(lap->kind, "stage") != 0)
        return; /* merges and the sink have no tasks */
    int64_t slots_ns =
        task->busy_ns + task->wait_in_ns + task->wait_thread_ns + task->wait_turn_ns + task->wait_out_ns;
    weir_log(WEIR_LOG_INFO,
             "%s: %llu tasks (%llu failed) in %.1f s, %.4f s each (p50 %.4f, p99 %.4f); slots busy %.0f %%, "
             "waiting for input %.0f %%, thread %.0f %%, room %.0f %%",
             lap->name, (unsigned long long)task->num_tasks, (unsigned long long)task->num_failures,
             (double)lap->lap->elapsed_ns / (double)WEIR_SECOND,
             mean_s(task->success_ns, task->num_tasks - task->num_failures), quantile_s(task->run_times, 0.5),
             quantile_s(task->run_times, 0.99), percent(task->busy_ns, slots_ns), percent(task->wait_in_ns, slots_ns),
             percent(task->wait_thread_ns, slots_ns), percent(task->wait_out_ns, slots_ns));
}

static void log_queue(const weir_subject_lap *lap)
{
    const weir_queue_metrics *queue = &lap->metrics.queue;
    double elapsed_s = (double)lap->lap->elapsed_ns / (double)WEIR_SECOND;
    weir_log(WEIR_LOG_INFO, "%s: %llu items, %.2f/s; waited %.4f s for room, %.4f s for items; occupied %.0f %%",
             lap->name, (unsigned long long)queue->num_items,
             elapsed_s > 0 ? (double)queue->num_items / elapsed_s : 0.0, mean_s(queue->put_ns, queue->num_put),
             mean_s(queue->get_ns, queue->num_items), percent(queue->occupied_ns, lap->lap->elapsed_ns));
}

static void log_lap(void *self, const weir_subject_lap *lap)
{
    (void)self;
    if (lap->subject == WEIR_SUBJECT_STAGE || lap->subject == WEIR_SUBJECT_FLOW)
        log_stage(lap);
    else if (lap->subject == WEIR_SUBJECT_QUEUE)
        log_queue(lap);
}

weir_observer weir_console_observer(void)
{
    return (weir_observer){ .lap = log_lap };
}
