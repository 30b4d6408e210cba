/*
 * weir's own scaler: the same bicubic kernel in 16-bit arithmetic. It makes one result row at a time, so that all
 * intermediate data stays in the CPU's cache. First come the vertical sums over the source rows, then the horizontal
 * sums, then the colours.
 *
 * Each plane is scaled directly to its size in the result, with the chroma siting that FFmpeg uses for swscale
 * (centred); samples beyond the edge repeat the edge.
 */
#include "stages/scale/scaler.h"

#include <assert.h>

#include <libavutil/common.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/memory/pixel_rows.h"
#include "stages/scale/scale_kernels.h"

/* Beyond this ratio, weights of 14 bits are too coarse; 4:2:0 results may halve full-size chroma once more. */
enum { MAX_RATIO = 64, MAX_TAPS = 4 * 2 * MAX_RATIO + WEIR_TAP_GROUP };

/* How one side of a plane is scaled. */
typedef struct axis {
    int num_taps;
    int32_t *starts;  /* of each result sample, the first source sample; may be beyond the edge until it is folded */
    int16_t *weights; /* [result samples][num_taps] */
} axis;

/* The same, in the form for vertical sums. */
typedef struct row_axis {
    int max_taps;
    int *num_taps; /* of each result row */
    int *num_positive;
    int32_t *rows;     /* [result rows][max_taps], within the picture: with weights above 0 first, then below */
    uint32_t *weights; /* as in weir_row_sum */
} row_axis;

typedef struct fast_plane {
    axis x;
    row_axis y;
    int source_index; /* of FFmpeg's planes */
    int source_width;
    int source_height;
    int width; /* of the window */
    int height;
    int16_t *column_sums; /* one row as wide as the source, followed by a group of zeros */
    int16_t *row;         /* one row of the result */
} fast_plane;

typedef struct fast {
    weir_scaling scaling;
    const weir_kernels *kernels;
    int num_planes; /* that are scaled */
    int depth;
    fast_plane planes[3];
    const void **row_pointers; /* of the source; the maximum number of taps */
    uint8_t *colours;          /* three rows */
    bool is_rgb;               /* the source */
    weir_colour_matrix matrix;
} fast;

/* ---- weights ------------------------------------------------------------------------------------------------ */

/* swscale's bicubic: b = 0, c = 0.6. */
static double kernel_weight(double x)
{
    x = fabs(x);
    if (x < 1)
        return 1 + x * x * (-2.4 + 1.4 * x);
    return x < 2 ? 2.4 + x * (-4.8 + x * (3.0 - 0.6 * x)) : 0;
}

/* The weights of one result sample for `num_taps` source samples from `start` on, rounded so that they add up to 1. */
static void weigh_taps(int16_t *weights, int num_taps, int start, double centre, double widening)
{
    double sum = 0;
    double rest = 0; /* the rounding error so far */
    for (int t = 0; t < num_taps; t++)
        sum += kernel_weight((start + t - centre) / widening);
    for (int t = 0; t < num_taps; t++) {
        double exact = kernel_weight((start + t - centre) / widening) / sum * (1 << WEIR_WEIGHT_BITS) + rest;
        weights[t] = (int16_t)lrint(exact);
        rest = exact - weights[t];
    }
}

/* Adds the weights of samples beyond the edges to those at the edges, and moves the start into the row. */
static void fold_taps(int16_t *weights, int num_taps, int32_t *start, int source_size)
{
    int folded[MAX_TAPS] = { 0 };
    int first = av_clip(*start, 0, source_size - 1);
    int last = FFMIN(first + num_taps, source_size) - 1;
    for (int t = 0; t < num_taps; t++)
        folded[av_clip(*start + t, first, last) - first] += weights[t];
    for (int t = 0; t < num_taps; t++)
        weights[t] = (int16_t)folded[t];
    *start = first;
}

static void free_axis(axis *a)
{
    free(a->starts);
    free(a->weights);
}

static void free_row_axis(row_axis *a)
{
    free(a->num_taps);
    free(a->num_positive);
    free(a->rows);
    free(a->weights);
}

/* `per` source samples correspond to one result sample; the result is `size` samples from `offset` on. The number of
   weights is rounded up to whole groups. */
