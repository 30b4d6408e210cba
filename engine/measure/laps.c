/*
 * Laps. A lap is taken as a whole under the lock: open spans are closed at its end and continue in the next lap, sums
 * and histograms are copied and reset. So every task is in exactly one lap, and all metrics of a lap are consistent.
 * Values from the kernel are read before; slow work (encoding the histograms) is done afterwards.
 *
 * Parts: the live histograms are emptied at least once a minute, whatever the interval is, so that 32 bits are enough
 * for a bucket. The parts of a long lap are joined.
 */
#include "laps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer_phase.h"
#include "kernel_stats.h"
#include "lock.h"
#include "machine_stats.h"
#include "outbox.h"
#include "pool.h"
#include "spans.h"
#include "taken_lap.h"
#include "thread_cpu.h"
#include "trace_ring.h"

static const int64_t longest_part_ns = 60 * WEIR_SECOND;
static const int64_t early_lap_ns = 1 * WEIR_SECOND; /* so that a killed run leaves at least this lap */

/* Kernel statistics of one thread. */
typedef struct thread_reading {
    weir_worker *worker;
    uint32_t pool; /* index of its pool */
    int64_t cpu_ns;
    weir_thread_kernel_stats now, before;
} thread_reading;

typedef struct weir_lap_taker {
    uint64_t number;
    int64_t start_ns;                 /* start of the current part */
    int64_t due_ns;                   /* end of the current lap; INT64_MAX = the end of the run */
    bool is_cut;                      /* the last part ended with a phase, or with a step that ends a lap */
    bool in_tail;                     /* parts up to the end of the work have been taken */
    uint64_t num_traced;              /* records of the engine up to the end of the part before */
    int64_t next_ns;                  /* the first multiple of the interval not yet reached */
    weir_taken_lap *parts;            /* parts of the current lap, joined; NULL = none yet */
    int64_t unix_offset_ns;           /* wall clock minus monotonic clock */
    int64_t unix_asleep_ns;           /* how long the machine had slept when that was measured */
    int64_t suspended_ns;             /* in the current part */
    int64_t asleep_ns;                /* CLOCK_BOOTTIME minus CLOCK_MONOTONIC: how long the machine has slept */
    int64_t noted_ns;                 /* suspensions until then are counted */
    int64_t service_read_ns;          /* when `service` was read */
    weir_thread_kernel_stats service; /* of the service thread */
    thread_reading *readings;         /* one for each thread of all pools, surplus ones too */
    uint32_t num_readings;
    uint32_t *num_known; /* for each pool: of its threads, how many have a reading */
    weir_machine_sources machine_sources;
    weir_machine_reading machine; /* at the start of the current part */
} weir_lap_taker;

/* ---- wall clock --------------------------------------------------------------------------------------------- */

