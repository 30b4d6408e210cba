/*
 * The probe stage: the input is a path, the output is what an index stores about a video: codec, size, duration,
 * frames, keyframes, and a table of its packets. With the table, frames can later be selected without reading the
 * file first (weir_entry.packets).
 *
 * In: as for weir_video_decode. Out: an item whose data is a weir_probe_result * (freed with
 * weir_probe_result_free()). A file that cannot be used gives a result whose error has the reason; a task fails only
 * if memory runs out or the pipeline stops. All packets are read; none is decoded unless `check` says so. A URL is
 * opened but not read if the input is a weir_entry whose validator and size_bytes are still those of the server.
 */
#ifndef WEIR_PROBE_H
#define WEIR_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/decoder_config.h>
#include <weir/input_config.h>
#include <weir/op.h>
#include <weir/pipeline.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How much is decoded to detect damage. */
typedef enum weir_probe_check {
    WEIR_PROBE_PACKETS = 0, /* nothing: detects files that cannot be opened or read */
    WEIR_PROBE_FIRST,       /* the first frame: also detects missing codecs and broken headers */
    WEIR_PROBE_ALL,         /* all frames */
} weir_probe_check;

/* Setting this struct to all-zero is equivalent to defaults. What it points to is copied. */
typedef struct weir_probe_config {
    weir_probe_check check;
    bool no_packets; /* no table of packets, which has 4 to 5 bytes per frame */
    /* Where the bytes come from (not from a pipe), and how frames are decoded, if any are (NULL = the defaults). Each size is
       that of its struct. */
    const weir_input_config *input;
    size_t input_size;
    const weir_decoder_config *decoder;
    size_t decoder_size;
} weir_probe_config;

/* A result has one owner at a time. weir_probe_result_free() frees it and all it holds. */
typedef struct weir_probe_result {
    weir_error error;    /* why the file cannot be used; status 0 = it can, and the following fields are set */
    uint64_t num_errors; /* packets that could not be read or decoded, in a usable file */

    int64_t size_bytes; /* of the file when it was probed; -1 = unknown (some URLs) */
    int64_t mtime_ns;   /* since 1970 */
    char codec[32];     /* FFmpeg's name of it */
    uint32_t width;     /* as coded */
    uint32_t height;
    int64_t duration_ns; /* of the video stream */
    uint64_t num_frames; /* that are shown */
    uint64_t num_keyframes;

    uint8_t *packets; /* the table; NULL = none: the packets do not show the order of the frames */
    size_t packets_bytes;
    uint64_t archive_length; /* as in weir_entry, if the input is one */
    int64_t offset;
    /* The path of the input, as it was opened; for a weir_bytes, its name. The label of the item may hide a part of
       it. Allocated. */
    char *path;
    /* The version of a URL, as its HTTP server reported it: "ETag: …" or "Last-Modified: …". If the validator and the size
       are the same later, the file is the same, too. Allocated; NULL = the server reported no version. */
    char *validator;
    /* The file was not read: validator and size_bytes are those of the weir_entry; the facts about its contents are not set. */
    bool is_unchanged;
    /* Frames that the header announces but that are not in the file, because it was cut off. Exact for MP4. In Matroska, FLV, WMV
       and AVI: as many as fit into the missing time. 0 = none, or the header does not say (MPEG-TS). */
    uint64_t num_missing;
} weir_probe_result;

/* The type of items whose data is a weir_probe_result. */
#define WEIR_TYPE_PROBE "weir.probe"

/* The weir_item.release of such an item; self is not used. */
WEIR_API void weir_probe_result_release(void *data, void *self);

/* NULL is fine. Any thread. */
static inline void weir_probe_result_free(weir_probe_result *result)
{
    weir_probe_result_release(result, NULL);
}

extern WEIR_API const weir_op weir_probe;

/* Adds the stage to the builder; see weir_builder_pipe(). */
static inline void weir_pipe_probe(weir_builder *builder, const weir_probe_config *config,
                                   const weir_stage_options *options)
{
    weir_builder_pipe(builder, &weir_probe, config, sizeof *config, options);
}

#ifdef __cplusplus
}
#endif

#endif
