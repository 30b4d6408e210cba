/* Which frames come out of the decode stage: against ffmpeg's filters where it has a counterpart, and by the rules. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test_case.h"

#include <weir/engine.h>
#include <weir/files.h>
#include <weir/video.h>

#include "common/random.h"
#include "tests/clips.h"

enum { SIDE = 32, NUM_FRAMES = 60, RATE = 30, NUM_DAMAGED = 8 };

/* ---- clips --------------------------------------------------------------------------------------------------- */

/* 2 s, B-frames, groups of 12. */
static const char *make_clip(void)
{
    return clips_make("clip.mp4", "-f lavfi -i testsrc2=s=176x144:d=2:r=30 -c:v libx264 -preset veryfast -bf 3 -g 12 "
                                  "-pix_fmt yuv420p");
}

static const char *make_uneven(void)
{
    return clips_make("uneven.mkv",
                      "-f lavfi -i testsrc2=s=176x144:d=2:r=30 -c:v libx264 -preset veryfast -bf 2 -g 9 "
                      "-pix_fmt yuv420p -vf 'select=not(mod(n\\,7))+gt(mod(n\\,5)\\,2)' -fps_mode vfr");
}

/* No timestamps in it: frames have to be counted. */
static const char *make_bare(void)
{
    return clips_make("bare.h264",
                      "-f lavfi -i testsrc2=s=176x144:d=2:r=30 -c:v libx264 -preset veryfast -bf 2 -g 12 "
                      "-pix_fmt yuv420p");
}

/* ---- a pipeline ---------------------------------------------------------------------------------------------- */

static weir_video_config config_of(weir_sampling sampling)
{
    static const weir_picture_config picture = {
        .width = SIDE, .height = SIDE, .resize = WEIR_RESIZE_STRETCH, .scaler = WEIR_SCALER_EXACT
    };
    return (
        weir_video_config){ .picture = &picture, .picture_size = sizeof picture, .sampling = sampling, .seed = 17 };
}

static weir_pipeline *start(const char *const *paths, size_t num_paths, const weir_video_config *config,
                            uint32_t concurrency)
{
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = num_paths }, NULL);
    weir_pipe_video(builder, config, &(weir_stage_options){ .concurrency = concurrency });
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return pipeline;
}

/* The next result, to be freed, or NULL at the end. */
static weir_frames *next_frames(weir_pipeline *pipeline)
{
    weir_item item;
    int rc = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
    if (rc == WEIR_EOF)
        return NULL;
    assert_int_equal(rc, WEIR_OK);
    weir_frames *frames = item.data;
    item.data = NULL;
    weir_item_release(&item);
    return frames;
}

/* The only result, or NULL with *error filled. */
static weir_frames *try_sample(const char *path, const weir_video_config *config, weir_error *error)
{
    weir_pipeline *pipeline = start(&path, 1, config, 1);
    weir_frames *frames = next_frames(pipeline);
    if (frames)
        assert_null(next_frames(pipeline));
    weir_pipeline_error(pipeline, "decode", error);
    weir_pipeline_free(pipeline);
    return frames;
}

static weir_frames *sample(const char *path, weir_sampling sampling)
{
    weir_error error = { 0 };
    weir_video_config config = config_of(sampling);
    weir_frames *frames = try_sample(path, &config, &error);
    if (!frames)
        fail_msg("%s: %s", path, error.message);
    return frames;
}

static void assert_fails(const char *path, const weir_video_config *config, int status, const char *text)
{
    weir_error error = { 0 };
    weir_frames *frames = try_sample(path, config, &error);
    assert_null(frames);
    if (error.status != status || !strstr(error.message, text))
        fail_msg("%s: %s (%s), not %s", path, error.message, weir_status_name(error.status), text);
}

/* ---- against ffmpeg ------------------------------------------------------------------------------------------ */

static void assert_as_filter(const char *path, weir_sampling sampling, const char *filter)
{
    char chain[512];
    size_t expected_bytes;
    snprintf(chain, sizeof chain, "%s,scale=%d:%d:flags=bicubic,format=rgb24", filter, SIDE, SIDE);
    uint8_t *expected = clips_decode(path, chain, &expected_bytes);
    weir_frames *frames = sample(path, sampling);
    if (frames->num_frames * frames->frame_bytes != expected_bytes)
        fail_msg("%s, %s: %u frames, not %zu", path, filter, frames->num_frames,
                 expected_bytes / frames->frame_bytes);
    if (memcmp(frames->data, expected, expected_bytes) != 0)
        fail_msg("%s, %s: other frames", path, filter);
    free(expected);
    weir_frames_free(frames);
}

TEST_CASE(every_k_th_frame_is_ffmpegs)
{
    const char *paths[] = { make_clip(), make_uneven(), make_bare() };
    for (size_t i = 0; i < 3; i++) {
        assert_as_filter(paths[i], (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 1 }, "null");
        assert_as_filter(paths[i], (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 7 },
                         "select=not(mod(n\\,7))");
        assert_as_filter(paths[i], (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 1000 }, "select=eq(n\\,0)");
    }
}

TEST_CASE(windows_are_ffmpegs_trim)
{
    const char *paths[] = { make_clip(), make_uneven() };
    for (size_t i = 0; i < 2; i++) {
        assert_as_filter(paths[i], (weir_sampling){ .start_ns = WEIR_SECOND / 2 }, "trim=start=0.5");
        assert_as_filter(paths[i], (weir_sampling){ .end_ns = WEIR_SECOND / 2 }, "trim=end=0.5");
        assert_as_filter(paths[i], (weir_sampling){ .start_ns = WEIR_SECOND, .end_ns = 3 * WEIR_SECOND / 2 },
                         "trim=start=1:end=1.5");
        assert_as_filter(paths[i], (weir_sampling){ .start_ns = WEIR_SECOND, .count = 3 },
                         "trim=start=1,select=lt(n\\,3)");
        assert_as_filter(
            paths[i],
            (weir_sampling){
                .what = WEIR_SAMPLE_EVERY, .every = 4, .start_ns = WEIR_SECOND / 2, .end_ns = 3 * WEIR_SECOND / 2 },
            "trim=start=0.5:end=1.5,select=not(mod(n\\,4))");
    }
}

/* One clip for each way to store times: in ticks that a frame lasts a whole number of, in milliseconds, in 1/90000 s. */
static const char *make_container(const char *name)
{
    char arguments[512];
    bool is_webm = strstr(name, ".webm");
    snprintf(arguments, sizeof arguments, "-f lavfi -i testsrc2=s=64x48:r=%s -frames:v 60 -pix_fmt yuv420p %s %s",
             strstr(name, "film") ? "24000/1001" : "30",
             is_webm ? "-c:v libvpx -deadline realtime -cpu-used 8" : "-c:v libx264 -preset veryfast -bf 2 -g 12",
             strstr(name, "thousand") ? "-video_track_timescale 1000" : "");
    return clips_make(name, arguments);
}

