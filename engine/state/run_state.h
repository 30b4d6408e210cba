/*
 * The data structures of a running pipeline: the scheduler core (core.h has its states, rules and invariants) with what
 * the threads need around it. This folder has what all rooms of the engine share that know a running pipeline. That
 * is these structs, and threads with their clock. It is also the lock, with what happens when it is acquired (bursts)
 * and released (waking). It uses none of those rooms (trace, spans, resume, measure, run): what belongs to one of
 * them alone is in a struct that its header defines, and that is only named here.
 *
 * Threads: the threads of the pools (pool.c) run tasks and their hooks. The service thread (service.c) takes laps and runs
 * the watchdog; the only user code it calls are release functions, when the run is over. The observer thread
 * (observing.c) calls observers. Cancel threads (cancel_threads.c), created on demand, call op->cancel.
 *
 * Locks: pipeline->resize_lock, pipeline->lock, outbox->lock, failure_log->lock and tracker->lock. Each counter
 * (counter.c) and each thread that records spans (spans.h) has a lock. So have signals.c, closing.c, span_collect.c,
 * span_names.c, user_trace.c, log.c and log_queue.c. No thread holds two of them, with two exceptions. resize_lock is
 * taken before pipeline->lock and that of user_trace.c. The lock of span_collect.c is taken before pipeline->lock, a
 * counter's or a span thread's. Slots and threads are made under resize_lock. No operation, hook, release function,
 * observer or log function runs under any lock. Under the locks other than resize_lock there is no allocation and no
 * system call (except to wake threads). The pipeline's lock is held for tens of nanoseconds at a time, once for each
 * step of a task or each burst of short steps. So an event of the core (result put, next input taken, room passed
 * upstream) is atomic. Only a lap holds it longer: about 2 µs for each node. Functions whose name ends in _locked
 * need the lock, and so do all functions of the core.
 *
 * Invariant, whenever the lock is free: if a slot is ready and a thread of its pool sleeps, then a thread of that
 * pool will take the lock soon. It was woken, or spins, or is in a short step. If that takes long, the service thread
 * wakes another (see lock.c).
 */
#ifndef ENGINE_STATE_RUN_STATE_H
#define ENGINE_STATE_RUN_STATE_H

#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include <uv.h>

#include <weir/engine.h>

#include "engine/base/fork_check.h"
#include "engine/core/core.h"
#include "engine/state/cpu_window.h"
#include "engine/state/held_bytes.h"
#include "engine/state/step_clock.h"

/* Cannot fail, and need not be undone. */
#define WEIR_MUTEX ((uv_mutex_t)PTHREAD_MUTEX_INITIALIZER)

typedef struct weir_node weir_node;
typedef struct weir_pool weir_pool;
typedef struct weir_pool_thread weir_pool_thread;
typedef struct weir_tracker weir_tracker;

enum { CACHE_LINE = 64 };

/* What the operation has reported about the item, see weir_task_set_part(). */
typedef struct weir__task_parts {
    weir_item_part parts[WEIR_MAX_ITEM_PARTS];
    int64_t before[WEIR_MAX_ITEM_PARTS]; /* their numbers when the operation was last called */
    char texts[WEIR_MAX_ITEM_PARTS][WEIR_PART_TEXT_BYTES];
} weir__task_parts;

struct weir_task {
    weir__core_slot core; /* first */

    /* immutable after init */
    weir_node *node;
    void *worker;          /* op->worker_size bytes */
    char *hook_states;     /* node->hook_bytes bytes, zeroed for each task */
    uint32_t trace_number; /* number among the slots of its node, as in weir_trace_record */

    /* guarded by lock */
    struct weir_label *label; /* of the input, from its first step to its end; NULL = none */
    int64_t warn_after_ns;    /* run time after which the task is next reported as stalled */
    int64_t suspended_ns;     /* part of the run time in which the process was suspended: it counts for no limit */
    uint64_t reported_work;   /* of num_work: what is in laps */
    int pending_status;       /* what weir_task_complete() was called with */
    weir_item pending_out;

    /* written with lock, also read without */
    atomic_bool was_completed; /* as core.completed */
    atomic_bool should_stop;   /* read by any thread */
    atomic_bool is_overdue;    /* as core.overdue */

    /* any thread, while the task runs or is pending */
    _Atomic uint64_t num_work;  /* see weir_task_advance(): since the start */
    _Atomic int64_t held_bytes; /* by the worker; see weir_task_set_held() */

