/* Malicious files and files broken in unusual ways: what they can access, which resources they use, and what is
   reported. */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
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

#include <weir/audio.h>
#include <weir/engine.h>
#include <weir/files.h>
#include <weir/image.h>
#include <weir/isolated.h>
#include <weir/video.h>

#include "tests/clips.h"

enum { SIDE = 16 };

static const char clip_arguments[] =
    "-f lavfi -i testsrc2=s=176x144:d=1:r=10 -c:v libx264 -preset veryfast -pix_fmt yuv420p";

static const weir_video_config small = { WEIR_WITH_PICTURE(.width = SIDE, .height = SIDE) };

/* ---- one file through a pipeline ------------------------------------------------------------------------------ */

static weir_pipeline *start(const char *path, const weir_op *op, const void *config, int64_t deadline_ns)
{
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_builder_pipe(builder, op, config, op->config_size,
                      &(weir_stage_options){ .name = "decode", .task_deadline_ns = deadline_ns });
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return pipeline;
}

/* Its only item, or false with *error filled. */
static bool run(const char *path, const weir_op *op, const void *config, weir_item *item, weir_error *error)
{
    weir_pipeline *pipeline = start(path, op, config, 0);
    weir_item more;
    bool has_item = weir_pipeline_next(pipeline, item, WEIR_FOREVER) == WEIR_OK;
    if (has_item)
        assert_int_equal(weir_pipeline_next(pipeline, &more, WEIR_FOREVER), WEIR_EOF);
    *error = (weir_error){ 0 };
    weir_pipeline_error(pipeline, "decode", error);
    weir_pipeline_free(pipeline);
    return has_item;
}

static weir_frames *decode(const char *path, const weir_video_config *config)
{
    weir_item item = { 0 };
    weir_error error = { 0 };
    if (!run(path, &weir_video_decode, config, &item, &error))
        fail_msg("%s: %s", path, error.message);
    weir_frames *frames = item.data;
    item.data = NULL;
    weir_item_release(&item);
    return frames;
}

static uint32_t count_frames(const char *path, const weir_video_config *config)
{
    weir_frames *frames = decode(path, config);
    uint32_t num_frames = frames->num_frames;
    weir_frames_free(frames);
    return num_frames;
}

static void assert_stage_fails(const char *path, const weir_op *op, const void *config, int status, const char *text)
{
    weir_item item = { 0 };
    weir_error error = { 0 };
    assert_false(run(path, op, config, &item, &error));
    if (error.status != status || !strstr(error.message, text))
        fail_msg("%s: %s (%s), not %s", path, error.message, weir_status_name(error.status), text);
}

static void assert_fails(const char *path, const weir_video_config *config, int status, const char *text)
{
    assert_stage_fails(path, &weir_video_decode, config, status, text);
}

static const char *make_clip(void)
{
    return clips_make("clip.mp4", clip_arguments);
}

