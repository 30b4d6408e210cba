/*
 * weir slowest: the items that took longest. item_stats knows them all, or a sample; without it, failures are known one
 * by one, and of the successes only how long the longest of each lap took.
 */
#include "commands.h"

static struct settings {
    int64_t top;
    int kind;
} settings = { .top = 10 };

enum { KIND_ALL, KIND_ITEMS, KIND_FAILURES, KIND_LAPS };
static const char *const kind_words[] = { "all", "items", "failures", "laps", NULL };

#define AT(field) offsetof(struct settings, field)

static const option_row rows[] = {
    { .name = "top", .argument = "N", .kind = &option_count, .offset = AT(top), .help = "how many (default 10)" },
    { .name = "of",
      .argument = "WHAT",
      .kind = &option_choice,
      .offset = AT(kind),
      .choices = kind_words,
      .help = "items (of item_stats), failures, laps (by their longest task), or all (the default): items and "
              "failures, and laps only where there are no items" },
    { 0 },
};

/* -- one table for all: what is not known stays empty */

static const table_column columns[] = {
    { "elapsed", "time", TABLE_TIME },      { "kind", "of", TABLE_WORDS },
    { "timestamp", "ended", TABLE_WHEN },   { "run_id", "run", TABLE_COUNT },
    { "name", "stage", TABLE_WORDS },       { "seq", NULL, TABLE_COUNT },
    { "codec", "codec", TABLE_WORDS },      { "width", "width", TABLE_COUNT },
    { "height", "height", TABLE_COUNT },    { "num_frames", "frames", TABLE_COUNT },
    { "size_bytes", "bytes", TABLE_BYTES }, { "decode_time", "decode", TABLE_TIME },
    { "label", "label", TABLE_WORDS },
};

/* All-zero and NULL is not known; counts and times below 0, too. */
typedef struct slow {
    double elapsed, timestamp;
    const char *kind;
    int64_t run_id, seq;
    const char *name, *label;
    const weir_item_record *item; /* NULL = it is none */
} slow;

static void put_known(table *t, const weir_item_record *item, int64_t count)
{
    if (item && count >= 0)
        table_count(t, count);
    else
        table_nothing(t);
}

static void put_row(table *t, const slow *row)
{
    const weir_item_record *item = row->item;
    table_number(t, row->elapsed);
    table_words(t, row->kind);
    table_number(t, row->timestamp);
    table_count(t, row->run_id);
    table_words(t, row->name);
    if (row->seq >= 0)
        table_count(t, row->seq);
    else
        table_nothing(t);
    table_words(t, item ? item->codec : "");
    put_known(t, item, item ? item->width : -1);
    put_known(t, item, item ? item->height : -1);
    put_known(t, item, item ? item->num_frames : -1);
    put_known(t, item, item ? item->size_bytes : -1);
    if (item && item->decode_time >= 0)
        table_number(t, item->decode_time);
    else
        table_nothing(t);
    table_words(t, row->label);
}

/* -- the candidates: one list of each kind, the longest first, merged as they come */

typedef struct list {
    weir_query *query;
    bool has_row;
    slow row;
} list;

enum { NUM_LISTS = 3 };

static slow row_of(const weir_record *record)
{
    switch (record->kind) {
    case WEIR_RECORD_ITEM:
        return (slow){ record->item.elapsed, record->item.timestamp, "item",
                       record->item.run_id,  record->item.seq,       record->item.name,
                       record->item.label,   &record->item };
    case WEIR_RECORD_FAILURE:
        return (slow){ record->failure.elapsed,
                       record->failure.timestamp,
                       "failure",
                       record->failure.run_id,
                       record->failure.seq,
                       record->failure.name,
                       record->failure.label,
                       NULL };
    default:
        return (slow){
            record->task.max_time, record->task.timestamp, "lap", record->task.run_id, -1, record->task.name, "", NULL
        };
    }
}

