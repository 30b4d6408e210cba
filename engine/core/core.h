/*
 * The scheduler core: the rules by which items move through a graph of nodes. It is a state machine. A function gets
 * an event (a step has ended, the consumer takes an item, stop, …) and changes the state. The new state also says
 * what is to be done.
 *
 * It knows no thread, lock, clock, file, log, allocation, libuv or FFmpeg; nothing here may include a header of another
 * room, except public ones. Three drivers use it: threads (engine/run, under the lock of the pipeline), virtual time
 * (stats/advice/model/simulator.c) and random schedules (tests/core_driver.c). A driver makes the structs below, embeds
 * them as the first member of its own, and guarantees that one event ends before the next begins.
 *
 * A pipeline is a graph of nodes (sources, stages, routes, merges, the sink), each with its output queues. The tasks of
 * a node run in its slots; a slot is a state machine, not a thread:
 *
 *     state         event                                       next state
 *     SLOT_IDLE     an input came                               READY
 *     SLOT_READY    a thread took it (weir__core_pool_pick())        RUNNING
 *     SLOT_RUNNING  the step ended: WEIR_OK or WEIR_MORE        passes its result on (below)
 *                   WEIR_EPOCH                                  passes on the end of the epoch in the same way
 *                   WEIR_PENDING                                PENDING
 *                   WEIR_SKIP, WEIR_KEPT, WEIR_EOF, a failure   takes its next input (below)
 *     SLOT_PENDING  the task was completed                      READY; its next step brings the result
 *     SLOT_TURN     results of earlier inputs were put          passes its result on
 *     SLOT_BLOCKED  the next queue got room                     passes its result on
 *
 * "Passes its result on" means one of three. With WEIR_ORDER_INPUT, while results of earlier inputs are missing, the
 * slot is TURN. While the next queue has no room, it is BLOCKED. Else the result is put, and the slot is READY after
 * WEIR_MORE, or takes its next input. "Takes its next input" means: it is READY if there is one, or if the node is a
 * source that has not ended. Else it is IDLE. It is RETIRED if its node has more slots than wanted.
 *
 * A source may promise that each of its items becomes a result. Then the driver says what becomes of the place of an
 * input whose task has failed (slot->place). WEIR__PLACE_FILLED: it has put another input into the slot, and RUNNING
 * becomes READY, as with WEIR_MORE. The failure counts as any other, and the other input as one that the node has
 * created. The slot keeps its turn, the number of the input and its place in checkpoints. WEIR__PLACE_LOST: there is
 * no other input, and the graph fails.
 *
 * Nodes without tasks (merges, the sink) need no thread: they pass their items on within the event that brings them.
 * Between events their slot is SLOT_IDLE or SLOT_BLOCKED.
 *
 * Words: a route has several output queues and its operation chooses one for each result; its branches may end in a
 * join, a merge that can restore the order. A worker is the state that an operation keeps in a slot. A chunk is one of
 * several results of one input (WEIR_MORE). A lap is an interval of the statistics. An item's number in its source is
 * seq; its position in the order that a join restores is order_number.
 *
 * A route looks ahead: a result whose branch has no room is set aside, so that its slot takes the next input, whose branch
 * may have room. Items that are set aside belong to the route, not to the queue: no level counts them, and they are put, in
 * their order, as soon as the queue has room. They stand in the ring of the queue behind its last item, so they need not
 * be moved. A route sets aside look_ahead items at most, for all branches together. For one branch it does so only
 * while its queue and these items are within capacity_bytes. Else the slot is BLOCKED, and so is what comes behind it
 * in the same branch:
 *
 *     result      its branch                                        becomes
 *     an item     has room, and nothing waits for it                put
 *                 has none; no slot is BLOCKED for it; the route    set aside; put when what was set aside before it
 *                 may set one more aside                            for the branch is put and the queue has room
 *                 else                                              BLOCKED, until it may be put or set aside
 *     an epoch's  has room, and nothing waits for it                put
 *     end         else                                              BLOCKED: never set aside, and no input is taken
 *                                                                   before it is put into all queues
 *
 * A route ends, and closes its queues, when nothing is set aside any more. What a cancelled route that does not keep its
 * results has set aside stays where it is until the run is over (weir__leftover_take()). Where a join restores the order,
 * routes do not look ahead: the join would wait for the item that was set aside.
 *
 * The end of an epoch moves through the queues like an item, and no item crosses it. A node that finds it at the head
 * of all its inputs waits until all its slots are idle. Then it lets its operation flush the items that it has kept.
 * Its lifecycle slot puts the end of the epoch into every output queue. Only then does the node take the next input.
 * The end of the stream is handled in the same way, but nothing follows it.
 *
 * A node lives NODE_NEW -> NODE_STARTING -> NODE_OPEN -> NODE_ENDING -> NODE_DONE. STARTING and ENDING run the stage
 * hooks, in the lifecycle slot, which a thread picks like any other slot. A node can get no more input when its
 * inputs are closed and empty, or it is cancelled. When all its slots are then idle, it is DONE, and its output queue
 * is closed. The run is over when all nodes are DONE and the sink queue is empty or no longer wanted.
 *
 * Stop cancels every node. A failure cancels the failing node, all nodes upstream of it, and the sources of other
 * chains. A cancelled node starts no task, and the cancel functions of its PENDING tasks are to be called. The failing
 * node and the other sources keep their results, which are still passed on. In the other nodes, slots that are TURN or
 * BLOCKED become READY once more, and the thread that picks them releases the items (slot->abandoned).
 *
 * Who runs next: each core pool (the threads of a pool, as the core sees them) runs the ready slot nearest the sink.
 * The distance is the number of nodes on the longest way. Nodes of equal distance take turns, one step each: when a
 * slot is picked, its node goes behind the others. After a burst it skips as many turns as the burst had steps beyond
 * the first. A node that is ready alone runs at once. The slots of a node run in the order in which they became
 * ready. So parallel chains of equal cost advance equally.
 *
 * Short steps may run in bursts. While a step of a node's only slot runs, the driver may run the steps of the next
 * inputs, too. weir__slot_plan_ahead() plans these steps, and the driver tells the core later that they have passed.
 * The slot must be the only one: the planned inputs stay at the head of their queue, where another slot would take
 * them. The steps count as if each had ended with an event of its own, at the time when it ended. The core's state is
 * that of the last step that the driver has told. Before the driver adds slots to the node or begins to record, it
 * tells all steps that have passed. It gives up the rest of the plan.
 *
 * In the same way the consumer may take items without an event for each: as many as weir__graph_plan_takes() says.
 * They stay in the sink queue until the driver tells that they were taken, and when, so levels and counts are exact.
 * The last item of the queue is never taken like that: only events make it empty. The driver gives up the rest of the
 * plan on stop, and as soon as weir__graph_awaits_room() is true. A task would otherwise wait for room that is there,
 * but that the core was not told of.
 *
 * Invariants, after every event (tests/core_driver.c checks them):
 *   1. If a queue has an item, its consumer has no idle slot that could take it.
 *   2. If a queue has room, no slot of its producer waits for room, and nothing is set aside for it. If a route may set an
 *      item aside, no slot waits for room with one that nothing BLOCKED is before.
 *   3. A slot is in exactly one list that fits its state, and time_ns of its node includes all its time up to since_ns.
 *   4. For each node, taken + created = passed_on + skipped + failed + dropped + merged + in its slots + set aside.
 *   5. A pool's counts are those of its ready slots, and a rank's bit is set if and only if it has ready nodes.
 *   6. No queue holds more than its capacity; in bytes, at most one item more, with what is set aside for it. No node has
 *      set aside more than its look_ahead, and none that is DONE and kept its results has set aside anything.
 *
 * Time is graph->now_ns: the driver moves it, before an event, and it never runs backwards. Only a step may have ended
 * earlier than the event that says so (slot->end_ns): its slot is RUNNING until then, and from then on in the state
 * that the event brings. So READY contains the time in which a thread that should run the next step had no CPU.
 */
