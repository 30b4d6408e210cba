/* Where a decode stage's bytes come from: memory, and URLs that fall silent. */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test_case.h"

#include <weir/engine.h>
#include <weir/files.h>
#include <weir/image.h>
#include <weir/video.h>

#include "tests/bytes_source.h"
#include "tests/clips.h"
#include "tests/result.h"

static const weir_video_config small = { WEIR_WITH_PICTURE(.width = 64, .height = 48) };

/* ---- one clip through a pipeline ---------------------------------------------------------------------------- */

/* The frames of the source's only item, to be freed with weir_frames_free(), or NULL with *error filled. */
static weir_frames *decode(const weir_op *source, const void *source_config, const weir_video_config *config,
                           weir_error *error)
{
    uint64_t size_bytes;
    weir_frames *frames = result_of(source, source_config, &weir_video_decode, config, &size_bytes, error);
    if (frames)
        assert_int_equal(size_bytes, frames->memory_bytes);
    return frames;
}

static weir_frames *decode_path(const char *path, const weir_video_config *config, weir_error *error)
{
    return decode(&weir_list_source, &(weir_list_config){ .paths = &path, .num_paths = 1 }, config, error);
}

static weir_frames *decode_bytes(weir_bytes *bytes, weir_error *error)
{
    weir_video_config config = small;
    return decode(&bytes_source, &(bytes_source_config){ .files = &bytes, .num_files = 1 }, &config, error);
}

/* ---- memory ------------------------------------------------------------------------------------------------- */

static void assert_costs(const weir_frames *frames)
{
    const weir_decode_cost cost = frames->cost;
    assert_string_equal(cost.codec, frames->codec);
    assert_int_equal(cost.width, 160);
    assert_int_equal(cost.height, 120);
    assert_int_equal(cost.num_frames, frames->num_frames);
    assert_true(cost.size_bytes > 1000);
    assert_true(cost.open_ns > 0 && cost.demux_ns > 0 && cost.decode_ns > 0 && cost.scale_ns > 0);
}

static void assert_same_from_memory(const char *path, const char *name)
{
    weir_error error = { 0 };
    weir_frames *expected = decode_path(path, &small, &error);
    assert_non_null(expected);
    weir_frames *frames = decode_bytes(bytes_of_file(path, name), &error);
    if (!frames)
        fail_msg("%s: %s", path, error.message);
    assert_int_equal(frames->num_frames, expected->num_frames);
    assert_int_equal(frames->num_errors, 0);
    assert_costs(expected);
    assert_costs(frames);
    assert_int_equal(frames->cost.size_bytes, expected->cost.size_bytes);
    assert_memory_equal(frames->data, expected->data,
                        (size_t)frames->num_frames * frames->height * frames->width * frames->channels);
    assert_memory_equal(frames->pts, expected->pts, frames->num_frames * sizeof *frames->pts);
    weir_frames_free(frames);
    weir_frames_free(expected);
}

TEST_CASE(frames_from_memory_are_those_from_the_file)
{
    static const struct {
        const char *name;
        const char *arguments;
    } clips[] = {
        { "a.mp4", "-f lavfi -i testsrc2=s=160x120:d=1 -c:v libx264 -preset veryfast -bf 2 -pix_fmt yuv420p" },
        { "a.mkv", "-f lavfi -i testsrc2=s=160x120:d=1 -c:v libx264 -preset veryfast -bf 2 -pix_fmt yuv420p" },
        { "a.ts", "-f lavfi -i testsrc2=s=160x120:d=1 -c:v libx264 -preset veryfast -bf 2 -pix_fmt yuv420p" },
        { "a.webm", "-f lavfi -i testsrc2=s=160x120:d=1 -c:v libvpx-vp9 -deadline realtime -cpu-used 8" },
        { "a.avi", "-f lavfi -i testsrc2=s=160x120:d=1 -c:v mpeg4" },
    };
    for (size_t i = 0; i < sizeof clips / sizeof clips[0]; i++) {
        const char *path = clips_make(clips[i].name, clips[i].arguments);
        if (!path)
            continue;
        assert_same_from_memory(path, clips[i].name);
        assert_same_from_memory(path, NULL);
    }
}

static void count_release(void *owner)
{
    (*(int *)owner)++;
}