/* 0 where it is not known. */
static int64_t machine_asleep_ns(void)
{
    struct timespec boot;
    if (clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
        return 0;
    return (int64_t)boot.tv_sec * WEIR_SECOND + boot.tv_nsec - weir_clock_ns();
}

/* An event tells that the clock was set: to readers of the database the laps do not follow each other. */
static void note_clock_change(weir_pipeline *pipeline, int64_t change_ns)
{
    static const int64_t least_ns = 100 * WEIR_MILLISECOND;
    char detail[32];
    if (change_ns >= -least_ns && change_ns <= least_ns)
        return;
    snprintf(detail, sizeof detail, "%+.3f s", (double)change_ns / WEIR_SECOND);
    weir_pipeline_event(pipeline, "clock_set", "pipeline", detail);
}

/*
 * Laps are measured by the monotonic clock. If the wall clock was read for each lap, each timestamp would be late by
 * the time that the thread waited before reading it. So only the offset between the two clocks is measured, and it is
 * kept until it changes because the clock was set or has drifted. A wait between the two readings only makes the
 * measurement less precise.
 */
int64_t weir__laps_unix_at_ns(weir_pipeline *pipeline, int64_t at_ns)
{
    static const int64_t tolerance_ns = WEIR_MILLISECOND;
    weir_lap_taker *laps = pipeline->laps;
    int64_t before_ns = weir_clock_ns();
    int64_t unix_ns = weir_clock_unix_ns();
    int64_t after_ns = weir_clock_ns();
    int64_t offset_ns = laps->unix_offset_ns, asleep_ns = laps->unix_asleep_ns;
    if (offset_ns >= unix_ns - after_ns - tolerance_ns && offset_ns <= unix_ns - before_ns + tolerance_ns)
        return at_ns + offset_ns;
    laps->unix_offset_ns = unix_ns - before_ns;
    laps->unix_asleep_ns = machine_asleep_ns();
    if (offset_ns != 0)
        note_clock_change(pipeline, laps->unix_offset_ns - laps->unix_asleep_ns - (offset_ns - asleep_ns));
    return at_ns + laps->unix_offset_ns;
}

/* ---- suspension --------------------------------------------------------------------------------------------- */

static int64_t explained_ns(const weir_thread_kernel_stats *now, const weir_thread_kernel_stats *before)
{
    return now->run_delay_ns < 0 ? 0 : now->run_delay_ns + now->cpu_ns - before->run_delay_ns - before->cpu_ns;
}

/*
 * A late thread has worked, has waited for a CPU (the kernel counts this as run-queue delay), or could not run at all
 * because its process was stopped. If the kernel does not count run-queue delay, a thread that is late by a whole
 * heartbeat was stopped. Each call continues where the one before ended, so that no time is missed or counted twice.
 */
static void note_progress_until(weir_lap_taker *laps, int64_t due_ns, int64_t now_ns)
{
    int64_t late_ns = now_ns - (due_ns > laps->noted_ns ? due_ns : laps->noted_ns);
    laps->noted_ns = now_ns;
    if (now_ns - laps->service_read_ns < WEIR_HEARTBEAT_NS) /* so not late either; a reading takes 20 us */
        return;
    weir_thread_kernel_stats now;
    weir__kernel_stats_of_thread(0, &now);
    int64_t known_ns = explained_ns(&now, &laps->service);
    if (late_ns >= WEIR_HEARTBEAT_NS && known_ns < late_ns / 2)
        laps->suspended_ns += late_ns - known_ns;
    laps->service = now;
    laps->service_read_ns = now_ns;
}

void weir__laps_note_start(weir_pipeline *pipeline)
{
    pipeline->laps->noted_ns = weir_clock_ns();
}

void weir__laps_note_progress(weir_pipeline *pipeline, int64_t due_ns)
{
    weir_lap_taker *laps = pipeline->laps;
    int64_t asleep_ns = machine_asleep_ns();
    if (asleep_ns - laps->asleep_ns > WEIR_HEARTBEAT_NS)
        laps->suspended_ns += asleep_ns - laps->asleep_ns;
    laps->asleep_ns = asleep_ns;
    note_progress_until(laps, due_ns, weir_clock_ns());
}

/* ---- one part of a lap -------------------------------------------------------------------------------------- */

/* Closes the open spans at the end of the lap. */
static void settle_states_locked(weir_pipeline *pipeline)
{
    int64_t now_ns = pipeline->core.now_ns;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        for (uint32_t j = 0; j < node->core.num_outs; j++)
            weir__queue_settle(&node->core.outs[j], now_ns);
        for (uint32_t j = 0; j < node->core.num_made; j++) {
            weir__slot *slot = node->core.slots[j];
            node->core.time_ns[slot->state] += now_ns - slot->since_ns;
            slot->since_ns = now_ns;
        }
    }
    const weir_lap_taker *laps = pipeline->laps;
    for (uint32_t i = 0; i < laps->num_readings; i++) {
        weir_worker *worker = laps->readings[i].worker;
        weir__thread_cpu_settle_locked(worker, laps->readings[i].cpu_ns);
        if (!worker->running)
            continue;
        worker->pool->lap.busy_ns += now_ns - worker->busy_since_ns;
        worker->busy_since_ns = now_ns;
    }
}

/* A sum with a part that is not known (negative) is not known. */
static void add_known(int64_t *sum_ns, int64_t part_ns)
{
    if (*sum_ns < 0 || part_ns < 0)
        *sum_ns = -1;
    else
        *sum_ns = part_ns > INT64_MAX - *sum_ns ? INT64_MAX : *sum_ns + part_ns;
}

