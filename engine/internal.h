/*
 * The engine's inside: what a running pipeline is made of.
 *
 * A pipeline is a graph of nodes (source, stages, sink), each with the queue behind it, run by one or more pools of
 * threads. A node's operation runs in its slots; a slot is a state machine, never a thread:
 *
 *               input came                a thread took it             run() returned
 *     SLOT_IDLE ----------> SLOT_READY -------------------> SLOT_RUNNING
 *         ^                   ^  ^  ^                         |  |  |
 *         |                   |  |  |   weir_task_complete()  |  |  | WEIR_PENDING
 *         |                   |  |  +------- SLOT_PENDING <---|--|--+
 *         |                   |  |                            |  |
 *         |                   |  +-- WEIR_MORE, and out --+   |  | WEIR_OK, WEIR_MORE
 *         |                   |      has found room       |   |  v
 *         |                   +-- next input was there -- SLOT_HOLDING: out waits for room or for its turn
 *         |                   |                           |   |
 *         |                   +---------------------------|---+  WEIR_SKIP, failure (after which the report of the
 *         +----------- no input ---------------------------------failure may wait for room, also SLOT_HOLDING)
 *
 * The nodes without an operation (the sink, merges) pass items on by themselves, under the lock and without a thread:
 * their slot is only ever SLOT_IDLE or SLOT_HOLDING.
 *
 * A node lives NODE_NEW -> NODE_STARTING -> NODE_OPEN -> NODE_ENDING -> NODE_DONE. STARTING and ENDING run the stage
 * hooks, as a chore that a pool thread picks like a slot. A node is DONE when nothing can come in any more (its inputs
 * are closed and empty, or it is cancelled) and all its slots are idle; then the queue behind it is closed. The run is
 * over when all nodes are DONE and the sink queue is empty or no longer wanted.
 *
 * Stop cancels every node, a failure cancels the failing node and all before it. A cancelled node starts no task; its
 * slots that hold something become READY once more, and the thread that picks them ends hooks and releases items.
 * So nothing is ever released under the lock.
 *
 * Locks. One per pipeline, `lock`; nothing else is locked while it is held, and no operation, hook, release function
 * or observer is called under it. It is held for tens of nanoseconds at a time, about once for each task, so that
 * whole hand-overs (result put, next input taken, room passed upstream) are one step that no one sees half of.
 *
 * Invariants, whenever the lock is free:
 *   1. A queue with an item has no idle slot behind it that could take it.
 *   2. A queue with room has no slot waiting for room before it.
 *   3. A slot is in exactly one list that fits its state, and time_ns of its node covers all its past up to since_ns.
 *   4. For each node, taken + created = handed_on + skipped + failed + dropped + what its slots hold.
 *   5. If a slot is ready and a thread of its pool sleeps, a thread of that pool is awake and will look again.
 */
#ifndef WEIR_INTERNAL_H
#define WEIR_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include <weir/engine.h>

typedef struct weir_task weir_slot;
typedef struct weir_node weir_node;
typedef struct weir_pool weir_pool;
typedef struct node_lap node_lap;

/* In the order of the figures; RUNNING and PENDING are both "busy". */
typedef enum slot_state { SLOT_IDLE, SLOT_READY, SLOT_RUNNING, SLOT_PENDING, SLOT_HOLDING, SLOT_STATES } slot_state;

typedef enum node_state { NODE_NEW, NODE_STARTING, NODE_OPEN, NODE_ENDING, NODE_DONE } node_state;

/* Linked through slot.next. */
typedef struct weir_slot_list {
    weir_slot *first, *last;
} weir_slot_list;

/* What the observers are still to be told. */
typedef struct weir_report {
    struct weir_report *next;
    bool is_failure;
    weir_failure failure; /* its texts, and those of the event, lie behind the struct */
    weir_event event;
} weir_report;

