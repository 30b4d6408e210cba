/*
 * The derived metrics, one line each. X(name, title, unit, better, value, help); `m` is the struct of metrics, `ns`
 * the time that it covers. A line without help gives the stored metric of that name this position.
 */
#include <weir/measures.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <uv.h>

#define SECOND_NS 1e9
#define NUM(rows) (sizeof(rows) / sizeof(rows)[0])

#define TASK_MEASURES(X) \
    X(num_tasks, "tasks", NULL, 0, 0, NULL) \
    X(num_failures, "failed", NULL, 0, 0, NULL) \
    X(tasks_per_s, "per s", "1/s", 1, ratio((double)m->num_tasks, seconds(ns)), "tasks that ended per second") \
    X(ave_time, "average", "s", -1, ratio(seconds(m->success_ns), num_successes(m)), \
      "mean run time of successful tasks: success_time / (num_tasks - num_failures)") \
    X(p50_time, "p50", "s", -1, quantile(m->run_times, 0.50, m->min_ns, m->max_ns), \
      "median run time of successful tasks") \
    X(p90_time, "p90", "s", -1, quantile(m->run_times, 0.90, m->min_ns, m->max_ns), \
      "90 % of successful tasks took no longer") \
    X(p99_time, "p99", "s", -1, quantile(m->run_times, 0.99, m->min_ns, m->max_ns), \
      "99 % of successful tasks took no longer") \
    X(max_time, "max", NULL, -1, 0, NULL) \
    X(busy_share, "busy", "share", 0, slot_share(m, m->busy_ns), "busy_time / slot time") \
    X(wait_in_share, "input", "share", 0, slot_share(m, m->wait_in_ns), "wait_in_time / slot time") \
    X(wait_thread_share, "thread", "share", 0, slot_share(m, m->wait_thread_ns), "wait_thread_time / slot time") \
    X(wait_turn_share, "turn", "share", 0, slot_share(m, m->wait_turn_ns), "wait_turn_time / slot time") \
    X(wait_out_share, "room", "share", 0, slot_share(m, m->wait_out_ns), "wait_out_time / slot time") \
    X(cpu_share, "CPU", "share", 0, ratio(seconds(m->cpu_ns), seconds(m->busy_ns)), "cpu_time / busy_time") \
    X(cpu_time_per_task, NULL, "s", -1, ratio(seconds(m->cpu_ns), (double)m->num_tasks), "cpu_time / num_tasks") \
    X(failed_share, NULL, "share", -1, ratio((double)m->num_failures, (double)m->num_tasks), \
      "num_failures / num_tasks") \
    X(num_successes, NULL, "tasks", 0, num_successes(m), "num_tasks - num_failures") \
    X(successes_per_s, NULL, "1/s", 1, ratio(num_successes(m), seconds(ns)), "tasks that succeeded per second") \
    X(failures_per_s, NULL, "1/s", -1, ratio((double)m->num_failures, seconds(ns)), "tasks that failed per second") \
    X(cpu_slot_share, NULL, "share", 0, slot_share(m, m->cpu_ns), "cpu_time / slot time") \
    X(cpus, NULL, "CPUs", 0, ratio(seconds(m->cpu_ns), seconds(ns)), "CPUs in use by the tasks: cpu_time / elapsed")

