/*
 * A slot keeps the clips of its batch until the batch is complete, because its shape is known only then. Then each
 * picture is written once, from the decoder's memory to the tensor: the conversion is the copy. Decoding directly
 * into the tensor would need the shape before the first clip. It would save only a memcpy, less than 1 % of the
 * decoding (docs/scale.md).
 */
#include <weir/collate.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weir/item_part.h>
#include <weir/video.h>

#include "stages/batch/convert.h"
#include "stages/batch/crop.h"
#include "stages/batch/tensor.h"
#include "stages/memory/block_pool.h"
#include "stages/memory/column_values.h"
#include "stages/memory/pixel_rows.h"

/* A pending clip, and its crop. */
typedef struct collate_clip {
    weir_item item;
    weir_crop_area crop;
    uint64_t id;
} collate_clip;

typedef struct collate_worker {
    collate_clip *clips;
    size_t num_clips, max_clips;
    uint64_t clips_bytes;                         /* of the clips' items */
    uint32_t num_frames, width, height, channels; /* the largest of the clips */
    weir_pixel pixel;                             /* of each */
    uint32_t axis_clips;                          /* weir_frames.num_clips of each */

    /* buffers for one picture */
    uint8_t *resized, *row;
    size_t resized_bytes, row_bytes;
} collate_worker;

/* The shape of a batch and how it is filled. */
typedef struct collate_job {
    const weir_collate_config *config;
    collate_worker *worker;
    weir_collated *batch;
    uint32_t num_frames, width, height, channels;
    uint32_t axis_clips;  /* at least 1 */
    uint32_t axis_frames; /* num_frames / axis_clips */
    size_t value_bytes;
    size_t pixel_value_bytes;       /* of the frames */
    weir_conversion conversions[4]; /* of each channel, and of all interleaved */
} collate_job;

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static void set_shape(weir_collated *batch, const collate_job *job)
{
    int64_t n = job->axis_frames, h = job->height, w = job->width, c = job->channels;
    const int64_t shapes[][4] = { { n, h, w, c }, { n, c, h, w }, { c, n, h, w } };
    batch->num_frames = job->num_frames;
    batch->num_clips = job->worker->axis_clips;
    batch->num_dims = batch->num_clips ? 6 : 5;
    batch->shape[0] = (int64_t)batch->num_items;
    batch->shape[1] = batch->num_clips;
    memcpy(batch->shape + batch->num_dims - 4, shapes[batch->layout], sizeof shapes[0]);
}

static weir_collated *batch_new(const collate_job *job)
{
    size_t num_clips = job->worker->num_clips;
    weir_collated *batch = calloc(1, sizeof *batch);
    if (!batch)
        return NULL;
    batch->num_items = num_clips;
    batch->dtype = job->config->dtype;
    batch->layout = job->config->layout;
    batch->data_bytes = num_clips * job->num_frames * job->height * job->width * job->channels * job->value_bytes;
    batch->labels = calloc(num_clips, sizeof *batch->labels);
    batch->ids = calloc(num_clips, sizeof *batch->ids);
    batch->sizes = calloc(num_clips, 3 * sizeof *batch->sizes);
    batch->mask = calloc(num_clips, job->num_frames);
    batch->names = calloc(num_clips, sizeof *batch->names);
    batch->valid = calloc(num_clips, sizeof *batch->valid);
    batch->block = weir__block_get(job->config->allocator, batch->data_bytes);
    if (!batch->labels || !batch->ids || !batch->sizes || !batch->mask || !batch->names || !batch->valid ||
        !batch->block) {
        weir_collated_free(batch);
        return NULL;
    }
    batch->data = batch->block->data;
    batch->memory = weir_allocator_memory(job->config->allocator);
    set_shape(batch, job);
    return batch;
}

/* ---- filling ----------------------------------------------------------------------------------------------------- */

/* A picture to convert: rows of interleaved or planar bytes. */
typedef struct picture {
    const uint8_t *data;
    size_t row_stride, plane_stride; /* plane_stride 0 = interleaved */
    uint32_t width, height;
} picture;

static bool is_planar(const weir_frames *frames)
{
    return frames->layout == WEIR_LAYOUT_NCHW && frames->channels > 1;
}

