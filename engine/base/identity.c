/*
 * Identities of items. The principle: what only says who asks, or how it was signed, is left out, so that the object under
 * another signature has the same identity. A value that may say which object is meant ("?key=clips/1.mp4") becomes a
 * digest with a secret key (SipHash-2-4, a pseudorandom function). So different values stay different. Who has the
 * identity, but not the key, cannot find the value by guessing. In doubt two addresses have different identities:
 * then a file is read again, and none is lost.
 */
#include "engine/base/identity.h"

#include <weir/item.h>
#include <weir/status.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "common/hash.h"
#include "common/name_count.h"
#include "common/random.h"
#include "common/redact.h"

enum { MAX_NAME = 32 };

/* ---- the key ---------------------------------------------------------------------------------------------------- */

static struct {
    uv_once_t once;
    uv_rwlock_t lock;
    unsigned char bytes[WEIR_IDENTITY_KEY_BYTES]; /* with lock */
} key = { .once = UV_ONCE_INIT };

static void make_key(void)
{
    uv_rwlock_init(&key.lock);
    if (uv_random(NULL, NULL, key.bytes, sizeof key.bytes, 0, NULL) != 0)
        memset(key.bytes, 0, sizeof key.bytes); /* in a sandbox, where no identity leaves the process */
}

int weir_identity_set_key(const void *bytes, size_t num_bytes)
{
    if (!bytes || num_bytes != WEIR_IDENTITY_KEY_BYTES)
        return WEIR_EINVAL;
    uv_once(&key.once, make_key);
    uv_rwlock_wrlock(&key.lock);
    memcpy(key.bytes, bytes, num_bytes);
    uv_rwlock_wrunlock(&key.lock);
    return WEIR_OK;
}

/* ---- SipHash-2-4 (Aumasson, Bernstein 2012) --------------------------------------------------------------------- */

static uint64_t read_number(const unsigned char *bytes, size_t num_bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < num_bytes; i++)
        number |= (uint64_t)bytes[i] << (8 * i);
    return number;
}

static uint64_t turn_left(uint64_t number, int bits)
{
    return (number << bits) | (number >> (64 - bits));
}

