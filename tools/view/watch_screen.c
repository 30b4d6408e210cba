#include "watch_screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/escape.h>
#include <weir/verdict.h>

#include "format.h"
#include "metric_table.h"
#include "plot_series.h"
#include "text_fill.h"

enum { SPARKS = 24 /* laps in a sparkline */ };

/* The data of a frame. */
typedef struct frame {
    weir_run_record run; /* its texts are not kept */
    weir_run_state state;
    weir_totals totals;       /* of the whole run, by name */
    series_set recent;        /* the latest laps */
    int64_t last_lap_unix_ns; /* when the latest lap ended; 0 = none */
    weir_verdict *verdict;    /* on the latest laps; NULL = none has ended */
    int64_t expected;         /* items that the program expects to deliver; 0 = unknown */
    char *last_failure;       /* NULL = none */
    int64_t now_unix_ns;
    int width;
} frame;

/* ---- reading ------------------------------------------------------------------------------------------------ */

/* The average length of laps: the last lap of a run may be much shorter. */
static int64_t lap_length_ns(const frame *f)
{
    const weir_total_list *queues = &f->totals.of[WEIR_SUBJECT_QUEUE];
    int64_t length_ns = queues->count ? queues->all[0].elapsed_ns / queues->all[0].key.num_laps : 0;
    return length_ns > 10 * WEIR_MILLISECOND ? length_ns : 10 * WEIR_MILLISECOND;
}

/* The latest lap, the expected number of items, or the latest failure. */
static int note_latest(void *self, const weir_record *record, weir_error *error)
{
    frame *f = self;
    if (record->kind == WEIR_RECORD_QUEUE)
        f->last_lap_unix_ns = record->lap.end_unix_ns;
    else if (record->kind == WEIR_RECORD_EVENT)
        f->expected = strtoll(record->event.detail, NULL, 10);
    else if (asprintf(&f->last_failure, "%s: %s", record->failure.label, record->failure.message) < 0) {
        f->last_failure = NULL;
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory for the frame");
    }
    return WEIR_OK;
}

static int read_latest(weir_reader *reader, frame *f, weir_record_kind kind, const char *name, weir_error *error)
{
    weir_filter latest = { .run_id = f->run.run_id, .name = name, .descending = true, .limit = 1 };
    return weir_reader_each(reader, kind, &latest, note_latest, f, error);
}

static int read_recent(weir_reader *reader, frame *f, weir_error *error)
{
    int status = read_latest(reader, f, WEIR_RECORD_QUEUE, NULL, error);
    if (status != WEIR_OK || f->last_lap_unix_ns == 0)
        return status;
    weir_filter recent = { .run_id = f->run.run_id };
    recent.start_unix_ns = f->last_lap_unix_ns - (int64_t)((SPARKS + 0.5) * (double)lap_length_ns(f));
    status = series_read(reader, &recent, false, &f->recent, error);
    return status == WEIR_OK ? weir_verdict_read(reader, &recent, &f->verdict, error) : status;
}

static int read_frame(weir_reader *reader, const weir_filter *filter, frame *f, weir_error *error)
{
    int status = weir_reader_find_run(reader, filter->run_id, &f->run, error);
    weir_filter own = *filter;
    own.run_id = f->run.run_id;
    if (status == WEIR_OK)
        f->state = weir_run_state_of(&f->run);
    f->run.node_id = f->run.command = f->run.version = f->run.machine = NULL;
    if (status == WEIR_OK)
        status = weir_totals_read(reader, &own, &(weir_grouping){ .by = WEIR_BY_NAME }, &f->totals, error);
    if (status == WEIR_OK)
        status = read_recent(reader, f, error);
    if (status == WEIR_OK)
        status = read_latest(reader, f, WEIR_RECORD_EVENT, "expected_items", error);
    return status == WEIR_OK ? read_latest(reader, f, WEIR_RECORD_FAILURE, NULL, error) : status;
}

static void free_frame(frame *f)
{
    weir_totals_free(&f->totals);
    series_free(&f->recent);
    weir_verdict_free(f->verdict);
    free(f->last_failure);
}

static bool is_gone(const frame *f)
{
    return f->state == WEIR_RUN_KILLED;
}

/* ---- pieces ------------------------------------------------------------------------------------------------- */

