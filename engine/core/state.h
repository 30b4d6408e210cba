/*
 * The data structures of a running pipeline, and the rules that hold for them.
 *
 * A pipeline is a graph of nodes (sources, stages, routes, merges, the sink), each with its output queue, run by one
 * or more pools of threads. A node's operation runs in its slots; a slot is a state machine, not a thread:
 *
 *               an input came             a thread took it             run() returned
 *     SLOT_IDLE ----------> SLOT_READY -------------------> SLOT_RUNNING
 *         ^                   ^  ^  ^                         |  |  |
 *         |                   |  |  |   weir_task_complete()  |  |  | WEIR_PENDING
 *         |                   |  |  +------- SLOT_PENDING <---|--|--+
 *         |                   |  |                            |  |
 *         |                   |  +-- WEIR_MORE, and the ---+  |  | WEIR_OK, WEIR_MORE
 *         |                   |      result found room     |  |  v
 *         |                   +-- next input was there -- SLOT_BLOCKED <-- SLOT_TURN: waits for earlier results
 *         |                   |        waits for room      |  |
 *         |                   +----------------------------|--+  WEIR_SKIP, WEIR_KEPT, failure
 *         +----------- no input ---------------------------+
 *
 * Nodes without an operation (merges, the sink) need no thread: other threads pass their items on, under the lock.
 * Their slot is always SLOT_IDLE or SLOT_BLOCKED. A surplus slot, after the concurrency of its node was lowered, is
 * SLOT_RETIRED.
 *
 * The end of an epoch moves through the queues like an item, and no item crosses it. A node that finds it at the head
 * of all its inputs waits until all its slots are idle, lets its operation flush the items that it has kept, puts the
 * end of the epoch into every output queue (its lifecycle slot does this), and only then takes the next input. The
 * end of the stream is handled in the same way, but nothing follows it.
 *
 * A node lives NODE_NEW -> NODE_STARTING -> NODE_OPEN -> NODE_ENDING -> NODE_DONE. STARTING and ENDING run the stage
 * hooks, in the lifecycle slot, which a pool thread picks like any other slot. A node is DONE when it can get no more
 * input (its inputs are closed and empty, or it is cancelled) and all its slots are idle; then its output queue is
 * closed. The run is over when all nodes are DONE and the sink queue is empty or no longer wanted.
 *
 * Stop cancels every node. A failure cancels the failing node and all nodes upstream of it. A cancelled node starts
 * no task; those of its slots that hold items become READY once more, and the thread that picks them ends hooks and
 * releases items.
 *
 * Threads: the pools' workers (pool.c) run tasks and their hooks. The service thread (service.c) takes laps and runs
 * the watchdog; the only user code it calls are release functions, when the run is over. The observer thread
 * (observing.c) calls observers. Caller threads (callers.c), created on demand, call op->cancel and log stalls.
 *
 * Locks: pipeline->lock, poll_lock, outbox->lock, failure_log->lock, tracker->lock. No thread holds two of them, and no
 * operation, hook, release function, observer, log function, allocation or system call (except to wake threads) runs
 * under one. The pipeline's lock is held for tens of nanoseconds at a time, once for each step of a task, so that a
 * whole hand-off (result put, next input taken, room passed upstream) is atomic. Only a lap holds it longer: about 2 µs
 * for each node. Functions whose name ends in _locked need the lock, and so do the static functions of files that say
 * so at their top.
 *
 * Invariants, whenever the lock is free:
 *   1. If a queue has an item, its consumer has no idle slot that could take it.
 *   2. If a queue has room, no slot of its producer waits for room.
 *   3. A slot is in exactly one list that fits its state, and time_ns of its node includes all its time up to since_ns.
 *   4. For each node, taken + created = handed_on + skipped + failed + dropped + merged + the items in its slots.
 *   5. If a slot is ready and a thread of its pool sleeps, then a thread of that pool will take the lock soon: one that
 *      was woken or spins, one in a short step, or the pool's guard (see wake.c).
 */
#ifndef WEIR_STATE_H
#define WEIR_STATE_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <uv.h>

