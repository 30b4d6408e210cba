/* What the video stage and the still image stage share of each other. Internal. */
#ifndef WEIR_STAGES_VIDEO_H
#define WEIR_STAGES_VIDEO_H

#include <stdbool.h>

#include <weir/video.h>

#include "decoder.h"

/* Are the options possible, in this build? Fills in what is default, copies what they point to, and takes FFmpeg's log
   over. WEIR_OK, or the failure with *error filled and nothing to free. */
int weir_video_config_check(weir_video_config *video, weir_error *error);
void weir_video_config_free(weir_video_config *video);

/* What a slot's decoder goes by; its weir_decoder_init() is still to come. */
weir_decoder weir_video_decoder(const weir_video_config *video, bool (*should_stop)(void *self), void *self);

/* Notes in the result what its pictures come from, and their size as they are coded. */
void weir_video_describe(const weir_decoder *decoder, int source_width, int source_height, weir_frames *frames);

/* Had the decoder to patch it up? */
bool weir_video_is_corrupt(const AVFrame *frame);

#endif