static void mix_state(uint64_t v[4], int rounds)
{
    for (; rounds > 0; rounds--) {
        v[0] += v[1];
        v[1] = turn_left(v[1], 13) ^ v[0];
        v[0] = turn_left(v[0], 32);
        v[2] += v[3];
        v[3] = turn_left(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = turn_left(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = turn_left(v[1], 17) ^ v[2];
        v[2] = turn_left(v[2], 32);
    }
}

static uint64_t digest_of(const unsigned char secret[WEIR_IDENTITY_KEY_BYTES], const char *text, size_t num_bytes)
{
    const unsigned char *bytes = (const unsigned char *)text;
    uint64_t k0 = read_number(secret, 8), k1 = read_number(secret + 8, 8);
    uint64_t v[4] = { k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                      k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573) };
    for (size_t at = 0; at <= num_bytes; at += 8) {
        size_t length = num_bytes - at < 8 ? num_bytes - at : 8;
        uint64_t word = read_number(bytes + at, length) | (length < 8 ? (uint64_t)num_bytes << 56 : 0);
        v[3] ^= word;
        mix_state(v, 2);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    mix_state(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t find_digest(const char *text, size_t num_bytes)
{
    unsigned char secret[WEIR_IDENTITY_KEY_BYTES];
    uv_once(&key.once, make_key);
    uv_rwlock_rdlock(&key.lock);
    memcpy(secret, key.bytes, sizeof secret);
    uv_rwlock_rdunlock(&key.lock);
    return digest_of(secret, text, num_bytes);
}

/* ---- parameters of signatures ----------------------------------------------------------------------------------- */

/* Parameters that say how, when and until when a URL was signed. Names are written as in redact.c. */
static bool is_of_signature(const char *name, bool has_azure)
{
    static const char *const starts[] = { "xamz",  "xgoog",    "xoss",        "xcos",
                                          "qsign", "qkeytime", "qheaderlist", "qurlparamlist" };
    static const char *const names[] = { "expires", "policy", "urlprefix" };
    static const char *const azure[] = { "sv",  "se",  "st",  "sp",  "sr",    "spr",   "sip",  "skoid", "sktid",
                                         "skt", "ske", "sks", "skv", "saoid", "suoid", "scid", "ss",    "srt" };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    for (size_t i = 0; has_azure && i < sizeof azure / sizeof *azure; i++)
        if (strcmp(name, azure[i]) == 0)
            return true;
    return false;
}

/* The letters and digits before "=", in lower case. */
static void read_name(const char *parameter, size_t length, char name[MAX_NAME])
{
    size_t kept = 0;
    for (size_t i = 0; i < length && parameter[i] != '=' && kept < MAX_NAME - 1; i++)
        if (isalnum((unsigned char)parameter[i]))
            name[kept++] = (char)tolower((unsigned char)parameter[i]);
    name[kept] = '\0';
}

/* ---- the identity ----------------------------------------------------------------------------------------------- */

typedef struct writing {
    const char *address;
    char *to;
    size_t size, length; /* the length is counted on beyond the size */
    uint64_t hash;       /* of what was put */
    bool keeps_objects;  /* as they are, without a digest */
    size_t done;         /* of the address */
    bool is_signed, has_azure;
    bool lacks_question; /* the first parameter was left out, with its "?" */
} writing;

static void put_bytes(writing *w, const char *bytes, size_t num_bytes)
{
    w->hash = weir__hash(w->hash, bytes, num_bytes);
    for (size_t i = 0; i < num_bytes; i++, w->length++)
        if (w->length + 1 < w->size)
            w->to[w->length] = bytes[i];
}

static void note_secret(void *self, const weir_secret *secret)
{
    writing *w = self;
    w->is_signed |= secret->kind == WEIR__SECRET_ACCESS;
    w->has_azure |= secret->is_azure;
}

/* Parameters that belong to a signature are left out, with the "&" before them, or with the one behind the "?". */
static void put_plain(writing *w, const char *text, size_t length)
{
    for (size_t at = 0, next; at < length; at = next) {
        next = at + 1;
        while (next < length && text[next] != '&' && text[next] != '?')
            next++;
        char name[MAX_NAME];
        bool is_parameter = text[at] == '&' || text[at] == '?';
        read_name(text + at + is_parameter, next - at - is_parameter, name);
        bool is_left_out = is_parameter && (!*name || is_of_signature(name, w->has_azure));
        if (w->is_signed && is_left_out) {
            w->lacks_question |= text[at] == '?';
            continue;
        }
        bool begins = text[at] == '&' && w->lacks_question;
        w->lacks_question &= !begins;
        put_bytes(w, begins ? "?" : text + at, 1);
        put_bytes(w, text + at + 1, next - at - 1);
    }
}

static void put_secret(void *self, const weir_secret *secret)
{
    writing *w = self;
    char digest[2 * sizeof(uint64_t) + 1];
    size_t from = secret->kind == WEIR__SECRET_ACCESS ? secret->name_at : secret->at;
    if (from < w->done) /* its name was taken with the secret before it */
        from = w->done;
    bool has_separator =
        secret->kind == WEIR__SECRET_ACCESS && from > w->done && strchr("?&;#", w->address[from - 1]);
    put_plain(w, w->address + w->done, from - w->done - has_separator);
    w->lacks_question |= has_separator && w->address[from - 1] == '?';
    w->done = secret->at + secret->length;
    if (secret->kind == WEIR__SECRET_USER)
        w->done += w->address[w->done] == '@';
    if (secret->kind != WEIR__SECRET_OBJECT)
        return;
    if (w->keeps_objects) {
        put_bytes(w, w->address + secret->at, secret->length);
        return;
    }
    snprintf(digest, sizeof digest, "%016llx",
             (unsigned long long)find_digest(w->address + secret->at, secret->length));
    put_bytes(w, digest, strlen(digest));
}

static void put_identity(writing *w)
{
    weir__secrets_each(w->address, note_secret, w);
    weir__secrets_each(w->address, put_secret, w);
    put_plain(w, w->address + w->done, strlen(w->address + w->done));
}

uint64_t weir_identity_hash(const char *address)
{
    writing w = { .address = address, .hash = WEIR__HASH_START, .keeps_objects = true };
    if (!address)
        return 0;
    put_identity(&w);
    return weir__random_next(&w.hash); /* its low bits are as good as its high ones */
}

size_t weir__identity_write(const char *address, char *identity, size_t size)
{
    writing w = { .address = address, .to = identity, .size = size };
    put_identity(&w);
    if (size > 0)
        identity[w.length < size ? w.length : size - 1] = '\0';
    return w.length;
}

char *weir_identity_of(const char *address)
{
    if (!address)
        return NULL;
    size_t length = weir__identity_write(address, NULL, 0);
    char *identity = malloc(length + 1);
    if (identity)
        weir__identity_write(address, identity, length + 1);
    return identity;
}

/* ---- numbers among equals --------------------------------------------------------------------------------------- */

int weir_identity_number(const char *const *addresses, size_t num_addresses, uint64_t *occurrences)
{
    weir_name_counts counts = { 0 };
    int status = num_addresses && (!addresses || !occurrences) ? WEIR_EINVAL : WEIR_OK;
    for (size_t i = 0; i < num_addresses && status == WEIR_OK; i++) {
        char *identity = weir_identity_of(addresses[i]);
        occurrences[i] = identity ? weir__name_count(&counts, identity) : UINT64_MAX;
        if (occurrences[i] == UINT64_MAX)
            status = addresses[i] ? WEIR_ENOMEM : WEIR_EINVAL;
        free(identity);
    }
    weir__name_counts_free(&counts);
    return status;
}
