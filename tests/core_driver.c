#include "tests/core_driver.h"

#include <stdio.h>
#include <string.h>

#include "engine/core/merge.h"
#include "tests/core_order.h"

static void check(core_driver *driver, bool holds, const char *what)
{
    if (!holds && !driver->broken)
        driver->broken = what;
}

/* ---- building ----------------------------------------------------------------------------------------------- */

void driver_init(core_driver *driver, choices *list, uint32_t threads)
{
    uint32_t num_nodes = driver->graph.num_nodes; /* of the run before */
    memset(driver->nodes, 0, num_nodes * sizeof *driver->nodes);
    memset(driver->seen, 0, driver->num_made < MAX_DRIVER_ITEMS ? driver->num_made : MAX_DRIVER_ITEMS);
    memset(driver->pools, 0, sizeof driver->pools);
    memset(driver->last_seq, 0, sizeof driver->last_seq);
    driver->graph = (weir__graph){ .nodes = driver->node_list, .measures = true };
    driver->choices = list;
    driver->stop_at = driver->change_at = driver->overdue_at = 0;
    driver->odd_left = driver->stops_left = driver->changes_left = 0;
    driver->keeps_order = true;
    driver->keeps_count = driver->retries = false;
    driver->max_events = 2000;
    driver->num_events = 0;
    driver->num_made = driver->num_delivered = driver->num_epochs = driver->num_passed = 0;
    driver->num_ahead = driver->ahead_left = 0;
    driver->num_taken_ahead = 0;
    driver->broken = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        driver_pool *pool = &driver->pools[i];
        pool->core = (weir__core_pool){ .graph = &driver->graph, .num_words = 1 };
        pool->core.ready_ranks = pool->ready_ranks;
        pool->core.ranks = pool->ranks;
        pool->threads = pool->free_threads = i == 0 ? threads : 1;
    }
}

static void init_slot(driver_node *node, driver_slot *slot)
{
    slot->core.node = &node->core;
    slot->core.worker_live = true;
}

driver_node *driver_add_node(core_driver *driver, bool has_tasks, uint32_t num_slots, uint32_t num_outs,
                             uint32_t room)
{
    driver_node *node = &driver->nodes[driver->graph.num_nodes];
    driver->node_list[driver->graph.num_nodes] = &node->core;
    node->core.graph = &driver->graph;
    node->core.index = driver->graph.num_nodes++;
    node->core.has_tasks = has_tasks;
    node->core.pool = has_tasks ? &driver->pools[0].core : NULL;
    node->core.typical_ns = 10 * WEIR__SHORT_STEP_NS;
    node->core.ins = node->ins;
    node->core.outs = node->outs;
    node->core.num_outs = num_outs;
    node->core.credits = node->credits;
    node->core.slots = node->slots;
    node->core.lifecycle = &node->lifecycle.core;
    node->core.num_made = node->core.num_slots = node->core.num_wanted = num_slots;
    node->lifecycle.core.is_lifecycle = true;
    init_slot(node, &node->lifecycle);
    for (uint32_t i = 0; i < MAX_DRIVER_SLOTS; i++) {
        init_slot(node, &node->all_slots[i]);
        node->slots[i] = &node->all_slots[i].core;
    }
    for (uint32_t i = 0; i < num_outs; i++)
        node->outs[i] = (weir__queue){ .capacity = room,
                                       .capacity_bytes = UINT64_MAX,
                                       .producer = &node->core,
                                       .entries = node->entries[i],
                                       .num_entries = room };
    return node;
}

void driver_connect(driver_node *from, uint32_t out, driver_node *to)
{
    from->outs[out].consumer = &to->core;
    to->ins[to->core.num_ins++] = &from->outs[out];
}

void driver_start(core_driver *driver)
{
    uint32_t num_sources = 0;
    driver->graph.sink = &driver->nodes[driver->graph.num_nodes - 1].outs[0];
    for (uint32_t i = 0; i < driver->graph.num_nodes; i++)
        if (driver->nodes[i].core.num_ins == 0)
            driver->nodes[i].core.source_index = num_sources++;
    weir__graph_prepare(&driver->graph, 1000);
    for (uint32_t i = 0; i < driver->graph.num_nodes; i++) /* bursts need an only slot; it may get others */
        if (driver->nodes[i].core.may_run_ahead && driver->nodes[i].core.num_made > 1)
            weir__node_set_slots(&driver->nodes[i].core, 1);
    weir__graph_start(&driver->graph);
}

/* ---- invariants --------------------------------------------------------------------------------------------- */

/* Only items, in the order in which they were made by their task, and no more than may be; and if one more may be, none
   waits in a slot. */
static void check_aside(core_driver *driver, const weir__queue *queue, bool has_room)
{
    const weir__core_node *node = queue->producer;
    bool is_dropped = node->cancelled && !node->keeps_results;
    uint64_t bytes = 0, bytes_before_last = 0;
    for (uint32_t i = 0; i < queue->num_aside; i++) {
        const weir__queued_item *entry =
            &queue->entries[(queue->head + queue->depth + i) % (queue->capacity + node->look_ahead)];
        check(driver, !weir__is_epoch_end(&entry->item), "the end of an epoch is set aside");
        check(driver, entry->since_ns >= 1000 && entry->since_ns <= driver->graph.now_ns,
              "it is not known since when an item is set aside");
        bytes_before_last = bytes;
        bytes += entry->item.size_bytes;
    }
    check(driver, bytes == queue->aside_bytes, "what is set aside has other bytes than it says");
    check(driver, !queue->num_aside || queue->bytes + bytes_before_last < queue->capacity_bytes || is_dropped,
          "more bytes are set aside than the queue may have");
    check(driver, !queue->num_aside || is_dropped || !has_room, "a queue has room, and an item is set aside");
    const weir__core_slot *first = queue->blocked.first;
    bool may_set = first && !first->is_lifecycle && node->num_aside < node->look_ahead && !is_dropped &&
                   queue->bytes + bytes < queue->capacity_bytes;
    check(driver, !may_set, "an item may be set aside, but waits in its slot");
}

/* A producer that has ended, or drops its results, puts no more; but the core may be told of steps later of a
   burst that have passed before. */
