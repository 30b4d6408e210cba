/*
 * Where `weir frames` writes: a .npy file, raw frames, or PNG pictures; to a file or to stdout. Files are renamed
 * into place when they are complete.
 */
#ifndef TOOLS_FRAMES_FRAME_OUTPUT_H
#define TOOLS_FRAMES_FRAME_OUTPUT_H

#include <weir/status.h>
#include <weir/video.h>

#include "tools/cli/output_check.h"

typedef enum frame_format {
    FRAME_FORMAT_NPY = 0,
    FRAME_FORMAT_RAW, /* the frames one after the other, nothing else */
    FRAME_FORMAT_PNG, /* a picture for each frame; to stdout, one after the other */
} frame_format;

typedef struct frame_output frame_output;

/* Sets the format for a file's extension. The format of stdout ("-") is raw; that of a name without an extension is
   an array. False: the format of this extension cannot be written. */
bool frame_format_of(const char *path, frame_format *format);

/* path "-": stdout. For PNG the first %d or %04d in the path becomes the frame's number; without one, only one frame
   is allowed. The rules are those for the path, and are used until it is closed. WEIR_OK, or the
   failure with *error filled and *output NULL. One output at a time. */
int frame_output_open(const char *path, frame_format format, const weir_output_rules *rules, frame_output **output,
                      weir_error *error);

/* Writes the frames. WEIR_OK, or the failure with *error filled; then call only frame_output_abort(). */
int frame_output_add(frame_output *output, const weir_frames *frames, weir_error *error);

/* Completes the output and frees it, even on failure. WEIR_OK, or the failure with *error filled. */
int frame_output_close(frame_output *output, weir_error *error);

/* Removes incomplete files and frees the output. Complete pictures stay. NULL is fine. */
void frame_output_abort(frame_output *output);

#endif
