/*
 * The presentation order is the order of the timestamps if all timestamps differ and each packet is one frame. An
 * index that cannot guarantee this is marked as not trusted, and the reader counts decoded frames instead.
 */
#include "stages/reader/frame_index.h"

#include <stdlib.h>

#include <libavutil/avutil.h>
#include <libavutil/common.h>
#include <libavutil/mathematics.h>

#include <weir/clock.h>
#include <weir/status.h>

static const AVRational nanoseconds = { 1, (int)WEIR_SECOND };

const char *weir__index_look(const AVStream *stream, const AVPacket *packet, weir_packet_past *past,
                             weir_packet_entry *entry)
{
    weir_packet_kind kind = weir__bitstream_look(stream->codecpar, packet, past);
    bool is_shown = !kind.is_hidden && !(packet->flags & AV_PKT_FLAG_DISCARD);
    unsigned flags = (packet->flags & AV_PKT_FLAG_KEY) ? WEIR_PACKET_KEY : 0;
    flags |= kind.is_clean ? WEIR_PACKET_CLEAN : 0;
    flags |= is_shown ? WEIR_PACKET_SHOWN : 0;
    flags |= kind.is_disposable ? WEIR_PACKET_DISPOSABLE : 0;
    *entry = (weir_packet_entry){
        .pts = packet->pts,
        .dts = packet->dts,
        .size_bytes = packet->size,
        .duration = packet->duration > 0 && packet->duration < INT32_MAX ? (int32_t)packet->duration : 0,
        .flags = (uint8_t)flags,
        .layer = (uint8_t)kind.layer,
    };
    if (av_packet_get_side_data(packet, AV_PKT_DATA_PALETTE, NULL)) /* raw video: later packets depend on it */
        return "a palette comes with single packets";
    if (kind.drops_held)
        return "frames before a keyframe are dropped";
    return kind.is_unclear ? "the number of frames in a packet is unknown" : NULL;
}

void weir__index_cut(weir_index *index)
{
    weir__h264_order_free(index->order);
    index->order = NULL;
}

/* The order is that of all packets, if none of them has a pts. */
static int add_to_order(weir_index *index, const AVStream *stream, const AVPacket *packet, bool is_first)
{
    bool may_begin = is_first && stream->codecpar->codec_id == AV_CODEC_ID_H264;
    if (packet->pts != AV_NOPTS_VALUE) {
        weir__index_cut(index);
        return WEIR_OK;
    }
    if (may_begin && !(index->order = weir__h264_order_new(stream)))
        return WEIR_ENOMEM;
    return index->order ? weir__h264_order_add(index->order, stream, packet) : WEIR_OK;
}

int weir__index_add(weir_index *index, const AVStream *stream, const AVPacket *packet)
{
    if (index->num_packets == UINT32_MAX)
        return WEIR_ENOMEM;
    if (index->num_packets == index->max_packets) {
        size_t max_packets = index->max_packets ? index->max_packets * 2 : 512;
        weir_packet_entry *packets = realloc(index->packets, max_packets * sizeof *packets);
        if (!packets)
            return WEIR_ENOMEM;
        index->packets = packets;
        index->max_packets = max_packets;
    }

    uint32_t at = (uint32_t)index->num_packets++;
    weir_packet_entry *entry = &index->packets[at];
    const char *distrust = weir__index_look(stream, packet, &index->past, entry);
    index->distrust = distrust ? distrust : index->distrust;
    entry->start = entry->flags & WEIR_PACKET_CLEAN || at == 0 ? at : entry[-1].start;
    return add_to_order(index, stream, packet, at == 0);
}

typedef struct dated {
    int64_t pts;
    uint32_t packet;
} dated;

static int compare_dated(const void *a, const void *b)
{
    const dated *left = a;
    const dated *right = b;
    if (left->pts != right->pts)
        return left->pts < right->pts ? -1 : 1;
    return left->packet < right->packet ? -1 : 1;
}

