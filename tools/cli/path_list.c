#include "tools/cli/path_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/redact.h"
#include "tools/cli/list_text.h"
#include "tools/cli/memory.h"

void path_list_add(path_list *list, const char *path, const char *label)
{
    list->paths = memory_grow(list->paths, list->num_paths, sizeof *list->paths);
    list->labels = memory_grow(list->labels, list->num_paths, sizeof *list->labels);
    list->windows = memory_grow(list->windows, list->num_paths, sizeof *list->windows);
    list->windows[list->num_paths] = (weir_clip_window){ 0 };
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
    free(list->windows);
    list_columns_free(&list->others);
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

/* Seconds, as nanoseconds. NULL or "" = not given, which leaves *time_ns. */
static bool read_seconds(const reading *from, const char *name, const char *text, int64_t *time_ns)
{
    enum { MAX_SECONDS = 1000000000 };
    char what[384], *end;
    if (!text || !*text)
        return true;
    double seconds = strtod(text, &end);
    if (!*end && seconds >= 0 && seconds <= MAX_SECONDS) {
        *time_ns = (int64_t)(seconds * 1e9 + 0.5);
        return true;
    }
    snprintf(what, sizeof what, "\"%.100s\" is \"%.100s\", not a number of seconds", name, text);
    return refuse(from, what);
}

/* The number of a frame. NULL or "" = not given, which leaves *frame. */
static bool read_frame(const reading *from, const char *name, const char *text, uint64_t *frame)
{
    char what[384], *end;
    if (!text || !*text)
        return true;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && errno == 0) {
        *frame = number;
        return true;
    }
    snprintf(what, sizeof what, "\"%.100s\" is \"%.100s\", not the number of a frame", name, text);
    return refuse(from, what);
}

enum { PATH, LABEL, START, END, START_FRAME, END_FRAME, NUM_NAMES };

static void list_names(const path_list_names *names, const char *list[NUM_NAMES])
{
    const char *const all[NUM_NAMES] = { names->path, names->label,       names->start,
                                         names->end,  names->start_frame, names->end_frame };
    memcpy(list, all, sizeof all);
}

static bool read_window(const reading *from, const char *const texts[NUM_NAMES], weir_clip_window *window)
{
    const char *names[NUM_NAMES];
    list_names(from->names, names);
    if (!read_seconds(from, names[START], texts[START], &window->start_ns) ||
        !read_seconds(from, names[END], texts[END], &window->end_ns) ||
        !read_frame(from, names[START_FRAME], texts[START_FRAME], &window->start_frame) ||
        !read_frame(from, names[END_FRAME], texts[END_FRAME], &window->end_frame))
        return false;
    bool has_end = texts[END] && *texts[END], has_end_frame = texts[END_FRAME] && *texts[END_FRAME];
    if ((has_end && window->end_ns <= window->start_ns) ||
        (has_end_frame && window->end_frame <= window->start_frame))
        return refuse(from, "the end is not after the start");
    bool is_both = (window->start_ns || has_end) && (window->start_frame || has_end_frame);
    return !is_both || refuse(from, "it has a start or end in seconds and in frames: only one of them is possible");
}

