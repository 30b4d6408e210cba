/*
 * A file's bytes while they arrive, when nobody knows how many will come. Internal. One thread at a time.
 *
 * Growing moves pages and copies nothing, and pages that nothing was written to take no memory. So only the bytes that
 * have arrived are in memory, whatever a server says about their number.
 */
#ifndef STAGES_MEMORY_GROWING_BYTES_H
#define STAGES_MEMORY_GROWING_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>

/* All-zero is the initial state. */
typedef struct weir_growing_bytes {
    uint8_t *data;
    size_t used_bytes; /* set by the writer */
    size_t room_bytes;
} weir_growing_bytes;

/* Makes room for at least one more byte: the first time for `first_bytes`, then for twice as many, never for more than
   max_bytes, which are more than used_bytes. WEIR_OK or WEIR_ENOMEM; then nothing has changed. */
int weir__growing_bytes_grow(weir_growing_bytes *growing, size_t first_bytes, size_t max_bytes);

/* Moves the bytes to a new weir_bytes without a name, which the caller owns. NULL = out of memory; then nothing has
   changed. */
weir_bytes *weir__growing_bytes_end(weir_growing_bytes *growing);

void weir__growing_bytes_free(weir_growing_bytes *growing);

#endif
