/*
 * The sound that a reader gives for windows of time. It is contained in what the ffmpeg program decodes from the
 * whole file, wherever the window is and whatever was asked before.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

#include <weir/video_reader.h>

#include "common/random.h"
#include "tests/bytes_source.h"
#include "tests/clips.h"
#include "tests/result.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define SECOND        INT64_C(1000000000)

/* ---- files ---------------------------------------------------------------------------------------------------- */

#define PICTURES "-f lavfi -i testsrc2=s=64x48:r=25:d=30 "
/* a sweep, and a noise that begins and ends: long and short blocks */
#define SOUND(rate) \
    "-f lavfi -i \"aevalsrc='0.4*sin(2*PI*t*(200+40*t))+0.3*(random(0)-0.5)*lt(mod(t,0.7),0.06)" \
    "|0.3*sin(2*PI*t*330)+0.3*(random(1)-0.5)*lt(mod(t,0.45),0.03)':s=" rate ":d=29.5\" "
#define H264  "-c:v libx264 -preset ultrafast -g 50 -pix_fmt yuv420p "
#define MPEG4 "-c:v mpeg4 -g 50 "

typedef struct clip {
    const char *name;
    const char *arguments;
    float error; /* of a sample of a window; 0 = the same bits */
} clip;

static const clip clips[] = {
    { "aac.mp4", PICTURES SOUND("44100") H264 "-c:a aac -aac_pns 0", 0 },
    { "aac48.mkv", PICTURES SOUND("48000") H264 "-c:a aac -aac_pns 0", 0 },
    { "aac.mkv", PICTURES SOUND("44100") H264 "-c:a aac -aac_pns 0", 0 },
    { "aac.ts", PICTURES SOUND("44100") H264 "-c:a aac -aac_pns 0", 0 },
    { "aac.flv", PICTURES SOUND("44100") H264 "-c:a aac -aac_pns 0", 0 },
    { "fragments.mp4", PICTURES SOUND("44100") H264 "-c:a aac -aac_pns 0 -movflags +frag_keyframe+empty_moov", 0 },
    { "mp3.mp4", PICTURES SOUND("44100") H264 "-c:a libmp3lame", 0 },
    { "mp3.mkv", PICTURES SOUND("44100") H264 "-c:a libmp3lame -b:a 64k", 0 },
    { "mp3.avi", PICTURES SOUND("44100") MPEG4 "-c:a libmp3lame", 0 },
    { "mp3low.avi", PICTURES SOUND("24000") MPEG4 "-c:a libmp3lame -b:a 16k", 0 },
    { "mp2.ts", PICTURES SOUND("48000") "-c:v mpeg2video -c:a mp2", 0 },
    { "opus.mkv", PICTURES SOUND("48000") H264 "-c:a libopus", 0 },
    { "opus.mp4", PICTURES SOUND("48000") H264 "-c:a libopus -strict -2", 0 },
    { "voice.mkv", PICTURES SOUND("48000") H264 "-c:a libopus -b:a 14k -application voip", 1e-4F },
    { "opus.webm", PICTURES SOUND("48000") "-c:v libvpx -deadline realtime -c:a libopus -frame_duration 2.5", 0 },
    { "vorbis.mkv", PICTURES SOUND("44100") H264 "-c:a libvorbis", 0 },
    { "vorbis.mp4", PICTURES SOUND("44100") H264 "-c:a libvorbis -strict -2", 0 },
    { "vorbis.ogv", PICTURES SOUND("44100") "-c:v libtheora -c:a libvorbis", 0 },
    { "flac.mkv", PICTURES SOUND("44100") H264 "-c:a flac", 0 },
    { "flac.mp4", PICTURES SOUND("44100") H264 "-c:a flac -strict -2", 0 },
    { "flac.ogg", PICTURES SOUND("44100") "-c:v libtheora -c:a flac", 0 },
    { "pcm.mkv", PICTURES SOUND("44100") H264 "-c:a pcm_s16le", 0 },
    { "pcm.avi", PICTURES SOUND("44100") MPEG4 "-c:a pcm_s16le", 0 },
    { "pcm.mov", PICTURES SOUND("44100") H264 "-c:a pcm_s24le", 0 },
    { "alac.mov", PICTURES SOUND("44100") H264 "-c:a alac", 0 },
    { "late.mp4", PICTURES "-itsoffset 1.7 " SOUND("44100") H264 "-c:a aac -aac_pns 0", 0 },
    { "early.mkv", "-itsoffset 0.9 " PICTURES SOUND("48000") H264 "-c:a libopus", 0 },
};

static const char *make_clip(size_t which)
{
    return clips_make(clips[which].name, clips[which].arguments);
}

/* ---- asking --------------------------------------------------------------------------------------------------- */

