/* OpenMetrics text from a database: final sums, or the sums after each lap. */
#include <weir/openmetrics.h>

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "database_reader.h"
#include "exposition.h"
#include "record.h"

/* The exported data, and what owns its texts. */
struct contents {
    weir_run_record *runs;
    size_t num_runs;
    weir_record_entry *entries; /* have the texts of the runs */
    weir_totals totals;
    weir_key_sums events, phases;
};

static int out_of_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory for the metrics");
}

static void free_contents(struct contents *contents)
{
    for (weir_record_entry *entry = contents->entries, *next; entry; entry = next) {
        next = entry->next;
        free(entry);
    }
    free(contents->runs);
    weir_totals_free(&contents->totals);
    weir__key_sums_free(&contents->events);
    weir__key_sums_free(&contents->phases);
}

static int add_exported_run(void *self, const weir_record *record, weir_error *error)
{
    struct contents *contents = self;
    weir_run_record *runs = weir__array_grow(contents->runs, contents->num_runs, sizeof *runs);
    weir_record_entry *entry = weir__record_entry_of_record(record);
    contents->runs = runs ? runs : contents->runs;
    if (!runs || !entry) {
        free(entry);
        return out_of_memory(error);
    }
    entry->next = contents->entries;
    contents->entries = entry;
    runs[contents->num_runs++] = entry->record.run;
    return WEIR_OK;
}

static int take_event(void *self, const weir_record *record, weir_error *error)
{
    struct contents *contents = self;
    const weir_event_record *event = &record->event;
    int status = weir__key_sums_add(&contents->events, event->run_id, event->name, event->category, 1);
    return status == WEIR_OK ? status : out_of_memory(error);
}

static int take_phase(void *self, const weir_record *record, weir_error *error)
{
    struct contents *contents = self;
    const weir_phase_record *phase = &record->phase;
    if (!phase->position.phase[0])
        return WEIR_OK;
    int status = weir__key_sums_add(&contents->phases, phase->run_id, phase->position.phase, "",
                                    (double)(phase->end_unix_ns - phase->start_unix_ns) / 1e9);
    return status == WEIR_OK ? status : out_of_memory(error);
}

static int read_contents(weir_reader *reader, const weir_filter *filter, struct contents *contents, weir_error *error)
{
    weir_grouping grouping = { .by = WEIR_BY_RUN | WEIR_BY_NAME };
    int status = weir_reader_each(reader, WEIR_RECORD_RUN, filter, add_exported_run, contents, error);
    if (status == WEIR_OK && contents->num_runs == 0)
        status =
            weir_error_set(error, WEIR_ENOTFOUND, 0, "no run in %s matches the filters", weir_reader_path(reader));
    if (status == WEIR_OK)
        status = weir_totals_read(reader, filter, &grouping, &contents->totals, error);
    if (status == WEIR_OK)
        status = weir_reader_each(reader, WEIR_RECORD_EVENT, filter, take_event, contents, error);
    if (status == WEIR_OK)
        status = weir_reader_each(reader, WEIR_RECORD_PHASE, filter, take_phase, contents, error);
    return status;
}

/* -- history */

struct walker {
    weir_reader *reader;
    const weir_filter *filter;
    weir_histogram *histograms; /* of the current sums */
    int status;                 /* the first failure: nothing is read after it */
    weir_error *error;

    /* the stage or queue whose laps are read */
    weir_total sum;
    const char *name;
    weir_lap_visitor *visit;
    void *visitor;
};

/* A name is also a pattern that may match others, which are skipped. */
static int walk_lap(void *self, const weir_record *record, weir_error *error)
{
    (void)error;
    struct walker *walker = self;
    if (strcmp(record->lap.name, walker->name) != 0)
        return WEIR_OK;
    weir_total one = weir_total_of_lap(&record->lap);
    weir_total_add(&walker->sum, &one);
    walker->visit(walker->visitor, record->lap.end_unix_ns, &walker->sum);
    return WEIR_OK;
}

static void walk_laps(void *self, const weir_total *of, weir_lap_visitor *visit, void *visitor)
{
    struct walker *walker = self;
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir_subject_histograms(of->subject, histograms);
    weir_filter filter = *walker->filter;
    filter.run_id = of->key.run_id;
    filter.name = walker->name = of->key.name;
    walker->sum = (weir_total){ .subject = of->subject, .kind = of->kind };
    walker->visit = visit;
    walker->visitor = visitor;
    weir_metrics_clear(weir_subject_metrics(of->subject), &walker->sum.metrics);
    for (size_t i = 0; i < count; i++) {
        weir_histogram_clear(&walker->histograms[i]);
        *weir_metric_histogram_at(histograms[i].metric, &walker->sum.metrics) = &walker->histograms[i];
    }
    if (walker->status == WEIR_OK)
        walker->status = weir_reader_each(walker->reader, weir_record_kind_of(of->subject), &filter, walk_lap, walker,
                                          walker->error);
}

/* -- both */

static int write_contents(struct contents *contents, struct walker *walker, FILE *out, weir_error *error)
{
    weir_exposition all = {
        .runs = contents->runs,
        .num_runs = contents->num_runs,
        .totals = &contents->totals,
        .events = contents->events,
        .phases = contents->phases,
        .walk = walker ? walk_laps : NULL,
        .walker = walker,
    };
    weir__exposition_write(out, &all);
    return walker && walker->status != WEIR_OK ? walker->status
                                               : weir__check_written(out, "cannot write the metrics", error);
}

/* walker: NULL = sums only. */
static int export_laps(weir_reader *reader, const weir_filter *filter, struct walker *walker, FILE *out,
                       weir_error *error)
{
    struct contents contents = { 0 };
    weir_filter in_order = filter ? *filter : (weir_filter){ 0 };
    in_order.descending = in_order.longest_first = false;
    in_order.limit = in_order.after_id = 0;
    if (walker)
        walker->filter = &in_order;

    int status = weir_reader_hold(reader, error);
    if (status != WEIR_OK)
        return status;
    status = read_contents(reader, &in_order, &contents, error);
    if (status == WEIR_OK)
        status = write_contents(&contents, walker, out, error);
    weir_reader_release(reader);
    free_contents(&contents);
    return status;
}

int weir_openmetrics_export(weir_reader *reader, const weir_filter *filter, FILE *out, weir_error *error)
{
    if (!reader || !out)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    return export_laps(reader, filter, NULL, out, error);
}

int weir_openmetrics_export_laps(weir_reader *reader, const weir_filter *filter, FILE *out, weir_error *error)
{
    if (!reader || !out)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    struct walker walker = { .reader = reader, .error = error };
    walker.histograms = calloc(WEIR_MAX_HISTOGRAMS, sizeof *walker.histograms);
    if (!walker.histograms)
        return out_of_memory(error);
    int status = export_laps(reader, filter, &walker, out, error);
    free(walker.histograms);
    return status;
}
