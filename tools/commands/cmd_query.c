/* weir query: metrics aggregated by any keys, sorted and limited, by SQLite; single laps; lists of records. */
#include <stdio.h>
#include <string.h>

#include "tools/commands/command_table.h"
#include "tools/view/function_report.h"
#include "tools/view/metric_table.h"
#include "tools/view/record_table.h"

/* The keys of --by, or-ed: subjects, and WEIR_BY_... */
#define BY(subject) (0x10000u << WEIR_SUBJECT_##subject)
#define BY_FUNCTION 0x1000000u
static const char *const by_words[] = { "stage",    "queue", "lap",     "step",       "phase", "job-phase",
                                        "node",     "run",   "time",    "flow",       "pool",  "process",
                                        "machine",  "span",  "counter", "transition", "mode",  "mode-transition",
                                        "function", NULL };
static const unsigned by_bits[] = {
    BY(STAGE),    BY(QUEUE),   WEIR_BY_LAP,  WEIR_BY_STEP,       WEIR_BY_PHASE, WEIR_BY_JOB_PHASE,
    WEIR_BY_NODE, WEIR_BY_RUN, WEIR_BY_TIME, BY(FLOW),           BY(POOL),      BY(PROCESS),
    BY(MACHINE),  BY(SPAN),    BY(COUNTER),  WEIR_BY_TRANSITION, WEIR_BY_MODE,  WEIR_BY_MODE_TRANSITION,
    BY_FUNCTION,
};
#define BY_SUBJECTS 0xff0000u
#define BY_PHASES   (WEIR_BY_PHASE | WEIR_BY_JOB_PHASE | WEIR_BY_TRANSITION)
#define BY_MODES    (WEIR_BY_MODE | WEIR_BY_MODE_TRANSITION)

typedef enum sort_key {
    SORT_NONE,
    SORT_AVG,
    SORT_P50,
    SORT_P90,
    SORT_P99,
    SORT_MAX,
    SORT_COUNT,
    SORT_TOTAL,
    SORT_FAILURES,
    SORT_RATE,
    SORT_BUSY,
} sort_key;

static const char *const sort_words[] = { "none",  "avg",   "p50",      "p90",  "p99",  "max",
                                          "count", "total", "failures", "rate", "busy", NULL };

static struct settings {
    unsigned by;
    bool queues;
    int sort; /* sort_key */
    bool reverse;
    int64_t top; /* 0 = all */
    double bin_s;
    int64_t bin_steps;
    bool sql;
    bool folded, flame_graph;
    int list; /* which of record_table_names, -1 = none */
} settings = { .list = -1 };

static bool parse_by(const char *text, void *value)
{
    unsigned *by = value;
    while (*text) {
        size_t length = strcspn(text, ","), i = 0;
        while (by_words[i] && (strlen(by_words[i]) != length || memcmp(by_words[i], text, length) != 0))
            i++;
        if (!by_words[i])
            return false;
        *by |= by_bits[i];
        text += length + (text[length] == ',');
    }
    return *by;
}

static const option_kind by_kind = {
    .parse = parse_by,
    .wanted =
        "stage, flow, queue, pool, process, machine, span, counter, lap, step, phase, mode, job-phase, transition, "
        "mode-transition, node, run or time, or several with commas; or function"
};

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("by", by, by_kind), .argument = "KEY,...", .choices = by_words,
      .help = "keys to aggregate by: stage, flow (sources, routes, merges, sinks), queue, pool, process, machine, "
              "span, counter, lap, step, phase, mode, job-phase, transition (the phase and the one before it), "
              "mode-transition, node, "
              "run, time (default stage); or function: where the CPU time went, by samples" },
    { ROW("queues", queues, option_flag), .help = "show queues instead of stages" },
    { ROW("bin", bin_s, option_span), .argument = "SPAN",
      .help = "with --by time: width of a bin, such as 10m or 1h (default 1m)" },
    { ROW("step-bin", bin_steps, option_count), .argument = "N",
      .help = "with --by step: steps per bin; a lap counts in the bin of its first step (default 1)" },
    { ROW("sort", sort, option_choice), .argument = "KEY", .choices = sort_words,
      .help = "largest first: avg, p50, p90, p99, max, count, total, failures, rate or busy; for queues, times are "
              "the longer of put and get time, and busy is the occupancy; for spans, total is their time (default "
              "none: in the order of the keys)" },
    { ROW("reverse", reverse, option_flag), .help = "smallest first; without --sort, last first" },
    { ROW("top", top, option_count), .argument = "N", .help = "only the first N rows" },
    { ROW("sql", sql, option_flag), .excludes = "json csv",
      .help =
          "print the SQL statement that reads these sums, laps or records, instead of its answer; docs/sql.md says "
          "how to run it elsewhere" },
    { ROW("folded", folded, option_flag), .needs = "by", .excludes = "json csv sql",
      .help = "with --by function: print a line for each stack with its samples, for flamegraph.pl and speedscope" },
    { ROW("flame-graph", flame_graph, option_flag), .needs = "by", .excludes = "json csv sql folded",
      .help = "with --by function: print a flame graph (SVG); in a browser, a click enlarges a function, and "
              "typing a text marks the functions that contain it" },
    { ROW("list", list, option_choice), .argument = "WHAT", .choices = record_table_names,
      .excludes = "by sort queues",
      .help = "instead, list the records themselves: runs, nodes, stages, phases, tasks, flow, queues, pools, "
              "process, machine, spans, counters, events, failures, items, or contents: what there is, by table and "
              "name" },
    { 0 },
};

