/*
 * The scheduler core alone, by random schedules and by all schedules of small graphs: see core_driver.h.
 *
 *     WEIR_CORE_RUNS=N  how many random schedules (default: DEFAULT_RUNS)
 *     WEIR_CORE_SEED=N  the first seed (default: the time); a failing run prints its seed, and is shrunk
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core_driver.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
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

static void random_schedules_keep_the_invariants(void **state)
{
    (void)state;
    uint64_t seed = number_from("WEIR_CORE_SEED", (uint64_t)time(NULL) * 1000000);
    uint64_t runs = number_from("WEIR_CORE_RUNS", DEFAULT_RUNS), num_events = 0;
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
    }
    fprintf(stderr, "%.1f events each, %.1f us each\n", (double)num_events / (double)runs,
            (double)(clock() - start) / CLOCKS_PER_SEC * 1e6 / (double)runs);
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

static void all_schedules_of_a_small_graph_keep_the_invariants(void **state)
{
    (void)state;
    for (small_twist twist = SMALL_PLAIN; twist < SMALL_TWISTS; twist++)
        run_all_schedules(twist);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_schedules_of_a_small_graph_keep_the_invariants),
        cmocka_unit_test(random_schedules_keep_the_invariants),
    };
    cmocka_set_test_filter(getenv("WEIR_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
