/*
 * The video decode stage: the input is a path, the output is the frames of one video stream of the file. The frames
 * are one contiguous array: all frames, or those that weir_sampling selects.
 *
 * In: an item whose data is a path or a URL that FFmpeg can open (a char *). weir_directory_source and
 * weir_list_source make such items. The data may also be a dataset entry that has a path or URL (a weir_entry *), or
 * the file itself (a weir_bytes *). Out: an item whose data is a weir_frames * (freed with weir_frames_free()). Its
 * size_bytes is all the memory it takes, so queue_bytes bounds memory.
 *
 * A file that cannot be opened, has no video or gives no frame fails its task, with our status, FFmpeg's code and
 * FFmpeg's text. The status is:
 *   WEIR_ENOTFOUND     the file is missing, or no frame matches the request
 *   WEIR_ERANGE        a requested frame or time is before the start or after the end of the video
 *   WEIR_EACCESS       the file is not readable
 *   WEIR_EUNSUPPORTED  it is not a file, has no video stream or no decoder, is encrypted, or is refused (see
 *                      weir_input_config.allow)
 *   WEIR_EDATA         the file is damaged, or is not a video file
 *   WEIR_ELIMIT        the file is over one of the limits max_…
 *   WEIR_EIO, WEIR_ENOMEM
 * Damage within a file is counted in the result if at least one frame is decoded, unless the config's damage or
 * min_share is stricter.
 *
 * Files may be untrusted: the limits below bound the memory and time that a file can cost. A stop or a deadline
 * interrupts the task within the time it takes to decode one frame. If the kernel does not end a read (a network file
 * system whose server is gone), the separate thread that reads is abandoned: see weir_input_config.io_thread. Two
 * things cannot be interrupted: such a read without a separate thread, and the resolution of a host name. Then
 * weir_pipeline_stop() still returns at once, the task is logged as long-running, and weir_pipeline_free() waits for
 * the kernel.
 *
 * Each slot decodes on its task's thread only: use as many slots as there are CPUs. The sample aspect ratio is not
 * applied: pixels are used as they are coded.
 *
 * While a task runs, FFmpeg's log lines on its thread go to weir_log() with the file's label, at level debug, with a
 * limit per file. What matters in them is also reported as a failure or a count. For this the stage sets
 * av_log_set_callback() for the process; messages of other threads are passed on to av_log_default_callback().
 */
#ifndef WEIR_VIDEO_H
#define WEIR_VIDEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/allocator.h>
#include <weir/audio.h>
#include <weir/bytes.h>
#include <weir/decode_cost.h>
#include <weir/decoder_config.h>
#include <weir/input_config.h>
#include <weir/item.h>
#include <weir/op.h>
#include <weir/picture_config.h>
#include <weir/pipeline.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- which frames ---------------------------------------------------------------------------------------------------- */

/*
 * Which frames of a video to decode. Frames are numbered in presentation order, from 0: frame i is the i-th one that
 * a player shows, also with B-frames, edit lists, variable frame rates, and negative or missing timestamps. Seeking,
 * skipping and plain reading give the same bytes. If a frame that the container lists is lost to damage, the
 * following frames keep their numbers. If the decoder detects damage before a selected frame, the file is decoded
 * from its beginning. So concealed errors look the same as when all frames are decoded. Only undetected damage may
 * look different; decoders of HEVC, VP8, VP9 and AV1 detect little of it.
 *
 * Times count from the video's first frame: it has time 0, whatever its timestamp. A frame is shown from its time until
 * that of the next frame. Times that are 1 ns apart count as equal, so 1/30 s may be rounded up or down. Many containers
 * store rounded times, in ticks: 1 ms in Matroska, WebM, FLV and WMV, 1/90000 s in MPEG-TS. So a time also counts as
 * that of a frame if it is near the frame's stored time: nearer than one tick and than half a frame. This does not
 * apply if a frame lasts a whole number of ticks.
 */

typedef enum weir_sample {
    WEIR_SAMPLE_ALL = 0, /* all frames, or all frames of the window */
    WEIR_SAMPLE_EVERY,   /* every `every`-th frame, starting with the first */
    /* rate_num / rate_den frames per second from the first frame of the window, with frames repeated or skipped as needed: what
       ffmpeg's setpts=PTS-STARTPTS,fps=rate gives. The time of each frame is rounded to the nearest instant of this
       rate. So a window that is shorter than half the distance between two instants may have no frame */
    WEIR_SAMPLE_RATE,
    /* `count` frames: the middles of `count` equal intervals. Frames are repeated if there are fewer than `count` */
    WEIR_SAMPLE_UNIFORM,
    /* `count` different frames, in order, of a random interval of the window. Only weir_video_config.seed, the epoch and the
       item's number determine them. Frames are repeated, as for WEIR_SAMPLE_UNIFORM, if there are fewer than `count` */
    WEIR_SAMPLE_RANDOM,
    WEIR_SAMPLE_INDICES,   /* the frames with these numbers */
    WEIR_SAMPLE_TIMES,     /* the frames that are shown at these times */
    WEIR_SAMPLE_KEYFRAMES, /* those that the container or the stream marks as keyframes */
    /* Clips of `count` frames at a stride: for training. See num_clips and the fields after it */
    WEIR_SAMPLE_CLIPS,
} weir_sample;

