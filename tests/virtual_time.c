#include "tests/virtual_time.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "tests/test_case.h"

#include <weir/clock.h>

#include "engine/base/readings.h"

enum { MOST_SLEEPERS = 256 };

typedef enum sleeper_kind {
    SLEEPS_SOMEWHERE,
    SLEEPS_IN_TASK,
    SLEEPS_AS_CONSUMER,
    SLEEPS_OUTSIDE,
    NUM_KINDS
} sleeper_kind;

typedef struct sleeper {
    int64_t until_ns;
    sleeper_kind kind;
    bool is_awake;
} sleeper;

static _Thread_local sleeper_kind own_kind; /* SLEEPS_SOMEWHERE = its name tells */

static struct {
    _Atomic int64_t now_ns;
    pthread_t driver;
    bool has_driver;
    weir_pipeline *pipeline; /* the driver's only */
    bool has_seen_end;       /* the driver's only: the service thread was woken since, to take the last lap */
    _Atomic int64_t late_ns, cpu_ns;
    atomic_bool lets_go, ends;

    pthread_mutex_t lock;
    pthread_cond_t moved;
    /* guarded by lock */
    sleeper *asleep[MOST_SLEEPERS];
    uint32_t num_asleep, num_of[NUM_KINDS];
    sem_t *service; /* in its wait; NULL = it works, or has not begun */
    int64_t service_until_ns;
    sem_t *wakes_service; /* NULL = it has not begun */
    bool is_posted;
    bool must_serve, has_woken; /* until it has woken once more, and waits again */
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER };

/* ---- the readings ---------------------------------------------------------------------------------------------- */

int64_t virtual_time_ns(void)
{
    return atomic_load(&kept.now_ns);
}

void virtual_time_compute(int64_t ns)
{
    atomic_fetch_add(&kept.cpu_ns, ns);
}

static bool read_usage(weir__process_usage *usage)
{
    *usage = (weir__process_usage){ .cpu_ns = atomic_load(&kept.cpu_ns) };
    return true;
}

void virtual_time_move(int64_t ns)
{
    atomic_fetch_add(&kept.now_ns, ns);
}

/* The engine names the threads of pools with a number: "read/3". */
static sleeper_kind kind_of_thread(void)
{
    char name[32] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    const char *slash = strrchr(name, '/');
    return slash && slash[1] >= '0' && slash[1] <= '9' ? SLEEPS_IN_TASK : SLEEPS_OUTSIDE;
}

void virtual_time_sleep(int64_t ns)
{
    own_kind = own_kind == SLEEPS_SOMEWHERE ? kind_of_thread() : own_kind;
    pthread_mutex_lock(&kept.lock);
    sleeper own = { .until_ns = virtual_time_ns() + ns, .kind = own_kind };
    assert_true(kept.num_asleep < MOST_SLEEPERS);
    kept.asleep[kept.num_asleep++] = &own;
    kept.num_of[own.kind]++;
    while (!own.is_awake)
        pthread_cond_wait(&kept.moved, &kept.lock);
    pthread_mutex_unlock(&kept.lock);
}

/* The service thread's. The driver posts when the time has come. */
static bool wait_for_post(sem_t *woken, int64_t until_ns)
{
    pthread_mutex_lock(&kept.lock);
    kept.service = woken;
    kept.service_until_ns = until_ns + atomic_load(&kept.late_ns);
    kept.wakes_service = woken;
    kept.is_posted = false;
    kept.must_serve = kept.must_serve && !kept.has_woken;
    pthread_mutex_unlock(&kept.lock);
    while (sem_wait(woken) != 0 && errno == EINTR)
        continue;
    pthread_mutex_lock(&kept.lock);
    kept.has_woken = true;
    bool is_posted = kept.is_posted;
    kept.service = NULL;
    pthread_mutex_unlock(&kept.lock);
    return !is_posted;
}

void virtual_time_be_late(int64_t ns)
{
    atomic_store(&kept.late_ns, ns);
}

/* ---- the driver ------------------------------------------------------------------------------------------------- */

static void wake_sleepers_locked(void)
{
    for (uint32_t i = 0; i < kept.num_asleep;) {
        sleeper *one = kept.asleep[i];
        if (one->until_ns > virtual_time_ns()) {
            i++;
            continue;
        }
        one->is_awake = true;
        kept.num_of[one->kind]--;
        kept.asleep[i] = kept.asleep[--kept.num_asleep];
    }
    if (kept.service && kept.service_until_ns <= virtual_time_ns() && !kept.is_posted) {
        kept.is_posted = true;
        sem_post(kept.service);
    }
    pthread_cond_broadcast(&kept.moved);
}

/* To the first one that wakes up. */
static void move_on_locked(void)
{
    int64_t next_ns = kept.service_until_ns;
    for (uint32_t i = 0; i < kept.num_asleep; i++)
        next_ns = kept.asleep[i]->until_ns < next_ns ? kept.asleep[i]->until_ns : next_ns;
    if (next_ns > virtual_time_ns())
        atomic_store(&kept.now_ns, next_ns);
    wake_sleepers_locked();
}

