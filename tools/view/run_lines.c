#include "tools/view/run_lines.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/verdict.h>

#include "common/text_escape.h"
#include "common/text_fill.h"
#include "common/unix_clock.h"
#include "tools/cli/memory.h"
#include "tools/cli/tty.h"

double run_value(const weir_total *total, const char *measure)
{
    return total ? weir_total_value(total, weir_measure_find(total->subject, measure)) : NAN;
}

run_lines run_lines_on(FILE *out, weir_recording *recording, const weir_filter *filter)
{
    bool has_colours = tty_has_colours();
    return (run_lines){ .out = out,
                        .recording = recording,
                        .filter = filter,
                        .width = tty_width() ? (size_t)tty_width() : RUN_LINE_BYTES,
                        .bold = has_colours ? "\033[1m" : "",
                        .red = has_colours ? "\033[31m" : "",
                        .green = has_colours ? "\033[32m" : "",
                        .yellow = has_colours ? "\033[33m" : "",
                        .normal = has_colours ? "\033[0m" : "" };
}

void run_lines_free(run_lines *s)
{
    free(s->folder);
    free(s->start);
}

static const weir_total *first_total(const run_lines *s, weir_subject subject)
{
    return s->totals->of[subject].count ? &s->totals->of[subject].all[0] : NULL;
}

void run_short_name(char text[RUN_LINE_BYTES], const weir_total *total)
{
    const char *name = total->key.name, *colon;
    while ((colon = strchr(name, ':')) && strspn(name, "0123456789") == (size_t)(colon - name))
        name = colon + 1;
    weir__text_escape(name, text, RUN_LINE_BYTES);
    char *end = total->subject == WEIR_SUBJECT_QUEUE ? strrchr(text, '_') : NULL;
    if (end && strcmp(end, "_queue") == 0)
        *end = '\0';
    if (end && strchr(text, '['))
        *strchr(text, '[') = '\0';
}

/* -- reading */

static int note_run(void *self, const weir_record *record, weir_error *error)
{
    run_lines *s = self;
    const weir_run_record *run = &record->run;
    (void)error;
    s->num_runs++;
    s->num_open += !run->has_ended;
    s->run_id = run->run_id;
    s->state = weir_run_state_of(run);
    s->lacks_end = !run->has_ended && run->pid == getpid(); /* the summary of weir record, at its end */
    s->took_ns = run->has_ended                 ? run->ended_unix_ns - run->started_unix_ns
                 : s->state == WEIR_RUN_RUNNING ? unix_clock_ns() - run->started_unix_ns
                                                : 0;
    return WEIR_OK;
}

/* The part of two labels up to the last slash that both have. */
static char *common_folder(const char *one, const char *other)
{
    size_t same = 0;
    while (one[same] && one[same] == other[same])
        same++;
    while (same > 0 && one[same - 1] != '/')
        same--;
    return memory_format("%.*s", (int)same, one);
}

static int note_texts(void *self, const weir_row *row, weir_error *error)
{
    run_lines *s = self;
    (void)error;
    s->expected = weir_row_int(row, 0);
    s->num_failures = weir_row_int(row, 4);
    if (s->num_runs == 1)
        s->start = weir_row_is_null(row, 1) ? NULL : memory_copy(weir_row_text(row, 1));
    if (!weir_row_is_null(row, 2))
        s->folder = common_folder(weir_row_text(row, 2), weir_row_text(row, 3));
    return WEIR_OK;
}

int run_lines_read(run_lines *s, weir_error *error)
{
    /* A rank's first run expects its files; later ones go on with those, or repeat them. The least and the greatest label
       differ first where any two do. */
    static const char sql[] =
        "SELECT (SELECT total(CAST(detail AS INTEGER)) FROM events WHERE id IN (SELECT max(id) FROM events WHERE "
        "event_name = 'expected_items' AND run_id IN (SELECT min(run_id) FROM runs GROUP BY rank) GROUP BY run_id)),"
        " (SELECT detail FROM events WHERE event_name = 'working_directory' ORDER BY id LIMIT 1),"
        " min(nullif(label, '')), max(label), (SELECT count(*) FROM failures)"
        " FROM (SELECT label FROM items UNION ALL SELECT label FROM failures)";
    const weir_filter whole_runs = { .run_id = s->filter->run_id,
                                     .node_id = s->filter->node_id,
                                     .by_rank = s->filter->by_rank,
                                     .rank = s->filter->rank };
    int status = weir_recording_each(s->recording, WEIR_RECORD_RUN, s->filter, note_run, s, error);
    return status == WEIR_OK ? weir_recording_query(s->recording, &whole_runs, sql, NULL, note_texts, s, error)
                             : status;
}

