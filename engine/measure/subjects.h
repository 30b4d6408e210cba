/* What a pipeline measures: stages with their queues, the pools, the process, the machine. Each lap has metrics of them. */
#ifndef ENGINE_MEASURE_SUBJECTS_H
#define ENGINE_MEASURE_SUBJECTS_H

#include "engine/state/run_state.h"

typedef struct weir__subject {
    weir_subject subject;
    const char *name, *kind;
    uint64_t capacity;
    const atomic_uint *threads;   /* of a pool; NULL = see capacity */
    size_t num_times, first_time; /* histograms, in the order of its table of metrics */
} weir__subject;

/* Immutable after init. */
typedef struct weir__subjects {
    weir__subject *all; /* those of the process and the machine are the last two */
    uint32_t count;
    size_t num_times; /* histograms of a lap; the last one is that of steps */
    char process_name[32], machine_name[32];
} weir__subjects;

/* Makes those of the pipeline, and numbers its nodes and pools. WEIR_OK or WEIR_ENOMEM. */
int weir__subjects_init(weir__subjects *subjects, weir_pipeline *pipeline);
void weir__subjects_destroy(weir__subjects *subjects);

#endif
