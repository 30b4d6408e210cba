#include "tools/view/watch_screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/verdict.h>

#include "common/format.h"
#include "common/text_escape.h"
#include "tools/cli/memory.h"
#include "tools/cli/prose.h"
#include "tools/cli/tty.h"
#include "tools/view/metric_table.h"

enum { RECENT_LAPS = 24, MAX_SHOWN = 12 };

const char *const watch_sorts[] = { "pipeline", "busy_share", "tasks_per_s", "ave_time", "num_failures", NULL };

/* The data of a screen. */
typedef struct watched {
    weir_run_record run; /* its texts are not kept */
    weir_run_state state;
    weir_totals totals, last_lap;         /* of the whole run, and of its latest lap; by name */
    int64_t last_lap_unix_ns;             /* when the latest lap ended; 0 = none */
    weir_verdict *verdict;                /* on the latest laps; NULL = none has ended */
    int64_t expected;                     /* items that the program expects to deliver; 0 = unknown */
    char *last_failure, *stall, *slowest; /* NULL = none */
    int64_t now_unix_ns;
} watched;

/* ---- reading ------------------------------------------------------------------------------------------------ */

static double to_seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

/* The average length of laps: the last lap of a run may be much shorter. */
static int64_t lap_length_ns(const watched *w)
{
    const weir_total_list *queues = &w->totals.of[WEIR_SUBJECT_QUEUE];
    int64_t length_ns = queues->count ? queues->all[0].elapsed_ns / queues->all[0].key.num_laps : 0;
    return length_ns > 10 * WEIR_MILLISECOND ? length_ns : 10 * WEIR_MILLISECOND;
}

/* NULL for "". */
static char *copy_text(const char *text)
{
    return *text ? memory_copy(text) : NULL;
}

static int note_latest(void *self, const weir_row *row, weir_error *error)
{
    watched *w = self;
    (void)error;
    w->last_lap_unix_ns = weir_row_is_null(row, 0) ? 0 : (int64_t)(weir_row_real(row, 0) * 1e9);
    w->expected = strtoll(weir_row_text(row, 1), NULL, 10);
    w->last_failure = copy_text(weir_row_text(row, 2));
    /* of the latest two laps */
    if (weir_row_real(row, 4) * 1e9 >= (double)(w->last_lap_unix_ns - 2 * lap_length_ns(w)))
        w->stall = copy_text(weir_row_text(row, 3));
    return WEIR_OK;
}

/* The latest lap, event of each kind, and failure. */
static int read_latest(weir_reader *reader, watched *w, weir_error *error)
{
    static const char sql[] =
        ", stall AS (SELECT detail, timestamp FROM events WHERE event_name = 'stall' ORDER BY id DESC LIMIT 1) "
        "SELECT (SELECT timestamp FROM queues ORDER BY id DESC LIMIT 1), (SELECT detail FROM events WHERE event_name "
        "= 'expected_items' ORDER BY id DESC LIMIT 1), (SELECT format('%s: %s', label, message) FROM failures ORDER "
        "BY id DESC LIMIT 1), (SELECT detail FROM stall), (SELECT timestamp FROM stall)";
    return weir_reader_select(reader, &(weir_filter){ .run_id = w->run.run_id }, sql, NULL, note_latest, w, error);
}

static int note_slowest(void *self, const weir_row *row, weir_error *error)
{
    watched *w = self;
    char time[WEIR_FORMAT_BYTES];
    (void)error;
    tty_format_time(time, weir_row_real(row, 0));
    if (*weir_row_text(row, 1))
        w->slowest = memory_format("%s in %s", time, weir_row_text(row, 1));
    return WEIR_OK;
}

static int read_slowest(weir_reader *reader, const weir_filter *recent, watched *w, weir_error *error)
{
    return weir_reader_select(reader, recent, "SELECT max(elapsed), label FROM items", NULL, note_slowest, w, error);
}

