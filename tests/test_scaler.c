/* The scalers, picture by picture: what they have in common, and how close each is to the same arithmetic without
   rounding in between. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/test_case.h"
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include "stages/memory/pixel_rows.h"
#include "stages/picture/filter_graph.h"
#include "stages/scale/rotate.h"
#include "stages/scale/scale_kernels.h"
#include "stages/scale/scaler.h"

/* ---- pictures ----------------------------------------------------------------------------------------------- */

/* Smooth colours, some edges and a little noise: as a film has them. */
static uint8_t shade(int x, int y, int channel)
{
    double wave = sin(x * (0.043 + 0.011 * channel)) * cos(y * (0.037 + 0.007 * channel));
    int edge = (x / 37 + y / 29 + channel) % 3 * 22;
    int noise = (x * 7919 + y * 104729 + channel * 31) % 13;
    int value = (int)(100 + 70 * wave) + edge + noise;
    return (uint8_t)FFMAX(0, FFMIN(255, value));
}

static AVFrame *new_frame(int format, int width, int height)
{
    AVFrame *frame = av_frame_alloc();
    assert_non_null(frame);
    frame->format = format;
    frame->width = width;
    frame->height = height;
    assert_int_equal(av_frame_get_buffer(frame, 0), 0);
    return frame;
}

/* The picture in that format, by swscale with its most accurate settings. */
static AVFrame *make_picture(int format, int width, int height)
{
    AVFrame *rgb = new_frame(AV_PIX_FMT_RGB24, width, height);
    AVFrame *frame = new_frame(format, width, height);
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width * 3; x++)
            rgb->data[0][y * rgb->linesize[0] + x] = shade(x / 3, y, x % 3);
    }
    struct SwsContext *sws =
        sws_getContext(width, height, AV_PIX_FMT_RGB24, width, height, format,
                       SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP, NULL, NULL, NULL);
    assert_non_null(sws);
    sws_scale(sws, (const uint8_t *const *)rgb->data, rgb->linesize, 0, height, frame->data, frame->linesize);
    sws_freeContext(sws);
    av_frame_free(&rgb);
    return frame;
}

/* ---- the reference ------------------------------------------------------------------------------------------ */

/* swscale's bicubic, widened for smaller pictures. */
static double kernel(double x)
{
    const double c = 0.6;
    x = fabs(x);
    if (x < 1)
        return ((12 - 6 * c) * x * x * x + (-18 + 6 * c) * x * x + 6) / 6;
    return x < 2 ? (-6 * c * x * x * x + 30 * c * x * x - 48 * c * x + 24 * c) / 6 : 0;
}

/* One sample of a plane, at a place that is counted in samples, as a scaler that makes `per_x` samples one sees it. */
static double sample_at(const AVFrame *in, int component, double x, double y, double per_x, double per_y)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(in->format);
    const AVComponentDescriptor *c = &descriptor->comp[component];
    bool is_chroma = component > 0 && !(descriptor->flags & AV_PIX_FMT_FLAG_RGB);
    int width = AV_CEIL_RSHIFT(in->width, is_chroma ? descriptor->log2_chroma_w : 0);
    int height = AV_CEIL_RSHIFT(in->height, is_chroma ? descriptor->log2_chroma_h : 0);
    double wide_x = FFMAX(per_x, 1);
    double wide_y = FFMAX(per_y, 1);
    double sum = 0;
    double weights = 0;
    for (int row = (int)floor(y - 2 * wide_y); row <= (int)ceil(y + 2 * wide_y); row++) {
        double weight_y = kernel((row - y) / wide_y);
        for (int column = (int)floor(x - 2 * wide_x); weight_y != 0 && column <= (int)ceil(x + 2 * wide_x);
             column++) {
            double weight = weight_y * kernel((column - x) / wide_x);
            const uint8_t *at = in->data[c->plane] + (ptrdiff_t)av_clip(row, 0, height - 1) * in->linesize[c->plane] +
                                av_clip(column, 0, width - 1) * c->step + c->offset;
            sum += weight * (c->depth > 8 ? at[0] | at[1] << 8 : at[0]);
            weights += weight;
        }
    }
    return sum / weights / (1 << (c->depth - 8));
}

