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
 * their slot is only ever SLOT_IDLE or SLOT_HOLDING. A slot that its node does not need any more, after its concurrency
 * was lowered, is SLOT_RETIRED.
 *
 * The end of an epoch travels through the queues like an item, and no item crosses it: a node that finds it at the head
 * of all its inputs waits until all its slots are idle, lets its operation flush what it has kept, puts the end of the
 * epoch into every queue behind it, by means of its chore, and only then takes the next input. The end of the stream is
 * the same but for what follows it.
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

/* In the order of the figures; RUNNING and PENDING are both "busy". */
typedef enum slot_state {
    SLOT_IDLE,
    SLOT_READY,
    SLOT_RUNNING,
    SLOT_PENDING,
    SLOT_HOLDING,
    SLOT_RETIRED, /* its time is in no figure */
    SLOT_STATES,
} slot_state;

/* By how long the node's steps usually take: less than BRISK_NS, less than SOON_NS, or more. */
typedef enum slot_pace { PACE_BRISK, PACE_SOON, PACE_SLOW } slot_pace;

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

typedef struct weir_queue_entry {
    weir_item item;
    uint64_t arrival; /* in the order of all puts of the pipeline */
} weir_queue_entry;

typedef struct weir_queue {
    /* immutable after init */
    char *name;
    uint32_t capacity;
    uint64_t capacity_bytes; /* UINT64_MAX = unlimited */
    weir_node *producer;
    weir_node *consumer; /* NULL for the sink queue, from which weir_pipeline_next() takes */

    /* guarded by lock */
    weir_queue_entry *entries; /* ring of `capacity` */
    uint32_t head;
    uint32_t depth;
    uint32_t num_epoch_ends; /* of these, ends of epochs: they take room, but are no items in the figures */
    uint64_t bytes;
    weir_slot_list holders; /* slots of the node before, whose result waits for room; in the order they came */
    bool closed;            /* nothing will be put any more */

    /* guarded by lock; figures since the last lap, but for the totals */
    int64_t level_since_ns; /* depth and bytes are in the sums below up to here */
    weir_queue_metrics lap;
    uint64_t total_put, total_got, total_dropped;
    weir_histogram *put_times, *get_times; /* swapped with a cleared pair at each lap */
} weir_queue;

enum { MAX_PHASE = 64 };

/* Where the consumer is in its job. */
typedef struct weir_place {
    char phase[MAX_PHASE];
    bool phase_named;  /* by weir_pipeline_mark_phase() */
    bool steps_marked; /* ever */
    int64_t first_step, last_step;
} weir_place;

struct weir_task {
    /* immutable after init */
    weir_node *node;
    void *worker;      /* op->worker_size bytes */
    char *hook_states; /* node->hook_bytes bytes, zeroed for each task */
    bool chore;        /* not a slot but its node's chore: runs the stage hooks, puts the ends of epochs */

    /* guarded by lock */
    slot_state state;
    int64_t entered_ns; /* when it came into this state */
    int64_t since_ns;   /* the same, or when the lap began: time_ns of the node holds all before it */
    weir_slot *next;    /* in the one list it is in */
    weir_slot *turn_before, *turn_after; /* with WEIR_ORDER_INPUT: in the order of its node's inputs */
    int64_t start_ns;                    /* when its task first ran */
    int64_t run_ns;                      /* what the task has run so far, the present step not included */
    struct weir_label *label;            /* of the input, for who looks in; NULL = none */
    bool has_turn;                       /* it is in that order */
    int64_t warn_after_ns;               /* of run time: when its task is next called stalled */
    bool has_seq;                        /* a source's: in.seq is the number of the next item */
    bool has_in;                         /* holds an input whose task has not ended */
    bool has_out;                        /* holds a result that has not been put */
    bool more;                           /* that result is not the last one of its input */
    bool needs_flush;                    /* its worker has seen an input since the last flush */
    bool flushing;                       /* its step is a flush, not a task */
    uint64_t num_kept;                   /* inputs its worker has kept for a later result */
    slot_pace pace;                      /* how long its step is expected to take */
    bool reporting;                      /* HOLDING not a result but the report of a failure */
    bool run_returned;                   /* run() has returned WEIR_PENDING */
    bool completed;                      /* weir_task_complete() was called */
    bool cancel_called;                  /* op->cancel was */
    bool cancelling;                     /* … and has not returned: the task cannot end before it has */
    int pending_status;                  /* what it was called with */
    weir_item pending_out;