#ifndef ENGINE_CORE_CORE_H
#define ENGINE_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/clock.h>
#include <weir/metrics.h>
#include <weir/pipeline.h>
#include <weir/trace.h>

#include "engine/base/live_histogram.h"

typedef struct weir__graph weir__graph;
typedef struct weir__core_node weir__core_node;
typedef struct weir__queue weir__queue;
typedef struct weir__core_slot weir__core_slot;
typedef struct weir__core_pool weir__core_pool;

/* A step that usually takes less is short: it is not worth waking a thread. */
#define WEIR__SHORT_STEP_NS (2 * WEIR_MICROSECOND)

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

/* The time of a node's slots: in each state, and idle after its end; a recorder gets that as a state. Idle between two epochs is
   counted apart: until its last tasks of an epoch have ended, and then until the first item of the next one is there. */
enum { TIME_ENDED = SLOT_STATES, TIME_EPOCH_TAIL, TIME_EPOCH_GAP, NODE_TIMES };

/* Where a node is: its input has the end of an epoch next, or it has passed that on. */
typedef enum epoch_place { WITHIN_EPOCH, EPOCH_TAIL, EPOCH_GAP } epoch_place;

typedef enum node_state { NODE_NEW, NODE_STARTING, NODE_OPEN, NODE_ENDING, NODE_DONE } node_state;

