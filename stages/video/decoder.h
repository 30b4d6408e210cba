/*
 * The decoder: a file in, the frames of its best video (or audio) stream out, in presentation order. Internal. It knows
 * nothing of pipelines; one thread at a time for each decoder.
 */
#ifndef WEIR_STAGES_DECODER_H
#define WEIR_STAGES_DECODER_H

#include <stdbool.h>
#include <stdint.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include <weir/cost.h>
#include <weir/status.h>

#include "frame_memory.h"
#include "input.h"

typedef struct weir_decoder {
    /* immutable after init */
    bool (*should_stop)(void *self); /* asked between packets and inside blocking I/O; NULL = never */
    void *self;
    int64_t max_pixels;
    enum AVMediaType media;   /* which kind of stream (0 = video) */
    uint32_t stream_number;   /* the n-th of that kind, from 1 on (0 = the best) */
    weir_frame_memory memory; /* with its limits set */

    /* of the next file to open: its bytes, its timeout; set by the caller */
    weir_input input;

    /* kept from file to file */
    AVPacket *packet;
    AVFrame *frame; /* the current one, after weir_decoder_next() */

    /* of the open file */
    AVFormatContext *format;
    AVCodecContext *codec;
    AVStream *stream;
    AVPacket *first;           /* has been read, and is still to come; NULL = none */
    bool is_still;             /* the container is one picture; what follows it in the file is none of it */
    bool draining;             /* all packets are in */
    unsigned num_drain_errors; /* since then */
    uint64_t num_packets;      /* read */
    uint64_t num_errors;       /* packets that could not be read or decoded */
    int first_averror;         /* the first of these; 0 = none */
    char first_reason[160];    /* and what FFmpeg's log says of it; "" = nothing */

    /* Adds up, also over several openings, until the caller sets it to zero: times of opening, reading and decoding, and
       what is known of the file. */
    weir_item_cost cost;
} weir_decoder;

/* *decoder is all-zero but for what is immutable. WEIR_OK or WEIR_ENOMEM. After any result weir_decoder_free(). */
int weir_decoder_init(weir_decoder *decoder);

/* A path or URL, or what decoder->input.bytes holds. WEIR_OK, or the failure with *error filled. Afterwards
   weir_decoder_close(), whatever the result. */
int weir_decoder_open(weir_decoder *decoder, const char *path, weir_error *error);

/* WEIR_OK: decoder->frame is the next one, until the next call. WEIR_EOF: there are no more. Or a failure, with *error
   filled: only what ends the whole file (memory, stop); damage is counted in num_errors and passed over. */
int weir_decoder_next(weir_decoder *decoder, weir_error *error);

/*
 * The steps that weir_decoder_next() is made of, for those who choose the packets themselves. Damage is counted, as there.
 * read: the next packet of the stream is in decoder->packet; WEIR_EOF = there is none.
 * unread: that packet will come again.
 * send: a packet (NULL = there are no more) for the codec, after weir_decoder_receive() has asked for it.
 * receive: WEIR_OK (decoder->frame is set), WEIR_MORE (needs a packet) or WEIR_EOF.
 */
int weir_decoder_read(weir_decoder *decoder, weir_error *error);
int weir_decoder_unread(weir_decoder *decoder, weir_error *error);
int weir_decoder_send(weir_decoder *decoder, const AVPacket *packet, weir_error *error);
int weir_decoder_receive(weir_decoder *decoder, weir_error *error);

/* Goes to the last packet that decoding can begin with at or before that time, in the stream's time base, by the container's
   own account. False: that cannot be done; where the reading goes on is then not known. */
bool weir_decoder_seek(weir_decoder *decoder, int64_t time);

/* Forgets the packets sent so far; the next one may be any that decoding can begin with. */
void weir_decoder_flush(weir_decoder *decoder);

/* A new codec, as after weir_decoder_open(); the reading goes on where it is. WEIR_OK, or the failure with *error filled,
   after which only weir_decoder_close() is possible. */
int weir_decoder_restart(weir_decoder *decoder, weir_error *error);

/* Can the packets' dts be relied on? Matroska has none; FFmpeg guesses them, and for codecs that reorder frames not well. */
bool weir_decoder_has_dts(const weir_decoder *decoder);

/* How many frames the header lists, without those that an edit list leaves out; 0 = it lists none. */
uint64_t weir_decoder_count_frames(const weir_decoder *decoder);

/* The same, or as many as the duration has room for; 0 = unknown. A guess: not to be trusted. */
uint64_t weir_decoder_estimate_frames(const weir_decoder *decoder);

/* Which one of its kind the stream is, from 1 on. */
uint32_t weir_decoder_stream_number(const weir_decoder *decoder);

/* Nothing has come out: fills *error with the reason, which is "empty" if nothing tells another. Returns the status. */
int weir_decoder_fail_empty(const weir_decoder *decoder, const char *empty, weir_error *error);

/* Leaves the file; the decoder is ready for the next. */
void weir_decoder_close(weir_decoder *decoder);

void weir_decoder_free(weir_decoder *decoder);

#endif