typedef struct weir_queue {
    /* immutable after init */
    char *name;
    uint32_t capacity;
    uint64_t capacity_bytes; /* UINT64_MAX = unlimited */
    weir_node *producer;
    weir_node *consumer; /* NULL for the sink queue, from which weir_next() takes */

    /* guarded by lock */
    weir_item *items; /* ring of `capacity` */
    uint32_t head;
    uint32_t depth;
    uint64_t bytes;
    weir_slot_list holders; /* slots of the node before, whose result waits for room; in the order they came */
    bool closed;            /* nothing will be put any more */

    /* guarded by lock; figures since the last lap, but for the totals */
    int64_t level_since_ns; /* depth and bytes are in the sums below up to here */
    uint64_t num_put, num_got;
    uint64_t total_put, total_got, total_dropped;
    int64_t put_ns, get_ns;
    int64_t occupied_ns;
    double depth_ns, bytes_ns;
    uint64_t max_depth, max_bytes;
    weir_histogram *put_times, *get_times; /* swapped with a cleared pair at each lap */
} weir_queue;

struct weir_task {
    /* immutable after init */
    weir_node *node;
    void *worker;      /* op->worker_size bytes */
    char *hook_states; /* node->hook_bytes bytes, zeroed for each task */
    bool chore;        /* not a slot but its node's chore: runs the stage hooks */

    /* guarded by lock */
    slot_state state;
    int64_t entered_ns; /* when it came into this state */
    int64_t since_ns;   /* the same, or when the lap began: time_ns of the node holds all before it */
    weir_slot *next;    /* in the one list it is in */
    weir_slot *turn_before, *turn_after; /* with WEIR_ORDER_INPUT: in the order of its node's inputs */
    int64_t start_ns;                    /* when its task first ran */
    int64_t run_ns;                      /* what the task has run so far, the present step not included */
    bool has_in;                         /* holds an input whose task has not ended */
    bool has_out;                        /* holds a result that has not been put */
    bool more;                           /* that result is not the last one of its input */
    bool reporting;                      /* HOLDING not a result but the report of a failure */
    bool run_returned;                   /* run() has returned WEIR_PENDING */
    bool completed;                      /* weir_task_complete() was called */
    bool cancel_called;                  /* op->cancel was */
    int pending_status;                  /* what it was called with */
    weir_item pending_out;

    /* whoever runs the task, from RUNNING until its step has ended */
    weir_item in, out;
    int status;       /* result of the step */
    bool begun;       /* the task has run, and has not ended */
    bool given_up;    /* the step is not to run the operation, but to end the task */
    bool worker_live; /* worker_init succeeded */
    uint32_t hooks_begun;
    weir_error error;    /* why the task fails; status 0 = nobody said so far */
    weir_report *report; /* of the task's failure; NULL = none */

    /* any thread */
    atomic_bool should_stop;
};

struct weir_node {
    /* immutable after init */
    weir_pipeline *pipeline;
    const weir_op *op; /* NULL = passes items on by itself */
    void *config;
    bool config_owned; /* a copy, to be freed */
    bool config_live;  /* … on which config_init succeeded */
    char *short_name;  /* as in the options */
    char *name;        /* as in the statistics */
    const char *kind;
    uint32_t index;   /* in weir_pipeline.nodes, upstream first */
    weir_queue *in;   /* NULL = a source */
    weir_queue out;   /* the queue behind it */
    weir_pool *pool;  /* NULL if op is NULL */
    uint32_t threads; /* of its own; 0 = the pipeline's */
    weir_order order;
    weir_max_failures max_failures;
    weir_stage_hook *stage_hooks;
    size_t num_stage_hooks;
    weir_task_hook *task_hooks;
    size_t num_task_hooks;
    size_t hook_bytes; /* of all task hooks' states */
    uint32_t num_slots;
    weir_slot **slots;
    weir_slot chore;

    /* guarded by lock */
    node_state state;
    uint32_t num_idle;
    weir_slot *idle;      /* a stack: few workers are ever made where few are needed */
    weir_slot_list ready; /* first in, first out; the chore, too */
    weir_slot_list gated; /* ready, but the stage's start hooks have not ended */
    weir_slot *turn_first,
        *turn_last; /* with WEIR_ORDER_INPUT: slots in the order of their inputs; only the first puts */
    bool exhausted; /* a source that has ended */
    bool cancelled;
    bool keeps_results; /* cancelled, but what its tasks have made goes on */
    size_t stage_hooks_begun;
    int64_t typical_ns; /* moving average of the run time of a step */
    weir_error first_error;

