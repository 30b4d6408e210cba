/*
 * Exact resume. A pipeline that is built with weir_pipeline_options.checkpoints knows at any moment which items of its
 * sources are done. weir_pipeline_checkpoint() writes this as a small text, and weir_checkpoint_store() as a file. A
 * pipeline built from the text delivers exactly the rest:
 *
 *     options.checkpoints = WEIR_CHECKPOINTS_DELIVERED;
 *     options.resume = &text;                               // of the last run; options.num_resume = 1 (0 = from the start)
 *     …
 *     while ((rc = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
 *         use(&item);
 *         weir_checkpoint_store(pipeline, "job.checkpoint", weights, sizeof weights, &error);
 *     }
 *
 * An item of a source is done when all its results have been delivered (or acknowledged, with WEIR_CHECKPOINTS_DONE),
 * skipped, or have failed. Failed items count as done, because the run has reported them; items that were dropped by a
 * stop or by the failure of the pipeline do not. If only some results of an item (WEIR_MORE) are done, the item is
 * processed again and these results are left out.
 *
 * The resumed pipeline must have the same sources and the same operations, and operations must make the same results
 * from the same input; order, concurrency, queues and threads may differ. Sources run again from their start and their
 * done items are left out. weir_sampler_source continues at the right item instead, and can also divide the remaining
 * items among another number of ranks.
 *
 * Limit: if one task makes several results from a batch (WEIR_MORE) and only some of them are done, all of them are
 * delivered again. This does not apply to weir_disaggregate and to operations that move the items of the batch to the
 * results with weir_item_move().
 */
#ifndef WEIR_CHECKPOINT_H
#define WEIR_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/item.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_pipeline;

/* weir_pipeline_options.checkpoints: when a result counts as done. */
typedef enum weir_checkpoints {
    WEIR_CHECKPOINTS_OFF = 0,   /* nothing is tracked; costs nothing */
    WEIR_CHECKPOINTS_DELIVERED, /* when weir_pipeline_next() returns it. For one consumer thread that handles its
                                   results before it makes a checkpoint */
    WEIR_CHECKPOINTS_DONE,      /* when the consumer calls weir_item_done() */
} weir_checkpoints;

/*
 * Writes the done items to a new text, which the caller frees with free(). It includes each WEIR_EPOCH that
 * weir_pipeline_next() has returned. Any thread; also after the pipeline has ended, failed or was stopped. Delays the
 * pipeline by microseconds. WEIR_OK; WEIR_EINVAL; WEIR_EUNSUPPORTED (built without checkpoints); WEIR_ENOMEM.
 */
WEIR_API int weir_pipeline_checkpoint(struct weir_pipeline *pipeline, char **text);

/*
 * Writes the checkpoint and the program's own state, such as its weights, into one file. Both get there at the same moment,
 * even if the machine loses power: the file is written beside, synced, and takes the place of the old one. Only a
 * checkpoint is replaced: a file of another kind is WEIR_EINVAL (see weir/output.h).
 * state: state_bytes bytes (NULL = none). Any thread. WEIR_OK; or the file is as it was, and *error (may be NULL) is filled:
 * WEIR_EINVAL, WEIR_EUNSUPPORTED (built without checkpoints), WEIR_ENOTFOUND (no such folder), WEIR_EACCESS, WEIR_EIO,
 * WEIR_ENOMEM.
 */
WEIR_API int weir_checkpoint_store(struct weir_pipeline *pipeline, const char *path, const void *state,
                                   size_t state_bytes, weir_error *error);

/*
 * Reads such a file: the text for weir_pipeline_options.resume, and the state with a NUL behind it. The caller frees
 * both with free(). state and state_bytes may be NULL. Any thread. Returns WEIR_OK or a failure. After a failure text
 * and state are NULL and *error (may be NULL) is filled. WEIR_ENOTFOUND: there is no such file, so start from the
 * beginning. WEIR_EDATA: a byte of it was changed, or it is another kind of file. WEIR_EUNSUPPORTED: it is of another
 * version. The others are WEIR_EINVAL, WEIR_EACCESS, WEIR_EIO and WEIR_ENOMEM.
 */
WEIR_API int weir_checkpoint_load(const char *path, char **text, void **state, size_t *state_bytes,
                                  weir_error *error);

/*
 * With WEIR_CHECKPOINTS_DONE: the result has been handled. For the result of weir_aggregate this means all items of the
 * batch; weir_batch.items can also be acknowledged one by one. Call it before the item is released; further calls for
 * the same item do nothing. Any thread. WEIR_OK; WEIR_EINVAL; WEIR_EUNSUPPORTED (another kind of checkpoints).
 */
WEIR_API int weir_item_done(struct weir_pipeline *pipeline, weir_item *item);

/* ---- reading -------------------------------------------------------------------------------------------------- */

/* A parsed text, as weir_op.resume gets it. Made by the library only; immutable: any thread. Sources are numbered as they
   were built, epochs and items from 0. */
typedef struct weir_checkpoint {
    uint64_t epoch; /* with which a resumed pipeline begins: all earlier ones are done */
    size_t num_sources;
    struct weir_done_source *sources; /* internal: weir_checkpoint_source() */
} weir_checkpoint;

/* Valid until the checkpoint is freed. */
typedef struct weir_checkpoint_source {
    const char *name;    /* of its stage */
    const char *text;    /* what weir_op.save wrote to identify its items; "" = nothing */
    uint64_t last_epoch; /* in which items of it may be done; at least weir_checkpoint.epoch */
} weir_checkpoint_source;

/* WEIR_OK, or *checkpoint is NULL and *error (may be NULL) names the line: WEIR_EDATA (not a checkpoint, or damaged),
   WEIR_EUNSUPPORTED (of a newer version), WEIR_EINVAL, WEIR_ENOMEM. */
WEIR_API int weir_checkpoint_read(const char *text, weir_checkpoint **checkpoint, weir_error *error);

/* NULL is fine. */
WEIR_API void weir_checkpoint_free(weir_checkpoint *checkpoint);

/* NULL = no such source. */
WEIR_API const weir_checkpoint_source *weir_checkpoint_source_at(const weir_checkpoint *checkpoint, size_t source);

/* Whether that item of the epoch is done. */
WEIR_API bool weir_checkpoint_is_done(const weir_checkpoint *checkpoint, size_t source, uint64_t epoch, uint64_t seq);

/* All items of the epoch before *low are done; from *end on, no item is done, not even partly. Both are UINT64_MAX if the
   epoch is complete. */
WEIR_API void weir_checkpoint_range(const weir_checkpoint *checkpoint, size_t source, uint64_t epoch, uint64_t *low,
                                    uint64_t *end);

#ifdef __cplusplus
}
#endif

#endif
