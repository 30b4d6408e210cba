/*
 * weir compare: compares two recordings and explains the difference.
 *
 * What limits each of the two is the verdict on its steady part (weir/verdict.h). A stage delivers
 *
 *     slots × busy share / time per task
 *
 * items per second, so the logarithm of the difference is the sum of the differences of the three logarithms.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/verdict.h>

#include "command_table.h"
#include "format.h"
#include "lap_comparison.h"
#include "memory.h"
#include "metric_table.h"
#include "pair_verdict.h"
#include "prose.h"
#include "setting_changes.h"
#include "tty.h"

static struct settings {
    int64_t run_b; /* 0 = as --run */
    bool all;
} settings;

static bool parse_run_b(const char *text, void *value)
{
    uint64_t number;
    if (strcmp(text, "last") == 0)
        *(int64_t *)value = WEIR_LAST_RUN;
    else if (option_parse_number(text, INT64_MAX, &number) && number > 0)
        *(int64_t *)value = (int64_t)number;
    else
        return false;
    return true;
}

static const option_kind run_b_kind = { .parse = parse_run_b, .wanted = "the number of a run, or last" };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("run-b", run_b, run_b_kind), .argument = "N|last",
      .help = "the run of B, if it is another one than --run; A and B may then be the same database" },
    { ROW("all", all, option_flag),
      .help = "also show the metrics that do not clearly differ (without --json or --csv they are left out)" },
    { 0 },
};

/* One of the two runs. */
typedef struct compared {
    int64_t run_id; /* 0 = several */
    weir_verdict *verdict;
    char *sink_queue; /* NULL = none */
} compared;

/* The queue that the consumer takes from, in both. */
static const comparison_pair *find_sink(const lap_comparison *c, const compared sides[2])
{
    return comparison_find(c, 0, sides[0].sink_queue);
}

#define CLEAR_MOVE 0.05 /* in logarithms */

/* -- causes of the difference: for each stage, in logarithms */

typedef struct effect {
    const comparison_pair *stage;
    double slots, busy, task; /* NAN = not known; a positive task is a longer time per task */
    double whole;             /* slots + busy - task */
} effect;

/* The average number of slots: slots × seconds / seconds. */
static double slots_of(const comparison_side *side)
{
    return (double)weir_slots_ns(&side->all.metrics.task) / (double)side->all.elapsed_ns;
}

/* Of all tasks: failed ones also keep slots busy. */
static double time_per_task(const comparison_side *side)
{
    return (double)side->all.metrics.task.busy_ns / 1e9 / (double)side->all.metrics.task.num_tasks;
}

static effect effect_of(const comparison_pair *stage)
{
    const comparison_side *a = &stage->sides[0], *b = &stage->sides[1];
    effect e = {
        .stage = stage,
        .slots = log(slots_of(b) / slots_of(a)),
        .busy = log(comparison_value(stage, 1, "busy_share") / comparison_value(stage, 0, "busy_share")),
        .task = log(time_per_task(b) / time_per_task(a)),
    };
    e.whole = e.slots + e.busy - e.task;
    return e;
}

/* -- sentences */

/* "12.3% more", "as many" */
static void describe_change(double change, char *text, size_t size, const char *more, const char *less)
{
    snprintf(text, size, "%.1f %% %s", 100 * fabs(change), change >= 0 ? more : less);
}

static void say_throughput(FILE *out, const lap_comparison *c, const compared sides[2])
{
    const comparison_pair *sink = find_sink(c, sides);
    if (!sink || !sink->sides[0].name || !sink->sides[1].name)
        return;
    comparison_difference d = comparison_compare_named(sink, "items_per_s");
    char change[64], low[64], high[64];
    if (isnan(d.change)) {
        fprintf(out, "B delivers %.2f items per second, A %.2f.\n", d.b, d.a);
        return;
    }
    describe_change(d.change, change, sizeof change, "more", "fewer");
    fprintf(out, "B delivers %s items per second than A (%.2f instead of %.2f", change, d.b, d.a);
    describe_change(d.low, low, sizeof low, "more", "fewer");
    describe_change(d.high, high, sizeof high, "more", "fewer");
    if (d.verdict == VERDICT_UNKNOWN)
        fputs("; too few laps for a confidence interval).\n", out);
    else
        fprintf(out, "; 95 %% confidence interval: %s to %s)%s.\n", low, high,
                d.verdict == VERDICT_SAME ? ": no clear difference" : "");
}

