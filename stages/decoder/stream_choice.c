/* Which of the streams of a file is decoded. The ffmpeg program is the model: a user sees the same stream in both. */
#include "stages/decoder/stream_choice.h"

#include <inttypes.h>

#include "stages/ffmpeg/ffmpeg_log.h"

bool weir__stream_is_cover(const AVStream *stream)
{
    return stream->disposition & AV_DISPOSITION_ATTACHED_PIC;
}

static bool is_of_kind(const AVStream *stream, enum AVMediaType media)
{
    return stream->codecpar->codec_type == media && !weir__stream_is_cover(stream);
}

static unsigned count_streams(const AVFormatContext *format, enum AVMediaType media, unsigned before)
{
    unsigned num_streams = 0;
    for (unsigned i = 0; i < before; i++)
        num_streams += is_of_kind(format->streams[i], media);
    return num_streams;
}

uint32_t weir__stream_number(const AVFormatContext *format, const AVStream *stream)
{
    return count_streams(format, stream->codecpar->codec_type, (unsigned)stream->index) + 1;
}

static int fail_no_stream(const AVFormatContext *format, enum AVMediaType media, weir_error *error)
{
    const char *wanted = av_get_media_type_string(media);
    if (format->nb_streams == 0)
        return weir_error_set(error, WEIR_EDATA, AVERROR_STREAM_NOT_FOUND, "it has no streams");
    unsigned num_covers = 0;
    for (unsigned i = 0; i < format->nb_streams; i++)
        num_covers += weir__stream_is_cover(format->streams[i]);
    if (num_covers > 0 && media == AVMEDIA_TYPE_VIDEO)
        return weir_error_set(error, WEIR_EUNSUPPORTED, AVERROR_STREAM_NOT_FOUND,
                              "it has no video, only a cover picture");
    const char *kind = av_get_media_type_string(format->streams[0]->codecpar->codec_type);
    return weir_error_set(error, WEIR_EUNSUPPORTED, AVERROR_STREAM_NOT_FOUND,
                          "it has no %s: %u stream(s), the first is %s", wanted, format->nb_streams,
                          kind ? kind : "unknown");
}

/* Where FFmpeg has no name for the codec, the message has its four-character tag. */
static int fail_no_decoder(const AVStream *stream, weir_error *error)
{
    const AVCodecParameters *parameters = stream->codecpar;
    const char *kind = av_get_media_type_string(parameters->codec_type);
    if (parameters->codec_id != AV_CODEC_ID_NONE)
        return weir_error_set(error, WEIR_EUNSUPPORTED, AVERROR_DECODER_NOT_FOUND,
                              "its %s is %s, and this FFmpeg has no decoder for it", kind,
                              avcodec_get_name(parameters->codec_id));
    return weir_error_set(error, WEIR_EUNSUPPORTED, AVERROR_DECODER_NOT_FOUND,
                          "its %s has a codec that this FFmpeg does not support, \"%s\"", kind,
                          av_fourcc2str(parameters->codec_tag));
}

/* The stream with that number; -1 = there are fewer. */
static int find_numbered(const AVFormatContext *format, enum AVMediaType media, uint32_t number)
{
    uint32_t so_far = 0;
    for (unsigned i = 0; i < format->nb_streams; i++) {
        so_far += is_of_kind(format->streams[i], media);
        if (so_far == number)
            return (int)i;
    }
    return -1;
}

/* As the ffmpeg program: first of all a stream of which the probe has seen packets, then one that the container marks
   as the default, then the most pixels. Of equal ones it is the first: of a picture with a mask, the picture. */
static int64_t video_score(const AVStream *stream)
{
    const int64_t has_packets = 100000000, is_default = 5000000;
    return (int64_t)stream->codecpar->width * stream->codecpar->height +
           (stream->event_flags & AVSTREAM_EVENT_FLAG_NEW_PACKETS ? has_packets : 0) +
           (stream->disposition & AV_DISPOSITION_DEFAULT ? is_default : 0);
}

/* Unlike ffmpeg, weir takes a stream without a decoder only if there is no other. -1 = there is none. */
static int find_best_video(const AVFormatContext *format, bool needs_decoder)
{
    int64_t best_score = -1;
    int best = -1;
    for (unsigned i = 0; i < format->nb_streams; i++) {
        const AVStream *stream = format->streams[i];
        if (!is_of_kind(stream, AVMEDIA_TYPE_VIDEO) ||
            (needs_decoder && !avcodec_find_decoder(stream->codecpar->codec_id)))
            continue;
        if (video_score(stream) > best_score) {
            best_score = video_score(stream);
            best = (int)i;
        }
    }
    return best;
}

static int find_best(AVFormatContext *format, enum AVMediaType media, weir_error *error)
{
    int best;
    if (media == AVMEDIA_TYPE_VIDEO) {
        best = find_best_video(format, true);
        best = best < 0 ? find_best_video(format, false) : best;
        return best < 0 ? fail_no_stream(format, media, error) : best;
    }
    const AVCodec *codec;
    best = av_find_best_stream(format, media, -1, -1, &codec, 0);
    if (best == AVERROR_DECODER_NOT_FOUND)
        best = av_find_best_stream(format, media, -1, -1, NULL, 0);
    if (best == AVERROR_STREAM_NOT_FOUND)
        return fail_no_stream(format, media, error);
    return best < 0 ? weir__ffmpeg_error(error, best, "cannot choose a stream") : best;
}

int weir__stream_choose(AVFormatContext *format, enum AVMediaType media, uint32_t number, const AVCodec **codec,
                        weir_error *error)
{
    int index = number ? find_numbered(format, media, number) : find_best(format, media, error);
    if (index == -1 && number)
        return weir_error_set(error, WEIR_ENOTFOUND, AVERROR_STREAM_NOT_FOUND,
                              "there is no %s stream %" PRIu32 ": it has %u", av_get_media_type_string(media), number,
                              count_streams(format, media, format->nb_streams));
    if (index < 0)
        return index;
    AVStream *stream = format->streams[index];
    *codec = avcodec_find_decoder(stream->codecpar->codec_id);
    if (!*codec)
        return fail_no_decoder(stream, error);
    for (unsigned i = 0; i < format->nb_streams; i++) {
        if ((int)i != index)
            format->streams[i]->discard = AVDISCARD_ALL;
    }
    return index;
}