static weir_video_reader *reader_of(const char *path)
{
    weir_video_reader *reader = NULL;
    weir_error error = { 0 };
    const weir_video_source source = { .path = path };
    if (weir_video_reader_open(&reader, &source, sizeof source, NULL, 0, &error) != WEIR_OK)
        fail_msg("%s: %s", path, error.message);
    return reader;
}

static weir_audio *sound_of(weir_video_reader *reader, const weir_audio_config *config, int64_t start_ns,
                            int64_t end_ns)
{
    weir_audio *audio = NULL;
    weir_error error = { 0 };
    if (weir_video_reader_sound(reader, config, sizeof *config, start_ns, end_ns, &audio, &error) != WEIR_OK)
        fail_msg("%" PRId64 " to %" PRId64 ": %s", start_ns, end_ns, error.message);
    assert_non_null(audio);
    return audio;
}

static weir_audio *whole_of(const char *path, const weir_audio_config *config)
{
    weir_video_reader *reader = reader_of(path);
    weir_audio *audio = sound_of(reader, config, INT64_MIN, INT64_MAX);
    weir_video_reader_free(reader);
    return audio;
}

static float value_at(const weir_audio *audio, uint64_t sample, uint32_t channel)
{
    return audio->planar ? audio->data[channel * audio->num_samples + sample]
                         : audio->data[sample * audio->channels + channel];
}

/* The window's samples are those of the whole sound from number `first` on. */
static void assert_part(const char *name, const weir_audio *part, const weir_audio *whole, uint64_t first,
                        float error)
{
    assert_int_equal(part->channels, whole->channels);
    assert_int_equal(part->sample_rate, whole->sample_rate);
    for (uint64_t i = 0; i < part->num_samples; i++) {
        for (uint32_t channel = 0; channel < part->channels; channel++) {
            float value = value_at(part, i, channel), wanted = value_at(whole, first + i, channel);
            if (fabsf(value - wanted) > error)
                fail_msg("%s: sample %" PRIu64 " of %" PRIu64 " from %" PRIu64 " is %.9g, and %.9g in the whole",
                         name, i, part->num_samples, first, (double)value, (double)wanted);
        }
    }
}

/* Which samples a window has, by the rule in weir/video_reader.h. */
static void expect_window(const char *name, weir_video_reader *reader, const weir_audio_config *config,
                          const weir_audio *whole, int64_t start_ns, int64_t end_ns, float error)
{
    double rate = (double)whole->sample_rate / (double)SECOND;
    int64_t first = (int64_t)floor((double)(start_ns - whole->start_ns + 2) * rate);
    int64_t num = (int64_t)round((double)(end_ns - start_ns) * rate);
    int64_t end = first + num;
    first = first > 0 ? first : 0;
    end = end < (int64_t)whole->num_samples ? end : (int64_t)whole->num_samples;
    weir_audio *audio = NULL;
    weir_error failure = { 0 };
    int rc = weir_video_reader_sound(reader, config, sizeof *config, start_ns, end_ns, &audio, &failure);
    if (end <= first) {
        assert_int_equal(rc, WEIR_ERANGE);
        return;
    }
    if (rc != WEIR_OK)
        fail_msg("%s: %s", name, failure.message);
    if (audio->num_samples != (uint64_t)(end - first))
        fail_msg("%s, %" PRId64 " to %" PRId64 ": %" PRIu64 " samples instead of %" PRId64, name, start_ns, end_ns,
                 audio->num_samples, end - first);
    assert_int_equal(audio->num_errors, 0);
    int64_t due_ns = whole->start_ns + (int64_t)round((double)first / rate);
    assert_in_range(audio->start_ns - due_ns + 1, 0, 2);
    assert_part(name, audio, whole, (uint64_t)first, error);
    weir_audio_free(audio);
}

/* ---- windows are parts of the whole ---------------------------------------------------------------------------- */

static void expect_random_windows(const char *name, weir_video_reader *reader, const weir_audio_config *config,
                                  const weir_audio *whole, unsigned count, float error)
{
    uint64_t draw = 17;
    for (unsigned i = 0; i < count; i++) {
        int64_t start_ns = (int64_t)weir__random_below(&draw, 31 * SECOND) - SECOND / 2;
        int64_t length_ns = 1000000 + (int64_t)weir__random_below(&draw, 3 * SECOND);
        expect_window(name, reader, config, whole, start_ns, start_ns + length_ns, error);
    }
}

#ifdef SANITIZED /* which repeats what the other build checks */
enum { NUM_WINDOWS = 3, EVERY_CLIP = 2 };
#else
enum { NUM_WINDOWS = 8, EVERY_CLIP = 1 };
#endif

