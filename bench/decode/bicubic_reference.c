/* Each plane is scaled row by row, then column by column; samples outside a plane repeat its edge. */
#include "bicubic_reference.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>

/* The taps for one output sample. */
typedef struct taps {
    int first; /* may be before the start of the line */
    int num;
    double *weights;
} taps;

/* Scales a line of samples to another length. */
typedef struct line_scaler {
    int from;
    int to;
    taps *samples; /* [to] */
} line_scaler;

/* The kernel of swscale with its default parameters. */
static double kernel(double x)
{
    const double c = 0.6;
    x = fabs(x);
    if (x < 1)
        return ((12 - 6 * c) * x * x * x + (-18 + 6 * c) * x * x + 6) / 6;
    return x < 2 ? (-6 * c * x * x * x + 30 * c * x * x - 48 * c * x + 24 * c) / 6 : 0;
}

static void line_scaler_free(line_scaler *line)
{
    for (int i = 0; line->samples && i < line->to; i++)
        free(line->samples[i].weights);
    free(line->samples);
}

static bool taps_init(taps *self, double centre, double wide)
{
    double sum = 0;
    self->first = (int)floor(centre - 2 * wide);
    self->num = (int)ceil(centre + 2 * wide) - self->first + 1;
    self->weights = calloc((size_t)self->num, sizeof *self->weights);
    for (int i = 0; self->weights && i < self->num; i++)
        sum += self->weights[i] = kernel((self->first + i - centre) / wide);
    for (int i = 0; self->weights && i < self->num; i++)
        self->weights[i] /= sum;
    return self->weights;
}

/* step: distance between two output samples, in input samples. */
static bool line_scaler_init(line_scaler *line, int from, int to, double step)
{
    *line = (line_scaler){ .from = from, .to = to, .samples = calloc((size_t)to, sizeof(taps)) };
    bool has_all = line->samples;
    for (int i = 0; i < to && has_all; i++)
        has_all = taps_init(&line->samples[i], (i + 0.5) * step - 0.5, fmax(step, 1));
    return has_all;
}

/* Samples lie `pace` apart, in both lines. */
static void scale_line(const line_scaler *line, const double *in, int in_pace, double *out, int out_pace)
{
    for (int i = 0; i < line->to; i++) {
        const taps *sample = &line->samples[i];
        double sum = 0;
        for (int k = 0; k < sample->num; k++)
            sum += sample->weights[k] * in[av_clip(sample->first + k, 0, line->from - 1) * in_pace];
        out[i * out_pace] = sum;
    }
}

/* Rows of one component, each scaled horizontally: [height of the plane][to]. */
static bool scale_rows(const AVFrame *in, int component, int height, const line_scaler *line, double *rows)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(in->format);
    uint16_t *samples = malloc((size_t)line->from * sizeof *samples);
    double *numbers = malloc((size_t)line->from * sizeof *numbers);
    bool has_memory = samples && numbers;
    for (int y = 0; y < height && has_memory; y++) {
        av_read_image_line2(samples, (const uint8_t **)(uintptr_t)in->data, in->linesize, descriptor, 0, y, component,
                            line->from, 0, sizeof *samples);
        for (int x = 0; x < line->from; x++)
            numbers[x] = samples[x];
        scale_line(line, numbers, 1, rows + (size_t)y * (size_t)line->to, 1);
    }
    free(samples);
    free(numbers);
    return has_memory;
}

/*
 * Scales a component to a plane of width × height samples, each of which covers 2^shift pixels of the result in each
 * direction. Values keep the range of the source. NULL = out of memory. The caller frees it.
 */
static double *scale_component(const AVFrame *in, int component, int shift, int width, int height, int plane_width,
                               int plane_height)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(in->format);
    int shift_x = component ? descriptor->log2_chroma_w : 0;
    int shift_y = component ? descriptor->log2_chroma_h : 0;
    int in_width = AV_CEIL_RSHIFT(in->width, shift_x);
    int in_height = AV_CEIL_RSHIFT(in->height, shift_y);
    line_scaler across = { 0 };
    line_scaler down = { 0 };
    double *rows = malloc((size_t)in_height * (size_t)plane_width * sizeof *rows);
    double *plane = calloc((size_t)plane_height * (size_t)plane_width, sizeof *plane);
    bool has_memory =
        rows && plane &&
        line_scaler_init(&across, in_width, plane_width, (double)in->width / width * (1 << shift) / (1 << shift_x)) &&
        line_scaler_init(&down, in_height, plane_height,
                         (double)in->height / height * (1 << shift) / (1 << shift_y)) &&
        scale_rows(in, component, in_height, &across, rows);
    for (int x = 0; x < plane_width && has_memory; x++)
        scale_line(&down, rows + x, plane_width, plane + x, plane_width);
    line_scaler_free(&across);
    line_scaler_free(&down);
    free(rows);
    if (has_memory)
        return plane;
    free(plane);
    return NULL;
}

/* ---- colours ------------------------------------------------------------------------------------------------ */

typedef struct colours {
    double kr;
    double kb;
    double zero;  /* value of black luma */
    double scale; /* factor that maps luma to 0 … 255 */
    double chroma_zero;
    double chroma_scale;
    double to_8_bits; /* factor that maps source values to 8 bits */
} colours;

