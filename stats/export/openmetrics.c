/*
 * OpenMetrics text, of the kind that readers of the older Prometheus format (promtool, node_exporter's textfile
 * collector) understand the same way. The two differ in how a counter is declared: `# TYPE x counter` here,
 * `# TYPE x_total counter` there, and each is an error in the other. So our counters end with _total, as both want it,
 * and have no line of TYPE; histograms, summaries and gauges are the same in both.
 */
#include "exposition.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* -- tallies */

static weir_tally *find_tally(const weir_tallies *tallies, int64_t run_id, const char *name, const char *category)
{
    for (size_t i = 0; i < tallies->count; i++) {
        weir_tally *row = &tallies->rows[i];
        if (row->run_id == run_id && strcmp(row->name, name) == 0 && strcmp(row->category, category) == 0)
            return row;
    }
    return NULL;
}

static weir_tally *add_tally(weir_tallies *tallies, int64_t run_id, const char *name, const char *category)
{
    weir_tally *rows = realloc(tallies->rows, (tallies->count + 1) * sizeof *rows);
    if (!rows)
        return NULL;
    tallies->rows = rows;
    weir_tally *row = &rows[tallies->count];
    *row = (weir_tally){ .run_id = run_id, .name = strdup(name), .category = strdup(category) };
    if (!row->name || !row->category) {
        free(row->name);
        free(row->category);
        return NULL;
    }
    tallies->count++;
    return row;
}

int weir_tallies_add(weir_tallies *tallies, int64_t run_id, const char *name, const char *category, double amount)
{
    weir_tally *row = find_tally(tallies, run_id, name, category);
    if (!row && tallies->count >= WEIR_MAX_TALLIES) {
        name = category = WEIR_OTHERS;
        row = find_tally(tallies, run_id, name, category);
    }
    if (!row)
        row = add_tally(tallies, run_id, name, category);
    if (!row)
        return WEIR_ENOMEM;
    row->sum += amount;
    return WEIR_OK;
}

void weir_tallies_free(weir_tallies *tallies)
{
    for (size_t i = 0; i < tallies->count; i++) {
        free(tallies->rows[i].name);
        free(tallies->rows[i].category);
    }
    free(tallies->rows);
    *tallies = (weir_tallies){ 0 };
}

/* -- pieces of text */

