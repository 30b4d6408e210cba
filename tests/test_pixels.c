/* The pixel formats of the decode stage, compared with the output of the ffmpeg program. */
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
#include "tests/result.h"

static weir_frames *decode(const char *path, const weir_video_config *config)
{
    uint64_t size_bytes;
    weir_error error = { 0 };
    weir_frames *frames = result_of_path(path, &weir_video_decode, config, &size_bytes, &error);
    if (!frames)
        fail_msg("%s: %s", path, error.message);
    return frames;
}

/* The decoded file is, byte for byte, the output of ffmpeg with that filter. */
static void assert_as_ffmpeg(const char *path, const weir_video_config *config, const char *filter)
{
    size_t expected_bytes;
    uint8_t *expected = clips_decode(path, filter, &expected_bytes);
    weir_frames *frames = decode(path, config);
    size_t size_bytes = frames->num_frames * frames->frame_bytes;
    if (size_bytes != expected_bytes || memcmp(frames->data, expected, expected_bytes) != 0)
        fail_msg("%s, %s: %zu bytes, not ffmpeg's %zu bytes", path, filter, size_bytes, expected_bytes);
    free(expected);
    weir_frames_free(frames);
}

typedef struct clip {
    const char *name;
    const char *arguments;
} clip;

/* FFmpeg's filters make limited range of full range; our YUV planes keep it. So all of these are limited. */
static const clip clips[] = {
    { "h264.mp4", "-f lavfi -i testsrc2=s=340x256:d=0.4 -c:v libx264 -preset veryfast -pix_fmt yuv420p" },
    { "odd_444.mp4", "-f lavfi -i testsrc2=s=321x243:d=0.3 -c:v libx264 -preset veryfast -pix_fmt yuv444p" },
    { "tagged_709.mp4", "-f lavfi -i testsrc2=s=240x426:d=0.3 -c:v libx264 -preset veryfast -pix_fmt yuv420p "
                        "-color_range tv -colorspace bt709" },
    { "422_10_bit.mp4", "-f lavfi -i testsrc2=s=320x240:d=0.3 -c:v libx264 -preset veryfast -pix_fmt yuv422p10le" },
    { "mpeg4_odd.avi", "-f lavfi -i testsrc2=s=321x243:d=0.3 -c:v mpeg4 -pix_fmt yuv420p" },
};

enum { NUM_CLIPS = sizeof clips / sizeof clips[0] };

TEST_CASE(gray_is_ffmpegs)
{
    weir_video_config config = { WEIR_WITH_PICTURE(.width = 131, .height = 77, .resize = WEIR_RESIZE_STRETCH,
                                                   .pixel = WEIR_PIXEL_GRAY8, .scaler = WEIR_SCALER_EXACT) };
    for (size_t i = 0; i < NUM_CLIPS; i++) {
        const char *path = clips_make(clips[i].name, clips[i].arguments);
        if (path)
            assert_as_ffmpeg(path, &config,
                             "scale=131:77:flags=bicubic:out_range=full,format=yuv420p,extractplanes=y");
    }
}

TEST_CASE(yuv_planes_are_ffmpegs)
{
    weir_picture_config picture = { .resize = WEIR_RESIZE_STRETCH,
                                    .pixel = WEIR_PIXEL_YUV420P,
                                    .scaler = WEIR_SCALER_EXACT };
    const weir_video_config config = { .picture = &picture, .picture_size = sizeof picture };
    for (size_t i = 0; i < NUM_CLIPS; i++) {
        const char *path = clips_make(clips[i].name, clips[i].arguments);
        if (!path)
            continue;
        picture.width = 128;
        picture.height = 96;
        assert_as_ffmpeg(path, &config, "scale=128:96:flags=bicubic,format=yuv420p");
        picture.width = 131;
        picture.height = 77;
        assert_as_ffmpeg(path, &config, "scale=131:77:flags=bicubic,format=yuv420p");
    }
}

