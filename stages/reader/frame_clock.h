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

/*
 * The clock of packets, in the order in which the container has them. In some formats (MPEG-TS and -PS) the clock may
 * restart: where recordings are joined by appending one to the other, or where the 33 bits of a time wrap around.
 * Times are then continued, as the ffmpeg program does it.
 */
typedef struct weir_packet_clock {
    AVRational time_base;
    bool may_restart;
    bool is_wrap_checked;
    int wrap_bits;
    int64_t start_us;      /* of the container; AV_NOPTS_VALUE = unknown */
    int64_t first_us;      /* what the ffmpeg program subtracts: only for the same rounding */
    int64_t offset_us;     /* added to the stored times, with first_us */
    int64_t interval_us;   /* of a packet without a duration; 0 = unknown */
    int64_t last_dts_us;   /* of the packet before, continued; AV_NOPTS_VALUE = none */
    int64_t next_dts_us;   /* that of the next one is expected; AV_NOPTS_VALUE = unknown */
    uint64_t num_restarts; /* so far: if there are any, the times after a seek are unknown */
} weir_packet_clock;

void weir__packet_clock_begin(weir_packet_clock *clock, const AVFormatContext *format, const AVStream *stream);

/* The reading goes on elsewhere. */
void weir__packet_clock_seek(weir_packet_clock *clock);

/* Continues the times of the next packet. */
void weir__packet_clock_run(weir_packet_clock *clock, AVPacket *packet);

/* The packets that were sent to the decoder and that the container hides (AV_PKT_FLAG_DISCARD), where the decoder does not
   drop their frames itself. All-zero is empty. */
typedef struct weir_hidden_packets {
    int64_t *pts; /* in the order of decoding */
    size_t num;
    size_t max; /* capacity */
} weir_hidden_packets;

/* The packet is sent. WEIR_OK or WEIR_ENOMEM. */
int weir__hidden_packets_add(weir_hidden_packets *hidden, const AVCodec *codec, const AVPacket *packet);

/* Is the frame that the decoder returned one of theirs? */
bool weir__hidden_packets_take(weir_hidden_packets *hidden, const AVFrame *frame);

void weir__hidden_packets_reset(weir_hidden_packets *hidden);

/* The clock of decoded frames, in the decoder's order. */
typedef struct weir_frame_clock {
    AVRational time_base;
    AVRational rate;   /* on average; 0/0 = unknown */
    int64_t first_pts; /* AV_NOPTS_VALUE = no frame had a time yet */
    int64_t pts;       /* of the last frame, as the stream stores it; AV_NOPTS_VALUE = no frame had a time yet */
    int64_t ticks;     /* of it, relative to the first one */
    int64_t end_ticks;
    bool has_end; /* the stream tells how long it is shown */
} weir_frame_clock;

void weir__frame_clock_begin(weir_frame_clock *clock, const AVStream *stream);

/* The next frame: sets the clock's fields. ticks never decrease. A time that is missing or out of range is replaced
   by the end of the frame before. The last frames of an AVI file with B-frames have no time, for example. */
void weir__frame_clock_add(weir_frame_clock *clock, const AVFrame *frame);

/* The same for a frame that will be decoded: its time (AV_NOPTS_VALUE = it has none) and duration (0 = unknown), in ticks. */
void weir__frame_clock_advance(weir_frame_clock *clock, int64_t pts, int64_t duration);

/* Tells a timeline its frames, below num_frames. */
typedef struct weir_timeline_source {
    const void *self;
    int64_t (*ticks)(const void *self, size_t frame);
    bool (*is_key)(const void *self, size_t frame);
    /* Frames before *begin are at `low` or before it, those from *end on after `high`. NULL = it does not know. */
    void (*narrow)(const void *self, int64_t low, int64_t high, size_t *begin, size_t *end);
} weir_timeline_source;

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
    int64_t first_pts;           /* the first frame's stored time */
    weir_timeline_source source; /* .ticks NULL = the arrays */
    int64_t *ticks;              /* of each frame, relative to the first; never decreasing */
    bool *is_key;
    size_t num_frames;
    size_t max_frames; /* capacity */
    int64_t end_ticks; /* the end of the last frame */
    bool has_end;      /* the stream tells it; otherwise it is a guess */

    /* after weir__timeline_end() */
    bool is_rounded;
} weir_timeline;

/* WEIR_OK or WEIR_ENOMEM. */
int weir__timeline_add(weir_timeline *timeline, int64_t ticks, bool is_key);

/* All times are that apart, or a multiple of it; 0 = there is only one frame. */
int64_t weir__timeline_step(const weir_timeline *timeline);

/* All frames are in, and end_ticks is set: determines the rounding, from weir__timeline_step(). The stream's average and real
   frame rates may be 0/0. */
void weir__timeline_end(weir_timeline *timeline, int64_t step, AVRational average_rate, AVRational real_rate);

/* The ticks of that frame, relative to the first one. */
int64_t weir__timeline_ticks(const weir_timeline *timeline, size_t frame);

bool weir__timeline_is_key(const weir_timeline *timeline, size_t frame);

/* The memory that it takes. */
size_t weir__timeline_bytes(const weir_timeline *timeline);

void weir__timeline_reset(weir_timeline *timeline);

/* The ticks of a frame at that rate, at least 1; 0 = the rate is unknown. */
int64_t weir__average_ticks(AVRational rate, AVRational time_base);

/* The nanoseconds of a trusted number of ticks; < 0 = they are out of range. */
int64_t weir__ticks_ns(int64_t ticks, AVRational time_base);

/* The first frame's time as the stream stores it; 0 = it stores none. */
int64_t weir__timeline_start_ns(const weir_timeline *timeline);

/* Is that time at the end of the last frame, or after it? */
bool weir__timeline_is_over(const weir_timeline *timeline, int64_t time_ns);

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
