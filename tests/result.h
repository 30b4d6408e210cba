/* Runs one item through one stage, for tests, and returns the result or the failure. */
#ifndef TESTS_RESULT_H
#define TESTS_RESULT_H

#include <stdint.h>

#include <weir/op.h>
#include <weir/status.h>

/*
 * The data of the only item that `op` makes from the only item of the source. The caller frees it. *size_bytes is the
 * size of that item. NULL with *error filled if it failed. More than one item, or a failure of the pipeline, fails
 * the test.
 */
void *result_of(const weir_op *source, const void *source_config, const weir_op *op, const void *config,
                uint64_t *size_bytes, weir_error *error);

/* The same for a file. */
void *result_of_path(const char *path, const weir_op *op, const void *config, uint64_t *size_bytes,
                     weir_error *error);

#endif
