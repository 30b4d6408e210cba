#include "watch_screen.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format.h"
#include "plot_series.h"

enum { SPARKS = 24 /* laps that a sparkline shows */ };

/* What a frame is made of. */
typedef struct frame {
    weir_run_record run; /* texts are not kept */
    bool is_gone;        /* it has not ended, but its process is not there any more */
    weir_totals totals;  /* of the whole run, by name */
    series_set recent;   /* the latest laps */
    double last_lap;     /* when the latest lap ended; 0 = none has */
    int64_t expected;    /* items that the program said it would deliver; 0 = it did not */
    char *last_failure;  /* NULL = none */
    double now;
    int width;
} frame;

/* ---- reading ------------------------------------------------------------------------------------------------ */

/* The first record of a kind. The query is to be ended, whatever the result. */
static int first_record(weir_reader *reader, weir_record_kind kind, const weir_filter *filter, weir_query **query,
                        const weir_record **record, weir_error *error)
{
    int status = weir_query_begin(reader, kind, filter, query, error);
    return status == WEIR_OK ? weir_query_next(*query, record, error) : status;
}

/* WEIR_EOF is as good as WEIR_OK: there was none. */
static int ok_if_none(int status)
{
    return status == WEIR_EOF ? WEIR_OK : status;
}

/* How long laps are, on the average: the last one of a run may be much shorter. */
static double lap_length(const frame *f)
{
    const weir_queue_totals *queue = f->totals.num_queues ? &f->totals.queues[0] : NULL;
    return queue && queue->key.num_laps ? fmax(queue->elapsed / (double)queue->key.num_laps, 0.01) : 0.01;
}

static int read_recent(weir_reader *reader, const weir_filter *filter, frame *f, weir_error *error)
{
    weir_filter latest = *filter;
    weir_query *query;
    const weir_record *record;
    latest.descending = true;
    latest.limit = 1;
    int status = first_record(reader, WEIR_RECORD_QUEUE, &latest, &query, &record, error);
    if (status == WEIR_OK)
        f->last_lap = record->queue.timestamp;
    weir_query_end(query);
    if (status != WEIR_OK)
        return ok_if_none(status);

    weir_filter recent = *filter;
    recent.start_time = f->last_lap - (SPARKS + 0.5) * lap_length(f);
    return series_read(reader, &recent, &f->recent, error);
}

static int read_expected(weir_reader *reader, const weir_filter *filter, frame *f, weir_error *error)
{
    weir_filter events = { .run_id = filter->run_id, .name = "expected_items", .descending = true, .limit = 1 };
    weir_query *query;
    const weir_record *record;
    int status = first_record(reader, WEIR_RECORD_EVENT, &events, &query, &record, error);
    if (status == WEIR_OK)
        f->expected = strtoll(record->event.detail, NULL, 10);
    weir_query_end(query);
    return ok_if_none(status);
}

static int read_last_failure(weir_reader *reader, const weir_filter *filter, frame *f, weir_error *error)
{
    weir_filter failures = { .run_id = filter->run_id, .descending = true, .limit = 1 };
    weir_query *query;
    const weir_record *record;
    int status = first_record(reader, WEIR_RECORD_FAILURE, &failures, &query, &record, error);
    if (status == WEIR_OK &&
        asprintf(&f->last_failure, "%s: %s", record->failure.label, record->failure.message) < 0) {
        f->last_failure = NULL;
        status = weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the frame");
    }
    weir_query_end(query);
    return ok_if_none(status);
}

/* There is no such process, or nothing of it but its exit status, which nobody has asked for. */
static bool is_dead(int64_t pid)
{
    char path[64];
    if (kill((pid_t)pid, 0) != 0)
        return errno == ESRCH;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/cmdline", pid);
    FILE *command = fopen(path, "re");
    bool is_empty = command && fgetc(command) == EOF && !ferror(command);
    if (command)
        fclose(command);
    return is_empty;
}

/* Whether its process is gone without having said so: as far as can be told, which is on the node that it ran on. */
static bool is_gone(const weir_run_record *run)
{
    char here[256] = "";
    bool is_here = gethostname(here, sizeof here - 1) == 0 && strcmp(here, run->node_id) == 0;
    return !run->has_ended && is_here && run->pid > 0 && is_dead(run->pid);
}

