/* How often each name of a growing list has come: 16 bytes for each. Internal. */
#ifndef COMMON_NAME_COUNT_H
#define COMMON_NAME_COUNT_H

#include <stddef.h>
#include <stdint.h>

/* All-zero is empty. */
typedef struct weir_name_counts {
    struct weir_name_count *places; /* a hash table of half as many names at most */
    size_t num_places, num_names;
} weir_name_counts;

/* Counts the name. Returns how often it had come before; UINT64_MAX = no memory. Names are compared by 64-bit hashes. */
uint64_t weir__name_count(weir_name_counts *counts, const char *name);

/* How often it has come. */
uint64_t weir__name_counted(const weir_name_counts *counts, const char *name);

void weir__name_counts_free(weir_name_counts *counts);

#endif
