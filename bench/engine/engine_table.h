/*
 * What the engine bench shows: lines, one for each configuration, over the sizes of queues. A line's figures are computed
 * round by round from the cases it refers to, so that a ratio is one of two runs of the same round.
 */
#ifndef BENCH_ENGINE_TABLE_H
#define BENCH_ENGINE_TABLE_H

#include "bench_options.h"
#include "report.h"
#include "rounds.h"

/* What a case is to a line. */
typedef enum engine_role {
    ROLE_SELF,
    ROLE_FEWER,      /* the same with fewer stages */
    ROLE_UNMEASURED, /* the same without statistics */
    ROLE_ONE_THREAD, /* the same with one thread */
    ROLE_BASE,       /* what the line is compared with */
    ROLE_BASE_FEWER, /* … with fewer stages */
    NUM_ROLES,
} engine_role;

typedef enum engine_figure {
    FIGURE_ITEM,         /* ns per item */
    FIGURE_HOP,          /* … over the operations' results that it consists of: stages + 1 */
    FIGURE_STAGE,        /* what one more stage adds */
    FIGURE_CPU,          /* CPU ns per item, of all threads */
    FIGURE_STATISTICS,   /* time with statistics over time without */
    FIGURE_SPEED,        /* speed over that with one thread */
    FIGURE_ITEM_TO_BASE, /* time per item over the base's */
    FIGURE_STAGE_TO_BASE,
    FIGURE_SHARE_OF_BASE, /* speed over the base's */
    NUM_FIGURES,
} engine_figure;

/* Cases by their index in the rounds. */
typedef struct engine_cell {
    size_t cases[NUM_ROLES]; /* NO_CASE = has none */
} engine_cell;

typedef struct engine_line {
    const char *part; /* "hops", "peers", … */
    uint32_t op_us;
    char title[40];
    unsigned figures;                  /* in the report: 1u << figure, … */
    unsigned shown;                    /* of these, in the table */
    const char *base_name;             /* NULL = has none */
    engine_cell cells[BENCH_MAX_LIST]; /* for each size of queue */
} engine_line;

/* What the figures in this mask need: 1u << role, … */
unsigned engine_roles(unsigned figures);

/* Prints the lines, under a head where another part or operation begins, and adds them to the report. */
void engine_tell(bench_report *report, const engine_rounds *rounds, const engine_line *lines, size_t num_lines,
                 const bench_list *queues);

#endif