static const char *write_text(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static const char *write_text(const char *name, const char *format, ...)
{
    char text[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *path = clips_path(name);
    clips_write_text(path, text);
    return path;
}

static weir_video_config with_pipes(void)
{
    static const weir_input_config pipes = { .allow = WEIR_ALLOW_PIPES };
    weir_video_config config = small;
    config.input = &pipes;
    config.input_size = sizeof pipes;
    return config;
}

/* ---- files that name others ------------------------------------------------------------------------------------ */

static const char hls_head[] = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n";

static const char *make_playlist(const char *name)
{
    return write_text(name, "%s#EXTINF:1,\n%s\n#EXT-X-ENDLIST\n", hls_head, clips_make("segment.ts", clip_arguments));
}

TEST_CASE(files_that_name_others_are_refused_whatever_they_are_called)
{
    static const char list[] = "a list of other files", protocol[] = "is none of http,https";
    const char *clip = make_clip();
    weir_item item = { 0 };
    weir_error error = { 0 };
    assert_false(
        run(make_playlist("hls.mp4"), &weir_video_decode, &small, &item, &error)); /* FFmpeg 7 checks the name */
    assert_fails(make_playlist("hls.m3u8"), &small, WEIR_EUNSUPPORTED, list);
    assert_fails(write_text("concat.mp4", "ffconcat version 1.0\nfile %s\n", clip), &small, WEIR_EUNSUPPORTED, list);
    assert_fails(write_text("session.mp4", "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
                                           "m=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n"),
                 &small, WEIR_EUNSUPPORTED, list);
    char url[4200];
    snprintf(url, sizeof url, "concat:%s", clip);
    assert_fails(url, &small, WEIR_EUNSUPPORTED, protocol);
    assert_fails("data:video/mp4;base64,AAAA", &small, WEIR_EUNSUPPORTED, protocol);
    assert_fails("rtsp://127.0.0.1:1/x", &small, WEIR_EUNSUPPORTED, protocol);
}

/* A name with %d in it is a name, in the video and in the image stage. */
TEST_CASE(a_pattern_is_a_name)
{
    const char *other = clips_make("shot1.png", "-f lavfi -i color=red:s=32x32 -frames:v 1");
    const char *blue = clips_make("blue.png", "-f lavfi -i color=blue:s=64x64 -frames:v 1");
    const char *pattern = clips_path("shot%d.png");
    char command[9000];
    assert_non_null(other);
    snprintf(command, sizeof command, "cp '%s' '%s'", blue, pattern);
    assert_int_equal(system(command), 0);
    weir_frames *frames = decode(pattern, &(weir_video_config){ 0 });
    assert_int_equal(frames->num_frames, 1);
    assert_int_equal(frames->width, 64);
    weir_frames_free(frames);
    assert_fails(clips_path("missing%d.png"), &small, WEIR_ENOTFOUND, "No such file");
}

TEST_CASE(an_archive_is_not_a_video)
{
    assert_fails(write_text("shard.tar.gz", "none that FFmpeg knows"), &small, WEIR_EDATA, "--tar of weir record");
}

/* ---- pipes ------------------------------------------------------------------------------------------------------ */

TEST_CASE(pipes_are_refused_unless_asked_for)
{
    const char *fifo = clips_path("refused.mp4");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_fails(fifo, &small, WEIR_EUNSUPPORTED, "WEIR_ALLOW_PIPES");
    assert_fails("pipe:0", &small, WEIR_EUNSUPPORTED, "WEIR_ALLOW_PIPES");
    assert_fails("pipe:", &small, WEIR_EUNSUPPORTED, "WEIR_ALLOW_PIPES");
    assert_fails("fd:0", &small, WEIR_EUNSUPPORTED, "");
    assert_fails("/dev/zero", &small, WEIR_EUNSUPPORTED, "WEIR_ALLOW_PIPES");
    weir_image_config image = { WEIR_WITH_PICTURE(.width = SIDE, .height = SIDE) };
    weir_audio_config audio = { 0 };
    assert_stage_fails(fifo, &weir_image_decode, &image, WEIR_EUNSUPPORTED, "WEIR_ALLOW_PIPES");
    assert_stage_fails(fifo, &weir_audio_decode, &audio, WEIR_EUNSUPPORTED, "WEIR_ALLOW_PIPES");
}

/* Neither opening nor reading it waits for a writer. */
TEST_CASE(a_pipe_that_nobody_writes_to_is_left_at_the_deadline)
{
    const char *fifo = clips_path("silent.mp4");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    weir_video_config config = with_pipes();
    for (int sampled = 0; sampled < 2; sampled++) {
        config.sampling = sampled ? (weir_sampling){ .what = WEIR_SAMPLE_UNIFORM, .count = 2 } : (weir_sampling){ 0 };
        weir_pipeline *pipeline = start(fifo, &weir_video_decode, &config, 100 * WEIR_MILLISECOND);
        weir_error error = { 0 };
        weir_item item;
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
        weir_pipeline_error(pipeline, "decode", &error);
        assert_int_equal(error.status, WEIR_ETIMEDOUT);
        weir_pipeline_free(pipeline);
    }
}

/* Writes a file into a pipe. */
typedef struct writer {
    const char *from;
    const char *fifo;
} writer;

static void *write_main(void *argument)
{
    const writer *self = argument;
    char command[9000];
    snprintf(command, sizeof command, "cat '%s' >'%s' 2>/dev/null", self->from, self->fifo);
    (void)!system(command);
    return NULL;
}

static weir_frames *decode_piped(const char *name, const char *path, const weir_video_config *config,
                                 weir_error *error)
{
    writer w = { .from = path, .fifo = clips_path(name) };
    pthread_t thread;
    weir_item item = { 0 };
    assert_int_equal(mkfifo(w.fifo, 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_main, &w), 0);
    bool has_item = run(w.fifo, &weir_video_decode, config, &item, error);
    pthread_join(thread, NULL);
    weir_frames *frames = has_item ? item.data : NULL;
    item.data = NULL;
    weir_item_release(&item);
    return frames;
}

static void assert_same_piped(const char *name, const char *path, const weir_video_config *config)
{
    weir_error error = { 0 };
    weir_frames *piped = decode_piped(name, path, config, &error);
    if (!piped)
        fail_msg("%s: %s", name, error.message);
    weir_frames *frames = decode(path, config);
    assert_int_equal(piped->num_frames, frames->num_frames);
    assert_memory_equal(piped->data, frames->data, frames->num_frames * frames->frame_bytes);
    weir_frames_free(piped);
    weir_frames_free(frames);
}

/* 23 MB, more than is kept in memory, so that it is read twice. */
TEST_CASE(frames_can_be_chosen_from_a_pipe)
{
    const char *path = clips_make("long.y4m", "-f lavfi -i testsrc2=s=640x480:d=5:r=10 -pix_fmt yuv420p");
    weir_video_config config = with_pipes();
    assert_same_piped("all.y4m", path, &config);
    config.sampling = (weir_sampling){ .what = WEIR_SAMPLE_UNIFORM, .count = 4 };
    assert_same_piped("some.y4m", path, &config);

    weir_error error = { 0 };
    const weir_input_config input = { .allow = WEIR_ALLOW_PIPES, .max_pipe_bytes = 1 << 20 };
    config.input = &input;
    assert_null(decode_piped("much.y4m", path, &config, &error));
    assert_int_equal(error.status, WEIR_ELIMIT);
    assert_non_null(strstr(error.message, "max_pipe_bytes"));
}

TEST_CASE(animated_pictures_are_read_from_pipes)
{
    weir_video_config config = with_pipes();
    static const char source[] = "-f lavfi -i testsrc2=s=96x64:d=1:r=10 -plays 0";
    assert_same_piped("pipe.gif", clips_make("anim.gif", "-f lavfi -i testsrc2=s=96x64:d=1:r=10"), &config);
    assert_same_piped("pipe.apng", clips_make("anim.apng", source), &config);
}

/* ---- calls that the kernel does not end ------------------------------------------------------------------------- */

/* Takes the place of the C library's functions, for files with that in their names. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_open; /* nothing hangs any more */
    int num_hanging;
    atomic_int fd; /* reading it hangs; -1 = none */
} kernel = { .lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER, .fd = -1 };

static void hang(void)
{
    pthread_mutex_lock(&kernel.lock);
    kernel.num_hanging++;
    pthread_cond_broadcast(&kernel.opened);
    while (!kernel.is_open)
        pthread_cond_wait(&kernel.opened, &kernel.lock);
    kernel.num_hanging--;
    pthread_cond_broadcast(&kernel.opened);
    pthread_mutex_unlock(&kernel.lock);
}

static void await_hanging(int num_hanging)
{
    pthread_mutex_lock(&kernel.lock);
    while (kernel.num_hanging != num_hanging)
        pthread_cond_wait(&kernel.opened, &kernel.lock);
    pthread_mutex_unlock(&kernel.lock);
}

static void let_go(bool is_open)
{
    pthread_mutex_lock(&kernel.lock);
    kernel.is_open = is_open;
    pthread_cond_broadcast(&kernel.opened);
    pthread_mutex_unlock(&kernel.lock);
}

int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...);
    va_list arguments;
    va_start(arguments, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
    va_end(arguments);
    *(void **)&real = dlsym(RTLD_NEXT, "open");
    if (strstr(path, "open-hangs"))
        hang();
    int fd = real(path, flags, mode);
    if (strstr(path, "read-hangs"))
        kernel.fd = fd;
    return fd;
}