/* -- sort keys, in SQL; of queues the longer of put and get time */

#define LONGER(put, get)             "max(coalesce(" put ", 0), coalesce(" get ", 0))"
#define QUANTILES(q, task, put, get) /* stored: of a lap of SPDL's */ \
    { \
        "coalesce(weir_quantile(histogram, " q ", min_time, max_time), " task ")", \
            LONGER("coalesce(weir_quantile(put_histogram, " q ", min_put_time, max_put_time), " put ")", \
                   "coalesce(weir_quantile(get_histogram, " q ", min_get_time, max_get_time), " get ")"), \
            "weir_quantile(span_histogram, " q ", min_time, max_time)", NULL \
    }

/* Without the time after the end, as weir_task_life_ns() and the measures of queues. */
#define SLOT_TIME  "(busy_time + wait_in_time + wait_thread_time + wait_turn_time + wait_out_time)"
#define TASK_LIFE  "(elapsed * coalesce(" SLOT_TIME " / nullif(" SLOT_TIME " + coalesce(ended_time, 0), 0), 1))"
#define QUEUE_LIFE "nullif(elapsed - coalesce(ended_time, 0), 0)"

/* For stages, queues, spans and counters; NULL = all are the same. */
static const struct {
    const char *tasks, *queues, *spans, *counters;
} sort_terms[] = {
    [SORT_AVG] = { "success_time / (num_tasks - num_failures)", LONGER("put_time / num_put", "get_time / num_items"),
                   "total_time / num_spans",
                   "iif(value_time IS NULL, 0, coalesce(value_time / known_time, last_value))" },
    [SORT_P50] = QUANTILES("0.5", "NULL", "NULL", "NULL"),
    [SORT_P90] = QUANTILES("0.9", "p90_time", "p90_put_time", "p90_get_time"),
    [SORT_P99] = QUANTILES("0.99", "p99_time", "p99_put_time", "p99_get_time"),
    [SORT_MAX] = { "max_time", LONGER("max_put_time", "max_get_time"), "max_time", "max_value" },
    [SORT_COUNT] = { "num_tasks", "num_items", "num_spans", "num_updates" },
    [SORT_TOTAL] = { "busy_time", LONGER("put_time", "get_time"), "total_time", "increase" },
    [SORT_FAILURES] = { "num_failures", NULL, NULL, NULL },
    [SORT_RATE] = { "num_tasks / " TASK_LIFE, "num_items / " QUEUE_LIFE, "num_spans / elapsed",
                    "increase / known_time" },
    [SORT_BUSY] = { "busy_time / " SLOT_TIME, "occupied_time / " QUEUE_LIFE, "total_time", NULL },
};

/* What is not known is sorted as 0. NULL = in the order of the keys. */
static const char *order_of(weir_subject subject, char text[400])
{
    const char *term = subject == WEIR_SUBJECT_STAGE || subject == WEIR_SUBJECT_FLOW ? sort_terms[settings.sort].tasks
                       : subject == WEIR_SUBJECT_QUEUE   ? sort_terms[settings.sort].queues
                       : subject == WEIR_SUBJECT_SPAN    ? sort_terms[settings.sort].spans
                       : subject == WEIR_SUBJECT_COUNTER ? sort_terms[settings.sort].counters
                                                         : NULL;
    snprintf(text, 400, "coalesce(%s, 0)", term ? term : "NULL");
    return settings.sort == SORT_NONE ? NULL : text;
}

