/*
 * Pictures of every size, format and place in memory go through rotation, filters and scalers. On both sides of the
 * planes of the source and of the result are pages that nobody may touch. FFmpeg and dav1d test their loops like this
 * (checkasm; --overread). The referee is libavfilter with FFmpeg's own buffers, and for some pictures the ffmpeg
 * program.
 *
 *     WEIR_GEOMETRY_CASES=N    how many (default: DEFAULT_CASES); 0 = all, in an order that mixes everything
 *     WEIR_GEOMETRY_SECONDS=N  ends earlier, after that time (default: never)
 *     WEIR_GEOMETRY_SEED=N     which (default: the time)
 *     WEIR_GEOMETRY_CASE=N     only this one, with the seed that was printed
 *
 * All = formats × places × transformations × resizes × pixels × layouts × scalers × widths. Heights, sizes of results,
 * crops and contents are drawn from the seed and the case's number.
 *
 * Constant here: one thread; one picture for each scaler; sizes up to 1,089; a description of colours that is
 * unspecified; the CPU's own vectors (test_scaler compares those with plain loops); codecs (test_pixels, test_image).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/test_case.h"
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/mathematics.h>
#include <libavutil/pixdesc.h>

#include <weir/collate.h>
#include <weir/engine.h>
#include <weir/files.h>
#include <weir/image.h>

#include "common/random.h"
#include "stages/batch/convert.h"
#include "stages/picture/filter_graph.h"
#include "stages/scale/rotate.h"
#include "stages/scale/scaler.h"
#include "tests/clips.h"
#include "tests/fenced.h"

#ifdef SANITIZED
enum { DEFAULT_CASES = 1500 };
#else
enum { DEFAULT_CASES = 5000 };
#endif

static const enum AVPixelFormat formats[] = {
    AV_PIX_FMT_RGB24,    AV_PIX_FMT_BGR24,       AV_PIX_FMT_RGBA,        AV_PIX_FMT_BGRA,        AV_PIX_FMT_ARGB,
    AV_PIX_FMT_RGB0,     AV_PIX_FMT_RGB565LE,    AV_PIX_FMT_RGB48LE,     AV_PIX_FMT_PAL8,        AV_PIX_FMT_MONOWHITE,
    AV_PIX_FMT_GRAY8,    AV_PIX_FMT_YA8,         AV_PIX_FMT_GRAY16LE,    AV_PIX_FMT_GRAY10LE,    AV_PIX_FMT_GBRP,
    AV_PIX_FMT_GBRAP,    AV_PIX_FMT_GBRP10LE,    AV_PIX_FMT_YUV420P,     AV_PIX_FMT_YUVJ420P,    AV_PIX_FMT_YUV422P,
    AV_PIX_FMT_YUV444P,  AV_PIX_FMT_YUV440P,     AV_PIX_FMT_YUV411P,     AV_PIX_FMT_YUV410P,     AV_PIX_FMT_YUVA420P,
    AV_PIX_FMT_NV12,     AV_PIX_FMT_NV21,        AV_PIX_FMT_YUYV422,     AV_PIX_FMT_UYVY422,     AV_PIX_FMT_P010LE,
    AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUV420P10LE, AV_PIX_FMT_YUV422P10LE, AV_PIX_FMT_YUV444P12LE, AV_PIX_FMT_XYZ12LE,
};

/* Where the picture's planes are. */
typedef enum place {
    ALONE,       /* exactly their bytes, and no more in the buffer */
    PADDED,      /* rows as in FFmpeg's buffers, and the least that FFmpeg leaves behind them */
    CUT,         /* in a larger picture, of which a container or a filter shows this part */
    UPSIDE_DOWN, /* PADDED, and the rows go up */
    NUM_PLACES,
} place;

typedef enum transformation {
    AS_IT_IS,
    TURNED, /* one of seven ways, drawn */
    CROPPED,
    ONE_FIELD,
    FLIPPED,
    NUM_TRANSFORMATIONS,
} transformation;

typedef struct output {
    weir_pixel pixel;
    weir_layout layout;
} output;

static const output outputs[] = {
    { WEIR_PIXEL_RGB24, WEIR_LAYOUT_NHWC },  { WEIR_PIXEL_RGB24, WEIR_LAYOUT_NCHW },
    { WEIR_PIXEL_GRAY8, WEIR_LAYOUT_NHWC },  { WEIR_PIXEL_YUV420P, WEIR_LAYOUT_NHWC },
    { WEIR_PIXEL_RGB48, WEIR_LAYOUT_NHWC },  { WEIR_PIXEL_RGB48, WEIR_LAYOUT_NCHW },
    { WEIR_PIXEL_GRAY16, WEIR_LAYOUT_NHWC }, { WEIR_PIXEL_YUV420P10, WEIR_LAYOUT_NHWC },
};