#define QUEUE_MEASURES(X) \
    X(num_items, "items", NULL, 0, 0, NULL) \
    X(num_put, NULL, NULL, 0, 0, NULL) \
    X(items_per_s, "per s", "1/s", 1, ratio((double)m->num_items, seconds(ns)), "items taken out per second") \
    X(ave_put_time, "put", "s", 0, ratio(seconds(m->put_ns), (double)m->num_put), "put_time / num_put") \
    X(p50_put_time, NULL, "s", 0, quantile(m->put_times, 0.50, m->min_put_ns, m->max_put_ns), \
      "median wait for room") \
    X(p90_put_time, "p90", "s", 0, quantile(m->put_times, 0.90, m->min_put_ns, m->max_put_ns), \
      "90 % waited no longer for room") \
    X(p99_put_time, "p99", "s", 0, quantile(m->put_times, 0.99, m->min_put_ns, m->max_put_ns), \
      "99 % waited no longer for room") \
    X(ave_get_time, "get", "s", 0, ratio(seconds(m->get_ns), (double)m->num_items), "get_time / num_items") \
    X(p50_get_time, NULL, "s", 0, quantile(m->get_times, 0.50, m->min_get_ns, m->max_get_ns), \
      "median wait for an item") \
    X(p90_get_time, "p90", "s", 0, quantile(m->get_times, 0.90, m->min_get_ns, m->max_get_ns), \
      "90 % waited no longer for an item") \
    X(p99_get_time, "p99", "s", 0, quantile(m->get_times, 0.99, m->min_get_ns, m->max_get_ns), \
      "99 % waited no longer for an item") \
    X(occupancy_rate, "occupied", "share", 0, ratio(seconds(m->occupied_ns), seconds(ns)), \
      "share of the time in which the queue was not empty: occupied_time / elapsed") \
    X(ave_depth, "depth", "items", 0, level(m->depth_ns, ns), "mean number of items: depth_time / elapsed") \
    X(max_depth, "max", NULL, 0, 0, NULL) \
    X(ave_bytes, "bytes", "bytes", 0, level(m->bytes_ns, ns), "mean number of bytes: bytes_time / elapsed") \
    X(max_bytes, "max", NULL, 0, 0, NULL)

#define POOL_MEASURES(X) \
    X(busy_share, "busy", "share", 0, ratio(seconds(m->busy_ns), pool_s(m)), "busy_time / (busy_time + idle_time)") \
    X(cpu_share, "CPU", "share", 0, ratio(seconds(m->cpu_ns), pool_s(m)), "cpu_time / (busy_time + idle_time)") \
    X(run_delay_share, "no CPU", "share", 0, ratio(seconds(m->run_delay_ns), pool_s(m)), \
      "run_delay_time / (busy_time + idle_time): the machine has too few CPUs for all that runs on it") \
    X(num_voluntary_switches, "blocked", NULL, 0, 0, NULL) \
    X(num_involuntary_switches, "preempted", NULL, 0, 0, NULL) \
    X(num_minor_faults, "minor faults", NULL, 0, 0, NULL) \
    X(num_major_faults, "major faults", NULL, 0, 0, NULL)

#define PROCESS_MEASURES(X) \
    X(cpus, "CPUs", "CPUs", 0, ratio(seconds(m->cpu_ns), seconds(ns)), \
      "CPUs in use by the process: cpu_time / elapsed") \
    X(cpu_share, "of budget", "share", 0, ratio(seconds(m->cpu_ns), seconds(m->budget_ns)), \
      "cpu_time / budget_time") \
    X(pool_cpus, "pools", "CPUs", 0, ratio(seconds(m->pool_cpu_ns), seconds(ns)), \
      "CPUs in use by the pipeline's pools: pool_cpu_time / elapsed") \
    X(resident_bytes, "memory", NULL, -1, 0, NULL) \
    X(peak_bytes, "peak", NULL, -1, 0, NULL) \
    X(read_rate, "read/s", "bytes/s", 0, ratio(whole(m->read_bytes), seconds(ns)), \
      "bytes read from storage per second") \
    X(write_rate, "write/s", "bytes/s", 0, ratio(whole(m->written_bytes), seconds(ns)), \
      "bytes written to storage per second") \
    X(num_major_faults, "major faults", NULL, -1, 0, NULL) \
    X(num_open_threads, "threads", NULL, 0, 0, NULL) \
    X(num_open_files, "descriptors", NULL, 0, 0, NULL)