static int read_frame(weir_reader *reader, const weir_filter *filter, frame *f, weir_error *error)
{
    int status = weir_reader_find_run(reader, filter->run_id, &f->run, error);
    weir_filter own = *filter;
    own.run_id = f->run.run_id;
    f->is_gone = status == WEIR_OK && is_gone(&f->run);
    f->run.node_id = f->run.command = f->run.version = NULL;
    if (status == WEIR_OK)
        status = weir_totals_read(reader, &own, &(weir_grouping){ .by = WEIR_BY_NAME }, &f->totals, error);
    if (status == WEIR_OK)
        status = read_recent(reader, &own, f, error);
    if (status == WEIR_OK)
        status = read_expected(reader, &own, f, error);
    return status == WEIR_OK ? read_last_failure(reader, &own, f, error) : status;
}

static void free_frame(frame *f)
{
    weir_totals_free(&f->totals);
    series_free(&f->recent);
    free(f->last_failure);
}

/* ---- pieces ------------------------------------------------------------------------------------------------- */

static const series *find_line(const series *lines, size_t num_lines, const char *name)
{
    for (size_t i = 0; i < num_lines; i++)
        if (strcmp(lines[i].name, name) == 0)
            return &lines[i];
    return NULL;
}

static double task_rate(const series_point *point)
{
    return point->figures[TASK_RATE];
}

static double item_rate(const series_point *point)
{
    return point->figures[QUEUE_RATE];
}

/* Each of the latest laps as a bar, the highest of them at full height. */
static void put_sparks(FILE *out, const series *line, double (*rate)(const series_point *point))
{
    static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    size_t first = line && line->num_points > SPARKS ? line->num_points - SPARKS : 0;
    double highest = 0;
    for (size_t i = first; line && i < line->num_points; i++)
        highest = fmax(highest, rate(&line->points[i]));
    for (size_t i = first; line && i < line->num_points; i++) {
        double height = highest > 0 ? rate(&line->points[i]) / highest : 0;
        fputs(bars[(int)fmin(7, floor(8 * height))], out);
    }
}

static const series_point *latest(const series *line)
{
    return line && line->num_points ? &line->points[line->num_points - 1] : NULL;
}

