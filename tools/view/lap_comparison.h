/*
 * Two recordings side by side: for each measure of each stage, queue and pool, the difference and its confidence
 * interval.
 *
 * The confidence interval is computed from the laps. They are merged into about 64 batches, because neighbouring laps
 * are not independent. Each measure is computed again without each batch (the jackknife, Quenouille and Tukey). The
 * interval is the difference plus and minus Student's t times its standard error, with Welch's degrees of freedom.
 * Measures that are compared as ratios use logarithms. If a side has several runs, the batches are its runs, so that
 * the interval contains what varies between runs.
 */
#ifndef TOOLS_VIEW_LAP_COMPARISON_H
#define TOOLS_VIEW_LAP_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/query.h>
#include <weir/verdict.h>

/* One of the recordings. */
typedef struct comparison_side {
    int64_t run_id;      /* 0 = several */
    char *command;       /* of the run; NULL = not known */
    weir_totals all;     /* by name */
    weir_totals batches; /* the same, of a run or a part of the time each */
    weir_records stages; /* how the nodes were built */
    weir_verdict *limit;
} comparison_side;

/* A node, queue, pool, ... of the two. */
typedef struct comparison_pair {
    char *key; /* the name without its bracket, and without its position if that differs between the sides */
    weir_subject subject;
    weir_total *sides[2]; /* of `all`; NULL = this side does not have it */
    const weir_total **batches[2];
    size_t num_batches[2];
    size_t fewest[2]; /* batches without which there is no interval */
} comparison_pair;

typedef enum comparison_verdict {
    VERDICT_UNKNOWN,
    VERDICT_SAME,
    VERDICT_DIFFERENT,
    VERDICT_BETTER,
    VERDICT_WORSE
} comparison_verdict;

/* The difference of one measure: for shares in points (0.05 = 5 points more), for all others relative to A (0.05 = 5
   %). */
typedef struct comparison_row {
    const comparison_pair *pair;
    const weir_measure *measure;
    double a, b;                /* NAN = no value */
    double change, low, high;   /* 95 % interval; NAN = not known */
    double chance;              /* of such a difference, or a larger one, if nothing has changed; NAN = not known */
    comparison_verdict verdict; /* better or worse only if the measure has a preferred direction */
} comparison_row;

/* All-zero is empty. */
typedef struct lap_comparison {
    comparison_side sides[2];
    comparison_pair *pairs; /* in the order of A's pipeline, then those that only B has */
    size_t num_pairs;
    comparison_row *rows; /* all measures of the pairs that either side has */
    size_t num_rows;
} lap_comparison;

/* Reads side 0, then side 1, which completes it. Call comparison_free() even after a failure. */
int comparison_read(lap_comparison *c, int side, weir_recording *recording, const weir_filter *filter,
                    weir_error *error);
void comparison_free(lap_comparison *c);

/* Makes the rows of pairs whose two sides are there; comparison_read() does it. */
void comparison_judge(lap_comparison *c);

/* The pair of that name on a side; NULL = none. */
const comparison_pair *comparison_find(const lap_comparison *c, int side, const char *name);

/* The queue that A's consumer takes from; NULL if either side lacks it. */
const comparison_pair *comparison_find_sink(const lap_comparison *c);

/* Rates, times and shares are compared; sums are not, as they depend on the run's length. Unlike in the rows, the
   verdict is that of this measure alone. */
comparison_row comparison_compare(const comparison_pair *pair, const char *measure);

bool comparison_is_share(const weir_measure *measure);

/* A measure of all laps of one side; NAN = no value. */
double comparison_value(const comparison_pair *pair, int side, const char *measure);

#endif
