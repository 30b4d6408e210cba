/* The part of a file that a clip is: a window of time, or of frames. */
#ifndef WEIR_CLIP_PART_H
#define WEIR_CLIP_PART_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All-zero is the whole file. Times and frames cannot be combined. */
typedef struct weir_clip_part {
    int64_t start_ns;     /* frames with start_ns <= time < end_ns; times count from the first frame */
    int64_t end_ns;       /* 0 = the end of the file */
    uint64_t start_frame; /* frames with start_frame <= number < end_frame */
    uint64_t end_frame;   /* 0 = the end of the file */
} weir_clip_part;

static inline bool weir_clip_part_is_whole(const weir_clip_part *part)
{
    return !part->start_ns && !part->end_ns && !part->start_frame && !part->end_frame;
}

#ifdef __cplusplus
}
#endif

#endif