#define MACHINE_MEASURES(X) \
    X(other_cpus, "other CPUs", "CPUs", 0, ratio(seconds(m->other_cpu_ns), seconds(ns)), \
      "CPUs in use by other processes: other_cpu_time / elapsed") \
    X(idle_cpus, "idle CPUs", "CPUs", 0, ratio(seconds(m->idle_ns), seconds(ns)), \
      "CPUs without work: idle_time / elapsed") \
    X(stolen_cpus, "stolen", "CPUs", -1, ratio(seconds(m->stolen_ns), seconds(ns)), \
      "CPUs that other virtual machines took: stolen_time / elapsed") \
    X(throttled_share, "throttled", "share", -1, ratio(seconds(m->throttled_ns), seconds(ns)), \
      "throttled_time / elapsed") \
    X(cpu_pressure, "wait CPU", "share", -1, ratio(seconds(m->cpu_pressure_ns), seconds(ns)), \
      "cpu_pressure_time / elapsed") \
    X(io_pressure, "wait disk", "share", -1, ratio(seconds(m->io_pressure_ns), seconds(ns)), \
      "io_pressure_time / elapsed") \
    X(memory_pressure, "wait memory", "share", -1, ratio(seconds(m->memory_pressure_ns), seconds(ns)), \
      "memory_pressure_time / elapsed") \
    X(receive_rate, "received/s", "bytes/s", 0, ratio(whole(m->received_bytes), seconds(ns)), \
      "bytes from the network per second") \
    X(send_rate, "sent/s", "bytes/s", 0, ratio(whole(m->sent_bytes), seconds(ns)), "bytes to the network per second")

#define SPAN_MEASURES(X) \
    X(num_spans, "count", NULL, 0, 0, NULL) \
    X(spans_per_s, "per s", "1/s", 1, ratio((double)m->num_spans, seconds(ns)), "spans that ended per second") \
    X(total_time, "total", NULL, 0, 0, NULL) \
    X(ave_time, "average", "s", -1, ratio(seconds(m->total_ns), (double)m->num_spans), "total_time / num_spans") \
    X(min_time, "min", NULL, 0, 0, NULL) \
    X(p50_time, "p50", "s", -1, quantile(m->times, 0.50, m->min_ns, m->max_ns), "median time of a span") \
    X(p90_time, "p90", "s", -1, quantile(m->times, 0.90, m->min_ns, m->max_ns), "90 % of the spans took no longer") \
    X(p99_time, "p99", "s", -1, quantile(m->times, 0.99, m->min_ns, m->max_ns), "99 % of the spans took no longer") \
    X(max_time, "max", NULL, -1, 0, NULL) \
    X(total_share, "of time", "share", 0, ratio(seconds(m->total_ns), seconds(ns)), \
      "total_time / elapsed; above 1 if several threads are in the span")

#define COUNTER_MEASURES(X) \
    X(num_updates, "updates", NULL, 0, 0, NULL) \
    X(last_value, "last", NULL, 0, 0, NULL) \
    X(min_value, "min", NULL, 0, 0, NULL) \
    X(ave_value, "mean", "units", 0, m->known_ns > 0 ? m->value_ns / (double)m->known_ns : m->last, \
      "mean over the time in which it had a value: value_time / known_time") \
    X(max_value, "max", NULL, 0, 0, NULL)

/* -- arithmetic; NAN = not known */

static double seconds(int64_t ns)
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

/* A level of an empty lap is 0. */
static double level(double level_ns, int64_t elapsed_ns)
{
    return elapsed_ns > 0 ? level_ns / (double)elapsed_ns : NAN;
}

static double num_successes(const weir_task_metrics *m)
{
    return (double)m->num_tasks - (double)m->num_failures;
}

int64_t weir_slots_ns(const weir_task_metrics *m)
{
    if (!m)
        return -1;
    const int64_t parts[] = { m->busy_ns, m->wait_in_ns, m->wait_thread_ns, m->wait_turn_ns, m->wait_out_ns };
    int64_t sum = 0;
    for (size_t i = 0; i < NUM(parts); i++) {
        if (parts[i] < 0)
            return -1;
        sum = parts[i] > INT64_MAX - sum ? INT64_MAX : sum + parts[i];
    }
    return sum;
}

static double slot_share(const weir_task_metrics *m, int64_t part_ns)
{
    return ratio(seconds(part_ns), seconds(weir_slots_ns(m)));
}

static double pool_s(const weir_pool_metrics *m)
{
    return seconds(m->busy_ns) + seconds(m->idle_ns);
}

