/*
 * The video decode stage: an item is a request to the picture reader, and each result is an item again. The stage adds what
 * belongs to items: entries and their windows of files, sidecars, sound and costs. A worker belongs to one slot, so everything
 * in it has one user at a time.
 */
#include <assert.h>
#include <weir/video.h>

#include <stdbool.h>
#include <stdlib.h>

#include <weir/struct_copy.h>
#include <weir/video_reader_pool.h>

#include "common/random.h"
#include "common/redact.h"
#include "stages/audio/audio_config.h"
#include "stages/audio/audio_stage.h"
#include "stages/decoder/cost_parts.h"
#include "stages/memory/block_pool.h"
#include "stages/reader/frame_selection.h"
#include "stages/reader/kept_reader.h"
#include "stages/reader/picture_reader.h"
#include "stages/reader/video_config.h"

typedef struct video_worker {
    void *audio; /* a worker of weir_audio_decode; NULL = no sound is wanted */
    weir_picture_reader reader;
    weir_task *task; /* the running one */

    /* of the current item; kept between its chunks */
    weir_item input;
    weir_sampling sampling;  /* of the item's window of the file; borrows the config's lists */
    weir_bytes *loaded;      /* with sound: the file, if the input is not in memory */
    weir_video_reader *kept; /* of the config's pool, instead of `reader`; NULL = none */
    const char *path;        /* to open, and for messages */
} video_worker;

static int audio_init(weir_video_config *video, weir_error *error)
{
    if (!video->audio)
        return WEIR_OK;
    if (video->audio_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "audio is given, but audio_size is 0: pass sizeof *audio");
    return weir__audio_config_own(&video->audio, video->audio_size, error);
}

/* The readers that all slots share. */
static int keep_init(weir_video_config *video, weir_error *error)
{
    weir_video_reader_pool *pool;
    weir_video_config one = *video;
    video->kept = NULL;
    if (!video->keep_open || video->audio)
        return WEIR_OK;
    one.keep_open = 0;
    one.kept = NULL;
    weir_video_reader_pool_config config = { .max_open = video->keep_open, .video = &one, .video_size = sizeof one };
    int rc = weir_video_reader_pool_new(&pool, &config, sizeof config, error);
    if (rc == WEIR_OK)
        video->kept = pool;
    return rc;
}

static int video_config_init(void *config, weir_error *error)
{
    int rc = weir__video_config_check(config, error);
    if (rc != WEIR_OK)
        return rc;
    rc = audio_init(config, error);
    if (rc == WEIR_OK && (rc = keep_init(config, error)) != WEIR_OK)
        weir__audio_config_free(((const weir_video_config *)config)->audio);
    if (rc != WEIR_OK)
        weir__video_config_free(config);
    return rc;
}

static void video_config_free(void *config)
{
    weir_video_config *video = config;
    weir_video_reader_pool_free(video->kept);
    weir__audio_config_free(video->audio);
    weir__video_config_free(video);
}

static bool is_video_stopped(void *self)
{
    const video_worker *worker = self;
    return weir_task_should_stop(worker->task);
}

/* result_bytes: of a result that is not passed on yet. */
static void report_held(const video_worker *worker, uint64_t result_bytes)
{
    uint64_t bytes = weir__picture_reader_bytes(&worker->reader) + weir_bytes_memory(worker->loaded);
    bytes += worker->kept ? weir__video_reader_bytes(worker->kept) : 0;
    weir_task_set_held(worker->task, WEIR_HOLDER_WORKER, bytes + result_bytes);
}

/* What the slots share: readers that are open and idle, and free blocks. */
static void report_shared(const video_worker *worker, const weir_video_config *video)
{
    weir_video_reader_pool_figures figures = { 0 };
    if (!video->kept && !video->allocator)
        return;
    weir_video_reader_pool_figures_get(video->kept, &figures, sizeof figures);
    weir_task_set_held(worker->task, WEIR_HOLDER_STAGE,
                       figures.idle_bytes + weir__allocator_free_bytes(video->allocator));
}

static void count_video_frame(void *self)
{
    const video_worker *worker = self;
    weir_task_advance(worker->task, "frames", 1);
    report_held(worker, 0);
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
    if (weir__picture_reader_init(&worker->reader, video, is_video_stopped, count_video_frame, worker) != WEIR_OK)
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    int rc = video->audio ? init_sound(worker, video->audio, task) : WEIR_OK;
    if (rc != WEIR_OK)
        weir__picture_reader_free(&worker->reader);
    return rc;
}

static void end_item(video_worker *worker)
{
    if (worker->kept) {
        const weir_video_config *video = worker->reader.config;
        weir_video_reader_pool_give_back(video->kept, worker->kept);
        worker->kept = NULL;
    }
    weir__picture_reader_close(&worker->reader);
    weir__input_forget(&worker->reader.decoder.input);
    weir_item_release(&worker->input);
    weir_bytes_free(worker->loaded);
    worker->loaded = NULL;
}

