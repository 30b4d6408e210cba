#include "trace_events.h"
#include "trace_user.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_LABELS = 1 << 14 };

typedef struct state_kind {
    const char *name;     /* of its spans; NULL = the stage's */
    const char *category; /* the metric that the time counts in */
    bool has_item, is_wait;
} state_kind;

static const state_kind states[WEIR_TRACE_STATES] = {
    [WEIR_TRACE_WAITING_IN] = { "waits for input", "wait_in", false, true },
    [WEIR_TRACE_WAITING_THREAD] = { "waits for a thread", "wait_thread", true, true },
    [WEIR_TRACE_RUNNING] = { NULL, "busy", true, false },
    [WEIR_TRACE_PENDING] = { "pending", "busy", true, false },
    [WEIR_TRACE_WAITING_TURN] = { "waits for its turn", "wait_turn", true, true },
    [WEIR_TRACE_WAITING_OUT] = { "waits for room", "wait_out", true, true },
    [WEIR_TRACE_RETIRED] = { "retired", "retired", false, true },
};

/* ---- events -------------------------------------------------------------------------------------------------- */

#define PUT_LITERAL(text, literal) weir__trace_put(text, literal, sizeof(literal) - 1)

static void put_key_int(weir_trace_text *out, const char *key, int64_t value)
{
    weir__trace_puts(out, key);
    weir__trace_put_int(out, value);
}

void weir__trace_event_begin(weir_trace_events *events, char phase, int64_t track, int64_t at_ns, const char *name,
                             const char *category)
{
    weir_trace_text *out = events->out;
    events->event_start = out->length;
    PUT_LITERAL(out, "{\"ph\":\"");
    weir__trace_put(out, &phase, 1);
    put_key_int(out, "\",\"pid\":", events->pid);
    put_key_int(out, ",\"tid\":", track);
    PUT_LITERAL(out, ",\"ts\":");
    weir__trace_put_us(out, at_ns - events->base_ns);
    if (!name)
        return;
    PUT_LITERAL(out, ",\"cat\":");
    weir__trace_put_json(out, category);
    PUT_LITERAL(out, ",\"name\":");
    weir__trace_put_json(out, name);
}

void weir__trace_event_end(weir_trace_events *events)
{
    weir_trace_text *out = events->out;
    PUT_LITERAL(out, "},\n");
    events->num_lost += out->no_memory;
    if (out->no_memory || events->muted)
        out->length = events->event_start;
    out->no_memory = false;
}

void weir__trace_put_metadata(weir_trace_text *out, int64_t pid, int64_t track, const char *what, const char *key,
                              const char *name, int64_t number)
{
    put_key_int(out, "{\"ph\":\"M\",\"pid\":", pid);
    put_key_int(out, ",\"tid\":", track);
    PUT_LITERAL(out, ",\"ts\":0,\"name\":\"");
    weir__trace_puts(out, what);
    PUT_LITERAL(out, "\",\"args\":{\"");
    weir__trace_puts(out, key);
    PUT_LITERAL(out, "\":");
    if (name)
        weir__trace_put_json(out, name);
    else
        weir__trace_put_int(out, number);
    PUT_LITERAL(out, "}},\n");
}

void weir__trace_name_track(weir_trace_events *events, int64_t track, const char *name)
{
    weir_trace_text *head = events->head, *body = events->body;
    size_t start = head->length;
    weir__trace_put_metadata(head, events->pid, track, "thread_name", "name", name, 0);
    weir__trace_put_metadata(head, events->pid, track, "thread_sort_index", "sort_index", NULL, track);
    if (head->no_memory)
        head->length = start;
    else
        weir__trace_put(body, head->data + start, head->length - start);
    events->num_lost += head->no_memory || body->no_memory;
    head->no_memory = body->no_memory = false;
}

static void put_text_argument(weir_trace_events *events, const char *key, const char *text)
{
    weir__trace_puts(events->out, key);
    weir__trace_put_json(events->out, text);
}

