/* The video decode stage, in a pipeline, compared with the output of the ffmpeg program. */
#include <inttypes.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test_case.h"
#include <glob.h>
#include <uv.h>

#include <weir/engine.h>
#include <weir/files.h>
#include <weir/video.h>

#include "tests/clips.h"

enum { CHANNELS = 3 };

static const char h264_arguments[] =
    "-f lavfi -i testsrc2=s=340x256:d=1:r=30 -c:v libx264 -preset veryfast -bf 3 -g 12 "
    "-pix_fmt yuv420p";
static const char audio_arguments[] = "-f lavfi -i sine=d=0.2 -c:a aac";

/* ---- one clip through a pipeline ---------------------------------------------------------------------------- */

static weir_pipeline *start(const char *const *paths, size_t num_paths, const weir_video_config *config,
                            const weir_stage_options *options)
{
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = num_paths }, NULL);
    weir_pipe_video(builder, config, options);
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return pipeline;
}

/* The clip's frames, to be freed with weir_frames_free(), or NULL with *error (may be NULL) filled. */
static weir_frames *decode(const char *path, const weir_video_config *config, weir_error *error)
{
    weir_pipeline *pipeline = start(&path, 1, config, NULL);
    weir_frames *frames = NULL;
    weir_item item;
    int rc = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
    if (rc == WEIR_OK) {
        frames = item.data;
        assert_int_equal(item.size_bytes, frames->memory_bytes);
        assert_string_equal(item.label, path);
        item.data = NULL;
        weir_item_release(&item);
        rc = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
    }
    assert_int_equal(rc, WEIR_EOF);
    if (error)
        weir_pipeline_error(pipeline, "decode", error);
    weir_pipeline_free(pipeline);
    return frames;
}

static weir_frames *decode_whole(const char *path, const weir_video_config *config)
{
    weir_error error = { 0 };
    weir_frames *frames = decode(path, config, &error);
    if (!frames)
        fail_msg("%s: %s", path, error.message);
    return frames;
}

static size_t data_bytes(const weir_frames *frames)
{
    return (size_t)frames->num_frames * frames->height * frames->width * frames->channels;
}

/* ---- against ffmpeg ----------------------------------------------------------------------------------------- */

static void filter_of(char *filter, size_t size_bytes, const weir_picture_config *picture)
{
    unsigned width = picture->width;
    unsigned height = picture->height;
    switch (picture->resize) {
    case WEIR_RESIZE_STRETCH:
        snprintf(filter, size_bytes, "scale=%u:%u:flags=bicubic,format=rgb24", width, height);
        break;
    case WEIR_RESIZE_PAD:
        snprintf(filter, size_bytes,
                 "scale=%u:%u:flags=bicubic:force_original_aspect_ratio=decrease,format=rgb24,"
                 "pad=%u:%u:(ow-iw)/2:(oh-ih)/2",
                 width, height, width, height);
        break;
    case WEIR_RESIZE_CROP:
        snprintf(filter, size_bytes,
                 "scale=%u:%u:flags=bicubic:force_original_aspect_ratio=increase,format=rgb24,crop=%u:%u", width,
                 height, width, height);
        break;
    }
}

static void assert_as_ffmpeg(const char *path, const weir_video_config *config)
{
    char filter[256];
    size_t expected_bytes;
    filter_of(filter, sizeof filter, config->picture);
    uint8_t *expected = clips_decode(path, filter, &expected_bytes);
    weir_video_config exact = *config;
    weir_picture_config picture = *config->picture;
    picture.scaler = WEIR_SCALER_EXACT;
    picture.no_autorotate = true; /* as clips_decode() */
    exact.picture = &picture;
    weir_frames *frames = decode_whole(path, &exact);
    if (data_bytes(frames) != expected_bytes)
        fail_msg("%s, %s: %zu bytes, ffmpeg gives %zu", path, filter, data_bytes(frames), expected_bytes);
    if (memcmp(frames->data, expected, expected_bytes) != 0)
        fail_msg("%s, %s: other bytes than ffmpeg's", path, filter);
    free(expected);
    weir_frames_free(frames);
}

