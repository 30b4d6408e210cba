#include "stats/read/name_match.h"

#include <ctype.h>
#include <string.h>

bool weir__glob_matches(const char *pattern, const char *text)
{
    return strcmp(pattern, text) == 0 || sqlite3_strglob(pattern, text) == 0;
}

/* Skips the numbers: "0:1:decode" is "decode". */
static const char *without_numbers(const char *name)
{
    const char *rest = name;
    while (isdigit((unsigned char)*rest) || *rest == ':')
        rest++;
    return rest > name && rest[-1] == ':' && *rest ? rest : name;
}

/* Removes the suffix "_queue", if present. */
static void cut_queue(char *name)
{
    static const char queue[] = "_queue";
    size_t length = strlen(name), tail = sizeof queue - 1;
    if (length > tail && strcmp(name + length - tail, queue) == 0)
        name[length - tail] = '\0';
}

/* Removes the suffix "[10]", if present. */
static void cut_bracket(char *name)
{
    char *bracket = strrchr(name, '[');
    if (bracket && bracket > name && bracket[1 + strspn(bracket + 1, "0123456789")] == ']' &&
        bracket[2 + strspn(bracket + 1, "0123456789")] == '\0')
        *bracket = '\0';
}

bool weir_name_matches(const char *pattern, const char *name)
{
    if (!pattern || !name)
        return false;
    char part[512];
    const char *rest = without_numbers(name), *slash = strrchr(name, '/'); /* of spans: "category/name" */
    if (weir__glob_matches(pattern, name) || weir__glob_matches(pattern, rest) ||
        (slash && weir__glob_matches(pattern, slash + 1)))
        return true;
    if (strlen(rest) >= sizeof part)
        return false;
    strcpy(part, rest);
    cut_queue(part);
    if (weir__glob_matches(pattern, part))
        return true;
    cut_bracket(part);
    return weir__glob_matches(pattern, part);
}

/* -- in SQL */

/* Of names, or, with user data, of texts. */
static void match_function(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    (void)num_values;
    const char *pattern = (const char *)sqlite3_value_text(values[0]);
    const char *text = (const char *)sqlite3_value_text(values[1]);
    if (pattern && text)
        sqlite3_result_int(context, sqlite3_user_data(context) ? weir__glob_matches(pattern, text)
                                                               : weir_name_matches(pattern, text));
}

int weir__names_register(sqlite3 *db)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    int code = sqlite3_create_function_v2(db, "weir_name", 2, flags, NULL, match_function, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_create_function_v2(db, "weir_glob", 2, flags, db, match_function, NULL, NULL, NULL);
    return code;
}
