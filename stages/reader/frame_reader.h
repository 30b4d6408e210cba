/*
 * The reader: the input is a file and a weir_sampling, the output the selected frames in presentation order. Each is
 * decoded once, and as few other frames as possible. Internal. One thread at a time for each reader.
 */
#ifndef STAGES_READER_FRAME_READER_H
#define STAGES_READER_FRAME_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stages/reader/file_packets.h"
#include "stages/reader/frame_clock.h"
#include "stages/reader/frame_counter.h"
#include "stages/reader/frame_selection.h"
#include "stages/reader/frame_targets.h"
#include "stages/reader/indexed_run.h"
#include "stages/reader/recent_frames.h"

typedef enum weir_frame_reader_way {
    WEIR_READER_PLAIN = 0, /* all frames, as decoded */
    WEIR_READER_COUNTED,   /* frames are counted, and selected by number */
    WEIR_READER_INDEXED,   /* packets are selected by the index, frames by their timestamp */
} weir_frame_reader_way;

typedef struct weir_frame_reader {
    /* immutable after init, as file.decoder, file.max_cached_bytes and file.far_bytes are */
    uint64_t seed;
    uint64_t max_frames;
    int64_t max_duration_ns;
    bool stays_open;   /* further requests are likely: keep for them what the decoder and the timeline have */
    bool keeps_recent; /* and decoded frames: requests often want the same ones again. Not with decoder threads */

    /* of the request, set before weir__frame_reader_select(); borrowed until the next one or the close */
    const weir_sampling *sampling;

    /* of the request, like the sampling: the pictures that may be made of its frames on other threads */
    weir_group_pictures pictures;

    /* of the request: wants the facts of all packets, as they are in the file */
    bool is_survey;

    /* of the next file to open: its packet table (packet_table.h), from the dataset's index; borrowed until the
       close. NULL = unknown */
    const uint8_t *table;
    size_t table_bytes;

    /* of the open file */
    weir_file_packets file;
    bool is_asked; /* frames have been selected */
    bool is_whole; /* the index has all packets */
    weir_frame_reader_way way;
    bool has_timeline;
    weir_timeline timeline; /* kept if it stays open */

    weir_frame_targets targets;
    weir_frame_counter counter; /* plain and counted */
    weir_recent_frames recent;  /* indexed, if keeps_recent */
    weir_indexed_run run;

    /* of the current frame */
    unsigned num_repeats; /* how often it occurs in the result, at least once */
} weir_frame_reader;

/* Opens the file. The path is borrowed until the close. WEIR_OK, or the failure with *error filled. Afterwards
   weir__frame_reader_close(), whatever the result. */
int weir__frame_reader_open(weir_frame_reader *reader, const char *path, weir_error *error);

/* Selects the frames of reader->sampling: the first request after the opening, or a further one, if
   weir__frame_reader_can_select(); seq is the item's number. WEIR_OK, or the failure with *error filled, after which the
   file must be closed. */
int weir__frame_reader_select(weir_frame_reader *reader, uint64_t seq, weir_error *error);

/* Can the open file answer a request with that sampling, as a file would that is opened anew? Otherwise it must be closed and
   opened first. Also in the middle of a request, which ends then. */
bool weir__frame_reader_can_select(const weir_frame_reader *reader, const weir_sampling *sampling);

/* WEIR_OK: reader->file.decoder->frame is the next one, to be used num_repeats times. WEIR_EOF: no more. Or a
   failure with *error filled. */
int weir__frame_reader_next(weir_frame_reader *reader, weir_error *error);

/* The picture of the frame, if another thread has made it. Then the frame has no pixels. NULL = the picture is still
   to be made. */
const weir_group_picture *weir__frame_reader_picture(const weir_frame_reader *reader);

/* The timestamp of the frame; AV_NOPTS_VALUE = none. */
int64_t weir__frame_reader_pts(const weir_frame_reader *reader);

/* The time of the frame on the clock, from the first frame. */
int64_t weir__frame_reader_ns(const weir_frame_reader *reader);

/* Is copy number `copy` of it (below num_repeats) in the result only because the video has too few frames? */
bool weir__frame_reader_is_repeat(const weir_frame_reader *reader, unsigned copy);

/* The number of frames of the result; 0 = unknown. An estimate if plain. */
uint64_t weir__frame_reader_estimate_frames(const weir_frame_reader *reader);

/*
 * The frames are returned in presentation order; this gives the requested order, if it is different. *order, which
 * the caller frees, has num_frames elements: for each position of the result, the number of the returned frame; NULL
 * = same order.
 * WEIR_OK or WEIR_ENOMEM.
 */
int weir__frame_reader_order(const weir_frame_reader *reader, size_t num_frames, size_t **order);

/* Ends the request, and frees what the decoder has, unless decoded frames are kept; the index, the cache and the timeline
   stay. Only if weir__frame_reader_can_select(). */
void weir__frame_reader_rest(weir_frame_reader *reader);

/* What the open file takes: decoded frames, cache, index, timeline, and FFmpeg's tables of packets. */
size_t weir__frame_reader_bytes(const weir_frame_reader *reader);

void weir__frame_reader_close(weir_frame_reader *reader);

#endif
