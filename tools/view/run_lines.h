/* Lines about a run that `weir summary` and `weir watch` both have: what happened, rates, times, the limit, bars. */
#ifndef TOOLS_VIEW_RUN_LINES_H
#define TOOLS_VIEW_RUN_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/query.h>
#include <weir/verdict.h>

enum { RUN_LINE_BYTES = 2048, RUN_BAR_MIN = 6, RUN_BAR_MAX = 20 };

typedef struct run_lines {
    FILE *out;
    weir_recording *recording;
    const weir_filter *filter;
    const weir_totals *totals;
    size_t width;
    const char *bold, *red, *green, *yellow, *normal; /* "" without colours */
    bool is_live; /* the totals are of the latest lap: memory is that in use, and other programs are shown */
    /* the runs */
    int64_t num_runs, num_open, run_id;
    int64_t took_ns; /* of the only run; 0 = not known */
    weir_run_state state;
    bool lacks_end;   /* its end could not be recorded */
    int64_t expected; /* files of the run or job, as counted by weir record; 0 = not known */
    /* the folder that all labels have in common, with its slash; "" = none */
    char *folder;
    char *start;          /* where relative labels begin; NULL = not known */
    int64_t num_failures; /* recorded; some of a killed run are in no lap */
    uint64_t num_done;
} run_lines;

/* Zeroed but for these; the width is that of the terminal, or that of the longest line. */
run_lines run_lines_on(FILE *out, weir_recording *recording, const weir_filter *filter);
void run_lines_free(run_lines *s);

/* What is known of the runs that match the filter. Results are those of queries. */
int run_lines_read(run_lines *s, weir_error *error);

/* "k200: 198 of 400 files decoded in 46.4 s, 2 failed", without the end of the line. Counts num_done. */
void run_put_headline(run_lines *s);
/* "  17 files/s   1,585 frames/s   1.15 of 2 CPUs   97.0 MB memory" */
void run_put_rates(const run_lines *s);
/* "  one file: median 58.5 ms, p99 617 ms, longest 620 ms" */
void run_put_times(const run_lines *s);
/* "LIMIT  The CPUs: … (likely, 68 %)", and a second limit; false, and nothing, if there is no verdict. */
bool run_put_limit(const run_lines *s, const weir_verdict *verdict);

/* Prints a bar of `width` columns, filled for the share. */
void run_put_bar(FILE *out, double share, size_t width);

/* The rate that a person looks at: files decoded, or items delivered. */
typedef struct run_rate {
    const weir_total *total; /* NULL = not known */
    weir_subject subject;
    const char *measure, *unit; /* "successes_per_s", "files/s" */
} run_rate;
run_rate run_rate_of(const run_lines *s);

/* A line with this indent, more where it is broken. */
void run_put_line(const run_lines *s, const char *text, size_t indent);

/* A line that is broken at spaces and indented from its second line on; `heading` stands at its begin. */
void run_put_filled(const run_lines *s, const char *colour, const char *heading, size_t indent, const char *text);

/* The value of a measure; NAN for no total. */
double run_value(const weir_total *total, const char *measure);
/* "0:1:decode[10]_queue": "decode[10]" of a stage, "decode" of a queue */
void run_short_name(char text[RUN_LINE_BYTES], const weir_total *total);

#endif