/* The texts of one row; all but the path may be NULL. */
static bool add_row(const reading *from, const char *const texts[NUM_NAMES])
{
    const char *path = texts[PATH], *label = texts[LABEL];
    const char *slash = strrchr(from->file, '/');
    bool is_relative = path[0] != '/' && !weir__is_url(path) && slash;
    if (!*path)
        return refuse(from, "a path is empty");
    char *joined =
        is_relative ? memory_format("%.*s/%s", (int)(slash - from->file), from->file, path) : memory_copy(path);
    path_list_add(from->list, joined, label && *label ? label : NULL);
    free(joined);
    return read_window(from, texts, &from->list->windows[from->list->num_paths - 1]);
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
        if (*line && *line != '#' && !add_row(from, (const char *const[NUM_NAMES]){ line }))
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

static bool add_cells(const reading *from, char *const cells[], int num_cells, const int columns[NUM_NAMES])
{
    const char *texts[NUM_NAMES];
    for (int i = 0; i < NUM_NAMES; i++)
        texts[i] = columns[i] >= 0 && columns[i] < num_cells ? cells[columns[i]] : NULL;
    if (!texts[PATH])
        return refuse(from, "no path in it");
    return add_row(from, texts);
}

static bool is_other(const int columns[NUM_NAMES], int column)
{
    for (int i = 0; i < NUM_NAMES; i++)
        if (columns[i] == column)
            return false;
    return true;
}

static bool check_header(reading *from, char **header, int num_columns)
{
    for (int i = 0; i < num_columns; i++)
        if (!*header[i] || find_column(header, i, header[i]) >= 0)
            return refuse(from, *header[i] ? "two columns have the same name" : "a column has no name");
    return true;
}

static bool read_csv(reading *from, char separator)
{
    const char *names[NUM_NAMES];
    int columns[NUM_NAMES];
    char *cells[MAX_COLUMNS], *header[MAX_COLUMNS];
    char what[256];
    list_names(from->names, names);
    from->line = 1;
    int num_columns = next_row(from, separator, cells);
    size_t next_line = from->line;
    from->line = 1;
    for (int i = 0; i < NUM_NAMES; i++)
        columns[i] = find_column(cells, num_columns, names[i]);
    if (columns[PATH] < 0) {
        snprintf(what, sizeof what, "no column \"%s\"%s", from->names->path,
                 from->names->is_fixed ? "" : "; name the right one with --path-column");
        return refuse(from, what);
    }
    memcpy(header, cells, sizeof header);
    if (!check_header(from, header, num_columns))
        return false;
    while (*from->next) {
        size_t line = next_line;
        from->line = line;
        int num_cells = next_row(from, separator, cells);
        next_line = from->line;
        from->line = line; /* a refusal names the line where the row begins */
        if (num_cells < 0)
            return refuse(from, "a quote is not closed, or there are too many cells");
        if (num_cells == 1 && !*cells[0])
            continue;
        if (num_cells > num_columns)
            return refuse(from, "more cells than columns");
        if (!add_cells(from, cells, num_cells, columns))
            return false;
        for (int i = 0; i < num_columns; i++)
            if (is_other(columns, i))
                list_columns_put(&from->list->others, header[i], from->list->num_paths - 1,
                                 i < num_cells ? cells[i] : NULL, false);
    }
    return true;
}

/* ---- JSON: SQLite reads it ------------------------------------------------------------------------------------- */

/* The user's keys of an object. */
static void add_keys(const reading *from, sqlite3_stmt *keys, const char *object)
{
    sqlite3_bind_text(keys, 1, object, -1, SQLITE_TRANSIENT);
    while (sqlite3_step(keys) == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(keys, 2);
        bool is_word = strcmp(type, "text") == 0 || strcmp(type, "object") == 0 || strcmp(type, "array") == 0;
        list_columns_put(&from->list->others, (const char *)sqlite3_column_text(keys, 0), from->list->num_paths - 1,
                         (const char *)sqlite3_column_text(keys, 1), is_word);
    }
    sqlite3_reset(keys);
}

/* An array of objects or strings. */
static bool read_array(const reading *from, sqlite3_stmt *each, sqlite3_stmt *keys, const char *json)
{
    int code;
    sqlite3_bind_text(each, 1, json, -1, SQLITE_STATIC);
    while ((code = sqlite3_step(each)) == SQLITE_ROW) {
        const char *texts[NUM_NAMES];
        for (int i = 0; i < NUM_NAMES; i++)
            texts[i] = (const char *)sqlite3_column_text(each, i);
        if (!texts[PATH])
            return refuse(from, "an element has no path: name its key with --path-column");
        if (!add_row(from, texts))
            return false;
        add_keys(from, keys, (const char *)sqlite3_column_text(each, NUM_NAMES));
    }
    sqlite3_reset(each);
    return code == SQLITE_DONE || refuse(from, "not a JSON array of objects or strings");
}

static bool read_json_lines(reading *from, sqlite3_stmt *each, sqlite3_stmt *keys)
{
    bool is_read = true;
    for (char *line; is_read && (line = strsep(&from->next, "\n"));) {
        char *array = line[strspn(line, " \t\r")] ? sqlite3_mprintf("[%s]", line) : NULL;
        from->line++;
        is_read = !array || read_array(from, each, keys, array);
        sqlite3_free(array);
    }
    return is_read;
}

static void bind_names(sqlite3_stmt *statement, const path_list_names *names)
{
    const char *list[NUM_NAMES];
    list_names(names, list);
    for (int i = 0; i < NUM_NAMES; i++)
        sqlite3_bind_text(statement, i + 2, list[i], -1, SQLITE_STATIC);
}

static bool read_json(reading *from, bool is_lines)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *each = NULL, *keys = NULL;
    static const char sql[] =
        "WITH row(type, value, key) AS (SELECT type, CASE type WHEN 'object' THEN value ELSE '{}' END,"
        " CASE type WHEN 'text' THEN value END FROM json_each(?1))"
        " SELECT coalesce(key, json_extract(value, '$.\"' || ?2 || '\"')), json_extract(value, '$.\"' || ?3 || '\"'),"
        " json_extract(value, '$.\"' || ?4 || '\"'), json_extract(value, '$.\"' || ?5 || '\"'),"
        " json_extract(value, '$.\"' || ?6 || '\"'), json_extract(value, '$.\"' || ?7 || '\"'),"
        " value FROM row";
    static const char keys_sql[] =
        "SELECT key, value, type FROM json_each(?1) WHERE key <> '' AND key NOT IN (?2, ?3, ?4, ?5, ?6, ?7)";
    bool is_read = sqlite3_open(":memory:", &db) == SQLITE_OK &&
                   sqlite3_prepare_v2(db, sql, -1, &each, NULL) == SQLITE_OK &&
                   sqlite3_prepare_v2(db, keys_sql, -1, &keys, NULL) == SQLITE_OK;
    if (is_read) {
        bind_names(each, from->names);
        bind_names(keys, from->names);
        is_read = is_lines ? read_json_lines(from, each, keys) : read_array(from, each, keys, from->next);
    } else {
        refuse(from, "SQLite was built without JSON");
    }
    sqlite3_finalize(each);
    sqlite3_finalize(keys);
    sqlite3_close(db);
    return is_read;
}