typedef struct clip {
    const char *name;
    const char *arguments;
} clip;

static const clip clips[] = {
    { "h264.mp4", h264_arguments },
    { "h264.mkv", "-f lavfi -i testsrc2=s=340x256:d=0.5 -c:v libx264 -preset veryfast -bf 3 -pix_fmt yuv420p" },
    { "h264.ts", "-f lavfi -i testsrc2=s=340x256:d=0.5 -c:v libx264 -preset veryfast -bf 3 -pix_fmt yuv420p" },
    { "h264_fragments.mp4",
      "-f lavfi -i testsrc2=s=340x256:d=0.5 -c:v libx264 -preset veryfast -bf 2 -pix_fmt yuv420p "
      "-movflags frag_keyframe+empty_moov" },
    { "h264_odd_444.mp4",
      "-f lavfi -i testsrc2=s=321x243:d=0.5 -c:v libx264 -preset veryfast -bf 2 -pix_fmt yuv444p" },
    { "h264_portrait_709_full.mp4",
      "-f lavfi -i testsrc2=s=240x426:d=0.5 -c:v libx264 -preset veryfast -pix_fmt yuv420p -color_range pc "
      "-colorspace bt709" },
    { "h264_gray.mp4", "-f lavfi -i testsrc2=s=320x240:d=0.3 -c:v libx264 -preset veryfast -pix_fmt gray" },
    { "h264_rgb.mp4", "-f lavfi -i testsrc2=s=320x240:d=0.3 -c:v libx264rgb -preset veryfast -pix_fmt rgb24" },
    { "h264_10_bit.mp4", "-f lavfi -i testsrc2=s=320x240:d=0.3 -c:v libx264 -preset veryfast -pix_fmt yuv420p10le" },
    { "hevc.mkv", "-f lavfi -i testsrc2=s=318x243:d=0.5 -c:v libx265 -preset ultrafast -pix_fmt yuv420p" },
    { "hevc_10_bit.mp4", "-f lavfi -i testsrc2=s=640x360:d=0.3 -c:v libx265 -preset ultrafast -pix_fmt yuv420p10le" },
    { "vp9_odd.webm", "-f lavfi -i testsrc2=s=321x181:d=0.5 -c:v libvpx-vp9 -deadline realtime -cpu-used 8 "
                      "-pix_fmt yuv420p" },
    { "vp9_10_bit.webm", "-f lavfi -i testsrc2=s=320x180:d=0.3 -c:v libvpx-vp9 -deadline realtime -cpu-used 8 "
                         "-pix_fmt yuv420p10le" },
    { "av1.mp4", "-f lavfi -i testsrc2=s=322x182:d=0.5:r=15 -c:v libaom-av1 -cpu-used 8 -usage realtime "
                 "-pix_fmt yuv420p" },
    { "mpeg4_odd.avi", "-f lavfi -i testsrc2=s=321x243:d=0.5 -c:v mpeg4 -bf 2 -pix_fmt yuv420p" },
    { "mpeg4.mp4", "-f lavfi -i testsrc2=s=320x240:d=0.5 -c:v mpeg4 -bf 2 -pix_fmt yuv420p" },
    { "mjpeg_odd.avi", "-f lavfi -i testsrc2=s=321x243:d=0.3 -c:v mjpeg -pix_fmt yuvj420p" },
};

enum { NUM_CLIPS = sizeof clips / sizeof clips[0] };

static void assert_clips_as_ffmpeg(const weir_video_config *config)
{
    for (size_t i = 0; i < NUM_CLIPS; i++) {
        const char *path = clips_make(clips[i].name, clips[i].arguments);
        if (path)
            assert_as_ffmpeg(path, config);
    }
}

TEST_CASE(stretched_frames_are_ffmpegs_bytes)
{
    assert_clips_as_ffmpeg(
        &(weir_video_config){ WEIR_WITH_PICTURE(.width = 128, .height = 128, .resize = WEIR_RESIZE_STRETCH) });
    assert_clips_as_ffmpeg(
        &(weir_video_config){ WEIR_WITH_PICTURE(.width = 131, .height = 77, .resize = WEIR_RESIZE_STRETCH) });
}

