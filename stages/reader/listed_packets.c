#include "stages/reader/listed_packets.h"

#include <stdlib.h>

#include <libavutil/common.h>
#include <libavutil/mathematics.h>

#include <weir/clock.h>

#include "stages/decoder/stream_facts.h"

static const AVIndexEntry *entry_of(const weir_listed_packets *listed, size_t at)
{
    return avformat_index_get_entry(listed->decoder->stream, (int)at);
}

/* ---- what the header lists -------------------------------------------------------------------------------------- */

/* The whole list. */
typedef struct list_facts {
    int64_t num_bytes;
    int64_t end; /* of the last byte in the file */
    int64_t step;
    size_t num_blocks;
} list_facts;

/* Does a block begin with the packet, if the block before it has block_bytes bytes so far? */
static bool begins_block(const weir_listed_packets *listed, size_t at, int64_t block_bytes)
{
    return at == 0 || ((entry_of(listed, at)->flags & AVINDEX_KEYFRAME) && block_bytes >= listed->far_bytes);
}

/* May the packet stand behind the one before it? The clock of a stream does not jump, as frame_index.c wants it. */
static bool may_follow(const AVIndexEntry *before, const AVIndexEntry *entry, AVRational time_base)
{
    const int64_t max_s = 10;
    return entry->timestamp > before->timestamp &&
           av_compare_ts(entry->timestamp - before->timestamp, time_base, max_s, (AVRational){ 1, 1 }) <= 0;
}

static bool survey(const weir_listed_packets *listed, size_t num_packets, list_facts *facts)
{
    const AVIndexEntry *before = NULL;
    int64_t block_bytes = 0;
    bool has_frame = true; /* the block */
    for (size_t i = 0; i < num_packets; i++) {
        const AVIndexEntry *entry = entry_of(listed, i);
        if (!entry || entry->size <= 0 || entry->pos < 0 ||
            (before && !may_follow(before, entry, listed->decoder->stream->time_base)) ||
            (i == 0 && !(entry->flags & AVINDEX_KEYFRAME)))
            return false;
        if (begins_block(listed, i, block_bytes)) {
            facts->num_blocks++;
            block_bytes = 0;
            if (!has_frame)
                return false;
            has_frame = false;
        }
        has_frame |= !(entry->flags & AVINDEX_DISCARD_FRAME);
        block_bytes += entry->size;
        facts->num_bytes += entry->size;
        facts->end = FFMAX(facts->end, entry->pos + entry->size);
        if (before && facts->step != 1)
            facts->step = av_gcd(facts->step, entry->timestamp - before->timestamp);
        before = entry;
    }
    return has_frame;
}

static bool is_listed(const weir_listed_packets *listed, uint64_t max_packets, list_facts *facts)
{
    const weir_decoder *decoder = listed->decoder;
    AVIOContext *input = decoder->format->pb;
    uint64_t num_packets = weir__stream_count_listed(decoder->format, decoder->stream);
    if (num_packets == 0 || num_packets > max_packets || !input || !(input->seekable & AVIO_SEEKABLE_NORMAL) ||
        weir__bitstream_needs_past(decoder->codec->codec_id))
        return false;
    return survey(listed, (size_t)num_packets, facts) && facts->num_bytes > (int64_t)listed->max_cached_bytes &&
           facts->end <= avio_size(input);
}

