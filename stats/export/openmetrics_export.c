/* OpenMetrics text of what a database holds: sums, or how they came about lap by lap. */
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

/* -- history */

struct walker {
    weir_reader *reader;
    const weir_filter *filter;
    weir_histogram *histograms; /* two: what the totals under way point to */
    int status;                 /* of the first failure: nothing is read after it */
    weir_error *error;
};

static int add_times(struct walker *walker, int which, const void *bytes, size_t size_bytes)
{
    int status = weir_histogram_add_encoded(&walker->histograms[which], bytes, size_bytes);
    if (status != WEIR_OK)
        weir_error_set(walker->error, status, 0, "%s: a histogram in it is damaged",
                       weir_reader_path(walker->reader));
    return status;
}

static double at_most(double time, double max_time)
{
    return time < max_time ? time : max_time;
}

static double quantile(const weir_histogram *times, double share)
{
    return (double)weir_histogram_quantile_ns(times, share) / 1e9;
}

static int add_task(struct walker *walker, weir_task_totals *sum, const weir_task_record *task)
{
    sum->elapsed += task->elapsed;
    sum->num_failures += task->num_failures;
    sum->num_skipped += task->num_skipped;
    sum->success_time += task->ave_time * (double)(task->num_tasks - task->num_failures);
    sum->failed_time += task->failed_time;
    sum->busy_time += task->busy_time;
    sum->wait_in_time += task->wait_in_time;
    sum->wait_thread_time += task->wait_thread_time;
    sum->wait_out_time += task->wait_out_time;
    sum->cpu_time += task->cpu_time;
    sum->max_time = task->max_time > sum->max_time ? task->max_time : sum->max_time;
    int status = add_times(walker, 0, task->histogram, task->histogram_bytes);
    sum->p50_time = at_most(quantile(sum->times, 0.5), sum->max_time);
    sum->p90_time = at_most(quantile(sum->times, 0.9), sum->max_time);
    sum->p99_time = at_most(quantile(sum->times, 0.99), sum->max_time);
    return status;
}

static int add_queue(struct walker *walker, weir_queue_totals *sum, const weir_queue_record *queue)
{
    sum->elapsed += queue->elapsed;
    sum->capacity = queue->capacity;
    sum->put_time += queue->ave_put_time * (double)queue->num_put;
    sum->get_time += queue->ave_get_time * (double)queue->num_items;
    sum->occupied += queue->occupancy_rate * queue->elapsed;
    sum->depth_time += queue->ave_depth * queue->elapsed;
    sum->bytes_time += queue->ave_bytes * queue->elapsed;
    sum->max_depth = queue->max_depth > sum->max_depth ? queue->max_depth : sum->max_depth;
    sum->max_bytes = queue->max_bytes > sum->max_bytes ? queue->max_bytes : sum->max_bytes;
    int status = add_times(walker, 0, queue->put_histogram, queue->put_histogram_bytes);
    if (status == WEIR_OK)
        status = add_times(walker, 1, queue->get_histogram, queue->get_histogram_bytes);
    return status;
}

/* All laps of one stage or queue. A name is a pattern, too, and may mean others: these are left out. */
static int walk_laps(struct walker *walker, weir_query *query, bool is_queue, const char *name,
                     weir_lap_visitor *visit, void *visitor)
{
    weir_task_totals task = { .times = &walker->histograms[0] };
    weir_queue_totals queue = { .put_times = &walker->histograms[0], .get_times = &walker->histograms[1] };
    const weir_record *record;
    int status;
    while ((status = weir_query_next(query, &record, walker->error)) == WEIR_OK) {
        if (strcmp(is_queue ? record->queue.name : record->task.name, name) != 0)
            continue;
        status = is_queue ? add_queue(walker, &queue, &record->queue) : add_task(walker, &task, &record->task);
        if (status != WEIR_OK)
            break;
        if (is_queue)
            visit(visitor, record->queue.timestamp, &queue);
        else
            visit(visitor, record->task.timestamp, &task);
    }
    return status == WEIR_EOF ? WEIR_OK : status;
}

static void walk(void *self, bool is_queue, const weir_group_key *key, weir_lap_visitor *visit, void *visitor)
{
    struct walker *walker = self;
    weir_filter filter = *walker->filter;
    filter.run_id = key->run_id;
    filter.name = key->name;
    weir_query *query;
    if (walker->status != WEIR_OK)
        return;
    weir_histogram_clear(&walker->histograms[0]);
    weir_histogram_clear(&walker->histograms[1]);
    walker->status = weir_query_begin(walker->reader, is_queue ? WEIR_RECORD_QUEUE : WEIR_RECORD_TASK, &filter,
                                      &query, walker->error);
    if (walker->status == WEIR_OK)
        walker->status = walk_laps(walker, query, is_queue, key->name, visit, visitor);
    weir_query_end(query);
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
        .walk = walker ? walk : NULL,
        .walker = walker,
    };
    errno = 0;
    weir_exposition_write(out, &all);
    if (walker && walker->status != WEIR_OK)
        return walker->status;
    if (fflush(out) != 0 || ferror(out))
        return weir_error_set(error, WEIR_EIO, -errno, "cannot write the metrics: %s", strerror(errno ? errno : EIO));
    return WEIR_OK;
}

/* walker: NULL = sums only. */
static int export(weir_reader *reader, const weir_filter *filter, struct walker *walker, FILE *out, weir_error *error)
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
    return export(reader, filter, NULL, out, error);
}

int weir_openmetrics_export_laps(weir_reader *reader, const weir_filter *filter, FILE *out, weir_error *error)
{
    if (!reader || !out)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    struct walker walker = { .reader = reader, .error = error };
    walker.histograms = calloc(2, sizeof *walker.histograms);
    if (!walker.histograms)
        return out_of_memory(error);
    int status = export(reader, filter, &walker, out, error);
    free(walker.histograms);
    return status;
}