static bool is_same_limit(const lap_comparison *c, const compared sides[2])
{
    const weir_verdict *a = sides[0].verdict, *b = sides[1].verdict;
    const comparison_pair *stage = comparison_find(c, 0, a->name);
    return a->kind == b->kind && (stage ? stage == comparison_find(c, 1, b->name) : strcmp(a->name, b->name) == 0);
}

/* The largest of the three causes. */
static void say_cause(FILE *out, const effect *e)
{
    const comparison_side *a = &e->stage->sides[0], *b = &e->stage->sides[1];
    char before[WEIR_FORMAT_BYTES], after[WEIR_FORMAT_BYTES];
    const char *what = "busy share of its slots", *note = "";
    if (fabs(e->task) >= fabs(e->slots) && fabs(e->task) >= fabs(e->busy)) {
        double cpu = log(comparison_value(e->stage, 1, "cpu_time_per_task") /
                         comparison_value(e->stage, 0, "cpu_time_per_task"));
        what = "time per task";
        tty_format_time(before, time_per_task(a));
        tty_format_time(after, time_per_task(b));
        if (isfinite(cpu) && fabs(cpu) < 0.25 * fabs(e->task))
            note = ", with the same CPU time: the tasks wait for a CPU or a disk";
    } else if (fabs(e->slots) >= fabs(e->busy)) {
        what = "number of its slots";
        snprintf(before, sizeof before, "%.0f", slots_of(a));
        snprintf(after, sizeof after, "%.0f", slots_of(b));
    } else {
        snprintf(before, sizeof before, "%.0f %%", 100 * comparison_value(e->stage, 0, "busy_share"));
        snprintf(after, sizeof after, "%.0f %%", 100 * comparison_value(e->stage, 1, "busy_share"));
    }
    prose_line(out, "The largest change at %s is the %s: %s instead of %s%s.", e->stage->key, what, after, before,
               note);
}

/* The limit has moved because a stage that limits one of the two can deliver clearly more or less in B. Returns it;
   NULL = none. */
static const comparison_pair *say_move(FILE *out, const lap_comparison *c, const compared sides[2])
{
    for (int side = 0; side < 2; side++) {
        const comparison_pair *stage = comparison_find(c, side, sides[side].verdict->name);
        if (!stage || stage->subject != WEIR_SUBJECT_STAGE || !stage->sides[!side].name)
            continue;
        effect e = effect_of(stage);
        e.busy = 0; /* follows from what limits */
        e.whole = e.slots - e.task;
        if (!(side ? e.whole < -CLEAR_MOVE : e.whole > CLEAR_MOVE))
            continue;
        prose_line(out, "The limit has moved: %s with all its slots busy can deliver %.0f %% %s in B than in A.",
                   stage->key, 100 * fabs(expm1(e.whole)), side ? "less" : "more");
        say_cause(out, &e);
        return stage;
    }
    fputs("The limit has moved; weir explain shows the reasons for each.\n", out);
    return NULL;
}

/* Returns the stage whose change was told; NULL = none. */
static const comparison_pair *say_limits(FILE *out, const lap_comparison *c, const compared sides[2])
{
    for (int side = 0; side < 2; side++)
        prose_line(out, "Limit of %c: %s", "AB"[side], sides[side].verdict->sentence);
    if (sides[0].verdict->kind == WEIR_VERDICT_UNKNOWN || sides[1].verdict->kind == WEIR_VERDICT_UNKNOWN)
        return NULL;
    if (!is_same_limit(c, sides))
        return say_move(out, c, sides);
    fputs("The limit is the same.\n", out);
    return NULL;
}

