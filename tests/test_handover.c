/* Frames exported as .npy files. */
#include <glob.h>
#include <inttypes.h>
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

#include <weir/arrays.h>

#include "tests/clips.h"

enum { WIDTH = 5, HEIGHT = 3, CHANNELS = 3 };

/* Made up, every byte another. */
static weir_frames *frames_new(uint32_t num_frames, uint32_t width)
{
    weir_frames *frames = calloc(1, sizeof *frames);
    assert_non_null(frames);
    size_t num_bytes = (size_t)num_frames * HEIGHT * width * CHANNELS;
    *frames = (weir_frames){ .num_frames = num_frames, .height = HEIGHT, .width = width, .channels = CHANNELS };
    frames->data = malloc(num_bytes);
    frames->pts = calloc(num_frames, sizeof *frames->pts);
    assert_non_null(frames->data);
    assert_non_null(frames->pts);
    for (size_t i = 0; i < num_bytes; i++)
        frames->data[i] = (uint8_t)(i * 7 + i / 256);
    return frames;
}

#define FRAMES_ITEM(frames) ((weir_item){ .data = (frames), .type = WEIR_TYPE_FRAMES })

/* ---- .npy --------------------------------------------------------------------------------------------------- */

/* Reads it as NumPy's format description has it. Returns the data, to be freed; the header's text is in *header. */
static uint8_t *read_npy(const char *path, char header[256], size_t *num_bytes)
{
    uint8_t prefix[10];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(prefix, 1, sizeof prefix, file), sizeof prefix);
    assert_memory_equal(prefix, "\x93NUMPY\x01\x00", 8);
    size_t header_bytes = (size_t)prefix[8] | (size_t)prefix[9] << 8;
    assert_true(header_bytes < 256);
    assert_int_equal((sizeof prefix + header_bytes) % 64, 0);
    assert_int_equal(fread(header, 1, header_bytes, file), header_bytes);
    assert_int_equal(header[header_bytes - 1], '\n');
    header[header_bytes] = '\0';
    uint8_t *data = malloc(1 << 16);
    assert_non_null(data);
    *num_bytes = fread(data, 1, 1 << 16, file);
    fclose(file);
    return data;
}

TEST_CASE(an_npy_file_holds_shape_and_bytes)
{
    char header[256];
    size_t num_bytes;
    weir_error error = { 0 };
    const char *path = clips_path("a.npy");
    weir_frames *frames = frames_new(4, WIDTH);
    assert_int_equal(weir_write_npy(&FRAMES_ITEM(frames), path, &error), WEIR_OK);
    uint8_t *data = read_npy(path, header, &num_bytes);
    assert_non_null(strstr(header, "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 3, 5, 3, ), }"));
    assert_int_equal(num_bytes, 4 * HEIGHT * WIDTH * CHANNELS);
    assert_memory_equal(data, frames->data, num_bytes);
    free(data);
    weir_frames_free(frames);
}

TEST_CASE(the_shape_follows_pixel_and_layout)
{
    char header[256];
    size_t num_bytes;
    const char *path = clips_path("shapes.npy");
    weir_frames *frames = frames_new(4, WIDTH);
    frames->layout = WEIR_LAYOUT_NCHW;
    assert_int_equal(weir_write_npy(&FRAMES_ITEM(frames), path, NULL), WEIR_OK);
    free(read_npy(path, header, &num_bytes));
    assert_non_null(strstr(header, "'shape': (4, 3, 3, 5, )"));
    frames->pixel = WEIR_PIXEL_GRAY8;
    frames->channels = 1;
    assert_int_equal(weir_write_npy(&FRAMES_ITEM(frames), path, NULL), WEIR_OK);
    free(read_npy(path, header, &num_bytes));
    assert_non_null(strstr(header, "'shape': (4, 1, 3, 5, )"));
    frames->pixel = WEIR_PIXEL_GRAY16;
    frames->frame_bytes = 30;
    assert_int_equal(weir_write_npy(&FRAMES_ITEM(frames), path, NULL), WEIR_OK);
    free(read_npy(path, header, &num_bytes));
    assert_non_null(strstr(header, "u2', 'fortran_order': False, 'shape': (4, 1, 3, 5, )"));
    frames->pixel = WEIR_PIXEL_YUV420P;
    frames->channels = 0;
    frames->layout = WEIR_LAYOUT_NHWC;
    frames->frame_bytes = 27;
    assert_int_equal(weir_write_npy(&FRAMES_ITEM(frames), path, NULL), WEIR_OK);
    free(read_npy(path, header, &num_bytes));
    assert_non_null(strstr(header, "'shape': (4, 27, )"));
    assert_int_equal(num_bytes, 4 * 27);
    weir_frames_free(frames);
}