    /* whoever runs the task, from RUNNING until its step has ended */
    weir_item in, out;
    uint32_t out_index; /* which of the node's queues the result goes to */
    int status;         /* result of the step */
    bool begun;         /* the task has run, and has not ended */
    bool finishing;     /* the step takes the result of weir_task_complete() */
    bool given_up;      /* the step is not to run the operation, but to end the task */
    bool worker_live;   /* worker_init succeeded */
    uint64_t kept_seq;  /* of the last input its worker has kept: what a flush makes has it, too */
    uint32_t hooks_begun;
    uint32_t num_pieces; /* that the task has made so far (WEIR_MORE) */
    weir_error error;    /* why the task fails; status 0 = nobody said so far */
    weir_report *report; /* of the task's failure; NULL = none */

    /* any thread */
    atomic_bool should_stop;
    atomic_bool overdue; /* ran longer than its deadline; written with lock */
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
    uint32_t index;    /* in weir_pipeline.nodes, upstream first */
    weir_queue **ins;  /* of the nodes before */
    uint32_t num_ins;  /* 0 = a source; above 1 only where op is NULL */
    weir_queue *outs;  /* behind it; its own */
    uint32_t num_outs; /* above 1 only for a route */
    char *makes;       /* the types of the items that go out, as in weir_op.makes */
    bool checks_types; /* not all that comes in is what op takes */
    weir_pool *pool;   /* NULL if op is NULL */
    uint32_t threads;  /* of its own; 0 = the pipeline's */
    weir_order order;
    weir_max_failures max_failures;
    weir_stage_hook *stage_hooks;
    size_t num_stage_hooks;
    weir_task_hook *task_hooks;
    size_t num_task_hooks;
    size_t hook_bytes;        /* of all task hooks' states */
    uint32_t concurrency;     /* as built */
    uint32_t epochs;          /* a source: how often it runs; 0 = once, and no end of epoch is told */
    int64_t task_deadline_ns; /* 0 = none */
    weir_merge_order merge_order;
    uint32_t *weights; /* of the inputs; NULL = all 1 */
    weir_slot chore;

    /* guarded by lock */
    node_state state;
    weir_slot **slots;
    uint32_t num_made;   /* in `slots` */
    uint32_t num_slots;  /* of these, not retired */
    uint32_t num_wanted; /* what num_slots is on its way to */
    uint32_t num_idle;
    weir_slot *idle;       /* a stack: few workers are ever made where few are needed */
    weir_slot_list ready;  /* first in, first out; the chore, too */
    weir_slot_list gated;  /* ready, but the stage's start hooks have not ended */
    weir_slot *turn_first; /* with WEIR_ORDER_INPUT: slots in the order of their inputs; only the first puts */
    weir_slot *turn_last;
    weir_queue *due_in;      /* of a merge in turns: the input whose turn it is; NULL = not chosen yet */
    int64_t *credits;        /* …: of each input, see merge.c */
    bool exhausted;          /* a source that has ended */
    uint32_t epochs_ended;   /* a source's */
    bool passing_epoch;      /* the chore puts the end of an epoch */
    bool passing_items;      /* flow.c is passing on what a node without an operation may take */
    bool moving_turns;       /* flow.c is letting one slot after the other have its turn */
    bool passing_boundaries; /* flow.c is passing on one end of an epoch after the other */
    bool cancelled;
    bool keeps_results; /* cancelled, but what its tasks have made goes on */
    size_t stage_hooks_begun;
    int64_t typical_ns; /* moving average of the run time of a step; one step at most doubles it */
    weir_error first_error;