void weir__packets_keep_lower_layers(weir_packet_entry *packets, size_t num_packets)
{
    unsigned highest = 0;
    for (size_t i = 0; i < num_packets; i++)
        highest = FFMAX(highest, packets[i].layer);
    for (size_t i = 0; i < num_packets; i++) {
        if (packets[i].layer < highest)
            packets[i].flags &= (uint8_t)~WEIR_PACKET_DISPOSABLE;
    }
}

/* Whether arithmetic with these times cannot overflow. */
static bool is_reasonable(int64_t first, int64_t last, AVRational time_base)
{
    const int64_t max = INT64_MAX / 4;
    if (first < -max || last > max || time_base.num <= 0 || time_base.den <= 0)
        return false;
    int64_t length_ns = av_rescale_q(last - first + INT32_MAX, time_base, nanoseconds);
    return length_ns >= 0 && length_ns < max;
}

/* Is a frame that is decoded before a keyframe shown after one that is decoded from there on? The decoder returns it before,
   as at a join whose times overlap. */
static bool overlaps_keyframe(const weir_index *index)
{
    enum { SHOWN_KEY = WEIR_PACKET_KEY | WEIR_PACKET_SHOWN };
    size_t num_shown = 0;
    uint32_t latest = 0; /* packet of the first num_shown frames */
    for (uint32_t i = 0; i < index->num_packets; i++) {
        unsigned flags = index->packets[i].flags;
        if ((flags & SHOWN_KEY) == SHOWN_KEY && num_shown > 0 && latest >= i)
            return true;
        if (flags & WEIR_PACKET_SHOWN) {
            latest = FFMAX(latest, index->frames[num_shown]);
            num_shown++;
        }
    }
    return false;
}

/*
 * Does the clock jump within a group of pictures, while a frame that was decoded waits to be shown? The time of that
 * frame is from before the jump. The frames that are shown before it have times from after the jump. An example is
 * where the 32 bits of FLV's times wrap around. The limit for a jump is that of ffmpeg (dts_delta_threshold).
 */
static bool jumps_within_group(const weir_index *index, AVRational time_base)
{
    const int64_t max_ns = 10 * WEIR_SECOND;
    int64_t latest_pts = INT64_MIN;
    for (size_t i = 1; i < index->num_packets; i++) {
        const weir_packet_entry *before = &index->packets[i - 1], *packet = &index->packets[i];
        if (before->flags & WEIR_PACKET_SHOWN)
            latest_pts = FFMAX(latest_pts, before->pts);
        if (before->dts == AV_NOPTS_VALUE || packet->dts == AV_NOPTS_VALUE || (packet->flags & WEIR_PACKET_KEY))
            continue;
        int64_t jump_ns = av_rescale_q(av_sat_sub64(packet->dts, before->dts), time_base, nanoseconds);
        if ((jump_ns > max_ns || jump_ns < -max_ns) && latest_pts > before->dts)
            return true;
    }
    return false;
}

/* Why the order of timestamps may not be the decoder's output order. */
static const char *distrust_index(const weir_index *index, const AVStream *stream, const dated *frames)
{
    enum { START = WEIR_PACKET_KEY | WEIR_PACKET_CLEAN };
    if (!weir__bitstream_is_known(stream->codecpar->codec_id))
        return "the codec's packets cannot be parsed";
    if (index->num_packets == 0 || index->num_frames == 0)
        return "there are no frames";
    if ((index->packets[0].flags & START) != START)
        return "it does not begin with a keyframe";
    if (frames[0].pts == AV_NOPTS_VALUE)
        return "timestamps are missing";
    if (frames[0].pts < index->packets[0].pts)
        return "frames are shown before the first keyframe";
    if (!is_reasonable(frames[0].pts, frames[index->num_frames - 1].pts, stream->time_base))
        return "timestamps are out of range";
    for (size_t i = 1; i < index->num_frames; i++) {
        if (frames[i].pts == frames[i - 1].pts)
            return "two frames have the same timestamp";
    }
    if (jumps_within_group(index, stream->time_base))
        return "the clock jumps within a group of pictures";
    return overlaps_keyframe(index) ? "a frame before a keyframe is shown after it" : NULL;
}

