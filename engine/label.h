/* Labels: one text shared by all items that were made of an item, counted by reference. Any thread. */
#ifndef WEIR_LABEL_H
#define WEIR_LABEL_H

#include <stdbool.h>

#include <weir/item.h>

/* One more, or one less, that holds the label. NULL is fine. */
struct weir_label *weir_label_hold(struct weir_label *label);
void weir_label_release(struct weir_label *label);

const char *weir_label_text(const struct weir_label *label); /* "" for NULL */

/* `out` was made of `in`: gives it the same number and, unless it brought one of its own, the same label. False = out of
   memory; `out` then has no label. */
bool weir_label_inherit(weir_item *out, const weir_item *in);

/* Gives the item a copy of the text as its label. False = out of memory; the item is as it was. */
bool weir_label_set(weir_item *item, const char *text);

#endif
