/*
 * Decodes a file from its beginning and counts its frames: to give all of them, or to select by number where the packets do not
 * show which frames there are. Internal. One thread at a time.
 *
 * While it counts, it keeps frames that the request will probably want (kept_frames.h). It chooses them as if the
 * packets showed the right number of frames and about the right times. If the count confirms that, the request is
 * answered with these; otherwise the file is decoded again.
 *
 * If the file stays open, the decoder stands before frame num_frames (is_running). If all targets of the next request are from
 * there on, it goes on, otherwise it starts over. The frames are not counted again.
 */
#ifndef STAGES_READER_FRAME_COUNTER_H
#define STAGES_READER_FRAME_COUNTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stages/reader/file_packets.h"
#include "stages/reader/frame_clock.h"
#include "stages/reader/frame_targets.h"
#include "stages/reader/group_pool.h"
#include "stages/reader/kept_frames.h"

typedef struct weir_frame_counter {
    weir_file_packets *file;
    weir_frame_targets *targets;

    size_t packet;          /* to be sent next */
    uint64_t num_frames;    /* decoded so far */
    weir_frame_clock clock; /* of these */
    bool is_running;
    uint64_t trouble;      /* signs of damage before the first frame */
    weir_group_pool *pool; /* decodes the groups of the file; NULL = the decoder does */
    weir_kept_frames kept; /* of the first request */
    bool has_kept;         /* the request is answered with these */
} weir_frame_counter;

/* The file has been opened. */
void weir__frame_counter_begin(weir_frame_counter *counter);

/* The next of all frames is in the decoder. Packets that were looked at before are used first. WEIR_EOF: no more; or the failure
   with *error filled. */
int weir__frame_counter_next(weir_frame_counter *counter, weir_error *error);

/* Before the first weir__frame_counter_next(): that uses the threads of the config, if it can begin again with one after the first
   sign of damage. The threads are those of a group pool, which makes these pictures, or the decoder's. WEIR_OK, or the failure with
   *error filled. */
int weir__frame_counter_use_threads(weir_frame_counter *counter, const weir_group_pictures *pictures,
                                    weir_error *error);

/* Decodes everything, and makes the timeline; keeps the frames of kept.guess. WEIR_OK, or the failure with *error filled. */
int weir__frame_counter_count(weir_frame_counter *counter, weir_timeline *timeline, weir_error *error);

/* Goes before the first target, at the beginning if necessary. WEIR_OK, or the failure with *error filled. */
int weir__frame_counter_go_to(weir_frame_counter *counter, weir_error *error);

/* The frame of the next target is in the decoder. WEIR_EOF: no more; or the failure with *error filled. */
int weir__frame_counter_select(weir_frame_counter *counter, weir_error *error);

/* Before the file is closed. */
void weir__frame_counter_reset(weir_frame_counter *counter);

#endif
