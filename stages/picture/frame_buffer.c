/*
 * The result grows by half each time, by realloc(): for blocks of this size the C library remaps pages instead of
 * copying. Reserved memory costs nothing until it is written, so the header's frame count is used as the first size,
 * within bounds: it may be wrong. Blocks of a program's allocator cannot grow: a larger one gets a copy.
 */
#include "stages/picture/frame_buffer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "stages/memory/block_pool.h"
#include "stages/memory/pixel_kind.h"
#include "stages/memory/shared_data.h"
#include "stages/scale/scaler.h"

enum { MIN_FRAMES = 16 };

static const uint64_t max_trusted_bytes = UINT64_C(256) << 20;

static size_t data_bytes(const weir_frames_builder *builder, size_t num_frames)
{
    return num_frames * builder->frame_bytes + WEIR_SCALER_SLACK_BYTES;
}

/* The size of the block stays once it is large enough. */
static uint8_t *resize_block(weir_frames_builder *builder, size_t size_bytes)
{
    weir_frames *frames = builder->frames;
    weir_block *old = frames->block;
    if (old && old->num_bytes >= size_bytes)
        return frames->data;
    weir_block *block = weir__block_get(builder->allocator, size_bytes);
    if (!block)
        return NULL;
    if (old)
        memcpy(block->data, old->data, frames->num_frames * builder->frame_bytes);
    weir__block_put(old);
    frames->block = block;
    return block->data;
}

/* Makes room for exactly num_frames. After a failure the frames so far are kept. */
static int resize_frames(weir_frames_builder *builder, size_t num_frames)
{
    weir_frames *frames = builder->frames;
    size_t size_bytes = data_bytes(builder, num_frames);
    uint8_t *data = builder->into        ? builder->into
                    : builder->allocator ? resize_block(builder, size_bytes)
                                         : weir__shared_data_resize(frames->data, &frames->shared, size_bytes);
    if (data)
        frames->data = data;
    if (!data || weir__frame_arrays_resize(frames, num_frames) != WEIR_OK)
        return WEIR_ENOMEM;
    builder->max_frames = num_frames;
    return WEIR_OK;
}

static int fail_frames_memory(const weir_frames_builder *builder, size_t num_frames, weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory: cannot allocate %zu bytes for %zu frames",
                          data_bytes(builder, num_frames), num_frames);
}

static int fail_max_bytes(const weir_frames_builder *builder, weir_error *error)
{
    if (builder->into)
        return weir_error_set(error, WEIR_ELIMIT, 0,
                              "the frames need more than the %" PRIu64 " bytes of the memory that was given",
                              builder->max_bytes);
    return weir_error_set(error, WEIR_ELIMIT, 0,
                          "the frames are over the limit of %" PRIu64 " bytes: raise max_bytes, or make them smaller",
                          builder->max_bytes);
}

int weir__frames_begin(weir_frames_builder *builder, const weir_picture_config *picture, uint32_t width,
                       uint32_t height, uint64_t expected_frames, weir_error *error)
{
    uint64_t max_bytes = builder->max_bytes;
    builder->frame_bytes = weir__scaler_picture_bytes(picture->pixel, width, height);
    if (builder->frame_bytes > max_bytes)
        return fail_max_bytes(builder, error);

    uint64_t trusted_frames = max_trusted_bytes / builder->frame_bytes;
    uint64_t limit_frames = max_bytes / builder->frame_bytes;
    uint64_t num_frames = expected_frames ? expected_frames : MIN_FRAMES;
    num_frames = num_frames < trusted_frames ? num_frames : trusted_frames;
    num_frames = num_frames < limit_frames ? num_frames : limit_frames;
    num_frames = num_frames > 0 ? num_frames : 1;

    builder->frames = calloc(1, sizeof *builder->frames);
    bool is_lent = builder->frames && builder->into && (builder->frames->block = weir__block_lend(builder->into));
    if (!builder->frames || (builder->into && !is_lent) || resize_frames(builder, (size_t)num_frames) != WEIR_OK) {
        weir__frames_abort(builder);
        return fail_frames_memory(builder, (size_t)num_frames, error);
    }
    builder->frames->width = width;
    builder->frames->height = height;
    builder->frames->channels = weir__pixel_channels(picture->pixel);
    builder->frames->pixel = picture->pixel;
    builder->frames->layout = picture->layout;
    builder->frames->frame_bytes = builder->frame_bytes;
    builder->frames->memory = weir_allocator_memory(builder->allocator);
    return WEIR_OK;
}

