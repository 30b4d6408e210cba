/* How structs of options can gain fields without breaking programs that were compiled before. */
#ifndef WEIR_OPTIONS_H
#define WEIR_OPTIONS_H

#include <stddef.h>

#include <weir/export.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A function that takes a struct of options is an inline wrapper, which hands the struct's size in the program's headers
 * to a function `…_sized` of the library. That one calls this: *own, of own_size bytes, becomes the program's struct; what
 * the program does not know of is 0, its default. given may be NULL: all is 0. Any thread.
 * WEIR_OK, or WEIR_EUNSUPPORTED with *error (may be NULL) filled: the program was compiled with newer headers and sets what this library does not know.
 */
WEIR_API int weir_options_copy(void *own, size_t own_size, const void *given, size_t given_size, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