#include <weir/engine.h>

#include "live_histogram.h"
#include "step_clock.h"

typedef struct weir_task weir_slot;
typedef struct weir_node weir_node;
typedef struct weir_pool weir_pool;
typedef struct weir_tracker weir_tracker;

typedef enum slot_state {
    SLOT_IDLE,
    SLOT_READY,
    SLOT_RUNNING,
    SLOT_PENDING,
    SLOT_TURN,
    SLOT_BLOCKED,
    SLOT_RETIRED, /* its time is not counted in any metric */
    SLOT_STATES,
} slot_state;

typedef enum node_state { NODE_NEW, NODE_STARTING, NODE_OPEN, NODE_ENDING, NODE_DONE } node_state;

/* Linked through slot.next. */
typedef struct weir_slot_list {
    weir_slot *first, *last;
} weir_slot_list;

typedef struct weir_queued_item {
    weir_item item;
    uint64_t arrival; /* number of this put among all puts of the pipeline */
} weir_queued_item;

typedef struct weir_queue {
    /* immutable after init */
    char *name;
    uint32_t index; /* among all queues of the pipeline */
    uint32_t capacity;
    uint64_t capacity_bytes; /* UINT64_MAX = unlimited */
    weir_node *producer;
    weir_node *consumer; /* NULL for the sink queue, from which weir_pipeline_next() takes */

    /* guarded by lock */
    weir_queued_item *entries; /* ring of `capacity` */
    uint32_t head;
    uint32_t depth;
    uint32_t num_epoch_ends; /* entries that are ends of epochs: they take room, but no metric counts them */
    uint64_t bytes;
    weir_slot_list blocked; /* slots of the producer whose result waits for room, in order of arrival */
    bool closed;            /* no more items will be put */
    uint64_t total_put, total_got, total_dropped;

    /* guarded by lock; since the last lap */
    int64_t level_since_ns; /* depth and bytes are counted in the metrics up to this time */
    weir_queue_metrics lap;
    weir_live_histogram *put_times, *get_times;
} weir_queue;

enum { MAX_PHASE = 64, CACHE_LINE = 64 };

/* The position of the consumer. */
typedef struct weir_consumer_phase {
    char phase[MAX_PHASE];
    bool phase_named;  /* by weir_pipeline_mark_phase() */
    bool steps_marked; /* ever */
    int64_t first_step, last_step;
} weir_consumer_phase;

struct weir_task {
    /* immutable after init */
    weir_node *node;
    void *worker;          /* op->worker_size bytes */
    char *hook_states;     /* node->hook_bytes bytes, zeroed for each task */
    bool is_lifecycle;     /* the node's lifecycle slot: runs the stage hooks, puts the ends of epochs */
    uint32_t trace_number; /* number among the slots of its node, as in weir_trace_record */

    /* guarded by lock */
    slot_state state;
    int64_t entered_ns; /* when it entered this state */
    int64_t since_ns;   /* the same, or the start of the lap: time_ns of the node includes all time before it */
    weir_slot *next;    /* the next slot in its list */
    weir_slot *turn_before, *turn_after; /* with WEIR_ORDER_INPUT: in the order of its node's inputs */
    int64_t run_ns;                      /* run time of the task, without the current step */
    uint64_t order_number;               /* of the input */
    uint64_t trace_item;                 /* the input, or the item to be made, as in weir_trace_record */
    struct weir_label *label;            /* of the input, for snapshots and stall warnings; NULL = none */
    bool has_turn;                       /* it is in the list of turns */
    int64_t warn_after_ns;               /* run time after which the task is next reported as stalled */
    bool has_in;                         /* holds an input whose task has not ended */
    bool has_out;                        /* holds a result that has not been put */
    bool more;                           /* more results of the same input will follow */
    bool needs_flush;                    /* its worker got an input since the last flush */
    bool flushing;                       /* its step is a flush, not a task */
    uint64_t num_kept;                   /* inputs its worker has kept for a later result */
    bool is_short_step;                  /* READY or RUNNING: its step is expected to take less than SHORT_STEP_NS, */
    bool is_long_step;                   /* or at least WEIR_CPU_WINDOW_NS */
    bool run_returned;                   /* run() has returned WEIR_PENDING */
    bool cancel_queued;                  /* in pipeline->to_cancel */
    bool cancel_called;                  /* op->cancel was called */
    bool cancelling;                     /* op->cancel has not returned: the task cannot end before */
    weir_slot *next_to_cancel;
    int pending_status; /* what weir_task_complete() was called with */
    weir_item pending_out;