/*
 * CLIPS: where clips start. A clip of `count` frames at a stride of k frames spans s = (count - 1) × k + 1 frames. In a window of n
 * frames it can start at frames 0 to m = n - s of the window; if n < s, only at 0. A stride in time counts likewise: m is the last
 * frame after which the window lasts longer than (count - 1) × stride_ns.
 */
typedef enum weir_clip_start {
    WEIR_CLIP_FIRST = 0, /* at frame 0: of the window, so any start can be set. Only one clip */
    WEIR_CLIP_CENTER,    /* at frame m / 2, rounded down. Only one clip */
    /* Each clip starts at a random frame from 0 to m. All are equally likely; only weir_video_config.seed, the epoch and the
       item's number determine them. Clips may overlap, and are in the order in which they were drawn */
    WEIR_CLIP_RANDOM,
    /* Clip i of c starts at frame i × m / (c - 1), rounded down: the first one at 0, the last one at m. A single one is in the
       centre */
    WEIR_CLIP_EVEN,
} weir_clip_start;

/* CLIPS: what a clip is filled with where the window has too few frames. */
typedef enum weir_clip_short {
    WEIR_SHORT_LAST = 0, /* its last frame, again and again */
    WEIR_SHORT_LOOP,     /* its frames, from the first one on */
    WEIR_SHORT_FAIL,     /* the item fails with WEIR_ERANGE, and the message says how many frames a clip needs */
} weir_clip_short;

/* TIMES: which frame a time means. */
typedef enum weir_time_match {
    WEIR_MATCH_SHOWN = 0, /* the frame that a player shows at that time */
    WEIR_MATCH_NEAREST,   /* the frame whose time is nearest; the earlier one if two are equally near */
    WEIR_MATCH_EXACT,     /* the nearest frame. If it is further away than tolerance_ns, the item fails with
                             WEIR_ENOTFOUND, and the message says how far it is */
} weir_time_match;

/* TIMES: what a time before the first frame or after the end of the last one means. */
typedef enum weir_time_outside {
    /* The first or the last frame, if the time is outside by at most the duration of that frame. Otherwise the item
       fails with WEIR_ERANGE, and the message says how far it is. */
    WEIR_OUTSIDE_NEAR = 0,
    WEIR_OUTSIDE_CLAMP, /* the first or the last frame */
    WEIR_OUTSIDE_FAIL,  /* the item fails with WEIR_ERANGE */
} weir_time_outside;

/* What times count from. */
typedef enum weir_time_origin {
    WEIR_ORIGIN_FIRST = 0, /* the first frame has time 0 */
    WEIR_ORIGIN_STREAM,    /* times are those that the stream stores: weir_frames.pts × time base */
} weir_time_origin;

/* Setting this struct to all-zero selects all frames. Fields that a kind does not use must be 0. */
typedef struct weir_sampling {
    weir_sample what; /* (default WEIR_SAMPLE_ALL) */

    /* The window: only frames with start_ns <= time < end_ns count, and start_frame <= number < end_frame. Not with INDICES and
       TIMES. */
    int64_t start_ns;
    int64_t end_ns; /* (0 = the end of the video) */
    uint64_t start_frame;
    uint64_t end_frame; /* (0 = the end of the video) */

    /* UNIFORM, RANDOM: the number of frames. CLIPS: the number of frames of each clip. ALL, EVERY, RATE, KEYFRAMES:
       only the first `count` frames (0 = all). For the first frames of ALL, the rest of the file is not read. There,
       a later frame replaces one lost to damage only if the container does not show which one is missing. */
    uint32_t count;
    uint32_t every;    /* EVERY: at least 1 */
    uint32_t rate_num; /* RATE: this many frames … */
    uint32_t rate_den; /* … in this many seconds (0 = 1) */

    /* RANDOM: the length of the interval, either in frames or in time (both 0 = the whole window). If length_frames equals
       count, the result is `count` consecutive frames. */
    uint32_t length_frames;
    int64_t length_ns;

    /* INDICES and TIMES. Copied; the result has them in this order. A negative index counts from the end: -1 is the
       last frame. A frame beyond the end fails the item with WEIR_ERANGE. */
    const int64_t *indices;
    size_t num_indices;
    const int64_t *times_ns;
    size_t num_times;
    weir_time_match match;     /* TIMES (default WEIR_MATCH_SHOWN) */
    weir_time_outside outside; /* TIMES (default WEIR_OUTSIDE_NEAR) */
    int64_t tolerance_ns;      /* WEIR_MATCH_EXACT (0 = only the rounding of the stored times) */
    weir_time_origin origin;   /* of TIMES and of the window (default WEIR_ORIGIN_FIRST) */

    /* CLIPS. The result has an axis of clips: weir_frames.num_clips. All clips have `count` frames: if one is lost to damage, the
       item fails with WEIR_EDATA. A frame that is in several clips is decoded once. Not with a filter. */
    uint32_t num_clips;         /* (0 = one, and the result has no axis of clips) */
    uint32_t stride_frames;     /* from one frame of a clip to the next (0 = 1, unless stride_ns is set) */
    int64_t stride_ns;          /* or in time: frame i is the one shown i × stride_ns after the start of frame 0 */
    weir_clip_start clip_start; /* (default WEIR_CLIP_FIRST) */
    weir_clip_short clip_short; /* (default WEIR_SHORT_LAST) */
} weir_sampling;

