/*
 * One step of a task, on a pool thread and without the lock: hooks, worker state, the operation, and its items. From
 * RUNNING to the end of the step this thread owns the slot.
 */
#include "engine/run/task_run.h"

#include <string.h>

#include "engine/base/label.h"
#include "engine/measure/kept_failures.h"
#include "engine/measure/outbox.h"
#include "engine/measure/thread_cpu.h"
#include "engine/resume/tracker.h"
#include "engine/run/speedup.h"
#include "engine/run/task_parts.h"
#include "engine/run/types.h"
#include "engine/state/burst.h"
#include "engine/state/failure_log.h"
#include "engine/state/lock.h"

static int fail_by_default(weir_task *slot, int status, const char *what)
{
    if (!slot->error.status)
        weir_error_set(&slot->error, status, 0, "%s: %s", what, weir_status_text(status));
    slot->error.status = status;
    return status;
}

static void *hook_state(const weir_task *slot, uint32_t index)
{
    size_t offset = 0;
    for (uint32_t i = 0; i < index; i++)
        offset += slot->node->task_hooks[i].state_size;
    return slot->hook_states ? (char *)slot->hook_states + offset : NULL;
}

static int begin_hooks(weir_task *slot)
{
    weir_node *node = slot->node;
    if (node->hook_bytes)
        memset(slot->hook_states, 0, node->hook_bytes);
    for (slot->hooks_begun = 0; slot->hooks_begun < node->num_task_hooks; slot->hooks_begun++) {
        weir_task_hook *hook = &node->task_hooks[slot->hooks_begun];
        int status =
            hook->begin ? hook->begin(hook->self, hook_state(slot, slot->hooks_begun), slot, &slot->core.in) : 0;
        if (status != WEIR_OK)
            return fail_by_default(slot, status < 0 ? status : WEIR_EHOOK, "the begin of a task hook failed");
    }
    return WEIR_OK;
}

/* Runs the end hooks of those that have begun, in reverse order. Returns `status`, or the failure of a hook. */
static int end_hooks(weir_task *slot, int status)
{
    if (slot->hooks_begun == 0)
        return status;

    weir_task_end end = {
        .start_ns = slot->task_start_ns,
        .run_ns = slot->node->pipeline->core.measures ? slot->core.run_ns + slot->core.step_run_ns : 0,
        .parts = slot->reported.parts,
        .num_parts = slot->num_parts,
    };
    while (slot->hooks_begun > 0) {
        weir_task_hook *hook = &slot->node->task_hooks[--slot->hooks_begun];
        end.status = status;
        end.out = status == WEIR_OK ? &slot->core.out : NULL;
        end.error = status < 0 ? &slot->error : NULL;
        int result = hook->end ? hook->end(hook->self, hook_state(slot, slot->hooks_begun), slot, &end) : 0;
        if (result != WEIR_OK && status >= 0)
            status = fail_by_default(slot, result < 0 ? result : WEIR_EHOOK, "the end of a task hook failed");
    }
    return status;
}

static int prepare_worker(weir_task *slot)
{
    weir_node *node = slot->node;
    if (slot->core.worker_live)
        return WEIR_OK;
    int status = node->op->worker_init ? node->op->worker_init(slot->worker, node->config, slot) : WEIR_OK;
    if (status != WEIR_OK) {
        if (node->op->worker_size)
            memset(slot->worker, 0, node->op->worker_size);
        return fail_by_default(slot, status < 0 ? status : WEIR_EINVAL, "the worker state could not be created");
    }
    slot->core.worker_live = true;
    return WEIR_OK;
}

/* For stages where the graph does not guarantee that every item has a type that the operation takes. */
static int check_type(weir_task *slot)
{
    const weir_node *node = slot->node;
    if (!node->op->takes || slot->core.flushing)
        return WEIR_OK;
    if (node->checks_types && !weir__types_hold(node->op->takes, slot->core.in.type))
        return weir_task_fail(slot, WEIR_EINVAL, 0, "takes \"%s\", but this item is \"%s\"", node->op->takes,
                              slot->core.in.type ? slot->core.in.type : "not declared");
    if (!slot->core.in.data)
        return weir_task_fail(slot, WEIR_EINVAL, 0, "the item has no data");
    return WEIR_OK;
}