static void check_puts(core_driver *driver, const weir__queue *queue)
{
    driver_node *node = (driver_node *)queue->producer;
    uint64_t *num = &node->put_before_end[queue - node->core.outs];
    bool drops_results = node->core.cancelled && !node->core.keeps_results && !node->core.may_run_ahead;
    if (!queue->closed && !drops_results)
        return;
    *num = *num ? *num : queue->total_put + 1;
    check(driver, *num == queue->total_put + 1, "a queue gets an item whose producer has ended or drops its results");
}

/* Each branch gets its items in the order in which they were made: those in the queue, then those that are set aside, then
   those in BLOCKED slots. */
static void check_order(core_driver *driver, const weir__queue *queue)
{
    uint64_t last = 0;
    bool is_kept = true;
    if (!queue->producer->has_tasks || queue->producer->order == WEIR_ORDER_INPUT)
        return; /* where turns change the order, the consumer sees whether it is kept */
    for (uint32_t i = 0; i < queue->depth + queue->num_aside; i++) {
        uint64_t id = (uintptr_t)weir__queue_item_at(queue, queue->head + i)->data;
        is_kept &= !id || id > last;
        last = id ? id : last;
    }
    for (const weir__core_slot *slot = queue->blocked.first; slot; slot = slot->next) {
        uint64_t id = (uintptr_t)slot->out.data;
        is_kept &= !id || id > last;
        last = id ? id : last;
    }
    check(driver, is_kept, "a branch does not get its items in their order");
}

static void check_queue(core_driver *driver, const weir__queue *queue)
{
    uint32_t num_ends = 0, num_blocked = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < queue->depth; i++) {
        const weir_item *item = weir__queue_item_at(queue, queue->head + i);
        num_ends += weir__is_epoch_end(item);
        bytes += item->size_bytes;
    }
    check(driver, queue->depth <= queue->capacity, "a queue holds more items than its capacity");
    check(driver, num_ends == queue->num_epoch_ends && bytes == queue->bytes,
          "a queue has another level than it says");
    bool has_room = queue->depth < queue->capacity && queue->bytes < queue->capacity_bytes;
    check(driver, !has_room || !queue->blocked.first, "a queue has room, and a slot waits for room");
    check_aside(driver, queue, has_room);
    check_puts(driver, queue);
    check_order(driver, queue);
    for (const weir__core_slot *slot = queue->blocked.first; slot && num_blocked < 100;
         slot = slot->next, num_blocked++)
        check(driver, slot->state == SLOT_BLOCKED && &slot->node->outs[slot->out_index] == queue,
              "a slot waits for room, but is not BLOCKED");
    check(driver, queue->total_put == queue->total_got + queue->total_dropped + weir__queue_num_items(queue),
          "a queue has lost an item");
}

static uint32_t count_list(const weir__core_slot *slot, slot_state state, core_driver *driver)
{
    uint32_t count = 0;
    for (; slot && count < 100; slot = slot->next, count++)
        check(driver, slot->state == state, "a slot is in a list that does not fit its state");
    return count;
}

static void check_slots(core_driver *driver, const weir__core_node *node)
{
    uint32_t num[SLOT_STATES] = { 0 }, num_blocked = 0, num_turns = 0;
    uint64_t inside = 0, num_aside = 0;
    int64_t open_ns = 0, closed_ns = 0;
    for (uint32_t i = 0; i < node->num_made; i++) {
        const weir__core_slot *slot = node->slots[i];
        num[slot->state]++;
        num_turns += slot->has_turn;
        inside += (uint64_t)slot->has_in + (uint64_t)slot->has_out;
        open_ns += driver->graph.now_ns - slot->since_ns;
        check(driver, !node->cancelled || slot->num_kept == 0, "a cancelled node has kept an item");
    }
    for (uint32_t state = 0; state < NODE_TIMES; state++)
        closed_ns += node->time_ns[state];
    check(driver, open_ns + closed_ns == (driver->graph.now_ns - 1000) * node->num_made, "time of a slot is missing");
    check(driver, node->num_made - num[SLOT_RETIRED] == node->num_slots, "the number of slots is wrong");
    num[node->lifecycle->state]++;
    uint32_t num_ready = count_list(node->ready.first, SLOT_READY, driver);
    num_ready += count_list(node->gated.first, SLOT_READY, driver);
    check(driver, num_ready == num[SLOT_READY], "a READY slot is not in its list");
    uint32_t num_idle = count_list(node->idle, SLOT_IDLE, driver);
    check(driver, num_idle == node->num_idle && num_idle + (node->lifecycle->state == SLOT_IDLE) == num[SLOT_IDLE],
          "an IDLE slot is not in its list");
    for (uint32_t i = 0; i < node->num_outs; i++)
        num_blocked += count_list(node->outs[i].blocked.first, SLOT_BLOCKED, driver);
    check(driver, num_blocked == num[SLOT_BLOCKED] || node->cancelled, "a BLOCKED slot waits for nothing");
    for (const weir__core_slot *slot = node->turn_first; slot && num_turns < 100; slot = slot->turn_after)
        num_turns--;
    check(driver, num_turns == 0, "a slot has a turn, but is not in the list");
    check(driver, !node->turn_first || node->turn_first->state != SLOT_TURN, "the first turn waits for its turn");
    for (uint32_t i = 0; i < node->num_outs; i++)
        num_aside += node->outs[i].num_aside;
    check(driver, num_aside == node->num_aside && num_aside <= node->look_ahead,
          "a node has set aside another number of items than it says, or may");
    check(driver, !num_aside || node->state != NODE_DONE || (node->cancelled && !node->keeps_results),
          "a node is done, but has set aside items");
    inside += num_aside;
    const weir_account *a = &node->account;
    check(driver, a->taken + a->created == a->passed_on + a->skipped + a->failed + a->dropped + a->merged + inside,
          "a node has lost an item");
}

static void check_node(core_driver *driver, weir__core_node *node)
{
    check_slots(driver, node);
    for (uint32_t i = 0; i < node->num_outs; i++)
        check_queue(driver, &node->outs[i]);
    if (node->num_ins && node->idle && !node->cancelled && node->state != NODE_DONE)
        check(driver, !weir__merge_choose(node), "a queue has an item, and its consumer an idle slot");
}

