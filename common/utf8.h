/* External text in formats that only allow UTF-8. */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stddef.h>

/* The number of bytes of the character at `text`, which is NUL-terminated; 0 = not valid UTF-8. */
size_t weir__utf8_length(const char *text);

#endif
