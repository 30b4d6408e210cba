/*
 * The still image stage: loads the file into memory, then decodes and scales it like a video of one frame. It decodes
 * from memory, because FFmpeg treats a path that ends in ".jpg" as a pattern of many names.
 */
#include <weir/image.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "stages/config/decoder_fields.h"
#include "stages/config/input_fields.h"
#include "stages/config/picture_fields.h"
#include "stages/decoder/cost_parts.h"
#include "stages/decoder/decoder.h"
#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/image/image_stage.h"
#include "stages/memory/block_pool.h"
#include "stages/picture/frame_buffer.h"
#include "stages/reader/picture_reader.h"
#include "stages/scale/rotate.h"
#include "stages/scale/scaler.h"

typedef struct image_worker {
    weir_decoder decoder;
    weir_rotator rotator;
    weir_scaler scaler;
    weir_ffmpeg_log log;
    weir_task *task; /* the running one */
} image_worker;

#define IMAGE_FIELDS(FIELD, type) \
    FIELD(type, input, CONFIG, &weir__input_fields, input_size) \
    FIELD(type, input_size, OURS, 0, 0) \
    FIELD(type, decoder, CONFIG, &weir__decoder_fields, decoder_size) \
    FIELD(type, decoder_size, OURS, 0, 0) \
    FIELD(type, picture, CONFIG, &weir__picture_fields, picture_size) \
    FIELD(type, picture_size, OURS, 0, 0) \
    FIELD(type, max_file_bytes, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, allocator, OURS, 0, 0) /* not across processes */

DEFINE_STRUCT_RULES(weir__image_fields, weir_image_config, "weir_image_config", IMAGE_FIELDS);

static void image_config_free(void *config)
{
    weir_image_config *image = config;
    weir__input_config_free(image->input);
    weir__decoder_config_free(image->decoder);
    weir__picture_config_free(image->picture);
    weir_allocator_free(image->allocator);
}

static int check_no_filter(const weir_picture_config *picture, weir_error *error)
{
    return picture->filter
               ? weir_error_set(error, WEIR_EINVAL, 0, "filter \"%s\": not for still images", picture->filter)
               : WEIR_OK;
}

static int image_config_init(void *config, weir_error *error)
{
    weir_image_config *image = config;
    int rc = weir__input_config_own(&image->input, &image->input_size, error);
    if (rc != WEIR_OK)
        return rc;
    rc = weir__decoder_config_own(&image->decoder, &image->decoder_size, error);
    if (rc != WEIR_OK)
        goto no_decoder;
    rc = weir__picture_config_own(&image->picture, &image->picture_size, error);
    if (rc != WEIR_OK)
        goto no_picture;
    rc = check_no_filter(image->picture, error);
    if (rc == WEIR_OK)
        rc = weir__allocator_use(image->allocator, "image", error);
    if (rc != WEIR_OK)
        goto not_usable;
    if (image->max_file_bytes == 0)
        image->max_file_bytes = UINT64_C(256) << 20;
    weir__ffmpeg_log_install();
    return WEIR_OK;
not_usable:
    weir__picture_config_free(image->picture);
no_picture:
    weir__decoder_config_free(image->decoder);
no_decoder:
    weir__input_config_free(image->input);
    return rc;
}

static bool is_image_stopped(void *self)
{
    const image_worker *worker = self;
    return weir_task_should_stop(worker->task);
}

static void count_picture(void *self)
{
    weir_task_advance(((image_worker *)self)->task, "frames", 1);
}

static int interrupt_image(void *self)
{
    return is_image_stopped(self);
}

static int image_worker_init(void *self, const void *config, weir_task *task)
{
    image_worker *worker = self;
    const weir_image_config *image = config;
    worker->decoder = (weir_decoder){
        .should_stop = is_image_stopped,
        .on_frame = count_picture,
        .self = worker,
        .config = image->decoder,
        .input.config = image->input,
    };
    if (weir__decoder_init(&worker->decoder) != WEIR_OK) {
        weir__decoder_free(&worker->decoder);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }
    return WEIR_OK;
}

static void image_worker_free(void *self)
{
    image_worker *worker = self;
    weir__scaler_reset(&worker->scaler);
    weir__rotator_free(&worker->rotator);
    weir__decoder_free(&worker->decoder);
}

/* Decoders of still pictures conceal truncated data, and report that only in FFmpeg's log. */
static bool is_damaged(const image_worker *worker)
{
    return weir__video_is_corrupt(worker->decoder.frame) || worker->log.num_errors > 0;
}

