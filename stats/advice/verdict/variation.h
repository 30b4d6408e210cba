/*
 * How the rate of a run varies from lap to lap, beyond chance: it changes once, or it alternates. Both tests know ranks
 * or signs only, so that a burst, or a few slow laps, decide nothing. Rates are in the order of time and are not negative.
 */
#ifndef STATS_ADVICE_VERDICT_VARIATION_H
#define STATS_ADVICE_VERDICT_VARIATION_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rate_change {
    size_t at;            /* the first lap after it */
    double before, after; /* mean rates */
    bool is_gradual;      /* the laps on both sides of it change in the same direction, too */
} rate_change;

/* Laps in one half of a rate that alternates. */
typedef struct rate_level {
    double rate;        /* mean */
    size_t num_laps;    /* in all */
    size_t from, until; /* its longest interval of neighbouring laps */
} rate_level;

typedef struct rate_levels {
    rate_level low, high;
    size_t num_intervals; /* of both together */
} rate_levels;

double weir__variation_mean(const double *rates, size_t from, size_t until);

/* False = no change beyond chance (5 %), or one that is not worth telling. Without memory, too. */
bool weir__variation_find_change(const double *rates, size_t count, rate_change *found);

/* False = the rates do not alternate. Either the laps of each level are no longer together than chance would bring
   them (5 %). Or the levels hardly differ, or one of them comes only once. */
bool weir__variation_find_levels(const double *rates, size_t count, rate_levels *found);

#endif
