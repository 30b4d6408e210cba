/* The summary as text: figures from totals.c, wording fixed by design. */
#include <weir/summary.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "database.h"
#include "totals.h"

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

/* Text from the database, in one line whatever it holds. */
static void put_text(FILE *out, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '\n')
            fputs("\\n", out);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(out, "\\x%02x", *c);
        else
            fputc(*c, out);
    }
}

/* Three digits and a unit: 2.54 s, 41.7 ms, 820 ns. */
static void put_time(FILE *out, double seconds)
{
    static const char *const units[] = { "s", "ms", "us", "ns" };
    size_t unit = 0;
    while (unit < 3 && seconds > 0 && seconds < 0.9995) {
        seconds *= 1000;
        unit++;
    }
    int decimals = seconds < 9.995 ? 2 : seconds < 99.95 ? 1 : 0;
    fprintf(out, "%.*f %s", unit == 3 || seconds == 0 ? 0 : decimals, seconds, units[unit]);
}

static void put_bytes(FILE *out, double bytes)
{
    static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
    size_t unit = 0;
    while (unit < 4 && bytes >= 999.5) {
        bytes /= 1000;
        unit++;
    }
    int decimals = bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0;
    fprintf(out, "%.*f %s", unit == 0 ? 0 : decimals, bytes, units[unit]);
}