TEST_CASE(random_windows_are_parts_of_the_whole_sound)
{
    const weir_audio_config config = { 0 };
    for (size_t i = 0; i < LENGTH(clips); i += EVERY_CLIP) {
        const char *path = make_clip(i);
        if (!path)
            continue;
        weir_audio *whole = whole_of(path, &config);
        weir_video_reader *reader = reader_of(path);
        expect_random_windows(clips[i].name, reader, &config, whole, NUM_WINDOWS, clips[i].error);
        weir_video_reader_free(reader);
        weir_audio_free(whole);
    }
}

TEST_CASE(resampled_and_mixed_windows_are_parts_of_the_resampled_whole)
{
    static const weir_audio_config configs[] = {
        { .sample_rate = 16000, .channels = 1 },
        { .sample_rate = 48000, .planar = true },
        { .sample_rate = 44100, .channels = 2 },
        { .sample_rate = 11025, .channels = 6 },
        { .sample_rate = 44099 },
        { .channels = 1 },
    };
    static const size_t some[] = { 0, 1, 4, 11, 15 };
    for (size_t i = 0; i < LENGTH(configs); i++) {
        for (size_t j = 0; j < LENGTH(some); j++) {
            const char *path = make_clip(some[j]);
            if (!path)
                continue;
            weir_audio *whole = whole_of(path, &configs[i]);
            weir_video_reader *reader = reader_of(path);
            expect_random_windows(clips[some[j]].name, reader, &configs[i], whole, 6, 0);
            weir_video_reader_free(reader);
            weir_audio_free(whole);
        }
    }
}

/* Without its samples being looked at: those that decoders make from random numbers. */
static double difference(const weir_audio *part, const weir_audio *whole, uint64_t first)
{
    double apart = 0, all = 0;
    for (uint64_t i = 0; i < part->num_samples * part->channels; i++) {
        double wanted = (double)whole->data[first * whole->channels + i];
        apart += pow((double)part->data[i] - wanted, 2);
        all += wanted * wanted;
    }
    return apart / all;
}

TEST_CASE(where_a_decoder_makes_noise_only_the_noise_differs)
{
    static const clip noisy[] = {
        { "pns.mp4", PICTURES SOUND("44100") H264 "-c:a aac -b:a 48k", 0 },
        { "ac3.mkv", PICTURES SOUND("48000") H264 "-c:a ac3", 0 },
    };
    const weir_audio_config config = { 0 };
    for (size_t i = 0; i < LENGTH(noisy); i++) {
        const char *path = clips_make(noisy[i].name, noisy[i].arguments);
        weir_audio *whole = whole_of(path, &config);
        weir_video_reader *reader = reader_of(path);
        int64_t start_ns = whole->start_ns + 20 * SECOND;
        weir_audio *part = sound_of(reader, &config, start_ns, start_ns + SECOND);
        assert_int_equal(part->num_samples, whole->sample_rate);
        double same = difference(part, whole, 20 * (uint64_t)whole->sample_rate);
        double next = difference(part, whole, 20 * (uint64_t)whole->sample_rate + 1);
        if (same > 0.02 || same >= next)
            fail_msg("%s: the difference is %g of the sound, and %g a sample later", path, same, next);
        weir_audio_free(part);
        weir_video_reader_free(reader);
        weir_audio_free(whole);
    }
}

/* ---- the whole is ffmpeg's ------------------------------------------------------------------------------------- */

/* What ffmpeg decodes; to be freed. */
static float *ffmpeg_samples(const char *path, size_t *num_floats)
{
    char command[4096];
    enum { MAX_FLOATS = 1 << 22 };
    float *samples = malloc(MAX_FLOATS * sizeof *samples);
    assert_non_null(samples);
    snprintf(command, sizeof command, "ffmpeg -nostdin -v quiet -i '%s' -vn -af aformat=sample_fmts=flt -f f32le -",
             path);
    FILE *stream = popen(command, "r");
    assert_non_null(stream);
    *num_floats = fread(samples, sizeof *samples, MAX_FLOATS, stream);
    pclose(stream);
    return samples;
}

TEST_CASE(the_window_of_all_time_is_the_sound_that_ffmpeg_decodes)
{
    const weir_audio_config config = { 0 };
    for (size_t i = 0; i < LENGTH(clips); i += EVERY_CLIP) {
        const char *path = make_clip(i);
        size_t num_floats;
        if (!path)
            continue;
        weir_audio *whole = whole_of(path, &config);
        float *expected = ffmpeg_samples(path, &num_floats);
        if (num_floats != whole->num_samples * whole->channels)
            fail_msg("%s: %" PRIu64 " samples, ffmpeg gives %zu values", path, whole->num_samples, num_floats);
        assert_memory_equal(whole->data, expected, num_floats * sizeof *expected);
        free(expected);
        weir_audio_free(whole);
    }
}