static void fill_directory(const weir_listed_packets *listed, weir_packet_blocks *blocks)
{
    uint32_t num_packets = (uint32_t)weir__stream_count_listed(listed->decoder->format, listed->decoder->stream),
             num_frames = 0;
    int64_t block_bytes = 0;
    weir_packet_block *block = blocks->all;
    for (uint32_t i = 0; i < num_packets; i++) {
        const AVIndexEntry *entry = entry_of(listed, i);
        if (begins_block(listed, i, block_bytes)) {
            *block++ = (weir_packet_block){
                .first_packet = i,
                .first_frame = num_frames,
                .first_time = entry->timestamp, /* no frame is shown before it is decoded */
            };
            block_bytes = 0;
        }
        block_bytes += entry->size;
        num_frames += !(entry->flags & AVINDEX_DISCARD_FRAME);
    }
    block->first_packet = num_packets;
    block->first_frame = num_frames;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static int fail_other(weir_error *error)
{
    return weir_error_set(error, WEIR_EDATA, 0, "the file changed between two reads");
}

/* Is decoder->packet that one? */
static bool is_packet(const weir_listed_packets *listed, size_t at)
{
    const AVPacket *packet = listed->decoder->packet;
    const AVIndexEntry *entry = entry_of(listed, at);
    return entry && packet->pos == entry->pos && packet->size == entry->size && packet->dts == entry->timestamp;
}

static int read_next(weir_listed_packets *listed, weir_error *error)
{
    av_packet_unref(listed->decoder->packet);
    int rc = weir__decoder_read(listed->decoder, error);
    if (rc == WEIR_EOF || (rc == WEIR_OK && !is_packet(listed, listed->next)))
        return fail_other(error);
    listed->next++;
    return rc;
}

/* To the keyframe at the block's beginning, or one before it: the next packet tells which one. */
static int seek_block(weir_listed_packets *listed, const weir_packet_block *block, weir_error *error)
{
    weir_decoder *decoder = listed->decoder;
    if (!weir__decoder_seek(decoder, entry_of(listed, block->first_packet)->timestamp))
        return fail_other(error);
    av_packet_unref(decoder->packet);
    int rc = weir__decoder_read(decoder, error);
    if (rc != WEIR_OK)
        return rc == WEIR_EOF ? fail_other(error) : rc;
    int at = av_index_search_timestamp(decoder->stream, decoder->packet->dts, AVSEEK_FLAG_ANY);
    if (at < 0 || (size_t)at > block->first_packet || !is_packet(listed, (size_t)at))
        return fail_other(error);
    listed->next = (size_t)at + 1;
    return WEIR_OK;
}

/* Does seeking save enough? */
static bool is_far(const weir_listed_packets *listed, size_t at)
{
    int64_t bytes = 0;
    for (size_t i = listed->next; i < at && bytes < listed->far_bytes; i++)
        bytes += entry_of(listed, i)->size;
    return bytes >= listed->far_bytes;
}

static const weir_packet_block *block_with(const weir_listed_packets *listed, size_t at)
{
    size_t low = 0, high = listed->blocks->num;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (listed->blocks->all[middle].first_packet > at)
            high = middle;
        else
            low = middle;
    }
    return &listed->blocks->all[low];
}

int weir__listed_packets_read(weir_listed_packets *listed, size_t at, weir_error *error)
{
    bool is_here = listed->next == at + 1 && is_packet(listed, at);
    int rc = WEIR_OK;
    if (!is_here && (listed->next > at || is_far(listed, at)))
        rc = seek_block(listed, block_with(listed, at), error);
    while (rc == WEIR_OK && listed->next <= at)
        rc = read_next(listed, error);
    return rc == WEIR_OK && !is_packet(listed, at) ? fail_other(error) : rc;
}

/* ---- the cache -------------------------------------------------------------------------------------------------- */

static size_t num_packets_of(const weir_packet_block *block)
{
    return block[1].first_packet - block->first_packet;
}

static void free_packets(AVPacket **packets, size_t num_packets)
{
    for (size_t i = 0; packets && i < num_packets; i++)
        av_packet_free(&packets[i]);
    free(packets);
}

const AVPacket *weir__listed_packets_cached(weir_listed_packets *listed, size_t at)
{
    const weir_packet_block *block = block_with(listed, at);
    weir_kept_block *kept = &listed->cache[block - listed->blocks->all];
    kept->request = listed->request;
    return kept->packets ? kept->packets[at - block->first_packet] : NULL;
}

void weir__listed_packets_begin(weir_listed_packets *listed)
{
    listed->request++;
}

/* The memory of a block's packets. */
static size_t memory_of(const weir_listed_packets *listed, const weir_packet_block *block)
{
    size_t num_bytes = 0;
    for (size_t at = block->first_packet; at < block[1].first_packet; at++)
        num_bytes += (size_t)entry_of(listed, at)->size + sizeof(AVPacket);
    return num_bytes;
}

static void drop_block(weir_listed_packets *listed, size_t number)
{
    const weir_packet_block *block = &listed->blocks->all[number];
    weir_kept_block *kept = &listed->cache[number];
    if (kept->packets)
        listed->cached_bytes -= memory_of(listed, block);
    free_packets(kept->packets, num_packets_of(block));
    kept->packets = NULL;
}

/* The block that was not needed for the longest time; not one of this request. False = there is none. */
static bool find_oldest(const weir_listed_packets *listed, size_t *oldest)
{
    uint64_t request = listed->request;
    for (size_t i = 0; i < listed->blocks->num; i++) {
        const weir_kept_block *kept = &listed->cache[i];
        if (kept->packets && kept->request < request) {
            request = kept->request;
            *oldest = i;
        }
    }
    return request < listed->request;
}

/* False: there is no room for that block; its packets will be read again. */
static bool make_room(weir_listed_packets *listed, const weir_packet_block *block)
{
    size_t num_bytes = memory_of(listed, block), oldest = 0;
    while (listed->cached_bytes > 0 && listed->cached_bytes + num_bytes > listed->max_cached_bytes) {
        if (!find_oldest(listed, &oldest))
            return false;
        drop_block(listed, oldest);
    }
    return true;
}