static int read_recent(weir_reader *reader, watched *w, weir_error *error)
{
    int status = read_latest(reader, w, error);
    if (status != WEIR_OK || w->last_lap_unix_ns == 0)
        return status;
    weir_filter recent = { .run_id = w->run.run_id };
    recent.start_unix_ns = w->last_lap_unix_ns - (int64_t)((RECENT_LAPS + 0.5) * (double)lap_length_ns(w));
    status = weir_verdict_read(reader, &recent, &w->verdict, error);
    if (status == WEIR_OK)
        status = read_slowest(reader, &recent, w, error);
    recent.start_unix_ns = w->last_lap_unix_ns - WEIR_MICROSECOND * 2;
    if (status == WEIR_OK)
        status = weir_totals_read(reader, &recent, &(weir_grouping){ .by = WEIR_BY_NAME }, &w->last_lap, error);
    return status;
}

static int read_run(weir_reader *reader, const weir_filter *filter, watched *w, weir_error *error)
{
    int status = weir_reader_find_run(reader, filter->run_id, &w->run, error);
    weir_filter own = *filter;
    own.run_id = w->run.run_id;
    if (status == WEIR_OK)
        w->state = weir_run_state_of(&w->run);
    w->run.node_id = w->run.command = w->run.version = w->run.machine = w->run.job = NULL;
    if (status == WEIR_OK)
        status = weir_totals_read(reader, &own, &(weir_grouping){ .by = WEIR_BY_NAME }, &w->totals, error);
    if (status == WEIR_OK)
        status = read_recent(reader, w, error);
    return status;
}

static void free_watched(watched *w)
{
    weir_totals_free(&w->totals);
    weir_totals_free(&w->last_lap);
    weir_verdict_free(w->verdict);
    free(w->last_failure);
    free(w->stall);
    free(w->slowest);
}

/* ---- pieces ------------------------------------------------------------------------------------------------- */

static bool is_gone(const watched *w)
{
    return w->state == WEIR_RUN_KILLED;
}

static bool is_running(const watched *w)
{
    return !w->run.has_ended && !is_gone(w);
}

/* Of a name, or the only one if name is NULL; NULL = none. */
static const weir_total *find_total(const weir_totals *totals, weir_subject subject, const char *name)
{
    const weir_total_list *list = &totals->of[subject];
    for (size_t i = 0; i < list->count; i++)
        if (!name || strcmp(list->all[i].key.name, name) == 0)
            return &list->all[i];
    return NULL;
}

/* The value of a measure in the latest lap. */
static double latest_value(const watched *w, weir_subject subject, const char *name, const char *measure)
{
    const weir_total *total = find_total(&w->last_lap, subject, name);
    return total ? weir_total_value(total, weir_measure_find(subject, measure)) : NAN;
}

