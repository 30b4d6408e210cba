/*
 * A file of events: Chrome's JSON array, whose closing bracket may be missing by definition. It only grows, so the file
 * of a killed program can be opened. With ".gz" at the end of its name, each write is a gzip member of its own.
 *
 * It has no name (or a hidden one) at first. A live trace gets its name with the first events, so it can then be
 * read. A merge gets its name when it is closed, so it is there whole or not at all. Until then an older file stays.
 *
 * With a limit it holds the last events only: when the file has half of that size, it becomes PATH.old, and a new one
 * begins; closing joins the two.
 */
#ifndef STATS_EXPORT_TRACE_OUTPUT_H
#define STATS_EXPORT_TRACE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/export/trace_text.h"

typedef struct weir_trace_output weir_trace_output;

/* head: events with which the file begins (names of tracks), not empty; it must outlive the output. max_bytes: 0 = no
   limit. is_live: it gets its name with the first events. An existing trace is replaced,
   with `force` any file; a link, too. Returns 0 or an
   errno value: ENOTSUP = compressed, but zlib is missing; EINVAL = not a regular file. */
int weir__trace_output_open(const char *path, const weir_trace_text *head, uint64_t max_bytes, bool is_live,
                            bool force, weir_trace_output **output);

/* Appends events, each with ",\n" at its end. 0 or an errno value; after a failure, which later calls return again, the
   file ends with the previous write. */
int weir__trace_output_write(weir_trace_output *output, const weir_trace_text *events);

/* Whether the file has reached half of its limit when so much has been added; then a new one can begin. The second
   returns 0 or an errno value. */
bool weir__trace_output_is_full(const weir_trace_output *output, size_t length);
int weir__trace_output_turn_over(weir_trace_output *output);

const char *weir__trace_output_path(const weir_trace_output *output);

/* Writes the closing bracket. 0, or the errno value of the first failure; has_failed: the caller's. A file that has no
   name yet gets it, unless something failed or no events were written; then it is removed. NULL is fine. */
int weir__trace_output_close(weir_trace_output *output, int has_failed);

#endif