/* Gives the packets the times of their order, if it is known; otherwise it is known why it is not. */
static int set_order(weir_index *index, const AVStream *stream)
{
    const char *why = NULL;
    bool has_times = true;
    if (!index->order || index->distrust)
        return WEIR_OK;
    int rc = weir__h264_order_end(index->order, stream, index->packets, index->num_packets, &has_times, &why);
    index->distrust = why;
    index->is_ordered = rc == WEIR_OK && !why;
    index->has_no_times = !has_times;
    return rc;
}

int weir__index_end(weir_index *index, const AVStream *stream)
{
    int rc = set_order(index, stream);
    weir__index_cut(index);
    if (rc != WEIR_OK)
        return rc;
    size_t num_packets = index->num_packets;
    dated *dates = calloc(num_packets ? num_packets : 1, sizeof *dates);
    index->frames = calloc(num_packets ? num_packets : 1, sizeof *index->frames);
    if (!dates || !index->frames) {
        free(dates);
        return WEIR_ENOMEM;
    }
    for (size_t i = 0; i < num_packets; i++) {
        if (index->packets[i].flags & WEIR_PACKET_SHOWN)
            dates[index->num_frames++] = (dated){ .pts = index->packets[i].pts, .packet = (uint32_t)i };
    }
    qsort(dates, index->num_frames, sizeof *dates, compare_dated);
    for (size_t i = 0; i < index->num_frames; i++)
        index->frames[i] = dates[i].packet;
    if (!index->distrust)
        index->distrust = distrust_index(index, stream, dates);
    for (size_t i = 1; !index->distrust && i < index->num_frames && index->step != 1; i++)
        index->step = av_gcd(index->step, dates[i].pts - dates[i - 1].pts);
    weir__packets_keep_lower_layers(index->packets, index->num_packets);
    free(dates);
    return WEIR_OK;
}

/* ---- questions ------------------------------------------------------------------------------------------------- */

weir_packet_entry *weir__index_packet(const weir_index *index, size_t at)
{
    return index->blocks ? weir__packet_blocks_packet(index->blocks, at) : &index->packets[at];
}

size_t weir__index_packet_of(const weir_index *index, size_t frame)
{
    return index->blocks ? weir__packet_blocks_packet_of(index->blocks, frame) : index->frames[frame];
}

static const weir_packet_entry *packet_of(const weir_index *index, size_t frame)
{
    return weir__index_packet(index, weir__index_packet_of(index, frame));
}

int weir__index_failure(const weir_index *index, weir_error *error)
{
    if (!index->blocks || index->blocks->rc == WEIR_OK)
        return WEIR_OK;
    if (error)
        *error = index->blocks->error;
    return index->blocks->rc;
}

bool weir__index_find(const weir_index *index, int64_t pts, size_t *frame)
{
    size_t low = 0;
    size_t high = index->num_frames;
    if (index->blocks)
        return weir__packet_blocks_find(index->blocks, pts, frame);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->packets[index->frames[middle]].pts < pts)
            low = middle + 1;
        else
            high = middle;
    }
    *frame = low;
    return low < index->num_frames && index->packets[index->frames[low]].pts == pts;
}

bool weir__index_is_packet(const weir_index *index, size_t at, const AVPacket *packet)
{
    const weir_packet_entry *entry = weir__index_packet(index, at);
    bool is_at_time = index->is_ordered ? entry->dts == packet->dts : entry->pts == packet->pts;
    return is_at_time && entry->size_bytes == packet->size;
}

/* For an index with an order: there, times of decoding rise, or there are none. */
static bool find_dts(const weir_index *index, int64_t dts, size_t *at)
{
    size_t low = 0;
    size_t high = index->num_packets;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (weir__index_packet(index, middle)->dts < dts)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    return dts != AV_NOPTS_VALUE && low < index->num_packets && weir__index_packet(index, low)->dts == dts;
}