static void check_pool(core_driver *driver, const weir__core_pool *pool)
{
    uint32_t num_ready = 0, num_slow = 0, num_nodes = 0;
    for (uint32_t i = 0; i < driver->graph.num_nodes; i++) {
        const weir__core_node *node = driver->node_list[i];
        if (node->pool != pool || !node->ready.first)
            continue;
        num_nodes++;
        check(driver, pool->ready_ranks[0] >> node->rank & 1, "a rank has a ready node, but not its bit");
        for (const weir__core_slot *slot = node->ready.first; slot && num_ready < 100; slot = slot->next, num_ready++)
            num_slow += !slot->is_short_step;
    }
    for (uint32_t rank = 0; rank < driver->graph.num_nodes; rank++)
        for (const weir__core_node *node = pool->ranks[rank].first; node && num_nodes < 100;
             node = node->next_ready, num_nodes--)
            check(driver, node->ready.first && node->rank == rank, "a node in the list of a rank is not ready");
    check(driver, num_nodes == 0, "a ready node is not in the list of its rank");
    check(driver, num_ready == pool->num_ready && num_slow == pool->num_ready_slow, "a pool has counted wrong");
}

static void check_all(core_driver *driver)
{
    weir__graph *graph = &driver->graph;
    for (uint32_t i = 0; i < graph->num_nodes; i++)
        check_node(driver, graph->nodes[i]);
    check_pool(driver, &driver->pools[0].core);
    check_pool(driver, &driver->pools[1].core);
    check(driver, graph->consumable == (graph->stopped || graph->sink->closed || graph->sink->depth > 0),
          "the consumer is told the wrong thing");
}

/* ---- events ------------------------------------------------------------------------------------------------- */

static void pass_time(core_driver *driver)
{
    weir__graph_move_time(&driver->graph, driver->graph.now_ns + 7);
}

static void make_result(core_driver *driver, driver_slot *slot)
{
    uint64_t id = driver->num_made++;
    weir_item *out = &slot->core.out;
    out->data = (void *)(uintptr_t)(id + 1);
    out->size_bytes = 10;
    out->seq = slot->core.in.seq;
    out->epoch = slot->core.in.epoch;
    out->source = slot->core.in.source;
    out->order_number = slot->core.in.order_number;
    order_made(driver, slot, id + 1);
}

static void forget_item(weir_item *item)
{
    item->data = NULL;
    item->size_bytes = 0;
    item->release = NULL;
}

driver_slot *driver_pick(core_driver *driver, driver_pool *pool)
{
    if (pool->free_threads == 0)
        return NULL;
    pass_time(driver);
    driver_slot *slot = (driver_slot *)weir__core_pool_pick(&pool->core);
    if (!slot)
        return NULL;
    pool->free_threads--;
    slot->core.begin_ns = driver->graph.now_ns;
    slot->passed = 0;
    slot->plan = weir__slot_plan_ahead(&slot->core, MAX_ROOM);
    return slot;
}

void driver_end_step(core_driver *driver, driver_slot *slot, int status)
{
    pass_time(driver);
    slot->core.end_ns = driver->graph.now_ns;
    pass_time(driver); /* the thread that ran it had to wait */
    driver_report_end(driver, slot, status);
}

/* The task has failed: what becomes of its place. */
static void choose_place(core_driver *driver, driver_slot *slot)
{
    const driver_node *node = (const driver_node *)slot->core.node;
    slot->core.place = WEIR__PLACE_EMPTY;
    if (!node->replaces || slot->core.num_chunks || slot->core.abandoned)
        return;
    if (slot->core.flushing || (!driver->keeps_count && choose_one_in(driver->choices, 10)))
        slot->core.place = WEIR__PLACE_LOST;
    else
        slot->core.place = WEIR__PLACE_FILLED;
    if (slot->core.place == WEIR__PLACE_FILLED)
        slot->core.in.data = (void *)(uintptr_t)(++driver->num_made);
}

/* Whether the slot's item is of an epoch that an earlier run has begun. */
static bool is_of_part(const core_driver *driver, const driver_slot *slot)
{
    return slot->core.in.epoch < driver->graph.num_part_epochs;
}

static void count_task(const core_driver *driver, driver_slot *slot, int status)
{
    driver_node *node = (driver_node *)slot->core.node;
    bool is_dropped = slot->core.abandoned || (status < 0 && node->core.cancelled);
    bool is_success = !slot->core.flushing && (status == WEIR_OK || status == WEIR_SKIP || status == WEIR_KEPT);
    if (slot->core.is_lifecycle || is_dropped || (status >= 0 && !is_success) || is_of_part(driver, slot))
        return;
    node->whole_tasks++;
    node->whole_successes += status >= 0;
}

void driver_report_end(core_driver *driver, driver_slot *slot, int status)
{
    count_task(driver, slot, status);
    slot->core.status = status;
    slot->core.step_run_ns = slot->core.end_ns - slot->core.begin_ns;
    if ((status == WEIR_OK || status == WEIR_MORE) && !slot->core.is_lifecycle && !slot->core.passed_over)
        make_result(driver, slot);
    if (status != WEIR_MORE && status != WEIR_PENDING && !slot->core.is_lifecycle)
        forget_item(&slot->core.in);
    if (status != WEIR_MORE && status != WEIR_OK)
        forget_item(&slot->core.out);
    if (status < 0 && !slot->core.is_lifecycle)
        choose_place(driver, slot);
    ((driver_node *)slot->core.node)->steps++;
    ((driver_pool *)slot->core.node->pool)->free_threads++;
    weir__step_ended(&slot->core);
}

/* It has failed in an earlier run. */
static bool fails_again(const core_driver *driver, const driver_slot *slot)
{
    return driver->retries && is_of_part(driver, slot);
}

static uint32_t num_items_of(const core_driver *driver, const driver_slot *slot)
{
    const driver_node *source = (const driver_node *)slot->core.node;
    return fails_again(driver, slot) && source->items > 1 ? 1 : source->items;
}

static bool may_pass(const core_driver *driver, const driver_slot *slot)
{
    const driver_node *node = (const driver_node *)slot->core.node;
    bool has_item = node->core.num_ins ? !fails_again(driver, slot) : slot->core.in.seq < num_items_of(driver, slot);
    return slot->core.state == SLOT_RUNNING && slot->passed < slot->plan.num_steps && has_item;
}