/* What becomes of the place of an input whose task has failed. */
typedef enum weir__place {
    WEIR__PLACE_EMPTY = 0, /* nothing was promised: the item is lost */
    WEIR__PLACE_FILLED,    /* slot->in is another input */
    WEIR__PLACE_LOST,      /* it was promised, but there is no other input: the graph fails */
} weir__place;

/* Linked through slot.next. */
typedef struct weir__slot_list {
    weir__core_slot *first, *last;
} weir__slot_list;

/* Linked through node.next_ready. */
typedef struct weir__node_list {
    weir__core_node *first, *last;
} weir__node_list;

typedef struct weir__queued_item {
    weir_item item;
    union {
        uint64_t arrival; /* number of this put among all puts of the graph */
        int64_t since_ns; /* while it is set aside: when it began to wait for room */
    };
} weir__queued_item;

struct weir__queue {
    /* immutable after init */
    char *name;     /* the driver's; not read here */
    uint32_t index; /* among all queues of the graph; not read here */
    uint32_t capacity;
    uint64_t capacity_bytes; /* UINT64_MAX = unlimited; may be exceeded by one item */
    weir__core_node *producer;
    weir__core_node *consumer; /* NULL for the sink queue, from which the consumer takes */

    /* Ring of num_entries: the items of the queue, then those that are set aside for it. */
    weir__queued_item *entries;
    uint32_t num_entries; /* capacity + look_ahead of the producer */
    uint32_t head;
    uint32_t depth;
    uint32_t num_aside;
    uint32_t num_epoch_ends; /* entries that are ends of epochs: they take room, but no metric counts them */
    uint64_t bytes;
    uint64_t aside_bytes;
    weir__slot_list blocked; /* slots of the producer whose result waits for room, in order of arrival */
    bool closed;             /* no more items will be put */
    uint64_t total_put, total_got, total_dropped;

    /* since the driver last cleared them */
    int64_t level_since_ns; /* depth and bytes are counted in the metrics up to this time */
    weir_queue_metrics lap;
    weir_live_histogram *put_times, *get_times; /* NULL = not recorded */
    weir_live_histogram *latencies;             /* of the sink; NULL = not measured */
};

struct weir__core_slot {
    /* immutable after init */
    weir__core_node *node;
    bool is_lifecycle; /* the node's lifecycle slot: runs the stage hooks, puts the ends of epochs */

    /* changed by events only */
    bool has_turn;      /* it is in the list of turns */
    bool has_in;        /* holds an input whose task has not ended */
    bool has_out;       /* holds a result that has not been put */
    bool more;          /* more results of the same input will follow */
    bool needs_flush;   /* its worker got an input since the last flush */
    bool flushing;      /* its step is a flush, not a task */
    bool is_short_step; /* READY or RUNNING: its step is expected to take less than WEIR__SHORT_STEP_NS */
    bool begun;         /* a step of the task has begun, and the task has not ended */
    bool run_returned;  /* the step has ended with WEIR_PENDING */
    bool completed;     /* weir__task_completed() was called for this task */
    bool overdue;       /* weir__task_overdue() was called for this task */
    bool cancel_queued; /* in graph->to_cancel */
    bool cancel_called; /* its cancel function was called, or is being called */
    bool cancelling;    /* its cancel function has not returned: the task cannot end before */
    slot_state state;
    int64_t entered_ns;                        /* when it entered this state; after RUNNING, when the step ended */
    int64_t since_ns;                          /* the same, or the start of the lap */
    weir__core_slot *next;                     /* the next slot in its list */
    weir__core_slot *turn_before, *turn_after; /* with WEIR_ORDER_INPUT: in the order of its node's inputs */
    weir__core_slot *next_to_cancel;
    int64_t run_ns;        /* run time of the task, without the current step */
    uint64_t order_number; /* of the input */
    uint64_t trace_item;   /* the input, or the item to be made, as in weir_trace_record */
    uint64_t num_kept;     /* inputs its worker has kept for a later result */
    uint64_t num_replaced; /* inputs that were in the place of this one, and have failed */
    int64_t kept_ns;       /* made_ns of the oldest of them */
    weir_item last_in;     /* seq, source, epoch and made_ns of its last input; results of a flush get them */

