/*
 * A timer of each thread's CPU time sends it SIGPROF. The handler notes the stack in a free place of the ring, with the lap and
 * the stage. The sampler's thread moves what is there to the tree ten times a second, and so does whoever takes samples.
 * Locks: `lock`, then `tree_lock`.
 */
#include "stats/record/stack_sampler.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/log.h>
#include <weir/observer.h>

#include "common/array.h"
#include "stats/record/stack_names.h"

enum { SAMPLES_PER_SECOND = 99, OWN_FRAMES = 2, MAX_FRAMES = WEIR_STACK_FRAMES + OWN_FRAMES };
enum { RING = 2048, SCANS_PER_SECOND = 10, NAME_BYTES = 128 };

/* A stack, from the inside; where it is full it belongs to the holder of tree_lock, else to the handler that makes it busy. */
typedef struct stack_sample {
    enum { SAMPLE_FREE, SAMPLE_BUSY, SAMPLE_FULL } _Atomic state;
    int num_frames;
    bool is_thread; /* `name` is that of a thread */
    uint64_t lap_id;
    uint64_t num_samples;
    char name[NAME_BYTES];
    void *frames[MAX_FRAMES];
} stack_sample;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, tree_lock = PTHREAD_MUTEX_INITIALIZER;

/* guarded by lock */
static int num_users;
static pthread_t sampler_thread;

static atomic_bool is_ending;

/* any thread, in the handler */
static stack_sample ring[RING];
static _Atomic uint64_t num_taken, num_lost;

/* guarded by tree_lock */
static weir_stack_tree tree;
static struct {
    const void *address;
    uint32_t text;
} functions[4096]; /* finding a name takes long, so the latest ones are kept */

/* the sampler's thread, while it runs */
static struct {
    timer_t *timers;
    int *tids;
    bool *are_there;
    size_t count;
} threads;

/* ---- in the thread ---------------------------------------------------------------------------------------------- */

static void fill_sample(stack_sample *sample, const weir_thread_place *place, uint64_t num_samples)
{
    sample->lap_id = place->lap_id;
    sample->num_samples = num_samples;
    sample->is_thread = !place->name;
    if (place->name)
        strncpy(sample->name, place->name, NAME_BYTES - 1);
    else
        prctl(PR_GET_NAME, sample->name);
    sample->num_frames = backtrace(sample->frames, MAX_FRAMES);
}

/* A period that ended while the signal was on its way is another sample of the same stack. */
static void take_stack(int signal, siginfo_t *info, void *context)
{
    int saved = errno, is_free = SAMPLE_FREE;
    weir_thread_place place;
    (void)signal;
    (void)context;
    if (!weir_thread_place_read(&place))
        return;
    uint64_t num_samples = 1 + (uint64_t)(info->si_overrun > 0 ? info->si_overrun : 0);
    stack_sample *sample = &ring[atomic_fetch_add(&num_taken, 1) % RING];
    if (atomic_compare_exchange_strong((atomic_int *)&sample->state, &is_free, SAMPLE_BUSY)) {
        fill_sample(sample, &place, num_samples);
        atomic_store(&sample->state, SAMPLE_FULL);
    } else {
        atomic_fetch_add(&num_lost, num_samples);
    }
    errno = saved;
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

int64_t weir__stack_sampler_period_ns(void)
{
    return WEIR_SECOND / SAMPLES_PER_SECOND;
}

/* False = out of memory. */
static bool grow_threads(void)
{
    timer_t *timers = weir__array_grow(threads.timers, threads.count, sizeof *timers);
    threads.timers = timers ? timers : threads.timers;
    int *tids = weir__array_grow(threads.tids, threads.count, sizeof *tids);
    threads.tids = tids ? tids : threads.tids;
    bool *are_there = weir__array_grow(threads.are_there, threads.count, sizeof *are_there);
    threads.are_there = are_there ? are_there : threads.are_there;
    return timers && tids && are_there;
}

/* A timer of the thread's CPU time, see pthread_getcpuclockid(), which takes no thread's number. */
static void watch_thread(int tid)
{
    const struct timespec period_time = { 0, weir__stack_sampler_period_ns() };
    const struct itimerspec period = { .it_interval = period_time, .it_value = period_time };
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
    event._sigev_un._tid = tid;
    for (size_t i = 0; i < threads.count; i++)
        if (threads.tids[i] == tid) {
            threads.are_there[i] = true;
            return;
        }
    if (!grow_threads() || timer_create((clockid_t)(~(unsigned)tid << 3 | 6), &event, &threads.timers[threads.count]))
        return; /* it has ended, or the next scan tries again */
    timer_settime(threads.timers[threads.count], 0, &period, NULL);
    threads.are_there[threads.count] = true;
    threads.tids[threads.count++] = tid;
}

/* Another thread may get the number of one that has ended. */
static void forget_ended(void)
{
    size_t count = 0;
    for (size_t i = 0; i < threads.count; i++) {
        if (!threads.are_there[i]) {
            timer_delete(threads.timers[i]);
            continue;
        }
        threads.timers[count] = threads.timers[i];
        threads.tids[count] = threads.tids[i];
        threads.are_there[count++] = false;
    }
    threads.count = count;
}

static void find_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != gettid())
            watch_thread(atoi(entry->d_name));
    closedir(folder);
    forget_ended();
}

