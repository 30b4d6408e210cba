/*
 * weir slowest: the items that took longest. item_stats holds all items or a sample. Without it, failures are known
 * one by one, but of the successful items only the longest time of each lap.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_table.h"
#include "memory.h"

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

enum { NUM_COLUMNS = sizeof columns / sizeof columns[0] };

/* In SQL: what the rows are sorted by, which must be above 0, the columns of the table, and the format. */
#define COMMON    "t.timestamp, t.run_id, t.name, "
#define UNKNOWN   "'', " NONE_OF_5 ", " NONE_OF_5 ", "
#define NONE_OF_5 "NULL, NULL, NULL, NULL, NULL"
#define FORMAT_OF_ITEM \
    "coalesce(nullif(CASE WHEN t.width > 0 AND t.height > 0 THEN trim(t.codec || ' ' || t.width || 'x' || t.height)" \
    " ELSE t.codec END, ''), 'unknown')"

static const char *const sort_terms[] = {
    "t.elapsed",
    "t.open_time",
    "t.demux_time",
    "t.decode_time",
    "t.scale_time",
    "t.size_bytes",
    "t.num_frames",
    "t.elapsed / nullif(max(t.num_frames, 0), 0)",
    "t.num_missing + t.num_errors",
};
static const char item_columns[] =
    ", t.elapsed, 'item', " COMMON "t.seq, t.codec, nullif(t.width, 0), nullif(t.height, 0), nullif(t.num_frames, 0),"
    " nullif(t.size_bytes, 0), nullif(t.open_time, 0), nullif(t.demux_time, 0), nullif(t.decode_time, 0),"
    " nullif(t.scale_time, 0), nullif(t.num_missing, 0), nullif(t.num_errors, 0), t.label, " FORMAT_OF_ITEM;
static const char failure_columns[] = ", t.elapsed, 'failure', " COMMON "t.seq, " UNKNOWN "t.label, NULL";
static const char lap_columns[] = ", t.max_time, 'lap', " COMMON "NULL, " UNKNOWN "'', NULL";

typedef struct slow {
    double value, numbers[NUM_COLUMNS];
    size_t number;            /* as it was read */
    char *words[NUM_COLUMNS]; /* of columns of words */
    char *format;             /* "" = of no item */
} slow;

/* The first rows of each kind, then of all together. */
typedef struct first_rows {
    slow *all;
    size_t count;
    bool has_items;
} first_rows;

static int keep_row(void *self, const weir_row *row, weir_error *error)
{
    first_rows *first = self;
    (void)error;
    first->all = memory_grow(first->all, first->count, sizeof *first->all);
    slow *one = &first->all[first->count];
    one->number = first->count++;
    one->value = weir_row_real(row, 0);
    for (int i = 0; i < NUM_COLUMNS; i++) {
        one->numbers[i] = weir_row_real(row, i + 1);
        one->words[i] = columns[i].kind == TABLE_WORDS ? memory_copy(weir_row_text(row, i + 1)) : NULL;
    }
    one->format = memory_copy(weir_row_text(row, NUM_COLUMNS + 1));
    return WEIR_OK;
}

static int keep_kind(weir_reader *reader, const weir_filter *filter, weir_record_kind kind, const char *term,
                     const char *kind_columns, first_rows *first, weir_error *error)
{
    char *wanted = memory_format("%s%s", term, kind_columns);
    char *end = memory_format(" AND %s > 0 ORDER BY 1 DESC, t.id LIMIT %" PRId64, term, settings.top);
    int status = weir_reader_select(reader, kind, filter, wanted, end, keep_row, first, error);
    free(wanted);
    free(end);
    return status;
}

static void forget_last(first_rows *first)
{
    slow *last = &first->all[--first->count];
    for (size_t i = 0; i < NUM_COLUMNS; i++)
        free(last->words[i]);
    free(last->format);
}

