/*
 * Two recordings side by side: for each measure of each stage, queue and pool, the difference and its confidence
 * interval.
 *
 * The confidence interval is computed from the laps. They are merged into at most 64 batches, because neighbouring
 * laps are not independent, and each measure is computed again without each batch (the jackknife, Quenouille and
 * Tukey). The interval is the difference plus and minus Student's t times its standard error, with Welch's degrees of
 * freedom. Measures that are compared as ratios use logarithms.
 */
#ifndef TOOLS_VIEW_LAP_COMPARISON_H
#define TOOLS_VIEW_LAP_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/query.h>

enum { COMPARISON_BATCHES = 64 };

typedef struct batch {
    weir_metrics metrics; /* histograms of stages only */
    int64_t elapsed_ns;
    size_t num_laps;
} batch;

/* How a node was built; NULL and 0 = not known. */
typedef struct comparison_settings {
    int64_t concurrency, threads, queue_items, queue_bytes;
    char *output_order, *merge_order;
} comparison_settings;

/* The laps of one stage or queue in one database. */
typedef struct comparison_side {
    char *name; /* NULL = this side does not have it */
    comparison_settings built;
    int64_t capacity; /* as of weir_lap_record, in the last lap */
    batch batches[COMPARISON_BATCHES];
    size_t num_batches;
    size_t laps_per_batch;
    batch all;
} comparison_side;

typedef struct comparison_pair {
    char *key; /* the name without its bracket, and without its position if that differs between the sides */
    weir_subject subject;
    char kind[16]; /* as of weir_lap_record */
    comparison_side sides[2];
} comparison_pair;

/* In the order of A's pipeline, then pairs that only B has. All-zero is empty. */
typedef struct lap_comparison {
    comparison_pair *pairs;
    size_t num_pairs;
    char *commands[2]; /* what the runs were started with; NULL = not known */
} lap_comparison;

/* Adds the laps of side 0, then those of side 1. Call comparison_free() even after a failure. */
int comparison_read(lap_comparison *c, int side, weir_reader *reader, const weir_filter *filter, weir_error *error);
void comparison_free(lap_comparison *c);

/* The pair of that name on a side; NULL = none. */
const comparison_pair *comparison_find(const lap_comparison *c, int side, const char *name);

typedef enum comparison_verdict {
    VERDICT_UNKNOWN,
    VERDICT_SAME,
    VERDICT_DIFFERENT,
    VERDICT_BETTER,
    VERDICT_WORSE
} comparison_verdict;

/* The difference of one measure: for shares in points (0.05 = 5 points more), for all others relative to A (0.05 = 5
   %). */
typedef struct comparison_difference {
    double a, b;                /* NAN = no value */
    double change, low, high;   /* 95 % interval; NAN = not known */
    double chance;              /* of such a difference, or a larger one, if nothing has changed; NAN = not known */
    comparison_verdict verdict; /* better or worse only if the measure has a preferred direction */
} comparison_difference;

/* Whether a measure is compared: rates, times and shares are; sums are not, as they depend on the run's length. */
bool comparison_has(const weir_measure *measure);
bool comparison_is_share(const weir_measure *measure);

comparison_difference comparison_compare(const comparison_pair *pair, const weir_measure *measure);

/*
 * The largest chance of a difference that is clear although all measures of all pairs are looked at: by Holm's method
 * (1979), at most 5 % of comparisons without any change have a difference with this chance or less. 0 = none is clear.
 */
double comparison_most_chance(const lap_comparison *c);

/* The same as comparison_compare(), by name. */
comparison_difference comparison_compare_named(const comparison_pair *pair, const char *measure);

/* A measure of all laps of one side; NAN = no value. */
double comparison_value(const comparison_pair *pair, int side, const char *measure);

#endif
