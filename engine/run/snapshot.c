/* The state of a pipeline at one moment. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/label.h"
#include "engine/measure/consumer_position.h"
#include "engine/measure/position.h"
#include "engine/run/run_room.h"
#include "engine/run/speedup.h"
#include "engine/state/lock.h"

/* The public struct, followed by what it points to. */
typedef struct full_snapshot {
    weir_snapshot shown;
    weir_stage_snapshot *stages;
    weir_queue_snapshot *queues;
    weir_task_snapshot *tasks;
    struct weir_label **labels; /* references, one for each task */
    size_t room_for_tasks;
} full_snapshot;

static void look_at_stage_locked(const weir_node *node, weir_stage_snapshot *stage)
{
    *stage = (weir_stage_snapshot){
        .name = node->name,
        .kind = node->kind,
        .concurrency = node->core.num_wanted,
        .slots = node->core.num_slots,
        .num_tasks = node->op && node->core.num_ins ? node->core.total_tasks : 0,
        .num_failures = node->core.total_failures,
        .failed_ns = node->core.total_failed_ns,
        .ended = node->core.state == NODE_DONE,
        .threads = node->threads ? atomic_load(&node->pool->num_wanted) : 0,
        .child_delay_ns = atomic_load(&node->total_outside_delay_ns),
        .work_unit = atomic_load(&node->work_unit),
    };
    stage->num_looks = node->total_looks.num;
    memcpy(stage->num_waits, node->total_looks.waits, sizeof stage->num_waits);
    if (__builtin_add_overflow(node->total_cpu_ns, atomic_load(&node->total_outside_cpu_ns), &stage->cpu_ns))
        stage->cpu_ns = INT64_MAX;
    for (uint32_t i = 0; i < node->core.num_made; i++) {
        stage->num_work += atomic_load_explicit(&weir__slot_at(node, i)->num_work, memory_order_relaxed);
        switch (node->core.slots[i]->state) {
        case SLOT_IDLE: stage->waiting_in++; break;
        case SLOT_READY: stage->waiting_thread++; break;
        case SLOT_RUNNING: stage->running++; break;
        case SLOT_PENDING: stage->pending++; break;
        case SLOT_TURN: stage->waiting_turn++; break;
        case SLOT_BLOCKED: stage->waiting_out++; break;
        default: break;
        }
    }
    stage->waiting_epoch_tail = node->core.place == EPOCH_TAIL ? stage->waiting_in : 0;
    stage->waiting_epoch_gap = node->core.place == EPOCH_GAP ? stage->waiting_in : 0;
}

static void look_at_tasks_locked(const weir_node *node, full_snapshot *snapshot)
{
    for (uint32_t i = 0; i < node->core.num_made && node->op; i++) {
        const weir_task *slot = weir__slot_at(node, i);
        if ((slot->core.state != SLOT_RUNNING && slot->core.state != SLOT_PENDING) ||
            snapshot->shown.num_tasks == snapshot->room_for_tasks)
            continue;
        struct weir_label *label = weir__label_hold(slot->label);
        snapshot->labels[snapshot->shown.num_tasks] = label;
        snapshot->tasks[snapshot->shown.num_tasks++] = (weir_task_snapshot){
            .stage = node->name,
            .label = weir__label_text(label),
            .age_ns = slot->core.run_ns + node->pipeline->core.now_ns - slot->core.entered_ns,
            .pending = slot->core.state == SLOT_PENDING,
        };
    }
}

static void look_at_queue_locked(const weir__queue *queue, weir_queue_snapshot *seen)
{
    *seen = (weir_queue_snapshot){
        .name = queue->name,
        .capacity = queue->capacity,
        .depth = queue->depth,
        .bytes = queue->bytes,
        .num_put = queue->total_put,
        .num_items = queue->total_got,
        .capacity_bytes = queue->capacity_bytes == UINT64_MAX ? 0 : queue->capacity_bytes,
        .waiting_to_put = queue->num_aside,
    };
    for (const weir__core_slot *slot = queue->blocked.first; slot; slot = slot->next)
        seen->waiting_to_put++;
}

static const char *state_locked(const weir_pipeline *pipeline)
{
    if (pipeline->core.over)
        return "ended";
    if (pipeline->core.stopped)
        return "stopping";
    return pipeline->core.failed ? "failed" : "running";
}

static void look_locked(weir_pipeline *pipeline, full_snapshot *snapshot)
{
    weir_queue_snapshot *queue = snapshot->queues;
    snapshot->shown.state = state_locked(pipeline);
    snapshot->shown.marks_steps = pipeline->position->steps_marked;
    snprintf(snapshot->shown.phase, sizeof snapshot->shown.phase, "%s", pipeline->position->phase);
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        const weir_node *node = pipeline->nodes[i];
        look_at_stage_locked(node, &snapshot->stages[i]);
        look_at_tasks_locked(node, snapshot);
        for (uint32_t j = 0; j < node->core.num_outs; j++)
            look_at_queue_locked(&node->core.outs[j], queue++);
    }
}

static size_t count_slots(weir_pipeline *pipeline)
{
    size_t slots = 0;
    weir__engine_lock(pipeline);
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++)
        slots += pipeline->nodes[i]->core.num_made;
    weir__engine_unlock(pipeline);
    return slots;
}

int weir_pipeline_snapshot(weir_pipeline *pipeline, weir_snapshot **taken)
{
    if (!pipeline || !taken)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    *taken = NULL;
    full_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot)
        return WEIR_ENOMEM;
    snapshot->room_for_tasks = count_slots(pipeline);
    snapshot->stages = calloc(pipeline->core.num_nodes, sizeof *snapshot->stages);
    snapshot->queues = calloc(pipeline->num_queues, sizeof *snapshot->queues);
    snapshot->tasks = calloc(snapshot->room_for_tasks, sizeof *snapshot->tasks);
    snapshot->labels = calloc(snapshot->room_for_tasks, sizeof *snapshot->labels);
    if (!snapshot->stages || !snapshot->queues || !snapshot->tasks || !snapshot->labels) {
        weir_snapshot_free(&snapshot->shown);
        return WEIR_ENOMEM;
    }
    snapshot->shown = (weir_snapshot){
        .stages = snapshot->stages,
        .num_stages = pipeline->core.num_nodes,
        .queues = snapshot->queues,
        .num_queues = pipeline->num_queues,
        .tasks = snapshot->tasks,
        .threads = atomic_load(&pipeline->pools[0]->num_wanted),
        .delayed_ns = weir__speedup_held_ns(pipeline),
    };

    engine_lock_at(pipeline, weir_clock_ns());
    look_locked(pipeline, snapshot);
    weir__engine_unlock(pipeline);
    *taken = &snapshot->shown;
    return WEIR_OK;
}

void weir_snapshot_free(weir_snapshot *shown)
{
    if (!shown)
        return;
    full_snapshot *snapshot = (full_snapshot *)shown; /* shown is its first member */
    assert(snapshot->labels || shown->num_tasks == 0);
    for (size_t i = 0; i < shown->num_tasks; i++)
        weir__label_release(snapshot->labels[i]);
    free(snapshot->labels);
    free(snapshot->tasks);
    free(snapshot->queues);
    free(snapshot->stages);
    free(snapshot);
}
