/*
 * Groups of pictures on several threads: whatever the file and the number of threads, the results are those of one
 * thread, byte by byte, with their times, counts and errors. The dimensions held constant: small pictures, and groups
 * of a few frames, because a pool is only used for a file of many groups.
 */
#include "tests/test_case.h"

#include <glob.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/reader/group_cut.h"
#include "stages/reader/picture_reader.h"
#include "stages/reader/remote_reader.h"
#include "stages/reader/video_config.h"
#include "tests/clips.h"

enum { MAX_CHUNKS = 512, CHUNK_FRAMES = 7 };

/* How a file is read. */
typedef struct setting {
    uint8_t threads;
    uint32_t chunk_frames; /* 0 = one result */
    weir_picture_config picture;
    weir_damage damage;
    uint64_t max_decoder_bytes;
    uint64_t stop_after; /* stop after this number of questions whether to stop, counted from the begin of the
                            request; 0 = never */
} setting;

typedef struct outcome {
    weir_frames *chunks[MAX_CHUNKS];
    size_t num_chunks;
    int status; /* WEIR_OK: the last chunk was given */
    weir_error error;
    bool had_pool;  /* at the start */
    bool kept_pool; /* at the last chunk */
    bool is_left_out;
    uint64_t num_decoded;
} outcome;

typedef struct opened {
    weir_video_config config;
    weir_picture_reader reader;
    const char *path;
    uint64_t num_questions, stop_after;
    uint64_t num_decoded, num_bytes;
} opened;

static bool should_stop(void *self)
{
    opened *file = self;
    return file->stop_after && ++file->num_questions > file->stop_after;
}

static void count_frame(void *self)
{
    opened *file = self;
    file->num_decoded++;
    file->num_bytes = weir__picture_reader_bytes(&file->reader); /* as stages do */
}

static void prepare_file(opened *file, const char *path, const setting *how)
{
    const weir_decoder_config decoder = { .threads = how->threads, .max_decoder_bytes = how->max_decoder_bytes };
    const weir_video_config config = { .decoder = &decoder,
                                       .decoder_size = sizeof decoder,
                                       .picture = &how->picture,
                                       .picture_size = sizeof how->picture,
                                       .damage = how->damage };
    *file = (opened){ .path = path };
    assert_int_equal(weir__video_reader_config(&file->config, &config, sizeof config, NULL), WEIR_OK);
    assert_int_equal(weir__picture_reader_init(&file->reader, &file->config, should_stop, count_frame, file),
                     WEIR_OK);
    file->reader.decoder.input.is_read_again = true;
}

static int ask_for_all(opened *file, uint32_t chunk_frames, weir_error *error)
{
    const weir_picture_request wanted = { .sampling = &file->config.sampling,
                                          .picture = file->config.picture,
                                          .chunk_frames = chunk_frames };
    int rc = weir__picture_reader_open(&file->reader, file->path, error);
    return rc == WEIR_OK ? weir__picture_reader_ask(&file->reader, &wanted, error) : rc;
}

static void free_file(opened *file)
{
    weir__picture_reader_free(&file->reader);
    weir__video_config_free(&file->config);
}

static weir_group_pool *pool_of(const opened *file)
{
    return file->reader.frames.counter.pool;
}

static void take_chunks(opened *file, outcome *taken)
{
    int rc = WEIR_MORE;
    while (rc == WEIR_MORE) {
        assert_in_range(taken->num_chunks, 0, MAX_CHUNKS - 1);
        taken->kept_pool = pool_of(file) != NULL;
        rc = weir__picture_reader_chunk(&file->reader, &taken->chunks[taken->num_chunks], &taken->error);
        taken->num_chunks += rc == WEIR_MORE || rc == WEIR_OK;
    }
    taken->status = rc;
}

/* FFmpeg's own threads are not compiled for ThreadSanitizer, which would report them. */
static bool may_decode(const setting *how, bool has_pool)
{
#ifdef SANITIZED_THREADS
    return has_pool || how->threads <= 1;
#else
    (void)how;
    (void)has_pool;
    return true;
#endif
}