static picture view_frame(const weir_frames *frames, uint32_t frame, const weir_crop_area *crop)
{
    size_t pixel_bytes = weir_pixel_value_bytes(frames->pixel) * (is_planar(frames) ? 1 : frames->channels);
    size_t row_stride = frames->width * pixel_bytes;
    return (picture){
        .data = frames->data + frame * frames->frame_bytes + crop->y * row_stride + crop->x * pixel_bytes,
        .row_stride = row_stride,
        .plane_stride = is_planar(frames) ? row_stride * frames->height : 0,
        .width = crop->width,
        .height = crop->height,
    };
}

static void resize_picture(const collate_job *job, const weir_taps *across, const weir_taps *down, picture *from)
{
    collate_worker *worker = job->worker;
    bool planar = from->plane_stride > 0;
    unsigned row_channels = planar ? 1 : job->channels;
    size_t row_stride = (size_t)across->num_outputs * row_channels * job->pixel_value_bytes;
    size_t plane_bytes = row_stride * down->num_outputs;
    for (uint32_t p = 0; p < (planar ? job->channels : 1); p++)
        weir__crop_resize(across, down, from->data + p * from->plane_stride, from->row_stride, from->width,
                          row_channels, job->pixel_value_bytes, worker->resized + p * plane_bytes, worker->row);
    *from = (picture){ .data = worker->resized,
                       .row_stride = row_stride,
                       .plane_stride = planar ? plane_bytes : 0,
                       .width = across->num_outputs,
                       .height = down->num_outputs };
}

static void mirror_row(uint8_t *row, uint32_t width, size_t pixel_bytes)
{
    for (uint32_t left = 0, right = width - 1; left < right; left++, right--)
        for (size_t c = 0; c < pixel_bytes; c++) {
            uint8_t kept = row[left * pixel_bytes + c];
            row[left * pixel_bytes + c] = row[right * pixel_bytes + c];
            row[right * pixel_bytes + c] = kept;
        }
}

/* The index of that value in the tensor. */
static uint8_t *row_address(const collate_job *job, size_t clip, size_t frame, size_t channel, size_t row)
{
    size_t n = job->axis_frames, h = job->height, w = job->width, c = job->channels;
    size_t value = 0;
    clip = clip * job->axis_clips + frame / n;
    frame %= n;
    switch (job->batch->layout) {
    case WEIR_COLLATE_NHWC: value = (((clip * n + frame) * h + row) * w) * c + channel; break;
    case WEIR_COLLATE_NCHW: value = (((clip * n + frame) * c + channel) * h + row) * w; break;
    case WEIR_COLLATE_TIME_SECOND: value = (((clip * c + channel) * n + frame) * h + row) * w; break;
    }
    return (uint8_t *)job->batch->data + value * job->value_bytes;
}

/* Rows that need neither flip nor transposition: as few conversions as possible. */
static void write_straight(const collate_job *job, size_t clip, uint32_t frame, const picture *from)
{
    bool planar = from->plane_stride > 0;
    uint32_t row_channels = planar ? 1 : job->channels;
    size_t row_values = (size_t)from->width * row_channels;
    bool is_dense = from->width == job->width && from->row_stride == row_values * job->pixel_value_bytes;
    for (uint32_t p = 0; p < (planar ? job->channels : 1); p++) {
        const weir_conversion *conversion = &job->conversions[planar || job->channels == 1 ? p : 3];
        for (uint32_t y = 0; y < (is_dense ? 1 : from->height); y++)
            weir__convert(conversion, row_address(job, clip, frame, p, y),
                          from->data + p * from->plane_stride + y * from->row_stride,
                          is_dense ? row_values * from->height : row_values);
    }
}

/* Writes a row to worker->row, in the tensor's layout: planes one after the other, or interleaved. */
static void fetch_row(const collate_job *job, const picture *from, uint32_t y, bool to_planar, bool is_flipped)
{
    uint8_t *row = job->worker->row;
    size_t width = from->width, value_bytes = job->pixel_value_bytes, plane_bytes = width * value_bytes;
    const uint8_t *data = from->data + y * from->row_stride;
    bool planar = from->plane_stride > 0;
    if (planar && !to_planar)
        weir__rows_join(data, data + from->plane_stride, data + 2 * from->plane_stride, row, (int)width, value_bytes);
    else if (!planar && to_planar)
        weir__rows_split(data, row, row + plane_bytes, row + 2 * plane_bytes, (int)width, value_bytes);
    else
        for (uint32_t p = 0; p < (planar ? job->channels : 1); p++)
            memcpy(row + p * plane_bytes, data + p * from->plane_stride, plane_bytes * (planar ? 1 : job->channels));
    if (is_flipped)
        for (uint32_t p = 0; p < (to_planar ? job->channels : 1); p++)
            mirror_row(row + p * plane_bytes, from->width, value_bytes * (to_planar ? 1 : job->channels));
}

