#include "stats/schema/database.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include <weir/clock.h>

#include "common/replacement.h"
#include "stats/schema/database_fork.h"
#include "stats/schema/database_path.h"
#include "stats/schema/schema.h"
#include "stats/schema/tables.h"

enum {
    BUSY_TIMEOUT_MS = 250, /* how long SQLite itself waits for a lock, per statement */
    READER_BUSY_TIMEOUT_MS = 10000,
    OPEN_RETRY_MS = 20,
};

int weir__database_status(int code)
{
    if (code == SQLITE_READONLY_DBMOVED)
        return WEIR_ENOTFOUND;
    switch (code & 0xff) {
    case SQLITE_OK: return WEIR_OK;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return WEIR_EBUSY;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH: return WEIR_EACCESS;
    case SQLITE_NOMEM: return WEIR_ENOMEM;
    case SQLITE_INTERRUPT: return WEIR_ESTOPPED;
    case SQLITE_CANTOPEN:
    case SQLITE_FULL:
    case SQLITE_IOERR: return WEIR_EIO;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return WEIR_EDATA;
    default: return WEIR_EDATABASE;
    }
}

const char *weir__database_text(sqlite3 *db, int code)
{
    if (code == SQLITE_READONLY_DBMOVED)
        return "it was deleted or replaced while it was open";
    /* The connection has more detail ("no such table: run") than the code, but only for its last call. */
    return db && sqlite3_extended_errcode(db) == code ? sqlite3_errmsg(db) : sqlite3_errstr(code);
}

const char *weir__database_hint(int code)
{
    if (code == SQLITE_READONLY_DBMOVED)
        return "; do not touch it while a run writes to it";
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "; another program holds it: end that one, or give another path";
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN: return "; make it and its folder writable, or give another path";
    case SQLITE_FULL: return "; free some room there, or give another path";
    case SQLITE_NOTADB: return "; give the path of a database that weir has made";
    case SQLITE_CORRUPT: return "; weir check may show more, and sqlite3's .recover can save what is left";
    case SQLITE_ERROR: return "; weir check shows what is wrong with it"; /* a table or a column is missing */
    default: return "";
    }
}

int weir__database_error(weir_error *error, sqlite3 *db, int code, const char *what, const char *path)
{
    int system_code = db ? sqlite3_system_errno(db) : 0;
    int primary = code & 0xff;
    const char *system_text =
        system_code && (primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR) ? strerror(system_code) : "";
    return weir_error_set(error, weir__database_status(code), code, "%s database %s: %s%s%s%s", what,
                          weir__path_for_message(path).text, weir__database_text(db, code), *system_text ? ": " : "",
                          system_text, weir__database_hint(code));
}

/* `name` is for SQLite, `path` for messages. */
static int open_connection(const char *name, int flags, sqlite3 **db, const char *path, weir_error *error)
{
    if (!sqlite3_threadsafe())
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "this SQLite was built without threads; use another build");
    weir__database_watch_forks();
    /* NOMUTEX: each connection of ours belongs to one thread at a time. */
    int code = sqlite3_open_v2(name, db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (code != SQLITE_OK)
        return weir__database_error(error, *db, code, "cannot open", path);
    /* The file may be hostile: its views, triggers and expressions must not do anything beyond it. */
    sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return WEIR_OK;
}

/* Opens `file`, even if it is a special name for SQLite, such as ":memory:" or "file:…". `path` is for messages. */
static int open_database_file(const char *file, int flags, sqlite3 **db, const char *path, weir_error *error)
{
    char *name = sqlite3_mprintf("%s%s", *file == '/' ? "" : "./", file);
    if (!name)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int status = open_connection(name, flags, db, path, error);
    sqlite3_free(name);
    return status;
}

