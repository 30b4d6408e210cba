/* A trace from a database: what laps, events, failures and sampled items say about time. */
#include <weir/trace_file.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weir/clock.h>

#include "each_record.h"
#include "trace_events.h"

typedef struct trace_export {
    weir_reader *reader;
    weir_filter filter; /* of one run */
    weir_trace_events events;
    weir_trace_text body, head;
    uint64_t num_items;
    int64_t phase_end_ns; /* of the run's previous phase */
    bool begun;           /* the bracket and the clock are written */
    FILE *out;
} trace_export;

/* All but the last comma, which the next event needs. */
static void put_out(trace_export *export)
{
    weir_trace_text *body = &export->body;
    if (body->length > 2) {
        fwrite(body->data, 1, body->length - 2, export->out);
        memmove(body->data, body->data + body->length - 2, 2);
        body->length = 2;
    }
    export->head.length = 0;
}

/* The mean over a lap, from its start on. */
static void put_mean(trace_export *export, const weir_lap_record *lap, const char *what, const char *value_name,
                     double value)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s (mean of each lap)", lap->name, what);
    if (!isnan(value))
        weir_trace_counter(&export->events, lap->end_unix_ns - lap->elapsed_ns, name, value_name, value);
}

static double value_of(const weir_lap_record *lap, const char *measure)
{
    return weir_measure_of(lap->subject, measure, &lap->metrics, lap->elapsed_ns);
}

static void put_lap(trace_export *export, const weir_lap_record *lap)
{
    if (lap->subject == WEIR_SUBJECT_QUEUE) {
        put_mean(export, lap, "", "items", value_of(lap, "ave_depth"));
        return;
    }
    put_mean(export, lap, " busy", "slots", value_of(lap, "busy_time") / ((double)lap->elapsed_ns / WEIR_SECOND));
    put_mean(export, lap, " tasks", "per second", value_of(lap, "tasks_per_s"));
}

static void put_async(trace_export *export, char phase, int64_t at_ns, const weir_item_record *item)
{
    weir_trace_text *out = &export->body;
    weir_trace_event_begin(&export->events, phase, TRACE_TRACK_RUN, at_ns, item->name, "item");
    weir_trace_puts(out, ",\"id\":");
    weir_trace_put_int(out, (int64_t) export->num_items);
    weir_trace_puts(out, ",\"args\":{\"seq\":");
    weir_trace_put_int(out, item->seq);
    weir_trace_puts(out, ",\"label\":");
    weir_trace_put_json(out, item->label);
    weir_trace_puts(out, ",\"codec\":");
    weir_trace_put_json(out, item->codec ? item->codec : "");
    weir_trace_puts(out, ",\"bytes\":");
    weir_trace_put_int(out, item->size_bytes);
    weir_trace_puts(out, "}");
    weir_trace_event_end(&export->events);
}

static void put_item(trace_export *export, const weir_item_record *item)
{
    export->num_items++;
    put_async(export, 'b', item->unix_ns - item->run_ns, item);
    put_async(export, 'e', item->unix_ns, item);
}

static void put_phase(trace_export *export, const weir_phase_record *phase)
{
    const char *name = phase->position.phase;
    if (!name || !*name)
        return;
    /* Times in the database are rounded, and viewers reject spans that overlap. */
    bool overlaps = phase->start_unix_ns < export->phase_end_ns && phase->end_unix_ns > export->phase_end_ns;
    int64_t begin_ns = overlaps ? export->phase_end_ns : phase->start_unix_ns;
    export->phase_end_ns = phase->end_unix_ns;
    weir_trace_span_begin(&export->events, TRACE_TRACK_PHASES, begin_ns, phase->end_unix_ns, name, "phase");
    weir_trace_event_end(&export->events);
}

