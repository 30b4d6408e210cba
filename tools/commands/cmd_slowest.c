/*
 * weir slowest: the items that took longest. item_stats holds all items or a sample. Without it, failures are known
 * one by one, but of the successful items only the longest time of each lap.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "command_table.h"

static struct settings {
    int64_t top;
    int kind;
    int sort;
} settings = { .top = 10 };

enum {
    SORT_TIME,
    SORT_OPEN,
    SORT_DEMUX,
    SORT_DECODE,
    SORT_SCALE,
    SORT_BYTES,
    SORT_FRAMES,
    SORT_PER_FRAME,
    SORT_DAMAGE
};
static const char *const sort_words[] = { "time",  "open",   "demux",     "decode", "scale",
                                          "bytes", "frames", "per-frame", "damage", NULL };

enum { KIND_ALL, KIND_ITEMS, KIND_FAILURES, KIND_LAPS };
static const char *const kind_words[] = { "all", "items", "failures", "laps", NULL };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("top", top, option_count), .argument = "N", .help = "print at most N rows (default 10)" },
    { ROW("of", kind, option_choice), .argument = "WHAT", .choices = kind_words,
      .help = "items (from item_stats), failures, laps (by their longest task), or all (the default): items and "
              "failures, and laps only if there are no items" },
    { ROW("sort", sort, option_choice), .argument = "KEY", .choices = sort_words,
      .help =
          "sort by total time (default), open, demux, decode or scale time, bytes, frames, time per-frame, or damage "
          "(lost frames and errors; other items are left out), largest first; all but time work for items only" },
    { 0 },
};

/* -- one table for all kinds; unknown values are empty */

static const table_column columns[] = {
    { "elapsed", "time", TABLE_TIME },       { "kind", "kind", TABLE_WORDS },
    { "timestamp", "ended", TABLE_WHEN },    { "run_id", "run", TABLE_COUNT },
    { "name", "stage", TABLE_WORDS },        { "seq", NULL, TABLE_COUNT },
    { "codec", "codec", TABLE_WORDS },       { "width", "width", TABLE_COUNT },
    { "height", "height", TABLE_COUNT },     { "num_frames", "frames", TABLE_COUNT },
    { "size_bytes", "bytes", TABLE_BYTES },  { "open_time", "open", TABLE_TIME },
    { "demux_time", "demux", TABLE_TIME },   { "decode_time", "decode", TABLE_TIME },
    { "scale_time", "scale", TABLE_TIME },   { "num_missing", "lost", TABLE_COUNT },
    { "num_errors", "errors", TABLE_COUNT }, { "label", "label", TABLE_WORDS },
};

/* Counts and times below 0 mean unknown. */
typedef struct slow {
    double value; /* that the rows are sorted by */
    int64_t run_ns, unix_ns, run_id, seq;
    const char *kind;
    char *name, *label;    /* copies */
    weir_item_record item; /* its codec is a copy; of a failure and a lap, all is unknown */
} slow;

static double sort_value(const weir_item_record *item, int64_t run_ns)
{
    switch (settings.sort) {
    case SORT_OPEN: return (double)item->open_ns;
    case SORT_DEMUX: return (double)item->demux_ns;
    case SORT_DECODE: return (double)item->decode_ns;
    case SORT_SCALE: return (double)item->scale_ns;
    case SORT_BYTES: return (double)item->size_bytes;
    case SORT_FRAMES: return (double)item->num_frames;
    case SORT_PER_FRAME: return item->num_frames > 0 ? (double)run_ns / (double)item->num_frames : -1;
    case SORT_DAMAGE: {
        double damage = (double)item->num_missing + (double)item->num_errors;
        return damage > 0 ? damage : -1;
    }
    default: return run_ns > 0 ? (double)run_ns : -1; /* laps without a success have none */
    }
}

#define COMMON_FIELDS(record) \
    .run_ns = (record).run_ns, .unix_ns = (record).unix_ns, .run_id = (record).run_id, .seq = (record).seq, \
    .name = strdup((record).name), .label = strdup((record).label)

static slow row_of(const weir_record *record)
{
    static const weir_item_record unknown = { .width = -1,
                                              .height = -1,
                                              .num_frames = -1,
                                              .size_bytes = -1,
                                              .open_ns = -1,
                                              .demux_ns = -1,
                                              .decode_ns = -1,
                                              .scale_ns = -1 };
    slow row = { .kind = "lap",
                 .item = unknown,
                 .run_ns = record->lap.metrics.task.max_ns,
                 .unix_ns = record->lap.end_unix_ns,
                 .run_id = record->lap.run_id,
                 .seq = -1 };
    if (record->kind == WEIR_RECORD_ITEM)
        row = (slow){ .kind = "item", .item = record->item, COMMON_FIELDS(record->item) };
    else if (record->kind == WEIR_RECORD_FAILURE)
        row = (slow){ .kind = "failure", .item = unknown, COMMON_FIELDS(record->failure) };
    else {
        row.name = strdup(record->lap.name);
        row.label = strdup("");
    }
    row.item.codec = strdup(row.item.codec ? row.item.codec : "");
    row.value = sort_value(&row.item, row.run_ns);
    return row;
}