TEST_CASE(larger_frames_are_ffmpegs_bytes)
{
    const char *path = clips_make("h264.mp4", h264_arguments);
    assert_as_ffmpeg(
        path, &(weir_video_config){ WEIR_WITH_PICTURE(.width = 500, .height = 400, .resize = WEIR_RESIZE_STRETCH) });
    assert_as_ffmpeg(
        path, &(weir_video_config){ WEIR_WITH_PICTURE(.width = 8, .height = 5, .resize = WEIR_RESIZE_STRETCH) });
}

TEST_CASE(padded_frames_are_ffmpegs_bytes)
{
    assert_clips_as_ffmpeg(&(weir_video_config){ WEIR_WITH_PICTURE(.width = 128, .height = 128) });
    assert_clips_as_ffmpeg(&(weir_video_config){ WEIR_WITH_PICTURE(.width = 101, .height = 60) });
}

TEST_CASE(cropped_frames_are_ffmpegs_bytes)
{
    assert_clips_as_ffmpeg(
        &(weir_video_config){ WEIR_WITH_PICTURE(.width = 128, .height = 128, .resize = WEIR_RESIZE_CROP) });
    assert_clips_as_ffmpeg(
        &(weir_video_config){ WEIR_WITH_PICTURE(.width = 97, .height = 150, .resize = WEIR_RESIZE_CROP) });
}

TEST_CASE(without_a_size_frames_keep_their_own)
{
    for (size_t i = 0; i < NUM_CLIPS; i++) {
        const char *path = clips_make(clips[i].name, clips[i].arguments);
        if (!path)
            continue;
        size_t expected_bytes;
        uint8_t *expected = clips_decode(path, "scale=flags=bicubic,format=rgb24", &expected_bytes);
        weir_frames *frames =
            decode_whole(path, &(weir_video_config){ WEIR_WITH_PICTURE(.scaler = WEIR_SCALER_EXACT) });
        assert_int_equal(frames->width, frames->source_width);
        assert_int_equal(frames->height, frames->source_height);
        assert_int_equal(data_bytes(frames), expected_bytes);
        assert_memory_equal(frames->data, expected, expected_bytes);
        free(expected);
        weir_frames_free(frames);
    }
}

/* Bits of a byte string, the first one the highest of byte 0. */
static bool bit_at(const uint8_t *bytes, size_t index)
{
    return bytes[index / 8] >> (7 - index % 8) & 1;
}

static bool bits_are(const uint8_t *bytes, size_t index, const char *bits)
{
    for (; *bits; bits++, index++) {
        if (bit_at(bytes, index) != (*bits == '1'))
            return false;
    }
    return true;
}

/* Takes the last part out of an x264 SPS, which tells how far frames are reordered: where that part begins
   (bitstream_restriction_flag) the header now ends. False = it is not found. */
static bool hide_reordering(uint8_t *file, size_t size_bytes)
{
    static const char *const lengths[] = { "0001001", "0001010", "0001011", "0001100",
                                           "0001101" }; /* ue(8) to ue(12) */
    for (size_t i = 0; i + 64 < size_bytes * 8; i++) {
        for (size_t j = 0; j < 5; j++) {
            char bits[64];
            snprintf(bits, sizeof bits, "1111%s%s011001011", lengths[j], lengths[j]);
            if (!bits_are(file, i, bits))
                continue;
            for (size_t bit = i; bit < i + strlen(bits); bit++)
                file[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
            file[(i + 1) / 8] |= (uint8_t)(0x80 >> (i + 1) % 8); /* the stop bit */
            return true;
        }
    }
    return false;
}

/* Old and unusual encoders omit it, and Matroska does not store it, either: only the packets show it. */
TEST_CASE(frames_come_in_order_where_no_header_tells_it)
{
    const char *whole =
        clips_make("order.mkv", "-f lavfi -i testsrc2=s=340x256:d=1 -c:v libx264 -preset veryfast -bf 3 "
                                "-pix_fmt yuv420p");
    if (!whole)
        skip();
    char command[8192];
    const char *path = clips_path("no_order.mkv");
    static uint8_t head[4096];
    snprintf(command, sizeof command, "cp '%s' '%s'", whole, path);
    assert_int_equal(system(command), 0);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fread(head, 1, sizeof head, file), sizeof head);
    assert_true(hide_reordering(head, sizeof head));
    rewind(file);
    assert_int_equal(fwrite(head, 1, sizeof head, file), sizeof head);
    assert_int_equal(fclose(file), 0);
    assert_as_ffmpeg(
        path, &(weir_video_config){ WEIR_WITH_PICTURE(.width = 64, .height = 64, .resize = WEIR_RESIZE_STRETCH) });
}

