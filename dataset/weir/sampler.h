/*
 * The sampler decides which items of a dataset are used, in which order, and on which rank. It works with item
 * numbers, 0 to num_items - 1; the source's config maps them to items.
 *
 * The order depends only on (seed, epoch, num_items) and the options, in integer arithmetic: it is the same on every
 * machine, in every build, with any number of threads (checked by tests/test_sampler.c). Orders as listed, shuffled,
 * in blocks or with replacement need no memory per item.
 *
 * An epoch is a list of num_samples positions; rank r of w gets the positions r, r + w, r + 2w, …, so that all ranks
 * advance through the epoch together. With blocks and groups a rank gets a contiguous range of positions
 * instead, so that these are not shared between ranks. The same (epoch, position) always gives the same item: a checkpoint stores
 * only positions.
 */
#ifndef WEIR_SAMPLER_H
#define WEIR_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/op.h>
#include <weir/pipeline.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the rank of this process ---------------------------------------------------------------------------------------- */

/* This process's rank, from the environment of the launcher (mpirun, srun, torchrun). The libraries of these
   launchers are not needed. */

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

typedef enum weir_sampler_order {
    WEIR_SAMPLER_LISTED = 0, /* 0, 1, 2, … */
    WEIR_SAMPLER_SHUFFLED,   /* a different permutation in each epoch */
    WEIR_SAMPLER_BLOCKS,     /* blocks of block_items neighbours, shuffled, and shuffled within: for archives and slow
                                disks, where reading neighbours is cheaper */
    WEIR_SAMPLER_BUCKETS, /* items of similar sizes are neighbours, so that batches of them need little padding. Sorted by size,
                             the items are in num_buckets of equal total size. In each epoch each bucket is shuffled and cut into
                             blocks of block_items; what is left of the buckets makes further ones; then the blocks are
                             shuffled. 8 bytes per item */
    WEIR_SAMPLER_GROUPS, /* as SHUFFLED, but within each block of block_items, the items of a group come one after the other. A
                            group is, for example, the clips of one file, which then share what they decode
                            (weir_video_config.keep_open). 8 bytes per item, and 32 per item of a block */
} weir_sampler_order;

/* How positions that do not divide evenly among the ranks are handled. */
typedef enum weir_sampler_share {
    WEIR_SHARE_EXACT = 0, /* each position on one rank; counts differ by at most one */
    WEIR_SHARE_PAD,       /* equal counts: the first positions are repeated at the end */
    WEIR_SHARE_DROP,      /* equal counts: the last positions are left out */
} weir_sampler_share;

/* Setting all fields except num_items to 0 is equivalent to defaults. Arrays have num_items elements and are copied. */
typedef struct weir_sampler_config {
    uint64_t num_items; /* of the dataset, up to 2^62; at least 1 */
    uint64_t seed;

    weir_sampler_order order; /* (default WEIR_SAMPLER_LISTED) */
    /* BLOCKS, BUCKETS and GROUPS: at least 1. Of buckets: the items of a batch, times the number of ranks; ranks take
       turns within a block. It must stay the same if a run is resumed with another number of ranks */
    uint64_t block_items;
    const double *sizes;    /* BUCKETS: of each item, at least 0: weir_dataset_read_sizes(), or anything else */
    uint32_t num_buckets;   /* BUCKETS: at least 1 */
    const uint64_t *groups; /* GROUPS: of each item, any numbers: weir_dataset_read_files() */

    bool replacement; /* each position draws from all items: some items repeat, others do not occur */
    /* relative probability of each item: at least 0, not all 0. Without replacement, items with a higher weight tend to
       come earlier, and items of weight 0 do not occur. The order is always random; 24 bytes per item (NULL = equal
       weights) */
    const double *weights;
    /* class of each item, to balance: every num_classes positions have one item of each class, from the shuffled list
       of the class, which restarts at its end. Not together with weights; 16 bytes per item (NULL = not balanced) */
    const uint32_t *classes;
    uint32_t num_classes; /* classes are 0 to num_classes - 1; each must have an item */
    uint64_t num_samples; /* positions of an epoch, on all ranks together (0 = the number of items with a weight above
                                0). If it is larger than the number of items, the items repeat, in another
                                permutation */
    weir_world world;     /* this process's rank (size 0 = from the launcher's environment; see
                                 weir_world_find()) */
    weir_sampler_share share; /* (default WEIR_SHARE_EXACT) */
} weir_sampler_config;

