/* A run's laps as spans: consecutive laps of one phase, without a gap between them. */
#ifndef STATS_READ_PHASE_SPANS_H
#define STATS_READ_PHASE_SPANS_H

#include "sql_select.h"

/*
 * Prepares to read them, by run and time, as rows of WEIR_RECORD_PHASE; with each_lap, one span for each lap. The filter
 * is of the laps; its name and order are ignored.
 */
int weir__phases_select(weir_reader *reader, const weir_filter *filter, bool each_lap, sqlite3_stmt **statement,
                        weir_error *error);

/* The next span: WEIR_OK, WEIR_EOF or a failure. Its phase belongs to the row. */
int weir__phases_next(weir_reader *reader, sqlite3_stmt *statement, weir_phase_record *span, weir_error *error);

/* "WITH … ", which defines transition(run_id, end, text): for each span of a phase, its end and "eval > train"; the first
   one of a run is "start > …". */
extern const char weir__with_transitions[];

#endif
