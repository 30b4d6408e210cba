/*
 * The lock of the pipeline. It is held for tens of nanoseconds, so a thread that finds it taken spins for some
 * microseconds, with growing pauses, before it sleeps. The lock is not fair: a thread that has just finished a hand-
 * off can do a few more while its data is in its cache, which improves throughput.
 *
 * Whom to wake. Waking a sleeping thread costs several microseconds on both sides. If steps are much shorter than that, a
 * second thread would only compete with the first one for the lock. So short steps are left to a thread that is in a
 * short step and will pick again soon. For all other work a thread is woken, one at a time. That thread checks for
 * more work after it has picked a slot.
 *
 * The consumer and the pool hand over many items at a time in the same way. A consumer that waits is told of results when a
 * task waits for room, when no short step is left, or after 20 µs. Room in the sink queue makes short steps ready.
 * They are left to a sleeping or spinning thread until half of the queue is taken.
 *
 * If a step that was expected to be short takes long, or the consumer takes no more, no thread would check. So while
 * something is left in this way, or there are bursts, the service thread checks every millisecond. It wakes a thread
 * for steps that have waited for half of that. After its check, sleeping consumers are told at once. A timer of each
 * thread that sleeps would cost more than all else: to set and cancel it takes 3 µs in a virtual machine.
 */
#include "engine/state/lock.h"

#include <stdio.h>
#include <sys/eventfd.h>

#include "engine/state/burst.h"
#include "engine/state/spin_wait.h"

/* How long a result may wait for more: what it takes to wake a consumer was measured as 17 to 23 µs. */
#define LONGEST_DELAY_NS (20 * WEIR_MICROSECOND)

enum { MAX_SPINS = 32, LONGEST_PAUSE = 32 /* times cpu_relax(): about a microsecond */ };

static void acquire_lock(weir_pipeline *pipeline)
{
    for (int look = 0, pause = 4; look < MAX_SPINS; look++) {
        if (uv_mutex_trylock(&pipeline->lock) == 0)
            return;
        for (int i = 0; i < pause; i++)
            cpu_relax();
        pause = 2 * pause < LONGEST_PAUSE ? 2 * pause : LONGEST_PAUSE;
    }
    uv_mutex_lock(&pipeline->lock);
}

static void tell_bursts_locked(weir_pipeline *pipeline, bool ends)
{
    if (pipeline->bursts || pipeline->consumer.ahead.is_open)
        weir__bursts_tell_locked(pipeline, ends);
}

void weir__engine_lock(weir_pipeline *pipeline)
{
    acquire_lock(pipeline);
    tell_bursts_locked(pipeline, true);
}

void weir__engine_lock_for_step(weir_pipeline *pipeline, int64_t now_ns)
{
    acquire_lock(pipeline);
    tell_bursts_locked(pipeline, false);
    weir__graph_move_time(&pipeline->core, now_ns);
}

void weir__engine_wait_locked(weir_pipeline *pipeline, uv_cond_t *cond, int64_t timeout_ns)
{
    if (timeout_ns == WEIR_FOREVER)
        uv_cond_wait(cond, &pipeline->lock);
    else
        uv_cond_timedwait(cond, &pipeline->lock, (uint64_t)timeout_ns);
    tell_bursts_locked(pipeline, false);
    weir__graph_move_time(&pipeline->core, weir_clock_ns());
}

/* ---- what events have left to be done ------------------------------------------------------------------------ */

/* From now on a task that does not stop is worth a warning. */
static void ask_to_stop_locked(weir_task *slot)
{
    const weir_pipeline *pipeline = slot->node->pipeline;
    if (atomic_load_explicit(&slot->should_stop, memory_order_relaxed) && !slot->core.overdue)
        return;
    int64_t age_ns = weir__task_age_ns(slot, pipeline->core.now_ns);
    atomic_store_explicit(&slot->should_stop, true, memory_order_relaxed);
    if (pipeline->stall_warning_ns != WEIR_FOREVER)
        slot->warn_after_ns = age_ns + WEIR_SECOND;
}

static void ask_cancelled_to_stop_locked(weir_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        const weir_node *node = pipeline->nodes[i];
        for (uint32_t j = 0; j < node->core.num_made && node->core.cancelled; j++) {
            slot_state state = node->core.slots[j]->state;
            if (state == SLOT_RUNNING || state == SLOT_PENDING)
                ask_to_stop_locked(weir__slot_at(node, j));
        }
    }
}

static void describe_failure_locked(weir_pipeline *pipeline)
{
    const weir__graph *graph = &pipeline->core;
    const weir_node *node = (const weir_node *)graph->failed_node;
    const weir_task *slot = (const weir_task *)graph->failed_slot;
    const weir_error *error = slot ? &slot->error : &node->first_error;
    pipeline->error = *error;
    if (graph->failure == WEIR__FAILURE_ITSELF || graph->failure == WEIR__FAILURE_PLACE)
        return;
    if (graph->failure == WEIR__FAILURE_ALL) {
        snprintf(pipeline->error.message, sizeof pipeline->error.message,
                 "all %llu tasks of the first %sepoch failed, so there is nothing to go on with; the first: %.400s",
                 (unsigned long long)(node->core.total_tasks - node->core.part_tasks),
                 graph->num_part_epochs ? "whole " : "", error->message);
        return;
    }
    snprintf(pipeline->error.message, sizeof pipeline->error.message,
             "%llu of %llu tasks failed, more than max_failures allows; %s: %.400s",
             (unsigned long long)node->core.total_failures, (unsigned long long)node->core.total_tasks,
             graph->failure == WEIR__FAILURE_LAST ? "the last" : "the first", error->message);
}

