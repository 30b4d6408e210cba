/*
 * The observer thread: takes messages from the outbox, oldest first, and calls the observers. Only
 * weir_pipeline_free() waits for it.
 */
#include "engine/measure/observing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/version.h>

#include "common/unix_clock.h"
#include "engine/measure/lap.h"
#include "engine/measure/observer_loader.h"
#include "engine/measure/outbox.h"
#include "engine/measure/reporting.h"
#include "engine/state/failure_log.h"
#include "engine/state/thread.h"
#include "engine/trace/trace_ring.h"

/* Calls the function of each observer that has it. */
#define TELL(pipeline, function, argument) \
    for (const weir_observer *observer = (pipeline)->observers; \
         observer < (pipeline)->observers + (pipeline)->num_observers; observer++) \
        if (observer->function) \
    observer->function(observer->self, argument)

/* ---- laps --------------------------------------------------------------------------------------------------- */

/* What observers have not got yet of a stage with an interval of its own, or of its queue: laps of one mode and
   phase. */
typedef struct held_subject {
    int64_t interval_ns;
    weir__subject subject;
    uint32_t index; /* of the subject */
    char mode[MAX_MARK], phase[MAX_MARK];
    weir_lap lap; /* elapsed_ns 0 = nothing is held */
    weir_metrics metrics;
    weir_histogram times[3];
} held_subject;

/* Histograms of one stage or queue at a time. */
typedef struct delivery {
    const weir_pipeline *pipeline;
    const weir__lap *lap;
    weir_histogram histograms[3];
} delivery;

/* Points the metrics to their histograms. */
static void tell_subject(const weir_pipeline *pipeline, const weir__subject *subject, weir_subject_lap *lap,
                         const weir_histogram *times)
{
    const weir_metric_table *table = weir_subject_metrics(subject->subject);
    lap->subject = subject->subject;
    lap->name = subject->name;
    lap->kind = subject->kind;
    lap->capacity = subject->threads ? *subject->threads : subject->capacity;
    for (size_t i = 0, num_times = 0; i < table->num_metrics && num_times < subject->num_times; i++)
        if (table->metrics[i].kind == WEIR_METRIC_HISTOGRAM)
            *(const weir_histogram **)(void *)((char *)&lap->metrics + table->metrics[i].offset) =
                &times[num_times++];
    TELL(pipeline, lap, lap);
}

static void deliver_held(const weir_pipeline *pipeline, held_subject *held)
{
    if (!held || !held->lap.elapsed_ns)
        return;
    weir_subject_lap lap = { .lap = &held->lap, .metrics = held->metrics };
    tell_subject(pipeline, &held->subject, &lap, held->times);
    held->lap.elapsed_ns = 0;
}

static void hold_first(held_subject *held, const weir__lap *lap)
{
    memcpy(held->mode, lap->mode, sizeof held->mode);
    memcpy(held->phase, lap->phase, sizeof held->phase);
    held->lap = lap->info;
    held->lap.ids = NULL;
    held->lap.num_ids = 0;
    held->lap.position.mode = held->mode;
    held->lap.position.phase = held->phase;
    held->metrics = lap->figures.metrics[held->index];
    for (size_t i = 0; i < held->subject.num_times; i++)
        weir__stored_histogram_load(&lap->figures.stored[held->subject.first_time + i], &held->times[i]);
}

static void hold_next(delivery *to, held_subject *held)
{
    const weir__lap *lap = to->lap;
    weir_metrics_add(weir_subject_metrics(held->subject.subject), &held->metrics, &lap->figures.metrics[held->index]);
    for (size_t i = 0; i < held->subject.num_times; i++) {
        weir__stored_histogram_load(&lap->figures.stored[held->subject.first_time + i], &to->histograms[0]);
        weir_histogram_add(&held->times[i], &to->histograms[0]);
    }
    weir__lap_info_extend(&held->lap, &lap->info);
}

/* Laps end a little before or after their time. */
static void hold_subject(delivery *to, held_subject *held)
{
    int64_t early_ns = to->pipeline->stats_interval_ns / 2;
    if (!weir__lap_is_at(to->lap, held->mode, held->phase))
        deliver_held(to->pipeline, held);
    if (held->lap.elapsed_ns)
        hold_next(to, held);
    else
        hold_first(held, to->lap);
    if (held->lap.elapsed_ns >= held->interval_ns - early_ns)
        deliver_held(to->pipeline, held);
}

