/* An operation's view of its task. */
#include "engine/base/label.h"
#include "engine/base/message_text.h"
#include "engine/measure/kept_failures.h"
#include "engine/run/run_room.h"
#include "engine/state/lock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool weir_task_should_stop(const weir_task *task)
{
    return task && atomic_load_explicit(&task->should_stop, memory_order_relaxed);
}

const char *weir_task_label(const weir_task *task)
{
    return task ? slot_label(task) : "";
}

uint64_t weir_task_seq(const weir_task *task)
{
    return task ? task->core.in.seq : 0;
}

uint64_t weir_task_epoch(const weir_task *task)
{
    return task ? task->core.in.epoch : 0;
}

uint32_t weir_task_source(const weir_task *task)
{
    return task ? task->core.in.source : 0;
}

uint32_t weir_task_num_chunks(const weir_task *task)
{
    return task ? task->core.num_chunks : 0;
}

int weir_task_set_label(weir_task *task, const char *text)
{
    return task ? weir_item_set_address(&task->core.in, text, 0) : WEIR_EINVAL;
}

weir_identity weir_task_identity(const weir_task *task)
{
    return weir_item_identity(task ? &task->core.in : NULL);
}

void weir_task_set_number(weir_task *task, uint64_t number)
{
    if (task)
        task->number_after = number + 1;
}

static void add_saturated(_Atomic int64_t *sum_ns, int64_t ns)
{
    int64_t before_ns = atomic_load_explicit(sum_ns, memory_order_relaxed), after_ns;
    do
        after_ns = ns > INT64_MAX - before_ns ? INT64_MAX : before_ns + ns;
    while (!atomic_compare_exchange_weak_explicit(sum_ns, &before_ns, after_ns, memory_order_relaxed,
                                                  memory_order_relaxed));
}

void weir_task_add_cpu_time(weir_task *task, int64_t cpu_ns)
{
    if (!task || cpu_ns <= 0)
        return;
    add_saturated(&task->node->outside_cpu_ns, cpu_ns);
    add_saturated(&task->node->total_outside_cpu_ns, cpu_ns);
}

void weir_task_add_run_delay(weir_task *task, int64_t delay_ns)
{
    if (!task || delay_ns <= 0)
        return;
    add_saturated(&task->node->outside_delay_ns, delay_ns);
    add_saturated(&task->node->total_outside_delay_ns, delay_ns);
}

/* All slots of a stage count in one unit: the first call decides. */
static bool is_unit_of(weir_node *node, const char *unit)
{
    const char *known = atomic_load_explicit(&node->work_unit, memory_order_acquire);
    if (!known && atomic_compare_exchange_strong(&node->work_unit, &known, unit))
        return true;
    return known == unit || strcmp(known, unit) == 0;
}

int weir_task_advance(weir_task *task, const char *unit, uint64_t amount)
{
    const uint64_t most = UINT64_C(1) << 40;
    if (!task || !unit || !*unit || amount > most || !is_unit_of(task->node, unit))
        return WEIR_EINVAL;
    atomic_fetch_add_explicit(&task->num_work, amount, memory_order_relaxed);
    return WEIR_OK;
}

int weir_task_set_held(weir_task *task, weir_holder holder, uint64_t bytes)
{
    if (!task || (unsigned)holder > WEIR_HOLDER_STAGE || bytes > WEIR__MOST_HELD_BYTES)
        return WEIR_EINVAL;
    weir__held *held = &task->node->held;
    weir__held_set(held, holder == WEIR_HOLDER_WORKER ? &task->held_bytes : &held->shared, (int64_t)bytes);
    return WEIR_OK;
}

const char *weir_task_stage(const weir_task *task)
{
    return task ? task->node->name : "";
}

const void *weir_task_config(const weir_task *task)
{
    return task ? task->node->config : NULL;
}

int weir_task_fail(weir_task *task, int status, int library_code, const char *format, ...)
{
    if (!task || !format)
        return WEIR_EINVAL;
    weir_error *error = &task->error;
    va_list arguments;
    va_start(arguments, format);
    weir__message_format(error->message, sizeof error->message, weir_task_label(task), format, arguments);
    va_end(arguments);
    error->status = status;
    error->library_code = library_code;
    return status;
}

int weir_task_set_cause(weir_task *task, void *cause, void (*release)(void *cause))
{
    if (!task || !cause)
        return WEIR_EINVAL;
    weir__cause_release(task);
    task->cause = cause;
    task->release_cause = release;
    return WEIR_OK;
}

int weir_task_event(weir_task *task, const char *name, const char *detail)
{
    if (!task || !name)
        return WEIR_EINVAL;
    return weir_pipeline_event(task->node->pipeline, name, task->node->name, detail);
}

/* A second completion is detected only if the slot has no other task yet, which is the usual case. */
static bool awaits_completion_locked(const weir_task *task)
{
    bool is_out = task->core.state == SLOT_PENDING || (task->core.state == SLOT_RUNNING && !task->core.finishing);
    return is_out && !task->core.completed;
}

void weir_task_complete(weir_task *task, int status, weir_item *out)
{
    if (!task)
        return;
    weir_pipeline *pipeline = task->node->pipeline;
    weir_item result = { 0 };
    char stage[128];
    bool logged = false;
    uint64_t left_out = 0;
    if (status == WEIR_OK && out) {
        result = *out;
        *out = (weir_item){ 0 };
    }
    /* A second call must not look at an input that is being released. */
    bool is_second = atomic_load_explicit(&task->was_completed, memory_order_acquire);
    if (!is_second && !weir__label_inherit(&result, &task->core.in))
        status = weir_task_fail(task, WEIR_ENOMEM, 0, "no memory for the item's label");

    engine_lock_at(pipeline, weir_clock_ns());
    bool awaited = awaits_completion_locked(task);
    if (awaited) {
        task->pending_status = status;
        task->pending_out = result;
        atomic_store_explicit(&task->was_completed, true, memory_order_relaxed);
        weir__task_completed(&task->core);
    } else {
        logged = weir__line_take(&pipeline->run->completion_lines, pipeline->core.now_ns, &left_out);
        snprintf(stage, sizeof stage, "%s", task->node->name);
    }
    weir__engine_unlock_last(pipeline);
    if (awaited)
        return;
    weir_item_release(&result);
    if (logged && left_out > 0)
        weir_log(WEIR_LOG_ERROR,
                 "%s: weir_task_complete() was called for tasks that are no longer pending: %" PRIu64
                 " more calls since the last line",
                 stage, left_out);
    else if (logged)
        weir_log(WEIR_LOG_ERROR, "%s: weir_task_complete() was called for a task that is no longer pending", stage);
}
