#include "key_count.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "string_table.h"

enum { MAX_KEYS = 20000 };

tally_entry *tally_add(tally *t, const char *key, bool *is_new)
{
    *is_new = false;
    if (!t->texts && !(t->texts = weir_texts_new()))
        return NULL;
    if (t->count >= MAX_KEYS && weir_texts_find(t->texts, key) < 0)
        key = TALLY_OTHERS;
    int32_t number = weir_texts_number(t->texts, key);
    if (number < 0)
        return NULL;
    if ((size_t)number == t->count) {
        tally_entry *entries = weir_array_grow(t->entries, t->count, sizeof *entries);
        if (!entries)
            return NULL;
        t->entries = entries;
        entries[t->count++] = (tally_entry){ .key = weir_texts_at(t->texts, number) };
        *is_new = true;
    }
    tally_entry *entry = &t->entries[number];
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
        free(t->entries[i].example);
        free(t->entries[i].second);
    }
    free(t->entries);
    weir_texts_free(t->texts);
    *t = (tally){ .count = 0 };
}
