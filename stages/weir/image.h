/*
 * The still image stage: the input is a picture's path, the output its pixels. It decodes JPEG, PNG, WebP, BMP, TIFF
 * and all other formats that FFmpeg supports; of an animation, the first picture.
 *
 * In: an item whose data is a path or a URL (a char *), a weir_entry *, or the file itself (a weir_bytes *). Out: an
 * item whose data is a weir_frames * with one frame (freed with weir_frames_free()). The frame is made as the video
 * stage makes its frames. The item's size_bytes is all the memory it takes. The alpha channel is dropped. Failures
 * are those of weir_video_decode; a damaged picture that can still be decoded counts in num_errors or
 * num_corrupt_frames.
 *
 * The format is detected from the bytes, not from the name.
 */
#ifndef WEIR_IMAGE_H
#define WEIR_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/decoder_config.h>
#include <weir/input_config.h>
#include <weir/op.h>
#include <weir/picture_config.h>
#include <weir/pipeline.h>
#include <weir/version.h>
#include <weir/video.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Setting this struct to all-zero is equivalent to defaults. What it points to is copied. */
typedef struct weir_image_config {
    /* Where the bytes come from, how they are decoded, and what is made of the picture (NULL = the defaults). Each size is that
       of its struct. A filter is not possible. */
    const weir_input_config *input;
    size_t input_size;
    const weir_decoder_config *decoder;
    size_t decoder_size;
    const weir_picture_config *picture;
    size_t picture_size;
    uint64_t max_file_bytes;   /* of a path or URL, which is read into memory (0 = 256 MiB) */
    weir_allocator *allocator; /* as in weir_video_config */
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
