/*
 * One thread waits for the signals with sigwait(), so that what they cause runs as ordinary code: weir_stop() is not for
 * signal handlers.
 */
#include "interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

enum { WAKE = SIGUSR2 }; /* tells the thread to look at `ending` */

static struct {
    /* immutable after start */
    sigset_t signals;
    pthread_t thread;

    pthread_mutex_t lock;
    /* guarded by lock */
    weir_pipeline *pipeline; /* valid while it is here: interrupt_stops(NULL) waits for a weir_stop() under way */
    int received;
    bool ending;
} watch = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void die_of(int number)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

/* Returns false when the watch is over. */
static bool take(int number)
{
    pthread_mutex_lock(&watch.lock);
    bool going_on = !watch.ending;
    bool second = watch.received && number != WAKE;
    if (!watch.received && number != WAKE) {
        watch.received = number;
        if (watch.pipeline)
            weir_stop(watch.pipeline);
    }
    pthread_mutex_unlock(&watch.lock);
    if (second && going_on)
        die_of(number);
    return going_on;
}

static void *wait_for_signals(void *unused)
{
    (void)unused;
    int number;
    do
        sigwait(&watch.signals, &number);
    while (take(number));
    return NULL;
}

int interrupt_start(void)
{
    sigemptyset(&watch.signals);
    sigaddset(&watch.signals, WAKE);
    sigaddset(&watch.signals, SIGINT);
    sigaddset(&watch.signals, SIGTERM);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);

    int error = pthread_sigmask(SIG_BLOCK, &watch.signals, NULL);
    if (!error)
        error = pthread_create(&watch.thread, NULL, wait_for_signals, NULL);
    return -error;
}

void interrupt_stops(weir_pipeline *pipeline)
{
    pthread_mutex_lock(&watch.lock);
    watch.pipeline = pipeline;
    if (pipeline && watch.received)
        weir_stop(pipeline);
    pthread_mutex_unlock(&watch.lock);
}

int interrupt_end(void)
{
    pthread_mutex_lock(&watch.lock);
    watch.ending = true;
    pthread_mutex_unlock(&watch.lock);
    pthread_kill(watch.thread, WAKE);
    pthread_join(watch.thread, NULL);
    return watch.received;
}
