/*
 * Reads files of Chrome's trace format event by event, in constant memory: an array or an object with "traceEvents",
 * compressed or not, complete or cut off anywhere.
 */
#ifndef STATS_EXPORT_TRACE_READER_H
#define STATS_EXPORT_TRACE_READER_H

#include <stdbool.h>

typedef struct weir_trace_reader weir_trace_reader;

/* 0 or an errno value; EBADMSG: it is not such a file. */
int weir__trace_reader_open(const char *path, weir_trace_reader **reader);

/* The next event, a JSON object, as a text that is valid until the next call; NULL = no more. */
const char *weir__trace_reader_next(weir_trace_reader *reader);

/* After the last event: the file ended before its array did. */
bool weir__trace_reader_is_cut(const weir_trace_reader *reader);

/* Returns 0, or the errno value of a failure to read, or of missing memory; then events were missing. NULL is fine. */
int weir__trace_reader_close(weir_trace_reader *reader);

#endif
