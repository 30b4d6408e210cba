/* What a video reader opens, as the program has given it: a path, bytes, or functions of the program. Internal. One thread at a
   time for each. */
#ifndef STAGES_READER_READER_SOURCE_H
#define STAGES_READER_READER_SOURCE_H

#include <stddef.h>

#include <weir/video_reader.h>

#include "common/sibling.h"
#include "stages/ffmpeg/user_file.h"

/* All-zero owns nothing. */
typedef struct weir_reader_source {
    weir_video_source given; /* its pointers are the program's, except bytes if own_bytes */
    weir_bytes *loaded;      /* the file, if it was read into memory */
    weir_user_file user;     /* functions of the program */
    char *path;              /* to open, and for messages */
} weir_reader_source;

/* Takes what the source gives up (own_bytes, functions.close) and checks it. WEIR_OK, or the failure with *error filled; free it
   in both cases. If the source or its size is missing, or it is of a newer version, nothing is taken. */
WEIR_SIBLING_API int weir__reader_source_take(weir_reader_source *source, const weir_video_source *given,
                                              size_t given_size, weir_error *error);

/* Reads a file of functions into memory. WEIR_OK, or the failure with *error filled. */
WEIR_SIBLING_API int weir__reader_source_load(weir_reader_source *source, uint64_t max_bytes, weir_error *error);

WEIR_SIBLING_API void weir__reader_source_free(weir_reader_source *source);

#endif
