#include "stats/export/trace_events.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

enum { NUM_LABELS = 1 << 14 };

/* Tracks: a slot's is track_of_slot(). They are shown in this order; the kernel's thread ids are below 2^22. */
enum {
    TRACK_RUN = 1,
    TRACK_STEPS,
    TRACK_PHASES,
    TRACK_MODES,
    TRACK_WAITS = 70000, /* from a slot's tasks to its waits */
    TRACK_NODES = 140000,
    TRACK_USERS = 1000000000,
};

static const struct {
    const char *name;     /* of its spans; NULL = the stage's */
    const char *category; /* the metric that the time counts in */
    bool has_item, is_wait;
} states[WEIR_TRACE_STATES] = {
    [WEIR_TRACE_WAITING_IN] = { "waits for input", "wait_in", false, true },
    [WEIR_TRACE_WAITING_THREAD] = { "waits for a thread", "wait_thread", true, true },
    [WEIR_TRACE_RUNNING] = { NULL, "busy", true, false },
    [WEIR_TRACE_PENDING] = { "pending", "busy", true, false },
    [WEIR_TRACE_WAITING_TURN] = { "waits for its turn", "wait_turn", true, true },
    [WEIR_TRACE_WAITING_OUT] = { "waits for room", "wait_out", true, true },
    [WEIR_TRACE_RETIRED] = { "retired", "retired", false, true },
    [WEIR_TRACE_ENDED] = { "ended", "ended", false, true },
};

/* ---- events -------------------------------------------------------------------------------------------------- */

/* The caller may add members, then calls end_event(). name: NULL = neither name nor category */
static weir_trace_text *begin_event(weir_trace_events *events, char phase, int64_t track, int64_t at_ns,
                                    const char *name, const char *category)
{
    weir_trace_text *out = events->body;
    events->event_start = out->length;
    weir__trace_putf(out, "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%u", (char[]){ phase, '\0' }, events->pid,
                     track, at_ns - events->base_ns);
    if (name)
        weir__trace_putf(out, ",\"cat\":%j,\"name\":%j", category, name);
    return out;
}

static void end_event(weir_trace_events *events)
{
    weir_trace_text *out = events->body;
    weir__trace_puts(out, "},\n");
    events->num_lost += out->no_memory;
    if (out->no_memory || events->muted)
        out->length = events->event_start;
    out->no_memory = false;
}

static void put_bare_event(weir_trace_events *events, char phase, int64_t track, int64_t at_ns, const char *name,
                           const char *category)
{
    begin_event(events, phase, track, at_ns, name, category);
    end_event(events);
}

static void put_whole_span(weir_trace_events *events, int64_t track, int64_t begin_ns, int64_t end_ns,
                           const char *name, const char *category)
{
    put_bare_event(events, 'B', track, begin_ns, name, category);
    put_bare_event(events, 'E', track, end_ns, NULL, NULL);
}

/* The name of a track, and its place among the others; once for each track. */
static void name_track(weir_trace_events *events, int64_t track, const char *name)
{
    weir_trace_text *head = events->head, *body = events->body;
    size_t start = head->length;
    weir__trace_putf(head, WEIR_TRACE_METADATA "{\"name\":%j}},\n", events->pid, track, "thread_name", name);
    weir__trace_putf(head, WEIR_TRACE_METADATA "{\"sort_index\":%d}},\n", events->pid, track, "thread_sort_index",
                     track);
    if (head->no_memory)
        head->length = start;
    else
        weir__trace_put(body, head->data + start, head->length - start);
    events->num_lost += head->no_memory || body->no_memory;
    head->no_memory = body->no_memory = false;
}