static void write_rows(const collate_job *job, size_t clip, uint32_t frame, const picture *from, bool is_flipped)
{
    bool to_planar = job->batch->layout != WEIR_COLLATE_NHWC && job->channels > 1;
    for (uint32_t y = 0; y < from->height; y++) {
        fetch_row(job, from, y, to_planar, is_flipped);
        for (uint32_t p = 0; p < (to_planar ? job->channels : 1); p++)
            weir__convert(&job->conversions[to_planar || job->channels == 1 ? p : 3],
                          row_address(job, clip, frame, p, y),
                          job->worker->row + (size_t)p * from->width * job->pixel_value_bytes,
                          (size_t)from->width * (to_planar ? 1 : job->channels));
    }
}

/* Fills the padding with (normalised) black: after the last frame, and right of and below smaller pictures. */
static void write_padding(const collate_job *job, size_t clip, uint32_t frame, uint32_t width, uint32_t height)
{
    bool to_planar = job->batch->layout != WEIR_COLLATE_NHWC && job->channels > 1;
    uint32_t row_channels = to_planar ? 1 : job->channels;
    memset(job->worker->row, 0, (size_t)job->width * row_channels * job->pixel_value_bytes);
    for (uint32_t p = 0; p < (to_planar ? job->channels : 1); p++)
        for (uint32_t y = 0; y < job->height; y++) {
            uint32_t start = y < height ? width : 0;
            size_t num_values = (size_t)(job->width - start) * row_channels;
            if (num_values)
                weir__convert(&job->conversions[to_planar || job->channels == 1 ? p : 3],
                              row_address(job, clip, frame, p, y) + (size_t)start * row_channels * job->value_bytes,
                              job->worker->row, num_values);
        }
}

static int write_clip(const collate_job *job, size_t at)
{
    const collate_clip *clip = &job->worker->clips[at];
    const weir_frames *frames = clip->item.data;
    weir_taps across = { 0 }, down = { 0 };
    bool is_resized = job->config->crop == WEIR_CROP_RESIZED;
    int rc = WEIR_OK;
    if (is_resized)
        rc = weir__taps_make(&across, clip->crop.width, job->config->crop_width);
    if (is_resized && rc == WEIR_OK)
        rc = weir__taps_make(&down, clip->crop.height, job->config->crop_height);
    bool to_planar = job->batch->layout != WEIR_COLLATE_NHWC && job->channels > 1;
    bool is_straight = !clip->crop.is_flipped && (job->channels == 1 || is_planar(frames) == to_planar);
    uint32_t own_frames = frames->num_frames / job->axis_clips; /* of each of its clips */
    for (uint32_t frame = 0; rc == WEIR_OK && frame < job->num_frames; frame++) {
        picture from = { 0 };
        uint32_t step = frame % job->axis_frames;
        if (step < own_frames) {
            uint32_t own_frame = frame / job->axis_frames * own_frames + step;
            from = view_frame(frames, own_frame, &clip->crop);
            if (is_resized)
                resize_picture(job, &across, &down, &from);
            if (is_straight)
                write_straight(job, at, frame, &from);
            else
                write_rows(job, at, frame, &from, clip->crop.is_flipped);
            job->batch->mask[at * job->num_frames + frame] = frames->mask ? frames->mask[own_frame] : 1;
        }
        if (from.width < job->width || from.height < job->height)
            write_padding(job, at, frame, from.width, from.height);
    }
    weir__taps_free(&across);
    weir__taps_free(&down);
    return rc;
}

static int describe_clip(weir_collated *batch, size_t at, const collate_job *job)
{
    const collate_clip *clip = &job->worker->clips[at];
    const weir_frames *frames = clip->item.data;
    bool is_resized = job->config->crop == WEIR_CROP_RESIZED;
    batch->labels[at] = frames->entry ? frames->entry->class_id : -1;
    batch->ids[at] = (int64_t)clip->id;
    batch->valid[at] = !(frames->entry && frames->entry->stands_in);
    batch->sizes[3 * at] = (int32_t)frames->num_frames;
    batch->sizes[3 * at + 1] = (int32_t)(is_resized ? job->config->crop_height : clip->crop.height);
    batch->sizes[3 * at + 2] = (int32_t)(is_resized ? job->config->crop_width : clip->crop.width);
    batch->epoch = frames->entry ? frames->entry->epoch : clip->item.epoch;
    batch->names[at] = strdup(clip->item.label ? clip->item.label : "");
    return batch->names[at] ? WEIR_OK : WEIR_ENOMEM;
}

