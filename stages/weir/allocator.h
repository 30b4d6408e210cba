/*
 * Kinds of memory: where the values of frames and batches are, and whether the CPU may touch them; and allocators, by
 * which stages put their results into memory of the program: pinned, shared, on huge pages.
 *
 * weir_frames.memory and weir_collated.memory say where the values are. An operation that reads or writes values asks
 * weir_memory_check() first. All other parts of a result (pts, labels, masks, names) are always in host memory.
 */
#ifndef WEIR_ALLOCATOR_H
#define WEIR_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

/* The numbers are those of DLPack's DLDeviceType, except that the host has 0 here and 1 (kDLCPU) there: see
   weir_memory_dlpack_type(). */
typedef enum weir_memory_kind {
    WEIR_MEMORY_HOST = 0,             /* of the C library, or mapped (kDLCPU) */
    WEIR_MEMORY_CUDA = 2,             /* of a CUDA device (kDLCUDA) */
    WEIR_MEMORY_CUDA_HOST = 3,        /* of the host, pinned for CUDA (kDLCUDAHost) */
    WEIR_MEMORY_ROCM = 10,            /* of a ROCm device (kDLROCM) */
    WEIR_MEMORY_ROCM_HOST = 11,       /* of the host, pinned for ROCm (kDLROCMHost) */
    WEIR_MEMORY_OTHER = 12,           /* of a device that has no kind here (kDLExtDev) */
    WEIR_MEMORY_CUDA_MANAGED = 13,    /* moved by CUDA between host and device (kDLCUDAManaged) */
    WEIR_MEMORY_ONEAPI = 14,          /* of a oneAPI device (kDLOneAPI) */
    WEIR_MEMORY_UNKNOWN = 0x7fffffff, /* of a number that DLPack does not have */
} weir_memory_kind;

/* Where values are. All-zero is the host's memory. */
typedef struct weir_memory {
    weir_memory_kind kind;
    int32_t device; /* its number, from 0; 0 for what the CPU may touch, pinned memory included */
} weir_memory;

/* "host", "pinned host (CUDA)", "CUDA"; "unknown" = none of the enum. Static. */
WEIR_API const char *weir_memory_kind_name(weir_memory_kind kind);

/* May the CPU read and write it? True for host, pinned and managed memory, false for all else. */
WEIR_API bool weir_memory_is_accessible(weir_memory memory);

/* WEIR_OK: the CPU may touch it. WEIR_EUNSUPPORTED: not, and *error (may be NULL) names `who` wanted to ("collate") and the
   kind and number of the device. */
WEIR_API int weir_memory_check(weir_memory memory, const char *who, weir_error *error);

/* DLPack's DLDeviceType of it; its device_id is memory.device. */
WEIR_API int32_t weir_memory_dlpack_type(weir_memory memory);

/* The other direction. A kind that DLPack numbers and weir does not know keeps its number. */
WEIR_API weir_memory weir_memory_of_dlpack(int32_t type, int32_t device_id);

/* ---- allocators ---------------------------------------------------------------------------------------------------- */

/*
 * An allocator has owners: the program, each stage that uses it (weir_video_config.allocator, weir_image_config.allocator,
 * weir_collate_config.allocator), and each result in its memory. It ends with the last of them: then its free blocks are
 * freed, and `close` is called. So a batch may outlive the pipeline, and a DLPack tensor of it the batch.
 */
typedef struct weir_allocator weir_allocator;

typedef struct weir_allocator_config {
    weir_memory
        memory; /* what `allocate` returns; host, pinned or managed for the stages of weir, which run on the CPU */
    void *self; /* passed to the functions */
    /* Both are required. Any thread, several at once; never under a lock of weir. Blocks are reused for
       results of up to their size and down to half of it; at most 8 are kept free, each until many requests had no use for it. `allocate` returns NULL if there is no memory; its
       result must be aligned for any type, and is best aligned to 64 bytes. */
    void *(*allocate)(void *self, size_t num_bytes);
    void (*free)(void *self, void *data, size_t num_bytes);
    /* The last call: called once, after the last block was freed, on the thread of the last owner. NULL = none. */
    void (*close)(void *self);
} weir_allocator_config;

/* WEIR_OK with *allocator set, which the program gives up with weir_allocator_free(), at any time after the pipelines that use
   it have been built. Or *allocator is NULL, `close` is not called, and *error (may be NULL) is filled: WEIR_EINVAL (NULL, an
   unknown kind, a number of a device for memory of the host), WEIR_ENOMEM, WEIR_EUNSUPPORTED (a newer program's config). */
WEIR_API int weir_allocator_new_sized(const weir_allocator_config *config, size_t config_size,
                                      weir_allocator **allocator, weir_error *error);

static inline int weir_allocator_new(const weir_allocator_config *config, weir_allocator **allocator,
                                     weir_error *error)
{
    return weir_allocator_new_sized(config, sizeof *config, allocator, error);
}

/* The program gives it up. NULL is fine. Any thread. */
WEIR_API void weir_allocator_free(weir_allocator *allocator);

/* What memory it gives; of NULL, the host's. */
WEIR_API weir_memory weir_allocator_memory(const weir_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