static void read_file(const char *path, const setting *how, outcome *taken)
{
    opened file;
    *taken = (outcome){ 0 };
    prepare_file(&file, path, how);
    weir__picture_reader_enter(&file.reader, path, path);
    taken->status = ask_for_all(&file, how->chunk_frames, &taken->error);
    taken->had_pool = pool_of(&file) != NULL;
    file.stop_after = how->stop_after;
    file.num_questions = 0;
    taken->is_left_out = !may_decode(how, taken->had_pool);
    if (taken->status == WEIR_OK && !taken->is_left_out)
        take_chunks(&file, taken);
    taken->num_decoded = file.num_decoded;
    weir__picture_reader_leave(&file.reader);
    free_file(&file);
}

static void free_outcome(outcome *taken)
{
    for (size_t i = 0; i < taken->num_chunks; i++)
        weir_frames_free(taken->chunks[i]);
}

/* ---- comparison ------------------------------------------------------------------------------------------------ */

static void expect_number(const char *what, const char *name, uint64_t is, uint64_t should)
{
    if (is != should)
        fail_msg("%s: %s is %" PRIu64 ", with one thread %" PRIu64, what, name, is, should);
}

static void expect_same_chunk(const char *what, const weir_frames *is, const weir_frames *should)
{
#define SAME(field) expect_number(what, #field, (uint64_t)is->field, (uint64_t)should->field)
    SAME(num_frames), SAME(height), SAME(width), SAME(frame_bytes), SAME(scaler), SAME(matrix), SAME(full_range);
    SAME(time_base_num), SAME(time_base_den), SAME(source_width), SAME(source_height), SAME(num_errors);
    SAME(num_corrupt_frames), SAME(num_missing_frames), SAME(first_frame), SAME(is_last_chunk);
    SAME(cost.num_frames), SAME(cost.num_errors), SAME(cost.num_missing);
#undef SAME
    for (uint32_t i = 0; i < is->num_frames; i++) {
        expect_number(what, "a pts", (uint64_t)is->pts[i], (uint64_t)should->pts[i]);
        expect_number(what, "a time", (uint64_t)is->times_ns[i], (uint64_t)should->times_ns[i]);
        expect_number(what, "a mask", is->mask[i], should->mask[i]);
        if (memcmp(is->data + i * is->frame_bytes, should->data + i * is->frame_bytes, is->frame_bytes) != 0)
            fail_msg("%s: frame %" PRIu64 " has other pixels", what, is->first_frame + i);
    }
}

static void expect_same(const char *what, const outcome *is, const outcome *should)
{
    if (is->status != should->status || strcmp(is->error.message, should->error.message) != 0 ||
        is->error.library_code != should->error.library_code)
        fail_msg("%s: status %d (%s), with one thread %d (%s)", what, is->status, is->error.message, should->status,
                 should->error.message);
    expect_number(what, "the number of chunks", is->num_chunks, should->num_chunks);
    for (size_t i = 0; i < is->num_chunks; i++)
        expect_same_chunk(what, is->chunks[i], should->chunks[i]);
}

static unsigned num_pools;       /* that were used */
static unsigned num_whole_pools; /* to the end */

static void check_setting(const char *path, setting how)
{
    static outcome one, several;
#ifdef SANITIZED
    static const uint8_t threads[] = { 3 };
#else
    static const uint8_t threads[] = { 2, 3, 5 };
#endif
    char what[512];
    how.threads = 1;
    read_file(path, &how, &one);
    assert_false(one.had_pool);
    for (size_t i = 0; i < sizeof threads; i++) {
        how.threads = threads[i];
        snprintf(what, sizeof what, "%s with %u threads, chunks of %u", path, how.threads, how.chunk_frames);
        read_file(path, &how, &several);
        if (!several.is_left_out)
            expect_same(what, &several, &one);
        num_pools += several.had_pool;
        num_whole_pools += several.kept_pool && how.chunk_frames > 0;
        free_outcome(&several);
    }
    free_outcome(&one);
}

