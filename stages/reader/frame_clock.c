/*
 * Packets: ffmpeg's rules are those of its program (ts_discontinuity_process(), or process_input() in version 5.1), which
 * computes in microseconds since the container's start; the same steps give the same times to the tick.
 *
 * Whether times are rounded shows in the times themselves: if a frame lasts a whole number of ticks, they are multiples
 * of that number, also with a variable rate. Only frames of one tick cannot be told from rounded ones; there the frame rate
 * in the header decides.
 */
#include "stages/reader/frame_clock.h"

#include <stdlib.h>
#include <string.h>

#include <libavutil/mathematics.h>

#include <weir/clock.h>
#include <weir/status.h>

static const AVRational nanoseconds = { 1, (int)WEIR_SECOND };
static const AVRational microseconds = { 1, AV_TIME_BASE };

/* ---- packets ------------------------------------------------------------------------------------------------- */

void weir__packet_clock_begin(weir_packet_clock *clock, const AVFormatContext *format, const AVStream *stream)
{
    AVRational rate = stream->avg_frame_rate.num > 0 ? stream->avg_frame_rate : stream->r_frame_rate;
    int64_t start_us = format->start_time;
    int64_t own_us = stream->start_time == AV_NOPTS_VALUE
                         ? AV_NOPTS_VALUE
                         : av_rescale_q(stream->start_time, stream->time_base, microseconds);
    *clock = (weir_packet_clock){
        .time_base = stream->time_base,
        .may_restart = format->iformat->flags & AVFMT_TS_DISCONT,
        .wrap_bits = stream->pts_wrap_bits,
        .start_us = start_us,
        .first_us = start_us == AV_NOPTS_VALUE ? 0 : FFMAX(start_us, own_us),
        .interval_us = rate.num > 0 && rate.den > 0 ? av_rescale_q(1, av_inv_q(rate), microseconds) : 0,
        .last_dts_us = AV_NOPTS_VALUE,
        .next_dts_us = AV_NOPTS_VALUE,
    };
    clock->offset_us = -clock->first_us;
}

void weir__packet_clock_seek(weir_packet_clock *clock)
{
    clock->last_dts_us = AV_NOPTS_VALUE;
    clock->next_dts_us = AV_NOPTS_VALUE;
}

static void move_packet(AVPacket *packet, int64_t ticks)
{
    if (packet->dts != AV_NOPTS_VALUE)
        packet->dts = av_sat_add64(packet->dts, ticks);
    if (packet->pts != AV_NOPTS_VALUE)
        packet->pts = av_sat_add64(packet->pts, ticks);
}

/* A recording that begins shortly before the wrap: its first times are larger than the later ones. */
static bool unwrap_time(const weir_packet_clock *clock, int64_t *time)
{
    int64_t start = av_rescale_q(clock->start_us, microseconds, clock->time_base);
    if (*time == AV_NOPTS_VALUE || *time <= av_sat_add64(start, INT64_C(1) << (clock->wrap_bits - 1)))
        return false;
    *time = av_sat_sub64(*time, INT64_C(1) << clock->wrap_bits);
    return true;
}

static void unwrap_packet(weir_packet_clock *clock, AVPacket *packet)
{
    enum { MAX_BITS = 62 };
    if (clock->is_wrap_checked || clock->start_us == AV_NOPTS_VALUE || clock->wrap_bits <= 0 ||
        clock->wrap_bits > MAX_BITS)
        return;
    bool has_dts = unwrap_time(clock, &packet->dts);
    bool has_pts = unwrap_time(clock, &packet->pts);
    clock->is_wrap_checked = !has_dts && !has_pts;
    clock->num_restarts += has_dts || has_pts;
}

/* By how much the clock has jumped before this packet; 0 = it has not. The limits are ffmpeg's. */
static int64_t find_jump(const weir_packet_clock *clock, int64_t dts_us)
{
    const int64_t max_jump_us = INT64_C(10) * AV_TIME_BASE, max_back_us = AV_TIME_BASE / 10;
    bool is_expected = clock->next_dts_us != AV_NOPTS_VALUE;
    int64_t expected_us = is_expected ? clock->next_dts_us : clock->last_dts_us;
    if (expected_us == AV_NOPTS_VALUE)
        return 0;
    int64_t jump_us = av_sat_sub64(dts_us, expected_us);
    bool is_jump = jump_us < -max_jump_us || jump_us > max_jump_us || (is_expected && jump_us < -max_back_us);
    return is_jump ? jump_us : 0;
}

