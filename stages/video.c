/*
 * The video decode stage: decoder, scaler and result joined for one file after the other. A worker belongs to one slot,
 * so everything in it has one user at a time.
 */
#include <weir/video.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "decoder.h"
#include "ffmpeg.h"
#include "frames.h"
#include "scaler.h"
#include "video.h"

/* Beyond this swscale cannot count, and nobody wants it. */
enum { MAX_SIDE_PIXELS = INT16_MAX };

typedef struct video_worker {
    weir_decoder decoder;
    weir_scaler scaler;
    weir_ffmpeg_log log;
    weir_task *task; /* the one that runs */
} video_worker;

static int video_config_init(void *config, weir_error *error)
{
    weir_video_config *video = config;
    if (video->width > MAX_SIDE_PIXELS || video->height > MAX_SIDE_PIXELS)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "%" PRIu32 "×%" PRIu32 " is too large: at most %d pixels each way", video->width,
                              video->height, MAX_SIDE_PIXELS);
    if ((unsigned)video->resize > WEIR_RESIZE_CROP)
        return weir_error_set(error, WEIR_EINVAL, 0, "resize %d is none of WEIR_RESIZE_…", (int)video->resize);
    int rc = weir_scaler_check(video, error);
    if (rc != WEIR_OK)
        return rc;
    if (video->max_pixels == 0)
        video->max_pixels = UINT64_C(1) << 26;
    if (video->max_pixels > INT32_MAX)
        video->max_pixels = INT32_MAX; /* FFmpeg's own limit */
    if (video->max_bytes == 0)
        video->max_bytes = UINT64_C(8) << 30;
    if ((unsigned)video->input > WEIR_INPUT_BYTES)
        return weir_error_set(error, WEIR_EINVAL, 0, "input %d is none of WEIR_INPUT_…", (int)video->input);
    if (video->io_timeout_ns == 0)
        video->io_timeout_ns = WEIR_INPUT_TIMEOUT_NS;
    weir_ffmpeg_log_install();
    return WEIR_OK;
}

int weir_video_config_check(weir_video_config *video, weir_error *error)
{
    return video_config_init(video, error);
}

static bool task_should_stop(void *self)
{
    const video_worker *worker = self;
    return weir_task_should_stop(worker->task);
}

static int video_worker_init(void *self, const void *config, weir_task *task)
{
    video_worker *worker = self;
    const weir_video_config *video = config;
    worker->decoder = (weir_decoder){
        .should_stop = task_should_stop,
        .self = worker,
        .max_pixels = (int64_t)video->max_pixels,
        .input.timeout_ns = video->io_timeout_ns,
    };
    if (weir_decoder_init(&worker->decoder) != WEIR_OK) {
        weir_decoder_free(&worker->decoder);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }
    return WEIR_OK;
}

static void video_worker_free(void *self)
{
    video_worker *worker = self;
    weir_scaler_reset(&worker->scaler);
    weir_decoder_free(&worker->decoder);
}

void weir_video_describe(const weir_decoder *decoder, weir_frames *frames)
{
    frames->time_base_num = decoder->stream->time_base.num;
    frames->time_base_den = decoder->stream->time_base.den;
    frames->source_width = (uint32_t)decoder->frame->width;
    frames->source_height = (uint32_t)decoder->frame->height;
    snprintf(frames->codec, sizeof frames->codec, "%s", avcodec_get_name(decoder->codec->codec_id));
}

/* The first frame is there: its size may be the result's, and much else is known from here on. */
static int begin_result(video_worker *worker, const weir_video_config *video, weir_frames_builder *builder,
                        weir_error *error)
{
    const weir_decoder *decoder = &worker->decoder;
    const AVFrame *frame = decoder->frame;
    int width = video->width ? (int)video->width : frame->width;
    int height = video->height ? (int)video->height : frame->height;
    weir_scaler_set(&worker->scaler, video, width, height);
    int rc = weir_frames_begin(builder, video, (uint32_t)width, (uint32_t)height,
                               weir_decoder_estimate_frames(decoder), error);
    if (rc != WEIR_OK)
        return rc;

    weir_video_describe(decoder, builder->frames);
    return WEIR_OK;
}

