/*
 * Laps. All parts of a lap (part.h) are taken as a whole under the lock, so every task is in exactly one lap, and all metrics
 * of a lap are consistent. Values from the kernel are read before; slow work (encoding the histograms) is done afterwards.
 *
 * Parts are taken at least once a minute, whatever the interval is, so that 32 bits are enough for a bucket of a live
 * histogram. Those of one lap, mode and phase are joined.
 */
#include "engine/measure/laps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/unix_clock.h"
#include "engine/measure/consumer_position.h"
#include "engine/measure/current_part.h"
#include "engine/measure/machine_stats.h"
#include "engine/measure/outbox.h"
#include "engine/measure/part.h"
#include "engine/measure/reporting.h"
#include "engine/measure/thread_cpu.h"
#include "engine/spans/spans.h"
#include "engine/state/kernel_stats.h"
#include "engine/state/lock.h"
#include "engine/trace/trace_ring.h"

static const int64_t longest_part_ns = 60 * WEIR_SECOND;
static const int64_t early_lap_ns = 1 * WEIR_SECOND; /* so that a killed run leaves at least this lap */

/* Kernel statistics of one thread. */
typedef struct thread_reading {
    weir_worker *worker;
    int64_t cpu_ns;
    weir_thread_kernel_stats now;
    weir_pool_metrics counted; /* since the reading before */
    int64_t read_delay_ns;     /* the same */
} thread_reading;

typedef struct weir_lap_taker {
    uint64_t number;
    int64_t start_ns;                 /* parts up to this time have been taken */
    int64_t told_ns;                  /* parts up to this time have been passed on */
    int64_t due_ns;                   /* end of the current lap; INT64_MAX = the end of the run */
    bool in_tail;                     /* parts up to the end of the work have been taken */
    uint64_t num_traced;              /* records of the engine up to the end of the part before */
    int64_t next_ns;                  /* the first multiple of the interval not yet reached */
    weir_part *parts;                 /* of the current lap, in the order in which they were last left */
    int64_t unix_offset_ns;           /* wall clock minus monotonic clock */
    int64_t unix_asleep_ns;           /* how long the machine had slept when that was measured */
    int64_t suspended_ns;             /* since start_ns */
    int64_t asleep_ns;                /* CLOCK_BOOTTIME minus CLOCK_MONOTONIC: how long the machine has slept */
    int64_t noted_ns;                 /* suspensions until then are counted */
    int64_t not_taken_ns;             /* see weir__laps_take_suspension() */
    int64_t service_read_ns;          /* when `service` was read */
    weir_thread_kernel_stats service; /* of the service thread */
    thread_reading *readings;         /* one for each thread of all pools, surplus ones too */
    uint32_t num_readings;
    uint32_t *num_known; /* for each pool: of its threads, how many have a reading */
    weir_machine_sources machine_sources;
    weir_machine_reading machine; /* at start_ns */
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
    weir__outbox_add_event(pipeline, "clock_set", "pipeline", detail);
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
    int64_t unix_ns = unix_clock_ns();
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
    const weir_pool_metrics *last = &now->counted, *first = &before->counted;
    return last->run_delay_ns < 0 ? 0 : last->run_delay_ns + last->cpu_ns - first->run_delay_ns - first->cpu_ns;
}

/*
 * A late thread has worked, has waited for a CPU (the kernel counts this as run-queue delay), or could not run at all
 * because its process was stopped. If the kernel does not count run-queue delay, a thread that is late by a whole
 * heartbeat was stopped. Each call continues where the one before ended, so that no time is missed or counted twice.
 */
