/*
 * Frames of a video without a pipeline: a reader opens a file once and then answers many requests.
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
 * A reader and the video stage (weir/video.h) give the same frames, times and error texts. They also have the same limits and
 * rules for damage. weir/video.h describes them.
 *
 * A reader has no thread of its own. Only one thread at a time may use a reader; it need not always be the same thread. Many
 * readers can work at the same time. Each call works on the calling thread until it is done or fails, or should_stop() is true.
 *
 * After a request that failed or was stopped, the reader accepts further requests, and their frames are right. The
 * first request for selected frames reads all packets of the file once. If the packets do not show which frames there
 * are, it also decodes them once. Of a large MP4 file whose header lists the packets, it reads only the groups of
 * pictures that are needed, the first, and the last. Later requests use what the reader then knows, and the file
 * stays open. A request whose frames all come after those of the request before goes on decoding where that one
 * ended. The file is opened again: after a failure; for a request for all frames or the first frames, and for the
 * request after it; and if packets are damaged. Sound is apart from all that.
 */
#ifndef WEIR_VIDEO_READER_H
#define WEIR_VIDEO_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/audio.h>
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

/* Set exactly one of path, bytes and functions. */
typedef struct weir_video_source {
    const char *path; /* a path or a URL; copied */

    /* The file's bytes; `next` is not used. They must not change until the reader is freed. */
    weir_bytes *bytes;
    /* The reader frees the bytes (weir_bytes_free()), also if it cannot be opened; otherwise it borrows them. */
    bool own_bytes;

    const weir_file_functions *functions; /* copied */
    size_t functions_size;                /* sizeof(weir_file_functions) */

    /* For bytes and functions: the name that messages show; its extension is a hint to the format. Copied (NULL = the name
       of the bytes, or "(memory)"). */
    const char *name;

    /* The program asks for frames once, with the sampling of the config (NULL in the call). Then the data of a pipe is not kept if
       the frames are all, or the first ones. */
    bool one_request;

    /* The file's packet table, as weir_probe makes it (NULL = none). With it, selecting frames needs no first pass over the
       file. Borrowed until the reader is freed. A table that does not match the file is not used. */
    const uint8_t *packets;
    size_t packets_bytes;

    /* Called between packets and during blocking I/O, on the thread that uses the reader. If it returns true, the call ends
       with WEIR_ESTOPPED. NULL = never. */
    bool (*should_stop)(void *self);
    void *self; /* outlives the reader */
} weir_video_source;

/* ---- opening ------------------------------------------------------------------------------------------------------- */

/*
 * Opens the file and reads its header.
 *
 * The config is that of the video stage (NULL = the defaults): where bytes may come from, limits, damage, seed. Requests without
 * a sampling or picture use those of the config. chunk_frames is the number of frames of one weir_video_reader_next(). The config
 * is copied. Its audio must be NULL.
 *
 * WEIR_OK: the caller frees *reader with weir_video_reader_free(). Otherwise *reader is NULL, *error (may be NULL) is filled, and
 * the status is one of weir/video.h, or WEIR_EINVAL. After a failure, the bytes (with own_bytes) are freed, and functions.close has
 * been called. Neither is done if reader, source or a size is missing, or if the program's structs are newer than the library.
 */
WEIR_API int weir_video_reader_open(weir_video_reader **reader, const weir_video_source *source, size_t source_size,
                                    const weir_video_config *config, size_t config_size, weir_error *error);

/* Closes the file and frees the reader. NULL is fine. Frames that the reader has returned stay valid. */
WEIR_API void weir_video_reader_free(weir_video_reader *reader);

/* ---- facts --------------------------------------------------------------------------------------------------------- */

