/* The audio decode stage, in a pipeline, compared with the output of the ffmpeg program. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

#include <weir/arrays.h>
#include <weir/audio.h>
#include <weir/engine.h>
#include <weir/files.h>
#include <weir/isolated.h>
#include <weir/video.h>

#include "tests/bytes_source.h"
#include "tests/clips.h"
#include "tests/result.h"

/* The only item's samples, to be freed with weir_audio_free(), or NULL with *error filled. */
static weir_audio *decode(const weir_op *source, const void *source_config, const weir_audio_config *config,
                          weir_error *error)
{
    uint64_t size_bytes;
    weir_audio *audio = result_of(source, source_config, &weir_audio_decode, config, &size_bytes, error);
    if (audio)
        assert_int_equal(size_bytes, audio->memory_bytes);
    return audio;
}

static weir_audio *decode_path(const char *path, const weir_audio_config *config, weir_error *error)
{
    return decode(&weir_list_source, &(weir_list_config){ .paths = &path, .num_paths = 1 }, config, error);
}

static weir_audio *decode_whole(const char *path, const weir_audio_config *config)
{
    weir_error error = { 0 };
    weir_audio *audio = decode_path(path, config, &error);
    if (!audio)
        fail_msg("%s: %s", path, error.message);
    return audio;
}

/* What `ffmpeg -i path OPTIONS -f f32le` gives, interleaved; to be freed. */
static float *ffmpeg_samples(const char *path, const char *options, size_t *num_floats)
{
    char command[4096];
    enum { MAX_FLOATS = 1 << 22 };
    float *samples = malloc(MAX_FLOATS * sizeof *samples);
    assert_non_null(samples);
    snprintf(command, sizeof command, "ffmpeg -nostdin -v quiet -i '%s' %s -f f32le -c:a pcm_f32le -", path, options);
    FILE *stream = popen(command, "r");
    assert_non_null(stream);
    *num_floats = fread(samples, sizeof *samples, MAX_FLOATS, stream);
    pclose(stream);
    return samples;
}

/* Both the same, but for the last bits of a float, which depend on how the samples were cut into frames. */
static void assert_as_ffmpeg(const char *path, const weir_audio_config *config, const char *options)
{
    size_t num_floats;
    float *expected = ffmpeg_samples(path, options, &num_floats);
    weir_audio *audio = decode_whole(path, config);
    assert_true(num_floats > 0);
    if (audio->num_samples * audio->channels != num_floats)
        fail_msg("%s %s: %" PRIu64 " samples of %u channels, ffmpeg gives %zu values", path, options,
                 audio->num_samples, audio->channels, num_floats);
    for (uint64_t i = 0; i < audio->num_samples; i++) {
        for (uint32_t channel = 0; channel < audio->channels; channel++) {
            float value = audio->planar ? audio->data[channel * audio->num_samples + i]
                                        : audio->data[i * audio->channels + channel];
            float wanted = expected[i * audio->channels + channel];
            if (fabsf(value - wanted) > 2e-6F)
                fail_msg("%s %s: sample %" PRIu64 " of channel %u is %g, ffmpeg gives %g", path, options, i, channel,
                         (double)value, (double)wanted);
        }
    }
    assert_int_equal(audio->num_errors, 0);
    free(expected);
    weir_audio_free(audio);
}

#define TWO_TONES \
    "-f lavfi -i sine=f=440:d=1.5:r=44100 -f lavfi -i sine=f=880:d=1.5:r=44100 -filter_complex amerge=inputs=2 "

static const struct clip {
    const char *name;
    const char *arguments;
} clips[] = {
    { "a.wav", TWO_TONES "-c:a pcm_s16le" },
    { "a24.wav", TWO_TONES "-c:a pcm_s24le" },
    { "a.flac", TWO_TONES "-c:a flac" },
    { "a.m4a", TWO_TONES "-c:a aac" },
    { "a.mp3", TWO_TONES "-c:a libmp3lame" },
    { "a.opus", TWO_TONES "-c:a libopus -ar 48000" },
    { "a.ogg", TWO_TONES "-c:a libvorbis" },
    { "mono.wav", "-f lavfi -i sine=d=0.7:r=22050 -c:a pcm_u8" },
    { "surround.flac", "-f lavfi -i sine=d=0.7:r=48000 -af 'pan=5.1|FL=c0|FR=0.5*c0|FC=0.2*c0|BL=c0' -c:a flac" },
    { "video.mp4", "-f lavfi -i testsrc2=s=160x120:d=1 -f lavfi -i sine=d=1:r=44100 -c:v mpeg4 -c:a aac -shortest" },
    { "video.ts", "-f lavfi -i testsrc2=s=160x120:d=1 -f lavfi -i sine=d=1:r=44100 -c:v mpeg4 -c:a aac -shortest" },
};

static void assert_clips_as_ffmpeg(const weir_audio_config *config, const char *options)
{
    for (size_t i = 0; i < sizeof clips / sizeof clips[0]; i++) {
        const char *path = clips_make(clips[i].name, clips[i].arguments);
        if (path)
            assert_as_ffmpeg(path, config, options);
    }
}

