#include "dataset/index/build_columns.h"

#include <string.h>

#include "dataset/index/index_file.h"
#include "dataset/index/user_columns.h"
#include "stages/memory/column_values.h"

enum { MAX_COLUMNS = 200 }; /* SQLite's expressions have a depth of at most 1000 */

/* Adds each to an empty table: SQLite compares names in its own way. */
static int check_names(const weir_dataset_build_options *options, weir_error *error)
{
    sqlite3 *db = NULL;
    int code = weir__index_open_memory(&db), rc = WEIR_OK;
    for (size_t i = 0; rc == WEIR_OK && code == SQLITE_OK && i < options->num_columns; i++) {
        const char *name = options->columns[i].name;
        char *sql = sqlite3_mprintf("ALTER TABLE clip ADD COLUMN \"%w\"", name);
        int added = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
        sqlite3_free(sql);
        if (added == SQLITE_ERROR)
            rc = weir_error_set(
                error, WEIR_EINVAL, 0,
                "the column \"%s\" of the list has the name of a column of the index, or differs from another column "
                "only in upper and lower case: rename it",
                name);
        else
            code = added;
    }
    if (rc == WEIR_OK && code != SQLITE_OK)
        rc = weir_error_set(error, WEIR_ENOMEM, code, "out of memory");
    sqlite3_close(db);
    return rc;
}

int weir__build_check_columns(const weir_dataset_build_options *options, weir_error *error)
{
    if (options->num_columns && (!options->paths || options->tar))
        return weir_error_set(error, WEIR_EINVAL, 0, "only a list of files can have columns, not %s",
                              options->tar ? "archives" : "a folder");
    if (options->num_columns > MAX_COLUMNS)
        return weir_error_set(error, WEIR_EINVAL, 0, "%zu columns are more than the %d that an index can have",
                              options->num_columns, MAX_COLUMNS);
    int rc = weir__columns_check(options->columns, options->num_columns, options->num_paths, error);
    return rc == WEIR_OK && options->num_columns ? check_names(options, error) : rc;
}

static bool is_same(const user_columns *stored, const weir_dataset_build_options *options)
{
    bool same = stored->num == options->num_columns;
    for (size_t i = 0; same && i < stored->num; i++)
        same = stored->all[i].kind == options->columns[i].kind &&
               strcmp(stored->all[i].name, options->columns[i].name) == 0;
    return same;
}

/* Runs the statement with a name in it, and frees it. */
static int run_with(index_build *self, char *sql)
{
    int rc = sql ? weir__index_run(self->db, sql, self->path, self->error)
                 : weir_error_set(self->error, WEIR_ENOMEM, 0, "out of memory");
    sqlite3_free(sql);
    return rc;
}

static int change_table(index_build *self, const user_columns *stored)
{
    const weir_dataset_build_options *options = self->options;
    int rc = WEIR_OK;
    self->has_changed = true;
    for (size_t i = 0; rc == WEIR_OK && i < stored->num; i++)
        rc = run_with(self, sqlite3_mprintf("ALTER TABLE clip DROP COLUMN \"%w\"", stored->all[i].name));
    if (rc == WEIR_OK)
        rc = weir__index_run(self->db, "DELETE FROM user_column", self->path, self->error);
    for (size_t i = 0; rc == WEIR_OK && i < options->num_columns; i++) {
        const char *name = options->columns[i].name;
        rc =
            run_with(self, sqlite3_mprintf("ALTER TABLE clip ADD COLUMN \"%w\"; INSERT INTO user_column (name, kind) "
                                           "VALUES ('%q', %d)",
                                           name, name, (int)options->columns[i].kind));
    }
    return rc;
}

/* UPDATE clip SET "a" = ?1, "b" = ?2 WHERE identity = ?3 AND occurrence = ?4 AND ("a" IS NOT ?1 OR "b" IS NOT ?2) */
static char *make_update(const weir_dataset_build_options *options)
{
    char *sets = sqlite3_mprintf(""), *differ = sqlite3_mprintf("");
    for (size_t i = 0; sets && differ && i < options->num_columns; i++) {
        const char *name = options->columns[i].name;
        char *longer = sqlite3_mprintf("%s%s\"%w\" = ?%d", sets, i ? ", " : "", name, (int)i + 1);
        sqlite3_free(sets);
        sets = longer;
        longer = sqlite3_mprintf("%s%s\"%w\" IS NOT ?%d", differ, i ? " OR " : "", name, (int)i + 1);
        sqlite3_free(differ);
        differ = longer;
    }
    int next = (int)options->num_columns + 1;
    char *sql = sets && differ
                    ? sqlite3_mprintf("UPDATE clip SET %s WHERE identity = ?%d AND occurrence = ?%d AND (%s)", sets,
                                      next, next + 1, differ)
                    : NULL;
    sqlite3_free(sets);
    sqlite3_free(differ);
    return sql;
}

static void bind_value(sqlite3_stmt *put, int at, const weir_value *value)
{
    if (!value->is_there)
        sqlite3_bind_null(put, at);
    else if (value->kind == WEIR_COLUMN_INTEGER)
        sqlite3_bind_int64(put, at, value->integer);
    else if (value->kind == WEIR_COLUMN_REAL)
        sqlite3_bind_double(put, at, value->real);
    else
        sqlite3_bind_text(put, at, value->text, -1, SQLITE_STATIC);
}

static int put_group(index_build *self, sqlite3_stmt *put, uint64_t group)
{
    const weir_dataset_build_options *options = self->options;
    const clip_name name = weir__build_name(&self->look, group, NULL);
    int code = SQLITE_DONE;
    for (size_t row = 0; code == SQLITE_DONE && row < weir__path_groups_count(&self->look.groups, group); row++) {
        const listed_row *listed = weir__path_groups_row(&self->look.groups, group, row);
        int at = 1;
        for (size_t i = 0; i < options->num_columns; i++) {
            weir_value value = weir__column_value(&options->columns[i], listed->place);
            bind_value(put, at++, &value);
        }
        sqlite3_bind_text(put, at++, name.identity, -1, SQLITE_STATIC);
        sqlite3_bind_int64(put, at, (int64_t)row);
        code = sqlite3_step(put);
        sqlite3_reset(put);
        self->has_changed |= sqlite3_changes(self->db) > 0;
    }
    return code == SQLITE_DONE ? WEIR_OK : weir__index_error(self->error, self->db, code, "write to", self->path);
}

static int put_values(index_build *self)
{
    sqlite3_stmt *put = NULL;
    char *sql = make_update(self->options);
    int code = sql ? sqlite3_prepare_v2(self->db, sql, -1, &put, NULL) : SQLITE_NOMEM;
    int rc = code == SQLITE_OK ? WEIR_OK : weir__index_error(self->error, self->db, code, "write to", self->path);
    for (uint64_t group = 0; rc == WEIR_OK && group < self->look.groups.num_groups; group++)
        rc = put_group(self, put, group);
    sqlite3_finalize(put);
    sqlite3_free(sql);
    return rc;
}

int weir__build_put_columns(index_build *self)
{
    user_columns stored;
    int rc = weir__user_columns_read(&stored, self->db, self->path, self->error);
    if (rc == WEIR_OK && !is_same(&stored, self->options))
        rc = change_table(self, &stored);
    if (rc == WEIR_OK && self->options->num_columns)
        rc = put_values(self);
    weir__user_columns_free(&stored);
    return rc;
}
