/*
 * The metrics of a lap: one table for each measured subject. One row defines the field of the C struct, the database
 * column and the line in every export; CONTRIBUTING.md says how to add one.
 *
 * X(field, name, kind, unit, meaning)
 *     field    the member of the struct; durations are nanoseconds
 *     name     the column of the database and the key of exports; durations are seconds there
 *     kind     how values of several laps, slots, stages or ranks are combined (see below)
 *     unit     the unit of `name`
 *     meaning  for help texts, tables and documentation
 *
 * Kinds:
 *     COUNT      uint64_t; added
 *     SUM        int64_t; added. Negative = not known; a sum with an unknown value is unknown
 *     LEVEL      double; a level times the nanoseconds it lasted; added. Over `elapsed` it is the mean level. NAN = not
 *                known
 *     MIN, MAX   int64_t; smallest or largest. INT64_MAX (MIN) or 0 (MAX) = no value; negative = not known
 *     HISTOGRAM  const weir_histogram *; merged. NULL = not known
 *     LAST       double; the later one. NAN = no value
 *     LOWEST, HIGHEST  double; smallest or largest. NAN = no value
 *
 * Means, rates and percentiles are not stored: stats/schema/measures.c derives them.
 */
#ifndef WEIR_METRICS_H
#define WEIR_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- histograms ------------------------------------------------------------------------------------------------------ */

/*
 * A log-linear histogram of durations in nanoseconds.
 *
 * Each power of two is divided into 64 equal buckets. Each value below 64 ns has its own bucket. A quantile is the
 * middle of its bucket, so the relative error is at most 1/128 = 0.8 %. The buckets are the same in every histogram,
 * so adding two histograms is exact. Laps, stages, ranks and runs can be merged in any order. This is the layout of
 * HdrHistogram (Gil Tene, hdrhistogram.org) with 7 significant bits.
 *
 * No function here locks: use each histogram on one thread at a time.
 */

/* 64 buckets of 1 ns, then 64 for each power of two up to 2^47 ns (39 hours); longer spans fall into the last one. */
#define WEIR_HISTOGRAM_BUCKETS 2688

/* The largest count of a bucket; it then stops: enough for ten million items per second for 21 months. */
#define WEIR_HISTOGRAM_MAX_COUNT ((UINT64_C(1) << 49) - 1)

typedef struct weir_histogram {
    uint64_t count; /* sum of all buckets */
    uint32_t first; /* no bucket below is used */
    uint32_t last;  /* no bucket above is used */
    uint64_t buckets[WEIR_HISTOGRAM_BUCKETS];
} weir_histogram;

/* Empties it. A zeroed struct is empty, too. Touches only the buckets that were used. */
static inline void weir_histogram_clear(weir_histogram *histogram)
{
    if (!histogram || !histogram->count)
        return;
    memset(&histogram->buckets[histogram->first], 0,
           (histogram->last - histogram->first + 1) * sizeof histogram->buckets[0]);
    histogram->count = 0;
    histogram->first = histogram->last = 0;
}

/* Adds one duration; negative ones count as 0. */
WEIR_API void weir_histogram_record(weir_histogram *histogram, int64_t duration_ns);

/* Adds every count of `from` to `to`. */
WEIR_API void weir_histogram_add(weir_histogram *to, const weir_histogram *from);

/*
 * The quantile (0 to 1) of the recorded durations in nanoseconds: the smallest value whose rank is at least
 * ceil(quantile × count). 0 when empty.
 */
WEIR_API int64_t weir_histogram_quantile_ns(const weir_histogram *histogram, double quantile);

/* The range of durations in bucket `index`: from *low_ns to *high_ns, both included. */
WEIR_API void weir_histogram_bucket_range(uint32_t index, int64_t *low_ns, int64_t *high_ns);

/*
 * Encodes the histogram for storage. First comes one version byte (1). Then each used bucket follows, in order: its
 * distance from the previous used bucket (the first: from 0) and its count, both as LEB128 varints. The bytes are the
 * same on every machine. Returns the size in bytes; writes them only if `capacity` is large enough.
 */
WEIR_API size_t weir_histogram_encode(const weir_histogram *histogram, void *bytes, size_t capacity);