/* Whether the result is always in presentation order, for every length of the video. It is not if a list decreases,
   or mixes indices from the start and from the end; if there are several clips, or one is filled by WEIR_SHORT_LOOP.
   Chunks and filters need presentation order. */
WEIR_API bool weir_sampling_is_rising(const weir_sampling *sampling);

/* How damage within a file is treated. Tolerant: it is counted in the result, and the item fails only if no frame is
   decoded, or fewer than min_share. Strict: anything that cannot be read or decoded, or was concealed, fails the
   item. */
typedef enum weir_damage {
    WEIR_DAMAGE_TOLERANT = 0,
    WEIR_DAMAGE_STRICT,
} weir_damage;

/* Setting this struct to all-zero is equivalent to defaults. What it points to is copied. */
typedef struct weir_video_config {
    /* Where the bytes come from, how they are decoded, and what is made of the pictures (NULL = the defaults). Each size is
       that of its struct: see WEIR_WITH_INPUT, WEIR_WITH_DECODER and WEIR_WITH_PICTURE. */
    const weir_input_config *input;
    size_t input_size;
    const weir_decoder_config *decoder;
    size_t decoder_size;
    const weir_picture_config *picture;
    size_t picture_size;

    /* which frames, how many per result, and how many are enough */
    weir_sampling sampling; /* (default: all frames) */
    uint64_t seed;          /* for random frames: they are determined by it and the item's number */
    /* The n-th video stream, counted from 1; cover pictures do not count. 0 = the one that the ffmpeg program takes.
       Of the streams with packets at the beginning, that is one that is marked as the default, then the largest
       picture, then the first. */
    uint32_t stream;
    /* Split a video into chunks of this many frames, with back-pressure and constant memory (0 = one result). Explicit indices
       or times must then increase. */
    uint32_t chunk_frames;
    /* With WEIR_SAMPLE_CLIPS: each clip of a video is a result of its own (false = one result, with an axis of
       clips). The results come in the order of the clips. Each has a copy of the entry and of the other files of the
       sample. Its num_clips is 0. Corrupt frames are counted with the first of these results. Not with
       chunk_frames. */
    bool clip_items;
    weir_damage damage; /* (default WEIR_DAMAGE_TOLERANT) */
    /* Tolerant: the minimum share, up to 1, of the requested frames (0 = one frame is enough). If all frames are
       requested, it is the share of those that the container's header counts. */
    double min_share;
    /* The most frames in all results of one item (0 = 2^22). To select frames, at most this many packets are read, or
       2^22 if that is more. */
    uint64_t max_frames;
    int64_t max_duration_ns; /* of the whole video (0 = any) */
    uint64_t max_bytes;      /* of one result: beyond it the task fails with WEIR_ELIMIT (0 = 8 GiB) */
    /* Also decode the sound, from the same read of the file (NULL = no sound). The whole file is then read into memory, up to
       weir_input_config.max_pipe_bytes. The audio config's own input is not used. Not with weir_isolated. */
    const weir_audio_config *audio;
    size_t audio_size; /* sizeof(weir_audio_config), if audio is given */
    /* Frames are decoded directly into the memory of this allocator (NULL = the C library's memory). The CPU must be able to
       write to it. Borrowed until the pipeline is built; the pipeline is then one of its owners. Not with weir_isolated. */
    weir_allocator *allocator;
    /* The number of files of the stage that stay open after their items; the least recently used are closed (0 =
       none). A later item of the same file, such as another clip of it, then costs neither opening the file nor
       finding its frames. If it comes after the item before in the file, decoding goes on from there. All slots share
       them; weir/video_reader_pool.h says what is kept, and when a file is opened anew. Of each file, up to 64 MiB of
       decoded frames are kept, too, unless the decoder has threads: what clips share is decoded once, if they come
       one after the other. Results are the same. Not for URLs, pipes, files in memory or in archives, and not with
       audio: these are opened for each item. */
    uint32_t keep_open;
    void *kept; /* private to the stage; NULL */
} weir_video_config;

