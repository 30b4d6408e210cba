/*
 * The decoder: the input is a file, the output the frames of its best video (or audio) stream, in presentation order.
 * Internal. It does not depend on pipelines. One thread at a time for each decoder.
 */
#ifndef STAGES_DECODER_DECODER_H
#define STAGES_DECODER_DECODER_H

#include <stdbool.h>
#include <stdint.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include <weir/decode_cost.h>
#include <weir/status.h>

#include "stages/decoder/frame_memory.h"
#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/ffmpeg/input.h"

typedef struct weir_decoder {
    /* immutable after init */
    bool (*should_stop)(void *self); /* asked between packets and inside blocking I/O; NULL = never */
    void (*on_frame)(void *self);    /* a frame was decoded: it is in `frame`; NULL = nobody wants to know */
    void *self;
    const weir_decoder_config *config; /* a whole copy */
    enum AVMediaType media;            /* which kind of stream (0 = video) */
    uint32_t stream_number;            /* the n-th of that kind, from 1 (0 = the best) */
    weir_frame_memory memory;

    /* of the next file to open: its config, its bytes; set by the caller */
    weir_input input;

    /* kept from file to file */
    AVPacket *packet;
    AVFrame *frame; /* the current one, after weir__decoder_next() */

    /* of the open file */
    AVFormatContext *format;
    AVCodecContext *codec;
    bool is_threaded; /* the codec has config->threads threads, else one */
    weir_ffmpeg_watch watch;
    AVStream *stream;
    AVPacket *first;           /* already read, to be returned next; NULL = none */
    bool is_still;             /* the container is one picture; following data is ignored */
    bool draining;             /* all packets have been sent */
    unsigned num_drain_errors; /* since then */
    uint64_t num_packets;      /* read */
    bool has_cut_packet;       /* the container says that one is damaged; not every decoder notices */
    uint64_t num_errors;       /* packets that could not be read or decoded */
    int first_averror;         /* the first of these; 0 = none */
    char first_reason[160];    /* its first line in FFmpeg's log; "" = none */

    /* Accumulates, also over several openings, until the caller sets it to zero: times of opening, reading and
       decoding, and facts about the file. */
    weir_decode_cost cost;
} weir_decoder;

/* *decoder must be all-zero except its immutable fields and input.config, which live as long as it. WEIR_OK or
   WEIR_ENOMEM. After any result weir__decoder_free(). */
int weir__decoder_init(weir_decoder *decoder);

/* A path or URL, or what decoder->input.bytes holds. WEIR_OK, or the failure with *error filled. Afterwards
   weir__decoder_close(), whatever the result. */
int weir__decoder_open(weir_decoder *decoder, const char *path, weir_error *error);

/* WEIR_OK: decoder->frame is the next one, valid until the next call. WEIR_EOF: no more. Or a failure with *error
   filled: only for what ends the whole file (memory, stop); damage is counted in num_errors and skipped. */
int weir__decoder_next(weir_decoder *decoder, weir_error *error);

/*
 * The steps of weir__decoder_next(), for callers that select packets themselves. Damage is counted in the same way.
 * read: the next packet of the stream is in decoder->packet; WEIR_EOF = no more.
 * unread: the next read returns that packet again.
 * send: a packet (NULL = the end) for the codec, after weir__decoder_receive() returned WEIR_MORE.
 * receive: WEIR_OK (decoder->frame is set), WEIR_MORE (needs a packet) or WEIR_EOF.
 */
int weir__decoder_read(weir_decoder *decoder, weir_error *error);
int weir__decoder_unread(weir_decoder *decoder, weir_error *error);
int weir__decoder_send(weir_decoder *decoder, const AVPacket *packet, weir_error *error);
int weir__decoder_receive(weir_decoder *decoder, weir_error *error);

/* Seeks to the last packet at or before that time, in the stream's time base, that the container marks as a start for
   decoding. False: seeking failed, and the position is undefined. */
bool weir__decoder_seek(weir_decoder *decoder, int64_t time);

/* Discards the packets sent so far; the next one must be a start for decoding. */
void weir__decoder_flush(weir_decoder *decoder);

/* Replaces the codec, as after weir__decoder_open(); the read position stays. WEIR_OK, or the failure with *error
   filled, after which only weir__decoder_close() may be called. */
int weir__decoder_restart(weir_decoder *decoder, weir_error *error);

/* From here on, and when the codec is replaced, it has config->threads threads, or only one. May replace the codec. WEIR_OK, or the
   failure with *error filled, after which only weir__decoder_close() may be called. */
int weir__decoder_use_threads(weir_decoder *decoder, bool is_wanted, weir_error *error);

/* One more codec for the stream, with one thread, set up like decoder->codec. It shares the account of memory, and is freed before
   the decoder is closed or the codec is replaced. NULL, with *error filled, is the failure. */
AVCodecContext *weir__decoder_another_codec(weir_decoder *decoder, weir_error *error);

/* Is decoder->frame within max_pixels? WEIR_OK, or WEIR_ELIMIT with *error filled. */
int weir__decoder_check_frame(const weir_decoder *decoder, weir_error *error);

/* WEIR_OK; or WEIR_ESTOPPED with *error filled, if the work is to stop. */
int weir__decoder_check_stop(const weir_decoder *decoder, weir_error *error);

/* The signs of damage that the codec's threads have logged, since it was opened. */
uint64_t weir__decoder_thread_trouble(const weir_decoder *decoder);

/* For a file without output: fills *error with the reason, or with `empty` if none is known. Returns the status. */
int weir__decoder_fail_empty(const weir_decoder *decoder, const char *empty, weir_error *error);

/* From here on decoder->cost is that of another request to the open file. */
void weir__decoder_begin_cost(weir_decoder *decoder);

/* Closes the file; the decoder is ready for the next. */
void weir__decoder_close(weir_decoder *decoder);

void weir__decoder_free(weir_decoder *decoder);

#endif
