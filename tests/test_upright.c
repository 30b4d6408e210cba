/* Rotation and filters of the decode stage, compared with the output of the ffmpeg program; also of chosen frames
   and in chunks. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

#include <weir/engine.h>
#include <weir/files.h>
#include <weir/video.h>

#include "tests/clips.h"

static weir_pipeline *start_with(const char *path, const weir_video_config *config, const weir_stage_options *options)
{
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_pipe_video(builder, config, options);
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return pipeline;
}

static weir_pipeline *start(const char *path, const weir_video_config *config)
{
    return start_with(path, config, NULL);
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

static weir_frames *decode(const char *path, const weir_video_config *config)
{
    weir_error error = { 0 };
    weir_pipeline *pipeline = start(path, config);
    weir_frames *frames = next_frames(pipeline);
    if (!frames) {
        weir_pipeline_error(pipeline, "decode", &error);
        fail_msg("%s: %s", path, error.message);
    }
    weir_pipeline_free(pipeline);
    return frames;
}

static void assert_fails(const char *path, const weir_video_config *config, int status, const char *text)
{
    weir_error error = { 0 };
    weir_pipeline *pipeline = start(path, config);
    weir_frames_free(next_frames(pipeline));
    weir_pipeline_error(pipeline, "decode", &error);
    if (error.status != status || !strstr(error.message, text))
        fail_msg("%s: %s (%s), not %s", path, error.message, weir_status_name(error.status), text);
    weir_pipeline_free(pipeline);
}

/* The decoded file is, byte for byte, the output of ffmpeg with these. Returns the number of frames. */
static uint32_t assert_as_ffmpeg(const char *path, const weir_video_config *config, const char *options,
                                 const char *filter)
{
    size_t expected_bytes;
    uint8_t *expected = clips_decode_with(options, path, filter, &expected_bytes);
    weir_frames *frames = decode(path, config);
    uint32_t num_frames = frames->num_frames;
    size_t size_bytes = num_frames * frames->frame_bytes;
    if (size_bytes != expected_bytes || memcmp(frames->data, expected, expected_bytes) != 0)
        fail_msg("%s, %s %s: %zu bytes, not ffmpeg's %zu bytes", path, options, filter, size_bytes, expected_bytes);
    free(expected);
    weir_frames_free(frames);
    return num_frames;
}

/* ---- rotation ----------------------------------------------------------------------------------------------- */

typedef struct rotation {
    const char *name;
    clips_matrix matrix;
} rotation;

static const rotation rotations[] = {
    { "clockwise", { 0, 1, -1, 0 } },    { "half", { -1, 0, 0, -1 } },       { "anticlockwise", { 0, -1, 1, 0 } },
    { "mirrored", { -1, 0, 0, 1 } },     { "upside_down", { 1, 0, 0, -1 } }, { "transposed", { 0, 1, 1, 0 } },
    { "transversed", { 0, -1, -1, 0 } },
};

enum { NUM_ROTATIONS = sizeof rotations / sizeof rotations[0] };

static void assert_turned(const char *from, const char *kind, const weir_video_config *config, const char *filter)
{
    for (size_t i = 0; i < NUM_ROTATIONS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s.mp4", kind, rotations[i].name);
        assert_as_ffmpeg(clips_rotate(from, name, rotations[i].matrix), config, "", filter);
    }
}

static const char *make_h264(void)
{
    return clips_make("h264.mp4",
                      "-f lavfi -i testsrc2=s=340x256:d=0.4 -c:v libx264 -preset veryfast -pix_fmt yuv420p");
}

TEST_CASE(pictures_are_turned_as_ffmpeg_does)
{
    weir_video_config config = { WEIR_WITH_PICTURE(.width = 128, .height = 96, .resize = WEIR_RESIZE_STRETCH,
                                                   .scaler = WEIR_SCALER_EXACT) };
    assert_turned(make_h264(), "even", &config, "scale=128:96:flags=bicubic,format=rgb24");
}

