/* The lengths of steps of a training loop with results of a loader and with replayed ones. Internal. */
#ifndef STAGES_CACHE_STEP_TIMES_H
#define STAGES_CACHE_STEP_TIMES_H

#include <weir/headspace.h>

/* Welford's sums. All-zero is none. */
typedef struct weir_step_times {
    uint64_t num_steps;
    double mean_s;
    double squares; /* of the distances from the mean */
} weir_step_times;

void weir__step_times_add(weir_step_times *times, double step_s);

weir_headspace_result weir__step_times_compare(const weir_step_times *loader, const weir_step_times *replayed);

/* Fills result->text. */
void weir__step_times_describe(weir_headspace_result *result);

#endif
