/* The summary as text: SPDL's lines first, with SPDL's wording; derived metrics come from measures.c. */
#include <weir/summary.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>

#include "common/format.h"
#include "common/text_escape.h"
#include "common/text_stream.h"
#include "common/unix_clock.h"
#include "stats/read/open_recording.h"
#include "stats/schema/record_tables.h"

enum { RULE_WIDTH = 80 };

static double value_of(const weir_total *total, const char *name)
{
    return weir_total_value(total, weir_measure_find(total->subject, name));
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100.0 * part / whole : 0.0;
}

static void put_rule(FILE *out, char character)
{
    for (int i = 0; i < RULE_WIDTH; i++)
        fputc(character, out);
    fputc('\n', out);
}

static void put_heading(FILE *out, const char *text)
{
    fprintf(out, "%s\n", text);
    put_rule(out, '-');
}

static void print_name(FILE *out, const char *what, const weir_total *total)
{
    fprintf(out, "\n  %s: ", what);
    weir__text_escape_to(out, total->key.name);
    fputc('\n', out);
}

/* SPDL's line, always in seconds with four decimals; print_times() repeats short averages with their unit. */
static void put_seconds(FILE *out, const char *what, double seconds)
{
    if (isnan(seconds))
        fprintf(out, "    %s: n/a\n", what);
    else
        fprintf(out, "    %s: %.4fs\n", what, seconds);
}

static void print_time(FILE *out, const char *before, double seconds)
{
    char figure[WEIR_FORMAT_BYTES];
    weir__text_format_time(figure, seconds);
    fprintf(out, "%s%s", before, figure);
}

/* "    Task time min / p50 / …: …", without unknown values; also the average, if put_seconds() shows at most one digit
   of it */
static void print_times(FILE *out, const char *what, const weir_total *total, const char *const measures[5],
                        double average)
{
    static const char *const words[] = { "min", "p50", "p90", "p99", "max" };
    double values[5];
    const char *between = "";
    for (int i = 0; i < 5; i++)
        values[i] = measures[i] ? value_of(total, measures[i]) : NAN;
    if (isnan(values[1]))
        return;
    fprintf(out, "    %s ", what);
    for (int i = 0; i < 5; i++)
        if (!isnan(values[i])) {
            fprintf(out, "%s%s", between, words[i]);
            between = " / ";
        }
    between = ": ";
    for (int i = 0; i < 5; i++)
        if (!isnan(values[i])) {
            print_time(out, between, values[i]);
            between = " / ";
        }
    if (average > 0 && average < 0.001)
        print_time(out, "; average ", average);
    fputc('\n', out);
}

static const char *const task_times[5] = { "min_time", "p50_time", "p90_time", "p99_time", "max_time" };
static const char *const put_waits[5] = { NULL, "p50_put_time", "p90_put_time", "p99_put_time", "max_put_time" };
static const char *const get_waits[5] = { NULL, "p50_get_time", "p90_get_time", "p99_get_time", "max_get_time" };

static void put_slot_shares(FILE *out, const weir_total *total)
{
    static const struct {
        const char *measure, *text;
        bool always;
    } waits[] = {
        { "wait_in_share", "waiting for input", true },
        { "wait_thread_share", "for a thread", true },
        { "wait_turn_share", "for its turn", false },
        { "wait_out_share", "for room", true },
    };
    double busy = value_of(total, "busy_share"), cpu = value_of(total, "cpu_share");
    if (isnan(busy))
        return;
    bool is_worker = total->metrics.task.num_tasks > 0 || busy > 0;
    fputs("    Slot time: ", out);
    if (is_worker)
        fprintf(out, "%.1f%% busy", 100 * busy);
    if (is_worker && !isnan(cpu))
        fprintf(out, " (%.1f%% of it on a CPU)", 100 * cpu);
    const char *between = is_worker ? ", " : "";
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        double share = value_of(total, waits[i].measure);
        if (!waits[i].always && !(share > 0))
            continue;
        fprintf(out, "%s%.1f%% %s", between, 100 * share, waits[i].text);
        between = ", ";
    }
    fputc('\n', out);
}

