/* The window of a file that a clip is: what lies between a start and an end, in time or in frames. */
#ifndef WEIR_CLIP_WINDOW_H
#define WEIR_CLIP_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All-zero is the whole file. Times and frames cannot be combined. */
typedef struct weir_clip_window {
    int64_t start_ns;     /* frames with start_ns <= time < end_ns; times count from the first frame */
    int64_t end_ns;       /* 0 = the end of the file */
    uint64_t start_frame; /* frames with start_frame <= number < end_frame */
    uint64_t end_frame;   /* 0 = the end of the file */
} weir_clip_window;

static inline bool weir_clip_window_is_whole(const weir_clip_window *window)
{
    return !window->start_ns && !window->end_ns && !window->start_frame && !window->end_frame;
}

#ifdef __cplusplus
}
#endif

#endif