TEST_CASE(the_window_of_all_time_is_the_sound_of_the_stage)
{
    static const weir_audio_config configs[] = { { .planar = true }, { .sample_rate = 16000, .channels = 1 } };
    for (size_t i = 0; i < LENGTH(configs); i++) {
        const char *path = make_clip(0);
        weir_error error = { 0 };
        uint64_t size_bytes;
        weir_audio *whole = whole_of(path, &configs[i]);
        weir_audio *expected = result_of_path(path, &weir_audio_decode, &configs[i], &size_bytes, &error);
        assert_non_null(expected);
        assert_int_equal(whole->num_samples, expected->num_samples);
        assert_memory_equal(whole->data, expected->data, whole->num_samples * whole->channels * sizeof *whole->data);
        assert_string_equal(whole->codec, expected->codec);
        assert_int_equal(whole->stream_index, expected->stream_index);
        assert_int_equal(whole->source_sample_rate, expected->source_sample_rate);
        assert_int_equal(whole->memory_bytes, expected->memory_bytes);
        weir_audio_free(expected);
        weir_audio_free(whole);
    }
}

/* ---- the clock of the frames ------------------------------------------------------------------------------------ */

static const char *named_clip(const char *name)
{
    for (size_t i = 0; i < LENGTH(clips); i++) {
        if (strcmp(clips[i].name, name) == 0)
            return make_clip(i);
    }
    fail_msg("there is no clip %s", name);
    return NULL;
}

TEST_CASE(times_count_from_the_first_frame_of_the_video)
{
    static const struct {
        const char *name;
        int64_t start_ns;
    } starts[] = {
        /* where an edit list delays it, ffmpeg gives the encoder's first 1024 samples, too */
        { "late.mp4", 1676009070 },
        { "early.mkv", -927000000 },
        { "aac.mp4", 0 },
        { "opus.mkv", -7000000 },
    };
    const weir_audio_config config = { 0 };
    for (size_t i = 0; i < LENGTH(starts); i++) {
        weir_video_reader *reader = reader_of(named_clip(starts[i].name));
        for (int is_scanned = 0; is_scanned < 2; is_scanned++) { /* before the frames are known, and afterwards */
            if (is_scanned)
                assert_int_equal(weir_video_reader_scan(reader, NULL), WEIR_OK);
            weir_audio *audio = sound_of(reader, &config, -2 * SECOND, 3 * SECOND);
            if (llabs(audio->start_ns - starts[i].start_ns) > 2000000)
                fail_msg("%s: its sound begins at %" PRId64, starts[i].name, audio->start_ns);
            weir_audio_free(audio);
        }
        weir_video_reader_free(reader);
    }
}

TEST_CASE(the_windows_of_frames_join_without_a_seam)
{
    const weir_audio_config config = { 0 };
    const char *path = named_clip("aac.mp4");
    weir_video_reader *reader = reader_of(path);
    weir_audio *whole = whole_of(path, &config);
    weir_frame_times *times = NULL;
    assert_int_equal(weir_video_reader_times(reader, &times, NULL), WEIR_OK);
    uint64_t next = 0;
    for (uint64_t i = 0; i + 8 <= 240; i += 8) { /* 8 / 25 s are 14112 samples */
        weir_audio *audio = sound_of(reader, &config, times->times_ns[i], times->times_ns[i + 8]);
        assert_int_equal(audio->num_samples, 14112);
        assert_part(path, audio, whole, next, 0);
        next += audio->num_samples;
        weir_audio_free(audio);
    }
    weir_frame_times_free(times);
    weir_audio_free(whole);
    weir_video_reader_free(reader);
}

TEST_CASE(a_gap_in_the_times_is_silence)
{
    static const clip gaps[] = {
        { "gap.mkv", PICTURES SOUND("48000") "-af \"aselect='not(between(t,9,12))'\" " H264 "-c:a pcm_s16le", 0 },
        { "gap.mp4", PICTURES SOUND("48000") "-af \"aselect='not(between(t,9,12))'\" " H264 "-c:a flac -strict -2",
          0 },
    };
    const weir_audio_config config = { 0 };
    for (size_t i = 0; i < LENGTH(gaps); i++) {
        const char *path = clips_make(gaps[i].name, gaps[i].arguments);
        weir_audio *whole = whole_of(path, &config);
        assert_in_range(whole->num_samples, 2940 * 480, 2960 * 480);
        for (uint64_t j = 95 * 4800; j < 115 * 4800; j++)
            assert_true(value_at(whole, j, 0) == 0 && value_at(whole, j, 1) == 0);
        weir_video_reader *reader = reader_of(path);
        expect_window(gaps[i].name, reader, &config, whole, 20 * SECOND, 21 * SECOND, 0);
        expect_window(gaps[i].name, reader, &config, whole, 8 * SECOND, 13 * SECOND, 0);
        expect_random_windows(gaps[i].name, reader, &config, whole, 12, 0);
        weir_video_reader_free(reader);
        weir_audio_free(whole);
    }
}

