#include "dataset/index/index_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/output.h>

#include "common/replacement.h"
#include "common/sqlite_name.h"

/* "weix" */
#define APPLICATION "2003134840"
enum { VERSION = 5, BUSY_MS = 10000 };

/* What an older version has is made anew: all files are read again. It may have secrets of URLs, which must not stay in
   free pages. The packets are in a separate table, so that a scan of the clips does not read them. */
static const char schema[] =
    "PRAGMA secure_delete = ON;"
    "BEGIN IMMEDIATE;"
    "DROP TABLE IF EXISTS clip; DROP TABLE IF EXISTS class; DROP TABLE IF EXISTS packets;"
    "DROP TABLE IF EXISTS user_column;"
    "CREATE TABLE IF NOT EXISTS dataset (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "DELETE FROM dataset WHERE key <> 'root';"
    "CREATE TABLE clip ("
    " clip_id INTEGER PRIMARY KEY,"
    " number INTEGER,"               /* in the order of (identity, occurrence); NULL = broken, or not numbered yet */
    " identity TEXT NOT NULL,"       /* the address of weir_identity; of files in a folder relative to the root */
    " occurrence INTEGER NOT NULL,"  /* among the rows of a list that have this identity, from 0 */
    " path TEXT NOT NULL,"           /* relative to the root, if there is one; of a URL without its secrets */
    " is_redacted INTEGER NOT NULL," /* 1 = the path had secrets: its address is in the list */
    " label TEXT,"                   /* NULL = none */
    " start REAL,"                   /* s; NULL = the start of the file */
    " end REAL,"                     /* NULL = the end of the file */
    " start_frame INTEGER,"          /* instead: the number of its first frame */
    " end_frame INTEGER,"            /* and of the first one behind it */
    " size_bytes INTEGER NOT NULL,"  /* from here on, of the file. -1 = unknown */
    " mtime_ns INTEGER NOT NULL,"    /* since 1970 */
    " validator TEXT,"               /* of a URL: what its server says of its version; NULL = nothing */
    " codec TEXT NOT NULL,"
    " width INTEGER NOT NULL,"
    " height INTEGER NOT NULL,"
    " duration REAL NOT NULL," /* s */
    " num_frames INTEGER NOT NULL,"
    " num_keyframes INTEGER NOT NULL,"
    " num_errors INTEGER NOT NULL," /* damaged packets */
    " status INTEGER NOT NULL,"     /* weir_status: 0 = can be used */
    " library_code INTEGER NOT NULL,"
    " message TEXT NOT NULL,"
    " archive_length INTEGER NOT NULL," /* see weir_entry */
    " offset INTEGER NOT NULL,"
    " num_missing INTEGER NOT NULL," /* frames that the header announces and the file lacks */
    " UNIQUE (identity, occurrence));"
    "CREATE TABLE class (name TEXT PRIMARY KEY) WITHOUT ROWID;"
    "CREATE TABLE packets (clip_id INTEGER PRIMARY KEY, packets BLOB NOT NULL);" /* of the identity's occurrence 0 */
    "CREATE TABLE user_column (place INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind INTEGER NOT NULL);"
    "PRAGMA application_id = " APPLICATION ";"
    "PRAGMA user_version = 5;"
    "COMMIT;";

static int status_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_OK: return WEIR_OK;
    case SQLITE_NOMEM: return WEIR_ENOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return WEIR_EBUSY;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT: return WEIR_EDATA;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN: return WEIR_EACCESS;
    case SQLITE_FULL:
    case SQLITE_IOERR: return WEIR_EIO;
    default: return WEIR_EDATABASE;
    }
}

int weir__index_error(weir_error *error, sqlite3 *db, int code, const char *what, const char *path)
{
    int system_code = db && (code & 0xff) == SQLITE_CANTOPEN ? sqlite3_system_errno(db) : 0; /* says more */
    return weir_error_set(error, status_of(code), code, "cannot %s %s: %s", what, path,
                          system_code ? strerror(system_code)
                          : db        ? sqlite3_errmsg(db)
                                      : sqlite3_errstr(code));
}

int weir__index_run(sqlite3 *db, const char *sql, const char *path, weir_error *error)
{
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? WEIR_OK : weir__index_error(error, db, code, "write to", path);
}

static int read_key_number(sqlite3 *db, const char *sql, int64_t *number)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

/* Is it an index of a supported version? *found: which; 0 = it is a database without tables. */
static int check_version(sqlite3 *db, const char *path, int64_t *found, weir_error *error)
{
    int64_t application = 0, version = 0, num_tables = 0;
    int code = read_key_number(db, "PRAGMA application_id", &application);
    if (code == SQLITE_OK)
        code = read_key_number(db, "PRAGMA user_version", &version);
    if (code == SQLITE_OK)
        code = read_key_number(db, "SELECT count(*) FROM sqlite_master", &num_tables);
    if (code != SQLITE_OK)
        return weir__index_error(error, db, code, "read the index", path);
    *found = version;
    if (application == 0 && num_tables == 0)
        return *found = 0, WEIR_OK;
    if (application != strtol(APPLICATION, NULL, 10))
        return weir_error_set(error, WEIR_EDATA, 0,
                              "%s is another program's database, not an index made by weir index", path);
    if (version > VERSION)
        return weir_error_set(
            error, WEIR_EUNSUPPORTED, 0,
            "the index %s has version %d, this weir supports %d: update weir, or build the index again", path,
            (int)version, VERSION);
    return WEIR_OK;
}

