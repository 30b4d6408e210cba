#include "tools/view/run_screen.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/summary.h>
#include <weir/verdict.h>

#include "common/text_escape.h"
#include "common/text_fill.h"
#include "common/unix_clock.h"
#include "tools/cli/memory.h"
#include "tools/cli/options.h"
#include "tools/cli/prose.h"
#include "tools/cli/tty.h"

enum { MOST_STAGES = 5, MOST_REASONS = 3, MOST_HELPS = 2, MAX_BAR = 20, MIN_BAR = 6, MAX_LINE = 2048 };

typedef struct screen {
    FILE *out;
    weir_reader *reader;
    const weir_filter *filter;
    const weir_totals *totals;
    size_t width;
    const char *bold, *red, *normal; /* "" without colours */
    /* the runs */
    int64_t num_runs, num_open, run_id;
    int64_t took_ns; /* of the only run; 0 = not known */
    weir_run_state state;
    bool lacks_end;   /* its end could not be recorded */
    int64_t expected; /* files of the run or job, as counted by weir record; 0 = not known */
    /* the folder that all labels have in common, with its slash; "" = none */
    char *folder;
    char *start;          /* where relative labels begin; NULL = not known */
    int64_t num_failures; /* recorded; some of a killed run are in no lap */
    uint64_t num_done;
    int num_reasons; /* printed so far */
    size_t indent;   /* of reasons and their labels */
} screen;

static double value_of(const weir_total *total, const char *measure)
{
    return total ? weir_total_value(total, weir_measure_find(total->subject, measure)) : NAN;
}

static const weir_total *first_total(const screen *s, weir_subject subject)
{
    return s->totals->of[subject].count ? &s->totals->of[subject].all[0] : NULL;
}

/* "0:1:decode[10]_queue": "decode[10]" of a stage, "decode" of a queue */
static void copy_short_name(char text[MAX_LINE], const weir_total *total)
{
    const char *name = total->key.name, *colon;
    while ((colon = strchr(name, ':')) && strspn(name, "0123456789") == (size_t)(colon - name))
        name = colon + 1;
    weir__text_escape(name, text, MAX_LINE);
    char *end = total->subject == WEIR_SUBJECT_QUEUE ? strrchr(text, '_') : NULL;
    if (end && strcmp(end, "_queue") == 0)
        *end = '\0';
    if (end && strchr(text, '['))
        *strchr(text, '[') = '\0';
}

/* -- reading */

static int note_run(void *self, const weir_record *record, weir_error *error)
{
    screen *s = self;
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
    screen *s = self;
    (void)error;
    s->expected = weir_row_int(row, 0);
    s->num_failures = weir_row_int(row, 4);
    if (s->num_runs == 1)
        s->start = weir_row_is_null(row, 1) ? NULL : memory_copy(weir_row_text(row, 1));
    if (!weir_row_is_null(row, 2))
        s->folder = common_folder(weir_row_text(row, 2), weir_row_text(row, 3));
    return WEIR_OK;
}

static int read_screen(screen *s, weir_error *error)
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
    int status = weir_reader_each(s->reader, WEIR_RECORD_RUN, s->filter, note_run, s, error);
    return status == WEIR_OK ? weir_reader_select(s->reader, &whole_runs, sql, NULL, note_texts, s, error) : status;
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

/* A line that is broken at spaces and indented from its second line on; `heading` stands at its begin. */
static void put_filled(const screen *s, const char *colour, const char *heading, size_t indent, const char *text)
{
    size_t at = weir__text_columns(heading, strlen(heading));
    fprintf(s->out, "%s%s%s%*s", *heading ? colour : "", heading, *heading && *colour ? s->normal : "",
            (int)(indent > at ? indent - at : 0), "");
    weir__text_fill(s->out, text, text + strlen(text), indent, indent > at ? indent : at, s->width);
}

/* Adds a figure to a line of them; commas stand between them where the line is broken. */
static void add_figure(const screen *s, char line[MAX_LINE], const char *format, const char *figure, const char *unit)
{
    size_t length = strlen(line);
    snprintf(line + length, MAX_LINE - length, format, length == 0 ? "" : s->width < 80 ? ", " : "   ", figure, unit);
}

/* -- the lines */

