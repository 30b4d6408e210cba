/*
 * The statistics thread: a libuv loop with a timer for the laps and a wake-up for what cannot wait (failures, events,
 * pending tasks to cancel, the end of the run).
 *
 * A lap is taken in one piece under the lock: open spans are closed at its end and go on in the next one, the sums are
 * copied and set to zero, the histograms are swapped with cleared ones. So every task is in exactly one lap and all
 * figures of a lap belong together. The observers are told afterwards, without the lock.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "queue.h"

/* The figures of one lap, with histograms that are empty between laps. */
struct stage_lap {
    weir_stage_lap lap;
    weir_histogram *run_times;
};

struct queue_lap {
    weir_queue_lap lap;
    weir_histogram *put_times, *get_times;
};

/* ---- reports ------------------------------------------------------------------------------------------------ */

static weir_report *report_new(size_t text_bytes, char **texts)
{
    weir_report *report = calloc(1, sizeof *report + text_bytes);
    if (report)
        *texts = (char *)(report + 1);
    return report;
}

static const char *add_text(char **texts, const char *text)
{
    size_t size = strlen(text) + 1;
    char *added = memcpy(*texts, text, size);
    *texts += size;
    return added;
}

weir_report *weir_report_failure(const weir_slot *slot)
{
    const char *label = weir_task_label(slot);
    const char *message = slot->error.message;
    char *texts;
    weir_report *report = report_new(strlen(label) + strlen(message) + 2, &texts);
    if (!report)
        return NULL;
    report->is_failure = true;
    report->failure = (weir_failure){
        .unix_ns = weir_clock_unix_ns(),
        .name = slot->node->name,
        .seq = slot->in.seq,
        .label = add_text(&texts, label),
        .status = slot->error.status,
        .library_code = slot->error.library_code,
        .message = add_text(&texts, message),
    };
    return report;
}

weir_report *weir_report_event(const char *name, const char *category, const char *detail)
{
    char *texts;
    category = category ? category : "";
    detail = detail ? detail : "";
    weir_report *report = report_new(strlen(name) + strlen(category) + strlen(detail) + 3, &texts);
    if (!report)
        return NULL;
    report->event = (weir_event){
        .unix_ns = weir_clock_unix_ns(),
        .name = add_text(&texts, name),
        .category = add_text(&texts, category),
        .detail = add_text(&texts, detail),
    };
    return report;
}

void weir_report_append_locked(weir_pipeline *pipeline, weir_report *report)
{
    *pipeline->reports_end = report;
    pipeline->reports_end = &report->next;
    pipeline->num_reports++;
    pipeline->wake_statistics = true;
}

static const weir_observer *observers_end(const weir_pipeline *pipeline)
{
    return pipeline->observers + pipeline->num_observers;
}

static void tell_report(const weir_pipeline *pipeline, const weir_report *report)
{
    for (const weir_observer *observer = pipeline->observers; observer < observers_end(pipeline); observer++) {
        if (report->is_failure && observer->failure)
            observer->failure(observer->self, &report->failure);
        if (!report->is_failure && observer->event)
            observer->event(observer->self, &report->event);
    }
}

static void tell_reports(weir_pipeline *pipeline)
{
    weir_engine_lock_at(pipeline, weir_clock_ns());
    weir_report *first = pipeline->reports;
    pipeline->reports = NULL;
    pipeline->reports_end = &pipeline->reports;
    pipeline->num_reports = 0;
    weir_step_reports_taken_locked(pipeline);
    weir_engine_unlock(pipeline);

    while (first) {
        weir_report *report = first;
        first = report->next;
        tell_report(pipeline, report);
        free(report);
    }
}

/* ---- the clock of the wall ----------------------------------------------------------------------------------- */

/*
 * Laps are measured by the monotonic clock. Were the clock of the wall read for each, the timestamps would be late by
 * however long the thread had to wait in between. So it is compared with the monotonic one: what they are apart is kept
 * unless it has become another, because the clock was set or the two have drifted apart. A wait between the readings
 * only makes the comparison less exact.
 */
