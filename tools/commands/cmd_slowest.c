/*
 * weir slowest: the items that took longest. item_stats holds all items or a sample. Without it, failures are known
 * one by one, but of the successful items only the longest time of each lap.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_table.h"
#include "each_record.h"
#include "key_count.h"

static struct settings {
    int64_t top;
    int kind;
    int sort;
} settings = { .top = 10 };

enum { SORT_TIME, SORT_OPEN, SORT_DEMUX, SORT_DECODE, SORT_SCALE, SORT_BYTES, SORT_FRAMES, SORT_PER_FRAME };
static const char *const sort_words[] = { "time",  "open",   "demux",     "decode", "scale",
                                          "bytes", "frames", "per-frame", NULL };

enum { KIND_ALL, KIND_ITEMS, KIND_FAILURES, KIND_LAPS };
static const char *const kind_words[] = { "all", "items", "failures", "laps", NULL };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("top", top, option_count), .argument = "N", .help = "print at most N rows (default 10)" },
    { ROW("of", kind, option_choice), .argument = "WHAT", .choices = kind_words,
      .help = "items (from item_stats), failures, laps (by their longest task), or all (the default): items and "
              "failures, and laps only if there are no items" },
    { ROW("sort", sort, option_choice), .argument = "KEY", .choices = sort_words,
      .help = "sort by total time (default), open, demux, decode or scale time, bytes, frames, or time per-frame, "
              "largest first; all but time work for items only" },
    { 0 },
};

/* -- one table for all kinds; unknown values are empty */

static const table_column columns[] = {
    { "elapsed", "time", TABLE_TIME },      { "kind", "of", TABLE_WORDS },
    { "timestamp", "ended", TABLE_WHEN },   { "run_id", "run", TABLE_COUNT },
    { "name", "stage", TABLE_WORDS },       { "seq", NULL, TABLE_COUNT },
    { "codec", "codec", TABLE_WORDS },      { "width", "width", TABLE_COUNT },
    { "height", "height", TABLE_COUNT },    { "num_frames", "frames", TABLE_COUNT },
    { "size_bytes", "bytes", TABLE_BYTES }, { "open_time", "open", TABLE_TIME },
    { "demux_time", "demux", TABLE_TIME },  { "decode_time", "decode", TABLE_TIME },
    { "scale_time", "scale", TABLE_TIME },  { "label", "label", TABLE_WORDS },
};

/* Zero, NULL, and counts and times below 0 mean unknown. */
typedef struct slow {
    int64_t run_ns, unix_ns;
    const char *kind;
    int64_t run_id, seq;
    const char *name, *label;
    const weir_item_record *item; /* NULL = not an item */
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
    table_duration(t, row->run_ns);
    table_words(t, row->kind);
    table_when(t, row->unix_ns);
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
    table_duration(t, item ? item->open_ns : -1);
    table_duration(t, item ? item->demux_ns : -1);
    table_duration(t, item ? item->decode_ns : -1);
    table_duration(t, item ? item->scale_ns : -1);
    table_words(t, row->label);
}

/* -- formats: codec and size, and how common these are among all recorded items */