static double rate_at(weir_subject subject, const series_point *point)
{
    return series_value(subject, point, subject == WEIR_SUBJECT_QUEUE ? "items_per_s" : "tasks_per_s");
}

/* Draws each of the latest laps as a bar, the largest at full height. */
static void put_sparks(FILE *out, const series *line, weir_subject subject, int most)
{
    static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    size_t room = (size_t)most, first = line && line->num_points > room ? line->num_points - room : 0;
    double highest = 0;
    for (size_t i = first; line && i < line->num_points; i++)
        highest = fmax(highest, rate_at(subject, &line->points[i]));
    for (size_t i = first; line && i < line->num_points; i++) {
        double height = highest > 0 ? fmax(0, rate_at(subject, &line->points[i])) / highest : 0;
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

static const char *time_text(char figure[WEIR_FORMAT_BYTES], double seconds)
{
    if (!isfinite(seconds))
        return "-";
    weir__text_format_time(figure, seconds);
    return figure;
}

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static double or_zero(double value)
{
    return isfinite(value) ? value : 0;
}

/* Names are truncated if the line is narrow. */
static int name_width(const frame *f)
{
    return f->width < 100 ? 22 : 28;
}

/* "-" = not known. */
static const char *percent_text(char text[WEIR_FORMAT_BYTES], double share)
{
    snprintf(text, WEIR_FORMAT_BYTES, isfinite(share) ? "%.0f%%" : "-", 100 * share);
    return text;
}

/* ---- the lines ---------------------------------------------------------------------------------------------- */

/* The end of the run, or until when it is known to go on. */
static int64_t until_unix_ns(const frame *f)
{
    int64_t last_sign = f->last_lap_unix_ns > 0 ? f->last_lap_unix_ns : f->run.started_unix_ns;
    return f->run.has_ended ? f->run.ended_unix_ns : is_gone(f) ? last_sign : f->now_unix_ns;
}

static void put_head(FILE *out, const frame *f, const char *path)
{
    weir_text_escape_to(out, path);
    fprintf(out, "  run %" PRId64 "  %s ", f->run.run_id,
            f->run.has_ended ? weir_run_state_name(f->state)
            : is_gone(f)     ? "recorded for"
                             : "running for");
    if (f->run.has_ended)
        fputs("after ", out);
    put_span(out, seconds(until_unix_ns(f) - f->run.started_unix_ns));
    if (is_gone(f))
        fprintf(out, "  (killed: its process %" PRId64 " no longer exists)", f->run.pid);
    else if (!f->run.has_ended && f->last_lap_unix_ns > 0)
        fprintf(out, "  (the metrics are %.0f s old)", fmax(0, seconds(f->now_unix_ns - f->last_lap_unix_ns)));
    else if (!f->run.has_ended)
        fputs("  (no lap has ended yet)", out);
    fputs("\n\n", out);
}

/* Bars use the rest of the line. */
static void end_line(FILE *out, const frame *f, int used, const series *line, weir_subject subject)
{
    int room = f->width - used - 2;
    fputs(room > 0 ? "  " : "", out);
    put_sparks(out, line, subject, room < 0 ? 0 : room > SPARKS ? SPARKS : room);
    fputc('\n', out);
}

/* 80 columns do not have room for all of them. */
static bool is_narrow(const frame *f)
{
    return f->width < 100;
}

static void put_stages(FILE *out, const frame *f)
{
    const weir_total_list *stages = &f->totals.of[WEIR_SUBJECT_STAGE];
    if (stages->count)
        fprintf(out, "%-*s %15s    latest lap\n%-*s %8s %6s %8s %7s%s %5s %5s %6s %5s\n", name_width(f), "", "total",
                name_width(f), "stage", "tasks", "failed", "per s", "average", is_narrow(f) ? "" : "     p99", "busy",
                "input", "thread", "room");
    for (size_t i = 0; i < stages->count; i++) {
        const weir_total *t = &stages->all[i];
        const series *line = series_find(&f->recent.lists[WEIR_SUBJECT_STAGE], t->key.name);
        const series_point *p = latest(line);
        char average[WEIR_FORMAT_BYTES], p99[WEIR_FORMAT_BYTES];
        fprintf(out, "%-*.*s %8" PRIu64 " %6" PRIu64 " %8.1f %7s", name_width(f), name_width(f), t->key.name,
                t->metrics.task.num_tasks, t->metrics.task.num_failures,
                or_zero(series_value(WEIR_SUBJECT_STAGE, p, "tasks_per_s")),
                time_text(average, series_value(WEIR_SUBJECT_STAGE, p, "ave_time")));
        if (!is_narrow(f))
            fprintf(out, " %7s", time_text(p99, series_value(WEIR_SUBJECT_STAGE, p, "p99_time")));
        char busy[WEIR_FORMAT_BYTES], in[WEIR_FORMAT_BYTES], thread[WEIR_FORMAT_BYTES], room[WEIR_FORMAT_BYTES];
        fprintf(out, " %5s %5s %6s %5s", percent_text(busy, series_value(WEIR_SUBJECT_STAGE, p, "busy_share")),
                percent_text(in, series_value(WEIR_SUBJECT_STAGE, p, "wait_in_share")),
                percent_text(thread, series_value(WEIR_SUBJECT_STAGE, p, "wait_thread_share")),
                percent_text(room, series_value(WEIR_SUBJECT_STAGE, p, "wait_out_share") +
                                       series_value(WEIR_SUBJECT_STAGE, p, "wait_turn_share")));
        end_line(out, f, name_width(f) + (is_narrow(f) ? 58 : 66), line, WEIR_SUBJECT_STAGE);
    }
}

static void put_queues(FILE *out, const frame *f)
{
    const weir_total_list *queues = &f->totals.of[WEIR_SUBJECT_QUEUE];
    if (queues->count)
        fprintf(out, "\n%-*s %8s    latest lap\n%-*s %8s %8s %8s %9s %7s %7s\n", name_width(f), "", "total",
                name_width(f), "queue", "items", "per s", "occupied", "level", "put", "get");
    for (size_t i = 0; i < queues->count; i++) {
        const weir_total *t = &queues->all[i];
        const series *line = series_find(&f->recent.lists[WEIR_SUBJECT_QUEUE], t->key.name);
        const series_point *p = latest(line);
        char put[WEIR_FORMAT_BYTES], get[WEIR_FORMAT_BYTES], occupied[WEIR_FORMAT_BYTES], level[40] = "-";
        if (t->capacity)
            snprintf(level, sizeof level, "%4.1f/%-4" PRId64,
                     or_zero(series_value(WEIR_SUBJECT_QUEUE, p, "ave_depth")), t->capacity);
        fprintf(out, "%-*.*s %8" PRIu64 " %8.1f %8s %9s %7s %7s", name_width(f), name_width(f), t->key.name,
                t->metrics.queue.num_items, or_zero(series_value(WEIR_SUBJECT_QUEUE, p, "items_per_s")),
                percent_text(occupied, series_value(WEIR_SUBJECT_QUEUE, p, "occupancy_rate")), level,
                time_text(put, series_value(WEIR_SUBJECT_QUEUE, p, "ave_put_time")),
                time_text(get, series_value(WEIR_SUBJECT_QUEUE, p, "ave_get_time")));
        end_line(out, f, name_width(f) + 53, line, WEIR_SUBJECT_QUEUE);
    }
}

/* How far the run is. */
typedef struct progress {
    int64_t failures, done; /* items; done: delivered, skipped or failed */
    double remaining_s;     /* NAN = not known */
} progress;

static progress progress_of(const frame *f)
{
    const weir_total_list *stages = &f->totals.of[WEIR_SUBJECT_STAGE];
    const weir_total *sink = weir_totals_sink_queue(&f->totals);
    double elapsed = seconds(f->last_lap_unix_ns - f->run.started_unix_ns);
    progress p = { .done = sink ? (int64_t)sink->metrics.queue.num_items : 0, .remaining_s = NAN };
    for (size_t i = 0; i < stages->count; i++) {
        p.failures += (int64_t)stages->all[i].metrics.task.num_failures;
        p.done += (int64_t)stages->all[i].metrics.task.num_skipped;
    }
    p.done += p.failures;
    if (p.done > 0 && elapsed > 0 && f->expected >= p.done && !f->run.has_ended && !is_gone(f))
        p.remaining_s = (double)(f->expected - p.done) * elapsed / (double)p.done;
    return p;
}

/* The sentence, broken at a space if the line is too short. */
static void put_limit(FILE *out, const frame *f)
{
    if (!f->verdict || f->verdict->kind == WEIR_VERDICT_UNKNOWN)
        return;
    char text[512], harmless[4 * sizeof text];
    snprintf(text, sizeof text, "limit of the latest laps (%s): %s", weir_verdict_certainty(f->verdict),
             f->verdict->sentence);
    weir_text_escape(text, harmless, sizeof harmless);
    fputc('\n', out);
    weir__text_fill(out, harmless, harmless + strlen(harmless), 0, 0, (size_t)(f->width > 20 ? f->width : 20));
}

static void put_foot(FILE *out, const frame *f)
{
    progress p = progress_of(f);
    put_limit(out, f);
    fprintf(out, "\nfailures: %" PRId64 "\n", p.failures);
    if (f->last_failure) {
        fputs("  the last: ", out);
        weir_text_escape_to(out, f->last_failure);
        fputc('\n', out);
    }
    if (f->expected <= 0 || f->run.has_ended || is_gone(f))
        return;
    fprintf(out, "done: %" PRId64 " of %" PRId64, p.done, f->expected);
    if (isfinite(p.remaining_s)) {
        fputs(", remaining time about ", out);
        put_span(out, p.remaining_s);
    }
    fputc('\n', out);
}

/* ---- JSON --------------------------------------------------------------------------------------------------- */

static void put_totals_json(FILE *out, const weir_totals *totals)
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        fprintf(out, "%s\"%s\": ", subject ? ", " : "", metric_subject_key(subject));
        metric_put_list(out, TABLE_JSON, subject, &totals->of[subject]);
    }
}

