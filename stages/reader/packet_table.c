/*
 * All numbers have variable length, 7 bits per byte. The unit of times is their greatest common divisor, so that most
 * differences fit into a byte; a packet with the same distance and duration as the one before (STEADY) stores neither.
 *
 *   version, of an index with an order: does the stream store times (0 or 1), time base (two), unit, step of the frames' times,
 *   number of blocks
 *   then for each block: number of packets, of frames, the change of the first frame's pts, bytes, checksum
 *   a checksum of all before
 *   then for each block, for each packet:
 *   flags; unless NO_DTS or STEADY: the change of the dts increment; unless NO_PTS: pts - dts (of
 *   packets without a dts: pts - the last dts); unless STEADY: duration; size
 *
 * Checksums have four bytes: a wrong table would select wrong frames. A block is a group of pictures, or several, so
 * that it can be read without the others. It begins with a clean packet, and its frames are shown after those of the
 * blocks before it.
 */
#include "stages/reader/packet_table.h"

#include <stdlib.h>
#include <string.h>

#include <libavutil/common.h>

enum {
    VERSION = 2,
    ORDERED_VERSION = 3, /* the packets of the file have no pts: weir_index.is_ordered */
    CHECKSUM_BYTES = 4,
    MAX_VARINT_BYTES = 10,
    MAX_HEADER_BYTES = 7 * MAX_VARINT_BYTES,
    MAX_BLOCK_BYTES = 4 * MAX_VARINT_BYTES + CHECKSUM_BYTES, /* in the directory */
    MIN_BLOCK_PACKETS = 64, /* a block has a few bytes in the directory: less than one for each packet */
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

static uint8_t *put_checksum(uint8_t *to, uint32_t sum)
{
    for (int i = 0; i < CHECKSUM_BYTES; i++)
        *to++ = (uint8_t)(sum >> 8 * i);
    return to;
}

static uint32_t get_checksum(input *in)
{
    uint32_t sum = 0;
    in->is_short |= in->end - in->next < CHECKSUM_BYTES;
    for (int i = 0; i < CHECKSUM_BYTES && !in->is_short; i++)
        sum |= (uint32_t)*in->next++ << 8 * i;
    return sum;
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

/* For each packet: the first pts of a frame among the packets from it on. The last one has no frame after it. */
static int64_t *list_later(const weir_index *index)
{
    int64_t *later = calloc(index->num_packets + 1, sizeof *later);
    if (!later)
        return NULL;
    later[index->num_packets] = INT64_MAX;
    for (size_t i = index->num_packets; i-- > 0;) {
        const weir_packet_entry *packet = &index->packets[i];
        later[i] = packet->flags & WEIR_PACKET_SHOWN ? FFMIN(later[i + 1], packet->pts) : later[i + 1];
    }
    return later;
}

/* A block while it is packed. */
typedef struct packing {
    size_t first, end; /* packets */
    size_t num_frames;
    int64_t first_pts, last_pts;
} packing;

/* From packet `first` on. */
static packing cut_block(const weir_index *index, const int64_t *later, size_t first)
{
    packing block = { .first = first, .end = first, .first_pts = later[first], .last_pts = INT64_MIN };
    for (; block.end < index->num_packets; block.end++) {
        const weir_packet_entry *packet = &index->packets[block.end];
        bool is_long = block.end - first >= MIN_BLOCK_PACKETS && block.num_frames > 0;
        if (is_long && (packet->flags & WEIR_PACKET_CLEAN) && block.last_pts < later[block.end] &&
            later[block.end] != INT64_MAX)
            break;
        if (packet->flags & WEIR_PACKET_SHOWN) {
            block.num_frames++;
            block.last_pts = FFMAX(block.last_pts, packet->pts);
        }
    }
    return block;
}

/* The table while it is packed. */
typedef struct output {
    uint8_t *directory, *packets; /* two buffers */
    uint8_t *directory_end, *packets_end;
    int64_t unit;
    int64_t last_pts; /* of the first frame of the block before */
    size_t num_blocks;
} output;

static void pack_block(output *out, const weir_index *index, packing block)
{
    course before = { 0 };
    uint8_t *begin = out->packets_end;
    for (size_t i = block.first; i < block.end; i++)
        out->packets_end = pack_packet(out->packets_end, &index->packets[i], out->unit, &before);
    uint8_t *to = put_number(out->directory_end, block.end - block.first);
    to = put_number(to, block.num_frames);
    to = put_signed(to, subtract_checked(block.first_pts / out->unit, out->last_pts));
    to = put_number(to, (uint64_t)(out->packets_end - begin));
    out->directory_end = put_checksum(to, checksum(begin, (size_t)(out->packets_end - begin)));
    out->last_pts = block.first_pts / out->unit;
    out->num_blocks++;
}

static int join_table(const output *out, const weir_index *index, AVRational time_base, uint8_t **table,
                      size_t *num_bytes)
{
    size_t directory_bytes = (size_t)(out->directory_end - out->directory);
    size_t packets_bytes = (size_t)(out->packets_end - out->packets);
    *table = malloc(MAX_HEADER_BYTES + directory_bytes + CHECKSUM_BYTES + packets_bytes);
    if (!*table)
        return WEIR_ENOMEM;
    uint8_t *to = put_number(*table, index->is_ordered ? ORDERED_VERSION : VERSION);
    if (index->is_ordered)
        to = put_number(to, !index->has_no_times);
    to = put_signed(to, time_base.num);
    to = put_signed(to, time_base.den);
    to = put_signed(to, out->unit);
    to = put_signed(to, index->step);
    to = put_number(to, out->num_blocks);
    memcpy(to, out->directory, directory_bytes);
    to += directory_bytes;
    to = put_checksum(to, checksum(*table, (size_t)(to - *table)));
    memcpy(to, out->packets, packets_bytes);
    *num_bytes = (size_t)(to - *table) + packets_bytes;
    return WEIR_OK;
}

int weir__packet_table_pack(const weir_index *index, AVRational time_base, uint8_t **table, size_t *num_bytes)
{
    int64_t *later = list_later(index);
    output out = { .unit = find_unit(index) };
    out.directory = malloc((index->num_packets / MIN_BLOCK_PACKETS + 1) * MAX_BLOCK_BYTES);
    out.packets = malloc(index->num_packets * MAX_PACKET_BYTES + 1);
    out.directory_end = out.directory;
    out.packets_end = out.packets;
    int rc = later && out.directory && out.packets ? WEIR_OK : WEIR_ENOMEM;
    for (size_t first = 0; rc == WEIR_OK && first < index->num_packets;) {
        packing block = cut_block(index, later, first);
        pack_block(&out, index, block);
        first = block.end;
    }
    if (rc == WEIR_OK)
        rc = join_table(&out, index, time_base, table, num_bytes);
    free(later);
    free(out.directory);
    free(out.packets);
    return rc;
}

/* ---- unpacking -------------------------------------------------------------------------------------------------- */

/* What the blocks of an index are read from. */
typedef struct opened_table {
    const uint8_t *packets; /* of the table, borrowed */
    int64_t unit;
} opened_table;

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

/* weir_read_block: from an opened_table. */
static int read_block(void *self, const weir_packet_block *block, weir_packet_entry *packets, weir_error *error)
{
    const opened_table *table = self;
    const uint8_t *bytes = table->packets + block->offset;
    size_t num_bytes = block[1].offset - block->offset;
    input in = { .next = bytes, .end = bytes + num_bytes };
    course before = { 0 };
    bool is_right = checksum(bytes, num_bytes) == block->checksum;
    for (uint32_t i = block->first_packet; is_right && i < block[1].first_packet; i++) {
        weir_packet_entry *packet = &packets[i - block->first_packet];
        unpack_packet(&in, packet, table->unit, &before);
        is_right = packet->size_bytes >= 0;
    }
    if (is_right && !in.is_short && in.next == in.end)
        return WEIR_OK;
    return weir_error_set(error, WEIR_EDATA, 0, "the index of the file is damaged: run weir index again");
}

/* The next block of the directory; the one after it begins behind it. False: it cannot be. */
static bool open_block(input *in, weir_packet_block *block, int64_t unit, int64_t *last_pts)
{
    uint64_t num_packets = get_number(in);
    uint64_t num_frames = get_number(in);
    *last_pts = add_checked(*last_pts, get_signed(in));
    uint64_t num_bytes = get_number(in);
    block->first_time = multiply_checked(*last_pts, unit);
    block->checksum = get_checksum(in);
    if (in->is_short || num_packets == 0 || num_frames == 0 || num_frames > num_packets || num_packets > num_bytes ||
        num_bytes > SIZE_MAX / 2 - block->offset || num_packets > UINT32_MAX - block->first_packet)
        return false;
    block[1].first_packet = block->first_packet + (uint32_t)num_packets;
    block[1].first_frame = block->first_frame + (uint32_t)num_frames;
    block[1].offset = block->offset + (size_t)num_bytes;
    return true;
}

/* Reads all numbers up to the end of the directory. WEIR_OK, WEIR_EDATA or WEIR_ENOMEM. */
static int open_directory(input *in, const uint8_t *table, weir_packet_blocks *blocks, int64_t unit,
                          uint64_t num_blocks)
{
    int64_t last_pts = 0;
    if (in->is_short || num_blocks == 0 || num_blocks > (size_t)(in->end - in->next))
        return WEIR_EDATA;
    if (weir__packet_blocks_init(blocks, (size_t)num_blocks) != WEIR_OK)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < num_blocks; i++) {
        weir_packet_block *block = &blocks->all[i];
        if (!open_block(in, block, unit, &last_pts) || (i > 0 && block->first_time <= block[-1].first_time))
            return WEIR_EDATA;
    }
    uint32_t sum = checksum(table, (size_t)(in->next - table));
    bool is_right = get_checksum(in) == sum && blocks->all[num_blocks].offset == (size_t)(in->end - in->next);
    return is_right && !in->is_short ? WEIR_OK : WEIR_EDATA;
}

static int open_table(input *in, const uint8_t *table, const AVStream *stream, weir_index *index)
{
    opened_table *opened = index->blocks->self;
    uint64_t version = get_number(in);
    bool is_ours = version == VERSION || version == ORDERED_VERSION;
    index->is_ordered = version == ORDERED_VERSION;
    index->has_no_times = index->is_ordered && get_number(in) == 0;
    bool is_same = get_signed(in) == stream->time_base.num;
    is_same &= get_signed(in) == stream->time_base.den;
    opened->unit = get_signed(in);
    index->step = get_signed(in);
    uint64_t num_blocks = get_number(in);
    if (!is_ours || !is_same || index->step < 0)
        return WEIR_EDATA;
    int rc = open_directory(in, table, index->blocks, opened->unit, num_blocks);
    opened->packets = in->next;
    return rc;
}

int weir__packet_table_open(const uint8_t *table, size_t table_bytes, const AVStream *stream, weir_index *index)
{
    input in = { .next = table, .end = table + table_bytes };
    int rc = weir__index_use_blocks(index, read_block, sizeof(opened_table));
    if (rc == WEIR_OK)
        rc = open_table(&in, table, stream, index);
    if (rc == WEIR_OK) {
        index->blocks->is_exact = true;
        rc = weir__index_end_blocks(index, stream);
    }
    if (rc != WEIR_OK)
        weir__index_reset(index);
    return rc;
}
