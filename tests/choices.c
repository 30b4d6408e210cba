#include "tests/choices.h"

#include <string.h>

#include "common/random.h"

void choices_begin_random(choices *list, uint64_t seed)
{
    list->mode = CHOOSE_RANDOM;
    list->random = seed;
    list->count = list->at = 0;
}

void choices_begin_replay(choices *list, const uint32_t *values, uint32_t count)
{
    list->mode = CHOOSE_REPLAY;
    list->at = 0;
    list->count = count;
    if (count)
        memmove(list->values, values, count * sizeof *values);
}

void choices_begin_all(choices *list)
{
    list->mode = CHOOSE_ALL;
    list->count = list->at = list->fixed = 0;
}

bool choices_advance(choices *list)
{
    list->at = 0;
    for (; list->count > 0; list->count--)
        if (++list->values[list->count - 1] < list->bounds[list->count - 1]) {
            list->fixed = list->count;
            return true;
        }
    return false;
}

static uint32_t replayed(const choices *list, uint32_t bound)
{
    uint32_t value = list->at < list->count ? list->values[list->at] : 0;
    return value < bound ? value : bound - 1;
}

uint32_t choose(choices *list, uint32_t bound)
{
    uint32_t value = 0;
    if (bound < 2 || list->at == MAX_CHOICES)
        return 0;
    if (list->mode == CHOOSE_RANDOM)
        value = (uint32_t)((weir__random_next(&list->random) >> 32) * bound >> 32);
    else if (list->mode == CHOOSE_REPLAY)
        value = replayed(list, bound);
    else if (list->at < list->count)
        value = list->values[list->at];
    if (list->mode != CHOOSE_REPLAY && list->at >= list->count) {
        list->values[list->at] = value;
        list->bounds[list->at] = bound;
        list->count = list->at + 1;
    }
    list->at++;
    return value;
}

bool choose_one_in(choices *list, uint32_t bound)
{
    return choose(list, bound) == bound - 1;
}

enum { MAX_TRIES = 20000 };

typedef struct shrinking {
    choices *best;
    uint32_t tries;
    bool (*fails)(void *self, const uint32_t *values, uint32_t count);
    void *self;
} shrinking;

/* Replaces the best list if the other one fails, too. */
static bool try_list(shrinking *s, const uint32_t *values, uint32_t count)
{
    if (s->tries++ >= MAX_TRIES || !s->fails(s->self, values, count))
        return false;
    memcpy(s->best->values, values, count * sizeof *values);
    s->best->count = count;
    return true;
}

/* Without parts of it: large ones first. */
static bool cut_list(shrinking *s)
{
    static uint32_t values[MAX_CHOICES];
    bool any = false;
    for (uint32_t part = s->best->count; part > 0; part /= 2)
        for (uint32_t from = 0; from + part <= s->best->count;) {
            uint32_t rest = s->best->count - from - part;
            memcpy(values, s->best->values, from * sizeof *values);
            memcpy(values + from, s->best->values + from + part, rest * sizeof *values);
            if (try_list(s, values, from + rest))
                any = true;
            else
                from += part;
        }
    return any;
}

static bool lower_values(shrinking *s)
{
    static uint32_t values[MAX_CHOICES];
    bool any = false;
    for (uint32_t i = 0; i < s->best->count; i++)
        for (uint32_t lower = 0; i < s->best->count && lower < s->best->values[i]; lower++) {
            memcpy(values, s->best->values, s->best->count * sizeof *values);
            values[i] = lower;
            if (try_list(s, values, s->best->count)) {
                any = true;
                break;
            }
        }
    return any;
}

void choices_shrink(choices *list, bool (*fails)(void *self, const uint32_t *values, uint32_t count), void *self)
{
    shrinking s = { list, 0, fails, self };
    for (bool is_shorter = true; is_shorter;) {
        is_shorter = cut_list(&s);
        is_shorter = lower_values(&s) || is_shorter;
    }
}
