/*
 * Videos and folders for tests: a temporary folder for the whole test program, clips made by the ffmpeg program once
 * each, and the output of the ffmpeg program for comparison. Errors here fail the test immediately.
 */
#ifndef TESTS_CLIPS_H
#define TESTS_CLIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cmocka's group setup and teardown: creates the folder, and removes it with all its contents. */
int clips_set_up(void **state);
int clips_tear_down(void **state);

/* "FOLDER/name"; valid until the teardown. */
const char *clips_path(const char *name);

/* The clip of that name, made with `ffmpeg ARGUMENTS FOLDER/name` on first use. NULL = this ffmpeg cannot make it
   (it has no such encoder); a message was printed to stderr. */
const char *clips_make(const char *name, const char *arguments);

/* The output of `ffmpeg -noautorotate -i path -fps_mode passthrough -vf filter -f rawvideo -`; the caller frees
   it. */
uint8_t *clips_decode(const char *path, const char *filter, size_t *size_bytes);
/* The same with other options instead of -noautorotate. */
uint8_t *clips_decode_with(const char *options, const char *path, const char *filter, size_t *size_bytes);

/* The folder of the real clips (WEIR_MEDIA, or ../shared/media); NULL = not found, and a message was printed. */
const char *clips_media(void);

void clips_write(const char *path, const void *bytes, size_t size_bytes);
void clips_write_text(const char *path, const char *text);
/* Copies the first size_bytes of `from` to a new file. Returns a path of clips_path(): do not free it. */
const char *clips_cut(const char *from, const char *name, size_t size_bytes);

/* The transformation of the picture for display: x' = a x + c y, y' = b x + d y. */
typedef struct clips_matrix {
    int a, b, c, d;
} clips_matrix;

/* A copy of an MP4 file with that display matrix in its first track's header. */
const char *clips_rotate(const char *from, const char *name, clips_matrix matrix);

void clips_make_folder(const char *path);

/* Makes file permissions effective from here on, even if the test runs as root. False = not possible. */
bool clips_drop_root(void);
void clips_regain_root(void);

#endif
