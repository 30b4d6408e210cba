/* How the codec of a stream is set up: limits of pixels and of memory, shortcuts, threads. Internal. */
#ifndef STAGES_DECODER_CODEC_SETUP_H
#define STAGES_DECODER_CODEC_SETUP_H

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include <weir/status.h>

#include "stages/decoder/frame_memory.h"

/* The setup for one stream. All that it points to lives as long as the codec. */
typedef struct weir_codec_setup {
    const weir_decoder_config *config;
    weir_frame_memory *memory; /* what frames are allocated from, and counted in */
    const AVStream *stream;
} weir_codec_setup;

/* Sets the context up, before it is opened. WEIR_OK, or the failure with *error filled. */
int weir__codec_set_up(const weir_codec_setup *setup, AVCodecContext *context, unsigned num_threads,
                       weir_error *error);

/* Is the picture that the header announces within the limits? WEIR_OK, or the failure with *error filled. */
int weir__codec_check_size(const weir_decoder_config *config, const weir_frame_memory *memory,
                           const AVCodecParameters *parameters, weir_error *error);

/* Fills *error: a picture of that size is over max_pixels. Returns the status. */
int weir__codec_fail_size(const weir_decoder_config *config, int width, int height, weir_error *error);

#endif
