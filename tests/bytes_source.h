/* A source of files in memory, for tests: reads files from disk as weir_bytes. */
#ifndef TESTS_BYTES_SOURCE_H
#define TESTS_BYTES_SOURCE_H

#include <stddef.h>

#include <weir/bytes.h>
#include <weir/op.h>

/* Must outlive the pipeline. */
typedef struct bytes_source_config {
    weir_bytes **files; /* passed on one by one, and set to NULL */
    size_t num_files;
} bytes_source_config;

extern const weir_op bytes_source;

/* Reads the file; fails the test if it cannot be read. */
weir_bytes *bytes_of_file(const char *path, const char *name);

#endif
