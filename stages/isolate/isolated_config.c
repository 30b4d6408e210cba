#include "isolated_config.h"

#include <assert.h>
#include <stdlib.h>

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
