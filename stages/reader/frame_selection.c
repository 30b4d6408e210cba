/*
 * Each kind of sampling is one function that appends numbers to a list; the list grows as needed, up to its limit. All
 * arithmetic is in integers, so that every machine selects the same frames.
 */
#include "stages/reader/frame_selection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libavutil/mathematics.h>

#include "common/random.h"

enum { NS_PER_SECOND = 1000000000 };

typedef struct range {
    uint64_t begin;
    uint64_t end;
} range;

typedef struct list {
    uint64_t *indices;
    bool *is_repeat;
    size_t num;
    size_t max;
    uint64_t limit;
    weir_error *error;
} list;

/* ---- options ------------------------------------------------------------------------------------------------- */

static int refuse_sampling(weir_error *error, const char *text)
{
    return weir_error_set(error, WEIR_EINVAL, 0, "sampling: %s", text);
}

static int check_lists(const weir_sampling *sampling, weir_error *error)
{
    bool is_list = sampling->what == WEIR_SAMPLE_INDICES || sampling->what == WEIR_SAMPLE_TIMES;
    bool has_window = sampling->start_ns || sampling->end_ns || sampling->start_frame || sampling->end_frame;
    if (is_list && (has_window || sampling->count))
        return refuse_sampling(error, "explicit indices or times cannot be combined with a window or a count");
    if (sampling->what == WEIR_SAMPLE_INDICES && (!sampling->indices || !sampling->num_indices))
        return refuse_sampling(error, "no indices are given");
    if (sampling->what == WEIR_SAMPLE_TIMES && (!sampling->times_ns || !sampling->num_times))
        return refuse_sampling(error, "no times are given");
    return WEIR_OK;
}

static int check_times(const weir_sampling *sampling, weir_error *error)
{
    bool is_times = sampling->what == WEIR_SAMPLE_TIMES;
    bool has_window = sampling->start_ns || sampling->end_ns;
    if ((unsigned)sampling->match > WEIR_MATCH_EXACT || (unsigned)sampling->outside > WEIR_OUTSIDE_FAIL ||
        (unsigned)sampling->origin > WEIR_ORIGIN_STREAM)
        return weir_error_set(
            error, WEIR_EINVAL, 0,
            "sampling: match %d, outside %d or origin %d is invalid; use WEIR_MATCH_…, WEIR_OUTSIDE_… "
            "and WEIR_ORIGIN_…",
            (int)sampling->match, (int)sampling->outside, (int)sampling->origin);
    if ((sampling->match || sampling->outside) && !is_times)
        return refuse_sampling(error, "match and outside are only for explicit times");
    if (sampling->tolerance_ns < 0 || (sampling->tolerance_ns && sampling->match != WEIR_MATCH_EXACT))
        return refuse_sampling(error, "tolerance_ns is negative, or match is not WEIR_MATCH_EXACT");
    if (sampling->origin && !is_times && !has_window)
        return refuse_sampling(error, "origin is only for times and windows");
    return WEIR_OK;
}

static int check_clips(const weir_sampling *sampling, weir_error *error)
{
    bool is_clips = sampling->what == WEIR_SAMPLE_CLIPS;
    bool has_clips = sampling->num_clips || sampling->stride_frames || sampling->stride_ns || sampling->clip_start ||
                     sampling->clip_short;
    bool is_single = sampling->clip_start == WEIR_CLIP_FIRST || sampling->clip_start == WEIR_CLIP_CENTER;
    if (has_clips && !is_clips)
        return refuse_sampling(error,
                               "num_clips, stride_frames, stride_ns, clip_start and clip_short are only for clips");
    if ((unsigned)sampling->clip_start > WEIR_CLIP_EVEN || (unsigned)sampling->clip_short > WEIR_SHORT_FAIL)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "sampling: clip_start %d or clip_short %d is invalid; use WEIR_CLIP_… and WEIR_SHORT_…",
                              (int)sampling->clip_start, (int)sampling->clip_short);
    if (sampling->stride_ns < 0 || (sampling->stride_ns && sampling->stride_frames))
        return refuse_sampling(error, "set either stride_frames or stride_ns, not both");
    if (is_clips && is_single && sampling->num_clips > 1)
        return refuse_sampling(error, "several clips need WEIR_CLIP_RANDOM or WEIR_CLIP_EVEN");
    return WEIR_OK;
}

