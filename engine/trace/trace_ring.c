#include "engine/trace/trace_ring.h"

#include <stdlib.h>

#include "engine/base/label.h"
#include "engine/state/lock.h"

enum { DEFAULT_RECORDS = 1 << 16, MAX_RECORDS = 1 << 28, MAX_NODES = 1 << 16 };

/* ---- adding -------------------------------------------------------------------------------------------------- */

bool weir__trace_make_room(weir_trace_ring *ring)
{
    uint64_t limit = atomic_load_explicit(&ring->head, memory_order_acquire) + ring->mask + 1;
    if (ring->lost || atomic_load_explicit(&ring->tail, memory_order_relaxed) >= limit) {
        ring->lost = ring->stays_empty;
        atomic_fetch_add_explicit(&ring->num_lost, 1, memory_order_relaxed);
        return false;
    }
    atomic_store_explicit(&ring->limit, limit, memory_order_relaxed);
    return true;
}

static bool trace_add_locked(weir_pipeline *pipeline, const weir_trace_record *record)
{
    return ring_add(&pipeline->trace->engine, record);
}

/* The ring holds a reference to the label. The observer thread may release it as soon as the record is added. */
static void add_label_locked(weir_pipeline *pipeline, weir_trace_kind kind, uint64_t item, struct weir_label *label)
{
    weir_trace_record record = {
        .time_ns = pipeline->core.now_ns,
        .item = item,
        .value = (intptr_t)label,
        .kind = (uint8_t)kind,
    };
    weir__label_hold(label); /* first: the observer thread may release it as soon as the record is there */
    if (label && !trace_add_locked(pipeline, &record))
        weir__label_release(label);
}

static void add_label_of_item_locked(weir_pipeline *pipeline, const weir_item *item)
{
    add_label_locked(pipeline, WEIR_TRACE_LABEL, weir_trace_item(item->source, item->epoch, item->seq),
                     item->label_owner);
}

void weir__trace_mark_locked(weir_pipeline *pipeline, weir_trace_kind kind, int64_t value)
{
    if (weir__trace_is_on(pipeline))
        trace_add_locked(pipeline, &(weir_trace_record){
                                       .time_ns = pipeline->core.now_ns, .value = value, .kind = (uint8_t)kind });
}

enum { FIXED_TEXT = 1 };

void weir__trace_place_locked(weir_pipeline *pipeline, weir_trace_kind kind, struct weir_label *label,
                              const char *fixed)
{
    if (!weir__trace_is_on(pipeline))
        return;
    if (label)
        add_label_locked(pipeline, kind, 0, label);
    else
        trace_add_locked(pipeline, &(weir_trace_record){ .time_ns = pipeline->core.now_ns,
                                                         .value = (intptr_t)fixed,
                                                         .detail = FIXED_TEXT,
                                                         .kind = (uint8_t)kind });
}

void weir__trace_deliver_locked(weir_pipeline *pipeline, const weir_item *item, int64_t waited_ns)
{
    if (weir__trace_is_on(pipeline))
        trace_add_locked(pipeline, &(weir_trace_record){
                                       .time_ns = pipeline->core.now_ns,
                                       .item = weir_trace_item(item->source, item->epoch, item->seq),
                                       .value = waited_ns,
                                       .kind = WEIR_TRACE_DELIVER,
                                   });
}

/* ---- what the core records ------------------------------------------------------------------------------------- */

static weir_pipeline *pipeline_of(const weir__core_node *node)
{
    return (weir_pipeline *)node->graph;
}

static void record_state(const weir__core_slot *core, slot_state state, int64_t at_ns)
{
    const weir_task *slot = (const weir_task *)core;
    weir_pipeline *pipeline = pipeline_of(core->node);
    bool began_later = core->state == SLOT_RUNNING && core->begin_ns > core->entered_ns;
    int64_t on_ns = pipeline->trace->on_ns;
    bool has_ended = state == SLOT_IDLE && core->node->state == NODE_DONE;
    trace_add_locked(pipeline, &(weir_trace_record){
                                   .time_ns = at_ns > on_ns ? at_ns : on_ns,
                                   .item = core->trace_item,
                                   .value = began_later ? core->begin_ns : 0,
                                   .number = slot->trace_number | (core->flushing ? WEIR_TRACE_FLUSH : 0),
                                   .node = (uint16_t)core->node->index,
                                   .detail = (int8_t)(has_ended ? WEIR_TRACE_ENDED : (int)state),
                                   .kind = WEIR_TRACE_STATE,
                               });
}

