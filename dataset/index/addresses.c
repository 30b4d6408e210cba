#include "dataset/index/addresses.h"

#include <stdlib.h>
#include <string.h>

#include <weir/item.h>

#include "common/redact.h"

static int compare_addresses(const void *a, const void *b)
{
    const known_address *one = a, *other = b;
    int order = strcmp(one->identity, other->identity);
    return order ? order : (one->place > other->place) - (one->place < other->place);
}

/* WEIR_OK; WEIR_SKIP: the index stores it as it is. */
static int read_address(known_address *to, const char *path)
{
    char *shown = strdup(path);
    weir__address_redact(shown);
    int rc = !shown ? WEIR_ENOMEM : strcmp(shown, path) == 0 ? WEIR_SKIP : WEIR_OK;
    free(shown);
    if (rc != WEIR_OK)
        return rc;
    *to = (known_address){ .identity = weir_identity_of(path), .address = strdup(path) };
    if (to->identity && to->address)
        return WEIR_OK;
    free(to->identity);
    free(to->address);
    return WEIR_ENOMEM;
}

int weir__addresses_read(known_addresses *known, const char *const *paths, size_t num_paths, weir_error *error)
{
    if (num_paths > 0 && !paths)
        return weir_error_set(error, WEIR_EINVAL, 0, "paths is NULL, but num_paths is %zu", num_paths);
    known->all = calloc(num_paths + 1, sizeof *known->all);
    int rc = known->all ? WEIR_OK : WEIR_ENOMEM;
    for (size_t i = 0; rc >= WEIR_OK && i < num_paths; i++) {
        if (!paths[i])
            return weir_error_set(error, WEIR_EINVAL, 0, "path %zu of the list is NULL", i);
        rc = read_address(&known->all[known->num], paths[i]);
        known->all[known->num].place = i;
        known->num += rc == WEIR_OK;
    }
    if (rc < WEIR_OK)
        return weir_error_set(error, rc, 0, "out of memory");
    qsort(known->all, known->num, sizeof *known->all, compare_addresses);
    return WEIR_OK;
}

void weir__addresses_free(known_addresses *known)
{
    for (size_t i = 0; i < known->num; i++) {
        free(known->all[i].identity);
        free(known->all[i].address);
    }
    free(known->all);
}

const char *weir__addresses_find(const known_addresses *known, const char *identity)
{
    size_t from = 0, until = known->num; /* of the first one that is not before it */
    while (from < until) {
        size_t middle = from + (until - from) / 2;
        if (strcmp(known->all[middle].identity, identity) < 0)
            from = middle + 1;
        else
            until = middle;
    }
    return from < known->num && strcmp(known->all[from].identity, identity) == 0 ? known->all[from].address : NULL;
}
