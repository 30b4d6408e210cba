/* What the video stage and the still image stage share of each other. Internal. */
#ifndef WEIR_STAGES_VIDEO_H
#define WEIR_STAGES_VIDEO_H

#include <stdbool.h>

#include <weir/video.h>

#include "decoder.h"

/* Are the options possible, in this build? Fills in what is default, and takes FFmpeg's log over. WEIR_OK, or the failure
   with *error filled. */
int weir_video_config_check(weir_video_config *video, weir_error *error);

/* Notes in the result what the current frame comes from. */
void weir_video_describe(const weir_decoder *decoder, weir_frames *frames);

/* Had the decoder to patch it up? */
bool weir_video_is_corrupt(const AVFrame *frame);

#endif
