/*
 * Tables that describe the fields of a struct: a row for each, with its kind and what it may say. They are for structs that come
 * from outside: configs, which a program gives, and messages, whose other side may be a decoder that a file has broken. A
 * receiver takes no struct as it comes: it takes each field whose rule holds. Internal. Pure; any thread.
 *
 *     #define POINT_FIELDS(FIELD, type) \
 *         FIELD(type, x, SIGNED, -10, 10) \
 *         FIELD(type, name, STRING, 0, 0)
 *     DEFINE_STRUCT_RULES(point_rules, point, "point", POINT_FIELDS);
 *
 * A struct with a field that has no row, or with a row twice, does not compile.
 */
#ifndef STAGES_CONFIG_FIELD_RULES_H
#define STAGES_CONFIG_FIELD_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/status.h>

#include "common/sibling.h"

typedef enum field_kind {
    FIELD_OURS = 1, /* a pointer, or what the receiver computes: neither sent nor taken */
    FIELD_UNSIGNED, /* from lowest to highest */
    FIELD_SIGNED,   /* the same */
    FIELD_ENUM,     /* from 0 to highest; lowest is the text of their names: "WEIR_RESIZE_…" */
    FIELD_REAL,     /* a double from lowest to highest */
    FIELD_TEXT,     /* an array with a NUL in it; printable ASCII */
    FIELD_STRUCT,   /* of the rules `inner` */
    /* Pointers, which are 0 in a copy; who copies the struct copies what they point to: */
    FIELD_STRING, /* a text; NULL = none */
    FIELD_LIST,   /* int64_t values; another field is their number */
    FIELD_CONFIG, /* a struct of the rules `inner`; another field is the size that its giver knows; NULL = all of it is 0 */
} field_kind;

typedef struct field_rule {
    const char *name;
    size_t offset, size_bytes;
    field_kind kind;
    int64_t lowest; /* of numbers */
    uint64_t highest;
    const char *values;               /* the names of an enum's values */
    const struct struct_rules *inner; /* of a struct or config */
    size_t count_offset;              /* of a list's number or a config's size, a size_t */
} field_rule;

typedef struct struct_rules {
    const char *name;
    const field_rule *fields;
    size_t num_fields, size_bytes;
} struct_rules;

/* Copies what is to be sent: all other bytes of *to, those between the fields included, are 0. */
WEIR_SIBLING_API void weir__rules_copy(const struct_rules *rules, void *to, const void *from);

/* Copies what another process has sent. NULL; or the name of a field that breaks its rule, and *to is not to be used. */
WEIR_SIBLING_API const char *weir__rules_take(const struct_rules *rules, void *to, const void *from);

/* Do the numbers of what a program gives obey their rules? WEIR_OK, or WEIR_EINVAL with *error filled. */
int weir__rules_check(const struct_rules *rules, const void *given, weir_error *error);

/* What a field that is a pointer points to; NULL for any other field. */
WEIR_SIBLING_API const void *weir__rule_pointer(const field_rule *rule, const void *field);

/* For a list in the struct: the number of its values. For a config in it: its size. */
WEIR_SIBLING_API size_t weir__rule_count(const field_rule *rule, const void *in);

/* Sets the pointer in the struct and, unless it is a string, that number. */
WEIR_SIBLING_API void weir__rule_point(const field_rule *rule, void *in, const void *to, size_t count);

/* ---- the tables ----------------------------------------------------------------------------------------------------- */

#define FIELD_RULE_OURS(type, low, high)     FIELD_OURS, 0, 0, NULL, NULL, 0
#define FIELD_RULE_OURS_STRUCT               FIELD_RULE_OURS
#define FIELD_RULE_UNSIGNED(type, low, high) FIELD_UNSIGNED, (low), (high), NULL, NULL, 0
#define FIELD_RULE_SIGNED(type, low, high)   FIELD_SIGNED, (low), (high), NULL, NULL, 0
#define FIELD_RULE_ENUM(type, names, high)   FIELD_ENUM, 0, (high), (names), NULL, 0
#define FIELD_RULE_REAL(type, low, high)     FIELD_REAL, (low), (high), NULL, NULL, 0
#define FIELD_RULE_TEXT(type, low, high)     FIELD_TEXT, 0, 0, NULL, NULL, 0
#define FIELD_RULE_STRUCT(type, rules, high) FIELD_STRUCT, 0, 0, NULL, (rules), 0
#define FIELD_RULE_STRING(type, low, high)   FIELD_STRING, 0, 0, NULL, NULL, 0
#define FIELD_RULE_LIST(type, count, high)   FIELD_LIST, 0, 0, NULL, NULL, offsetof(type, count)
#define FIELD_RULE_CONFIG(type, rules, size) FIELD_CONFIG, 0, 0, NULL, (rules), offsetof(type, size)
#define FIELD_RULE(type, name, kind, lowest, highest) \
    { #name, offsetof(type, name), sizeof(((type *)NULL)->name), FIELD_RULE_##kind(type, lowest, highest) },

/* A struct of which each field in its table is initialised has no other one … */
#define FIELD_ZERO_OURS     0
#define FIELD_ZERO_UNSIGNED 0
#define FIELD_ZERO_SIGNED   0
#define FIELD_ZERO_ENUM     0
#define FIELD_ZERO_REAL     0
#define FIELD_ZERO_TEXT     ""
#define FIELD_ZERO_STRUCT \
    { \
        0 \
    }
#define FIELD_ZERO_OURS_STRUCT                        FIELD_ZERO_STRUCT
#define FIELD_ZERO_STRING                             NULL
#define FIELD_ZERO_LIST                               NULL
#define FIELD_ZERO_CONFIG                             NULL
#define FIELD_ZERO(type, name, kind, lowest, highest) FIELD_ZERO_##kind,

/* … and none is in it twice. */
#define FIELD_MEMBER(type, name, kind, lowest, highest) char name;

#define DEFINE_STRUCT_RULES(symbol, type, title, FIELDS) \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \"-Wmissing-field-initializers\"") \
        _Pragma("GCC diagnostic ignored \"-Wmissing-braces\"") _Static_assert( \
            sizeof((type){ FIELDS(FIELD_ZERO, type) }) != 0, "a rule for each field"); \
    _Pragma("GCC diagnostic pop") _Static_assert(sizeof(struct { FIELDS(FIELD_MEMBER, type) }) != 0, \
                                                 "one rule each"); \
    static const field_rule symbol##_fields[] = { FIELDS(FIELD_RULE, type) }; \
    const struct_rules symbol = { title, symbol##_fields, sizeof symbol##_fields / sizeof symbol##_fields[0], \
                                  sizeof(type) }

#endif
