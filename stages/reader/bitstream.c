/*
 * Headers of H.264, HEVC, VP8, VP9, MPEG-2 and MPEG-4 pictures, as far as random access needs them. Where a header is
 * ambiguous, the answer is the safe one: not clean, not disposable.
 */
#include "stages/reader/bitstream.h"

#include "stages/reader/nal_units.h"

bool weir__bitstream_is_known(enum AVCodecID codec)
{
    switch (codec) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC:
    case AV_CODEC_ID_AV1:
    case AV_CODEC_ID_VP8:
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_MPEG1VIDEO:
    case AV_CODEC_ID_MPEG2VIDEO:
    case AV_CODEC_ID_MPEG4:
    case AV_CODEC_ID_MJPEG:
    case AV_CODEC_ID_PRORES:
    case AV_CODEC_ID_DNXHD:
    case AV_CODEC_ID_RAWVIDEO:
    case AV_CODEC_ID_HUFFYUV:
    case AV_CODEC_ID_FFVHUFF:
    case AV_CODEC_ID_UTVIDEO: return true;
    default: return false;
    }
}

/* ---- H.264 --------------------------------------------------------------------------------------------------- */

/* Does this SEI unit guarantee exact pictures from here in output order (recovery_frame_cnt = 0, exact_match_flag)? */
static bool promises_recovery(const weir_unit_walk *units, const uint8_t *unit, size_t size_bytes)
{
    enum { COUNT_IS_0_AND_EXACT = 0xc0 };
    uint8_t byte;
    return weir__unit_has_recovery_point(unit, weir__unit_trim(units, unit, size_bytes), &byte) &&
           (byte & COUNT_IS_0_AND_EXACT) == COUNT_IS_0_AND_EXACT;
}

static weir_packet_kind look_at_h264(weir_unit_walk units)
{
    enum { SLICE = 1, SLICE_PART_A = 2, IDR_SLICE = 5, SEI = 6, SEQUENCE_SET = 7, PICTURE_SET = 8 };
    weir_packet_kind kind = { .is_disposable = true };
    bool has_slice = false, has_sequence = false, has_picture = false;
    const uint8_t *unit;
    size_t size_bytes;
    while (weir__unit_walk_next(&units, &unit, &size_bytes)) {
        unsigned type = size_bytes ? unit[0] & 0x1fu : 0;
        if (type == SEI && promises_recovery(&units, unit, size_bytes))
            kind.is_clean = true;
        has_sequence |= type == SEQUENCE_SET;
        has_picture |= type == PICTURE_SET;
        if (type == IDR_SLICE)
            kind.is_clean = kind.is_closed = true;
        if (type == SLICE || type == SLICE_PART_A || type == IDR_SLICE) {
            has_slice = true;
            kind.is_disposable &= (unit[0] & 0x60) == 0; /* nal_ref_idc */
        }
    }
    kind.has_parameters = has_sequence || has_picture;
    kind.has_all_parameters = has_sequence && has_picture;
    kind.is_disposable &= has_slice;
    kind.is_unclear = !has_slice && !units.is_broken; /* with damage, assume one frame */
    return kind;
}

/* ---- HEVC ---------------------------------------------------------------------------------------------------- */