/* Is the first line "path,start" or the like? A name of a file would have to be just that. */
static bool has_header(const char *text, const char *path_column)
{
    const char *end = text + strcspn(text, "\r\n");
    size_t length = strlen(path_column), num_cells = 0;
    bool has_path = false;
    for (const char *cell = text; cell <= end; num_cells++) {
        size_t bytes = strcspn(cell, ",\r\n");
        bool is_quoted = bytes == length + 2 && *cell == '"';
        has_path |= (bytes == length || is_quoted) && strncmp(cell + is_quoted, path_column, length) == 0;
        cell += bytes + 1;
    }
    return has_path && num_cells > 1;
}

static const char *extension_of(const char *file)
{
    const char *dot = strrchr(file, '.');
    return dot ? dot : "";
}

static const char byte_order_mark[] = "\xef\xbb\xbf"; /* spreadsheets write it */

static const char *skip_mark(const char *text)
{
    size_t length = sizeof byte_order_mark - 1;
    return strncmp(text, byte_order_mark, length) == 0 ? text + length : text;
}

bool path_list_has_columns(const char *text, const char *file, const path_list_names *names)
{
    static const char *const extensions[] = { ".csv", ".tsv", ".json", ".jsonl" };
    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++)
        if (strcmp(extension_of(file), extensions[i]) == 0)
            return true;
    return has_header(skip_mark(text), names->path);
}

bool path_list_read_text(char *text, const char *file, const path_list_names *names, path_list *list,
                         char problem[512])
{
    const char *extension = extension_of(file);
    reading from = { .names = names, .list = list, .file = file, .problem = problem, .next = text };
    bool is_read;
    *list = (path_list){ 0 };
    *problem = '\0';
    from.next += skip_mark(text) - text;
    if (strcmp(extension, ".csv") == 0)
        is_read = read_csv(&from, ',');
    else if (strcmp(extension, ".tsv") == 0)
        is_read = read_csv(&from, '\t');
    else if (strcmp(extension, ".json") == 0 || strcmp(extension, ".jsonl") == 0)
        is_read = read_json(&from, strcmp(extension, ".jsonl") == 0);
    else if (has_header(from.next, names->path))
        is_read = read_csv(&from, ',');
    else
        is_read = read_lines(&from);
    from.line = 0;
    list_columns_end(&list->others, list->num_paths);
    return is_read && (list->num_paths > 0 || refuse(&from, "no path in it"));
}

bool path_list_read(const char *file, const path_list_names *names, path_list *list, char problem[512])
{
    *list = (path_list){ 0 };
    char *text = read_text(file, problem);
    bool is_read = text && path_list_read_text(text, file, names, list, problem);
    free(text);
    return is_read;
}
