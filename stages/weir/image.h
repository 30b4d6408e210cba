/*
 * The still image stage: a picture's path comes in, its pixels go out. JPEG, PNG, WebP, BMP, TIFF and whatever else FFmpeg
 * decodes; of an animation the first picture.
 *
 * In: an item whose data is a path or a URL (a char *) a weir_entry *, which has one, or the file itself (a weir_bytes *). Out: an
 * item whose data is a weir_frames * with one frame (freed with weir_frames_free()), made as the video stage makes its
 * frames, and whose size_bytes is all the memory it takes. What FFmpeg calls alpha is dropped. Failures are those of
 * weir_video_decode; a picture that is damaged and comes out all the same counts in num_errors or num_corrupt_frames.
 *
 * What kind of picture it is, is told by the bytes, not by the name.
 */
#ifndef WEIR_IMAGE_H
#define WEIR_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/export.h>
#include <weir/op.h>
#include <weir/video.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Setting this struct to all-0 is equivalent to defaults. All but max_file_bytes mean what they mean in
   weir_video_config. */
typedef struct weir_image_config {
    uint32_t width;  /* (0 = that of the picture) */
    uint32_t height; /* (0 = that of the picture) */
    weir_resize resize;
    weir_pixel pixel;
    weir_layout layout;
    weir_scaler_kind scaler;
    bool no_autorotate;      /* otherwise the orientation that a camera notes (EXIF) is applied */
    uint64_t max_pixels;     /* of the picture in the file (0 = 2^26) */
    uint64_t max_file_bytes; /* of a path or URL, which is read as a whole (0 = 256 MiB) */
    uint32_t allow;          /* WEIR_ALLOW_PIPES is of use; a picture never refers to other files */
    uint64_t max_decoder_bytes;
    uint64_t max_all_decoder_bytes;
    int32_t io_thread;
    int64_t io_timeout_ns;
    uint64_t reserved[8]; /* 0 */
} weir_image_config;

/* The stage. */
extern WEIR_API const weir_op weir_image_decode;

#ifdef __cplusplus
}
#endif

#endif
