/*
 * The video decode stage: a path comes in, the frames of the file's best video stream go out as one contiguous array: all
 * of them, or those that weir_sampling chooses.
 *
 * In: an item whose data is a path or a URL that FFmpeg can open (a char *), as weir_directory_source and
 * weir_list_source make them, a weir_entry *, which has one, or the file itself (a weir_bytes *). Out: an item whose data is a
 * weir_frames * (freed with weir_frames_free()) and whose size_bytes is all the memory it takes, so that queue_bytes
 * bounds memory.
 *
 * A file that cannot be opened, has no video or gives no frame fails its task, with our status, FFmpeg's code and
 * FFmpeg's text: WEIR_ENOTFOUND (missing; or a frame that was asked for is beyond its end), WEIR_EACCESS (not readable),
 * WEIR_EUNSUPPORTED (no file, no video stream, no decoder for it, encrypted, or refused: see weir_video_config.allow),
 * WEIR_EDATA (damaged, or no video file at all), WEIR_ELIMIT (over one of the limits max_…), WEIR_EIO, WEIR_ENOMEM. Damage within a file is counted in the result as long
 * as a frame comes out, unless damage or min_share ask for more.
 *
 * Files may come from anybody: what they can make the stage do is bounded by the limits below, and stop and deadlines break
 * off all of it within a frame's decoding. A read that the kernel does not end (a network file system whose server is gone) is
 * left behind on a thread of its own: see io_thread. What cannot be broken off is such a read without that thread, and the
 * resolution of a host's name: then weir_pipeline_stop() still returns at once, the task is logged as long-running, and
 * weir_pipeline_free() waits for the kernel.
 *
 * Each slot decodes on its task's thread alone: run as many slots as there are CPUs to use. The sample aspect ratio is
 * not applied: pixels are taken as they are coded.
 *
 * While the stage works, what FFmpeg logs on its threads goes to weir_log() with the file's label, a few lines per
 * file, at level debug: what matters of it comes as a failure or a count, too. For this the stage takes
 * av_log_set_callback() for the process; messages from elsewhere go on to av_log_default_callback().
 */
#ifndef WEIR_VIDEO_H
#define WEIR_VIDEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/cost.h>
#include <weir/entry.h>
#include <weir/export.h>
#include <weir/op.h>
#include <weir/sampling.h>

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
    WEIR_PIXEL_GRAY8,     /* one byte: luma, 0 black to 255 white */
    WEIR_PIXEL_YUV420P, /* a plane of Y, one of U, one of V; these have half the width and height, rounded up; colour
                             matrix and range are those of the file (weir_frames.matrix, .full_range) */
} weir_pixel;

/* How the pixels of a picture follow each other. Only RGB has a choice. */
typedef enum weir_layout {
    WEIR_LAYOUT_NHWC = 0, /* pixel by pixel: [frames][height][width][3] */
    WEIR_LAYOUT_NCHW,     /* plane by plane: [frames][3][height][width], the same values */
} weir_layout;

/*
 * What scales and converts. All have the same kernel (FFmpeg's bicubic, widened for smaller pictures), colours and
 * chroma siting; they differ in how they round, and in speed. README.md has the figures. Where a scaler does not know a
 * pixel format of the source, or was asked for what it has no way to do, the exact one takes its place.
 */
typedef enum weir_scaler_kind {
    WEIR_SCALER_DEFAULT = 0, /* the cheapest in this build that is at least as faithful as FFmpeg's own */
    WEIR_SCALER_EXACT,       /* FFmpeg's swscale: byte for byte what `ffmpeg -vf scale=…:flags=bicubic` makes */
    WEIR_SCALER_ZIMG,        /* zimg, if weir was built with it: rounds once, at the end */
    WEIR_SCALER_FAST,        /* our own, in 16 bits: the same bytes on every CPU, quick on those with AVX2 */
} weir_scaler_kind;

/* What damage within a file means. Tolerant: it is counted in the result, and the item fails only without a frame, or below
   min_share. Strict: whatever cannot be read or decoded, or had to be patched up, fails the item. */
typedef enum weir_damage {
    WEIR_DAMAGE_TOLERANT = 0,
    WEIR_DAMAGE_STRICT,
} weir_damage;

