/*
 * The reader: however a frame is reached, it is the frame that reading from the beginning gives, with its pixels and
 * its timestamp. Frames are compared as the decoder gives them, before any scaling.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test_case.h"
#include <glob.h>

#include <libavutil/imgutils.h>

#include <weir/clock.h>

#include "common/random.h"
#include "stages/reader/frame_reader.h"
#include "stages/reader/packet_table.h"
#include "tests/clips.h"

enum { MAX_SHOTS = 4096, CACHE_BYTES = 16 << 20 };

/* The part of a frame that is compared. */
typedef struct shot {
    uint64_t hash;
    int64_t pts;
} shot;

typedef struct film {
    shot shots[MAX_SHOTS];
    size_t num_shots;
    weir_frame_reader_way way;
    bool was_wrong_index; /* the last resort was needed */
    bool could_not_seek;
    bool was_listed;
    uint64_t num_errors;
    uint64_t num_missing;
} film;

static uint64_t hash_bytes(const uint8_t *bytes, size_t num_bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < num_bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, FFMIN(8, num_bytes - i));
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    return hash;
}

static uint64_t hash_frame(const AVFrame *frame)
{
    int size = av_image_get_buffer_size(frame->format, frame->width, frame->height, 1);
    assert_true(size > 0);
    uint8_t *bytes = malloc((size_t)size);
    assert_non_null(bytes);
    av_image_copy_to_buffer(bytes, size, (const uint8_t *const *)frame->data, frame->linesize, frame->format,
                            frame->width, frame->height, 1);
    uint64_t hash = hash_bytes(bytes, (size_t)size);
    free(bytes);
    return hash;
}

static void put_in_order(film *taken, const weir_frame_reader *reader)
{
    size_t *order;
    assert_int_equal(weir__frame_reader_order(reader, taken->num_shots, &order), WEIR_OK);
    if (!order)
        return;
    shot *shots = calloc(taken->num_shots, sizeof *shots);
    assert_non_null(shots);
    for (size_t i = 0; i < taken->num_shots; i++)
        shots[i] = taken->shots[order[i]];
    memcpy(taken->shots, shots, taken->num_shots * sizeof *shots);
    free(shots);
    free(order);
}

typedef struct setting {
    weir_sampling sampling;
    size_t max_cached_bytes; /* 0 = none */
    int64_t far_bytes;
    bool is_survey; /* the header's list of packets is not used */
    bool uses_table;
    const char *table_path; /* the file whose table it is; NULL = the file itself */
    bool keeps_recent;
    uint64_t seed;
    uint64_t seq;
    uint8_t threads;
    uint64_t max_decoder_bytes; /* 0 = 1 GiB */
} setting;

/* The packet table of a file; the caller frees it. NULL = its index is not trusted. */
static uint8_t *make_table(const char *path, size_t *num_bytes)
{
    const weir_decoder_config limits = { .max_pixels = INT32_MAX, .max_decoder_bytes = 1 << 30 };
    const weir_input_config input = { .max_pipe_bytes = 1 << 30 };
    weir_decoder decoder = { .config = &limits, .input.config = &input };
    weir_file_packets file = { .decoder = &decoder, .path = path, .max_packets = UINT32_MAX };
    uint8_t *table = NULL;
    assert_int_equal(weir__decoder_init(&decoder), WEIR_OK);
    if (weir__file_packets_open(&file, NULL) == WEIR_OK && weir__file_packets_scan(&file, NULL) == WEIR_OK &&
        !file.index.distrust)
        assert_int_equal(weir__packet_table_pack(&file.index, decoder.stream->time_base, &table, num_bytes), WEIR_OK);
    weir__file_packets_reset(&file);
    weir__decoder_free(&decoder);
    return table;
}

/* The frames, or our status, with *error filled. */
static int try_read(const char *path, const setting *how, film *taken, weir_error *error)
{
    const weir_decoder_config limits = { .max_pixels = INT32_MAX,
                                         .max_decoder_bytes =
                                             how->max_decoder_bytes ? how->max_decoder_bytes : 1 << 30,
                                         .max_all_decoder_bytes = UINT64_MAX,
                                         .threads = how->threads };
    const weir_input_config input = { .allow = WEIR_ALLOW_PIPES, .max_pipe_bytes = 1 << 30 };
    weir_decoder decoder = { .config = &limits, .input.config = &input };
    weir_sampling sampling = how->sampling;
    weir_frame_reader reader = {
        .file = { .decoder = &decoder, .max_cached_bytes = how->max_cached_bytes, .far_bytes = how->far_bytes },
        .sampling = &sampling,
        .is_survey = how->is_survey,
        .seed = how->seed,
        .max_frames = MAX_SHOTS,
        .max_duration_ns = INT64_MAX,
    };
    uint8_t *table =
        how->uses_table ? make_table(how->table_path ? how->table_path : path, &reader.table_bytes) : NULL;
    reader.table = table;
    *taken = (film){ 0 };
    assert_int_equal(weir__sampling_init(&sampling, NULL), WEIR_OK);
    assert_int_equal(weir__decoder_init(&decoder), WEIR_OK);
    int rc = weir__frame_reader_open(&reader, path, error);
    if (rc == WEIR_OK)
        rc = weir__frame_reader_select(&reader, how->seq, error);
    while (rc == WEIR_OK && (rc = weir__frame_reader_next(&reader, error)) == WEIR_OK) {
        shot one = { .hash = hash_frame(decoder.frame), .pts = weir__frame_reader_pts(&reader) };
        for (unsigned i = 0; i < reader.num_repeats; i++)
            taken->shots[taken->num_shots++] = one;
    }
    taken->way = reader.way;
    taken->was_wrong_index = reader.run.is_last_resort;
    taken->could_not_seek = reader.file.cannot_seek;
    taken->was_listed = reader.file.listed.blocks;
    taken->num_errors = decoder.num_errors;
    taken->num_missing = reader.targets.num_missing;
    if (rc == WEIR_EOF)
        put_in_order(taken, &reader);
    weir__frame_reader_close(&reader);
    weir__decoder_free(&decoder);
    weir__sampling_free(&sampling);
    free(table);
    return rc == WEIR_EOF ? WEIR_OK : rc;
}

static void read_film(const char *path, const setting *how, film *taken)
{
    weir_error error = { 0 };
    if (try_read(path, how, taken, &error) != WEIR_OK)
        fail_msg("%s: %s", path, error.message);
}

static film all; /* of the clip in work */
static film chosen;

static void assert_shot(const char *path, const char *what, size_t i, size_t frame)
{
    if (frame >= all.num_shots)
        fail_msg("%s, %s: frame %zu of %zu", path, what, frame, all.num_shots);
    if (chosen.shots[i].pts != all.shots[frame].pts)
        fail_msg("%s, %s: frame %zu has pts %" PRId64 ", not %" PRId64, path, what, frame, chosen.shots[i].pts,
                 all.shots[frame].pts);
    if (chosen.shots[i].hash != all.shots[frame].hash)
        fail_msg("%s, %s: frame %zu (pts %" PRId64 ") has other pixels", path, what, frame, all.shots[frame].pts);
}

