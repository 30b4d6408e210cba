/* What tasks say of their results (codec, frames, times), kept until the observer thread writes their spans. */
#ifndef WEIR_TRACE_COSTS_H
#define WEIR_TRACE_COSTS_H

#include <weir/cost.h>
#include <weir/op.h>

typedef struct weir_trace_costs weir_trace_costs;

/* Adds to the list *costs a hook that calls cost_of; freed with the list. False = out of memory. */
bool weir_trace_costs_add(weir_trace_costs **costs, weir_item_cost_function *cost_of, weir_task_hook *hook);
void weir_trace_costs_free(weir_trace_costs *costs); /* the whole list */

/* The cost of the result of that stage's last task on this item. False = it is not known, or was displaced by another
   one. Any thread. */
bool weir_trace_costs_find(weir_trace_costs *costs, const char *stage, uint64_t item, weir_item_cost *cost);

#endif
