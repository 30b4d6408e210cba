/*
 * weir compare: two recordings side by side, and where their difference comes from.
 *
 * What limits a pipeline is read as docs/reading-the-figures.md says: the stage whose slots are hardly ever free, or, if
 * all have time, who is before or behind them. A stage that is the limit delivers
 *
 *     slots × share of the time they are busy / time a task
 *
 * so its part in the difference is the sum of the logarithms of these three.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_table.h"
#include "format.h"
#include "lap_comparison.h"

static struct settings {
    int64_t run_b; /* 0 = as --run says */
    bool all;
} settings;

static bool parse_run_b(const option_row *row, const char *text, void *value)
{
    (void)row;
    uint64_t number;
    if (strcmp(text, "last") == 0)
        *(int64_t *)value = WEIR_LAST_RUN;
    else if (option_parse_number(text, INT64_MAX, &number) && number > 0)
        *(int64_t *)value = (int64_t)number;
    else
        return false;
    return true;
}

static const option_kind run_b_kind = { parse_run_b, "the number of a run, or last", NULL };

#define AT(field) offsetof(struct settings, field)

static const option_row rows[] = {
    { .name = "run-b",
      .argument = "N|last",
      .kind = &run_b_kind,
      .offset = AT(run_b),
      .help = "another run for B than for A, so that both may be in one database" },
    { .name = "all",
      .kind = &option_flag,
      .offset = AT(all),
      .help = "as text, too, show the figures that do not clearly differ" },
    { 0 },
};

/* -- what limits */

typedef enum limit_kind {
    LIMIT_NOTHING,
    LIMIT_STAGE,
    LIMIT_THREADS,
    LIMIT_SOURCE,
    LIMIT_SINK,
    LIMIT_ORDER
} limit_kind;

typedef struct limit {
    limit_kind kind;
    const contrast_pair *stage; /* LIMIT_STAGE, LIMIT_THREADS */
    double share;               /* of the slots' time */
} limit;

/* Slots that are taken for most of the time: others have little to give them or to take from them. */
#define TAKEN_SHARE 0.6

/* Slots that wait for a thread so long, for each second that they are busy, would only wait more if there were more. */
#define STARVED_RATIO 0.25

/* Rounded as it is printed: what is less than nothing only further behind the point is nothing. */
static double tenths(double figure)
{
    return round(10 * figure) / 10 + 0.0;
}

static double figure(const contrast_pair *pair, int side, contrast_figure which)
{
    return contrast_value(&pair->sides[side], which);
}

/* The last queue's. */
static const contrast_pair *find_sink(const contrast *c)
{
    const contrast_pair *sink = NULL;
    for (size_t i = 0; i < c->num_pairs; i++)
        if (c->pairs[i].is_queue)
            sink = &c->pairs[i];
    return sink;
}

/* The stage whose slots are taken most; *first and *last are those nearest the source and the sink. */
static const contrast_pair *find_stages(const contrast *c, int side, const contrast_pair **first,
                                        const contrast_pair **last)
{
    const contrast_pair *most = NULL;
    double most_share = -1;
    *first = *last = NULL;
    for (size_t i = 0; i < c->num_pairs; i++) {
        const contrast_pair *stage = &c->pairs[i];
        double share = figure(stage, side, FIGURE_BUSY) + figure(stage, side, FIGURE_WAIT_THREAD);
        if (stage->is_queue || isnan(share))
            continue;
        *first = *first ? *first : stage;
        *last = stage;
        if (share > most_share) {
            most = stage;
            most_share = share;
        }
    }
    return most;
}

static limit limit_without_stages(const contrast_pair *sink, int side)
{
    double occupied = sink ? figure(sink, side, FIGURE_OCCUPIED) : NAN;
    if (isnan(occupied))
        return (limit){ .kind = LIMIT_NOTHING };
    return (limit){ .kind = occupied > 0.5 ? LIMIT_SINK : LIMIT_SOURCE };
}

