/* weir_pipeline_next(): the consumer takes results; weir_pipeline_poll_fd(): it waits for them in an event loop. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/measure/consumer_position.h"
#include "engine/resume/tracker.h"
#include "engine/run/absence.h"
#include "engine/state/burst.h"
#include "engine/state/lock.h"
#include "engine/state/spin_wait.h"
#include "engine/trace/trace_ring.h"

static void sleep_consumer_locked(weir_pipeline *pipeline, int64_t deadline_ns)
{
    bool is_patient = runs_short_steps_locked(pipeline);
    weir__bursts_tell_locked(pipeline, !is_patient);
    if (pipeline->core.consumable)
        return;
    weir__wake_all_locked(pipeline);
    pipeline->consumer.waiting++;
    pipeline->consumer.patient += is_patient;
    int64_t left_ns = deadline_ns == WEIR_FOREVER ? WEIR_FOREVER : deadline_ns - pipeline->core.now_ns;
    if (left_ns == WEIR_FOREVER || left_ns > 0)
        weir__engine_wait_locked(pipeline, &pipeline->consumer.consumable, left_ns);
    pipeline->consumer.patient -= is_patient && pipeline->consumer.patient;
    pipeline->consumer.waiting--;
    if (pipeline->consumer.waking)
        pipeline->consumer.waking--;
}

static void wait_consumable_locked(weir_pipeline *pipeline, int64_t deadline_ns)
{
    int64_t start_ns = pipeline->core.now_ns;
    int64_t spin_ns = pipeline->consumer.spin_ns;
    if (deadline_ns != WEIR_FOREVER && deadline_ns - start_ns < spin_ns)
        spin_ns = deadline_ns - start_ns;
    if (may_spin_locked(pipeline, true)) {
        weir__engine_unlock(pipeline);
        weir__spin(&pipeline->consumer.is_consumable, spin_ns);
        weir__engine_lock_for_step(pipeline, weir_clock_ns());
    }
    if (!pipeline->core.consumable)
        sleep_consumer_locked(pipeline, deadline_ns);
    pipeline->consumer.spin_ns = weir__spin_adapt(pipeline->consumer.spin_ns, pipeline->core.now_ns - start_ns);
}

/* The result of weir_pipeline_next() if there is no item, or items are no longer delivered. */
static int end_status_locked(const weir_pipeline *pipeline)
{
    if (pipeline->core.failed)
        return WEIR_EFAILED;
    return pipeline->core.stopped ? WEIR_ESTOPPED : WEIR_EOF;
}

/*
 * How long the consumer has waited for the item that it takes now. The wait begins with its first call that found no
 * item, whether that call waited or the consumer came back later. It ends at the latest when the item was available.
 * *late_ns: how long the item was available before the consumer came back.
 */
static int64_t waited_ns_locked(weir_pipeline *pipeline, int64_t start_ns, bool waited, int64_t *late_ns)
{
    int64_t since_ns = pipeline->consumer.asked_ns ? pipeline->consumer.asked_ns : start_ns;
    int64_t until_ns = waited ? pipeline->core.now_ns : pipeline->core.consumable_ns;
    if ((!waited && !pipeline->consumer.asked_ns) || until_ns < since_ns)
        since_ns = until_ns;
    *late_ns = pipeline->consumer.asked_ns && start_ns > until_ns ? start_ns - until_ns : 0;
    pipeline->consumer.asked_ns = 0;
    return until_ns - since_ns;
}

static _Thread_local weir_step_clock clock_of_thread; /* its address identifies the thread */

static const weir_node *sink_of(const weir_pipeline *pipeline)
{
    return pipeline->nodes[pipeline->core.num_nodes - 1];
}

static void consumer_leaves(const weir_pipeline *pipeline)
{
    weir__absence *own = &weir__absence_of_thread;
    if (own->from)
        return;
    own->credit = weir__speedup_begin(pipeline, sink_of(pipeline));
    own->from = own->credit.held_ns < 0 ? NULL : pipeline;
}