static void put_task_lines(FILE *out, const weir_total *total)
{
    const weir_task_metrics *m = &total->metrics.task;
    fprintf(out, "    Total tasks processed: %" PRIu64 "\n    Total failures: %" PRIu64 "\n", m->num_tasks,
            m->num_failures);
    put_seconds(out, "Average task time", value_of(total, "ave_time"));
    if (m->num_tasks)
        fprintf(out, "    Success rate: %.1f%%\n",
                percent((double)m->num_tasks - (double)m->num_failures, (double)m->num_tasks));
    else
        fputs("    Success rate: n/a\n", out);
    fprintf(out, "    Number of log entries: %" PRId64 "\n", total->key.num_laps);
    if (m->num_skipped)
        fprintf(out, "    Total skipped: %" PRIu64 "\n", m->num_skipped);
    print_times(out, "Task time", total, task_times, value_of(total, "ave_time"));
}

/* Failed tasks keep slots busy as others do. */
static void put_failed_time(FILE *out, const weir_total *total)
{
    double share = value_of(total, "failed_time_share");
    if (!total->metrics.task.num_failures || isnan(share))
        return;
    put_seconds(out, "Average time of failed tasks", value_of(total, "ave_failed_time"));
    fprintf(out, "    Failed tasks: %.1f%% of the slot time\n", 100 * share);
}

/* Only of stages that report it. */
static void put_held(FILE *out, const weir_total *total)
{
    char highest[WEIR_FORMAT_BYTES];
    if (total->metrics.task.max_held_bytes <= 0)
        return;
    weir__text_format_bytes(highest, (double)total->metrics.task.max_held_bytes);
    fprintf(out, "    Memory held: highest %s\n", highest);
}

static void put_task(FILE *out, const weir_total *total)
{
    print_name(out, "Stage", total);
    put_task_lines(out, total);
    put_slot_shares(out, total);
    put_failed_time(out, total);
    put_held(out, total);
}

static void print_level(FILE *out, const weir_total *total)
{
    const weir_queue_metrics *m = &total->metrics.queue;
    if (total->capacity == 0)
        return; /* not known */
    fprintf(out, "    Level: average %.1f, highest %" PRId64 " of %" PRId64 " items", value_of(total, "ave_depth"),
            m->max_depth, total->capacity);
    if (m->max_bytes) {
        char average[WEIR_FORMAT_BYTES], highest[WEIR_FORMAT_BYTES];
        weir__text_format_bytes(average, value_of(total, "ave_bytes"));
        weir__text_format_bytes(highest, (double)m->max_bytes);
        fprintf(out, "; average %s, highest %s", average, highest);
    }
    fputc('\n', out);
}

static void put_queue(FILE *out, const weir_total *total)
{
    print_name(out, "Queue", total);
    fprintf(out, "    Total items processed: %" PRIu64 "\n    Average QPS: %.2f\n", total->metrics.queue.num_items,
            weir__or_zero(value_of(total, "items_per_s")));
    put_seconds(out, "Average put time", weir__or_zero(value_of(total, "ave_put_time")));
    put_seconds(out, "Average get time", weir__or_zero(value_of(total, "ave_get_time")));
    fprintf(out, "    Average occupancy rate: %.1f%%\n    Number of log entries: %" PRId64 "\n",
            100 * weir__or_zero(value_of(total, "occupancy_rate")), total->key.num_laps);
    print_times(out, "Put time", total, put_waits, value_of(total, "ave_put_time"));
    print_times(out, "Get time", total, get_waits, value_of(total, "ave_get_time"));
    print_level(out, total);
}

