#include "engine/measure/live_sums.h"

#include <string.h>

/* ---- open spans ---------------------------------------------------------------------------------------------- */

void weir__pool_settle_locked(weir_pool *pool)
{
    int64_t now_ns = pool->pipeline->core.now_ns;
    uint32_t num_threads = atomic_load(&pool->num_wanted) + pool->num_leaving;
    pool->lap.idle_ns += num_threads * (now_ns - pool->threads_since_ns);
    pool->threads_since_ns = now_ns;
}

/* Until when the pool_thread's slot has waited for its thread (see count_time() in slots.c). If it still waits, its step will not
   begin before now. */
static int64_t waited_until_ns(weir_pool_thread *pool_thread, int64_t now_ns)
{
    int64_t reported_ns = atomic_load_explicit(&pool_thread->reported_began_ns, memory_order_relaxed);
    while (reported_ns <= 0 &&
           !atomic_compare_exchange_weak_explicit(&pool_thread->reported_began_ns, &reported_ns, -now_ns,
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
    return reported_ns > 0 && reported_ns < now_ns ? reported_ns : now_ns;
}

static void close_span_locked(weir_node *node, weir_task *slot, int64_t now_ns)
{
    int64_t since_ns = slot->core.since_ns;
    if (slot->core.state == SLOT_RUNNING) {
        int64_t until_ns = waited_until_ns(slot->thread, now_ns);
        node->core.time_ns[SLOT_READY] += until_ns > since_ns ? until_ns - since_ns : 0;
        since_ns = until_ns > since_ns ? until_ns : since_ns;
    }
    node->core.time_ns[weir__slot_time(&slot->core)] += now_ns - since_ns;
    slot->core.since_ns = now_ns;
}

/* Closes the open spans: they continue in the next lap. */
static void close_spans_locked(weir_pipeline *pipeline)
{
    int64_t now_ns = pipeline->core.now_ns;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        for (uint32_t j = 0; j < node->core.num_outs; j++)
            weir__queue_settle(&node->core.outs[j], now_ns);
        for (uint32_t j = 0; j < node->core.num_made; j++)
            close_span_locked(node, weir__slot_at(node, j), now_ns);
    }
    for (uint32_t i = 0; i < pipeline->num_pools; i++) {
        weir_pool *pool = pipeline->pools[i];
        weir__pool_settle_locked(pool);
        for (uint32_t j = 0; j < pool->num_made; j++) {
            weir_pool_thread *pool_thread = pool->threads[j];
            if (!pool_thread->running)
                continue;
            int64_t until_ns = waited_until_ns(pool_thread, now_ns);
            pool->lap.busy_ns +=
                now_ns - (until_ns > pool_thread->busy_since_ns ? until_ns : pool_thread->busy_since_ns);
            pool_thread->busy_since_ns = now_ns;
        }
    }
}

/* ---- moving -------------------------------------------------------------------------------------------------- */

/* What tasks have reported since the last call. */
static uint64_t take_work_locked(weir_node *node)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < node->core.num_made; i++) {
        weir_task *slot = weir__slot_at(node, i);
        uint64_t num_work = atomic_load_explicit(&slot->num_work, memory_order_relaxed);
        sum += num_work - slot->reported_work;
        slot->reported_work = num_work;
    }
    return sum;
}

static void save_node(weir_node *node, weir_task_metrics *saved)
{
    int64_t *time_ns = node->core.time_ns, held_bytes = weir__held_take(&node->held);
    *saved = node->core.lap;
    if (held_bytes < 0 || held_bytes > saved->max_held_bytes)
        saved->max_held_bytes = held_bytes;
    saved->num_work += take_work_locked(node);
    saved->busy_ns += time_ns[SLOT_RUNNING] + time_ns[SLOT_PENDING];
    saved->pending_ns += time_ns[SLOT_PENDING];
    saved->wait_in_ns += time_ns[SLOT_IDLE] + time_ns[TIME_EPOCH_TAIL] + time_ns[TIME_EPOCH_GAP];
    saved->epoch_tail_ns += time_ns[TIME_EPOCH_TAIL];
    saved->epoch_gap_ns += time_ns[TIME_EPOCH_GAP];
    saved->ended_ns += time_ns[TIME_ENDED];
    saved->wait_thread_ns += time_ns[SLOT_READY];
    saved->wait_turn_ns += time_ns[SLOT_TURN];
    saved->wait_out_ns += time_ns[SLOT_BLOCKED];
    memset(time_ns, 0, sizeof node->core.time_ns);
}

void weir__live_sums_save_locked(weir_pipeline *pipeline, weir__lap_figures *to)
{
    close_spans_locked(pipeline);
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        save_node(node, &to->metrics[node->subject].task);
        for (uint32_t j = 0; j < node->core.num_outs; j++)
            to->metrics[node->subject + 1 + j].queue = node->core.outs[j].lap;
    }
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        to->metrics[pipeline->pools[i]->subject].pool = pipeline->pools[i]->lap;
}

static void load_queue(weir__queue *queue, const weir_queue_metrics *saved, weir_live_histogram *times)
{
    queue->lap = *saved;
    if (queue->lap.max_depth < weir__queue_num_items(queue))
        queue->lap.max_depth = weir__queue_num_items(queue);
    if (queue->lap.max_bytes < (int64_t)queue->bytes)
        queue->lap.max_bytes = (int64_t)queue->bytes;
    queue->put_times = &times[0];
    queue->get_times = &times[1];
    queue->latencies = queue->consumer ? NULL : &times[2];
}

void weir__live_sums_load_locked(weir_pipeline *pipeline, const weir__lap_figures *from)
{
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        node->core.lap = from->metrics[node->subject].task;
        node->core.run_times = lap_times(from, node->subject);
        for (uint32_t j = 0; j < node->core.num_outs; j++)
            load_queue(&node->core.outs[j], &from->metrics[node->subject + 1 + j].queue,
                       lap_times(from, node->subject + 1 + j));
    }
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        pipeline->pools[i]->lap = from->metrics[pipeline->pools[i]->subject].pool;
}