enum { NUM_FORMATS = sizeof formats / sizeof formats[0], NUM_OUTPUTS = sizeof outputs / sizeof outputs[0] };

/* Widths from 1 to 200, and around the multiples of 64 behind them. */
enum {
    SMALL = 200,
    FIRST_MULTIPLE = 4,
    LAST_MULTIPLE = 17,
    NUM_WIDTHS = SMALL + 3 * (LAST_MULTIPLE - FIRST_MULTIPLE + 1)
};

#define NUM_CASES ((uint64_t)NUM_FORMATS * NUM_PLACES * NUM_TRANSFORMATIONS * 3 * NUM_OUTPUTS * 3 * NUM_WIDTHS)

typedef struct geometry {
    enum AVPixelFormat format;
    int width, height;
    place place;
    int left, top; /* CUT: of the larger picture */
    bool at_start; /* of the fenced memory */
    transformation how;
    int turn;                    /* TURNED: 1 to 7 */
    bool is_unscaled;            /* and it has borders at its sides */
    char filter[128];            /* "" = none */
    int seen_width, seen_height; /* of what the scaler gets; of one field, one row may be missing */
    weir_picture_config config;
    uint64_t random; /* state */
} geometry;

static uint64_t seed;
static uint64_t current_case;
static uint64_t num_refused;

/* ---- drawing ------------------------------------------------------------------------------------------------ */

static int draw_from(geometry *g, int first, int last)
{
    return first + (int)weir__random_below(&g->random, (uint64_t)(last - first) + 1);
}

static int side_of(int number)
{
    int beyond = number - SMALL;
    return number < SMALL ? number + 1 : 64 * (FIRST_MULTIPLE + beyond / 3) + beyond % 3 - 1;
}

/* Most are small: large ones take long. */
static int draw_side(geometry *g)
{
    return side_of(draw_from(g, 0, 9) ? draw_from(g, 0, SMALL - 1) : draw_from(g, SMALL, NUM_WIDTHS - 1));
}

static void draw_filter(geometry *g, int *width, int *height)
{
    if (g->how == CROPPED) { /* whole samples: FFmpeg's exact=1 splits those of 16 bits */
        int cropped_width = draw_from(g, 1, *width), cropped_height = draw_from(g, 1, *height);
        int x = draw_from(g, 0, *width - cropped_width) & ~3, y = draw_from(g, 0, *height - cropped_height) & ~3;
        snprintf(g->filter, sizeof g->filter, "crop=%d:%d:%d:%d:exact=1,", cropped_width, cropped_height, x, y);
        *width = cropped_width;
        *height = cropped_height;
    } else if (g->how == ONE_FIELD && *height > 1) {
        snprintf(g->filter, sizeof g->filter, "field=%s,", draw_from(g, 0, 1) ? "bottom" : "top");
        *height /= 2;
    } else if (g->how == FLIPPED) {
        snprintf(g->filter, sizeof g->filter, "vflip,");
    }
}

/* Results of the picture's own size, of its rows' stride, with borders at one side, and of any size. */
static void draw_result(geometry *g, int width, int height)
{
    switch (g->is_unscaled ? draw_from(g, 1, 2) : draw_from(g, 0, 5)) {
    case 0: break;
    case 1: width = FFALIGN(width, 64); break;
    case 2: width += draw_from(g, 1, SMALL); break;
    case 3: height += draw_from(g, 1, SMALL); break;
    case 4: width = height = draw_side(g); break;
    default:
        width = draw_side(g);
        height = draw_side(g);
        break;
    }
    g->config.width = (uint32_t)width;
    g->config.height = (uint32_t)height;
}

/* Every fourth case is one of those where a library copies or converts whole strides: nothing is scaled, and the result has
   wider rows, often of the source's stride. A picture and a result drawn alone are rarely like that. */
static void draw_unscaled(geometry *g)
{
    enum { NUM_PACKED = 6 };
    if (draw_from(g, 0, 3))
        return;
    g->format = formats[draw_from(g, 0, NUM_PACKED - 1)];
    g->how = g->how == TURNED || g->how == ONE_FIELD ? AS_IT_IS : g->how;
    g->config.resize = WEIR_RESIZE_PAD;
    g->config.pixel = WEIR_PIXEL_RGB24;
    g->config.layout = WEIR_LAYOUT_NHWC;
    g->config.scaler = draw_from(g, 0, 1) ? WEIR_SCALER_EXACT : WEIR_SCALER_DEFAULT;
    g->is_unscaled = true;
}

