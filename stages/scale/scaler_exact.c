/*
 * swscale, set up as FFmpeg's scale filter sets it up (libavfilter/vf_scale.c), so that the bytes are the same: colour
 * matrix and ranges. The filter differs between FFmpeg's versions; so does this code. Chroma siting is not
 * set: for whole pictures the filter uses swscale's default.
 *
 * The output is, byte for byte, that of the filter chain
 *     pad:     scale=W:H:flags=bicubic:force_original_aspect_ratio=decrease,pad=W:H:(ow-iw)/2:(oh-ih)/2,format=rgb24
 *     stretch: scale=W:H:flags=bicubic,format=rgb24
 *     crop:    scale=W:H:flags=bicubic:force_original_aspect_ratio=increase,crop=W:H,format=rgb24
 * with the FFmpeg that weir is built with.
 */
#include "stages/scale/scaler.h"

#include <libavutil/imgutils.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <string.h>

#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/memory/pixel_kind.h"
#include "stages/memory/pixel_rows.h"
#include "stages/scale/lent_picture.h"

typedef struct exact {
    weir_scaling scaling;
    struct SwsContext *sws;
    AVFrame *spare; /* the scaled picture, if swscale may not write to the result; NULL = it may */
} exact;

static enum AVPixelFormat result_format(const weir_scaling *scaling)
{
    switch (scaling->pixel) {
    case WEIR_PIXEL_GRAY8: return AV_PIX_FMT_GRAY8;
    case WEIR_PIXEL_YUV420P: return AV_PIX_FMT_YUV420P;
    case WEIR_PIXEL_RGB48: return AV_PIX_FMT_RGB48;
    case WEIR_PIXEL_GRAY16: return AV_PIX_FMT_GRAY16;
    case WEIR_PIXEL_YUV420P10: return AV_PIX_FMT_YUV420P10;
    case WEIR_PIXEL_RGB24: break;
    }
    return AV_PIX_FMT_RGB24;
}

/* Can swscale write its pixels directly to the result? */
static bool can_write_directly(const weir_scaling *scaling, const weir_planes *out)
{
    bool is_whole = scaling->window_width == scaling->width && scaling->window_height == scaling->height;
    return is_whole && scaling->pixel == WEIR_PIXEL_RGB24 && scaling->layout == WEIR_LAYOUT_NHWC &&
           weir__can_lend_rows(scaling->width, out->stride[0]);
}

/* The coefficients of a colour matrix; those of an unspecified one are BT.601's. */
static const int *swscale_matrix(int colorspace)
{
#if LIBSWSCALE_VERSION_MAJOR < 8
    bool is_known = colorspace >= 1 && colorspace <= 10 && colorspace != AVCOL_SPC_YCGCO;
    return sws_getCoefficients(is_known ? colorspace : AVCOL_SPC_BT470BG);
#else
    return sws_getCoefficients(colorspace);
#endif
}

/* Colour matrix and range: those of the picture if specified. YUV planes keep both. */
static void set_colours(const exact *self)
{
    const weir_scaling *scaling = &self->scaling;
    int *unused_matrix;
    int *unused_out_matrix;
    int in_full, out_full, brightness, contrast, saturation;
    if (sws_getColorspaceDetails(self->sws, &unused_matrix, &in_full, &unused_out_matrix, &out_full, &brightness,
                                 &contrast, &saturation) < 0)
        return; /* nothing to convert: RGB already */
    const int *matrix = swscale_matrix(scaling->source_colorspace);
    if (scaling->source_range != AVCOL_RANGE_UNSPECIFIED)
        in_full = scaling->source_range == AVCOL_RANGE_JPEG;
    if (weir__pixel_is_yuv(scaling->pixel))
        out_full = weir__scaling_is_full_range(scaling);
    sws_setColorspaceDetails(self->sws, matrix, in_full, matrix, out_full, brightness, contrast, saturation);
}

static void exact_close(void *state)
{
    exact *self = state;
    sws_freeContext(self->sws);
    av_frame_free(&self->spare);
    av_free(self);
}

static int fail_scaler_format(enum AVPixelFormat format, weir_error *error)
{
    const char *name = av_get_pix_fmt_name(format);
    return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "FFmpeg cannot scale pictures of the format %s",
                          name ? name : "unknown");
}

static int set_up_swscale(const exact *self, weir_error *error)
{
    const weir_scaling *scaling = &self->scaling;
    struct SwsContext *sws = self->sws;
    if (!sws_isSupportedInput(scaling->source_format))
        return fail_scaler_format(scaling->source_format, error);
    av_opt_set_int(sws, "srcw", scaling->source_width, 0);
    av_opt_set_int(sws, "srch", scaling->source_height, 0);
    av_opt_set_int(sws, "src_format", scaling->source_format, 0);
    av_opt_set_int(sws, "dstw", scaling->width, 0);
    av_opt_set_int(sws, "dsth", scaling->height, 0);
    av_opt_set_int(sws, "dst_format", result_format(scaling), 0);
    av_opt_set_int(sws, "sws_flags", SWS_BICUBIC, 0);
    if (weir__pixel_is_yuv(scaling->pixel)) { /* set early, so that no range conversion is set up */
        av_opt_set_int(sws, "src_range", weir__scaling_is_full_range(scaling), 0);
        av_opt_set_int(sws, "dst_range", weir__scaling_is_full_range(scaling), 0);
    }
    int rc = sws_init_context(sws, NULL, NULL);
    if (rc < 0)
        return weir__ffmpeg_error(error, rc, "cannot scale this kind of picture");
    set_colours(self);
    return WEIR_OK;
}