TEST_CASE(wrapped_memory_is_released_once)
{
    weir_error error = { 0 };
    int num_released = 0;
    const char *path = clips_make("a.avi", "-f lavfi -i testsrc2=s=160x120:d=1 -c:v mpeg4");
    weir_bytes *file = bytes_of_file(path, NULL);
    weir_frames *frames =
        decode_bytes(weir_bytes_wrap(file->data, file->size_bytes, "wrapped", count_release, &num_released), &error);
    assert_non_null(frames);
    assert_int_equal(num_released, 1);
    weir_frames_free(frames);
    weir_bytes_free(file);

    frames = decode_bytes(weir_bytes_wrap("text", 4, "text.mp4", count_release, &num_released), &error);
    assert_null(frames);
    assert_int_equal(num_released, 2);
}

static weir_bytes *text_file(const char *text, const char *name)
{
    weir_bytes *bytes = weir_bytes_new(strlen(text), name);
    assert_non_null(bytes);
    memcpy(bytes->data, text, strlen(text));
    return bytes;
}

TEST_CASE(what_belongs_to_the_clip_comes_out_with_its_frames)
{
    weir_error error = { 0 };
    weir_bytes *clip = bytes_of_file(clips_make("a.avi", "-f lavfi -i testsrc2=s=160x120:d=1 -c:v mpeg4"), "a.avi");
    clip->next = text_file("7", "a.cls");
    clip->next->next = text_file("{}", "a.json");
    weir_frames *frames = decode_bytes(clip, &error);
    assert_non_null(frames);
    assert_string_equal(frames->sidecars->name, "a.cls");
    assert_memory_equal(frames->sidecars->data, "7", 1);
    assert_string_equal(frames->sidecars->next->name, "a.json");
    assert_true(frames->memory_bytes > weir_bytes_memory(frames->sidecars));
    weir_frames_free(frames);
}

static void assert_bytes_fail(weir_bytes *bytes, int status, const char *said)
{
    weir_error error = { 0 };
    weir_frames *frames = decode_bytes(bytes, &error);
    assert_null(frames);
    if (error.status != status || !strstr(error.message, said))
        fail_msg("%s: %s", weir_status_name(error.status), error.message);
}

TEST_CASE(bytes_that_are_no_video_fail_and_say_why)
{
    assert_bytes_fail(weir_bytes_new(0, "empty.mp4"), WEIR_EDATA, "empty");
    assert_bytes_fail(text_file("this is no video at all", "text.mp4"), WEIR_EDATA, "cannot open");
    assert_bytes_fail(NULL, WEIR_EINVAL, "no data");

    weir_bytes *whole = bytes_of_file(
        clips_make("a.mp4",
                   "-f lavfi -i testsrc2=s=160x120:d=1 -c:v libx264 -preset veryfast -bf 2 -pix_fmt yuv420p"),
        NULL);
    weir_bytes *cut = weir_bytes_new(whole->size_bytes / 2, "cut.mp4");
    assert_non_null(cut);
    memcpy(cut->data, whole->data, cut->size_bytes);
    weir_bytes_free(whole);
    assert_bytes_fail(cut, WEIR_EDATA, "cannot open");
}

/* A playlist in memory must not make weir open files named by its author. */
TEST_CASE(bytes_open_no_other_file)
{
    char text[4096];
    const char *segment = clips_make("a.ts", "-f lavfi -i testsrc2=s=160x120:d=1 -c:v libx264 -preset veryfast -bf 2 "
                                             "-pix_fmt yuv420p");
    snprintf(text, sizeof text, "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:%s\n#EXT-X-ENDLIST\n", segment);
    weir_error error = { 0 };
    weir_frames *frames = decode_bytes(text_file(text, "list.m3u8"), &error);
    assert_null(frames);
    assert_true(error.status == WEIR_EDATA || error.status == WEIR_EACCESS || error.status == WEIR_EUNSUPPORTED);
}

/* ---- URLs --------------------------------------------------------------------------------------------------- */

/* Serves one connection with an HTTP response. It announces the whole file and sends this many bytes of it. Then it
   either sends nothing until it is released, or closes the connection. */
typedef struct server {
    int listener;
    pthread_t thread;
    char url[64];
    const weir_bytes *file; /* NULL = not even the header comes */
    size_t num_bytes;
    bool hangs_up;
    bool is_old;           /* HTTP/1.0, without a length: the end of the connection is the file's */
    const char *elsewhere; /* sends the client there; NULL = nowhere */
    bool has_no_end;       /* of the header: lines go on coming */
    const char *headers;   /* of an answer without a length, which is the file again and again; NULL = another one */
} server;

