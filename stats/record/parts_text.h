/* The parts of an item as a JSON object: those that have no column. */
#ifndef STATS_RECORD_PARTS_TEXT_H
#define STATS_RECORD_PARTS_TEXT_H

#include <stddef.h>

#include <weir/item_part.h>

/* Enough for all parts of an item: name and text, of which each byte may need six ("\u001f"), and quotes, ending and commas. */
enum { PARTS_BYTES = WEIR_MAX_ITEM_PARTS * (6 * (WEIR_PART_NAME_BYTES + WEIR_PART_TEXT_BYTES) + 32) + 2 };

typedef struct weir_parts_text {
    char *text; /* PARTS_BYTES */
    size_t length;
} weir_parts_text;

void weir__parts_put(weir_parts_text *text, const weir_item_part *part);

/* The object; "" if nothing was put. */
const char *weir__parts_end(weir_parts_text *text);

#endif
