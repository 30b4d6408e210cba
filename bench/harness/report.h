/*
 * What a bench found, for programs to read: {"machine": {…}, "rows": [{"bench": "decode", …}, …]}.
 *
 *     bench_report *report = bench_report_new();
 *     bench_report_row(report, "engine");
 *     bench_report_number(report, "ns_per_hop", 87.5);
 *     …
 *     rc = bench_report_end(report, path);
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "measure.h"

/* Every call accepts a NULL report, which is what is made when memory is out. */
typedef struct bench_report bench_report;

bench_report *bench_report_new(void);

/* A figure about the machine or what was built, in "machine"; before the first row. The CPU, how many of them may be
   used, the kernel, the compiler and weir's version are there already. */
void bench_report_machine(bench_report *report, const char *name, const char *text);

/* Begins a row; the values that follow are its. */
void bench_report_row(bench_report *report, const char *bench);
void bench_report_text(bench_report *report, const char *name, const char *text);
void bench_report_number(bench_report *report, const char *name, double value);

/* The median by this name, the extremes with _min and _max behind it. */
void bench_report_spread(bench_report *report, const char *name, bench_spread spread);

/* Writes the file (path NULL = not wanted) and frees the report. 0, or -1 after a line on stderr. */
int bench_report_end(bench_report *report, const char *path);

#endif
