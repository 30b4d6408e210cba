/*
 * Copies structs that a program passes with their size, so that they can grow. The program may have been compiled with older
 * headers, in which the struct is shorter, or with newer ones, in which it is longer. This is for your own operations and
 * libraries that have such configs.
 */
#ifndef WEIR_STRUCT_COPY_H
#define WEIR_STRUCT_COPY_H

#include <stddef.h>

#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Copies the program's struct (given_size bytes) to *own (own_size bytes). Fields that the program does not know become 0, their
 * default; `given` may be NULL: all fields are 0. `name` is for the message: "weir_stage_options". Any thread.
 * Returns WEIR_OK or a failure with *error (may be NULL) filled. WEIR_EUNSUPPORTED: the program sets a field that
 * *own does not have. Any other failure is WEIR_EINVAL.
 */
WEIR_API int weir_struct_copy(void *own, size_t own_size, const void *given, size_t given_size, const char *name,
                              weir_error *error);

/* The other direction: fills the program's struct. Fields that *own does not have become 0. Any thread. WEIR_OK or
   WEIR_EINVAL. */
WEIR_API int weir_struct_fill(void *given, size_t given_size, const void *own, size_t own_size);

#ifdef __cplusplus
}
#endif

#endif
