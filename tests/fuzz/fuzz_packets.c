/*
 * libFuzzer's target: packet tables. If the first byte of the input is odd, the others are packets: what is packed is unpacked
 * as it was. Otherwise they are a table, from a database that anybody may have written. Its checksums are set here, as the
 * fuzzer would never find them.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <libavformat/avformat.h>

#include "stages/reader/packet_table.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/use_index.h"

enum {
    PACKET_BYTES = 8,
    CHECKSUM_BYTES = 4,
    KEPT = WEIR_PACKET_KEY | WEIR_PACKET_CLEAN | WEIR_PACKET_SHOWN | WEIR_PACKET_DISPOSABLE
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A difference of small or of any size. */
static int64_t read_difference(const uint8_t bytes[3])
{
    int64_t value = (int16_t)(bytes[0] << 8 | bytes[1]);
    return (int64_t)((uint64_t)value << bytes[2] % 56);
}

static int64_t add_wrapped(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Eight bytes for each packet: the times change by so much, a size, a duration, flags. */
static void make_index(weir_index *index, const uint8_t *data, size_t size)
{
    int64_t dts = 0;
    index->max_packets = size / PACKET_BYTES;
    index->packets = calloc(index->max_packets + 1, sizeof *index->packets);
    require(index->packets);
    for (uint32_t start = 0; index->num_packets < index->max_packets; data += PACKET_BYTES) {
        uint32_t at = (uint32_t)index->num_packets++;
        dts = add_wrapped(dts, read_difference(data));
        start = data[7] & WEIR_PACKET_CLEAN ? at : start;
        index->packets[at] = (weir_packet_entry){
            .pts = data[7] & 64 ? AV_NOPTS_VALUE : add_wrapped(dts, read_difference(data + 3) / 256),
            .dts = data[7] & 32 ? AV_NOPTS_VALUE : dts,
            .size_bytes = data[5] << (data[6] % 24),
            .duration = data[6] & 0x80 ? INT32_MAX - data[6] : data[6],
            .start = start,
            .flags = data[7] & KEPT,
        };
    }
}

static void pack_and_unpack(const AVStream *stream, const uint8_t *data, size_t size)
{
    weir_index index = { 0 }, unpacked = { 0 };
    uint8_t *table = NULL;
    size_t table_bytes;
    make_index(&index, data, size);
    require(weir__index_end(&index, stream) == WEIR_OK);
    if (!index.distrust) { /* others are never stored */
        require(weir__packet_table_pack(&index, stream->time_base, &table, &table_bytes) == WEIR_OK);
        require(weir__packet_table_open(table, table_bytes, stream, &unpacked) == WEIR_OK);
        require(unpacked.num_packets == index.num_packets && unpacked.num_frames == index.num_frames);
        for (size_t i = 0; i < index.num_packets; i++) {
            const weir_packet_entry *is = weir__index_packet(&unpacked, i), *was = &index.packets[i];
            require(is->pts == was->pts && is->dts == was->dts && is->size_bytes == was->size_bytes);
            require(is->duration == was->duration && is->start == was->start && is->flags == was->flags);
        }
        for (size_t i = 0; i < index.num_frames; i++)
            require(weir__index_packet_of(&unpacked, i) == index.frames[i]);
        require(weir__index_failure(&unpacked, NULL) == WEIR_OK);
        use_index(&unpacked, stream);
    }
    weir__index_reset(&unpacked);
    free(table);
    weir__index_reset(&index);
}

static uint32_t checksum(const uint8_t *bytes, size_t num_bytes)
{
    uint32_t sum = 0x811c9dc5; /* FNV-1a */
    for (size_t i = 0; i < num_bytes; i++)
        sum = (sum ^ bytes[i]) * 0x01000193;
    return sum;
}

static void put_checksum(uint8_t *to, uint32_t sum)
{
    for (int i = 0; i < CHECKSUM_BYTES; i++)
        to[i] = (uint8_t)(sum >> 8 * i);
}

static size_t skip_numbers(const uint8_t *table, size_t at, size_t size, unsigned count)
{
    for (; count > 0 && at < size; at++)
        count -= !(table[at] & 0x80);
    return at;
}

/* The checksums of a table of one block, and that of the directory of one with more. */
static void seal(uint8_t *table, size_t size)
{
    enum { NUMBERS_OF_HEADER = 6, NUMBERS_OF_BLOCK = 4 };
    size_t header = skip_numbers(table, 0, size, NUMBERS_OF_HEADER);
    size_t num_blocks = header > 0 && header <= size ? table[header - 1] : 0, end = header;
    size_t last = header;
    for (size_t i = 0; i < num_blocks && end < size; i++) {
        last = skip_numbers(table, end, size, NUMBERS_OF_BLOCK);
        end = last + CHECKSUM_BYTES;
    }
    if (end + CHECKSUM_BYTES > size)
        return;
    if (num_blocks == 1)
        put_checksum(table + last, checksum(table + end + CHECKSUM_BYTES, size - end - CHECKSUM_BYTES));
    put_checksum(table + end, checksum(table, end));
}

static void unpack_table(const AVStream *stream, const uint8_t *data, size_t size)
{
    weir_index index = { 0 };
    uint8_t *table = malloc(size + 1);
    require(table);
    memcpy(table, data, size);
    seal(table, size);
    int rc = weir__packet_table_open(table, size, stream, &index);
    require(rc == WEIR_OK || rc == WEIR_EDATA);
    require(rc == WEIR_OK || !index.blocks);
    if (rc == WEIR_OK)
        use_index(&index, stream);
    weir__index_reset(&index);
    free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return -1;
    AVCodecParameters codec = { .codec_id = AV_CODEC_ID_H264 };
    AVStream stream = { .codecpar = &codec, .time_base = { 1, 1 + data[1] } };
    if (data[0] % 2)
        pack_and_unpack(&stream, data + 2, size - 2);
    else
        unpack_table(&stream, data + 2, size - 2);
    return 0;
}
