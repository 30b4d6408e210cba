/* OpenMetrics text of what a database holds. */
#include <weir/openmetrics.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exposition.h"

/* All that is told, and who owns its texts. */
struct contents {
    weir_run_record *runs; /* with texts of their own */
    size_t num_runs;
    weir_totals totals;
    weir_tallies events, phases;
};

static int out_of_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory for the metrics");
}

static void free_run(weir_run_record *run)
{
    free((char *)run->node_id);
    free((char *)run->command);
    free((char *)run->version);
}

static void free_contents(struct contents *contents)
{
    for (size_t i = 0; i < contents->num_runs; i++)
        free_run(&contents->runs[i]);
    free(contents->runs);
    weir_totals_free(&contents->totals);
    weir_tallies_free(&contents->events);
    weir_tallies_free(&contents->phases);
}

static int take_run(struct contents *contents, const weir_record *record)
{
    weir_run_record *runs = realloc(contents->runs, (contents->num_runs + 1) * sizeof *runs);
    if (!runs)
        return WEIR_ENOMEM;
    contents->runs = runs;
    weir_run_record *run = &runs[contents->num_runs];
    *run = record->run;
    run->node_id = strdup(record->run.node_id);
    run->command = strdup(record->run.command);
    run->version = strdup(record->run.version);
    if (run->node_id && run->command && run->version) {
        contents->num_runs++;
        return WEIR_OK;
    }
    free_run(run);
    return WEIR_ENOMEM;
}

static int take_event(struct contents *contents, const weir_record *record)
{
    const weir_event_record *event = &record->event;
    return weir_tallies_add(&contents->events, event->run_id, event->name, event->category, 1);
}

static int take_phase(struct contents *contents, const weir_record *record)
{
    const weir_phase_record *phase = &record->phase;
    if (!phase->place.phase[0])
        return WEIR_OK;
    return weir_tallies_add(&contents->phases, phase->run_id, phase->place.phase, "",
                            phase->end_time - phase->start_time);
}

/* Gives every record of a kind to `take`. */
static int read_kind(weir_reader *reader, weir_record_kind kind, const weir_filter *filter,
                     int (*take)(struct contents *contents, const weir_record *record), struct contents *contents,
                     weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    int status = weir_query_begin(reader, kind, filter, &query, error);
    if (status != WEIR_OK)
        return status;
    while ((status = weir_query_next(query, &record, error)) == WEIR_OK)
        if (take(contents, record) != WEIR_OK) {
            status = out_of_memory(error);
            break;
        }
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static int read_contents(weir_reader *reader, const weir_filter *filter, struct contents *contents, weir_error *error)
{
    weir_grouping grouping = { .by = WEIR_BY_RUN | WEIR_BY_NAME };
    int status = read_kind(reader, WEIR_RECORD_RUN, filter, take_run, contents, error);
    if (status == WEIR_OK && contents->num_runs == 0)
        status =
            weir_error_set(error, WEIR_ENOTFOUND, 0, "no run in %s fulfils the conditions", weir_reader_path(reader));
    if (status == WEIR_OK)
        status = weir_totals_read(reader, filter, &grouping, &contents->totals, error);
    if (status == WEIR_OK)
        status = read_kind(reader, WEIR_RECORD_EVENT, filter, take_event, contents, error);
    if (status == WEIR_OK)
        status = read_kind(reader, WEIR_RECORD_PHASE, filter, take_phase, contents, error);
    return status;
}

int weir_openmetrics_export(weir_reader *reader, const weir_filter *filter, FILE *out, weir_error *error)
{
    struct contents contents = { 0 };
    weir_filter in_order = filter ? *filter : (weir_filter){ 0 };
    in_order.descending = in_order.longest_first = false;
    in_order.limit = in_order.after_id = 0;

    int status = weir_reader_hold(reader, error);
    if (status != WEIR_OK)
        return status;
    status = read_contents(reader, &in_order, &contents, error);
    weir_reader_release(reader);
    if (status == WEIR_OK) {
        weir_exposition all = { contents.runs, contents.num_runs, &contents.totals, contents.events,
                                contents.phases };
        errno = 0;
        weir_exposition_write(out, &all);
        if (fflush(out) != 0 || ferror(out))
            status = weir_error_set(error, WEIR_EIO, -errno, "cannot write the metrics: %s",
                                    strerror(errno ? errno : EIO));
    }
    free_contents(&contents);
    return status;
}