/* -- groups */

static metric_keys keys_of(unsigned by, weir_subject subject, weir_recording *recording)
{
    bool by_phase = by & BY_PHASES, by_mode = by & BY_MODES;
    return (metric_keys){
        .run = by & (WEIR_BY_RUN | WEIR_BY_LAP),
        .node = by & WEIR_BY_NODE,
        .time = by & (WEIR_BY_TIME | WEIR_BY_LAP),
        .steps = by_phase || by & (WEIR_BY_STEP | WEIR_BY_LAP),
        .mode = by_mode || by & WEIR_BY_LAP,
        .phase = by_phase || by & WEIR_BY_LAP,
        .share = (by_phase || by_mode) && !(by & WEIR_BY_LAP),
        .name = true,
        .kind = weir_subject_has_kinds(subject),
        .recording = by & WEIR_BY_LAP ? recording : NULL,
    };
}

enum { DEFAULT_TOP = 10 }; /* of sorted laps */

static weir_grouping grouping_for(weir_subject subject, const char *order_by)
{
    bool by_lap = settings.by & WEIR_BY_LAP;
    return (weir_grouping){ .by = by_lap ? WEIR_BY_LAP : WEIR_BY_NAME | (settings.by & ~BY_SUBJECTS),
                            .subjects = 1u << subject,
                            .bin_ns = (int64_t)(settings.bin_s * 1e9),
                            .bin_steps = settings.bin_steps,
                            .order_by = order_by,
                            .reverse = settings.reverse,
                            .limit = by_lap && !settings.top ? DEFAULT_TOP : settings.top };
}

static void note_few_values(const tool_call *call, const weir_total_list *list)
{
    bool has_few = false;
    for (size_t i = 0; i < list->count; i++)
        has_few |= metric_has_few_values(&list->all[i]);
    if (has_few && tool_format(call) == TABLE_TEXT)
        metric_put_few_note();
}

static int query_groups(const tool_call *call, weir_recording *recording, const weir_filter *filter,
                        weir_subject subject, int64_t *count, weir_error *error)
{
    char order_by[400];
    table_column columns[METRIC_MAX_COLUMNS];
    weir_totals totals;
    weir_grouping grouping = grouping_for(subject, order_of(subject, order_by));
    metric_keys keys = keys_of(settings.by, subject, recording);
    int status = weir_totals_read(recording, filter, &grouping, &totals, error);
    if (status != WEIR_OK)
        return status;
    const weir_total_list *list = &totals.of[subject];
    table *t = metric_table_begin(stdout, tool_format(call), columns, subject, &keys);
    for (size_t i = 0; i < list->count; i++)
        metric_put_row(t, &keys, &list->all[i]);
    table_end_alone(t);
    note_few_values(call, list);
    *count = (int64_t)list->count;
    weir_totals_free(&totals);
    return WEIR_OK;
}

/* -- laps in the order of time, one by one */

typedef struct lap_printing {
    table *t;
    metric_keys keys;
    int64_t num_laps;
    bool has_few;
} lap_printing;

static int put_lap(void *self, const weir_record *record, weir_error *error)
{
    lap_printing *p = self;
    weir_total total = weir_total_of_lap(&record->lap);
    (void)error;
    p->num_laps++;
    p->has_few |= metric_has_few_values(&total);
    metric_put_row(p->t, &p->keys, &total);
    return WEIR_OK;
}

/* The records of laps, or of a list. */
static weir_filter cut_filter(const weir_filter *filter)
{
    weir_filter cut = *filter;
    cut.descending = settings.reverse;
    cut.limit = settings.top;
    return cut;
}

static int query_laps(const tool_call *call, weir_recording *recording, const weir_filter *filter,
                      weir_subject subject, int64_t *count, weir_error *error)
{
    table_column columns[METRIC_MAX_COLUMNS];
    weir_filter cut = cut_filter(filter);
    lap_printing p = { .keys = keys_of(WEIR_BY_LAP, subject, recording) };
    p.t = metric_table_begin(stdout, tool_format(call), columns, subject, &p.keys);
    int status = weir_recording_each(recording, weir_record_kind_of(subject), &cut, put_lap, &p, error);
    table_end_alone(p.t);
    if (p.has_few && tool_format(call) == TABLE_TEXT)
        metric_put_few_note();
    *count = p.num_laps;
    return status;
}