/* The slower run is slower because of its limit: of what the named stage itself, not something around it, decides. */
static void say_why(FILE *out, const lap_comparison *c, const compared sides[2], const comparison_pair *told)
{
    const comparison_pair *sink = find_sink(c, sides);
    comparison_verdict verdict = sink ? comparison_compare_named(sink, "items_per_s").verdict : VERDICT_UNKNOWN;
    if (verdict != VERDICT_BETTER && verdict != VERDICT_WORSE)
        return;
    int slower = verdict == VERDICT_WORSE;
    const weir_verdict *l = sides[slower].verdict;
    const comparison_pair *stage = comparison_find(c, slower, l->name);
    bool both_threads = l->kind == WEIR_VERDICT_THREADS && sides[!slower].verdict->kind == WEIR_VERDICT_THREADS;
    bool is_in_stage =
        l->kind == WEIR_VERDICT_SLOTS || l->kind == WEIR_VERDICT_OUTSIDE || l->kind == WEIR_VERDICT_CPUS;
    if (stage && stage->subject == WEIR_SUBJECT_STAGE && !stage->sides[!slower].name)
        prose_line(out, "%c is slower because of %s, which %c does not have.", "AB"[slower],
                   stage -> sides[slower].name, "BA"[slower]);
    else if (stage && stage != told && (is_in_stage || both_threads)) {
        effect e = effect_of(stage);
        if (isfinite(e.whole))
            say_cause(out, &e);
    }
}

enum { EXPERIMENT_BYTES = 2000 };

/* -- tables */

static const table_column metric_columns[] = {
    { "name", NULL, TABLE_WORDS },      { "kind", NULL, TABLE_WORDS },  { "metric", NULL, TABLE_WORDS },
    { "a", NULL, TABLE_REAL },          { "b", NULL, TABLE_REAL },      { "change", NULL, TABLE_CHANGE },
    { "low", NULL, TABLE_CHANGE },      { "high", NULL, TABLE_CHANGE }, { "unit", NULL, TABLE_WORDS },
    { "verdict", NULL, TABLE_VERDICT },
};

/* For people: in a narrow terminal the range, in one piece, goes below. */
static const table_column text_columns[] = {
    { "", "", TABLE_WORDS },           { "", "", TABLE_WORDS },        { "", "A", TABLE_REAL },
    { "", "B", TABLE_REAL },           { "", "change", TABLE_CHANGE }, { "", "", TABLE_VERDICT },
    { "", "95 % range", TABLE_WORDS },
};

static const char *const verdict_words[] = { "", "same", "different", "better", "worse" };

static void put_row(table *t, bool as_text, bool with_name, const comparison_pair *pair, const weir_measure *measure,
                    const comparison_difference *d)
{
    bool is_share = comparison_is_share(measure);
    table_kind value = strcmp(measure->unit, "s") == 0 ? TABLE_TIME : is_share ? TABLE_SHARE : TABLE_REAL;
    table_kind change = is_share ? TABLE_POINTS : TABLE_CHANGE;
    table_words(t, with_name ? pair->key : "");
    if (!as_text)
        table_words(t, metric_subject_name(pair->subject));
    table_words(t, measure->name);
    table_number_as(t, d->a, value);
    table_number_as(t, d->b, value);
    table_number_as(t, d->change, change);
    if (as_text) {
        char range[80] = "";
        if (!isnan(d->low) && !isnan(d->high))
            snprintf(range, sizeof range, "%+.1f to %+.1f %s", 100 * d->low, 100 * d->high,
                     is_share ? "points" : "%");
        table_words(t, d->verdict == VERDICT_SAME ? "" : verdict_words[d->verdict]);
        table_words(t, range);
    } else {
        table_number_as(t, d->low, change);
        table_number_as(t, d->high, change);
        table_words(t, is_share ? "points" : "relative");
        table_words(t, verdict_words[d->verdict]);
    }
}

