/* Samples are copied in tiles: a column of one picture is a row of the other, and has to stay in the cache. */
#include "stages/scale/rotate.h"

#include <libavcodec/avcodec.h>
#include <libavutil/display.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <math.h>
#include <string.h>

#include "stages/scale/lent_picture.h"
#include "stages/scale/scaler.h"

enum { TILE = 32 };

weir_rotation weir__rotation_of(const int32_t *matrix)
{
    double angle = -round(av_display_rotation_get(matrix)); /* clockwise; NaN = not a rotation matrix */
    angle -= 360 * floor(angle / 360 + 0.9 / 360);
    if (fabs(angle - 90) < 1)
        return (weir_rotation){ .transposed = true, .mirrored_y = matrix[3] <= 0 };
    if (fabs(angle - 180) < 1)
        return (weir_rotation){ .mirrored_x = matrix[0] < 0, .mirrored_y = matrix[4] < 0 };
    if (fabs(angle - 270) < 1)
        return (weir_rotation){ .transposed = true, .mirrored_x = true, .mirrored_y = matrix[3] < 0 };
    return (weir_rotation){ .mirrored_y = fabs(angle) < 1 && matrix[4] < 0 };
}

/* NULL = none. */
static const int32_t *matrix_of_stream(const AVStream *stream)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
    const AVPacketSideData *data = av_packet_side_data_get(
        stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    return data && data->size >= 9 * sizeof(int32_t) ? (const int32_t *)data->data : NULL;
#else
    size_t size_bytes = 0;
    const uint8_t *data = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size_bytes);
    return size_bytes >= 9 * sizeof(int32_t) ? (const int32_t *)data : NULL;
#endif
}

weir_rotation weir__rotation_of_stream(const AVStream *stream)
{
    const int32_t *matrix = matrix_of_stream(stream);
    return matrix ? weir__rotation_of(matrix) : (weir_rotation){ 0 };
}

/* The picture's matrix, or else the stream's; NULL = none. */
static const int32_t *find_matrix(const AVStream *stream, const AVFrame *in)
{
    const AVFrameSideData *own = av_frame_get_side_data(in, AV_FRAME_DATA_DISPLAYMATRIX);
    if (own)
        return (const int32_t *)own->data;
    return stream ? matrix_of_stream(stream) : NULL;
}

/* ---- rotating ----------------------------------------------------------------------------------------------- */

/* How to read a plane of the coded picture in the order of the rotated one: steps in bytes. */
typedef struct walk {
    const uint8_t *start; /* the sample for position 0, 0 */
    ptrdiff_t step_x;
    ptrdiff_t step_y;
    size_t sample_bytes;
} walk;

static walk rotation_walk(const uint8_t *data, ptrdiff_t stride, size_t sample_bytes, int width, int height,
                          weir_rotation rotation)
{
    ptrdiff_t column = rotation.mirrored_x ? -(ptrdiff_t)sample_bytes : (ptrdiff_t)sample_bytes;
    ptrdiff_t row = rotation.mirrored_y ? -stride : stride;
    if (rotation.mirrored_x)
        data += (ptrdiff_t)(width - 1) * (ptrdiff_t)sample_bytes;
    if (rotation.mirrored_y)
        data += (ptrdiff_t)(height - 1) * stride;
    return (walk){
        .start = data,
        .step_x = rotation.transposed ? row : column,
        .step_y = rotation.transposed ? column : row,
        .sample_bytes = sample_bytes,
    };
}

static void move_run(uint8_t *to, const uint8_t *from, const walk *w, int num_samples)
{
    if (w->step_x == (ptrdiff_t)w->sample_bytes) {
        memcpy(to, from, (size_t)num_samples * w->sample_bytes);
        return;
    }
    if (w->sample_bytes == 1) {
        for (int x = 0; x < num_samples; x++)
            to[x] = from[x * w->step_x];
        return;
    }
    for (int x = 0; x < num_samples; x++)
        memcpy(to + (size_t)x * w->sample_bytes, from + x * w->step_x, w->sample_bytes);
}

/* width and height are those of the rotated plane. */
static void rotate_plane(uint8_t *to, ptrdiff_t to_stride, const walk *w, int width, int height)
{
    for (int top = 0; top < height; top += TILE) {
        for (int left = 0; left < width; left += TILE) {
            int num_samples = FFMIN(TILE, width - left);
            for (int y = top; y < FFMIN(top + TILE, height); y++)
                move_run(to + y * to_stride + left * (ptrdiff_t)w->sample_bytes,
                         w->start + y * w->step_y + left * w->step_x, w, num_samples);
        }
    }
}

static int shift_of(int shift, int plane)
{
    return plane == 1 || plane == 2 ? shift : 0;
}