/* The step makes its result, and the step of the next input begins. */
static void pass_step(core_driver *driver, driver_slot *slot, weir__passed_step *step)
{
    weir__core_slot *core = &slot->core;
    core->end_ns = driver->graph.now_ns + 3 * (slot->passed + 1);
    core->out = (weir_item){ 0 };
    make_result(driver, slot);
    count_task(driver, slot, WEIR_OK);
    core->out.made_ns = core->node->num_ins ? core->in.made_ns : core->end_ns;
    *weir__queue_item_at(core->node->outs, slot->plan.first_out + slot->passed) = core->out;
    *step = (weir__passed_step){ .begin_ns = core->begin_ns,
                                 .end_ns = core->end_ns,
                                 .run_ns = core->end_ns - core->begin_ns };
    forget_item(&core->out);
    forget_item(&core->in);
    core->begin_ns = core->end_ns;
    if (core->node->num_ins == 0)
        core->in.seq++;
    else
        core->in = *weir__queue_item_at(core->node->ins[0], slot->plan.first_in + slot->passed);
    slot->passed++;
    ((driver_node *)core->node)->steps++;
}

uint32_t driver_pass_steps(core_driver *driver, driver_slot *slot, uint32_t most)
{
    weir__passed_step steps[MAX_ROOM];
    uint32_t num_steps = 0;
    while (may_pass(driver, slot) && num_steps < most)
        pass_step(driver, slot, &steps[num_steps++]);
    weir__steps_passed(&slot->core, steps, num_steps);
    driver->num_passed += num_steps;
    return num_steps;
}

static void set_slots(driver_node *node, uint32_t wanted)
{
    for (uint32_t i = 0; i < node->core.num_made; i++)
        node->all_slots[i].plan.num_steps = node->all_slots[i].passed; /* the burst is over */
    weir__node_set_slots(&node->core, wanted);
}

static int end_of_lifecycle(core_driver *driver, driver_slot *slot)
{
    driver_node *node = (driver_node *)slot->core.node;
    if (node->core.state == NODE_ENDING) {
        node->core.stage_hooks_begun = 0;
    } else if (!slot->core.abandoned) {
        if (node->hooks_fail && choose_one_in(driver->choices, 3))
            return WEIR_EHOOK;
        node->core.stage_hooks_begun = 1;
    }
    return WEIR_OK;
}

static int end_of_source(core_driver *driver, const driver_slot *slot)
{
    const driver_node *node = (const driver_node *)slot->core.node;
    if (node->core.next_seq >= num_items_of(driver, slot))
        return node->core.epochs ? WEIR_EPOCH : WEIR_EOF;
    if (node->fails && choose_one_in(driver->choices, 8))
        return WEIR_EIO;
    return WEIR_OK;
}

static int odd_end(core_driver *driver, const driver_node *node)
{
    static const int statuses[] = { WEIR_SKIP, WEIR_EDATA, WEIR_MORE, WEIR_PENDING, WEIR_KEPT };
    driver->odd_left--;
    if (driver->keeps_count)
        return choose(driver->choices, 2) ? WEIR_EDATA : WEIR_PENDING;
    return statuses[choose(driver->choices, node->core.has_flush ? 5 : 4)];
}

static int end_of_task(core_driver *driver, driver_slot *slot)
{
    const driver_node *node = (const driver_node *)slot->core.node;
    slot->core.passed_over = false;
    slot->core.out_index = choose(driver->choices, node->core.num_outs);
    if (node->core.num_ins == 0)
        return end_of_source(driver, slot);
    if (fails_again(driver, slot) && !slot->core.flushing)
        return WEIR_EDATA;
    if (slot->core.completed)
        return WEIR_PENDING; /* before run() has returned */
    if (driver->odd_left && slot->core.num_chunks == 0 && !slot->core.flushing && choose(driver->choices, 2))
        return odd_end(driver, node);
    if (node->multiplies && slot->core.num_chunks < 3 && choose_one_in(driver->choices, 3)) {
        slot->core.passed_over = node->passes_over && choose_one_in(driver->choices, 3);
        return WEIR_MORE;
    }
    if (node->core.has_flush && !slot->core.flushing && slot->core.num_chunks == 0 && choose(driver->choices, 2))
        return WEIR_KEPT;
    if (node->pends && !slot->core.flushing && slot->core.num_chunks == 0 && choose_one_in(driver->choices, 2))
        return WEIR_PENDING;
    if (node->skips && choose_one_in(driver->choices, 4))
        return WEIR_SKIP;
    if (node->fails && choose_one_in(driver->choices, 4))
        return WEIR_EDATA;
    return WEIR_OK;
}

static int end_status(core_driver *driver, driver_slot *slot)
{
    if (slot->core.is_lifecycle)
        return end_of_lifecycle(driver, slot);
    if (slot->core.abandoned)
        return WEIR_ESTOPPED;
    if (slot->core.finishing)
        return slot->completion;
    return end_of_task(driver, slot);
}

static void complete_task(core_driver *driver, driver_slot *slot)
{
    static const int results[] = { WEIR_OK, WEIR_SKIP, WEIR_EDATA };
    slot->completion = results[choose(driver->choices, 3)];
    if (driver->keeps_count && slot->completion == WEIR_SKIP)
        slot->completion = WEIR_EDATA;
    pass_time(driver);
    weir__task_completed(&slot->core);
}

static void check_delivered(core_driver *driver, const weir_item *item)
{
    uint64_t id = (uintptr_t)item->data;
    check(driver, id && id <= driver->num_made, "the consumer got something that was not made");
    if (id && id <= MAX_DRIVER_ITEMS) {
        check(driver, !driver->seen[id - 1], "the consumer got an item twice");
        driver->seen[id - 1] = true;
    }
    check(driver, item->epoch == driver->num_epochs, "an item crossed the end of an epoch");
    check(driver, item->made_ns >= 1000 && item->made_ns <= driver->graph.now_ns,
          "it is not known when an item was made");
    check(driver, !driver->keeps_order || driver->graph.failed || item->seq >= driver->last_seq[item->source],
          "the order was not kept");
    driver->last_seq[item->source] = item->seq;
    driver->num_delivered++;
}

void driver_take(core_driver *driver)
{
    weir_item item;
    pass_time(driver);
    if (weir__graph_deliver(&driver->graph, &item, 0, 0) == WEIR_EPOCH) {
        driver->num_epochs++;
        memset(driver->last_seq, 0, sizeof driver->last_seq);
    } else {
        check_delivered(driver, &item);
    }
    driver->ahead_left = weir__graph_plan_takes(&driver->graph, MAX_ROOM);
}

/* The core is not told yet. */
static void take_ahead(core_driver *driver)
{
    const weir__queue *sink = driver->graph.sink;
    pass_time(driver);
    check_delivered(driver, weir__queue_item_at(sink, sink->head + driver->num_ahead));
    driver->ahead_ns[driver->num_ahead++] = driver->graph.now_ns;
    driver->ahead_left--;
    driver->num_taken_ahead++;
}