TEST_CASE(real_clips_are_ffmpegs_bytes)
{
    const char *media = clips_media();
    if (!media)
        skip();
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*/*.{mp4,mkv,avi,mov}", media);
    assert_int_equal(glob(pattern, GLOB_BRACE, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        assert_as_ffmpeg(found.gl_pathv[i], &(weir_video_config){ WEIR_WITH_PICTURE(.width = 128, .height = 128,
                                                                                    .resize = WEIR_RESIZE_STRETCH) });
    assert_true(found.gl_pathc > 0);
    globfree(&found);
}

/* ---- the result --------------------------------------------------------------------------------------------- */

TEST_CASE(borders_are_black_and_even)
{
    const char *white = clips_make(
        "white.mp4", "-f lavfi -i color=white:s=340x256:d=0.2 -c:v libx264 -preset veryfast -pix_fmt yuv420p");
    weir_frames *frames = decode_whole(white, &(weir_video_config){ WEIR_WITH_PICTURE(.width = 128, .height = 128) });
    for (uint32_t i = 0; i < frames->num_frames; i++) {
        for (size_t row = 0; row < 128; row++) {
            const uint8_t *bytes = frames->data + (i * 128 + row) * 128 * CHANNELS;
            bool is_border = row < 16 || row >= 112;
            for (size_t byte = 0; byte < 128 * CHANNELS; byte++)
                assert_true(is_border ? bytes[byte] == 0 : bytes[byte] > 250);
        }
    }
    weir_frames_free(frames);
}

TEST_CASE(the_result_tells_what_it_is)
{
    const char *path = clips_make("h264.mp4", h264_arguments);
    weir_frames *frames = decode_whole(path, &(weir_video_config){ WEIR_WITH_PICTURE(.width = 64, .height = 48) });
    assert_int_equal(frames->num_frames, 30); /* B-frames: the last ones come only when the decoder is flushed */
    assert_int_equal(frames->width, 64);
    assert_int_equal(frames->height, 48);
    assert_int_equal(frames->channels, CHANNELS);
    assert_int_equal(frames->pixel, WEIR_PIXEL_RGB24);
    assert_int_equal(frames->source_width, 340);
    assert_int_equal(frames->source_height, 256);
    assert_string_equal(frames->codec, "h264");
    assert_int_equal(frames->num_errors, 0);
    assert_int_equal(frames->num_corrupt_frames, 0);
    size_t least = data_bytes(frames) + 30 * sizeof(int64_t);
    assert_in_range(frames->memory_bytes, least, least + 1024);
    for (uint32_t i = 0; i < frames->num_frames; i++) {
        int64_t thirtieths = frames->pts[i] * 30 * frames->time_base_num;
        assert_int_equal(thirtieths, (int64_t)i * frames->time_base_den);
    }
    weir_frames_free(frames);
}

TEST_CASE(frames_that_the_header_does_not_count_are_all_there)
{
    const char *path = clips_make("long.ts", "-f lavfi -i testsrc2=s=64x64:d=10:r=50 -c:v mpeg2video");
    weir_frames *frames = decode_whole(path, &(weir_video_config){ WEIR_WITH_PICTURE(.width = 16, .height = 16) });
    assert_int_equal(frames->num_frames, 500);
    weir_frames_free(frames);
}

TEST_CASE(slots_do_not_disturb_each_other)
{
    enum { NUM_FILES = 24 };
    const char *paths[NUM_FILES];
    weir_frames *alone[2];
    weir_video_config config = { WEIR_WITH_PICTURE(.width = 128, .height = 128) };
    const char *kinds[2] = { clips_make("h264.mp4", h264_arguments),
                             clips_make("mpeg4_odd.avi", clips[14].arguments) };
    for (size_t i = 0; i < 2; i++)
        alone[i] = decode_whole(kinds[i], &config);
    for (size_t i = 0; i < NUM_FILES; i++)
        paths[i] = kinds[i % 2];

    weir_pipeline *pipeline = start(paths, NUM_FILES, &config, &(weir_stage_options){ .concurrency = 6 });
    weir_item item;
    size_t num_items = 0;
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        const weir_frames *frames = item.data;
        const weir_frames *expected = alone[item.seq % 2];
        assert_int_equal(frames->num_frames, expected->num_frames);
        assert_memory_equal(frames->data, expected->data, data_bytes(expected));
        weir_item_release(&item);
        num_items++;
    }
    assert_int_equal(num_items, NUM_FILES);
    weir_pipeline_free(pipeline);
    weir_frames_free(alone[0]);
    weir_frames_free(alone[1]);
}

