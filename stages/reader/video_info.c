#include "stages/reader/video_info.h"

#include <stdio.h>

#include <libavutil/pixdesc.h>

#include <weir/clock.h>

#include "stages/decoder/stream_choice.h"
#include "stages/decoder/stream_facts.h"
#include "stages/scale/rotate.h"

/* A rate or an aspect; 0 / 1 = unknown. */
static void set_ratio(AVRational ratio, uint32_t *num, uint32_t *den)
{
    bool is_known = ratio.num > 0 && ratio.den > 0;
    *num = is_known ? (uint32_t)ratio.num : 0;
    *den = is_known ? (uint32_t)ratio.den : 1;
}

/* Which mirror and turn lead from the coded picture to the displayed one. */
static void set_rotation(weir_rotation turn, weir_video_info *info)
{
    info->is_mirrored = (turn.mirrored_x != turn.mirrored_y) != turn.transposed;
    if (turn.transposed)
        info->rotation = turn.mirrored_y ? 90 : 270;
    else
        info->rotation = turn.mirrored_y ? 180 : 0;
}

static int64_t duration_of(const weir_decoder *decoder)
{
    static const AVRational nanoseconds = { 1, WEIR_SECOND };
    const AVStream *stream = decoder->stream;
    if (stream->duration > 0)
        return av_rescale_q(stream->duration, stream->time_base, nanoseconds);
    return decoder->format->duration > 0 ? av_rescale_q(decoder->format->duration, AV_TIME_BASE_Q, nanoseconds) : 0;
}

static uint32_t depth_of(const AVCodecParameters *parameters)
{
    const AVPixFmtDescriptor *pixel = av_pix_fmt_desc_get((enum AVPixelFormat)parameters->format);
    return pixel ? (uint32_t)pixel->comp[0].depth : (uint32_t)FFMAX(parameters->bits_per_raw_sample, 0);
}

static bool has_sound(const AVFormatContext *format)
{
    for (unsigned i = 0; i < format->nb_streams; i++)
        if (format->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO)
            return true;
    return false;
}

weir_video_info weir__video_info_of(const weir_decoder *decoder)
{
    AVStream *stream = decoder->stream;
    const AVCodecParameters *parameters = stream->codecpar;
    weir_video_info info = {
        .width = (uint32_t)FFMAX(parameters->width, 0),
        .height = (uint32_t)FFMAX(parameters->height, 0),
        .bit_depth = depth_of(parameters),
        .primaries = (int32_t)parameters->color_primaries,
        .transfer = (int32_t)parameters->color_trc,
        .matrix = (int32_t)parameters->color_space,
        .full_range = parameters->color_range == AVCOL_RANGE_JPEG,
        .time_base_num = stream->time_base.num,
        .time_base_den = stream->time_base.den,
        .num_frames = weir__stream_count_frames(decoder->format, decoder->stream),
        .duration_ns = duration_of(decoder),
        .stream = weir__stream_number(decoder->format, decoder->stream),
        .stream_index = (uint32_t)stream->index,
        .has_audio = has_sound(decoder->format),
    };
    set_ratio(av_guess_sample_aspect_ratio(decoder->format, stream, NULL), &info.sample_aspect_num,
              &info.sample_aspect_den);
    set_ratio(stream->avg_frame_rate, &info.average_rate_num, &info.average_rate_den);
    set_ratio(stream->r_frame_rate, &info.real_rate_num, &info.real_rate_den);
    set_rotation(weir__rotation_of_stream(stream), &info);
    snprintf(info.codec, sizeof info.codec, "%s", avcodec_get_name(parameters->codec_id));
    snprintf(info.container, sizeof info.container, "%s", decoder->format->iformat->name);
    return info;
}