/* ---- clips --------------------------------------------------------------------------------------------------- */

typedef struct clip {
    const char *name;
    const char *arguments;
    weir_frame_reader_way way; /* that it must be read, where something is chosen; plain: either */
} clip;

#define SOURCE "-f lavfi -i testsrc2=s=176x144:d=1.6:r=30,noise=alls=12:allf=t "
#define X264   "-c:v libx264 -preset veryfast -pix_fmt yuv420p "

static const clip clips[] = {
    { "b_frames.mp4", SOURCE X264 "-bf 3 -g 12", WEIR_READER_INDEXED },
    { "one_group.mp4", SOURCE X264 "-bf 3 -g 600 -x264-params b-pyramid=normal:ref=4", WEIR_READER_INDEXED },
    { "all_slices.mp4", SOURCE X264 "-bf 2 -g 9 -x264-params slices=4:b-pyramid=strict", WEIR_READER_INDEXED },
    { "open_group.mp4", SOURCE X264 "-bf 3 -g 10 -x264-params open-gop=1:scenecut=0", WEIR_READER_INDEXED },
    { "open_group.mkv", SOURCE X264 "-bf 5 -g 14 -x264-params open-gop=1:b-pyramid=normal", WEIR_READER_INDEXED },
    { "intra_refresh.mp4", SOURCE X264 "-bf 0 -g 10 -x264-params intra-refresh=1", WEIR_READER_INDEXED },
    { "interlaced.mp4", SOURCE X264 "-bf 2 -g 12 -flags +ildct+ilme -x264-params interlaced=1", WEIR_READER_INDEXED },
    { "baseline.mp4", SOURCE X264 "-profile:v baseline -g 12", WEIR_READER_INDEXED },
    { "fragments.mp4", SOURCE X264 "-bf 2 -g 12 -movflags frag_keyframe+empty_moov", WEIR_READER_INDEXED },
    { "variable_rate.mp4", SOURCE X264 "-bf 3 -g 12 -vf 'select=not(mod(n\\,7))+gt(mod(n\\,5)\\,2)' -fps_mode vfr",
      WEIR_READER_INDEXED },
    { "stream.ts", SOURCE X264 "-bf 3 -g 12", WEIR_READER_INDEXED },
    { "open_group.ts", SOURCE X264 "-bf 3 -g 12 -x264-params open-gop=1", WEIR_READER_PLAIN },
    /* A packet is one with start codes, and each has an SEI unit in front. */
    { "interlaced.ts", SOURCE X264 "-bf 3 -g 250 -flags +ildct+ilme -x264-params interlaced=1:b-pyramid=normal",
      WEIR_READER_INDEXED },
    { "no_cues.mkv", SOURCE X264 "-bf 3 -g 12 -f matroska -live 1", WEIR_READER_INDEXED },
    { "bare.h264", SOURCE X264 "-bf 3 -g 12", WEIR_READER_INDEXED },
    { "h264.avi", SOURCE X264 "-bf 2 -g 12", WEIR_READER_INDEXED },
    { "one_group.avi", SOURCE X264 "-bf 3 -g 600 -x264-params b-pyramid=normal:ref=4", WEIR_READER_INDEXED },
    { "open_group.avi", SOURCE X264 "-bf 3 -g 10 -x264-params open-gop=1:scenecut=0", WEIR_READER_INDEXED },
    { "interlaced.avi", SOURCE X264 "-bf 2 -g 12 -flags +ildct+ilme -x264-params interlaced=1:b-pyramid=normal",
      WEIR_READER_INDEXED },
    { "dropped.avi", SOURCE X264 "-bf 2 -g 12 -vf 'select=not(mod(n\\,7))+gt(mod(n\\,5)\\,2)' -fps_mode vfr",
      WEIR_READER_INDEXED },
    { "odd_10_bit.mkv",
      "-f lavfi -i testsrc2=s=175x143:d=1 -c:v libx264 -preset veryfast -bf 3 -g 8 -pix_fmt yuv420p10",
      WEIR_READER_PLAIN },
    { "one_frame.mp4", SOURCE X264 "-frames:v 1", WEIR_READER_INDEXED },
    { "late.mkv", SOURCE X264 "-bf 3 -g 12 -output_ts_offset 3.7", WEIR_READER_INDEXED },
    { "first_times_missing.mkv", SOURCE X264 "-bf 3 -g 12 -output_ts_offset -0.7 -avoid_negative_ts disabled",
      WEIR_READER_COUNTED },
    { "before_zero.webm",
      SOURCE "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 20 -pix_fmt yuv420p -output_ts_offset -1 "
             "-avoid_negative_ts disabled",
      WEIR_READER_INDEXED },
    { "sound.mp4", "-f lavfi -i sine=d=1.6 " SOURCE X264 "-bf 3 -g 12 -c:a aac", WEIR_READER_INDEXED },
    { "hevc.mp4",
      SOURCE "-c:v libx265 -preset ultrafast -pix_fmt yuv420p -x265-params keyint=12:bframes=4:log-level=1",
      WEIR_READER_INDEXED },
    { "hevc_pyramid.mkv",
      SOURCE "-c:v libx265 -preset fast -pix_fmt yuv420p -x265-params keyint=16:open-gop=1:b-pyramid=1:log-level=1",
      WEIR_READER_INDEXED },
    { "hevc_layers.mp4",
      SOURCE "-c:v libx265 -preset fast -pix_fmt yuv420p -x265-params keyint=16:temporal-layers=1:log-level=1",
      WEIR_READER_INDEXED },
    { "hevc.ts", SOURCE "-c:v libx265 -preset ultrafast -pix_fmt yuv420p -x265-params keyint=12:log-level=1",
      WEIR_READER_PLAIN },
    { "vp8_hidden.webm",
      SOURCE "-c:v libvpx -deadline good -cpu-used 4 -auto-alt-ref 1 -lag-in-frames 12 -g 20 "
             "-b:v 300k -pix_fmt yuv420p",
      WEIR_READER_INDEXED },
    { "vp9_hidden.webm",
      SOURCE "-c:v libvpx-vp9 -deadline good -cpu-used 5 -auto-alt-ref 1 -lag-in-frames 16 -g 20 "
             "-b:v 300k -pix_fmt yuv420p",
      WEIR_READER_INDEXED },
    { "vp9.mp4", SOURCE "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 20 -pix_fmt yuv420p",
      WEIR_READER_INDEXED },
    { "av1.mkv",
      "-f lavfi -i testsrc2=s=176x144:d=1:r=24 -c:v libaom-av1 -cpu-used 8 -usage realtime -g 8 "
      "-pix_fmt yuv420p",
      WEIR_READER_INDEXED },
    { "av1_hidden.mp4",
      "-f lavfi -i testsrc2=s=176x144:d=1:r=24 -c:v libaom-av1 -cpu-used 8 -lag-in-frames 16 "
      "-auto-alt-ref 1 -g 12 -pix_fmt yuv420p",
      WEIR_READER_INDEXED },
    { "av1_svt.mp4",
      "-f lavfi -i testsrc2=s=176x144:d=2:r=24 -c:v libsvtav1 -preset 10 -g 30 -svtav1-params film-grain=20 "
      "-pix_fmt yuv420p",
      WEIR_READER_INDEXED },
    { "mpeg2.ts", SOURCE "-c:v mpeg2video -bf 2 -g 12", WEIR_READER_PLAIN },
    { "mpeg2.mpg", SOURCE "-c:v mpeg2video -bf 2 -g 12", WEIR_READER_PLAIN },
    { "mpeg4.mp4", SOURCE "-c:v mpeg4 -bf 2 -g 12", WEIR_READER_PLAIN },
    { "mpeg4.avi", SOURCE "-c:v mpeg4 -bf 2 -g 12", WEIR_READER_COUNTED },
    { "mjpeg.avi", SOURCE "-c:v mjpeg -pix_fmt yuvj420p", WEIR_READER_INDEXED },
    { "raw.y4m", SOURCE "-pix_fmt yuv420p", WEIR_READER_PLAIN },
    { "flash.flv", SOURCE "-c:v flv -g 12", WEIR_READER_COUNTED },
};