TEST_CASE(odd_and_deep_pictures_are_turned_too)
{
    static const char *const kinds[][2] = {
        { "odd_444", "-f lavfi -i testsrc2=s=321x243:d=0.2 -c:v libx264 -preset veryfast -pix_fmt yuv444p" },
        { "deep", "-f lavfi -i testsrc2=s=320x240:d=0.2 -c:v libx264 -preset veryfast -pix_fmt yuv420p10le" },
        { "gray", "-f lavfi -i testsrc2=s=320x240:d=0.2 -c:v libx264 -preset veryfast -pix_fmt gray" },
        { "mpeg4_odd", "-f lavfi -i testsrc2=s=321x243:d=0.2 -c:v mpeg4 -pix_fmt yuv420p" },
    };
    weir_video_config config = { WEIR_WITH_PICTURE(.width = 80, .height = 60, .resize = WEIR_RESIZE_STRETCH,
                                                   .scaler = WEIR_SCALER_EXACT) };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.mp4", kinds[i][0]);
        const char *path = clips_make(name, kinds[i][1]);
        if (path)
            assert_turned(path, kinds[i][0], &config, "scale=80:60:flags=bicubic,format=rgb24");
    }
}

/* 4:2:2 on its side would have its chroma the other way round. */
TEST_CASE(formats_that_cannot_be_turned_are_converted)
{
    const char *path =
        clips_make("h264_422.mp4", "-f lavfi -i testsrc2=s=320x240:d=0.2 -c:v libx264 -preset veryfast "
                                   "-pix_fmt yuv422p");
    path = clips_rotate(path, "h264_422_turned.mp4", rotations[0].matrix);
    weir_frames *frames = decode(path, &(weir_video_config){ 0 });
    assert_int_equal(frames->width, 240);
    assert_int_equal(frames->height, 320);
    weir_frames_free(frames);
}

TEST_CASE(without_a_size_turned_pictures_have_their_own)
{
    const char *path = clips_rotate(make_h264(), "own_size.mp4", rotations[0].matrix);
    weir_picture_config picture = { .pixel = WEIR_PIXEL_YUV420P };
    const weir_video_config config = { .picture = &picture, .picture_size = sizeof picture };
    weir_frames *frames = decode(path, &config);
    assert_int_equal(frames->width, 256);
    assert_int_equal(frames->height, 340);
    assert_int_equal(frames->source_width, 340);
    assert_int_equal(frames->source_height, 256);
    weir_frames_free(frames);
    assert_as_ffmpeg(path, &config, "", "null");
    picture.no_autorotate = true;
    assert_as_ffmpeg(path, &config, "-noautorotate", "null");
}

TEST_CASE(real_phone_clips_are_turned)
{
    static const char *const names[] = { "0", "90", "180", "270" };
    const char *media = clips_media();
    if (!media)
        skip();
    weir_video_config config = { WEIR_WITH_PICTURE(.width = 128, .height = 128, .resize = WEIR_RESIZE_STRETCH,
                                                   .scaler = WEIR_SCALER_EXACT) };
    for (size_t i = 0; i < 4; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/decord/tests_test_data_video_%s.mov", media, names[i]);
        assert_as_ffmpeg(path, &config, "", "scale=128:128:flags=bicubic,format=rgb24");
    }
}

/* ---- filters ------------------------------------------------------------------------------------------------- */

static bool has_filters(void)
{
    weir_builder *builder = weir_builder_new();
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_source_list(builder, &(weir_list_config){ .may_be_empty = true }, NULL);
    weir_pipe_video(builder, &(weir_video_config){ WEIR_WITH_PICTURE(.filter = "null") }, NULL);
    weir_builder_sink(builder, NULL);
    int rc = weir_builder_build(builder, NULL, &pipeline, &error);
    if (rc == WEIR_OK)
        weir_pipeline_free(pipeline);
    else
        fprintf(stderr, "skipped: %s\n", error.message);
    return rc == WEIR_OK;
}

TEST_CASE(pictures_go_through_the_filter)
{
    static const char *const filters[] = { "hflip", "crop=200:100,hflip", "hue=s=0", "transpose=1",
                                           "split[a][b];[a]vflip[c];[b][c]hstack" };
    if (!has_filters())
        skip();
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        char filter[256];
        weir_video_config config = { WEIR_WITH_PICTURE(.width = 64, .height = 48, .resize = WEIR_RESIZE_STRETCH,
                                                       .scaler = WEIR_SCALER_EXACT, .filter = filters[i]) };
        snprintf(filter, sizeof filter, "%s,scale=64:48:flags=bicubic,format=rgb24", filters[i]);
        assert_int_equal(assert_as_ffmpeg(make_h264(), &config, "-noautorotate", filter), 10);
    }
}

