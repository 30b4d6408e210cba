/* The results of the probe, and frames selected by them. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/test_case.h"

#include <weir/engine.h>
#include <weir/probe.h>
#include <weir/sampler.h>
#include <weir/video.h>

#include "tests/clips.h"
#include "tests/result.h"

static const char *const clips[][2] = {
    { "b.mp4", "-f lavfi -i testsrc2=s=176x144:d=4:r=30 -c:v libx264 -preset veryfast -bf 3 -g 12 -pix_fmt yuv420p" },
    { "b.mkv", "-f lavfi -i testsrc2=s=176x144:d=4:r=30 -c:v libx264 -preset veryfast -bf 3 -g 12 -pix_fmt yuv420p" },
    { "b.ts", "-f lavfi -i testsrc2=s=176x144:d=4:r=30 -c:v libx264 -preset veryfast -bf 3 -g 12 -pix_fmt yuv420p" },
    { "open.mp4", "-f lavfi -i testsrc2=s=176x144:d=4:r=25 -c:v libx265 -x265-params log-level=none:open-gop=1 -g 10 "
                  "-pix_fmt yuv420p" },
    { "vp9.webm", "-f lavfi -i testsrc2=s=176x144:d=2:r=30 -c:v libvpx-vp9 -g 15 -cpu-used 8 -deadline realtime" },
    { "uneven.mkv",
      "-f lavfi -i testsrc2=s=176x144:d=2:r=30 -c:v libx264 -preset veryfast -bf 2 -g 9 -pix_fmt yuv420p "
      "-vf 'select=not(mod(n\\,7))+gt(mod(n\\,5)\\,2)' -fps_mode vfr" },
};

enum { NUM_CLIPS = sizeof clips / sizeof clips[0] };

static weir_probe_result *probe(const char *path, weir_probe_config config)
{
    uint64_t size_bytes;
    weir_error error = { 0 };
    weir_probe_result *result = result_of_path(path, &weir_probe, &config, &size_bytes, &error);
    if (!result)
        fail_msg("%s: %s", path, error.message);
    return result;
}

TEST_CASE(a_clip_is_described)
{
    weir_probe_result *result = probe(clips_make(clips[0][0], clips[0][1]), (weir_probe_config){ 0 });
    struct stat file;
    assert_int_equal(stat(clips_path(clips[0][0]), &file), 0);
    assert_int_equal(result->error.status, WEIR_OK);
    assert_int_equal(result->num_errors, 0);
    assert_int_equal(result->size_bytes, file.st_size);
    assert_int_equal(result->mtime_ns / WEIR_SECOND, file.st_mtim.tv_sec);
    assert_string_equal(result->codec, "h264");
    assert_int_equal(result->width, 176);
    assert_int_equal(result->height, 144);
    assert_int_equal(result->num_frames, 120);
    assert_int_equal(result->num_keyframes, 10);
    assert_in_range(result->duration_ns, 4 * WEIR_SECOND - WEIR_SECOND / 1000, 4 * WEIR_SECOND + WEIR_SECOND / 1000);
    assert_in_range(result->packets_bytes, 100, 120 * 6);
    weir_probe_result_free(result);
}

TEST_CASE(a_broken_file_is_a_result_with_the_reason)
{
    const char *text = clips_path("text.mp4");
    clips_write_text(text, "this is not a video\n");
    weir_probe_result *result = probe(text, (weir_probe_config){ 0 });
    assert_int_equal(result->error.status, WEIR_EDATA);
    assert_string_not_equal(result->error.message, "");
    assert_int_equal(result->size_bytes, 20);
    assert_null(result->packets);
    weir_probe_result_free(result);

    result = probe(clips_path("missing.mp4"), (weir_probe_config){ 0 });
    assert_int_equal(result->error.status, WEIR_ENOTFOUND);
    assert_int_equal(result->size_bytes, -1);
    weir_probe_result_free(result);
}

/* The header still announces all frames. */
TEST_CASE(a_file_that_was_cut_off_lacks_frames)
{
    static const char *const names[][2] = {
        { "whole.mp4", "cut.mp4" }, { "whole.mkv", "cut.mkv" }, { "whole.flv", "cut.flv" }, { "whole.avi", "cut.avi" }
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct stat file;
        const char *whole =
            clips_make(names[i][0], "-f lavfi -i testsrc2=s=176x144:r=30 -frames:v 50 -c:v libx264 -bf 2 "
                                    "-g 12 -pix_fmt yuv420p -movflags faststart");
        weir_probe_result *result = probe(whole, (weir_probe_config){ 0 });
        assert_int_equal(result->num_frames, 50);
        assert_int_equal(result->num_missing, 0);
        weir_probe_result_free(result);
        assert_int_equal(stat(whole, &file), 0);
        result = probe(clips_cut(whole, names[i][1], (size_t)file.st_size * 6 / 10), (weir_probe_config){ 0 });
        assert_int_equal(result->error.status, WEIR_OK);
        assert_in_range(result->num_missing, 10, 40);
        /* where the header has no list but a time, B-frames that are shown before the last frame are not seen */
        assert_in_range(result->num_frames + result->num_missing, i == 0 ? 50 : 47, i == 0 ? 50 : 51);
        weir_probe_result_free(result);
    }
}

