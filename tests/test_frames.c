/* weir frames, as a program. */
#include <glob.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test_case.h"

#include <weir/engine.h>
#include <weir/files.h>
#include <weir/video.h>

#include "tests/clips.h"
#include "tests/program.h"

enum { MAX_ARGUMENTS = 32, NPY_HEADER_BYTES = 192, SIDE = 32, NUM_FRAMES = 30 };

static const char clip_arguments[] = "-f lavfi -i testsrc2=s=160x120:d=1:r=10 -c:v mpeg4 -bf 2";

/* 3 s, 30 frames, B-frames, groups of 5. */
static const char *make_long(void)
{
    return clips_make("long.mp4", "-f lavfi -i testsrc2=s=160x120:d=3:r=10 -c:v mpeg4 -bf 2 -g 5");
}

/* Starts `weir frames PATH` with the words of `arguments`. */
static void start_frames(struct program *program, const char *path, const char *arguments)
{
    char words[1024];
    char *argv[MAX_ARGUMENTS] = { (char *)program_path("WEIR_TOOL"), "frames", (char *)path };
    int num_words = 3;
    snprintf(words, sizeof words, "%s", arguments);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        assert_true(num_words < MAX_ARGUMENTS - 1);
        argv[num_words++] = word;
    }
    program_start(program, clips_path("."), argv, -1);
}

/* Runs it to its end. */
static void frames(struct program *program, const char *path, const char *arguments)
{
    start_frames(program, path, arguments);
    program_wait(program, clips_path("."));
}

static void assert_says(const char *text, const char *expected)
{
    if (!strstr(text, expected))
        fail_msg("no \"%s\" in:\n%s", expected, text);
}

/* ---- the bytes ----------------------------------------------------------------------------------------------- */

static const char small[] = "--width 32 --height 32 --resize stretch --scaler exact";
static const char scale[] = "scale=32:32:flags=bicubic,format=rgb24";

/* Do the arguments want filters, where this build has none? */
static bool lacks_filters(const char *arguments)
{
    struct program program;
    char with_output[1024];
    if (!strstr(arguments, "--filter"))
        return false;
    snprintf(with_output, sizeof with_output, "--filter null -o %s", clips_path("filtered.npy"));
    frames(&program, make_long(), with_output);
    bool lacks = program.status != 0;
    if (lacks) {
        assert_says(program.err, "without libavfilter");
        fprintf(stderr, "skipped: %s: %s", arguments, program.err);
    }
    program_free(&program);
    return lacks;
}

/* Its output with these arguments, without the header; the caller frees it. */
static uint8_t *array_of(const char *path, const char *arguments, size_t *num_bytes)
{
    struct program program;
    char with_output[1024];
    struct stat info;
    const char *npy = clips_path("out.npy");
    snprintf(with_output, sizeof with_output, "%s -o %s", arguments, npy);
    frames(&program, path, with_output);
    if (program.status != 0)
        fail_msg("%s: %d: %s", arguments, program.status, program.err);
    assert_string_equal(program.out, "");
    program_free(&program);

    assert_int_equal(stat(npy, &info), 0);
    *num_bytes = (size_t)info.st_size - NPY_HEADER_BYTES;
    uint8_t *bytes = malloc(*num_bytes);
    FILE *file = fopen(npy, "rb");
    assert_non_null(bytes);
    assert_non_null(file);
    assert_int_equal(fseek(file, NPY_HEADER_BYTES, SEEK_SET), 0);
    assert_int_equal(fread(bytes, 1, *num_bytes, file), *num_bytes);
    fclose(file);
    assert_int_equal(remove(npy), 0);
    return bytes;
}

static void assert_array(const char *path, const char *arguments, const uint8_t *expected, size_t expected_bytes)
{
    size_t num_bytes;
    uint8_t *bytes = array_of(path, arguments, &num_bytes);
    if (num_bytes != expected_bytes)
        fail_msg("%s: %zu bytes, not %zu", arguments, num_bytes, expected_bytes);
    if (memcmp(bytes, expected, num_bytes) != 0)
        fail_msg("%s: other bytes", arguments);
    free(bytes);
}

TEST_CASE(the_array_says_its_shape)
{
    struct program program;
    char arguments[1024];
    char header[NPY_HEADER_BYTES + 1] = "";
    const char *npy = clips_path("shape.npy");
    snprintf(arguments, sizeof arguments, "--width 64 --height 48 -o %s", npy);
    frames(&program, make_long(), arguments);
    assert_int_equal(program.status, 0);
    program_free(&program);
    FILE *file = fopen(npy, "rb");
    assert_non_null(file);
    assert_int_equal(fread(header, 1, NPY_HEADER_BYTES, file), NPY_HEADER_BYTES);
    fclose(file);
    assert_says(header + 10, "(30, 48, 64, 3, )");
}

typedef struct counterpart {
    const char *arguments; /* of weir frames */
    const char *filter;    /* of ffmpeg */
} counterpart;

