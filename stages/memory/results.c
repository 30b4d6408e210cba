/* The end of results: each has a count of the tensors that share it (views.h), and is freed with the last owner. */
#include <weir/audio.h>
#include <weir/collate.h>
#include <weir/video.h>

#include <stdlib.h>

#include "stages/memory/block_pool.h"
#include "stages/memory/frame_arrays.h"
#include "stages/memory/shared_data.h"
#include "stages/memory/views.h"

void weir_frames_release(void *data, void *self)
{
    weir_frames *frames = data;
    (void)self;
    if (!frames || !weir__views_drop(&frames->num_views))
        return;
    if (frames->block)
        weir__block_put(frames->block);
    else
        weir__shared_data_free(frames->data, frames->shared);
    weir__frame_arrays_free(frames);
    weir_entry_free(frames->entry);
    weir_bytes_free(frames->sidecars);
    weir_audio_free(frames->audio);
    free(frames);
}

void weir_audio_release(void *data, void *self)
{
    weir_audio *audio = data;
    (void)self;
    if (!audio || !weir__views_drop(&audio->num_views))
        return;
    weir__shared_data_free(audio->data, audio->shared);
    weir_entry_free(audio->entry);
    weir_bytes_free(audio->sidecars);
    free(audio);
}

void weir_collated_release(void *data, void *self)
{
    weir_collated *batch = data;
    (void)self;
    if (!batch || !weir__views_drop(&batch->num_views))
        return;
    weir__block_put(batch->block);
    for (size_t i = 0; batch->names && i < batch->num_items; i++)
        free(batch->names[i]);
    free(batch->names);
    free(batch->labels);
    free(batch->ids);
    free(batch->sizes);
    free(batch->mask);
    free(batch->valid);
    free(batch->columns);
    free(batch);
}
