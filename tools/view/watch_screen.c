#include "tools/view/watch_screen.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/verdict.h>

#include "common/format.h"
#include "common/text_escape.h"
#include "common/text_fill.h"
#include "tools/cli/memory.h"
#include "tools/cli/tty.h"
#include "tools/view/metric_table.h"
#include "tools/view/run_history.h"
#include "tools/view/run_lines.h"

enum { RECENT_LAPS = 24, MAX_SHOWN = 12 };

const char *const watch_sorts[] = { "pipeline", "busy_share", "tasks_per_s", "ave_time", "num_failures", NULL };

/* The data of a screen. */
typedef struct watched {
    weir_run_record run; /* its texts are not kept */
    weir_run_state state;
    weir_totals totals, last_lap; /* of the whole run, and of its latest lap; by name */
    int64_t last_lap_unix_ns;     /* when the latest lap ended; 0 = none */
    run_history history;
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
static int read_latest(weir_recording *recording, watched *w, weir_error *error)
{
    static const char sql[] =
        ", stall AS (SELECT detail, timestamp FROM events WHERE event_name = 'stall' ORDER BY id DESC LIMIT 1) "
        "SELECT (SELECT timestamp FROM queues ORDER BY id DESC LIMIT 1), (SELECT detail FROM events WHERE event_name "
        "= 'expected_items' ORDER BY id DESC LIMIT 1), (SELECT format('%s: %s', label, message) FROM failures ORDER "
        "BY id DESC LIMIT 1), (SELECT detail FROM stall), (SELECT timestamp FROM stall)";
    return weir_recording_query(recording, &(weir_filter){ .run_id = w->run.run_id }, sql, NULL, note_latest, w,
                                error);
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

static int read_slowest(weir_recording *recording, const weir_filter *recent, watched *w, weir_error *error)
{
    return weir_recording_query(recording, recent, "SELECT max(elapsed), label FROM items", NULL, note_slowest, w,
                                error);
}

/* A line of them leaves room for the figures beside it. */
static size_t history_cells(void)
{
    int width = tty_width();
    return width == 0 || width >= 180 ? RUN_HISTORY_CELLS
           : width >= 76              ? RUN_HISTORY_CELLS / 3
                                      : RUN_HISTORY_CELLS / 5;
}

static int read_recent(weir_recording *recording, watched *w, weir_error *error)
{
    int status = read_latest(recording, w, error);
    if (status != WEIR_OK || w->last_lap_unix_ns == 0)
        return status;
    weir_filter recent = { .run_id = w->run.run_id };
    recent.start_unix_ns = w->last_lap_unix_ns - (int64_t)((RECENT_LAPS + 0.5) * (double)lap_length_ns(w));
    status = weir_verdict_read(recording, &recent, &w->verdict, error);
    if (status == WEIR_OK)
        status = run_history_read(recording, w->run.run_id, w->last_lap_unix_ns, lap_length_ns(w), RECENT_LAPS,
                                  history_cells(), &w->history, error);
    if (status == WEIR_OK)
        status = read_slowest(recording, &recent, w, error);
    recent.start_unix_ns = w->last_lap_unix_ns - WEIR_MICROSECOND * 2;
    if (status == WEIR_OK)
        status = weir_totals_read(recording, &recent, &(weir_grouping){ .by = WEIR_BY_NAME }, &w->last_lap, error);
    return status;
}

static int read_run(weir_recording *recording, const weir_filter *filter, watched *w, weir_error *error)
{
    int status = weir_recording_find_run(recording, filter->run_id, &w->run, error);
    weir_filter own = *filter;
    own.run_id = w->run.run_id;
    if (status == WEIR_OK)
        w->state = weir_run_state_of(&w->run);
    w->run.node_id = w->run.command = w->run.version = w->run.machine = w->run.job = NULL;
    if (status == WEIR_OK)
        status = weir_totals_read(recording, &own, &(weir_grouping){ .by = WEIR_BY_NAME }, &w->totals, error);
    if (status == WEIR_OK)
        status = read_recent(recording, w, error);
    return status;
}

static void free_watched(watched *w)
{
    weir_totals_free(&w->totals);
    weir_totals_free(&w->last_lap);
    run_history_free(&w->history);
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

/* The total of that name, or the only total if name is NULL. Returns NULL if there is none. */
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

/* "job.db, run 3, the metrics are 2 s old" */
static void put_state(const run_lines *lines, const watched *w, const char *path)
{
    char *text;
    size_t size;
    FILE *out = memory_file_open(&text, &size);
    weir__text_escape_to(out, path);
    fprintf(out, ", run %" PRId64, w->run.run_id);
    if (is_gone(w))
        fprintf(out, ", killed: its process %" PRId64 " no longer exists", w->run.pid);
    else if (!w->run.has_ended && w->last_lap_unix_ns > 0)
        fprintf(out, ", the metrics are %.0f s old", fmax(0, to_seconds(w->now_unix_ns - w->last_lap_unix_ns)));
    else if (!w->run.has_ended)
        fputs(", no lap has ended yet", out);
    memory_file_close(out);
    run_put_line(lines, text, 0);
    free(text);
}

/* The headline of the summary, and the remaining time. */
static void put_headline(run_lines *lines, const watched *w)
{
    char *text, clock[32];
    size_t size;
    FILE *out = lines->out;
    double remaining_s = progress_of(w).remaining_s;
    format_clock(clock, remaining_s);
    lines->out = memory_file_open(&text, &size);
    run_put_headline(lines);
    if (isfinite(remaining_s))
        fprintf(lines->out, "; about %s left", clock);
    memory_file_close(lines->out);
    lines->out = out;
    fputs(lines->bold, out);
    run_put_line(lines, text, 0);
    fputs(lines->normal, out);
    free(text);
}

/* "last 60 s   files/s ▁▃▅▇ up to 19   CPUs ▇▇▇▆ up to 1.87" */
static void put_history(const run_lines *lines, const watched *w)
{
    const run_rate rate = run_rate_of(lines);
    const struct {
        const char *title, *name, *measure;
        weir_subject subject;
    } series[] = { { rate.unit, rate.total ? rate.total->key.name : "", rate.measure, rate.subject },
                   { "CPUs", "0:process", "cpus", WEIR_SUBJECT_PROCESS } };
    char line[RUN_LINE_BYTES], span[WEIR_FORMAT_BYTES], text[RUN_HISTORY_BYTES], figure[WEIR_FORMAT_BYTES];
    int64_t since_ns = w->last_lap_unix_ns - w->run.started_unix_ns;
    weir__text_format_duration(span, since_ns < w->history.span_ns ? since_ns : w->history.span_ns);
    size_t length = (size_t)snprintf(line, sizeof line, "last %s", span), begin = length;
    for (size_t i = 0; i < sizeof series / sizeof series[0]; i++) {
        double most = run_history_line(&w->history, series[i].subject, series[i].name, series[i].measure, 0, text);
        snprintf(figure, sizeof figure, most < 9.95 ? "%.1f" : "%.0f", most);
        if (*text)
            length += (size_t)snprintf(line + length, sizeof line - length, "   %s %s up to %s", series[i].title,
                                       text, figure);
    }
    if (length > begin) {
        fputs(lines->green, lines->out);
        run_put_line(lines, line, 2);
        fputs(lines->normal, lines->out);
    }
}

/* ---- tables: columns are measures ---------------------------------------------------------------------------- */

/* Measures of the whole run, up to the first NULL; then those of the latest lap. */
static const char *const stage_measures[] = { "num_tasks",         "num_failures",    NULL,
                                              "tasks_per_s",       "work_per_s",      "ave_time",
                                              "p99_time",          "busy_share",      "wait_in_share",
                                              "wait_thread_share", "wait_turn_share", "wait_out_share" };
static const char *const narrow_stage_measures[] = {
    "num_tasks", NULL, "tasks_per_s", "ave_time", "busy_share", "wait_in_share", "wait_thread_share", "wait_out_share"
};
static const char *const least_stage_measures[] = { "num_tasks", NULL, "tasks_per_s", "ave_time", "busy_share" };
static const char *const queue_measures[] = { "num_items", NULL,           "items_per_s", "occupancy_rate",
                                              "ave_depth", "ave_put_time", "ave_get_time" };
static const char *const narrow_queue_measures[] = { "num_items",      NULL,           "items_per_s",
                                                     "occupancy_rate", "ave_put_time", "ave_get_time" };
static const char *const least_queue_measures[] = { "num_items", NULL, "items_per_s", "occupancy_rate" };

#define MEASURES(list) \
    { \
        list, sizeof(list) / sizeof(list)[0] \
    }

/* What terminals up to this width have room for, beside usual names. */
static const struct measure_lists {
    int width;
    const char *tasks; /* what of stages is so far */
    struct measure_list {
        const char *const *names;
        size_t count;
    } stages, queues;
} measure_lists[] = {
    { 75, "tasks", MEASURES(least_stage_measures), MEASURES(least_queue_measures) },
    { 109, "tasks", MEASURES(narrow_stage_measures), MEASURES(narrow_queue_measures) },
    { INT_MAX, "tasks and failed", MEASURES(stage_measures), MEASURES(queue_measures) },
};

static const struct measure_lists *lists_that_fit(void)
{
    size_t i = 0;
    while (!tty_width() ? measure_lists[i].width != INT_MAX : measure_lists[i].width < tty_width())
        i++;
    return &measure_lists[i];
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

/* What of the tables there is room for. */
typedef struct layout {
    size_t num_stages, num_queues; /* rows */
    size_t bar;                    /* columns of bars; 0 = none */
    bool has_history;              /* lines of small bars */
} layout;

/* What the bar of a subject shows, and its history. */
static const char *picture_measure(weir_subject subject)
{
    return subject == WEIR_SUBJECT_STAGE ? "busy_share" : "ave_depth";
}

static double picture_top(const weir_total *total)
{
    return total->subject == WEIR_SUBJECT_QUEUE && total->capacity > 0 ? (double)total->capacity : 1;
}

static void put_bar_cell(table *t, const watched *w, const weir_total *total, size_t width)
{
    double value = latest_value(w, total->subject, total->key.name, picture_measure(total->subject));
    char *text;
    size_t size;
    FILE *out = memory_file_open(&text, &size);
    if (isfinite(value))
        run_put_bar(out, value / picture_top(total), width);
    memory_file_close(out);
    table_words(t, text);
    free(text);
}

static void put_history_cell(table *t, const watched *w, const weir_total *total)
{
    char text[RUN_HISTORY_BYTES];
    run_history_line(&w->history, total->subject, total->key.name, picture_measure(total->subject),
                     picture_top(total), text);
    table_words(t, text);
}

typedef struct series_table {
    weir_subject subject;
    struct measure_list measures;
    int sort;        /* an index into watch_sorts */
    size_t num_rows; /* at most */
} series_table;

static void put_series_row(table *t, const watched *w, const series_table *of, const layout *l,
                           const weir_total *total, size_t number)
{
    char key[32];
    bool is_total = true;
    snprintf(key, sizeof key, "%zu", number);
    table_words(t, key);
    table_words(t, total->key.name);
    if (l->bar)
        put_bar_cell(t, w, total, l->bar);
    for (size_t i = 0; i < of->measures.count; i++) {
        const char *measure = of->measures.names[i];
        if (measure)
            table_number(t, is_total ? weir_total_value(total, weir_measure_find(total->subject, measure))
                                     : latest_value(w, total->subject, total->key.name, measure));
        is_total &= measure != NULL;
    }
    table_known(t, total->subject == WEIR_SUBJECT_QUEUE ? total->capacity : 0);
    if (l->has_history)
        put_history_cell(t, w, total);
}

static size_t set_columns(table_column columns[MAX_SHOWN + 5], const watch_view *view, const series_table *of,
                          const layout *l)
{
    bool is_stage = of->subject == WEIR_SUBJECT_STAGE;
    size_t count = 0;
    columns[count++] = (table_column){ "", view->has_keys && is_stage ? "#" : NULL, TABLE_WORDS };
    columns[count++] = (table_column){ "", metric_subject_name(of->subject), TABLE_WORDS };
    if (l->bar)
        columns[count++] = (table_column){ "", is_stage ? "busy" : "level", TABLE_PICTURE };
    for (size_t i = 0; i < of->measures.count; i++)
        if (of->measures.names[i])
            columns[count++] = metric_column(weir_measure_find(of->subject, of->measures.names[i]));
    columns[count++] = (table_column){ "", "capacity", TABLE_COUNT };
    if (l->has_history)
        columns[count++] = (table_column){ "", is_stage ? "busy before" : "level before", TABLE_PICTURE };
    return count;
}

/* The totals of a subject, and how many more there are. */
static void put_series_table(FILE *out, const watched *w, const watch_view *view, const series_table *of,
                             const layout *l)
{
    const weir_total_list *list = &w->totals.of[of->subject];
    table_column columns[MAX_SHOWN + 5];
    const weir_total **order = memory_get(list->count, sizeof *order);
    size_t num_columns = set_columns(columns, view, of, l), num_rows = list->count;
    table *t = table_begin(out, TABLE_TEXT, columns, num_columns);
    table_set_keys(t, 2);
    if (tty_has_colours())
        table_set_coloured(t);
    for (size_t i = 0; i < list->count; i++)
        order[i] = &list->all[i];
    sorted_run = w;
    sorted_measure = watch_sorts[of->sort];
    if (of->sort > 0 && list->count > 0)
        qsort(order, list->count, sizeof *order, compare_totals);
    num_rows = num_rows > of->num_rows ? of->num_rows : num_rows;
    for (size_t i = 0; i < num_rows; i++)
        put_series_row(t, w, of, l, order[i], (size_t)(order[i] - list->all) + 1);
    table_end(t);
    if (num_rows < list->count)
        fprintf(out, "%zu more\n", list->count - num_rows);
    free(order);
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    while ((text = strchr(text, '\n')))
        text++, count++;
    return count;
}

/* With the widest pictures with which each row is one line; on no terminal, without. */
static void put_fitting_table(FILE *out, const watched *w, const watch_view *view, const series_table *of)
{
    static const layout layouts[] = { { .bar = RUN_BAR_MAX, .has_history = true },
                                      { .bar = RUN_BAR_MAX / 2, .has_history = true },
                                      { .bar = RUN_BAR_MAX / 2 },
                                      { .bar = RUN_BAR_MIN },
                                      { 0 } };
    size_t all = w->totals.of[of->subject].count, num_rows = all < of->num_rows ? all : of->num_rows;
    for (size_t i = tty_width() ? 0 : sizeof layouts / sizeof layouts[0] - 1;; i++) {
        char *text;
        size_t size;
        FILE *memory = memory_file_open(&text, &size);
        put_series_table(memory, w, view, of, &layouts[i]);
        memory_file_close(memory);
        bool is_last = !layouts[i].bar, fits = count_lines(text) <= 1 + num_rows + (num_rows < all);
        if (fits || is_last)
            fputs(text, out);
        free(text);
        if (fits || is_last)
            return;
    }
}

static void put_tables(FILE *out, const watched *w, const watch_view *view, size_t num_stages, size_t num_queues)
{
    const struct measure_lists *lists = lists_that_fit();
    const series_table stages = { WEIR_SUBJECT_STAGE, lists->stages, view->sort, num_stages };
    const series_table queues = { WEIR_SUBJECT_QUEUE, lists->queues, 0, num_queues };
    fprintf(out, "\nStages%s%s: %s so far; the rest is of the latest lap\n", view->sort ? ", sorted by " : "",
            view->sort ? watch_sorts[view->sort] : "", lists->tasks);
    put_fitting_table(out, w, view, &stages);
    fputs("\nQueues\n", out);
    put_fitting_table(out, w, view, &queues);
}

static void put_notes(const run_lines *lines, const watched *w)
{
    const struct {
        const char *heading, *text, *colour;
    } notes[] = { { "running for long: ", is_running(w) ? w->stall : NULL, lines->yellow },
                  { "slowest of the latest laps: ", w->slowest, "" },
                  { "the last failure: ", w->last_failure, lines->red } };
    for (size_t i = 0, count = 0; i < sizeof notes / sizeof notes[0]; i++) {
        if (!notes[i].text)
            continue;
        char *harmless = memory_get(4 * strlen(notes[i].text) + 1, 1);
        weir__text_escape(notes[i].text, harmless, 4 * strlen(notes[i].text) + 1);
        fputs(count++ == 0 ? "\n" : "", lines->out);
        run_put_filled(lines, notes[i].colour, notes[i].heading, 2, harmless);
        free(harmless);
    }
}

static void put_head(run_lines *lines, const watched *w)
{
    lines->totals = &w->totals;
    put_headline(lines, w);
    put_state(lines, w, weir_recording_path(lines->recording));
    lines->totals = is_running(w) ? &w->last_lap : &w->totals; /* the last lap of a run may be nearly empty */
    fputc('\n', lines->out);
    run_put_rates(lines);
    run_put_times(lines);
    put_history(lines, w);
    if (w->verdict)
        run_put_limit(lines, w->verdict);
}

/* Makes the whole screen; tables have only the given numbers of rows. */
static char *make_screen(run_lines *lines, const watched *w, const watch_view *view, size_t num_stages,
                         size_t num_queues)
{
    const weir_total_list *stages = &w->totals.of[WEIR_SUBJECT_STAGE];
    char *text;
    size_t size;
    lines->out = memory_file_open(&text, &size);
    put_head(lines, w);
    if (view->opened > 0 && (size_t)view->opened <= stages->count) {
        const weir_total *total = &stages->all[view->opened - 1];
        const weir_total *both[] = { total, find_total(&w->last_lap, WEIR_SUBJECT_STAGE, total->key.name) };
        fprintf(lines->out, "\n%s\n", total->key.name);
        metric_put_upright(lines->out, TABLE_TEXT, both, (const char *const[]){ "so far", "latest lap" }, 2);
    } else {
        put_tables(lines->out, w, view, num_stages, num_queues);
        put_notes(lines, w);
    }
    memory_file_close(lines->out);
    return text;
}

/* What fits; the last line says how much does not. */
static void put_cut(FILE *out, const char *text, size_t num_rows)
{
    size_t count = count_lines(text);
    for (size_t i = 0; num_rows && count > num_rows && i + 1 < num_rows; i++) {
        size_t length = strcspn(text, "\n") + 1;
        fwrite(text, 1, length, out);
        text += length;
    }
    if (num_rows && count > num_rows)
        fprintf(out, "%zu more lines\n", count - num_rows + 1);
    else
        fputs(text, out);
}

/* The longer table loses rows first. */
static void put_screen(FILE *out, run_lines *lines, const watched *w, const watch_view *view)
{
    size_t num_stages = w->totals.of[WEIR_SUBJECT_STAGE].count, num_queues = w->totals.of[WEIR_SUBJECT_QUEUE].count;
    char *text = make_screen(lines, w, view, num_stages, num_queues);
    while (view->num_rows && count_lines(text) > view->num_rows && (num_stages > 1 || num_queues > 1)) {
        if (num_queues >= num_stages)
            num_queues--;
        else
            num_stages--;
        free(text);
        text = make_screen(lines, w, view, num_stages, num_queues);
    }
    put_cut(out, text, view->num_rows);
    free(text);
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

static int write_view(FILE *out, weir_recording *recording, const watched *w, const watch_view *view,
                      weir_error *error)
{
    const weir_filter run = { .run_id = w->run.run_id };
    run_lines lines = run_lines_on(out, recording, &run);
    lines.is_live = is_running(w);
    lines.totals = &w->totals;
    int status = run_lines_read(&lines, error);
    if (status == WEIR_OK)
        put_screen(out, &lines, w, view);
    run_lines_free(&lines);
    return status;
}

int watch_write(FILE *out, weir_recording *recording, const weir_filter *filter, int64_t now_unix_ns,
                const watch_view *view, weir_error *error)
{
    watched w = { .now_unix_ns = now_unix_ns };
    int status = read_run(recording, filter, &w, error);
    if (status == WEIR_OK && view)
        status = write_view(out, recording, &w, view, error);
    else if (status == WEIR_OK)
        put_watch_json(out, &w, weir_recording_path(recording));
    free_watched(&w);
    return status;
}
