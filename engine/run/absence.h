/*
 * The credit (speedup.h) with which the calling thread is away with an item that weir_pipeline_next() gave it. A
 * thread is away from one pipeline at a time, the first that it left. That one counts the absence until the thread is
 * back, or the pipeline is freed.
 */
#ifndef ENGINE_RUN_ABSENCE_H
#define ENGINE_RUN_ABSENCE_H

#include "engine/run/speedup.h"

typedef struct weir__absence {
    const weir_pipeline *from; /* NULL = it is away from none */
    weir__credit credit;
} weir__absence;

extern _Thread_local weir__absence weir__absence_of_thread;

/* The pipeline is about to be freed: the calling thread does not come back. */
void weir__absence_forget(const weir_pipeline *pipeline);

#endif