static int begin_run(weir_task *slot)
{
    slot->task_start_ns = slot->core.begin_ns; /* unless the operation begins later */
    slot->error.status = 0;
    slot->num_parts = 0;
    slot->hooks_begun = 0;
    int status = slot->core.flushing || slot->node->core.num_ins == 0 ? WEIR_OK : begin_hooks(slot);
    if (status == WEIR_OK)
        status = check_type(slot);
    return status == WEIR_OK ? prepare_worker(slot) : status;
}

static bool is_result(const weir_task *slot, int status)
{
    bool is_source = slot->node->core.num_ins == 0;
    switch (status) {
    case WEIR_OK:
    case WEIR_SKIP: return true;
    case WEIR_PENDING: return !slot->core.finishing && !slot->core.flushing;
    case WEIR_MORE: return !slot->core.finishing && !is_source;
    case WEIR_KEPT: return !slot->core.finishing && !slot->core.flushing && slot->node->op->flush;
    case WEIR_EPOCH:
    case WEIR_EOF: return is_source;
    default: return status < 0;
    }
}

/* The clock may go back by some ns when it is corrected. */
static int64_t now_after(const weir_task *slot, int64_t earlier_ns)
{
    int64_t now_ns = step_clock_ns(&slot->thread->clock);
    return now_ns > earlier_ns ? now_ns : earlier_ns;
}

/* Runs the operation and measures it: from its first instruction to its return. */
static int run_timed(weir_task *slot)
{
    const weir_node *node = slot->node;
    int64_t start_ns = slot->op_start_known ? slot->core.begin_ns : now_after(slot, slot->core.begin_ns);
    weir__credit credit = weir__speedup_begin(node->pipeline, node);
    if (slot->num_parts)
        weir__parts_continue(slot);
    slot->number_after = 0;
    slot->core.out.made_ns = 0;
    int status = slot->core.flushing
                     ? node->op->flush(slot->worker, &slot->core.out, slot)
                     : node->op->run(slot->worker, node->core.num_ins ? &slot->core.in : NULL, &slot->core.out, slot);
    slot->core.end_ns = now_after(slot, start_ns);
    slot->core.step_run_ns = slot->core.end_ns - start_ns;
    if (credit.held_ns >= 0) {
        weir__speedup_end(node->pipeline, node, credit, &slot->should_stop);
        slot->core.end_ns = now_after(slot, slot->core.end_ns);
    }
    if (slot->core.num_chunks == 0)
        slot->task_start_ns = start_ns;
    return status;
}

/* Takes the result of weir_task_complete(). */
static int take_completion(weir_task *slot)
{
    slot->core.out = slot->pending_out;
    slot->pending_out = (weir_item){ 0 };
    return slot->pending_status;
}

/* The operation called weir_task_complete(), and its run() also returned a result: neither is used. */
static int completed_twice(weir_task *slot, int status)
{
    weir_pipeline *pipeline = slot->node->pipeline;
    weir__engine_lock(pipeline);
    weir_item brought = slot->pending_out;
    slot->pending_out = (weir_item){ 0 };
    weir__engine_unlock(pipeline);
    weir_item_release(&brought);
    return weir_task_fail(slot, WEIR_EINVAL, 0,
                          "the operation called weir_task_complete(), but returned %s instead of WEIR_PENDING",
                          weir_status_name(status));
}

static int check_result(weir_task *slot, int status)
{
    if (!is_result(slot, status))
        return weir_task_fail(slot, WEIR_EINVAL, 0, "the operation returned %d (%s), which is not allowed here",
                              status, weir_status_name(status));
    if (status != WEIR_PENDING && !slot->core.finishing &&
        atomic_load_explicit(&slot->was_completed, memory_order_relaxed))
        return completed_twice(slot, status);
    return status;
}