/* ---- cheaper decoding --------------------------------------------------------------------------------------- */

TEST_CASE(cheaper_frames_are_those_of_ffmpeg_with_the_same_options)
{
    static const char b_frames[] =
        "-f lavfi -i testsrc2=s=320x240:d=1 -c:v libx264 -preset veryfast -bf 2 -crf 35 -g 15 "
        "-pix_fmt yuv420p";
    static const char mpeg4[] = "-f lavfi -i testsrc2=s=320x240:d=0.5 -c:v mpeg4 -bf 2 -pix_fmt yuv420p";
    static const struct {
        const char *name, *arguments, *options;
        weir_decoder_config decoder;
    } kinds[] = {
        { "filtered.mp4", b_frames, "-skip_loop_filter noref", { .loop_filter = WEIR_LOOP_FILTER_REFERENCES } },
        { "filtered.mp4", b_frames, "-skip_loop_filter nokey", { .loop_filter = WEIR_LOOP_FILTER_KEYFRAMES } },
        { "filtered.mp4", b_frames, "-skip_loop_filter all", { .loop_filter = WEIR_LOOP_FILTER_NONE } },
        { "filtered.mp4", b_frames, "-flags2 +fast", { .fast_decode = true } },
        { "filtered.mp4", b_frames, "", { .lowres = 1 } }, /* H.264 has none */
        { "mpeg4.mp4", mpeg4, "-lowres 1", { .lowres = 1 } },
        { "mpeg4.mp4", mpeg4, "-lowres 3", { .lowres = 3 } },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *path = clips_make(kinds[i].name, kinds[i].arguments);
        char options[64];
        size_t expected_bytes;
        if (!path)
            continue;
        weir_video_config config = { WEIR_WITH_PICTURE(.width = 64, .height = 48, .resize = WEIR_RESIZE_STRETCH,
                                                       .scaler = WEIR_SCALER_EXACT) };
        weir_frames *whole = decode_whole(path, &config);
        config.decoder = &kinds[i].decoder;
        config.decoder_size = sizeof kinds[i].decoder;
        weir_frames *frames = decode_whole(path, &config);
        snprintf(options, sizeof options, "-noautorotate %s", kinds[i].options);
        uint8_t *expected =
            clips_decode_with(options, path, "scale=64:48:flags=bicubic,format=rgb24", &expected_bytes);
        if (data_bytes(frames) != expected_bytes || memcmp(frames->data, expected, expected_bytes) != 0)
            fail_msg("%s %s: other bytes than ffmpeg's", path, kinds[i].options);
        bool is_cheaper = i < 3 || i > 4;
        assert_int_equal(memcmp(frames->data, whole->data, data_bytes(whole)) != 0, is_cheaper);
        assert_int_equal(frames->num_errors + frames->num_corrupt_frames, 0);
        free(expected);
        weir_frames_free(frames);
        weir_frames_free(whole);
    }
}

