#include "tools/cli/memory.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/text_stream.h"

void *memory_check(void *memory)
{
    if (memory)
        return memory;
    fputs("weir: out of memory\n", stderr);
    exit(1);
}

void *memory_get(size_t count, size_t element_bytes)
{
    return memory_check(calloc(count ? count : 1, element_bytes ? element_bytes : 1));
}

char *memory_copy(const char *text)
{
    return memory_check(strdup(text));
}

char *memory_format(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *text = memory_format_list(format, values);
    va_end(values);
    return text;
}

char *memory_format_list(const char *format, va_list values)
{
    char *text = NULL;
    return memory_check(vasprintf(&text, format, values) < 0 ? NULL : text);
}

void *memory_grow(void *array, size_t count, size_t element_bytes)
{
    return memory_check(weir__array_grow(array, count, element_bytes));
}

FILE *memory_file_open(char **text, size_t *size)
{
    return memory_check(weir__text_stream(text, size));
}

void memory_file_close(FILE *file)
{
    if (fclose(file) != 0)
        memory_check(NULL);
}
