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
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
    FILE *file = fopen(path, "re");
    if (file && fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
    snprintf(track, sizeof track, "%s %u (spans)", name, tid);
    weir_trace_name_track(events, USER_TRACKS + (int64_t)tid, track);
}

/* The track of a thread; named when it first appears. */
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

/* Spans that need not be nested are asynchronous events, with an id each. */
static void put_overlapping(weir_trace_events *events, int64_t track, int64_t begin_ns, int64_t end_ns,
                            const char *name, const char *category)
{
    for (int i = 0; i < 2; i++) {
        weir_trace_event_begin(events, i == 0 ? 'b' : 'e', track, i == 0 ? begin_ns : end_ns, name, category);
        weir_trace_puts(events->out, ",\"id\":");
        weir_trace_put_int(events->out, (int64_t)events->num_overlaps);
        weir_trace_event_end(events);
    }
    events->num_overlaps++;
}

static void put_marker(weir_trace_events *events, int64_t track, const weir_trace_record *record, const char *name,
                       const char *category)
{
    static const char *const scopes[] = { "g", "p", "t", "t" };
    weir_trace_event_begin(events, 'i', track, record->time_ns, name, category);
    weir_trace_puts(events->out, ",\"s\":\"");
    weir_trace_puts(events->out, scopes[record->detail & 3]);
    weir_trace_puts(events->out, "\"");
    weir_trace_event_end(events);
}

void weir_trace_user_add(weir_trace_events *events, const weir_trace_record *record)
{
    const char *text = (const char *)(uintptr_t)record->item, *name = text + record->node + 1;
    char category[256];
    double value;
    if (record->kind == WEIR_TRACE_COUNTER) {
        memcpy(&value, &record->value, sizeof value);
        weir_trace_counter(events, record->time_ns, text, "value", value);
        return;
    }
    weir_text_escape(text, category, sizeof category);
    category[strcspn(category, "/\"\\")] = '\0'; /* it is written as it is */
    int64_t track = track_of(events, record->number);
    int64_t begin_ns = record->value > events->on_ns ? record->value : events->on_ns;
    if (record->kind == WEIR_TRACE_MARKER)
        put_marker(events, track, record, name, category);
    else if (record->detail)
        put_overlapping(events, track, begin_ns, record->time_ns, name, category);
    else {
        weir_trace_span_begin(events, track, begin_ns, record->time_ns, name, category);
        weir_trace_event_end(events);
    }
}
