/* The audio stage's worker, for the video stage. Internal. */
#ifndef WEIR_STAGES_AUDIO_H
#define WEIR_STAGES_AUDIO_H

#include <weir/audio.h>

/* Decodes `bytes`, which must not be NULL. `worker` is one of weir_audio_decode; runs within
   weir__ffmpeg_log_begin(). WEIR_OK, or the failure with *error filled. */
int weir__audio_decode_bytes(void *worker, const weir_bytes *bytes, weir_task *task, weir_audio **audio,
                             weir_error *error);

#endif
