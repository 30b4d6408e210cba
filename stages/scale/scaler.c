/* Fitting, placing, padding, and the choice of the scaler. */
#include "stages/scale/scaler.h"

#include <inttypes.h>
#include <limits.h>

#include <libavutil/mathematics.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <string.h>

#include "stages/memory/pixel_kind.h"
#include "stages/scale/scale_kernels.h"

static int clamp_pixels(int64_t pixels)
{
    return pixels < 1 ? 1 : pixels > INT16_MAX ? INT16_MAX : (int)pixels;
}

/* The other side of a picture with that aspect; at least 1. */
static int64_t other_side(int64_t side, int source_side, int source_other)
{
    return FFMAX(av_rescale(side, source_other, source_side), 1);
}

int weir__scaler_size(const weir_picture_config *picture, int source_width, int source_height, int *width,
                      int *height, weir_error *error)
{
    bool is_wide = source_width >= source_height;
    int64_t wide = picture->width, high = picture->height;
    if (picture->longest || picture->shortest) {
        bool sets_width = picture->longest ? is_wide : !is_wide;
        wide = sets_width ? picture->longest + picture->shortest : 0;
        high = sets_width ? 0 : picture->longest + picture->shortest;
    }
    if (wide && !high)
        high = other_side(wide, source_width, source_height);
    else if (high && !wide)
        wide = other_side(high, source_height, source_width);
    else if (!wide)
        wide = source_width, high = source_height;
    *width = (int)FFMIN(wide, INT_MAX);
    *height = (int)FFMIN(high, INT_MAX);
    bool is_derived = !picture->width || !picture->height;
    bool is_asked = picture->width || picture->height || picture->longest || picture->shortest;
    if (!is_derived || !is_asked || (wide <= INT16_MAX && high <= INT16_MAX))
        return WEIR_OK;
    return weir_error_set(error, WEIR_ELIMIT, 0,
                          "a picture of %dx%d would become %" PRId64 "x%" PRId64
                          ": no side may be longer than %d; set width and height",
                          source_width, source_height, wide, high, INT16_MAX);
}

weir_fit weir__scaler_fit(weir_resize resize, int source_width, int source_height, int width, int height)
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
    /* FFmpeg's pad filter rounds a half down, its crop filter to even. */
    fit.x = fit.width <= width ? (width - fit.width) / 2 : -(int)lrint((fit.width - width) / 2.0);
    fit.y = fit.height <= height ? (height - fit.height) / 2 : -(int)lrint((fit.height - height) / 2.0);
    return fit;
}

bool weir__format_is_yuv(int format)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(format);
    return !(descriptor->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) && descriptor->nb_components >= 3;
}

static bool is_gray(int format)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(format);
    return !(descriptor->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) && descriptor->nb_components <= 2;
}

static bool is_native_endian(const AVPixFmtDescriptor *descriptor)
{
    const uint16_t one = 1;
    bool cpu_is_big = *(const uint8_t *)&one == 0;
    return cpu_is_big == ((descriptor->flags & AV_PIX_FMT_FLAG_BE) != 0);
}

bool weir__format_is_plain(int format)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(format);
    const uint64_t unwanted = AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_HWACCEL |
                              AV_PIX_FMT_FLAG_ALPHA | AV_PIX_FMT_FLAG_BAYER | AV_PIX_FMT_FLAG_FLOAT;
    const AVComponentDescriptor *component = descriptor->comp;
    int sample_bytes = component->depth > 8 ? 2 : 1;
    bool is_native = sample_bytes == 1 || is_native_endian(descriptor);
    if ((descriptor->flags & unwanted) || !is_native || component->depth < 8 || component->depth > 16)
        return false;
    for (int i = 0; i < descriptor->nb_components; i++) {
        const AVComponentDescriptor *c = &component[i];
        bool is_alone = c->step == sample_bytes && c->offset == 0 && c->shift == 0 && c->depth == component->depth;
        if (!is_alone)
            return false;
    }
    return descriptor->nb_components == 1 || descriptor->nb_components == 3;
}

bool weir__scaling_is_full_range(const weir_scaling *scaling)
{
    if (!weir__format_is_yuv(scaling->source_format) && !is_gray(scaling->source_format))
        return false; /* RGB is converted to BT.601 of limited range */
    switch (scaling->source_format) {
    case AV_PIX_FMT_YUVJ411P:
    case AV_PIX_FMT_YUVJ420P:
    case AV_PIX_FMT_YUVJ422P:
    case AV_PIX_FMT_YUVJ440P:
    case AV_PIX_FMT_YUVJ444P: return scaling->source_range != AVCOL_RANGE_MPEG;
    default: break;
    }
    if (scaling->source_range == AVCOL_RANGE_UNSPECIFIED)
        return is_gray(scaling->source_format);
    return scaling->source_range == AVCOL_RANGE_JPEG;
}

/* ---- the planes of the result ------------------------------------------------------------------------------- */

