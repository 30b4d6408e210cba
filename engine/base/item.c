/* Items and their labels. A label is a reference-counted text, shared by all items made from one item. */
#include "common/redact.h"
#include "engine/base/identity.h"
#include "engine/base/label.h"

#include <weir/status.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct weir_label {
    atomic_uint references;
    uint64_t occurrence;
    const char *identity; /* the text, or behind it */
    char text[];
};

_Atomic(const weir_item_watcher *) weir__item_watcher;

static struct weir_label *label_alloc(size_t text_bytes, size_t identity_bytes, uint64_t occurrence)
{
    struct weir_label *label = malloc(sizeof *label + text_bytes + identity_bytes);
    if (!label)
        return NULL;
    atomic_init(&label->references, 1);
    label->occurrence = occurrence;
    label->identity = label->text + (identity_bytes ? text_bytes : 0);
    return label;
}

static struct weir_label *label_new(const char *address, uint64_t occurrence)
{
    size_t size = strlen(address) + 1;
    bool may_be_url = strpbrk(address, ":%") != NULL; /* the colon of the scheme may be encoded */
    size_t identity_bytes = may_be_url ? weir__identity_write(address, NULL, 0) + 1 : 0;
    struct weir_label *label = label_alloc(size, identity_bytes, occurrence);
    if (!label)
        return NULL;
    memcpy(label->text, address, size);
    if (may_be_url) {
        weir__identity_write(address, label->text + size, identity_bytes);
        weir__address_redact(label->text);
    }
    return label;
}

/* An own one, so that who looks at an item knows whether the reference is its own. */
static struct weir_label *label_copy(const struct weir_label *from)
{
    size_t size = strlen(from->text) + 1;
    size_t identity_bytes = from->identity == from->text ? 0 : strlen(from->identity) + 1;
    struct weir_label *label = label_alloc(size, identity_bytes, from->occurrence);
    if (!label)
        return NULL;
    memcpy(label->text, from->text, size);
    if (identity_bytes)
        memcpy(label->text + size, from->identity, identity_bytes);
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

weir_identity weir_item_identity(const weir_item *item)
{
    const struct weir_label *label = item ? item->label_owner : NULL;
    if (!label)
        return (weir_identity){ .address = item && item->label ? item->label : "" };
    return (weir_identity){ label->identity, label->occurrence };
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
    if (in->tickets)
        item_watcher()->tickets_move(out, in, is_kept);
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

/* The operation has set it with weir_item_set_address() or weir_item_copy_label(). */
static struct weir_label *copied_label(const weir_item *out, const weir_item *in)
{
    bool is_copied = out->label_owner && out->label_owner != in->label_owner && out->label == out->label_owner->text;
    return is_copied ? out->label_owner : NULL;
}

bool weir__label_inherit(weir_item *out, const weir_item *in)
{
    if (out->made_ns) { /* weir_item_pass(); only its place in the order is that of the task */
        out->order_number = in->order_number;
        return true;
    }
    struct weir_label *copied = copied_label(out, in);
    const char *own = out->label && out->label[0] && out->label != in->label ? out->label : NULL;
    inherit_origin(out, in);
    if (!own && !copied) /* a copied one may be empty */
        return true;
    weir__label_release(out->label_owner);
    out->label_owner = copied ? copied : label_new(own, 0);
    out->label = weir__label_text(out->label_owner);
    return out->label_owner != NULL;
}

bool weir__label_set(weir_item *item, const char *address, uint64_t occurrence)
{
    struct weir_label *label = label_new(address, occurrence);
    if (!label)
        return false;
    weir__label_release(item->label_owner);
    item->label_owner = label;
    item->label = label->text;
    return true;
}

int weir_item_set_address(weir_item *item, const char *address, uint64_t occurrence)
{
    if (!item || !address)
        return WEIR_EINVAL;
    return weir__label_set(item, address, occurrence) ? WEIR_OK : WEIR_ENOMEM;
}

void weir_item_copy_label(weir_item *to, const weir_item *from)
{
    if (!to || !from || to == from)
        return;
    struct weir_label *label = from->label_owner ? label_copy(from->label_owner) : NULL;
    weir__label_release(to->label_owner);
    to->label_owner = label;
    to->label = from->label_owner ? weir__label_text(label) : from->label; /* without memory it has none */
}
