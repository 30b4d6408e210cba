/*
 * weir slowest: the items that took longest. item_stats holds all items or a sample. Without it, failures are known
 * one by one, but of the successful items only the longest time of each lap.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/memory.h"
#include "tools/commands/command_table.h"
#include "tools/view/record_table.h"

static struct settings {
    int64_t top;
    int kind;
    int sort;
} settings = { .top = 10 };

enum { SORT_TIME, SORT_DAMAGE = 8 };
static const char *const sort_words[] = { "time",  "open",   "demux",     "decode", "scale",
                                          "bytes", "frames", "per-frame", "damage", NULL };

static const char *const sort_terms[] = { "elapsed",
                                          "open_time",
                                          "demux_time",
                                          "decode_time",
                                          "scale_time",
                                          "size_bytes",
                                          "num_frames",
                                          "elapsed / nullif(max(num_frames, 0), 0)",
                                          "num_missing + num_errors" };

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
    { "elapsed", "time", TABLE_TIME },       { "label", "label", TABLE_WORDS },
    { "kind", "kind", TABLE_WORDS },         { "name", "stage", TABLE_WORDS },
    { "open_time", "open", TABLE_TIME },     { "demux_time", "demux", TABLE_TIME },
    { "decode_time", "decode", TABLE_TIME }, { "scale_time", "scale", TABLE_TIME },
    { "num_frames", "frames", TABLE_COUNT }, { "size_bytes", "bytes", TABLE_BYTES },
    { "codec", "codec", TABLE_WORDS },       { "width", "width", TABLE_COUNT },
    { "height", "height", TABLE_COUNT },     { "timestamp", "ended", TABLE_WHEN },
    { "num_missing", "lost", TABLE_COUNT },  { "num_errors", "errors", TABLE_COUNT },
    { "run_id", "run", TABLE_COUNT },        { "seq", NULL, TABLE_COUNT },
    { "parts", "parts", TABLE_WORDS },
};

/* What is to be sorted by, for items; whether there are items, failures and laps; whether laps stand in for missing items;
   how many rows. Of equal ones, items come before failures. */
#define SQL_OF_ROWS \
    ", item AS NOT MATERIALIZED (SELECT *, %s AS value FROM items WHERE value > 0)," \
    " best AS MATERIALIZED (SELECT value, part, id FROM (SELECT value, 1 AS part, id FROM item WHERE %d" \
    " UNION ALL SELECT elapsed, 2, id FROM failures WHERE elapsed > 0 AND %d" \
    " UNION ALL SELECT max_time, 3, id FROM tasks WHERE max_time > 0 AND (%d OR (%d AND NOT EXISTS (SELECT 1 FROM " \
    "item))))" \
    " ORDER BY value DESC, part, id LIMIT %" PRId64 ")," \
    " found AS (SELECT b.value, b.part, b.id, elapsed, label, 'item', name, nullif(open_time, 0)," \
    " nullif(demux_time, 0), nullif(decode_time, 0), nullif(scale_time, 0), nullif(num_frames, 0)," \
    " nullif(size_bytes, 0), codec, nullif(width, 0), nullif(height, 0), timestamp, nullif(num_missing, 0)," \
    " nullif(num_errors, 0), run_id, seq, parts FROM best b CROSS JOIN items i ON i.id = b.id WHERE part = 1" \
    " UNION ALL SELECT b.value, b.part, b.id, elapsed, label, 'failure', name, " NONE_OF_3 ", " NONE_OF_3 ", ''," \
    " NULL, NULL, timestamp, NULL, NULL, run_id, seq, '' FROM best b CROSS JOIN failures f ON f.id = b.id WHERE " \
    "part = 2" \
    " UNION ALL SELECT b.value, b.part, b.id, max_time, '', 'lap', name, " NONE_OF_3 ", " NONE_OF_3 ", ''," \
    " NULL, NULL, timestamp, NULL, NULL, run_id, NULL, '' FROM best b CROSS JOIN tasks t ON t.id = b.id WHERE part " \
    "= 3)" \
    " SELECT * FROM found ORDER BY value DESC, part, id"
#define NONE_OF_3 "NULL, NULL, NULL"

enum { BEFORE_COLUMNS = 3, KIND = BEFORE_COLUMNS + 2 };

typedef struct printing {
    table *t;
    bool has_laps;
} printing;

static int put_slow(void *self, const weir_row *row, weir_error *error)
{
    printing *p = self;
    (void)error;
    p->has_laps |= strcmp(weir_row_text(row, KIND), "lap") == 0;
    record_put_row(p->t, TABLE_COLUMNS(columns), row, BEFORE_COLUMNS);
    return WEIR_OK;
}

static int check_settings(const tool_call *call)
{
    if (settings.sort != SORT_TIME && settings.kind != KIND_ALL && settings.kind != KIND_ITEMS)
        return tool_refuse(call, "--sort: failures and laps can only be sorted by time");
    return TOOL_DONE;
}

static int answer(const tool_call *call, weir_recording *recording, weir_filter *filter, weir_error *error)
{
    printing p = { .t = table_begin(stdout, tool_format(call), TABLE_COLUMNS(columns)) };
    bool is_text = tool_format(call) == TABLE_TEXT;
    bool is_all = settings.kind == KIND_ALL, by_time = settings.sort == SORT_TIME;
    char *sql = memory_format(SQL_OF_ROWS, sort_terms[settings.sort], is_all || settings.kind == KIND_ITEMS,
                              by_time && (is_all || settings.kind == KIND_FAILURES), settings.kind == KIND_LAPS,
                              by_time && is_all, settings.top);
    int status = weir_recording_query(recording, filter, sql, NULL, put_slow, &p, error);
    bool is_empty = table_rows(p.t) == 0;
    table_end_alone(p.t);
    if (status == WEIR_OK && is_text && p.has_laps && is_all)
        puts("\nOf successful tasks only the longest of each lap is known:\n this run has not recorded its items\n"
             " (item_stats; in C: weir_sqlite_item_hook()).");
    free(sql);
    if (status != WEIR_OK || !is_empty)
        return status;
    return weir_error_set(
        error, WEIR_ENOTFOUND, 0, "%s",
        weir_recording_lacks(recording) ? weir_recording_lacks(recording)
        : settings.sort == SORT_DAMAGE  ? "no item that was recorded (item_stats) has damage"
        : settings.sort != SORT_TIME
            ? "no item that was recorded (item_stats) has this figure; without --sort, the longest are listed"
        : settings.kind == KIND_ITEMS ? "no items were recorded (item_stats); try --of laps or --of failures"
                                      : tool_no_records(call));
}

const tool_command tool_slowest = {
    .name = "slowest",
    .words = "[DB]",
    .max_words = 1,
    .summary = "print the items that took longest",
    .help = "Prints the items that took longest, with codec, size and frames if these are known. Failed items are "
            "always recorded; others only if they are in the table item_stats: weir record stores the slowest of "
            "each lap, or all with --all-items. Without item_stats, laps are shown instead of the items that "
            "succeeded: each with the time of its longest task, and no label.\n\n"
            "open, demux, decode and scale show where an item's time went, if its stage reports it.\n\n"
            "The default is the last run.",
    .examples = "weir slowest --top 20\n"
                "weir slowest --sort per-frame\n"
                "weir slowest --of failures --json\n",
    .shared = TOOL_DB | TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .check = check_settings,
    .answer = answer,
};
