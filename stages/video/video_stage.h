/* The video stage's config, and functions that it shares with the still image stage. Internal. */
#ifndef STAGES_VIDEO_VIDEO_STAGE_H
#define STAGES_VIDEO_VIDEO_STAGE_H

#include <stdbool.h>

#include <weir/video.h>

#include "common/sibling.h"
#include "stages/config/field_rules.h"
#include "stages/decoder/decoder.h"

WEIR_SIBLING_API extern const struct_rules weir__video_fields;

/* Checks the options, fills in defaults, copies what they point to, and installs FFmpeg's log callback. WEIR_OK, or the
   failure with *error filled and nothing to free. */
int weir__video_config_check(weir_video_config *video, weir_error *error);
void weir__video_config_free(weir_video_config *video);

/* Stores in the result which stream its pictures come from, and their coded size. */
void weir__video_describe(const weir_decoder *decoder, int source_width, int source_height, weir_frames *frames);

/* Did the decoder conceal errors in it? */
bool weir__video_is_corrupt(const AVFrame *frame);

#endif
