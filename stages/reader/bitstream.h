/* Properties of a packet from its bytes, without decoding. Internal. Pure; safe for any bytes. */
#ifndef STAGES_READER_BITSTREAM_H
#define STAGES_READER_BITSTREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <libavcodec/avcodec.h>

typedef struct weir_packet_kind {
    bool is_clean; /* a decoder that starts here outputs this frame, and all shown after it, bit by bit as one that
                           started earlier */
    bool is_disposable; /* no other frame depends on it, if `layer` is the highest one */
    bool is_hidden;     /* decoded, but not shown */
    /* Clean, and nothing after it in the order of decoding is shown before it: the frames before it are complete without it. */
    bool is_closed;
    bool has_parameters;     /* it has parameter sets, which a decoder keeps for later packets */
    bool has_all_parameters; /* of each kind that a decoder needs */
    bool is_unclear;         /* its number of frames is unknown */
    bool drops_held; /* FFmpeg's decoder drops the frames that it holds: those before it that it has not given */
    unsigned layer;  /* temporal layer; 0 = the lowest */
} weir_packet_kind;

/* Is the codec supported here? Then a packet is one frame, unless it is hidden or unclear. */
bool weir__bitstream_is_known(enum AVCodecID codec);

/* What earlier packets say about what a later one drops. All-zero is before the first packet. */
typedef struct weir_packet_past {
    bool has_packets;
    bool has_ended; /* HEVC: a sequence, and no picture came since */
    uint32_t
        shape; /* MPEG-1, -2: a number for the size and the aspect ratio of the last sequence header; 0 = there was none */
} weir_packet_past;

/* Does drops_held depend on packets that may be anywhere before? */
bool weir__bitstream_needs_past(enum AVCodecID codec);

/* Looks at the next packet. Of packets in another order, or some of them, drops_held may be wrong. */
weir_packet_kind weir__bitstream_look(const AVCodecParameters *codec, const AVPacket *packet, weir_packet_past *past);

#endif