/* Sources have tasks; merges and sinks have slots only. */
static void print_flow(FILE *out, const weir_total *total)
{
    char what[40];
    snprintf(what, sizeof what, "%s", total->kind);
    if (*what >= 'a' && *what <= 'z')
        *what = (char)(*what - 'a' + 'A');
    print_name(out, what, total);
    if (total->metrics.task.num_tasks || strcmp(total->kind, "source") == 0)
        put_task_lines(out, total);
    put_slot_shares(out, total);
    put_held(out, total);
}

static void put_block(FILE *out, const char *heading, const weir_total_list *list, bool always,
                      void (*put)(FILE *out, const weir_total *total))
{
    if (list->count == 0 && !always)
        return;
    if (heading)
        put_heading(out, heading);
    for (size_t i = 0; i < list->count; i++)
        put(out, &list->all[i]);
}

/* -- notes on the runs */

/* The notes on all runs that match the filter. */
typedef struct run_notes {
    int64_t num_runs;
    int64_t num_open; /* that have not ended */
    weir_run_record last;
    weir_run_state state;            /* of the last */
    int64_t num_lossy;               /* that lost entries */
    int64_t num_lost;                /* lost entries of all runs */
    int64_t num_unreadable;          /* folders that a directory source could not read completely */
    int64_t num_untraced;            /* records that a trace lacks */
    int64_t num_clock_sets;          /* of the last run: how often its wall clock was set */
    double clock_set_s;              /* by how much in all, forward or back */
    int64_t num_damaged;             /* items that were decoded with damage */
    int64_t num_missing, num_errors; /* of them */
} run_notes;

/* Counts of a hostile database may be anything. */
static void add_count(int64_t *sum, int64_t count)
{
    if (count < 0 || __builtin_add_overflow(*sum, count, sum))
        *sum = INT64_MAX;
}

static int note_run(void *self, const weir_record *record, weir_error *error)
{
    (void)error;
    run_notes *notes = self;
    const weir_run_record *run = &record->run;
    notes->num_runs++;
    notes->num_open += !run->has_ended;
    notes->num_lossy += run->entries_lost != 0;
    add_count(&notes->num_lost, run->entries_lost);
    notes->last = *run;
    notes->state = weir_run_state_of(run);
    notes->last.node_id = notes->last.command = notes->last.version = notes->last.machine = NULL; /* of the query */
    return WEIR_OK;
}

/* The detail of an event "clock_set" begins with the seconds; all of those of a run count, whatever the filter. */
static const char sql_of_notes[] =
    "SELECT (SELECT count(*) FROM events WHERE event_name = 'unreadable_folder'),"
    " (SELECT total(CAST(detail AS INTEGER)) FROM events WHERE event_name = 'trace_records_lost'),"
    " (SELECT count(*) FROM event_stats JOIN runs USING (run_id) WHERE event_name = 'clock_set'),"
    " (SELECT total(CAST(detail AS REAL)) FROM event_stats JOIN runs USING (run_id) WHERE event_name = 'clock_set'),"
    " total(num_missing IS NOT NULL AND (num_missing > 0 OR num_errors > 0)),"
    " total(max(coalesce(num_missing, 0), 0)), total(max(coalesce(num_errors, 0), 0)) FROM items";

static int take_notes(void *self, const weir_row *row, weir_error *error)
{
    run_notes *notes = self;
    (void)error;
    notes->num_unreadable = weir_row_int(row, 0);
    notes->num_untraced = weir_row_int(row, 1);
    notes->num_clock_sets = notes->num_runs == 1 ? weir_row_int(row, 2) : 0;
    notes->clock_set_s = notes->num_clock_sets && fabs(weir_row_real(row, 3)) < 1e9 ? weir_row_real(row, 3) : 0;
    notes->num_damaged = weir_row_int(row, 4);
    notes->num_missing = weir_row_int(row, 5);
    notes->num_errors = weir_row_int(row, 6);
    return WEIR_OK;
}

