/* Types of items: whether what one stage makes is what the next one takes. */
#ifndef WEIR_TYPES_H
#define WEIR_TYPES_H

#include <stdbool.h>

typedef enum weir_type_match {
    WEIR_TYPES_FIT,
    WEIR_TYPES_MAY_FIT, /* some do, or some are known only when the item comes */
    WEIR_TYPES_DIFFER,
} weir_type_match;

/* Is `type` (may be NULL) one of them? */
bool weir_types_hold(const char *types, const char *type);

/* Do they name exactly one? NULL does not. */
bool weir_types_is_one(const char *types);

weir_type_match weir_types_match(const char *takes, const char *makes);

/* All of both, to be freed. NULL = out of memory. */
char *weir_types_unite(const char *one, const char *other);

#endif