/* Setting this struct to all-0 is equivalent to defaults. */
typedef struct weir_video_config {
    uint32_t width;     /* of the result, in pixels (0 = that of the first frame) */
    uint32_t height;    /* (0 = that of the first frame) */
    weir_resize resize; /* (default WEIR_RESIZE_PAD) */
    weir_pixel pixel;   /* (default WEIR_PIXEL_RGB24) */

    /* how the pictures are made */
    weir_layout layout;      /* (default WEIR_LAYOUT_NHWC) */
    weir_scaler_kind scaler; /* (default WEIR_SCALER_DEFAULT); choose one to get the same bytes from every build */
    bool no_autorotate;      /* pictures stay as they are coded; otherwise a file's rotation (the display matrix, in
                                quarter turns and mirrors) is applied, as the ffmpeg program does by itself */
    const char *filter;      /* what pictures go through before they are scaled, as FFmpeg describes it
                                ("crop=in_w/2:in_h,hflip"; NULL = nothing). Any filters with one input and one output,
                                if weir was built with libavfilter. The stage keeps a copy. The frames that
                                sampling chooses go through it, in presentation order, repeated ones as often as they
                                are repeated; explicit indices or times have to rise then. What it makes of them is
                                what pieces and max_frames count, what goes in is what min_share counts */

    /* So that a hostile file cannot take the machine: beyond these its task fails with WEIR_ELIMIT. */
    uint64_t max_pixels; /* width × height of a coded picture (0 = 2^26) */
    uint64_t max_bytes;  /* of one result (0 = 8 GiB) */
    /* Of the frames that one slot's decoder keeps to decode others: guessed before decoding, counted during it (0 = 1 GiB). */
    uint64_t max_decoder_bytes;
    /* Of those of all decoders of the process together, whatever their pipelines (0 = half of the memory that the process may
       use). */
    uint64_t max_all_decoder_bytes;

    /* Where the bytes come from. */
    uint32_t allow;          /* WEIR_ALLOW_… of bytes.h: what is refused otherwise (default: nothing) */
    uint64_t max_pipe_bytes; /* that are kept of a pipe, of MP4 or where frames are chosen (0 = 4 GiB) */
    int32_t io_thread; /* local files are read on a thread beside the slot's own: 0 = where they lie on a network file
                                system or on one that is a program (FUSE), positive = all, negative = none. Stop and
                                deadlines leave it behind when the kernel does not end a read, up to 64 times */
    uint32_t stream;   /* the n-th video stream, counted from 1 on; covers do not count (0 = the best) */
    int64_t
        io_timeout_ns; /* of a URL: so long without any data fails the task with WEIR_ETIMEDOUT (0 = 30 s, negative =
                              never). For the whole task there is weir_stage_options.task_deadline_ns */
    /* which frames, how many at a time, and what is enough of them */
    weir_sampling sampling; /* (default: all frames) */
    uint64_t seed;          /* the pipeline's, for random frames: with the item's number it decides which */
    uint32_t piece_frames; /* hand a video on in pieces of so many frames, under back-pressure and in constant memory;
                               explicit indices or times have to rise then (0 = in one) */
    weir_damage damage;    /* (default WEIR_DAMAGE_TOLERANT) */
    double min_share;      /* tolerant: the least share, up to 1, of the frames asked for or, where all are, of those
                               that the container's header counts (0 = one frame is enough) */
    uint64_t max_frames;   /* of all results of one item; to choose, so many packets are looked at, or 2^22 if that is
                               more (0 = 2^22) */
    int64_t max_duration_ns; /* of the whole video (0 = any) */
    uint64_t reserved[16];   /* 0 */
} weir_video_config;

/* A frame's pts if nothing tells its time. */
#define WEIR_PTS_UNKNOWN INT64_MIN

/* Decoded frames, in presentation order. One owner at a time; everything in it is freed by weir_frames_free(). */
typedef struct weir_frames {
    uint8_t *data; /* [num_frames][height][width][channels], or as pixel and layout say; contiguous */
    uint32_t num_frames;
    uint32_t height;
    uint32_t width;
    uint32_t channels; /* 3 for RGB, 1 for gray, 0 for YUV, whose planes differ in size */
    weir_pixel pixel;
    weir_layout layout;
    size_t frame_bytes;      /* of one frame: frame i is at data + i × frame_bytes */
    weir_scaler_kind scaler; /* that made the last frame; never WEIR_SCALER_DEFAULT */
    int32_t matrix;  /* of the last frame's YUV: H.273's MatrixCoefficients, 2 = unspecified, taken as BT.601 */
    bool full_range; /* it uses all of 0 to 255, not 16 to 235 */

    int64_t *pts; /* of each frame, in units of time_base_num / time_base_den seconds */
    int32_t time_base_num;
    int32_t time_base_den;

    char codec[32];        /* FFmpeg's name of it: "h264" */
    uint32_t stream;       /* which video stream of the file it was, counted from 1 on */
    uint32_t stream_index; /* and which one of all its streams, from 0 on, as FFmpeg counts */
    uint32_t source_width; /* of the first frame as it was coded */
    uint32_t source_height;
    uint64_t num_errors;         /* packets that could not be read or decoded, of those that were needed. 0 = none */
    uint64_t num_corrupt_frames; /* of num_frames, those the decoder had to patch up */
    size_t memory_bytes;         /* all that this result takes */
    weir_entry *entry;           /* of an item that was a weir_entry, on the last piece; else NULL.
                                    Its packets are not there any more. Take it out as sidecars */
    weir_bytes *sidecars; /* the other files of the sample that the bytes came in; NULL = none. Take them out and
                                    leave NULL to keep them */

    weir_item_cost cost; /* of the item; in pieces, so far */

    /* So far, of those asked for: damage has cost them. Where all are taken, it is known with the last piece, and only if the
       container counts its frames. */
    uint64_t num_missing_frames;
    uint64_t first_frame; /* in pieces: how many frames of the item were in the pieces before this one */
    bool is_last_piece;   /* no more of this item will come; true without pieces */
} weir_frames;

/* The type of items whose data is a weir_frames. */
#define WEIR_TYPE_FRAMES "weir.frames"

/* Frees a weir_frames and all it holds. NULL is fine. Any thread. */
WEIR_API void weir_frames_free(weir_frames *frames);

/* The same for weir_item.release; self is not used. */
WEIR_API void weir_frames_release(void *data, void *self);

/* weir_frames.cost of a decode stage's item, for weir_sqlite_items.cost_of: a weir_item_cost_function. Rotation and filters
   count as scaling. */
WEIR_API bool weir_frames_cost(const weir_item *out, weir_item_cost *cost);

/* The stage. */
extern WEIR_API const weir_op weir_video_decode;

#ifdef __cplusplus
}
#endif

#endif
