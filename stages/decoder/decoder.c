/*
 * Demux and decode. States of an open file: reading packets → draining (all packets are sent, or no more can be read) →
 * end. Of all damage only a read error changes the state: it ends the reading.
 */
#include "stages/decoder/decoder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/clock.h>

#include "stages/decoder/codec_setup.h"
#include "stages/decoder/stream_choice.h"
#include "stages/decoder/stream_facts.h"
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

static int open_decoder_input(weir_decoder *decoder, const char *path, weir_error *error)
{
    AVIOInterruptCB asker = { .callback = interrupt_decoder, .opaque = decoder };
    weir__ffmpeg_log_step();
    int rc = weir__input_open(&decoder->input, path, asker, &decoder->format, error);
    decoder->is_still = rc == WEIR_OK && !decoder->input.file.is_pipe && weir__container_is_still(decoder->format);
    return rc;
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

int weir__decoder_fail_empty(const weir_decoder *decoder, const char *empty, weir_error *error)
{
    const weir_ffmpeg_log *log = weir__ffmpeg_log_current();
    char what[96];
    if (log && log->too_wide > 0)
        return weir__codec_fail_size(decoder->config, log->too_wide, log->too_high, error);
    if (!decoder->first_averror)
        return weir_error_set(error, WEIR_EDATA, AVERROR_EOF, "%s", empty);
    snprintf(what, sizeof what, "nothing could be decoded, %" PRIu64 " damaged packet(s)", decoder->num_errors);
    return weir__ffmpeg_error_because(error, decoder->first_averror, what, decoder->first_reason);
}

static int open_codec(weir_decoder *decoder, const AVCodec *codec, weir_error *error)
{
    const weir_codec_setup setup = { decoder->config, &decoder->memory, decoder->stream };
    decoder->codec = avcodec_alloc_context3(codec);
    if (!decoder->codec)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int rc = weir__codec_set_up(&setup, decoder->codec, decoder->is_threaded ? decoder->config->threads : 1, error);
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
    const weir_codec_setup setup = { decoder->config, &decoder->memory, decoder->stream };
    AVCodecContext *context = avcodec_alloc_context3(codec);
    if (!context) {
        weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
        return NULL;
    }
    int rc = weir__codec_set_up(&setup, context, 1, error);
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
    if (!weir__container_is(decoder->format, "matroska") || stream->codecpar->codec_id == AV_CODEC_ID_HEVC)
        return true; /* HEVC's are missing, which is handled where they are used */
    if (read_packet(decoder) < 0)
        return true; /* the failure is reported when reading */
    return weir__decoder_unread(decoder, NULL) == WEIR_OK && stream->start_time != AV_NOPTS_VALUE;
}

static int choose_stream(weir_decoder *decoder, const AVCodec **codec, weir_error *error)
{
    int index = weir__stream_choose(decoder->format, decoder->media, decoder->stream_number, codec, error);
    if (index < 0)
        return index;
    decoder->stream = decoder->format->streams[index];
    return WEIR_OK;
}

/* Opens the container and chooses the stream. */
static int open_stream(weir_decoder *decoder, const char *path, const AVCodec **codec, weir_error *error)
{
    int rc = open_decoder_input(decoder, path, error);
    if (rc == WEIR_OK && weir__container_describes(decoder->format, decoder->media)) {
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
        rc = weir__codec_check_size(decoder->config, &decoder->memory, decoder->stream->codecpar, error);
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
    return weir__codec_fail_size(decoder->config, frame->width, frame->height, error);
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

bool weir__decoder_seek(weir_decoder *decoder, int64_t time)
{
    const AVStream *stream = weir__stream_with_index(decoder->format, decoder->stream);
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
