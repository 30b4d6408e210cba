/* Files in memory. The struct, the name and, if not wrapped, the bytes are in one block. */
#include <weir/bytes.h>

#include <stdlib.h>
#include <string.h>

/* With room for num_bytes of a file, at *data. */
static weir_bytes *bytes_alloc(size_t size_bytes, const char *name, uint8_t **data)
{
    size_t name_bytes = name ? strlen(name) + 1 : 0;
    if (size_bytes > SIZE_MAX - sizeof(weir_bytes) - name_bytes)
        return NULL;
    weir_bytes *bytes = malloc(sizeof *bytes + size_bytes + name_bytes);
    if (!bytes)
        return NULL;
    *bytes = (weir_bytes){ 0 };
    *data = (uint8_t *)(bytes + 1);
    if (name)
        bytes->name = memcpy(*data + size_bytes, name, name_bytes);
    return bytes;
}

weir_bytes *weir_bytes_new(size_t size_bytes, const char *name)
{
    uint8_t *data;
    weir_bytes *bytes = bytes_alloc(size_bytes, name, &data);
    if (bytes) {
        bytes->data = data;
        bytes->size_bytes = size_bytes;
    }
    return bytes;
}

weir_bytes *weir_bytes_wrap(const void *data, size_t size_bytes, const char *name, void (*release)(void *owner),
                            void *owner)
{
    if (!data && size_bytes)
        return NULL;
    uint8_t *behind;
    weir_bytes *bytes = bytes_alloc(0, name, &behind);
    if (bytes) {
        bytes->data = (uint8_t *)data; /* weir never writes to it */
        bytes->size_bytes = size_bytes;
        bytes->release = release;
        bytes->owner = owner;
    }
    return bytes;
}

size_t weir_bytes_memory(const weir_bytes *bytes)
{
    size_t memory_bytes = 0;
    for (; bytes; bytes = bytes->next)
        memory_bytes += sizeof *bytes + bytes->size_bytes + (bytes->name ? strlen(bytes->name) + 1 : 0);
    return memory_bytes;
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