static int note_runs(weir_recording *recording, const weir_filter *filter, run_notes *notes, weir_error *error)
{
    weir_filter any_name = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    *notes = (run_notes){ .num_runs = 0 };
    any_name.name = NULL;
    int status = weir_recording_each(recording, WEIR_RECORD_RUN, filter, note_run, notes, error);
    return status == WEIR_OK
               ? weir_recording_query(recording, &any_name, sql_of_notes, NULL, take_notes, notes, error)
               : status;
}

/* The end of the records, and the longest time that any lap was suspended. */
static void find_extent(const weir_totals *totals, int64_t *end_unix_ns, int64_t *suspended_ns)
{
    *end_unix_ns = *suspended_ns = 0;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        for (size_t i = 0; i < totals->of[subject].count; i++) {
            const weir_total *total = &totals->of[subject].all[i];
            if (total->key.end_unix_ns > *end_unix_ns)
                *end_unix_ns = total->key.end_unix_ns;
            if (total->suspended_ns > *suspended_ns)
                *suspended_ns = total->suspended_ns;
        }
}

/* Puts a value with its words, unless it is not known. */
static void put_known(FILE *out, const char **between, const weir_total *total, const char *measure,
                      const char *format)
{
    double value = value_of(total, measure);
    const weir_measure *found = weir_measure_find(total->subject, measure);
    char bytes[WEIR_FORMAT_BYTES];
    if (isnan(value))
        return;
    fputs(*between, out);
    *between = ", ";
    if (strncmp(found->unit, "bytes", 5) == 0) {
        weir__text_format_bytes(bytes, value);
        fprintf(out, "%s", bytes);
        fputs(format, out);
    } else
        fprintf(out, format, strcmp(found->unit, "share") == 0 ? 100 * value : value);
}

/* Groups of values in a line each. */
typedef struct known_value {
    const char *begin; /* of a line; NULL = it goes on */
    const char *measure, *format;
} known_value;

static const known_value pool_values[] = {
    { "    Thread time: ", "busy_share", "%.1f%% busy" },
    { NULL, "cpu_share", "%.1f%% on a CPU" },
    { NULL, "run_delay_share", "%.1f%% waiting for a CPU" },
    { "\n    Context switches: ", "num_voluntary_switches", "%.0f blocked" },
    { NULL, "num_involuntary_switches", "%.0f preempted" },
    { "\n    Page faults: ", "num_minor_faults", "%.0f minor" },
    { NULL, "num_major_faults", "%.0f that read from storage" },
};
static const known_value process_values[] = {
    { "    CPUs: ", "cpus", "%.2f in use" },
    { NULL, "cpu_share", "%.1f%% of the CPU budget" },
    { "\n    Memory: ", "resident_bytes", " in use at the end of a lap (highest)" },
    { NULL, "peak_bytes", " peak" },
    { NULL, "num_major_faults", "%.0f page faults that read from storage" },
    { "\n    Storage: ", "read_rate", "/s read" },
    { NULL, "write_rate", "/s written" },
    { "\n    Open: ", "num_open_threads", "%.0f threads" },
    { NULL, "num_open_files", "%.0f descriptors" },
};
static const known_value machine_values[] = {
    { "    CPUs: ", "other_cpus", "%.2f in use by other processes" },
    { NULL, "idle_cpus", "%.2f idle" },
    { NULL, "stolen_cpus", "%.2f stolen" },
    { NULL, "throttled_share", "throttled for %.1f%% of the time" },
    { "\n    Some thread waited: ", "cpu_pressure", "for a CPU %.1f%% of the time" },
    { NULL, "io_pressure", "for a disk %.1f%%" },
    { NULL, "memory_pressure", "for memory %.1f%%" },
    { "\n    Network: ", "receive_rate", "/s received" },
    { NULL, "send_rate", "/s sent" },
};
#define NUM(values) (sizeof(values) / sizeof(values)[0])

static void put_values(FILE *out, const weir_total *total, const known_value *values, size_t num_values)
{
    const char *between = "";
    for (size_t i = 0; i < num_values; i++) {
        between = values[i].begin ? values[i].begin : between;
        put_known(out, &between, total, values[i].measure, values[i].format);
    }
    fputc('\n', out);
}