int64_t weir_statistics_unix_at_ns(weir_pipeline *pipeline, int64_t at_ns)
{
    static const int64_t tolerance_ns = WEIR_MILLISECOND;
    int64_t before_ns = weir_clock_ns();
    int64_t unix_ns = weir_clock_unix_ns();
    int64_t after_ns = weir_clock_ns();
    if (pipeline->unix_offset_ns < unix_ns - after_ns - tolerance_ns ||
        pipeline->unix_offset_ns > unix_ns - before_ns + tolerance_ns)
        pipeline->unix_offset_ns = unix_ns - before_ns;
    return at_ns + pipeline->unix_offset_ns;
}

/* ---- laps --------------------------------------------------------------------------------------------------- */

static void swap(weir_histogram **one, weir_histogram **other)
{
    weir_histogram *kept = *one;
    *one = *other;
    *other = kept;
}

static void take_stage_lap_locked(weir_node *node, struct stage_lap *taken)
{
    node->lap.busy_ns = node->time_ns[SLOT_RUNNING] + node->time_ns[SLOT_PENDING];
    node->lap.wait_in_ns = node->time_ns[SLOT_IDLE];
    node->lap.wait_thread_ns = node->time_ns[SLOT_READY];
    node->lap.wait_out_ns = node->time_ns[SLOT_HOLDING];
    taken->lap.metrics = node->lap;
    taken->lap.metrics.run_times = node->run_times;
    memset(node->time_ns, 0, sizeof node->time_ns);
    weir_metrics_clear(weir_task_metric_table(), &node->lap);
    swap(&node->run_times, &taken->run_times);
}

static void take_queue_lap_locked(weir_queue *queue, struct queue_lap *taken)
{
    taken->lap.metrics = queue->lap;
    taken->lap.metrics.put_times = queue->put_times;
    taken->lap.metrics.get_times = queue->get_times;
    weir_metrics_clear(weir_queue_metric_table(), &queue->lap);
    queue->lap.max_depth = queue->depth - queue->num_epoch_ends;
    queue->lap.max_bytes = (int64_t)queue->bytes;
    swap(&queue->put_times, &taken->put_times);
    swap(&queue->get_times, &taken->get_times);
}

/* Closes the open spans at this moment. */
static void settle_locked(weir_pipeline *pipeline)
{
    int64_t now_ns = pipeline->now_ns;
    for (uint32_t i = 0; i < pipeline->num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        for (uint32_t j = 0; j < node->num_outs; j++)
            queue_settle_locked(&node->outs[j], now_ns);
        for (uint32_t j = 0; j < node->num_made; j++) {
            weir_slot *slot = node->slots[j];
            node->time_ns[slot->state] += now_ns - slot->since_ns;
            slot->since_ns = now_ns;
        }
    }
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        weir_cpu_time_settle_locked(pipeline->pools[i]);
}

static void take_laps_locked(weir_pipeline *pipeline)
{
    settle_locked(pipeline);
    struct queue_lap *queue_lap = pipeline->queue_laps;
    for (uint32_t i = 0; i < pipeline->num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        take_stage_lap_locked(node, &pipeline->stage_laps[i]);
        for (uint32_t j = 0; j < node->num_outs; j++)
            take_queue_lap_locked(&node->outs[j], queue_lap++);
    }
}

static void take_lap(weir_pipeline *pipeline)
{
    weir_engine_lock_at(pipeline, weir_clock_ns());
    int64_t end_ns = pipeline->now_ns;
    int64_t elapsed_ns = end_ns - pipeline->lap_start_ns;
    pipeline->lap_start_ns = end_ns;
    take_laps_locked(pipeline);
    weir_place_lap_ended_locked(pipeline, &pipeline->lap_place);
    weir_engine_unlock(pipeline);

    pipeline->lap.end_unix_ns = weir_statistics_unix_at_ns(pipeline, end_ns);
    pipeline->lap.elapsed_ns = elapsed_ns;
    pipeline->lap.num_joined = 1;
    pipeline->lap.place = (weir_lap_place){
        .phase = pipeline->lap_place.phase,
        .first_step = pipeline->lap_place.first_step,
        .last_step = pipeline->lap_place.last_step,
    };
}

