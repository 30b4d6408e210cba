/* With a filter all frames go through it; without one a frame is passed on as it is, or rotated, and never copied. */
#include "frame_filter.h"

#include <stdlib.h>
#include <string.h>

int weir_pictures_config_init(weir_video_config *video, weir_error *error)
{
    if (!video->filter || !video->filter[0]) {
        video->filter = NULL;
        return WEIR_OK;
    }
    int rc = weir_filter_check(video->filter, error);
    if (rc != WEIR_OK)
        return rc;
    video->filter = strdup(video->filter);
    return video->filter ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

void weir_pictures_config_free(weir_video_config *video)
{
    free((char *)video->filter);
    video->filter = NULL;
}

void weir_pictures_init(weir_pictures *pictures, const weir_video_config *video)
{
    *pictures = (weir_pictures){ .is_coded = video->no_autorotate, .filter.description = video->filter };
}

int weir_pictures_put(weir_pictures *pictures, const AVStream *stream, const AVFrame *frame, int64_t pts,
                      unsigned num_times, weir_error *error)
{
    pictures->is_ended = !frame;
    pictures->is_again = false;
    if (!frame && pictures->filter.description)
        return weir_filter_put(&pictures->filter, NULL, AV_NOPTS_VALUE, stream->time_base, error);
    pictures->next = frame;
    pictures->next_pts = pts;
    pictures->time_base = stream->time_base;
    pictures->num_times = frame ? num_times : 0;
    pictures->num_left = pictures->num_times;
    if (!frame || pictures->is_coded)
        return WEIR_OK;
    return weir_upright_run(&pictures->upright, stream, frame, &pictures->next, error);
}

/* A picture is put in only when the filter needs one, so that the filter holds as few as possible. */
static int get_filtered(weir_pictures *pictures, const AVFrame **frame, int64_t *pts, weir_error *error)
{
    int rc = weir_filter_get(&pictures->filter, frame, error);
    while (rc == WEIR_SKIP && pictures->num_left > 0) {
        pictures->num_left--;
        rc = weir_filter_put(&pictures->filter, pictures->next, pictures->next_pts, pictures->time_base, error);
        if (rc == WEIR_OK)
            rc = weir_filter_get(&pictures->filter, frame, error);
    }
    if (rc == WEIR_OK)
        *pts = (*frame)->pts;
    return rc == WEIR_SKIP && pictures->is_ended ? WEIR_EOF : rc;
}

int weir_pictures_get(weir_pictures *pictures, const AVFrame **frame, int64_t *pts, weir_error *error)
{
    if (pictures->filter.description)
        return get_filtered(pictures, frame, pts, error);
    if (pictures->num_left == 0)
        return pictures->is_ended ? WEIR_EOF : WEIR_SKIP;
    pictures->is_again = pictures->num_left < pictures->num_times;
    pictures->num_left--;
    *frame = pictures->next;
    *pts = pictures->next_pts;
    return WEIR_OK;
}

void weir_pictures_reset(weir_pictures *pictures)
{
    weir_filter_reset(&pictures->filter);
    pictures->next = NULL;
    pictures->num_left = 0;
    pictures->is_again = false;
    pictures->is_ended = false;
}

void weir_pictures_free(weir_pictures *pictures)
{
    weir_pictures_reset(pictures);
    weir_upright_free(&pictures->upright);
}