/* Adds an encoded histogram to `to`. WEIR_EDATA if the bytes are not a valid encoding; then `to` is unchanged. */
WEIR_API int weir_histogram_add_encoded(weir_histogram *to, const void *bytes, size_t size_bytes);

/* The largest encoded size. */
#define WEIR_HISTOGRAM_ENCODED_MAX (1 + WEIR_HISTOGRAM_BUCKETS * 9)

/*
 * One stage, source, merge, route or sink. A slot is in exactly one state at a time. Therefore busy + wait_in +
 * wait_thread + wait_turn + wait_out + ended = slots × elapsed. Rates and shares are of the life of the subject,
 * without the time after its end. A span that is still open counts up to the end of the lap. A slot is busy up to the
 * end of its call of the operation. The thread may then have to wait for a CPU before it can pass the result on.
 * Meanwhile the slot is already in the state that follows, most often wait_thread. Merges and the sink run no
 * operation: they have no tasks and are never busy.
 */
#define WEIR_TASK_METRICS(X) \
    X(num_tasks, "num_tasks", COUNT, "tasks", "tasks that ended, the failed ones included") \
    X(num_failures, "num_failures", COUNT, "tasks", "tasks that failed") \
    X(num_skipped, "num_skipped", COUNT, "tasks", "tasks that succeeded without a result") \
    X(success_ns, "success_time", SUM, "s", "run time of the tasks that succeeded") \
    X(failed_ns, "failed_time", SUM, "s", "run time of the tasks that failed") \
    X(min_ns, "min_time", MIN, "s", "shortest run time of a success") \
    X(max_ns, "max_time", MAX, "s", "longest run time of a success") \
    X(busy_ns, "busy_time", SUM, "s", \
      "slot time running or pending: close to slots x elapsed, the slots are the limit") \
    X(wait_in_ns, "wait_in_time", SUM, "s", "slot time waiting for input: the upstream stages are the limit") \
    X(wait_thread_ns, "wait_thread_time", SUM, "s", "slot time waiting for a thread: the pool is the limit") \
    X(wait_turn_ns, "wait_turn_time", SUM, "s", "slot time waiting for earlier results (output in input order)") \
    X(wait_out_ns, "wait_out_time", SUM, "s", "slot time waiting for room: the downstream stages are the limit") \
    X(cpu_ns, "cpu_time", SUM, "s", "CPU time that pool threads, or child processes, spent in the tasks") \
    X(run_times, "histogram", HISTOGRAM, "s", "run times of the successes") \
    X(pending_ns, "pending_time", SUM, "s", "the part of busy_time in which tasks held no thread (WEIR_PENDING)") \
    X(num_work, "num_work", COUNT, "units", \
      "work that tasks have reported as done, those that still run included (frames, samples, as the stage says)") \
    X(ended_ns, "ended_time", SUM, "s", "slot time after the end: all inputs have ended, and all tasks") \
    X(num_looks, "num_looks", COUNT, "looks", \
      "looks at the threads that run tasks, at even distances; the next ones say how many found a thread asleep") \
    X(num_file_waits, "num_file_waits", COUNT, "looks", "in a call that opens, reads, writes or syncs files") \
    X(num_network_waits, "num_network_waits", COUNT, "looks", "in a call on a connection to another machine") \
    X(num_process_waits, "num_process_waits", COUNT, "looks", \
      "for another process: its end, a pipe, a local socket") \
    X(num_lock_waits, "num_lock_waits", COUNT, "looks", "for a lock, a condition or another thread") \
    X(num_sleep_waits, "num_sleep_waits", COUNT, "looks", "in a sleep of a fixed time") \
    X(num_other_waits, "num_other_waits", COUNT, "looks", "in another system call") \
    X(epoch_tail_ns, "epoch_tail_time", SUM, "s", \
      "part of wait_in_time: no item of the epoch is left, and other slots still have its last ones") \
    X(epoch_gap_ns, "epoch_gap_time", SUM, "s", \
      "part of wait_in_time: an epoch has ended, and no item of the next one is there") \
    X(max_held_bytes, "max_held_bytes", MAX, "bytes", \
      "largest number of bytes that the stage held for itself (frames, kept items, caches), as it reports them")

