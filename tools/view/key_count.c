#include "key_count.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "string_table.h"

enum { MAX_KEYS = 20000 };

key_count_entry *key_count_add(key_count *t, const char *key, bool *is_new)
{
    *is_new = false;
    if (!t->texts && !(t->texts = weir_string_table_new()))
        return NULL;
    if (t->count >= MAX_KEYS && weir_string_table_find(t->texts, key) < 0)
        key = KEY_COUNT_OTHERS;
    int32_t number = weir_string_table_number(t->texts, key);
    if (number < 0)
        return NULL;
    if ((size_t)number == t->count) {
        key_count_entry *entries = weir_array_grow(t->entries, t->count, sizeof *entries);
        if (!entries)
            return NULL;
        t->entries = entries;
        entries[t->count++] = (key_count_entry){ .key = weir_string_table_at(t->texts, number) };
        *is_new = true;
    }
    key_count_entry *entry = &t->entries[number];
    entry->count++;
    return entry;
}

static int compare(const void *left, const void *right)
{
    const key_count_entry *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return strcmp(a->key, b->key);
}

void key_count_sort(key_count *t)
{
    if (t->count)
        qsort(t->entries, t->count, sizeof *t->entries, compare);
}

void key_count_free(key_count *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->entries[i].example);
        free(t->entries[i].second);
    }
    free(t->entries);
    weir_string_table_free(t->texts);
    *t = (key_count){ .count = 0 };
}
