#include "stages/memory/growing_bytes.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <weir/status.h>

static void *map_bytes(weir_growing_bytes *growing, size_t room_bytes)
{
    if (growing->data)
        return mremap(growing->data, growing->room_bytes, room_bytes, MREMAP_MAYMOVE);
    return mmap(NULL, room_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int weir__growing_bytes_grow(weir_growing_bytes *growing, size_t first_bytes, size_t max_bytes)
{
    size_t room_bytes = growing->room_bytes <= max_bytes / 2 ? growing->room_bytes * 2 : max_bytes;
    if (!growing->data)
        room_bytes = first_bytes < max_bytes ? first_bytes : max_bytes;
    void *data = map_bytes(growing, room_bytes);
    if (data == MAP_FAILED)
        return WEIR_ENOMEM;
    growing->data = data;
    growing->room_bytes = room_bytes;
    return WEIR_OK;
}

void weir__growing_bytes_free(weir_growing_bytes *growing)
{
    if (growing->data)
        munmap(growing->data, growing->room_bytes);
    *growing = (weir_growing_bytes){ 0 };
}

/* weir_bytes.release */
static void release_bytes(void *owner)
{
    weir_growing_bytes *growing = owner;
    weir__growing_bytes_free(growing);
    free(growing);
}

weir_bytes *weir__growing_bytes_end(weir_growing_bytes *growing)
{
    weir_growing_bytes *owner = malloc(sizeof *owner);
    weir_bytes *bytes =
        owner ? weir_bytes_wrap(growing->data, growing->used_bytes, NULL, release_bytes, owner) : NULL;
    if (!bytes) {
        free(owner);
        return NULL;
    }
    *owner = *growing;
    *growing = (weir_growing_bytes){ 0 };
    return bytes;
}
