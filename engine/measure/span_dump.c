/* weir_span_dump(): the sums of the process, by category, as a table or as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/struct_copy.h>

#include "common/array.h"
#include "common/format.h"
#include "common/text_columns.h"
#include "common/text_escape.h"
#include "engine/measure/running.h"
#include "engine/spans/spans.h"

enum { MAX_NAME = 4 * 512 };

/* The group of rows of stages; of others their category. */
static const char stages[] = "stages";

typedef struct dump_row {
    const char *name;     /* those of spans and counters live as long as the process */
    char *own_name;       /* of a stage; to be freed */
    const char *category; /* the first bytes of it */
    size_t category_bytes;
    const char *kind;
    bool is_counter, is_total;
    uint64_t count;
    double total, average, min,
        max; /* seconds; of counters their unit: see weir_span_dump_options.sort; NAN = none */
    double p50, p99, last;
} dump_row;

typedef struct dump {
    dump_row *rows;
    size_t num_rows;
    bool no_memory;
} dump;

/* The middle of a bucket may lie above the longest time in it. */
static double span_quantile(const weir_span_metrics *span, double share)
{
    int64_t ns = weir_histogram_quantile_ns(span->times, share);
    return weir__seconds(ns < span->max_ns ? ns : span->max_ns);
}

static dump_row *new_row(dump *all, const char *name, const char *kind)
{
    dump_row *grown = weir__array_grow(all->rows, all->num_rows, sizeof *grown);
    all->no_memory |= !grown;
    if (!grown)
        return NULL;
    all->rows = grown;
    dump_row *row = &grown[all->num_rows++];
    *row = (dump_row){ .name = name, .kind = kind, .p50 = NAN, .p99 = NAN, .last = NAN };
    return row;
}

static void add_stage_row(void *self, const char *name, const weir__stage_sum *sum)
{
    dump_row *row = new_row(self, name, "stage");
    uint64_t num_successes = sum->num_tasks - sum->num_failures;
    if (!row)
        return;
    row->name = row->own_name = strdup(name);
    ((dump *)self)->no_memory |= !row->name;
    row->category = stages;
    row->category_bytes = strlen(stages);
    row->count = sum->num_tasks;
    row->total = weir__seconds(sum->success_ns);
    row->average = num_successes ? row->total / (double)num_successes : 0;
    row->min = num_successes ? weir__seconds(sum->min_ns) : 0;
    row->max = weir__seconds(sum->max_ns);
}

static void add_counter(dump_row *row, const weir_counter_metrics *counter)
{
    double known_ns = (double)counter->known_ns;
    row->is_total = !isnan(counter->increase);
    row->count = counter->num_updates;
    row->total = row->is_total ? counter->increase : counter->value_ns / 1e9;
    if (row->is_total)
        row->average = known_ns > 0 ? counter->increase / known_ns * 1e9 : NAN;
    else
        row->average = known_ns > 0 ? counter->value_ns / known_ns : counter->last;
    row->min = counter->min;
    row->max = counter->max;
    row->last = counter->last;
}