/* "1:02:03" */
static void format_clock(char text[32], double seconds)
{
    long whole = seconds > 0 ? lround(seconds) : 0;
    snprintf(text, 32, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
}

/* ---- the head ----------------------------------------------------------------------------------------------- */

/* The end of the run, or until when it is known to go on. */
static int64_t until_unix_ns(const watched *w)
{
    int64_t last_sign = w->last_lap_unix_ns > 0 ? w->last_lap_unix_ns : w->run.started_unix_ns;
    return w->run.has_ended ? w->run.ended_unix_ns : is_gone(w) ? last_sign : w->now_unix_ns;
}

/* How far the run is. */
typedef struct progress {
    int64_t failures, done; /* items; done: decoded or delivered, skipped or failed */
    double remaining_s;     /* NAN = not known */
} progress;

/* Files, if there is a stage that decodes them: it may deliver one in several chunks. */
static int64_t count_done(const watched *w)
{
    const weir_total_list *stages = &w->totals.of[WEIR_SUBJECT_STAGE];
    const weir_total *sink = weir_totals_sink_queue(&w->totals);
    uint64_t done = 0;
    for (size_t i = 0; i < stages->count; i++) {
        const weir_task_metrics *m = &stages->all[i].metrics.task;
        if (weir_name_matches("decode", stages->all[i].key.name))
            return (int64_t)(done + m->num_tasks);
        done += m->num_failures + m->num_skipped;
    }
    return (int64_t)(done + (sink ? sink->metrics.queue.num_items : 0));
}

static progress progress_of(const watched *w)
{
    const weir_total_list *stages = &w->totals.of[WEIR_SUBJECT_STAGE];
    double elapsed = to_seconds(w->last_lap_unix_ns - w->run.started_unix_ns);
    progress p = { .done = count_done(w), .remaining_s = NAN };
    for (size_t i = 0; i < stages->count; i++)
        p.failures += (int64_t)stages->all[i].metrics.task.num_failures;
    if (p.done > 0 && elapsed > 0 && w->expected >= p.done && is_running(w))
        p.remaining_s = (double)(w->expected - p.done) * elapsed / (double)p.done;
    return p;
}

static void put_state(FILE *out, const watched *w, const char *path)
{
    char duration[32];
    format_clock(duration, to_seconds(until_unix_ns(w) - w->run.started_unix_ns));
    weir__text_escape_to(out, path);
    fprintf(out, " run %" PRId64 " %s %s", w->run.run_id,
            w->run.has_ended ? weir_run_state_name(w->state)
            : is_gone(w)     ? "recorded for"
                             : "running for",
            w->run.has_ended ? "after " : "");
    fputs(duration, out);
    if (is_gone(w))
        fprintf(out, " (killed: its process %" PRId64 " no longer exists)", w->run.pid);
    else if (!w->run.has_ended && w->last_lap_unix_ns > 0)
        fprintf(out, " (the metrics are %.0f s old)", fmax(0, to_seconds(w->now_unix_ns - w->last_lap_unix_ns)));
    else if (!w->run.has_ended)
        fputs(" (no lap has ended yet)", out);
    fputc('\n', out);
}

static void put_progress(FILE *out, const watched *w)
{
    progress p = progress_of(w);
    char clock[32];
    format_clock(clock, p.remaining_s);
    fprintf(out, "done: %" PRId64, p.done);
    if (w->expected > 0)
        fprintf(out, " of %" PRId64, w->expected);
    fprintf(out, ", failures: %" PRId64, p.failures);
    if (isfinite(p.remaining_s))
        fprintf(out, ", remaining time about %s", clock);
    fputc('\n', out);
}

/* What the machine does, of the latest lap. */
static void put_resources(FILE *out, const watched *w)
{
    char bytes[WEIR_FORMAT_BYTES];
    const weir_total *sink = weir_totals_sink_queue(&w->totals);
    double rate = sink ? latest_value(w, WEIR_SUBJECT_QUEUE, sink->key.name, "items_per_s") : NAN;
    double used = latest_value(w, WEIR_SUBJECT_PROCESS, NULL, "cpus");
    double resident = latest_value(w, WEIR_SUBJECT_PROCESS, NULL, "resident_bytes");
    double frames = weir_totals_frames_per_s(&w->last_lap);
    double others = latest_value(w, WEIR_SUBJECT_MACHINE, NULL, "other_cpus");
    if (!isfinite(rate))
        return;
    fprintf(out, "%.1f items per s", rate);
    if (isfinite(frames))
        fprintf(out, ", %.*f frames per s", frames < 9.95 ? 1 : 0, frames);
    if (isfinite(used))
        fprintf(out, "; CPUs: %.2f of %" PRId64, used,
                find_total(&w->last_lap, WEIR_SUBJECT_PROCESS, NULL)->capacity);
    if (isfinite(used) && isfinite(others))
        fprintf(out, ", other programs %.2f", others);
    weir__text_format_bytes(bytes, resident);
    if (isfinite(resident) && resident > 0)
        fprintf(out, "; memory: %s", bytes);
    fputc('\n', out);
}

static void put_limit(FILE *out, const watched *w)
{
    if (w->verdict && w->verdict->kind != WEIR_VERDICT_UNKNOWN)
        prose_line(out, "limit of the latest laps (%s): %s", weir_verdict_certainty(w->verdict),
                   w->verdict->sentence);
}

/* ---- tables: columns are measures ---------------------------------------------------------------------------- */

/* Of the whole run, up to the first NULL; then of the latest lap. */
static const char *const stage_measures[] = { "num_tasks",         "num_failures",    NULL,
                                              "tasks_per_s",       "work_per_s",      "ave_time",
                                              "p99_time",          "busy_share",      "wait_in_share",
                                              "wait_thread_share", "wait_turn_share", "wait_out_share" };
static const char *const narrow_stage_measures[] = {
    "num_tasks", NULL, "tasks_per_s", "ave_time", "busy_share", "wait_in_share", "wait_thread_share", "wait_out_share"
};
static const char *const queue_measures[] = { "num_items", NULL,           "items_per_s", "occupancy_rate",
                                              "ave_depth", "ave_put_time", "ave_get_time" };

/* Whether 80 columns are all there are. */
static bool is_narrow(void)
{
    return tty_width() && tty_width() < 110;
}

static const watched *sorted_run; /* for qsort() */
static const char *sorted_measure;

static double sort_value(const weir_total *total)
{
    double whole = weir_total_value(total, weir_measure_find(total->subject, sorted_measure));
    double value = latest_value(sorted_run, total->subject, total->key.name, sorted_measure);
    value = strncmp(sorted_measure, "num_", 4) == 0 ? whole : value;
    return isfinite(value) ? value : -1;
}

static int compare_totals(const void *a, const void *b)
{
    double one = sort_value(*(const weir_total *const *)a), other = sort_value(*(const weir_total *const *)b);
    return one > other ? -1 : one < other;
}

static void put_series_row(table *t, const watched *w, const weir_total *total, size_t number,
                           const char *const *measures, size_t count)
{
    char key[32];
    bool is_total = true;
    snprintf(key, sizeof key, "%zu", number);
    table_words(t, key);
    table_words(t, total->key.name);
    for (size_t i = 0; i < count; i++) {
        if (measures[i])
            table_number(t, is_total ? weir_total_value(total, weir_measure_find(total->subject, measures[i]))
                                     : latest_value(w, total->subject, total->key.name, measures[i]));
        is_total &= measures[i] != NULL;
    }
    table_known(t, total->subject == WEIR_SUBJECT_QUEUE ? total->capacity : 0);
}

/* The totals of a subject, sorted by watch_sorts[sort]. */
static void put_series_table(FILE *out, const watched *w, weir_subject subject, const watch_view *view, int sort,
                             const char *const *measures, size_t count)
{
    const weir_total_list *list = &w->totals.of[subject];
    table_column columns[MAX_SHOWN + 3];
    const weir_total **order = memory_get(list->count, sizeof *order);
    size_t num_columns = 0;
    columns[num_columns++] =
        (table_column){ "", view->has_keys && subject == WEIR_SUBJECT_STAGE ? "#" : NULL, TABLE_WORDS };
    columns[num_columns++] = (table_column){ "", metric_subject_name(subject), TABLE_WORDS };
    for (size_t i = 0; i < count; i++)
        if (measures[i])
            columns[num_columns++] = metric_column(weir_measure_find(subject, measures[i]));
    columns[num_columns++] = (table_column){ "", "capacity", TABLE_COUNT };
    table *t = table_begin(out, TABLE_TEXT, columns, num_columns);
    table_set_keys(t, 2);
    for (size_t i = 0; i < list->count; i++)
        order[i] = &list->all[i];
    sorted_run = w;
    sorted_measure = watch_sorts[sort];
    if (sort > 0 && list->count > 0)
        qsort(order, list->count, sizeof *order, compare_totals);
    for (size_t i = 0; i < list->count; i++)
        put_series_row(t, w, order[i], (size_t)(order[i] - list->all) + 1, measures, count);
    table_end(t);
    free(order);
}

#define PUT_TABLE(subject, sort, measures) \
    put_series_table(out, w, subject, view, sort, measures, sizeof(measures) / sizeof(measures)[0])

static void put_tables(FILE *out, const watched *w, const watch_view *view)
{
    fprintf(out, "\nStages%s%s: %s so far; the rest is of the latest lap\n", view->sort ? ", sorted by " : "",
            view->sort ? watch_sorts[view->sort] : "", is_narrow() ? "tasks" : "tasks and failed");
    if (is_narrow())
        PUT_TABLE(WEIR_SUBJECT_STAGE, view->sort, narrow_stage_measures);
    else
        PUT_TABLE(WEIR_SUBJECT_STAGE, view->sort, stage_measures);
    fputs("\nQueues\n", out);
    PUT_TABLE(WEIR_SUBJECT_QUEUE, 0, queue_measures);
    fputc('\n', out);
    if (w->stall && is_running(w))
        prose_line(out, "running for long: %s", w->stall);
    if (w->slowest)
        prose_line(out, "slowest of the latest laps: %s", w->slowest);
    if (w->last_failure)
        prose_line(out, "the last failure: %s", w->last_failure);
}

static void put_screen(FILE *out, const watched *w, const watch_view *view, const char *path)
{
    const weir_total_list *stages = &w->totals.of[WEIR_SUBJECT_STAGE];
    put_state(out, w, path);
    put_progress(out, w);
    put_resources(out, w);
    put_limit(out, w);
    if (view->opened > 0 && (size_t)view->opened <= stages->count) {
        const weir_total *total = &stages->all[view->opened - 1];
        const weir_total *both[] = { total, find_total(&w->last_lap, WEIR_SUBJECT_STAGE, total->key.name) };
        fprintf(out, "\n%s\n", total->key.name);
        metric_put_upright(out, TABLE_TEXT, both, (const char *const[]){ "so far", "latest lap" }, 2);
    } else
        put_tables(out, w, view);
}

/* ---- JSON --------------------------------------------------------------------------------------------------- */

static void put_watch_json(FILE *out, const watched *w, const char *path)
{
    progress p = progress_of(w);
    json_print(out, "{'database': %s, 'rank': %d, 'run_id': %" PRId64 ", 'state': %s, 'elapsed': %g, ", path,
               (int)w->run.rank, w->run.run_id, weir_run_state_name(w->state),
               to_seconds(until_unix_ns(w) - w->run.started_unix_ns));
    json_print(out, "'last_lap_time': %g, 'failures': %" PRId64 ", 'last_failure': %s, ",
               w->last_lap_unix_ns ? to_seconds(w->last_lap_unix_ns) : NAN, p.failures, w->last_failure);
    json_print(out, "'done': %" PRId64 ", 'expected': %g, 'remaining': %g, 'limit': ", p.done,
               w->expected > 0 ? (double)w->expected : NAN, p.remaining_s);
    metric_put_limit(out, w->verdict);
    fputs(", ", out);
    metric_put_totals(out, &w->totals);
    json_print(out, ", 'last_lap': {");
    metric_put_totals(out, &w->last_lap);
    fputs("}}\n", out);
}

int watch_write(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t now_unix_ns,
                const watch_view *view, weir_error *error)
{
    watched w = { .now_unix_ns = now_unix_ns };
    int status = read_run(reader, filter, &w, error);
    if (status == WEIR_OK && view)
        put_screen(out, &w, view, weir_reader_path(reader));
    else if (status == WEIR_OK)
        put_watch_json(out, &w, weir_reader_path(reader));
    free_watched(&w);
    return status;
}
