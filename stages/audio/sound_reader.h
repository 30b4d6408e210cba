/*
 * Windows of the sound of a file that stays open. Internal. One thread at a time for each reader.
 *
 * A window has the same samples as a decode of the whole sound. If the last window ended nearby, decoding continues
 * there. Otherwise it begins after a seek, with some frames before the window: the state of the decoder then no
 * longer depends on where it began. If that is not possible, decoding begins at the start of the stream. The samples
 * of the last second are kept, because a resampler needs samples in front of its window, and windows may overlap.
 */
#ifndef STAGES_AUDIO_SOUND_READER_H
#define STAGES_AUDIO_SOUND_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/audio.h>

#include "stages/audio/sound.h"
#include "stages/audio/sound_clock.h"

/* A decoded frame, and its first sample, counted from the stream's first one. */
typedef struct weir_heard_frame {
    AVFrame *frame;
    int64_t begin;
} weir_heard_frame;

enum { WEIR_MAX_HEARD_FRAMES = 64 };

typedef struct weir_sound_reader {
    weir_sound sound;   /* sound.decoder.input: what is opened, set by the caller */
    bool is_continuous; /* as in the last window */
    bool must_count;    /* the file's times do not tell which sample comes after a seek */

    /* of the open file */
    bool is_open;
    weir_sound_clock clock;
    weir_heard_frame heard[WEIR_MAX_HEARD_FRAMES]; /* the last ones, without a hole */
    int num_heard;
    int next_heard;      /* of the window: the next one; num_heard = it is not decoded yet */
    int64_t settled;     /* frames that end before this sample are not heard: their decoder has not seen enough */
    uint64_t old_errors; /* before the window */
} weir_sound_reader;

/* A window. Times are nanoseconds from origin_ns, which is a time of the file. */
typedef struct weir_sound_window {
    const weir_audio_config *config; /* checked; its stream and decoder are not used */
    bool is_continuous;              /* the container's clock is known not to restart */
    int64_t origin_ns;
    int64_t start_ns;
    int64_t end_ns; /* after start_ns; INT64_MAX = the end of the sound */
} weir_sound_window;

/* As weir__sound_init(). */
int weir__sound_reader_init(weir_sound_reader *reader, const weir_audio_config *config,
                            const weir_input_config *input, bool (*should_stop)(void *self), void *self);

/* Opens the path, if the file is not open. WEIR_OK, and the caller frees *audio, whose start_ns is from origin_ns.
   WEIR_ERANGE: no sample is in the window. Else another failure with *error filled; then the next window opens the
   file again. */
int weir__sound_reader_window(weir_sound_reader *reader, const char *path, const weir_sound_window *window,
                              weir_audio **audio, weir_error *error);

/* Closes the file. */
void weir__sound_reader_close(weir_sound_reader *reader);

void weir__sound_reader_free(weir_sound_reader *reader);

#endif
