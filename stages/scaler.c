/*
 * swscale, set up as FFmpeg's scale filter sets it up (libavfilter/vf_scale.c), so that the bytes are the same: colour
 * matrix and ranges. What that filter does has changed with FFmpeg's versions; so does this. Chroma siting is left
 * alone: for whole pictures the filter sets what is swscale's default.
 */
#include "scaler.h"

#include <libavutil/mathematics.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
#include <math.h>
#include <string.h>

#include "ffmpeg.h"

enum { CHANNELS = 3 };

static int clamp_pixels(int64_t pixels)
{
    return pixels < 1 ? 1 : pixels > INT16_MAX ? INT16_MAX : (int)pixels;
}

weir_fit weir_scaler_fit(weir_resize resize, int source_width, int source_height, int width, int height)
{
    int kept_width = clamp_pixels(av_rescale(height, source_width, source_height));
    int kept_height = clamp_pixels(av_rescale(width, source_height, source_width));
    weir_fit fit = { .width = width, .height = height };
    switch (resize) {
    case WEIR_RESIZE_STRETCH: break;
    case WEIR_RESIZE_PAD:
        fit.width = FFMIN(kept_width, width);
        fit.height = FFMIN(kept_height, height);
        break;
    case WEIR_RESIZE_CROP:
        fit.width = FFMAX(kept_width, width);
        fit.height = FFMAX(kept_height, height);
        break;
    }
    /* FFmpeg's pad filter rounds a half down, its crop filter to the even side. */
    fit.x = fit.width <= width ? (width - fit.width) / 2 : -(int)lrint((fit.width - width) / 2.0);
    fit.y = fit.height <= height ? (height - fit.height) / 2 : -(int)lrint((fit.height - height) / 2.0);
    return fit;
}

/* The coefficients of a colour matrix; those of an unspecified one are BT.601's. */
static const int *matrix_of(enum AVColorSpace colorspace)
{
#if LIBSWSCALE_VERSION_MAJOR < 8
    bool is_known = colorspace >= 1 && colorspace <= 10 && colorspace != AVCOL_SPC_YCGCO;
    return sws_getCoefficients(is_known ? (int)colorspace : AVCOL_SPC_BT470BG);
#else
    return sws_getCoefficients((int)colorspace);
#endif
}

/* Colour matrix and range: the picture's own where it tells them. */
static void set_colours(struct SwsContext *sws, const AVFrame *in)
{
    int *unused_matrix;
    int *unused_out_matrix;
    int in_full, out_full, brightness, contrast, saturation;
    if (sws_getColorspaceDetails(sws, &unused_matrix, &in_full, &unused_out_matrix, &out_full, &brightness, &contrast,
                                 &saturation) < 0)
        return; /* nothing to convert: RGB already */
    const int *matrix = matrix_of(in->colorspace);
    if (in->color_range != AVCOL_RANGE_UNSPECIFIED)
        in_full = in->color_range == AVCOL_RANGE_JPEG;
    sws_setColorspaceDetails(sws, matrix, in_full, matrix, out_full, brightness, contrast, saturation);
}

/* Can swscale write rows of that many pixels to the result itself? Only if a row is whole vectors. */
static bool can_write_directly(const weir_scaler *scaler)
{
    enum { VECTOR_PIXELS = 16 };
    bool fits = scaler->fit.x >= 0 && scaler->fit.y >= 0;
    return fits && scaler->width % VECTOR_PIXELS == 0;
}

static bool knows(const weir_scaler *scaler, const AVFrame *in)
{
    return scaler->sws && scaler->source_width == in->width && scaler->source_height == in->height &&
           scaler->source_format == in->format && scaler->source_colorspace == (int)in->colorspace &&
           scaler->source_range == (int)in->color_range;
}

void weir_scaler_reset(weir_scaler *scaler)
{
    sws_freeContext(scaler->sws);
    av_freep(&scaler->spare);
    scaler->sws = NULL;
}

