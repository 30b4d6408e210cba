/* Text from outside, where only UTF-8 is allowed. */
#ifndef WEIR_UTF8_H
#define WEIR_UTF8_H

#include <stddef.h>

/* How many bytes the character at `text` takes, which is NUL-terminated; 0 = what stands there is no UTF-8. */
size_t weir_utf8_length(const char *text);

#endif
