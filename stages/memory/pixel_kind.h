/* What the kinds of pixels have in common: every question about a weir_pixel is answered here. Internal. Any thread. */
#ifndef STAGES_MEMORY_PIXEL_KIND_H
#define STAGES_MEMORY_PIXEL_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/picture_config.h>

/* The last one. */
enum { WEIR_PIXEL_LAST = WEIR_PIXEL_YUV420P10 };

/* As weir_frames.channels: 3, 1, or 0 for planes of two sizes. */
static inline uint32_t weir__pixel_channels(weir_pixel pixel)
{
    switch (pixel) {
    case WEIR_PIXEL_GRAY8:
    case WEIR_PIXEL_GRAY16: return 1;
    case WEIR_PIXEL_YUV420P:
    case WEIR_PIXEL_YUV420P10: return 0;
    case WEIR_PIXEL_RGB24:
    case WEIR_PIXEL_RGB48: break;
    }
    return 3;
}

static inline bool weir__pixel_is_yuv(weir_pixel pixel)
{
    return weir__pixel_channels(pixel) == 0;
}

#endif
