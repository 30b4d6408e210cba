/*
 * A video reader whose work is done elsewhere: in a child process (weir/isolated.h). The calls of weir/video_reader.h check and
 * copy what the program gives, and pass it on. Internal. One thread at a time for each reader.
 */
#ifndef STAGES_READER_REMOTE_READER_H
#define STAGES_READER_REMOTE_READER_H

#include <weir/video_reader.h>

#include "common/sibling.h"

/* The calls, by the name of their function. */
typedef enum weir_reader_verb {
    WEIR_READER_OPEN = 0,
    WEIR_READER_SCAN,
    WEIR_READER_TIMES,
    WEIR_READER_FRAMES,
    WEIR_READER_MEASURE,
    WEIR_READER_BEGIN,
    WEIR_READER_NEXT,
    WEIR_READER_SOUND,
} weir_reader_verb;

typedef struct weir_reader_call {
    weir_reader_verb verb;
    const weir_sampling *sampling;      /* checked; NULL = that of the config */
    const weir_picture_config *picture; /* the same */
    uint64_t epoch, number;
    const weir_audio_config *sound; /* SOUND; checked */
    int64_t start_ns, end_ns;       /* of the sound */
} weir_reader_call;

/* The caller frees the pointers. */
typedef struct weir_reader_answer {
    weir_video_info info; /* OPEN, SCAN, TIMES */
    weir_frames_size size;
    weir_frame_times *times;
    weir_frames *frames;
    weir_audio *audio;
} weir_reader_answer;

typedef struct weir_remote_reader {
    /* WEIR_OK; WEIR_EOF (NEXT only); or the failure with *error filled, and *answer owns nothing. */
    int (*call)(void *self, const weir_reader_call *call, weir_reader_answer *answer, weir_error *error);
    void (*free)(void *self); /* also closes the source */
    void *self;
} weir_remote_reader;

/* A reader that has been opened there. It frees remote->self, too. NULL = out of memory; nothing is freed. */
WEIR_SIBLING_API weir_video_reader *weir__video_reader_of_remote(const weir_remote_reader *remote,
                                                                 const weir_video_info *info);

/* A checked copy of a config for a reader. WEIR_OK, and weir__video_config_free() frees it; or the failure with *error filled. */
WEIR_SIBLING_API int weir__video_reader_config(weir_video_config *own, const weir_video_config *config,
                                               size_t config_size, weir_error *error);

#endif