/* What a person looks for: a mark in the first track. */
static void put_instant(weir_trace_events *events, int64_t at_ns, const char *name, const char *category,
                        const char *detail)
{
    weir__trace_event_begin(events, 'i', TRACE_TRACK_RUN, at_ns, name, category);
    PUT_LITERAL(events->out, ",\"s\":\"t\"");
    put_text_argument(events, ",\"args\":{\"detail\":", detail);
    PUT_LITERAL(events->out, "}");
    weir__trace_event_end(events);
}

/* Viewers show a value that is no number as 0, or reject the file. */
void weir__trace_counter(weir_trace_events *events, int64_t at_ns, const char *name, const char *value_name,
                         double value)
{
    if (!isfinite(value)) {
        put_instant(events, at_ns, name, "event", isnan(value) ? "not a number" : "infinite");
        return;
    }
    weir__trace_event_begin(events, 'C', 0, at_ns, name, "counter");
    PUT_LITERAL(events->out, ",\"args\":{");
    weir__trace_put_json(events->out, value_name);
    PUT_LITERAL(events->out, ":");
    if (fabs(value) < 1e15 && value == (double)(int64_t)value)
        weir__trace_put_int(events->out, (int64_t)value);
    else
        weir__trace_put_real(events->out, value);
    PUT_LITERAL(events->out, "}");
    weir__trace_event_end(events);
}

void weir__trace_events_lost(weir_trace_events *events, int64_t at_ns, const char *where, uint64_t num_records)
{
    char detail[96];
    snprintf(detail, sizeof detail, "%" PRIu64 " records: they came faster than they were written", num_records);
    events->num_lost += num_records;
    put_instant(events, at_ns, where, "lost", detail);
}

/* ---- items --------------------------------------------------------------------------------------------------- */

/* Items in flight have neighbouring numbers, so that they rarely share a place. */
static struct trace_label *label_place(weir_trace_events *events, uint64_t item)
{
    return &events->labels[(item ^ item >> 40 ^ item >> 50) % NUM_LABELS];
}

static void learn_label(weir_trace_events *events, uint64_t item, const char *text)
{
    struct trace_label *label = label_place(events, item);
    free(label->text);
    *label = (struct trace_label){ item, strdup(text) };
}

static const char *label_of(weir_trace_events *events, uint64_t item)
{
    const struct trace_label *label = label_place(events, item);
    return label->item == item ? label->text : NULL;
}

static void put_item(weir_trace_events *events, uint64_t item)
{
    weir_trace_text *out = events->out;
    const char *label = label_of(events, item);
    put_key_int(out, "\"seq\":", (int64_t)weir_trace_seq(item));
    if (weir_trace_epoch(item))
        put_key_int(out, ",\"epoch\":", (int64_t)weir_trace_epoch(item));
    if (weir_trace_source(item))
        put_key_int(out, ",\"source\":", (int64_t)weir_trace_source(item));
    if (label)
        put_text_argument(events, ",\"label\":", label);
}

/* An arrow begins ('s'), goes on ('t') or ends ('f') in the span at this time. */
static void put_item_flow(weir_trace_events *events, char phase, int64_t track, int64_t at_ns, uint64_t item)
{
    char id[48];
    if (events->no_flows)
        return;
    uint64_t key[2] = { (uint64_t)events->pid, item };
    snprintf(id, sizeof id, ",\"id\":\"0x%016llx\"", (unsigned long long)weir__trace_hash(key, sizeof key, 0));
    weir__trace_event_begin(events, phase, track, at_ns, "item", "item");
    weir__trace_puts(events->out, id);
    if (phase == 'f')
        PUT_LITERAL(events->out, ",\"bp\":\"e\"");
    weir__trace_event_end(events);
}

/* ---- slots --------------------------------------------------------------------------------------------------- */

int64_t weir__trace_track_of(uint16_t node, uint32_t number)
{
    int64_t place = number & WEIR_TRACE_LIFECYCLE ? WEIR_TRACE_SLOT + 2 : (number & WEIR_TRACE_SLOT) + 1;
    return ((int64_t)node + 1) * TRACE_TRACK_NODES + place;
}