/* Scales the decoded picture into a result. */
static int make_result(image_worker *worker, const weir_picture_config *wanted, weir_frames **frames,
                       weir_error *error)
{
    const weir_image_config *image = weir_task_config(worker->task);
    weir_decoder *decoder = &worker->decoder;
    const AVFrame *picture = decoder->frame;
    weir_frames_builder builder = { .max_bytes = UINT64_MAX, .allocator = image->allocator };
    uint8_t *data;
    int64_t start_ns = weir_clock_ns();
    int rc = wanted->no_autorotate ? WEIR_OK
                                   : weir__rotator_run(&worker->rotator, decoder->stream, picture, &picture, error);
    if (rc != WEIR_OK)
        return rc;

    int width, height;
    rc = weir__scaler_size(wanted, picture->width, picture->height, &width, &height, error);
    if (rc != WEIR_OK)
        return rc;
    weir__scaler_set(&worker->scaler, wanted, width, height);
    rc = weir__frames_begin(&builder, wanted, (uint32_t)width, (uint32_t)height, 1, error);
    if (rc == WEIR_OK)
        rc = weir__frames_next(&builder, &data, error);
    if (rc == WEIR_OK)
        rc = weir__scaler_run(&worker->scaler, picture, data, error);
    if (rc != WEIR_OK) {
        weir__frames_abort(&builder);
        return rc;
    }
    weir__frames_commit(&builder, (weir_frame_facts){ .pts = 0, .mask = 1 });
    weir__video_describe(decoder, decoder->frame->width, decoder->frame->height, builder.frames);
    weir__scaler_describe(&worker->scaler, builder.frames);
    builder.frames->num_corrupt_frames = is_damaged(worker);
    builder.frames->num_errors = decoder->num_errors;
    builder.frames->is_last_chunk = true;
    decoder->cost.scale_ns = weir_clock_ns() - start_ns;
    decoder->cost.num_frames = 1;
    decoder->cost.width = builder.frames->source_width; /* known only after decoding */
    decoder->cost.height = builder.frames->source_height;
    decoder->cost.num_errors = decoder->num_errors + builder.frames->num_corrupt_frames;
    builder.frames->cost = decoder->cost;
    *frames = weir__frames_end(&builder);
    return WEIR_OK;
}

static int decode_picture(image_worker *worker, const char *path, weir_frames **frames, weir_error *error)
{
    const weir_image_config *image = weir_task_config(worker->task);
    weir_decoder *decoder = &worker->decoder;
    weir_bytes *loaded = NULL;
    int rc = WEIR_OK;
    if (!decoder->input.bytes) {
        AVIOInterruptCB asker = { .callback = interrupt_image, .opaque = worker };
        rc = weir__input_load(&decoder->input, path, image->max_file_bytes, asker, &loaded, error);
        decoder->input.bytes = loaded;
    }
    if (rc == WEIR_OK)
        rc = weir__decoder_open(decoder, path, error);
    if (rc == WEIR_OK)
        rc = weir__decoder_next(decoder, error);
    if (rc == WEIR_EOF)
        rc = weir__decoder_fail_empty(decoder, "no picture: the file is truncated", error);
    if (rc == WEIR_OK)
        rc = make_result(worker, image->picture, frames, error);
    weir__decoder_close(decoder);
    weir_bytes_free(loaded);
    return rc;
}

static int image_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    image_worker *worker = self;
    const char *path = weir__input_choose(&worker->decoder.input, in);
    const char *label = weir_task_label(task);
    weir_frames *frames = NULL;
    weir_error error = { 0 };

    worker->task = task;
    worker->decoder.cost = (weir_decode_cost){ 0 };
    weir__ffmpeg_log_begin(&worker->log, label[0] ? label : path, path);
    int rc = weir__input_check_whole(in, &error);
    if (rc == WEIR_OK)
        rc = decode_picture(worker, path, &frames, &error);
    weir__ffmpeg_log_end();
    weir__cost_tell(task, &worker->decoder.cost);
    if (rc != WEIR_OK)
        return weir_task_fail(task, rc, error.library_code, "%s", error.message);

    weir__input_take_sidecars(in, &frames->sidecars, &frames->memory_bytes);
    weir__input_take_entry(in, &frames->entry, &frames->memory_bytes);
    *out = (weir_item){ .data = frames, .release = weir_frames_release, .size_bytes = frames->memory_bytes };
    return WEIR_OK;
}

const weir_op weir_image_decode = {
    .name = "image",
    .takes = WEIR_TYPE_TEXT " " WEIR_TYPE_BYTES " " WEIR_TYPE_ENTRY,
    .makes = WEIR_TYPE_FRAMES,
    .config_size = sizeof(weir_image_config),
    .config_init = image_config_init,
    .config_free = image_config_free,
    .worker_size = sizeof(image_worker),
    .worker_init = image_worker_init,
    .run = image_run,
    .worker_free = image_worker_free,
};
