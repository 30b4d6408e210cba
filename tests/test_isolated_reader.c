/*
 * Readers in a child process. Each call gives what a reader in this process gives. After a child that was killed,
 * stopped or makes no sense, the next answer is right. Held constant: one clip with B-frames, and what a container
 * adds; small pictures.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test_case.h"

#include <weir/isolated.h>
#include <weir/video_reader.h>

#include "tests/bytes_source.h"
#include "tests/clips.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const weir_picture_config small = { .width = 48, .height = 32 };
static const weir_video_config config = { .seed = 7, .chunk_frames = 3 };

static const char *make_clip(void)
{
    return clips_make("b.mp4", "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -f lavfi -i sine=d=2 -c:v libx264 -preset "
                               "veryfast -g 8 -bf 2 -pix_fmt yuv420p -c:a aac");
}

static weir_video_reader *open_isolated(const weir_video_source *source)
{
    weir_video_reader *reader = NULL;
    weir_error error = { 0 };
    if (weir_isolated_reader_open(&reader, source, sizeof *source, &config, sizeof config, NULL, 0, &error) !=
        WEIR_OK)
        fail_msg("%s", error.message);
    return reader;
}

static weir_video_reader *open_here(const char *path)
{
    const weir_video_source source = { .path = path };
    weir_video_reader *reader = NULL;
    weir_error error = { 0 };
    if (weir_video_reader_open(&reader, &source, sizeof source, &config, sizeof config, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return reader;
}

/* ---- the children of this process ------------------------------------------------------------------------------ */

/* The only one; 0 = none. More fail the test. */
static pid_t find_child(void)
{
    char path[64];
    pid_t found = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        long pid = 0, another = 0;
        snprintf(path, sizeof path, "/proc/self/task/%.20s/children", task->d_name);
        FILE *file = fopen(path, "r");
        int num = file ? fscanf(file, "%ld %ld", &pid, &another) : 0;
        if (file)
            fclose(file);
        assert_true(num < 2 && !(num == 1 && found));
        found = num == 1 ? (pid_t)pid : found;
    }
    closedir(tasks);
    return found;
}

static void kill_child(void)
{
    pid_t child = find_child();
    siginfo_t ended;
    assert_true(child > 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0); /* with all its threads */
}

/* ---- the same answers ------------------------------------------------------------------------------------------ */

static void assert_same(weir_frames *frames, weir_frames *expected)
{
    assert_int_equal(frames->num_frames, expected->num_frames);
    assert_int_equal(frames->num_clips, expected->num_clips);
    assert_int_equal(frames->width, expected->width);
    assert_int_equal(frames->frame_bytes, expected->frame_bytes);
    assert_memory_equal(frames->data, expected->data, expected->num_frames * expected->frame_bytes);
    assert_memory_equal(frames->pts, expected->pts, expected->num_frames * sizeof *expected->pts);
    assert_memory_equal(frames->times_ns, expected->times_ns, expected->num_frames * sizeof *expected->times_ns);
    assert_memory_equal(frames->mask, expected->mask, expected->num_frames);
    assert_int_equal(frames->first_frame, expected->first_frame);
    assert_int_equal(frames->is_last_chunk, expected->is_last_chunk);
    weir_frames_free(frames);
    weir_frames_free(expected);
}

static void assert_same_error(const weir_error *error, const weir_error *expected)
{
    assert_int_equal(error->status, expected->status);
    assert_int_equal(error->library_code, expected->library_code);
    assert_string_equal(error->message, expected->message);
}

static const int64_t some_indices[] = { 31, 2, -1, 2, 17 }, too_far[] = { 1, 40 };
static const int64_t some_times[] = { 1000000000, 0, 1900000000 };

