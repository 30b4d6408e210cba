/*
 * The video decode stage: for each file it runs the reader, the frame filter, the scaler and the result builder. The
 * reader outputs decoded frames; the frame filter outputs pictures to scale, which may be more or fewer. A worker
 * belongs to one slot, so everything in it has one user at a time.
 */
#include <assert.h>
#include <weir/video.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "stages/audio/audio_stage.h"
#include "stages/decoder/cost_parts.h"
#include "stages/decoder/decoder.h"
#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/reader/frame_reader.h"
#include "stages/scale/scaler.h"
#include "stages/video/frame_buffer.h"
#include "stages/video/frame_filter.h"
#include "stages/video/video_stage.h"

/* For selected frames. The packet cache holds about a minute of typical video. Reading a megabyte costs less than a
   seek in most containers. */
enum { MAX_CACHED_BYTES = 16 << 20, FAR_BYTES = 1 << 20 };

typedef struct video_worker {
    void *audio; /* a worker of weir_audio_decode; NULL = no sound is wanted */
    weir_decoder decoder;
    weir_frame_reader reader;
    weir_frame_filter frame_filter;
    weir_scaler scaler;
    weir_ffmpeg_log log;
    weir_task *task; /* the running one */

    /* of the current item; kept between its chunks */
    weir_item input;
    weir_sampling sampling;  /* of the item's part of the file; borrows the config's lists */
    weir_bytes *loaded;      /* with sound: the file, if the input is not in memory */
    const char *path;        /* to open, and for messages */
    uint64_t num_frames;     /* from the reader, repeats included */
    uint64_t num_corrupt;    /* pictures with concealed errors */
    uint64_t num_log_errors; /* FFmpeg's error lines, in earlier chunks */
    int source_width;        /* of the first frame */
    int source_height;
    const AVFrame *picture; /* the next one of a result; NULL = none yet */
    int64_t pts;            /* its time */
    uint64_t num_pictures;  /* so far, this one included */
    int width;              /* of the results; 0 = unknown yet */
    int height;
    uint64_t num_done; /* pictures in the chunks so far */
} video_worker;

static int video_config_init(void *config, weir_error *error)
{
    return weir__video_config_check(config, error);
}

static void video_config_free(void *config)
{
    weir__video_config_free(config);
}

static bool is_video_stopped(void *self)
{
    const video_worker *worker = self;
    return weir_task_should_stop(worker->task);
}

static void count_video_frame(void *self)
{
    weir_task_advance(((video_worker *)self)->task, "frames", 1);
}

static int init_sound(video_worker *worker, const weir_audio_config *audio, weir_task *task)
{
    worker->audio = calloc(1, weir_audio_decode.worker_size);
    int rc = worker->audio ? weir_audio_decode.worker_init(worker->audio, audio, task)
                           : weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    if (rc == WEIR_OK)
        return rc;
    free(worker->audio);
    worker->audio = NULL;
    return rc;
}

