/* The audio stage's worker for the video stage. Internal. */
#ifndef STAGES_AUDIO_AUDIO_STAGE_H
#define STAGES_AUDIO_AUDIO_STAGE_H

#include <weir/audio.h>

/* Decodes `bytes`, which must not be NULL. `worker` is one of weir_audio_decode; runs within
   weir__ffmpeg_log_begin(). WEIR_OK, or the failure with *error filled; *cost is set in both cases. */
int weir__audio_decode_bytes(void *worker, const weir_bytes *bytes, weir_task *task, weir_audio **audio,
                             weir_decode_cost *cost, weir_error *error);

#endif
