/* Files in memory. The struct, the bytes and the name are in one block. */
#include <weir/bytes.h>

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