static void deliver_subject(delivery *to, uint32_t index)
{
    const weir__subject *subject = &to->pipeline->laps->subjects.all[index];
    if (to->pipeline->reporting->held[index]) {
        hold_subject(to, to->pipeline->reporting->held[index]);
        return;
    }
    weir_subject_lap lap = { .lap = &to->lap->info, .metrics = to->lap->figures.metrics[index] };
    for (size_t i = 0; i < subject->num_times; i++)
        weir__stored_histogram_load(&to->lap->figures.stored[subject->first_time + i], &to->histograms[i]);
    tell_subject(to->pipeline, subject, &lap, to->histograms);
}

static void deliver_mark(delivery *to, const weir__lap_mark *mark)
{
    weir_subject_lap lap = { .lap = &to->lap->info,
                             .subject = WEIR_SUBJECT_COUNTER,
                             .name = mark->name->text,
                             .kind = weir__span_kind_name(mark->name) };
    if (mark->name->counter) {
        lap.metrics.counter = mark->counter;
    } else {
        lap.subject = WEIR_SUBJECT_SPAN;
        lap.metrics.span = mark->span;
        weir__stored_histogram_load(&mark->times, &to->histograms[0]);
        lap.metrics.span.times = &to->histograms[0];
    }
    TELL(to->pipeline, lap, &lap);
}

static void deliver_lap(delivery *to, const weir__lap *lap)
{
    to->lap = lap;
    for (uint32_t i = 0; i < to->pipeline->laps->subjects.count; i++)
        deliver_subject(to, i);
    for (size_t i = 0; i < lap->figures.num_marks; i++)
        deliver_mark(to, &lap->figures.marks[i]);
    TELL(to->pipeline, lap_end, &lap->info);
}

/* ---- the run ------------------------------------------------------------------------------------------------ */

/* What observers get where there is no memory for a text. */
static const char no_text[] = "";

void weir__merge_order_write(const weir_node *node, FILE *out)
{
    static const char *const orders[] = { [WEIR_MERGE_ARRIVAL] = "arrival",
                                          [WEIR_MERGE_ROUND_ROBIN] = "round_robin",
                                          [WEIR_MERGE_WEIGHTED] = "weighted",
                                          [WEIR_MERGE_RANDOM] = "random" };
    if (node->core.num_ins < 2)
        return;
    fputs(orders[node->core.merge_order], out);
    for (uint32_t i = 0; node->core.weights && i < node->core.num_ins; i++)
        fprintf(out, " %" PRIu32, node->core.weights[i]);
}

/* The names of the input queues, or the order of a merge with its weights. See free_text(). */
static const char *describe_inputs(const weir_node *node, bool as_order)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out && as_order)
        weir__merge_order_write(node, out);
    for (uint32_t i = 0; out && !as_order && i < node->core.num_ins; i++)
        fprintf(out, "%s%s", i ? " " : "", node->core.ins[i]->name);
    return out && fclose(out) == 0 ? text : no_text;
}

static void free_text(const char *text)
{
    if (text != no_text)
        free((char *)(uintptr_t)text);
}

static void fill_stage_info(const weir_node *node, weir_stage_info *info)
{
    *info = (weir_stage_info){
        .name = node->name,
        .queue_name = node->core.outs[0].name,
        .kind = node->kind,
        .concurrency = node->concurrency,
        .queue_items = node->core.outs[0].capacity,
        .queue_bytes = node->core.outs[0].capacity_bytes == UINT64_MAX ? 0 : node->core.outs[0].capacity_bytes,
        .output_order = node->core.order == WEIR_ORDER_INPUT ? "input" : "completion",
        .inputs = describe_inputs(node, false),
        .merge_order = describe_inputs(node, true),
        .threads = node->threads,
        .look_ahead_items = node->core.look_ahead,
    };
}

static void deliver_start(const weir_pipeline *pipeline)
{
    weir_run_info info = {
        .start_unix_ns = pipeline->reporting->start_unix_ns,
        .pipeline_id = pipeline->id,
        .stages = pipeline->reporting->stage_infos,
        .num_stages = pipeline->core.num_nodes,
        .start_ns = pipeline->start_ns,
        .queues = pipeline->reporting->queue_infos,
        .num_queues = pipeline->num_queues,
    };
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        const weir_node *node = pipeline->nodes[i];
        fill_stage_info(node, &pipeline->reporting->stage_infos[i]);
        for (uint32_t j = 0; j < node->core.num_outs; j++)
            pipeline->reporting->queue_infos[node->core.outs[j].index] = (weir_queue_info){
                .name = node->core.outs[j].name, .producer = i, .capacity = node->core.outs[j].capacity
            };
    }
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        info.threads += pipeline->pools[i]->num_wanted;
    TELL(pipeline, run_start, &info);
}

