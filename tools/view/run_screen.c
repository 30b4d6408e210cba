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
#include "tools/cli/memory.h"
#include "tools/cli/options.h"
#include "tools/cli/prose.h"
#include "tools/cli/tty.h"
#include "tools/view/run_lines.h"

enum { MOST_STAGES = 5, MOST_REASONS = 3, MOST_HELPS = 2, MAX_LINE = RUN_LINE_BYTES };

typedef struct screen {
    run_lines lines;
    int num_reasons; /* printed so far */
    size_t indent;   /* of reasons and their labels */
} screen;

/* " (2.0x +/- 0.2 if …)", or nothing */
static void write_gain(const weir_verdict_advice *a, char *text, size_t size)
{
    *text = '\0';
    if (!isnan(a->error))
        snprintf(text, size, " (%.1fx +/- %.1f%s%s)", a->gain, a->gain * a->error, *a->assumes ? " if " : "",
                 a->assumes);
    else if (!isnan(a->gain) && a->high - a->low < 0.05)
        snprintf(text, size, " (%.1fx)", a->gain);
    else if (!isnan(a->gain))
        snprintf(text, size, " (%.1fx to %.1fx)", a->low, a->high);
}

static void put_helps(const run_lines *s, const weir_verdict *v)
{
    char text[MAX_LINE], gain[512], change[MAX_LINE];
    int count = 0;
    for (size_t i = 0; i < v->num_advice && count < MOST_HELPS; i++) {
        const weir_verdict_advice *a = &v->advice[i];
        if (a->changes_job || (a->is_measured && !(a->low > 1)))
            continue;
        write_gain(a, gain, sizeof gain);
        weir__text_escape(a->change, change, sizeof change);
        snprintf(text, sizeof text, "%.1200s%s%.200s%s", change, *a->options ? ": " : "", a->options, gain);
        run_put_filled(s, s->bold, count++ == 0 ? "HELPS" : "", 7, text);
    }
    if (count == 0 && *v->missing) {
        weir__text_escape(v->missing, text, sizeof text);
        run_put_filled(s, s->bold, "TO FIND OUT  ", 13, text);
    }
}

static int put_limit(const run_lines *s, weir_error *error)
{
    weir_verdict *v;
    if (s->filter->name)
        return WEIR_OK;
    int status = weir_verdict_explain(s->recording, s->filter, &v, error);
    if (status != WEIR_OK)
        return status;
    if (run_put_limit(s, v))
        put_helps(s, v);
    weir_verdict_free(v);
    return WEIR_OK;
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
           length = (size_t)snprintf(text, MAX_LINE, "busy %.0f %%", 100 * run_value(total, "busy_share"));
    for (int count = 0; count < most_waits; count++) {
        size_t next = 4;
        for (size_t i = 0; i < 4; i++)
            if (i != longest && run_value(total, waits[i][0]) >= 0.05 &&
                (next == 4 || run_value(total, waits[i][0]) > run_value(total, waits[next][0])))
                next = i;
        if (next < 4)
            length +=
                (size_t)snprintf(text + length, MAX_LINE - length, "%s %s %.0f %%", count ? "," : "   waits for",
                                 waits[next][1], 100 * run_value(total, waits[next][0]));
        longest = next;
    }
}

/* The columns of a line of a stage without its bar; *widest becomes those of the names. */
static size_t columns_used(const run_lines *s, int most_waits, size_t *widest)
{
    const weir_total_list *stages = &s->totals->of[WEIR_SUBJECT_STAGE];
    char name[MAX_LINE], text[MAX_LINE];
    size_t longest = 0;
    *widest = 10;
    for (size_t i = 0; i < stages->count; i++) {
        run_short_name(name, &stages->all[i]);
        format_shares(&stages->all[i], most_waits, text);
        size_t width = weir__text_columns(name, strlen(name));
        *widest = width > *widest && width <= 24 ? width : *widest;
        longest = strlen(text) > longest ? strlen(text) : longest;
    }
    return *widest + 4 + longest;
}

/* The bars have one length: what the longest line leaves, if need be with one wait of each stage. */
static void put_stages(const run_lines *s)
{
    const weir_total_list *stages = &s->totals->of[WEIR_SUBJECT_STAGE];
    char name[MAX_LINE], text[MAX_LINE];
    size_t widest, num_shown = 0;
    int most_waits = columns_used(s, 2, &widest) + RUN_BAR_MIN <= s->width ? 2 : 1;
    size_t used = columns_used(s, most_waits, &widest);
    size_t bar = s->width < used + RUN_BAR_MIN   ? RUN_BAR_MIN
                 : s->width - used > RUN_BAR_MAX ? RUN_BAR_MAX
                                                 : s->width - used;
    fputc('\n', s->out);
    for (size_t i = 0; i < stages->count && num_shown < MOST_STAGES; i++) {
        const weir_total *total = &stages->all[i];
        if (isnan(run_value(total, "busy_share")))
            continue;
        run_short_name(name, total);
        format_shares(total, most_waits, text);
        size_t width = weir__text_columns(name, strlen(name));
        fprintf(s->out, "%s%*s", name, (int)(width < widest ? widest - width + 2 : 2), "");
        run_put_bar(s->out, run_value(total, "busy_share"), bar);
        fprintf(s->out, "  %s\n", text);
        num_shown++;
    }
    if (stages->count > num_shown && num_shown == MOST_STAGES)
        fprintf(s->out, "and %zu more stages\n", stages->count - num_shown);
}

