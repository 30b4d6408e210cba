#include <weir/bytes.h>

#include <stdlib.h>

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
    free(entry);
}
