/*
 * What lies behind a row counts, too: where swscale halves the chroma of RGB, it reads one pixel more than an odd width
 * has. So a copy has the same bytes there as far as the buffer goes, and 0 behind the buffer. That is what the
 * buffers of FFmpeg's decoders and filters have. Then the result is ffmpeg's, and does not depend on what was in the
 * memory before.
 */
#include "stages/scale/lent_picture.h"

#include <stdlib.h>
#include <string.h>

#include <libavutil/common.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>

#include <weir/allocator.h>

#include "stages/ffmpeg/ffmpeg_log.h"

static const AVBufferRef *find_buffer(const AVFrame *frame, int plane)
{
    const uint8_t *data = frame->data[plane];
    for (int i = 0; i < AV_NUM_DATA_POINTERS && frame->buf[i]; i++)
        if (data && data >= frame->buf[i]->data && data < frame->buf[i]->data + frame->buf[i]->size)
            return frame->buf[i];
    return NULL;
}

static int num_rows_of(const AVFrame *frame, int plane)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(frame->format);
    return AV_CEIL_RSHIFT(frame->height, plane == 1 || plane == 2 ? descriptor->log2_chroma_h : 0);
}

/* swscale converts nothing of XYZ where rows go up, and leaves there what was in the memory before. */
static bool is_misread(const AVFrame *frame)
{
    return (frame->format == AV_PIX_FMT_XYZ12LE || frame->format == AV_PIX_FMT_XYZ12BE) && frame->linesize[0] < 0;
}

/* Is all that may be touched of the plane in its buffer? */
static bool is_plane_whole(const AVFrame *frame, int plane, weir_touch touch)
{
    const AVBufferRef *buffer = find_buffer(frame, plane);
    ptrdiff_t stride = frame->linesize[plane];
    ptrdiff_t num_steps = num_rows_of(frame, plane) - 1;
    if (!buffer || is_misread(frame))
        return false;
    ptrdiff_t last_bytes = touch == WEIR_TOUCH_ROWS ? av_image_get_linesize(frame->format, frame->width, plane)
                                                    : (ptrdiff_t)llabs(stride) + WEIR_LENT_GUARD_BYTES;
    ptrdiff_t first = frame->data[plane] - buffer->data; /* the lowest byte */
    if (stride < 0)                                      /* rows go up */
        first += num_steps * stride;
    ptrdiff_t end = first + num_steps * (ptrdiff_t)llabs(stride) + last_bytes;
    return first >= 0 && end <= (ptrdiff_t)buffer->size;
}

/* The bytes from `at` on that the buffer has, and 0 for the others. */
static void copy_row(uint8_t *to, const AVBufferRef *buffer, ptrdiff_t at, ptrdiff_t num_bytes)
{
    ptrdiff_t size = (ptrdiff_t)buffer->size;
    ptrdiff_t first = av_clip64(at, 0, size) - at;
    ptrdiff_t end = av_clip64(at + num_bytes, 0, size) - at;
    if (first >= end) {
        memset(to, 0, (size_t)num_bytes);
        return;
    }
    memset(to, 0, (size_t)first);
    memcpy(to + first, buffer->data + at + first, (size_t)(end - first));
    memset(to + end, 0, (size_t)(num_bytes - end));
}

static void copy_plane(AVFrame *to, const AVFrame *from, int plane)
{
    const AVBufferRef *buffer = find_buffer(from, plane);
    size_t row_bytes = (size_t)av_image_get_linesize(from->format, from->width, plane);
    size_t seen_bytes = FFMIN(row_bytes + WEIR_LENT_GUARD_BYTES, (size_t)to->linesize[plane]);
    for (int y = 0; y < num_rows_of(from, plane); y++) {
        uint8_t *row = to->data[plane] + (ptrdiff_t)y * to->linesize[plane];
        const uint8_t *source = from->data[plane] + (ptrdiff_t)y * from->linesize[plane];
        if (buffer)
            copy_row(row, buffer, source - buffer->data, (ptrdiff_t)seen_bytes);
        else if (from->buf[0]) /* FFmpeg's field filter may show rows in front of a buffer */
            memset(row, 0, seen_bytes);
        else /* nobody knows which memory follows a row */
            memcpy(row, source, row_bytes);
    }
}

static weir_memory memory_of(const AVFrame *picture)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(picture->format);
    bool is_surface = descriptor && descriptor->flags & AV_PIX_FMT_FLAG_HWACCEL;
    weir_memory_kind device = picture->format == AV_PIX_FMT_CUDA ? WEIR_MEMORY_CUDA : WEIR_MEMORY_OTHER;
    return (weir_memory){ is_surface ? device : WEIR_MEMORY_HOST, 0 };
}

int weir__picture_check(const AVFrame *picture, const char *who, weir_error *error)
{
    return weir_memory_check(memory_of(picture), who, error);
}

int weir__lend_source(AVFrame **copy, const AVFrame *in, weir_touch touch, const AVFrame **out, weir_error *error)
{
    int num_planes = av_pix_fmt_count_planes(in->format);
    int num_whole = 0;
    *out = in;
    while (num_whole < num_planes && is_plane_whole(in, num_whole, touch))
        num_whole++;
    if (num_whole == num_planes)
        return WEIR_OK;
    int rc = weir__lend_room(copy, in->format, in->width, in->height, error);
    if (rc != WEIR_OK)
        return rc;
    for (int i = 0; i < num_planes; i++)
        copy_plane(*copy, in, i);
    if (av_pix_fmt_desc_get(in->format)->flags & AV_PIX_FMT_FLAG_PAL)
        memcpy((*copy)->data[1], in->data[1], AVPALETTE_SIZE);
    *out = *copy;
    return WEIR_OK;
}

static bool is_reusable(AVFrame *frame, int format, int width, int height)
{
    return frame && frame->format == format && frame->width == width && frame->height == height &&
           av_frame_is_writable(frame);
}

int weir__lend_room(AVFrame **frame, int format, int width, int height, weir_error *error)
{
    enum { ROW_PIXELS = 64 };
    if (is_reusable(*frame, format, width, height))
        return WEIR_OK;
    av_frame_free(frame);
    *frame = av_frame_alloc();
    if (!*frame)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    (*frame)->format = format;
    (*frame)->width = FFALIGN(width, ROW_PIXELS);
    (*frame)->height = height;
    int rc = av_frame_get_buffer(*frame, 0);
    (*frame)->width = width;
    if (rc < 0) {
        av_frame_free(frame);
        return weir__ffmpeg_error(error, rc, "no memory for a picture");
    }
    for (int i = 0; i < AV_NUM_DATA_POINTERS && (*frame)->buf[i]; i++)
        memset((*frame)->buf[i]->data, 0, (*frame)->buf[i]->size);
    return WEIR_OK;
}

bool weir__can_lend_rows(int row_pixels, int stride)
{
    enum { VECTOR_PIXELS = 16, PIXEL_BYTES = 3 };
    return stride == row_pixels * PIXEL_BYTES && row_pixels % VECTOR_PIXELS == 0;
}
