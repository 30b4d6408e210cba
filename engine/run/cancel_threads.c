/*
 * Callers: threads that are created on demand. While there is something to call and all of them are busy, one more is
 * created each millisecond, up to MAX_CANCEL_THREADS, so that one slow call does not delay the next.
 */
#include "cancel_threads.h"

#include <stdlib.h>

#include "lock.h"
#include "thread.h"

static const int64_t patience_ns = WEIR_MILLISECOND;

static struct stall_warning *take_warning_locked(weir_pipeline *pipeline)
{
    struct stall_warning *warning = pipeline->stalls;
    if (warning)
        pipeline->stalls = warning->next;
    return warning;
}

/* Makes one call, with the lock released meanwhile. False = nothing to call. */
static bool call_one_locked(weir_pipeline *pipeline)
{
    weir_slot *slot = (weir_slot *)weir__cancel_take(&pipeline->core);
    struct stall_warning *warning = slot ? NULL : take_warning_locked(pipeline);
    if (!slot && !warning)
        return false;
    weir__engine_unlock(pipeline);
    if (slot)
        slot->node->op->cancel(slot->worker, slot);
    else
        weir_log(WEIR_LOG_WARNING, "%s", warning->text);
    free(warning);
    engine_lock_at(pipeline, weir_clock_ns());
    if (slot)
        weir__cancel_returned(&slot->core);
    return true;
}

static void cancel_thread_main(void *argument)
{
    weir_pipeline *pipeline = argument;
    weir__pipeline_of_thread = pipeline;
    engine_lock_at(pipeline, weir_clock_ns());
    while (call_one_locked(pipeline) || !pipeline->cancel_threads_quit) {
        if (pipeline->core.to_cancel || pipeline->stalls || pipeline->cancel_threads_quit)
            continue;
        pipeline->num_idle_cancel_threads++;
        weir__wake_all_locked(pipeline);
        weir__engine_wait_locked(pipeline, &pipeline->cancel_wake, WEIR_FOREVER);
        pipeline->num_idle_cancel_threads--;
    }
    weir__engine_unlock(pipeline);
}

static bool add_caller(weir_pipeline *pipeline)
{
    if (pipeline->num_cancel_threads == MAX_CANCEL_THREADS ||
        weir__thread_start(&pipeline->cancel_threads[pipeline->num_cancel_threads], "weir-cancel", cancel_thread_main,
                           pipeline) != 0)
        return false;
    pipeline->num_cancel_threads++;
    return true;
}

void weir__cancel_threads_serve(weir_pipeline *pipeline, int64_t *due_ns)
{
    weir__engine_lock(pipeline);
    bool wanted = pipeline->core.to_cancel || pipeline->stalls;
    bool idle = pipeline->num_idle_cancel_threads > 0;
    if (wanted && idle)
        uv_cond_signal(&pipeline->cancel_wake);
    weir__engine_unlock(pipeline);
    if (!wanted)
        return;

    int64_t again_ns = weir_clock_ns() + patience_ns;
    if (again_ns < *due_ns)
        *due_ns = again_ns;
    if (idle || add_caller(pipeline) || pipeline->num_cancel_threads > 0)
        return;
    engine_lock_at(pipeline, weir_clock_ns()); /* no thread could be created: call it here, late */
    call_one_locked(pipeline);
    weir__engine_unlock(pipeline);
}

void weir__cancel_threads_log(weir_pipeline *pipeline, struct stall_warning *warning)
{
    weir__engine_lock(pipeline);
    struct stall_warning **end = &pipeline->stalls;
    while (*end)
        end = &(*end)->next;
    warning->next = NULL;
    *end = warning;
    weir__engine_unlock(pipeline);
}

void weir__cancel_threads_join(weir_pipeline *pipeline)
{
    weir__engine_lock(pipeline);
    pipeline->cancel_threads_quit = true;
    uv_cond_broadcast(&pipeline->cancel_wake);
    while (pipeline->num_cancel_threads == 0 && call_one_locked(pipeline))
        ;
    weir__engine_unlock(pipeline);
    for (; pipeline->num_cancel_threads > 0; pipeline->num_cancel_threads--)
        uv_thread_join(&pipeline->cancel_threads[pipeline->num_cancel_threads - 1]);
}

int weir__cancel_threads_init(weir_pipeline *pipeline, weir_error *error)
{
    pipeline->cancel_threads = calloc(MAX_CANCEL_THREADS, sizeof *pipeline->cancel_threads);
    if (!pipeline->cancel_threads)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the pipeline");
    int code = uv_cond_init(&pipeline->cancel_wake);
    pipeline->caller_wake_made = code == 0;
    if (code != 0)
        return weir_error_set(error, WEIR_ESYSTEM, code, "cannot create a condition variable: %s", uv_strerror(code));
    return WEIR_OK;
}

void weir__cancel_threads_destroy(weir_pipeline *pipeline)
{
    while (pipeline->stalls)
        free(take_warning_locked(pipeline));
    if (pipeline->caller_wake_made)
        uv_cond_destroy(&pipeline->cancel_wake);
    free(pipeline->cancel_threads);
}
