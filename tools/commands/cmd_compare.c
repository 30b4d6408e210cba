/*
 * weir compare: compares two recordings and explains the difference.
 *
 * What limits each of the two is the verdict on its steady part (weir/verdict.h). A stage delivers
 *
 *     slots × busy share / time per task
 *
 * items per second, so the logarithm of the difference is the sum of the differences of the three logarithms.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/verdict.h>

#include "common/format.h"
#include "tools/cli/filter_options.h"
#include "tools/cli/memory.h"
#include "tools/cli/prose.h"
#include "tools/cli/tty.h"
#include "tools/commands/command_table.h"
#include "tools/view/lap_comparison.h"
#include "tools/view/metric_table.h"
#include "tools/view/pair_verdict.h"
#include "tools/view/setting_changes.h"

static struct settings {
    int64_t run_b; /* 0 = as --run; of one database the last one */
    bool all;
} settings;

static const option_kind run_b_kind = { .parse = tool_parse_run, .wanted = "the number of a run, last or previous" };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("run-b", run_b, run_b_kind), .argument = "N|last|previous",
      .help = "the run of B (default: as --run); A and B may then be the same database" },
    { ROW("all", all, option_flag),
      .help =
          "show all metrics (without it, and without --json or --csv, the throughput and the seven that differ most "
          "clearly)" },
    { 0 },
};

#define CLEAR_MOVE 0.05 /* in logarithms */

/* -- causes of the difference: for each stage, in logarithms */

typedef struct effect {
    const comparison_pair *stage;
    double slots, busy, task; /* NAN = not known; a positive task is a longer time per task */
    double whole;             /* slots + busy - task */
} effect;

/* The average number of slots: slots × seconds / seconds. */
static double slots_of(const weir_total *side)
{
    return weir_num_slots(&side->metrics.task, side->elapsed_ns);
}

/* The mean over all tasks: failed ones also keep slots busy. */
static double time_per_task(const weir_total *side)
{
    return (double)side->metrics.task.busy_ns / 1e9 / (double)side->metrics.task.num_tasks;
}