static int grow_frames(weir_frames_builder *builder, weir_error *error)
{
    uint64_t limit_frames = builder->max_bytes / builder->frame_bytes;
    limit_frames = limit_frames < UINT32_MAX ? limit_frames : UINT32_MAX;
    if (builder->max_frames >= limit_frames)
        return fail_max_bytes(builder, error);
    uint64_t num_frames = (uint64_t)builder->max_frames + builder->max_frames / 2 + 1;
    num_frames = num_frames < limit_frames ? num_frames : limit_frames;
    if (resize_frames(builder, (size_t)num_frames) != WEIR_OK)
        return fail_frames_memory(builder, (size_t)num_frames, error);
    return WEIR_OK;
}

int weir__frames_next(weir_frames_builder *builder, uint8_t **data, weir_error *error)
{
    weir_frames *frames = builder->frames;
    if (frames->num_frames == builder->max_frames) {
        int rc = grow_frames(builder, error);
        if (rc != WEIR_OK)
            return rc;
    }
    *data = frames->data + (size_t)frames->num_frames * builder->frame_bytes;
    builder->is_scratch = builder->into && data_bytes(builder, (size_t)frames->num_frames + 1) > builder->max_bytes;
    if (builder->is_scratch && !builder->scratch)
        builder->scratch = malloc(data_bytes(builder, 1));
    if (builder->is_scratch)
        *data = builder->scratch;
    return *data ? WEIR_OK : fail_frames_memory(builder, 1, error);
}

void weir__frames_commit(weir_frames_builder *builder, weir_frame_facts facts)
{
    weir_frames *frames = builder->frames;
    if (builder->is_scratch)
        memcpy(frames->data + (size_t)frames->num_frames * builder->frame_bytes, builder->scratch,
               builder->frame_bytes);
    weir__frame_arrays_set(frames, frames->num_frames++, facts);
}

/* Rotates each cycle of the permutation, with one spare frame. */
int weir__frames_arrange(weir_frames_builder *builder, size_t *from)
{
    weir_frames *frames = builder->frames;
    size_t frame_bytes = builder->frame_bytes;
    uint8_t *spare = malloc(frame_bytes);
    if (!spare)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < frames->num_frames; i++) {
        size_t to = i;
        weir_frame_facts facts = weir__frame_arrays_get(frames, i);
        memcpy(spare, frames->data + i * frame_bytes, frame_bytes);
        while (from[to] != i) {
            size_t next = from[to];
            memmove(frames->data + to * frame_bytes, frames->data + next * frame_bytes, frame_bytes);
            weir__frame_arrays_set(frames, to, weir__frame_arrays_get(frames, next));
            from[to] = to;
            to = next;
        }
        memcpy(frames->data + to * frame_bytes, spare, frame_bytes);
        weir__frame_arrays_set(frames, to, facts);
        from[to] = to;
    }
    free(spare);
    return WEIR_OK;
}

weir_frames *weir__frames_end(weir_frames_builder *builder)
{
    weir_frames *frames = builder->frames;
    if (frames->num_frames < builder->max_frames)
        (void)resize_frames(builder, frames->num_frames); /* a failure to shrink is harmless */
    size_t room_bytes = frames->block ? frames->block->num_bytes : data_bytes(builder, builder->max_frames);
    frames->memory_bytes = sizeof *frames + room_bytes + builder->max_frames * weir__frame_arrays_bytes();
    builder->frames = NULL;
    free(builder->scratch);
    builder->scratch = NULL;
    return frames;
}

weir_frames *weir__frames_slice(const weir_frames *frames, uint32_t first, uint32_t num, weir_allocator *allocator)
{
    weir_frames_builder builder = { .frame_bytes = frames->frame_bytes, .allocator = allocator };
    weir_frames *slice = builder.frames = malloc(sizeof *slice);
    if (!slice)
        return NULL;
    *slice = *frames;
    slice->data = NULL;
    slice->pts = NULL;
    slice->times_ns = NULL;
    slice->mask = NULL;
    slice->shared = NULL;
    slice->block = NULL;
    slice->num_frames = 0;
    slice->num_views = 0;
    if (resize_frames(&builder, num) != WEIR_OK) {
        weir_frames_free(slice);
        return NULL;
    }
    memcpy(slice->data, frames->data + first * frames->frame_bytes, num * frames->frame_bytes);
    slice->num_frames = num;
    for (uint32_t i = 0; i < num; i++)
        weir__frame_arrays_set(slice, i, weir__frame_arrays_get(frames, first + i));
    return weir__frames_end(&builder);
}

void weir__frames_abort(weir_frames_builder *builder)
{
    weir_frames_free(builder->frames);
    builder->frames = NULL;
    free(builder->scratch);
    builder->scratch = NULL;
}