/* The case of that number. */
static geometry draw_geometry(uint64_t number)
{
    geometry g = { .random = weir__random_seed(seed, number) };
    g.format = formats[number % NUM_FORMATS];
    number /= NUM_FORMATS;
    g.place = (place)(number % NUM_PLACES);
    number /= NUM_PLACES;
    g.how = (transformation)(number % NUM_TRANSFORMATIONS);
    number /= NUM_TRANSFORMATIONS;
    g.config.resize = (weir_resize)(number % 3);
    number /= 3;
    g.config.pixel = outputs[number % NUM_OUTPUTS].pixel;
    g.config.layout = outputs[number % NUM_OUTPUTS].layout;
    number /= NUM_OUTPUTS;
    g.config.scaler = (weir_scaler_kind)(number % 3);
    g.width = side_of((int)(number / 3));
    draw_unscaled(&g);
    g.height = draw_side(&g);
    g.at_start = draw_from(&g, 0, 1);
    g.left = 4 * draw_from(&g, 0, 20);
    g.top = 4 * draw_from(&g, 0, 5);
    g.turn = draw_from(&g, 1, 7);
    int width = g.how == TURNED && g.turn & 1 ? g.height : g.width;
    int height = g.how == TURNED && g.turn & 1 ? g.width : g.height;
    draw_filter(&g, &width, &height);
    draw_result(&g, width, height);
    g.seen_width = width;
    g.seen_height = height;
    return g;
}

static const char *geometry_text(const geometry *g)
{
    static const char *const places[] = { "alone", "padded", "cut", "upside down" };
    static const char *const resizes[] = { "pad", "stretch", "crop" };
    static char text[400];
    snprintf(text, sizeof text,
             "WEIR_GEOMETRY_SEED=%llu WEIR_GEOMETRY_CASE=%llu: %s %d×%d, %s (%d, %d), turn %d, filter \"%s\", %s to "
             "%u×%u, "
             "pixel %d, layout %d, scaler %d, %s",
             (unsigned long long)seed, (unsigned long long)current_case, av_get_pix_fmt_name(g->format), g->width,
             g->height, places[g->place], g->left, g->top, g->how == TURNED ? g->turn : 0, g->filter,
             resizes[g->config.resize], g->config.width, g->config.height, (int)g->config.pixel,
             (int)g->config.layout, (int)g->config.scaler, g->at_start ? "start" : "end");
    return text;
}

static geometry current;

/* A fence was touched. */
static void name_case(int signal_)
{
    const char *text = geometry_text(&current); /* all that it calls is safe enough for a program that ends */
    if (write(STDERR_FILENO, text, strlen(text)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
        _exit(3);
    signal(signal_, SIG_DFL);
    raise(signal_);
}

static uint64_t number_from(const char *name, uint64_t default_value)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : default_value;
}

/* ---- the source ---------------------------------------------------------------------------------------------- */

static void unmap(void *opaque, uint8_t *data)
{
    fenced *memory = opaque;
    (void)data;
    fenced_free(memory);
    free(memory);
}

static int plane_height(enum AVPixelFormat format, int plane, int height)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(format);
    return plane == 1 || plane == 2 ? AV_CEIL_RSHIFT(height, descriptor->log2_chroma_h) : height;
}

static bool is_shown_in_parts(enum AVPixelFormat format)
{
    return !(av_pix_fmt_desc_get(format)->flags & AV_PIX_FMT_FLAG_BITSTREAM);
}

/* The bytes from a plane's first row to its row and column there. */
static ptrdiff_t plane_offset(const geometry *g, int plane, int linesize, int x, int y)
{
    const AVPixFmtDescriptor *descriptor = av_pix_fmt_desc_get(g->format);
    bool is_chroma = plane == 1 || plane == 2;
    int step = 0;
    for (int i = descriptor->nb_components - 1; i >= 0; i--)
        step = descriptor->comp[i].plane == plane ? descriptor->comp[i].step : step;
    return (ptrdiff_t)(y >> (is_chroma ? descriptor->log2_chroma_h : 0)) * linesize +
           (x >> (is_chroma ? descriptor->log2_chroma_w : 0)) * step;
}