    /* written with lock, also read without */
    atomic_bool completed;   /* weir_task_complete() was called for this task */
    atomic_bool should_stop; /* read by any thread */
    atomic_bool overdue;     /* ran longer than its deadline */

    /* owned by the thread that runs the step, from RUNNING to the end of the step */
    struct weir_worker *thread; /* this thread */
    weir_item in, out;
    uint32_t out_index;    /* index of the output queue for the result */
    uint32_t num_pieces;   /* results made from this input so far */
    int status;            /* result of the step */
    int64_t begin_ns;      /* when the thread began the step: the slot is busy from then on */
    int64_t step_run_ns;   /* from the operation's first instruction to its return */
    int64_t end_ns;        /* when the step ended */
    int64_t task_start_ns; /* when the task's operation first ran */
    bool op_start_known;   /* no hooks run between begin_ns and the operation */
    bool begun;            /* the task has run, and has not ended */
    bool finishing;        /* the step takes the result of weir_task_complete() */
    bool abandoned;        /* the step must not run the operation, only end the task */
    bool worker_live;      /* worker_init succeeded */
    weir_item kept; /* seq, source and epoch of the last input its worker has kept; results of a flush get them */
    uint32_t hooks_begun;
    weir_error error; /* why the task fails; status 0 = not set */

    /* the same, with checkpoints only; see tracker.h */
    uint32_t in_marks;       /* of the input */
    uint32_t released_marks; /* of items that the operation has released in this task */
    uint32_t carried_marks;  /* for the next result */
    bool in_marks_back;      /* the input was released, and not kept for a later result */
    bool out_is_piece;       /* the last result has a mark of its own */
    bool passed_over;        /* WEIR_MORE, but the result was done in an earlier run */
};

struct weir_node {
    /* immutable after init */
    weir_pipeline *pipeline;
    const weir_op *op; /* NULL = passes items on without an operation */
    void *config;
    bool config_owned; /* a copy, to be freed */
    bool config_live;  /* config_init succeeded on it */
    char *short_name;  /* as in the options */
    char *name;        /* as in the statistics */
    const char *kind;
    uint32_t index;        /* in weir_pipeline.nodes, upstream first */
    uint32_t source_index; /* of a source: which one */
    weir_queue **ins;      /* output queues of the upstream nodes */
    uint32_t num_ins;      /* 0 = a source; above 1 only where op is NULL */
    weir_queue *outs;      /* output queues, owned by the node */
    uint32_t num_outs;     /* above 1 only for a route */
    weir_pool *pool;       /* NULL if op is NULL */
    uint32_t threads;      /* private threads; 0 = the pipeline's pool */
    weir_order order;
    weir_max_failures max_failures;
    weir_stage_hook *stage_hooks;
    size_t num_stage_hooks;
    weir_task_hook *task_hooks;
    size_t num_task_hooks;
    size_t hook_bytes;        /* of all task hooks' states */
    uint32_t concurrency;     /* as built */
    uint32_t epochs;          /* sources: number of epochs; 0 = one run, without ends of epochs */
    int64_t task_deadline_ns; /* 0 = none */
    weir_merge_order merge_order;
    weir_merge_end merge_end;
    uint64_t merge_seed;
    weir_node *route;        /* of a join: the route where its branches begin */
    weir_node *ordered_join; /* the node is between a route and this join, which restores the order; NULL = not */
    bool numbers_inputs;     /* it is the outermost route before such a join */
    uint32_t *weights;       /* of the inputs; NULL = all 1 */
    char *makes;             /* the types of the items that go out, as in weir_op.makes */
    bool makes_one_type;     /* op->makes names one type, which every result gets */
    bool checks_types;       /* not every input has a type that op takes */
    weir_slot lifecycle;

