/* Converts a row of a lap table, with the columns of weir_lap_table_expressions(), to a record. */
#ifndef WEIR_LAP_ROWS_H
#define WEIR_LAP_ROWS_H

#include "lap_tables.h"
#include "sql_select.h"

/* Prepares to read laps; *statement is NULL if the database has no such table. Only the columns of
   weir_lap_table_expressions() may be used. */
int weir_lap_select(weir_reader *reader, weir_subject subject, const weir_filter *filter, bool unordered,
                    sqlite3_stmt **statement, weir_error *error);

/* Fills a record from a row; its texts belong to the row, its histograms are NULL. */
void weir_lap_read(weir_subject subject, sqlite3_stmt *row, weir_lap_record *lap);

/* Whether it has no phase although its run has: it ended before the first mark. */
int weir_lap_find_phase(weir_marks *marks, weir_lap_record *lap, weir_error *error);

/* Adds the stored histograms of a row to those at `times`; a NULL column is skipped, and *has says which were read.
   Returns the name of a column with an invalid histogram, or NULL. */
const char *weir_lap_add_histograms(weir_subject subject, sqlite3_stmt *row, weir_histogram *const times[],
                                    bool has[WEIR_MAX_HISTOGRAMS]);

/* Returns laps with damaged histograms without them, instead of ending the query with WEIR_EDATA. */
void weir_query_tolerate_damage(weir_query *query);

#endif