/* One queue. Latencies are those of the sink's queue; of the others they are not known. An item that is made of several,
   a batch for example, is as old as the oldest that came since the result before. */
#define WEIR_QUEUE_METRICS(X) \
    X(num_put, "num_put", COUNT, "items", "items put in") \
    X(num_items, "num_items", COUNT, "items", "items taken out") \
    X(put_ns, "put_time", SUM, "s", "time that the items put in had waited for room") \
    X(get_ns, "get_time", SUM, "s", "time that consumers had waited for the items taken out") \
    X(min_put_ns, "min_put_time", MIN, "s", "shortest wait for room") \
    X(max_put_ns, "max_put_time", MAX, "s", "longest wait for room") \
    X(min_get_ns, "min_get_time", MIN, "s", "shortest wait for an item") \
    X(max_get_ns, "max_get_time", MAX, "s", "longest wait for an item") \
    X(occupied_ns, "occupied_time", SUM, "s", \
      "time not empty: close to 0, upstream is the limit; close to elapsed, downstream") \
    X(depth_ns, "depth_time", LEVEL, "items s", "items x time") \
    X(bytes_ns, "bytes_time", LEVEL, "bytes s", "bytes x time") \
    X(max_depth, "max_depth", MAX, "items", "largest number of items") \
    X(max_bytes, "max_bytes", MAX, "bytes", "largest number of bytes") \
    X(put_times, "put_histogram", HISTOGRAM, "s", "waits for room") \
    X(get_times, "get_histogram", HISTOGRAM, "s", "waits for items") \
    X(latency_ns, "latency_time", SUM, "s", \
      "sink: time of the items from their source, which had made them, to the consumer") \
    X(min_latency_ns, "min_latency", MIN, "s", "sink: shortest latency of an item") \
    X(max_latency_ns, "max_latency", MAX, "s", "sink: longest latency of an item") \
    X(latencies, "latency_histogram", HISTOGRAM, "s", "sink: latencies of the items") \
    X(late_ns, "late_time", SUM, "s", \
      "sink: time in which an item was there, but the consumer had found none before and had not come back") \
    X(ended_ns, "ended_time", SUM, "s", "time after the end: no item comes any more, and the last one was taken")

/*
 * The threads of one pool. The engine measures the first two, the kernel counts the others for each thread; a value
 * that this system does not provide is not known. Busy time that is neither CPU time nor run-queue delay was spent
 * blocked: on a disk, a lock, a timer or a library's own threads.
 */
#define WEIR_POOL_METRICS(X) \
    X(busy_ns, "busy_time", SUM, "s", "thread time running tasks") \
    X(idle_ns, "idle_time", SUM, "s", "thread time without a task") \
    X(cpu_ns, "cpu_time", SUM, "s", "CPU time of the threads, the engine's own work included") \
    X(run_delay_ns, "run_delay_time", SUM, "s", \
      "time runnable, but without a CPU; of child processes for tasks as well") \
    X(num_voluntary, "num_voluntary_switches", SUM, "switches", "times a thread blocked") \
    X(num_involuntary, "num_involuntary_switches", SUM, "switches", "times a thread was preempted") \
    X(num_minor_faults, "num_minor_faults", SUM, "faults", "page faults without a read") \
    X(num_major_faults, "num_major_faults", SUM, "faults", "page faults that read from storage")

/*
 * The whole process, and the threads of this pipeline's pools together. Every lap of every pipeline of a process has
 * them. So do not add them up over pipelines that ran at the same time. A value that this system does not provide is
 * not known.
 */