static void record_level(const weir__queue *queue, weir_trace_kind kind, const weir_item *item, bool dropped)
{
    weir_pipeline *pipeline = pipeline_of(queue->producer);
    trace_add_locked(pipeline, &(weir_trace_record){
                                   .time_ns = pipeline->core.now_ns,
                                   .item = weir_trace_item(item->source, item->epoch, item->seq),
                                   .value = (int64_t)queue->bytes,
                                   .number = weir__queue_num_items(queue),
                                   .node = (uint16_t)queue->index,
                                   .detail = dropped,
                                   .kind = (uint8_t)kind,
                               });
}

/* The times since the result before. */
static void record_parts(const weir_task *slot)
{
    weir_pipeline *pipeline = slot->node->pipeline;
    for (uint32_t i = 0; i < slot->num_parts; i++) {
        const weir_item_part *part = &slot->reported.parts[i];
        int64_t part_ns = part->number - slot->reported.before[i];
        if (part->info->kind == WEIR_PART_TIME && part_ns > 0)
            trace_add_locked(pipeline, &(weir_trace_record){
                                           .time_ns = pipeline->core.now_ns,
                                           .item = (uintptr_t)part->info->name,
                                           .value = part_ns,
                                           .number = slot->trace_number,
                                           .node = (uint16_t)slot->node->core.index,
                                           .kind = WEIR_TRACE_PART,
                                       });
    }
}

static void record_task_end(const weir__core_slot *core, bool dropped)
{
    const weir_task *slot = (const weir_task *)core;
    weir_pipeline *pipeline = pipeline_of(core->node);
    record_parts(slot);
    uint32_t flags = (core->flushing ? WEIR_TRACE_FLUSH : 0) | (dropped ? WEIR_TRACE_DROPPED : 0);
    trace_add_locked(pipeline, &(weir_trace_record){
                                   .time_ns = pipeline->core.now_ns,
                                   .item = core->trace_item,
                                   .value = (int64_t)core->out.size_bytes,
                                   .number = slot->trace_number | flags,
                                   .node = (uint16_t)core->node->index,
                                   .detail = (int8_t)core->status,
                                   .kind = WEIR_TRACE_TASK,
                               });
}

/* The label of the result, unless it is the label of the slot's input. */
static void record_result(const weir__core_slot *core)
{
    if (core->out.label_owner != ((const weir_task *)core)->label)
        add_label_of_item_locked(pipeline_of(core->node), &core->out);
}

static const weir__recorder recorder = { record_state, record_level, record_task_end, record_result };

/* ---- on and off ---------------------------------------------------------------------------------------------- */

/* A slot that waits for a thread has no label yet, but its input has. */
static void record_slot_locked(weir_task *slot)
{
    weir_pipeline *pipeline = slot->node->pipeline;
    const weir__core_slot *core = &slot->core;
    bool waits = core->state == SLOT_READY && core->has_in && !slot->label;
    add_label_locked(pipeline, WEIR_TRACE_LABEL, core->trace_item, waits ? core->in.label_owner : slot->label);
    if (core->state != SLOT_RUNNING && core->has_out)
        add_label_of_item_locked(pipeline, &core->out);
    trace_add_locked(pipeline, &(weir_trace_record){
                                   .time_ns = pipeline->core.now_ns,
                                   .item = core->trace_item,
                                   .number = slot->trace_number | (core->flushing ? WEIR_TRACE_FLUSH : 0),
                                   .node = (uint16_t)core->node->index,
                                   .detail = (int8_t)weir__slot_shown(core),
                                   .kind = WEIR_TRACE_STATE,
                               });
}

