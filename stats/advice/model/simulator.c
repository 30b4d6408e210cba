/*
 * Time: `now` is real time. Tasks in their CPU part share the CPUs equally, so all of them advance at the same speed;
 * `work` is the CPU time that such a task has got since the start. A task that needs c seconds of CPU ends when `work`
 * has grown by c. So there are two heaps, one in real time for delays and one in `work` for CPU parts, and events never
 * move. The core gets real time in nanoseconds.
 */
#include "stats/advice/model/simulator.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "engine/core/core.h"
#include "stats/advice/model/event_heap.h"

enum { MOST_EVENTS = 20000000 };

typedef struct sim_slot {
    weir__core_slot core; /* first; of the consumer, not used */
    bool is_consumer, is_busy, is_late;
    uint64_t num_results, num_steps; /* that its task has still to make */
    double since;
    double delay_s, cpu_s, late_s; /* of each step */
    double pending_s;              /* of the last step */
    double cpu_since;
    double credit; /* of batches and chunks: the part of a result that its inputs have made so far */
} sim_slot;

typedef struct sim_pool {
    weir__core_pool core; /* first */
    uint32_t free_threads;
} sim_pool;

typedef struct sim_node {
    weir__core_node core; /* first */
    const weir_model_node *model;
    double *shares; /* of a route: the upper ends of its branches' ranges, from 0 to 1 */
    double cpu_done_s, cpu_wait_s;
    /* lengths of tasks: a deck that is shuffled when it has been dealt */
    double *deck;
    size_t deck_size, dealt;
} sim_node;

/* Memory that is freed at the end. */
typedef union sim_block {
    union sim_block *next;
    max_align_t aligned;
} sim_block;

typedef struct sim_run {
    weir__graph graph;
    const sim_spec *spec;
    weir_error *error;
    sim_block *blocks;
    bool out_of_memory;
    sim_node *nodes;
    sim_pool *pools; /* 0 is of the pipeline's pool, the others of nodes with private threads */
    uint32_t num_pools;
    sim_slot consumer;
    double now, work;
    size_t num_on_cpu;
    event_heap delays, works;
    uint64_t random, num_delivered;
    double consumer_busy_s;
} sim_run;

/* Zeroed. NULL = out of memory, now or before. */
static void *allocate_array(sim_run *run, size_t count, size_t size)
{
    sim_block *block = run->out_of_memory ? NULL : calloc(1, sizeof *block + (count ? count : 1) * size);
    run->out_of_memory = !block;
    if (!block)
        return NULL;
    block->next = run->blocks;
    run->blocks = block;
    return block + 1;
}

static void free_run(sim_run *run)
{
    while (run->blocks) {
        sim_block *block = run->blocks;
        run->blocks = block->next;
        free(block);
    }
}

/* ---- chance ------------------------------------------------------------------------------------------------- */

static uint64_t next_random(sim_run *run)
{
    return weir__random_next(&run->random);
}

static double next_share(sim_run *run)
{
    return (double)(next_random(run) >> 11) * 0x1p-53;
}

static double deal_length(sim_run *run, sim_node *node)
{
    if (node->dealt == 0)
        for (size_t i = node->deck_size; i > 1; i--) {
            size_t other = (size_t)(next_random(run) % i);
            double length = node->deck[i - 1];
            node->deck[i - 1] = node->deck[other];
            node->deck[other] = length;
        }
    double length = node->deck[node->dealt++];
    node->dealt = node->dealt == node->deck_size ? 0 : node->dealt;
    return length;
}

/* ---- tasks -------------------------------------------------------------------------------------------------- */

static sim_node *node_of(const sim_slot *slot)
{
    return (sim_node *)slot->core.node;
}

/* The CPU part, or the delay after it, or the end if both are 0. */
static void start_cpu(sim_run *run, sim_slot *slot)
{
    slot->cpu_since = run->now;
    run->num_on_cpu++;
    event_push(&run->works, run->work + slot->cpu_s, slot);
}

static void start_step(sim_run *run, sim_slot *slot)
{
    if (slot->delay_s > 0)
        event_push(&run->delays, run->now + slot->delay_s, slot);
    else
        start_cpu(run, slot);
}

