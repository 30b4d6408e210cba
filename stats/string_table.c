#include "string_table.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "array.h"

typedef struct text_entry {
    UT_hash_handle hh;
    int32_t number;
    char text[];
} text_entry;

struct weir_string_table {
    text_entry **all;
    text_entry *by_text;
    int32_t count;
    int32_t hint; /* probable index of the next text: after the last one found */
};

weir_string_table *weir_string_table_new(void)
{
    return calloc(1, sizeof(weir_string_table));
}

void weir_string_table_free(weir_string_table *texts)
{
    if (!texts)
        return;
    HASH_CLEAR(hh, texts->by_text);
    for (int32_t i = 0; i < texts->count; i++)
        free(texts->all[i]);
    free(texts->all);
    free(texts);
}

static text_entry *find(const weir_string_table *texts, const char *text)
{
    text_entry *entry;
    HASH_FIND(hh, texts->by_text, text, (unsigned)strlen(text), entry);
    return entry;
}

static text_entry *add(weir_string_table *texts, const char *text, size_t length)
{
    text_entry **all = weir_array_grow(texts->all, (size_t)texts->count, sizeof(text_entry *));
    if (!all)
        return NULL;
    texts->all = all;
    text_entry *entry = calloc(1, sizeof *entry + length + 1);
    if (!entry)
        return NULL;
    memcpy(entry->text, text, length);
    entry->number = texts->count;
    HASH_ADD(hh, texts->by_text, text[0], (unsigned)length, entry);
    if (!entry->hh.tbl) {
        free(entry);
        return NULL;
    }
    return texts->all[texts->count++] = entry;
}

int32_t weir_string_table_number(weir_string_table *texts, const char *text)
{
    int32_t next = texts->hint < texts->count ? texts->hint : 0;
    if (texts->count && strcmp(texts->all[next]->text, text) == 0) {
        texts->hint = next + 1;
        return next;
    }
    text_entry *entry = find(texts, text);
    if (!entry)
        entry = add(texts, text, strlen(text));
    if (!entry)
        return -1;
    texts->hint = entry->number + 1;
    return entry->number;
}

int32_t weir_string_table_find(const weir_string_table *texts, const char *text)
{
    const text_entry *entry = find(texts, text);
    return entry ? entry->number : -1;
}

const char *weir_string_table_at(const weir_string_table *texts, int32_t number)
{
    return texts->all[number]->text;
}
