/* The names of functions, by their addresses. */
#ifndef STATS_RECORD_STACK_NAMES_H
#define STATS_RECORD_STACK_NAMES_H

/*
 * The function that a call returns to at this address; where its file does not name it, the file: "[libc.so.6]". Free with
 * free(). NULL = not known, or out of memory. One thread at a time; not in a signal handler.
 */
char *weir__stack_name(const void *return_address);

#endif