    /* owned by the thread that runs the step, from RUNNING to the end of the step */
    weir_pool_thread *thread; /* this thread */
    bool is_long_step;        /* the step is expected to take at least WEIR_LONG_STEP_NS */
    bool op_start_known;      /* no hooks run between begin_ns and the operation, or nothing is measured */
    int64_t task_start_ns;    /* when the task's operation first ran */
    uint32_t hooks_begun;
    uint64_t number_after; /* weir_task_set_number(): above the number of the result; 0 = not called */
    uint32_t num_parts;    /* in `reported` */
    weir_error error;      /* why the task fails; status 0 = not set */
    weir__task_parts reported;
    void *cause; /* weir_task_set_cause(); NULL = none. See kept_failures.h */
    void (*release_cause)(void *cause);

    /* the same, with checkpoints only; see tracker.h */
    uint32_t in_tickets;       /* of the input */
    uint32_t released_tickets; /* of items that the operation has released in this task */
    uint32_t carried_tickets;  /* for the next result */
    bool in_tickets_back;      /* the input was released, and not kept for a later result */
    bool out_is_chunk;         /* the last result has a ticket of its own */
};

/* Tasks of a source or stage, for weir_span_dump(). */
typedef struct weir__stage_sum {
    uint64_t num_tasks, num_failures;
    int64_t success_ns, min_ns, max_ns;
} weir__stage_sum;

/* The age of a running or pending task; with lock. */
static inline int64_t weir__task_age_ns(const weir_task *slot, int64_t now_ns)
{
    return slot->core.run_ns + now_ns - slot->core.entered_ns - slot->suspended_ns;
}

/* At the threads that run tasks of a node, since the start; see measure/wait_looks.h. */
typedef struct weir__looks {
    uint64_t num, waits[WEIR_NUM_WAITS];
} weir__looks;

struct weir_node {
    weir__core_node core; /* first */

    /* immutable after init */
    weir_pipeline *pipeline;
    const weir_op *op; /* NULL = passes items on without an operation */
    void *config;
    bool config_owned; /* a copy, to be freed */
    bool config_live;  /* config_init succeeded on it */
    char *short_name;  /* as in the options */
    char *name;        /* as in the statistics */
    const char *kind;
    weir_pool *pool;  /* NULL if op is NULL */
    uint32_t threads; /* private threads; 0 = the pipeline's pool */
    weir_stage_hook *stage_hooks;
    size_t num_stage_hooks;
    weir_task_hook *task_hooks;
    size_t num_task_hooks;
    size_t hook_bytes;         /* of all task hooks' states */
    uint32_t concurrency;      /* as built */
    uint32_t subject;          /* in pipeline->laps->subjects; its queues follow */
    int64_t task_deadline_ns;  /* 0 = none */
    int64_t stats_interval_ns; /* 0 = observers get each lap */
    char *makes;               /* the types of the items that go out, as in weir_op.makes */
    bool makes_one_type;       /* op->makes names one type, which every result gets */
    bool checks_types;         /* not every input has a type that op takes */
    weir_task lifecycle;

    /* guarded by lock */
    weir_error first_error;
    bool watched;           /* the service thread checks the deadlines of its tasks; see watchdog.c */
    uint64_t watched_tasks; /* core.total_tasks at the last check */

    _Atomic(const char *) work_unit;      /* of its slots' num_work; NULL = not known yet */
    weir__held held;                      /* any thread */
    _Atomic int64_t outside_cpu_ns;       /* of the tasks, in other processes; since the last lap */
    _Atomic int64_t total_outside_cpu_ns; /* the same since the start */
    _Atomic int64_t outside_delay_ns;     /* what these have waited for a CPU; since the last lap */
    _Atomic int64_t total_outside_delay_ns;
    weir__stage_sum dumped, before_reset; /* of laps that were taken; of those that were open at the last reset */
    int64_t total_cpu_ns;                 /* of the tasks, on the pools' threads; since the start; guarded by lock */
    weir__looks total_looks;              /* guarded by lock */
};

static inline weir_task *weir__slot_at(const weir_node *node, uint32_t index)
{
    return (weir_task *)node->core.slots[index];
}

/* The label of the input; "" = none. */
static inline const char *slot_label(const weir_task *slot)
{
    return slot->core.in.label ? slot->core.in.label : "";
}

enum { MAX_BURST = 32 };

/* See burst.h. */
typedef struct weir__burst {
    weir__plan plan; /* written with lock, while the thread runs no step; no steps = no burst */

    /* owned by the thread; read with lock as far as `progress` says */
    uint32_t num_passed;
    weir__passed_step steps[MAX_BURST];

    atomic_uint progress; /* num_passed, added to by the thread; a bit says that the burst was ended, with lock */

    /* guarded by lock */
    uint32_t num_reported;  /* of the steps */
    weir_pool_thread *next; /* in pipeline->bursts */
} weir__burst;

