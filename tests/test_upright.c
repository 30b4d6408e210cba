/* Rotation and filters of the decode stage, beside what the ffmpeg program makes of the same files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/engine.h>
#include <weir/list.h>
#include <weir/video.h>

#include "tests/clips.h"

enum { LIMIT_S = 60 };

static weir_frames *decode(const char *path, const weir_video_config *config)
{
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_item item;
    weir_builder *builder = weir_builder_new();
    weir_source(builder, &weir_list_source, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_pipe(builder, &weir_video_decode, config, NULL);
    weir_sink(builder, 0);
    if (weir_build(builder, NULL, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    if (weir_next(pipeline, &item, LIMIT_S * WEIR_SECOND) != WEIR_OK) {
        weir_stage_error(pipeline, "decode", &error);
        fail_msg("%s: %s", path, error.message);
    }
    weir_frames *frames = item.data;
    item.data = NULL;
    weir_item_release(&item);
    weir_free(pipeline);
    return frames;
}

/* The file as configured is, byte for byte, what ffmpeg makes of it with these. Returns how many frames. */
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

typedef struct turn {
    const char *name;
    int a, b, c, d; /* of the display matrix */
} turn;

static const turn turns[] = {
    { "clockwise", 0, 1, -1, 0 },    { "half", -1, 0, 0, -1 },       { "anticlockwise", 0, -1, 1, 0 },
    { "mirrored", -1, 0, 0, 1 },     { "upside_down", 1, 0, 0, -1 }, { "transposed", 0, 1, 1, 0 },
    { "transversed", 0, -1, -1, 0 },
};

enum { NUM_TURNS = sizeof turns / sizeof turns[0] };

static void put_16_16(uint8_t *to, int value)
{
    uint32_t fixed = (uint32_t)value << 16;
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(fixed >> (24 - 8 * i));
}

/* A copy of an MP4 file with that display matrix in its first track's header. */
static const char *make_turned(const char *from, const char *name, const turn *t)
{
    enum { MATRIX_BYTES = 44, MAX_BYTES = 1 << 20 }; /* from the box's name on */
    static uint8_t bytes[MAX_BYTES];
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    size_t size_bytes = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(size_bytes, 1000, MAX_BYTES - 1);
    size_t at = 0;
    while (at + MATRIX_BYTES + 20 < size_bytes && memcmp(bytes + at, "tkhd", 4) != 0)
        at++;
    assert_memory_equal(bytes + at, "tkhd\0", 5); /* its version 0 */
    uint8_t *matrix = bytes + at + MATRIX_BYTES;
    put_16_16(matrix, t->a);
    put_16_16(matrix + 4, t->b);
    put_16_16(matrix + 12, t->c);
    put_16_16(matrix + 16, t->d);
    const char *path = clips_path(name);
    clips_write(path, bytes, size_bytes);
    return path;
}

static void assert_turned(const char *from, const char *kind, const weir_video_config *config, const char *filter)
{
    for (size_t i = 0; i < NUM_TURNS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s.mp4", kind, turns[i].name);
        assert_as_ffmpeg(make_turned(from, name, &turns[i]), config, "", filter);
    }
}

static const char *make_h264(void)
{
    return clips_make("h264.mp4",
                      "-f lavfi -i testsrc2=s=340x256:d=0.4 -c:v libx264 -preset veryfast -pix_fmt yuv420p");
}

static void pictures_are_turned_as_ffmpeg_does(void **state)
{
    (void)state;
    weir_video_config config = {
        .width = 128, .height = 96, .resize = WEIR_RESIZE_STRETCH, .scaler = WEIR_SCALER_EXACT
    };
    assert_turned(make_h264(), "even", &config, "scale=128:96:flags=bicubic,format=rgb24");
}

static void odd_and_deep_pictures_are_turned_too(void **state)
{
    (void)state;
    static const char *const kinds[][2] = {
        { "odd_444", "-f lavfi -i testsrc2=s=321x243:d=0.2 -c:v libx264 -preset veryfast -pix_fmt yuv444p" },
        { "deep", "-f lavfi -i testsrc2=s=320x240:d=0.2 -c:v libx264 -preset veryfast -pix_fmt yuv420p10le" },
        { "gray", "-f lavfi -i testsrc2=s=320x240:d=0.2 -c:v libx264 -preset veryfast -pix_fmt gray" },
        { "mpeg4_odd", "-f lavfi -i testsrc2=s=321x243:d=0.2 -c:v mpeg4 -pix_fmt yuv420p" },
    };
    weir_video_config config = {
        .width = 80, .height = 60, .resize = WEIR_RESIZE_STRETCH, .scaler = WEIR_SCALER_EXACT
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.mp4", kinds[i][0]);
        const char *path = clips_make(name, kinds[i][1]);
        if (path)
            assert_turned(path, kinds[i][0], &config, "scale=80:60:flags=bicubic,format=rgb24");
    }
}

/* 4:2:2 on its side would have its chroma the other way round. */
static void formats_that_cannot_be_turned_are_converted(void **state)
{
    (void)state;
    const char *path =
        clips_make("h264_422.mp4", "-f lavfi -i testsrc2=s=320x240:d=0.2 -c:v libx264 -preset veryfast "
                                   "-pix_fmt yuv422p");
    path = make_turned(path, "h264_422_turned.mp4", &turns[0]);
    weir_frames *frames = decode(path, &(weir_video_config){ 0 });
    assert_int_equal(frames->width, 240);
    assert_int_equal(frames->height, 320);
    weir_frames_free(frames);
}

