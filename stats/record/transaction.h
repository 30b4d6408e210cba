/* Many entries in one transaction. */
#ifndef WEIR_TRANSACTION_H
#define WEIR_TRANSACTION_H

#include "insert.h"
#include "record.h"

/*
 * Writes all entries of the list, and what `runs` (a list, too) have to tell about lost entries, in one transaction:
 * all or nothing. Entries that the database will never take are marked as refused and left out.
 * SQLITE_OK, or the code of what is in the way; then the same list may be tried again.
 */
int weir_transaction_write(weir_insert *rows, weir_entry *entries, weir_run *runs);

#endif
