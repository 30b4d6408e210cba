/*
 * Checks that a database is consistent. First the file (columns, pages, references), then the metrics of each run, in
 * one pass over each table. One of these checks finds a lap that was recorded twice, lost, or written by another
 * program.
 */
#include <weir/maintain.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "database_path.h"
#include "database_reader.h"
#include "lap_rows.h"
#include "record_tables.h"
#include "schema.h"

enum {
    MAX_REPORTED = 5, /* faults of one kind in one run that are reported one by one */
    MAX_INTEGRITY_LINES = 20,
};

/* Tolerance of slot times: they are summed in nanoseconds and stored as doubles. */
#define SHARE_TOLERANCE 0.01
#define TIME_TOLERANCE  0.002

/*
 * Tolerance of a lap's timestamp: the wall clock may be adjusted, by a little if NTP does it, and other programs than
 * the engine may have recorded. A missing or duplicate lap shows as its whole length.
 */
#define CLOCK_TOLERANCE 0.25

/* The checks of a run. */
typedef enum run_check {
    CHECK_HISTOGRAMS,
    CHECK_LAPS,
    CHECK_SLOTS,
    CHECK_FAILURES,
    CHECK_QUEUES,
    NUM_CHECKS
} run_check;

static const char *const check_names[NUM_CHECKS] = { "histograms", "laps", "slots", "failures", "queues" };

/* A stage or a queue of the run, with the laps read so far. */
typedef struct series {
    UT_hash_handle hh;
    int64_t num_laps;
    int64_t end_unix_ns;     /* of the last lap */
    int64_t concurrency;     /* of a stage; 0 = not known */
    uint64_t num_failures;   /* counted by the laps */
    uint64_t num_records;    /* of failures */
    uint64_t num_put, taken; /* of a queue */
    char name[];
} series;

typedef struct checking {
    weir_reader *reader;
    bool quick;
    weir_finding_function *report;
    void *self;
    weir_error *error;

    /* of the run that is being checked */
    weir_run_record run;
    series *all; /* by name, in the order of the first record */
    bool concurrency_changed;
    bool clock_was_set;
    int64_t num_faults[NUM_CHECKS];
} checking;

/* -- reporting */

static void tell_text(const checking *c, weir_finding_level level, const char *check, int64_t run_id,
                      const char *text)
{
    c->report(c->self, &(weir_finding){ level, check, run_id, text });
}

static void tell_v(const checking *c, weir_finding_level level, const char *check, int64_t run_id, const char *format,
                   va_list arguments)
{
    char text[600];
    vsnprintf(text, sizeof text, format, arguments);
    tell_text(c, level, check, run_id, text);
}

static void report_finding(const checking *c, weir_finding_level level, const char *check, int64_t run_id,
                           const char *format, ...) WEIR_PRINTF(5, 6);

static void report_finding(const checking *c, weir_finding_level level, const char *check, int64_t run_id,
                           const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell_v(c, level, check, run_id, format, arguments);
    va_end(arguments);
}

static void report_fault(checking *c, run_check check, const char *format, ...) WEIR_PRINTF(3, 4);

/* A fault of the run; the first few of a kind are reported, the others counted. */
static void report_fault(checking *c, run_check check, const char *format, ...)
{
    if (++c->num_faults[check] > MAX_REPORTED)
        return;
    va_list arguments;
    va_start(arguments, format);
    tell_v(c, WEIR_FINDING_FAULT, check_names[check], c->run.run_id, format, arguments);
    va_end(arguments);
}

/* -- the file */

/* Counts the columns that a table lacks, and reports each. */
static int check_columns(checking *c, const char *table, const char *const columns[], int64_t *num_lacking)
{
    int code;
    char *there = weir__table_columns(c->reader->db, table, &code);
    for (size_t i = 0; columns[i] && code == SQLITE_OK; i++)
        if (!there || !weir__has_word(there, columns[i])) {
            ++*num_lacking;
            report_finding(c, WEIR_FINDING_FAULT, "schema", 0, "table %s has no column %s", table, columns[i]);
        }
    sqlite3_free(there);
    return code == SQLITE_OK ? WEIR_OK : weir__reader_error(c->reader, code, c->error);
}

