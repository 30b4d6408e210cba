/*
 * libFuzzer's target: the video decode stage from a file's bytes to its result, with every way of choosing frames. The last
 * bytes of the input are the options, so that any clip is an input. The stage's task is played by this file; there is no
 * pipeline and no other thread.
 *
 * FFmpeg itself is taken as it is installed: what is looked for are faults of ours. See tests/fuzz/run.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/engine.h>
#include <weir/video.h>

#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/reader/frame_reader.h"

enum { MAX_QUESTIONS = 3000, MAX_CHUNKS = 10000, NUM_OPTION_BYTES = 12, MAX_LIST = 4 };

/* ---- the task ------------------------------------------------------------------------------------------------ */

struct weir_task {
    const void *config;
    unsigned num_questions; /* whether to stop; the answer is yes when there have been many */
    bool has_failed;
    uint32_t num_chunks;
};

static struct weir_task task;

bool weir_task_should_stop(const weir_task *asked)
{
    (void)asked;
    return ++task.num_questions > MAX_QUESTIONS;
}

const char *weir_task_label(const weir_task *asked)
{
    (void)asked;
    return "";
}

uint64_t weir_task_seq(const weir_task *asked)
{
    (void)asked;
    return 7;
}

uint32_t weir_task_num_chunks(const weir_task *asked)
{
    return asked->num_chunks;
}

const void *weir_task_config(const weir_task *asked)
{
    return asked->config;
}

int weir_task_advance(weir_task *of, const char *unit, uint64_t amount)
{
    (void)of;
    return *unit && amount ? WEIR_OK : WEIR_EINVAL;
}

int weir_task_set_held(weir_task *of, weir_holder holder, uint64_t bytes)
{
    (void)of;
    return holder <= WEIR_HOLDER_STAGE && bytes <= UINT64_C(1) << 46 ? WEIR_OK : WEIR_EINVAL;
}

int weir_task_set_part(weir_task *of, const weir_part_info *part, int64_t number)
{
    (void)of;
    (void)part;
    return number < 0 ? WEIR_EINVAL : WEIR_OK;
}

int weir_task_set_text(weir_task *of, const weir_part_info *part, const char *text)
{
    (void)of;
    (void)part;
    (void)text;
    return WEIR_OK;
}

int weir_task_fail(weir_task *failed, int status, int library_code, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    (void)library_code;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    failed->has_failed = true;
    if (status >= 0 || message[0] == '\0')
        abort(); /* a failure has a status and a reason */
    return status;
}

/* ---- the options --------------------------------------------------------------------------------------------- */

static void read_options(weir_video_config *config, weir_picture_config *picture,
                         const uint8_t bytes[NUM_OPTION_BYTES], int64_t list[MAX_LIST])
{
    bool is_list = bytes[0] % 8 == WEIR_SAMPLE_INDICES || bytes[0] % 8 == WEIR_SAMPLE_TIMES;
    for (unsigned i = 0; i < MAX_LIST; i++)
        list[i] = bytes[0] % 8 == WEIR_SAMPLE_TIMES ? bytes[4 + i] * (WEIR_SECOND / 64) : (int8_t)bytes[4 + i];
    static const weir_decoder_config decoder = { .max_pixels = 1 << 18 };
    *picture = (weir_picture_config){ .width = bytes[1] % 64,
                                      .height = bytes[2] % 64,
                                      .resize = (weir_resize)(bytes[3] % 3),
                                      .pixel = (weir_pixel)(bytes[3] / 3 % 3),
                                      .layout = (weir_layout)(bytes[3] / 9 % 2),
                                      .scaler = bytes[3] & 0x80 ? WEIR_SCALER_EXACT : WEIR_SCALER_DEFAULT };
    *config = (weir_video_config){ .decoder = &decoder,
                                   .decoder_size = sizeof decoder,
                                   .picture = picture,
                                   .picture_size = sizeof *picture,
                                   .max_bytes = 1 << 24,
                                   .sampling = { .what = (weir_sample)(bytes[0] % (WEIR_SAMPLE_CLIPS + 1)) },
                                   .seed = bytes[4],
                                   .damage = (weir_damage)(bytes[0] >> 7),
                                   .min_share = bytes[10] % 4 / 4.0,
                                   .max_frames = 1 << 12 };
    weir_sampling *sampling = &config->sampling;
    sampling->indices = sampling->times_ns = list;
    sampling->num_indices = sampling->num_times = MAX_LIST;
    if (is_list)
        return;
    config->chunk_frames = bytes[11] % 8;
    sampling->start_ns = bytes[5] * (WEIR_SECOND / 128);
    sampling->end_ns = bytes[6] % 2 ? sampling->start_ns + bytes[6] * (WEIR_SECOND / 128) : 0;
    sampling->count = bytes[7];
    switch (sampling->what) {
    case WEIR_SAMPLE_EVERY: sampling->every = bytes[8]; break;
    case WEIR_SAMPLE_RATE:
        sampling->rate_num = bytes[8];
        sampling->rate_den = bytes[9] % 8;
        break;
    case WEIR_SAMPLE_RANDOM:
        sampling->length_frames = bytes[8] % 2 ? bytes[9] : 0;
        sampling->length_ns = bytes[8] % 2 ? 0 : bytes[9] * (WEIR_SECOND / 128);
        break;
    case WEIR_SAMPLE_CLIPS:
        sampling->clip_start = (weir_clip_start)(bytes[8] % 4);
        sampling->clip_short = (weir_clip_short)(bytes[8] / 4 % 3);
        sampling->num_clips = bytes[8] / 16 % 4;
        sampling->stride_frames = bytes[9] % 2 ? bytes[9] / 2 : 0;
        sampling->stride_ns = bytes[9] % 2 ? 0 : bytes[9] * (WEIR_SECOND / 128);
        break;
    default: break;
    }
}

