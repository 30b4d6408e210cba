/* Shared by all subcommands: reading options, opening databases, reporting errors. */
#include "tools/cli/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/filter_options.h"
#include "tools/cli/output_check.h"

size_t tool_option_sets(const tool_command *command, tool_shared *shared, option_set sets[TOOL_MAX_SETS])
{
    size_t count = 0;
    sets[count++] = (option_set){ tool_help_rows, shared }; /* before groups with headings */
    if (command->shared & TOOL_DB)
        sets[count++] = (option_set){ tool_db_rows, shared };
    if (command->options)
        sets[count++] = (option_set){ command->options, command->settings };
    if (command->make && command->make()->options)
        sets[count++] = (option_set){ command->make()->options, command->settings };
    for (const option_set *more = command->more; more && more->rows; more++)
        sets[count++] = *more;
    if (command->shared & TOOL_FILTER)
        sets[count++] = (option_set){ tool_filter_rows, shared };
    else if (command->shared & TOOL_RUN)
        sets[count++] = (option_set){ tool_run_rows, shared };
    if (command->shared & TOOL_FORMAT)
        sets[count++] = (option_set){ tool_format_rows, shared };
    return count;
}

const char *tool_made_help(const tool_command *command)
{
    const char *help = command->make ? command->make()->help : NULL;
    return help ? help : "";
}

const char *tool_made_examples(const tool_command *command)
{
    const char *examples = command->make ? command->make()->examples : NULL;
    return examples ? examples : "";
}

/* -- messages */

int tool_refuse(const tool_call *call, const char *format, ...)
{
    char program[64];
    va_list values;
    snprintf(program, sizeof program, "weir%s%s", *call->command->name ? " " : "", call->command->name);
    va_start(values, format);
    prose_say(program, format, values);
    va_end(values);
    return TOOL_REFUSED;
}

int tool_fail(const tool_call *call, const weir_error *error)
{
    tool_refuse(call, "%s", error->message);
    switch (error->status) {
    case WEIR_ENOTFOUND: return TOOL_NOTHING;
    case WEIR_EINVAL:
    case WEIR_EACCESS:
    case WEIR_EUNSUPPORTED: return TOOL_REFUSED;
    default: return TOOL_FAILED;
    }
}

int tool_fail_early(const tool_call *call, const weir_error *error)
{
    int exit_status = tool_fail(call, error);
    return error->status == WEIR_EDATA ? TOOL_REFUSED : exit_status;
}

/* -- databases */

/* The start of the run, or of all runs, and the end of its records. */
typedef struct time_range {
    int64_t start_unix_ns, end_unix_ns;
} time_range;

static int extend_range(void *self, const weir_record *record, weir_error *error)
{
    (void)error;
    time_range *range = self;
    if (record->kind == WEIR_RECORD_QUEUE)
        range->end_unix_ns = record->lap.end_unix_ns;
    else if (range->start_unix_ns == 0 || record->run.started_unix_ns < range->start_unix_ns)
        range->start_unix_ns = record->run.started_unix_ns;
    return WEIR_OK;
}

static int find_range(weir_recording *recording, const weir_filter *filter, time_range *range, weir_error *error)
{
    weir_filter latest = *filter;
    latest.descending = true;
    latest.limit = 1;
    int status = weir_recording_each(recording, WEIR_RECORD_RUN, filter, extend_range, range, error);
    return status == WEIR_OK ? weir_recording_each(recording, WEIR_RECORD_QUEUE, &latest, extend_range, range, error)
                             : status;
}

static int64_t resolved(const tool_time *when, const time_range *range)
{
    int64_t ns = (int64_t)(when->seconds * 1e9), sum;
    switch (when->kind) {
    case TOOL_TIME_UNIX: return ns;
    case TOOL_TIME_AFTER_START: return __builtin_add_overflow(range->start_unix_ns, ns, &sum) ? INT64_MAX : sum;
    case TOOL_TIME_BEFORE_END: return range->end_unix_ns - ns;
    case TOOL_TIME_NONE: break;
    }
    return 0;
}

bool tool_has_filter(const tool_call *call)
{
    const tool_shared *s = &call->shared;
    return s->name || s->node || s->phase || s->mode || s->from_phase || s->until_phase || s->from_mode ||
           s->until_mode || s->steps.given || s->between.given || s->every_time || s->section || s->rank.given ||
           s->since.kind || s->until.kind;
}

