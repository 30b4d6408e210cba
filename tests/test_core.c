/*
 * The scheduler core alone, by random schedules and by all schedules of small graphs: see core_driver.h.
 *
 *     WEIR_CORE_RUNS=N  how many random schedules (default: DEFAULT_RUNS)
 *     WEIR_CORE_SEED=N  the first seed (default: the time); a failing run prints its seed, and is shrunk
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/core_driver.h"
#include "tests/test_case.h"

#ifdef SANITIZED
enum { DEFAULT_RUNS = 20000 };
#else
enum { DEFAULT_RUNS = 150000 };
#endif

static core_driver driver;
static uint64_t current_seed;
static choices list;

/* A schedule in which one event never ends, or crashes. */
static void name_seed(int signal_)
{
    char line[64];
    int length =
        snprintf(line, sizeof line, "WEIR_CORE_SEED=%llu: signal %d\n", (unsigned long long)current_seed, signal_);
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        _exit(3);
    _exit(2);
}

static uint64_t number_from(const char *name, uint64_t default_value)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : default_value;
}

/* ---- random schedules --------------------------------------------------------------------------------------- */

static choices replayed;

static bool replay_fails(void *self, const uint32_t *values, uint32_t count)
{
    (void)self;
    choices_begin_replay(&replayed, values, count);
    driver_build_random(&driver, &replayed);
    return driver_run(&driver) != NULL;
}

static void report_failure(uint64_t seed)
{
    fprintf(stderr, "WEIR_CORE_SEED=%llu WEIR_CORE_RUNS=1: %s\n", (unsigned long long)seed, driver.broken);
    uint32_t before = list.count;
    choices_shrink(&list, replay_fails, NULL);
    replay_fails(NULL, list.values, list.count);
    fprintf(stderr, "shrunk from %u to %u choices: %s, after %u events\n", before, list.count, driver.broken,
            driver.num_events);
    driver_print(&driver);
    fail_msg("the core breaks its rules");
}

TEST_CASE(random_schedules_keep_the_invariants)
{
    uint64_t seed = number_from("WEIR_CORE_SEED", (uint64_t)time(NULL) * 1000000);
    uint64_t runs = number_from("WEIR_CORE_RUNS", DEFAULT_RUNS), num_events = 0;
    uint64_t num_passed = 0, num_taken_ahead = 0;
    fprintf(stderr, "WEIR_CORE_SEED=%llu, %llu schedules\n", (unsigned long long)seed, (unsigned long long)runs);
    clock_t start = clock();
    signal(SIGTERM, name_seed); /* by ctest, or by a person */
    signal(SIGALRM, name_seed);
    signal(SIGSEGV, name_seed);
    alarm(200 + (unsigned)(runs / 1000));
    for (uint64_t i = 0; i < runs; i++) {
        current_seed = seed + i;
        choices_begin_random(&list, current_seed);
        driver_build_random(&driver, &list);
        if (driver_run(&driver))
            report_failure(current_seed);
        num_events += driver.num_events;
        num_passed += driver.num_passed;
        num_taken_ahead += driver.num_taken_ahead;
    }
    fprintf(stderr, "%.1f events, %.2f steps in bursts, %.2f items taken ahead, %.1f us each\n",
            (double)num_events / (double)runs, (double)num_passed / (double)runs,
            (double)num_taken_ahead / (double)runs, (double)(clock() - start) / CLOCKS_PER_SEC * 1e6 / (double)runs);
    assert_true(runs < 1000 || (num_passed > runs / 20 && num_taken_ahead > runs / 20));
}

/* ---- all schedules of small graphs --------------------------------------------------------------------------- */

