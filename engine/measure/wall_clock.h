/* The wall clock of a pipeline's laps. Before the service thread starts, and on it. */
#ifndef ENGINE_MEASURE_WALL_CLOCK_H
#define ENGINE_MEASURE_WALL_CLOCK_H

#include "engine/state/run_state.h"

typedef struct weir__wall_clock {
    int64_t offset_ns; /* wall clock minus monotonic clock */
    int64_t asleep_ns; /* how long the machine had slept when that was measured */
} weir__wall_clock;

/* The wall-clock time at the monotonic time at_ns. An event of the pipeline tells that the clock was set. */
int64_t weir__wall_clock_at_ns(weir__wall_clock *clock, weir_pipeline *pipeline, int64_t at_ns);

#endif
