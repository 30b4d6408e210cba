/*
 * The sound of a video reader. It reads the same source by a second opening, with a position of its own, so that a
 * request for frames goes on undisturbed. Internal. One thread at a time, that of the reader.
 */
#ifndef STAGES_READER_READER_SOUND_H
#define STAGES_READER_READER_SOUND_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/audio.h>

#include "stages/audio/sound_reader.h"
#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/ffmpeg/user_file.h"
#include "stages/reader/picture_reader.h"

typedef struct weir_reader_sound {
    /* set by the caller: the reader of the frames. Its source, its function to stop, and its config are used, and the
       time of its first frame, if it knows that. */
    const weir_picture_reader *video;
    const char *path;

    const weir_audio_config *config; /* that the reader below was made with; NULL = there is none */
    weir_sound_reader sound;
    weir_user_file user;
    weir_ffmpeg_log log;
    bool has_origin;
    int64_t origin_ns; /* the time of the video's first frame */
} weir_reader_sound;

/* As weir_video_reader_sound(); takes the config over, whatever the result. */
int weir__reader_sound_window(weir_reader_sound *sound, const weir_audio_config *config, int64_t start_ns,
                              int64_t end_ns, weir_audio **audio, weir_error *error);

/* Closes the file, and forgets what is known of it. Also of one that is all-zero. */
void weir__reader_sound_reset(weir_reader_sound *sound);

#endif
