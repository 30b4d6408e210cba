/*
 * Decisions of a test, one number after the other: at random from a seed, replayed from a list, or all there are. A
 * run that asks in the same way for the same answers does the same. So a failing run is a list of numbers, which can
 * be shrunk without knowing what they mean. 0 should be the simplest answer.
 */
#ifndef TESTS_CHOICES_H
#define TESTS_CHOICES_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_CHOICES = 4096 };

typedef enum choice_mode { CHOOSE_RANDOM, CHOOSE_REPLAY, CHOOSE_ALL } choice_mode;

typedef struct choices {
    choice_mode mode;
    uint64_t random;
    uint32_t count; /* of values: made so far, to be replayed, or fixed in this round */
    uint32_t at;    /* the next one */
    uint32_t fixed; /* with CHOOSE_ALL: the number of values that are as in an earlier round, except for the last of
                       them */
    uint32_t values[MAX_CHOICES], bounds[MAX_CHOICES];
} choices;

void choices_begin_random(choices *list, uint64_t seed);
void choices_begin_replay(choices *list, const uint32_t *values, uint32_t count);
void choices_begin_all(choices *list);

/* With CHOOSE_ALL, after a run: the next combination. False = that was the last one. */
bool choices_advance(choices *list);

/* From 0 to bound - 1; replayed beyond the end of the list: 0. */
uint32_t choose(choices *list, uint32_t bound);

/* True for one of `bound` answers, the last. */
bool choose_one_in(choices *list, uint32_t bound);

/* Makes the list of a failing run shorter and its numbers smaller. `fails` replays a list and says whether the run still
   fails. */
void choices_shrink(choices *list, bool (*fails)(void *self, const uint32_t *values, uint32_t count), void *self);

#endif