/* Returns how many rows were left out because nothing clearly differs. */
static size_t put_metrics(const tool_call *call, const lap_comparison *c)
{
    bool as_text = tool_format(call) == TABLE_TEXT;
    size_t num_left_out = 0;
    double most_chance = comparison_most_chance(c);
    table *t = as_text ? table_begin(stdout, TABLE_TEXT, TABLE_COLUMNS(text_columns))
                       : table_begin(stdout, tool_format(call), TABLE_COLUMNS(metric_columns));
    table_set_keys(t, 2); /* the node and the metric */
    for (size_t i = 0; i < c->num_pairs; i++) {
        const comparison_pair *pair = &c->pairs[i];
        bool with_name = true;
        size_t count;
        const weir_measure *measures = weir_subject_measures(pair->subject, &count);
        for (size_t j = 0; j < count; j++) {
            const weir_measure *measure = &measures[j];
            if (!comparison_has(measure) || (!pair->sides[0].name && !pair->sides[1].name))
                continue;
            comparison_difference d = comparison_compare(pair, measure);
            if (d.verdict >= VERDICT_DIFFERENT && d.chance > most_chance)
                d.verdict = VERDICT_SAME;
            bool is_nothing = d.a == 0 && d.b == 0, differs = d.verdict != VERDICT_SAME && !is_nothing;
            if (isnan(d.a) && isnan(d.b))
                continue;
            bool is_rate = strcmp(measure->unit, "1/s") == 0 && !is_nothing;
            if (!as_text || is_rate || settings.all || differs) {
                put_row(t, as_text, with_name, pair, measure, &d);
                with_name = !as_text;
            } else
                num_left_out++;
        }
    }
    table_end(t);
    return num_left_out;
}

/* -- all of it */

static int put_text(const tool_call *call, const lap_comparison *c, const compared sides[2])
{
    weir_error error = { 0 };
    prose text;
    char experiment[EXPERIMENT_BYTES];
    prose_open(&text);
    for (int side = 0; side < 2; side++)
        if (sides[side].run_id)
            prose_line(text.file, "%c: %s, run %" PRId64, "AB"[side], call -> words[side], sides[side].run_id);
        else
            prose_line(text.file, "%c: %s", "AB"[side], call -> words[side]);
    fputc('\n', text.file);
    setting_changes_say(text.file, c);
    say_throughput(text.file, c, sides);
    say_why(text.file, c, sides, say_limits(text.file, c, sides));
    if (pair_verdict_describe(c, find_sink(c, sides), experiment, sizeof experiment))
        prose_line(text.file, "%s", experiment);
    if (prose_end(&text, WEIR_OK, &error) != WEIR_OK)
        return tool_fail(call, &error);
    putchar('\n');
    size_t num_left_out = put_metrics(call, c);
    if (num_left_out)
        printf("(%zu more metrics do not clearly differ; --all shows them)\n", num_left_out);
    return tool_finish(call);
}

static void put_json(const tool_call *call, const lap_comparison *c, const compared sides[2])
{
    char text[EXPERIMENT_BYTES];
    bool has_moved = !is_same_limit(c, sides);
    json_print(stdout, "{'a': %s, 'b': %s, 'limit_a': ", call->words[0], call->words[1]);
    metric_put_limit(stdout, sides[0].verdict);
    json_print(stdout, ", 'limit_b': ");
    metric_put_limit(stdout, sides[1].verdict);
    json_print(stdout, ", 'limit_moved': %hhd, 'experiment': %s, 'settings': ", has_moved,
               pair_verdict_describe(c, find_sink(c, sides), text, sizeof text) ? text : NULL);
    setting_changes_put_json(c);
    json_print(stdout, ", 'metrics': ");
    put_metrics(call, c);
    puts("}");
}

/* Says what each database lacks; with text output only. */
static void say_lacks(const tool_call *call, const weir_reader *reader, int side)
{
    if (weir_reader_lacks(reader))
        fprintf(stderr, "weir compare: %s: %s\n", call->words[side], weir_reader_lacks(reader));
}

static int keep_sink_queue(void *self, const weir_record *record, weir_error *error)
{
    compared *side = self;
    (void)error;
    if (strcmp(record->stage.kind, "sink") == 0 && !side->sink_queue)
        side->sink_queue = memory_copy(record->stage.queue_name);
    return WEIR_OK;
}

