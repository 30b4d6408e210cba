/*
 * The watchdog asks tasks beyond their deadline to stop, and logs tasks that have run very long, so that a hang is
 * never silent. It runs on the service thread, which checks again when the next task may be due. A stage with deadlines
 * has a watch, a check within its deadline, as long as its tasks run or have run since the check before. Without a watch
 * (the pipeline is idle) the next step begins one.
 */
#include "engine/run/watchdog.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/base/label.h"
#include "engine/measure/lap_taker.h"
#include "engine/measure/outbox.h"
#include "engine/run/run_room.h"
#include "engine/state/lock.h"

enum { MAX_STALLS = 16 /* logged per check; the others in the next check */ };

typedef struct stalled_task {
    weir_node *node;
    struct weir_label *label; /* a reference */
    int64_t age_ns;
    bool asked_to_stop;
} stalled_task;

typedef struct watchdog_check {
    stalled_task stalls[MAX_STALLS];
    size_t num_stalls;
    int64_t next_ns; /* time until the next task may be due */
} watchdog_check;

static void due_in(watchdog_check *check, int64_t span_ns)
{
    if (span_ns < check->next_ns)
        check->next_ns = span_ns > 0 ? span_ns : 0;
}

static void watch_deadline(watchdog_check *check, weir_task *slot, int64_t age_ns)
{
    int64_t deadline_ns = slot->node->task_deadline_ns;
    if (deadline_ns == 0 || slot->core.flushing || slot->core.overdue)
        return;
    if (age_ns < deadline_ns) {
        due_in(check, deadline_ns - age_ns);
        return;
    }
    atomic_store_explicit(&slot->is_overdue, true, memory_order_relaxed);
    atomic_store_explicit(&slot->should_stop, true, memory_order_relaxed);
    weir__task_overdue(&slot->core);
}

static void check_stall(watchdog_check *check, weir_task *slot, int64_t age_ns)
{
    if (slot->warn_after_ns == WEIR_FOREVER)
        return;
    if (age_ns >= slot->warn_after_ns && check->num_stalls < MAX_STALLS) {
        check->stalls[check->num_stalls++] = (stalled_task){
            .node = slot->node,
            .label = weir__label_hold(slot->label),
            .age_ns = age_ns,
            .asked_to_stop = weir_task_should_stop(slot),
        };
        slot->warn_after_ns = 2 * age_ns;
    }
    due_in(check, slot->warn_after_ns - age_ns);
}

static void check_node_locked(watchdog_check *check, weir_node *node, int64_t at_ns)
{
    if (!node->op)
        return;
    bool runs = node->watched_tasks != node->core.total_tasks;
    node->watched_tasks = node->core.total_tasks;
    for (uint32_t i = 0; i < node->core.num_made; i++) {
        weir_task *slot = weir__slot_at(node, i);
        if (slot->core.state != SLOT_RUNNING && slot->core.state != SLOT_PENDING)
            continue;
        int64_t age_ns = weir__task_age_ns(slot, at_ns);
        watch_deadline(check, slot, age_ns);
        check_stall(check, slot, age_ns);
        runs = true;
    }
    node->watched = node->task_deadline_ns && runs;
    if (node->watched) /* a task could begin now */
        due_in(check, node->task_deadline_ns);
}

/* As an event and in the log, both limited: thousands of tasks may stall together. */
static void report_stall(weir_pipeline *pipeline, const stalled_task *stall)
{
    uint64_t left_out;
    if (!weir__line_take(&pipeline->run->service.stall_lines, weir_clock_ns(), &left_out))
        return;
    const char *label = weir__label_text(stall->label);
    char text[1200], others[64] = "";
    if (left_out > 0)
        snprintf(others, sizeof others, "; %" PRIu64 " more such lines left out before", left_out);
    snprintf(text, sizeof text, "%s%s%s: %.1f s and still running%s%s", stall->node->name, label[0] ? ": " : "",
             label, (double)stall->age_ns / (double)WEIR_SECOND,
             stall->asked_to_stop ? ", although it was asked to stop" : "", others);
    weir__outbox_add_stall(pipeline, stall->node->name, text);
}

/* A task whose step has just ended has the suspension in its run time. One that is younger has begun meanwhile. */
static void excuse_tasks_locked(weir_node *node, int64_t at_ns, int64_t suspended_ns)
{
    for (uint32_t i = 0; i < node->core.num_made; i++) {
        weir_task *slot = weir__slot_at(node, i);
        bool runs = slot->core.state == SLOT_RUNNING || slot->core.state == SLOT_PENDING;
        int64_t age_ns = runs ? weir__task_age_ns(slot, at_ns) : slot->core.run_ns - slot->suspended_ns;
        if (age_ns > 0)
            slot->suspended_ns += age_ns < suspended_ns ? age_ns : suspended_ns;
    }
}

int64_t weir__watchdog_check(weir_pipeline *pipeline)
{
    int64_t at_ns, suspended_ns = weir__suspension_take(&pipeline->lap_taker->suspension, &at_ns);
    watchdog_check check = { .next_ns = INT64_MAX };
    if (pipeline->stall_warning_ns != WEIR_FOREVER)
        check.next_ns = pipeline->stall_warning_ns;

    engine_lock_at(pipeline, weir_clock_ns());
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        if (suspended_ns > 0)
            excuse_tasks_locked(pipeline->nodes[i], at_ns, suspended_ns);
        check_node_locked(&check, pipeline->nodes[i], at_ns);
    }
    weir__engine_unlock(pipeline);

    for (size_t i = 0; i < check.num_stalls; i++) {
        report_stall(pipeline, &check.stalls[i]);
        weir__label_release(check.stalls[i].label);
    }
    return check.next_ns > INT64_MAX - at_ns ? INT64_MAX : at_ns + check.next_ns;
}