/* Of equal ones, items come before failures. */
static int compare_slow(const void *left, const void *right)
{
    const slow *a = left, *b = right;
    int order = (a->value < b->value) - (a->value > b->value);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static int read_first(weir_reader *reader, const weir_filter *filter, int kind, first_rows *first, weir_error *error)
{
    int status = WEIR_OK;
    if (kind == KIND_ALL || kind == KIND_ITEMS)
        status = keep_kind(reader, filter, WEIR_RECORD_ITEM, sort_terms[settings.sort], item_columns, first, error);
    first->has_items = first->count > 0;
    if (status == WEIR_OK && (kind == KIND_ALL || kind == KIND_FAILURES))
        status = keep_kind(reader, filter, WEIR_RECORD_FAILURE, "t.elapsed", failure_columns, first, error);
    if (status == WEIR_OK && (kind == KIND_LAPS || (kind == KIND_ALL && !first->has_items)))
        status = keep_kind(reader, filter, WEIR_RECORD_TASK, "t.max_time", lap_columns, first, error);
    if (first->count)
        qsort(first->all, first->count, sizeof *first->all, compare_slow);
    while (first->count > (size_t)settings.top)
        forget_last(first);
    return status;
}

static void put_slow(table *t, const slow *row)
{
    for (size_t i = 0; i < NUM_COLUMNS; i++)
        if (columns[i].kind == TABLE_WORDS)
            table_words(t, row->words[i]);
        else if (columns[i].kind != TABLE_COUNT || isnan(row->numbers[i]))
            table_number(t, row->numbers[i]);
        else
            table_count(t, (int64_t)row->numbers[i]);
}

/* -- formats: codec and size, and how common these are among all recorded items */

typedef struct slow_format {
    char *name;
    int64_t num_shown, num_all;
} slow_format;

typedef struct format_list {
    const first_rows *first;
    slow_format *all; /* of the slowest items */
    size_t count;
    int64_t num_formats, num_shown, num_all; /* of all items; sums */
} format_list;

static int add_format(void *self, const weir_row *row, weir_error *error)
{
    format_list *list = self;
    slow_format format = { .num_all = weir_row_int(row, 1) };
    (void)error;
    for (size_t i = 0; i < list->first->count; i++)
        format.num_shown += strcmp(list->first->all[i].format, weir_row_text(row, 0)) == 0;
    list->num_formats++;
    list->num_all += format.num_all;
    list->num_shown += format.num_shown;
    if (format.num_shown) {
        format.name = memory_copy(weir_row_text(row, 0));
        list->all = memory_grow(list->all, list->count, sizeof *list->all);
        list->all[list->count++] = format;
    }
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
    if (list->count)
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
    format_list list = { .first = first };
    int status = weir_reader_select(reader, WEIR_RECORD_ITEM, filter, FORMAT_OF_ITEM " AS format, count(*)",
                                    " GROUP BY format", add_format, &list, error);
    if (status == WEIR_OK && list.num_formats > 1)
        put_formats(&list);
    while (list.count)
        free(list.all[--list.count].name);
    free(list.all);
    return status;
}

static int put_first(const tool_call *call, weir_reader *reader, const weir_filter *filter, first_rows *first,
                     weir_error *error)
{
    int kind = settings.sort == SORT_TIME ? settings.kind : KIND_ITEMS;
    int status = read_first(reader, filter, kind, first, error);
    bool shows_items = false;
    if (status != WEIR_OK)
        return status;
    table *t = table_begin(stdout, tool_format(call), TABLE_COLUMNS(columns));
    for (size_t i = 0; i < first->count; i++) {
        put_slow(t, &first->all[i]);
        shows_items |= *first->all[i].format;
    }
    table_end_alone(t);
    if (tool_format(call) != TABLE_TEXT)
        return WEIR_OK;
    if (shows_items && settings.sort == SORT_TIME)
        status = tell_formats(first, reader, filter, error);
    if (status == WEIR_OK && first->count && !first->has_items && kind == KIND_ALL)
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
        forget_last(&first);
    free(first.all);
    if (status != WEIR_OK || !is_empty)
        return status;
    return weir_error_set(error, WEIR_ENOTFOUND, 0, "%s",
                          weir_reader_lacks(reader)      ? weir_reader_lacks(reader)
                          : settings.sort == SORT_DAMAGE ? "no item that was recorded (item_stats) has damage"
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