static void put_pool(FILE *out, const weir_total *total)
{
    print_name(out, "Pool", total);
    fprintf(out, "    Threads: %" PRId64 "\n", total->capacity);
    put_values(out, total, pool_values, NUM(pool_values));
}

static void put_process(FILE *out, const weir_total *total)
{
    print_name(out, "Process", total);
    put_values(out, total, process_values, NUM(process_values));
}

static void put_machine(FILE *out, const weir_total *total)
{
    print_name(out, "Machine", total);
    put_values(out, total, machine_values, NUM(machine_values));
}

static void put_span(FILE *out, const weir_total *total)
{
    bool is_marker = strcmp(total->kind, "marker") == 0;
    print_name(out, is_marker ? "Marker" : strcmp(total->kind, "frame") == 0 ? "Frame" : "Span", total);
    fprintf(out, "    Count: %" PRIu64 ", %.2f per second\n", total->metrics.span.num_spans,
            weir__or_zero(value_of(total, "spans_per_s")));
    if (is_marker)
        return;
    print_time(out, "    Average time: ", weir__or_zero(value_of(total, "ave_time")));
    print_time(out, "\n    Total time: ", weir__or_zero(value_of(total, "total_time")));
    fputc('\n', out);
    print_times(out, "Time", total, task_times, 0);
}

static void put_counter(FILE *out, const weir_total *total)
{
    bool is_total = strcmp(total->kind, "total") == 0;
    print_name(out, is_total ? "Total" : "Level", total);
    if (is_total) {
        fprintf(out, "    Growth: %.10g, %.6g per second; last %.10g; %" PRIu64 " updates\n",
                weir__or_zero(value_of(total, "increase")), weir__or_zero(value_of(total, "increase_per_s")),
                value_of(total, "last_value"), total->metrics.counter.num_updates);
        return;
    }
    fprintf(out, "    Last: %.6g, min %.6g, mean %.6g, max %.6g; %" PRIu64 " updates\n",
            value_of(total, "last_value"), value_of(total, "min_value"), value_of(total, "ave_value"),
            value_of(total, "max_value"), total->metrics.counter.num_updates);
}

static void put_duration(FILE *out, int64_t ns)
{
    char figure[WEIR_FORMAT_BYTES];
    weir__text_format_duration(figure, ns);
    fputs(figure, out);
}

