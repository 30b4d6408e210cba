/* For each clip: makes the reference pictures, then the stage decodes the clip once for each option. */
#include "fidelity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include <weir/stages.h>

#include "bare_loop.h"
#include "bicubic_reference.h"
#include "stage_job.h"

/* ---- the reference ------------------------------------------------------------------------------------------ */

typedef struct clip_reader {
    AVFormatContext *format;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
} clip_reader;

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

static void picture_free(bicubic_picture *picture)
{
    free(picture->rgb24);
    free(picture->gray8);
    free(picture->yuv420p);
}

static bool is_keyframe(const AVFrame *frame)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    return frame->flags & AV_FRAME_FLAG_KEY;
#else
    return frame->key_frame;
#endif
}

/* Marks which pictures since `start` are in the second half of the group of pictures that ends before `end`. */
static void end_group(bool late[FIDELITY_PICTURES], uint32_t start, uint32_t end)
{
    for (uint32_t i = 0; i < FIDELITY_PICTURES; i++)
        if (i * FIDELITY_EVERY >= start && i * FIDELITY_EVERY < end)
            late[i] = (i * FIDELITY_EVERY - start) * 2 >= end - start;
}

/* The number of reference pictures of the clip; 0 = unreadable or other pixel format; -1 = out of memory. Reads on to
   the keyframe after the last one, to know which pictures are in the second half of their group (`late`). */
static int make_references(const fidelity_job *job, const char *path, const bicubic_picture *pictures,
                           bool late[FIDELITY_PICTURES])
{
    clip_reader reader = { .packet = av_packet_alloc(), .frame = av_frame_alloc() };
    int rc = reader.packet && reader.frame ? bare_open(path, &reader.format, &reader.codec, &reader.stream) : -1;
    int made = 0, num_pictures = 0;
    uint32_t number = 0, start = 0;
    for (; rc == 0 && made == 0; number++) {
        rc = reader_next(&reader);
        bool begins = rc == 0 && is_keyframe(reader.frame);
        if (begins && num_pictures == FIDELITY_PICTURES)
            break;
        if (begins) {
            end_group(late, start, number);
            start = number;
        }
        if (rc == 0 && number % FIDELITY_EVERY == 0 && num_pictures < FIDELITY_PICTURES)
            made = bicubic_make(reader.frame, job->width, job->height, &pictures[num_pictures++]);
    }
    end_group(late, start, number);
    reader_close(&reader);
    if (made < 0)
        return -1;
    return made > 0 || (rc < 0 && rc != AVERROR_EOF) ? 0 : num_pictures;
}

/* ---- the comparison ----------------------------------------------------------------------------------------- */

/* One clip with one option. */
typedef struct clip_comparison {
    const bicubic_picture *pictures;
    uint32_t num_pictures;
    bool is_whole;                   /* according to the stage */
    const bool *late;                /* for each picture */
    double squares[2], num_bytes[2]; /* of pictures in the first, in the second half of their group */
} clip_comparison;

static const uint8_t *reference_of(const bicubic_picture *picture, weir_pixel pixel)
{
    switch (pixel) {
    case WEIR_PIXEL_GRAY8: return picture->gray8;
    case WEIR_PIXEL_YUV420P: return picture->yuv420p;
    case WEIR_PIXEL_RGB24: break;
    }
    return picture->rgb24;
}

static void see_frames(void *self, const weir_item *item)
{
    clip_comparison *own = self;
    const weir_frames *frames = item->data;
    own->is_whole = frames->num_errors == 0 && frames->num_missing_frames == 0 && frames->num_corrupt_frames == 0 &&
                    frames->num_frames == own->num_pictures;
    for (uint32_t i = 0; own->is_whole && i < frames->num_frames; i++) {
        const uint8_t *a = frames->data + i * frames->frame_bytes;
        const uint8_t *b = reference_of(&own->pictures[i], frames->pixel);
        double squares = 0;
        for (size_t byte = 0; byte < frames->frame_bytes; byte++)
            squares += (a[byte] - b[byte]) * (a[byte] - b[byte]);
        own->squares[own->late[i]] += squares;
        own->num_bytes[own->late[i]] += (double)frames->frame_bytes;
    }
}