/* ---- one input ----------------------------------------------------------------------------------------------- */

/* Touches all that the result promises, for the sanitizers to see. */
static void check_result(const weir_frames *frames)
{
    volatile uint64_t sum = 0;
    if (frames->num_frames == 0)
        abort(); /* an item with no frame fails */
    for (size_t i = 0; i < frames->num_frames * frames->frame_bytes; i += 61)
        sum += frames->data[i];
    for (size_t i = 0; i < frames->num_frames; i++)
        sum += (uint64_t)frames->pts[i] + (uint64_t)frames->times_ns[i] + frames->mask[i];
    if (frames->num_clips && frames->num_frames % frames->num_clips)
        abort(); /* all clips have the same number of frames */
}

static void run_stage(void *worker, char *path)
{
    weir_item in = { .data = path, .type = WEIR_TYPE_TEXT };
    for (unsigned chunk = 0; chunk < MAX_CHUNKS; chunk++) {
        weir_item out = { 0 };
        int rc = weir_video_decode.run(worker, &in, &out, &task);
        if (rc == WEIR_OK || rc == WEIR_MORE)
            check_result(out.data);
        else if (!task.has_failed || out.data)
            abort();
        weir_item_release(&out);
        task.num_chunks++;
        if (rc != WEIR_MORE)
            return;
    }
}

static bool has_asked_enough(void *self)
{
    (void)self;
    return weir_task_should_stop(&task);
}

/* The reader alone, with packets that are not kept, as in large files. */
static void run_reader(const weir_video_config *config, const char *path)
{
    weir_error error = { 0 };
    weir_ffmpeg_log log = { 0 };
    weir_decoder decoder = {
        .should_stop = has_asked_enough,
        .config = config->decoder,
        .input.config = config->input,
    };
    weir_frame_reader reader = { .file = { .decoder = &decoder, .far_bytes = 1 },
                                 .sampling = &config->sampling,
                                 .seed = config->seed,
                                 .max_frames = config->max_frames,
                                 .max_duration_ns = INT64_MAX };
    weir__ffmpeg_log_begin(&log, path, path);
    if (weir__decoder_init(&decoder) != WEIR_OK)
        abort();
    int rc = weir__frame_reader_open(&reader, path, &error);
    if (rc == WEIR_OK)
        rc = weir__frame_reader_select(&reader, 7, &error);
    while (rc == WEIR_OK)
        rc = weir__frame_reader_next(&reader, &error);
    if (rc != WEIR_EOF && !error.status)
        abort(); /* a failure has a reason */
    weir__frame_reader_close(&reader);
    weir__decoder_free(&decoder);
    weir__ffmpeg_log_end();
}

static int input_file(char *path, size_t size)
{
    static int file = -1;
    if (file < 0)
        file = memfd_create("clip", 0);
    snprintf(path, size, "/proc/self/fd/%d", file);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    uint8_t bytes[NUM_OPTION_BYTES] = { 0 };
    int64_t list[MAX_LIST];
    weir_video_config config;
    weir_picture_config picture;
    char path[64];
    if (size_bytes > sizeof bytes)
        memcpy(bytes, data + size_bytes - sizeof bytes, sizeof bytes);
    read_options(&config, &picture, bytes, list);
    int file = input_file(path, sizeof path);
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size_bytes, 0) != (ssize_t)size_bytes)
        return 0;
    if (weir_video_decode.config_init(&config, NULL) != WEIR_OK)
        return 0;

    if (bytes[10] & 0x80) {
        task = (struct weir_task){ .config = &config };
        run_reader(&config, path);
        weir_video_decode.config_free(&config);
        return 0;
    }
    void *worker = calloc(1, weir_video_decode.worker_size);
    task = (struct weir_task){ .config = &config };
    if (worker && weir_video_decode.worker_init(worker, &config, &task) == WEIR_OK) {
        run_stage(worker, path);
        weir_video_decode.worker_free(worker);
    }
    free(worker);
    weir_video_decode.config_free(&config);
    return 0;
}