/* The same, as _FORTIFY_SOURCE calls it. */
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return open(path, flags);
}

ssize_t pread(int fd, void *to, size_t max_bytes, off_t position)
{
    ssize_t (*real)(int, void *, size_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "pread");
    if (atomic_compare_exchange_strong(&kernel.fd, &(int){ fd }, -1))
        hang();
    return real(fd, to, max_bytes, position);
}

static const char *copy_clip(const char *name)
{
    char command[9000];
    const char *path = clips_path(name);
    snprintf(command, sizeof command, "cp '%s' '%s'", make_clip(), path);
    assert_int_equal(system(command), 0);
    return path;
}

TEST_CASE(reads_and_opens_that_hang_are_left_behind)
{
    const char *const paths[] = { copy_clip("open-hangs.mp4"), copy_clip("read-hangs.mp4") };
    weir_video_config config = small;
    const weir_input_config input = { .io_thread = 1 };
    config.input = &input;
    config.input_size = sizeof input;
    for (int by_deadline = 0; by_deadline < 2; by_deadline++) {
        for (int i = 0; i < 2; i++) {
            let_go(false);
            weir_pipeline *pipeline =
                start(paths[i], &weir_video_decode, &config, by_deadline ? 100 * WEIR_MILLISECOND : 0);
            weir_item item;
            await_hanging(1);
            if (by_deadline)
                assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
            weir_pipeline_stop(pipeline);
            weir_pipeline_free(pipeline); /* would wait for the kernel */
            let_go(true);
            await_hanging(0);
        }
    }
    assert_int_equal(count_frames(paths[0], &config), 10);
    assert_int_equal(count_frames(paths[1], &config), 10);
}

