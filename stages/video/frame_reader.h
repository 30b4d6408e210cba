/*
 * The reader: a file and a weir_sampling in, the frames asked for out, in presentation order, each decoded once, and as
 * little else decoded as is possible. Internal. One thread at a time for each reader.
 */
#ifndef WEIR_STAGES_READER_H
#define WEIR_STAGES_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder.h"
#include "frame_index.h"
#include "frame_selection.h"

/* A frame that is asked for, and its place in the result. */
typedef struct weir_target {
    uint64_t frame;
    size_t place;
    bool has_come;
} weir_target;

typedef enum weir_frame_reader_way {
    WEIR_READER_PLAIN = 0, /* the frames as they come */
    WEIR_READER_COUNTED,   /* frames are counted as they come, and chosen by number */
    WEIR_READER_INDEXED,   /* packets are chosen by the index, frames by their timestamp */
} weir_frame_reader_way;

typedef struct weir_frame_reader {
    /* immutable after init */
    weir_decoder *decoder;
    const weir_sampling *sampling;
    uint64_t seed;
    uint64_t max_frames;
    int64_t max_duration_ns;
    size_t max_cached_bytes; /* of packets that are kept in memory; files with more are read twice */
    int64_t far_bytes;       /* seeking must save the reading of this much */

    /* of the next file to open: its packets (packet_table.h), as known from elsewhere; the caller's, who keeps them until the
       close. NULL = not known */
    const uint8_t *table;
    size_t table_bytes;

    /* of the open file */
    const char *path; /* the caller's */
    weir_frame_reader_way way;
    weir_index index;
    AVPacket **cache; /* the packets in decode order; NULL = there are too many */
    size_t num_cached;
    size_t max_cached; /* there is room for */
    size_t cached_bytes;
    size_t file_packet; /* not cached: the one that the demuxer gives next */
    bool is_read;       /* plain: all packets are in the index already, and in the cache */
    bool cannot_seek;

    weir_target *targets; /* by frame; NULL if the way is plain */
    size_t num_targets;
    size_t next_target;
    bool is_in_order;     /* the places rise, too */
    uint64_t num_counted; /* frames that have come, of all (counted and plain) */
    int64_t first_pts;    /* plain: of the first frame */
    uint64_t num_missing; /* frames that were asked for and did not come */

    /* of the run: the packets from a start on, for the targets up to run_end */
    bool is_running;
    bool is_last_resort; /* everything is decoded from the beginning, nothing skipped; no run follows */
    size_t run_start;
    size_t run_packet; /* to be sent next */
    size_t run_last;
    size_t run_end;
    uint64_t run_trouble; /* there was before it */
    uint64_t scan_errors; /* there were before the first run */

    /* of the current frame */
    unsigned num_repeats; /* how often it is in the result, at least once */
} weir_frame_reader;

/* Opens the file and decides which frames are wanted. The path lives until the close; seq is the item's number. WEIR_OK, or
   the failure with *error filled. Afterwards weir_frame_reader_close(), whatever the result. */
int weir_frame_reader_open(weir_frame_reader *reader, const char *path, uint64_t seq, weir_error *error);

/* WEIR_OK: reader->decoder->frame is the next one, and num_repeats tells how often. WEIR_EOF: there are no more. Or a
   failure with *error filled. */
int weir_frame_reader_next(weir_frame_reader *reader, weir_error *error);

/* Its timestamp; AV_NOPTS_VALUE = none. */
int64_t weir_frame_reader_pts(const weir_frame_reader *reader);

/* How many frames the result will have; 0 = unknown. A guess if the way is plain. */
uint64_t weir_frame_reader_estimate_frames(const weir_frame_reader *reader);

/*
 * The frames came in presentation order; this tells the order that was asked for, if that is another one. *order, to be
 * freed, has num_frames elements: which frame, of those that came, belongs to each place; NULL = as they came. WEIR_OK or
 * WEIR_ENOMEM.
 */
int weir_frame_reader_order(const weir_frame_reader *reader, size_t num_frames, size_t **order);

void weir_frame_reader_close(weir_frame_reader *reader);

#endif