static weir_trace_slot *find_slot(weir_trace_events *events, const weir_trace_record *record)
{
    weir_trace_node *node = &events->nodes[record->node];
    uint32_t number = record->number & WEIR_TRACE_SLOT;
    if (record->number & WEIR_TRACE_LIFECYCLE)
        return &node->lifecycle;
    if (number >= node->num_slots) {
        weir_trace_slot *grown = realloc(node->slots, (number + 1) * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + node->num_slots, 0, (number + 1 - node->num_slots) * sizeof *grown);
        node->slots = grown;
        node->num_slots = number + 1;
    }
    return &node->slots[number];
}

static void name_slot(const weir_trace_slot *slot, weir_trace_events *events, uint16_t node, bool waits)
{
    char name[256];
    const char *stage = events->stage_names[node], *suffix = waits ? " waits" : "";
    int64_t track = weir__trace_track_of(node, slot->number) + (waits ? TRACE_TRACK_WAITS : 0);
    if (slot->number & WEIR_TRACE_LIFECYCLE)
        snprintf(name, sizeof name, "%s hooks", stage);
    else if (strchr(stage, '[') || (slot->number & WEIR_TRACE_SLOT) > 0)
        snprintf(name, sizeof name, "%s #%u%s", stage, (unsigned)(slot->number & WEIR_TRACE_SLOT), suffix);
    else
        snprintf(name, sizeof name, "%s%s", stage, suffix);
    weir__trace_name_track(events, track, name);
}

/* Of the slot's tasks, or of its waits; hooks have one for both. */
static int64_t track_of_state(weir_trace_events *events, uint16_t node, weir_trace_slot *slot)
{
    bool waits = states[slot->state].is_wait && !(slot->number & WEIR_TRACE_LIFECYCLE);
    if (!slot->named[waits])
        name_slot(slot, events, node, waits);
    slot->named[waits] = true;
    return weir__trace_track_of(node, slot->number) + (waits ? TRACE_TRACK_WAITS : 0);
}

static const char *outcome_name(const weir_trace_slot *slot)
{
    if (slot->number & WEIR_TRACE_DROPPED)
        return "dropped";
    switch (slot->outcome) {
    case WEIR_OK: return "ok";
    case WEIR_SKIP: return "skipped";
    case WEIR_MORE: return "more";
    case WEIR_KEPT: return "kept";
    case WEIR_EPOCH: return "end of epoch";
    case WEIR_EOF: return "end";
    default: return weir_status_name(slot->outcome);
    }
}

static bool tells_item(const weir_trace_events *events, uint16_t node, const weir_trace_slot *slot)
{
    if (!states[slot->state].has_item || slot->number & WEIR_TRACE_LIFECYCLE)
        return false;
    return !events->is_source[node] || slot->has_outcome || slot->state == WEIR_TRACE_WAITING_OUT;
}

static bool has_failed(const weir_trace_slot *slot)
{
    return slot->state == WEIR_TRACE_RUNNING && slot->has_outcome && slot->outcome < 0;
}

static const char *name_of_state(const weir_trace_events *events, uint16_t node, const weir_trace_slot *slot)
{
    if (has_failed(slot))
        return "! failed";
    if (events->is_source[node] && slot->state == WEIR_TRACE_WAITING_IN) /* it has not begun, or has ended */
        return "idle";
    return states[slot->state].name ? states[slot->state].name : events->short_names[node];
}

static void begin_state(weir_trace_events *events, uint16_t node, weir_trace_slot *slot, int64_t begin_ns)
{
    weir__trace_event_begin(events, 'B', track_of_state(events, node, slot), begin_ns,
                            name_of_state(events, node, slot),
                            slot->number & WEIR_TRACE_LIFECYCLE ? "hooks" : states[slot->state].category);
    slot->item_written = tells_item(events, node, slot);
    if (slot->item_written) {
        PUT_LITERAL(events->out, ",\"args\":{");
        put_item(events, slot->item);
        PUT_LITERAL(events->out, "}");
    }
    weir__trace_event_end(events);
    slot->written = true;
}

