/*
 * Planar samples are stored channel by channel, with free space after each channel; growing moves the channels apart,
 * the end moves them together. The capacity grows by half each time.
 */
#include "stages/audio/resampler.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/memory/shared_data.h"

static void close_swr(weir_resampler *resampler)
{
    swr_free(&resampler->swr);
    av_channel_layout_uninit(&resampler->source_layout);
}

void weir__resampler_abort(weir_resampler *resampler)
{
    close_swr(resampler);
    weir_audio_free(resampler->audio);
    resampler->audio = NULL;
}

/* ---- capacity --- ------------------------------------------------------------------------------------------------ */

/* Changes the distance of a planar result's channels from `from` to `to` samples. */
static void move_channels(weir_audio *audio, uint64_t from, uint64_t to)
{
    size_t used_bytes = (size_t)audio->num_samples * sizeof *audio->data;
    if (!audio->planar)
        return;
    for (uint32_t i = 1; i < audio->channels; i++) {
        uint32_t channel = to > from ? audio->channels - i : i; /* no channel is overwritten before it is moved */
        memmove(audio->data + channel * to, audio->data + channel * from, used_bytes);
    }
}

static int fail_num_samples(const weir_resampler *resampler, weir_error *error)
{
    return weir_error_set(error, WEIR_ELIMIT, 0,
                          "the samples are over the limit of %" PRIu64
                          " bytes: raise max_bytes, or reduce sample_rate or channels",
                          resampler->max_bytes);
}

/* Makes room for more samples. */
static int reserve_samples(weir_resampler *resampler, uint64_t num_samples, weir_error *error)
{
    enum { MIN_SAMPLES = 1 << 14 };
    weir_audio *audio = resampler->audio;
    uint64_t sample_bytes = audio->channels * sizeof *audio->data;
    uint64_t limit_samples = resampler->max_bytes / sample_bytes + resampler->spare_samples;
    uint64_t needed = audio->num_samples + num_samples;
    if (needed <= resampler->max_samples)
        return WEIR_OK;
    if (needed > limit_samples)
        return fail_num_samples(resampler, error);
    uint64_t room = resampler->max_samples + resampler->max_samples / 2 + MIN_SAMPLES;
    room = room < needed ? needed : room;
    room = room < limit_samples ? room : limit_samples;

    float *data = weir__shared_data_resize(audio->data, &audio->shared, (size_t)(room * sample_bytes));
    if (!data)
        return weir_error_set(error, WEIR_ENOMEM, 0,
                              "out of memory: cannot allocate %" PRIu64 " bytes for the samples",
                              room * sample_bytes);
    audio->data = data;
    move_channels(audio, resampler->max_samples, room);
    resampler->max_samples = room;
    return WEIR_OK;
}

/* ---- conversion --------------------------------------------------------------------------------------------- */

/* Converts the input (none at the end) and appends it to the result. */
static int convert_samples(weir_resampler *resampler, const AVFrame *frame, weir_error *error)
{
    weir_audio *audio = resampler->audio;
    int num_in = frame ? frame->nb_samples : 0;
    int most = swr_get_out_samples(resampler->swr, num_in);
    if (most < 0)
        return weir__ffmpeg_error(error, most, "cannot resample");
    int rc = reserve_samples(resampler, (uint64_t)most, error);
    if (rc != WEIR_OK || most == 0)
        return rc;

    uint8_t *planes[WEIR_RESAMPLER_MAX_CHANNELS];
    uint64_t stride = audio->planar ? resampler->max_samples : 0;
    float *end = audio->data + audio->num_samples * (audio->planar ? 1 : audio->channels);
    for (uint32_t i = 0; i < (audio->planar ? audio->channels : 1); i++)
        planes[i] = (uint8_t *)(end + i * stride);
    int got =
        swr_convert(resampler->swr, planes, most, frame ? (const uint8_t **)frame->extended_data : NULL, num_in);
    if (got < 0)
        return weir__ffmpeg_error(error, got, "cannot resample");
    audio->num_samples += (uint64_t)got;
    return WEIR_OK;
}

/* The frame's channel layout; if it is unknown, FFmpeg's default for that number of channels. */
static int layout_of(const AVFrame *frame, AVChannelLayout *layout)
{
    if (frame->ch_layout.order == AV_CHANNEL_ORDER_UNSPEC) {
        av_channel_layout_default(layout, frame->ch_layout.nb_channels);
        return 0;
    }
    return av_channel_layout_copy(layout, &frame->ch_layout);
}

