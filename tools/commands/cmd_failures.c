/* weir failures: failures grouped by reason and folder, or a plain list for scripts. */
#include <inttypes.h>
#include <stdio.h>

#include "command_table.h"

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

/* The columns of both tables. CSV has no other way to hold both: there they are one table. */
static const table_column all_columns[] = {
    { "kind", NULL, TABLE_WORDS },         { "count", "failures", TABLE_COUNT },
    { "share", "share", TABLE_SHARE },     { "status", "status", TABLE_WORDS },
    { "library_code", NULL, TABLE_COUNT }, { "message", "message", TABLE_WORDS },
    { "folder", "folder", TABLE_WORDS },   { "example", "for example", TABLE_WORDS },
};

enum { NUM_COLUMNS = sizeof all_columns / sizeof all_columns[0] };
enum { OF_REASONS = 1, OF_FOLDERS = 2 }; /* or-ed */

static bool has_column(int tables, size_t column)
{
    return column == 0   ? tables == (OF_REASONS | OF_FOLDERS)
           : column < 3  ? true
           : column < 6  ? tables & OF_REASONS
           : column == 6 ? tables & OF_FOLDERS
                         : true;
}

enum { COUNT, WHOLE, NUM_GROUPS, FIRST, STATUS, CODE, MESSAGE, LABEL, KEY };

#define GROUPS(key) \
    "count(*), sum(count(*)) OVER (), count(*) OVER (), min(t.id), t.status, t.library_code, t.message, " \
    "t.label, " key " AS key" /* SQLite takes status to key from the row with the smallest id */

static const struct {
    const char *columns, *end;
} groupings[] = {
    [OF_REASONS] = { GROUPS("weir_reason(t.message, t.label)"),
                     " GROUP BY t.status, t.library_code, key"
                     " ORDER BY count(*) DESC, t.status || ' ' || t.library_code || ' ' || key LIMIT " },
    [OF_FOLDERS] = { GROUPS("weir_folder(t.label)"), " GROUP BY key ORDER BY count(*) DESC, key LIMIT " },
};

/* The groups while they are printed. */
typedef struct printing {
    const tool_call *call;
    weir_reader *reader;
    const weir_filter *filter;
    table *t;
    int tables, which; /* of the table; of the row */
    int64_t whole, num_groups;
} printing;

/* One row of a table that holds `tables`. */
static int put_row(void *self, const weir_row *row, weir_error *error)
{
    (void)error;
    printing *p = self;
    bool is_reason = p->which == OF_REASONS;
    int status = (int)weir_row_int(row, STATUS);
    const char *message = weir_row_text(row, MESSAGE);
    p->whole = weir_row_int(row, WHOLE);
    p->num_groups = weir_row_int(row, NUM_GROUPS);
    if (has_column(p->tables, 0))
        table_words(p->t, is_reason ? "reason" : "folder");
    table_count(p->t, weir_row_int(row, COUNT));
    table_number(p->t, (double)weir_row_int(row, COUNT) / (double)p->whole);
    for (size_t column = 3; column < 6; column++)
        if (!has_column(p->tables, column))
            continue;
        else if (!is_reason || (column == 4 && !weir_row_int(row, CODE)))
            table_nothing(p->t);
        else if (column == 4)
            table_count(p->t, weir_row_int(row, CODE));
        else
            table_words(p->t, column == 3 ? weir_status_name(status) : *message ? message : weir_status_text(status));
    if (has_column(p->tables, 6) && is_reason)
        table_nothing(p->t);
    else if (has_column(p->tables, 6))
        table_words(p->t, weir_row_text(row, KEY));
    table_words(p->t, weir_row_text(row, LABEL));
    return WEIR_OK;
}

static int put_tables(printing *p, int tables, weir_error *error)
{
    table_column columns[NUM_COLUMNS];
    size_t num_columns = 0;
    int status = WEIR_OK;
    for (size_t i = 0; i < NUM_COLUMNS; i++)
        if (has_column(tables, i))
            columns[num_columns++] = all_columns[i];
    p->tables = tables;
    p->t = table_begin(stdout, tool_format(p->call), columns, num_columns);
    for (p->which = OF_REASONS; p->which <= OF_FOLDERS && status == WEIR_OK; p->which++) {
        char end[200];
        snprintf(end, sizeof end, "%s%" PRId64, groupings[p->which].end, settings.top ? settings.top : -1);
        if (tables & p->which)
            status = weir_reader_select(p->reader, WEIR_RECORD_FAILURE, p->filter, groupings[p->which].columns, end,
                                        put_row, p, error);
    }
    table_end(p->t);
    return status;
}

/* Only text output leaves rows out by default; scripts get all. */
static int put_text(printing *p, int tables, const char *title, weir_error *error)
{
    puts(title);
    int status = put_tables(p, tables, error);
    if (status == WEIR_OK && settings.top && p->num_groups > settings.top)
        printf("(and %" PRId64 " more; --top N shows N of them)\n", p->num_groups - settings.top);
    return status;
}

static int put_groups(printing *p, int64_t count, weir_error *error)
{
    int status;
    if (tool_format(p->call) == TABLE_CSV)
        return put_tables(p, OF_REASONS | OF_FOLDERS, error);
    if (tool_format(p->call) == TABLE_JSON) {
        printf("{\"failures\": %" PRId64 ", \"reasons\": ", count);
        status = put_tables(p, OF_REASONS, error);
        fputs(", \"folders\": ", stdout);
        status = status == WEIR_OK ? put_tables(p, OF_FOLDERS, error) : status;
        puts("}");
        return status;
    }
    if (count == 0)
        return WEIR_OK;
    settings.top = settings.top ? settings.top : TOP_AS_TEXT;
    printf("%" PRId64 " %s\n\n", count, count == 1 ? "failure" : "failures");
    status = put_text(p, OF_REASONS, "By reason:", error);
    return status == WEIR_OK ? put_text(p, OF_FOLDERS, "\nBy folder:", error) : status;
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
                               : weir_reader_select(reader, WEIR_RECORD_FAILURE, filter, "count(*)", "", take_count,
                                                    &count, error);
    if (status == WEIR_OK && !settings.list)
        status = put_groups(&p, count, error);
    return status == WEIR_OK && count == 0 ? explain_none(call, reader, filter, error) : status;
}

const tool_command tool_failures = {
    .name = "failures",
    .words = "DB",
    .min_words = 1,
    .summary = "print failures by reason and by folder",
    .help = "Groups the failed tasks by reason (weir's status, the library's own code, and the message without "
            "numbers and label) and by the folder of the label, the most frequent first, each with its first message "
            "or label as an example. The default is the last run.\n\n"
            "--list prints only the labels, in the order in which they failed, for scripts. weir query --list "
            "failures has every column of every failure.\n\n"
            "Exit status 3 means that no failure matches the filters. Without filters, no failures are a result like "
            "others: the exit status is 0.",
    .examples = "weir failures pipeline_stats.db\n"
                "# move what could not be decoded out of the way\n"
                "weir failures pipeline_stats.db --list --null | xargs -0r mv -t broken/\n"
                "weir failures pipeline_stats.db --name decode --json\n",
    .shared = TOOL_FILTER | TOOL_FORMAT,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .answer = answer,
};