static void note_progress_until(weir_lap_taker *laps, int64_t due_ns, int64_t now_ns)
{
    int64_t late_ns = now_ns - (due_ns > laps->noted_ns ? due_ns : laps->noted_ns),
            since_ns = now_ns - laps->noted_ns;
    laps->noted_ns = now_ns;
    if (now_ns - laps->service_read_ns < WEIR_HEARTBEAT_NS) /* so not late either; a reading takes 20 us */
        return;
    weir_thread_kernel_stats now;
    weir__kernel_stats_of_thread(0, &now);
    int64_t known_ns = explained_ns(&now, &laps->service);
    if (late_ns >= WEIR_HEARTBEAT_NS && known_ns < late_ns / 2) {
        laps->suspended_ns += late_ns - known_ns;
        laps->not_taken_ns += since_ns;
    }
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

int64_t weir__laps_take_suspension(weir_pipeline *pipeline, int64_t *until_ns)
{
    int64_t suspended_ns = pipeline->laps->not_taken_ns;
    pipeline->laps->not_taken_ns = 0;
    *until_ns = pipeline->laps->noted_ns;
    return suspended_ns;
}

/* ---- what the kernel counts ---------------------------------------------------------------------------------- */

/* Since the readings before: of the pools, the process and the machine. */
typedef struct kernel_counts {
    weir_machine_reading now, counted;
} kernel_counts;

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
            readings[laps->num_readings++] = (thread_reading){ .worker = pipeline->pools[i]->workers[*known] };
    weir__engine_unlock(pipeline);
}

/* Child processes count as if a thread of the pool had waited. */
static void add_child_delays(weir_pipeline *pipeline)
{
    const weir_lap_taker *laps = pipeline->laps;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        uint32_t thread = 0;
        while (thread < laps->num_readings && laps->readings[thread].worker->pool != node->pool)
            thread++;
        if (thread < laps->num_readings)
            weir__add_known(&laps->readings[thread].counted.run_delay_ns,
                            atomic_exchange_explicit(&node->outside_delay_ns, 0, memory_order_relaxed));
    }
}

static void read_threads(weir_lap_taker *laps)
{
    for (uint32_t i = 0; i < laps->num_readings; i++) {
        thread_reading *reading = &laps->readings[i];
        const weir_thread_kernel_stats before = reading->now, *now = &reading->now;
        int tid = atomic_load(&reading->worker->tid);
        reading->cpu_ns = weir__thread_cpu_read_ns(reading->worker);
        if (tid)
            weir__kernel_stats_of_thread(tid, &reading->now);
        weir__metrics_subtract(weir_subject_metrics(WEIR_SUBJECT_POOL), &now->counted, &before.counted,
                               &reading->counted);
        reading->read_delay_ns =
            now->read_delay_ns < 0 || before.read_delay_ns < 0 ? -1 : now->read_delay_ns - before.read_delay_ns;
    }
}

/* What child processes have used for tasks counts as if the threads of the pools had used it. */
static void sum_counts(const weir_pipeline *pipeline, kernel_counts *counts, int64_t outside_cpu_ns)
{
    weir_lap_taker *laps = pipeline->laps;
    weir_process_metrics *process = &counts->counted.process;
    int64_t *other_ns = &counts->counted.machine.other_cpu_ns;
    if (pipeline->reporting->wants_laps)
        weir__machine_subtract(&counts->now, &laps->machine, &counts->counted);
    process->read_delay_ns = laps->machine_sources.counts_read_delay ? 0 : -1;
    process->pool_cpu_ns = process->run_delay_ns = 0;
    for (uint32_t i = 0; i < laps->num_readings; i++) {
        weir__add_known(&process->read_delay_ns, laps->readings[i].read_delay_ns);
        weir__add_known(&process->pool_cpu_ns, laps->readings[i].counted.cpu_ns);
        weir__add_known(&process->run_delay_ns, laps->readings[i].counted.run_delay_ns);
    }
    weir__add_known(&process->cpu_ns, outside_cpu_ns);
    weir__add_known(&process->pool_cpu_ns, outside_cpu_ns);
    if (*other_ns >= 0)
        *other_ns = *other_ns > outside_cpu_ns ? *other_ns - outside_cpu_ns : 0;
    laps->machine = counts->now;
}