/* One plane in memory of its own, with nothing in the buffer but what the place has. */
static void place_plane(const geometry *g, AVFrame *frame, int plane, int linesize, int rows)
{
    enum { BEHIND_BYTES = 32 }; /* av_frame_get_buffer(): the least of all its planes, with the shortest vectors */
    bool is_cut = g->place == CUT && is_shown_in_parts(g->format);
    ptrdiff_t start = is_cut ? plane_offset(g, plane, linesize, g->left, g->top) : 0;
    size_t row_bytes = (size_t)av_image_get_linesize(g->format, g->width, plane);
    size_t size_bytes = (size_t)start + (size_t)(rows - 1) * (size_t)linesize + row_bytes;
    if (g->place == PADDED || g->place == UPSIDE_DOWN)
        size_bytes = (size_t)rows * (size_t)linesize + BEHIND_BYTES;
    fenced *memory = malloc(sizeof *memory);
    assert_non_null(memory);
    *memory = fenced_new(size_bytes, g->at_start);
    frame->buf[plane] = av_buffer_create(memory->data, size_bytes, unmap, memory, 0);
    assert_non_null(frame->buf[plane]);
    frame->data[plane] = memory->data + start;
    frame->linesize[plane] = linesize;
    if (g->place == UPSIDE_DOWN) {
        frame->data[plane] += (ptrdiff_t)(rows - 1) * linesize;
        frame->linesize[plane] = -linesize;
    }
}

static AVFrame *new_frame(const geometry *g)
{
    AVFrame *frame = av_frame_alloc();
    assert_non_null(frame);
    frame->format = g->format;
    frame->width = g->width;
    frame->height = g->height;
    return frame;
}

/* An empty picture at its place. */
static AVFrame *place_picture(const geometry *g)
{
    AVFrame *frame = new_frame(g);
    int linesize[4];
    int row_pixels = g->place == ALONE ? g->width : FFALIGN(g->width + (g->place == CUT ? g->left : 0), 64);
    int num_planes = av_pix_fmt_count_planes(g->format);
    assert_true(av_image_fill_linesizes(linesize, g->format, row_pixels) >= 0);
    for (int i = 0; i < num_planes; i++)
        place_plane(g, frame, i, linesize[i], plane_height(g->format, i, g->height));
    if (g->format == AV_PIX_FMT_PAL8) {
        frame->buf[1] = av_buffer_alloc(AVPALETTE_SIZE);
        assert_non_null(frame->buf[1]);
        frame->data[1] = frame->buf[1]->data;
    }
    return frame;
}

/* The largest sample with the values of the format; samples of 16 bits are all alike. */
static uint16_t sample_mask(enum AVPixelFormat format)
{
    const AVComponentDescriptor *first = av_pix_fmt_desc_get(format)->comp;
    bool is_word = first->depth > 8;
    return (uint16_t)(is_word ? ((1U << first->depth) - 1) << first->shift : 0xffff);
}

/* Noise, in what FFmpeg calls an ordinary picture. */
static AVFrame *draw_picture(geometry *g)
{
    AVFrame *frame = new_frame(g);
    uint16_t mask = sample_mask(g->format);
    assert_int_equal(av_frame_get_buffer(frame, 0), 0);
    for (int plane = 0; plane < av_pix_fmt_count_planes(g->format); plane++) {
        int row_bytes = av_image_get_linesize(g->format, g->width, plane);
        for (int y = 0; y < plane_height(g->format, plane, g->height); y++) {
            uint8_t *row = frame->data[plane] + (ptrdiff_t)y * frame->linesize[plane];
            for (int x = 0; x < row_bytes; x += 2) {
                uint16_t word = (uint16_t)weir__random_next(&g->random) & mask;
                memcpy(row + x, &word, (size_t)FFMIN(2, row_bytes - x));
            }
        }
    }
    for (int i = 0; g->format == AV_PIX_FMT_PAL8 && i < AVPALETTE_SIZE; i++)
        frame->data[1][i] = (uint8_t)weir__random_next(&g->random);
    return frame;
}

static AVFrame *copy_to_place(const geometry *g, const AVFrame *from)
{
    AVFrame *frame = place_picture(g);
    assert_int_equal(av_frame_copy(frame, from), 0);
    return frame;
}

/* The bytes of the buffer behind a row, which FFmpeg may look at, are the same in both; where there are none, 0. */
static void copy_surroundings(AVFrame *to, const AVFrame *placed)
{
    enum { SEEN_BYTES = 32 };
    for (int plane = 0; plane < av_pix_fmt_count_planes(to->format); plane++) {
        int row_bytes = av_image_get_linesize(to->format, to->width, plane);
        for (int y = 0; y < plane_height(to->format, plane, to->height); y++) {
            const uint8_t *end = placed->buf[plane]->data + placed->buf[plane]->size;
            const uint8_t *from = placed->data[plane] + (ptrdiff_t)y * placed->linesize[plane] + row_bytes;
            uint8_t *behind = to->data[plane] + (ptrdiff_t)y * to->linesize[plane] + row_bytes;
            for (int i = 0; i < FFMIN(SEEN_BYTES, to->linesize[plane] - row_bytes); i++)
                behind[i] = from + i < end ? from[i] : 0;
        }
    }
}