/* A stream, as its header describes it; nothing is decoded for this. After weir_video_reader_scan(), is_exact is true. */
typedef struct weir_video_info {
    char codec[32]; /* FFmpeg's name of it: "h264" */
    uint32_t width; /* of the coded pictures, in pixels */
    uint32_t height;
    int32_t rotation; /* a player turns the pictures clockwise by this many degrees: 0, 90, 180, 270 */
    bool is_mirrored; /* before it turns them, a player also mirrors them, left to right */
    uint32_t sample_aspect_num, sample_aspect_den; /* width to height of a pixel; 0 / 1 = unknown */
    uint32_t bit_depth;                            /* of a component: 8, 10, 12; 0 = unknown */
    int32_t primaries; /* H.273's ColourPrimaries, TransferCharacteristics and MatrixCoefficients; 2 = unspecified */
    int32_t transfer;
    int32_t matrix;
    bool full_range;                             /* luma uses 0 to 255, not 16 to 235 */
    uint32_t average_rate_num, average_rate_den; /* frames per second over the stream; 0 / 1 = unknown */
    /* FFmpeg's guess of the lowest rate at which all times are exact; 0 / 1 = unknown. */
    uint32_t real_rate_num, real_rate_den;
    int32_t time_base_num, time_base_den; /* the unit of weir_frames.pts, in seconds */
    /* num_frames, num_keyframes, duration_ns and start_ns are those of the frames that requests give. Otherwise, they are what the
       header says, or 0. */
    bool is_exact;
    uint64_t num_frames;
    uint64_t num_keyframes;
    int64_t duration_ns;   /* exact: from the time of the first frame to the end of the last one */
    int64_t start_ns;      /* the first frame's time as the stream stores it; 0 = it stores none */
    uint32_t stream;       /* which video stream of the file, counted from 1 */
    uint32_t stream_index; /* FFmpeg's number of that stream, counted from 0 */
    bool has_audio;
    char container[32]; /* FFmpeg's names of the format: "mov,mp4,m4a,3gp,3g2,mj2" */
} weir_video_info;

/* Fills *info, info_size bytes. Costs nothing. WEIR_OK or WEIR_EINVAL. */
WEIR_API int weir_video_reader_info(const weir_video_reader *reader, weir_video_info *info, size_t info_size);

/*
 * Finds all frames of the file: reads all packets, unless an earlier request has done so, or the source has their
 * table. Decodes only if the packets do not show which frames there are. Then the facts are exact. It ends a request
 * that was begun. WEIR_OK, or the failure with *error (may be NULL) filled, as weir_video_reader_frames(). A video
 * without any frame is not a failure here.
 */
WEIR_API int weir_video_reader_scan(weir_video_reader *reader, weir_error *error);

/* All frames of a video, in presentation order. */
typedef struct weir_frame_times {
    uint64_t num_frames;
    int64_t *times_ns; /* as weir_frames.times_ns */
    uint8_t *is_key;   /* 1 = marked as a keyframe, as WEIR_SAMPLE_KEYFRAMES takes it; else 0 */
    int64_t end_ns;    /* the end of the last frame */
} weir_frame_times;

/* Scans the file as weir_video_reader_scan() does. WEIR_OK: the caller frees *times with weir_frame_times_free(). Otherwise *times
   is NULL. */
WEIR_API int weir_video_reader_times(weir_video_reader *reader, weir_frame_times **times, weir_error *error);

/* NULL is fine. Any thread. */
WEIR_API void weir_frame_times_free(weir_frame_times *times);

/* ---- frames -------------------------------------------------------------------------------------------------------- */

/* Sets the numbers that, with the config's seed, determine random frames: the epoch and number of an item of a dataset (both 0
   at first). WEIR_OK or WEIR_EINVAL. */
WEIR_API int weir_video_reader_set_number(weir_video_reader *reader, uint64_t epoch, uint64_t number);

/*
 * Decodes the frames that the sampling selects, in the size and format of the picture (NULL = those of the config).
 * WEIR_OK: the caller frees *frames with weir_frames_free(). Otherwise *frames is NULL and *error (may be NULL) is
 * filled. The status is one of weir/video.h, or WEIR_EINVAL for a sampling or picture that is not valid.
 */
WEIR_API int weir_video_reader_frames(weir_video_reader *reader, const weir_sampling *sampling, size_t sampling_size,
                                      const weir_picture_config *picture, size_t picture_size, weir_frames **frames,
                                      weir_error *error);

/*
 * The same, but the pixels go to the caller's memory: a NumPy array, a pinned block. (*frames)->data is `data`. *frames holds the
 * times and all else; weir_frames_free() frees these, but not `data`. Nothing is written outside of data[0] to
 * data[num_bytes - 1]. The bytes after the frames, and all bytes after a failure, are undefined. WEIR_ELIMIT if the frames need
 * more than num_bytes. The config's max_bytes and allocator are not used.
 */
WEIR_API int weir_video_reader_frames_into(weir_video_reader *reader, const weir_sampling *sampling,
                                           size_t sampling_size, const weir_picture_config *picture,
                                           size_t picture_size, void *data, size_t num_bytes, weir_frames **frames,
                                           weir_error *error);