static int half_of(int pixels)
{
    return (pixels + 1) / 2;
}

size_t weir__scaler_picture_bytes(weir_pixel pixel, uint32_t width, uint32_t height)
{
    size_t num_pixels = (size_t)width * height;
    size_t num_values = num_pixels * weir__pixel_channels(pixel);
    if (weir__pixel_is_yuv(pixel))
        num_values = num_pixels + 2 * ((size_t)width / 2 + width % 2) * (height / 2 + height % 2);
    return num_values * weir_pixel_value_bytes(pixel);
}

/* A rectangle of one plane of the result. */
typedef struct plane {
    uint8_t *data;
    int stride;
    int value_bytes;
    int pixel_bytes;
    int width;
    int height;
    int shift; /* chroma: log2 of the subsampling in each direction */
    uint16_t black;
} plane;

static int num_planes(const weir_scaler *scaler)
{
    uint32_t channels = weir__pixel_channels(scaler->picture->pixel);
    return channels == 1 || (channels == 3 && scaler->picture->layout == WEIR_LAYOUT_NHWC) ? 1 : 3;
}

static plane output_plane(const weir_scaler *scaler, uint8_t *out, int index)
{
    weir_pixel pixel = scaler->picture->pixel;
    int value_bytes = (int)weir_pixel_value_bytes(pixel);
    plane p = {
        .value_bytes = value_bytes, .pixel_bytes = value_bytes, .width = scaler->width, .height = scaler->height
    };
    size_t num_pixels = (size_t)scaler->width * (size_t)scaler->height, before = (size_t)index * num_pixels;
    int scale = (weir_pixel_max_value(pixel) + 1) / 256; /* of values of 8 bits */
    if (weir__pixel_is_yuv(pixel) && index > 0) {
        p.shift = 1;
        p.black = (uint16_t)(128 * scale);
        p.width = half_of(p.width);
        p.height = half_of(p.height);
        before = num_pixels + (size_t)(index - 1) * (size_t)p.width * (size_t)p.height;
    } else if (weir__pixel_is_yuv(pixel)) {
        p.black = weir__scaling_is_full_range(&scaler->scaling) ? 0 : (uint16_t)(16 * scale);
    } else if (num_planes(scaler) == 1) {
        p.pixel_bytes = value_bytes * (int)weir__pixel_channels(pixel);
    }
    p.data = out + before * (size_t)value_bytes;
    p.stride = p.width * p.pixel_bytes;
    return p;
}

/* The position of the window in the result. */
static weir_planes output_window(const weir_scaler *scaler, uint8_t *out)
{
    weir_planes planes = { 0 };
    for (int i = 0; i < num_planes(scaler); i++) {
        plane p = output_plane(scaler, out, i);
        ptrdiff_t x = FFMAX(scaler->fit.x, 0) >> p.shift;
        ptrdiff_t y = FFMAX(scaler->fit.y, 0) >> p.shift;
        planes.data[i] = p.data + y * p.stride + x * p.pixel_bytes;
        planes.stride[i] = p.stride;
    }
    return planes;
}

static void fill(const plane *p, uint8_t *to, size_t num_bytes)
{
    if (p->value_bytes == 1 || p->black == 0) {
        memset(to, p->black, num_bytes);
        return;
    }
    for (size_t i = 0; i < num_bytes; i += sizeof p->black)
        memcpy(to + i, &p->black, sizeof p->black);
}

/* Blackens the part of a plane outside of the picture. */
static void pad_plane(const plane *p, const weir_fit *fit)
{
    int x = fit->x >> p->shift;
    int y = fit->y >> p->shift;
    int right = x + (p->shift ? half_of(fit->width) : fit->width);
    int bottom = y + (p->shift ? half_of(fit->height) : fit->height);
    size_t stride = (size_t)p->stride;
    fill(p, p->data, (size_t)y * stride);
    fill(p, p->data + (size_t)bottom * stride, (size_t)(p->height - bottom) * stride);
    if (x == 0 && right == p->width)
        return;
    for (int row = y; row < bottom; row++) {
        uint8_t *pixels = p->data + (size_t)row * stride;
        fill(p, pixels, (size_t)x * (size_t)p->pixel_bytes);
        fill(p, pixels + right * p->pixel_bytes, (size_t)(p->width - right) * (size_t)p->pixel_bytes);
    }
}

/* After scaling, as swscale may write slightly beyond the picture. */
static void pad_picture(const weir_scaler *scaler, uint8_t *out)
{
    for (int i = 0; i < num_planes(scaler); i++) {
        plane p = output_plane(scaler, out, i);
        pad_plane(&p, &scaler->fit);
    }
}

/* ---- choice ------------------------------------------------------------------------------------------------ */

/* The default is our scaler on CPUs for which it has kernels: there it is faster and more accurate than swscale.
   On other CPUs the default is swscale. It is also the default where nothing is scaled, as it has special loops for
   that. */
