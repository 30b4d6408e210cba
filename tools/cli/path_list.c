#include "path_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "list_text.h"
#include "memory.h"

void path_list_add(path_list *list, const char *path, const char *label)
{
    list->paths = memory_grow(list->paths, list->num_paths, sizeof *list->paths);
    list->labels = memory_grow(list->labels, list->num_paths, sizeof *list->labels);
    list->paths[list->num_paths] = memory_copy(path);
    list->labels[list->num_paths++] = label ? memory_copy(label) : NULL;
}

void path_list_free(path_list *list)
{
    for (size_t i = 0; i < list->num_paths; i++) {
        free(list->paths[i]);
        free(list->labels[i]);
    }
    free(list->paths);
    free(list->labels);
    *list = (path_list){ 0 };
}

/* ---- shared by all formats ------------------------------------------------------------------------------------- */

typedef struct reading {
    const path_list_names *names;
    path_list *list;
    const char *file;
    char *problem;
    char *next; /* of the text, which is changed while it is read */
    size_t line;
} reading;

static bool refuse(const reading *from, const char *what)
{
    if (from->line)
        snprintf(from->problem, 512, "%s, line %zu: %s", from->file, from->line, what);
    else
        snprintf(from->problem, 512, "%s: %s", from->file, what);
    return false;
}

static bool add(const reading *from, const char *path, const char *label)
{
    const char *slash = strrchr(from->file, '/');
    bool is_relative = path[0] != '/' && !strstr(path, "://") && slash;
    if (!*path)
        return refuse(from, "a path is empty");
    char *joined =
        is_relative ? memory_format("%.*s/%s", (int)(slash - from->file), from->file, path) : memory_copy(path);
    path_list_add(from->list, joined, label);
    free(joined);
    return true;
}

