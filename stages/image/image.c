/*
 * The still image stage: loads the file into memory, and asks the picture reader for its first frame. The reader gets the
 * file from memory, because FFmpeg treats a path that ends in ".jpg" as a pattern of many names.
 */
#include <weir/image.h>

#include <stdbool.h>

#include "stages/config/decoder_fields.h"
#include "stages/config/input_fields.h"
#include "stages/config/picture_fields.h"
#include "stages/decoder/cost_parts.h"
#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/image/image_stage.h"
#include "stages/memory/block_pool.h"
#include "stages/reader/picture_reader.h"

typedef struct image_worker {
    weir_video_config one; /* the image stage's options as those of a video; its pointers are the image config's */
    weir_picture_reader reader;
    weir_task *task;    /* the running one */
    weir_bytes *loaded; /* its file; NULL = the input is in memory */
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
    return picture->filter ? weir_error_set(error, WEIR_EINVAL, 0, "filter \"%s\" cannot be used for still images",
                                            picture->filter)
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

/* result_bytes: of a result that is not passed on yet. */
static void report_held(const image_worker *worker, uint64_t result_bytes)
{
    uint64_t bytes = weir__picture_reader_bytes(&worker->reader) + weir_bytes_memory(worker->loaded);
    weir_task_set_held(worker->task, WEIR_HOLDER_WORKER, bytes + result_bytes);
}

static void count_picture(void *self)
{
    const image_worker *worker = self;
    weir_task_advance(worker->task, "frames", 1);
    report_held(worker, 0);
}

static int interrupt_image(void *self)
{
    return is_image_stopped(self);
}

static int image_worker_init(void *self, const void *config, weir_task *task)
{
    image_worker *worker = self;
    const weir_image_config *image = config;
    worker->one = (weir_video_config){
        .input = image->input,
        .decoder = image->decoder,
        .picture = image->picture,
        .sampling = { .what = WEIR_SAMPLE_ALL, .count = 1 },
        .max_frames = 1,
        .max_duration_ns = INT64_MAX,
        .max_bytes = UINT64_MAX,
        .allocator = image->allocator,
    };
    if (weir__picture_reader_init(&worker->reader, &worker->one, is_image_stopped, count_picture, worker) != WEIR_OK)
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    return WEIR_OK;
}

static void image_worker_free(void *self)
{
    image_worker *worker = self;
    weir__picture_reader_free(&worker->reader);
}

/* Decoders of still pictures conceal truncated data, and report that only in FFmpeg's log. */
static void note_damage(const image_worker *worker, weir_frames *frames)
{
    bool is_damaged = frames->num_corrupt_frames > 0 || worker->reader.log.num_errors > 0;
    frames->num_corrupt_frames = is_damaged;
    frames->num_missing_frames = 0;
    frames->cost.num_missing = 0;
    frames->cost.num_errors = frames->num_errors + is_damaged;
}

static int read_picture(image_worker *worker, const char *path, weir_frames **frames, weir_error *error)
{
    const weir_picture_request wanted = { .sampling = &worker->one.sampling, .picture = worker->one.picture };
    int rc = weir__picture_reader_open(&worker->reader, path, error);
    if (rc == WEIR_OK)
        rc = weir__picture_reader_ask(&worker->reader, &wanted, error);
    if (rc == WEIR_OK)
        rc = weir__picture_reader_chunk(&worker->reader, frames, error);
    if (rc != WEIR_OK)
        return rc;
    weir_frames *made = *frames;
    made->pts[0] = 0; /* a picture has no time */
    made->times_ns[0] = 0;
    made->cost.width = made->source_width; /* known only after decoding */
    made->cost.height = made->source_height;
    note_damage(worker, made);
    return WEIR_OK;
}

static int decode_picture(image_worker *worker, const char *path, weir_frames **frames, weir_error *error)
{
    const weir_image_config *image = weir_task_config(worker->task);
    weir_input *input = &worker->reader.decoder.input;
    int rc = WEIR_OK;
    if (!input->bytes) {
        AVIOInterruptCB asker = { .callback = interrupt_image, .opaque = worker };
        rc = weir__input_load(input, path, image->max_file_bytes, asker, &worker->loaded, error);
        input->bytes = worker->loaded;
    }
    if (rc == WEIR_OK)
        rc = read_picture(worker, path, frames, error);
    weir__cost_tell(worker->task, rc == WEIR_OK ? &(*frames)->cost : &worker->reader.decoder.cost);
    report_held(worker, rc == WEIR_OK ? (*frames)->memory_bytes : 0);
    weir__picture_reader_close(&worker->reader);
    weir_bytes_free(worker->loaded);
    worker->loaded = NULL;
    report_held(worker, 0);
    return rc;
}

static int image_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    image_worker *worker = self;
    const char *path = weir__input_choose(&worker->reader.decoder.input, in);
    const char *label = weir_task_label(task);
    weir_frames *frames = NULL;
    weir_error error = { 0 };

    worker->task = task;
    weir__picture_reader_enter(&worker->reader, label[0] ? label : path, path);
    int rc = weir__input_check_whole(in, &error);
    if (rc == WEIR_OK)
        rc = decode_picture(worker, path, &frames, &error);
    weir__picture_reader_leave(&worker->reader);
    if (rc != WEIR_OK)
        return weir_task_fail(task, rc, error.library_code, "%s", error.message);

    if (weir__input_give(in, true, &frames->entry, &frames->sidecars, &frames->memory_bytes) != WEIR_OK) {
        weir_frames_free(frames);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }
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
