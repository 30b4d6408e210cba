/* Memory between two pages that nobody may touch, for tests of what is read and written: a byte too far ends the program.
   As pages are large, only one end can be exact. Errors here fail the test immediately. */
#ifndef TESTS_FENCED_H
#define TESTS_FENCED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fenced {
    uint8_t *data; /* size_bytes of 0 */
    size_t size_bytes;
    void *mapping; /* all of it */
    size_t mapping_bytes;
} fenced;

/* at_start: the first byte is behind a fence; otherwise the last one is before one. */
fenced fenced_new(size_t size_bytes, bool at_start);

void fenced_free(fenced *memory);

#endif