/* Makes ready for pictures like this one. */
static int prepare(weir_scaler *scaler, const AVFrame *in, weir_error *error)
{
    weir_scaler_reset(scaler);
    scaler->fit = weir_scaler_fit(scaler->resize, in->width, in->height, scaler->width, scaler->height);
    if (!can_write_directly(scaler)) {
        /* Rows as long as FFmpeg's own frames have them: some of swscale's loops go by the row's length. */
        scaler->spare_stride = FFALIGN(scaler->fit.width, 64) * CHANNELS;
        scaler->spare =
            av_malloc((size_t)scaler->spare_stride * (size_t)scaler->fit.height + WEIR_SCALER_SLACK_BYTES);
    }
    scaler->sws = sws_alloc_context();
    if (!scaler->sws || (!scaler->spare && !can_write_directly(scaler)))
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");

    struct SwsContext *sws = scaler->sws;
    av_opt_set_int(sws, "srcw", in->width, 0);
    av_opt_set_int(sws, "srch", in->height, 0);
    av_opt_set_int(sws, "src_format", in->format, 0);
    av_opt_set_int(sws, "dstw", scaler->fit.width, 0);
    av_opt_set_int(sws, "dsth", scaler->fit.height, 0);
    av_opt_set_int(sws, "dst_format", AV_PIX_FMT_RGB24, 0);
    av_opt_set_int(sws, "sws_flags", SWS_BICUBIC, 0);
    int rc = sws_init_context(sws, NULL, NULL);
    if (rc < 0)
        return weir_ffmpeg_error(error, rc, "cannot scale this kind of picture");
    set_colours(sws, in);

    scaler->source_width = in->width;
    scaler->source_height = in->height;
    scaler->source_format = in->format;
    scaler->source_colorspace = (int)in->colorspace;
    scaler->source_range = (int)in->color_range;
    return WEIR_OK;
}

/* Copies the part of the spare picture that the result shows. */
static void copy_rows(const weir_scaler *scaler, uint8_t *out)
{
    const weir_fit *fit = &scaler->fit;
    size_t out_stride = (size_t)scaler->width * CHANNELS;
    size_t row_bytes = (size_t)FFMIN(fit->width, scaler->width) * CHANNELS;
    int num_rows = FFMIN(fit->height, scaler->height);
    const uint8_t *from = scaler->spare;
    if (fit->y < 0)
        from += (ptrdiff_t)-fit->y * scaler->spare_stride;
    if (fit->x < 0)
        from += (ptrdiff_t)-fit->x * CHANNELS;
    uint8_t *to = out + (size_t)FFMAX(fit->y, 0) * out_stride + (size_t)FFMAX(fit->x, 0) * CHANNELS;
    for (int row = 0; row < num_rows; row++) {
        memcpy(to, from, row_bytes);
        from += scaler->spare_stride;
        to += out_stride;
    }
}

/* Blackens what the picture leaves free. After scaling, as swscale may have written a little beyond the picture. */
static void pad_black(const weir_scaler *scaler, uint8_t *out)
{
    const weir_fit *fit = &scaler->fit;
    size_t stride = (size_t)scaler->width * CHANNELS;
    size_t bottom = (size_t)(fit->y + fit->height);
    size_t left_bytes = (size_t)fit->x * CHANNELS;
    size_t right = (size_t)(fit->x + fit->width) * CHANNELS;
    memset(out, 0, (size_t)fit->y * stride);
    memset(out + bottom * stride, 0, ((size_t)scaler->height - bottom) * stride);
    if (fit->width == scaler->width)
        return;
    for (size_t row = (size_t)fit->y; row < bottom; row++) {
        memset(out + row * stride, 0, left_bytes);
        memset(out + row * stride + right, 0, stride - right);
    }
}

int weir_scaler_run(weir_scaler *scaler, const AVFrame *in, uint8_t *out, weir_error *error)
{
    if (!knows(scaler, in)) {
        int rc = prepare(scaler, in, error);
        if (rc != WEIR_OK) {
            weir_scaler_reset(scaler);
            return rc;
        }
    }
    int stride = scaler->spare ? scaler->spare_stride : scaler->width * CHANNELS;
    uint8_t *start = scaler->spare ? scaler->spare : out + scaler->fit.y * stride + scaler->fit.x * CHANNELS;
    int rc = sws_scale(scaler->sws, (const uint8_t *const *)in->data, in->linesize, 0, in->height,
                       (uint8_t *const[4]){ start }, (const int[4]){ stride });
    if (rc < 0)
        return weir_ffmpeg_error(error, rc, "cannot scale a picture");
    if (scaler->spare)
        copy_rows(scaler, out);
    if (scaler->resize == WEIR_RESIZE_PAD)
        pad_black(scaler, out);
    return WEIR_OK;
}