TEST_CASE(yuv_planes_are_padded_and_cropped_as_ffmpegs)
{
    const char *path = clips_make(clips[0].name, clips[0].arguments);
    weir_picture_config picture = {
        .width = 128, .height = 130, .pixel = WEIR_PIXEL_YUV420P, .scaler = WEIR_SCALER_EXACT
    };
    const weir_video_config config = { .picture = &picture, .picture_size = sizeof picture };
    assert_as_ffmpeg(path, &config,
                     "scale=128:130:flags=bicubic:force_original_aspect_ratio=decrease,format=yuv420p,"
                     "pad=128:130:(ow-iw)/2:(oh-ih)/2");
    picture.resize = WEIR_RESIZE_CROP;
    assert_as_ffmpeg(path, &config,
                     "scale=128:130:flags=bicubic:force_original_aspect_ratio=increase,format=yuv420p,crop=128:130");
}

/* Sources of 8 to 12 bits, of each codec that has them. Their range is limited, or that of what they become. */
static const clip deep_clips[] = {
    { "deep_h264.mp4", "-f lavfi -i testsrc2=s=322x242:d=0.2 -c:v libx264 -preset veryfast -pix_fmt yuv420p10le" },
    { "deep_hevc.mp4", "-f lavfi -i testsrc2=s=320x240:d=0.2 -c:v libx265 -x265-params log-level=error "
                       "-pix_fmt yuv420p12le" },
    { "deep_vp9.webm", "-f lavfi -i testsrc2=s=334x222:d=0.2 -c:v libvpx-vp9 -cpu-used 8 -pix_fmt yuv420p10le "
                       "-color_range tv -colorspace bt709" },
    { "deep_prores.mov", "-f lavfi -i testsrc2=s=320x240:d=0.2 -c:v prores_ks -pix_fmt yuv422p10le" },
    { "deep_rgb.mkv", "-f lavfi -i testsrc2=s=161x121:d=0.1 -c:v ffv1 -pix_fmt gbrp10le" },
    { "h264.mp4", "-f lavfi -i testsrc2=s=340x256:d=0.4 -c:v libx264 -preset veryfast -pix_fmt yuv420p" },
};

TEST_CASE(pixels_of_16_bits_are_ffmpegs)
{
    static const struct {
        weir_pixel pixel;
        const char *format;
    } pixels[] = { { WEIR_PIXEL_RGB48, "rgb48" },
                   { WEIR_PIXEL_GRAY16, "gray16" },
                   { WEIR_PIXEL_YUV420P10, "yuv420p10" } };
    static const uint32_t sizes[][2] = { { 0, 0 }, { 128, 96 }, { 131, 77 } };
    for (size_t i = 0; i < sizeof deep_clips / sizeof deep_clips[0]; i++) {
        const char *path = clips_make(deep_clips[i].name, deep_clips[i].arguments);
        for (size_t j = 0; path && j < 9; j++) {
            uint32_t width = sizes[j / 3][0], height = sizes[j / 3][1];
            char filter[128], size[32] = "";
            if (width)
                snprintf(size, sizeof size, "%u:%u:", (unsigned)width, (unsigned)height);
            snprintf(filter, sizeof filter, "scale=%sflags=bicubic,format=%sle", size, pixels[j % 3].format);
            /* whatever scaler is asked for: only one makes these */
            assert_as_ffmpeg(
                path,
                &(weir_video_config){ WEIR_WITH_PICTURE(.width = width, .height = height,
                                                        .resize = WEIR_RESIZE_STRETCH, .pixel = pixels[j % 3].pixel,
                                                        .scaler = (weir_scaler_kind)(i % 3)) },
                filter);
        }
    }
}

TEST_CASE(pixels_of_16_bits_are_cropped_as_ffmpegs)
{
    const char *path = clips_make(deep_clips[1].name, deep_clips[1].arguments);
    assert_as_ffmpeg(path,
                     &(weir_video_config){ WEIR_WITH_PICTURE(.width = 100, .height = 130, .pixel = WEIR_PIXEL_RGB48,
                                                             .resize = WEIR_RESIZE_CROP) },
                     "scale=100:130:flags=bicubic:force_original_aspect_ratio=increase,format=rgb48le,crop=100:130");
    assert_as_ffmpeg(
        path,
        &(weir_video_config){ WEIR_WITH_PICTURE(.width = 128, .height = 130, .pixel = WEIR_PIXEL_YUV420P10,
                                                .resize = WEIR_RESIZE_CROP) },
        "scale=128:130:flags=bicubic:force_original_aspect_ratio=increase,format=yuv420p10le,crop=128:130");
}

