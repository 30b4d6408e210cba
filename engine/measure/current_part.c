#include "engine/measure/current_part.h"

#include <string.h>

#include "engine/measure/part.h"
#include "engine/measure/position.h"
#include "engine/state/lock.h"
#include "engine/trace/trace_ring.h"

/* A stretch of at least this length ends its lap: it is a lap of its own, or the last of one. */
static const int64_t long_stretch_ns = 1 * WEIR_SECOND;

/* With so many parts that are not taken yet, the lap ends; with so many, no part begins. */
enum { MANY_PARTS = 32, MAX_PARTS = 256 };

/* ---- entering and leaving ------------------------------------------------------------------------------------ */

static void add_current_step_locked(weir_pipeline *pipeline)
{
    if (pipeline->position->has_step)
        weir__part_add_steps(pipeline->open_lap->part, pipeline->position->step, pipeline->position->step);
}

void weir__pool_settle_locked(weir_pool *pool)
{
    int64_t now_ns = pool->pipeline->core.now_ns;
    pool->lap.idle_ns += atomic_load(&pool->num_workers) * (now_ns - pool->threads_since_ns);
    pool->threads_since_ns = now_ns;
}

/* Until when the worker's slot has waited for its thread (see count_time() in slots.c). If it still waits, its step will not
   begin before now. */
static int64_t waited_until_ns(weir_worker *worker, int64_t now_ns)
{
    int64_t told_ns = atomic_load_explicit(&worker->told_began_ns, memory_order_relaxed);
    while (told_ns <= 0 && !atomic_compare_exchange_weak_explicit(&worker->told_began_ns, &told_ns, -now_ns,
                                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
    return told_ns > 0 && told_ns < now_ns ? told_ns : now_ns;
}

static void close_span_locked(weir_node *node, weir_slot *slot, int64_t now_ns)
{
    int64_t since_ns = slot->core.since_ns;
    if (slot->core.state == SLOT_RUNNING) {
        int64_t until_ns = waited_until_ns(slot->thread, now_ns);
        node->core.time_ns[SLOT_READY] += until_ns > since_ns ? until_ns - since_ns : 0;
        since_ns = until_ns > since_ns ? until_ns : since_ns;
    }
    node->core.time_ns[slot->core.state] += now_ns - since_ns;
    slot->core.since_ns = now_ns;
}

/* Closes the open spans: they continue in the next part. */
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
            weir_worker *worker = pool->workers[j];
            if (!worker->running)
                continue;
            int64_t until_ns = waited_until_ns(worker, now_ns);
            pool->lap.busy_ns += now_ns - (until_ns > worker->busy_since_ns ? until_ns : worker->busy_since_ns);
            worker->busy_since_ns = now_ns;
        }
    }
}

static void save_node(weir_node *node, weir_task_metrics *saved)
{
    int64_t *time_ns = node->core.time_ns;
    *saved = node->core.lap;
    saved->busy_ns += time_ns[SLOT_RUNNING] + time_ns[SLOT_PENDING];
    saved->pending_ns += time_ns[SLOT_PENDING];
    saved->wait_in_ns += time_ns[SLOT_IDLE];
    saved->wait_thread_ns += time_ns[SLOT_READY];
    saved->wait_turn_ns += time_ns[SLOT_TURN];
    saved->wait_out_ns += time_ns[SLOT_BLOCKED];
    memset(time_ns, 0, sizeof node->core.time_ns);
}

/* Moves the sums into the part. */
static void leave_part_locked(weir_pipeline *pipeline)
{
    weir_part *part = pipeline->open_lap->part;
    close_spans_locked(pipeline);
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        save_node(node, &part->metrics[node->subject].task);
        for (uint32_t j = 0; j < node->core.num_outs; j++)
            part->metrics[node->subject + 1 + j].queue = node->core.outs[j].lap;
    }
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        part->metrics[pipeline->pools[i]->subject].pool = pipeline->pools[i]->lap;
    part->lap.elapsed_ns += pipeline->core.now_ns - pipeline->open_lap->since_ns;
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

/* Moves the sums out of the part. */
static void enter_part_locked(weir_pipeline *pipeline, weir_part *part)
{
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        node->core.lap = part->metrics[node->subject].task;
        node->core.run_times = part_times(part, node->subject);
        for (uint32_t j = 0; j < node->core.num_outs; j++)
            load_queue(&node->core.outs[j], &part->metrics[node->subject + 1 + j].queue,
                       part_times(part, node->subject + 1 + j));
    }
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        pipeline->pools[i]->lap = part->metrics[pipeline->pools[i]->subject].pool;
    weir_part **link = &pipeline->open_lap->parts;
    while (*link)
        link = &(*link)->next;
    *link = pipeline->open_lap->part = part;
    pipeline->open_lap->since_ns = pipeline->core.now_ns;
    weir__span_set_part(pipeline, part->id);
    add_current_step_locked(pipeline);
}

/* Makes it the current part, of the current mode and phase. */
static void install_part_locked(weir_pipeline *pipeline, weir_part *part)
{
    memcpy(part->mode, pipeline->position->mode, sizeof part->mode);
    memcpy(part->phase, pipeline->position->phase, sizeof part->phase);
    part->paused = pipeline->paused;
    part->next = NULL;
    enter_part_locked(pipeline, part);
}