static void take_histogram_locked(weir_live_histogram *taken, weir_live_histogram *recorded)
{
    *taken = *recorded;
    *recorded = (weir_live_histogram){ 0 };
}

/* Returns the CPU time of its tasks in other processes. */
static int64_t take_node_locked(weir_node *node, weir_task_metrics *taken, weir_live_histogram *run_times)
{
    int64_t outside_cpu_ns = atomic_exchange_explicit(&node->outside_cpu_ns, 0, memory_order_relaxed);
    *taken = node->core.lap;
    taken->busy_ns = node->core.time_ns[SLOT_RUNNING] + node->core.time_ns[SLOT_PENDING];
    taken->wait_in_ns = node->core.time_ns[SLOT_IDLE];
    taken->wait_thread_ns = node->core.time_ns[SLOT_READY];
    taken->wait_turn_ns = node->core.time_ns[SLOT_TURN];
    taken->wait_out_ns = node->core.time_ns[SLOT_BLOCKED];
    memset(node->core.time_ns, 0, sizeof node->core.time_ns);
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_STAGE), &node->core.lap);
    if (taken->cpu_ns > taken->busy_ns) { /* the previous reading was a little after the end of the previous lap */
        node->core.lap.cpu_ns = taken->cpu_ns - taken->busy_ns;
        taken->cpu_ns = taken->busy_ns;
    }
    add_known(&taken->cpu_ns, outside_cpu_ns); /* several processes, or threads, may have used it in one task */
    if (node->core.run_times)
        take_histogram_locked(run_times, node->core.run_times);
    return outside_cpu_ns;
}

static void take_queue_locked(weir__queue *queue, weir_queue_metrics *taken, weir_live_histogram times[2])
{
    *taken = queue->lap;
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_QUEUE), &queue->lap);
    queue->lap.max_depth = queue->depth - queue->num_epoch_ends;
    queue->lap.max_bytes = (int64_t)queue->bytes;
    take_histogram_locked(&times[0], queue->put_times);
    take_histogram_locked(&times[1], queue->get_times);
    if (!queue->latencies)
        taken->latency_ns = taken->min_latency_ns = taken->max_latency_ns = -1;
}

/* Returns the CPU time of the tasks in other processes. */
static int64_t take_all_locked(weir_pipeline *pipeline, weir_taken_lap *record, weir_live_histogram *times)
{
    settle_states_locked(pipeline);
    int64_t outside_cpu_ns = 0;
    weir_queue_metrics *queue = record->queues;
    weir_live_histogram *queue_times = times + pipeline->core.num_nodes;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        add_known(&outside_cpu_ns, take_node_locked(node, &record->nodes[i], &times[i]));
        for (uint32_t j = 0; j < node->core.num_outs; j++, queue_times += 2)
            take_queue_locked(&node->core.outs[j], queue++, queue_times);
    }
    take_histogram_locked(queue_times, pipeline->core.sink->latencies);
    for (uint32_t i = 0; i < pipeline->num_pools; i++) {
        weir_pool *pool = pipeline->pools[i];
        weir__pool_settle_locked(pool);
        record->pools[i] = pool->lap;
        weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_POOL), &pool->lap);
    }
    return outside_cpu_ns;
}

/* Room for the threads that pools have got. Out of memory: they are read in the next lap. */
static void find_new_threads(weir_pipeline *pipeline)
{
    weir_lap_taker *laps = pipeline->laps;
    uint32_t num_threads = 0;
    weir__engine_lock(pipeline);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        num_threads += pipeline->pools[i]->num_made;
    weir__engine_unlock(pipeline);
    if (num_threads <= laps->num_readings)
        return;
    thread_reading *readings = calloc(num_threads, sizeof *readings), *before = laps->readings;
    if (!readings)
        return;
    if (before) /* not at the first time */
        memcpy(readings, before, laps->num_readings * sizeof *readings);
    laps->readings = readings;
    free(before);
    weir__engine_lock(pipeline);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        for (uint32_t *known = &laps->num_known[i];
             *known < pipeline->pools[i]->num_made && laps->num_readings < num_threads; ++*known)
            readings[laps->num_readings++] = (thread_reading){ pipeline->pools[i]->workers[*known], .pool = i };
    weir__engine_unlock(pipeline);
}

