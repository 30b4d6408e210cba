/* weir_video_config, of the video stage and of readers; its sound is the stage's. Internal. Any thread. */
#ifndef STAGES_READER_VIDEO_CONFIG_H
#define STAGES_READER_VIDEO_CONFIG_H

#include <weir/video.h>

#include "common/sibling.h"
#include "stages/config/field_rules.h"

WEIR_SIBLING_API extern const struct_rules weir__video_fields;

/* Checks the options, fills in defaults, copies what they point to except audio, and installs FFmpeg's log callback.
   WEIR_OK, or the failure with *error filled and nothing to free. */
WEIR_SIBLING_API int weir__video_config_check(weir_video_config *video, weir_error *error);
WEIR_SIBLING_API void weir__video_config_free(weir_video_config *video);

/* Can they be used together: a filter and that sampling, and chunks and that sampling? WEIR_OK, or the failure with *error
   filled. */
int weir__video_filter_check(const weir_picture_config *picture, const weir_sampling *sampling, weir_error *error);
int weir__video_clips_check(const weir_sampling *sampling, weir_error *error);
int weir__video_chunks_check(const weir_sampling *sampling, weir_error *error);

#endif
