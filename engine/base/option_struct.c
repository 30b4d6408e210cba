#include <weir/options.h>
#include <weir/version.h>

#include <string.h>

int weir_options_copy(void *own, size_t own_size, const void *given, size_t given_size, weir_error *error)
{
    if (!own)
        return weir_error_set(error, WEIR_EINVAL, 0, "own is NULL");
    memset(own, 0, own_size);
    if (!given)
        return WEIR_OK;
    memcpy(own, given, given_size < own_size ? given_size : own_size);
    for (size_t i = own_size; i < given_size; i++)
        if (((const unsigned char *)given)[i])
            return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                                  "the program sets options that this library, version %s, does not know: update it",
                                  WEIR_VERSION);
    return WEIR_OK;
}