/* The program opens the file for the child. */
TEST_CASE(an_open_that_hangs_is_left_behind_for_a_child_too)
{
    if (NO_SANDBOX)
        skip(); /* the child opens it */
    const weir_video_config video = { WEIR_WITH_PICTURE(.width = SIDE, .height = SIDE),
                                      WEIR_WITH_INPUT(.io_thread = 1) };
    const weir_isolated_config isolated = { .op = &weir_video_decode, .config = &video, .config_size = sizeof video };
    weir_item item;
    let_go(false);
    weir_pipeline *pipeline = start(copy_clip("open-hangs.mp4"), &weir_isolated, &isolated, 100 * WEIR_MILLISECOND);
    await_hanging(1);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
    weir_pipeline_free(pipeline); /* would wait for the kernel */
    let_go(true);
    await_hanging(0);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* Sixteen reference frames, which the level in the header does not declare. */
static const char *make_hoarder(void)
{
    return clips_make("hoarder.mp4",
                      "-f lavfi -i testsrc2=s=640x480:d=2:r=15 -c:v libx264 -preset ultrafast -pix_fmt "
                      "yuv420p -level 10 -x264-params ref=16:bframes=0:keyint=250");
}

TEST_CASE(a_decoder_that_takes_too_much_memory_is_stopped)
{
    weir_video_config config = small;
    weir_decoder_config decoder = { 0 };
    config.decoder = &decoder;
    config.decoder_size = sizeof decoder;
    const char *path = make_hoarder();
    assert_int_equal(count_frames(path, &config), 30);
    decoder.max_decoder_bytes = 6000000; /* eight frames */
    assert_fails(path, &config, WEIR_ELIMIT, "raise max_decoder_bytes");
    decoder.max_decoder_bytes = 100000; /* not one */
    assert_fails(path, &config, WEIR_ELIMIT, "decoding h264 of 640×480 needs about");
    decoder = (weir_decoder_config){ .max_all_decoder_bytes = 6000000 };
    assert_fails(path, &config, WEIR_ELIMIT, "max_all_decoder_bytes");
    assert_int_equal(count_frames(path, &small), 30); /* all has been given back */
}

TEST_CASE(memory_that_decoders_share_is_given_back)
{
    enum { NUM_FILES = 20 };
    const char *paths[NUM_FILES];
    for (int i = 0; i < NUM_FILES; i++)
        paths[i] = make_clip();
    weir_pipeline *pipeline = NULL;
    weir_video_config config = small;
    const weir_decoder_config decoder = {
        .max_all_decoder_bytes = 3000000 /* enough for two of them, not for what twenty have taken */
    };
    config.decoder = &decoder;
    config.decoder_size = sizeof decoder;
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = NUM_FILES }, NULL);
    weir_pipe_video(builder, &config, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
    weir_item item;
    int num_items = 0;
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        weir_item_release(&item);
        num_items++;
    }
    weir_pipeline_free(pipeline);
    assert_int_equal(num_items, NUM_FILES);
}