static const char *const containers[] = { "c.mp4",    "c.mkv",    "c.flv",        "c.ts",
                                          "c.webm",   "c.avi",    "film.ts",      "film.mp4",
                                          "film.mkv", "film.avi", "thousand.mp4", "film_thousand.mp4" };
enum { NUM_CONTAINERS = sizeof containers / sizeof containers[0] };

TEST_CASE(a_rate_is_ffmpegs)
{
    static const uint32_t rates[][2] = { { 5, 1 }, { 30, 1 }, { 48, 1 }, { 24000, 1001 }, { 73, 10 }, { 1, 3 } };
    char filter[128];
    for (size_t i = 0; i < NUM_CONTAINERS + 2; i++) {
        const char *path = i < NUM_CONTAINERS    ? make_container(containers[i])
                           : i == NUM_CONTAINERS ? make_clip()
                                                 : make_uneven();
        for (size_t j = i % 3; path && j < sizeof rates / sizeof rates[0]; j += 3) {
            weir_sampling rate = { .what = WEIR_SAMPLE_RATE, .rate_num = rates[j][0], .rate_den = rates[j][1] };
            snprintf(filter, sizeof filter, "setpts=PTS-STARTPTS,fps=%u/%u", rates[j][0], rates[j][1]);
            assert_as_filter(path, rate, filter);
        }
    }
}

TEST_CASE(a_rate_within_a_window_is_ffmpegs)
{
    char filter[128];
    for (size_t i = 0; i < NUM_CONTAINERS; i++) {
        const char *path = make_container(containers[i]);
        uint32_t rate = i % 2 ? 5 : 30;
        weir_sampling window = { .what = WEIR_SAMPLE_RATE, .rate_num = rate, .start_ns = WEIR_SECOND / 2 };
        window.end_ns = i % 3 ? 3 * WEIR_SECOND / 2 : 0;
        snprintf(filter, sizeof filter, "setpts=PTS-STARTPTS,trim=0.5%s,setpts=PTS-STARTPTS,fps=%u",
                 window.end_ns ? ":1.5" : "", rate);
        if (path)
            assert_as_filter(path, window, filter);
    }
}

TEST_CASE(what_is_shorter_than_half_an_instant_has_no_frame)
{
    weir_video_config config = config_of((weir_sampling){ .what = WEIR_SAMPLE_RATE, .rate_num = 1, .rate_den = 5 });
    assert_fails(make_clip(), &config, WEIR_ENOTFOUND, "no frame matches the sampling");
}

/* However a caller rounds k / rate to nanoseconds, and however the container rounds it. */
TEST_CASE(the_time_of_a_frame_is_that_frames)
{
    enum { NUM = 60 };
    for (size_t i = 0; i < NUM_CONTAINERS; i++) {
        const char *path = make_container(containers[i]);
        int64_t interval_ns = strstr(containers[i], "film") ? INT64_C(1001) * WEIR_SECOND : 1000 * WEIR_SECOND;
        int64_t rate = strstr(containers[i], "film") ? 24000 : 30000;
        weir_frames *all = path ? sample(path, (weir_sampling){ 0 }) : NULL;
        for (int64_t up = 0; path && up < 2; up++) {
            int64_t times_ns[NUM];
            for (int64_t frame = 0; frame < NUM; frame++)
                times_ns[frame] = (frame * interval_ns + up * (rate - 1)) / rate;
            weir_frames *at =
                sample(path, (weir_sampling){ .what = WEIR_SAMPLE_TIMES, .times_ns = times_ns, .num_times = NUM });
            assert_int_equal(at->num_frames, NUM);
            for (uint32_t frame = 0; frame < NUM; frame++)
                if (at->pts[frame] != all->pts[frame])
                    fail_msg("%s: at %" PRId64 " ns is not frame %u", path, times_ns[frame], frame);
            weir_frames *window = sample(path, (weir_sampling){ .start_ns = times_ns[7], .end_ns = times_ns[20] });
            assert_int_equal(window->num_frames, 13);
            assert_int_equal(window->pts[0], all->pts[7]);
            weir_frames_free(window);
            weir_frames_free(at);
        }
        weir_frames_free(all);
    }
}

TEST_CASE(keyframes_are_ffmpegs)
{
    assert_as_filter(make_clip(), (weir_sampling){ .what = WEIR_SAMPLE_KEYFRAMES }, "select=key");
    assert_as_filter(make_uneven(), (weir_sampling){ .what = WEIR_SAMPLE_KEYFRAMES }, "select=key");
    assert_as_filter(make_bare(), (weir_sampling){ .what = WEIR_SAMPLE_KEYFRAMES }, "select=key");
}

TEST_CASE(the_first_frames_are_ffmpegs)
{
    assert_as_filter(make_clip(), (weir_sampling){ .count = 16 }, "select=lt(n\\,16)");
    assert_as_filter(make_clip(), (weir_sampling){ .count = 1000 }, "null");
}

/* ---- by number and by time ----------------------------------------------------------------------------------- */

static int64_t number_of(const weir_frames *frames, uint32_t i)
{
    int64_t num = frames->pts[i] * frames->time_base_num * RATE;
    assert_int_equal(num % frames->time_base_den, 0);
    return num / frames->time_base_den;
}

static void assert_numbers(weir_frames *frames, const int64_t *numbers, uint32_t num_numbers)
{
    weir_frames *all = sample(make_clip(), (weir_sampling){ 0 });
    assert_int_equal(all->num_frames, NUM_FRAMES);
    assert_int_equal(frames->num_frames, num_numbers);
    for (uint32_t i = 0; i < num_numbers; i++) {
        assert_int_equal(number_of(frames, i), numbers[i]);
        assert_memory_equal(frames->data + i * frames->frame_bytes,
                            all->data + (size_t)numbers[i] * frames->frame_bytes, frames->frame_bytes);
    }
    weir_frames_free(all);
    weir_frames_free(frames);
}

TEST_CASE(lists_keep_their_order_and_repeats)
{
    const int64_t indices[] = { 40, 3, 3, 59, 0, -1, 40, -60, 12, 11 };
    const int64_t expected[] = { 40, 3, 3, 59, 0, 59, 40, 0, 12, 11 };
    assert_numbers(
        sample(make_clip(), (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 10 }),
        expected, 10);
}

TEST_CASE(times_give_the_frame_that_is_shown_then)
{
    const int64_t third_ns = WEIR_SECOND / RATE;
    const int64_t times_ns[] = { 0, third_ns, third_ns - 2, 2 * third_ns, 2 * third_ns + 1, WEIR_SECOND, 1990000000 };
    const int64_t expected[] = { 0, 1, 0, 2, 2, 30, 59 };
    assert_numbers(
        sample(make_clip(), (weir_sampling){ .what = WEIR_SAMPLE_TIMES, .times_ns = times_ns, .num_times = 7 }),
        expected, 7);
}

