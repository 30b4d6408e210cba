/* Where the statistics of a recording are written: the database, and exports if requested. */
#ifndef TOOLS_RECORD_RECORD_OBSERVERS_H
#define TOOLS_RECORD_RECORD_OBSERVERS_H

#include <weir/export.h>
#include <weir/sqlite.h>

#include "tools/record/record_outputs.h"
#include "tools/record/record_settings.h"

typedef struct record_observers {
    weir_sqlite_writer *database;
    bool has_lost_database;                          /* after closing: another file, or none, is at its path */
    weir_export *exports[RECORD_MAX_EXPORTS];        /* as record_settings.exports; NULL = not wanted */
    weir_observer observers[RECORD_MAX_EXPORTS + 2]; /* with the database's and the console's */
    size_t num_observers;
    weir_task_hook items; /* records the cost of files in the database */
} record_observers;

/* RECORD_DONE; or RECORD_REFUSED after a line on stderr. Close in any case. */
int record_observers_open(const record_settings *settings, record_observers *observers);

/* SIGUSR2: exports that wait for something to happen write now. */
void record_observers_request(const record_observers *observers);

/* Closes all of them. RECORD_DONE, or RECORD_FAILED after a line on stderr that says what is missing. */
int record_observers_close(const record_settings *settings, record_observers *observers);

#endif
