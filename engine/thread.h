/* Threads of the engine: with a name, and without the program's signals. */
#ifndef WEIR_THREAD_H
#define WEIR_THREAD_H

#include <uv.h>

enum { THREAD_NAME_BYTES = 16 /* as Linux has it */ };

/* Starts a thread in which all signals are blocked, so that the program's handlers run on its own threads. The name, cut
   to 15 bytes, is what ps, gdb and perf show. 0 or a UV_ error. */
int weir_thread_start(uv_thread_t *thread, const char *name, uv_thread_cb run, void *argument);

#endif
