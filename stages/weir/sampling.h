/*
 * Which frames of a video to decode. Frames are numbered in presentation order, from 0: frame i is the i-th one that
 * a player shows, also with B-frames, edit lists, variable frame rates, and negative or missing timestamps. Seeking,
 * skipping and plain reading give the same bytes. If a frame that the container lists is lost to damage, the
 * following frames keep their numbers. If the decoder detects damage before a selected frame, the file is decoded
 * from its beginning, so that concealed errors look the same as when all frames are decoded. Only undetected damage
 * may look different; decoders of HEVC, VP8, VP9 and AV1 detect little of it.
 *
 * Times count from the video's first frame: it has time 0, whatever its timestamp. Times that are 1 ns apart count as
 * equal, so 1/30 s may be rounded up or down. A frame is shown from its time until that of the next frame.
 */
#ifndef WEIR_SAMPLING_H
#define WEIR_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_sample {
    WEIR_SAMPLE_ALL = 0, /* all frames, or all frames of the window */
    WEIR_SAMPLE_EVERY,   /* every `every`-th frame, starting with the first */
    WEIR_SAMPLE_RATE, /* rate_num / rate_den frames per second from the start of the window: the frames shown at these
                              times, repeated or skipped as needed (ffmpeg: fps=rate:round=up) */
    WEIR_SAMPLE_UNIFORM,   /* `count` frames: the middles of `count` equal parts. Repeated if there are fewer */
    WEIR_SAMPLE_RANDOM,    /* `count` different frames, in order, of a random section of the window. Determined by
                              weir_video_config.seed and the item's number only. Repeated as for WEIR_SAMPLE_UNIFORM if
                              there are fewer than `count` */
    WEIR_SAMPLE_INDICES,   /* the frames with these numbers */
    WEIR_SAMPLE_TIMES,     /* the frames that are shown at these times */
    WEIR_SAMPLE_KEYFRAMES, /* those that the container or the stream marks as keyframes */
} weir_sample;

/* Setting this struct to all-zero selects all frames. Fields that a kind does not use must be 0. */
typedef struct weir_sampling {
    weir_sample what; /* (default WEIR_SAMPLE_ALL) */

    /* The window: only frames with start_ns <= time < end_ns count. Not with INDICES and TIMES. */
    int64_t start_ns;
    int64_t end_ns; /* (0 = the end of the video) */

    uint32_t count; /* UNIFORM, RANDOM: how many. ALL, EVERY, RATE, KEYFRAMES: only the first `count` (0 = all). The
                          first frames of ALL are read without reading the rest of the file; a frame lost to damage is
                          replaced by a later one only if the container does not show which one is missing */
    uint32_t every; /* EVERY: at least 1 */
    uint32_t rate_num; /* RATE: frames … */
    uint32_t rate_den; /* … in this many seconds (0 = 1) */

    /* RANDOM: the length of the section, either in frames or in time (both 0 = the whole window). With
       stretch_frames = count the result is `count` consecutive frames. */
    uint32_t stretch_frames;
    int64_t stretch_ns;

    /* INDICES and TIMES. Copied; the result has them in this order. A negative index counts from the end: -1 is the
       last frame. A frame beyond the end fails the item. */
    const int64_t *indices;
    size_t num_indices;
    const int64_t *times_ns;
    size_t num_times;
} weir_sampling;

/* Is the result always in presentation order, for every length of the video? It is not if a list decreases, or mixes
   indices from the start and from the end. Chunks and filters need presentation order. */
WEIR_API bool weir_sampling_is_rising(const weir_sampling *sampling);

#ifdef __cplusplus
}
#endif

#endif