TEST_CASE(lowres_makes_frames_without_a_size_smaller)
{
    const char *path =
        clips_make("mpeg4.mp4", "-f lavfi -i testsrc2=s=320x240:d=0.5 -c:v mpeg4 -bf 2 -pix_fmt yuv420p");
    weir_frames *frames = decode_whole(path, &(weir_video_config){ WEIR_WITH_DECODER(.lowres = 2) });
    assert_int_equal(frames->width, 80);
    assert_int_equal(frames->height, 60);
    assert_int_equal(frames->source_width, 80);
    weir_frames_free(frames);
}

/* ---- bad input ---------------------------------------------------------------------------------------------- */

/* The file fails with this status and a message with this in it. Returns the library's code. */
static int assert_fails(const char *path, const weir_video_config *config, int status, const char *text)
{
    weir_error error = { 0 };
    weir_frames *frames = decode(path, config, &error);
    assert_null(frames);
    if (error.status != status || !strstr(error.message, text))
        fail_msg("%s: %s (%s), not %s", path, error.message, weir_status_name(error.status), text);
    assert_string_equal(error.label, path);
    return error.library_code;
}

static const weir_video_config small = { WEIR_WITH_PICTURE(.width = 16, .height = 16) };

TEST_CASE(what_is_no_video_fails_and_says_why)
{
    const char *text = clips_path("text.mp4");
    clips_write_text(text, "This is a text.\nIt has two lines.\n");
    assert_int_not_equal(assert_fails(text, &small, WEIR_EDATA, "Invalid data"), 0);

    const char *empty = clips_path("empty.mp4");
    clips_write_text(empty, "");
    assert_int_not_equal(assert_fails(empty, &small, WEIR_EDATA, "the file is empty"), 0);

    const char *folder = clips_path("folder.mp4");
    clips_make_folder(folder);
    assert_fails(folder, &small, WEIR_EUNSUPPORTED, "a folder");

    const char *pipe_path = clips_path("pipe.mp4");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_fails(pipe_path, &small, WEIR_EUNSUPPORTED, "not a regular file");

    const char *audio = clips_make("audio.mp4", audio_arguments);
    assert_int_not_equal(assert_fails(audio, &small, WEIR_EUNSUPPORTED, "the first is audio"), 0);
}

TEST_CASE(what_cannot_be_read_fails_and_says_why)
{
    assert_int_not_equal(assert_fails(clips_path("missing.mp4"), &small, WEIR_ENOTFOUND, "No such file"), 0);
    assert_fails("nonsense://a/b.mp4", &small, WEIR_EUNSUPPORTED, "unknown protocol nonsense");

    const char *locked = clips_make("locked.mp4", h264_arguments);
    assert_int_equal(chmod(locked, 0), 0);
    if (!clips_drop_root()) {
        fprintf(stderr, "skipped: permissions do not count for this user\n");
        return;
    }
    weir_error error = { 0 };
    weir_frames *frames = decode(locked, &small, &error);
    clips_regain_root();
    assert_null(frames);
    assert_int_equal(error.status, WEIR_EACCESS);
    assert_int_not_equal(error.library_code, 0);
    assert_non_null(strstr(error.message, "Permission denied"));
}

TEST_CASE(a_truncated_file_without_its_index_fails)
{
    const char *cut = clips_cut(clips_make("h264.mp4", h264_arguments), "cut.mp4", 20000);
    assert_int_not_equal(assert_fails(cut, &small, WEIR_EDATA, "moov atom not found"), 0);
}

static const char *make_index_first(void)
{
    return clips_make("index_first.mp4",
                      "-f lavfi -i testsrc2=s=340x256:d=1:r=30 -c:v libx264 -preset veryfast -bf 3 "
                      "-g 12 -pix_fmt yuv420p -movflags faststart");
}

