/* Which part of a thread's CPU time belongs to its tasks: the arithmetic, with given times. */
#include <stddef.h>
#include <stdlib.h>

#include "engine/state/cpu_window.h"
#include "tests/test_case.h"

enum { US = 1000 };

static weir__cpu_window window;
static int64_t now_ns, handoff_ns;

static int begin_thread(void **state)
{
    (void)state;
    now_ns = handoff_ns = 0;
    weir__cpu_window_begin(&window, now_ns);
    return 0;
}

static void add_step(int64_t handoff, int64_t run)
{
    weir__cpu_window_add_handoff(&window, now_ns + handoff);
    weir__cpu_window_add_step(&window, now_ns + handoff, now_ns + handoff + run);
    now_ns += handoff + run;
}

static int64_t close_window(int64_t cpu_ns)
{
    int64_t tasks_ns = weir__cpu_window_tasks_ns(&window, now_ns, cpu_ns, handoff_ns);
    weir__cpu_window_begin(&window, now_ns);
    return tasks_ns;
}

TEST_CASE(handoffs_of_a_thread_that_had_a_cpu_are_exact)
{
    add_step(1 * US, 10 * US);
    add_step(7 * US, 10 * US); /* it spun for work */
    assert_int_equal(close_window(28 * US), 20 * US);
    add_step(20 * US, 10 * US);
    assert_int_equal(close_window(30 * US), 10 * US);
}

/* Two of ten windows contain hand-offs in which the thread had no CPU for 5 ms. */
TEST_CASE(a_wait_for_a_cpu_in_a_handoff_is_not_taken_from_tasks_that_sleep)
{
    handoff_ns = 2 * US;
    for (int i = 0; i < 10; i++) {
        int64_t lost_ns = i % 5 == 4 ? 5000 * US : 0;
        add_step(1 * US, 70 * US); /* 8 us of CPU time each */
        add_step(3 * US + lost_ns, 70 * US);
        int64_t tasks_ns = close_window(4 * US + 16 * US);
        assert_in_range(tasks_ns, 15 * US, 17 * US);
    }
}

/* The thread loses its CPU in each hand-off, for longer than the hand-off takes: what its tasks computed is theirs. */
TEST_CASE(a_wait_for_a_cpu_in_each_handoff_is_not_taken_from_tasks_that_compute)
{
    handoff_ns = 1 * US;
    for (int i = 0; i < 10; i++) {
        add_step(6 * US, 15 * US);
        add_step(3000 * US, 15 * US);
        assert_in_range(close_window(32 * US), 29 * US, 30 * US);
    }
}

/* Tasks that compute lose their CPU in steps: hand-offs used what they took. */
TEST_CASE(a_wait_for_a_cpu_in_a_step_is_not_given_to_the_task)
{
    handoff_ns = 2 * US;
    for (int i = 0; i < 10; i++) {
        add_step(2 * US, 100 * US + 4000 * US);
        add_step(2 * US, 100 * US);
        assert_in_range(close_window(204 * US), 199 * US, 201 * US);
    }
}

TEST_CASE(a_step_that_is_a_window_needs_no_estimate)
{
    weir__cpu_window_add_step(&window, 0, 1000 * US);
    now_ns = 1000 * US;
    assert_int_equal(close_window(8 * US), 8 * US);
}

TEST_CASE(tasks_use_no_more_than_they_ran_and_no_less_than_nothing)
{
    add_step(1 * US, 3 * US);
    assert_int_equal(close_window(40 * US), 3 * US);
    add_step(5 * US, 3 * US);
    assert_int_equal(close_window(0), 0);
    weir__cpu_window_add_handoff(&window, now_ns - 10); /* the clock was corrected */
    assert_int_equal(window.handoffs_ns, 0);
}

/* A thread that often sleeps: of its hand-offs only the first one behind a sleep wakes another thread. */
TEST_CASE(measured_handoffs_are_like_all_of_them)
{
    enum { NUM_WINDOWS = 20000 };
    for (int per_window = 1; per_window <= 20; per_window++) {
        weir__handoff_sample sample = { 0 };
        int64_t measured_ns = 0, used_ns = 0;
        for (int i = 0; i < NUM_WINDOWS * per_window; i++) {
            int64_t handoff = i % per_window == 0 ? 8 * US : US;
            used_ns += handoff;
            if (weir__handoff_sample_is_due(&sample)) {
                weir__handoff_sample_add(&sample, handoff);
                measured_ns += handoff;
            }
            if (i % per_window == per_window - 1)
                sample.num_unmeasured++;
        }
        int64_t mean_ns = used_ns / (NUM_WINDOWS * per_window);
        assert_in_range(measured_ns / sample.num_measured, mean_ns * 85 / 100, mean_ns * 115 / 100);
        assert_in_range(sample.mean_ns, mean_ns * 60 / 100, mean_ns * 140 / 100);
    }
}

TEST_MAIN(begin_thread, NULL, NULL, NULL)
