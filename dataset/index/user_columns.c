#include "dataset/index/user_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/index/index_file.h"

static int add_column(user_columns *columns, const char *name, int kind)
{
    weir_column *all = realloc(columns->all, (columns->num + 1) * sizeof *all);
    if (!all)
        return WEIR_ENOMEM;
    columns->all = all;
    char *sql = sqlite3_mprintf("%s, \"%w\"", columns->sql, name), *copy = strdup(name);
    if (!sql || !copy) {
        sqlite3_free(sql);
        free(copy);
        return WEIR_ENOMEM;
    }
    sqlite3_free(columns->sql);
    columns->sql = sql;
    kind = kind >= WEIR_COLUMN_INTEGER && kind <= WEIR_COLUMN_TEXT ? kind : WEIR_COLUMN_TEXT;
    all[columns->num++] = (weir_column){ .name = copy, .kind = (weir_column_kind)kind };
    return WEIR_OK;
}

int weir__user_columns_read(user_columns *columns, sqlite3 *db, const char *path, weir_error *error)
{
    sqlite3_stmt *all = NULL;
    *columns = (user_columns){ .sql = sqlite3_mprintf("") };
    int rc = columns->sql ? WEIR_OK : WEIR_ENOMEM;
    int code = sqlite3_prepare_v2(db, "SELECT name, kind FROM user_column ORDER BY place", -1, &all, NULL);
    while (rc == WEIR_OK && code == SQLITE_OK && (code = sqlite3_step(all)) == SQLITE_ROW) {
        rc = add_column(columns, weir__index_text(all, 0), sqlite3_column_int(all, 1));
        code = SQLITE_OK;
    }
    sqlite3_finalize(all);
    if (rc == WEIR_OK && code != SQLITE_DONE)
        return weir__index_error(error, db, code, "read the index", path);
    return rc == WEIR_OK ? rc : weir_error_set(error, rc, 0, "out of memory");
}

void weir__user_columns_free(user_columns *columns)
{
    for (size_t i = 0; i < columns->num; i++)
        free((void *)(uintptr_t)columns->all[i].name);
    free(columns->all);
    sqlite3_free(columns->sql);
    *columns = (user_columns){ 0 };
}

int weir__user_columns_fill(const user_columns *columns, sqlite3_stmt *row, int first, weir_entry *entry)
{
    if (columns->num == 0)
        return WEIR_OK;
    weir_value *values = calloc(columns->num, sizeof *values);
    for (size_t i = 0; values && i < columns->num; i++) {
        int at = first + (int)i;
        values[i] =
            (weir_value){ .name = columns->all[i].name, .kind = columns->all[i].kind, .real = NAN, .text = "" };
        values[i].is_there = sqlite3_column_type(row, at) != SQLITE_NULL;
        if (!values[i].is_there)
            continue;
        switch (values[i].kind) {
        case WEIR_COLUMN_INTEGER: values[i].integer = sqlite3_column_int64(row, at); break;
        case WEIR_COLUMN_REAL: values[i].real = sqlite3_column_double(row, at); break;
        case WEIR_COLUMN_TEXT: values[i].text = weir__index_text(row, at); break;
        }
    }
    int rc = values ? weir_entry_set_values(entry, values, columns->num) : WEIR_ENOMEM;
    free(values);
    return rc;
}