static int make_axis(axis *a, double per, int offset, int size, int group)
{
    double widening = fmax(per, 1);
    int num_taps = (int)ceil(4 * widening);
    a->num_taps = FFALIGN(num_taps, num_taps <= group / 2 ? group / 2 : FFMAX(group, 1));
    assert(size > 0 && a->num_taps > 0);
    a->starts = calloc((size_t)size, sizeof *a->starts);
    a->weights = calloc((size_t)size * (size_t)a->num_taps, sizeof *a->weights);
    if (!a->starts || !a->weights)
        return WEIR_ENOMEM;
    for (int i = 0; i < size; i++) {
        double centre = (offset + i + 0.5) * per - 0.5;
        a->starts[i] = (int32_t)floor(centre - 2 * widening) + 1;
        weigh_taps(a->weights + (ptrdiff_t)i * a->num_taps, num_taps, a->starts[i], centre, widening);
    }
    return WEIR_OK;
}

static int make_column_axis(axis *a, double per, int offset, int size, int source_size)
{
    int rc = make_axis(a, per, offset, size, WEIR_TAP_GROUP);
    for (int i = 0; i < size && rc == WEIR_OK; i++)
        fold_taps(a->weights + (ptrdiff_t)i * a->num_taps, a->num_taps, &a->starts[i], source_size);
    return rc;
}

/* Sorts the taps of one result row by the sign of their weight; zero weights are removed. */
static void sort_taps(row_axis *a, const axis *from, int row, int source_size)
{
    const int16_t *weights = from->weights + (ptrdiff_t)row * from->num_taps;
    int num_taps = 0;
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (int t = 0; t < from->num_taps; t++) {
            if (weights[t] * sign <= 0)
                continue;
            ptrdiff_t at = (ptrdiff_t)row * a->max_taps + num_taps++;
            uint32_t weight = (uint32_t)(weights[t] * sign);
            a->rows[at] = av_clip(from->starts[row] + t, 0, source_size - 1);
            a->weights[at] = weight << 16 | weight;
        }
        if (sign > 0)
            a->num_positive[row] = num_taps;
    }
    a->num_taps[row] = num_taps;
}

static int make_row_axis(row_axis *a, double per, int offset, int size, int source_size)
{
    axis from = { 0 };
    int rc = make_axis(&from, per, offset, size, 1);
    a->max_taps = from.num_taps;
    a->num_taps = calloc((size_t)size, sizeof *a->num_taps);
    a->num_positive = calloc((size_t)size, sizeof *a->num_positive);
    a->rows = calloc((size_t)size * (size_t)a->max_taps, sizeof *a->rows);
    a->weights = calloc((size_t)size * (size_t)a->max_taps, sizeof *a->weights);
    if (!a->num_taps || !a->num_positive || !a->rows || !a->weights)
        rc = WEIR_ENOMEM;
    for (int row = 0; row < size && rc == WEIR_OK; row++)
        sort_taps(a, &from, row, source_size);
    free_axis(&from);
    return rc;
}

/* ---- support ------------------------------------------------------------------------------------------------ */

bool weir__scaler_fast_knows(const weir_scaling *scaling)
{
    int format = scaling->source_format;
    bool is_gray = av_pix_fmt_desc_get(format)->nb_components == 1;
    bool is_yuv = weir__format_is_yuv(format);
    if (weir_pixel_value_bytes(scaling->pixel) > 1 || !weir__format_is_plain(format) ||
        scaling->source_width > MAX_RATIO * scaling->width || scaling->source_height > MAX_RATIO * scaling->height ||
        scaling->source_colorspace == AVCOL_SPC_YCGCO)
        return false;
    if (scaling->pixel == WEIR_PIXEL_YUV420P)
        return is_yuv;
    return scaling->pixel == WEIR_PIXEL_RGB24 || is_yuv || is_gray;
}

/* ---- colours ------------------------------------------------------------------------------------------------ */

static weir_factor factor_of(double value)
{
    long whole = lrint(value);
    return (weir_factor){ .whole = (int16_t)whole, .part = (int16_t)lrint((value - (double)whole) * (1 << 15)) };
}

/* The shares of red and blue in luma. */
static void get_shares(int colorspace, double *red, double *blue)
{
    static const struct {
        int colorspace;
        double red;
        double blue;
    } shares[] = {
        { AVCOL_SPC_BT709, 0.2126, 0.0722 },     { AVCOL_SPC_FCC, 0.30, 0.11 },
        { AVCOL_SPC_SMPTE240M, 0.212, 0.087 },   { AVCOL_SPC_BT2020_NCL, 0.2627, 0.0593 },
        { AVCOL_SPC_BT2020_CL, 0.2627, 0.0593 },
    };
    *red = 0.299;
    *blue = 0.114;
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        if (shares[i].colorspace == colorspace) {
            *red = shares[i].red;
            *blue = shares[i].blue;
        }
    }
}

