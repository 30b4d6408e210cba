/*
 * The samples of functions of a run as records. When a lap ends, there is a record of how many samples each of its
 * stacks has. Before it come the functions of these stacks that the run does not have yet. Stack 0 counts the samples
 * that were lost. One thread at a time.
 */
#ifndef STATS_RECORD_STACK_RECORDER_H
#define STATS_RECORD_STACK_RECORDER_H

#include "stats/record/record.h"

typedef struct weir_stack_recorder weir_stack_recorder;

/* Starts to sample. The records go to `taker`, which is the first member of its observer. NULL with *error filled: WEIR_EBUSY =
   the program uses SIGPROF. */
weir_stack_recorder *weir__stack_recorder_new(weir_record_taker *taker, weir_error *error);

/* NULL is fine. */
void weir__stack_recorder_free(weir_stack_recorder *recorder);

/* A run starts: it has no functions yet. */
void weir__stack_recorder_start(weir_stack_recorder *recorder);

/* Tells the recorder that this lap has ended. */
void weir__stack_recorder_end_lap(weir_stack_recorder *recorder, const weir_lap *lap);

/* The run has ended: samples that came late for their lap are in the last one. */
void weir__stack_recorder_end(weir_stack_recorder *recorder);

#endif