/* ---- samples, with tree_lock -------------------------------------------------------------------------------------- */

static uint32_t find_function(const void *address)
{
    size_t at = ((uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 52) % (sizeof functions / sizeof functions[0]);
    if (functions[at].address != address || !functions[at].text) {
        char *name = weir__stack_name(address);
        functions[at].address = address;
        functions[at].text = weir__stack_text(&tree, name ? name : "?");
        free(name);
    }
    return functions[at].text;
}

/* Threads that do the same are numbered: "av:h264:df3" is "av:h264:df". A name of digits stays. */
static void cut_number(char *name)
{
    size_t length = strlen(name), kept = length;
    while (kept > 0 && isdigit((unsigned char)name[kept - 1]))
        kept--;
    if (kept > 1 && kept < length && strchr("/-_:#", name[kept - 1]))
        kept--;
    if (kept > 0)
        name[kept] = '\0';
}

static void add_sample(stack_sample *sample)
{
    if (sample->is_thread)
        cut_number(sample->name);
    weir_stack_count count = { .lap_id = sample->lap_id,
                               .name = weir__stack_text(&tree, sample->name),
                               .num_samples = sample->num_samples,
                               .last_ns = weir_clock_ns() };
    for (int i = sample->num_frames - 1; i >= OWN_FRAMES; i--) {
        count.stack = weir__stack_call(&tree, count.stack, find_function(sample->frames[i]));
        if (!count.stack)
            break;
    }
    weir__stack_add(&tree, &count);
}

static void move_samples_locked(void)
{
    for (stack_sample *sample = ring; sample < ring + RING; sample++)
        if (sample->state == SAMPLE_FULL) {
            add_sample(sample);
            atomic_store(&sample->state, SAMPLE_FREE);
        }
}

weir_stack_samples weir__stack_sampler_take(const uint64_t *lap_ids, size_t num_ids)
{
    weir_stack_samples taken = { NULL, 0, 0 };
    pthread_mutex_lock(&tree_lock);
    move_samples_locked();
    taken.num_counts = weir__stack_take(&tree, lap_ids, num_ids, &taken.counts);
    taken.num_lost = tree.num_lost + atomic_exchange(&num_lost, 0);
    tree.num_lost = 0;
    pthread_mutex_unlock(&tree_lock);
    return taken;
}

const char *weir__stack_sampler_name(uint32_t name)
{
    pthread_mutex_lock(&tree_lock);
    const char *text = weir__stack_text_of(&tree, name);
    pthread_mutex_unlock(&tree_lock);
    return text;
}

const char *weir__stack_sampler_call(uint32_t call, uint32_t *caller)
{
    pthread_mutex_lock(&tree_lock);
    bool is_there = call && call <= tree.num_calls;
    *caller = is_there ? tree.calls[call - 1].caller : 0;
    const char *text = weir__stack_text_of(&tree, is_there ? tree.calls[call - 1].text : 0);
    pthread_mutex_unlock(&tree_lock);
    return text;
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static void *sample_stacks(void *none)
{
    const struct timespec pause = { .tv_nsec = WEIR_SECOND / SCANS_PER_SECOND };
    pthread_setname_np(pthread_self(), "weir-stacks");
    while (!atomic_load(&is_ending)) {
        find_threads();
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&tree_lock);
        move_samples_locked();
        pthread_mutex_unlock(&tree_lock);
    }
    for (size_t i = 0; i < threads.count; i++)
        timer_delete(threads.timers[i]);
    return none;
}

static int begin_sampling(weir_error *error)
{
    struct sigaction before, handler = { .sa_sigaction = take_stack, .sa_flags = SA_RESTART | SA_SIGINFO };
    void *frame;
    if (sigaction(SIGPROF, NULL, &before) != 0 || (before.sa_flags & SA_SIGINFO) || before.sa_handler != SIG_DFL)
        return weir_error_set(error, WEIR_EBUSY, 0, "the program uses the signal SIGPROF: no stacks are sampled");
    backtrace(&frame, 1); /* loads what it needs, which a handler must not */
    atomic_store(&is_ending, false);
    sigaction(SIGPROF, &handler, NULL);
    sigset_t all, mask;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask); /* signals are for threads of the program */
    int code = pthread_create(&sampler_thread, NULL, sample_stacks, NULL);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (code == 0)
        return WEIR_OK;
    sigaction(SIGPROF, &before, NULL);
    return weir_error_set(error, WEIR_ESYSTEM, code, "cannot start the thread that samples stacks: %s",
                          strerror(code));
}

