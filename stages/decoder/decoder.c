/*
 * Demux and decode. States of an open file: reading packets → draining (all packets are sent, or no more can be read) →
 * end. Of all damage only a read error changes the state: it ends the reading.
 */
#include "stages/decoder/decoder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/clock.h>

#include "stages/ffmpeg/ffmpeg_log.h"

/* Limit for consecutive AVERROR(EAGAIN), and for decode errors after the last packet. */
enum { MAX_READ_RETRIES = 1000, MAX_DRAIN_ERRORS = 64 };

int weir__decoder_init(weir_decoder *decoder)
{
    decoder->memory.config = decoder->config;
    decoder->input.host.config = decoder->input.config;
    decoder->packet = av_packet_alloc();
    decoder->frame = av_frame_alloc();
    return decoder->packet && decoder->frame ? WEIR_OK : WEIR_ENOMEM;
}

void weir__decoder_free(weir_decoder *decoder)
{
    weir__decoder_close(decoder);
    av_packet_free(&decoder->packet);
    av_frame_free(&decoder->frame);
    weir__frame_memory_free(&decoder->memory);
    weir__input_free(&decoder->input);
}

static void close_container(weir_decoder *decoder)
{
    av_packet_free(&decoder->first);
    avformat_close_input(&decoder->format);
    weir__input_close(&decoder->input);
    decoder->stream = NULL;
}

static void free_codec(weir_decoder *decoder)
{
    avcodec_free_context(&decoder->codec); /* joins its threads */
    weir__ffmpeg_watch_end(&decoder->watch);
}

void weir__decoder_close(weir_decoder *decoder)
{
    if (decoder->packet)
        av_packet_unref(decoder->packet);
    if (decoder->frame)
        av_frame_unref(decoder->frame);
    free_codec(decoder);
    close_container(decoder);
    decoder->draining = false;
    decoder->num_drain_errors = 0;
    decoder->num_packets = 0;
    decoder->has_cut_packet = false;
    decoder->num_errors = 0;
    decoder->first_averror = 0;
    decoder->first_reason[0] = '\0';
}

static bool is_decoder_stopped(const weir_decoder *decoder)
{
    return decoder->should_stop && decoder->should_stop(decoder->self);
}

static int fail_stopped(weir_error *error)
{
    return weir_error_set(error, WEIR_ESTOPPED, AVERROR_EXIT, "stopped");
}

int weir__decoder_check_stop(const weir_decoder *decoder, weir_error *error)
{
    return is_decoder_stopped(decoder) ? fail_stopped(error) : WEIR_OK;
}

static int interrupt_decoder(void *self)
{
    return is_decoder_stopped(self);
}

/* A picture without a container: only its decoder knows its parameters. */
static bool is_still_image(const AVFormatContext *format)
{
    const char *name = format->iformat->name;
    size_t name_bytes = strlen(name);
    bool is_pipe = name_bytes > strlen("_pipe") && strcmp(name + name_bytes - strlen("_pipe"), "_pipe") == 0;
    return is_pipe || strcmp(name, "image2pipe") == 0;
}

static int open_decoder_input(weir_decoder *decoder, const char *path, weir_error *error)
{
    AVIOInterruptCB asker = { .callback = interrupt_decoder, .opaque = decoder };
    weir__ffmpeg_log_step();
    int rc = weir__input_open(&decoder->input, path, asker, &decoder->format, error);
    decoder->is_still = rc == WEIR_OK && !decoder->input.file.is_pipe && is_still_image(decoder->format);
    return rc;
}

static bool container_is(const AVFormatContext *format, const char *name)
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
        return container_is(format, "mp4") && parameters->extradata_size > AVCC_PROFILE_BYTE &&
               (parameters->video_delay > 0 || parameters->extradata[AVCC_PROFILE_BYTE] == BASELINE_PROFILE);
    default: return false;
    }
}

/* Matroska's header may not be sufficient; then the file is opened again: see times_are_known(). */
static bool can_reopen(const AVFormatContext *format)
{
    return format->pb && (format->pb->seekable & AVIO_SEEKABLE_NORMAL);
}

