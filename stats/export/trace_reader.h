/*
 * Reads files of Chrome's trace format event by event, in constant memory: an array or an object with "traceEvents",
 * compressed or not, complete or cut off anywhere. Also compiled into the weir command.
 */
#ifndef WEIR_TRACE_READER_H
#define WEIR_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weir_trace_reader weir_trace_reader;

/* 0 or an errno value; EBADMSG: it is not such a file. */
int weir_trace_reader_open(const char *path, weir_trace_reader **reader);

/* The next event, a JSON object, as a text that is valid until the next call; NULL = no more. */
const char *weir_trace_reader_next(weir_trace_reader *reader);

/* After the last event: the file ended before its array did. */
bool weir_trace_reader_is_cut(const weir_trace_reader *reader);

/* After the last event: 0, or the errno value of a failure to read, or of missing memory; then events are missing. */
int weir_trace_reader_failure(const weir_trace_reader *reader);

void weir_trace_reader_close(weir_trace_reader *reader); /* NULL is fine */

/* A value in the text of an event. */
typedef struct weir_trace_value {
    const char *text; /* NULL = there is none */
    size_t length;
} weir_trace_value;

/* The member of an object. */
weir_trace_value weir_trace_member(const char *object, const char *key);

/* Times from here on are not taken from files: sums of a few smaller ones do not overflow, and Unix times are below it
   until 2043. */
#define WEIR_TRACE_MAX_NS (INT64_MAX / 4)

/* A number of microseconds as nanoseconds, exact if it has up to three decimals; 0 = it is not a number, or too large. */
int64_t weir_trace_value_ns(weir_trace_value value);
int64_t weir_trace_value_int(weir_trace_value value);

/* A JSON string without its quotes and escapes, cut to `size`; "" = it is none. Returns text. */
const char *weir_trace_value_string(weir_trace_value value, char *text, size_t size);

bool weir_trace_value_is(weir_trace_value value, const char *string);

#endif
