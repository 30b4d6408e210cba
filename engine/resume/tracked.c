#include "engine/resume/tracked.h"

#include <stdlib.h>

done_set *weir__tracked_find_set(const tracked_source *source, uint64_t epoch)
{
    done_set *set = source->sets;
    while (set && set->epoch != epoch)
        set = set->next;
    return set;
}

int weir__tracked_add_set(weir_tracker *tracker, tracked_source *source, uint64_t epoch, done_set **added)
{
    uv_mutex_lock(&tracker->lock);
    *added = weir__tracked_find_set(source, epoch);
    uv_mutex_unlock(&tracker->lock);
    if (*added)
        return WEIR_OK;
    *added = weir__done_set_new(epoch);
    if (!*added)
        return WEIR_ENOMEM;
    uv_mutex_lock(&tracker->lock);
    done_set **end = &source->sets;
    while (*end)
        end = &(*end)->next;
    *end = *added;
    uv_mutex_unlock(&tracker->lock);
    return WEIR_OK;
}

int weir__tracked_make_room(weir_tracker *tracker, done_set *set, uint64_t seq)
{
    uv_mutex_lock(&tracker->lock);
    uint64_t needed = weir__done_set_count_words(set, seq);
    uv_mutex_unlock(&tracker->lock);
    if (needed <= set->num_words)
        return WEIR_OK;
    uint64_t num_words = set->num_words;
    while (num_words < needed)
        num_words *= 2;
    uint64_t *words = calloc(num_words, sizeof *words);
    if (!words)
        return WEIR_ENOMEM;
    uv_mutex_lock(&tracker->lock);
    uint64_t *old = weir__done_set_enlarge(set, words, num_words);
    uv_mutex_unlock(&tracker->lock);
    free(old);
    return WEIR_OK;
}

int weir__tracked_fail_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for checkpoints");
}
