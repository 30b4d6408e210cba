/* How the codec of a stream is set up: limits of pixels and of memory, shortcuts, threads. */
#include "stages/decoder/codec_setup.h"

#include <inttypes.h>

#include "stages/ffmpeg/ffmpeg_log.h"

int weir__codec_fail_size(const weir_decoder_config *config, int width, int height, weir_error *error)
{
    return weir_error_set(error, WEIR_ELIMIT, 0,
                          "pictures of %d×%d are over the limit of %" PRIu64 " pixels: raise max_pixels", width,
                          height, config->max_pixels);
}

int weir__codec_check_size(const weir_decoder_config *config, const weir_frame_memory *memory,
                           const AVCodecParameters *parameters, weir_error *error)
{
    if (parameters->codec_type != AVMEDIA_TYPE_VIDEO)
        return WEIR_OK;
    if ((int64_t)parameters->width * parameters->height > (int64_t)config->max_pixels)
        return weir__codec_fail_size(config, parameters->width, parameters->height, error);
    return weir__frame_memory_check(memory, parameters, error);
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
static int64_t decoder_limit_pixels(const weir_codec_setup *setup, const AVCodec *codec)
{
    enum { MAX_SIDE = 1 << 16 };
    const AVCodecParameters *parameters = setup->stream->codecpar;
    int64_t max_pixels = (int64_t)setup->config->max_pixels;
    if (parameters->width <= 0)
        max_pixels = FFMAX(2 * max_pixels, FFMIN(with_alignment(max_pixels, 1), MAX_SIDE * INT64_C(128)));
    if (!(codec->capabilities & AV_CODEC_CAP_DR1))
        max_pixels = FFMIN(max_pixels, weir__frame_memory_max_pixels(setup->memory, codec->id));
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
int weir__codec_set_up(const weir_codec_setup *setup, AVCodecContext *context, unsigned num_threads,
                       weir_error *error)
{
    int rc = avcodec_parameters_to_context(context, setup->stream->codecpar);
    if (rc < 0)
        return weir__ffmpeg_error(error, rc, "cannot use the stream's parameters");

    context->pkt_timebase = setup->stream->time_base;
    context->thread_count = (int)num_threads;
    context->thread_type = FF_THREAD_FRAME | FF_THREAD_SLICE;
    context->max_pixels = decoder_limit_pixels(setup, context->codec);
    set_shortcuts(context, setup->config);
    if (weir__frame_memory_attach(setup->memory, context) != WEIR_OK)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    return WEIR_OK;
}
