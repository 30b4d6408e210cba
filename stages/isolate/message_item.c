/* Items in messages. What comes from a child is checked as if it were a file from outside. */
#include "stages/isolate/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/audio.h>
#include <weir/bytes.h>
#include <weir/video.h>

#include "stages/isolate/reader_message.h"
#include "stages/memory/frame_arrays.h"
#include "stages/memory/pixel_kind.h"
#include "stages/scale/scaler.h"

typedef struct item_kind {
    const char *type;
    bool (*put)(isolated_message *message, const void *data);
    bool (*get)(isolated_message *message, weir_item *item);
} item_kind;

bool weir__isolated_put_data(isolated_message *message, const void *data, size_t size_bytes, weir_shared_data *shared)
{
    message->data = shared ? shared : size_bytes ? weir__shared_data_new(size_bytes) : NULL;
    message->data_is_borrowed = message->data == shared;
    if (message->data && !message->data_is_borrowed)
        memcpy(message->data->data, data, size_bytes);
    return message->data || size_bytes == 0;
}

/* The data of the message becomes that of the result. */
static weir_shared_data *take_shared_data(isolated_message *message)
{
    weir_shared_data *shared = message->data;
    message->data = NULL;
    return shared;
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
    return weir__isolated_put_data(message, bytes->data, bytes->size_bytes, NULL);
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
    const uint8_t has_packets = entry->packets != NULL;
    weir__isolated_put_struct(message, &weir__entry_rules, entry);
    weir__isolated_put_text(message, entry->path);
    weir__isolated_put(message, &has_packets, sizeof has_packets);
    weir__isolated_put(message, entry->packets, has_packets ? entry->packets_bytes : 0);
    return true;
}

static bool get_entry(isolated_message *message, weir_item *item)
{
    weir_entry *entry = weir_entry_new();
    item->data = entry;
    item->release = weir_entry_release;
    uint8_t has_packets;
    if (!entry || !weir__isolated_get_struct(message, &weir__entry_rules, entry))
        return false;
    const char *path = weir__isolated_get_text(message);
    entry->path = path ? strdup(path) : NULL;
    if (!entry->path || !weir__isolated_get(message, &has_packets, sizeof has_packets))
        return false;
    size_t left = (size_t)message->head.body_bytes - message->position;
    if (has_packets > 1 || (has_packets && entry->packets_bytes > left)) {
        weir__isolated_complain(message, "entry.packets_bytes");
        return false;
    }
    if (!has_packets)
        return true;
    entry->packets = malloc(entry->packets_bytes + 1);
    return entry->packets && weir__isolated_get(message, entry->packets, entry->packets_bytes);
}

/* -- frames */

static bool put_frames(isolated_message *message, const void *data)
{
    const weir_frames *frames = data;
    weir__isolated_put_struct(message, &weir__frames_rules, frames);
    size_t frame_bytes;
    const void *array;
    for (unsigned i = 0; (array = weir__frame_arrays_at(frames, i, &frame_bytes)); i++)
        weir__isolated_put(message, array, frames->num_frames * frame_bytes);
    return weir__isolated_put_data(message, frames->data, frames->num_frames * frames->frame_bytes, frames->shared);
}

/* What depends on other fields and on the data. NULL; or the field that makes no sense. */
static const char *find_wrong_frames(const isolated_message *message, const weir_frames *frames)
{
    uint64_t frame_bytes = weir__scaler_picture_bytes(frames->pixel, frames->width, frames->height);
    if (frames->channels != weir__pixel_channels(frames->pixel))
        return "frames.channels";
    if (frames->frame_bytes != frame_bytes)
        return "frames.frame_bytes";
    if (!message->data || frames->num_frames > message->data->size_bytes / frame_bytes)
        return "frames.num_frames";
    if (frames->num_clips && frames->num_frames % frames->num_clips)
        return "frames.num_clips";
    return frames->num_corrupt_frames > frames->num_frames ? "frames.num_corrupt_frames" : NULL;
}

static bool get_arrays(isolated_message *message, const weir_frames *frames)
{
    size_t frame_bytes;
    void *array;
    for (unsigned i = 0; (array = weir__frame_arrays_at(frames, i, &frame_bytes)); i++)
        if (!weir__isolated_get(message, array, frames->num_frames * frame_bytes))
            return false;
    for (uint32_t i = 0; i < frames->num_frames; i++) {
        if (frames->mask[i] > 1) {
            weir__isolated_complain(message, "frames.mask");
            return false;
        }
    }
    return true;
}

static bool get_frames(isolated_message *message, weir_item *item)
{
    weir_frames *frames = calloc(1, sizeof *frames);
    item->data = frames;
    item->release = weir_frames_release;
    if (!frames || !weir__isolated_get_struct(message, &weir__frames_rules, frames))
        return false;
    const char *wrong = find_wrong_frames(message, frames);
    if (wrong) {
        weir__isolated_complain(message, wrong);
        return false;
    }
    size_t array_bytes = frames->num_frames * weir__frame_arrays_bytes();
    if (array_bytes > message->head.body_bytes - message->position) { /* before there is memory for them */
        weir__isolated_complain(message, "frames.pts");
        return false;
    }
    if (weir__frame_arrays_resize(frames, frames->num_frames) != WEIR_OK || !get_arrays(message, frames))
        return false;
    frames->shared = take_shared_data(message);
    frames->data = frames->shared->data;
    frames->memory_bytes = sizeof *frames + array_bytes + frames->shared->size_bytes;
    item->size_bytes = frames->memory_bytes;
    return true;
}

/* -- audio */

static bool put_audio(isolated_message *message, const void *data)
{
    const weir_audio *audio = data;
    weir__isolated_put_struct(message, &weir__audio_rules, audio);
    return weir__isolated_put_data(message, audio->data, audio->num_samples * audio->channels * sizeof *audio->data,
                                   audio->shared);
}

static bool get_audio(isolated_message *message, weir_item *item)
{
    weir_audio *audio = calloc(1, sizeof *audio);
    item->data = audio;
    item->release = weir_audio_release;
    if (!audio || !weir__isolated_get_struct(message, &weir__audio_rules, audio))
        return false;
    size_t data_bytes = message->data ? message->data->size_bytes : 0;
    if (audio->num_samples > data_bytes / sizeof *audio->data / audio->channels) {
        weir__isolated_complain(message, "audio.num_samples");
        return false;
    }
    audio->shared = take_shared_data(message);
    audio->data = audio->shared ? audio->shared->data : NULL;
    audio->memory_bytes = sizeof *audio + data_bytes;
    item->size_bytes = audio->memory_bytes;
    return true;
}

/* -- all of them */

static const item_kind kinds[] = {
    { WEIR_TYPE_TEXT, put_text, get_text },
    { WEIR_TYPE_BYTES, put_bytes, get_bytes },
    { WEIR_TYPE_ENTRY, put_entry, get_entry },
    { WEIR_TYPE_FRAMES, put_frames, get_frames },
    { WEIR_TYPE_AUDIO, put_audio, get_audio },
    { ISOLATED_TYPE_REQUEST, weir__isolated_put_request, weir__isolated_get_request },
    { ISOLATED_TYPE_FACTS, weir__isolated_put_facts, weir__isolated_get_facts },
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
                    kinds[i].get(message, item) && weir__isolated_is_read(message);
    if (is_whole) {
        item->type = kinds[i].type;
        return true;
    }
    if (!message->complaint[0])
        weir__isolated_complain(message, "an item");
    weir_item_release(item);
    errno = EPROTO;
    return false;
}