TEST_CASE(options_are_ffmpegs_filters)
{
    static const counterpart all[] = {
        { "", "null" },
        { "--every 7", "select=not(mod(n\\,7))" },
        { "--every 7 --first 3", "select=not(mod(n\\,7))*lt(n\\,21)" },
        { "--first 4", "select=lt(n\\,4)" },
        { "--rate 4", "setpts=PTS-STARTPTS,fps=4" },
        { "--rate 29.97", "setpts=PTS-STARTPTS,fps=2997/100" },
        { "--rate 4 --window 0.5:2", "trim=start=0.5:end=2,setpts=PTS-STARTPTS,fps=4" },
        { "--rate 30000/1001 --first 11", "setpts=PTS-STARTPTS,fps=30000/1001,select=lt(n\\,11)" },
        { "--keyframes", "select=key" },
        { "--keyframes --window 0.7:", "trim=start=0.7,select=key" },
        { "--window 500ms:1.25", "trim=start=0.5:end=1.25" },
        { "--window 0.02m:", "trim=start=1.2" },
        { "--window :2s", "trim=end=2" },
        { "--window 1:2 --every 3", "trim=start=1:end=2,select=not(mod(n\\,3))" },
        { "--count 5", "select=eq(n\\,3)+eq(n\\,9)+eq(n\\,15)+eq(n\\,21)+eq(n\\,27)" },
        { "--count 2 --window 1:2", "select=eq(n\\,12)+eq(n\\,17)" },
        { "--frames 0,9,29", "select=eq(n\\,0)+eq(n\\,9)+eq(n\\,29)" },
        { "--at 0,0:00:01.25,2.9", "select=eq(n\\,0)+eq(n\\,12)+eq(n\\,29)" },
        { "--at 3,3.1", "select=eq(n\\,29),loop=1:1" },
        { "--at -0.1,0.36,5m --outside clamp --match nearest", "select=eq(n\\,0)+eq(n\\,4)+eq(n\\,29)" },
        { "--at 0.34 --match exact --tolerance 50ms", "select=eq(n\\,3)" },
        { "--at 0.3 --origin stream", "select=eq(n\\,3)" },
        { "--filter hflip,crop=in_w/2", "hflip,crop=in_w/2" },
        { "--filter negate --at 0.3,500ms", "select=eq(n\\,3)+eq(n\\,5),negate" },
        { NULL, NULL },
    };
    char arguments[1024], filter[1024];
    for (size_t i = 0; all[i].filter; i++) {
        size_t expected_bytes;
        if (lacks_filters(all[i].arguments))
            continue;
        snprintf(arguments, sizeof arguments, "%s %s", small, all[i].arguments);
        snprintf(filter, sizeof filter, "%s,%s", all[i].filter, scale);
        uint8_t *expected = clips_decode(make_long(), filter, &expected_bytes);
        assert_array(make_long(), arguments, expected, expected_bytes);
        free(expected);
    }
}

TEST_CASE(pixels_are_ffmpegs)
{
    static const counterpart all[] = {
        { "--width 64 --height 48 --resize stretch", "scale=64:48:flags=bicubic,format=rgb24" },
        { "--pix-fmt gray8 --width 64 --height 48 --resize stretch --filter extractplanes=y,scale=out_range=full",
          "extractplanes=y,scale=out_range=full,scale=64:48:flags=bicubic,format=gray" },
        { "--pix-fmt yuv420p --resize none", "format=yuv420p" },
        { "--resize none", "scale=flags=bicubic,format=rgb24" },
        { NULL, NULL },
    };
    char arguments[1024];
    for (size_t i = 0; all[i].filter; i++) {
        size_t expected_bytes;
        if (lacks_filters(all[i].arguments))
            continue;
        snprintf(arguments, sizeof arguments, "--scaler exact %s", all[i].arguments);
        uint8_t *expected = clips_decode(make_long(), all[i].filter, &expected_bytes);
        assert_array(make_long(), arguments, expected, expected_bytes);
        free(expected);
    }
}

TEST_CASE(planes_are_ffmpegs_pixels_one_colour_at_a_time)
{
    enum { NUM_PIXELS = SIDE * SIDE, CHANNELS = 3 };
    char arguments[1024];
    size_t num_bytes;
    uint8_t *pixels = clips_decode(make_long(), scale, &num_bytes);
    uint8_t *planes = malloc(num_bytes);
    assert_non_null(planes);
    for (size_t i = 0; i < num_bytes; i++) {
        size_t frame = i / (NUM_PIXELS * CHANNELS), pixel = i / CHANNELS % NUM_PIXELS, channel = i % CHANNELS;
        planes[(frame * CHANNELS + channel) * NUM_PIXELS + pixel] = pixels[i];
    }
    snprintf(arguments, sizeof arguments, "%s --layout nchw", small);
    assert_array(make_long(), arguments, planes, num_bytes);
    free(planes);
    free(pixels);
}

TEST_CASE(turned_pictures_stand_upright_unless_reported_otherwise)
{
    size_t upright_bytes, coded_bytes;
    const char *coded = clips_make("coded.mp4", "-f lavfi -i testsrc2=s=160x96:d=0.5:r=10 -c:v mpeg4");
    const char *turned = clips_rotate(coded, "turned.mp4", (clips_matrix){ 0, 1, -1, 0 });
    uint8_t *upright = clips_decode_with("", turned, "scale=flags=bicubic,format=rgb24", &upright_bytes);
    uint8_t *as_coded = clips_decode(turned, "scale=flags=bicubic,format=rgb24", &coded_bytes);
    assert_memory_not_equal(upright, as_coded, coded_bytes);
    assert_array(turned, "--scaler exact", upright, upright_bytes);
    assert_array(turned, "--scaler exact --no-autorotate", as_coded, coded_bytes);
    free(upright);
    free(as_coded);
}

/* ---- the same as the stage's --------------------------------------------------------------------------------- */

