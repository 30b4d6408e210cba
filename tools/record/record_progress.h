/* The progress line of a recording: files done and in all, rate, time left, failures. One per process. */
#ifndef RECORD_PROGRESS_H
#define RECORD_PROGRESS_H

#include <weir/pipeline.h>

#include "record_inputs.h"

/*
 * Begins. Counts the files on a detached thread: counting a large folder takes a while, and nobody waits for it. So the
 * inputs must live as long as the process. inputs NULL: the number of files is not known beforehand.
 */
void record_progress_start(const record_inputs *inputs, uint32_t epochs);

/* How long to wait for a result before the line has to be drawn again; -1 = as long as it takes. */
int record_progress_interval_ms(void);

/* Draws the line, but not more often than that, and records the number of files once it is known. */
void record_progress_update(weir_pipeline *pipeline);

/* Removes the line. */
void record_progress_end(void);

#endif
