/* A child process with a socket to it. Internal. One thread at a time. */
#ifndef STAGES_ISOLATE_CHILD_PROCESS_H
#define STAGES_ISOLATE_CHILD_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stages/isolate/sandbox.h"

/* All-zero: not started. */
typedef struct isolated_process {
    pid_t pid;        /* 0 = not started, or ended */
    int fd;           /* of the socket */
    int64_t cpu_ns;   /* CPU time that has been reported */
    int64_t delay_ns; /* the same for its waiting for a CPU */
} isolated_process;

/* Starts the program, which gets the other end of the socket as ISOLATED_FD, and a part of the environment; with
   a sandbox, its standard input is empty. 0, or an errno value. */
int weir__isolated_process_start(isolated_process *process, const char *program, sandbox_kind sandbox);

/* The CPU time of the child since the last call, and for how long it waited for a CPU meanwhile. */
int64_t weir__isolated_process_cpu_ns(isolated_process *process);
int64_t weir__isolated_process_delay_ns(isolated_process *process);

/* Kills it and waits for its end. A process that the kernel does not end at once (it hangs in a file system) is left
   to a thread. Does nothing if it is not started. */
void weir__isolated_process_end(isolated_process *process);

/* The same for one that has ended by itself; describes how. Returns the status of the failure. */
int weir__isolated_process_tell_end(isolated_process *process, const char *program, char *text, size_t text_bytes);

#endif