static weir_packet_kind look_at_hevc(weir_unit_walk units, weir_packet_past *past)
{
    enum { LAST_NON_REFERENCE = 14, FIRST_IRAP = 16, FIRST_IDR = 19, LAST_IDR = 20, CRA = 21, LAST_SLICE = 31 };
    enum { FIRST_SET = 32, LAST_SET = 34, ALL_SETS = 7, FIRST_SLICE_FLAG = 0x80, DROPS_EARLIER_FLAG = 0x40 };
    enum { HEADER_BYTES = 2, SEQUENCE_END = 36, STREAM_END = 37 };
    weir_packet_kind kind = { 0 };
    unsigned num_pictures = 0, sets = 0;
    const uint8_t *unit;
    size_t size_bytes;
    while (weir__unit_walk_next(&units, &unit, &size_bytes)) {
        unsigned type = size_bytes >= HEADER_BYTES ? (unit[0] >> 1) & 0x3fu : UINT8_MAX;
        past->has_ended |= type == SEQUENCE_END || type == STREAM_END;
        if (type >= FIRST_SET && type <= LAST_SET)
            sets |= 1u << (type - FIRST_SET);
        if (type > LAST_SLICE || size_bytes == HEADER_BYTES)
            continue;
        if (num_pictures == 0) {
            kind.is_clean = type >= FIRST_IRAP && type <= CRA;
            bool has_flag = kind.is_clean && (unit[2] & DROPS_EARLIER_FLAG);
            kind.is_closed = type >= FIRST_IDR && type <= LAST_IDR && !has_flag;
            kind.drops_held = has_flag || (type == CRA && past->has_ended);
            past->has_ended = false;
            kind.is_disposable = type <= LAST_NON_REFERENCE && type % 2 == 0;
            kind.layer = (unit[1] & 7u) ? (unit[1] & 7u) - 1 : 0;
        }
        num_pictures += (unit[2] & FIRST_SLICE_FLAG) != 0;
    }
    kind.has_parameters = sets != 0;
    kind.has_all_parameters = sets == ALL_SETS;
    kind.is_unclear = num_pictures > 1 || (num_pictures == 0 && !units.is_broken);
    return kind;
}

/* ---- MPEG-1, -2 and -4 --------------------------------------------------------------------------------------- */

enum { PICTURE_I = 1, PICTURE_B = 3 };

static weir_packet_kind look_at_mpeg2(weir_unit_walk units, weir_packet_past *past)
{
    enum { PICTURE = 0x00, SEQUENCE = 0xb3, GROUP = 0xb8, CLOSED_BYTE = 4, CLOSED_FLAG = 0x40, SHAPE_BYTES = 5 };
    weir_packet_kind kind = { .is_disposable = true };
    bool has_sequence = false, has_closed_group = false;
    unsigned num_pictures = 0;
    const uint8_t *unit;
    size_t size_bytes;
    while (weir__unit_walk_next(&units, &unit, &size_bytes)) {
        has_sequence |= unit[0] == SEQUENCE;
        if (unit[0] == SEQUENCE && size_bytes >= SHAPE_BYTES) {
            uint32_t shape =
                (uint32_t)unit[1] << 20 | (uint32_t)unit[2] << 12 | (uint32_t)unit[3] << 4 | unit[4] >> 4;
            kind.drops_held |= shape != past->shape;
            past->shape = shape;
        }
        has_closed_group |= unit[0] == GROUP && size_bytes > CLOSED_BYTE && (unit[CLOSED_BYTE] & CLOSED_FLAG);
        if (unit[0] != PICTURE || size_bytes < 3)
            continue;
        unsigned type = (unit[2] >> 3) & 7;
        kind.is_clean |= num_pictures == 0 && type == PICTURE_I && has_sequence;
        kind.is_disposable &= type == PICTURE_B;
        num_pictures++;
    }
    kind.is_closed = kind.is_clean && has_closed_group;
    kind.is_disposable &= num_pictures > 0;
    kind.is_unclear = num_pictures < 1 || num_pictures > 2; /* two: the fields of one frame */
    return kind;
}

static weir_packet_kind look_at_mpeg4(weir_unit_walk units, int size)
{
    enum { PICTURE = 0xb6, FIRST_IS_I = 0, FIRST_IS_B = 2, MIN_CODED_BYTES = 16 };
    weir_packet_kind kind = { 0 };
    unsigned num_pictures = 0;
    const uint8_t *unit;
    size_t size_bytes;
    while (weir__unit_walk_next(&units, &unit, &size_bytes)) {
        if (unit[0] != PICTURE || size_bytes < 2)
            continue;
        unsigned type = unit[1] >> 6;
        kind.is_clean = type == FIRST_IS_I;
        kind.is_disposable = type == FIRST_IS_B;
        num_pictures++;
    }
    /* A very short packet may be a picture that is not coded and gives no frame. */
    kind.is_unclear = num_pictures != 1 || size < MIN_CODED_BYTES;
    return kind;
}

/* ---- VP8 and VP9 --------------------------------------------------------------------------------------------- */

