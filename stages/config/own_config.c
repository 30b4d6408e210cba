#include "stages/config/own_config.h"

#include <stdlib.h>
#include <string.h>

#include <weir/struct_copy.h>

static char **string_of(void *config, const field_rule *rule)
{
    return rule->kind == FIELD_STRING ? (char **)(void *)((char *)config + rule->offset) : NULL;
}

/* After a failure the strings that are not copied are NULL. */
static int copy_strings(const struct_rules *rules, void *own, weir_error *error)
{
    int rc = WEIR_OK;
    for (size_t i = 0; i < rules->num_fields; i++) {
        char **string = string_of(own, &rules->fields[i]);
        if (!string || !*string)
            continue;
        *string = rc == WEIR_OK ? strdup(*string) : NULL;
        if (!*string)
            rc = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    }
    return rc;
}

int weir__config_copy(const struct_rules *rules, const void *given, size_t given_size, void **own, weir_error *error)
{
    *own = NULL;
    if (given && given_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "a %s is given, but its size is 0: pass sizeof(%s)", rules->name,
                              rules->name);
    void *copy = malloc(rules->size_bytes);
    if (!copy)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int rc = weir_struct_copy(copy, rules->size_bytes, given, given_size, rules->name, error);
    if (rc == WEIR_OK)
        rc = weir__rules_check(rules, copy, error);
    if (rc != WEIR_OK) {
        free(copy);
        return rc;
    }
    rc = copy_strings(rules, copy, error);
    if (rc == WEIR_OK)
        *own = copy;
    else
        weir__config_free(rules, copy);
    return rc;
}

void weir__config_free(const struct_rules *rules, void *own)
{
    for (size_t i = 0; own && i < rules->num_fields; i++) {
        char **string = string_of(own, &rules->fields[i]);
        if (string)
            free(*string);
    }
    free(own);
}
