/* What a packet's own bytes tell about it, without decoding it. Internal. Pure; whatever the bytes are. */
#ifndef WEIR_STAGES_BITSTREAM_H
#define WEIR_STAGES_BITSTREAM_H

#include <stdbool.h>

#include <libavcodec/avcodec.h>

typedef struct weir_packet_kind {
    bool is_clean; /* a decoder that begins here gives this frame, and all that are shown after it, bit by bit as one
                           that began earlier */
    bool is_disposable; /* no other frame needs it to be decoded, if layer is the highest there is */
    bool is_hidden;     /* it is decoded, but not shown */
    bool is_unclear;    /* it cannot be told how many frames are in it */
    unsigned layer;     /* temporal layer, of those there may be; 0 = the lowest */
} weir_packet_kind;

/* Is the codec one of those that this file knows? Then a packet is one frame, unless it is hidden or unclear. */
bool weir_bitstream_is_known(enum AVCodecID codec);

weir_packet_kind weir_bitstream_look(const AVCodecParameters *codec, const AVPacket *packet);

#endif
