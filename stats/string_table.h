/* Texts, each kept once and known by its number. One thread at a time. Also compiled into the weir command. */
#ifndef WEIR_STRING_TABLE_H
#define WEIR_STRING_TABLE_H

#include <stdint.h>

typedef struct weir_string_table weir_string_table;

/* NULL = out of memory. */
weir_string_table *weir_string_table_new(void);
void weir_string_table_free(weir_string_table *texts);

/* The number of a text, from 0 on in the order in which they came; -1 = out of memory. Quick for texts that come in
   rounds. */
int32_t weir_string_table_number(weir_string_table *texts, const char *text);

/* The number of a text that is there; -1 = it is not. */
int32_t weir_string_table_find(const weir_string_table *texts, const char *text);

/* Valid until the texts are freed. */
const char *weir_string_table_at(const weir_string_table *texts, int32_t number);

#endif