/* ---- what is tested ------------------------------------------------------------------------------------------ */

static void turn_picture(AVFrame *frame, int turn)
{
    AVFrameSideData *data = av_frame_new_side_data(frame, AV_FRAME_DATA_DISPLAYMATRIX, 9 * sizeof(int32_t));
    assert_non_null(data);
    av_display_rotation_set((int32_t *)data->data, 90.0 * (turn & 3));
    av_display_matrix_flip((int32_t *)data->data, turn >> 2, 0);
}

typedef struct chain {
    weir_rotator rotator;
    weir_filter filter;
    weir_scaler scaler;
} chain;

static void chain_free(chain *c)
{
    weir__scaler_reset(&c->scaler);
    weir__filter_reset(&c->filter);
    weir__rotator_free(&c->rotator);
}

/* The picture that comes out of this filter. */
static const AVFrame *filter_picture(weir_filter *filter, const AVFrame *in)
{
    weir_error error = { 0 };
    const AVFrame *out = NULL;
    if (weir__filter_put(filter, in, 0, (AVRational){ 1, 25 }, &error) != WEIR_OK ||
        weir__filter_get(filter, &out, &error) != WEIR_OK)
        fail_msg("%s, %s: %s", geometry_text(&current), filter->description, error.message);
    return out;
}

/* The whole way of a picture, as in the decode stages. False = swscale refuses such a ratio of sizes. */
static bool run_chain(const geometry *g, const AVFrame *in, uint8_t *out)
{
    char description[sizeof g->filter];
    weir_error error = { 0 };
    chain c = { 0 };
    snprintf(description, sizeof description, "%s", g->filter);
    int rc = weir__rotator_run(&c.rotator, NULL, in, &in, &error);
    if (rc == WEIR_OK && description[0]) {
        description[strlen(description) - 1] = '\0'; /* the comma */
        c.filter.description = description;
        in = filter_picture(&c.filter, in);
    }
    weir__scaler_set(&c.scaler, &g->config, (int)g->config.width, (int)g->config.height);
    if (rc == WEIR_OK)
        rc = weir__scaler_run(&c.scaler, in, out, &error);
    if (rc != WEIR_OK && !strstr(error.message, "cannot scale this kind of picture"))
        fail_msg("%s: %s", geometry_text(g), error.message);
    chain_free(&c);
    return rc == WEIR_OK;
}

/* ---- the referees -------------------------------------------------------------------------------------------- */

/* FFmpeg's scale filter takes a side that is rounded to 0 for the source's own; weir's has 1 to INT16_MAX pixels. */
static bool is_extreme(const geometry *g)
{
    int64_t width = av_rescale(g->config.height, g->seen_width, g->seen_height);
    int64_t height = av_rescale(g->config.width, g->seen_height, g->seen_width);
    return g->config.resize != WEIR_RESIZE_STRETCH &&
           (width == 0 || height == 0 || width > INT16_MAX || height > INT16_MAX);
}

/* ffmpeg's words for what the exact scaler does, as scaler_exact.c has them; false = there are none for this case. */
static bool describe_chain(const geometry *g, char *text, size_t size_bytes)
{
    unsigned width = g->config.width, height = g->config.height;
    bool is_misread =
        g->format == AV_PIX_FMT_XYZ12LE && (g->how == FLIPPED || g->place == UPSIDE_DOWN); /* by swscale */
    if (is_misread || g->config.scaler != WEIR_SCALER_EXACT || g->config.pixel != WEIR_PIXEL_RGB24 ||
        g->how == TURNED || is_extreme(g))
        return false;
    switch (g->config.resize) {
    case WEIR_RESIZE_STRETCH:
        snprintf(text, size_bytes, "%sscale=%u:%u:flags=bicubic,format=rgb24", g->filter, width, height);
        break;
    case WEIR_RESIZE_PAD:
        snprintf(text, size_bytes,
                 "%sscale=%u:%u:flags=bicubic:force_original_aspect_ratio=decrease,pad=%u:%u:(ow-iw)/2:(oh-ih)/2,"
                 "format=rgb24",
                 g->filter, width, height, width, height);
        break;
    case WEIR_RESIZE_CROP:
        snprintf(text, size_bytes,
                 "%sscale=%u:%u:flags=bicubic:force_original_aspect_ratio=increase,crop=%u:%u,format=rgb24",
                 g->filter, width, height, width, height);
        break;
    }
    return true;
}