static void serve(const server *self, int connection)
{
    char request[4096];
    char header[4400];
    if (!self->file || recv(connection, request, sizeof request, 0) <= 0)
        return;
    if (self->has_no_end) {
        const char *line = "HTTP/1.1 200 OK\r\n";
        while (send(connection, line, strlen(line), MSG_NOSIGNAL) > 0)
            line = "Name: value\r\n";
        return;
    }
    if (self->headers) {
        int length = snprintf(header, sizeof header, "HTTP/1.1 200 OK\r\n%s\r\n", self->headers);
        ssize_t sent = send(connection, header, (size_t)length, MSG_NOSIGNAL);
        while (sent > 0)
            sent = send(connection, self->file->data, self->file->size_bytes, MSG_NOSIGNAL);
        return;
    }
    if (self->is_old || self->elsewhere) {
        int old_bytes = self->elsewhere ? snprintf(header, sizeof header,
                                                   "HTTP/1.1 302 Found\r\nLocation: %s\r\n\r\n", self->elsewhere)
                                        : snprintf(header, sizeof header, "HTTP/1.0 200 OK\r\n\r\n");
        (void)!send(connection, header, (size_t)old_bytes, MSG_NOSIGNAL);
        (void)!send(connection, self->file->data, self->elsewhere ? 0 : self->num_bytes, MSG_NOSIGNAL);
        return;
    }
    int header_bytes =
        snprintf(header, sizeof header, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nContent-Type: video/mp2t\r\n\r\n",
                 self->file->size_bytes);
    (void)!send(connection, header, (size_t)header_bytes, MSG_NOSIGNAL);
    (void)!send(connection, self->file->data, self->num_bytes, MSG_NOSIGNAL);
}

static void *server_main(void *argument)
{
    const server *self = argument;
    char byte;
    int connection;
    while ((connection = accept(self->listener, NULL, NULL)) >= 0) {
        serve(self, connection);
        if (self->hangs_up)
            shutdown(connection, SHUT_WR);
        while (recv(connection, &byte, 1, 0) > 0) /* until the other side has had enough */
            ;
        close(connection);
    }
    return NULL;
}

static void server_start(server *self)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t address_bytes = sizeof address;
    self->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(self->listener >= 0);
    assert_int_equal(bind(self->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(self->listener, 4), 0);
    assert_int_equal(getsockname(self->listener, (struct sockaddr *)&address, &address_bytes), 0);
    snprintf(self->url, sizeof self->url, "http://127.0.0.1:%u/a.ts", (unsigned)ntohs(address.sin_port));
    assert_int_equal(pthread_create(&self->thread, NULL, server_main, self), 0);
}

static void server_end(server *self)
{
    shutdown(self->listener, SHUT_RDWR);
    pthread_join(self->thread, NULL);
    close(self->listener);
}

static const char long_arguments[] = "-f lavfi -i testsrc2=s=320x240:d=4 -c:v mpeg4 -q:v 3";

/* Decodes what the server gives; it is not waited for much longer than the timeout. */
static weir_frames *decode_served(server *self, int64_t io_timeout_ns, weir_error *error)
{
    weir_video_config config = small;
    const weir_input_config input = { .io_timeout_ns = io_timeout_ns };
    config.input = &input;
    config.input_size = sizeof input;
    server_start(self);
    weir_frames *frames = decode_path(self->url, &config, error);
    server_end(self);
    return frames;
}

TEST_CASE(a_server_that_never_answers_times_out)
{
    weir_error error = { 0 };
    server silent = { 0 };
    assert_null(decode_served(&silent, 200 * WEIR_MILLISECOND, &error));
    assert_int_equal(error.status, WEIR_ETIMEDOUT);
    assert_non_null(strstr(error.message, "io_timeout_ns"));
}

TEST_CASE(a_server_that_falls_silent_times_out)
{
    weir_error error = { 0 };
    weir_bytes *file = bytes_of_file(clips_make("long.ts", long_arguments), NULL);
    server silent = { .file = file, .num_bytes = file->size_bytes / 2 };
    assert_null(decode_served(&silent, 200 * WEIR_MILLISECOND, &error));
    assert_int_equal(error.status, WEIR_ETIMEDOUT);
    weir_bytes_free(file);
}

/* FFmpeg's own timeout is for each line. */
TEST_CASE(a_header_without_end_times_out)
{
    weir_error error = { 0 };
    weir_bytes *file = bytes_of_file(clips_make("long.ts", long_arguments), NULL);
    server endless = { .file = file, .has_no_end = true };
    assert_null(decode_served(&endless, 200 * WEIR_MILLISECOND, &error));
    assert_int_equal(error.status, WEIR_ETIMEDOUT);
    assert_non_null(strstr(error.message, "io_timeout_ns"));
    weir_bytes_free(file);
}

