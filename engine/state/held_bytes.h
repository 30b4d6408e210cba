/*
 * The bytes that a stage holds for itself (weir_task_set_held()), and their largest sum in a lap. Internal. A level belongs to one
 * holder: a worker, or all of them together. Any thread may set any level, without the lock.
 *
 * Invariants, when no call is under way: `bytes` is the sum of the levels; `most` is at least `bytes`.
 */
#ifndef ENGINE_STATE_HELD_BYTES_H
#define ENGINE_STATE_HELD_BYTES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* More than any machine has, and few enough that the sum over all slots does not overflow. */
#define WEIR__MOST_HELD_BYTES (UINT64_C(1) << 46)

/* What is all-zero: nobody has reported anything. */
typedef struct weir__held {
    _Atomic int64_t bytes;  /* of all holders, now */
    _Atomic int64_t most;   /* since it was last taken */
    _Atomic int64_t shared; /* the level of what all workers share */
    atomic_bool is_known;   /* a level was set */
} weir__held;

/* Sets a level of this sum. Costs two reads if it is the same as before. bytes: at most WEIR__MOST_HELD_BYTES. */
void weir__held_set(weir__held *held, _Atomic int64_t *level, int64_t bytes);

/* The largest sum since the last call; -1 = no level was ever set. One thread at a time. */
int64_t weir__held_take(weir__held *held);

#endif