    /* what kind of step weir__core_pool_pick() has begun */
    bool starts_task; /* the first step of its task */
    bool finishing;   /* the step takes the result of a pending task, which was completed */
    bool abandoned;   /* the step must not run the operation, only release what the slot holds */

    /* owned by the driver from weir__core_pool_pick() to weir__step_ended(), which reads what the driver has set */
    bool worker_live;    /* it has something to flush */
    bool passed_over;    /* WEIR_MORE, but the result was done in an earlier run */
    int status;          /* result of the step */
    weir__place place;   /* if it has failed */
    uint32_t out_index;  /* index of the output queue for the result */
    uint32_t num_chunks; /* results made from this input so far */
    int64_t begin_ns;    /* when the step began: the slot is busy from then on */
    int64_t end_ns;      /* when the step ended: at or before graph->now_ns */
    int64_t step_run_ns; /* from the operation's first instruction to its return */
    weir_item in, out;
};

/* Steps that may pass: they end with WEIR_OK, and are followed at once by the step of the slot's next input. */
typedef struct weir__plan {
    uint32_t num_steps; /* from the one that was picked; 0 = none */
    uint32_t first_in;  /* where the input of the step after the first one is in the input queue; not of a source */
    uint32_t first_out; /* where the driver puts the result of the first one in the output queue */
} weir__plan;

typedef struct weir__passed_step {
    int64_t begin_ns, end_ns;
    int64_t run_ns;
} weir__passed_step;

struct weir__core_node {
    /* immutable after init */
    weir__graph *graph;
    uint32_t index;        /* in graph->nodes, upstream first */
    uint32_t source_index; /* of a source: which one */
    uint32_t rank;         /* nodes on the longest way to the sink; weir__graph_prepare() sets it */
    bool has_tasks;        /* false: passes items on without an operation */
    bool has_flush;
    bool has_cancel;
    bool has_stage_hooks;
    /* The driver sets it if its steps may run in bursts; weir__graph_prepare() clears it where the order, a flush,
       a limit in bytes or a rate of failures forbid that. */
    bool may_run_ahead;
    weir__queue **ins; /* output queues of the upstream nodes */
    uint32_t num_ins;  /* 0 = a source; above 1 only without tasks */
    weir__queue *outs; /* output queues */
    uint32_t num_outs; /* above 1 only for a route */
    /* for a route: the number of items that it may set aside; weir__graph_prepare() clears it where that is not
       useful. */
    uint32_t look_ahead;
    weir__core_pool *pool; /* NULL without tasks */
    weir_order order;
    weir_max_failures max_failures;
    uint32_t epochs; /* sources: number of epochs; 0 = one run, without ends of epochs */
    weir_merge_order merge_order;
    weir_merge_end merge_end;
    uint64_t merge_seed;
    weir__core_node *route; /* of a join: the route where its branches begin */
    weir__core_node
        *ordered_join;   /* the node is between a route and this join, which restores the order; NULL = not */
    bool numbers_inputs; /* it is the outermost route before such a join */
    uint32_t *weights;   /* of the inputs; NULL = all 1 */
    weir__core_slot *lifecycle;

