/* What the header of an open file says: enough or too little to decode, times, the number of frames. */
#include "stages/decoder/stream_facts.h"

#include <string.h>

#include "stages/decoder/stream_choice.h"

bool weir__container_is_still(const AVFormatContext *format)
{
    const char *name = format->iformat->name;
    size_t name_bytes = strlen(name);
    bool is_pipe = name_bytes > strlen("_pipe") && strcmp(name + name_bytes - strlen("_pipe"), "_pipe") == 0;
    return is_pipe || strcmp(name, "image2pipe") == 0;
}

bool weir__container_is(const AVFormatContext *format, const char *name)
{
    return strstr(format->iformat->name, name) != NULL;
}

/*
 * Does the stream's header contain the reorder delay, so that no packets have to be read? Without it the H.264
 * decoder guesses, and outputs the first frames out of order. HEVC's parameter sets have it; VP8, VP9 and AV1 do not
 * need it. For H.264 in MP4 the demuxer computed it from the timestamps (video_delay), or the profile has no
 * B-frames.
 */
static bool reordering_is_known(const AVFormatContext *format, const AVCodecParameters *parameters)
{
    enum { AVCC_PROFILE_BYTE = 1, BASELINE_PROFILE = 66 };
    switch (parameters->codec_id) {
    case AV_CODEC_ID_HEVC: return parameters->extradata_size > 0;
    case AV_CODEC_ID_VP8:
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_AV1: return true;
    case AV_CODEC_ID_H264:
        return weir__container_is(format, "mp4") && parameters->extradata_size > AVCC_PROFILE_BYTE &&
               (parameters->video_delay > 0 || parameters->extradata[AVCC_PROFILE_BYTE] == BASELINE_PROFILE);
    default: return false;
    }
}

/* Matroska's header may not be sufficient; then the file is opened again: see times_are_known(). */
static bool can_reopen(const AVFormatContext *format)
{
    return format->pb && (format->pb->seekable & AVIO_SEEKABLE_NORMAL);
}

bool weir__container_describes(const AVFormatContext *format, enum AVMediaType media)
{
    const AVCodecParameters *only = NULL;
    /* without a size FFmpeg finds the end of the picture only with the probe's parser */
    if (weir__container_is_still(format))
        return format->pb && avio_size(format->pb) >= 0;
    if (!weir__container_is(format, "mp4") && !(weir__container_is(format, "matroska") && can_reopen(format)))
        return false;
    for (unsigned i = 0; i < format->nb_streams; i++) {
        const AVCodecParameters *parameters = format->streams[i]->codecpar;
        if (parameters->codec_type != media)
            continue;
        if (only)
            return false;
        only = parameters;
    }
    if (only && media == AVMEDIA_TYPE_AUDIO)
        return only->sample_rate > 0;
    return only && only->width > 0 && only->height > 0 && reordering_is_known(format, only);
}

/* The stream that the container has an index of. Matroska's is one of the video: FFmpeg would read all of the file
   before the place to find it by the sound. */
const AVStream *weir__stream_with_index(const AVFormatContext *format, const AVStream *stream)
{
    if (stream->codecpar->codec_type != AVMEDIA_TYPE_AUDIO || !weir__container_is(format, "matroska"))
        return stream;
    for (unsigned i = 0; i < format->nb_streams; i++) {
        const AVStream *other = format->streams[i];
        if (other->codecpar->codec_type == AVMEDIA_TYPE_VIDEO && !weir__stream_is_cover(other))
            return other;
    }
    return stream;
}

bool weir__stream_has_dts(const AVFormatContext *format, const AVStream *stream)
{
    enum AVCodecID codec = stream->codecpar->codec_id;
    bool reorders = codec == AV_CODEC_ID_H264 || codec == AV_CODEC_ID_HEVC;
    return !(reorders && weir__container_is(format, "matroska"));
}

uint64_t weir__stream_count_frames(const AVFormatContext *format, AVStream *stream)
{
    int num_entries = weir__container_is(format, "mp4") ? avformat_index_get_entries_count(stream) : 0;
    uint64_t num_frames = 0;
    if (stream->nb_frames <= 0)
        return 0;
    for (int i = 0; i < num_entries; i++)
        num_frames += !(avformat_index_get_entry(stream, i)->flags & AVINDEX_DISCARD_FRAME);
    return num_frames > 0 ? num_frames : (uint64_t)stream->nb_frames;
}

uint64_t weir__stream_count_listed(const AVFormatContext *format, const AVStream *stream)
{
    int64_t num_entries = weir__container_is(format, "mp4") ? avformat_index_get_entries_count(stream) : 0;
    return num_entries > 0 && num_entries == stream->nb_frames ? (uint64_t)num_entries : 0;
}

uint64_t weir__stream_estimate_frames(const AVFormatContext *format, AVStream *stream)
{
    uint64_t num_frames = weir__stream_count_frames(format, stream);
    if (num_frames > 0)
        return num_frames;

    AVRational rate = stream->avg_frame_rate.num > 0 ? stream->avg_frame_rate : stream->r_frame_rate;
    int64_t duration = stream->duration;
    AVRational time_base = stream->time_base;
    if (duration <= 0 || duration == AV_NOPTS_VALUE) {
        duration = format->duration;
        time_base = AV_TIME_BASE_Q;
    }
    if (duration <= 0 || duration == AV_NOPTS_VALUE || rate.num <= 0 || rate.den <= 0)
        return 0;
    int64_t frames = av_rescale_q(duration, time_base, av_inv_q(rate));
    return frames > 0 ? (uint64_t)frames + 1 : 0;
}
