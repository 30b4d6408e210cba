/*
 * zimg (https://github.com/sekrit-twc/zimg), with the kernel and the chroma siting that FFmpeg uses for swscale, so
 * that the pictures differ only in rounding, in which zimg is more accurate and faster.
 *
 * zimg works on planes, a few rows at a time. Finished rows are in `rows`, which stays in the CPU's cache; the pack
 * callback copies them to the result. The unpack callback is used for pictures that are not aligned, or have
 * incomplete chroma
 * samples: it copies their rows to aligned ones.
 */
#include "scaler.h"

#include <libavutil/pixdesc.h>
#include <stdlib.h>
#include <string.h>
#include <zimg.h>

#include "pixel_rows.h"

/* Alignment of pointers and strides for zimg's widest vectors. */
enum { ALIGNMENT = 64 };

/* A ring of rows for each plane, as in zimg: row i is at i & mask. */
typedef struct ring {
    uint8_t *data[3]; /* one block, at data[0]; NULL = none yet */
    ptrdiff_t stride[3];
    unsigned mask;
} ring;

typedef struct zimg {
    weir_scaling scaling;
    zimg_filter_graph *graph;
    void *scratch;
    int num_source_planes;
    int source_shift_x; /* of the chroma planes */
    int source_shift_y;
    size_t sample_bytes; /* of the source */
    int result_shift;    /* of the chroma planes */
    int num_result_planes;
    ring rows;   /* of the result */
    ring source; /* only with the unpack callback */

    /* during a run */
    const AVFrame *in;
    const weir_planes *out;
} zimg;

/* ---- support ------------------------------------------------------------------------------------------------ */

/* zimg's number for the matrix that swscale would use; BT.601 if it is unspecified or unknown. */
static zimg_matrix_coefficients_e matrix_of(int colorspace)
{
    switch (colorspace) {
    case AVCOL_SPC_BT709: return ZIMG_MATRIX_BT709;
    case AVCOL_SPC_FCC: return ZIMG_MATRIX_FCC;
    case AVCOL_SPC_SMPTE240M: return ZIMG_MATRIX_ST240_M;
    case AVCOL_SPC_BT2020_NCL:
    case AVCOL_SPC_BT2020_CL: return ZIMG_MATRIX_BT2020_NCL;
    default: return ZIMG_MATRIX_BT470_BG;
    }
}

static bool zimg_knows(const weir_scaling *scaling)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(scaling->source_format);
    if (!weir__format_is_plain(scaling->source_format))
        return false;
    bool is_yuv = weir__format_is_yuv(scaling->source_format);
    bool is_whole = scaling->window_width % 2 == 0 && scaling->window_height % 2 == 0;
    switch (scaling->pixel) {
    case WEIR_PIXEL_YUV420P: return is_yuv && is_whole;
    case WEIR_PIXEL_GRAY8: return is_yuv || descriptor->nb_components == 1;
    case WEIR_PIXEL_RGB24: break;
    }
    return descriptor->nb_components == 1 || is_yuv || (descriptor->flags & AV_PIX_FMT_FLAG_RGB);
}

/* ---- setting up --------------------------------------------------------------------------------------------- */

static unsigned align_up(int value, int shift)
{
    int step = 1 << shift;
    return (unsigned)((value + step - 1) & -step);
}

static void describe_source(const zimg *self, zimg_image_format *format)
{
    const weir_scaling *scaling = &self->scaling;
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(scaling->source_format);
    zimg_image_format_default(format, ZIMG_API_VERSION);
    format->pixel_type = self->sample_bytes == 2 ? ZIMG_PIXEL_WORD : ZIMG_PIXEL_BYTE;
    format->depth = (unsigned)descriptor->comp[0].depth;
    format->width = align_up(scaling->source_width, self->source_shift_x);
    format->height = align_up(scaling->source_height, self->source_shift_y);
    format->pixel_range = weir__scaling_is_full_range(scaling) ? ZIMG_RANGE_FULL : ZIMG_RANGE_LIMITED;
    format->color_family = ZIMG_COLOR_GREY;
    if (self->num_source_planes == 3 && weir__format_is_yuv(scaling->source_format)) {
        format->color_family = ZIMG_COLOR_YUV;
        format->matrix_coefficients = matrix_of(scaling->source_colorspace);
        format->subsample_w = (unsigned)self->source_shift_x;
        format->subsample_h = (unsigned)self->source_shift_y;
        format->chroma_location = ZIMG_CHROMA_CENTER;
    } else if (self->num_source_planes == 3) {
        format->color_family = ZIMG_COLOR_RGB;
        format->matrix_coefficients = ZIMG_MATRIX_RGB;
        format->pixel_range = ZIMG_RANGE_FULL;
    }

    /* The part of the source that the window shows. */
    double per_x = (double)scaling->source_width / scaling->width;
    double per_y = (double)scaling->source_height / scaling->height;
    format->active_region.left = scaling->window_x * per_x;
    format->active_region.top = scaling->window_y * per_y;
    format->active_region.width = scaling->window_width * per_x;
    format->active_region.height = scaling->window_height * per_y;
}

