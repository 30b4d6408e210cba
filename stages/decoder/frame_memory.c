/*
 * Each frame's buffer is allocated by AVCodecContext.get_buffer2. Its size is stored in AVFrame.opaque_ref, which all
 * references to the frame share, so it is subtracted when the last reference is freed. Besides its pixels a frame needs
 * memory for the codec's data per block (motion vectors, block types).
 */
#include "stages/decoder/frame_memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <libavutil/imgutils.h>
#include <libavutil/samplefmt.h>

/* The memory of all decoders in the process. */
static atomic_uint_fast64_t all_bytes;

/* The memory of a frame. */
typedef struct frame_cost {
    uint64_t bytes;
    AVBufferRef *account;
} frame_cost;

typedef atomic_uint_fast64_t account;

/* ---- estimate --- ---------------------------------------------------------------------------------------------- */

static bool is_predicted(enum AVCodecID codec)
{
    const AVCodecDescriptor *descriptor = avcodec_descriptor_get(codec);
    return descriptor && !(descriptor->props & AV_CODEC_PROP_INTRA_ONLY);
}

/* The maximum number of reference frames of an H.264 level, from its limit in macroblocks (table A-1). */
static unsigned h264_frames(int level, int64_t pixels)
{
    static const struct {
        int level, max_blocks;
    } rows[] = {
        { 10, 396 },   { 11, 900 },   { 12, 2376 },  { 20, 2376 },   { 21, 4752 },   { 30, 8100 },   { 31, 18000 },
        { 32, 20480 }, { 40, 32768 }, { 42, 34816 }, { 50, 110400 }, { 52, 184320 }, { 62, 696320 },
    };
    int64_t blocks = pixels / 256 + 1;
    int max_blocks = 32768;
    for (size_t i = sizeof rows / sizeof rows[0]; i > 0 && level > 0 && level <= rows[i - 1].level; i--)
        max_blocks = rows[i - 1].max_blocks;
    int64_t frames = max_blocks / blocks;
    return frames < 1 ? 1 : frames > 16 ? 16 : (unsigned)frames;
}

/* The minimum number of frames in memory, the current one included. */
static unsigned num_frames_of(enum AVCodecID codec, int level, int64_t pixels)
{
    switch (codec) {
    case AV_CODEC_ID_H264: return h264_frames(level, pixels) + 1;
    case AV_CODEC_ID_HEVC: return 6 + 1;
    case AV_CODEC_ID_AV1: return 8;
    case AV_CODEC_ID_VP9: return 4;
    default: return is_predicted(codec) ? 3 : 1;
    }
}

/* The bytes of a pixel of a picture; an unknown format counts as 4:2:0, with 8 bits or, depending on the profile,
   more. */
static double bytes_of_pixel(const AVCodecParameters *parameters)
{
    enum { H264_HIGH_10 = 110, HEVC_MAIN_10 = 2, VP9_10_BIT = 2, INTRA_FLAG = 1 << 11 };
    int profile = parameters->profile >= 0 ? parameters->profile & ~INTRA_FLAG : 0;
    bool is_deep = (parameters->codec_id == AV_CODEC_ID_H264 && profile >= H264_HIGH_10) ||
                   (parameters->codec_id == AV_CODEC_ID_HEVC && profile >= HEVC_MAIN_10) ||
                   (parameters->codec_id == AV_CODEC_ID_VP9 && profile >= VP9_10_BIT);
    int known_bytes = av_image_get_buffer_size((enum AVPixelFormat)parameters->format, 64, 64, 1);
    return known_bytes > 0 ? known_bytes / (64.0 * 64.0) : is_deep ? 3 : 1.5;
}

/* The codec's bytes per pixel besides the frame; measured on pictures of 4096×4096 and 8192×8192. */
static double notes_of_pixel(enum AVCodecID codec)
{
    switch (codec) {
    case AV_CODEC_ID_JPEG2000: return 15; /* coefficients */
    case AV_CODEC_ID_EXR: return 12;
    default: return is_predicted(codec) ? 0.75 : 0; /* H.264 needs 0.61, HEVC 0.75 */
    }
}

static double megabytes(double bytes)
{
    return bytes / 1e6;
}

static uint64_t limit_of(const weir_frame_memory *memory)
{
    return memory->config->max_decoder_bytes;
}

int weir__frame_memory_check(const weir_frame_memory *memory, const AVCodecParameters *parameters, weir_error *error)
{
    double pixels = (double)parameters->width * parameters->height;
    unsigned num_frames = num_frames_of(parameters->codec_id, parameters->level, (int64_t)pixels);
    double bytes = num_frames * pixels * (bytes_of_pixel(parameters) + notes_of_pixel(parameters->codec_id));
    if (bytes <= (double)limit_of(memory))
        return WEIR_OK;
    return weir_error_set(
        error, WEIR_ELIMIT, 0,
        "decoding %s of %d×%d needs about %.0f MB (%u frames at once), over the limit of %.0f MB: raise "
        "max_decoder_bytes",
        avcodec_get_name(parameters->codec_id), parameters->width, parameters->height, megabytes(bytes), num_frames,
        megabytes((double)limit_of(memory)));
}

int64_t weir__frame_memory_max_pixels(const weir_frame_memory *memory, enum AVCodecID codec)
{
    enum { DEEP_PIXEL_BYTES = 3 };
    uint64_t pixels = limit_of(memory) / (num_frames_of(codec, 0, 1 << 20) * DEEP_PIXEL_BYTES);
    return pixels < INT_MAX ? (int64_t)pixels : INT_MAX;
}

