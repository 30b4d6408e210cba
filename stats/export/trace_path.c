#include "stats/export/trace_path.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For glob(), what has a meaning there is escaped. A name cannot lead to another folder. */
static void put_path_text(weir_trace_text *text, const char *from, size_t length, const weir_trace_names *names,
                          bool is_name)
{
    for (; length; from++, length--) {
        if (names->for_glob && strchr("*?[\\", *from))
            weir__trace_puts(text, "\\");
        weir__trace_put(text, is_name && *from == '/' ? "_" : from, 1);
    }
}

static bool put_word(weir_trace_text *text, const char *word, size_t length, const weir_trace_names *names)
{
    const struct {
        const char *word, *name;
        int64_t number;
        bool varies; /* from one file to the next */
    } words[] = { { "run", names->run, 0, false },
                  { "node", names->node, 0, false },
                  { "rank", NULL, names->rank, false },
                  { "local_rank", NULL, names->local_rank, false },
                  { "world_size", NULL, names->world_size, false },
                  { "step", NULL, names->step, true },
                  { "batch", NULL, names->batch, true },
                  { "epoch", NULL, names->epoch, true } };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i].word) != length || strncmp(words[i].word, word, length) != 0)
            continue;
        if (words[i].name)
            put_path_text(text, words[i].name, strlen(words[i].name), names, true);
        else if (words[i].varies && names->for_glob)
            weir__trace_puts(text, "[0-9]*");
        else
            weir__trace_put_int(text, words[i].number);
        return true;
    }
    return false;
}

int weir__trace_path(const char *pattern, const weir_trace_names *names, char **path)
{
    weir_trace_text text = { 0 };
    const char *brace, *end;
    for (; (brace = strchr(pattern, '{')) && (end = strchr(brace, '}')); pattern = end + 1) {
        put_path_text(&text, pattern, (size_t)(brace - pattern), names, false);
        if (put_word(&text, brace + 1, (size_t)(end - brace - 1), names))
            continue;
        weir__trace_text_free(&text);
        return EINVAL;
    }
    put_path_text(&text, pattern, strlen(pattern), names, false);
    weir__trace_put(&text, "", 1);
    if (text.no_memory) {
        weir__trace_text_free(&text);
        return ENOMEM;
    }
    *path = text.data;
    return 0;
}

int weir__trace_find(const char *pattern, weir_trace_names names, char **found)
{
    char *wanted = NULL;
    glob_t paths = { 0 };
    names.for_glob = true;
    *found = NULL;
    int failure = weir__trace_path(pattern, &names, &wanted);
    int result = failure ? GLOB_NOMATCH : glob(wanted, 0, NULL, &paths);
    if (result == GLOB_NOSPACE || (result == 0 && !(*found = strdup(paths.gl_pathv[0]))))
        failure = ENOMEM;
    if (result == 0)
        globfree(&paths);
    free(wanted);
    return failure;
}

char *weir__trace_numbered(const char *path, unsigned number)
{
    char *numbered;
    const char *slash = strrchr(path, '/');
    size_t stem = strlen(path) - strlen(slash ? slash : path);
    stem += strcspn(path + stem + (slash != NULL), ".") + (slash != NULL);
    return asprintf(&numbered, "%.*s.%u%s", (int)stem, path, number, path + stem) < 0 ? NULL : numbered;
}
