/*
 * weir compare on runs of which the test knows whether they differ: equal ones differ by chance only, also among many measures,
 * and what differs is found. Held constant: laps of equal length that do not depend on each other; 16 of them.
 */
#include "tests/test_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>

#include "tools/view/lap_comparison.h"

enum { NUM_PAIRS = 1000, NUM_LAPS = 16, NUM_NODES = 8 };

/* ---- invented runs ----------------------------------------------------------------------------------------------- */

static double draw_uniform(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

static double draw_normal(void)
{
    return sqrt(-2 * log(1 - draw_uniform())) * cos(6.283185307179586 * draw_uniform());
}

/* A lap of a stage with two slots: all that is measured varies by 10 %, by itself. */
static void invent_lap(weir_total *lap, double pace)
{
    const double lap_ns = 10 * (double)WEIR_SECOND;
    weir_task_metrics *task = &lap->metrics.task;
    double busy = 0.5 * (1 + 0.1 * draw_normal()), tasks = 1000 * pace * (1 + 0.1 * draw_normal());
    *lap = (weir_total){ .subject = WEIR_SUBJECT_STAGE, .kind = "stage", .elapsed_ns = 10 * WEIR_SECOND };
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_STAGE), &lap->metrics);
    task->num_tasks = (uint64_t)fmax(1, tasks);
    task->num_failures = (uint64_t)fmax(0, tasks * 0.1 * (1 + 0.3 * draw_normal()));
    task->busy_ns = (int64_t)(2 * lap_ns * busy);
    task->success_ns = (int64_t)((double)task->busy_ns * (0.9 + 0.02 * draw_normal()));
    task->failed_ns = (int64_t)((double)task->busy_ns * (0.05 + 0.005 * draw_normal()));
    task->cpu_ns = (int64_t)((double)task->busy_ns * (0.5 + 0.05 * draw_normal()));
    task->wait_in_ns = (int64_t)(2 * lap_ns * (1 - busy) * 0.5 * (1 + 0.2 * draw_normal()));
    task->wait_out_ns = (int64_t)(2 * lap_ns) - task->busy_ns - task->wait_in_ns;
}

typedef struct invented_runs {
    lap_comparison comparison;
    comparison_pair pairs[NUM_NODES];
    weir_total all[NUM_NODES][2], laps[NUM_NODES][2][NUM_LAPS];
    const weir_total *batches[NUM_NODES][2][NUM_LAPS];
} invented_runs;

/* pace: of the first node of B, compared with A. */
static void invent_runs(invented_runs *runs, int num_nodes, double pace)
{
    const weir_metric_table *table = weir_subject_metrics(WEIR_SUBJECT_STAGE);
    memset(runs, 0, sizeof *runs);
    for (int node = 0; node < num_nodes; node++)
        for (int side = 0; side < 2; side++) {
            weir_total *all = &runs->all[node][side];
            *all = (weir_total){ .subject = WEIR_SUBJECT_STAGE, .kind = "stage" };
            weir_metrics_clear(table, &all->metrics);
            for (int lap = 0; lap < NUM_LAPS; lap++) {
                weir_total *one = &runs->laps[node][side][lap];
                invent_lap(one, side && node == 0 ? pace : 1);
                weir_metrics_add(table, &all->metrics, &one->metrics);
                all->elapsed_ns += one->elapsed_ns;
                runs->batches[node][side][lap] = one;
            }
            comparison_pair *pair = &runs->pairs[node];
            pair->key = (char[]){ "0:1:stage" };
            pair->subject = WEIR_SUBJECT_STAGE;
            pair->sides[side] = all;
            pair->batches[side] = runs->batches[node][side];
            pair->num_batches[side] = NUM_LAPS;
            pair->fewest[side] = 4;
        }
    runs->comparison.pairs = runs->pairs;
    runs->comparison.num_pairs = (size_t)num_nodes;
}

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

/* How many of the pairs of runs have a clear difference in any row. *num_rows: rows that have a chance. */
static int count_clear(int num_nodes, double pace, size_t *num_rows)
{
    static invented_runs runs;
    int num_clear = 0;
    for (int i = 0; i < NUM_PAIRS; i++) {
        bool is_clear = false;
        invent_runs(&runs, num_nodes, pace);
        comparison_judge(&runs.comparison);
        *num_rows = 0;
        for (size_t j = 0; j < runs.comparison.num_rows; j++) {
            is_clear |= runs.comparison.rows[j].verdict >= VERDICT_DIFFERENT;
            *num_rows += isnan(runs.comparison.rows[j].chance) ? 0 : 1;
        }
        num_clear += is_clear;
        free(runs.comparison.rows);
    }
    return num_clear;
}

/* Three standard errors around a share. */
static void assert_share(const char *what, int count, double low, double high)
{
    double below = low * NUM_PAIRS - 3 * sqrt(low * (1 - low) * NUM_PAIRS),
           above = high * NUM_PAIRS + 3 * sqrt(high * (1 - high) * NUM_PAIRS);
    if (count < below || count > above)
        fail_msg("%s: %d of %d, instead of %.0f to %.0f", what, count, NUM_PAIRS, below, above);
}

/* One measure by itself: its interval misses the truth in 5 %. */
TEST_CASE(a_measure_of_equal_runs_differs_in_5_percent)
{
    static invented_runs runs;
    int num_clear = 0;
    for (int i = 0; i < NUM_PAIRS; i++) {
        invent_runs(&runs, 1, 1);
        num_clear += comparison_compare(&runs.pairs[0], "tasks_per_s").verdict >= VERDICT_DIFFERENT;
    }
    assert_share("tasks_per_s", num_clear, 0.05, 0.05);
}

/* However many there are. Some of them say the same, so that the share may be lower than 5 %. */
TEST_CASE(equal_runs_differ_in_5_percent_at_most_among_all_measures)
{
    size_t num_rows;
    for (int num_nodes = 1; num_nodes <= NUM_NODES; num_nodes *= NUM_NODES) {
        int num_clear = count_clear(num_nodes, 1, &num_rows);
        assert_true(num_rows >= (size_t)(4 * num_nodes));
        assert_share("any measure", num_clear, 0.015, 0.05);
    }
}

TEST_CASE(runs_that_differ_by_a_quarter_are_told_among_all_measures)
{
    size_t num_rows;
    assert_in_range(count_clear(NUM_NODES, 1.25, &num_rows), NUM_PAIRS * 95 / 100, NUM_PAIRS);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
