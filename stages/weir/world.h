/* Which of several processes this one is, as the launcher says: mpirun, srun, torchrun. No library of theirs is needed. */
#ifndef WEIR_WORLD_H
#define WEIR_WORLD_H

#include <stdint.h>

#include <weir/export.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_world {
    uint32_t rank; /* below size */
    uint32_t size; /* how many processes there are */
} weir_world;

/*
 * From the environment, the innermost launcher first:
 *   torchrun             RANK, WORLD_SIZE
 *   Open MPI             OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
 *   MVAPICH2             MV2_COMM_WORLD_RANK, MV2_COMM_WORLD_SIZE
 *   PMI (MPICH, Intel)   PMI_RANK, PMI_SIZE
 *   srun                 SLURM_PROCID, SLURM_STEP_NUM_TASKS: the latter is not there in a batch script itself
 *   PMIx                 PMIX_RANK, PMIX_SIZE: PMIx itself sets no size, so a launcher of no other kind has to
 * Without any of these it is rank 0 of 1. *launcher (may be NULL) is its name as above, "" = none; static text.
 *
 * WEIR_OK, or WEIR_EINVAL with *error (may be NULL) filled: one of a pair is missing, is not a number, the size is 0, or the
 * rank is not below it. Reads the environment: not while another thread changes it.
 */
WEIR_API int weir_world_find(weir_world *world, const char **launcher, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