static int count_format(key_count *formats, const weir_item_record *item, weir_error *error)
{
    char format[160] = "";
    bool is_new;
    if (item->width > 0 && item->height > 0)
        snprintf(format, sizeof format, "%.100s%s%" PRId64 "x%" PRId64, item->codec, *item->codec ? " " : "",
                 item->width, item->height);
    else
        snprintf(format, sizeof format, "%.100s", item->codec);
    if (key_count_add(formats, *format ? format : "unknown", &is_new))
        return WEIR_OK;
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

static int count_record(void *self, const weir_record *record, weir_error *error)
{
    return count_format(self, &record->item, error);
}

static int64_t count_of(const key_count *formats, const char *format)
{
    int64_t sum = 0;
    for (size_t i = 0; i < formats->count; i++)
        if (!format || strcmp(formats->entries[i].key, format) == 0)
            sum += formats->entries[i].count;
    return sum;
}

static void put_formats(key_count *shown, const key_count *all)
{
    static const table_column format_columns[] = {
        { "format", "codec and size", TABLE_WORDS }, { "shown", "these", TABLE_COUNT },
        { "shown_share", "share", TABLE_SHARE },     { "all", "all recorded", TABLE_COUNT },
        { "all_share", "share", TABLE_SHARE },
    };
    double num_shown = (double)count_of(shown, NULL), num_all = (double)count_of(all, NULL);
    key_count_sort(shown);
    puts("\nHow common these formats are among all recorded items:");
    table *t = table_begin(stdout, TABLE_TEXT, format_columns, sizeof format_columns / sizeof format_columns[0]);
    for (size_t i = 0; i < shown->count; i++) {
        int64_t of_all = count_of(all, shown->entries[i].key);
        table_words(t, shown->entries[i].key);
        table_count(t, shown->entries[i].count);
        table_number(t, (double)shown->entries[i].count / num_shown);
        table_count(t, of_all);
        table_number(t, (double)of_all / num_all);
    }
    table_end(t);
}

/* Only in text output: scripts can use the columns, and weir query --list items. */
static int tell_formats(key_count *shown, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    key_count all = { .count = 0 };
    weir_filter whole = *filter;
    whole.longest_first = false;
    whole.limit = 0;
    int status = weir_each_record(reader, WEIR_RECORD_ITEM, &whole, count_record, &all, error);
    if (status == WEIR_OK && all.count > 1)
        put_formats(shown, &all);
    key_count_free(&all);
    return status;
}

/* -- the candidates: one list per kind, the longest first, merged while reading */

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
        return (slow){ record->item.run_ns, record->item.unix_ns, "item",       record->item.run_id, record->item.seq,
                       record->item.name,   record->item.label,   &record->item };
    case WEIR_RECORD_FAILURE:
        return (slow){
            record->failure.run_ns, record->failure.unix_ns, "failure", record->failure.run_id, record->failure.seq,
            record->failure.name,   record->failure.label,   NULL
        };
    default:
        return (slow){ record->lap.metrics.task.max_ns,
                       record->lap.end_unix_ns,
                       "lap",
                       record->lap.run_id,
                       -1,
                       record->lap.name,
                       "",
                       NULL };
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

/* The candidate whose row took longest; NULL = none left. Laps without a success are skipped. */
static list *longest(list lists[NUM_LISTS])
{
    list *best = NULL;
    for (int i = 0; i < NUM_LISTS; i++)
        if (lists[i].has_row && (!best || lists[i].row.run_ns > best->row.run_ns))
            best = &lists[i];
    return best && best->row.run_ns > 0 ? best : NULL;
}

static int put_longest(table *t, list lists[NUM_LISTS], key_count *formats, weir_error *error)
{
    list *next;
    int status = WEIR_OK;
    for (int64_t i = 0; i < settings.top && status == WEIR_OK && (next = longest(lists)); i++) {
        put_row(t, &next->row);
        if (next->row.item)
            status = count_format(formats, next->row.item, error);
        if (status == WEIR_OK)
            status = advance(next, error);
    }
    return status;
}

/* -- orders other than time: reads every item, and keeps the first ones */

static double sort_value(const weir_item_record *item)
{
    switch (settings.sort) {
    case SORT_OPEN: return (double)item->open_ns;
    case SORT_DEMUX: return (double)item->demux_ns;
    case SORT_DECODE: return (double)item->decode_ns;
    case SORT_SCALE: return (double)item->scale_ns;
    case SORT_BYTES: return (double)item->size_bytes;
    case SORT_FRAMES: return (double)item->num_frames;
    case SORT_PER_FRAME: return item->num_frames > 0 ? (double)item->run_ns / (double)item->num_frames : -1;
    default: return (double)item->run_ns;
    }
}

typedef struct kept_item {
    double value;
    weir_item_record item; /* with copies of its texts */
} kept_item;

/* The first items in sort order. */
typedef struct first_items {
    kept_item *all;
    size_t count, most;
} first_items;

static void forget(kept_item *kept)
{
    free((void *)(uintptr_t)kept->item.name);
    free((void *)(uintptr_t)kept->item.label);
    free((void *)(uintptr_t)kept->item.codec);
}

static int keep(void *self, const weir_record *record, weir_error *error)
{
    first_items *first = self;
    const weir_item_record *item = &record->item;
    kept_item kept = { sort_value(item), *item };
    size_t at = first->count;
    if (kept.value < 0 || (at == first->most && kept.value <= first->all[at - 1].value))
        return WEIR_OK; /* unknown, or not among the first */
    kept.item.name = strdup(item->name);
    kept.item.label = strdup(item->label);
    kept.item.codec = strdup(item->codec);
    if (at == first->most)
        forget(&first->all[--at]);
    for (; at > 0 && first->all[at - 1].value < kept.value; at--)
        first->all[at] = first->all[at - 1];
    first->all[at] = kept;
    first->count += first->count < first->most;
    bool is_complete = kept.item.name && kept.item.label && kept.item.codec;
    return is_complete ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

static int put_sorted(const tool_call *call, weir_reader *reader, weir_filter *filter, size_t *count,
                      weir_error *error)
{
    first_items first = { .all = calloc((size_t)settings.top, sizeof *first.all), .most = (size_t)settings.top };
    if (!first.all)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int status = weir_each_record(reader, WEIR_RECORD_ITEM, filter, keep, &first, error);
    table *t = table_begin(stdout, tool_format(call), columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < first.count; i++) {
        const weir_item_record *item = &first.all[i].item;
        if (status == WEIR_OK)
            put_row(t, &(slow){ item->run_ns, item->unix_ns, "item", item->run_id, item->seq, item->name, item->label,
                                item });
        forget(&first.all[i]);
    }
    table_end_alone(t);
    free(first.all);
    *count = first.count;
    return status;
}

static int put_by_time(const tool_call *call, weir_reader *reader, weir_filter *filter, size_t *count,
                       weir_error *error)
{
    list lists[NUM_LISTS] = { { .query = NULL } };
    key_count formats = { .count = 0 };
    filter->longest_first = true;
    filter->limit = settings.top;
    int status = begin_lists(lists, reader, filter, error);
    bool has_items = lists[0].has_row, as_text = tool_format(call) == TABLE_TEXT;
    if (status == WEIR_OK) {
        table *t = table_begin(stdout, tool_format(call), columns, sizeof columns / sizeof columns[0]);
        status = put_longest(t, lists, &formats, error);
        *count = table_rows(t);
        table_end_alone(t);
    }
    if (status == WEIR_OK && formats.count && as_text)
        status = tell_formats(&formats, reader, filter, error);
    if (status == WEIR_OK && *count && !has_items && settings.kind == KIND_ALL && as_text)
        puts("\nOf tasks that succeeded only the longest of each lap is known:\n this run has not recorded its items "
             "(item_stats).");
    key_count_free(&formats);
    for (int i = 0; i < NUM_LISTS; i++)
        weir_query_end(lists[i].query);
    return status;
}

static int check_settings(const tool_call *call)
{
    if (settings.sort != SORT_TIME && settings.kind != KIND_ALL && settings.kind != KIND_ITEMS)
        return tool_refuse(call, "--sort: failures and laps can only be sorted by time");
    return TOOL_DONE;
}

static int answer(const tool_call *call, weir_reader *reader, weir_filter *filter, weir_error *error)
{
    size_t count = 0;
    int status = (settings.sort == SORT_TIME ? put_by_time : put_sorted)(call, reader, filter, &count, error);
    if (status != WEIR_OK || count)
        return status;
    return weir_error_set(error, WEIR_ENOTFOUND, 0, "%s",
                          settings.kind == KIND_ITEMS || settings.sort != SORT_TIME
                              ? "no items were recorded (item_stats); try --of laps or --of failures"
                              : TOOL_NO_LAPS);
}

const tool_command tool_slowest = {
    .name = "slowest",
    .words = "DB",
    .min_words = 1,
    .summary = "print the items that took longest",
    .help = "Prints the items that took longest, with codec, size and frames if these are known. Failed items are "
            "always recorded; others only if the run recorded them (item_stats). Without item_stats, laps are shown "
            "instead of the items that succeeded: each with the time of its longest task, and no label.\n\n"
            "open, demux, decode and scale show where an item's time went, if its stage reports it. A second table "
            "shows how common these codecs and sizes are among all recorded items: whether, for example, slow files "
            "are mostly 4K.\n\n"
            "The default is the last run.",
    .examples = "weir slowest pipeline_stats.db --top 20\n"
                "weir slowest pipeline_stats.db --sort per-frame\n"
                "weir slowest pipeline_stats.db --of failures --json\n",
    .shared = TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .check = check_settings,
    .answer = answer,
};