static void put_value(FILE *out, double value)
{
    if (isnan(value) || isinf(value))
        fputs(isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf", out);
    else if (fabs(value) < 1e15 && value == floor(value))
        fprintf(out, "%" PRId64, (int64_t)value);
    else
        fprintf(out, "%.15g", value);
}

/* How many bytes of the text may be written as they are. */
static size_t plain_length(const char *text)
{
    size_t length = 0;
    while (text[length] && text[length] != '\n' && text[length] != '"' && text[length] != '\\') {
        size_t character = weir_utf8_length(text + length);
        if (character == 0)
            break;
        length += character;
    }
    return length;
}

/* key="value", with a comma before it unless it is the first. */
static void put_label(FILE *out, bool is_first, const char *key, const char *value)
{
    fprintf(out, "%s%s=\"", is_first ? "" : ",", key);
    for (;; value++) {
        size_t length = plain_length(value);
        fwrite(value, 1, length, out);
        value += length;
        if (!*value)
            break;
        if (*value == '\n')
            fputs("\\n", out);
        else if (*value == '"' || *value == '\\')
            fprintf(out, "\\%c", *value);
        else
            fprintf(out, "\\\\x%02x", (unsigned char)*value); /* so that different names stay different */
    }
    fputc('"', out);
}

/* Who a sample is about. */
typedef struct subject {
    const weir_run_record *run;
    const char *key, *value;               /* "stage" and its name, …; NULL = the run itself */
    const char *second_key, *second_value; /* NULL = none */
    double unix_time;                      /* when it was so; 0 = now, which is not written */
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
    if (of->unix_time != 0)
        fprintf(out, " %.3f", of->unix_time);
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

/* -- families: what is told of every stage, and of every queue */

typedef struct family {
    const char *name;
    const char *type; /* NULL for counters */
    const char *help;
    void (*put)(FILE *out, const struct family *f, const subject *of, const void *totals);
    size_t offset; /* in the totals, for put_count and put_real */
} family;

static void put_family(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n", name, help);
    if (type)
        fprintf(out, "# TYPE %s %s\n", name, type);
}

static void put_count(FILE *out, const family *f, const subject *of, const void *totals)
{
    const void *at = (const char *)totals + f->offset;
    put_sample(out, f->name, "", of, NULL, NULL, (double)*(const int64_t *)at);
}

static void put_real(FILE *out, const family *f, const subject *of, const void *totals)
{
    const void *at = (const char *)totals + f->offset;
    put_sample(out, f->name, "", of, NULL, NULL, *(const double *)at);
}

static void put_task_times(FILE *out, const family *f, const subject *of, const void *totals)
{
    const weir_task_totals *task = totals;
    put_histogram(out, f->name, of, task->times, task->success_time);
}

static void put_percentiles(FILE *out, const family *f, const subject *of, const void *totals)
{
    const weir_task_totals *task = totals;
    if (task->times->count == 0)
        return;
    put_sample(out, f->name, "", of, "percentile", "50", task->p50_time);
    put_sample(out, f->name, "", of, "percentile", "90", task->p90_time);
    put_sample(out, f->name, "", of, "percentile", "99", task->p99_time);
}

static void put_failure_times(FILE *out, const family *f, const subject *of, const void *totals)
{
    const weir_task_totals *task = totals;
    put_sample(out, f->name, "_sum", of, NULL, NULL, task->failed_time);
    put_sample(out, f->name, "_count", of, NULL, NULL, (double)task->num_failures);
}

static void put_slot_times(FILE *out, const family *f, const subject *of, const void *totals)
{
    const weir_task_totals *task = totals;
    put_sample(out, f->name, "", of, "state", "busy", task->busy_time);
    put_sample(out, f->name, "", of, "state", "wait_in", task->wait_in_time);
    put_sample(out, f->name, "", of, "state", "wait_thread", task->wait_thread_time);
    put_sample(out, f->name, "", of, "state", "wait_out", task->wait_out_time);
}

static void put_put_waits(FILE *out, const family *f, const subject *of, const void *totals)
{
    const weir_queue_totals *queue = totals;
    put_histogram(out, f->name, of, queue->put_times, queue->put_time);
}

static void put_get_waits(FILE *out, const family *f, const subject *of, const void *totals)
{
    const weir_queue_totals *queue = totals;
    put_histogram(out, f->name, of, queue->get_times, queue->get_time);
}

#define TASK(field)  offsetof(weir_task_totals, field)
#define QUEUE(field) offsetof(weir_queue_totals, field)

static const family task_families[] = {
    { "weir_task_duration_seconds", "histogram", "Run times of the tasks that succeeded.", put_task_times, 0 },
    { "weir_task_percentile_seconds", "gauge",
      "Run time that so many percent of the tasks that succeeded did not exceed, within 1 %.", put_percentiles, 0 },
    { "weir_task_longest_seconds", "gauge", "The longest run time of a task that succeeded.", put_real,
      TASK(max_time) },
    { "weir_task_failure_duration_seconds", "summary", "Run times of the tasks that failed.", put_failure_times, 0 },
    { "weir_tasks_skipped_total", NULL, "Tasks that succeeded and handed nothing on.", put_count, TASK(num_skipped) },
    { "weir_slot_seconds_total", NULL,
      "Slots times the time they were in a state: running, waiting for input, for a thread, for room.",
      put_slot_times, 0 },
    { "weir_task_cpu_seconds_total", NULL, "CPU time that threads spent in tasks.", put_real, TASK(cpu_time) },
    { "weir_stage_observed_seconds_total", NULL, "Time that the figures of the stage cover.", put_real,
      TASK(elapsed) },
};

static const family queue_families[] = {
    { "weir_queue_put_wait_seconds", "histogram", "How long the items put in had waited for room.", put_put_waits,
      0 },
    { "weir_queue_get_wait_seconds", "histogram", "How long the takers of the items taken out had waited for them.",
      put_get_waits, 0 },
    { "weir_queue_observed_seconds_total", NULL, "Time that the figures of the queue cover.", put_real,
      QUEUE(elapsed) },
    { "weir_queue_occupied_seconds_total", NULL, "Time in which the queue was not empty.", put_real,
      QUEUE(occupied) },
    { "weir_queue_item_seconds_total", NULL,
      "Items in the queue times the time they were there; over the observed time this is the average depth.",
      put_real, QUEUE(depth_time) },
    { "weir_queue_byte_seconds_total", NULL,
      "Bytes in the queue times the time they were there; over the observed time this is the average size.", put_real,
      QUEUE(bytes_time) },
    { "weir_queue_capacity_items", "gauge", "Items that the queue has room for.", put_count, QUEUE(capacity) },
    { "weir_queue_highest_items", "gauge", "The most items that were in the queue at once.", put_count,
      QUEUE(max_depth) },
    { "weir_queue_highest_bytes", "gauge", "The most bytes that were in the queue at once.", put_count,
      QUEUE(max_bytes) },
};

static int compare_runs(const void *key, const void *element)
{
    int64_t wanted = *(const int64_t *)key, there = ((const weir_run_record *)element)->run_id;
    return wanted < there ? -1 : wanted > there;
}

/* False if the run is not among those told of. */
static bool make_subject(const weir_exposition *all, int64_t run_id, const char *key, const char *value, subject *of)
{
    *of = (subject){ .key = key, .value = value };
    of->run = bsearch(&run_id, all->runs, all->num_runs, sizeof *all->runs, compare_runs);
    return of->run != NULL;
}

/* One subject in one family, at several times. */
struct history {
    FILE *out;
    const family *f;
    subject of;
};

static void put_past(void *self, double unix_time, const void *totals)
{
    struct history *history = self;
    if (unix_time <= history->of.unix_time)
        return; /* readers refuse what is not after the last one */
    history->of.unix_time = unix_time;
    history->f->put(history->out, history->f, &history->of, totals);
}

static void put_past_or_present(FILE *out, const weir_exposition *all, const family *f, const subject *of,
                                bool is_queue, const weir_group_key *key, const void *totals)
{
    struct history history = { .out = out, .f = f, .of = *of };
    if (all->walk)
        all->walk(all->walker, is_queue, key, put_past, &history);
    else
        f->put(out, f, of, totals);
}

static void put_task_family(FILE *out, const weir_exposition *all, const family *f)
{
    subject of;
    put_family(out, f->name, f->type, f->help);
    for (size_t i = 0; i < all->totals->num_tasks; i++) {
        const weir_task_totals *task = &all->totals->tasks[i];
        if (make_subject(all, task->key.run_id, "stage", task->key.name, &of))
            put_past_or_present(out, all, f, &of, false, &task->key, task);
    }
}

static void put_queue_family(FILE *out, const weir_exposition *all, const family *f)
{
    subject of;
    put_family(out, f->name, f->type, f->help);
    for (size_t i = 0; i < all->totals->num_queues; i++) {
        const weir_queue_totals *queue = &all->totals->queues[i];
        if (make_subject(all, queue->key.run_id, "queue", queue->key.name, &of))
            put_past_or_present(out, all, f, &of, true, &queue->key, queue);
    }
}

/* -- families: what is told of every run */

static void put_run_infos(FILE *out, const weir_exposition *all)
{
    put_family(out, "weir_run_info", "gauge", "A run: its program and the version of weir; always 1.");
    for (size_t i = 0; i < all->num_runs; i++) {
        const weir_run_record *run = &all->runs[i];
        subject of = {
            .run = run, .key = "command", .value = run->command, .second_key = "version", .second_value = run->version
        };
        put_sample(out, "weir_run_info", "", &of, NULL, NULL, 1);
    }
}

typedef struct run_figure {
    const char *name, *type, *help;
    bool of_ended; /* only runs that have ended have it */
    double (*value)(const weir_run_record *run);
} run_figure;

static double run_started(const weir_run_record *run)
{
    return run->started;
}

static double run_ended(const weir_run_record *run)
{
    return run->ended;
}

static double run_status(const weir_run_record *run)
{
    return run->status;
}

static double run_threads(const weir_run_record *run)
{
    return (double)run->threads;
}

static double run_entries_lost(const weir_run_record *run)
{
    return (double)run->entries_lost;
}

static const run_figure run_figures[] = {
    { "weir_run_start_timestamp_seconds", "gauge", "When the run started, in Unix time.", false, run_started },
    { "weir_run_end_timestamp_seconds", "gauge",
      "When the run ended, in Unix time; a run without it is running, or was killed.", true, run_ended },
    { "weir_run_status", "gauge", "How the run ended: 0 all delivered, -3 failed, -4 stopped.", true, run_status },
    { "weir_run_threads", "gauge", "Threads of the run.", false, run_threads },
    { "weir_run_entries_lost_total", NULL, "Entries that could not be recorded; the figures lack them.", false,
      run_entries_lost },
};

static void put_run_figure(FILE *out, const weir_exposition *all, const run_figure *f)
{
    put_family(out, f->name, f->type, f->help);
    for (size_t i = 0; i < all->num_runs; i++) {
        subject of = { .run = &all->runs[i] };
        if (!f->of_ended || all->runs[i].has_ended)
            put_sample(out, f->name, "", &of, NULL, NULL, f->value(&all->runs[i]));
    }
}

static void put_tallies(FILE *out, const weir_exposition *all)
{
    subject of;
    put_family(out, "weir_phase_seconds_total", NULL, "Time that the consumer was in a phase of its job.");
    for (size_t i = 0; i < all->phases.count; i++) {
        const weir_tally *row = &all->phases.rows[i];
        if (make_subject(all, row->run_id, "phase", row->name, &of))
            put_sample(out, "weir_phase_seconds_total", "", &of, NULL, NULL, row->sum);
    }
    put_family(out, "weir_events_total", NULL, "Events of the run, by name and category.");
    for (size_t i = 0; i < all->events.count; i++) {
        const weir_tally *row = &all->events.rows[i];
        if (make_subject(all, row->run_id, "event", row->name, &of))
            put_sample(out, "weir_events_total", "", &of, "category", row->category, row->sum);
    }
}

static void put_runs(FILE *out, const weir_exposition *all)
{
    put_run_infos(out, all);
    for (size_t i = 0; i < sizeof run_figures / sizeof run_figures[0]; i++)
        put_run_figure(out, all, &run_figures[i]);
    put_tallies(out, all);
}

static void put_all(FILE *out, const weir_exposition *all)
{
    if (!all->walk)
        put_runs(out, all);
    for (size_t i = 0; i < sizeof task_families / sizeof task_families[0]; i++)
        put_task_family(out, all, &task_families[i]);
    for (size_t i = 0; i < sizeof queue_families / sizeof queue_families[0]; i++)
        put_queue_family(out, all, &queue_families[i]);
    fputs("# EOF\n", out);
}

void weir_exposition_write(FILE *out, const weir_exposition *exposition)
{
    /* The program around us may have asked for a locale that writes 0,5. */
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    locale_t before = plain ? uselocale(plain) : (locale_t)0;
    put_all(out, exposition);
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
}
