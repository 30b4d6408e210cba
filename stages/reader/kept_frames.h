/*
 * Decoded frames that are kept while a file's frames are counted, because the request will probably want them: then the file is
 * not decoded a second time. Internal. One thread at a time.
 */
#ifndef STAGES_READER_KEPT_FRAMES_H
#define STAGES_READER_KEPT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stages/decoder/decoder.h"
#include "stages/reader/frame_targets.h"

typedef struct weir_kept_frame {
    uint64_t number;
    int64_t pts;   /* on the clock of frames */
    int64_t ticks; /* on the clock of frames */
    AVFrame *frame;
    uint64_t num_errors; /* of the decoder, when this frame came out */
    int first_averror;
} weir_kept_frame;

/* All-zero keeps nothing. */
typedef struct weir_kept_frames {
    weir_frame_targets guess; /* the frames that will probably be wanted */
    weir_kept_frame *all;     /* numbers rise */
    size_t num;
    size_t next;  /* to be taken */
    size_t bytes; /* of their pixels */
    bool is_full; /* a guessed frame was not kept: there was no memory, or it was over the limit */
} weir_kept_frames;

/* decoder->frame has that number; it is kept if the guess has it and all kept frames stay within max_bytes. */
void weir__kept_frames_add(weir_kept_frames *kept, const weir_decoder *decoder, const weir_kept_frame *facts,
                           size_t max_bytes);

/* Are these the frames of all targets? Those that were taken are not kept any more. */
bool weir__kept_frames_have(weir_kept_frames *kept, const weir_frame_targets *targets);

/* The frame of that number is in decoder->frame, and the decoder's errors are those of then. Only in rising order, and only if
   weir__kept_frames_have(). Returns its facts. */
const weir_kept_frame *weir__kept_frames_take(weir_kept_frames *kept, uint64_t number, weir_decoder *decoder);

/* Frees all frames; no others are kept until the reset. */
void weir__kept_frames_drop(weir_kept_frames *kept);

void weir__kept_frames_reset(weir_kept_frames *kept);

#endif
