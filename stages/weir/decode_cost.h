/*
 * What the decode stages measure of each item. Each row defines a field of the struct, the part that task hooks and traces get
 * (weir/item_part.h), and the key and column of the statistics. In the statistics, times are in seconds.
 *
 * X(field, name, kind, unit, meaning): kind is as in weir_part_kind. TIME is an int64_t of nanoseconds, COUNT and BYTES are
 * uint64_t, TEXT is an array of char. 0 and "" mean unknown, except in the last two fields.
 */
#ifndef WEIR_DECODE_COST_H
#define WEIR_DECODE_COST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_DECODE_PARTS(X) \
    X(codec, "codec", TEXT, "", "FFmpeg's name of the codec") \
    X(width, "width", COUNT, "pixels", "of the source, as it was coded") \
    X(height, "height", COUNT, "pixels", "of the source, as it was coded") \
    X(num_frames, "num_frames", COUNT, "frames", "in the result") \
    X(size_bytes, "size_bytes", BYTES, "bytes", "of the source") \
    X(open_ns, "open", TIME, "s", "opening, until the codec is ready") \
    X(demux_ns, "demux", TIME, "s", "reading and demuxing") \
    X(decode_ns, "decode", TIME, "s", "decoding") \
    X(scale_ns, "scale", TIME, "s", "scaling and converting, with rotation and filters; of sound, resampling") \
    X(num_missing, "num_missing", COUNT, "frames", "lost to damage, as far as known") \
    X(num_errors, "num_errors", COUNT, "errors", \
      "packets that could not be read or decoded, and frames that had to be concealed")

#define WEIR_DECODE_FIELD_TIME(field)                       int64_t field;
#define WEIR_DECODE_FIELD_COUNT(field)                      uint64_t field;
#define WEIR_DECODE_FIELD_BYTES(field)                      uint64_t field;
#define WEIR_DECODE_FIELD_TEXT(field)                       char field[32];
#define WEIR_DECODE_FIELD(field, name, kind, unit, meaning) WEIR_DECODE_FIELD_##kind(field)

typedef struct weir_decode_cost {
    WEIR_DECODE_PARTS(WEIR_DECODE_FIELD)
} weir_decode_cost;

#undef WEIR_DECODE_FIELD
#undef WEIR_DECODE_FIELD_TIME
#undef WEIR_DECODE_FIELD_COUNT
#undef WEIR_DECODE_FIELD_BYTES
#undef WEIR_DECODE_FIELD_TEXT

#ifdef __cplusplus
}
#endif

#endif