static const weir_total *find_decode(const screen *s)
{
    const weir_total_list *stages = &s->totals->of[WEIR_SUBJECT_STAGE];
    for (size_t i = 0; i < stages->count; i++)
        if (weir_name_matches("decode", stages->all[i].key.name))
            return &stages->all[i];
    return NULL;
}

/* Of all stages of that name: several runs may have other numbers of slots. 0 = there are none. */
static uint64_t count_decoded(const screen *s)
{
    const weir_total_list *stages = &s->totals->of[WEIR_SUBJECT_STAGE];
    uint64_t count = 0;
    for (size_t i = 0; i < stages->count; i++)
        if (weir_name_matches("decode", stages->all[i].key.name))
            count += stages->all[i].metrics.task.num_tasks - stages->all[i].metrics.task.num_failures;
    return count;
}

static bool is_part(const screen *s)
{
    const weir_filter *f = s->filter;
    return f->start_unix_ns || f->end_unix_ns || f->by_step || f->phase || f->mode;
}

/* Of the run, or of the laps that the filter leaves. */
static int64_t shown_ns(const screen *s)
{
    const weir_total *queue = weir_totals_sink_queue(s->totals);
    return is_part(s) && queue ? queue->elapsed_ns : s->took_ns;
}

static bool has_files(const screen *s)
{
    return (s->folder && *s->folder) || (find_decode(s) && (s->folder || s->expected > 0));
}

/* "k200: ", "run 3: "; begins the headline */
static void put_what(const screen *s)
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

/* "198 of 200 files decoded in 46.4 s, 2 failed" */
static void put_headline(screen *s)
{
    const weir_total *decode = find_decode(s), *queue = weir_totals_sink_queue(s->totals);
    uint64_t failed = 0, skipped = 0, done = decode ? count_decoded(s) : queue ? queue->metrics.queue.num_items : 0;
    for (size_t i = 0; i < s->totals->of[WEIR_SUBJECT_STAGE].count; i++) {
        failed += s->totals->of[WEIR_SUBJECT_STAGE].all[i].metrics.task.num_failures;
        skipped += s->totals->of[WEIR_SUBJECT_STAGE].all[i].metrics.task.num_skipped;
    }
    if (s->num_open && !is_part(s) && !s->filter->name && failed < (uint64_t)s->num_failures)
        failed = (uint64_t)s->num_failures;
    done -= decode && skipped < done ? skipped : 0;
    s->num_done = done;
    uint64_t all = done + failed + skipped, expected = s->expected > 0 ? (uint64_t)s->expected : 0;
    all = expected > all ? expected : all;
    char figure[WEIR_FORMAT_BYTES], took[WEIR_FORMAT_BYTES];
    weir__text_format_duration(took, shown_ns(s));
    bool is_done = s->state == WEIR_RUN_FINISHED;
    put_what(s);
    if (s->num_runs == 1 && s->lacks_end)
        fprintf(s->out, "the end could not be recorded, after %s: ", took);
    else if (s->num_runs == 1 && !is_done && s->took_ns > 0)
        fprintf(s->out, "%s %s %s: ", weir_run_state_name(s->state), s->num_open ? "for" : "after", took);
    else if (s->num_runs == 1 && !is_done && !weir_reader_lacks(s->reader))
        fprintf(s->out, "%s: ", weir_run_state_name(s->state));
    format_number(figure, (double)done);
    fputs(figure, s->out);
    if (all > done) {
        format_number(figure, (double)all);
        fprintf(s->out, " of %s", figure);
    }
    fprintf(s->out, " %s%s %s", has_files(s) ? "file" : "item", all == 1 ? "" : "s",
            decode ? "decoded" : "delivered");
    if (s->num_runs == 1 && is_done && s->took_ns > 0)
        fprintf(s->out, " in %s", took);
    const struct {
        uint64_t count;
        const char *word;
    } others[] = { { failed, "failed" }, { skipped, "skipped" } };
    for (size_t i = 0; i < 2; i++)
        if (others[i].count) {
            format_number(figure, (double)others[i].count);
            fprintf(s->out, ", %s %s", figure, others[i].word);
        }
    if (s->num_runs > 1 && s->num_open)
        fprintf(s->out, "; %" PRId64 " of the runs %s not ended", s->num_open, s->num_open == 1 ? "has" : "have");
    fputs("\n\n", s->out);
}