static uint8_t round_pixel(double value)
{
    return (uint8_t)lrint(fmax(0, fmin(255, value)));
}

/* A component of the result's pixel at x, y, in the source's own kind of values. */
static double scaled_component(const AVFrame *in, int component, double x, double y, int width, int height)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(in->format);
    bool is_chroma = component > 0 && !(descriptor->flags & AV_PIX_FMT_FLAG_RGB);
    double per_x = (double)in->width / width / (1 << (is_chroma ? descriptor->log2_chroma_w : 0));
    double per_y = (double)in->height / height / (1 << (is_chroma ? descriptor->log2_chroma_h : 0));
    return sample_at(in, component, (x + 0.5) * per_x - 0.5, (y + 0.5) * per_y - 0.5, per_x, per_y);
}

typedef struct colours {
    double kr;
    double kb;
    bool full;
} colours;

static void pixel_of(const AVFrame *in, const colours *how, const double *yuv, uint8_t *rgb)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(in->format);
    double y = how->full ? yuv[0] : (yuv[0] - 16) * 255 / 219;
    if (descriptor->nb_components == 1 || (descriptor->flags & AV_PIX_FMT_FLAG_RGB)) {
        for (int i = 0; i < 3; i++)
            rgb[i] = round_pixel(descriptor->nb_components == 1 ? y : yuv[i]);
        return;
    }
    double u = (yuv[1] - 128) * (how->full ? 1 : 255 / 224.0);
    double v = (yuv[2] - 128) * (how->full ? 1 : 255 / 224.0);
    double red = y + 2 * (1 - how->kr) * v;
    double blue = y + 2 * (1 - how->kb) * u;
    rgb[0] = round_pixel(red);
    rgb[1] = round_pixel((y - how->kr * red - how->kb * blue) / (1 - how->kr - how->kb));
    rgb[2] = round_pixel(blue);
}

static colours colours_of(const AVFrame *in)
{
    bool is_gray = av_pix_fmt_desc_get(in->format)->nb_components == 1;
    colours result = { .kr = 0.299, .kb = 0.114 };
    if (in->colorspace == AVCOL_SPC_BT709)
        result = (colours){ .kr = 0.2126, .kb = 0.0722 };
    result.full = in->color_range == AVCOL_RANGE_JPEG || in->format == AV_PIX_FMT_YUVJ420P ||
                  (is_gray && in->color_range == AVCOL_RANGE_UNSPECIFIED);
    return result;
}

/* The stretched picture in double precision, as RGB. */
static uint8_t *reference(const AVFrame *in, int width, int height)
{
    int num_components = av_pix_fmt_desc_get(in->format)->nb_components;
    uint8_t *rgb = malloc((size_t)width * (size_t)height * 3);
    colours how = colours_of(in);
    assert_non_null(rgb);
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            double yuv[3] = { 0 };
            for (int i = 0; i < num_components; i++)
                yuv[i] = scaled_component(in, i, x, y, width, height);
            pixel_of(in, &how, yuv, rgb + 3 * (y * width + x));
        }
    }
    return rgb;
}

static double psnr(const uint8_t *a, const uint8_t *b, size_t num_bytes)
{
    double squares = 0;
    for (size_t i = 0; i < num_bytes; i++)
        squares += (a[i] - b[i]) * (a[i] - b[i]);
    return squares == 0 ? INFINITY : 10 * log10(255.0 * 255.0 * (double)num_bytes / squares);
}

/* ---- scaling ------------------------------------------------------------------------------------------------ */

