/*
 * The index of a file: its video packets in decode order, the frames they are in presentation order, and where decoding
 * can begin. Made from the packets, without decoding. Internal. One thread at a time.
 */
#ifndef WEIR_STAGES_INDEX_H
#define WEIR_STAGES_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libavformat/avformat.h>

#include "frame_selection.h"

enum {
    WEIR_PACKET_KEY = 1,        /* marked as a keyframe */
    WEIR_PACKET_CLEAN = 2,      /* decoding can begin here */
    WEIR_PACKET_SHOWN = 4,      /* a frame comes of it */
    WEIR_PACKET_DISPOSABLE = 8, /* no other needs it */
    WEIR_PACKET_WANTED = 16,    /* the reader's */
};

typedef struct weir_packet_entry {
    int64_t pts;
    int64_t dts;
    int32_t size_bytes;
    int32_t duration; /* 0 = unknown */
    uint32_t start;   /* the last clean packet up to here; 0 if there is none */
    uint8_t flags;    /* WEIR_PACKET_… */
    uint8_t layer;
} weir_packet_entry;

typedef struct weir_index {
    weir_packet_entry *packets; /* in decode order */
    size_t num_packets;
    size_t max_packets; /* there is room for */

    /* after weir_index_end() */
    uint32_t *frames; /* in presentation order: which packet each one is */
    size_t num_frames;
    const char *distrust; /* why frames cannot be told from packets; NULL = they can */
} weir_index;

/* The next packet of the stream, in decode order. WEIR_OK or WEIR_ENOMEM. */
int weir_index_add(weir_index *index, const AVStream *stream, const AVPacket *packet);

/* All packets are in. WEIR_OK or WEIR_ENOMEM. */
int weir_index_end(weir_index *index, const AVStream *stream);

/* Which frame has that pts. False = none. Only of an index that can be trusted. */
bool weir_index_find(const weir_index *index, int64_t pts, size_t *frame);

/* The packet from which on all is to be decoded that this frame needs. Only of an index that can be trusted. */
size_t weir_index_start_of(const weir_index *index, size_t frame);

/* WEIR_OK or WEIR_ENOMEM. */
int weir_index_fill_timeline(const weir_index *index, const AVStream *stream, weir_timeline *timeline);

void weir_index_reset(weir_index *index);

#endif