/* "    Task time p50 / p90 / p99 / max: …"; max_time < 0: unknown. Nothing without times. */
static void put_spread(FILE *out, const char *what, const weir_histogram *times, double max_time)
{
    static const double quantiles[] = { 0.5, 0.9, 0.99 };
    bool has_max = max_time >= 0;
    if (times->count == 0)
        return;
    fprintf(out, "    %s p50 / p90 / p99%s: ", what, has_max ? " / max" : "");
    for (size_t i = 0; i < 3; i++) {
        double time = (double)weir_histogram_quantile_ns(times, quantiles[i]) / 1e9;
        fputs(i ? " / " : "", out);
        put_time(out, has_max && time > max_time ? max_time : time);
    }
    if (has_max) {
        fputs(" / ", out);
        put_time(out, max_time);
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
    put_text(out, task->name);
    fprintf(out,
            "\n"
            "    Total tasks processed: %" PRId64 "\n"
            "    Total failures: %" PRId64 "\n"
            "    Average task time: %.4fs\n"
            "    Success rate: %.1f%%\n"
            "    Number of log entries: %" PRId64 "\n",
            task->num_tasks, task->num_failures, ratio(task->success_time, (double)num_successes),
            percent((double)num_successes, (double)task->num_tasks), task->num_laps);
    if (task->num_skipped)
        fprintf(out, "    Total skipped: %" PRId64 "\n", task->num_skipped);
    put_spread(out, "Task time", task->times, task->max_time);
    put_slot_shares(out, task);
}

static void put_level(FILE *out, const weir_queue_totals *queue)
{
    fprintf(out, "    Level: average %.1f, highest %" PRId64 " of %" PRId64 " items",
            ratio(queue->depth_time, queue->elapsed), queue->max_depth, queue->capacity);
    if (queue->max_bytes) {
        fputs("; average ", out);
        put_bytes(out, ratio(queue->bytes_time, queue->elapsed));
        fputs(", highest ", out);
        put_bytes(out, (double)queue->max_bytes);
    }
    fputc('\n', out);
}

static void put_queue(FILE *out, const weir_queue_totals *queue)
{
    fputs("\n  Queue: ", out);
    put_text(out, queue->name);
    fprintf(out,
            "\n"
            "    Total items processed: %" PRId64 "\n"
            "    Average QPS: %.2f\n"
            "    Average put time: %.4fs\n"
            "    Average get time: %.4fs\n"
            "    Average occupancy rate: %.1f%%\n"
            "    Number of log entries: %" PRId64 "\n",
            queue->num_items, ratio((double)queue->num_items, queue->elapsed),
            ratio(queue->put_time, (double)queue->num_put), ratio(queue->get_time, (double)queue->num_items),
            percent(queue->occupied, queue->elapsed), queue->num_laps);
    put_spread(out, "Put time", queue->put_times, -1);
    put_spread(out, "Get time", queue->get_times, -1);
    put_level(out, queue);
}

static void put_tasks(FILE *out, const weir_totals *totals)
{
    fputs("📊 Task Statistics:\n", out);
    put_rule(out, '-');
    for (size_t i = 0; i < totals->num_tasks; i++)
        if (totals->tasks[i].num_laps)
            put_task(out, &totals->tasks[i]);
}

static void put_queues(FILE *out, const weir_totals *totals)
{
    fputs("\n📈 Queue Statistics:\n", out);
    put_rule(out, '-');
    for (size_t i = 0; i < totals->num_queues; i++)
        if (totals->queues[i].num_laps)
            put_queue(out, &totals->queues[i]);
}

static void put_end(FILE *out, const char *path, const weir_run_row *run)
{
    fputc('\n', out);
    put_rule(out, '=');
    fprintf(out, "Database: %s\n", path);
    if (!run->has_ended)
        fprintf(out, "Run %" PRId64 " has not ended: it is still running, or it was killed.\n", run->run_id);
    if (run->entries_lost)
        fprintf(out, "%" PRId64 " entries of run %" PRId64 " could not be written: the figures above lack them.\n",
                run->entries_lost, run->run_id);
    put_rule(out, '=');
}

static int check_written(FILE *out, weir_error *error)
{
    errno = 0;
    if (fflush(out) != 0 || ferror(out))
        return weir_error_set(error, WEIR_EIO, -errno, "cannot print: %s", strerror(errno ? errno : EIO));
    return WEIR_OK;
}

int weir_summary_print(FILE *out, const char *db_path, int64_t run_id, weir_error *error)
{
    sqlite3 *db;
    weir_totals totals;
    int status = weir_database_open_reader(db_path, &db, error);
    if (status != WEIR_OK)
        return status;
    status = weir_totals_read(db, db_path, run_id, &totals, error);
    weir_database_close(db);
    if (status != WEIR_OK)
        return status;

    put_rule(out, '=');
    fputs("PIPELINE PERFORMANCE SUMMARY\n", out);
    put_rule(out, '=');
    put_tasks(out, &totals);
    put_queues(out, &totals);
    put_end(out, db_path, &totals.run);
    weir_totals_free(&totals);
    return check_written(out, error);
}

/* Failures */

static const char count_sql[] = "SELECT count(*) FROM task_failures WHERE run_id = ?";
static const char failures_sql[] = "SELECT name, seq, label, status, library_code, message FROM task_failures "
                                   "WHERE run_id = ? ORDER BY id LIMIT ?";

static void put_failure(FILE *out, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    const char *label = (const char *)sqlite3_column_text(row, 2);
    const char *message = (const char *)sqlite3_column_text(row, 5);
    int status = sqlite3_column_int(row, 3);
    int library_code = sqlite3_column_int(row, 4);

    fputs("  ", out);
    if (label && *label)
        put_text(out, label);
    else
        fprintf(out, "item %lld", sqlite3_column_int64(row, 1));
    fputs(": ", out);
    put_text(out, message && *message ? message : weir_status_text(status));
    fputs(" (", out);
    put_text(out, name ? name : "");
    fprintf(out, ", %s", weir_status_name(status));
    if (library_code)
        fprintf(out, ", library code %d", library_code);
    fputs(")\n", out);
}

static int count_failures(sqlite3 *db, int64_t run_id, int64_t *count)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, count_sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(statement, 1, run_id);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *count = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

static int put_failure_rows(FILE *out, sqlite3 *db, int64_t run_id, int64_t at_most)
{
    sqlite3_stmt *row = NULL;
    int code = sqlite3_prepare_v2(db, failures_sql, -1, &row, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(row, 1, run_id);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(row, 2, at_most);
    if (code == SQLITE_OK)
        while ((code = sqlite3_step(row)) == SQLITE_ROW)
            put_failure(out, row);
    sqlite3_finalize(row);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Returns a SQLITE_ code. */
static int put_failures(FILE *out, sqlite3 *db, int64_t run_id, size_t at_most)
{
    int64_t count = 0;
    int code = count_failures(db, run_id, &count);
    if (code != SQLITE_OK || count == 0)
        return code;

    int64_t shown = at_most < (uint64_t)count ? (int64_t)at_most : count;
    fprintf(out, "Failures: %" PRId64 "\n", count);
    code = put_failure_rows(out, db, run_id, shown);
    if (code == SQLITE_OK && shown < count)
        fprintf(out, "  and %" PRId64 " more in the table task_failures, run %" PRId64 "\n", count - shown, run_id);
    return code;
}

int weir_summary_print_failures(FILE *out, const char *db_path, int64_t run_id, size_t at_most, weir_error *error)
{
    sqlite3 *db;
    weir_run_row run;
    int status = weir_database_open_reader(db_path, &db, error);
    if (status != WEIR_OK)
        return status;
    int code = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL); /* what is read is of one moment */
    if (code == SQLITE_OK)
        status = weir_totals_find_run(db, db_path, run_id, &run, error);
    if (code == SQLITE_OK && status == WEIR_OK)
        code = put_failures(out, db, run.run_id, at_most);
    if (code != SQLITE_OK)
        status = weir_database_error(error, db, code, "cannot read", db_path);
    weir_database_close(db);
    return status == WEIR_OK ? check_written(out, error) : status;
}