/* What a person looks for: a mark in the first track. */
static void put_instant(weir_trace_events *events, int64_t at_ns, const char *name, const char *category,
                        const char *detail)
{
    weir_trace_text *out = begin_event(events, 'i', TRACK_RUN, at_ns, name, category);
    weir__trace_putf(out, ",\"s\":\"t\",\"args\":{\"detail\":%j}", detail);
    end_event(events);
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

/* NULL = not known. */
static const char *find_label(weir_trace_events *events, uint64_t item)
{
    const struct trace_label *label = label_place(events, item);
    return label->item == item ? label->text : NULL;
}

/* task: the name of the span without its item; NULL = the span has it. */
static void put_item(weir_trace_events *events, uint64_t item, const char *task)
{
    weir_trace_text *out = events->body;
    const char *label = find_label(events, item);
    weir__trace_putf(out, ",\"args\":{\"seq\":%d", (int64_t)weir_trace_seq(item));
    if (task)
        weir__trace_putf(out, ",\"task\":%j", task);
    if (weir_trace_epoch(item))
        weir__trace_putf(out, ",\"epoch\":%d", (int64_t)weir_trace_epoch(item));
    if (weir_trace_source(item))
        weir__trace_putf(out, ",\"source\":%d", (int64_t)weir_trace_source(item));
    if (label)
        weir__trace_putf(out, ",\"label\":%j", label);
    weir__trace_puts(out, "}");
}

/* An arrow begins ('s'), goes on ('t') or ends ('f') in the span at this time. */
static void put_item_flow(weir_trace_events *events, char phase, int64_t track, int64_t at_ns, uint64_t item)
{
    char id[32];
    if (events->no_flows)
        return;
    uint64_t key[2] = { (uint64_t)events->pid, item };
    snprintf(id, sizeof id, "0x%016llx", (unsigned long long)weir__trace_hash(key, sizeof key, 0));
    weir__trace_putf(begin_event(events, phase, track, at_ns, "item", "item"), ",\"id\":\"%s\"%s", id,
                     phase == 'f' ? ",\"bp\":\"e\"" : "");
    end_event(events);
}

/* ---- slots --------------------------------------------------------------------------------------------------- */

static weir_trace_slot *find_slot(weir_trace_events *events, const weir_trace_record *record)
{
    struct trace_node *node = &events->nodes[record->node];
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

/* The track of the slot's tasks, or of its waits; hooks have one track for both. The track is named when it is first
   used. */
static int64_t track_of_slot(weir_trace_events *events, const struct trace_node *node, weir_trace_slot *slot,
                             bool waits)
{
    char name[256];
    bool is_hooks = slot->number & WEIR_TRACE_LIFECYCLE;
    uint32_t number = slot->number & WEIR_TRACE_SLOT;
    waits &= !is_hooks;
    int64_t track = (node - events->nodes + 1) * (int64_t)TRACK_NODES + (waits ? TRACK_WAITS : 0) +
                    (is_hooks ? WEIR_TRACE_SLOT + 2 : number + 1);
    if (slot->named[waits])
        return track;
    slot->named[waits] = true;
    if (!is_hooks && (strchr(node->name, '[') || number > 0))
        snprintf(name, sizeof name, "%s #%u%s", node->name, (unsigned)number, waits ? " waits" : "");
    else
        snprintf(name, sizeof name, "%s%s", node->name, is_hooks ? " hooks" : waits ? " waits" : "");
    name_track(events, track, name);
    return track;
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

static const char *name_of_state(const struct trace_node *node, const weir_trace_slot *slot)
{
    if (slot->has_outcome && slot->outcome < 0)
        return "! failed";
    if (node->is_source && slot->state == WEIR_TRACE_WAITING_IN) /* it has not begun, or has ended */
        return "idle";
    return states[slot->state].name ? states[slot->state].name : node->short_name;
}

/* "clip.mp4" of "../videos/clip.mp4" and of "https://host/clip.mp4?size=2" */
static void copy_base_name(const char *label, char *name, size_t size)
{
    size_t length = strcspn(label, "?"), start = length;
    while (start > 0 && label[start - 1] != '/')
        start--;
    if (start == length) /* nothing is behind the last slash */
        start = 0, length = strlen(label);
    snprintf(name, size, "%.*s", (int)(length - start), label + start);
}

/* A task on an item, whose track has the name of the stage; false: an end, a flush, or of a source that is not known yet. */
static bool is_about_item(const struct trace_node *node, const weir_trace_slot *slot)
{
    bool is_end = slot->has_outcome && (slot->outcome == WEIR_EOF || slot->outcome == WEIR_EPOCH);
    return slot->state == WEIR_TRACE_RUNNING && !(slot->number & (WEIR_TRACE_LIFECYCLE | WEIR_TRACE_FLUSH)) &&
           !is_end && !(node->is_source && !slot->has_outcome);
}

/* A task is named by its item, so that a person sees the file, and no part is inside a span of its own name. */
static const char *name_of_task(weir_trace_events *events, const weir_trace_slot *slot, char *name, size_t size)
{
    const char *label = find_label(events, slot->item);
    size_t length = slot->has_outcome && slot->outcome < 0 ? (size_t)snprintf(name, size, "! failed: ") : (size_t)0;
    if (label && *label)
        copy_base_name(label, name + length, size - length);
    else
        snprintf(name + length, size - length, "item %" PRIu64, weir_trace_seq(slot->item));
    return name;
}

static void begin_state(weir_trace_events *events, struct trace_node *node, weir_trace_slot *slot, int64_t at_ns)
{
    char text[256];
    bool is_hooks = slot->number & WEIR_TRACE_LIFECYCLE, has_name_of_item = is_about_item(node, slot);
    const char *name = name_of_state(node, slot);
    begin_event(events, 'B', track_of_slot(events, node, slot, states[slot->state].is_wait), at_ns,
                has_name_of_item ? name_of_task(events, slot, text, sizeof text) : name,
                is_hooks ? "hooks" : states[slot->state].category);
    if (states[slot->state].has_item && !is_hooks)
        put_item(events, slot->item, has_name_of_item ? name : NULL);
    end_event(events);
    slot->written = true;
}

static void put_end(weir_trace_events *events, const struct trace_node *node, weir_trace_slot *slot, int64_t end_ns)
{
    weir_trace_text *out =
        begin_event(events, 'E', track_of_slot(events, node, slot, states[slot->state].is_wait), end_ns, NULL, NULL);
    if (slot->has_outcome) {
        weir__trace_putf(out, ",\"args\":{\"outcome\":%j", outcome_name(slot));
        if (slot->result_bytes)
            weir__trace_putf(out, ",\"bytes\":%d", slot->result_bytes);
        weir__trace_puts(out, slot->number & WEIR_TRACE_FLUSH ? ",\"flush\":true}" : "}");
    }
    end_event(events);
    slot->written = false;
}

static void put_flow_of_task(weir_trace_events *events, const struct trace_node *node, weir_trace_slot *slot,
                             int64_t begin_ns)
{
    if (!slot->has_outcome || slot->outcome == WEIR_EOF || slot->outcome == WEIR_EPOCH)
        return;
    bool goes_on = slot->outcome == WEIR_OK || slot->outcome == WEIR_MORE;
    bool begins = node->is_source || slot->number & WEIR_TRACE_FLUSH;
    char phase = begins ? 's' : 't';
    if (goes_on || !begins)
        put_item_flow(events, goes_on ? phase : 'f', track_of_slot(events, node, slot, false), begin_ns, slot->item);
}

/* Each with its total, one after the other: a decoder goes back and forth between them. */
static void put_parts(weir_trace_events *events, const struct trace_node *node, weir_trace_slot *slot,
                      int64_t begin_ns, int64_t end_ns)
{
    for (uint32_t i = 0; i < slot->num_parts; i++) {
        int64_t part_ns = slot->parts[i].ns < end_ns - begin_ns ? slot->parts[i].ns : end_ns - begin_ns;
        put_whole_span(events, track_of_slot(events, node, slot, false), begin_ns, begin_ns + part_ns,
                       slot->parts[i].name, "part");
        begin_ns += part_ns;
    }
}

/* Writes the wait for a thread, up to begin_ns, of a task that has just begun. */
static void put_wait_for_thread(weir_trace_events *events, struct trace_node *node, weir_trace_slot *slot,
                                int64_t begin_ns)
{
    if (begin_ns <= slot->ready_ns)
        return;
    weir_trace_slot ready = *slot;
    ready.state = WEIR_TRACE_WAITING_THREAD;
    ready.has_outcome = false;
    begin_state(events, node, &ready, slot->ready_ns);
    put_end(events, node, &ready, begin_ns);
    slot->named[1] = ready.named[1];
}

/* Inside a task whose beginning was written before its end was known: it failed. */
static void put_failed(weir_trace_events *events, struct trace_node *node, const weir_trace_slot *slot,
                       int64_t begin_ns, int64_t end_ns)
{
    weir_trace_slot failed = *slot;
    begin_state(events, node, &failed, begin_ns);
    failed.has_outcome = false; /* the task tells it */
    put_end(events, node, &failed, end_ns);
}

/* began_ns: when the task really began, if that is later than a thread took it. */
static void end_task(weir_trace_events *events, struct trace_node *node, weir_trace_slot *slot, int64_t began_ns,
                     int64_t end_ns)
{
    int64_t begin_ns = began_ns > end_ns ? end_ns : began_ns > slot->since_ns ? began_ns : slot->since_ns;
    if (slot->written) {
        if (begin_ns > slot->since_ns)
            put_whole_span(events, track_of_slot(events, node, slot, false), slot->since_ns, begin_ns,
                           states[WEIR_TRACE_WAITING_THREAD].name, states[WEIR_TRACE_WAITING_THREAD].category);
        if (slot->has_outcome && slot->outcome < 0)
            put_failed(events, node, slot, begin_ns, end_ns);
    } else {
        put_wait_for_thread(events, node, slot, begin_ns);
        if (end_ns > begin_ns || slot->has_outcome)
            begin_state(events, node, slot, begin_ns);
    }
    put_flow_of_task(events, node, slot, begin_ns);
    put_parts(events, node, slot, begin_ns, end_ns);
    if (slot->written)
        put_end(events, node, slot, end_ns);
}

static bool is_shown(const weir_trace_slot *slot)
{
    return slot->known && slot->state != WEIR_TRACE_RETIRED &&
           !(slot->number & WEIR_TRACE_LIFECYCLE && slot->state == WEIR_TRACE_WAITING_IN);
}

static void end_state(weir_trace_events *events, struct trace_node *node, weir_trace_slot *slot, int64_t began_ns,
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

static void on_state(weir_trace_events *events, const weir_trace_record *record)
{
    weir_trace_slot *slot = find_slot(events, record);
    if (!slot || record->detail < 0 || record->detail >= WEIR_TRACE_STATES)
        return;
    bool is_taken = slot->known && slot->state == WEIR_TRACE_WAITING_THREAD && record->detail == WEIR_TRACE_RUNNING &&
                    !slot->written;
    int64_t ready_ns = is_taken ? slot->since_ns : record->time_ns;
    if (!is_taken) /* otherwise it is written with the task that follows */
        end_state(events, &events->nodes[record->node], slot, record->value, record->time_ns);
    *slot = (weir_trace_slot){
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
}

static void on_part(weir_trace_events *events, const weir_trace_record *record)
{
    weir_trace_slot *slot = find_slot(events, record);
    if (!slot || slot->num_parts == sizeof slot->parts / sizeof slot->parts[0])
        return;
    slot->parts[slot->num_parts].name = (const char *)(uintptr_t)record->item;
    slot->parts[slot->num_parts++].ns = record->value;
}

typedef void slot_function(weir_trace_events *events, struct trace_node *node, weir_trace_slot *slot, int64_t at_ns);

static void each_slot(weir_trace_events *events, slot_function *call, int64_t at_ns)
{
    for (struct trace_node *node = events->nodes; node && node < events->nodes + events->num_nodes; node++) {
        for (uint32_t i = 0; i < node->num_slots; i++)
            call(events, node, &node->slots[i], at_ns);
        call(events, node, &node->lifecycle, at_ns);
    }
}

/* The state of the slot ends here, and goes on from here as another span. */
static void cut_slot(weir_trace_events *events, struct trace_node *node, weir_trace_slot *slot, int64_t at_ns)
{
    if (!slot->known)
        return;
    end_state(events, node, slot, 0, at_ns);
    slot->has_outcome = false;
    slot->num_parts = 0;
    slot->since_ns = slot->ready_ns = at_ns > slot->since_ns ? at_ns : slot->since_ns;
}

static void forget_slot(weir_trace_events *events, struct trace_node *node, weir_trace_slot *slot, int64_t at_ns)
{
    cut_slot(events, node, slot, at_ns);
    slot->known = false;
}

static void write_open_slot(weir_trace_events *events, struct trace_node *node, weir_trace_slot *slot, int64_t at_ns)
{
    (void)at_ns;
    if (!is_shown(slot) || slot->written || slot->has_outcome) /* its end follows */
        return;
    if (slot->state == WEIR_TRACE_RUNNING)
        put_wait_for_thread(events, node, slot, slot->since_ns);
    begin_state(events, node, slot, slot->since_ns);
}

/* ---- queues, consumer, steps, phases --------------------------------------------------------------------------- */

static void put_queue_level(weir_trace_events *events, struct trace_queue *queue, int64_t at_ns, uint32_t num_items,
                            int64_t num_bytes)
{
    weir_trace_text *out = begin_event(events, 'C', 0, at_ns, queue->name, "counter");
    weir__trace_putf(out, ",\"args\":{\"items\":%d", (int64_t)num_items);
    if ((queue->has_bytes |= num_bytes != 0))
        weir__trace_putf(out, ",\"bytes\":%d", num_bytes);
    weir__trace_puts(out, "}");
    end_event(events);
    queue->has_items = num_items > 0;
}

static void on_deliver(weir_trace_events *events, const weir_trace_record *record)
{
    int64_t track = ((int64_t)events->num_nodes + 1) * TRACK_NODES;
    if (!events->consumer_named)
        name_track(events, track, "consumer waits");
    events->consumer_named = true;
    events->epoch = weir_trace_epoch(record->item);
    begin_event(events, 'B', track, record->time_ns - record->value, "waits for an item", "consumer");
    put_item(events, record->item, NULL);
    end_event(events);
    put_item_flow(events, 'f', track, record->time_ns, record->item);
    put_bare_event(events, 'E', track, record->time_ns, NULL, NULL);
}

static void write_mark(weir_trace_events *events, weir_trace_mark *mark)
{
    static const char *const tracks[] = { "steps", "phases", "modes" }, *const categories[] = { "step", "phase",
                                                                                                "mode" };
    ptrdiff_t axis = mark - events->marks;
    if (!mark->name[0] || mark->written)
        return;
    if (!mark->named)
        name_track(events, TRACK_STEPS + axis, tracks[axis]);
    mark->named = mark->written = true;
    put_bare_event(events, 'B', TRACK_STEPS + axis, mark->since_ns, mark->name, categories[axis]);
}

/* What is open ends; it goes on in the next file. */
static void cut_mark(weir_trace_events *events, weir_trace_mark *mark, int64_t at_ns)
{
    write_mark(events, mark);
    at_ns = at_ns > mark->since_ns ? at_ns : mark->since_ns;
    if (mark->written)
        put_bare_event(events, 'E', TRACK_STEPS + (mark - events->marks), at_ns, NULL, NULL);
    mark->written = false;
    mark->since_ns = at_ns;
}

/* name: "" = none begins */
static void change_mark(weir_trace_events *events, weir_trace_mark *mark, int64_t at_ns, const char *name)
{
    cut_mark(events, mark, at_ns);
    snprintf(mark->name, sizeof mark->name, "%s", name);
}

static void trace_step(weir_trace_events *events, const weir_trace_record *record)
{
    char name[32] = "";
    if (record->value != WEIR_NO_STEP) {
        snprintf(name, sizeof name, "step %" PRId64, record->value);
        events->step = record->value;
    }
    change_mark(events, &events->marks[0], record->time_ns, name);
}

/* ---- user code --------------------------------------------------------------------------------------------------- */

static void name_thread(weir_trace_events *events, uint32_t tid)
{
    char path[48], name[32] = "thread", track[80] = "frames";
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
    FILE *file = tid ? fopen(path, "re") : NULL; /* it may have ended */
    if (file && fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
    if (tid)
        snprintf(track, sizeof track, "%s %u (spans)", name, tid);
    name_track(events, TRACK_USERS + (int64_t)tid, track);
}

/* NULL = out of memory. */
static struct trace_thread *find_thread(weir_trace_events *events, uint32_t tid)
{
    for (size_t i = 0; i < events->num_threads; i++)
        if (events->threads[i].tid == tid)
            return &events->threads[i];
    struct trace_thread *grown = weir__array_grow(events->threads, events->num_threads, sizeof *grown);
    events->num_lost += !grown;
    if (!grown)
        return NULL;
    events->threads = grown;
    name_thread(events, tid);
    grown += events->num_threads++;
    *grown = (struct trace_thread){ .tid = tid };
    return grown;
}

/* Ends the spans that are inside `level` others or more, also those whose ends were lost. */
static void end_user_spans(weir_trace_events *events, struct trace_thread *thread, int64_t at_ns, int64_t level)
{
    for (; thread->depth > thread->floor && thread->depth > level; thread->depth--)
        put_bare_event(events, 'E', TRACK_USERS + (int64_t)thread->tid, at_ns, NULL, NULL);
}

static void on_span(weir_trace_events *events, const weir_trace_record *record)
{
    const char *text = (const char *)(uintptr_t)record->item;
    bool is_begin = record->kind == WEIR_TRACE_SPAN_BEGIN, is_frame = record->detail == 2;
    struct trace_thread *thread = find_thread(events, is_frame ? 0 : record->number);
    char category[256], phase = is_begin ? 'b' : 'e';
    if (!thread)
        return;
    snprintf(category, sizeof category, "%.*s", (int)record->node, text);
    if (!record->detail) {
        end_user_spans(events, thread, record->time_ns, record->value);
        if (!is_begin)
            return;
        thread->floor = thread->depth > thread->floor ? thread->floor : record->value;
        thread->depth = record->value + 1;
        phase = 'B';
    }
    weir_trace_text *out = begin_event(events, phase, TRACK_USERS + (int64_t)thread->tid, record->time_ns,
                                       text + record->node + 1, category);
    if (record->detail)
        weir__trace_putf(out, ",\"id\":%d", record->value);
    if (is_frame && is_begin)
        weir__trace_putf(out, ",\"args\":{\"number\":%d}", (int64_t)record->number);
    end_event(events);
}

static void on_marker(weir_trace_events *events, const weir_trace_record *record)
{
    static const char *const scopes[] = { ",\"s\":\"g\"", ",\"s\":\"p\"", ",\"s\":\"t\"",
                                          ",\"s\":\"t\",\"args\":{\"scope\":\"task\"}" };
    const char *text = (const char *)(uintptr_t)record->item;
    char category[256];
    if (!find_thread(events, record->number))
        return;
    snprintf(category, sizeof category, "%.*s", (int)record->node, text);
    weir_trace_text *out = begin_event(events, 'i', TRACK_USERS + (int64_t)record->number, record->time_ns,
                                       text + record->node + 1, category);
    weir__trace_puts(out, scopes[record->detail & 3]);
    end_event(events);
}

/* NULL = out of memory. */
static struct trace_counter *find_counter(weir_trace_events *events, const char *text, size_t text_bytes)
{
    for (struct trace_counter *one = events->counters; one && one < events->counters + events->num_counters; one++)
        if (one->text_bytes == text_bytes && memcmp(one->text, text, text_bytes) == 0)
            return one;
    struct trace_counter *grown = weir__array_grow(events->counters, events->num_counters, sizeof *grown);
    events->num_lost += !grown;
    if (!grown)
        return NULL;
    events->counters = grown;
    grown += events->num_counters++;
    *grown = (struct trace_counter){ .text = text, .text_bytes = text_bytes };
    return grown;
}

/* False = out of memory. */
static bool keep_value(weir_trace_events *events, struct trace_counter *counter, const char *name, double value)
{
    size_t i = 0;
    while (i < counter->num_values && strcmp(counter->values[i].name, name) != 0)
        i++;
    if (i == counter->num_values) {
        struct trace_value *grown = weir__array_grow(counter->values, i, sizeof *grown);
        events->num_lost += !grown;
        if (!grown)
            return false;
        counter->values = grown;
        counter->num_values++;
    }
    counter->values[i] = (struct trace_value){ name, value };
    return true;
}

/* All values of a counter are one event, and so one chart: viewers take a value that an event lacks as 0. They show a value
   that is not a number as 0, or reject the file. */
static void on_counter(weir_trace_events *events, const weir_trace_record *record)
{
    const char *text = (const char *)(uintptr_t)record->item;
    const size_t text_bytes = record->number ? record->number : strlen(text);
    char category[256], name[512];
    double value;
    memcpy(&value, &record->value, sizeof value);
    if (!isfinite(value))
        put_instant(events, record->time_ns, text, "event", isnan(value) ? "not a number" : "infinite");
    struct trace_counter *counter = find_counter(events, text, text_bytes);
    if (!counter || !keep_value(events, counter, record->number ? text + text_bytes + 1 : "value", value) ||
        !isfinite(value))
        return;
    snprintf(category, sizeof category, "%.*s", (int)record->node, text);
    snprintf(name, sizeof name, "%.*s", (int)text_bytes, text);
    weir_trace_text *out = begin_event(events, 'C', 0, record->time_ns, name, category);
    const char *before = ",\"args\":{";
    for (size_t i = 0; i < counter->num_values; i++) {
        if (!isfinite(counter->values[i].value))
            continue;
        weir__trace_puts(out, before);
        weir__trace_putf(out, "%j:%f", counter->values[i].name, counter->values[i].value);
        before = ",";
    }
    weir__trace_puts(out, "}");
    end_event(events);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Nothing is known from now on. */
static void end_all(weir_trace_events *events, int64_t at_ns)
{
    each_slot(events, forget_slot, at_ns);
    for (uint32_t i = 0; i < events->num_queues; i++)
        if (events->queues[i].has_items)
            put_queue_level(events, &events->queues[i], at_ns, 0, 0);
}

static void on_on(weir_trace_events *events, const weir_trace_record *record)
{
    end_all(events, events->last_ns);
    if (record->value == 0)
        return;
    weir__trace_events_lost(events, events->last_ns, "records are lost from here", (uint64_t)record->value);
    put_instant(events, record->time_ns, "the record goes on", "event", "");
}

static void on_off(weir_trace_events *events, const weir_trace_record *record)
{
    end_all(events, record->time_ns);
    for (int i = 0; i < TRACE_NUM_AXES; i++)
        change_mark(events, &events->marks[i], record->time_ns, "");
    for (size_t i = 0; i < events->num_threads; i++)
        end_user_spans(events, &events->threads[i], record->time_ns, 0);
}

void weir__trace_events_add(weir_trace_events *events, const weir_trace_record *record)
{
    const char *text = (const char *)(intptr_t)record->value;
    switch ((weir_trace_kind)record->kind) {
    case WEIR_TRACE_ON: on_on(events, record); break;
    case WEIR_TRACE_OFF: on_off(events, record); break;
    case WEIR_TRACE_STATE: on_state(events, record); break;
    case WEIR_TRACE_TASK: on_task(events, record); break;
    case WEIR_TRACE_PART: on_part(events, record); break;
    case WEIR_TRACE_PUT:
    case WEIR_TRACE_GET:
    case WEIR_TRACE_LEVEL:
        put_queue_level(events, &events->queues[record->node], record->time_ns, record->number, record->value);
        break;
    case WEIR_TRACE_LABEL: learn_label(events, record->item, text); break;
    case WEIR_TRACE_EPOCH:
        put_instant(events, record->time_ns, "end of an epoch", "epoch", events->queues[record->node].name);
        break;
    case WEIR_TRACE_DELIVER: on_deliver(events, record); break;
    case WEIR_TRACE_STEP: trace_step(events, record); break;
    case WEIR_TRACE_PHASE: change_mark(events, &events->marks[1], record->time_ns, text); break;
    case WEIR_TRACE_MODE: change_mark(events, &events->marks[2], record->time_ns, text); break;
    case WEIR_TRACE_SPAN_BEGIN:
    case WEIR_TRACE_SPAN_END: on_span(events, record); break;
    case WEIR_TRACE_MARKER: on_marker(events, record); break;
    case WEIR_TRACE_COUNTER: on_counter(events, record); break;
    default: break;
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
    for (int i = 0; i < TRACE_NUM_AXES; i++)
        write_mark(events, &events->marks[i]);
}

void weir__trace_events_cut(weir_trace_events *events, int64_t at_ns)
{
    each_slot(events, cut_slot, at_ns);
    for (int i = 0; i < TRACE_NUM_AXES; i++)
        cut_mark(events, &events->marks[i], at_ns);
}

/* ---- the run ------------------------------------------------------------------------------------------------- */

/* "0:1:decode[10]" → "decode" */
static char *short_name(const char *name)
{
    const char *colon = strrchr(name, ':');
    const char *begin = colon ? colon + 1 : name;
    return strndup(begin, strcspn(begin, "["));
}

int weir__trace_events_begin(weir_trace_events *events, const weir_run_info *info)
{
    events->start_ns = events->last_ns = info->start_ns;
    events->start_unix_ns = info->start_unix_ns;
    events->nodes = calloc(info->num_stages + 1, sizeof *events->nodes);
    events->queues = calloc(info->num_queues + 1, sizeof *events->queues);
    events->labels = calloc(NUM_LABELS, sizeof *events->labels);
    bool is_complete = events->nodes && events->queues && events->labels;
    events->num_nodes = is_complete ? info->num_stages : 0;
    events->num_queues = is_complete ? info->num_queues : 0;
    for (uint32_t i = 0; i < events->num_nodes; i++) {
        struct trace_node *node = &events->nodes[i];
        node->is_source = strcmp(info->stages[i].kind, "source") == 0;
        is_complete &= (node->name = strdup(info->stages[i].name)) != NULL;
        is_complete &= (node->short_name = short_name(info->stages[i].name)) != NULL;
    }
    for (uint32_t i = 0; i < events->num_queues; i++)
        is_complete &= (events->queues[i].name = strdup(info->queues[i].name)) != NULL;
    if (is_complete)
        name_track(events, TRACK_RUN, "failures, stalls, events");
    return is_complete ? 0 : ENOMEM;
}

void weir__trace_events_free(weir_trace_events *events)
{
    for (uint32_t i = 0; i < events->num_nodes; i++) {
        free(events->nodes[i].slots);
        free(events->nodes[i].name);
        free(events->nodes[i].short_name);
    }
    for (uint32_t i = 0; i < events->num_queues; i++)
        free(events->queues[i].name);
    for (uint32_t i = 0; events->labels && i < NUM_LABELS; i++)
        free(events->labels[i].text);
    free(events->nodes);
    free(events->queues);
    free(events->labels);
    free(events->threads);
    for (size_t i = 0; i < events->num_counters; i++)
        free(events->counters[i].values);
    free(events->counters);
    *events = (weir_trace_events){ .body = events->body, .head = events->head, .no_flows = events->no_flows };
}