/* Several sizes, layouts, chunks and rules. */
static void check_file(const char *path)
{
    if (!path)
        return;
    check_setting(path, (setting){ .picture = { .width = 32, .height = 32 }, .chunk_frames = CHUNK_FRAMES });
    check_setting(path, (setting){ .picture = { .layout = WEIR_LAYOUT_NCHW, .scaler = WEIR_SCALER_EXACT } });
#ifndef SANITIZED
    check_setting(path, (setting){ .picture = { .width = 48 } });
    check_setting(path, (setting){ .picture = { .pixel = WEIR_PIXEL_YUV420P }, .chunk_frames = 1 });
    check_setting(path, (setting){ .damage = WEIR_DAMAGE_STRICT, .chunk_frames = CHUNK_FRAMES });
#endif
}

/* ---- clips ----------------------------------------------------------------------------------------------------- */

#define SOURCE "-f lavfi -i testsrc2=s=112x80:d=4:r=30,noise=alls=12:allf=t "
#define X264   "-c:v libx264 -preset veryfast -pix_fmt yuv420p "
#define X265   "-c:v libx265 -preset ultrafast -pix_fmt yuv420p "

typedef struct clip {
    const char *name;
    const char *arguments;
    bool has_pool; /* its groups are decoded apart to the end */
} clip;

static const clip clips[] = {
    { "b_frames.mp4", SOURCE X264 "-bf 3 -g 5", true },
    { "pyramid.mkv", SOURCE X264 "-bf 3 -g 6 -x264-params b-pyramid=normal:ref=4:slices=3", true },
    { "baseline.mp4", SOURCE X264 "-profile:v baseline -g 4", true },
    { "intra.mp4", SOURCE X264 "-g 1", true },
    { "stream.ts", SOURCE X264 "-bf 3 -g 5", true },
    { "fragments.mp4", SOURCE X264 "-bf 2 -g 5 -movflags frag_keyframe+empty_moov", true },
    { "interlaced.mp4", SOURCE X264 "-bf 2 -g 5 -flags +ildct+ilme -x264-params interlaced=1", true },
    { "deep.mkv", SOURCE "-c:v libx264 -preset veryfast -bf 3 -g 5 -pix_fmt yuv420p10", true },
    { "variable_rate.mp4", SOURCE X264 "-bf 3 -g 4 -vf 'select=not(mod(n\\,7))+gt(mod(n\\,5)\\,1)' -fps_mode vfr",
      true },
    { "late.mkv", SOURCE X264 "-bf 3 -g 5 -output_ts_offset 3.7", true },
    { "negative.mkv", SOURCE X264 "-bf 3 -g 5 -output_ts_offset -0.7 -avoid_negative_ts disabled", false },
    { "no_cues.mkv", SOURCE X264 "-bf 3 -g 5 -f matroska -live 1", true },
    { "h264.avi", SOURCE X264 "-bf 2 -g 5", false },
    { "open_group.mp4", SOURCE X264 "-bf 3 -g 5 -x264-params open-gop=1:scenecut=0", false },
    { "open_group.ts", SOURCE X264 "-bf 3 -g 5 -x264-params open-gop=1", false },
    { "intra_refresh.mp4", SOURCE X264 "-bf 0 -g 5 -x264-params intra-refresh=1", false },
    { "one_group.mp4", SOURCE X264 "-bf 3 -g 600", false },
    { "hevc_open.mp4", SOURCE X265 "-x265-params keyint=5:bframes=3:log-level=1", false },
    { "hevc_closed.mp4", SOURCE X265 "-x265-params keyint=5:bframes=3:open-gop=0:log-level=1", true },
    { "hevc_closed.ts", SOURCE X265 "-x265-params keyint=5:open-gop=0:repeat-headers=1:log-level=1", true },
    { "hevc_radl.mkv", SOURCE X265 "-x265-params keyint=6:bframes=4:open-gop=0:radl=2:log-level=1", true },
    { "vp8_hidden.webm",
      SOURCE "-c:v libvpx -deadline good -cpu-used 5 -auto-alt-ref 1 -lag-in-frames 8 -g 5 -b:v 300k "
             "-pix_fmt yuv420p",
      true },
    { "vp9_hidden.webm",
      SOURCE "-c:v libvpx-vp9 -deadline good -cpu-used 5 -auto-alt-ref 1 -lag-in-frames 8 -g 5 "
             "-b:v 300k -pix_fmt yuv420p",
      true },
    { "av1.mkv", SOURCE "-c:v libaom-av1 -cpu-used 8 -usage realtime -g 5 -pix_fmt yuv420p", true },
    { "av1_hidden.mp4",
      "-f lavfi -i testsrc2=s=112x80:d=2:r=30 -c:v libaom-av1 -cpu-used 8 -lag-in-frames 12 "
      "-auto-alt-ref 1 -g 3 -pix_fmt yuv420p",
      false },
    { "av1_svt.mp4", SOURCE "-c:v libsvtav1 -preset 10 -g 5 -svtav1-params film-grain=20 -pix_fmt yuv420p", false },
    { "mpeg2_closed.ts", SOURCE "-c:v mpeg2video -bf 2 -g 5 -flags +cgop -sc_threshold 1000000000", true },
    { "mpeg2_open.mpg", SOURCE "-c:v mpeg2video -bf 2 -g 5", false },
    { "mpeg4.mp4", SOURCE "-c:v mpeg4 -bf 2 -g 5", false },
    { "mpeg4.avi", SOURCE "-c:v mpeg4 -bf 2 -g 5", false },
    { "mjpeg.avi", SOURCE "-c:v mjpeg -pix_fmt yuvj420p", false },
    { "mjpeg.mkv", SOURCE "-c:v mjpeg -pix_fmt yuvj420p", true },
    { "raw.y4m", SOURCE "-pix_fmt yuv420p", true },
    { "flash.flv", SOURCE "-c:v flv -g 5", false },
};

