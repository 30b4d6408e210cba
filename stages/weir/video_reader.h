/*
 * Frames of a video without a pipeline: a reader opens a file once and is asked often.
 *
 *     weir_video_reader *reader = NULL;
 *     weir_frames *frames = NULL;
 *     weir_error error = { 0 };
 *     int rc = weir_video_reader_open(&reader, &(weir_video_source){ .path = "clip.mp4" }, sizeof(weir_video_source),
 *                                     NULL, 0, &error);
 *     if (rc == WEIR_OK)
 *         rc = weir_video_reader_frames(reader, &(weir_sampling){ .what = WEIR_SAMPLE_UNIFORM, .count = 16 },
 *                                       sizeof(weir_sampling), NULL, 0, &frames, &error);
 *     weir_frames_free(frames);
 *     weir_video_reader_free(reader);
 *
 * The video stage (weir/video.h) works in the same way: both give the same frames, with the same times, limits, error texts
 * and rules for damage, which are described there.
 *
 * A reader has no thread of its own. One thread at a time may use a reader, not always the same one; many readers can
 * be used at once. Each call works on the calling thread until it is done, fails, or should_stop() says true.
 *
 * After a request that failed or was stopped, the reader can be asked again, and the next answer is right. A request for
 * selected frames reads all packets of the file once; further ones use what is known since then, and the file stays open. It is
 * opened again after a failure, for a request for all or the first frames, and after one; and if the packets do not
 * show the frames, or are damaged.
 */
#ifndef WEIR_VIDEO_READER_H
#define WEIR_VIDEO_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/status.h>
#include <weir/version.h>
#include <weir/video.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open video file. */
typedef struct weir_video_reader weir_video_reader;

/* ---- what to open -------------------------------------------------------------------------------------------------- */

/* Exactly one of path, bytes and functions is set. */
typedef struct weir_video_source {
    const char *path; /* a path or a URL; copied */

    /* The file's bytes; `next` is not used. They must not change until the reader is freed. */
    weir_bytes *bytes;
    bool
        own_bytes; /* the reader frees them (weir_bytes_free()), also if it cannot be opened; otherwise they are borrowed */

    const weir_file_functions *functions; /* copied */
    size_t functions_size;                /* sizeof(weir_file_functions) */

    /* For bytes and functions: the name for messages and, by its extension, a hint to the format; copied (NULL = the name
       of the bytes, or "(memory)"). */
    const char *name;

    /* The file's packet table, as weir_probe makes it, so that selecting frames needs no first pass over the file.
       Borrowed until the reader is freed. A table that does not fit the file is not used. */
    const uint8_t *packets;
    size_t packets_bytes;

    /* Asked between packets and during blocking I/O, on the thread that uses the reader: true ends the call with
       WEIR_ESTOPPED. NULL = never. */
    bool (*should_stop)(void *self);
    void *self; /* outlives the reader */
} weir_video_source;

/* ---- opening ------------------------------------------------------------------------------------------------------- */

/*
 * Opens the file and reads its header. The config is that of the video stage, and may be NULL (defaults): where bytes may
 * come from, limits, damage, seed; its sampling and picture are those of requests that give none, and chunk_frames are
 * the frames of one weir_video_reader_next(). It is copied. Its audio must be NULL. Returns WEIR_OK, and the caller frees
 * *reader with weir_video_reader_free(); or the failure with *error (may be NULL) filled and *reader = NULL: a status of
 * weir/video.h, or WEIR_EINVAL.
 */
WEIR_API int weir_video_reader_open(weir_video_reader **reader, const weir_video_source *source, size_t source_size,
                                    const weir_video_config *config, size_t config_size, weir_error *error);

/* Closes the file. NULL is fine. Frames that the reader has given stay valid. */
WEIR_API void weir_video_reader_free(weir_video_reader *reader);

/* ---- facts --------------------------------------------------------------------------------------------------------- */