    /* guarded by lock; figures since the last lap */
    int64_t time_ns[SLOT_STATES];
    weir_task_metrics lap;
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
    weir_slot *running;     /* NULL between tasks */
    int64_t busy_since_ns;  /* of `running`, since its start or the last reading */
    int64_t shared_ns;      /* sum of window_ns */
    int64_t *window_ns;     /* for each node: run time since the last reading */
    uint32_t *window_nodes; /* the indices of those where it is not 0 */
    uint32_t num_window_nodes;
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
    uint32_t sleeping;       /* threads that wait for `work` */
    uint32_t waking;         /* of these, already signalled */
    bool spinning;           /* one thread looks at `invites` instead of sleeping */
    int64_t spin_ns;         /* how long it looks: what paid lately */
    uint32_t num_brisk;      /* threads at a brisk step: they will look again at once */
    uint32_t num_soon;       /* threads at a step that is brisk or not much longer */
    uint32_t num_ready_slow; /* of num_ready, what is not brisk */
    int64_t picked_ns;       /* when something was last picked */
    bool quit;
    uv_cond_t work; /* invites, or quit; with lock */

    uint32_t num_ready; /* slots and chores that a thread may pick */

    /* written with lock, read by the spinning thread without */
    atomic_uint invites; /* something is ready that is not left to a brisk thread */
};

struct weir_pipeline {
    /* immutable after init */
    uint32_t id;
    uint32_t num_nodes;
    weir_node **nodes; /* upstream first; the source is 0, the sink the last */
    uint32_t num_pools;
    weir_pool **pools; /* 0 is the pipeline's own */
    bool lock_made, consumable_made, loop_made, timer_made, wake_made;
    weir_observer *observers;
    size_t num_observers;
    bool wants_failures;
    int64_t stats_interval_ns;
    uint32_t num_cpus;
    bool measures;
    int64_t stall_warning_ns; /* WEIR_FOREVER = none */
    int64_t start_unix_ns;
    weir_queue *sink; /* the sink's */
    uint32_t num_queues;

    uv_mutex_t lock;

    /* guarded by lock */
    int64_t now_ns; /* of the latest hand-over: from one to the next time never runs backwards */
    int64_t lap_start_ns;
    uint32_t num_awake;  /* threads of the pools that do not sleep */
    uint32_t live_nodes; /* not DONE */
    uint32_t live_sources;
    uint64_t next_seq;
    uint64_t next_arrival;
    bool stopped;
    bool failed;
    bool over; /* all nodes DONE and the sink queue empty or no longer wanted */
    weir_error error;
    uint32_t consumers_waiting;
    uint32_t consumers_waking; /* of these, already signalled */
    uv_cond_t consumable;      /* the sink queue has an item, or nothing will come; with lock */
    int64_t consumer_spin_ns;
    int64_t consumable_ns; /* when the sink queue last became not empty */
    weir_report *reports, **reports_end;
    uint32_t num_reports;
    weir_slot_list report_waiters; /* slots whose failure report waits for room */
    weir_place place, next_place;  /* of the present lap, and of the one that begins when it is cut */
    bool cut_lap;                  /* the place changes: the statistics thread is to end the lap now */
    bool wants_backstop;  /* something brisk is ready and left to a brisk thread, while others idle: see lock.c */
    bool wake_statistics; /* there is something for the statistics thread */

    /* written with lock, read by a spinning consumer without */
    atomic_uint is_consumable; /* weir_pipeline_next() need not wait */

    /* guarded by lock; the descriptor for event loops, see poll_fd.c */
    bool polls;      /* somebody asked for it */
    bool poll_dirty; /* is_consumable has changed, and the descriptor is to follow */

    uv_mutex_t poll_lock; /* never taken with lock held */
    bool poll_lock_made;
    /* guarded by poll_lock */
    int poll_fd; /* -1 = not made */
    bool poll_raised;

    /* any thread and signal handlers, see signals.c */
    atomic_bool stop_wanted;
    atomic_int stop_signal;                  /* that asked for the stop; 0 = none */
    _Atomic(weir_pipeline *) next_on_signal; /* written with the lock of signals.c, as on_signals */
    bool on_signals;