static void put_span(FILE *out, double seconds)
{
    long whole = seconds > 0 ? lround(seconds) : 0;
    fprintf(out, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
}

static const char *time_text(char figure[WEIR_FIGURE_BYTES], double seconds)
{
    if (!isfinite(seconds))
        return "-";
    weir_text_format_time(figure, seconds);
    return figure;
}

static double percent(double share)
{
    return isfinite(share) ? 100 * share : 0;
}

/* ---- the lines ---------------------------------------------------------------------------------------------- */

static void put_head(FILE *out, const frame *f, const char *path)
{
    double last_sign = f->last_lap > 0 ? f->last_lap : f->run.started;
    double until = f->run.has_ended ? f->run.ended : f->is_gone ? last_sign : f->now;
    fprintf(out, "%s  run %" PRId64 "  %s ", path, f->run.run_id,
            f->run.has_ended ? "ended after"
            : f->is_gone     ? "recorded for"
                             : "running for");
    put_span(out, until - f->run.started);
    if (f->is_gone)
        fprintf(out, "  (killed: its process %" PRId64 " is not there any more)", f->run.pid);
    else if (!f->run.has_ended && f->last_lap > 0)
        fprintf(out, "  (the figures are %.0f s old)", fmax(0, f->now - f->last_lap));
    else if (!f->run.has_ended)
        fputs("  (no lap has ended yet)", out);
    fputs("\n\n", out);
}

/* What the stage has taken and not ended, as of the latest lap: the queue before it stands right before it. */
static int64_t in_flight(const frame *f, size_t task)
{
    const weir_task_totals *stage = &f->totals.tasks[task];
    const char *number = strchr(stage->key.name, ':');
    int index = number ? atoi(number + 1) : 0;
    for (size_t i = 0; i < f->totals.num_queues; i++) {
        const weir_queue_totals *queue = &f->totals.queues[i];
        const char *queue_number = strchr(queue->key.name, ':');
        if (queue_number && atoi(queue_number + 1) == index - 1)
            return queue->num_items - stage->num_tasks;
    }
    return 0;
}

static void put_stages(FILE *out, const frame *f)
{
    if (f->totals.num_tasks)
        fprintf(out, "%-24s %9s %7s %9s %9s %9s %5s %5s %5s %5s %6s\n", "stage", "tasks", "failed", "per s",
                "average", "p99", "busy", "in", "thr", "room", "flight");
    for (size_t i = 0; i < f->totals.num_tasks; i++) {
        const weir_task_totals *t = &f->totals.tasks[i];
        const series *line = find_line(f->recent.tasks, f->recent.num_tasks, t->key.name);
        const series_point *p = latest(line);
        char average[WEIR_FIGURE_BYTES], p99[WEIR_FIGURE_BYTES];
        fprintf(out, "%-24.24s %9" PRId64 " %7" PRId64 " %9.1f %9s %9s", t->key.name, t->num_tasks, t->num_failures,
                p ? task_rate(p) : 0, time_text(average, p ? p->figures[TASK_AVE] : NAN),
                time_text(p99, p ? p->figures[TASK_P99] : NAN));
        fprintf(out, " %4.0f%% %4.0f%% %4.0f%% %4.0f%% %6" PRId64 "  ", p ? percent(p->figures[TASK_BUSY]) : 0,
                p ? percent(p->figures[TASK_WAIT_IN]) : 0, p ? percent(p->figures[TASK_WAIT_THREAD]) : 0,
                p ? percent(p->figures[TASK_WAIT_OUT]) : 0, f->run.has_ended || f->is_gone ? 0 : in_flight(f, i));
        put_sparks(out, line, task_rate);
        fputc('\n', out);
    }
}

static void put_queues(FILE *out, const frame *f)
{
    if (f->totals.num_queues)
        fprintf(out, "\n%-24s %9s %9s %9s %9s %9s %9s\n", "queue", "items", "per s", "occupied", "level", "put",
                "get");
    for (size_t i = 0; i < f->totals.num_queues; i++) {
        const weir_queue_totals *t = &f->totals.queues[i];
        const series *line = find_line(f->recent.queues, f->recent.num_queues, t->key.name);
        const series_point *p = latest(line);
        char put[WEIR_FIGURE_BYTES], get[WEIR_FIGURE_BYTES];
        fprintf(out, "%-24.24s %9" PRId64 " %9.1f %8.0f%% %4.1f/%-4" PRId64 " %9s %9s  ", t->key.name, t->num_items,
                p ? p->figures[QUEUE_RATE] : 0, p ? percent(p->figures[QUEUE_OCCUPIED]) : 0,
                p ? p->figures[QUEUE_DEPTH] : 0, t->capacity, time_text(put, p ? p->figures[QUEUE_PUT] : NAN),
                time_text(get, p ? p->figures[QUEUE_GET] : NAN));
        put_sparks(out, line, item_rate);
        fputc('\n', out);
    }
}

/* Done so far: what came out of the last queue, and what failed on the way. */
static int64_t count_done(const frame *f)
{
    int64_t done = f->totals.num_queues ? f->totals.queues[f->totals.num_queues - 1].num_items : 0;
    for (size_t i = 0; i < f->totals.num_tasks; i++)
        done += f->totals.tasks[i].num_failures + f->totals.tasks[i].num_skipped;
    return done;
}

static void put_foot(FILE *out, const frame *f)
{
    int64_t failures = 0;
    for (size_t i = 0; i < f->totals.num_tasks; i++)
        failures += f->totals.tasks[i].num_failures;
    fprintf(out, "\nfailures: %" PRId64 "\n", failures);
    if (f->last_failure) {
        fputs("  the last: ", out);
        weir_text_put(out, f->last_failure);
        fputc('\n', out);
    }
    double elapsed = f->last_lap - f->run.started;
    int64_t done = count_done(f);
    if (f->expected <= 0 || f->run.has_ended || f->is_gone)
        return;
    fprintf(out, "done: %" PRId64 " of %" PRId64, done, f->expected);
    if (done > 0 && elapsed > 0 && f->expected >= done) {
        fputs(", the rest in about ", out);
        put_span(out, (double)(f->expected - done) * elapsed / (double)done);
    }
    fputc('\n', out);
}

/* Copies, but cuts each line after `width` characters. */
static void put_cut(FILE *out, const char *text, int width)
{
    int column = 0;
    for (const char *c = text; *c; c++) {
        bool continues = ((unsigned char)*c & 0xc0) == 0x80;
        column += !continues;
        if (*c == '\n')
            column = 0;
        if (column <= width || *c == '\n')
            fputc(*c, out);
    }
}

int frame_write(FILE *out, weir_reader *reader, const weir_filter *filter, double now, int width, weir_error *error)
{
    frame f = { .now = now, .width = width };
    char *text = NULL;
    size_t size;
    int status = read_frame(reader, filter, &f, error);
    FILE *lines = status == WEIR_OK ? open_memstream(&text, &size) : NULL;
    if (lines) {
        put_head(lines, &f, weir_reader_path(reader));
        put_stages(lines, &f);
        put_queues(lines, &f);
        put_foot(lines, &f);
        fclose(lines);
        put_cut(out, text, width);
    } else if (status == WEIR_OK) {
        status = weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the frame");
    }
    free(text);
    free_frame(&f);
    return status;
}
