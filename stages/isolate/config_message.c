#include "stages/isolate/config_message.h"

#include <stdlib.h>

#include <weir/struct_copy.h>

/* -- to the child: a struct, without its pointers, and then what each of them points to */

static bool put_presence(isolated_message *message, const void *pointer)
{
    bool is_there = pointer;
    weir__isolated_put(message, &is_there, sizeof is_there);
    return is_there;
}

static void put_list(isolated_message *message, const int64_t *values, size_t num_values)
{
    if (put_presence(message, values))
        weir__isolated_put(message, values, num_values * sizeof *values);
}

void weir__isolated_put_inner(isolated_message *message, const struct_rules *rules, const void *given,
                              size_t given_size)
{
    void *config = put_presence(message, given) ? malloc(rules->size_bytes) : NULL;
    if (!given)
        return;
    if (!config || weir_struct_copy(config, rules->size_bytes, given, given_size, rules->name, NULL) != WEIR_OK) {
        message->is_bad = true;
    } else {
        weir__isolated_put_struct(message, rules, config);
        weir__isolated_put_pointers(message, rules, config);
    }
    free(config);
}

void weir__isolated_put_pointers(isolated_message *message, const struct_rules *rules, const void *config)
{
    const char *from = config;
    for (size_t i = 0; i < rules->num_fields; i++) {
        const field_rule *rule = &rules->fields[i];
        const char *field = from + rule->offset;
        const void *pointer = weir__rule_pointer(rule, field);
        if (rule->kind == FIELD_STRUCT)
            weir__isolated_put_pointers(message, rule->inner, field);
        else if (rule->kind == FIELD_STRING)
            weir__isolated_put_text(message, pointer);
        else if (rule->kind == FIELD_LIST)
            put_list(message, pointer, weir__rule_count(rule, from));
        else if (rule->kind == FIELD_CONFIG)
            weir__isolated_put_inner(message, rule->inner, pointer, weir__rule_count(rule, from));
    }
}

/* -- in the child */

static const int64_t *get_list(isolated_message *message, size_t num_values)
{
    bool is_there;
    if (!weir__isolated_get(message, &is_there, sizeof is_there) || !is_there)
        return NULL;
    size_t left = (size_t)message->head.body_bytes - message->position;
    int64_t *values = num_values <= left / sizeof *values ? malloc(num_values * sizeof *values + 1) : NULL;
    if (!values)
        message->is_bad = true;
    else
        weir__isolated_get(message, values, num_values * sizeof *values);
    return values;
}

void *weir__isolated_get_inner(isolated_message *message, const struct_rules *rules)
{
    bool is_there;
    if (!weir__isolated_get(message, &is_there, sizeof is_there) || !is_there)
        return NULL;
    void *config = calloc(1, rules->size_bytes);
    if (!config)
        message->is_bad = true;
    else if (weir__isolated_get_struct(message, rules, config))
        weir__isolated_get_pointers(message, rules, config);
    return config;
}

void weir__isolated_get_pointers(isolated_message *message, const struct_rules *rules, void *config)
{
    char *to = config;
    for (size_t i = 0; i < rules->num_fields && !message->is_bad; i++) {
        const field_rule *rule = &rules->fields[i];
        char *field = to + rule->offset;
        if (rule->kind == FIELD_STRUCT) {
            weir__isolated_get_pointers(message, rule->inner, field);
        } else if (rule->kind == FIELD_STRING) {
            weir__rule_point(rule, to, weir__isolated_get_text(message), 0);
        } else if (rule->kind == FIELD_LIST) {
            size_t num_values = weir__rule_count(rule, to);
            weir__rule_point(rule, to, get_list(message, num_values), num_values);
        } else if (rule->kind == FIELD_CONFIG) {
            weir__rule_point(rule, to, weir__isolated_get_inner(message, rule->inner), rule->inner->size_bytes);
        }
    }
}

void weir__isolated_free_config(const struct_rules *rules, void *config)
{
    for (size_t i = 0; config && i < rules->num_fields; i++)
        if (rules->fields[i].kind == FIELD_LIST)
            free((void *)(uintptr_t)weir__rule_pointer(&rules->fields[i], (char *)config + rules->fields[i].offset));
    free(config);
}