enum { NUM_CLIPS = sizeof clips / sizeof clips[0] };

static const char *make_clip(const char *name)
{
    for (size_t i = 0; i < NUM_CLIPS; i++)
        if (strcmp(clips[i].name, name) == 0)
            return clips_make(name, clips[i].arguments);
    fail_msg("no clip %s", name);
    return NULL;
}

TEST_CASE(threads_give_the_frames_of_one_thread)
{
    for (size_t i = 0; i < NUM_CLIPS; i++) {
        num_pools = num_whole_pools = 0;
        const char *path = make_clip(clips[i].name);
        check_file(path);
        if (path && clips[i].has_pool && num_whole_pools == 0)
            fail_msg("%s: its groups are not decoded apart", path);
    }
}

/* What they begin with is decoded and not shown, or refers to packets that are missing. */
TEST_CASE(copies_out_of_files_are_the_same)
{
    static const char *const names[][2] = {
        { "edit.mp4", "b_frames.mp4" },       { "edit_open.mp4", "open_group.mp4" },
        { "edit_hevc.mp4", "hevc_open.mp4" }, { "edit_av1.mp4", "av1_hidden.mp4" },
        { "edit.mov", "hevc_closed.mp4" },    { "edit_mjpeg.mov", "mjpeg.mkv" }
    };
    char arguments[4096];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *whole = make_clip(names[i][1]);
        snprintf(arguments, sizeof arguments, "-ss 0.12 -i '%s' -c copy", whole ? whole : "");
        check_file(whole ? clips_make(names[i][0], arguments) : NULL);
    }
}

TEST_CASE(turned_pictures_are_the_same)
{
    const char *whole = make_clip("b_frames.mp4");
    num_pools = 0;
    check_file(whole ? clips_rotate(whole, "turned.mp4", (clips_matrix){ 0, 1, -1, 0 }) : NULL);
    assert_true(!whole || num_pools > 0);
}

