/* The options that say how videos are decoded: the same in `weir frames`, `weir record` and the example. */
#ifndef TOOLS_RECORD_VIDEO_OPTIONS_H
#define TOOLS_RECORD_VIDEO_OPTIONS_H

#include <weir/video.h>

#include "tools/cli/options.h"
#include "tools/record/decoder_options.h"
#include "tools/record/input_options.h"
#include "tools/record/sampling_options.h"

#define VIDEO_RESIZE_NONE (WEIR_RESIZE_CROP + 1)

/* Setting this struct to all-zero selects the defaults of weir_video_config. */
typedef struct video_settings {
    weir_video_config config; /* without what follows */
    weir_input_config input;
    weir_decoder_config decoder;
    weir_picture_config picture; /* without resize */
    int resize;                  /* a weir_resize, or VIDEO_RESIZE_NONE */
    sampling_settings sampling;
    bool strict;
} video_settings;

/* Options for sampling, for the pictures, and for limits. The offsets are those of video_settings. */
extern const option_row video_rows[];

/* All sets of rows for a video_settings. */
#define VIDEO_SETS(settings) \
    { video_rows, &(settings) }, { decoder_rows, &(settings).decoder }, \
    { \
        input_rows, &(settings).input \
    }

/* The choices of these options, in the order of the enums; NULL at the end. */
extern const char *const video_resize_names[];
extern const char *const video_pixel_names[];
extern const char *const video_layout_names[];
extern const char *const video_scaler_names[];

/* Largest width and height. */
enum { VIDEO_MAX_SIDE = INT16_MAX };

/* Fills *picture and *config, which points to that and to the settings. False: the options contradict each other, and *problem
   says why. */
bool video_configure(const video_settings *settings, weir_picture_config *picture, weir_video_config *config,
                     char problem[OPTION_PROBLEM_BYTES]);

/* Frees memory that the options allocated. */
void video_settings_free(video_settings *settings);

#endif
