/*
 * What a tracker knows: tickets, and sources with their done sets. Private to this room; tracker.h has the rules.
 *
 * tracker->lock guards it. It is never held together with another lock, and nobody allocates while it is held.
 *
 *     done_set.c           the items of one epoch that are done
 *     tracked.c            the done sets of a source
 *     tracker_resume.c     sources as the checkpoints of earlier runs say
 *     tracker.c            tickets: items, steps, sources
 *     checkpoint_write.c   the text of a checkpoint
 */
#ifndef ENGINE_RESUME_TRACKED_H
#define ENGINE_RESUME_TRACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "engine/resume/checkpoint_parsed.h"
#include "engine/resume/done_set.h"
#include "engine/state/run_state.h"

enum {
    TICKETS_PER_BLOCK = 4096,
    NUM_BLOCKS = 4096,
    INDEX_BITS = 24,
    INDEX_MASK = (1 << INDEX_BITS) - 1,
};

typedef struct tracked_ticket {
    /* owned by the list that the ticket is in */
    uint32_t next; /* 0 = the last; also of the free list */

    /* guarded by lock */
    uint32_t refs;
    uint32_t parent; /* 0 = a root */
    uint32_t chunks; /* of a root: its done chunks */

    /* immutable from the making of the ticket to its end */
    uint32_t root;
    uint32_t source;
    uint64_t epoch;
    uint64_t seq;
    uint64_t path; /* of a root: UINT64_MAX */

    uint8_t generation; /* of the handle, so that a stale one is recognised */
} tracked_ticket;

/* Guarded by lock, except the first line. */
typedef struct tracked_source {
    weir_node *node;
    done_set *sets;          /* by epoch; only the source's thread adds one */
    weir_done_chunk *chunks; /* done in an earlier run, of items that have not been made again */
    size_t num_chunks;
    uint64_t begun_before, num_left_over; /* as in weir_done_source, of all checkpoints that were given */
} tracked_source;

struct weir_tracker {
    /* immutable after init */
    bool acknowledged; /* WEIR_CHECKPOINTS_DONE */
    bool retry_failed; /* failed items are not done */
    bool lock_made;
    tracked_source *sources;
    uint32_t num_sources;

    uv_mutex_t lock;

    /* guarded by lock; a block does not move once it is there */
    tracked_ticket **blocks;
    uint32_t num_blocks;
    uint32_t free;         /* list of tickets */
    uint64_t num_recorded; /* chunks in lists of roots */
    uint64_t epochs_delivered;
};

/* The ticket of a handle, or of its index alone. */
static inline tracked_ticket *weir__tracked_ticket_at(const weir_tracker *tracker, uint32_t handle)
{
    uint32_t index = handle & INDEX_MASK;
    return &tracker->blocks[index / TICKETS_PER_BLOCK][index % TICKETS_PER_BLOCK];
}

/* With the lock. NULL = the epoch has no set. */
done_set *weir__tracked_find_set(const tracked_source *source, uint64_t epoch);

/* Without the lock, on the source's thread or before it runs: adds the set of the epoch, unless it is there. WEIR_OK with *added,
   or WEIR_ENOMEM. */
int weir__tracked_add_set(weir_tracker *tracker, tracked_source *source, uint64_t epoch, done_set **added);

/* The same: adds room for the item, before the source makes it. WEIR_OK or WEIR_ENOMEM. */
int weir__tracked_make_room(weir_tracker *tracker, done_set *set, uint64_t seq);

/* Returns WEIR_ENOMEM with *error filled. */
int weir__tracked_fail_memory(weir_error *error);

#endif