/* A bucket's middle may lie outside of the shortest and longest time, if these are known: no percentile does. */
static double quantile(const weir_histogram *times, double share, int64_t min_ns, int64_t max_ns)
{
    if (!times || times->count == 0)
        return NAN;
    int64_t ns = weir_histogram_quantile_ns(times, share);
    ns = max_ns > 0 && ns > max_ns ? max_ns : ns;
    return seconds(min_ns != INT64_MAX && ns < min_ns ? min_ns : ns);
}

/* -- the lists */

#define FUNCTION(prefix, type, member, name, value) \
    static double prefix##name(const weir_metrics *all, int64_t ns) \
    { \
        const type *m = &all->member; \
        (void)m; \
        (void)ns; \
        return value; \
    }
#define TASK_FUNCTION(name, title, unit, better, value, help) FUNCTION(task_, weir_task_metrics, task, name, value)
#define QUEUE_FUNCTION(name, title, unit, better, value, help) \
    FUNCTION(queue_, weir_queue_metrics, queue, name, value)
#define POOL_FUNCTION(name, title, unit, better, value, help) FUNCTION(pool_, weir_pool_metrics, pool, name, value)
#define PROCESS_FUNCTION(name, title, unit, better, value, help) \
    FUNCTION(process_, weir_process_metrics, process, name, value)
#define MACHINE_FUNCTION(name, title, unit, better, value, help) \
    FUNCTION(machine_, weir_machine_metrics, machine, name, value)
#define SPAN_FUNCTION(name, title, unit, better, value, help) FUNCTION(span_, weir_span_metrics, span, name, value)
#define COUNTER_FUNCTION(name, title, unit, better, value, help) \
    FUNCTION(counter_, weir_counter_metrics, counter, name, value)

TASK_MEASURES(TASK_FUNCTION)
QUEUE_MEASURES(QUEUE_FUNCTION)
POOL_MEASURES(POOL_FUNCTION)
PROCESS_MEASURES(PROCESS_FUNCTION)
MACHINE_MEASURES(MACHINE_FUNCTION)
SPAN_MEASURES(SPAN_FUNCTION)
COUNTER_MEASURES(COUNTER_FUNCTION)

#define TASK_ROW(name, title, unit, better, value, help)  { #name, title, unit, help, better, NULL, task_##name },
#define QUEUE_ROW(name, title, unit, better, value, help) { #name, title, unit, help, better, NULL, queue_##name },
#define POOL_ROW(name, title, unit, better, value, help)  { #name, title, unit, help, better, NULL, pool_##name },