static int check_what(const weir_sampling *sampling, weir_error *error)
{
    if ((unsigned)sampling->what > WEIR_SAMPLE_CLIPS)
        return weir_error_set(error, WEIR_EINVAL, 0, "sampling: kind %d is invalid; use WEIR_SAMPLE_…",
                              (int)sampling->what);
    return WEIR_OK;
}

static int check_window(const weir_sampling *sampling, weir_error *error)
{
    if (sampling->origin == WEIR_ORIGIN_FIRST && (sampling->start_ns < 0 || sampling->end_ns < 0))
        return refuse_sampling(error, "the window starts or ends before 0");
    if (sampling->end_ns && sampling->start_ns && sampling->end_ns <= sampling->start_ns)
        return refuse_sampling(error, "the window ends before it starts");
    if (sampling->end_frame && sampling->end_frame <= sampling->start_frame)
        return refuse_sampling(error, "the window ends before it starts");
    return WEIR_OK;
}

static int check_amount(const weir_sampling *sampling, weir_error *error)
{
    bool is_counted = sampling->what == WEIR_SAMPLE_RANDOM || sampling->what == WEIR_SAMPLE_UNIFORM ||
                      sampling->what == WEIR_SAMPLE_CLIPS;
    if (is_counted && sampling->count == 0)
        return refuse_sampling(error, "count is 0: set the number of frames");
    if (sampling->what == WEIR_SAMPLE_EVERY && sampling->every == 0)
        return refuse_sampling(error, "every is 0: it must be at least 1");
    if (sampling->what == WEIR_SAMPLE_RATE && sampling->rate_num == 0)
        return refuse_sampling(error, "rate_num is 0: set the number of frames per second");
    if (sampling->rate_num > INT32_MAX || sampling->rate_den > INT32_MAX)
        return refuse_sampling(error, "the rate's numbers are too large");
    return WEIR_OK;
}

static int check_length(const weir_sampling *sampling, weir_error *error)
{
    if (sampling->length_ns < 0 || (sampling->length_ns && sampling->length_frames))
        return refuse_sampling(error, "set either length_frames or length_ns, not both");
    if ((sampling->length_ns || sampling->length_frames) && sampling->what != WEIR_SAMPLE_RANDOM)
        return refuse_sampling(error, "only random frames can have length_frames or length_ns");
    return WEIR_OK;
}

/* The first mistake is reported, so the order of the checks matters. */
static int check_sampling(const weir_sampling *sampling, weir_error *error)
{
    static int (*const checks[])(const weir_sampling *, weir_error *) = {
        check_what, check_window, check_amount, check_length, check_clips, check_times, check_lists,
    };
    int rc = WEIR_OK;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && rc == WEIR_OK; i++)
        rc = checks[i](sampling, error);
    return rc;
}

/* A copy. NULL = the list is empty, or out of memory. */
static int64_t *copy_values(const int64_t *values, size_t num_values)
{
    int64_t *copied = num_values ? calloc(num_values, sizeof *copied) : NULL;
    if (copied)
        memcpy(copied, values, num_values * sizeof *copied);
    return copied;
}

