/* How the rows of each kind of record are selected; queries of records and statements of programs share it. */
#ifndef STATS_READ_RECORD_SELECTIONS_H
#define STATS_READ_RECORD_SELECTIONS_H

#include "stats/read/sql_select.h"

/* By kind. All lap tables are selected as WEIR_RECORD_TASK is. Without table and columns, which record_tables.h and lap_tables.h
   have. */
extern const weir_sql_selection weir__record_selections[WEIR_NUM_RECORD_KINDS];

/* The subject of a kind of laps. */
weir_subject weir__subject_of_laps(weir_record_kind kind);

#endif