static void start_consumer(sim_run *run)
{
    sim_slot *consumer = &run->consumer;
    weir_item item;
    if (consumer->is_busy || run->graph.sink->depth == 0)
        return;
    weir__graph_deliver(&run->graph, &item, 0, 0);
    const weir_model_node *sink = ((const sim_node *)run->graph.sink->producer)->model;
    consumer->is_busy = true;
    consumer->since = run->now;
    consumer->delay_s = sink->time_s - sink->cpu_s;
    consumer->cpu_s = sink->cpu_s;
    start_step(run, consumer);
}

static void begin_task(sim_run *run, sim_slot *slot)
{
    sim_node *node = node_of(slot);
    const weir_model_node *model = node->model;
    double length = deal_length(run, node), lost = next_share(run);
    slot->num_results = 0;
    if (lost >= model->skip_share + model->failure_share) {
        slot->credit += model->results * (1 + 1e-12);
        slot->num_results = (uint64_t)slot->credit;
        slot->credit -= (double)slot->num_results;
    }
    slot->num_steps = slot->num_results > 1 ? slot->num_results : 1;
    slot->pending_s = length * model->pending_s;
    length /= (double)slot->num_steps;
    slot->cpu_s = length * model->cpu_s;
    /* Tasks do not all compute at the same time of their lives: the delay comes before and after. */
    double delay_s = length * (model->time_s - model->cpu_s - model->pending_s);
    slot->delay_s = model->cpu_s > 0 ? delay_s * next_share(run) : delay_s;
    slot->late_s = delay_s - slot->delay_s;
}

static uint32_t choose_branch(sim_run *run, const sim_node *node)
{
    uint32_t out = 0;
    if (node->core.num_outs < 2)
        return 0;
    double share = next_share(run);
    while (out + 1 < node->core.num_outs && share >= node->shares[out])
        out++;
    return out;
}

/* The status with which the step of the slot ends. */
static int end_status(sim_slot *slot)
{
    if (slot->num_steps == 1 && slot->pending_s > 0 && !slot->core.finishing)
        return WEIR_PENDING;
    slot->num_steps--;
    if (slot->num_results == 0)
        return WEIR_SKIP; /* a failure does the same */
    slot->num_results--;
    return slot->num_steps ? WEIR_MORE : WEIR_OK;
}

static void step_ended(sim_run *run, sim_slot *slot)
{
    int status = slot->core.status = end_status(slot);
    ((sim_pool *)slot->core.node->pool)->free_threads++;
    slot->core.end_ns = run->graph.now_ns;
    slot->core.step_run_ns = slot->core.end_ns - slot->core.begin_ns;
    slot->core.out = slot->core.in;
    slot->core.out_index = choose_branch(run, node_of(slot));
    weir__step_ended(&slot->core);
    if (status == WEIR_PENDING)
        event_push(&run->delays, run->now + slot->pending_s, slot);
}

static void run_step(sim_run *run, sim_slot *slot)
{
    slot->core.begin_ns = run->graph.now_ns;
    if (slot->core.finishing) {
        step_ended(run, slot);
        return;
    }
    if (slot->core.starts_task)
        begin_task(run, slot);
    start_step(run, slot);
}

/* Free threads take ready slots. A step that only brings the result of a pending task ends at once, and may make other
   slots ready. */
static void dispatch_slots(sim_run *run)
{
    bool again;
    do {
        again = false;
        start_consumer(run);
        for (uint32_t i = 0; i < run->num_pools; i++) {
            sim_pool *pool = &run->pools[i];
            while (pool->core.num_ready && pool->free_threads) {
                sim_slot *slot = (sim_slot *)weir__core_pool_pick(&pool->core);
                pool->free_threads--;
                again |= slot->core.finishing;
                run_step(run, slot);
            }
        }
    } while (again);
}

/* ---- time --------------------------------------------------------------------------------------------------- */

/* CPU time per second that each task on a CPU gets. */
static double cpu_speed(const sim_run *run)
{
    double wanted = (double)run->num_on_cpu + run->spec->background;
    return wanted > run->spec->cpus ? run->spec->cpus / wanted : 1;
}