/* Another size and other parameter sets in the middle, and a clock that begins again. */
TEST_CASE(joined_files_are_the_same)
{
    static char command[8192];
    const char *other = clips_make("other.ts", "-f lavfi -i testsrc2=s=160x96:d=3:r=25 " X264
                                               "-bf 2 -g 4 -x264-params cabac=0:ref=2");
    const char *first = make_clip("stream.ts");
    if (!first || !other)
        return;
    num_pools = 0;
    snprintf(command, sizeof command, "cat '%s' '%s' '%s' > '%s'", first, other, first, clips_path("joined.ts"));
    assert_int_equal(system(command), 0); /* NOLINT: the test's own paths */
    check_file(clips_path("joined.ts"));
    assert_true(num_pools > 0);
}

/* FFmpeg's decoder of MPEG-2 drops the picture that it holds when the shape of pixels changes. */
TEST_CASE(a_change_of_the_aspect_ratio_gives_the_frames_of_one_thread)
{
    static char arguments[8192];
    const char *narrow = clips_make("narrow.ts", SOURCE "-c:v mpeg2video -bf 2 -g 5 -flags +cgop -sc_threshold "
                                                        "1000000000 -aspect 4:3");
    const char *wide = clips_make("wide.ts", SOURCE "-c:v mpeg2video -bf 2 -g 5 -flags +cgop -sc_threshold "
                                                    "1000000000 -aspect 16:9");
    if (!narrow || !wide)
        return;
    num_pools = 0;
    snprintf(arguments, sizeof arguments, "file %s\nfile %s\n", narrow, wide);
    clips_write_text(clips_path("list.txt"), arguments);
    snprintf(arguments, sizeof arguments, "-f concat -safe 0 -i '%s' -c copy", clips_path("list.txt"));
    check_file(clips_make("both.mkv", arguments));
    assert_true(num_pools > 0);
}

/* ---- damage ---------------------------------------------------------------------------------------------------- */

static uint8_t *load_file(const char *path, size_t *num_bytes)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *num_bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*num_bytes);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *num_bytes, file), *num_bytes);
    fclose(file);
    return bytes;
}

static void check_damaged_file(const char *path)
{
    check_setting(path, (setting){ .picture = { .width = 32, .height = 32 }, .chunk_frames = CHUNK_FRAMES });
    check_setting(path, (setting){ .picture = { .width = 48 }, .damage = WEIR_DAMAGE_STRICT, .chunk_frames = 1 });
}

/* A hole at each of some places; and cut off there. */
static void check_damaged(const char *whole, const char *name)
{
    enum { PLACES = 4, HOLE_BYTES = 300 };
    size_t num_bytes;
    uint8_t *bytes = load_file(whole, &num_bytes);
    for (size_t i = 1; i <= PLACES; i++) {
        char damaged[128];
        size_t at = num_bytes * i / (PLACES + 1);
        uint8_t kept[HOLE_BYTES];
        memcpy(kept, bytes + at, sizeof kept);
        memset(bytes + at, i % 2 ? 0 : 0xa5, sizeof kept);
        snprintf(damaged, sizeof damaged, "holed_%zu_%s", i, name);
        clips_write(clips_path(damaged), bytes, num_bytes);
        memcpy(bytes + at, kept, sizeof kept);
        check_damaged_file(clips_path(damaged));
        snprintf(damaged, sizeof damaged, "cut_%zu_%s", i, name);
        check_damaged_file(clips_cut(whole, damaged, at));
    }
    free(bytes);
}

TEST_CASE(damage_is_that_of_one_thread)
{
    static const char *const names[] = { "b_frames.mp4", "stream.ts",       "pyramid.mkv", "hevc_closed.mp4",
                                         "av1.mkv",      "vp9_hidden.webm", "mjpeg.mkv",   "mpeg2_closed.ts" };
    num_pools = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *whole = make_clip(names[i]);
        if (whole)
            check_damaged(whole, names[i]);
    }
    assert_true(num_pools > 0);
}

