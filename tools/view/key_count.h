/* Counts things by a text, with one of them as an example. */
#ifndef TOOLS_TALLY_H
#define TOOLS_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tally_entry {
    const char *key;
    char *example; /* of the first that was counted; NULL = none was given */
    char *second;  /* another text of the first */
    int64_t count;
    int status, library_code; /* of the first */
} tally_entry;

/* All-zero is empty. Keys beyond the first 20,000 are counted together, as TALLY_OTHERS. */
typedef struct tally {
    tally_entry *entries;
    size_t count;
    struct weir_texts *texts; /* the keys */
} tally;

#define TALLY_OTHERS "(others)"

/* Counts one; *is_new says that the entry is, and wants its example. NULL = out of memory. */
tally_entry *tally_add(tally *t, const char *key, bool *is_new);

/* The largest first; those of the same count by key. Nothing may be added afterwards. */
void tally_sort(tally *t);
void tally_free(tally *t);

#endif
