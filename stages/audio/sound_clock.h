/*
 * The clock of sound: with which sample of the stream a decoded frame begins, counted from the stream's first one.
 * Internal. Pure: no file; one thread at a time for each.
 *
 * Read from the start, frames follow each other, and samples are counted; a gap in the times moves the count. After a
 * seek, the frame's time tells the sample: exactly if the time base resolves samples. Else, as in Matroska, the
 * number of whole frames since the start tells it, if all have the same size. Where neither is sure, the frame is
 * lost, and the stream must be read from the start.
 */
#ifndef STAGES_AUDIO_SOUND_CLOCK_H
#define STAGES_AUDIO_SOUND_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <libavutil/frame.h>
#include <libavutil/rational.h>

/* What weir__sound_clock_place() returns instead of a sample. */
#define WEIR_SAMPLE_LOST    INT64_MIN       /* the times after the seek cannot be trusted */
#define WEIR_SAMPLE_UNKNOWN (INT64_MIN + 1) /* the frame is to be dropped: the first ones after a seek */

typedef struct weir_sound_clock {
    /* set by weir__sound_clock_begin() */
    AVRational time_base;
    bool may_restart; /* the clock of the container may begin again, as MPEG-TS's */

    /* of the first frame */
    int rate;          /* samples per second; 0 = no frame yet */
    int64_t first_pts; /* AV_NOPTS_VALUE = unknown */

    /* of the second and third frame */
    int64_t grid_start; /* the sample that the second frame begins with */
    int grid;           /* the size of both; 0 = they differ, or their times cannot tell the number of a frame */

    int64_t next; /* the sample after the last frame; about that of a frame that is dropped */
    int64_t shift;
    int num_frames;      /* since the start or the seek, up to a few */
    bool is_sought;      /* the reading went on elsewhere */
    bool has_fixed_size; /* the codec's frames all have the same size, as a rule */
} weir_sound_clock;

void weir__sound_clock_begin(weir_sound_clock *clock, AVRational time_base, bool has_fixed_size, bool may_restart);

/* The reading goes on elsewhere, with a decoder that is in its first state. */
void weir__sound_clock_seek(weir_sound_clock *clock);

/* The place of the next frame, which has samples. */
int64_t weir__sound_clock_place(weir_sound_clock *clock, const AVFrame *frame);

/* After three frames from the start: do the times tell samples after a seek? is_continuous: the container's clock is known
   not to restart. */
bool weir__sound_clock_can_seek(const weir_sound_clock *clock, bool is_continuous);

/* The stored time of that sample, about. */
int64_t weir__sound_clock_pts(const weir_sound_clock *clock, int64_t sample);

#endif
