#include "trace_user.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/span.h>

#include "array.h"

/* The kernel's thread ids are below 2^22. */
enum { USER_TRACKS = 1000000000 };

/* The thread's name, or "thread"; it may have ended. */
static void name_thread(weir_trace_events *events, uint32_t tid)
{
    char path[48], name[32] = "thread", track[80];
    if (tid == 0) {
        weir__trace_name_track(events, USER_TRACKS, "frames");
        return;
    }
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
    FILE *file = fopen(path, "re");
    if (file && fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
    snprintf(track, sizeof track, "%s %u (spans)", name, tid);
    weir__trace_name_track(events, USER_TRACKS + (int64_t)tid, track);
}

/* The track of a thread, or (0) of frames; named when it first appears. */
static int64_t track_of(weir_trace_events *events, uint32_t tid)
{
    size_t at = 0;
    while (at < events->num_user_threads && events->user_threads[at] != tid)
        at++;
    if (at == events->num_user_threads) {
        uint32_t *grown = weir__array_grow(events->user_threads, at, sizeof *grown);
        if (grown) {
            events->user_threads = grown;
            events->user_threads[events->num_user_threads++] = tid;
            name_thread(events, tid);
        }
    }
    return USER_TRACKS + (int64_t)tid;
}

/* -- spans. A thread's are nested: detail is 0, and value is the number of spans around it. */

static void put_user_event(weir_trace_events *events, char phase, const weir_trace_record *record, int64_t at_ns)
{
    const char *text = (const char *)(uintptr_t)record->item;
    char category[256];
    bool is_frame = record->detail == 2;
    int64_t track = track_of(events, is_frame ? 0 : record->number);
    snprintf(category, sizeof category, "%.*s", (int)record->node, text);
    weir__trace_event_begin(events, phase, track, at_ns, phase == 'E' ? NULL : text + record->node + 1, category);
    if (record->detail) {
        weir__trace_puts(events->out, ",\"id\":");
        weir__trace_put_int(events->out, record->value);
    }
    if (is_frame && phase == 'b') {
        weir__trace_puts(events->out, ",\"args\":{\"number\":");
        weir__trace_put_int(events->out, record->number);
        weir__trace_puts(events->out, "}");
    }
    weir__trace_event_end(events);
}

static void write_begin(weir_trace_events *events, struct trace_user_span *span)
{
    put_user_event(events, span->record.detail ? 'b' : 'B', &span->record, span->record.time_ns);
    span->written = !events->muted;
}

static void write_end(weir_trace_events *events, struct trace_user_span *span, int64_t at_ns)
{
    span->record.time_ns = at_ns > span->record.time_ns ? at_ns : span->record.time_ns;
    if (span->written)
        put_user_event(events, span->record.detail ? 'e' : 'E', &span->record, span->record.time_ns);
    span->written = false;
}

/* Ends the spans that `record` ends: of a thread with those inside, which remain if their ends were lost. */
static void end_user_spans(weir_trace_events *events, const weir_trace_record *record)
{
    bool all = record->kind == WEIR_TRACE_SPANS_OFF;
    for (size_t i = events->num_open; i-- > 0;) {
        struct trace_user_span *span = &events->open[i];
        bool nested = !span->record.detail;
        bool ends = all ? !nested
                    : record->detail
                        ? !nested && span->record.value == record->value
                        : nested && span->record.number == record->number && span->record.value >= record->value;
        if (!ends)
            continue;
        write_end(events, span, record->time_ns);
        memmove(span, span + 1, (--events->num_open - i) * sizeof *span);
        if (record->detail || (nested && !all && span->record.value == record->value))
            return;
    }
}

static void begin_user_span(weir_trace_events *events, const weir_trace_record *record)
{
    if (!record->detail)
        end_user_spans(events, record);
    struct trace_user_span *grown = weir__array_grow(events->open, events->num_open, sizeof *grown);
    events->num_lost += !grown;
    if (!grown)
        return;
    events->open = grown;
    events->open[events->num_open] = (struct trace_user_span){ .record = *record };
    write_begin(events, &events->open[events->num_open++]);
}

void weir__trace_user_cut(weir_trace_events *events, int64_t at_ns)
{
    for (size_t i = events->num_open; i-- > 0;)
        write_end(events, &events->open[i], at_ns);
}

void weir__trace_user_resume(weir_trace_events *events)
{
    for (size_t i = 0; i < events->num_open; i++)
        write_begin(events, &events->open[i]);
}

/* -- the others */

static void put_marker(weir_trace_events *events, const weir_trace_record *record)
{
    static const char *const scopes[] = { ",\"s\":\"g\"", ",\"s\":\"p\"", ",\"s\":\"t\"",
                                          ",\"s\":\"t\",\"args\":{\"scope\":\"task\"}" };
    const char *text = (const char *)(uintptr_t)record->item;
    char category[256];
    snprintf(category, sizeof category, "%.*s", (int)record->node, text);
    weir__trace_event_begin(events, 'i', track_of(events, record->number), record->time_ns, text + record->node + 1,
                            category);
    weir__trace_puts(events->out, scopes[record->detail & 3]);
    weir__trace_event_end(events);
}

void weir__trace_user_add(weir_trace_events *events, const weir_trace_record *record)
{
    double value;
    switch ((weir_trace_kind)record->kind) {
    case WEIR_TRACE_COUNTER:
        memcpy(&value, &record->value, sizeof value);
        weir__trace_counter(events, record->time_ns, (const char *)(uintptr_t)record->item, "value", value);
        break;
    case WEIR_TRACE_MARKER: put_marker(events, record); break;
    case WEIR_TRACE_SPAN_BEGIN: begin_user_span(events, record); break;
    default: end_user_spans(events, record);
    }
}
