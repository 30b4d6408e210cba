/*
 * The video decode stage: decoder, scaler and result joined for one file after the other. A worker belongs to one slot,
 * so everything in it has one user at a time.
 */
#include <weir/video.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder.h"
#include "ffmpeg.h"
#include "frames.h"
#include "reader.h"
#include "scaler.h"
#include "video.h"

/* Beyond this swscale cannot count, and nobody wants it. */
enum { MAX_SIDE_PIXELS = INT16_MAX };

/* Where frames are chosen. Of packets that are kept: a minute of video of these days. To read over a megabyte costs less
   than most containers' seeking. */
enum { MAX_CACHED_BYTES = 16 << 20, FAR_BYTES = 1 << 20 };

typedef struct video_worker {
    weir_decoder decoder;
    weir_reader reader;
    weir_scaler scaler;
    weir_ffmpeg_log log;
    weir_task *task; /* the one that runs */

    /* of the item that is in work; between the pieces of it, too */
    weir_item input;
    const char *path; /* what to open and to call it by */
    bool is_between;  /* pieces have come, and more are to come */
    int width;        /* of its pictures; 0 = none yet */
    int height;
    uint64_t num_done;    /* frames in the pieces so far */
    unsigned num_pending; /* so many times more the reader's frame is in the result */
    bool is_repeat;       /* it is also what the piece's last frame was made of */
} video_worker;

static int sampling_config_init(weir_video_config *video, weir_error *error)
{
    bool is_list = video->sampling.what == WEIR_SAMPLE_INDICES || video->sampling.what == WEIR_SAMPLE_TIMES;
    if ((unsigned)video->damage > WEIR_DAMAGE_STRICT)
        return weir_error_set(error, WEIR_EINVAL, 0, "damage %d is none of WEIR_DAMAGE_…", (int)video->damage);
    if (!(video->min_share >= 0 && video->min_share <= 1))
        return weir_error_set(error, WEIR_EINVAL, 0, "min_share %g is not between 0 and 1", video->min_share);
    if (video->max_duration_ns < 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "max_duration_ns is negative; use 0 for any");
    if (video->piece_frames && is_list)
        return weir_error_set(error, WEIR_EINVAL, 0, "explicit indices or times are not handed on in pieces");
    if (video->max_frames == 0)
        video->max_frames = UINT64_C(1) << 22;
    if (video->max_duration_ns == 0)
        video->max_duration_ns = INT64_MAX;
    return weir_sampling_init(&video->sampling, error);
}

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
    rc = sampling_config_init(video, error);
    if (rc == WEIR_OK)
        weir_ffmpeg_log_install();
    return rc;
}

static void video_config_free(void *config)
{
    weir_video_config *video = config;
    weir_sampling_free(&video->sampling);
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
    worker->reader = (weir_reader){
        .decoder = &worker->decoder,
        .sampling = &video->sampling,
        .seed = video->seed,
        .max_frames = video->max_frames,
        .max_duration_ns = video->max_duration_ns,
        .max_cached_bytes = MAX_CACHED_BYTES,
        .far_bytes = FAR_BYTES,
    };
    return WEIR_OK;
}

static void end_item(video_worker *worker)
{
    weir_reader_close(&worker->reader);
    weir_item_release(&worker->input);
    worker->is_between = false;
    worker->width = 0;
    worker->height = 0;
    worker->num_done = 0;
    worker->num_pending = 0;
}