static void read_threads(weir_lap_taker *laps)
{
    for (uint32_t i = 0; i < laps->num_readings; i++) {
        thread_reading *reading = &laps->readings[i];
        int tid = atomic_load(&reading->worker->tid);
        reading->cpu_ns = weir__thread_cpu_read_ns(reading->worker);
        reading->before = reading->now;
        if (tid)
            weir__kernel_stats_of_thread(tid, &reading->now);
    }
}

static int64_t counted_since(int64_t now, int64_t before)
{
    return now < 0 || before < 0 ? -1 : now - before;
}

static void add_thread_reading(weir_pool_metrics *pool, const thread_reading *reading)
{
    const weir_thread_kernel_stats *now = &reading->now, *before = &reading->before;
    weir_pool_metrics thread = {
        .cpu_ns = counted_since(now->cpu_ns, before->cpu_ns),
        .run_delay_ns = counted_since(now->run_delay_ns, before->run_delay_ns),
        .num_voluntary = counted_since(now->num_voluntary, before->num_voluntary),
        .num_involuntary = counted_since(now->num_involuntary, before->num_involuntary),
        .num_minor_faults = counted_since(now->num_minor_faults, before->num_minor_faults),
        .num_major_faults = counted_since(now->num_major_faults, before->num_major_faults),
    };
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_POOL), pool, &thread);
}

static void fill_pools(const weir_lap_taker *laps, weir_taken_lap *record)
{
    weir_process_metrics *process = &record->process;
    process->read_delay_ns = laps->machine_sources.counts_read_delay ? 0 : -1;
    process->pool_cpu_ns = process->run_delay_ns = 0;
    for (uint32_t i = 0; i < record->pipeline->num_pools; i++) {
        weir_pool_metrics *pool = &record->pools[i];
        pool->idle_ns -= pool->busy_ns;
        if (pool->idle_ns < 0)
            pool->idle_ns = 0; /* surplus threads were still busy */
    }
    for (uint32_t i = 0; i < laps->num_readings; i++) {
        const thread_reading *reading = &laps->readings[i];
        add_thread_reading(&record->pools[reading->pool], reading);
        add_known(&process->read_delay_ns, counted_since(reading->now.read_delay_ns, reading->before.read_delay_ns));
    }
    for (uint32_t i = 0; i < record->pipeline->num_pools; i++) {
        add_known(&process->pool_cpu_ns, record->pools[i].cpu_ns);
        add_known(&process->run_delay_ns, record->pools[i].run_delay_ns);
    }
}

/* What the process and the machine did since the part before. */
static void fill_machine(const weir_pipeline *pipeline, const weir_machine_reading *now, weir_taken_lap *record)
{
    weir_lap_taker *laps = pipeline->laps;
    weir__machine_subtract(now, &laps->machine, &record->process, &record->machine);
    record->process.budget_ns = pipeline->num_cpus * record->lap.elapsed_ns;
    laps->machine = *now;
}

/* What child processes have used for tasks counts as if the threads of the pools had used it. */
static void add_outside(weir_taken_lap *record, int64_t cpu_ns)
{
    int64_t *other_ns = &record->machine.other_cpu_ns;
    add_known(&record->process.cpu_ns, cpu_ns);
    add_known(&record->process.pool_cpu_ns, cpu_ns);
    if (*other_ns >= 0)
        *other_ns = *other_ns > cpu_ns ? *other_ns - cpu_ns : 0;
}

/* A lap without its percentiles would not agree with its counts, so that one allocation that fails is not the end. */
static void store_histogram(weir_taken_lap *lap, size_t index, const weir_live_histogram *recorded)
{
    enum { ATTEMPTS = 10 };
    for (int i = 0; i < ATTEMPTS; i++)
        if (weir__taken_lap_store(lap, index, recorded))
            return;
    weir_log(WEIR_LOG_ERROR, "out of memory: the percentiles of a lap are lost");
}