TEST_CASE(uniform_frames_are_the_middles_of_equal_parts)
{
    const int64_t four[] = { 7, 22, 37, 52 };
    assert_numbers(sample(make_clip(), (weir_sampling){ .what = WEIR_SAMPLE_UNIFORM, .count = 4 }), four, 4);
    const int64_t six_of_three[] = { 30, 30, 31, 31, 32, 32 };
    assert_numbers(sample(make_clip(), (weir_sampling){ .what = WEIR_SAMPLE_UNIFORM,
                                                        .count = 6,
                                                        .start_ns = WEIR_SECOND,
                                                        .end_ns = 1100000000 }),
                   six_of_three, 6);
}

TEST_CASE(what_is_not_there_fails_and_says_so)
{
    const int64_t beyond = NUM_FRAMES;
    const int64_t before = -NUM_FRAMES - 1;
    const int64_t late_ns = 3 * WEIR_SECOND;
    weir_video_config config =
        config_of((weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = &beyond, .num_indices = 1 });
    assert_fails(make_clip(), &config, WEIR_ERANGE, "frame 60 was requested; the video has 60");
    config.sampling.indices = &before;
    assert_fails(make_clip(), &config, WEIR_ERANGE, "frame -61");
    config = config_of((weir_sampling){ .what = WEIR_SAMPLE_TIMES, .times_ns = &late_ns, .num_times = 1 });
    assert_fails(make_clip(), &config, WEIR_ERANGE,
                 "the frame at 3.000000000 s was requested, 1.000000000 s after the end; the video ends at 2.0");
    config = config_of((weir_sampling){ .start_ns = 5 * WEIR_SECOND });
    assert_fails(make_clip(), &config, WEIR_ERANGE, "no frame matches the sampling");
    config = config_of((weir_sampling){ .what = WEIR_SAMPLE_KEYFRAMES, .start_ns = 1900 * WEIR_MILLISECOND });
    assert_fails(make_clip(), &config, WEIR_ENOTFOUND, "no frame matches the sampling");
}

/* ---- which frame, and what is outside ------------------------------------------------------------------------ */

/* The frame at that time; -1 = WEIR_ERANGE, -2 = WEIR_ENOTFOUND. */
static int64_t frame_at(const char *path, int64_t time_ns, weir_sampling how)
{
    weir_error error = { 0 };
    how.what = WEIR_SAMPLE_TIMES;
    how.times_ns = &time_ns;
    how.num_times = 1;
    weir_video_config config = config_of(how);
    weir_frames *frames = try_sample(path, &config, &error);
    if (!frames)
        return error.status == WEIR_ERANGE ? -1 : error.status == WEIR_ENOTFOUND ? -2 : -3;
    assert_int_equal(frames->num_frames, 1);
    int64_t number = number_of(frames, 0);
    weir_frames_free(frames);
    return number;
}

