/* With a filter all frames go through it; without one a frame is passed on as it is, or rotated, and never copied. */
#include "stages/picture/frame_filter.h"

#include <stdlib.h>
#include <string.h>

void weir__frame_filter_begin(weir_frame_filter *frame_filter, const weir_picture_config *picture)
{
    weir__frame_filter_reset(frame_filter);
    frame_filter->is_coded = picture->no_autorotate;
    frame_filter->filter.description = picture->filter;
}

void weir__frame_filter_pass(weir_frame_filter *frame_filter, const AVStream *stream, const AVFrame *frame,
                             weir_frame_facts facts, unsigned num_times)
{
    frame_filter->is_ended = !frame;
    frame_filter->is_again = false;
    frame_filter->next = frame;
    frame_filter->next_facts = facts;
    frame_filter->time_base = stream->time_base;
    frame_filter->num_times = frame ? num_times : 0;
    frame_filter->num_left = frame_filter->num_times;
}

int weir__frame_filter_put(weir_frame_filter *frame_filter, const AVStream *stream, const AVFrame *frame,
                           weir_frame_facts facts, unsigned num_times, weir_error *error)
{
    weir__frame_filter_pass(frame_filter, stream, frame, facts, num_times);
    if (!frame && frame_filter->filter.description)
        return weir__filter_put(&frame_filter->filter, NULL, AV_NOPTS_VALUE, stream->time_base, error);
    if (!frame || frame_filter->is_coded)
        return WEIR_OK;
    return weir__rotator_run(&frame_filter->rotator, stream, frame, &frame_filter->next, error);
}

/* The facts of a picture that a filter gives. Its time is as far from the time of the last input as its pts is from
   the pts of the last input. */
static weir_frame_facts facts_of(const weir_frame_filter *frame_filter, int64_t pts)
{
    static const AVRational nanoseconds = { 1, 1000000000 };
    weir_frame_facts facts = frame_filter->next_facts;
    if (pts != AV_NOPTS_VALUE && facts.pts != AV_NOPTS_VALUE)
        facts.time_ns = av_sat_add64(
            facts.time_ns, av_rescale_q(av_sat_sub64(pts, facts.pts), frame_filter->time_base, nanoseconds));
    facts.pts = pts;
    return facts;
}

/* A picture is put in only when the filter needs one, so that the filter holds as few as possible. */
static int get_filtered(weir_frame_filter *frame_filter, const AVFrame **frame, weir_frame_facts *facts,
                        weir_error *error)
{
    int rc = weir__filter_get(&frame_filter->filter, frame, error);
    while (rc == WEIR_SKIP && frame_filter->num_left > 0) {
        frame_filter->num_left--;
        rc = weir__filter_put(&frame_filter->filter, frame_filter->next, frame_filter->next_facts.pts,
                              frame_filter->time_base, error);
        if (rc == WEIR_OK)
            rc = weir__filter_get(&frame_filter->filter, frame, error);
    }
    if (rc == WEIR_OK)
        *facts = facts_of(frame_filter, (*frame)->pts);
    return rc == WEIR_SKIP && frame_filter->is_ended ? WEIR_EOF : rc;
}

int weir__frame_filter_get(weir_frame_filter *frame_filter, const AVFrame **frame, weir_frame_facts *facts,
                           weir_error *error)
{
    if (frame_filter->filter.description)
        return get_filtered(frame_filter, frame, facts, error);
    if (frame_filter->num_left == 0)
        return frame_filter->is_ended ? WEIR_EOF : WEIR_SKIP;
    frame_filter->is_again = frame_filter->num_left < frame_filter->num_times;
    frame_filter->num_left--;
    *frame = frame_filter->next;
    *facts = frame_filter->next_facts;
    return WEIR_OK;
}

void weir__frame_filter_reset(weir_frame_filter *frame_filter)
{
    weir__filter_reset(&frame_filter->filter);
    frame_filter->next = NULL;
    frame_filter->num_left = 0;
    frame_filter->is_again = false;
    frame_filter->is_ended = false;
}

void weir__frame_filter_free(weir_frame_filter *frame_filter)
{
    weir__frame_filter_reset(frame_filter);
    weir__rotator_free(&frame_filter->rotator);
}