/* Frames that a filter holds back come at the end; those it drops or adds do not matter. */
TEST_CASE(filters_may_change_the_number_of_frames)
{
    static const struct {
        const char *filter;
        uint32_t num_frames;
    } filters[] = { { "fps=5", 2 },    { "select=not(mod(n\\,3))", 4 }, { "tmix=frames=3", 10 },
                    { "reverse", 10 }, { "loop=loop=2:size=10", 30 },   { "yadif", 10 } };
    if (!has_filters())
        skip();
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        weir_video_config config = { WEIR_WITH_PICTURE(.pixel = WEIR_PIXEL_YUV420P, .filter = filters[i].filter) };
        uint32_t num_frames = assert_as_ffmpeg(make_h264(), &config, "-noautorotate", filters[i].filter);
        assert_int_equal(num_frames, filters[i].num_frames);
    }
}

TEST_CASE(filtered_frames_have_the_times_of_the_stream)
{
    if (!has_filters())
        skip();
    weir_frames *frames = decode(make_h264(), &(weir_video_config){ WEIR_WITH_PICTURE(.filter = "fps=5") });
    assert_int_equal(frames->num_frames, 2);
    assert_int_equal((frames->pts[1] - frames->pts[0]) * 5 * frames->time_base_num, frames->time_base_den);
    weir_frames_free(frames);
}

TEST_CASE(turned_pictures_are_filtered_upright)
{
    if (!has_filters())
        skip();
    const char *path = clips_rotate(make_h264(), "filtered.mp4", rotations[0].matrix);
    assert_as_ffmpeg(
        path, &(weir_video_config){ WEIR_WITH_PICTURE(.pixel = WEIR_PIXEL_YUV420P, .filter = "crop=256:200:0:0") },
        "", "crop=256:200:0:0");
}

static void assert_config_refused(const weir_video_config *config, const char *text)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .may_be_empty = true }, NULL);
    weir_pipe_video(builder, config, NULL);
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_EINVAL);
    if (!strstr(error.message, text) || !strstr(error.message, config->picture->filter))
        fail_msg("%s", error.message);
}

static void assert_refused(const char *filter, const char *text)
{
    assert_config_refused(&(weir_video_config){ WEIR_WITH_PICTURE(.filter = filter) }, text);
}

TEST_CASE(impossible_filters_are_refused)
{
    if (!has_filters())
        skip();
    assert_refused("nosuchfilter=3", "is not supported by this FFmpeg");
    assert_refused("split", "one output");
    assert_refused("overlay", "one input");
    assert_refused("testsrc", "one input");
}

/* ---- of chosen frames ---------------------------------------------------------------------------------------- */

enum { LONG_FRAMES = 60 };

/* 2 s, B-frames, groups of 12. */
static const char *make_long(void)
{
    return clips_make("long.mp4", "-f lavfi -i testsrc2=s=176x144:d=2:r=30 -c:v libx264 -preset veryfast -bf 3 -g 12 "
                                  "-pix_fmt yuv420p");
}

/* It points to *picture. */
static weir_video_config choose(weir_sampling sampling, const char *filter, weir_picture_config *picture)
{
    *picture = (weir_picture_config){ .pixel = WEIR_PIXEL_YUV420P, .filter = filter };
    return (weir_video_config){ .picture = picture, .picture_size = sizeof *picture, .sampling = sampling };
}

static void assert_same(const char *path, const weir_video_config *config, const weir_video_config *expected_config)
{
    weir_frames *frames = decode(path, config);
    weir_frames *expected = decode(path, expected_config);
    assert_int_equal(frames->num_frames, expected->num_frames);
    assert_int_equal(frames->width, expected->width);
    assert_memory_equal(frames->data, expected->data, expected->num_frames * expected->frame_bytes);
    assert_memory_equal(frames->pts, expected->pts, expected->num_frames * sizeof *expected->pts);
    weir_frames_free(frames);
    weir_frames_free(expected);
}

