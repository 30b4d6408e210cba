/* One frame of `weir watch`: the current state of a run, as lines of text. */
#ifndef TOOLS_FRAME_H
#define TOOLS_FRAME_H

#include <stdio.h>

#include <weir/query.h>

/*
 * Writes the frame of the run that the filter selects; lines have at most `width` characters. now: Unix time.
 * WEIR_OK; WEIR_ENOTFOUND if there is no such run.
 */
int frame_write(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t now_unix_ns, int width,
                weir_error *error);

/* The same as one JSON object: the totals of the run, and last_lap with those of its latest lap. */
int frame_write_json(FILE *out, weir_reader *reader, const weir_filter *filter, int64_t now_unix_ns,
                     weir_error *error);

#endif