/* -- the statement */

static int put_sql(weir_recording *recording, const weir_filter *filter, weir_subject subject, weir_error *error)
{
    char order_by[400];
    weir_totals totals = { 0 };
    weir_query *query = NULL;
    weir_grouping grouping = grouping_for(subject, order_of(subject, order_by));
    weir_filter cut = cut_filter(filter);
    bool is_sum = settings.list < 0 && (!(settings.by & WEIR_BY_LAP) || settings.sort != SORT_NONE);
    weir_record_kind kind = settings.list < 0 ? weir_record_kind_of(subject) : record_table_kind(settings.list);
    int status = is_sum ? weir_totals_read(recording, filter, &grouping, &totals, error)
                        : weir_query_begin(recording, kind, &cut, &query, error);
    if (status == WEIR_OK && weir_recording_lacks(recording))
        puts("-- For the file that weir merge makes of this one: SPDL's tables lack columns that are read here.");
    if (status == WEIR_OK)
        printf("%s;\n", weir_recording_sql(recording));
    weir_query_end(query);
    weir_totals_free(&totals);
    return status;
}

/* -- the subcommand */

static int check_settings(const tool_call *call)
{
    const unsigned by = settings.by, phases = by & BY_PHASES, named = by & BY_SUBJECTS;
    const bool by_function = by & BY_FUNCTION;
    const struct {
        bool is_wrong;
        const char *text;
    } checks[] = {
        { settings.bin_s > 0 && !(by & WEIR_BY_TIME), "--bin: only with --by time" },
        { settings.bin_steps > 0 && !(by & WEIR_BY_STEP), "--step-bin: only with --by step" },
        { (by & WEIR_BY_LAP) && (by & ~(WEIR_BY_LAP | BY_SUBJECTS)),
          "--by: lap can only be combined with stage, flow, queue, pool, process, machine, span or counter" },
        { phases & (phases - 1), "--by: only one of phase, job-phase and transition" },
        { (by & BY_MODES) == BY_MODES, "--by: only one of mode and mode-transition" },
        { named & (named - 1), "--by: only one of stage, flow, queue, pool, process, machine, span and counter" },
        { by_function && by != BY_FUNCTION,
          "--by: function stands alone; --name, --phase, --mode, --rank and so on select a part" },
        { by_function && (settings.sort != SORT_NONE || settings.queues),
          "--by function: the order is by samples, without --sort and --queues" },
        { settings.folded && !by_function, "--folded: only with --by function" },
        { settings.flame_graph && !by_function, "--flame-graph: only with --by function" },
        { named && settings.queues && named != BY(QUEUE),
          "--queues: cannot be combined with --by stage, flow, pool, process, machine, span or counter" },
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (checks[i].is_wrong)
            return tool_refuse(call, "%s", checks[i].text);
    return TOOL_DONE;
}

static int query_records(const tool_call *call, weir_recording *recording, const weir_filter *filter, int64_t *count,
                         weir_error *error)
{
    weir_filter cut = cut_filter(filter);
    int status = record_table(stdout, tool_format(call), settings.list, recording, &cut, count, error);
    if (tool_format(call) == TABLE_JSON && status == WEIR_OK)
        putchar('\n');
    return status;
}

static int query_functions(const tool_call *call, weir_recording *recording, const weir_filter *filter,
                           weir_error *error)
{
    const function_output how = { .form = settings.folded        ? FUNCTION_FOLDED
                                          : settings.flame_graph ? FUNCTION_FLAME_GRAPH
                                                                 : FUNCTION_TABLE,
                                  .top = settings.top,
                                  .reverse = settings.reverse,
                                  .sql = settings.sql };
    return function_report(call, recording, filter, &how, error);
}

static weir_subject subject_of(unsigned by)
{
    weir_subject subject = settings.queues ? WEIR_SUBJECT_QUEUE : WEIR_SUBJECT_STAGE;
    while (by & BY_SUBJECTS && !(by & 0x10000u << subject))
        subject++;
    return subject;
}

static int answer(const tool_call *call, weir_recording *recording, weir_filter *filter, weir_error *error)
{
    int status;
    int64_t count = 0;
    weir_subject subject = subject_of(settings.by);
    bool tells_runs = settings.by & (WEIR_BY_RUN | WEIR_BY_NODE) || settings.list == RECORD_TABLE_RUNS ||
                      settings.list == RECORD_TABLE_NODES;
    if (tells_runs && !call->shared.run_given)
        filter->run_id = WEIR_ALL_RUNS;
    if (settings.by & BY_FUNCTION)
        return query_functions(call, recording, filter, error);
    if (settings.sql)
        return put_sql(recording, filter, subject, error);
    if (settings.list >= 0)
        status = query_records(call, recording, filter, &count, error);
    else if ((settings.by & WEIR_BY_LAP) && settings.sort == SORT_NONE)
        status = query_laps(call, recording, filter, subject, &count, error);
    else
        status = query_groups(call, recording, filter, subject, &count, error);
    if (status != WEIR_OK || count)
        return status;
    return weir_error_set(
        error, WEIR_ENOTFOUND, 0, "%s",
        settings.by & WEIR_BY_STEP
            ? "no lap that matches the filters has a step; programs mark steps with weir_pipeline_mark_step()"
        : settings.by & (BY(SPAN) | BY(COUNTER))
            ? "no span or counter matches the filters; programs record them for their own code "
              "(weir/span.h); --list contents shows what was recorded"
            : tool_no_records(call));
}

const tool_command tool_query = {
    .name = "query",
    .words = "[DB]",
    .max_words = 1,
    .summary = "print metrics by stage, queue, lap, step, phase, node, run or time",
    .help =
        "Aggregates metrics by the keys of --by, and prints a row for each group. Stages are never added up: each "
        "has its own row in each group. So have queues with --by queue, pools with --by pool, and so on. The "
        "default is the last run; with --by run or node, and for the lists of runs and nodes, all runs.\n\n"
        "--by step, --by phase and --by mode need a program that marks them (weir_pipeline_mark_step, "
        "weir_pipeline_mark_phase, weir_pipeline_mark_mode), and can be combined. job-phase is loop from the first "
        "step to the end of the last one, startup before it, and finish after it; without steps, from the first item "
        "that a sink got to the last one. share is the phase's share of the time. With "
        "--by lap, nothing is aggregated: each lap is a row, with the time from the start of its run to its end, in "
        "the order of time; with --sort, the first ten laps, or as many as --top says.\n\n"
        "Columns: tasks include failed tasks; average, p50, p90, p99 and max are of successful tasks only. busy, "
        "input, thread, turn and room are the shares of the slot time in which tasks ran, or slots waited for "
        "input, for a thread, for earlier results (output in input order), and for room downstream; CPU is CPU "
        "time as a share of busy time. put is how long items waited for room in the queue, get how long the "
        "consumer waited for an item, each with its p90 and p99; occupied is the share of the time in which the "
        "queue was not empty. --json and --csv have all metrics.\n\n"
        "--by function prints where the CPU time of all threads of the process went, if the run was recorded with "
        "weir record --stacks, or by any program that records into a database with WEIR_STACKS=1 in its environment. "
        "These "
        "are samples, not calls: 99 in each second of CPU time of a thread, so time in which it waits has none. Each "
        "has the stage (or "
        "the pool, or the thread), the mode, the phase and the steps in which it was taken, so all filters select "
        "them.",
    .examples = "weir query --by stage\n"
                "# the ten minutes with the slowest decodes\n"
                "weir query run.db --name decode --by time --bin 10m --sort p99 --top 10\n"
                "# the cost of startup and finish\n"
                "weir query --by job-phase --queues --name sink\n"
                "# one line per rank of a job\n"
                "weir query job.db --by run,node --name decode --sort avg\n"
                "weir query --by lap --name decode --steps 1000:2000 --csv\n"
                "weir query --list nodes\n"
                "weir query --by function --name decode --phase train --top 20\n"
                "weir query --by function --run all --rank 3 --flame-graph > flames.svg\n"
                "# take a statement further\n"
                "weir query run.db --by phase --sql | sqlite3 -cmd '.load libweir-stats' run.db\n",
    .shared = TOOL_DB | TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .check = check_settings,
    .answer = answer,
};