const char *tool_no_records(const tool_call *call)
{
    const tool_shared *s = &call->shared;
    if ((s->node || s->rank.given) && !s->run_given && call->command->default_run == WEIR_LAST_RUN)
        return "no records of the last run match the filters; --run all selects the nodes and ranks of all runs";
    return tool_has_filter(call) ? "no records match the filters; try a wider range, or another --run or --name"
                                 : "no such records in this run; weir query DB --list contents shows what there is";
}

static int make_filter(const tool_call *call, weir_recording *recording, weir_filter *filter, weir_error *error)
{
    const tool_shared *shared = &call->shared;
    *filter = (weir_filter){
        .run_id = shared->run_given ? shared->run_id : call->command->default_run,
        .node_id = shared->node,
        .by_rank = shared->rank.given,
        .rank = shared->rank.number,
    };
    time_range range = { 0 };
    int status = WEIR_OK;
    if (shared->since.kind > TOOL_TIME_UNIX || shared->until.kind > TOOL_TIME_UNIX)
        status = find_range(recording, filter, &range, error);
    filter->name = shared->name;
    filter->start_unix_ns = resolved(&shared->since, &range);
    filter->end_unix_ns = resolved(&shared->until, &range);
    filter->by_step = shared->steps.given;
    filter->first_step = shared->steps.first;
    filter->last_step = shared->steps.last;
    filter->phase = shared->phase;
    filter->mode = shared->mode;
    filter->from_phase = shared->from_phase;
    filter->until_phase = shared->until_phase;
    weir_selection selection = { .every = shared->every_time,
                                 .by_step = shared->between.given,
                                 .from_step = shared->between.first,
                                 .until_step = shared->between.last,
                                 .section = (weir_run_section)shared->section,
                                 .from_mode = shared->from_mode,
                                 .until_mode = shared->until_mode };
    return status == WEIR_OK ? weir_recording_set_selection(recording, &selection, error) : status;
}

int tool_open(const tool_call *call, const char *path, weir_recording **recording, weir_filter *filter)
{
    weir_error error = { 0 };
    if (weir_output_is(path, WEIR_OUTPUT_INDEX))
        return tool_refuse(call, "%s: an index of a dataset, not a database of statistics; weir index shows it",
                           path);
    int status = weir_recording_open(path, recording, &error);
    if (status == WEIR_ENOTFOUND)
        return tool_refuse(call, "%s", error.message); /* a wrong argument, not a failed run */
    if (status == WEIR_OK)
        status = weir_recording_hold(*recording, &error);
    if (status == WEIR_OK && filter)
        status = make_filter(call, *recording, filter, &error);
    if (status == WEIR_OK && filter && filter->end_unix_ns != 0 && filter->end_unix_ns <= filter->start_unix_ns) {
        weir_recording_close(*recording);
        return tool_refuse(call, "--until: the end of the range must be after its start");
    }
    if (status == WEIR_OK)
        return TOOL_DONE;
    weir_recording_close(*recording);
    if (weir_output_is(path, WEIR_OUTPUT_TRACE))
        return tool_refuse(call, "%s: not a database; if it is a trace, weir trace shows it", path);
    return tool_fail_early(call, &error);
}

/* -- output */

table_format tool_format(const tool_call *call)
{
    return call->shared.json ? TABLE_JSON : call->shared.csv ? TABLE_CSV : TABLE_TEXT;
}

int tool_finish(const tool_call *call)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return TOOL_DONE;
    tool_refuse(call, "cannot print: %s", strerror(errno ? errno : EIO));
    return TOOL_FAILED;
}

int tool_answer(const tool_call *call)
{
    weir_recording *recording = NULL;
    weir_filter filter;
    weir_error error = { 0 };
    int exit_status = call->command->check ? call->command->check(call) : TOOL_DONE;
    if (exit_status == TOOL_DONE)
        exit_status = tool_open(call, call->words[0], &recording, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    int status = call->command->answer(call, recording, &filter, &error);
    weir_recording_close(recording);
    if (status != WEIR_OK && status != WEIR_ENOTFOUND)
        return tool_fail(call, &error);
    exit_status = tool_finish(call);
    return status == WEIR_ENOTFOUND && exit_status == TOOL_DONE ? tool_fail(call, &error) : exit_status;
}