    /* changed by events only */
    node_state state;
    weir__core_slot **slots;
    uint32_t num_made;   /* in `slots` */
    uint32_t num_slots;  /* slots that are not retired */
    uint32_t num_wanted; /* target of num_slots */
    uint32_t num_idle;
    uint32_t num_aside;          /* for all its queues together */
    weir__core_slot *idle;       /* a stack, so that no more workers are created than needed */
    weir__slot_list ready;       /* first in, first out; the lifecycle slot, too */
    weir__slot_list gated;       /* ready, but the stage's start hooks have not ended */
    weir__core_node *next_ready; /* in the list of its rank */
    uint32_t num_turns_ahead; /* steps of its bursts for which other ready nodes of its rank have had no turn yet */
    weir__core_slot *turn_first; /* with WEIR_ORDER_INPUT: slots in the order of their inputs; only the first puts */
    weir__core_slot *turn_last;
    uint32_t due;        /* merge that selects: the next input; num_ins = not selected yet */
    uint32_t last_taken; /* round robin: the input of the last item; num_ins = none in this epoch */
    /* weighted merge: the credit of each input, then the credits before `due` was selected; random: the weights of
       those that have not ended; see merge.c. Room for 2 * num_ins */
    int64_t *credits;
    uint64_t merge_random; /* random merge: the state of the draws of this epoch */
    uint64_t merge_epoch;
    bool exhausted;             /* sources: has ended */
    uint64_t epochs_ended;      /* sources: number of ended epochs */
    uint64_t next_seq;          /* sources: number of the next item in this epoch */
    uint64_t next_order_number; /* with numbers_inputs */
    bool passing_epoch;         /* the lifecycle slot is putting the end of an epoch */
    epoch_place place;          /* with tasks and inputs only; weir__node_enter_epoch() changes it */
    bool passing_items;         /* handoff.c is passing on items of a node without tasks */
    bool moving_turns;          /* handoff.c is letting slots put in the order of their turns */
    bool passing_epoch_or_end;  /* handoff.c is passing on ends of epochs or of the stream */
    bool cancelled;
    bool keeps_results;   /* cancelled, but its results are still passed on */
    int64_t typical_ns;   /* moving average of the length of a step; a single step at most doubles it */
    weir_account account; /* in_flight is derived */
    uint64_t total_tasks;
    uint64_t total_failures;
    int64_t total_failed_ns; /* run time of the tasks that failed */
    uint64_t num_ends;       /* of epochs, and of the stream, that it has reached */
    uint64_t part_tasks;     /* tasks up to the last end of an epoch that an earlier run had begun */

    /* since the driver last cleared them */
    int64_t time_ns[NODE_TIMES];
    weir_task_metrics lap;
    weir_live_histogram *run_times; /* NULL = not recorded */

    /* owned by the driver while the lifecycle slot runs */
    size_t stage_hooks_begun; /* stage hooks that have started and not ended */
};

/* The ready slots of the nodes that share some threads. */
struct weir__core_pool {
    /* immutable after init */
    weir__graph *graph;
    uint32_t num_words; /* of 64 ranks; room for one rank per node */

    /* changed by events only */
    uint64_t *ready_ranks;      /* one bit for each rank with a ready node; bit 0 is the sink */
    weir__node_list *ranks;     /* nodes with a ready slot; the first is next */
    uint32_t num_ready;         /* slots that a thread may pick */
    uint32_t num_ready_slow;    /* ready slots whose step is not expected to be short */
    uint32_t num_running_short; /* picked slots whose step is expected to be short */
    int64_t picked_ns;          /* when a slot was last picked */
};

/* What the driver must look at after an event; it clears them. */
enum {
    WEIR__NEWS_CANCELLED = 1,      /* tasks of cancelled nodes should stop: slots RUNNING and PENDING */
    WEIR__NEWS_FAILED = 2,         /* graph->failed: see `failure` */
    WEIR__NEWS_STOPPED = 4,        /* graph->stopped */
    WEIR__NEWS_TO_CANCEL = 8,      /* weir__cancel_take() has something */
    WEIR__NEWS_SOURCES_ENDED = 16, /* all of them */
    WEIR__NEWS_OVER = 32,          /* graph->over */
};

/* Why the graph failed. */
typedef enum weir__failure {
    WEIR__FAILURE_ITSELF, /* the step of failed_slot alone: a source or a stage hook */
    WEIR__FAILURE_LAST,   /* the task of failed_slot was one too many */
    WEIR__FAILURE_FIRST,  /* among the first tasks of its node too many have failed */
    WEIR__FAILURE_ALL,    /* at the end of its first whole epoch, all tasks of its node have failed */
    WEIR__FAILURE_PLACE,  /* the place of the input of failed_slot is lost */
} weir__failure;

