/* weir_audio_config, of the audio stage, of the video stage and of readers. Internal. Any thread. */
#ifndef STAGES_AUDIO_AUDIO_CONFIG_H
#define STAGES_AUDIO_AUDIO_CONFIG_H

#include <weir/audio.h>

#include "common/sibling.h"
#include "stages/config/field_rules.h"

WEIR_SIBLING_API extern const struct_rules weir__audio_config_fields;

/* Checks the options, fills in defaults, copies what they point to, and installs FFmpeg's log callback. WEIR_OK, or
   the failure with *error filled and nothing to free. */
int weir__audio_config_check(weir_audio_config *audio, weir_error *error);
void weir__audio_config_clear(weir_audio_config *audio);

/* Replaces the program's config, which may be NULL, by a checked copy, to be freed with weir__audio_config_free().
   Its input is not copied: somebody else says where the bytes come from. WEIR_OK, or the failure with *error filled
   and nothing changed. */
int weir__audio_config_own(const weir_audio_config **audio, size_t audio_size, weir_error *error);

/* NULL is fine. */
void weir__audio_config_free(const weir_audio_config *audio);

#endif