/* The size of the log (-wal) of the database at `path`; -1 = there is none. */
static int64_t log_size(const char *path)
{
    struct stat info;
    char *log_path = sqlite3_mprintf("%s-wal", path);
    bool is_there = log_path && stat(log_path, &info) == 0;
    sqlite3_free(log_path);
    return is_there ? (int64_t)info.st_size : -1;
}

/* A reader makes the files -wal and -shm, but may not remove them. A connection that may write does so when it is closed,
   unless somebody else uses them. */
static void remove_empty_log(const char *path)
{
    sqlite3 *db;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK)
        sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    sqlite3_close(db);
}

void weir__database_close(sqlite3 *db)
{
    const char *name = db && sqlite3_db_readonly(db, "main") == 1 ? sqlite3_db_filename(db, "main") : NULL;
    char *path = name ? sqlite3_mprintf("%s", name) : NULL;
    int code = sqlite3_close(db);
    (void)code; /* SQLITE_BUSY means an unfinalized statement: a leak, which the tests' sanitizer reports */
    if (path && log_size(path) == 0)
        remove_empty_log(path);
    sqlite3_free(path);
}

typedef struct identity {
    int application;
    int version;
    int num_tables;
    int num_spdl; /* tables that SPDL makes */
} identity;

/* In one statement: another process may be creating the schema. */
static int identify_database(sqlite3 *db, identity *found)
{
    static const char sql[] = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema), (SELECT "
                              "count(*) FROM sqlite_schema"
                              " WHERE type = 'table' AND name IN ('task_stats', 'queue_stats', 'event_stats'))"
                              " FROM pragma_application_id, pragma_user_version";
    sqlite3_stmt *row;
    int code = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
    if (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
        *found = (identity){ sqlite3_column_int(row, 0), sqlite3_column_int(row, 1), sqlite3_column_int(row, 2),
                             sqlite3_column_int(row, 3) };
        code = SQLITE_OK;
    }
    sqlite3_finalize(row);
    return code;
}

static bool is_empty(const identity *found)
{
    return found->application == 0 && found->version == 0 && found->num_tables == 0;
}

/* SPDL's databases do not identify themselves. */
static bool is_spdl(const identity *found)
{
    return found->application == 0 && found->version == 0 && found->num_spdl == 3;
}

/* Checks that it is a weir database with the schema of this version. */
static int check_identity(const identity *found, const char *path, weir_error *error)
{
    const weir_path_text text = weir__path_for_message(path);
    if (found->application != WEIR_SCHEMA_APPLICATION)
        return weir_error_set(error, WEIR_EDATA, 0, "database %s belongs to another program; give another path",
                              text.text);
    if (found->version > WEIR_SCHEMA_VERSION)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "database %s has schema %d, and this weir knows up to %d; use a newer weir, or give "
                              "another path",
                              text.text, found->version, WEIR_SCHEMA_VERSION);
    if (found->version < WEIR_SCHEMA_VERSION)
        return weir_error_set(
            error, WEIR_EUNSUPPORTED, 0,
            "database %s has schema %d of an earlier weir, and this one reads %d; use the weir that "
            "recorded it, or record again in another file",
            text.text, found->version, WEIR_SCHEMA_VERSION);
    return WEIR_OK;
}

/* The statements that make the tables and columns that are missing, since columns are added without a new version of the
   schema; NULL if there are none. */
static int find_missing(sqlite3 *db, char **sql)
{
    sqlite3_str *text = sqlite3_str_new(db);
    int code = weir__tables_put_missing(db, text);
    if (code == SQLITE_OK)
        code = sqlite3_str_errcode(text);
    *sql = sqlite3_str_finish(text);
    return code;
}