static void run_all_schedules(small_twist twist)
{
    static state_set reached;
    uint64_t runs = 0;
    memset(&reached, 0, sizeof reached);
    driver.reached = &reached;
    choices_begin_all(&list);
    do {
        driver_build_small(&driver, &list, twist);
        if (driver_run(&driver)) {
            fprintf(stderr, "twist %d, schedule %llu: %s, after %u events\n", (int)twist, (unsigned long long)runs,
                    driver.broken, driver.num_events);
            driver_print(&driver);
            fail_msg("the core breaks its rules");
        }
        runs++;
    } while (choices_advance(&list));
    driver.reached = NULL;
    assert_true(reached.count < STATE_SET_ROOM / 2);
    fprintf(stderr, "twist %d: all schedules, by %llu runs and %u states\n", (int)twist, (unsigned long long)runs,
            reached.count);
}

TEST_CASE(all_schedules_of_a_small_graph_keep_the_invariants)
{
    for (small_twist twist = SMALL_PLAIN; twist < SMALL_TWISTS; twist++)
        run_all_schedules(twist);
}

/* ---- a fair pool ---------------------------------------------------------------------------------------------- */

enum { CHAINS = 3, CHAIN_ITEMS = 3000 };

typedef struct chain_shape {
    weir_merge_order order;
    uint32_t weights[CHAINS];
    bool has_routes; /* between source and merge */
    uint32_t slots[CHAINS];
    bool first_has_bursts; /* its steps are just short enough, those of the others are not */
} chain_shape;

/* source -> stage -> merge, or source -> route -> two stages -> join -> merge */
static driver_node *add_chain(uint32_t slots, bool has_route)
{
    driver_node *source = driver_add_node(&driver, true, 1, 1, 2);
    source->items = UINT32_MAX;
    source->core.may_run_ahead = true;
    driver_node *stage = driver_add_node(&driver, true, slots, has_route ? 2 : 1, 2);
    driver_connect(source, 0, stage);
    if (!has_route)
        return stage;
    driver_node *join = NULL, *branches[2];
    for (uint32_t i = 0; i < 2; i++) {
        branches[i] = driver_add_node(&driver, true, 1, 1, 2);
        driver_connect(stage, i, branches[i]);
    }
    join = driver_add_node(&driver, false, 1, 1, 2);
    for (uint32_t i = 0; i < 2; i++)
        driver_connect(branches[i], 0, join);
    join->core.route = &stage->core;
    return join;
}

static void build_chains(const chain_shape *shape, uint32_t threads)
{
    driver_node *ends[CHAINS];
    driver_init(&driver, &list, threads);
    for (uint32_t i = 0; i < CHAINS; i++)
        ends[i] = add_chain(shape->slots[i], shape->has_routes);
    driver_node *merge = driver_add_node(&driver, false, 1, 1, 2);
    driver_node *sink = driver_add_node(&driver, false, 1, 1, 3);
    for (uint32_t i = 0; i < CHAINS; i++) {
        driver_connect(ends[i], 0, merge);
        merge->weights[i] = shape->weights[i] ? shape->weights[i] : 1;
    }
    merge->core.merge_order = shape->order;
    if (shape->order == WEIR_MERGE_WEIGHTED)
        merge->core.weights = merge->weights;
    driver_connect(merge, 0, sink);
    driver_start(&driver);
}

/* All threads run steps of one length, one after the other; the consumer takes whatever comes. */
static void count_items_of_chains(const chain_shape *shape, uint64_t counts[CHAINS])
{
    driver_slot *running[4] = { 0 };
    memset(counts, 0, CHAINS * sizeof *counts);
    for (uint64_t taken = 0, next = 0; taken < CHAIN_ITEMS; next++) {
        driver_slot **thread = &running[next % driver.pools[0].threads];
        if (*thread) {
            uint64_t branch = (*thread)->core.in.seq % (*thread)->core.node->num_outs;
            (*thread)->core.out_index = (uint32_t)branch;
            if (shape->first_has_bursts && (*thread)->core.in.source == 0 && driver_pass_steps(&driver, *thread, 1))
                continue;
            driver_end_step(&driver, *thread, WEIR_OK);
        }
        *thread = driver_pick(&driver, &driver.pools[0]);
        for (; driver.graph.sink->depth && taken < CHAIN_ITEMS; taken++) {
            counts[driver.graph.sink->entries[driver.graph.sink->head].item.source]++;
            driver_take(&driver);
        }
    }
}

