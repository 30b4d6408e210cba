/*
 * Readers: their frames are those of the video stage. This holds in whatever order they are asked, wherever the bytes
 * come from, and after a failure or a stop at any point.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/test_case.h"

#include <weir/video.h>
#include <weir/video_reader.h>

#include "common/random.h"
#include "tests/bytes_source.h"
#include "tests/clips.h"
#include "tests/fenced.h"
#include "tests/result.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { NUM_FRAMES = 40 };

static const weir_picture_config small = { .width = 48, .height = 32 };

/* ---- files ---------------------------------------------------------------------------------------------------- */

static const char *make_clip(size_t which)
{
    static const char *const clips[][2] = {
        { "b.mp4",
          "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v libx264 -preset veryfast -g 8 -bf 2 -pix_fmt yuv420p" },
        { "key.mkv", "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v libx264 -preset veryfast -g 8 -bf 2" },
        { "old.avi", "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v mpeg4 -g 8" },
        { "t.ts", "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v mpeg2video -g 8 -bf 2" },
    };
    return which < LENGTH(clips) ? clips_make(clips[which][0], clips[which][1]) : NULL;
}

enum { NUM_CLIPS = 4 };

/* Larger than what is read at once. */
static const char *make_large(void)
{
    return clips_make("large.mp4", "-f lavfi -i testsrc2=s=320x240:r=20:d=2 -c:v mpeg4 -g 8 -q:v 2");
}

/* A file that is read by functions; it can fail. */
typedef struct store {
    weir_bytes *bytes;
    size_t position;
    unsigned num_reads;
    unsigned num_seeks;
    uint64_t num_bytes;    /* read */
    unsigned num_rewinds;  /* to byte 0 */
    unsigned failing_read; /* counted from 1; 0 = none */
    int64_t failure;
    unsigned num_closed;
} store;

static int64_t read_store(void *self, uint8_t *data, size_t num_bytes)
{
    store *file = self;
    size_t left_bytes = file->bytes->size_bytes - file->position;
    if (++file->num_reads == file->failing_read) {
        file->position = file->bytes->size_bytes / 2; /* a read that failed may have moved it */
        return file->failure;
    }
    num_bytes = num_bytes < left_bytes ? num_bytes : left_bytes;
    memcpy(data, file->bytes->data + file->position, num_bytes);
    file->position += num_bytes;
    file->num_bytes += num_bytes;
    return (int64_t)num_bytes;
}

static int seek_store(void *self, int64_t position)
{
    store *file = self;
    assert_in_range(position, 0, file->bytes->size_bytes);
    file->num_seeks += file->position != (size_t)position;
    file->position = (size_t)position;
    file->num_rewinds += position == 0;
    return WEIR_OK;
}

static void close_store(void *self)
{
    ((store *)self)->num_closed++;
}

static weir_file_functions functions_of(store *file, bool seeks)
{
    return (weir_file_functions){
        .self = file,
        .read = read_store,
        .seek = seeks ? seek_store : NULL,
        .size_bytes = seeks ? (int64_t)file->bytes->size_bytes : 0,
        .close = close_store,
    };
}

/* ---- asking --------------------------------------------------------------------------------------------------- */

