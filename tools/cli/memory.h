/* Memory of the programs. Where there is none left, they say so and exit with status 1, so nobody checks for NULL. */
#ifndef TOOLS_CLI_MEMORY_H
#define TOOLS_CLI_MEMORY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

void *memory_check(void *memory);                     /* what was got elsewhere; NULL = there was none left */
void *memory_get(size_t count, size_t element_bytes); /* zeroed */
char *memory_copy(const char *text);
char *memory_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *memory_format_list(const char *format, va_list values) __attribute__((format(printf, 1, 0)));

/* Room for one more element behind `count` of them. */
void *memory_grow(void *array, size_t count, size_t element_bytes);

/* A file in memory: *text is there after memory_file_close(), and is the caller's. */
FILE *memory_file_open(char **text, size_t *size);
void memory_file_close(FILE *file);

#endif