TEST_CASE(equal_chains_that_share_a_pool_advance_equally)
{
    static const chain_shape shapes[] = {
        { WEIR_MERGE_ARRIVAL, { 0 }, false, { 4, 4, 4 }, false },
        { WEIR_MERGE_ARRIVAL, { 0 }, true, { 4, 4, 4 }, false },
        { WEIR_MERGE_ARRIVAL, { 0 }, false, { 1, 2, 4 }, false },
        { WEIR_MERGE_ROUND_ROBIN, { 0 }, false, { 4, 4, 4 }, false },
        { WEIR_MERGE_WEIGHTED, { 1, 2, 3 }, false, { 4, 4, 4 }, false },
        { WEIR_MERGE_WEIGHTED, { 3, 1, 2 }, true, { 4, 4, 4 }, false },
        { WEIR_MERGE_ARRIVAL, { 0 }, true, { 1, 1, 1 }, true },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint32_t threads = 1; threads <= 4; threads++) {
            uint64_t counts[CHAINS], all_weights = 0;
            choices_begin_replay(&list, NULL, 0);
            build_chains(&shapes[i], threads);
            count_items_of_chains(&shapes[i], counts);
            for (int j = 0; j < CHAINS; j++)
                all_weights += shapes[i].weights[j] ? shapes[i].weights[j] : 1;
            for (int j = 0; j < CHAINS; j++) {
                uint64_t weight = shapes[i].weights[j] ? shapes[i].weights[j] : 1;
                uint64_t fair = CHAIN_ITEMS * weight / all_weights;
                if (counts[j] < fair * 9 / 10 || counts[j] > fair * 11 / 10)
                    fail_msg("shape %zu, %u threads: %llu, %llu and %llu items", i, threads,
                             (unsigned long long)counts[0], (unsigned long long)counts[1],
                             (unsigned long long)counts[2]);
            }
        }
}

static bool is_source(const driver_slot *slot)
{
    return slot->core.node->num_ins == 0;
}

/* Two slots of each stage become ready at once, those of one stage after those of the other. */
TEST_CASE(stages_with_several_ready_slots_take_turns)
{
    static const chain_shape shape = { WEIR_MERGE_ARRIVAL, { 0 }, false, { 2, 2, 2 }, false };
    driver_slot *pending[2 * CHAINS];
    const weir__core_node *turns[2 * CHAINS];
    uint32_t num = 0;
    choices_begin_replay(&list, NULL, 0);
    build_chains(&shape, 1);
    while (num < 2 * CHAINS) {
        driver_slot *slot = driver_pick(&driver, &driver.pools[0]);
        if (!is_source(slot))
            pending[num++] = slot;
        driver_end_step(&driver, slot, is_source(slot) ? WEIR_OK : WEIR_PENDING);
    }
    for (uint32_t node = 0; node < driver.graph.num_nodes; node++)
        for (uint32_t i = 0; i < num; i++)
            if (pending[i]->core.node == driver.graph.nodes[node])
                weir__task_completed(&pending[i]->core);
    for (uint32_t i = 0; i < num; i++) {
        driver_slot *slot = driver_pick(&driver, &driver.pools[0]);
        turns[i] = slot->core.node;
        driver_end_step(&driver, slot, WEIR_OK);
    }
    for (uint32_t i = 0; i < num; i++)
        for (uint32_t j = 0; j < i; j++)
            assert_int_equal(turns[i] == turns[j], i % CHAINS == j % CHAINS);
}

/* ---- time --------------------------------------------------------------------------------------------------------- */

static void end_step_later(driver_slot *slot, int64_t run_ns, int64_t later_ns)
{
    slot->core.end_ns = slot->core.begin_ns + run_ns;
    weir__graph_move_time(&driver.graph, slot->core.end_ns + later_ns);
    driver_report_end(&driver, slot, WEIR_OK);
}