/* Where in the file is the middle of the keyframe of that number? */
static size_t middle_of_keyframe(const char *path, unsigned number)
{
    AVFormatContext *format = NULL;
    AVPacket *packet = av_packet_alloc();
    assert_non_null(packet);
    assert_int_equal(avformat_open_input(&format, path, NULL, NULL), 0);
    int64_t place = -1;
    while (place < 0 && av_read_frame(format, packet) >= 0) {
        if ((packet->flags & AV_PKT_FLAG_KEY) && number-- == 0)
            place = packet->pos + packet->size / 2;
        av_packet_unref(packet);
    }
    av_packet_free(&packet);
    avformat_close_input(&format);
    assert_true(place >= 0);
    return (size_t)place;
}

static atomic_bool is_spinning;

static void *spin(void *opaque)
{
    while (atomic_load(&is_spinning))
        continue;
    return opaque;
}

/*
 * One decoder gives the last frames of a group while it decodes the packets behind it. It does not give them if these
 * are damaged, so the threads may not, either, however late the damage is found: here on a busy machine.
 */
TEST_CASE(damage_in_the_first_packet_of_a_group_takes_the_frames_before)
{
#ifdef SANITIZED /* which look for something else than the right moment, and are slow */
    enum { TIMES = 4 };
#else
    enum { TIMES = 40 };
#endif
    enum { NUMBER = 4, HOLE_BYTES = 300, SPINNING = 4 };
    pthread_t spinning[SPINNING];
    size_t num_bytes;
    const char *whole = make_clip("pyramid.mkv"), *damaged = clips_path("holed_keyframe.mkv");
    if (!whole)
        return;
    uint8_t *bytes = load_file(whole, &num_bytes);
    memset(bytes + middle_of_keyframe(whole, NUMBER), 0, HOLE_BYTES);
    clips_write(damaged, bytes, num_bytes);
    free(bytes);
    atomic_store(&is_spinning, true);
    for (size_t i = 0; i < SPINNING; i++)
        assert_int_equal(pthread_create(&spinning[i], NULL, spin, NULL), 0);
    for (unsigned time = 0; time < TIMES; time++)
        check_setting(damaged, (setting){ .picture = { .width = 32, .height = 32 }, .chunk_frames = CHUNK_FRAMES });
    atomic_store(&is_spinning, false);
    for (size_t i = 0; i < SPINNING; i++)
        pthread_join(spinning[i], NULL);
}

TEST_CASE(real_files_are_the_same)
{
    char pattern[4096];
    glob_t real;
    const char *media = clips_media();
    if (!media)
        return;
    snprintf(pattern, sizeof pattern, "%s/*/*.{mp4,mkv,avi,mov}", media);
    assert_int_equal(glob(pattern, GLOB_BRACE, NULL, &real), 0);
    for (size_t i = 0; i < real.gl_pathc; i++)
        check_setting(real.gl_pathv[i], (setting){ .picture = { .width = 64 }, .chunk_frames = 40 });
    globfree(&real);
}

/* ---- cuts ------------------------------------------------------------------------------------------------------ */

/* Annex B: a picture, alone or with its parameter sets. */
static const uint8_t bare_idr[] = { 0, 0, 1, 0x65, 0x88, 0x80 };
static const uint8_t idr_with_sets[] = { 0, 0, 1, 0x67, 1, 2, 0, 0, 1, 0x68, 3, 4, 0, 0, 1, 0x65, 0x88, 0x80 };
static const uint8_t idr_with_one_set[] = { 0, 0, 1, 0x68, 3, 4, 0, 0, 1, 0x65, 0x88, 0x80 };
static const uint8_t predicted[] = { 0, 0, 1, 0x41, 0x9a, 0x80 };

static bool is_cut(weir_group_cut *cut, const uint8_t *bytes, size_t num_bytes, int64_t pts)
{
    const AVCodecParameters codec = { .codec_id = AV_CODEC_ID_H264 };
    const AVPacket packet = { .data = (uint8_t *)(uintptr_t)bytes, .size = (int)num_bytes, .pts = pts };
    return weir__group_cut_add(cut, &codec, &packet);
}

