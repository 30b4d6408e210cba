#include <weir/struct_copy.h>

#include <string.h>

int weir_struct_copy(void *own, size_t own_size, const void *given, size_t given_size, const char *name,
                     weir_error *error)
{
    if (!own || !name)
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_struct_copy() needs a struct and its name");
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

int weir_struct_fill(void *given, size_t given_size, const void *own, size_t own_size)
{
    if (!given || !own)
        return WEIR_EINVAL;
    size_t known = given_size < own_size ? given_size : own_size;
    memcpy(given, own, known);
    memset((unsigned char *)given + known, 0, given_size - known);
    return WEIR_OK;
}
