#include "path_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool path_list_add(path_list *list, const char *path, const char *label)
{
    if (list->num_paths == list->max_paths) {
        size_t max_paths = list->max_paths ? list->max_paths * 2 : 1024;
        char **paths = realloc(list->paths, max_paths * sizeof *paths);
        list->paths = paths ? paths : list->paths;
        char **labels = realloc(list->labels, max_paths * sizeof *labels);
        list->labels = labels ? labels : list->labels;
        if (!paths || !labels)
            return false;
        list->max_paths = max_paths;
    }
    list->paths[list->num_paths] = strdup(path);
    list->labels[list->num_paths] = label ? strdup(label) : NULL;
    bool is_whole = list->paths[list->num_paths] && (!label || list->labels[list->num_paths]);
    list->num_paths++;
    return is_whole;
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

/* ---- what all forms share ----------------------------------------------------------------------------------------- */

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
    char *joined = NULL;
    if (!*path)
        return refuse(from, "a path is empty");
    if (is_relative && asprintf(&joined, "%.*s/%s", (int)(slash - from->file), from->file, path) < 0)
        joined = NULL;
    bool is_added = (!is_relative || joined) && path_list_add(from->list, joined ? joined : path, label);
    free(joined);
    return is_added || refuse(from, "out of memory");
}

static char *read_text(const char *file, char problem[512])
{
    FILE *in = fopen(file, "rb");
    char *text = NULL;
    size_t size = 0;
    bool is_read = in && getdelim(&text, &size, '\0', in) >= 0;
    if (!is_read && (!in || ferror(in)))
        snprintf(problem, 512, "cannot read %s: %s", file, strerror(errno));
    else if (!is_read)
        snprintf(problem, 512, "%s is empty", file);
    if (in)
        fclose(in);
    if (is_read)
        return text;
    free(text);
    return NULL;
}

/* ---- a path in each line ------------------------------------------------------------------------------------------- */

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

/* ---- CSV (RFC 4180) ------------------------------------------------------------------------------------------------ */

enum { MAX_COLUMNS = 256 };

/* The next cell, ended in place. *is_last: the row ends with it. NULL: its quotes are not closed. */
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
        snprintf(what, sizeof what, "there is no column \"%s\": name the right one with --path-column",
                 from->names->path);
        return refuse(from, what);
    }
    while (*from->next) {
        int num_cells = next_row(from, separator, cells);
        if (num_cells < 0)
            return refuse(from, "a quote is not closed, or there are too many cells");
        if (num_cells == 1 && !*cells[0])
            continue;
        if (num_cells <= path)
            return refuse(from, "there is no path in it");
        if (!add(from, cells[path], label >= 0 && label < num_cells && *cells[label] ? cells[label] : NULL))
            return false;
    }
    return true;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------- */

static char peek(reading *from)
{
    for (; isspace((unsigned char)*from->next); from->next++)
        from->line += *from->next == '\n';
    return *from->next;
}

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        if (code >= 0x10000) {
            *to++ = (char)(0xf0 | code >> 18);
            *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        } else {
            *to++ = (char)(0xe0 | code >> 12);
        }
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

static bool read_hex(const char *digits, unsigned *code)
{
    int length = 0;
    return sscanf(digits, "%4x%n", code, &length) == 1 && length == 4;
}

/* What stands behind a backslash; *at is moved behind it. */
static bool unescape(char **at, char **to)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    unsigned code, low;
    const char *letter = **at ? strchr(letters, **at) : NULL;
    if (letter) {
        *(*to)++ = meanings[letter - letters];
        ++*at;
        return true;
    }
    if (**at != 'u' || !read_hex(*at + 1, &code))
        return false;
    *at += 5;
    if (code >= 0xd800 && code < 0xdc00 && (*at)[0] == '\\' && (*at)[1] == 'u' && read_hex(*at + 2, &low)) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        *at += 6;
    }
    if (code == 0 || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff)
        return false;
    *to = put_utf8(*to, code);
    return true;
}

/* A text, ended in place; NULL = it is none. */
static char *read_string(reading *from)
{
    if (peek(from) != '"')
        return NULL;
    char *at = from->next + 1;
    char *start = at;
    char *to = at;
    while (*at && *at != '"') {
        if (*at != '\\')
            *to++ = *at++;
        else if (at++, !unescape(&at, &to))
            return NULL;
    }
    if (!*at)
        return NULL;
    from->next = at + 1;
    *to = '\0';
    return start;
}

/* A number or a word, copied; false = it is none. */
static bool read_word(reading *from, char word[64])
{
    size_t length = strcspn(from->next, ",]} \t\r\n");
    snprintf(word, 64, "%.*s", (int)length, from->next);
    from->next += length;
    return length > 0 && length < 64;
}

static bool skip_value(reading *from);

/* {…} or […], whatever is in it. */
static bool skip_all(reading *from, char end)
{
    from->next++;
    while (peek(from) && *from->next != end) {
        if (!skip_value(from))
            return false;
        if (strchr(",:", peek(from)) && *from->next)
            from->next++;
    }
    return *from->next++ == end;
}

static bool skip_value(reading *from)
{
    char word[64];
    switch (peek(from)) {
    case '"': return read_string(from);
    case '{': return skip_all(from, '}');
    case '[': return skip_all(from, ']');
    default: return read_word(from, word);
    }
}

static bool read_object(reading *from)
{
    const char *path = NULL, *label = NULL;
    char word[64];
    from->next++;
    while (peek(from) == '"') {
        const char *key = read_string(from);
        if (!key || peek(from) != ':')
            return refuse(from, "this is no JSON");
        from->next++;
        const char **to = strcmp(key, from->names->path) == 0    ? &path
                          : strcmp(key, from->names->label) == 0 ? &label
                                                                 : NULL;
        bool is_read = true;
        if (to && peek(from) == '"')
            is_read = (*to = read_string(from)) != NULL;
        else if (to == &label && !strchr("{[", *from->next))
            is_read = read_word(from, word), label = strcmp(word, "null") == 0 ? NULL : word;
        else
            is_read = peek(from) && skip_value(from);
        if (!is_read)
            return refuse(from, "this is no JSON");
        if (peek(from) == ',')
            from->next++;
    }
    if (peek(from) != '}')
        return refuse(from, "this is no JSON");
    from->next++;
    return path ? add(from, path, label) : refuse(from, "an object has no path: name its key with --path-column");
}

/* An array, or one value after the other (.jsonl). */
static bool read_json(reading *from)
{
    bool is_array = peek(from) == '[';
    from->next += is_array;
    from->line = 1;
    for (char c; (c = peek(from)) && c != ']';) {
        const char *path = c == '"' ? read_string(from) : NULL;
        if (c == '{' ? !read_object(from) : !path || !add(from, path, NULL))
            return *from->problem ? false : refuse(from, "this is neither an object nor a text");
        if (peek(from) == ',')
            from->next++;
    }
    if (is_array && *from->next != ']')
        return refuse(from, "the array is not closed");
    return true;
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
    bool is_read = dot && strcmp(dot, ".csv") == 0                                    ? read_csv(&from, ',')
                   : dot && strcmp(dot, ".tsv") == 0                                  ? read_csv(&from, '\t')
                   : dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".jsonl") == 0) ? read_json(&from)
                                                                                      : read_lines(&from);
    from.line = 0;
    if (is_read && list->num_paths == 0)
        is_read = refuse(&from, "there is no path in it");
    free(text);
    return is_read;
}
