#include "stages/reader/group_cut.h"

/* Does it change what the decoder does with later packets, or whether it can decode? */
static bool changes_decoder(const AVPacket *packet)
{
    for (int i = 0; i < packet->side_data_elems; i++) {
        switch (packet->side_data[i].type) {
        case AV_PKT_DATA_NEW_EXTRADATA:
        case AV_PKT_DATA_PARAM_CHANGE:
        case AV_PKT_DATA_PALETTE:
        case AV_PKT_DATA_ENCRYPTION_INIT_INFO:
        case AV_PKT_DATA_ENCRYPTION_INFO: return true;
        default: break;
        }
    }
    return false;
}

bool weir__group_cut_add(weir_group_cut *cut, const AVCodecParameters *codec, const AVPacket *packet)
{
    weir_packet_kind kind = weir__bitstream_look(codec, packet, &cut->past);
    bool is_first = cut->num_packets++ == 0;
    bool is_latest = packet->pts != AV_NOPTS_VALUE && (is_first || packet->pts > cut->last_pts);
    cut->is_over |= packet->pts == AV_NOPTS_VALUE || changes_decoder(packet);
    bool is_complete = !cut->has_parameters || kind.has_all_parameters;
    bool is_cut = !is_first && !cut->is_over && kind.is_closed && is_latest && is_complete;
    if (is_cut) {
        cut->has_earlier = true;
        cut->earlier_pts = cut->last_pts;
    }
    cut->has_parameters |= kind.has_parameters;
    cut->is_wrong |=
        cut->has_earlier && (kind.drops_held || packet->pts == AV_NOPTS_VALUE || packet->pts <= cut->earlier_pts);
    if (is_latest)
        cut->last_pts = packet->pts;
    return is_cut;
}
