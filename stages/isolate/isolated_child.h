/*
 * A child process that runs an operation, as its parent sees it. While it works, the thread that has asked it waits for its
 * answer. Internal. One thread at a time for each child.
 *
 * States: none ─ start() ─▶ idle ─ send() ─▶ asked ─ await() ─▶ idle. A stop, an end of the process, and an answer that makes no
 * sense lead from each state to none; then the failure says why.
 */
#ifndef STAGES_ISOLATE_ISOLATED_CHILD_H
#define STAGES_ISOLATE_ISOLATED_CHILD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/isolated.h>

#include "stages/ffmpeg/input.h"
#include "stages/isolate/child_process.h"
#include "stages/isolate/isolated_config.h"
#include "stages/isolate/message.h"
#include "stages/isolate/sandbox.h"

/* What a child is started with. Immutable but for the count, so any number of children can use it. */
typedef struct isolated_setup {
    isolated_message message; /* the first one to each child */
    isolated_shape shape;     /* of the results */
    weir_input_config input;  /* as which this process opens files for the child; without its strings */
    char *program;            /* that runs in it */
    bool no_sandbox;
    atomic_uint num_holders; /* the last one frees it */
} isolated_setup;

/* For whom a child works. */
typedef struct isolated_waiter {
    bool (*should_stop)(void *self); /* asked while it works; true: it is killed. NULL = never */
    /* The CPU time it has used since the last call, and how long it has waited for a CPU. NULL = nobody wants to know */
    void (*on_time)(void *self, int64_t cpu_ns, int64_t delay_ns);
    void *self;
} isolated_waiter;

/* All-zero: none. */
typedef struct isolated_child {
    isolated_process process;
    weir_shared_data *blocks[WEIR_SHARED_BLOCKS]; /* of this child; the results that use them hold them, too */
    weir_local_host host;                         /* opens files that may hang */
    sandbox_kind sandbox;                         /* of the process */
} isolated_child;

/* op's own config, with this library's size. WEIR_OK, and the caller frees *setup; or the failure with *error filled. */
int weir__isolated_setup_new(const weir_isolated_config *isolated, const weir_op *op, const void *config,
                             isolated_setup **setup, weir_error *error);
/* One more holder, which frees it, too. */
void weir__isolated_setup_hold(isolated_setup *setup);

/* NULL is fine. */
void weir__isolated_setup_free(isolated_setup *setup);

/* Opens the file that the item names, puts what a child must know of it, and returns which sandbox the child needs. The file is to
   be closed when the message has been sent. */
sandbox_kind weir__isolated_put_file(isolated_child *child, const isolated_setup *setup, isolated_message *request,
                                     weir_local_file *file, const weir_item *named, const isolated_waiter *waiter);

/* Starts a process if there is none. WEIR_OK, or the failure with *error filled. */
int weir__isolated_child_start(isolated_child *child, const isolated_setup *setup, sandbox_kind sandbox,
                               const isolated_waiter *waiter, weir_error *error);

/* The child's next message that is not for the log. WEIR_OK, or the failure with *error filled; free it in any case. */
int weir__isolated_child_await(isolated_child *child, const isolated_setup *setup, const isolated_waiter *waiter,
                               isolated_message *message, weir_error *error);

/* Failures: with *error filled, their status. The one that the child reports in its message; a message that makes no sense, after
   which the child is ended; and errno of a connection that was lost. */
int weir__isolated_child_reported(isolated_child *child, isolated_message *message, weir_error *error);
int weir__isolated_child_nonsense(isolated_child *child, const char *about, weir_error *error);
int weir__isolated_child_lost(isolated_child *child, const isolated_setup *setup, int failure, weir_error *error);

/* Kills the process, if there is one. */
void weir__isolated_child_end(isolated_child *child);

/* Ends it, and frees what it has. */
void weir__isolated_child_free(isolated_child *child);

#endif
