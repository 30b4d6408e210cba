/* weir failures: failures grouped by reason and folder, or a plain list for scripts. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_table.h"
#include "memory.h"
#include "record_table.h"
#include "text_escape.h"
#include "text_fill.h"
#include "tty.h"

enum { TOP_AS_TEXT = 20 };

static struct settings {
    bool list;
    bool null;
    int64_t top; /* 0 = all */
} settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("list", list, option_flag), .help = "print only the labels of the failed items, one per line" },
    { ROW("null", null, option_flag), .letter = '0', .needs = "list", .excludes = "json csv",
      .help = "with --list: end each label with a NUL instead of a newline, for xargs -0" },
    { ROW("top", top, option_count), .argument = "N",
      .help = "at most N reasons and N folders, the most frequent ones (default: 20 as text, else all)" },
    { 0 },
};

/* -- printing */

#define COUNT_COLUMNS \
    { "count", "failures", TABLE_COUNT }, \
    { \
        "share", "share", TABLE_SHARE \
    }
#define REASON_COLUMNS \
    { "status", "status", TABLE_WORDS }, { "library_code", NULL, TABLE_COUNT }, \
    { \
        "message", "message", TABLE_WORDS \
    }
#define FOLDER_COLUMN \
    { \
        "folder", "folder", TABLE_WORDS \
    }
#define EXAMPLE_COLUMN \
    { \
        "example", "for example", TABLE_WORDS \
    }

/* :text is the most groups; below 0 = all. SQLite takes the other columns from the row with the smallest id. */
#define GROUP \
    "count(*) AS count, 1.0 * count(*) / sum(count(*)) OVER () AS share, count(*) OVER () AS num_groups, min(id)," \
    " coalesce(label, '') AS example FROM failures GROUP BY "
#define REASONS \
    ", reason AS (SELECT status AS code, library_code AS code_of_library, message, weir_reason(message, label) AS " \
    "key, " GROUP "status, library_code, key ORDER BY count(*) DESC, status || ' ' || library_code || ' ' || key" \
    " LIMIT CAST(:text AS INTEGER))"
#define FOLDERS \
    ", folder AS (SELECT weir_folder(label) AS folder, " GROUP "folder ORDER BY count(*) DESC, folder" \
    " LIMIT CAST(:text AS INTEGER))"
#define OF_REASON \
    "count, share, weir_status(code), nullif(code_of_library, 0), coalesce(nullif(message, '')," \
    " weir_status_text(code)), "

/* A table of groups; behind its columns, their number before the limit. */
typedef struct group_table {
    table_column columns[8];
    int num_columns;
    const char *sql;
} group_table;

static const group_table reasons = { { COUNT_COLUMNS, REASON_COLUMNS, EXAMPLE_COLUMN },
                                     6,
                                     REASONS " SELECT " OF_REASON "example, num_groups FROM reason" };
static const group_table folders = { { COUNT_COLUMNS, FOLDER_COLUMN, EXAMPLE_COLUMN },
                                     4,
                                     FOLDERS " SELECT count, share, folder, example, num_groups FROM folder" };
/* CSV has no other way to hold both. */
static const group_table both = {
    { { "kind", NULL, TABLE_WORDS }, COUNT_COLUMNS, REASON_COLUMNS, FOLDER_COLUMN, EXAMPLE_COLUMN },
    8,
    REASONS FOLDERS " SELECT 'reason', " OF_REASON "NULL, example, 0 FROM reason UNION ALL"
                    " SELECT 'folder', count, share, NULL, NULL, NULL, folder, example, 0 FROM folder"
};

/* The groups while they are printed. */
typedef struct printing {
    const tool_call *call;
    weir_reader *reader;
    const weir_filter *filter;
    table *t;
    const group_table *groups;
    int64_t num_groups;
} printing;

/* The count, then the reason or the folder, whole; below a reason, a label. */
static void put_lines(const printing *p, const weir_row *row)
{
    enum { INDENT = 10 };
    bool is_reason = p->groups == &reasons;
    const char *words = weir_row_text(row, is_reason ? 4 : 2), *example = weir_row_text(row, is_reason ? 5 : 3);
    char *harmless = memory_get(4 * strlen(words) + 1, 1);
    weir__text_escape(words, harmless, 4 * strlen(words) + 1);
    char *text = memory_format("%s (%s%s%.1f %%)", harmless, is_reason ? weir_row_text(row, 2) : "",
                               is_reason ? ", " : "", 100 * weir_row_real(row, 1));
    printf("%8" PRId64 "  ", weir_row_int(row, 0));
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
        record_put_row(p->t, p->groups->columns, (size_t)p->groups->num_columns, row, 0);
    else
        put_lines(p, row);
    p->num_groups = weir_row_int(row, p->groups->num_columns);
    return WEIR_OK;
}

