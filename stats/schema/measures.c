/*
 * The derived metrics, one line each. X(subject, name, title, unit, better, value, help); `m` is the struct of
 * metrics, `ns` the time that it covers. Each rate and each share is over the life of its subject: without the time
 * after its end. A line without help gives the stored metric of that name this position.
 */
#include "stats/schema/measures.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <uv.h>

#define SECOND_NS 1e9
#define NUM(rows) (sizeof(rows) / sizeof(rows)[0])

#define TASK_MEASURES(X, s) \
    X(s, num_tasks, "tasks", NULL, 0, 0, NULL) \
    X(s, num_failures, "failed", NULL, 0, 0, NULL) \
    X(s, tasks_per_s, "per s", "1/s", 1, ratio((double)m->num_tasks, task_life(m, ns)), \
      "tasks that ended per second") \
    X(s, ave_time, "average", "s", -1, ratio(known_seconds(m->success_ns), num_successes(m)), \
      "mean run time of successful tasks: success_time / (num_tasks - num_failures)") \
    X(s, p50_time, "p50", "s", -1, limited_quantile(m->run_times, 0.50, m->min_ns, m->max_ns), \
      "median run time of successful tasks") \
    X(s, p90_time, "p90", "s", -1, limited_quantile(m->run_times, 0.90, m->min_ns, m->max_ns), \
      "90 % of successful tasks took no longer") \
    X(s, p99_time, "p99", "s", -1, limited_quantile(m->run_times, 0.99, m->min_ns, m->max_ns), \
      "99 % of successful tasks took no longer") \
    X(s, max_time, "max", NULL, -1, 0, NULL) \
    X(s, busy_share, "busy", "share", 0, slot_share(m, m->busy_ns), \
      "share of the slot time in tasks: busy_time / slot time") \
    X(s, wait_in_share, "input", "share", 0, slot_share(m, m->wait_in_ns), \
      "share of the slot time without an item: wait_in_time / slot time") \
    X(s, wait_thread_share, "thread", "share", 0, slot_share(m, m->wait_thread_ns), \
      "share of the slot time with an item, but no thread: wait_thread_time / slot time") \
    X(s, wait_turn_share, "turn", "share", 0, slot_share(m, m->wait_turn_ns), \
      "share of the slot time waiting for earlier results: wait_turn_time / slot time") \
    X(s, wait_out_share, "room", "share", 0, slot_share(m, m->wait_out_ns), \
      "share of the slot time waiting for room: wait_out_time / slot time") \
    X(s, cpu_share, "CPU", "share", 0, ratio(known_seconds(m->cpu_ns), known_seconds(m->busy_ns)), \
      "share of the busy time on a CPU: cpu_time / busy_time") \
    X(s, cpu_time_per_task, NULL, "s", -1, ratio(known_seconds(m->cpu_ns), (double)m->num_tasks), \
      "CPU time of a task: cpu_time / num_tasks") \
    X(s, failed_share, NULL, "share", -1, ratio((double)m->num_failures, (double)m->num_tasks), \
      "share of the tasks that failed: num_failures / num_tasks") \
    X(s, ave_failed_time, NULL, "s", -1, ratio(known_seconds(m->failed_ns), (double)m->num_failures), \
      "mean run time of failed tasks: failed_time / num_failures") \
    X(s, failed_time_share, NULL, "share", -1, slot_share(m, m->failed_ns), \
      "share of the slot time in tasks that failed: failed_time / slot time") \
    X(s, num_successes, NULL, "tasks", 0, num_successes(m), "num_tasks - num_failures") \
    X(s, successes_per_s, NULL, "1/s", 1, ratio(num_successes(m), task_life(m, ns)), \
      "tasks that succeeded per second") \
    X(s, failures_per_s, NULL, "1/s", -1, ratio((double)m->num_failures, task_life(m, ns)), \
      "tasks that failed per second") \
    X(s, cpu_slot_share, NULL, "share", 0, slot_share(m, m->cpu_ns), \
      "share of the slot time on a CPU: cpu_time / slot time") \
    X(s, cpus, NULL, "CPUs", 0, ratio(known_seconds(m->cpu_ns), task_life(m, ns)), \
      "CPUs in use by the tasks: cpu_time / life") \
    X(s, work_per_s, "work/s", "1/s", 1, m->num_work ? ratio((double)m->num_work, task_life(m, ns)) : NAN, \
      "frames, samples or what else the stage counts, per second, those of running tasks included: num_work / " \
      "life") \
    X(s, max_held_bytes, "held", NULL, -1, 0, NULL)