static limit find_limit(const contrast *c, int side)
{
    const contrast_pair *first, *last, *sink = find_sink(c);
    const contrast_pair *most = find_stages(c, side, &first, &last);
    if (!most)
        return limit_without_stages(sink, side);
    double busy = figure(most, side, FIGURE_BUSY), thread = figure(most, side, FIGURE_WAIT_THREAD);
    if (busy + thread >= TAKEN_SHARE && thread < STARVED_RATIO * busy)
        return (limit){ LIMIT_STAGE, most, busy };
    if (busy + thread >= TAKEN_SHARE)
        return (limit){ LIMIT_THREADS, most, thread };
    double in = figure(first, side, FIGURE_WAIT_IN), out = figure(last, side, FIGURE_WAIT_OUT);
    if (in >= out)
        return (limit){ LIMIT_SOURCE, NULL, in };
    bool has_room = sink && figure(sink, side, FIGURE_OCCUPIED) < 0.5;
    return (limit){ has_room ? LIMIT_ORDER : LIMIT_SINK, NULL, out };
}

static void describe_limit(const limit *l, int side, char *text, size_t size)
{
    const char *name = l->stage ? l->stage->sides[side].name : "";
    switch (l->kind) {
    case LIMIT_STAGE:
        snprintf(text, size, "%s (its slots are busy for %.0f%% of their time)", name, 100 * l->share);
        break;
    case LIMIT_THREADS:
        snprintf(text, size, "the threads (the slots of %s wait for one for %.0f%% of their time)", name,
                 100 * l->share);
        break;
    case LIMIT_SOURCE:
        snprintf(text, size, "the source (the first stage waits for input for %.0f%% of its slots' time)",
                 100 * l->share);
        break;
    case LIMIT_SINK:
        snprintf(text, size, "the consumer (the last stage waits for room for %.0f%% of its slots' time)",
                 100 * l->share);
        break;
    case LIMIT_ORDER:
        snprintf(text, size,
                 "the order of the input (results wait for their turn for %.0f%% of the slots' time, before an empty "
                 "queue)",
                 100 * l->share);
        break;
    case LIMIT_NOTHING: snprintf(text, size, "nothing that was recorded"); break;
    }
}

static const char *const limit_words[] = {
    [LIMIT_NOTHING] = "nothing", [LIMIT_STAGE] = "stage", [LIMIT_THREADS] = "threads",
    [LIMIT_SOURCE] = "source",   [LIMIT_SINK] = "sink",   [LIMIT_ORDER] = "order",
};

/* -- where the difference comes from: of each stage, in logarithms */

typedef struct effect {
    const contrast_pair *stage;
    double slots, busy, task; /* NAN = not known */
    double whole;
} effect;

/* Slots × seconds over seconds: how many there were on the average. */
static double slots_of(const contrast_side *side)
{
    const double *s = side->all.sums;
    return (s[SUM_BUSY] + s[SUM_WAIT_IN] + s[SUM_WAIT_THREAD] + s[SUM_WAIT_OUT]) / s[SUM_ELAPSED];
}

/* Of all tasks: failed ones keep the slots busy, too. */
static double time_per_task(const contrast_side *side)
{
    return side->all.sums[SUM_BUSY] / side->all.sums[SUM_COUNT];
}

static effect effect_of(const contrast_pair *stage)
{
    const contrast_side *a = &stage->sides[0], *b = &stage->sides[1];
    effect e = {
        .stage = stage,
        .slots = log(slots_of(b) / slots_of(a)),
        .busy = log(figure(stage, 1, FIGURE_BUSY) / figure(stage, 0, FIGURE_BUSY)),
        .task = log(time_per_task(a) / time_per_task(b)),
    };
    e.whole = e.slots + e.busy + e.task;
    return e;
}

/* -- sentences */

/* "12.3% more", "as many" */
static void describe_change(double change, char *text, size_t size, const char *more, const char *less)
{
    snprintf(text, size, "%.1f%% %s", 100 * fabs(change), change >= 0 ? more : less);
}

