/*
 * Which items of the sources are done, for checkpoints. Exists only in pipelines built with checkpoints; otherwise
 * pipeline->tracker is NULL, weir_item.tickets is 0 everywhere, and a step costs one comparison.
 *
 * A ticket stands for something that must be finished. A root stands for one source item. A chunk stands for one of
 * several results that a task made from its input, and its parent is the input's ticket. An item carries a list of
 * tickets: one, or many after a stage that combines items. Marks move with the items:
 *
 *     a source's result        gets a new root
 *     WEIR_OK                  the result gets the input's tickets, and those of items that the task released
 *     WEIR_MORE, then WEIR_OK  each result gets a new chunk; its parent is the input's ticket
 *     WEIR_KEPT                tickets stay with the kept item (weir_item_keep()); without a kept item they stay with the
 *                              slot, which gives them to its next result
 *     failed and replaced      the other input gets the tickets of the one that failed
 *     weir_item_move()         tickets of an item in a batch, or of a kept item, move with it. The input's own tickets stay
 *                              with the task, even if its data is moved
 *     skipped, failed, delivered or acknowledged: finished
 *     dropped by a stop or by the pipeline's failure, failed with retry_failed, or with its place lost: never finished
 *
 * A ticket is done when it and all its chunks are finished. When a root is done, its item is set in the done_set of
 * its source and epoch. When a chunk is done, it is kept with its root until that is done, and is part of
 * checkpoints.
 *
 * Chunks are identified across runs by a path: a hash of the stages and numbers that made them. Chunks of tickets that
 * share an item (a batch) have path 0, because the next run makes other batches; they are not recorded.
 *
 * Invariants when the lock is free:
 *   1. Each ticket that is not free is in one of three states. It is in exactly one list (of an item in the pipeline,
 *      of a slot, or of its root's done chunks). Or it has been given up by a drop. Or it is a parent that waits for
 *      its chunks.
 *   2. ticket->refs = 1 if it is not finished, plus the number of its chunks that are not done; 0 only for recorded chunks.
 *   3. That of each done_set.
 *
 * Lists are changed without the lock, by the thread that owns the item or slot. The tracker's lock is never held
 * together with another lock.
 */
#ifndef ENGINE_RESUME_TRACKER_H
#define ENGINE_RESUME_TRACKER_H

#include "engine/state/run_state.h"

/* Call it when the nodes of the pipeline have been placed. Reads options->resume. *to stays NULL without checkpoints.
   WEIR_OK, or the failure with *error filled. */
int weir__tracker_new(weir_pipeline *pipeline, const weir_pipeline_options *options, weir_tracker **to,
                      weir_error *error);
void weir__tracker_free(weir_tracker *tracker); /* NULL is fine */

/* Before anything runs: the run begins with this epoch, all those before it are delivered. NULL is fine. */
void weir__tracker_begin_epoch(weir_tracker *tracker, uint64_t epoch);

/* Around each step of a task, on its thread and without the lock of the pipeline; only with a tracker. The
   step ends after the input has been released. */
void weir__tracker_step_begins(weir_task *slot);
void weir__tracker_step_ends(weir_task *slot, int status);

/* Between them, if the operation returned WEIR_OK or WEIR_MORE (`status`). Returns `status`;
   or WEIR_SKIP or slot->passed_over if the result was done in an earlier run; or a failure. */
int weir__tracker_made(weir_task *slot, int status);

/* The same for the operation of a source that returned WEIR_EPOCH or WEIR_EOF. WEIR_EDATA: more items of the epoch are done
   than it has. */
int weir__tracker_source_ended(weir_task *slot, int status);

/* weir_pipeline_next() returns this item, or the end of an epoch. */
void weir__tracker_delivered(weir_tracker *tracker, weir_item *item);
void weir__tracker_epoch_delivered(weir_tracker *tracker);

#endif