static void record_queue_locked(const weir__queue *queue)
{
    weir_item none = { 0 };
    for (uint32_t i = 0; i < queue->depth + queue->num_aside; i++)
        add_label_of_item_locked(pipeline_of(queue->producer), weir__queue_item_at(queue, queue->head + i));
    record_level(queue, WEIR_TRACE_LEVEL, &none, false);
}

static void begin_locked(weir_pipeline *pipeline)
{
    atomic_store_explicit(&pipeline->traces, true, memory_order_relaxed);
    pipeline->core.recorder = &recorder;
    if (pipeline->trace->engine.lost)
        return; /* the observer thread will begin again */
    pipeline->trace->on_ns = pipeline->core.now_ns;
    uint64_t lost = atomic_exchange(&pipeline->trace->engine.num_lost, 0);
    weir__trace_mark_locked(pipeline, WEIR_TRACE_ON, (int64_t)lost);
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        for (uint32_t j = 0; j < node->core.num_made; j++)
            record_slot_locked(weir__slot_at(node, j));
        record_slot_locked(&node->lifecycle);
        for (uint32_t j = 0; j < node->core.num_outs; j++)
            record_queue_locked(&node->core.outs[j]);
    }
}

void weir__trace_end_locked(weir_pipeline *pipeline, int64_t at_ns)
{
    if (weir__trace_is_on(pipeline))
        trace_add_locked(pipeline, &(weir_trace_record){ .time_ns = at_ns, .kind = WEIR_TRACE_OFF });
    atomic_store_explicit(&pipeline->traces, false, memory_order_relaxed);
    pipeline->core.recorder = NULL;
}

void weir__trace_update(weir_pipeline *pipeline)
{
    uv_mutex_lock(&pipeline->resize_lock); /* one switch at a time */
    weir__engine_lock(pipeline);
    bool on = pipeline->trace->is_wanted && !pipeline->paused;
    weir__engine_unlock(pipeline);
    if (!on) /* records of user code are inside of the recording */
        weir__user_trace_switch(pipeline, false);
    engine_lock_at(pipeline, weir_clock_ns());
    if (on && !weir__trace_is_on(pipeline) && !pipeline->closing)
        begin_locked(pipeline);
    else if (!on && weir__trace_is_on(pipeline))
        weir__trace_end_locked(pipeline, pipeline->core.now_ns);
    bool is_on = weir__trace_is_on(pipeline);
    weir__engine_unlock(pipeline);
    if (is_on)
        weir__user_trace_switch(pipeline, true);
    uv_mutex_unlock(&pipeline->resize_lock);
    if (on)
        pipeline->wake_observers(pipeline);
}

int weir_pipeline_trace(weir_pipeline *pipeline, bool on)
{
    if (!pipeline)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    if (!pipeline->trace)
        return WEIR_EUNSUPPORTED;
    weir__engine_lock(pipeline);
    pipeline->trace->is_wanted = on;
    weir__engine_unlock(pipeline);
    weir__trace_update(pipeline);
    return WEIR_OK;
}

/* ---- the observer thread ------------------------------------------------------------------------------------- */

#define LONGEST_PATIENCE_NS  (10 * WEIR_MILLISECOND)
#define SHORTEST_PATIENCE_NS (100 * WEIR_MICROSECOND)

int64_t weir__trace_patience_ns(weir_pipeline *pipeline)
{
    return pipeline->trace && weir__trace_is_on(pipeline) ? pipeline->trace->patience_ns : WEIR_FOREVER;
}

/* The fuller the ring was, the sooner the observer thread reads it again. */
static void adapt_patience(weir_trace_rings *rings, uint64_t num_records)
{
    if (num_records > rings->engine.mask / 4)
        rings->patience_ns /= 2;
    else if (num_records < rings->engine.mask / 16)
        rings->patience_ns *= 2;
    rings->patience_ns = rings->patience_ns < SHORTEST_PATIENCE_NS  ? SHORTEST_PATIENCE_NS
                         : rings->patience_ns > LONGEST_PATIENCE_NS ? LONGEST_PATIENCE_NS
                                                                    : rings->patience_ns;
}

