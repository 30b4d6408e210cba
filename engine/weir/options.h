/* How option structs can gain fields without breaking compiled programs. */
#ifndef WEIR_OPTIONS_H
#define WEIR_OPTIONS_H

#include <stddef.h>

#include <weir/export.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A function with an options struct is an inline wrapper that passes the size of the struct in the program's headers
 * to a library function `…_sized`, which calls this function. It copies the struct of the program to *own (own_size
 * bytes); fields that the program does not know are 0, their default. given may be NULL: all fields are 0. Any
 * thread. WEIR_OK, or WEIR_EUNSUPPORTED with *error (may be NULL) set if the program was compiled with newer headers
 * and sets a field that this library does not know.
 */
WEIR_API int weir_options_copy(void *own, size_t own_size, const void *given, size_t given_size, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