/*
 * Does the container's header have everything that the probe (avformat_find_stream_info) would find? The probe decodes
 * frames to find what an incomplete header lacks; with one fully described stream of our media type it is not needed.
 */
static bool header_is_complete(const weir_decoder *decoder)
{
    const AVFormatContext *format = decoder->format;
    const AVCodecParameters *only = NULL;
    if (is_still_image(format)) /* without a size FFmpeg finds the end of the picture only with the probe's parser */
        return format->pb && avio_size(format->pb) >= 0;
    if (!container_is(format, "mp4") && !(container_is(format, "matroska") && can_reopen(format)))
        return false;
    for (unsigned i = 0; i < format->nb_streams; i++) {
        const AVCodecParameters *parameters = format->streams[i]->codecpar;
        if (parameters->codec_type != decoder->media)
            continue;
        if (only)
            return false;
        only = parameters;
    }
    if (only && decoder->media == AVMEDIA_TYPE_AUDIO)
        return only->sample_rate > 0;
    return only && only->width > 0 && only->height > 0 && reordering_is_known(format, only);
}

static int64_t max_pixels_of(const weir_decoder *decoder)
{
    return (int64_t)decoder->config->max_pixels;
}

/* The probe decodes, so it gets a pixel limit, with room for the decoders' alignment, and a memory limit, as its
   memory is not counted. Streams that are found later, as in MPEG-TS, have no limit while they are probed. */
static int64_t probe_max_pixels(const weir_decoder *decoder, const AVStream *stream)
{
    int64_t aligned = 2 * max_pixels_of(decoder) + (1 << 16);
    return FFMIN(aligned, weir__frame_memory_max_pixels(&decoder->memory, stream->codecpar->codec_id));
}

static int find_stream_info(const weir_decoder *decoder)
{
    unsigned num_streams = decoder->format->nb_streams;
    AVDictionary **options = av_calloc(num_streams ? num_streams : 1, sizeof(AVDictionary *));
    if (!options)
        return AVERROR(ENOMEM);
    for (unsigned i = 0; i < num_streams; i++)
        av_dict_set_int(&options[i], "max_pixels",
                        FFMIN(probe_max_pixels(decoder, decoder->format->streams[i]), INT32_MAX), 0);
    int rc = avformat_find_stream_info(decoder->format, options);
    for (unsigned i = 0; i < num_streams; i++)
        av_dict_free(&options[i]);
    av_free(options);
    return rc;
}

static int probe_streams(weir_decoder *decoder, weir_error *error)
{
    weir__ffmpeg_log_step();
    int rc = weir__input_error(&decoder->input, find_stream_info(decoder));
    return rc < 0 ? weir__ffmpeg_error(error, rc, "cannot detect its streams") : WEIR_OK;
}

/* ---- the stream ---------------------------------------------------------------------------------------------- */

static bool is_cover(const AVStream *stream)
{
    return stream->disposition & AV_DISPOSITION_ATTACHED_PIC;
}

static bool is_of_kind(const weir_decoder *decoder, const AVStream *stream)
{
    return stream->codecpar->codec_type == decoder->media && !is_cover(stream);
}

static unsigned count_streams(const weir_decoder *decoder, unsigned before)
{
    unsigned num_streams = 0;
    for (unsigned i = 0; i < before; i++)
        num_streams += is_of_kind(decoder, decoder->format->streams[i]);
    return num_streams;
}

uint32_t weir__decoder_stream_number(const weir_decoder *decoder)
{
    return count_streams(decoder, (unsigned)decoder->stream->index) + 1;
}

static int fail_no_stream(const weir_decoder *decoder, weir_error *error)
{
    const AVFormatContext *format = decoder->format;
    const char *wanted = av_get_media_type_string(decoder->media);
    if (format->nb_streams == 0)
        return weir_error_set(error, WEIR_EDATA, AVERROR_STREAM_NOT_FOUND, "it has no streams");
    unsigned num_covers = 0;
    for (unsigned i = 0; i < format->nb_streams; i++)
        num_covers += is_cover(format->streams[i]);
    if (num_covers > 0 && decoder->media == AVMEDIA_TYPE_VIDEO)
        return weir_error_set(error, WEIR_EUNSUPPORTED, AVERROR_STREAM_NOT_FOUND,
                              "it has no video, only a cover picture");
    const char *kind = av_get_media_type_string(format->streams[0]->codecpar->codec_type);
    return weir_error_set(error, WEIR_EUNSUPPORTED, AVERROR_STREAM_NOT_FOUND,
                          "it has no %s: %u stream(s), the first is %s", wanted, format->nb_streams,
                          kind ? kind : "unknown");
}

