/*
 * A cancel thread makes pending calls, one after the other, until there is none. As long as there are pending calls,
 * one more thread is started each millisecond, up to MAX_CANCEL_THREADS. So one slow call does not delay the next.
 */
#include "engine/run/cancel_threads.h"

#include "engine/run/run_room.h"
#include "engine/state/lock.h"
#include "engine/state/thread.h"

static const int64_t patience_ns = WEIR_MILLISECOND;

/* Makes one call, with the lock released meanwhile. False = nothing to call. */
static bool call_one_locked(weir_pipeline *pipeline)
{
    weir_task *slot = (weir_task *)weir__cancel_take(&pipeline->core);
    if (!slot)
        return false;
    weir__engine_unlock(pipeline);
    slot->node->op->cancel(slot->worker, slot);
    engine_lock_at(pipeline, weir_clock_ns());
    weir__cancel_returned(&slot->core);
    return true;
}

static void cancel_thread_main(void *argument)
{
    weir__cancel_thread *thread = argument;
    weir_pipeline *pipeline = thread->pipeline;
    weir__pipeline_of_thread = pipeline;
    engine_lock_at(pipeline, weir_clock_ns());
    while (call_one_locked(pipeline))
        ;
    thread->has_ended = true;
    weir__engine_unlock(pipeline);
}

/* A place for one more thread. NULL = all are running; *is_first: none is. */
static weir__cancel_thread *find_free(weir_pipeline *pipeline, bool *is_first)
{
    weir__cancel_thread *free = NULL;
    *is_first = true;
    for (int i = 0; i < MAX_CANCEL_THREADS; i++) {
        weir__cancel_thread *thread = &pipeline->run->service.cancel_threads[i];
        if (thread->started && thread->has_ended) {
            uv_thread_join(&thread->thread);
            thread->started = false;
        }
        if (thread->started)
            *is_first = false;
        else
            free = thread;
    }
    return free;
}

void weir__cancel_threads_serve(weir_pipeline *pipeline, int64_t *due_ns)
{
    int64_t now_ns = weir_clock_ns();
    bool is_first;
    weir__engine_lock(pipeline);
    bool wanted = pipeline->core.to_cancel;
    weir__engine_unlock(pipeline);
    if (!wanted)
        return;
    weir__cancel_thread *thread = find_free(pipeline, &is_first);
    if (thread && (is_first || now_ns - pipeline->run->service.cancel_thread_ns >= patience_ns)) {
        pipeline->run->service.cancel_thread_ns = now_ns;
        thread->pipeline = pipeline;
        thread->has_ended = false;
        thread->started = weir__thread_start(&thread->thread, "weir-cancel", cancel_thread_main, thread) == 0;
    }
    if (is_first && !(thread && thread->started)) { /* no thread could be created: call it here, late */
        engine_lock_at(pipeline, now_ns);
        call_one_locked(pipeline);
        weir__engine_unlock(pipeline);
    }
    if (now_ns + patience_ns < *due_ns)
        *due_ns = now_ns + patience_ns;
}

void weir__cancel_threads_join(weir_pipeline *pipeline)
{
    for (int i = 0; i < MAX_CANCEL_THREADS; i++)
        if (pipeline->run->service.cancel_threads[i].started)
            uv_thread_join(&pipeline->run->service.cancel_threads[i].thread);
}