TEST_CASE(a_url_gives_the_frames_of_the_file)
{
    weir_error error = { 0 };
    const char *path = clips_make("long.ts", long_arguments);
    weir_bytes *file = bytes_of_file(path, NULL);
    server whole = { .file = file, .num_bytes = file->size_bytes };
    weir_frames *frames = decode_served(&whole, 60 * WEIR_SECOND, &error);
    if (!frames)
        fail_msg("%s", error.message);
    weir_frames *expected = decode_path(path, &small, &error);
    assert_int_equal(frames->num_frames, expected->num_frames);
    assert_memory_equal(frames->data, expected->data,
                        (size_t)frames->num_frames * frames->height * frames->width * frames->channels);
    assert_int_equal(frames->num_errors, 0);
    weir_frames_free(frames);
    weir_frames_free(expected);
    weir_bytes_free(file);
}

/* The next chunk of frames; NULL at the end, or after a failure. */
static weir_frames *next_chunk(weir_pipeline *pipeline)
{
    weir_item item = { 0 };
    if (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) != WEIR_OK)
        return NULL;
    weir_frames *frames = item.data;
    item.data = NULL;
    weir_item_release(&item);
    return frames;
}

/* The timeout is for the server. The time that passes is what is tested: three pauses, each longer than the timeout, while
   the decode stage waits for room, and more is to be read after each. */
TEST_CASE(a_consumer_that_takes_longer_than_the_timeout_is_no_silent_server)
{
    enum { PAUSE_MS = 400, NUM_PAUSES = 3 };
    weir_error error = { 0 };
    weir_bytes *file = bytes_of_file(
        clips_make("noise.ts", "-f lavfi -i testsrc2=s=320x240:d=4 -vf noise=alls=90:allf=t -c:v mpeg4 -q:v 2"),
        NULL);
    server whole = { .file = file, .num_bytes = file->size_bytes };
    assert_true(file->size_bytes > 1 << 20);
    server_start(&whole);
    const char *url = whole.url;
    weir_video_config config = small;
    const weir_input_config input = { .io_timeout_ns = 300 * WEIR_MILLISECOND };
    config.input = &input;
    config.input_size = sizeof input;
    config.chunk_frames = 10;
    weir_pipeline *pipeline;
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = &url, .num_paths = 1 }, NULL);
    weir_pipe_video(builder, &config, &(weir_stage_options){ .name = "decode", .queue_items = 1 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_OK);
    uint32_t num_frames = 0, num_chunks = 0;
    for (weir_frames *chunk; (chunk = next_chunk(pipeline)); num_chunks++) {
        num_frames += chunk->num_frames;
        weir_frames_free(chunk);
        if (num_chunks < NUM_PAUSES)
            poll(NULL, 0, PAUSE_MS);
    }
    weir_pipeline_error(pipeline, "decode", &error);
    weir_pipeline_free(pipeline);
    server_end(&whole);
    weir_bytes_free(file);
    if (error.status != WEIR_OK)
        fail_msg("%s", error.message);
    assert_int_equal(num_frames, 100);
    assert_int_equal(num_chunks, 10);
}

/* A connection that ends before the file does is damage, and is counted. */
TEST_CASE(a_server_that_hangs_up_leaves_an_error)
{
    weir_error error = { 0 };
    weir_bytes *file = bytes_of_file(clips_make("long.ts", long_arguments), NULL);
    server brief = { .file = file, .num_bytes = file->size_bytes / 2, .hangs_up = true };
    weir_frames *frames = decode_served(&brief, 60 * WEIR_SECOND, &error);
    assert_non_null(frames);
    assert_true(frames->num_frames > 10);
    assert_true(frames->num_errors > 0);
    weir_frames_free(frames);
    weir_bytes_free(file);
}

/* There the end of the connection is the file's, and no damage. */
TEST_CASE(an_old_server_need_not_tell_the_length)
{
    weir_error error = { 0 };
    weir_bytes *file = bytes_of_file(clips_make("long.ts", long_arguments), NULL);
    server old = { .file = file, .num_bytes = file->size_bytes, .hangs_up = true, .is_old = true };
    weir_video_config strict = small;
    strict.damage = WEIR_DAMAGE_STRICT;
    server_start(&old);
    weir_frames *frames = decode_path(old.url, &strict, &error);
    server_end(&old);
    if (!frames)
        fail_msg("%s", error.message);
    assert_int_equal(frames->num_frames, 100);
    assert_int_equal(frames->num_errors, 0);
    weir_frames_free(frames);
    weir_bytes_free(file);
}