static void tell_lap(const weir_pipeline *pipeline, const weir_observer *observer)
{
    const struct queue_lap *queue_lap = pipeline->queue_laps;
    for (uint32_t i = 0; i < pipeline->num_nodes; i++) {
        const weir_node *node = pipeline->nodes[i];
        if (observer->stage_lap)
            observer->stage_lap(observer->self, &pipeline->stage_laps[i].lap);
        for (uint32_t j = 0; j < node->num_outs; j++, queue_lap++)
            if (observer->queue_lap)
                observer->queue_lap(observer->self, &queue_lap->lap);
    }
    if (observer->lap_end)
        observer->lap_end(observer->self, &pipeline->lap);
}

static void report_lap(weir_pipeline *pipeline)
{
    if (!pipeline->measures)
        return;
    take_lap(pipeline);
    for (const weir_observer *observer = pipeline->observers; observer < observers_end(pipeline); observer++)
        tell_lap(pipeline, observer);
    for (uint32_t i = 0; i < pipeline->num_nodes; i++)
        weir_histogram_clear(pipeline->stage_laps[i].run_times);
    for (uint32_t i = 0; i < pipeline->num_queues; i++) {
        weir_histogram_clear(pipeline->queue_laps[i].put_times);
        weir_histogram_clear(pipeline->queue_laps[i].get_times);
    }
    pipeline->lap.number++;
}

/* ---- the run ------------------------------------------------------------------------------------------------ */

static void describe_node(const weir_node *node, weir_stage_info *info)
{
    *info = (weir_stage_info){
        .name = node->name,
        .queue_name = node->outs[0].name,
        .kind = node->kind,
        .concurrency = node->concurrency,
        .queue_items = node->outs[0].capacity,
        .queue_bytes = node->outs[0].capacity_bytes == UINT64_MAX ? 0 : node->outs[0].capacity_bytes,
        .output_order = node->order == WEIR_ORDER_INPUT ? "input" : "completion",
    };
}

static void tell_start(weir_pipeline *pipeline)
{
    weir_run_info info = {
        .start_unix_ns = pipeline->start_unix_ns,
        .pipeline_id = pipeline->id,
        .stages = pipeline->stage_infos,
        .num_stages = pipeline->num_nodes,
    };
    for (uint32_t i = 0; i < pipeline->num_nodes; i++)
        describe_node(pipeline->nodes[i], &pipeline->stage_infos[i]);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        info.threads += pipeline->pools[i]->num_workers;
    for (const weir_observer *observer = pipeline->observers; observer < observers_end(pipeline); observer++)
        if (observer->run_start)
            observer->run_start(observer->self, &info);
}

static void tell_end(weir_pipeline *pipeline)
{
    weir_engine_lock(pipeline);
    int status = pipeline->failed ? WEIR_EFAILED : pipeline->stopped ? WEIR_ESTOPPED : WEIR_OK;
    weir_engine_unlock(pipeline);
    weir_run_end end = { .end_unix_ns = weir_statistics_unix_at_ns(pipeline, weir_clock_ns()), .status = status };
    for (const weir_observer *observer = pipeline->observers; observer < observers_end(pipeline); observer++)
        if (observer->run_end)
            observer->run_end(observer->self, &end);
}

static void release_leftovers(weir_pipeline *pipeline)
{
    weir_item item;
    for (;;) {
        weir_engine_lock_at(pipeline, weir_clock_ns());
        bool taken = weir_end_take_leftover_locked(pipeline, &item);
        weir_engine_unlock(pipeline);
        if (!taken)
            return;
        weir_item_release(&item);
    }
}

static void cancel_pending(weir_pipeline *pipeline)
{
    slot_search search = { 0 };
    for (;;) {
        weir_engine_lock(pipeline);
        weir_slot *slot = weir_end_take_uncancelled_locked(pipeline, &search);
        weir_engine_unlock(pipeline);
        if (!slot)
            return;
        slot->node->op->cancel(slot->worker, slot);
        weir_engine_lock_at(pipeline, weir_clock_ns());
        weir_end_cancel_called_locked(slot);
        weir_engine_unlock(pipeline);
    }
}

