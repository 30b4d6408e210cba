/* The summary as text: figures from totals.c, wording fixed by design. */
#include <weir/summary.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format.h"

enum { RULE_WIDTH = 80 };

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0.0;
}

static double percent(double part, double whole)
{
    return 100.0 * ratio(part, whole);
}

static void put_rule(FILE *out, char character)
{
    for (int i = 0; i < RULE_WIDTH; i++)
        fputc(character, out);
    fputc('\n', out);
}

/* "    Task time p50 / p90 / p99 / max: …" */
static void put_times(FILE *out, const char *what, const double *times, size_t count)
{
    fprintf(out, "    %s p50 / p90 / p99%s: ", what, count > 3 ? " / max" : "");
    for (size_t i = 0; i < count; i++) {
        char figure[WEIR_FIGURE_BYTES];
        weir_text_format_time(figure, times[i]);
        fprintf(out, "%s%s", i ? " / " : "", figure);
    }
    fputc('\n', out);
}

static void put_slot_shares(FILE *out, const weir_task_totals *task)
{
    double whole = task->busy_time + task->wait_in_time + task->wait_thread_time + task->wait_out_time;
    if (whole <= 0)
        return;
    fprintf(out,
            "    Slot time: %.1f%% busy (%.1f%% of it on a CPU), %.1f%% waiting for input, %.1f%% for a thread, "
            "%.1f%% for room\n",
            percent(task->busy_time, whole), percent(task->cpu_time, task->busy_time),
            percent(task->wait_in_time, whole), percent(task->wait_thread_time, whole),
            percent(task->wait_out_time, whole));
}

static void put_task(FILE *out, const weir_task_totals *task)
{
    int64_t num_successes = task->num_tasks - task->num_failures;
    fputs("\n  Stage: ", out);
    weir_text_put(out, task->key.name);
    fprintf(out,
            "\n"
            "    Total tasks processed: %" PRId64 "\n"
            "    Total failures: %" PRId64 "\n"
            "    Average task time: %.4fs\n"
            "    Success rate: %.1f%%\n"
            "    Number of log entries: %" PRId64 "\n",
            task->num_tasks, task->num_failures, task->ave_time,
            percent((double)num_successes, (double)task->num_tasks), task->key.num_laps);
    if (task->num_skipped)
        fprintf(out, "    Total skipped: %" PRId64 "\n", task->num_skipped);
    if (task->times->count)
        put_times(out, "Task time", (double[]){ task->p50_time, task->p90_time, task->p99_time, task->max_time }, 4);
    put_slot_shares(out, task);
}

static void put_level(FILE *out, const weir_queue_totals *queue)
{
    fprintf(out, "    Level: average %.1f, highest %" PRId64 " of %" PRId64 " items", queue->ave_depth,
            queue->max_depth, queue->capacity);
    if (queue->max_bytes) {
        char average[WEIR_FIGURE_BYTES], highest[WEIR_FIGURE_BYTES];
        weir_text_format_bytes(average, queue->ave_bytes);
        weir_text_format_bytes(highest, (double)queue->max_bytes);
        fprintf(out, "; average %s, highest %s", average, highest);
    }
    fputc('\n', out);
}

static void put_queue(FILE *out, const weir_queue_totals *queue)
{
    fputs("\n  Queue: ", out);
    weir_text_put(out, queue->key.name);
    fprintf(out,
            "\n"
            "    Total items processed: %" PRId64 "\n"
            "    Average QPS: %.2f\n"
            "    Average put time: %.4fs\n"
            "    Average get time: %.4fs\n"
            "    Average occupancy rate: %.1f%%\n"
            "    Number of log entries: %" PRId64 "\n",
            queue->num_items, ratio((double)queue->num_items, queue->elapsed), queue->ave_put_time,
            queue->ave_get_time, 100 * queue->occupancy_rate, queue->key.num_laps);
    if (queue->put_times->count)
        put_times(out, "Put time", (double[]){ queue->p50_put_time, queue->p90_put_time, queue->p99_put_time }, 3);
    if (queue->get_times->count)
        put_times(out, "Get time", (double[]){ queue->p50_get_time, queue->p90_get_time, queue->p99_get_time }, 3);
    put_level(out, queue);
}

static void put_tasks(FILE *out, const weir_totals *totals)
{
    fputs("📊 Task Statistics:\n", out);
    put_rule(out, '-');
    for (size_t i = 0; i < totals->num_tasks; i++)
        put_task(out, &totals->tasks[i]);
}

static void put_queues(FILE *out, const weir_totals *totals)
{
    fputs("\n📈 Queue Statistics:\n", out);
    put_rule(out, '-');
    for (size_t i = 0; i < totals->num_queues; i++)
        put_queue(out, &totals->queues[i]);
}

/* Of all runs that the filter means. */
typedef struct run_notes {
    int64_t num_runs;
    int64_t num_open;  /* that have not ended */
    int64_t open_id;   /* the last of them */
    int64_t num_lossy; /* that lack entries */
    int64_t lossy_id;  /* the last of them */
    int64_t num_lost;  /* entries, of all of them */
} run_notes;

static void note_run(run_notes *notes, const weir_run_record *run)
{
    notes->num_runs++;
    if (!run->has_ended) {
        notes->num_open++;
        notes->open_id = run->run_id;
    }
    if (run->entries_lost) {
        notes->num_lossy++;
        notes->lossy_id = run->run_id;
        notes->num_lost += run->entries_lost;
    }
}