    /* the statistics thread's own, but for `wake` */
    uv_thread_t statistics_thread;
    bool statistics_started;
    uv_loop_t loop;
    uv_timer_t lap_timer;
    uv_timer_t watch_timer;
    uv_timer_t backstop_timer;
    uv_async_t wake;        /* weir_engine_unlock() sends it when wake_statistics is set */
    int64_t unix_offset_ns; /* from the monotonic clock to that of the wall */
    weir_place lap_place;   /* of the lap that is being told */
    weir_lap lap;
    struct stage_lap *stage_laps; /* one for each node */
    struct queue_lap *queue_laps; /* one for each queue */
    weir_stage_info *stage_infos; /* one for each node */
};

/* ---- lock.c: the pipeline's lock --------------------------------------------------------------------------- */

#define BRISK_NS    (2 * WEIR_MICROSECOND)   /* a step that takes less is not worth waking a thread for */
#define SOON_NS     (20 * WEIR_MICROSECOND)  /* the end of a step that takes less may be waited for */
#define LINGER_NS   (100 * WEIR_MICROSECOND) /* how long a result may lie there before a sleeping consumer is woken */
#define BACKSTOP_NS (1 * WEIR_MILLISECOND)

void weir_engine_lock(weir_pipeline *pipeline);

/* Takes the lock and moves pipeline->now_ns on to now_ns, which was read just before. */
void weir_engine_lock_at(weir_pipeline *pipeline, int64_t now_ns);

/* What has been left to brisk threads for BACKSTOP_NS goes to sleeping ones. True = look again. */
bool weir_engine_backstop_locked(weir_pipeline *pipeline);

void weir_engine_move_time_locked(weir_pipeline *pipeline, int64_t now_ns);

/* Gives the lock back, then wakes whom the changes concern. */
void weir_engine_unlock(weir_pipeline *pipeline);

/* Wakes whom the changes concern: before the lock is given back otherwise than by weir_engine_unlock(), as by waiting. */
void weir_engine_wake_locked(weir_pipeline *pipeline);

/* The same as weir_engine_unlock() for a thread that weir_pipeline_free() does not wait for: the pipeline may be gone as soon as the lock is free, so it
   wakes first. */
void weir_engine_unlock_last(weir_pipeline *pipeline);

/* Looks at *wanted, without the lock, for up to spin_ns. True = it is not 0. */
bool weir_engine_spin(atomic_uint *wanted, int64_t spin_ns);

/* Is there a CPU left for a thread that only looks? Its own counts as taken; `consumer`: so does the consumer's. */
bool weir_engine_may_spin_locked(const weir_pipeline *pipeline, bool consumer);

/* How long to look the next time, after a wait of waited_ns in all, the sleep included. */
int64_t weir_engine_spin_adapt(int64_t spin_ns, int64_t waited_ns);

/* Whether weir_pipeline_next() need not wait. */
static inline void set_consumable_locked(weir_pipeline *pipeline, bool is_consumable)
{
    if (atomic_load_explicit(&pipeline->is_consumable, memory_order_relaxed) == is_consumable)
        return;
    atomic_store_explicit(&pipeline->is_consumable, is_consumable, memory_order_relaxed);
    pipeline->poll_dirty = pipeline->polls;
}

/* ---- poll_fd.c: the descriptor for event loops --------------------------------------------------------------- */

/* A libuv status. */
int weir_poll_fd_init(weir_pipeline *pipeline);
void weir_poll_fd_destroy(weir_pipeline *pipeline);

/* After poll_dirty was found set, without the lock. */
void weir_poll_fd_apply(weir_pipeline *pipeline);

/* ---- signals.c ----------------------------------------------------------------------------------------------- */

/* No handler touches the pipeline any more. */
void weir_signals_forget(weir_pipeline *pipeline);

/* ---- slots.c: states of slots, and what threads may pick; all with the lock held ---------------------------- */

void weir_list_append(weir_slot_list *list, weir_slot *slot);
weir_slot *weir_list_take_first(weir_slot_list *list);

void weir_slot_enter_locked(weir_slot *slot, slot_state state);
void weir_slot_enter_idle_locked(weir_slot *slot);
weir_slot *weir_slot_take_idle_locked(weir_node *node);

