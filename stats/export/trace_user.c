#include "trace_user.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/escape.h>
#include <weir/span.h>

#include "array.h"

/* The kernel's thread ids are below 2^22. */
enum { USER_TRACKS = 1000000000 };

/* The thread's name, or "thread"; it may have ended. */
static void name_thread(weir_trace_events *events, uint32_t tid)
{
    char path[48], name[32] = "thread", track[80];
    if (tid == 0) {
        weir_trace_name_track(events, USER_TRACKS, "frames");
        return;
    }
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
    FILE *file = fopen(path, "re");
    if (file && fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
    snprintf(track, sizeof track, "%s %u (spans)", name, tid);
    weir_trace_name_track(events, USER_TRACKS + (int64_t)tid, track);
}

/* The track of a thread, or (0) of frames; named when it first appears. */
static int64_t track_of(weir_trace_events *events, uint32_t tid)
{
    size_t at = 0;
    while (at < events->num_user_threads && events->user_threads[at] != tid)
        at++;
    if (at == events->num_user_threads) {
        uint32_t *grown = weir_array_grow(events->user_threads, at, sizeof *grown);
        if (grown) {
            events->user_threads = grown;
            events->user_threads[events->num_user_threads++] = tid;
            name_thread(events, tid);
        }
    }
    return USER_TRACKS + (int64_t)tid;
}

/* Spans that need not be nested are asynchronous events, with an id each. number: of a frame. */
static void put_overlapping(weir_trace_events *events, int64_t track, int64_t begin_ns, int64_t end_ns,
                            const char *name, const char *category, const uint32_t *number)
{
    for (int i = 0; i < 2; i++) {
        weir_trace_event_begin(events, i == 0 ? 'b' : 'e', track, i == 0 ? begin_ns : end_ns, name, category);
        weir_trace_puts(events->out, ",\"id\":");
        weir_trace_put_int(events->out, (int64_t)events->num_overlaps);
        if (number) {
            weir_trace_puts(events->out, ",\"args\":{\"number\":");
            weir_trace_put_int(events->out, *number);
            weir_trace_puts(events->out, "}");
        }
        weir_trace_event_end(events);
    }
    events->num_overlaps++;
}

static void put_marker(weir_trace_events *events, int64_t track, const weir_trace_record *record, const char *name,
                       const char *category)
{
    static const char *const scopes[] = { ",\"s\":\"g\"", ",\"s\":\"p\"", ",\"s\":\"t\"",
                                          ",\"s\":\"t\",\"args\":{\"scope\":\"task\"}" };
    weir_trace_event_begin(events, 'i', track, record->time_ns, name, category);
    weir_trace_puts(events->out, scopes[record->detail & 3]);
    weir_trace_event_end(events);
}

static void put_record(weir_trace_events *events, const weir_trace_record *record, int64_t end_ns)
{
    const char *text = (const char *)(uintptr_t)record->item, *name = text + record->node + 1;
    bool open = record->kind == WEIR_TRACE_OPEN;
    bool frame = record->kind == WEIR_TRACE_FRAME || (open && record->detail == 2);
    int64_t track = track_of(events, frame ? 0 : record->number);
    char category[256];
    weir_text_escape(text, category, sizeof category);
    category[strcspn(category, "/\"\\")] = '\0'; /* it is written as it is */
    if (record->kind == WEIR_TRACE_MARKER) {
        put_marker(events, track, record, name, category);
    } else if (record->detail) {
        put_overlapping(events, track, record->value, end_ns, name, category, frame ? &record->number : NULL);
    } else {
        weir_trace_span_begin(events, track, record->value, end_ns, name, category);
        weir_trace_puts(events->out, open ? ",\"args\":{\"open\":true}" : "");
        weir_trace_event_end(events);
    }
}

static void note_open(weir_trace_events *events, const weir_trace_record *record)
{
    if (!record->item) {
        events->num_open = 0;
        return;
    }
    weir_trace_record *grown = weir_array_grow(events->open, events->num_open, sizeof *grown);
    if (!grown)
        return;
    events->open = grown;
    events->open[events->num_open++] = *record;
}

static void forget_open(weir_trace_events *events, const weir_trace_record *record)
{
    for (size_t i = 0; i < events->num_open; i++) {
        const weir_trace_record *open = &events->open[i];
        if (open->item == record->item && open->number == record->number && open->value == record->value) {
            events->open[i] = events->open[--events->num_open];
            return;
        }
    }
}

void weir_trace_user_add(weir_trace_events *events, const weir_trace_record *record)
{
    double value;
    switch ((weir_trace_kind)record->kind) {
    case WEIR_TRACE_COUNTER:
        memcpy(&value, &record->value, sizeof value);
        weir_trace_counter(events, record->time_ns, (const char *)(uintptr_t)record->item, "value", value);
        break;
    case WEIR_TRACE_OPEN: note_open(events, record); break;
    default: forget_open(events, record); put_record(events, record, record->time_ns);
    }
}

void weir_trace_user_open(weir_trace_events *events, int64_t now_ns)
{
    for (size_t i = 0; i < events->num_open; i++)
        put_record(events, &events->open[i], now_ns);
}