static void put_json(FILE *out, const frame *f, const weir_totals *last_lap, const char *path)
{
    progress p = progress_of(f);
    fputs("{\"database\": ", out);
    json_string(out, path);
    fprintf(out, ", \"rank\": %d, \"run_id\": %" PRId64 ", \"state\": \"%s\", \"elapsed\": ", (int)f->run.rank,
            f->run.run_id, weir_run_state_name(f->state));
    json_number(out, seconds(until_unix_ns(f) - f->run.started_unix_ns));
    fputs(", \"last_lap_time\": ", out);
    json_number(out, f->last_lap_unix_ns ? seconds(f->last_lap_unix_ns) : NAN);
    fprintf(out, ", \"failures\": %" PRId64 ", \"last_failure\": ", p.failures);
    json_string_or_null(out, f->last_failure);
    fprintf(out, ", \"done\": %" PRId64 ", \"expected\": ", p.done);
    json_number(out, f->expected > 0 ? (double)f->expected : NAN);
    fputs(", \"remaining\": ", out);
    json_number(out, p.remaining_s);
    fputs(", \"limit\": ", out);
    metric_put_limit(out, f->verdict);
    fputs(", ", out);
    put_totals_json(out, &f->totals);
    fputs(", \"last_lap\": {", out);
    put_totals_json(out, last_lap);
    fputs("}}", out);
}