/* Copied out of others: what they begin with is decoded and not shown (edit list), or hangs in the air. */
static const clip copies[] = {
    { "edit_list.mp4", "b_frames.mp4", WEIR_READER_INDEXED },
    { "edit_list_open.mov", "open_group.mp4", WEIR_READER_PLAIN },
    { "cut_open.mkv", "open_group.mkv", WEIR_READER_PLAIN },
};

enum { NUM_CLIPS = sizeof clips / sizeof clips[0], NUM_COPIES = sizeof copies / sizeof copies[0], MAX_CLIPS = 128 };

typedef struct sample {
    const char *path;
    weir_frame_reader_way way;
    film *all; /* its frames, read from the beginning; NULL = it was not read yet, or is damaged beyond use */
    bool is_unusable;
} sample;

static sample samples[MAX_CLIPS];
static size_t num_samples;
static size_t num_made; /* of them: here, with ffmpeg; they come first */

static void add_sample(const char *path, weir_frame_reader_way way)
{
    if (!path)
        return;
    assert_true(num_samples < MAX_CLIPS);
    samples[num_samples++] = (sample){ .path = path, .way = way };
}

static const char *clip_arguments(const char *name)
{
    for (size_t i = 0; i < NUM_CLIPS; i++) {
        if (strcmp(clips[i].name, name) == 0)
            return clips[i].arguments;
    }
    fail_msg("no clip %s", name);
    return NULL;
}

static const char *make_clip(const char *name)
{
    return clips_make(name, clip_arguments(name));
}

static glob_t real_clips;

static void add_real_samples(void)
{
    char pattern[4096];
    const char *media = clips_media();
    if (!media)
        return;
    snprintf(pattern, sizeof pattern, "%s/*/*.{mp4,mkv,avi,mov}", media);
    assert_int_equal(glob(pattern, GLOB_BRACE, NULL, &real_clips), 0);
    for (size_t i = 0; i < real_clips.gl_pathc; i++)
        add_sample(real_clips.gl_pathv[i], WEIR_READER_PLAIN);
}

/* MPEG-2 whose aspect ratio changes, and changes back: FFmpeg's decoder drops a frame at each change. */
static void add_changing_sample(const char *name)
{
    char arguments[4096];
    const char *wide = clips_make("wide.ts", SOURCE "-c:v mpeg2video -bf 2 -g 12 -aspect 16:9");
    snprintf(arguments, sizeof arguments, "file '%s'\nfile '%s'\nfile '%s'\n", clips_path("mpeg2.ts"),
             wide ? wide : "", clips_path("mpeg2.ts"));
    clips_write_text(clips_path("changing.txt"), arguments);
    snprintf(arguments, sizeof arguments, "-f concat -safe 0 -i '%s' -c copy", clips_path("changing.txt"));
    add_sample(wide ? clips_make(name, arguments) : NULL, WEIR_READER_COUNTED);
}

/* Two recordings with one clock each, and two files whose times overlap at the join. */
static void add_joined_samples(void)
{
    char arguments[4096];
    snprintf(arguments, sizeof arguments, "cat '%s' '%s' > '%s'", clips_path("stream.ts"), clips_path("stream.ts"),
             clips_path("joined.ts"));
    if (system(arguments) == 0) /* NOLINT: the test's own paths */
        add_sample(clips_path("joined.ts"), WEIR_READER_INDEXED);
    snprintf(arguments, sizeof arguments, "file '%s'\nfile '%s'\n", clips_path("b_frames.mp4"),
             clips_path("film.mp4"));
    clips_write_text(clips_path("joined.txt"), arguments);
    clips_make("film.mp4", SOURCE X264 "-bf 3 -g 12 -vf fps=30000/1001");
    snprintf(arguments, sizeof arguments, "-f concat -safe 0 -i '%s' -c copy", clips_path("joined.txt"));
    add_sample(clips_make("overlapping.mp4", arguments), WEIR_READER_PLAIN);
}

static int make_samples(void **state)
{
    if (clips_set_up(state) != 0)
        return -1;
    for (size_t i = 0; i < NUM_CLIPS; i++)
        add_sample(make_clip(clips[i].name), clips[i].way);
    for (size_t i = 0; i < NUM_COPIES; i++) {
        char arguments[4096];
        snprintf(arguments, sizeof arguments, "-ss 0.55 -i '%s' -c copy", clips_path(copies[i].arguments));
        add_sample(clips_make(copies[i].name, arguments), copies[i].way);
    }
    add_sample(clips_rotate(clips_path("b_frames.mp4"), "rotated.mp4", (clips_matrix){ 0, 1, -1, 0 }),
               WEIR_READER_INDEXED);
    add_joined_samples();
    add_changing_sample("changing.mkv");
    add_changing_sample("changing.mov");
    num_made = num_samples;
    add_real_samples();
    return 0;
}

/* ---- the same frames, whichever way -------------------------------------------------------------------------- */

static unsigned num_sought; /* samples in which seeking was possible */
static unsigned num_listed; /* whose header's list of packets was used */

/* How packets are got at: from memory, by reading on, or by seeking wherever that saves anything. Of AV1 it is also
   by a packet table, where those of a run are held. From MP4 files it is also by the header's list, group by group,
   with and without room for what was read. */