TEST_CASE(a_time_outside_is_clamped_within_a_frame_or_as_chosen)
{
    const int64_t frame_ns = WEIR_SECOND / RATE, end_ns = 2 * WEIR_SECOND;
    static const weir_time_outside always = WEIR_OUTSIDE_CLAMP, never = WEIR_OUTSIDE_FAIL;
    const struct {
        int64_t time_ns;
        weir_time_outside outside;
        int64_t frame;
    } cases[] = {
        { end_ns, WEIR_OUTSIDE_NEAR, 59 },
        { end_ns + frame_ns, WEIR_OUTSIDE_NEAR, 59 },
        { end_ns + frame_ns + 3, WEIR_OUTSIDE_NEAR, -1 },
        { -1, WEIR_OUTSIDE_NEAR, 0 },
        { -frame_ns, WEIR_OUTSIDE_NEAR, 0 },
        { -frame_ns - 3, WEIR_OUTSIDE_NEAR, -1 },
        { end_ns - 2, never, 59 },
        { end_ns, never, -1 },
        { -2, never, -1 },
        { 0, never, 0 },
        { INT64_MAX, always, 59 },
        { INT64_MIN, always, 0 },
        { end_ns, always, 59 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (frame_at(make_clip(), cases[i].time_ns, (weir_sampling){ .outside = cases[i].outside }) != cases[i].frame)
            fail_msg("at %" PRId64 " ns, outside %d: not frame %" PRId64, cases[i].time_ns, (int)cases[i].outside,
                     cases[i].frame);
}

TEST_CASE(an_error_says_by_how_much)
{
    const int64_t early_ns = -1500 * WEIR_MILLISECOND, between_ns = 1010 * WEIR_MILLISECOND;
    weir_video_config config =
        config_of((weir_sampling){ .what = WEIR_SAMPLE_TIMES, .times_ns = &early_ns, .num_times = 1 });
    assert_fails(make_clip(), &config, WEIR_ERANGE,
                 "the frame at -1.500000000 s was requested, 1.500000000 s before the first frame");
    config.sampling.times_ns = &between_ns;
    config.sampling.match = WEIR_MATCH_EXACT;
    assert_fails(make_clip(), &config, WEIR_ENOTFOUND,
                 "no frame is at 1.010000000 s: the nearest is at 1.000000000 s, 0.010000000 s away");
}

TEST_CASE(the_nearest_frame_or_none_within_the_tolerance)
{
    const int64_t frame_ns = WEIR_SECOND / RATE;
    const weir_sampling nearest = { .match = WEIR_MATCH_NEAREST };
    weir_sampling exact = { .match = WEIR_MATCH_EXACT };
    assert_int_equal(frame_at(make_clip(), 10 * WEIR_SECOND / RATE + frame_ns / 2 - 1000, nearest), 10);
    assert_int_equal(frame_at(make_clip(), 10 * WEIR_SECOND / RATE + frame_ns / 2 + 1000, nearest), 11);
    assert_int_equal(frame_at(make_clip(), WEIR_SECOND + 500000 / RATE * 1000, nearest), 30);
    assert_int_equal(frame_at(make_clip(), 0, nearest), 0);
    assert_int_equal(frame_at(make_clip(), 2 * WEIR_SECOND - 5, nearest), 59);
    assert_int_equal(frame_at(make_clip(), 10 * WEIR_SECOND / RATE, exact), 10);
    assert_int_equal(frame_at(make_clip(), 10 * WEIR_SECOND / RATE + 100, exact), -2);
    exact.tolerance_ns = 100 * 1000;
    assert_int_equal(frame_at(make_clip(), WEIR_SECOND + exact.tolerance_ns, exact), 30);
    assert_int_equal(frame_at(make_clip(), WEIR_SECOND - exact.tolerance_ns, exact), 30);
    assert_int_equal(frame_at(make_clip(), WEIR_SECOND + exact.tolerance_ns + 2, exact), -2);
    assert_int_equal(frame_at(make_clip(), WEIR_SECOND - exact.tolerance_ns - 2, exact), -2);
    /* the rounding of a stored time is not a difference */
    const int64_t rounded_ns = 2 * WEIR_SECOND / RATE;
    weir_frames *frames =
        sample(make_container("c.mkv"),
               (weir_sampling){
                   .what = WEIR_SAMPLE_TIMES, .times_ns = &rounded_ns, .num_times = 1, .match = WEIR_MATCH_EXACT });
    assert_int_equal(frames->pts[0], 67);
    weir_frames_free(frames);
}

/* As torchcodec and ffmpeg count: the first frame's time is not 0. */
TEST_CASE(times_may_count_as_the_stream_does)
{
    const char *path = clips_make("late.mkv", "-f lavfi -i testsrc2=s=64x48:r=25 -frames:v 50 -c:v libx264 -bf 0 "
                                              "-pix_fmt yuv420p -output_ts_offset 3");
    const int64_t times_ns[] = { 3 * WEIR_SECOND, 3400 * WEIR_MILLISECOND, 4960 * WEIR_MILLISECOND };
    const int64_t first_ns = 0;
    weir_sampling list = {
        .what = WEIR_SAMPLE_TIMES, .times_ns = times_ns, .num_times = 3, .origin = WEIR_ORIGIN_STREAM
    };
    weir_frames *frames = sample(path, list);
    assert_int_equal(frames->num_frames, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(frames->pts[i] * WEIR_MILLISECOND, times_ns[i]);
    weir_frames_free(frames);
    weir_sampling window = { .start_ns = 3400 * WEIR_MILLISECOND,
                             .end_ns = 3800 * WEIR_MILLISECOND,
                             .origin = WEIR_ORIGIN_STREAM };
    frames = sample(path, window);
    assert_int_equal(frames->num_frames, 10);
    assert_int_equal(frames->pts[0], 3400);
    weir_frames_free(frames);
    list.times_ns = &first_ns;
    list.num_times = 1;
    weir_video_config config = config_of(list);
    assert_fails(
        path, &config, WEIR_ERANGE,
        "the frame at 0.000000000 s was requested, 3.000000000 s before the first frame; the video begins at 3.0");
}

/* ---- at random ----------------------------------------------------------------------------------------------- */

enum { NUM_ITEMS = 24, COUNT = 5 };

/* The numbers of the frames of each item. */
static void draw(int64_t numbers[NUM_ITEMS][COUNT], const weir_video_config *config, uint32_t concurrency)
{
    const char *paths[NUM_ITEMS];
    weir_item item;
    for (size_t i = 0; i < NUM_ITEMS; i++)
        paths[i] = make_clip();
    weir_pipeline *pipeline = start(paths, NUM_ITEMS, config, concurrency);
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        const weir_frames *frames = item.data;
        assert_int_equal(frames->num_frames, COUNT);
        for (uint32_t i = 0; i < COUNT; i++)
            numbers[item.seq][i] = number_of(frames, i);
        weir_item_release(&item);
    }
    weir_pipeline_free(pipeline);
}

TEST_CASE(chance_depends_on_seed_and_item_alone)
{
    int64_t first[NUM_ITEMS][COUNT];
    int64_t second[NUM_ITEMS][COUNT];
    weir_video_config config = config_of((weir_sampling){ .what = WEIR_SAMPLE_RANDOM, .count = COUNT });
    draw(first, &config, 1);
    draw(second, &config, 5);
    assert_memory_equal(first, second, sizeof first);
    for (size_t i = 1; i < NUM_ITEMS; i++)
        assert_memory_not_equal(first[i], first[i - 1], sizeof first[i]);
    config.seed++;
    draw(second, &config, 5);
    for (size_t i = 0; i < NUM_ITEMS; i++)
        assert_memory_not_equal(first[i], second[i], sizeof first[i]);
}

/* Of a list or a folder (NULL): the frames of each clip in the first epoch, then in the second one. */
static void draw_epochs(const char *folder, int64_t numbers[2][NUM_ITEMS][COUNT])
{
    weir_video_config config = config_of((weir_sampling){ .what = WEIR_SAMPLE_RANDOM, .count = COUNT });
    const char *paths[NUM_ITEMS];
    weir_item item;
    int status;
    weir_builder *builder = weir_builder_new();
    for (size_t i = 0; i < NUM_ITEMS; i++)
        paths[i] = make_clip();
    if (folder)
        weir_source_directory(builder, &(weir_directory_config){ .root = folder, .glob = "*.mp4" },
                              &(weir_stage_options){ .epochs = 2 });
    else
        weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = NUM_ITEMS },
                         &(weir_stage_options){ .epochs = 2 });
    weir_pipe_video(builder, &config, &(weir_stage_options){ .concurrency = 3 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline;
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        for (uint32_t i = 0; status == WEIR_OK && i < COUNT; i++)
            numbers[item.epoch][item.seq][i] = number_of(item.data, i);
        weir_item_release(&item);
    }
    weir_pipeline_free(pipeline);
}

TEST_CASE(each_epoch_draws_other_frames_of_a_list_and_of_a_folder)
{
    char folder[] = "/tmp/weir-sampling-XXXXXX", link_path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(link_path, sizeof link_path, "%s/clip.mp4", folder);
    assert_int_equal(symlink(make_clip(), link_path), 0);
    for (int i = 0; i < 2; i++) {
        int64_t first[2][NUM_ITEMS][COUNT] = { { { 0 } } }, again[2][NUM_ITEMS][COUNT] = { { { 0 } } };
        draw_epochs(i ? folder : NULL, first);
        draw_epochs(i ? folder : NULL, again);
        assert_memory_equal(first, again, sizeof first);
        for (size_t item = 0; item < (i ? 1 : NUM_ITEMS); item++)
            assert_memory_not_equal(first[0][item], first[1][item], sizeof first[0][item]);
    }
    unlink(link_path);
    rmdir(folder);
}

TEST_CASE(chance_keeps_to_its_interval)
{
    int64_t numbers[NUM_ITEMS][COUNT];
    weir_video_config config =
        config_of((weir_sampling){ .what = WEIR_SAMPLE_RANDOM, .count = COUNT, .length_frames = COUNT });
    draw(numbers, &config, 2);
    for (size_t i = 0; i < NUM_ITEMS; i++) {
        for (int64_t k = 0; k < COUNT; k++)
            assert_int_equal(numbers[i][k], numbers[i][0] + k);
    }
    config = config_of((weir_sampling){
        .what = WEIR_SAMPLE_RANDOM, .count = COUNT, .length_ns = WEIR_SECOND / 3, .start_ns = WEIR_SECOND / 2 });
    draw(numbers, &config, 2);
    for (size_t i = 0; i < NUM_ITEMS; i++) {
        assert_in_range(numbers[i][0], 15, 59);
        for (size_t k = 1; k < COUNT; k++)
            assert_true(numbers[i][k] > numbers[i][k - 1]);
        assert_true(numbers[i][COUNT - 1] - numbers[i][0] < 10);
    }
}

/* ---- clips --------------------------------------------------------------------------------------------------- */

/* Frames of an even rate: number i is shown from i to i + 1 intervals. `stride` counts frames. */
static int64_t expected_frame(const weir_sampling *sampling, int64_t begin, int64_t end, int64_t start, int64_t step,
                              int64_t stride, bool *is_repeat)
{
    int64_t num_there = (end - start + stride - 1) / stride;
    num_there = num_there < (int64_t)sampling->count ? num_there : (int64_t)sampling->count;
    *is_repeat = step >= num_there;
    (void)begin;
    if (*is_repeat)
        step = sampling->clip_short == WEIR_SHORT_LOOP ? step % num_there : num_there - 1;
    return start + step * stride;
}

/* By its time, which no other frame has. */
static int64_t number_of_frame(const weir_frames *whole, const weir_frames *frames, size_t at)
{
    for (uint32_t i = 0; i < whole->num_frames; i++)
        if (whole->times_ns[i] == frames->times_ns[at])
            return i;
    return -1;
}

static void check_clips(const char *path, const weir_frames *whole, weir_sampling sampling, uint64_t *num_repeats)
{
    int64_t begin = (int64_t)sampling.start_frame;
    int64_t end = sampling.end_frame && sampling.end_frame < NUM_FRAMES ? (int64_t)sampling.end_frame : NUM_FRAMES;
    int64_t stride = sampling.stride_ns       ? (sampling.stride_ns * RATE + WEIR_SECOND / 2) / WEIR_SECOND
                     : sampling.stride_frames ? (int64_t)sampling.stride_frames
                                              : 1;
    int64_t span = ((int64_t)sampling.count - 1) * stride + 1;
    int64_t most = end - begin - span;
    uint32_t num_clips = sampling.num_clips ? sampling.num_clips : 1;
    weir_frames *frames = sample(path, sampling);
    assert_int_equal(frames->num_frames, sampling.count * num_clips);
    assert_int_equal(frames->num_clips, sampling.num_clips);
    for (uint32_t clip = 0; clip < num_clips; clip++) {
        size_t first = (size_t)clip * sampling.count;
        int64_t start = number_of_frame(whole, frames, first), last = most > 0 ? most : 0;
        assert_in_range(start, begin, begin + last);
        if (sampling.clip_start == WEIR_CLIP_FIRST)
            assert_int_equal(start, begin);
        if (sampling.clip_start == WEIR_CLIP_CENTER || (sampling.clip_start == WEIR_CLIP_EVEN && num_clips == 1))
            assert_int_equal(start, begin + last / 2);
        if (sampling.clip_start == WEIR_CLIP_EVEN && num_clips > 1)
            assert_int_equal(start, begin + (int64_t)clip * last / (int64_t)(num_clips - 1));
        for (uint32_t step = 0; step < sampling.count; step++) {
            bool is_repeat;
            int64_t wanted = expected_frame(&sampling, begin, end, start, step, stride, &is_repeat);
            if (number_of_frame(whole, frames, first + step) != wanted || frames->mask[first + step] != !is_repeat ||
                memcmp(frames->data + (first + step) * frames->frame_bytes,
                       whole->data + (size_t)wanted * whole->frame_bytes, whole->frame_bytes) != 0)
                fail_msg("%s: %u frames at %" PRId64 " in %" PRId64 " to %" PRId64
                         ": step %u of clip %u is not %" PRId64,
                         path, sampling.count, stride, begin, end, step, clip, wanted);
            *num_repeats += is_repeat;
        }
    }
    weir_frames_free(frames);
}

TEST_CASE(clips_are_what_an_independent_formula_says)
{
    const char *paths[] = { make_clip(), make_bare() };
    uint64_t draws = 5, num_repeats = 0;
    for (unsigned i = 0; i < 120 && paths[0]; i++) {
        const char *path = paths[i % 8 == 7];
        weir_frames *whole = sample(path, (weir_sampling){ 0 });
        weir_sampling sampling = {
            .what = WEIR_SAMPLE_CLIPS,
            .count = 1 + (uint32_t)(weir__random_next(&draws) % 20),
            .clip_start = (weir_clip_start)(weir__random_next(&draws) % 4),
            .clip_short = (weir_clip_short)(weir__random_next(&draws) % 2),
            .stride_frames = (uint32_t)(weir__random_next(&draws) % 8),
        };
        if (sampling.clip_start >= WEIR_CLIP_RANDOM)
            sampling.num_clips = (uint32_t)(weir__random_next(&draws) % 4);
        if (sampling.stride_frames == 7 && path == paths[0]) { /* in time: a multiple of the frames' distance */
            sampling.stride_frames = 0;
            sampling.stride_ns = 3 * WEIR_SECOND / RATE;
        }
        if (weir__random_next(&draws) % 2) {
            sampling.start_frame = weir__random_next(&draws) % NUM_FRAMES;
            sampling.end_frame = sampling.start_frame + 1 + weir__random_next(&draws) % NUM_FRAMES;
        }
        check_clips(path, whole, sampling, &num_repeats);
        weir_frames_free(whole);
    }
    assert_true(!paths[0] || num_repeats > 0);
}

/* All starts are possible, the first and the last one, too, and about equally likely. */
TEST_CASE(random_clips_start_everywhere)
{
    enum { STARTS = 5, CLIPS = 500 };
    const char *path = make_clip();
    if (!path)
        return;
    weir_frames *whole = sample(path, (weir_sampling){ 0 });
    weir_frames *clips = sample(path, (weir_sampling){ .what = WEIR_SAMPLE_CLIPS,
                                                       .count = 3,
                                                       .stride_frames = 2,
                                                       .num_clips = CLIPS,
                                                       .clip_start = WEIR_CLIP_RANDOM,
                                                       .start_frame = 10,
                                                       .end_frame = 10 + STARTS + 4 });
    unsigned num_here[STARTS] = { 0 };
    for (size_t clip = 0; clip < CLIPS; clip++) {
        int64_t start = number_of_frame(whole, clips, clip * 3);
        assert_in_range(start, 10, 10 + STARTS - 1);
        num_here[start - 10]++;
    }
    for (size_t i = 0; i < STARTS; i++)
        assert_in_range(num_here[i], CLIPS / STARTS / 2, 2 * CLIPS / STARTS); /* 100; the deviation is 9 */
    weir_frames_free(whole);
    weir_frames_free(clips);
}

TEST_CASE(a_clip_that_does_not_fit_fails_if_that_is_wanted)
{
    const char *path = make_clip();
    weir_sampling sampling = {
        .what = WEIR_SAMPLE_CLIPS, .count = 16, .stride_frames = 4, .clip_short = WEIR_SHORT_FAIL
    };
    weir_video_config config = config_of(sampling);
    if (!path)
        return;
    assert_fails(path, &config, WEIR_ERANGE,
                 "a clip of 16 frames at a stride of 4 does not fit: there are 60 frames");
    sampling.count = 15; /* 57 frames */
    weir_frames_free(sample(path, sampling));
}

/* ---- pieces -------------------------------------------------------------------------------------------------- */

/* Returns the number of chunks. */
static uint32_t assert_chunks(const char *path, weir_sampling sampling, uint32_t chunk_frames)
{
    weir_frames *whole = sample(path, sampling);
    weir_video_config config = config_of(sampling);
    config.chunk_frames = chunk_frames;
    weir_pipeline *pipeline = start(&path, 1, &config, 1);
    uint32_t num_chunks = 0;
    uint32_t num_frames = 0;
    bool is_last = false;
    weir_frames *chunk;
    while ((chunk = next_frames(pipeline))) {
        assert_false(is_last);
        is_last = chunk->is_last_chunk;
        assert_true(is_last ? chunk->num_frames <= chunk_frames : chunk->num_frames == chunk_frames);
        assert_int_equal(chunk->first_frame, num_frames);
        assert_true(num_frames + chunk->num_frames <= whole->num_frames);
        assert_memory_equal(chunk->data, whole->data + num_frames * whole->frame_bytes,
                            chunk->num_frames * whole->frame_bytes);
        assert_memory_equal(chunk->pts, whole->pts + num_frames, chunk->num_frames * sizeof *chunk->pts);
        num_frames += chunk->num_frames;
        num_chunks++;
        weir_frames_free(chunk);
    }
    assert_true(is_last);
    assert_int_equal(num_frames, whole->num_frames);
    weir_pipeline_free(pipeline);
    weir_frames_free(whole);
    return num_chunks;
}

TEST_CASE(chunks_make_up_the_whole)
{
    assert_int_equal(assert_chunks(make_clip(), (weir_sampling){ 0 }, 20), 3);
    assert_int_equal(assert_chunks(make_clip(), (weir_sampling){ 0 }, 25), 3);
    assert_int_equal(assert_chunks(make_clip(), (weir_sampling){ 0 }, 60), 1);
    assert_int_equal(assert_chunks(make_clip(), (weir_sampling){ 0 }, 1), 60);
    assert_int_equal(assert_chunks(make_bare(), (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 5 }, 5), 3);
    assert_int_equal(assert_chunks(make_clip(), (weir_sampling){ .what = WEIR_SAMPLE_RATE, .rate_num = 100 }, 7), 29);
}

TEST_CASE(lists_come_in_chunks_if_they_rise)
{
    const int64_t indices[] = { 0, 5, 5, 5, 6, 30, 59 };
    const int64_t times_ns[] = { 0, WEIR_SECOND / 2, WEIR_SECOND };
    const int64_t from_end[] = { -9, -5, -1 };
    const weir_sampling rising = { .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 7 };
    assert_int_equal(assert_chunks(make_clip(), rising, 2), 4);
    assert_int_equal(assert_chunks(make_bare(), rising, 3), 3);
    assert_int_equal(assert_chunks(make_clip(),
                                   (weir_sampling){ .what = WEIR_SAMPLE_TIMES, .times_ns = times_ns, .num_times = 3 },
                                   2),
                     2);
    assert_int_equal(
        assert_chunks(make_clip(),
                      (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = from_end, .num_indices = 3 }, 1),
        3);
}

TEST_CASE(chunks_of_several_items_do_not_mix)
{
    const char *paths[] = { make_clip(), make_uneven(), clips_path("missing.mp4"), make_clip(), make_bare() };
    weir_video_config config = config_of((weir_sampling){ 0 });
    config.chunk_frames = 9;
    weir_pipeline *pipeline = start(paths, 5, &config, 3);
    weir_item item;
    uint32_t num_frames[5] = { 0 };
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        const weir_frames *chunk = item.data;
        assert_int_equal(chunk->first_frame, num_frames[item.seq]);
        num_frames[item.seq] += chunk->num_frames;
        weir_item_release(&item);
    }
    assert_int_equal(num_frames[0], NUM_FRAMES);
    assert_int_equal(num_frames[2], 0);
    assert_int_equal(num_frames[3], NUM_FRAMES);
    assert_int_equal(num_frames[4], NUM_FRAMES);
    weir_pipeline_free(pipeline);
}

