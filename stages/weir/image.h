/*
 * The still image stage: the input is a picture's path, the output its pixels. It decodes JPEG, PNG, WebP, BMP, TIFF
 * and all other formats that FFmpeg supports; of an animation, the first picture.
 *
 * In: an item whose data is a path or a URL (a char *), a weir_entry *, or the file itself (a weir_bytes *). Out: an
 * item whose data is a weir_frames * with one frame (freed with weir_frames_free()), made as the video stage makes
 * its frames, and whose size_bytes is all the memory it takes. The alpha channel is dropped. Failures are those of
 * weir_video_decode; a damaged picture that can still be decoded counts in num_errors or num_corrupt_frames.
 *
 * The format is detected from the bytes, not from the name.
 */
#ifndef WEIR_IMAGE_H
#define WEIR_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/op.h>
#include <weir/pipeline.h>
#include <weir/version.h>
#include <weir/video.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Setting this struct to all-zero is equivalent to defaults. All fields except max_file_bytes are as in
   weir_video_config. */
typedef struct weir_image_config {
    uint32_t width;  /* (0 = that of the picture) */
    uint32_t height; /* (0 = that of the picture) */
    weir_resize resize;
    weir_pixel pixel;
    weir_layout layout;
    weir_scaler_kind scaler;
    bool no_autorotate;      /* by default the camera's orientation (EXIF) is applied */
    uint64_t max_pixels;     /* of the picture in the file (0 = 2^26) */
    uint64_t max_file_bytes; /* of a path or URL, which is read into memory (0 = 256 MiB) */
    uint32_t allow;          /* WEIR_ALLOW_… flags of bytes.h (0 = none) */
    uint64_t max_decoder_bytes;
    uint64_t max_all_decoder_bytes;
    int32_t io_thread;
    int64_t io_timeout_ns;
    uint8_t lowres; /* JPEG, for example */
    const char *ca_file;
} weir_image_config;

extern WEIR_API const weir_op weir_image_decode;

/* Adds the stage to the builder; see weir_builder_pipe(). */
static inline void weir_pipe_image(weir_builder *builder, const weir_image_config *config,
                                   const weir_stage_options *options)
{
    weir_builder_pipe(builder, &weir_image_decode, config, sizeof *config, options);
}

#ifdef __cplusplus
}
#endif

#endif