static void advance_time(sim_run *run, double span_s)
{
    run->now += span_s;
    run->work += span_s * (run->num_on_cpu ? cpu_speed(run) : 0);
    weir__graph_move_time(&run->graph, (int64_t)(run->now * 1e9 + 0.5));
}

static void cpu_part_ended(sim_run *run, sim_slot *slot)
{
    run->num_on_cpu--;
    if (!slot->is_consumer) {
        node_of(slot)->cpu_done_s += slot->cpu_s;
        node_of(slot)->cpu_wait_s += run->now - slot->cpu_since - slot->cpu_s;
        if (slot->late_s > 0) {
            slot->is_late = true;
            event_push(&run->delays, run->now + slot->late_s, slot);
            return;
        }
        step_ended(run, slot);
        return;
    }
    run->consumer_busy_s += run->now - slot->since;
    run->num_delivered++;
    slot->is_busy = false;
}

/* False: nothing can happen any more. */
static bool next_event(sim_run *run)
{
    double until_delay = run->delays.count ? run->delays.entries[0].at - run->now : DBL_MAX;
    double until_work = run->works.count ? (run->works.entries[0].at - run->work) / cpu_speed(run) : DBL_MAX;
    if (run->delays.count + run->works.count == 0)
        return false;
    if (until_delay < until_work) {
        advance_time(run, until_delay > 0 ? until_delay : 0);
        sim_slot *slot = event_pop(&run->delays);
        if (!slot->is_consumer && slot->core.state == SLOT_PENDING)
            weir__task_completed(&slot->core);
        else if (slot->is_late) {
            slot->is_late = false;
            step_ended(run, slot);
        } else
            start_cpu(run, slot);
    } else {
        advance_time(run, until_work > 0 ? until_work : 0);
        cpu_part_ended(run, event_pop(&run->works));
    }
    return true;
}

/* ---- the graph ---------------------------------------------------------------------------------------------- */

/* The route where the branches of a join begin: the first one upstream that no other join closes. NULL = it merges
   sources. */
static weir__core_node *route_of(const weir__core_node *join)
{
    int num_open = 0;
    const weir__core_node *node = join;
    while (node->num_ins > 0) {
        node = node->ins[0]->producer;
        if (node->num_outs > 1 && num_open-- == 0)
            return (weir__core_node *)node;
        num_open += node->num_ins > 1;
    }
    return NULL;
}

static void make_queues(sim_run *run, sim_node *node)
{
    const weir_model_node *model = node->model;
    double by_bytes = model->queue_bytes && model->item_bytes > 0
                          ? ceil((double)model->queue_bytes / model->item_bytes)
                          : (double)model->queue_items;
    uint32_t most = (uint32_t)fmax(1, fmin(by_bytes, fmin(model->queue_items, run->spec->most_queued)));
    node->core.num_outs = model->num_shares > 1 ? model->num_shares : 1;
    node->core.look_ahead = model->num_shares > 1 ? model->look_ahead_items : 0;
    node->core.outs = allocate_array(run, node->core.num_outs, sizeof *node->core.outs);
    node->shares = allocate_array(run, node->core.num_outs, sizeof *node->shares);
    for (uint32_t i = 0; i < node->core.num_outs && !run->out_of_memory; i++) {
        node->core.outs[i] = (weir__queue){ .capacity = most, .capacity_bytes = UINT64_MAX, .producer = &node->core };
        node->core.outs[i].num_entries = most + node->core.look_ahead;
        node->core.outs[i].entries =
            allocate_array(run, most + node->core.look_ahead, sizeof *node->core.outs[i].entries);
        node->shares[i] = (i ? node->shares[i - 1] : 0) + (model->num_shares > 1 ? model->shares[i] : 1);
    }
    for (uint32_t i = 0; i < node->core.num_outs && !run->out_of_memory; i++)
        node->shares[i] /= node->shares[node->core.num_outs - 1];
}

