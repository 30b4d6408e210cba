/*
 * Which items of one epoch of a source are done: a ring of bits, one for each item from `low` on. It has no lock of its own:
 * the tracker's guards it.
 *
 * Invariant: all items before `low` are done, `low` is not, and the bits of items before `low` are 0.
 */
#ifndef ENGINE_RESUME_DONE_SET_H
#define ENGINE_RESUME_DONE_SET_H

#include <stdbool.h>
#include <stdint.h>

typedef struct done_set {
    uint64_t epoch;
    uint64_t low;
    uint64_t total; /* of items; UINT64_MAX = the source has not ended this epoch */
    uint64_t *words;
    uint64_t num_words; /* a power of 2 */
    struct done_set *next;
} done_set;

/* An empty set with room for the first items. NULL = out of memory. */
done_set *weir__done_set_new(uint64_t epoch);
void weir__done_set_free(done_set *set); /* NULL is fine */

/* The word with the bit of an item for which there is room. */
static inline uint64_t *weir__done_set_word(const done_set *set, uint64_t seq)
{
    return &set->words[seq / 64 & (set->num_words - 1)];
}

/* Is there a bit for this item, which is not before `low`? */
static inline bool weir__done_set_has_room(const done_set *set, uint64_t seq)
{
    return seq / 64 - set->low / 64 < set->num_words;
}

static inline bool weir__done_set_has(const done_set *set, uint64_t seq)
{
    return seq < set->low || (weir__done_set_has_room(set, seq) && *weir__done_set_word(set, seq) >> seq % 64 & 1);
}

/* There is room for the item, which is not in the set yet. */
void weir__done_set_add(done_set *set, uint64_t seq);

/* The first item without room; neither it nor one after it is in the set. */
uint64_t weir__done_set_limit(const done_set *set);

/* The item after the last one in the set. */
uint64_t weir__done_set_find_end(const done_set *set);

bool weir__done_set_is_complete(const done_set *set);

/* How many words give room for the item. */
uint64_t weir__done_set_count_words(const done_set *set, uint64_t seq);

/* Moves the bits to these words, which are 0, and more than before: a power of 2. Returns the words of before, which the
   caller frees; the set takes the others. It allocates nothing, so that it can be called with a lock. */
uint64_t *weir__done_set_enlarge(done_set *set, uint64_t *words, uint64_t num_words);

#endif
