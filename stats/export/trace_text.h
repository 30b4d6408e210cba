/* A growing text, and JSON's tokens in it. */
#ifndef STATS_EXPORT_TRACE_TEXT_H
#define STATS_EXPORT_TRACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weir_trace_text {
    char *data;
    size_t length, room;
    bool no_memory; /* something is missing */
} weir_trace_text;

void weir__trace_text_free(weir_trace_text *text);

/* What is added while memory is missing is left out as a whole, so that the text stays well-formed. */
void weir__trace_put(weir_trace_text *text, const char *data, size_t length);
void weir__trace_puts(weir_trace_text *text, const char *string);
void weir__trace_put_int(weir_trace_text *text, int64_t number);

/*
 * A format with these values. %d: int64_t. %u: int64_t of nanoseconds, as microseconds with three decimals, exact.
 * %f: double, finite. %j: a string as JSON, with its quotes, always valid UTF-8. %s: a string as it is.
 */
void weir__trace_putf(weir_trace_text *text, const char *format, ...);

/* Writes all of it to this place of an open file. Returns 0 or an errno value. */
int weir__trace_text_write(const weir_trace_text *text, int file, int64_t at);

/* The clock of a file of weir, which follows the bracket: %d is the wall time at time 0, %s other members. */
#define WEIR_TRACE_CLOCK \
    "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"ts\":0,\"name\":\"weir_trace\",\"args\":{\"unix_ns\":%d%s}},\n"

/* An id for arrows: viewers want 64 bits. */
uint64_t weir__trace_hash(const void *data, size_t length, uint64_t seed);

#endif
