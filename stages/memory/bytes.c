/* Files in memory. The struct, the bytes and the name are in one block. */
#include "stages/memory/copies.h"

#include <stdlib.h>

weir_bytes *weir_bytes_new(size_t size_bytes, const char *name)
{
    size_t name_bytes = name ? strlen(name) + 1 : 0;
    if (size_bytes > SIZE_MAX - sizeof(weir_bytes) - name_bytes)
        return NULL;
    weir_bytes *bytes = malloc(sizeof *bytes + size_bytes + name_bytes);
    if (!bytes)
        return NULL;
    *bytes = (weir_bytes){ .data = (uint8_t *)(bytes + 1), .size_bytes = size_bytes };
    if (name)
        bytes->name = memcpy(bytes->data + size_bytes, name, name_bytes);
    return bytes;
}

weir_bytes *weir__bytes_copy(const weir_bytes *bytes)
{
    weir_bytes *first = NULL;
    for (weir_bytes **end = &first; bytes; bytes = bytes->next, end = &(*end)->next) {
        *end = weir_bytes_new(bytes->size_bytes, bytes->name);
        if (!*end) {
            weir_bytes_free(first);
            return NULL;
        }
        if (bytes->size_bytes > 0)
            memcpy((*end)->data, bytes->data, bytes->size_bytes);
    }
    return first;
}

void weir_bytes_release(void *data, void *self)
{
    weir_bytes *bytes = data;
    (void)self;
    while (bytes) {
        weir_bytes *next = bytes->next;
        if (bytes->release)
            bytes->release(bytes->owner);
        free(bytes);
        bytes = next;
    }
}
