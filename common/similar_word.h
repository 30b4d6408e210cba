/* The word that somebody may have meant. Internal; compiled into each library that uses it. */
#ifndef COMMON_SIMILAR_WORD_H
#define COMMON_SIMILAR_WORD_H

#include <stddef.h>

/* Longer words are similar to none. */
enum { MAX_SIMILAR_BYTES = 32 };

/* The most similar of `count` words (NULL entries are skipped), for "did you mean"; NULL = none is similar. */
const char *weir__most_similar(const char *text, const char *const *words, size_t count);

#endif