static void tell_taken(core_driver *driver)
{
    for (uint32_t i = 0; i < driver->num_ahead; i++)
        weir__item_taken(&driver->graph, driver->ahead_ns[i]);
    driver->num_ahead = 0;
}

/* As soon as the core wants it. */
static void end_ahead(core_driver *driver)
{
    if (driver->graph.stopped || weir__graph_awaits_room(&driver->graph))
        driver->ahead_left = 0;
    check(driver, !driver->ahead_left || driver->ahead_left < driver->graph.sink->depth,
          "the consumer may empty the sink queue without an event");
}

/* ---- what may happen next ----------------------------------------------------------------------------------- */

typedef enum event_kind {
    EVENT_PICK,
    EVENT_TAKE,
    EVENT_AHEAD,
    EVENT_END,
    EVENT_PASS,
    EVENT_COMPLETE,
    EVENT_CANCEL,
    EVENT_CANCEL_ENDS,
    EVENT_STOP,
    EVENT_SLOTS
} event_kind;

typedef struct event {
    event_kind kind;
    void *subject;
} event;

enum { MAX_EVENTS = 4 + 4 * MAX_NODES * (MAX_DRIVER_SLOTS + 1) };

static void add_event(event *events, uint32_t *count, event_kind kind, void *subject)
{
    events[(*count)++] = (event){ kind, subject };
}

static void find_events_of_slot(const core_driver *driver, driver_slot *slot, event *events, uint32_t *count)
{
    const driver_node *node = (const driver_node *)slot->core.node;
    if (slot->core.state == SLOT_RUNNING)
        add_event(events, count, EVENT_END, slot);
    if (may_pass(driver, slot) && !slot->core.completed)
        add_event(events, count, EVENT_PASS, slot);
    bool may_pend = node->pends && slot->core.num_chunks == 0 && !slot->core.flushing && !slot->core.is_lifecycle;
    bool runs = slot->core.state == SLOT_RUNNING && !slot->core.finishing && !slot->core.abandoned;
    if ((slot->core.state == SLOT_PENDING || (may_pend && runs)) && !slot->core.completed)
        add_event(events, count, EVENT_COMPLETE, slot);
    if (slot->core.cancelling)
        add_event(events, count, EVENT_CANCEL_ENDS, slot);
}

static uint32_t find_events(core_driver *driver, event *events)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < 2; i++)
        if (driver->pools[i].free_threads && driver->pools[i].core.num_ready)
            add_event(events, &count, EVENT_PICK, &driver->pools[i]);
    if (driver->graph.sink->depth && !driver->graph.stopped)
        add_event(events, &count, EVENT_TAKE, NULL);
    if (driver->ahead_left)
        add_event(events, &count, EVENT_AHEAD, NULL);
    for (uint32_t i = 0; i < driver->graph.num_nodes; i++) {
        driver_node *node = &driver->nodes[i];
        if (!node->core.has_tasks)
            continue;
        for (uint32_t j = 0; j < node->core.num_made; j++)
            find_events_of_slot(driver, &node->all_slots[j], events, &count);
        find_events_of_slot(driver, &node->lifecycle, events, &count);
    }
    if (driver->graph.to_cancel)
        add_event(events, &count, EVENT_CANCEL, NULL);
    if (count && driver->stops_left)
        add_event(events, &count, EVENT_STOP, NULL);
    if (count && driver->changes_left)
        add_event(events, &count, EVENT_SLOTS, NULL);
    return count;
}

static void do_event(core_driver *driver, const event *next)
{
    driver_slot *slot = next->subject;
    switch (next->kind) {
    case EVENT_PICK: driver_pick(driver, next->subject); break;
    case EVENT_TAKE: driver_take(driver); break;
    case EVENT_AHEAD: take_ahead(driver); break;
    case EVENT_END: driver_end_step(driver, slot, end_status(driver, slot)); break;
    case EVENT_PASS:
        driver_pass_steps(driver, slot, 1 + choose(driver->choices, slot->plan.num_steps - slot->passed));
        break;
    case EVENT_COMPLETE: complete_task(driver, slot); break;
    case EVENT_CANCEL: weir__cancel_take(&driver->graph); break;
    case EVENT_CANCEL_ENDS: weir__cancel_returned(&slot->core); break;
    case EVENT_STOP:
        driver->stops_left--;
        weir__graph_stop(&driver->graph);
        break;
    case EVENT_SLOTS:
        driver->changes_left--;
        set_slots(&driver->nodes[1], 1);
        break;
    }
}

/* ---- states --------------------------------------------------------------------------------------------------- */