TEST_CASE(a_truncated_file_with_its_index_gives_what_is_there)
{
    const char *cut = clips_cut(make_index_first(), "cut_late.mp4", 30000);
    weir_frames *frames = decode_whole(cut, &small);
    assert_in_range(frames->num_frames, 1, 29);
    assert_in_range(frames->num_errors, 1, 30);
    weir_frames_free(frames);
    cut = clips_cut(make_index_first(), "cut_early.mp4", 2500);
    assert_int_not_equal(assert_fails(cut, &small, WEIR_EDATA, "nothing could be decoded"), 0);
}

/* A whole container with some broken packets in it. */
static const char *make_damaged(void)
{
    static const uint8_t noise[64] = { 0xff, 0x5a, 0xff, 0xa5, 1, 2, 3, 4, 0xff };
    const char *whole =
        clips_make("to_damage.mp4", "-f lavfi -i testsrc2=s=340x256:d=2 -c:v libx264 -preset veryfast "
                                    "-bf 3 -pix_fmt yuv420p");
    const char *path = clips_path("damaged.mp4");
    char command[8192];
    snprintf(command, sizeof command, "cp '%s' '%s'", whole, path);
    assert_int_equal(system(command), 0);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    for (long at = 4000; at < 60000; at += 500) {
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        assert_int_equal(fwrite(noise, 1, sizeof noise, file), sizeof noise);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

TEST_CASE(broken_packets_are_counted_and_passed_over)
{
    weir_frames *frames = decode_whole(make_damaged(), &small);
    assert_true(frames->num_frames > 0);
    assert_true(frames->num_errors + frames->num_corrupt_frames > 0);
    weir_frames_free(frames);
}

TEST_CASE(sizes_over_a_limit_fail)
{
    const char *path = clips_make("h264.mp4", h264_arguments);
    assert_fails(path, &(weir_video_config){ WEIR_WITH_DECODER(.max_pixels = 340 * 256 - 1) }, WEIR_ELIMIT,
                 "raise max_pixels");
    weir_frames_free(decode_whole(path, &(weir_video_config){ WEIR_WITH_DECODER(.max_pixels = 340 * 256) }));

    weir_video_config config = { WEIR_WITH_PICTURE(.width = 16, .height = 16), .max_bytes = 16 * 16 * 3 * 30 };
    weir_frames_free(decode_whole(path, &config));
    config.max_bytes--;
    assert_fails(path, &config, WEIR_ELIMIT, "raise max_bytes");
    config.max_bytes = 16;
    assert_fails(path, &config, WEIR_ELIMIT, "raise max_bytes");
}

/* FFmpeg checks its limit with the rows and columns that a decoder adds. */
TEST_CASE(what_a_decoder_adds_does_not_count_as_size)
{
    static const char *const names[][2] = {
        { "padded.mp4", "-f lavfi -i testsrc2=s=130x98:d=0.2 -c:v mpeg4" },
        { "padded.mpg", "-f lavfi -i testsrc2=s=32x32:d=0.2 -c:v mpeg2video" },
    };
    for (size_t i = 0; i < 2; i++) {
        uint64_t size = i == 0 ? 130 * 98 : 32 * 32;
        const char *path = clips_make(names[i][0], names[i][1]);
        weir_frames_free(decode_whole(path, &(weir_video_config){ WEIR_WITH_DECODER(.max_pixels = size) }));
        assert_fails(path, &(weir_video_config){ WEIR_WITH_DECODER(.max_pixels = size - 1) }, WEIR_ELIMIT,
                     "raise max_pixels");
    }
}

static void assert_refused(const weir_video_config *config, const char *text)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .may_be_empty = true }, NULL);
    weir_pipe_video(builder, config, NULL);
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, text));
}

TEST_CASE(impossible_options_are_refused)
{
    assert_refused(&(weir_video_config){ WEIR_WITH_PICTURE(.width = 100000) }, "width 100000");
    assert_refused(&(weir_video_config){ WEIR_WITH_PICTURE(.resize = (weir_resize)17) }, "resize 17");
    assert_refused(&(weir_video_config){ WEIR_WITH_PICTURE(.pixel = (weir_pixel)17) }, "pixel 17");
    assert_refused(&(weir_video_config){ WEIR_WITH_DECODER(.loop_filter = (weir_loop_filter)17) }, "loop_filter 17");
    assert_refused(&(weir_video_config){ WEIR_WITH_DECODER(.lowres = 4) }, "lowres 4");
}