bool weir_video_is_corrupt(const AVFrame *frame)
{
    return (frame->flags & AV_FRAME_FLAG_CORRUPT) || frame->decode_error_flags;
}

static int add_frame(video_worker *worker, const weir_video_config *video, weir_frames_builder *builder,
                     weir_error *error)
{
    const AVFrame *frame = worker->decoder.frame;
    int rc = builder->frames ? WEIR_OK : begin_result(worker, video, builder, error);
    if (rc != WEIR_OK)
        return rc;

    uint8_t *data;
    rc = weir_frames_next(builder, &data, error);
    if (rc == WEIR_OK)
        rc = weir_scaler_run(&worker->scaler, frame, data, error);
    if (rc != WEIR_OK)
        return rc;

    int64_t pts = frame->best_effort_timestamp;
    weir_frames_commit(builder, pts == AV_NOPTS_VALUE ? WEIR_PTS_UNKNOWN : pts);
    builder->frames->num_corrupt_frames += weir_video_is_corrupt(frame);
    weir_scaler_describe(&worker->scaler, builder->frames);
    return WEIR_OK;
}

static int fail_without_frames(const weir_decoder *decoder, weir_error *error)
{
    char what[96];
    snprintf(what, sizeof what, "no frame could be decoded, %" PRIu64 " damaged packet(s)", decoder->num_errors);
    if (decoder->first_averror)
        return weir_ffmpeg_error(error, decoder->first_averror, what);
    return weir_error_set(error, WEIR_EDATA, AVERROR_EOF, "no frame in it: the video stream is empty or cut off");
}

/* All frames of one file. */
static int decode_file(video_worker *worker, const char *path, weir_frames **frames, weir_error *error)
{
    const weir_video_config *video = weir_task_config(worker->task);
    weir_decoder *decoder = &worker->decoder;
    weir_frames_builder builder = { 0 };
    int rc = weir_decoder_open(decoder, path, error);
    while (rc == WEIR_OK) {
        rc = weir_decoder_next(decoder, error);
        if (rc == WEIR_OK)
            rc = add_frame(worker, video, &builder, error);
    }
    if (rc == WEIR_EOF)
        rc = builder.frames ? WEIR_OK : fail_without_frames(decoder, error);
    if (rc != WEIR_OK)
        goto fail;
    *frames = weir_frames_end(&builder);
    (*frames)->num_errors = decoder->num_errors;
    weir_decoder_close(decoder);
    return WEIR_OK;

fail:
    weir_frames_abort(&builder);
    weir_decoder_close(decoder);
    return rc;
}

static int video_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    video_worker *worker = self;
    const weir_video_config *video = weir_task_config(task);
    const char *path = weir_input_choose(&worker->decoder.input, video->input, in->data);
    const char *label = weir_task_label(task);
    weir_frames *frames = NULL;
    weir_error error = { 0 };
    if (!path)
        return weir_task_fail(task, WEIR_EINVAL, 0, "the item has no data: neither a path nor bytes");

    worker->task = task;
    weir_ffmpeg_log_begin(&worker->log, label[0] ? label : path);
    int rc = decode_file(worker, path, &frames, &error);
    weir_ffmpeg_log_end();
    if (rc != WEIR_OK)
        return weir_task_fail(task, rc, error.library_code, "%s", error.message);

    weir_input_take_sidecars(video->input, in->data, &frames->sidecars, &frames->memory_bytes);
    *out = (weir_item){ .data = frames, .release = weir_frames_free, .size_bytes = frames->memory_bytes };
    return WEIR_OK;
}

const weir_op weir_video_decode = {
    .name = "decode",
    .config_size = sizeof(weir_video_config),
    .config_init = video_config_init,
    .worker_size = sizeof(video_worker),
    .worker_init = video_worker_init,
    .run = video_run,
    .worker_free = video_worker_free,
};