/* All columns except those of metrics, which may have been added since. */
static int check_schema(checking *c, int64_t *num_lacking)
{
    static const weir_record_kind kinds[] = { WEIR_RECORD_RUN, WEIR_RECORD_STAGE, WEIR_RECORD_EVENT,
                                              WEIR_RECORD_FAILURE, WEIR_RECORD_ITEM };
    const char *columns[WEIR_MAX_LAP_COLUMNS];
    int status = WEIR_OK;
    *num_lacking = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0] && status == WEIR_OK; k++) {
        const weir_record_table *table = weir__record_table_of(kinds[k]);
        size_t count = 0;
        for (size_t i = 0; i < table->num_columns; i++)
            if (!table->columns[i].expression)
                columns[count++] = table->columns[i].name;
        columns[count] = NULL;
        status = check_columns(c, table->name, columns, num_lacking);
    }
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && status == WEIR_OK; subject++) {
        size_t count = 0, all = weir__lap_table_columns(subject, columns);
        for (size_t i = 0; i < all; i++)
            if (!weir_measure_find(subject, columns[i]))
                columns[count++] = columns[i];
        columns[count] = NULL;
        status = check_columns(c, weir__lap_tables[subject].name, columns, num_lacking);
    }
    if (status == WEIR_OK && *num_lacking == 0)
        report_finding(c, WEIR_FINDING_OK, "schema", 0, "schema %d, all tables and columns", c->reader->schema);
    return status;
}

/* Calls `each` for every row of a query. */
static int for_each_row(checking *c, const char *sql, int64_t run_id,
                        int (*each)(checking *c, sqlite3_stmt *row, int64_t *count), int64_t *count)
{
    sqlite3_stmt *row = NULL;
    int code = sqlite3_prepare_v2(c->reader->db, sql, -1, &row, NULL), status = WEIR_OK;
    if (code == SQLITE_OK && run_id)
        code = sqlite3_bind_int64(row, 1, run_id);
    if (code == SQLITE_OK)
        while (status == WEIR_OK && (code = sqlite3_step(row)) == SQLITE_ROW)
            status = each(c, row, count);
    sqlite3_finalize(row);
    if (status != WEIR_OK || code == SQLITE_DONE)
        return status;
    return weir__reader_error(c->reader, code, c->error);
}

static int integrity_line(checking *c, sqlite3_stmt *row, int64_t *num_faults)
{
    if (strcmp(weir__column_text(row, 0), "ok") != 0) {
        ++*num_faults;
        tell_text(c, WEIR_FINDING_FAULT, "integrity", 0, weir__column_text(row, 0));
    }
    return WEIR_OK;
}

static int check_integrity(checking *c)
{
    char sql[64];
    int64_t num_faults = 0;
    snprintf(sql, sizeof sql, "PRAGMA %s(%d)", c->quick ? "quick_check" : "integrity_check", MAX_INTEGRITY_LINES);
    int status = for_each_row(c, sql, 0, integrity_line, &num_faults);
    if (status == WEIR_OK && num_faults == 0)
        report_finding(c, WEIR_FINDING_OK, "integrity", 0, "the file is intact%s", c->quick ? " (quick check)" : "");
    return status;
}

static int reference_line(checking *c, sqlite3_stmt *row, int64_t *num_faults)
{
    if (++*num_faults <= MAX_REPORTED)
        report_finding(c, WEIR_FINDING_FAULT, "references", 0, "row %lld of %s belongs to a run that does not exist",
                       sqlite3_column_int64(row, 1), weir__column_text(row, 0));
    return WEIR_OK;
}

static int check_references(checking *c)
{
    int64_t num_faults = 0;
    int status = for_each_row(c, "PRAGMA foreign_key_check", 0, reference_line, &num_faults);
    if (status == WEIR_OK && num_faults > MAX_REPORTED)
        report_finding(c, WEIR_FINDING_FAULT, "references", 0, "and %" PRId64 " more of this kind",
                       num_faults - MAX_REPORTED);
    if (status == WEIR_OK && num_faults == 0)
        report_finding(c, WEIR_FINDING_OK, "references", 0, "every row belongs to a run");
    return status;
}

/* -- a run: the series of each name */

static int find_series(checking *c, const char *name, series **found)
{
    size_t length = strlen(name);
    HASH_FIND(hh, c->all, name, (unsigned)length, *found);
    if (*found)
        return WEIR_OK;
    series *added = calloc(1, sizeof *added + length + 1);
    if (!added)
        return weir__reader_out_of_memory(c->error);
    memcpy(added->name, name, length);
    HASH_ADD(hh, c->all, name[0], (unsigned)length, added);
    if (!added->hh.tbl) {
        free(added);
        return weir__reader_out_of_memory(c->error);
    }
    *found = added;
    return WEIR_OK;
}