static void video_worker_free(void *self)
{
    video_worker *worker = self;
    end_item(worker);
    weir__picture_reader_free(&worker->reader);
    if (worker->audio)
        weir_audio_decode.worker_free(worker->audio);
    free(worker->audio);
}

static void take_item(video_worker *worker, weir_item *in)
{
    end_item(worker);
    worker->path = weir__input_choose(&worker->reader.decoder.input, in);
    weir_item_move(&worker->input, in);
}

/* Parts of a video: their item's entry comes with the last one, unless each is a clip. */
static int pass_frames(video_worker *worker, const weir_video_config *video, weir_frames *frames, weir_item *out)
{
    assert(frames);
    report_held(worker, frames->memory_bytes);
    if (frames->is_last_chunk || video->clip_items) {
        int rc = weir__input_give(&worker->input, frames->is_last_chunk, &frames->entry, &frames->sidecars,
                                  &frames->memory_bytes);
        if (rc != WEIR_OK) {
            weir_frames_free(frames);
            return weir_task_fail(worker->task, rc, 0, "out of memory");
        }
    }
    *out = (weir_item){ .data = frames, .release = weir_frames_release, .size_bytes = frames->memory_bytes };
    return WEIR_OK;
}

/* ---- sound ---------------------------------------------------------------------------------------------------- */

static int is_video_interrupted(void *self)
{
    return is_video_stopped(self);
}

/* Both decoders read the file from memory. */
static int load_video(video_worker *worker, const weir_video_config *video, weir_error *error)
{
    weir_input *input = &worker->reader.decoder.input;
    AVIOInterruptCB interrupt = { .callback = is_video_interrupted, .opaque = worker };
    uint64_t max_bytes = video->input->max_pipe_bytes;
    int64_t start_ns = weir_clock_ns();
    int rc = WEIR_OK;
    if (!input->bytes)
        rc = weir__input_load(input, worker->path, max_bytes, interrupt, &worker->loaded, error);
    worker->reader.decoder.cost.demux_ns += weir_clock_ns() - start_ns;
    input->bytes = input->bytes ? input->bytes : worker->loaded;
    return rc;
}

static int add_sound(video_worker *worker, weir_frames *frames, weir_error *error)
{
    const AVFormatContext *format = worker->reader.decoder.format;
    weir_decode_cost cost = { 0 };
    bool has_sound = false;
    for (unsigned i = 0; i < format->nb_streams; i++)
        has_sound |= format->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
    int rc = has_sound ? weir__audio_decode_bytes(worker->audio, worker->reader.decoder.input.bytes, worker->task,
                                                  &frames->audio, &cost, error)
                       : WEIR_OK;
    weir__cost_add(&worker->reader.decoder.cost, &cost);
    weir__cost_add(&frames->cost, &cost);
    if (rc == WEIR_OK && frames->audio)
        frames->memory_bytes += frames->audio->memory_bytes;
    return rc;
}

/* Of the sampling, which is relative to the clip. */
static int narrow_window(weir_sampling *sampling, const weir_clip_window *clip, weir_error *error)
{
    bool has_times = sampling->start_ns || sampling->end_ns,
         has_frames = sampling->start_frame || sampling->end_frame;
    bool is_in_time = clip->start_ns || clip->end_ns;
    if (is_in_time ? has_frames : has_times)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "the clip is a window of its file in %s: the window of the sampling cannot be in %s",
                              is_in_time ? "time" : "frames", is_in_time ? "frames" : "time");
    sampling->start_ns += clip->start_ns;
    sampling->end_ns += sampling->end_ns ? clip->start_ns : 0;
    if (clip->end_ns && (!sampling->end_ns || clip->end_ns < sampling->end_ns))
        sampling->end_ns = clip->end_ns;
    sampling->start_frame += clip->start_frame;
    sampling->end_frame += sampling->end_frame ? clip->start_frame : 0;
    if (clip->end_frame && (!sampling->end_frame || clip->end_frame < sampling->end_frame))
        sampling->end_frame = clip->end_frame;
    if ((sampling->end_ns && sampling->end_ns <= sampling->start_ns) ||
        (sampling->end_frame && sampling->end_frame <= sampling->start_frame))
        return weir_error_set(error, WEIR_ERANGE, 0, "the window of the sampling begins after the end of the clip");
    return WEIR_OK;
}

/* A clip that is a window of its file is sampled as if it were a file. */
static int choose_window(video_worker *worker, const weir_video_config *video, const weir_entry *entry,
                         weir_error *error)
{
    weir_sampling *sampling = &worker->sampling;
    bool is_window = entry && !weir_clip_window_is_whole(&entry->window);
    bool is_list = video->sampling.what == WEIR_SAMPLE_INDICES || video->sampling.what == WEIR_SAMPLE_TIMES;
    *sampling = video->sampling;
    if (!is_window)
        return WEIR_OK;
    if (is_list || worker->audio)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "the clip is a window of its file (start, end), of which %s are not supported",
                              is_list ? "explicit indices or times" : "samples of sound");
    if (sampling->origin == WEIR_ORIGIN_STREAM)
        return weir_error_set(
            error, WEIR_EUNSUPPORTED, 0,
            "the clip is a window of its file, and its start and end count from the first frame: the "
            "window of the sampling cannot use the times of the stream (origin)");
    return narrow_window(sampling, &entry->window, error);
}