#define IS_CUT(cut, bytes, pts) is_cut(cut, bytes, sizeof(bytes), pts)

TEST_CASE(a_group_begins_with_a_picture_that_is_shown_after_all_before_it)
{
    weir_group_cut cut = { 0 };
    assert_false(IS_CUT(&cut, bare_idr, 0)); /* the first packet is not a cut */
    assert_false(IS_CUT(&cut, predicted, 3));
    assert_false(IS_CUT(&cut, bare_idr, 2));
    assert_true(IS_CUT(&cut, bare_idr, 4));
    assert_false(IS_CUT(&cut, predicted, 5));
    assert_false(cut.is_wrong);
    assert_false(IS_CUT(&cut, predicted, 3));
    assert_true(cut.is_wrong);
}

TEST_CASE(a_group_brings_the_parameter_sets_that_the_stream_has)
{
    weir_group_cut cut = { 0 };
    assert_false(IS_CUT(&cut, idr_with_sets, 0));
    assert_false(IS_CUT(&cut, bare_idr, 1));
    assert_false(IS_CUT(&cut, idr_with_one_set, 2));
    assert_true(IS_CUT(&cut, idr_with_sets, 3));
}

TEST_CASE(without_a_time_there_is_no_cut_any_more)
{
    weir_group_cut cut = { 0 };
    assert_false(IS_CUT(&cut, bare_idr, 0));
    assert_false(IS_CUT(&cut, predicted, AV_NOPTS_VALUE));
    assert_false(IS_CUT(&cut, bare_idr, 2));
    assert_true(cut.is_over);
}

/* ---- stop, memory, limits -------------------------------------------------------------------------------------- */

/*
 * Stops at many places, until a place is behind the end. What was given before is right; the next request is, too.
 * How often the threads are asked depends on the load.
 */
TEST_CASE(stopped_in_the_middle_it_gives_right_frames_and_begins_anew)
{
    enum { STEP = 23 };
    static outcome whole, stopped;
    const char *path = make_clip("b_frames.mp4");
    if (!path)
        return;
    setting how = { .threads = 1, .picture = { .width = 32 }, .chunk_frames = CHUNK_FRAMES };
    read_file(path, &how, &whole);
    assert_int_equal(whole.status, WEIR_OK);
    unsigned num_stopped = 0;
    stopped.status = WEIR_ESTOPPED;
    for (how.stop_after = 1; stopped.status == WEIR_ESTOPPED; how.stop_after += STEP) {
        how.threads = (uint8_t)(2 + how.stop_after % 3);
        read_file(path, &how, &stopped);
        num_stopped += stopped.status == WEIR_ESTOPPED && stopped.num_chunks > 0;
        if (stopped.status != WEIR_OK && stopped.status != WEIR_ESTOPPED)
            fail_msg("stopped after %" PRIu64 " questions: %s", how.stop_after, stopped.error.message);
        for (size_t i = 0; i < stopped.num_chunks; i++)
            expect_same_chunk("before the stop", stopped.chunks[i], whole.chunks[i]);
        free_outcome(&stopped);
    }
    assert_true(num_stopped > 0);
    free_outcome(&whole);
}

static void expect_chunk(opened *file, const outcome *whole, size_t i, bool is_last)
{
    weir_frames *chunk;
    assert_int_equal(weir__picture_reader_chunk(&file->reader, &chunk, NULL), is_last ? WEIR_OK : WEIR_MORE);
    expect_same_chunk("a chunk", chunk, whole->chunks[i]);
    weir_frames_free(chunk);
}

