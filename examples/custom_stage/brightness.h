/* A stage that reduces the frames of a video to their mean brightness. */
#ifndef BRIGHTNESS_H
#define BRIGHTNESS_H

#include <weir/op.h>

/* The data of the output items. */
typedef struct brightness {
    uint32_t num_frames;
    double mean; /* 0 to 255, of all frames */
} brightness;

/* Setting this struct to all-zero selects the defaults. */
typedef struct brightness_config {
    double least; /* darker videos are skipped (0 = none) */
} brightness_config;

/* In: weir_frames of gray8. Out: a brightness. Fails with WEIR_EINVAL on frames of another kind. */
extern const weir_op brightness_stage;

#endif
