#include "news.h"

#include <stdio.h>

#include "consumer_position.h"

/* From now on a task that does not stop is worth a warning. */
static void ask_to_stop_locked(weir_slot *slot)
{
    const weir_pipeline *pipeline = slot->node->pipeline;
    if (atomic_load_explicit(&slot->should_stop, memory_order_relaxed) && !slot->core.overdue)
        return;
    int64_t age_ns = slot->core.run_ns + pipeline->core.now_ns - slot->core.entered_ns;
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
    const weir_slot *slot = (const weir_slot *)graph->failed_slot;
    const weir_error *error = slot ? &slot->error : &node->first_error;
    pipeline->error = *error;
    if (graph->failure == WEIR__FAILURE_ITSELF)
        return;
    snprintf(pipeline->error.message, sizeof pipeline->error.message,
             "%llu of %llu tasks failed, more than max_failures allows; %s: %.400s",
             (unsigned long long)node->core.total_failures, (unsigned long long)node->core.total_tasks,
             graph->failure == WEIR__FAILURE_LAST ? "the last" : "the first", error->message);
}

void weir__news_handle_locked(weir_pipeline *pipeline)
{
    uint32_t news = pipeline->core.news;
    pipeline->core.news = 0;
    if (news & WEIR__NEWS_CANCELLED)
        ask_cancelled_to_stop_locked(pipeline);
    if (news & WEIR__NEWS_FAILED)
        describe_failure_locked(pipeline);
    if (news & WEIR__NEWS_SOURCES_ENDED)
        weir__position_sources_ended_locked(pipeline);
    pipeline->wake_service = true;
}