    /* guarded by lock */
    node_state state;
    weir_slot **slots;
    uint32_t num_made;   /* in `slots` */
    uint32_t num_slots;  /* slots that are not retired */
    uint32_t num_wanted; /* target of num_slots */
    uint32_t num_idle;
    weir_slot *idle;       /* a stack, so that no more workers are created than needed */
    weir_slot_list ready;  /* first in, first out; the lifecycle slot, too */
    weir_slot_list gated;  /* ready, but the stage's start hooks have not ended */
    weir_slot *turn_first; /* with WEIR_ORDER_INPUT: slots in the order of their inputs; only the first puts */
    weir_slot *turn_last;
    uint32_t due;        /* merge that selects: the next input; num_ins = not selected yet */
    uint32_t last_taken; /* round robin: the input of the last item; num_ins = none in this epoch */
    /* weighted merge: the credit of each input, then the credits before `due` was selected; random: the weights of
       those that have not ended; see merge.c */
    int64_t *credits;
    uint64_t merge_random; /* random merge: the state of the draws of this epoch */
    uint64_t merge_epoch;
    bool exhausted;             /* sources: has ended */
    uint64_t epochs_ended;      /* sources: number of ended epochs */
    uint64_t next_seq;          /* sources: number of the next item in this epoch */
    uint64_t next_order_number; /* with numbers_inputs */
    bool passing_epoch;         /* the lifecycle slot is putting the end of an epoch */
    bool passing_items;         /* handoff.c is passing on items of a node without an operation */
    bool moving_turns;          /* handoff.c is letting slots put in the order of their turns */
    bool passing_epoch_or_end;  /* handoff.c is passing on ends of epochs or of the stream */
    bool cancelled;
    bool keeps_results; /* cancelled, but its results are still passed on */
    size_t stage_hooks_begun;
    int64_t typical_ns; /* moving average of the length of a step; a single step at most doubles it */
    weir_error first_error;
    weir_account account; /* in_flight is derived */
    uint64_t total_tasks;
    uint64_t total_failures;

    _Atomic int64_t outside_cpu_ns; /* of the tasks, in other processes; since the last lap */

    /* guarded by lock; since the last lap */
    int64_t time_ns[SLOT_STATES];
    weir_task_metrics lap;
    weir_live_histogram *run_times;
};

/* One thread of a pool. */
typedef struct weir_worker {
    weir_pool *pool;
    uint32_t index;
    uv_thread_t thread;
    bool started;

    /* owned by the thread: its CPU time, and the tasks it belongs to (see thread_cpu.c) */
    bool window_open, window_full;
    int64_t window_start_ns;
    int64_t window_end_ns;    /* end of its last step so far */
    int64_t window_engine_ns; /* CPU time that belongs to no task, at most */
    int64_t window_run_ns;    /* sum of run_ns */
    int64_t *run_ns;          /* for each node: run time in this window */
    int64_t *shared_ns;       /* for each node: CPU time of earlier windows, not in its metrics yet */
    bool has_shares;

    /* written by the thread, read by the service thread at laps */
    _Atomic int64_t cpu_base_ns; /* CPU time of the thread that has already been divided among tasks */
    atomic_int tid;              /* thread id in the kernel; 0 = not known */

    weir_step_clock clock; /* owned by the thread */

    /* guarded by pipeline->lock */
    weir_slot *running;   /* NULL between steps */
    weir_node *long_node; /* of a long step whose CPU time is not divided yet; NULL = none */
    int64_t busy_since_ns;
    struct weir_label *spent_label; /* label of the ended task, to be released without the lock */

    int64_t cpu_ns[]; /* run_ns, then shared_ns */
} weir_worker;

