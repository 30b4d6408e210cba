/* Arrays that grow by one element at a time. */
#ifndef COMMON_ARRAY_H
#define COMMON_ARRAY_H

#include <stdlib.h>

/* Makes room for one more element behind `count` elements. NULL = out of memory; the array stays as it was. */
static inline void *weir__array_grow(void *array, size_t count, size_t element_bytes)
{
    if (count & (count - 1)) /* it has grown at each power of two */
        return array;
    return realloc(array, (count ? 2 * count : 1) * element_bytes);
}

#endif
