#include "stages/isolate/isolated_config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <weir/audio.h>
#include <weir/image.h>
#include <weir/video.h>

const weir_op *const weir__isolated_own_ops[] = { &weir_video_decode, &weir_image_decode, &weir_audio_decode, NULL };

/* What the configs point to: each to ca_file, that of the video stage to more. */

const char **weir__isolated_ca_file(const weir_op *op, void *config)
{
    if (op == &weir_video_decode)
        return &((weir_video_config *)config)->ca_file;
    if (op == &weir_image_decode)
        return &((weir_image_config *)config)->ca_file;
    return op == &weir_audio_decode ? &((weir_audio_config *)config)->ca_file : NULL;
}

static void put_list(isolated_message *message, const int64_t *values, size_t num_values)
{
    weir__isolated_put(message, values, values ? num_values * sizeof *values : 0);
}

static const int64_t *get_list(isolated_message *message, bool has_values, size_t num_values)
{
    if (!has_values || num_values > message->head.body_bytes)
        return NULL;
    int64_t *values = malloc(num_values * sizeof *values + 1);
    if (!values)
        message->is_bad = true;
    else
        weir__isolated_get(message, values, num_values * sizeof *values);
    return values;
}

static void put_video_pointers(isolated_message *message, const weir_video_config *video)
{
    assert(video); /* no operation of such a config runs without one */
    weir__isolated_put_text(message, video->filter);
    put_list(message, video->sampling.indices, video->sampling.num_indices);
    put_list(message, video->sampling.times_ns, video->sampling.num_times);
}

static void get_video_pointers(isolated_message *message, weir_video_config *video)
{
    weir_sampling *sampling = &video->sampling;
    video->filter = weir__isolated_get_text(message);
    sampling->indices = get_list(message, sampling->indices, sampling->num_indices);
    sampling->times_ns = get_list(message, sampling->times_ns, sampling->num_times);
}

void weir__isolated_put_config(isolated_message *message, const weir_op *op, const void *config)
{
    weir__isolated_put(message, &op->config_size, sizeof op->config_size);
    weir__isolated_put(message, config, op->config_size);
    const char **ca_file = weir__isolated_ca_file(op, (void *)(uintptr_t)config);
    if (ca_file)
        weir__isolated_put_text(message, *ca_file);
    if (op == &weir_video_decode)
        put_video_pointers(message, config);
}

void *weir__isolated_get_config(isolated_message *message, const weir_op *op)
{
    size_t config_size;
    weir__isolated_get(message, &config_size, sizeof config_size);
    void *config = config_size == op->config_size ? calloc(1, config_size + 1) : NULL;
    if (!config) {
        message->is_bad = true;
        return NULL;
    }
    const char **ca_file = weir__isolated_ca_file(op, config);
    bool is_whole = weir__isolated_get(message, config, config_size);
    if (is_whole && ca_file)
        *ca_file = weir__isolated_get_text(message);
    if (is_whole && op == &weir_video_decode)
        get_video_pointers(message, config);
    if (!message->is_bad)
        return config;
    free(config);
    return NULL;
}

/* -- what the results are to be */

isolated_shape weir__isolated_shape_of(const weir_op *op, const void *config)
{
    if (op == &weir_video_decode) {
        const weir_video_config *video = config;
        return (isolated_shape){ true,
                                 .width = video->width,
                                 .height = video->height,
                                 .chunk_frames = video->chunk_frames,
                                 .max_frames = video->max_frames,
                                 .max_bytes = video->max_bytes,
                                 .pixel = video->pixel,
                                 .layout = video->layout };
    }
    if (op == &weir_image_decode) {
        const weir_image_config *image = config;
        return (isolated_shape){ true,
                                 .width = image->width,
                                 .height = image->height,
                                 .max_frames = 1,
                                 .pixel = image->pixel,
                                 .layout = image->layout };
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
    return shape->is_own ? MAX_HEAD_BYTES + shape->max_frames * sizeof(int64_t) : 0;
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
    if (frames->first_frame != num_before)
        return "frames.first_frame";
    if (frames->is_last_chunk == is_more || (is_more && !shape->chunk_frames))
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

/* Our operations run on one thread, so that no part of an item takes longer than the item. */
static const char *find_wrong_cost(const weir_item_cost *cost, int64_t elapsed_ns)
{
    if (cost->open_ns > elapsed_ns)
        return "cost.open_ns";
    if (cost->demux_ns > elapsed_ns)
        return "cost.demux_ns";
    if (cost->decode_ns > elapsed_ns)
        return "cost.decode_ns";
    return cost->scale_ns > elapsed_ns ? "cost.scale_ns" : NULL;
}

const char *weir__isolated_find_misfit(const isolated_shape *shape, const weir_item *item, uint64_t num_before,
                                       bool is_more, int64_t elapsed_ns)
{
    weir_item_cost cost = { 0 };
    const char *wrong = NULL;
    if (!shape->is_own)
        return NULL;
    if (strcmp(item->type, WEIR_TYPE_FRAMES) == 0)
        wrong = find_wrong_frames(shape, item->data, num_before, is_more);
    else if (strcmp(item->type, WEIR_TYPE_AUDIO) == 0)
        wrong = find_wrong_audio(shape, item->data, is_more);
    return wrong || !weir_decode_cost(item, &cost) ? wrong : find_wrong_cost(&cost, elapsed_ns);
}
