/* weir_span_dump(): the sums of the process, as a table or as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "spans.h"
#include "struct_copy.h"
#include "text_escape.h"

typedef struct dump_row {
    const weir_span_name *name;
    uint64_t count;
    double total, average, min, max; /* seconds; of counters their unit; NAN = none */
    double p50, p99, last;
} dump_row;

typedef struct dump {
    dump_row rows[WEIR_SPAN_MAX_NAMES];
    size_t num_rows;
    double keys[WEIR_SPAN_MAX_NAMES];
} dump;

/* The middle of a bucket may lie above the longest time in it. */
static double span_quantile(const weir_span_metrics *span, double share)
{
    int64_t ns = weir_histogram_quantile_ns(span->times, share);
    return weir__seconds(ns < span->max_ns ? ns : span->max_ns);
}

static void add_row(void *self, const weir_span_name *name, const void *metrics)
{
    dump *all = self;
    dump_row *row = &all->rows[all->num_rows++];
    *row = (dump_row){ .name = name, .p50 = NAN, .p99 = NAN, .last = NAN };
    if (name->counter) {
        const weir_counter_metrics *counter = metrics;
        row->count = counter->num_updates;
        row->total = counter->value_ns / 1e9;
        row->average = counter->known_ns ? counter->value_ns / (double)counter->known_ns : counter->last;
        row->min = counter->min;
        row->max = counter->max;
        row->last = counter->last;
        return;
    }
    const weir_span_metrics *span = metrics;
    row->count = span->num_spans;
    row->total = weir__seconds(span->total_ns);
    row->average = row->total / (double)span->num_spans;
    row->min = weir__seconds(span->min_ns);
    row->max = weir__seconds(span->max_ns);
    row->p50 = span_quantile(span, 0.5);
    row->p99 = span_quantile(span, 0.99);
}

static double key_of(const dump_row *row, weir_span_sort sort)
{
    switch (sort) {
    case WEIR_SPAN_BY_TOTAL: return row->total;
    case WEIR_SPAN_BY_AVERAGE: return row->average;
    case WEIR_SPAN_BY_MIN: return row->min;
    case WEIR_SPAN_BY_MAX: return row->max;
    case WEIR_SPAN_BY_COUNT: return (double)row->count;
    default: return 0;
    }
}

/* Insertion keeps the order of names for equal keys. */
static void sort_rows(dump *all, const weir_span_dump_options *options)
{
    double sign = options->ascending ? 1 : -1;
    for (size_t i = 0; i < all->num_rows && options->sort != WEIR_SPAN_BY_NAME; i++) {
        dump_row row = all->rows[i];
        double key = sign * key_of(&row, options->sort);
        size_t at = i;
        for (; at > 0 && all->keys[at - 1] > key; at--) {
            all->rows[at] = all->rows[at - 1];
            all->keys[at] = all->keys[at - 1];
        }
        all->rows[at] = row;
        all->keys[at] = key;
    }
}

/* -- output; independent of the locale */

static void put_number(FILE *out, const char *before, double value)
{
    char text[40];
    if (isfinite(value))
        snprintf(text, sizeof text, "%.9g", value);
    else
        snprintf(text, sizeof text, "null");
    for (char *comma = text; *comma; comma++)
        if (*comma == ',')
            *comma = '.';
    fprintf(out, "%s%s", before, text);
}

enum { MAX_SHOWN = 4 * 512 };

/* Valid UTF-8 without control characters, like everything that is printed. */
static void put_json_text(FILE *out, const char *text)
{
    char shown[MAX_SHOWN];
    weir__text_escape(text, shown, sizeof shown);
    fputc('"', out);
    for (const char *at = shown; *at; at++)
        fprintf(out, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    fputc('"', out);
}

static void put_json(FILE *out, const dump *all)
{
    fputs("{\"names\": [", out);
    for (size_t i = 0; i < all->num_rows; i++) {
        const dump_row *row = &all->rows[i];
        fprintf(out, "%s\n  {\"name\": ", i ? "," : "");
        put_json_text(out, row->name->text);
        fprintf(out, ", \"kind\": \"%s\", \"count\": %" PRIu64, weir__span_kind_name(row->name), row->count);
        put_number(out, ", \"total\": ", row->total);
        put_number(out, ", \"average\": ", row->average);
        put_number(out, ", \"min\": ", row->min);
        put_number(out, ", \"max\": ", row->max);
        put_number(out,
                   row->name->counter ? ", \"last\": " : ", \"p50\": ", row->name->counter ? row->last : row->p50);
        if (!row->name->counter)
            put_number(out, ", \"p99\": ", row->p99);
        fputc('}', out);
    }
    fprintf(out, "],\n \"refused_names\": %" PRIu64 "}\n", weir__span_names_refused());
}

static void put_line(FILE *out, const dump_row *row)
{
    char name[MAX_SHOWN];
    double scale = row->name->counter ? 1 : 1e3;
    weir__text_escape(row->name->text, name, sizeof name);
    fprintf(out, "%-40s %-8s%10" PRIu64 " %12.6g %12.6g %12.6g %12.6g\n", name, weir__span_kind_name(row->name),
            row->count, row->total * scale, row->average * scale, row->min * scale, row->max * scale);
}

static void put_table(FILE *out, const dump *all)
{
    fprintf(out, "%-40s %-8s%10s %12s %12s %12s %12s\n", "name (times in ms)", "kind", "count", "total", "average",
            "min", "max");
    for (size_t i = 0; i < all->num_rows; i++)
        put_line(out, &all->rows[i]);
    if (weir__span_names_refused())
        fprintf(out, "names were refused %" PRIu64 " times: there are more than %d\n", weir__span_names_refused(),
                WEIR_SPAN_MAX_NAMES);
}

int weir_span_dump_sized(FILE *out, const weir_span_dump_options *given, size_t given_size)
{
    weir_span_dump_options options;
    int status = weir__struct_copy(&options, sizeof options, given, given_size, "weir_span_dump_options", NULL);
    if (!out || options.sort > WEIR_SPAN_BY_COUNT)
        status = WEIR_EINVAL;
    dump *all = status == WEIR_OK ? calloc(1, sizeof *all) : NULL;
    if (status != WEIR_OK || !all)
        return status != WEIR_OK ? status : WEIR_ENOMEM;
    weir__span_totals_visit(add_row, all, options.reset);
    sort_rows(all, &options);
    (options.json ? put_json : put_table)(out, all);
    free(all);
    return fflush(out) != 0 || ferror(out) ? WEIR_EIO : WEIR_OK;
}