/* ---- where the bytes come from ---------------------------------------------------------------------------------- */

/* A file that is read by functions. */
typedef struct store {
    weir_bytes *bytes;
    size_t position;
    uint64_t num_bytes; /* read */
    unsigned num_reads;
    unsigned failing_read; /* counted from 1; 0 = none */
} store;

static int64_t read_store(void *self, uint8_t *data, size_t num_bytes)
{
    store *file = self;
    size_t left_bytes = file->bytes->size_bytes - file->position;
    if (++file->num_reads == file->failing_read) {
        file->position = file->bytes->size_bytes / 2;
        return WEIR_EDATA;
    }
    num_bytes = num_bytes < left_bytes ? num_bytes : left_bytes;
    memcpy(data, file->bytes->data + file->position, num_bytes);
    file->position += num_bytes;
    file->num_bytes += num_bytes;
    return (int64_t)num_bytes;
}

static int seek_store(void *self, int64_t position)
{
    ((store *)self)->position = (size_t)position;
    return WEIR_OK;
}

static weir_file_functions functions_of(store *file, bool seeks)
{
    return (weir_file_functions){
        .self = file,
        .read = read_store,
        .seek = seeks ? seek_store : NULL,
        .size_bytes = seeks ? (int64_t)file->bytes->size_bytes : 0,
    };
}

static weir_video_reader *reader_of_source(const weir_video_source *source, const weir_video_config *config)
{
    weir_video_reader *reader = NULL;
    weir_error error = { 0 };
    if (weir_video_reader_open(&reader, source, sizeof *source, config, config ? sizeof *config : 0, &error) !=
        WEIR_OK)
        fail_msg("%s", error.message);
    return reader;
}

TEST_CASE(the_sound_is_the_same_wherever_the_bytes_come_from)
{
    const weir_audio_config config = { .sample_rate = 16000 };
    const weir_video_config pipes = { WEIR_WITH_INPUT(.allow = WEIR_ALLOW_PIPES) };
    static const char *const names[] = { "aac.mp4", "opus.mkv", "pcm.avi", "aac.ts" };
    for (size_t i = 0; i < LENGTH(names); i++) {
        const char *path = named_clip(names[i]);
        char fifo[512], command[2048];
        snprintf(fifo, sizeof fifo, "%s.fifo", path);
        snprintf(command, sizeof command, "mkfifo '%s' && { cat '%s' >'%s' & }", fifo, path, fifo);
        assert_int_equal(system(command), 0); /* NOLINT: the test's own paths */
        store file = { .bytes = bytes_of_file(path, path) };
        weir_file_functions seeks = functions_of(&file, true), streams = functions_of(&file, false);
        const weir_video_source sources[] = {
            { .bytes = file.bytes },
            { .functions = &seeks, .functions_size = sizeof seeks, .name = path },
            { .functions = &streams, .functions_size = sizeof streams, .name = path },
            { .path = fifo },
        };
        weir_audio *whole = whole_of(path, &config);
        for (size_t j = 0; j < LENGTH(sources); j++) {
            file.position = 0;
            weir_video_reader *reader = reader_of_source(&sources[j], sources[j].path ? &pipes : NULL);
            expect_random_windows(names[i], reader, &config, whole, 4, 0);
            weir_video_reader_free(reader);
        }
        weir_audio_free(whole);
        weir_bytes_free(file.bytes);
    }
}

TEST_CASE(a_window_between_frames_disturbs_neither_even_if_both_read_one_file)
{
    const weir_audio_config config = { 0 };
    const weir_sampling every = { .what = WEIR_SAMPLE_EVERY, .every = 5 };
    const char *path = named_clip("mp3.mkv");
    store file = { .bytes = bytes_of_file(path, path) };
    weir_file_functions seeks = functions_of(&file, true);
    const weir_video_source source = { .functions = &seeks, .functions_size = sizeof seeks, .name = path };
    weir_audio *whole = whole_of(path, &config);
    weir_video_reader *reader = reader_of_source(&source, NULL), *alone = reader_of(path);
    for (int is_plain = 0; is_plain < 2; is_plain++) {
        const weir_sampling *sampling = is_plain ? NULL : &every;
        size_t size = is_plain ? 0 : sizeof every;
        assert_int_equal(weir_video_reader_begin(reader, sampling, size, NULL, 0, NULL), WEIR_OK);
        assert_int_equal(weir_video_reader_begin(alone, sampling, size, NULL, 0, NULL), WEIR_OK);
        int rc;
        for (uint64_t i = 0;; i++) {
            weir_frames *frames = NULL, *expected = NULL;
            rc = weir_video_reader_next(alone, &expected, NULL);
            assert_int_equal(weir_video_reader_next(reader, &frames, NULL), rc);
            if (rc != WEIR_OK)
                break;
            assert_int_equal(frames->pts[0], expected->pts[0]);
            assert_memory_equal(frames->data, expected->data, frames->frame_bytes);
            int64_t start_ns = (int64_t)(i * 7 % 29) * SECOND;
            if (i % 9 == 0)
                expect_window(path, reader, &config, whole, start_ns, start_ns + SECOND / 3, 0);
            weir_frames_free(frames);
            weir_frames_free(expected);
        }
        assert_int_equal(rc, WEIR_EOF);
    }
    weir_video_reader_free(reader);
    weir_video_reader_free(alone);
    weir_audio_free(whole);
    weir_bytes_free(file.bytes);
}

