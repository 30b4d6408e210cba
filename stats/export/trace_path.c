#include "trace_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name cannot lead to another folder. */
static void put_path_name(weir_trace_text *text, const char *name)
{
    for (; *name; name++)
        weir__trace_put(text, *name == '/' ? "_" : name, 1);
}

static bool put_word(weir_trace_text *text, const char *word, size_t length, const weir_trace_names *names)
{
    const struct {
        const char *word, *name;
        int64_t number;
    } words[] = { { "run", names->run, 0 },
                  { "node", names->node, 0 },
                  { "rank", NULL, names->rank },
                  { "local_rank", NULL, names->local_rank },
                  { "world_size", NULL, names->world_size },
                  { "step", NULL, names->step },
                  { "batch", NULL, names->batch },
                  { "epoch", NULL, names->epoch } };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i].word) != length || strncmp(words[i].word, word, length) != 0)
            continue;
        if (words[i].name)
            put_path_name(text, words[i].name);
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
        weir__trace_put(&text, pattern, (size_t)(brace - pattern));
        if (put_word(&text, brace + 1, (size_t)(end - brace - 1), names))
            continue;
        weir__trace_text_free(&text);
        return EINVAL;
    }
    weir__trace_put(&text, pattern, strlen(pattern) + 1);
    *path = text.data;
    if (!text.no_memory)
        return 0;
    weir__trace_text_free(&text);
    return ENOMEM;
}

char *weir__trace_numbered(const char *path, unsigned number)
{
    char *numbered;
    const char *slash = strrchr(path, '/');
    size_t stem = strlen(path) - strlen(slash ? slash : path);
    stem += strcspn(path + stem + (slash != NULL), ".") + (slash != NULL);
    return asprintf(&numbered, "%.*s.%u%s", (int)stem, path, number, path + stem) < 0 ? NULL : numbered;
}