/* Nothing is scaled and nothing converted: what the decoder gave. Whatever scaler was asked for. */
TEST_CASE(without_a_size_yuv_planes_are_the_decoders_own)
{
    static const clip kinds[] = {
        { "h264.mp4", "-f lavfi -i testsrc2=s=340x256:d=0.4 -c:v libx264 -preset veryfast -pix_fmt yuv420p" },
        { "mpeg4_odd.avi", "-f lavfi -i testsrc2=s=321x243:d=0.3 -c:v mpeg4 -pix_fmt yuv420p" },
        { "full.mp4", "-f lavfi -i testsrc2=s=340x256:d=0.3 -c:v libx264 -preset veryfast -pix_fmt yuvj420p" },
    };
    for (int scaler = WEIR_SCALER_DEFAULT; scaler <= WEIR_SCALER_EXACT; scaler++) {
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            const char *path = clips_make(kinds[i].name, kinds[i].arguments);
            weir_video_config config = { WEIR_WITH_PICTURE(.pixel = WEIR_PIXEL_YUV420P,
                                                           .scaler = (weir_scaler_kind)scaler) };
            if (path)
                assert_as_ffmpeg(path, &config, "null");
        }
    }
}

static void assert_same_values(const weir_frames *packed, const weir_frames *planar)
{
    size_t num_pixels = (size_t)packed->width * packed->height;
    assert_int_equal(planar->frame_bytes, num_pixels * 3);
    assert_int_equal(planar->num_frames, packed->num_frames);
    for (size_t frame = 0; frame < packed->num_frames; frame++) {
        const uint8_t *a = packed->data + frame * packed->frame_bytes;
        const uint8_t *b = planar->data + frame * planar->frame_bytes;
        for (size_t i = 0; i < num_pixels * 3; i++) {
            if (a[i] != b[i % 3 * num_pixels + i / 3])
                fail_msg("frame %zu, pixel %zu, channel %zu: %d, %d", frame, i / 3, i % 3, a[i],
                         b[i % 3 * num_pixels + i / 3]);
        }
    }
}

TEST_CASE(planes_of_rgb_have_the_values_of_its_pixels)
{
    static const weir_resize resizes[] = { WEIR_RESIZE_PAD, WEIR_RESIZE_STRETCH, WEIR_RESIZE_CROP };
    const char *path = clips_make(clips[0].name, clips[0].arguments);
    for (int scaler = WEIR_SCALER_DEFAULT; scaler <= WEIR_SCALER_FAST; scaler++) {
        for (size_t i = 0; i < 3; i++) {
            weir_picture_config picture = {
                .width = 101, .height = 60, .resize = resizes[i], .scaler = (weir_scaler_kind)scaler
            };
            const weir_video_config config = { .picture = &picture, .picture_size = sizeof picture };
            weir_frames *packed = decode(path, &config);
            picture.layout = WEIR_LAYOUT_NCHW;
            weir_frames *planar = decode(path, &config);
            assert_int_equal(planar->layout, WEIR_LAYOUT_NCHW);
            assert_same_values(packed, planar);
            weir_frames_free(packed);
            weir_frames_free(planar);
        }
    }
}

TEST_CASE(the_result_tells_how_it_is_stored)
{
    const char *path = clips_make("full.mp4", "-f lavfi -i testsrc2=s=340x256:d=0.3 -c:v libx264 -preset veryfast "
                                              "-pix_fmt yuvj420p");
    weir_frames *frames = decode(
        path, &(weir_video_config){ WEIR_WITH_PICTURE(.pixel = WEIR_PIXEL_YUV420P, .width = 33, .height = 17) });
    assert_int_equal(frames->frame_bytes, 33 * 17 + 2 * 17 * 9);
    assert_int_equal(frames->channels, 0);
    assert_int_not_equal(frames->scaler, WEIR_SCALER_DEFAULT);
    assert_true(frames->full_range);
    assert_true(frames->memory_bytes >= frames->num_frames * frames->frame_bytes);
    weir_frames_free(frames);

    path = clips_make(clips[2].name, clips[2].arguments);
    frames =
        decode(path, &(weir_video_config){ WEIR_WITH_PICTURE(.pixel = WEIR_PIXEL_GRAY8, .width = 33, .height = 17) });
    assert_int_equal(frames->frame_bytes, 33 * 17);
    assert_int_equal(frames->channels, 1);
    assert_int_equal(frames->matrix, 1); /* BT.709 */
    assert_false(frames->full_range);
    weir_frames_free(frames);
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
