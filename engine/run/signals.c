/*
 * Signals that stop pipelines. A handler may run on any thread at any moment, so it takes no lock: it follows the
 * list of pipelines through atomic pointers. A pipeline that is removed from the list waits for the handlers that may
 * have seen it.
 */
#include "engine/run/signals.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "engine/run/run_room.h"
#include "engine/state/run_state.h"

static const int numbers[] = { SIGINT, SIGTERM };
enum { NUM_SIGNALS = sizeof numbers / sizeof numbers[0] };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held during fork() */
static struct sigaction before[NUM_SIGNALS];             /* guarded by lock */
static _Atomic(weir_pipeline *) first;                   /* written with lock */
static atomic_uint num_handlers;                         /* running now */
static _Atomic int64_t stopped_ns;                       /* when a signal last stopped a pipeline */

static void set_actions(const struct sigaction *actions, bool each)
{
    for (int i = 0; i < NUM_SIGNALS; i++)
        sigaction(numbers[i], &actions[each ? i : 0], NULL);
}

int weir_pipeline_stop_from_signal(weir_pipeline *pipeline)
{
    if (!pipeline)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    int error = errno;
    atomic_store(&pipeline->run->stop.wanted, true);
    sem_post(&pipeline->service_wake);
    errno = error;
    return WEIR_OK;
}

/* Returns whether there was one that no signal had stopped. The time is written first: a handler on another thread that
   finds the pipeline stopped must find the time, too. */
static bool stop_each(int number)
{
    bool has_stopped = false;
    for (weir_pipeline *pipeline = atomic_load(&first); pipeline;
         pipeline = atomic_load(&pipeline->run->stop.next_on_signal)) {
        int none = 0;
        if (is_of_parent(pipeline))
            continue;
        if (atomic_load(&pipeline->run->stop.signal) == 0)
            atomic_store(&stopped_ns, weir_clock_ns());
        has_stopped |= atomic_compare_exchange_strong(&pipeline->run->stop.signal, &none, number);
        weir_pipeline_stop_from_signal(pipeline);
    }
    return has_stopped;
}

/* timeout(1) and launchers send a signal to the process and to its group: that is one request, not two. */
static void stop_all(int number)
{
    static const struct sigaction default_action = { .sa_handler = SIG_DFL };
    int error = errno;
    atomic_fetch_add(&num_handlers, 1);
    if (!stop_each(number) && weir_clock_ns() - atomic_load(&stopped_ns) >= WEIR_SIGNAL_REPEATS_NS) {
        set_actions(&default_action, false);
        raise(number); /* ends the process after this handler, which blocks it */
    }
    atomic_fetch_sub(&num_handlers, 1);
    errno = error;
}

static void lock_for_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* Handlers that run on the parent's other threads are not in the child. */
static void reset_in_child(void)
{
    atomic_store(&num_handlers, 0);
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(lock_for_fork, unlock_after_fork, reset_in_child);
}

int weir_pipeline_stop_on_signals(weir_pipeline *pipeline)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!pipeline)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    struct sigaction action = { .sa_handler = stop_all, .sa_flags = SA_RESTART };
    for (int i = 0; i < NUM_SIGNALS; i++)
        sigaddset(&action.sa_mask, numbers[i]); /* one at a time */

    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    if (!atomic_load(&first))
        for (int i = 0; i < NUM_SIGNALS; i++)
            sigaction(numbers[i], NULL, &before[i]);
    if (!pipeline->run->stop.on_signals) {
        pipeline->run->stop.on_signals = true;
        atomic_store(&pipeline->run->stop.next_on_signal, atomic_load(&first));
        atomic_store(&first, pipeline);
    }
    set_actions(&action, false);
    pthread_mutex_unlock(&lock);
    return WEIR_OK;
}

int weir_pipeline_stop_signal(weir_pipeline *pipeline)
{
    if (!pipeline)
        return WEIR_EINVAL;
    return is_of_parent(pipeline) ? (int)WEIR_EFORKED : atomic_load(&pipeline->run->stop.signal);
}

void weir__signals_forget(weir_pipeline *pipeline)
{
    pthread_mutex_lock(&lock);
    _Atomic(weir_pipeline *) *link = &first;
    while (atomic_load(link) && atomic_load(link) != pipeline)
        link = &atomic_load(link)->run->stop.next_on_signal;
    if (atomic_load(link)) {
        atomic_store(link, atomic_load(&pipeline->run->stop.next_on_signal));
        if (!atomic_load(&first))
            set_actions(before, true);
    }
    pthread_mutex_unlock(&lock);
    while (atomic_load(&num_handlers) > 0)
        sched_yield();
}
