/* Items in messages. What comes from a child is checked as if it were a file from outside. */
#include "message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/audio.h>
#include <weir/bytes.h>
#include <weir/video.h>

#include "scaler.h"

enum { MAX_CHANNELS = 256 };

typedef struct item_kind {
    const char *type;
    bool (*put)(isolated_message *message, const void *data);
    bool (*get)(isolated_message *message, weir_item *item);
} item_kind;

/* Samples that are not in shared memory yet, as operations of users may make them, are copied. */
static bool put_data(isolated_message *message, const void *data, size_t size_bytes, weir_shared_data *shared)
{
    message->data = shared ? shared : size_bytes ? weir__shared_data_new(size_bytes) : NULL;
    message->data_is_borrowed = message->data == shared;
    if (message->data && !message->data_is_borrowed)
        memcpy(message->data->data, data, size_bytes);
    return message->data || size_bytes == 0;
}

static bool has_data(const isolated_message *message, uint64_t size_bytes)
{
    return size_bytes == 0 || (message->data && size_bytes <= message->data->size_bytes);
}

/* The data of the message becomes that of the result. */
static weir_shared_data *take_shared_data(isolated_message *message)
{
    weir_shared_data *shared = message->data;
    message->data = NULL;
    return shared;
}

static bool is_flag(const bool *flag)
{
    return *(const unsigned char *)flag <= 1;
}

/* -- text */

static bool put_text(isolated_message *message, const void *data)
{
    weir__isolated_put_text(message, data);
    return true;
}

static bool get_text(isolated_message *message, weir_item *item)
{
    const char *text = weir__isolated_get_text(message);
    item->data = text ? strdup(text) : NULL;
    item->release = weir_release_free;
    return item->data;
}

/* -- files in memory */

static bool put_bytes(isolated_message *message, const void *data)
{
    const weir_bytes *bytes = data;
    weir__isolated_put_text(message, bytes->name);
    return put_data(message, bytes->data, bytes->size_bytes, NULL);
}

static bool get_bytes(isolated_message *message, weir_item *item)
{
    const char *name = weir__isolated_get_text(message);
    weir_shared_data *shared = message->data;
    weir_bytes *bytes = weir_bytes_wrap(shared ? shared->data : "", shared ? shared->size_bytes : 0, name,
                                        shared ? weir__shared_data_release : NULL, shared);
    if (bytes)
        take_shared_data(message);
    item->data = bytes;
    item->release = weir_bytes_release;
    item->size_bytes = weir_bytes_memory(bytes);
    return bytes;
}

/* -- entries: to the child only, as the parent keeps its own */

static bool put_entry(isolated_message *message, const void *data)
{
    const weir_entry *entry = data;
    weir__isolated_put(message, entry, sizeof *entry);
    weir__isolated_put_text(message, entry->path);
    weir__isolated_put(message, entry->packets, entry->packets_bytes);
    return true;
}

static bool get_entry(isolated_message *message, weir_item *item)
{
    weir_entry *entry = weir_entry_new();
    item->data = entry;
    item->release = weir_entry_release;
    if (!entry || !weir__isolated_get(message, entry, sizeof *entry))
        return false;
    const char *path = weir__isolated_get_text(message);
    bool has_packets = entry->packets;
    entry->path = path ? strdup(path) : NULL;
    entry->packets = NULL;
    if (!entry->path)
        return false;
    if (!has_packets)
        return true;
    size_t left = (size_t)message->head.body_bytes - message->position;
    entry->packets = entry->packets_bytes <= left ? malloc(entry->packets_bytes + 1) : NULL;
    return entry->packets && weir__isolated_get(message, entry->packets, entry->packets_bytes);
}

/* -- frames */

static bool put_frames(isolated_message *message, const void *data)
{
    const weir_frames *frames = data;
    weir__isolated_put(message, frames, sizeof *frames);
    weir__isolated_put(message, frames->pts, frames->num_frames * sizeof *frames->pts);
    return put_data(message, frames->data, frames->num_frames * frames->frame_bytes, frames->shared);
}

static bool frames_make_sense(const isolated_message *message, const weir_frames *frames)
{
    if ((unsigned)frames->pixel > WEIR_PIXEL_YUV420P || (unsigned)frames->layout > WEIR_LAYOUT_NCHW ||
        (unsigned)frames->scaler > WEIR_SCALER_FAST || !is_flag(&frames->full_range) ||
        !is_flag(&frames->is_last_chunk) || frames->width == 0 || frames->width > INT32_MAX || frames->height == 0 ||
        frames->height > INT32_MAX)
        return false;
    uint32_t channels = frames->pixel == WEIR_PIXEL_RGB24 ? 3 : frames->pixel == WEIR_PIXEL_GRAY8 ? 1 : 0;
    uint64_t frame_bytes = weir__scaler_picture_bytes(frames->pixel, frames->width, frames->height);
    return frames->channels == channels && frames->frame_bytes == frame_bytes && message->data &&
           frames->num_frames <= message->data->size_bytes / frame_bytes;
}

