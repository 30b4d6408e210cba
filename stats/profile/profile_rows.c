/* The report as a run of its own, in one transaction. */
#include <weir/profile.h>

#include <stdlib.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/version.h>

#include "database.h"
#include "process_info.h"

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