/* SLOT_READY: a thread of the node's pool may pick it, as soon as the stage's start hooks have run. */
void weir_slot_make_ready_locked(weir_slot *slot);

/* Lets the slots that have waited for the start hooks run. */
void weir_slots_open_gate_locked(weir_node *node);

/* Takes the next thing to run: READY becomes RUNNING. NULL = nothing is ready. */
weir_slot *weir_slot_pick_locked(weir_pool *pool);

/* ---- flow.c: the hand-over, with the lock held ---------------------------------------------------------------- */

/* Before there are threads: from now on time counts. */
void weir_flow_prepare(weir_pipeline *pipeline, int64_t now_ns);

void weir_flow_start_locked(weir_pipeline *pipeline);

/* The slot's result goes on, now or as soon as there is room and it is its turn. */
void weir_flow_offer_locked(weir_slot *slot);

/* The slot has nothing to do any more: it takes its next input, or waits for it. */
void weir_flow_next_input_locked(weir_slot *slot);

/* If nothing is left inside the node and it has come to the end of an epoch or of everything, it goes on to that. */
void weir_flow_check_boundary_locked(weir_node *node);

/* The node's idle slots take what they may. */
void weir_flow_resume_locked(weir_node *node);

/* The stage hooks have run. */
void weir_flow_chore_ended_locked(weir_node *node);

/* Takes the head of the sink queue, which must not be empty: WEIR_OK and an item, or WEIR_EPOCH. waited_ns: how long the
   consumer has waited for it. */
int weir_flow_deliver_locked(weir_pipeline *pipeline, weir_item *item, int64_t waited_ns);

/* The run is over when every node has ended and nobody wants what is left. */
void weir_flow_check_over_locked(weir_pipeline *pipeline);

/* The end of an epoch, as an item: known by its release function. */
void weir_epoch_end_release(void *data, void *self);

static inline weir_item epoch_end(void)
{
    return (weir_item){ .release = weir_epoch_end_release };
}

static inline bool is_epoch_end(const weir_item *item)
{
    return item->release == weir_epoch_end_release;
}

/* ---- merge.c: which input is next, with the lock held -------------------------------------------------------- */

/* Which input the node may take an item from now. NULL = none. */
weir_queue *weir_merge_choose_locked(weir_node *node);

/* May an item that is just put into this empty input go straight to an idle slot of the node? */
bool weir_merge_takes_directly_locked(weir_node *node, const weir_queue *in);

/* An item of this input has been taken. */
void weir_merge_taken_locked(weir_node *node);

/* ---- step.c: what the end of a step means, with the lock held ------------------------------------------------ */

/* What was picked has run, and slot->status is the result. */
void weir_step_ended_locked(weir_slot *slot);

/* weir_task_complete() has set pending_status and pending_out. */
void weir_step_completed_locked(weir_slot *slot);

/* There is room among the reports again. */
void weir_step_reports_taken_locked(weir_pipeline *pipeline);

/* ---- ending.c: stop and failure, with the lock held ---------------------------------------------------------- */

void weir_end_by_failure_locked(weir_node *node, const weir_error *error);
void weir_end_by_stop_locked(weir_pipeline *pipeline);

/* How far a search through all slots has come; all-zero = not begun. */
typedef struct slot_search {
    uint32_t node, slot;
} slot_search;

/* Takes the next pending task that is to be cancelled and has not been told. NULL = none up to the end. What becomes
   pending behind the search wakes the statistics thread once more. */
weir_slot *weir_end_take_uncancelled_locked(weir_pipeline *pipeline, slot_search *search);

/* op->cancel has returned. */
void weir_end_cancel_called_locked(weir_slot *slot);

/* Takes one item that is left after the run is over. False = none is. */
bool weir_end_take_leftover_locked(weir_pipeline *pipeline, weir_item *item);

/* ---- run.c: one step of a task, without the lock ----------------------------------------------------------- */

/* Runs one step of what was picked (a task, a flush, the stage hooks), or gives it up; sets slot->status. */
void weir_run_step(weir_slot *slot);

/* ---- pool.c ------------------------------------------------------------------------------------------------- */

