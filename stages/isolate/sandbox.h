/*
 * The wall around a child of weir_isolated, and what it gets of the environment. Internal.
 *
 * States of a child: open (it reads its config, loads libraries, starts its threads) -> walled (from READY on; it has
 * had no input from outside yet). There is no way back. The parent opens each file and passes the descriptor with the
 * request, so a walled child needs no file system. One that reads URLs needs the network; it serves URLs only.
 *
 *                                      SANDBOX_FILES    SANDBOX_URLS
 *   memory, threads, time, own signals  allowed          allowed
 *   descriptors that it has             read, write      the same; ioctl() only as sockets need it
 *   open, stat and the like             EACCES           below the folders of system libraries and certificates and
 *                                                        the ca_file, to read; the rest: EACCES. Where the kernel has
 *                                                        no Landlock, all that the program can read
 *   sockets                             killed           internet and netlink only; listening: ENOSYS
 *   fork, exec, ptrace, kill of others, killed           killed
 *   memory of other processes
 *   all other system calls              ENOSYS           ENOSYS
 *   those of i386 and x32               killed           killed
 *
 * Killed is SIGSYS, as soon as the call is made. The filter is an allow-list and applies to all threads; besides it the
 * process has no capabilities, cannot gain privileges, and cannot be dumped or traced.
 */
#ifndef STAGES_ISOLATE_SANDBOX_H
#define STAGES_ISOLATE_SANDBOX_H

#include <stdbool.h>

typedef enum sandbox_kind { SANDBOX_NONE = 0, SANDBOX_FILES, SANDBOX_URLS } sandbox_kind;

/* Takes away the capabilities of the calling thread, and of those that it starts later; for URLs restricts their files,
   too. `ca_file` may be NULL. */
void weir__sandbox_limit_thread(sandbox_kind kind, const char *ca_file);

/* Restricts all threads of the process, after the call above. False, with errno set; ENOTSUP: there is no wall here. */
bool weir__sandbox_enter(sandbox_kind kind);

/* Why there is none: of the errno value above. Valid until the thread's next call of strerror(). */
const char *weir__sandbox_complaint(int failure);

/* The variables of `environment` that a child gets: an array to be freed with free(); the texts are not copied. NULL =
   out of memory. */
char **weir__sandbox_environment(char *const *environment, sandbox_kind kind);

#endif