static void describe_result(const zimg *self, const zimg_image_format *source, zimg_image_format *format)
{
    const weir_scaling *scaling = &self->scaling;
    zimg_image_format_default(format, ZIMG_API_VERSION);
    format->pixel_type = ZIMG_PIXEL_BYTE;
    format->depth = 8;
    format->width = (unsigned)scaling->window_width;
    format->height = (unsigned)scaling->window_height;
    format->pixel_range = ZIMG_RANGE_FULL;
    format->color_family = source->color_family;
    if (scaling->pixel == WEIR_PIXEL_YUV420P) {
        format->matrix_coefficients = source->matrix_coefficients;
        format->pixel_range = source->pixel_range;
        format->subsample_w = format->subsample_h = 1;
        format->chroma_location = ZIMG_CHROMA_CENTER;
    } else if (source->color_family == ZIMG_COLOR_YUV) {
        format->color_family = ZIMG_COLOR_RGB;
        format->matrix_coefficients = ZIMG_MATRIX_RGB;
    } else {
        format->matrix_coefficients = source->matrix_coefficients;
    }
}

static int fail_zimg(weir_error *error, const char *what)
{
    char text[200] = "";
    zimg_error_code_e code = zimg_get_last_error(text, sizeof text);
    int status = code == ZIMG_ERROR_OUT_OF_MEMORY ? WEIR_ENOMEM : WEIR_EUNSUPPORTED;
    return weir_error_set(error, status, code, "zimg %s: %s", what, text);
}

/*
 * zimg 3.0's AVX-512 code reads before the start of a row for some offsets; and if rows shrink to slightly less than
 * half of their width, some of its columns are wrong. Chroma may shrink more than luma.
 */
static bool has_sound_avx512(const zimg *self)
{
    const weir_scaling *scaling = &self->scaling;
    int halved = self->result_shift > self->source_shift_x ? 2 : 1;
    return scaling->window_x == 0 && (int64_t)scaling->source_width * halved <= (int64_t)scaling->width * 2;
}

static int build_graph(zimg *self, weir_error *error)
{
    zimg_image_format source, result;
    zimg_graph_builder_params parameters;
    describe_source(self, &source);
    describe_result(self, &source, &result);
    zimg_graph_builder_params_default(&parameters, ZIMG_API_VERSION);
    parameters.resample_filter = parameters.resample_filter_uv = ZIMG_RESIZE_BICUBIC;
    parameters.filter_param_a = parameters.filter_param_a_uv = 0.0; /* b and c of swscale's bicubic */
    parameters.filter_param_b = parameters.filter_param_b_uv = 0.6;
    parameters.cpu_type = has_sound_avx512(self) ? ZIMG_CPU_AUTO_64B : ZIMG_CPU_AUTO;
    self->graph = zimg_filter_graph_build(&source, &result, &parameters);
    return self->graph ? WEIR_OK : fail_zimg(error, "cannot scale this kind of picture");
}

static int make_ring(ring *r, unsigned num_rows, int width, int height, size_t sample_bytes, int num_planes)
{
    r->mask = zimg_select_buffer_mask(num_rows);
    size_t rows = r->mask == ZIMG_BUFFER_MAX ? (size_t)height : (size_t)r->mask + 1;
    size_t stride = FFALIGN((size_t)width * sample_bytes, (size_t)ALIGNMENT);
    size_t plane_bytes = stride * rows;
    uint8_t *block = NULL;
    /* av_malloc's own alignment depends on how FFmpeg was built. */
    if (posix_memalign((void **)&block, ALIGNMENT, plane_bytes * (size_t)num_planes) != 0)
        return WEIR_ENOMEM;
    memset(block, 0, plane_bytes * (size_t)num_planes);
    for (int i = 0; i < num_planes; i++) {
        r->data[i] = block + (size_t)i * plane_bytes;
        r->stride[i] = (ptrdiff_t)stride;
    }
    return WEIR_OK;
}

