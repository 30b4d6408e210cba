#include "engine/resume/done_set.h"

#include <stdlib.h>

done_set *weir__done_set_new(uint64_t epoch)
{
    done_set *set = calloc(1, sizeof *set);
    if (set)
        *set =
            (done_set){ .epoch = epoch, .total = UINT64_MAX, .num_words = 1, .words = calloc(1, sizeof *set->words) };
    if (set && set->words)
        return set;
    free(set);
    return NULL;
}

void weir__done_set_free(done_set *set)
{
    if (set)
        free(set->words);
    free(set);
}

void weir__done_set_add(done_set *set, uint64_t seq)
{
    *weir__done_set_word(set, seq) |= UINT64_C(1) << seq % 64;
    while (*weir__done_set_word(set, set->low) >> set->low % 64 & 1) {
        *weir__done_set_word(set, set->low) &= ~(UINT64_C(1) << set->low % 64);
        set->low++;
    }
}

uint64_t weir__done_set_limit(const done_set *set)
{
    return (set->low / 64 + set->num_words) * 64;
}

uint64_t weir__done_set_find_end(const done_set *set)
{
    uint64_t end = weir__done_set_limit(set);
    while (end > set->low && !weir__done_set_has(set, end - 1))
        end--;
    return end;
}

bool weir__done_set_is_complete(const done_set *set)
{
    return set->low >= set->total;
}

uint64_t weir__done_set_count_words(const done_set *set, uint64_t seq)
{
    return seq < set->low ? 0 : seq / 64 - set->low / 64 + 1;
}

uint64_t *weir__done_set_enlarge(done_set *set, uint64_t *words, uint64_t num_words)
{
    uint64_t *old = set->words;
    done_set larger = { .words = words, .num_words = num_words };
    for (uint64_t i = 0; i < set->num_words; i++) {
        uint64_t at = (set->low / 64 + i) * 64;
        *weir__done_set_word(&larger, at) = *weir__done_set_word(set, at);
    }
    set->words = words;
    set->num_words = num_words;
    return old;
}