#define PROCESS_ROW(name, title, unit, better, value, help) \
    { #name, title, unit, help, better, NULL, process_##name },
#define MACHINE_ROW(name, title, unit, better, value, help) \
    { #name, title, unit, help, better, NULL, machine_##name },
#define SPAN_ROW(name, title, unit, better, value, help) { #name, title, unit, help, better, NULL, span_##name },
#define COUNTER_ROW(name, title, unit, better, value, help) \
    { #name, title, unit, help, better, NULL, counter_##name },

static const weir_measure task_rows[] = { TASK_MEASURES(TASK_ROW) };
static const weir_measure queue_rows[] = { QUEUE_MEASURES(QUEUE_ROW) };
static const weir_measure pool_rows[] = { POOL_MEASURES(POOL_ROW) };
static const weir_measure process_rows[] = { PROCESS_MEASURES(PROCESS_ROW) };
static const weir_measure machine_rows[] = { MACHINE_MEASURES(MACHINE_ROW) };
static const weir_measure span_rows[] = { SPAN_MEASURES(SPAN_ROW) };
static const weir_measure counter_rows[] = { COUNTER_MEASURES(COUNTER_ROW) };

enum { MAX_MEASURES = 64 };

typedef struct measure_list {
    weir_measure all[MAX_MEASURES];
    size_t count;
} measure_list;

static measure_list lists[WEIR_NUM_SUBJECTS]; /* written once, by make_lists() */

static const weir_measure *find(const measure_list *list, const char *name)
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

static void make_list(weir_subject subject, const weir_measure *rows, size_t num_rows)
{
    measure_list *list = &lists[subject];
    const weir_metric_table *table = weir_subject_metrics(subject);
    for (size_t i = 0; i < num_rows; i++)
        if (rows[i].help)
            list->all[list->count++] = rows[i];
        else
            add_stored(list, find_metric(table, rows[i].name), &rows[i]);
    for (size_t i = 0; i < table->num_metrics; i++)
        if (table->metrics[i].kind != WEIR_METRIC_HISTOGRAM && !find(list, table->metrics[i].name))
            add_stored(list, &table->metrics[i], NULL);
}

static void make_lists(void)
{
    make_list(WEIR_SUBJECT_STAGE, task_rows, NUM(task_rows));
    make_list(WEIR_SUBJECT_FLOW, task_rows, NUM(task_rows));
    make_list(WEIR_SUBJECT_QUEUE, queue_rows, NUM(queue_rows));
    make_list(WEIR_SUBJECT_POOL, pool_rows, NUM(pool_rows));
    make_list(WEIR_SUBJECT_PROCESS, process_rows, NUM(process_rows));
    make_list(WEIR_SUBJECT_MACHINE, machine_rows, NUM(machine_rows));
    make_list(WEIR_SUBJECT_SPAN, span_rows, NUM(span_rows));
    make_list(WEIR_SUBJECT_COUNTER, counter_rows, NUM(counter_rows));
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
    return name && weir_subject_measures(subject, &count) ? find(&lists[subject], name) : NULL;
}

double weir_measure_value(const weir_measure *measure, const weir_metrics *metrics, int64_t elapsed_ns)
{
    if (!measure || !metrics)
        return NAN;
    return measure->metric ? weir_metric_value(measure->metric, metrics) : measure->derive(metrics, elapsed_ns);
}

double weir_measure_of(weir_subject subject, const char *name, const weir_metrics *metrics, int64_t elapsed_ns)
{
    const weir_measure *measure = weir_measure_find(subject, name);
    return measure ? weir_measure_value(measure, metrics, elapsed_ns) : NAN;
}

/* -- stored metrics */

const weir_metric_table *weir_subject_metrics(weir_subject subject)
{
    switch (subject) {
    case WEIR_SUBJECT_QUEUE: return weir_queue_metric_table();
    case WEIR_SUBJECT_POOL: return weir_pool_metric_table();
    case WEIR_SUBJECT_PROCESS: return weir_process_metric_table();
    case WEIR_SUBJECT_MACHINE: return weir_machine_metric_table();
    case WEIR_SUBJECT_SPAN: return weir_span_metric_table();
    case WEIR_SUBJECT_COUNTER: return weir_counter_metric_table();
    default: return weir_task_metric_table();
    }
}

/* Converts a field to its unit: durations are nanoseconds in the struct and seconds elsewhere. */
static double scale_of(const weir_metric *metric)
{
    size_t length = strlen(metric->unit);
    return length && metric->unit[length - 1] == 's' && (length == 1 || metric->unit[length - 2] == ' ') ? SECOND_NS
                                                                                                         : 1;
}

double weir_metric_value(const weir_metric *metric, const weir_metrics *metrics)
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
    case WEIR_METRIC_HIGHEST: return *(const double *)at;
    case WEIR_METRIC_HISTOGRAM: break;
    }
    return NAN;
}

size_t weir_subject_histograms(weir_subject subject, weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS])
{
    static const char *const names[][3] = {
        { "histogram", "time", "success_time" },
        { "put_histogram", "put_time", "put_time" },
        { "get_histogram", "get_time", "get_time" },
        { "span_histogram", "time", "total_time" },
    };
    const weir_metric_table *table = weir_subject_metrics(subject);
    size_t count = 0;
    for (size_t i = 0; i < NUM(names) && histograms; i++) {
        const weir_metric *metric = find_metric(table, names[i][0]);
        if (metric)
            histograms[count++] = (weir_metric_histogram){ metric, names[i][1], names[i][2] };
    }
    return count;
}

const weir_histogram **weir_metric_histogram_at(const weir_metric *metric, weir_metrics *metrics)
{
    if (!metric || !metrics)
        return NULL;
    return (const weir_histogram **)(void *)((char *)metrics + metric->offset);
}
