/* What more slots bring to a scene, measured: the truth where it cannot be computed. */
#ifndef BENCH_VERDICT_GAIN_MEASURE_H
#define BENCH_VERDICT_GAIN_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/verdict/scene.h"

typedef struct measured_gain {
    double gain, low, high; /* with its 95 % interval */
} measured_gain;

/*
 * Runs the scene with its own settings and with changed ones, in turn in one run: A B B A A B B A. So the load of the
 * machine is the same for both. The change is twice the slots of some stages (bit i of `doubled`: stage i), with as many
 * more threads of the pool.
 * items_per_s and task_s: what to expect, which sets how long each setting runs. Returns false if it could not be run, or
 * would take longer than half a minute.
 */
bool gain_measure(const scene *of, uint32_t doubled, double items_per_s, double task_s, measured_gain *found);

#endif