TEST_CASE(samples_are_ffmpegs)
{
    assert_clips_as_ffmpeg(&(weir_audio_config){ 0 }, "");
    assert_clips_as_ffmpeg(&(weir_audio_config){ .planar = true }, "");
}

TEST_CASE(resampled_and_mixed_samples_are_ffmpegs)
{
    assert_clips_as_ffmpeg(&(weir_audio_config){ .sample_rate = 16000, .channels = 1 }, "-ar 16000 -ac 1");
    assert_clips_as_ffmpeg(&(weir_audio_config){ .sample_rate = 48000, .channels = 2, .planar = true },
                           "-ar 48000 -ac 2");
}

TEST_CASE(the_result_tells_what_it_is)
{
    const char *path = clips_make("a.flac", TWO_TONES "-c:a flac");
    weir_audio *audio = decode_whole(path, &(weir_audio_config){ .sample_rate = 22050, .planar = true });
    assert_string_equal(audio->codec, "flac");
    assert_int_equal(audio->sample_rate, 22050);
    assert_int_equal(audio->channels, 2);
    assert_int_equal(audio->source_sample_rate, 44100);
    assert_int_equal(audio->source_channels, 2);
    assert_int_equal(audio->start_ns, 0);
    assert_in_range(audio->num_samples, 33075 - 32, 33075 + 32);
    assert_true(audio->memory_bytes >= audio->num_samples * 2 * sizeof(float));

    const weir_decode_cost cost = audio->cost;
    assert_string_equal(cost.codec, "flac");
    assert_true(cost.size_bytes > 1000 && cost.width == 0);
    assert_true(cost.open_ns > 0 && cost.demux_ns > 0 && cost.decode_ns > 0 && cost.scale_ns > 0);

    weir_error error = { 0 };
    const char *npy = clips_path("audio.npy");
    char header[256] = { 0 };
    char shape[64];
    assert_int_equal(weir_write_npy(&(weir_item){ .data = audio, .type = WEIR_TYPE_AUDIO }, npy, &error), WEIR_OK);
    FILE *file = fopen(npy, "rb");
    assert_non_null(file);
    assert_true(fread(header, 1, sizeof header - 1, file) > 0);
    fclose(file);
    snprintf(shape, sizeof shape, "f4', 'fortran_order': False, 'shape': (2, %" PRIu64 ", )", audio->num_samples);
    assert_non_null(strstr(header + 10, shape));
    weir_audio_free(audio);
}

TEST_CASE(samples_from_memory_are_those_from_the_file)
{
    weir_error error = { 0 };
    const char *path = clips_make("a.flac", TWO_TONES "-c:a flac");
    weir_audio *expected = decode_whole(path, &(weir_audio_config){ 0 });
    weir_bytes *bytes = bytes_of_file(path, NULL);
    bytes->next = bytes_of_file(path, "sidecar");
    weir_audio *audio =
        decode(&bytes_source, &(bytes_source_config){ .files = &bytes, .num_files = 1 }, NULL, &error);
    assert_non_null(audio);
    assert_int_equal(audio->num_samples, expected->num_samples);
    assert_memory_equal(audio->data, expected->data, audio->num_samples * audio->channels * sizeof(float));
    assert_string_equal(audio->sidecars->name, "sidecar");
    weir_audio_free(audio);
    weir_audio_free(expected);
}

static void assert_fails(const char *path, const weir_audio_config *config, int status, const char *said)
{
    weir_error error = { 0 };
    weir_audio *audio = decode_path(path, config, &error);
    assert_null(audio);
    if (error.status != status || !strstr(error.message, said))
        fail_msg("%s: %s: %s", path, weir_status_name(error.status), error.message);
}

TEST_CASE(what_is_no_audio_fails_and_says_why)
{
    const weir_audio_config plain = { 0 };
    const char *text = clips_path("text.wav");
    clips_write_text(text, "this is no audio at all, whatever its name says");
    assert_fails(text, &plain, WEIR_EDATA, "cannot open");
    assert_fails(clips_path("missing.wav"), &plain, WEIR_ENOTFOUND, "No such file");
    assert_fails(clips_make("silent.mp4", "-f lavfi -i testsrc2=s=160x120:d=1 -c:v mpeg4"), &plain, WEIR_EUNSUPPORTED,
                 "it has no audio");
    const char *path = clips_make("a.flac", TWO_TONES "-c:a flac");
    assert_fails(path, &(weir_audio_config){ .max_bytes = 100000 }, WEIR_ELIMIT, "max_bytes");
}

TEST_CASE(what_is_cut_off_gives_what_is_there)
{
    const char *whole = clips_make("a.flac", TWO_TONES "-c:a flac");
    weir_audio *audio = decode_whole(clips_cut(whole, "cut.flac", 40000), &(weir_audio_config){ 0 });
    assert_in_range(audio->num_samples, 4096, 66150 - 1);
    weir_audio_free(audio);
}