/* It said nothing. */
TEST_CASE(a_picture_may_be_larger_than_its_server_says)
{
    weir_error error = { 0 };
    weir_bytes *file = bytes_of_file(clips_make("big.bmp", "-f lavfi -i testsrc2=s=1000x1000 -frames:v 1"), NULL);
    server old = { .file = file, .num_bytes = file->size_bytes, .hangs_up = true, .is_old = true };
    server_start(&old);
    const char *url = old.url;
    uint64_t size_bytes;
    weir_frames *frames =
        result_of(&weir_list_source, &(weir_list_config){ .paths = &url, .num_paths = 1 }, &weir_image_decode,
                  &(weir_image_config){ WEIR_WITH_PICTURE(.width = 64, .height = 64) }, &size_bytes, &error);
    server_end(&old);
    if (!frames)
        fail_msg("%s", error.message);
    assert_int_equal(frames->source_width, 1000);
    weir_frames_free(frames);
    weir_bytes_free(file);
}

/* A line of /proc/self/status, in bytes. */
static double memory_of(const char *name)
{
    char line[256];
    double kibibytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kibibytes = strtod(line + strlen(name) + 1, NULL);
    fclose(file);
    assert_true(kibibytes > 0);
    return kibibytes * 1024;
}

/* The picture's file is read up to the limit, and no byte of it is in memory twice, also while the buffer grows. Constant:
   one slot, the limit, the sizes of the server's packets, plain HTTP. */
static void assert_fails_within_limit(const weir_bytes *file, const char *headers)
{
    const double limit_bytes = 96 << 20;
    weir_error error = { 0 };
    uint64_t size_bytes;
    server endless = { .file = file, .headers = headers, .hangs_up = true };
    server_start(&endless);
    const char *url = endless.url;
    weir_image_config config = { .max_file_bytes = (uint64_t)limit_bytes };
    clips_write_text("/proc/self/clear_refs", "5"); /* the peak is counted from here on */
    double before_bytes = memory_of("VmRSS");
    weir_frames *frames = result_of(&weir_list_source, &(weir_list_config){ .paths = &url, .num_paths = 1 },
                                    &weir_image_decode, &config, &size_bytes, &error);
    double used_bytes = memory_of("VmHWM") - before_bytes;
    server_end(&endless);
    assert_null(frames);
    if (error.status != WEIR_ELIMIT || !strstr(error.message, "over the limit of 100663296 bytes"))
        fail_msg("%s", error.message);
#ifndef SANITIZED_THREADS /* ThreadSanitizer's notes on each byte are in the figure, too */
    if (used_bytes < 0.95 * limit_bytes || used_bytes > 1.05 * limit_bytes)
#else
    if (used_bytes < 0.95 * limit_bytes)
#endif
        fail_msg("%.1f MB are used, the limit is %.1f MB", used_bytes / 1e6, limit_bytes / 1e6);
}

TEST_CASE(a_picture_without_end_takes_the_memory_of_its_limit)
{
    weir_bytes *file = weir_bytes_new(1 << 20, NULL);
    assert_non_null(file);
    memset(file->data, 'x', file->size_bytes);
    assert_fails_within_limit(file, "");
    weir_bytes_free(file);
}

TEST_CASE(a_packed_picture_takes_the_memory_of_its_limit)
{
    char command[4200];
    const char *path = clips_path("zeros.gz");
    snprintf(command, sizeof command, "head -c 104857600 /dev/zero | gzip -1 >'%s'", path);
    assert_int_equal(system(command), 0);
    weir_bytes *file = bytes_of_file(path, NULL);
    assert_fails_within_limit(file, "Content-Encoding: gzip\r\n");
    weir_bytes_free(file);
}

TEST_CASE(a_server_cannot_send_us_to_our_own_files)
{
    weir_error error = { 0 };
    char elsewhere[4200];
    const char *path = clips_make("long.ts", long_arguments);
    weir_bytes *file = bytes_of_file(path, NULL);
    snprintf(elsewhere, sizeof elsewhere, "file://%s", path);
    server sly = { .file = file, .hangs_up = true, .elsewhere = elsewhere };
    assert_null(decode_served(&sly, 5 * WEIR_SECOND, &error));
    assert_true(error.status < 0);
    weir_bytes_free(file);
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
