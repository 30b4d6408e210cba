/*
 * Whether times are rounded shows in the times themselves: if a frame lasts a whole number of ticks, they are multiples
 * of that number, also with a variable rate. Only frames of one tick cannot be told from rounded ones; there the frame rate
 * in the header decides.
 */
#include "stages/reader/frame_clock.h"

#include <stdlib.h>

#include <libavutil/mathematics.h>

#include <weir/clock.h>
#include <weir/status.h>

static const AVRational nanoseconds = { 1, (int)WEIR_SECOND };

/* ---- decoded frames ------------------------------------------------------------------------------------------ */

void weir__frame_clock_begin(weir_frame_clock *clock, const AVStream *stream)
{
    *clock = (weir_frame_clock){
        .time_base = stream->time_base,
        .rate = stream->avg_frame_rate,
        .first_pts = AV_NOPTS_VALUE,
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

/* How long it is shown: as the frame itself says, or the average. */
static int64_t shown_ticks(const weir_frame_clock *clock, const AVFrame *frame)
{
    static const AVRational longest = { 1000, 1 }, unknown = { 1, 25 };
    AVRational interval = clock->rate.num > 0 && clock->rate.den > 0 ? av_inv_q(clock->rate) : unknown;
    int64_t duration = frame_duration(frame);
    if (duration <= 0 || duration >= INT32_MAX)
        duration = FFMAX(av_rescale_q(1, interval, clock->time_base), 1);
    return FFMIN(duration, FFMAX(av_rescale_q(1, longest, clock->time_base), 1));
}

/* Is arithmetic with it free of overflows? */
static bool is_reasonable(int64_t pts)
{
    return pts != AV_NOPTS_VALUE && pts > -INT64_MAX / 4 && pts < INT64_MAX / 4;
}

void weir__frame_clock_add(weir_frame_clock *clock, const AVFrame *frame)
{
    int64_t pts = frame->best_effort_timestamp;
    int64_t ticks = -1;
    if (clock->first_pts == AV_NOPTS_VALUE)
        clock->first_pts = pts;
    if (is_reasonable(pts) && is_reasonable(clock->first_pts))
        ticks = pts - clock->first_pts;
    int64_t time_ns = weir__ticks_ns(ticks, clock->time_base);
    if (ticks < 0 || time_ns < 0 || time_ns > INT64_MAX / 4)
        ticks = clock->end_ticks;
    clock->ticks = FFMAX(ticks, clock->ticks);
    clock->end_ticks = clock->ticks + shown_ticks(clock, frame);
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

void weir__timeline_reset(weir_timeline *timeline)
{
    free(timeline->ticks);
    free(timeline->is_key);
    *timeline = (weir_timeline){ 0 };
}

/* ---- rounding ------------------------------------------------------------------------------------------------ */

/* All times are multiples of it; 0 = there is only one frame. */
static int64_t common_step(const weir_timeline *timeline)
{
    int64_t step = 0;
    for (size_t i = 1; i < timeline->num_frames && step != 1; i++)
        step = av_gcd(step, timeline->ticks[i] - timeline->ticks[i - 1]);
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

void weir__timeline_end(weir_timeline *timeline, AVRational average_rate, AVRational real_rate)
{
    /* So few times may have a common step by chance. */
    enum { FEW_FRAMES = 4, MILLISECONDS = 1000 };
    int64_t step = common_step(timeline);
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
    return weir__ticks_ns(frame < timeline->num_frames ? timeline->ticks[frame] : timeline->end_ticks,
                          timeline->time_base);
}

/* The number of frames whose time, moved by the tolerance times `direction`, is below the bound. */
static size_t count_below(const weir_timeline *timeline, int64_t bound_ns, int direction)
{
    size_t low = 0;
    size_t high = timeline->num_frames;
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