#define QUEUE_MEASURES(X, s) \
    X(s, num_items, "items", NULL, 0, 0, NULL) \
    X(s, num_put, NULL, NULL, 0, 0, NULL) \
    X(s, items_per_s, "per s", "1/s", 1, ratio((double)m->num_items, queue_life(m, ns)), \
      "items taken out per second") \
    X(s, ave_put_time, "put", "s", 0, ratio(known_seconds(m->put_ns), (double)m->num_put), \
      "mean wait of an item for room: put_time / num_put") \
    X(s, p50_put_time, NULL, "s", 0, limited_quantile(m->put_times, 0.50, m->min_put_ns, m->max_put_ns), \
      "median wait for room") \
    X(s, p90_put_time, "put p90", "s", 0, limited_quantile(m->put_times, 0.90, m->min_put_ns, m->max_put_ns), \
      "90 % waited no longer for room") \
    X(s, p99_put_time, "put p99", "s", 0, limited_quantile(m->put_times, 0.99, m->min_put_ns, m->max_put_ns), \
      "99 % waited no longer for room") \
    X(s, ave_get_time, "get", "s", 0, ratio(known_seconds(m->get_ns), (double)m->num_items), \
      "mean wait of the consumer for an item: get_time / num_items") \
    X(s, p50_get_time, NULL, "s", 0, limited_quantile(m->get_times, 0.50, m->min_get_ns, m->max_get_ns), \
      "median wait for an item") \
    X(s, p90_get_time, "get p90", "s", 0, limited_quantile(m->get_times, 0.90, m->min_get_ns, m->max_get_ns), \
      "90 % waited no longer for an item") \
    X(s, p99_get_time, "get p99", "s", 0, limited_quantile(m->get_times, 0.99, m->min_get_ns, m->max_get_ns), \
      "99 % waited no longer for an item") \
    X(s, ave_latency, "latency", "s", 0, ratio(known_seconds(m->latency_ns), (double)m->num_items), \
      "sink: mean latency of an item, latency_time / num_items") \
    X(s, p50_latency, NULL, "s", 0, limited_quantile(m->latencies, 0.50, m->min_latency_ns, m->max_latency_ns), \
      "sink: median latency of an item") \
    X(s, p90_latency, NULL, "s", 0, limited_quantile(m->latencies, 0.90, m->min_latency_ns, m->max_latency_ns), \
      "sink: latency of 90 % of the items, at most") \
    X(s, p99_latency, "latency p99", "s", 0, \
      limited_quantile(m->latencies, 0.99, m->min_latency_ns, m->max_latency_ns), \
      "sink: latency of 99 % of the items, at most") \
    X(s, occupancy_rate, "occupied", "share", 0, ratio(known_seconds(m->occupied_ns), queue_life(m, ns)), \
      "share of the time in which the queue was not empty: occupied_time / life") \
    X(s, ave_depth, "depth", "items", 0, mean_level(m->depth_ns, ns, m->ended_ns), \
      "mean number of items: depth_time / life") \
    X(s, max_depth, "max depth", NULL, 0, 0, NULL) \
    X(s, ave_bytes, "bytes", "bytes", 0, mean_level(m->bytes_ns, ns, m->ended_ns), \
      "mean number of bytes: bytes_time / life") \
    X(s, max_bytes, "max bytes", NULL, 0, 0, NULL)