/* The figures have to be those of the end of the lap: they are read again if this thread lost its CPU meanwhile. */
static void read_machine(weir_lap_taker *laps, weir_machine_reading *machine)
{
    enum { ATTEMPTS = 3 };
    int64_t start_ns;
    int num_read = 0;
    do {
        start_ns = weir_clock_ns();
        weir__machine_read(&laps->machine_sources, machine);
    } while (++num_read < ATTEMPTS && weir_clock_ns() - start_ns > WEIR_MILLISECOND);
}

/* Whether user code has reported anything in this part of the tail, or the trace shows anything. */
static bool is_reported_locked(const weir_pipeline *pipeline, const weir_taken_lap *part)
{
    bool is_reported = pipeline->tail_marked || weir__trace_count_locked(pipeline) != pipeline->laps->num_traced ||
                       (pipeline->trace && !pipeline->wants_marks); /* spans are not known */
    for (size_t i = 0; i < part->num_marks && !is_reported; i++)
        is_reported = !part->marks[i].name->counter || part->marks[i].counter.num_updates > 0;
    return is_reported;
}

/* False = the last part of the tail, in which nothing was reported: it belongs to no lap. */
static bool take_part(weir_pipeline *pipeline, weir_taken_lap *record, weir_live_histogram *times, bool last)
{
    weir_lap_taker *laps = pipeline->laps;
    weir_machine_reading machine;
    find_new_threads(pipeline);
    read_threads(laps);
    if (pipeline->wants_laps)
        read_machine(laps, &machine);
    if (last)
        weir__span_store_take(pipeline, record);

    engine_lock_at(pipeline, weir_clock_ns());
    int64_t end_ns = pipeline->core.now_ns;
    int64_t outside_cpu_ns = take_all_locked(pipeline, record, times);
    laps->is_cut = pipeline->cut_lap;
    weir__phase_lap_ended_locked(pipeline, &record->phase);
    bool counts = !last || !laps->in_tail || is_reported_locked(pipeline, record);
    if (counts)
        weir__trace_mark_locked(pipeline, WEIR_TRACE_LAP, 0);
    laps->num_traced = weir__trace_count_locked(pipeline);
    if (last) /* the record ends when the last lap does */
        weir__trace_end_locked(pipeline, counts ? end_ns : laps->start_ns);
    weir__engine_unlock(pipeline);
    if (!counts)
        return false;
    note_progress_until(laps, 0, end_ns);

    record->lap = (weir_lap){
        .end_unix_ns = weir__laps_unix_at_ns(pipeline, end_ns),
        .elapsed_ns = end_ns - laps->start_ns,
        .suspended_ns = laps->suspended_ns,
        .num_joined = 1,
        .position = { .first_step = record->phase.first_step, .last_step = record->phase.last_step },
    };
    laps->start_ns = end_ns;
    laps->suspended_ns = 0;
    if (pipeline->wants_laps)
        fill_machine(pipeline, &machine, record);
    fill_pools(laps, record);
    add_outside(record, outside_cpu_ns);
    for (size_t i = 0; i < taken_lap_num_stored(pipeline); i++)
        store_histogram(record, i, &times[i]);
    if (!last)
        weir__span_store_take(pipeline, record);
    return true;
}

/* ---- laps --------------------------------------------------------------------------------------------------- */

int64_t weir__laps_due_ns(const weir_pipeline *pipeline)
{
    const weir_lap_taker *laps = pipeline->laps;
    if (laps->in_tail)
        return laps->parts ? laps->due_ns : INT64_MAX;
    int64_t part_ns = laps->start_ns + longest_part_ns;
    return laps->due_ns < part_ns ? laps->due_ns : part_ns;
}

/* Laps end at multiples of the interval since the start. Missed ends are skipped. */
static void plan_next(weir_pipeline *pipeline, int64_t now_ns)
{
    weir_lap_taker *laps = pipeline->laps;
    int64_t interval_ns = pipeline->stats_interval_ns;
    if (interval_ns == WEIR_FOREVER || laps->due_ns > now_ns)
        return;
    if (laps->next_ns <= now_ns)
        laps->next_ns += (now_ns - laps->next_ns) / interval_ns * interval_ns + interval_ns;
    laps->due_ns = laps->next_ns;
}

