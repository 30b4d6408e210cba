/*
 * Reads the sound of a file: it decodes the frames of the audio stream, and resamples them into one result. The audio
 * stage uses it for the whole sound, and sound_reader.h uses it for windows. Internal. One thread at a time for each.
 */
#ifndef STAGES_AUDIO_SOUND_H
#define STAGES_AUDIO_SOUND_H

#include <weir/audio.h>

#include "stages/audio/resampler.h"
#include "stages/decoder/decoder.h"

typedef struct weir_sound {
    weir_decoder decoder; /* decoder.input: what is opened, set by the caller */
    weir_resampler resampler;
} weir_sound;

/* *sound must be all-zero. should_stop and on_frame are those of weir_decoder; of the config, the decoder and the
   stream are used. What is passed lives as long as the sound. WEIR_OK; or WEIR_ENOMEM, and nothing is to be freed. */
int weir__sound_init(weir_sound *sound, const weir_audio_config *config, const weir_input_config *input,
                     bool (*should_stop)(void *self), void (*on_frame)(void *self), void *self);

/* All samples of one file, which is opened and closed. WEIR_OK, and the caller frees *audio; or the failure with
   *error filled. */
int weir__sound_decode(weir_sound *sound, const weir_audio_config *config, const char *path, weir_audio **audio,
                       weir_error *error);

/* Appends a frame of the open file to the result; the first one begins it. WEIR_OK, or the failure with *error
   filled, after which weir__resampler_abort() is called. */
int weir__sound_add(weir_sound *sound, const weir_audio_config *config, const AVFrame *frame, weir_error *error);

/* The bytes that it has allocated for decoded frames, and for the samples so far. */
uint64_t weir__sound_bytes(const weir_sound *sound);

void weir__sound_free(weir_sound *sound);

#endif