/* Stopped in the middle of a file, with chunks still to come: nothing is lost, nothing hangs. */
TEST_CASE(stop_between_chunks)
{
    const char *path = make_clip();
    weir_video_config config = config_of((weir_sampling){ 0 });
    config.chunk_frames = 1;
    weir_pipeline *pipeline = start(&path, 1, &config, 1);
    weir_frames_free(next_frames(pipeline));
    weir_pipeline_stop(pipeline);
    weir_pipeline_free(pipeline);
}

/* ---- damage and limits --------------------------------------------------------------------------------------- */

/* Ends in its middle, but its header promises all. */
static const char *make_truncated(void)
{
    const char *whole = clips_make(
        "faststart.mp4", "-f lavfi -i testsrc2=s=176x144:d=2:r=30 -c:v libx264 -preset veryfast -bf 3 -g 12 "
                         "-pix_fmt yuv420p -movflags faststart");
    return clips_cut(whole, "truncated.mp4", 40000);
}

TEST_CASE(tolerance_counts_and_strictness_fails)
{
    weir_error error = { 0 };
    weir_video_config config = config_of((weir_sampling){ 0 });
    weir_frames *frames = try_sample(make_truncated(), &config, &error);
    assert_non_null(frames);
    assert_in_range(frames->num_frames, 1, NUM_FRAMES - 1);
    assert_true(frames->num_errors > 0);
    config.min_share = (double)frames->num_frames / NUM_FRAMES;
    weir_frames_free(frames);
    weir_frames_free(try_sample(make_truncated(), &config, &error));
    assert_int_equal(error.status, WEIR_OK);
    config.min_share += 0.01;
    assert_fails(make_truncated(), &config, WEIR_EDATA, "of 60 frames could be decoded, min_share is");

    config = config_of((weir_sampling){ 0 });
    config.damage = WEIR_DAMAGE_STRICT;
    assert_fails(make_truncated(), &config, WEIR_EDATA, "damage is not tolerated");
    weir_frames_free(try_sample(make_clip(), &config, &error));
    assert_int_equal(error.status, WEIR_OK);
}