/* What a pipeline gives, in one chunk. */
static weir_frames *decode(weir_sampling sampling, uint64_t seed)
{
    const char *path = make_long();
    weir_video_config video = { WEIR_WITH_PICTURE(.width = SIDE, .height = SIDE, .resize = WEIR_RESIZE_STRETCH,
                                                  .scaler = WEIR_SCALER_EXACT),
                                .sampling = sampling, .seed = seed };
    weir_pipeline *pipeline;
    weir_item item;
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_pipe_video(builder, &video, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    weir_frames *frames = item.data;
    item.data = NULL;
    weir_item_release(&item);
    weir_pipeline_free(pipeline);
    return frames;
}

static void assert_as_stage(const char *arguments, weir_sampling sampling, uint64_t seed)
{
    char all[1024];
    weir_frames *expected = decode(sampling, seed);
    snprintf(all, sizeof all, "%s %s", small, arguments);
    assert_array(make_long(), all, expected->data, expected->num_frames * expected->frame_bytes);
    weir_frames_free(expected);
}

TEST_CASE(chance_is_the_pipelines)
{
    weir_sampling five = { .what = WEIR_SAMPLE_RANDOM, .count = 5 };
    assert_as_stage("--random 5", five, 0);
    assert_as_stage("--random 5 --seed 18446744073709551615", five, UINT64_MAX);
    five.start_ns = WEIR_SECOND;
    five.end_ns = 2 * WEIR_SECOND;
    assert_as_stage("--random 5 --seed 3 --window 1:2", five, 3);
    five = (weir_sampling){ .what = WEIR_SAMPLE_RANDOM, .count = 5, .length_frames = 5 };
    assert_as_stage("--random 5 --seed 4 --length 5f", five, 4);
    five = (weir_sampling){ .what = WEIR_SAMPLE_RANDOM, .count = 5, .length_ns = WEIR_SECOND };
    assert_as_stage("--random 5 --seed 5 --length 1s", five, 5);
}

TEST_CASE(clips_are_the_pipelines)
{
    weir_sampling clip = { .what = WEIR_SAMPLE_CLIPS, .count = 4 };
    assert_as_stage("--clip 4", clip, 0);
    clip.stride_frames = 3;
    assert_as_stage("--clip 4 --stride 3", clip, 0);
    clip.clip_start = WEIR_CLIP_CENTER;
    assert_as_stage("--clip 4 --stride 3 --start center", clip, 0);
    clip.clip_start = WEIR_CLIP_RANDOM;
    clip.num_clips = 3;
    assert_as_stage("--clip 4 --stride 3 --clips 3 --start random --seed 9", clip, 9);
    clip.clip_start = WEIR_CLIP_EVEN;
    clip.start_ns = WEIR_SECOND;
    assert_as_stage("--clip 4 --stride 3 --clips 3 --start even --window 1:", clip, 0);
    clip = (weir_sampling){ .what = WEIR_SAMPLE_CLIPS, .count = 4, .stride_ns = WEIR_SECOND / 5 };
    assert_as_stage("--clip 4 --stride 200ms", clip, 0);
    clip = (weir_sampling){ .what = WEIR_SAMPLE_CLIPS, .count = 400, .clip_short = WEIR_SHORT_LOOP };
    assert_as_stage("--clip 400 --short loop", clip, 0);
}

/* These are not written chunk by chunk. */
TEST_CASE(lists_that_jump_back_keep_their_order)
{
    int64_t indices[] = { 20, 0, -1, 20, 19, 3, 3 };
    assert_as_stage("--frames 20,0,-1,20,19,3,3",
                    (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 7 }, 0);
    int64_t times_ns[] = { 2 * WEIR_SECOND, WEIR_SECOND / 4, 2 * WEIR_SECOND };
    assert_as_stage("--at 0:00:02,250ms,2",
                    (weir_sampling){ .what = WEIR_SAMPLE_TIMES, .times_ns = times_ns, .num_times = 3 }, 0);
}

TEST_CASE(lists_that_rise_may_repeat_across_chunks)
{
    int64_t indices[] = { 0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 8, 8, 8, 8, 8, 8, 29 };
    assert_as_stage("--frames 0,1,2,3,4,5,6,7,7,7,8,8,8,8,8,8,29",
                    (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 17 }, 0);
}

/* ---- constant memory ----------------------------------------------------------------------------------------- */

/* 461 MB of frames. */
TEST_CASE(a_long_video_takes_the_memory_of_a_few_chunks)
{
#ifdef SANITIZED
    skip(); /* they keep what was freed */
#else
    enum { MAX_KILOBYTES = 200000 };
    struct program program;
    struct rusage usage;
    const char *clip = clips_make("2000.mp4", "-f lavfi -i testsrc2=s=320x240:d=20:r=100 -c:v mpeg4");
    frames(&program, clip, "--resize none");
    assert_int_equal(program.status, 0);
    assert_says(program.out, "frames     2000, 460800000 bytes");
    program_free(&program);
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0); /* the largest one, ffmpeg or weir */
    assert_in_range(usage.ru_maxrss, 1, MAX_KILOBYTES);
#endif
}

/* ---- what is printed ----------------------------------------------------------------------------------------- */

