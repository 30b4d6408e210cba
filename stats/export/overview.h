/*
 * A run at a glance, the same in all formats: rates and the limit. A live export collects laps here, and has the overview of
 * the latest one; an export from a database has that of a run. One thread at a time.
 */
#ifndef STATS_EXPORT_OVERVIEW_H
#define STATS_EXPORT_OVERVIEW_H

#include <stdbool.h>

#include <weir/limit.h>
#include <weir/query.h>

typedef struct weir_overview {
    double items_per_s, frames_per_s; /* NAN = not known */
    bool has_limit;
    weir_named_limit limit;
} weir_overview;

/* WEIR_OK; WEIR_EUNSUPPORTED if a program sets a member that this version does not know, WEIR_EINVAL if one is missing. NULL is
   fine. */
int weir__limit_rules_check(const weir_limit_rules *rules, weir_error *error);

/* Reads the overview of the records of one run that match the filter. Without rules (NULL) it has no limit. Results
   are those of queries. */
int weir__overview_read(weir_recording *recording, const weir_filter *filter, const weir_limit_rules *rules,
                        weir_overview *overview, weir_error *error);

typedef struct weir_live_overview {
    const weir_limit_rules *rules; /* NULL = no limit */
    weir_totals lap;               /* of the latest lap, by name */
    int64_t lap_unix_ns;           /* its end */
    weir_records stages;           /* of the run */
} weir_live_overview;

/* Takes laps and stages of a run; nothing of other records. The first record of another lap begins that lap. WEIR_OK or
   WEIR_ENOMEM. */
int weir__live_overview_take(weir_live_overview *live, const weir_record *record, weir_error *error);

/* The overview of the latest lap. WEIR_OK; or WEIR_ENOMEM: then there is no limit. */
int weir__live_overview_get(const weir_live_overview *live, weir_overview *overview, weir_error *error);

/* Forgets the run, not the rules. */
void weir__live_overview_clear(weir_live_overview *live);

#endif
