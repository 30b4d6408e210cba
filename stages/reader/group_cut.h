/*
 * Where a stream may be cut into groups that are decoded apart. Decoding from a cut on gives the same frames, byte by
 * byte and in the same order, as one decoder that has decoded everything before. Internal. Pure: no file; one thread
 * at a time for each.
 *
 * A cut is before a packet that is closed (bitstream.h) and is shown after all packets before it. If the stream had
 * parameter sets so far, the packet also brings them along. There is no cut after a packet that changes the decoder's
 * settings by side data.
 */
#ifndef STAGES_READER_GROUP_CUT_H
#define STAGES_READER_GROUP_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include <libavcodec/avcodec.h>

#include "stages/reader/bitstream.h"

/* All-zero is before the first packet. */
typedef struct weir_group_cut {
    uint64_t num_packets;
    int64_t last_pts;    /* the highest so far */
    int64_t earlier_pts; /* the highest before the group */
    bool has_earlier;    /* it is not the first group */
    bool has_parameters; /* packets had parameter sets */
    bool is_over;        /* there is no further cut */
    bool
        is_wrong; /* a packet is shown before the end of the group before, or drops frames of it: an earlier cut was wrong */
    weir_packet_past past;
} weir_group_cut;

/* The next packet, in the order of decoding. Does it begin a group? */
bool weir__group_cut_add(weir_group_cut *cut, const AVCodecParameters *codec, const AVPacket *packet);

#endif