TEST_CASE(info_tells_what_the_file_is)
{
    struct program program;
    const char *clip = clips_make("a.mp4", clip_arguments);
    frames(&program, clip, "--width 80 --pix-fmt gray8 --layout nchw");
    assert_int_equal(program.status, 0);
    assert_says(program.out, "codec      mpeg4, video stream 1 (FFmpeg's stream 0)");
    assert_says(program.out, "160x120 in the file, 80x60 here");
    assert_says(program.out, "gray8, nchw");
    assert_says(program.out, "frames     10, 48000 bytes");
    assert_says(program.out, "damage     0 packets");
    program_free(&program);

    frames(&program, clip, "--json --list");
    assert_int_equal(program.status, 0);
    assert_says(program.out, "\"codec\": \"mpeg4\", \"stream\": 1, \"stream_index\": 0");
    assert_says(program.out, "{\"frame\": 9, \"pts\": 9216, \"time\": 0.9}");
    assert_says(program.out, "\"num_frames\": 10, \"num_bytes\": 576000, \"num_errors\": 0");
    program_free(&program);

    frames(&program, clip, "--json");
    assert_null(strstr(program.out, "\"pts\""));
    program_free(&program);
    frames(&program, clip, "--list");
    assert_says(program.out, "frame   pts");
    program_free(&program);
    frames(&program, clip, "");
    assert_null(strstr(program.out, "pts"));
    program_free(&program);

    frames(&program, clip, "--csv");
    assert_int_equal(program.status, 0);
    assert_int_equal(strncmp(program.out, "frame,pts,time", 14), 0);
    program_free(&program);
}

/* ---- other formats -------------------------------------------------------------------------------------------- */

static char *read_bytes(const char *path, size_t *size)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    char *bytes = malloc((size_t)info.st_size + 1);
    FILE *file = fopen(path, "rb");
    assert_non_null(bytes);
    assert_non_null(file);
    *size = fread(bytes, 1, (size_t)info.st_size, file);
    assert_int_equal(*size, info.st_size);
    fclose(file);
    return bytes;
}

/* `weir frames CLIP ARGUMENTS`, its stdout into a file by way of a pipe. */
static char *piped(const char *clip, const char *arguments, size_t *size)
{
    char command[8192];
    snprintf(command, sizeof command, "'%s' frames '%s' %s | cat > '%s'", program_path("WEIR_TOOL"), clip, arguments,
             clips_path("piped"));
    assert_int_equal(system(command), 0); /* NOLINT: the test's own paths */
    return read_bytes(clips_path("piped"), size);
}

TEST_CASE(stdout_takes_raw_video_or_an_array)
{
    size_t num_bytes, num_raw, num_npy;
    const char *clip = make_long();
    uint8_t *bytes = array_of(clip, small, &num_bytes);
    char arguments[256];
    snprintf(arguments, sizeof arguments, "%s -o -", small);
    char *raw = piped(clip, arguments, &num_raw);
    assert_int_equal(num_raw, num_bytes);
    assert_memory_equal(raw, bytes, num_bytes);
    snprintf(arguments, sizeof arguments, "%s -o - --format npy", small);
    char *npy = piped(clip, arguments, &num_npy);
    assert_int_equal(num_npy, num_bytes + NPY_HEADER_BYTES);
    assert_memory_equal(npy + NPY_HEADER_BYTES, bytes, num_bytes);
    free(raw);
    free(npy);

    struct program program;
    snprintf(arguments, sizeof arguments, "%s -o %s", small, clips_path("out.rgb"));
    frames(&program, clip, arguments);
    assert_int_equal(program.status, 0);
    program_free(&program);
    raw = read_bytes(clips_path("out.rgb"), &num_raw);
    assert_int_equal(num_raw, num_bytes);
    assert_memory_equal(raw, bytes, num_bytes);
    free(raw);
    free(bytes);
}

static void assert_same_picture(const char *png, const uint8_t *pixels, const char *format, size_t num_bytes)
{
    size_t size;
    uint8_t *decoded = clips_decode(png, format, &size);
    assert_int_equal(size, num_bytes);
    assert_memory_equal(decoded, pixels, num_bytes);
    free(decoded);
}

TEST_CASE(pictures_have_the_pixels_of_the_frames)
{
    enum { PICTURE_BYTES = 32 * 32 };
    struct program program;
    char arguments[4300];
    size_t num_bytes;
    const char *clip = make_long();
    snprintf(arguments, sizeof arguments, "%s --frames 3,0", small);
    uint8_t *bytes = array_of(clip, arguments, &num_bytes);
    snprintf(arguments, sizeof arguments, "%s --frames 3,0 -o %s", small, clips_path("shot-%03d.png"));
    frames(&program, clip, arguments);
    assert_int_equal(program.status, 0);
    assert_string_equal(program.out, "");
    program_free(&program);
    assert_same_picture(clips_path("shot-000.png"), bytes, "format=rgb24", PICTURE_BYTES * 3);
    assert_same_picture(clips_path("shot-001.png"), bytes + PICTURE_BYTES * 3, "format=rgb24", PICTURE_BYTES * 3);
    free(bytes);

    snprintf(arguments, sizeof arguments, "%s --pixel gray8 --at 1", small);
    bytes = array_of(clip, arguments, &num_bytes);
    snprintf(arguments, sizeof arguments, "%s --pixel gray8 --at 1 -o %s", small, clips_path("gray.png"));
    frames(&program, clip, arguments);
    assert_int_equal(program.status, 0);
    program_free(&program);
    assert_same_picture(clips_path("gray.png"), bytes, "format=gray", PICTURE_BYTES);
    free(bytes);
}

static double number_behind(const char *text, const char *name)
{
    const char *found = strstr(text, name);
    if (!found)
        fail_msg("no %s in:\n%s", name, text);
    return strtod(found + strlen(name), NULL);
}