/* Where FFmpeg has no name for the codec, the message has its four-character tag. */
static int fail_no_decoder(const weir_decoder *decoder, const AVStream *stream, weir_error *error)
{
    const AVCodecParameters *parameters = stream->codecpar;
    const char *kind = av_get_media_type_string(decoder->media);
    if (parameters->codec_id != AV_CODEC_ID_NONE)
        return weir_error_set(error, WEIR_EUNSUPPORTED, AVERROR_DECODER_NOT_FOUND,
                              "its %s is %s, and this FFmpeg has no decoder for it", kind,
                              avcodec_get_name(parameters->codec_id));
    return weir_error_set(error, WEIR_EUNSUPPORTED, AVERROR_DECODER_NOT_FOUND,
                          "its %s has a codec that this FFmpeg does not support, \"%s\"", kind,
                          av_fourcc2str(parameters->codec_tag));
}

/* The stream with that number; -1 = there are fewer. */
static int find_numbered(const weir_decoder *decoder)
{
    uint32_t number = 0;
    for (unsigned i = 0; i < decoder->format->nb_streams; i++) {
        number += is_of_kind(decoder, decoder->format->streams[i]);
        if (number == decoder->stream_number)
            return (int)i;
    }
    return -1;
}

/* As the ffmpeg program: first of all a stream of which the probe has seen packets, then one that the container marks as
   the default, then the most pixels; of equal ones the first, which of a picture with a mask is the picture. */
static int64_t video_score(const AVStream *stream)
{
    const int64_t has_packets = 100000000, is_default = 5000000;
    return (int64_t)stream->codecpar->width * stream->codecpar->height +
           (stream->event_flags & AVSTREAM_EVENT_FLAG_NEW_PACKETS ? has_packets : 0) +
           (stream->disposition & AV_DISPOSITION_DEFAULT ? is_default : 0);
}

/* Unlike ffmpeg, weir takes a stream without a decoder only if there is no other. -1 = there is none. */
static int find_best_video(const weir_decoder *decoder, bool needs_decoder)
{
    int64_t best_score = -1;
    int best = -1;
    for (unsigned i = 0; i < decoder->format->nb_streams; i++) {
        const AVStream *stream = decoder->format->streams[i];
        if (!is_of_kind(decoder, stream) || (needs_decoder && !avcodec_find_decoder(stream->codecpar->codec_id)))
            continue;
        if (video_score(stream) > best_score) {
            best_score = video_score(stream);
            best = (int)i;
        }
    }
    return best;
}

static int find_best(const weir_decoder *decoder, weir_error *error)
{
    AVFormatContext *format = decoder->format;
    int best;
    if (decoder->media == AVMEDIA_TYPE_VIDEO) {
        best = find_best_video(decoder, true);
        best = best < 0 ? find_best_video(decoder, false) : best;
        return best < 0 ? fail_no_stream(decoder, error) : best;
    }
    const AVCodec *codec;
    best = av_find_best_stream(format, decoder->media, -1, -1, &codec, 0);
    if (best == AVERROR_DECODER_NOT_FOUND)
        best = av_find_best_stream(format, decoder->media, -1, -1, NULL, 0);
    if (best == AVERROR_STREAM_NOT_FOUND)
        return fail_no_stream(decoder, error);
    return best < 0 ? weir__ffmpeg_error(error, best, "cannot choose a stream") : best;
}