enum { FROM_MEMORY, BY_READING, BY_SEEKING, BY_TABLE, BY_LIST, BY_LIST_AND_MEMORY, NUM_SETTINGS };
static const setting settings[NUM_SETTINGS] = {
    [FROM_MEMORY] = { .max_cached_bytes = CACHE_BYTES, .is_survey = true },
    [BY_READING] = { .far_bytes = INT64_MAX, .is_survey = true },
    [BY_SEEKING] = { .far_bytes = 1, .is_survey = true },
    [BY_TABLE] = { .max_cached_bytes = CACHE_BYTES, .far_bytes = 1, .uses_table = true },
    [BY_LIST] = { .far_bytes = 1 },
    [BY_LIST_AND_MEMORY] = { .max_cached_bytes = 10000, .far_bytes = 1 },
};

/* Is the setting one of its own for that file? */
static bool is_setting_of(const char *path, size_t setting_number)
{
    if (setting_number == BY_TABLE)
        return strstr(path, "av1");
    return setting_number < BY_LIST || strstr(path, ".mp4") || strstr(path, ".mov");
}

/* In how many of the ways each check reads a clip; which ones, changes with the check and the clip. Decoding takes most of the
   time, and builds with sanitizers, or by clang, repeat what gcc's build checks. */
#if defined SANITIZED || defined __clang__
enum { WAYS_OF_MADE = 2, WAYS_OF_REAL = 1 };
#else
enum { WAYS_OF_MADE = NUM_SETTINGS, WAYS_OF_REAL = 2 };
#endif

typedef void (*check_function)(const char *path, weir_frame_reader_way way, setting how);

static bool read_whole(sample *s)
{
    weir_error error = { 0 };
    if (!s->all && !s->is_unusable) {
        s->is_unusable = try_read(s->path, &(setting){ 0 }, &all, &error) != WEIR_OK;
        s->all = s->is_unusable ? NULL : malloc(sizeof all);
        if (s->all)
            *s->all = all;
    }
    if (s->all)
        all = *s->all;
    return s->all;
}

static void for_all_samples(check_function check)
{
    static size_t num_checks;
    num_checks++;
    for (size_t i = 0; i < num_samples; i++) {
        if (!read_whole(&samples[i]))
            continue;
        assert_int_equal(all.way, WEIR_READER_PLAIN);
        for (size_t j = 0; j < NUM_SETTINGS; j++)
            if (is_setting_of(samples[i].path, j) &&
                (i + j + num_checks) % NUM_SETTINGS < (i < num_made ? WAYS_OF_MADE : WAYS_OF_REAL))
                check(samples[i].path, samples[i].way, settings[j]);
        num_listed += chosen.was_listed;
        num_sought += chosen.way == WEIR_READER_INDEXED && !chosen.could_not_seek;
    }
}

static int free_samples(void **state)
{
    for (size_t i = 0; i < num_samples; i++)
        free(samples[i].all);
    return clips_tear_down(state);
}

/* The reference is the output of the ffmpeg program for the clips that are made here, as they are encoded. */
TEST_CASE(reading_from_the_beginning_gives_ffmpegs_frames)
{
    for (size_t i = 0; i < num_made; i++) {
        size_t num_bytes;
        uint8_t *bytes = clips_decode(samples[i].path, "null", &num_bytes);
        read_film(samples[i].path, &(setting){ 0 }, &all);
        size_t frame_bytes = all.num_shots ? num_bytes / all.num_shots : 0;
        if (!frame_bytes || frame_bytes * all.num_shots != num_bytes)
            fail_msg("%s: %zu frames, ffmpeg gives %zu bytes", samples[i].path, all.num_shots, num_bytes);
        for (size_t frame = 0; frame < all.num_shots; frame++) {
            if (hash_bytes(bytes + frame * frame_bytes, frame_bytes) != all.shots[frame].hash)
                fail_msg("%s: frame %zu is not ffmpeg's", samples[i].path, frame);
        }
        free(bytes);
    }
}

static void check_way(const char *path, weir_frame_reader_way way)
{
    if (way != WEIR_READER_PLAIN && chosen.way != way)
        fail_msg("%s: read the way %d, not %d", path, (int)chosen.way, (int)way);
    if (chosen.was_wrong_index)
        fail_msg("%s: its index was wrong", path);
}

/* Damage costs frames in reading from the beginning, too, which then have no number there. */
static bool is_whole(void)
{
    return all.num_errors == 0;
}

static void check_lists(const char *path, weir_frame_reader_way way, setting how)
{
    int64_t indices[64];
    int64_t num_frames = (int64_t)all.num_shots;
    if (!is_whole())
        return;
    for (size_t i = 0; i < 64; i++)
        indices[i] = (int64_t)(i * 7919 + 13) % num_frames - (i % 3 == 0 ? num_frames : 0);
    how.sampling = (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 64 };
    read_film(path, &how, &chosen);
    if (chosen.num_shots != 64)
        fail_msg("%s: %zu of 64 frames", path, chosen.num_shots);
    for (size_t i = 0; i < 64; i++)
        assert_shot(path, "a list", i, (size_t)(indices[i] < 0 ? indices[i] + num_frames : indices[i]));
    check_way(path, way);
}

TEST_CASE(lists_of_frames_give_those_frames)
{
    num_sought = 0;
    num_listed = 0;
    for_all_samples(check_lists);
    assert_true(num_sought > NUM_CLIPS / 2);
    assert_in_range(num_listed, 10, num_samples);
}

static void check_single(const char *path, weir_frame_reader_way way, setting how)
{
    size_t step = all.num_shots > 60 ? all.num_shots / 4 : how.max_cached_bytes ? 2 : 13;
    for (size_t i = how.max_cached_bytes ? 1 : 0; is_whole() && i < all.num_shots; i += step) {
        int64_t index = (int64_t)i;
        how.sampling = (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = &index, .num_indices = 1 };
        read_film(path, &how, &chosen);
        assert_int_equal(chosen.num_shots, 1);
        assert_shot(path, "alone", 0, i);
        check_way(path, way);
    }
}

TEST_CASE(a_frame_alone_is_the_same)
{
    for_all_samples(check_single);
}

static void check_every(const char *path, weir_frame_reader_way way, setting how)
{
    for (uint32_t every = 1; is_whole() && every < 12; every += 5) {
        how.sampling = (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = every };
        read_film(path, &how, &chosen);
        assert_int_equal(chosen.num_shots, (all.num_shots + every - 1) / every);
        for (size_t i = 0; i < chosen.num_shots; i++)
            assert_shot(path, "every k-th", i, i * every);
        check_way(path, way);
    }
}

TEST_CASE(every_so_many_frames_are_the_same)
{
    for_all_samples(check_every);
}

static void check_first(const char *path, weir_frame_reader_way way, setting how)
{
    static const uint32_t counts[] = { 1, 7, 45 };
    bool is_looked_ahead = way == WEIR_READER_INDEXED && strstr(path, ".mp4") && how.max_cached_bytes;
    for (size_t i = 0; is_whole() && how.far_bytes != 1 && i < sizeof counts / sizeof counts[0]; i++) {
        how.sampling = (weir_sampling){ .count = counts[i] };
        read_film(path, &how, &chosen);
        assert_int_equal(chosen.num_shots, FFMIN(counts[i], all.num_shots));
        for (size_t frame = 0; frame < chosen.num_shots; frame++)
            assert_shot(path, "the first", frame, frame);
        check_way(path, is_looked_ahead ? WEIR_READER_INDEXED : WEIR_READER_PLAIN);
    }
}

