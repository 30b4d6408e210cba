/* A stage that reduces the frames of a video to their mean brightness. */
#ifndef EXAMPLES_CUSTOM_STAGE_BRIGHTNESS_H
#define EXAMPLES_CUSTOM_STAGE_BRIGHTNESS_H

#include <weir/pipeline.h>

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

/* Adds the stage to the builder. Unlike weir_builder_pipe() it takes no other config. */
static inline void pipe_brightness(weir_builder *builder, const brightness_config *config,
                                   const weir_stage_options *options)
{
    weir_builder_pipe(builder, &brightness_stage, config, sizeof *config, options);
}

#endif