static void put_outcome(weir_trace_events *events, uint16_t node, const weir_trace_slot *slot)
{
    weir_trace_text *out = events->out;
    PUT_LITERAL(out, ",\"args\":{");
    if (!slot->item_written && tells_item(events, node, slot)) {
        put_item(events, slot->item);
        PUT_LITERAL(out, ",");
    }
    PUT_LITERAL(out, "\"outcome\":\"");
    weir__trace_puts(out, outcome_name(slot));
    PUT_LITERAL(out, "\"");
    if (slot->result_bytes)
        put_key_int(out, ",\"bytes\":", slot->result_bytes);
    if (slot->number & WEIR_TRACE_FLUSH)
        PUT_LITERAL(out, ",\"flush\":true");
    PUT_LITERAL(out, "}");
}

static void put_end(weir_trace_events *events, uint16_t node, weir_trace_slot *slot, int64_t end_ns)
{
    weir__trace_event_begin(events, 'E', track_of_state(events, node, slot), end_ns, NULL, NULL);
    if (slot->state == WEIR_TRACE_RUNNING && slot->has_outcome)
        put_outcome(events, node, slot);
    weir__trace_event_end(events);
    slot->written = false;
}

/* A part of the state that has been written. */
static void put_part(weir_trace_events *events, uint16_t node, weir_trace_slot *slot, int64_t begin_ns,
                     int64_t end_ns, const char *name, const char *category)
{
    int64_t track = track_of_state(events, node, slot);
    if (slot->number & WEIR_TRACE_LIFECYCLE)
        return;
    weir__trace_event_begin(events, 'B', track, begin_ns, name, category);
    weir__trace_event_end(events);
    weir__trace_event_begin(events, 'E', track, end_ns, NULL, NULL);
    weir__trace_event_end(events);
}

static void put_flow_of_task(weir_trace_events *events, uint16_t node, const weir_trace_slot *slot, int64_t begin_ns)
{
    if (!slot->has_outcome || slot->outcome == WEIR_EOF || slot->outcome == WEIR_EPOCH)
        return;
    bool goes_on = slot->outcome == WEIR_OK || slot->outcome == WEIR_MORE;
    bool begins = events->is_source[node] || slot->number & WEIR_TRACE_FLUSH;
    if (goes_on || !begins)
        put_item_flow(events,
                      !goes_on ? 'f'
                      : begins ? 's'
                               : 't',
                      weir__trace_track_of(node, slot->number), begin_ns, slot->item);
}

static bool is_shown(const weir_trace_slot *slot)
{
    return slot->known && slot->state != WEIR_TRACE_RETIRED &&
           !(slot->number & WEIR_TRACE_LIFECYCLE && slot->state == WEIR_TRACE_WAITING_IN);
}

/* The wait before the task, up to begin_ns. */
static void put_wait_for_thread(weir_trace_events *events, uint16_t node, weir_trace_slot *slot, int64_t begin_ns)
{
    weir_trace_slot ready = *slot;
    ready.state = WEIR_TRACE_WAITING_THREAD;
    ready.has_outcome = false;
    if (begin_ns <= slot->ready_ns)
        return;
    begin_state(events, node, &ready, slot->ready_ns);
    put_end(events, node, &ready, begin_ns);
    slot->named[1] = ready.named[1];
}

/* began_ns: when the task really began, if that is later than a thread took it. */
static void end_task(weir_trace_events *events, uint16_t node, weir_trace_slot *slot, int64_t began_ns,
                     int64_t end_ns)
{
    int64_t since_ns = slot->since_ns;
    int64_t begin_ns = began_ns > end_ns ? end_ns : began_ns > since_ns ? began_ns : since_ns;
    if (!slot->written) {
        put_wait_for_thread(events, node, slot, begin_ns);
        if (end_ns <= begin_ns && !slot->has_outcome)
            return;
        begin_state(events, node, slot, begin_ns);
    } else {
        if (begin_ns > since_ns)
            put_part(events, node, slot, since_ns, begin_ns, states[WEIR_TRACE_WAITING_THREAD].name, "wait_thread");
        if (has_failed(slot))
            put_part(events, node, slot, begin_ns, end_ns, "! failed", "busy");
    }
    put_flow_of_task(events, node, slot, begin_ns);
    put_end(events, node, slot, end_ns);
}