#define WEIR_PROCESS_METRICS(X) \
    X(cpu_ns, "cpu_time", SUM, "s", "CPU time of all threads, and of child processes for tasks") \
    X(pool_cpu_ns, "pool_cpu_time", SUM, "s", \
      "CPU time of the threads of this pipeline's pools, and of child processes for tasks") \
    X(budget_ns, "budget_time", SUM, "s", "CPU time that the process may use: CPU budget x elapsed") \
    X(run_delay_ns, "run_delay_time", SUM, "s", \
      "time that the pools' threads, and child processes for tasks, were runnable, but without a CPU") \
    X(read_delay_ns, "read_delay_time", SUM, "s", "time that the pools' threads waited for reads of a disk") \
    X(num_voluntary, "num_voluntary_switches", SUM, "switches", "times a thread blocked") \
    X(num_involuntary, "num_involuntary_switches", SUM, "switches", "times a thread was preempted") \
    X(num_minor_faults, "num_minor_faults", SUM, "faults", "page faults without a read") \
    X(num_major_faults, "num_major_faults", SUM, "faults", "page faults that read from storage") \
    X(read_bytes, "read_bytes", SUM, "bytes", "bytes read from storage") \
    X(written_bytes, "written_bytes", SUM, "bytes", "bytes written to storage") \
    X(resident_bytes, "resident_bytes", MAX, "bytes", "memory in use at the end of the lap") \
    X(peak_bytes, "peak_bytes", MAX, "bytes", "largest memory in use since the process began") \
    X(num_open_threads, "num_open_threads", MAX, "threads", "threads at the end of the lap") \
    X(num_open_files, "num_open_files", MAX, "descriptors", "open descriptors at the end of the lap") \
    X(child_resident_bytes, "child_resident_bytes", MAX, "bytes", \
      "memory in use by child processes for tasks at the end of the lap; what they share counts in each") \
    X(child_pss_bytes, "child_pss_bytes", MAX, "bytes", \
      "the same, with what is shared divided among those that share it (PSS)")

/* The machine, or the part of it that a container sees. A value that this system does not provide is not known. */
#define WEIR_MACHINE_METRICS(X) \
    X(other_cpu_ns, "other_cpu_time", SUM, "s", "CPU time of all other processes") \
    X(idle_ns, "idle_time", SUM, "s", "CPU time without work") \
    X(disk_idle_ns, "disk_idle_time", SUM, "s", "CPU time without work while a disk was waited for") \
    X(stolen_ns, "stolen_time", SUM, "s", "CPU time that other virtual machines took") \
    X(throttled_ns, "throttled_time", SUM, "s", "time that the control group's quota stopped its threads") \
    X(num_throttled, "num_throttled", SUM, "times", "times that the quota was used up") \
    X(cpu_pressure_ns, "cpu_pressure_time", SUM, "s", "time in which some task waited for a CPU") \
    X(io_pressure_ns, "io_pressure_time", SUM, "s", "time in which some task waited for a disk") \
    X(memory_pressure_ns, "memory_pressure_time", SUM, "s", "time in which some task waited for memory") \
    X(received_bytes, "received_bytes", SUM, "bytes", "bytes from the network") \
    X(sent_bytes, "sent_bytes", SUM, "bytes", "bytes to the network")

/* A span, frame or marker of user code (weir/span.h). Spans count when they end. */
#define WEIR_SPAN_METRICS(X) \
    X(num_spans, "num_spans", COUNT, "spans", "spans that ended, or marks of a marker") \
    X(total_ns, "total_time", SUM, "s", "time between their begin and end") \
    X(min_ns, "min_time", MIN, "s", "shortest span") \
    X(max_ns, "max_time", MAX, "s", "longest span") \
    X(times, "span_histogram", HISTOGRAM, "s", "durations of the spans")

/* A counter of user code (weir/span.h), or of the engine: a level or a total, see weir_subject_lap.kind. */
#define WEIR_COUNTER_METRICS(X) \
    X(num_updates, "num_updates", COUNT, "updates", "times that it was set or added to") \
    X(last, "last_value", LAST, "units", "value at the end") \
    X(min, "min_value", LOWEST, "units", "a level's smallest value") \
    X(max, "max_value", HIGHEST, "units", "a level's largest value") \
    X(value_ns, "value_time", LEVEL, "units s", "a level's value x time") \
    X(known_ns, "known_time", SUM, "s", "time in which it had a value") \
    X(increase, "increase", GROWTH, "units", "by how much a total grew")

#define WEIR_METRIC_TYPE_COUNT     uint64_t
#define WEIR_METRIC_TYPE_SUM       int64_t
#define WEIR_METRIC_TYPE_LEVEL     double
#define WEIR_METRIC_TYPE_MIN       int64_t
#define WEIR_METRIC_TYPE_MAX       int64_t
#define WEIR_METRIC_TYPE_HISTOGRAM const weir_histogram *
#define WEIR_METRIC_TYPE_LAST      double
#define WEIR_METRIC_TYPE_LOWEST    double
#define WEIR_METRIC_TYPE_HIGHEST   double
#define WEIR_METRIC_TYPE_GROWTH    double

