/*
 * What each field of a message may say. The other side may be a decoder that a file has broken, so a receiver takes no struct
 * as it comes: it takes each field whose rule holds, and refuses the message otherwise. A field without a rule does not
 * compile (message_rules.c). Internal. Pure; any thread.
 */
#ifndef STAGES_ISOLATE_MESSAGE_RULES_H
#define STAGES_ISOLATE_MESSAGE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum field_kind {
    FIELD_OURS = 1, /* a pointer, or what the receiver computes: neither sent nor taken */
    FIELD_UNSIGNED,
    FIELD_SIGNED,
    FIELD_TEXT, /* an array with a NUL in it; printable ASCII */
    FIELD_STRUCT,
} field_kind;

typedef struct field_rule {
    const char *name;
    size_t offset, size_bytes;
    field_kind kind;
    int64_t lowest; /* of numbers */
    uint64_t highest;
    const struct struct_rules *inner; /* of a struct */
} field_rule;

typedef struct struct_rules {
    const char *name;
    const field_rule *fields;
    size_t num_fields, size_bytes;
} struct_rules;

extern const struct_rules weir__head_rules, weir__cost_rules, weir__frames_rules, weir__audio_rules,
    weir__entry_rules;

/* Copies what is to be sent: all other bytes of *to, those between the fields included, are 0. */
void weir__rules_copy(const struct_rules *rules, void *to, const void *from);

/* Copies what another process has sent. NULL; or the name of a field that breaks its rule, and *to is not to be used. */
const char *weir__rules_take(const struct_rules *rules, void *to, const void *from);

#endif