TEST_CASE(chosen_frames_are_turned_like_all)
{
    enum { COUNT = 6 };
    const char *path = clips_rotate(make_long(), "long_turned.mp4", rotations[0].matrix);
    weir_video_config config =
        choose((weir_sampling){ .what = WEIR_SAMPLE_UNIFORM, .count = COUNT }, NULL, &(weir_picture_config){ 0 });
    weir_video_config everything = choose((weir_sampling){ 0 }, NULL, &(weir_picture_config){ 0 });
    weir_frames *frames = decode(path, &config);
    weir_frames *all = decode(path, &everything);
    int64_t indices[COUNT];
    assert_int_equal(all->num_frames, LONG_FRAMES);
    assert_int_equal(frames->num_frames, COUNT);
    assert_int_equal(frames->width, 144);
    for (uint32_t i = 0; i < COUNT; i++) {
        indices[i] = i * LONG_FRAMES / COUNT + LONG_FRAMES / COUNT / 2;
        assert_memory_equal(frames->data + i * frames->frame_bytes, all->data + (size_t)indices[i] * all->frame_bytes,
                            all->frame_bytes);
        assert_int_equal(frames->pts[i], all->pts[indices[i]]);
    }
    weir_frames_free(frames);
    weir_frames_free(all);
    weir_video_config listed =
        choose((weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = COUNT }, NULL,
               &(weir_picture_config){ 0 });
    assert_same(path, &config, &listed);
}

TEST_CASE(the_filter_gets_the_frames_of_the_window)
{
    static const char *const filters[] = { "hflip", "fps=10", "tmix=frames=3", "reverse" };
    weir_sampling window = { .start_ns = WEIR_SECOND / 2, .end_ns = 3 * WEIR_SECOND / 2 };
    if (!has_filters())
        skip();
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        char filter[256];
        weir_video_config config = choose(window, filters[i], &(weir_picture_config){ 0 });
        snprintf(filter, sizeof filter, "trim=start=0.5:end=1.5,%s", filters[i]);
        assert_as_ffmpeg(make_long(), &config, "-noautorotate", filter);
    }
}

TEST_CASE(repeated_frames_are_filtered_each_time)
{
    if (!has_filters())
        skip();
    weir_sampling rate = { .what = WEIR_SAMPLE_RATE, .rate_num = 48 };
    weir_picture_config picture;
    const weir_video_config config = choose(rate, "hflip", &picture);
    assert_as_ffmpeg(make_long(), &config, "-noautorotate", "setpts=PTS-STARTPTS,fps=48,hflip");
    picture.filter = "select=not(mod(n\\,3))";
    assert_as_ffmpeg(make_long(), &config, "-noautorotate", "setpts=PTS-STARTPTS,fps=48,select=not(mod(n\\,3))");
}

TEST_CASE(lists_that_rise_are_filtered)
{
    const int64_t indices[] = { 3, 3, 17, 40, 59 };
    const int64_t from_end[] = { -57, -57, -43, -20, -1 };
    const int64_t times_ns[] = { 100000001, 100000001, 570000000, 1340000000, 1980000000 };
    if (!has_filters())
        skip();
    weir_sampling sampling = { .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 5 };
    weir_video_config expected = choose(sampling, NULL, &(weir_picture_config){ 0 });
    weir_video_config config = choose(sampling, "hflip,hflip", &(weir_picture_config){ 0 });
    assert_same(make_long(), &config, &expected);
    config.sampling.indices = from_end;
    assert_same(make_long(), &config, &expected);
    config.sampling = (weir_sampling){ .what = WEIR_SAMPLE_TIMES, .times_ns = times_ns, .num_times = 5 };
    assert_same(make_long(), &config, &expected);
}

TEST_CASE(lists_that_do_not_rise_are_refused)
{
    const int64_t falling[] = { 5, 3 };
    const int64_t both_ends[] = { -1, 0 };
    weir_sampling sampling = { .what = WEIR_SAMPLE_INDICES, .indices = falling, .num_indices = 2 };
    weir_video_config config = choose(sampling, "hflip", &(weir_picture_config){ 0 });
    assert_config_refused(&config, "must increase");
    config.sampling.indices = both_ends;
    assert_config_refused(&config, "must increase");
    config.sampling = (weir_sampling){ .what = WEIR_SAMPLE_TIMES, .times_ns = falling, .num_times = 2 };
    assert_config_refused(&config, "must increase");
}