#define WEIR_METRIC_FIELD(field, name, kind, unit, meaning) WEIR_METRIC_TYPE_##kind field;

/* clang-format off */
typedef struct weir_task_metrics { WEIR_TASK_METRICS(WEIR_METRIC_FIELD) } weir_task_metrics;
typedef struct weir_queue_metrics { WEIR_QUEUE_METRICS(WEIR_METRIC_FIELD) } weir_queue_metrics;
typedef struct weir_pool_metrics { WEIR_POOL_METRICS(WEIR_METRIC_FIELD) } weir_pool_metrics;
typedef struct weir_process_metrics { WEIR_PROCESS_METRICS(WEIR_METRIC_FIELD) } weir_process_metrics;
typedef struct weir_machine_metrics { WEIR_MACHINE_METRICS(WEIR_METRIC_FIELD) } weir_machine_metrics;
typedef struct weir_span_metrics { WEIR_SPAN_METRICS(WEIR_METRIC_FIELD) } weir_span_metrics;
typedef struct weir_counter_metrics { WEIR_COUNTER_METRICS(WEIR_METRIC_FIELD) } weir_counter_metrics;
/* clang-format on */

/* A row of a table, for code that treats all metrics alike. */
typedef enum weir_metric_kind {
    WEIR_METRIC_COUNT,
    WEIR_METRIC_SUM,
    WEIR_METRIC_LEVEL,
    WEIR_METRIC_MIN,
    WEIR_METRIC_MAX,
    WEIR_METRIC_HISTOGRAM,
    WEIR_METRIC_LAST,
    WEIR_METRIC_LOWEST,
    WEIR_METRIC_HIGHEST,
    WEIR_METRIC_GROWTH, /* the sum of what is known; NAN = nothing is */
} weir_metric_kind;

typedef struct weir_metric {
    const char *name;
    weir_metric_kind kind;
    const char *unit;
    const char *meaning;
    size_t offset; /* of the field in its struct */
} weir_metric;

typedef struct weir_metric_table {
    const weir_metric *metrics;
    size_t num_metrics;
    size_t struct_size; /* of the struct that the offsets refer to */
} weir_metric_table;

/* What a lap describes. */
typedef enum weir_subject {
    WEIR_SUBJECT_STAGE, /* a stage, as in SPDL's task_stats */
    WEIR_SUBJECT_FLOW,  /* a source, route, merge or sink; the same metrics as a stage */
    WEIR_SUBJECT_QUEUE,
    WEIR_SUBJECT_POOL,    /* the threads of a pool */
    WEIR_SUBJECT_PROCESS, /* the process of the pipeline */
    WEIR_SUBJECT_MACHINE, /* the machine, or what a container sees of it */
    WEIR_SUBJECT_SPAN,    /* a span, frame or marker of user code */
    WEIR_SUBJECT_COUNTER, /* a value of a counter of user code */
    WEIR_NUM_SUBJECTS,
} weir_subject;

/* The metrics of any subject. */
typedef union weir_metrics {
    weir_task_metrics task; /* WEIR_SUBJECT_STAGE, WEIR_SUBJECT_FLOW */
    weir_queue_metrics queue;
    weir_pool_metrics pool;
    weir_process_metrics process;
    weir_machine_metrics machine;
    weir_span_metrics span;
    weir_counter_metrics counter;
} weir_metrics;

/* The table of a subject's metrics. Static; any thread. */
WEIR_API const weir_metric_table *weir_subject_metrics(weir_subject subject);

/* Resets the struct at `values`: no count, no sum, no other value, no histogram. Any thread. */
WEIR_API void weir_metrics_clear(const weir_metric_table *table, void *values);

/* Adds every value of `from` to `to` according to its kind; histograms are left unchanged (see
   weir_histogram_add()). Any thread. */
WEIR_API void weir_metrics_add(const weir_metric_table *table, void *to, const void *from);

#ifdef __cplusplus
}
#endif

#endif
