/*
 * Decodes the frames that a trusted index selects, in runs: from a clean start to the last packet that the run's targets need,
 * without disposable packets. A new run starts where that costs less than decoding on: where there is a clean start after all
 * packets sent so far. Internal. One thread at a time.
 *
 * A target that is missing without an error shows that the index is wrong. If packets are damaged, decoders conceal
 * the damage with frames from before the run, or with skipped ones. Then, as a last resort, the file is decoded from
 * its beginning without skipping anything, which gives the same frames as decoding all.
 *
 * A run has the threads of the config, unless it begins where packets are shown before its start. The decoder may
 * report errors in these, which do not count. With threads it does so later. The last resort has one thread.
 *
 * Targets that an earlier request has decoded are kept (weir_target.kept), and no run has to reach them: a run ends
 * with its last target that is not kept. If these give way while a run decodes, or the last resort begins, they are
 * targets as all others, and the next run begins anew.
 *
 * AV1 frames that the run's targets do not need are cut out of its packets (av1_plan.h). For that, all packets are
 * read before the first is sent, if there is room for them. Then the decoder cannot go on after the run, as its slots
 * lack frames. So where the file stays open, plans of one start together decode at most as many frames as its run
 * has. Then one run decodes them all, and the next requests may go on.
 *
 * If the file stays open, the last run of a request does not end with its last target. The decoder is not drained; it gets the
 * packets that follow, until that target comes out.
 * - Invariants: packets `start` to `packet` - 1 have been sent, except disposable ones, none of which is shown after skipped_pts;
 *   frames from `front` on have not come out. Disposable packets that are shown after the request's last target are not skipped.
 * - The next run goes on where this one stands under three conditions. Its first target is not before `front`, it is
 *   shown after skipped_pts, and no clean start between saves anything. All others begin anew at a clean start, also
 *   after a drained decoder, except at the end of the file: what it holds comes out then.
 * - Packets that a request does not need (is_beyond) must not change its result. If there is damage after the first
 *   of them, the run begins anew. Then it is drained at its end, and so are all further ones (must_drain). The same
 *   holds if frames come in another order than the index says.
 */
#ifndef STAGES_READER_INDEXED_RUN_H
#define STAGES_READER_INDEXED_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stages/reader/av1_plan.h"
#include "stages/reader/file_packets.h"
#include "stages/reader/frame_targets.h"
#include "stages/reader/recent_frames.h"

typedef struct weir_indexed_run {
    weir_file_packets *file;
    weir_frame_targets *targets;
    bool stays_open;
    weir_recent_frames *recent; /* keeps what is decoded, for further requests; NULL = nothing does */

    bool is_running;
    bool is_last_resort; /* decodes everything from the beginning without skipping; no other run follows */
    size_t start;
    size_t packet;        /* to be sent next */
    size_t last;          /* that its targets need */
    size_t end;           /* the target after its last one; 0 = it has none, and the next one must begin, or go on */
    uint64_t front;       /* frames from here on have not come out */
    int64_t skipped_pts;  /* the highest one of the packets that were skipped */
    uint64_t trouble;     /* signs of damage before it */
    uint64_t scan_errors; /* before the first run */

    weir_av1_plan plan;
    size_t plan_start;    /* the start of the last runs with a plan */
    uint64_t num_planned; /* frames that they have decoded */

    bool has_given_up; /* kept targets have given way since the run began */
    bool is_alone;     /* no run has threads any more: their frames are over the limit of memory */
    bool must_drain;
    bool is_beyond;         /* it has got packets that the request does not need */
    uint64_t needed_errors; /* the decoder's count and first code before these */
    int needed_averror;
} weir_indexed_run;

/* Frees the kept frames, because the decoder needs the memory. The decoder calls this function while a run
   decodes. */
void weir__indexed_run_give_up(void *run);

/* Frees what it has. */
void weir__indexed_run_reset(weir_indexed_run *run);

/* The targets of a request are set: nothing that they need is skipped. */
void weir__indexed_run_want(weir_indexed_run *run);

/* Before the targets of that request are freed. */
void weir__indexed_run_forget(weir_indexed_run *run);

/* The frame of the next target, which is not kept, is in the decoder. WEIR_EOF: no more; or the failure with *error filled. */
int weir__indexed_run_next(weir_indexed_run *run, weir_error *error);

#endif
