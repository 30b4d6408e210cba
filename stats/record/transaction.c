#include "stats/record/transaction.h"

#include <weir/clock.h>

#include "stats/record/rolls.h"

/* Errors of the row, not of the database. */
static bool lies_in_row(int code)
{
    switch (code & 0xff) {
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG: return true;
    default: return false;
    }
}

static int insert_entries(weir_insert *rows, weir_record_entry *entries)
{
    for (weir_record_entry *entry = entries; entry; entry = entry->next) {
        if (entry->refused)
            continue;
        int code = weir__rolls_write(rows, entry);
        if (code == SQLITE_OK)
            code = weir__insert_insert(rows, entry);
        if (lies_in_row(code))
            entry->refused = true;
        else if (code != SQLITE_OK)
            return code;
    }
    return SQLITE_OK;
}

static int insert_runs(weir_insert *rows, weir_run *runs)
{
    int code = SQLITE_OK;
    for (weir_run *run = runs; run && code == SQLITE_OK; run = run->next) {
        code = weir__insert_ensure_run(rows, run);
        if (code == SQLITE_OK && run->lost_to_write != run->written_lost)
            code = weir__insert_set_lost(rows, run);
    }
    return code;
}

static void settle_runs(weir_run *runs, bool committed)
{
    for (weir_run *run = runs; run; run = run->next) {
        if (committed) {
            run->committed = run->run_id != 0;
            run->written_lost = run->lost_to_write;
        } else if (!run->committed) {
            run->run_id = 0; /* the row was rolled back */
        }
    }
}

int weir__transaction_check_file(sqlite3 *db)
{
    int moved = 0;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return code == SQLITE_OK && moved ? SQLITE_READONLY_DBMOVED : SQLITE_OK;
}

int weir__transaction_write(weir_insert *rows, weir_transaction_part *parts)
{
    int code = weir__transaction_check_file(rows->db);
    if (code == SQLITE_OK)
        code = weir__insert_run(rows, WEIR_INSERT_BEGIN);
    if (code != SQLITE_OK)
        return code;

    for (weir_transaction_part *part = parts; part && code == SQLITE_OK; part = part->next) {
        code = insert_entries(rows, part->entries);
        if (code == SQLITE_OK)
            code = insert_runs(rows, part->runs);
    }
    if (code == SQLITE_OK)
        code = weir__insert_run(rows, WEIR_INSERT_COMMIT);
    if (code != SQLITE_OK && !sqlite3_get_autocommit(rows->db)) /* some errors roll back automatically */
        weir__insert_run(rows, WEIR_INSERT_ROLLBACK);
    for (weir_transaction_part *part = parts; part; part = part->next)
        settle_runs(part->runs, code == SQLITE_OK);
    return code;
}
