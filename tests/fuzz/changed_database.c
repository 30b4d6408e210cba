#include "tests/fuzz/changed_database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGE_BYTES = 12, MAX_CHANGES = 64 };

static void copy_pages(sqlite3 *to, sqlite3 *from)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    require(backup && sqlite3_backup_step(backup, -1) == SQLITE_DONE && sqlite3_backup_finish(backup) == SQLITE_OK);
}

static void list_columns(changed_database *database)
{
    static const char sql[] = "SELECT s.name, c.name FROM sqlite_schema s, pragma_table_info(s.name) c "
                              "WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite_%' ORDER BY s.name, c.cid";
    sqlite3_stmt *statement;
    require(sqlite3_prepare_v2(database->seed, sql, -1, &statement, NULL) == SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW && database->num_columns < MAX_COLUMNS) {
        for (int i = 0; i < 2; i++)
            database->columns[database->num_columns][i] = strdup((const char *)sqlite3_column_text(statement, i));
        database->num_columns++;
    }
    sqlite3_finalize(statement);
}

void changed_database_read(changed_database *database, const char *path)
{
    sqlite3 *from;
    require(sqlite3_open(path, &from) == SQLITE_OK && sqlite3_open(":memory:", &database->seed) == SQLITE_OK);
    sqlite3_exec(from, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    copy_pages(database->seed, from);
    sqlite3_close(from);
    list_columns(database);
}

static void bind_value(sqlite3_stmt *statement, uint8_t type, const uint8_t bytes[8])
{
    int64_t number;
    double real;
    memcpy(&number, bytes, sizeof number);
    memcpy(&real, bytes, sizeof real);
    switch (type % 8) {
    case 0: sqlite3_bind_int64(statement, 1, number); break;
    case 1: sqlite3_bind_int64(statement, 1, (int8_t)bytes[0]); break;
    case 2: sqlite3_bind_int64(statement, 1, bytes[0] % 2 ? INT64_MAX - bytes[1] : INT64_MIN + bytes[1]); break;
    case 3: sqlite3_bind_double(statement, 1, real); break;
    case 4: sqlite3_bind_double(statement, 1, bytes[0] % 2 ? 1e300 : -1e300); break;
    case 5: sqlite3_bind_text(statement, 1, (const char *)bytes, 8, SQLITE_TRANSIENT); break;
    case 6: sqlite3_bind_blob(statement, 1, bytes, 8, SQLITE_TRANSIENT); break;
    default: break; /* NULL */
    }
}

static void change(sqlite3 *to, const changed_database *database, const uint8_t bytes[CHANGE_BYTES])
{
    char sql[512];
    sqlite3_stmt *statement;
    size_t column = ((size_t)bytes[0] << 8 | bytes[1]) % database->num_columns;
    int row = bytes[2] % 16; /* 0 = all */
    snprintf(sql, sizeof sql, "UPDATE OR IGNORE \"%s\" SET \"%s\" = ? WHERE %d IN (0, rowid)",
             database->columns[column][0], database->columns[column][1], row);
    if (sqlite3_prepare_v2(to, sql, -1, &statement, NULL) != SQLITE_OK) /* a table without numbers of rows */
        return;
    bind_value(statement, bytes[3], bytes + 4);
    sqlite3_step(statement);
    sqlite3_finalize(statement);
}

void changed_database_write(const changed_database *database, const char *path, const uint8_t *data, size_t size)
{
    sqlite3 *to;
    require(sqlite3_open(path, &to) == SQLITE_OK);
    sqlite3_exec(to, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    copy_pages(to, database->seed);
    sqlite3_exec(to, "PRAGMA journal_mode = MEMORY; BEGIN", NULL, NULL, NULL);
    for (size_t i = 0; i < MAX_CHANGES && size >= CHANGE_BYTES; i++) {
        change(to, database, data);
        data += CHANGE_BYTES;
        size -= CHANGE_BYTES;
    }
    sqlite3_exec(to, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(to);
}