#define POOL_MEASURES(X, s) \
    X(s, busy_share, "busy", "share", 0, ratio(known_seconds(m->busy_ns), pool_s(m)), \
      "share of the threads' time in tasks: busy_time / (busy_time + idle_time)") \
    X(s, cpu_share, "CPU", "share", 0, ratio(known_seconds(m->cpu_ns), pool_s(m)), \
      "share of the threads' time on a CPU: cpu_time / (busy_time + idle_time)") \
    X(s, run_delay_share, "no CPU", "share", 0, ratio(known_seconds(m->run_delay_ns), pool_s(m)), \
      "share of the threads' time waiting for a CPU: run_delay_time / (busy_time + idle_time)") \
    X(s, num_voluntary_switches, "blocked", NULL, 0, 0, NULL) \
    X(s, num_involuntary_switches, "preempted", NULL, 0, 0, NULL) \
    X(s, num_minor_faults, "minor faults", NULL, 0, 0, NULL) \
    X(s, num_major_faults, "major faults", NULL, 0, 0, NULL)

#define PROCESS_MEASURES(X, s) \
    X(s, cpus, "CPUs", "CPUs", 0, ratio(known_seconds(m->cpu_ns), known_seconds(ns)), \
      "CPUs in use by the process: cpu_time / elapsed") \
    X(s, cpu_share, "of budget", "share", 0, ratio(known_seconds(m->cpu_ns), known_seconds(m->budget_ns)), \
      "share of the CPU budget in use: cpu_time / budget_time") \
    X(s, pool_cpus, "pools", "CPUs", 0, ratio(known_seconds(m->pool_cpu_ns), known_seconds(ns)), \
      "CPUs in use by the pipeline's pools: pool_cpu_time / elapsed") \
    X(s, resident_bytes, "memory", NULL, -1, 0, NULL) \
    X(s, peak_bytes, "peak", NULL, -1, 0, NULL) \
    X(s, child_resident_bytes, "children", NULL, -1, 0, NULL) \
    X(s, child_pss_bytes, "their PSS", NULL, -1, 0, NULL) \
    X(s, read_rate, "read/s", "bytes/s", 0, ratio(whole(m->read_bytes), known_seconds(ns)), \
      "bytes read from storage per second") \
    X(s, write_rate, "write/s", "bytes/s", 0, ratio(whole(m->written_bytes), known_seconds(ns)), \
      "bytes written to storage per second") \
    X(s, num_major_faults, "major faults", NULL, -1, 0, NULL) \
    X(s, num_open_threads, "threads", NULL, 0, 0, NULL) \
    X(s, num_open_files, "descriptors", NULL, 0, 0, NULL)

#define MACHINE_MEASURES(X, s) \
    X(s, other_cpus, "other CPUs", "CPUs", 0, ratio(known_seconds(m->other_cpu_ns), known_seconds(ns)), \
      "CPUs in use by other processes: other_cpu_time / elapsed") \
    X(s, idle_cpus, "idle CPUs", "CPUs", 0, ratio(known_seconds(m->idle_ns), known_seconds(ns)), \
      "CPUs without work: idle_time / elapsed") \
    X(s, stolen_cpus, "stolen", "CPUs", -1, ratio(known_seconds(m->stolen_ns), known_seconds(ns)), \
      "CPUs that other virtual machines took: stolen_time / elapsed") \
    X(s, throttled_share, "throttled", "share", -1, ratio(known_seconds(m->throttled_ns), known_seconds(ns)), \
      "share of the time stopped by the CPU quota: throttled_time / elapsed") \
    X(s, cpu_pressure, "wait CPU", "share", -1, ratio(known_seconds(m->cpu_pressure_ns), known_seconds(ns)), \
      "share of the time in which a task waited for a CPU: cpu_pressure_time / elapsed") \
    X(s, io_pressure, "wait disk", "share", -1, ratio(known_seconds(m->io_pressure_ns), known_seconds(ns)), \
      "share of the time in which a task waited for a disk: io_pressure_time / elapsed") \
    X(s, memory_pressure, "wait memory", "share", -1, \
      ratio(known_seconds(m->memory_pressure_ns), known_seconds(ns)), \
      "share of the time in which a task waited for memory: memory_pressure_time / elapsed") \
    X(s, receive_rate, "received/s", "bytes/s", 0, ratio(whole(m->received_bytes), known_seconds(ns)), \
      "bytes from the network per second") \
    X(s, send_rate, "sent/s", "bytes/s", 0, ratio(whole(m->sent_bytes), known_seconds(ns)), \
      "bytes to the network per second")