static void forget(slow *row)
{
    free(row->name);
    free(row->label);
    free((void *)(uintptr_t)row->item.codec);
}

static void put_known(table *t, int64_t count)
{
    if (count >= 0)
        table_count(t, count);
    else
        table_nothing(t);
}

static void put_row(table *t, const slow *row)
{
    const weir_item_record *item = &row->item;
    table_duration(t, row->run_ns);
    table_words(t, row->kind);
    table_when(t, row->unix_ns);
    table_count(t, row->run_id);
    table_words(t, row->name);
    put_known(t, row->seq);
    table_words(t, item->codec);
    put_known(t, item->width);
    put_known(t, item->height);
    put_known(t, item->num_frames);
    put_known(t, item->size_bytes);
    table_duration(t, item->open_ns);
    table_duration(t, item->demux_ns);
    table_duration(t, item->decode_ns);
    table_duration(t, item->scale_ns);
    put_known(t, item->num_missing ? item->num_missing : -1);
    put_known(t, item->num_errors ? item->num_errors : -1);
    table_words(t, row->label);
}

/* -- the first rows in sort order */

typedef struct first_rows {
    slow *all;
    size_t count;
} first_rows;

static int keep(void *self, const weir_record *record, weir_error *error)
{
    first_rows *first = self;
    slow row = row_of(record);
    size_t at = first->count, most = (size_t)settings.top;
    bool is_complete = row.name && row.label && row.item.codec;
    assert(most > 0);
    if (is_complete && (row.value < 0 || (at == most && row.value <= first->all[at - 1].value))) {
        forget(&row); /* unknown, or not among the first */
        return WEIR_OK;
    }
    slow *grown = at < most ? weir__array_grow(first->all, at, sizeof *first->all) : first->all;
    first->all = grown ? grown : first->all;
    if (!grown || !is_complete) {
        forget(&row);
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    }
    if (at == most)
        forget(&first->all[--at]);
    for (; at > 0 && first->all[at - 1].value < row.value; at--)
        first->all[at] = first->all[at - 1];
    first->all[at] = row;
    first->count += first->count < most;
    return WEIR_OK;
}

static int keep_all(weir_reader *reader, const weir_filter *filter, weir_record_kind kind, first_rows *first,
                    weir_error *error)
{
    weir_filter longest = *filter;
    longest.longest_first = settings.sort == SORT_TIME;
    longest.limit = longest.longest_first ? settings.top : 0;
    return weir_reader_each(reader, kind, &longest, keep, first, error);
}

/* -- formats: codec and size, and how common these are among all recorded items */

/* As format_of(). */
#define FORMAT_OF_ITEM \
    "coalesce(nullif(CASE WHEN t.width > 0 AND t.height > 0 THEN trim(t.codec || ' ' || t.width || 'x' || t.height)" \
    " ELSE t.codec END, ''), 'unknown')"

static void format_of(const weir_item_record *item, char format[160])
{
    snprintf(format, 160, "%.100s", *item->codec ? item->codec : "");
    if (item->width > 0 && item->height > 0)
        snprintf(format, 160, "%.100s%s%" PRId64 "x%" PRId64, item->codec, *item->codec ? " " : "", item->width,
                 item->height);
    else if (!*format)
        snprintf(format, 160, "unknown");
}

/* A format of the slowest items. */
typedef struct slow_format {
    char name[160];
    int64_t num_shown, num_all;
} slow_format;

typedef struct format_list {
    const first_rows *first;
    slow_format *all;
    size_t count;
    int64_t num_formats, num_shown, num_all; /* of all items; sums */
} format_list;

static int add_format(void *self, const weir_row *row, weir_error *error)
{
    format_list *list = self;
    slow_format format = { .num_all = weir_row_int(row, 1) };
    char other[160];
    (void)error;
    snprintf(format.name, sizeof format.name, "%s", weir_row_text(row, 0));
    for (size_t i = 0; i < list->first->count; i++) {
        format_of(&list->first->all[i].item, other);
        format.num_shown += strcmp(list->first->all[i].kind, "item") == 0 && strcmp(other, format.name) == 0;
    }
    list->num_formats++;
    list->num_all += format.num_all;
    list->num_shown += format.num_shown;
    if (format.num_shown)
        list->all[list->count++] = format; /* there is room for one of each row */
    return WEIR_OK;
}