static void say_throughput(FILE *out, const contrast *c)
{
    const contrast_pair *sink = find_sink(c);
    if (!sink || !sink->sides[0].name || !sink->sides[1].name)
        return;
    contrast_difference d = contrast_compare(sink, FIGURE_RATE);
    char change[64], low[64], high[64];
    if (isnan(d.change)) {
        fprintf(out, "B delivers %.2f items a second, A %.2f.\n", d.b, d.a);
        return;
    }
    describe_change(d.change, change, sizeof change, "more", "fewer");
    fprintf(out, "B delivers %s items a second than A (%.2f, not %.2f", change, d.b, d.a);
    if (d.verdict == VERDICT_UNKNOWN)
        fputs("; there are too few laps to say how sure that is).\n", out);
    else {
        describe_change(d.low, low, sizeof low, "more", "fewer");
        describe_change(d.high, high, sizeof high, "more", "fewer");
        fprintf(out, "; with 95%% certainty between %s and %s)%s.\n", low, high,
                d.verdict == VERDICT_SAME ? ": no clear difference" : "");
    }
}

static void say_limits(FILE *out, const limit limits[2])
{
    char a[256], b[256];
    describe_limit(&limits[0], 0, a, sizeof a);
    describe_limit(&limits[1], 1, b, sizeof b);
    fprintf(out, "A is limited by ");
    weir_text_put(out, a);
    fprintf(out, ",\nB by ");
    weir_text_put(out, b);
    fputs(".\n", out);
}

/* The one of the three that explains most, of a stage that limits both. */
static void say_cause(FILE *out, const effect *e)
{
    const contrast_side *a = &e->stage->sides[0], *b = &e->stage->sides[1];
    char before[WEIR_FIGURE_BYTES], after[WEIR_FIGURE_BYTES];
    fputs("Most of what differs at ", out);
    weir_text_put(out, e->stage->key);
    if (fabs(e->task) >= fabs(e->slots) && fabs(e->task) >= fabs(e->busy)) {
        double cpu = log(figure(e->stage, 0, FIGURE_CPU) / figure(e->stage, 1, FIGURE_CPU));
        weir_text_format_time(before, time_per_task(a));
        weir_text_format_time(after, time_per_task(b));
        fprintf(out, " is the time of its tasks: %s, not %s", after, before);
        if (isfinite(cpu) && fabs(cpu) < 0.25 * fabs(e->task))
            fputs(", at the same CPU time: they wait, for a CPU or a disk, they do not compute", out);
    } else if (fabs(e->slots) >= fabs(e->busy))
        fprintf(out, " is the number of its slots: %.0f, not %.0f", slots_of(b), slots_of(a));
    else
        fprintf(out, " is how busy its slots are: %.0f%% of their time, not %.0f%%",
                100 * figure(e->stage, 1, FIGURE_BUSY), 100 * figure(e->stage, 0, FIGURE_BUSY));
    fputs(".\n", out);
}

/* What limits the slower of the two is what makes it slower. */
static void say_why(FILE *out, const contrast *c, const limit limits[2])
{
    static const char *const what[] = {
        [LIMIT_THREADS] = "too few threads for its slots",
        [LIMIT_SOURCE] = "its source: the stages have time",
        [LIMIT_SINK] = "its consumer: the stages have time",
        [LIMIT_ORDER] = "an item that holds up those behind it",
    };
    const contrast_pair *sink = find_sink(c);
    contrast_difference d = { .verdict = VERDICT_UNKNOWN };
    if (sink)
        d = contrast_compare(sink, FIGURE_RATE);
    if (d.verdict != VERDICT_BETTER && d.verdict != VERDICT_WORSE)
        return;
    int slower = d.verdict == VERDICT_WORSE;
    const limit *l = &limits[slower];
    bool is_in_stage = l->kind == LIMIT_STAGE || (l->kind == LIMIT_THREADS && limits[!slower].kind == LIMIT_THREADS);
    if (is_in_stage && l->stage->sides[!slower].name) {
        effect e = effect_of(l->stage);
        if (isfinite(e.whole))
            say_cause(out, &e);
    } else if (is_in_stage) {
        fprintf(out, "What makes %c the slower one is ", "AB"[slower]);
        weir_text_put(out, l->stage->sides[slower].name);
        fprintf(out, ", which %c does not have.\n", "BA"[slower]);
    } else if (l->kind > LIMIT_STAGE)
        fprintf(out, "What makes %c the slower one is %s.\n", "AB"[slower], what[l->kind]);
}