static weir_video_reader *reader_of(const weir_video_source *source, const weir_video_config *config)
{
    weir_video_reader *reader = NULL;
    weir_error error = { 0 };
    if (weir_video_reader_open(&reader, source, sizeof *source, config, sizeof *config, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    assert_non_null(reader);
    return reader;
}

static weir_video_reader *reader_of_path(const char *path)
{
    return reader_of(&(weir_video_source){ .path = path }, &(weir_video_config){ .seed = 7 });
}

static int ask(weir_video_reader *reader, weir_sampling sampling, weir_frames **frames, weir_error *error)
{
    return weir_video_reader_frames(reader, &sampling, sizeof sampling, &small, sizeof small, frames, error);
}

static weir_frames *stage_frames(const char *path, const weir_sampling *sampling, const weir_picture_config *picture)
{
    weir_video_config config = {
        .sampling = *sampling, .seed = 7, .picture = picture, .picture_size = sizeof *picture
    };
    uint64_t size_bytes;
    weir_error error = { 0 };
    weir_frames *frames = result_of_path(path, &weir_video_decode, &config, &size_bytes, &error);
    if (!frames)
        fail_msg("%s: %s", path, error.message);
    return frames;
}

static void assert_same(const weir_frames *frames, const weir_frames *expected)
{
    assert_non_null(frames);
    assert_int_equal(frames->num_frames, expected->num_frames);
    assert_int_equal(frames->width, expected->width);
    assert_int_equal(frames->height, expected->height);
    assert_int_equal(frames->pixel, expected->pixel);
    assert_memory_equal(frames->pts, expected->pts, expected->num_frames * sizeof *expected->pts);
    assert_memory_equal(frames->data, expected->data, expected->num_frames * expected->frame_bytes);
    assert_int_equal(frames->time_base_den, expected->time_base_den);
    assert_string_equal(frames->codec, expected->codec);
    assert_int_equal(frames->stream, expected->stream);
    assert_int_equal(frames->num_errors, expected->num_errors);
    assert_int_equal(frames->num_missing_frames, expected->num_missing_frames);
    assert_int_equal(frames->cost.size_bytes, expected->cost.size_bytes);
    assert_int_equal(frames->cost.num_frames, expected->cost.num_frames);
    assert_true(frames->is_last_chunk);
}

static void expect_frames(weir_video_reader *reader, const char *path, weir_sampling sampling)
{
    weir_error error = { 0 };
    weir_frames *frames = NULL;
    weir_frames *expected = stage_frames(path, &sampling, &small);
    if (ask(reader, sampling, &frames, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    assert_same(frames, expected);
    weir_frames_free(frames);
    weir_frames_free(expected);
}

static const int64_t some_indices[] = { 31, 2, -1, 2, 17 };
static const int64_t some_times[] = { 1000000000, 0, 1900000000 };

static const weir_sampling samplings[] = {
    { .what = WEIR_SAMPLE_UNIFORM, .count = 5 },
    { .what = WEIR_SAMPLE_INDICES, .indices = some_indices, .num_indices = LENGTH(some_indices) },
    { .what = WEIR_SAMPLE_ALL },
    { .what = WEIR_SAMPLE_TIMES, .times_ns = some_times, .num_times = LENGTH(some_times) },
    { .what = WEIR_SAMPLE_ALL, .count = 4 },
    { .what = WEIR_SAMPLE_EVERY, .every = 3 },
    { .what = WEIR_SAMPLE_RATE, .rate_num = 7 },
    { .what = WEIR_SAMPLE_KEYFRAMES },
    { .what = WEIR_SAMPLE_RANDOM, .count = 3 },
    { .what = WEIR_SAMPLE_ALL, .start_ns = 500000000, .end_ns = 900000000 },
    { .what = WEIR_SAMPLE_UNIFORM, .count = 50 }, /* some twice, the last one, too */
};

static void expect_all_samplings(weir_video_reader *reader, const char *path)
{
    for (size_t i = 0; i < LENGTH(samplings); i++)
        expect_frames(reader, path, samplings[i]);
}

static void expect_one(weir_video_reader *reader, const weir_frames *whole, int64_t index)
{
    weir_frames *frames = NULL;
    weir_sampling one = { .what = WEIR_SAMPLE_INDICES, .indices = &index, .num_indices = 1 };
    assert_int_equal(ask(reader, one, &frames, NULL), WEIR_OK);
    assert_int_equal(frames->num_frames, 1);
    assert_int_equal(frames->pts[0], whole->pts[index]);
    assert_memory_equal(frames->data, whole->data + (size_t)index * whole->frame_bytes, whole->frame_bytes);
    weir_frames_free(frames);
}

/* ---- the same as the stage ------------------------------------------------------------------------------------ */

TEST_CASE(the_frames_of_a_reader_are_those_of_the_stage_for_one_request_after_the_other)
{
    for (size_t i = 0; i < NUM_CLIPS; i++) {
        const char *path = make_clip(i);
        if (!path)
            continue;
        weir_video_reader *reader = reader_of_path(path);
        expect_all_samplings(reader, path);
        weir_video_reader_free(reader);
    }
}

TEST_CASE(it_is_the_same_wherever_the_bytes_come_from)
{
    const weir_video_config config = { .seed = 7 };
    for (size_t i = 0; i < NUM_CLIPS; i++) {
        const char *path = make_clip(i);
        if (!path)
            continue;
        store file = { .bytes = bytes_of_file(path, path) };
        weir_file_functions seeks = functions_of(&file, true);
        weir_file_functions streams = functions_of(&file, false);
        const weir_video_source sources[] = {
            { .bytes = file.bytes },
            { .bytes = bytes_of_file(path, path), .own_bytes = true },
            { .functions = &seeks, .functions_size = sizeof seeks, .name = path },
            { .functions = &streams, .functions_size = sizeof streams, .name = path },
        };
        for (size_t j = 0; j < LENGTH(sources); j++) {
            file.position = 0;
            weir_video_reader *reader = reader_of(&sources[j], &config);
            expect_all_samplings(reader, path);
            weir_video_reader_free(reader);
        }
        assert_int_equal(file.num_closed, 2);
        weir_bytes_free(file.bytes);
    }
}

TEST_CASE(a_picture_can_be_another_one_in_each_request)
{
    const char *path = make_clip(0);
    static const weir_picture_config pictures[] = {
        { .width = 48, .height = 32 },
        { 0 },
        { .width = 32, .height = 32, .resize = WEIR_RESIZE_CROP, .layout = WEIR_LAYOUT_NCHW },
        { .pixel = WEIR_PIXEL_YUV420P },
        { .width = 48, .height = 32 },
    };
    const weir_sampling sampling = { .what = WEIR_SAMPLE_EVERY, .every = 5 };
    if (!path)
        return;
    weir_video_reader *reader = reader_of_path(path);
    for (size_t i = 0; i < LENGTH(pictures); i++) {
        weir_frames *frames = NULL;
        weir_frames *expected = stage_frames(path, &sampling, &pictures[i]);
        assert_int_equal(weir_video_reader_frames(reader, &sampling, sizeof sampling, &pictures[i],
                                                  sizeof pictures[i], &frames, NULL),
                         WEIR_OK);
        assert_same(frames, expected);
        weir_frames_free(frames);
        weir_frames_free(expected);
    }
    weir_video_reader_free(reader);
}

TEST_CASE(frames_that_are_asked_one_by_one_in_random_order_are_those_of_the_whole)
{
    for (size_t i = 0; i < NUM_CLIPS; i++) {
        const char *path = make_clip(i);
        if (!path)
            continue;
        weir_frames *whole = stage_frames(path, &(weir_sampling){ 0 }, &small);
        weir_video_reader *reader = reader_of_path(path);
        uint64_t draw = i + 1;
        for (size_t j = 0; j < NUM_FRAMES; j++) {
            int64_t index = (int64_t)weir__random_below(&draw, whole->num_frames);
            expect_one(reader, whole, index);
        }
        weir_video_reader_free(reader);
        weir_frames_free(whole);
    }
}

TEST_CASE(random_frames_are_determined_by_the_seed_the_epoch_and_the_number)
{
    const char *path = make_clip(0);
    const weir_sampling random = { .what = WEIR_SAMPLE_RANDOM, .count = 3 };
    weir_frames *frames[3] = { 0 };
    if (!path)
        return;
    weir_video_reader *reader = reader_of_path(path);
    for (size_t i = 0; i < LENGTH(frames); i++) {
        assert_int_equal(weir_video_reader_set_number(reader, 3, i % 2), WEIR_OK);
        assert_int_equal(ask(reader, random, &frames[i], NULL), WEIR_OK);
    }
    assert_same(frames[2], frames[0]);
    assert_memory_not_equal(frames[1]->pts, frames[0]->pts, 3 * sizeof(int64_t));
    for (size_t i = 0; i < LENGTH(frames); i++)
        weir_frames_free(frames[i]);
    weir_video_reader_free(reader);
}

/* ---- memory of the program ------------------------------------------------------------------------------------ */

static void expect_into(weir_video_reader *reader, const weir_sampling *sampling, const weir_picture_config *picture,
                        bool at_start)
{
    weir_frames *frames = NULL;
    weir_frames *expected = NULL;
    assert_int_equal(
        weir_video_reader_frames(reader, sampling, sizeof *sampling, picture, sizeof *picture, &expected, NULL),
        WEIR_OK);
    size_t num_bytes = expected->num_frames * expected->frame_bytes;
    fenced memory = fenced_new(num_bytes, at_start);
    assert_int_equal(weir_video_reader_frames_into(reader, sampling, sizeof *sampling, picture, sizeof *picture,
                                                   memory.data, num_bytes, &frames, NULL),
                     WEIR_OK);
    assert_ptr_equal(frames->data, memory.data);
    assert_true(frames->memory_bytes < sizeof *frames + expected->num_frames * 2 * (2 * sizeof(int64_t) + 1));
    assert_same(frames, expected);
    weir_frames_free(frames);
    assert_memory_equal(memory.data, expected->data, num_bytes);
    fenced_free(&memory);
    weir_frames_free(expected);
}

TEST_CASE(frames_in_memory_of_the_program_are_the_same_and_nothing_else_is_written)
{
    static const weir_picture_config pictures[] = {
        { .width = 48, .height = 32 },
        { .width = 33, .height = 17, .layout = WEIR_LAYOUT_NCHW },
        { .width = 3, .height = 2 },
        { .width = 33, .height = 17 },
        { .width = 90, .height = 63, .scaler = WEIR_SCALER_FAST },
        { .width = 95, .height = 64, .scaler = WEIR_SCALER_EXACT, .resize = WEIR_RESIZE_STRETCH },
        { .width = 35, .height = 19, .scaler = WEIR_SCALER_EXACT },
        { .width = 35, .height = 19, .pixel = WEIR_PIXEL_YUV420P },
        { .width = 5, .height = 3, .pixel = WEIR_PIXEL_GRAY8 },
    };
    const char *path = make_clip(0);
    if (!path)
        return;
    weir_video_reader *reader = reader_of_path(path);
    for (size_t i = 0; i < LENGTH(samplings); i++)
        for (size_t j = 0; j < LENGTH(pictures); j++)
            for (int at_start = 0; at_start < 2; at_start++)
                expect_into(reader, &samplings[i], &pictures[j], at_start);
    weir_video_reader_free(reader);
}

TEST_CASE(pictures_of_odd_sizes_in_memory_of_the_program_are_the_same)
{
    static const weir_picture_config pictures[] = {
        { 0 },
        { .scaler = WEIR_SCALER_EXACT },
        { .scaler = WEIR_SCALER_FAST },
        { .width = 49, .height = 31, .resize = WEIR_RESIZE_STRETCH },
        { .width = 181, .height = 121, .scaler = WEIR_SCALER_EXACT },
    };
    static const char *const formats[] = { "yuv420p", "yuv444p", "gray", "bgr0" };
    for (size_t i = 0; i < LENGTH(formats); i++) {
        char name[32], arguments[256];
        snprintf(name, sizeof name, "odd_%s.mkv", formats[i]);
        snprintf(arguments, sizeof arguments, "-f lavfi -i testsrc2=s=91x63:r=10 -frames:v 3 -c:v ffv1 -pix_fmt %s",
                 formats[i]);
        const char *path = clips_make(name, arguments);
        if (!path)
            continue;
        weir_video_reader *reader = reader_of_path(path);
        for (size_t j = 0; j < LENGTH(pictures); j++)
            expect_into(reader, &(weir_sampling){ 0 }, &pictures[j], false);
        weir_video_reader_free(reader);
    }
}

TEST_CASE(memory_that_is_too_small_is_said_and_not_left)
{
    const char *path = make_clip(0);
    static const size_t missing[] = { 1, 48 * 32 * 3, 48 * 32 * 3 * 3 };
    if (!path)
        return;
    weir_video_reader *reader = reader_of_path(path);
    for (size_t i = 0; i < LENGTH(samplings); i++) {
        weir_frames *frames = NULL;
        weir_frames_size size;
        weir_error error = { 0 };
        const weir_sampling *sampling = &samplings[i];
        assert_int_equal(weir_video_reader_measure(reader, sampling, sizeof *sampling, &small, sizeof small, &size,
                                                   sizeof size, NULL),
                         WEIR_OK);
        fenced memory = fenced_new(size.num_bytes - missing[i % LENGTH(missing)], false);
        assert_int_equal(weir_video_reader_frames_into(reader, sampling, sizeof *sampling, &small, sizeof small,
                                                       memory.data, memory.size_bytes, &frames, &error),
                         WEIR_ELIMIT);
        assert_null(frames);
        assert_non_null(strstr(error.message, "bytes of the memory that was given"));
        fenced_free(&memory);
        expect_frames(reader, path, *sampling);
    }
    weir_video_reader_free(reader);
}

/* ---- asked often ---------------------------------------------------------------------------------------------- */

TEST_CASE(further_requests_for_selected_frames_do_not_read_the_file_again)
{
    const char *path = make_clip(0);
    if (!path)
        return;
    store file = { .bytes = bytes_of_file(path, path) };
    weir_file_functions functions = functions_of(&file, true);
    weir_video_source source = { .functions = &functions, .functions_size = sizeof functions, .name = path };
    weir_video_reader *reader = reader_of(&source, &(weir_video_config){ .seed = 7 });
    expect_frames(reader, path, samplings[0]);
    unsigned num_reads = file.num_reads;
    assert_true(num_reads > 0);
    for (int i = 0; i < 3; i++) {
        expect_frames(reader, path, samplings[0]);
        expect_frames(reader, path, samplings[1]);
        expect_frames(reader, path, samplings[5]);
    }
    assert_int_equal(file.num_reads, num_reads);
    weir_video_reader_free(reader);
    weir_bytes_free(file.bytes);
}

TEST_CASE(after_a_read_that_failed_the_next_request_is_right)
{
    const char *path = make_large();
    unsigned num_failed = 0;
    if (!path)
        return;
    store file = { .bytes = bytes_of_file(path, path), .failure = WEIR_EIO };
    weir_file_functions functions = functions_of(&file, true);
    weir_video_source source = { .functions = &functions, .functions_size = sizeof functions, .name = path };
    for (size_t i = 0; i < LENGTH(samplings); i++) {
        for (unsigned failing = 1; failing < 64; failing++) {
            weir_frames *frames = NULL;
            weir_error error = { 0 };
            weir_video_reader *reader = reader_of(&source, &(weir_video_config){ .seed = 7 });
            if (failing % 2)
                expect_frames(reader, path, samplings[2]); /* then the next request opens the file again */
            file.num_reads = 0;
            file.failing_read = failing;
            int rc = ask(reader, samplings[i], &frames, &error);
            bool has_failed = file.num_reads >= failing;
            file.failing_read = 0;
            assert_int_equal(rc, has_failed ? WEIR_EIO : WEIR_OK);
            assert_int_equal(frames != NULL, !has_failed);
            weir_frames_free(frames);
            if (has_failed)
                expect_frames(reader, path, samplings[(i + failing) % LENGTH(samplings)]);
            weir_video_reader_free(reader);
            num_failed += has_failed;
            if (!has_failed)
                break;
        }
    }
    assert_true(num_failed >= LENGTH(samplings) - 1);
    weir_bytes_free(file.bytes);
}

/* Its packets are more than what is cached: those of other frames are read for each request. */
static const char *make_uncached(void)
{
    return clips_make("raw.mov", "-f lavfi -i testsrc2=s=640x480:r=20:d=3 -c:v rawvideo -pix_fmt rgb24");
}

TEST_CASE(in_a_file_whose_packets_are_not_kept_requests_are_right_also_after_failures)
{
    static const unsigned failing[] = { 1, 2, 30, 200, 0 };
    const char *path = make_uncached();
    unsigned num_failed = 0;
    if (!path)
        return;
    store file = { .bytes = bytes_of_file(path, path), .failure = WEIR_EIO };
    weir_file_functions functions = functions_of(&file, true);
    weir_video_source source = { .functions = &functions, .functions_size = sizeof functions, .name = path };
    weir_video_reader *reader = reader_of(&source, &(weir_video_config){ .seed = 7 });
    const int64_t indices[] = { 15, 3, 16 };
    const weir_sampling some = { .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 3 };
    for (size_t i = 0; i < LENGTH(failing); i++) {
        weir_frames *frames = NULL;
        const int64_t elsewhere[] = { (int64_t)i * 7 + 30, (int64_t)i * 7 + 22, (int64_t)i * 7 + 31 };
        const weir_sampling others = { .what = WEIR_SAMPLE_INDICES, .indices = elsewhere, .num_indices = 3 };
        expect_frames(reader, path, some);
        file.num_reads = 0;
        file.failing_read = failing[i];
        int rc = ask(reader, others, &frames, NULL);
        bool has_failed = failing[i] && file.num_reads >= failing[i];
        assert_int_equal(rc, has_failed ? WEIR_EIO : WEIR_OK);
        num_failed += has_failed;
        file.failing_read = 0;
        weir_frames_free(frames);
        expect_frames(reader, path, others);
    }
    assert_in_range(num_failed, 2, LENGTH(failing) - 1);
    weir_video_reader_free(reader);
    weir_bytes_free(file.bytes);
}

typedef struct patience {
    unsigned num_asked;
    unsigned stop_at; /* 0 = never */
} patience;

static bool has_enough(void *self)
{
    patience *p = self;
    return ++p->num_asked >= p->stop_at && p->stop_at;
}

TEST_CASE(after_a_request_that_was_stopped_the_next_one_is_right)
{
    const char *path = make_clip(0);
    unsigned num_stopped = 0;
    if (!path)
        return;
    patience patient = { 0 };
    weir_video_source source = { .path = path, .should_stop = has_enough, .self = &patient };
    weir_video_reader *reader = reader_of(&source, &(weir_video_config){ .seed = 7 });
    for (unsigned stop_at = 1; stop_at <= 60; stop_at++) {
        weir_sampling sampling = samplings[stop_at * 3 % LENGTH(samplings)];
        weir_frames *frames = NULL;
        weir_error error = { 0 };
        patient = (patience){ .stop_at = stop_at };
        int rc = ask(reader, sampling, &frames, &error);
        bool was_stopped = patient.num_asked >= stop_at;
        patient = (patience){ 0 };
        assert_int_equal(rc, was_stopped ? WEIR_ESTOPPED : WEIR_OK);
        num_stopped += was_stopped;
        weir_frames_free(frames);
        expect_frames(reader, path, sampling);
    }
    assert_true(num_stopped > 5);
    weir_video_reader_free(reader);
}

TEST_CASE(after_a_request_that_is_not_possible_the_next_one_is_right)
{
    const char *path = make_clip(0);
    static const int64_t beyond[] = { 3, 4000 };
    const weir_sampling too_far = { .what = WEIR_SAMPLE_INDICES, .indices = beyond, .num_indices = 2 };
    const weir_sampling not_valid = { .what = WEIR_SAMPLE_EVERY };
    weir_frames *frames = NULL;
    weir_error error = { 0 };
    if (!path)
        return;
    weir_video_reader *reader = reader_of_path(path);
    for (size_t i = 0; i < LENGTH(samplings); i++) {
        error = (weir_error){ 0 };
        assert_int_equal(ask(reader, too_far, &frames, &error), WEIR_ERANGE);
        assert_null(frames);
        assert_non_null(strstr(error.message, "4000"));
        assert_int_equal(ask(reader, not_valid, &frames, &error), WEIR_EINVAL);
        assert_null(frames);
        expect_frames(reader, path, samplings[i]);
    }
    weir_video_reader_free(reader);
}

/* ---- forward, backward, and in between ------------------------------------------------------------------------- */

/* Its groups of pictures have B-frames, and its packets are more than what is cached. */
static const char *make_uncached_groups(void)
{
    return clips_make("noise.mp4", "-f lavfi -i testsrc2=s=640x480:r=20:d=3,noise=alls=100:allf=t -c:v mpeg4 -q:v 1 "
                                   "-qmin 1 -g 15 -bf 2 -pix_fmt yuv420p");
}

TEST_CASE(requests_that_go_forward_read_the_file_on_without_seeking)
{
    const char *path = make_uncached_groups();
    if (!path)
        return;
    store file = { .bytes = bytes_of_file(path, path) };
    weir_file_functions functions = functions_of(&file, true);
    weir_video_source source = { .functions = &functions, .functions_size = sizeof functions, .name = path };
    weir_video_reader *reader = reader_of(&source, &(weir_video_config){ .seed = 7 });
    weir_frames *whole = stage_frames(path, &(weir_sampling){ 0 }, &small);
    assert_true(file.bytes->size_bytes > 17 << 20);
    expect_one(reader, whole, 0);
    file.num_bytes = 0;
    file.num_seeks = 0;
    for (int64_t i = 1; i < whole->num_frames; i++)
        expect_one(reader, whole, i);
    assert_in_range(file.num_bytes, file.bytes->size_bytes / 2, file.bytes->size_bytes + file.bytes->size_bytes / 20);
    assert_in_range(file.num_seeks, 0, 1); /* back from the last packets, which tell when the video ends */
    weir_frames_free(whole);
    weir_video_reader_free(reader);
    weir_bytes_free(file.bytes);
}

static const char *make_kind(size_t which)
{
    static const char *const clips[][2] = {
        { "forward.mp4", "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v libx264 -preset veryfast -g 12 -bf 3" },
        { "open.mkv", "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v libx264 -preset veryfast -g 10 -bf 3 "
                      "-x264-params open-gop=1:b-pyramid=normal:scenecut=0" },
        { "vfr.mp4", "-f lavfi -i testsrc2=s=96x64:r=20:d=3 -c:v libx264 -preset veryfast -g 12 -bf 3 "
                     "-vf 'select=not(mod(n\\,7))+gt(mod(n\\,5)\\,2)' -fps_mode vfr" },
        { "hidden.webm", "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v libvpx-vp9 -cpu-used 5 -auto-alt-ref 1 "
                         "-lag-in-frames 16 -g 20 -b:v 200k -pix_fmt yuv420p" },
        { "counted.avi", "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v mpeg4 -g 12 -bf 2" },
        { "forward.ts", "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v libx264 -preset veryfast -g 12 -bf 3" },
        { "hevc.mp4", "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v libx265 -preset ultrafast -pix_fmt yuv420p "
                      "-x265-params keyint=12:bframes=4:log-level=1" },
    };
    return which < LENGTH(clips) ? clips_make(clips[which][0], clips[which][1]) : NULL;
}

enum { NUM_KINDS = 7 };

/* A reader that is asked at random, may be stopped and may fail to read. */
typedef struct talk {
    store file;
    patience patient;
    weir_video_reader *reader;
    const weir_frames *whole;
    uint64_t draw;
    int64_t last;     /* frame that was asked for */
    unsigned num_cut; /* requests that were stopped, or failed */
} talk;

static int64_t below(talk *t, int64_t bound)
{
    return (int64_t)weir__random_below(&t->draw, (uint64_t)bound);
}

/* Ascending frames, which begin after the last one asked for, with it, or anywhere. */
static uint32_t draw_frames(talk *t, int64_t indices[6])
{
    int64_t num_frames = t->whole->num_frames;
    int64_t way = below(t, 8);
    int64_t next = way < 5 ? t->last + 1 + below(t, 4) : way == 5 ? t->last : below(t, num_frames);
    uint32_t num_wanted = 1 + (uint32_t)(below(t, 2) * below(t, 6));
    uint32_t num_indices = 0;
    next = next < num_frames ? next : below(t, num_frames);
    for (; num_indices < num_wanted && next < num_frames; next += below(t, 5))
        indices[num_indices++] = t->last = next;
    return num_indices;
}

static void expect_taken(const talk *t, const weir_frames *frames, const int64_t *indices, uint32_t num_indices)
{
    const weir_frames *whole = t->whole;
    assert_int_equal(frames->num_frames, num_indices);
    assert_int_equal(frames->num_errors + frames->num_missing_frames, 0);
    for (size_t i = 0; i < num_indices; i++) {
        if (frames->pts[i] != whole->pts[indices[i]])
            fail_msg("frame %d has another time", (int)indices[i]);
        assert_memory_equal(frames->data + i * whole->frame_bytes,
                            whole->data + (size_t)indices[i] * whole->frame_bytes, whole->frame_bytes);
    }
}

/* Takes a part of the frames, one by one. */
static void take_some(talk *t, const weir_sampling *some)
{
    assert_int_equal(weir_video_reader_begin(t->reader, some, sizeof *some, &small, sizeof small, NULL), WEIR_OK);
    for (int64_t i = 0, end = below(t, (int64_t)some->num_indices + 1); i < end; i++) {
        weir_frames *frames = NULL;
        assert_int_equal(weir_video_reader_next(t->reader, &frames, NULL), WEIR_OK);
        expect_taken(t, frames, some->indices + i, 1);
        weir_frames_free(frames);
        t->last = some->indices[i];
    }
}

static void ask_at_random(talk *t)
{
    int64_t indices[6];
    uint32_t num_indices = draw_frames(t, indices);
    const weir_sampling some = { .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = num_indices };
    weir_frames *frames = NULL;
    if (below(t, 6) == 0) {
        take_some(t, &some);
        return;
    }
    bool is_cut = below(t, 8) == 0;
    t->patient = (patience){ .stop_at = is_cut ? 1 + (unsigned)below(t, 12) : 0 };
    t->file.num_reads = 0;
    t->file.failing_read = is_cut && below(t, 2) ? 1 : 0;
    int rc = ask(t->reader, some, &frames, NULL);
    assert_true(rc == WEIR_OK || is_cut);
    if (rc == WEIR_OK)
        expect_taken(t, frames, indices, num_indices);
    t->num_cut += rc != WEIR_OK;
    weir_frames_free(frames);
    t->patient = (patience){ 0 };
    t->file.failing_read = 0;
}

TEST_CASE(random_requests_forward_backward_and_cut_give_the_frames_of_the_whole)
{
    enum { NUM_REQUESTS = 300 };
    uint64_t seed = (uint64_t)time(NULL);
    unsigned num_cut = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    for (size_t i = 0; i < NUM_KINDS; i++) {
        const char *path = make_kind(i);
        if (!path)
            continue;
        weir_frames *whole = stage_frames(path, &(weir_sampling){ 0 }, &small);
        talk t = { .file = { .bytes = bytes_of_file(path, path), .failure = WEIR_EIO },
                   .whole = whole,
                   .draw = weir__random_seed(seed, i) };
        weir_file_functions functions = functions_of(&t.file, true);
        weir_video_source source = { .functions = &functions,
                                     .functions_size = sizeof functions,
                                     .name = path,
                                     .should_stop = has_enough,
                                     .self = &t.patient };
        t.reader = reader_of(&source, &(weir_video_config){ .seed = 7 });
        for (unsigned j = 0; j < NUM_REQUESTS; j++)
            ask_at_random(&t);
        weir_video_reader_free(t.reader);
        weir_frames_free(whole);
        weir_bytes_free(t.file.bytes);
        num_cut += t.num_cut;
    }
    assert_true(num_cut > NUM_REQUESTS / 20);
}

/* ---- a few frames at a time ----------------------------------------------------------------------------------- */

/* Takes all frames of the sampling, chunk_frames at a time. */
static void expect_next(const char *path, weir_sampling sampling, uint32_t chunk_frames)
{
    const uint32_t num_each = chunk_frames ? chunk_frames : 1;
    weir_video_reader *reader = reader_of(&(weir_video_source){ .path = path },
                                          &(weir_video_config){ .seed = 7, .chunk_frames = chunk_frames });
    weir_frames *whole = stage_frames(path, &sampling, &small);
    for (int again = 0; again < 2; again++) {
        uint32_t num_done = 0;
        weir_frames *frames = NULL;
        assert_int_equal(weir_video_reader_begin(reader, &sampling, sizeof sampling, &small, sizeof small, NULL),
                         WEIR_OK);
        while (num_done < whole->num_frames) {
            uint32_t num_left = whole->num_frames - num_done;
            assert_int_equal(weir_video_reader_next(reader, &frames, NULL), WEIR_OK);
            assert_int_equal(frames->num_frames, num_each < num_left ? num_each : num_left);
            assert_int_equal(frames->first_frame, num_done);
            assert_memory_equal(frames->data, whole->data + num_done * whole->frame_bytes,
                                frames->num_frames * frames->frame_bytes);
            assert_memory_equal(frames->pts, whole->pts + num_done, frames->num_frames * sizeof *frames->pts);
            num_done += frames->num_frames;
            weir_frames_free(frames);
        }
        assert_int_equal(weir_video_reader_next(reader, &frames, NULL), WEIR_EOF);
        assert_null(frames);
        assert_int_equal(weir_video_reader_next(reader, &frames, NULL), WEIR_EOF);
    }
    weir_frames_free(whole);
    weir_video_reader_free(reader);
}

TEST_CASE(next_gives_each_frame_of_the_request_once)
{
    for (size_t i = 0; i < NUM_CLIPS; i++) {
        const char *path = make_clip(i);
        if (!path)
            continue;
        expect_next(path, (weir_sampling){ 0 }, 0);
        expect_next(path, (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 3 }, 0);
        expect_next(path, (weir_sampling){ 0 }, 7);
        expect_next(path, (weir_sampling){ .what = WEIR_SAMPLE_RATE, .rate_num = 7 }, 4);
    }
}

TEST_CASE(a_request_in_between_ends_the_one_that_was_begun)
{
    const char *path = make_clip(0);
    const weir_sampling every = { .what = WEIR_SAMPLE_EVERY, .every = 2 };
    weir_frames *frames = NULL;
    weir_error error = { 0 };
    if (!path)
        return;
    weir_video_reader *reader = reader_of_path(path);
    assert_int_equal(weir_video_reader_next(reader, &frames, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "weir_video_reader_begin()"));
    for (size_t i = 0; i < LENGTH(samplings); i++) {
        assert_int_equal(weir_video_reader_begin(reader, &every, sizeof every, &small, sizeof small, NULL), WEIR_OK);
        assert_int_equal(weir_video_reader_next(reader, &frames, NULL), WEIR_OK);
        weir_frames_free(frames);
        expect_frames(reader, path, samplings[i]);
        assert_int_equal(weir_video_reader_next(reader, &frames, &error), WEIR_EINVAL);
        assert_null(frames);
    }
    assert_int_equal(
        weir_video_reader_begin(reader, &samplings[1], sizeof samplings[1], &small, sizeof small, &error),
        WEIR_EINVAL);
    assert_int_equal(weir_video_reader_next(reader, &frames, NULL), WEIR_EINVAL);
    weir_video_reader_free(reader);
}

/* ---- facts ---------------------------------------------------------------------------------------------------- */

static weir_video_info info_of(const char *path)
{
    weir_video_info info;
    weir_video_reader *reader = reader_of_path(path);
    assert_int_equal(weir_video_reader_info(reader, &info, sizeof info), WEIR_OK);
    weir_video_reader_free(reader);
    return info;
}

TEST_CASE(the_facts_are_those_of_the_header)
{
    const char *path =
        clips_make("facts.mp4", "-f lavfi -i testsrc2=s=96x64:r=30000/1001 -frames:v 30 -vf setsar=4/3 -c:v mpeg4");
    if (!path)
        return;
    weir_video_info info = info_of(path);
    assert_string_equal(info.codec, "mpeg4");
    assert_non_null(strstr(info.container, "mp4"));
    assert_int_equal(info.width, 96);
    assert_int_equal(info.height, 64);
    assert_int_equal(info.rotation, 0);
    assert_false(info.is_mirrored);
    assert_int_equal(info.sample_aspect_num, 4);
    assert_int_equal(info.sample_aspect_den, 3);
    assert_int_equal(info.bit_depth, 8);
    assert_int_equal(info.average_rate_num, 30000);
    assert_int_equal(info.average_rate_den, 1001);
    assert_int_equal(info.num_frames, 30);
    assert_in_range(info.duration_ns, 1000999000, 1001001000);
    assert_int_equal(info.stream, 1);
    assert_false(info.has_audio);
    assert_false(info.is_exact);
    assert_int_equal(info.num_keyframes, 0);
}

/* Of files with and without times, with packets that show their frames and without; one that was cut off. */
static void check_scan(const char *path)
{
    weir_sampling every = { .what = WEIR_SAMPLE_EVERY, .every = 1 }, keys = { .what = WEIR_SAMPLE_KEYFRAMES };
    weir_video_reader *reader = reader_of_path(path);
    weir_frames *all = stage_frames(path, &every, &small), *marked = stage_frames(path, &keys, &small);
    weir_frame_times *times = NULL;
    weir_video_info info;
    for (int i = 0; i < 2; i++) { /* before and after another request */
        assert_int_equal(weir_video_reader_scan(reader, NULL), WEIR_OK);
        assert_int_equal(weir_video_reader_info(reader, &info, sizeof info), WEIR_OK);
        assert_true(info.is_exact);
        assert_int_equal(info.num_frames, all->num_frames);
        assert_int_equal(info.num_keyframes, marked->num_frames);
        assert_int_equal(weir_video_reader_times(reader, &times, NULL), WEIR_OK);
        assert_int_equal(times->num_frames, all->num_frames);
        assert_memory_equal(times->times_ns, all->times_ns, all->num_frames * sizeof *all->times_ns);
        assert_int_equal(times->end_ns, info.duration_ns);
        assert_true(times->end_ns > times->times_ns[times->num_frames - 1]);
        for (uint32_t at = 0, key = 0; at < all->num_frames; at++) {
            bool is_key = key < marked->num_frames && marked->times_ns[key] == all->times_ns[at];
            assert_int_equal(times->is_key[at], is_key);
            key += is_key;
        }
        weir_frame_times_free(times);
        expect_frames(reader, path, samplings[i]);
    }
    weir_frames_free(all);
    weir_frames_free(marked);
    weir_video_reader_free(reader);
}

TEST_CASE(a_scan_finds_all_frames_their_times_and_keyframes)
{
    const char *clips[] = {
        make_clip(0),
        make_clip(1),
        clips_make("scan.avi", "-f lavfi -i testsrc2=s=96x64:r=25:d=2 -c:v libx264 -bf 2 -g 12 -pix_fmt yuv420p"),
        clips_make("scan.h264", "-f lavfi -i testsrc2=s=96x64:r=25:d=2 -c:v libx264 -bf 2 -g 12 -pix_fmt yuv420p"),
        clips_make("scan.ts", "-f lavfi -i testsrc2=s=96x64:r=25:d=2 -c:v mpeg2video -bf 2 -g 12"),
    };
    for (size_t i = 0; i < LENGTH(clips); i++)
        if (clips[i])
            check_scan(clips[i]);
}

TEST_CASE(the_facts_tell_how_a_player_turns_the_pictures)
{
    static const struct {
        clips_matrix matrix;
        int rotation;
        bool is_mirrored;
    } turns[] = {
        { { 1, 0, 0, 1 }, 0, false },    { { 0, 1, -1, 0 }, 90, false }, { { -1, 0, 0, -1 }, 180, false },
        { { 0, -1, 1, 0 }, 270, false }, { { -1, 0, 0, 1 }, 0, true },   { { 1, 0, 0, -1 }, 180, true },
    };
    const char *path = clips_make("turned.mp4", "-f lavfi -i testsrc2=s=96x64:r=10 -frames:v 2 -c:v mpeg4");
    if (!path)
        return;
    for (size_t i = 0; i < LENGTH(turns); i++) {
        char name[32];
        snprintf(name, sizeof name, "turned%zu.mp4", i);
        weir_video_info info = info_of(clips_rotate(path, name, turns[i].matrix));
        if (info.rotation != turns[i].rotation || info.is_mirrored != turns[i].is_mirrored)
            fail_msg("turn %zu: %d, %d", i, info.rotation, info.is_mirrored);
        assert_int_equal(info.width, 96);
    }
}

static void expect_measure(weir_video_reader *reader, const weir_sampling *sampling,
                           const weir_picture_config *picture)
{
    weir_frames_size size;
    weir_frames *frames = NULL;
    assert_int_equal(weir_video_reader_measure(reader, sampling, sizeof *sampling, picture, sizeof *picture, &size,
                                               sizeof size, NULL),
                     WEIR_OK);
    assert_int_equal(
        weir_video_reader_frames(reader, sampling, sizeof *sampling, picture, sizeof *picture, &frames, NULL),
        WEIR_OK);
    assert_int_equal(size.num_frames, frames->num_frames);
    assert_int_equal(size.width, frames->width);
    assert_int_equal(size.height, frames->height);
    assert_int_equal(size.channels, frames->channels);
    assert_int_equal(size.frame_bytes, frames->frame_bytes);
    assert_int_equal(size.num_bytes, frames->num_frames * frames->frame_bytes);
    weir_frames_free(frames);
}

TEST_CASE(what_is_measured_is_the_size_of_the_result)
{
    static const weir_picture_config pictures[] = {
        { .width = 48, .height = 32 },
        { 0 },
        { .height = 30, .pixel = WEIR_PIXEL_YUV420P },
        { .pixel = WEIR_PIXEL_GRAY8, .no_autorotate = true },
    };
    for (size_t i = 0; i <= NUM_CLIPS; i++) {
        const char *clip = make_clip(i < NUM_CLIPS ? i : 0);
        if (!clip)
            continue;
        const char *path = i < NUM_CLIPS ? clip : clips_rotate(clip, "upright.mp4", (clips_matrix){ 0, 1, -1, 0 });
        weir_video_reader *reader = reader_of_path(path);
        for (size_t j = 0; j < LENGTH(samplings) * LENGTH(pictures); j++)
            expect_measure(reader, &samplings[j / LENGTH(pictures)], &pictures[j % LENGTH(pictures)]);
        weir_video_reader_free(reader);
    }
}

/* The size of the gray picture that ffmpeg's filter makes, where one of its sides is known. 1 = ffmpeg would round it to 0, and
   refuses that. */
static uint32_t referee_side(const char *path, const char *scale, uint32_t known_side)
{
    static uint8_t bytes[1 << 20];
    char command[512];
    snprintf(command, sizeof command,
             "ffmpeg -nostdin -v quiet -i '%s' -vf scale=%s -frames:v 1 -f rawvideo -pix_fmt gray -", path, scale);
    FILE *stream = popen(command, "r");
    assert_non_null(stream);
    size_t num_bytes = fread(bytes, 1, sizeof bytes, stream);
    if (pclose(stream) != 0)
        return 1;
    assert_int_equal(num_bytes % known_side, 0);
    return (uint32_t)(num_bytes / known_side);
}

static void check_size(const char *path, weir_picture_config picture, uint32_t width, uint32_t height)
{
    weir_sampling one = { .what = WEIR_SAMPLE_UNIFORM, .count = 1 };
    weir_picture_config stretched = {
        .width = width, .height = height, .resize = WEIR_RESIZE_STRETCH, .scaler = picture.scaler
    };
    for (weir_resize resize = WEIR_RESIZE_PAD; resize <= WEIR_RESIZE_CROP; resize++) {
        weir_video_reader *reader = reader_of_path(path);
        weir_frames_size size = { 0 };
        weir_frames *frames = NULL, *expected = stage_frames(path, &one, &stretched);
        picture.resize = resize;
        assert_int_equal(
            weir_video_reader_measure(reader, &one, sizeof one, &picture, sizeof picture, &size, sizeof size, NULL),
            WEIR_OK);
        assert_int_equal(size.width, width);
        assert_int_equal(size.height, height);
        assert_int_equal(weir_video_reader_frames(reader, &one, sizeof one, &picture, sizeof picture, &frames, NULL),
                         WEIR_OK);
        assert_same(frames, expected); /* without a border, whatever is rounded */
        weir_frames_free(frames);
        weir_frames_free(expected);
        weir_video_reader_free(reader);
    }
}

/* Sources that are wide, high, square, and turned by 90 degrees; every way to set one side. */
TEST_CASE(the_aspect_is_kept_where_one_side_is_set)
{
    static const uint32_t sources[][2] = { { 178, 100 }, { 101, 99 }, { 64, 64 }, { 60, 202 } };
    static const uint32_t sides[] = { 1, 7, 50, 101, 320 };
    for (size_t i = 0; i < LENGTH(sources); i++) {
        char name[64], arguments[256];
        snprintf(name, sizeof name, "sides_%u.mp4", (unsigned)i);
        snprintf(arguments, sizeof arguments, "-f lavfi -i testsrc2=s=%ux%u:d=0.2:r=10 -c:v mpeg4 -q:v 3",
                 sources[i][0], sources[i][1]);
        const char *path = clips_make(name, arguments);
        if (!path)
            return;
        snprintf(name, sizeof name, "sides_turned_%u.mp4", (unsigned)i);
        const char *turned = i % 2 ? clips_rotate(path, name, (clips_matrix){ 0, 1, -1, 0 }) : NULL;
        bool is_wide = turned ? sources[i][1] >= sources[i][0] : sources[i][0] >= sources[i][1];
        path = turned ? turned : path;
        for (size_t j = 0; j < LENGTH(sides); j++) {
            char scale[32];
            uint32_t side = sides[j];
            snprintf(scale, sizeof scale, "%u:-1", side);
            uint32_t height = referee_side(path, scale, side);
            snprintf(scale, sizeof scale, "-1:%u", side);
            uint32_t width = referee_side(path, scale, side);
            check_size(path, (weir_picture_config){ .width = side }, side, height);
            check_size(path, (weir_picture_config){ .height = side }, width, side);
            check_size(path, (weir_picture_config){ .longest = side }, is_wide ? side : width,
                       is_wide ? height : side);
            check_size(path, (weir_picture_config){ .shortest = side }, is_wide ? width : side,
                       is_wide ? side : height);
        }
    }
}

TEST_CASE(sides_that_contradict_each_other_or_get_too_long_are_refused)
{
    const char *path = clips_make("thin.mp4", "-f lavfi -i testsrc2=s=320x2:d=0.2:r=10 -c:v mpeg4");
    static const weir_picture_config wrong[] = { { .longest = 5, .shortest = 5 },
                                                 { .longest = 5, .width = 5 },
                                                 { .shortest = 5, .height = 5 } };
    weir_sampling one = { .what = WEIR_SAMPLE_UNIFORM, .count = 1 };
    weir_frames *frames = NULL;
    weir_error error = { 0 };
    if (!path)
        return;
    weir_video_reader *reader = reader_of_path(path);
    for (size_t i = 0; i < LENGTH(wrong); i++)
        assert_int_equal(
            weir_video_reader_frames(reader, &one, sizeof one, &wrong[i], sizeof wrong[i], &frames, &error),
            WEIR_EINVAL);
    const weir_picture_config high = { .height = 300 }; /* 160 times as wide */
    error = (weir_error){ 0 };
    assert_int_equal(weir_video_reader_frames(reader, &one, sizeof one, &high, sizeof high, &frames, &error),
                     WEIR_ELIMIT);
    if (!strstr(error.message, "a picture of 320x2 would become 48000x300"))
        fail_msg("%s", error.message);
    weir_frames_size size;
    assert_int_equal(
        weir_video_reader_measure(reader, &one, sizeof one, &high, sizeof high, &size, sizeof size, &error),
        WEIR_ELIMIT);
    weir_video_reader_free(reader);
}

TEST_CASE(what_a_filter_gives_cannot_be_measured)
{
    const char *path = make_clip(0);
    const weir_picture_config filtered = { .filter = "fps=5" };
    weir_frames_size size;
    weir_error error = { 0 };
    if (!path)
        return;
    weir_video_reader *reader = reader_of_path(path);
    assert_int_equal(
        weir_video_reader_measure(reader, NULL, 0, &filtered, sizeof filtered, &size, sizeof size, &error),
        WEIR_EUNSUPPORTED);
    assert_non_null(strstr(error.message, "fps=5"));
    assert_int_equal(weir_video_reader_measure(reader, NULL, 0, NULL, 0, &size, sizeof size, NULL), WEIR_OK);
    assert_int_equal(size.num_frames, NUM_FRAMES);
    expect_frames(reader, path, samplings[1]);
    weir_video_reader_free(reader);
}

/* ---- wrong use ------------------------------------------------------------------------------------------------ */

static void expect_not_opened(const weir_video_source *source, const weir_video_config *config, int status,
                              const char *text)
{
    weir_video_reader *reader = (weir_video_reader *)(uintptr_t)1;
    weir_error error = { 0 };
    int rc = weir_video_reader_open(&reader, source, sizeof *source, config, config ? sizeof *config : 0, &error);
    if (rc != status || !strstr(error.message, text))
        fail_msg("%d, %s, not %d, %s", rc, error.message, status, text);
    assert_null(reader);
    assert_int_equal(
        weir_video_reader_open(&reader, source, sizeof *source, config, config ? sizeof *config : 0, NULL), status);
}

TEST_CASE(what_cannot_be_opened_says_why)
{
    weir_bytes *bytes = weir_bytes_new(3, NULL);
    store file = { .bytes = bytes };
    weir_file_functions functions = functions_of(&file, true);
    weir_file_functions unreadable = { .close = close_store, .self = &file };
    weir_audio_config audio = { 0 };
    memcpy(bytes->data, "abc", 3);
    expect_not_opened(&(weir_video_source){ 0 }, NULL, WEIR_EINVAL, "one of path, bytes and functions");
    expect_not_opened(&(weir_video_source){ .path = "a", .bytes = bytes }, NULL, WEIR_EINVAL,
                      "one of path, bytes and functions");
    expect_not_opened(&(weir_video_source){ .path = "a", .own_bytes = true }, NULL, WEIR_EINVAL, "own_bytes");
    expect_not_opened(&(weir_video_source){ .path = clips_path("none.mp4") }, NULL, WEIR_ENOTFOUND, "No such file");
    expect_not_opened(&(weir_video_source){ .bytes = bytes }, NULL, WEIR_EDATA, "cannot open");
    expect_not_opened(&(weir_video_source){ .functions = &functions }, NULL, WEIR_EINVAL, "functions_size");
    expect_not_opened(&(weir_video_source){ .path = "a" }, &(weir_video_config){ .audio = &audio }, WEIR_EINVAL,
                      "audio");
    expect_not_opened(&(weir_video_source){ .path = "a" }, &(weir_video_config){ .min_share = 2 }, WEIR_EINVAL,
                      "min_share");
    assert_int_equal(file.num_closed, 0);
    expect_not_opened(&(weir_video_source){ .functions = &unreadable, .functions_size = sizeof unreadable }, NULL,
                      WEIR_EINVAL, "functions.read");
    assert_int_equal(file.num_closed, 2);
    expect_not_opened(&(weir_video_source){ .functions = &functions, .functions_size = sizeof functions }, NULL,
                      WEIR_EDATA, "cannot open");
    assert_int_equal(file.num_closed, 4);
    weir_bytes_free(bytes);
}

TEST_CASE(bytes_that_the_reader_owns_are_freed_when_they_cannot_be_opened)
{
    weir_video_reader *reader;
    weir_video_source source = { .bytes = weir_bytes_new(10, "x.mp4"), .own_bytes = true, .functions_size = 1 };
    weir_error error = { 0 };
    memset(source.bytes->data, 0, 10);
    assert_int_equal(weir_video_reader_open(&reader, &source, sizeof source, NULL, 0, &error), WEIR_EDATA);
    source.bytes = weir_bytes_new(10, "x.mp4");
    weir_video_config config = { .stream = 1, .min_share = -1 };
    assert_int_equal(weir_video_reader_open(&reader, &source, sizeof source, &config, sizeof config, &error),
                     WEIR_EINVAL);
}

TEST_CASE(functions_that_lie_fail_the_request)
{
    static const int64_t lies[] = { INT64_MAX, 1 << 24, INT64_MIN, -99 };
    const char *path = make_large();
    if (!path)
        return;
    store file = { .bytes = bytes_of_file(path, path) };
    weir_file_functions functions = functions_of(&file, true);
    weir_video_source source = { .functions = &functions, .functions_size = sizeof functions, .name = path };
    for (size_t i = 0; i < LENGTH(lies); i++) {
        weir_frames *frames = NULL;
        weir_error error = { 0 };
        weir_video_reader *reader = reader_of(&source, &(weir_video_config){ .seed = 7 });
        file.failure = lies[i];
        file.num_reads = 0;
        file.failing_read = 1;
        assert_true(ask(reader, samplings[0], &frames, &error) < 0);
        assert_non_null(strstr(error.message, "the program's function"));
        file.failing_read = 0;
        expect_frames(reader, path, samplings[0]);
        weir_video_reader_free(reader);
    }
    weir_bytes_free(file.bytes);
}

TEST_CASE(null_is_refused)
{
    weir_video_info info;
    weir_frames *frames;
    weir_video_reader *reader = NULL;
    const weir_video_source source = { .path = "a" };
    weir_error error = { 0 };
    assert_int_equal(weir_video_reader_open(NULL, &source, sizeof source, NULL, 0, &error), WEIR_EINVAL);
    reader = (weir_video_reader *)(uintptr_t)1;
    assert_int_equal(weir_video_reader_open(&reader, NULL, 0, NULL, 0, &error), WEIR_EINVAL);
    assert_null(reader);
    assert_int_equal(weir_video_reader_info(NULL, &info, sizeof info), WEIR_EINVAL);
    assert_int_equal(weir_video_reader_set_number(NULL, 0, 0), WEIR_EINVAL);
    assert_int_equal(weir_video_reader_frames(NULL, NULL, 0, NULL, 0, &frames, &error), WEIR_EINVAL);
    assert_int_equal(weir_video_reader_begin(NULL, NULL, 0, NULL, 0, NULL), WEIR_EINVAL);
    assert_int_equal(weir_video_reader_next(NULL, &frames, NULL), WEIR_EINVAL);
    weir_video_reader_free(NULL);
    const char *path = make_clip(0);
    if (!path)
        return;
    reader = reader_of_path(path);
    const weir_sampling sampling = { .what = WEIR_SAMPLE_UNIFORM, .count = 2 };
    assert_int_equal(weir_video_reader_info(reader, NULL, sizeof info), WEIR_EINVAL);
    assert_int_equal(weir_video_reader_frames(reader, NULL, 0, NULL, 0, NULL, &error), WEIR_EINVAL);
    error = (weir_error){ 0 };
    assert_int_equal(weir_video_reader_frames(reader, &sampling, 0, NULL, 0, &frames, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "sizeof(weir_sampling)"));
    assert_int_equal(weir_video_reader_frames(reader, NULL, 0, NULL, 0, &frames, NULL), WEIR_OK);
    assert_int_equal(frames->num_frames, NUM_FRAMES);
    assert_int_equal(frames->width, 96);
    weir_frames_free(frames);
    weir_video_reader_free(reader);
}

TEST_CASE(structs_of_an_older_or_newer_program_are_taken_as_far_as_both_sides_know)
{
    struct {
        weir_video_source known;
        uint64_t unknown;
    } newer = { .known = { .path = make_clip(2) }, .unknown = 1 };
    struct {
        weir_video_info known;
        uint64_t unknown;
    } info;
    weir_video_reader *reader;
    weir_error error = { 0 };
    if (!newer.known.path)
        return;
    assert_int_equal(weir_video_reader_open(&reader, &newer.known, sizeof newer, NULL, 0, &error), WEIR_EUNSUPPORTED);
    assert_non_null(strstr(error.message, "weir_video_source"));
    newer.unknown = 0;
    newer.known.should_stop = has_enough; /* not of the older program */
    newer.known.self = NULL;
    assert_int_equal(
        weir_video_reader_open(&reader, &newer.known, offsetof(weir_video_source, packets), NULL, 0, NULL), WEIR_OK);
    memset(&info, 0xa5, sizeof info);
    assert_int_equal(weir_video_reader_info(reader, &info.known, sizeof info), WEIR_OK);
    assert_int_equal(info.unknown, 0);
    assert_int_equal(info.known.width, 96);
    memset(&info, 0xa5, sizeof info);
    assert_int_equal(weir_video_reader_info(reader, &info.known, offsetof(weir_video_info, rotation)), WEIR_OK);
    assert_int_equal(info.known.height, 64);
    assert_int_equal(info.known.rotation, (int32_t)0xa5a5a5a5);
    weir_video_reader_free(reader);
}

/* ---- threads -------------------------------------------------------------------------------------------------- */

typedef struct job {
    const char *path;
    const weir_frames *whole;
} job;

static void *ask_often(void *self)
{
    const job *asked = self;
    const weir_frames *whole = asked->whole;
    weir_video_reader *reader = NULL;
    weir_video_source source = { .path = asked->path };
    bool is_right = weir_video_reader_open(&reader, &source, sizeof source, NULL, 0, NULL) == WEIR_OK;
    for (int64_t i = 0; is_right && i < NUM_FRAMES; i += 3) {
        weir_frames *frames = NULL;
        weir_sampling one = { .what = WEIR_SAMPLE_INDICES, .indices = &i, .num_indices = 1 };
        is_right = ask(reader, one, &frames, NULL) == WEIR_OK &&
                   memcmp(frames->data, whole->data + (size_t)i * whole->frame_bytes, whole->frame_bytes) == 0;
        weir_frames_free(frames);
    }
    weir_video_reader_free(reader);
    return is_right ? self : NULL;
}

TEST_CASE(two_threads_can_use_two_readers)
{
    const char *path = make_clip(0);
    pthread_t threads[2];
    if (!path)
        return;
    weir_frames *whole = stage_frames(path, &(weir_sampling){ 0 }, &small);
    job asked = { .path = path, .whole = whole };
    for (size_t i = 0; i < LENGTH(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &asked), 0);
    for (size_t i = 0; i < LENGTH(threads); i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &asked);
    }
    weir_frames_free(whole);
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
