/*
 * What is made of a decoded picture: size, pixels, layout. Every stage that makes pictures takes this struct by pointer and
 * size:
 *
 *     weir_video_config video = { WEIR_WITH_PICTURE(.width = 224, .height = 224, .resize = WEIR_RESIZE_CROP) };
 */
#ifndef WEIR_PICTURE_CONFIG_H
#define WEIR_PICTURE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a picture is fitted to width × height. */
typedef enum weir_resize {
    WEIR_RESIZE_PAD = 0, /* the largest picture that fits, aspect kept, centred on black */
    WEIR_RESIZE_STRETCH, /* exactly width × height, aspect not kept */
    WEIR_RESIZE_CROP,    /* the smallest picture that covers width × height, aspect kept, cropped to its centre */
} weir_resize;

/* How a pixel is stored. Values of 16 and 10 bits are 16-bit numbers in the byte order of the CPU. They keep the precision of
   sources with more than 8 bits. The exact scaler always makes them. */
typedef enum weir_pixel {
    WEIR_PIXEL_RGB24 = 0, /* three bytes: red, green, blue */
    WEIR_PIXEL_GRAY8,     /* one byte: luma, 0 black to 255 white */
    WEIR_PIXEL_YUV420P,   /* one plane each of Y, U and V; U and V have half the width and height, rounded up;
                             colour matrix and range are those of the file (weir_frames.matrix, .full_range) */
    WEIR_PIXEL_RGB48,     /* three 16-bit values: red, green, blue, 0 to 65535 */
    WEIR_PIXEL_GRAY16,    /* one 16-bit value: luma, 0 black to 65535 white */
    WEIR_PIXEL_YUV420P10, /* as YUV420P, in 16-bit values of 0 to 1023; borders have a U and V of 512 (ffmpeg's pad: 514) */
} weir_pixel;

/* Bytes of one value. */
static inline size_t weir_pixel_value_bytes(weir_pixel pixel)
{
    return pixel >= WEIR_PIXEL_RGB48 ? 2 : 1;
}

/* The largest value: 255, 65535 or 1023. */
static inline uint16_t weir_pixel_max_value(weir_pixel pixel)
{
    return pixel == WEIR_PIXEL_YUV420P10 ? 1023 : pixel >= WEIR_PIXEL_RGB48 ? 65535 : 255;
}

/* The order of the values of a picture. It matters only for RGB. */
typedef enum weir_layout {
    WEIR_LAYOUT_NHWC = 0, /* pixel by pixel: [frames][height][width][3] */
    WEIR_LAYOUT_NCHW,     /* plane by plane: [frames][3][height][width], the same values */
} weir_layout;

/*
 * The scaler, which also converts pixel formats. All have the same kernel (FFmpeg's bicubic, widened for smaller
 * pictures), colours and chroma siting; they differ in rounding and speed (docs/scaling.md has measurements). Where a
 * scaler does not support the source's pixel format or the requested size, the exact one is used instead.
 */
typedef enum weir_scaler_kind {
    WEIR_SCALER_DEFAULT = 0, /* the fastest on this CPU that is at least as accurate as FFmpeg's own */
    WEIR_SCALER_EXACT,       /* FFmpeg's swscale: byte for byte what `ffmpeg -vf scale=…:flags=bicubic` makes */
    WEIR_SCALER_FAST,        /* weir's own, 16-bit: the same bytes on every CPU, fast on those with AVX2 */
} weir_scaler_kind;

/* Setting this struct to all-zero is equivalent to defaults. Copied, with its strings. */
typedef struct weir_picture_config {
    /* The size of the result, in pixels. Both sides are set: `resize` says how pictures fit. One of them, or longest
       or shortest, is set: the other side follows from the first picture's, with its aspect, rounded to the nearest
       pixel, as ffmpeg's scale=320:-1 does. None is set: the size is that of the first picture. The first picture
       counts as it is after rotation and filter. */
    uint32_t width;
    uint32_t height;
    uint32_t longest;        /* of the two sides. Not with width and height */
    uint32_t shortest;       /* of the two sides. Not with the others */
    weir_resize resize;      /* (default WEIR_RESIZE_PAD) */
    weir_pixel pixel;        /* (default WEIR_PIXEL_RGB24) */
    weir_layout layout;      /* (default WEIR_LAYOUT_NHWC) */
    weir_scaler_kind scaler; /* (default WEIR_SCALER_DEFAULT); choose one to get the same bytes from every build */
    /* Pictures stay as they are coded. By default, the rotation in the file is applied. Of a video this is the
       display matrix (rotation by 90 degrees, mirrors), as the ffmpeg program does. Of a still image it is the
       camera's orientation (EXIF). */
    bool no_autorotate;
    /* Of videos: FFmpeg filters that are applied before scaling, in FFmpeg's syntax ("crop=in_w/2:in_h,hflip"; NULL = none).
       They must have one input and one output, and weir must have been built with libavfilter. The filters get the frames that
       sampling selects, in presentation order; a repeated frame goes through them each time. Explicit indices or times must
       increase. chunk_frames and max_frames count the frames that come out of the filters, min_share those that go in. */
    const char *filter;
} weir_picture_config;

/* Sets the members .picture and .picture_size in the initialiser of another config (C only). The struct that .picture points to
   lives as long as the enclosing block. */
#define WEIR_WITH_PICTURE(...) \
    .picture = &(const weir_picture_config){ __VA_ARGS__ }, .picture_size = sizeof(weir_picture_config)

#ifdef __cplusplus
}
#endif

#endif