static void end_state(weir_trace_events *events, uint16_t node, weir_trace_slot *slot, int64_t began_ns,
                      int64_t end_ns)
{
    end_ns = end_ns > slot->since_ns ? end_ns : slot->since_ns; /* after a cut, it may be earlier */
    if (!is_shown(slot))
        return;
    if (slot->state == WEIR_TRACE_RUNNING) {
        end_task(events, node, slot, began_ns, end_ns);
        return;
    }
    if (!slot->written && end_ns > slot->since_ns)
        begin_state(events, node, slot, slot->since_ns);
    if (slot->written)
        put_end(events, node, slot, end_ns);
}

static void write_open_state(weir_trace_events *events, uint16_t node, weir_trace_slot *slot)
{
    if (!is_shown(slot) || slot->written || slot->has_outcome) /* its end follows */
        return;
    if (slot->state == WEIR_TRACE_RUNNING)
        put_wait_for_thread(events, node, slot, slot->since_ns);
    begin_state(events, node, slot, slot->since_ns);
}

static void change_held(weir_trace_events *events, uint32_t node, int64_t change, int64_t at_ns)
{
    events->nodes[node].held_bytes += change;
    if (change)
        events->held_ns = at_ns > events->last_ns ? at_ns : events->last_ns; /* the end of a step may be earlier */
}

/* Bytes in flight: results that the next stage has not taken. Written when time goes on: passing on a result is several
   records of one moment. */
static void put_held(weir_trace_events *events)
{
    char name[192];
    for (uint32_t i = 0; i < events->num_nodes; i++) {
        weir_trace_node *node = &events->nodes[i];
        if (node->held_bytes == node->told_bytes)
            continue;
        snprintf(name, sizeof name, "%s in flight", events->stage_names[i]);
        weir__trace_counter(events, events->held_ns, name, "bytes", (double)node->held_bytes);
        node->told_bytes = node->held_bytes;
    }
    events->held_ns = 0;
}

static void on_state(weir_trace_events *events, const weir_trace_record *record)
{
    weir_trace_slot *slot = find_slot(events, record);
    if (!slot || record->detail < 0 || record->detail >= WEIR_TRACE_STATES)
        return;
    bool taken = slot->known && slot->state == WEIR_TRACE_WAITING_THREAD && record->detail == WEIR_TRACE_RUNNING;
    int64_t ready_ns = taken && !slot->written ? slot->since_ns : record->time_ns;
    if (!taken || slot->written) /* otherwise it is written with the task that follows */
        end_state(events, record->node, slot, record->value, record->time_ns);
    bool holds = record->detail == WEIR_TRACE_WAITING_OUT || record->detail == WEIR_TRACE_WAITING_TURN;
    if (!holds)
        change_held(events, record->node, -slot->held_bytes, record->time_ns);
    *slot = (weir_trace_slot){
        .held_bytes = holds ? slot->held_bytes : 0,
        .known = true,
        .named = { slot->named[0], slot->named[1] },
        .state = record->detail,
        .since_ns = record->time_ns,
        .ready_ns = ready_ns,
        .number = record->number,
        .item = record->item,
    };
}

static void on_task(weir_trace_events *events, const weir_trace_record *record)
{
    weir_trace_slot *slot = find_slot(events, record);
    if (!slot)
        return;
    slot->has_outcome = true;
    slot->outcome = record->detail;
    slot->number = record->number;
    slot->item = record->item;
    slot->result_bytes = record->value;
    bool holds = record->detail == WEIR_OK || record->detail == WEIR_MORE;
    change_held(events, record->node, (holds ? record->value : 0) - slot->held_bytes, record->time_ns);
    slot->held_bytes = holds ? record->value : 0;
}

