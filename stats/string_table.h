/* Texts, each kept once and known by its number. One thread at a time. Also compiled into the weir command. */
#ifndef WEIR_TEXTS_H
#define WEIR_TEXTS_H

#include <stdint.h>

typedef struct weir_texts weir_texts;

/* NULL = out of memory. */
weir_texts *weir_texts_new(void);
void weir_texts_free(weir_texts *texts);

/* The number of a text, from 0 on in the order in which they came; -1 = out of memory. Quick for texts that come in
   rounds. */
int32_t weir_texts_number(weir_texts *texts, const char *text);

/* The number of a text that is there; -1 = it is not. */
int32_t weir_texts_find(const weir_texts *texts, const char *text);

/* Valid until the texts are freed. */
const char *weir_texts_at(const weir_texts *texts, int32_t number);

#endif
