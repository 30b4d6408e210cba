/* Counts occurrences by key, with an example for each. */
#ifndef TOOLS_KEY_COUNT_H
#define TOOLS_KEY_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct key_count_entry {
    const char *key;
    char *example; /* of the first occurrence; NULL = none was given */
    char *second;  /* another text of the first */
    int64_t count;
    int status, library_code; /* of the first */
} key_count_entry;

/* All-zero is empty. Keys beyond the first 20,000 are counted together, as KEY_COUNT_OTHERS. */
typedef struct key_count {
    key_count_entry *entries;
    size_t count;
    struct weir_string_table *texts; /* the keys */
} key_count;

#define KEY_COUNT_OTHERS "(others)"

/* Counts one occurrence. *is_new: the entry is new and needs its example. NULL = out of memory. */
key_count_entry *key_count_add(key_count *t, const char *key, bool *is_new);

/* Sorts by count, largest first, then by key. Nothing may be added afterwards. */
void key_count_sort(key_count *t);
void key_count_free(key_count *t);

#endif