/* `path` is for messages. */
static int open_file(const char *file, int flags, sqlite3 **db, const char *path, weir_error *error)
{
    int code = sqlite3_open_v2(file, db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(*db, BUSY_MS);
        return WEIR_OK;
    }
    int rc = weir__index_error(error, *db, code, "open the index", path);
    sqlite3_close(*db);
    *db = NULL;
    return rc;
}

static int give_up(sqlite3 **db, int rc)
{
    sqlite3_close(*db);
    *db = NULL;
    return rc;
}

int weir__index_open_memory(sqlite3 **db)
{
    int code = sqlite3_open(":memory:", db);
    return code == SQLITE_OK ? sqlite3_exec(*db, schema, NULL, NULL, NULL) : code;
}

/* Creates the schema, if needed. */
static int create_tables(sqlite3 *db, const char *path, weir_error *error)
{
    int64_t version = 0;
    int rc = check_version(db, path, &version, error);
    if (rc == WEIR_OK)
        rc = weir__index_run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;", path, error);
    if (rc == WEIR_OK && version < VERSION)
        rc = weir__index_run(db, schema, path, error);
    return rc;
}

typedef struct new_index {
    const char *path; /* that it gets */
    weir_error *error;
} new_index;

static int make_new(void *self, const char *path_before)
{
    const new_index *wanted = self;
    sqlite3 *db = NULL;
    int rc = open_file(path_before, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, wanted->path, wanted->error);
    if (rc == WEIR_OK)
        rc = create_tables(db, wanted->path, wanted->error);
    if (rc == WEIR_OK) /* closing would not tell that it fails */
        rc = weir__index_run(db, "PRAGMA wal_checkpoint(TRUNCATE)", wanted->path, wanted->error);
    sqlite3_close(db);
    return rc;
}

int weir__index_open_writer(const char *path, sqlite3 **db, weir_error *error)
{
    int result = 0;
    *db = NULL;
    int status = weir_output_check(path, WEIR_OUTPUT_INDEX, NULL, error);
    if (status != WEIR_OK)
        return status;
    if (weir__is_planted(path))
        return weir_error_set(error, WEIR_EACCESS, 0, "cannot open the index %s: it belongs to another user", path);
    const char *stray = weir__stray_beside(path);
    if (stray)
        return weir_error_set(error, WEIR_EACCESS, 0,
                              "cannot write to the index %s: the file %s%s beside it belongs to another one; remove "
                              "that, or give another path",
                              path, path, stray);
    if (access(path, F_OK) != 0)
        result = weir__make_beside(path, make_new, &(new_index){ path, error });
    if (result < 0)
        return result;
    if (result > 0 && result != EEXIST) /* or somebody else was faster */
        return weir_error_set(error, result == ENOMEM ? WEIR_ENOMEM : WEIR_EACCESS, -result,
                              "cannot open the index %s: %s", path, strerror(result));
    int rc = open_file(path, SQLITE_OPEN_READWRITE, db, path, error);
    if (rc == WEIR_OK)
        rc = create_tables(*db, path, error);
    return rc == WEIR_OK ? rc : give_up(db, rc);
}

int weir__index_open_reader(const char *path, sqlite3 **db, weir_error *error)
{
    int64_t version = 0;
    *db = NULL;
    if (is_sqlite_name(path))
        return weir_error_set(error, WEIR_EINVAL, 0, SQLITE_NAME_REFUSED, path, path);
    if (access(path, F_OK) != 0)
        return weir_error_set(error, WEIR_ENOTFOUND, -errno, "cannot open the index %s: %s", path, strerror(errno));
    int rc = open_file(path, SQLITE_OPEN_READONLY, db, path, error);
    if (rc == WEIR_OK)
        rc = check_version(*db, path, &version, error);
    if (rc == WEIR_OK && version < VERSION)
        rc = weir_error_set(error, WEIR_EDATA, 0,
                            version == 0 ? "%s is empty: build it with weir index"
                                         : "the index %s is of an older version: run weir index again",
                            path);
    return rc == WEIR_OK ? rc : give_up(db, rc);
}

int weir__index_create_shared(const char *name, sqlite3 **db, const char *path, weir_error *error)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
    int rc = open_file(name, flags, db, path, error);
    if (rc == WEIR_OK)
        rc = weir__index_run(*db, "PRAGMA journal_mode = MEMORY;", path, error);
    if (rc == WEIR_OK)
        rc = weir__index_run(*db, schema, path, error);
    return rc == WEIR_OK ? rc : give_up(db, rc);
}

int weir__index_open_shared(const char *name, sqlite3 **db, const char *path, weir_error *error)
{
    return open_file(name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, db, path, error);
}

const char *weir__index_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

char *weir__index_get(sqlite3 *db, const char *key)
{
    sqlite3_stmt *statement;
    char *value = NULL;
    if (sqlite3_prepare_v2(db, "SELECT value FROM dataset WHERE key = ?", -1, &statement, NULL) != SQLITE_OK)
        return NULL;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW)
        value = strdup(weir__index_text(statement, 0));
    sqlite3_finalize(statement);
    return value;
}

int weir__index_set(sqlite3 *db, const char *key, const char *value, const char *path, weir_error *error)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO dataset VALUES (?, ?)", -1, &statement, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, value, -1, SQLITE_STATIC);
        code = sqlite3_step(statement);
        sqlite3_finalize(statement);
    }
    return code == SQLITE_DONE ? WEIR_OK : weir__index_error(error, db, code, "write to", path);
}
