/*
 * The packets of an open file whose header lists all of them, as that of an MP4 does: their places, sizes, decode times, and which
 * are keyframes. So it is known how many are before a group of pictures, and only the groups that a request needs are
 * read. The order of presentation, and where decoding can begin, come from the packets of these groups. Internal. One thread at a
 * time.
 *
 * The list is believed if nothing contradicts it, and if no frame depends on packets far before it (bitstream.h). It
 * has as many packets as the header counts, and the file is as long as the list says. Decode times rise, and each
 * packet that is read is the one listed. Otherwise all packets are to be read.
 */
#ifndef STAGES_READER_LISTED_PACKETS_H
#define STAGES_READER_LISTED_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stages/decoder/decoder.h"
#include "stages/reader/frame_index.h"

/* The packets of a block that were read; NULL = they are not kept. */
typedef struct weir_kept_block {
    AVPacket **packets;
    uint64_t request; /* the last one that needed them */
} weir_kept_block;

typedef struct weir_listed_packets {
    /* immutable after init */
    size_t max_cached_bytes;
    int64_t far_bytes; /* a seek pays if it skips at least this much; a block has at least as many bytes */

    /* of the open file */
    weir_decoder *decoder;
    const weir_packet_blocks *blocks; /* of the index; NULL = the packets are not listed */
    int64_t step;
    int64_t some_pts;      /* of a packet that was read; AV_NOPTS_VALUE = none was */
    weir_packet_past past; /* of the packets that were read for blocks */
    size_t next;           /* the demuxer's next packet */
    uint64_t request;      /* its number */
    size_t cached_bytes;
    weir_kept_block *cache; /* for each block */
} weir_listed_packets;

/* The open file of the decoder, at its beginning. A file of no more bytes than max_cached_bytes is not listed: it is read once as a
   whole. WEIR_OK: *index, which was empty, has blocks that are read where they are needed; *listed must stay where it is as
   long as it. WEIR_EDATA: the packets are not listed, and nothing has happened; WEIR_ENOMEM. */
int weir__listed_packets_open(weir_listed_packets *listed, weir_decoder *decoder, uint64_t max_packets,
                              weir_index *index);

/* A packet that was kept when its block was read; NULL = it is to be read. */
const AVPacket *weir__listed_packets_cached(weir_listed_packets *listed, size_t at);

/* Reads packet `at` into decoder->packet, wherever the demuxer stands. WEIR_OK; WEIR_EDATA: it is not there; or another failure;
   with *error filled. */
int weir__listed_packets_read(weir_listed_packets *listed, size_t at, weir_error *error);

/* Another request begins: what earlier ones have kept gives way to what it reads. */
void weir__listed_packets_begin(weir_listed_packets *listed);

void weir__listed_packets_reset(weir_listed_packets *listed);

#endif
