/* Threads that call code of the program for the service thread, which must not wait: op->cancel, and the log. */
#ifndef WEIR_CALLERS_H
#define WEIR_CALLERS_H

#include "state.h"

enum { MAX_CALLERS = 16 };

int weir_callers_init(weir_pipeline *pipeline, weir_error *error);
void weir_callers_destroy(weir_pipeline *pipeline);

/* A line about a task that runs very long. */
struct stall_warning {
    struct stall_warning *next;
    char text[1200];
};

/* The service thread: takes the line over. */
void weir_callers_log(weir_pipeline *pipeline, struct stall_warning *warning);

/* The service thread: has what is to be called called, by an idle caller or one more. *due_ns: when to look again. */
void weir_callers_serve(weir_pipeline *pipeline, int64_t *due_ns);

/* The service thread, at the end of the run: returns when all calls have returned. */
void weir_callers_join(weir_pipeline *pipeline);

#endif