#define SPAN_MEASURES(X, s) \
    X(s, num_spans, "count", NULL, 0, 0, NULL) \
    X(s, spans_per_s, "per s", "1/s", 1, ratio((double)m->num_spans, known_seconds(ns)), \
      "spans that ended per second") \
    X(s, total_time, "total", NULL, 0, 0, NULL) \
    X(s, ave_time, "average", "s", -1, ratio(known_seconds(m->total_ns), (double)m->num_spans), \
      "mean time of a span: total_time / num_spans") \
    X(s, min_time, "min", NULL, 0, 0, NULL) \
    X(s, p50_time, "p50", "s", -1, limited_quantile(m->times, 0.50, m->min_ns, m->max_ns), "median time of a span") \
    X(s, p90_time, "p90", "s", -1, limited_quantile(m->times, 0.90, m->min_ns, m->max_ns), \
      "90 % of the spans took no longer") \
    X(s, p99_time, "p99", "s", -1, limited_quantile(m->times, 0.99, m->min_ns, m->max_ns), \
      "99 % of the spans took no longer") \
    X(s, max_time, "max", NULL, -1, 0, NULL) \
    X(s, total_share, "of time", "share", 0, ratio(known_seconds(m->total_ns), known_seconds(ns)), \
      "time in the span by the time, above 1 if on several threads: total_time / elapsed")

/* The life of a counter is the time in which it has a value: it may begin in the middle of a lap, and is in the lap's last
   part only. */
#define COUNTER_MEASURES(X, s) \
    X(s, num_updates, "updates", NULL, 0, 0, NULL) \
    X(s, last_value, "last", NULL, 0, 0, NULL) \
    X(s, min_value, "min", NULL, 0, 0, NULL) \
    X(s, ave_value, "mean", "units", 0, \
      m->known_ns > 0 || isnan(m->value_ns) ? m->value_ns / (double)m->known_ns : m->last, \
      "mean of a level over the time in which it had a value: value_time / known_time") \
    X(s, max_value, "max", NULL, 0, 0, NULL) \
    X(s, increase, "growth", NULL, 0, 0, NULL) \
    X(s, increase_per_s, "per s", "units/s", 0, ratio(m->increase, known_seconds(m->known_ns)), \
      "by how much a total grew per second: increase / known_time")

/* -- arithmetic; NAN = not known */

static double known_seconds(int64_t ns)
{
    return ns < 0 ? NAN : (double)ns / SECOND_NS;
}

