/* Predefined SQL queries, so that users need not know the tables. */
#include <weir/dataset.h>

#include <stdlib.h>

#include "dataset/index/index_file.h"
#include "dataset/index/memory_index.h"
#include "dataset/index/user_columns.h"

/* %s is the condition, twice at most; of the clips first the user's columns. Frames are those of the clips' whole files. */
static const char *const questions[] = {
    [WEIR_DATASET_SUMMARY] =
        "SELECT count(*) AS clips, coalesce(sum(status <> 0), 0) AS broken,"
        " coalesce(sum(status = 0 AND (num_errors > 0 OR num_missing > 0)), 0) AS damaged, count(DISTINCT label) AS "
        "classes,"
        " coalesce(sum(num_frames), 0) AS frames, coalesce(sum(" WEIR__CLIP_DURATION "), 0.0) AS duration,"
        " (SELECT coalesce(sum(size_bytes), 0) FROM (SELECT DISTINCT identity, max(size_bytes, 0) AS size_bytes FROM "
        "clip"
        " WHERE %s)) AS size_bytes,"
        " (SELECT value FROM dataset WHERE key = 'complete') = '1' AS complete FROM clip WHERE %s",
    [WEIR_DATASET_CLASSES] =
        "SELECT coalesce(label, '') AS label, count(*) AS clips, sum(status <> 0) AS broken, "
        "sum(num_frames) AS frames,"
        " sum(" WEIR__CLIP_DURATION ") AS duration FROM clip WHERE %s GROUP BY label ORDER BY label",
    [WEIR_DATASET_CODECS] = "SELECT codec, width, height, count(*) AS clips, sum(num_frames) AS frames,"
                            " sum(" WEIR__CLIP_DURATION ") AS duration FROM clip WHERE status = 0 AND (%s) GROUP BY "
                            "1, 2, 3 ORDER BY clips DESC, codec, width, height",
    [WEIR_DATASET_DURATIONS] =
        "WITH RECURSIVE bucket(low, high) AS (SELECT 0.0, 0.25 UNION ALL SELECT high, high * 2 FROM bucket"
        " WHERE high <= (SELECT max(duration) FROM clip) AND high < 1e15)" /* also if that is a text */
        " SELECT low AS from_time, high AS to_time, count(*) AS clips, sum(length) AS duration"
        " FROM bucket, (SELECT *, " WEIR__CLIP_DURATION " AS length FROM clip)"
        " WHERE status = 0 AND duration < 1e15 AND length >= low AND length < high AND (%s) GROUP BY low ORDER BY "
        "low",
    [WEIR_DATASET_BROKEN] =
        "SELECT path, size_bytes, status, num_errors, num_missing,"
        " CASE WHEN status <> 0 THEN message ELSE num_errors || ' damaged packets, ' || num_missing"
        " || ' missing frames' END AS message"
        " FROM clip WHERE (status <> 0 OR num_errors > 0 OR num_missing > 0) AND (%s) GROUP BY identity ORDER BY "
        "identity",
    [WEIR_DATASET_CLIPS] =
        ("SELECT number, path, label, start, end, start_frame, end_frame, size_bytes, codec, width, height, "
         "duration, num_frames,"
         " num_keyframes, num_errors, num_missing, status, message%s FROM clip WHERE %s ORDER BY identity, "
         "occurrence"),
};

static weir_dataset_cell read_cell(sqlite3_stmt *statement, int column)
{
    weir_dataset_cell cell = { .name = sqlite3_column_name(statement, column) };
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: cell.kind = WEIR_CELL_INTEGER; break;
    case SQLITE_FLOAT: cell.kind = WEIR_CELL_REAL; break;
    case SQLITE_NULL: cell.kind = WEIR_CELL_NOTHING; break;
    default: cell.kind = WEIR_CELL_TEXT;
    }
    cell.integer = sqlite3_column_int64(statement, column);
    cell.real = sqlite3_column_double(statement, column);
    if (cell.kind == WEIR_CELL_TEXT)
        cell.text = weir__index_text(statement, column);
    return cell;
}

static int prepare_question(sqlite3 *db, const char *path, weir_dataset_question question, const char *where,
                            sqlite3_stmt **statement, weir_error *error)
{
    char *condition = where ? sqlite3_mprintf("(%s\n)", where) : sqlite3_mprintf("1");
    user_columns columns;
    int rc = weir__user_columns_read(&columns, db, path, error);
    const char *first = question == WEIR_DATASET_CLIPS ? columns.sql : condition;
    char *sql = rc == WEIR_OK && condition ? sqlite3_mprintf(questions[question], first, condition) : NULL;
    weir__user_columns_free(&columns);
    if (rc != WEIR_OK) {
        sqlite3_free(condition);
        return rc;
    }
    const char *tail = "";
    int code = sql ? sqlite3_prepare_v2(db, sql, -1, statement, &tail) : SQLITE_NOMEM;
    if (code == SQLITE_ERROR || (code == SQLITE_OK && *tail))
        rc = weir_error_set(error, WEIR_EINVAL, code, "the condition is not valid for %s: %s", path,
                            code == SQLITE_OK ? "it must be a single expression" : sqlite3_errmsg(db));
    else if (code != SQLITE_OK)
        rc = weir__index_error(error, db, code, "read the index", path);
    sqlite3_free(condition);
    sqlite3_free(sql);
    return rc;
}

/* Closes db. */
static int answer(sqlite3 *db, const char *path, weir_dataset_question question, const char *where,
                  int (*row)(void *self, const weir_dataset_cell *cells, size_t num_cells), void *self,
                  weir_error *error)
{
    sqlite3_stmt *statement = NULL;
    weir_dataset_cell *cells = NULL;
    int rc = prepare_question(db, path, question, where, &statement, error);
    if (rc == WEIR_OK && !(cells = calloc((size_t)sqlite3_column_count(statement), sizeof *cells)))
        rc = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    while (rc == WEIR_OK) {
        int code = sqlite3_step(statement);
        if (code == SQLITE_DONE)
            break;
        if (code != SQLITE_ROW) {
            rc = weir__index_error(error, db, code, "read the index", path);
            break;
        }
        int num_cells = sqlite3_column_count(statement);
        for (int i = 0; i < num_cells; i++)
            cells[i] = read_cell(statement, i);
        rc = row(self, cells, (size_t)num_cells);
    }
    free(cells);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return rc;
}

static int refuse_question(weir_error *error)
{
    return weir_error_set(error, WEIR_EINVAL, 0, "an argument is NULL or not one of the enumeration");
}

int weir_dataset_ask(const char *path, weir_dataset_question question, const char *where,
                     int (*row)(void *self, const weir_dataset_cell *cells, size_t num_cells), void *self,
                     weir_error *error)
{
    sqlite3 *db;
    if (!path || !row || (unsigned)question > WEIR_DATASET_CLIPS)
        return refuse_question(error);
    int rc = weir__index_open_reader(path, &db, error);
    return rc == WEIR_OK ? answer(db, path, question, where, row, self, error) : rc;
}

int weir_dataset_ask_memory(const weir_dataset_memory *memory, weir_dataset_question question, const char *where,
                            int (*row)(void *self, const weir_dataset_cell *cells, size_t num_cells), void *self,
                            weir_error *error)
{
    sqlite3 *db;
    if (!memory || !row || (unsigned)question > WEIR_DATASET_CLIPS)
        return refuse_question(error);
    int rc = weir__memory_index_open(memory, &db, error);
    return rc == WEIR_OK ? answer(db, WEIR__MEMORY_INDEX_NAME, question, where, row, self, error) : rc;
}