/* A thread ends a step of 3 ns and then waits for a CPU, 50 ns: the slot was not busy then. */
TEST_CASE(busy_time_ends_with_the_step)
{
    choices_begin_all(&list);
    driver_build_small(&driver, &list, SMALL_PLAIN);
    driver_node *source = &driver.nodes[0], *stage = &driver.nodes[1];
    end_step_later(driver_pick(&driver, &driver.pools[0]), 3, 50); /* the source has the next item to make */
    assert_int_equal(source->core.time_ns[SLOT_RUNNING], 3);
    assert_int_equal(source->slots[0]->state, SLOT_READY);
    assert_int_equal(source->slots[0]->since_ns, driver.graph.now_ns - 50);

    end_step_later(driver_pick(&driver, &driver.pools[0]), 4, 50); /* the stage waits for its next input */
    assert_int_equal(stage->core.time_ns[SLOT_RUNNING], 4);
    assert_int_equal(stage->slots[1]->state, SLOT_IDLE);
    assert_int_equal(stage->slots[1]->since_ns, driver.graph.now_ns - 50);
}

static void end_step_at(driver_slot *slot, int64_t at_ns, int status)
{
    slot->core.end_ns = at_ns;
    weir__graph_move_time(&driver.graph, at_ns);
    driver_report_end(&driver, slot, status);
    while (driver.graph.sink->depth > 0)
        driver_take(&driver);
}

static driver_slot *pick_of(const driver_node *node)
{
    driver_slot *slot = driver_pick(&driver, &driver.pools[0]);
    assert_ptr_equal(slot->core.node, &node->core);
    return slot;
}

/* One slot has nothing to do while the other one has the last item of an epoch; then none has, until the next epoch has an item. */
TEST_CASE(the_time_at_the_end_of_an_epoch_has_two_parts)
{
    choices_begin_all(&list);
    driver_build_small(&driver, &list, SMALL_PLAIN);
    driver_node *source = &driver.nodes[0], *stage = &driver.nodes[1];
    const int64_t *time_ns = stage->core.time_ns;
    source->core.epochs = WEIR_ENDLESS;
    int64_t start_ns = driver.graph.now_ns;
    end_step_at(pick_of(source), start_ns + 5, WEIR_OK);
    driver_slot *first = pick_of(stage);
    end_step_at(pick_of(source), start_ns + 10, WEIR_OK);
    driver_slot *last = pick_of(stage);
    end_step_at(first, start_ns + 100, WEIR_OK); /* within the epoch until its end is reported */
    end_step_at(pick_of(source), start_ns + 130, WEIR_EPOCH);
    int64_t idle_ns = time_ns[SLOT_IDLE];
    assert_true(idle_ns >= 30);
    end_step_at(last, start_ns + 300, WEIR_OK);
    assert_int_equal(time_ns[TIME_EPOCH_TAIL], 170);
    end_step_at(pick_of(source), start_ns + 450, WEIR_OK);
    assert_int_equal(time_ns[TIME_EPOCH_GAP], 2 * 150);
    assert_int_equal(time_ns[TIME_EPOCH_TAIL], 170);
    assert_int_equal(time_ns[SLOT_IDLE], idle_ns);
    end_step_at(pick_of(stage), start_ns + 500, WEIR_OK);
    assert_int_equal(time_ns[TIME_EPOCH_GAP], 2 * 150);
}

/* A lap has ended between the end of the step and its event, and counted the slot as busy up to there. */
TEST_CASE(what_an_earlier_lap_counted_is_not_taken_back)
{
    choices_begin_all(&list);
    driver_build_small(&driver, &list, SMALL_PLAIN);
    driver_slot *slot = driver_pick(&driver, &driver.pools[0]);
    int64_t lap_ns = slot->core.begin_ns + 20;
    slot->core.since_ns = lap_ns;
    end_step_later(slot, 3, 50);
    assert_int_equal(driver.nodes[0].core.time_ns[SLOT_RUNNING], 0);
    assert_int_equal(slot->core.since_ns, lap_ns);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
