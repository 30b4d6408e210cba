#include <weir/sampler.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

typedef struct launcher {
    const char *name;
    const char *rank, *size, *local_rank; /* variables */
    bool rank_alone_is_none;              /* the rank without the size is ignored */
} launcher;

/*
 * torchrun may be started by the other launchers, so it comes first; mpirun in a Slurm allocation passes on Slurm's
 * variables. Other programs may set only RANK or only WORLD_SIZE for other purposes; this is refused, because a guess
 * could read the wrong share.
 */
static const launcher launchers[] = {
    { "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", false },
    { "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", false },
    { "MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", false },
    { "PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", false },
    { "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", true },
    { "PMIx", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", false },
};

static int read_number(const char *variable, uint32_t *number, weir_error *error)
{
    const char *text = getenv(variable);
    char *end = NULL;
    errno = 0;
    unsigned long long value = text ? strtoull(text, &end, 10) : 0;
    if (!text || *text < '0' || *text > '9' || *end || errno || value > UINT32_MAX)
        return weir_error_set(error, WEIR_EINVAL, 0, "the environment variable %s is \"%s\", which is not a number",
                              variable, text ? text : "");
    *number = (uint32_t)value;
    return WEIR_OK;
}

static int read_pair(const launcher *from, weir_world *world, weir_error *error)
{
    bool has_rank = getenv(from->rank);
    if (has_rank != (getenv(from->size) != NULL))
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "the environment has %s without %s: set both (%s does), or neither",
                              has_rank ? from->rank : from->size, has_rank ? from->size : from->rank, from->name);
    int rc = read_number(from->rank, &world->rank, error);
    if (rc == WEIR_OK)
        rc = read_number(from->size, &world->size, error);
    if (rc == WEIR_OK && getenv(from->local_rank))
        rc = read_number(from->local_rank, &world->local_rank, error);
    if (rc == WEIR_OK && world->size == 0)
        rc = weir_error_set(error, WEIR_EINVAL, 0, "the environment has %s=0: it must be at least 1", from->size);
    if (rc == WEIR_OK && world->rank >= world->size)
        rc = weir_error_set(error, WEIR_EINVAL, 0,
                            "the environment has %s=%" PRIu32 " and %s=%" PRIu32 ": ranks are 0 to %" PRIu32,
                            from->rank, world->rank, from->size, world->size, world->size - 1);
    return rc;
}

int weir_world_find(weir_world *world, const char **name, weir_error *error)
{
    if (!world)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *world = (weir_world){ .size = 1 };
    if (name)
        *name = "";
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const launcher *from = &launchers[i];
        bool has_rank = getenv(from->rank);
        bool has_size = getenv(from->size);
        if (from->rank_alone_is_none ? !(has_rank && has_size) : !(has_rank || has_size))
            continue;
        if (name)
            *name = from->name;
        return read_pair(from, world, error);
    }
    return WEIR_OK;
}