typedef void slot_function(weir_trace_events *events, uint16_t node, weir_trace_slot *slot, int64_t at_ns);

static void each_slot(weir_trace_events *events, slot_function *call, int64_t at_ns)
{
    for (uint32_t i = 0; i < events->num_nodes; i++) {
        weir_trace_node *node = &events->nodes[i];
        for (uint32_t j = 0; j < node->num_slots; j++)
            call(events, (uint16_t)i, &node->slots[j], at_ns);
        call(events, (uint16_t)i, &node->lifecycle, at_ns);
    }
}

static void end_slot(weir_trace_events *events, uint16_t node, weir_trace_slot *slot, int64_t at_ns)
{
    end_state(events, node, slot, 0, at_ns);
    change_held(events, node, -slot->held_bytes, at_ns);
    slot->held_bytes = 0;
    slot->known = false;
}

static void cut_slot(weir_trace_events *events, uint16_t node, weir_trace_slot *slot, int64_t at_ns)
{
    if (!slot->known)
        return;
    end_state(events, node, slot, 0, at_ns);
    slot->has_outcome = false;
    slot->since_ns = slot->ready_ns = at_ns > slot->since_ns ? at_ns : slot->since_ns;
}

static void write_open_slot(weir_trace_events *events, uint16_t node, weir_trace_slot *slot, int64_t at_ns)
{
    (void)at_ns;
    write_open_state(events, node, slot);
}

/* ---- the others ---------------------------------------------------------------------------------------------- */

static void put_queue_level(weir_trace_events *events, struct trace_queue *queue, int64_t at_ns, uint32_t num_items,
                            int64_t num_bytes)
{
    change_held(events, queue->producer, num_bytes - queue->num_bytes, at_ns);
    queue->num_items = num_items;
    queue->num_bytes = num_bytes;
    weir__trace_counter(events, at_ns, queue->name, "items", num_items);
}

/* The levels are not known from now on. */
static void end_levels(weir_trace_events *events, int64_t now_ns)
{
    for (uint32_t i = 0; i < events->num_queues; i++)
        if (events->queues[i].num_items)
            put_queue_level(events, &events->queues[i], now_ns, 0, 0);
    put_held(events);
}

static void on_level(weir_trace_events *events, const weir_trace_record *record)
{
    put_queue_level(events, &events->queues[record->node], record->time_ns, record->number, record->value);
}

static void on_deliver(weir_trace_events *events, const weir_trace_record *record)
{
    int64_t track = ((int64_t)events->num_nodes + 1) * TRACE_TRACK_NODES;
    if (!events->consumer_named)
        weir__trace_name_track(events, track, "consumer");
    events->consumer_named = true;
    events->epoch = weir_trace_epoch(record->item);
    weir__trace_event_begin(events, 'B', track, record->time_ns - record->value, "next", "consumer");
    PUT_LITERAL(events->out, ",\"args\":{");
    put_item(events, record->item);
    PUT_LITERAL(events->out, "}");
    weir__trace_event_end(events);
    put_item_flow(events, 'f', track, record->time_ns, record->item);
    weir__trace_event_begin(events, 'E', track, record->time_ns, NULL, NULL);
    weir__trace_event_end(events);
}

/* begin_ns of what goes on while recording is off. */
#define NOT_RECORDED INT64_MAX

static void write_mark(weir_trace_events *events, struct trace_mark *mark)
{
    bool steps = mark == &events->marks[0];
    int64_t track = steps ? TRACE_TRACK_STEPS : TRACE_TRACK_PHASES;
    if (!mark->name[0] || mark->begin_ns == NOT_RECORDED || mark->written)
        return;
    if (!mark->named)
        weir__trace_name_track(events, track, steps ? "steps" : "phases");
    mark->named = mark->written = true;
    weir__trace_event_begin(events, 'B', track, mark->begin_ns, mark->name, steps ? "step" : "phase");
    weir__trace_event_end(events);
}

