/*
 * OpenMetrics text that readers of the older Prometheus format (promtool, node_exporter's textfile collector) also
 * accept. The two formats declare counters differently: `# TYPE x counter` in OpenMetrics, `# TYPE x_total counter`
 * in the older one, and each is an error in the other. So counters here end with _total, as both require, and have no
 * TYPE line; histograms, summaries and gauges are the same in both.
 */
#include "stats/export/exposition.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>

#include "common/array.h"
#include "common/format.h"
#include "common/utf8.h"
#include "stats/export/lap_sums.h"
#include "stats/read/lap_rows.h"
#include "stats/schema/measures.h"
#include "stats/schema/record_tables.h"

/* -- sums by key */

/* Adds to the sum of these two. WEIR_OK or WEIR_ENOMEM. */
static int add_key(weir_key_sums *key_sums, int64_t run_id, const char *name, const char *category, double amount)
{
    weir_key_sum *row = key_sums->rows, *end = row ? row + key_sums->count : row;
    while (row < end &&
           (row->run_id != run_id || strcmp(row->name, name) != 0 || strcmp(row->category, category) != 0))
        row++;
    if (row == end && key_sums->count >= WEIR_MAX_KEY_SUMS && strcmp(name, WEIR_OTHERS) != 0)
        return add_key(key_sums, run_id, WEIR_OTHERS, WEIR_OTHERS, amount);
    if (row == end) {
        weir_key_sum *rows = weir__array_grow(key_sums->rows, key_sums->count, sizeof *rows);
        weir_key_sum added = { run_id, strdup(name), strdup(category), 0 };
        key_sums->rows = rows ? rows : key_sums->rows;
        if (!rows || !added.name || !added.category) {
            free(added.name);
            free(added.category);
            return WEIR_ENOMEM;
        }
        row = &rows[key_sums->count++];
        *row = added;
    }
    row->sum += amount;
    return WEIR_OK;
}

static void free_key_sums(weir_key_sums *key_sums)
{
    for (size_t i = 0; i < key_sums->count; i++) {
        free(key_sums->rows[i].name);
        free(key_sums->rows[i].category);
    }
    free(key_sums->rows);
    *key_sums = (weir_key_sums){ 0 };
}

int weir__exposition_take(void *self, const weir_record *record, weir_error *error)
{
    weir_exposition *all = self;
    const weir_event_record *event = &record->event;
    const weir_phase_record *phase = &record->phase;
    int status = WEIR_OK;
    if (weir__record_is_lap(record->kind))
        status = weir__lap_sums_add(&all->totals.of[record->lap.subject], &record->lap);
    else if (record->kind == WEIR_RECORD_EVENT)
        status = add_key(&all->events, event->run_id, event->name, event->category, 1);
    else if (record->kind == WEIR_RECORD_PHASE && phase->position.phase[0])
        status = add_key(&all->phases, phase->run_id, phase->position.phase, phase->position.mode,
                         weir__seconds(phase->end_unix_ns - phase->start_unix_ns));
    return status == WEIR_OK ? status : weir_error_set(error, status, 0, "out of memory for the metrics");
}

/* A span's laps are only those in which it occurred; a queue has all laps of its run. */
static void set_time_of_spans(weir_totals *totals)
{
    const weir_total_list *queues = &totals->of[WEIR_SUBJECT_QUEUE];
    weir_total_list *spans = &totals->of[WEIR_SUBJECT_SPAN];
    for (size_t i = 0; i < spans->count; i++)
        for (size_t j = 0; j < queues->count; j++)
            if (queues->all[j].key.run_id == spans->all[i].key.run_id &&
                queues->all[j].elapsed_ns > spans->all[i].elapsed_ns)
                spans->all[i].elapsed_ns = queues->all[j].elapsed_ns;
}

void weir__exposition_clear(weir_exposition *exposition)
{
    weir_totals_free(&exposition->totals);
    free_key_sums(&exposition->events);
    free_key_sums(&exposition->phases);
}

/* -- pieces of text */