static void video_worker_free(void *self)
{
    video_worker *worker = self;
    end_item(worker);
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

static uint64_t expected_frames(const video_worker *worker, const weir_video_config *video)
{
    uint64_t num_frames = weir_reader_estimate_frames(&worker->reader);
    return video->piece_frames && video->piece_frames < num_frames ? video->piece_frames : num_frames;
}

/* The first frame is there: its size may be the result's, and much else is known from here on. */
static int begin_result(video_worker *worker, const weir_video_config *video, weir_frames_builder *builder,
                        weir_error *error)
{
    const weir_decoder *decoder = &worker->decoder;
    const AVFrame *frame = decoder->frame;
    if (worker->width == 0) {
        worker->width = video->width ? (int)video->width : frame->width;
        worker->height = video->height ? (int)video->height : frame->height;
    }
    weir_scaler_set(&worker->scaler, video, worker->width, worker->height);
    int rc = weir_frames_begin(builder, video, (uint32_t)worker->width, (uint32_t)worker->height,
                               expected_frames(worker, video), error);
    if (rc != WEIR_OK)
        return rc;

    weir_video_describe(decoder, builder->frames);
    return WEIR_OK;
}

bool weir_video_is_corrupt(const AVFrame *frame)
{
    return (frame->flags & AV_FRAME_FLAG_CORRUPT) || frame->decode_error_flags;
}

static int64_t pts_of(const video_worker *worker)
{
    int64_t pts = weir_reader_pts(&worker->reader);
    return pts == AV_NOPTS_VALUE ? WEIR_PTS_UNKNOWN : pts;
}

/* The frame once more: what was made of it is copied. */
static int repeat_frame(const video_worker *worker, weir_frames_builder *builder, weir_error *error)
{
    uint8_t *data;
    int rc = weir_frames_next(builder, &data, error);
    if (rc != WEIR_OK)
        return rc;
    memcpy(data, data - builder->frame_bytes, builder->frame_bytes);
    weir_frames_commit(builder, pts_of(worker));
    builder->frames->num_corrupt_frames += weir_video_is_corrupt(worker->decoder.frame);
    return WEIR_OK;
}

static int add_frame(video_worker *worker, const weir_video_config *video, weir_frames_builder *builder,
                     weir_error *error)
{
    const AVFrame *frame = worker->decoder.frame;
    if (worker->is_repeat)
        return repeat_frame(worker, builder, error);
    int rc = builder->frames ? WEIR_OK : begin_result(worker, video, builder, error);
    if (rc != WEIR_OK)
        return rc;

    uint8_t *data;
    rc = weir_frames_next(builder, &data, error);
    if (rc == WEIR_OK)
        rc = weir_scaler_run(&worker->scaler, frame, data, error);
    if (rc != WEIR_OK)
        return rc;

    weir_frames_commit(builder, pts_of(worker));
    builder->frames->num_corrupt_frames += weir_video_is_corrupt(frame);
    weir_scaler_describe(&worker->scaler, builder->frames);
    worker->is_repeat = true;
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

static int check_strictly(const video_worker *worker, bool has_frame, weir_error *error)
{
    const weir_decoder *decoder = &worker->decoder;
    if (decoder->num_errors > 0) {
        char what[96];
        snprintf(what, sizeof what, "damage is not tolerated: %" PRIu64 " damaged packet(s)", decoder->num_errors);
        return weir_ffmpeg_error(error, decoder->first_averror, what);
    }
    if (has_frame && weir_video_is_corrupt(decoder->frame))
        return weir_error_set(error, WEIR_EDATA, 0, "damage is not tolerated: a frame had to be patched up");
    if (worker->reader.num_missing > 0)
        return weir_error_set(error, WEIR_EDATA, 0, "damage is not tolerated: %" PRIu64 " frame(s) are missing",
                              worker->reader.num_missing);
    return WEIR_OK;
}

/* The next frame, in decoder->frame, to be added num_pending times. WEIR_EOF: there are no more. */
static int next_frame(video_worker *worker, const weir_video_config *video, weir_error *error)
{
    int rc = weir_reader_next(&worker->reader, error);
    if (video->damage == WEIR_DAMAGE_STRICT && (rc == WEIR_OK || rc == WEIR_EOF)) {
        int strict = check_strictly(worker, rc == WEIR_OK, error);
        rc = strict == WEIR_OK ? rc : strict;
    }
    if (rc == WEIR_OK) {
        worker->num_pending = worker->reader.num_repeats;
        worker->is_repeat = false;
    }
    return rc;
}

/* All that came has come. Is it enough of what was asked for? */
static int check_share(const video_worker *worker, const weir_video_config *video, uint64_t num_frames,
                       weir_error *error)
{
    uint64_t expected = num_frames + worker->reader.num_missing;
    int64_t counted = worker->decoder.stream->nb_frames;
    if (weir_sampling_is_plain(&video->sampling) && counted > 0) {
        expected = (uint64_t)counted;
        if (video->sampling.count && video->sampling.count < expected)
            expected = video->sampling.count;
    }
    if (num_frames > 0 && (double)num_frames >= video->min_share * (double)expected)
        return WEIR_OK;
    if (num_frames == 0)
        return fail_without_frames(&worker->decoder, error);
    return weir_error_set(error, WEIR_EDATA, worker->decoder.first_averror,
                          "only %" PRIu64 " of %" PRIu64 " frames could be decoded, min_share is %g", num_frames,
                          expected, video->min_share);
}

/* The next piece into the builder. WEIR_OK: it is the last one. WEIR_MORE: it is not. */
static int fill_piece(video_worker *worker, const weir_video_config *video, weir_frames_builder *builder,
                      weir_error *error)
{
    uint32_t num_frames = 0;
    worker->is_repeat = false;
    for (;;) {
        int rc = worker->num_pending ? WEIR_OK : next_frame(worker, video, error);
        if (rc == WEIR_EOF)
            return check_share(worker, video, worker->num_done + num_frames, error);
        if (rc == WEIR_OK && video->piece_frames && num_frames == video->piece_frames)
            return WEIR_MORE;
        if (rc == WEIR_OK)
            rc = add_frame(worker, video, builder, error);
        if (rc != WEIR_OK)
            return rc;
        worker->num_pending--;
        num_frames++;
    }
}

/* Brings the frames into the order that was asked for: each cycle of places is turned by one, with one spare frame. */
static int arrange(const video_worker *worker, const weir_frames_builder *builder, weir_error *error)
{
    weir_frames *frames = builder->frames;
    size_t frame_bytes = builder->frame_bytes;
    size_t *from;
    int rc = weir_reader_order(&worker->reader, frames->num_frames, &from);
    if (rc == WEIR_OK && !from)
        return WEIR_OK;
    uint8_t *spare = rc == WEIR_OK ? malloc(frame_bytes) : NULL;
    for (size_t i = 0; spare && i < frames->num_frames; i++) {
        size_t to = i;
        int64_t pts = frames->pts[i];
        memcpy(spare, frames->data + i * frame_bytes, frame_bytes);
        while (from[to] != i) {
            size_t next = from[to];
            memmove(frames->data + to * frame_bytes, frames->data + next * frame_bytes, frame_bytes);
            frames->pts[to] = frames->pts[next];
            from[to] = to;
            to = next;
        }
        memcpy(frames->data + to * frame_bytes, spare, frame_bytes);
        frames->pts[to] = pts;
        from[to] = to;
    }
    bool is_done = spare;
    free(from);
    free(spare);
    return is_done ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

/* One piece, or the whole. WEIR_OK: the item is done. WEIR_MORE: there are more pieces. */
static int make_piece(video_worker *worker, const weir_video_config *video, weir_frames **frames, weir_error *error)
{
    weir_frames_builder builder = { 0 };
    int rc = fill_piece(worker, video, &builder, error);
    int arranged = rc == WEIR_OK ? arrange(worker, &builder, error) : WEIR_OK;
    rc = arranged == WEIR_OK ? rc : arranged;
    if (rc < 0) {
        weir_frames_abort(&builder);
        return rc;
    }
    weir_frames *piece = weir_frames_end(&builder);
    piece->num_errors = worker->decoder.num_errors;
    piece->num_missing_frames = worker->reader.num_missing;
    piece->first_frame = worker->num_done;
    piece->is_last_piece = rc == WEIR_OK;
    worker->num_done += piece->num_frames;
    *frames = piece;
    return rc;
}

/* A new item has its data in it; between the pieces of one its data is with the worker. */
static bool is_new(const video_worker *worker, const weir_item *in)
{
    return in->data || !worker->is_between;
}

static int take_item(video_worker *worker, weir_item *in)
{
    const weir_video_config *video = weir_task_config(worker->task);
    end_item(worker);
    worker->path = weir_input_choose(&worker->decoder.input, video->input, in->data);
    if (!worker->path)
        return weir_task_fail(worker->task, WEIR_EINVAL, 0, "the item has no data: neither a path nor bytes");
    weir_item_move(&worker->input, in);
    return WEIR_OK;
}

static void hand_on(video_worker *worker, const weir_video_config *video, weir_frames *frames, weir_item *out)
{
    if (frames->is_last_piece)
        weir_input_take_sidecars(video->input, worker->input.data, &frames->sidecars, &frames->memory_bytes);
    *out = (weir_item){ .data = frames, .release = weir_frames_free, .size_bytes = frames->memory_bytes };
}

static int video_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    video_worker *worker = self;
    const weir_video_config *video = weir_task_config(task);
    const char *label = weir_task_label(task);
    bool is_first = is_new(worker, in);
    weir_frames *frames = NULL;
    weir_error error = { 0 };
    worker->task = task;
    int rc = is_first ? take_item(worker, in) : WEIR_OK;
    if (rc != WEIR_OK)
        return rc;

    weir_ffmpeg_log_begin(&worker->log, label[0] ? label : worker->path);
    if (is_first)
        rc = weir_reader_open(&worker->reader, worker->path, weir_task_seq(task), &error);
    if (rc == WEIR_OK)
        rc = make_piece(worker, video, &frames, &error);
    weir_ffmpeg_log_end();
    if (rc < 0)
        rc = weir_task_fail(task, rc, error.library_code, "%s", error.message);
    else
        hand_on(worker, video, frames, out);
    if (rc != WEIR_MORE)
        end_item(worker);
    worker->is_between = rc == WEIR_MORE; /* also if the engine should give the task up here */
    return rc;
}

const weir_op weir_video_decode = {
    .name = "decode",
    .config_size = sizeof(weir_video_config),
    .config_init = video_config_init,
    .config_free = video_config_free,
    .worker_size = sizeof(video_worker),
    .worker_init = video_worker_init,
    .run = video_run,
    .worker_free = video_worker_free,
};
