/*
 * The index of a file: its video packets in decode order, the frames they are in presentation order, and where decoding
 * can begin. Made from the packets, without decoding. Internal. One thread at a time.
 *
 * If the container does not store the order of presentation, and H.264's headers tell it (h264_order.h), the index
 * gives the packets their pts (is_ordered). The reader's packets must get these before they are decoded.
 */
#ifndef STAGES_READER_FRAME_INDEX_H
#define STAGES_READER_FRAME_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libavformat/avformat.h>

#include "stages/reader/bitstream.h"
#include "stages/reader/frame_clock.h"
#include "stages/reader/h264_order.h"
#include "stages/reader/packet_blocks.h"
#include "stages/reader/packet_entry.h"

typedef struct weir_index {
    weir_packet_entry *packets; /* in decode order; NULL = they are in blocks, or there are none */
    size_t num_packets;
    size_t max_packets; /* capacity */
    weir_h264_order
        *order; /* of packets without pts, until weir__index_end(); NULL = they have pts, or no order is known */

    weir_packet_past past;

    /* after weir__index_end() */
    uint32_t *frames; /* in presentation order: the packet of each frame; NULL = they are in blocks */
    size_t num_frames;
    int64_t step;         /* all times of frames are that apart, or a multiple of it; 0 = there is only one frame */
    const char *distrust; /* why the index is not trusted; NULL = it is */
    bool is_ordered;      /* the packets of the file have no pts; those of the index come from their order */
    bool has_no_times;    /* … and count from 0, as the stream stores no times */

    weir_packet_blocks
        *blocks; /* trusted ones, loaded where they are needed; NULL = the index was made of all packets */
} weir_index;

/* Packet `at`, below num_packets; its flags may be changed. Never NULL, but see weir__index_failure(). */
weir_packet_entry *weir__index_packet(const weir_index *index, size_t at);

/* The packet of that frame, below num_frames. */
size_t weir__index_packet_of(const weir_index *index, size_t frame);

/* Could a block not be loaded since the index was opened? Then answers may be wrong. WEIR_OK = no; or the failure with *error
   filled; WEIR_EDATA: the blocks are not those of the file. */
int weir__index_failure(const weir_index *index, weir_error *error);

/* Loads the blocks with the packets from `first` to `last`. */
void weir__index_load(const weir_index *index, size_t first, size_t last);

/* Loads what is known of that packet, which is not needed. False: it cannot be; no further request is to be answered if
   weir__index_is_doubtful() then. */
bool weir__index_try(const weir_index *index, size_t at);

/* Was a block that was tried not that of the file? */
bool weir__index_is_doubtful(const weir_index *index);

/* Prepares an empty index for blocks. `read` reads them, with a struct of self_bytes zero bytes. The caller fills the
   blocks, and then calls weir__index_end_blocks(). WEIR_OK or WEIR_ENOMEM. */
int weir__index_use_blocks(weir_index *index, weir_read_block *read, size_t self_bytes);

/* The blocks' directory and `step` are set. WEIR_OK; WEIR_EDATA: it cannot be a trusted index; or another failure. */
int weir__index_end_blocks(weir_index *index, const AVStream *stream);

/* Fills *entry with what the next packet of the stream tells. Returns why an index with it is not to be trusted; NULL
   = it may be. */
const char *weir__index_look(const AVStream *stream, const AVPacket *packet, weir_packet_past *past,
                             weir_packet_entry *entry);

/* The next packet of the stream, in decode order. WEIR_OK or WEIR_ENOMEM. */
int weir__index_add(weir_index *index, const AVStream *stream, const AVPacket *packet);

/* Packets will be missing at its end: their order is not looked for. */
void weir__index_cut(weir_index *index);

/* All packets are in. WEIR_OK or WEIR_ENOMEM. */
int weir__index_end(weir_index *index, const AVStream *stream);

/* Is that packet of the file packet `at`, as far as times and size tell? */
bool weir__index_is_packet(const weir_index *index, size_t at, const AVPacket *packet);

/* Which packet is that one of the file? By its time; its size may be another one. False: it is not known. Only for a
   trusted index. */
bool weir__index_find_packet(const weir_index *index, const AVPacket *packet, size_t *at);

/* Gives packet `at` of the file the pts of the index. */
void weir__index_set_pts(const weir_index *index, size_t at, AVPacket *packet);

/* Only packets of the highest temporal layer can be skipped: higher layers may need lower ones. For those of a whole file, or of
   a part of it that begins with a clean one. */
void weir__packets_keep_lower_layers(weir_packet_entry *packets, size_t num_packets);

/* The frame with that pts; if the blocks' first times are not exact, among the loaded ones. False = none. Only for a trusted
   index. */
bool weir__index_find(const weir_index *index, int64_t pts, size_t *frame);

/* The packet where decoding must start for this frame. Only for a trusted index. */
size_t weir__index_start_of(const weir_index *index, size_t frame);

/* The end of the last frame, relative to the first one. *is_known: the stream says it; otherwise it is a guess. Only for a
   trusted index. */
int64_t weir__index_end_ticks(const weir_index *index, const AVStream *stream, bool *is_known);

/* What the packets show of an index that is not trusted: as if each gave one frame, at its pts. If some have no pts,
   it is at the dts. If some have neither, the frames come one after the other. WEIR_OK; WEIR_EDATA (there are no
   frames, or times out of range) or WEIR_ENOMEM. */
int weir__index_guess_timeline(const weir_index *index, const AVStream *stream, weir_timeline *timeline);

/* A timeline of the index, which it reads: only while the index lives. Only for a trusted one. */
void weir__index_set_timeline(const weir_index *index, const AVStream *stream, weir_timeline *timeline);

/* The memory that it takes. */
size_t weir__index_bytes(const weir_index *index);

void weir__index_reset(weir_index *index);

#endif