/* Rows of red, green and blue as in the result. */
static void copy_rgb(const geometry *g, const uint8_t *from, ptrdiff_t stride, uint8_t *out)
{
    size_t width = g->config.width, height = g->config.height;
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++) {
            for (size_t i = 0; i < 3; i++) {
                size_t to = g->config.layout == WEIR_LAYOUT_NCHW ? i * width * height + y * width + x
                                                                 : (y * width + x) * 3 + i;
                out[to] = from[(ptrdiff_t)y * stride + (ptrdiff_t)(3 * x + i)];
            }
        }
    }
}

/* By libavfilter, or else by the chain itself from an ordinary picture. */
static void make_wanted(const geometry *g, const AVFrame *picture, uint8_t *wanted)
{
    char description[512];
    if (!describe_chain(g, description, sizeof description)) {
        assert_true(run_chain(g, picture, wanted));
        return;
    }
    weir_filter filter = { .description = description };
    const AVFrame *out = filter_picture(&filter, picture);
    assert_int_equal(out->width, g->config.width);
    assert_int_equal(out->height, g->config.height);
    copy_rgb(g, out->data[0], out->linesize[0], wanted);
    weir__filter_reset(&filter);
}

/* ---- one case ------------------------------------------------------------------------------------------------ */

enum { EARLIER_BYTES = 64, EARLIER = 0x5a };

/* The result's memory: room for it and its slack, behind the last bytes of another picture. */
static fenced new_result(const geometry *g, size_t picture_bytes, uint8_t **out)
{
    size_t earlier_bytes = g->at_start ? 0 : EARLIER_BYTES;
    fenced memory = fenced_new(earlier_bytes + picture_bytes + WEIR_SCALER_SLACK_BYTES, g->at_start);
    memset(memory.data, EARLIER, memory.size_bytes);
    *out = memory.data + earlier_bytes;
    return memory;
}

/* FFmpeg's filter shows more chroma rows than a field has, if the height is not a multiple: their content is
   undefined. */
static bool is_defined(const geometry *g)
{
    return g->how != ONE_FIELD || g->height % (2 << av_pix_fmt_desc_get(g->format)->log2_chroma_h) == 0;
}

static void assert_case(uint64_t number)
{
    uint8_t *made;
    current_case = number;
    current = draw_geometry(number);
    AVFrame *picture = draw_picture(&current);
    AVFrame *placed = copy_to_place(&current, picture);
    copy_surroundings(picture, placed);
    size_t picture_bytes =
        weir__scaler_picture_bytes(current.config.pixel, current.config.width, current.config.height);
    uint8_t *wanted = malloc(picture_bytes + WEIR_SCALER_SLACK_BYTES);
    fenced memory = new_result(&current, picture_bytes, &made);
    assert_non_null(wanted);
    if (current.how == TURNED) {
        turn_picture(picture, current.turn);
        turn_picture(placed, current.turn);
    }
    bool is_made = run_chain(&current, placed, made);
    num_refused += !is_made;
    if (is_made)
        make_wanted(&current, picture, wanted);
    for (uint8_t *before = memory.data; before < made; before++)
        if (*before != EARLIER)
            fail_msg("%s: the picture before it has changed", geometry_text(&current));
    for (size_t i = 0; is_made && is_defined(&current) && i < picture_bytes; i++)
        if (made[i] != wanted[i])
            fail_msg("%s: byte %zu of %zu is %d, not %d", geometry_text(&current), i, picture_bytes, made[i],
                     wanted[i]);
    free(wanted);
    fenced_free(&memory);
    av_frame_free(&placed);
    av_frame_free(&picture);
}

/* A step that has no factor in common with the number of cases mixes them all. */
static uint64_t mixed_case(uint64_t i)
{
    enum { STEP = 1000003 };
    return (i * STEP + seed) % NUM_CASES;
}

