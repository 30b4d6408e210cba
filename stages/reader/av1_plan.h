/*
 * Which frames of a run of AV1 packets are decoded: the targets, and what these take from the reference slots, and so
 * on. The others are cut out of their packets. AV1 encoders keep many frames that nothing refers to later, which the
 * container does not show. Internal. One thread at a time for each plan.
 *
 * Why it is exact: a run begins with a shown keyframe, which writes all slots. A frame that is decoded reads some
 * slots. Each of them has the frame that wrote it last: that frame is decoded, too, and no later one wrote there.
 * Nothing is read from the other slots. If a header is not understood, there is no plan, and all frames are decoded.
 */
#ifndef STAGES_READER_AV1_PLAN_H
#define STAGES_READER_AV1_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libavcodec/avcodec.h>

#include "stages/reader/av1_frames.h"

/* All-zero: no plan. */
typedef struct weir_av1_plan {
    bool is_on;
    weir_av1_sequence sequence;
    size_t first, num;            /* packets */
    uint64_t num_all, num_needed; /* frames that are decoded */

    struct planned_frame *frames; /* in decode order */
    size_t num_frames, max_frames;
    size_t *first_frames; /* of each packet, and the end */
    size_t max_packets;
    AVPacket *cut; /* a packet without the frames that are not needed */
} weir_av1_plan;

typedef struct weir_av1_run {
    size_t first, last;                                  /* packets */
    const AVPacket *(*packet_at)(void *self, size_t at); /* NULL = it cannot be had now */
    bool (*is_wanted)(void *self, size_t at);            /* is the frame that it shows a target? */
    void *self;
} weir_av1_run;

/* Makes a plan for the run, whose first packet is a keyframe. WEIR_OK: plan->is_on says whether there is one. Or WEIR_ENOMEM. */
int weir__av1_plan_make(weir_av1_plan *plan, const AVCodecParameters *codec, const weir_av1_run *run);

/* Is no frame of that packet of the run needed? */
bool weir__av1_plan_skips(const weir_av1_plan *plan, size_t at);

/* The packet with the frames that are needed, until the next call: itself, if that is all of them. NULL = out of memory. */
const AVPacket *weir__av1_plan_cut(weir_av1_plan *plan, size_t at, const AVPacket *packet);

/* There is no plan any more; its memory is kept. */
void weir__av1_plan_end(weir_av1_plan *plan);

void weir__av1_plan_free(weir_av1_plan *plan);

#endif