/* What a trace records. Called within events; must not change what it gets. */
typedef struct weir__recorder {
    /* The slot enters this state. at_ns: now, or the end of its step */
    void (*state)(const weir__core_slot *slot, slot_state state, int64_t at_ns);
    /* The level of the queue has changed. dropped: nobody took the item. */
    void (*level)(const weir__queue *queue, weir_trace_kind kind, const weir_item *item, bool dropped);
    void (*task)(const weir__core_slot *slot, bool dropped); /* a step has ended, but not with WEIR_PENDING */
    void (*result)(const weir__core_slot *slot);             /* the slot has made slot->out */
} weir__recorder;

struct weir__graph {
    /* immutable after init */
    uint32_t num_nodes;
    weir__core_node **nodes; /* upstream first; the last is the sink */
    weir__queue *sink;       /* the sink's */
    bool needs_results;      /* a node all of whose tasks fail is a failure of the graph */
    /* In a resumed graph: the number of its first epochs that an earlier run has begun. What is left of them proves
       nothing about a node: with retry_failed it may be the one item that always fails. */
    uint64_t num_part_epochs;
    /* The number of items before the last done item of these epochs: that many failures prove nothing. */
    uint64_t num_left_over;
    bool measures; /* count times and levels: time_ns, `lap`, histograms; else only totals and accounts */

    const weir__recorder *recorder; /* the driver's; NULL = nobody records */
    int64_t now_ns;                 /* the driver's */

    /* changed by events only */
    uint32_t live_nodes; /* not DONE */
    uint32_t live_sources;
    uint64_t next_arrival;
    bool stopped;
    bool failed;
    bool over;             /* all nodes DONE and the sink queue empty or no longer wanted */
    bool consumable;       /* the consumer need not wait: an item, or no more will come */
    int64_t consumable_ns; /* when the sink queue last became not empty */
    weir__failure failure;
    weir__core_node *failed_node;
    weir__core_slot *failed_slot;
    weir__core_slot *to_cancel, **to_cancel_end;

    uint32_t news; /* WEIR__NEWS_… */
};

/* ---- building ----------------------------------------------------------------------------------------------- */

/* When all nodes, queues, slots and pools are made: computes ranks, gives the nodes between a route and its join the
   order that the join wants, and counts time from now on. */
void weir__graph_prepare(weir__graph *graph, int64_t now_ns);

/* ---- events ------------------------------------------------------------------------------------------------- */

/* Time passes. Does nothing if now_ns is earlier. */
static inline void weir__graph_move_time(weir__graph *graph, int64_t now_ns)
{
    if (now_ns > graph->now_ns)
        graph->now_ns = now_ns;
}

/* The sources and the start hooks become ready. */
void weir__graph_start(weir__graph *graph);

/* A thread takes the next slot to run: READY becomes RUNNING. NULL if and only if pool->num_ready is 0. */
weir__core_slot *weir__core_pool_pick(weir__core_pool *pool);

/* The slot was just picked. At most `most` steps are planned, and one more follows that ends with weir__step_ended(): a burst
   has most + 1 inputs. Until weir__steps_passed(), the inputs stay in their queue, and the results of the planned
   steps, with made_ns, are in free entries of the next queue. None is planned while the node has or is to have
   several slots, its steps are not short, or a trace is recorded. None is planned either while the next queue is full
   but for one item, or its consumer could start other work at once. */
weir__plan weir__slot_plan_ahead(const weir__core_slot *slot, uint32_t most);

static inline weir_item *weir__queue_item_at(const weir__queue *queue, uint32_t at)
{
    return &queue->entries[at < queue->num_entries ? at : at - queue->num_entries].item;
}

/* The slot is RUNNING, and this many more of the steps that were planned have passed; now its step is the one that
   followed. */
void weir__steps_passed(weir__core_slot *slot, const weir__passed_step *steps, uint32_t num_steps);

/* The step of the slot has run; slot->status is its result. The driver has set what the slot owns to it, above: always
   begin_ns, end_ns and step_run_ns; `out` and out_index for WEIR_OK and WEIR_MORE; passed_over for WEIR_MORE; place for a
   failure. All steps of a burst that have passed were reported before. */
void weir__step_ended(weir__core_slot *slot);

