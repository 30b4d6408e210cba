#include "brightness.h"

#include <stdlib.h>

#include <weir/video.h>

/* Refuses wrong options when the pipeline is built. */
static int init_config(void *config, weir_error *error)
{
    const brightness_config *own = config;
    if (own->least < 0 || own->least > 255)
        return weir_error_set(error, WEIR_EINVAL, 0, "the minimum brightness is %g, not between 0 and 255",
                              own->least);
    return WEIR_OK;
}

/* What the statistics get of each item besides its time; see weir/item_part.h. */
static const weir_part_info summed_bytes = { "summed_bytes", WEIR_PART_BYTES, "bytes",
                                             "of which the mean was taken" };

/* Runs on a thread of the pool, in as many slots at once as the stage has. */
static int measure(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const brightness_config *config = weir_task_config(task);
    const weir_frames *frames = in->data;
    weir_error error = { 0 };
    if (weir_memory_check(frames->memory, "brightness", &error) != WEIR_OK) /* a GPU has decoded them */
        return weir_task_fail(task, error.status, 0, "%s", error.message);
    if (frames->pixel != WEIR_PIXEL_GRAY8)
        return weir_task_fail(task, WEIR_EINVAL, 0, "the frames are not gray8");

    double sum = 0;
    for (uint32_t i = 0; i < frames->num_frames; i++) {
        const uint8_t *pixels = frames->data + i * frames->frame_bytes;
        for (size_t byte = 0; byte < frames->frame_bytes; byte++)
            sum += pixels[byte];
        if (weir_task_should_stop(task)) /* the result is no longer needed */
            return WEIR_ESTOPPED;
    }
    weir_task_set_part(task, &summed_bytes, (int64_t)(frames->num_frames * frames->frame_bytes));
    double mean = sum / ((double)frames->num_frames * (double)frames->frame_bytes);
    if (mean < config->least)
        return WEIR_SKIP;

    brightness *result = malloc(sizeof *result);
    if (!result)
        return WEIR_ENOMEM;
    *result = (brightness){ .num_frames = frames->num_frames, .mean = mean };
    out->data = result;
    out->size_bytes = sizeof *result;
    out->release = weir_release_free;
    return WEIR_OK; /* the engine releases `in` and moves its label to `out` */
}

const weir_op brightness_stage = {
    .name = "brightness",
    .takes = WEIR_TYPE_FRAMES,
    .makes = "example.brightness",
    .config_size = sizeof(brightness_config),
    .config_init = init_config,
    .run = measure,
};