/* The end: nobody sleeps any more. Threads look for work for some microseconds before they rest, so time must pass. */
static void let_go_locked(void)
{
    virtual_time_move(WEIR_MICROSECOND);
    for (uint32_t i = 0; i < kept.num_asleep; i++)
        kept.asleep[i]->until_ns = virtual_time_ns();
    wake_sleepers_locked();
}

static bool is_service_at_rest_locked(void)
{
    int value = 0;
    if (!kept.wakes_service || kept.must_serve)
        return false;
    return kept.service && !kept.is_posted && sem_getvalue(kept.service, &value) == 0 && value == 0;
}

/* The engine leaves a slot that is ready to a thread that works, and looks after it in a millisecond at the latest. */
static bool is_guarded_locked(void)
{
    return kept.service && kept.service_until_ns - virtual_time_ns() <= WEIR_MILLISECOND;
}

/* The engine wakes the service thread after it has let the state be seen; time may not move in between. */
static void see_end(void)
{
    kept.has_seen_end = true;
    pthread_mutex_lock(&kept.lock);
    kept.must_serve = kept.wakes_service;
    kept.has_woken = false;
    if (kept.wakes_service)
        sem_post(kept.wakes_service);
    pthread_mutex_unlock(&kept.lock);
}

/* All who are outside sleep, each task that runs does, and nothing is ready that could run. The tasks are counted first: then
   only more of them can sleep. */
static bool do_all_sleep(void)
{
    weir_snapshot *s;
    uint32_t num_running = 0, num_ready = 0;
    pthread_mutex_lock(&kept.lock);
    uint32_t num_tasks = kept.num_of[SLEEPS_IN_TASK];
    bool is_consumer_asleep = kept.num_of[SLEEPS_AS_CONSUMER] > 0;
    bool are_others = kept.num_of[SLEEPS_OUTSIDE] > 0 && is_service_at_rest_locked(),
         is_guarded = is_guarded_locked();
    pthread_mutex_unlock(&kept.lock);
    if (!are_others || weir_pipeline_snapshot(kept.pipeline, &s) != WEIR_OK)
        return false;
    for (size_t i = 0; i < s->num_stages; i++) {
        num_running += s->stages[i].running;
        num_ready += s->stages[i].waiting_thread;
    }
    bool are_tasks = num_tasks == num_running && (num_ready == 0 || num_running >= s->threads || is_guarded);
    bool is_consumer = is_consumer_asleep || s->queues[s->num_queues - 1].depth == 0;
    bool is_new_end = strcmp(s->state, "ended") == 0 && !kept.has_seen_end;
    weir_snapshot_free(s);
    if (is_new_end)
        see_end();
    return are_tasks && is_consumer && !is_new_end;
}

/* Nobody tells when all sleep: it looks again after a while, which leaves the CPUs to those that do not. */
static void *drive(void *argument)
{
    const struct timespec a_while = { .tv_nsec = 10 * WEIR_MICROSECOND };
    while (!atomic_load(&kept.ends)) {
        bool lets_go = atomic_load(&kept.lets_go), moves = !lets_go && do_all_sleep();
        pthread_mutex_lock(&kept.lock);
        if (lets_go)
            let_go_locked();
        else if (moves)
            move_on_locked();
        pthread_mutex_unlock(&kept.lock);
        if (!moves)
            nanosleep(&a_while, NULL);
    }
    return argument;
}

void virtual_time_drive(weir_pipeline *pipeline)
{
    kept.pipeline = pipeline;
    kept.has_seen_end = false;
    atomic_store(&kept.lets_go, false);
    atomic_store(&kept.ends, false);
    assert_int_equal(pthread_create(&kept.driver, NULL, drive, NULL), 0);
    kept.has_driver = true;
}

void virtual_time_let_go(void)
{
    atomic_store(&kept.lets_go, true);
}

void virtual_time_consumes(void)
{
    own_kind = SLEEPS_AS_CONSUMER;
}

void virtual_time_begin(void)
{
    static const weir__readings invented = {
        .clock_ns = virtual_time_ns, .sleep = virtual_time_sleep, .usage = read_usage, .wait = wait_for_post
    };
    atomic_store(&kept.now_ns, 1000 * WEIR_SECOND);
    atomic_store(&kept.late_ns, 0);
    atomic_store(&kept.cpu_ns, 0);
    kept.wakes_service = NULL;
    weir__readings_set(&invented);
}

void virtual_time_end(void)
{
    atomic_store(&kept.ends, true);
    if (kept.has_driver)
        pthread_join(kept.driver, NULL);
    kept.has_driver = false;
    kept.wakes_service = NULL;
    kept.must_serve = false;
    weir__readings_set(NULL);
}