static void put_rates(const screen *s)
{
    const weir_total *decode = find_decode(s), *queue = weir_totals_sink_queue(s->totals);
    const weir_total *process = first_total(s, WEIR_SUBJECT_PROCESS);
    char line[MAX_LINE] = "", figure[WEIR_FORMAT_BYTES], budget[WEIR_FORMAT_BYTES + 16];
    double rate = decode ? value_of(decode, "successes_per_s") : value_of(queue, "items_per_s");
    if (rate > 0) {
        format_number(figure, rate);
        add_figure(s, line, "%s%s %s", figure, has_files(s) ? "files/s" : "items/s");
    }
    if (weir_totals_frames_per_s(s->totals) > 0) {
        format_number(figure, weir_totals_frames_per_s(s->totals));
        add_figure(s, line, "%s%s %s", figure, "frames/s");
    }
    if (value_of(process, "read_rate") >= 1) {
        weir__text_format_bytes(figure, value_of(process, "read_rate"));
        add_figure(s, line, "%s%s%s", figure, "/s read");
    }
    double cpus = value_of(process, "cpus"), share = value_of(process, "cpu_share");
    if (cpus >= 0 && share > 0) {
        snprintf(figure, sizeof figure, "%.2f", cpus);
        snprintf(budget, sizeof budget, "of %.0f CPUs", fmin(cpus / share, 1e9));
        if (process->concurrency > 1) /* each of the runs has a budget, and some may share it */
            strcpy(budget, "CPUs");
        add_figure(s, line, "%s%s %s", figure, budget);
    }
    if (value_of(process, "peak_bytes") > 0) {
        weir__text_format_bytes(figure, value_of(process, "peak_bytes"));
        add_figure(s, line, "%s%s %s", figure, "memory");
    }
    if (*line && s->width < 80)
        put_filled(s, "", "", 2, line);
    else if (*line)
        fprintf(s->out, "  %s\n", line);
}

/* The stage whose slots are busy longest, or the only one. */
static const weir_total *find_busiest(const screen *s)
{
    const weir_total_list *stages = &s->totals->of[WEIR_SUBJECT_STAGE];
    const weir_total *busiest = find_decode(s);
    for (size_t i = 0; i < stages->count && !find_decode(s); i++)
        if (!busiest || stages->all[i].metrics.task.busy_ns > busiest->metrics.task.busy_ns)
            busiest = &stages->all[i];
    return busiest;
}

static void put_times(const screen *s)
{
    static const char *const measures[][2] = { { "median", "p50_time" },
                                               { "p99", "p99_time" },
                                               { "longest", "max_time" } };
    const weir_total *stage = find_busiest(s);
    char name[MAX_LINE] = "file", figure[WEIR_FORMAT_BYTES];
    const char *between = ": ";
    if (isnan(value_of(stage, "ave_time")))
        return;
    bool is_file = stage == find_decode(s) && has_files(s);
    if (!is_file)
        copy_short_name(name, stage);
    fprintf(s->out, is_file ? "  one %s" : "  one task of %s", name);
    if (isnan(value_of(stage, "p50_time"))) {
        tty_format_time(figure, value_of(stage, "ave_time"));
        fprintf(s->out, ": average %s", figure);
    } else
        for (size_t i = 0; i < 3; i++)
            if (!isnan(value_of(stage, measures[i][1]))) {
                tty_format_time(figure, value_of(stage, measures[i][1]));
                fprintf(s->out, "%s%s %s", between, measures[i][0], figure);
                between = ", ";
            }
    fputs("\n", s->out);
}

static void put_helps(const screen *s, const weir_verdict *v)
{
    char text[MAX_LINE], gain[80], change[MAX_LINE];
    int count = 0;
    for (size_t i = 0; i < v->num_advice && count < MOST_HELPS; i++) {
        const weir_verdict_advice *a = &v->advice[i];
        if (a->changes_job || (a->is_measured && !(a->low > 1)))
            continue;
        gain[0] = '\0';
        if (!isnan(a->gain) && a->high - a->low < 0.05)
            snprintf(gain, sizeof gain, " (%.1fx)", a->gain);
        else if (!isnan(a->gain))
            snprintf(gain, sizeof gain, " (%.1fx to %.1fx)", a->low, a->high);
        weir__text_escape(a->change, change, sizeof change);
        snprintf(text, sizeof text, "%.1500s%s%.200s%s", change, *a->options ? ": " : "", a->options, gain);
        put_filled(s, s->bold, count++ == 0 ? "HELPS" : "", 7, text);
    }
    if (count == 0 && *v->missing) {
        weir__text_escape(v->missing, text, sizeof text);
        put_filled(s, s->bold, "TO FIND OUT  ", 13, text);
    }
}

