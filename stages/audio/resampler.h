/*
 * The resampler: the input is decoded audio frames, the output float samples of one rate, channel count and layout,
 * in a growing array. Internal. One thread at a time for each resampler.
 */
#ifndef STAGES_AUDIO_RESAMPLER_H
#define STAGES_AUDIO_RESAMPLER_H

#include <stdint.h>

#include <libavutil/frame.h>
#include <libswresample/swresample.h>

#include <weir/audio.h>
#include <weir/status.h>

enum { WEIR_RESAMPLER_MAX_CHANNELS = 64 };

typedef struct weir_resampler {
    /* Samples that the result may have beyond max_bytes until weir__resampler_end() drops them; set by the caller. */
    uint64_t spare_samples;

    /* of the current result */
    weir_audio *audio;    /* NULL = none */
    uint64_t max_samples; /* capacity per channel */
    uint64_t max_bytes;

    /* for frames like the last one; recreated for another kind */
    SwrContext *swr; /* NULL = none yet */
    AVChannelLayout source_layout;
    int source_rate;
    int source_format;
} weir_resampler;

/* Begins a result; rate and channels that the config does not set are those of the first frame. WEIR_OK, or the
   failure with *error filled. weir__resampler_abort() may be called at any time, and must be called after a
   failure. */
int weir__resampler_begin(weir_resampler *resampler, const weir_audio_config *config, const AVFrame *first,
                          weir_error *error);

int weir__resampler_add(weir_resampler *resampler, const AVFrame *frame, weir_error *error);

/* Flushes the filter, drops the first `skip` samples and what comes after the next `most`, and frees unused memory.
   The caller owns the result. */
int weir__resampler_end(weir_resampler *resampler, uint64_t skip, uint64_t most, weir_audio **audio,
                        weir_error *error);

/* Frees the result, if one was begun, and everything else. */
void weir__resampler_abort(weir_resampler *resampler);

#endif
