#include "stages/reader/nal_units.h"

#include <string.h>

/* ---- start codes and lengths ------------------------------------------------------------------------------------ */

weir_unit_walk weir__unit_walk_of(const AVCodecParameters *codec, const AVPacket *packet, int length_byte)
{
    bool has_lengths = codec->extradata_size > length_byte && codec->extradata[0] == 1;
    return (weir_unit_walk){
        .at = packet->data,
        .end = packet->data + packet->size,
        .length_bytes = has_lengths ? (codec->extradata[length_byte] & 3u) + 1 : 0,
    };
}

/* The byte after the next 00 00 01, or the end. */
static const uint8_t *behind_start_code(const uint8_t *at, const uint8_t *end)
{
    while (end - at >= 3) {
        const uint8_t *one = memchr(at + 2, 1, (size_t)(end - at - 2));
        if (!one)
            return end;
        if (one[-1] == 0 && one[-2] == 0)
            return one + 1;
        at = one - 1;
    }
    return end;
}

bool weir__unit_walk_next(weir_unit_walk *walk, const uint8_t **unit, size_t *size_bytes)
{
    if (walk->length_bytes == 0) {
        *unit = behind_start_code(walk->at, walk->end);
        *size_bytes = (size_t)(walk->end - *unit);
        walk->at = *unit;
        return *size_bytes > 0;
    }
    if ((size_t)(walk->end - walk->at) <= walk->length_bytes) {
        walk->is_broken |= walk->at != walk->end;
        return false;
    }
    size_t length = 0;
    for (unsigned i = 0; i < walk->length_bytes; i++)
        length = length << 8 | *walk->at++;
    size_t left = (size_t)(walk->end - walk->at);
    *unit = walk->at;
    *size_bytes = length < left ? length : left;
    walk->is_broken |= length == 0 || length > left;
    walk->at += *size_bytes;
    return true;
}

size_t weir__unit_trim(const weir_unit_walk *walk, const uint8_t *unit, size_t size_bytes)
{
    enum { START_CODE_BYTES = 3 };
    const uint8_t *end = unit + size_bytes;
    const uint8_t *next = walk->length_bytes ? end : behind_start_code(unit, end);
    size_t trimmed = (size_t)((next < end ? next - START_CODE_BYTES : end) - unit);
    while (trimmed > 0 && unit[trimmed - 1] == 0)
        trimmed--;
    return trimmed;
}

/* ---- payload of H.264 ------------------------------------------------------------------------------------------- */

typedef struct payload {
    const uint8_t *at;
    const uint8_t *end;
    unsigned num_zeros; /* consecutive, up to here */
} payload;

static bool next_byte(payload *bytes, uint8_t *byte)
{
    if (bytes->num_zeros >= 2 && bytes->at < bytes->end && *bytes->at == 3) {
        bytes->at++;
        bytes->num_zeros = 0;
    }
    if (bytes->at >= bytes->end)
        return false;
    *byte = *bytes->at++;
    bytes->num_zeros = *byte ? 0 : bytes->num_zeros + 1;
    return true;
}

size_t weir__unit_unescape(const uint8_t *unit, size_t size_bytes, uint8_t *to, size_t max_bytes)
{
    payload bytes = { .at = size_bytes ? unit + 1 : unit, .end = unit + size_bytes };
    size_t num = 0;
    while (num < max_bytes && next_byte(&bytes, &to[num]))
        num++;
    return num;
}

/* A message's type or size: the sum of all bytes 255 and the byte after them. */
static bool next_number(payload *bytes, size_t *number)
{
    uint8_t byte = UINT8_MAX;
    for (*number = 0; byte == UINT8_MAX; *number += byte) {
        if (!next_byte(bytes, &byte))
            return false;
    }
    return true;
}

bool weir__unit_has_recovery_point(const uint8_t *unit, size_t size_bytes, uint8_t *first_byte)
{
    enum { RECOVERY_POINT = 6 };
    payload bytes = { .at = size_bytes ? unit + 1 : unit, .end = unit + size_bytes };
    size_t type, length;
    uint8_t byte = 0;
    while (next_number(&bytes, &type) && next_number(&bytes, &length)) {
        if (type == RECOVERY_POINT)
            return next_byte(&bytes, first_byte);
        while (length > 0 && next_byte(&bytes, &byte))
            length--;
    }
    return false;
}
