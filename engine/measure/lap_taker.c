/*
 * All open laps (lap.h) are taken as a whole under the lock. So every task is in exactly one lap, and all metrics of
 * a lap are consistent. Values from the kernel are read before; slow work (encoding the histograms) is done
 * afterwards.
 */
#include "engine/measure/lap_taker.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/measure/consumer_position.h"
#include "engine/measure/outbox.h"
#include "engine/measure/reporting.h"
#include "engine/spans/spans.h"
#include "engine/state/lock.h"
#include "engine/trace/trace_ring.h"

static const int64_t longest_untaken_ns = 60 * WEIR_SECOND; /* see lap.h */
static const int64_t early_end_ns =
    1 * WEIR_SECOND; /* of the first interval, so that a killed run leaves at least its laps */

/* ---- taking --------------------------------------------------------------------------------------------------- */

/* Whether user code has reported anything in the tail, or the trace shows anything. */
static bool is_reported_locked(const weir_pipeline *pipeline)
{
    return pipeline->laps->tail_marked || weir__trace_count_locked(pipeline) != pipeline->lap_taker->num_traced ||
           (pipeline->trace && !pipeline->reporting->wants_marks); /* spans are not known */
}

/*
 * The laps of intervals that have ended; with `fresh`, all that are open. last: they end with the run; NULL then also says that
 * nothing was reported in the tail, which belongs to no lap.
 */
static weir__lap *take_open(weir_pipeline *pipeline, weir__lap *fresh, bool last, weir__kernel_counts *counts)
{
    weir__lap_taker *taker = pipeline->lap_taker;
    int64_t outside_cpu_ns;
    weir__kernel_readings_read(&taker->kernel, pipeline, counts);
    bool has_marks = last && weir__span_store_has_more(pipeline);

    engine_lock_at(pipeline, weir_clock_ns());
    weir__kernel_readings_settle_locked(&taker->kernel);
    weir__lap *taken = weir__laps_take_locked(pipeline, fresh, &outside_cpu_ns);
    int64_t now_ns = pipeline->core.now_ns;
    bool are_counted = !last || !taker->in_tail || has_marks || is_reported_locked(pipeline);
    if (fresh && are_counted)
        weir__trace_mark_locked(pipeline, WEIR_TRACE_LAP, 0);
    taker->num_traced = weir__trace_count_locked(pipeline);
    if (last) /* the record ends when the last lap does */
        weir__trace_end_locked(pipeline, are_counted ? now_ns : taker->start_ns);
    weir__engine_unlock(pipeline);
    weir__suspension_note_at(&taker->suspension, 0, now_ns);
    weir__kernel_readings_sum(&taker->kernel, pipeline, counts, outside_cpu_ns);
    if (are_counted)
        return taken;
    weir__lap_free(taken);
    return NULL;
}

/* ---- what user code has recorded ------------------------------------------------------------------------------- */

/* Where the sums of user code go. */
typedef struct mark_taker {
    weir_pipeline *pipeline;
    weir__lap *taken; /* all laps that were taken */
    bool last;        /* they end with the run */
} mark_taker;

/* NULL = of a lap that will be taken. If it was taken before, or is of a pause, the sum is of the last of these that is not of a
   pause; so are counters. */
static weir__lap *lap_of_sum(const mark_taker *taker, uint64_t lap_id)
{
    weir__lap *found = NULL;
    for (weir__lap *lap = taker->taken; lap && !(found && found->id == lap_id); lap = lap->next)
        found = lap->paused ? found : lap;
    bool is_other = found && lap_id && found->id != lap_id;
    return is_other && !taker->last && weir__lap_is_open(taker->pipeline, lap_id) ? NULL : found;
}

/* Without memory, a sum of a span remains for the next lap. */
static bool take_mark(void *self, const weir_span_name *name, uint64_t lap_id, const void *metrics)
{
    weir__lap_mark mark = { .name = name };
    weir__lap *lap = lap_of_sum(self, lap_id);
    if (name->counter)
        mark.counter = *(const weir_counter_metrics *)metrics;
    else
        mark.span = *(const weir_span_metrics *)metrics;
    bool is_taken = lap && (name->counter || weir__stored_histogram_set(&mark.times, mark.span.times)) &&
                    weir__lap_figures_add_mark(&lap->figures, &mark);
    free(mark.times.bytes);
    return is_taken;
}

static void take_marks(weir_pipeline *pipeline, weir__lap *taken, bool last)
{
    mark_taker taker = { pipeline, taken, last };
    uint64_t refused = weir__span_store_take(pipeline, take_mark, &taker);
    if (refused) {
        char detail[40];
        snprintf(detail, sizeof detail, "%llu", (unsigned long long)refused);
        weir__outbox_add_event(pipeline, "span_names_refused", "pipeline", detail);
    }
}

