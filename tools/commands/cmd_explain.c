/* weir explain: what limits a run, the evidence, and what would help. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include <weir/verdict.h>

#include "tools/cli/prose.h"
#include "tools/commands/command_table.h"

static struct settings {
    bool all, code;
} settings;

#define ROW(option, what) .name = (option), .kind = &option_flag, .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("verbose", all), .letter = 'v', .help = "print all the evidence, and the limit after each change" },
    { ROW("c", code), .help = "also print the changes as settings in C" },
    { 0 },
};

static void put_json_advice(const weir_verdict_advice *a)
{
    json_print(stdout,
               "{'change': %s, 'options': %s, 'code': %s, 'gain': %g, 'gain_error': %g, 'low': %g, 'high': %g, ",
               a->change, a->options, a->code, a->gain, a->error, a->low, a->high);
    json_print(stdout, "'items_per_s': %g, 'more_cpus': %g, 'more_bytes': %g, 'next_limit': %s, 'assumes': %s, ",
               a->items_per_s, (double)a->more_cpus, (double)a->more_bytes, a->next, a->assumes);
    json_print(stdout, "'is_measured': %hhd, 'changes_job': %hhd}", a->is_measured, a->changes_job);
}

static void put_json(const weir_verdict *v)
{
    json_print(stdout, "{'kind': %s, 'name': %s, 'sentence': %s, 'confidence': %g, 'certainty': %s, 'other': ",
               weir_verdict_word(v->kind), v->name, v->sentence, v->confidence, weir_verdict_certainty(v));
    if (v->other_kind == WEIR_VERDICT_UNKNOWN)
        printf("null");
    else
        json_print(stdout, "{'kind': %s, 'name': %s, 'sentence': %s}", weir_verdict_word(v->other_kind),
                   v->other_name, v->other_sentence);
    json_print(stdout, ", 'missing': %s, 'items_per_s': %g, 'start_time': %g, 'end_time': %g, ", v->missing,
               v->items_per_s, (double)v->start_unix_ns / 1e9, (double)v->end_unix_ns / 1e9);
    json_print(stdout, "'num_laps': %g, 'num_cut_laps': %g", (double)v->num_laps, (double)v->num_cut_laps);
    if (v->world > 1)
        json_print(stdout, ", 'rank': %d, 'world': %u, 'num_ranks': %u", v->rank, v->world, v->num_ranks);
    if (*v->together)
        json_print(stdout, ", 'together': %s", v->together);
    if (v->changed_unix_ns)
        json_print(stdout, ", 'changed_time': %g", (double)v->changed_unix_ns / 1e9);
    json_print(stdout, ", 'evidence': [");
    for (size_t i = 0; i < v->num_evidence; i++)
        json_print(stdout, i ? ", %s" : "%s", v->evidence[i]);
    json_print(stdout, "], 'advice': [");
    for (size_t i = 0; i < v->num_advice; i++) {
        fputs(i ? ", " : "", stdout);
        put_json_advice(&v->advice[i]);
    }
    puts("]}");
}

static int check_format(const tool_call *call)
{
    return tool_format(call) == TABLE_CSV ? tool_refuse(call, "--csv: a verdict is not a table; use --json")
                                          : TOOL_DONE;
}

static int answer(const tool_call *call, weir_recording *recording, weir_filter *filter, weir_error *error)
{
    weir_verdict *verdict;
    prose text;
    if (filter->name)
        return weir_error_set(error, WEIR_EINVAL, 0, "--name: a verdict is about the whole pipeline");
    int status = weir_verdict_explain(recording, filter, &verdict, error);
    if (status != WEIR_OK)
        return status;
    bool has_laps = verdict->num_laps > 0 || verdict->kind != WEIR_VERDICT_UNKNOWN;
    prose_open(&text);
    if (tool_format(call) == TABLE_JSON)
        put_json(verdict);
    else if (has_laps)
        weir_verdict_write(verdict, (settings.all ? WEIR_VERDICT_ALL : 0u) | (settings.code ? WEIR_VERDICT_CODE : 0u),
                           text.width, text.file);
    status = prose_end(&text, WEIR_OK, error);
    weir_verdict_free(verdict);
    return status == WEIR_OK && !has_laps ? weir_error_set(error, WEIR_ENOTFOUND, 0, "%s", tool_no_records(call))
                                          : status;
}

const tool_command tool_explain = {
    .name = "explain",
    .words = "[DB]",
    .max_words = 1,
    .summary = "say what limits a run, and what would help",
    .help =
        "Says in one sentence what limits the run: the consumer, a source, the slots of a stage (that compute, or "
        "that wait for something outside weir), the threads, the CPUs, the output order, or a queue that is too "
        "small. Then the evidence, how certain this is, and what would help, with the predicted gain. A prediction "
        "is not a measurement, so its range reaches down to a gain of 0. weir record --explain measures the gain "
        "while a "
        "run goes on, and weir compare evaluates two recordings with other settings. If the limit changed during the "
        "run, both are "
        "named.\n\n"
        "Only the steady part of a run counts: after the lap in which the first item was delivered, and before the "
        "lap in which the last source ended. The default is the last run; a phase, a range of time or steps, or "
        "ranks can be selected. docs/verdict.md explains the model and each verdict.",
    .examples = "weir explain\n"
                "weir explain --phase train --json\n"
                "weir explain job.db --run all --rank 3\n",
    .shared = TOOL_DB | TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .check = check_format,
    .answer = answer,
};
