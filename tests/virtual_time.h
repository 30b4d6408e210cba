/*
 * Time that a test owns. Pipelines run on their real threads, but a task, an experiment and the service thread sleep
 * in virtual time. When all of them sleep, it moves to the next one that wakes up. It stands still as long as one
 * works. So a task that takes 3 ms takes 3 ms exactly, whatever other programs do. A minute of virtual time takes as
 * long as it takes to switch between its tasks.
 *
 * Held constant: tasks that compute. They need a CPU, which this has not; a pipeline whose stages have private threads.
 */
#ifndef TESTS_VIRTUAL_TIME_H
#define TESTS_VIRTUAL_TIME_H

#include <stdint.h>

#include <weir/pipeline.h>

/* From here on, and before any pipeline is built: the time stands still. */
void virtual_time_begin(void);

/* It moves by itself while this pipeline runs. One other thread, which changes or measures something, sleeps before it moves. */
void virtual_time_drive(weir_pipeline *pipeline);

/* Before the pipeline is stopped or freed: whoever sleeps is woken in turn, without waiting for the others. */
void virtual_time_let_go(void);

/* After all pipelines were freed. The real time is back. */
void virtual_time_end(void);

/* The calling thread takes items. It may sleep or wait for one when time moves. */
void virtual_time_consumes(void);

/* Sleeps; what a task is. */
void virtual_time_sleep(int64_t ns);

/* From now on the service thread wakes up so much later than it should. */
void virtual_time_be_late(int64_t ns);

/* Moves the time without anyone asleep. */
void virtual_time_move(int64_t ns);

int64_t virtual_time_ns(void);

/* The process has used so much more CPU time; at first none. */
void virtual_time_compute(int64_t ns);

#endif