/* Moves up to TRACE_BATCH records before `tail` to the batch. */
static size_t take_batch(weir_trace_rings *rings, weir_trace_ring *ring, uint64_t tail)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    size_t num_records = 0;
    while (head < tail && num_records < TRACE_BATCH)
        rings->batch[num_records++] = ring->records[head++ & ring->mask];
    atomic_store_explicit(&ring->head, head, memory_order_release);
    return num_records;
}

/* Replaces the references to labels by their texts. Returns how many references must be released. */
static size_t resolve_texts(weir_trace_rings *rings, size_t num_records)
{
    size_t num_spent = 0;
    for (size_t i = 0; i < num_records; i++) {
        weir_trace_record *record = &rings->batch[i];
        rings->num_lost += record->kind == WEIR_TRACE_ON ? (uint64_t)record->value : 0;
        bool has_label =
            record->kind == WEIR_TRACE_LABEL || record->kind == WEIR_TRACE_PHASE || record->kind == WEIR_TRACE_MODE;
        if (!has_label || record->detail == FIXED_TEXT)
            continue;
        rings->spent[num_spent] = (struct weir_label *)(intptr_t)record->value;
        record->value = (intptr_t)weir__label_text(rings->spent[num_spent++]);
    }
    return num_spent;
}

static void deliver_batch(weir_pipeline *pipeline, const weir_trace_batch *batch)
{
    pipeline->trace->reported_ns = weir_clock_ns();
    for (size_t i = 0; i < pipeline->num_observers; i++)
        if (pipeline->observers[i].trace)
            pipeline->observers[i].trace(pipeline->observers[i].self, batch);
}

/* Records that are added meanwhile, also by the observers, stay in the ring. */
static void deliver_ring(weir_pipeline *pipeline, weir_trace_ring *ring, uint64_t tail)
{
    weir_trace_rings *rings = pipeline->trace;
    uint64_t num_dropped = ring == &rings->users ? atomic_exchange(&ring->num_lost, 0) : 0;
    rings->num_lost += num_dropped;
    for (;;) {
        size_t num_records = take_batch(rings, ring, tail);
        size_t num_spent = resolve_texts(rings, num_records);
        weir_trace_batch batch = { rings->batch, num_records, num_dropped };
        if (num_records || num_dropped)
            deliver_batch(pipeline, &batch);
        num_dropped = 0;
        while (num_spent > 0)
            weir__label_release(rings->spent[--num_spent]);
        if (num_records == 0)
            return;
    }
}

/* The first records (states, labels, levels) must fit. */
static uint64_t least_records(const weir_pipeline *pipeline)
{
    uint64_t num_reported = 1;
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        const weir_node *node = pipeline->nodes[i];
        num_reported += 3 * ((uint64_t)node->core.num_made + 1);
        for (uint32_t j = 0; j < node->core.num_outs; j++)
            num_reported += node->core.outs[j].num_entries + 1;
    }
    return 2 * num_reported;
}

/* Slots may have been added since the ring was made. Only this thread reads it. False = out of memory. */
static bool make_large_enough(weir_pipeline *pipeline)
{
    weir_trace_ring *ring = &pipeline->trace->engine;
    uint64_t num_records = ring->mask + 1;
    weir__engine_lock(pipeline);
    uint64_t least = least_records(pipeline);
    weir__engine_unlock(pipeline);
    if (least <= num_records)
        return true;
    while (num_records < least)
        num_records *= 2;
    weir_trace_record *records = calloc(num_records, sizeof *records), *before = ring->records;
    if (!records)
        return false;
    weir__engine_lock(pipeline); /* while records are lost, the ring stays empty */
    ring->records = records;
    ring->mask = num_records - 1;
    weir__engine_unlock(pipeline);
    free(before);
    return true;
}

/* Begins recording again after records were lost, as soon as the ring is empty, so that the first records fit. False =
   none were lost, or out of memory: then the next call tries again. */
