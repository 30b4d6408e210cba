#include "stages/isolate/isolated_config.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <weir/audio.h>
#include <weir/image.h>
#include <weir/struct_copy.h>
#include <weir/video.h>

#include "stages/audio/audio_config.h"
#include "stages/config/input_fields.h"
#include "stages/image/image_stage.h"
#include "stages/isolate/config_message.h"
#include "stages/isolate/reader_child.h"
#include "stages/memory/frame_arrays.h"
#include "stages/reader/video_config.h"

const weir_op *const weir__isolated_own_ops[] = { &weir_video_decode, &weir_image_decode, &weir_audio_decode,
                                                  &weir__isolated_reader_op, NULL };

static const struct_rules *const own_fields[] = { &weir__video_fields, &weir__image_fields,
                                                  &weir__audio_config_fields, &weir__video_fields };

/* The table of the config's fields; NULL = it is one of a user's operation, which points to nothing. */
static const struct_rules *fields_of(const weir_op *op)
{
    for (size_t i = 0; weir__isolated_own_ops[i]; i++)
        if (op == weir__isolated_own_ops[i])
            return own_fields[i];
    return NULL;
}

bool weir__isolated_has_allocator(const weir_op *op, const void *config)
{
    if (op == &weir_video_decode)
        return ((const weir_video_config *)config)->allocator;
    return op == &weir_image_decode && ((const weir_image_config *)config)->allocator;
}

/* -- in messages */

void weir__isolated_put_config(isolated_message *message, const weir_op *op, const void *config)
{
    const struct_rules *rules = fields_of(op);
    weir__isolated_put(message, &op->config_size, sizeof op->config_size);
    if (!rules) {
        weir__isolated_put(message, config, op->config_size);
        return;
    }
    assert(config); /* no operation of ours runs without one */
    weir__isolated_put_struct(message, rules, config);
    weir__isolated_put_pointers(message, rules, config);
}

void *weir__isolated_get_config(isolated_message *message, const weir_op *op)
{
    const struct_rules *rules = fields_of(op);
    size_t config_size;
    weir__isolated_get(message, &config_size, sizeof config_size);
    void *config = config_size == op->config_size ? calloc(1, config_size + 1) : NULL;
    if (!config)
        message->is_bad = true;
    else if (!rules)
        weir__isolated_get(message, config, config_size);
    else if (weir__isolated_get_struct(message, rules, config))
        weir__isolated_get_pointers(message, rules, config);
    if (!message->is_bad)
        return config;
    free(config);
    return NULL;
}

const weir_input_config *weir__isolated_input(const weir_op *op, const void *config)
{
    const struct_rules *rules = fields_of(op);
    for (size_t i = 0; rules && i < rules->num_fields; i++)
        if (rules->fields[i].inner == &weir__input_fields)
            return weir__rule_pointer(&rules->fields[i], (const char *)config + rules->fields[i].offset);
    return NULL;
}

/* -- the expected shape of the results */

isolated_shape weir__isolated_shape_of(const weir_op *op, const void *config)
{
    if (op == &weir_video_decode) {
        const weir_video_config *video = config;
        bool is_clips = video->sampling.what == WEIR_SAMPLE_CLIPS && !video->chunk_frames;
        uint32_t num_clips = is_clips ? video->sampling.num_clips : 0;
        uint32_t axis_clips = video->clip_items ? 0 : num_clips;
        return (isolated_shape){ true,
                                 .width = video->picture->width,
                                 .height = video->picture->height,
                                 .longest = video->picture->longest,
                                 .shortest = video->picture->shortest,
                                 .chunk_frames = video->chunk_frames,
                                 .max_frames = video->max_frames,
                                 .max_bytes = video->max_bytes,
                                 .num_clips = axis_clips,
                                 .clip_items = video->clip_items,
                                 .num_frames =
                                     is_clips ? (uint64_t)video->sampling.count * (axis_clips ? axis_clips : 1) : 0,
                                 .pixel = video->picture->pixel,
                                 .layout = video->picture->layout };
    }
    if (op == &weir_image_decode) {
        const weir_image_config *image = config;
        return (isolated_shape){ true,
                                 .width = image->picture->width,
                                 .height = image->picture->height,
                                 .longest = image->picture->longest,
                                 .shortest = image->picture->shortest,
                                 .max_frames = 1,
                                 .pixel = image->picture->pixel,
                                 .layout = image->picture->layout };
    }
    if (op == &weir_audio_decode) {
        const weir_audio_config *audio = config;
        return (isolated_shape){ true, .max_bytes = audio->max_bytes, .channels = audio->channels,
                                 .sample_rate = audio->sample_rate, .planar = audio->planar };
    }
    return (isolated_shape){ 0 };
}

