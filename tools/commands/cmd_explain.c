/* weir explain: what limits a run, the evidence, and what would help. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include <weir/verdict.h>

#include "command_table.h"
#include "prose.h"

static struct {
    bool all, code;
} settings;

static const option_row rows[] = {
    { .name = "verbose",
      .letter = 'v',
      .kind = &option_flag,
      .offset = offsetof(__typeof__(settings), all),
      .help = "print all the evidence, what each prediction assumes, and the limit after each change" },
    { .name = "c",
      .kind = &option_flag,
      .offset = offsetof(__typeof__(settings), code),
      .help = "also print the changes as settings in C" },
    { 0 },
};

static void put_text(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    json_string(stdout, text);
}

static void put_number(const char *key, double value)
{
    printf(", \"%s\": ", key);
    json_number(stdout, value);
}

static void put_json_advice(const weir_verdict_advice *a)
{
    printf("{\"change\": ");
    json_string(stdout, a->change);
    put_text("options", a->options);
    put_text("code", a->code);
    put_number("gain", a->gain);
    put_number("low", a->low);
    put_number("high", a->high);
    put_number("items_per_s", a->items_per_s);
    put_number("more_cpus", a->more_cpus);
    put_number("more_bytes", a->more_bytes);
    put_text("next_limit", a->next);
    put_text("assumes", a->assumes);
    printf(", \"is_measured\": %s, \"changes_job\": %s", a->is_measured ? "true" : "false",
           a->changes_job ? "true" : "false");
    putchar('}');
}

static void put_json(const weir_verdict *v)
{
    printf("{\"kind\": \"%s\"", weir_verdict_word(v->kind));
    put_text("name", v->name);
    put_text("sentence", v->sentence);
    put_number("confidence", v->confidence);
    put_text("certainty", weir_verdict_certainty(v));
    printf(", \"other\": ");
    if (v->other_kind == WEIR_VERDICT_UNKNOWN)
        printf("null");
    else {
        printf("{\"kind\": \"%s\"", weir_verdict_word(v->other_kind));
        put_text("name", v->other_name);
        put_text("sentence", v->other_sentence);
        putchar('}');
    }
    put_text("missing", v->missing);
    put_number("items_per_s", v->items_per_s);
    put_number("start_time", (double)v->start_unix_ns / 1e9);
    put_number("end_time", (double)v->end_unix_ns / 1e9);
    put_number("num_laps", (double)v->num_laps);
    put_number("num_cut_laps", (double)v->num_cut_laps);
    if (v->world > 1)
        printf(", \"rank\": %d, \"world\": %u, \"num_ranks\": %u", v->rank, v->world, v->num_ranks);
    if (v->changed_unix_ns)
        put_number("changed_time", (double)v->changed_unix_ns / 1e9);
    printf(", \"evidence\": [");
    for (size_t i = 0; i < v->num_evidence; i++) {
        fputs(i ? ", " : "", stdout);
        json_string(stdout, v->evidence[i]);
    }
    printf("], \"advice\": [");
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

static int answer(const tool_call *call, weir_reader *reader, weir_filter *filter, weir_error *error)
{
    weir_verdict *verdict;
    prose text;
    if (filter->name)
        return weir_error_set(error, WEIR_EINVAL, 0, "--name: a verdict is about the whole pipeline");
    int status = weir_verdict_explain(reader, filter, &verdict, error);
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
        "that "
        "wait for something outside weir), the threads, the CPUs, the output order, or a queue that is too small. "
        "Then "
        "the evidence, how certain this is, and what would help, with the predicted gain. A prediction was not "
        "measured, "
        "so its range includes no gain: weir record --explain measures it while a run goes on, and weir compare "
        "evaluates two recordings with other settings. If the limit changed during the run, both are named.\n\n"
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
