/*
 * Where laps are read from: from their table alone, or from rolls (stats/record/rolls.h) as far as these go.
 *
 * Totals that ask for no single laps take the rolls whose laps all match, and single laps for the rest. The rest is
 * those that no roll holds, and those of rolls of which only some laps match. The figures are the same.
 */
#ifndef STATS_READ_ROLLED_LAPS_H
#define STATS_READ_ROLLED_LAPS_H

#include "stats/read/open_recording.h"

/* Whether the runs of a filter (resolved) have rolls, and nothing in it asks for single laps. */
int weir__rolls_serve(weir_recording *recording, const weir_filter *filter, bool *do_serve, weir_error *error);

/*
 * A subquery in the place of the subject's table, whose rows are rolls and laps with the columns of the table of
 * rolls. is_whole is a condition on a row r of the table `roll`: where it does not hold, the laps are read one by
 * one. NULL = rolls are laps. It has the parameters :run, :start and :end of filters. Free with sqlite3_free(). NULL
 * = out of memory.
 */
char *weir__rolled_laps(weir_subject subject, const char *is_whole);

#endif