static void on_lap(uv_timer_t *timer)
{
    report_lap(timer->data);
}

static void on_watch(uv_timer_t *timer)
{
    weir_pipeline *pipeline = timer->data;
    int64_t next_ns;
    if (weir_watch_tasks(pipeline, &next_ns))
        cancel_pending(pipeline);
    if (next_ns == INT64_MAX)
        return;
    uv_update_time(&pipeline->loop);
    uv_timer_start(&pipeline->watch_timer, on_watch, (uint64_t)(next_ns / WEIR_MILLISECOND + 1), 0);
}

static void on_backstop(uv_timer_t *timer)
{
    weir_pipeline *pipeline = timer->data;
    weir_engine_lock_at(pipeline, weir_clock_ns());
    pipeline->wants_backstop = weir_engine_backstop_locked(pipeline);
    bool again = pipeline->wants_backstop;
    weir_engine_unlock(pipeline);
    if (again)
        uv_timer_start(timer, on_backstop, BACKSTOP_NS / WEIR_MILLISECOND, 0);
}

/* The run has been told to its end. From libuv 1.45 on, timers that are due would have their turn after uv_stop(). */
static void end_loop(weir_pipeline *pipeline)
{
    uv_timer_stop(&pipeline->lap_timer);
    uv_timer_stop(&pipeline->watch_timer);
    uv_timer_stop(&pipeline->backstop_timer);
    uv_stop(&pipeline->loop);
}

void weir_service_wake_from_signal(weir_pipeline *pipeline)
{
    uv_async_send(&pipeline->wake);
}

static void on_wake(uv_async_t *wake)
{
    weir_pipeline *pipeline = wake->data;
    if (atomic_exchange(&pipeline->stop_wanted, false))
        weir_pipeline_stop(pipeline);
    weir_engine_lock(pipeline);
    bool over = pipeline->over;
    bool cut_lap = pipeline->cut_lap;
    bool wants_backstop = pipeline->wants_backstop;
    weir_engine_unlock(pipeline);

    cancel_pending(pipeline);
    tell_reports(pipeline);
    if (wants_backstop && !uv_is_active((uv_handle_t *)&pipeline->backstop_timer))
        uv_timer_start(&pipeline->backstop_timer, on_backstop, BACKSTOP_NS / WEIR_MILLISECOND, 0);
    if (cut_lap)
        report_lap(pipeline);
    if (!over) {
        on_watch(&pipeline->watch_timer); /* a stop brings the next look forward */
        return;
    }
    release_leftovers(pipeline);
    tell_reports(pipeline);
    report_lap(pipeline);
    tell_end(pipeline);
    end_loop(pipeline);
}

static void statistics_main(void *argument)
{
    weir_pipeline *pipeline = argument;
    weir_pipeline_of_thread = pipeline;
    tell_start(pipeline);
    if (pipeline->stats_interval_ns > 0) {
        uint64_t interval_ms = (uint64_t)((pipeline->stats_interval_ns - 1) / WEIR_MILLISECOND + 1);
        uv_update_time(&pipeline->loop);
        uv_timer_start(&pipeline->lap_timer, on_lap, interval_ms, interval_ms);
    }
    on_watch(&pipeline->watch_timer);
    uv_run(&pipeline->loop, UV_RUN_DEFAULT);
}