int weir__sampling_init(weir_sampling *sampling, weir_error *error)
{
    int rc = check_sampling(sampling, error);
    if (rc != WEIR_OK)
        return rc;
    bool has_indices = sampling->what == WEIR_SAMPLE_INDICES;
    bool has_times = sampling->what == WEIR_SAMPLE_TIMES;
    sampling->num_indices = has_indices ? sampling->num_indices : 0;
    sampling->num_times = has_times ? sampling->num_times : 0;
    sampling->indices = copy_values(sampling->indices, sampling->num_indices);
    sampling->times_ns = copy_values(sampling->times_ns, sampling->num_times);
    if ((!has_indices || sampling->indices) && (!has_times || sampling->times_ns))
        return WEIR_OK;
    weir__sampling_free(sampling);
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

void weir__sampling_free(weir_sampling *sampling)
{
    free((void *)sampling->indices);
    free((void *)sampling->times_ns);
    sampling->indices = NULL;
    sampling->times_ns = NULL;
}

bool weir__sampling_is_plain(const weir_sampling *sampling)
{
    return sampling->what == WEIR_SAMPLE_ALL && sampling->start_ns == 0 && sampling->end_ns == 0 &&
           sampling->start_frame == 0 && sampling->end_frame == 0;
}

bool weir_sampling_is_rising(const weir_sampling *sampling)
{
    if (!sampling)
        return false;
    if (sampling->what == WEIR_SAMPLE_CLIPS)
        return sampling->num_clips <= 1 && sampling->clip_short != WEIR_SHORT_LOOP;
    const int64_t *values = sampling->what == WEIR_SAMPLE_INDICES ? sampling->indices : sampling->times_ns;
    size_t num_values = sampling->what == WEIR_SAMPLE_INDICES ? sampling->num_indices
                        : sampling->what == WEIR_SAMPLE_TIMES ? sampling->num_times
                                                              : 0;
    for (size_t i = 1; values && i < num_values; i++) { /* NULL values are refused later */
        bool is_mixed = sampling->what == WEIR_SAMPLE_INDICES && (values[i] < 0) != (values[i - 1] < 0);
        if (values[i] < values[i - 1] || is_mixed)
            return false;
    }
    return true;
}

/* ---- the window ---------------------------------------------------------------------------------------------- */

/* A time of the caller's, relative to the first frame. */
static int64_t time_of(const weir_sampling *sampling, const weir_timeline *timeline, int64_t time_ns)
{
    return sampling->origin == WEIR_ORIGIN_STREAM ? av_sat_sub64(time_ns, weir__timeline_start_ns(timeline))
                                                  : time_ns;
}

static range timeline_window(const weir_sampling *sampling, const weir_timeline *timeline)
{
    range window = { .begin = 0, .end = timeline->num_frames };
    if (sampling->start_ns)
        window.begin = weir__timeline_before(timeline, time_of(sampling, timeline, sampling->start_ns));
    if (sampling->end_ns)
        window.end = weir__timeline_before(timeline, time_of(sampling, timeline, sampling->end_ns));
    window.begin = FFMAX(window.begin, sampling->start_frame);
    window.end = sampling->end_frame ? FFMIN(window.end, sampling->end_frame) : window.end;
    return window;
}

/* ---- the list ------------------------------------------------------------------------------------------------ */

static int append_frame(list *chosen, uint64_t index)
{
    if (chosen->num >= chosen->limit)
        return weir_error_set(chosen->error, WEIR_ELIMIT, 0,
                              "more frames are requested than the limit of %" PRIu64 ": raise max_frames",
                              chosen->limit);
    if (chosen->num == chosen->max) {
        size_t max = chosen->max ? chosen->max * 2 : 64;
        uint64_t *indices = realloc(chosen->indices, max * sizeof *indices);
        if (indices)
            chosen->indices = indices;
        bool *is_repeat = realloc(chosen->is_repeat, max * sizeof *is_repeat);
        if (is_repeat)
            chosen->is_repeat = is_repeat;
        if (!indices || !is_repeat)
            return weir_error_set(chosen->error, WEIR_ENOMEM, 0, "out of memory");
        chosen->max = max;
    }
    chosen->is_repeat[chosen->num] = false;
    chosen->indices[chosen->num++] = index;
    return WEIR_OK;
}

/* A frame that the clip has already. */
static int append_repeat(list *chosen, uint64_t index)
{
    int rc = append_frame(chosen, index);
    if (rc == WEIR_OK)
        chosen->is_repeat[chosen->num - 1] = true;
    return rc;
}

/* ---- the kinds ----------------------------------------------------------------------------------------------- */

static bool is_full(const list *chosen, uint32_t count)
{
    return count > 0 && chosen->num >= count;
}

static int take_every(list *chosen, range window, uint32_t every, uint32_t count)
{
    int rc = WEIR_OK;
    for (uint64_t i = window.begin; rc == WEIR_OK && i < window.end && !is_full(chosen, count); i += every)
        rc = append_frame(chosen, i);
    return rc;
}

static int take_keys(list *chosen, const weir_timeline *timeline, range window, uint32_t count)
{
    int rc = WEIR_OK;
    for (uint64_t i = window.begin; rc == WEIR_OK && i < window.end && !is_full(chosen, count); i++) {
        if (weir__timeline_is_key(timeline, i))
            rc = append_frame(chosen, i);
    }
    return rc;
}

static int take_uniform(list *chosen, range window, uint32_t count)
{
    uint64_t num_frames = window.end - window.begin;
    int rc = WEIR_OK;
    uint64_t last = UINT64_MAX;
    for (uint64_t i = 0; rc == WEIR_OK && i < count; i++) {
        uint64_t frame = window.begin + (2 * i + 1) * num_frames / (2 * (uint64_t)count);
        rc = frame == last ? append_repeat(chosen, frame) : append_frame(chosen, frame);
        last = frame;
    }
    return rc;
}

/* The tick of the result to which that time belongs, rounded as ffmpeg's filter fps does. */
static int64_t tick_at(const weir_sampling *sampling, AVRational time_base, int64_t ticks)
{
    AVRational interval = { sampling->rate_den ? (int)sampling->rate_den : 1, (int)sampling->rate_num };
    int64_t tick = av_rescale_q_rnd(ticks, time_base, interval, AV_ROUND_NEAR_INF);
    return tick < 0 ? INT64_MAX : tick; /* out of range */
}

/* As ffmpeg's filters trim, setpts=PTS-STARTPTS and fps. A frame is shown from its tick until that of the next one.
   The last one is shown until that of its end, or of the first frame after the window. If nothing tells the end,
   ffmpeg takes the time of the last frame, which then is not shown. */
static int take_at_rate(list *chosen, const weir_sampling *sampling, const weir_timeline *timeline, range window)
{
    int64_t start = weir__timeline_ticks(timeline, window.begin);
    int64_t next = 0;
    int rc = WEIR_OK;
    for (uint64_t i = window.begin; rc == WEIR_OK && i < window.end; i++) {
        int64_t end = i + 1 < timeline->num_frames ? weir__timeline_ticks(timeline, i + 1)
                      : timeline->has_end          ? timeline->end_ticks
                                                   : weir__timeline_ticks(timeline, i);
        int64_t end_tick = tick_at(sampling, timeline->time_base, end - start);
        for (; rc == WEIR_OK && next < end_tick && !is_full(chosen, sampling->count); next++)
            rc = append_frame(chosen, i);
    }
    return rc;
}

/* The position of the random interval. */
static range draw_interval(const weir_sampling *sampling, const weir_timeline *timeline, range window,
                           uint64_t *state)
{
    uint64_t num_frames = window.end - window.begin;
    range interval = window;
    if (sampling->length_frames && sampling->length_frames < num_frames) {
        interval.begin = window.begin + weir__random_below(state, num_frames - sampling->length_frames + 1);
        interval.end = interval.begin + sampling->length_frames;
    } else if (sampling->length_ns) {
        int64_t last_ns = weir__timeline_ns(timeline, window.end) - sampling->length_ns;
        uint64_t num_places = last_ns < 0 ? 0 : weir__timeline_up_to(timeline, last_ns);
        if (num_places <= window.begin)
            return window;
        interval.begin = window.begin + weir__random_below(state, num_places - window.begin);
        interval.end =
            weir__timeline_before(timeline, weir__timeline_ns(timeline, interval.begin) + sampling->length_ns);
        interval.end = interval.end < window.end ? interval.end : window.end;
        interval.end = interval.end > interval.begin ? interval.end : interval.begin + 1;
    }
    return interval;
}

/* Selection sampling (Knuth, The Art of Computer Programming 3.4.2, S): all sets of `count` are equally likely. */
static int take_random(list *chosen, range interval, uint32_t count, uint64_t *state)
{
    uint64_t wanted = count;
    uint64_t left = interval.end - interval.begin;
    if (left < wanted)
        return take_uniform(chosen, interval, count);
    int rc = WEIR_OK;
    for (uint64_t i = interval.begin; rc == WEIR_OK && wanted > 0; i++, left--) {
        if (weir__random_below(state, left) < wanted) {
            rc = append_frame(chosen, i);
            wanted--;
        }
    }
    return rc;
}

/* ---- clips --------------------------------------------------------------------------------------------------- */

/* The frame that is `step` strides after the start of frame `begin`; window.end or more = there is none. */
static uint64_t frame_of_clip(const weir_sampling *sampling, const weir_timeline *timeline, range window,
                              uint64_t begin, uint32_t step)
{
    if (!sampling->stride_ns)
        return begin + (uint64_t)step * (sampling->stride_frames ? sampling->stride_frames : 1);
    int64_t past_ns = step > INT64_MAX / 2 / sampling->stride_ns ? INT64_MAX / 2 : step * sampling->stride_ns;
    int64_t time_ns = av_sat_add64(weir__timeline_ns(timeline, begin), past_ns);
    int64_t end_ns = weir__timeline_ns(timeline, window.end);
    if (time_ns >= end_ns - weir__timeline_tolerance_ns(timeline, window.end))
        return window.end;
    return weir__timeline_up_to(timeline, time_ns) - 1;
}

/* The last frame of the window at which a whole clip can start; window.begin - 1 = there is none. */
static uint64_t last_start(const weir_sampling *sampling, const weir_timeline *timeline, range window)
{
    uint64_t low = window.begin, high = window.end;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (frame_of_clip(sampling, timeline, window, middle, sampling->count - 1) < window.end)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static uint64_t start_of_clip(const weir_sampling *sampling, range window, uint64_t last, uint32_t clip,
                              uint64_t *state)
{
    uint64_t num_clips = sampling->num_clips ? sampling->num_clips : 1;
    uint64_t farthest = last - window.begin;
    switch (sampling->clip_start) {
    case WEIR_CLIP_FIRST: break;
    case WEIR_CLIP_CENTER: return window.begin + farthest / 2;
    case WEIR_CLIP_RANDOM: return window.begin + weir__random_below(state, farthest + 1);
    case WEIR_CLIP_EVEN: return window.begin + (num_clips == 1 ? farthest / 2 : clip * farthest / (num_clips - 1));
    }
    return window.begin;
}

static int take_clip(list *chosen, const weir_sampling *sampling, const weir_timeline *timeline, range window,
                     uint64_t begin)
{
    size_t first = chosen->num;
    int rc = WEIR_OK;
    for (uint32_t step = 0; rc == WEIR_OK && step < sampling->count; step++) {
        uint64_t frame = frame_of_clip(sampling, timeline, window, begin, step);
        if (frame >= window.end)
            break;
        rc = append_frame(chosen, frame);
    }
    uint32_t num_there = (uint32_t)FFMAX(chosen->num - first, 1); /* frame `begin` at least */
    for (uint32_t i = num_there; rc == WEIR_OK && i < sampling->count; i++) {
        uint32_t step = sampling->clip_short == WEIR_SHORT_LOOP ? i % num_there : num_there - 1;
        rc = append_repeat(chosen, frame_of_clip(sampling, timeline, window, begin, step));
    }
    return rc;
}

static int fail_short(const weir_sampling *sampling, range window, weir_error *error)
{
    char stride[48];
    if (sampling->stride_ns)
        snprintf(stride, sizeof stride, "%.9g s", (double)sampling->stride_ns / NS_PER_SECOND);
    else
        snprintf(stride, sizeof stride, "%" PRIu32, sampling->stride_frames ? sampling->stride_frames : 1);
    return weir_error_set(error, WEIR_ERANGE, 0,
                          "a clip of %" PRIu32 " frames at a stride of %s does not fit: there are %" PRIu64 " frames",
                          sampling->count, stride, window.end - window.begin);
}

static int take_clips(list *chosen, const weir_sampling *sampling, const weir_timeline *timeline, range window,
                      uint64_t *state)
{
    uint64_t last = last_start(sampling, timeline, window);
    bool is_short = last + 1 == window.begin;
    int rc = WEIR_OK;
    if (is_short && sampling->clip_short == WEIR_SHORT_FAIL)
        return fail_short(sampling, window, chosen->error);
    for (uint32_t clip = 0; rc == WEIR_OK && clip < FFMAX(sampling->num_clips, 1); clip++) {
        uint64_t begin = start_of_clip(sampling, window, is_short ? window.begin : last, clip, state);
        rc = take_clip(chosen, sampling, timeline, window, begin);
    }
    return rc;
}

/* ---- lists --------------------------------------------------------------------------------------------------- */

static int take_indices(list *chosen, const weir_sampling *sampling, const weir_timeline *timeline)
{
    int64_t num_frames = (int64_t)timeline->num_frames;
    int rc = WEIR_OK;
    for (size_t i = 0; rc == WEIR_OK && i < sampling->num_indices; i++) {
        int64_t index = sampling->indices[i];
        if (index >= num_frames || index < -num_frames)
            return weir_error_set(chosen->error, WEIR_ERANGE, 0,
                                  "frame %" PRId64 " was requested; the video has %" PRId64 " frame(s)", index,
                                  num_frames);
        rc = append_frame(chosen, (uint64_t)(index < 0 ? index + num_frames : index));
    }
    return rc;
}

static double seconds(int64_t time_ns)
{
    return (double)time_ns / NS_PER_SECOND;
}

/* The frame whose time is nearest; if two are equally near, the earlier one. */
static size_t nearest_frame(const weir_timeline *timeline, int64_t time_ns)
{
    size_t after = weir__timeline_up_to(timeline, time_ns);
    if (after == 0 || after == timeline->num_frames)
        return after ? after - 1 : 0;
    int64_t past_ns = av_sat_sub64(time_ns, weir__timeline_ns(timeline, after - 1));
    int64_t ahead_ns = weir__timeline_ns(timeline, after) - time_ns;
    return ahead_ns < past_ns ? after : after - 1;
}

/* A time before the first frame (frame 0) or after the last one. */
static int take_outside(list *chosen, const weir_sampling *sampling, const weir_timeline *timeline, size_t frame,
                        int64_t time_ns)
{
    int64_t end_ns = weir__timeline_ns(timeline, timeline->num_frames);
    int64_t away_ns = frame == 0 && time_ns < 0 ? av_sat_sub64(0, time_ns) : av_sat_sub64(time_ns, end_ns);
    int64_t shown_ns = weir__timeline_ns(timeline, frame + 1) - weir__timeline_ns(timeline, frame);
    int64_t near_ns = av_sat_add64(shown_ns, weir__timeline_tolerance_ns(timeline, frame + 1));
    if (sampling->outside == WEIR_OUTSIDE_CLAMP || (sampling->outside == WEIR_OUTSIDE_NEAR && away_ns <= near_ns))
        return append_frame(chosen, frame);
    int64_t shift_ns = sampling->origin == WEIR_ORIGIN_STREAM ? weir__timeline_start_ns(timeline) : 0;
    bool is_before = time_ns < 0;
    return weir_error_set(chosen->error, WEIR_ERANGE, 0,
                          "the frame at %.9f s was requested, %.9f s %s; the video %s at %.9f s",
                          seconds(av_sat_add64(time_ns, shift_ns)), seconds(FFMAX(away_ns, 0)),
                          is_before ? "before the first frame" : "after the end", is_before ? "begins" : "ends",
                          seconds(av_sat_add64(is_before ? 0 : end_ns, shift_ns)));
}

static int take_exactly(list *chosen, const weir_sampling *sampling, const weir_timeline *timeline, int64_t time_ns)
{
    size_t frame = nearest_frame(timeline, time_ns);
    int64_t frame_ns = weir__timeline_ns(timeline, frame);
    int64_t off_ns = frame_ns > time_ns ? frame_ns - time_ns : time_ns - frame_ns;
    if (off_ns <= FFMAX(sampling->tolerance_ns, weir__timeline_tolerance_ns(timeline, frame)))
        return append_frame(chosen, frame);
    int64_t shift_ns = sampling->origin == WEIR_ORIGIN_STREAM ? weir__timeline_start_ns(timeline) : 0;
    return weir_error_set(chosen->error, WEIR_ENOTFOUND, 0,
                          "no frame is at %.9f s: the nearest is at %.9f s, %.9f s away (tolerance_ns is %" PRId64
                          ")",
                          seconds(av_sat_add64(time_ns, shift_ns)), seconds(av_sat_add64(frame_ns, shift_ns)),
                          seconds(off_ns), sampling->tolerance_ns);
}

static int take_time(list *chosen, const weir_sampling *sampling, const weir_timeline *timeline, int64_t time_ns)
{
    size_t last = timeline->num_frames - 1;
    if (weir__timeline_is_over(timeline, time_ns))
        return take_outside(chosen, sampling, timeline, last, time_ns);
    size_t num_begun = weir__timeline_up_to(timeline, time_ns);
    if (num_begun == 0)
        return take_outside(chosen, sampling, timeline, 0, time_ns);
    switch (sampling->match) {
    case WEIR_MATCH_NEAREST: return append_frame(chosen, nearest_frame(timeline, time_ns));
    case WEIR_MATCH_EXACT: return take_exactly(chosen, sampling, timeline, time_ns);
    case WEIR_MATCH_SHOWN: break;
    }
    return append_frame(chosen, num_begun - 1);
}

static int take_times(list *chosen, const weir_sampling *sampling, const weir_timeline *timeline)
{
    int rc = WEIR_OK;
    for (size_t i = 0; rc == WEIR_OK && i < sampling->num_times; i++)
        rc = take_time(chosen, sampling, timeline, time_of(sampling, timeline, sampling->times_ns[i]));
    return rc;
}

static int take_frames(list *chosen, const weir_sampling *sampling, const weir_timeline *timeline, uint64_t *state)
{
    range window = timeline_window(sampling, timeline);
    if (window.begin >= window.end)
        return WEIR_OK;
    switch (sampling->what) {
    case WEIR_SAMPLE_ALL: return take_every(chosen, window, 1, sampling->count);
    case WEIR_SAMPLE_EVERY: return take_every(chosen, window, sampling->every, sampling->count);
    case WEIR_SAMPLE_RATE: return take_at_rate(chosen, sampling, timeline, window);
    case WEIR_SAMPLE_UNIFORM: return take_uniform(chosen, window, sampling->count);
    case WEIR_SAMPLE_RANDOM:
        return take_random(chosen, draw_interval(sampling, timeline, window, state), sampling->count, state);
    case WEIR_SAMPLE_INDICES: return take_indices(chosen, sampling, timeline);
    case WEIR_SAMPLE_TIMES: return take_times(chosen, sampling, timeline);
    case WEIR_SAMPLE_KEYFRAMES: return take_keys(chosen, timeline, window, sampling->count);
    case WEIR_SAMPLE_CLIPS: return take_clips(chosen, sampling, timeline, window, state);
    }
    return WEIR_OK;
}

/* A window that begins after the end is out of range; others are just empty. */
static int fail_no_frame(const weir_sampling *sampling, const weir_timeline *timeline, weir_error *error)
{
    bool is_after =
        sampling->start_frame >= timeline->num_frames ||
        (sampling->start_ns && weir__timeline_is_over(timeline, time_of(sampling, timeline, sampling->start_ns)));
    return weir_error_set(error, is_after ? WEIR_ERANGE : WEIR_ENOTFOUND, 0,
                          "no frame matches the sampling: the video has %zu frames and ends at %.3f s",
                          timeline->num_frames, seconds(weir__timeline_ns(timeline, timeline->num_frames)));
}

int weir__select_frames(const weir_sampling *sampling, const weir_timeline *timeline, uint64_t seed, uint64_t seq,
                        uint64_t max_frames, weir_selection *selection, weir_error *error)
{
    list chosen = { .limit = max_frames, .error = error };
    uint64_t state = seed;
    state = weir__random_next(&state) ^ seq;
    int rc = timeline->num_frames ? take_frames(&chosen, sampling, timeline, &state) : WEIR_OK;
    if (rc == WEIR_OK && chosen.num == 0)
        rc = fail_no_frame(sampling, timeline, error);
    if (rc != WEIR_OK) {
        free(chosen.indices);
        free(chosen.is_repeat);
        return rc;
    }
    *selection =
        (weir_selection){ .indices = chosen.indices, .is_repeat = chosen.is_repeat, .num_indices = chosen.num };
    return WEIR_OK;
}

void weir__selection_free(weir_selection *selection)
{
    free(selection->indices);
    free(selection->is_repeat);
    *selection = (weir_selection){ 0 };
}