/* What an edit list leaves out of a whole file is not lost. */
/* A copy with noise in some places after its first quarter, different for each seed. */
static const char *make_damaged(const char *whole, unsigned seed)
{
    enum { NUM_PLACES = 6, PLACE_BYTES = 24, MAX_BYTES = 1 << 20 };
    static uint8_t bytes[MAX_BYTES];
    char name[128];
    FILE *file = fopen(whole, "rb");
    assert_non_null(file);
    size_t size_bytes = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    uint32_t random = seed * 2654435761u + 1;
    for (int i = 0; i < NUM_PLACES; i++) {
        random = random * 1664525 + 1013904223;
        size_t at = size_bytes / 4 + (random >> 8) % (size_bytes * 3 / 4 - PLACE_BYTES);
        for (int j = 0; j < PLACE_BYTES; j++) {
            random = random * 1664525 + 1013904223;
            bytes[at + (size_t)j] = (uint8_t)(random >> 16);
        }
    }
    snprintf(name, sizeof name, "damaged_%u_%s", seed, strrchr(whole, '/') + 1);
    const char *path = clips_path(name);
    clips_write(path, bytes, size_bytes);
    return path;
}

static const weir_frames *find_pts(const weir_frames *frames, int64_t pts, const uint8_t **data)
{
    for (uint32_t i = 0; i < frames->num_frames; i++) {
        *data = frames->data + i * frames->frame_bytes;
        if (frames->pts[i] == pts)
            return frames;
    }
    return NULL;
}