static int open_swr(weir_resampler *resampler, const AVFrame *frame, weir_error *error)
{
    const weir_audio *audio = resampler->audio;
    AVChannelLayout to = { 0 };
    int rc = layout_of(frame, &resampler->source_layout);
    if (rc >= 0 && resampler->source_layout.nb_channels == (int)audio->channels)
        rc = av_channel_layout_copy(&to, &resampler->source_layout);
    else if (rc >= 0)
        av_channel_layout_default(&to, (int)audio->channels);
    if (rc >= 0)
        rc = swr_alloc_set_opts2(&resampler->swr, &to, audio->planar ? AV_SAMPLE_FMT_FLTP : AV_SAMPLE_FMT_FLT,
                                 (int)audio->sample_rate, &resampler->source_layout, frame->format,
                                 frame->sample_rate, 0, NULL);
    if (rc >= 0)
        rc = swr_init(resampler->swr);
    av_channel_layout_uninit(&to);
    resampler->source_rate = frame->sample_rate;
    resampler->source_format = frame->format;
    return rc < 0 ? weir__ffmpeg_error(error, rc, "cannot convert the file's channels or sample rate") : WEIR_OK;
}

static bool is_like_before(const weir_resampler *resampler, const AVFrame *frame)
{
    return resampler->swr && resampler->source_rate == frame->sample_rate &&
           resampler->source_format == frame->format &&
           (frame->ch_layout.order == AV_CHANNEL_ORDER_UNSPEC
                ? resampler->source_layout.nb_channels == frame->ch_layout.nb_channels
                : av_channel_layout_compare(&resampler->source_layout, &frame->ch_layout) == 0);
}

int weir__resampler_begin(weir_resampler *resampler, const weir_audio_config *config, const AVFrame *first,
                          weir_error *error)
{
    weir__resampler_abort(resampler);
    resampler->max_samples = 0;
    resampler->max_bytes = config->max_bytes;
    weir_audio *audio = calloc(1, sizeof *audio);
    if (!audio)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    resampler->audio = audio;
    audio->source_sample_rate = (uint32_t)first->sample_rate;
    audio->source_channels = (uint32_t)first->ch_layout.nb_channels;
    audio->sample_rate = config->sample_rate ? config->sample_rate : audio->source_sample_rate;
    audio->channels = config->channels ? config->channels : audio->source_channels;
    audio->planar = config->planar;
    if (audio->channels == 0 || audio->sample_rate == 0)
        return weir_error_set(error, WEIR_EDATA, 0, "the samples have no channels or no sample rate");
    if (audio->channels > WEIR_RESAMPLER_MAX_CHANNELS)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "%" PRIu32 " channels are too many: at most %d",
                              audio->channels, WEIR_RESAMPLER_MAX_CHANNELS);
    return WEIR_OK;
}

int weir__resampler_add(weir_resampler *resampler, const AVFrame *frame, weir_error *error)
{
    int rc = WEIR_OK;
    if (!is_like_before(resampler, frame)) {
        if (resampler->swr)
            rc = convert_samples(resampler, NULL, error);
        close_swr(resampler);
        if (rc == WEIR_OK)
            rc = open_swr(resampler, frame, error);
    }
    return rc == WEIR_OK ? convert_samples(resampler, frame, error) : rc;
}

/* Keeps `most` samples from number `skip` on. */
static void cut_samples(const weir_resampler *resampler, uint64_t skip, uint64_t most)
{
    weir_audio *audio = resampler->audio;
    uint64_t left = audio->num_samples > skip ? audio->num_samples - skip : 0;
    uint64_t width = audio->planar ? 1 : audio->channels; /* values of a sample that are side by side */
    left = left < most ? left : most;
    for (uint32_t i = 0; skip > 0 && left > 0 && i < (audio->planar ? audio->channels : 1); i++) {
        float *channel = audio->data + i * resampler->max_samples;
        memmove(channel, channel + skip * width, (size_t)(left * width) * sizeof *channel);
    }
    audio->num_samples = left;
}

int weir__resampler_end(weir_resampler *resampler, uint64_t skip, uint64_t most, weir_audio **to, weir_error *error)
{
    weir_audio *audio = resampler->audio;
    int rc = convert_samples(resampler, NULL, error);
    if (rc != WEIR_OK)
        return rc;
    cut_samples(resampler, skip, most);
    if (audio->num_samples > resampler->max_bytes / (audio->channels * sizeof *audio->data))
        return fail_num_samples(resampler, error);
    move_channels(audio, resampler->max_samples, audio->num_samples);
    size_t used_bytes = (size_t)(audio->num_samples * audio->channels) * sizeof *audio->data;
    size_t room_bytes = (size_t)(resampler->max_samples * audio->channels) * sizeof *audio->data;
    float *shrunk = used_bytes ? weir__shared_data_resize(audio->data, &audio->shared, used_bytes) : NULL;
    if (shrunk)
        audio->data = shrunk;
    audio->memory_bytes = sizeof *audio + (shrunk ? used_bytes : room_bytes);
    close_swr(resampler);
    resampler->audio = NULL;
    *to = audio;
    return WEIR_OK;
}