TEST_CASE(pictures_of_every_geometry_touch_only_their_own_bytes_and_are_ffmpegs)
{
    seed = number_from("WEIR_GEOMETRY_SEED", (uint64_t)time(NULL));
    uint64_t num_cases = number_from("WEIR_GEOMETRY_CASES", DEFAULT_CASES);
    int64_t end_ns = weir_clock_ns() + (int64_t)number_from("WEIR_GEOMETRY_SECONDS", 1000000) * WEIR_SECOND;
    uint64_t num_done = 0;
    num_cases = num_cases && num_cases < NUM_CASES ? num_cases : NUM_CASES;
    fprintf(stderr, "WEIR_GEOMETRY_SEED=%llu, %llu of %llu cases\n", (unsigned long long)seed,
            (unsigned long long)num_cases, (unsigned long long)NUM_CASES);
    signal(SIGSEGV, name_case);
    signal(SIGABRT, name_case);
    signal(SIGTERM, name_case);
    if (getenv("WEIR_GEOMETRY_CASE")) {
        assert_case(number_from("WEIR_GEOMETRY_CASE", 0));
        return;
    }
    for (; num_done < num_cases && weir_clock_ns() < end_ns; num_done++)
        assert_case(mixed_case(num_done));
    fprintf(stderr, "geometry %llu, refused %llu\n", (unsigned long long)num_done, (unsigned long long)num_refused);
    assert_true(num_refused <= num_done / 20);
}

/* ---- the program --------------------------------------------------------------------------------------------- */

/* swscale looks at a pixel behind a row of odd width, and FFmpeg's reader of raw video has another one there than others. */
static bool looks_behind(const geometry *g)
{
    return (av_pix_fmt_desc_get(g->format)->flags & AV_PIX_FMT_FLAG_RGB) && (g->width | g->seen_width) & 1;
}

static void assert_as_program(uint64_t number)
{
    char options[128], description[512];
    size_t expected_bytes;
    const char *path = clips_path("picture.raw");
    current_case = number;
    current = draw_geometry(number);
    current.config.scaler = WEIR_SCALER_EXACT;
    current.config.pixel = WEIR_PIXEL_RGB24;
    current.config.layout = WEIR_LAYOUT_NHWC;
    if (current.format == AV_PIX_FMT_PAL8 || looks_behind(&current) || !is_defined(&current) ||
        !describe_chain(&current, description, sizeof description))
        return;
    size_t picture_bytes = (size_t)current.config.width * current.config.height * 3;
    AVFrame *picture = draw_picture(&current);
    int raw_bytes = av_image_get_buffer_size(current.format, current.width, current.height, 1);
    uint8_t *raw = malloc((size_t)raw_bytes);
    assert_non_null(raw);
    av_image_copy_to_buffer(raw, raw_bytes, (const uint8_t *const *)picture->data, picture->linesize, current.format,
                            current.width, current.height, 1);
    clips_write(path, raw, (size_t)raw_bytes);
    snprintf(options, sizeof options, "-f rawvideo -pixel_format %s -video_size %dx%d",
             av_get_pix_fmt_name(current.format), current.width, current.height);
    uint8_t *expected = clips_decode_with(options, path, description, &expected_bytes);
    uint8_t *made = malloc(picture_bytes + WEIR_SCALER_SLACK_BYTES);
    assert_non_null(made);
    if (run_chain(&current, picture, made) &&
        (expected_bytes != picture_bytes || memcmp(made, expected, expected_bytes) != 0))
        fail_msg("%s: not the bytes of ffmpeg -vf %s", geometry_text(&current), description);
    free(made);
    free(expected);
    free(raw);
    av_frame_free(&picture);
}

/* The referee above is a library that weir is linked with, set up by weir's own code. */
TEST_CASE(some_of_them_are_those_of_the_ffmpeg_program)
{
    enum { NUM_SAMPLES = 12 };
    seed = number_from("WEIR_GEOMETRY_SEED", (uint64_t)time(NULL));
    uint64_t num_samples = number_from("WEIR_GEOMETRY_CASES", NUM_SAMPLES);
    num_samples = num_samples > 0 && num_samples < NUM_SAMPLES ? num_samples : NUM_SAMPLES;
    fprintf(stderr, "WEIR_GEOMETRY_SEED=%llu\n", (unsigned long long)seed);
    for (uint64_t i = 0; i < num_samples; i++)
        assert_as_program(mixed_case(i));
}

/* ---- batches ------------------------------------------------------------------------------------------------- */