/* The number of frames of a result that the full decode gives with other bytes, or not at all. */
static unsigned count_others(const weir_frames *all, const weir_frames *some)
{
    unsigned num_others = 0;
    for (uint32_t i = 0; i < some->num_frames; i++) {
        const uint8_t *data;
        bool is_there = find_pts(all, some->pts[i], &data);
        if (!is_there || memcmp(data, some->data + i * some->frame_bytes, all->frame_bytes) != 0)
            num_others++;
    }
    return num_others;
}

/* The same of all results of the chosen frames. */
static unsigned count_differing(const char *path, weir_sampling sampling, uint32_t chunk_frames)
{
    weir_error error = { 0 };
    weir_video_config whole = config_of((weir_sampling){ 0 });
    weir_video_config chosen = config_of(sampling);
    chosen.chunk_frames = chunk_frames;
    weir_frames *all = try_sample(path, &whole, &error), *some;
    weir_pipeline *pipeline = start(&path, 1, &chosen, 1);
    unsigned num_differing = 0;
    while ((some = next_frames(pipeline))) {
        num_differing += all ? count_others(all, some) : 0;
        weir_frames_free(some);
    }
    weir_pipeline_free(pipeline);
    weir_frames_free(all);
    return num_differing;
}

/* Damage that a decoder does not detect cannot be handled: a few frames may differ. */
TEST_CASE(in_damaged_files_chosen_frames_are_those_of_the_full_decode)
{
    enum { NUM_CHOSEN = 16 };
    static const struct {
        const char *name, *arguments;
    } clips[] = {
        { "d_h264.mp4", "-c:v libx264 -preset veryfast -bf 3 -g 12 -movflags +faststart" },
        { "d_h264_slices.mkv", "-c:v libx264 -preset veryfast -bf 2 -g 20 -x264-params slices=4" },
        { "d_h264_open.ts", "-c:v libx264 -preset veryfast -bf 2 -g 12 -x264-params open-gop=1" },
        { "d_h264_refresh.mp4",
          "-c:v libx264 -preset veryfast -x264-params intra-refresh=1 -g 15 -movflags +faststart" },
        { "d_mpeg4.mp4", "-c:v mpeg4 -bf 2 -g 12 -q:v 6 -movflags +faststart" },
        { "d_mpeg2.ts", "-c:v mpeg2video -bf 2 -g 12 -q:v 6" },
    };
    unsigned num_differing = 0;
    unsigned num_chosen = 0;
    for (size_t i = 0; i < sizeof clips / sizeof clips[0]; i++) {
        char arguments[512];
        snprintf(arguments, sizeof arguments, "-f lavfi -i testsrc2=s=176x144:d=2:r=30 -pix_fmt yuv420p %s",
                 clips[i].arguments);
        const char *whole = clips_make(clips[i].name, arguments);
        for (unsigned seed = 1; whole && seed <= NUM_DAMAGED; seed++) {
            const char *path = make_damaged(whole, seed);
            for (uint32_t chunk_frames = 0; chunk_frames < 2; chunk_frames++) {
                const weir_sampling chosen = { .what = WEIR_SAMPLE_UNIFORM, .count = NUM_CHOSEN };
                unsigned num_here = count_differing(path, chosen, chunk_frames);
                if (num_here > 0)
                    fprintf(stderr, "%s, chunks of %u: %u of %d frames are others\n", path, chunk_frames, num_here,
                            NUM_CHOSEN);
                num_differing += num_here;
                num_chosen += NUM_CHOSEN;
            }
            remove(path);
        }
    }
    assert_true(num_differing * 100 <= num_chosen); /* one in five differed before damage was detected */
}

/* Turns the n-th NAL unit that is a further slice of a P picture into one of a type that decoders pass over. False: there
   are fewer. In this file the data is nothing but NAL units with their lengths. */
static bool drop_slice(uint8_t *bytes, size_t size_bytes, int n)
{
    enum { SLICE = 1, UNSPECIFIED = 31, TYPE = 31, REFERENCE = 0x60, FIRST_BLOCK_IS_0 = 0x80 };
    uint8_t *box = memmem(bytes, size_bytes, "mdat", 4);
    uint8_t *end = box - 4 + ((size_t)box[-4] << 24 | (size_t)box[-3] << 16 | (size_t)box[-2] << 8 | box[-1]);
    for (uint8_t *unit = box + 8; unit < end;) {
        bool fits = (unit[0] & TYPE) == SLICE && (unit[0] & REFERENCE) && !(unit[1] & FIRST_BLOCK_IS_0) && n-- == 0;
        if (fits)
            unit[0] = (uint8_t)(unit[0] | UNSPECIFIED);
        if (fits)
            return true;
        unit += ((size_t)unit[-4] << 24 | (size_t)unit[-3] << 16 | (size_t)unit[-2] << 8 | unit[-1]) + 4;
    }
    return false;
}

