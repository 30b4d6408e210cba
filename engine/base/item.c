/* Items and their labels. A label is a reference-counted text, shared by all items made from one item. */
#include "label.h"
#include "redact.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct weir_label {
    atomic_uint references;
    char text[];
};

static struct weir_label *label_new(const char *text)
{
    size_t size = strlen(text) + 1;
    struct weir_label *label = malloc(sizeof *label + size);
    if (!label)
        return NULL;
    atomic_init(&label->references, 1);
    memcpy(label->text, text, size);
    if (strstr(text, "://")) /* names of files stay as they are */
        weir__text_redact(label->text);
    return label;
}

void weir__label_release(struct weir_label *label)
{
    if (label && atomic_fetch_sub_explicit(&label->references, 1, memory_order_acq_rel) == 1)
        free(label);
}

struct weir_label *weir__label_hold(struct weir_label *label)
{
    if (label)
        atomic_fetch_add_explicit(&label->references, 1, memory_order_relaxed);
    return label;
}

const char *weir__label_text(const struct weir_label *label)
{
    return label ? label->text : "";
}

void weir_release_free(void *data, void *self)
{
    (void)self;
    free(data);
}

void weir_item_release(weir_item *item)
{
    if (!item)
        return;
    item_drop(item);
    *item = (weir_item){ .label = "" };
}

static void move_data(weir_item *out, weir_item *in, bool is_kept)
{
    if (in->marks)
        weir__marks_move(out, in, is_kept);
    out->data = in->data;
    out->size_bytes = in->size_bytes;
    out->release = in->release;
    out->release_self = in->release_self;
    out->type = in->type;
    in->data = NULL;
    in->size_bytes = 0;
    in->release = NULL;
}

void weir_item_move(weir_item *out, weir_item *in)
{
    if (out && in)
        move_data(out, in, false);
}

static void inherit_origin(weir_item *to, const weir_item *in)
{
    to->seq = in->seq;
    to->epoch = in->epoch;
    to->source = in->source;
    to->order_number = in->order_number;
    to->label_owner = weir__label_hold(in->label_owner);
    to->label = weir__label_text(to->label_owner);
}

void weir_item_keep(weir_item *to, weir_item *in)
{
    if (!to || !in)
        return;
    move_data(to, in, true);
    inherit_origin(to, in);
    to->made_ns = in->made_ns;
}

void weir_item_pass(weir_item *out, weir_item *kept)
{
    if (!out || !kept)
        return;
    move_data(out, kept, false);
    inherit_origin(out, kept);
    out->made_ns = kept->made_ns;
}

bool weir__label_inherit(weir_item *out, const weir_item *in)
{
    if (out->made_ns) { /* weir_item_pass(); only its place in the order is that of the task */
        out->order_number = in->order_number;
        return true;
    }
    const char *own = out->label && out->label[0] && out->label != in->label ? out->label : NULL;
    inherit_origin(out, in);
    if (!own)
        return true;
    weir__label_release(out->label_owner);
    out->label_owner = label_new(own);
    out->label = weir__label_text(out->label_owner);
    return out->label_owner != NULL;
}

bool weir__label_set(weir_item *item, const char *text)
{
    struct weir_label *label = label_new(text);
    if (!label)
        return false;
    weir__label_release(item->label_owner);
    item->label_owner = label;
    item->label = label->text;
    return true;
}