static int video_worker_init(void *self, const void *config, weir_task *task)
{
    video_worker *worker = self;
    const weir_video_config *video = config;
    worker->decoder = (weir_decoder){
        .should_stop = is_video_stopped,
        .on_frame = count_video_frame,
        .self = worker,
        .config = video->decoder,
        .stream_number = video->stream,
        .input.config = video->input,
    };
    if (weir__decoder_init(&worker->decoder) != WEIR_OK) {
        weir__decoder_free(&worker->decoder);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }
    int rc = video->audio ? init_sound(worker, video->audio, task) : WEIR_OK;
    if (rc != WEIR_OK) {
        weir__decoder_free(&worker->decoder);
        return rc;
    }
    weir__frame_filter_init(&worker->frame_filter, video->picture);
    worker->reader = (weir_frame_reader){
        .decoder = &worker->decoder,
        .sampling = &worker->sampling,
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
    weir__frame_filter_reset(&worker->frame_filter);
    weir__frame_reader_close(&worker->reader);
    weir__input_forget(&worker->decoder.input);
    weir_item_release(&worker->input);
    weir_bytes_free(worker->loaded);
    worker->loaded = NULL;
    worker->decoder.cost = (weir_decode_cost){ 0 };
    worker->num_frames = 0;
    worker->num_corrupt = 0;
    worker->num_log_errors = 0;
    worker->picture = NULL;
    worker->num_pictures = 0;
    worker->width = 0;
    worker->height = 0;
    worker->num_done = 0;
}

static void video_worker_free(void *self)
{
    video_worker *worker = self;
    end_item(worker);
    weir__scaler_reset(&worker->scaler);
    weir__frame_filter_free(&worker->frame_filter);
    weir__decoder_free(&worker->decoder);
    if (worker->audio)
        weir_audio_decode.worker_free(worker->audio);
    free(worker->audio);
}

void weir__video_describe(const weir_decoder *decoder, int source_width, int source_height, weir_frames *frames)
{
    frames->time_base_num = decoder->stream->time_base.num;
    frames->time_base_den = decoder->stream->time_base.den;
    frames->stream = weir__decoder_stream_number(decoder);
    frames->stream_index = (uint32_t)decoder->stream->index;
    frames->source_width = (uint32_t)source_width;
    frames->source_height = (uint32_t)source_height;
    snprintf(frames->codec, sizeof frames->codec, "%s", avcodec_get_name(decoder->codec->codec_id));
}

static uint64_t expected_frames(const video_worker *worker, const weir_video_config *video)
{
    uint64_t num_frames = weir__frame_reader_estimate_frames(&worker->reader);
    return video->chunk_frames && video->chunk_frames < num_frames ? video->chunk_frames : num_frames;
}

/* Called with the first picture, which determines the size of the result and the facts about the file. */
static int begin_frames(video_worker *worker, const weir_video_config *video, weir_frames_builder *builder,
                        weir_error *error)
{
    const weir_picture_config *wanted = video->picture;
    if (worker->width == 0) {
        worker->width = wanted->width ? (int)wanted->width : worker->picture->width;
        worker->height = wanted->height ? (int)wanted->height : worker->picture->height;
    }
    weir__scaler_set(&worker->scaler, wanted, worker->width, worker->height);
    int rc = weir__frames_begin(builder, wanted, (uint32_t)worker->width, (uint32_t)worker->height,
                                expected_frames(worker, video), error);
    if (rc == WEIR_OK)
        weir__video_describe(&worker->decoder, worker->source_width, worker->source_height, builder->frames);
    return rc;
}

bool weir__video_is_corrupt(const AVFrame *frame)
{
    return (frame->flags & AV_FRAME_FLAG_CORRUPT) || frame->decode_error_flags;
}

/* Appends the picture to the result; a repeated picture is copied from the previous frame. */
static int make_view(video_worker *worker, const weir_frames_builder *builder, uint8_t *data, weir_error *error)
{
    bool is_first = builder->frames->num_frames == 0;
    int64_t start_ns = weir_clock_ns();
    int rc = WEIR_OK;
    if (is_first || !worker->frame_filter.is_again)
        rc = weir__scaler_run(&worker->scaler, worker->picture, data, error);
    else
        memcpy(data, data - builder->frame_bytes, builder->frame_bytes);
    worker->decoder.cost.scale_ns += weir_clock_ns() - start_ns;
    return rc;
}

static int add_picture(video_worker *worker, const weir_video_config *video, weir_frames_builder *builder,
                       weir_error *error)
{
    int rc = builder->frames ? WEIR_OK : begin_frames(worker, video, builder, error);
    if (rc != WEIR_OK)
        return rc;

    uint8_t *data;
    rc = weir__frames_next(builder, &data, error);
    if (rc == WEIR_OK)
        rc = make_view(worker, builder, data, error);
    if (rc != WEIR_OK)
        return rc;

    weir__frames_commit(builder, worker->pts == AV_NOPTS_VALUE ? WEIR_PTS_UNKNOWN : worker->pts);
    bool is_corrupt = weir__video_is_corrupt(worker->picture);
    builder->frames->num_corrupt_frames += is_corrupt;
    worker->num_corrupt += is_corrupt;
    weir__scaler_describe(&worker->scaler, builder->frames);
    worker->picture = NULL;
    return WEIR_OK;
}

/* The expected number of frames, known at the end: the selected ones or, if all, the number in the header. */
static uint64_t count_expected(const video_worker *worker)
{
    uint64_t counted = weir__decoder_count_frames(&worker->decoder);
    uint32_t count = worker->sampling.count;
    if (counted == 0 || !weir__sampling_is_plain(&worker->sampling))
        return worker->num_frames + worker->reader.num_missing;
    return count && count < counted ? count : counted;
}

/* Of the frames so far or, at the end, of all. A header also counts hidden frames: it is used only if there is
   damage. */
static uint64_t count_missing(const video_worker *worker, bool is_end)
{
    bool is_damaged = worker->decoder.has_cut_packet || worker->decoder.num_errors + worker->num_corrupt +
                                                            worker->num_log_errors + worker->log.num_errors;
    uint64_t expected = is_end && is_damaged ? count_expected(worker) : 0;
    uint64_t lost = expected > worker->num_frames ? expected - worker->num_frames : 0;
    return lost > worker->reader.num_missing ? lost : worker->reader.num_missing;
}

static int check_strictly(const video_worker *worker, bool has_frame, weir_error *error)
{
    const weir_decoder *decoder = &worker->decoder;
    if (decoder->num_errors > 0) {
        char what[96];
        snprintf(what, sizeof what, "damage is not tolerated: %" PRIu64 " damaged packet(s)", decoder->num_errors);
        return weir__ffmpeg_error(error, decoder->first_averror, what);
    }
    if (has_frame && weir__video_is_corrupt(decoder->frame))
        return weir_error_set(error, WEIR_EDATA, 0, "damage is not tolerated: errors in a frame were concealed");
    uint64_t num_missing = count_missing(worker, !has_frame);
    if (num_missing > 0)
        return weir_error_set(error, WEIR_EDATA, 0, "damage is not tolerated: %" PRIu64 " frame(s) are missing",
                              num_missing);
    return WEIR_OK;
}

/* Passes the reader's next frame, or its end, to the frame filter. */
static int put_frame(video_worker *worker, const weir_video_config *video, weir_error *error)
{
    weir_frame_reader *reader = &worker->reader;
    const AVFrame *frame = worker->decoder.frame;
    int rc = weir__frame_reader_next(reader, error);
    if (video->damage == WEIR_DAMAGE_STRICT && (rc == WEIR_OK || rc == WEIR_EOF)) {
        int strict = check_strictly(worker, rc == WEIR_OK, error);
        rc = strict == WEIR_OK ? rc : strict;
    }
    if (rc == WEIR_EOF)
        return weir__frame_filter_put(&worker->frame_filter, worker->decoder.stream, NULL, AV_NOPTS_VALUE, 0, error);
    if (rc != WEIR_OK)
        return rc;

    if (worker->num_frames == 0) {
        worker->source_width = frame->width;
        worker->source_height = frame->height;
    }
    worker->num_frames += reader->num_repeats;
    int64_t start_ns = weir_clock_ns();
    rc = weir__frame_filter_put(&worker->frame_filter, worker->decoder.stream, frame, weir__frame_reader_pts(reader),
                                reader->num_repeats, error);
    worker->decoder.cost.scale_ns += weir_clock_ns() - start_ns;
    return rc;
}

/* A filter may output pictures without end and without input: the reader's limit does not apply. */
static int check_picture(video_worker *worker, const weir_video_config *video, weir_error *error)
{
    if (video->picture->filter && is_video_stopped(worker))
        return weir_error_set(error, WEIR_ESTOPPED, AVERROR_EXIT, "stopped");
    if (worker->num_pictures >= video->max_frames)
        return weir_error_set(error, WEIR_ELIMIT, 0,
                              "the filter outputs more frames than the limit of %" PRIu64 ": raise max_frames",
                              video->max_frames);
    worker->num_pictures++;
    return WEIR_OK;
}

/* The next picture, and its time. WEIR_EOF: no more. */
static int next_picture(video_worker *worker, const weir_video_config *video, weir_error *error)
{
    for (;;) {
        const AVFrame *picture;
        int64_t start_ns = weir_clock_ns();
        int rc = weir__frame_filter_get(&worker->frame_filter, &picture, &worker->pts, error);
        worker->decoder.cost.scale_ns += weir_clock_ns() - start_ns;
        if (rc == WEIR_OK)
            rc = check_picture(worker, video, error);
        if (rc == WEIR_OK)
            worker->picture = picture;
        if (rc == WEIR_SKIP && (rc = put_frame(worker, video, error)) == WEIR_OK)
            continue;
        return rc;
    }
}

/* At the end of the item: are there enough of the requested frames? */
static int check_share(const video_worker *worker, const weir_video_config *video, weir_error *error)
{
    uint64_t expected =
        worker->frame_filter.is_ended ? count_expected(worker) : worker->num_frames + worker->reader.num_missing;
    if (worker->num_frames == 0)
        return weir__decoder_fail_empty(&worker->decoder, "no frame: the video stream is empty or truncated", error);
    if ((double)worker->num_frames < video->min_share * (double)expected)
        return weir_error_set(error, WEIR_EDATA, worker->decoder.first_averror,
                              "only %" PRIu64 " of %" PRIu64 " frames could be decoded, min_share is %g",
                              worker->num_frames, expected, video->min_share);
    if (worker->num_pictures == 0)
        return weir_error_set(error, WEIR_EDATA, 0, "the filter \"%s\" dropped all %" PRIu64 " frames",
                              video->picture->filter, worker->num_frames);
    return WEIR_OK;
}

/* Builds the next chunk. WEIR_OK: it is the last one. WEIR_MORE: it is not. */
static int fill_chunk(video_worker *worker, const weir_video_config *video, weir_frames_builder *builder,
                      weir_error *error)
{
    for (uint32_t num_added = 0;; num_added++) {
        int rc = worker->picture ? WEIR_OK : next_picture(worker, video, error);
        if (rc == WEIR_EOF)
            return check_share(worker, video, error);
        if (rc == WEIR_OK && video->chunk_frames && num_added == video->chunk_frames)
            return WEIR_MORE;
        if (rc == WEIR_OK)
            rc = add_picture(worker, video, builder, error);
        if (rc != WEIR_OK)
            return rc;
    }
}

/* Puts the frames into the requested order. */
static int arrange_frames(const video_worker *worker, weir_frames_builder *builder, weir_error *error)
{
    size_t *from;
    assert(builder->frames); /* a chunk has at least one picture */
    int rc = weir__frame_reader_order(&worker->reader, builder->frames->num_frames, &from);
    if (rc == WEIR_OK && from)
        rc = weir__frames_arrange(builder, from);
    free(from);
    return rc == WEIR_OK ? WEIR_OK : weir_error_set(error, rc, 0, "out of memory");
}

/* One chunk, or the whole video. WEIR_OK: the item is done. WEIR_MORE: there are more chunks. */
static int make_chunk(video_worker *worker, const weir_video_config *video, weir_frames **frames, weir_error *error)
{
    weir_frames_builder builder = { .max_bytes = video->max_bytes, .allocator = video->allocator };
    int rc = fill_chunk(worker, video, &builder, error);
    int arranged = rc == WEIR_OK ? arrange_frames(worker, &builder, error) : WEIR_OK;
    rc = arranged == WEIR_OK ? rc : arranged;
    if (rc < 0) {
        weir__frames_abort(&builder);
        return rc;
    }
    weir_frames *chunk = weir__frames_end(&builder);
    chunk->num_errors = worker->decoder.num_errors;
    chunk->num_missing_frames = count_missing(worker, rc == WEIR_OK && worker->frame_filter.is_ended);
    chunk->first_frame = worker->num_done;
    chunk->is_last_chunk = rc == WEIR_OK;
    worker->num_done += chunk->num_frames;
    chunk->cost = worker->decoder.cost;
    chunk->cost.num_frames = worker->num_done;
    chunk->cost.num_missing = chunk->num_missing_frames;
    chunk->cost.num_errors = chunk->num_errors + worker->num_corrupt;
    *frames = chunk;
    return rc;
}

static void take_item(video_worker *worker, weir_item *in)
{
    end_item(worker);
    worker->path = weir__input_choose(&worker->decoder.input, in);
    weir_item_move(&worker->input, in);
}

static void pass_frames(video_worker *worker, weir_frames *frames, weir_item *out)
{
    assert(frames);
    if (frames->is_last_chunk) {
        weir__input_take_sidecars(&worker->input, &frames->sidecars, &frames->memory_bytes);
        weir__input_take_entry(&worker->input, &frames->entry, &frames->memory_bytes);
    }
    *out = (weir_item){ .data = frames, .release = weir_frames_release, .size_bytes = frames->memory_bytes };
}

/* ---- sound ---------------------------------------------------------------------------------------------------- */

static int is_video_interrupted(void *self)
{
    return is_video_stopped(self);
}

/* Both decoders read the file from memory. */
static int load_video(video_worker *worker, const weir_video_config *video, weir_error *error)
{
    weir_input *input = &worker->decoder.input;
    AVIOInterruptCB interrupt = { .callback = is_video_interrupted, .opaque = worker };
    uint64_t max_bytes = video->input->max_pipe_bytes;
    int64_t start_ns = weir_clock_ns();
    int rc = WEIR_OK;
    if (!input->bytes)
        rc = weir__input_load(input, worker->path, max_bytes, interrupt, &worker->loaded, error);
    worker->decoder.cost.demux_ns += weir_clock_ns() - start_ns;
    input->bytes = input->bytes ? input->bytes : worker->loaded;
    return rc;
}

static int add_sound(video_worker *worker, weir_frames *frames, weir_error *error)
{
    const AVFormatContext *format = worker->decoder.format;
    weir_decode_cost cost = { 0 };
    bool has_sound = false;
    for (unsigned i = 0; i < format->nb_streams; i++)
        has_sound |= format->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
    int rc = has_sound ? weir__audio_decode_bytes(worker->audio, worker->decoder.input.bytes, worker->task,
                                                  &frames->audio, &cost, error)
                       : WEIR_OK;
    weir__cost_add(&worker->decoder.cost, &cost);
    weir__cost_add(&frames->cost, &cost);
    if (rc == WEIR_OK && frames->audio)
        frames->memory_bytes += frames->audio->memory_bytes;
    return rc;
}

/* A clip that is a part of its file is sampled as if it were a file. */
static int choose_part(video_worker *worker, const weir_video_config *video, const weir_entry *entry,
                       weir_error *error)
{
    weir_sampling *part = &worker->sampling;
    bool is_part = entry && (entry->start_ns || entry->end_ns);
    bool is_list = video->sampling.what == WEIR_SAMPLE_INDICES || video->sampling.what == WEIR_SAMPLE_TIMES;
    *part = video->sampling;
    if (!is_part)
        return WEIR_OK;
    if (is_list || worker->audio)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "the clip is a part of its file (start, end), of which %s are not supported",
                              is_list ? "explicit indices or times" : "samples of sound");
    if (part->origin == WEIR_ORIGIN_STREAM)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "the clip is a part of its file, whose start and end count from the first frame: the "
                              "window cannot count as the stream does (origin)");
    part->start_ns += entry->start_ns;
    part->end_ns += part->end_ns ? entry->start_ns : 0;
    if (entry->end_ns && (!part->end_ns || entry->end_ns < part->end_ns))
        part->end_ns = entry->end_ns;
    if (part->end_ns && part->end_ns <= part->start_ns)
        return weir_error_set(error, WEIR_ERANGE, 0, "the window of the sampling begins after the end of the clip");
    return WEIR_OK;
}

