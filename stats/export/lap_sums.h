/* Sums of the laps that a live export gets, as totals: by name, with texts and histograms of their own. */
#ifndef STATS_EXPORT_LAP_SUMS_H
#define STATS_EXPORT_LAP_SUMS_H

#include <stdbool.h>

#include <weir/query.h>

/* Adds a lap to the sum of the earlier ones, or makes a new sum, which keeps its texts and histograms. False = out of
   memory; weir__total_forget() even then. */
bool weir__lap_sum(weir_total *sum, bool is_new, const weir_lap_record *lap);

/* Adds a lap to the sum of its name in the list. WEIR_OK or WEIR_ENOMEM. */
int weir__lap_sums_add(weir_total_list *list, const weir_lap_record *lap);

#endif