static void assert_chunks(const char *path, weir_video_config config, uint32_t chunk_frames)
{
    weir_frames *whole = decode(path, &config);
    config.chunk_frames = chunk_frames;
    weir_pipeline *pipeline = start(path, &config);
    uint32_t num_frames = 0;
    bool is_last = false;
    weir_frames *chunk;
    while ((chunk = next_frames(pipeline))) {
        assert_false(is_last);
        is_last = chunk->is_last_chunk;
        assert_int_equal(chunk->first_frame, num_frames);
        assert_true(num_frames + chunk->num_frames <= whole->num_frames);
        assert_true(is_last ? chunk->num_frames <= chunk_frames : chunk->num_frames == chunk_frames);
        assert_int_equal(chunk->source_width, whole->source_width);
        assert_memory_equal(chunk->data, whole->data + num_frames * whole->frame_bytes,
                            chunk->num_frames * whole->frame_bytes);
        assert_memory_equal(chunk->pts, whole->pts + num_frames, chunk->num_frames * sizeof *chunk->pts);
        num_frames += chunk->num_frames;
        weir_frames_free(chunk);
    }
    assert_true(is_last);
    assert_int_equal(num_frames, whole->num_frames);
    weir_pipeline_free(pipeline);
    weir_frames_free(whole);
}

TEST_CASE(chunks_are_turned_and_filtered_like_the_whole)
{
    static const char *const filters[] = { "hflip", "fps=12", "tmix=frames=5", "reverse", "loop=loop=1:size=10" };
    const char *path = clips_rotate(make_long(), "long_chunks.mp4", rotations[2].matrix);
    weir_sampling rate = { .what = WEIR_SAMPLE_RATE, .rate_num = 70 };
    assert_chunks(path, choose((weir_sampling){ 0 }, NULL, &(weir_picture_config){ 0 }), 7);
    assert_chunks(path, choose(rate, NULL, &(weir_picture_config){ 0 }),
                  8); /* frames that are repeated in the next chunk, too */
    if (!has_filters())
        skip();
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        assert_chunks(path, choose((weir_sampling){ 0 }, filters[i], &(weir_picture_config){ 0 }), 7);
        assert_chunks(path, choose((weir_sampling){ 0 }, filters[i], &(weir_picture_config){ 0 }), 12);
        assert_chunks(path, choose(rate, filters[i], &(weir_picture_config){ 0 }), 9);
    }
}

/* What counts for min_share goes in, what counts for max_frames comes out. */
TEST_CASE(limits_and_shares_know_the_filter)
{
    if (!has_filters())
        skip();
    weir_picture_config picture;
    weir_video_config config = choose((weir_sampling){ 0 }, "select=not(mod(n\\,10))", &picture);
    config.min_share = 1;
    weir_frames *frames = decode(make_long(), &config);
    assert_int_equal(frames->num_frames, LONG_FRAMES / 10);
    weir_frames_free(frames);
    picture.filter = "trim=end=0.5"; /* it ends before the video does */
    frames = decode(make_long(), &config);
    assert_int_equal(frames->num_frames, LONG_FRAMES / 4);
    weir_frames_free(frames);

    picture.filter = "select=0";
    assert_fails(make_long(), &config, WEIR_EDATA, "dropped all 60 frames");
    picture.filter = "loop=loop=-1:size=1"; /* without end */
    config.max_frames = 100;
    assert_fails(make_long(), &config, WEIR_ELIMIT, "raise max_frames");
}

/* A filter that makes an endless number of pictures without input: the reader is not called any more. */
TEST_CASE(a_filter_that_goes_on_for_ever_can_be_stopped)
{
    if (!has_filters())
        skip();
    const char *path = make_long();
    weir_picture_config picture;
    const weir_video_config config = choose((weir_sampling){ 0 }, "loop=loop=-1:size=1", &picture);
    picture.pixel = WEIR_PIXEL_GRAY8; /* so small that the limits are far away */
    picture.width = picture.height = 8;
    weir_pipeline *pipeline = start_with(path, &config, &(weir_stage_options){ .task_deadline_ns = WEIR_SECOND / 4 });
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, 60 * WEIR_SECOND), WEIR_EOF);
    weir_error error = { 0 };
    weir_pipeline_error(pipeline, "decode", &error);
    assert_int_equal(error.status, WEIR_ETIMEDOUT);
    weir_pipeline_free(pipeline);
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