static void put_state(FILE *out, const run_notes *notes, int64_t recorded_unix_ns)
{
    const weir_run_record *run = &notes->last;
    bool goes_on = notes->state == WEIR_RUN_RUNNING;
    int64_t until_unix_ns = run->has_ended                            ? run->ended_unix_ns
                            : goes_on                                 ? unix_clock_ns()
                            : recorded_unix_ns > run->started_unix_ns ? recorded_unix_ns
                                                                      : run->started_unix_ns;
    fprintf(out, "Run %" PRId64 ": %s", run->run_id, weir_run_state_name(notes->state));
    fputs(run->has_ended ? " after " : goes_on ? " for " : ", recorded for ", out);
    put_duration(out, until_unix_ns - run->started_unix_ns - (int64_t)(notes->clock_set_s * WEIR_SECOND));
    fputs(notes->num_clock_sets ? " (the clock was set during the run)\n" : "\n", out);
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void put_states(FILE *out, const weir_recording *recording, const run_notes *notes, int64_t recorded_unix_ns)
{
    if (weir_recording_lacks(recording))
        return;
    if (notes->num_runs == 1)
        put_state(out, notes, recorded_unix_ns);
    else if (notes->num_open == 0)
        fprintf(out, "%" PRId64 " runs; all have ended\n", notes->num_runs);
    else
        fprintf(out, "%" PRId64 " runs; %" PRId64 " %s not ended\n", notes->num_runs, notes->num_open,
                notes->num_open == 1 ? "has" : "have");
}

static void put_notes(FILE *out, const weir_recording *recording, const run_notes *notes, int64_t suspended_ns)
{
    if (weir_recording_lacks(recording))
        fprintf(out, "Note: %s.\n", weir_recording_lacks(recording));
    if (suspended_ns > 0) {
        fputs("The process was suspended for ", out);
        put_duration(out, suspended_ns);
        fputs(": times measured across it are too long.\n", out);
    }
    if (notes->num_unreadable)
        fprintf(out, "%" PRId64 " folder%s could not be read: the list of files is not complete.\n",
                notes->num_unreadable, plural(notes->num_unreadable));
    if (notes->num_damaged)
        fprintf(out,
                "%" PRId64 " item%s succeeded with damage: %" PRId64 " frame%s lost, %" PRId64
                " error%s (weir slowest --sort damage lists them).\n",
                notes->num_damaged, plural(notes->num_damaged), notes->num_missing, plural(notes->num_missing),
                notes->num_errors, plural(notes->num_errors));
    if (notes->num_untraced)
        fprintf(out, "%" PRId64 " record%s of the trace %s lost: the trace was not written fast enough.\n",
                notes->num_untraced, plural(notes->num_untraced), notes->num_untraced == 1 ? "was" : "were");
    if (notes->num_lossy)
        fprintf(out, "%" PRId64 " entr%s could not be written: the metrics above lack %s.\n", notes->num_lost,
                notes->num_lost == 1 ? "y" : "ies", notes->num_lost == 1 ? "it" : "them");
}

static void put_summary(FILE *out, const weir_recording *recording, const weir_totals *totals, const run_notes *notes,
                        const char *line)
{
    put_rule(out, '=');
    fputs("PIPELINE PERFORMANCE SUMMARY\n", out);
    put_rule(out, '=');
    put_block(out, "📊 Task Statistics:", &totals->of[WEIR_SUBJECT_STAGE], true, put_task);
    put_block(out, "\n📈 Queue Statistics:", &totals->of[WEIR_SUBJECT_QUEUE], true, put_queue);
    put_block(out, "\n🔀 Sources, Routes, Merges and Sinks:", &totals->of[WEIR_SUBJECT_FLOW], false, print_flow);
    put_block(out, "\n🧵 Thread Pools:", &totals->of[WEIR_SUBJECT_POOL], false, put_pool);
    put_block(out, "\n🖥 Process and Machine:", &totals->of[WEIR_SUBJECT_PROCESS], false, put_process);
    put_block(out, NULL, &totals->of[WEIR_SUBJECT_MACHINE], false, put_machine);
    put_block(out, "\n⏱ Spans and Counters:", &totals->of[WEIR_SUBJECT_SPAN], false, put_span);
    put_block(out, totals->of[WEIR_SUBJECT_SPAN].count ? NULL : "\n⏱ Counters:", &totals->of[WEIR_SUBJECT_COUNTER],
              false, put_counter);
    fputc('\n', out);
    put_rule(out, '=');
    fprintf(out, "Database: %s\n", weir_recording_path(recording));
    int64_t recorded_unix_ns, suspended_ns;
    find_extent(totals, &recorded_unix_ns, &suspended_ns);
    put_states(out, recording, notes, recorded_unix_ns);
    fputs(line, out);
    put_notes(out, recording, notes, suspended_ns);
    put_rule(out, '=');
}

/* The text of the caller's line, which may be empty. */
static int make_line(weir_recording *recording, const weir_filter *filter, weir_summary_line *line, char **text,
                     weir_error *error)
{
    size_t size;
    *text = NULL;
    FILE *memory = weir__text_stream(text, &size);
    if (!memory)
        return weir__recording_out_of_memory(error);
    int status = line ? line(memory, recording, filter, error) : WEIR_OK;
    if (fclose(memory) != 0 && status == WEIR_OK)
        status = weir__recording_out_of_memory(error);
    return status;
}

static int write_totals(FILE *out, weir_recording *recording, const weir_filter *filter, const weir_totals *totals,
                        weir_summary_line *line, weir_error *error)
{
    run_notes notes;
    char *text = NULL;
    int status = note_runs(recording, filter, &notes, error);
    if (status == WEIR_OK)
        status = make_line(recording, filter, line, &text, error);
    if (status == WEIR_OK) {
        put_summary(out, recording, totals, &notes, text);
        status = weir__check_written(out, "cannot print", error);
    }
    free(text);
    return status;
}

int weir_summary_write(FILE *out, weir_recording *recording, const weir_filter *filter, const weir_totals *totals,
                       weir_summary_line *line, weir_error *error)
{
    if (!out || !recording)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    if (totals)
        return write_totals(out, recording, filter, totals, line, error);
    weir_totals read;
    weir_filter own = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    int status = weir_recording_hold(recording, error);
    if (status != WEIR_OK)
        return status;
    own.no_replay = true;
    status = weir_totals_read(recording, &own, &(weir_grouping){ .by = WEIR_BY_NAME }, &read, error);
    if (status == WEIR_OK) {
        status = write_totals(out, recording, filter, &read, line, error);
        weir_totals_free(&read);
    }
    weir_recording_release(recording);
    return status;
}

int weir_summary_write_notes(FILE *out, weir_recording *recording, const weir_filter *filter,
                             const weir_totals *totals, weir_error *error)
{
    run_notes notes;
    int64_t recorded_unix_ns, suspended_ns;
    if (!out || !recording || !totals)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = note_runs(recording, filter, &notes, error);
    if (status != WEIR_OK)
        return status;
    find_extent(totals, &recorded_unix_ns, &suspended_ns);
    put_notes(out, recording, &notes, suspended_ns);
    return weir__check_written(out, "cannot print", error);
}

/* Failures */

static int take_count(void *count, const weir_row *row, weir_error *error)
{
    (void)error;
    *(int64_t *)count = weir_row_int(row, 0);
    return WEIR_OK;
}

static int print_failure(void *self, const weir_record *record, weir_error *error)
{
    (void)error;
    FILE *out = self;
    const weir_failure_record *failure = &record->failure;
    fputs("  ", out);
    if (*failure->label)
        weir__text_escape_to(out, failure->label);
    else
        fprintf(out, "item %" PRId64, failure->seq);
    fputs(": ", out);
    weir__text_escape_to(out, *failure->message ? failure->message : weir_status_text(failure->status));
    fputs(" (", out);
    weir__text_escape_to(out, failure->name);
    fprintf(out, ", %s)\n", weir_status_name(failure->status));
    return WEIR_OK;
}

static int put_failures(FILE *out, weir_recording *recording, const weir_filter *filter, size_t at_most,
                        weir_error *error)
{
    char of_run[32] = "";
    int64_t count = 0;
    weir_filter first = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    int status = weir__recording_resolve_run(recording, &first.run_id, error);
    if (status == WEIR_OK)
        status =
            weir_recording_query(recording, filter, "SELECT count(*) FROM failures", NULL, take_count, &count, error);
    if (status != WEIR_OK || count == 0)
        return status;
    fprintf(out, "Failures: %" PRId64 "\n", count);
    first.limit = at_most < INT64_MAX ? (int64_t)at_most : INT64_MAX;
    if (at_most)
        status = weir_recording_each(recording, WEIR_RECORD_FAILURE, &first, print_failure, out, error);
    if (first.run_id != WEIR_ALL_RUNS)
        snprintf(of_run, sizeof of_run, ", run %" PRId64, first.run_id);
    if (status == WEIR_OK && first.limit < count)
        fprintf(out, "  and %" PRId64 " more in the table task_failures%s\n", count - first.limit, of_run);
    return status;
}

int weir_summary_write_failures(FILE *out, weir_recording *recording, const weir_filter *filter, size_t at_most,
                                weir_error *error)
{
    if (!out || !recording)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = put_failures(out, recording, filter, at_most, error);
    return status == WEIR_OK ? weir__check_written(out, "cannot print", error) : status;
}