/* Allocates the largest row, and a resized picture. */
static int reserve_rows(collate_worker *worker, const collate_job *job)
{
    size_t row_bytes = 0;
    for (size_t i = 0; i < worker->num_clips; i++)
        row_bytes = worker->clips[i].crop.width > row_bytes ? worker->clips[i].crop.width : row_bytes;
    row_bytes = (row_bytes > job->width ? row_bytes : job->width) * job->channels * job->pixel_value_bytes;
    size_t resized_bytes = (size_t)job->width * job->height * job->channels * job->pixel_value_bytes;
    if (row_bytes > worker->row_bytes) {
        free(worker->row);
        worker->row = malloc(row_bytes);
        worker->row_bytes = worker->row ? row_bytes : 0;
    }
    if (job->config->crop == WEIR_CROP_RESIZED && resized_bytes > worker->resized_bytes) {
        free(worker->resized);
        worker->resized = malloc(resized_bytes);
        worker->resized_bytes = worker->resized ? resized_bytes : 0;
    }
    bool has_resized = worker->resized || job->config->crop != WEIR_CROP_RESIZED;
    return worker->row && has_resized ? WEIR_OK : WEIR_ENOMEM;
}

static void drop_clips(collate_worker *worker)
{
    for (size_t i = 0; i < worker->num_clips; i++)
        weir_item_release(&worker->clips[i].item);
    worker->num_clips = 0;
    worker->clips_bytes = 0;
    worker->num_frames = worker->width = worker->height = worker->channels = worker->axis_clips = 0;
}

/* result_bytes: of a batch that is not passed on yet. Free blocks of the allocator are for all slots. */
static void report_held(const collate_worker *worker, uint64_t result_bytes, weir_task *task)
{
    const weir_collate_config *config = weir_task_config(task);
    uint64_t bytes = worker->max_clips * sizeof *worker->clips + worker->resized_bytes + worker->row_bytes;
    weir_task_set_held(task, WEIR_HOLDER_WORKER, bytes + worker->clips_bytes + result_bytes);
    weir_task_set_held(task, WEIR_HOLDER_STAGE, weir__allocator_free_bytes(config->allocator));
}

/* How much of the batch is padding; also reported as bytes of the task. */
static void tell_padding(const collate_job *job, weir_task *task)
{
    static const weir_part_info padding = { "padding", WEIR_PART_BYTES, "bytes", "of the batch that is padding" };
    weir_collated *batch = job->batch;
    double num_used = 0, num_all = (double)batch->num_items * job->num_frames * job->height * job->width;
    for (size_t i = 0; i < batch->num_items; i++)
        num_used += (double)batch->sizes[3 * i] * batch->sizes[3 * i + 1] * batch->sizes[3 * i + 2];
    batch->padding = num_all > 0 ? 1 - num_used / num_all : 0;
    weir_task_set_part(task, &padding, (int64_t)(batch->padding * (double)batch->data_bytes));
}

/* The user's columns. */
static int gather_columns(weir_collated *batch, const collate_worker *worker, weir_error *error)
{
    const weir_value **values = calloc(worker->num_clips, sizeof *values);
    size_t *num_values = calloc(worker->num_clips, sizeof *num_values);
    int rc = values && num_values ? WEIR_OK : WEIR_ENOMEM;
    for (size_t i = 0; rc == WEIR_OK && i < worker->num_clips; i++) {
        const weir_entry *entry = ((const weir_frames *)worker->clips[i].item.data)->entry;
        values[i] = entry ? entry->values : NULL;
        num_values[i] = entry ? entry->num_values : 0;
    }
    if (rc == WEIR_OK)
        rc =
            weir__columns_of_rows(values, num_values, worker->num_clips, &batch->columns, &batch->num_columns, error);
    free(values);
    free(num_values);
    return rc;
}