static void deliver_dropped(weir_pipeline *pipeline)
{
    uint64_t failures, events;
    char detail[96];
    weir__outbox_take_dropped(&pipeline->reporting->outbox, &failures, &events);
    if (failures == 0 && events == 0)
        return;
    snprintf(detail, sizeof detail, "%" PRIu64 " failures and %" PRIu64 " events", failures, events);
    weir_log(WEIR_LOG_WARNING, "%s were not reported to observers: they were too slow, or memory ran out", detail);
    weir_event event = { unix_clock_ns(), "dropped", "pipeline", detail };
    TELL(pipeline, event, &event);
}

static void deliver_lost_records(const weir_pipeline *pipeline)
{
    char detail[24];
    if (!pipeline->trace || !pipeline->trace->num_lost)
        return;
    snprintf(detail, sizeof detail, "%" PRIu64, pipeline->trace->num_lost);
    weir_event event = { unix_clock_ns(), "trace_records_lost", "pipeline", detail };
    TELL(pipeline, event, &event);
}

static void deliver_end(const weir_pipeline *pipeline)
{
    weir_run_end end = { .end_unix_ns = pipeline->reporting->end_unix_ns, .status = pipeline->reporting->end_status };
    TELL(pipeline, run_end, &end);
}

static void deliver_all_held(const weir_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->laps->subjects.count; i++)
        deliver_held(pipeline, pipeline->reporting->held[i]);
}

/* All that was measured before the request has been reported, also for stages with an interval of their own. */
static void answer_request(const weir_pipeline *pipeline, uint64_t asked)
{
    deliver_all_held(pipeline);
    weir__outbox_answer(&pipeline->reporting->outbox, asked);
}

static void deliver_message(delivery *to, const weir_message *message)
{
    const weir_pipeline *pipeline = to->pipeline;
    switch (message->kind) {
    case MESSAGE_START: deliver_start(pipeline); break;
    case MESSAGE_LAP: deliver_lap(to, message->lap); break;
    case MESSAGE_FAILURE: TELL(pipeline, failure, &message->failure); break;
    case MESSAGE_STALL: weir_log(WEIR_LOG_WARNING, "%s", message->event.detail); /* fall through */
    case MESSAGE_EVENT: TELL(pipeline, event, &message->event); break;
    case MESSAGE_ASKED: answer_request(pipeline, message->asked); break;
    }
}

static void observer_main(void *argument)
{
    weir_pipeline *pipeline = argument;
    weir_message *message;
    bool started = false;
    weir__pipeline_of_thread = pipeline;
    pipeline->reporting->delivery->pipeline = pipeline;
    while (weir__outbox_take(&pipeline->reporting->outbox, weir__trace_patience_ns(pipeline), &message)) {
        if (started)
            weir__trace_deliver(pipeline);
        if (!message)
            continue;
        started = true;
        deliver_message(pipeline->reporting->delivery, message);
        weir__message_free(message);
        deliver_dropped(pipeline);
    }
    if (!started)
        return; /* the start of the pipeline failed */
    weir__trace_deliver(pipeline);
    weir__failure_log_finish(pipeline->failure_log);
    deliver_dropped(pipeline);
    deliver_lost_records(pipeline);
    deliver_all_held(pipeline);
    deliver_end(pipeline);
}

void weir__observing_mark(weir_pipeline *pipeline, weir_mark_kind kind, bool begins, int64_t number, const char *name)
{
    weir_mark mark = { .pipeline = pipeline, .kind = kind, .begins = begins, .number = number, .name = name };
    TELL(pipeline, mark, &mark);
}

/* ---- the room's struct ------------------------------------------------------------------------------------- */

static void wake_observer_thread(weir_pipeline *pipeline)
{
    weir__outbox_wake(&pipeline->reporting->outbox);
}

int weir__reporting_new(weir_pipeline *pipeline)
{
    pipeline->reporting = calloc(1, sizeof *pipeline->reporting);
    pipeline->wake_observers = wake_observer_thread;
    return pipeline->reporting ? weir__outbox_init(&pipeline->reporting->outbox) : UV_ENOMEM;
}

void weir__reporting_free(weir_pipeline *pipeline)
{
    if (!pipeline->reporting)
        return;
    weir__outbox_destroy(&pipeline->reporting->outbox);
    free(pipeline->reporting);
    pipeline->reporting = NULL;
}

void weir__reporting_end(weir_pipeline *pipeline, int status, int64_t end_unix_ns)
{
    pipeline->reporting->end_status = status;
    pipeline->reporting->end_unix_ns = end_unix_ns;
    weir__outbox_close(&pipeline->reporting->outbox);
}

/* ---- beginning and end -------------------------------------------------------------------------------------- */