static void free_series(checking *c)
{
    series *one, *next;
    HASH_ITER(hh, c->all, one, next)
    {
        HASH_DEL(c->all, one);
        free(one);
    }
}

/* Runs `each` for every record of a kind of the run. */
static int for_each_record(checking *c, weir_record_kind kind, int (*each)(checking *c, const weir_record *record))
{
    weir_query *query;
    const weir_record *record;
    int status = weir_query_begin(c->reader, kind, &(weir_filter){ .run_id = c->run.run_id }, &query, c->error);
    if (status == WEIR_OK)
        weir__query_tolerate_damage(query);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, c->error)) == WEIR_OK)
        status = each(c, record);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static int note_stage(checking *c, const weir_record *record)
{
    series *stage;
    int status = find_series(c, record->stage.name, &stage);
    if (status == WEIR_OK)
        stage->concurrency = record->stage.concurrency;
    return status;
}

static int note_event(checking *c, const weir_record *record)
{
    c->concurrency_changed |= strcmp(record->event.name, "concurrency") == 0;
    c->clock_was_set |= strcmp(record->event.name, "clock_set") == 0;
    return WEIR_OK;
}

/* -- a run: laps */

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

/* A lap starts where the previous one ended, and ends later. */
static void check_lap_times(checking *c, series *s, const weir_lap_record *lap)
{
    double apart = seconds(lap->end_unix_ns) - seconds(lap->elapsed_ns) - seconds(s->end_unix_ns),
           elapsed = seconds(lap->elapsed_ns);
    bool is_first = s->num_laps++ == 0, is_behind = lap->end_unix_ns > s->end_unix_ns || lap->elapsed_ns == 0;
    s->end_unix_ns = lap->end_unix_ns;
    if (!is_first && !c->clock_was_set && (fabs(apart) > CLOCK_TOLERANCE + SHARE_TOLERANCE * elapsed || !is_behind))
        report_fault(c, CHECK_LAPS, "row %" PRId64 " of %s: %.3f s are %s between it and the lap of %s before it",
                     lap->id, weir__lap_tables[lap->subject].name, fabs(apart),
                     apart > 0 ? "missing" : "recorded twice", s->name);
}

/* Each time is known to the width of its bucket, and so is the mean; the last bucket has no upper edge. */
static bool is_mean_of(const weir_histogram *times, double mean)
{
    double least = 0, most = 0, slack = 1e-9 + 1e-6 * mean;
    for (uint32_t i = times->first; times->count && i <= times->last; i++) {
        int64_t low_ns, high_ns;
        if (times->buckets[i] == 0)
            continue;
        weir_histogram_bucket_range(i, &low_ns, &high_ns);
        least += (double)times->buckets[i] * (double)low_ns / 1e9;
        most += i == WEIR_HISTOGRAM_BUCKETS - 1 ? INFINITY : (double)times->buckets[i] * (double)high_ns / 1e9;
    }
    return times->count == 0 ||
           (mean >= least / (double)times->count - slack && mean <= most / (double)times->count + slack);
}

/* The number of times that a histogram must hold. */
static int64_t wanted_count(const weir_lap_record *lap, const weir_metric_histogram *histogram)
{
    if (lap->subject == WEIR_SUBJECT_SPAN)
        return (int64_t)lap->metrics.span.num_spans;
    if (lap->subject != WEIR_SUBJECT_QUEUE)
        return (int64_t)(lap->metrics.task.num_tasks - lap->metrics.task.num_failures);
    if (strcmp(histogram->name, "latency") == 0 && lap->metrics.queue.latency_ns < 0)
        return 0;
    return (int64_t)(strcmp(histogram->name, "put_time") == 0 ? lap->metrics.queue.num_put
                                                              : lap->metrics.queue.num_items);
}