static void expect_next(weir_packet_clock *clock, const AVPacket *packet, int64_t dts_us)
{
    int64_t duration_us =
        packet->duration > 0 ? av_rescale_q(packet->duration, clock->time_base, microseconds) : clock->interval_us;
    int64_t at_us = dts_us != AV_NOPTS_VALUE ? dts_us : clock->next_dts_us;
    clock->last_dts_us = dts_us != AV_NOPTS_VALUE ? dts_us : clock->last_dts_us;
    clock->next_dts_us =
        at_us == AV_NOPTS_VALUE || duration_us <= 0 ? AV_NOPTS_VALUE : av_sat_add64(at_us, duration_us);
}

void weir__packet_clock_run(weir_packet_clock *clock, AVPacket *packet)
{
    if (!clock->may_restart)
        return;
    unwrap_packet(clock, packet);
    move_packet(packet, av_rescale_q(clock->offset_us, microseconds, clock->time_base));
    int64_t dts_us = AV_NOPTS_VALUE;
    if (packet->dts != AV_NOPTS_VALUE) {
        dts_us = av_rescale_q(packet->dts, clock->time_base, microseconds);
        int64_t jump_us = find_jump(clock, dts_us);
        if (jump_us) {
            clock->num_restarts++;
            clock->offset_us = av_sat_sub64(clock->offset_us, jump_us);
            move_packet(packet, av_sat_sub64(0, av_rescale_q(jump_us, microseconds, clock->time_base)));
            dts_us = av_rescale_q(packet->dts, clock->time_base, microseconds);
        }
    }
    expect_next(clock, packet, dts_us);
    move_packet(packet, av_sat_sub64(0, av_rescale_q(-clock->first_us, microseconds, clock->time_base)));
}

/* ---- hidden packets ------------------------------------------------------------------------------------------ */

/* FFmpeg drops the frames of other decoders; those of these, which do not return one frame for each packet by themselves,
   only since version 6.1. */
static bool shows_hidden(const AVCodec *codec)
{
    static const char *const names[] = { "libdav1d", "mjpeg", "jpegls", "sp5x" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(codec->name, names[i]) == 0)
            return true;
    return false;
}

int weir__hidden_packets_add(weir_hidden_packets *hidden, const AVCodec *codec, const AVPacket *packet)
{
    if (!(packet->flags & AV_PKT_FLAG_DISCARD) || packet->pts == AV_NOPTS_VALUE || !shows_hidden(codec))
        return WEIR_OK;
    if (hidden->num == hidden->max) {
        size_t max = hidden->max ? hidden->max * 2 : 64;
        int64_t *pts = realloc(hidden->pts, max * sizeof *pts);
        if (!pts)
            return WEIR_ENOMEM;
        hidden->pts = pts;
        hidden->max = max;
    }
    hidden->pts[hidden->num++] = packet->pts;
    return WEIR_OK;
}

bool weir__hidden_packets_take(weir_hidden_packets *hidden, const AVFrame *frame)
{
    for (size_t i = 0; i < hidden->num; i++) {
        if (hidden->pts[i] != frame->pts)
            continue;
        hidden->num -= i + 1; /* those before it gave no frame */
        memmove(hidden->pts, hidden->pts + i + 1, hidden->num * sizeof *hidden->pts);
        return true;
    }
    return false;
}

void weir__hidden_packets_reset(weir_hidden_packets *hidden)
{
    free(hidden->pts);
    *hidden = (weir_hidden_packets){ 0 };
}

/* ---- decoded frames ------------------------------------------------------------------------------------------ */

void weir__frame_clock_begin(weir_frame_clock *clock, const AVStream *stream)
{
    *clock = (weir_frame_clock){
        .time_base = stream->time_base,
        .rate = stream->avg_frame_rate,
        .first_pts = AV_NOPTS_VALUE,
        .pts = AV_NOPTS_VALUE,
    };
}

static int64_t frame_duration(const AVFrame *frame)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
    return frame->duration;
#else
    return frame->pkt_duration;
#endif
}

int64_t weir__average_ticks(AVRational rate, AVRational time_base)
{
    return rate.num > 0 && rate.den > 0 ? FFMAX(av_rescale_q(1, av_inv_q(rate), time_base), 1) : 0;
}