static int attach_observer(weir_pipeline *pipeline, const weir_observer *observer, weir_error *error)
{
    for (size_t i = 0; i < sizeof observer->reserved / sizeof observer->reserved[0]; i++)
        if (observer->reserved[i])
            return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                                  "weir_observer: the program sets a function that weir %s does not know: update the "
                                  "library",
                                  weir_version());
    int status = observer->attach ? observer->attach(observer->self, error) : WEIR_OK;
    if (status != WEIR_OK)
        return weir_error_set(error, status < 0 ? status : WEIR_EINVAL, 0, "an observer could not be attached");
    pipeline->observers[pipeline->num_observers++] = *observer;
    pipeline->reporting->wants_marks |= observer->lap != NULL;
    pipeline->reporting->wants_laps |= observer->lap || observer->lap_end;
    pipeline->reporting->wants_failures |= observer->failure != NULL;
    pipeline->reporting->wants_events |= observer->event != NULL;
    pipeline->wants_position |= observer->mark != NULL;
    return WEIR_OK;
}

/* Observers that start by themselves have no `attach`, so they cannot fail. */
static void attach_autostarted(weir_pipeline *pipeline)
{
    weir_observer observers[AUTOSTART_OBSERVERS];
    size_t count = weir__autostart(observers);
    for (size_t i = 0; i < count; i++)
        attach_observer(pipeline, &observers[i], NULL);
}

int weir__observing_init(weir_pipeline *pipeline, const weir_pipeline_options *options, weir_error *error)
{
    int status = WEIR_OK;
    if (options->num_observers && !options->observers)
        return weir_error_set(error, WEIR_EINVAL, 0, "num_observers is %zu, but observers is NULL",
                              options->num_observers);
    pipeline->observers = calloc(options->num_observers + AUTOSTART_OBSERVERS, sizeof *pipeline->observers);
    pipeline->reporting->delivery = calloc(1, sizeof *pipeline->reporting->delivery);
    if (!pipeline->observers || !pipeline->reporting->delivery)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the observers");
    for (size_t i = 0; i < options->num_observers && status == WEIR_OK; i++)
        status = attach_observer(pipeline, &options->observers[i], error);
    if (status == WEIR_OK)
        attach_autostarted(pipeline);
    return status;
}

void weir__observing_destroy(weir_pipeline *pipeline)
{
    weir__reporting *own = pipeline->reporting;
    while (pipeline->num_observers > 0) {
        const weir_observer *observer = &pipeline->observers[--pipeline->num_observers];
        if (observer->detach)
            observer->detach(observer->self);
    }
    free(pipeline->observers);
    if (!own)
        return;
    for (uint32_t i = 0; own->held && i < pipeline->laps->subjects.count; i++)
        free(own->held[i]);
    free(own->held);
    free(own->delivery);
    for (uint32_t i = 0; own->stage_infos && i < pipeline->core.num_nodes; i++) {
        free_text(own->stage_infos[i].inputs);
        free_text(own->stage_infos[i].merge_order);
    }
    free(own->stage_infos);
    free(own->queue_infos);
}

/* False = out of memory. */
static bool make_held(weir_pipeline *pipeline)
{
    pipeline->reporting->held = calloc(pipeline->laps->subjects.count + 1, sizeof(held_subject *));
    for (uint32_t i = 0; pipeline->reporting->held && pipeline->laps->subjects.count && i < pipeline->core.num_nodes;
         i++) {
        const weir_node *node = pipeline->nodes[i];
        for (uint32_t j = node->subject; node->stats_interval_ns && j <= node->subject + node->core.num_outs; j++) {
            held_subject *held = pipeline->reporting->held[j] = calloc(1, sizeof *held);
            if (!held)
                return false;
            held->interval_ns = node->stats_interval_ns;
            held->subject = pipeline->laps->subjects.all[j];
            held->index = j;
        }
    }
    return pipeline->reporting->held;
}

int weir__observing_start(weir_pipeline *pipeline, weir_error *error)
{
    pipeline->reporting->stage_infos = calloc(pipeline->core.num_nodes, sizeof *pipeline->reporting->stage_infos);
    pipeline->reporting->queue_infos = calloc(pipeline->num_queues, sizeof *pipeline->reporting->queue_infos);
    if (!pipeline->reporting->stage_infos || !pipeline->reporting->queue_infos || !make_held(pipeline))
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the observers");
    int code = weir__thread_start(&pipeline->reporting->thread, "weir-observer", observer_main, pipeline);
    if (code != 0)
        return weir_error_set(error, WEIR_ESYSTEM, code, "cannot start the observer thread: %s", uv_strerror(code));
    pipeline->reporting->thread_started = true;
    return WEIR_OK;
}

void weir__observing_join(weir_pipeline *pipeline)
{
    if (pipeline->reporting && pipeline->reporting->thread_started)
        uv_thread_join(&pipeline->reporting->thread);
}
