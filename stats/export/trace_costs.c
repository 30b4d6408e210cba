#include "trace_costs.h"

#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include <weir/trace.h>

#include "trace_text.h"

/* More than tasks that end between two readings of the record. */
enum { NUM_COSTS = 2048 };

typedef struct known_cost {
    uint64_t item, stage; /* the hash of its name */
    weir_item_cost cost;
} known_cost;

struct weir_trace_costs {
    weir_trace_costs *next;
    weir_item_cost_function *cost_of;
    uv_mutex_t lock;
    known_cost known[NUM_COSTS]; /* guarded by lock */
};

static uint64_t hash_of(const char *stage)
{
    return weir_trace_hash(stage, strlen(stage), 0);
}

static known_cost *place_locked(weir_trace_costs *costs, uint64_t item)
{
    return &costs->known[(item ^ item >> 40) % NUM_COSTS];
}

static int task_end(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    weir_trace_costs *costs = self;
    known_cost known = { .item = weir_trace_item(weir_task_source(task), weir_task_epoch(task), weir_task_seq(task)),
                         .stage = hash_of(weir_task_stage(task)) };
    (void)state;
    if (!end->out || !costs->cost_of(end->out, &known.cost))
        return WEIR_OK;
    uv_mutex_lock(&costs->lock);
    *place_locked(costs, known.item) = known;
    uv_mutex_unlock(&costs->lock);
    return WEIR_OK;
}

bool weir_trace_costs_find(weir_trace_costs *costs, const char *stage, uint64_t item, weir_item_cost *cost)
{
    bool found = false;
    for (; costs && !found; costs = costs->next) {
        uv_mutex_lock(&costs->lock);
        const known_cost *known = place_locked(costs, item);
        found = known->stage == hash_of(stage) && known->item == item;
        if (found)
            *cost = known->cost;
        uv_mutex_unlock(&costs->lock);
    }
    return found;
}

bool weir_trace_costs_add(weir_trace_costs **costs, weir_item_cost_function *cost_of, weir_task_hook *hook)
{
    weir_trace_costs *added = calloc(1, sizeof *added);
    if (!added || uv_mutex_init(&added->lock) != 0) {
        free(added);
        return false;
    }
    added->next = *costs;
    added->cost_of = cost_of;
    *costs = added;
    *hook = (weir_task_hook){ .self = added, .end = task_end };
    return true;
}

void weir_trace_costs_free(weir_trace_costs *costs)
{
    while (costs) {
        weir_trace_costs *next = costs->next;
        uv_mutex_destroy(&costs->lock);
        free(costs);
        costs = next;
    }
}
