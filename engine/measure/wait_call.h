/* What a sleeping thread waits for, by the system call that it is in. */
#ifndef ENGINE_MEASURE_WAIT_CALL_H
#define ENGINE_MEASURE_WAIT_CALL_H

#include <weir/pipeline.h>

/* WEIR_NUM_WAITS = it is awake: it has a CPU, or waits for one. */
weir_wait weir__wait_of_call(const char *text);

/* What the descriptor of this process leads to. Never waits: it asks the kernel, and no file system. */
weir_wait weir__wait_of_descriptor(int descriptor);

/* Reads the system call of a thread of this process. WEIR_OK; WEIR_ENOTFOUND: there is no such thread, or this system does not
   tell. */
int weir__wait_call_read(int tid, char *text, size_t size);

#endif