static int put_record(void *self, const weir_record *record, weir_error *error)
{
    enum { MANY_BYTES = 1 << 18 };
    trace_export *export = self;
    (void)error;
    switch (record->kind) {
    case WEIR_RECORD_EVENT:
        weir_trace_events_event(&export->events, &(weir_event){ record->event.unix_ns, record->event.name,
                                                                record->event.category, record->event.detail });
        break;
    case WEIR_RECORD_FAILURE:
        weir_trace_events_failure(&export->events, &(weir_failure){ .unix_ns = record->failure.unix_ns,
                                                                    .name = record->failure.name,
                                                                    .label = record->failure.label,
                                                                    .status = record->failure.status,
                                                                    .message = record->failure.message });
        break;
    case WEIR_RECORD_ITEM: put_item(export, &record->item); break;
    case WEIR_RECORD_PHASE: put_phase(export, &record->phase); break;
    default: put_lap(export, &record->lap);
    }
    if (export->body.length > MANY_BYTES)
        put_out(export);
    return WEIR_OK;
}

/* Runs are processes. */
static int put_run(void *self, const weir_record *record, weir_error *error)
{
    trace_export *export = self;
    const weir_run_record *run = &record->run;
    static const weir_record_kind kinds[] = { WEIR_RECORD_PHASE, WEIR_RECORD_FLOW,  WEIR_RECORD_TASK,
                                              WEIR_RECORD_QUEUE, WEIR_RECORD_EVENT, WEIR_RECORD_FAILURE,
                                              WEIR_RECORD_ITEM };
    int status = WEIR_OK;
    char name[96];
    if (!export->begun) {
        weir_trace_puts(&export->body, "[\n" WEIR_TRACE_CLOCK);
        weir_trace_put_int(&export->body, export->events.base_ns);
        weir_trace_puts(&export->body, ",\"approximation\":true}},\n");
    }
    export->begun = true;
    snprintf(name, sizeof name, "run %" PRId64 ", rank %" PRId32 ": approximation from laps", run->run_id, run->rank);
    weir_trace_put_metadata(&export->body, run->run_id, 0, "process_name", "name", name, 0);
    export->events.pid = run->run_id;
    export->filter.run_id = run->run_id;
    export->phase_end_ns = 0;
    weir_trace_name_track(&export->events, TRACE_TRACK_RUN, "failures, stalls, events");
    weir_trace_name_track(&export->events, TRACE_TRACK_PHASES, "phases");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && status == WEIR_OK; i++)
        status = weir_each_record(export->reader, kinds[i], &export->filter, put_record, export, error);
    put_out(export);
    return status;
}

/* Time 0 is before everything: viewers do not show negative times. The times of laps are rounded. */
static int note_start(void *self, const weir_record *record, weir_error *error)
{
    trace_export *export = self;
    int64_t before_ns = record->run.started_unix_ns - WEIR_MILLISECOND;
    (void)error;
    if (!export->events.base_ns || before_ns < export->events.base_ns)
        export->events.base_ns = before_ns;
    return WEIR_OK;
}

static int put_runs(trace_export *export, const weir_filter *filter, weir_error *error)
{
    int status = weir_each_record(export->reader, WEIR_RECORD_RUN, filter, note_start, export, error);
    if (status == WEIR_OK)
        status = weir_each_record(export->reader, WEIR_RECORD_RUN, filter, put_run, export, error);
    if (status == WEIR_OK && !export->begun)
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "no run in %s matches the filters",
                              weir_reader_path(export->reader));
    if (status != WEIR_OK)
        return status;
    fputs("\n]\n", export->out);
    return weir_check_written(export->out, "cannot write the trace", error);
}

int weir_trace_export(weir_reader *reader, const weir_filter *filter, FILE *out, weir_error *error)
{
    if (!reader || !out)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    trace_export export = { .reader = reader, .out = out };
    if (filter)
        export.filter = *filter;
    export.filter.descending = export.filter.longest_first = false;
    export.filter.limit = export.filter.after_id = 0;
    export.events.out = export.events.body = &export.body;
    export.events.head = &export.head;
    int status = weir_reader_hold(reader, error);
    if (status != WEIR_OK)
        return status;
    status = put_runs(&export, filter, error);
    if (status == WEIR_OK && export.events.num_lost)
        status = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory for the trace");
    weir_reader_release(reader);
    weir_trace_text_free(&export.body);
    weir_trace_text_free(&export.head);
    return status;
}