static void zimg_close(void *state)
{
    zimg *self = state;
    zimg_filter_graph_free(self->graph);
    free(self->scratch);
    free(self->rows.data[0]);
    free(self->source.data[0]);
    free(self);
}

static int make_buffers(zimg *self, weir_error *error)
{
    size_t scratch_bytes = 0;
    unsigned num_rows = 0;
    zimg_filter_graph_get_tmp_size(self->graph, &scratch_bytes);
    zimg_filter_graph_get_output_buffering(self->graph, &num_rows);
    int rc = make_ring(&self->rows, num_rows, self->scaling.window_width, self->scaling.window_height, 1,
                       self->num_result_planes);
    if (rc == WEIR_OK && posix_memalign(&self->scratch, ALIGNMENT, scratch_bytes + ALIGNMENT) != 0)
        rc = WEIR_ENOMEM;
    return rc == WEIR_OK ? WEIR_OK : weir_error_set(error, rc, 0, "out of memory");
}

static int zimg_open(void **state, const weir_scaling *scaling, weir_error *error)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(scaling->source_format);
    zimg *self = calloc(1, sizeof *self);
    if (!self)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    bool is_gray = scaling->pixel == WEIR_PIXEL_GRAY8 || descriptor->nb_components == 1;
    self->scaling = *scaling;
    self->num_source_planes = is_gray ? 1 : 3;
    self->num_result_planes = self->num_source_planes;
    self->source_shift_x = is_gray ? 0 : descriptor->log2_chroma_w;
    self->source_shift_y = is_gray ? 0 : descriptor->log2_chroma_h;
    self->sample_bytes = descriptor->comp[0].depth > 8 ? 2 : 1;
    self->result_shift = scaling->pixel == WEIR_PIXEL_YUV420P;

    int rc = build_graph(self, error);
    if (rc == WEIR_OK)
        rc = make_buffers(self, error);
    if (rc != WEIR_OK) {
        zimg_close(self);
        return rc;
    }
    *state = self;
    return WEIR_OK;
}

/* ---- running ------------------------------------------------------------------------------------------------ */

/* FFmpeg's plane for our i-th: its planar RGB is green, blue, red. */
static int plane_of(const zimg *self, int i)
{
    return av_pix_fmt_desc_get(self->scaling.source_format)->comp[i].plane;
}

static uint8_t *ring_row(const ring *r, int plane, unsigned row)
{
    return r->data[plane] + (ptrdiff_t)(row & r->mask) * r->stride[plane];
}

/* Copies one row of a source plane; the last sample fills the aligned width, the last row repeats below. */
static void unpack_row(const zimg *self, int plane, unsigned row)
{
    const weir_scaling *scaling = &self->scaling;
    int shift_x = plane ? self->source_shift_x : 0;
    int shift_y = plane ? self->source_shift_y : 0;
    size_t width = (size_t)AV_CEIL_RSHIFT(scaling->source_width, shift_x);
    unsigned height = (unsigned)AV_CEIL_RSHIFT(scaling->source_height, shift_y);
    size_t full_width = plane ? width : align_up(scaling->source_width, self->source_shift_x);
    int index = plane_of(self, plane);
    const uint8_t *from = self->in->data[index];
    from += (ptrdiff_t)FFMIN(row, height - 1) * self->in->linesize[index];
    uint8_t *to = ring_row(&self->source, plane, row);
    memcpy(to, from, width * self->sample_bytes);
    for (size_t x = width; x < full_width; x++)
        memcpy(to + x * self->sample_bytes, from + (width - 1) * self->sample_bytes, self->sample_bytes);
}

static int unpack(void *argument, unsigned row, unsigned left, unsigned right)
{
    const zimg *self = argument;
    (void)left;
    (void)right;
    unsigned step = 1U << self->source_shift_y;
    for (unsigned i = 0; i < step; i++)
        unpack_row(self, 0, row + i);
    for (int plane = 1; plane < self->num_source_planes; plane++)
        unpack_row(self, plane, row >> self->source_shift_y);
    return 0;
}

