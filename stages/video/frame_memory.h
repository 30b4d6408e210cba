/*
 * The memory of a decoder's frames: an estimate before decoding, and an account of all frame buffers in use.
 * Internal. There is one limit for each decoder, and one for all decoders of the process together.
 */
#ifndef WEIR_STAGES_FRAME_MEMORY_H
#define WEIR_STAGES_FRAME_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <libavcodec/avcodec.h>

#include <weir/status.h>

/* The default of max_decoder_bytes. */
#define WEIR_FRAME_MEMORY_BYTES (UINT64_C(1) << 30)

typedef struct weir_frame_memory {
    /* immutable after init */
    uint64_t max_bytes;     /* of this decoder's frames (0 = WEIR_FRAME_MEMORY_BYTES) */
    uint64_t max_all_bytes; /* of the frames of all decoders of the process (0 = any) */

    uint64_t bytes_wanted; /* total with the frame that was refused; 0 = none was */
    bool is_over_all;      /* the second limit was exceeded */
    AVBufferRef *account;  /* shared with the frames, which may outlive this */
} weir_frame_memory;

/* Half of the machine's memory, or of what the cgroup allows: the default of max_all_decoder_bytes. */
uint64_t weir_frame_memory_default_all(void);

/* Is there enough memory to decode the stream? Uses a low estimate from its header. WEIR_OK or WEIR_ELIMIT. */
int weir_frame_memory_check(const weir_frame_memory *memory, const AVCodecParameters *parameters, weir_error *error);

/* The pixel limit for a codec whose frames cannot be counted. */
int64_t weir_frame_memory_max_pixels(const weir_frame_memory *memory, enum AVCodecID codec);

/* Counts the codec's frames; call before avcodec_open2(). `memory` must outlive the codec. WEIR_OK or
   WEIR_ENOMEM. */
int weir_frame_memory_attach(weir_frame_memory *memory, AVCodecContext *codec);

/* Fills *error if a frame was refused, even if the codec reported another error; else WEIR_OK. */
int weir_frame_memory_verdict(const weir_frame_memory *memory, weir_error *error);

void weir_frame_memory_free(weir_frame_memory *memory);

#endif
