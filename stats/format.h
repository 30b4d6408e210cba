/* Readable values: few digits, a unit. Also compiled into the weir command. */
#ifndef WEIR_FORMAT_H
#define WEIR_FORMAT_H

#include <stdio.h>

/* Large enough for any of the texts below. */
enum { WEIR_FORMAT_BYTES = 32 };

/* Three digits and a unit: "2.54 s", "41.7 ms", "820 ns"; "0 s". */
void weir_text_format_time(char text[WEIR_FORMAT_BYTES], double seconds);

/* "1.50 MB" */
void weir_text_format_bytes(char text[WEIR_FORMAT_BYTES], double bytes);

#endif