/* A frame's pts if its time is unknown. */
#define WEIR_PTS_UNKNOWN INT64_MIN

/* Decoded frames, in presentation order. They have one owner at a time; their tensors (weir_to_dlpack()) also share them.
   weir_frames_free() frees everything in the struct. */
typedef struct weir_frames {
    uint8_t *data; /* [num_frames][height][width][channels], or as pixel and layout say; contiguous; in `memory` */
    uint32_t num_frames;
    uint32_t height;
    uint32_t width;
    uint32_t channels; /* 3 for RGB, 1 for gray, 0 for YUV, whose planes differ in size */
    weir_pixel pixel;
    weir_layout layout;
    size_t frame_bytes;      /* of one frame: frame i is at data + i × frame_bytes */
    weir_scaler_kind scaler; /* the one that made the last frame; never WEIR_SCALER_DEFAULT */
    int32_t matrix;  /* of the last frame's YUV: H.273's MatrixCoefficients; 2 = unspecified, treated as BT.601 */
    bool full_range; /* the last frame's luma uses 0 to 255, not 16 to 235 */

    int64_t *pts; /* of each frame as the stream stores it, in units of time_base_num / time_base_den seconds */
    /* The time of each frame, counted from the video's first frame. This is the clock that windows and
       weir_sampling.times_ns use. Frames without a stored time follow each other at the average rate. */
    int64_t *times_ns;
    /* For each frame: 0 = it repeats an earlier frame of its clip, because the video has too few (CLIPS, UNIFORM,
       RANDOM); 1 = it does not. */
    uint8_t *mask;
    /* CLIPS with weir_sampling.num_clips: data is [num_clips][num_frames / num_clips] frames (0 = there is no axis of clips). */
    uint32_t num_clips;
    int32_t time_base_num;
    int32_t time_base_den;

    char codec[32];        /* FFmpeg's name of it: "h264" */
    uint32_t stream;       /* which video stream of the file, counted from 1 */
    uint32_t stream_index; /* FFmpeg's number of that stream, counted from 0 */
    uint32_t source_width; /* of the first frame, as it was coded */
    uint32_t source_height;
    uint64_t num_errors;         /* needed packets that could not be read or decoded */
    uint64_t num_corrupt_frames; /* of num_frames, those in which the decoder concealed errors */
    size_t memory_bytes;         /* of the whole result */
    weir_entry *entry;           /* the input item, if it was a weir_entry: on the last chunk; else NULL. Its
                                    packets have been freed. To keep it, take the pointer and set this to NULL */
    weir_bytes *sidecars;        /* the other files of the sample that the input belongs to; NULL = none. To keep
                                    them, take the pointer and set this to NULL */
    weir_decode_cost cost;       /* of the item; with chunks, so far */
    /* Requested frames that were lost to damage, so far. If all frames are requested, only the last chunk has this number, and
       only if the container counts its frames. */
    uint64_t num_missing_frames;
    uint64_t first_frame;            /* number of the item's frames in earlier chunks */
    bool is_last_chunk;              /* the item is complete; always true without chunks */
    struct weir_shared_data *shared; /* internal: do not change */
    /* With weir_video_config.audio: all samples of the file's sound, on the last chunk; NULL = the file has no sound. If the
       sound cannot be decoded, the item fails. To keep the sound, take the pointer and set this to NULL. */
    weir_audio *audio;
    weir_memory memory;       /* where data is; all else is in host memory */
    struct weir_block *block; /* internal: do not change */
    uint32_t num_views;       /* internal: do not change */
} weir_frames;

/* The type of items whose data is a weir_frames. */
#define WEIR_TYPE_FRAMES "weir.frames"

/* The weir_item.release of such an item; self is not used. */
WEIR_API void weir_frames_release(void *data, void *self);

/* Frees a weir_frames and all it holds. NULL is fine. Any thread. */
static inline void weir_frames_free(weir_frames *frames)
{
    weir_frames_release(frames, NULL);
}

extern WEIR_API const weir_op weir_video_decode;

/* Adds the stage to the builder; see weir_builder_pipe(). */
static inline void weir_pipe_video(weir_builder *builder, const weir_video_config *config,
                                   const weir_stage_options *options)
{
    weir_builder_pipe(builder, &weir_video_decode, config, sizeof *config, options);
}

#ifdef __cplusplus
}
#endif

#endif