/* ---- waiting and passing on ------------------------------------------------------------------------------------ */

int64_t weir__laps_unix_at_ns(weir_pipeline *pipeline, int64_t at_ns)
{
    return weir__wall_clock_at_ns(&pipeline->lap_taker->wall_clock, pipeline, at_ns);
}

/* The lap is the next one that observers get. */
static void number_lap(weir_pipeline *pipeline, weir__lap *lap)
{
    lap->ends_interval = false;
    lap->info.number = pipeline->lap_taker->number;
    lap->info.num_joined = 1;
    lap->info.end_unix_ns = weir__laps_unix_at_ns(pipeline, pipeline->lap_taker->reported_ns + lap->info.elapsed_ns);
}

/* The interval ends: passes its laps on. False = out of memory: the others belong to the next interval. */
static bool end_interval(weir_pipeline *pipeline)
{
    weir__lap_taker *taker = pipeline->lap_taker;
    for (weir__lap *lap; (lap = taker->waiting);) {
        taker->waiting = lap->next;
        lap->next = NULL;
        number_lap(pipeline, lap);
        int64_t elapsed_ns = lap->info.elapsed_ns;
        bool is_counted = !lap->paused;
        if (!pipeline->reporting->wants_laps || !is_counted) {
            weir__lap_free(lap);
        } else if (!weir__outbox_add_lap(pipeline, lap)) {
            lap->next = taker->waiting;
            taker->waiting = lap;
            return false;
        }
        taker->number += is_counted;
        taker->reported_ns += elapsed_ns;
    }
    return true;
}

/* Divides what was counted in the time of the laps among them. */
static void share_counts(weir_pipeline *pipeline, weir__lap *taken, const weir__kernel_counts *counts)
{
    weir__lap_taker *taker = pipeline->lap_taker;
    int64_t whole_ns = 0, begin_ns = 0, suspended_ns = taker->suspension.suspended_ns;
    for (weir__lap *lap = taken; lap; lap = lap->next)
        whole_ns += lap->info.elapsed_ns;
    for (weir__lap *lap = taken; lap; lap = lap->next) {
        int64_t end_ns = begin_ns + lap->info.elapsed_ns;
        weir__kernel_readings_add_share(&taker->kernel, lap, counts, begin_ns, lap->next ? end_ns : whole_ns,
                                        whole_ns);
        lap->info.suspended_ns =
            lap->next && suspended_ns > lap->info.elapsed_ns ? lap->info.elapsed_ns : suspended_ns;
        suspended_ns -= lap->info.suspended_ns;
        begin_ns = end_ns;
    }
    taker->suspension.suspended_ns = 0;
    taker->start_ns += whole_ns;
}

/* Completes the laps that were taken. They wait until their interval ends; it may have ended. */
static void finish_taken(weir_pipeline *pipeline, weir__lap *taken, const weir__kernel_counts *counts, bool last)
{
    share_counts(pipeline, taken, counts);
    for (weir__lap *lap = taken; lap; lap = lap->next)
        weir__lap_figures_encode(&lap->figures);
    take_marks(pipeline, taken, last);
    for (weir__lap *lap = taken, *next; lap; lap = next) {
        bool ends_interval = lap->ends_interval;
        next = lap->next;
        lap->next = NULL;
        weir__lap_add_waiting(&pipeline->lap_taker->waiting, lap);
        if (ends_interval)
            end_interval(pipeline);
    }
}

/* Takes what was measured up to now, or (!all) the laps of intervals that have ended. False = out of memory: nothing was taken,
   the interval goes on. */
static bool take_measured(weir_pipeline *pipeline, bool all, bool last)
{
    weir__kernel_counts counts = { .now = { .process = { 0 } } };
    weir__lap *fresh = all ? weir__lap_new(pipeline) : NULL;
    if (all && !fresh)
        return false;
    weir__lap *taken = take_open(pipeline, fresh, last, &counts);
    if (taken)
        finish_taken(pipeline, taken, &counts, last);
    return true;
}

/* ---- when ------------------------------------------------------------------------------------------------------ */

int64_t weir__laps_due_ns(const weir_pipeline *pipeline)
{
    const weir__lap_taker *taker = pipeline->lap_taker;
    if (taker->in_tail)
        return taker->waiting ? taker->due_ns : INT64_MAX;
    int64_t take_ns = taker->start_ns + longest_untaken_ns;
    return taker->due_ns < take_ns ? taker->due_ns : take_ns;
}

/* Intervals end at multiples of the interval since the start. Missed ends are skipped. */
static void plan_next(weir_pipeline *pipeline, int64_t now_ns)
{
    weir__lap_taker *taker = pipeline->lap_taker;
    int64_t interval_ns = pipeline->stats_interval_ns;
    if (interval_ns == WEIR_FOREVER || taker->due_ns > now_ns)
        return;
    if (taker->next_ns <= now_ns)
        taker->next_ns += (now_ns - taker->next_ns) / interval_ns * interval_ns + interval_ns;
    taker->due_ns = taker->next_ns;
}

