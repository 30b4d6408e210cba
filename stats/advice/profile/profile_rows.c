/* The report as a run of its own, written in one transaction. */
#include "profile_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/version.h>

#include "database.h"
#include "database_path.h"
#include "database_reader.h"
#include "process_info.h"
#include "record_tables.h"

#define LOCK_LIMIT (10 * WEIR_SECOND)

static double seconds(int64_t ns)
{
    return (double)ns / (double)WEIR_SECOND;
}

static int insert_run(sqlite3 *db, const weir_profile_report *report)
{
    sqlite3_stmt *insert = NULL;
    char *host = weir_host_name(), *command = weir_command_line(), *machine = weir_machine_text();
    int code = sqlite3_prepare_v2(db,
                                  "INSERT INTO run (node_id, rank, pid, started, ended, status, command, version, "
                                  "machine) VALUES (?, 0, ?, ?, ?, 0, ?, ?, ?)",
                                  -1, &insert, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_text(insert, 1, host ? host : "", -1, SQLITE_STATIC);
        sqlite3_bind_int64(insert, 2, getpid());
        sqlite3_bind_double(insert, 3, seconds(report->start_unix_ns));
        sqlite3_bind_double(insert, 4, seconds(report->end_unix_ns));
        sqlite3_bind_text(insert, 5, command ? command : "", -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 6, weir_version(), -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 7, machine ? machine : "", -1, SQLITE_STATIC);
        code = sqlite3_step(insert) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(db);
    }
    sqlite3_finalize(insert);
    free(host);
    free(command);
    free(machine);
    return code;
}

static int insert_points(sqlite3 *db, const weir_profile_report *report)
{
    sqlite3_stmt *insert = NULL;
    int64_t run_id = sqlite3_last_insert_rowid(db);
    int code = sqlite3_prepare_v2(db,
                                  "INSERT INTO profile_stats (run_id, name, concurrency, is_best, num_tasks, "
                                  "num_failures, elapsed, cpu_time, memory_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                                  -1, &insert, NULL);
    for (size_t i = 0; i < report->num_points && code == SQLITE_OK; i++) {
        const weir_profile_point *point = &report->points[i];
        sqlite3_bind_int64(insert, 1, run_id);
        sqlite3_bind_text(insert, 2, point->stage, -1, SQLITE_STATIC);
        sqlite3_bind_int64(insert, 3, point->concurrency);
        sqlite3_bind_int64(insert, 4, point->is_best);
        sqlite3_bind_int64(insert, 5, (int64_t)point->num_tasks);
        sqlite3_bind_int64(insert, 6, (int64_t)point->num_failures);
        sqlite3_bind_double(insert, 7, point->elapsed_s);
        sqlite3_bind_double(insert, 8, point->cpu_time_s);
        sqlite3_bind_int64(insert, 9, (int64_t)point->memory_bytes);
        code = sqlite3_step(insert) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(db);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    return code;
}

int weir_profile_record(const weir_profile_report *report, const char *path, weir_error *error)
{
    if (!report || !path)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    sqlite3 *db;
    int status = weir_database_open_writer(path, weir_clock_ns() + LOCK_LIMIT, &db, error);
    if (status != WEIR_OK)
        return status;
    int code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = insert_run(db, report);
    if (code == SQLITE_OK)
        code = insert_points(db, report);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        status = weir_database_error(error, db, code, "cannot write to", path);
    weir_database_close(db);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

void weir_profile_derive(weir_profile_report *report, size_t index)
{
    weir_profile_point *point = &report->points[index], *first = point;
    while (first > report->points && first[-1].concurrency < first->concurrency &&
           strcmp(first[-1].stage, point->stage) == 0)
        first--; /* two stages in a row may have the same name */
    if (point->elapsed_s > 0) {
        point->tasks_per_s = (double)point->num_tasks / point->elapsed_s;
        point->cpus = point->cpu_time_s / point->elapsed_s;
    }
    double ideal = first->tasks_per_s / first->concurrency * point->concurrency;
    point->efficiency = ideal > 0 ? point->tasks_per_s / ideal : point == first;
}

/* The points, and behind them in the same block their names. Returns a SQLITE_ code. */
static int read_points(sqlite3_stmt *rows, weir_profile_report *report)
{
    size_t bytes = 0;
    int code;
    while ((code = sqlite3_step(rows)) == SQLITE_ROW) {
        report->num_points++;
        bytes += sizeof *report->points + strlen(weir_column_text(rows, 0)) + 1;
    }
    if (code != SQLITE_DONE || report->num_points == 0)
        return code;
    report->points = calloc(1, bytes);
    if (!report->points)
        return SQLITE_NOMEM;
    char *names = (char *)&report->points[report->num_points];
    sqlite3_reset(rows);
    for (size_t i = 0; i < report->num_points && (code = sqlite3_step(rows)) == SQLITE_ROW; i++) {
        report->points[i] = (weir_profile_point){
            .stage = strcpy(names, weir_column_text(rows, 0)),
            .concurrency = (uint32_t)sqlite3_column_int64(rows, 1),
            .is_best = sqlite3_column_int(rows, 2),
            .num_tasks = (uint64_t)sqlite3_column_int64(rows, 3),
            .num_failures = (uint64_t)sqlite3_column_int64(rows, 4),
            .elapsed_s = sqlite3_column_double(rows, 5),
            .cpu_time_s = sqlite3_column_double(rows, 6),
            .memory_bytes = (uint64_t)sqlite3_column_int64(rows, 7),
        };
        names += strlen(names) + 1;
        weir_profile_derive(report, i);
    }
    return code;
}

int weir_profile_read(weir_reader *reader, int64_t run_id, weir_profile_report **report, weir_error *error)
{
    weir_run_record run;
    sqlite3_stmt *rows = NULL;
    bool has_table = false;
    if (!reader || !report)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *report = NULL;
    int status = weir_reader_hold(reader, error); /* both passes over the rows see the same */
    if (status != WEIR_OK)
        return status;
    weir_profile_report *own = calloc(1, sizeof *own);
    if (!own) {
        weir_reader_release(reader);
        return weir_reader_out_of_memory(error);
    }
    status = weir_reader_find_run(reader, run_id, &run, error);
    int code =
        status == WEIR_OK ? weir_table_has_column(reader->db, "profile_stats", "run_id", &has_table) : SQLITE_OK;
    if (status == WEIR_OK && has_table && code == SQLITE_OK) {
        own->start_unix_ns = run.started_unix_ns;
        own->end_unix_ns = run.ended_unix_ns;
        code = sqlite3_prepare_v2(reader->db,
                                  "SELECT name, concurrency, is_best, num_tasks, num_failures, elapsed, cpu_time, "
                                  "memory_bytes FROM profile_stats WHERE run_id = ? AND concurrency > 0 ORDER BY id",
                                  -1, &rows, NULL);
        if (code == SQLITE_OK)
            code = sqlite3_bind_int64(rows, 1, run.run_id);
        if (code == SQLITE_OK)
            code = read_points(rows, own);
        sqlite3_finalize(rows);
    }
    if (status == WEIR_OK && code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = weir_reader_error(reader, code, error);
    else if (status == WEIR_OK && own->num_points == 0)
        status = weir_error_set(error, WEIR_ENOTFOUND, 0, "run %" PRId64 " of database %s is not a profile",
                                run.run_id, weir_path_for_message(reader->path).text);
    weir_reader_release(reader);
    if (status == WEIR_OK)
        *report = own;
    else
        weir_profile_free(own);
    return status;
}