/* Passes laps->parts on. False = out of memory: they are joined to the next lap. */
static bool hand_over(weir_pipeline *pipeline)
{
    weir_lap_taker *laps = pipeline->laps;
    if (!laps->parts)
        return true; /* the tail has nothing */
    laps->parts->lap.number = laps->number++;
    laps->parts->lap.num_joined = 1;
    if (!pipeline->wants_laps)
        weir__taken_lap_free(laps->parts);
    else if (!weir__outbox_add_lap(pipeline, laps->parts))
        return false;
    laps->parts = NULL;
    return true;
}

/* Moves the recorded metrics to laps->parts. False = out of memory: nothing was moved, the lap continues. */
static bool take_lap(weir_pipeline *pipeline, bool last)
{
    weir_lap_taker *laps = pipeline->laps;
    weir_taken_lap *part = weir__taken_lap_new(pipeline);
    weir_live_histogram *times = calloc(taken_lap_num_stored(pipeline), sizeof *times);
    bool taken = part && times;
    if (taken) {
        if (!take_part(pipeline, part, times, last))
            weir__taken_lap_free(part);
        else if (laps->parts)
            weir__taken_lap_join(laps->parts, part);
        else
            laps->parts = part;
    } else {
        weir__taken_lap_free(part);
    }
    free(times);
    return taken;
}

void weir__laps_take(weir_pipeline *pipeline, bool now)
{
    int64_t now_ns = weir_clock_ns();
    if (!now && now_ns < weir__laps_due_ns(pipeline))
        return;
    if (pipeline->laps->in_tail && !now)
        hand_over(pipeline);
    else if (take_lap(pipeline, false) && (pipeline->laps->is_cut || now_ns >= pipeline->laps->due_ns))
        hand_over(pipeline);
    plan_next(pipeline, now_ns);
}

void weir__laps_begin_tail(weir_pipeline *pipeline)
{
    pipeline->laps->in_tail = take_lap(pipeline, false); /* else the last lap has both, which loses nothing */
}

int64_t weir__laps_take_last(weir_pipeline *pipeline)
{
    enum { ATTEMPTS = 10 };
    bool taken = false;
    for (int i = 0; i < ATTEMPTS && !taken; i++)
        taken = take_lap(pipeline, true) && hand_over(pipeline);
    if (!taken)
        weir_log(WEIR_LOG_ERROR, "out of memory: the last lap could not be reported to the observers");
    weir__span_store_close(pipeline);
    return pipeline->laps->start_ns;
}

int weir__laps_init(weir_pipeline *pipeline, int64_t start_ns)
{
    weir_lap_taker *laps = pipeline->laps = calloc(1, sizeof *laps);
    if (!laps)
        return WEIR_ENOMEM;
    laps->num_known = calloc(pipeline->num_pools, sizeof *laps->num_known);
    if (!laps->num_known)
        return WEIR_ENOMEM;
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        pipeline->pools[i]->threads_since_ns = start_ns;
    find_new_threads(pipeline);
    if (!laps->readings)
        return WEIR_ENOMEM;
    if (pipeline->wants_laps) {
        weir__machine_sources_init(&laps->machine_sources);
        weir__machine_read(&laps->machine_sources, &laps->machine);
    }

    int64_t interval_ns = pipeline->stats_interval_ns;
    laps->start_ns = start_ns;
    laps->asleep_ns = machine_asleep_ns();
    laps->next_ns = laps->due_ns = interval_ns == WEIR_FOREVER ? INT64_MAX : start_ns + interval_ns;
    if (interval_ns > early_lap_ns)
        laps->due_ns = start_ns + early_lap_ns;
    return pipeline->wants_marks && pipeline->core.measures ? weir__span_store_open(pipeline) : WEIR_OK;
}

void weir__laps_destroy(weir_pipeline *pipeline)
{
    if (!pipeline->laps)
        return;
    weir__span_store_close(pipeline);
    weir__taken_lap_free(pipeline->laps->parts);
    free(pipeline->laps->readings);
    free(pipeline->laps->num_known);
    free(pipeline->laps);
}