TEST_CASE(a_picture_over_the_limit_is_called_that)
{
    const char *path = clips_make("wide.png", "-f lavfi -i color=red:s=200x100 -frames:v 1");
    const char *jpeg = clips_make("wide.jpg", "-f lavfi -i color=red:s=200x100 -frames:v 1");
    weir_video_config video = { WEIR_WITH_DECODER(.max_pixels = 19999) };
    weir_image_config image = { WEIR_WITH_DECODER(.max_pixels = 19999) };
    static const char text[] = "over the limit of 19999 pixels: raise max_pixels";
    assert_fails(path, &video, WEIR_ELIMIT, text);
    assert_fails(jpeg, &video, WEIR_ELIMIT, text);
    assert_stage_fails(path, &weir_image_decode, &image, WEIR_ELIMIT, text);
    assert_stage_fails(jpeg, &weir_image_decode, &image, WEIR_ELIMIT, text);
    video = (weir_video_config){ WEIR_WITH_DECODER(.max_pixels = 20000) };
    assert_int_equal(count_frames(path, &video), 1);
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

/* Black first, then noise of the same size, which needs more bytes. */
static const char *make_two_streams(void)
{
    return clips_make("two.mp4",
                      "-f lavfi -i color=black:s=64x64:d=1:r=10 -f lavfi -i "
                      "'nullsrc=s=64x64:d=1:r=10,geq=random(1)*255:128:128' -f lavfi -i sine=f=440:d=1 -f lavfi -i "
                      "sine=f=880:d=1 -map 0 -map 1 -map 2 -map 3 -c:v mpeg4 -q:v 3 -disposition:v 0 -c:a aac");
}

static double brightness(const char *path, uint32_t stream, weir_frames **frames)
{
    weir_video_config config = { .stream = stream };
    double sum = 0;
    *frames = decode(path, &config);
    for (size_t i = 0; i < (*frames)->frame_bytes; i++)
        sum += (*frames)->data[i];
    return sum / (double)(*frames)->frame_bytes;
}

TEST_CASE(of_streams_that_are_alike_the_first_is_taken)
{
    weir_frames *frames;
    assert_true(brightness(make_two_streams(), 0, &frames) < 10);
    assert_int_equal(frames->stream, 1);
    assert_int_equal(frames->stream_index, 0);
    weir_frames_free(frames);
}

TEST_CASE(the_stream_can_be_chosen)
{
    weir_frames *frames;
    assert_true(brightness(make_two_streams(), 2, &frames) > 60);
    assert_int_equal(frames->stream, 2);
    assert_int_equal(frames->stream_index, 1);
    weir_frames_free(frames);
    assert_fails(make_two_streams(), &(weir_video_config){ .stream = 3 }, WEIR_ENOTFOUND,
                 "there is no video stream 3: it has 2");

    weir_item item = { 0 };
    weir_error error = { 0 };
    weir_audio_config config = { .stream = 2 };
    assert_true(run(make_two_streams(), &weir_audio_decode, &config, &item, &error));
    const weir_audio *audio = item.data;
    assert_int_equal(audio->stream, 2);
    assert_int_equal(audio->stream_index, 3);
    weir_item_release(&item);
}

/* A photograph may be followed by another one, a gain map. */
TEST_CASE(a_photograph_is_one_picture)
{
    char command[13000];
    const char *first = clips_make("first.jpg", "-f lavfi -i color=red:s=64x64 -frames:v 1");
    const char *second = clips_make("second.jpg", "-f lavfi -i color=gray:s=32x32 -frames:v 1");
    const char *both = clips_path("both");
    snprintf(command, sizeof command, "cat '%s' '%s' >'%s'", first, second, both);
    assert_int_equal(system(command), 0);
    weir_frames *frames = decode(both, &(weir_video_config){ 0 });
    assert_int_equal(frames->num_frames, 1);
    assert_int_equal(frames->width, 64);
    assert_int_equal(frames->num_errors, 0);
    weir_frames_free(frames);
}

/* ---- what is said ----------------------------------------------------------------------------------------------- */

TEST_CASE(a_stream_of_jpegs_is_a_video)
{
    const char *path =
        clips_make("stream.mjpeg", "-f lavfi -i testsrc2=s=176x144:d=2:r=5 -c:v mjpeg -pix_fmt yuvj420p");
    assert_int_equal(count_frames(path, &small), 10);
}

TEST_CASE(what_cannot_be_decoded_is_named)
{
    const char *clip = make_clip();
    static uint8_t bytes[1 << 20];
    FILE *file = fopen(clip, "rb");
    assert_non_null(file);
    size_t size_bytes = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    size_t at = 0;
    while (at + 8 < size_bytes && memcmp(bytes + at, "avc1\0\0\0\0", 8) != 0) /* not the one in ftyp */
        at++;
    assert_true(at + 8 < size_bytes);
    memcpy(bytes + at, "wxyz", 4);
    const char *path = clips_path("odd.mp4");
    clips_write(path, bytes, size_bytes);
    assert_fails(path, &small, WEIR_EUNSUPPORTED, "wxyz");
}

TEST_CASE(encrypted_files_are_called_that)
{
    const char *path = clips_make(
        "secret.mp4", "-f lavfi -i testsrc2=s=176x144:d=1:r=10 -c:v libx264 -preset veryfast -pix_fmt yuv420p "
                      "-encryption_scheme cenc-aes-ctr -encryption_key 00112233445566778899aabbccddeeff "
                      "-encryption_kid 00112233445566778899aabbccddeeff");
    if (!path)
        skip();
    assert_fails(path, &small, WEIR_EUNSUPPORTED, "encrypted");
}

TEST_CASE(a_cover_is_no_video)
{
    const char *picture = clips_make("cover.png", "-f lavfi -i color=red:s=64x64 -frames:v 1");
    char arguments[4400];
    snprintf(arguments, sizeof arguments,
             "-f lavfi -i sine=d=1 -i '%s' -map 0 -map 1 -c:a aac -c:v copy -disposition:v attached_pic", picture);
    assert_fails(clips_make("song.m4a", arguments), &small, WEIR_EUNSUPPORTED, "only a cover picture");
}

TEST_CASE(frames_that_a_cut_has_cost_are_counted)
{
    const char *whole =
        clips_make("whole.mp4", "-f lavfi -i testsrc2=s=176x144:d=6:r=10 -c:v libx264 -preset veryfast "
                                "-pix_fmt yuv420p -g 10 -movflags +faststart");
    struct stat info;
    assert_int_equal(stat(whole, &info), 0);
    weir_frames *frames = decode(whole, &small);
    assert_int_equal(frames->num_missing_frames, 0);
    assert_int_equal(frames->cost.num_missing + frames->cost.num_errors, 0);
    weir_frames_free(frames);
    frames = decode(clips_cut(whole, "cut.mp4", (size_t)info.st_size / 2), &small);
    assert_in_range(frames->num_frames, 10, 50);
    assert_int_equal(frames->num_missing_frames, 60 - frames->num_frames);
    assert_int_equal(frames->cost.num_missing, frames->num_missing_frames);
    assert_true(frames->cost.num_errors > 0);
    weir_frames_free(frames);
}

/* FFV1 makes a picture of a part of a packet, and reports no error. */
TEST_CASE(frames_are_missing_where_only_the_container_has_noticed_the_cut)
{
    const char *whole = clips_make("whole.avi", "-f lavfi -i testsrc2=s=64x64:d=2:r=10 -c:v ffv1 -pix_fmt bgra");
    struct stat info;
    assert_int_equal(stat(whole, &info), 0);
    const char *cut = clips_cut(whole, "cut.avi", (size_t)info.st_size / 2);
    weir_frames *frames = decode(cut, &small);
    assert_in_range(frames->num_frames, 5, 15);
    assert_int_equal(frames->num_missing_frames, 20 - frames->num_frames);
    weir_frames_free(frames);
    weir_video_config strict = small;
    strict.damage = WEIR_DAMAGE_STRICT;
    assert_fails(cut, &strict, WEIR_EDATA, "damage is not tolerated");
}

TEST_CASE(a_cut_container_is_damage_where_it_ends_like_a_whole_one)
{
    const char *whole = clips_make("whole.mkv", "-f lavfi -i testsrc2=s=176x144:d=6:r=10 -c:v mpeg4 -g 10");
    struct stat info;
    assert_int_equal(stat(whole, &info), 0);
    weir_frames *frames = decode(whole, &small);
    assert_int_equal(frames->num_errors, 0);
    weir_frames_free(frames);
    frames = decode(clips_cut(whole, "cut.mkv", (size_t)info.st_size / 2), &small);
    assert_in_range(frames->num_frames, 10, 50);
    assert_true(frames->num_errors > 0);
    weir_frames_free(frames);
}

static uint32_t get_32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static void put_32(uint8_t *to, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(number >> (24 - 8 * i));
}

/* A copy in which one sample of the only track has no bytes; they belong to the sample before, which ends earlier. */
static const char *empty_sample(const char *from, const char *name, unsigned sample)
{
    static const char box[] = "stsz";
    enum { BOX_HEAD = 16 }; /* name, flags, common size, count */
    struct stat info;
    assert_int_equal(stat(from, &info), 0);
    uint8_t *bytes = malloc((size_t)info.st_size);
    FILE *file = fopen(from, "rb");
    assert_true(bytes && file);
    assert_int_equal(fread(bytes, 1, (size_t)info.st_size, file), info.st_size);
    fclose(file);
    uint8_t *sizes = memmem(bytes, (size_t)info.st_size, box, strlen(box));
    assert_non_null(sizes);
    uint8_t *size = sizes + BOX_HEAD + (size_t)4 * sample;
    put_32(size - 4, get_32(size - 4) + get_32(size));
    put_32(size, 0);
    const char *path = clips_path(name);
    clips_write(path, bytes, (size_t)info.st_size);
    free(bytes);
    return path;
}

/* To a decoder an empty packet is the end, or damage. Here it is one frame that is not there, as ffmpeg counts it. */
TEST_CASE(an_empty_packet_is_neither_the_end_nor_damage)
{
    enum { NUM = 10, EMPTY = 4 };
    const char *whole = clips_make("jpegs.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v mjpeg");
    const char *path = empty_sample(whole, "empty.mp4", EMPTY);
    size_t num_bytes;
    free(clips_decode(path, "null", &num_bytes));
    assert_int_equal(num_bytes, (NUM - 1) * 64 * 48 * 3 / 2); /* yuvj420p: the referee */
    weir_frames *all = decode(whole, &small), *some = decode(path, &small);
    assert_int_equal(all->num_frames, NUM);
    assert_int_equal(some->num_frames, NUM - 1);
    assert_int_equal(some->num_errors, 0);
    for (uint32_t i = 0; i < NUM - 1; i++) {
        uint32_t same = i < EMPTY ? i : i + 1;
        assert_memory_equal(some->data + i * some->frame_bytes, all->data + same * all->frame_bytes,
                            all->frame_bytes);
        assert_int_equal(some->pts[i], all->pts[same]);
    }
    weir_frames_free(some);

    weir_video_config last = small;
    last.damage = WEIR_DAMAGE_STRICT;
    last.sampling =
        (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = (const int64_t[]){ -1 }, .num_indices = 1 };
    some = decode(path, &last);
    assert_int_equal(some->num_frames, 1);
    assert_memory_equal(some->data, all->data + (NUM - 1) * all->frame_bytes, all->frame_bytes);
    weir_frames_free(some);
    weir_frames_free(all);
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
