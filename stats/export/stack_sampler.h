/*
 * A profile of the functions of all threads of the process: the stack of each thread after each 1/99 s of its CPU time. Each
 * second it adds lines to a text file: "SECOND;THREAD;OUTER;…;INNER SAMPLES", which tools for folded stacks read.
 */
#ifndef STATS_EXPORT_STACK_SAMPLER_H
#define STATS_EXPORT_STACK_SAMPLER_H

#include <weir/status.h>

/* One for the process: a further start, whatever its path, counts with the first, and the last stop ends it. It uses SIGPROF, and
   refuses (WEIR_EBUSY) if the program does. A file that exists gets a number. Any thread. */
int weir__stack_sampler_start(const char *path, weir_error *error);
void weir__stack_sampler_stop(void);

#endif
