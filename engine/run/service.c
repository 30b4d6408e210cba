/*
 * The service thread sleeps on a semaphore until something is due or another thread (or a signal handler) posts it.
 * It needs no descriptor, and calls nothing that may block: cancel_threads.c and observing.c do that.
 */
#include "engine/run/service.h"

#include <errno.h>

#include "engine/base/readings.h"
#include "engine/measure/lap_taker.h"
#include "engine/measure/observing.h"
#include "engine/measure/outbox.h"
#include "engine/measure/wait_looks.h"
#include "engine/run/cancel_threads.h"
#include "engine/run/closing.h"
#include "engine/run/run_room.h"
#include "engine/run/watchdog.h"
#include "engine/state/lock.h"
#include "engine/state/thread.h"

static void set_earlier(int64_t *due_ns, int64_t other_ns)
{
    if (other_ns < *due_ns)
        *due_ns = other_ns;
}

/* Sleeps until due_ns, or until it is woken. If the other threads need a guard, it is their guard meanwhile. */
static void wait_until(weir_pipeline *pipeline, int64_t due_ns)
{
    int64_t until_ns;
    do {
        until_ns = weir__engine_guard(pipeline) ? weir_clock_ns() + GUARD_INTERVAL_NS : due_ns;
        set_earlier(&until_ns, due_ns);
    } while (!weir__readings_get()->wait(&pipeline->service_wake, until_ns) && until_ns < due_ns);
    while (sem_trywait(&pipeline->service_wake) == 0)
        ; /* one check handles them all */
}

/* Without the lock: an event allocates memory. */
static void report_stop_and_failure(weir_pipeline *pipeline, bool stopped, bool failed)
{
    if (failed && !pipeline->run->service.failure_reported)
        weir__outbox_add_event(pipeline, "failed", "pipeline", pipeline->error.message); /* set before `failed` */
    if (stopped && !pipeline->run->service.stop_reported)
        weir__outbox_add_event(pipeline, "stop", "pipeline", NULL);
    pipeline->run->service.failure_reported |= failed;
    pipeline->run->service.stop_reported |= stopped;
}

static void release_leftovers(weir_pipeline *pipeline)
{
    weir_item item;
    for (;;) {
        engine_lock_at(pipeline, weir_clock_ns());
        bool taken = weir__leftover_take(&pipeline->core, &item);
        weir__engine_unlock(pipeline);
        if (!taken)
            return;
        weir_item_release(&item);
    }
}

/* No task is left, and no result will be delivered. The consumer may still report. */
static void end_work(weir_pipeline *pipeline, bool stopped, bool failed)
{
    pipeline->run->service.end_status = failed ? WEIR_EFAILED : stopped ? WEIR_ESTOPPED : WEIR_OK;
    if (pipeline->core.measures)
        weir__laps_begin_tail(pipeline);
    release_leftovers(pipeline); /* the lap waits neither for release functions nor for the log */
    weir__cancel_threads_join(pipeline);
    pipeline->run->service.work_ended = true;
}

static void end_run(weir_pipeline *pipeline)
{
    int64_t end_ns = pipeline->core.measures ? weir__laps_take_last(pipeline) : weir_clock_ns();
    weir_pipeline_trace(pipeline, false);
    weir__reporting_end(pipeline, pipeline->run->service.end_status, weir__laps_unix_at_ns(pipeline, end_ns));
}

/* Checks everything once; *due_ns is when the next check is due. False = the run is over. */
static bool serve_once(weir_pipeline *pipeline, int64_t *due_ns)
{
    if (atomic_exchange(&pipeline->run->stop.wanted, false))
        weir_pipeline_stop(pipeline);
    weir__engine_lock(pipeline);
    bool over = pipeline->core.over, interval_ended = pipeline->laps->interval_ended, closing = pipeline->closing;
    bool stopped = pipeline->core.stopped, failed = pipeline->core.failed;
    closing = closing && pipeline->consumer.in_wait == 0;
    weir__engine_unlock(pipeline);

    *due_ns = weir_clock_ns() + WEIR_HEARTBEAT_NS;
    report_stop_and_failure(pipeline, stopped, failed);
    if (pipeline->core.measures)
        weir__laps_take(pipeline, interval_ended);
    if (over && !pipeline->run->service.work_ended)
        end_work(pipeline, stopped, failed);
    if (over && closing) {
        end_run(pipeline);
        return false;
    }
    if (pipeline->core.measures)
        set_earlier(due_ns, weir__laps_due_ns(pipeline));
    if (over)
        return true;
    if (pipeline->core.measures)
        set_earlier(due_ns, weir__wait_looks_take(&pipeline->lap_taker->looks, pipeline));
    set_earlier(due_ns, weir__watchdog_check(pipeline));
    weir__cancel_threads_serve(pipeline, due_ns);
    return true;
}

static void service_main(void *argument)
{
    weir_pipeline *pipeline = argument;
    int64_t due_ns;
    weir__pipeline_of_thread = pipeline;
    while (sem_wait(&pipeline->service_wake) != 0)
        ; /* wait until the pipeline starts; before, there is nothing to report */
    weir__suspension_note(&pipeline->lap_taker->suspension, 0);
    while (serve_once(pipeline, &due_ns)) {
        weir__suspension_note(&pipeline->lap_taker->suspension, 0);
        wait_until(pipeline, due_ns);
        weir__suspension_note(&pipeline->lap_taker->suspension, due_ns);
    }
    if (!pipeline->run->free_closed)
        return;
    weir__closing *closing = pipeline->run->closing;
    pipeline->run->free_closed(pipeline);
    weir__closing_end(closing);
}

int weir__service_init(weir_pipeline *pipeline, weir_error *error)
{
    pipeline->run->service.wake_made = sem_init(&pipeline->service_wake, 0, 0) == 0;
    if (pipeline->run->service.wake_made)
        return WEIR_OK;
    return weir_error_set(error, WEIR_ESYSTEM, -errno, "cannot create a semaphore: %s", uv_strerror(-errno));
}

void weir__service_destroy(weir_pipeline *pipeline)
{
    if (pipeline->run->service.wake_made)
        sem_destroy(&pipeline->service_wake);
}

int weir__service_start(weir_pipeline *pipeline, weir_error *error)
{
    weir__suspension_note_start(&pipeline->lap_taker->suspension);
    int code = weir__thread_start(&pipeline->run->service.thread, "weir-service", service_main, pipeline);
    if (code != 0)
        return weir_error_set(error, WEIR_ESYSTEM, code, "cannot start the service thread: %s", uv_strerror(code));
    pipeline->run->service.started = true;
    return WEIR_OK;
}

void weir__service_join(weir_pipeline *pipeline)
{
    if (pipeline->run->service.started)
        uv_thread_join(&pipeline->run->service.thread);
}