/* Each number of values, so each rest of vectors, at both ends of its memory. */
TEST_CASE(values_are_converted_within_their_memory)
{
    static const double mean[3] = { 0.4, 0.5, 0.6 }, deviation[3] = { 0.2, 0.3, 0.4 };
    enum { MAX_VALUES = 200 };
    for (int way = 0; way < 2 * WEIR_DTYPE_UINT16;
         way++) { /* each type of floats and that of the pixels, from both sizes */
        weir_pixel pixel = way % 2 ? WEIR_PIXEL_RGB48 : WEIR_PIXEL_RGB24;
        int dtype = way < 2 ? (way ? WEIR_DTYPE_UINT16 : WEIR_DTYPE_UINT8) : way / 2;
        size_t value_bytes = weir_pixel_value_bytes(pixel);
        weir_conversion conversion = weir__conversion_make((weir_dtype)dtype, pixel, mean, deviation, -1);
        for (size_t num_values = 1; num_values <= MAX_VALUES; num_values++) {
            size_t num_bytes = num_values * weir_dtype_bytes((weir_dtype)dtype);
            uint32_t wanted[MAX_VALUES];
            for (int at_start = 0; at_start < 2; at_start++) {
                fenced from = fenced_new(num_values * value_bytes, at_start), to = fenced_new(num_bytes, at_start);
                for (size_t i = 0; i < num_values * value_bytes; i++)
                    from.data[i] = (uint8_t)(i * 37);
                weir__convert(&conversion, to.data, from.data, num_values);
                weir__convert_plain(&conversion, wanted, from.data, num_values);
                assert_memory_equal(to.data, wanted, num_bytes);
                fenced_free(&from);
                fenced_free(&to);
            }
        }
    }
}

enum { MAX_BLOCKS = 16 };

typedef struct user_memory {
    fenced blocks[MAX_BLOCKS];
    int num_released;
} user_memory;

/* One thread: the stage has one slot, and batches are freed before the next is asked for. */
static void *allocate_block(void *self, size_t num_bytes)
{
    user_memory *memory = self;
    for (int i = 0; i < MAX_BLOCKS; i++)
        if (!memory->blocks[i].mapping) {
            memory->blocks[i] = fenced_new(num_bytes, false);
            return memory->blocks[i].data;
        }
    return NULL;
}

static void release_block(void *self, void *data, size_t num_bytes)
{
    user_memory *memory = self;
    for (int i = 0; i < MAX_BLOCKS; i++)
        if (memory->blocks[i].mapping && memory->blocks[i].data == data) {
            assert_int_equal(memory->blocks[i].size_bytes, num_bytes);
            fenced_free(&memory->blocks[i]);
            memory->num_released++;
        }
}

/* Collates three pictures of different sizes in memory of the user's. Returns the number of batches. */
static int collate_pictures(const char *const *paths, const weir_collate_config *config, weir_layout layout)
{
    weir_error error = { 0 };
    weir_pipeline *pipeline = NULL;
    weir_item item;
    int num_batches = 0;
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = 3 }, NULL);
    weir_pipe_image(builder, &(weir_image_config){ WEIR_WITH_PICTURE(.layout = layout) }, NULL);
    weir_pipe_collate(builder, config, NULL);
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, &(weir_pipeline_options){ .threads = 1 }, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        assert_int_equal(((const weir_collated *)item.data)->num_items, 3);
        weir_item_release(&item);
        num_batches++;
    }
    weir_pipeline_free(pipeline);
    return num_batches;
}

/* Every type, layout and crop. Constant: three pictures of fixed sizes in a batch, one thread, one frame each. */
TEST_CASE(batches_are_written_within_the_users_memory)
{
    const char *paths[3];
    paths[0] = clips_make("61.png", "-f lavfi -i testsrc2=s=61x47 -frames:v 1 -pix_fmt rgb24");
    paths[1] = clips_make("33.png", "-f lavfi -i testsrc2=s=33x64 -frames:v 1 -pix_fmt rgb24");
    paths[2] = clips_make("20.png", "-f lavfi -i testsrc2=s=20x19 -frames:v 1 -pix_fmt rgb24");
    for (int number = 0; number < 4 * 3 * 2 * 4; number++) {
        user_memory memory = { 0 };
        weir_allocator *allocator;
        assert_int_equal(
            weir_allocator_new(
                &(weir_allocator_config){ .self = &memory, .allocate = allocate_block, .free = release_block },
                &allocator, NULL),
            WEIR_OK);
        bool is_cropped = number / 24 > 0;
        weir_collate_config config = {
            .num_items = 3,
            .dtype = (weir_dtype)(number % 4),
            .layout = (weir_collate_layout)(number / 4 % 3),
            .crop_width = is_cropped ? 17 : 0,
            .crop_height = is_cropped ? 13 : 0,
            .crop = is_cropped ? (weir_crop)(number / 24 - 1) : WEIR_CROP_CENTER,
            .flip = 0.5,
            .allocator = allocator,
        };
        assert_int_equal(collate_pictures(paths, &config, (weir_layout)(number / 12 % 2)), 1);
        assert_int_equal(memory.num_released, 0); /* the program owns it still */
        weir_allocator_free(allocator);
        assert_int_equal(memory.num_released, 1);
    }
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