/* Makes a batch in `out` of the clips; there is at least one. */
static int pass_collated(collate_worker *worker, weir_item *out, weir_task *task)
{
    collate_job job = {
        .config = weir_task_config(task),
        .worker = worker,
        .num_frames = worker->num_frames,
        .width = worker->width,
        .height = worker->height,
        .channels = worker->channels,
        .axis_clips = larger(worker->axis_clips, 1),
    };
    job.axis_frames = job.num_frames / job.axis_clips;
    job.value_bytes = weir_dtype_bytes(job.config->dtype);
    job.pixel_value_bytes = weir_pixel_value_bytes(worker->pixel);
    for (int c = 0; c < 4; c++)
        job.conversions[c] = weir__conversion_make(job.config->dtype, worker->pixel, job.config->mean,
                                                   job.config->std, c < 3 ? c : -1);
    job.batch = reserve_rows(worker, &job) == WEIR_OK ? batch_new(&job) : NULL;
    weir_error error = { 0 };
    report_held(worker, job.batch ? job.batch->data_bytes : 0, task);
    int rc = job.batch ? gather_columns(job.batch, worker, &error) : WEIR_ENOMEM;
    for (size_t i = 0; rc == WEIR_OK && i < worker->num_clips; i++) {
        rc = describe_clip(job.batch, i, &job);
        if (rc == WEIR_OK)
            rc = write_clip(&job, i);
        weir_item *clip = &worker->clips[i].item; /* its label is still needed */
        if (clip->release)
            clip->release(clip->data, clip->release_self);
        clip->data = NULL;
    }
    size_t num_clips = worker->num_clips;
    *out = (weir_item){ 0 };
    if (rc == WEIR_OK)
        weir_item_copy_label(out, &worker->clips[num_clips - 1].item);
    drop_clips(worker);
    if (rc != WEIR_OK) {
        weir_collated_free(job.batch);
        return error.status ? weir_task_fail(task, rc, 0, "%s", error.message)
                            : weir_task_fail(task, rc, 0, "no memory for a batch of %zu clips", num_clips);
    }
    tell_padding(&job, task);
    out->data = job.batch;
    out->release = weir_collated_release;
    out->size_bytes = job.batch->data_bytes;
    return WEIR_OK;
}

/* ---- the operation ---------------------------------------------------------------------------------------------- */

static int collate_config_init(void *self, weir_error *error)
{
    weir_collate_config *config = self;
    if (config->num_items == 0 && config->max_frames == 0 && config->max_bytes == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "set num_items, max_frames or max_bytes: a batch has no limit");
    if ((unsigned)config->dtype > WEIR_DTYPE_UINT16 || (unsigned)config->layout > WEIR_COLLATE_TIME_SECOND)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "dtype or layout is not a value of its enum; see weir/collate.h");
    int rc = weir__crop_check(config, error);
    if (rc == WEIR_OK)
        rc = weir__allocator_use(config->allocator, "collate", error);
    if (rc != WEIR_OK)
        return rc;
    if (!config->allocator)
        config->allocator = weir__allocator_default();
    return config->allocator ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

static void collate_config_free(void *self)
{
    weir_collate_config *config = self;
    weir_allocator_free(config->allocator);
}

/* Would this clip exceed the limits of the batch? */
static bool would_overflow(const collate_worker *worker, const weir_collate_config *config, uint32_t num_frames,
                           uint32_t width, uint32_t height)
{
    uint64_t all_frames = (uint64_t)(worker->num_clips + 1) * larger(worker->num_frames, num_frames);
    uint64_t frame_bytes = (uint64_t)larger(worker->width, width) * larger(worker->height, height) *
                           worker->channels * weir_dtype_bytes(config->dtype);
    return worker->num_clips > 0 && ((config->max_frames && all_frames > config->max_frames) ||
                                     (config->max_bytes && all_frames * frame_bytes > config->max_bytes));
}

/* Integers are as decoded: they are not made of values of another size. */
static bool can_become(const weir_frames *frames, weir_dtype dtype)
{
    size_t value_bytes = weir_pixel_value_bytes(frames->pixel);
    return (dtype != WEIR_DTYPE_UINT8 && dtype != WEIR_DTYPE_UINT16) || weir_dtype_bytes(dtype) == value_bytes;
}