/* The parts of the open lap. */
static weir_part **open_parts_locked(weir_pipeline *pipeline)
{
    weir_part **open = &pipeline->open_lap->parts;
    for (weir_part *part = pipeline->open_lap->parts; part; part = part->next)
        if (part->ends_lap)
            open = &part->next;
    return open;
}

static uint32_t count_parts(const weir_part *part)
{
    uint32_t count = 0;
    for (; part; part = part->next)
        count++;
    return count;
}

void weir__part_switch_locked(weir_pipeline *pipeline, bool ends_lap)
{
    weir_part *before = pipeline->open_lap->part;
    if (!before)
        return; /* nothing is measured */
    uint32_t num_parts = count_parts(pipeline->open_lap->parts);
    bool stays = weir__part_is_at(before, pipeline->position->mode, pipeline->position->phase);
    ends_lap |= !stays &&
                (num_parts >= MANY_PARTS || pipeline->core.now_ns - pipeline->open_lap->since_ns >= long_stretch_ns);
    weir_part **link =
        weir__part_find(open_parts_locked(pipeline), pipeline->position->mode, pipeline->position->phase);
    bool begins = ends_lap || !*link;
    bool is_full = num_parts >= MAX_PARTS && before->paused == pipeline->paused;
    if ((stays && !ends_lap) || (begins && (!pipeline->open_lap->spares || is_full))) {
        add_current_step_locked(pipeline);
        return;
    }
    weir_part **from = begins ? &pipeline->open_lap->spares : link, *next = *from;
    pipeline->open_lap->num_spares -= begins;
    leave_part_locked(pipeline);
    *from = next->next;
    next->next = NULL;
    if (ends_lap) {
        before->ends_lap = pipeline->open_lap->has_ended = pipeline->waking.wake_service = true;
        weir__trace_mark_locked(pipeline, WEIR_TRACE_LAP, 0);
    }
    if (begins)
        install_part_locked(pipeline, next);
    else
        enter_part_locked(pipeline, next);
}

void weir__part_add_step_locked(weir_pipeline *pipeline, int64_t step_ns)
{
    weir_part *part = pipeline->open_lap->part;
    if (!part)
        return;
    const weir_span_metrics step = { 1, step_ns, step_ns, step_ns, NULL };
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_SPAN), &part->steps, &step);
    live_histogram_record(&part_times(part, pipeline->open_lap->num_subjects - 1)[0], step_ns, 1);
}

/* ---- taking -------------------------------------------------------------------------------------------------- */

/*
 * A reading of CPU time may be a little later than the end of the parts: what is more than the busy time belongs to the part
 * that is current now. Returns the CPU time in other processes, of which one task may have used more than its own.
 */
static int64_t divide_cpu_locked(weir_node *node, weir_part *taken)
{
    int64_t outside_ns = atomic_exchange_explicit(&node->outside_cpu_ns, 0, memory_order_relaxed);
    int64_t busy_ns = 0, cpu_ns = 0, up_to_ns = 0;
    for (weir_part *part = taken; part; part = part->next) {
        busy_ns += part->metrics[node->subject].task.busy_ns;
        cpu_ns += part->metrics[node->subject].task.cpu_ns;
    }
    if (cpu_ns > busy_ns) {
        node->core.lap.cpu_ns += cpu_ns - busy_ns;
        cpu_ns = busy_ns;
    }
    for (weir_part *part = taken; part; part = part->next) {
        weir_task_metrics *task = &part->metrics[node->subject].task;
        int64_t begin_ns = up_to_ns;
        up_to_ns = part->next ? up_to_ns + task->busy_ns : busy_ns;
        task->cpu_ns = weir__share_of(cpu_ns, begin_ns, up_to_ns, busy_ns);
        weir__add_known(&task->cpu_ns, weir__share_of(outside_ns, begin_ns, up_to_ns, busy_ns));
    }
    return outside_ns;
}

weir_part *weir__parts_take_locked(weir_pipeline *pipeline, weir_part *fresh, int64_t *outside_cpu_ns)
{
    weir_part *taken = pipeline->open_lap->parts, **open = open_parts_locked(pipeline);
    if (fresh && pipeline->open_lap->part)
        leave_part_locked(pipeline);
    if (fresh) {
        pipeline->open_lap->parts = NULL;
        install_part_locked(pipeline, fresh);
    } else if (open == &pipeline->open_lap->parts) {
        taken = NULL; /* no lap has ended */
    } else {
        pipeline->open_lap->parts = *open;
        *open = NULL;
    }
    pipeline->open_lap->has_ended = false;
    *outside_cpu_ns = 0;
    for (uint32_t i = 0; taken && i < pipeline->core.num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        weir__add_known(outside_cpu_ns, divide_cpu_locked(node, taken));
        for (const weir_part *part = taken; part; part = part->next) {
            const weir__stage_sum sum = weir__stage_sum_of(&part->metrics[node->subject].task);
            if (!part->paused)
                weir__stage_sum_add(&node->dumped, &sum);
        }
    }
    return taken;
}

bool weir__part_is_open(weir_pipeline *pipeline, uint64_t id)
{
    weir__engine_lock(pipeline);
    const weir_part *part = pipeline->open_lap->parts;
    while (part && part->id != id)
        part = part->next;
    weir__engine_unlock(pipeline);
    return part;
}
