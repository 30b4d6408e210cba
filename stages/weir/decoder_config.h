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

/* Which frames the decoder smooths with the codec's loop filter (deblocking, SAO). The filter takes a fifth to a third of the
   CPU time. Later frames are predicted from frames that were not filtered, so errors grow until the next keyframe, except with
   WEIR_LOOP_FILTER_REFERENCES. `bench/option_costs.py` measures the time and the errors. FFmpeg's own decoders of H.264, HEVC,
   VP8, VP9 and some older codecs support this; others (libdav1d's AV1) filter all frames. */
typedef enum weir_loop_filter {
    WEIR_LOOP_FILTER_ALL = 0,    /* every frame, as the codec's standard says */
    WEIR_LOOP_FILTER_REFERENCES, /* only frames from which others are predicted: errors do not spread */
    WEIR_LOOP_FILTER_KEYFRAMES,  /* only keyframes */
    WEIR_LOOP_FILTER_NONE,
} weir_loop_filter;

/* The largest weir_decoder_config.lowres. */
#define WEIR_MAX_LOWRES 3

/* The largest weir_decoder_config.threads. */
#define WEIR_MAX_DECODER_THREADS 64

/* Setting this struct to all-zero is equivalent to defaults. Copied. */
typedef struct weir_decoder_config {
    /* Limits against hostile files: beyond them the task fails with WEIR_ELIMIT. */
    uint64_t max_pixels; /* width × height of a coded picture (0 = 2^26) */
    /* Bytes of the reference frames that the decoder of one slot holds. They are estimated before decoding and counted during
       it (0 = 1 GiB). */
    uint64_t max_decoder_bytes;
    /* The same for all decoders of the process together, in all pipelines (0 = half of the memory that the process may
       use). */
    uint64_t max_all_decoder_bytes;

    /* Cheaper, less accurate decoding of pictures. By default, pictures are decoded as the codec's standard says. Not for
       sound. */
    weir_loop_filter loop_filter; /* (default WEIR_LOOP_FILTER_ALL) */
    bool fast_decode; /* let the decoder take shortcuts that its standard does not allow (AV_CODEC_FLAG2_FAST) */
    /* Decode at 1/2 (1), 1/4 (2) or 1/8 (3) of the width and height, or at the nearest size that the codec supports. JPEG,
       MPEG-1, -2 and -4 support it; H.264, HEVC, VP9 and AV1 do not, and are decoded in full size. The size of the source is
       then that of the smaller picture, and this is also what a width and height of 0 mean. */
    uint8_t lowres;
    /* Threads that decode one video (0 = 1: the calling thread only), for long videos that come one at a time. Where there are many
       videos, slots use the CPUs with less work. The frames are the same.
       All frames of a file that can be read again: each thread decodes and scales whole groups of pictures, from one
       closed keyframe to the next. This needs four groups for each thread, or an unknown number of groups. Pictures
       that wait for their turn take at most a quarter of max_decoder_bytes. If the groups are too long for that, or a
       filter is set, the threads are FFmpeg's, as for selected frames. Scaling then stays on the calling thread.
       Codecs that FFmpeg cannot divide then use one thread. So does everything after the first sign of damage, and
       what starts at a keyframe before which later frames are shown.
       The threads end with the file. Their CPU time is in that of the process, but not in that of the task. decode_ns
       is then the time for which the task waited, and scale_ns has only what the calling thread scales or copies. The
       frames that they hold count as max_decoder_bytes says; if these are too many, one thread decodes. Not for
       sound; without effect on images. */
    uint8_t threads;
} weir_decoder_config;

/* Sets the members .decoder and .decoder_size in the initialiser of another config (C only). The struct that .decoder points to
   lives as long as the enclosing block. */
#define WEIR_WITH_DECODER(...) \
    .decoder = &(const weir_decoder_config){ __VA_ARGS__ }, .decoder_size = sizeof(weir_decoder_config)

#ifdef __cplusplus
}
#endif

#endif
