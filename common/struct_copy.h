/*
 * Structs that a program passes with their size. The program may have been compiled with older headers, in which the
 * struct is shorter, or with newer ones, in which it is longer.
 */
#ifndef COMMON_STRUCT_COPY_H
#define COMMON_STRUCT_COPY_H

#include <stddef.h>
#include <string.h>

#include <weir/status.h>
#include <weir/version.h>

/*
 * Copies the program's struct to *own (own_size bytes). Fields that the program does not know become 0, their default;
 * given may be NULL: all fields are 0. name, for the message: "weir_stage_options". WEIR_OK, or WEIR_EUNSUPPORTED with
 * *error (may be NULL) filled if the program sets a field that this library does not know.
 */
static inline int weir__struct_copy(void *own, size_t own_size, const void *given, size_t given_size,
                                    const char *name, weir_error *error)
{
    memset(own, 0, own_size);
    if (!given)
        return WEIR_OK;
    memcpy(own, given, given_size < own_size ? given_size : own_size);
    for (size_t i = own_size; i < given_size; i++)
        if (((const unsigned char *)given)[i])
            return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                                  "%s: the program sets a field that weir %s does not know (the struct has %zu bytes "
                                  "in the program, %zu in the library): update the library",
                                  name, WEIR_VERSION, given_size, own_size);
    return WEIR_OK;
}

/* The other direction: fills the program's struct; fields that the library does not know become 0. */
static inline void weir__struct_fill(void *given, size_t given_size, const void *own, size_t own_size)
{
    size_t known = given_size < own_size ? given_size : own_size;
    memcpy(given, own, known);
    memset((unsigned char *)given + known, 0, given_size - known);
}

#endif
