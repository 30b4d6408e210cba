/* An open database, shared by the queries. One thread at a time. */
#ifndef STATS_READ_OPEN_RECORDING_H
#define STATS_READ_OPEN_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <sqlite3.h>

#include <weir/query.h>

#include "common/sibling.h"

struct weir_recording {
    sqlite3 *db;
    char *path;
    int schema;   /* its version */
    int num_held; /* holds that have not been released */
    weir_selection selected;
    bool joins_laps; /* rolls are laps; see rolled_laps.h */
    bool skips_histograms;
    bool is_spdl;                          /* a database recorded by SPDL, which is read through views */
    char *sql;                             /* of the last selection, if it is kept; of SQLite */
    sqlite3_stmt *idle[WEIR_NUM_SUBJECTS]; /* reset; their texts take longer to parse than a short run to read */
    unsigned num_idled;                    /* so far; the oldest makes room */

    struct weir_record_entry *run; /* the last result of weir_recording_find_run() */
};

/* Reports that reading failed with a SQLITE_ code; returns the status. */
int weir__recording_error(const weir_recording *recording, int code, weir_error *error);

/* Keeps the text of a statement, if that was asked for; NULL = it has none. */
void weir__recording_note_sql(weir_recording *recording, sqlite3_stmt *statement);

/* Ends the reading of a statement from weir__select(), and keeps it for one with the same text. NULL is fine. */
void weir__statement_idle(weir_recording *recording, sqlite3_stmt *statement);

/* Reports WEIR_ENOMEM. */
int weir__recording_out_of_memory(weir_error *error);

/* Whether everything has been written: WEIR_OK, or WEIR_EIO with "WHAT: reason". */
WEIR_SIBLING_API int weir__check_written(FILE *out, const char *what, weir_error *error);

/* Replaces WEIR_LAST_RUN by its number, and checks that another one exists. */
int weir__recording_resolve_run(weir_recording *recording, int64_t *run_id, weir_error *error);

/* As weir_recording_open(). memory_name: of SQLite; "" = a file, at the path. */
int weir__recording_open_database(const char *path, const char *memory_name, weir_recording **opened,
                                  weir_error *error);

#endif