static effect effect_of(const comparison_pair *stage)
{
    const weir_total *a = stage->sides[0], *b = stage->sides[1];
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

static const comparison_pair *find_only_pair(const lap_comparison *c, weir_subject subject)
{
    for (size_t i = 0; i < c->num_pairs; i++)
        if (c->pairs[i].subject == subject && c->pairs[i].sides[0] && c->pairs[i].sides[1])
            return &c->pairs[i];
    return NULL;
}

/* The slower run has fewer CPUs, most of which other programs have instead, and are not idle. */
static void say_others(FILE *out, const lap_comparison *c, const comparison_row *rate)
{
    const comparison_pair *process = find_only_pair(c, WEIR_SUBJECT_PROCESS),
                          *machine = find_only_pair(c, WEIR_SUBJECT_MACHINE);
    if (!process || !machine || rate->verdict < VERDICT_BETTER)
        return;
    int slower = rate->verdict == VERDICT_WORSE;
    double cpus[2], others[2];
    for (int side = 0; side < 2; side++) {
        double stolen = comparison_value(machine, side, "stolen_cpus");
        cpus[side] = comparison_value(process, side, "cpus");
        others[side] = comparison_value(machine, side, "other_cpus") + (isnan(stolen) ? 0 : stolen);
    }
    double per_item = cpus[1] / rate->b / (cpus[0] / rate->a), lacking = cpus[!slower] - cpus[slower];
    bool are_taken = lacking > 0 && others[slower] - others[!slower] >= lacking / 2 &&
                     comparison_value(machine, slower, "idle_cpus") < lacking;
    if (are_taken && fabs(log(per_item)) < fabs(log1p(rate->change)) / 2)
        prose_line(
            out,
            "Other programs took most of the difference: they use %.2f CPUs beside B, and %.2f beside A; the CPU "
            "time of an item changes by %+.1f %%.",
            others[1], others[0], 100 * (per_item - 1));
}

static void say_throughput(FILE *out, const lap_comparison *c)
{
    const comparison_pair *sink = comparison_find_sink(c);
    if (!sink)
        return;
    comparison_row d = comparison_compare(sink, "items_per_s");
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
    say_others(out, c, &d);
}

static char letter_of(int side)
{
    return side ? 'B' : 'A';
}

static bool is_same_limit(const lap_comparison *c)
{
    const weir_verdict *a = c->sides[0].limit, *b = c->sides[1].limit;
    const comparison_pair *stage = comparison_find(c, 0, a->name);
    return a->kind == b->kind && (stage ? stage == comparison_find(c, 1, b->name) : strcmp(a->name, b->name) == 0);
}

/* The largest of the three causes. */
static void say_cause(FILE *out, const effect *e)
{
    const weir_total *a = e->stage->sides[0], *b = e->stage->sides[1];
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
static const comparison_pair *say_move(FILE *out, const lap_comparison *c)
{
    for (int side = 0; side < 2; side++) {
        const comparison_pair *stage = comparison_find(c, side, c->sides[side].limit->name);
        if (!stage || stage->subject != WEIR_SUBJECT_STAGE || !stage->sides[!side])
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

/* Returns the stage whose change was printed; NULL = none. */
static const comparison_pair *say_limits(FILE *out, const lap_comparison *c)
{
    for (int side = 0; side < 2; side++)
        prose_line(out, "Limit of %c: %s", letter_of(side), c->sides[side].limit->sentence);
    if (c->sides[0].limit->kind == WEIR_VERDICT_UNKNOWN || c->sides[1].limit->kind == WEIR_VERDICT_UNKNOWN)
        return NULL;
    if (!is_same_limit(c))
        return say_move(out, c);
    fputs("The limit is the same.\n", out);
    return NULL;
}

/* The slower run is slower because of its limit: of what the named stage itself, not something around it, decides. */
static void say_why(FILE *out, const lap_comparison *c, const comparison_pair *reported)
{
    const comparison_pair *sink = comparison_find_sink(c);
    comparison_verdict verdict = sink ? comparison_compare(sink, "items_per_s").verdict : VERDICT_UNKNOWN;
    if (verdict != VERDICT_BETTER && verdict != VERDICT_WORSE)
        return;
    int slower = verdict == VERDICT_WORSE;
    const weir_verdict *l = c->sides[slower].limit;
    const comparison_pair *stage = comparison_find(c, slower, l->name);
    bool both_threads = l->kind == WEIR_VERDICT_THREADS && c->sides[!slower].limit->kind == WEIR_VERDICT_THREADS;
    bool is_in_stage =
        l->kind == WEIR_VERDICT_SLOTS || l->kind == WEIR_VERDICT_OUTSIDE || l->kind == WEIR_VERDICT_CPUS;
    if (stage && stage->subject == WEIR_SUBJECT_STAGE && !stage->sides[!slower])
        prose_line(out, "%c is slower because of %s, which %c does not have.", letter_of(slower),
                   stage->sides[slower]->key.name, letter_of(!slower));
    else if (stage && stage != reported && (is_in_stage || both_threads)) {
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

static void put_row(table *t, bool as_text, bool with_name, const comparison_row *d)
{
    const weir_measure *measure = d->measure;
    bool is_share = comparison_is_share(measure);
    table_kind value = strcmp(measure->unit, "s") == 0 ? TABLE_TIME : is_share ? TABLE_SHARE : TABLE_REAL;
    table_kind change = is_share ? TABLE_POINTS : TABLE_CHANGE;
    table_words(t, with_name ? d->pair->key : "");
    if (!as_text)
        table_words(t, metric_subject_name(d->pair->subject));
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

enum { MOST_ROWS = 8 };

/* The difference is clear, and the numbers that are shown differ. */
static bool is_clear(const comparison_row *row)
{
    return row->verdict >= VERDICT_DIFFERENT && fabs(row->change) >= 0.0005;
}

/* The throughput first, then by how little chance explains, then by size. Shares are compared in points. */
static int by_weight(const void *left, const void *right)
{
    const comparison_row *a = *(const comparison_row *const *)left, *b = *(const comparison_row *const *)right;
    if (a->chance != b->chance)
        return (a->chance > b->chance) - (a->chance < b->chance);
    return (fabs(a->change) < fabs(b->change)) - (fabs(a->change) > fabs(b->change));
}

/* The rows that people see: a limited number of those that differ most clearly, and the throughput. The caller frees
   the list, which has a false or true for each row. */
static bool *choose_rows(const lap_comparison *c)
{
    bool *is_shown = memory_get(c->num_rows + 1, sizeof *is_shown);
    const comparison_row **clear = memory_get(c->num_rows + 1, sizeof *clear);
    const comparison_pair *sink = comparison_find_sink(c);
    size_t num_clear = 0, num_shown = 0;
    for (size_t i = 0; i < c->num_rows; i++)
        if (c->rows[i].pair == sink && strcmp(c->rows[i].measure->name, "items_per_s") == 0)
            num_shown += is_shown[i] = true;
        else if (is_clear(&c->rows[i]))
            clear[num_clear++] = &c->rows[i];
    qsort(clear, num_clear, sizeof *clear, by_weight);
    for (size_t i = 0; i < num_clear && num_shown < MOST_ROWS; i++, num_shown++)
        is_shown[clear[i] - c->rows] = true;
    free(clear);
    return is_shown;
}

/* Returns how many rows were left out. */
static size_t put_metrics(const tool_call *call, const lap_comparison *c)
{
    bool as_text = tool_format(call) == TABLE_TEXT, *is_shown = choose_rows(c);
    size_t num_left_out = 0;
    const comparison_pair *named = NULL; /* as text, only the first row of a node has its name */
    table *t = as_text ? table_begin(stdout, TABLE_TEXT, TABLE_COLUMNS(text_columns))
                       : table_begin(stdout, tool_format(call), TABLE_COLUMNS(metric_columns));
    table_set_keys(t, 2); /* the node and the metric */
    for (const comparison_row *row = c->rows; row && row < c->rows + c->num_rows; row++) {
        if (!as_text || settings.all || is_shown[row - c->rows]) {
            put_row(t, as_text, !as_text || row->pair != named, row);
            named = row->pair;
        } else
            num_left_out++;
    }
    table_end(t);
    free(is_shown);
    return num_left_out;
}

/* -- all of it */

static int put_text(const tool_call *call, const lap_comparison *c, const setting_changes *changes)
{
    weir_error error = { 0 };
    prose text;
    char experiment[EXPERIMENT_BYTES];
    prose_open(&text);
    for (int side = 0; side < 2; side++)
        if (c->sides[side].run_id)
            prose_line(text.file, "%c: %s, run %" PRId64, letter_of(side), call->words[side], c->sides[side].run_id);
        else
            prose_line(text.file, "%c: %s", letter_of(side), call->words[side]);
    fputc('\n', text.file);
    setting_changes_say(text.file, changes);
    say_throughput(text.file, c);
    say_why(text.file, c, say_limits(text.file, c));
    if (pair_verdict_describe(c, changes->is_other_job, experiment, sizeof experiment))
        prose_line(text.file, "%s", experiment);
    if (prose_end(&text, WEIR_OK, &error) != WEIR_OK)
        return tool_fail(call, &error);
    putchar('\n');
    size_t num_left_out = put_metrics(call, c);
    if (num_left_out)
        printf("(%zu more differ less, or not clearly: --all shows them)\n", num_left_out);
    return tool_finish(call);
}

static int put_json(const tool_call *call, const lap_comparison *c, const setting_changes *changes)
{
    char text[EXPERIMENT_BYTES];
    bool has_moved = !is_same_limit(c);
    json_print(stdout, "{'a': %s, 'b': %s, 'limit_a': ", call->words[0], call->words[1]);
    metric_put_limit(stdout, c->sides[0].limit);
    json_print(stdout, ", 'limit_b': ");
    metric_put_limit(stdout, c->sides[1].limit);
    json_print(stdout, ", 'limit_moved': %hhd, 'experiment': %s, 'settings': ", has_moved,
               pair_verdict_describe(c, changes->is_other_job, text, sizeof text) ? text : NULL);
    setting_changes_put_json(changes);
    json_print(stdout, ", 'metrics': ");
    put_metrics(call, c);
    puts("}");
    return tool_finish(call);
}

/* One database, and no run is selected: its last two runs are compared. */
static bool is_one_run_twice(const tool_call *call)
{
    return call->words[0] == call->words[1] && !call->shared.run_given && !settings.run_b;
}

static int read_side(const tool_call *call, int side, lap_comparison *c)
{
    weir_recording *recording;
    weir_filter filter;
    weir_error error = { 0 };
    tool_call own = *call;
    if (side == 0 && is_one_run_twice(call)) {
        own.shared.run_given = true;
        own.shared.run_id = WEIR_PREVIOUS_RUN;
    } else if (side == 1 && settings.run_b) {
        own.shared.run_given = true;
        own.shared.run_id = settings.run_b;
    }
    bool is_previous = own.shared.run_given && own.shared.run_id == WEIR_PREVIOUS_RUN;
    int exit_status = tool_open(&own, call->words[side], &recording, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    if (weir_recording_lacks(recording))
        fprintf(stderr, "weir compare: %s: %s\n", call->words[side], weir_recording_lacks(recording));
    int status = comparison_read(c, side, recording, &filter, &error);
    weir_recording_close(recording);
    if (status == WEIR_ENOTFOUND && is_previous)
        return tool_refuse(call, "%s; record another run, or name a second database", error.message);
    return status == WEIR_OK ? TOOL_DONE : tool_fail(call, &error);
}

static int put_comparison(const tool_call *call, const lap_comparison *c)
{
    for (int side = 0; side < 2; side++) {
        size_t count = 0;
        for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
            count += c->sides[side].all.of[subject].count;
        if (count == 0)
            return tool_nothing(call, "%s: %s", call->words[side], tool_no_records(call));
    }
    setting_changes changes = setting_changes_find(c);
    int exit_status = TOOL_DONE;
    if (tool_format(call) == TABLE_TEXT)
        exit_status = put_text(call, c, &changes);
    else if (tool_format(call) == TABLE_JSON)
        exit_status = put_json(call, c, &changes);
    else
        put_metrics(call, c);
    setting_changes_free(&changes);
    return exit_status == TOOL_DONE ? tool_finish(call) : exit_status;
}

static int run(tool_call *call)
{
    lap_comparison c = { .num_pairs = 0 };
    char *both[2] = { call->words[0], call->words[call->num_words - 1] };
    if (call->num_words == 1 && call->shared.run_given && !settings.run_b)
        return tool_refuse(call, "one database: --run-b selects the other one of its runs; usage: weir compare %s",
                           call->command->words);
    call->words = both;
    int exit_status = read_side(call, 0, &c);
    if (exit_status == TOOL_DONE)
        exit_status = read_side(call, 1, &c);
    if (exit_status == TOOL_DONE)
        exit_status = put_comparison(call, &c);
    comparison_free(&c);
    return exit_status;
}

const tool_command tool_compare = {
    .name = "compare",
    .words = "[A.db [B.db]]",
    .max_words = 2,
    .summary = "compare two runs and explain the difference",
    .help =
        "Compares the last run of B with the last run of A (or the runs given by --run and --run-b; of one database, "
        "the "
        "last run with the one before): throughput, and "
        "the times and waits of each stage and queue. Stages are matched by name, without the number of slots and, "
        "if one pipeline has more stages than the other, without their position.\n\n"
        "change is B relative to A, in percent of A, or in points for shares. The range is a 95 % confidence "
        "interval, computed from the variation between laps (a jackknife over about 64 batches of laps, Student's t "
        "with Welch's degrees of freedom). It does not include the variation between runs, for example from other "
        "work on the machine: to include it, record several runs of each and use --run all, which computes it from "
        "the variation between the runs. With fewer than four laps there is no range. better, worse and different "
        "mean that the range does not contain 0. They allow for the number of metrics that are compared (Holm's "
        "method, 5 % for all of them together).\n\n"
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