/* Makes what is missing: everything, or what was added since. */
static int complete_database(sqlite3 *db, const identity *found)
{
    char *missing = NULL;
    int code = is_empty(found) ? sqlite3_exec(db, weir__schema_create, NULL, NULL, NULL) : SQLITE_OK;
    if (code == SQLITE_OK)
        code = find_missing(db, &missing);
    if (code == SQLITE_OK && missing)
        code = sqlite3_exec(db, missing, NULL, NULL, NULL);
    sqlite3_free(missing);
    const char *const *const more[] = { weir__schema_foreign, weir__schema_views };
    for (size_t i = 0; i < 2 && is_empty(found); i++)
        for (const char *const *one = more[i]; *one && code == SQLITE_OK; one++)
            code = sqlite3_exec(db, *one, NULL, NULL, NULL);
    return code;
}

/* Another process may be doing the same: the second one finds it done. */
static int make_schema(sqlite3 *db)
{
    int code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return code;
    identity found = { 0 };
    code = identify_database(db, &found);
    if (code == SQLITE_OK)
        code = complete_database(db, &found);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    if (code != SQLITE_OK && !sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

/* How SQLite waits for the disk. */
typedef enum sync_mode {
    SYNC_AT_CHECKPOINTS, /* a commit survives the end of the process; only a power failure can lose the last ones */
    SYNC_BY_CALLER,      /* of a file without a name yet: sync_file() before it gets one is enough */
    SYNC_NEVER,          /* of memory, which has no log either */
} sync_mode;

static int adopt_database(sqlite3 *db, const identity *found, sync_mode mode)
{
    static const char *const pragmas[] = {
        [SYNC_AT_CHECKPOINTS] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
        [SYNC_BY_CALLER] = "PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL",
        [SYNC_NEVER] = "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY",
    };
    int code = sqlite3_exec(db, pragmas[mode], NULL, NULL, NULL);
    char *missing = NULL;
    bool is_new = found->version != WEIR_SCHEMA_VERSION;
    if (code == SQLITE_OK && !is_new)
        code = find_missing(db, &missing);
    if (code == SQLITE_OK && (is_new || missing))
        code = make_schema(db);
    sqlite3_free(missing);
    return code;
}

/* One attempt to create or complete the schema. *code is SQLite's, or SQLITE_OK if the status is enough. */
static int prepare_writer(sqlite3 *db, const char *path, sync_mode mode, int *code, weir_error *error)
{
    identity found = { 0 };
    *code = identify_database(db, &found);
    if (*code == SQLITE_OK && !is_empty(&found)) {
        int status = check_identity(&found, path, error);
        if (status != WEIR_OK)
            return status;
    }
    if (*code == SQLITE_OK && sqlite3_db_readonly(db, "main"))
        *code = SQLITE_READONLY;
    if (*code == SQLITE_OK)
        *code = adopt_database(db, &found, mode);
    if (*code == SQLITE_OK)
        *code = identify_database(db, &found);
    if (*code == SQLITE_OK)
        return check_identity(&found, path, error);
    return weir__database_status(*code);
}

static int prepare_writer_until(sqlite3 *db, const char *path, sync_mode mode, int64_t deadline_ns, weir_error *error)
{
    for (;;) {
        int code;
        int status = prepare_writer(db, path, mode, &code, error);
        if (code == SQLITE_OK)
            return status;
        if ((code & 0xff) != SQLITE_BUSY || weir_clock_ns() >= deadline_ns)
            return weir__database_error(error, db, code, "cannot write to", path);
        uv_sleep(OPEN_RETRY_MS); /* a lock has no notification */
    }
}

/* -- creation */

typedef struct new_database {
    const char *path; /* that it gets */
    int64_t deadline_ns;
    int (*fill)(void *self, sqlite3 *db);
    void *self;
    weir_error *error;
} new_database;

static int stop_for_signal(void *self)
{
    (void)self;
    return weir__signal_waits();
}

/* Waits for the disk; which is SQLITE_FCNTL_FILE_POINTER or SQLITE_FCNTL_JOURNAL_POINTER. SQLite's result. */
static int sync_file(sqlite3 *db, int which)
{
    sqlite3_file *file = NULL;
    int code = sqlite3_file_control(db, "main", which, &file);
    bool is_open = code == SQLITE_OK && file && file->pMethods;
    return is_open ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : code;
}

int weir__database_sync_log(sqlite3 *db)
{
    return sync_file(db, SQLITE_FCNTL_JOURNAL_POINTER);
}

static int make_new(void *self, const char *path_before)
{
    const new_database *wanted = self;
    sqlite3 *db = NULL;
    int status = open_database_file(path_before, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, &db,
                                    wanted->path, wanted->error);
    if (status == WEIR_OK)
        status = prepare_writer_until(db, wanted->path, SYNC_BY_CALLER, wanted->deadline_ns, wanted->error);
    if (status == WEIR_OK && wanted->fill) {
        sqlite3_progress_handler(db, 10000, stop_for_signal, NULL);
        status = wanted->fill(wanted->self, db);
        sqlite3_progress_handler(db, 0, NULL, NULL);
    }
    if (status == WEIR_OK) { /* closing would not tell that it fails */
        int code = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        if (code == SQLITE_OK)
            code = sync_file(db, SQLITE_FCNTL_FILE_POINTER); /* all that the log held is in it */
        if (code != SQLITE_OK)
            status = weir__database_error(wanted->error, db, code, "cannot write to", wanted->path);
    }
    weir__database_close(db);
    return status;
}

int weir__database_make(const char *path, int64_t deadline_ns, int (*fill)(void *self, sqlite3 *db), void *self,
                        bool *was_made, weir_error *error)
{
    new_database wanted = { path, deadline_ns, fill, self, error };
    int result = weir__make_beside(path, make_new, &wanted);
    *was_made = result == 0;
    if (result <= 0 || result == EEXIST)
        return result < 0 ? result : WEIR_OK;
    return weir_error_set(error, result == ENOMEM ? WEIR_ENOMEM : WEIR_EIO, -result,
                          "cannot write to database %s: %s", weir__path_for_message(path).text, strerror(result));
}

static bool has_no_run(sqlite3 *db)
{
    sqlite3_stmt *row = NULL;
    int code = sqlite3_prepare_v2(db, "SELECT 1 FROM run LIMIT 1", -1, &row, NULL);
    bool has_none = code == SQLITE_OK && sqlite3_step(row) == SQLITE_DONE;
    sqlite3_finalize(row);
    return has_none;
}

/*
 * SQLite syncs the header of a log before it writes frames: a log that is used again still holds the frames of its
 * last use. The log of a file that was just made holds none: without its header, it counts as empty. So the header is
 * written here, with one frame that changes nothing, and without a sync. If somebody else has been faster, SQLite
 * writes the header as ever.
 */
static void begin_new_log(sqlite3 *db)
{
    static const char begin[] = "PRAGMA synchronous = OFF; BEGIN IMMEDIATE";
    char write[64];
    sqlite3_snprintf(sizeof write, write, "PRAGMA user_version = %d; COMMIT", WEIR_SCHEMA_VERSION);
    if (sqlite3_exec(db, begin, NULL, NULL, NULL) == SQLITE_OK && log_size(sqlite3_db_filename(db, "main")) == 0 &&
        has_no_run(db))
        sqlite3_exec(db, write, NULL, NULL, NULL);
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_exec(db, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
}

int weir__database_open_writer(const char *path, int64_t deadline_ns, sqlite3 **db, weir_error *error)
{
    bool was_made = false;
    *db = NULL;
    int status = weir__path_prepare_writing(path, error);
    if (status == WEIR_OK && access(path, F_OK) != 0)
        status = weir__database_make(path, deadline_ns, NULL, NULL, &was_made, error);
    if (status == WEIR_OK)
        status = open_database_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, db, path,
                                    error); /* ATTACH takes URIs */
    if (status != WEIR_OK)
        goto fail;

    sqlite3_busy_timeout(*db, BUSY_TIMEOUT_MS);
    status = prepare_writer_until(*db, path, SYNC_AT_CHECKPOINTS, deadline_ns, error);
    if (status == WEIR_OK && was_made)
        begin_new_log(*db);
    if (status == WEIR_OK)
        return WEIR_OK;

fail:
    weir__database_close(*db);
    *db = NULL;
    return status;
}

int weir__database_make_memory(const char *name, sqlite3 **db, const char *path, weir_error *error)
{
    *db = NULL;
    int status = open_connection(name, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, db, path, error);
    if (status == WEIR_OK) {
        sqlite3_busy_timeout(*db, BUSY_TIMEOUT_MS);
        status = prepare_writer_until(*db, path, SYNC_NEVER, 0, error);
    }
    if (status == WEIR_OK)
        return WEIR_OK;
    weir__database_close(*db);
    *db = NULL;
    return status;
}

/* -- reading */

/*
 * A database in WAL mode needs more files in its folder, which cannot be created in a read-only folder. If there is
 * no log, these files would be empty and no writer is active. Then the file can be opened as immutable.
 */
static int reopen_immutable(const char *path, sqlite3 **db, weir_error *error)
{
    char *log_path = sqlite3_mprintf("%s-wal", path);
    char *name = weir__path_as_uri(path, "immutable=1");
    struct stat log;
    int status = WEIR_OK;
    if (!log_path || !name)
        status = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    else if (stat(log_path, &log) == 0 && log.st_size > 0)
        status = weir_error_set(error, WEIR_EACCESS, 0,
                                "cannot read database %s: its log (the file that ends in -wal) cannot be read in a "
                                "folder that is not writable; copy both files to another folder",
                                weir__path_for_message(path).text);
    else {
        weir__database_close(*db);
        *db = NULL;
        status = open_connection(name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, db, path, error);
    }
    sqlite3_free(log_path);
    free(name);
    return status;
}

static bool lacks_its_files(int code)
{
    return (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY;
}

static int identify_for_reading(const char *path, sqlite3 **db, identity *found, weir_error *error)
{
    sqlite3_busy_timeout(*db, READER_BUSY_TIMEOUT_MS);
    int code = identify_database(*db, found);
    if (lacks_its_files(code)) {
        int status = reopen_immutable(path, db, error);
        if (status != WEIR_OK)
            return status;
        code = identify_database(*db, found);
    }
    return code == SQLITE_OK ? WEIR_OK : weir__database_error(error, *db, code, "cannot read", path);
}

int weir__database_open_reader(const char *path, sqlite3 **db, int *schema, weir_error *error)
{
    *db = NULL;
    identity found = { 0 };
    int status = weir__path_prepare_reading(path, error);
    if (status == WEIR_OK)
        status = open_database_file(path, SQLITE_OPEN_READONLY, db, path, error);
    if (status == WEIR_OK)
        status = identify_for_reading(path, db, &found, error);
    if (status == WEIR_OK && is_empty(&found))
        status =
            weir_error_set(error, WEIR_EDATA, 0, "database %s is empty; give the path of one that a run has written",
                           weir__path_for_message(path).text);
    if (status == WEIR_OK && !is_spdl(&found))
        status = check_identity(&found, path, error);
    *schema = is_spdl(&found) ? WEIR_SCHEMA_SPDL : found.version;
    if (status == WEIR_OK)
        return WEIR_OK;

    weir__database_close(*db);
    *db = NULL;
    return status;
}

int weir__database_open_memory(const char *name, sqlite3 **db, int *schema, const char *path, weir_error *error)
{
    *db = NULL;
    *schema = WEIR_SCHEMA_VERSION; /* this library has made it */
    int status = open_connection(name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, db, path, error);
    if (status == WEIR_OK) {
        sqlite3_busy_timeout(*db, READER_BUSY_TIMEOUT_MS);
        return WEIR_OK;
    }
    weir__database_close(*db);
    *db = NULL;
    return status;
}