/* ---- a reader that stays open ---------------------------------------------------------------------------------- */

static bool is_kept_open(const video_worker *worker, const weir_video_config *video, const weir_entry *entry)
{
    return video->kept && !worker->reader.decoder.input.bytes && !(entry && entry->archive_length) &&
           !weir__is_url(worker->path);
}

static bool is_in_parts(const weir_video_config *video)
{
    return video->chunk_frames || video->clip_items;
}

static int take_kept(video_worker *worker, const weir_video_config *video, const weir_entry *entry, uint64_t epoch,
                     uint64_t number, weir_error *error)
{
    weir_video_source source = {
        .path = worker->path,
        .packets = entry ? entry->packets : NULL,
        .packets_bytes = entry ? entry->packets_bytes : 0,
        .should_stop = is_video_stopped,
        .self = worker,
    };
    worker->reader.decoder.cost = (weir_decode_cost){ 0 }; /* of an opening that fails */
    int rc = weir_video_reader_pool_take(video->kept, &source, sizeof source, &worker->kept, error);
    if (rc != WEIR_OK)
        return rc;
    weir__video_reader_watch(worker->kept, count_video_frame);
    weir_video_reader_set_number(worker->kept, epoch, number);
    if (!is_in_parts(video))
        return WEIR_OK;
    return weir_video_reader_begin(worker->kept, &worker->sampling, sizeof worker->sampling, NULL, 0, error);
}

/* As weir__picture_reader_chunk(). */
static int give_kept(video_worker *worker, const weir_video_config *video, weir_frames **frames, weir_error *error)
{
    if (!is_in_parts(video))
        return weir_video_reader_frames(worker->kept, &worker->sampling, sizeof worker->sampling, NULL, 0, frames,
                                        error);
    int rc = weir_video_reader_next(worker->kept, frames, error);
    return rc == WEIR_OK && !(*frames)->is_last_chunk ? WEIR_MORE : rc;
}

static const weir_decode_cost *cost_of(const video_worker *worker)
{
    return worker->kept ? weir__video_reader_cost(worker->kept) : &worker->reader.decoder.cost;
}

/* ---- items ----------------------------------------------------------------------------------------------------- */

/* The random frames of an entry must not depend on the rank or the time; those of other items are others in each epoch,
   too. */
static int open_item(video_worker *worker, const weir_video_config *video, weir_error *error)
{
    const weir_entry *entry;
    int rc = weir__input_check(&worker->input, &entry, error);
    if (rc == WEIR_OK)
        rc = choose_window(worker, video, entry, error);
    uint64_t epoch = entry ? entry->epoch : weir_task_epoch(worker->task);
    uint64_t item = entry ? entry->number : weir_task_seq(worker->task);
    if (rc == WEIR_OK && is_kept_open(worker, video, entry))
        return take_kept(worker, video, entry, epoch, item, error);
    worker->reader.decoder.input.is_read_again = !weir__sampling_is_plain(&worker->sampling);
    if (rc == WEIR_OK && worker->audio)
        rc = load_video(worker, video, error);
    if (rc != WEIR_OK)
        return rc;
    worker->reader.frames.table = entry ? entry->packets : NULL;
    worker->reader.frames.table_bytes = entry ? entry->packets_bytes : 0;
    uint64_t number = weir__random_seed(epoch, item);
    weir_picture_request wanted = {
        .sampling = &worker->sampling,
        .picture = video->picture,
        .number = number,
        .chunk_frames = video->chunk_frames,
        .clip_items = video->clip_items,
    };
    rc = weir__picture_reader_open(&worker->reader, worker->path, error);
    return rc == WEIR_OK ? weir__picture_reader_ask(&worker->reader, &wanted, error) : rc;
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

    weir__picture_reader_enter(&worker->reader, label[0] ? label : worker->path, worker->path);
    if (is_first)
        rc = open_item(worker, video, &error);
    if (rc == WEIR_OK)
        rc = worker->kept ? give_kept(worker, video, &frames, &error)
                          : weir__picture_reader_chunk(&worker->reader, &frames, &error);
    if (rc == WEIR_OK && worker->audio && (rc = add_sound(worker, frames, &error)) != WEIR_OK)
        weir_frames_free(frames);
    weir__picture_reader_leave(&worker->reader);
    weir__cost_tell(task, rc < 0 ? cost_of(worker) : &frames->cost);
    if (rc < 0)
        rc = weir_task_fail(task, rc, error.library_code, "%s", error.message);
    else if (pass_frames(worker, video, frames, out) != WEIR_OK)
        rc = WEIR_ENOMEM;
    if (rc != WEIR_MORE)
        end_item(worker);
    report_held(worker, 0);
    report_shared(worker, video);
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
