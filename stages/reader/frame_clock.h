/*
 * The clock: a frame's time is computed here and nowhere else. Whole decode, sampling by number and by time, windows,
 * rates, the index and the probe read from it. Internal. Pure: no file; one thread at a time for each.
 */
#ifndef STAGES_READER_FRAME_CLOCK_H
#define STAGES_READER_FRAME_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libavformat/avformat.h>

/* The clock of decoded frames, in the decoder's order. */
typedef struct weir_frame_clock {
    AVRational time_base;
    AVRational rate;   /* on average; 0/0 = unknown */
    int64_t first_pts; /* AV_NOPTS_VALUE = no frame had a time yet */
    int64_t ticks;     /* of the last frame, relative to the first one */
    int64_t end_ticks; /* of it */
} weir_frame_clock;

void weir__frame_clock_begin(weir_frame_clock *clock, const AVStream *stream);

/* The next frame: sets clock->ticks, which never decreases, and clock->end_ticks. A time that is missing or out of range is
   the end of the frame before. */
void weir__frame_clock_add(weir_frame_clock *clock, const AVFrame *frame);

/*
 * The frames of one video, in presentation order. Times are kept as the stream stores them, in ticks of its time base: they
 * are exact, so that rates are computed as ffmpeg does.
 *
 * A stored time may be a rounded one: Matroska counts milliseconds, in which a frame of 30 per second does not last a
 * whole number of ticks. Then a time that is less than a tick, and less than half a frame, before a frame is at that
 * frame.
 */
typedef struct weir_timeline {
    AVRational time_base;
    int64_t first_pts; /* the first frame's stored time */
    int64_t *ticks;    /* of each frame, relative to the first; never decreasing */
    bool *is_key;
    size_t num_frames;
    size_t max_frames; /* capacity */
    int64_t end_ticks; /* the end of the last frame */

    /* after weir__timeline_end() */
    bool is_rounded;
} weir_timeline;

/* WEIR_OK or WEIR_ENOMEM. */
int weir__timeline_add(weir_timeline *timeline, int64_t ticks, bool is_key);

/* All frames are in, and end_ticks is set: determines the rounding. The stream's average and real frame rates may be
   0/0. */
void weir__timeline_end(weir_timeline *timeline, AVRational average_rate, AVRational real_rate);

void weir__timeline_reset(weir_timeline *timeline);

/* Of a trusted number of ticks; < 0 = they are out of range. */
int64_t weir__ticks_ns(int64_t ticks, AVRational time_base);

/* The time of that frame, or for num_frames the end of the last one. */
int64_t weir__timeline_ns(const weir_timeline *timeline, size_t frame);

/* By how much the true time of that frame may differ from the stored one; at least 1 ns, because the times that are
   compared with it are rounded to nanoseconds. For num_frames: of the end. */
int64_t weir__timeline_tolerance_ns(const weir_timeline *timeline, size_t frame);

/* The number of frames that start before this time. */
size_t weir__timeline_before(const weir_timeline *timeline, int64_t time_ns);

/* The number of frames that start before this time or at it. */
size_t weir__timeline_up_to(const weir_timeline *timeline, int64_t time_ns);

#endif