static int choose_stream(weir_decoder *decoder, const AVCodec **codec, weir_error *error)
{
    AVFormatContext *format = decoder->format;
    int index = decoder->stream_number ? find_numbered(decoder) : find_best(decoder, error);
    if (index == -1 && decoder->stream_number)
        return weir_error_set(error, WEIR_ENOTFOUND, AVERROR_STREAM_NOT_FOUND,
                              "there is no %s stream %" PRIu32 ": it has %u",
                              av_get_media_type_string(decoder->media), decoder->stream_number,
                              count_streams(decoder, format->nb_streams));
    if (index < 0)
        return index;
    AVStream *stream = format->streams[index];
    *codec = avcodec_find_decoder(stream->codecpar->codec_id);
    if (!*codec)
        return fail_no_decoder(decoder, stream, error);
    decoder->stream = stream;
    for (unsigned i = 0; i < format->nb_streams; i++) {
        if ((int)i != index)
            format->streams[i]->discard = AVDISCARD_ALL;
    }
    return WEIR_OK;
}

/* ---- limits -------------------------------------------------------------------------------------------------- */

static int fail_picture_size(const weir_decoder *decoder, int width, int height, weir_error *error)
{
    return weir_error_set(error, WEIR_ELIMIT, 0,
                          "pictures of %d×%d are over the limit of %" PRId64 " pixels: raise max_pixels", width,
                          height, max_pixels_of(decoder));
}

int weir__decoder_fail_empty(const weir_decoder *decoder, const char *empty, weir_error *error)
{
    const weir_ffmpeg_log *log = weir__ffmpeg_log_current();
    char what[96];
    if (log && log->too_wide > 0)
        return fail_picture_size(decoder, log->too_wide, log->too_high, error);
    if (!decoder->first_averror)
        return weir_error_set(error, WEIR_EDATA, AVERROR_EOF, "%s", empty);
    snprintf(what, sizeof what, "nothing could be decoded, %" PRIu64 " damaged packet(s)", decoder->num_errors);
    return weir__ffmpeg_error_because(error, decoder->first_averror, what, decoder->first_reason);
}

/* Is the picture that the header announces too large? */
static int check_size(const weir_decoder *decoder, weir_error *error)
{
    const AVCodecParameters *parameters = decoder->stream->codecpar;
    if (parameters->codec_type != AVMEDIA_TYPE_VIDEO)
        return WEIR_OK;
    if ((int64_t)parameters->width * parameters->height > max_pixels_of(decoder))
        return fail_picture_size(decoder, parameters->width, parameters->height, error);
    return weir__frame_memory_check(&decoder->memory, parameters, error);
}

/* With the rows and columns that decoders add for alignment: FFmpeg's limit includes them. MPEG-2 and MPEG-4 add the
   most: 248 rows to 32. */
static int64_t with_alignment(int64_t width, int64_t height)
{
    enum { ALIGNMENT = 256 };
    return (width + ALIGNMENT) * (height + ALIGNMENT);
}

/* The decoder's own limit, for pictures larger than the header says, or without a size in the header; pictures over our
   limit are rejected after decoding. The memory of external decoder libraries is not counted. */
static int64_t codec_max_pixels(const weir_decoder *decoder, const AVCodec *codec)
{
    enum { MAX_SIDE = 1 << 16 };
    const AVCodecParameters *parameters = decoder->stream->codecpar;
    int64_t max_pixels = max_pixels_of(decoder);
    if (parameters->width <= 0)
        max_pixels = FFMAX(2 * max_pixels, FFMIN(with_alignment(max_pixels, 1), MAX_SIDE * INT64_C(128)));
    if (!(codec->capabilities & AV_CODEC_CAP_DR1))
        max_pixels = FFMIN(max_pixels, weir__frame_memory_max_pixels(&decoder->memory, codec->id));
    return FFMIN(FFMAX(with_alignment(parameters->width, parameters->height), max_pixels), INT32_MAX);
}

/* What costs accuracy. */
static void set_shortcuts(AVCodecContext *codec, const weir_decoder_config *config)
{
    static const enum AVDiscard unfiltered[] = {
        [WEIR_LOOP_FILTER_ALL] = AVDISCARD_DEFAULT,
        [WEIR_LOOP_FILTER_REFERENCES] = AVDISCARD_NONREF,
        [WEIR_LOOP_FILTER_KEYFRAMES] = AVDISCARD_NONKEY,
        [WEIR_LOOP_FILTER_NONE] = AVDISCARD_ALL,
    };
    codec->skip_loop_filter = unfiltered[config->loop_filter];
    codec->flags2 |= config->fast_decode ? AV_CODEC_FLAG2_FAST : 0;
    codec->lowres = FFMIN(config->lowres, codec->codec->max_lowres);
}