static int check_clip(const collate_worker *worker, const weir_frames *frames, weir_task *task)
{
    const weir_collate_config *config = weir_task_config(task);
    weir_error error = { 0 };
    if (weir_memory_check(frames->memory, "collate", &error) != WEIR_OK)
        return weir_task_fail(task, error.status, 0, "%s", error.message);
    if (frames->channels == 0)
        return weir_task_fail(task, WEIR_EUNSUPPORTED, 0, "YUV cannot be collated: decode to RGB or gray");
    if (!can_become(frames, config->dtype))
        return weir_task_fail(task, WEIR_EUNSUPPORTED, 0,
                              "pixels of %zu bits cannot become %s: choose the type of their size, or floats",
                              8 * weir_pixel_value_bytes(frames->pixel),
                              config->dtype == WEIR_DTYPE_UINT8 ? "WEIR_DTYPE_UINT8" : "WEIR_DTYPE_UINT16");
    if (worker->num_clips > 0 && frames->channels != worker->channels)
        return weir_task_fail(task, WEIR_EINVAL, 0, "%" PRIu32 " channels do not fit into a batch with %" PRIu32,
                              frames->channels, worker->channels);
    if (worker->num_clips > 0 && frames->pixel != worker->pixel)
        return weir_task_fail(task, WEIR_EINVAL, 0, "a batch has pixels of one kind: %zu bits do not fit to %zu",
                              8 * weir_pixel_value_bytes(frames->pixel), 8 * weir_pixel_value_bytes(worker->pixel));
    if (worker->num_clips > 0 && frames->num_clips != worker->axis_clips)
        return weir_task_fail(task, WEIR_EINVAL, 0, "%" PRIu32 " clips do not fit into a batch with %" PRIu32,
                              frames->num_clips, worker->axis_clips);
    return WEIR_OK;
}

static int grow_batch(collate_worker *worker)
{
    if (worker->num_clips < worker->max_clips)
        return WEIR_OK;
    size_t max_clips = worker->max_clips ? worker->max_clips * 2 : 32;
    collate_clip *clips = realloc(worker->clips, max_clips * sizeof *clips);
    if (!clips)
        return WEIR_ENOMEM;
    worker->clips = clips;
    worker->max_clips = max_clips;
    return WEIR_OK;
}

static int collate_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    collate_worker *worker = self;
    const weir_collate_config *config = weir_task_config(task);
    const weir_frames *frames = in->data;
    weir_error error = { 0 };
    collate_clip clip = { .id = frames->entry ? frames->entry->number : in->seq };
    uint64_t epoch = frames->entry ? frames->entry->epoch : in->epoch;
    int rc = check_clip(worker, frames, task);
    if (rc != WEIR_OK)
        return rc;
    rc = weir__crop_draw(config, frames->width, frames->height, epoch, clip.id, &clip.crop, &error);
    if (rc != WEIR_OK)
        return weir_task_fail(task, rc, 0, "%s", error.message);

    uint32_t width = config->crop_width ? config->crop_width : frames->width;
    uint32_t height = config->crop_height ? config->crop_height : frames->height;
    uint32_t num_frames = frames->num_frames;
    uint32_t channels = frames->channels;
    if (would_overflow(worker, config, num_frames, width, height))
        rc = pass_collated(worker, out, task);
    if (rc == WEIR_OK && grow_batch(worker) != WEIR_OK)
        rc = weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    if (rc != WEIR_OK)
        return rc;
    weir_item_keep(&clip.item, in);
    worker->clips_bytes += clip.item.size_bytes;
    worker->clips[worker->num_clips++] = clip;
    worker->num_frames = larger(worker->num_frames, num_frames);
    worker->width = larger(worker->width, width);
    worker->height = larger(worker->height, height);
    worker->channels = channels;
    worker->pixel = frames->pixel;
    worker->axis_clips = frames->num_clips;
    rc = out->data ? WEIR_OK : WEIR_KEPT;
    if (!out->data && config->num_items && worker->num_clips == config->num_items)
        rc = pass_collated(worker, out, task);
    report_held(worker, 0, task);
    return rc;
}

static int collate_flush(void *self, weir_item *out, weir_task *task)
{
    collate_worker *worker = self;
    const weir_collate_config *config = weir_task_config(task);
    int rc = worker->num_clips > 0 && !config->drop_last ? pass_collated(worker, out, task) : WEIR_SKIP;
    drop_clips(worker);
    report_held(worker, 0, task);
    return rc;
}

static void collate_worker_free(void *self)
{
    collate_worker *worker = self;
    drop_clips(worker);
    free(worker->clips);
    free(worker->resized);
    free(worker->row);
}

const weir_op weir_collate = {
    .name = "collate",
    .takes = WEIR_TYPE_FRAMES,
    .makes = WEIR_TYPE_COLLATED,
    .config_size = sizeof(weir_collate_config),
    .config_init = collate_config_init,
    .config_free = collate_config_free,
    .worker_size = sizeof(collate_worker),
    .run = collate_run,
    .flush = collate_flush,
    .worker_free = collate_worker_free,
};
