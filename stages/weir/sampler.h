/*
 * The sampler: which items of a dataset come, in which order, and on which rank. It deals in numbers, 0 to num_items - 1;
 * what an item is, the source's config says.
 *
 * The order is a function of (seed, epoch, num_items) and the options alone, in integer arithmetic: the same on every
 * machine, in every build, with any number of threads. tests/test_sampler.c pins it. Orders as listed, shuffled, in
 * windows or with replacement take no memory per item.
 *
 * An epoch is a list of num_samples positions; rank r of w takes the positions r, r + w, r + 2w, …, so that at any moment
 * all ranks are about the same way into the epoch. With windows a rank takes a range of positions in a row instead, so
 * that it has its windows to itself. The same (epoch, position) gives the same item again: that is all a checkpoint has to
 * know about a rank.
 */
#ifndef WEIR_SAMPLER_H
#define WEIR_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/entry.h>
#include <weir/export.h>
#include <weir/op.h>
#include <weir/status.h>
#include <weir/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A permutation of 0 … count - 1, decided by a key: a Feistel network. Nothing is stored per element. By value; its
   fields are its own. */
enum { WEIR_PERMUTATION_MAX_ROUNDS = 24 };
typedef struct weir_permutation {
    uint64_t count;
    uint64_t num_rows, num_columns;
    uint64_t keys[WEIR_PERMUTATION_MAX_ROUNDS];
    int num_rounds;
} weir_permutation;

/* count: up to 2^62. Any thread; so are the next two. */
WEIR_API weir_permutation weir_permutation_make(uint64_t count, uint64_t key);

/* What stands at that place; 0 for places from count on. */
WEIR_API uint64_t weir_permutation_at(const weir_permutation *permutation, uint64_t place);

/* Where that number stands; 0 for numbers from count on. */
WEIR_API uint64_t weir_permutation_find(const weir_permutation *permutation, uint64_t number);

typedef enum weir_sampler_order {
    WEIR_SAMPLER_LISTED = 0, /* 0, 1, 2, … */
    WEIR_SAMPLER_SHUFFLED,   /* another permutation in each epoch */
    WEIR_SAMPLER_WINDOWS, /* shuffled windows of window_items neighbours each, shuffled within: for archives and slow
                                disks, where neighbours are read at less cost */
} weir_sampler_order;

/* What becomes of the positions that do not divide evenly among the ranks. */
typedef enum weir_sampler_share {
    WEIR_SHARE_EXACT = 0, /* each position on one rank; ranks differ by one at most */
    WEIR_SHARE_PAD,       /* equal counts: the first positions once more at the end */
    WEIR_SHARE_DROP,      /* equal counts: the last positions are left out */
} weir_sampler_share;

/* Setting this struct to all-0, but for num_items, is equivalent to defaults. Arrays have num_items elements and are
   copied. */
typedef struct weir_sampler_config {
    uint64_t num_items; /* of the dataset, up to 2^62; at least 1 */
    uint64_t seed;

    weir_sampler_order order; /* (default WEIR_SAMPLER_LISTED) */
    uint64_t window_items;    /* WINDOWS: at least 1 */

    bool replacement; /* each position draws anew: items come more than once, and others not at all */
    const double
        *weights; /* how likely an item is drawn, beside the others: at least 0, not all 0. Without replacement
                              items with a higher weight tend to come earlier, and those of 0 do not come at all. The
                              order is always random; 24 bytes per item (NULL = all the same) */
    const uint32_t *classes; /* balanced: each run of num_classes positions has one item of each class, drawn from a
                                shuffled list of the class that starts again when it has ended. Not together with
                                weights; 16 bytes per item (NULL = not balanced) */
    uint32_t num_classes;    /* of these: classes are 0 to num_classes - 1, and each has an item */
    uint64_t num_samples;    /* positions of an epoch, on all ranks together (0 = as many as there are items, without
                                those of weight 0). If there are more than items, the items are gone through again, in
                                another permutation */

    weir_world world;         /* which share is this process's (size 0 = as the launcher's environment says; see
                                 weir_world_find()) */
    weir_sampler_share share; /* (default WEIR_SHARE_EXACT) */
    const double
        *costs; /* what each item is expected to take, in any unit, at least 0: of every `world.size` positions in
                            a row each rank still gets one, but chosen so that ranks have had the same cost up to there.
                            16 bytes per item. Not with WINDOWS (NULL = dealt out in turns) */
    uint64_t reserved[8]; /* 0 */
} weir_sampler_config;

/* One thread at a time for each sampler. */
typedef struct weir_sampler weir_sampler;

/*
 * Checks and copies. WEIR_OK; or *sampler is NULL and *error (may be NULL) is filled: WEIR_EINVAL (an option that makes no
 * sense, a class without items, a rank beyond the world), WEIR_ENOMEM. It begins with epoch 0.
 */
WEIR_API int weir_sampler_new(const weir_sampler_config *config, weir_sampler **sampler, weir_error *error);

/* Goes to an epoch. At once, but for weights without replacement (sorts) and costs (goes through the epoch once). WEIR_OK,
   WEIR_EINVAL (NULL) or WEIR_ENOMEM; then only weir_sampler_free() makes sense. */
WEIR_API int weir_sampler_begin(weir_sampler *sampler, uint64_t epoch);

/* How many items this rank has in an epoch; the same in each epoch. */
WEIR_API uint64_t weir_sampler_count(const weir_sampler *sampler);

/* The item at place `position` of this rank's share of the epoch; 0 for positions from the count on. Any order of calls. */
WEIR_API uint64_t weir_sampler_at(weir_sampler *sampler, uint64_t position);

/* As the environment or the config says; see weir_sampler_config.world. */
WEIR_API weir_world weir_sampler_world(const weir_sampler *sampler);

/* NULL is fine. */
WEIR_API void weir_sampler_free(weir_sampler *sampler);

/* ---- the source ------------------------------------------------------------------------------------------------ */

/* What makes items of numbers: a list of paths, an index (weir_index_items()), or anything else. */
typedef struct weir_sampler_items {
    void *self; /* must outlive the pipeline */
    /* Fills entry->path (allocated, freed by weir_entry_free()) and what else is known; number and epoch are set.
       WEIR_OK, or the failure with *error filled, which is the source's. On the source's thread. */
    int (*fill)(void *self, weir_entry *entry, weir_error *error);
} weir_sampler_items;

/* Setting this struct to all-0, but for the items, is equivalent to defaults. */
typedef struct weir_sampler_source_config {
    weir_sampler_config sampler; /* num_items: of paths, or of what `items` knows */
    const char *const *paths;    /* copied; NULL = items */
    weir_sampler_items items;
    uint64_t first_epoch;    /* number of the first epoch that the pipeline goes through */
    uint64_t first_position; /* of this rank in that epoch: those before it are left out */
    void *made;              /* the source's own; NULL */
    uint64_t reserved[16];   /* 0 */
} weir_sampler_source_config;

/*
 * Each item's data is a weir_entry *, its label the path, its number
 * (weir_item.seq) the position in this rank's share, less first_position. weir_builder_source() refuses what weir_sampler_new() refuses.
 * weir_stage_options.epochs says through how many epochs the pipeline goes.
 */
extern WEIR_API const weir_op weir_sampler_source;

#ifdef __cplusplus
}
#endif

#endif