static int advance(list *l, weir_error *error)
{
    const weir_record *record;
    int status = l->query ? weir_query_next(l->query, &record, error) : WEIR_EOF;
    l->has_row = status == WEIR_OK;
    if (l->has_row)
        l->row = row_of(record);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static int begin_list(list *l, weir_reader *reader, weir_record_kind kind, const weir_filter *filter,
                      weir_error *error)
{
    int status = weir_query_begin(reader, kind, filter, &l->query, error);
    return status == WEIR_OK ? advance(l, error) : status;
}

static int begin_lists(list lists[NUM_LISTS], weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    int status = WEIR_OK;
    if (settings.kind == KIND_ALL || settings.kind == KIND_ITEMS)
        status = begin_list(&lists[0], reader, WEIR_RECORD_ITEM, filter, error);
    if (status == WEIR_OK && (settings.kind == KIND_ALL || settings.kind == KIND_FAILURES))
        status = begin_list(&lists[1], reader, WEIR_RECORD_FAILURE, filter, error);
    if (status == WEIR_OK && (settings.kind == KIND_LAPS || (settings.kind == KIND_ALL && !lists[0].has_row)))
        status = begin_list(&lists[2], reader, WEIR_RECORD_TASK, filter, error);
    return status;
}

/* The one whose row took longest; NULL = none has any left. A lap without a success has nothing to tell. */
static list *longest(list lists[NUM_LISTS])
{
    list *best = NULL;
    for (int i = 0; i < NUM_LISTS; i++)
        if (lists[i].has_row && (!best || lists[i].row.elapsed > best->row.elapsed))
            best = &lists[i];
    return best && best->row.elapsed > 0 ? best : NULL;
}

static int put_longest(table *t, list lists[NUM_LISTS], weir_error *error)
{
    list *next;
    int status = WEIR_OK;
    for (int64_t i = 0; i < settings.top && status == WEIR_OK && (next = longest(lists)); i++) {
        put_row(t, &next->row);
        status = advance(next, error);
    }
    return status;
}

static int answer(const tool_call *call, weir_reader *reader, weir_filter *filter, size_t *count, bool *has_items,
                  weir_error *error)
{
    list lists[NUM_LISTS] = { { .query = NULL } };
    filter->longest_first = true;
    filter->limit = settings.top;
    int status = begin_lists(lists, reader, filter, error);
    *has_items = lists[0].has_row;
    if (status == WEIR_OK) {
        table *t = table_begin(stdout, tool_format(call), columns, sizeof columns / sizeof columns[0]);
        status = put_longest(t, lists, error);
        *count = table_rows(t);
        table_end_alone(t);
    }
    for (int i = 0; i < NUM_LISTS; i++)
        weir_query_end(lists[i].query);
    return status;
}

static int run(tool_call *call)
{
    weir_reader *reader;
    weir_filter filter;
    weir_error error = { 0 };
    size_t count = 0;
    bool has_items;
    int exit_status = tool_open(call, call->words[0], &reader, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    int status = answer(call, reader, &filter, &count, &has_items, &error);
    weir_reader_close(reader);
    if (status != WEIR_OK)
        return tool_fail(call, &error);
    exit_status = tool_finish(call);
    if (exit_status == TOOL_DONE && count == 0)
        return tool_nothing(call,
                            settings.kind == KIND_ITEMS
                                ? "no items were recorded (item_stats); --of laps or --of failures may know more"
                                : TOOL_NO_LAPS);
    if (count && !has_items && settings.kind == KIND_ALL && tool_format(call) == TABLE_TEXT)
        puts("\nOf tasks that succeeded only the longest of each lap is known: this run has not recorded its items "
             "(item_stats).");
    return tool_finish(call);
}

const tool_command tool_slowest = {
    .name = "slowest",
    .words = "DB",
    .min_words = 1,
    .summary = "the items that took longest",
    .help =
        "Prints the items that took longest, with codec, size and frames where they are known. Items are known one "
        "by one where the run has recorded them (item_stats); failed ones always. Without item_stats, laps stand "
        "in for the items that succeeded: each with the time of its longest task, and no label.\n\n"
        "Without --run it is the last run.",
    .examples = "weir slowest pipeline_stats.db --top 20\n"
                "weir slowest pipeline_stats.db --of failures --json\n",
    .shared = TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
