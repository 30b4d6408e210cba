/* The tables of single records: which column is which field of weir_record. Rows are read and inserted from these lists. */
#ifndef STATS_SCHEMA_RECORD_TABLES_H
#define STATS_SCHEMA_RECORD_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

#include <weir/item_part.h>
#include <weir/query.h>

#include "common/sibling.h"

/* The type of the field, and how a row has it. */
typedef enum weir_field_kind {
    WEIR_FIELD_INT64,
    WEIR_FIELD_INT, /* int, int32_t or uint32_t */
    WEIR_FIELD_TEXT,
    WEIR_FIELD_TIME,       /* int64_t nanoseconds; seconds in the row */
    WEIR_FIELD_KNOWN,      /* bool; 0 or 1 */
    WEIR_FIELD_KNOWN_INT,  /* int64_t below 0: not known; 0 in the row */
    WEIR_FIELD_KNOWN_TIME, /* the same in nanoseconds and seconds */
    WEIR_FIELD_STEP,       /* int64_t of a lap or of samples; NULL = no step is in it */
} weir_field_kind;

typedef struct weir_column {
    const char *name;
    weir_field_kind kind;
    size_t offset;          /* in weir_record */
    const char *expression; /* that is read; NULL = the column */
} weir_column;

typedef struct weir_record_table {
    const char *name;
    const weir_column *columns;
    size_t num_columns;
} weir_record_table;

/* The columns of laps are the fields that all laps have, under any name that a lap table has for them; see
   lap_tables.h. */
const weir_record_table *weir__record_table_of(weir_record_kind kind);

/* Sets the field of an item's record that is the column of this part; its text is borrowed. False: it has no column. */
bool weir__record_take_part(weir_record *item, const weir_item_part *part);

WEIR_SIBLING_API bool weir__record_is_lap(weir_record_kind kind);

/* The list of expressions that read a record from its table, called t, each AS the name of its column; free with
   sqlite3_free(). NULL = out of memory. */
char *weir__record_expressions(weir_record_kind kind);

/* Fills the record from a row of these expressions; texts belong to the row. */
void weir__record_read(sqlite3_stmt *row, weir_record_kind kind, weir_record *record);

/* "INSERT INTO …" with a parameter for each column except id; free with sqlite3_free(). NULL = out of memory. */
char *weir__record_insertion(weir_record_kind kind);

/* Binds a parameter, or all of them. Returns a SQLITE_ code. */
int weir__record_bind_column(sqlite3_stmt *insert, int at, const weir_column *column, const weir_record *record);
int weir__record_bind(sqlite3_stmt *insert, weir_record_kind kind, const weir_record *record);

/* The type of a column, with its constraints, as CREATE TABLE takes it. */
const char *weir__record_column_type(const weir_column *column);

/* -- values */

/* Text, or, if it is not valid UTF-8 (file names can be any bytes), a blob of the same bytes. So the name is kept
   exactly, and readers that must decode text (Python's sqlite3) can read the row. NULL is "". Returns a SQLITE_
   code. */
int weir__bind_text(sqlite3_stmt *statement, int column, const char *text);

/* A text column; "" if it is NULL. Blobs are text that is not valid UTF-8. */
const char *weir__column_text(sqlite3_stmt *row, int column);

/* A column of seconds, in nanoseconds; 0 if it is NULL. */
int64_t weir__column_ns(sqlite3_stmt *row, int column);

/* A column of nanoseconds that may be unknown: -1 if it is NULL. */
int64_t weir__column_known_ns(sqlite3_stmt *row, int column);

#endif