/* NULL pictures are the file's size. The last ones are refused. */
static const struct {
    weir_sampling sampling;
    weir_picture_config picture;
} requests[] = {
    { { .what = WEIR_SAMPLE_UNIFORM, .count = 5 }, { .width = 48, .height = 32 } },
    { { .what = WEIR_SAMPLE_INDICES, .indices = some_indices, .num_indices = LENGTH(some_indices) },
      { .width = 30 } },
    { { .what = WEIR_SAMPLE_ALL }, { .pixel = WEIR_PIXEL_GRAY8 } },
    { { .what = WEIR_SAMPLE_TIMES, .times_ns = some_times, .num_times = LENGTH(some_times) }, { .longest = 64 } },
    { { .what = WEIR_SAMPLE_RANDOM, .count = 3 }, { .layout = WEIR_LAYOUT_NCHW } },
    { { .what = WEIR_SAMPLE_CLIPS, .count = 4, .num_clips = 3, .stride_frames = 2 }, { .width = 48, .height = 32 } },
    { { .what = WEIR_SAMPLE_EVERY, .every = 4 }, { .filter = "hflip" } },
    { { .what = WEIR_SAMPLE_INDICES, .indices = too_far, .num_indices = LENGTH(too_far) }, { .width = 30 } },
    { { .what = WEIR_SAMPLE_EVERY, .every = 4 }, { .filter = "nosuchfilter" } },
    { { .what = WEIR_SAMPLE_EVERY, .every = 0 }, { .width = 30 } },
    { { .what = WEIR_SAMPLE_EVERY, .every = 1 }, { .width = 1, .longest = 30 } },
};

static void expect_same_frames(weir_video_reader *isolated, weir_video_reader *here, size_t i)
{
    weir_frames *frames = NULL, *expected = NULL;
    weir_error error = { 0 }, expected_error = { 0 };
    const weir_sampling *sampling = &requests[i].sampling;
    const weir_picture_config *picture = &requests[i].picture;
    weir_video_reader_set_number(isolated, 2, i);
    weir_video_reader_set_number(here, 2, i);
    int rc =
        weir_video_reader_frames(isolated, sampling, sizeof *sampling, picture, sizeof *picture, &frames, &error);
    assert_int_equal(weir_video_reader_frames(here, sampling, sizeof *sampling, picture, sizeof *picture, &expected,
                                              &expected_error),
                     rc);
    if (rc == WEIR_OK) {
        assert_same(frames, expected);
    } else {
        assert_null(frames);
        assert_same_error(&error, &expected_error);
    }
}

static void expect_same_measure(weir_video_reader *isolated, weir_video_reader *here, size_t i)
{
    weir_frames_size size = { 0 }, expected = { 0 };
    weir_error error = { 0 }, expected_error = { 0 };
    const weir_sampling *sampling = &requests[i].sampling;
    const weir_picture_config *picture = &requests[i].picture;
    int rc = weir_video_reader_measure(isolated, sampling, sizeof *sampling, picture, sizeof *picture, &size,
                                       sizeof size, &error);
    assert_int_equal(weir_video_reader_measure(here, sampling, sizeof *sampling, picture, sizeof *picture, &expected,
                                               sizeof expected, &expected_error),
                     rc);
    assert_memory_equal(&size, &expected, sizeof size);
    if (rc != WEIR_OK)
        assert_same_error(&error, &expected_error);
}

static void expect_same_facts(weir_video_reader *isolated, weir_video_reader *here)
{
    weir_video_info info, expected;
    assert_int_equal(weir_video_reader_info(isolated, &info, sizeof info), WEIR_OK);
    assert_int_equal(weir_video_reader_info(here, &expected, sizeof expected), WEIR_OK);
    assert_string_equal(info.codec, expected.codec);
    assert_string_equal(info.container, expected.container);
    assert_int_equal(info.width, expected.width);
    assert_int_equal(info.time_base_den, expected.time_base_den);
    assert_int_equal(info.is_exact, expected.is_exact);
    assert_int_equal(info.num_frames, expected.num_frames);
    assert_int_equal(info.num_keyframes, expected.num_keyframes);
    assert_int_equal(info.duration_ns, expected.duration_ns);
    assert_true(info.has_audio);
}

static void expect_same_times(weir_video_reader *isolated, weir_video_reader *here)
{
    weir_frame_times *times = NULL, *expected = NULL;
    assert_int_equal(weir_video_reader_times(isolated, &times, NULL), WEIR_OK);
    assert_int_equal(weir_video_reader_times(here, &expected, NULL), WEIR_OK);
    assert_int_equal(times->num_frames, expected->num_frames);
    assert_memory_equal(times->times_ns, expected->times_ns, expected->num_frames * sizeof *expected->times_ns);
    assert_memory_equal(times->is_key, expected->is_key, expected->num_frames);
    assert_int_equal(times->end_ns, expected->end_ns);
    weir_frame_times_free(times);
    weir_frame_times_free(expected);
}

