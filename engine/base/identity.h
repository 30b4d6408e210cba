/* Private functions of identities. Any thread. */
#ifndef ENGINE_BASE_IDENTITY_H
#define ENGINE_BASE_IDENTITY_H

#include <stddef.h>

/* Writes the identity of an address, cut to `size`, and returns its length, like snprintf(). See weir_identity_of(). */
size_t weir__identity_write(const char *address, char *identity, size_t size);

#endif
