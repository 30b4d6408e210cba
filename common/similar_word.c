#include "common/similar_word.h"

#include <string.h>

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* The edit distance: letters added, removed or changed. */
static size_t count_edits(const char *a, const char *b)
{
    size_t row[MAX_SIMILAR_BYTES + 1];
    size_t length = strlen(b);
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t edits = smallest(row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j]));
            diagonal = row[j + 1];
            row[j + 1] = edits;
        }
    }
    return row[length];
}

const char *weir__most_similar(const char *text, const char *const *words, size_t count)
{
    const char *best = NULL;
    size_t length = strlen(text);
    size_t least = length / 3 + 2; /* fewer edits than this: a third of the word, and one more */
    for (size_t i = 0; i < count && length > 1 && length <= MAX_SIMILAR_BYTES; i++) {
        if (!words[i] || strlen(words[i]) > MAX_SIMILAR_BYTES)
            continue;
        size_t edits = count_edits(text, words[i]);
        if (edits < least && edits < strlen(words[i])) {
            least = edits;
            best = words[i];
        }
    }
    return best;
}
