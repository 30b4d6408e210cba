/*
 * The resampler: decoded audio frames in, float samples of one rate, channel count and layout out, in an array that grows.
 * Internal. One thread at a time for each resampler.
 */
#ifndef WEIR_STAGES_RESAMPLER_H
#define WEIR_STAGES_RESAMPLER_H

#include <stdint.h>

#include <libavutil/frame.h>
#include <libswresample/swresample.h>

#include <weir/audio.h>
#include <weir/status.h>

enum { WEIR_RESAMPLER_MAX_CHANNELS = 64 };

typedef struct weir_resampler {
    /* of the result that is being made */
    weir_audio *audio;    /* NULL = none */
    uint64_t max_samples; /* there is room for, of each channel */
    uint64_t max_bytes;

    /* for frames like the last one; made anew when another kind comes */
    SwrContext *swr; /* NULL = none yet */
    AVChannelLayout source_layout;
    int source_rate;
    int source_format;
} weir_resampler;

/* Begins a result; what the config leaves open is as in the first frame. WEIR_OK, or the failure with *error filled; then,
   as at any time, weir_resampler_abort(). */
int weir_resampler_begin(weir_resampler *resampler, const weir_audio_config *config, const AVFrame *first,
                         weir_error *error);

int weir_resampler_add(weir_resampler *resampler, const AVFrame *frame, weir_error *error);

/* What the filter still holds comes out, and unused memory goes back. The result is the caller's. */
int weir_resampler_end(weir_resampler *resampler, weir_audio **audio, weir_error *error);

/* Throws the result away, if one was begun, and frees everything. */
void weir_resampler_abort(weir_resampler *resampler);

#endif