static int put_table(printing *p, const group_table *groups, weir_error *error)
{
    char top[32];
    snprintf(top, sizeof top, "%" PRId64, settings.top ? settings.top : -1);
    p->groups = groups;
    p->t = tool_format(p->call) == TABLE_TEXT
               ? NULL
               : table_begin(stdout, tool_format(p->call), groups->columns, (size_t)groups->num_columns);
    int status = weir_reader_select(p->reader, p->filter, groups->sql, top, put_group, p, error);
    table_end(p->t);
    return status;
}

/* Only text output leaves rows out by default; scripts get all. */
static int put_text(printing *p, const group_table *groups, const char *title, weir_error *error)
{
    puts(title);
    int status = put_table(p, groups, error);
    if (status == WEIR_OK && settings.top && p->num_groups > settings.top)
        printf("(and %" PRId64 " more; --top N shows N of them)\n", p->num_groups - settings.top);
    return status;
}

static int put_groups(printing *p, int64_t count, weir_error *error)
{
    int status;
    if (tool_format(p->call) == TABLE_CSV)
        return put_table(p, &both, error);
    if (tool_format(p->call) == TABLE_JSON) {
        printf("{\"failures\": %" PRId64 ", \"reasons\": ", count);
        status = put_table(p, &reasons, error);
        fputs(", \"folders\": ", stdout);
        status = status == WEIR_OK ? put_table(p, &folders, error) : status;
        puts("}");
        return status;
    }
    if (count == 0)
        return WEIR_OK;
    settings.top = settings.top ? settings.top : TOP_AS_TEXT;
    printf("%" PRId64 " %s\n\n", count, count == 1 ? "failure" : "failures");
    status = put_text(p, &reasons, "By reason:", error);
    return status == WEIR_OK ? put_text(p, &folders, "\nBy folder:", error) : status;
}

static int take_count(void *count, const weir_row *row, weir_error *error)
{
    (void)error;
    *(int64_t *)count = weir_row_int(row, 0);
    return WEIR_OK;
}

/* -- the list */

static const table_column list_columns[] = { { "label", "label", TABLE_WORDS } };

typedef struct label_list {
    table *t; /* NULL = plain text */
    int64_t *count;
} label_list;

static int put_label(void *self, const weir_record *record, weir_error *error)
{
    (void)error;
    label_list *list = self;
    const char *label = record->failure.label;
    if (!*label)
        return WEIR_OK; /* nothing that a script could use */
    ++*list->count;
    if (list->t)
        table_words(list->t, label);
    else
        printf("%s%c", label, settings.null ? '\0' : '\n');
    return WEIR_OK;
}

static int put_list(const tool_call *call, weir_reader *reader, const weir_filter *filter, int64_t *count,
                    weir_error *error)
{
    label_list list = { .count = count };
    if (tool_format(call) != TABLE_TEXT)
        list.t = table_begin(stdout, tool_format(call), list_columns, 1);
    int status = weir_reader_each(reader, WEIR_RECORD_FAILURE, filter, put_label, &list, error);
    table_end_alone(list.t);
    return status;
}

/* That nothing failed is an answer, if failures are recorded and no filter leaves them out. */
static int explain_none(const tool_call *call, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    weir_run_record run;
    if (tool_has_filter(call))
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "no failures match the filters");
    if (weir_reader_lacks(reader))
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "%s", weir_reader_lacks(reader));
    int status = weir_reader_find_run(reader, filter->run_id ? filter->run_id : WEIR_LAST_RUN, &run, error);
    if (status == WEIR_OK && tool_format(call) == TABLE_TEXT && !settings.list)
        puts("No failures.");
    return status;
}

static int answer(const tool_call *call, weir_reader *reader, weir_filter *filter, weir_error *error)
{
    printing p = { .call = call, .reader = reader, .filter = filter };
    int64_t count = 0;
    int status = settings.list ? put_list(call, reader, filter, &count, error)
                               : weir_reader_select(reader, filter, "SELECT count(*) FROM failures", NULL, take_count,
                                                    &count, error);
    if (status == WEIR_OK && !settings.list)
        status = put_groups(&p, count, error);
    return status == WEIR_OK && count == 0 ? explain_none(call, reader, filter, error) : status;
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