static bool begin_again(weir_pipeline *pipeline)
{
    weir_trace_rings *rings = pipeline->trace;
    engine_lock_at(pipeline, weir_clock_ns());
    bool lost = rings->engine.lost, is_empty = rings->engine.head == rings->engine.tail;
    weir__engine_unlock(pipeline);
    if (!lost || !is_empty)
        return lost;
    if (!make_large_enough(pipeline))
        return false;
    engine_lock_at(pipeline, weir_clock_ns());
    bool on = weir__trace_is_on(pipeline);
    rings->engine.lost = false;
    begin_locked(pipeline);
    if (!on)
        weir__trace_end_locked(pipeline, pipeline->core.now_ns);
    weir__engine_unlock(pipeline);
    return true;
}

void weir__trace_deliver(weir_pipeline *pipeline)
{
    weir_trace_rings *rings = pipeline->trace;
    if (!rings)
        return;
    do {
        uint64_t tail = atomic_load_explicit(&rings->engine.tail, memory_order_acquire);
        adapt_patience(rings, tail - atomic_load_explicit(&rings->engine.head, memory_order_relaxed));
        deliver_ring(pipeline, &rings->users, atomic_load_explicit(&rings->users.tail, memory_order_acquire));
        deliver_ring(pipeline, &rings->engine, tail);
    } while (begin_again(pipeline));
    if (weir__trace_is_on(pipeline) && weir_clock_ns() - rings->reported_ns >= WEIR_SECOND)
        deliver_batch(pipeline, &(weir_trace_batch){ rings->batch, 0,
                                                     0 }); /* so that files are written although nothing happens */
}

/* ---- beginning and end --------------------------------------------------------------------------------------- */

static int ring_init(weir_trace_ring *ring, uint64_t num_records)
{
    ring->mask = num_records - 1;
    atomic_init(&ring->tail, 0);
    atomic_init(&ring->limit, num_records);
    atomic_init(&ring->num_lost, 0);
    atomic_init(&ring->head, 0);
    ring->records = calloc(num_records, sizeof *ring->records);
    return ring->records ? WEIR_OK : WEIR_ENOMEM;
}

int weir__trace_init(weir_pipeline *pipeline, uint32_t wanted_records)
{
    bool wanted = false;
    for (size_t i = 0; i < pipeline->num_observers; i++)
        wanted |= pipeline->observers[i].trace != NULL;
    if (!wanted || pipeline->core.num_nodes > MAX_NODES || pipeline->num_queues > MAX_NODES)
        return WEIR_OK;

    weir_trace_rings *rings = pipeline->trace = calloc(1, sizeof *rings);
    if (!rings)
        return WEIR_ENOMEM;
    uint64_t least = least_records(pipeline), num_records = 64;
    wanted_records = wanted_records ? wanted_records : DEFAULT_RECORDS;
    while (num_records < MAX_RECORDS && (num_records < least || num_records < wanted_records))
        num_records *= 2;
    rings->patience_ns = WEIR_MILLISECOND;
    rings->engine.stays_empty = true;
    rings->batch = calloc(TRACE_BATCH, sizeof *rings->batch);
    rings->spent = calloc(TRACE_BATCH, sizeof *rings->spent);
    if (!rings->batch || !rings->spent || ring_init(&rings->engine, num_records) != WEIR_OK ||
        ring_init(&rings->users, num_records) != WEIR_OK)
        return WEIR_ENOMEM;
    weir__user_trace_open(pipeline);
    return WEIR_OK;
}

void weir__trace_begin(weir_pipeline *pipeline)
{
    if (!pipeline->trace)
        return;
    pipeline->trace->is_wanted = true;
    begin_locked(pipeline);
    weir__user_trace_switch(pipeline, true);
}

void weir__trace_destroy(weir_pipeline *pipeline)
{
    weir_trace_rings *rings = pipeline->trace;
    if (!rings)
        return;
    weir__user_trace_close(pipeline);
    size_t num_records;
    while (rings->engine.records && rings->users.records &&
           (num_records = take_batch(rings, &rings->engine, rings->engine.tail)) > 0)
        for (size_t num_spent = resolve_texts(rings, num_records); num_spent > 0;)
            weir__label_release(rings->spent[--num_spent]);
    free(rings->engine.records);
    free(rings->users.records);
    free(rings->batch);
    free(rings->spent);
    free(rings);
}