static void expect_same_sound(weir_video_reader *isolated, weir_video_reader *here, int64_t start_ns, int64_t end_ns)
{
    static const weir_audio_config configs[] = { { 0 }, { .sample_rate = 8000, .channels = 1 }, { .planar = true } };
    for (size_t i = 0; i < LENGTH(configs); i++) {
        weir_audio *audio = NULL, *expected = NULL;
        weir_error error = { 0 }, expected_error = { 0 };
        int rc = weir_video_reader_sound(isolated, &configs[i], sizeof configs[i], start_ns, end_ns, &audio, &error);
        assert_int_equal(weir_video_reader_sound(here, &configs[i], sizeof configs[i], start_ns, end_ns, &expected,
                                                 &expected_error),
                         rc);
        if (rc != WEIR_OK) {
            assert_null(audio);
            assert_same_error(&error, &expected_error);
            continue;
        }
        assert_int_equal(audio->num_samples, expected->num_samples);
        assert_int_equal(audio->channels, expected->channels);
        assert_int_equal(audio->start_ns, expected->start_ns);
        assert_memory_equal(audio->data, expected->data, expected->num_samples * expected->channels * sizeof(float));
        weir_audio_free(audio);
        weir_audio_free(expected);
    }
}

static void expect_same_chunks(weir_video_reader *isolated, weir_video_reader *here)
{
    const weir_sampling every = { .what = WEIR_SAMPLE_EVERY, .every = 2 };
    int rc;
    assert_int_equal(weir_video_reader_begin(isolated, &every, sizeof every, &small, sizeof small, NULL), WEIR_OK);
    assert_int_equal(weir_video_reader_begin(here, &every, sizeof every, &small, sizeof small, NULL), WEIR_OK);
    do {
        weir_frames *frames = NULL, *expected = NULL;
        rc = weir_video_reader_next(isolated, &frames, NULL);
        assert_int_equal(weir_video_reader_next(here, &expected, NULL), rc);
        if (rc == WEIR_OK)
            assert_same(frames, expected);
        expect_same_sound(isolated, here, 300000000, 400000000);
    } while (rc == WEIR_OK);
    assert_int_equal(rc, WEIR_EOF);
}

static void expect_same_into(weir_video_reader *isolated, weir_video_reader *here)
{
    enum { NUM_BYTES = 5 * 48 * 32 * 3 };
    static uint8_t data[NUM_BYTES], expected_data[NUM_BYTES];
    const weir_sampling five = { .what = WEIR_SAMPLE_UNIFORM, .count = 5 };
    for (size_t less = 0; less < 2; less++) {
        weir_frames *frames = NULL, *expected = NULL;
        weir_error error = { 0 }, expected_error = { 0 };
        int rc = weir_video_reader_frames_into(isolated, &five, sizeof five, &small, sizeof small, data,
                                               NUM_BYTES - less, &frames, &error);
        assert_int_equal(weir_video_reader_frames_into(here, &five, sizeof five, &small, sizeof small, expected_data,
                                                       NUM_BYTES - less, &expected, &expected_error),
                         rc);
        assert_int_equal(rc, less ? WEIR_ELIMIT : WEIR_OK);
        if (less) {
            assert_same_error(&error, &expected_error);
            continue;
        }
        assert_ptr_equal(frames->data, data);
        assert_int_equal(frames->memory_bytes, expected->memory_bytes);
        assert_same(frames, expected);
    }
}

static void expect_all_is_same(const weir_video_source *source, const char *path)
{
    weir_video_reader *isolated = open_isolated(source);
    weir_video_reader *here = open_here(path);
    expect_same_facts(isolated, here);
    for (size_t i = 0; i < LENGTH(requests); i++) {
        expect_same_frames(isolated, here, i);
        expect_same_measure(isolated, here, i);
    }
    expect_same_chunks(isolated, here);
    expect_same_into(isolated, here);
    assert_int_equal(weir_video_reader_scan(isolated, NULL), weir_video_reader_scan(here, NULL));
    expect_same_facts(isolated, here);
    expect_same_times(isolated, here);
    weir_video_reader_free(isolated);
    weir_video_reader_free(here);
    assert_int_equal(find_child(), 0);
}

