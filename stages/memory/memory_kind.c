#include <weir/allocator.h>

/* One row for each kind. */
typedef struct kind_row {
    weir_memory_kind kind;
    bool is_accessible; /* by the CPU */
    const char *name;
} kind_row;

static const kind_row kinds[] = {
    { WEIR_MEMORY_HOST, true, "host" },
    { WEIR_MEMORY_CUDA_HOST, true, "pinned host (CUDA)" },
    { WEIR_MEMORY_ROCM_HOST, true, "pinned host (ROCm)" },
    { WEIR_MEMORY_CUDA_MANAGED, true, "managed (CUDA)" },
    { WEIR_MEMORY_CUDA, false, "CUDA" },
    { WEIR_MEMORY_ROCM, false, "ROCm" },
    { WEIR_MEMORY_ONEAPI, false, "oneAPI" },
    { WEIR_MEMORY_OTHER, false, "another device's" },
};

/* An unknown kind may be anywhere. */
static const kind_row *find_row(weir_memory_kind kind)
{
    static const kind_row unknown = { WEIR_MEMORY_OTHER, false, "unknown" };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].kind == kind)
            return &kinds[i];
    return &unknown;
}

const char *weir_memory_kind_name(weir_memory_kind kind)
{
    return find_row(kind)->name;
}

bool weir_memory_is_accessible(weir_memory memory)
{
    return find_row(memory.kind)->is_accessible;
}

int weir_memory_check(weir_memory memory, const char *who, weir_error *error)
{
    if (weir_memory_is_accessible(memory))
        return WEIR_OK;
    return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                          "%s: the values are in %s memory (device %d), which the CPU cannot touch: copy them to the "
                          "host first",
                          who ? who : "weir", weir_memory_kind_name(memory.kind), (int)memory.device);
}

/* kDLCPU */
enum { DLPACK_HOST = 1 };

int32_t weir_memory_dlpack_type(weir_memory memory)
{
    return memory.kind == WEIR_MEMORY_HOST ? DLPACK_HOST : (int32_t)memory.kind;
}

weir_memory weir_memory_of_dlpack(int32_t type, int32_t device_id)
{
    weir_memory memory = { WEIR_MEMORY_HOST, device_id };
    if (type != DLPACK_HOST)
        memory.kind = type > DLPACK_HOST ? (weir_memory_kind)type : WEIR_MEMORY_UNKNOWN;
    return memory;
}
