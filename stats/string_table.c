#include "string_table.h"

#include <stdlib.h>
#include <string.h>

struct weir_texts {
    char **all;
    int32_t count;
    int32_t room;
    int32_t hint;   /* where the next one probably is: behind the last one found */
    int32_t *slots; /* open hashing: number + 1, 0 = none; twice the room */
};

weir_texts *weir_texts_new(void)
{
    return calloc(1, sizeof(weir_texts));
}

void weir_texts_free(weir_texts *texts)
{
    if (!texts)
        return;
    for (int32_t i = 0; i < texts->count; i++)
        free(texts->all[i]);
    free(texts->all);
    free(texts->slots);
    free(texts);
}

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619;
    return hash;
}

/* The slot that holds the text, or that is free for it. */
static int32_t *slot_of(const weir_texts *texts, const char *text)
{
    uint32_t mask = 2 * (uint32_t)texts->room - 1;
    for (uint32_t i = hash_of(text) & mask;; i = (i + 1) & mask)
        if (!texts->slots[i] || strcmp(texts->all[texts->slots[i] - 1], text) == 0)
            return &texts->slots[i];
}

static int grow(weir_texts *texts)
{
    int32_t room = texts->room ? 2 * texts->room : 16;
    char **all = realloc(texts->all, (size_t)room * sizeof *all);
    if (!all)
        return -1;
    texts->all = all;
    int32_t *slots = calloc(2 * (size_t)room, sizeof *slots);
    if (!slots)
        return -1;
    free(texts->slots);
    texts->slots = slots;
    texts->room = room;
    for (int32_t i = 0; i < texts->count; i++)
        *slot_of(texts, texts->all[i]) = i + 1;
    return 0;
}

int32_t weir_texts_number(weir_texts *texts, const char *text)
{
    int32_t next = texts->hint < texts->count ? texts->hint : 0;
    if (texts->count && strcmp(texts->all[next], text) == 0) {
        texts->hint = next + 1;
        return next;
    }
    if (texts->count == texts->room && grow(texts) != 0)
        return -1;
    int32_t *slot = slot_of(texts, text);
    if (!*slot) {
        texts->all[texts->count] = strdup(text);
        if (!texts->all[texts->count])
            return -1;
        *slot = ++texts->count;
    }
    texts->hint = *slot;
    return *slot - 1;
}

const char *weir_texts_at(const weir_texts *texts, int32_t number)
{
    return texts->all[number];
}