/* -- tables */

static const table_column figure_columns[] = {
    { "name", "name", TABLE_WORDS },  { "kind", NULL, TABLE_WORDS }, { "figure", "figure", TABLE_WORDS },
    { "a", NULL, TABLE_REAL },        { "b", NULL, TABLE_REAL },     { "change", NULL, TABLE_REAL },
    { "low", NULL, TABLE_REAL },      { "high", NULL, TABLE_REAL },  { "unit", NULL, TABLE_WORDS },
    { "verdict", NULL, TABLE_WORDS },
};

static const table_column text_columns[] = {
    { "name", "", TABLE_WORDS },    { "figure", "", TABLE_WORDS },       { "a", "A", TABLE_WORDS },
    { "b", "B", TABLE_WORDS },      { "change", "change", TABLE_WORDS }, { "range", "95% from … to", TABLE_WORDS },
    { "verdict", "", TABLE_WORDS },
};

static const char *const verdict_words[] = { "", "same", "different", "better", "worse" };

static const char *const figure_titles[NUM_FIGURES] = {
    [FIGURE_RATE] = "per second",
    [FIGURE_AVE] = "average time",
    [FIGURE_P50] = "p50",
    [FIGURE_P90] = "p90",
    [FIGURE_P99] = "p99",
    [FIGURE_CPU] = "CPU time a task",
    [FIGURE_FAILED] = "failed",
    [FIGURE_BUSY] = "busy",
    [FIGURE_WAIT_IN] = "waiting for input",
    [FIGURE_WAIT_THREAD] = "waiting for a thread",
    [FIGURE_WAIT_OUT] = "waiting for room",
    [FIGURE_PUT] = "put time",
    [FIGURE_GET] = "get time",
    [FIGURE_OCCUPIED] = "occupied",
};

static void put_value(table *t, contrast_figure which, double value)
{
    char text[WEIR_FIGURE_BYTES] = "";
    if (isnan(value))
        text[0] = '\0';
    else if (contrast_is_time(which))
        weir_text_format_time(text, value);
    else if (contrast_is_share(which))
        snprintf(text, sizeof text, "%.1f%%", 100 * value);
    else
        snprintf(text, sizeof text, "%.2f", value);
    table_words(t, text);
}

static void put_text_row(table *t, const contrast_pair *pair, contrast_figure which, const contrast_difference *d,
                         bool with_name)
{
    const char *unit = contrast_is_share(which) ? " points" : "%";
    char change[64] = "", range[96] = "";
    if (!isnan(d->change))
        snprintf(change, sizeof change, "%+.1f%s", tenths(100 * d->change), unit);
    if (d->verdict != VERDICT_UNKNOWN)
        snprintf(range, sizeof range, "%+.1f to %+.1f", tenths(100 * d->low), tenths(100 * d->high));
    table_words(t, with_name ? pair->key : "");
    table_words(t, figure_titles[which]);
    put_value(t, which, d->a);
    put_value(t, which, d->b);
    table_words(t, change);
    table_words(t, range);
    table_words(t, d->verdict == VERDICT_SAME ? "" : verdict_words[d->verdict]);
}

static void put_row(table *t, const contrast_pair *pair, contrast_figure which, const contrast_difference *d)
{
    char name[40];
    snprintf(name, sizeof name, "%s",
             which != FIGURE_RATE ? contrast_figure_names[which]
             : pair->is_queue     ? "items_per_s"
                                  : "tasks_per_s");
    table_words(t, pair->key);
    table_words(t, pair->is_queue ? "queue" : "stage");
    table_words(t, name);
    table_number(t, d->a);
    table_number(t, d->b);
    table_number(t, d->change);
    table_number(t, d->low);
    table_number(t, d->high);
    table_words(t, contrast_is_share(which) ? "points" : "relative");
    table_words(t, verdict_words[d->verdict]);
}

