/*
 * One thread waits for the signals with sigwait(), so that what they cause runs as ordinary code: weir_pipeline_stop() is not for
 * signal handlers.
 */
#include "interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAKE = SIGUSR2 }; /* tells the thread to look at `ending` */

static struct {
    /* immutable after start */
    sigset_t signals;
    pthread_t thread;
    void (*print)(const char *text);

    pthread_mutex_t lock;
    /* guarded by lock */
    weir_pipeline
        *pipeline; /* valid while it is here: interrupt_stops(NULL) waits for a weir_pipeline_stop() under way */
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

/* The pipeline stands still for less than a millisecond; what takes longer, printing, is done without the lock. */
static void print_snapshot(void)
{
    weir_snapshot *snapshot = NULL;
    pthread_mutex_lock(&watch.lock);
    if (watch.pipeline)
        weir_pipeline_snapshot(watch.pipeline, &snapshot);
    pthread_mutex_unlock(&watch.lock);
    if (!snapshot)
        return;

    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (file) {
        weir_snapshot_print(snapshot, file);
        fclose(file);
        watch.print(text);
    }
    free(text);
    weir_snapshot_free(snapshot);
}

static void stop_or_die(int number)
{
    pthread_mutex_lock(&watch.lock);
    bool second = watch.received;
    if (!second)
        watch.received = number;
    if (!second && watch.pipeline)
        weir_pipeline_stop(watch.pipeline);
    pthread_mutex_unlock(&watch.lock);
    if (second)
        die_of(number);
}

static bool is_over(void)
{
    pthread_mutex_lock(&watch.lock);
    bool ending = watch.ending;
    pthread_mutex_unlock(&watch.lock);
    return ending;
}

static void *wait_for_signals(void *unused)
{
    (void)unused;
    for (;;) {
        int number;
        sigwait(&watch.signals, &number);
        if (is_over())
            return NULL;
        if (number == SIGUSR1 && watch.print)
            print_snapshot();
        else if (number == SIGINT || number == SIGTERM)
            stop_or_die(number);
    }
}

int interrupt_start(void (*print)(const char *text))
{
    watch.print = print;
    sigemptyset(&watch.signals);
    sigaddset(&watch.signals, WAKE);
    sigaddset(&watch.signals, SIGINT);
    sigaddset(&watch.signals, SIGTERM);
    sigaddset(&watch.signals, SIGUSR1);
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
        weir_pipeline_stop(pipeline);
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
