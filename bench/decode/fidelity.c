/* First the reference's pictures of all clips are made and kept; then the stage runs over the clips once for each option.
   Its results come with their number in the list of clips, which tells what they are compared with. */
#include "fidelity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include <weir/stages.h>

#include "bicubic_reference.h"
#include "stage_job.h"

/* The references of all clips together take about so much; where pictures are large, fewer are compared. */
#define MAX_REFERENCE_BYTES (UINT64_C(256) << 20)

typedef struct reference_clip {
    bicubic_picture pictures[FIDELITY_PICTURES];
    uint32_t num_pictures; /* 0 = it is not compared */
    bool is_whole;         /* the stage has found it so */
} reference_clip;

typedef struct comparison {
    const fidelity_job *job;
    bench_files files;
    reference_clip *clips; /* [files.num_paths] */
    uint32_t max_pictures; /* of a clip */

    /* of the option that is run */
    const weir_video_config *video;
    double squares;
    double num_bytes;
    double worst; /* mean square */
} comparison;

/* ---- the reference ------------------------------------------------------------------------------------------ */

typedef struct clip_reader {
    AVFormatContext *format;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
    uint32_t num_frames;
} clip_reader;

static int reader_open(clip_reader *reader, const char *path)
{
    const AVCodec *codec;
    reader->packet = av_packet_alloc();
    reader->frame = av_frame_alloc();
    if (!reader->packet || !reader->frame || avformat_open_input(&reader->format, path, NULL, NULL) < 0 ||
        avformat_find_stream_info(reader->format, NULL) < 0)
        return -1;
    reader->stream = av_find_best_stream(reader->format, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    if (reader->stream < 0)
        return -1;
    reader->codec = avcodec_alloc_context3(codec);
    const AVCodecParameters *parameters = reader->format->streams[reader->stream]->codecpar;
    if (!reader->codec || avcodec_parameters_to_context(reader->codec, parameters) < 0)
        return -1;
    reader->codec->thread_count = 1;
    return avcodec_open2(reader->codec, codec, NULL);
}

static void reader_close(clip_reader *reader)
{
    avcodec_free_context(&reader->codec);
    avformat_close_input(&reader->format);
    av_packet_free(&reader->packet);
    av_frame_free(&reader->frame);
}

/* The next picture, in presentation order. 0, or negative at the end and after damage. */
static int reader_next(clip_reader *reader)
{
    int rc;
    while ((rc = avcodec_receive_frame(reader->codec, reader->frame)) == AVERROR(EAGAIN)) {
        bool is_end = av_read_frame(reader->format, reader->packet) < 0;
        if (is_end)
            rc = avcodec_send_packet(reader->codec, NULL);
        else if (reader->packet->stream_index == reader->stream)
            rc = avcodec_send_packet(reader->codec, reader->packet);
        else
            rc = 0;
        av_packet_unref(reader->packet);
        if (rc < 0)
            return rc;
    }
    return rc;
}

static bool picture_init(bicubic_picture *picture, int width, int height)
{
    size_t num_pixels = (size_t)width * (size_t)height;
    picture->rgb24 = malloc(num_pixels * 3);
    picture->gray8 = malloc(num_pixels);
    picture->yuv420p = malloc(bicubic_yuv420p_bytes(width, height));
    return picture->rgb24 && picture->gray8 && picture->yuv420p;
}

static void clip_forget(reference_clip *clip)
{
    for (size_t i = 0; i < FIDELITY_PICTURES; i++) {
        free(clip->pictures[i].rgb24);
        free(clip->pictures[i].gray8);
        free(clip->pictures[i].yuv420p);
    }
    *clip = (reference_clip){ 0 };
}

/* A clip that cannot be read, or has pictures of another kind, has none then. False = out of memory. */
static bool clip_make(reference_clip *clip, const char *path, int width, int height, uint32_t max_pictures)
{
    clip_reader reader = { 0 };
    int rc = reader_open(&reader, path);
    int made = 0;
    while (rc == 0 && made == 0 && clip->num_pictures < max_pictures && (rc = reader_next(&reader)) == 0) {
        if (reader.num_frames++ % FIDELITY_EVERY)
            continue;
        bicubic_picture *picture = &clip->pictures[clip->num_pictures];
        made = picture_init(picture, width, height) ? bicubic_make(reader.frame, width, height, picture) : -1;
        clip->num_pictures++;
    }
    reader_close(&reader);
    if (made != 0 || (rc < 0 && rc != AVERROR_EOF))
        clip_forget(clip);
    return made >= 0;
}

/* ---- the comparison ----------------------------------------------------------------------------------------- */

static const uint8_t *reference_of(const bicubic_picture *picture, weir_pixel pixel)
{
    switch (pixel) {
    case WEIR_PIXEL_GRAY8: return picture->gray8;
    case WEIR_PIXEL_YUV420P: return picture->yuv420p;
    case WEIR_PIXEL_RGB24: break;
    }
    return picture->rgb24;
}

static double squares_between(const uint8_t *a, const uint8_t *b, size_t num_bytes)
{
    double squares = 0;
    for (size_t i = 0; i < num_bytes; i++)
        squares += (a[i] - b[i]) * (a[i] - b[i]);
    return squares;
}

static void see(void *self, const weir_item *item)
{
    comparison *own = self;
    const weir_frames *frames = item->data;
    const reference_clip *clip = &own->clips[item->seq];
    if (clip->num_pictures == 0 || frames->num_frames != clip->num_pictures)
        return;
    double squares = 0;
    double num_bytes = (double)frames->num_frames * (double)frames->frame_bytes;
    for (uint32_t i = 0; i < frames->num_frames; i++)
        squares += squares_between(frames->data + i * frames->frame_bytes,
                                   reference_of(&clip->pictures[i], frames->pixel), frames->frame_bytes);
    own->squares += squares;
    own->num_bytes += num_bytes;
    own->worst = fmax(own->worst, squares / num_bytes);
}

static void see_damage(void *self, const weir_item *item)
{
    comparison *own = self;
    const weir_frames *frames = item->data;
    reference_clip *clip = &own->clips[item->seq];
    clip->is_whole = frames->num_errors == 0 && frames->num_missing_frames == 0 && frames->num_corrupt_frames == 0 &&
                     frames->num_frames == clip->num_pictures;
}

static int run_stage(comparison *own, void (*look)(void *self, const weir_item *item))
{
    weir_video_config video = *own->video;
    contest_result unused = { 0 };
    video.sampling =
        (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = FIDELITY_EVERY, .count = own->max_pictures };
    return stage_job_run(&(stage_job){ .files = &own->files,
                                       .op = &weir_video_decode,
                                       .config = &video,
                                       .concurrency = own->job->concurrency,
                                       .threads = own->job->concurrency,
                                       .see = look,
                                       .self = own },
                         &unused);
}

static double decibel(double mean_square)
{
    return mean_square == 0 ? INFINITY : 10 * log10(255.0 * 255.0 / mean_square);
}

static int compare(comparison *own, fidelity *result)
{
    own->squares = own->num_bytes = own->worst = 0;
    int rc = run_stage(own, see);
    bool has_any = own->num_bytes > 0;
    *result = (fidelity){ .psnr_db = decibel(has_any ? own->squares / own->num_bytes : NAN),
                          .worst_clip_db = decibel(has_any ? own->worst : NAN) };
    return rc;
}

/* ---- all of it ---------------------------------------------------------------------------------------------- */

static int choose_clips(comparison *own)
{
    const fidelity_job *job = own->job;
    const bench_files *all = job->files;
    uint64_t picture_bytes =
        (uint64_t)job->width * (uint64_t)job->height * 4 + bicubic_yuv420p_bytes(job->width, job->height);
    uint64_t room = MAX_REFERENCE_BYTES / picture_bytes + 1;
    size_t num_clips = all->num_paths < FIDELITY_CLIPS ? all->num_paths : FIDELITY_CLIPS;
    num_clips = num_clips < room ? num_clips : (size_t)room;
    own->max_pictures = room / num_clips < FIDELITY_PICTURES ? (uint32_t)(room / num_clips) : FIDELITY_PICTURES;
    int rc = 0;
    for (size_t i = 0; i < num_clips && rc == 0; i++)
        rc = bench_files_add(&own->files, all->paths[i * all->num_paths / num_clips]);
    own->clips = calloc(num_clips, sizeof *own->clips);
    return own->clips ? rc : -1;
}

static int make_references(comparison *own)
{
    bool has_memory = true;
    av_log_set_level(AV_LOG_QUIET);
    for (size_t i = 0; i < own->files.num_paths && has_memory; i++)
        has_memory =
            clip_make(&own->clips[i], own->files.paths[i], own->job->width, own->job->height, own->max_pictures);
    return has_memory ? 0 : -1;
}

int fidelity_measure(const void *argument, void *result)
{
    const fidelity_job *job = argument;
    fidelity_result *all = result;
    comparison own = { .job = job, .video = job->videos[0] };
    *all = (fidelity_result){ 0 };
    int rc = choose_clips(&own);
    if (rc == 0)
        rc = make_references(&own);
    if (rc == 0)
        rc = run_stage(&own, see_damage);
    for (size_t i = 0; i < own.files.num_paths && rc == 0; i++) {
        if (!own.clips[i].is_whole)
            clip_forget(&own.clips[i]);
        all->num_clips += own.clips[i].num_pictures > 0;
        all->num_pictures += own.clips[i].num_pictures;
    }
    for (size_t i = 0; i < job->num_videos && rc == 0; i++) {
        own.video = job->videos[i];
        rc = compare(&own, &all->of[i]);
    }
    for (size_t i = 0; own.clips && i < own.files.num_paths; i++)
        clip_forget(&own.clips[i]);
    free(own.clips);
    bench_files_free(&own.files);
    return rc;
}