/* One thread at a time for each sampler. */
typedef struct weir_sampler weir_sampler;

/*
 * Checks and copies. WEIR_OK; or *sampler is NULL and *error (may be NULL) is filled: WEIR_EINVAL (an invalid
 * option, a class without items, a rank not below the size), WEIR_ENOMEM. It begins with epoch 0.
 */
WEIR_API int weir_sampler_new(const weir_sampler_config *config, weir_sampler **sampler, weir_error *error);

/* Starts an epoch. Takes constant time, except with weights without replacement (a sort). WEIR_OK, WEIR_EINVAL or
   WEIR_ENOMEM; after a failure only weir_sampler_free() may be called. */
WEIR_API int weir_sampler_begin(weir_sampler *sampler, uint64_t epoch);

/* The number of items of this rank in the epoch; the same for all epochs that were not resumed. */
WEIR_API uint64_t weir_sampler_count(const weir_sampler *sampler);

/* The item at `position` of this rank's share of the epoch; 0 for positions ≥ the count. Positions in any order. */
WEIR_API uint64_t weir_sampler_at(weir_sampler *sampler, uint64_t position);

/*
 * Goes on where these checkpoints were made, as the source does with weir_pipeline_options.resume: the one of this
 * rank, or those of all ranks, whose rest is divided. Begins with the epoch in which a resumed pipeline begins. The
 * sampler needs the options of the pipeline's; that the items are the same is not checked. source: the number of the
 * sampler among the pipeline's sources, from 0. May be called again, with later checkpoints, to follow a run. The
 * texts are not kept. WEIR_OK; or *error (may be NULL) is filled: WEIR_EINVAL (of another sampler or rank),
 * WEIR_EDATA (damaged), WEIR_EUNSUPPORTED (of a newer version), WEIR_ENOMEM; after a failure only weir_sampler_free()
 * may be called.
 */
WEIR_API int weir_sampler_resume(weir_sampler *sampler, const char *const *texts, size_t num_texts, size_t source,
                                 weir_error *error);

/*
 * How many items of the epoch that has begun a pipeline still delivers to this rank: weir_sampler_count(), after
 * weir_sampler_resume() without those that were done. Exact with WEIR_FAILED_REPLACE and _MASK, or if none fails; items that fail
 * and are left out, and those that stages skip, make it fewer. With weir_pipeline_options.retry_failed, those that have failed
 * are left, too.
 */
WEIR_API uint64_t weir_sampler_left(const weir_sampler *sampler);

/* The batches that they fill: of batch_items each, the last one incomplete, or left out with drop_last. For len() of a loader whose
   stage weir_aggregate has a concurrency of 1. 0 if batch_items is 0. */
WEIR_API uint64_t weir_sampler_batches_left(const weir_sampler *sampler, uint64_t batch_items, bool drop_last);

/* NULL is fine. */
WEIR_API void weir_sampler_free(weir_sampler *sampler);

/* ---- the source ------------------------------------------------------------------------------------------------ */

/* Maps numbers to items: from an index (weir_dataset_items()), or anything else. */
typedef struct weir_sampler_items {
    void *self; /* must outlive the pipeline */
    /* Fills entry->path (allocated, freed by weir_entry_free()) and all other fields that are known; number, epoch and
       stands_in are already set. WEIR_OK, or the failure with *error filled, which fails the source. Never two calls at
       once for one source. */
    int (*fill)(void *self, weir_entry *entry, weir_error *error);
} weir_sampler_items;

/* What becomes of the place of an item whose task fails in the stage that takes the sampler's items. */
typedef enum weir_sampler_failed {
    WEIR_FAILED_DEFAULT = 0, /* REPLACE where the share promises equal counts (PAD, DROP), else LEAVE_OUT */
    WEIR_FAILED_REPLACE,     /* another item of this rank's share takes it, under the number of the one that failed */
    WEIR_FAILED_MASK,        /* the same, and weir_entry.stands_in is set: weir_collated.valid is 0 there */
    WEIR_FAILED_LEAVE_OUT,   /* this rank delivers fewer items than its count */
} weir_sampler_failed;

