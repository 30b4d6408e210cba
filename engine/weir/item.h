/* Item: one value that moves through the pipeline, with its metadata. */
#ifndef WEIR_ITEM_H
#define WEIR_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type of items whose data is a NUL-terminated text: a path, a URL. */
#define WEIR_TYPE_TEXT "text"

/* In weir_op.makes: each item carries its own type. */
#define WEIR_TYPE_ANY "*"

/*
 * Has one owner at a time: it is moved, never shared. An operation sets data, size_bytes, release, release_self and,
 * if it knows a better one, label; the engine sets the rest. A zeroed struct is an empty item.
 */
typedef struct weir_item {
    void *data;
    size_t size_bytes;                       /* counts against queue_bytes, up to 2^39; 0 = not counted */
    void (*release)(void *data, void *self); /* frees data; NULL = nothing to free; runs on any thread */
    void *release_self;                      /* passed to release */
    const char *type;                        /* type of data, see weir_op.makes: a static text, NULL = not declared */
    const char *label;                       /* what a person calls it (a path, a URL); "" = nothing. The engine
                                                  makes its own copy when the operation returns, and what is made of
                                                  the item inherits it. The copy of a URL is without its secrets. Items from the
                                                  engine never have NULL. What the item is: weir_item_identity() */
    uint64_t seq;          /* number in the order of its source and epoch, from 0; set by the engine. Of one of
                                         several that are made of one, see weir_task_set_number() */
    uint64_t epoch;        /* of its source, from 0; set by the engine */
    uint32_t source;       /* number of its source in the order of building, from 0; set by the engine */
    uint32_t tickets;      /* internal, for checkpoints: do not change; 0 in new items */
    uint64_t order_number; /* internal: its position in the order that a join restores */
    struct weir_label *label_owner; /* internal: do not change */
    int64_t made_ns; /* internal: when its source had made it; the oldest of those that it is made of */
} weir_item;

/* A release function that calls free(data). */
WEIR_API void weir_release_free(void *data, void *self);

/* Releases the data; the item is empty afterwards. Does nothing to an empty item. Any thread. */
WEIR_API void weir_item_release(weir_item *item);

/* Moves data, size, release and type from `in` to `out`; `in` keeps seq and label. For operations that pass their
   input on. */
WEIR_API void weir_item_move(weir_item *out, weir_item *in);

/* The same, and also copies seq, source, epoch and label to `to`: for operations that keep an item beyond their
   task (WEIR_KEPT). Release `to` with weir_item_release(). */
WEIR_API void weir_item_keep(weir_item *to, weir_item *in);

/* For operations that output an item which they had kept with weir_item_keep(). Moves its data to `out`, which is then
   that item: it has its own seq, source, epoch and label, not those of the task. Release `kept` afterwards. */
WEIR_API void weir_item_pass(weir_item *out, weir_item *kept);

/* ---- identities ---- */

/*
 * What makes an item different from all others, whatever its label is. It has the address, and the number (from 0) among
 * the items of the list with the same address. Use it to compare items of several runs, and to make names of files. Never
 * use labels for that.
 *
 * The address of a path is the path itself. The address of a URL is the URL without user names, passwords, tokens,
 * signatures and what belongs to them (X-Amz-Date, Expires). So an object has the same identity under each signature.
 * Some hidden values may say which object is meant, as in ?key=clips/1.mp4. These are the values whose names end with
 * key, token or auth, except known ones such as api_key. Such a value is replaced by a digest with a secret key. So
 * values stay distinct, and cannot be found by guessing without the key.
 */
typedef struct weir_identity {
    const char *address; /* "" = none */
    uint64_t occurrence;
} weir_identity;

/* Valid as long as the item's label. item NULL: empty. */
WEIR_API weir_identity weir_item_identity(const weir_item *item);

/* The address of an identity, to be freed with free(). NULL: no memory, or address NULL. Any thread. */
WEIR_API char *weir_identity_of(const char *address);

/*
 * A hash that is the same for all addresses of an object, in every process, whatever its key of digests is. Use it to divide
 * items among processes. Do not store it: hidden values could be found from it by guessing. Any thread.
 */
WEIR_API uint64_t weir_identity_hash(const char *address);

/* Sets occurrences[i] to the number of addresses before addresses[i] that have the same identity. WEIR_OK, WEIR_ENOMEM or
   WEIR_EINVAL. Any thread. */
WEIR_API int weir_identity_number(const char *const *addresses, size_t num_addresses, uint64_t *occurrences);

/*
 * Sets the key of digests, for the whole process. By default it is random, so identities with such values are only
 * comparable within the process. Call it before pipelines are made, with 16 random bytes that are kept as secret as the
 * values. WEIR_OK or WEIR_EINVAL. Any thread.
 */
enum { WEIR_IDENTITY_KEY_BYTES = 16 };
WEIR_API int weir_identity_set_key(const void *bytes, size_t num_bytes);

/* Makes the label and the identity of the item of an address. For sources whose list may name a file several times:
   `occurrence` is the number of equal addresses before this one. Else it is enough to set item->label. WEIR_OK, WEIR_ENOMEM
   or WEIR_EINVAL. */
WEIR_API int weir_item_set_address(weir_item *item, const char *address, uint64_t occurrence);

/* Gives `to` the label and identity of `from` instead of its own. For operations that make an item of another one than
   their input. */
WEIR_API void weir_item_copy_label(weir_item *to, const weir_item *from);

#ifdef __cplusplus
}
#endif

#endif
