/* Types of items: whether the output of one stage fits the input of the next. */
#ifndef ENGINE_RUN_TYPES_H
#define ENGINE_RUN_TYPES_H

#include <stdbool.h>

typedef enum weir_type_match {
    WEIR_TYPES_FIT,
    WEIR_TYPES_MAY_FIT, /* some do, or some types are known only at run time */
    WEIR_TYPES_DIFFER,
} weir_type_match;

/* Whether `type` (may be NULL) is one of them. */
bool weir__types_hold(const char *types, const char *type);

/* Whether they name exactly one type. NULL does not. */
bool weir__types_is_one(const char *types);

weir_type_match weir__types_match(const char *takes, const char *makes);

/* The union of both; the caller frees it. NULL = out of memory. */
char *weir__types_unite(const char *one, const char *other);

#endif
