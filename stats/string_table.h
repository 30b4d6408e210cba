/* Texts, each stored once and identified by its number. One thread at a time. */
#ifndef WEIR_STRING_TABLE_H
#define WEIR_STRING_TABLE_H

#include <stdint.h>

typedef struct weir_string_table weir_string_table;

/* NULL = out of memory. */
weir_string_table *weir_string_table_new(void);
void weir_string_table_free(weir_string_table *texts);

/* Adds a text unless it is there. Returns its number, from 0 in the order of addition; -1 = out of memory. Fast for
   texts that repeat in the same order. */
int32_t weir_string_table_number(weir_string_table *texts, const char *text);

/* The number of a text; -1 = not found. */
int32_t weir_string_table_find(const weir_string_table *texts, const char *text);

/* Valid until the texts are freed. */
const char *weir_string_table_at(const weir_string_table *texts, int32_t number);

#endif
