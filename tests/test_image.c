/* The still image stage, in a pipeline, compared with the output of the ffmpeg program. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test_case.h"

#include <weir/engine.h>
#include <weir/files.h>
#include <weir/image.h>

#include "tests/bytes_source.h"
#include "tests/clips.h"
#include "tests/result.h"

/* The only item's picture, to be freed with weir_frames_free(), or NULL with *error filled. */
static weir_frames *decode(const weir_op *source, const void *source_config, const weir_image_config *config,
                           weir_error *error)
{
    uint64_t size_bytes;
    weir_frames *frames = result_of(source, source_config, &weir_image_decode, config, &size_bytes, error);
    if (frames) {
        assert_int_equal(size_bytes, frames->memory_bytes);
        assert_int_equal(frames->num_frames, 1);
    }
    return frames;
}

static weir_frames *decode_path(const char *path, const weir_image_config *config, weir_error *error)
{
    return decode(&weir_list_source, &(weir_list_config){ .paths = &path, .num_paths = 1 }, config, error);
}

static const struct picture {
    const char *name;
    const char *arguments;
    const char *codec;
} pictures[] = {
    { "a.jpg", "-f lavfi -i testsrc2=s=320x240 -frames:v 1 -q:v 3", "mjpeg" },
    { "odd 444.jpg", "-f lavfi -i testsrc2=s=161x99 -frames:v 1 -pix_fmt yuvj444p -q:v 3", "mjpeg" },
    { "a%03d.jpg.png", "-f lavfi -i testsrc2=s=160x121 -frames:v 1 -update 1", "png" },
    { "gray.png", "-f lavfi -i testsrc2=s=160x121,format=gray -frames:v 1", "png" },
    { "palette.gif", "-f lavfi -i testsrc2=s=160x120:d=1", "gif" },
    { "a.bmp", "-f lavfi -i testsrc2=s=160x120 -frames:v 1", "bmp" },
    { "a.tiff", "-f lavfi -i testsrc2=s=160x120 -frames:v 1", "tiff" },
    { "a.webp", "-f lavfi -i testsrc2=s=160x120 -frames:v 1 -c:v libwebp", "webp" },
};

enum { NUM_PICTURES = sizeof pictures / sizeof pictures[0] };

/* The same bytes as `ffmpeg -vf FILTER`, whose first frame counts. */
static void assert_as_ffmpeg(const struct picture *picture, const weir_image_config *config, const char *filter)
{
    weir_error error = { 0 };
    size_t expected_bytes;
    const char *path = clips_make(picture->name, picture->arguments);
    if (!path)
        return;
    const char *plain = clips_path("plain name"); /* without a '%', which ffmpeg would expand */
    unlink(plain);
    assert_int_equal(symlink(path, plain), 0);
    uint8_t *expected = clips_decode(plain, filter, &expected_bytes);
    weir_frames *frames = decode_path(path, config, &error);
    if (!frames)
        fail_msg("%s: %s", picture->name, error.message);
    size_t num_bytes = (size_t)frames->width * frames->height * frames->channels;
    assert_true(num_bytes <= expected_bytes);
    if (memcmp(frames->data, expected, num_bytes) != 0)
        fail_msg("%s, %s: not what ffmpeg gives", picture->name, filter);
    assert_string_equal(frames->codec, picture->codec);
    assert_int_equal(frames->num_errors, 0);
    free(expected);
    weir_frames_free(frames);
}

TEST_CASE(pictures_are_ffmpegs_bytes)
{
    for (size_t i = 0; i < NUM_PICTURES; i++) {
        assert_as_ffmpeg(
            &pictures[i],
            &(weir_image_config){ WEIR_WITH_PICTURE(.width = 64, .height = 80, .resize = WEIR_RESIZE_STRETCH,
                                                    .scaler = WEIR_SCALER_EXACT) },
            "scale=64:80:flags=bicubic,format=rgb24");
        assert_as_ffmpeg(&pictures[i], &(weir_image_config){ WEIR_WITH_PICTURE(.scaler = WEIR_SCALER_EXACT) },
                         "scale=flags=bicubic,format=rgb24");
    }
}

TEST_CASE(a_jpeg_can_be_decoded_smaller)
{
    weir_error error = { 0 };
    weir_frames *frames = decode_path(clips_make(pictures[0].name, pictures[0].arguments),
                                      &(weir_image_config){ WEIR_WITH_DECODER(.lowres = 2) }, &error);
    assert_non_null(frames);
    assert_int_equal(frames->width, 80);
    assert_int_equal(frames->height, 60);
    weir_frames_free(frames);
}

/* An EXIF block that says "turn by a quarter, clockwise", behind the first two bytes of a JPEG file. */
static const uint8_t turned[] = { 0xff, 0xe1, 0,    34,   'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8,
                                  0,    1,    0x01, 0x12, 0,   3,   0,   0,   0, 1, 0,   6,   0, 0,  0, 0, 0, 0 };