uint64_t weir__isolated_max_body(const isolated_shape *shape)
{
    enum { MAX_HEAD_BYTES = 4096 }; /* more than any struct of a result */
    return shape->is_own ? MAX_HEAD_BYTES + shape->max_frames * weir__frame_arrays_bytes() : 0;
}

static bool differs(uint64_t wanted, uint64_t is)
{
    return wanted && is != wanted;
}

static bool exceeds(uint64_t limit, uint64_t is)
{
    return limit && is > limit;
}

static const char *find_wrong_frames(const isolated_shape *shape, const weir_frames *frames, uint64_t num_before,
                                     bool is_more)
{
    uint64_t num_all = num_before + frames->num_frames;
    bool is_wide = frames->width >= frames->height;
    if (differs(shape->longest, is_wide ? frames->width : frames->height) ||
        differs(shape->shortest, is_wide ? frames->height : frames->width))
        return "frames.width";
    if (differs(shape->width, frames->width))
        return "frames.width";
    if (differs(shape->height, frames->height))
        return "frames.height";
    if (frames->pixel != shape->pixel)
        return "frames.pixel";
    if (frames->layout != shape->layout)
        return "frames.layout";
    if (exceeds(shape->chunk_frames, frames->num_frames) || exceeds(shape->max_frames, num_all) ||
        exceeds(shape->max_bytes, frames->num_frames * (uint64_t)frames->frame_bytes))
        return "frames.num_frames";
    if (frames->num_clips != shape->num_clips)
        return "frames.num_clips";
    if (differs(shape->num_frames, frames->num_frames))
        return "frames.num_frames";
    if (frames->first_frame != num_before)
        return "frames.first_frame";
    if (frames->is_last_chunk == is_more || (is_more && !shape->chunk_frames && !shape->clip_items))
        return "frames.is_last_chunk";
    return frames->cost.num_frames == num_all ? NULL : "cost.num_frames";
}

static const char *find_wrong_audio(const isolated_shape *shape, const weir_audio *audio, bool is_more)
{
    if (differs(shape->channels, audio->channels))
        return "audio.channels";
    if (differs(shape->sample_rate, audio->sample_rate))
        return "audio.sample_rate";
    if (audio->planar != shape->planar)
        return "audio.planar";
    if (exceeds(shape->max_bytes, audio->num_samples * audio->channels * sizeof *audio->data))
        return "audio.num_samples";
    return is_more ? "head.status" : NULL;
}

#define TIME_OF_TIME(field) { "cost." #field, offsetof(weir_decode_cost, field) },
#define TIME_OF_COUNT(field)
#define TIME_OF_BYTES(field)
#define TIME_OF_TEXT(field)
#define TIME_OF(field, name, kind, unit, meaning) TIME_OF_##kind(field)

static const struct {
    const char *name;
    size_t offset;
} cost_times[] = { WEIR_DECODE_PARTS(TIME_OF) };

/* Our operations run on one thread, so that no part of an item takes longer than the item. */
static const char *find_wrong_cost(const weir_decode_cost *cost, int64_t elapsed_ns)
{
    for (size_t i = 0; i < sizeof cost_times / sizeof cost_times[0]; i++)
        if (*(const int64_t *)((const char *)cost + cost_times[i].offset) > elapsed_ns)
            return cost_times[i].name;
    return NULL;
}

const weir_decode_cost *weir__isolated_cost_of(const weir_item *item)
{
    if (strcmp(item->type, WEIR_TYPE_FRAMES) == 0)
        return &((const weir_frames *)item->data)->cost;
    return strcmp(item->type, WEIR_TYPE_AUDIO) == 0 ? &((const weir_audio *)item->data)->cost : NULL;
}

const char *weir__isolated_find_misfit(const isolated_shape *shape, const weir_item *item, uint64_t num_before,
                                       bool is_more, int64_t elapsed_ns)
{
    const weir_decode_cost *cost = weir__isolated_cost_of(item);
    const char *wrong = NULL;
    if (!shape->is_own)
        return NULL;
    if (strcmp(item->type, WEIR_TYPE_FRAMES) == 0)
        wrong = find_wrong_frames(shape, item->data, num_before, is_more);
    else if (strcmp(item->type, WEIR_TYPE_AUDIO) == 0)
        wrong = find_wrong_audio(shape, item->data, is_more);
    return wrong || !cost ? wrong : find_wrong_cost(cost, elapsed_ns);
}