/* decoder->packet. */
static bool keep_packet(const weir_listed_packets *listed, AVPacket **kept)
{
    *kept = av_packet_alloc();
    if (*kept)
        av_packet_move_ref(*kept, listed->decoder->packet);
    return *kept;
}

void weir__listed_packets_reset(weir_listed_packets *listed)
{
    for (size_t i = 0; listed->cache && i < listed->blocks->num; i++)
        free_packets(listed->cache[i].packets, num_packets_of(&listed->blocks->all[i]));
    free(listed->cache);
    *listed = (weir_listed_packets){ .max_cached_bytes = listed->max_cached_bytes, .far_bytes = listed->far_bytes };
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

/* What the index has of it. */
typedef struct block_reader {
    weir_listed_packets *listed;
} block_reader;

/* Is it as the list says, and the whole list as it is? */
static bool is_as_listed(weir_listed_packets *listed, size_t at, const weir_packet_entry *packet)
{
    bool is_shown = packet->flags & WEIR_PACKET_SHOWN;
    if (is_shown != !(entry_of(listed, at)->flags & AVINDEX_DISCARD_FRAME) || packet->pts == AV_NOPTS_VALUE)
        return false;
    if (listed->some_pts == AV_NOPTS_VALUE)
        listed->some_pts = packet->pts;
    return listed->step == 0 || (packet->pts - listed->some_pts) % listed->step == 0;
}

static int read_packet(weir_listed_packets *listed, size_t at, weir_packet_entry *packet, weir_error *error)
{
    int rc = weir__listed_packets_read(listed, at, error);
    if (rc != WEIR_OK)
        return rc;
    listed->past.has_packets |= at > 0;
    const char *distrust = weir__index_look(listed->decoder->stream, listed->decoder->packet, &listed->past, packet);
    if (distrust)
        return weir_error_set(error, WEIR_EDATA, 0, "%s", distrust);
    return is_as_listed(listed, at, packet) ? WEIR_OK : fail_other(error);
}

/* weir_read_block: from a block_reader. */
static int read_block(void *self, const weir_packet_block *block, weir_packet_entry *packets, weir_error *error)
{
    weir_listed_packets *listed = ((const block_reader *)self)->listed;
    size_t num_packets = num_packets_of(block);
    AVPacket **kept = make_room(listed, block) ? calloc(num_packets, sizeof(AVPacket *)) : NULL;
    int rc = WEIR_OK;
    for (size_t i = 0; rc == WEIR_OK && i < num_packets; i++) {
        rc = read_packet(listed, block->first_packet + i, &packets[i], error);
        if (rc == WEIR_OK && kept && !keep_packet(listed, &kept[i])) {
            free_packets(kept, i);
            kept = NULL;
        }
        av_packet_unref(listed->decoder->packet);
    }
    if (rc != WEIR_OK) {
        free_packets(kept, num_packets);
    } else if (kept) {
        listed->cache[block - listed->blocks->all] = (weir_kept_block){ .packets = kept, .request = listed->request };
        listed->cached_bytes += memory_of(listed, block);
    }
    weir__packets_keep_lower_layers(packets, num_packets);
    return rc;
}

static int make_blocks(weir_listed_packets *listed, const list_facts *facts, weir_index *index)
{
    if (weir__index_use_blocks(index, read_block, sizeof(block_reader)) != WEIR_OK ||
        weir__packet_blocks_init(index->blocks, facts->num_blocks) != WEIR_OK)
        return WEIR_ENOMEM;
    listed->cache = calloc(facts->num_blocks, sizeof *listed->cache);
    if (!listed->cache)
        return WEIR_ENOMEM;
    listed->blocks = index->blocks;
    ((block_reader *)index->blocks->self)->listed = listed;
    fill_directory(listed, index->blocks);
    index->step = facts->step;
    return WEIR_OK;
}

int weir__listed_packets_open(weir_listed_packets *listed, weir_decoder *decoder, uint64_t max_packets,
                              weir_index *index)
{
    list_facts facts = { 0 };
    listed->decoder = decoder;
    listed->next = 0;
    listed->some_pts = AV_NOPTS_VALUE;
    if (!is_listed(listed, max_packets, &facts))
        return WEIR_EDATA;
    listed->step = facts.step;
    int rc = make_blocks(listed, &facts, index);
    if (rc != WEIR_OK) {
        weir__listed_packets_reset(listed);
        weir__index_reset(index);
    }
    return rc;
}