enum { MAX_AHEAD = 32 };

/* What the consumer may take without the lock; see burst.h. */
typedef struct weir__ahead {
    _Atomic(const void *) taker; /* identifies the first thread that was a consumer; written with lock */

    /* written by the taker with lock, read by it without */
    uint32_t num_planned;
    weir_item items[MAX_AHEAD]; /* copies of the next items of the sink queue */

    int64_t taken_ns[MAX_AHEAD]; /* owned by the taker; read with lock as far as `progress` says */
    /* How many were taken, added to by the taker; a bit says that the plan was ended, with lock. */
    atomic_uint progress;

    /* guarded by lock */
    bool is_open;          /* planned and not ended */
    uint32_t num_reported; /* of those taken */
} weir__ahead;

/* One thread of a pool. */
struct weir_pool_thread {
    weir_pool *pool;
    uint32_t index;
    uv_thread_t thread;
    bool started;

    /* owned by the thread: its CPU time, and the tasks it belongs to (see thread_cpu.c) */
    bool window_open, window_full;
    weir__cpu_window window;
    weir__handoff_sample handoffs;
    int64_t reading_ns; /* the least that a reading of the CPU clock takes; negative = not known yet */
    int64_t *run_ns;    /* for each node: run time in this window */
    int64_t *shared_ns; /* for each node: CPU time of earlier windows, not in its metrics yet */
    bool has_shares;

    /* written by the thread, read by the service thread at laps */
    _Atomic int64_t cpu_base_ns; /* CPU time of the thread that has already been divided among tasks */
    atomic_int tid;              /* thread id in the kernel; 0 = not known */

    /* owned by the thread */
    weir_step_clock clock;
    int64_t began_ns; /* when its step began, or the first step of its burst */

    /* began_ns as other threads see it. 0 or less: the step has not begun, and will not begin before the time
       -reported_began_ns. The thread stores the time when its step begins; other threads store such a bound, with the
       lock held. */
    _Atomic int64_t reported_began_ns;

    weir__burst burst;

    /* guarded by pipeline->lock */
    weir_task *running;   /* NULL between steps */
    weir_node *long_node; /* of a long step whose CPU time is not divided yet; NULL = none */
    int64_t busy_since_ns;
    struct weir_label *spent_label; /* label of the ended task, to be released without the lock */

    int64_t cpu_ns[]; /* run_ns, then shared_ns */
};

struct weir_pool {
    weir__core_pool core; /* first */

    /* immutable after init */
    weir_pipeline *pipeline;
    weir_node *owner; /* the stage with these private threads; NULL = the pipeline's pool */
    char *name;       /* as in the statistics */
    uint32_t subject; /* in pipeline->laps->subjects */
    bool work_made, parked_made;

    /* guarded by pipeline->lock */
    uint32_t sleeping; /* threads that wait for `work` */
    uint32_t waking;   /* of these, already signalled */
    bool spinning;     /* one thread spins on `invites` instead of sleeping */
    int64_t spin_ns;   /* how long it spins; adapted to what was useful recently */
    bool quit;
    weir_pool_thread **threads; /* each exists until the pool is freed */
    uint32_t num_made;          /* in `threads` */
    uint32_t num_leaving;       /* of these, surplus ones that still run a step */
    int64_t threads_since_ns;
    weir_pool_metrics lap; /* since the last lap; idle_ns is the time of all threads up to threads_since_ns */
    uv_cond_t work;        /* there is work for one more thread, quit, or it is surplus; with lock */
    uv_cond_t parked;      /* the thread is not surplus any more, or quit; with lock */

    /* written with lock, read by any thread */
    atomic_uint num_wanted; /* threads wanted; those with a higher index are surplus, and park */

    /* written with lock, read by the spinning thread without; in a separate cache line */
    char padding[CACHE_LINE];
    atomic_uint invites; /* there is work for one more thread */
};

/* The consumer's end of the pipeline. */
typedef struct weir__consumer {
    /* guarded by lock */
    uint32_t waiting;
    uint32_t waking;      /* of these, already signalled */
    uint32_t in_wait;     /* calls of weir_pipeline_next() that have waited, and not yet returned */
    uint32_t patient;     /* of those that wait: since not long ago, while short steps ran; see lock.c */
    uv_cond_t consumable; /* the sink queue has an item, or no more will come; with lock */
    bool consumable_made; /* immutable after init */
    int64_t spin_ns;
    int64_t asked_ns; /* since when a polling consumer has found no item; 0 = none does */
    int poll_fd;      /* an eventfd, raised while is_consumable; -1 = weir_pipeline_poll_fd() was not called */

    /* written with lock, read by a spinning consumer without; in a separate cache line */
    char padding_before[CACHE_LINE];
    atomic_uint is_consumable; /* as core.consumable, but later if the consumer can wait, see lock.c */
    char padding_after[CACHE_LINE];
    weir__ahead ahead;
    char padding_ahead[CACHE_LINE];
} weir__consumer;

