/* This process's rank, from the environment of the launcher (mpirun, srun, torchrun). None of their libraries is
   needed. */
#ifndef WEIR_WORLD_H
#define WEIR_WORLD_H

#include <stdint.h>

#include <weir/export.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_world {
    uint32_t rank;       /* below size */
    uint32_t size;       /* the number of processes */
    uint32_t local_rank; /* among the processes of this machine; 0 if the launcher does not say it */
} weir_world;

/*
 * From the environment, the innermost launcher first:
 *   torchrun             RANK, WORLD_SIZE, LOCAL_RANK
 *   Open MPI             OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_RANK
 *   MVAPICH2             MV2_COMM_WORLD_RANK, MV2_COMM_WORLD_SIZE, MV2_COMM_WORLD_LOCAL_RANK
 *   PMI (MPICH, Intel)   PMI_RANK, PMI_SIZE, MPI_LOCALRANKID
 *   srun                 SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID: the batch script itself does not have the
 *                        second
 *   PMIx                 PMIX_RANK, PMIX_SIZE, PMIX_LOCAL_RANK: PMIx does not set the size; a launcher not listed above
 *                        has to set it
 * Without any of these it is rank 0 of 1. *launcher (may be NULL) is its name as above, "" = none; static text.
 *
 * WEIR_OK, or WEIR_EINVAL with *error (may be NULL) filled: one variable of a pair is missing or not a number, the
 * size is 0, or the rank is not below the size. Reads the environment, so no other thread may change it meanwhile.
 */
WEIR_API int weir_world_find(weir_world *world, const char **launcher, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