/* Returns how many rows were left out because nothing clearly differs. */
static size_t put_figures(const tool_call *call, const contrast *c)
{
    bool as_text = tool_format(call) == TABLE_TEXT;
    size_t num_left_out = 0;
    table *t = as_text ? table_begin(stdout, TABLE_TEXT, text_columns, sizeof text_columns / sizeof text_columns[0])
                       : table_begin(stdout, tool_format(call), figure_columns,
                                     sizeof figure_columns / sizeof figure_columns[0]);
    for (size_t i = 0; i < c->num_pairs; i++) {
        const contrast_pair *pair = &c->pairs[i];
        bool with_name = true;
        for (contrast_figure which = 0; which < NUM_FIGURES; which++) {
            if (!contrast_has_figure(pair, which) || (!pair->sides[0].name && !pair->sides[1].name))
                continue;
            contrast_difference d = contrast_compare(pair, which);
            bool differs = d.verdict != VERDICT_SAME && !(d.a == 0 && d.b == 0);
            if (!as_text)
                put_row(t, pair, which, &d);
            else if (which == FIGURE_RATE || settings.all || differs) {
                put_text_row(t, pair, which, &d, with_name);
                with_name = false;
            } else
                num_left_out++;
        }
    }
    table_end(t);
    return num_left_out;
}

static const table_column effect_columns[] = {
    { "name", "stage", TABLE_WORDS },
    { "slots", "slots", TABLE_WORDS },
    { "busy", "how busy they are", TABLE_WORDS },
    { "task", "time a task", TABLE_WORDS },
    { "whole", "together", TABLE_WORDS },
    { "limits", "limits", TABLE_WORDS },
};

static const table_column json_effect_columns[] = {
    { "name", NULL, TABLE_WORDS }, { "slots", NULL, TABLE_REAL }, { "busy", NULL, TABLE_REAL },
    { "task", NULL, TABLE_REAL },  { "whole", NULL, TABLE_REAL }, { "limits", NULL, TABLE_WORDS },
};

static void put_effect_cell(table *t, bool as_text, double logarithm)
{
    char text[32] = "";
    if (!as_text) {
        table_number(t, expm1(logarithm));
        return;
    }
    if (isfinite(logarithm))
        snprintf(text, sizeof text, "%+.1f%%", tenths(100 * expm1(logarithm)));
    table_words(t, text);
}

static void put_effects(bool as_text, const contrast *c, const limit limits[2])
{
    table *t = as_text
                   ? table_begin(stdout, TABLE_TEXT, effect_columns, sizeof effect_columns / sizeof effect_columns[0])
                   : table_begin(stdout, TABLE_JSON, json_effect_columns,
                                 sizeof json_effect_columns / sizeof json_effect_columns[0]);
    for (size_t i = 0; i < c->num_pairs; i++) {
        const contrast_pair *stage = &c->pairs[i];
        if (stage->is_queue || !stage->sides[0].name || !stage->sides[1].name)
            continue;
        effect e = effect_of(stage);
        bool limits_a = limits[0].stage == stage, limits_b = limits[1].stage == stage;
        table_words(t, stage->key);
        put_effect_cell(t, as_text, e.slots);
        put_effect_cell(t, as_text, e.busy);
        put_effect_cell(t, as_text, e.task);
        put_effect_cell(t, as_text, e.whole);
        table_words(t, limits_a && limits_b ? "A and B" : limits_a ? "A" : limits_b ? "B" : "");
    }
    table_end(t);
}

/* -- all of it */

static void put_text(const tool_call *call, const contrast *c, const limit limits[2])
{
    printf("A: %s\nB: %s\n\n", call->words[0], call->words[1]);
    say_throughput(stdout, c);
    say_limits(stdout, limits);
    say_why(stdout, c, limits);
    putchar('\n');
    size_t num_left_out = put_figures(call, c);
    if (num_left_out)
        printf("(%zu more figures do not clearly differ; --all shows them)\n", num_left_out);
    puts("\nWhat each stage could deliver, by what differs (slots × share of the time busy / time a task):");
    put_effects(true, c, limits);
}