static int compare_formats(const void *left, const void *right)
{
    const slow_format *a = left, *b = right;
    return a->num_shown != b->num_shown ? (a->num_shown < b->num_shown ? 1 : -1) : strcmp(a->name, b->name);
}

static void put_formats(const format_list *list)
{
    static const table_column format_columns[] = {
        { "format", "codec and size", TABLE_WORDS }, { "shown", "slowest", TABLE_COUNT },
        { "shown_share", "share", TABLE_SHARE },     { "all", "all recorded", TABLE_COUNT },
        { "all_share", "share", TABLE_SHARE },
    };
    qsort(list->all, list->count, sizeof *list->all, compare_formats);
    puts("\nFormats of these slowest items, and of all items that were recorded:");
    table *t = table_begin(stdout, TABLE_TEXT, TABLE_COLUMNS(format_columns));
    for (size_t i = 0; i < list->count; i++) {
        table_words(t, list->all[i].name);
        table_count(t, list->all[i].num_shown);
        table_number(t, (double)list->all[i].num_shown / (double)list->num_shown);
        table_count(t, list->all[i].num_all);
        table_number(t, (double)list->all[i].num_all / (double)list->num_all);
    }
    table_end(t);
}

/* Only in text output: scripts can use the columns, and weir query --list items. */
static int tell_formats(const first_rows *first, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    format_list list = { .first = first, .all = calloc(first->count, sizeof *list.all) };
    if (!list.all)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int status = weir_reader_select(reader, WEIR_RECORD_ITEM, filter, FORMAT_OF_ITEM " AS format, count(*)",
                                    " GROUP BY format", add_format, &list, error);
    if (status == WEIR_OK && list.num_formats > 1)
        put_formats(&list);
    free(list.all);
    return status;
}

static int put_first(const tool_call *call, weir_reader *reader, const weir_filter *filter, first_rows *first,
                     weir_error *error)
{
    int kind = settings.sort == SORT_TIME ? settings.kind : KIND_ITEMS, status = WEIR_OK;
    bool as_text = tool_format(call) == TABLE_TEXT;
    bool has_formats = false;
    if (kind == KIND_ALL || kind == KIND_ITEMS)
        status = keep_all(reader, filter, WEIR_RECORD_ITEM, first, error);
    bool has_items = first->count > 0;
    if (status == WEIR_OK && (kind == KIND_ALL || kind == KIND_FAILURES))
        status = keep_all(reader, filter, WEIR_RECORD_FAILURE, first, error);
    if (status == WEIR_OK && (kind == KIND_LAPS || (kind == KIND_ALL && !has_items)))
        status = keep_all(reader, filter, WEIR_RECORD_TASK, first, error);
    if (status != WEIR_OK)
        return status;
    table *t = table_begin(stdout, tool_format(call), TABLE_COLUMNS(columns));
    for (size_t i = 0; i < first->count; i++) {
        put_row(t, &first->all[i]);
        has_formats |= strcmp(first->all[i].kind, "item") == 0 && settings.sort == SORT_TIME;
    }
    table_end_alone(t);
    if (has_formats && as_text)
        status = tell_formats(first, reader, filter, error);
    if (status == WEIR_OK && first->count && !has_items && kind == KIND_ALL && as_text)
        puts("\nOf successful tasks only the longest of each lap is known:\n this run has not recorded its items "
             "(item_stats).");
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
    first_rows first = { .count = 0 };
    int status = put_first(call, reader, filter, &first, error);
    bool is_empty = first.count == 0;
    while (first.count > 0)
        forget(&first.all[--first.count]);
    free(first.all);
    if (status != WEIR_OK || !is_empty)
        return status;
    return weir_error_set(error, WEIR_ENOTFOUND, 0, "%s",
                          settings.sort == SORT_DAMAGE ? "no item that was recorded (item_stats) has damage"
                          : settings.kind == KIND_ITEMS || settings.sort != SORT_TIME
                              ? "no items were recorded (item_stats); try --of laps or --of failures"
                              : tool_no_records(call));
}

const tool_command tool_slowest = {
    .name = "slowest",
    .words = "DB",
    .min_words = 1,
    .summary = "print the items that took longest",
    .help = "Prints the items that took longest, with codec, size and frames if these are known. Failed items are "
            "always recorded; others only if they are in the table item_stats: weir record stores the slowest of "
            "each lap, or all with --all-items. Without item_stats, laps are shown instead of the items that "
            "succeeded: each with the time of its longest task, and no label.\n\n"
            "open, demux, decode and scale show where an item's time went, if its stage reports it. A second table "
            "compares the codecs and sizes of these items with those of all recorded items: it shows, for example, "
            "whether slow files are mostly 4K.\n\n"
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
