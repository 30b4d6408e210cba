/*
 * The index of a file: its video packets in decode order, the frames they are in presentation order, and where decoding
 * can begin. Made from the packets, without decoding. Internal. One thread at a time.
 */
#ifndef STAGES_READER_FRAME_INDEX_H
#define STAGES_READER_FRAME_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libavformat/avformat.h>

#include "stages/reader/frame_clock.h"

enum {
    WEIR_PACKET_KEY = 1,        /* marked as a keyframe */
    WEIR_PACKET_CLEAN = 2,      /* decoding can begin here */
    WEIR_PACKET_SHOWN = 4,      /* gives a frame */
    WEIR_PACKET_DISPOSABLE = 8, /* no other packet depends on it */
    WEIR_PACKET_WANTED = 16,    /* set by the reader */
};

typedef struct weir_packet_entry {
    int64_t pts;
    int64_t dts;
    int32_t size_bytes;
    int32_t duration; /* 0 = unknown */
    uint32_t start;   /* the last clean packet up to here; 0 if none */
    uint8_t flags;    /* WEIR_PACKET_… */
    uint8_t layer;
} weir_packet_entry;

typedef struct weir_index {
    weir_packet_entry *packets; /* in decode order */
    size_t num_packets;
    size_t max_packets; /* capacity */

    /* after weir__index_end() */
    uint32_t *frames; /* in presentation order: the packet of each frame */
    size_t num_frames;
    const char *distrust; /* why the index is not trusted; NULL = it is */
} weir_index;

/* The next packet of the stream, in decode order. WEIR_OK or WEIR_ENOMEM. */
int weir__index_add(weir_index *index, const AVStream *stream, const AVPacket *packet);

/* All packets are in. WEIR_OK or WEIR_ENOMEM. */
int weir__index_end(weir_index *index, const AVStream *stream);

/* The frame with that pts. False = none. Only for a trusted index. */
bool weir__index_find(const weir_index *index, int64_t pts, size_t *frame);

/* The packet where decoding must start for this frame. Only for a trusted index. */
size_t weir__index_start_of(const weir_index *index, size_t frame);

/* The end of the last frame, relative to the first one. *is_told: the stream tells it; otherwise it is a guess. Only for a
   trusted index. */
int64_t weir__index_end_ticks(const weir_index *index, const AVStream *stream, bool *is_told);

/* What the packets show of an index that is not trusted: as if each gave one frame, at its pts; if some have none, at its dts;
   if some have neither, one after the other. WEIR_OK; WEIR_EDATA (there are no frames, or times out of range) or WEIR_ENOMEM. */
int weir__index_guess_timeline(const weir_index *index, const AVStream *stream, weir_timeline *timeline);

/* Only for a trusted index. WEIR_OK or WEIR_ENOMEM. */
int weir__index_fill_timeline(const weir_index *index, const AVStream *stream, weir_timeline *timeline);

/* The memory that it takes. */
size_t weir__index_bytes(const weir_index *index);

void weir__index_reset(weir_index *index);

#endif
