/*
 * How FFmpeg decodes: limits of pixels and memory, and shortcuts that cost accuracy. Every stage that decodes takes this
 * struct by pointer and size:
 *
 *     weir_video_config video = { WEIR_WITH_DECODER(.loop_filter = WEIR_LOOP_FILTER_REFERENCES) };
 */
#ifndef WEIR_DECODER_CONFIG_H
#define WEIR_DECODER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which frames the decoder does not smooth with the codec's loop filter (deblocking, SAO), which takes a fifth to a
   third of the CPU time. Later frames are predicted from what was not filtered, so errors grow until the next keyframe,
   except with WEIR_LOOP_FILTER_REFERENCES. `bench/option_costs.py` measures both. FFmpeg's own decoders of
   H.264, HEVC, VP8, VP9 and some older codecs support it; others (libdav1d's AV1) filter all frames. */
typedef enum weir_loop_filter {
    WEIR_LOOP_FILTER_ALL = 0,    /* filters every frame, as the codec's standard says */
    WEIR_LOOP_FILTER_REFERENCES, /* only frames that others are predicted from: errors do not spread */
    WEIR_LOOP_FILTER_KEYFRAMES,  /* only keyframes */
    WEIR_LOOP_FILTER_NONE,
} weir_loop_filter;

/* The largest weir_decoder_config.lowres. */
#define WEIR_MAX_LOWRES 3

/* Setting this struct to all-zero is equivalent to defaults. Copied. */
typedef struct weir_decoder_config {
    /* Limits against hostile files: beyond them the task fails with WEIR_ELIMIT. */
    uint64_t max_pixels; /* width × height of a coded picture (0 = 2^26) */
    /* Of the reference frames that one slot's decoder holds: estimated before decoding, counted during it (0 = 1
       GiB). */
    uint64_t max_decoder_bytes;
    /* The same for all decoders of the process together, in all pipelines (0 = half of the memory that the process may
       use). */
    uint64_t max_all_decoder_bytes;

    /* Cheaper decoding of pictures that loses accuracy: by default they are what the codec's standard says. Not for
       sound. */
    weir_loop_filter loop_filter; /* (default WEIR_LOOP_FILTER_ALL) */
    bool fast_decode; /* let the decoder take shortcuts that its standard does not allow (AV_CODEC_FLAG2_FAST) */
    uint8_t lowres;   /* decode at 1/2 (1), 1/4 (2) or 1/8 (3) of the width and height, or the nearest that the codec
                         supports: JPEG, MPEG-1, -2 and -4 do, H.264, HEVC, VP9 and AV1 do not and are decoded whole.
                         The source's size is then that of the smaller picture, and width 0 and height 0 mean it */
} weir_decoder_config;

/* The members .decoder and .decoder_size of another config, as C initialisers. The struct that they point to lives as long as
   the block around it. */
#define WEIR_WITH_DECODER(...) \
    .decoder = &(const weir_decoder_config){ __VA_ARGS__ }, .decoder_size = sizeof(weir_decoder_config)

#ifdef __cplusplus
}
#endif

#endif
