#include <weir/entry.h>

#include <stdlib.h>
#include <string.h>

weir_entry *weir_entry_new(void)
{
    weir_entry *entry = malloc(sizeof *entry);
    if (entry)
        *entry = (weir_entry){ .class_id = -1, .size_bytes = -1 };
    return entry;
}

size_t weir_entry_memory(const weir_entry *entry)
{
    return entry ? sizeof *entry + (entry->path ? strlen(entry->path) + 1 : 0) + entry->packets_bytes : 0;
}

void weir_entry_release(void *data, void *self)
{
    weir_entry *entry = data;
    (void)self;
    if (!entry)
        return;
    free(entry->path);
    free(entry->packets);
    free(entry);
}
