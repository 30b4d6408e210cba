/* Labels: a reference-counted text shared by all items made from one item. Any thread. */
#ifndef WEIR_LABEL_H
#define WEIR_LABEL_H

#include <stdbool.h>

#include <weir/item.h>

/* Adds or removes a reference. NULL is accepted. */
struct weir_label *weir_label_hold(struct weir_label *label);
void weir_label_release(struct weir_label *label);

const char *weir_label_text(const struct weir_label *label); /* "" for NULL */

/* `out` was made from `in`: gives it the same number and, unless it already has a label, the same label. False =
   out of memory; `out` then has no label. */
bool weir_label_inherit(weir_item *out, const weir_item *in);

/* Sets the label of the item to a copy of the text. False = out of memory; the item is unchanged. */
bool weir_label_set(weir_item *item, const char *text);

#endif
