/*
 * One clock for every way to ask. All ways give the same frames, byte by byte, with the same times. They are all
 * frames at once, frames asked one by one in any order, every first one, one list of all, and chunks. The probe
 * counts as many. The referee is the ffmpeg program: its frames and times with -fps_mode passthrough, and its
 * setpts=PTS-STARTPTS,fps=N for rates, also within windows.
 *
 *     WEIR_CLOCK_CASES=N    how many clips (default: DEFAULT_CASES)
 *     WEIR_CLOCK_SECONDS=N  ends earlier, after that time (default: never)
 *     WEIR_CLOCK_SEED=N     which (default: 1)
 *     WEIR_CLOCK_CASE=N     only this one
 *     WEIR_CLOCK_FILES=...  these files instead, separated by spaces
 *
 * A clip is drawn from container × codec × B-frames × frame rate × timescale × variable rate × edit list × join × cut. Rates
 * are such that a frame lasts less than one tick, one, two and many.
 *
 * Left out: joins of files whose frames last less than a tick. Where times repeat, FFmpeg's decoders choose between
 * times of showing and of decoding by which are wrong more often. The ffmpeg program makes up missing times of
 * decoding. For the same reason: cuts of open groups, whose first frames need ones that are not there. Cuts of
 * MPEG-TS with a variable rate: the first times of decoding may be more than 0.1 s before the first time of showing.
 * Then the ffmpeg program closes gaps between them, unless it is asked to copy the times.
 *
 * Constant here: one size, 8-bit 4:2:0, one video stream without sound, no damage but a missing end. A clip in which
 * a packet is damaged is left out, as weir/video.h has a rule of its own for those.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test_case.h"

#include <libavformat/avformat.h>

#include <weir/clock.h>
#include <weir/engine.h>
#include <weir/files.h>
#include <weir/probe.h>
#include <weir/video.h>

#include "common/random.h"
#include "tests/clips.h"
#include "tests/result.h"

#ifdef SANITIZED
enum { DEFAULT_CASES = 4 };
#else
enum { DEFAULT_CASES = 10 };
#endif

enum { MAX_FRAMES = 4096, PATH_BYTES = 1024, ARGUMENT_BYTES = 4096, COMMAND_BYTES = 8192, TEXT_BYTES = 512 };

/* ---- clips --------------------------------------------------------------------------------------------------- */

typedef struct container {
    const char *extension;
    const char *codecs;         /* "h264 hevc …" */
    const char *rates;          /* besides those of all */
    const char *const *options; /* ends with NULL; NULL = none */
} container;

static const char *const timescales[] = { "",
                                          "-video_track_timescale 1000",
                                          "-video_track_timescale 90000",
                                          "-video_track_timescale 600",
                                          "-movflags frag_keyframe+empty_moov",
                                          NULL };

static const container containers[] = {
    { "mp4", "h264 hevc vp9 av1 mpeg4 mjpeg", "120 60000/1001", timescales },
    { "mkv", "h264 hevc vp8 vp9 av1 mpeg4 mjpeg ffv1", "400 500 900 1000 2000", NULL },
    { "webm", "vp8 vp9 av1", "500 1000", NULL },
    { "ts", "h264 hevc mpeg2", "60000/1001", NULL },
    { "mpg", "mpeg2", "", NULL },
    { "flv", "h264 flv", "500", NULL },
    { "avi", "h264 mpeg4 mjpeg ffv1", "15", NULL },
    { "wmv", "wmv2", "", NULL },
    { "mov", "h264 mjpeg", "1000", timescales },
};

/* Rates that every codec takes, MPEG-2 included. */
static const char *const common_rates = "24 25 30 24000/1001 30000/1001";