static void make_slots(sim_run *run, sim_node *node)
{
    uint32_t count = node->model->concurrency;
    sim_slot *slots = allocate_array(run, count, sizeof *slots);
    node->core.slots = allocate_array(run, count, sizeof *node->core.slots);
    node->core.num_made = node->core.num_slots = node->core.num_wanted = count;
    for (uint32_t i = 0; i < count && !run->out_of_memory; i++) {
        slots[i].core.node = &node->core;
        node->core.slots[i] = &slots[i].core;
    }
}

static weir__core_pool *make_pool(sim_run *run, uint32_t threads)
{
    sim_pool *pool = &run->pools[run->num_pools++];
    pool->free_threads = threads;
    pool->core.graph = &run->graph;
    pool->core.num_words = (run->graph.num_nodes + 63) / 64;
    pool->core.ready_ranks = allocate_array(run, pool->core.num_words, sizeof *pool->core.ready_ranks);
    pool->core.ranks = allocate_array(run, run->graph.num_nodes, sizeof *pool->core.ranks);
    return &pool->core;
}

static void make_node(sim_run *run, uint32_t index)
{
    sim_node *node = &run->nodes[index];
    const weir_model_node *model = node->model = &run->spec->nodes[index];
    run->graph.nodes[index] = &node->core;
    node->core.graph = &run->graph;
    node->core.index = index;
    node->core.has_tasks = strcmp(model->kind, "merge") != 0 && strcmp(model->kind, "sink") != 0;
    if (node->core.has_tasks)
        node->core.pool = model->threads ? make_pool(run, model->threads) : &run->pools[0].core;
    node->core.order = model->output_order;
    node->core.merge_order = model->merge_order;
    node->core.merge_seed = run->spec->seed;
    node->core.typical_ns = 10 * WEIR__SHORT_STEP_NS;
    node->core.ins = allocate_array(run, model->num_inputs, sizeof(weir__queue *));
    node->core.credits = allocate_array(run, 2 * (size_t)model->num_inputs, sizeof *node->core.credits);
    node->core.weights = allocate_array(run, model->num_inputs, sizeof *node->core.weights);
    for (uint32_t i = 0; i < model->num_inputs && !run->out_of_memory; i++)
        node->core.weights[i] = model->weights ? model->weights[i] : 1;
    make_queues(run, node);
    make_slots(run, node);
    node->deck_size = run->spec->num_lengths[index];
    node->deck = allocate_array(run, node->deck_size, sizeof *node->deck);
    if (node->deck && node->deck_size)
        memcpy(node->deck, run->spec->lengths[index], node->deck_size * sizeof *node->deck);
}

/* Without `branches`, the first node that takes from a route gets the first branch. */
static void connect_node(sim_run *run, sim_node *node)
{
    node->core.num_ins = node->model->num_inputs;
    for (uint32_t i = 0; i < node->core.num_ins; i++) {
        sim_node *producer = &run->nodes[node->model->inputs[i]];
        uint32_t out = node->model->branches ? node->model->branches[i] : 0;
        while (!node->model->branches && producer->core.outs[out].consumer)
            out++;
        node->core.ins[i] = &producer->core.outs[out];
        node->core.ins[i]->consumer = &node->core;
    }
    if (node->core.num_ins < 2)
        return;
    node->core.route = route_of(&node->core);
    if (!node->core.route)
        node->core.order = WEIR_ORDER_COMPLETION;
}

static bool make_graph(sim_run *run)
{
    uint32_t num_nodes = run->graph.num_nodes = (uint32_t)run->spec->num_nodes;
    run->graph.measures = true;
    size_t num_slots = 1;
    for (uint32_t i = 0; i < num_nodes; i++)
        num_slots += run->spec->nodes[i].concurrency;
    run->nodes = allocate_array(run, num_nodes, sizeof *run->nodes);
    run->graph.nodes = allocate_array(run, num_nodes, sizeof(weir__core_node *));
    run->pools = allocate_array(run, num_nodes + 1, sizeof *run->pools);
    run->delays.entries = allocate_array(run, num_slots, sizeof(event_entry));
    run->works.entries = allocate_array(run, num_slots, sizeof(event_entry));
    run->consumer.is_consumer = true;
    if (run->out_of_memory)
        return false;
    make_pool(run, run->spec->threads);
    for (uint32_t i = 0; i < num_nodes; i++)
        make_node(run, i);
    if (run->out_of_memory)
        return false;
    for (uint32_t i = 0; i < num_nodes; i++)
        connect_node(run, &run->nodes[i]);
    run->graph.sink = &run->nodes[num_nodes - 1].core.outs[0];
    return true;
}