/* The sound ends later; the first frame comes late; a rate with gaps; hidden frames. */
TEST_CASE(a_whole_file_lacks_nothing)
{
    static const char *const whole[][2] = {
        { "sound.mkv", "-f lavfi -i sine=d=4 -f lavfi -i testsrc2=s=64x48:r=30:d=2 -c:v libx264 -pix_fmt yuv420p" },
        { "late.flv", "-f lavfi -i testsrc2=s=64x48:r=30:d=2 -c:v libx264 -pix_fmt yuv420p -output_ts_offset 3" },
        { "late.mkv", "-f lavfi -i testsrc2=s=64x48:r=30:d=2 -c:v libx264 -pix_fmt yuv420p -output_ts_offset 3" },
        { "gaps.avi", "-f lavfi -i testsrc2=s=64x48:r=30:d=2,select='not(mod(n\\,3))' -c:v mpeg4 -fps_mode vfr" },
        { "alt.webm",
          "-f lavfi -i testsrc2=s=64x48:r=30:d=2 -c:v libvpx -auto-alt-ref 1 -lag-in-frames 12 -b:v 300k" },
        { "short.wmv", "-f lavfi -i testsrc2=s=64x48:r=30:d=2 -c:v wmv2" },
    };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        const char *path = clips_make(whole[i][0], whole[i][1]);
        weir_probe_result *result = path ? probe(path, (weir_probe_config){ 0 }) : NULL;
        if (result && result->num_missing)
            fail_msg("%s: %" PRIu64 " frames are missing", path, result->num_missing);
        weir_probe_result_free(result);
    }
}