static void put_queues(const run_lines *s)
{
    const weir_total_list *queues = &s->totals->of[WEIR_SUBJECT_QUEUE];
    char line[MAX_LINE] = "", name[MAX_LINE];
    for (size_t i = 0; i < queues->count; i++) {
        double share = run_value(&queues->all[i], "occupancy_rate");
        size_t length = strlen(line);
        run_short_name(name, &queues->all[i]);
        if (!isnan(share))
            snprintf(line + length, sizeof line - length, "%s%.200s %.0f %%%s", length ? ",  " : "", name,
                     100 * share, length ? "" : " occupied");
    }
    if (*line)
        run_put_filled(s, "", "queues", 12, line);
}

/* -- failures */

enum { COUNT, WHOLE, NUM_REASONS, STATUS, MESSAGE, FIRST, LAST };

/* A label without the folder that all labels have, or NULL if it is empty. */
static const char *in_folder(const run_lines *s, const char *label)
{
    size_t length = s->folder ? strlen(s->folder) : 0;
    return *label ? label + (strncmp(label, s->folder ? s->folder : "", length) == 0 ? length : 0) : NULL;
}

/* "a.mp4, b.mp4 and 7 more", each whole in its line if they do not fit into one */
static void put_labels(const screen *s, const weir_row *row, int64_t count)
{
    const char *first = in_folder(&s->lines, weir_row_text(row, FIRST)),
               *last = in_folder(&s->lines, weir_row_text(row, LAST));
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
    fprintf(s->lines.out, "%*s%s%s", (int)s->indent, "", one, count > 1 ? "," : "\n");
    if (count > 1)
        fprintf(s->lines.out, "%s%*s%s%s\n", width + 2 > s->lines.width ? "\n" : "",
                width + 2 > s->lines.width ? (int)s->indent : 1, "", other, more);
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
    fputs(s->num_reasons == 0 ? "\n" : "", s->lines.out);
    weir__text_escape(*message ? message : weir_status_text((int)weir_row_int(row, STATUS)), harmless,
                      sizeof harmless);
    snprintf(text, sizeof text, "%.1900s (%" PRId64 ")", harmless, count);
    run_put_filled(&s->lines, s->lines.red, s->num_reasons++ == 0 ? heading : "", s->indent, text);
    put_labels(s, row, count);
    if (s->num_reasons == MOST_REASONS && num_reasons > MOST_REASONS)
        fprintf(s->lines.out, "%*sand %" PRId64 " other reasons (see weir failures)\n", (int)s->indent, "",
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
    return weir_recording_query(s->lines.recording, s->lines.filter, sql, NULL, put_reason, s, error);
}

static int put_end(const screen *s, const char *weir, weir_error *error)
{
    const char *path = weir_recording_path(s->lines.recording);
    char *text;
    size_t size;
    FILE *out = memory_file_open(&text, &size);
    fputc('\n', out);
    int status = weir_summary_write_notes(out, s->lines.recording, s->lines.filter, s->lines.totals, error);
    char *here = getcwd(NULL, 0);
    if (s->lines.start && here && s->lines.folder && *s->lines.folder && *s->lines.folder != '/' &&
        strcmp(s->lines.start, here) != 0) {
        fputs("Files are relative to ", out);
        weir__text_escape_to(out, s->lines.start);
        fputs(".\n", out);
    }
    free(here);
    if (s->lines.num_runs == 1 && !weir_recording_lacks(s->lines.recording))
        fprintf(out, "Run %" PRId64 " in ", s->lines.run_id);
    else
        fputs("In ", out);
    weir__text_escape_to(out, path);
    bool is_useless = s->num_reasons && s->lines.num_done == 0;
    fprintf(out, ".\nMore: %s %s", weir, is_useless ? "failures" : "explain");
    if (strcmp(path, "pipeline_stats.db") != 0) {
        fputs(" --db ", out);
        option_print_word(out, path);
    }
    fprintf(out, is_useless ? "\n" : " (also: %sslowest, summary --full)\n", s->num_reasons ? "failures, " : "");
    memory_file_close(out);
    prose_put_lines(s->lines.out, text, s->lines.width);
    free(text);
    return status;
}

static int put_screen(screen *s, const char *weir, weir_error *error)
{
    const run_lines *lines = &s->lines;
    run_put_headline(&s->lines);
    fputs("\n\n", lines->out);
    run_put_rates(lines);
    run_put_times(lines);
    int status = put_limit(lines, error);
    put_stages(lines);
    put_queues(lines);
    if (status == WEIR_OK)
        status = put_failures(s, error);
    return status == WEIR_OK ? put_end(s, weir, error) : status;
}

int run_screen_print(weir_recording *recording, const weir_filter *filter, const weir_totals *totals,
                     const char *weir, weir_error *error)
{
    weir_totals own = { 0 };
    char *text;
    size_t size;
    screen s = { .lines = run_lines_on(memory_file_open(&text, &size), recording, filter) };
    s.lines.totals = totals ? totals : &own;
    s.lines.width = isatty(STDOUT_FILENO) ? s.lines.width : MAX_LINE;
    weir_filter used = *filter;
    used.no_replay = !filter->phase;
    int status =
        totals ? WEIR_OK : weir_totals_read(recording, &used, &(weir_grouping){ .by = WEIR_BY_NAME }, &own, error);
    if (status == WEIR_OK)
        status = run_lines_read(&s.lines, error);
    if (status == WEIR_OK)
        status = put_screen(&s, weir, error);
    memory_file_close(s.lines.out);
    errno = 0;
    if (status == WEIR_OK && (fwrite(text, 1, size, stdout) != size || fflush(stdout) != 0))
        status = weir_error_set(error, WEIR_EIO, errno, "cannot print: %s", strerror(errno ? errno : EIO));
    weir_totals_free(&own);
    run_lines_free(&s.lines);
    free(text);
    return status;
}
