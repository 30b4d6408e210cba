#include "stages/memory/copies.h"

#include <weir/status.h>

#include <stdlib.h>
#include <string.h>

weir_entry *weir_entry_new(void)
{
    weir_entry *entry = malloc(sizeof *entry);
    if (entry)
        *entry = (weir_entry){ .class_id = -1, .size_bytes = -1 };
    return entry;
}

void weir_entry_release(void *data, void *self)
{
    weir_entry *entry = data;
    (void)self;
    if (!entry)
        return;
    free(entry->path);
    free(entry->packets);
    free(entry->validator);
    free(entry->values);
    free(entry);
}

static size_t text_bytes(const char *text)
{
    return strlen(text) + 1;
}

/* Moves *end behind the copy. */
static const char *put_text(char **end, const char *text)
{
    char *copy = memcpy(*end, text, text_bytes(text));
    *end += text_bytes(text);
    return copy;
}

weir_entry *weir__entry_copy(const weir_entry *entry)
{
    weir_entry *copy = weir_entry_new();
    if (!copy)
        return NULL;
    *copy = *entry;
    copy->packets = NULL;
    copy->packets_bytes = 0;
    copy->validator = NULL;
    copy->values = NULL;
    copy->num_values = 0;
    copy->values_bytes = 0;
    copy->path = entry->path ? strdup(entry->path) : NULL;
    bool is_whole =
        (copy->path || !entry->path) && weir_entry_set_values(copy, entry->values, entry->num_values) == WEIR_OK;
    if (is_whole)
        return copy;
    weir_entry_free(copy);
    return NULL;
}

static void drop_values(weir_entry *entry)
{
    free(entry->values);
    entry->values = NULL;
    entry->num_values = 0;
    entry->values_bytes = 0;
}

int weir_entry_set_values(weir_entry *entry, const weir_value *values, size_t num_values)
{
    if (!entry || (num_values && !values))
        return WEIR_EINVAL;
    if (num_values == 0) {
        drop_values(entry);
        return WEIR_OK;
    }
    size_t num_bytes = num_values * sizeof *values;
    for (size_t i = 0; i < num_values; i++)
        num_bytes += text_bytes(values[i].name) + text_bytes(values[i].text);
    weir_value *copies = malloc(num_bytes); /* and behind them the texts */
    if (!copies)
        return WEIR_ENOMEM;
    char *end = (char *)(copies + num_values);
    for (size_t i = 0; i < num_values; i++) {
        copies[i] = values[i];
        copies[i].name = put_text(&end, values[i].name);
        copies[i].text = put_text(&end, values[i].text);
    }
    drop_values(entry);
    entry->values = copies;
    entry->num_values = num_values;
    entry->values_bytes = num_bytes;
    return WEIR_OK;
}
