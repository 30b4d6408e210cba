/* Each thread has its own FFmpeg objects; threads share only the file counter and, at the end, the sums. */
#include "bench/decode/bare_loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>
#include <libavutil/mathematics.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>

#include "tools/cli/memory.h"

typedef struct bare_thread {
    const bare_job *job;
    atomic_size_t *next_path;
    bare_result sums;

    AVPacket *packet;
    AVFrame *frame;
    AVFormatContext *format;
    AVCodecContext *codec;
    struct SwsContext *sws; /* for pictures of this size and format: */
    int sws_width, sws_height, sws_format;
    int scaled_width, scaled_height;
    uint8_t *spare[4]; /* a picture of that size, if it is narrower than the result; all NULL = it is not */
    int spare_stride[4];

    uint8_t *pictures; /* of the clip */
    size_t num_pictures;
    size_t max_pictures;
} bare_thread;

uint64_t bare_hash(const uint8_t *bytes, size_t size_bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a, a word at a time */
    uint64_t word = 0;
    for (size_t i = 0; i < size_bytes; i += sizeof word) {
        size_t left = size_bytes - i;
        word = 0;
        memcpy(&word, bytes + i, left < sizeof word ? left : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    return hash;
}

/* Sets up swscale like FFmpeg's scale filter. */
static int set_up_scaling(bare_thread *self)
{
    const AVFrame *frame = self->frame;
    if (self->sws && self->sws_width == frame->width && self->sws_height == frame->height &&
        self->sws_format == frame->format)
        return 0;

    int width = (int)av_rescale(self->job->height, frame->width, frame->height);
    int height = (int)av_rescale(self->job->width, frame->height, frame->width);
    self->scaled_width = self->job->stretch ? self->job->width : FFMAX(1, FFMIN(width, self->job->width));
    self->scaled_height = self->job->stretch ? self->job->height : FFMAX(1, FFMIN(height, self->job->height));
    self->sws_width = frame->width;
    self->sws_height = frame->height;
    self->sws_format = frame->format;

    sws_freeContext(self->sws);
    self->sws = NULL;
    av_freep(&self->spare[0]);
    if (self->scaled_width < self->job->width && av_image_alloc(self->spare, self->spare_stride, self->scaled_width,
                                                                self->scaled_height, AV_PIX_FMT_RGB24, 64) < 0)
        return -1;
    self->sws = sws_alloc_context();
    if (!self->sws)
        return -1;
    av_opt_set_int(self->sws, "srcw", frame->width, 0);
    av_opt_set_int(self->sws, "srch", frame->height, 0);
    av_opt_set_int(self->sws, "src_format", frame->format, 0);
    av_opt_set_int(self->sws, "dstw", self->scaled_width, 0);
    av_opt_set_int(self->sws, "dsth", self->scaled_height, 0);
    av_opt_set_int(self->sws, "dst_format", AV_PIX_FMT_RGB24, 0);
    av_opt_set_int(self->sws, "sws_flags", SWS_BICUBIC, 0);
    return sws_init_context(self->sws, NULL, NULL);
}

static void set_colours(bare_thread *self)
{
    int *matrix, *out_matrix;
    int full, out_full, brightness, contrast, saturation;
    if (sws_getColorspaceDetails(self->sws, &matrix, &full, &out_matrix, &out_full, &brightness, &contrast,
                                 &saturation) < 0)
        return;
    const int *coefficients = sws_getCoefficients((int)self->frame->colorspace);
    if (self->frame->color_range != AVCOL_RANGE_UNSPECIFIED)
        full = self->frame->color_range == AVCOL_RANGE_JPEG;
    sws_setColorspaceDetails(self->sws, coefficients, full, coefficients, out_full, brightness, contrast, saturation);
}

/* Makes room for one more picture, plus padding because swscale writes whole vectors. NULL = out of memory. */
static uint8_t *next_picture(bare_thread *self)
{
    size_t picture_bytes = (size_t)self->job->width * (size_t)self->job->height * 3;
    if (self->num_pictures == self->max_pictures) {
        size_t max_pictures = self->max_pictures ? self->max_pictures * 2 : 64;
        uint8_t *grown = realloc(self->pictures, max_pictures * picture_bytes + 64);
        if (!grown)
            return NULL;
        self->pictures = grown;
        self->max_pictures = max_pictures;
    }
    return self->pictures + self->num_pictures * picture_bytes;
}

/* swscale may write whole strides, so it gets no columns of the result, only rows. */
static void scale_into(const bare_thread *self, uint8_t *window, int stride)
{
    const AVFrame *frame = self->frame;
    bool has_spare = self->spare[0];
    sws_scale(self->sws, (const uint8_t *const *)frame->data, frame->linesize, 0, frame->height,
              has_spare ? self->spare : (uint8_t *const[]){ window },
              has_spare ? self->spare_stride : (const int[]){ stride });
    if (has_spare)
        av_image_copy_plane(window, stride, self->spare[0], self->spare_stride[0], self->scaled_width * 3,
                            self->scaled_height);
}

static int scale_frame(bare_thread *self)
{
    uint8_t *picture = next_picture(self);
    bool is_new = !self->sws || self->sws_width != self->frame->width || self->sws_height != self->frame->height ||
                  self->sws_format != self->frame->format || self->num_pictures == 0;
    if (!picture || set_up_scaling(self) < 0)
        return -1;
    if (is_new)
        set_colours(self);

    int stride = self->job->width * 3;
    int x = (self->job->width - self->scaled_width) / 2;
    int y = (self->job->height - self->scaled_height) / 2;
    memset(picture, 0, (size_t)self->job->height * (size_t)stride);
    scale_into(self, picture + y * stride + x * 3, stride);
    self->num_pictures++;
    return 0;
}

int bare_open(const char *path, AVFormatContext **format, AVCodecContext **codec, int *stream)
{
    const AVCodec *decoder;
    if (avformat_open_input(format, path, NULL, NULL) < 0 || avformat_find_stream_info(*format, NULL) < 0)
        return -1;
    *stream = av_find_best_stream(*format, AVMEDIA_TYPE_VIDEO, -1, -1, &decoder, 0);
    if (*stream < 0)
        return -1;
    for (int i = 0; i < (int)(*format)->nb_streams; i++) {
        if (i != *stream)
            (*format)->streams[i]->discard = AVDISCARD_ALL;
    }
    *codec = avcodec_alloc_context3(decoder);
    if (!*codec || avcodec_parameters_to_context(*codec, (*format)->streams[*stream]->codecpar) < 0)
        return -1;
    (*codec)->thread_count = 1;
    return avcodec_open2(*codec, decoder, NULL);
}

/* Takes the available pictures from the decoder. 0 = it needs more input, or is at its end. */
static int receive_frames(bare_thread *self)
{
    while (avcodec_receive_frame(self->codec, self->frame) == 0) {
        if (scale_frame(self) < 0)
            return -1;
    }
    return 0;
}

/* ---- chosen frames ------------------------------------------------------------------------------------------------ */

/* The times of the packets of a file, and of its keyframes, in ascending order. */
typedef struct packet_times {
    int64_t *all, *keys;
    size_t num, num_keys, room;
} packet_times;

static int by_time(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static bool grow(int64_t **array, size_t room)
{
    int64_t *grown = realloc(*array, room * sizeof *grown);
    if (grown)
        *array = grown;
    return grown;
}

static int add_time(packet_times *times, int64_t time, bool is_key)
{
    if (time == AV_NOPTS_VALUE)
        return -1;
    if (times->num == times->room) {
        size_t room = times->room ? 2 * times->room : 1024;
        if (!grow(&times->all, room) || !grow(&times->keys, room))
            return -1;
        times->room = room;
    }
    times->all[times->num++] = time;
    if (is_key)
        times->keys[times->num_keys++] = time;
    return 0;
}

static int read_times(bare_thread *self, int stream, packet_times *times)
{
    int rc = 0;
    while (rc == 0 && av_read_frame(self->format, self->packet) == 0) {
        if (self->packet->stream_index == stream)
            rc = add_time(times, self->packet->pts, self->packet->flags & AV_PKT_FLAG_KEY);
        av_packet_unref(self->packet);
    }
    if (rc != 0 || !times->num || !times->num_keys)
        return -1;
    qsort(times->all, times->num, sizeof *times->all, by_time);
    qsort(times->keys, times->num_keys, sizeof *times->keys, by_time);
    return 0;
}

/* Chosen frames of one group of pictures. */
typedef struct chosen_group {
    int64_t key;
    const int64_t *wanted;
    size_t num_wanted;
} chosen_group;

static bool is_wanted(const chosen_group *group, int64_t time)
{
    for (size_t i = 0; i < group->num_wanted; i++)
        if (group->wanted[i] == time)
            return true;
    return false;
}

static int receive_wanted(bare_thread *self, const chosen_group *group)
{
    while (avcodec_receive_frame(self->codec, self->frame) == 0)
        if (is_wanted(group, self->frame->pts) && scale_frame(self) < 0)
            return -1;
    return 0;
}

/* The last packet that is wanted is the last one that is decoded. */
static int decode_group(bare_thread *self, int stream, const chosen_group *group)
{
    size_t num_left = group->num_wanted;
    int rc = av_seek_frame(self->format, stream, group->key, AVSEEK_FLAG_BACKWARD);
    avcodec_flush_buffers(self->codec);
    while (rc >= 0 && num_left && av_read_frame(self->format, self->packet) == 0) {
        bool is_of_stream = self->packet->stream_index == stream;
        bool is_chosen = is_of_stream && is_wanted(group, self->packet->pts);
        self->codec->skip_frame = is_chosen ? AVDISCARD_DEFAULT : AVDISCARD_NONREF;
        num_left -= is_chosen;
        if (is_of_stream && avcodec_send_packet(self->codec, self->packet) == 0)
            rc = receive_wanted(self, group);
        av_packet_unref(self->packet);
    }
    avcodec_send_packet(self->codec, NULL);
    return rc < 0 ? rc : receive_wanted(self, group);
}

static int64_t key_of(const packet_times *times, int64_t time)
{
    int64_t key = times->keys[0];
    for (size_t i = 0; i < times->num_keys && times->keys[i] <= time; i++)
        key = times->keys[i];
    return key;
}

static int decode_chosen(bare_thread *self, int stream)
{
    packet_times times = { NULL, NULL, 0, 0, 0 };
    size_t numbers[MOST_CHOSEN], count = 0;
    int64_t wanted[MOST_CHOSEN];
    int rc = read_times(self, stream, &times);
    if (rc == 0)
        count = self->job->choose(times.num, numbers);
    for (size_t i = 0; i < count; i++)
        wanted[i] = times.all[numbers[i]];
    for (size_t first = 0, next; rc == 0 && first < count; first = next) {
        int64_t key = key_of(&times, wanted[first]);
        for (next = first + 1; next < count && key_of(&times, wanted[next]) == key; next++)
            continue;
        rc = decode_group(self, stream, &(chosen_group){ key, wanted + first, next - first });
    }
    free(times.all);
    free(times.keys);
    return rc < 0 || self->num_pictures != count ? -1 : 0;
}

/* ---- a clip --------------------------------------------------------------------------------------------------------- */

static int decode_clip(bare_thread *self, const char *path)
{
    int stream = -1;
    if (bare_open(path, &self->format, &self->codec, &stream) < 0)
        return -1;
    if (self->job->choose)
        return decode_chosen(self, stream);
    while (av_read_frame(self->format, self->packet) == 0) {
        int rc = 0;
        if (self->packet->stream_index == stream && avcodec_send_packet(self->codec, self->packet) == 0)
            rc = receive_frames(self);
        av_packet_unref(self->packet);
        if (rc < 0)
            return rc;
    }
    avcodec_send_packet(self->codec, NULL);
    return receive_frames(self) < 0 || self->num_pictures == 0 ? -1 : 0;
}

static void do_clip(bare_thread *self, const char *path)
{
    int rc = decode_clip(self, path);
    if (rc < 0) {
        self->sums.num_failures++;
    } else {
        size_t picture_bytes = (size_t)self->job->width * (size_t)self->job->height * 3;
        self->sums.num_clips++;
        self->sums.num_frames += self->num_pictures;
        if (self->job->hash)
            self->sums.hash += bare_hash(self->pictures, self->num_pictures * picture_bytes);
    }
    avcodec_free_context(&self->codec);
    avformat_close_input(&self->format);
    free(self->pictures);
    self->pictures = NULL;
    self->num_pictures = self->max_pictures = 0;
}

static void *thread_main(void *argument)
{
    bare_thread *self = argument;
    size_t path;
    self->packet = av_packet_alloc();
    self->frame = av_frame_alloc();
    while ((path = atomic_fetch_add(self->next_path, 1)) < self->job->num_paths)
        do_clip(self, self->job->paths[path]);
    sws_freeContext(self->sws);
    av_freep(&self->spare[0]);
    av_packet_free(&self->packet);
    av_frame_free(&self->frame);
    return NULL;
}

int bare_loop(const bare_job *job, bare_result *result)
{
    atomic_size_t next_path = 0;
    bare_thread *threads = memory_get(job->num_threads, sizeof *threads);
    pthread_t *handles = memory_get(job->num_threads, sizeof *handles);
    unsigned num_started = 0;
    *result = (bare_result){ 0 };
    av_log_set_level(AV_LOG_QUIET);
    while (num_started < job->num_threads) {
        threads[num_started] = (bare_thread){ .job = job, .next_path = &next_path };
        if (pthread_create(&handles[num_started], NULL, thread_main, &threads[num_started]) != 0)
            break;
        num_started++;
    }
    for (unsigned i = 0; i < num_started; i++) {
        pthread_join(handles[i], NULL);
        result->num_clips += threads[i].sums.num_clips;
        result->num_failures += threads[i].sums.num_failures;
        result->num_frames += threads[i].sums.num_frames;
        result->hash += threads[i].sums.hash;
    }
    free(threads);
    free(handles);
    return num_started == job->num_threads ? 0 : -1;
}
