#include "tests/clips.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test_case.h"

enum { MAX_PATHS = 2048, NOBODY = 65534 };

static char *folder;
static char *paths[MAX_PATHS]; /* returned to tests, freed at the end */
static size_t num_paths;
static uid_t uid_before;

int clips_set_up(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/weir-clips-XXXXXX", base ? base : "/tmp");
    folder = mkdtemp(path) ? strdup(path) : NULL;
    return folder && chmod(folder, 0755) == 0 ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *position)
{
    (void)info;
    (void)kind;
    (void)position;
    return remove(path);
}

int clips_tear_down(void **state)
{
    (void)state;
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    while (num_paths > 0)
        free(paths[--num_paths]);
    free(folder);
    return 0;
}

const char *clips_path(const char *name)
{
    size_t size_bytes = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size_bytes);
    assert_non_null(path);
    assert_true(num_paths < MAX_PATHS);
    snprintf(path, size_bytes, "%s/%s", folder, name);
    paths[num_paths++] = path;
    return path;
}

const char *clips_make(const char *name, const char *arguments)
{
    const char *path = clips_path(name);
    if (access(path, F_OK) == 0)
        return path;
    char command[4096];
    snprintf(command, sizeof command, "ffmpeg -nostdin -y -v error %s '%s' 2>'%s/ffmpeg.err' >&2", arguments, path,
             folder);
    if (system(command) == 0)
        return path;
    fprintf(stderr, "skipped: this ffmpeg cannot make %s (%s)\n", name, arguments);
    remove(path);
    return NULL;
}

static uint8_t *read_stream(FILE *stream, size_t *size_bytes)
{
    size_t max_bytes = 1 << 20;
    size_t got;
    uint8_t *bytes = malloc(max_bytes);
    *size_bytes = 0;
    assert_non_null(bytes);
    while ((got = fread(bytes + *size_bytes, 1, max_bytes - *size_bytes, stream)) > 0) {
        *size_bytes += got;
        if (*size_bytes == max_bytes) {
            max_bytes *= 2;
            bytes = realloc(bytes, max_bytes);
            assert_non_null(bytes);
        }
    }
    return bytes;
}

uint8_t *clips_decode(const char *path, const char *filter, size_t *size_bytes)
{
    return clips_decode_with("-noautorotate", path, filter, size_bytes);
}

uint8_t *clips_decode_with(const char *options, const char *path, const char *filter, size_t *size_bytes)
{
    char command[4096];
    snprintf(command, sizeof command,
             "ffmpeg -nostdin -v quiet -threads 1 %s -i '%s' -fps_mode passthrough -vf '%s' -f rawvideo -", options,
             path, filter);
    FILE *stream = popen(command, "r");
    assert_non_null(stream);
    uint8_t *bytes = read_stream(stream, size_bytes);
    pclose(stream);
    return bytes;
}

const char *clips_media(void)
{
    const char *media = getenv("WEIR_MEDIA");
    media = media ? media : "../shared/media";
    if (access(media, R_OK | X_OK) == 0)
        return media;
    fprintf(stderr, "skipped: no real clips at %s (WEIR_MEDIA tells where they are)\n", media);
    return NULL;
}

void clips_write(const char *path, const void *bytes, size_t size_bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(fwrite(bytes, 1, size_bytes, file), size_bytes);
    assert_int_equal(fclose(file), 0);
}

void clips_write_text(const char *path, const char *text)
{
    clips_write(path, text, strlen(text));
}

const char *clips_cut(const char *from, const char *name, size_t size_bytes)
{
    size_t got_bytes;
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    uint8_t *bytes = read_stream(file, &got_bytes);
    fclose(file);
    assert_true(got_bytes > size_bytes);
    const char *path = clips_path(name);
    clips_write(path, bytes, size_bytes);
    free(bytes);
    return path;
}

static void put_16_16(uint8_t *to, int value)
{
    uint32_t fixed = (uint32_t)value << 16;
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(fixed >> (24 - 8 * i));
}

const char *clips_rotate(const char *from, const char *name, clips_matrix matrix)
{
    enum { MATRIX_BYTES = 44, MAX_BYTES = 1 << 20 }; /* counted from the name of the box */
    static uint8_t bytes[MAX_BYTES];
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    size_t size_bytes = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(size_bytes, 1000, MAX_BYTES - 1);
    size_t at = 0;
    while (at + MATRIX_BYTES + 20 < size_bytes && memcmp(bytes + at, "tkhd", 4) != 0)
        at++;
    assert_memory_equal(bytes + at, "tkhd\0", 5); /* its version 0 */
    uint8_t *to = bytes + at + MATRIX_BYTES;
    put_16_16(to, matrix.a);
    put_16_16(to + 4, matrix.b);
    put_16_16(to + 12, matrix.c);
    put_16_16(to + 16, matrix.d);
    const char *path = clips_path(name);
    clips_write(path, bytes, size_bytes);
    return path;
}

void clips_make_folder(const char *path)
{
    if (mkdir(path, 0755) != 0)
        fail_msg("%s: %s", path, strerror(errno));
}

bool clips_drop_root(void)
{
    uid_before = geteuid();
    return uid_before != 0 || seteuid(NOBODY) == 0;
}

void clips_regain_root(void)
{
    assert_int_equal(seteuid(uid_before), 0);
}