TEST_CASE(chunks_become_one_array)
{
    char header[256];
    size_t num_bytes;
    weir_npy *npy;
    const char *path = clips_path("chunks.npy");
    weir_frames *first = frames_new(4, WIDTH);
    weir_frames *second = frames_new(11, WIDTH);
    weir_frames *wider = frames_new(2, WIDTH + 1);
    weir_error error = { 0 };
    assert_int_equal(weir_npy_open(&npy, path, NULL), WEIR_OK);
    assert_int_equal(weir_npy_add(npy, &FRAMES_ITEM(first), NULL), WEIR_OK);
    assert_int_equal(weir_npy_add(npy, &FRAMES_ITEM(wider), &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "differ in size"));
    assert_int_equal(weir_npy_add(npy, &FRAMES_ITEM(second), NULL), WEIR_OK);
    assert_int_not_equal(access(path, F_OK), 0); /* not before it is complete */
    assert_int_equal(weir_npy_close(npy, true, NULL), WEIR_OK);

    uint8_t *data = read_npy(path, header, &num_bytes);
    size_t first_bytes = 4 * HEIGHT * WIDTH * CHANNELS;
    assert_non_null(strstr(header, "'shape': (15, 3, 5, 3, )"));
    assert_int_equal(num_bytes, 15 * HEIGHT * WIDTH * CHANNELS);
    assert_memory_equal(data, first->data, first_bytes);
    assert_memory_equal(data + first_bytes, second->data, num_bytes - first_bytes);
    free(data);
    weir_frames_free(first);
    weir_frames_free(second);
    weir_frames_free(wider);
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

TEST_CASE(what_cannot_be_written_leaves_no_file)
{
    weir_npy *npy;
    weir_error error = { 0 };
    weir_frames *frames = frames_new(1, WIDTH);
    assert_int_equal(weir_write_npy(&FRAMES_ITEM(frames), "/nowhere/at/all.npy", &error), WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, "/nowhere/at/all.npy"));

    const char *path = clips_path("none.npy");
    assert_int_equal(weir_npy_open(&npy, path, NULL), WEIR_OK);
    assert_int_equal(weir_npy_close(npy, true, NULL), WEIR_EINVAL);
    assert_int_equal(weir_npy_open(&npy, path, NULL), WEIR_OK);
    assert_int_equal(weir_npy_add(npy, &FRAMES_ITEM(frames), NULL), WEIR_OK);
    assert_int_equal(weir_npy_close(npy, false, NULL), WEIR_OK);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(num_beside(path), 0);
    weir_frames_free(frames);
}

TEST_CASE(what_is_no_file_is_not_replaced)
{
    weir_npy *npy;
    weir_error error = { 0 };
    const char *pipe = clips_path("pipe.npy");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(weir_npy_open(&npy, pipe, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "device or pipe"));
    assert_int_equal(access(pipe, F_OK), 0);
    error = (weir_error){ 0 };
    assert_int_equal(weir_npy_open(&npy, clips_path("."), &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "folder"));
    assert_int_equal(num_beside(pipe), 0);
}

TEST_CASE(a_full_disk_is_reported)
{
    weir_error error = { 0 };
    weir_frames *frames = frames_new(4, WIDTH);
    const char *path = clips_path("full.npy");
    struct rlimit before, small_files;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small_files = (struct rlimit){ .rlim_cur = 200, .rlim_max = before.rlim_max };
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small_files), 0);
    int rc = weir_write_npy(&FRAMES_ITEM(frames), path, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, WEIR_EIO);
    assert_non_null(strstr(error.message, "File too large"));
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(num_beside(path), 0);
    weir_frames_free(frames);
}

/* An attacker who knows the temporary name of a file could make it a link to another file. */
TEST_CASE(links_that_lie_in_wait_are_not_followed)
{
    static const char *const suffixes[] = { ".part", ".tmp" };
    weir_frames *frames = frames_new(1, WIDTH);
    const char *victim = clips_path("victim");
    clips_write_text(victim, "untouched");
    for (size_t i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "trap.npy%s", suffixes[i]);
        assert_int_equal(symlink(victim, clips_path(name)), 0);
    }
    assert_int_equal(weir_write_npy(&FRAMES_ITEM(frames), clips_path("trap.npy"), NULL), WEIR_OK);
    struct stat info;
    assert_int_equal(stat(victim, &info), 0);
    assert_int_equal(info.st_size, strlen("untouched"));

    const char *link = clips_path("link.npy"); /* of the very name: what it leads to counts */
    assert_int_equal(symlink(victim, link), 0);
    assert_int_equal(weir_write_npy(&FRAMES_ITEM(frames), link, NULL), WEIR_EINVAL);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink(clips_path("trap.npy"), link), 0); /* replaced, not followed */
    assert_int_equal(stat(clips_path("trap.npy"), &info), 0);
    assert_int_equal(weir_write_npy(&FRAMES_ITEM(frames), link, NULL), WEIR_OK);
    struct stat after;
    assert_int_equal(stat(clips_path("trap.npy"), &after), 0);
    assert_true(info.st_ino == after.st_ino && lstat(link, &after) == 0 && S_ISREG(after.st_mode));
    assert_int_equal(stat(victim, &info), 0);
    assert_int_equal(info.st_size, strlen("untouched"));
    weir_frames_free(frames);
}

TEST_CASE(two_writers_of_one_file_do_not_disturb_each_other)
{
    weir_npy *first, *second;
    weir_frames *frames = frames_new(2, WIDTH);
    const char *path = clips_path("shared.npy");
    assert_int_equal(weir_npy_open(&first, path, NULL), WEIR_OK);
    assert_int_equal(weir_npy_open(&second, path, NULL), WEIR_OK);
    assert_int_equal(weir_npy_add(first, &FRAMES_ITEM(frames), NULL), WEIR_OK);
    assert_int_equal(weir_npy_add(second, &FRAMES_ITEM(frames), NULL), WEIR_OK);
    assert_int_equal(weir_npy_add(second, &FRAMES_ITEM(frames), NULL), WEIR_OK);
    assert_int_equal(weir_npy_close(first, true, NULL), WEIR_OK);
    assert_int_equal(weir_npy_close(second, true, NULL), WEIR_OK);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 192 + 4 * WIDTH * HEIGHT * CHANNELS);
    assert_int_equal(num_beside(path), 0);
    weir_frames_free(frames);
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