struct weir_pool {
    /* immutable after init */
    weir_pipeline *pipeline;
    weir_node *owner; /* the stage with these private threads; NULL = the pipeline's pool */
    char *name;       /* as in the statistics */
    bool work_made, parked_made;

    /* guarded by pipeline->lock */
    uint64_t *ready_nodes; /* one bit for each node with a ready slot; bit 0 is the node nearest the sink */
    uint32_t num_words;
    uint32_t num_ready;       /* slots that a thread may pick */
    uint32_t num_ready_slow;  /* ready slots whose step is not expected to be short */
    uint32_t num_short_steps; /* threads in a short step: they will pick again soon */
    uint32_t sleeping;        /* threads that wait for `work` */
    uint32_t waking;          /* of these, already signalled */
    bool guarded;             /* one sleeping thread is the guard (see wake.c) */
    bool spinning;            /* one thread spins on `invites` instead of sleeping */
    int64_t spin_ns;          /* how long it spins; adapted to what was useful recently */
    int64_t picked_ns;        /* when a slot was last picked */
    bool quit;
    weir_worker **workers; /* each exists until the pool is freed */
    uint32_t num_made;     /* in `workers` */
    bool resizing;         /* weir_pool_resize() runs */
    int64_t threads_since_ns;
    weir_pool_metrics lap; /* since the last lap; idle_ns is the time of all threads up to threads_since_ns */
    uv_cond_t work;        /* there is work for one more thread, quit, or it is surplus; with lock */
    uv_cond_t parked;      /* the thread is not surplus any more, quit, or resizing has ended; with lock */

    /* written with lock, read by any thread */
    atomic_uint num_workers; /* threads wanted; those with a higher index are surplus, and park */

    /* written with lock, read by the spinning thread without; in a separate cache line */
    char padding[CACHE_LINE];
    atomic_uint invites; /* there is work for one more thread */
};

/* Messages for the observers; see outbox.c. */
typedef struct weir_message weir_message;

typedef struct weir_outbox {
    /* immutable after init */
    bool lock_made, filled_made;
    weir_message *start; /* allocated in advance, so that adding it cannot fail */

    uv_mutex_t lock;

    /* guarded by lock */
    weir_message *first, **end;
    size_t bytes; /* of failures and events */
    uint32_t num_laps;
    uint64_t dropped_failures, dropped_events; /* not reported yet */
    bool closed;                               /* only observers add messages: events, at most so many late ones */
    uint32_t num_late;                         /* events of observers since then */
    bool woken;                                /* the observer thread has something else to do */
    uv_cond_t filled;                          /* first, closed or woken; with lock */
} weir_outbox;

struct weir_pipeline {
    /* guarded by the lock of span_collect.c */
    weir_pipeline *next_traced;
    bool traces_users; /* records of user code are added to `trace` */

    /* immutable after init */
    uint32_t id;
    uint32_t num_nodes;
    weir_node **nodes; /* upstream first; 0 is the first source, the last is the sink */
    uint32_t num_pools;
    weir_pool **pools; /* 0 is the pipeline's pool */
    bool lock_made, consumable_made, service_wake_made, caller_wake_made;
    weir_observer *observers;
    size_t num_observers;
    bool wants_laps, wants_marks, wants_failures, wants_events; /* an observer wants them */
    int64_t stats_interval_ns;
    uint32_t steps_per_lap; /* 0 = steps end no laps */
    uint32_t num_cpus;
    bool measures;
    int64_t stall_warning_ns; /* WEIR_FOREVER = none */
    int64_t start_unix_ns;
    weir_queue *sink; /* the sink's */
    uint32_t num_queues;
    weir_tracker *tracker; /* has its own lock; NULL = no checkpoints */
    int64_t start_ns;
    struct weir_trace_rings *trace; /* the raw record; NULL = no observer wants it */
    atomic_bool traces;             /* it is recorded; written with lock, also read without */

    uv_mutex_t lock;