TEST_CASE(a_window_reads_its_part_of_the_file)
{
    static const clip large[] = {
        { "large.mp4",
          "-f lavfi -i testsrc2=s=640x480:r=25:d=40 -f lavfi -i anoisesrc=a=0.2:d=40 "
          "-c:v mpeg4 -q:v 2 -g 25 -c:a aac",
          0 },
        { "large.mkv",
          "-f lavfi -i testsrc2=s=640x480:r=25:d=40 -f lavfi -i anoisesrc=a=0.2:d=40 "
          "-c:v mpeg4 -q:v 2 -g 25 -c:a aac",
          0 },
        { "large.avi",
          "-f lavfi -i testsrc2=s=640x480:r=25:d=40 -f lavfi -i anoisesrc=a=0.2:d=40 "
          "-c:v mpeg4 -q:v 2 -g 25 -c:a libmp3lame",
          0 },
    };
    const weir_audio_config config = { 0 };
    for (size_t i = 0; i < LENGTH(large); i++) {
        const char *path = clips_make(large[i].name, large[i].arguments);
        if (!path)
            continue;
        store file = { .bytes = bytes_of_file(path, path) };
        weir_file_functions seeks = functions_of(&file, true);
        const weir_video_source source = { .functions = &seeks, .functions_size = sizeof seeks, .name = path };
        weir_video_reader *reader = reader_of_source(&source, NULL);
        weir_audio_free(sound_of(reader, &config, 30 * SECOND, 31 * SECOND));
        if (file.num_bytes > file.bytes->size_bytes / 4)
            fail_msg("%s: %" PRIu64 " of %zu bytes were read", path, file.num_bytes, file.bytes->size_bytes);
        weir_video_reader_free(reader);
        weir_bytes_free(file.bytes);
    }
}

TEST_CASE(a_transport_stream_is_sought_once_its_frames_are_known)
{
    static const char *const names[] = { "aac.ts", "mp2.ts" };
    const weir_audio_config config = { 0 };
    for (size_t i = 0; i < LENGTH(names); i++) {
        const char *path = named_clip(names[i]);
        weir_audio *whole = whole_of(path, &config);
        store file = { .bytes = bytes_of_file(path, path) };
        weir_file_functions seeks = functions_of(&file, true);
        const weir_video_source source = { .functions = &seeks, .functions_size = sizeof seeks, .name = path };
        weir_video_reader *reader = reader_of_source(&source, NULL);
        assert_int_equal(weir_video_reader_scan(reader, NULL), WEIR_OK);
        weir_audio_free(sound_of(reader, &config, 0, SECOND));
        uint64_t num_bytes = file.num_bytes;
        weir_audio_free(sound_of(reader, &config, 25 * SECOND, 26 * SECOND));
        if (file.num_bytes - num_bytes > file.bytes->size_bytes / 2)
            fail_msg("%s: %" PRIu64 " of %zu bytes were read", path, file.num_bytes - num_bytes,
                     file.bytes->size_bytes);
        expect_random_windows(names[i], reader, &config, whole, 20, i ? 1.01F / 32768 : 0); /* MP2 is dithered */
        weir_video_reader_free(reader);
        weir_bytes_free(file.bytes);
        weir_audio_free(whole);
    }
}