static void set_matrix(fast *self)
{
    weir_colour_matrix *matrix = &self->matrix;
    bool full = weir__scaling_is_full_range(&self->scaling);
    double luma = full ? 1 : 255 / 219.0;
    double chroma = full ? 1 : 255 / 224.0;
    double red, blue;
    get_shares(self->scaling.source_colorspace, &red, &blue);
    double green = 1 - red - blue;
    matrix->luma_offset = full ? 0 : 16 << WEIR_SAMPLE_BITS;
    matrix->luma = factor_of(luma);
    matrix->red_v = factor_of(2 * (1 - red) * chroma);
    matrix->green_u = factor_of(-2 * (1 - blue) * blue / green * chroma);
    matrix->green_v = factor_of(-2 * (1 - red) * red / green * chroma);
    matrix->blue_u = factor_of(2 * (1 - blue) * chroma);
    if (self->is_rgb || self->scaling.pixel == WEIR_PIXEL_YUV420P) { /* unchanged */
        matrix->luma_offset = 0;
        matrix->luma = factor_of(1);
    }
}

/* ---- setting up --------------------------------------------------------------------------------------------- */

static void free_plane(fast_plane *plane)
{
    free_axis(&plane->x);
    free_row_axis(&plane->y);
    free(plane->column_sums);
    free(plane->row);
}

static void fast_close(void *state)
{
    fast *self = state;
    for (int i = 0; i < 3; i++)
        free_plane(&self->planes[i]);
    free(self->row_pointers);
    free(self->colours);
    free(self);
}

static int set_up_plane(fast *self, int index)
{
    const weir_scaling *scaling = &self->scaling;
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(scaling->source_format);
    fast_plane *plane = &self->planes[index];
    bool is_chroma = index > 0 && !self->is_rgb;
    int source_shift_x = is_chroma ? descriptor->log2_chroma_w : 0;
    int source_shift_y = is_chroma ? descriptor->log2_chroma_h : 0;
    int shift = is_chroma && scaling->pixel == WEIR_PIXEL_YUV420P;
    double per_x = ldexp((double)scaling->source_width / scaling->width, shift - source_shift_x);
    double per_y = ldexp((double)scaling->source_height / scaling->height, shift - source_shift_y);

    plane->source_index = descriptor->comp[index].plane;
    plane->source_width = AV_CEIL_RSHIFT(scaling->source_width, source_shift_x);
    plane->source_height = AV_CEIL_RSHIFT(scaling->source_height, source_shift_y);
    plane->width = AV_CEIL_RSHIFT(scaling->window_width, shift);
    plane->height = AV_CEIL_RSHIFT(scaling->window_height, shift);
    int rc = make_column_axis(&plane->x, per_x, scaling->window_x >> shift, plane->width, plane->source_width);
    if (rc == WEIR_OK)
        rc = make_row_axis(&plane->y, per_y, scaling->window_y >> shift, plane->height, plane->source_height);
    plane->column_sums = calloc((size_t)plane->source_width + (size_t)plane->x.num_taps, sizeof *plane->column_sums);
    plane->row = calloc((size_t)plane->width, sizeof *plane->row);
    return rc == WEIR_OK && plane->column_sums && plane->row ? WEIR_OK : WEIR_ENOMEM;
}

static int fast_open(void **state, const weir_scaling *scaling, weir_error *error)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(scaling->source_format);
    int rc = WEIR_OK;
    int most_taps = 1;
    fast *self = calloc(1, sizeof *self);
    if (!self)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    self->scaling = *scaling;
    self->kernels = weir__kernels_best();
    self->num_planes = scaling->pixel == WEIR_PIXEL_GRAY8 ? 1 : descriptor->nb_components;
    self->depth = descriptor->comp[0].depth;
    self->is_rgb = descriptor->flags & AV_PIX_FMT_FLAG_RGB;
    set_matrix(self);
    for (int i = 0; i < self->num_planes && rc == WEIR_OK; i++) {
        rc = set_up_plane(self, i);
        most_taps = FFMAX(most_taps, self->planes[i].y.max_taps);
    }
    self->row_pointers = calloc((size_t)most_taps, sizeof *self->row_pointers);
    self->colours = malloc((size_t)scaling->window_width * 3);
    if (rc != WEIR_OK || !self->row_pointers || !self->colours) {
        fast_close(self);
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    }
    *state = self;
    return WEIR_OK;
}