/* Setting all fields except the items to 0 is equivalent to defaults. */
typedef struct weir_sampler_source_config {
    weir_sampler_config sampler; /* num_items: the number of paths, or of `items` */
    const char *const *paths;    /* copied; NULL = use items */
    weir_sampler_items items;
    uint64_t first_epoch;    /* number of the pipeline's first epoch */
    uint64_t first_position; /* of this rank in that epoch: earlier ones are skipped */
    void *made;              /* private to the source; NULL */
    /* Identifies the items in checkpoints, for example weir_dataset_fingerprint(): a pipeline is not resumed with other items
       (0 = not compared). Paths are always compared, by their identities (weir_item_identity()), so URLs may have new
       signatures. If URLs have hidden values that may name the object, set the same weir_identity_set_key() in each process. */
    uint64_t dataset;
    weir_sampler_failed failed; /* (default WEIR_FAILED_DEFAULT) */
    void *numbers;              /* private to the source; NULL */
} weir_sampler_source_config;

/*
 * Each item's data is a weir_entry *. Its label is the path; its identity is that of the path, with weir_entry.occurrence. Its
 * number (weir_item.seq) is the position in this rank's share, minus first_position. weir_source_sampler() refuses what
 * weir_sampler_new() refuses.
 * weir_stage_options.epochs sets the number of epochs. If all tasks of a stage fail in the first epoch, the pipeline
 * fails and says why. For example, all files have changed since they were indexed.
 *
 * Equal counts are kept when items fail: with WEIR_FAILED_REPLACE each position of the share becomes a result, so a rank
 * delivers exactly weir_sampler_count() items in each epoch. An item that fails is replaced by that of the next position of
 * the share, and at the end by the first one. Each failure is counted, reported and limited by max_failures. If all items
 * of the share fail at one position, the pipeline fails. It also fails if a task of a later stage fails, where nothing can
 * be replaced. So put what may fail into the stage behind the sampler, or choose WEIR_FAILED_LEAVE_OUT. What stages skip
 * (WEIR_SKIP) is left out, and a clip that fails after some of its chunks (WEIR_MORE) is not replaced.
 *
 * With weir_pipeline_options.resume the source continues where the checkpoint was made. A single text is that of this
 * rank. With the texts of all ranks, what is left is divided among the present ranks, however many they are. In epochs
 * that had begun, each rank gets every `world.size`th of the items that are left, shared as `share` says. Positions get
 * new numbers. Epochs that had not begun are shared as usual.
 */
extern WEIR_API const weir_op weir_sampler_source;

/* Adds the source to the builder; see weir_builder_source(). */
static inline void weir_source_sampler(weir_builder *builder, const weir_sampler_source_config *config,
                                       const weir_stage_options *options)
{
    weir_builder_source(builder, &weir_sampler_source, config, sizeof *config, options);
}

/* ---- a stream: the shuffle buffer ------------------------------------------------------------------------------------ */

/*
 * The shuffle buffer, for streams whose length and order are not known in advance. It holds num_items items; for each
 * input it outputs a random one of those it holds. At the end of an epoch or of the stream it outputs the rest in
 * random order; no item crosses the end of an epoch. If the items are known in advance, use weir_sampler_source,
 * which shuffles all of them without a buffer.
 *
 * Items keep their data, type, label and number (weir_item.seq). The choice depends on the seed, and on the epoch and number of
 * the input item: with inputs in order (WEIR_ORDER_INPUT upstream) and a concurrency of 1, runs are reproducible. With a higher
 * concurrency each slot has a separate buffer.
 */

typedef struct weir_shuffle_config {
    size_t num_items; /* size of the buffer; at least 1, which keeps the order */
    uint64_t seed;
} weir_shuffle_config;

extern WEIR_API const weir_op weir_shuffle;

/* Adds the stage to the builder; see weir_builder_pipe(). */
static inline void weir_pipe_shuffle(weir_builder *builder, const weir_shuffle_config *config,
                                     const weir_stage_options *options)
{
    weir_builder_pipe(builder, &weir_shuffle, config, sizeof *config, options);
}

#ifdef __cplusplus
}
#endif

#endif
