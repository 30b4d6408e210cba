/*
 * The audio decode stage: the input is a path, the output is the samples of the file's best audio stream. The samples
 * are one contiguous array of float, with the requested sample rate and channels.
 *
 * In: an item whose data is a path or a URL (a char *), a weir_entry *, or the file itself (a weir_bytes *). Out: an
 * item whose data is a weir_audio * (freed with weir_audio_free()) and whose size_bytes is all the memory it takes.
 *
 * Failures are those of weir_video_decode, with audio instead of video. Damage within a file is counted in the result
 * if some samples can be decoded. Gaps in the timestamps are not filled.
 */
#ifndef WEIR_AUDIO_H
#define WEIR_AUDIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/decode_cost.h>
#include <weir/decoder_config.h>
#include <weir/input_config.h>
#include <weir/item.h>
#include <weir/op.h>
#include <weir/pipeline.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Setting this struct to all-zero is equivalent to defaults. What it points to is copied. */
typedef struct weir_audio_config {
    /* Where the bytes come from and how they are decoded (NULL = the defaults). Each size is that of its struct. Fields of
       weir_decoder_config that are for pictures must not be set. */
    const weir_input_config *input;
    size_t input_size;
    const weir_decoder_config *decoder;
    size_t decoder_size;

    uint32_t sample_rate; /* of the result, in Hz; resampled as FFmpeg does (0 = that of the first samples) */
    /* of the result, mixed as FFmpeg does: 1 = mono, 2 = stereo, … (0 = those of the first samples) */
    uint32_t channels;
    bool planar; /* channel by channel: [channels][samples] (default: sample by sample, [samples][channels]) */

    uint32_t stream;    /* the n-th audio stream, counted from 1 (0 = the best) */
    uint64_t max_bytes; /* of one result: beyond it the task fails with WEIR_ELIMIT (0 = 8 GiB) */
} weir_audio_config;

/* Decoded samples, in host memory. They have one owner at a time; their tensors (weir_to_dlpack()) also share them.
   weir_audio_free() frees everything in the struct. */
typedef struct weir_audio {
    float *data;          /* [num_samples][channels] or, if planar, [channels][num_samples]; contiguous; full scale is
                             -1 to 1, and may be exceeded */
    uint64_t num_samples; /* of each channel */
    uint32_t channels;
    uint32_t sample_rate;
    bool planar;

    int64_t start_ns; /* the first sample's time; INT64_MIN = unknown */

    char codec[32];              /* FFmpeg's name of it: "aac" */
    uint32_t stream;             /* which audio stream of the file, counted from 1 */
    uint32_t stream_index;       /* FFmpeg's number of that stream, counted from 0 */
    uint32_t source_sample_rate; /* of the first samples as they were coded */
    uint32_t source_channels;
    uint64_t num_errors;  /* packets that could not be read or decoded; 0 = no damage */
    size_t memory_bytes;  /* of the whole result */
    weir_entry *entry;    /* as in weir_frames */
    weir_bytes *sidecars; /* as in weir_frames */
    weir_decode_cost cost;
    struct weir_shared_data *shared; /* internal: do not change */
    uint32_t num_views;              /* internal: do not change */
} weir_audio;

/* The type of items whose data is a weir_audio. */
#define WEIR_TYPE_AUDIO "weir.audio"

/* The weir_item.release of such an item; self is not used. */
WEIR_API void weir_audio_release(void *data, void *self);

/* Frees a weir_audio and all it holds. NULL is fine. Any thread. */
static inline void weir_audio_free(weir_audio *audio)
{
    weir_audio_release(audio, NULL);
}

extern WEIR_API const weir_op weir_audio_decode;

/* Adds the stage to the builder; see weir_builder_pipe(). */
static inline void weir_pipe_audio(weir_builder *builder, const weir_audio_config *config,
                                   const weir_stage_options *options)
{
    weir_builder_pipe(builder, &weir_audio_decode, config, sizeof *config, options);
}

#ifdef __cplusplus
}
#endif

#endif
