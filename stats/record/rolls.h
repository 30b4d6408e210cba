/*
 * Rolled-up laps. The laps of a run that follow each other are added up to rolls. Rolls have tables of their own
 * beside those of the laps (lap_tables.h). So totals of long runs are read from few rows.
 *
 * A roll ends after WEIR_ROLL_LAPS laps and at the end of the run. It also ends where the mode or the phase changes,
 * and where the wall clock was set back. A run that ends before its first roll is full has none. All subjects of a
 * run are cut at the same lap. Each lap has the number of its roll from the moment at which it comes to the store's
 * thread: retries and dropped entries change nothing about it. A roll is written as the sum of the laps that are in
 * the database. It is written in the transaction of the first lap after it, or of the end of the run. Invariant: a
 * number is in the table `roll` if and only if all rows of that roll are there. The laps of such a roll do not change
 * any more. Laps of a number without a row in `roll` are not rolled up. These are the laps of short runs, and the
 * latest ones of a run that goes on or was killed.
 *
 * Old laps: with a limit (weir_sqlite_options.keep_ns), the writer's store replaces the laps of a roll of its runs by
 * one lap with the same sums. Nothing else changes for readers: it is a lap of which num_joined tells how many it was
 * made of.
 *
 * The store's thread only.
 */
#ifndef STATS_RECORD_ROLLS_H
#define STATS_RECORD_ROLLS_H

#include "stats/record/insert.h"

/* Laps of a roll, at most. A total then reads one row instead of 64; at either edge of a range, 63 laps at most. */
enum { WEIR_ROLL_LAPS = 64 };

/* Gives the entry its number, and says whether a roll ends before it. Entries of a run come in their order. */
void weir__rolls_place(weir_roll_state *state, weir_record_entry *entry);

void weir__rolls_forget(weir_roll_state *state);

/* Prepares the statements, on a connection that weir__insert_prepare() has got. Returns a SQLITE_ code; call
   weir__rolls_finalize() even on failure. */
int weir__rolls_prepare(weir_insert *rows);
void weir__rolls_finalize(weir_insert *rows);

/* Writes the rolls of the run that are complete before this entry, within a transaction. Returns a SQLITE_ code. */
int weir__rolls_write(weir_insert *rows, const weir_record_entry *entry);

/* Replaces laps of the run that ended before this time by their rolls, and deletes its items of that time: at most a few of
   them in a transaction of its own. Returns a SQLITE_ code; after a failure nothing has changed. */
int weir__rolls_thin(weir_insert *rows, weir_run *run, int64_t before_unix_ns);

#endif
