#include "stages/memory/frame_arrays.h"

#include <stdlib.h>
#include <string.h>

#include <weir/status.h>

/* Where the pointer is in weir_frames, and how large its elements are. */
typedef struct frame_array {
    size_t offset;
    size_t frame_bytes;
} frame_array;

#define ARRAY(field) \
    { \
        offsetof(weir_frames, field), sizeof *((weir_frames *)NULL)->field \
    }

static const frame_array arrays[] = { ARRAY(pts), ARRAY(times_ns), ARRAY(mask) };

enum { NUM_ARRAYS = sizeof arrays / sizeof arrays[0] };

static void *get_pointer(const weir_frames *frames, unsigned i)
{
    void *array;
    memcpy(&array, (const char *)frames + arrays[i].offset, sizeof array);
    return array;
}

static void set_pointer(weir_frames *frames, unsigned i, void *array)
{
    memcpy((char *)frames + arrays[i].offset, &array, sizeof array);
}

int weir__frame_arrays_resize(weir_frames *frames, size_t num_frames)
{
    for (unsigned i = 0; i < NUM_ARRAYS; i++) {
        void *array = realloc(get_pointer(frames, i), num_frames * arrays[i].frame_bytes);
        if (!array)
            return WEIR_ENOMEM;
        set_pointer(frames, i, array);
    }
    return WEIR_OK;
}

void weir__frame_arrays_set(weir_frames *frames, size_t frame, weir_frame_facts facts)
{
    frames->pts[frame] = facts.pts;
    frames->times_ns[frame] = facts.time_ns;
    frames->mask[frame] = facts.mask;
}

weir_frame_facts weir__frame_arrays_get(const weir_frames *frames, size_t frame)
{
    return (weir_frame_facts){ frames->pts[frame], frames->times_ns[frame], frames->mask[frame] };
}

size_t weir__frame_arrays_bytes(void)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < NUM_ARRAYS; i++)
        bytes += arrays[i].frame_bytes;
    return bytes;
}

void *weir__frame_arrays_at(const weir_frames *frames, unsigned i, size_t *frame_bytes)
{
    if (i >= NUM_ARRAYS)
        return NULL;
    *frame_bytes = arrays[i].frame_bytes;
    return get_pointer(frames, i);
}

void weir__frame_arrays_free(weir_frames *frames)
{
    for (unsigned i = 0; i < NUM_ARRAYS; i++) {
        free(get_pointer(frames, i));
        set_pointer(frames, i, NULL);
    }
}
