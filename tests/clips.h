/*
 * Videos and folders for tests: a temporary folder for the whole test program, clips made by the ffmpeg program once
 * each, and what the ffmpeg program makes of a clip, to compare with. What goes wrong here fails the test at once.
 */
#ifndef TESTS_CLIPS_H
#define TESTS_CLIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cmocka's group set-up and teardown: the folder is made and removed, with all that is in it. */
int clips_set_up(void **state);
int clips_tear_down(void **state);

/* "FOLDER/name"; lives until the teardown. */
const char *clips_path(const char *name);

/* The clip of that name, made with `ffmpeg ARGUMENTS FOLDER/name` when it is first asked for. NULL = this ffmpeg cannot
   (it has no such encoder); then it has been said on stderr. */
const char *clips_make(const char *name, const char *arguments);

/* What `ffmpeg -noautorotate -i path -fps_mode passthrough -vf filter -f rawvideo -` gives, to be freed. */
uint8_t *clips_decode(const char *path, const char *filter, size_t *size_bytes);
/* The same with other options than -noautorotate. */
uint8_t *clips_decode_with(const char *options, const char *path, const char *filter, size_t *size_bytes);

/* Where the real clips are (WEIR_MEDIA, or ../shared/media); NULL = nowhere, and it has been said. */
const char *clips_media(void);

void clips_write(const char *path, const void *bytes, size_t size_bytes);
void clips_write_text(const char *path, const char *text);
/* The first size_bytes of `from` as a file of its own; to be freed with nothing: a path of clips_path(). */
const char *clips_cut(const char *from, const char *name, size_t size_bytes);

/* What is to be done with the picture to show it: x' = a x + c y, y' = b x + d y. */
typedef struct clips_matrix {
    int a, b, c, d;
} clips_matrix;

/* A copy of an MP4 file with that display matrix in its first track's header. */
const char *clips_turn(const char *from, const char *name, clips_matrix matrix);

void clips_make_folder(const char *path);

/* From here on file permissions count, even if the test runs as root. False = they cannot be made to. */
bool clips_drop_root(void);
void clips_regain_root(void);

#endif