    /* guarded by lock; figures since the last lap */
    int64_t time_ns[SLOT_STATES];
    uint64_t num_tasks, num_failures, num_skipped;
    int64_t success_ns, failed_ns, max_ns, cpu_ns;
    weir_histogram *run_times; /* swapped with a cleared one at each lap */

    /* guarded by lock; totals. in_flight is derived */
    weir_account account;
    uint64_t total_tasks;
    uint64_t total_failures;
};

/* One thread of a pool. */
typedef struct weir_worker {
    weir_pool *pool;
    uv_thread_t thread;
    bool started;

    /* guarded by pipeline->lock: whose CPU time is whose (see cpu_time.c) */
    bool clock_known;
    clockid_t cpu_clock;
    int64_t cpu_read_ns; /* the thread's CPU time at the last reading */
    int64_t cpu_read_at_ns;
    weir_slot *running;    /* NULL between tasks */
    int64_t busy_since_ns; /* of `running`, since its start or the last reading */
    int64_t shared_ns;     /* sum of window_ns */
    int64_t *window_ns;    /* for each node: run time since the last reading */
} weir_worker;

struct weir_pool {
    /* immutable after init */
    weir_pipeline *pipeline;
    uint32_t num_workers;
    weir_worker *workers;
    bool work_made;

    /* guarded by pipeline->lock */
    uint64_t *ready_nodes; /* a bit for each node with something to run, the one nearest the sink is bit 0 */
    uint32_t num_words;
    uint32_t sleeping; /* threads that wait for `work` */
    uint32_t waking;   /* of these, already signalled */
    bool spinning;     /* one thread looks at num_ready instead of sleeping */
    int64_t spin_ns;   /* how long it looks: what paid lately */
    bool quit;
    uv_cond_t work; /* num_ready > 0, or quit; with lock */

    /* written with lock, read by the spinning thread without */
    atomic_uint num_ready; /* slots and chores that a thread may pick */
};

struct weir_pipeline {
    /* immutable after init */
    uint32_t id;
    uint32_t num_nodes;
    weir_node **nodes; /* upstream first; the source is 0, the sink the last */
    uint32_t num_pools;
    weir_pool **pools; /* 0 is the pipeline's own */
    bool lock_made, consumable_made, loop_made, timer_made, wake_made;
    const weir_observer *observer;
    bool wants_failures;
    int64_t stats_interval_ns;
    int64_t start_unix_ns;
    weir_queue *sink; /* the sink's */

    uv_mutex_t lock;

    /* guarded by lock */
    int64_t
        now_ns; /* the latest moment anything happened: time never runs backwards from one hand-over to the next */
    int64_t lap_start_ns;
    uint32_t live_nodes; /* not DONE */
    uint64_t next_seq;
    bool stopped;
    bool failed;
    bool over; /* all nodes DONE and the sink queue empty or no longer wanted */
    weir_error error;
    uint32_t consumers_waiting;
    uint32_t consumers_waking; /* of these, already signalled */
    uv_cond_t consumable;      /* the sink queue has an item, or nothing will come; with lock */
    int64_t consumer_spin_ns;
    weir_report *reports, **reports_end;
    uint32_t num_reports;
    weir_slot_list report_waiters; /* slots whose failure report waits for room */
    bool wake_statistics;          /* there is something for the statistics thread */

    /* written with lock, read by a spinning consumer without */
    atomic_uint is_consumable; /* weir_next() need not wait */

    /* the statistics thread's own, but for `wake` */
    uv_thread_t statistics_thread;
    bool statistics_started;
    uv_loop_t loop;
    uv_timer_t lap_timer;
    uv_async_t wake;              /* engine_unlock() sends it when wake_statistics is set */
    node_lap *laps;               /* one for each node */
    weir_stage_info *stage_infos; /* the same */
};

/* ---- lock.c: the pipeline's lock --------------------------------------------------------------------------- */

void engine_lock(weir_pipeline *pipeline);