static void put_json_limit(const limit *l, int side)
{
    printf("{\"kind\": \"%s\", \"stage\": ", limit_words[l->kind]);
    if (l->stage)
        json_string(stdout, l->stage->sides[side].name);
    else
        fputs("null", stdout);
    fputs(", \"share\": ", stdout);
    json_number(stdout, l->share);
    putchar('}');
}

static void put_json(const tool_call *call, const contrast *c, const limit limits[2])
{
    fputs("{\"a\": ", stdout);
    json_string(stdout, call->words[0]);
    fputs(", \"b\": ", stdout);
    json_string(stdout, call->words[1]);
    fputs(", \"limit_a\": ", stdout);
    put_json_limit(&limits[0], 0);
    fputs(", \"limit_b\": ", stdout);
    put_json_limit(&limits[1], 1);
    fputs(", \"figures\": ", stdout);
    put_figures(call, c);
    fputs(", \"effects\": ", stdout);
    put_effects(false, c, limits);
    puts("}");
}

static int read_side(const tool_call *call, int side, contrast *c)
{
    weir_reader *reader;
    weir_filter filter;
    weir_error error = { 0 };
    int exit_status = tool_open(call, call->words[side], &reader, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    if (side == 1 && settings.run_b)
        filter.run_id = settings.run_b;
    int status = contrast_read(c, side, reader, &filter, &error);
    weir_reader_close(reader);
    return status == WEIR_OK ? TOOL_DONE : tool_fail(call, &error);
}

static bool has_laps(const contrast *c, int side)
{
    for (size_t i = 0; i < c->num_pairs; i++)
        if (c->pairs[i].sides[side].name)
            return true;
    return false;
}

static int put_contrast(const tool_call *call, const contrast *c)
{
    for (int side = 0; side < 2; side++)
        if (!has_laps(c, side))
            return tool_nothing(call, "%s: " TOOL_NO_LAPS, call->words[side]);
    limit limits[2] = { find_limit(c, 0), find_limit(c, 1) };
    switch (tool_format(call)) {
    case TABLE_TEXT: put_text(call, c, limits); break;
    case TABLE_JSON: put_json(call, c, limits); break;
    case TABLE_CSV: put_figures(call, c); break;
    }
    return tool_finish(call);
}

static int run(tool_call *call)
{
    contrast c = { .num_pairs = 0 };
    int exit_status = read_side(call, 0, &c);
    if (exit_status == TOOL_DONE)
        exit_status = read_side(call, 1, &c);
    if (exit_status == TOOL_DONE)
        exit_status = put_contrast(call, &c);
    contrast_free(&c);
    return exit_status;
}

const tool_command tool_compare = {
    .name = "compare",
    .words = "A.db B.db",
    .min_words = 2,
    .summary = "two runs side by side, and where their difference comes from",
    .help =
        "Compares the last run of B with the last run of A (or those that --run and --run-b say): throughput, times "
        "and waits of each stage and queue. Stages are the same if their names are, but for the number of slots and, "
        "where one pipeline has more stages than the other, for their place.\n\n"
        "change is B against A, in percent of A, or, for shares, in points. The range holds the true change with 95 "
        "% certainty, as far as the laps tell: from how much the figure differs from lap to lap (a jackknife over up "
        "to 64 batches of laps, Student's t with Welch's degrees of freedom). It knows nothing of what differs "
        "between one run and the next, such as other work on the machine: several runs of each, with --run all, do. "
        "With fewer than four laps there is no range. better, worse and different stand where the range does not "
        "hold 0.\n\n"
        "What limits each run is read from where its slots spend their time. The last table says how much more or "
        "less each stage could deliver, and from what: only that of a stage that limits shows in the throughput.",
    .examples = "weir compare before.db after.db\n"
                "weir compare runs.db runs.db --run 3 --run-b 4\n"
                "weir compare before.db after.db --since +1m --name decode --json\n",
    .shared = TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
