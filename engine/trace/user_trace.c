/*
 * Records of user code for traces: which pipeline gets them. Those of a pipeline's threads belong to its trace, others
 * to the oldest trace that is being recorded. Only what happens while recording is on is recorded. Of a span that is
 * open when recording is switched on, that is the end. Of one that is open when it is switched off, it is the begin.
 */
#include <pthread.h>

#include "engine/trace/trace_ring.h"

_Atomic(weir_pipeline *) weir__user_traced; /* oldest first; changed with the lock */

/* The last of all locks: for the list, traces_users, and adding to the rings for user code. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* NULL = none. */
static weir_pipeline *find_target_locked(const weir_pipeline *own)
{
    weir_pipeline *one = atomic_load(&weir__user_traced);
    while (one && (own ? one != own : !one->trace->traces_users))
        one = one->trace->next_traced;
    return one && one->trace->traces_users ? one : NULL;
}

void weir__user_trace_add(const weir_pipeline *own, const weir_trace_record *record)
{
    pthread_mutex_lock(&lock);
    weir_pipeline *target = find_target_locked(own);
    if (target)
        ring_add(&target->trace->users, record);
    pthread_mutex_unlock(&lock);
}

void weir__user_trace_switch(weir_pipeline *pipeline, bool on)
{
    pthread_mutex_lock(&lock);
    pipeline->trace->traces_users = on;
    pthread_mutex_unlock(&lock);
}

/* Where the pipeline is in the list, or would be added. */
static weir_pipeline **find_link_locked(weir_pipeline **first, const weir_pipeline *pipeline)
{
    while (*first && *first != pipeline)
        first = &(*first)->trace->next_traced;
    return first;
}

void weir__user_trace_open(weir_pipeline *pipeline)
{
    pthread_mutex_lock(&lock);
    weir_pipeline *first = atomic_load(&weir__user_traced);
    *find_link_locked(&first, pipeline) = pipeline;
    atomic_store(&weir__user_traced, first);
    pthread_mutex_unlock(&lock);
}

void weir__user_trace_close(weir_pipeline *pipeline)
{
    pthread_mutex_lock(&lock);
    weir_pipeline *first = atomic_load(&weir__user_traced), **link = find_link_locked(&first, pipeline);
    if (*link)
        *link = pipeline->trace->next_traced;
    atomic_store(&weir__user_traced, first);
    pthread_mutex_unlock(&lock);
}

void weir__user_trace_reset_child(void)
{
    pthread_mutex_init(&lock, NULL);
    atomic_store(&weir__user_traced, NULL);
}