/* ---- running ------------------------------------------------------------------------------------------------ */

/* Computes one row of the plane in the result's size, in plane->row. */
static void scale_row(const fast *self, const fast_plane *plane, const AVFrame *in, int y)
{
    const row_axis *vertical = &plane->y;
    const int32_t *rows = vertical->rows + (ptrdiff_t)y * vertical->max_taps;
    const uint8_t *data = in->data[plane->source_index];
    ptrdiff_t stride = in->linesize[plane->source_index];
    weir_row_sum sum = {
        .rows = self->row_pointers,
        .weights = vertical->weights + (ptrdiff_t)y * vertical->max_taps,
        .num_positive = vertical->num_positive[y],
        .num_taps = vertical->num_taps[y],
    };
    for (int t = 0; t < sum.num_taps; t++)
        sum.rows[t] = data + rows[t] * stride;
    if (self->depth == 8)
        self->kernels->sum_rows_8(plane->column_sums, &sum, plane->source_width);
    else
        self->kernels->sum_rows_16(plane->column_sums, &sum, plane->source_width, self->depth);
    self->kernels->sum_columns(plane->row, plane->column_sums, plane->x.starts, plane->x.weights, plane->x.num_taps,
                               plane->width);
}

static void round_plane_row(const fast *self, const fast_plane *plane, uint8_t *out)
{
    self->kernels->round(out, plane->row, self->matrix.luma_offset, self->matrix.luma, plane->width);
}

/* One row of red, green and blue, from planes->row. */
static void mix_row(const fast *self, uint8_t *const *colours)
{
    const int16_t *rows[3];
    for (int i = 0; i < 3; i++)
        rows[i] = self->planes[i].row;
    if (!self->is_rgb) {
        self->kernels->mix(colours, rows, &self->matrix, self->scaling.window_width);
        return;
    }
    for (int i = 0; i < 3; i++)
        round_plane_row(self, &self->planes[i], colours[i]);
}

static void write_rgb_row(const fast *self, const weir_planes *out, int y)
{
    int width = self->scaling.window_width;
    bool is_planar = self->scaling.layout == WEIR_LAYOUT_NCHW;
    uint8_t *colours[3];
    for (int i = 0; i < 3; i++)
        colours[i] = is_planar ? out->data[i] + (ptrdiff_t)y * out->stride[i] : self->colours + (ptrdiff_t)i * width;
    if (self->num_planes == 3) {
        mix_row(self, colours);
    } else {
        round_plane_row(self, &self->planes[0], colours[0]);
        memcpy(colours[1], colours[0], (size_t)width);
        memcpy(colours[2], colours[0], (size_t)width);
    }
    if (!is_planar)
        weir__rows_join(colours[0], colours[1], colours[2], out->data[0] + (ptrdiff_t)y * out->stride[0], width, 1);
}

static void write_planes(const fast *self, const AVFrame *in, const weir_planes *out)
{
    for (int i = 0; i < self->num_planes; i++) {
        for (int y = 0; y < self->planes[i].height; y++) {
            scale_row(self, &self->planes[i], in, y);
            round_plane_row(self, &self->planes[i], out->data[i] + (ptrdiff_t)y * out->stride[i]);
        }
    }
}

static int fast_run(void *state, const AVFrame *in, const weir_planes *out, weir_error *error)
{
    const fast *self = state;
    (void)error;
    if (self->scaling.pixel != WEIR_PIXEL_RGB24) {
        write_planes(self, in, out);
        return WEIR_OK;
    }
    for (int y = 0; y < self->scaling.window_height; y++) {
        for (int i = 0; i < self->num_planes; i++)
            scale_row(self, &self->planes[i], in, y);
        write_rgb_row(self, out, y);
    }
    return WEIR_OK;
}

const weir_scaler_op weir__scaler_fast = {
    .kind = WEIR_SCALER_FAST,
    .touch = WEIR_TOUCH_ROWS,
    .open = fast_open,
    .run = fast_run,
    .close = fast_close,
};