/* A source that runs again starts with a new worker state. */
static void restart_source(weir_task *slot)
{
    const weir_op *op = slot->node->op;
    if (slot->core.worker_live && op->worker_free)
        op->worker_free(slot->worker);
    if (op->worker_size)
        memset(slot->worker, 0, op->worker_size);
    slot->core.worker_live = false;
}

static int fail_if_late(weir_task *slot, int status)
{
    if (status == WEIR_PENDING || !atomic_load_explicit(&slot->is_overdue, memory_order_relaxed))
        return status;
    double deadline_s = (double)slot->node->task_deadline_ns / (double)WEIR_SECOND;
    return weir_task_fail(slot, WEIR_ETIMEDOUT, 0, "ran longer than its deadline of %g s", deadline_s);
}

static void copy_tail(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);
    memcpy(to, length < size ? from : from + length - size + 1, (length < size ? length : size - 1) + 1);
}

static bool was_asked_to_stop(const weir_task *slot, int status)
{
    return status != WEIR_ETIMEDOUT && atomic_load_explicit(&slot->should_stop, memory_order_relaxed);
}

/* Completes slot->error, logs it, reports it to the observers and keeps it for the program. */
static void report_failure(weir_task *slot, int status)
{
    weir_error *error = &slot->error;
    weir_node *node = slot->node;
    fail_by_default(slot, status, "the task failed");
    copy_tail(error->stage, sizeof error->stage, node->name);
    copy_tail(error->label, sizeof error->label, weir_task_label(slot));

    if (was_asked_to_stop(slot, status))
        return;
    weir__failure_log_add(node->pipeline->failure_log, node->core.index, error);
    if (node->core.num_ins)
        weir__outbox_add_failure(node->pipeline, slot);
    weir__kept_failures_add(node->pipeline->kept_failures, slot);
}

/* ---- the place of an input whose task has failed ------------------------------------------------------------------ */

static const weir_node *source_of_input(const weir_task *slot)
{
    const weir_pipeline *pipeline = slot->node->pipeline;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        const weir_node *node = pipeline->nodes[i];
        if (node->core.num_ins == 0 && node->core.source_index == slot->core.in.source)
            return node;
    }
    return NULL;
}

/* The inputs of the node are as their sources have made them. */
static bool takes_from_sources(const weir__core_node *node)
{
    for (uint32_t i = 0; i < node->num_ins; i++) {
        const weir__core_node *before = node->ins[i]->producer;
        if (before->num_ins && (before->has_tasks || !takes_from_sources(before)))
            return false;
    }
    return true;
}

/* The reason stands behind the failure, which has been reported. */
static weir__place place_lost(weir_task *slot, const char *why)
{
    weir_error failure = slot->error;
    slot->error.status = 0;
    weir_error_set(&slot->error, failure.status, failure.library_code, "%.260s; the last failure: %.200s", why,
                   failure.message);
    return WEIR__PLACE_LOST;
}

/* The input was released. */
static weir__place fill_place(weir_task *slot, const weir_node *source)
{
    weir_item *in = &slot->core.in, other = { 0 };
    weir_error error = { 0 };
    int status = source->op->replace(source->config, in->epoch, in->seq, slot->core.num_replaced + 1, &other, &error);
    if (status == WEIR_OK && !weir__label_inherit(&other, in))
        status = weir_error_set(&error, WEIR_ENOMEM, 0, "no memory for the item's label");
    if (status != WEIR_OK) {
        weir_item_release(&other);
        return place_lost(slot, error.message);
    }
    if (source->makes_one_type)
        other.type = source->op->makes;
    other.made_ns = in->made_ns;
    *in = other;
    return WEIR__PLACE_FILLED;
}