TEST_CASE(the_first_frames_are_the_same)
{
    for_all_samples(check_first);
}

/* As from a pipe, which what is read of it has left; however few of the packets are kept. */
TEST_CASE(the_first_frames_need_one_reading)
{
    static const size_t max_cached_bytes[] = { 0, 100000, 300000, CACHE_BYTES };
    const char *path = make_clip("raw.y4m");
    char pipe[32] = "";
    if (!path)
        return;
    read_film(path, &(setting){ 0 }, &all);
    for (size_t i = 0; i < sizeof max_cached_bytes / sizeof max_cached_bytes[0]; i++) {
        int file = open(path, O_RDONLY);
        assert_true(file >= 0);
        snprintf(pipe, sizeof pipe, "pipe:%d", file);
        setting how = { .sampling = { .count = 16 }, .max_cached_bytes = max_cached_bytes[i] };
        read_film(pipe, &how, &chosen);
        close(file);
        assert_int_equal(chosen.num_shots, 16);
        for (size_t frame = 0; frame < chosen.num_shots; frame++)
            assert_shot(pipe, "the first", frame, frame);
    }
    check_way(pipe, WEIR_READER_INDEXED);
}

/* Reading the time of the first packet does not lose one, either. */
TEST_CASE(times_below_zero_need_one_reading)
{
    const char *path = make_clip("before_zero.webm");
    char pipe[32];
    if (!path)
        return;
    read_film(path, &(setting){ 0 }, &all);
    int file = open(path, O_RDONLY);
    assert_true(file >= 0);
    snprintf(pipe, sizeof pipe, "pipe:%d", file);
    read_film(pipe, &(setting){ 0 }, &chosen);
    close(file);
    assert_int_equal(chosen.num_shots, all.num_shots);
    for (size_t frame = 0; frame < chosen.num_shots; frame++)
        assert_shot(pipe, "all", frame, frame);
}

static void check_keys(const char *path, weir_frame_reader_way way, setting how)
{
    how.sampling = (weir_sampling){ .what = WEIR_SAMPLE_KEYFRAMES };
    if (!is_whole())
        return;
    read_film(path, &how, &chosen);
    assert_true(chosen.num_shots > 0);
    size_t frame = 0;
    for (size_t i = 0; i < chosen.num_shots; i++) {
        while (frame < all.num_shots && memcmp(&all.shots[frame], &chosen.shots[i], sizeof all.shots[frame]) != 0)
            frame++;
        if (frame++ == all.num_shots)
            fail_msg("%s: keyframe %zu is none of its frames", path, i);
    }
    check_way(path, way);
}

TEST_CASE(keyframes_are_the_same)
{
    for_all_samples(check_keys);
}

/* ---- damage -------------------------------------------------------------------------------------------------- */

/* With its middle overwritten, in place. */
static const char *make_holed(const char *from, const char *name)
{
    static uint8_t bytes[1 << 20];
    const char *path = clips_path(name);
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    size_t size_bytes = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(size_bytes, 1, sizeof bytes - 1);
    memset(bytes + size_bytes / 3, 0, size_bytes / 6);
    clips_write(path, bytes, size_bytes);
    return path;
}

/* Frames lost to damage keep their place: later frames have the same numbers as in the undamaged file. */
static void check_holed(const char *whole, const char *holed, setting how)
{
    enum { LATE = 12 }; /* the frames of the last group: the damage does not reach it */
    weir_error error = { 0 };
    how.sampling = (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 1 };
    read_film(holed, &how, &chosen);
    assert_int_equal(chosen.way, WEIR_READER_INDEXED);
    assert_true(chosen.num_errors > 0);
    assert_true(chosen.num_missing > 0);
    assert_int_equal(chosen.num_shots + chosen.num_missing, all.num_shots);
    for (size_t i = 0; i < LATE; i++) {
        int64_t index = (int64_t)(all.num_shots - LATE + i);
        how.sampling = (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = &index, .num_indices = 1 };
        if (try_read(holed, &how, &chosen, &error) != WEIR_OK || chosen.num_shots != 1)
            fail_msg("%s of %s: frame %" PRId64 " does not come", holed, whole, index);
        assert_shot(holed, "behind damage", 0, (size_t)index);
    }
}

TEST_CASE(frames_behind_damage_keep_their_numbers)
{
    static const char *const names[][2] = { { "b_frames.mp4", "b_frames_holed.mp4" },
                                            { "hevc.mp4", "hevc_holed.mp4" } };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *whole = make_clip(names[i][0]);
        if (!whole)
            continue;
        const char *holed = make_holed(whole, names[i][1]);
        read_film(whole, &(setting){ 0 }, &all);
        for (size_t j = 0; j < NUM_SETTINGS; j++)
            check_holed(whole, holed, settings[j]);
    }
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

static unsigned num_threaded;

static void expect_same_film(const char *path, const char *what, const film *with, const film *without)
{
    if (with->num_shots != without->num_shots || with->num_errors != without->num_errors ||
        with->num_missing != without->num_missing)
        fail_msg("%s: %s: %zu frames, %" PRIu64 " errors, %" PRIu64 " missing; without threads %zu, %" PRIu64
                 ", %" PRIu64,
                 path, what, with->num_shots, with->num_errors, with->num_missing, without->num_shots,
                 without->num_errors, without->num_missing);
    for (size_t i = 0; i < with->num_shots; i++)
        if (with->shots[i].hash != without->shots[i].hash || with->shots[i].pts != without->shots[i].pts)
            fail_msg("%s: %s: frame %zu is another one with threads", path, what, i);
}

/* All frames, a few at places, all by the index, and with a limit of memory that one thread just keeps. */
static void check_threads(const char *path, setting how)
{
    static film with;
    static const weir_sampling samplings[] = { { .what = WEIR_SAMPLE_ALL },
                                               { .what = WEIR_SAMPLE_EVERY, .every = 1 },
                                               { .what = WEIR_SAMPLE_UNIFORM, .count = 5 },
                                               { .what = WEIR_SAMPLE_RANDOM, .count = 3 } };
    for (size_t i = 0; i < sizeof samplings / sizeof samplings[0]; i++) {
        weir_error error = { 0 }, error_with = { 0 };
        char what[64];
        how.sampling = samplings[i];
        how.threads = 0;
        int status = try_read(path, &how, &chosen, &error);
        how.threads = (uint8_t)(2 + i % 3);
        snprintf(what, sizeof what, "sampling %zu, %u threads", i, how.threads);
        int status_with = try_read(path, &how, &with, &error_with);
        if (status != status_with || strcmp(error.message, error_with.message) != 0)
            fail_msg("%s: %s: status %d (%s), without %d (%s)", path, what, status_with, error_with.message, status,
                     error.message);
        expect_same_film(path, what, &with, &chosen);
        num_threaded++;
    }
}

