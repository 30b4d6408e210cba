/* A block begins with a page for its flag, which is all that the processes tell each other about it. */
#include "stages/memory/shared_data.h"
#include "common/above_standard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEAD_BYTES = 1 << 16 }; /* a multiple of every page size */

/* A block so much larger than needed is not kept as it is: the surplus is given back. */
enum { MAX_SURPLUS_BYTES = 32 << 20 };

/* In the first page: somebody uses it. Set by the process that reuses the block, cleared by the one that releases it. */
typedef atomic_uint shared_flag;

/* The state of a child; enabled before any pipeline runs, used by the thread that makes results. */
static bool is_enabled;
static weir_shared_data *blocks[WEIR_SHARED_BLOCKS];

void weir__shared_data_enable(void)
{
    is_enabled = true;
}

static shared_flag *flag_of(const weir_shared_data *shared)
{
    return (shared_flag *)(void *)((char *)shared->data - HEAD_BYTES);
}

static weir_shared_data *map_shared(int fd, size_t room_bytes)
{
    weir_shared_data *shared = malloc(sizeof *shared);
    char *head = shared ? mmap(NULL, HEAD_BYTES + room_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (head != MAP_FAILED) {
        *shared = (weir_shared_data){
            .data = head + HEAD_BYTES, .size_bytes = room_bytes, .room_bytes = room_bytes, .fd = fd, .number = -1
        };
        atomic_init(&shared->is_taken, false);
        atomic_init(&shared->references, 1);
        return shared;
    }
    free(shared);
    close(fd);
    return NULL;
}

static bool is_too_large(size_t room_bytes)
{
    return room_bytes > (size_t)INT64_MAX - HEAD_BYTES;
}

static weir_shared_data *create_shared(size_t size_bytes)
{
    errno = ENOMEM;
    int fd =
        is_too_large(size_bytes) ? -1 : weir__above_standard(memfd_create("weir", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0)
        return NULL;
    if (ftruncate(fd, (off_t)(HEAD_BYTES + size_bytes)) == 0)
        return map_shared(fd, size_bytes);
    close(fd);
    return NULL;
}

/* A sender that made the file smaller later would turn every access to it into a SIGBUS. */
weir_shared_data *weir__shared_data_receive(int fd, size_t room_bytes)
{
    if (is_too_large(room_bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0 ||
        lseek(fd, 0, SEEK_END) < (off_t)(HEAD_BYTES + room_bytes)) {
        close(fd);
        return NULL;
    }
    weir_shared_data *shared = map_shared(fd, room_bytes);
    if (!shared)
        return NULL;
    close(shared->fd);
    shared->fd = -1;
    return shared;
}

/* What has not been written takes no memory, so the file never becomes smaller. */
static void *resize_shared(weir_shared_data *shared, size_t size_bytes)
{
    if (size_bytes <= shared->room_bytes) {
        shared->size_bytes = size_bytes;
        return shared->data;
    }
    if (is_too_large(size_bytes) || ftruncate(shared->fd, (off_t)(HEAD_BYTES + size_bytes)) != 0)
        return NULL;
    char *head = mremap(flag_of(shared), HEAD_BYTES + shared->room_bytes, HEAD_BYTES + size_bytes, MREMAP_MAYMOVE);
    if (head == MAP_FAILED)
        return NULL;
    shared->data = head + HEAD_BYTES;
    shared->size_bytes = shared->room_bytes = size_bytes;
    shared->is_known = false;
    return shared->data;
}

/* -- reuse */

/* The smallest free block that is large enough, or else the largest. */
static weir_shared_data *find_free(size_t size_bytes)
{
    weir_shared_data *best = NULL;
    for (int i = 0; i < WEIR_SHARED_BLOCKS; i++) {
        weir_shared_data *block = blocks[i];
        if (!block || atomic_load_explicit(flag_of(block), memory_order_acquire))
            continue;
        bool is_enough = block->room_bytes >= size_bytes;
        bool is_best_enough = best && best->room_bytes >= size_bytes;
        if (!best || (is_enough && (!is_best_enough || block->room_bytes < best->room_bytes)) ||
            (!is_best_enough && block->room_bytes > best->room_bytes))
            best = block;
    }
    return best;
}

static void give_back_surplus(const weir_shared_data *block, size_t size_bytes)
{
    size_t needed = (size_bytes + HEAD_BYTES - 1) / HEAD_BYTES * HEAD_BYTES;
    if (block->room_bytes > needed + MAX_SURPLUS_BYTES)
        (void)fallocate(block->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(HEAD_BYTES + needed),
                        (off_t)(block->room_bytes - needed));
}

static weir_shared_data *reuse_shared(size_t size_bytes)
{
    weir_shared_data *block = find_free(size_bytes);
    if (!block || !resize_shared(block, size_bytes))
        return NULL;
    give_back_surplus(block, size_bytes);
    atomic_store_explicit(flag_of(block), 1, memory_order_relaxed);
    return block;
}

/* Keeps it, if there are not enough blocks yet. */
static void keep_shared(weir_shared_data *shared)
{
    for (int32_t i = 0; i < WEIR_SHARED_BLOCKS; i++) {
        if (blocks[i])
            continue;
        blocks[i] = shared;
        shared->number = i;
        shared->is_kept = true;
        atomic_store_explicit(flag_of(shared), 1, memory_order_relaxed);
        return;
    }
}

weir_shared_data *weir__shared_data_new(size_t size_bytes)
{
    weir_shared_data *shared = is_enabled ? reuse_shared(size_bytes) : NULL;
    if (shared)
        return shared;
    shared = create_shared(size_bytes);
    if (shared && is_enabled)
        keep_shared(shared);
    return shared;
}

void *weir__shared_data_resize(void *data, weir_shared_data **shared, size_t size_bytes)
{
    if (*shared)
        return resize_shared(*shared, size_bytes);
    if (data || !is_enabled)
        return realloc(data, size_bytes);
    *shared = weir__shared_data_new(size_bytes);
    return *shared ? (*shared)->data : NULL;
}

/* -- the end */

bool weir__shared_data_take(weir_shared_data *shared)
{
    return !atomic_exchange_explicit(&shared->is_taken, true, memory_order_acq_rel);
}

weir_shared_data *weir__shared_data_hold(weir_shared_data *shared)
{
    atomic_fetch_add_explicit(&shared->references, 1, memory_order_relaxed);
    return shared;
}

void weir__shared_data_drop(weir_shared_data *shared)
{
    if (!shared || atomic_fetch_sub_explicit(&shared->references, 1, memory_order_acq_rel) != 1)
        return;
    munmap(flag_of(shared), HEAD_BYTES + shared->room_bytes);
    if (shared->fd >= 0)
        close(shared->fd);
    free(shared);
}

void weir__shared_data_release(void *pointer)
{
    weir_shared_data *shared = pointer;
    if (!shared)
        return;
    atomic_store_explicit(&shared->is_taken, false, memory_order_relaxed); /* before the sender may reuse it */
    if (!shared->is_sent)
        atomic_store_explicit(flag_of(shared), 0, memory_order_release);
    shared->is_sent = false;
    if (!shared->is_kept)
        weir__shared_data_drop(shared);
}

void weir__shared_data_free(void *data, weir_shared_data *shared)
{
    if (!shared)
        free(data);
    weir__shared_data_release(shared);
}
