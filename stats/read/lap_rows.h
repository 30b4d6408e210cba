/* Reading laps, or sums of laps, of a filter; and totals that keep what they point to. */
#ifndef STATS_READ_LAP_ROWS_H
#define STATS_READ_LAP_ROWS_H

#include "common/sibling.h"
#include "stats/read/sql_select.h"
#include "stats/schema/lap_reading.h"
#include "stats/schema/lap_tables.h"

/* How laps are added up. */
typedef struct weir_lap_group {
    weir_lap_keys keys;
    const char *columns;   /* more of them, behind those of a lap */
    const char *begin;     /* what stands before SELECT; NULL = nothing */
    const char *condition; /* "AND …", or "" */
    const char *end;       /* "GROUP BY … ORDER BY …" */
    const char *is_whole;  /* rolls are read where this holds (rolled_laps.h); NULL = only laps */
} weir_lap_group;

/* Prepares to read laps, or, with a group, sums of laps. */
int weir__lap_select(weir_recording *recording, weir_subject subject, const weir_filter *filter,
                     const weir_lap_group *group, sqlite3_stmt **statement, weir_error *error);

/* Replaces the texts and histograms of a total by copies; a histogram that is not known stays NULL. False = out of
   memory. Call weir__total_forget() also then. */
WEIR_SIBLING_API bool weir__total_keep(weir_total *total);

/* Frees the texts and histograms of a total that keeps them. */
WEIR_SIBLING_API void weir__total_forget(weir_total *total);

#endif