/* -- pieces of lines */

/* "4.3", "1,070" */
static void format_number(char figure[WEIR_FORMAT_BYTES], double number)
{
    char digits[WEIR_FORMAT_BYTES];
    int length =
        snprintf(digits, sizeof digits, "%.*f", number < 9.95 && number != round(number) ? 1 : 0, fmin(number, 1e15));
    char *to = figure;
    for (int i = 0; i < length; i++) {
        if (i > 0 && number >= 999.5 && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
}

void run_put_line(const run_lines *s, const char *text, size_t indent)
{
    fprintf(s->out, "%*s", (int)indent, "");
    if (indent + weir__text_columns(text, strlen(text)) <= s->width)
        fprintf(s->out, "%s\n", text);
    else
        weir__text_fill(s->out, text, text + strlen(text), indent + 2, indent, s->width);
}

void run_put_filled(const run_lines *s, const char *colour, const char *heading, size_t indent, const char *text)
{
    size_t at = weir__text_columns(heading, strlen(heading));
    fprintf(s->out, "%s%s%s%*s", *heading ? colour : "", heading, *heading && *colour ? s->normal : "",
            (int)(indent > at ? indent - at : 0), "");
    weir__text_fill(s->out, text, text + strlen(text), indent, indent > at ? indent : at, s->width);
}

/* Adds a figure to a line of them; commas stand between them where the line is broken. */
static void add_figure(const run_lines *s, char line[RUN_LINE_BYTES], const char *format, const char *figure,
                       const char *unit)
{
    size_t length = strlen(line);
    snprintf(line + length, RUN_LINE_BYTES - length, format,
             length == 0     ? ""
             : s->width < 80 ? ", "
                             : "   ",
             figure, unit);
}

/* -- the lines */

static const weir_total *find_decode(const run_lines *s)
{
    const weir_total_list *stages = &s->totals->of[WEIR_SUBJECT_STAGE];
    for (size_t i = 0; i < stages->count; i++)
        if (weir_name_matches("decode", stages->all[i].key.name))
            return &stages->all[i];
    return NULL;
}

/* The sum over all stages of that name: several runs may have other numbers of slots. 0 = there are none. */
static uint64_t count_decoded(const run_lines *s)
{
    const weir_total_list *stages = &s->totals->of[WEIR_SUBJECT_STAGE];
    uint64_t count = 0;
    for (size_t i = 0; i < stages->count; i++)
        if (weir_name_matches("decode", stages->all[i].key.name))
            count += stages->all[i].metrics.task.num_tasks - stages->all[i].metrics.task.num_failures;
    return count;
}

static bool is_part(const run_lines *s)
{
    const weir_filter *f = s->filter;
    return f->start_unix_ns || f->end_unix_ns || f->by_step || f->phase || f->mode;
}

/* The duration of the run, or of the laps that the filter leaves. */
static int64_t shown_ns(const run_lines *s)
{
    const weir_total *queue = weir_totals_sink_queue(s->totals);
    return is_part(s) && queue ? queue->elapsed_ns : s->took_ns;
}

static bool has_files(const run_lines *s)
{
    return (s->folder && *s->folder) || (find_decode(s) && (s->folder || s->expected > 0));
}

/* "k200: ", "run 3: "; begins the headline */
static void put_what(const run_lines *s)
{
    char *name = memory_copy(s->folder ? s->folder : "");
    size_t length = strlen(name);
    while (length > 0 && name[length - 1] == '/')
        name[--length] = '\0';
    const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    if (s->num_runs > 1)
        fprintf(s->out, "%" PRId64 " runs%s", s->num_runs, *base ? " of " : "");
    weir__text_escape_to(s->out, base);
    if (s->num_runs > 1 || *base)
        fputs(": ", s->out);
    free(name);
}

/* Files, or items where there are no files. */
typedef struct headline_counts {
    uint64_t done, failed, skipped;
    uint64_t all; /* or as many as are expected, if these are more */
} headline_counts;

static headline_counts count_for_headline(const run_lines *s)
{
    const weir_total *decode = find_decode(s), *queue = weir_totals_sink_queue(s->totals);
    const weir_total_list *stages = &s->totals->of[WEIR_SUBJECT_STAGE];
    headline_counts counts = { .done = decode ? count_decoded(s) : queue ? queue->metrics.queue.num_items : 0 };
    for (size_t i = 0; i < stages->count; i++) {
        counts.failed += stages->all[i].metrics.task.num_failures;
        counts.skipped += stages->all[i].metrics.task.num_skipped;
    }
    /* of a run that goes on, the list of failures is ahead of the laps */
    if (s->num_open && !is_part(s) && !s->filter->name && counts.failed < (uint64_t)s->num_failures)
        counts.failed = (uint64_t)s->num_failures;
    counts.done -= decode && counts.skipped < counts.done ? counts.skipped : 0;
    counts.all = counts.done + counts.failed + counts.skipped;
    if (s->expected > 0 && (uint64_t)s->expected > counts.all)
        counts.all = (uint64_t)s->expected;
    return counts;
}

/* "stopped after 3.2 s: ", of one run that has not finished */
static void put_state(const run_lines *s, const char *took)
{
    if (s->num_runs != 1)
        return;
    if (s->lacks_end)
        fprintf(s->out, "the end could not be recorded, after %s: ", took);
    else if (s->state == WEIR_RUN_FINISHED)
        return;
    else if (s->took_ns > 0)
        fprintf(s->out, "%s %s %s: ", weir_run_state_name(s->state), s->num_open ? "for" : "after", took);
    else if (!weir_recording_lacks(s->recording))
        fprintf(s->out, "%s: ", weir_run_state_name(s->state));
}

static void put_number(const run_lines *s, const char *before, uint64_t number, const char *after)
{
    char figure[WEIR_FORMAT_BYTES];
    format_number(figure, (double)number);
    fprintf(s->out, "%s%s%s", before, figure, after);
}

void run_put_headline(run_lines *s)
{
    const headline_counts counts = count_for_headline(s);
    char took[WEIR_FORMAT_BYTES];
    s->num_done = counts.done;
    weir__text_format_duration(took, shown_ns(s));
    put_what(s);
    put_state(s, took);
    put_number(s, "", counts.done, "");
    if (counts.all > counts.done)
        put_number(s, " of ", counts.all, "");
    fprintf(s->out, " %s%s %s", has_files(s) ? "file" : "item", counts.all == 1 ? "" : "s",
            find_decode(s) ? "decoded" : "delivered");
    if (s->num_runs == 1 && s->state == WEIR_RUN_FINISHED && s->took_ns > 0)
        fprintf(s->out, " in %s", took);
    if (counts.failed)
        put_number(s, ", ", counts.failed, " failed");
    if (counts.skipped)
        put_number(s, ", ", counts.skipped, " skipped");
    if (s->num_runs > 1 && s->num_open)
        fprintf(s->out, "; %" PRId64 " of the runs %s not ended", s->num_open, s->num_open == 1 ? "has" : "have");
}

run_rate run_rate_of(const run_lines *s)
{
    const weir_total *decode = find_decode(s);
    const char *unit = has_files(s) ? "files/s" : "items/s";
    return decode ? (run_rate){ decode, WEIR_SUBJECT_STAGE, "successes_per_s", unit }
                  : (run_rate){ weir_totals_sink_queue(s->totals), WEIR_SUBJECT_QUEUE, "items_per_s", unit };
}

void run_put_rates(const run_lines *s)
{
    const run_rate shown = run_rate_of(s);
    const weir_total *process = first_total(s, WEIR_SUBJECT_PROCESS);
    char line[RUN_LINE_BYTES] = "", figure[WEIR_FORMAT_BYTES], budget[WEIR_FORMAT_BYTES + 16];
    double rate = run_value(shown.total, shown.measure);
    if (rate > 0) {
        format_number(figure, rate);
        add_figure(s, line, "%s%s %s", figure, shown.unit);
    }
    if (weir_totals_frames_per_s(s->totals) > 0) {
        format_number(figure, weir_totals_frames_per_s(s->totals));
        add_figure(s, line, "%s%s %s", figure, "frames/s");
    }
    if (run_value(process, "read_rate") >= 1) {
        weir__text_format_bytes(figure, run_value(process, "read_rate"));
        add_figure(s, line, "%s%s%s", figure, "/s read");
    }
    double cpus = run_value(process, "cpus"), share = run_value(process, "cpu_share");
    if (cpus >= 0 && (share > 0 || process->capacity > 0)) {
        snprintf(figure, sizeof figure, "%.2f", cpus);
        snprintf(budget, sizeof budget, "of %.0f CPUs",
                 fmin(share > 0 ? cpus / share : (double)process->capacity, 1e9));
        if (process->concurrency > 1) /* each of the runs has a budget, and some may share it */
            strcpy(budget, "CPUs");
        add_figure(s, line, "%s%s %s", figure, budget);
    }
    if (s->is_live && run_value(first_total(s, WEIR_SUBJECT_MACHINE), "other_cpus") >= 0.005) {
        snprintf(figure, sizeof figure, "%.2f", run_value(first_total(s, WEIR_SUBJECT_MACHINE), "other_cpus"));
        add_figure(s, line, "%s%s %s", figure, "by others");
    }
    const char *memory = s->is_live ? "resident_bytes" : "peak_bytes";
    if (run_value(process, memory) > 0) {
        weir__text_format_bytes(figure, run_value(process, memory));
        add_figure(s, line, "%s%s %s", figure, "memory");
    }
    if (*line && s->width < 80)
        run_put_filled(s, "", "", 2, line);
    else if (*line)
        fprintf(s->out, "  %s\n", line);
}

/* The stage whose slots are busy longest, or the only one. */
static const weir_total *find_busiest(const run_lines *s)
{
    const weir_total_list *stages = &s->totals->of[WEIR_SUBJECT_STAGE];
    const weir_total *busiest = find_decode(s);
    for (size_t i = 0; i < stages->count && !find_decode(s); i++)
        if (!busiest || stages->all[i].metrics.task.busy_ns > busiest->metrics.task.busy_ns)
            busiest = &stages->all[i];
    return busiest;
}

void run_put_times(const run_lines *s)
{
    static const char *const measures[][2] = { { "median", "p50_time" },
                                               { "p99", "p99_time" },
                                               { "longest", "max_time" } };
    const weir_total *stage = find_busiest(s);
    char name[RUN_LINE_BYTES] = "file", figure[WEIR_FORMAT_BYTES];
    const char *between = ": ";
    char *text;
    size_t size;
    if (isnan(run_value(stage, "ave_time")))
        return;
    bool is_file = stage == find_decode(s) && has_files(s);
    if (!is_file)
        run_short_name(name, stage);
    FILE *out = memory_file_open(&text, &size);
    fprintf(out, is_file ? "one %s" : "one task of %s", name);
    if (isnan(run_value(stage, "p50_time"))) {
        tty_format_time(figure, run_value(stage, "ave_time"));
        fprintf(out, ": average %s", figure);
    } else
        for (size_t i = 0; i < 3; i++)
            if (!isnan(run_value(stage, measures[i][1]))) {
                tty_format_time(figure, run_value(stage, measures[i][1]));
                fprintf(out, "%s%s %s", between, measures[i][0], figure);
                between = ", ";
            }
    memory_file_close(out);
    run_put_line(s, text, 2);
    free(text);
}

static void put_sentence(const run_lines *s, const char *heading, const char *sentence, const char *more)
{
    char text[RUN_LINE_BYTES], harmless[RUN_LINE_BYTES];
    weir__text_escape(sentence, harmless, sizeof harmless);
    snprintf(text, sizeof text, "%.1900s%.100s", harmless, more);
    run_put_filled(s, s->bold, heading, 7, text);
}

bool run_put_limit(const run_lines *s, const weir_verdict *v)
{
    char certainty[64] = "";
    bool is_known = v->kind != WEIR_VERDICT_UNKNOWN;
    if (!is_known && !(v->items_per_s > 0))
        return false;
    if (is_known && v->confidence < 0.005)
        snprintf(certainty, sizeof certainty, " (%s: hardly an item was delivered)", weir_verdict_certainty(v));
    else if (is_known)
        snprintf(certainty, sizeof certainty, " (%s, %.0f %%)", weir_verdict_certainty(v), 100 * v->confidence);
    fputc('\n', s->out);
    put_sentence(s, "LIMIT", v->sentence, certainty);
    if (v->other_kind != WEIR_VERDICT_UNKNOWN)
        put_sentence(s, v->changed_unix_ns ? "AND" : "OR", v->other_sentence, "");
    return true;
}

void run_put_bar(FILE *out, double share, size_t width)
{
    bool has_utf8 = tty_has_utf8();
    size_t filled = (size_t)lround(fmin(fmax(share, 0), 1) * (double)width);
    for (size_t i = 0; i < width; i++)
        fputs(i < filled ? (has_utf8 ? "█" : "#") : has_utf8 ? "·" : ".", out);
}