int weir_pool_new(weir_pipeline *pipeline, uint32_t num_workers, weir_pool **pool, weir_error *error);
int weir_pool_start(weir_pool *pool, weir_error *error);
void weir_pool_join(weir_pool *pool);
void weir_pool_free(weir_pool *pool);

/* ---- cpu_time.c: all with the lock held --------------------------------------------------------------------- */

void weir_cpu_time_task_starts_locked(weir_worker *worker, weir_slot *slot);
void weir_cpu_time_task_ended_locked(weir_worker *worker);
void weir_cpu_time_idle_locked(weir_worker *worker);
void weir_cpu_time_settle_locked(weir_pool *pool);

/* ---- statistics.c ------------------------------------------------------------------------------------------- */

int weir_statistics_init(weir_pipeline *pipeline, weir_error *error);
int weir_statistics_start(weir_pipeline *pipeline, weir_error *error);
void weir_statistics_join(weir_pipeline *pipeline);

/* Also after weir_statistics_init() failed; the thread is joined. */
void weir_statistics_destroy(weir_pipeline *pipeline);

/* What the clock of the wall shows when the monotonic one shows at_ns. The statistics thread, or before there is one. */
int64_t weir_statistics_unix_at_ns(weir_pipeline *pipeline, int64_t at_ns);

/* NULL = out of memory. */
weir_report *weir_report_failure(const weir_slot *slot);
weir_report *weir_report_event(const char *name, const char *category, const char *detail);
void weir_report_append_locked(weir_pipeline *pipeline, weir_report *report);

enum { MAX_REPORTS = 1024 /* failures that may wait to be told before slots wait */ };

/* Has the statistics thread look at stop_wanted. Async-signal-safe. */
void weir_service_wake_from_signal(weir_pipeline *pipeline);

/* ---- place.c: where the consumer is, with the lock held ------------------------------------------------------ */

void weir_place_init(weir_place *place);

/* The sources have ended. */
void weir_place_sources_ended_locked(weir_pipeline *pipeline);

/* The lap ends: *ended is its place. */
void weir_place_lap_ended_locked(weir_pipeline *pipeline, weir_place *ended);

/* ---- watch.c ------------------------------------------------------------------------------------------------ */

/* Looks at the tasks that run. True = pending tasks are to be cancelled. *next_ns: when to look again. */
bool weir_watch_tasks(weir_pipeline *pipeline, int64_t *next_ns);

/* ---- pipeline.c --------------------------------------------------------------------------------------------- */

/* Whose pool or statistics this thread belongs to. NULL = nobody's. */
extern _Thread_local const weir_pipeline *weir_pipeline_of_thread;

/* By its name in the statistics or in its options. NULL = there is none. */
weir_node *weir_pipeline_find(const weir_pipeline *pipeline, const char *stage);

/* ---- types.c: types of items ------------------------------------------------------------------------------------ */

typedef enum weir_type_match {
    WEIR_TYPES_FIT,
    WEIR_TYPES_MAY_FIT, /* some do, or some are known only when the item comes */
    WEIR_TYPES_DIFFER,
} weir_type_match;

/* Is `type` (may be NULL) one of them? */
bool weir_types_hold(const char *types, const char *type);

/* Do they name exactly one? NULL does not. */
bool weir_types_is_one(const char *types);

weir_type_match weir_types_match(const char *takes, const char *makes);

/* All of both, to be freed. NULL = out of memory. */
char *weir_types_unite(const char *one, const char *other);

/* ---- item.c ------------------------------------------------------------------------------------------------- */

/* `out` was made of `in`: gives it the same seq and, unless it brought one of its own, the same label.
   False = out of memory; `out` then has no label. */
bool weir_label_inherit(weir_item *out, const weir_item *in);

/* Gives the item a copy of the text as its label. False = out of memory; the item is as it was. */
bool weir_label_set(weir_item *item, const char *text);

/* One more, or one less, who holds the label. NULL is fine. */
struct weir_label *weir_label_hold(struct weir_label *label);
void weir_label_release(struct weir_label *label);
const char *weir_label_text(const struct weir_label *label); /* "" for NULL */

#endif