/* The size of what a request would return. */
typedef struct weir_frames_size {
    uint64_t num_frames;
    uint32_t num_clips; /* as in weir_frames */
    uint32_t width;
    uint32_t height;
    uint32_t channels;  /* as in weir_frames */
    size_t frame_bytes; /* of one frame */
    uint64_t num_bytes; /* num_frames × frame_bytes */
} weir_frames_size;

/*
 * Finds the size of a request's result from the packets of the file, and fills size_size bytes of *size. It decodes only if the
 * packets do not show which frames there are. If the picture has no width or height, the header's are taken. Damage may make
 * the result smaller. WEIR_OK; or WEIR_EUNSUPPORTED: for a picture with a filter, which may output any number of frames, or if
 * neither the picture nor the header has a size. Otherwise as weir_video_reader_frames(). It also ends a request that was begun.
 */
WEIR_API int weir_video_reader_measure(weir_video_reader *reader, const weir_sampling *sampling, size_t sampling_size,
                                       const weir_picture_config *picture, size_t picture_size,
                                       weir_frames_size *size, size_t size_size, weir_error *error);

/*
 * Begins a request like weir_video_reader_frames(); weir_video_reader_next() then returns its frames, a few at a
 * time, with constant memory. The frames must be in presentation order (weir_sampling_is_rising()), or clips
 * (clip_items). WEIR_OK, or the failure with *error (may be NULL) filled.
 */
WEIR_API int weir_video_reader_begin(weir_video_reader *reader, const weir_sampling *sampling, size_t sampling_size,
                                     const weir_picture_config *picture, size_t picture_size, weir_error *error);

/*
 * Returns the next frame of the request that was begun, or its next chunk_frames frames, or with clip_items its next clip.
 * WEIR_OK: the caller frees *frames. Otherwise *frames is NULL. WEIR_EOF comes after the last frame, and WEIR_EINVAL
 * if no request has begun. Any other failure fills *error (may be NULL) and ends the request.
 * weir_video_reader_frames() also ends a request.
 */
WEIR_API int weir_video_reader_next(weir_video_reader *reader, weir_frames **frames, weir_error *error);

/* ---- sound --------------------------------------------------------------------------------------------------------- */

/*
 * Decodes the sound from one time to another, by the clock of the frames: nanoseconds from the first frame of the
 * video, as weir_frames.times_ns. So the sound of frames i to j - 1 is that from times_ns[i] to times_ns[j], or to
 * weir_frame_times.end_ns.
 *
 * The first sample is the last one that begins at or before start_ns (a time up to 2 ns before a sample counts as its
 * time). The number of samples is round((end_ns - start_ns) × sample rate / 10^9). No samples are invented before the
 * sound's first one and after its last one. Then there are fewer, and weir_audio.start_ns is the time of the first
 * one, by the same clock. A gap in the times of the stream is silence. INT64_MIN and INT64_MAX are the beginning and
 * the end of the sound, which may lie outside of the video.
 *
 * The samples have the same bits as those of the whole sound (weir/audio.h), also if they are resampled or mixed.
 * Some sound is read from shortly before the window, and decoded from up to 6 s before it. Its codec is AAC, MP2,
 * MP3, AC-3, E-AC-3, Opus, Vorbis, FLAC, ALAC or PCM. Its container is MP4, MOV, Matroska, WebM, AVI or FLV, or
 * MPEG-TS once a request has read all its packets. Three things are not the same bits then:
 *   - noise that the decoder makes from random numbers (AAC's noise substitution and SBR, AC-3's dither);
 *   - MP2's dither (one unit of a 16-bit sample);
 *   - the last bits of Opus's speech mode.
 * Everything else is decoded from the start of the sound: other codecs and containers, and files whose times do not
 * tell the sample (Vorbis in Matroska, times with jitter). Windows in order go on where the last one has ended.
 *
 * The config is that of the audio stage (NULL = the defaults); its input is not used. WEIR_OK: the caller frees
 * *audio with weir_audio_free(). Otherwise *audio is NULL, and *error (may be NULL) is filled. The status is one of
 * weir/video.h, with sound instead of video. WEIR_EUNSUPPORTED also if the file has no sound, or if the sample rate
 * changes. WEIR_ERANGE if no sample is in the window. WEIR_EINVAL also with one_request.
 *
 * The file is opened a second time for this, and once more for the time of its first frame, unless a request has
 * found that. A request that was begun goes on as if nothing had been asked; functions may be called for the one and
 * the other in turn, after a seek.
 */
WEIR_API int weir_video_reader_sound(weir_video_reader *reader, const weir_audio_config *config, size_t config_size,
                                     int64_t start_ns, int64_t end_ns, weir_audio **audio, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
