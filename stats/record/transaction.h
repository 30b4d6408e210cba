/* Writing many entries in one transaction. */
#ifndef STATS_RECORD_TRANSACTION_H
#define STATS_RECORD_TRANSACTION_H

#include <weir/sqlite.h>

#include "stats/record/insert.h"
#include "stats/record/record.h"

/* SQLITE_READONLY_DBMOVED if the file is not at its path any more: what is written would be lost. Otherwise SQLITE_OK. */
int weir__transaction_check_file(sqlite3 *db);

/* What one writer adds to a transaction. */
typedef struct weir_transaction_part {
    struct weir_transaction_part *next;
    weir_sqlite_writer *writer; /* for the caller */
    weir_record_entry *entries; /* a list */
    weir_run *runs;             /* a list: all runs of the writer */
} weir_transaction_part;

/*
 * Writes all entries of the parts (a list), and the rows of their runs with the numbers of lost entries, in one
 * transaction: all or nothing. Entries that the database will never accept are marked as refused and skipped. SQLITE_OK,
 * or the code of the failure; then the same parts can be retried.
 */
int weir__transaction_write(weir_insert *rows, weir_transaction_part *parts);

#endif