static int exact_open(void **state, const weir_scaling *scaling, weir_error *error)
{
    int rc = WEIR_ENOMEM;
    exact *self = av_mallocz(sizeof *self);
    if (!self)
        return weir_error_set(error, rc, 0, "out of memory");
    self->scaling = *scaling;
    self->sws = sws_alloc_context();
    rc = self->sws ? set_up_swscale(self, error) : weir_error_set(error, rc, 0, "out of memory");
    if (rc != WEIR_OK) {
        exact_close(self);
        return rc;
    }
    *state = self;
    return WEIR_OK;
}

/* Copies the visible part of the temporary picture to the result. */
static void copy_window(const exact *self, const weir_planes *out)
{
    const weir_scaling *scaling = &self->scaling;
    bool is_packed = weir__pixel_channels(scaling->pixel) == 3;
    int value_bytes = (int)weir_pixel_value_bytes(scaling->pixel), pixel_bytes = value_bytes * (is_packed ? 3 : 1);
    const AVFrame *spare = self->spare;
    for (int i = 0; i < 3 && spare->data[i]; i++) {
        int shift = i > 0;
        const uint8_t *from = spare->data[i] + (ptrdiff_t)(scaling->window_y >> shift) * spare->linesize[i];
        from += (scaling->window_x >> shift) * pixel_bytes;
        int width = (scaling->window_width + shift) >> shift;
        for (int row = 0; row < (scaling->window_height + shift) >> shift; row++) {
            uint8_t *to = out->data[i] + (ptrdiff_t)row * out->stride[i];
            if (is_packed && scaling->layout == WEIR_LAYOUT_NCHW)
                weir__rows_split(from, to, out->data[1] + (ptrdiff_t)row * out->stride[1],
                                 out->data[2] + (ptrdiff_t)row * out->stride[2], width, (size_t)value_bytes);
            else
                memcpy(to, from, (size_t)width * (size_t)pixel_bytes);
            from += spare->linesize[i];
        }
    }
}

/* Is the result identical to the decoded picture? */
static bool is_plain_copy(const weir_scaling *scaling)
{
    bool is_same_size = scaling->width == scaling->source_width && scaling->height == scaling->source_height;
    bool is_same_format = scaling->source_format == (int)result_format(scaling) ||
                          (scaling->pixel == WEIR_PIXEL_YUV420P && scaling->source_format == AV_PIX_FMT_YUVJ420P);
    return weir__pixel_is_yuv(scaling->pixel) && is_same_size && is_same_format;
}

static void copy_planes(const weir_scaling *scaling, const AVFrame *in, const weir_planes *out)
{
    int value_bytes = (int)weir_pixel_value_bytes(scaling->pixel);
    for (int i = 0; i < 3; i++) {
        int shift = i > 0;
        const uint8_t *from = in->data[i] + (ptrdiff_t)(scaling->window_y >> shift) * in->linesize[i];
        av_image_copy_plane(out->data[i], out->stride[i], from + (scaling->window_x >> shift) * value_bytes,
                            in->linesize[i], ((scaling->window_width + shift) >> shift) * value_bytes,
                            (scaling->window_height + shift) >> shift);
    }
}

static int exact_run(void *state, const AVFrame *in, const weir_planes *out, weir_error *error)
{
    exact *self = state;
    if (is_plain_copy(&self->scaling)) {
        copy_planes(&self->scaling, in, out);
        return WEIR_OK;
    }
    const weir_scaling *scaling = &self->scaling;
    bool is_direct = can_write_directly(scaling, out);
    int rc = is_direct
                 ? WEIR_OK
                 : weir__lend_room(&self->spare, result_format(scaling), scaling->width, scaling->height, error);
    if (rc != WEIR_OK)
        return rc;
    rc = sws_scale(self->sws, (const uint8_t *const *)in->data, in->linesize, 0, in->height,
                   is_direct ? (uint8_t *const[4]){ out->data[0] } : self->spare->data,
                   is_direct ? (const int[4]){ out->stride[0] } : self->spare->linesize);
    if (rc < 0)
        return weir__ffmpeg_error(error, rc, "cannot scale a picture");
    if (!is_direct)
        copy_window(self, out);
    return WEIR_OK;
}

const weir_scaler_op weir__scaler_exact = {
    .kind = WEIR_SCALER_EXACT,
    .touch = WEIR_TOUCH_STRIDES,
    .open = exact_open,
    .run = exact_run,
    .close = exact_close,
};