/* A stream, as its header describes it; nothing is decoded for this. */
typedef struct weir_video_info {
    char codec[32]; /* FFmpeg's name of it: "h264" */
    uint32_t width; /* of the coded pictures, in pixels */
    uint32_t height;
    int32_t rotation; /* clockwise degrees that a player turns the pictures: 0, 90, 180, 270 */
    bool is_mirrored; /* a player also mirrors them, left to right, before it turns them */
    uint32_t sample_aspect_num, sample_aspect_den; /* of a pixel, width to height; 0 / 1 = unknown */
    uint32_t bit_depth;                            /* of a component: 8, 10, 12; 0 = unknown */
    int32_t primaries; /* H.273's ColourPrimaries, TransferCharacteristics and MatrixCoefficients; 2 = unspecified */
    int32_t transfer;
    int32_t matrix;
    bool full_range;                             /* luma uses 0 to 255, not 16 to 235 */
    uint32_t average_rate_num, average_rate_den; /* frames per second over the stream; 0 / 1 = unknown */
    uint32_t real_rate_num, real_rate_den; /* the lowest rate at which all times are exact, which is FFmpeg's guess;
                                                        0 / 1 = unknown */
    int32_t time_base_num, time_base_den;  /* the unit of weir_frames.pts, in seconds */
    uint64_t num_frames;                   /* the header's; 0 = it does not say */
    int64_t duration_ns;                   /* the header's; 0 = it does not say */
    uint32_t stream;                       /* which video stream of the file, counted from 1 */
    uint32_t stream_index;                 /* FFmpeg's number of that stream, counted from 0 */
    bool has_audio;
    char container[32]; /* FFmpeg's names of the format: "mov,mp4,m4a,3gp,3g2,mj2" */
} weir_video_info;

/* Fills *info, info_size bytes. WEIR_OK or WEIR_EINVAL. */
WEIR_API int weir_video_reader_info(const weir_video_reader *reader, weir_video_info *info, size_t info_size);

/* ---- frames -------------------------------------------------------------------------------------------------------- */

/* The numbers that, with the config's seed, determine random frames: those of an item of a dataset (0 at first). WEIR_OK or
   WEIR_EINVAL. */
WEIR_API int weir_video_reader_set_number(weir_video_reader *reader, uint64_t epoch, uint64_t number);

/*
 * Decodes the frames that the sampling selects, as the picture says; either may be NULL: the config's. Returns WEIR_OK, and
 * the caller frees *frames with weir_frames_free(); or the failure with *error (may be NULL) filled and *frames = NULL:
 * those of weir/video.h, and WEIR_EINVAL for a sampling or picture that is not valid.
 */
WEIR_API int weir_video_reader_frames(weir_video_reader *reader, const weir_sampling *sampling, size_t sampling_size,
                                      const weir_picture_config *picture, size_t picture_size, weir_frames **frames,
                                      weir_error *error);

/*
 * The same, but the pixels go to the caller's memory: an array of NumPy's, a pinned block. (*frames)->data is `data`, which
 * weir_frames_free() leaves alone; it holds the times and all else. Nothing is written outside of data[0] to data[num_bytes - 1],
 * whose contents are undefined behind the frames and after a failure. WEIR_ELIMIT if the frames need more than num_bytes; neither
 * max_bytes nor the allocator of the config count.
 */
WEIR_API int weir_video_reader_frames_into(weir_video_reader *reader, const weir_sampling *sampling,
                                           size_t sampling_size, const weir_picture_config *picture,
                                           size_t picture_size, void *data, size_t num_bytes, weir_frames **frames,
                                           weir_error *error);

/* What a request would give. */
typedef struct weir_frames_size {
    uint64_t num_frames;
    uint32_t width;
    uint32_t height;
    uint32_t channels;  /* as in weir_frames */
    size_t frame_bytes; /* of one frame */
    uint64_t num_bytes; /* num_frames × frame_bytes */
} weir_frames_size;

/*
 * The size of a request's result, size_size bytes of *size, from the packets of the file; decodes only if they do not show the
 * frames. Without a size in the picture it is that of the header. Damage may make the result smaller. Returns WEIR_OK;
 * WEIR_EUNSUPPORTED for a picture with a filter, which may give any number of frames, or without a size if the
 * header has none either; otherwise as weir_video_reader_frames(), and it ends a request that was begun, too.
 */
WEIR_API int weir_video_reader_measure(weir_video_reader *reader, const weir_sampling *sampling, size_t sampling_size,
                                       const weir_picture_config *picture, size_t picture_size,
                                       weir_frames_size *size, size_t size_size, weir_error *error);

/*
 * As weir_video_reader_frames(), but a few frames at a time, with constant memory: begins a request whose frames weir_video_reader_next() gives. They must
 * be in presentation order (weir_sampling_is_rising()). WEIR_OK, or the failure with *error (may be NULL) filled.
 */
WEIR_API int weir_video_reader_begin(weir_video_reader *reader, const weir_sampling *sampling, size_t sampling_size,
                                     const weir_picture_config *picture, size_t picture_size, weir_error *error);

/*
 * The next frame of the request that was begun, or the next config.chunk_frames. Returns WEIR_OK, and the caller frees *frames;
 * or with *frames = NULL WEIR_EOF after the last one, or the failure with *error (may be NULL) filled, which ends the
 * request. WEIR_EINVAL if no request has begun; weir_video_reader_frames() ends one, too.
 */
WEIR_API int weir_video_reader_next(weir_video_reader *reader, weir_frames **frames, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
