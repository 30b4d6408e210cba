/*
 * The results of a bench as JSON: {"machine": {…}, "rows": [{"bench": "decode", …}, …]}.
 *
 *     bench_report *report = bench_report_new();
 *     bench_report_row(report, "engine");
 *     bench_report_number(report, "ns_per_hop", 87.5);
 *     …
 *     rc = bench_report_end(report, path);
 */
#ifndef BENCH_HARNESS_REPORT_H
#define BENCH_HARNESS_REPORT_H

#include "bench/harness/measure.h"

typedef struct bench_report bench_report;

/* Values before the first row are added to "machine". It has the CPU, the number of usable CPUs, the kernel, the
   compiler and the version of weir. */
bench_report *bench_report_new(void);

/* Begins a row; the values that follow belong to it. */
void bench_report_row(bench_report *report, const char *bench);
void bench_report_text(bench_report *report, const char *name, const char *text);
void bench_report_number(bench_report *report, const char *name, double value);

/* The median under this name, the extremes under this name plus _min and _max. */
void bench_report_spread(bench_report *report, const char *name, bench_spread spread);

/* Writes the file (path NULL = none) and frees the report. Returns 0, or -1 after an error message on stderr. */
int bench_report_end(bench_report *report, const char *path);

#endif
