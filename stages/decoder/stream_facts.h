/* What the header of an open file says about a stream. Internal. For one thread at a time, as the file. */
#ifndef STAGES_DECODER_STREAM_FACTS_H
#define STAGES_DECODER_STREAM_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avformat.h>

/* A part of FFmpeg's name of the format, such as "mp4". */
bool weir__container_is(const AVFormatContext *format, const char *name);

/* A picture without a container: only its decoder knows its parameters. */
bool weir__container_is_still(const AVFormatContext *format);

/*
 * Does the container's header have everything that the probe (avformat_find_stream_info) would find? The probe decodes
 * frames to find what an incomplete header lacks; with one fully described stream of this kind it is not needed.
 */
bool weir__container_describes(const AVFormatContext *format, enum AVMediaType media);

/* The stream by whose index a place of this one is found. */
const AVStream *weir__stream_with_index(const AVFormatContext *format, const AVStream *stream);

/* Are the packets' dts reliable? Matroska has none; FFmpeg's guesses are wrong for codecs that reorder frames. */
bool weir__stream_has_dts(const AVFormatContext *format, const AVStream *stream);

/* The header's number of frames, without those that an edit list removes; 0 = unknown. Takes time in proportion to the file. */
uint64_t weir__stream_count_frames(const AVFormatContext *format, AVStream *stream);

/* The packets that the header lists, if it lists all that it counts (avformat_index_get_entry()): as that of an MP4 file without
   fragments; 0 = it does not. */
uint64_t weir__stream_count_listed(const AVFormatContext *format, const AVStream *stream);

/* The header's number of frames, or an estimate from the duration; 0 = unknown. Not reliable. */
uint64_t weir__stream_estimate_frames(const AVFormatContext *format, AVStream *stream);

#endif
