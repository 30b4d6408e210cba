#include "key_count.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_KEYS = 20000 };

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619;
    return hash;
}

static uint32_t *slot_of(const tally *t, const char *key)
{
    uint32_t mask = 2 * (uint32_t)t->room - 1;
    for (uint32_t i = hash_of(key) & mask;; i = (i + 1) & mask)
        if (!t->slots[i] || strcmp(t->entries[t->slots[i] - 1].key, key) == 0)
            return &t->slots[i];
}

static bool grow(tally *t)
{
    size_t room = t->room ? 2 * t->room : 64;
    tally_entry *entries = realloc(t->entries, room * sizeof *entries);
    if (!entries)
        return false;
    t->entries = entries;
    uint32_t *slots = calloc(2 * room, sizeof *slots);
    if (!slots)
        return false;
    free(t->slots);
    t->slots = slots;
    t->room = room;
    for (size_t i = 0; i < t->count; i++)
        *slot_of(t, t->entries[i].key) = (uint32_t)(i + 1);
    return true;
}

tally_entry *tally_add(tally *t, const char *key, bool *is_new)
{
    *is_new = false;
    if (t->count == t->room && !grow(t))
        return NULL;
    uint32_t *slot = slot_of(t, key);
    if (!*slot && t->count >= MAX_KEYS) {
        key = TALLY_OTHERS;
        slot = slot_of(t, key);
    }
    if (!*slot) {
        char *copy = strdup(key);
        if (!copy)
            return NULL;
        t->entries[t->count] = (tally_entry){ .key = copy };
        *slot = (uint32_t)++t->count;
        *is_new = true;
    }
    tally_entry *entry = &t->entries[*slot - 1];
    entry->count++;
    return entry;
}

static int compare(const void *left, const void *right)
{
    const tally_entry *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return strcmp(a->key, b->key);
}

void tally_sort(tally *t)
{
    if (t->count)
        qsort(t->entries, t->count, sizeof *t->entries, compare);
}

void tally_free(tally *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->entries[i].key);
        free(t->entries[i].example);
        free(t->entries[i].second);
    }
    free(t->entries);
    free(t->slots);
    *t = (tally){ .count = 0 };
}