/* The picture as configured (width and height, too); *used tells by whom, if it is not NULL. To be freed. */
static uint8_t *scale(const AVFrame *in, const weir_picture_config *config, weir_scaler_kind *used)
{
    weir_error error = { 0 };
    weir_scaler scaler = { 0 };
    size_t size_bytes = weir__scaler_picture_bytes(config->pixel, config->width, config->height);
    uint8_t *out = malloc(size_bytes + WEIR_SCALER_SLACK_BYTES);
    assert_non_null(out);
    memset(out, 0x55, size_bytes + WEIR_SCALER_SLACK_BYTES);
    weir__scaler_set(&scaler, config, (int)config->width, (int)config->height);
    if (weir__scaler_run(&scaler, in, out, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    if (used)
        *used = weir__scaler_last(&scaler).kind;
    weir__scaler_reset(&scaler);
    return out;
}

typedef struct source {
    int format;
    int width;
    int height;
    int colorspace;
    int range;
    bool fast_knows;
} source;

static const source sources[] = {
    { AV_PIX_FMT_YUV420P, 340, 256, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED, true },
    { AV_PIX_FMT_YUV420P, 321, 243, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED, true },
    { AV_PIX_FMT_YUV420P, 320, 180, AVCOL_SPC_BT709, AVCOL_RANGE_MPEG, true },
    { AV_PIX_FMT_YUV420P, 322, 182, AVCOL_SPC_BT709, AVCOL_RANGE_JPEG, true },
    { AV_PIX_FMT_YUVJ420P, 320, 240, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED, true },
    { AV_PIX_FMT_YUV420P10, 317, 179, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED, true },
    { AV_PIX_FMT_YUV422P, 321, 240, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED, true },
    { AV_PIX_FMT_YUV422P10, 320, 240, AVCOL_SPC_BT709, AVCOL_RANGE_MPEG, true },
    { AV_PIX_FMT_YUV444P, 321, 243, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED, true },
    { AV_PIX_FMT_YUV444P10, 320, 240, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED, true },
    { AV_PIX_FMT_GRAY8, 321, 243, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED, true },
    { AV_PIX_FMT_GBRP, 321, 243, AVCOL_SPC_RGB, AVCOL_RANGE_UNSPECIFIED, true },
    { AV_PIX_FMT_RGB24, 320, 240, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED, false },
    { AV_PIX_FMT_NV12, 320, 240, AVCOL_SPC_UNSPECIFIED, AVCOL_RANGE_UNSPECIFIED, false },
};

enum { NUM_SOURCES = sizeof sources / sizeof sources[0] };

static AVFrame *make_source(const source *from)
{
    AVFrame *frame = make_picture(from->format, from->width, from->height);
    frame->colorspace = (enum AVColorSpace)from->colorspace;
    frame->color_range = (enum AVColorRange)from->range;
    return frame;
}

static void assert_faithful(weir_scaler_kind kind, int width, int height, double least_decibel)
{
    for (size_t i = 0; i < NUM_SOURCES; i++) {
        weir_scaler_kind used;
        AVFrame *in = make_source(&sources[i]);
        weir_picture_config config = {
            .width = (uint32_t)width, .height = (uint32_t)height, .resize = WEIR_RESIZE_STRETCH, .scaler = kind
        };
        uint8_t *made = scale(in, &config, &used);
        uint8_t *wanted = reference(in, width, height);
        double decibel = psnr(made, wanted, (size_t)width * (size_t)height * 3);
        if (getenv("VERBOSE"))
            fprintf(stderr, "%d: %s %dx%d: %.1f dB\n", (int)used, av_get_pix_fmt_name(in->format), in->width,
                    in->height, decibel);
        if (sources[i].fast_knows && kind == WEIR_SCALER_FAST)
            assert_int_equal(used, kind);
        if (used == kind && decibel < least_decibel)
            fail_msg("source %zu, %s %dx%d to %dx%d: %.1f dB", i, av_get_pix_fmt_name(in->format), in->width,
                     in->height, width, height, decibel);
        free(made);
        free(wanted);
        av_frame_free(&in);
    }
}

TEST_CASE(fast_is_as_good_as_double_precision)
{
    assert_faithful(WEIR_SCALER_FAST, 128, 96, 50);
    assert_faithful(WEIR_SCALER_FAST, 131, 77, 50);
    assert_faithful(WEIR_SCALER_FAST, 400, 300, 50);
    assert_faithful(WEIR_SCALER_FAST, 11, 5, 50);
}

TEST_CASE(exact_has_the_same_picture)
{
    assert_faithful(WEIR_SCALER_EXACT, 128, 96, 30);
}

/* Cropping keeps the middle of the picture. */
static void assert_crops(weir_scaler_kind kind, weir_pixel pixel, double least_decibel)
{
    AVFrame *in = make_picture(AV_PIX_FMT_YUV420P, 340, 256);
    weir_fit fit = weir__scaler_fit(WEIR_RESIZE_CROP, 340, 256, 96, 96);
    weir_picture_config whole_config = { .width = (uint32_t)fit.width,
                                         .height = (uint32_t)fit.height,
                                         .resize = WEIR_RESIZE_STRETCH,
                                         .pixel = pixel,
                                         .scaler = kind };
    weir_picture_config config = {
        .width = 96, .height = 96, .resize = WEIR_RESIZE_CROP, .pixel = pixel, .scaler = kind
    };
    uint8_t *whole = scale(in, &whole_config, NULL);
    uint8_t *made = scale(in, &config, NULL);
    size_t pixel_bytes = (pixel % 3 == WEIR_PIXEL_RGB24 ? 3 : 1) * weir_pixel_value_bytes(pixel);
    int x = pixel % 3 == WEIR_PIXEL_YUV420P ? -fit.x / 2 * 2 : -fit.x;
    assert_int_equal(fit.height, 96);
    for (size_t row = 0; row < 96; row++) {
        const uint8_t *wanted = whole + (row * (size_t)fit.width + (size_t)x) * pixel_bytes;
        memmove(whole + row * 96 * pixel_bytes, wanted, 96 * pixel_bytes);
    }
    double decibel = psnr(made, whole, 96 * 96 * pixel_bytes);
    if (decibel < least_decibel)
        fail_msg("scaler %d, pixel %d: %.1f dB", (int)kind, (int)pixel, decibel);
    free(whole);
    free(made);
    av_frame_free(&in);
}

TEST_CASE(cropped_pictures_are_the_middle_of_the_whole)
{
    for (int pixel = WEIR_PIXEL_RGB24; pixel <= WEIR_PIXEL_YUV420P10; pixel++) {
        assert_crops(WEIR_SCALER_EXACT, (weir_pixel)pixel, INFINITY);
        assert_crops(WEIR_SCALER_FAST, (weir_pixel)pixel, INFINITY);
    }
}

/* Borders of the colour's own black, nothing of the slot's old bytes left, nothing written behind it. */
static uint16_t stored_value(const uint8_t *samples, size_t i, size_t value_bytes)
{
    uint16_t wide;
    memcpy(&wide, samples + 2 * i, sizeof wide * (value_bytes - 1));
    return value_bytes == 1 ? samples[i] : wide;
}

static void assert_bordered(weir_scaler_kind kind, weir_pixel pixel, int format, uint16_t black)
{
    enum { SIDE = 50 };
    AVFrame *in = make_picture(format, 340, 200);
    weir_picture_config config = { .width = SIDE, .height = SIDE, .pixel = pixel, .scaler = kind };
    weir_fit fit = weir__scaler_fit(WEIR_RESIZE_PAD, 340, 200, SIDE, SIDE);
    uint8_t *made = scale(in, &config, NULL);
    size_t value_bytes = weir_pixel_value_bytes(pixel), row_values = pixel % 3 == WEIR_PIXEL_RGB24 ? SIDE * 3 : SIDE;
    for (size_t i = 0; i < (size_t)fit.y / 2 * 2 * row_values; i++)
        assert_int_equal(stored_value(made, i, value_bytes), black);
    if (pixel % 3 == WEIR_PIXEL_YUV420P) {
        const uint8_t *u = made + SIDE * SIDE * value_bytes;
        const uint8_t *v = u + SIDE * SIDE / 4 * value_bytes;
        int middle = (weir_pixel_max_value(pixel) + 1) / 2;
        for (size_t i = 0; i < (size_t)(fit.y / 2 * SIDE / 2); i++)
            assert_true(stored_value(u, i, value_bytes) == middle && stored_value(v, i, value_bytes) == middle);
    }
    free(made);
    av_frame_free(&in);
}

TEST_CASE(borders_are_black_in_every_format)
{
    for (int kind = WEIR_SCALER_DEFAULT; kind <= WEIR_SCALER_FAST; kind++) {
        assert_bordered((weir_scaler_kind)kind, WEIR_PIXEL_RGB24, AV_PIX_FMT_YUV420P, 0);
        assert_bordered((weir_scaler_kind)kind, WEIR_PIXEL_GRAY8, AV_PIX_FMT_YUV420P, 0);
        assert_bordered((weir_scaler_kind)kind, WEIR_PIXEL_YUV420P, AV_PIX_FMT_YUV420P, 16);
        assert_bordered((weir_scaler_kind)kind, WEIR_PIXEL_YUV420P, AV_PIX_FMT_YUVJ420P, 0);
        assert_bordered((weir_scaler_kind)kind, WEIR_PIXEL_RGB48, AV_PIX_FMT_YUV420P10, 0);
        assert_bordered((weir_scaler_kind)kind, WEIR_PIXEL_GRAY16, AV_PIX_FMT_YUV420P10, 0);
        assert_bordered((weir_scaler_kind)kind, WEIR_PIXEL_YUV420P10, AV_PIX_FMT_YUV420P10, 64);
        assert_bordered((weir_scaler_kind)kind, WEIR_PIXEL_YUV420P10, AV_PIX_FMT_YUVJ420P, 0);
    }
}

static void assert_luma_as_swscale(const source *from, weir_scaler_kind kind, weir_pixel pixel)
{
    AVFrame *in = make_source(from);
    weir_picture_config config = { .width = 100, .height = 76, .resize = WEIR_RESIZE_STRETCH, .pixel = pixel };
    size_t size_bytes = weir__scaler_picture_bytes(config.pixel, config.width, config.height);
    config.scaler = kind;
    uint8_t *made = scale(in, &config, NULL);
    config.scaler = WEIR_SCALER_EXACT;
    uint8_t *wanted = scale(in, &config, NULL);
    double decibel = psnr(made, wanted, size_bytes);
    if (decibel < 45)
        fail_msg("%s by scaler %d to pixel %d: %.1f dB", av_get_pix_fmt_name(in->format), (int)kind, (int)pixel,
                 decibel);
    free(made);
    free(wanted);
    av_frame_free(&in);
}

/* Gray is luma of full range; YUV planes are the source's own values, smaller. */
TEST_CASE(luma_is_the_same_as_swscales)
{
    for (size_t i = 0; i < NUM_SOURCES; i++) {
        for (int pixel = WEIR_PIXEL_GRAY8; pixel <= WEIR_PIXEL_YUV420P; pixel++) {
            assert_luma_as_swscale(&sources[i], WEIR_SCALER_FAST, (weir_pixel)pixel);
        }
    }
}

/* Slots keep nothing of the previous picture: an unaligned picture gives the same result as an aligned one. */
TEST_CASE(unaligned_pictures_are_scaled_alike)
{
    AVFrame *in = make_picture(AV_PIX_FMT_YUV420P, 340, 256);
    AVFrame *shifted = new_frame(AV_PIX_FMT_YUV420P, 340 + 32, 256);
    shifted->width = 340;
    for (int i = 0; i < 3; i++) {
        shifted->data[i] += i ? 5 : 10;
        av_image_copy_plane(shifted->data[i], shifted->linesize[i], in->data[i], in->linesize[i], i ? 170 : 340,
                            i ? 128 : 256);
    }
    for (int kind = WEIR_SCALER_EXACT; kind <= WEIR_SCALER_FAST; kind++) {
        weir_picture_config config = { .width = 128, .height = 96, .scaler = (weir_scaler_kind)kind };
        uint8_t *made = scale(shifted, &config, NULL);
        uint8_t *wanted = scale(in, &config, NULL);
        assert_memory_equal(made, wanted, 128 * 96 * 3);
        free(made);
        free(wanted);
    }
    av_frame_free(&in);
    av_frame_free(&shifted);
}

/* ---- what is read ------------------------------------------------------------------------------------------- */

static void unmap(void *size_bytes, uint8_t *block)
{
    munmap(block, (size_t)(uintptr_t)size_bytes);
}

/* The picture without bytes before its planes, and after them only the padding of FFmpeg buffers. */
static AVFrame *fence(const AVFrame *in, bool before)
{
    enum { BEHIND = 64 };
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(in->format);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    AVFrame *fenced = av_frame_alloc();
    assert_non_null(fenced);
    assert_int_equal(av_frame_copy_props(fenced, in), 0);
    fenced->format = in->format;
    fenced->width = in->width;
    fenced->height = in->height;
    for (int i = 0; i < 3 && in->data[i]; i++) {
        int height = i ? AV_CEIL_RSHIFT(in->height, descriptor->log2_chroma_h) : in->height;
        fenced->linesize[i] = FFALIGN(in->linesize[i], 64);
        size_t size = (size_t)fenced->linesize[i] * (size_t)height;
        size_t room = FFALIGN(size + BEHIND, page);
        uint8_t *block = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(block, MAP_FAILED);
        assert_int_equal(mprotect(block + page, room, PROT_READ | PROT_WRITE), 0);
        fenced->buf[i] = av_buffer_create(block, room + 2 * page, unmap, (void *)(uintptr_t)(room + 2 * page), 0);
        assert_non_null(fenced->buf[i]);
        fenced->data[i] = block + page + (before ? 0 : room - BEHIND - size);
        av_image_copy_plane(fenced->data[i], fenced->linesize[i], in->data[i], in->linesize[i], in->linesize[i],
                            height);
    }
    return fenced;
}

/* Does it read outside of the picture, then this test ends here. */
static void assert_stays_inside(const AVFrame *in, weir_scaler_kind kind, weir_resize resize, int width, int height)
{
    weir_picture_config config = {
        .width = (uint32_t)width, .height = (uint32_t)height, .resize = resize, .scaler = kind
    };
    uint8_t *wanted = scale(in, &config, NULL);
    for (int before = 0; before < 2; before++) {
        AVFrame *fenced = fence(in, before);
        uint8_t *made = scale(fenced, &config, NULL);
        assert_memory_equal(made, wanted, (size_t)width * (size_t)height * 3);
        free(made);
        av_frame_free(&fenced);
    }
    free(wanted);
}

TEST_CASE(nothing_is_read_outside_of_the_picture)
{
    static const weir_resize resizes[] = { WEIR_RESIZE_STRETCH, WEIR_RESIZE_PAD, WEIR_RESIZE_CROP };
    for (size_t i = 0; i < NUM_SOURCES; i++) {
        AVFrame *in = make_source(&sources[i]);
        for (int kind = WEIR_SCALER_DEFAULT; kind <= WEIR_SCALER_FAST; kind++) {
            for (size_t k = 0; k < 3; k++) {
                assert_stays_inside(in, (weir_scaler_kind)kind, resizes[k], 128, 128);
                assert_stays_inside(in, (weir_scaler_kind)kind, resizes[k], 400, 398);
            }
        }
        av_frame_free(&in);
    }
}

/* ---- kernels ------------------------------------------------------------------------------------------------- */

enum { MAX_WIDTH = 200, ROWS = 24 };

static int random_from(int first, int last)
{
    return first + rand() % (last - first + 1);
}

static void assert_same_sums(const weir_kernels *kernels, int width)
{
    static uint16_t samples[ROWS][MAX_WIDTH];
    const void *rows[ROWS];
    uint32_t weights[ROWS];
    int16_t wanted[MAX_WIDTH];
    int16_t made[MAX_WIDTH];
    for (int t = 0; t < ROWS; t++) {
        unsigned weight = (unsigned)random_from(1, 2500);
        rows[t] = samples[t];
        weights[t] = weight << 16 | weight;
        for (int x = 0; x < MAX_WIDTH; x++)
            samples[t][x] = (uint16_t)(rand() % 3 ? rand() : -(rand() % 2));
    }
    weir_row_sum sum = { rows, weights, random_from(0, ROWS), ROWS };
    weir__kernels_c.sum_rows_8(wanted, &sum, width);
    kernels->sum_rows_8(made, &sum, width);
    assert_memory_equal(made, wanted, (size_t)width * sizeof *made);
    for (int depth = 9; depth <= 16; depth++) {
        weir__kernels_c.sum_rows_16(wanted, &sum, width, depth);
        kernels->sum_rows_16(made, &sum, width, depth);
        assert_memory_equal(made, wanted, (size_t)width * sizeof *made);
    }
}

static void assert_same_columns(const weir_kernels *kernels, int width, int num_taps)
{
    int16_t in[MAX_WIDTH + 64];
    static int16_t weights[MAX_WIDTH * 64];
    int32_t starts[MAX_WIDTH];
    int16_t wanted[MAX_WIDTH];
    int16_t made[MAX_WIDTH];
    for (int x = 0; x < MAX_WIDTH + 64; x++)
        in[x] = (int16_t)random_from(-20000, 20000);
    for (int i = 0; i < width * num_taps; i++)
        weights[i] = (int16_t)random_from(-1000, 2000);
    for (int x = 0; x < width; x++)
        starts[x] = random_from(0, MAX_WIDTH - 1);
    weir__kernels_c.sum_columns(wanted, in, starts, weights, num_taps, width);
    kernels->sum_columns(made, in, starts, weights, num_taps, width);
    assert_memory_equal(made, wanted, (size_t)width * sizeof *made);
}

static weir_factor random_factor(void)
{
    return (weir_factor){ (int16_t)random_from(-2, 2), (int16_t)random_from(-16384, 16384) };
}

static void assert_same_colours(const weir_kernels *kernels, int width)
{
    static int16_t samples[3][MAX_WIDTH];
    static uint8_t wanted[3][MAX_WIDTH];
    static uint8_t made[3][MAX_WIDTH];
    const int16_t *yuv[3] = { samples[0], samples[1], samples[2] };
    weir_colour_matrix matrix = { (int16_t)random_from(0, 1024),
                                  random_factor(),
                                  random_factor(),
                                  random_factor(),
                                  random_factor(),
                                  random_factor() };
    for (int i = 0; i < 3; i++) {
        for (int x = 0; x < width; x++)
            samples[i][x] = (int16_t)random_from(-9000, 24000);
    }
    weir__kernels_c.mix((uint8_t *[3]){ wanted[0], wanted[1], wanted[2] }, yuv, &matrix, width);
    kernels->mix((uint8_t *[3]){ made[0], made[1], made[2] }, yuv, &matrix, width);
    assert_memory_equal(made, wanted, sizeof made);
    weir__kernels_c.round(wanted[0], yuv[0], matrix.luma_offset, matrix.luma, width);
    kernels->round(made[0], yuv[0], matrix.luma_offset, matrix.luma, width);
    assert_memory_equal(made, wanted, sizeof made);
}

TEST_CASE(kernels_give_the_same_on_every_cpu)
{
    const weir_kernels *kernels = weir__kernels_best();
    srand(1);
    if (kernels == &weir__kernels_c)
        skip();
    for (int width = 1; width <= MAX_WIDTH; width++) {
        assert_same_sums(kernels, width);
        assert_same_columns(kernels, width, 8);
        assert_same_columns(kernels, width, 16);
        assert_same_columns(kernels, width, 64);
        assert_same_colours(kernels, width);
    }
}

TEST_CASE(rows_are_joined_and_split)
{
    uint8_t planes[3][MAX_WIDTH];
    uint8_t back[3][MAX_WIDTH];
    uint8_t packed[3 * MAX_WIDTH + 1];
    for (int i = 0; i < 3 * MAX_WIDTH; i++)
        planes[i / MAX_WIDTH][i % MAX_WIDTH] = (uint8_t)(i * 37);
    for (int width = 0; width <= MAX_WIDTH / 2; width++) { /* of two bytes */
        weir__rows_join(planes[0], planes[1], planes[2], packed, width, 2);
        for (int i = 0; i < 3 * width; i++)
            assert_memory_equal(packed + 2 * i, planes[i % 3] + 2 * (i / 3), 2);
        weir__rows_split(packed, back[0], back[1], back[2], width, 2);
        for (int i = 0; i < 3; i++)
            assert_memory_equal(back[i], planes[i], 2 * (size_t)width);
    }
    for (int width = 0; width <= MAX_WIDTH; width++) {
        packed[3 * width] = 0x55;
        weir__rows_join(planes[0], planes[1], planes[2], packed, width, 1);
        assert_int_equal(packed[3 * width], 0x55);
        weir__rows_split(packed, back[0], back[1], back[2], width, 1);
        for (int i = 0; i < 3; i++)
            assert_memory_equal(back[i], planes[i], (size_t)width);
    }
}

/* ---- surfaces of a device ---------------------------------------------------------------------------------- */

/* As a decoder on a GPU returns it: what it points to is not memory. */
static AVFrame *new_surface(int format)
{
    AVFrame *frame = av_frame_alloc();
    assert_non_null(frame);
    frame->format = format;
    frame->width = 64;
    frame->height = 48;
    frame->data[0] = (uint8_t *)(uintptr_t)64;
    frame->linesize[0] = 64;
    AVFrameSideData *matrix = av_frame_new_side_data(frame, AV_FRAME_DATA_DISPLAYMATRIX, 9 * sizeof(int32_t));
    assert_non_null(matrix);
    av_display_rotation_set((int32_t *)(void *)matrix->data, 90);
    return frame;
}

static void expect_surface_error(int status, const weir_error *error, const char *who, const char *kind)
{
    assert_int_equal(status, WEIR_EUNSUPPORTED);
    if (!strstr(error->message, who) || !strstr(error->message, kind))
        fail_msg("%s", error->message);
}

TEST_CASE(a_surface_of_a_device_is_refused_by_name_and_not_touched)
{
    static const struct {
        int format;
        const char *kind;
    } surfaces[] = { { AV_PIX_FMT_CUDA, "in CUDA memory" },
                     { AV_PIX_FMT_VAAPI, "in another device's memory" },
                     { AV_PIX_FMT_VULKAN, "in another device's memory" } };
    for (size_t i = 0; i < sizeof surfaces / sizeof surfaces[0]; i++) {
        AVFrame *surface = new_surface(surfaces[i].format);
        uint8_t out[64 * 48 * 3 + WEIR_SCALER_SLACK_BYTES];
        weir_scaler scaler = { 0 };
        weir_rotator rotator = { 0 };
        const AVFrame *rotated;
        weir_error error = { 0 };
        weir__scaler_set(&scaler, &(weir_picture_config){ 0 }, 64, 48);
        expect_surface_error(weir__scaler_run(&scaler, surface, out, &error), &error, "scaler: ", surfaces[i].kind);
        error = (weir_error){ 0 };
        expect_surface_error(weir__rotator_run(&rotator, NULL, surface, &rotated, &error), &error,
                             "rotation: ", surfaces[i].kind);
#ifdef WEIR_HAVE_FILTER
        weir_filter filter = { .description = "hflip" };
        error = (weir_error){ 0 };
        expect_surface_error(weir__filter_put(&filter, surface, 0, (AVRational){ 1, 25 }, &error), &error,
                             "filter: ", surfaces[i].kind);
        weir__filter_reset(&filter);
#endif
        weir__scaler_reset(&scaler);
        weir__rotator_free(&rotator);
        av_frame_free(&surface);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