TEST_CASE(info_tells_where_the_time_went)
{
    struct program program;
    struct stat info;
    const char *clip = make_long();
    assert_int_equal(stat(clip, &info), 0);
    frames(&program, clip, "--json --every 2");
    assert_int_equal(program.status, 0);
    static const char *const names[] = { "\"open_time\": ", "\"demux_time\": ", "\"decode_time\": ",
                                         "\"scale_time\": " };
    double sum = 0;
    for (size_t i = 0; i < 4; i++) {
        double time = number_behind(program.out, names[i]);
        assert_true(time > 0);
        sum += time;
    }
    assert_true(sum <= number_behind(program.out, "\"elapsed\": "));
    assert_int_equal((long)number_behind(program.out, "\"size_bytes\": "), info.st_size);
    assert_int_equal((long)number_behind(program.out, "\"num_frames\": "), 15);
    assert_int_equal((long)number_behind(program.out, "\"num_missing_frames\": "), 0);
    program_free(&program);

    frames(&program, clip, "");
    assert_says(program.out, "long.mp4, ");
    assert_says(program.out, "\ntime       open ");
    assert_says(program.out, ", demux ");
    assert_says(program.out, ", decode ");
    assert_says(program.out, ", scale ");
    assert_says(program.out, "0 missing\n");
    program_free(&program);
}

/* ---- what goes wrong ----------------------------------------------------------------------------------------- */

static void assert_ends(const char *path, const char *arguments, int status, const char *said)
{
    struct program program;
    frames(&program, path, arguments);
    if (program.status != status)
        fail_msg("%s %s: exit status %d, not %d: %s", path, arguments, program.status, status, program.err);
    assert_says(program.err, said);
    assert_string_equal(program.out, "");
    size_t length = strlen(program.err);
    assert_true(length > 0 && strchr(program.err, '\n') == program.err + length - 1);
    program_free(&program);
}

static void assert_refused(const char *path, const char *arguments, const char *said)
{
    assert_ends(path, arguments, 2, said);
}

TEST_CASE(mistakes_are_told_in_one_line)
{
    const char *clip = clips_make("a.mp4", clip_arguments);
    char text_said[4200];
    const char *text = clips_path("text.mp4");
    const char *npy = clips_path("none.npy");
    char arguments[1024];
    clips_write_text(text, "this is no video");
    snprintf(text_said, sizeof text_said, "weir frames: %s: cannot open", text);
    snprintf(arguments, sizeof arguments, "-o %s", npy);
    assert_refused(text, arguments, text_said);
    assert_int_not_equal(access(npy, F_OK), 0);
    assert_refused(clips_path("missing.mp4"), "", "No such file");
    assert_refused(clip, "--width 0", "--width");
    assert_refused(clip, "--width 40000", "--width");
    assert_refused(clip, "--resize none --width 64", "--resize none");
    assert_refused(clip, "--pix-fmt cmyk",
                   "--pixel: \"cmyk\" is not rgb24, gray8, yuv420p, rgb48, gray16 or yuv420p10");
    assert_refused(clip, "-o /nowhere/at/all.npy", "/nowhere/at/all.npy");
}

TEST_CASE(an_output_of_a_format_that_is_not_written_is_refused)
{
    static const char *const names[] = { "x.jpg", "y.mp4", "z.npz", "film.mkv" };
    const char *clip = clips_make("a.mp4", clip_arguments);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char arguments[1024];
        snprintf(arguments, sizeof arguments, "--frames 0 -o %s", names[i]);
        assert_refused(clip, arguments, "weir writes arrays (.npy), pictures (.png) and raw video (.raw)");
    }
}

/* Two clips in a folder, and one that is damaged. The programs then run beside it: names are relative. */
static void make_many(void)
{
    static bool is_made;
    assert_int_equal(chdir(clips_path(".")), 0);
    if (is_made)
        return;
    is_made = true;
    clips_make_folder(clips_path("many"));
    clips_make_folder(clips_path("many/in"));
    clips_make("many/a.mp4", clip_arguments);
    clips_make("many/in/50%d.mp4", clip_arguments);
    clips_write_text(clips_path("many/in/broken.mp4"), "no video");
}

/* In the folder of the clips. */
static void assert_shell(const char *line)
{
    char command[5000];
    snprintf(command, sizeof command, "cd '%s' && %s", clips_path("."), line);
    if (system(command) != 0)
        fail_msg("%s", line);
}

TEST_CASE(a_folder_is_sampled_to_an_array_for_each_file)
{
    struct program program;
    make_many();
    frames(&program, "many", "--count 4 -o arrays");
    assert_int_equal(program.status, 0);
    assert_says(program.err, "many/in/broken.mp4: cannot open");
    assert_says(program.err, "weir frames: 2 files sampled to arrays, 1 failed\n");
    program_free(&program);
    frames(&program, "many/a.mp4", "--count 4 -o one.npy");
    program_free(&program);
    assert_shell("cmp one.npy arrays/a.mp4.npy && cmp one.npy arrays/in/50%d.mp4.npy && ! test -e "
                 "arrays/in/broken.mp4.npy");
}