static bool is_full_range(const AVFrame *in)
{
    switch (in->format) {
    case AV_PIX_FMT_YUVJ411P:
    case AV_PIX_FMT_YUVJ420P:
    case AV_PIX_FMT_YUVJ422P:
    case AV_PIX_FMT_YUVJ440P:
    case AV_PIX_FMT_YUVJ444P: return in->color_range != AVCOL_RANGE_MPEG;
    default: break;
    }
    return in->color_range == AVCOL_RANGE_JPEG;
}

/* The choice of swscale: unknown matrices are BT.601. */
static colours colours_of(const AVFrame *in)
{
    int depth = av_pix_fmt_desc_get(in->format)->comp[0].depth;
    double unit = 1 << (depth - 8);
    bool full = is_full_range(in);
    double full_scale = 255 / (255 * unit + unit - 1);
    colours result = {
        .kr = 0.299,
        .kb = 0.114,
        .zero = full ? 0 : 16 * unit,
        .scale = full ? full_scale : 255 / (219 * unit),
        .chroma_zero = 128 * unit,
        .chroma_scale = full ? full_scale : 255 / (224 * unit),
        .to_8_bits = full ? full_scale : 1 / unit,
    };
    switch (in->colorspace) {
    case AVCOL_SPC_BT709: result.kr = 0.2126, result.kb = 0.0722; break;
    case AVCOL_SPC_FCC: result.kr = 0.30, result.kb = 0.11; break;
    case AVCOL_SPC_SMPTE240M: result.kr = 0.212, result.kb = 0.087; break;
    case AVCOL_SPC_BT2020_NCL:
    case AVCOL_SPC_BT2020_CL: result.kr = 0.2627, result.kb = 0.0593; break;
    default: break;
    }
    return result;
}

static uint8_t round_pixel(double value)
{
    return (uint8_t)lrint(fmax(0, fmin(255, value)));
}

static void put_luma(const double *luma, const colours *how, size_t num_pixels, const bicubic_picture *out)
{
    for (size_t i = 0; i < num_pixels; i++) {
        double y = (luma[i] - how->zero) * how->scale;
        out->gray8[i] = round_pixel(y);
        out->yuv420p[i] = round_pixel(luma[i] * how->to_8_bits);
    }
}

/* u and v: for each pixel. */
static void put_rgb(const double *luma, const double *u, const double *v, const colours *how, size_t num_pixels,
                    uint8_t *rgb)
{
    for (size_t i = 0; i < num_pixels; i++) {
        double y = (luma[i] - how->zero) * how->scale;
        double red = y + 2 * (1 - how->kr) * (v[i] - how->chroma_zero) * how->chroma_scale;
        double blue = y + 2 * (1 - how->kb) * (u[i] - how->chroma_zero) * how->chroma_scale;
        rgb[3 * i] = round_pixel(red);
        rgb[3 * i + 1] = round_pixel((y - how->kr * red - how->kb * blue) / (1 - how->kr - how->kb));
        rgb[3 * i + 2] = round_pixel(blue);
    }
}

/* ---- pictures ----------------------------------------------------------------------------------------------- */

/* The subsampled planes of U and V. */
static bool put_chroma(const AVFrame *in, const colours *how, int width, int height, uint8_t *out)
{
    int plane_width = (width + 1) / 2;
    int plane_height = (height + 1) / 2;
    size_t num_samples = (size_t)plane_width * (size_t)plane_height;
    for (int component = 1; component <= 2; component++) {
        double *plane = scale_component(in, component, 1, width, height, plane_width, plane_height);
        for (size_t i = 0; plane && i < num_samples; i++)
            *out++ = round_pixel((plane[i] - how->chroma_zero) * how->to_8_bits + 128);
        free(plane);
        if (!plane)
            return false;
    }
    return true;
}

static bool is_known(const AVPixFmtDescriptor *descriptor)
{
    const uint64_t unwanted = AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_HWACCEL |
                              AV_PIX_FMT_FLAG_ALPHA | AV_PIX_FMT_FLAG_BAYER | AV_PIX_FMT_FLAG_FLOAT |
                              AV_PIX_FMT_FLAG_RGB;
    return descriptor && !(descriptor->flags & unwanted) && descriptor->comp[0].depth >= 8 &&
           descriptor->nb_components == 3;
}

size_t bicubic_yuv420p_bytes(int width, int height)
{
    return (size_t)width * (size_t)height + 2 * (size_t)((width + 1) / 2) * (size_t)((height + 1) / 2);
}

int bicubic_make(const AVFrame *in, int width, int height, const bicubic_picture *out)
{
    if (!is_known(av_pix_fmt_desc_get(in->format)))
        return 1;
    size_t num_pixels = (size_t)width * (size_t)height;
    colours how = colours_of(in);
    double *planes[3] = { NULL };
    bool has_memory = true;
    for (int i = 0; i < 3 && has_memory; i++) {
        planes[i] = scale_component(in, i, 0, width, height, width, height);
        has_memory = planes[i];
    }
    if (has_memory) {
        put_luma(planes[0], &how, num_pixels, out);
        put_rgb(planes[0], planes[1], planes[2], &how, num_pixels, out->rgb24);
        has_memory = put_chroma(in, &how, width, height, out->yuv420p + num_pixels);
    }
    for (int i = 0; i < 3; i++)
        free(planes[i]);
    return has_memory ? 0 : -1;
}
