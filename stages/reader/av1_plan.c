#include "stages/reader/av1_plan.h"

#include <stdlib.h>
#include <string.h>

#include <weir/status.h>

enum { NUM_SLOTS = 8 };

/* No frame has written the slot. */
static const size_t nothing = SIZE_MAX;

typedef struct planned_frame {
    weir_av1_frame frame;
    size_t takes[NUM_SLOTS]; /* the frame in each slot that it reads */
    bool is_needed;
} planned_frame;

/* ---- reading the headers ---------------------------------------------------------------------------------------- */

/* Who is in which slot. */
typedef struct slots {
    weir_av1_sequence sequence;
    size_t owners[NUM_SLOTS];
} slots;

static int add_frame(weir_av1_plan *plan, const planned_frame *frame)
{
    if (plan->num_frames == plan->max_frames) {
        size_t max = plan->max_frames ? 2 * plan->max_frames : 256;
        planned_frame *frames = realloc(plan->frames, max * sizeof *frames);
        if (!frames)
            return WEIR_ENOMEM;
        plan->frames = frames;
        plan->max_frames = max;
    }
    plan->frames[plan->num_frames++] = *frame;
    return WEIR_OK;
}

/* What a shown slot has written, if it is a keyframe: then all slots have it, as if it was decoded now. */
static bool is_shown_again_as_key(const weir_av1_plan *plan, const planned_frame *frame, size_t owner)
{
    return frame->frame.shows_slot && plan->frames[owner].frame.is_key;
}

/* WEIR_OK; WEIR_EDATA: it reads a slot that no frame of the run has written. */
static int place_frame(weir_av1_plan *plan, slots *now, const weir_av1_frame *frame)
{
    planned_frame placed = { .frame = *frame };
    size_t at = plan->num_frames, shown = nothing;
    for (unsigned i = 0; i < NUM_SLOTS; i++) {
        placed.takes[i] = frame->reads >> i & 1u ? now->owners[i] : nothing;
        if (!(frame->reads >> i & 1u))
            continue;
        if (placed.takes[i] == nothing)
            return WEIR_EDATA;
        shown = placed.takes[i];
    }
    if (frame->shows_slot && is_shown_again_as_key(plan, &placed, shown))
        placed.frame.writes = UINT8_MAX;
    placed.frame.is_key |= placed.frame.shows_slot && placed.frame.writes;
    for (unsigned i = 0; i < NUM_SLOTS; i++)
        if (placed.frame.writes >> i & 1u)
            now->owners[i] = at;
    return add_frame(plan, &placed);
}

/* WEIR_OK; WEIR_EDATA: it is not understood. */
static int read_packet(weir_av1_plan *plan, slots *now, const AVPacket *packet, bool is_first)
{
    weir_av1_look look;
    if (!packet || packet->size <= 0 || !weir__av1_look(&now->sequence, packet->data, (size_t)packet->size, &look) ||
        look.num_shown != 1)
        return WEIR_EDATA;
    if (is_first && (!look.frames[0].is_key || look.frames[0].writes != UINT8_MAX))
        return WEIR_EDATA;
    for (unsigned i = 0; i < look.num_frames; i++) {
        int rc = place_frame(plan, now, &look.frames[i]);
        if (rc != WEIR_OK)
            return rc;
    }
    return WEIR_OK;
}

/* The sequence header in the header of a container ("av1C"), which its packets may lack. */
static void read_extradata(weir_av1_sequence *sequence, const AVCodecParameters *codec)
{
    enum { CONFIG_BYTES = 4, MARKER_AND_VERSION = 0x81 };
    weir_av1_look ignored;
    if (codec->extradata_size <= CONFIG_BYTES || codec->extradata[0] != MARKER_AND_VERSION)
        return;
    (void)weir__av1_look(sequence, codec->extradata + CONFIG_BYTES, (size_t)codec->extradata_size - CONFIG_BYTES,
                         &ignored);
    sequence->checksum = 0; /* those in packets may be written otherwise */
}

static int read_run(weir_av1_plan *plan, const AVCodecParameters *codec, const weir_av1_run *run)
{
    slots now = { 0 };
    for (unsigned i = 0; i < NUM_SLOTS; i++)
        now.owners[i] = nothing;
    read_extradata(&now.sequence, codec);
    plan->num_frames = 0;
    for (size_t i = 0; i < plan->num; i++) {
        plan->first_frames[i] = plan->num_frames;
        int rc = read_packet(plan, &now, run->packet_at(run->self, run->first + i), i == 0);
        if (rc != WEIR_OK)
            return rc;
    }
    plan->first_frames[plan->num] = plan->num_frames;
    plan->sequence = now.sequence;
    return WEIR_OK;
}

