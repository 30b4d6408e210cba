/*
 * Kinds of memory say where the values of frames and batches are, and whether the CPU may read and write them. With an
 * allocator, stages put their results into memory of the program: pinned, shared, on huge pages.
 *
 * weir_frames.memory and weir_collated.memory say where the values are. An operation that reads or writes values calls
 * weir_memory_check() first. All other arrays and texts of a result (pts, labels, masks, names) are always in host memory.
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

/* The numbers are those of DLPack's DLDeviceType, except for the host, which is 0 here and 1 (kDLCPU) in DLPack: see
   weir_memory_dlpack_type(). */
typedef enum weir_memory_kind {
    WEIR_MEMORY_HOST = 0,             /* of the C library, or mapped (kDLCPU) */
    WEIR_MEMORY_CUDA = 2,             /* of a CUDA device (kDLCUDA) */
    WEIR_MEMORY_CUDA_HOST = 3,        /* of the host, pinned for CUDA (kDLCUDAHost) */
    WEIR_MEMORY_ROCM = 10,            /* of a ROCm device (kDLROCM) */
    WEIR_MEMORY_ROCM_HOST = 11,       /* of the host, pinned for ROCm (kDLROCMHost) */
    WEIR_MEMORY_OTHER = 12,           /* of another kind of device (kDLExtDev) */
    WEIR_MEMORY_CUDA_MANAGED = 13,    /* moved by CUDA between host and device (kDLCUDAManaged) */
    WEIR_MEMORY_ONEAPI = 14,          /* of a oneAPI device (kDLOneAPI) */
    WEIR_MEMORY_UNKNOWN = 0x7fffffff, /* DLPack does not have this number */
} weir_memory_kind;

/* Where values are. All-zero is the host's memory. */
typedef struct weir_memory {
    weir_memory_kind kind;
    int32_t device; /* number of the device, from 0; 0 for memory that the CPU may touch, also if it is pinned */
} weir_memory;

/* "host", "pinned host (CUDA)", "CUDA"; "unknown" = not a value of the enum. A static text. */
WEIR_API const char *weir_memory_kind_name(weir_memory_kind kind);

/* Whether the CPU may read and write this memory: true for host, pinned and managed memory, false for all else. */
WEIR_API bool weir_memory_is_accessible(weir_memory memory);

/* WEIR_OK: the CPU may read and write this memory. WEIR_EUNSUPPORTED: it may not; *error (may be NULL) then names `who`, the
   operation that wanted to ("collate"), and the kind and number of the device. */
WEIR_API int weir_memory_check(weir_memory memory, const char *who, weir_error *error);

/* DLPack's DLDeviceType of this memory. DLPack's device_id is memory.device. */
WEIR_API int32_t weir_memory_dlpack_type(weir_memory memory);

/* The memory that DLPack's type and device_id name. A type that weir does not know keeps its number. */
WEIR_API weir_memory weir_memory_of_dlpack(int32_t type, int32_t device_id);

/* ---- allocators ---------------------------------------------------------------------------------------------------- */

/*
 * An allocator has owners: the program, each stage that uses it (weir_video_config.allocator, weir_image_config.allocator,
 * weir_collate_config.allocator), and each result in its memory. When the last owner ends, the free blocks are freed, and
 * `close` is called. So a batch may outlive the pipeline, and a DLPack tensor may outlive its batch.
 */
typedef struct weir_allocator weir_allocator;

typedef struct weir_allocator_config {
    /* The kind of memory that `allocate` returns. The stages of weir run on the CPU: they need host, pinned or managed memory. */
    weir_memory memory;
    void *self; /* passed to the functions */
    /* Both are required. They are called on any thread, also on several at once, but never under a lock of weir. A block is
       reused for results that need at most its size and at least half of it. At most 8 free blocks are kept, each until many
       requests had no use for it. `allocate` returns NULL if there is no memory. Its result must be aligned for any type;
       64 bytes are best. */
    void *(*allocate)(void *self, size_t num_bytes);
    void (*free)(void *self, void *data, size_t num_bytes);
    /* The last call: called once, after the last block was freed, on the thread of the last owner. NULL = none. */
    void (*close)(void *self);
} weir_allocator_config;

/* WEIR_OK: *allocator is set. The program gives it up with weir_allocator_free(), at any time after the pipelines that use it
   have been built. Otherwise *allocator is NULL, `close` is not called, and *error (may be NULL) is filled. Failures
   are WEIR_EINVAL (an unknown kind, or a device number for host memory), WEIR_ENOMEM, and WEIR_EUNSUPPORTED (the
   config of a newer program). */
WEIR_API int weir_allocator_new_sized(const weir_allocator_config *config, size_t config_size,
                                      weir_allocator **allocator, weir_error *error);

static inline int weir_allocator_new(const weir_allocator_config *config, weir_allocator **allocator,
                                     weir_error *error)
{
    return weir_allocator_new_sized(config, sizeof *config, allocator, error);
}

/* Ends the program's ownership. NULL is fine. Any thread. */
WEIR_API void weir_allocator_free(weir_allocator *allocator);

/* The kind of memory that it allocates. NULL is host memory. */
WEIR_API weir_memory weir_allocator_memory(const weir_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
