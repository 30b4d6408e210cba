/* Writing many entries in one transaction. */
#ifndef STATS_RECORD_TRANSACTION_H
#define STATS_RECORD_TRANSACTION_H

#include "stats/record/insert.h"
#include "stats/record/record.h"

/* SQLITE_READONLY_DBMOVED if the file is not at its path any more: what is written would be lost. Otherwise SQLITE_OK. */
int weir__transaction_check_file(sqlite3 *db);

/*
 * Writes all entries of the list, and the rows of `runs` (also a list) with their numbers of lost entries, in one
 * transaction: all or nothing. Entries that the database will never accept are marked as refused and skipped. SQLITE_OK, or the code of
 * the failure; then the same list can be retried.
 */
int weir__transaction_write(weir_insert *rows, weir_record_entry *entries, weir_run *runs);

#endif