/* Sets the context up, before it is opened. */
static int set_up_codec(weir_decoder *decoder, AVCodecContext *context, unsigned num_threads, weir_error *error)
{
    int rc = avcodec_parameters_to_context(context, decoder->stream->codecpar);
    if (rc < 0)
        return weir__ffmpeg_error(error, rc, "cannot use the stream's parameters");

    context->pkt_timebase = decoder->stream->time_base;
    context->thread_count = (int)num_threads;
    context->thread_type = FF_THREAD_FRAME | FF_THREAD_SLICE;
    context->max_pixels = codec_max_pixels(decoder, context->codec);
    set_shortcuts(context, decoder->config);
    if (weir__frame_memory_attach(&decoder->memory, context) != WEIR_OK)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    return WEIR_OK;
}

static int open_codec(weir_decoder *decoder, const AVCodec *codec, weir_error *error)
{
    decoder->codec = avcodec_alloc_context3(codec);
    if (!decoder->codec)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int rc = set_up_codec(decoder, decoder->codec, decoder->is_threaded ? decoder->config->threads : 1, error);
    if (rc != WEIR_OK)
        return rc;
    weir__ffmpeg_log_step();
    if (decoder->is_threaded)
        weir__ffmpeg_watch_begin(&decoder->watch, decoder->codec->opaque);
    rc = avcodec_open2(decoder->codec, codec, NULL);
    return rc < 0 ? weir__ffmpeg_error(error, rc, "cannot open the decoder") : WEIR_OK;
}

AVCodecContext *weir__decoder_another_codec(weir_decoder *decoder, weir_error *error)
{
    const AVCodec *codec = decoder->codec->codec;
    AVCodecContext *context = avcodec_alloc_context3(codec);
    if (!context) {
        weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
        return NULL;
    }
    int rc = set_up_codec(decoder, context, 1, error);
    weir__ffmpeg_log_step();
    int averror = rc == WEIR_OK ? avcodec_open2(context, codec, NULL) : 0;
    if (averror < 0)
        rc = weir__ffmpeg_error(error, averror, "cannot open the decoder");
    if (rc != WEIR_OK)
        avcodec_free_context(&context);
    return context;
}

/* Facts about the file. Some servers do not send its size. */
static void note_source(weir_decoder *decoder)
{
    const AVCodecParameters *parameters = decoder->stream->codecpar;
    int64_t size_bytes = decoder->format->pb ? avio_size(decoder->format->pb) : 0;
    weir_decode_cost *cost = &decoder->cost;
    cost->size_bytes = size_bytes > 0 ? (uint64_t)size_bytes : 0;
    cost->width = (uint64_t)FFMAX(parameters->width, 0);
    cost->height = (uint64_t)FFMAX(parameters->height, 0);
    snprintf(cost->codec, sizeof cost->codec, "%s", avcodec_get_name(parameters->codec_id));
}

void weir__decoder_begin_cost(weir_decoder *decoder)
{
    decoder->cost = (weir_decode_cost){ 0 };
    note_source(decoder);
}

/* Counts damage that loses a packet or a frame, but not the file. Out of memory is not damage. */
static int note_damage(weir_decoder *decoder, int averror, weir_error *error)
{
    int rc = weir__input_user_failure(&decoder->input, error);
    if (rc != WEIR_OK)
        return rc;
    if (averror == AVERROR(ENOMEM))
        return weir__ffmpeg_error(error, averror, "cannot decode");
    if (is_decoder_stopped(decoder) || averror == AVERROR_EXIT)
        return fail_stopped(error);
    if (averror == AVERROR(ETIMEDOUT)) /* a server that stops sending is not damage either */
        return weir__ffmpeg_error(error, averror,
                                  "the server stopped sending; if it needs longer, raise io_timeout_ns");
    decoder->num_errors++;
    if (decoder->first_averror)
        return WEIR_OK;
    decoder->first_averror = averror;
    snprintf(decoder->first_reason, sizeof decoder->first_reason, "%s", weir__ffmpeg_log_reason());
    return WEIR_OK;
}

