/* If there are too many, the oldest is lost: the last failures are those that have ended the run. */
#include "engine/measure/kept_failures.h"

#include <stdlib.h>

#include "engine/measure/failure_text.h"

typedef struct kept_failure {
    weir_kept_failure shown; /* first */
    weir_failure failure;
    void (*release_cause)(void *cause); /* NULL = nothing to release */
    struct kept_failure *next;
    char texts[];
} kept_failure;

struct weir__kept_failures {
    uint32_t most; /* immutable after init */

    uv_mutex_t lock;

    /* guarded by lock */
    kept_failure *first, **end;
    uint32_t num_kept;
    uint64_t num_lost; /* since the last one was taken */
};

void weir__cause_release(weir_task *slot)
{
    void *cause = slot->cause;
    void (*release)(void *) = slot->release_cause;
    slot->cause = NULL;
    slot->release_cause = NULL;
    if (cause && release)
        release(cause);
}

void weir_kept_failure_free(weir_kept_failure *failure)
{
    kept_failure *kept = (kept_failure *)failure;
    if (!kept)
        return;
    if (kept->shown.cause && kept->release_cause)
        kept->release_cause(kept->shown.cause);
    free(kept);
}

weir__kept_failures *weir__kept_failures_new(uint32_t most)
{
    weir__kept_failures *kept = calloc(1, sizeof *kept);
    if (!kept)
        return NULL;
    kept->most = most;
    kept->lock = WEIR_MUTEX;
    kept->end = &kept->first;
    return kept;
}

static kept_failure *take_first_locked(weir__kept_failures *kept)
{
    kept_failure *first = kept->first;
    if (!first)
        return NULL;
    kept->first = first->next;
    if (!kept->first)
        kept->end = &kept->first;
    kept->num_kept--;
    return first;
}

void weir__kept_failures_free(weir__kept_failures *kept)
{
    if (!kept)
        return;
    for (kept_failure *failure; (failure = take_first_locked(kept));) /* no lock needed: no task runs any more */
        weir_kept_failure_free(&failure->shown);
    free(kept);
}

/* The cause of the slot now belongs to it. NULL = out of memory. */
static kept_failure *make_kept(weir_task *slot)
{
    kept_failure *made = calloc(1, sizeof *made + weir__failure_text_bytes(slot));
    if (!made)
        return NULL;
    weir__failure_fill(&made->failure, made->texts, slot);
    made->shown.failure = &made->failure;
    made->shown.attempt = slot->core.num_replaced;
    made->shown.cause = slot->cause;
    made->release_cause = slot->release_cause;
    slot->cause = NULL;
    slot->release_cause = NULL;
    return made;
}

void weir__kept_failures_add(weir__kept_failures *kept, weir_task *slot)
{
    if (!kept)
        return;
    kept_failure *made = make_kept(slot), *oldest = NULL;
    uv_mutex_lock(&kept->lock);
    if (made && kept->num_kept == kept->most)
        oldest = take_first_locked(kept);
    kept->num_lost += !made || oldest;
    if (made) {
        *kept->end = made;
        kept->end = &made->next;
        kept->num_kept++;
    }
    uv_mutex_unlock(&kept->lock);
    if (oldest)
        weir_kept_failure_free(&oldest->shown);
}

weir_kept_failure *weir__kept_failures_take(weir__kept_failures *kept)
{
    if (!kept)
        return NULL;
    uv_mutex_lock(&kept->lock);
    kept_failure *taken = take_first_locked(kept);
    if (taken) {
        taken->shown.num_lost = kept->num_lost;
        kept->num_lost = 0;
    }
    uv_mutex_unlock(&kept->lock);
    return taken ? &taken->shown : NULL;
}