static void put_value(FILE *out, double value)
{
    if (isnan(value) || isinf(value))
        fputs(isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf", out);
    else
        fprintf(out, "%.15g", value);
}

/* key="value", with a comma before it unless it is the first. */
static void put_label(FILE *out, bool is_first, const char *key, const char *value)
{
    fprintf(out, "%s%s=\"", is_first ? "" : ",", key);
    for (size_t length; *value; value += length ? length : 1) {
        length = weir__utf8_length(value);
        if (*value == '\n')
            fputs("\\n", out);
        else if (*value == '"' || *value == '\\')
            fprintf(out, "\\%c", *value);
        else if (length)
            fwrite(value, 1, length, out);
        else
            fprintf(out, "\\\\x%02x", (unsigned char)*value); /* keeps different names different */
    }
    fputc('"', out);
}

/* What a sample describes. */
typedef struct subject {
    const weir_run_record *run;
    const char *key, *value;               /* "stage" and its name, …; NULL = the run itself */
    const char *second_key, *second_value; /* NULL = none */
    int64_t unix_ns;                       /* its time; 0 = now, which is not written */
} subject;

static void put_sample(FILE *out, const char *name, const char *suffix, const subject *of, const char *last_key,
                       const char *last_value, double value)
{
    fprintf(out, "%s%s{", name, suffix);
    put_label(out, true, "node", of->run->node_id);
    fprintf(out, ",rank=\"%" PRId32 "\"", of->run->rank);
    if (of->run->run_id)
        fprintf(out, ",run=\"%" PRId64 "\"", of->run->run_id);
    if (of->key)
        put_label(out, false, of->key, of->value);
    if (of->second_key)
        put_label(out, false, of->second_key, of->second_value);
    if (last_key)
        put_label(out, false, last_key, last_value);
    fputs("} ", out);
    put_value(out, value);
    if (of->unix_ns != 0)
        fprintf(out, " %.3f", (double)of->unix_ns / 1e9);
    fputc('\n', out);
}

/* Powers of two from 1 µs to 18 minutes: edges of the recorded buckets, so that every count is exact. */
enum { LOWEST_EDGE_BITS = 10, HIGHEST_EDGE_BITS = 40 };

static void put_histogram(FILE *out, const char *name, const subject *of, const weir_histogram *times, double sum)
{
    uint64_t below = 0;
    uint32_t bucket = times->first;
    for (int bits = LOWEST_EDGE_BITS; bits <= HIGHEST_EDGE_BITS; bits++) {
        int64_t edge_ns = (INT64_C(1) << bits) - 1, low_ns, high_ns;
        for (; bucket <= times->last && times->count; bucket++) {
            weir_histogram_bucket_range(bucket, &low_ns, &high_ns);
            if (high_ns > edge_ns)
                break;
            below += times->buckets[bucket];
        }
        char edge[32];
        snprintf(edge, sizeof edge, "%.9f", (double)edge_ns / 1e9);
        put_sample(out, name, "_bucket", of, "le", edge, (double)below);
    }
    put_sample(out, name, "_bucket", of, "le", "+Inf", (double)times->count);
    put_sample(out, name, "_sum", of, NULL, NULL, sum);
    put_sample(out, name, "_count", of, NULL, NULL, (double)times->count);
}

/* -- families of stages, queues and pools, generated from the table of metrics */

static const char level_kind[] = "level", total_kind[] = "total";

/* Stages and flow nodes share their families; the label `kind` distinguishes them. The levels and totals of counters have
   families of their own. No prefix contains a type of metric, such as "counter": readers take it for the type. */
static const struct group {
    const char *prefix, *label;
    weir_subject subjects[2];
    int num_subjects;
    const char *capacity, *capacity_help; /* NULL = none */
    const char *kind;                     /* only totals of this kind; NULL = all */
} groups[] = {
    { "weir_stage", "stage", { WEIR_SUBJECT_STAGE, WEIR_SUBJECT_FLOW }, 2, NULL, NULL, NULL },
    { "weir_queue",
      "queue",
      { WEIR_SUBJECT_QUEUE },
      1,
      "capacity_items",
      "Items that the queue has room for.",
      NULL },
    { "weir_pool", "pool", { WEIR_SUBJECT_POOL }, 1, "threads", "Threads of the pool.", NULL },
    { "weir_process", "process", { WEIR_SUBJECT_PROCESS }, 1, "cpu_budget", "CPUs that the process may use.", NULL },
    { "weir_machine", "machine", { WEIR_SUBJECT_MACHINE }, 1, NULL, NULL, NULL },
    { "weir_span", "span", { WEIR_SUBJECT_SPAN }, 1, NULL, NULL, NULL },
    { "weir_level", "counter", { WEIR_SUBJECT_COUNTER }, 1, NULL, NULL, level_kind },
    { "weir_amount", "counter", { WEIR_SUBJECT_COUNTER }, 1, NULL, NULL, total_kind },
};

typedef struct family {
    char name[96];
    const char *type; /* NULL for counters */
    const char *help;
    void (*put)(FILE *out, const struct family *f, const subject *of, const weir_total *total);
    const weir_metric *metric;
    weir_metric_histogram histogram;
} family;

static void put_family(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n", name, help);
    if (type)
        fprintf(out, "# TYPE %s %s\n", name, type);
}

static double measured_value(const weir_total *total, const char *measure)
{
    return weir_total_value(total, weir_measure_find(total->subject, measure));
}

static void put_metric(FILE *out, const family *f, const subject *of, const weir_total *total)
{
    double value = weir__metric_value(f->metric, &total->metrics);
    if (!isnan(value))
        put_sample(out, f->name, "", of, NULL, NULL, value);
}

/* How many times the sum is of. */
static uint64_t count_of(const family *f, const weir_total *total)
{
    const weir_metrics *m = &total->metrics;
    if (total->subject == WEIR_SUBJECT_QUEUE)
        return strcmp(f->histogram.name, "put_time") == 0 ? m->queue.num_put : m->queue.num_items;
    return total->subject == WEIR_SUBJECT_SPAN ? m->span.num_spans : m->task.num_tasks - m->task.num_failures;
}

static void put_time_families(FILE *out, const family *f, const subject *of, const weir_total *total)
{
    weir_metrics metrics = total->metrics;
    const weir_histogram *times = *weir__metric_histogram_at(f->histogram.metric, &metrics);
    double sum = measured_value(total, f->histogram.sum), count = (double)count_of(f, total);
    bool is_latency = strcmp(f->histogram.name, "latency") == 0;
    if (isnan(sum) && (count > 0 || is_latency)) /* of a queue that is not the sink's, also before its first item */
        return;
    if (times) {
        put_histogram(out, f->name, of, times, isnan(sum) ? 0 : sum);
        return;
    }
    put_sample(out, f->name, "_bucket", of, "le", "+Inf", count); /* SPDL's: which bucket is not known */
    put_sample(out, f->name, "_sum", of, NULL, NULL, isnan(sum) ? 0 : sum);
    put_sample(out, f->name, "_count", of, NULL, NULL, count);
}

static void put_percentile_family(FILE *out, const family *f, const subject *of, const weir_total *total)
{
    static const char *const percentiles[] = { "50", "90", "99" };
    for (size_t i = 0; i < 3; i++) {
        char measure[48];
        snprintf(measure, sizeof measure, "p%s_%s", percentiles[i], f->histogram.name);
        double value = measured_value(total, measure);
        if (!isnan(value))
            put_sample(out, f->name, "", of, "percentile", percentiles[i], value);
    }
}

static void put_elapsed(FILE *out, const family *f, const subject *of, const weir_total *total)
{
    put_sample(out, f->name, "", of, NULL, NULL, (double)weir_total_life_ns(total) / 1e9);
}

static void put_capacity(FILE *out, const family *f, const subject *of, const weir_total *total)
{
    if (total->capacity > 0)
        put_sample(out, f->name, "", of, NULL, NULL, (double)total->capacity);
}

static int compare_runs(const void *key, const void *element)
{
    int64_t wanted = *(const int64_t *)key, there = (*(const weir_record *const *)element)->run.run_id;
    return wanted < there ? -1 : wanted > there;
}

/* False if the run is not among the exported ones. */
static bool make_subject(weir_exposition *all, int64_t run_id, const char *key, const char *value, subject *of)
{
    *of = (subject){ .key = key, .value = value };
    const weir_record **found =
        all->runs.count ? bsearch(&run_id, all->runs.all, all->runs.count, sizeof *found, compare_runs) : NULL;
    of->run = found ? &(*found)->run : NULL;
    return found != NULL;
}

/* One subject in one family, at several times. */
struct history {
    FILE *out;
    const family *f;
    const char *name;
    subject of; /* its time is that of the sum, in whole milliseconds, which is what readers keep */
    bool has_sum;
    weir_total sum; /* of the laps so far */
};

static void put_sum(const struct history *history)
{
    if (history->has_sum)
        history->f->put(history->out, history->f, &history->of, &history->sum);
}

/* Laps that end in the same millisecond, as those of one interval do, are one sample: readers refuse a second one that is
   not after the first. A name is also a pattern that may match others, which are skipped. */
static int put_past_lap(void *self, const weir_record *record, weir_error *error)
{
    struct history *history = self;
    const weir_lap_record *lap = &record->lap;
    int64_t end_ns = (lap->end_unix_ns + WEIR_MILLISECOND / 2) / WEIR_MILLISECOND * WEIR_MILLISECOND;
    if (strcmp(lap->name, history->name) != 0)
        return WEIR_OK;
    bool is_first = !history->has_sum;
    if (end_ns > history->of.unix_ns) {
        put_sum(history);
        history->of.unix_ns = end_ns;
    }
    history->has_sum = true;
    return weir__lap_sum(&history->sum, is_first, lap)
               ? WEIR_OK
               : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory for the metrics");
}

static void put_history(weir_exposition *all, const weir_total *total, struct history *history)
{
    weir_filter filter = *all->filter;
    filter.run_id = total->key.run_id;
    filter.name = total->key.name;
    if (all->status == WEIR_OK)
        all->status = weir_recording_each(all->history, weir_record_kind_of(total->subject), &filter, put_past_lap,
                                          history, all->error);
    put_sum(history);
    if (history->has_sum)
        weir__total_forget(&history->sum);
}

static void put_totals(FILE *out, weir_exposition *all, const struct group *g, const family *f)
{
    put_family(out, f->name, f->type, f->help);
    for (int s = 0; s < g->num_subjects; s++) {
        const weir_total_list *list = &all->totals.of[g->subjects[s]];
        for (size_t i = 0; i < list->count; i++) {
            const weir_total *total = &list->all[i];
            struct history history = { .out = out, .f = f, .name = total->key.name };
            if ((g->kind && strcmp(g->kind, total->kind) != 0) ||
                !make_subject(all, total->key.run_id, g->label, total->key.name, &history.of))
                continue;
            if (g->num_subjects > 1) {
                history.of.second_key = "kind";
                history.of.second_value = total->kind;
            }
            if (all->history)
                put_history(all, total, &history);
            else
                f->put(out, f, &history.of, total);
        }
    }
}

/* "busy_time" -> "weir_stage_busy_seconds_total", "num_tasks" -> "weir_stage_tasks_total", "max_latency" ->
   "weir_queue_max_latency_seconds"; the growth of a total -> "weir_amount_total" */
static void name_family(family *f, const char *prefix, const weir_metric *metric)
{
    static const char time[] = "_time";
    const char *name = metric->name + (strncmp(metric->name, "num_", 4) == 0 ? 4 : 0);
    size_t length = strlen(name), tail = sizeof time - 1, unit = strlen(metric->unit);
    bool ends_with_time = length > tail && strcmp(name + length - tail, time) == 0;
    bool is_in_seconds = strcmp(metric->unit, "s") == 0 || (unit > 2 && strcmp(metric->unit + unit - 2, " s") == 0);
    if (metric->kind == WEIR_METRIC_GROWTH)
        snprintf(f->name, sizeof f->name, "%s_total", prefix);
    else
        snprintf(f->name, sizeof f->name, "%s_%.*s%s%s", prefix, (int)(ends_with_time ? length - tail : length), name,
                 is_in_seconds ? "_seconds" : "", f->type ? "" : "_total");
}

/* Of totals, only what adds up has a meaning. */
static bool has_metric(const struct group *g, const weir_metric *metric)
{
    bool is_growth = metric->kind == WEIR_METRIC_GROWTH;
    if (metric->kind == WEIR_METRIC_HISTOGRAM)
        return false;
    return g->kind == total_kind ? is_growth || metric->kind <= WEIR_METRIC_SUM : g->kind != level_kind || !is_growth;
}

static void put_metric_family(FILE *out, weir_exposition *all, const struct group *g, const weir_metric *metric)
{
    /* What may become smaller is a gauge; so is the integral of a level, which may be negative. */
    bool adds_up = metric->kind <= WEIR_METRIC_SUM || metric->kind == WEIR_METRIC_GROWTH ||
                   (metric->kind == WEIR_METRIC_LEVEL && g->kind != level_kind);
    family f = { .type = adds_up ? NULL : "gauge", .help = metric->meaning, .put = put_metric, .metric = metric };
    if (!has_metric(g, metric))
        return;
    name_family(&f, g->prefix, metric);
    put_totals(out, all, g, &f);
}

static void put_histogram_families(FILE *out, weir_exposition *all, const struct group *g,
                                   const weir_metric_histogram *histogram)
{
    family times = { .type = "histogram", .help = histogram->metric->meaning, .put = put_time_families };
    family percentiles = { .type = "gauge",
                           .help = "Percentiles of the time, within 1 %.",
                           .put = put_percentile_family };
    times.histogram = percentiles.histogram = *histogram;
    snprintf(times.name, sizeof times.name, "%s_%s_seconds", g->prefix, histogram->name);
    put_totals(out, all, g, &times);
    snprintf(percentiles.name, sizeof percentiles.name, "%s_%s_percentile_seconds", g->prefix, histogram->name);
    put_totals(out, all, g, &percentiles);
}

static void put_group(FILE *out, weir_exposition *all, const struct group *g)
{
    const weir_metric_table *table = weir_subject_metrics(g->subjects[0]);
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t num_histograms = weir__subject_histograms(g->subjects[0], histograms);
    for (size_t i = 0; i < num_histograms; i++)
        put_histogram_families(out, all, g, &histograms[i]);
    for (size_t i = 0; i < table->num_metrics; i++)
        put_metric_family(out, all, g, &table->metrics[i]);
    family f = { .help = "Time that the metrics cover, without that after the end.", .put = put_elapsed };
    snprintf(f.name, sizeof f.name, "%s_observed_seconds_total", g->prefix);
    put_totals(out, all, g, &f);
    if (!g->capacity)
        return;
    f = (family){ .type = "gauge", .help = g->capacity_help, .put = put_capacity };
    snprintf(f.name, sizeof f.name, "%s_%s", g->prefix, g->capacity);
    put_totals(out, all, g, &f);
}

/* -- families of runs */

static void put_run_infos(FILE *out, weir_exposition *all)
{
    put_family(out, "weir_run_info", "gauge", "A run: its program and the version of weir; always 1.");
    for (size_t i = 0; i < all->runs.count; i++) {
        const weir_run_record *run = &all->runs.all[i]->run;
        subject of = {
            .run = run, .key = "command", .value = run->command, .second_key = "version", .second_value = run->version
        };
        put_sample(out, "weir_run_info", "", &of, NULL, NULL, 1);
    }
}

static void put_limits(FILE *out, weir_exposition *all)
{
    static const char name[] = "weir_limit";
    bool is_first = true;
    for (size_t i = 0; i < all->runs.count; i++) {
        const weir_named_limit *limit = &all->overviews[i].limit;
        const subject of = { .run = &all->runs.all[i]->run,
                             .key = "kind",
                             .value = limit->kind,
                             .second_key = "stage",
                             .second_value = limit->stage };
        if (!all->overviews[i].has_limit)
            continue;
        if (is_first)
            put_family(out, name, "gauge", "What limits the run (weir explain): 1 for this kind and stage.");
        is_first = false;
        put_sample(out, name, "", &of, NULL, NULL, 1);
    }
}

static void put_rate(FILE *out, weir_exposition *all, const char *name, size_t offset, const char *help)
{
    put_family(out, name, "gauge", help);
    for (size_t i = 0; i < all->runs.count; i++) {
        double rate = *(const double *)(const void *)((const char *)&all->overviews[i] + offset);
        if (!isnan(rate))
            put_sample(out, name, "", &(subject){ .run = &all->runs.all[i]->run }, NULL, NULL, rate);
    }
}

static void put_overviews(FILE *out, weir_exposition *all)
{
    if (!all->overviews)
        return;
    put_limits(out, all);
    put_rate(out, all, "weir_items_per_second", offsetof(weir_overview, items_per_s),
             "Items that the consumer got per second.");
    put_rate(out, all, "weir_frames_per_second", offsetof(weir_overview, frames_per_s),
             "Frames that the consumer got per second, if the program counts them.");
}

static const struct run_figure {
    const char *name, *type, *help;
    size_t offset; /* in weir_run_record, of an int64_t unless it is the status */
    bool is_time;
} run_figures[] = {
    { "weir_run_start_timestamp_seconds", "gauge", "When the run started, in Unix time.",
      offsetof(weir_run_record, started_unix_ns), true },
    { "weir_run_end_timestamp_seconds", "gauge",
      "When the run ended, in Unix time; a run without it is running, or was killed.",
      offsetof(weir_run_record, ended_unix_ns), true },
    { "weir_run_status", "gauge", "How the run ended: 0 all delivered, -3 failed, -4 stopped.",
      offsetof(weir_run_record, status), false },
    { "weir_run_threads", "gauge", "Threads of the run.", offsetof(weir_run_record, threads), false },
    { "weir_run_entries_lost_total", NULL, "Entries that could not be recorded; the metrics lack them.",
      offsetof(weir_run_record, entries_lost), false },
};

static void put_run_figure(FILE *out, weir_exposition *all, const struct run_figure *f)
{
    put_family(out, f->name, f->type, f->help);
    for (size_t i = 0; i < all->runs.count; i++) {
        const weir_run_record *run = &all->runs.all[i]->run;
        const void *field = (const char *)run + f->offset;
        bool is_status = field == &run->status, is_of_end = is_status || field == &run->ended_unix_ns;
        double value = is_status ? run->status : (double)*(const int64_t *)field;
        bool is_known = f->is_time || strcmp(run->version, "SPDL") != 0;
        if (is_known && (run->has_ended || !is_of_end))
            put_sample(out, f->name, "", &(subject){ .run = run }, NULL, NULL, f->is_time ? value / 1e9 : value);
    }
}

/* The category is a label, unless it is optional and empty. */
static void put_key_sums(FILE *out, weir_exposition *all, const weir_key_sums *sums, const char *name,
                         const char *const labels[2], bool is_optional, const char *help)
{
    subject of;
    put_family(out, name, NULL, help);
    for (size_t i = 0; i < sums->count; i++) {
        const weir_key_sum *row = &sums->rows[i];
        if (make_subject(all, row->run_id, labels[0], row->name, &of))
            put_sample(out, name, "", &of, is_optional && !*row->category ? NULL : labels[1], row->category,
                       row->sum);
    }
}

static void put_runs(FILE *out, weir_exposition *all)
{
    put_run_infos(out, all);
    put_overviews(out, all);
    for (size_t i = 0; i < sizeof run_figures / sizeof run_figures[0]; i++)
        put_run_figure(out, all, &run_figures[i]);
    put_key_sums(out, all, &all->phases, "weir_phase_seconds_total", (const char *const[]){ "phase", "mode" }, true,
                 "Time that the consumer was in a phase of its job, and in a mode.");
    put_key_sums(out, all, &all->events, "weir_events_total", (const char *const[]){ "event", "category" }, false,
                 "Events of the run, by name and category.");
}

static void put_all(FILE *out, weir_exposition *all)
{
    if (!all->history)
        put_runs(out, all);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        put_group(out, all, &groups[i]);
    fputs("# EOF\n", out);
}

void weir__exposition_write(FILE *out, weir_exposition *exposition)
{
    /* The program may have set a locale that writes 0,5. */
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    locale_t before = plain ? uselocale(plain) : (locale_t)0;
    set_time_of_spans(&exposition->totals);
    put_all(out, exposition);
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
}
