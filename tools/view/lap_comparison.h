/*
 * Two recordings side by side: each figure of each stage and queue, how far it differs, and how sure that is.
 *
 * How sure comes from the laps: they are put together into at most 64 batches, so that laps that resemble their
 * neighbours do not count as so many witnesses, and each figure is taken again without each batch (the jackknife, Quenouille
 * and Tukey). Two figures differ by as much as their difference plus and minus Student's t times its error, with Welch's
 * degrees of freedom. Figures that are compared as ratios are handled as logarithms.
 */
#ifndef TOOLS_CONTRAST_H
#define TOOLS_CONTRAST_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/query.h>

enum { CONTRAST_BATCHES = 64 };

/* What is added up of a stage's or a queue's laps. */
enum {
    /* both */
    SUM_ELAPSED,
    SUM_COUNT, /* tasks, items taken out */
    /* stages */
    SUM_FAILURES,
    SUM_SUCCESS_TIME,
    SUM_FAILED_TIME,
    SUM_BUSY,
    SUM_WAIT_IN,
    SUM_WAIT_THREAD,
    SUM_WAIT_OUT,
    SUM_CPU,
    /* queues */
    SUM_PUT,
    SUM_PUT_TIME,
    SUM_GET_TIME,
    SUM_OCCUPIED,
    NUM_SUMS,
};

typedef struct batch {
    double sums[NUM_SUMS];
    weir_histogram *times; /* of a stage's successes; NULL = of a queue */
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
    bool is_queue;
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

typedef enum contrast_figure {
    FIGURE_RATE,
    FIGURE_AVE,
    FIGURE_P50,
    FIGURE_P90,
    FIGURE_P99,
    FIGURE_CPU, /* CPU time a task */
    FIGURE_FAILED,
    FIGURE_BUSY,
    FIGURE_WAIT_IN,
    FIGURE_WAIT_THREAD,
    FIGURE_WAIT_OUT,
    FIGURE_PUT,
    FIGURE_GET,
    FIGURE_OCCUPIED,
    NUM_FIGURES,
} contrast_figure;

typedef enum contrast_verdict {
    VERDICT_UNKNOWN,
    VERDICT_SAME,
    VERDICT_DIFFERENT,
    VERDICT_BETTER,
    VERDICT_WORSE
} contrast_verdict;

/* The difference of one figure: for shares in points (0.05 = 5 points more), for all others in parts of A (0.05 = 5 %). */
typedef struct contrast_difference {
    double a, b;              /* NAN = there is none */
    double change, low, high; /* 95 %; NAN = not known */
    contrast_verdict verdict; /* better and worse where more is clearly one of them */
} contrast_difference;

/* Whether a figure is one of queues, or of stages, or of both. */
bool contrast_has_figure(const contrast_pair *pair, contrast_figure figure);
bool contrast_is_share(contrast_figure figure);
bool contrast_is_time(contrast_figure figure);
extern const char *const contrast_figure_names[NUM_FIGURES]; /* "tasks_per_s", … (of stages) */

contrast_difference contrast_compare(const contrast_pair *pair, contrast_figure figure);

/* A figure of all laps of one side; NAN = there is none. */
double contrast_value(const contrast_side *side, contrast_figure figure);

#endif