/* ---- what is needed --------------------------------------------------------------------------------------------- */

/* A frame takes only from earlier ones: one pass back finds all. */
static void mark_needed(weir_av1_plan *plan, const weir_av1_run *run)
{
    plan->num_all = 0;
    plan->num_needed = 0;
    plan->frames[0].is_needed = true; /* the sequence header is before it; intra-only frames do not lead to it */
    for (size_t packet = plan->num; packet-- > 0;) {
        bool is_wanted = run->is_wanted(run->self, run->first + packet);
        for (size_t i = plan->first_frames[packet + 1]; i-- > plan->first_frames[packet];) {
            planned_frame *frame = &plan->frames[i];
            plan->num_all += !frame->frame.shows_slot;
            frame->is_needed |= is_wanted && frame->frame.is_shown;
            if (!frame->is_needed)
                continue;
            plan->num_needed += !frame->frame.shows_slot;
            for (unsigned slot = 0; slot < NUM_SLOTS; slot++)
                if (frame->takes[slot] != nothing)
                    plan->frames[frame->takes[slot]].is_needed = true;
        }
    }
}

static int make_room(weir_av1_plan *plan)
{
    if (!plan->cut && !(plan->cut = av_packet_alloc()))
        return WEIR_ENOMEM;
    if (plan->num < plan->max_packets)
        return WEIR_OK;
    size_t *first_frames = realloc(plan->first_frames, (plan->num + 1) * sizeof *first_frames);
    if (!first_frames)
        return WEIR_ENOMEM;
    plan->first_frames = first_frames;
    plan->max_packets = plan->num + 1;
    return WEIR_OK;
}

int weir__av1_plan_make(weir_av1_plan *plan, const AVCodecParameters *codec, const weir_av1_run *run)
{
    plan->is_on = false;
    plan->first = run->first;
    plan->num = run->last - run->first + 1;
    int rc = make_room(plan);
    if (rc == WEIR_OK)
        rc = read_run(plan, codec, run);
    if (rc != WEIR_OK)
        return rc == WEIR_EDATA ? WEIR_OK : rc;
    mark_needed(plan, run);
    plan->is_on = true;
    return WEIR_OK;
}

/* ---- packets ---------------------------------------------------------------------------------------------------- */

static size_t count_needed(const weir_av1_plan *plan, size_t packet)
{
    size_t num = 0;
    for (size_t i = plan->first_frames[packet]; i < plan->first_frames[packet + 1]; i++)
        num += plan->frames[i].is_needed;
    return num;
}

bool weir__av1_plan_skips(const weir_av1_plan *plan, size_t at)
{
    return plan->is_on && at >= plan->first && at - plan->first < plan->num &&
           count_needed(plan, at - plan->first) == 0;
}

const AVPacket *weir__av1_plan_cut(weir_av1_plan *plan, size_t at, const AVPacket *packet)
{
    size_t number = at - plan->first, first = plan->first_frames[number];
    weir_av1_sequence sequence = plan->sequence;
    weir_av1_look look;
    if (count_needed(plan, number) == plan->first_frames[number + 1] - first)
        return packet;
    av_packet_unref(plan->cut);
    if (av_new_packet(plan->cut, packet->size) < 0 || av_packet_copy_props(plan->cut, packet) < 0)
        return NULL;
    (void)weir__av1_look(&sequence, packet->data, (size_t)packet->size, &look);
    size_t size_bytes = 0;
    for (unsigned i = 0; i < look.num_units; i++) {
        const weir_av1_unit *unit = &look.units[i];
        if (unit->frame != WEIR_AV1_NO_FRAME && !plan->frames[first + unit->frame].is_needed)
            continue;
        memcpy(plan->cut->data + size_bytes, packet->data + unit->begin, unit->end - unit->begin);
        size_bytes += unit->end - unit->begin;
    }
    av_shrink_packet(plan->cut, (int)size_bytes);
    return plan->cut;
}

void weir__av1_plan_end(weir_av1_plan *plan)
{
    plan->is_on = false;
    if (plan->cut)
        av_packet_unref(plan->cut);
}

void weir__av1_plan_free(weir_av1_plan *plan)
{
    free(plan->frames);
    free(plan->first_frames);
    av_packet_free(&plan->cut);
    *plan = (weir_av1_plan){ 0 };
}
