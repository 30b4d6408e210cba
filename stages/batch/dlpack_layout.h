/*
 * DLPack's structs as they are in memory, for every build: the header of Debian 12 (libdlpack-dev 0.6) has no versioned
 * tensor. The layout is that of DLPack 1.0, include/dlpack/dlpack.h of https://github.com/dmlc/dlpack, whose unversioned
 * part is the same since 0.3; tests/test_dlpack.c compares it with the installed header. The names are ours, so that a
 * program may include both. Internal.
 */
#ifndef STAGES_BATCH_DLPACK_LAYOUT_H
#define STAGES_BATCH_DLPACK_LAYOUT_H

#include <stdint.h>

/* Codes of a type (DLDataTypeCode). */
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4 };

/* The version that all consumers which know the major version can read. */
enum { DL_MAJOR_VERSION = 1, DL_MINOR_VERSION = 0 };

/* Flags (DLPACK_FLAG_BITMASK_…). */
enum { DL_READ_ONLY = 1 };

typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type; /* DLDeviceType: weir_memory_dlpack_type() */
        int32_t id;
    } device;
    int32_t num_dims;
    struct {
        uint8_t code;
        uint8_t bits;
        uint16_t lanes; /* 1: no vectors */
    } dtype;
    int64_t *shape;
    int64_t *strides; /* in values */
    uint64_t byte_offset;
} dl_tensor;

/* DLManagedTensor */
typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

/* DLManagedTensorVersioned */
typedef struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

#endif
