/* Every table but `run`, with its columns: generated from the lists of record_tables.h and lap_tables.h. */
#ifndef STATS_SCHEMA_TABLES_H
#define STATS_SCHEMA_TABLES_H

#include <stdbool.h>

#include <sqlite3.h>

#include "stats/schema/lap_tables.h"
#include "stats/schema/record_tables.h"

typedef enum weir_table_kind {
    WEIR_TABLE_RECORDS,
    WEIR_TABLE_LAPS,
    WEIR_TABLE_ROLLS,
    WEIR_TABLE_ROLL_NUMBERS, /* the table `roll` */
} weir_table_kind;

typedef struct weir_table {
    const char *name;
    weir_table_kind kind;
    bool may_lack; /* a database of ours may be without this table */
    size_t num_columns;
    struct {
        const char *name;
        const char *type; /* with its constraints */
        bool is_optional; /* may have been added since the database was made */
    } columns[WEIR_MAX_COLUMNS];
} weir_table;

/* In the order in which they are made; the last one is followed by false. */
bool weir__table_at(size_t index, weir_table *table);

/* Adds the statements that make missing tables, with their indexes, and missing columns; none if they are complete. Returns
   a SQLITE_ code. */
int weir__tables_put_missing(sqlite3 *db, sqlite3_str *sql);

/* Makes temporary views for a schema of a connection ("main"). A table that lacks columns gets a view in which these
   are NULL. A lap table that is missing gets an empty view. In SPDL's databases, each table gets one. prefix: what
   stands before the names there. Returns a SQLITE_ code. */
int weir__tables_complete(sqlite3 *db, const char *schema, const char *prefix);

/* The columns that a schema has of a table, separated by spaces; free with sqlite3_free(). NULL = no such table, or a
   failure (*code). */
char *weir__table_columns(sqlite3 *db, const char *schema, const char *table, int *code);

/* Whether such a list (NULL = empty) has the word. */
bool weir__has_word(const char *list, const char *word);

#endif