static double whole(int64_t count)
{
    return count < 0 ? NAN : (double)count;
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

/* The time in which a subject has not ended. An older recording does not say when it has. */
static double life(int64_t elapsed_ns, int64_t ended_ns)
{
    return known_seconds(ended_ns > 0 ? elapsed_ns - ended_ns : elapsed_ns);
}

static double task_life(const weir_task_metrics *m, int64_t elapsed_ns)
{
    return known_seconds(weir_task_life_ns(m, elapsed_ns));
}

static double queue_life(const weir_queue_metrics *m, int64_t elapsed_ns)
{
    return life(elapsed_ns, m->ended_ns);
}

/* A level of an empty lap is 0. */
static double mean_level(double level_ns, int64_t elapsed_ns, int64_t ended_ns)
{
    double life_s = life(elapsed_ns, ended_ns);
    return life_s > 0 ? level_ns / SECOND_NS / life_s : NAN;
}

static double num_successes(const weir_task_metrics *m)
{
    return (double)m->num_tasks - (double)m->num_failures;
}

static double slot_share(const weir_task_metrics *m, int64_t part_ns)
{
    return ratio(known_seconds(part_ns), known_seconds(weir_slots_ns(m)));
}

static double pool_s(const weir_pool_metrics *m)
{
    return known_seconds(m->busy_ns) + known_seconds(m->idle_ns);
}

/* A bucket's middle may lie outside of the shortest and longest time, if these are known: no percentile does. */
static double limited_quantile(const weir_histogram *times, double share, int64_t min_ns, int64_t max_ns)
{
    if (!times || times->count == 0)
        return NAN;
    int64_t ns = weir_histogram_quantile_ns(times, share);
    ns = max_ns > 0 && ns > max_ns ? max_ns : ns;
    return known_seconds(min_ns != INT64_MAX && ns < min_ns ? min_ns : ns);
}

/* -- the lists */

#define FUNCTION(s, name, title, unit, better, value, help) \
    static double s##_##name(const weir_metrics *all, int64_t ns) \
    { \
        const weir_##s##_metrics *m = &all->s; \
        (void)m; \
        (void)ns; \
        return value; \
    }
#define ROW(s, name, title, unit, better, value, help) { #name, title, unit, help, better, NULL, s##_##name },
#define LIST(measures, s)                              measures(FUNCTION, s) static const weir_measure s##_rows[] = { measures(ROW, s) };

LIST(TASK_MEASURES, task)
LIST(QUEUE_MEASURES, queue)
LIST(POOL_MEASURES, pool)
LIST(PROCESS_MEASURES, process)
LIST(MACHINE_MEASURES, machine)
LIST(SPAN_MEASURES, span)
LIST(COUNTER_MEASURES, counter)

#define SUBJECT(s) \
    { \
        s##_rows, NUM(s##_rows) \
    }
static const struct {
    const weir_measure *rows;
    size_t num_rows;
} subjects[WEIR_NUM_SUBJECTS] = {
    [WEIR_SUBJECT_STAGE] = SUBJECT(task),      [WEIR_SUBJECT_FLOW] = SUBJECT(task),
    [WEIR_SUBJECT_QUEUE] = SUBJECT(queue),     [WEIR_SUBJECT_POOL] = SUBJECT(pool),
    [WEIR_SUBJECT_PROCESS] = SUBJECT(process), [WEIR_SUBJECT_MACHINE] = SUBJECT(machine),
    [WEIR_SUBJECT_SPAN] = SUBJECT(span),       [WEIR_SUBJECT_COUNTER] = SUBJECT(counter),
};

enum { MAX_MEASURES = 64 };

typedef struct measure_list {
    weir_measure all[MAX_MEASURES];
    size_t count;
} measure_list;

static measure_list lists[WEIR_NUM_SUBJECTS]; /* written once, by make_lists() */

static const weir_measure *find_measure(const measure_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->all[i].name, name) == 0)
            return &list->all[i];
    return NULL;
}

static const weir_metric *find_metric(const weir_metric_table *table, const char *name)
{
    for (size_t i = 0; i < table->num_metrics; i++)
        if (strcmp(table->metrics[i].name, name) == 0)
            return &table->metrics[i];
    return NULL;
}

static void add_stored(measure_list *list, const weir_metric *metric, const weir_measure *like)
{
    weir_measure *measure = &list->all[list->count++];
    *measure =
        (weir_measure){ .name = metric->name, .unit = metric->unit, .help = metric->meaning, .metric = metric };
    if (like) {
        measure->title = like->title;
        measure->better = like->better;
    }
}

static void make_list(weir_subject subject)
{
    measure_list *list = &lists[subject];
    const weir_metric_table *table = weir_subject_metrics(subject);
    const weir_measure *rows = subjects[subject].rows;
    for (size_t i = 0; i < subjects[subject].num_rows; i++)
        if (rows[i].help)
            list->all[list->count++] = rows[i];
        else
            add_stored(list, find_metric(table, rows[i].name), &rows[i]);
    for (size_t i = 0; i < table->num_metrics; i++)
        if (table->metrics[i].kind != WEIR_METRIC_HISTOGRAM && !find_measure(list, table->metrics[i].name))
            add_stored(list, &table->metrics[i], NULL);
}

