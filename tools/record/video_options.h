/* The options that say how videos are decoded: the same in `weir frames`, `weir record` and the example. */
#ifndef TOOLS_RECORD_VIDEO_OPTIONS_H
#define TOOLS_RECORD_VIDEO_OPTIONS_H

#include <weir/video.h>

#include "options.h"
#include "sampling_options.h"

enum { VIDEO_RESIZE_NONE = WEIR_RESIZE_CROP + 1 };

/* Setting this struct to all-zero selects the defaults of weir_video_config. */
typedef struct video_settings {
    uint32_t width, height; /* 0 = not given */
    int resize;             /* weir_resize, or VIDEO_RESIZE_NONE */
    int pixel, layout, scaler;
    const char *filter;
    bool no_autorotate;
    sampling_settings sampling;
    bool strict;
    double min_share; /* 0 = not given */
    int64_t max_frames, max_pixels;
    uint64_t max_bytes;
    int64_t max_duration_ns;
    uint64_t max_decoder_bytes;
    uint32_t stream;
    bool insecure;
    const char *ca_file; /* NULL = the system's */
    int64_t io_timeout_ns;
    int loop_filter; /* weir_loop_filter */
    bool fast_decode;
    uint32_t lowres;
} video_settings;

/* Options for sampling, for the pictures, and for limits. The offsets are those of video_settings. */
extern const option_row video_rows[];

/* The choices of these options, in the order of the enums; NULL at the end. */
extern const char *const video_resize_names[];
extern const char *const video_pixel_names[];
extern const char *const video_layout_names[];
extern const char *const video_scaler_names[];

/* Largest width and height. */
enum { VIDEO_MAX_SIDE = INT16_MAX };

/* Fills *config, which keeps pointing to the settings. False: the options contradict each other, and *problem says
   why. */
bool video_configure(const video_settings *settings, weir_video_config *config, char problem[OPTION_PROBLEM_BYTES]);

/* Frees memory that the options allocated. */
void video_settings_free(video_settings *settings);

#endif
