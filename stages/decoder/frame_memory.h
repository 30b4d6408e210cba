/*
 * The memory that a decoder's frames take: a guess before decoding, and an account of each frame's buffer while it lives. Internal.
 * A limit counts for one decoder, another one for all decoders of the process together.
 */
#ifndef STAGES_DECODER_FRAME_MEMORY_H
#define STAGES_DECODER_FRAME_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <libavcodec/avcodec.h>

#include <weir/decoder_config.h>
#include <weir/status.h>

typedef struct weir_frame_memory {
    /* immutable after init */
    const weir_decoder_config *config; /* with the limits; a whole copy */

    /* Asked before a frame is refused, on any thread of the codec: frees frames that are only kept for later. NULL =
       nobody keeps any. */
    void (*give_up)(void *keeper);
    void *keeper;

    /* written on any thread of the codec */
    atomic_uint_fast64_t bytes_wanted; /* by the frame that was refused, with all that were there; 0 = none was */
    atomic_bool is_out;                /* malloc() had none for a frame */
    atomic_bool is_over_all;           /* it was over the second limit */
    AVBufferRef *account;              /* shared with the frames, which may outlive this */
} weir_frame_memory;

/* Is there room to decode the stream at all? Bytes are guessed from its header, low rather than high. WEIR_OK or WEIR_ELIMIT. */
int weir__frame_memory_check(const weir_frame_memory *memory, const AVCodecParameters *parameters, weir_error *error);

/* How many pixels a picture may have of a codec whose frames cannot be counted. */
int64_t weir__frame_memory_max_pixels(const weir_frame_memory *memory, enum AVCodecID codec);

/* From here on the codec's frames are counted; before avcodec_open2(). `memory` lives as long as the codec. WEIR_OK or
   WEIR_ENOMEM. */
int weir__frame_memory_attach(weir_frame_memory *memory, AVCodecContext *codec);

/* The bytes of the codec's frames that live. */
uint64_t weir__frame_memory_bytes(const weir_frame_memory *memory);

/* Fills *error if a frame was refused, whatever the codec made of that; else WEIR_OK. */
int weir__frame_memory_verdict(const weir_frame_memory *memory, weir_error *error);

void weir__frame_memory_free(weir_frame_memory *memory);

#endif