int frame_write_json(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t now_unix_ns,
                     weir_error *error)
{
    frame f = { .now_unix_ns = now_unix_ns };
    weir_totals last_lap = { 0 };
    int status = read_frame(reader, filter, &f, error);
    weir_filter latest = { .run_id = f.run.run_id, .start_unix_ns = f.last_lap_unix_ns - WEIR_MICROSECOND * 2 };
    if (status == WEIR_OK && f.last_lap_unix_ns)
        status = weir_totals_read(reader, &latest, &(weir_grouping){ .by = WEIR_BY_NAME }, &last_lap, error);
    if (status == WEIR_OK)
        put_json(out, &f, &last_lap, weir_reader_path(reader));
    weir_totals_free(&last_lap);
    free_frame(&f);
    return status;
}

/* ---- the frame ---------------------------------------------------------------------------------------------- */

/* Copies, and truncates each line to `width` characters. */
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

/* The text that `write` makes of the frame, truncated. */
static int write_lines(FILE *out, const frame *f, const char *path,
                       void (*write)(FILE *lines, const frame *f, const char *path), weir_error *error)
{
    char *text = NULL;
    size_t size;
    FILE *lines = open_memstream(&text, &size);
    if (!lines)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory for the frame");
    write(lines, f, path);
    fclose(lines);
    put_cut(out, text, f->width);
    free(text);
    return WEIR_OK;
}