bool weir__index_find_packet(const weir_index *index, const AVPacket *packet, size_t *at)
{
    size_t frame;
    if (index->is_ordered)
        return find_dts(index, packet->dts, at);
    bool is_found = weir__index_find(index, packet->pts, &frame);
    *at = is_found ? weir__index_packet_of(index, frame) : 0;
    return is_found;
}

void weir__index_set_pts(const weir_index *index, size_t at, AVPacket *packet)
{
    if (index->is_ordered)
        packet->pts = weir__index_packet(index, at)->pts;
}

size_t weir__index_start_of(const weir_index *index, size_t frame)
{
    enum { MAX_STEPS = 64 };
    int64_t pts = packet_of(index, frame)->pts;
    size_t start = packet_of(index, frame)->start;
    for (unsigned step = 0; start > 0 && step < MAX_STEPS; step++) {
        int64_t start_pts = weir__index_packet(index, start)->pts;
        if (start_pts != AV_NOPTS_VALUE && start_pts <= pts)
            return start;
        start =
            weir__index_packet(index, start - 1)->start; /* frames shown before a keyframe may need earlier frames */
    }
    return 0;
}

/* The duration of the last frame. Where the file does not tell it, it is that of the frame before. */
static int64_t guess_duration(const weir_index *index)
{
    if (index->num_frames < 2)
        return 1;
    return packet_of(index, index->num_frames - 1)->pts - packet_of(index, index->num_frames - 2)->pts;
}

int64_t weir__index_end_ticks(const weir_index *index, const AVStream *stream, bool *is_known)
{
    weir_packet_entry last = *packet_of(index, index->num_frames - 1);
    int64_t duration =
        last.duration > 0 ? last.duration : weir__average_ticks(stream->avg_frame_rate, stream->time_base);
    *is_known = duration > 0;
    return last.pts - packet_of(index, 0)->pts + (duration > 0 ? duration : guess_duration(index));
}

/* Looks of a timeline (weir_timeline_source), at an index. */
static int64_t look_at_ticks(const void *self, size_t frame)
{
    const weir_index *index = self;
    return packet_of(index, frame)->pts - packet_of(index, 0)->pts;
}

static bool look_at_key(const void *self, size_t frame)
{
    return packet_of(self, frame)->flags & WEIR_PACKET_KEY;
}

static void narrow_frames(const void *self, int64_t low, int64_t high, size_t *begin, size_t *end)
{
    const weir_index *index = self;
    int64_t first = packet_of(index, 0)->pts;
    weir__packet_blocks_narrow(index->blocks, av_sat_add64(low, first), av_sat_add64(high, first), begin, end);
}

