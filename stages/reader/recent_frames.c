#include "stages/reader/recent_frames.h"

#include <stdlib.h>

/* As much as kept_frames.h keeps of a request: 20 frames of 1920x1080, 16 seconds of 340x256. */
static const size_t max_bytes = (size_t)64 << 20;

static weir_recent_frame *at(const weir_recent_frames *recent, size_t i)
{
    size_t place = recent->first + i;
    return &recent->all[place < recent->max ? place : place - recent->max];
}

static void drop_oldest(weir_recent_frames *recent)
{
    weir_recent_frame *oldest = at(recent, 0);
    recent->bytes -= oldest->bytes;
    av_frame_free(&oldest->frame);
    recent->first = recent->first + 1 < recent->max ? recent->first + 1 : 0;
    recent->num--;
}

static size_t bytes_of(const AVFrame *frame)
{
    size_t bytes = 0;
    for (size_t i = 0; i < AV_NUM_DATA_POINTERS && frame->buf[i]; i++)
        bytes += (size_t)frame->buf[i]->size;
    return bytes;
}

/* Mostly the last ones are asked for. */
static const weir_recent_frame *find(const weir_recent_frames *recent, uint64_t number)
{
    for (size_t i = recent->num; i-- > 0;)
        if (at(recent, i)->number == number)
            return at(recent, i);
    return NULL;
}

static bool grow(weir_recent_frames *recent)
{
    if (recent->num < recent->max)
        return true;
    size_t max = recent->max ? 2 * recent->max : 64;
    weir_recent_frame *all = calloc(max, sizeof *all);
    if (!all)
        return false;
    for (size_t i = 0; i < recent->num; i++)
        all[i] = *at(recent, i);
    free(recent->all);
    recent->all = all;
    recent->max = max;
    recent->first = 0;
    return true;
}

void weir__recent_frames_add(weir_recent_frames *recent, uint64_t number, const AVFrame *frame)
{
    size_t bytes = bytes_of(frame);
    if (find(recent, number) || bytes > max_bytes)
        return;
    while (recent->num > 0 && recent->bytes + bytes > max_bytes)
        drop_oldest(recent);
    AVFrame *own = grow(recent) ? av_frame_clone(frame) : NULL;
    if (!own)
        return;
    *at(recent, recent->num++) = (weir_recent_frame){ .number = number, .frame = own, .bytes = bytes };
    recent->bytes += bytes;
}

AVFrame *weir__recent_frames_get(const weir_recent_frames *recent, uint64_t number)
{
    const weir_recent_frame *found = recent->num ? find(recent, number) : NULL;
    return found ? av_frame_clone(found->frame) : NULL;
}

void weir__recent_frames_drop(weir_recent_frames *recent)
{
    while (recent->num > 0)
        drop_oldest(recent);
}

void weir__recent_frames_reset(weir_recent_frames *recent)
{
    weir__recent_frames_drop(recent);
    free(recent->all);
    *recent = (weir_recent_frames){ 0 };
}