/* How long a frame is shown: as it says itself, or the average; 0 = unknown. */
static int64_t shown_ticks(const weir_frame_clock *clock, int64_t duration)
{
    static const AVRational longest = { 1000, 1 };
    if (duration <= 0 || duration >= INT32_MAX)
        duration = weir__average_ticks(clock->rate, clock->time_base);
    return FFMIN(duration, FFMAX(av_rescale_q(1, longest, clock->time_base), 1));
}

/* Is arithmetic with it free of overflows? */
static bool is_reasonable(int64_t pts)
{
    return pts != AV_NOPTS_VALUE && pts > -INT64_MAX / 4 && pts < INT64_MAX / 4;
}

void weir__frame_clock_advance(weir_frame_clock *clock, int64_t pts, int64_t duration)
{
    static const AVRational usual = { 25, 1 };
    int64_t ticks = -1;
    if (!is_reasonable(clock->first_pts) && is_reasonable(pts))
        clock->first_pts = pts - clock->end_ticks; /* frames before it may have had no time */
    if (is_reasonable(pts) && is_reasonable(clock->first_pts))
        ticks = pts - clock->first_pts;
    int64_t time_ns = weir__ticks_ns(ticks, clock->time_base);
    if (ticks < 0 || time_ns < 0 || time_ns > INT64_MAX / 4)
        ticks = clock->end_ticks;
    clock->pts = pts;
    if (!is_reasonable(pts) && is_reasonable(clock->first_pts))
        clock->pts = clock->first_pts + ticks;
    clock->ticks = FFMAX(ticks, clock->ticks);
    int64_t shown = shown_ticks(clock, duration);
    clock->has_end = shown > 0;
    clock->end_ticks = clock->ticks + (shown ? shown : weir__average_ticks(usual, clock->time_base));
}

void weir__frame_clock_add(weir_frame_clock *clock, const AVFrame *frame)
{
    weir__frame_clock_advance(clock, frame->best_effort_timestamp, frame_duration(frame));
}

/* ---- the timeline -------------------------------------------------------------------------------------------- */

int weir__timeline_add(weir_timeline *timeline, int64_t ticks, bool is_key)
{
    if (timeline->num_frames == timeline->max_frames) {
        size_t max_frames = timeline->max_frames ? timeline->max_frames * 2 : 512;
        int64_t *grown_ticks = realloc(timeline->ticks, max_frames * sizeof *grown_ticks);
        if (grown_ticks)
            timeline->ticks = grown_ticks;
        bool *grown = realloc(timeline->is_key, max_frames * sizeof *grown);
        if (grown)
            timeline->is_key = grown;
        if (!grown_ticks || !grown)
            return WEIR_ENOMEM;
        timeline->max_frames = max_frames;
    }
    timeline->ticks[timeline->num_frames] = ticks;
    timeline->is_key[timeline->num_frames++] = is_key;
    return WEIR_OK;
}

int64_t weir__timeline_ticks(const weir_timeline *timeline, size_t frame)
{
    const weir_timeline_source *source = &timeline->source;
    return source->ticks ? source->ticks(source->self, frame) : timeline->ticks[frame];
}

bool weir__timeline_is_key(const weir_timeline *timeline, size_t frame)
{
    const weir_timeline_source *source = &timeline->source;
    return source->is_key ? source->is_key(source->self, frame) : timeline->is_key[frame];
}

size_t weir__timeline_bytes(const weir_timeline *timeline)
{
    return timeline->max_frames * (sizeof *timeline->ticks + sizeof *timeline->is_key);
}

void weir__timeline_reset(weir_timeline *timeline)
{
    free(timeline->ticks);
    free(timeline->is_key);
    *timeline = (weir_timeline){ 0 };
}

/* ---- rounding ------------------------------------------------------------------------------------------------ */

int64_t weir__timeline_step(const weir_timeline *timeline)
{
    int64_t step = 0;
    for (size_t i = 1; i < timeline->num_frames && step != 1; i++)
        step = av_gcd(step, weir__timeline_ticks(timeline, i) - weir__timeline_ticks(timeline, i - 1));
    return step;
}