static weir_packet_kind look_at_vp8(const AVPacket *packet)
{
    if (packet->size < 3)
        return (weir_packet_kind){ .is_unclear = true };
    bool is_key = !(packet->data[0] & 1);
    return (weir_packet_kind){ .is_clean = is_key, .is_closed = is_key, .is_hidden = !(packet->data[0] & 0x10) };
}

/* One frame of a VP9 packet: counts it if it is shown; returns whether it is a keyframe. */
static bool look_at_vp9_frame(uint8_t header, unsigned *num_shown)
{
    unsigned profile = (header >> 5 & 1u) | (header >> 3 & 2u);
    unsigned shift = profile == 3 ? 1 : 0; /* a reserved bit */
    bool shows_existing = header >> (3 - shift) & 1;
    bool is_key = !shows_existing && !(header >> (2 - shift) & 1);
    *num_shown += shows_existing || (header >> (1 - shift) & 1);
    return is_key;
}

static weir_packet_kind look_at_vp9(const AVPacket *packet)
{
    weir_packet_kind kind = { 0 };
    unsigned num_shown = 0;
    size_t size = (size_t)packet->size;
    if (size < 3)
        return (weir_packet_kind){ .is_unclear = true };
    uint8_t marker = packet->data[size - 1];
    unsigned num_frames = (marker & 7u) + 1;
    unsigned length_bytes = (marker >> 3 & 3u) + 1;
    size_t index_bytes = 2 + (size_t)num_frames * length_bytes;
    bool is_superframe = (marker & 0xe0) == 0xc0 && size > index_bytes && packet->data[size - index_bytes] == marker;
    const uint8_t *length_at = packet->data + size - index_bytes + 1;
    size_t at = 0;
    for (unsigned i = 0; i < (is_superframe ? num_frames : 1); i++) {
        size_t length = 0;
        for (unsigned byte = 0; is_superframe && byte < length_bytes; byte++)
            length |= (size_t)*length_at++ << (8 * byte);
        if (at >= size)
            return (weir_packet_kind){ .is_unclear = true };
        bool is_key = look_at_vp9_frame(packet->data[at], &num_shown);
        kind.is_clean |= i == 0 && is_key;
        at += length;
    }
    kind.is_closed = kind.is_clean;
    kind.is_hidden = num_shown == 0;
    kind.is_unclear = num_shown > 1;
    return kind;
}

bool weir__bitstream_needs_past(enum AVCodecID codec)
{
    return codec == AV_CODEC_ID_MPEG1VIDEO || codec == AV_CODEC_ID_MPEG2VIDEO;
}

static weir_packet_kind look(const AVCodecParameters *codec, const AVPacket *packet, weir_packet_past *past)
{
    switch (codec->codec_id) {
    case AV_CODEC_ID_H264: return look_at_h264(weir__unit_walk_of(codec, packet, WEIR_AVCC_LENGTH_BYTE));
    case AV_CODEC_ID_HEVC: return look_at_hevc(weir__unit_walk_of(codec, packet, WEIR_HVCC_LENGTH_BYTE), past);
    case AV_CODEC_ID_MPEG1VIDEO:
    case AV_CODEC_ID_MPEG2VIDEO: return look_at_mpeg2(weir__unit_walk_of(codec, packet, WEIR_NO_LENGTHS), past);
    case AV_CODEC_ID_MPEG4: return look_at_mpeg4(weir__unit_walk_of(codec, packet, WEIR_NO_LENGTHS), packet->size);
    case AV_CODEC_ID_VP8: return look_at_vp8(packet);
    case AV_CODEC_ID_VP9: return look_at_vp9(packet);
    case AV_CODEC_ID_AV1:
        return (weir_packet_kind){ .is_clean = packet->flags & AV_PKT_FLAG_KEY,
                                   .is_closed = packet->flags & AV_PKT_FLAG_KEY };
    default: /* frames are independent */
        return (weir_packet_kind){ .is_clean = true, .is_closed = true, .is_disposable = true };
    }
}

weir_packet_kind weir__bitstream_look(const AVCodecParameters *codec, const AVPacket *packet, weir_packet_past *past)
{
    weir_packet_kind kind = look(codec, packet, past);
    kind.drops_held &= past->has_packets;
    past->has_packets = true;
    return kind;
}
