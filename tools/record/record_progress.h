/* The progress line of a recording: files done, total, rate, remaining time, failures. One per process. */
#ifndef TOOLS_RECORD_RECORD_PROGRESS_H
#define TOOLS_RECORD_RECORD_PROGRESS_H

#include <weir/pipeline.h>

#include "tools/record/record_inputs.h"

/*
 * Starts. Counts the files on a detached thread, because counting a large folder takes a while. So the inputs must
 * live as long as the process. inputs NULL: the number of files is not known beforehand.
 */
void record_progress_start(const record_inputs *inputs, uint32_t epochs);

/* How long to wait for a result before the line must be redrawn; -1 = no limit. */
int record_progress_interval_ms(void);

/* Draws the line, at most once per such interval, and records the number of files once it is known. */
void record_progress_update(weir_pipeline *pipeline);

/* Removes the line. */
void record_progress_end(void);

#endif