static void check_histograms(checking *c, weir_lap_record *lap)
{
    const char *table = weir__lap_tables[lap->subject].name;
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir_subject_histograms(lap->subject, histograms);
    for (size_t i = 0; i < count; i++) {
        const char *column = histograms[i].metric->name;
        const weir_histogram *times = *weir_metric_histogram_at(histograms[i].metric, &lap->metrics);
        int64_t wanted = wanted_count(lap, &histograms[i]);
        double sum = weir_measure_of(lap->subject, histograms[i].sum, &lap->metrics, lap->elapsed_ns);
        if (!times)
            report_fault(c, CHECK_HISTOGRAMS, "row %" PRId64 " of %s has no valid %s", lap->id, table, column);
        else if ((int64_t)times->count != wanted)
            report_fault(c, CHECK_HISTOGRAMS,
                         "row %" PRId64 " of %s: %s holds %" PRIu64 " times, and %" PRId64 " were counted", lap->id,
                         table, column, times->count, wanted);
        else if (wanted && !is_mean_of(times, sum / (double)wanted))
            report_fault(c, CHECK_HISTOGRAMS, "row %" PRId64 " of %s: the times of %s are not %g s on the average",
                         lap->id, table, column, sum / (double)wanted);
    }
}

/* busy + waiting is slots × elapsed, exactly; concurrency may have changed while it ran. */
static void check_slots(checking *c, const series *stage, const weir_lap_record *lap)
{
    int64_t slots_ns = weir_slots_ns(&lap->metrics.task);
    double recorded = seconds(slots_ns), wanted = (double)stage->concurrency * seconds(lap->elapsed_ns);
    if (slots_ns >= 0 && stage->concurrency && !c->concurrency_changed &&
        fabs(recorded - wanted) > SHARE_TOLERANCE * wanted + TIME_TOLERANCE * (double)stage->concurrency)
        report_fault(c, CHECK_SLOTS,
                     "row %" PRId64 " of %s: busy and waiting times add up to %.3f s, and %" PRId64
                     " slots of %s have %.3f s",
                     lap->id, weir__lap_tables[lap->subject].name, recorded, stage->concurrency, lap->name, wanted);
}

static void check_queue(checking *c, series *queue, const weir_lap_record *lap)
{
    double occupancy = weir_measure_of(lap->subject, "occupancy_rate", &lap->metrics, lap->elapsed_ns);
    if (!isnan(occupancy) && !(occupancy >= 0 && occupancy <= 1 + SHARE_TOLERANCE))
        report_fault(c, CHECK_QUEUES, "row %" PRId64 " of queue_stats: an occupancy of %g", lap->id, occupancy);
    queue->num_put += lap->metrics.queue.num_put;
    queue->taken += lap->metrics.queue.num_items;
}

static int check_lap(checking *c, const weir_record *record)
{
    series *s;
    weir_lap_record lap = record->lap;
    int status = find_series(c, lap.name, &s);
    if (status != WEIR_OK)
        return status;
    check_lap_times(c, s, &lap);
    check_histograms(c, &lap);
    if (lap.subject == WEIR_SUBJECT_QUEUE)
        check_queue(c, s, &lap);
    if (lap.subject == WEIR_SUBJECT_STAGE || lap.subject == WEIR_SUBJECT_FLOW) {
        check_slots(c, s, &lap);
        s->num_failures += lap.metrics.task.num_failures;
    }
    return WEIR_OK;
}

/* What user code recorded need not be in every lap. */
static int check_user_lap(checking *c, const weir_record *record)
{
    weir_lap_record lap = record->lap;
    check_histograms(c, &lap);
    return WEIR_OK;
}

/* -- a run: sums */

static int count_failures(checking *c, sqlite3_stmt *row, int64_t *count)
{
    (void)count;
    series *stage;
    int status = find_series(c, weir__column_text(row, 0), &stage);
    if (status == WEIR_OK)
        stage->num_records = (uint64_t)sqlite3_column_int64(row, 1);
    return status;
}

static void check_sums(checking *c, const series *s)
{
    const char *name = s->name;
    bool all_told = c->run.has_ended && c->run.entries_lost == 0;
    if (all_told && s->num_laps && s->num_failures != s->num_records && s->num_put == 0 && s->taken == 0)
        report_fault(c, CHECK_FAILURES, "%s: %" PRIu64 " tasks failed, and %" PRIu64 " failures are recorded", name,
                     s->num_failures, s->num_records);
    if (s->taken > s->num_put && c->run.entries_lost == 0)
        report_fault(c, CHECK_QUEUES, "%s: %" PRIu64 " items were taken out, and %" PRIu64 " put in", name, s->taken,
                     s->num_put);
    else if (all_told && c->run.status == WEIR_OK && s->taken < s->num_put)
        report_fault(c, CHECK_QUEUES,
                     "%s: of %" PRIu64 " items put in %" PRIu64 " were taken out, though the run ended well", name,
                     s->num_put, s->taken);
}