static void make_lists(void)
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        make_list(subject);
}

const weir_measure *weir_subject_measures(weir_subject subject, size_t *count)
{
    static uv_once_t once = UV_ONCE_INIT;
    uv_once(&once, make_lists);
    if (!count || subject >= WEIR_NUM_SUBJECTS)
        return NULL;
    *count = lists[subject].count;
    return lists[subject].all;
}

const weir_measure *weir_measure_find(weir_subject subject, const char *name)
{
    size_t count;
    return name && weir_subject_measures(subject, &count) ? find_measure(&lists[subject], name) : NULL;
}

double weir_measure_value(const weir_measure *measure, const weir_metrics *metrics, int64_t elapsed_ns)
{
    if (!measure || !metrics)
        return NAN;
    return measure->metric ? weir__metric_value(measure->metric, metrics) : measure->derive(metrics, elapsed_ns);
}

int64_t weir_task_life_ns(const weir_task_metrics *task, int64_t elapsed_ns)
{
    int64_t slots_ns = weir_slots_ns(task);
    if (!task || slots_ns < 0 || task->ended_ns <= 0)
        return elapsed_ns;
    return (int64_t)((double)elapsed_ns * ((double)slots_ns / ((double)slots_ns + (double)task->ended_ns)));
}

double weir_num_slots(const weir_task_metrics *task, int64_t elapsed_ns)
{
    int64_t slots_ns = weir_slots_ns(task);
    if (!task || slots_ns < 0 || elapsed_ns <= 0)
        return -1;
    return ((double)slots_ns + (task->ended_ns > 0 ? (double)task->ended_ns : 0)) / (double)elapsed_ns;
}

/* -- stored metrics */

/* Converts a field to its unit: durations are nanoseconds in the struct and seconds elsewhere. */
static double scale_of(const weir_metric *metric)
{
    size_t length = strlen(metric->unit);
    return length && metric->unit[length - 1] == 's' && (length == 1 || metric->unit[length - 2] == ' ') ? SECOND_NS
                                                                                                         : 1;
}

double weir__metric_value(const weir_metric *metric, const weir_metrics *metrics)
{
    if (!metric || !metrics)
        return NAN;
    const void *at = (const char *)metrics + metric->offset;
    int64_t whole = *(const int64_t *)at;
    switch (metric->kind) {
    case WEIR_METRIC_COUNT: return (double)*(const uint64_t *)at;
    case WEIR_METRIC_LEVEL: return *(const double *)at / scale_of(metric);
    case WEIR_METRIC_SUM:
    case WEIR_METRIC_MAX: return whole < 0 ? NAN : (double)whole / scale_of(metric);
    case WEIR_METRIC_MIN: return whole < 0 || whole == INT64_MAX ? NAN : (double)whole / scale_of(metric);
    case WEIR_METRIC_LAST:
    case WEIR_METRIC_LOWEST:
    case WEIR_METRIC_HIGHEST:
    case WEIR_METRIC_GROWTH: return *(const double *)at;
    case WEIR_METRIC_HISTOGRAM: break;
    }
    return NAN;
}

size_t weir__subject_histograms(weir_subject subject, weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS])
{
    static const char *const names[][3] = {
        { "histogram", "time", "success_time" },     { "put_histogram", "put_time", "put_time" },
        { "get_histogram", "get_time", "get_time" }, { "latency_histogram", "latency", "latency_time" },
        { "span_histogram", "time", "total_time" },
    };
    const weir_metric_table *table = weir_subject_metrics(subject);
    size_t count = 0;
    for (size_t i = 0; i < NUM(names); i++) {
        const weir_metric *metric = find_metric(table, names[i][0]);
        if (metric)
            histograms[count++] = (weir_metric_histogram){ metric, names[i][1], names[i][2] };
    }
    return count;
}

const weir_histogram **weir__metric_histogram_at(const weir_metric *metric, weir_metrics *metrics)
{
    return (const weir_histogram **)(void *)((char *)metrics + metric->offset);
}