static void without_a_size_turned_pictures_have_their_own(void **state)
{
    (void)state;
    const char *path = make_turned(make_h264(), "own_size.mp4", &turns[0]);
    weir_video_config config = { .pixel = WEIR_PIXEL_YUV420P };
    weir_frames *frames = decode(path, &config);
    assert_int_equal(frames->width, 256);
    assert_int_equal(frames->height, 340);
    assert_int_equal(frames->source_width, 340);
    assert_int_equal(frames->source_height, 256);
    weir_frames_free(frames);
    assert_as_ffmpeg(path, &config, "", "null");
    config.no_autorotate = true;
    assert_as_ffmpeg(path, &config, "-noautorotate", "null");
}

static void real_phone_clips_are_turned(void **state)
{
    (void)state;
    static const char *const names[] = { "0", "90", "180", "270" };
    const char *media = clips_media();
    if (!media)
        skip();
    weir_video_config config = {
        .width = 128, .height = 128, .resize = WEIR_RESIZE_STRETCH, .scaler = WEIR_SCALER_EXACT
    };
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
    weir_source(builder, &weir_list_source, &(weir_list_config){ 0 }, NULL);
    weir_pipe(builder, &weir_video_decode, &(weir_video_config){ .filter = "null" }, NULL);
    weir_sink(builder, 0);
    int rc = weir_build(builder, NULL, &pipeline, &error);
    if (rc == WEIR_OK)
        weir_free(pipeline);
    else
        fprintf(stderr, "skipped: %s\n", error.message);
    return rc == WEIR_OK;
}

static void pictures_go_through_the_filter(void **state)
{
    (void)state;
    static const char *const filters[] = { "hflip", "crop=200:100,hflip", "hue=s=0", "transpose=1",
                                           "split[a][b];[a]vflip[c];[b][c]hstack" };
    if (!has_filters())
        skip();
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        char filter[256];
        weir_video_config config = { .width = 64,
                                     .height = 48,
                                     .resize = WEIR_RESIZE_STRETCH,
                                     .scaler = WEIR_SCALER_EXACT,
                                     .filter = filters[i] };
        snprintf(filter, sizeof filter, "%s,scale=64:48:flags=bicubic,format=rgb24", filters[i]);
        assert_int_equal(assert_as_ffmpeg(make_h264(), &config, "-noautorotate", filter), 10);
    }
}

/* Frames that a filter holds back come at the end; those it drops or adds do not matter. */
static void filters_may_change_the_number_of_frames(void **state)
{
    (void)state;
    static const struct {
        const char *filter;
        uint32_t num_frames;
    } filters[] = { { "fps=5", 2 },    { "select=not(mod(n\\,3))", 4 }, { "tmix=frames=3", 10 },
                    { "reverse", 10 }, { "loop=loop=2:size=10", 30 },   { "yadif", 10 } };
    if (!has_filters())
        skip();
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        weir_video_config config = { .pixel = WEIR_PIXEL_YUV420P, .filter = filters[i].filter };
        uint32_t num_frames = assert_as_ffmpeg(make_h264(), &config, "-noautorotate", filters[i].filter);
        assert_int_equal(num_frames, filters[i].num_frames);
    }
}

static void filtered_frames_have_the_times_of_the_stream(void **state)
{
    (void)state;
    if (!has_filters())
        skip();
    weir_frames *frames = decode(make_h264(), &(weir_video_config){ .filter = "fps=5" });
    assert_int_equal(frames->num_frames, 2);
    assert_int_equal((frames->pts[1] - frames->pts[0]) * 5 * frames->time_base_num, frames->time_base_den);
    weir_frames_free(frames);
}

static void turned_pictures_are_filtered_upright(void **state)
{
    (void)state;
    if (!has_filters())
        skip();
    const char *path = make_turned(make_h264(), "filtered.mp4", &turns[0]);
    assert_as_ffmpeg(path, &(weir_video_config){ .pixel = WEIR_PIXEL_YUV420P, .filter = "crop=256:200:0:0" }, "",
                     "crop=256:200:0:0");
}

static void assert_refused(const char *filter, const char *text)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source(builder, &weir_list_source, &(weir_list_config){ 0 }, NULL);
    weir_pipe(builder, &weir_video_decode, &(weir_video_config){ .filter = filter }, NULL);
    weir_sink(builder, 0);
    assert_int_equal(weir_build(builder, NULL, &pipeline, &error), WEIR_EINVAL);
    if (!strstr(error.message, text) || !strstr(error.message, filter))
        fail_msg("%s", error.message);
}

static void impossible_filters_are_refused(void **state)
{
    (void)state;
    if (!has_filters())
        skip();
    assert_refused("nosuchfilter=3", "No such filter");
    assert_refused("split", "one output");
    assert_refused("overlay", "one input");
    assert_refused("testsrc", "one input");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_turned_as_ffmpeg_does),
        cmocka_unit_test(odd_and_deep_pictures_are_turned_too),
        cmocka_unit_test(formats_that_cannot_be_turned_are_converted),
        cmocka_unit_test(without_a_size_turned_pictures_have_their_own),
        cmocka_unit_test(real_phone_clips_are_turned),
        cmocka_unit_test(pictures_go_through_the_filter),
        cmocka_unit_test(filters_may_change_the_number_of_frames),
        cmocka_unit_test(filtered_frames_have_the_times_of_the_stream),
        cmocka_unit_test(turned_pictures_are_filtered_upright),
        cmocka_unit_test(impossible_filters_are_refused),
    };
    return cmocka_run_group_tests(tests, clips_set_up, clips_tear_down);
}