TEST_CASE(threads_do_not_change_the_frames)
{
    num_threaded = 0;
    for (size_t i = 0; i < num_samples; i++)
        if (read_whole(&samples[i]))
            check_threads(samples[i].path, settings[i % NUM_SETTINGS]);
    assert_true(num_threaded > 100);
}

TEST_CASE(threads_do_not_change_what_damage_does)
{
    const char *names[][2] = { { "b_frames.mp4", "b_frames_t.mp4" },
                               { "open_group.mp4", "open_group_t.mp4" },
                               { "hevc.mp4", "hevc_t.mp4" } };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *whole = make_clip(names[i][0]);
        if (!whole)
            continue;
        const char *holed = make_holed(whole, names[i][1]);
        for (size_t j = 0; j < NUM_SETTINGS; j++)
            check_threads(holed, settings[j]);
    }
}

/* Several threads hold more frames than one: where that is over the limit, one decodes. */
TEST_CASE(threads_need_no_higher_limit_of_memory)
{
    const char *path = make_clip("b_frames.mp4");
    if (!path)
        return;
    unsigned num_tried = 0;
    for (uint64_t max_bytes = 1 << 16; max_bytes < 1 << 24; max_bytes += max_bytes / 16) {
        weir_error error = { 0 };
        setting how = { .max_decoder_bytes = max_bytes, .max_cached_bytes = 1 << 20 };
        if (try_read(path, &how, &chosen, &error) != WEIR_OK)
            continue;
        check_threads(path, how);
        if (++num_tried == 12)
            return;
    }
    assert_true(num_tried > 0);
}

/* ---- a file that stays open ----------------------------------------------------------------------------------- */

/* What weir_video_reader does, without pictures. */
typedef struct kept_file {
    weir_decoder_config limits;
    weir_input_config input;
    weir_decoder decoder;
    weir_frame_reader reader;
    weir_sampling sampling;
    const char *path;
    uint8_t *table; /* NULL = it is not used */
    size_t table_bytes;
    bool is_open;
    uint64_t num_decoded; /* frames */
    uint64_t num_openings;
} kept_file;

static void count_decoded(void *self)
{
    ((kept_file *)self)->num_decoded++;
}

static void keep_file(kept_file *file, const char *path, const setting *how)
{
    *file = (kept_file){
        .limits = { .max_pixels = INT32_MAX, .max_decoder_bytes = 1 << 30, .max_all_decoder_bytes = UINT64_MAX },
        .input = { .max_pipe_bytes = 1 << 30 },
        .path = path,
    };
    file->decoder = (weir_decoder){
        .config = &file->limits, .input.config = &file->input, .on_frame = count_decoded, .self = file
    };
    file->reader = (weir_frame_reader){
        .file = { .decoder = &file->decoder, .max_cached_bytes = how->max_cached_bytes, .far_bytes = how->far_bytes },
        .is_survey = how->is_survey,
        .max_frames = MAX_SHOTS,
        .max_duration_ns = INT64_MAX,
        .keeps_recent = how->keeps_recent,
        .stays_open = true,
    };
    if (how->uses_table)
        file->table = make_table(path, &file->table_bytes);
    assert_int_equal(weir__decoder_init(&file->decoder), WEIR_OK);
}

static int open_kept(kept_file *file, weir_error *error)
{
    file->reader.table = file->table;
    file->reader.table_bytes = file->table_bytes;
    return weir__frame_reader_open(&file->reader, file->path, error);
}

static void free_file(kept_file *file)
{
    weir__frame_reader_close(&file->reader);
    weir__decoder_free(&file->decoder);
    free(file->table);
}

static void close_kept(kept_file *file)
{
    weir__frame_reader_close(&file->reader);
    file->is_open = false;
}

/* Asks for those frames, in ascending order, and takes at most max_taken of them. */
static int take_frames(kept_file *file, const int64_t *indices, size_t num_indices, size_t max_taken, film *taken)
{
    weir_frame_reader *reader = &file->reader;
    weir_error error = { 0 };
    int rc = WEIR_OK;
    file->sampling =
        (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = (uint32_t)num_indices };
    taken->num_shots = 0;
    if (file->is_open && !weir__frame_reader_can_select(reader, &file->sampling))
        close_kept(file);
    if (!file->is_open) {
        file->num_openings++;
        rc = open_kept(file, &error);
    }
    file->is_open = true;
    reader->sampling = &file->sampling;
    if (rc == WEIR_OK)
        rc = weir__frame_reader_select(reader, 0, &error);
    while (rc == WEIR_OK && taken->num_shots < max_taken &&
           (rc = weir__frame_reader_next(reader, &error)) == WEIR_OK) {
        shot one = { .hash = hash_frame(file->decoder.frame), .pts = weir__frame_reader_pts(reader) };
        for (unsigned i = 0; i < reader->num_repeats; i++)
            taken->shots[taken->num_shots++] = one;
    }
    taken->num_errors = file->decoder.num_errors;
    taken->num_missing = reader->targets.num_missing;
    taken->was_wrong_index = reader->run.is_last_resort;
    if (rc != WEIR_OK && rc != WEIR_EOF)
        close_kept(file);
    return rc == WEIR_EOF ? WEIR_OK : rc;
}

enum { MAX_ASKED = 8 };

/* Frames in ascending order: from the one after the last that was asked for, from that one, or from anywhere. */
static size_t draw_indices(uint64_t *draw, int64_t num_frames, int64_t last, int64_t indices[MAX_ASKED])
{
    uint64_t way = weir__random_below(draw, 8);
    int64_t next = (int64_t)weir__random_below(draw, (uint64_t)num_frames);
    if (way < 5 && last + 1 < num_frames)
        next = last + 1 + (int64_t)weir__random_below(draw, way < 3 ? 2 : 9);
    else if (way == 5)
        next = last;
    uint64_t max_step = weir__random_below(draw, 3) == 0 ? 20 : 3;
    size_t num_wanted = 1 + (size_t)weir__random_below(draw, weir__random_below(draw, 2) ? 1 : MAX_ASKED);
    size_t num_indices = 0;
    next = next < num_frames ? next : num_frames - 1;
    while (num_indices < num_wanted && next < num_frames) {
        indices[num_indices++] = next;
        next += (int64_t)weir__random_below(draw, max_step);
    }
    return num_indices;
}

static uint64_t random_seed;
static unsigned num_requests;

