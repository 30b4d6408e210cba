/*
 * Two recordings side by side: each measure of each stage, queue and pool, how far it differs, and how sure that is.
 *
 * How sure comes from the laps: they are put together into at most 64 batches, so that laps that resemble their
 * neighbours do not count as so many witnesses, and each measure is taken again without each batch (the jackknife, Quenouille
 * and Tukey). Two measures differ by as much as their difference plus and minus Student's t times its error, with Welch's
 * degrees of freedom. Measures that are compared as ratios are handled as logarithms.
 */
#ifndef TOOLS_CONTRAST_H
#define TOOLS_CONTRAST_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/query.h>

enum { CONTRAST_BATCHES = 64 };

typedef struct batch {
    weir_metrics metrics; /* histograms of stages only */
    int64_t elapsed_ns;
    size_t num_laps;
} batch;

/* The laps of one stage or queue in one database. */
typedef struct contrast_side {
    char *name; /* NULL = it is not there */
    batch batches[CONTRAST_BATCHES];
    size_t num_batches;
    size_t laps_per_batch;
    batch all;
} contrast_side;

typedef struct contrast_pair {
    char *key; /* the name without its bracket, and without its place where the sides differ in that */
    weir_subject subject;
    char kind[16]; /* as of weir_lap_record */
    contrast_side sides[2];
} contrast_pair;

/* In the order of A's pipeline, then what only B has. All-zero is empty. */
typedef struct contrast {
    contrast_pair *pairs;
    size_t num_pairs;
} contrast;

/* Adds the laps of side 0, or then those of side 1; also after a failure contrast_free() is to be called. */
int contrast_read(contrast *c, int side, weir_reader *reader, const weir_filter *filter, weir_error *error);
void contrast_free(contrast *c);

typedef enum contrast_verdict {
    VERDICT_UNKNOWN,
    VERDICT_SAME,
    VERDICT_DIFFERENT,
    VERDICT_BETTER,
    VERDICT_WORSE
} contrast_verdict;

/* The difference of one measure: for shares in points (0.05 = 5 points more), for all others relative to A (0.05 = 5 %). */
typedef struct contrast_difference {
    double a, b;              /* NAN = there is none */
    double change, low, high; /* 95 %; NAN = not known */
    contrast_verdict verdict; /* better and worse where more is clearly one of them */
} contrast_difference;

/* Whether a measure is compared: rates, times and shares are, since sums depend on how long a run was. */
bool contrast_has(const weir_measure *measure);
bool contrast_is_share(const weir_measure *measure);

contrast_difference contrast_compare(const contrast_pair *pair, const weir_measure *measure);

/* The same by name. */
contrast_difference contrast_compare_named(const contrast_pair *pair, const char *measure);

/* A measure of all laps of one side; NAN = there is none. */
double contrast_value(const contrast_pair *pair, int side, const char *measure);

#endif