static void put_frame(FILE *lines, const frame *f, const char *path)
{
    put_head(lines, f, path);
    put_stages(lines, f);
    put_queues(lines, f);
    put_foot(lines, f);
}

int frame_write(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t now_unix_ns, int width,
                weir_error *error)
{
    frame f = { .now_unix_ns = now_unix_ns, .width = width };
    int status = read_frame(reader, filter, &f, error);
    if (status == WEIR_OK)
        status = write_lines(out, &f, weir_reader_path(reader), put_frame, error);
    free_frame(&f);
    return status;
}

/* ---- several runs -------------------------------------------------------------------------------------------- */

/* The latest lap of the sink's queue, and those before it. */
static const series *sink_line(const frame *f)
{
    const weir_total *sink = weir_totals_sink_queue(&f->totals);
    return sink ? series_find(&f->recent.lists[WEIR_SUBJECT_QUEUE], sink->key.name) : NULL;
}

static double latest_value(const frame *f, const char *measure)
{
    const series_point *p = latest(sink_line(f));
    return or_zero(series_value(WEIR_SUBJECT_QUEUE, p, measure));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void put_row(FILE *out, const frame *f, const char *path)
{
    progress p = progress_of(f);
    int used = name_width(f) + 51;
    fprintf(out, "%-*.*s %4d %-8s %9" PRId64 " %9.1f %6.0f%% %8" PRId64, name_width(f), name_width(f),
            base_name(path), (int)f->run.rank,
            f->run.has_ended ? weir_run_state_name(f->state)
            : is_gone(f)     ? "killed"
                             : "running",
            p.done, latest_value(f, "items_per_s"), 100 * or_zero(latest_value(f, "occupancy_rate")), p.failures);
    if (!is_narrow(f)) {
        fputs("   ", out);
        put_span(out, seconds(until_unix_ns(f) - f->run.started_unix_ns));
        used += 10;
    }
    end_line(out, f, used, sink_line(f), WEIR_SUBJECT_QUEUE);
}

static void put_no_run(FILE *out, const frame *f, const char *path)
{
    fprintf(out, "%-*.*s    - no run yet\n", name_width(f), name_width(f), base_name(path));
}

int frame_write_row(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t now_unix_ns, int width,
                    frame_sum *sum, weir_error *error)
{
    frame f = { .now_unix_ns = now_unix_ns, .width = width };
    int status = read_frame(reader, filter, &f, error);
    if (status == WEIR_OK) {
        progress p = progress_of(&f);
        bool is_running = !f.run.has_ended && !is_gone(&f);
        sum->num_runs++;
        sum->num_running += is_running;
        sum->done += p.done;
        sum->failures += p.failures;
        sum->expected += f.expected;
        sum->rate += is_running ? latest_value(&f, "items_per_s") : 0;
        sum->remaining_s = fmax(sum->remaining_s, or_zero(p.remaining_s));
    }
    if (status == WEIR_OK || status == WEIR_ENOTFOUND)
        status = write_lines(out, &f, weir_reader_path(reader), status == WEIR_OK ? put_row : put_no_run, error);
    free_frame(&f);
    return status;
}

void frame_write_sum(FILE *out, const frame_sum *sum, int width)
{
    const frame f = { .width = width };
    fprintf(out, "%" PRIu64 " run%s, %" PRIu64 " running; latest laps: %.1f items per s; total: %" PRId64 " done",
            sum->num_runs, sum->num_runs == 1 ? "" : "s", sum->num_running, sum->rate, sum->done);
    if (sum->expected > 0)
        fprintf(out, " of %" PRId64, sum->expected);
    fprintf(out, ", %" PRId64 " failed", sum->failures);
    if (sum->remaining_s > 0) {
        fputs(", remaining time about ", out);
        put_span(out, sum->remaining_s);
    }
    fprintf(out, "\n\n%-*s %4s %-8s %9s %17s %8s\n", name_width(&f), "", "", "", "total", "latest lap", "total");
    fprintf(out, "%-*s %4s %-8s %9s %9s %7s %8s%s\n", name_width(&f), "database", "rank", "state", "done", "per s",
            "ready", "failures", is_narrow(&f) ? "" : "   elapsed");
}
