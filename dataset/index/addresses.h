/*
 * The addresses of URLs whose secrets an index does not store: those of the list, by their identities. Private to this room.
 * Immutable once it is read.
 */
#ifndef DATASET_INDEX_ADDRESSES_H
#define DATASET_INDEX_ADDRESSES_H

#include <stddef.h>

#include <weir/status.h>

typedef struct known_address {
    char *identity, *address;
    size_t place; /* in the list */
} known_address;

/* All-zero is empty. */
typedef struct known_addresses {
    known_address *all; /* by identity and place */
    size_t num;
} known_addresses;

/* Copies the paths that have secrets. WEIR_OK, or the failure with *error filled; free them in each case. */
int weir__addresses_read(known_addresses *known, const char *const *paths, size_t num_paths, weir_error *error);
void weir__addresses_free(known_addresses *known);

/* The first one of the list with this identity; NULL = none. */
const char *weir__addresses_find(const known_addresses *known, const char *identity);

#endif