/* Which sleeping threads are needed; see lock.c. Guarded by lock. */
typedef struct weir__waking {
    uint32_t num_awake; /* pool threads that do not sleep */
    bool left_work;     /* to threads in short steps, since the service thread last looked */
    bool guarded;       /* the service thread looks every GUARD_INTERVAL_NS */
    bool wake_service;  /* there is work for the service thread */
} weir__waking;

/*
 * What all rooms share. What one room needs is in a struct of that room, which its header defines; other rooms change
 * it by functions of that room only. Each section says which lock a field needs; the file with which its
 * comment begins is the one that changes it.
 */
struct weir_pipeline {
    weir__graph core; /* first; guarded by lock, see core.h */

    /* of one room each; made when the pipeline is built, freed with it. The header has their owners. */
    struct weir_trace_rings *trace;            /* trace/trace_ring.h; NULL = no observer wants the raw record */
    weir_tracker *tracker;                     /* resume/tracked.h; NULL = no checkpoints */
    struct weir__position *position;           /* measure/position.h */
    struct weir__laps *laps;                   /* measure/lap.h */
    struct weir__lap_taker *lap_taker;         /* measure/lap_taker.h */
    struct weir__reporting *reporting;         /* measure/reporting.h */
    struct weir__run *run;                     /* run/run_room.h */
    struct weir__kept_failures *kept_failures; /* measure/kept_failures.h; NULL = none are kept */

    /* immutable after init; owned by pipeline.c, or by the file that is named */
    unsigned num_forks; /* the number of forks of its process at init, see fork_check.h */
    uint32_t id;
    weir_node **nodes; /* upstream first; 0 is the first source, the last is the sink */
    uint32_t num_pools;
    weir_pool **pools;        /* 0 is the pipeline's pool */
    weir_observer *observers; /* observing.c */
    size_t num_observers;     /* observing.c */
    bool wants_position;      /* observing.c: an observer has the function `mark` */
    int64_t stats_interval_ns;
    uint32_t steps_per_lap; /* 0 = steps end no laps */
    uint32_t num_cpus;
    int64_t stall_warning_ns; /* WEIR_FOREVER = none */
    uint32_t num_queues, num_sources;
    int64_t start_ns;
    struct weir_failure_log *failure_log;           /* has its own lock */
    void (*sources_ended)(weir_pipeline *pipeline); /* lap_taker.c; called with lock, see consumer_position.c */
    /* observing.c; called without lock: the observer thread looks what there is to do. */
    void (*wake_observers)(weir_pipeline *pipeline);

    weir_pipeline *next_running; /* guarded by the registry's lock, see spans.h; of running.c */

    /* any thread */
    atomic_bool traces;      /* trace_ring.c, with lock: the raw record is on */
    _Atomic uint64_t lap_id; /* span.c, with lock: of the current lap, see spans.h */
    /* span_collect.c, with the registry's lock: spans of threads of no pipeline belong to this one. */
    atomic_bool has_others_spans;
    /* speedup.c, with lock; read without: of a virtual speedup. NULL = off; the sink stands for the consumer. */
    _Atomic(const weir_node *) sped_node;
    sem_t service_wake; /* posted by any thread if the service thread, which waits, must act before it is due */

    uv_mutex_t resize_lock; /* one thread at a time adds slots or threads, or switches the trace */
    uv_mutex_t lock;

    /* guarded by lock */
    weir_pool_thread *bursts; /* burst.c: threads with a burst, linked through burst.next */
    weir_error error;         /* lock.c */
    bool paused;              /* running.c: what is measured is in no lap */
    bool closing; /* pipeline.c: weir_pipeline_free() or _close() has begun: the run is over once the work is */
    weir__waking waking; /* see there */

    weir__consumer consumer; /* its sections say it */
};

/* Whether a fork() has copied the pipeline into this process, without its threads. Each public function asks this before it
   takes a lock, which one of these threads may hold. */
static inline bool is_of_parent(const weir_pipeline *pipeline)
{
    return pipeline->num_forks != forks_now();
}

#endif