/* An index keeps only paths and labels. */
static bool refuse_column(const reading *from, const char *name)
{
    char what[384];
    snprintf(what, sizeof what,
             "\"%.200s\" is neither the path nor the label, and an index keeps no other column: remove it, or name "
             "it with --label-column",
             name);
    return refuse(from, what);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* An index has one clip for each path. */
static bool refuse_repeats(const reading *from)
{
    size_t num_paths = from->list->num_paths;
    char **sorted = memory_grow(NULL, 0, sizeof *sorted);
    bool is_fine = true;
    for (size_t i = 0; i < num_paths; i++) {
        sorted = memory_grow(sorted, i, sizeof *sorted);
        sorted[i] = from->list->paths[i];
    }
    qsort(sorted, num_paths, sizeof *sorted, compare_paths);
    for (size_t i = 1; is_fine && i < num_paths; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0) {
            char what[384];
            snprintf(what, sizeof what,
                     "%.200s is in several rows, and an index has one clip for each file: keep one row", sorted[i]);
            is_fine = refuse(from, what);
        }
    free(sorted);
    return is_fine;
}

static char *read_text(const char *file, char problem[512])
{
    char what[256];
    FILE *in = fopen(file, "rb");
    snprintf(what, sizeof what, "%s", strerror(errno));
    char *text = in ? list_text_read(in, what) : NULL;
    if (!text)
        snprintf(problem, 512, "cannot read %s: %s", file, what);
    if (in)
        fclose(in);
    return text;
}

/* ---- a path in each line --------------------------------------------------------------------------------------- */

static bool read_lines(reading *from)
{
    for (char *line; (line = strsep(&from->next, "\n"));) {
        from->line++;
        line[strcspn(line, "\r")] = '\0';
        if (*line && *line != '#' && !add(from, line, NULL))
            return false;
    }
    return true;
}

/* ---- CSV (RFC 4180) -------------------------------------------------------------------------------------------- */

enum { MAX_COLUMNS = 256 };

/* The next cell, terminated in place. *is_last: it is the last of its row. NULL: a quote is not closed. */
static char *next_cell(reading *from, char separator, bool *is_last)
{
    char *start = from->next;
    char *to = start;
    bool is_quoted = *start == '"';
    char *at = start + is_quoted;
    for (;; at++) {
        if (*at == '\0')
            break;
        if (is_quoted && *at == '"' && at[1] == '"')
            at++;
        else if (is_quoted && *at == '"') {
            is_quoted = false;
            continue;
        } else if (!is_quoted && (*at == separator || *at == '\n' || (*at == '\r' && at[1] == '\n')))
            break;
        from->line += *at == '\n';
        *to++ = *at;
    }
    if (is_quoted)
        return NULL;
    at += *at == '\r';
    *is_last = *at != separator;
    from->line += *at == '\n';
    from->next = *at ? at + 1 : at;
    *to = '\0';
    return start;
}

/* Returns how many cells there are, or -1. */
static int next_row(reading *from, char separator, char *cells[MAX_COLUMNS])
{
    bool is_last = false;
    int num_cells = 0;
    while (!is_last && num_cells < MAX_COLUMNS) {
        cells[num_cells] = next_cell(from, separator, &is_last);
        if (!cells[num_cells++])
            return -1;
    }
    return is_last ? num_cells : -1;
}

static int find_column(char *const cells[], int num_cells, const char *name)
{
    for (int i = 0; i < num_cells; i++)
        if (strcmp(cells[i], name) == 0)
            return i;
    return -1;
}

static bool read_csv(reading *from, char separator)
{
    char *cells[MAX_COLUMNS];
    char what[256];
    from->line = 1;
    int num_names = next_row(from, separator, cells);
    int path = num_names > 0 ? find_column(cells, num_names, from->names->path) : -1;
    int label = num_names > 0 ? find_column(cells, num_names, from->names->label) : -1;
    if (path < 0) {
        snprintf(what, sizeof what, "no column \"%s\"; name the right one with --path-column", from->names->path);
        return refuse(from, what);
    }
    for (int i = 0; i < num_names; i++)
        if (i != path && i != label)
            return refuse_column(from, cells[i]);
    while (*from->next) {
        int num_cells = next_row(from, separator, cells);
        if (num_cells < 0)
            return refuse(from, "a quote is not closed, or there are too many cells");
        if (num_cells == 1 && !*cells[0])
            continue;
        if (num_cells > num_names)
            return refuse(from, "more cells than columns");
        if (num_cells <= path)
            return refuse(from, "no path in it");
        if (!add(from, cells[path], label >= 0 && label < num_cells && *cells[label] ? cells[label] : NULL))
            return false;
    }
    return true;
}

/* ---- JSON: SQLite reads it ------------------------------------------------------------------------------------- */

/* An array of objects or strings. */
static bool read_array(const reading *from, sqlite3_stmt *each, const char *json)
{
    int code;
    sqlite3_bind_text(each, 1, json, -1, SQLITE_STATIC);
    while ((code = sqlite3_step(each)) == SQLITE_ROW) {
        const char *path = (const char *)sqlite3_column_text(each, 0);
        if (!path)
            return refuse(from, "an element has no path: name its key with --path-column");
        if (sqlite3_column_type(each, 2) != SQLITE_NULL)
            return refuse_column(from, (const char *)sqlite3_column_text(each, 2));
        if (!add(from, path, (const char *)sqlite3_column_text(each, 1)))
            return false;
    }
    sqlite3_reset(each);
    return code == SQLITE_DONE || refuse(from, "not a JSON array of objects or strings");
}

static bool read_json_lines(reading *from, sqlite3_stmt *each)
{
    bool is_read = true;
    for (char *line; is_read && (line = strsep(&from->next, "\n"));) {
        char *array = line[strspn(line, " \t\r")] ? sqlite3_mprintf("[%s]", line) : NULL;
        from->line++;
        is_read = !array || read_array(from, each, array);
        sqlite3_free(array);
    }
    return is_read;
}

static bool read_json(reading *from, bool is_lines)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *each = NULL;
    static const char sql[] =
        "SELECT CASE type WHEN 'object' THEN json_extract(value, '$.\"' || ?2 || '\"') WHEN 'text' THEN value END,"
        " CASE type WHEN 'object' THEN json_extract(value, '$.\"' || ?3 || '\"') END,"
        " CASE type WHEN 'object' THEN (SELECT item.key FROM json_each(list.value) AS item"
        "  WHERE item.key NOT IN (?2, ?3) LIMIT 1) END FROM json_each(?1) AS list";
    bool is_read =
        sqlite3_open(":memory:", &db) == SQLITE_OK && sqlite3_prepare_v2(db, sql, -1, &each, NULL) == SQLITE_OK;
    if (is_read) {
        sqlite3_bind_text(each, 2, from->names->path, -1, SQLITE_STATIC);
        sqlite3_bind_text(each, 3, from->names->label, -1, SQLITE_STATIC);
        is_read = is_lines ? read_json_lines(from, each) : read_array(from, each, from->next);
    } else {
        refuse(from, "SQLite was built without JSON");
    }
    sqlite3_finalize(each);
    sqlite3_close(db);
    return is_read;
}

bool path_list_read(const char *file, const path_list_names *names, path_list *list, char problem[512])
{
    const char *dot = strrchr(file, '.');
    char *text = read_text(file, problem);
    reading from = { .names = names, .list = list, .file = file, .problem = problem, .next = text };
    *list = (path_list){ 0 };
    if (!text)
        return false;
    *problem = '\0';
    bool is_read = dot && strcmp(dot, ".csv") == 0     ? read_csv(&from, ',')
                   : dot && strcmp(dot, ".tsv") == 0   ? read_csv(&from, '\t')
                   : dot && strcmp(dot, ".json") == 0  ? read_json(&from, false)
                   : dot && strcmp(dot, ".jsonl") == 0 ? read_json(&from, true)
                                                       : read_lines(&from);
    from.line = 0;
    if (is_read && list->num_paths == 0)
        is_read = refuse(&from, "no path in it");
    is_read = is_read && refuse_repeats(&from);
    free(text);
    return is_read;
}
