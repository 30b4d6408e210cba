#include "stages/audio/sound.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include <weir/clock.h>

#include "stages/decoder/stream_choice.h"

int weir__sound_init(weir_sound *sound, const weir_audio_config *config, const weir_input_config *input,
                     bool (*should_stop)(void *self), void (*on_frame)(void *self), void *self)
{
    sound->decoder = (weir_decoder){
        .should_stop = should_stop,
        .on_frame = on_frame,
        .self = self,
        .config = config->decoder,
        .media = AVMEDIA_TYPE_AUDIO,
        .stream_number = config->stream,
        .input.config = input,
    };
    int rc = weir__decoder_init(&sound->decoder);
    if (rc != WEIR_OK)
        weir__decoder_free(&sound->decoder);
    return rc;
}

void weir__sound_free(weir_sound *sound)
{
    weir__resampler_abort(&sound->resampler);
    weir__decoder_free(&sound->decoder);
}

uint64_t weir__sound_bytes(const weir_sound *sound)
{
    const weir_audio *audio = sound->resampler.audio;
    uint64_t sample_bytes = audio ? sound->resampler.max_samples * audio->channels * sizeof *audio->data : 0;
    return sample_bytes + weir__frame_memory_bytes(&sound->decoder.memory);
}

static int begin_samples(weir_sound *sound, const weir_audio_config *config, const AVFrame *frame, weir_error *error)
{
    const weir_decoder *decoder = &sound->decoder;
    int rc = weir__resampler_begin(&sound->resampler, config, frame, error);
    if (rc != WEIR_OK)
        return rc;
    const AVRational nanosecond = { 1, 1000000000 };
    int64_t pts = frame->best_effort_timestamp;
    weir_audio *audio = sound->resampler.audio;
    audio->start_ns = pts == AV_NOPTS_VALUE ? INT64_MIN : av_rescale_q(pts, decoder->stream->time_base, nanosecond);
    audio->stream = weir__stream_number(decoder->format, decoder->stream);
    audio->stream_index = (uint32_t)decoder->stream->index;
    snprintf(audio->codec, sizeof audio->codec, "%s", avcodec_get_name(decoder->codec->codec_id));
    return WEIR_OK;
}

int weir__sound_add(weir_sound *sound, const weir_audio_config *config, const AVFrame *frame, weir_error *error)
{
    int64_t start_ns = weir_clock_ns();
    int rc = sound->resampler.audio ? WEIR_OK : begin_samples(sound, config, frame, error);
    if (rc == WEIR_OK)
        rc = weir__resampler_add(&sound->resampler, frame, error);
    sound->decoder.cost.scale_ns += weir_clock_ns() - start_ns;
    return rc;
}

int weir__sound_decode(weir_sound *sound, const weir_audio_config *config, const char *path, weir_audio **audio,
                       weir_error *error)
{
    weir_decoder *decoder = &sound->decoder;
    weir_resampler *resampler = &sound->resampler;
    int rc = weir__decoder_open(decoder, path, error);
    while (rc == WEIR_OK) {
        rc = weir__decoder_next(decoder, error);
        if (rc == WEIR_OK)
            rc = weir__sound_add(sound, config, decoder->frame, error);
    }
    if (rc == WEIR_EOF)
        rc = resampler->audio
                 ? weir__resampler_end(resampler, 0, UINT64_MAX, audio, error)
                 : weir__decoder_fail_empty(decoder, "no samples: the audio stream is empty or truncated", error);
    decoder->cost.num_errors = decoder->num_errors;
    if (rc == WEIR_OK) {
        assert(*audio);
        (*audio)->num_errors = decoder->num_errors;
        (*audio)->cost = decoder->cost;
    }
    weir__resampler_abort(resampler);
    weir__decoder_close(decoder);
    return rc;
}