static void put_sentence(const screen *s, const char *heading, const char *sentence, const char *more)
{
    char text[MAX_LINE], harmless[MAX_LINE];
    weir__text_escape(sentence, harmless, sizeof harmless);
    snprintf(text, sizeof text, "%.1900s%.100s", harmless, more);
    put_filled(s, s->bold, heading, 7, text);
}

static int put_limit(const screen *s, weir_error *error)
{
    weir_verdict *v;
    char certainty[64] = "";
    if (s->filter->name)
        return WEIR_OK;
    int status = weir_verdict_explain(s->reader, s->filter, &v, error);
    if (status != WEIR_OK)
        return status;
    bool is_known = v->kind != WEIR_VERDICT_UNKNOWN;
    if (is_known || v->items_per_s > 0) {
        if (is_known && v->confidence < 0.005)
            snprintf(certainty, sizeof certainty, " (%s: hardly an item was delivered)", weir_verdict_certainty(v));
        else if (is_known)
            snprintf(certainty, sizeof certainty, " (%s, %.0f %%)", weir_verdict_certainty(v), 100 * v->confidence);
        fputc('\n', s->out);
        put_sentence(s, "LIMIT", v->sentence, certainty);
        if (v->other_kind != WEIR_VERDICT_UNKNOWN)
            put_sentence(s, v->changed_unix_ns ? "AND" : "OR", v->other_sentence, "");
        put_helps(s, v);
    }
    weir_verdict_free(v);
    return WEIR_OK;
}

static void put_bar(const screen *s, double share, size_t width)
{
    bool has_utf8 = tty_has_utf8();
    size_t filled = (size_t)lround(fmin(fmax(share, 0), 1) * (double)width);
    for (size_t i = 0; i < width; i++)
        fputs(i < filled ? (has_utf8 ? "█" : "#") : has_utf8 ? "·" : ".", s->out);
}

/* "busy 20 %   waits for a thread 79 %": the longest waits that are at least a twentieth of the time */
static void format_shares(const weir_total *total, int most_waits, char text[MAX_LINE])
{
    static const char *const waits[][2] = {
        { "wait_in_share", "input" },
        { "wait_thread_share", "a thread" },
        { "wait_turn_share", "its turn" },
        { "wait_out_share", "room" },
    };
    size_t longest = 4,
           length = (size_t)snprintf(text, MAX_LINE, "busy %.0f %%", 100 * value_of(total, "busy_share"));
    for (int count = 0; count < most_waits; count++) {
        size_t next = 4;
        for (size_t i = 0; i < 4; i++)
            if (i != longest && value_of(total, waits[i][0]) >= 0.05 &&
                (next == 4 || value_of(total, waits[i][0]) > value_of(total, waits[next][0])))
                next = i;
        if (next < 4)
            length +=
                (size_t)snprintf(text + length, MAX_LINE - length, "%s %s %.0f %%", count ? "," : "   waits for",
                                 waits[next][1], 100 * value_of(total, waits[next][0]));
        longest = next;
    }
}

/* The columns of a line of a stage without its bar; *widest becomes those of the names. */
static size_t columns_used(const screen *s, int most_waits, size_t *widest)
{
    const weir_total_list *stages = &s->totals->of[WEIR_SUBJECT_STAGE];
    char name[MAX_LINE], text[MAX_LINE];
    size_t longest = 0;
    *widest = 10;
    for (size_t i = 0; i < stages->count; i++) {
        copy_short_name(name, &stages->all[i]);
        format_shares(&stages->all[i], most_waits, text);
        size_t width = weir__text_columns(name, strlen(name));
        *widest = width > *widest && width <= 24 ? width : *widest;
        longest = strlen(text) > longest ? strlen(text) : longest;
    }
    return *widest + 4 + longest;
}