/* Sources may promise that each of their items becomes a result. The task has failed, and was not asked to stop. */
static weir__place find_place(weir_task *slot)
{
    const weir_node *source = slot->node->core.num_ins ? source_of_input(slot) : NULL;
    bool made_some = slot->core.num_chunks && !slot->core.flushing;
    if (!source || !source->op->replace || made_some)
        return WEIR__PLACE_EMPTY;
    if (source->op->replace(source->config, slot->core.in.epoch, slot->core.in.seq, 0, NULL, NULL) == WEIR_SKIP)
        return WEIR__PLACE_EMPTY;
    if (slot->core.flushing || !takes_from_sources(&slot->node->core))
        return place_lost(slot,
                          "the source promises a number of results, and only failures in the first stage can be "
                          "replaced: move the work that may fail there, or let the source leave out failed items");
    return fill_place(slot, source);
}

/* The operation returned this status: what it says of the task. */
static int take_result(weir_task *slot, int status)
{
    if (slot->core.out.data && slot->node->makes_one_type)
        slot->core.out.type = slot->node->op->makes;
    if ((status == WEIR_OK || status == WEIR_MORE) && !slot->core.finishing &&
        !weir__label_inherit(&slot->core.out, &slot->core.in))
        status = fail_by_default(slot, WEIR_ENOMEM, "no memory for the item's label");
    if (slot->number_after)
        slot->core.out.seq = (slot->core.in.seq << WEIR_NUMBER_BITS) + slot->number_after - 1;
    if ((status == WEIR_OK || status == WEIR_MORE) && slot->node->pipeline->tracker)
        status = weir__tracker_made(slot, status);
    if ((status == WEIR_EOF || status == WEIR_EPOCH) && slot->node->pipeline->tracker)
        status = weir__tracker_source_ended(slot, status);
    if (status == WEIR_EOF && slot->node->core.epochs) {
        restart_source(slot);
        status = WEIR_EPOCH;
    }
    return status;
}

/* What the operation, or a hook, says of the task. */
static int run_to_result(weir_task *slot)
{
    slot->core.out_index = 0;
    slot->op_start_known = !slot->node->pipeline->core.measures ||
                           (slot->core.worker_live && (!slot->core.starts_task || slot->node->num_task_hooks == 0));
    int status = slot->core.starts_task ? begin_run(slot) : WEIR_OK;
    if (status == WEIR_OK) {
        status = slot->core.finishing ? take_completion(slot) : run_timed(slot);
        status = fail_if_late(slot, check_result(slot, status));
    }
    return take_result(slot, status);
}

static void end_task_step(weir_task *slot, int status)
{
    bool is_tracked = slot->node->pipeline->tracker;
    int64_t op_end_ns = slot->core.end_ns;
    bool ended = status != WEIR_MORE && status != WEIR_PENDING;
    bool calls =
        ended && slot->node->pipeline->core.measures && (slot->hooks_begun || status < 0 || slot->core.in.release);
    if (ended)
        status = end_hooks(slot, status);
    if (status < 0)
        report_failure(slot, status);
    if (ended)
        weir__cause_release(slot);
    if (ended && status != WEIR_OK)
        item_drop(&slot->core.out);
    if (ended)
        item_drop(&slot->core.in); /* the task of a source keeps the number of the next item */
    if (status < 0)
        slot->core.place = was_asked_to_stop(slot, status) ? WEIR__PLACE_EMPTY : find_place(slot);
    if (is_tracked)
        weir__tracker_step_ends(slot, status);
    if (calls || op_end_ns == slot->core.begin_ns)
        slot->core.end_ns = now_after(slot, slot->core.end_ns);
    slot->core.status = status;
}

static void run_task_step(weir_task *slot)
{
    if (slot->node->pipeline->tracker)
        weir__tracker_step_begins(slot);
    end_task_step(slot, run_to_result(slot));
}

/* The same for the second and later steps of a burst. Most of them are plain: they have no hook, deadline,
   checkpoint, flush or new worker (weir__burst_allowed()). The operation returns one result, and has left nothing to
   be released. */
