/* weir failures: failures grouped by reason and folder, or a plain list for scripts. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command_table.h"
#include "each_record.h"
#include "format.h"
#include "key_count.h"

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

/* -- grouping */

typedef struct grouping {
    key_count reasons, folders;
    int64_t count;
} grouping;

/*
 * The common part of failures with one reason: status, code, and the message without the label and numbers, which
 * differ from item to item. The caller frees it; NULL = out of memory.
 */
static char *reason_of(const weir_failure_record *failure)
{
    char *key = NULL;
    size_t size, label_bytes = strlen(failure->label);
    FILE *out = open_memstream(&key, &size);
    if (!out)
        return NULL;
    fprintf(out, "%d %d ", failure->status, failure->library_code);
    for (const char *c = failure->message; *c;) {
        if (label_bytes && strncmp(c, failure->label, label_bytes) == 0) {
            fputc('*', out);
            c += label_bytes;
        } else if (isdigit((unsigned char)*c)) {
            fputc('#', out);
            c += strspn(c, "0123456789");
        } else
            fputc(*c++, out);
    }
    if (fclose(out) == 0)
        return key;
    free(key);
    return NULL;
}

/* "/data/clips" of "/data/clips/a.mp4"; "" for a label without a folder. Freed by the caller; NULL: no memory. */
static char *folder_of(const char *label)
{
    const char *slash = strrchr(label, '/');
    if (slash == label && slash)
        return strdup("/");
    return slash ? strndup(label, (size_t)(slash - label)) : strdup("");
}

/* Takes ownership of the key. */
static bool add(key_count *counts, char *key, const weir_failure_record *failure)
{
    bool is_new;
    key_count_entry *entry = key ? key_count_add(counts, key, &is_new) : NULL;
    free(key);
    if (!entry || !is_new)
        return entry;
    entry->status = failure->status;
    entry->library_code = failure->library_code;
    entry->example = strdup(failure->label);
    entry->second = strdup(*failure->message ? failure->message : weir_status_text(failure->status));
    return entry->example && entry->second;
}

static int group(void *self, const weir_record *record, weir_error *error)
{
    grouping *groups = self;
    groups->count++;
    const weir_failure_record *failure = &record->failure;
    if (add(&groups->reasons, reason_of(failure), failure) &&
        add(&groups->folders, folder_of(failure->label), failure))
        return WEIR_OK;
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

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

static size_t num_shown(const key_count *t)
{
    return settings.top && (size_t)settings.top < t->count ? (size_t)settings.top : t->count;
}

/* One row of a table that holds `tables`. */
static void put_row(table *t, int tables, int which, const key_count_entry *entry, int64_t whole)
{
    bool is_reason = which == OF_REASONS, is_one = entry->second; /* not the others */
    if (has_column(tables, 0))
        table_words(t, is_reason ? "reason" : "folder");
    table_count(t, entry->count);
    table_number(t, (double)entry->count / (double)whole);
    for (size_t column = 3; column < 6; column++)
        if (!has_column(tables, column))
            continue;
        else if (!is_reason || (column == 4 && !entry->library_code))
            table_nothing(t);
        else if (column == 4)
            table_count(t, entry->library_code);
        else if (column == 3)
            table_words(t, is_one ? weir_status_name(entry->status) : "");
        else
            table_words(t, is_one ? entry->second : KEY_COUNT_OTHERS);
    if (has_column(tables, 6) && is_reason)
        table_nothing(t);
    else if (has_column(tables, 6))
        table_words(t, entry->key);
    table_words(t, entry->example ? entry->example : "");
}

static void put_tables(const tool_call *call, const grouping *groups, int tables)
{
    table_column columns[NUM_COLUMNS];
    size_t num_columns = 0;
    for (size_t i = 0; i < NUM_COLUMNS; i++)
        if (has_column(tables, i))
            columns[num_columns++] = all_columns[i];
    table *t = table_begin(stdout, tool_format(call), columns, num_columns);
    for (int which = OF_REASONS; which <= OF_FOLDERS; which++) {
        const key_count *counts = which == OF_REASONS ? &groups->reasons : &groups->folders;
        for (size_t i = 0; tables & which && i < num_shown(counts); i++)
            put_row(t, tables, which, &counts->entries[i], groups->count);
    }
    table_end(t);
}

/* Only text output leaves rows out by default; scripts get all. */
static void say_rest(const key_count *t)
{
    if (num_shown(t) < t->count)
        printf("(and %zu more; --top N shows N of them)\n", t->count - num_shown(t));
}

static void put_groups(const tool_call *call, grouping *groups)
{
    key_count_sort(&groups->reasons);
    key_count_sort(&groups->folders);
    if (tool_format(call) == TABLE_TEXT && settings.top == 0)
        settings.top = TOP_AS_TEXT;
    switch (tool_format(call)) {
    case TABLE_JSON:
        printf("{\"failures\": %" PRId64 ", \"reasons\": ", groups->count);
        put_tables(call, groups, OF_REASONS);
        fputs(", \"folders\": ", stdout);
        put_tables(call, groups, OF_FOLDERS);
        puts("}");
        break;
    case TABLE_CSV: put_tables(call, groups, OF_REASONS | OF_FOLDERS); break;
    default:
        if (groups->count == 0)
            break;
        printf("%" PRId64 " %s\n\nBy reason:\n", groups->count, groups->count == 1 ? "failure" : "failures");
        put_tables(call, groups, OF_REASONS);
        say_rest(&groups->reasons);
        puts("\nBy folder:");
        put_tables(call, groups, OF_FOLDERS);
        say_rest(&groups->folders);
    }
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
    int status = weir_each_record(reader, WEIR_RECORD_FAILURE, filter, put_label, &list, error);
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
    grouping groups = { .count = 0 };
    int status;
    if (settings.list)
        status = put_list(call, reader, filter, &groups.count, error);
    else
        status = weir_each_record(reader, WEIR_RECORD_FAILURE, filter, group, &groups, error);
    if (status == WEIR_OK && !settings.list)
        put_groups(call, &groups);
    if (status == WEIR_OK && groups.count == 0)
        status = explain_none(call, reader, filter, error);
    key_count_free(&groups.reasons);
    key_count_free(&groups.folders);
    return status;
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