static void rotate_planes(AVFrame *out, const AVFrame *in, weir_rotation rotation)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(in->format);
    bool is_rgb = descriptor->flags & AV_PIX_FMT_FLAG_RGB;
    for (int i = 0; i < descriptor->nb_components; i++) {
        int plane = descriptor->comp[i].plane;
        int shift_x = is_rgb ? 0 : shift_of(descriptor->log2_chroma_w, plane);
        int shift_y = is_rgb ? 0 : shift_of(descriptor->log2_chroma_h, plane);
        walk w = rotation_walk(in->data[plane], in->linesize[plane], (size_t)descriptor->comp[i].step,
                               AV_CEIL_RSHIFT(in->width, shift_x), AV_CEIL_RSHIFT(in->height, shift_y), rotation);
        rotate_plane(out->data[plane], out->linesize[plane], &w, AV_CEIL_RSHIFT(out->width, shift_x),
                     AV_CEIL_RSHIFT(out->height, shift_y));
    }
}

/* ---- formats ------------------------------------------------------------------------------------------------ */

/* Whole samples, and the same chroma subsampling in both directions. */
static bool can_be_rotated(int format)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(format);
    return weir__format_is_plain(format) && descriptor->log2_chroma_w == descriptor->log2_chroma_h;
}

static int rotatable_format(int format)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(format);
    if (!weir__format_is_yuv(format))
        return descriptor->nb_components <= 2 && !(descriptor->flags & AV_PIX_FMT_FLAG_PAL) ? AV_PIX_FMT_GRAY8
                                                                                            : AV_PIX_FMT_GBRP;
    return descriptor->comp[0].depth > 8 ? AV_PIX_FMT_YUV444P10 : AV_PIX_FMT_YUV444P;
}

/* Converts the picture to a format that can be rotated, with the same colours and range. */
static int convert_picture(weir_rotator *rotator, const AVFrame *in, weir_error *error)
{
    int format = rotatable_format(in->format);
    int rc = weir__lend_room(&rotator->converted, format, in->width, in->height, error);
    if (rc != WEIR_OK)
        return rc;
    struct SwsContext *sws = sws_getContext(in->width, in->height, in->format, in->width, in->height, format,
                                            SWS_BICUBIC, NULL, NULL, NULL);
    if (!sws)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "cannot rotate pictures of format %s",
                              av_get_pix_fmt_name(in->format));
    if (weir__format_is_yuv(format)) {
        const int *matrix = sws_getCoefficients(SWS_CS_DEFAULT);
        sws_setColorspaceDetails(sws, matrix, 0, matrix, 0, 0, 1 << 16, 1 << 16);
    }
    sws_scale(sws, (const uint8_t *const *)in->data, in->linesize, 0, in->height, rotator->converted->data,
              rotator->converted->linesize);
    sws_freeContext(sws);
    return WEIR_OK;
}

static int get_rotatable(weir_rotator *rotator, const AVFrame *in, const AVFrame **from, weir_error *error)
{
    bool is_direct = can_be_rotated(in->format);
    int rc = weir__lend_source(&rotator->source, in, is_direct ? WEIR_TOUCH_ROWS : WEIR_TOUCH_STRIDES, from, error);
    if (rc != WEIR_OK || is_direct)
        return rc;
    rc = convert_picture(rotator, *from, error);
    *from = rotator->converted;
    return rc;
}

int weir__rotator_run(weir_rotator *rotator, const AVStream *stream, const AVFrame *in, const AVFrame **out,
                      weir_error *error)
{
    const int32_t *matrix = find_matrix(stream, in);
    weir_rotation rotation = matrix ? weir__rotation_of(matrix) : (weir_rotation){ 0 };
    *out = in;
    if (!rotation.transposed && !rotation.mirrored_x && !rotation.mirrored_y)
        return WEIR_OK;

    const AVFrame *from;
    int rc = weir__picture_check(in, "rotation", error);
    if (rc == WEIR_OK)
        rc = get_rotatable(rotator, in, &from, error);
    int width = rotation.transposed ? in->height : in->width;
    int height = rotation.transposed ? in->width : in->height;
    if (rc == WEIR_OK)
        rc = weir__lend_room(&rotator->rotated, from->format, width, height, error);
    if (rc != WEIR_OK)
        return rc;
    rotator->rotated->colorspace = in->colorspace;
    rotator->rotated->color_range = in->color_range;
    rotator->rotated->flags = in->flags;
    rotator->rotated->decode_error_flags = in->decode_error_flags;
    rotate_planes(rotator->rotated, from, rotation);
    rotator->rotated->sample_aspect_ratio = in->sample_aspect_ratio;
    if (rotation.transposed)
        rotator->rotated->sample_aspect_ratio = av_inv_q(in->sample_aspect_ratio);
    *out = rotator->rotated;
    return WEIR_OK;
}

void weir__rotator_free(weir_rotator *rotator)
{
    av_frame_free(&rotator->rotated);
    av_frame_free(&rotator->converted);
    av_frame_free(&rotator->source);
}