static void hash_value(uint64_t *hash, uint64_t value)
{
    *hash = (*hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    *hash ^= *hash >> 29;
}

static void hash_slot(uint64_t *hash, const weir__core_slot *slot)
{
    hash_value(hash,
               (uint64_t)slot->state << 32 | slot->num_chunks << 16 | (uint64_t)slot->more << 8 | slot->completed);
    hash_value(hash, (uint64_t)slot->has_in << 24 | (uint64_t)slot->has_out << 16 | (uint64_t)slot->flushing << 8 |
                         slot->needs_flush);
    hash_value(hash, slot->has_in || slot->has_out ? slot->in.seq : 0);
    hash_value(hash, (uint64_t)(((const driver_slot *)slot)->plan.num_steps - ((const driver_slot *)slot)->passed));
    hash_value(hash, (uint64_t)slot->num_replaced << 32 | (uint64_t)slot->finishing << 16 |
                         (uint64_t)slot->abandoned << 8 | slot->num_kept);
}

static void hash_item(uint64_t *hash, const weir_item *item)
{
    hash_value(hash, item->seq << 16 | item->epoch << 1 | weir__is_epoch_end(item));
}

static void hash_list(uint64_t *hash, const weir__core_slot *slot)
{
    for (; slot; slot = slot->next)
        for (uint32_t i = 0; i < slot->node->num_made; i++)
            if (slot->node->slots[i] == slot)
                hash_value(hash, i);
    hash_value(hash, UINT64_MAX);
}

/* A hash of all that decides what can follow, except times. */
static uint64_t hash_state(const core_driver *driver)
{
    uint64_t hash = 1;
    hash_value(&hash, driver->num_delivered << 32 | driver->num_epochs << 16 | (uint64_t)driver->graph.stopped << 1 |
                          driver->graph.failed);
    hash_value(&hash, driver->odd_left << 16 | driver->stops_left << 8 | driver->changes_left);
    hash_value(&hash, driver->nodes[1].core.num_wanted << 16 | driver->nodes[1].core.num_slots);
    for (uint32_t i = 0; i < driver->graph.num_nodes; i++) {
        const driver_node *node = &driver->nodes[i];
        const weir_account *a = &node->core.account;
        hash_value(&hash,
                   (uint64_t)node->core.state << 32 | (uint64_t)node->core.cancelled << 1 | node->core.exhausted);
        hash_value(&hash, node->steps << 32 | node->core.next_seq);
        hash_value(&hash, a->taken << 48 | a->created << 40 | a->skipped << 32 | a->failed << 16 | a->dropped);
        hash_value(&hash, node->core.epochs_ended << 32 | (uint64_t)node->core.passing_epoch << 16 |
                              node->core.lifecycle->out_index);
        for (uint32_t j = 0; j < node->core.num_made; j++)
            hash_slot(&hash, node->core.slots[j]);
        hash_list(&hash, node->core.idle);
        hash_list(&hash, node->core.ready.first);
        for (const weir__core_slot *slot = node->core.turn_first; slot; slot = slot->turn_after)
            hash_value(&hash, slot->in.seq);
        for (uint32_t j = 0; j < node->core.num_outs; j++) {
            const weir__queue *queue = &node->outs[j];
            hash_value(&hash, queue->num_aside);
            for (uint32_t k = 0; k < queue->depth + queue->num_aside; k++)
                hash_item(&hash, weir__queue_item_at(queue, queue->head + k));
            hash_value(&hash, queue->closed);
            hash_list(&hash, queue->blocked.first);
        }
    }
    return hash ? hash : 1;
}

/* True = it was reached before. */
static bool add_state(state_set *set, uint64_t hash)
{
    uint64_t place = hash % STATE_SET_ROOM;
    for (; set->hashes[place]; place = (place + 1) % STATE_SET_ROOM)
        if (set->hashes[place] == hash)
            return true;
    if (set->count < STATE_SET_ROOM / 2) {
        set->hashes[place] = hash;
        set->count++;
    }
    return false;
}

/* ---- the run ------------------------------------------------------------------------------------------------ */

static void change_slots(core_driver *driver)
{
    driver_node *node = &driver->nodes[choose(driver->choices, driver->graph.num_nodes)];
    if (!node->core.has_tasks || node->core.num_ins == 0 || node->core.has_flush)
        return;
    uint32_t wanted = 1 + choose(driver->choices, MAX_DRIVER_SLOTS);
    if (wanted <= node->core.num_made)
        set_slots(node, wanted);
}

static void let_task_be_overdue(core_driver *driver)
{
    driver_node *node = &driver->nodes[choose(driver->choices, driver->graph.num_nodes)];
    for (uint32_t i = 0; i < node->core.num_made && node->core.has_tasks; i++) {
        slot_state state = node->all_slots[i].core.state;
        if (state == SLOT_RUNNING || state == SLOT_PENDING)
            weir__task_overdue(&node->all_slots[i].core);
    }
}

static void interfere(core_driver *driver)
{
    pass_time(driver);
    if (driver->num_events == driver->stop_at)
        weir__graph_stop(&driver->graph);
    if (driver->num_events == driver->change_at)
        change_slots(driver);
    if (driver->num_events == driver->overdue_at)
        let_task_be_overdue(driver);
}

/* With needs_results, and only then, a node all of whose tasks have failed is a failure. */
static void check_failed_nodes(core_driver *driver)
{
    const weir__graph *graph = &driver->graph;
    const driver_node *failed =
        graph->failed && graph->failure == WEIR__FAILURE_ALL ? (const driver_node *)graph->failed_node : NULL;
    check(driver, !failed || (graph->needs_results && !failed->whole_successes),
          "a node has failed that has made something");
    check(driver, !failed || failed->whole_tasks, "a node has failed by what an earlier run had left");
    for (uint32_t i = 0; i < graph->num_nodes && graph->needs_results && !graph->failed && !graph->stopped; i++) {
        const weir__core_node *node = graph->nodes[i];
        check(driver, node->cancelled || !driver->nodes[i].whole_tasks || node->total_failures < node->total_tasks,
              "all tasks of a node have failed, but not the run");
    }
}

/* Nothing is left in the pipeline, and what was made is somewhere. */
static void check_end(core_driver *driver)
{
    weir__graph *graph = &driver->graph;
    weir_item item;
    uint64_t gone = driver->num_delivered, made = 0;
    while (weir__leftover_take(graph, &item))
        if (!weir__is_epoch_end(&item)) {
            uint64_t id = (uintptr_t)item.data;
            check(driver, id && id <= driver->num_made, "a leftover was not made");
            check(driver, !id || id > MAX_DRIVER_ITEMS || !driver->seen[id - 1],
                  "an item is left over and delivered");
        }
    for (uint32_t i = 0; i < graph->num_nodes; i++) {
        const weir__core_node *node = graph->nodes[i];
        const weir_account *a = &node->account;
        check(driver, node->state == NODE_DONE, "the run is over, but a node is not done");
        made += a->created + (node->num_ins == 0 ? a->taken : 0);
        gone += a->skipped + a->failed + a->dropped + a->merged;
        for (uint32_t j = 0; j < node->num_outs; j++)
            gone += node->outs[j].total_dropped;
    }
    check(driver, made == gone, "an item was lost");
    check(driver, !driver->keeps_count || driver->num_delivered == driver->nodes[0].items,
          "what failed was not replaced");
    check_failed_nodes(driver);
}

/* What the consumer of an undisturbed run gets. */
static void check_epochs(core_driver *driver)
{
    uint64_t epochs = 0;
    for (uint32_t i = 0; i < driver->graph.num_nodes; i++)
        if (driver->nodes[i].core.num_ins == 0 && driver->nodes[i].core.epochs > epochs)
            epochs = driver->nodes[i].core.epochs;
    check(driver, driver->graph.stopped || driver->graph.failed || driver->num_epochs == epochs,
          "an end of an epoch was lost");
}

const char *driver_run(core_driver *driver)
{
    event events[MAX_EVENTS];
    check_all(driver);
    while (!driver->graph.over && !driver->broken) {
        uint32_t count = find_events(driver, events);
        if (count == 0) {
            check(driver, false, "nothing can happen, but the run is not over");
            break;
        }
        const event *next = &events[choose(driver->choices, count)];
        driver->num_events++;
        bool interferes = driver->num_events == driver->stop_at || driver->num_events == driver->change_at ||
                          driver->num_events == driver->overdue_at;
        if (interferes || next->kind != EVENT_AHEAD)
            tell_taken(driver);
        if (interferes)
            interfere(driver);
        else
            do_event(driver, next);
        end_ahead(driver);
        check_all(driver);
        check(driver, driver->num_events < driver->max_events, "the run does not end");
        if (driver->reached && add_state(driver->reached, hash_state(driver)) &&
            driver->choices->at >= driver->choices->fixed)
            return driver->broken;
    }
    if (!driver->broken) {
        check_end(driver);
        check_epochs(driver);
        order_check(driver);
    }
    return driver->broken;
}

/* ---- graphs ------------------------------------------------------------------------------------------------- */

typedef struct open_end {
    driver_node *node;
    uint32_t out;
} open_end;

static uint32_t choose_room(core_driver *driver)
{
    return 1 + choose(driver->choices, 3);
}

static void may_be_limited(core_driver *driver, driver_node *node)
{
    if (choose_one_in(driver->choices, 8))
        for (uint32_t i = 0; i < node->core.num_outs; i++)
            node->outs[i].capacity_bytes = 10 + 15 * choose(driver->choices, 2);
}

/* Its steps are short, and may be run in bursts. */
static void add_bursts(choices *list, driver_node *node)
{
    node->core.may_run_ahead = choose(list, 3);
    if (node->core.may_run_ahead)
        node->core.typical_ns = 0;
}

/* Everything a stage may do. A stage that keeps inputs gives no promise about order: each of its slots keeps its own. */
static void add_behaviour(core_driver *driver, driver_node *node)
{
    choices *list = driver->choices;
    if (choose_one_in(list, 6))
        node->core.pool = &driver->pools[1].core;
    add_bursts(list, node);
    node->core.has_stage_hooks = choose_one_in(list, 6);
    node->hooks_fail = node->core.has_stage_hooks && choose_one_in(list, 4);
    if (choose(list, 3)) {
        node->core.order = WEIR_ORDER_INPUT;
    } else if (node->core.num_made > 1) {
        driver->keeps_order = false;
    }
    if (!choose(list, 2))
        return;
    node->skips = choose_one_in(list, 3);
    node->fails = choose_one_in(list, 4);
    node->replaces = node->fails && choose(list, 2);
    node->pends = choose_one_in(list, 3);
    node->multiplies = choose_one_in(list, 3);
    node->passes_over = choose_one_in(list, 6);
    node->core.has_cancel = node->pends && choose(list, 2);
    node->core.has_flush = choose_one_in(list, 4);
    if (node->core.has_flush)
        driver->keeps_order = false;
    if (choose_one_in(list, 3))
        node->core.max_failures = (weir_max_failures){ .kind = WEIR_FAILURES_COUNT, .count = choose(list, 3) };
}

static driver_node *add_stage(core_driver *driver, uint32_t num_outs)
{
    driver_node *node = driver_add_node(driver, true, 1 + choose(driver->choices, 3), num_outs, choose_room(driver));
    add_behaviour(driver, node);
    may_be_limited(driver, node);
    return node;
}

static void look_ahead(driver_node *route, uint32_t most)
{
    route->core.look_ahead = most;
    for (uint32_t i = 0; i < route->core.num_outs; i++)
        route->outs[i].num_entries = route->outs[i].capacity + most;
}

static open_end add_stages(core_driver *driver, open_end end, uint32_t depth);

static open_end add_route(core_driver *driver, open_end end, uint32_t depth)
{
    uint32_t num_branches = 2 + choose_one_in(driver->choices, 4);
    driver_node *route = add_stage(driver, num_branches);
    route->pends = route->multiplies = route->core.has_flush = false;
    look_ahead(route, choose(driver->choices, 3) ? choose(driver->choices, MAX_AHEAD + 1) : 0);
    driver_connect(end.node, end.out, route);
    open_end ends[MAX_ENDS];
    for (uint32_t i = 0; i < num_branches; i++)
        ends[i] = add_stages(driver, (open_end){ route, i }, depth + 1);
    driver_node *join = driver_add_node(driver, false, 1, 1, choose_room(driver));
    for (uint32_t i = 0; i < num_branches; i++)
        driver_connect(ends[i].node, ends[i].out, join);
    join->core.route = &route->core;
    if (choose(driver->choices, 2))
        join->core.order = WEIR_ORDER_INPUT;
    else
        driver->keeps_order = false;
    return (open_end){ join, 0 };
}

static bool has_room(const core_driver *driver, uint32_t wanted)
{
    return driver->graph.num_nodes + wanted < 16;
}

static open_end add_stages(core_driver *driver, open_end end, uint32_t depth)
{
    for (uint32_t left = choose(driver->choices, depth ? 3 : 5); left > 0 && has_room(driver, 3); left--) {
        if (depth < 2 && has_room(driver, 9) && choose_one_in(driver->choices, 3)) {
            end = add_route(driver, end, depth);
        } else {
            driver_node *stage = add_stage(driver, 1);
            driver_connect(end.node, end.out, stage);
            end = (open_end){ stage, 0 };
        }
    }
    return end;
}

static open_end add_source(core_driver *driver, uint32_t epochs)
{
    driver_node *source = driver_add_node(driver, true, 1, 1, choose_room(driver));
    source->items = choose(driver->choices, 12);
    source->core.epochs = epochs;
    add_bursts(driver->choices, source);
    source->fails = choose_one_in(driver->choices, 12);
    source->core.has_stage_hooks = choose_one_in(driver->choices, 8);
    may_be_limited(driver, source);
    return (open_end){ source, 0 };
}

static open_end add_merge(core_driver *driver, const open_end *ends, uint32_t num_ends, bool has_epochs)
{
    driver_node *merge = driver_add_node(driver, false, 1, 1, choose_room(driver));
    for (uint32_t i = 0; i < num_ends; i++) {
        driver_connect(ends[i].node, ends[i].out, merge);
        merge->weights[i] = 1 + choose(driver->choices, 3);
    }
    merge->core.merge_order = (weir_merge_order)choose(driver->choices, 4);
    merge->core.merge_seed = choose(driver->choices, 8);
    if (merge->core.merge_order >= WEIR_MERGE_WEIGHTED)
        merge->core.weights = merge->weights;
    if (!has_epochs && choose_one_in(driver->choices, 4))
        merge->core.merge_end = WEIR_MERGE_END_FIRST;
    return (open_end){ merge, 0 };
}

/* A source of several epochs, a route that looks ahead, and a join that does not restore the order. */
static open_end add_routed_epochs(core_driver *driver)
{
    open_end end = add_source(driver, 2 + choose(driver->choices, 2));
    driver_node *route = driver_add_node(driver, true, 1 + choose(driver->choices, 2), 2, 1);
    driver_connect(end.node, end.out, route);
    look_ahead(route, 1 + choose(driver->choices, 2));
    open_end ends[2] = { { route, 0 }, { route, 1 } };
    for (uint32_t i = 0; i < 2; i++)
        if (choose(driver->choices, 2)) {
            driver_node *stage = add_stage(driver, 1);
            driver_connect(route, i, stage);
            ends[i] = (open_end){ stage, 0 };
        }
    driver_node *join = driver_add_node(driver, false, 1, 1, 1);
    for (uint32_t i = 0; i < 2; i++)
        driver_connect(ends[i].node, ends[i].out, join);
    join->core.route = &route->core;
    driver->keeps_order = false;
    return (open_end){ join, 0 };
}

static open_end add_random_nodes(core_driver *driver)
{
    choices *list = driver->choices;
    if (choose_one_in(list, 5))
        return add_routed_epochs(driver);
    uint32_t num_chains = choose_one_in(list, 3) ? 2 + choose(list, 2) : 1;
    uint32_t epochs = choose_one_in(list, 3) ? 1 + choose(list, 3) : 0;
    open_end ends[MAX_ENDS] = { { 0 } };
    for (uint32_t i = 0; i < num_chains; i++)
        ends[i] = add_stages(driver, add_source(driver, epochs), num_chains > 1 ? 2 : 0);
    return num_chains > 1 ? add_stages(driver, add_merge(driver, ends, num_chains, epochs), 1) : ends[0];
}

void driver_build_random(core_driver *driver, choices *list)
{
    driver_init(driver, list, 1 + choose(list, 3));
    driver->graph.needs_results = choose(list, 2);
    driver->graph.num_part_epochs = choose_one_in(list, 3) ? 1 + choose(list, 2) : 0;
    driver->retries = driver->graph.num_part_epochs && choose(list, 2);
    open_end end = add_random_nodes(driver);
    driver_node *sink = driver_add_node(driver, false, 1, 1, choose_room(driver));
    driver_connect(end.node, end.out, sink);
    if (choose_one_in(list, 4))
        driver->stop_at = 1 + choose(list, 80);
    if (choose_one_in(list, 3))
        driver->change_at = 1 + choose(list, 60);
    if (choose_one_in(list, 4))
        driver->overdue_at = 1 + choose(list, 60);
    if (choose_one_in(list, 3))
        order_begin(driver);
    driver_start(driver);
}

void driver_build_small(core_driver *driver, choices *list, small_twist twist)
{
    driver_init(driver, list, 2);
    driver_node *source = driver_add_node(driver, true, 1, 1, 1);
    driver_node *stage = driver_add_node(driver, true, twist == SMALL_ROUTE ? 1 : 2, twist == SMALL_ROUTE ? 2 : 1, 1);
    driver_node *join = twist == SMALL_ROUTE ? driver_add_node(driver, false, 1, 1, 1) : NULL;
    driver_node *sink = driver_add_node(driver, false, 1, 1, 1);
    driver_connect(source, 0, stage);
    driver_connect(stage, 0, join ? join : sink);
    if (join) {
        driver_connect(stage, 1, join);
        driver_connect(join, 0, sink);
        join->core.route = &stage->core;
        look_ahead(stage, 1);
        source->core.epochs = 2;
    }
    source->items = twist == SMALL_ROUTE ? 5 : 4;
    stage->core.order = twist == SMALL_IN_ORDER || twist == SMALL_STATUS || twist == SMALL_REPLACED
                            ? WEIR_ORDER_INPUT
                            : WEIR_ORDER_COMPLETION;
    stage->core.has_flush = twist == SMALL_KEPT;
    stage->core.max_failures =
        (weir_max_failures){ .kind = WEIR_FAILURES_COUNT, .count = twist == SMALL_KEPT || twist == SMALL_REPLACED };
    driver->keeps_order = stage->core.order == WEIR_ORDER_INPUT;
    driver->odd_left = twist == SMALL_STATUS || twist == SMALL_KEPT || twist == SMALL_REPLACED;
    driver->keeps_count = stage->replaces = twist == SMALL_REPLACED;
    driver->stops_left = twist == SMALL_STOP || twist == SMALL_ROUTE;
    driver->changes_left = twist == SMALL_SLOTS;
    driver_start(driver);
}

void driver_print(const core_driver *driver)
{
    for (uint32_t i = 0; i < driver->graph.num_nodes; i++) {
        const driver_node *node = &driver->nodes[i];
        fprintf(stderr, "  node %u: %u slots, queue %u%s%s%s%s%s%s%s%s%s", i, node->core.num_made,
                node->outs[0].capacity, node->core.order == WEIR_ORDER_INPUT ? ", in order" : "",
                node->multiplies ? ", multiplies" : "", node->skips ? ", skips" : "", node->fails ? ", fails" : "",
                node->replaces ? ", replaces" : "", node->pends ? ", pends" : "",
                node->core.has_flush ? ", keeps" : "", node->core.has_stage_hooks ? ", hooks" : "",
                node->core.has_cancel ? ", cancel" : "");
        if (node->core.num_ins == 0)
            fprintf(stderr, ", %u items, %u epochs", node->items, node->core.epochs);
        if (node->core.num_ins > 1)
            fprintf(stderr, ", merge order %d, end %d", (int)node->core.merge_order, (int)node->core.merge_end);
        for (uint32_t j = 0; j < node->core.num_ins; j++)
            fprintf(stderr, "%s%u", j ? ", " : " <- ", node->ins[j]->producer->index);
        fputc('\n', stderr);
    }
    fprintf(stderr, "  stop at event %u, slots change at %u, overdue at %u\n", driver->stop_at, driver->change_at,
            driver->overdue_at);
}
