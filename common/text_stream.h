/*
 * A stream into memory, like that of open_memstream(), which loses what it has no memory for and says nothing: here
 * fclose() fails then.
 */
#ifndef COMMON_TEXT_STREAM_H
#define COMMON_TEXT_STREAM_H

#include <stdio.h>

/* After fclose() *text has what was written, *size bytes and a 0, to be freed; if fclose() fails, NULL. NULL = no memory. */
FILE *weir__text_stream(char **text, size_t *size);

#endif