static void run_next_step(weir_task *slot)
{
    weir__core_slot *core = &slot->core;
    const weir_node *node = slot->node;
    if (node->op->takes && (node->checks_types || !core->in.data)) {
        run_task_step(slot);
        return;
    }
    slot->error.status = 0;
    slot->num_parts = 0;
    slot->op_start_known = true;
    int status = run_timed(slot);
    bool is_plain = status == WEIR_OK && !slot->cause && !core->in.release && !core->in.label_owner &&
                    !core->out.label && !core->out.made_ns && !slot->number_after && core->end_ns > core->begin_ns &&
                    !atomic_load_explicit(&slot->was_completed, memory_order_relaxed);
    if (!is_plain) {
        end_task_step(slot, take_result(slot, fail_if_late(slot, check_result(slot, status))));
        return;
    }
    if (node->makes_one_type)
        core->out.type = node->op->makes;
    core->out.seq = core->in.seq;
    core->out.epoch = core->in.epoch;
    core->out.source = core->in.source;
    core->out.order_number = core->in.order_number;
    core->out.label = "";
    core->in.data = NULL;
    core->status = WEIR_OK;
}

/* More than one in a burst. */
static void run_task_steps(weir_pool_thread *pool_thread, weir_task *slot)
{
    run_task_step(slot);
    while (pool_thread->burst.plan.num_steps && weir__burst_continue(pool_thread, &slot->core))
        run_next_step(slot);
}

static void abandon_task(weir_task *slot)
{
    if (slot->hooks_begun) {
        fail_by_default(slot, WEIR_ESTOPPED, "the task was cancelled");
        end_hooks(slot, WEIR_ESTOPPED);
    }
    weir__cause_release(slot);
    weir_item_release(&slot->pending_out);
    weir_item_release(&slot->core.out);
    weir_item_release(&slot->core.in);
    slot->core.status = WEIR_ESTOPPED;
}

static int start_stage_hooks(weir_node *node, weir_error *error)
{
    for (; node->core.stage_hooks_begun < node->num_stage_hooks; node->core.stage_hooks_begun++) {
        weir_stage_hook *hook = &node->stage_hooks[node->core.stage_hooks_begun];
        int status = hook->start ? hook->start(hook->self, node->name, error) : WEIR_OK;
        if (status != WEIR_OK)
            return status;
    }
    return WEIR_OK;
}

static int end_stage_hooks(weir_node *node, weir_error *error)
{
    int first = WEIR_OK;
    while (node->core.stage_hooks_begun > 0) {
        weir_stage_hook *hook = &node->stage_hooks[--node->core.stage_hooks_begun];
        int status = hook->end ? hook->end(hook->self, node->name, first ? NULL : error) : WEIR_OK;
        if (first == WEIR_OK)
            first = status;
    }
    return first;
}

static void run_lifecycle(weir_task *slot)
{
    weir_node *node = slot->node;
    bool starting = node->core.state == NODE_STARTING;
    slot->error = (weir_error){ 0 };
    slot->core.status = WEIR_OK;
    if (!starting)
        slot->core.status = end_stage_hooks(node, &slot->error);
    else if (!slot->core.abandoned)
        slot->core.status = start_stage_hooks(node, &slot->error);
    if (slot->core.status == WEIR_OK)
        return;

    slot->core.status = slot->core.status < 0 ? slot->core.status : WEIR_EHOOK;
    fail_by_default(slot, slot->core.status,
                    starting ? "a stage hook failed at the start" : "a stage hook failed at the end");
    copy_tail(slot->error.stage, sizeof slot->error.stage, node->name);
    char line[WEIR_ERROR_LINE];
    weir_error_format(&slot->error, line, sizeof line);
    weir_log(WEIR_LOG_ERROR, "%s", line);
}

void weir__run_step(weir_pool_thread *pool_thread, weir_task *slot)
{
    slot->core.end_ns = slot->core.begin_ns;
    slot->core.step_run_ns = 0;
    if (slot->core.is_lifecycle)
        run_lifecycle(slot);
    else if (slot->core.abandoned)
        abandon_task(slot);
    else
        run_task_steps(pool_thread, slot);
    if (slot->core.is_lifecycle || slot->core.abandoned)
        slot->core.end_ns = now_after(slot, slot->core.end_ns);
    weir__thread_cpu_step_ended(pool_thread, slot);
}