static void consumer_is_back(weir_pipeline *pipeline)
{
    weir__absence *own = &weir__absence_of_thread;
    if (own->from != pipeline)
        return;
    weir__speedup_end(pipeline, sink_of(pipeline), own->credit, NULL);
    own->from = NULL;
}

/* *waited: weir__consumer.in_wait counts the call. */
static int take_with_lock(weir_pipeline *pipeline, const weir_step_clock *self, weir_item *item, int64_t start_ns,
                          int64_t timeout_ns, bool *waited)
{
    int64_t deadline_ns = timeout_ns < 0 || timeout_ns > INT64_MAX - start_ns ? WEIR_FOREVER : start_ns + timeout_ns;
    int status;

    weir__engine_lock_for_step(pipeline, start_ns);
    weir__ahead_end_locked(pipeline);
    for (;;) {
        if (!pipeline->core.stopped && pipeline->core.sink->depth) {
            int64_t late_ns, waited_ns = waited_ns_locked(pipeline, start_ns, *waited, &late_ns);
            status = weir__graph_deliver(&pipeline->core, item, waited_ns, late_ns);
            if (status == WEIR_OK)
                weir__trace_deliver_locked(pipeline, item, waited_ns);
            weir__ahead_plan_locked(pipeline, self);
            break;
        }
        if (pipeline->core.stopped || pipeline->core.sink->closed) {
            status = end_status_locked(pipeline);
            break;
        }
        if (deadline_ns != WEIR_FOREVER && pipeline->core.now_ns >= deadline_ns) {
            status = WEIR_ETIMEDOUT;
            pipeline->consumer.asked_ns = pipeline->consumer.asked_ns ? pipeline->consumer.asked_ns : start_ns;
            break;
        }
        pipeline->consumer.in_wait += !*waited;
        *waited = true;
        wait_consumable_locked(pipeline, deadline_ns);
        weir__ahead_end_locked(pipeline);
    }
    weir__engine_unlock(pipeline);
    return status;
}

/* The pipeline may be freed as soon as no call is left that has waited. */
static void end_wait(weir_pipeline *pipeline)
{
    weir__engine_lock_for_step(pipeline, weir_clock_ns());
    pipeline->consumer.in_wait--;
    pipeline->waking.wake_service |= pipeline->closing;
    weir__engine_unlock_last(pipeline);
}

int weir_pipeline_next(weir_pipeline *pipeline, weir_item *item, int64_t timeout_ns)
{
    if (!pipeline || !item || (timeout_ns < 0 && timeout_ns != WEIR_FOREVER))
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    weir_step_clock *self = &clock_of_thread;
    consumer_is_back(pipeline);
    int64_t now_ns = step_clock_ns(self);
    int status = WEIR_OK;
    bool waited = false;
    if (!weir__ahead_take(pipeline, self, item, now_ns))
        status = take_with_lock(pipeline, self, item, now_ns, timeout_ns, &waited);
    if (pipeline->wants_position && status != WEIR_ETIMEDOUT)
        weir__position_change_epoch(pipeline, status, status == WEIR_OK ? item->epoch : 0);
    if (status == WEIR_OK)
        consumer_leaves(pipeline);
    if (pipeline->tracker && status == WEIR_OK)
        weir__tracker_delivered(pipeline->tracker, item);
    else if (pipeline->tracker && status == WEIR_EPOCH)
        weir__tracker_epoch_delivered(pipeline->tracker);
    if (waited)
        end_wait(pipeline);
    return status;
}

int weir_pipeline_poll_fd(weir_pipeline *pipeline, int *fd)
{
    if (!pipeline || !fd)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    int made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), spare = -1;
    weir__engine_lock(pipeline);
    if (pipeline->consumer.poll_fd >= 0)
        spare = made;
    else if ((pipeline->consumer.poll_fd = made) >= 0 && atomic_load(&pipeline->consumer.is_consumable))
        eventfd_write(made, 1);
    *fd = pipeline->consumer.poll_fd;
    weir__engine_unlock(pipeline);
    if (spare >= 0)
        close(spare);
    return *fd < 0 ? WEIR_ESYSTEM : WEIR_OK;
}
