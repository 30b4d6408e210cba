/*
 * Callers: threads that are created on demand. While there is something to call and all of them are busy, one more is
 * created each millisecond, up to MAX_CALLERS, so that one slow call does not delay the next.
 */
#include "callers.h"

#include <stdlib.h>

#include "lock.h"
#include "thread.h"
#include "wake.h"

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

static void caller_main(void *argument)
{
    weir_pipeline *pipeline = argument;
    weir__pipeline_of_thread = pipeline;
    engine_lock_at(pipeline, weir_clock_ns());
    while (call_one_locked(pipeline) || !pipeline->callers_quit) {
        if (pipeline->core.to_cancel || pipeline->stalls || pipeline->callers_quit)
            continue;
        pipeline->num_callers_idle++;
        weir__wake_all_locked(pipeline);
        uv_cond_wait(&pipeline->caller_wake, &pipeline->lock);
        pipeline->num_callers_idle--;
    }
    weir__engine_unlock(pipeline);
}

static bool add_caller(weir_pipeline *pipeline)
{
    if (pipeline->num_callers == MAX_CALLERS ||
        weir__thread_start(&pipeline->callers[pipeline->num_callers], "weir-caller", caller_main, pipeline) != 0)
        return false;
    pipeline->num_callers++;
    return true;
}

void weir__callers_serve(weir_pipeline *pipeline, int64_t *due_ns)
{
    weir__engine_lock(pipeline);
    bool wanted = pipeline->core.to_cancel || pipeline->stalls;
    bool idle = pipeline->num_callers_idle > 0;
    if (wanted && idle)
        uv_cond_signal(&pipeline->caller_wake);
    weir__engine_unlock(pipeline);
    if (!wanted)
        return;

    int64_t again_ns = weir_clock_ns() + patience_ns;
    if (again_ns < *due_ns)
        *due_ns = again_ns;
    if (idle || add_caller(pipeline) || pipeline->num_callers > 0)
        return;
    engine_lock_at(pipeline, weir_clock_ns()); /* no thread could be created: call it here, late */
    call_one_locked(pipeline);
    weir__engine_unlock(pipeline);
}

void weir__callers_log(weir_pipeline *pipeline, struct stall_warning *warning)
{
    weir__engine_lock(pipeline);
    struct stall_warning **end = &pipeline->stalls;
    while (*end)
        end = &(*end)->next;
    warning->next = NULL;
    *end = warning;
    weir__engine_unlock(pipeline);
}

void weir__callers_join(weir_pipeline *pipeline)
{
    weir__engine_lock(pipeline);
    pipeline->callers_quit = true;
    uv_cond_broadcast(&pipeline->caller_wake);
    while (pipeline->num_callers == 0 && call_one_locked(pipeline))
        ;
    weir__engine_unlock(pipeline);
    for (; pipeline->num_callers > 0; pipeline->num_callers--)
        uv_thread_join(&pipeline->callers[pipeline->num_callers - 1]);
}

int weir__callers_init(weir_pipeline *pipeline, weir_error *error)
{
    pipeline->callers = calloc(MAX_CALLERS, sizeof *pipeline->callers);
    if (!pipeline->callers)
        return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for the pipeline");
    int code = uv_cond_init(&pipeline->caller_wake);
    pipeline->caller_wake_made = code == 0;
    if (code != 0)
        return weir_error_set(error, WEIR_ESYSTEM, code, "cannot create a condition variable: %s", uv_strerror(code));
    return WEIR_OK;
}

void weir__callers_destroy(weir_pipeline *pipeline)
{
    while (pipeline->stalls)
        free(take_warning_locked(pipeline));
    if (pipeline->caller_wake_made)
        uv_cond_destroy(&pipeline->caller_wake);
    free(pipeline->callers);
}