static void check_kept(const char *path, weir_frame_reader_way way, setting how)
{
    uint64_t draw = weir__random_seed(random_seed, num_requests);
    unsigned num_here = all.num_shots > 60 ? 6 : how.max_cached_bytes ? 60 : 20;
    int64_t last = -1;
    kept_file file;
    (void)way;
    if (!is_whole())
        return;
    how.keeps_recent = weir__random_below(&draw, 2);
    keep_file(&file, path, &how);
    for (unsigned i = 0; i < num_here; i++, num_requests++) {
        if (file.is_open && how.keeps_recent && weir__random_below(&draw, 4) == 0 &&
            weir__frame_reader_can_select(&file.reader, &file.sampling)) /* as a pool does */
            weir__frame_reader_rest(&file.reader);
        int64_t indices[MAX_ASKED];
        size_t num_indices = draw_indices(&draw, (int64_t)all.num_shots, FFMAX(last, 0), indices);
        bool is_left = weir__random_below(&draw, 5) == 0; /* another request comes in its midst */
        size_t max_taken = is_left ? (size_t)weir__random_below(&draw, num_indices) : MAX_SHOTS;
        if (take_frames(&file, indices, num_indices, max_taken, &chosen) != WEIR_OK)
            fail_msg("%s: request %u fails", path, i);
        assert_true(is_left || chosen.num_shots == num_indices);
        for (size_t j = 0; j < chosen.num_shots; j++)
            assert_shot(path, "of a file that stays open", j, (size_t)indices[j]);
        assert_false(chosen.was_wrong_index);
        last = indices[is_left && max_taken ? max_taken - 1 : num_indices - 1];
    }
    if (file.num_openings > 1)
        fail_msg("%s: opened %" PRIu64 " times", path, file.num_openings);
    free_file(&file);
}

TEST_CASE(random_requests_to_a_file_that_stays_open_give_the_frames_of_the_whole)
{
    random_seed = (uint64_t)weir_clock_ns();
    num_requests = 0;
    printf("seed %" PRIu64 "\n", random_seed);
    for_all_samples(check_kept);
    printf("%u requests\n", num_requests);
    assert_true(num_requests > 1000);
}

/* Clips of 30 frames that overlap, one after the other, as those of a list: what they share is decoded once. */
TEST_CASE(clips_that_overlap_share_what_they_decode)
{
    for (size_t i = 0; i < num_samples; i++) {
        kept_file file;
        int64_t indices[30];
        if (!read_whole(&samples[i]) || !is_whole() || all.num_shots < 64 || all.num_shots > 300)
            continue;
        keep_file(&file, samples[i].path, &(setting){ .max_cached_bytes = CACHE_BYTES, .keeps_recent = true });
        for (int64_t start = 0; start <= 30; start += 10) {
            for (int64_t j = 0; j < 30; j++)
                indices[j] = start + j;
            if (file.is_open)
                weir__frame_reader_rest(&file.reader);
            assert_int_equal(take_frames(&file, indices, 30, MAX_SHOTS, &chosen), WEIR_OK);
            for (size_t j = 0; j < 30; j++)
                assert_shot(samples[i].path, "of clips that overlap", j, (size_t)indices[j]);
        }
        if (file.reader.way == WEIR_READER_INDEXED && file.num_decoded > 60 * 12 / 10)
            fail_msg("%s: %" PRIu64 " frames were decoded for 60", samples[i].path, file.num_decoded);
        free_file(&file);
    }
}

/* From the last frame to the first: what a run shows before its start is not kept, since references may be missing. */
TEST_CASE(frames_that_were_decoded_without_their_references_are_not_kept)
{
    for (size_t i = 0; i < num_samples; i++) {
        kept_file file;
        if (!read_whole(&samples[i]) || !is_whole() || all.num_shots > 120)
            continue;
        keep_file(&file, samples[i].path, &(setting){ .max_cached_bytes = CACHE_BYTES, .keeps_recent = true });
        for (int64_t frame = (int64_t)all.num_shots - 1; frame >= 0; frame--) {
            if (file.is_open && file.reader.way != WEIR_READER_INDEXED)
                break; /* it keeps nothing */
            assert_int_equal(take_frames(&file, &frame, 1, MAX_SHOTS, &chosen), WEIR_OK);
            assert_shot(samples[i].path, "backwards", 0, (size_t)frame);
        }
        free_file(&file);
    }
}

/* Frame after frame, each is decoded once; where frames are counted, they are decoded once more for that. */
static void check_ascending(const char *path, weir_frame_reader_way way, setting how)
{
    kept_file file;
    (void)way;
    if (!is_whole() || all.num_shots > 300)
        return;
    keep_file(&file, path, &how);
    for (int64_t i = 0; i < (int64_t)all.num_shots; i++) {
        assert_int_equal(take_frames(&file, &i, 1, MAX_SHOTS, &chosen), WEIR_OK);
        assert_int_equal(chosen.num_shots, 1);
        assert_shot(path, "one after the other", 0, (size_t)i);
    }
    uint64_t num_times = file.reader.way == WEIR_READER_COUNTED ? 2 : 1;
    uint64_t num_hidden = 16; /* which decoders give and the container hides */
    if (file.num_decoded > num_times * (all.num_shots + num_hidden))
        fail_msg("%s: %" PRIu64 " frames were decoded for %zu", path, file.num_decoded, all.num_shots);
    free_file(&file);
}

TEST_CASE(frames_one_after_the_other_are_decoded_once)
{
    for_all_samples(check_ascending);
}

/* Asks for that many frames, spread over the file. */
static int take_spread(kept_file *file, uint32_t count)
{
    weir_error error = { 0 };
    file->sampling = (weir_sampling){ .what = WEIR_SAMPLE_UNIFORM, .count = count };
    file->reader.sampling = &file->sampling;
    file->is_open = true;
    chosen.num_shots = 0;
    int rc = open_kept(file, &error);
    if (rc == WEIR_OK)
        rc = weir__frame_reader_select(&file->reader, 0, &error);
    while (rc == WEIR_OK && (rc = weir__frame_reader_next(&file->reader, &error)) == WEIR_OK)
        for (unsigned i = 0; i < file->reader.num_repeats; i++)
            chosen.shots[chosen.num_shots++] =
                (shot){ .hash = hash_frame(file->decoder.frame), .pts = weir__frame_reader_pts(&file->reader) };
    return rc == WEIR_EOF ? WEIR_OK : rc;
}

static void assert_spread(const char *path, uint32_t count)
{
    assert_int_equal(chosen.num_shots, count);
    for (uint32_t i = 0; i < count; i++)
        assert_shot(path, "spread", i, (2 * i + 1) * all.num_shots / (2 * (size_t)count));
}

static unsigned num_counted;

/* A file whose packets do not show how many frames there are must be decoded once to count them, and once more. */
static void check_spread(const char *path, weir_frame_reader_way way, setting how)
{
    kept_file file;
    if (!is_whole() || all.num_shots < 16)
        return;
    keep_file(&file, path, &how);
    assert_int_equal(take_spread(&file, 8), WEIR_OK);
    assert_spread(path, 8);
    bool is_shown = file.reader.file.index.num_packets == all.num_shots;
    uint64_t num_hidden = 16; /* which decoders give and the container hides */
    if (is_shown && file.num_decoded > all.num_shots + num_hidden)
        fail_msg("%s: %" PRIu64 " frames were decoded for 8 of %zu", path, file.num_decoded, all.num_shots);
    num_counted += is_shown && way == WEIR_READER_COUNTED;
    free_file(&file);
}

