/*
 * Who owns a pipeline that is closed, and who joins its last thread.
 *
 *     state      the pipeline belongs to    weir__closing belongs to    the service thread is joined by
 *     WAITED     the program; once it has   the pipeline; then          weir_pipeline_free(); after
 *                closed it: its service     the thread that closes      weir_pipeline_close() by this thread
 *                thread
 *     LEFT       the service thread         the list of those left      whoever finds it FREED
 *     FREED      nobody: it is freed        as before                   as before
 *     JOINED     nobody                     the thread that joins       this thread, which then frees it
 *
 * WAITED to LEFT: the time of weir_pipeline_close() is over. WAITED or LEFT to FREED: the service thread, once no task, cancel
 * function, observer, hook, release function and waiting consumer is left; it then only returns. Each change is made
 * with the lock. So either the thread that closes sees FREED, joins and returns WEIR_OK, or the service thread finds
 * LEFT. weir_pipeline_close_wait() joins those left that are FREED.
 *
 * Lock order: no other lock is taken under `lock`, and no user code runs under it. It is held during fork(). A forked
 * child has none of the threads: it skips what its parent has left.
 */
#include "engine/run/closing.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

typedef enum closing_state { CLOSING_WAITED = 0, CLOSING_LEFT, CLOSING_FREED, CLOSING_JOINED } closing_state;

struct weir__closing {
    /* guarded by lock */
    closing_state state;
    uv_thread_t service_thread; /* from weir__closing_wait() on, as are the next two */
    unsigned num_forks;         /* of its process */
    weir__closing *next;        /* in `left` */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* one was freed or joined; with lock */
static weir__closing *left;                               /* guarded by lock: LEFT, and what follows */

static void lock_for_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* No thread waits in the child: what the parent's threads left in the condition variable must not count. */
static void reset_in_child(void)
{
    changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(lock_for_fork, unlock_after_fork, reset_in_child);
}

weir__closing *weir__closing_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return calloc(1, sizeof(weir__closing));
}

void weir__closing_free(weir__closing *closing)
{
    free(closing);
}

void weir__closing_end(weir__closing *closing)
{
    pthread_mutex_lock(&lock);
    closing->state = CLOSING_FREED;
    pthread_cond_broadcast(&changed); /* under the lock: whoever has seen FREED may free it */
    pthread_mutex_unlock(&lock);
}

static int64_t end_of_wait_ns(int64_t timeout_ns)
{
    int64_t now_ns = weir_clock_ns();
    return timeout_ns == WEIR_FOREVER || timeout_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + timeout_ns;
}

/* Waits with the lock, which is released meanwhile. False = it is until_ns. */
static bool wait_locked(int64_t until_ns)
{
    struct timespec until = { until_ns / WEIR_SECOND, until_ns % WEIR_SECOND };
    return pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT;
}

/* The first of this process from this one on. NULL = none. */
static weir__closing *own_from(weir__closing *closing)
{
    while (closing && closing->num_forks != forks_now())
        closing = closing->next;
    return closing;
}

static weir__closing *find_freed_locked(void)
{
    weir__closing *closing = own_from(left);
    while (closing && closing->state != CLOSING_FREED)
        closing = own_from(closing->next);
    return closing;
}

static void forget_locked(const weir__closing *closing)
{
    weir__closing **link = &left;
    while (*link && *link != closing)
        link = &(*link)->next;
    if (*link)
        *link = closing->next;
}

/* The state is FREED. The lock is released meanwhile: functions of the program may run at the end of a thread. */
static void join_locked(weir__closing *closing)
{
    closing->state = CLOSING_JOINED;
    pthread_mutex_unlock(&lock);
    uv_thread_join(&closing->service_thread);
    pthread_mutex_lock(&lock);
    forget_locked(closing);
    pthread_cond_broadcast(&changed);
    free(closing);
}

static void join_left_locked(void)
{
    for (weir__closing *closing; (closing = find_freed_locked());)
        join_locked(closing);
}

int weir__closing_wait(weir__closing *closing, uv_thread_t service_thread, int64_t timeout_ns)
{
    int64_t until_ns = end_of_wait_ns(timeout_ns);
    pthread_mutex_lock(&lock);
    closing->service_thread = service_thread;
    closing->num_forks = forks_now();
    while (closing->state != CLOSING_FREED && timeout_ns != 0 && wait_locked(until_ns))
        ;
    bool is_freed = closing->state == CLOSING_FREED;
    if (is_freed) {
        join_locked(closing);
    } else {
        closing->state = CLOSING_LEFT;
        closing->next = left;
        left = closing;
    }
    pthread_mutex_unlock(&lock);
    return is_freed ? WEIR_OK : WEIR_ETIMEDOUT;
}

int weir_pipeline_close_wait(int64_t timeout_ns)
{
    if (timeout_ns < 0 && timeout_ns != WEIR_FOREVER)
        return WEIR_EINVAL;
    int64_t until_ns = end_of_wait_ns(timeout_ns);
    bool in_time = timeout_ns != 0;
    pthread_mutex_lock(&lock);
    join_left_locked();
    while (own_from(left) && in_time) {
        in_time = wait_locked(until_ns);
        join_left_locked();
    }
    bool are_left = own_from(left);
    pthread_mutex_unlock(&lock);
    return are_left ? WEIR_ETIMEDOUT : WEIR_OK;
}