TEST_CASE(impossible_options_are_refused)
{
    static const weir_audio_config bad[] = { { .channels = 1000 }, { .sample_rate = 1U << 30 } };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        weir_pipeline *pipeline = NULL;
        weir_error error = { 0 };
        weir_builder *builder = weir_builder_new();
        weir_source_list(builder, &(weir_list_config){ .may_be_empty = true }, NULL);
        weir_pipe_audio(builder, &bad[i], NULL);
        weir_builder_sink(builder, NULL);
        assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_EINVAL);
    }
}

/* ---- together with the video ---------------------------------------------------------------------------------- */

static weir_frames *decode_both(const char *path, const weir_video_config *video, weir_error *error)
{
    uint64_t size_bytes;
    weir_frames *frames = result_of(&weir_list_source, &(weir_list_config){ .paths = &path, .num_paths = 1 },
                                    &weir_video_decode, video, &size_bytes, error);
    if (frames)
        assert_int_equal(size_bytes, frames->memory_bytes);
    return frames;
}

TEST_CASE(one_read_gives_video_and_sound)
{
    weir_error error = { 0 };
    const weir_audio_config mono = { .sample_rate = 8000, .channels = 1 };
    weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32),
                                WEIR_WITH_INPUT(.allow = WEIR_ALLOW_PIPES), .audio = &mono,
                                .audio_size = sizeof mono };
    char command[2048], fifo[512]; /* what is read from a fifo cannot be read again */
    snprintf(fifo, sizeof fifo, "%s", clips_path("fifo"));
    snprintf(command, sizeof command, "mkfifo '%s' && { cat '%s' >'%s' & }", fifo, clips_path("video.ts"), fifo);
    assert_int_equal(system(command), 0); /* NOLINT: the test's own paths */
    weir_frames *frames[3];
    for (int i = 0; i < 3; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s", i == 0 ? clips_path("video.mp4") : i == 1 ? fifo : clips_path("video.ts"));
        frames[i] = decode_both(path, &video, &error);
        if (!frames[i])
            fail_msg("%s: %s", path, error.message);
        assert_non_null(frames[i]->audio);
        if (i == 1)
            continue;
        weir_audio *alone = decode_whole(path, &mono);
        assert_int_equal(frames[i]->audio->num_samples, alone->num_samples);
        assert_memory_equal(frames[i]->audio->data, alone->data, alone->num_samples * sizeof *alone->data);
        weir_audio_free(alone);
    }
    assert_int_equal(frames[1]->num_frames, frames[2]->num_frames);
    assert_memory_equal(frames[1]->data, frames[2]->data, frames[1]->num_frames * frames[1]->frame_bytes);
    assert_int_equal(frames[1]->audio->num_samples, frames[2]->audio->num_samples);
    video.chunk_frames = 10; /* the sound is in the last one */
    video.sampling = (weir_sampling){ .what = WEIR_SAMPLE_UNIFORM, .count = 4 };
    weir_frames *few = decode_both(clips_path("video.mp4"), &video, &error);
    assert_int_equal(few->num_frames, 4);
    assert_int_equal(few->audio->num_samples, frames[0]->audio->num_samples);
    assert_true(few->cost.decode_ns >= few->audio->cost.decode_ns);
    weir_frames_free(few);
    for (int i = 0; i < 3; i++)
        weir_frames_free(frames[i]);
}

TEST_CASE(a_silent_video_has_no_sound_and_a_broken_one_fails)
{
    weir_error error = { 0 };
    const weir_audio_config audio = { 0 };
    const weir_video_config video = { .audio = &audio, .audio_size = sizeof audio };
    weir_frames *frames = decode_both(clips_path("silent.mp4"), &video, &error);
    assert_non_null(frames);
    assert_null(frames->audio);
    weir_frames_free(frames);
    assert_null(decode_both("/nowhere/at/all.mp4", &video, &error));
    assert_int_equal(error.status, WEIR_ENOTFOUND);
    const weir_audio_config small = { .max_bytes = 100 };
    assert_null(decode_both(clips_path("video.mp4"),
                            &(weir_video_config){ .audio = &small, .audio_size = sizeof small }, &error));
    assert_int_equal(error.status, WEIR_ELIMIT);
}

TEST_CASE(wrong_options_of_the_sound_are_refused)
{
    const weir_audio_config audio = { .channels = 1000 };
    const weir_video_config video = { .audio = &audio, .audio_size = sizeof audio };
    const char *path = "a.mp4";
    for (int i = 0; i < 2; i++) {
        weir_pipeline *pipeline;
        weir_error error = { 0 };
        weir_isolated_config around = {
            .op = &weir_video_decode, .config = &video, .config_size = sizeof video, .no_sandbox = NO_SANDBOX
        };
        weir_builder *builder = weir_builder_new();
        weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
        if (i)
            weir_pipe_isolated(builder, &around, NULL);
        else
            weir_pipe_video(builder, &video, NULL);
        weir_builder_sink(builder, NULL);
        assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), i ? WEIR_EUNSUPPORTED : WEIR_EINVAL);
        assert_non_null(strstr(error.message, i ? "audio together with video" : "channels"));
    }
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
