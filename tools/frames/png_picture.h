/* Writes one picture as PNG with FFmpeg's encoder. */
#ifndef TOOLS_FRAMES_PNG_PICTURE_H
#define TOOLS_FRAMES_PNG_PICTURE_H

#include <stdio.h>

#include <weir/status.h>
#include <weir/video.h>

/* Writes frame `index` of rgb24 (nhwc) or gray8 frames. WEIR_OK, or the failure with *error filled; write errors are
   in ferror(file). */
int png_picture_write(const weir_frames *frames, uint32_t index, FILE *file, weir_error *error);

#endif