/* The open step or phase ends. */
static void end_mark(weir_trace_events *events, struct trace_mark *mark, int64_t end_ns)
{
    write_mark(events, mark);
    if (!mark->written)
        return;
    end_ns = end_ns > mark->begin_ns ? end_ns : mark->begin_ns;
    weir__trace_event_begin(events, 'E', mark == &events->marks[0] ? TRACE_TRACK_STEPS : TRACE_TRACK_PHASES, end_ns,
                            NULL, NULL);
    weir__trace_event_end(events);
    mark->written = false;
    mark->begin_ns = end_ns;
}

static void begin_mark(weir_trace_events *events, struct trace_mark *mark, int64_t begin_ns, const char *format, ...)
{
    va_list arguments;
    end_mark(events, mark, begin_ns);
    mark->begin_ns = begin_ns;
    va_start(arguments, format);
    vsnprintf(mark->name, sizeof mark->name, format, arguments);
    va_end(arguments);
}

static void on_on(weir_trace_events *events, const weir_trace_record *record)
{
    each_slot(events, end_slot, events->last_ns);
    end_levels(events, events->last_ns);
    for (int i = 0; i < 2; i++)
        if (events->marks[i].begin_ns == NOT_RECORDED)
            events->marks[i].begin_ns = record->time_ns;
    if (record->value == 0)
        return;
    weir__trace_events_lost(events, events->last_ns, "records are lost from here", (uint64_t)record->value);
    put_instant(events, record->time_ns, "the record goes on", "event", "");
}

static void on_off(weir_trace_events *events, const weir_trace_record *record)
{
    each_slot(events, end_slot, record->time_ns);
    end_levels(events, record->time_ns);
    for (int i = 0; i < 2; i++) {
        end_mark(events, &events->marks[i], record->time_ns);
        events->marks[i].begin_ns = NOT_RECORDED;
    }
}

void weir__trace_events_add(weir_trace_events *events, const weir_trace_record *record)
{
    if (events->held_ns && record->kind < WEIR_TRACE_NAME && record->time_ns > events->held_ns)
        put_held(events);
    switch ((weir_trace_kind)record->kind) {
    case WEIR_TRACE_ON: on_on(events, record); break;
    case WEIR_TRACE_OFF: on_off(events, record); break;
    case WEIR_TRACE_STATE: on_state(events, record); break;
    case WEIR_TRACE_TASK: on_task(events, record); break;
    case WEIR_TRACE_PUT:
    case WEIR_TRACE_GET:
    case WEIR_TRACE_LEVEL: on_level(events, record); break;
    case WEIR_TRACE_LABEL: learn_label(events, record->item, (const char *)(intptr_t)record->value); break;
    case WEIR_TRACE_EPOCH:
        put_instant(events, record->time_ns, "end of an epoch", "epoch", events->queues[record->node].name);
        break;
    case WEIR_TRACE_DELIVER: on_deliver(events, record); break;
    case WEIR_TRACE_STEP:
        events->step = record->value;
        begin_mark(events, &events->marks[0], record->time_ns, "step %" PRId64, record->value);
        break;
    case WEIR_TRACE_PHASE:
        begin_mark(events, &events->marks[1], record->time_ns, "%s", (const char *)(intptr_t)record->value);
        break;
    default:
        if (record->kind > WEIR_TRACE_NAME && record->kind <= WEIR_TRACE_SPANS_OFF)
            weir__trace_user_add(events, record);
    }
    if (record->kind < WEIR_TRACE_NAME && record->time_ns > events->last_ns)
        events->last_ns = record->time_ns;
}

/* Wall time to the clock of the record. */
static int64_t from_unix(const weir_trace_events *events, int64_t unix_ns)
{
    return events->start_ns + unix_ns - events->start_unix_ns;
}

void weir__trace_events_failure(weir_trace_events *events, const weir_failure *failure)
{
    char detail[1024];
    snprintf(detail, sizeof detail, "%.100s: %s%s%s (%s)", failure->name, failure->label,
             failure->label[0] ? ": " : "", failure->message, weir_status_name(failure->status));
    put_instant(events, from_unix(events, failure->unix_ns), "! failed", "failure", detail);
}

