/*
 * Which frames of a video are wanted. The frames of a video are numbered in presentation order from 0 on: frame i is the
 * i-th one that a player shows. B-frames, edit lists, variable frame rates, negative and missing timestamps change
 * nothing about that, and neither does the way the frames are got at: seeking, skipping and reading on give the same
 * bytes. Where damage has cost a frame that the container lists, the frames behind it keep their numbers. Where a decoder notices
 * damage on the way to a chosen frame, the file is decoded from its beginning on, so that what it makes up is what it makes up
 * when all is decoded; only damage that it does not notice may show otherwise.
 *
 * Times count from the video's first frame on: that one has time 0, whatever its timestamp. Times that are 1 ns apart
 * count as equal, so that 1/30 s may be rounded up or down. A frame is shown from its time until the next one's.
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
    WEIR_SAMPLE_ALL = 0, /* all frames, or all of the window */
    WEIR_SAMPLE_EVERY,   /* every `every`-th one, beginning with the first */
    WEIR_SAMPLE_RATE, /* rate_num / rate_den frames a second, beginning with the one that is shown at the start: those
                              shown at these times, repeated or left out as needed (ffmpeg: fps=rate:round=up) */
    WEIR_SAMPLE_UNIFORM, /* `count` frames: the middles of `count` equal parts. Repeated where there are fewer */
    WEIR_SAMPLE_RANDOM, /* `count` different frames, in order, of a stretch that itself is put at random. Drawn by the
                              pipeline's seed (weir_video_config.seed) and the item's number alone. Repeated as for
                              WEIR_SAMPLE_UNIFORM where there are fewer than `count` */
    WEIR_SAMPLE_INDICES,   /* the frames of these numbers */
    WEIR_SAMPLE_TIMES,     /* the frames that are shown at these times */
    WEIR_SAMPLE_KEYFRAMES, /* those that the container or the stream marks as keyframes */
} weir_sample;

/* Setting this struct to all-0 is equivalent to defaults: all frames. What a kind does not name is to be 0. */
typedef struct weir_sampling {
    weir_sample what; /* (default WEIR_SAMPLE_ALL) */

    /* The window: only frames with start_ns <= time < end_ns are looked at. Not with INDICES and TIMES. */
    int64_t start_ns;
    int64_t end_ns; /* (0 = the end of the video) */

    uint32_t count;    /* UNIFORM, RANDOM: how many. ALL, EVERY, RATE, KEYFRAMES: at most so many, the first ones
                          (0 = all). The first frames of all are read without a look at the rest of the file; for one
                          that damage has cost, another comes only where the container does not tell what is missing */
    uint32_t every;    /* EVERY: at least 1 */
    uint32_t rate_num; /* RATE: frames … */
    uint32_t rate_den; /* … in so many seconds (0 = 1) */

    /* RANDOM: the length of the stretch, in frames or in time, one of both (neither = the whole window). With
       stretch_frames = count the result is `count` frames in a row. */
    uint32_t stretch_frames;
    int64_t stretch_ns;

    /* INDICES and TIMES. Copied; the result has them in this order. A negative index counts from the end: -1 is the
       last frame. What is beyond the end fails the item. */
    const int64_t *indices;
    size_t num_indices;
    const int64_t *times_ns;
    size_t num_times;
    uint64_t reserved[8]; /* 0 */
} weir_sampling;

/* Do the frames come in the order in which they are shown, however many the video has? Not if a list jumps back, or counts
   some from the start and some from the end. Only then can they be handed on in pieces, or go through a filter. */
WEIR_API bool weir_sampling_is_rising(const weir_sampling *sampling);

#ifdef __cplusplus
}
#endif

#endif