TEST_CASE(a_folder_is_sampled_to_pictures)
{
    struct program program;
    make_many();
    frames(&program, "many", "--frames 0,3 --format png -o pictures/");
    assert_int_equal(program.status, 0);
    program_free(&program);
    assert_shell("test -e pictures/a.mp4/0001.png && test -e pictures/in/50%d.mp4/0000.png");

    assert_refused("many", "-o pictures", "choose some of each, for example with --count 16");
    assert_refused("many", "--count 2", "-o FOLDER is missing");
    assert_refused("many", "--count 2 -o a.npy",
                   "a.npy: several files can only be written as arrays or pictures, to a folder");
    assert_refused("many", "--count 2 -o some --info", "--info, --list, --json, --csv: only for one file");
    frames(&program, "many", "--count 2 -o none --glob broken.*");
    assert_int_equal(program.status, 1);
    assert_says(program.err, "nothing could be decoded (1 failed)\n");
    program_free(&program);
}

TEST_CASE(values_that_make_no_sense_are_refused)
{
    static const char *const all[][2] = {
        { "--at 1:30", "--at: \"1:30\" is not" },
        { "--at 0:60:00", "--at" },
        { "--at 0:01:60", "--at" },
        { "--at 0:1:5", "--at" },
        { "--at 1,,2", "--at" },
        { "--at --1", "--at" },
        { "--at 1,x", "hours:minutes:seconds" },
        { "--frames 1.5", "--frames: \"1.5\" is not" },
        { "--frames -0", "--frames" },
        { "--frames 99999999999999999999", "--frames" },
        { "--every 0", "--every" },
        { "--rate 0", "30000/1001" },
        { "--rate 1/0", "--rate" },
        { "--rate 1.2/3", "--rate" },
        { "--rate -5", "--rate" },
        { "--rate 5.", "--rate" },
        { "--count 0", "--count" },
        { "--random 0", "--random" },
        { "--first 0", "--first" },
        { "--window 5", "as 10:20" },
        { "--window :", "--window" },
        { "--window 2:1", "--window" },
        { "--window 1:1", "--window" },
        { "--window 0:00:01:0:00:02", "--window" },
        { "--random 2 --length 5", "as 32f" },
        { "--random 2 --length 0f", "--length" },
        { "--random 2 --seed -1", "--seed" },
        { "--min-share 0", "--min-share" },
        { "--min-share 1.5", "--min-share: a share is at most 1" },
        { "--scaler best", "exact or fast" },
        { "--filter nonsense", "nonsense" },
        { "--max-frames 0", "--max-frames" },
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_refused(make_long(), all[i][0], all[i][1]);
}

TEST_CASE(options_that_contradict_each_other_are_refused)
{
    static const char *const all[][2] = {
        { "--at 1 --frames 3", "--frames: not with --at" },
        { "--every 2 --rate 5", "--rate: not with --every" },
        { "--count 2 --random 2", "--random: not with --count" },
        { "--keyframes --every 3", "--keyframes: not with --every" },
        { "--at 1 --window 0:2", "--window: not with --at" },
        { "--frames 1 --first 2", "--first: not with --frames" },
        { "--count 3 --first 2", "--first: not with --count" },
        { "--random 3 --first 2", "--first: not with --random" },
        { "--seed 3", "--seed: only with --random or --clip" },
        { "--stride 3", "--stride: only with --clip" },
        { "--clip 3 --stride 0", "--stride" },
        { "--clip 3 --stride 1.5", "with its unit" },
        { "--clip 3 --clips 2", "several clips need" },
        { "--clip 3 --start middle", "--start" },
        { "--clip 3 --count 3", "--clip: not with --count" },
        { "--count 3 --length 2s", "--length: only with --random" },
        { "--strict --min-share 0.5", "--min-share: not with --strict" },
        { "--filter hflip --frames 3,1", "must increase" },
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_refused(make_long(), all[i][0], all[i][1]);
}

TEST_CASE(what_lies_beyond_the_end_is_told)
{
    assert_refused(
        make_long(), "--at 3.2",
        "long.mp4: the frame at 3.200000000 s was requested, 0.200000000 s after the end; the video ends at 3.0");
    assert_refused(make_long(), "--at 1,1:02:03.5", "the frame at 3723.500000000 s was requested");
    assert_refused(make_long(), "--at 3 --outside fail", "0.000000000 s after the end");
    assert_refused(make_long(), "--at -0.2", "0.200000000 s before the first frame");
    assert_refused(make_long(), "--at 0.34 --match exact --tolerance 30ms", "the nearest is at 0.300000000 s");
    assert_refused(make_long(), "--at 1.5h", "the frame at 5400.000000000 s was requested");
    assert_refused(make_long(), "--frames 3,30", "frame 30 was requested; the video has 30");
    assert_refused(make_long(), "--frames -31", "frame -31 was requested");
    assert_refused(make_long(), "--window 1m:", "no frame matches the sampling");
    assert_ends(make_long(), "--max-frames 29 --rate 1000", 1, "limit of 29");
    assert_ends(make_long(), "--max-pixels 19199", 1, "160×120 are over the limit of 19199 pixels");
    if (!lacks_filters("--filter trim=start=9"))
        assert_refused(make_long(), "--filter trim=start=9", "dropped all 30 frames");
}

/* Its header counts 30 frames, and the last ones are cut off. */
static const char *make_cut(void)
{
    const char *whole = clips_make("whole.mp4", "-f lavfi -i testsrc2=s=176x144:d=1:r=30 -c:v libx264 -preset "
                                                "veryfast -bf 3 -g 6 -pix_fmt yuv420p -movflags faststart");
    return clips_cut(whole, "cut.mp4", 30000);
}

/* The same with some of its middle overwritten. */
static const char *make_holed(void)
{
    static uint8_t bytes[1 << 20];
    make_cut();
    FILE *file = fopen(clips_path("whole.mp4"), "rb");
    assert_non_null(file);
    size_t size_bytes = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    memset(bytes + size_bytes / 2, 0, size_bytes / 6);
    clips_write(clips_path("holed.mp4"), bytes, size_bytes);
    return clips_path("holed.mp4");
}

TEST_CASE(frames_that_damage_has_cost_are_counted)
{
    struct program program;
    frames(&program, make_holed(), "--json --every 1");
    assert_int_equal(program.status, 0);
    long num_missing = (long)number_behind(program.out, "\"num_missing_frames\": ");
    assert_in_range(num_missing, 1, NUM_FRAMES - 1);
    assert_int_equal((long)number_behind(program.out, "\"num_frames\": "), NUM_FRAMES - num_missing);
    program_free(&program);
    char arguments[4200];
    snprintf(arguments, sizeof arguments, "--every 1 --min-share 1 -o %s", clips_path("holed.npy"));
    assert_refused(make_holed(), arguments, "of 30 frames could be decoded, min_share is 1");
}

TEST_CASE(damage_is_counted_or_fails)
{
    struct program program;
    frames(&program, make_cut(), "--json");
    assert_int_equal(program.status, 0);
    assert_in_range((long)number_behind(program.out, "\"num_errors\": "), 1, NUM_FRAMES);
    double num_frames = number_behind(program.out, "\"num_frames\": ");
    assert_in_range((long)num_frames, 1, NUM_FRAMES - 1);
    program_free(&program);

    frames(&program, make_cut(), "--min-share 0.01 --csv");
    assert_int_equal(program.status, 0);
    program_free(&program);
    char arguments[64];
    char npy_arguments[4200];
    const char *npy = clips_path("cut.npy");
    snprintf(npy_arguments, sizeof npy_arguments, "-o %s", npy);
    frames(&program, make_cut(), npy_arguments);
    assert_int_equal(program.status, 0);
    assert_says(program.err, "cut.mp4: damaged: ");
    program_free(&program);
    assert_int_equal(unlink(npy), 0);
    snprintf(arguments, sizeof arguments, "--min-share %.3f", num_frames / NUM_FRAMES + 0.02);
    snprintf(npy_arguments, sizeof npy_arguments, "%s -o %s", arguments, npy);
    assert_refused(make_cut(), npy_arguments, "of 30 frames could be decoded");
    snprintf(npy_arguments, sizeof npy_arguments, "--strict -o %s", npy);
    assert_refused(make_cut(), npy_arguments, "damage is not tolerated");
    assert_int_not_equal(access(npy, F_OK), 0);
}

/* Frame i of a damaged file is frame i of the whole one, or it is missing: alone and with --strict, that is an error. */
TEST_CASE(numbers_of_frames_stay_where_others_are_lost)
{
    int num_kept = 0, num_lost = 0;
    char holed[4200];
    snprintf(holed, sizeof holed, "%s", make_holed());
    for (int i = 0; i < NUM_FRAMES; i++) {
        struct program whole, strict, both;
        char arguments[64];
        snprintf(arguments, sizeof arguments, "--frames %d --csv --strict", i);
        frames(&whole, clips_path("whole.mp4"), arguments);
        frames(&strict, holed, arguments);
        assert_int_equal(whole.status, 0);
        if (strict.status == 0) {
            num_kept++;
            assert_string_equal(strict.out, whole.out);
        } else {
            num_lost++;
            assert_non_null(strstr(strict.err, "damage is not tolerated"));
            snprintf(arguments, sizeof arguments, "--frames 0,%d --json", i);
            frames(&both, holed, arguments);
            assert_int_equal(both.status, 0);
            assert_int_equal((long)(number_behind(both.out, "\"num_frames\": ") +
                                    number_behind(both.out, "\"num_missing_frames\": ")),
                             2);
            program_free(&both);
        }
        program_free(&strict);
        program_free(&whole);
    }
    assert_true(num_kept > NUM_FRAMES / 2 && num_lost > 0);
}

TEST_CASE(what_cannot_be_written_is_told)
{
#ifdef COUNTS_LINES
    skip(); /* the counts of lines are files that the limit would cut, too */
#endif
    char arguments[4200];
    const char *npy = clips_path("full.npy");
    snprintf(arguments, sizeof arguments, "-o %s", npy);
    struct rlimit before, small_files;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small_files = (struct rlimit){ .rlim_cur = 4096, .rlim_max = before.rlim_max };
    signal(SIGXFSZ, SIG_IGN); /* the program's, too */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small_files), 0);
    assert_ends(make_long(), arguments, 1, "full.npy: File too large");
    small_files.rlim_cur = 256; /* below the picture's size, above that of the message */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small_files), 0);
    snprintf(arguments, sizeof arguments, "--first 1 -o %s", clips_path("full.png"));
    assert_ends(make_long(), arguments, 1, "full.png: File too large");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_not_equal(access(npy, F_OK), 0);

    const char *pipe = clips_path("pipe.npy"); /* no device: were it replaced, the machine would miss it */
    assert_int_equal(mkfifo(pipe, 0600), 0);
    snprintf(arguments, sizeof arguments, "-o %s", pipe);
    assert_refused(make_long(), arguments, "pipe.npy: a device or pipe");
    snprintf(arguments, sizeof arguments, "-o %s", clips_path("."));
    assert_refused(make_long(), arguments, "a folder has that name");
}