void weir__trace_events_event(weir_trace_events *events, const weir_event *event)
{
    bool stalls = strcmp(event->name, "stall") == 0;
    put_instant(events, from_unix(events, event->unix_ns), stalls ? "! stall" : event->name,
                stalls ? "stall" : "event", event->detail);
}

void weir__trace_events_write_open(weir_trace_events *events)
{
    if (events->muted)
        return;
    each_slot(events, write_open_slot, 0);
    for (int i = 0; i < 2; i++)
        write_mark(events, &events->marks[i]);
}

void weir__trace_events_cut(weir_trace_events *events, int64_t at_ns)
{
    each_slot(events, cut_slot, at_ns);
    for (int i = 0; i < 2; i++)
        end_mark(events, &events->marks[i], at_ns);
    weir__trace_user_cut(events, at_ns);
}

/* ---- the run ------------------------------------------------------------------------------------------------- */

/* "0:1:decode[10]" → "decode" */
static char *short_name(const char *name)
{
    const char *colon = strrchr(name, ':');
    const char *begin = colon ? colon + 1 : name;
    return strndup(begin, strcspn(begin, "["));
}

static int copy_names(weir_trace_events *events, const weir_run_info *info)
{
    bool all = true;
    for (uint32_t i = 0; i < info->num_stages; i++) {
        events->stage_names[i] = strdup(info->stages[i].name);
        events->short_names[i] = short_name(info->stages[i].name);
        events->is_source[i] = strcmp(info->stages[i].kind, "source") == 0;
        all = all && events->stage_names[i] && events->short_names[i];
    }
    for (uint32_t i = 0; i < info->num_queues; i++) {
        events->queues[i].producer = info->queues[i].producer;
        all &= (events->queues[i].name = strdup(info->queues[i].name)) != NULL;
    }
    return all ? 0 : ENOMEM;
}

static void free_texts(char **texts, uint32_t num_texts)
{
    for (uint32_t i = 0; texts && i < num_texts; i++)
        free(texts[i]);
    free(texts);
}

int weir__trace_events_begin(weir_trace_events *events, const weir_run_info *info)
{
    events->start_ns = events->last_ns = info->start_ns;
    events->start_unix_ns = info->start_unix_ns;
    events->num_nodes = info->num_stages;
    events->num_queues = info->num_queues;
    events->stage_names = calloc(info->num_stages + 1, sizeof *events->stage_names);
    events->short_names = calloc(info->num_stages + 1, sizeof *events->short_names);
    events->queues = calloc(info->num_queues + 1, sizeof *events->queues);
    events->is_source = calloc(info->num_stages + 1, sizeof *events->is_source);
    events->nodes = calloc(info->num_stages + 1, sizeof *events->nodes);
    events->labels = calloc(NUM_LABELS, sizeof *events->labels);
    bool all = events->stage_names && events->short_names && events->queues && events->is_source && events->nodes &&
               events->labels;
    if (!all || copy_names(events, info) != 0)
        return ENOMEM;
    weir__trace_name_track(events, TRACE_TRACK_RUN, "failures, stalls, events");
    return 0;
}

void weir__trace_events_free(weir_trace_events *events)
{
    for (uint32_t i = 0; events->nodes && i < events->num_nodes; i++)
        free(events->nodes[i].slots);
    for (uint32_t i = 0; events->labels && i < NUM_LABELS; i++)
        free(events->labels[i].text);
    free_texts(events->stage_names, events->num_nodes);
    free_texts(events->short_names, events->num_nodes);
    for (uint32_t i = 0; events->queues && i < events->num_queues; i++)
        free(events->queues[i].name);
    free(events->queues);
    free(events->is_source);
    free(events->nodes);
    free(events->labels);
    free(events->user_threads);
    free(events->open);
    *events = (weir_trace_events){
        .out = events->out, .body = events->body, .head = events->head, .no_flows = events->no_flows
    };
}
