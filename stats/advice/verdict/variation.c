#include "stats/advice/verdict/variation.h"

#include <math.h>
#include <stdlib.h>

#include <weir/verdict.h>

#define CHANCE     0.05
#define TWO_SIDED  1.959964 /* the normal distribution's, for CHANCE */
#define NUM_LEVELS 2

double weir__variation_mean(const double *rates, size_t from, size_t until)
{
    double sum = 0;
    for (size_t i = from; i < until; i++)
        sum += rates[i];
    return until > from ? sum / (double)(until - from) : 0;
}

static bool is_worth_telling(double a, double b)
{
    return fmax(a, b) > 0 && fmax(a, b) >= WEIR_WORTH_GAIN * fmin(a, b);
}

/* -- one change */

typedef struct ranked {
    double rate;
    size_t at;
} ranked;

static int by_rate(const void *left, const void *right)
{
    double a = ((const ranked *)left)->rate, b = ((const ranked *)right)->rate;
    return (a > b) - (a < b);
}

/* The rank of each rate, from 1 on; equal ones share the mean of their ranks. NULL = no memory. */
static double *rank_rates(const double *rates, size_t count)
{
    ranked *sorted = calloc(count, sizeof *sorted);
    double *ranks = calloc(count, sizeof *ranks);
    for (size_t i = 0; i < count && sorted; i++)
        sorted[i] = (ranked){ rates[i], i };
    if (sorted)
        qsort(sorted, count, sizeof *sorted, by_rate);
    for (size_t i = 0, end; i < count && sorted && ranks; i = end) {
        for (end = i + 1; end < count && by_rate(&sorted[i], &sorted[end]) == 0; end++)
            ;
        for (size_t j = i; j < end; j++)
            ranks[sorted[j].at] = (double)(i + 1 + end) / 2;
    }
    free(sorted);
    return ranks;
}

/*
 * Pettitt's test (1979): U(t) is twice the sum of the first t ranks, less what it would be without a change; the change is
 * where it is largest. The chance of such a U is about 2 exp(-6 U² / (n³ + n²)).
 */
static bool find_change_point(const double *rates, size_t count, rate_change *found)
{
    double *ranks = count > 1 ? rank_rates(rates, count) : NULL, n = (double)count, sum = 0, most = 0;
    for (size_t t = 1; t < count && ranks; t++) {
        sum += ranks[t - 1];
        double u = 2 * sum - (double)t * (n + 1);
        if (fabs(u) > fabs(most)) {
            most = u;
            found->at = t;
        }
    }
    free(ranks);
    if (2 * exp(-6 * most * most / (n * n * n + n * n)) >= CHANCE)
        return false;
    found->before = weir__variation_mean(rates, 0, found->at);
    found->after = weir__variation_mean(rates, found->at, count);
    return is_worth_telling(found->before, found->after);
}

bool weir__variation_find_change(const double *rates, size_t count, rate_change *found)
{
    rate_change first, last;
    *found = (rate_change){ .at = 0 };
    if (!find_change_point(rates, count, found))
        return false;
    bool falls = found->after < found->before;
    found->is_gradual = find_change_point(rates, found->at, &first) &&
                        find_change_point(rates + found->at, count - found->at, &last) &&
                        (first.after < first.before) == falls && (last.after < last.before) == falls;
    return true;
}

/* -- two levels */

/*
 * The threshold that parts the rates in two groups with the largest sum of squares between them (Otsu, 1979). NAN = all are
 * equal, or there is no memory.
 */
static double part_levels(const double *rates, size_t count)
{
    ranked *sorted = calloc(count ? count : 1, sizeof *sorted);
    double all = weir__variation_mean(rates, 0, count) * (double)count, below = 0, most = 0, threshold = NAN;
    for (size_t i = 0; i < count && sorted; i++)
        sorted[i] = (ranked){ rates[i], i };
    if (sorted)
        qsort(sorted, count, sizeof *sorted, by_rate);
    for (size_t i = 1; i < count && sorted; i++) {
        below += sorted[i - 1].rate;
        double low = below / (double)i, high = (all - below) / (double)(count - i);
        double between = (double)i * (double)(count - i) * (high - low) * (high - low);
        if (sorted[i].rate > sorted[i - 1].rate && between > most) {
            most = between;
            threshold = sorted[i].rate;
        }
    }
    free(sorted);
    return threshold;
}

static void add_interval(rate_level *level, const double *rates, size_t from, size_t until)
{
    size_t length = until - from;
    level->rate =
        (level->rate * (double)level->num_laps + weir__variation_mean(rates, from, until) * (double)length) /
        (double)(level->num_laps + length);
    level->num_laps += length;
    if (length <= level->until - level->from)
        return;
    level->from = from;
    level->until = until;
}

/* Wald and Wolfowitz's test (1940): by chance, a low and b high laps make 2ab / (a + b) + 1 intervals. */
static bool are_together(const rate_levels *found)
{
    double a = (double)found->low.num_laps, b = (double)found->high.num_laps, n = a + b;
    double mean = 2 * a * b / n + 1, variance = (mean - 1) * (mean - 2) / (n - 1);
    return variance > 0 && (double)found->num_intervals < mean - TWO_SIDED * sqrt(variance);
}

bool weir__variation_find_levels(const double *rates, size_t count, rate_levels *found)
{
    double threshold = part_levels(rates, count);
    *found = (rate_levels){ .num_intervals = 0 };
    for (size_t from = 0, until; from < count && !isnan(threshold); from = until) {
        bool is_high = rates[from] >= threshold;
        for (until = from + 1; until < count && (rates[until] >= threshold) == is_high; until++)
            ;
        add_interval(is_high ? &found->high : &found->low, rates, from, until);
        found->num_intervals++;
    }
    return found->num_intervals >= 2 * NUM_LEVELS && are_together(found) &&
           is_worth_telling(found->low.rate, found->high.rate);
}