TEST_CASE(windows_in_order_decode_on_also_where_there_is_no_seek)
{
    static const char *const names[] = { "vorbis.mkv", "aac.ts", "vorbis.ogv" };
    const weir_audio_config config = { .sample_rate = 16000 };
    for (size_t i = 0; i < LENGTH(names); i++) {
        const char *path = named_clip(names[i]);
        weir_audio *whole = whole_of(path, &config);
        store file = { .bytes = bytes_of_file(path, path) };
        weir_file_functions seeks = functions_of(&file, true);
        const weir_video_source source = { .functions = &seeks, .functions_size = sizeof seeks, .name = path };
        weir_video_reader *reader = reader_of_source(&source, NULL);
        for (int64_t start_ns = 0; start_ns < 28 * SECOND; start_ns += SECOND / 2)
            expect_window(path, reader, &config, whole, start_ns, start_ns + SECOND, 0);
        if (file.num_bytes > 3 * file.bytes->size_bytes)
            fail_msg("%s: %" PRIu64 " bytes were read, it has %zu", path, file.num_bytes, file.bytes->size_bytes);
        weir_video_reader_free(reader);
        weir_bytes_free(file.bytes);
        weir_audio_free(whole);
    }
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

static void assert_sound_fails(weir_video_reader *reader, const weir_audio_config *config, int64_t start_ns,
                               int64_t end_ns, int status, const char *said)
{
    weir_audio *audio = NULL;
    weir_error error = { 0 };
    assert_int_equal(weir_video_reader_sound(reader, config, sizeof *config, start_ns, end_ns, &audio, &error),
                     status);
    assert_null(audio);
    assert_int_equal(error.status, status);
    if (!strstr(error.message, said))
        fail_msg("%s", error.message);
}

TEST_CASE(what_cannot_be_given_fails_and_the_next_window_is_right)
{
    const weir_audio_config config = { 0 };
    const char *path = named_clip("aac.mp4");
    weir_audio *whole = whole_of(path, &config);
    weir_video_reader *reader = reader_of(path);
    assert_sound_fails(reader, &config, 40 * SECOND, 41 * SECOND, WEIR_ERANGE, "no samples in this window");
    assert_sound_fails(reader, &config, -2 * SECOND, -SECOND, WEIR_ERANGE, "no samples in this window");
    assert_sound_fails(reader, &config, SECOND, SECOND + 10, WEIR_ERANGE, "no samples in this window");
    assert_sound_fails(reader, &config, SECOND, SECOND, WEIR_EINVAL, "end_ns");
    assert_sound_fails(reader, &(weir_audio_config){ .channels = 1000 }, 0, SECOND, WEIR_EINVAL, "channels");
    assert_sound_fails(reader, &(weir_audio_config){ .stream = 2 }, 0, SECOND, WEIR_ENOTFOUND, "audio stream 2");
    assert_sound_fails(reader, &(weir_audio_config){ .max_bytes = 44100 * 8 - 1 }, SECOND, 2 * SECOND, WEIR_ELIMIT,
                       "max_bytes");
    weir_audio_free(sound_of(reader, &(weir_audio_config){ .max_bytes = 44100 * 8 }, SECOND, 2 * SECOND));
    weir_audio_free(sound_of(reader, &(weir_audio_config){ .max_bytes = 10 * 8 }, SECOND, SECOND + 226757));
    expect_random_windows("aac.mp4", reader, &config, whole, 3, 0);
    weir_video_reader_free(reader);
    weir_audio_free(whole);
}

TEST_CASE(after_the_end_of_the_sound_is_no_reason_to_decode_it_all)
{
    static const clip shorter[] = {
        { "short.mp4", PICTURES SOUND("44100") H264 "-c:a aac -aac_pns 0 -t 60", 0 },
        { "short.mkv", PICTURES SOUND("48000") H264 "-c:a libopus -t 60", 0 },
    };
    const weir_audio_config config = { 0 };
    for (size_t i = 0; i < LENGTH(shorter); i++) {
        const char *path = clips_make(shorter[i].name, shorter[i].arguments);
        weir_audio *whole = whole_of(path, &config);
        store file = { .bytes = bytes_of_file(path, path) };
        weir_file_functions seeks = functions_of(&file, true);
        const weir_video_source source = { .functions = &seeks, .functions_size = sizeof seeks, .name = path };
        weir_video_reader *reader = reader_of_source(&source, NULL);
        weir_audio_free(sound_of(reader, &config, 0, SECOND));
        uint64_t num_bytes = file.num_bytes;
        assert_sound_fails(reader, &config, 35 * SECOND, 36 * SECOND, WEIR_ERANGE, "no samples in this window");
        assert_sound_fails(reader, &config, 3500 * SECOND, 3600 * SECOND, WEIR_ERANGE, "no samples in this window");
        assert_sound_fails(reader, &config, INT64_MAX / 2, INT64_MAX, WEIR_ERANGE, "no samples in this window");
        assert_sound_fails(reader, &config, INT64_MIN, -INT64_MAX, WEIR_ERANGE, "no samples in this window");
        if (file.num_bytes - num_bytes > file.bytes->size_bytes * 3 / 4)
            fail_msg("%s: %" PRIu64 " of %zu bytes were read", path, file.num_bytes - num_bytes,
                     file.bytes->size_bytes);
        expect_window(path, reader, &config, whole, 28 * SECOND, 40 * SECOND, 0);
        expect_random_windows(path, reader, &config, whole, 4, 0);
        weir_video_reader_free(reader);
        weir_bytes_free(file.bytes);
        weir_audio_free(whole);
    }
}

TEST_CASE(a_video_without_sound_says_so_and_gives_its_frames)
{
    const weir_audio_config config = { 0 };
    const char *path = clips_make("silent.mp4", "-f lavfi -i testsrc2=s=64x48:d=1 -c:v mpeg4");
    weir_frames *frames = NULL;
    weir_video_reader *reader = reader_of(path);
    assert_sound_fails(reader, &config, 0, SECOND, WEIR_EUNSUPPORTED, "it has no audio");
    assert_int_equal(weir_video_reader_frames(reader, NULL, 0, NULL, 0, &frames, NULL), WEIR_OK);
    assert_int_equal(frames->num_frames, 25);
    weir_frames_free(frames);
    weir_video_reader_free(reader);
}

TEST_CASE(a_source_that_is_read_once_has_no_sound)
{
    const weir_video_source source = { .path = named_clip("aac.mp4"), .one_request = true };
    weir_video_reader *reader = reader_of_source(&source, NULL);
    assert_sound_fails(reader, &(weir_audio_config){ 0 }, 0, SECOND, WEIR_EINVAL, "one_request");
    weir_video_reader_free(reader);
}

typedef struct patience {
    unsigned num_asked;
    unsigned stop_at; /* 0 = never */
} patience;

static bool has_enough(void *self)
{
    patience *p = self;
    return ++p->num_asked >= p->stop_at && p->stop_at;
}

/* Draws when it stops, or which read fails, and asks again. */
TEST_CASE(after_a_window_that_was_stopped_or_failed_the_next_one_is_right)
{
    static const char *const names[] = { "aac.mp4", "opus.mkv", "vorbis.mkv" };
    const weir_audio_config config = { .sample_rate = 22050 };
    for (size_t i = 0; i < LENGTH(names); i++) {
        const char *path = named_clip(names[i]);
        weir_audio *whole = whole_of(path, &config);
        store file = { .bytes = bytes_of_file(path, path) };
        weir_file_functions seeks = functions_of(&file, true);
        patience patient = { 0 };
        const weir_video_source source = { .functions = &seeks,
                                           .functions_size = sizeof seeks,
                                           .name = path,
                                           .should_stop = has_enough,
                                           .self = &patient };
        unsigned num_stopped = 0, num_failed = 0;
        uint64_t draw = 5 + i;
        weir_video_reader *reader = reader_of_source(&source, NULL);
        for (unsigned j = 0; j < 40; j++) {
            weir_audio *audio = NULL;
            int64_t start_ns = (int64_t)weir__random_below(&draw, 25) * SECOND;
            unsigned when = 1 + (unsigned)weir__random_below(&draw, 30);
            patient = (patience){ .stop_at = j % 2 ? when * 3 : 0 };
            file.failing_read = j % 2 ? 0 : file.num_reads + 1 + when / 8;
            int rc =
                weir_video_reader_sound(reader, &config, sizeof config, start_ns, start_ns + SECOND, &audio, NULL);
            num_stopped += rc == WEIR_ESTOPPED;
            num_failed += rc == WEIR_EDATA;
            assert_true(rc == WEIR_OK || rc == (j % 2 ? WEIR_ESTOPPED : WEIR_EDATA));
            weir_audio_free(audio);
            patient.stop_at = file.failing_read = 0;
            expect_window(path, reader, &config, whole, start_ns, start_ns + SECOND, 0);
        }
        assert_true(num_stopped >= 3 && num_failed >= 3);
        weir_video_reader_free(reader);
        weir_bytes_free(file.bytes);
        weir_audio_free(whole);
    }
}

TEST_CASE(damage_inside_a_window_is_counted_and_does_not_move_the_rest)
{
    const weir_audio_config config = { 0 };
    const char *path = named_clip("flac.mkv");
    weir_audio *whole = whole_of(path, &config);
    weir_bytes *bytes = bytes_of_file(path, path);
    memset(bytes->data + bytes->size_bytes / 2, 0x55, 30000); /* some clusters are lost */
    const weir_video_source source = { .bytes = bytes };
    weir_video_reader *reader = reader_of_source(&source, NULL);
    for (int i = 0; i < 2; i++) { /* decoded through the damage, and after a seek behind it */
        weir_audio_free(sound_of(reader, &config, 0, (i ? 30 : 1) * SECOND));
        expect_window(path, reader, &config, whole, 27 * SECOND, 28 * SECOND, 0);
    }
    weir_audio *all = sound_of(reader, &config, INT64_MIN, INT64_MAX);
    assert_int_equal(all->num_samples, whole->num_samples);
    uint64_t late = (uint64_t)whole->sample_rate * 28;
    assert_memory_equal(all->data + late * 2, whole->data + late * 2, sizeof(float) * 2 * 44100);
    weir_audio_free(all);
    weir_video_reader_free(reader);
    weir_bytes_free(bytes);
    weir_audio_free(whole);
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
