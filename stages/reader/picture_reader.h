/*
 * The core of the video stage and of weir_video_reader: a file and a request in, results (weir_frames) out. The frame reader
 * gives decoded frames; the frame filter makes pictures of them, which may be more or fewer; these are scaled into a result.
 * Knows no pipeline. Internal. One thread at a time for each reader.
 *
 * States: closed ─ open() ─▶ open ─ ask() ─▶ a request ─ chunk() WEIR_MORE ─▶ the same request ─ chunk() WEIR_OK ─▶ open; any
 * failure ─▶ only close() ─▶ closed. These calls are between enter() and leave(), which take FFmpeg's log.
 */
#ifndef STAGES_READER_PICTURE_READER_H
#define STAGES_READER_PICTURE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/video.h>

#include "stages/decoder/decoder.h"
#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/picture/frame_buffer.h"
#include "stages/picture/frame_filter.h"
#include "stages/reader/frame_reader.h"
#include "stages/scale/scaler.h"

/* What a request asks for; what it points to must live until the request has ended. */
typedef struct weir_picture_request {
    const weir_sampling *sampling;      /* checked */
    const weir_picture_config *picture; /* checked, a whole copy */
    uint64_t number;                    /* with the seed, for random frames */
    uint32_t chunk_frames;              /* (0 = one result) */
    bool clip_items;                    /* a result for each of the sampling's clips */
    uint8_t *into;                      /* the program's memory for the result (NULL = the reader's own) */
    size_t into_bytes;
} weir_picture_request;

typedef struct weir_picture_reader {
    /* immutable after init */
    const weir_video_config *config; /* checked; only its limits, seed and rules for damage are used */

    weir_decoder decoder; /* decoder.input: what is opened, set by the caller before open() */
    weir_frame_reader frames;
    weir_frame_filter frame_filter;
    weir_scaler scaler;
    weir_ffmpeg_log log;

    /* of the request; kept between its chunks */
    weir_picture_request wanted;
    uint64_t num_frames;     /* from the frame reader, repeats included */
    uint64_t num_corrupt;    /* pictures with concealed errors */
    uint64_t num_log_errors; /* FFmpeg's error lines, in earlier calls */
    int source_width;        /* of the first frame */
    int source_height;
    const AVFrame *picture; /* the next one of a result; NULL = none yet */
    weir_frame_facts facts; /* of it */
    unsigned num_copies;    /* of the decoded frame, so far */
    uint64_t num_pictures;  /* so far, this one included */
    int width;              /* of the results; 0 = unknown yet */
    int height;
    uint64_t num_done;    /* pictures in the chunks so far */
    uint64_t chunk_bytes; /* of the pictures of the chunk in the making */

    weir_frames *clips; /* with clip_items: all of them; NULL = not yet */
    uint32_t num_given; /* clips */
} weir_picture_reader;

/* *reader must be all-zero. should_stop and on_frame are those of weir_decoder; the config lives as long as the reader.
   WEIR_OK; or WEIR_ENOMEM, and nothing is to be freed. */
int weir__picture_reader_init(weir_picture_reader *reader, const weir_video_config *config,
                              bool (*should_stop)(void *self), void (*on_frame)(void *self), void *self);

/* The label and the path of the file, for the log, until leave(). */
void weir__picture_reader_enter(weir_picture_reader *reader, const char *label, const char *path);
void weir__picture_reader_leave(weir_picture_reader *reader);

/* Opens the path, or what decoder.input says. frames.table may be set before. The path is borrowed until close(). WEIR_OK, or
   the failure with *error filled. Afterwards close(), whatever the result. */
int weir__picture_reader_open(weir_picture_reader *reader, const char *path, weir_error *error);

/* Begins a request to the open file; a further one only if weir__frame_reader_can_select(). WEIR_OK, or the failure with
   *error filled. */
int weir__picture_reader_ask(weir_picture_reader *reader, const weir_picture_request *wanted, weir_error *error);

/* The next result of the request. WEIR_OK: it is the last one. WEIR_MORE: it is not. The caller frees *frames. Or a
   failure with *error filled, which ends the request. */
int weir__picture_reader_chunk(weir_picture_reader *reader, weir_frames **frames, weir_error *error);

/* The size of the pictures of the request, as far as the header tells it; 0 × 0 = it does not. WEIR_OK, or WEIR_ELIMIT with
   *error filled. */
int weir__picture_reader_size(const weir_picture_reader *reader, int *width, int *height, weir_error *error);

/* What it has allocated: of the open file (weir__frame_reader_bytes()), the chunk in the making, and clips that wait. FFmpeg's own
   state is not known. */
uint64_t weir__picture_reader_bytes(const weir_picture_reader *reader);

/* Ends the request, and frees all decoded frames; the file stays open. Only if weir__frame_reader_can_select(). */
void weir__picture_reader_rest(weir_picture_reader *reader);

/* Ends the request, and closes the file. Also if it is closed. What decoder.input keeps for opening a file again stays: see
   weir__input_forget(). */
void weir__picture_reader_close(weir_picture_reader *reader);

void weir__picture_reader_free(weir_picture_reader *reader);

#endif
