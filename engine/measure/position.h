/* Where the consumer is; consumer_position.c moves it. */
#ifndef ENGINE_MEASURE_POSITION_H
#define ENGINE_MEASURE_POSITION_H

#include "engine/state/run_state.h"

/* Bytes of the name of a mode or phase. */
enum { MAX_MARK = 64 };

/* Guarded by pipeline->lock. */
typedef struct weir__position {
    char mode[MAX_MARK], phase[MAX_MARK]; /* "" = not marked */
    bool phase_named;                     /* by weir_pipeline_mark_phase() */
    bool steps_marked;                    /* ever */
    bool in_epoch;                        /* the consumer has got an item of the epoch, but not its end: */
    uint64_t epoch;
    bool has_step; /* a step has begun, and not ended: */
    int64_t step;
    int64_t step_start;    /* on the clock of spans; 0 = no step */
    uint32_t steps_in_lap; /* with steps_per_lap: marked since a step ended a lap */
} weir__position;

#endif