void weir__index_set_timeline(const weir_index *index, const AVStream *stream, weir_timeline *timeline)
{
    timeline->source = (weir_timeline_source){
        .self = index,
        .ticks = look_at_ticks,
        .is_key = look_at_key,
        .narrow = index->blocks ? narrow_frames : NULL,
    };
    timeline->num_frames = index->num_frames;
    timeline->time_base = stream->time_base;
    timeline->first_pts = packet_of(index, 0)->pts;
    timeline->end_ticks = weir__index_end_ticks(index, stream, &timeline->has_end);
    weir__timeline_end(timeline, index->step, stream->avg_frame_rate, stream->r_frame_rate);
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

int weir__index_use_blocks(weir_index *index, weir_read_block *read, size_t self_bytes)
{
    index->blocks = calloc(1, sizeof *index->blocks);
    if (!index->blocks)
        return WEIR_ENOMEM;
    index->blocks->read = read;
    index->blocks->self = calloc(1, self_bytes);
    return index->blocks->self ? WEIR_OK : WEIR_ENOMEM;
}

int weir__index_end_blocks(weir_index *index, const AVStream *stream)
{
    const weir_packet_block *all = &index->blocks->all[index->blocks->num];
    index->num_packets = all->first_packet;
    index->num_frames = all->first_frame;
    if (!weir__bitstream_is_known(stream->codecpar->codec_id))
        return WEIR_EDATA;
    int64_t first = packet_of(index, 0)->pts, last = packet_of(index, index->num_frames - 1)->pts;
    weir_packet_entry begin = *weir__index_packet(index, 0);
    if (index->blocks->rc != WEIR_OK)
        return index->blocks->rc;
    bool is_trusted =
        (begin.flags & WEIR_PACKET_KEY) && first >= begin.pts && is_reasonable(first, last, stream->time_base);
    return is_trusted ? WEIR_OK : WEIR_EDATA;
}

void weir__index_load(const weir_index *index, size_t first, size_t last)
{
    if (!index->blocks)
        return;
    size_t end = weir__packet_blocks_with(index->blocks, last);
    for (size_t block = weir__packet_blocks_with(index->blocks, first); block <= end; block++)
        weir__packet_blocks_load(index->blocks, block);
}

bool weir__index_try(const weir_index *index, size_t at)
{
    weir_packet_blocks *blocks = index->blocks;
    return !blocks || weir__packet_blocks_try(blocks, weir__packet_blocks_with(blocks, at));
}

bool weir__index_is_doubtful(const weir_index *index)
{
    return index->blocks && index->blocks->is_doubtful;
}

/* ---- an index that is not trusted -------------------------------------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
    const int64_t *left = a;
    const int64_t *right = b;
    return *left < *right ? -1 : *left > *right;
}

/* Lists the times of the packets that are shown, sorted. Returns their number; 0 = some have no such time. */
static size_t list_times(const weir_index *index, bool is_pts, int64_t *times)
{
    size_t num = 0;
    for (size_t i = 0; i < index->num_packets; i++) {
        const weir_packet_entry *packet = &index->packets[i];
        int64_t time = is_pts ? packet->pts : packet->dts;
        if (time == AV_NOPTS_VALUE)
            return 0;
        if (packet->flags & WEIR_PACKET_SHOWN)
            times[num++] = time;
    }
    qsort(times, num, sizeof *times, compare_times);
    return num;
}

/* As if all frames lasted equally long. Returns their number. */
static size_t number_times(const weir_index *index, int64_t duration, int64_t *times)
{
    size_t num = 0;
    for (size_t i = 0; i < index->num_packets; i++) {
        if (index->packets[i].flags & WEIR_PACKET_SHOWN) {
            times[num] = (int64_t)num * duration;
            num++;
        }
    }
    return num;
}

int weir__index_guess_timeline(const weir_index *index, const AVStream *stream, weir_timeline *timeline)
{
    int64_t *times = calloc(index->num_packets ? index->num_packets : 1, sizeof *times);
    if (!times)
        return WEIR_ENOMEM;
    size_t num = list_times(index, true, times);
    if (num == 0)
        num = list_times(index, false, times);
    if (num == 0)
        num = number_times(index, FFMAX(weir__average_ticks(stream->avg_frame_rate, stream->time_base), 1), times);
    int rc = num > 0 && is_reasonable(times[0], times[num - 1], stream->time_base) ? WEIR_OK : WEIR_EDATA;
    for (size_t i = 0; rc == WEIR_OK && i < num; i++)
        rc = weir__timeline_add(timeline, times[i] - times[0], false);
    if (rc == WEIR_OK) {
        int64_t duration = weir__average_ticks(stream->avg_frame_rate, stream->time_base);
        timeline->time_base = stream->time_base;
        timeline->first_pts = times[0];
        timeline->has_end = duration > 0;
        timeline->end_ticks = times[num - 1] - times[0] + FFMAX(duration, 1);
        weir__timeline_end(timeline, weir__timeline_step(timeline), stream->avg_frame_rate, stream->r_frame_rate);
    }
    free(times);
    return rc;
}

size_t weir__index_bytes(const weir_index *index)
{
    if (index->blocks)
        return index->blocks->bytes;
    return index->max_packets * sizeof *index->packets + index->num_frames * sizeof *index->frames;
}

void weir__index_reset(weir_index *index)
{
    weir__index_cut(index);
    free(index->packets);
    free(index->frames);
    if (index->blocks)
        weir__packet_blocks_reset(index->blocks);
    free(index->blocks);
    *index = (weir_index){ 0 };
}