/* A request that was left in the middle, and one that was stopped, leave nothing behind in the reader. */
TEST_CASE(a_request_after_another_one_is_right)
{
    static outcome whole;
    opened file;
    const char *path = make_clip("b_frames.mp4");
    if (!path)
        return;
    const setting how = { .threads = 2, .picture = { .width = 32 }, .chunk_frames = CHUNK_FRAMES };
    read_file(path, &how, &whole);
    prepare_file(&file, path, &how);
    weir__picture_reader_enter(&file.reader, path, path);
    for (size_t round = 0; round < 3; round++) {
        size_t num_taken = round == 2 ? whole.num_chunks : 3 + round;
        assert_int_equal(ask_for_all(&file, CHUNK_FRAMES, NULL), WEIR_OK);
        assert_non_null(pool_of(&file));
        for (size_t i = 0; i < num_taken; i++)
            expect_chunk(&file, &whole, i, i + 1 == whole.num_chunks);
        if (round == 1) {
            weir_frames *chunk;
            file.stop_after = file.num_questions = 1;
            assert_int_equal(weir__picture_reader_chunk(&file.reader, &chunk, NULL), WEIR_ESTOPPED);
            file.stop_after = 0;
        }
        weir__picture_reader_close(&file.reader);
    }
    assert_null(pool_of(&file));
    weir__picture_reader_leave(&file.reader);
    free_file(&file);
    free_outcome(&whole);
}

/* While nobody takes pictures, the threads fill their limit, and then wait. */
TEST_CASE(pictures_that_wait_stay_within_their_limit)
{
    enum { GROUP = 5, THREADS = 3, PICTURE_BYTES = 112 * 80 * 3 };
    static outcome whole;
    opened file;
    const char *path = make_clip("b_frames.mp4");
    if (!path)
        return;
    setting how = { .threads = 1, .chunk_frames = CHUNK_FRAMES };
    read_file(path, &how, &whole);
    how.threads = THREADS;
    how.max_decoder_bytes = 4 * PICTURE_BYTES * (GROUP + 1) * (THREADS - 1);
    prepare_file(&file, path, &how);
    weir__picture_reader_enter(&file.reader, path, path);
    assert_int_equal(ask_for_all(&file, CHUNK_FRAMES, NULL), WEIR_OK);
    weir_group_pool *pool = pool_of(&file);
    assert_non_null(pool);
    uint64_t max_bytes = weir__group_pool_max_bytes(pool);
    assert_in_range(max_bytes, 1, 119 * PICTURE_BYTES);
    for (size_t i = 0; i < whole.num_chunks; i++) {
        expect_chunk(&file, &whole, i, i + 1 == whole.num_chunks);
        if (i + 1 == whole.num_chunks)
            break;
        assert_ptr_equal(pool_of(&file), pool); /* not doubtful */
        while (i == 0 && weir__group_pool_bytes(pool) + PICTURE_BYTES <= max_bytes)
            sched_yield();
        if (i == 0)
            assert_true(weir__picture_reader_bytes(&file.reader) + PICTURE_BYTES > max_bytes);
        assert_in_range(weir__group_pool_peak_bytes(pool), 1, max_bytes + PICTURE_BYTES);
    }
    weir__picture_reader_leave(&file.reader);
    free_file(&file);
    free_outcome(&whole);
}

/* Decoders that need more memory together than one does: one decodes. */
TEST_CASE(threads_need_no_higher_limit)
{
    const char *path = make_clip("b_frames.mp4");
    if (!path)
        return;
    num_pools = 0;
    for (uint64_t max_bytes = 1 << 17; max_bytes < 1 << 22; max_bytes += max_bytes / 4)
        check_setting(path, (setting){ .picture = { .width = 8, .height = 8 }, .max_decoder_bytes = max_bytes });
    assert_true(num_pools > 0);
}

/* Work is reported on the caller's thread, once for each frame. */
TEST_CASE(each_frame_is_told_of_once)
{
    static outcome taken;
    const char *path = make_clip("b_frames.mp4");
    if (!path)
        return;
    read_file(path, &(setting){ .threads = 3, .picture = { .width = 32 } }, &taken);
    assert_true(taken.had_pool);
    assert_int_equal(taken.num_decoded, taken.chunks[0]->num_frames);
    free_outcome(&taken);
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