/* The decoder patches the hole without an error, and gives the B pictures that show it first. */
TEST_CASE(a_hole_is_patched_as_in_the_full_decode)
{
    enum { MAX_BYTES = 1 << 20, NUM_PICTURES = 30 };
    static uint8_t whole[MAX_BYTES], bytes[MAX_BYTES];
    const char *from =
        clips_make("slices.mp4", "-f lavfi -i testsrc2=s=176x144:d=2:r=15 -c:v libx264 -preset veryfast -bf 2 -g 10 "
                                 "-pix_fmt yuv420p -x264-params slices=3:weightp=0");
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    size_t size_bytes = fread(whole, 1, sizeof whole, file);
    fclose(file);
    unsigned num_differing = 0;
    int num_slices = 0;
    for (;; num_slices += 4) {
        memcpy(bytes, whole, size_bytes);
        if (!drop_slice(bytes, size_bytes, num_slices))
            break;
        clips_write(clips_path("hole.mp4"), bytes, size_bytes);
        for (int64_t i = 1; i < NUM_PICTURES; i += 3)
            num_differing +=
                count_differing(clips_path("hole.mp4"),
                                (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = &i, .num_indices = 1 }, 0);
    }
    assert_true(num_slices > 10);
    assert_int_equal(num_differing, 0);
}

/* The demuxer gives it with the first packet only. */
TEST_CASE(a_palette_applies_to_all_frames)
{
    const char *path = clips_make("palette.avi", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v rawvideo -pix_fmt pal8");
    assert_int_equal(count_differing(path, (weir_sampling){ .what = WEIR_SAMPLE_UNIFORM, .count = 5 }, 0), 0);
}

TEST_CASE(frames_that_are_not_to_be_shown_are_not_missed)
{
    weir_error error = { 0 };
    char arguments[4096];
    (void)make_truncated();
    snprintf(arguments, sizeof arguments, "-ss 0.3 -t 1.2 -i '%s' -c copy", clips_path("faststart.mp4"));
    const char *path = clips_make("trimmed.mp4", arguments);
    for (uint32_t count = 0; count <= 60; count += 30) {
        weir_video_config config = config_of((weir_sampling){ .count = count });
        config.min_share = 1;
        weir_frames *frames = try_sample(path, &config, &error);
        if (!frames)
            fail_msg("%s", error.message);
        weir_frames_free(frames);
    }
}

TEST_CASE(over_a_limit_fails_and_says_which)
{
    weir_error error = { 0 };
    weir_video_config config = config_of((weir_sampling){ 0 });
    config.max_frames = NUM_FRAMES;
    config.max_duration_ns = 2 * WEIR_SECOND;
    weir_frames_free(try_sample(make_clip(), &config, &error));
    assert_int_equal(error.status, WEIR_OK);
    config.max_frames--;
    assert_fails(make_clip(), &config, WEIR_ELIMIT, "raise max_frames");
    config.sampling = (weir_sampling){ .what = WEIR_SAMPLE_RATE, .rate_num = 1000 };
    assert_fails(make_clip(), &config, WEIR_ELIMIT, "raise max_frames");

    config = config_of((weir_sampling){ 0 });
    config.max_duration_ns = WEIR_SECOND;
    assert_fails(make_clip(), &config, WEIR_ELIMIT, "raise max_duration_ns");
    config.sampling = (weir_sampling){ .what = WEIR_SAMPLE_UNIFORM, .count = 2 };
    assert_fails(make_clip(), &config, WEIR_ELIMIT, "raise max_duration_ns");
    assert_fails(make_bare(), &config, WEIR_ELIMIT, "raise max_duration_ns");
}

/* ---- options ------------------------------------------------------------------------------------------------- */

static void assert_refused_in_chunks(weir_sampling sampling, uint32_t chunk_frames, const char *text)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_video_config config = config_of(sampling);
    config.chunk_frames = chunk_frames;
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .may_be_empty = true }, NULL);
    weir_pipe_video(builder, &config, NULL);
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_EINVAL);
    if (!strstr(error.message, text))
        fail_msg("%s, not %s", error.message, text);
}

static void assert_refused(weir_sampling sampling, const char *text)
{
    assert_refused_in_chunks(sampling, 0, text);
}

TEST_CASE(impossible_samplings_are_refused)
{
    const int64_t negative = -1;
    assert_refused((weir_sampling){ .what = (weir_sample)77 }, "77");
    assert_refused((weir_sampling){ .what = WEIR_SAMPLE_UNIFORM }, "count is 0");
    assert_refused((weir_sampling){ .what = WEIR_SAMPLE_RANDOM }, "count is 0");
    assert_refused((weir_sampling){ .what = WEIR_SAMPLE_EVERY }, "every is 0");
    assert_refused((weir_sampling){ .what = WEIR_SAMPLE_RATE }, "rate_num is 0");
    assert_refused((weir_sampling){ .what = WEIR_SAMPLE_INDICES }, "no indices");
    assert_refused((weir_sampling){ .what = WEIR_SAMPLE_TIMES }, "no times");
    weir_sampling times = { .what = WEIR_SAMPLE_TIMES, .times_ns = &negative, .num_times = 1, .tolerance_ns = 1 };
    assert_refused(times, "match is not WEIR_MATCH_EXACT");
    times.match = WEIR_MATCH_EXACT;
    times.tolerance_ns = -1;
    assert_refused(times, "tolerance_ns is negative");
    times.outside = (weir_time_outside)3;
    assert_refused(times, "outside 3");
    assert_refused((weir_sampling){ .match = WEIR_MATCH_NEAREST }, "only for explicit times");
    assert_refused((weir_sampling){ .what = WEIR_SAMPLE_UNIFORM, .count = 2, .origin = WEIR_ORIGIN_STREAM },
                   "only for times and windows");
    assert_refused((weir_sampling){ .start_ns = 5, .end_ns = 5 }, "ends before it starts");
    assert_refused((weir_sampling){ .start_ns = -1 }, "before 0");
    assert_refused((weir_sampling){ .length_frames = 3 }, "only random frames");
    assert_refused((weir_sampling){ .num_clips = 3 }, "only for clips");
    assert_refused((weir_sampling){ .what = WEIR_SAMPLE_CLIPS }, "count is 0");
    assert_refused((weir_sampling){ .what = WEIR_SAMPLE_CLIPS, .count = 3, .num_clips = 2 }, "several clips need");
    assert_refused((weir_sampling){ .what = WEIR_SAMPLE_CLIPS, .count = 3, .stride_frames = 2, .stride_ns = 2 },
                   "not both");
    assert_refused((weir_sampling){ .start_frame = 3, .end_frame = 3 }, "ends before it starts");
    assert_refused((weir_sampling){ .what = WEIR_SAMPLE_INDICES, .start_frame = 3 },
                   "cannot be combined with a window");

    const int64_t falling[] = { 5, 4 };
    const int64_t mixed[] = { -1, 4 };
    assert_refused_in_chunks((weir_sampling){ .what = WEIR_SAMPLE_TIMES, .times_ns = falling, .num_times = 2 }, 8,
                             "indices or times that increase");
    assert_refused_in_chunks((weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = mixed, .num_indices = 2 }, 8,
                             "indices or times that increase");
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