/* The bars have one length: what the longest line leaves, if need be with one wait of each stage. */
static void put_stages(const screen *s)
{
    const weir_total_list *stages = &s->totals->of[WEIR_SUBJECT_STAGE];
    char name[MAX_LINE], text[MAX_LINE];
    size_t widest, num_shown = 0;
    int most_waits = columns_used(s, 2, &widest) + MIN_BAR <= s->width ? 2 : 1;
    size_t used = columns_used(s, most_waits, &widest);
    size_t bar = s->width < used + MIN_BAR ? MIN_BAR : s->width - used > MAX_BAR ? MAX_BAR : s->width - used;
    fputc('\n', s->out);
    for (size_t i = 0; i < stages->count && num_shown < MOST_STAGES; i++) {
        const weir_total *total = &stages->all[i];
        if (isnan(value_of(total, "busy_share")))
            continue;
        copy_short_name(name, total);
        format_shares(total, most_waits, text);
        size_t width = weir__text_columns(name, strlen(name));
        fprintf(s->out, "%s%*s", name, (int)(width < widest ? widest - width + 2 : 2), "");
        put_bar(s, value_of(total, "busy_share"), bar);
        fprintf(s->out, "  %s\n", text);
        num_shown++;
    }
    if (stages->count > num_shown && num_shown == MOST_STAGES)
        fprintf(s->out, "and %zu more stages\n", stages->count - num_shown);
}

static void put_queues(const screen *s)
{
    const weir_total_list *queues = &s->totals->of[WEIR_SUBJECT_QUEUE];
    char line[MAX_LINE] = "", name[MAX_LINE];
    for (size_t i = 0; i < queues->count; i++) {
        double share = value_of(&queues->all[i], "occupancy_rate");
        size_t length = strlen(line);
        copy_short_name(name, &queues->all[i]);
        if (!isnan(share))
            snprintf(line + length, sizeof line - length, "%s%.200s %.0f %%%s", length ? ",  " : "", name,
                     100 * share, length ? "" : " occupied");
    }
    if (*line)
        put_filled(s, "", "queues", 12, line);
}

/* -- failures */

enum { COUNT, WHOLE, NUM_REASONS, STATUS, MESSAGE, FIRST, LAST };

/* A label without the folder that all labels have, or NULL if it is empty. */
static const char *in_folder(const screen *s, const char *label)
{
    size_t length = s->folder ? strlen(s->folder) : 0;
    return *label ? label + (strncmp(label, s->folder ? s->folder : "", length) == 0 ? length : 0) : NULL;
}

/* "a.mp4, b.mp4 and 7 more", each whole in its line if they do not fit into one */
static void put_labels(const screen *s, const weir_row *row, int64_t count)
{
    const char *first = in_folder(s, weir_row_text(row, FIRST)), *last = in_folder(s, weir_row_text(row, LAST));
    char one[MAX_LINE], other[MAX_LINE] = "", more[40] = "";
    if (!first)
        return;
    weir__text_escape(first, one, sizeof one);
    if (count > 1)
        weir__text_escape(last, other, sizeof other);
    if (count > 2)
        snprintf(more, sizeof more, " and %" PRId64 " more", count - 2);
    size_t width =
        s->indent + weir__text_columns(one, strlen(one)) + weir__text_columns(other, strlen(other)) + strlen(more);
    fprintf(s->out, "%*s%s%s", (int)s->indent, "", one, count > 1 ? "," : "\n");
    if (count > 1)
        fprintf(s->out, "%s%*s%s%s\n", width + 2 > s->width ? "\n" : "", width + 2 > s->width ? (int)s->indent : 1,
                "", other, more);
}

static int put_reason(void *self, const weir_row *row, weir_error *error)
{
    screen *s = self;
    (void)error;
    int64_t count = weir_row_int(row, COUNT), num_reasons = weir_row_int(row, NUM_REASONS);
    const char *message = weir_row_text(row, MESSAGE);
    char heading[64], text[MAX_LINE], harmless[MAX_LINE];
    snprintf(heading, sizeof heading, "FAILED %" PRId64 "   ", weir_row_int(row, WHOLE));
    s->indent = strlen(heading);
    fputs(s->num_reasons == 0 ? "\n" : "", s->out);
    weir__text_escape(*message ? message : weir_status_text((int)weir_row_int(row, STATUS)), harmless,
                      sizeof harmless);
    snprintf(text, sizeof text, "%.1900s (%" PRId64 ")", harmless, count);
    put_filled(s, s->red, s->num_reasons++ == 0 ? heading : "", s->indent, text);
    put_labels(s, row, count);
    if (s->num_reasons == MOST_REASONS && num_reasons > MOST_REASONS)
        fprintf(s->out, "%*sand %" PRId64 " other reasons (see weir failures)\n", (int)s->indent, "",
                num_reasons - MOST_REASONS);
    return WEIR_OK;
}