/* Somebody waits until observers know what was measured up to now. Without memory, it is tried again later. */
static void serve_request(weir_pipeline *pipeline)
{
    weir__lap_taker *taker = pipeline->lap_taker;
    weir_outbox *outbox = &pipeline->reporting->outbox;
    uint64_t asked = weir__outbox_last_asked(outbox);
    if (asked == taker->num_asked || !(taker->in_tail || take_measured(pipeline, true, false)))
        return;
    if (end_interval(pipeline) && weir__outbox_add_asked(outbox, asked))
        taker->num_asked = asked;
}

void weir__laps_take(weir_pipeline *pipeline, bool interval_ended)
{
    weir__lap_taker *taker = pipeline->lap_taker;
    int64_t now_ns = weir_clock_ns();
    if (interval_ended)
        take_measured(pipeline, false, false);
    serve_request(pipeline);
    if (now_ns < weir__laps_due_ns(pipeline))
        return;
    if ((taker->in_tail || take_measured(pipeline, true, false)) && now_ns >= taker->due_ns)
        end_interval(pipeline);
    plan_next(pipeline, now_ns);
}

void weir__laps_begin_tail(weir_pipeline *pipeline)
{
    /* else the last lap has both, which loses nothing */
    pipeline->lap_taker->in_tail = take_measured(pipeline, true, false);
}

int64_t weir__laps_take_last(weir_pipeline *pipeline)
{
    enum { ATTEMPTS = 10 };
    bool taken = false;
    for (int i = 0; i < ATTEMPTS && !taken; i++)
        taken = take_measured(pipeline, true, true) && end_interval(pipeline);
    if (!taken)
        weir_log(WEIR_LOG_ERROR, "out of memory: the last lap could not be reported to the observers");
    weir__span_store_close(pipeline);
    return pipeline->lap_taker->start_ns;
}

/* ---- beginning and end ----------------------------------------------------------------------------------------- */

static void init_times(weir_pipeline *pipeline, int64_t start_ns)
{
    weir__lap_taker *taker = pipeline->lap_taker;
    int64_t interval_ns = pipeline->stats_interval_ns;
    taker->start_ns = taker->reported_ns = start_ns;
    taker->suspension.asleep_ns = weir__machine_asleep_ns();
    taker->next_ns = taker->due_ns = interval_ns == WEIR_FOREVER ? INT64_MAX : start_ns + interval_ns;
    if (interval_ns > early_end_ns)
        taker->due_ns = start_ns + early_end_ns;
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        pipeline->pools[i]->threads_since_ns = start_ns;
}

/* Without the lock: no thread has been started. */
static int begin_first_lap(weir_pipeline *pipeline, int64_t start_ns)
{
    int64_t nothing_ns;
    if (weir__subjects_init(&pipeline->laps->subjects, pipeline) != WEIR_OK)
        return WEIR_ENOMEM;
    weir__lap *first = weir__lap_new(pipeline);
    if (!first)
        return WEIR_ENOMEM;
    pipeline->core.now_ns = start_ns;
    weir__laps_take_locked(pipeline, first, &nothing_ns);
    return pipeline->reporting->wants_marks ? weir__span_store_open(pipeline) : WEIR_OK;
}

int weir__laps_init(weir_pipeline *pipeline, int64_t start_ns)
{
    pipeline->lap_taker = calloc(1, sizeof *pipeline->lap_taker);
    pipeline->laps = calloc(1, sizeof *pipeline->laps);
    if (!pipeline->lap_taker || !pipeline->laps)
        return WEIR_ENOMEM;
    pipeline->sources_ended = weir__position_sources_ended_locked;
    init_times(pipeline, start_ns);
    if (weir__kernel_readings_init(&pipeline->lap_taker->kernel, pipeline) != WEIR_OK)
        return WEIR_ENOMEM;
    return pipeline->core.measures ? begin_first_lap(pipeline, start_ns) : WEIR_OK;
}

/* Laps that wait are freed first: pipeline->laps knows their subjects. */
void weir__laps_destroy(weir_pipeline *pipeline)
{
    if (pipeline->lap_taker) {
        weir__span_store_close(pipeline);
        weir__lap_free(pipeline->lap_taker->waiting);
        weir__kernel_readings_destroy(&pipeline->lap_taker->kernel);
        weir__wait_looks_destroy(&pipeline->lap_taker->looks);
        free(pipeline->lap_taker);
    }
    if (!pipeline->laps)
        return;
    weir__lap_free(pipeline->laps->open);
    weir__lap_free(pipeline->laps->spares);
    weir__subjects_destroy(&pipeline->laps->subjects);
    free(pipeline->laps);
}