static int note_runs(weir_reader *reader, const weir_filter *filter, run_notes *notes, weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    *notes = (run_notes){ .num_runs = 0 };
    int status = weir_query_begin(reader, WEIR_RECORD_RUN, filter, &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK)
        note_run(notes, &record->run);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static void put_notes(FILE *out, const run_notes *notes)
{
    if (notes->num_open == 1)
        fprintf(out, "Run %" PRId64 " has not ended: it is still running, or it was killed.\n", notes->open_id);
    else if (notes->num_open)
        fprintf(out, "%" PRId64 " of %" PRId64 " runs have not ended: they are still running, or were killed.\n",
                notes->num_open, notes->num_runs);
    if (notes->num_lossy == 1)
        fprintf(out, "%" PRId64 " entries of run %" PRId64 " could not be written: the figures above lack them.\n",
                notes->num_lost, notes->lossy_id);
    else if (notes->num_lossy)
        fprintf(out, "%" PRId64 " entries of %" PRId64 " runs could not be written: the figures above lack them.\n",
                notes->num_lost, notes->num_lossy);
}

static int check_written(FILE *out, weir_error *error)
{
    errno = 0;
    if (fflush(out) != 0 || ferror(out))
        return weir_error_set(error, WEIR_EIO, -errno, "cannot print: %s", strerror(errno ? errno : EIO));
    return WEIR_OK;
}

static void put_summary(FILE *out, const char *path, const weir_totals *totals, const run_notes *notes)
{
    put_rule(out, '=');
    fputs("PIPELINE PERFORMANCE SUMMARY\n", out);
    put_rule(out, '=');
    put_tasks(out, totals);
    put_queues(out, totals);
    fputc('\n', out);
    put_rule(out, '=');
    fprintf(out, "Database: %s\n", path);
    put_notes(out, notes);
    put_rule(out, '=');
}

int weir_summary_write_totals(FILE *out, weir_reader *reader, const weir_filter *filter, const weir_totals *totals,
                              weir_error *error)
{
    if (!out || !reader || !totals)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    run_notes notes;
    int status = note_runs(reader, filter, &notes, error);
    if (status != WEIR_OK)
        return status;
    put_summary(out, weir_reader_path(reader), totals, &notes);
    return check_written(out, error);
}

int weir_summary_write(FILE *out, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    if (!out || !reader)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_totals totals;
    int status = weir_reader_hold(reader, error);
    if (status != WEIR_OK)
        return status;
    status = weir_totals_read(reader, filter, &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, error);
    if (status == WEIR_OK) {
        status = weir_summary_write_totals(out, reader, filter, &totals, error);
        weir_totals_free(&totals);
    }
    weir_reader_release(reader);
    return status;
}

/* 0 is the last one here. */
static weir_filter filter_of(int64_t run_id)
{
    return (weir_filter){ .run_id = run_id ? run_id : WEIR_LAST_RUN };
}

int weir_summary_print(FILE *out, const char *db_path, int64_t run_id, weir_error *error)
{
    if (!out || !db_path)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_reader *reader;
    weir_filter filter = filter_of(run_id);
    int status = weir_reader_open(db_path, &reader, error);
    if (status != WEIR_OK)
        return status;
    status = weir_summary_write(out, reader, &filter, error);
    weir_reader_close(reader);
    return status;
}

/* Failures */

static void put_failure(FILE *out, const weir_failure_record *failure)
{
    fputs("  ", out);
    if (*failure->label)
        weir_text_put(out, failure->label);
    else
        fprintf(out, "item %" PRId64, failure->seq);
    fputs(": ", out);
    weir_text_put(out, *failure->message ? failure->message : weir_status_text(failure->status));
    fputs(" (", out);
    weir_text_put(out, failure->name);
    fprintf(out, ", %s", weir_status_name(failure->status));
    if (failure->library_code)
        fprintf(out, ", library code %d", failure->library_code);
    fputs(")\n", out);
}

static int count_failures(weir_reader *reader, const weir_filter *filter, uint64_t *count, weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    *count = 0;
    int status = weir_query_begin(reader, WEIR_RECORD_FAILURE, filter, &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK)
        ++*count;
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static int put_failure_rows(FILE *out, weir_reader *reader, const weir_filter *filter, uint64_t at_most,
                            weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    int status = weir_query_begin(reader, WEIR_RECORD_FAILURE, filter, &query, error);
    for (uint64_t i = 0; i < at_most && status == WEIR_OK; i++)
        if ((status = weir_query_next(query, &record, error)) == WEIR_OK)
            put_failure(out, &record->failure);
    weir_query_end(query);
    return status;
}

static int put_failures(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t run_id, size_t at_most,
                        weir_error *error)
{
    uint64_t count;
    int status = count_failures(reader, filter, &count, error);
    if (status != WEIR_OK || count == 0)
        return status;

    uint64_t shown = at_most < count ? at_most : count;
    fprintf(out, "Failures: %" PRIu64 "\n", count);
    status = put_failure_rows(out, reader, filter, shown, error);
    if (status == WEIR_OK && shown < count)
        fprintf(out, "  and %" PRIu64 " more in the table task_failures, run %" PRId64 "\n", count - shown, run_id);
    return status;
}

int weir_summary_print_failures(FILE *out, const char *db_path, int64_t run_id, size_t at_most, weir_error *error)
{
    if (!out || !db_path)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_reader *reader;
    weir_run_record run;
    weir_filter filter = filter_of(run_id);
    int status = weir_reader_open(db_path, &reader, error);
    if (status != WEIR_OK)
        return status;
    status = weir_reader_hold(reader, error);
    if (status == WEIR_OK)
        status = weir_reader_find_run(reader, filter.run_id, &run, error);
    if (status == WEIR_OK)
        status = put_failures(out, reader, &filter, run.run_id, at_most, error);
    weir_reader_close(reader);
    return status == WEIR_OK ? check_written(out, error) : status;
}
