/* Describes the graph of a pipeline, and its state at one moment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "label.h"
#include "lock.h"

/* ---- the graph as text -------------------------------------------------------------------------------------- */

static void print_inputs(FILE *text, const weir_node *node)
{
    for (uint32_t i = 0; i < node->core.num_ins; i++)
        fprintf(text, "%s%s", i ? ", " : "  takes from ", node->core.ins[i]->name);
    if (node->core.num_ins)
        fputc('\n', text);
}

static void describe_queue(FILE *text, const weir__queue *queue)
{
    fprintf(text, "  puts into %s: %u items", queue->name, queue->capacity);
    if (queue->capacity_bytes != UINT64_MAX)
        fprintf(text, ", %llu bytes", (unsigned long long)queue->capacity_bytes);
    fprintf(text, queue->consumer ? "\n" : ", for the consumer\n");
}

static void print_node(FILE *text, const weir_node *node)
{
    fprintf(text, "%s: %s", node->name, node->kind);
    if (node->op && strcmp(node->op->name, node->short_name) != 0)
        fprintf(text, " (%s)", node->op->name);
    if (node->op && node->core.num_ins)
        fprintf(text, ", %u slot%s", node->concurrency, node->concurrency == 1 ? "" : "s");
    if (node->op)
        fprintf(text, ", %s %u thread%s", node->threads ? "its own" : "the pool's", node->pool->num_workers,
                node->pool->num_workers == 1 ? "" : "s");
    if (node->core.order == WEIR_ORDER_INPUT)
        fprintf(text, ", output in input order");
    if (node->task_deadline_ns)
        fprintf(text, ", deadline %g s", (double)node->task_deadline_ns / (double)WEIR_SECOND);
    if (node->core.epochs == WEIR_ENDLESS)
        fprintf(text, ", endless epochs");
    else if (node->core.epochs)
        fprintf(text, ", %u epoch%s", node->core.epochs, node->core.epochs == 1 ? "" : "s");
    fputc('\n', text);
    print_inputs(text, node);
    for (uint32_t i = 0; i < node->core.num_outs; i++)
        describe_queue(text, &node->core.outs[i]);
}

int weir_pipeline_describe(weir_pipeline *pipeline, char **description)
{
    if (!pipeline || !description)
        return WEIR_EINVAL;
    size_t size;
    *description = NULL;
    FILE *text = open_memstream(description, &size);
    if (!text)
        return WEIR_ENOMEM;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++)
        print_node(text, pipeline->nodes[i]);
    bool failed = ferror(text) != 0;
    if (fclose(text) == 0 && !failed)
        return WEIR_OK;
    free(*description);
    *description = NULL;
    return WEIR_ENOMEM;
}

/* ---- the snapshot ------------------------------------------------------------------------------------------- */

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
        .slots = node->core.num_slots,
        .num_tasks = node->op && node->core.num_ins ? node->core.total_tasks : 0,
        .num_failures = node->core.total_failures,
        .ended = node->core.state == NODE_DONE,
        .threads = node->threads ? atomic_load(&node->pool->num_workers) : 0,
    };
    if (__builtin_add_overflow(node->total_cpu_ns, atomic_load(&node->total_outside_cpu_ns), &stage->cpu_ns))
        stage->cpu_ns = INT64_MAX;
    for (uint32_t i = 0; i < node->core.num_made; i++)
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

static void look_at_tasks_locked(const weir_node *node, full_snapshot *snapshot)
{
    for (uint32_t i = 0; i < node->core.num_made && node->op; i++) {
        const weir_slot *slot = weir__slot_at(node, i);
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
        .waiting_to_put = 0,
    };
    for (const weir__slot *slot = queue->blocked.first; slot; slot = slot->next)
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
    snapshot->shown.marks_steps = pipeline->steps_marked;
    snprintf(snapshot->shown.phase, sizeof snapshot->shown.phase, "%s", pipeline->phase);
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
        .threads = atomic_load(&pipeline->pools[0]->num_workers),
        .delayed_ns = atomic_load(&pipeline->delayed_ns),
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
    for (size_t i = 0; i < shown->num_tasks; i++)
        weir__label_release(snapshot->labels[i]);
    free(snapshot->labels);
    free(snapshot->tasks);
    free(snapshot->queues);
    free(snapshot->stages);
    free(snapshot);
}

void weir_snapshot_print(const weir_snapshot *snapshot, FILE *file)
{
    if (!snapshot || !file)
        return;
    fprintf(file, "pipeline: %s\n", snapshot->state);
    for (size_t i = 0; i < snapshot->num_stages; i++) {
        const weir_stage_snapshot *stage = &snapshot->stages[i];
        fprintf(file,
                "%s: %s%u of %u slots running, %u pending, waiting: %u for input, %u for a thread, %u for their "
                "turn, %u for room",
                stage->name, stage->ended ? "ended; " : "", stage->running, stage->slots, stage->pending,
                stage->waiting_in, stage->waiting_thread, stage->waiting_turn, stage->waiting_out);
        fprintf(file, "; %llu tasks, %llu failed\n", (unsigned long long)stage->num_tasks,
                (unsigned long long)stage->num_failures);
    }
    for (size_t i = 0; i < snapshot->num_queues; i++) {
        const weir_queue_snapshot *queue = &snapshot->queues[i];
        fprintf(file, "%s: %u of %u items, %llu bytes, %u waiting to put; %llu in, %llu out\n", queue->name,
                queue->depth, queue->capacity, (unsigned long long)queue->bytes, queue->waiting_to_put,
                (unsigned long long)queue->num_put, (unsigned long long)queue->num_items);
    }
    for (size_t i = 0; i < snapshot->num_tasks; i++) {
        const weir_task_snapshot *task = &snapshot->tasks[i];
        fprintf(file, "task: %s %s %.3f s %s\n", task->stage, task->pending ? "pending" : "running",
                (double)task->age_ns / (double)WEIR_SECOND, task->label);
    }
}