/* The ticks of a frame at that rate, if they are a whole number; 0 = they are not, or the rate is unknown. */
static int64_t whole_ticks(AVRational rate, AVRational time_base)
{
    if (rate.num <= 0 || rate.den <= 0 || time_base.num <= 0 || time_base.den <= 0)
        return 0;
    AVRational frame = av_inv_q(rate);
    int64_t ticks = av_rescale_q(1, frame, time_base);
    return ticks > 0 && av_compare_ts(ticks, time_base, 1, frame) == 0 ? ticks : 0;
}

void weir__timeline_end(weir_timeline *timeline, int64_t step, AVRational average_rate, AVRational real_rate)
{
    /* So few times may have a common step by chance. */
    enum { FEW_FRAMES = 4, MILLISECONDS = 1000 };
    int64_t average = whole_ticks(average_rate, timeline->time_base);
    /* For variable rates FFmpeg's guess of the real one is a frame for each millisecond. */
    bool is_guessed = timeline->time_base.den >= MILLISECONDS * (int64_t)timeline->time_base.num;
    int64_t real = is_guessed ? 0 : whole_ticks(real_rate, timeline->time_base);
    bool is_whole = step == 0 || (step > 1 && timeline->num_frames >= FEW_FRAMES) ||
                    (average && step % average == 0) || (real && step % real == 0);
    timeline->is_rounded = !is_whole;
}

int64_t weir__timeline_tolerance_ns(const weir_timeline *timeline, size_t frame)
{
    enum { CALLERS_ROUNDING_NS = 1 };
    if (!timeline->is_rounded)
        return CALLERS_ROUNDING_NS;
    int64_t room_ns = weir__ticks_ns(1, timeline->time_base) - 1;
    int64_t time_ns = weir__timeline_ns(timeline, frame);
    if (frame > 0)
        room_ns = FFMIN(room_ns, (time_ns - weir__timeline_ns(timeline, frame - 1) - 1) / 2);
    if (frame < timeline->num_frames)
        room_ns = FFMIN(room_ns, (weir__timeline_ns(timeline, frame + 1) - time_ns - 1) / 2);
    return FFMAX(room_ns, CALLERS_ROUNDING_NS);
}

/* ---- times --------------------------------------------------------------------------------------------------- */

int64_t weir__ticks_ns(int64_t ticks, AVRational time_base)
{
    return av_rescale_q(ticks, time_base, nanoseconds);
}

int64_t weir__timeline_ns(const weir_timeline *timeline, size_t frame)
{
    bool is_end = frame >= timeline->num_frames;
    return weir__ticks_ns(is_end ? timeline->end_ticks : weir__timeline_ticks(timeline, frame), timeline->time_base);
}

int64_t weir__timeline_start_ns(const weir_timeline *timeline)
{
    return is_reasonable(timeline->first_pts) ? weir__ticks_ns(timeline->first_pts, timeline->time_base) : 0;
}

bool weir__timeline_is_over(const weir_timeline *timeline, int64_t time_ns)
{
    size_t end = timeline->num_frames;
    return weir__timeline_ns(timeline, end) - weir__timeline_tolerance_ns(timeline, end) <= time_ns;
}

/* The frames whose times, moved by a tolerance, may be the bound. A tolerance is less than a tick. */
static void narrow(const weir_timeline *timeline, int64_t bound_ns, size_t *low, size_t *high)
{
    enum { ROOM = 2 };
    int64_t ticks = av_rescale_q(bound_ns, nanoseconds, timeline->time_base);
    timeline->source.narrow(timeline->source.self, av_sat_sub64(ticks, ROOM), av_sat_add64(ticks, ROOM), low, high);
}

/* The number of frames whose time, moved by the tolerance times `direction`, is below the bound. */
static size_t count_below(const weir_timeline *timeline, int64_t bound_ns, int direction)
{
    size_t low = 0;
    size_t high = timeline->num_frames;
    if (timeline->source.narrow)
        narrow(timeline, bound_ns, &low, &high);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int64_t moved_ns = direction * weir__timeline_tolerance_ns(timeline, middle);
        if (weir__timeline_ns(timeline, middle) + moved_ns < bound_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t weir__timeline_before(const weir_timeline *timeline, int64_t time_ns)
{
    return count_below(timeline, time_ns, 1);
}

size_t weir__timeline_up_to(const weir_timeline *timeline, int64_t time_ns)
{
    return count_below(timeline, time_ns < INT64_MAX ? time_ns + 1 : time_ns, -1);
}