static int read_side(const tool_call *call, int side, lap_comparison *c, compared *into)
{
    weir_reader *reader;
    weir_filter filter;
    weir_error error = { 0 };
    tool_call own = *call;
    if (side == 1 && settings.run_b) {
        own.shared.run_given = true;
        own.shared.run_id = settings.run_b;
    }
    int exit_status = tool_open(&own, call->words[side], &reader, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    say_lacks(call, reader, side);
    weir_run_record found;
    if (filter.run_id != WEIR_ALL_RUNS && weir_reader_find_run(reader, filter.run_id, &found, NULL) == WEIR_OK)
        into->run_id = found.run_id;
    int status = comparison_read(c, side, reader, &filter, &error);
    if (status == WEIR_OK)
        status = weir_verdict_read(reader, &filter, &into->verdict, &error);
    if (status == WEIR_OK)
        status = weir_reader_each(reader, WEIR_RECORD_STAGE, &filter, keep_sink_queue, into, &error);
    weir_reader_close(reader);
    return status == WEIR_OK ? TOOL_DONE : tool_fail(call, &error);
}

static bool has_laps(const lap_comparison *c, int side)
{
    for (size_t i = 0; i < c->num_pairs; i++)
        if (c->pairs[i].sides[side].name)
            return true;
    return false;
}

static int put_comparison(const tool_call *call, const lap_comparison *c, const compared sides[2])
{
    assert(sides[0].verdict && sides[1].verdict);
    for (int side = 0; side < 2; side++)
        if (!has_laps(c, side))
            return tool_nothing(call, "%s: %s", call->words[side], tool_no_records(call));
    switch (tool_format(call)) {
    case TABLE_TEXT: return put_text(call, c, sides);
    case TABLE_JSON: put_json(call, c, sides); break;
    default: put_metrics(call, c); break;
    }
    return tool_finish(call);
}

static int run(tool_call *call)
{
    lap_comparison c = { .num_pairs = 0 };
    compared sides[2] = { { .run_id = 0 }, { .run_id = 0 } };
    char *both[2] = { call->words[0], call->words[call->num_words - 1] };
    if (call->num_words == 1 && !settings.run_b)
        return tool_refuse(call, "one database: --run and --run-b select two of its runs; usage: weir compare %s",
                           call->command->words);
    call->words = both;
    int exit_status = read_side(call, 0, &c, &sides[0]);
    if (exit_status == TOOL_DONE)
        exit_status = read_side(call, 1, &c, &sides[1]);
    if (exit_status == TOOL_DONE)
        exit_status = put_comparison(call, &c, sides);
    for (int side = 0; side < 2; side++) {
        weir_verdict_free(sides[side].verdict);
        free(sides[side].sink_queue);
    }
    comparison_free(&c);
    return exit_status;
}

const tool_command tool_compare = {
    .name = "compare",
    .words = "[A.db [B.db]]",
    .max_words = 2,
    .summary = "compare two runs and explain the difference",
    .help =
        "Compares the last run of B with the last run of A (or the runs given by --run and --run-b): throughput, and "
        "the times and waits of each stage and queue. Stages are matched by name, without the number of slots and, "
        "if one pipeline has more stages than the other, without their position.\n\n"
        "change is B relative to A, in percent of A, or in points for shares. The range is a 95 % confidence "
        "interval, computed from the variation between laps (a jackknife over up to 64 batches of laps, Student's t "
        "with Welch's degrees of freedom). It does not include the variation between runs, for example from other "
        "work on the machine: to include it, record several runs of each and use --run all. With fewer than four "
        "laps there is no range. better, worse and different mean that the range does not contain 0, and that this "
        "is no chance although many metrics are compared (Holm's method, 5 % for all of them together).\n\n"
        "The limit of each run is that of weir explain, for the steady part of the run. If it has moved, or B is "
        "slower or faster, the largest change at the limit is named: the number of slots, their busy share, or the "
        "time per task. Changes elsewhere do not affect the throughput.\n\n"
        "If slots, threads or queues differ, the two recordings are an experiment: it says what each of these "
        "settings brings, and whether a stage waits for something that does not get faster.",
    .examples = "weir compare before.db after.db\n"
                "weir compare --run 3 --run-b 4\n"
                "weir compare before.db after.db --since +1m --name decode --json\n",
    .shared = TOOL_DB | TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
