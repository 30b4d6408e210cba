/*
 * Runs the scheduler core alone. Builds a small graph, and lets events happen in an order that `choices` decide.
 * After each event it checks the invariants of core.h. At the end it checks:
 *
 *   - something can always happen until the run is over;
 *   - each item that was made is delivered, skipped, failed, dropped or merged exactly once, and the accounts agree;
 *   - no item crosses the end of an epoch; order is kept where it is promised.
 */
#ifndef TESTS_CORE_DRIVER_H
#define TESTS_CORE_DRIVER_H

#include "engine/core/core.h"
#include "tests/choices.h"

enum { MAX_NODES = 20, MAX_ENDS = 3, MAX_DRIVER_SLOTS = 4, MAX_ROOM = 4, MAX_AHEAD = 4, MAX_DRIVER_ITEMS = 4096 };

typedef struct driver_slot {
    weir__core_slot core; /* first */
    int completion;       /* of a pending task */

    /* while it is RUNNING */
    weir__plan plan;
    uint32_t passed; /* of the planned steps */
} driver_slot;

typedef struct driver_node {
    weir__core_node core; /* first */
    uint32_t items;       /* of a source: in each epoch */
    bool multiplies, pends, skips, fails, passes_over, hooks_fail, replaces;
    uint64_t steps;                    /* that ended */
    uint64_t put_before_end[MAX_ENDS]; /* into each queue, plus 1, when the node had ended or dropped its results */
    uint64_t whole_tasks, whole_successes; /* of epochs that have begun here, as the test sees them */
    driver_slot lifecycle, all_slots[MAX_DRIVER_SLOTS];
    weir__core_slot *slots[MAX_DRIVER_SLOTS];
    weir__queue outs[MAX_ENDS], *ins[MAX_ENDS];
    int64_t credits[2 * MAX_ENDS];
    uint32_t weights[MAX_ENDS];
    weir__queued_item entries[MAX_ENDS][MAX_ROOM + MAX_AHEAD];
} driver_node;

typedef struct driver_pool {
    weir__core_pool core; /* first */
    uint32_t threads, free_threads;
    uint64_t ready_ranks[1];
    weir__node_list ranks[MAX_NODES];
} driver_pool;

enum { STATE_SET_ROOM = 1 << 20 };

typedef struct state_set {
    uint64_t hashes[STATE_SET_ROOM]; /* 0 = free */
    uint32_t count;
} state_set;

typedef struct core_driver {
    weir__graph graph; /* first */
    choices *choices;
    driver_node nodes[MAX_NODES];
    weir__core_node *node_list[MAX_NODES];
    driver_pool pools[2];

    /* what will happen */
    uint32_t stop_at, change_at, overdue_at; /* the number of an event; 0 = never */
    bool keeps_order;
    bool keeps_count; /* what fails is replaced: each item of the source is delivered */
    bool retries; /* retry_failed: of each epoch that an earlier run had begun one item is left, which fails again */
    uint32_t max_events;
    uint32_t odd_left, stops_left, changes_left; /* may still happen at any moment: an odd end of a task of node 1, a
                                                    stop, a change of the slots of node 1 to one */

    /* With CHOOSE_ALL: the states that were reached, by their hashes. A run that reaches one of them ends, as all that can
       follow is or will be tried from there. NULL = none are remembered */
    struct state_set *reached;

    /* what has happened */
    uint32_t num_events;
    uint64_t num_made, num_delivered, num_epochs, num_passed;
    uint64_t last_seq[MAX_NODES]; /* of each source, of what was delivered in this epoch */
    bool seen[MAX_DRIVER_ITEMS];
    uint32_t ahead_left;        /* items that the consumer may take without an event */
    uint32_t num_ahead;         /* that it has taken so, and the core was not told of, */
    int64_t ahead_ns[MAX_ROOM]; /* and when */
    uint64_t num_taken_ahead;   /* in all */
    const char *broken;         /* what does not hold; NULL = all does */
} core_driver;

/* -- building: in the order of the nodes, upstream first -- */

void driver_init(core_driver *driver, choices *list, uint32_t threads);

/* Its inputs are added by driver_connect(). */
driver_node *driver_add_node(core_driver *driver, bool has_tasks, uint32_t num_slots, uint32_t num_outs,
                             uint32_t room);
void driver_connect(driver_node *from, uint32_t out, driver_node *to);

/* The last node is the sink. */
void driver_start(core_driver *driver);

/* -- running -- */

/* A thread of the pool takes a slot. NULL = none is free, or nothing is ready. */
driver_slot *driver_pick(core_driver *driver, driver_pool *pool);
/* Tells the core that this many of the steps planned for the burst have passed, or all that are left. Returns how many. */
uint32_t driver_pass_steps(core_driver *driver, driver_slot *slot, uint32_t most);
/* The step ends; what it makes, and its other fields, are set here. */
void driver_end_step(core_driver *driver, driver_slot *slot, int status);
/* The same for a step that has ended at slot->core.end_ns, which is set before, as is the time of the graph. */
void driver_report_end(core_driver *driver, driver_slot *slot, int status);
/* The consumer takes an item; the sink queue has one. */
void driver_take(core_driver *driver);

/* Lets things happen until the run is over. NULL, or what does not hold. */
const char *driver_run(core_driver *driver);

/* A graph at random; with everything that may happen to it. */
void driver_build_random(core_driver *driver, choices *list);
/* What happens in a small graph besides tasks that make their results. */
typedef enum small_twist {
    SMALL_PLAIN,
    SMALL_IN_ORDER, /* the stage keeps the order of its inputs */
    SMALL_STATUS,   /* in order; one of the tasks, any, ends in another way, any */
    SMALL_KEPT,     /* the same without order; it may also keep its input, and one failure is tolerated */
    SMALL_REPLACED, /* in order; one of the tasks, any, fails, at once or later, and its input is replaced */
    SMALL_STOP,     /* at any moment */
    SMALL_SLOTS,    /* at any moment the stage has one slot less */
    SMALL_ROUTE, /* a route with one slot, which looks one item ahead, two branches without stages and two epochs of five items */
    SMALL_TWISTS,
} small_twist;

/* A source, a stage of two slots and a sink, with queues of one item, two threads and four items; or a route in the place of
   the stage, and a join. */
void driver_build_small(core_driver *driver, choices *list, small_twist twist);

/* The graph as text, for reports. */
void driver_print(const core_driver *driver);

#endif