/* The random frames of an entry must not depend on the rank or the time; those of other items are others in each epoch,
   too. */
static int open_item(video_worker *worker, const weir_video_config *video, weir_error *error)
{
    const weir_entry *entry;
    int rc = weir__input_check(&worker->input, &entry, error);
    if (rc == WEIR_OK)
        rc = choose_part(worker, video, entry, error);
    worker->decoder.input.is_read_again = !weir__sampling_is_plain(&worker->sampling);
    if (rc == WEIR_OK && worker->audio)
        rc = load_video(worker, video, error);
    if (rc != WEIR_OK)
        return rc;
    worker->reader.table = entry ? entry->packets : NULL;
    worker->reader.table_bytes = entry ? entry->packets_bytes : 0;
    uint64_t number = weir__random_seed(entry ? entry->epoch : weir_task_epoch(worker->task),
                                        entry ? entry->number : weir_task_seq(worker->task));
    return weir__frame_reader_open(&worker->reader, worker->path, number, error);
}

static int video_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    video_worker *worker = self;
    const weir_video_config *video = weir_task_config(task);
    const char *label = weir_task_label(task);
    bool is_first = weir_task_num_chunks(task) == 0;
    weir_frames *frames = NULL;
    weir_error error = { 0 };
    worker->task = task;
    int rc = WEIR_OK;
    if (is_first)
        take_item(worker, in);

    weir__ffmpeg_log_begin(&worker->log, label[0] ? label : worker->path, worker->path);
    if (is_first)
        rc = open_item(worker, video, &error);
    if (rc == WEIR_OK)
        rc = make_chunk(worker, video, &frames, &error);
    if (rc == WEIR_OK && worker->audio && (rc = add_sound(worker, frames, &error)) != WEIR_OK)
        weir_frames_free(frames);
    weir__ffmpeg_log_end();
    worker->num_log_errors += worker->log.num_errors;
    worker->log.num_errors = 0;
    weir__cost_tell(task, rc < 0 ? &worker->decoder.cost : &frames->cost);
    if (rc < 0)
        rc = weir_task_fail(task, rc, error.library_code, "%s", error.message);
    else
        pass_frames(worker, frames, out);
    if (rc != WEIR_MORE)
        end_item(worker);
    return rc;
}

const weir_op weir_video_decode = {
    .name = "decode",
    .takes = WEIR_TYPE_TEXT " " WEIR_TYPE_BYTES " " WEIR_TYPE_ENTRY,
    .makes = WEIR_TYPE_FRAMES,
    .config_size = sizeof(weir_video_config),
    .config_init = video_config_init,
    .config_free = video_config_free,
    .worker_size = sizeof(video_worker),
    .worker_init = video_worker_init,
    .run = video_run,
    .worker_free = video_worker_free,
};