static void pack_rgb(const zimg *self, unsigned row)
{
    const weir_planes *out = self->out;
    size_t width = (size_t)self->scaling.window_width;
    const uint8_t *rows[3];
    for (int i = 0; i < 3; i++)
        rows[i] = ring_row(&self->rows, self->num_result_planes == 1 ? 0 : i, row);
    if (self->scaling.layout == WEIR_LAYOUT_NHWC) {
        weir__rows_join(rows[0], rows[1], rows[2], out->data[0] + (ptrdiff_t)row * out->stride[0], (int)width);
        return;
    }
    for (int i = 0; i < 3; i++)
        memcpy(out->data[i] + (ptrdiff_t)row * out->stride[i], rows[i], width);
}

static void pack_plane(const zimg *self, int plane, unsigned row)
{
    size_t width = (size_t)self->scaling.window_width >> (plane ? self->result_shift : 0);
    memcpy(self->out->data[plane] + (ptrdiff_t)row * self->out->stride[plane], ring_row(&self->rows, plane, row),
           width);
}

static int pack(void *argument, unsigned row, unsigned left, unsigned right)
{
    const zimg *self = argument;
    (void)left;
    (void)right;
    if (self->scaling.pixel == WEIR_PIXEL_RGB24) {
        pack_rgb(self, row);
        return 0;
    }
    for (unsigned i = 0; i < 1U << self->result_shift; i++)
        pack_plane(self, 0, row + i);
    for (int plane = 1; plane < self->num_result_planes; plane++)
        pack_plane(self, plane, row >> self->result_shift);
    return 0;
}

/* Can zimg read the frame as it is? */
static bool is_readable(const zimg *self, const AVFrame *in)
{
    const weir_scaling *scaling = &self->scaling;
    int step_x = 1 << self->source_shift_x;
    int step_y = 1 << self->source_shift_y;
    if (scaling->source_width % step_x != 0 || scaling->source_height % step_y != 0)
        return false;
    for (int i = 0; i < self->num_source_planes; i++) {
        int index = plane_of(self, i);
        if ((uintptr_t)in->data[index] % ALIGNMENT != 0 || in->linesize[index] % ALIGNMENT != 0)
            return false;
    }
    return true;
}

static int make_source_ring(zimg *self)
{
    unsigned num_rows = 0;
    if (self->source.data[0])
        return WEIR_OK;
    zimg_filter_graph_get_input_buffering(self->graph, &num_rows);
    return make_ring(&self->source, num_rows, (int)align_up(self->scaling.source_width, self->source_shift_x),
                     (int)align_up(self->scaling.source_height, self->source_shift_y), self->sample_bytes,
                     self->num_source_planes);
}

static int zimg_run(void *state, const AVFrame *in, const weir_planes *out, weir_error *error)
{
    zimg *self = state;
    zimg_image_buffer_const source = { .version = ZIMG_API_VERSION };
    zimg_image_buffer result = { .version = ZIMG_API_VERSION };
    bool is_direct = is_readable(self, in);
    if (!is_direct && make_source_ring(self) != WEIR_OK)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    for (int i = 0; i < self->num_source_planes; i++) {
        int index = plane_of(self, i);
        source.plane[i].data = is_direct ? in->data[index] : self->source.data[i];
        source.plane[i].stride = is_direct ? in->linesize[index] : self->source.stride[i];
        source.plane[i].mask = is_direct ? ZIMG_BUFFER_MAX : self->source.mask;
    }
    for (int i = 0; i < self->num_result_planes; i++) {
        result.plane[i].data = self->rows.data[i];
        result.plane[i].stride = self->rows.stride[i];
        result.plane[i].mask = self->rows.mask;
    }
    self->in = in;
    self->out = out;
    if (zimg_filter_graph_process(self->graph, &source, &result, self->scratch, is_direct ? NULL : unpack, self, pack,
                                  self) != ZIMG_ERROR_SUCCESS)
        return fail_zimg(error, "cannot scale a picture");
    return WEIR_OK;
}

const weir_scaler_op weir__scaler_zimg = {
    .kind = WEIR_SCALER_ZIMG,
    .knows = zimg_knows,
    .open = zimg_open,
    .run = zimg_run,
    .close = zimg_close,
};