/* ---- accounting --- ------------------------------------------------------------------------------------------ */

static void give_back(void *opaque, uint8_t *data)
{
    (void)opaque;
    frame_cost *cost = (frame_cost *)data;
    atomic_fetch_sub_explicit((account *)cost->account->data, cost->bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&all_bytes, cost->bytes, memory_order_relaxed);
    av_buffer_unref(&cost->account);
    free(cost);
}

/* The size that the default allocator will use. */
static uint64_t bytes_of_frame(AVCodecContext *codec, const AVFrame *frame)
{
    enum { ALIGNMENT = 64 };
    if (codec->codec_type == AVMEDIA_TYPE_AUDIO)
        return (uint64_t)frame->nb_samples * 64;
    int width = frame->width;
    int height = frame->height;
    avcodec_align_dimensions(codec, &width, &height);
    int bytes = av_image_get_buffer_size((enum AVPixelFormat)frame->format, width, height, ALIGNMENT);
    double notes = notes_of_pixel(codec->codec_id) * width * height;
    return (bytes > 0 ? (uint64_t)bytes : 0) + (uint64_t)notes;
}

/* Adds the bytes to the account, or records that they exceed a limit. */
static bool take_bytes(weir_frame_memory *memory, uint64_t bytes)
{
    account *own = (account *)memory->account->data;
    uint64_t own_bytes = atomic_fetch_add_explicit(own, bytes, memory_order_relaxed) + bytes;
    uint64_t all = atomic_fetch_add_explicit(&all_bytes, bytes, memory_order_relaxed) + bytes;
    bool is_within = own_bytes <= limit_of(memory);
    if (is_within && all <= memory->config->max_all_decoder_bytes)
        return true;
    memory->is_over_all = is_within;
    memory->bytes_wanted = memory->is_over_all ? all : own_bytes;
    atomic_fetch_sub_explicit(own, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&all_bytes, bytes, memory_order_relaxed);
    return false;
}

/* Frames that are only kept for later give way. */
static bool take_bytes_or_kept(weir_frame_memory *memory, uint64_t bytes)
{
    if (take_bytes(memory, bytes))
        return true;
    if (!memory->give_up)
        return false;
    memory->give_up(memory->keeper);
    memory->bytes_wanted = 0;
    return take_bytes(memory, bytes);
}

static int get_buffer(AVCodecContext *codec, AVFrame *frame, int flags)
{
    weir_frame_memory *memory = codec->opaque;
    uint64_t bytes = bytes_of_frame(codec, frame);
    if (!take_bytes_or_kept(memory, bytes))
        return AVERROR(ENOMEM);
    frame_cost *cost = malloc(sizeof *cost);
    AVBufferRef *held = av_buffer_ref(memory->account);
    AVBufferRef *noted = cost && held ? av_buffer_create((uint8_t *)cost, sizeof *cost, give_back, NULL, 0) : NULL;
    if (!noted) {
        atomic_fetch_sub_explicit((account *)memory->account->data, bytes, memory_order_relaxed);
        atomic_fetch_sub_explicit(&all_bytes, bytes, memory_order_relaxed);
        av_buffer_unref(&held);
        free(cost);
        memory->is_out = true;
        return AVERROR(ENOMEM);
    }
    *cost = (frame_cost){ .bytes = bytes, .account = held };
    int rc = avcodec_default_get_buffer2(codec, frame, flags);
    if (rc == AVERROR(ENOMEM))
        memory->is_out = true;
    if (rc < 0)
        av_buffer_unref(&noted);
    else
        frame->opaque_ref = noted;
    return rc;
}

int weir__frame_memory_attach(weir_frame_memory *memory, AVCodecContext *codec)
{
    memory->bytes_wanted = 0;
    memory->is_out = false;
    if (!memory->account)
        memory->account = av_buffer_allocz(sizeof(account));
    if (!memory->account)
        return WEIR_ENOMEM;
    codec->opaque = memory;
    codec->get_buffer2 = get_buffer;
#if defined FF_API_THREAD_SAFE_CALLBACKS && FF_API_THREAD_SAFE_CALLBACKS
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
        codec->thread_safe_callbacks = 1; /* FFmpeg 6 takes them all to be */
    _Pragma("GCC diagnostic pop")
#endif
        return WEIR_OK;
}

uint64_t weir__frame_memory_bytes(const weir_frame_memory *memory)
{
    return memory->account ? atomic_load_explicit((account *)memory->account->data, memory_order_relaxed) : 0;
}

int weir__frame_memory_verdict(const weir_frame_memory *memory, weir_error *error)
{
    if (memory->is_out)
        return weir_error_set(error, WEIR_ENOMEM, AVERROR(ENOMEM), "out of memory for a frame");
    if (memory->bytes_wanted == 0)
        return WEIR_OK;
    double max_bytes = (double)(memory->is_over_all ? memory->config->max_all_decoder_bytes : limit_of(memory));
    return weir_error_set(error, WEIR_ELIMIT, 0, "%s need %.0f MB, over the limit of %.0f MB: raise %s",
                          memory->is_over_all ? "the frames of all decoders together" : "the decoder's frames",
                          megabytes((double)memory->bytes_wanted), megabytes(max_bytes),
                          memory->is_over_all ? "max_all_decoder_bytes, or lower the concurrency"
                                              : "max_decoder_bytes");
}

void weir__frame_memory_free(weir_frame_memory *memory)
{
    av_buffer_unref(&memory->account);
}
