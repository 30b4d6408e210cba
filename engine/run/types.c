/* Types of items: lists of words, as in weir_op.takes and .makes. */
#include "engine/run/types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/item.h>

static const char *next_word(const char **list, size_t *length)
{
    const char *word = *list + strspn(*list, " ");
    *length = strcspn(word, " ");
    *list = word + *length;
    return *length ? word : NULL;
}

static bool has_word(const char *list, const char *wanted, size_t wanted_length)
{
    const char *word;
    size_t length;
    while ((word = next_word(&list, &length)))
        if (length == wanted_length && memcmp(word, wanted, length) == 0)
            return true;
    return false;
}

bool weir__types_hold(const char *types, const char *type)
{
    return type && has_word(types, type, strlen(type));
}

bool weir__types_is_one(const char *types)
{
    return types && types[0] && strcmp(types, WEIR_TYPE_ANY) != 0 && !strchr(types, ' ');
}

weir_type_match weir__types_match(const char *takes, const char *makes)
{
    bool some = false, all = true;
    const char *word;
    size_t length;
    while ((word = next_word(&makes, &length))) {
        bool taken = has_word(takes, word, length);
        bool any = length == strlen(WEIR_TYPE_ANY) && memcmp(word, WEIR_TYPE_ANY, length) == 0;
        some |= taken || any;
        all &= taken;
    }
    return !some ? WEIR_TYPES_DIFFER : all ? WEIR_TYPES_FIT : WEIR_TYPES_MAY_FIT;
}

char *weir__types_unite(const char *one, const char *other)
{
    char *all = malloc(strlen(one) + strlen(other) + 2);
    if (!all)
        return NULL;
    strcpy(all, one);
    const char *word;
    size_t length;
    while ((word = next_word(&other, &length)))
        if (!has_word(all, word, length))
            sprintf(all + strlen(all), "%s%.*s", all[0] ? " " : "", (int)length, word);
    return all;
}