/* Has the file ended within the container? Says so once. */
static bool is_cut(void)
{
    weir_ffmpeg_log *log = weir__ffmpeg_log_current();
    bool is_cut = log && log->is_cut;
    if (is_cut)
        log->is_cut = false;
    return is_cut;
}

/* Some demuxers report a read error as the end of the file. */
static int read_any_packet(weir_decoder *decoder)
{
    const AVIOContext *avio = decoder->format->pb;
    int64_t start_ns = weir_clock_ns();
    int rc = av_read_frame(decoder->format, decoder->packet);
    decoder->cost.demux_ns += weir_clock_ns() - start_ns;
    rc = rc == AVERROR_EOF && avio && avio->error < 0 ? avio->error : rc;
    rc = weir__input_error(&decoder->input, rc);
    return rc == AVERROR_EOF && is_cut() ? AVERROR_INVALIDDATA : rc;
}

/* The next packet of our stream in decoder->packet: 0 or FFmpeg's error. Empty packets would start the draining. */
static int read_packet(weir_decoder *decoder)
{
    int num_retries = 0;
    if (decoder->is_still && decoder->num_packets > 0)
        return AVERROR_EOF;
    while (!is_decoder_stopped(decoder)) {
        int rc = read_any_packet(decoder);
        if (rc == AVERROR(EAGAIN) && ++num_retries < MAX_READ_RETRIES)
            continue;
        bool is_ours =
            rc >= 0 && decoder->packet->stream_index == decoder->stream->index && decoder->packet->size > 0;
        decoder->num_packets += is_ours;
        decoder->has_cut_packet |= is_ours && (decoder->packet->flags & AV_PKT_FLAG_CORRUPT);
        if (rc < 0 || is_ours)
            return rc;
        av_packet_unref(decoder->packet);
    }
    return AVERROR_EXIT;
}

/*
 * Is the first packet's time the container's? Matroska does not allow negative times. If a muxer wrote some anyway, the
 * probe derives them from later packets; without the probe the demuxer counts from zero twice.
 */
static bool times_are_known(weir_decoder *decoder)
{
    const AVStream *stream = decoder->stream;
    if (!container_is(decoder->format, "matroska") || stream->codecpar->codec_id == AV_CODEC_ID_HEVC)
        return true; /* HEVC's are missing, which is handled where they are used */
    if (read_packet(decoder) < 0)
        return true; /* the failure is reported when reading */
    return weir__decoder_unread(decoder, NULL) == WEIR_OK && stream->start_time != AV_NOPTS_VALUE;
}

/* Opens the container and chooses the stream. */
static int open_stream(weir_decoder *decoder, const char *path, const AVCodec **codec, weir_error *error)
{
    int rc = open_decoder_input(decoder, path, error);
    if (rc == WEIR_OK && header_is_complete(decoder)) {
        rc = choose_stream(decoder, codec, error);
        if (rc != WEIR_OK || times_are_known(decoder))
            return rc;
        close_container(decoder);
        rc = open_decoder_input(decoder, path, error);
    }
    if (rc == WEIR_OK)
        rc = probe_streams(decoder, error);
    return rc == WEIR_OK ? choose_stream(decoder, codec, error) : rc;
}

int weir__decoder_open(weir_decoder *decoder, const char *path, weir_error *error)
{
    const AVCodec *codec = NULL;
    int64_t start_ns = weir_clock_ns() - decoder->cost.demux_ns;
    int rc = open_stream(decoder, path, &codec, error);
    if (rc == WEIR_OK)
        rc = weir__input_user_failure(&decoder->input, error);
    if (rc == WEIR_OK)
        rc = check_size(decoder, error);
    if (rc == WEIR_OK)
        rc = open_codec(decoder, codec, error);
    if (rc == WEIR_OK)
        note_source(decoder);
    decoder->cost.open_ns += weir_clock_ns() - decoder->cost.demux_ns - start_ns;
    return rc;
}

