/* One item through one stage, for tests: what the stage makes of it, or why it does not. */
#ifndef TESTS_RESULT_H
#define TESTS_RESULT_H

#include <stdint.h>

#include <weir/op.h>
#include <weir/status.h>

/*
 * The data of the only item that `op` makes of the source's only one, for the caller to free, and in *size_bytes the size
 * that the item had; or NULL, with *error filled. More than one item, or a failure of the pipeline, fails the test.
 */
void *result_of(const weir_op *source, const void *source_config, const weir_op *op, const void *config,
                uint64_t *size_bytes, weir_error *error);

/* The same of a file. */
void *result_of_path(const char *path, const weir_op *op, const void *config, uint64_t *size_bytes,
                     weir_error *error);

#endif
