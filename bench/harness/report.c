/* The report is text that grows in memory; states: machine → rows. */
#include "bench/harness/report.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <weir/pipeline.h>
#include <weir/version.h>

#include "common/replacement.h"
#include "tools/cli/memory.h"

struct bench_report {
    FILE *stream; /* writes to text */
    char *text;
    size_t text_bytes;
    bool in_rows;
    bool has_member; /* the open object is not empty */
};

static void put_string(bench_report *report, const char *text)
{
    putc('"', report->stream);
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            putc('\\', report->stream);
        if ((unsigned char)*c < ' ')
            fprintf(report->stream, "\\u%04x", (unsigned)(unsigned char)*c);
        else
            putc(*c, report->stream);
    }
    putc('"', report->stream);
}

static void put_name(bench_report *report, const char *name)
{
    fputs(report->has_member ? ", " : "", report->stream);
    report->has_member = true;
    put_string(report, name);
    fputs(": ", report->stream);
}

void bench_report_text(bench_report *report, const char *name, const char *text)
{
    put_name(report, name);
    put_string(report, text);
}

void bench_report_number(bench_report *report, const char *name, double value)
{
    put_name(report, name);
    if (isfinite(value))
        fprintf(report->stream, "%.9g", value);
    else
        fputs("null", report->stream);
}

void bench_report_spread(bench_report *report, const char *name, bench_spread spread)
{
    char full_name[64];
    bench_report_number(report, name, spread.median);
    snprintf(full_name, sizeof full_name, "%s_min", name);
    bench_report_number(report, full_name, spread.min);
    snprintf(full_name, sizeof full_name, "%s_max", name);
    bench_report_number(report, full_name, spread.max);
}

/* The name of the CPU, from Linux; "unknown" elsewhere. */
static void put_cpu_name(bench_report *report)
{
    char line[256];
    char name[200] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "model name : %199[^\n]", name) == 1)
            break;
    }
    if (file)
        fclose(file);
    bench_report_text(report, "cpu", name);
}

bench_report *bench_report_new(void)
{
    bench_report *report = memory_get(1, sizeof *report);
    report->stream = memory_file_open(&report->text, &report->text_bytes);
    fputs("{\"machine\": {", report->stream);
    put_cpu_name(report);
    bench_report_number(report, "cpus", weir_cpu_budget());
    struct utsname system;
    if (uname(&system) == 0) {
        bench_report_text(report, "system", system.sysname);
        bench_report_text(report, "kernel", system.release);
        bench_report_text(report, "architecture", system.machine);
    }
    bench_report_text(report, "compiler", __VERSION__);
    bench_report_text(report, "weir", weir_version());
    return report;
}

void bench_report_row(bench_report *report, const char *bench)
{
    fputs(report->in_rows ? "},\n  {" : "},\n \"rows\": [\n  {", report->stream);
    report->in_rows = true;
    report->has_member = false;
    bench_report_text(report, "bench", bench);
}

static int write_file(const bench_report *report, const char *path)
{
    weir__replacement to;
    int failure = weir__replacement_open(&to, path);
    if (failure == 0) {
        fwrite(report->text, 1, report->text_bytes, to.file);
        failure = weir__replacement_close(&to, true);
    }
    if (failure == 0)
        return 0;
    fprintf(stderr, "weir-bench: cannot write %s: %s\n", path, strerror(failure));
    return -1;
}

int bench_report_end(bench_report *report, const char *path)
{
    fputs(report->in_rows ? "}\n]}\n" : "},\n \"rows\": []}\n", report->stream);
    memory_file_close(report->stream);
    int rc = path ? write_file(report, path) : 0;
    free(report->text);
    free(report);
    return rc;
}