static bool get_frames(isolated_message *message, weir_item *item)
{
    weir_frames *frames = calloc(1, sizeof *frames);
    item->data = frames;
    item->release = weir_frames_release;
    if (!frames)
        return false;
    bool is_whole = weir__isolated_get(message, frames, sizeof *frames);
    frames->data = NULL;
    frames->pts = NULL;
    frames->entry = NULL;
    frames->sidecars = NULL;
    frames->audio = NULL;
    frames->shared = NULL;
    if (!is_whole || !frames_make_sense(message, frames))
        return false;
    frames->codec[sizeof frames->codec - 1] = '\0';
    frames->cost.codec[sizeof frames->cost.codec - 1] = '\0';
    size_t pts_bytes = frames->num_frames * sizeof *frames->pts;
    frames->pts = malloc(pts_bytes + 1);
    if (!frames->pts || !weir__isolated_get(message, frames->pts, pts_bytes))
        return false;
    frames->shared = take_shared_data(message);
    frames->data = frames->shared ? frames->shared->data : NULL;
    frames->memory_bytes = sizeof *frames + pts_bytes + (frames->shared ? frames->shared->size_bytes : 0);
    item->size_bytes = frames->memory_bytes;
    return true;
}

/* -- audio */

static bool put_audio(isolated_message *message, const void *data)
{
    const weir_audio *audio = data;
    weir__isolated_put(message, audio, sizeof *audio);
    return put_data(message, audio->data, audio->num_samples * audio->channels * sizeof *audio->data, audio->shared);
}

static bool get_audio(isolated_message *message, weir_item *item)
{
    weir_audio *audio = calloc(1, sizeof *audio);
    item->data = audio;
    item->release = weir_audio_release;
    if (!audio)
        return false;
    bool is_whole = weir__isolated_get(message, audio, sizeof *audio);
    audio->data = NULL;
    audio->entry = NULL;
    audio->sidecars = NULL;
    audio->shared = NULL;
    if (!is_whole || !is_flag(&audio->planar) || audio->channels == 0 || audio->channels > MAX_CHANNELS ||
        audio->num_samples > UINT64_MAX / MAX_CHANNELS / sizeof *audio->data ||
        !has_data(message, audio->num_samples * audio->channels * sizeof *audio->data))
        return false;
    audio->codec[sizeof audio->codec - 1] = '\0';
    audio->cost.codec[sizeof audio->cost.codec - 1] = '\0';
    audio->shared = take_shared_data(message);
    audio->data = audio->shared ? audio->shared->data : NULL;
    audio->memory_bytes = sizeof *audio + (audio->shared ? audio->shared->size_bytes : 0);
    item->size_bytes = audio->memory_bytes;
    return true;
}

/* -- all of them */

static const item_kind kinds[] = {
    { WEIR_TYPE_TEXT, put_text, get_text },    { WEIR_TYPE_BYTES, put_bytes, get_bytes },
    { WEIR_TYPE_ENTRY, put_entry, get_entry }, { WEIR_TYPE_FRAMES, put_frames, get_frames },
    { WEIR_TYPE_AUDIO, put_audio, get_audio },
};

bool weir__isolated_put_item(isolated_message *message, const weir_item *item)
{
    errno = ENOTSUP;
    for (uint32_t i = 0; item->type && item->data && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(item->type, kinds[i].type) != 0)
            continue;
        weir__isolated_put(message, &i, sizeof i);
        bool is_put = kinds[i].put(message, item->data) && !message->is_bad;
        errno = ENOMEM;
        return is_put;
    }
    return false;
}

bool weir__isolated_get_item(isolated_message *message, weir_item *item)
{
    uint32_t i;
    *item = (weir_item){ 0 };
    bool is_whole = weir__isolated_get(message, &i, sizeof i) && i < sizeof kinds / sizeof kinds[0] &&
                    kinds[i].get(message, item) && !message->is_bad;
    if (is_whole) {
        item->type = kinds[i].type;
        return true;
    }
    weir_item_release(item);
    errno = EPROTO;
    return false;
}