static int put_failures(screen *s, weir_error *error)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "SELECT count(*), sum(count(*)) OVER (), count(*) OVER (), status, message, min(label), max(label) "
             "FROM failures GROUP BY status, library_code, weir_reason(message, label) "
             "ORDER BY count(*) DESC, min(id) LIMIT %d",
             MOST_REASONS);
    return weir_reader_select(s->reader, s->filter, sql, NULL, put_reason, s, error);
}

static int put_end(const screen *s, const char *weir, weir_error *error)
{
    const char *path = weir_reader_path(s->reader);
    char *text;
    size_t size;
    FILE *out = memory_file_open(&text, &size);
    fputc('\n', out);
    int status = weir_summary_write_notes(out, s->reader, s->filter, s->totals, error);
    char *here = getcwd(NULL, 0);
    if (s->start && here && s->folder && *s->folder && *s->folder != '/' && strcmp(s->start, here) != 0) {
        fputs("Files are relative to ", out);
        weir__text_escape_to(out, s->start);
        fputs(".\n", out);
    }
    free(here);
    if (s->num_runs == 1 && !weir_reader_lacks(s->reader))
        fprintf(out, "Run %" PRId64 " in ", s->run_id);
    else
        fputs("In ", out);
    weir__text_escape_to(out, path);
    bool is_useless = s->num_reasons && s->num_done == 0;
    fprintf(out, ".\nMore: %s %s", weir, is_useless ? "failures" : "explain");
    if (strcmp(path, "pipeline_stats.db") != 0) {
        fputs(" --db ", out);
        option_print_word(out, path);
    }
    fprintf(out, is_useless ? "\n" : " (also: %sslowest, summary --full)\n", s->num_reasons ? "failures, " : "");
    memory_file_close(out);
    prose_put_lines(s->out, text, s->width);
    free(text);
    return status;
}

static int put_screen(screen *s, const char *weir, weir_error *error)
{
    put_headline(s);
    put_rates(s);
    put_times(s);
    int status = put_limit(s, error);
    put_stages(s);
    put_queues(s);
    if (status == WEIR_OK)
        status = put_failures(s, error);
    return status == WEIR_OK ? put_end(s, weir, error) : status;
}

int run_screen_print(weir_reader *reader, const weir_filter *filter, const weir_totals *totals, const char *weir,
                     weir_error *error)
{
    weir_totals own = { 0 };
    bool has_colours = tty_has_colours();
    char *text;
    size_t size;
    screen s = { .out = memory_file_open(&text, &size),
                 .reader = reader,
                 .filter = filter,
                 .totals = totals ? totals : &own,
                 .width = isatty(STDOUT_FILENO) && tty_width() ? (size_t)tty_width() : MAX_LINE,
                 .bold = has_colours ? "\033[1m" : "",
                 .red = has_colours ? "\033[31m" : "",
                 .normal = has_colours ? "\033[0m" : "" };
    weir_filter used = *filter;
    used.no_replay = !filter->phase;
    int status =
        totals ? WEIR_OK : weir_totals_read(reader, &used, &(weir_grouping){ .by = WEIR_BY_NAME }, &own, error);
    if (status == WEIR_OK)
        status = read_screen(&s, error);
    if (status == WEIR_OK)
        status = put_screen(&s, weir, error);
    memory_file_close(s.out);
    errno = 0;
    if (status == WEIR_OK && (fwrite(text, 1, size, stdout) != size || fflush(stdout) != 0))
        status = weir_error_set(error, WEIR_EIO, errno, "cannot print: %s", strerror(errno ? errno : EIO));
    weir_totals_free(&own);
    free(s.folder);
    free(s.start);
    free(text);
    return status;
}
