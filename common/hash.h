/* FNV-1a: a hash of texts and numbers that is the same on every machine. Each change of a single byte changes it. */
#ifndef COMMON_HASH_H
#define COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

#define WEIR__HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t weir__hash(uint64_t hash, const void *data, size_t size)
{
    for (const unsigned char *byte = data, *end = byte + size; byte < end; byte++)
        hash = (hash ^ *byte) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