/* Adds the share of the part, which lasted from begin_ns to end_ns of the time between the readings. */
static void add_counts(weir_part *part, const kernel_counts *counts, int64_t begin_ns, int64_t end_ns,
                       int64_t whole_ns)
{
    const weir_pipeline *pipeline = part->pipeline;
    const weir_lap_taker *laps = pipeline->laps;
    weir_metrics *machine = &part->metrics[pipeline->open_lap->num_subjects - 1], *process = machine - 1;
    weir__metrics_add_share(weir_subject_metrics(WEIR_SUBJECT_PROCESS), process, &counts->counted.process, begin_ns,
                            end_ns, whole_ns);
    weir__metrics_add_share(weir_subject_metrics(WEIR_SUBJECT_MACHINE), machine, &counts->counted.machine, begin_ns,
                            end_ns, whole_ns);
    process->process.budget_ns = pipeline->num_cpus * part->lap.elapsed_ns;
    for (uint32_t i = 0; i < pipeline->num_pools; i++) {
        weir_pool_metrics *pool = &part->metrics[pipeline->pools[i]->subject].pool;
        pool->idle_ns -= pool->busy_ns;
        if (pool->idle_ns < 0)
            pool->idle_ns = 0; /* surplus threads were still busy */
    }
    for (uint32_t i = 0; i < laps->num_readings; i++) {
        const thread_reading *reading = &laps->readings[i];
        weir__metrics_add_share(weir_subject_metrics(WEIR_SUBJECT_POOL),
                                &part->metrics[reading->worker->pool->subject], &reading->counted, begin_ns, end_ns,
                                whole_ns);
    }
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

/* ---- parts --------------------------------------------------------------------------------------------------- */

/* Whether user code has reported anything in the tail, or the trace shows anything. */
static bool is_reported_locked(const weir_pipeline *pipeline)
{
    return pipeline->open_lap->tail_marked || weir__trace_count_locked(pipeline) != pipeline->laps->num_traced ||
           (pipeline->trace && !pipeline->reporting->wants_marks); /* spans are not known */
}

/*
 * The parts of laps that have ended; with `fresh`, also those of the current lap, which ends if ends_lap. last: they end with
 * the run; NULL then also says that nothing was reported in the tail, which belongs to no lap.
 */
static weir_part *take_parts(weir_pipeline *pipeline, weir_part *fresh, bool last, kernel_counts *counts)
{
    weir_lap_taker *laps = pipeline->laps;
    int64_t outside_cpu_ns;
    find_new_threads(pipeline);
    read_threads(laps);
    add_child_delays(pipeline);
    if (pipeline->reporting->wants_laps)
        read_machine(laps, &counts->now);
    bool has_marks = last && weir__span_store_has_more(pipeline);

    engine_lock_at(pipeline, weir_clock_ns());
    for (uint32_t i = 0; i < laps->num_readings; i++)
        weir__thread_cpu_settle_locked(laps->readings[i].worker, laps->readings[i].cpu_ns);
    weir_part *taken = weir__parts_take_locked(pipeline, fresh, &outside_cpu_ns);
    int64_t now_ns = pipeline->core.now_ns;
    bool are_counted = !last || !laps->in_tail || has_marks || is_reported_locked(pipeline);
    if (fresh && are_counted)
        weir__trace_mark_locked(pipeline, WEIR_TRACE_LAP, 0);
    laps->num_traced = weir__trace_count_locked(pipeline);
    if (last) /* the record ends when the last lap does */
        weir__trace_end_locked(pipeline, are_counted ? now_ns : laps->start_ns);
    weir__engine_unlock(pipeline);
    note_progress_until(laps, 0, now_ns);
    sum_counts(pipeline, counts, outside_cpu_ns);
    if (are_counted)
        return taken;
    weir__part_free(taken);
    return NULL;
}

/* Of one lap, mode and phase there is one part, at the place of the later one. */
static void add_to_lap(weir_lap_taker *laps, weir_part *part)
{
    weir_part **link = weir__part_find(&laps->parts, part->mode, part->phase), *before = *link;
    if (before) {
        *link = before->next;
        before->next = NULL;
        weir__part_join(before, part);
        part = before;
    }
    while (*link)
        link = &(*link)->next;
    *link = part;
}

/* Passes the parts of the current lap on. False = out of memory: the others belong to the next lap. */
static bool hand_over(weir_pipeline *pipeline)
{
    weir_lap_taker *laps = pipeline->laps;
    for (weir_part *part; (part = laps->parts);) {
        laps->parts = part->next;
        part->next = NULL;
        part->ends_lap = false;
        part->lap.number = laps->number;
        part->lap.num_joined = 1;
        part->lap.end_unix_ns = weir__laps_unix_at_ns(pipeline, laps->told_ns + part->lap.elapsed_ns);
        int64_t elapsed_ns = part->lap.elapsed_ns;
        bool is_counted = !part->paused;
        if (!pipeline->reporting->wants_laps || !is_counted) {
            weir__part_free(part);
        } else if (!weir__outbox_add_lap(pipeline, part)) {
            part->next = laps->parts;
            laps->parts = part;
            return false;
        }
        laps->number += is_counted;
        laps->told_ns += elapsed_ns;
    }
    return true;
}

/* Where the sums of user code go. */
typedef struct mark_taker {
    weir_pipeline *pipeline;
    weir_part *parts; /* all that were taken */
    bool last;        /* they end with the run */
} mark_taker;

/* NULL = of a part that will be taken. If it was taken before, or is of a pause, the sum is of the last of these that is not of a
   pause; so are counters. */
static weir_part *part_of_sum(const mark_taker *taker, uint64_t part_id)
{
    weir_part *found = NULL;
    for (weir_part *part = taker->parts; part && !(found && found->id == part_id); part = part->next)
        found = part->paused ? found : part;
    bool is_other = found && part_id && found->id != part_id;
    return is_other && !taker->last && weir__part_is_open(taker->pipeline, part_id) ? NULL : found;
}

/* Without memory, a sum of a span remains for the next lap. */
static bool take_mark(void *self, const weir_span_name *name, uint64_t part_id, const void *metrics)
{
    weir_part_mark mark = { .name = name };
    weir_part *part = part_of_sum(self, part_id);
    if (name->counter)
        mark.counter = *(const weir_counter_metrics *)metrics;
    else
        mark.span = *(const weir_span_metrics *)metrics;
    bool is_taken = part && (name->counter || weir__stored_histogram_set(&mark.times, mark.span.times)) &&
                    weir__part_add_mark(part, &mark);
    free(mark.times.bytes);
    return is_taken;
}

static void take_marks(weir_pipeline *pipeline, weir_part *parts, bool last)
{
    mark_taker taker = { pipeline, parts, last };
    uint64_t refused = weir__span_store_take(pipeline, take_mark, &taker);
    if (refused) {
        char detail[40];
        snprintf(detail, sizeof detail, "%llu", (unsigned long long)refused);
        weir__outbox_add_event(pipeline, "span_names_refused", "pipeline", detail);
    }
}

/* Moves what was measured to the laps. */
static void add_parts(weir_pipeline *pipeline, weir_part *taken, const kernel_counts *counts, bool last)
{
    weir_lap_taker *laps = pipeline->laps;
    int64_t whole_ns = 0, begin_ns = 0, suspended_ns = laps->suspended_ns;
    for (weir_part *part = taken; part; part = part->next)
        whole_ns += part->lap.elapsed_ns;
    for (weir_part *part = taken; part; part = part->next) {
        int64_t end_ns = begin_ns + part->lap.elapsed_ns;
        add_counts(part, counts, begin_ns, part->next ? end_ns : whole_ns, whole_ns);
        part->lap.suspended_ns =
            part->next && suspended_ns > part->lap.elapsed_ns ? part->lap.elapsed_ns : suspended_ns;
        suspended_ns -= part->lap.suspended_ns;
        begin_ns = end_ns;
        weir__part_store(part);
    }
    laps->suspended_ns = 0;
    laps->start_ns += whole_ns;
    take_marks(pipeline, taken, last);
    for (weir_part *part = taken, *next; part; part = next) {
        bool ends_lap = part->ends_lap;
        next = part->next;
        part->next = NULL;
        add_to_lap(laps, part);
        if (ends_lap)
            hand_over(pipeline);
    }
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

/* Takes what was measured up to now, or (!all) the parts of laps that have ended. False = out of memory: nothing was taken, the
   lap continues. */
static bool take_measured(weir_pipeline *pipeline, bool all, bool last)
{
    kernel_counts counts = { .now = { .process = { 0 } } };
    weir_part *fresh = all ? weir__part_new(pipeline) : NULL;
    if (all && !fresh)
        return false;
    weir_part *taken = take_parts(pipeline, fresh, last, &counts);
    if (taken)
        add_parts(pipeline, taken, &counts, last);
    return true;
}

void weir__laps_take(weir_pipeline *pipeline, bool lap_ended)
{
    weir_lap_taker *laps = pipeline->laps;
    int64_t now_ns = weir_clock_ns();
    if (lap_ended)
        take_measured(pipeline, false, false);
    if (now_ns < weir__laps_due_ns(pipeline))
        return;
    if ((laps->in_tail || take_measured(pipeline, true, false)) && now_ns >= laps->due_ns)
        hand_over(pipeline);
    plan_next(pipeline, now_ns);
}

void weir__laps_begin_tail(weir_pipeline *pipeline)
{
    pipeline->laps->in_tail =
        take_measured(pipeline, true, false); /* else the last lap has both, which loses nothing */
}

int64_t weir__laps_take_last(weir_pipeline *pipeline)
{
    enum { ATTEMPTS = 10 };
    bool taken = false;
    for (int i = 0; i < ATTEMPTS && !taken; i++)
        taken = take_measured(pipeline, true, true) && hand_over(pipeline);
    if (!taken)
        weir_log(WEIR_LOG_ERROR, "out of memory: the last lap could not be reported to the observers");
    weir__span_store_close(pipeline);
    return pipeline->laps->start_ns;
}

int weir__laps_init(weir_pipeline *pipeline, int64_t start_ns)
{
    weir_lap_taker *laps = pipeline->laps = calloc(1, sizeof *laps);
    pipeline->open_lap = calloc(1, sizeof *pipeline->open_lap);
    if (!laps || !pipeline->open_lap)
        return WEIR_ENOMEM;
    laps->num_known = calloc(pipeline->num_pools, sizeof *laps->num_known);
    if (!laps->num_known)
        return WEIR_ENOMEM;
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        pipeline->pools[i]->threads_since_ns = start_ns;
    find_new_threads(pipeline);
    if (!laps->readings)
        return WEIR_ENOMEM;
    if (pipeline->reporting->wants_laps) {
        weir__machine_sources_init(&laps->machine_sources);
        weir__machine_read(&laps->machine_sources, &laps->machine);
    }

    int64_t interval_ns = pipeline->stats_interval_ns;
    pipeline->sources_ended = weir__position_sources_ended_locked;
    laps->start_ns = laps->told_ns = start_ns;
    laps->asleep_ns = machine_asleep_ns();
    laps->next_ns = laps->due_ns = interval_ns == WEIR_FOREVER ? INT64_MAX : start_ns + interval_ns;
    if (interval_ns > early_lap_ns)
        laps->due_ns = start_ns + early_lap_ns;
    if (!pipeline->core.measures)
        return WEIR_OK;
    if (weir__part_subjects_new(pipeline) != WEIR_OK)
        return WEIR_ENOMEM;
    int64_t nothing_ns;
    weir_part *first = weir__part_new(pipeline);
    if (!first)
        return WEIR_ENOMEM;
    pipeline->core.now_ns = start_ns;
    weir__parts_take_locked(pipeline, first, &nothing_ns); /* without the lock: no thread has been started */
    return pipeline->reporting->wants_marks ? weir__span_store_open(pipeline) : WEIR_OK;
}

/* The parts are freed first: the open lap knows their subjects. */
void weir__laps_destroy(weir_pipeline *pipeline)
{
    weir_lap_taker *laps = pipeline->laps;
    weir__open_lap *open = pipeline->open_lap;
    if (laps) {
        weir__span_store_close(pipeline);
        weir__part_free(laps->parts);
        free(laps->readings);
        free(laps->num_known);
        free(laps);
    }
    if (open) {
        weir__part_free(open->parts);
        weir__part_free(open->spares);
        free(open->subjects);
        free(open);
    }
}
