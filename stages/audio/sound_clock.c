#include "stages/audio/sound_clock.h"

#include <stdlib.h>

#include <libavutil/common.h>
#include <libavutil/mathematics.h>

/* How far times may be from the samples: that of files which were copied from containers that count milliseconds. */
enum { MAX_ROUNDING_PER_SECOND = 500 };

/* Less than this is jitter of the times and not a gap: that of FFmpeg's resampler when it compensates
   (min_hard_comp). */
enum { MAX_JITTER_PER_SECOND = 10 };

/* A longer step of a clock that may restart is a restart: that of the ffmpeg program (dts_delta_threshold). */
enum { MAX_GAP_SECONDS = 10 };

void weir__sound_clock_begin(weir_sound_clock *clock, AVRational time_base, bool has_fixed_size, bool may_restart)
{
    *clock = (weir_sound_clock){
        .time_base = time_base,
        .first_pts = AV_NOPTS_VALUE,
        .has_fixed_size = has_fixed_size,
        .may_restart = may_restart,
    };
}

void weir__sound_clock_seek(weir_sound_clock *clock)
{
    clock->is_sought = true;
    clock->num_frames = 0;
}

static bool is_tick_within_sample(const weir_sound_clock *clock)
{
    return (int64_t)clock->time_base.num * clock->rate <= clock->time_base.den;
}

/* By how many samples a time may differ from that of its frame. */
static int64_t slack_of(const weir_sound_clock *clock)
{
    int64_t rounding = clock->rate / MAX_ROUNDING_PER_SECOND;
    int64_t samples_per_tick = (int64_t)clock->time_base.num * clock->rate; /* × 1 / time_base.den */
    bool is_whole = clock->grid > 0 && (clock->grid * (int64_t)clock->time_base.den) % samples_per_tick == 0;
    return rounding + (is_whole ? 0 : 2 * samples_per_tick / clock->time_base.den);
}

static bool is_near(const weir_sound_clock *clock, int64_t samples)
{
    return samples <= slack_of(clock) && samples >= -slack_of(clock);
}

/* How far the sample is from the nearest multiple of the frames' size; *whole is that one. */
static int64_t off_grid(const weir_sound_clock *clock, int64_t samples, int64_t *whole)
{
    int64_t half = samples >= 0 ? clock->grid / 2 : -(clock->grid / 2);
    *whole = (samples + half) / clock->grid * clock->grid;
    return samples - *whole;
}

/* The sample of that time, as near as the time tells. */
static int64_t sample_at(const weir_sound_clock *clock, int64_t pts)
{
    int64_t ticks = av_sat_sub64(pts, clock->first_pts);
    const AVRational sample = { 1, clock->rate };
    int64_t limit = INT64_MAX / 4; /* damaged times stay countable */
    return av_clip64(av_rescale_q(ticks, clock->time_base, sample), -limit, limit);
}

/* Begins to count after a seek. The decoder may have cut its first frame (as Opus's), and not know the one before it.
   */
static int64_t place_sought(weir_sound_clock *clock, int64_t at, int size)
{
    int64_t whole;
    if (!clock->grid)
        return at;
    if (size != clock->grid || !is_near(clock, off_grid(clock, at - clock->grid_start, &whole)))
        return WEIR_SAMPLE_LOST;
    return clock->grid_start + whole;
}

/* The frame is `ahead` of where the one before it has ended. */
static int64_t place_apart(weir_sound_clock *clock, int64_t ahead)
{
    int64_t whole;
    if (clock->grid && is_near(clock, off_grid(clock, ahead, &whole)) && whole > 0 &&
        !(clock->may_restart && ahead > (int64_t)clock->rate * MAX_GAP_SECONDS))
        return clock->next + whole;
    if (clock->is_sought)
        return WEIR_SAMPLE_LOST;
    if (llabs(ahead) <= clock->rate / MAX_JITTER_PER_SECOND)
        return clock->next;
    if (ahead > 0 && !(clock->may_restart && ahead > (int64_t)clock->rate * MAX_GAP_SECONDS))
        return clock->next + ahead;
    clock->shift -= ahead; /* the clock has restarted */
    return clock->next;
}

static int64_t place_next(weir_sound_clock *clock, const AVFrame *frame)
{
    int64_t pts = frame->best_effort_timestamp;
    bool is_sure = clock->first_pts != AV_NOPTS_VALUE && pts != AV_NOPTS_VALUE;
    if (!is_sure)
        return clock->is_sought && clock->num_frames == 1 ? WEIR_SAMPLE_LOST : clock->next;
    int64_t at = sample_at(clock, pts) + clock->shift;
    if (clock->is_sought && clock->num_frames == 1)
        return place_sought(clock, at, frame->nb_samples);
    int64_t ahead = at - clock->next;
    bool follows = clock->is_sought && !clock->grid ? llabs(ahead) <= 1 : is_near(clock, ahead);
    return follows ? clock->next : place_apart(clock, ahead);
}

static void learn_grid(weir_sound_clock *clock, int size)
{
    if (clock->num_frames == 1) {
        clock->grid_start = clock->next;
        clock->grid = clock->has_fixed_size ? size : 0;
    } else if (size != clock->grid || 2 * slack_of(clock) >= clock->grid) {
        clock->grid = 0;
    }
}

int64_t weir__sound_clock_place(weir_sound_clock *clock, const AVFrame *frame)
{
    bool is_first = clock->num_frames == 0;
    int64_t place = clock->next;
    if (is_first && !clock->is_sought) {
        clock->rate = frame->sample_rate;
        clock->first_pts = frame->best_effort_timestamp;
    } else if (is_first) {
        clock->num_frames = 1;
        if (frame->best_effort_timestamp != AV_NOPTS_VALUE)
            clock->next = sample_at(clock, frame->best_effort_timestamp);
        return WEIR_SAMPLE_UNKNOWN;
    } else {
        if (!clock->is_sought && clock->num_frames < 3)
            learn_grid(clock, frame->nb_samples);
        place = place_next(clock, frame);
    }
    clock->num_frames += clock->num_frames < 3;
    if (place != WEIR_SAMPLE_LOST)
        clock->next = place + frame->nb_samples;
    return place;
}

bool weir__sound_clock_can_seek(const weir_sound_clock *clock, bool is_continuous)
{
    bool is_known = clock->num_frames >= 3 || clock->is_sought;
    return is_known && clock->first_pts != AV_NOPTS_VALUE && (is_continuous || !clock->may_restart) &&
           clock->shift == 0 && (clock->grid || is_tick_within_sample(clock));
}

int64_t weir__sound_clock_pts(const weir_sound_clock *clock, int64_t sample)
{
    const AVRational unit = { 1, clock->rate };
    return av_sat_add64(clock->first_pts, av_rescale_q(sample, unit, clock->time_base));
}
