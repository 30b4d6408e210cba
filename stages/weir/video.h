/*
 * The video decode stage: a path comes in, all frames of the file's best video stream go out as one contiguous array.
 *
 * In: an item whose data is a path or a URL that FFmpeg can open (a char *), as weir_directory_source and
 * weir_list_source make them. Out: an item whose data is a weir_frames * (freed with weir_frames_free()) and whose
 * size_bytes is all the memory it takes, so that queue_bytes bounds memory.
 *
 * A file that cannot be opened, has no video or gives no frame fails its task, with our status, FFmpeg's code and
 * FFmpeg's text: WEIR_ENOTFOUND (missing), WEIR_EACCESS (not readable), WEIR_EUNSUPPORTED (no file, no video stream, no
 * decoder for it), WEIR_EDATA (damaged, or no video file at all), WEIR_ELIMIT (over max_pixels or max_bytes), WEIR_EIO,
 * WEIR_ENOMEM. Damage within a file is counted in the result as long as a frame comes out.
 *
 * Each slot decodes on its task's thread alone: run as many slots as there are CPUs to use. Rotation metadata and
 * sample aspect ratio are not applied: pixels are taken as they are coded.
 *
 * While the stage works, what FFmpeg logs on its threads goes to weir_log() with the file's label, a few lines per
 * file, at level debug: what matters of it comes as a failure or a count, too. For this the stage takes
 * av_log_set_callback() for the process; messages from elsewhere go on to av_log_default_callback().
 */
#ifndef WEIR_VIDEO_H
#define WEIR_VIDEO_H

#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a picture is fitted into width × height. */
typedef enum weir_resize {
    WEIR_RESIZE_PAD = 0, /* as large as fits with its aspect kept, centred on black */
    WEIR_RESIZE_STRETCH, /* exactly width × height, aspect not kept */
    WEIR_RESIZE_CROP,    /* as small as covers with its aspect kept, the middle of it */
} weir_resize;

/* How a pixel is stored. */
typedef enum weir_pixel {
    WEIR_PIXEL_RGB24 = 0, /* three bytes: red, green, blue */
} weir_pixel;

/* Setting this struct to all-0 is equivalent to defaults. */
typedef struct weir_video_config {
    uint32_t width;     /* of the result, in pixels (0 = that of the first frame) */
    uint32_t height;    /* (0 = that of the first frame) */
    weir_resize resize; /* (default WEIR_RESIZE_PAD) */
    weir_pixel pixel;   /* (default WEIR_PIXEL_RGB24) */

    /* So that a hostile file cannot take the machine: beyond these its task fails with WEIR_ELIMIT. */
    uint64_t max_pixels; /* width × height of a coded picture (0 = 2^26) */
    uint64_t max_bytes;  /* of one result (0 = 8 GiB) */
} weir_video_config;

/* A frame's pts if nothing tells its time. */
#define WEIR_PTS_UNKNOWN INT64_MIN

/* Decoded frames, in presentation order. One owner at a time; everything in it is freed by weir_frames_free(). */
typedef struct weir_frames {
    uint8_t *data; /* [num_frames][height][width][channels], contiguous */
    uint32_t num_frames;
    uint32_t height;
    uint32_t width;
    uint32_t channels;
    weir_pixel pixel;

    int64_t *pts; /* of each frame, in units of time_base_num / time_base_den seconds */
    int32_t time_base_num;
    int32_t time_base_den;

    char codec[32];        /* FFmpeg's name of it: "h264" */
    uint32_t source_width; /* of the first frame as it was coded */
    uint32_t source_height;
    uint64_t num_errors;         /* packets that could not be read or decoded. 0 = the file is whole */
    uint64_t num_corrupt_frames; /* of num_frames, those the decoder had to patch up */
    size_t memory_bytes;         /* all that this result takes */
} weir_frames;

/* Frees a weir_frames and all it holds; the type is that of weir_item.release. NULL is fine. Any thread. */
WEIR_API void weir_frames_free(void *frames);

/* The stage. */
extern WEIR_API const weir_op weir_video_decode;

#ifdef __cplusplus
}
#endif

#endif
