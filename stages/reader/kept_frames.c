#include "stages/reader/kept_frames.h"

#include <stdlib.h>

static size_t bytes_of(const AVFrame *frame)
{
    size_t bytes = 0;
    for (size_t i = 0; i < AV_NUM_DATA_POINTERS && frame->buf[i]; i++)
        bytes += (size_t)frame->buf[i]->size;
    return bytes;
}

/* Is it among the guessed ones? Numbers rise from call to call. */
static bool is_guessed(weir_frame_targets *guess, uint64_t number)
{
    while (guess->next < guess->num && guess->all[guess->next].frame < number)
        guess->next++;
    return guess->next < guess->num && guess->all[guess->next].frame == number;
}

void weir__kept_frames_add(weir_kept_frames *kept, const weir_decoder *decoder, const weir_kept_frame *facts,
                           size_t max_bytes)
{
    if (kept->is_full || !is_guessed(&kept->guess, facts->number))
        return;
    size_t bytes = bytes_of(decoder->frame);
    if (!kept->all)
        kept->all = calloc(kept->guess.num, sizeof *kept->all);
    AVFrame *frame = kept->all && bytes <= max_bytes - kept->bytes ? av_frame_clone(decoder->frame) : NULL;
    if (!frame) {
        weir__kept_frames_drop(kept);
        return;
    }
    weir_kept_frame *own = &kept->all[kept->num++];
    *own = *facts;
    own->frame = frame;
    own->num_errors = decoder->num_errors;
    own->first_averror = decoder->first_averror;
    kept->bytes += bytes;
}

bool weir__kept_frames_have(weir_kept_frames *kept, const weir_frame_targets *targets)
{
    size_t at = kept->next;
    for (size_t i = 0; i < targets->num; i++) {
        while (at < kept->num && kept->all[at].number < targets->all[i].frame)
            at++;
        if (at == kept->num || kept->all[at].number != targets->all[i].frame)
            return false;
    }
    return !kept->is_full;
}

const weir_kept_frame *weir__kept_frames_take(weir_kept_frames *kept, uint64_t number, weir_decoder *decoder)
{
    while (kept->all[kept->next].number < number)
        av_frame_free(&kept->all[kept->next++].frame);
    weir_kept_frame *taken = &kept->all[kept->next++];
    av_frame_unref(decoder->frame);
    av_frame_move_ref(decoder->frame, taken->frame);
    av_frame_free(&taken->frame);
    decoder->num_errors = taken->num_errors;
    decoder->first_averror = taken->first_averror;
    return taken;
}

void weir__kept_frames_drop(weir_kept_frames *kept)
{
    for (size_t i = kept->next; i < kept->num; i++)
        av_frame_free(&kept->all[i].frame);
    kept->num = 0;
    kept->next = 0;
    kept->is_full = true;
}

void weir__kept_frames_reset(weir_kept_frames *kept)
{
    weir__kept_frames_drop(kept);
    free(kept->all);
    weir__frame_targets_forget(&kept->guess);
    *kept = (weir_kept_frames){ 0 };
}
