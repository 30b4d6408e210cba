/*
 * All numbers have variable length, 7 bits per byte. The unit of times is their greatest common divisor, so that most
 * differences fit into a byte; a packet with the same distance and duration as the one before (STEADY) stores neither.
 *
 *   version, time base (two), unit, number of packets, then for each packet:
 *   flags; unless NO_DTS or STEADY: the change of the dts increment; unless NO_PTS: pts - dts (of
 *   packets without a dts: pts - the last dts); unless STEADY: duration; size
 *
 * It ends with a checksum: a wrong table would select wrong frames.
 */
#include "stages/reader/packet_table.h"

#include <stdlib.h>

enum {
    VERSION = 1,
    CHECKSUM_BYTES = 4,
    MAX_VARINT_BYTES = 10,
    MAX_HEADER_BYTES = 5 * MAX_VARINT_BYTES,
    MAX_PACKET_BYTES = 41
};

enum { KEPT = WEIR_PACKET_KEY | WEIR_PACKET_CLEAN | WEIR_PACKET_SHOWN | WEIR_PACKET_DISPOSABLE };
enum { NO_DTS = 32, NO_PTS = 64, STEADY = 128 };

/* The state of packing and unpacking. */
typedef struct course {
    int64_t dts, advance, duration; /* of the previous packet */
} course;

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static uint8_t *put_number(uint8_t *to, uint64_t number)
{
    for (; number > 0x7f; number >>= 7)
        *to++ = (uint8_t)(number | 0x80);
    *to++ = (uint8_t)number;
    return to;
}

static uint8_t *put_signed(uint8_t *to, int64_t number)
{
    return put_number(to, (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0));
}

typedef struct input {
    const uint8_t *next, *end;
    bool is_short;
} input;

static uint64_t get_number(input *in)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && in->next < in->end; shift += 7) {
        uint8_t byte = *in->next++;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return number;
    }
    in->is_short = true;
    return 0;
}