/* Takes the lock and moves pipeline->now_ns on to now_ns, which was read just before. */
void engine_lock_at(weir_pipeline *pipeline, int64_t now_ns);

void engine_move_time_locked(weir_pipeline *pipeline, int64_t now_ns);

/* Gives the lock back, then wakes whom the changes concern. */
void engine_unlock(weir_pipeline *pipeline);

/* The same for a thread that weir_free() does not wait for: the pipeline may be gone as soon as the lock is free, so it
   wakes first. */
void engine_unlock_last(weir_pipeline *pipeline);

/* Looks at *wanted, without the lock, for up to spin_ns. True = it is not 0. */
bool engine_spin(atomic_uint *wanted, int64_t spin_ns);

/* How long to look the next time, after `found`. */
int64_t engine_spin_adapt(int64_t spin_ns, bool found);

/* ---- flow.c: the hand-over, all with the lock held --------------------------------------------------------- */

void flow_start_locked(weir_pipeline *pipeline);

/* Takes the next thing to run: READY becomes RUNNING. NULL = nothing is ready. */
weir_slot *flow_pick_locked(weir_pool *pool);

/* What was picked has run, and slot->status is the result. */
void flow_step_ended_locked(weir_slot *slot);

/* weir_task_complete() has set pending_status and pending_out. */
void flow_completed_locked(weir_slot *slot);

/* Takes the sink queue's first item; it must have one. waited_ns: how long the consumer has waited for it. */
void flow_deliver_locked(weir_pipeline *pipeline, weir_item *item, int64_t waited_ns);

/* There is room among the reports again. */
void flow_reports_taken_locked(weir_pipeline *pipeline);

/* The run is over when every node has ended and nobody wants what is left. */
void flow_check_over_locked(weir_pipeline *pipeline);

void flow_fail_locked(weir_node *node, const weir_error *error);
void flow_stop_locked(weir_pipeline *pipeline);

/* Takes the next pending task that is to be cancelled and has not been told. NULL = none. */
weir_slot *flow_take_uncancelled_locked(weir_pipeline *pipeline);

/* Takes one item that is left in a queue after the run is over. False = none is left. */
bool flow_take_leftover_locked(weir_pipeline *pipeline, weir_item *item);

/* Adds the time since the last change to the figures of all slots and queues. */
void flow_settle_locked(weir_pipeline *pipeline);

/* ---- run.c: one step of a task, without the lock ----------------------------------------------------------- */

/* Runs one step of what was picked (a task, or the stage hooks), or gives it up; sets slot->status. */
void run_step(weir_slot *slot);

/* ---- pool.c ------------------------------------------------------------------------------------------------- */

int pool_new(weir_pipeline *pipeline, uint32_t num_workers, weir_pool **pool, weir_error *error);
int pool_start(weir_pool *pool, weir_error *error);
void pool_join(weir_pool *pool);
void pool_free(weir_pool *pool);

/* ---- cpu_time.c: all with the lock held --------------------------------------------------------------------- */

void cpu_time_task_starts_locked(weir_worker *worker, weir_slot *slot);
void cpu_time_task_ended_locked(weir_worker *worker);
void cpu_time_idle_locked(weir_worker *worker);
void cpu_time_settle_locked(weir_pool *pool);

/* ---- statistics.c ------------------------------------------------------------------------------------------- */

int statistics_init(weir_pipeline *pipeline, weir_error *error);
int statistics_start(weir_pipeline *pipeline, weir_error *error);
void statistics_join(weir_pipeline *pipeline);

/* Also after statistics_init() failed; the thread is joined. */
void statistics_destroy(weir_pipeline *pipeline);

/* NULL = out of memory. */
weir_report *report_failure(const weir_slot *slot);
weir_report *report_event(const char *name, const char *category, const char *detail);
void report_append_locked(weir_pipeline *pipeline, weir_report *report);

enum { MAX_REPORTS = 1024 /* failures that may wait to be told before slots wait */ };

/* ---- item.c ------------------------------------------------------------------------------------------------- */

/* `out` was made of `in`: gives it the same seq and, unless it brought one of its own, the same label.
   False = out of memory; `out` then has no label. */
bool label_inherit(weir_item *out, weir_item *in);

#endif
