/*
 * Ctrl-C that ends a run in good order: the first SIGINT or SIGTERM asks the pipeline to stop, so that main() goes on to
 * its summary; the second one kills the process as if nobody had asked. One per process. Both are
 * heeded even where they were ignored at the start, as in a script's background job: whoever sends them means it.
 *
 * SIGUSR1 has a snapshot of the pipeline printed.
 */
#ifndef EXAMPLES_INTERRUPT_H
#define EXAMPLES_INTERRUPT_H

#include <weir/pipeline.h>

/*
 * Call before any thread is started: they all inherit that these signals are not for them. print (NULL = SIGUSR1 is
 * passed over) gets the text of a snapshot, on a thread of its own. 0 or -errno.
 */
int interrupt_start(void (*print)(const char *text));

/* Which pipeline to stop; at once if the signal has already come. NULL = none: call it so before weir_pipeline_free(). */
void interrupt_stops(weir_pipeline *pipeline);

/* Ends the watch. Returns the signal that came first, 0 = none. */
int interrupt_end(void);

#endif