TEST_CASE(a_cameras_orientation_is_applied)
{
    weir_error error = { 0 };
    weir_bytes *whole = bytes_of_file(clips_make(pictures[0].name, pictures[0].arguments), NULL);
    uint8_t *bytes = malloc(whole->size_bytes + sizeof turned);
    const char *path = clips_path("turned.jpg");
    assert_non_null(bytes);
    memcpy(bytes, whole->data, 2);
    memcpy(bytes + 2, turned, sizeof turned);
    memcpy(bytes + 2 + sizeof turned, whole->data + 2, whole->size_bytes - 2);
    clips_write(path, bytes, whole->size_bytes + sizeof turned);
    free(bytes);
    weir_bytes_free(whole);

    weir_frames *upright =
        decode_path(path, &(weir_image_config){ WEIR_WITH_PICTURE(.scaler = WEIR_SCALER_EXACT) }, &error);
    weir_frames *coded = decode_path(
        path, &(weir_image_config){ WEIR_WITH_PICTURE(.scaler = WEIR_SCALER_EXACT, .no_autorotate = true) }, &error);
    assert_non_null(upright);
    assert_non_null(coded);
    assert_int_equal(coded->width, 320);
    assert_int_equal(upright->width, 240);
    assert_int_equal(upright->height, 320);
    assert_int_equal(upright->source_width, 320);
    weir_frames_free(upright);
    weir_frames_free(coded);
}

TEST_CASE(pictures_from_memory_are_those_from_the_file)
{
    weir_error error = { 0 };
    const char *path = clips_make(pictures[0].name, pictures[0].arguments);
    weir_frames *expected = decode_path(path, &(weir_image_config){ 0 }, &error);
    weir_bytes *bytes = bytes_of_file(path, "member.without.ending");
    bytes->next = bytes_of_file(path, "sidecar");
    weir_frames *frames =
        decode(&bytes_source, &(bytes_source_config){ .files = &bytes, .num_files = 1 }, NULL, &error);
    assert_non_null(expected);
    assert_non_null(frames);
    assert_int_equal(frames->width, 320);
    assert_int_equal(frames->height, 240);
    const weir_decode_cost cost = frames->cost;
    assert_string_equal(cost.codec, "mjpeg");
    assert_int_equal(cost.width, 320);
    assert_int_equal(cost.num_frames, 1);
    assert_true(cost.size_bytes > 1000 && cost.decode_ns > 0 && cost.scale_ns > 0);
    assert_memory_equal(frames->data, expected->data, 320 * 240 * 3);
    assert_string_equal(frames->sidecars->name, "sidecar");
    weir_frames_free(frames);
    weir_frames_free(expected);
}

static void assert_fails(const char *path, const weir_image_config *config, int status, const char *said)
{
    weir_error error = { 0 };
    weir_frames *frames = decode_path(path, config, &error);
    assert_null(frames);
    if (error.status != status || !strstr(error.message, said))
        fail_msg("%s: %s: %s", path, weir_status_name(error.status), error.message);
}

TEST_CASE(what_is_no_picture_fails_and_says_why)
{
    const weir_image_config plain = { 0 };
    const char *text = clips_path("text.jpg");
    const char *empty = clips_path("empty.png");
    const char *picture = clips_make(pictures[0].name, pictures[0].arguments);
    clips_write_text(text, "this is no picture at all, whatever its name says");
    clips_write_text(empty, "");
    assert_fails(text, &plain, WEIR_EDATA, "could be decoded");
    assert_fails(empty, &plain, WEIR_EDATA, "empty");
    assert_fails(clips_path("missing.png"), &plain, WEIR_ENOTFOUND, "No such file");
    assert_fails(clips_make("sound.wav", "-f lavfi -i sine=d=0.2"), &plain, WEIR_EUNSUPPORTED, "no video");
    assert_fails(clips_cut(picture, "cut.jpg", 300), &plain, WEIR_EDATA, "could be decoded");
    assert_fails(picture, &(weir_image_config){ .max_file_bytes = 1000 }, WEIR_ELIMIT, "1000 bytes");
    assert_fails(clips_make("large.png", "-f lavfi -i color=s=2000x1000 -frames:v 1"),
                 &(weir_image_config){ WEIR_WITH_DECODER(.max_pixels = 1000000) }, WEIR_ELIMIT, "max_pixels");
}

/* A truncated picture is delivered with concealed errors, which are reported. */
TEST_CASE(a_damaged_picture_is_counted)
{
    weir_error error = { 0 };
    const char *path = clips_make(pictures[0].name, pictures[0].arguments);
    weir_frames *frames = decode_path(clips_cut(path, "half.jpg", 8000), &(weir_image_config){ 0 }, &error);
    assert_non_null(frames);
    assert_int_equal(frames->num_corrupt_frames, 1);
    weir_frames_free(frames);
}

TEST_CASE(impossible_options_are_refused)
{
    const weir_image_config bad[] = { { WEIR_WITH_PICTURE(.width = 40000) },
                                      { WEIR_WITH_PICTURE(.resize = (weir_resize)9) } };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        weir_pipeline *pipeline = NULL;
        weir_error error = { 0 };
        weir_builder *builder = weir_builder_new();
        weir_source_list(builder, &(weir_list_config){ .may_be_empty = true }, NULL);
        weir_pipe_image(builder, &bad[i], NULL);
        weir_builder_sink(builder, NULL);
        assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_EINVAL);
    }
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
