/* weir failures: failures grouped by reason and folder, or a plain list for scripts. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text_escape.h"
#include "common/text_fill.h"
#include "tools/cli/memory.h"
#include "tools/cli/tty.h"
#include "tools/commands/command_table.h"
#include "tools/view/record_table.h"

enum { TOP_AS_TEXT = 20 };

static struct settings {
    bool list;
    bool null;
    int64_t top; /* 0 = all */
} settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("list", list, option_flag), .excludes = "json csv",
      .help = "print only the labels of the failed items, one per line" },
    { ROW("null", null, option_flag), .letter = '0', .needs = "list",
      .help = "with --list: end each label with a NUL instead of a newline, for xargs -0" },
    { ROW("top", top, option_count), .argument = "N",
      .help = "at most N reasons and N folders, the most frequent ones (default: 20 as text, else all)" },
    { 0 },
};

/* -- the groups */

/* CSV has all columns; a table of reasons has those from the status to the example, one of folders those from the count
   on. */
enum { KIND, STATUS, CODE, MESSAGE, COUNT, SHARE, EXAMPLE, FOLDER, NUM_COLUMNS, NUM_GROUPS = NUM_COLUMNS };
static const table_column columns[NUM_COLUMNS] = {
    { "kind", NULL, TABLE_WORDS },    { "status", NULL, TABLE_WORDS }, { "library_code", NULL, TABLE_COUNT },
    { "message", NULL, TABLE_WORDS }, { "count", NULL, TABLE_COUNT },  { "share", NULL, TABLE_SHARE },
    { "example", NULL, TABLE_WORDS }, { "folder", NULL, TABLE_WORDS },
};

/* :text is {"kind": "reason", "folder" or "" for both, "top": the most groups of each, below 0 = all}. Behind the columns is
   the number of groups before the limit. SQLite takes the columns that are not grouped from the row with the smallest id. */
static const char sql_of_groups[] =
    ", failure AS (SELECT *, weir_reason(message, label) AS reason, weir_folder(label) AS folder FROM failures),"
    " by_reason AS (SELECT 'reason' AS kind, weir_status(status), nullif(library_code, 0),"
    " coalesce(nullif(message, ''), weir_status_text(status)), count(*) AS count,"
    " 1.0 * count(*) / sum(count(*)) OVER (), coalesce(label, ''), NULL, count(*) OVER (), min(id) FROM failure"
    " GROUP BY status, library_code, reason"
    " ORDER BY count DESC, status || ' ' || library_code || ' ' || reason LIMIT :text ->> '$.top'),"
    " by_folder AS (SELECT 'folder' AS kind, NULL, NULL, NULL, count(*) AS count,"
    " 1.0 * count(*) / sum(count(*)) OVER (), coalesce(label, ''), folder, count(*) OVER (), min(id) FROM failure"
    " GROUP BY folder ORDER BY count DESC, folder LIMIT :text ->> '$.top')"
    " SELECT * FROM by_reason WHERE :text ->> '$.kind' <> 'folder'"
    " UNION ALL SELECT * FROM by_folder WHERE :text ->> '$.kind' <> 'reason'";

/* The groups while they are printed. */
typedef struct printing {
    const tool_call *call;
    weir_recording *recording;
    const weir_filter *filter;
    table *t;       /* NULL = as text */
    int first, end; /* columns of the table */
    int64_t num_groups;
} printing;

/* The count, then the reason or the folder, whole; below a reason, a label. */
static void put_lines(const weir_row *row)
{
    enum { INDENT = 10 };
    bool is_reason = weir_row_is_null(row, FOLDER);
    const char *words = weir_row_text(row, is_reason ? MESSAGE : FOLDER), *example = weir_row_text(row, EXAMPLE);
    char *harmless = memory_get(4 * strlen(words) + 1, 1);
    weir__text_escape(words, harmless, 4 * strlen(words) + 1);
    char *text = memory_format("%s (%s%s%.1f %%)", harmless, weir_row_text(row, STATUS), is_reason ? ", " : "",
                               100 * weir_row_real(row, SHARE));
    printf("%8" PRId64 "  ", weir_row_int(row, COUNT));
    weir__text_fill(stdout, text, text + strlen(text), INDENT, INDENT, tty_width() ? (size_t)tty_width() : SIZE_MAX);
    if (is_reason && *example) {
        printf("%*s", INDENT, "");
        weir__text_escape_to(stdout, example);
        putchar('\n');
    }
    free(text);
    free(harmless);
}