int weir__decoder_read(weir_decoder *decoder, weir_error *error)
{
    if (is_decoder_stopped(decoder))
        return fail_stopped(error);
    if (decoder->first) {
        av_packet_move_ref(decoder->packet, decoder->first);
        av_packet_free(&decoder->first);
        return WEIR_OK;
    }
    int averror = read_packet(decoder);
    int rc = weir__input_user_failure(&decoder->input, error); /* demuxers may return a part of a packet */
    if (rc == WEIR_OK && averror < 0 && averror != AVERROR_EOF)
        rc = note_damage(decoder, averror, error);
    if (rc != WEIR_OK)
        av_packet_unref(decoder->packet);
    return rc == WEIR_OK && averror < 0 ? WEIR_EOF : rc;
}

int weir__decoder_unread(weir_decoder *decoder, weir_error *error)
{
    decoder->first = av_packet_alloc();
    if (!decoder->first)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    av_packet_move_ref(decoder->first, decoder->packet);
    return WEIR_OK;
}

int weir__decoder_send(weir_decoder *decoder, const AVPacket *packet, weir_error *error)
{
    if (is_decoder_stopped(decoder))
        return fail_stopped(error);
    if (packet && av_packet_get_side_data(packet, AV_PKT_DATA_ENCRYPTION_INFO, NULL))
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "it is encrypted, and there is no key");
    decoder->draining |= !packet;
    weir__ffmpeg_log_step();
    int64_t start_ns = weir_clock_ns();
    int rc = avcodec_send_packet(decoder->codec, packet);
    decoder->cost.decode_ns += weir_clock_ns() - start_ns;
    /* some decoders go on without the frame that there was no memory for, and do not say so */
    int verdict = weir__frame_memory_verdict(&decoder->memory, error);
    if (verdict != WEIR_OK)
        return verdict;
    return rc < 0 && rc != AVERROR_EOF ? note_damage(decoder, rc, error) : WEIR_OK;
}

int weir__decoder_check_frame(const weir_decoder *decoder, weir_error *error)
{
    const AVFrame *frame = decoder->frame;
    if (decoder->media != AVMEDIA_TYPE_VIDEO || (int64_t)frame->width * frame->height <= max_pixels_of(decoder))
        return WEIR_OK;
    return fail_picture_size(decoder, frame->width, frame->height, error);
}

int weir__decoder_receive(weir_decoder *decoder, weir_error *error)
{
    for (;;) {
        weir__ffmpeg_log_step();
        int64_t start_ns = weir_clock_ns();
        int rc = avcodec_receive_frame(decoder->codec, decoder->frame);
        decoder->cost.decode_ns += weir_clock_ns() - start_ns;
        int verdict = weir__frame_memory_verdict(&decoder->memory, error);
        if (verdict != WEIR_OK)
            return verdict;
        if (rc == 0 && decoder->on_frame)
            decoder->on_frame(decoder->self);
        if (rc == 0)
            return weir__decoder_check_frame(decoder, error);
        if (rc == AVERROR_EOF || (rc == AVERROR(EAGAIN) && decoder->draining))
            return WEIR_EOF;
        if (rc == AVERROR(EAGAIN))
            return WEIR_MORE;
        rc = note_damage(decoder, rc, error);
        if (rc != WEIR_OK)
            return rc;
        if (decoder->draining && ++decoder->num_drain_errors > MAX_DRAIN_ERRORS)
            return WEIR_EOF;
    }
}

int weir__decoder_next(weir_decoder *decoder, weir_error *error)
{
    int rc;
    while ((rc = weir__decoder_receive(decoder, error)) == WEIR_MORE) {
        rc = weir__decoder_read(decoder, error);
        if (rc == WEIR_OK || rc == WEIR_EOF)
            rc = weir__decoder_send(decoder, rc == WEIR_OK ? decoder->packet : NULL, error);
        av_packet_unref(decoder->packet);
        if (rc != WEIR_OK)
            return rc;
    }
    return rc;
}

void weir__decoder_flush(weir_decoder *decoder)
{
    avcodec_flush_buffers(decoder->codec);
    decoder->draining = false;
    decoder->num_drain_errors = 0;
}