TEST_CASE(each_call_answers_as_a_reader_of_this_process_does)
{
    const char *path = make_clip();
    expect_all_is_same(&(weir_video_source){ .path = path }, path);
}

TEST_CASE(bytes_are_read_in_the_child)
{
    const char *path = make_clip();
    weir_bytes *bytes = bytes_of_file(path, "b.mp4");
    expect_all_is_same(&(weir_video_source){ .bytes = bytes }, path);
    expect_all_is_same(&(weir_video_source){ .bytes = bytes, .own_bytes = true }, path);
}

typedef struct store {
    weir_bytes *bytes;
    size_t position;
    unsigned num_closed;
} store;

static int64_t read_store(void *self, uint8_t *data, size_t num_bytes)
{
    store *file = self;
    size_t left_bytes = file->bytes->size_bytes - file->position;
    num_bytes = num_bytes < left_bytes ? num_bytes : left_bytes;
    memcpy(data, file->bytes->data + file->position, num_bytes);
    file->position += num_bytes;
    return (int64_t)num_bytes;
}

static void close_store(void *self)
{
    ((store *)self)->num_closed++;
}

TEST_CASE(a_file_of_functions_is_read_here_and_decoded_in_the_child)
{
    const char *path = make_clip();
    store file = { .bytes = bytes_of_file(path, "b.mp4") };
    const weir_file_functions functions = { .self = &file, .read = read_store, .close = close_store };
    expect_all_is_same(&(weir_video_source){ .functions = &functions, .functions_size = sizeof functions }, path);
    assert_int_equal(file.num_closed, 1);
    weir_bytes_free(file.bytes);
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

TEST_CASE(a_file_that_cannot_be_opened_fails_as_it_does_here)
{
    clips_write_text(clips_path("text.mp4"), "no video");
    const char *paths[] = { clips_path("nosuch.mp4"), clips_path("text.mp4"), "" };
    for (size_t i = 0; i < LENGTH(paths); i++) {
        const weir_video_source source = { .path = paths[i] };
        weir_video_reader *reader = NULL;
        weir_error error = { 0 }, expected = { 0 };
        int rc = weir_isolated_reader_open(&reader, &source, sizeof source, NULL, 0, NULL, 0, &error);
        assert_null(reader);
        assert_int_equal(weir_video_reader_open(&reader, &source, sizeof source, NULL, 0, &expected), rc);
        assert_true(rc < 0);
        assert_same_error(&error, &expected);
    }
    assert_int_equal(find_child(), 0);
}

TEST_CASE(a_child_that_was_killed_is_replaced)
{
    const char *path = make_clip();
    weir_bytes *bytes = bytes_of_file(path, "b.mp4");
    const weir_video_source sources[] = { { .path = path }, { .bytes = bytes, .own_bytes = true } };
    weir_video_reader *here = open_here(path);
    for (size_t i = 0; i < LENGTH(sources); i++) {
        weir_video_reader *isolated = open_isolated(&sources[i]);
        kill_child();
        expect_same_frames(isolated, here, 0);
        kill_child();
        expect_same_chunks(isolated, here);
        kill_child();
        expect_same_times(isolated, here);
        weir_video_reader_free(isolated);
    }
    weir_video_reader_free(here);
}

TEST_CASE(a_request_that_has_begun_ends_with_its_child)
{
    const char *path = make_clip();
    weir_video_reader *here = open_here(path);
    weir_video_reader *isolated = open_isolated(&(weir_video_source){ .path = path });
    weir_frames *frames = NULL;
    weir_error error = { 0 };
    assert_int_equal(weir_video_reader_begin(isolated, NULL, 0, &small, sizeof small, NULL), WEIR_OK);
    if (weir_video_reader_next(isolated, &frames, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_frames_free(frames);
    kill_child();
    assert_int_equal(weir_video_reader_next(isolated, &frames, &error), WEIR_ESYSTEM);
    assert_non_null(strstr(error.message, "SIGKILL"));
    assert_null(frames);
    assert_int_equal(weir_video_reader_next(isolated, &frames, &error), WEIR_EINVAL);
    expect_same_chunks(isolated, here);
    weir_video_reader_free(isolated);
    weir_video_reader_free(here);
}

TEST_CASE(sound_is_given_by_a_new_child_but_the_request_has_ended)
{
    const char *path = make_clip();
    weir_video_reader *here = open_here(path);
    weir_video_reader *isolated = open_isolated(&(weir_video_source){ .path = path });
    weir_frames *frames = NULL;
    weir_error error = { 0 };
    assert_int_equal(weir_video_reader_begin(isolated, NULL, 0, &small, sizeof small, NULL), WEIR_OK);
    kill_child();
    expect_same_sound(isolated, here, 0, 1000000000);
    assert_int_equal(weir_video_reader_next(isolated, &frames, &error), WEIR_ESYSTEM);
    assert_non_null(strstr(error.message, "has ended"));
    expect_same_sound(isolated, here, 5000000000, 6000000000); /* after the end */
    expect_same_sound(isolated, here, INT64_MIN, INT64_MAX);
    expect_same_chunks(isolated, here);
    weir_video_reader_free(isolated);
    weir_video_reader_free(here);
}

static bool stops_when_set(void *self)
{
    return *(bool *)self;
}

TEST_CASE(a_stop_kills_the_child_and_the_next_call_starts_another)
{
    const char *path = make_clip();
    bool stops = false;
    weir_frames *frames = NULL;
    weir_error error = { 0 };
    weir_video_reader *here = open_here(path);
    weir_video_reader *isolated =
        open_isolated(&(weir_video_source){ .path = path, .should_stop = stops_when_set, .self = &stops });
    stops = true;
    assert_int_equal(weir_video_reader_frames(isolated, NULL, 0, NULL, 0, &frames, &error), WEIR_ESTOPPED);
    assert_null(frames);
    assert_int_equal(find_child(), 0);
    stops = false;
    expect_same_frames(isolated, here, 0);
    weir_video_reader_free(isolated);
    weir_video_reader_free(here);
}

TEST_CASE(what_a_child_cannot_have_is_refused)
{
    const char *path = make_clip();
    const weir_video_source source = { .path = path };
    weir_video_reader *reader = NULL;
    weir_error error = { 0 };
    const weir_isolated_config with_op = { .op = &weir_video_decode };
    assert_int_equal(
        weir_isolated_reader_open(&reader, &source, sizeof source, NULL, 0, &with_op, sizeof with_op, &error),
        WEIR_EINVAL);
    assert_non_null(strstr(error.message, "op"));
    error = (weir_error){ 0 };
    const weir_isolated_config no_worker = { .program = "/nosuch/worker" };
    assert_int_equal(
        weir_isolated_reader_open(&reader, &source, sizeof source, NULL, 0, &no_worker, sizeof no_worker, &error),
        WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, "/nosuch/worker"));
    assert_int_equal(weir_isolated_reader_open(NULL, &source, sizeof source, NULL, 0, NULL, 0, &error), WEIR_EINVAL);
    assert_int_equal(weir_isolated_reader_open(&reader, NULL, 0, NULL, 0, NULL, 0, &error), WEIR_EINVAL);
    assert_null(reader);
}

TEST_CASE(memory_over_the_limit_is_one_failed_call)
{
    const char *path = make_clip();
    const weir_video_source source = { .path = path };
    const weir_isolated_config little = { .max_memory_bytes = UINT64_C(64) << 20 };
    const weir_picture_config huge = { .width = 8192, .height = 8192 };
    weir_video_reader *reader = NULL, *here = open_here(path);
    weir_frames *frames = NULL;
    weir_error error = { 0 };
    if (weir_isolated_reader_open(&reader, &source, sizeof source, &config, sizeof config, &little, sizeof little,
                                  &error) != WEIR_OK)
        fail_msg("%s", error.message);
    assert_true(weir_video_reader_frames(reader, NULL, 0, &huge, sizeof huge, &frames, &error) < 0);
    assert_null(frames);
    expect_same_frames(reader, here, 0);
    weir_video_reader_free(reader);
    weir_video_reader_free(here);
}

int main(void)
{
    return test_cases_run(NULL, NULL, clips_set_up, clips_tear_down);
}