static int put_group(void *self, const weir_row *row, weir_error *error)
{
    printing *p = self;
    (void)error;
    if (p->t)
        record_put_row(p->t, columns + p->first, (size_t)(p->end - p->first), row, p->first);
    else
        put_lines(row);
    p->num_groups = weir_row_int(row, NUM_GROUPS);
    return WEIR_OK;
}

/* The groups of a kind, with these columns. Only text output leaves rows out by default; scripts get all. */
static int put_table(printing *p, const char *kind, int first, int end, weir_error *error)
{
    bool is_text = tool_format(p->call) == TABLE_TEXT;
    int64_t top = settings.top ? settings.top : is_text ? TOP_AS_TEXT : -1;
    char *text = memory_format("{\"kind\": \"%s\", \"top\": %" PRId64 "}", kind, top);
    p->first = first;
    p->end = end;
    p->t = is_text ? NULL : table_begin(stdout, tool_format(p->call), columns + first, (size_t)(end - first));
    int status = weir_recording_query(p->recording, p->filter, sql_of_groups, text, put_group, p, error);
    table_end(p->t);
    free(text);
    if (status == WEIR_OK && is_text && p->num_groups > top)
        printf("(and %" PRId64 " more; --top N shows N of them)\n", p->num_groups - top);
    return status;
}

static int put_groups(printing *p, int64_t count, weir_error *error)
{
    bool is_json = tool_format(p->call) == TABLE_JSON;
    if (tool_format(p->call) == TABLE_CSV)
        return put_table(p, "", KIND, NUM_COLUMNS, error);
    if (count == 0 && !is_json)
        return WEIR_OK;
    printf(is_json ? "{\"failures\": %" PRId64 ", \"reasons\": " : "%" PRId64 " %s\n\nBy reason:\n", count,
           count == 1 ? "failure" : "failures");
    int status = put_table(p, "reason", STATUS, FOLDER, error);
    fputs(is_json ? ", \"folders\": " : "\nBy folder:\n", stdout);
    if (status == WEIR_OK)
        status = put_table(p, "folder", COUNT, NUM_COLUMNS, error);
    fputs(is_json ? "}\n" : "", stdout);
    return status;
}

static int take_count(void *count, const weir_row *row, weir_error *error)
{
    (void)error;
    *(int64_t *)count = weir_row_int(row, 0);
    return WEIR_OK;
}

/* A label is what a script could use. */
static int put_label(void *count, const weir_row *row, weir_error *error)
{
    (void)error;
    ++*(int64_t *)count;
    printf("%s%c", weir_row_text(row, 0), settings.null ? '\0' : '\n');
    return WEIR_OK;
}

/* "Nothing failed" is an answer if failures are recorded and no filter leaves them out. */
static int explain_none(const tool_call *call, weir_recording *recording, const weir_filter *filter,
                        weir_error *error)
{
    weir_run_record run;
    if (tool_has_filter(call))
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "no failures match the filters");
    if (weir_recording_lacks(recording))
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "%s", weir_recording_lacks(recording));
    int status = weir_recording_find_run(recording, filter->run_id ? filter->run_id : WEIR_LAST_RUN, &run, error);
    if (status == WEIR_OK && tool_format(call) == TABLE_TEXT && !settings.list)
        puts("No failures.");
    return status;
}

static int answer(const tool_call *call, weir_recording *recording, weir_filter *filter, weir_error *error)
{
    printing p = { .call = call, .recording = recording, .filter = filter };
    int64_t count = 0;
    const char *sql = settings.list ? "SELECT label FROM failures WHERE label <> '' ORDER BY timestamp, id"
                                    : "SELECT count(*) FROM failures";
    int status =
        weir_recording_query(recording, filter, sql, NULL, settings.list ? put_label : take_count, &count, error);
    if (status == WEIR_OK && !settings.list)
        status = put_groups(&p, count, error);
    return status == WEIR_OK && count == 0 ? explain_none(call, recording, filter, error) : status;
}

const tool_command tool_failures = {
    .name = "failures",
    .words = "[DB]",
    .max_words = 1,
    .summary = "print failures by reason and by folder",
    .help = "Groups the failed tasks by reason (weir's status, the library's own code, and the message without "
            "numbers and label) and by the folder of the label, the most frequent first, each with its first message "
            "or label as an example. The default is the last run.\n\n"
            "--list prints only the labels, in the order in which they failed, for scripts. weir query --list "
            "failures has every column of every failure.\n\n"
            "Exit status 3 means that no failure matches the filters. Without filters, no failures are a result like "
            "others: the exit status is 0.",
    .examples = "weir failures\n"
                "# move what could not be decoded out of the way\n"
                "weir failures --list --null | xargs -0r mv -t broken/\n"
                "weir failures --name decode --json\n",
    .shared = TOOL_DB | TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .answer = answer,
};