/* Zeros over the first picture's bytes: packets can be read, and nothing can be decoded of them. */
TEST_CASE(decoding_finds_what_reading_does_not)
{
    const char *path = clips_make("broken.mkv", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v mjpeg");
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    for (long at = size / 8; at < size - size / 16; at++) {
        fseek(file, at, SEEK_SET);
        fputc(0xff, file);
    }
    fclose(file);
    weir_probe_result *read = probe(path, (weir_probe_config){ 0 });
    weir_probe_result *decoded = probe(path, (weir_probe_config){ .check = WEIR_PROBE_ALL });
    assert_true(decoded->num_errors > read->num_errors || decoded->error.status != WEIR_OK);
    weir_probe_result_free(read);
    weir_probe_result_free(decoded);
}

/* Its header says 16384 x 16384, of which the decoder would need two frames. */
TEST_CASE(a_clip_that_needs_too_much_memory_says_how_much)
{
    const char *path = clips_make("huge.mp4", clips[0][1]);
    struct stat info;
    assert_true(path && stat(path, &info) == 0);
    uint8_t *bytes = malloc((size_t)info.st_size);
    FILE *file = fopen(path, "r+b");
    assert_true(bytes && file && fread(bytes, (size_t)info.st_size, 1, file) == 1);
    const uint8_t *entry = memmem(bytes, (size_t)info.st_size, "avc1\0\0", 6);
    assert_non_null(entry);
    assert_int_equal(fseek(file, entry - bytes + 28, SEEK_SET), 0);
    assert_int_equal(fwrite("\x40\0\x40\0", 4, 1, file), 1);
    fclose(file);
    free(bytes);
    weir_probe_result *result = probe(path, (weir_probe_config){ WEIR_WITH_DECODER(.max_pixels = 1 << 30) });
    assert_int_equal(result->error.status, WEIR_ELIMIT);
    assert_non_null(strstr(result->error.message, "over the limit of 1074 MB"));
    weir_probe_result_free(result);
}

/* Decoding to find damage is bounded for all decoders together, as in the video stage. */
TEST_CASE(decoding_takes_its_share_of_the_memory_of_all_decoders)
{
    weir_probe_config config = { WEIR_WITH_DECODER(.max_all_decoder_bytes = 100000), .check = WEIR_PROBE_ALL };
    weir_probe_result *result = probe(clips_make(clips[0][0], clips[0][1]), config);
    assert_int_equal(result->error.status, WEIR_ELIMIT);
    assert_non_null(strstr(result->error.message, "max_all_decoder_bytes"));
    weir_probe_result_free(result);
    config = (weir_probe_config){ 0 };
    assert_int_equal(weir_probe.config_init(&config, NULL), WEIR_OK);
    assert_true(config.decoder->max_all_decoder_bytes > 0);
    weir_probe.config_free(&config);
}

/* ---- frames by the table --------------------------------------------------------------------------------------- */

/* What the sampler fills its one entry with. */
typedef struct known {
    const char *path;
    const weir_probe_result *result; /* (NULL = only the path) */
    size_t damaged_byte;             /* of the table (0 = none) */
} known;

static int fill(void *self, weir_entry *entry, weir_error *error)
{
    (void)error;
    const known *from = self;
    entry->path = strdup(from->path);
    if (!from->result)
        return WEIR_OK;
    entry->size_bytes = from->result->size_bytes;
    entry->mtime_ns = from->result->mtime_ns;
    entry->packets_bytes = from->result->packets_bytes;
    entry->packets = malloc(entry->packets_bytes);
    memcpy(entry->packets, from->result->packets, entry->packets_bytes);
    if (from->damaged_byte)
        entry->packets[from->damaged_byte] ^= 0x55;
    return WEIR_OK;
}

static weir_frames *decode(known *from, weir_sampling sampling, weir_error *error)
{
    uint64_t size_bytes;
    weir_video_config config = { WEIR_WITH_PICTURE(.width = 64, .height = 48, .scaler = WEIR_SCALER_EXACT),
                                 .sampling = sampling };
    weir_sampler_source_config source = { .sampler = { .num_items = 1, .world.size = 1 },
                                          .items = { .self = from, .fill = fill } };
    return result_of(&weir_sampler_source, &source, &weir_video_decode, &config, &size_bytes, error);
}

static void assert_same(const known *from, weir_sampling sampling)
{
    weir_error error = { 0 };
    known path_only = { .path = from->path };
    known with = *from;
    weir_frames *expected = decode(&path_only, sampling, &error);
    weir_frames *got = decode(&with, sampling, &error);
    if (!expected || !got)
        fail_msg("%s: %s", from->path, error.message);
    assert_int_equal(got->num_frames, expected->num_frames);
    if (memcmp(got->data, expected->data, got->num_frames * got->frame_bytes) != 0)
        fail_msg("%s: other frames", from->path);
    assert_memory_equal(got->pts, expected->pts, got->num_frames * sizeof *got->pts);
    assert_non_null(got->entry);
    assert_string_equal(got->entry->path, from->path);
    assert_null(got->entry->packets);
    weir_frames_free(expected);
    weir_frames_free(got);
}

TEST_CASE(frames_are_the_same_with_the_table_and_without)
{
    const int64_t indices[] = { 24, 3, -1, 3, 17 };
    const weir_sampling samplings[] = {
        { .what = WEIR_SAMPLE_UNIFORM, .count = 8 },
        { .what = WEIR_SAMPLE_RANDOM, .count = 4, .length_frames = 4 },
        { .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 5 },
        { .what = WEIR_SAMPLE_KEYFRAMES },
        { .what = WEIR_SAMPLE_RATE, .rate_num = 5, .start_ns = WEIR_SECOND },
        { .what = WEIR_SAMPLE_ALL },
        { .what = WEIR_SAMPLE_ALL, .count = 5 },
    };
    for (size_t c = 0; c < NUM_CLIPS; c++) {
        const char *path = clips_make(clips[c][0], clips[c][1]);
        if (!path)
            continue;
        weir_probe_result *result = probe(path, (weir_probe_config){ 0 });
        assert_non_null(result->packets);
        for (size_t s = 0; s < sizeof samplings / sizeof samplings[0]; s++)
            assert_same(&(known){ .path = path, .result = result }, samplings[s]);
        weir_probe_result_free(result);
    }
}

TEST_CASE(a_damaged_table_changes_nothing)
{
    const char *path = clips_make(clips[0][0], clips[0][1]);
    weir_probe_result *result = probe(path, (weir_probe_config){ 0 });
    for (size_t at = 1; at < result->packets_bytes; at += result->packets_bytes / 24)
        assert_same(&(known){ .path = path, .result = result, .damaged_byte = at },
                    (weir_sampling){ .what = WEIR_SAMPLE_UNIFORM, .count = 3 });
    weir_probe_result_free(result);
}

/* What all threads of the process have read; 0 = the system does not tell. */
static uint64_t num_bytes_read(void)
{
    unsigned long long bytes = 0;
    FILE *file = fopen("/proc/self/io", "r");
    if (!file || fscanf(file, "rchar: %llu", &bytes) != 1)
        print_message("/proc/self/io does not tell what was read\n");
    if (file)
        fclose(file);
    return bytes;
}

/* Frames are taken from a place in the middle of a long file: only a part of the file is read. */
TEST_CASE(with_the_table_little_is_read)
{
    const char *path =
        clips_make("long.mp4", "-f lavfi -i testsrc2=s=320x240:d=60:r=30 -vf noise=alls=60:allf=t -c:v libx264 "
                               "-preset ultrafast -g 30 -b:v 4M -pix_fmt yuv420p");
    weir_probe_result *result = probe(path, (weir_probe_config){ 0 });
    const weir_sampling sampling = { .what = WEIR_SAMPLE_RANDOM,
                                     .count = 8,
                                     .length_frames = 8,
                                     .start_ns = 30 * WEIR_SECOND,
                                     .end_ns = 33 * WEIR_SECOND };
    weir_error error = { 0 };
    known path_only = { .path = path };
    known with = { .path = path, .result = result };
    uint64_t start_bytes = num_bytes_read();
    weir_frames *scanned = decode(&path_only, sampling, &error);
    uint64_t scanned_bytes = num_bytes_read() - start_bytes;
    weir_frames *looked_up = decode(&with, sampling, &error);
    uint64_t looked_up_bytes = num_bytes_read() - start_bytes - scanned_bytes;
    assert_non_null(scanned);
    assert_non_null(looked_up);
    assert_memory_equal(scanned->data, looked_up->data, 8 * scanned->frame_bytes);
    print_message("bytes read: %" PRIu64 " by scanning, %" PRIu64 " by the table of %zu bytes\n", scanned_bytes,
                  looked_up_bytes, result->packets_bytes);
    assert_true(start_bytes == 0 || looked_up_bytes < scanned_bytes / 2);
    weir_frames_free(scanned);
    weir_frames_free(looked_up);
    weir_probe_result_free(result);
}

TEST_CASE(a_file_that_has_changed_is_refused)
{
    const char *path = clips_make("changing.mp4", clips[0][1]);
    weir_probe_result *result = probe(path, (weir_probe_config){ 0 });
    known from = { .path = path, .result = result };
    weir_error error = { 0 };
    result->mtime_ns -= 1;
    assert_null(decode(&from, (weir_sampling){ .count = 1 }, &error));
    assert_int_equal(error.status, WEIR_EDATA);
    assert_non_null(strstr(error.message, "changed since it was indexed"));
    weir_probe_result_free(result);
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
