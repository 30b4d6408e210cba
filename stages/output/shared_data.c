#include "shared_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Written once, before any pipeline runs. */
static bool is_enabled;

void weir_shared_data_enable(void)
{
    is_enabled = true;
}

static weir_shared_data *map(int fd, size_t size_bytes)
{
    weir_shared_data *shared = malloc(sizeof *shared);
    void *data =
        shared && size_bytes ? mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (data != MAP_FAILED) {
        *shared = (weir_shared_data){ .data = data, .size_bytes = size_bytes, .fd = fd };
        return shared;
    }
    free(shared);
    close(fd);
    return NULL;
}

weir_shared_data *weir_shared_data_new(size_t size_bytes)
{
    int fd = memfd_create("weir", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return NULL;
    if (size_bytes <= INT64_MAX && ftruncate(fd, (off_t)size_bytes) == 0)
        return map(fd, size_bytes);
    close(fd);
    return NULL;
}

/* A sender that shortened the file later would make every access to it a SIGBUS. */
weir_shared_data *weir_shared_data_receive(int fd, size_t size_bytes)
{
    struct stat info;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 || fstat(fd, &info) != 0 ||
        (uint64_t)info.st_size < size_bytes) {
        close(fd);
        return NULL;
    }
    weir_shared_data *shared = map(fd, size_bytes);
    if (!shared)
        return NULL;
    close(shared->fd);
    shared->fd = -1;
#ifdef MADV_POPULATE_READ
    (void)madvise(shared->data, size_bytes, MADV_POPULATE_READ); /* cheaper than a page fault for each page */
#endif
    return shared;
}

/* What has not been written takes no memory, so the file never becomes smaller. */
static void *resize(weir_shared_data *shared, size_t size_bytes)
{
    if (size_bytes > shared->size_bytes && ftruncate(shared->fd, (off_t)size_bytes) != 0)
        return NULL;
    void *data = mremap(shared->data, shared->size_bytes, size_bytes, MREMAP_MAYMOVE);
    if (data == MAP_FAILED)
        return NULL;
    shared->data = data;
    shared->size_bytes = size_bytes;
    return data;
}

void *weir_shared_data_resize(void *data, weir_shared_data **shared, size_t size_bytes)
{
    if (*shared)
        return resize(*shared, size_bytes);
    if (data || !is_enabled)
        return realloc(data, size_bytes);
    *shared = weir_shared_data_new(size_bytes);
    return *shared ? (*shared)->data : NULL;
}

void weir_shared_data_release(void *pointer)
{
    weir_shared_data *shared = pointer;
    if (!shared)
        return;
    munmap(shared->data, shared->size_bytes);
    if (shared->fd >= 0)
        close(shared->fd);
    free(shared);
}

void weir_shared_data_free(void *data, weir_shared_data *shared)
{
    if (!shared)
        free(data);
    weir_shared_data_release(shared);
}
