/*
 * The probe stage: a path comes in, what an index keeps of a video goes out: codec, size, duration, frames, keyframes, and
 * a table of its packets, with which frames are later chosen without reading the file first (weir_entry.packets).
 *
 * In: as for weir_video_decode. Out: an item whose data is a weir_probe_result * (freed with weir_probe_result_free()). A file that
 * cannot be used is a result, too, whose error says why; a task fails only for want of memory, and when it is stopped.
 * All packets are read, and none is decoded unless check says so.
 */
#ifndef WEIR_PROBE_H
#define WEIR_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/export.h>
#include <weir/op.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How much is decoded to find out whether a file is whole. */
typedef enum weir_probe_check {
    WEIR_PROBE_PACKETS = 0, /* nothing: what cannot be opened or read is noticed */
    WEIR_PROBE_FIRST,       /* the first frame: codecs that are missing, and broken headers, too */
    WEIR_PROBE_ALL,         /* all frames */
} weir_probe_check;

/* Setting this struct to all-0 is equivalent to defaults. */
typedef struct weir_probe_config {
    weir_probe_check check;
    bool no_packets;       /* without the table of packets, which takes 4 to 5 bytes per frame */
    int64_t io_timeout_ns; /* as in weir_video_config */
    uint64_t max_pixels;   /* as in weir_video_config */
    uint64_t reserved[8];  /* 0 */
} weir_probe_config;

/* One owner at a time; freed with all it holds by weir_probe_result_free(). */
typedef struct weir_probe_result {
    weir_error error;    /* why the file cannot be used; status 0 = it can. Then what follows is what is known */
    uint64_t num_errors; /* packets that could not be read or decoded, in a file that can be used */

    int64_t size_bytes; /* of the file when it was probed; -1 = unknown (a URL) */
    int64_t mtime_ns;   /* since 1970 */
    char codec[32];     /* FFmpeg's name of it */
    uint32_t width;     /* as coded */
    uint32_t height;
    int64_t duration_ns; /* of the video stream */
    uint64_t num_frames; /* that are shown */
    uint64_t num_keyframes;

    uint8_t *packets; /* the table; NULL = none: the order of the frames cannot be told from the packets */
    size_t packets_bytes;
    uint64_t reserved[8]; /* 0 */
} weir_probe_result;

/* The type of items whose data is a weir_probe_result. */
#define WEIR_TYPE_PROBE "weir.probe"

/* NULL is fine. Any thread. */
WEIR_API void weir_probe_result_free(weir_probe_result *result);

/* The same for weir_item.release; self is not used. */
WEIR_API void weir_probe_result_release(void *data, void *self);

/* The stage. */
extern WEIR_API const weir_op weir_probe;

#ifdef __cplusplus
}
#endif

#endif
