/* Converts a row with the columns of weir__lap_table_expressions() to a record. */
#ifndef STATS_SCHEMA_LAP_READING_H
#define STATS_SCHEMA_LAP_READING_H

#include <sqlite3.h>

#include <weir/query.h>

/* Fills a record from a row; its texts belong to the row, its histograms are NULL. */
void weir__lap_read(weir_subject subject, sqlite3_stmt *row, weir_lap_record *lap);

/* Reads the histograms of a row to `times`, and sets the metrics' pointers to them; NULL = not known. Returns the name of a
   column with an invalid histogram, or NULL. */
const char *weir__lap_read_histograms(weir_subject subject, sqlite3_stmt *row,
                                      weir_histogram times[WEIR_MAX_HISTOGRAMS], weir_metrics *metrics);

#endif