/* The stream that the container has an index of. Matroska's is one of the video: FFmpeg would read all of the file
   before the place to find it by the sound. */
static const AVStream *indexed_stream(const weir_decoder *decoder)
{
    const AVFormatContext *format = decoder->format;
    if (decoder->media != AVMEDIA_TYPE_AUDIO || !container_is(format, "matroska"))
        return decoder->stream;
    for (unsigned i = 0; i < format->nb_streams; i++) {
        const AVStream *stream = format->streams[i];
        if (stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO && !is_cover(stream))
            return stream;
    }
    return decoder->stream;
}

bool weir__decoder_seek(weir_decoder *decoder, int64_t time)
{
    const AVStream *stream = indexed_stream(decoder);
    int64_t there = av_rescale_q_rnd(time, decoder->stream->time_base, stream->time_base, AV_ROUND_DOWN);
    av_packet_free(&decoder->first);
    decoder->num_packets = 0;
    return av_seek_frame(decoder->format, stream->index, there, AVSEEK_FLAG_BACKWARD) >= 0;
}

int weir__decoder_restart(weir_decoder *decoder, weir_error *error)
{
    const AVCodec *codec = decoder->codec->codec;
    free_codec(decoder);
    decoder->draining = false;
    decoder->num_drain_errors = 0;
    return open_codec(decoder, codec, error);
}

int weir__decoder_use_threads(weir_decoder *decoder, bool is_wanted, weir_error *error)
{
    bool was_threaded = decoder->is_threaded;
    decoder->is_threaded = is_wanted && decoder->config->threads > 1;
    return decoder->is_threaded == was_threaded ? WEIR_OK : weir__decoder_restart(decoder, error);
}

uint64_t weir__decoder_thread_trouble(const weir_decoder *decoder)
{
    return decoder->is_threaded ? atomic_load(&decoder->watch.num_trouble) : 0;
}

bool weir__decoder_has_dts(const weir_decoder *decoder)
{
    enum AVCodecID codec = decoder->stream->codecpar->codec_id;
    bool reorders = codec == AV_CODEC_ID_H264 || codec == AV_CODEC_ID_HEVC;
    return !(reorders && container_is(decoder->format, "matroska"));
}

uint64_t weir__decoder_count_frames(const weir_decoder *decoder)
{
    AVStream *stream = decoder->stream;
    int num_entries = container_is(decoder->format, "mp4") ? avformat_index_get_entries_count(stream) : 0;
    uint64_t num_frames = 0;
    if (stream->nb_frames <= 0)
        return 0;
    for (int i = 0; i < num_entries; i++)
        num_frames += !(avformat_index_get_entry(stream, i)->flags & AVINDEX_DISCARD_FRAME);
    return num_frames > 0 ? num_frames : (uint64_t)stream->nb_frames;
}

uint64_t weir__decoder_count_listed(const weir_decoder *decoder)
{
    AVStream *stream = decoder->stream;
    int64_t num_entries = container_is(decoder->format, "mp4") ? avformat_index_get_entries_count(stream) : 0;
    return num_entries > 0 && num_entries == stream->nb_frames ? (uint64_t)num_entries : 0;
}

uint64_t weir__decoder_estimate_frames(const weir_decoder *decoder)
{
    const AVStream *stream = decoder->stream;
    uint64_t num_frames = weir__decoder_count_frames(decoder);
    if (num_frames > 0)
        return num_frames;

    AVRational rate = stream->avg_frame_rate.num > 0 ? stream->avg_frame_rate : stream->r_frame_rate;
    int64_t duration = stream->duration;
    AVRational time_base = stream->time_base;
    if (duration <= 0 || duration == AV_NOPTS_VALUE) {
        duration = decoder->format->duration;
        time_base = AV_TIME_BASE_Q;
    }
    if (duration <= 0 || duration == AV_NOPTS_VALUE || rate.num <= 0 || rate.den <= 0)
        return 0;
    int64_t frames = av_rescale_q(duration, time_base, av_inv_q(rate));
    return frames > 0 ? (uint64_t)frames + 1 : 0;
}