/* The result of a task that returned or will return WEIR_PENDING has come. It may still be RUNNING, which is remembered; a
   later step (`finishing`) takes the result. */
void weir__task_completed(weir__core_slot *slot);

/* A RUNNING or PENDING task has run longer than it may. */
void weir__task_overdue(weir__core_slot *slot);

/* The next pending task whose cancel function must be called, once. NULL = none. */
weir__core_slot *weir__cancel_take(weir__graph *graph);

/* Tells the core that the cancel function of the slot's task has returned. */
void weir__cancel_returned(weir__core_slot *slot);

/* The consumer takes the head of the sink queue, which must not be empty. Returns WEIR_OK and an item, or WEIR_EPOCH.
   waited_ns: how long it has waited. late_ns: for how long there was an item before it asked again, if it had asked
   before. */
int weir__graph_deliver(weir__graph *graph, weir_item *item, int64_t waited_ns, int64_t late_ns);

/* How many items, at most `most`, the consumer may take from the head of the sink queue without an event for each. */
uint32_t weir__graph_plan_takes(const weir__graph *graph, uint32_t most);

/* The head of the sink queue was taken as planned, at taken_ns. */
void weir__item_taken(weir__graph *graph, int64_t taken_ns);

/* Room in the sink queue would let a task put its result. */
bool weir__graph_awaits_room(const weir__graph *graph);

/* No more results are wanted. May be called again. */
void weir__graph_stop(weir__graph *graph);

/* The node, which has tasks, should have this many slots, at most num_made: idle ones are retired at once, others as
   soon as their task ends. */
void weir__node_set_slots(weir__core_node *node, uint32_t num_wanted);

/* Replaces the array of slots by a longer one that begins with the same; those added are RETIRED. */
void weir__node_add_slots(weir__core_node *node, weir__core_slot **slots, uint32_t num_made);

/* When the run is over: takes an item that nobody took. False = no more. */
bool weir__leftover_take(weir__graph *graph, weir_item *item);

/* ---- levels ------------------------------------------------------------------------------------------------- */

static inline uint32_t weir__queue_num_items(const weir__queue *queue)
{
    return queue->depth - queue->num_epoch_ends;
}

/* Adds the time since the last change to the metrics. */
static inline void weir__queue_settle(weir__queue *queue, int64_t now_ns)
{
    uint32_t num_items = weir__queue_num_items(queue);
    int64_t span_ns = now_ns - queue->level_since_ns;
    if (!num_items && queue->closed && queue->producer->graph->measures)
        queue->lap.ended_ns += span_ns;
    if (num_items && queue->producer->graph->measures) {
        queue->lap.occupied_ns += span_ns;
        queue->lap.depth_ns += (double)span_ns * num_items;
        if (queue->bytes)
            queue->lap.bytes_ns += (double)span_ns * (double)queue->bytes;
    }
    queue->level_since_ns = now_ns;
}

/* What a recorder gets as the slot's state. */
static inline unsigned weir__slot_shown(const weir__core_slot *slot)
{
    return slot->state == SLOT_IDLE && slot->node->state == NODE_DONE ? TIME_ENDED : (unsigned)slot->state;
}

/* Which of its node's times a slot adds to. */
static inline unsigned weir__slot_time(const weir__core_slot *slot)
{
    static const unsigned idle[] = {
        [WITHIN_EPOCH] = SLOT_IDLE, [EPOCH_TAIL] = TIME_EPOCH_TAIL, [EPOCH_GAP] = TIME_EPOCH_GAP
    };
    unsigned shown = weir__slot_shown(slot);
    return shown == SLOT_IDLE ? idle[slot->node->place] : shown;
}

/* Called for a source that has epochs, before it starts: the epochs before this one have ended. */
static inline void weir__source_begin_epoch(weir__core_node *source, uint64_t epoch)
{
    bool has_more = source->epochs == WEIR_ENDLESS || epoch < source->epochs;
    source->epochs_ended = has_more ? epoch : source->epochs;
    source->exhausted = !has_more;
}

/* The end of an epoch, as an item: identified by its release function, which does nothing. */
void weir__epoch_end_release(void *data, void *self);

static inline bool weir__is_epoch_end(const weir_item *item)
{
    return item->release == weir__epoch_end_release;
}

#endif
