#include "stats/read/existing_files.h"

#include <glob.h>
#include <string.h>

/* "trace-{rank}.json" → "trace-*.json"; other characters that glob() knows stand for themselves. */
static char *glob_of(const char *pattern)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    for (const char *end; *pattern; pattern++) {
        if (*pattern == '{' && (end = strchr(pattern, '}'))) {
            sqlite3_str_appendall(text, "*");
            pattern = end;
        } else {
            if (strchr("*?[\\", *pattern))
                sqlite3_str_appendall(text, "\\");
            sqlite3_str_append(text, pattern, 1);
        }
    }
    return sqlite3_str_finish(text);
}

static void append_json(sqlite3_str *json, const char *text)
{
    sqlite3_str_appendall(json, sqlite3_str_length(json) > 1 ? ",\"" : "\"");
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
            sqlite3_str_appendf(json, "\\u%04x", (unsigned char)*text);
        else
            sqlite3_str_append(json, text, 1);
    sqlite3_str_appendall(json, "\"");
}

static void files_function(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    glob_t found = { 0 };
    const char *pattern = (const char *)sqlite3_value_text(values[0]);
    char *wanted = pattern ? glob_of(pattern) : NULL;
    (void)num_values;
    int failure = wanted ? glob(wanted, 0, NULL, &found) : 0;
    sqlite3_str *json = sqlite3_str_new(NULL);
    sqlite3_str_appendall(json, "[");
    for (size_t i = 0; failure == 0 && i < found.gl_pathc; i++)
        append_json(json, found.gl_pathv[i]);
    sqlite3_str_appendall(json, "]");
    char *text = sqlite3_str_finish(json);
    if (text && failure != GLOB_NOSPACE && (wanted || !pattern))
        sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
    else
        sqlite3_result_error_nomem(context);
    globfree(&found);
    sqlite3_free(text);
    sqlite3_free(wanted);
}

int weir__existing_files_register(sqlite3 *db)
{
    return sqlite3_create_function_v2(db, "weir_existing_files", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL,
                                      files_function, NULL, NULL, NULL);
}