    /* guarded by lock */
    int64_t now_ns;      /* time of the latest hand-off: never runs backwards */
    uint32_t num_awake;  /* pool threads that do not sleep */
    uint32_t live_nodes; /* not DONE */
    uint32_t live_sources;
    uint64_t next_arrival;
    bool stopped;
    bool failed;
    bool over; /* all nodes DONE and the sink queue empty or no longer wanted */
    weir_error error;
    uint32_t consumers_waiting;
    uint32_t consumers_waking; /* of these, already signalled */
    uv_cond_t consumable;      /* the sink queue has an item, or no more will come; with lock */
    int64_t consumer_spin_ns;
    int64_t asked_ns;                      /* since when a polling consumer has found no item; 0 = none does */
    int64_t consumable_ns;                 /* when the sink queue last became not empty */
    weir_consumer_phase phase, next_phase; /* phase of the current lap, and of the lap after it */
    int64_t step_start;                    /* of the current step, on the clock of spans; 0 = none */
    uint32_t steps_in_lap;                 /* with steps_per_lap: marked since a step ended a lap */
    bool cut_lap;                          /* the phase changes: the service thread must end the lap now */
    bool wake_service;                     /* there is work for the service thread */
    weir_slot *to_cancel, **to_cancel_end; /* pending tasks for which op->cancel must be called */
    struct stall_warning *stalls;          /* to be logged */
    uint32_t num_callers;                  /* caller threads started so far */
    uint32_t num_callers_idle;
    bool callers_quit;
    uv_cond_t caller_wake; /* to_cancel, stalls, or callers_quit; with lock */

    /* written with lock, read by a spinning consumer without; in a separate cache line */
    char padding_before[CACHE_LINE];
    atomic_uint is_consumable; /* weir_pipeline_next() need not wait */
    char padding_after[CACHE_LINE];

    /* guarded by lock; the descriptor for event loops, see poll_fd.c */
    bool polls;      /* weir_pipeline_poll_fd() was called */
    bool poll_dirty; /* is_consumable has changed, and the descriptor must be updated */

    uv_mutex_t poll_lock; /* never taken with lock held */
    bool poll_lock_made;
    /* guarded by poll_lock */
    int poll_fd; /* -1 = not made */
    bool poll_raised;

    /* any thread, also signal handlers; see signals.c */
    atomic_bool stop_wanted;
    atomic_int stop_signal;                  /* the signal that stopped the pipeline; 0 = none */
    _Atomic(weir_pipeline *) next_on_signal; /* written with the lock of signals.c, as on_signals */
    bool on_signals;
    sem_t service_wake; /* posted if the service thread must act before its next due time */

    weir_outbox outbox;                   /* has its own lock */
    struct weir_failure_log *failure_log; /* the same */

    /* owned by the service thread */
    uv_thread_t service_thread;
    bool service_started;
    struct weir_lap_taker *laps;
    bool stop_reported, failure_reported;
    uv_thread_t *callers; /* of MAX_CALLERS */

    /* owned by the observer thread */
    uv_thread_t observer_thread;
    bool observer_started;
    weir_stage_info *stage_infos; /* one for each node */
    weir_queue_info *queue_infos;
    struct delivery *delivery;
    int end_status; /* written by the service thread before the outbox is closed */
    int64_t end_unix_ns;
};

/* The end of an epoch, as an item: identified by its release function. */
void weir_epoch_end_release(void *data, void *self);

static inline weir_item epoch_end(void)
{
    return (weir_item){ .release = weir_epoch_end_release };
}

static inline bool is_epoch_end(const weir_item *item)
{
    return item->release == weir_epoch_end_release;
}

/* Whether weir_pipeline_next() need not wait. */
static inline void set_consumable_locked(weir_pipeline *pipeline, bool is_consumable)
{
    if (atomic_load_explicit(&pipeline->is_consumable, memory_order_relaxed) == is_consumable)
        return;
    atomic_store_explicit(&pipeline->is_consumable, is_consumable, memory_order_relaxed);
    pipeline->poll_dirty = pipeline->polls;
}

/* The pipeline whose pool, service, observer or caller thread this is. NULL = none. */
extern _Thread_local const weir_pipeline *weir_pipeline_of_thread;

#endif
