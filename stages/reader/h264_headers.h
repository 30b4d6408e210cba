/*
 * What the headers of an H.264 packet tell of its picture, as section 7.3 of ITU-T H.264 (2019) describes them: all that the order
 * of presentation follows from, without decoding. Internal. Pure; safe for any bytes.
 */
#ifndef STAGES_READER_H264_HEADERS_H
#define STAGES_READER_H264_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libavcodec/avcodec.h>

enum { WEIR_H264_MAX_CYCLE = 255, WEIR_H264_MAX_PICTURE_SETS = 256 };

/* A sequence parameter set. */
typedef struct weir_h264_sequence {
    bool is_known;
    uint32_t id;
    uint64_t hash;         /* of all its bytes */
    uint8_t chroma_format; /* chroma_format_idc */
    bool has_separate_planes;
    uint8_t frame_number_bits;
    uint8_t
        order_type; /* pic_order_cnt_type: 0 = pictures store the low bits, 1 = there is a cycle, 2 = that of decoding */
    uint8_t order_bits; /* of type 0 */
    bool has_no_deltas; /* of type 1 */
    int32_t non_reference_offset, bottom_offset;
    uint32_t cycle_length;
    int32_t cycle[WEIR_H264_MAX_CYCLE];
    bool has_frames_only;
    bool has_delay; /* it tells max_num_reorder_frames: */
    uint32_t delay; /* … the number of frames that are decoded before a frame and shown after it */
} weir_h264_sequence;

/* A picture parameter set. */
typedef struct weir_h264_picture_set {
    bool is_known;
    uint64_t hash;
    bool has_bottom_order, is_weighted, has_redundant;
    uint8_t bi_weights; /* weighted_bipred_idc */
    uint8_t num_references[2];
} weir_h264_picture_set;

/* All-zero before the first packet. */
typedef struct weir_h264_headers {
    weir_h264_sequence sequence; /* the only one */
    weir_h264_picture_set sets[WEIR_H264_MAX_PICTURE_SETS];
} weir_h264_headers;

/* A frame. */
typedef struct weir_h264_picture {
    bool is_idr;
    bool is_reference;
    bool is_b;     /* its first slice is of B macroblocks */
    bool recovers; /* it has a recovery point without a distance: decoders mark it as a keyframe, as an IDR picture */
    uint32_t frame_number, order_bits;
    int32_t bottom_delta; /* of type 0 */
    int32_t deltas[2];    /* of type 1 */
} weir_h264_picture;

/* Reads the parameter sets of the extradata. NULL; or why the headers cannot be followed. */
const char *weir__h264_read_extradata(weir_h264_headers *headers, const AVCodecParameters *codec);

/*
 * Reads the next packet in decode order. NULL: it is one frame, with all its fields. Otherwise it is the reason why
 * the headers cannot be followed: they are damaged or have something rare. Rare are:
 * - a second sequence parameter set, or a picture set that changes;
 * - fields, data partitions, redundant slices or slice groups;
 * - further layers or views, or several pictures in a packet;
 * - a memory that is cleared (MMCO 5).
 */
const char *weir__h264_read_packet(weir_h264_headers *headers, const AVCodecParameters *codec, const AVPacket *packet,
                                   weir_h264_picture *picture);

#endif