static int compare(const fidelity_job *job, char *path, const weir_video_config *option, clip_comparison *clip)
{
    const bench_files one = { .paths = &path, .num_paths = 1 };
    contest_result unused = { 0 };
    weir_video_config video = *option;
    video.sampling =
        (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = FIDELITY_EVERY, .count = FIDELITY_PICTURES };
    clip->is_whole = false;
    memset(clip->squares, 0, sizeof clip->squares);
    memset(clip->num_bytes, 0, sizeof clip->num_bytes);
    return stage_job_run(&(stage_job){ .files = &one,
                                       .op = &weir_video_decode,
                                       .config = &video,
                                       .concurrency = 1,
                                       .threads = job->concurrency,
                                       .see = see_frames,
                                       .self = clip },
                         &unused);
}

/* ---- all of it ---------------------------------------------------------------------------------------------- */

/* Sums of one option over all clips. */
typedef struct sums {
    double squares[2], num_bytes[2]; /* as in clip_comparison */
    double worst;                    /* mean square of a clip */
} sums;

static int measure_clip(const fidelity_job *job, char *path, const bicubic_picture *pictures, fidelity_result *result,
                        sums *all)
{
    bool late[FIDELITY_PICTURES] = { 0 };
    int num_pictures = make_references(job, path, pictures, late);
    clip_comparison clip = { .pictures = pictures, .num_pictures = (uint32_t)num_pictures, .late = late };
    int rc = num_pictures < 0 ? -1 : 0;
    for (size_t i = 0; i < job->num_videos && rc == 0 && num_pictures > 0; i++) {
        rc = compare(job, path, job->videos[i], &clip);
        if (i == 0 && !clip.is_whole)
            return rc;
        if (!clip.is_whole)
            continue;
        for (int half = 0; half < 2; half++) {
            all[i].squares[half] += clip.squares[half];
            all[i].num_bytes[half] += clip.num_bytes[half];
        }
        all[i].worst =
            fmax(all[i].worst, (clip.squares[0] + clip.squares[1]) / (clip.num_bytes[0] + clip.num_bytes[1]));
    }
    result->num_clips += num_pictures > 0;
    result->num_pictures += (uint64_t)(num_pictures > 0 ? num_pictures : 0);
    return rc;
}

static double decibel(double mean_square)
{
    return mean_square == 0 ? INFINITY : 10 * log10(255.0 * 255.0 / mean_square);
}

static fidelity fidelity_of(const sums *own)
{
    double num_bytes = own->num_bytes[0] + own->num_bytes[1];
    fidelity found = { NAN, NAN, NAN };
    if (num_bytes > 0) {
        found.psnr_db = decibel((own->squares[0] + own->squares[1]) / num_bytes);
        found.worst_clip_db = decibel(own->worst);
    }
    if (own->num_bytes[0] > 0 && own->num_bytes[1] > 0)
        found.drift_db = decibel(own->squares[0] / own->num_bytes[0]) - decibel(own->squares[1] / own->num_bytes[1]);
    return found;
}

int fidelity_measure(const void *argument, void *result)
{
    const fidelity_job *job = argument;
    const bench_files *files = job->files;
    fidelity_result *out = result;
    sums all[MAX_FIDELITIES] = { 0 };
    bicubic_picture pictures[FIDELITY_PICTURES] = { 0 };
    size_t num_clips = files->num_paths < FIDELITY_CLIPS ? files->num_paths : FIDELITY_CLIPS;
    int rc = 0;
    *out = (fidelity_result){ 0 };
    av_log_set_level(AV_LOG_QUIET);
    for (size_t i = 0; i < FIDELITY_PICTURES && rc == 0; i++)
        rc = picture_init(&pictures[i], job->width, job->height) ? 0 : -1;
    for (size_t i = 0; i < num_clips && rc == 0; i++)
        rc = measure_clip(job, files->paths[i * files->num_paths / num_clips], pictures, out, all);
    for (size_t i = 0; i < job->num_videos; i++)
        out->of[i] = fidelity_of(&all[i]);
    for (size_t i = 0; i < FIDELITY_PICTURES; i++)
        picture_free(&pictures[i]);
    return rc;
}