TEST_CASE(a_colon_in_a_name_is_no_protocol)
{
    char folder_before[4096];
    const char *path = clips_make("h264.mp4", h264_arguments);
    assert_non_null(getcwd(folder_before, sizeof folder_before));
    assert_int_equal(link(path, clips_path("12:30:00.mp4")), 0);
    assert_int_equal(chdir(clips_path("")), 0);
    weir_frames *frames = decode("12:30:00.mp4", &small, NULL);
    assert_int_equal(chdir(folder_before), 0);
    assert_non_null(frames);
    weir_frames_free(frames);
}

/* ---- the log ------------------------------------------------------------------------------------------------- */

typedef struct caught_log {
    atomic_int num_lines; /* about the file */
    atomic_int num_others;
    const char *label;
} caught_log;

static void catch_line(void *self, weir_log_level level, const char *line)
{
    caught_log *log = self;
    bool is_ours = level == WEIR_LOG_DEBUG && strncmp(line, log->label, strlen(log->label)) == 0;
    atomic_fetch_add(is_ours ? &log->num_lines : &log->num_others, 1);
}

TEST_CASE(ffmpegs_log_names_the_file_and_does_not_flood)
{
    caught_log log = { .label = make_damaged() };
    weir_log_set_function(catch_line, &log);
    weir_log_set_level(WEIR_LOG_DEBUG);
    weir_frames *frames = decode(log.label, &small, NULL);
    weir_log_set_level(WEIR_LOG_INFO);
    weir_log_set_function(NULL, NULL);
    weir_frames_free(frames);
    assert_in_range(atomic_load(&log.num_lines), 2, 12);
    assert_int_equal(atomic_load(&log.num_others), 0);
}

/* ---- stopping ------------------------------------------------------------------------------------------------ */

/* A gate that a task hook opens when its task has begun, and what became of the task. */
typedef struct watch {
    uv_sem_t begun;
    atomic_int end_status;
} watch;

static int watch_begin(void *self, void *state, weir_task *task, const weir_item *in)
{
    (void)state;
    (void)task;
    (void)in;
    watch *w = self;
    uv_sem_post(&w->begun);
    return WEIR_OK;
}

static int watch_end(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    (void)state;
    (void)task;
    watch *w = self;
    atomic_store(&w->end_status, end->status);
    return WEIR_OK;
}

/* Starts to decode the path, waits for the gate, and then for `ready`; stops; the task must have been broken off. */
static void assert_stops(const char *path, void (*ready)(void *), void *argument)
{
    watch w = { 0 };
    weir_task_hook hook = { .self = &w, .begin = watch_begin, .end = watch_end };
    assert_int_equal(uv_sem_init(&w.begun, 0), 0);
    weir_pipeline *pipeline =
        start(&path, 1, &(weir_video_config){ 0 }, &(weir_stage_options){ .task_hooks = &hook, .num_task_hooks = 1 });
    uv_sem_wait(&w.begun);
    if (ready)
        ready(argument);
    weir_pipeline_stop(pipeline);
    weir_pipeline_free(pipeline);
    assert_true(atomic_load(&w.end_status) < 0);
    uv_sem_destroy(&w.begun);
}

TEST_CASE(stop_breaks_off_a_long_decode)
{
    assert_stops(clips_make("large.mp4", "-f lavfi -i testsrc2=s=1920x1080:d=20:r=30 -c:v mpeg4 -q:v 8"), NULL, NULL);
}

static void accept_connection(void *argument)
{
    int listener = *(int *)argument;
    int connection = accept(listener, NULL, NULL);
    assert_true(connection >= 0);
    *(int *)argument = connection;
}

/* A server that takes the connection and never answers. */
TEST_CASE(stop_breaks_off_blocking_input)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t address_bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &address_bytes), 0);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/a.mp4", (unsigned)ntohs(address.sin_port));
    int connection = listener;
    assert_stops(url, accept_connection, &connection);
    close(connection);
    close(listener);
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