TEST_CASE(selecting_never_costs_more_than_decoding_all)
{
    for_all_samples(check_spread);
    assert_true(num_counted > 0);
}

/* The frames that are kept while others are counted must not take the memory that decoding needs. */
static void check_narrow(const char *path, weir_frame_reader_way way, setting how)
{
    if (!is_whole() || way != WEIR_READER_COUNTED || all.num_shots < 16)
        return;
    for (uint64_t max_bytes = 1 << 14; max_bytes < 1 << 24; max_bytes += max_bytes / 8) {
        weir_error error = { 0 };
        kept_file file;
        keep_file(&file, path, &how);
        file.limits.max_decoder_bytes = max_bytes;
        file.sampling = (weir_sampling){ 0 };
        file.reader.sampling = &file.sampling;
        file.is_open = true;
        int rc = weir__frame_reader_open(&file.reader, path, &error);
        if (rc == WEIR_OK)
            rc = weir__frame_reader_select(&file.reader, 0, &error);
        while (rc == WEIR_OK)
            rc = weir__frame_reader_next(&file.reader, &error);
        close_kept(&file);
        assert_int_equal(take_spread(&file, 8), rc == WEIR_EOF ? WEIR_OK : rc);
        if (rc == WEIR_EOF)
            assert_spread(path, 8);
        free_file(&file);
        if (rc == WEIR_EOF)
            return;
    }
}

TEST_CASE(frames_that_are_kept_give_way_to_those_being_decoded)
{
    for_all_samples(check_narrow);
}

TEST_CASE(a_frame_far_ahead_does_not_cost_those_between)
{
    const char *path = make_clip("b_frames.mp4"); /* groups of 12 */
    kept_file file;
    if (!path)
        return;
    keep_file(&file, path, &settings[FROM_MEMORY]);
    for (int64_t i = 0; i < 46; i += 45)
        assert_int_equal(take_frames(&file, &i, 1, MAX_SHOTS, &chosen), WEIR_OK);
    assert_in_range(file.num_decoded, 2, 18);
    free_file(&file);
}

TEST_CASE(after_a_step_back_frames_are_decoded_once_again)
{
    const char *path = make_clip("b_frames.mp4"); /* groups of 12 */
    kept_file file;
    if (!path)
        return;
    keep_file(&file, path, &settings[FROM_MEMORY]);
    for (int64_t i = 0; i < 12; i++)
        assert_int_equal(take_frames(&file, &i, 1, MAX_SHOTS, &chosen), WEIR_OK);
    for (int64_t i = 2; i < 40; i++)
        assert_int_equal(take_frames(&file, &i, 1, MAX_SHOTS, &chosen), WEIR_OK);
    assert_in_range(file.num_decoded, 40, 12 + 40);
    free_file(&file);
}

/* For each frame alone. */
static uint64_t count_decoded_alone(const char *path, const setting *how)
{
    uint64_t num_decoded = 0;
    for (int64_t i = 0; i < (int64_t)all.num_shots; i++) {
        kept_file file;
        keep_file(&file, path, how);
        assert_int_equal(take_frames(&file, &i, 1, MAX_SHOTS, &chosen), WEIR_OK);
        assert_shot(path, "alone", 0, (size_t)i);
        assert_false(chosen.was_wrong_index);
        num_decoded += file.num_decoded;
        free_file(&file);
    }
    return num_decoded;
}

TEST_CASE(what_of_av1_is_not_needed_is_not_decoded_wherever_its_packets_come_from)
{
    const char *path = make_clip("av1_svt.mp4"); /* groups of 30 */
    if (!path)
        return;
    read_film(path, &(setting){ 0 }, &all);
    uint64_t num_decoded = count_decoded_alone(path, &settings[FROM_MEMORY]);
    assert_int_equal(count_decoded_alone(path, &settings[BY_TABLE]), num_decoded);
    assert_true(count_decoded_alone(path, &settings[BY_READING]) > 3 * num_decoded); /* there is no room for a run */
}

/* Reading a run at once ends where reading its packets one by one does. */
TEST_CASE(a_file_that_is_shorter_than_its_table_says_gives_the_same_with_and_without_room_for_a_run)
{
    static film one_by_one;
    const char *whole = make_clip("av1.mkv");
    unsigned num_failed = 0;
    if (!whole)
        return;
    read_film(whole, &(setting){ 0 }, &all);
    const char *cut = clips_cut(whole, "av1_cut.mkv", 20000);
    for (int64_t i = 0; i < (int64_t)all.num_shots; i++) {
        weir_error error = { 0 };
        setting how = settings[BY_TABLE];
        const int64_t indices[] = { i - i % 8, i }; /* groups of 8 */
        how.table_path = whole;
        how.sampling = (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 2 };
        int rc = try_read(cut, &how, &chosen, &error);
        how.max_cached_bytes = 0;
        assert_int_equal(try_read(cut, &how, &one_by_one, &error), rc);
        assert_int_equal(chosen.num_errors, one_by_one.num_errors);
        expect_same_film(cut, "held", &chosen, &one_by_one);
        num_failed += rc != WEIR_OK;
    }
    assert_in_range(num_failed, 1, all.num_shots - 1);
}

/* Packets that a request does not need must not change its result. */
TEST_CASE(damage_behind_the_frames_of_a_request_does_not_show_in_it)
{
    const char *whole = make_clip("b_frames.mp4");
    weir_error error = { 0 };
    static film anew;
    if (!whole)
        return;
    const char *holed = make_holed(whole, "b_frames_behind.mp4");
    read_film(whole, &(setting){ 0 }, &all);
    for (size_t j = 0; j < NUM_SETTINGS; j++) {
        kept_file file;
        keep_file(&file, holed, &settings[j]);
        for (int64_t i = 0; i < (int64_t)all.num_shots; i++) {
            setting how = settings[j];
            how.sampling = (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = &i, .num_indices = 1 };
            assert_int_equal(try_read(holed, &how, &anew, &error), WEIR_OK);
            assert_int_equal(take_frames(&file, &i, 1, MAX_SHOTS, &chosen), WEIR_OK);
            if (chosen.num_shots != anew.num_shots || chosen.num_errors != anew.num_errors ||
                chosen.num_missing != anew.num_missing ||
                (anew.num_shots && chosen.shots[0].hash != anew.shots[0].hash))
                fail_msg("frame %" PRId64 ": %" PRIu64 " errors, not %" PRIu64, i, chosen.num_errors,
                         anew.num_errors);
        }
        free_file(&file);
    }
}

TEST_MAIN(NULL, NULL, make_samples, free_samples)
