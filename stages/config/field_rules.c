#include "stages/config/field_rules.h"

#include <inttypes.h>
#include <string.h>

/* -- numbers of 1, 4 or 8 bytes */

/* The number, widened without its sign. */
static uint64_t read_unsigned(const void *field, size_t size_bytes)
{
    uint64_t wide = 0;
    uint32_t narrow;
    if (size_bytes == sizeof wide) {
        memcpy(&wide, field, sizeof wide);
    } else if (size_bytes == sizeof narrow) {
        memcpy(&narrow, field, sizeof narrow);
        wide = narrow;
    } else {
        wide = *(const unsigned char *)field;
    }
    return wide;
}

static int64_t read_signed(const void *field, size_t size_bytes)
{
    uint64_t number = read_unsigned(field, size_bytes);
    return size_bytes == sizeof(int32_t) ? (int32_t)(uint32_t)number : (int64_t)number;
}

static double read_real(const void *field)
{
    double number;
    memcpy(&number, field, sizeof number);
    return number;
}

/* The text is shown on terminals and stored, so it must be printable. */
static bool is_printable(const char *text, size_t size_bytes)
{
    size_t length = strnlen(text, size_bytes);
    for (size_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return length < size_bytes;
}

static bool field_holds(const field_rule *rule, const void *field)
{
    switch (rule->kind) {
    case FIELD_ENUM:
    case FIELD_UNSIGNED: {
        uint64_t number = read_unsigned(field, rule->size_bytes);
        return number >= (uint64_t)rule->lowest && number <= rule->highest;
    }
    case FIELD_SIGNED: {
        int64_t number = read_signed(field, rule->size_bytes);
        return number >= rule->lowest && number <= (int64_t)rule->highest;
    }
    case FIELD_REAL: return read_real(field) >= (double)rule->lowest && read_real(field) <= (double)rule->highest;
    case FIELD_TEXT: return is_printable(field, rule->size_bytes);
    case FIELD_OURS:
    case FIELD_STRUCT:
    case FIELD_STRING:
    case FIELD_LIST:
    case FIELD_CONFIG: break;
    }
    return true;
}

/* -- copies */

static bool is_copied(const field_rule *rule)
{
    return rule->kind >= FIELD_UNSIGNED && rule->kind <= FIELD_TEXT;
}

void weir__rules_copy(const struct_rules *rules, void *to, const void *from)
{
    memset(to, 0, rules->size_bytes);
    for (size_t i = 0; i < rules->num_fields; i++) {
        const field_rule *rule = &rules->fields[i];
        char *to_field = (char *)to + rule->offset;
        const char *from_field = (const char *)from + rule->offset;
        if (rule->kind == FIELD_STRUCT)
            weir__rules_copy(rule->inner, to_field, from_field);
        else if (rule->kind == FIELD_TEXT)
            memcpy(to_field, from_field, strnlen(from_field, rule->size_bytes));
        else if (is_copied(rule))
            memcpy(to_field, from_field, rule->size_bytes);
    }
}

const char *weir__rules_take(const struct_rules *rules, void *to, const void *from)
{
    memset(to, 0, rules->size_bytes);
    for (size_t i = 0; i < rules->num_fields; i++) {
        const field_rule *rule = &rules->fields[i];
        char *to_field = (char *)to + rule->offset;
        const char *from_field = (const char *)from + rule->offset;
        const char *broken = NULL;
        if (rule->kind == FIELD_STRUCT)
            broken = weir__rules_take(rule->inner, to_field, from_field);
        else if (!field_holds(rule, from_field))
            broken = rule->name;
        else if (is_copied(rule))
            memcpy(to_field, from_field, rule->size_bytes);
        if (broken)
            return broken;
    }
    return NULL;
}

/* -- pointers */

const void *weir__rule_pointer(const field_rule *rule, const void *field)
{
    const void *pointer = NULL;
    if (rule->kind == FIELD_STRING || rule->kind == FIELD_LIST || rule->kind == FIELD_CONFIG)
        memcpy(&pointer, field, sizeof pointer);
    return pointer;
}

size_t weir__rule_count(const field_rule *rule, const void *in)
{
    size_t count;
    memcpy(&count, (const char *)in + rule->count_offset, sizeof count);
    return count;
}

void weir__rule_point(const field_rule *rule, void *in, const void *to, size_t count)
{
    memcpy((char *)in + rule->offset, &to, sizeof to);
    if (rule->kind != FIELD_STRING)
        memcpy((char *)in + rule->count_offset, &count, sizeof count);
}

/* -- messages */

static int fail_unsigned(const field_rule *rule, uint64_t number, weir_error *error)
{
    bool is_low = number < (uint64_t)rule->lowest;
    return weir_error_set(error, WEIR_EINVAL, 0, "%s %" PRIu64 " is too %s: at %s %" PRIu64, rule->name, number,
                          is_low ? "small" : "large", is_low ? "least" : "most",
                          is_low ? (uint64_t)rule->lowest : rule->highest);
}

static int fail_field(const field_rule *rule, const void *field, weir_error *error)
{
    if (rule->kind == FIELD_ENUM)
        return weir_error_set(error, WEIR_EINVAL, 0, "%s %d is none of %s", rule->name,
                              (int)read_signed(field, rule->size_bytes), rule->values);
    if (rule->kind == FIELD_UNSIGNED)
        return fail_unsigned(rule, read_unsigned(field, rule->size_bytes), error);
    if (rule->kind == FIELD_REAL)
        return weir_error_set(error, WEIR_EINVAL, 0, "%s %g is not between %" PRId64 " and %" PRIu64, rule->name,
                              read_real(field), rule->lowest, rule->highest);
    return weir_error_set(error, WEIR_EINVAL, 0, "%s %" PRId64 " is not between %" PRId64 " and %" PRIu64, rule->name,
                          read_signed(field, rule->size_bytes), rule->lowest, rule->highest);
}

int weir__rules_check(const struct_rules *rules, const void *given, weir_error *error)
{
    for (size_t i = 0; i < rules->num_fields; i++) {
        const field_rule *rule = &rules->fields[i];
        const char *field = (const char *)given + rule->offset;
        if (rule->kind == FIELD_STRUCT) {
            int rc = weir__rules_check(rule->inner, field, error);
            if (rc != WEIR_OK)
                return rc;
        } else if (!field_holds(rule, field)) {
            return fail_field(rule, field, error);
        }
    }
    return WEIR_OK;
}
