#include "bench/verdict/gain_measure.h"

#include <math.h>
#include <time.h>

#include <weir/clock.h>

#include "common/student_t.h"

enum { NUM_PAIRS = 4, ITEMS_OF_SLICE = 20 };

#define LONGEST_S 30

static void wait_s(double seconds)
{
    struct timespec left = { .tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * fmod(seconds, 1)) };
    while (nanosleep(&left, &left) != 0)
        continue;
}

static void set_slots(const scene *of, scene_run *run, uint32_t doubled, bool is_doubled)
{
    uint32_t threads = of->threads;
    for (uint32_t i = 0; i < 3; i++)
        if (doubled >> i & 1 && of->stages[i].name) {
            uint32_t slots = of->stages[i].slots;
            weir_pipeline_set_concurrency(scene_pipeline(run), of->stages[i].name, is_doubled ? 2 * slots : slots);
            threads += is_doubled ? slots : 0;
        }
    weir_pipeline_set_threads(scene_pipeline(run), NULL, threads);
}

/* Items per second, after the tasks and the queues of the setting before. */
static double measure_slice(scene_run *run, double settle_s, double slice_s)
{
    wait_s(settle_s);
    uint64_t before = scene_num_taken(run);
    int64_t start_ns = weir_clock_ns();
    wait_s(slice_s);
    double took_s = 1e-9 * (double)(weir_clock_ns() - start_ns);
    return fmax(1, (double)(scene_num_taken(run) - before)) / took_s;
}

static void compare(const double ratios[NUM_PAIRS], measured_gain *found)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < NUM_PAIRS; i++)
        mean += ratios[i] / NUM_PAIRS;
    for (int i = 0; i < NUM_PAIRS; i++)
        squares += (ratios[i] - mean) * (ratios[i] - mean);
    double half = weir__student_t(NUM_PAIRS - 1) * sqrt(squares / (NUM_PAIRS - 1) / NUM_PAIRS);
    found->gain = exp(mean);
    found->low = exp(mean - half);
    found->high = exp(mean + half);
}

bool gain_measure(const scene *of, uint32_t doubled, double items_per_s, double task_s, measured_gain *found)
{
    double slice_s = fmax(0.6, ITEMS_OF_SLICE / items_per_s), settle_s = 0.1 + 2 * task_s + 6 / items_per_s;
    double total_s = (2 * NUM_PAIRS + 1) * (slice_s + settle_s), ratios[NUM_PAIRS];
    if (total_s > LONGEST_S)
        return false;
    scene_run *run = scene_start(of, NULL, (int64_t)(1e9 * (total_s + LONGEST_S)), NULL, 0);
    if (!run)
        return false;
    wait_s(slice_s + settle_s);
    for (int i = 0; i < NUM_PAIRS; i++) {
        double rates[2];
        for (int j = 0; j < 2; j++) {
            bool is_doubled = (i + j) % 2;
            set_slots(of, run, doubled, is_doubled);
            rates[is_doubled] = measure_slice(run, settle_s, slice_s);
        }
        ratios[i] = log(rates[1] / rates[0]);
    }
    weir_pipeline_stop(scene_pipeline(run));
    scene_end(run);
    compare(ratios, found);
    return true;
}