static bool is_fast_by_default(const weir_scaling *scaling)
{
    bool is_scaled = scaling->width != scaling->source_width || scaling->height != scaling->source_height;
    return is_scaled && weir__kernels_best() != &weir__kernels_c;
}

static const weir_scaler_op *choose_scaler(weir_scaler_kind kind, const weir_scaling *scaling)
{
    bool is_fast = kind == WEIR_SCALER_FAST || (kind == WEIR_SCALER_DEFAULT && is_fast_by_default(scaling));
    return is_fast && weir__scaler_fast_knows(scaling) ? &weir__scaler_fast : &weir__scaler_exact;
}

weir_scaled weir__scaler_last(const weir_scaler *scaler)
{
    return (weir_scaled){
        .kind = scaler->op->kind,
        .matrix = scaler->scaling.source_colorspace,
        .is_full_range = weir__scaling_is_full_range(&scaler->scaling),
    };
}

void weir__scaler_set(weir_scaler *scaler, const weir_picture_config *picture, int width, int height)
{
    if (scaler->picture == picture && scaler->width == width && scaler->height == height)
        return;
    weir__scaler_reset(scaler);
    scaler->width = width;
    scaler->height = height;
    scaler->picture = picture;
}

void weir__scaler_reset(weir_scaler *scaler)
{
    if (scaler->op)
        scaler->op->close(scaler->state);
    scaler->op = NULL;
    scaler->state = NULL;
    av_frame_free(&scaler->source);
}

static weir_fit fit_of(const weir_scaler *scaler, const AVFrame *in)
{
    int width, height;
    bool is_whole =
        scaler->picture->width && scaler->picture->height; /* otherwise the size follows from the picture's */
    bool is_kept = !is_whole &&
                   weir__scaler_size(scaler->picture, in->width, in->height, &width, &height, NULL) == WEIR_OK &&
                   width == scaler->width && height == scaler->height;
    weir_fit fit = weir__scaler_fit(is_kept ? WEIR_RESIZE_STRETCH : scaler->picture->resize, in->width, in->height,
                                    scaler->width, scaler->height);
    if (weir__pixel_is_yuv(scaler->picture->pixel)) { /* a chroma sample must not be split */
        fit.x = fit.x >= 0 ? fit.x & ~1 : -(-fit.x & ~1);
        fit.y = fit.y >= 0 ? fit.y & ~1 : -(-fit.y & ~1);
    }
    return fit;
}

static weir_scaling scaling_of(const weir_scaler *scaler, const AVFrame *in, const weir_fit *fit)
{
    return (weir_scaling){
        .source_width = in->width,
        .source_height = in->height,
        .source_format = in->format,
        .source_colorspace = (int)in->colorspace,
        .source_range = (int)in->color_range,
        .width = fit->width,
        .height = fit->height,
        .window_x = FFMAX(-fit->x, 0),
        .window_y = FFMAX(-fit->y, 0),
        .window_width = FFMIN(fit->width, scaler->width),
        .window_height = FFMIN(fit->height, scaler->height),
        .pixel = scaler->picture->pixel,
        .layout = scaler->picture->layout,
    };
}

/* Prepares for pictures like this one, if the last one was different. */
static int prepare_scaler(weir_scaler *scaler, const AVFrame *in, weir_error *error)
{
    weir_fit fit = fit_of(scaler, in);
    weir_scaling scaling = scaling_of(scaler, in, &fit);
    if (scaler->op && memcmp(&scaling, &scaler->scaling, sizeof scaling) == 0)
        return WEIR_OK;

    weir__scaler_reset(scaler);
    const weir_scaler_op *op = choose_scaler(scaler->picture->scaler, &scaling);
    weir_error refusal = { 0 };
    int rc = op->open(&scaler->state, &scaling, &refusal);
    if (rc == WEIR_EUNSUPPORTED && op != &weir__scaler_exact) {
        op = &weir__scaler_exact;
        refusal = (weir_error){ 0 };
        rc = op->open(&scaler->state, &scaling, &refusal);
    }
    if (rc != WEIR_OK)
        return weir_error_set(error, rc, refusal.library_code, "%s", refusal.message);
    scaler->op = op;
    scaler->scaling = scaling;
    scaler->fit = fit;
    return WEIR_OK;
}

int weir__scaler_run(weir_scaler *scaler, const AVFrame *in, uint8_t *out, weir_error *error)
{
    int rc = weir__picture_check(in, "scaler", error);
    if (rc == WEIR_OK)
        rc = prepare_scaler(scaler, in, error);
    if (rc != WEIR_OK)
        return rc;
    rc = weir__lend_source(&scaler->source, in, scaler->op->touch, &in, error);
    if (rc != WEIR_OK)
        return rc;
    weir_planes planes = output_window(scaler, out);
    rc = scaler->op->run(scaler->state, in, &planes, error);
    if (rc == WEIR_OK && scaler->picture->resize == WEIR_RESIZE_PAD)
        pad_picture(scaler, out);
    return rc;
}