static int make_laps(weir_pipeline *pipeline)
{
    pipeline->stage_infos = calloc(pipeline->num_nodes, sizeof *pipeline->stage_infos);
    pipeline->stage_laps = calloc(pipeline->num_nodes, sizeof *pipeline->stage_laps);
    pipeline->queue_laps = calloc(pipeline->num_queues, sizeof *pipeline->queue_laps);
    if (!pipeline->stage_infos || !pipeline->stage_laps || !pipeline->queue_laps)
        return WEIR_ENOMEM;
    for (uint32_t i = 0; i < pipeline->num_nodes; i++) {
        struct stage_lap *taken = &pipeline->stage_laps[i];
        taken->lap = (weir_stage_lap){ &pipeline->lap, pipeline->nodes[i]->name, pipeline->nodes[i]->kind, { 0 } };
        if (!(taken->run_times = calloc(1, sizeof(weir_histogram))))
            return WEIR_ENOMEM;
    }
    struct queue_lap *queue_lap = pipeline->queue_laps;
    for (uint32_t i = 0; i < pipeline->num_nodes; i++)
        for (uint32_t j = 0; j < pipeline->nodes[i]->num_outs; j++) {
            const weir_queue *queue = &pipeline->nodes[i]->outs[j];
            queue_lap++->lap = (weir_queue_lap){ &pipeline->lap, queue->name, queue->capacity, { 0 } };
        }
    for (uint32_t i = 0; i < pipeline->num_queues; i++) {
        struct queue_lap *taken = &pipeline->queue_laps[i];
        taken->put_times = calloc(1, sizeof *taken->put_times);
        taken->get_times = calloc(1, sizeof *taken->get_times);
        if (!taken->put_times || !taken->get_times)
            return WEIR_ENOMEM;
    }
    return WEIR_OK;
}

static int make_loop(weir_pipeline *pipeline)
{
    int code = uv_loop_init(&pipeline->loop);
    if (code != 0)
        return code;
    pipeline->loop_made = true;
    uv_timer_init(&pipeline->loop, &pipeline->lap_timer);
    uv_timer_init(&pipeline->loop, &pipeline->watch_timer);
    uv_timer_init(&pipeline->loop, &pipeline->backstop_timer);
    pipeline->lap_timer.data = pipeline->watch_timer.data = pipeline->backstop_timer.data = pipeline;
    code = uv_async_init(&pipeline->loop, &pipeline->wake, on_wake);
    pipeline->wake.data = pipeline;
    pipeline->wake_made = code == 0;
    return code;
}

int weir_statistics_init(weir_pipeline *pipeline, weir_error *error)
{
    if (make_laps(pipeline) != WEIR_OK)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the statistics");
    int code = make_loop(pipeline);
    if (code != 0)
        return weir_error_set(error, WEIR_ESYSTEM, code, "cannot make the statistics' event loop: %s",
                              uv_strerror(code));
    return WEIR_OK;
}

int weir_statistics_start(weir_pipeline *pipeline, weir_error *error)
{
    int code = uv_thread_create(&pipeline->statistics_thread, statistics_main, pipeline);
    if (code != 0)
        return weir_error_set(error, WEIR_ESYSTEM, code, "cannot start the statistics thread: %s", uv_strerror(code));
    pipeline->statistics_started = true;
    return WEIR_OK;
}

void weir_statistics_join(weir_pipeline *pipeline)
{
    if (pipeline->statistics_started)
        uv_thread_join(&pipeline->statistics_thread);
}

static void free_laps(weir_pipeline *pipeline)
{
    for (uint32_t i = 0; pipeline->stage_laps && i < pipeline->num_nodes; i++)
        free(pipeline->stage_laps[i].run_times);
    for (uint32_t i = 0; pipeline->queue_laps && i < pipeline->num_queues; i++) {
        free(pipeline->queue_laps[i].put_times);
        free(pipeline->queue_laps[i].get_times);
    }
    free(pipeline->queue_laps);
    free(pipeline->stage_laps);
    free(pipeline->stage_infos);
}

void weir_statistics_destroy(weir_pipeline *pipeline)
{
    if (pipeline->loop_made) {
        uv_close((uv_handle_t *)&pipeline->lap_timer, NULL);
        uv_close((uv_handle_t *)&pipeline->watch_timer, NULL);
        uv_close((uv_handle_t *)&pipeline->backstop_timer, NULL);
        if (pipeline->wake_made)
            uv_close((uv_handle_t *)&pipeline->wake, NULL);
        uv_run(&pipeline->loop, UV_RUN_DEFAULT);
        uv_loop_close(&pipeline->loop);
    }
    while (pipeline->reports) {
        weir_report *report = pipeline->reports;
        pipeline->reports = report->next;
        free(report);
    }
    free_laps(pipeline);
}