static const char *encoder_of(const char *codec)
{
    static const char *const encoders[][2] = {
        { "h264", "-c:v libx264 -preset veryfast" },
        { "hevc", "-c:v libx265 -preset ultrafast -x265-params log-level=none" },
        { "vp8", "-c:v libvpx -deadline realtime -cpu-used 8" },
        { "vp9", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8" },
        { "av1", "-c:v libaom-av1 -usage realtime -cpu-used 8" },
        { "mpeg4", "-c:v mpeg4" },
        { "mpeg2", "-c:v mpeg2video" },
        { "mjpeg", "-c:v mjpeg" },
        { "ffv1", "-c:v ffv1" },
        { "flv", "-c:v flv" },
        { "wmv2", "-c:v wmv2" },
    };
    for (size_t i = 0; i < sizeof encoders / sizeof encoders[0]; i++)
        if (strcmp(encoders[i][0], codec) == 0)
            return encoders[i][1];
    return "";
}

/* Encoder options that make packets without a frame, or groups that need the one before. */
static const char *more_options(const char *codec, bool is_first)
{
    static const char *const options[][3] = {
        { "h264", "-x264-params open-gop=1", "-x264-params b-pyramid=strict:slices=2" },
        { "hevc", "-x265-params log-level=none:open-gop=1", "-x265-params log-level=none:temporal-layers=1" },
        { "vp8", "-deadline good -auto-alt-ref 1 -lag-in-frames 12 -b:v 300k", "" },
        { "vp9", "-deadline good -auto-alt-ref 1 -lag-in-frames 12 -b:v 300k", "" },
        { "av1", "-usage good -cpu-used 8 -lag-in-frames 12", "" },
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (strcmp(options[i][0], codec) == 0)
            return options[i][is_first ? 1 : 2];
    return "";
}

/* Late, before zero, and so that the 33 bits of an MPEG-TS clock wrap around. */
static const char *const offsets[] = { "-output_ts_offset 3.7", "-output_ts_offset -0.4 -avoid_negative_ts disabled",
                                       "-output_ts_offset 95442.3", "-output_ts_offset 40000" };

typedef enum part { WHOLE, EDIT_LIST, JOINED, CUT_OFF } part;

typedef struct recipe {
    const container *container;
    char codec[16];
    char rate[32];
    const char *options;
    uint32_t num_b_frames;
    uint32_t group;
    uint32_t num_frames;
    bool is_uneven;
    const char *offset; /* of the first time */
    const char *more;   /* encoder options: frames that are not shown, open groups, a pyramid */
    part part;
    char text[TEXT_BYTES]; /* for messages */
} recipe;

#define NOTHING_MORE .options = "", .offset = "", .more = ""

/* One of the words, or of both lists. */
static void draw_word(uint64_t *state, const char *words, const char *more, char *to, size_t size_bytes)
{
    char both[TEXT_BYTES], *rest = both, *word;
    const char *drawn[64];
    size_t num = 0;
    snprintf(both, sizeof both, "%s %s", words, more);
    while ((word = strtok_r(rest, " ", &rest)) && num < 64)
        drawn[num++] = word;
    snprintf(to, size_bytes, "%s", drawn[weir__random_below(state, num)]);
}

static recipe draw_recipe(uint64_t *state)
{
    enum { NUM_CONTAINERS = sizeof containers / sizeof containers[0] };
    recipe r = { NOTHING_MORE, .container = &containers[weir__random_below(state, NUM_CONTAINERS)] };
    draw_word(state, r.container->codecs, "", r.codec, sizeof r.codec);
    draw_word(state, common_rates, strcmp(r.codec, "mpeg2") == 0 ? "" : r.container->rates, r.rate, sizeof r.rate);
    size_t num_options = 0;
    while (r.container->options && r.container->options[num_options])
        num_options++;
    if (num_options)
        r.options = r.container->options[weir__random_below(state, num_options)];
    bool reorders = strstr("h264 hevc mpeg2 mpeg4", r.codec);
    r.num_b_frames = reorders ? (uint32_t)weir__random_below(state, 4) : 0;
    r.num_b_frames = strncmp(r.codec, "mpeg", 4) == 0 && r.num_b_frames > 2 ? 2 : r.num_b_frames;
    r.group = 4 + (uint32_t)weir__random_below(state, 20);
    r.num_frames = 1 + (uint32_t)weir__random_below(state, 60);
    r.is_uneven = weir__random_below(state, 4) == 0 && strcmp(r.codec, "mpeg2") != 0;
    if (weir__random_below(state, 3) == 0)
        r.offset = offsets[weir__random_below(state, sizeof offsets / sizeof offsets[0])];
    if (weir__random_below(state, 3) == 0)
        r.more = more_options(r.codec, weir__random_below(state, 2));
    r.part = weir__random_below(state, 16) == 0 ? CUT_OFF : (part)weir__random_below(state, CUT_OFF);
    if (r.part == JOINED && atof(r.rate) > 999)
        r.part = WHOLE;
    if (r.part == EDIT_LIST && strstr(r.more, "open-gop"))
        r.more = "";
    r.is_uneven &= r.part != EDIT_LIST || strcmp(r.container->extension, "ts") != 0;
    if (strcmp(r.container->extension, "flv") == 0)
        r.offset = ""; /* its times have no sign and 32 bits */
    return r;
}

static void describe(recipe *r, uint64_t number)
{
    static const char *const parts[] = { "whole", "edit list", "joined", "cut off" };
    snprintf(r->text, sizeof r->text, "case %" PRIu64 ": %s %s, %s per s, %u frames, group %u, %u B%s %s %s %s, %s",
             number, r->container->extension, r->codec, r->rate, r->num_frames, r->group, r->num_b_frames,
             r->is_uneven ? ", uneven" : "", r->options, r->offset, r->more, parts[r->part]);
}

static const char *folder(void)
{
    static const char *path;
    path = path ? path : clips_path("");
    return path;
}

static bool run_ffmpeg(const char *arguments, const char *to)
{
    char command[COMMAND_BYTES];
    snprintf(command, sizeof command, "ffmpeg -nostdin -y -v error %s '%s' 2>/dev/null >&2", arguments, to);
    return system(command) == 0;
}

/* ffmpeg's muxers may refuse a combination: then there is no clip. */
static bool make_part(const recipe *r, unsigned hue, const char *to)
{
    char arguments[ARGUMENT_BYTES];
    snprintf(arguments, sizeof arguments,
             "-f lavfi -i testsrc2=s=64x48:r=%s,hue=h=%u,format=%s%s -frames:v %u -g %u %s%u %s %s %s %s %s", r->rate,
             hue, strcmp(r->codec, "mjpeg") == 0 ? "yuvj420p" : "yuv420p",
             r->is_uneven ? ",select='not(mod(n\\,7))+gt(mod(n\\,5)\\,2)'" : "", r->num_frames, r->group,
             r->num_b_frames ? "-bf " : "-bf 0 -threads ", r->num_b_frames ? r->num_b_frames : 1,
             encoder_of(r->codec), r->more, r->is_uneven ? "-fps_mode vfr" : "", r->options, r->offset);
    return run_ffmpeg(arguments, to);
}

/* Recorders append transport streams; other containers are joined by ffmpeg's stream copy. */
static bool join_parts(const recipe *r, const char *first, const char *second, const char *to)
{
    char arguments[ARGUMENT_BYTES], list[PATH_BYTES];
    bool is_appended = strcmp(r->container->extension, "ts") == 0 || strcmp(r->container->extension, "mpg") == 0;
    if (is_appended) {
        snprintf(arguments, sizeof arguments, "cat '%s' '%s' > '%s'", first, second, to);
        return system(arguments) == 0;
    }
    snprintf(list, sizeof list, "%slist.txt", folder());
    snprintf(arguments, sizeof arguments, "file '%s'\nfile '%s'\n", first, second);
    clips_write_text(list, arguments);
    snprintf(arguments, sizeof arguments, "-f concat -safe 0 -i '%s' -c copy %s", list, r->options);
    return run_ffmpeg(arguments, to);
}

static bool cut_off(const char *from, const char *to)
{
    char command[COMMAND_BYTES];
    snprintf(command, sizeof command, "head -c $(( $(wc -c < '%s') * 7 / 10 )) '%s' > '%s'", from, from, to);
    return system(command) == 0;
}

static bool make_clip(const recipe *r, char *path)
{
    char first[PATH_BYTES], second[PATH_BYTES], arguments[ARGUMENT_BYTES];
    recipe other = *r;
    snprintf(first, sizeof first, "%sfirst.%s", folder(), r->container->extension);
    snprintf(second, sizeof second, "%ssecond.%s", folder(), r->container->extension);
    snprintf(path, PATH_BYTES, "%sclip.%s", folder(), r->container->extension);
    if (!make_part(r, 0, r->part == WHOLE ? path : first))
        return false;
    switch (r->part) {
    case EDIT_LIST:
        snprintf(arguments, sizeof arguments, "-ss %f -i '%s' -c copy", 0.3 * r->num_frames / atof(r->rate), first);
        return run_ffmpeg(arguments, path);
    case JOINED:
        snprintf(other.rate, sizeof other.rate, "%s", strcmp(r->rate, "30") == 0 ? "30000/1001" : "30");
        return make_part(&other, 90, second) && join_parts(r, first, second, path);
    case CUT_OFF: return cut_off(first, path);
    default: return true;
    }
}

/* ---- weir ---------------------------------------------------------------------------------------------------- */

static weir_video_config config_of(weir_sampling sampling)
{
    static const weir_picture_config picture = {
        .pixel = WEIR_PIXEL_YUV420P,
        .scaler = WEIR_SCALER_EXACT,
        .no_autorotate = true,
    };
    return (weir_video_config){ .picture = &picture, .picture_size = sizeof picture, .sampling = sampling };
}

/* NULL = it failed, with *error filled. */
static weir_frames *try_frames(const char *path, weir_sampling sampling, weir_error *error)
{
    uint64_t size_bytes;
    weir_video_config config = config_of(sampling);
    *error = (weir_error){ 0 };
    return result_of_path(path, &weir_video_decode, &config, &size_bytes, error);
}

static const char *what_is_tried; /* the recipe's text, or the file */

/* `all` in that order (NULL = as it is). */
static void assert_frames(weir_frames *got, const weir_error *error, const weir_frames *all, const int64_t *order,
                          size_t num, const char *how)
{
    if (!got)
        fail_msg("%s: %s: %s", what_is_tried, how, error->message);
    if (got->num_frames != num)
        fail_msg("%s: %s: %u frames, not %zu (%" PRIu64 " missing)", what_is_tried, how, got->num_frames, num,
                 got->num_missing_frames);
    for (size_t i = 0; i < num; i++) {
        size_t from = order ? (size_t)order[i] : i;
        if (got->pts[i] != all->pts[from])
            fail_msg("%s: %s: frame %zu has pts %" PRId64 ", not %" PRId64, what_is_tried, how, from, got->pts[i],
                     all->pts[from]);
        if (got->times_ns[i] != all->times_ns[from] || !got->mask[i])
            fail_msg("%s: %s: frame %zu is at %" PRId64 " ns, not %" PRId64, what_is_tried, how, from,
                     got->times_ns[i], all->times_ns[from]);
        if (memcmp(got->data + i * got->frame_bytes, all->data + from * all->frame_bytes, all->frame_bytes) != 0)
            fail_msg("%s: %s: frame %zu is another one", what_is_tried, how, from);
    }
    weir_frames_free(got);
}

static void check_lists(const char *path, const weir_frames *all, uint64_t *state)
{
    enum { MOST_ALONE = 6 };
    static int64_t order[MAX_FRAMES];
    weir_error error;
    for (uint32_t i = 0; i < all->num_frames; i++) {
        uint32_t other = (uint32_t)weir__random_below(state, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    weir_sampling list = { .what = WEIR_SAMPLE_INDICES, .indices = order, .num_indices = all->num_frames };
    assert_frames(try_frames(path, list, &error), &error, all, order, all->num_frames, "a list of all");
    for (uint32_t i = 0; i < all->num_frames && i < MOST_ALONE; i++) {
        list = (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = &order[i], .num_indices = 1 };
        assert_frames(try_frames(path, list, &error), &error, all, &order[i], 1, "alone");
    }
}

static void check_chunks(const char *path, const weir_frames *all)
{
    enum { CHUNK = 7 };
    weir_video_config config = config_of((weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 1 });
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_item item;
    uint64_t num = 0;
    config.chunk_frames = CHUNK;
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_pipe_video(builder, &config, NULL);
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        const weir_frames *chunk = item.data;
        size_t frame_bytes = all->frame_bytes;
        if (chunk->first_frame != num || num + chunk->num_frames > all->num_frames ||
            memcmp(chunk->data, all->data + num * frame_bytes, chunk->num_frames * frame_bytes) != 0 ||
            memcmp(chunk->pts, all->pts + num, chunk->num_frames * sizeof *chunk->pts) != 0)
            fail_msg("%s: chunks: other frames from %" PRIu64 " on", what_is_tried, num);
        num += chunk->num_frames;
        weir_item_release(&item);
    }
    weir_pipeline_free(pipeline);
    if (num != all->num_frames)
        fail_msg("%s: chunks: %" PRIu64 " frames, not %u", what_is_tried, num, all->num_frames);
}

static void check_probe(const char *path, const weir_frames *all)
{
    uint64_t size_bytes;
    weir_error error = { 0 };
    weir_probe_config config = { 0 };
    weir_probe_result *result = result_of_path(path, &weir_probe, &config, &size_bytes, &error);
    if (!result || result->error.status != WEIR_OK)
        fail_msg("%s: the probe: %s", what_is_tried, result ? result->error.message : error.message);
    /* without a table its packets do not show the order of the frames, and some may give none, as before a first keyframe */
    if (result->packets ? result->num_frames != all->num_frames : result->num_frames < all->num_frames)
        fail_msg("%s: the probe counts %" PRIu64 " frames, not %u%s", what_is_tried, result->num_frames,
                 all->num_frames, result->packets ? "" : ", without a table of packets");
    weir_probe_result_free(result);
}

/* ---- ffmpeg -------------------------------------------------------------------------------------------------- */

typedef struct shot {
    int64_t pts;
    uint32_t sum;
} shot;

/* As ffmpeg's framecrc: Adler-32 from 0. */
static uint32_t sum_bytes(const uint8_t *bytes, size_t num_bytes)
{
    enum { PRIME = 65521 };
    uint32_t low = 0, high = 0;
    for (size_t i = 0; i < num_bytes; i++) {
        low = (low + bytes[i]) % PRIME;
        high = (high + low) % PRIME;
    }
    return high << 16 | low;
}

static size_t run_referee(const char *path, const char *filter, shot *shots)
{
    char command[COMMAND_BYTES], line[TEXT_BYTES];
    size_t num = 0;
    snprintf(command, sizeof command,
             "ffmpeg -nostdin -v quiet -threads 1 -noautorotate -i '%s' -an -sn -dn -fps_mode passthrough "
             "-enc_time_base -1 -vf '%s,format=yuv420p|yuvj420p' -f framecrc -",
             path, filter);
    FILE *stream = popen(command, "r");
    assert_non_null(stream);
    while (fgets(line, sizeof line, stream) && num < MAX_FRAMES) {
        int64_t pts;
        uint32_t sum;
        if (line[0] != '#' && sscanf(line, "%*d, %*d, %" SCNd64 ", %*d, %*d, 0x%" SCNx32, &pts, &sum) == 2)
            shots[num++] = (shot){ pts, sum };
    }
    pclose(stream);
    return num;
}

/* ffmpeg's muxer does not let times decrease: those of the frames after a join that overlaps are not compared. */
static void check_referee(const char *path, const weir_frames *all)
{
    static shot shots[MAX_FRAMES];
    size_t num = run_referee(path, "null", shots);
    int64_t highest = INT64_MIN;
    if (num != all->num_frames)
        fail_msg("%s: %u frames, ffmpeg gives %zu", what_is_tried, all->num_frames, num);
    for (size_t i = 0; i < num; i++) {
        if (sum_bytes(all->data + i * all->frame_bytes, all->frame_bytes) != shots[i].sum)
            fail_msg("%s: frame %zu is not ffmpeg's", what_is_tried, i);
        if (all->pts[0] != WEIR_PTS_UNKNOWN && all->pts[i] > highest &&
            all->pts[i] - all->pts[0] != shots[i].pts - shots[0].pts)
            fail_msg("%s: frame %zu has the time %" PRId64 ", ffmpeg's is %" PRId64, what_is_tried, i,
                     all->pts[i] - all->pts[0], shots[i].pts - shots[0].pts);
        highest = all->pts[i] > highest ? all->pts[i] : highest;
    }
}

/* MP4 has no duration of the last frame where the rate varies: FFmpeg guesses it from its probe, which weir does without. Then
   the last frame may be shown for one instant more or less. */
static bool is_end_guessed;

static bool is_right_number(size_t got, size_t wanted)
{
    return got == wanted || (is_end_guessed && got + 1 >= wanted && wanted + 1 >= got);
}

static void check_rate(const char *path, weir_sampling sampling, const char *trim)
{
    static shot shots[MAX_FRAMES];
    char filter[TEXT_BYTES];
    weir_error error;
    snprintf(filter, sizeof filter, "%ssetpts=PTS-STARTPTS,fps=%u/%u", trim, sampling.rate_num, sampling.rate_den);
    size_t num = run_referee(path, filter, shots);
    if (num == MAX_FRAMES)
        return;
    weir_frames *got = try_frames(path, sampling, &error);
    if (!got && num <= is_end_guessed && error.status == WEIR_ENOTFOUND)
        return;
    if (!got || !is_right_number(got->num_frames, num))
        fail_msg("%s: %s: %u frames, ffmpeg gives %zu. %s", what_is_tried, filter, got ? got->num_frames : 0, num,
                 error.message);
    for (size_t i = 0; i < num && i < got->num_frames; i++)
        if (sum_bytes(got->data + i * got->frame_bytes, got->frame_bytes) != shots[i].sum)
            fail_msg("%s: %s: frame %zu is not ffmpeg's", what_is_tried, filter, i);
    weir_frames_free(got);
}

static void check_rates(const char *path, const weir_frames *all, uint64_t *state)
{
    static const uint32_t rates[][2] = { { 30, 1 }, { 10, 1 }, { 24000, 1001 }, { 73, 10 }, { 60, 1 }, { 1, 2 } };
    char trim[TEXT_BYTES];
    const uint32_t *rate = rates[weir__random_below(state, sizeof rates / sizeof rates[0])];
    weir_sampling sampling = { .what = WEIR_SAMPLE_RATE, .rate_num = rate[0], .rate_den = rate[1] };
    check_rate(path, sampling, "");
    if (all->num_frames < 4)
        return;
    /* a window that begins and ends at frames; not at the first one, as 0 means no window */
    uint32_t begin = 1 + (uint32_t)weir__random_below(state, all->num_frames / 2);
    uint32_t end = begin + 1 + (uint32_t)weir__random_below(state, all->num_frames - begin - 1);
    double tick = (double)all->time_base_num / all->time_base_den;
    double start_s = (double)(all->pts[begin] - all->pts[0]) * tick;
    double end_s = (double)(all->pts[end] - all->pts[0]) * tick;
    if (all->pts[0] == WEIR_PTS_UNKNOWN)
        return;
    sampling.start_ns = (int64_t)(start_s * 1e9);
    sampling.end_ns = (int64_t)(end_s * 1e9);
    if (end_s <= start_s || start_s <= 0)
        return;
    snprintf(trim, sizeof trim, "setpts=PTS-STARTPTS,trim=%.9f:%.9f,", start_s, end_s);
    check_rate(path, sampling, trim);
}

/* ---- the property -------------------------------------------------------------------------------------------- */

static bool is_damaged(const weir_frames *all)
{
    return all->num_errors || all->num_corrupt_frames || all->num_missing_frames;
}

/* False = it is damaged, or nothing can be decoded. */
static bool check_clip(const char *path, bool has_referee, uint64_t *state)
{
    weir_error error;
    weir_frames *all = try_frames(path, (weir_sampling){ 0 }, &error);
    if (!all || is_damaged(all) || all->num_frames > MAX_FRAMES) {
        weir_frames_free(all);
        return false;
    }
    assert_frames(try_frames(path, (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 1 }, &error), &error, all,
                  NULL, all->num_frames, "every first");
    check_lists(path, all, state);
    check_chunks(path, all);
    check_probe(path, all);
    if (has_referee) {
        check_referee(path, all);
        check_rates(path, all, state);
    }
    weir_frames_free(all);
    return true;
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static bool try_case(uint64_t number, uint64_t seed)
{
    char path[PATH_BYTES];
    uint64_t state = seed;
    state = weir__random_next(&state) ^ number;
    recipe r = draw_recipe(&state);
    describe(&r, number);
    what_is_tried = r.text;
    bool is_mp4 = r.container->options != NULL;
    is_end_guessed = is_mp4 && (r.is_uneven || r.part == JOINED);
    bool is_made = make_clip(&r, path);
    /* FFmpeg before 6.1 shows the frames of these that an edit list hides */
    bool shows_hidden = strcmp(r.codec, "av1") == 0 || strcmp(r.codec, "mjpeg") == 0;
    bool hides = r.part == EDIT_LIST || strstr(r.offset, " -0.4");
    bool has_referee = !hides || !shows_hidden;
    bool is_used = is_made && check_clip(path, has_referee, &state);
    if (getenv("WEIR_CLOCK_SECONDS") || getenv("WEIR_CLOCK_CASE"))
        fprintf(stderr, "%s: %s\n", r.text, is_used ? "ok" : is_made ? "damaged" : "ffmpeg cannot make it");
    return is_used;
}

TEST_CASE(every_way_to_ask_gives_the_same_frames_and_times)
{
    uint64_t seed = number_of("WEIR_CLOCK_SEED", 1), only = number_of("WEIR_CLOCK_CASE", UINT64_MAX);
    uint64_t num_cases = number_of("WEIR_CLOCK_CASES", DEFAULT_CASES);
    uint64_t end_ns = number_of("WEIR_CLOCK_SECONDS", 0) * (uint64_t)WEIR_SECOND;
    uint64_t start_ns = (uint64_t)weir_clock_ns(), num_used = 0, number = 0;
    if (getenv("WEIR_CLOCK_FILES"))
        return;
    printf("WEIR_CLOCK_SEED=%" PRIu64 "\n", seed);
    if (only != UINT64_MAX) {
        try_case(only, seed);
        is_end_guessed = false;
        return;
    }
    for (; end_ns ? (uint64_t)weir_clock_ns() - start_ns < end_ns : number < num_cases; number++)
        num_used += try_case(number, seed);
    is_end_guessed = false;
    fprintf(stderr, "clock %" PRIu64 " of %" PRIu64 " clips\n", num_used, number);
    assert_true(num_used > 0);
}

/* ---- examples ------------------------------------------------------------------------------------------------ */

static uint64_t example_state = 7;

static void assert_num_frames(const char *path, weir_sampling sampling, uint32_t num_frames)
{
    weir_error error;
    weir_frames *frames = try_frames(path, sampling, &error);
    if (!frames)
        fail_msg("%s: %s", path, error.message);
    assert_int_equal(frames->num_frames, num_frames);
    weir_frames_free(frames);
}

/* Recorders append one to the other; each begins at the same time. */
TEST_CASE(appended_recordings_have_one_clock)
{
    char first[PATH_BYTES], two[PATH_BYTES], three[PATH_BYTES];
    recipe r = { NOTHING_MORE, .container = &containers[3], .codec = "h264", .rate = "25", .group = 12 };
    snprintf(first, sizeof first, "%sone.ts", folder());
    snprintf(two, sizeof two, "%stwo.ts", folder());
    snprintf(three, sizeof three, "%sthree.ts", folder());
    what_is_tried = three;
    r.num_frames = 25;
    r.num_b_frames = 2;
    if (!make_part(&r, 0, first))
        skip();
    assert_true(join_parts(&r, first, first, two) && join_parts(&r, two, first, three));
    assert_true(check_clip(three, true, &example_state));
    assert_num_frames(three, (weir_sampling){ 0 }, 75);
    assert_num_frames(three, (weir_sampling){ .what = WEIR_SAMPLE_RATE, .rate_num = 5 }, 15);
}

/* At the join the last frames of the first file have later times than the first ones of the second. */
TEST_CASE(frames_at_a_join_that_overlaps_are_all_there)
{
    char first[PATH_BYTES], second[PATH_BYTES], joined[PATH_BYTES];
    recipe r = { NOTHING_MORE, .container = &containers[0], .codec = "h264", .rate = "30", .num_b_frames = 3 };
    snprintf(first, sizeof first, "%sa.mp4", folder());
    snprintf(second, sizeof second, "%sb.mp4", folder());
    snprintf(joined, sizeof joined, "%sab.mp4", folder());
    what_is_tried = joined;
    r.num_frames = 48;
    r.group = 24;
    if (!make_part(&r, 0, first))
        skip();
    snprintf(r.rate, sizeof r.rate, "30000/1001");
    assert_true(make_part(&r, 90, second) && join_parts(&r, first, second, joined));
    assert_true(check_clip(joined, true, &example_state));
    assert_num_frames(joined, (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 1 }, 96);
}

/* Frames in front of the edit list's start are decoded and not shown. Older versions of FFmpeg let some decoders show them. */
TEST_CASE(frames_that_an_edit_list_hides_are_hidden)
{
    static const char *const codecs[] = { "h264", "av1", "mjpeg", "vp9" };
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        char whole[PATH_BYTES], cut[PATH_BYTES], arguments[ARGUMENT_BYTES];
        recipe r = { NOTHING_MORE, .container = &containers[0], .rate = "25", .num_frames = 75, .group = 50 };
        snprintf(r.codec, sizeof r.codec, "%s", codecs[i]);
        snprintf(whole, sizeof whole, "%swhole.mp4", folder());
        snprintf(cut, sizeof cut, "%scut.mp4", folder());
        what_is_tried = codecs[i];
        snprintf(arguments, sizeof arguments, "-ss 0.52 -i '%s' -c copy", whole);
        if (!make_part(&r, 0, whole) || !run_ffmpeg(arguments, cut))
            continue;
        assert_true(check_clip(cut, i == 0, &example_state));
        assert_num_frames(cut, (weir_sampling){ 0 }, 62);
    }
}

/* Sets no_output_of_prior_pics_flag of the keyframes in a packet of HEVC, in the file's bytes. How many? */
static unsigned let_keyframes_drop(const AVPacket *packet, uint8_t *file, size_t file_bytes)
{
    enum { LENGTH = 4, FLAG_BYTE = LENGTH + 2, FLAG = 0x40, FIRST_IRAP = 16, LAST_IRAP = 21, COMPARED = 24 };
    unsigned num = 0;
    size_t size = (size_t)packet->size;
    for (size_t at = 0, length; at + COMPARED < size; at += LENGTH + length) {
        const uint8_t *unit = packet->data + at;
        length = (size_t)unit[0] << 24 | (size_t)unit[1] << 16 | (size_t)unit[2] << 8 | unit[3];
        unsigned type = unit[LENGTH] >> 1 & 0x3fu;
        uint8_t *found = type >= FIRST_IRAP && type <= LAST_IRAP ? memmem(file, file_bytes, unit, COMPARED) : NULL;
        if (found) {
            found[FLAG_BYTE] |= FLAG;
            num++;
        }
    }
    return num;
}

static unsigned let_file_drop(const char *from, const char *to)
{
    AVFormatContext *format = NULL;
    AVPacket *packet = av_packet_alloc();
    FILE *file = fopen(from, "rb");
    static uint8_t bytes[1 << 20];
    unsigned num = 0;
    assert_non_null(packet);
    assert_non_null(file);
    size_t num_bytes = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(num_bytes, 1, sizeof bytes - 1);
    assert_int_equal(avformat_open_input(&format, from, NULL, NULL), 0);
    for (; av_read_frame(format, packet) >= 0; av_packet_unref(packet))
        num += let_keyframes_drop(packet, bytes, num_bytes);
    avformat_close_input(&format);
    av_packet_free(&packet);
    clips_write(to, bytes, num_bytes);
    return num;
}

/* Writes the packet with an end of the sequence before it. */
static void write_after_end(AVFormatContext *to, AVPacket *packet)
{
    static const uint8_t end[] = { 0, 0, 0, 2, 0x48, 1 };
    AVPacket *longer = av_packet_alloc();
    assert_non_null(longer);
    assert_int_equal(av_new_packet(longer, packet->size + (int)sizeof end), 0);
    memcpy(longer->data, end, sizeof end);
    memcpy(longer->data + sizeof end, packet->data, (size_t)packet->size);
    assert_int_equal(av_packet_copy_props(longer, packet), 0);
    assert_int_equal(av_write_frame(to, longer), 0);
    av_packet_free(&longer);
}

/* A copy with an end of the sequence before each keyframe but the first. */
static void end_sequences(const char *from, const char *to)
{
    AVFormatContext *input = NULL, *output = NULL;
    AVPacket *packet = av_packet_alloc();
    bool is_first = true;
    assert_non_null(packet);
    assert_int_equal(avformat_open_input(&input, from, NULL, NULL), 0);
    assert_true(avformat_find_stream_info(input, NULL) >= 0);
    assert_true(avformat_alloc_output_context2(&output, NULL, NULL, to) >= 0);
    AVStream *stream = avformat_new_stream(output, NULL);
    assert_non_null(stream);
    assert_true(avcodec_parameters_copy(stream->codecpar, input->streams[0]->codecpar) >= 0);
    stream->time_base = input->streams[0]->time_base;
    assert_true(avio_open(&output->pb, to, AVIO_FLAG_WRITE) >= 0);
    assert_true(avformat_write_header(output, NULL) >= 0);
    for (; av_read_frame(input, packet) >= 0; av_packet_unref(packet), is_first = false) {
        if ((packet->flags & AV_PKT_FLAG_KEY) && !is_first)
            write_after_end(output, packet);
        else
            assert_int_equal(av_write_frame(output, packet), 0);
    }
    assert_int_equal(av_write_trailer(output), 0);
    avio_closep(&output->pb);
    avformat_free_context(output);
    avformat_close_input(&input);
    av_packet_free(&packet);
}

/* Keyframes of HEVC may say that frames before them which were not shown yet are dropped. A CRA picture behind the
   end of a sequence drops them in any case. */
TEST_CASE(frames_that_a_keyframe_drops_are_dropped)
{
    char whole[PATH_BYTES], path[PATH_BYTES], arguments[ARGUMENT_BYTES];
    for (int open_gop = 0; open_gop < 2; open_gop++) {
        snprintf(whole, sizeof whole, "%swhole.mkv", folder());
        snprintf(path, sizeof path, "%sdropped.mkv", folder());
        snprintf(arguments, sizeof arguments,
                 "-f lavfi -i testsrc2=s=64x48:r=25 -frames:v 80 -c:v libx265 -preset ultrafast "
                 "-x265-params keyint=8:bframes=3:open-gop=%d:log-level=none",
                 open_gop);
        if (!run_ffmpeg(arguments, whole))
            skip();
        what_is_tried = path;
        if (open_gop)
            end_sequences(whole, path);
        else
            assert_true(let_file_drop(whole, path) > 5);
        weir_error error;
        weir_frames *all = try_frames(path, (weir_sampling){ 0 }, &error);
        assert_non_null(all);
        assert_in_range(all->num_frames, 20, 79);
        weir_frames_free(all);
        assert_true(check_clip(path, true, &example_state));
    }
}

/* FFmpeg's decoder of MPEG-2 drops the frame that it holds when the shape of pixels changes. */
TEST_CASE(frames_that_are_lost_where_the_aspect_ratio_changes_are_not_counted)
{
    char narrow[PATH_BYTES], wide[PATH_BYTES], path[PATH_BYTES], list[3 * PATH_BYTES], arguments[ARGUMENT_BYTES];
    snprintf(narrow, sizeof narrow, "%snarrow.ts", folder());
    snprintf(wide, sizeof wide, "%swide.ts", folder());
    snprintf(path, sizeof path, "%sboth.mkv", folder());
    if (!run_ffmpeg("-f lavfi -i testsrc2=s=64x48:r=25:d=2 -c:v mpeg2video -bf 2 -g 5 -aspect 4:3", narrow) ||
        !run_ffmpeg("-f lavfi -i testsrc2=s=64x48:r=25:d=2 -c:v mpeg2video -bf 2 -g 5 -aspect 16:9", wide))
        skip();
    snprintf(list, sizeof list, "file %s\nfile %s\n", narrow, wide);
    clips_write_text(clips_path("list.txt"), list);
    snprintf(arguments, sizeof arguments, "-f concat -safe 0 -i '%s' -c copy", clips_path("list.txt"));
    what_is_tried = path;
    assert_true(run_ffmpeg(arguments, path));
    assert_num_frames(path, (weir_sampling){ 0 }, 99);
    assert_true(check_clip(path, true, &example_state));
}

/* The 32 bits of FLV's times wrap around within a group of pictures with B-frames. */
TEST_CASE(frames_where_the_clock_of_flv_jumps_are_all_there)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%sjump.flv", folder());
    if (!run_ffmpeg("-f lavfi -i testsrc2=s=64x48:r=25 -frames:v 50 -c:v libx264 -bf 2 -g 12 -pix_fmt yuv420p "
                    "-avoid_negative_ts disabled -output_ts_offset -1",
                    path))
        skip();
    what_is_tried = path;
    assert_num_frames(path, (weir_sampling){ 0 }, 50);
    assert_num_frames(path, (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 1 }, 50);
    assert_true(check_clip(path, false, &example_state));
}

/* Packets of AVI files have no time of showing: the times of the last frames, which the decoder returns after the last
   packet, go on. */
TEST_CASE(the_last_frames_of_an_avi_file_have_times)
{
    char path[PATH_BYTES];
    recipe r = { NOTHING_MORE, .container = &containers[6], .codec = "h264", .rate = "24", .num_b_frames = 2 };
    weir_error error;
    snprintf(path, sizeof path, "%stimes.avi", folder());
    what_is_tried = path;
    r.num_frames = 30;
    r.group = 12;
    if (!make_part(&r, 0, path))
        skip();
    weir_frames *all = try_frames(path, (weir_sampling){ 0 }, &error);
    assert_non_null(all);
    assert_int_equal(all->num_frames, 30);
    for (uint32_t i = 0; i < 30; i++)
        assert_int_equal(all->pts[i], all->pts[0] + i);
    weir_frames_free(all);
    assert_true(check_clip(path, true, &example_state));
}

/* Marked as the default, or larger, or the first of equal ones. */
TEST_CASE(of_several_streams_the_one_that_ffmpeg_takes_is_taken)
{
    static const char *const streams[][2] = {
        { "two.mkv", "-map 0 -map 1 -disposition:v:0 default -disposition:v:1 0" },
        { "two.mkv", "-map 0 -map 1 -disposition:v:0 0 -disposition:v:1 default" },
        { "two.mkv", "-map 1 -map 0 -disposition:v 0" },
        { "two.mkv", "-map 0 -map 1 -disposition:v 0" },
        { "two.mkv", "-map 0 -map 2 -disposition:v 0" },
        { "two.mkv", "-map 2 -map 0 -disposition:v default" },
        { "two.mp4", "-map 0 -map 1" },
        { "two.mp4", "-map 1 -map 0" },
        { "two.ts", "-map 0 -map 1" },
        { "two.ts", "-map 1 -map 0" },
    };
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        char path[PATH_BYTES], arguments[ARGUMENT_BYTES];
        snprintf(path, sizeof path, "%s%s", folder(), streams[i][0]);
        what_is_tried = streams[i][1];
        snprintf(arguments, sizeof arguments,
                 "-f lavfi -i testsrc2=s=64x48:d=0.5 -f lavfi -i testsrc2=s=96x64:d=0.5,hue=h=90 -f lavfi -i "
                 "testsrc2=s=64x48:d=0.5,negate %s -c:v libx264 -preset ultrafast -pix_fmt yuv420p",
                 streams[i][1]);
        if (!run_ffmpeg(arguments, path))
            skip();
        assert_true(check_clip(path, true, &example_state));
    }
}

TEST_CASE(files_that_are_named_are_read_the_same_in_every_way)
{
    const char *files = getenv("WEIR_CLOCK_FILES");
    char *copy = files ? strdup(files) : NULL, *rest = copy, *path;
    uint64_t random = number_of("WEIR_CLOCK_SEED", 1);
    while (copy && (path = strtok_r(rest, " ", &rest))) {
        what_is_tried = path;
        fprintf(stderr, "%s: %s\n", path, check_clip(path, true, &random) ? "ok" : "damaged, or no video");
    }
    free(copy);
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