/* Held during fork(), so that the child gets them free, and the tree whole. */
static void lock_both(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&tree_lock);
}

static void unlock_both(void)
{
    pthread_mutex_unlock(&tree_lock);
    pthread_mutex_unlock(&lock);
}

/* The sampler's thread and its timers are not in the child. */
static void forget_sampling(void)
{
    if (num_users)
        signal(SIGPROF, SIG_DFL);
    num_users = 0;
    memset(&threads, 0, sizeof threads);
    memset(functions, 0, sizeof functions);
    weir__stack_tree_clear(&tree);
    for (stack_sample *sample = ring; sample < ring + RING; sample++)
        atomic_store(&sample->state, SAMPLE_FREE);
    unlock_both();
}

static void register_handlers(void)
{
    pthread_atfork(lock_both, unlock_both, forget_sampling);
}

int weir__stack_sampler_start(weir_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_handlers);
    pthread_mutex_lock(&lock);
    int status = num_users ? WEIR_OK : begin_sampling(error);
    num_users += status == WEIR_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

/* What has come since the last lap ended is forgotten. */
static void end_sampling(void)
{
    atomic_store(&is_ending, true);
    pthread_join(sampler_thread, NULL);
    signal(SIGPROF, SIG_IGN); /* forgets those on their way, as the default would end the process */
    signal(SIGPROF, SIG_DFL);
    free(threads.timers);
    free(threads.tids);
    free(threads.are_there);
    memset(&threads, 0, sizeof threads);
    pthread_mutex_lock(&tree_lock);
    move_samples_locked();
    weir__stack_tree_clear(&tree);
    memset(functions, 0, sizeof functions);
    pthread_mutex_unlock(&tree_lock);
    atomic_store(&num_lost, 0);
}

void weir__stack_sampler_stop(void)
{
    pthread_mutex_lock(&lock);
    if (--num_users == 0)
        end_sampling();
    pthread_mutex_unlock(&lock);
}