static void handle_news_locked(weir_pipeline *pipeline)
{
    uint32_t news = pipeline->core.news;
    pipeline->core.news = 0;
    if (news & WEIR__NEWS_CANCELLED)
        ask_cancelled_to_stop_locked(pipeline);
    if (news & WEIR__NEWS_FAILED)
        describe_failure_locked(pipeline);
    if (news & WEIR__NEWS_SOURCES_ENDED)
        pipeline->sources_ended(pipeline);
    pipeline->waking.wake_service = true;
}

/* For spinning consumers, and those in an event loop. The descriptor never blocks: it is a counter of 0 or 1. */
static void set_consumable_locked(weir_pipeline *pipeline, bool is_consumable)
{
    eventfd_t count;
    atomic_store_explicit(&pipeline->consumer.is_consumable, is_consumable, memory_order_relaxed);
    if (pipeline->consumer.poll_fd >= 0 && is_consumable)
        eventfd_write(pipeline->consumer.poll_fd, 1);
    else if (pipeline->consumer.poll_fd >= 0)
        eventfd_read(pipeline->consumer.poll_fd, &count);
}

/* ---- waking -------------------------------------------------------------------------------------------------- */

/* More results will follow soon, and there is room for them. */
static bool consumer_can_wait_locked(const weir_pipeline *pipeline)
{
    const weir__graph *graph = &pipeline->core;
    return pipeline->consumer.patient == pipeline->consumer.waiting && runs_short_steps_locked(pipeline) &&
           !graph->sink->closed && !graph->stopped && !weir__graph_awaits_room(graph) &&
           graph->now_ns - graph->consumable_ns < LONGEST_DELAY_NS;
}

/* True = the caller must signal one sleeping thread of the pool, which then counts as waking. */
static bool is_thread_wanted_locked(weir_pool *pool)
{
    bool invites = pool_invites_locked(pool);
    if (pool->spinning)
        atomic_store_explicit(&pool->invites, invites, memory_order_relaxed);
    if (pool->sleeping <= pool->waking)
        return false;
    if (!invites) {
        pool->pipeline->waking.left_work |= pool->core.num_ready > 0;
        return false;
    }
    uint32_t coming = pool->waking + pool->spinning; /* each takes one slot, and all short steps */
    uint32_t wanted = coming > 0 ? pool->core.num_ready_slow : pool->core.num_ready;
    if (wanted <= coming)
        return false;
    pool->waking++;
    return true;
}

static bool is_consumer_wanted_locked(weir_pipeline *pipeline)
{
    if (pipeline->consumer.waiting <= pipeline->consumer.waking || !pipeline->core.consumable)
        return false;
    if (consumer_can_wait_locked(pipeline)) {
        pipeline->waking.left_work = true;
        return false;
    }
    pipeline->consumer.waking++;
    return true;
}

static void wake_service_locked(weir_pipeline *pipeline)
{
    pipeline->waking.left_work |= pipeline->bursts != NULL;
    if (__builtin_expect(!pipeline->waking.wake_service && (pipeline->waking.guarded || !pipeline->waking.left_work),
                         true))
        return;
    pipeline->waking.guarded |= pipeline->waking.left_work;
    pipeline->waking.wake_service = false;
    sem_post(&pipeline->service_wake);
}

/* All but the consumer, the pipeline's pool and the service thread. */
static void wake_others_locked(weir_pipeline *pipeline)
{
    if (pipeline->consumer.ahead.is_open && weir__graph_awaits_room(&pipeline->core))
        weir__ahead_end_locked(pipeline);
    if (__builtin_expect(pipeline->core.news != 0, false))
        handle_news_locked(pipeline);
    bool is_consumable =
        pipeline->core.consumable && (pipeline->consumer.poll_fd >= 0 || !consumer_can_wait_locked(pipeline));
    if (atomic_load_explicit(&pipeline->consumer.is_consumable, memory_order_relaxed) != is_consumable)
        set_consumable_locked(pipeline, is_consumable);
    for (uint32_t i = 1; i < pipeline->num_pools; i++)
        if (is_thread_wanted_locked(pipeline->pools[i]))
            uv_cond_signal(&pipeline->pools[i]->work);
}

void weir__wake_all_locked(weir_pipeline *pipeline)
{
    wake_others_locked(pipeline);
    if (is_consumer_wanted_locked(pipeline))
        uv_cond_signal(&pipeline->consumer.consumable);
    if (is_thread_wanted_locked(pipeline->pools[0]))
        uv_cond_signal(&pipeline->pools[0]->work);
    wake_service_locked(pipeline);
}

void weir__engine_unlock(weir_pipeline *pipeline)
{
    wake_others_locked(pipeline);
    bool wake_consumer = is_consumer_wanted_locked(pipeline);
    bool wake_thread = is_thread_wanted_locked(pipeline->pools[0]);
    wake_service_locked(pipeline);
    uv_mutex_unlock(&pipeline->lock);
    if (wake_thread)
        uv_cond_signal(&pipeline->pools[0]->work);
    if (wake_consumer)
        uv_cond_signal(&pipeline->consumer.consumable);
}

bool weir__engine_guard(weir_pipeline *pipeline)
{
    engine_lock_at(pipeline, weir_clock_ns());
    bool guarded = pipeline->waking.guarded = pipeline->waking.left_work;
    pipeline->waking.left_work = false;
    pipeline->consumer.patient = 0;
    weir__engine_unlock(pipeline);
    return guarded;
}

void weir__engine_unlock_last(weir_pipeline *pipeline)
{
    weir__wake_all_locked(pipeline);
    uv_mutex_unlock(&pipeline->lock);
}
