/*
 * Which files of a folder or of an archive are taken: patterns for their names. Used by the directory source, the tar
 * stage and the index of a dataset.
 */
#ifndef WEIR_FILE_NAMES_H
#define WEIR_FILE_NAMES_H

#include <stdbool.h>

#include <weir/export.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The extensions of the formats that FFmpeg knows as video. Its own lists are not used: what it reads includes .txt
   and .dat, but not .mpg and .ts, which it recognises by their contents. */
#define WEIR_VIDEO_EXTENSIONS \
    "264 265 3g2 3gp amv asf avi avs2 avs3 cavs divx dnxhd dnxhr drc dv dvd f4v flv gxf h261 h263 h264 h265 hevc " \
    "ismv " \
    "ivf " \
    "kux m1v m2t m2ts m2v m4v mj2 mjpeg mjpg mk3d mkv mov mp4 mpe mpeg mpg mpv mts mxf nut obu ogm ogv psp qt rm " \
    "rmvb " \
    "roq ts vc1 vc2 viv vob webm wmv wtv y4m"
#define WEIR_AUDIO_EXTENSIONS "aac flac m4a mkv mov mp3 mp4 ogg opus wav webm"
#define WEIR_IMAGE_EXTENSIONS "bmp gif jpeg jpg png tif tiff webp"

/* Patterns that match names with one of these extensions, in upper or lower case. */
#define WEIR_VIDEO_FILES "*.:video:"
#define WEIR_AUDIO_FILES "*.:audio:"
#define WEIR_IMAGE_FILES "*.:image:"

/*
 * Does the last part of the path match? The pattern is one of the above, or as in fnmatch(3), for example "*.mp4"
 * (upper and lower case differ) or, with the GNU C library, "*.@(mkv|webm)"; NULL matches every name. A leading dot is
 * not special. Any thread. path NULL: false.
 */
WEIR_API bool weir_file_name_matches(const char *path, const char *pattern);

/* Fills *error for the case that nothing matches: "no video in PLACE", "no file in PLACE matches *.mp4". Returns
   WEIR_ENOTFOUND. */
WEIR_API int weir_file_names_refuse(const char *pattern, const char *place, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