/* The number of temporary files next to it. */
static size_t num_beside(const char *path)
{
    char pattern[4200];
    glob_t found;
    const char *name = strrchr(path, '/') + 1;
    snprintf(pattern, sizeof pattern, "%.*s.%s.*.tmp", (int)(name - path), path, name);
    size_t num_found = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    return num_found;
}

/* ThreadSanitizer delivers signals late, and once in a hundred runs not at all. */
TEST_CASE(an_interrupted_run_leaves_no_half_array)
{
#ifdef SANITIZED_THREADS
    skip();
#endif
    struct program program;
    char arguments[4200];
    const char *npy = clips_path("stopped.npy");
    const char *endless =
        clips_make("endless.mp4", "-f lavfi -i testsrc2=s=160x120:d=300:r=10 -c:v mpeg4 -bf 2 -g 50");
    snprintf(arguments, sizeof arguments, "--width 512 --height 512 --scaler exact -o %s", npy);
    start_frames(&program, endless, arguments);
    char *folder = strndup(npy, (size_t)(strrchr(npy, '/') - npy));
    while (!program_has_part_in(program.pid, folder) && !program_has_ended(&program))
        sched_yield();
    assert_int_equal(kill(program.pid, SIGINT), 0);
    program_wait(&program, clips_path("."));
    free(folder);
    assert_int_equal(program.status, -SIGINT);
    assert_int_equal(num_beside(npy), 0);
    assert_int_not_equal(access(npy, F_OK), 0);
    program_free(&program);
}

