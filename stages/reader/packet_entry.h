/* What is known of one packet without decoding it. Internal. */
#ifndef STAGES_READER_PACKET_ENTRY_H
#define STAGES_READER_PACKET_ENTRY_H

#include <stdint.h>

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

#endif