static int64_t get_signed(input *in)
{
    uint64_t number = get_number(in);
    return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

/* Damaged tables may contain any number: sums wrap around. */
static int64_t add_checked(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t subtract_checked(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t multiply_checked(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* FNV-1a. */
static uint32_t checksum(const uint8_t *bytes, size_t num_bytes)
{
    uint32_t sum = 0x811c9dc5;
    for (size_t i = 0; i < num_bytes; i++)
        sum = (sum ^ bytes[i]) * 0x01000193;
    return sum;
}

static bool has_checksum(const uint8_t *table, size_t table_bytes)
{
    uint32_t found = 0;
    if (table_bytes <= CHECKSUM_BYTES)
        return false;
    for (int i = 0; i < CHECKSUM_BYTES; i++)
        found |= (uint32_t)table[table_bytes - CHECKSUM_BYTES + (size_t)i] << 8 * i;
    return found == checksum(table, table_bytes - CHECKSUM_BYTES);
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a;
    uint64_t y = b < 0 ? -(uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x > INT64_MAX ? 1 : (int64_t)x;
}

static int64_t find_unit(const weir_index *index)
{
    int64_t unit = 0;
    for (size_t i = 0; i < index->num_packets && unit != 1; i++) {
        const weir_packet_entry *packet = &index->packets[i];
        unit = packet->dts != AV_NOPTS_VALUE ? common_divisor(unit, packet->dts) : unit;
        unit = packet->pts != AV_NOPTS_VALUE ? common_divisor(unit, packet->pts) : unit;
        unit = common_divisor(unit, packet->duration);
    }
    return unit ? unit : 1;
}

static uint8_t *pack_packet(uint8_t *to, const weir_packet_entry *packet, int64_t unit, course *before)
{
    bool has_dts = packet->dts != AV_NOPTS_VALUE;
    bool has_pts = packet->pts != AV_NOPTS_VALUE;
    int64_t dts = has_dts ? packet->dts / unit : before->dts;
    int64_t advance = has_dts ? subtract_checked(dts, before->dts) : before->advance;
    int64_t duration = packet->duration / unit;
    bool is_steady = advance == before->advance && duration == before->duration;
    *to++ = (uint8_t)((packet->flags & KEPT) | (has_dts ? 0 : NO_DTS) | (has_pts ? 0 : NO_PTS) |
                      (is_steady ? STEADY : 0));
    if (has_dts && !is_steady)
        to = put_signed(to, subtract_checked(advance, before->advance));
    if (has_pts)
        to = put_signed(to, subtract_checked(packet->pts / unit, dts));
    if (!is_steady)
        to = put_signed(to, duration);
    *before = (course){ .dts = dts, .advance = advance, .duration = duration };
    return put_signed(to, packet->size_bytes);
}

int weir__packet_table_pack(const weir_index *index, AVRational time_base, uint8_t **table, size_t *num_bytes)
{
    *table = malloc(MAX_HEADER_BYTES + index->num_packets * MAX_PACKET_BYTES + CHECKSUM_BYTES);
    if (!*table)
        return WEIR_ENOMEM;
    int64_t unit = find_unit(index);
    course before = { 0 };
    uint8_t *to = put_number(*table, VERSION);
    to = put_signed(to, time_base.num);
    to = put_signed(to, time_base.den);
    to = put_signed(to, unit);
    to = put_number(to, index->num_packets);
    for (size_t i = 0; i < index->num_packets; i++)
        to = pack_packet(to, &index->packets[i], unit, &before);
    uint32_t sum = checksum(*table, (size_t)(to - *table));
    for (int i = 0; i < CHECKSUM_BYTES; i++)
        *to++ = (uint8_t)(sum >> 8 * i);
    *num_bytes = (size_t)(to - *table);
    uint8_t *fitted = realloc(*table, *num_bytes);
    *table = fitted ? fitted : *table;
    return WEIR_OK;
}

/* ---- unpacking -------------------------------------------------------------------------------------------------- */

static void unpack_packet(input *in, weir_packet_entry *packet, int64_t unit, course *before)
{
    unsigned flags = in->next < in->end ? *in->next++ : 0;
    if (!(flags & NO_DTS)) {
        before->advance = flags & STEADY ? before->advance : add_checked(before->advance, get_signed(in));
        before->dts = add_checked(before->dts, before->advance);
    }
    int64_t pts = flags & NO_PTS ? AV_NOPTS_VALUE : multiply_checked(add_checked(before->dts, get_signed(in)), unit);
    before->duration = flags & STEADY ? before->duration : get_signed(in);
    *packet = (weir_packet_entry){
        .pts = pts,
        .dts = flags & NO_DTS ? AV_NOPTS_VALUE : multiply_checked(before->dts, unit),
        .size_bytes = (int32_t)get_signed(in),
        .duration = (int32_t)multiply_checked(before->duration, unit),
        .flags = (uint8_t)(flags & KEPT),
    };
}

static int fail_damaged_table(weir_index *index)
{
    weir__index_reset(index);
    return WEIR_EDATA;
}

int weir__packet_table_unpack(const uint8_t *table, size_t table_bytes, const AVStream *stream, weir_index *index)
{
    if (!has_checksum(table, table_bytes))
        return WEIR_EDATA;
    input in = { .next = table, .end = table + table_bytes - CHECKSUM_BYTES };
    course before = { 0 };
    bool is_ours = get_number(&in) == VERSION;
    bool is_same = get_signed(&in) == stream->time_base.num;
    is_same &= get_signed(&in) == stream->time_base.den;
    int64_t unit = get_signed(&in);
    uint64_t num_packets = get_number(&in);
    if (!is_ours || !is_same || in.is_short || num_packets > (size_t)(in.end - in.next) || num_packets > UINT32_MAX)
        return WEIR_EDATA;

    index->packets = malloc((num_packets + 1) * sizeof *index->packets);
    if (!index->packets)
        return WEIR_ENOMEM;
    index->max_packets = num_packets + 1;
    for (uint32_t i = 0, start = 0; i < num_packets; i++) {
        weir_packet_entry *packet = &index->packets[i];
        unpack_packet(&in, packet, unit, &before);
        start = packet->flags & WEIR_PACKET_CLEAN ? i : start;
        packet->start = start;
        if (packet->size_bytes < 0)
            return fail_damaged_table(index);
    }
    index->num_packets = num_packets;
    if (in.is_short || in.next != in.end)
        return fail_damaged_table(index);
    int rc = weir__index_end(index, stream);
    return rc == WEIR_OK && index->distrust ? fail_damaged_table(index) : rc;
}