static void add_row(void *self, const weir_span_name *name, const void *metrics)
{
    dump_row *row = new_row(self, name->text, weir__span_kind_name(name));
    if (!row)
        return;
    row->category = name->text;
    row->category_bytes = name->category_bytes;
    row->is_counter = name->counter != NULL;
    if (name->counter) {
        add_counter(row, metrics);
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

/* Spans, levels and totals of one category are three groups: they have different columns. */
static bool is_same_group(const dump_row *one, const dump_row *other)
{
    return one->is_counter == other->is_counter && one->is_total == other->is_total &&
           one->category_bytes == other->category_bytes &&
           memcmp(one->category, other->category, one->category_bytes) == 0;
}

/* Groups in the order of their first names; in each, insertion keeps the order of names for equal keys. */
static void sort_rows(dump *all, const weir_span_dump_options *options)
{
    double sign = options->ascending ? 1 : -1;
    for (size_t i = 0; i < all->num_rows; i++) {
        dump_row row = all->rows[i];
        double key = sign * key_of(&row, options->sort);
        size_t first = 0, end, at;
        while (first < i && !is_same_group(&all->rows[first], &row))
            first++;
        for (end = first; end < i && is_same_group(&all->rows[end], &row);)
            end++;
        for (at = end; at > first && sign * key_of(&all->rows[at - 1], options->sort) > key;)
            at--;
        memmove(&all->rows[at + 1], &all->rows[at], (i - at) * sizeof row);
        all->rows[at] = row;
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

/* Valid UTF-8 without control characters, like everything that is printed; the first bytes of a text. */
static void escape_name(const char *text, size_t bytes, char *shown, size_t size)
{
    char first[MAX_NAME];
    snprintf(first, sizeof first, "%.*s", (int)bytes, text);
    weir__text_escape(first, shown, size);
}

static void put_json_text(FILE *out, const char *before, const char *text, size_t bytes)
{
    char shown[MAX_NAME];
    escape_name(text, bytes, shown, sizeof shown);
    fprintf(out, "%s\"", before);
    for (const char *at = shown; *at; at++)
        fprintf(out, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    fputc('"', out);
}

static void put_json(FILE *out, const dump *all)
{
    fputs("{\"names\": [", out);
    for (size_t i = 0; i < all->num_rows; i++) {
        const dump_row *row = &all->rows[i];
        put_json_text(out, i ? ",\n  {\"name\": " : "\n  {\"name\": ", row->name, strlen(row->name));
        put_json_text(out, ", \"category\": ", row->category, row->category_bytes);
        fprintf(out, ", \"kind\": \"%s\", \"count\": %" PRIu64, row->kind, row->count);
        put_number(out, ", \"total\": ", row->total);
        put_number(out, ", \"average\": ", row->average);
        put_number(out, ", \"min\": ", row->min);
        put_number(out, ", \"max\": ", row->max);
        if (row->is_counter)
            put_number(out, ", \"last\": ", row->last);
        if (!row->is_counter && row->category != stages) {
            put_number(out, ", \"p50\": ", row->p50);
            put_number(out, ", \"p99\": ", row->p99);
        }
        fputc('}', out);
    }
    fprintf(out, "],\n \"refused_names\": %" PRIu64 "}\n", weir__span_names_refused());
}

static void put_first_column(FILE *out, const char *text)
{
    enum { COLUMNS = 40 };
    size_t columns = weir__text_columns(text, strlen(text));
    fprintf(out, "%s%*s ", text, columns < COLUMNS ? (int)(COLUMNS - columns) : 0, "");
}

/* A category, and the columns: of counters in their own units. */
static void put_group(FILE *out, const dump_row *row)
{
    static const char *const titles[][5] = { { "count", "total", "average", "min", "max" },
                                             { "updates", "last", "mean", "min", "max" },
                                             { "updates", "last", "growth", "per s", "" } };
    const char *const *shown = titles[row->is_total ? 2 : row->is_counter];
    char category[MAX_NAME], title[MAX_NAME + 32];
    escape_name(row->category, row->category_bytes, category, sizeof category);
    snprintf(title, sizeof title, "%s (%s)", category, row->is_total ? "totals" : row->is_counter ? "levels" : "ms");
    put_first_column(out, title);
    fprintf(out, "%-8s%10s", "kind", shown[0]);
    for (size_t i = 1; i < 5 && *shown[i]; i++)
        fprintf(out, " %12s", shown[i]);
    fputc('\n', out);
}

static void put_line(FILE *out, const dump_row *row)
{
    char name[MAX_NAME];
    const double times[] = { row->total * 1e3, row->average * 1e3, row->min * 1e3, row->max * 1e3 };
    const double level[] = { row->last, row->average, row->min, row->max };
    const double total[] = { row->last, row->total, row->average };
    const double *shown = row->is_total ? total : row->is_counter ? level : times;
    escape_name(row->name, strlen(row->name), name, sizeof name);
    put_first_column(out, name);
    fprintf(out, "%-8s%10" PRIu64, row->kind, row->count);
    for (size_t i = 0; i < (row->is_total ? 3 : 4); i++)
        fprintf(out, " %12.6g", shown[i]);
    fputc('\n', out);
}

static void put_table(FILE *out, const dump *all)
{
    for (size_t i = 0; i < all->num_rows; i++) {
        const dump_row *row = &all->rows[i];
        if (i == 0 || !is_same_group(row - 1, row))
            put_group(out, row);
        put_line(out, row);
    }
    if (weir__span_names_refused())
        fprintf(out, "names were refused %" PRIu64 " times: there are more than %d\n", weir__span_names_refused(),
                WEIR_SPAN_MAX_NAMES);
}

int weir_span_dump_sized(FILE *out, const weir_span_dump_options *given, size_t given_size)
{
    weir_span_dump_options options;
    int status = weir_struct_copy(&options, sizeof options, given, given_size, "weir_span_dump_options", NULL);
    if (!out || options.sort > WEIR_SPAN_BY_COUNT)
        status = WEIR_EINVAL;
    if (status != WEIR_OK)
        return status;
    dump all = { .num_rows = 0 };
    weir__stage_sums_visit(add_stage_row, &all, options.reset);
    weir__span_totals_visit(add_row, &all, options.reset);
    sort_rows(&all, &options);
    if (!all.no_memory)
        (options.json ? put_json : put_table)(out, &all);
    for (size_t i = 0; i < all.num_rows; i++)
        free(all.rows[i].own_name);
    free(all.rows);
    if (all.no_memory)
        return WEIR_ENOMEM;
    return fflush(out) != 0 || ferror(out) ? WEIR_EIO : WEIR_OK;
}