static const char *const holds[NUM_CHECKS] = {
    [CHECK_HISTOGRAMS] = "hold as many times as tasks and items were counted",
    [CHECK_LAPS] = "each begins where the one before it ended",
    [CHECK_SLOTS] = "busy and waiting times add up to slots × time",
    [CHECK_FAILURES] = "each failed task is recorded",
    [CHECK_QUEUES] = "what was put in was taken out",
};

static void tell_run(checking *c)
{
    const weir_run_record *run = &c->run;
    for (const series *one = c->all; one; one = one->hh.next)
        check_sums(c, one);
    for (int i = 0; i < NUM_CHECKS; i++) {
        if (c->num_faults[i] > MAX_REPORTED)
            report_finding(c, WEIR_FINDING_FAULT, check_names[i], run->run_id, "and %" PRId64 " more of this kind",
                           c->num_faults[i] - MAX_REPORTED);
        if (c->num_faults[i] == 0)
            tell_text(c, WEIR_FINDING_OK, check_names[i], run->run_id, holds[i]);
    }
}

static void tell_end(const checking *c)
{
    const weir_run_record *run = &c->run;
    if (!run->threads)
        report_finding(c, WEIR_FINDING_NOTE, "run", run->run_id, "never started");
    else if (!run->has_ended)
        report_finding(c, WEIR_FINDING_NOTE, "run", run->run_id,
                       "has not ended: it is running, or was killed; failures and items are not compared");
    else
        report_finding(c, WEIR_FINDING_OK, "run", run->run_id, "ended with %s", weir_status_name(run->status));
    if (run->entries_lost)
        report_finding(c, WEIR_FINDING_FAULT, "run", run->run_id,
                       "%" PRId64 " entries could not be written: its metrics lack them", run->entries_lost);
}

static int check_run(void *self, const weir_record *record, weir_error *error)
{
    (void)error; /* that of the checking */
    checking *c = self;
    c->run = record->run;
    if (strcmp(record->run.version, "SPDL") == 0) {
        report_finding(c, WEIR_FINDING_NOTE, "run", c->run.run_id,
                       "recorded by SPDL, which stores too little to check");
        return WEIR_OK;
    }
    c->concurrency_changed = c->clock_was_set = false;
    memset(c->num_faults, 0, sizeof c->num_faults);
    tell_end(c);
    int status = for_each_record(c, WEIR_RECORD_STAGE, note_stage);
    if (status == WEIR_OK)
        status = for_each_record(c, WEIR_RECORD_EVENT, note_event);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && status == WEIR_OK; subject++)
        status = for_each_record(c, weir_record_kind_of(subject),
                                 subject >= WEIR_SUBJECT_SPAN ? check_user_lap : check_lap);
    if (status == WEIR_OK)
        status = for_each_row(c, "SELECT name, count(*) FROM task_failures WHERE run_id = ? GROUP BY name",
                              c->run.run_id, count_failures, NULL);
    if (status == WEIR_OK && c->run.threads)
        tell_run(c);
    free_series(c);
    return status;
}

int weir_database_check(weir_reader *reader, bool quick, weir_finding_function *finding, void *self,
                        weir_error *error)
{
    if (!reader || !finding)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    checking c = { .reader = reader, .quick = quick, .report = finding, .self = self, .error = error };
    int64_t num_lacking = 0;
    if (reader->is_spdl)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "database %s was recorded by SPDL, which stores too little to check",
                              weir__path_for_message(reader->path).text);
    int status = weir_reader_hold(reader, error);
    if (status != WEIR_OK)
        return status;
    status = check_schema(&c, &num_lacking);
    if (status == WEIR_OK)
        status = check_integrity(&c);
    if (status == WEIR_OK && num_lacking == 0)
        status = check_references(&c);
    if (status == WEIR_OK && num_lacking == 0)
        status = weir_reader_each(reader, WEIR_RECORD_RUN, NULL, check_run, &c, error);
    if (status == WEIR_OK && num_lacking == 0 && c.run.run_id == 0)
        report_finding(&c, WEIR_FINDING_NOTE, "run", 0, "no runs");
    weir_reader_release(reader);
    return status;
}