/* ---- the run ------------------------------------------------------------------------------------------------ */

/* Until the consumer has had this many items. */
static int run_until(sim_run *run, uint64_t num_items)
{
    uint64_t num_events = 0;
    while (run->num_delivered < num_items) {
        if (++num_events > MOST_EVENTS || !next_event(run))
            return weir_error_set(run->error, WEIR_ELIMIT, 0,
                                  "the simulated pipeline delivers too few results: %llu of %llu after %llu events",
                                  (unsigned long long)run->num_delivered, (unsigned long long)num_items,
                                  (unsigned long long)num_events);
        dispatch_slots(run);
    }
    return WEIR_OK;
}

/* Brings all times up to now, and sets them to 0 if the measured part begins. */
static void settle_all(sim_run *run, bool begins)
{
    int64_t now_ns = run->graph.now_ns;
    for (uint32_t i = 0; i < run->graph.num_nodes; i++) {
        sim_node *node = &run->nodes[i];
        for (uint32_t j = 0; j < node->core.num_made; j++) {
            weir__core_slot *slot = node->core.slots[j];
            node->core.time_ns[weir__slot_time(slot)] += now_ns - slot->since_ns;
            slot->since_ns = now_ns;
        }
        for (uint32_t j = 0; j < node->core.num_outs; j++) {
            weir__queue_settle(&node->core.outs[j], now_ns);
            if (begins)
                node->core.outs[j].lap = (weir_queue_metrics){ 0 };
        }
        if (begins) {
            memset(node->core.time_ns, 0, sizeof node->core.time_ns);
            node->core.lap = (weir_task_metrics){ 0 };
            node->cpu_done_s = node->cpu_wait_s = 0;
        }
    }
    if (begins)
        run->consumer_busy_s = 0;
}

static void read_result(const sim_run *run, double start_s, sim_result *result)
{
    double span_s = result->elapsed_s = run->now - start_s;
    result->throughput = (double)run->spec->num_items / span_s;
    result->consumer_share = run->consumer_busy_s / span_s;
    for (uint32_t i = 0; i < run->graph.num_nodes; i++) {
        const sim_node *node = &run->nodes[i];
        sim_node_result *to = &result->nodes[i];
        *to = (sim_node_result){ .tasks_per_s = (double)node->core.lap.num_tasks / span_s,
                                 .cpus = node->cpu_done_s / span_s,
                                 .cpu_wait = fmax(0, node->cpu_wait_s) / span_s };
        for (int state = 0; state < SIM_STATES; state++)
            to->time_s[state] = (double)node->core.time_ns[state] / WEIR_SECOND;
        for (uint32_t j = 0; j < node->core.num_outs; j++) {
            const weir_queue_metrics *queue = &node->core.outs[j].lap;
            to->results_per_s += (double)queue->num_put / span_s;
            to->queue_depth += queue->depth_ns / (span_s * WEIR_SECOND);
        }
    }
}

int weir__simulate(const sim_spec *spec, sim_result *result, weir_error *error)
{
    sim_run run = { .spec = spec, .error = error, .random = spec->seed };
    int status =
        make_graph(&run) ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "no memory to simulate the pipeline");
    double start_s = 0;
    if (status == WEIR_OK) {
        weir__graph_prepare(&run.graph, 0);
        weir__graph_start(&run.graph);
        dispatch_slots(&run);
        status = run_until(&run, spec->num_start);
        settle_all(&run, true);
        start_s = run.now;
    }
    if (status == WEIR_OK)
        status = run_until(&run, spec->num_start + spec->num_items);
    if (status == WEIR_OK && run.now <= start_s)
        status = weir_error_set(error, WEIR_EINVAL, 0, "no part of the pipeline takes any time: nothing limits it");
    if (status == WEIR_OK) {
        settle_all(&run, false);
        read_result(&run, start_s, result);
    }
    free_run(&run);
    return status;
}
