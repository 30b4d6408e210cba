/*
 * The tables of the engine bench: one line for each configuration, one column for each queue size. The values of a
 * line are computed round by round from its cases, so that a ratio compares two runs of the same round.
 */
#ifndef BENCH_ENGINE_ENGINE_TABLE_H
#define BENCH_ENGINE_ENGINE_TABLE_H

#include "bench_options.h"
#include "report.h"
#include "rounds.h"

/* The role of a case in a line. */
typedef enum engine_role {
    ROLE_SELF,
    ROLE_FEWER,      /* the same with fewer stages */
    ROLE_UNMEASURED, /* the same without statistics */
    ROLE_ONE_THREAD, /* the same with one thread */
    ROLE_BASE,       /* the baseline of the line */
    ROLE_BASE_FEWER, /* … with fewer stages */
    NUM_ROLES,
} engine_role;

typedef enum engine_metric {
    METRIC_ITEM,         /* ns per item */
    METRIC_HOP,          /* divided by stages + 1, the number of results of operations per item */
    METRIC_STAGE,        /* cost of one more stage */
    METRIC_CPU,          /* CPU ns per item, of all threads */
    METRIC_STATISTICS,   /* time with statistics over time without */
    METRIC_SPEED,        /* speed over that with one thread */
    METRIC_HOP_MORE,     /* ns per hop minus the base's */
    METRIC_ITEM_TO_BASE, /* time per item over the base's */
    METRIC_STAGE_TO_BASE,
    METRIC_SHARE_OF_BASE, /* speed over the base's */
    NUM_METRICS,
} engine_metric;

/* Cases by their index in the rounds. */
typedef struct engine_cell {
    size_t cases[NUM_ROLES]; /* NO_CASE = none */
} engine_cell;

typedef struct engine_line {
    const char *part; /* "hops", "peers", … */
    uint32_t op_us;
    char title[40];
    unsigned metrics;                  /* those in the report: 1u << metric, … */
    unsigned shown;                    /* those shown in the table */
    const char *base_name;             /* NULL = none */
    engine_cell cells[BENCH_MAX_LIST]; /* for each size of queue */
} engine_line;

/* The roles needed by the metrics in this mask: 1u << role, … */
unsigned engine_roles(unsigned metrics);

/* Prints the lines, with a heading for each part or operation, and adds them to the report. */
void engine_tell(bench_report *report, const engine_rounds *rounds, const engine_line *lines, size_t num_lines,
                 const bench_list *queues);

#endif