TEST_CASE(one_picture_cannot_hold_two_frames)
{
    char arguments[4300];
    snprintf(arguments, sizeof arguments, "--frames 0,1 -o %s", clips_path("two.png"));
    assert_refused(make_long(), arguments, "put %04d into the name");
    assert_int_not_equal(access(clips_path("two.png"), F_OK), 0);
    assert_int_equal(num_beside(clips_path("two.png")), 0);
    snprintf(arguments, sizeof arguments, "--layout nchw -o %s", clips_path("two.png"));
    assert_refused(make_long(), arguments, "PNG pictures are rgb24, gray8, rgb48 or gray16");
    assert_refused(make_long(), "--info -o -", "takes stdout");
    assert_refused(make_long(), "--format png", "--format: only with --output");
}

TEST_CASE(what_comes_through_a_pipe_is_read)
{
    static const char *const choices[] = { "", "--count 5" };
    for (size_t i = 0; i < 2; i++) {
        char command[16000], file[16], piped[16];
        snprintf(
            command, sizeof command,
            "cd '%s' && '%s' frames '%s' %s --csv | wc -l >file.txt && cat '%s' | '%s' frames /dev/stdin %s --csv | "
            "wc -l >piped.txt",
            clips_path("."), program_path("WEIR_TOOL"), make_long(), choices[i], make_long(),
            program_path("WEIR_TOOL"), choices[i]);
        assert_int_equal(system(command), 0);
        char *of_file = read_file(clips_path("file.txt"));
        char *of_pipe = read_file(clips_path("piped.txt"));
        snprintf(file, sizeof file, "%s", of_file);
        snprintf(piped, sizeof piped, "%s", of_pipe);
        free(of_file);
        free(of_pipe);
        assert_string_equal(piped, file);
        assert_true(atoi(file) > 5);
    }
}

/* The line comes before there is a writer, and not where there is something. */
TEST_CASE(a_pipe_that_has_nothing_is_told_and_waited_for)
{
    struct program program;
    int reported[2];
    char line[600] = "", command[9000];
    const char *pipe_path = clips_path("waiting.mp4");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(pipe(reported), 0);
    char *argv[] = { (char *)program_path("WEIR_TOOL"), "frames", (char *)pipe_path, "--count", "1", "-o",
                     (char *)clips_path("waited.npy"),  NULL };
    program_start(&program, clips_path("."), argv, reported[1]);
    close(reported[1]);
    FILE *from = fdopen(reported[0], "r");
    assert_non_null(fgets(line, sizeof line, from));
    assert_non_null(strstr(line, "waiting.mp4 is a pipe that has nothing yet"));
    snprintf(command, sizeof command, "cat '%s' >'%s'", make_long(), pipe_path);
    (void)!system(command); /* NOLINT: it may lose its reader, who has seen enough */
    program_wait(&program, clips_path("."));
    assert_int_equal(program.status, 0);
    assert_int_equal(access(clips_path("waited.npy"), F_OK), 0);
    fclose(from);
    program_free(&program);
    snprintf(command, sizeof command,
             "cd '%s' && cat '%s' | '%s' frames /dev/stdin --count 1 -o a.npy 2>told.txt; test ! -s told.txt",
             clips_path("."), make_long(), program_path("WEIR_TOOL"));
    assert_int_equal(system(command), 0); /* NOLINT */
}

TEST_CASE(pictures_come_through_a_pipe)
{
    static const char *const names[] = { "piped.png", "piped.jpg" };
    for (size_t i = 0; i < 2; i++) {
        char command[16000];
        const char *tool = program_path("WEIR_TOOL"),
                   *path = clips_make(names[i], "-f lavfi -i testsrc2=s=300x200 -frames:v 1");
        snprintf(command, sizeof command,
                 "cd '%s' && '%s' frames '%s' -o whole.raw && cat '%s' | '%s' frames /dev/stdin -o piped.raw && "
                 "cmp whole.raw piped.raw",
                 clips_path("."), tool, path, path, tool);
        assert_int_equal(system(command), 0);
    }
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
